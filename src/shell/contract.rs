use std::time::Duration;

use systole_core::core::{Client, Contract, Routing, Silence};
use systole_core::protocol::{Boot, boot_qname, fan_out_ended_qname};
use systole_core::vocab::{Fault, Name, QName, ns};
use systole_xml::ladder::Element;
use systole_xml::schema::{DecodeFn, Payload, PayloadSchema, decoder};

use super::accepts::{Accepts, Kind};
use super::start::Refusal;

/// Says what a listener of type `L` promises and may do. What it doesn't list is refused.
pub struct ContractBuilder<L, K: Kind<L>> {
    pub(super) contract: Contract,
    pub(super) routes: Vec<K::Route>,
    pub(super) decoders: Vec<(QName, DecodeFn)>,
    pub(super) timeout: Option<Option<Duration>>,
    pub(super) words: Words,
}

/// The payloads that a contract mentions: their schemas, and what is wrong with them.
#[derive(Default)]
pub(super) struct Words {
    pub(super) schemas: Vec<PayloadSchema>,
    pub(super) refusals: Vec<Refusal>,
}

impl<L, K: Kind<L>> ContractBuilder<L, K> {
    pub(super) fn new(name: Name) -> Self {
        let contract = Contract::new(name);
        Self { contract, routes: Vec::new(), decoders: Vec::new(), timeout: None, words: Words::default() }
    }

    /// Takes `T` as a request.
    #[must_use]
    pub fn accepts<T: Payload>(mut self) -> Self
    where
        L: Accepts<T, K>,
    {
        self.contract.accepts.extend(self.words.typed::<T>(&self.contract.name));
        self.take::<T>()
    }

    /// Takes `T`, the answer to a call, as a message on its own threads.
    #[must_use]
    pub fn returns<T: Payload>(mut self) -> Self
    where
        L: Accepts<T, K>,
    {
        self.contract.returns.extend(self.words.typed::<T>(&self.contract.name));
        self.take::<T>()
    }

    /// Answers with `T`.
    #[must_use]
    pub fn replies<T: Payload>(mut self) -> Self {
        self.contract.replies.extend(self.words.typed::<T>(&self.contract.name));
        self
    }

    /// May send `T` as a request.
    #[must_use]
    pub fn calls<T: Payload>(mut self) -> Self {
        self.contract.calls.extend(self.words.typed::<T>(&self.contract.name));
        self
    }

    /// Takes a payload of an `.xsd` contract, written `{namespace}local`, as a request: it comes as
    /// a `Delivery<Element>`.
    #[must_use]
    pub fn accepts_element(mut self, payload: &str) -> Self
    where
        L: Accepts<Element, K>,
    {
        let qname = self.words.named(&self.contract.name, payload);
        self.contract.accepts.extend(qname.clone());
        self.take_element(qname)
    }

    /// Takes a payload of an `.xsd` contract, or an answer of the core, as a message on its own
    /// threads.
    #[must_use]
    pub fn returns_element(mut self, payload: &str) -> Self
    where
        L: Accepts<Element, K>,
    {
        let qname = self.words.named(&self.contract.name, payload);
        self.contract.returns.extend(qname.clone());
        self.take_element(qname)
    }

    /// Answers with a payload of an `.xsd` contract.
    #[must_use]
    pub fn replies_element(mut self, payload: &str) -> Self {
        self.contract.replies.extend(self.words.named(&self.contract.name, payload));
        self
    }

    /// May send a payload of an `.xsd` contract.
    #[must_use]
    pub fn calls_element(mut self, payload: &str) -> Self {
        self.contract.calls.extend(self.words.named(&self.contract.name, payload));
        self
    }

    /// Takes faults as messages, rather than passing them on to whoever called.
    #[must_use]
    pub fn accepts_faults(mut self) -> Self
    where
        L: Accepts<Fault, K>,
    {
        self.contract.accepts_faults = true;
        self.routes.push(<L as Accepts<Fault, K>>::route());
        self
    }

