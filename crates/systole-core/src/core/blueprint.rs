//! The blueprint: the listeners and clients of an organism, with the parties at both ends of each payload.

use std::ops::Index;
use std::sync::Arc;

use foldhash::{HashMap, HashMapExt, HashSet, HashSetExt};

use super::contract::{ClientContract, Contract, MetaFlags, Routing, Scheduling, Silence};
use crate::inbox::payload;
use crate::protocol::boot_qname;
use crate::vocab::{Budget, Limits, Name, QName, ns};

/// The organism as it was registered: listeners, clients, and the payloads that each may send and take. Immutable.
///
/// An organism that changes while it runs has a blueprint for each of its versions. Each knows the listeners of the versions
/// before it by their ids, which are never used again, but only its own by their names and payloads.
#[derive(Debug)]
pub struct Blueprint {
    /// The name of the organism.
    pub organism: String,
    /// The order of dispatch.
    pub scheduling: Scheduling,
    /// The bounds.
    pub limits: Limits,
    /// The most that each conversation may use. Those of `<boot>` have no such bound.
    pub budget: Budget,
    /// The flags of the core.
    pub meta: MetaFlags,
    version: Version,
    /// The listeners of all versions so far.
    listeners: Vec<Arc<Contract>>,
    /// The number of those of earlier versions.
    earlier: u32,
    /// Clients of earlier versions that this one does not have.
    retired: Vec<ClientId>,
    clients: Vec<ClientContract>,
    parties: HashMap<Name, Party>,
    ends: HashMap<QName, Ends>,
}

/// The parties at both ends of a payload. Each list is sorted, and has each party once.
#[derive(Debug, Default)]
pub(super) struct Ends {
    /// Listeners that accept it, with any routing.
    pub accepting: Vec<ListenerId>,
    /// The accepting listeners that get it if it names no target.
    pub routed: Vec<ListenerId>,
    /// Parties that list it among their calls.
    callers: Vec<Party>,
}

static NO_ENDS: Ends = Ends { accepting: Vec::new(), routed: Vec::new(), callers: Vec::new() };

/// A version of an organism, counted from 0: each change while it runs makes the next one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Version(pub u32);

/// A listener of a blueprint, by its place in the order of registration, over all versions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ListenerId(pub u32);

/// A client of a blueprint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ClientId(pub u32);

/// A client or listener.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Party {
    /// A client.
    Client(ClientId),
    /// A listener.
    Listener(ListenerId),
}

/// The party whose conversation an item belongs to: a client, or the organism itself (`<boot>` and redriven dead letters).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Principal(pub u32);

impl Principal {
    pub(super) const ORGANISM: Self = Self(0);
}

impl From<Option<ClientId>> for Principal {
    fn from(client: Option<ClientId>) -> Self {
        client.map_or(Self::ORGANISM, |ClientId(client)| Self(client + 1))
    }
}

/// A mistake of a blueprint that keeps the organism from starting, or that `check` warns of.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BlueprintProblem {
    /// Two parties share a name.
    #[error("the name '{name}' is taken: listeners and clients share one space of names")]
    DuplicateName {
        /// The second of that name.
        name: Name,
    },
    /// A `unique` listener accepts a payload that another one accepts too.
    #[error("'{first}' and '{second}' both accept {payload}: mark all of them `broadcast`, or all but one `addressed`")]
    Ambiguous {
        /// The earlier listener.
        first: Name,
        /// The later one.
        second: Name,
        /// The payload.
        payload: QName,
    },
    /// No listener accepts a payload that a party may call.
    #[error("'{caller}' may call {payload}, which no listener accepts")]
    Unanswered {
        /// The listener or client that lists the call.
        caller: Name,
        /// The payload.
        payload: QName,
    },
    /// A payload of the core, meta or transcript namespace where it can't stand.
    #[error(
        "'{name}' lists {payload}, which belongs to the pump: only <boot> can be accepted, answers of the core stand in returns"
    )]
    Reserved {
        /// The listener or client.
        name: Name,
        /// The payload.
        payload: QName,
    },
    /// A listener without a slot.
    #[error("'{name}' has a concurrency of 0: it could never run")]
    NoSlot {
        /// The listener.
        name: Name,
    },
    /// A callee's reply that a listener, which can't await, does not take.
    #[error(
        "'{caller}' calls {call}, but the reply {reply} of '{callee}' is not in its returns: it would fail the thread"
    )]
    Unreturned {
        /// The caller.
        caller: Name,
        /// The payload of the call.
        call: QName,
        /// The callee.
        callee: Name,
        /// The reply.
        reply: QName,
    },
    /// A listener that can't answer the calls of others.
    #[error(
        "'{caller}' calls {payload} and waits for an answer, but '{listener}', which accepts it, has no replies: each such call ends in the fault `silent`"
    )]
    Replyless {
        /// Accepts the payload.
        listener: Name,
        /// Lists the call.
        caller: Name,
        /// The payload.
        payload: QName,
    },
    /// No message can come in.
    #[error("no message can ever come in: there is no client, and no listener accepts <boot>")]
    NoSpeaker,
}

