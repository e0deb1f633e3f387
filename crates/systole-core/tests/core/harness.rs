//! A world around one core or several: a clock that the test turns, links between shards,
//! handlers that are closures, and the books of what came out.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use systole_core::core::*;
use systole_core::vocab::{Fault, IdKey, MessageId, Name, Partition, Partitions, QName, ThreadId, Time, ns};
use systole_xml::ladder::Raw;
use systole_xml::schema::Decoded;
use uuid::Uuid;

use super::payloads::{catalog, qnames, short, xml};

/// An organism that is going to be built.
pub(crate) struct Setup {
    pub(crate) listeners: Vec<Contract>,
    pub(crate) clients: Vec<ClientContract>,
    pub(crate) blueprint: fn(&mut Blueprint),
    pub(crate) shards: u16,
    pub(crate) events: bool,
    pub(crate) gauge: (usize, usize),
}

/// The reaction of a closure to a message.
pub(crate) enum Act {
    End(HandlerOutcome),
    /// The handler goes on, as the test directs.
    Hold,
}

type Script = Box<dyn FnMut(&Message) -> Act>;

/// A handler that has been started and has not ended.
#[derive(Debug)]
pub(crate) struct Running {
    pub(crate) invocation: Invocation,
    pub(crate) listener: String,
    pub(crate) message: Message,
}

/// The requests of a core to its handlers, in order.
#[derive(Debug, Clone)]
pub(crate) enum Seen {
    Started(Invocation, ThreadId, String),
    /// A resumption, with the call that is decided and its result as text.
    Resumed(Invocation, u32, String),
    Aborted(Invocation),
}

/// A handler of one of the shards.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Invocation {
    pub(crate) shard: usize,
    pub(crate) id: InvocationId,
}

pub(crate) struct World {
    pub(crate) cores: Vec<Core>,
    pub(crate) blueprint: Arc<Blueprint>,
    pub(crate) gauge: Gauge,
    /// The exit of all clients.
    pub(crate) exit: Exit,
    pub(crate) directory: Directory,
    /// The clients that opened the conversations.
    clients: HashMap<ThreadId, ClientId>,
    pub(crate) now: Time,
    scripts: HashMap<String, Script>,
    /// Listeners whose handlers ignore an abort.
    pub(crate) blocking: HashSet<String>,
    /// Messages between shards, in order.
    pub(crate) links: VecDeque<(usize, CoreMessage)>,
    /// True if the messages stay on the links until the test carries them.
    pub(crate) slow_links: bool,
    pub(crate) running: Vec<Running>,
    /// Every message that a handler was started with, in order: `listener <- from: payload`.
    pub(crate) started: Vec<String>,
    pub(crate) resumed: VecDeque<(Invocation, CallId, Result<Vec<Settled>, Fault>)>,
    pub(crate) aborted: Vec<Invocation>,
    pub(crate) log: Vec<Seen>,
    pub(crate) egress: Vec<Egress>,
    pub(crate) closed: Vec<ThreadId>,
    /// Conversations that were left or given up, and are not open.
    pub(crate) gone: Vec<ThreadId>,
    /// The outcomes of acts of operators.
    pub(crate) operated: Vec<Result<(), OperationError>>,
    /// The results of reservations.
    pub(crate) reserved: Vec<Result<(), Box<Short>>>,
    pub(crate) noted: usize,
    /// The drafts that are over, and how many answers had left before.
    pub(crate) drafts: Vec<(DraftEnd, usize)>,
    discarded: u64,
    pub(crate) events: Vec<Event>,
    roots: u128,
    /// Every message that a handler or a client got.
    ids: HashSet<MessageId>,
    /// True if everything must have ended when the world ends.
    pub(crate) strict: bool,
}

pub(crate) fn listener(name: &str, change: impl FnOnce(&mut Contract)) -> Contract {
    let mut contract = Contract::new(Name::parse(name).unwrap());
    change(&mut contract);
    contract
}

/// A contract that accepts and replies.
pub(crate) fn server(name: &str, accepts: &[&str], replies: &[&str]) -> Contract {
    listener(name, |contract| {
        contract.accepts = qnames(accepts);
        contract.replies = qnames(replies);
    })
}

