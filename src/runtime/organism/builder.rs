//! The builder of organisms.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;

use actix::{Actor, Context};
use systole_core::core::{
    Blueprint, BlueprintProblem, ClientContract, Contract, Decoders, Failure, ListenerId, MetaFlags, Scheduling,
};
use systole_core::journal::{Journal, Recovered};
use systole_core::vocab::{Budget, Limits, Name, Partition, QName, Sampler};
use systole_xml::schema::{Catalog, DecodeFn, Payload, PayloadSchema};

use super::Organism;
#[cfg(feature = "gateway")]
use super::part::Elsewhere;
use super::part::{Part, Parts};
#[cfg(feature = "gateway")]
use crate::identity::Identity;
use crate::journal::{Claim, Durability, Journaled, LogFull, OpenStore, Retention, Room, Store};
use crate::runtime::handler::contract::{Acceptors, ClientBuilder, ContractBuilder, Words, undecoded};
use crate::runtime::handler::delivery::Delivery;
use crate::runtime::handler::function::{AsFunctions, FunctionAnswer, FunctionRoute, Functions};
use crate::runtime::handler::host::{ActorHost, BlockingHost, RawHost, Routed, Run};
#[cfg(feature = "gateway")]
use crate::runtime::handler::kind::HandlerKind;
use crate::runtime::handler::kind::{ActorRoute, AsActor, AsBlocking, BlockingRoute};
use crate::runtime::handler::raw::RawListener;
use crate::runtime::shard::context::ShardContext;
use crate::runtime::shard::events::{EventRing, Events};
use crate::runtime::shard::host::HostFactory;
use crate::runtime::start::{StartError, StartRefusal};
use crate::runtime::write::appender::Recoverable;
use systole_store::clock::Clock;
use systole_store::entropy::Entropy;
use systole_store::tenure::Tenure;

/// Builder of an organism.
///
/// Nothing fails before [`OrganismBuilder::start`], which reports all mistakes at once.
pub struct OrganismBuilder {
    name: String,
    listeners: Vec<Registration>,
    clients: Vec<ClientContract>,
    limits: Limits,
    budget: Budget,
    scheduling: Scheduling,
    meta: MetaFlags,
    shards: Option<u16>,
    events: Option<Arc<EventRing>>,
    sampler: Option<Sampler>,
    journal: Option<JournalChoice>,
    log_levels: Option<LogLevels>,
    tenure: Option<Tenure>,
    parts: Parts,
    recoverables: Vec<Arc<dyn Recoverable>>,
    #[cfg(feature = "gateway")]
    elsewhere: Vec<Arc<dyn Elsewhere>>,
    #[cfg(feature = "gateway")]
    identity: Option<Arc<Identity>>,
    words: Words,
}

struct Registration {
    contract: Contract,
    decoders: Vec<(QName, DecodeFn)>,
    /// True if the contract leaves the timeout to the limits.
    default_timeout: bool,
    /// Adds the replies to all that it calls to those that its contract takes as messages.
    takes_all: bool,
    host: HostFactory,
}

/// Sets the levels of a program's log, or tells why it can't.
pub(crate) type LogLevels = Arc<dyn Fn(&str) -> Result<(), String> + Send + Sync>;

/// The journal of an organism, before it is opened.
pub(crate) enum JournalChoice {
    /// A store, with all that others read and ask.
    Store(Arc<dyn Store>),
    /// A file, before its retention is known.
    File(Journaled),
    /// A journal of the program's own, which nothing else reads.
    Own(Box<dyn Journal>),
}