impl BlueprintProblem {
    /// Returns whether the organism can run in spite of it.
    pub fn is_warning(&self) -> bool {
        matches!(self, Self::Unreturned { .. } | Self::Replyless { .. } | Self::NoSpeaker)
    }
}

/// The contract of a listener of this blueprint. The core looks at ids where they come in.
impl Index<ListenerId> for Blueprint {
    type Output = Contract;

    fn index(&self, id: ListenerId) -> &Contract {
        &self.listeners[id.0 as usize]
    }
}

/// A client of this blueprint. The core looks at ids where they come in.
impl Index<ClientId> for Blueprint {
    type Output = ClientContract;

    fn index(&self, id: ClientId) -> &ClientContract {
        &self.clients[id.0 as usize]
    }
}

impl Blueprint {
    /// Lays out an organism; listeners keep their order, which is the order of broadcasts.
    pub fn new(organism: impl Into<String>, listeners: Vec<Contract>, clients: Vec<ClientContract>) -> Self {
        let mut blueprint = Self {
            organism: organism.into(),
            scheduling: Scheduling::default(),
            limits: Limits::default(),
            budget: Budget::NONE,
            meta: MetaFlags::default(),
            version: Version::default(),
            listeners: listeners.into_iter().map(Arc::new).collect(),
            earlier: 0,
            retired: Vec::new(),
            clients,
            parties: HashMap::new(),
            ends: HashMap::new(),
        };
        blueprint.link();
        blueprint
    }

    /// Makes this organism, which was laid out alone, the version after another one: its listeners get ids behind those of
    /// that, and a client keeps its id by its name. A client that is gone may call nothing any more.
    #[must_use]
    pub fn after(mut self, before: &Self) -> Self {
        self.version = Version(before.version.0 + 1);
        self.earlier = before.listeners.len() as u32;
        self.listeners.splice(0..0, before.listeners.iter().cloned());
        let mut clients = std::mem::take(&mut self.clients);
        for known in &before.clients {
            let at = clients.iter().position(|client| client.name == known.name);
            if at.is_none() {
                self.retired.push(ClientId(self.clients.len() as u32));
            }
            self.clients.push(at.map_or_else(|| known.retired(), |at| clients.remove(at)));
        }
        self.clients.append(&mut clients);
        self.link();
        self
    }

    /// Finds the parties of each name and payload.
    fn link(&mut self) {
        let mut parties = HashMap::new();
        let mut ends: HashMap<QName, Ends> = HashMap::new();
        let mut call = |party, calls: &[QName]| {
            for payload in calls {
                push_once(&mut ends.entry(payload.clone()).or_default().callers, party);
            }
        };
        for (id, client) in self.clients() {
            parties.entry(client.name.clone()).or_insert(Party::Client(id));
            call(Party::Client(id), &client.calls);
        }
        for (id, listener) in self.listeners() {
            parties.entry(listener.name.clone()).or_insert(Party::Listener(id));
            call(Party::Listener(id), &listener.calls);
        }
        for (id, listener) in self.listeners() {
            for payload in &listener.accepts {
                let ends = ends.entry(payload.clone()).or_default();
                push_once(&mut ends.accepting, id);
                if listener.routing != Routing::Addressed {
                    push_once(&mut ends.routed, id);
                }
            }
        }
        (self.parties, self.ends) = (parties, ends);
    }

    /// Returns whether messages can come in: there is a client, or a listener that accepts `<boot>`.
    pub fn has_speaker(&self) -> bool {
        !self.clients.is_empty() || self.listeners().any(|(_, listener)| listener.accepts.contains(&boot_qname()))
    }