pub(crate) fn client(name: &str, calls: &[&str]) -> ClientContract {
    ClientContract::new(Name::parse(name).unwrap()).calls(qnames(calls))
}

impl Setup {
    pub(crate) fn new(listeners: Vec<Contract>) -> Self {
        let every = ["ask", "ping", "job", "tick", "note"];
        Self {
            listeners,
            clients: vec![client("alice", &every), client("bob", &every)],
            blueprint: |_| {},
            shards: 1,
            events: true,
            gauge: (100_000, 1 << 30),
        }
    }

    pub(crate) fn build(self) -> World {
        let change = self.blueprint;
        self.build_with(change)
    }

    pub(crate) fn build_with(self, change: impl FnOnce(&mut Blueprint)) -> World {
        let mut blueprint = Blueprint::new("test", self.listeners, self.clients);
        // Tests play the same calls and answers again and again: those of loops set these.
        (blueprint.limits.turns, blueprint.limits.repeats) = (u32::MAX, u32::MAX);
        change(&mut blueprint);
        let blueprint = Arc::new(blueprint);
        let (gauge, directory) = (Gauge::new(self.gauge.0, self.gauge.1), Directory::default());
        let now: Time = "2030-01-01T00:00:00Z".parse().unwrap();
        let decoders = Arc::new(decoders(&blueprint));
        let catalog = catalog();
        let core = |shard| {
            Core::new(CoreConfig {
                core: CoreId(shard),
                cores: self.shards,
                partitions: Partitions::share(shard.into(), self.shards.into()),
                blueprint: blueprint.clone(),
                catalog: catalog.clone(),
                decoders: decoders.clone(),
                key: IdKey::new([7; 32]),
                gauge: gauge.clone(),
                directory: directory.clone(),
                events: self.events,
                started: now,
                epoch: None,
            })
        };
        World {
            cores: (0..self.shards).map(core).collect(),
            blueprint,
            gauge,
            exit: Exit::new(1 << 20, 1 << 30),
            directory,
            clients: HashMap::new(),
            now,
            scripts: HashMap::new(),
            blocking: HashSet::new(),
            links: VecDeque::new(),
            slow_links: false,
            running: Vec::new(),
            started: Vec::new(),
            resumed: VecDeque::new(),
            aborted: Vec::new(),
            log: Vec::new(),
            egress: Vec::new(),
            closed: Vec::new(),
            gone: Vec::new(),
            operated: Vec::new(),
            reserved: Vec::new(),
            noted: 0,
            drafts: Vec::new(),
            discarded: 0,
            events: Vec::new(),
            roots: 0,
            ids: HashSet::new(),
            strict: true,
        }
    }
}

/// Every listener gets its payloads as they are.
pub(crate) fn decoders(blueprint: &Blueprint) -> Decoders {
    let mut decoders = Decoders::default();
    for (id, contract) in blueprint.all_listeners() {
        for payload in contract.accepts.iter().chain(&contract.returns) {
            let decode =
                |payload: &systole_xml::schema::Validated<_>| Ok(Box::new(payload.payload().clone()) as Decoded);
            decoders.insert(id, payload.clone(), Arc::new(decode));
        }
    }
    decoders
}

/// An envelope that a client writes.
#[derive(Clone)]
pub(crate) struct Letter {
    pub(crate) from: String,
    pub(crate) to: Option<String>,
    pub(crate) thread: Option<String>,
    pub(crate) label: Option<String>,
    pub(crate) deadline: Option<Time>,
    pub(crate) budget: Option<String>,
    pub(crate) payload: String,
    pub(crate) last: bool,
    pub(crate) remote: bool,
    pub(crate) shard: usize,
}

pub(crate) fn letter(local: &str, n: i64) -> Letter {
    letter_xml(&xml(local, n))
}

pub(crate) fn letter_xml(payload: &str) -> Letter {
    Letter {
        from: "somebody".into(),
        to: None,
        thread: None,
        label: None,
        deadline: None,
        budget: None,
        payload: payload.into(),
        last: false,
        remote: false,
        shard: 0,
    }
}