impl JournalChoice {
    /// Opens the journal and recovers it.
    pub(crate) fn open(self, organism: &str, entropy: &Entropy) -> Result<Opened, StartError> {
        let store: Arc<dyn Store> = match self {
            Self::Own(mut journal) => {
                let recovered = journal.recover()?;
                return Ok(Opened { journal, recovered, store: None, room: None, full: LogFull::default() });
            }
            Self::Store(store) => store,
            Self::File(journaled) => Arc::new(journaled),
        };
        let secret = entropy.secret();
        let claim = Claim { organism, id: entropy.random() };
        let OpenStore { mut journal, room, full } = store.open(secret, Some(claim))?;
        let recovered = journal.recover()?;
        Ok(Opened { journal, recovered, store: Some(store), room: Some(room), full })
    }
}

/// An opened and recovered journal.
pub(crate) struct Opened {
    pub(crate) journal: Box<dyn Journal>,
    pub(crate) recovered: Recovered,
    /// The store that it is the writing end of.
    pub(crate) store: Option<Arc<dyn Store>>,
    /// Room for the promises to clients, in a store.
    pub(crate) room: Option<Arc<Room>>,
    /// States whether the store takes no new messages for a while.
    pub(crate) full: LogFull,
}

/// A checked organism, ready to start.
pub(crate) struct OrganismSpec {
    pub(crate) blueprint: Blueprint,
    pub(crate) catalog: Arc<Catalog>,
    pub(crate) decoders: Arc<Decoders>,
    pub(crate) hosts: Arc<[HostFactory]>,
    pub(crate) shards: u16,
    /// The number of shards that the program has set, if it has.
    pub(crate) chosen_shards: Option<u16>,
    pub(crate) events: Option<Arc<EventRing>>,
    pub(crate) sampler: Option<Sampler>,
    pub(crate) journal: Option<JournalChoice>,
    pub(crate) parts: Parts,
    pub(crate) recoverables: Vec<Arc<dyn Recoverable>>,
    pub(crate) log_levels: Option<LogLevels>,
    /// The lease of the node that runs the organism, where several may.
    pub(crate) tenure: Option<Tenure>,
    #[cfg(feature = "gateway")]
    pub(crate) elsewhere: Vec<Arc<dyn Elsewhere>>,
    #[cfg(feature = "gateway")]
    pub(crate) identity: Option<Arc<Identity>>,
    pub(crate) warnings: Vec<BlueprintProblem>,
}

impl OrganismSpec {
    /// Returns whether it signs what leaves it.
    pub(super) fn has_identity(&self) -> bool {
        #[cfg(feature = "gateway")]
        let has = self.identity.is_some();
        #[cfg(not(feature = "gateway"))]
        let has = false;
        has
    }
}