    /// The version of the organism.
    pub fn version(&self) -> Version {
        self.version
    }

    /// The listeners in the order of registration, without those of earlier versions.
    pub fn listeners(&self) -> impl Iterator<Item = (ListenerId, &Contract)> {
        self.all_listeners().skip(self.earlier as usize)
    }

    /// The listeners of all versions so far, in order of version.
    pub fn all_listeners(&self) -> impl Iterator<Item = (ListenerId, &Contract)> {
        (0..).map(ListenerId).zip(self.listeners.iter().map(|listener| &**listener))
    }

    /// The id of its first listener: smaller ones are those of earlier versions.
    pub fn first(&self) -> ListenerId {
        ListenerId(self.earlier)
    }

    /// The listeners of a name, of all versions so far.
    pub fn named<'b>(&'b self, name: &'b Name) -> impl Iterator<Item = ListenerId> + 'b {
        self.all_listeners().filter(move |(_, listener)| listener.name == *name).map(|(id, _)| id)
    }

    /// Returns whether a client is one of an earlier version alone: it may send nothing more, and gets answers yet.
    pub fn has_retired(&self, client: ClientId) -> bool {
        self.retired.contains(&client)
    }

    /// The clients, with those of earlier versions.
    pub fn clients(&self) -> impl Iterator<Item = (ClientId, &ClientContract)> {
        (0..).map(ClientId).zip(&self.clients)
    }

    /// The contract of a listener; `None` for an id of another organism, which has more of them.
    pub fn listener(&self, id: ListenerId) -> Option<&Contract> {
        self.listeners.get(id.0 as usize).map(|listener| &**listener)
    }

    /// The client of an id; `None` for an id of another organism, which has more of them.
    pub fn client(&self, id: ClientId) -> Option<&ClientContract> {
        self.clients.get(id.0 as usize)
    }

    /// The party of a name.
    pub fn party(&self, name: &str) -> Option<Party> {
        self.parties.get(name).copied()
    }

    /// The listeners that accept a payload, with any routing, in the order of registration.
    pub fn accepting(&self, payload: &QName) -> &[ListenerId] {
        &self.ends(payload).accepting
    }

    /// The parties at both ends of a payload.
    pub(super) fn ends(&self, payload: &QName) -> &Ends {
        self.ends.get(payload).unwrap_or(&NO_ENDS)
    }

    /// The payloads that a party lists among its calls.
    pub fn calls(&self, party: Party) -> &[QName] {
        match party {
            Party::Client(id) => &self[id].calls,
            Party::Listener(id) => &self[id].calls,
        }
    }

    /// Returns whether a party lists a payload among its calls.
    pub fn may_call(&self, party: Party, payload: &QName) -> bool {
        self.ends(payload).has_caller(party)
    }

    /// All mistakes, errors and warnings, in the order of registration.
    pub fn problems(&self) -> Vec<BlueprintProblem> {
        let mut problems = Vec::new();
        self.check_names(&mut problems);
        self.check_lists(&mut problems);
        self.check_routes(&mut problems);
        self.check_calls(&mut problems);
        problems
    }

    fn check_names(&self, problems: &mut Vec<BlueprintProblem>) {
        let clients = self.clients().map(|(id, client)| (Party::Client(id), &client.name));
        let listeners = self.listeners().map(|(id, listener)| (Party::Listener(id), &listener.name));
        for (party, name) in clients.chain(listeners) {
            if self.parties.get(name) != Some(&party) {
                problems.push(BlueprintProblem::DuplicateName { name: name.clone() });
            }
        }
    }

    fn check_lists(&self, problems: &mut Vec<BlueprintProblem>) {
        let reserved = |payload: &&QName| matches!(payload.namespace(), ns::CORE | ns::META | ns::TRANSCRIPT);
        let is_boot = |payload: &QName| payload.namespace() == ns::CORE && payload.local() == "boot";
        for (_, listener) in self.listeners() {
            let accepted = listener.accepts.iter().filter(|payload| !is_boot(payload));
            for payload in accepted.chain(&listener.replies).chain(&listener.calls).filter(reserved) {
                problems.push(BlueprintProblem::Reserved { name: listener.name.clone(), payload: payload.clone() });
            }
            if listener.concurrency == 0 {
                problems.push(BlueprintProblem::NoSlot { name: listener.name.clone() });
            }
        }
        for client in &self.clients {
            for payload in client.calls.iter().filter(reserved) {
                problems.push(BlueprintProblem::Reserved { name: client.name.clone(), payload: payload.clone() });
            }
        }
    }