impl Letter {
    pub(crate) fn label(self, label: &str) -> Self {
        Self { label: Some(label.into()), ..self }
    }

    pub(crate) fn to(self, name: &str) -> Self {
        Self { to: Some(name.into()), ..self }
    }

    pub(crate) fn thread(self, id: ThreadId) -> Self {
        Self { thread: Some(id.to_string()), ..self }
    }

    pub(crate) fn deadline(self, at: Time) -> Self {
        Self { deadline: Some(at), ..self }
    }

    pub(crate) fn budget(self, budget: &str) -> Self {
        Self { budget: Some(budget.into()), ..self }
    }

    pub(crate) fn at(self, shard: usize) -> Self {
        Self { shard, ..self }
    }

    pub(crate) fn bytes(&self) -> String {
        let element = |name: &str, text: &Option<String>| {
            text.as_ref().map_or_else(String::new, |text| format!("<{name}>{text}</{name}>"))
        };
        let deadline = self.deadline.map(|deadline| deadline.to_string());
        format!(
            "<message xmlns=\"{}\" xmlns:s=\"{}\"><meta><from>{}</from>{}{}{}{}{}</meta>{}</message>",
            ns::ENVELOPE,
            ns::SYSTOLE_META,
            self.from,
            element("to", &self.to),
            element("thread", &self.thread),
            element("s:id", &self.label),
            element("s:deadline", &deadline),
            element("s:budget", &self.budget),
            self.payload
        )
    }
}

impl World {
    /// Sets the reactions of the handlers of a listener.
    pub(crate) fn script(&mut self, listener: &str, script: impl FnMut(&Message) -> Act + 'static) {
        assert!(self.blueprint.party(listener).is_some(), "there is no {listener}");
        self.scripts.insert(listener.into(), Box::new(script));
    }

    /// The handlers of a listener end with these emissions, computed from the message.
    pub(crate) fn emits(&mut self, listener: &str, mut emissions: impl FnMut(&Message) -> Vec<Emission> + 'static) {
        self.script(listener, move |message| Act::End(HandlerOutcome::Emitted(emissions(message))));
    }

    pub(crate) fn listener_id(&self, name: &str) -> ListenerId {
        let found = self.blueprint.listeners().find(|(_, contract)| contract.name.as_str() == name);
        found.unwrap_or_else(|| panic!("there is no {name}")).0
    }

    pub(crate) fn client_id(&self, name: &str) -> ClientId {
        self.blueprint.clients().find(|(_, client)| client.name.as_str() == name).unwrap().0
    }

    /// A root id that no entrance gave before, of a conversation of the first shard.
    pub(crate) fn fresh_root(&mut self) -> ThreadId {
        self.fresh_root_at(0)
    }

    /// A root id that no entrance gave before, of a conversation of that shard.
    pub(crate) fn fresh_root_at(&mut self, shard: usize) -> ThreadId {
        self.roots += 1;
        let id = ThreadId::from_uuid(Uuid::from_u128((0xabc_0000 + self.roots) << 8));
        Partition(shard as u8).place(id)
    }

    /// Puts a letter of a client on the entrance queue; the id is that of the conversation that it opens.
    pub(crate) fn post(&mut self, client: &str, letter: Letter) -> ThreadId {
        let bytes = letter.bytes();
        self.post_bytes(client, bytes, &letter)
    }

    pub(crate) fn post_bytes(&mut self, client: &str, bytes: String, like: &Letter) -> ThreadId {
        let permit = self.gauge.admit(bytes.len()).expect("the organism is full");
        self.post_with(client, bytes, like, permit)
    }

    pub(crate) fn post_with(&mut self, client: &str, bytes: String, like: &Letter, permit: Permit) -> ThreadId {
        let root = self.fresh_root_at(like.shard);
        let client = self.client_id(client);
        self.clients.insert(root, client);
        let (last, remote) = (like.last, like.remote);
        let place = self.exit.reserve(1);
        assert!(place.is_some(), "the exit is full");
        let injected =
            Injected { client, message: Raw::new(bytes).into(), root, remote, last, attachment: None, permit, place };
        self.handle(like.shard, Input::Injected(injected));
        root
    }