impl OrganismBuilder {
    pub(crate) fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            listeners: Vec::new(),
            clients: Vec::new(),
            limits: Limits::default(),
            budget: Budget::NONE,
            scheduling: Scheduling::default(),
            meta: MetaFlags::default(),
            shards: None,
            events: None,
            sampler: None,
            journal: None,
            log_levels: None,
            tenure: None,
            parts: Parts::default(),
            recoverables: Vec::new(),
            #[cfg(feature = "gateway")]
            elsewhere: Vec::new(),
            #[cfg(feature = "gateway")]
            identity: None,
            words: Words::default(),
        }
    }

    /// Registers an actix actor with its name, its factory and its contract.
    ///
    /// The factory makes the actor again after a panic. There is one instance in the organism, unless the contract is
    /// [`stateless`](ContractBuilder::stateless).
    #[must_use]
    pub fn listener<A, F, C>(mut self, name: &str, factory: F, contract: C) -> Self
    where
        A: Actor<Context = Context<A>>,
        F: Fn() -> A + Send + Sync + 'static,
        C: FnOnce(ContractBuilder<A, AsActor>) -> ContractBuilder<A, AsActor>,
    {
        let Some(name) = self.name(name) else { return self };
        let built = contract(ContractBuilder::new(name));
        let factory: Arc<dyn Fn() -> A + Send + Sync> = Arc::new(factory);
        let routes: Arc<[ActorRoute<A>]> = built.routes.into();
        let host = move |shard_context: Rc<ShardContext>, id| {
            let host: Rc<dyn crate::runtime::shard::host::Host> =
                ActorHost::spawn(shard_context, id, factory.clone(), routes.clone());
            host
        };
        self.register(built.contract, built.decoders, built.timeout, built.words, Box::new(host))
    }

    /// Registers an async function as a listener: it accepts the payload that the function takes, and replies with the one
    /// that it returns, which the payload names as its reply.
    ///
    /// ```
    /// use systole::prelude::*;
    ///
    /// # #[derive(Serialize, Deserialize, JsonSchema, Payload)]
    /// # #[payload(namespace = "urn:example:numbers:v1", reply = Sum)]
    /// # struct Add { a: i64, b: i64 }
    /// # #[derive(Serialize, Deserialize, JsonSchema, Payload)]
    /// # #[payload(namespace = "urn:example:numbers:v1")]
    /// # struct Sum { value: i64 }
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let organism = Organism::builder("numbers")
    ///     .on("calculator", async |add: Delivery<Add>| Ok(Sum { value: add.a + add.b }))
    ///     .client("cli", |c| c.calls::<Add>())
    ///     .start()?;
    /// # let sum = block_on(organism.client("cli")?.ask(Add { a: 1, b: 2 }))?;
    /// # assert_eq!(sum.value, 3);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// The function may have a state ([`with_state`](crate::runtime::with_state), [`stateful`](Self::stateful)), and calls listeners by
    /// [`Delivery::thread`](crate::runtime::Delivery::thread) if [`on_with`](Self::on_with) has listed the payloads. As many
    /// messages as the contract's `concurrency` allows run at once, on the thread of one shard.
    #[must_use]
    pub fn on<T, R, F, H>(self, name: &str, function: H) -> Self
    where
        T: Payload,
        R: FunctionAnswer<T>,
        F: Future<Output = Result<R, Failure>> + 'static,
        H: Fn(Delivery<T>) -> F + Send + Sync + 'static,
    {
        self.on_with(name, function, |contract| contract)
    }

    /// Registers an async function as [`on`](Self::on) does, with a contract that adds the payloads that it
    /// [`calls`](ContractBuilder::calls), its concurrency, or further functions for other payloads
    /// ([`on`](ContractBuilder::on)).
    #[must_use]
    pub fn on_with<T, R, F, H, C>(self, name: &str, function: H, contract: C) -> Self
    where
        T: Payload,
        R: FunctionAnswer<T>,
        F: Future<Output = Result<R, Failure>> + 'static,
        H: Fn(Delivery<T>) -> F + Send + Sync + 'static,
        C: FnOnce(ContractBuilder<Functions, AsFunctions>) -> ContractBuilder<Functions, AsFunctions>,
    {
        self.stateful(name, || (), |begun| contract(begun.on(function)))
    }

    /// Registers async functions with a state, which `state` makes where the listener lives, and again after a panic: the
    /// functions need no lock for it. The contract lists them ([`on_state`](ContractBuilder::on_state)). For a state by
    /// value, see [`with_state`](crate::runtime::with_state).
    ///
    /// ```
    /// use std::cell::Cell;
    /// use std::rc::Rc;
    ///
    /// use systole::prelude::*;
    ///
    /// # #[derive(Serialize, Deserialize, JsonSchema, Payload)]
    /// # #[payload(namespace = "urn:example:numbers:v1", reply = Sum)]
    /// # struct Add { value: i64 }
    /// # #[derive(Serialize, Deserialize, JsonSchema, Payload)]
    /// # #[payload(namespace = "urn:example:numbers:v1")]
    /// # struct Sum { value: i64 }
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let add = async |sum: Rc<Cell<i64>>, add: Delivery<Add>| {
    ///     sum.set(sum.get() + add.value);
    ///     Ok(Sum { value: sum.get() })
    /// };
    /// let organism = Organism::builder("numbers")
    ///     .stateful("counter", || Cell::new(40), |c| c.on_state(add))
    ///     .client("cli", |c| c.calls::<Add>())
    ///     .start()?;
    /// assert_eq!(block_on(organism.client("cli")?.ask(Add { value: 2 }))?.value, 42);
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn stateful<S, M, C>(mut self, name: &str, state: M, contract: C) -> Self
    where
        S: 'static,
        M: Fn() -> S + Send + Sync + 'static,
        C: FnOnce(ContractBuilder<Functions<S>, AsFunctions>) -> ContractBuilder<Functions<S>, AsFunctions>,
    {
        let Some(name) = self.name(name) else { return self };
        let built = contract(ContractBuilder::new(name));
        let routes: Arc<[FunctionRoute<S>]> = built.routes.into();
        let host = raw_host(move || Functions::new(routes.clone(), state()), false);
        self.register(built.contract, built.decoders, built.timeout, built.words, host)
    }

    /// Registers a listener that blocks its thread: its handlers run on a pool of their own and
    /// can't await answers.
    #[must_use]
    pub fn blocking_listener<L, F, C>(mut self, name: &str, factory: F, contract: C) -> Self
    where
        L: Send + Sync + 'static,
        F: Fn() -> L + Send + Sync + 'static,
        C: FnOnce(ContractBuilder<L, AsBlocking>) -> ContractBuilder<L, AsBlocking>,
    {
        let Some(name) = self.name(name) else { return self };
        let mut built = contract(ContractBuilder::new(name));
        built.contract.can_park = false;
        let routes: Arc<[BlockingRoute<L>]> = built.routes.into();
        let factory: Arc<dyn Fn() -> Arc<dyn Run> + Send + Sync> =
            Arc::new(move || Arc::new(Routed { listener: factory(), routes: routes.clone() }));
        let host = move |shard_context: Rc<ShardContext>, id| {
            let host: Rc<dyn crate::runtime::shard::host::Host> = BlockingHost::new(shard_context, id, factory.clone());
            host
        };
        self.register(built.contract, built.decoders, built.timeout, built.words, Box::new(host))
    }

    /// Registers a listener that is no actor, with a complete contract. Its schemas come with
    /// [`OrganismBuilder::schemas`].
    #[must_use]
    pub fn raw_listener<L, F>(self, contract: Contract, factory: F) -> Self
    where
        L: RawListener,
        F: Fn() -> L + Send + Sync + 'static,
    {
        self.raw(contract, raw_host(factory, false))
    }

    /// Registers a listener as [`raw_listener`](Self::raw_listener) does, which is made and
    /// [prepares](RawListener::prepare) at the start of the organism, not with its first message.
    #[must_use]
    pub fn raw_listener_at_start<L, F>(self, contract: Contract, factory: F) -> Self
    where
        L: RawListener,
        F: Fn() -> L + Send + Sync + 'static,
    {
        self.raw(contract, raw_host(factory, true))
    }

    fn raw(mut self, contract: Contract, host: HostFactory) -> Self {
        let decoders = contract.accepts.iter().chain(&contract.returns).map(|payload| (payload.clone(), undecoded()));
        let decoders = decoders.collect();
        let (default_timeout, takes_all) = (false, false);
        self.listeners.push(Registration { contract, decoders, default_timeout, takes_all, host });
        self
    }

    /// Registers a listener that is no actor, whose contract begins with these defaults, and which takes the replies of all
    /// that it calls.
    #[cfg(feature = "gateway")]
    pub(crate) fn raw_built<L, K, F, C>(
        mut self,
        name: &str,
        defaults: impl FnOnce(&mut Contract),
        contract: C,
        factory: F,
    ) -> Self
    where
        L: RawListener,
        K: HandlerKind<L>,
        F: Fn() -> L + Send + Sync + 'static,
        C: FnOnce(ContractBuilder<L, K>) -> ContractBuilder<L, K>,
    {
        let Some(name) = self.name(name) else { return self };
        let mut begun = ContractBuilder::new(name);
        defaults(&mut begun.contract);
        begun.timeout = Some(begun.contract.timeout);
        let built = contract(begun);
        self = self.register(built.contract, built.decoders, built.timeout, built.words, raw_host(factory, false));
        self.listeners.iter_mut().next_back().into_iter().for_each(|listener| listener.takes_all = true);
        self
    }

    /// Registers a client: its name, and the payloads that it may send.
    #[must_use]
    pub fn client(mut self, name: &str, client: impl FnOnce(ClientBuilder) -> ClientBuilder) -> Self {
        let Some(name) = self.name(name) else { return self };
        let built = client(ClientBuilder::new(name));
        self.words.append(built.words);
        self.raw_client(built.client)
    }

    /// Registers a client from its description.
    #[must_use]
    pub fn raw_client(mut self, client: ClientContract) -> Self {
        self.clients.push(client);
        self
    }

    /// Gives the organism an identity, which signs what leaves it for clients and remote listeners.
    #[cfg(feature = "gateway")]
    #[must_use]
    pub fn identity(mut self, identity: impl Into<Arc<Identity>>) -> Self {
        self.identity = Some(identity.into());
        self
    }

    /// Adds schemas of payloads that have no Rust type: `.xsd` contracts.
    #[must_use]
    pub fn schemas(mut self, schemas: impl IntoIterator<Item = PayloadSchema>) -> Self {
        self.words.schemas.extend(schemas);
        self
    }

    /// Sets the limits.
    #[must_use]
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Sets the most that each conversation of any client may use, its threads together. Conversations of `<boot>` are
    /// bounded by the budgets of listeners alone.
    ///
    /// ```
    /// use systole::prelude::*;
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let builder = Organism::builder("demo").budget("tokens=20000 cost=0.25 calls=40 time=5min".parse()?);
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn budget(mut self, budget: Budget) -> Self {
        self.budget = budget;
        self
    }

    /// Sets the order of dispatch.
    #[must_use]
    pub fn scheduling(mut self, scheduling: Scheduling) -> Self {
        self.scheduling = scheduling;
        self
    }

    /// Sets the permissions for requests to the core.
    #[must_use]
    pub fn meta(mut self, meta: MetaFlags) -> Self {
        self.meta = meta;
        self
    }

    /// Sets the number of shards, each a thread; at least 1. The default is one for each processor.
    #[must_use]
    pub fn shards(mut self, shards: u16) -> Self {
        self.shards = Some(shards.max(1));
        self
    }

    /// Keeps all durable state in an SQLite file, and starts from the state in that file. A missing file is created.
    /// Without this, an organism lives in memory.
    ///
    /// `docs/journal.md` describes the promise of each durability. To continue after a crash, start the same organism
    /// with the same file.
    #[must_use]
    pub fn durable(mut self, file: impl Into<PathBuf>, durability: Durability) -> Self {
        self.journal = Some(JournalChoice::File(Journaled::new(file).durability(durability)));
        self
    }

    /// Sets how long a [`durable`](Self::durable) organism keeps ended rows for inspection.
    #[must_use]
    pub fn retention(mut self, kept: Retention) -> Self {
        if let Some(JournalChoice::File(journaled)) = &mut self.journal {
            journaled.retention = kept;
        }
        self
    }

    /// Lets operators set the levels of the program's log ([`Act::LogLevel`](crate::operations::Act::LogLevel)): `set` gets
    /// what they wrote, such as `info,systole::gateway=debug`, and tells why it can't be set.
    #[must_use]
    pub fn log_levels(mut self, set: impl Fn(&str) -> Result<(), String> + Send + Sync + 'static) -> Self {
        self.log_levels = Some(Arc::new(set));
        self
    }

    /// Keeps all durable state in a store, and starts from the state in it.
    #[must_use]
    pub fn store(mut self, store: Arc<dyn Store>) -> Self {
        self.journal = Some(JournalChoice::Store(store));
        self
    }

    /// Lets the organism work for as long as its node has that lease: then it breaks down, and no handler begins.
    #[must_use]
    pub fn within(mut self, tenure: Tenure) -> Self {
        self.tenure = Some(tenure);
        self
    }

    /// Keeps all durable state in a journal of the program's own, and starts from the state in that journal.
    #[must_use]
    pub fn journal(mut self, journal: impl Journal + 'static) -> Self {
        self.journal = Some(JournalChoice::Own(Box::new(journal)));
        self
    }

    /// Adds to the part of that type, which is made if there is none.
    pub(crate) fn part<P: Part + Default>(mut self, add: impl FnOnce(&mut P)) -> Self {
        add(self.parts.get_or_default());
        self
    }

    /// Adds a recoverable: a part beside the cores that lives in the journal.
    #[cfg(feature = "gateway")]
    pub(crate) fn recoverable(mut self, recoverable: Arc<dyn Recoverable>) -> Self {
        self.recoverables.push(recoverable);
        self
    }

    /// Adds mailboxes of listeners elsewhere.
    #[cfg(feature = "gateway")]
    pub(crate) fn elsewhere(mut self, mailboxes: Arc<dyn Elsewhere>) -> Self {
        self.elsewhere.push(mailboxes);
        self
    }

    /// Subscribes to all events from the start on. Without a call of this, no events are made.
    pub fn events(&mut self) -> Events {
        self.events.get_or_insert_default().read(Some(0))
    }

    /// Makes events for an exporter of traces, and tells programs that handlers ask their place in the trace.
    #[cfg(feature = "otel")]
    pub(crate) fn traced(mut self, sampler: Sampler) -> Self {
        self.events.get_or_insert_default();
        self.sampler = Some(sampler);
        self
    }

    /// Starts the organism: its threads run, and `<boot>` is on its way.
    ///
    /// # Errors
    /// [`StartError`] with all mistakes.
    pub fn start(self) -> Result<Organism, StartError> {
        Organism::start(self.plan()?, Clock::real(), Entropy::Real)
    }

    pub(crate) fn plan(mut self) -> Result<OrganismSpec, StartError> {
        let catalog = self.catalog();
        self.take_all();
        let (mut contracts, mut hosts, mut decoders) = (Vec::new(), Vec::new(), Decoders::default());
        for (id, registration) in (0..).map(ListenerId).zip(self.listeners) {
            let Registration { mut contract, decoders: own, default_timeout, host, .. } = registration;
            if default_timeout {
                contract.timeout = Some(self.limits.handler_timeout);
            }
            own.into_iter().for_each(|(payload, decode)| decoders.insert(id, payload, decode));
            contracts.push(contract);
            hosts.push(host);
        }
        let mut blueprint = Blueprint::new(self.name, contracts, self.clients);
        blueprint.limits = self.limits;
        blueprint.budget = self.budget;
        blueprint.scheduling = self.scheduling;
        blueprint.meta = self.meta;
        let (mut warnings, errors): (Vec<_>, Vec<_>) =
            blueprint.problems().into_iter().partition(BlueprintProblem::is_warning);
        self.words.refusals.extend(errors.into_iter().map(StartRefusal::Problem));
        // Tasks of jobs and messages of remote listeners don't come from clients.
        if self.recoverables.is_empty() && !self.parts.iter().any(Part::sends) && !blueprint.has_speaker() {
            warnings.push(BlueprintProblem::NoSpeaker);
        }
        let listeners = blueprint.listeners().map(|(_, listener)| listener.name.clone());
        let clients = blueprint.clients().map(|(_, client)| client.name.clone());
        let parties: BTreeSet<_> = listeners.chain(clients).collect();
        self.words.refusals.extend(self.parts.iter().filter_map(|part| part.reserve(parties.clone())));
        if !self.words.refusals.is_empty() {
            return Err(StartError::Refused(each_payload_once(self.words.refusals)));
        }
        let shards = self.shards.unwrap_or_else(|| {
            let processors = std::thread::available_parallelism().map_or(1, usize::from);
            u16::try_from(processors.min(Partition::COUNT)).unwrap_or(u16::MAX)
        });
        Ok(OrganismSpec {
            blueprint,
            catalog: Arc::new(catalog),
            decoders: Arc::new(decoders),
            hosts: hosts.into(),
            chosen_shards: self.shards,
            shards,
            events: self.events,
            sampler: self.sampler,
            journal: self.journal,
            parts: self.parts,
            recoverables: self.recoverables,
            log_levels: self.log_levels,
            tenure: self.tenure,
            #[cfg(feature = "gateway")]
            elsewhere: self.elsewhere,
            #[cfg(feature = "gateway")]
            identity: self.identity,
            warnings,
        })
    }

    fn take_all(&mut self) {
        let contracts: Vec<Contract> = self.listeners.iter().map(|listener| listener.contract.clone()).collect();
        let acceptors = Acceptors::of(&contracts);
        for Registration { contract, decoders, .. } in self.listeners.iter_mut().filter(|listener| listener.takes_all) {
            let mut missing = acceptors.answers(&contract.calls);
            missing.retain(|payload| !contract.returns.contains(payload));
            decoders.extend(missing.iter().map(|payload| (payload.clone(), undecoded())));
            contract.returns.extend(missing);
        }
    }

    fn catalog(&mut self) -> Catalog {
        let mut catalog = Catalog::new();
        for schema in std::mem::take(&mut self.words.schemas) {
            let payload = schema.qname().clone();
            if let Err(error) = catalog.add(schema) {
                self.words.refusals.push(StartRefusal::Contract { party: None, payload: payload.to_string(), error });
            }
        }
        self.listeners.iter().for_each(|listener| listener.contract.let_instructions(&mut catalog));
        catalog
    }

    fn register(
        mut self,
        mut contract: Contract,
        decoders: Vec<(QName, DecodeFn)>,
        timeout: Option<Option<std::time::Duration>>,
        words: Words,
        host: HostFactory,
    ) -> Self {
        if let Some(timeout) = timeout {
            contract.timeout = timeout;
        }
        self.words.append(words);
        let default_timeout = timeout.is_none();
        self.listeners.push(Registration { contract, decoders, default_timeout, takes_all: false, host });
        self
    }

    fn name(&mut self, text: &str) -> Option<Name> {
        match Name::parse(text) {
            Ok(name) => Some(name),
            Err(error) => {
                self.words.refusals.push(StartRefusal::Name { text: text.to_owned(), error });
                None
            }
        }
    }
}

/// Makes the host factory of a listener that is no actor, and is made at the start or with its first message.
fn raw_host<L: RawListener>(listener: impl Fn() -> L + Send + Sync + 'static, at_start: bool) -> HostFactory {
    let factory: Arc<dyn Fn() -> Rc<dyn RawListener> + Send + Sync> = Arc::new(move || Rc::new(listener()));
    Box::new(move |shard_context, id| {
        let host = RawHost::new(shard_context, id, factory.clone());
        if at_start {
            host.prepare();
        }
        host
    })
}

/// Keeps each problem of a payload for the first party that lists it only.
fn each_payload_once(refusals: Vec<StartRefusal>) -> Vec<StartRefusal> {
    let mut told = BTreeSet::new();
    let is_new = |refusal: &StartRefusal| match refusal {
        StartRefusal::Contract { payload, error, .. } => told.insert((payload.clone(), error.to_string())),
        _ => true,
    };
    refusals.into_iter().filter(is_new).collect()
}
