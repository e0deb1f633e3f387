//! Builders of contracts and clients.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use systole_core::core::{ClientContract, Contract, OnRestart, Routing, Silence};
use systole_core::protocol::{Boot, Request, boot_qname, fan_out_ended_qname};
use systole_core::vocab::{Budget, Fault, Name, QName, ns};
use systole_xml::ladder::repair::Author;
use systole_xml::schema::{DecodeFn, Element, Payload, PayloadSchema, decoder};

use super::kind::{Accepts, HandlerKind};
use crate::runtime::start::StartRefusal;

/// Builder of the contract of a listener of type `L`: its promises and permissions. Payloads that it doesn't list are
/// refused.
pub struct ContractBuilder<L, K: HandlerKind<L>> {
    pub(crate) contract: Contract,
    pub(crate) routes: Vec<K::Route>,
    pub(crate) decoders: Vec<(QName, DecodeFn)>,
    pub(crate) timeout: Option<Option<Duration>>,
    pub(crate) words: Words,
}

/// Payloads that contracts mention: their schemas, and refusals of bad ones.
#[derive(Default)]
pub(crate) struct Words {
    pub(crate) schemas: Vec<PayloadSchema>,
    pub(crate) refusals: Vec<StartRefusal>,
}

impl<L, K: HandlerKind<L>> ContractBuilder<L, K> {
    pub(crate) fn new(name: Name) -> Self {
        let contract = Contract::new(name);
        Self { contract, routes: Vec::new(), decoders: Vec::new(), timeout: None, words: Words::default() }
    }

    /// Accepts `T` as a request.
    #[must_use]
    pub fn accepts<T: Payload>(mut self) -> Self
    where
        L: Accepts<T, K>,
    {
        self.contract.accepts.extend(self.words.typed::<T>(&self.contract.name));
        self.take::<T>()
    }

    /// Accepts `T`, the answer to a call, as a message on the listener's own threads.
    #[must_use]
    pub fn returns<T: Payload>(mut self) -> Self
    where
        L: Accepts<T, K>,
    {
        self.contract.returns.extend(self.words.typed::<T>(&self.contract.name));
        self.take::<T>()
    }

    /// Replies with `T`.
    #[must_use]
    pub fn replies<T: Payload>(mut self) -> Self {
        self.contract.replies.extend(self.words.typed::<T>(&self.contract.name));
        self
    }

    /// Takes `T` as a request and answers with the reply that it names.
    #[must_use]
    pub fn answers<T: Request>(self) -> Self
    where
        L: Accepts<T, K>,
    {
        self.accepts::<T>().replies::<T::Reply>()
    }

    /// Allows calls with `T`.
    #[must_use]
    pub fn calls<T: Payload>(mut self) -> Self {
        self.contract.calls.extend(self.words.typed::<T>(&self.contract.name));
        self
    }

    /// Accepts a payload of an `.xsd` contract, written `{namespace}local`, as a request: it comes as a
    /// `Delivery<Element>`.
    #[must_use]
    pub fn accepts_element(mut self, payload: &str) -> Self
    where
        L: Accepts<Element, K>,
    {
        let qname = self.words.named(&self.contract.name, payload);
        self.contract.accepts.extend(qname.clone());
        self.take_element(qname)
    }

    /// Accepts a payload of an `.xsd` contract, or an answer of the core, as a message on the listener's own threads.
    #[must_use]
    pub fn returns_element(mut self, payload: &str) -> Self
    where
        L: Accepts<Element, K>,
    {
        let qname = self.words.named(&self.contract.name, payload);
        self.contract.returns.extend(qname.clone());
        self.take_element(qname)
    }

    /// Replies with a payload of an `.xsd` contract.
    #[must_use]
    pub fn replies_element(mut self, payload: &str) -> Self {
        self.contract.replies.extend(self.words.named(&self.contract.name, payload));
        self
    }

    /// Allows calls with a payload of an `.xsd` contract.
    #[must_use]
    pub fn calls_element(mut self, payload: &str) -> Self {
        self.contract.calls.extend(self.words.named(&self.contract.name, payload));
        self
    }

    /// Accepts faults as messages, rather than passing them on to the caller.
    #[must_use]
    pub fn accepts_faults(mut self) -> Self
    where
        L: Accepts<Fault, K>,
    {
        self.contract.accepts_faults = true;
        self.routes.push(<L as Accepts<Fault, K>>::route());
        self
    }