    /// Posts a letter and lets everything run.
    pub(crate) fn send(&mut self, client: &str, letter: Letter) -> ThreadId {
        let root = self.post(client, letter);
        self.run();
        root
    }

    pub(crate) fn handle(&mut self, shard: usize, input: Input) {
        if let Input::Operate { operation: Operation::Discard { letter }, .. } = &input {
            self.discarded += u64::from(self.cores[shard].dead_letters().get(*letter).is_some());
        }
        self.cores[shard].handle(input, self.now);
    }

    /// Tells all shards something, and lets everything run.
    pub(crate) fn tell(&mut self, input: impl Fn() -> Input) {
        for shard in 0..self.cores.len() {
            self.handle(shard, input());
        }
        self.run();
    }

    /// The client that opened a conversation; the first one, if none did.
    pub(crate) fn client_of(&self, root: ThreadId) -> ClientId {
        self.clients.get(&root).copied().unwrap_or(ClientId(0))
    }

    pub(crate) fn left(&self, root: ThreadId) -> Input {
        Input::Left { client: self.client_of(root), root }
    }

    pub(crate) fn cancelled(&self, root: ThreadId) -> Input {
        Input::Cancel { client: self.client_of(root), root }
    }

    pub(crate) fn leave(&mut self, root: ThreadId) {
        let client = self.client_of(root);
        self.tell(|| Input::Left { client, root });
    }

    pub(crate) fn cancel(&mut self, root: ThreadId) {
        let client = self.client_of(root);
        self.tell(|| Input::Cancel { client, root });
    }

    /// Polls until there is nothing to do.
    pub(crate) fn run(&mut self) {
        loop {
            let mut worked = false;
            for shard in 0..self.cores.len() {
                while self.step(shard) {
                    worked = true;
                }
            }
            if !self.slow_links {
                worked |= self.carry();
            }
            if !worked {
                break;
            }
        }
        self.check_books();
    }

    /// Carries the messages on the links; returns whether there were any.
    pub(crate) fn carry(&mut self) -> bool {
        let messages = std::mem::take(&mut self.links);
        let any = !messages.is_empty();
        for (to, message) in messages {
            self.handle(to, Input::Core(message));
        }
        any
    }

    /// Carries the message that has been on the links longest.
    pub(crate) fn carry_one(&mut self) {
        if let Some((to, message)) = self.links.pop_front() {
            self.handle(to, Input::Core(message));
        }
    }

    /// Takes one output of a shard.
    pub(crate) fn step(&mut self, shard: usize) -> bool {
        let Some(output) = self.cores[shard].poll(self.now) else { return false };
        match output {
            Output::Start(start) => self.start(shard, start),
            Output::Resume { invocation, call, result } => {
                let invocation = Invocation { shard, id: invocation };
                self.log.push(Seen::Resumed(invocation, call.0, describe_result(&result)));
                self.resumed.push_back((invocation, call, result));
            }
            Output::Abort { invocation, .. } => self.abort(Invocation { shard, id: invocation }),
            // A client that reads at once.
            Output::Egress { egress, .. } => self.egress.push(egress),
            Output::Closed { root, .. } => self.closed.push(root),
            Output::Gone { root } => self.gone.push(root),
            Output::Operated { result, .. } => self.operated.push(result),
            Output::NotRedriven { letter, error } => panic!("{letter}: {error}"),
            Output::Core { to, message } => self.links.push_back((usize::from(to.0), message)),
            Output::Event(event) => self.events.push(event),
            Output::Reserved { result, .. } => self.reserved.push(result),
            Output::Noted { .. } => self.noted += 1,
            Output::DraftOver { end, .. } => self.drafts.push((end, self.egress.len())),
            Output::Append { .. } | Output::Taken { .. } => panic!("nobody asked for it"),
        }
        true
    }