    /// Wakes up when the organism starts: its handler of [`Boot`] may run for ever.
    ///
    /// That handler holds no slot and has no timeout, so that the listener takes other messages
    /// meanwhile: an actor whose handler is a future, a blocking listener (its pool has a thread
    /// more), a command (its process is one more). Only an actor that it holds exclusively
    /// ([`AtomicResponse`](super::AtomicResponse)) is deaf until it ends.
    #[must_use]
    pub fn accepts_boot(mut self) -> Self
    where
        L: Accepts<Boot, K>,
    {
        self.contract.accepts.push(boot_qname());
        self.take::<Boot>()
    }

    /// One line for people and models.
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

    /// What it means when a thread ends without an answer.
    #[must_use]
    pub fn silence(mut self, silence: Silence) -> Self {
        self.contract.silence = silence;
        self
    }

    /// How payloads that name no target find it.
    #[must_use]
    pub fn routing(mut self, routing: Routing) -> Self {
        self.contract.routing = routing;
        self
    }

    /// How long a handler may run, not counting the time that it awaits answers.
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

    /// How many handlers may run at once (64); that of [`Boot`] doesn't count.
    #[must_use]
    pub fn concurrency(mut self, concurrency: u32) -> Self {
        self.contract.concurrency = concurrency;
        self
    }

    /// Has no state worth sharing: each shard gets an instance, which saves the hop between cores.
    #[must_use]
    pub fn stateless(mut self) -> Self {
        self.contract.stateless = true;
        self
    }

    /// Takes `T` as a request, by a way that isn't found by its type alone.
    pub(super) fn accepts_by<T: Payload>(mut self, route: K::Route) -> Self {
        let payload = self.words.typed::<T>(&self.contract.name);
        if let Some(payload) = payload.clone().filter(|payload| self.contract.accepts.contains(payload)) {
            self.words.refusals.push(Refusal::Functions { party: self.contract.name.clone(), payload });
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

/// Leaves a payload as it is.
pub(super) fn undecoded() -> DecodeFn {
    std::sync::Arc::new(|payload| Ok(Box::new(payload.value().clone())))
}

/// Whatever may come back for calls: the replies of all who accept them, and the word that no further answer comes.
pub(crate) fn answers(calls: &[QName], contracts: &[Contract]) -> Vec<QName> {
    let mut answers: Vec<QName> = Vec::new();
    let mut add = |payload: &QName| {
        if !answers.contains(payload) {
            answers.push(payload.clone());
        }
    };
    for call in calls {
        let acceptors = contracts.iter().filter(|contract| contract.accepts.contains(call));
        acceptors.flat_map(|contract| &contract.replies).for_each(&mut add);
    }
    if !calls.is_empty() {
        add(&fan_out_ended_qname());
    }
    answers
}

/// Says what a client may send.
pub struct ClientBuilder {
    pub(super) client: Client,
    pub(super) words: Words,
}

impl ClientBuilder {
    pub(super) fn new(name: Name) -> Self {
        Self { client: Client { name, calls: Vec::new(), admin: false }, words: Words::default() }
    }

    /// May send `T`.
    #[must_use]
    pub fn calls<T: Payload>(mut self) -> Self {
        self.client.calls.extend(self.words.typed::<T>(&self.client.name));
        self
    }

    /// May send a payload of an `.xsd` contract, written `{namespace}local`.
    #[must_use]
    pub fn calls_element(mut self, payload: &str) -> Self {
        self.client.calls.extend(self.words.named(&self.client.name, payload));
        self
    }

    /// Is granted what needs an operator.
    #[must_use]
    pub fn admin(mut self) -> Self {
        self.client.admin = true;
        self
    }
}

impl Words {
    pub(super) fn append(&mut self, mut more: Self) {
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
                self.refusals.push(Refusal::Contract { party: Some(name.clone()), payload, error });
                None
            }
        }
    }

    fn named(&mut self, name: &Name, payload: &str) -> Option<QName> {
        let error = match payload.parse() {
            Ok(qname) => return Some(qname),
            Err(error) => error,
        };
        self.refusals.push(Refusal::Payload { party: name.clone(), text: payload.to_owned(), error });
        None
    }
}