    /// Names the author of its texts: repair reads the words around payloads by it.
    #[must_use]
    pub fn author(mut self, author: Author) -> Self {
        self.contract.author = author;
        self
    }

    /// Lets processing instructions stand in the payloads that it accepts and replies with. Elsewhere they are refused:
    /// no schema says anything of them, so they would carry text of any form.
    #[must_use]
    pub fn instructions(mut self) -> Self {
        self.contract.instructions = true;
        self
    }

    /// Accepts `<boot>` when the organism starts: the handler of [`Boot`] may run for ever.
    ///
    /// That handler holds no slot and has no timeout, so that the listener handles other messages meanwhile: an actor
    /// whose handler is a future, a blocking listener (its pool has one more thread), a command (one more process).
    /// Only an actor that the handler holds exclusively ([`AtomicResponse`](crate::runtime::AtomicResponse)) handles nothing
    /// until it ends.
    #[must_use]
    pub fn accepts_boot(mut self) -> Self
    where
        L: Accepts<Boot, K>,
    {
        self.contract.accepts.push(boot_qname());
        self.take::<Boot>()
    }

    /// Sets a one-line description for people and models.
    #[must_use]
    pub fn description(mut self, description: impl Into<String>) -> Self {
        self.contract.description = description.into();
        self
    }

    /// Keeps a bounded history of each thread, readable through the delivery.
    #[must_use]
    pub fn context(mut self) -> Self {
        self.contract.context = true;
        self
    }

    /// Sets the consequence of a thread's end without an answer.
    #[must_use]
    pub fn silence(mut self, silence: Silence) -> Self {
        self.contract.silence = silence;
        self
    }

    /// Sets the routing of payloads that name no target.
    #[must_use]
    pub fn routing(mut self, routing: Routing) -> Self {
        self.contract.routing = routing;
        self
    }

    /// Sets the most that each thread of the listener may use, with the threads below it. What is left of the budgets above
    /// it bounds it, too.
    #[must_use]
    pub fn budget(mut self, budget: Budget) -> Self {
        self.contract.budget = budget;
        self
    }

    /// Sets the time limit of a handler, without the time in which it awaits answers.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(Some(timeout));
        self
    }

    /// Lets handlers run for ever.
    #[must_use]
    pub fn no_timeout(mut self) -> Self {
        self.timeout = Some(None);
        self
    }

    /// Sets the handling of a message whose handler had not ended before a restart of a durable organism: by default it
    /// runs again and must make the same calls.
    #[must_use]
    pub fn on_restart(mut self, on_restart: OnRestart) -> Self {
        self.contract.on_restart = on_restart;
        self
    }

    /// Sets the number of concurrency slots (64); the handler of [`Boot`] needs none.
    #[must_use]
    pub fn concurrency(mut self, concurrency: u32) -> Self {
        self.contract.concurrency = concurrency;
        self
    }

    /// Declares that the listener has no shared state: each shard gets an instance, which saves the hop between shards.
    #[must_use]
    pub fn stateless(mut self) -> Self {
        self.contract.stateless = true;
        self
    }

    /// Accepts `T` as a request, by a route that depends on more than the types.
    pub(crate) fn accepts_by<T: Payload>(mut self, route: K::Route) -> Self {
        let payload = self.words.typed::<T>(&self.contract.name);
        if let Some(payload) = payload.clone().filter(|payload| self.contract.accepts.contains(payload)) {
            self.words.refusals.push(StartRefusal::Functions { party: self.contract.name.clone(), payload });
            return self;
        }
        self.contract.accepts.extend(payload);
        self.decoders.push((T::qname(), decoder::<T>()));
        self.routes.push(route);
        self
    }

    fn take<T: Payload>(mut self) -> Self
    where
        L: Accepts<T, K>,
    {
        self.decoders.push((T::qname(), decoder::<T>()));
        self.routes.push(<L as Accepts<T, K>>::route());
        self
    }

    fn take_element(mut self, qname: Option<QName>) -> Self
    where
        L: Accepts<Element, K>,
    {
        self.decoders.extend(qname.map(|qname| (qname, undecoded())));
        self.routes.push(<L as Accepts<Element, K>>::route());
        self
    }
}