    fn start(&mut self, shard: usize, start: Start) {
        let Start { invocation, listener, message } = start;
        let listener = self.blueprint.listener(listener).expect("the core names its own").name.to_string();
        let line = format!("{listener} <- {}: {}", message.from, describe(&message));
        assert!(self.ids.insert(message.id), "'{line}' has the id of another message");
        self.started.push(line.clone());
        let act = self.scripts.get_mut(&listener).map_or(Act::Hold, |script| script(&message));
        let invocation = Invocation { shard, id: invocation };
        match act {
            Act::End(outcome) => {
                self.cores[shard].handle(Input::Finished { invocation: invocation.id, outcome }, self.now)
            }
            Act::Hold => {
                self.log.push(Seen::Started(invocation, message.thread, line));
                self.running.push(Running { invocation, listener, message });
            }
        }
    }

    fn abort(&mut self, invocation: Invocation) {
        self.aborted.push(invocation);
        self.log.push(Seen::Aborted(invocation));
        // It may have ended while the abort was on its way out.
        let Some(running) = self.running.iter().position(|running| running.invocation == invocation) else { return };
        if !self.blocking.contains(&self.running[running].listener) {
            self.running.remove(running);
            self.cores[invocation.shard]
                .handle(Input::Finished { invocation: invocation.id, outcome: HandlerOutcome::Aborted }, self.now);
        }
    }

    /// The only handler of a listener that runs.
    pub(crate) fn invocation(&self, listener: &str) -> Invocation {
        let mut found = self.running.iter().filter(|running| running.listener == listener);
        let invocation = found.next().unwrap_or_else(|| panic!("no handler of {listener} runs"));
        assert!(found.next().is_none(), "several handlers of {listener} run");
        invocation.invocation
    }

    /// The handler of a listener that has a message with this number.
    pub(crate) fn invocation_with(&self, listener: &str, n: i64) -> Invocation {
        let ends = format!(" {n}");
        let mut running = self.running.iter().filter(|running| running.listener == listener);
        let found = running.find(|running| describe(&running.message).ends_with(&ends));
        found.unwrap_or_else(|| panic!("no handler of {listener} has {n}")).invocation
    }

    pub(crate) fn message(&self, invocation: Invocation) -> &Message {
        &self.running.iter().find(|running| running.invocation == invocation).expect("it runs").message
    }

    pub(crate) fn runs(&self, listener: &str) -> usize {
        self.running.iter().filter(|running| running.listener == listener).count()
    }

    /// Ends a handler without running anything.
    pub(crate) fn end(&mut self, invocation: Invocation, outcome: HandlerOutcome) {
        let at = self.running.iter().position(|running| running.invocation == invocation).expect("it runs");
        self.running.remove(at);
        self.handle(invocation.shard, Input::Finished { invocation: invocation.id, outcome });
    }

    pub(crate) fn finish(&mut self, invocation: Invocation, emissions: Vec<Emission>) {
        self.end(invocation, HandlerOutcome::Emitted(emissions));
        self.run();
    }

    pub(crate) fn write(&mut self, invocation: Invocation, text: &str) {
        self.end(invocation, HandlerOutcome::Wrote(Raw::new(text.to_owned())));
        self.run();
    }

    pub(crate) fn fail(&mut self, invocation: Invocation, message: &str) {
        self.end(invocation, HandlerOutcome::Failed(Failure { message: message.into(), fault: None }));
        self.run();
    }

    /// A handler awaits calls and parks.
    pub(crate) fn call(&mut self, invocation: Invocation, call: u32, requests: Vec<Emission>, join: Join) {
        self.handle(
            invocation.shard,
            Input::Called { invocation: invocation.id, call: CallId(call), requests, join, within: None },
        );
        self.handle(invocation.shard, Input::Parked { invocation: invocation.id });
        self.run();
    }

    /// A handler awaits calls for so long at most, and parks.
    pub(crate) fn call_within(
        &mut self,
        invocation: Invocation,
        requests: Vec<Emission>,
        join: Join,
        within: Duration,
    ) {
        let within = Some(within);
        self.handle(
            invocation.shard,
            Input::Called { invocation: invocation.id, call: CallId(0), requests, join, within },
        );
        self.handle(invocation.shard, Input::Parked { invocation: invocation.id });
        self.run();
    }

