//! The parties of an organism: workspaces, listeners within the organism, people, and the names by which each of them
//! speaks.

use std::collections::HashMap;

use systole_core::core::{Blueprint, Contract, Party};
use systole_core::vocab::{Name, NameError};
use uuid::Uuid;

use super::ids::{id_of, parse};
use super::said;
use super::said::Said;
use crate::gateway::facade::StoredMail;
use crate::remote::{Source, SourceKind};

/// Suffix of the client of a workspace, behind the workspace's name.
const VOICE: &str = ".voice";

/// The client by which a workspace opens conversations: in the pump only clients do.
pub(crate) fn voice(workspace: &Name) -> Result<Name, NameError> {
    Name::parse(&format!("{workspace}{VOICE}"))
}

/// The parties of an organism.
pub(super) struct Parties {
    listeners: HashMap<Name, Listener>,
    by_id: HashMap<Uuid, Name>,
    /// The workspace of each voice.
    voices: HashMap<Name, Name>,
    clients: Vec<Name>,
}

/// A listener of the organism.
#[derive(Debug, Clone)]
pub(super) struct Listener {
    pub(super) name: Name,
    pub(super) id: Uuid,
    pub(super) description: String,
    /// True if it accepts text.
    pub(super) takes: bool,
    /// True if it may reply with text.
    pub(super) replies: bool,
    /// The client by which it opens conversations, if it may.
    pub(super) voice: Option<Name>,
}

/// The sender of a row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Sender {
    pub(super) kind: SourceKind,
    /// The name of a listener, or the id of a person.
    pub(super) name: String,
}

impl Parties {
    pub(super) fn of(blueprint: &Blueprint) -> Self {
        let listener = |contract: &Contract| Listener {
            name: contract.name.clone(),
            id: id_of(&contract.name),
            description: contract.description.clone(),
            takes: contract.accepts.contains(&said()),
            replies: contract.replies.contains(&said()),
            voice: voice(&contract.name).ok().filter(|voice| is_client(blueprint, voice)),
        };
        let listeners: HashMap<_, _> =
            blueprint.listeners().map(|(_, contract)| (contract.name.clone(), listener(contract))).collect();
        let by_id = listeners.values().map(|listener| (listener.id, listener.name.clone())).collect();
        let voiced = listeners.values().filter_map(|listener| Some((listener.voice.clone()?, listener.name.clone())));
        let voices: HashMap<_, _> = voiced.collect();
        let clients = blueprint.clients().map(|(_, client)| client.name.clone());
        let clients = clients.filter(|name| !voices.contains_key(name)).collect();
        Self { listeners, by_id, voices, clients }
    }

    /// Each voice with its workspace.
    pub(super) fn voices(&self) -> impl Iterator<Item = (Name, Name)> + use<> {
        self.voices.clone().into_iter()
    }

    /// The listener that a text names, by its name or its id.
    pub(super) fn find(&self, text: &str) -> Option<&Listener> {
        let by_name = Name::parse(text).ok().and_then(|name| self.listeners.get(&name));
        by_name.or_else(|| self.listeners.get(self.by_id.get(&parse(text)?)?))
    }

    /// All listeners that accept text, by name.
    pub(super) fn all(&self) -> Vec<&Listener> {
        let mut all: Vec<_> = self.listeners.values().filter(|listener| listener.takes).collect();
        all.sort_by(|one, other| one.name.cmp(&other.name));
        all
    }

    /// Checks for a client that is no voice of a workspace.
    pub(super) fn is_person(&self, name: &Name) -> bool {
        self.clients.contains(name)
    }

    /// Names by which a listener may have sent a message.
    pub(super) fn senders(&self, of: Uuid) -> Vec<Name> {
        let listener = self.by_id.get(&of).and_then(|name| self.listeners.get(name));
        listener.into_iter().flat_map(|one| std::iter::once(one.name.clone()).chain(one.voice.clone())).collect()
    }

    /// The listener that speaks by a name: its own, or that of its voice.
    pub(super) fn speaker(&self, name: &Name) -> Option<&Listener> {
        self.listeners.get(self.voices.get(name).unwrap_or(name))
    }

    /// The sender of a message, as the pump stamped it. A listener may speak for a person, and for no other party.
    pub(super) fn sender(&self, item: &StoredMail, said: &Said) -> Sender {
        let from = item.record.from.clone();
        if let Some(workspace) = self.voices.get(&from) {
            return Sender { kind: SourceKind::Peer, name: workspace.to_string() };
        }
        if self.is_person(&from) {
            return Sender { kind: SourceKind::Person, name: from.to_string() };
        }
        let claimed = said.source.as_ref().map(|source| (source.kind.as_str(), source.id.as_deref()));
        match claimed.map(|(kind, id)| Source::normalize(Some(kind), id)) {
            Some(Source { kind: SourceKind::Person, id }) => {
                Sender { kind: SourceKind::Person, name: id.unwrap_or_else(|| from.to_string()) }
            }
            _ => Sender { kind: SourceKind::Peer, name: from.to_string() },
        }
    }
}

impl Listener {
    /// Checks whether a text names the listener, by its name or its id.
    pub(super) fn is_called(&self, text: &str) -> bool {
        text == self.name.as_str() || parse(text) == Some(self.id)
    }
}

fn is_client(blueprint: &Blueprint, name: &Name) -> bool {
    matches!(blueprint.party(name.as_str()), Some(Party::Client(_)))
}