/// Decodes a payload to itself.
pub(crate) fn undecoded() -> DecodeFn {
    std::sync::Arc::new(|payload| Ok(Box::new(payload.value().clone())))
}

/// The contracts that accept each payload.
pub(crate) struct Acceptors<'a>(HashMap<&'a QName, Vec<&'a Contract>>);

impl<'a> Acceptors<'a> {
    pub(crate) fn of(contracts: &'a [Contract]) -> Self {
        let mut acceptors: HashMap<&QName, Vec<&Contract>> = HashMap::new();
        for contract in contracts {
            contract.accepts.iter().for_each(|payload| acceptors.entry(payload).or_default().push(contract));
        }
        Self(acceptors)
    }

    /// Returns whether a contract accepts the payload.
    #[cfg(feature = "yaml")]
    pub(crate) fn accept(&self, payload: &QName) -> bool {
        self.0.contains_key(payload)
    }

    /// The replies of those that accept the calls, each once, with the index of the first call that it answers.
    pub(crate) fn replies<'c>(&self, calls: impl Iterator<Item = &'c QName>) -> Vec<(usize, &'a QName)> {
        let (mut asked, mut seen, mut replies) = (HashSet::new(), HashSet::new(), Vec::new());
        for (index, call) in calls.enumerate() {
            for contract in self.0.get(call).into_iter().flatten().filter(|contract| asked.insert(&contract.name)) {
                let new = contract.replies.iter().filter(|reply| seen.insert(*reply));
                replies.extend(new.map(|reply| (index, reply)));
            }
        }
        replies
    }

    /// The payloads that may come back for calls: the replies, and `fan-out-ended`.
    pub(crate) fn answers(&self, calls: &[QName]) -> Vec<QName> {
        let mut answers: Vec<QName> = self.replies(calls.iter()).into_iter().map(|(_, reply)| reply.clone()).collect();
        let ended = fan_out_ended_qname();
        if !calls.is_empty() && !answers.contains(&ended) {
            answers.push(ended);
        }
        answers
    }
}

/// Builder of a client: the payloads that it may send.
pub struct ClientBuilder {
    pub(crate) client: ClientContract,
    pub(crate) words: Words,
}

impl ClientBuilder {
    pub(crate) fn new(name: Name) -> Self {
        Self { client: ClientContract::new(name), words: Words::default() }
    }

    /// Allows calls with `T`.
    #[must_use]
    pub fn calls<T: Payload>(mut self) -> Self {
        self.client.calls.extend(self.words.typed::<T>(&self.client.name));
        self
    }

    /// Allows calls with a payload of an `.xsd` contract, written `{namespace}local`.
    #[must_use]
    pub fn calls_element(mut self, payload: &str) -> Self {
        self.client.calls.extend(self.words.named(&self.client.name, payload));
        self
    }

    /// Sets the most that each conversation of the client may use, if that is less than those of the organism may.
    #[must_use]
    pub fn budget(mut self, budget: Budget) -> Self {
        self.client.budget = budget;
        self
    }

    /// Grants the permissions of an admin.
    #[must_use]
    pub fn admin(mut self) -> Self {
        self.client.admin = true;
        self
    }
}

impl Words {
    pub(crate) fn append(&mut self, mut more: Self) {
        self.schemas.append(&mut more.schemas);
        self.refusals.append(&mut more.refusals);
    }

    fn typed<T: Payload>(&mut self, name: &Name) -> Option<QName> {
        if matches!(T::NAMESPACE, ns::CORE | ns::META) {
            // The pump knows its own payloads.
            return Some(T::qname());
        }
        match PayloadSchema::of::<T>() {
            Ok(schema) => {
                self.schemas.push(schema);
                Some(T::qname())
            }
            Err(error) => {
                let payload = std::any::type_name::<T>().to_owned();
                self.refusals.push(StartRefusal::Contract { party: Some(name.clone()), payload, error });
                None
            }
        }
    }

    fn named(&mut self, name: &Name, payload: &str) -> Option<QName> {
        let error = match payload.parse() {
            Ok(qname) => return Some(qname),
            Err(error) => error,
        };
        self.refusals.push(StartRefusal::Payload { party: name.clone(), text: payload.to_owned(), error });
        None
    }
}