    /// A handler asks for a thread of `worker`, which answers `ping 0` at once; its id.
    pub(crate) fn spawn_on(&mut self, invocation: Invocation) -> ThreadId {
        self.call(invocation, 10, vec![super::payloads::spawn("ping", 0)], Join::Settled);
        self.finish(self.invocation("worker"), vec![super::payloads::reply("pong", 0)]);
        let (_, _, result) = self.resumed.pop_front().expect("the group is settled");
        let told = result.expect("settled groups never fail").swap_remove(0).outcome.expect("an id");
        super::payloads::spawned_id(told.payload.payload())
    }

    /// The last resumption of a handler: `call: outcome, outcome`.
    pub(crate) fn next_resume(&mut self) -> Option<String> {
        let (_, call, result) = self.resumed.pop_front()?;
        Some(format!("{}: {}", call.0, describe_result(&result)))
    }

    /// Lets time pass, and everything run that comes due on the way.
    pub(crate) fn sleep(&mut self, duration: Duration) {
        let end = self.now.after(duration);
        while let Some(wake) = self.next_wake().filter(|&wake| wake <= end) {
            self.now = self.now.max(wake);
            self.run();
        }
        self.now = end;
        self.run();
    }

    pub(crate) fn next_wake(&self) -> Option<Time> {
        self.cores.iter().filter_map(Core::next_wake).min()
    }

    /// The messages that left since the last call, as `from: payload [label]`; a fault as `from: !code`.
    pub(crate) fn said(&mut self) -> Vec<String> {
        std::mem::take(&mut self.egress).iter().map(describe_egress).collect()
    }

    pub(crate) fn take_started(&mut self) -> Vec<String> {
        std::mem::take(&mut self.started)
    }

    pub(crate) fn is_idle(&self) -> bool {
        self.links.is_empty() && self.cores.iter().all(Core::is_idle)
    }

    /// The open threads of all shards, as paths.
    pub(crate) fn paths(&self) -> Vec<String> {
        self.cores.iter().flat_map(|core| core.snapshot().threads).map(|thread| thread.path.to_string()).collect()
    }

    pub(crate) fn counts(&self) -> Counts {
        let mut sum = Counts::default();
        for counts in self.cores.iter().map(Core::counts) {
            sum.injected += counts.injected;
            sum.emitted += counts.emitted;
            sum.made += counts.made;
            sum.redriven += counts.redriven;
            sum.delivered += counts.delivered;
            sum.faulted += counts.faulted;
            sum.dead += counts.dead;
            sum.cancelled += counts.cancelled;
        }
        sum
    }

    pub(crate) fn dead(&self) -> Vec<String> {
        let letters = self.cores.iter().flat_map(|core| core.dead_letters().iter());
        letters
            .map(|letter| letter.payload.as_ref().map_or_else(|| format!("!{}", letter.reason.code), short))
            .collect()
    }

    /// The number of the last dead letter of a shard.
    pub(crate) fn last_letter(&self, shard: usize) -> DeadLetterId {
        self.cores[shard].dead_letters().iter().last().expect("a dead letter").id
    }

    /// Redrives a dead letter and lets everything run; returns the outcome.
    pub(crate) fn redrive(&mut self, letter: DeadLetterId) -> Result<(), OperationError> {
        let root = self.fresh_root();
        self.handle(
            usize::from(letter.core().0),
            Input::Operate { ticket: 0, operation: Operation::Redrive { letter, root }, act: None },
        );
        self.run();
        self.operated.pop().expect("it is answered")
    }

    /// Checks that no message is lost and none is doubled.
    pub(crate) fn check_books(&self) {
        let counts = self.counts();
        let waiting: u64 = self.cores.iter().map(Core::waiting).sum();
        let came = counts.injected + counts.emitted + counts.made + counts.redriven;
        let went = counts.delivered + counts.faulted + counts.dead + counts.cancelled;
        assert_eq!(came, went + waiting, "{counts:?}, {waiting} waiting");
        let kept = |core: &Core| core.dead_letters().len() as u64 + core.dead_letters().dropped();
        let letters: u64 = self.cores.iter().map(kept).sum();
        assert_eq!(counts.dead, letters + counts.redriven + self.discarded, "{counts:?}, {letters} dead letters");
    }