    fn check_routes(&self, problems: &mut Vec<BlueprintProblem>) {
        let mut firsts: HashMap<&QName, Firsts> = HashMap::new();
        for (id, second) in self.listeners() {
            let (is_routed, is_unique) = (second.routing != Routing::Addressed, second.routing == Routing::Unique);
            for payload in second.accepts.iter().filter(|payload| is_routed && payload.namespace() != ns::CORE) {
                let firsts = firsts.entry(payload).or_default();
                let first = if is_unique { firsts.routed } else { firsts.unique };
                if let Some(first) = first.filter(|&first| first != id) {
                    problems.push(BlueprintProblem::Ambiguous {
                        first: self[first].name.clone(),
                        second: second.name.clone(),
                        payload: payload.clone(),
                    });
                }
                firsts.routed.get_or_insert(id);
                if is_unique {
                    firsts.unique.get_or_insert(id);
                }
            }
        }
    }

    fn check_calls(&self, problems: &mut Vec<BlueprintProblem>) {
        let listeners = self.listeners().map(|(_, listener)| (&listener.name, &listener.calls));
        let clients = self.clients.iter().map(|client| (&client.name, &client.calls));
        for (caller, calls) in listeners.chain(clients) {
            for payload in calls.iter().filter(|payload| self.accepting(payload).is_empty()) {
                problems.push(BlueprintProblem::Unanswered { caller: caller.clone(), payload: payload.clone() });
            }
        }
        self.check_replies(problems);
        for (_, caller) in self.listeners().filter(|(_, listener)| !listener.can_park) {
            let returns: HashSet<&QName> = caller.returns.iter().collect();
            let mut callees = HashSet::new();
            // Requests about tasks that a remote listener makes over HTTP are answered over HTTP.
            let over_http = |call: &&QName| caller.outlives && call.namespace() == payload::NAMESPACE;
            for call in caller.calls.iter().filter(|call| !over_http(call)) {
                for &callee in self.accepting(call).iter().filter(|callee| callees.insert(**callee)) {
                    let callee = &self[callee];
                    for reply in callee.replies.iter().filter(|reply| !returns.contains(reply)) {
                        problems.push(BlueprintProblem::Unreturned {
                            caller: caller.name.clone(),
                            call: call.clone(),
                            callee: callee.name.clone(),
                            reply: reply.clone(),
                        });
                    }
                }
            }
        }
    }

    /// Finds each listener without replies once for each payload, with the first of its callers.
    fn check_replies(&self, problems: &mut Vec<BlueprintProblem>) {
        let mute = self.listeners().filter(|(_, listener)| listener.replies.is_empty());
        for (_, listener) in mute.filter(|(_, listener)| listener.silence == Silence::Error) {
            for payload in listener.accepts.iter().filter(|payload| payload.namespace() != ns::CORE) {
                let caller = self.ends(payload).callers.first().map(|&caller| match caller {
                    Party::Client(id) => &self[id].name,
                    Party::Listener(id) => &self[id].name,
                });
                if let Some(caller) = caller {
                    problems.push(BlueprintProblem::Replyless {
                        listener: listener.name.clone(),
                        caller: caller.clone(),
                        payload: payload.clone(),
                    });
                }
            }
        }
    }
}

/// The first listeners of a payload by the order of registration.
#[derive(Default)]
struct Firsts {
    routed: Option<ListenerId>,
    unique: Option<ListenerId>,
}

impl Ends {
    /// Returns whether a party lists the payload among its calls.
    pub(super) fn has_caller(&self, party: Party) -> bool {
        self.callers.binary_search(&party).is_ok()
    }

    /// Returns whether a listener accepts the payload.
    pub(super) fn has_acceptor(&self, listener: ListenerId) -> bool {
        self.accepting.binary_search(&listener).is_ok()
    }
}

/// Appends an item, unless it is the last one already.
fn push_once<T: PartialEq>(list: &mut Vec<T>, item: T) {
    if list.last() != Some(&item) {
        list.push(item);
    }
}
