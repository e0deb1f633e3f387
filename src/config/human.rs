//! `human:` and `teams:`: the people behind a listener.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use systole_core::question::Addressees;
use systole_core::vocab::Name;

use super::correction::{Items, Shape};
use super::document::{Node, Value};
use super::keys::{Flag, List, Named, NonEmpty, Text, Texts, mapping};
use super::listener::{self, Program};
use super::mistake::Mistake;
use super::organism::Organism;
use super::reader::{At, Reader};
use super::remote;
use crate::listeners::human::Announce;
use crate::process::CommandSpec;
use crate::settings::Push;

/// The word of a list of people for the operators of the organism.
pub(super) const OPERATOR: &str = "operator";

/// The word of a list of people for the caller of a conversation, whom its host asks.
pub(super) use crate::listeners::human::CALLER;

/// People as they are written: names of people and teams.
#[derive(Debug)]
pub(super) struct Human {
    pub(super) people: Vec<At<Name>>,
    pub(super) operators: bool,
    pub(super) announce: Option<Announced>,
}

/// An announcement as it is written.
#[derive(Debug)]
pub(super) enum Announced {
    Command(Program),
    Push(Push),
}

/// People as a listener.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct HumanSpec {
    /// Those who may answer.
    pub to: Addressees,
    /// The way in which questions are announced.
    pub announce: Option<Announce>,
}

mapping! {
    /// People, by those who may answer.
    HumanKeys: Human {
        /// Those who may answer: people, teams, and operator for those who run the organism.
        people: NonEmpty<Named>, of "people as a listener";
        /// Announcement of each question: by a command, or by a push to a URL.
        announce: AnnounceKeys<'static>;
    }
}

mapping! {
    /// An announcement of questions.
    AnnounceKeys: Announce {
        /// Program, and its arguments; it gets the envelope of the question on standard input.
        command: Texts;
        /// Environment variables of the command: `NAME` is passed on, `NAME=value` is set.
        env: Texts = [];
        /// URL to which the envelope of the question is pushed.
        url: Text;
        /// File of the secret that signs pushes (docs/outbound.md).
        secret: Text;
        /// Environment variable with that secret, in place of a file.
        secret_env: Text;
        /// True if the URL may be an address of a private network.
        allow_private: Flag = false;
    }
}

/// Lists of people by the names of teams.
pub(super) struct TeamsKey;

impl JsonSchema for TeamsKey {
    fn schema_name() -> Cow<'static, str> {
        "Teams".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "object",
            "propertyNames": generator.subschema_for::<Named>(),
            "additionalProperties": generator.subschema_for::<List<Named>>()
        })
    }
}

/// The members of each team.
pub(super) type Teams = BTreeMap<Name, Vec<At<Name>>>;

/// Reads the value of `human:`: true, or who may answer.
pub(super) fn read(reader: &mut Reader, node: &Node) -> Option<Human> {
    if !matches!(node.value, Value::Map(_)) {
        return match reader.flag(node) {
            Some(true) => Some(Human { people: Vec::new(), operators: true, announce: None }),
            Some(false) => {
                reader.report(Mistake::FalseKind { key: "human" }, node.span);
                None
            }
            None => None,
        };
    }
    let keys = HumanKeys::open(reader, node)?;
    let list = keys.people.node;
    let entries = list.and_then(|list| reader.items(list, Items::Texts));
    if let (Some([]), Some(list)) = (entries, list) {
        reader.report(Mistake::NoPeople, list.span);
    }
    let names: Vec<_> = entries.unwrap_or_default().iter().filter_map(|node| reader.name(node)).collect();
    let announce = keys.announce.node.and_then(|node| announce(reader, node));
    let (operators, people): (Vec<_>, Vec<_>) = names.into_iter().partition(|name| name.value.as_str() == OPERATOR);
    Some(Human { people, operators: !operators.is_empty(), announce })
}

fn announce(reader: &mut Reader, node: &Node) -> Option<Announced> {
    let keys = AnnounceKeys::open(reader, node)?;
    let (announced, kind, pointless) = match keys.command.node {
        Some(words) => {
            let of_push = [keys.url.place(), keys.secret.place(), keys.secret_env.place(), keys.allow_private.place()];
            (listener::program(reader, words, keys.env.node).map(Announced::Command), "announced by a command", of_push)
        }
        None => {
            let of_command = [keys.env.place(), None, None, None];
            (remote::webhook(reader, &keys).map(Announced::Push), "announced to a URL", of_command)
        }
    };
    for (key, span) in pointless.into_iter().flatten() {
        reader.report(Mistake::Pointless { key, kind }, span);
    }
    announced
}

/// Reads the value of `teams:`.
pub(super) fn teams(reader: &mut Reader, node: &Node) -> Teams {
    let Value::Map(entries) = &node.value else {
        reader.fields(node, Shape::Teams);
        return Teams::new();
    };
    let mut teams = Teams::new();
    for (key, members) in entries {
        let name = match Name::parse(&key.text) {
            Ok(name) => name,
            Err(error) => {
                reader.report(error.into(), key.span);
                continue;
            }
        };
        let members = reader.items(members, Items::Texts).unwrap_or_default();
        let members = members.iter().filter_map(|node| reader.name(node)).collect();
        if teams.insert(name, members).is_some() {
            reader.report(Mistake::DuplicateKey { key: key.text.clone() }, key.span);
        }
    }
    teams
}

impl Human {
    /// The people who may answer: the members of teams in place of these.
    fn addressees(&self, teams: &Teams) -> Addressees {
        let one = |name: &At<Name>| match teams.get(&name.value) {
            Some(members) => members.iter().map(|member| member.value.clone()).collect(),
            None => vec![name.value.clone()],
        };
        let people: BTreeSet<_> = self.people.iter().flat_map(one).collect();
        Addressees { people, operators: self.operators }
    }

    /// The listener, with its program as it was found.
    pub(super) fn spec(self, teams: &Teams, command: impl FnOnce(Program) -> CommandSpec) -> HumanSpec {
        let to = self.addressees(teams);
        let announce = self.announce.map(|announced| match announced {
            Announced::Command(program) => Announce::Command(command(program)),
            Announced::Push(push) => Announce::Push(push),
        });
        HumanSpec { to, announce }
    }
}

/// Reports people with the name of another party, and questions that no party can answer.
pub(super) fn check(reader: &mut Reader, organism: &Organism) {
    let clients = organism.clients.iter().map(|client| &client.name.value);
    let parties: BTreeSet<_> = clients.chain(organism.listeners.iter().map(|listener| &listener.name.value)).collect();
    let mut named: Vec<&At<Name>> = Vec::new();
    for listener in &organism.listeners {
        let super::listener::Written::Human(human) = &listener.kind else { continue };
        named.extend(human.people.iter().filter(|name| !organism.teams.contains_key(&name.value)));
        if !human.operators && organism.journal.is_none() {
            reader.report(Mistake::PeopleNotDurable, listener.name.span);
        }
    }
    named.extend(organism.teams.values().flatten());
    let mut told = BTreeSet::new();
    for name in named {
        let is_taken = parties.contains(&name.value) || name.value.as_str() == OPERATOR;
        if is_taken && told.insert(&name.value) {
            reader.report(Mistake::PersonTaken { name: name.value.clone() }, name.span);
        }
    }
}