    /// Checks that only roots are open, and that no thread is once the clients have left.
    pub(crate) fn check_end(&mut self) {
        self.run();
        assert!(self.running.is_empty(), "still running: {:?}", self.running);
        assert!(self.is_idle(), "nothing runs, but the core isn't idle: {:?}", self.paths());
        let open = self.paths();
        assert!(open.iter().all(|path| path == "root"), "idle, but these are open: {open:?}");
        assert_eq!((self.gauge.messages(), self.gauge.bytes()), (0, 0), "the gauge counts what isn't there");
        let exit = (self.exit.answers(), self.exit.bytes());
        assert_eq!(exit, (0, 0), "the exit keeps places for answers that nobody owes");
        let roots: Vec<_> =
            self.cores.iter().flat_map(|core| core.snapshot().threads).map(|thread| thread.id).collect();
        for root in roots {
            self.leave(root);
        }
        assert_eq!(self.paths(), [""; 0], "roots stay open without their clients");
        assert_eq!(self.directory.threads(), 0, "the directory counts threads that are gone");
        assert_eq!(self.next_wake(), None, "a timer is left");
        assert!(self.is_idle());
        self.check_books();
    }
}

impl Drop for World {
    fn drop(&mut self) {
        if self.strict && !std::thread::panicking() {
            self.check_end();
        }
    }
}

/// Describes a message, with its place in a fan-out: `told 7 (0/2, 1 left)`.
pub(crate) fn describe(message: &Message) -> String {
    let body = match &message.body {
        Body::Payload { payload, .. } => short(payload.payload()),
        Body::Fault(fault) => format!("!{}", fault.code),
    };
    match message.join {
        Some(JoinPosition { index, total, remaining }) if total > 1 => {
            format!("{body} ({index}/{total}, {remaining} left)")
        }
        Some(_) | None => body,
    }
}

fn describe_result(result: &Result<Vec<Settled>, Fault>) -> String {
    let one = |settled: &Settled| match &settled.outcome {
        Ok(answer) => format!("{} {}", settled.index, short(answer.payload.payload())),
        Err(fault) => format!("{} !{}", settled.index, fault.code),
    };
    match result {
        Ok(settled) => settled.iter().map(one).collect::<Vec<_>>().join(", "),
        Err(fault) => format!("!{}", fault.code),
    }
}

pub(crate) fn describe_egress(egress: &Egress) -> String {
    let what = match &egress.fault {
        Some(fault) => format!("!{}", fault.code),
        None => short(&egress.payload),
    };
    let label = egress.in_reply_to.as_ref().map_or_else(String::new, |label| format!(" [{label}]"));
    format!("{}: {what}{label}", egress.from)
}

/// Seconds.
pub(crate) fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// The fault in a message.
pub(crate) fn fault_of(message: &Message) -> &Fault {
    match &message.body {
        Body::Fault(fault) => fault,
        Body::Payload { payload, .. } => panic!("no fault but {}", short(payload.payload())),
    }
}

pub(crate) fn meta_qname(local: &str) -> QName {
    QName::new(ns::META, local).unwrap()
}

pub(crate) fn core_qname(local: &str) -> QName {
    QName::new(ns::CORE, local).unwrap()
}

/// The number in the payload of a message; -1 for a fault.
pub(crate) fn number_in(message: &Message) -> i64 {
    match &message.body {
        Body::Payload { payload, .. } => super::payloads::number(payload.payload()),
        Body::Fault(_) => -1,
    }
}

/// A listener `boss` that takes `ask`, calls with `ping` and `job`, and takes their answers.
pub(crate) fn boss(change: impl FnOnce(&mut Contract)) -> Contract {
    listener("boss", |boss| {
        boss.accepts = qnames(&["ask", "tick"]);
        boss.replies = qnames(&["told"]);
        boss.calls = qnames(&["ping", "job"]);
        boss.returns = qnames(&["pong", "done"]);
        change(boss);
    })
}

/// A listener `worker` that takes `ping`.
pub(crate) fn worker(change: impl FnOnce(&mut Contract)) -> Contract {
    listener("worker", |worker| {
        worker.accepts = qnames(&["ping"]);
        worker.replies = qnames(&["pong"]);
        change(worker);
    })
}
