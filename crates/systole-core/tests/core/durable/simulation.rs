//! A random history: the seed decides the events and the places of the crashes.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use systole_core::core::*;
use systole_core::journal::{ActRecord, EgressRecord, Moment, Number, Op, Owner, Recovered, ThreadRecord};
use systole_core::vocab::{Amounts, Budget, IdKey, MessageId, Name, Partition, Partitions, ThreadId, Time, ns};
use systole_xml::ladder::Raw;
use systole_xml::schema::Catalog;
use uuid::Uuid;

use super::client::Clients;
use super::listeners::{Act, Handler, LISTENERS};
use super::random::Random;
use super::serial::Serial;
use super::store::Store;
use super::takeover::Takeovers;
use crate::harness::decoders;
use crate::payloads::{catalog, qname, xml};

thread_local! {
    static CATALOG: Arc<Catalog> = catalog();
}

pub(crate) struct Simulation {
    pub(crate) random: Random,
    show: bool,
    /// True if partitions move all the time, so that messages on their way miss their core.
    is_restless: bool,
    pub(crate) store: Store,
    pub(crate) cores: Vec<Core>,
    /// The exit of the client, which reads at once.
    exit: Exit,
    /// Messages between shards, in order.
    pub(crate) links: VecDeque<(usize, CoreMessage)>,
    /// True if the journal can't be written.
    broken: bool,
    /// Conversations that their client has given up.
    cancelled: HashSet<ThreadId>,
    /// Messages that were read by a client that may read them again: their mark rides on the next step that writes.
    late: HashSet<Number>,
    pub(crate) blueprint: Arc<Blueprint>,
    pub(crate) handlers: Vec<Handler>,
    /// Handlers with a draft whose end was not told.
    drafting: HashSet<(usize, InvocationId)>,
    pub(crate) clients: Clients,
    /// The messages that were started on each thread in this life, and in lives before.
    started: HashMap<ThreadId, Vec<MessageId>>,
    /// The groups that were decided for sure before this life began.
    pub(crate) recorded: HashMap<MessageId, Vec<u32>>,
    pub(crate) now: Time,
    roots: u128,
    pub(crate) crashes: u64,
    /// Inputs by their kinds.
    sent: [u64; KINDS.len()],
    /// The last step of each shard that it knows to be written.
    pub(crate) told: Vec<u64>,
    /// Handlers that may still be greedy.
    greed: u32,
    /// Tokens of requests to models that ended after their threads had closed.
    late_tokens: u64,
    pub(crate) takeovers: Takeovers,
    pub(crate) serial: Serial,
    /// Cores whose conversations don't begin with the newest version yet.
    beginning: Vec<usize>,
}

/// The kinds of inputs that each run of many histories must hold.
pub(crate) const KINDS: [&str; 15] = [
    "core",
    "stray",
    "left",
    "cancel",
    "redrive",
    "discard",
    "drain",
    "unwritable",
    "rest",
    "pause",
    "operator's cancel",
    "fenced",
    "retry",
    "version",
    "forget",
];

/// The place of an input in [`KINDS`].
fn kind(input: &Input) -> Option<usize> {
    Some(match input {
        Input::Core(_) => 0,
        Input::Stray(_) => 1,
        Input::Left { .. } => 2,
        Input::Cancel { .. } => 3,
        Input::Operate { operation: Operation::Redrive { .. }, .. } => 4,
        Input::Operate { operation: Operation::Discard { .. }, .. } => 5,
        Input::ListenerPaused { .. } => 9,
        Input::Operate { operation: Operation::Cancel { .. }, .. } => 10,
        Input::Operate { operation: Operation::Retry { .. }, .. } => 12,
        Input::Drain => 6,
        Input::Unwritable => 7,
        Input::ListenerRests { .. } => 8,
        Input::Fenced => 11,
        Input::Version(_) => 13,
        Input::Forget { .. } => 14,
        _ => return None,
    })
}

/// The record of an operator's act.
fn act_record(act: &str, opened: Option<ThreadId>) -> Option<Box<ActRecord>> {
    Some(Box::new(ActRecord { by: Name::system(), act: act.into(), of: "it".into(), error: None, opened }))
}

impl Simulation {
    pub(crate) fn new(seed: u64, show: bool) -> Self {
        let mut random = Random::new(seed);
        let greed = if random.once_in(3) { 40 } else { 0 };
        let blueprint = Arc::new(blueprint(&mut random, greed > 0));
        let asked_again = blueprint.listeners().filter(|(_, contract)| contract.on_restart == OnRestart::AskAgain);
        let asked_again = asked_again.map(|(_, contract)| contract.name.clone()).collect();
        let now: Time = "2030-01-01T00:00:00Z".parse().expect("a time");
        let mut simulation = Self {
            random,
            show,
            is_restless: seed.is_multiple_of(4),
            store: Store::new(asked_again),
            cores: Vec::new(),
            exit: Exit::new(1 << 20, 1 << 30),
            links: VecDeque::new(),
            broken: false,
            cancelled: HashSet::new(),
            blueprint,
            handlers: Vec::new(),
            drafting: HashSet::new(),
            clients: Clients::default(),
            started: HashMap::new(),
            recorded: HashMap::new(),
            now,
            roots: 0,
            crashes: 0,
            sent: [0; KINDS.len()],
            late: HashSet::new(),
            told: Vec::new(),
            greed,
            late_tokens: 0,
            takeovers: Takeovers::default(),
            serial: Serial::default(),
            beginning: Vec::new(),
        };
        simulation.start_shards();
        simulation
    }

    /// Plays the history to its end; the numbers of crashes in it, of takeovers, and of inputs by [`KINDS`].
    pub(crate) fn play(mut self) -> ([u64; 3], [u64; KINDS.len()]) {
        for _ in 0..8 + self.random.below(46) {
            self.event();
            self.hand_over();
        }
        self.finish();
        self.check();
        ([self.crashes, self.takeovers.count, self.takeovers.meanwhile], self.sent)
    }

    fn event(&mut self) {
        if self.is_restless && self.random.once_in(3) {
            return if self.random.once_in(2) { self.release() } else { self.adopt() };
        }
        match self.random.below(57) {
            0..4 => self.send(),
            4..18 => {
                let shard = self.some_core();
                self.poll(shard);
            }
            18..24 => {
                let steps = 1 + self.random.below(4);
                self.store.write(steps, self.late_tokens);
            }
            24..28 => self.tell(),
            28..35 if !self.handlers.is_empty() => {
                let at = self.random.below(self.handlers.len());
                self.act(at);
            }
            35 | 36 => self.read(),
            37 => self.now = self.now.after(Duration::from_secs(self.random.next() % 4)),
            38 => self.crash(),
            39 if self.random.once_in(3) => self.stop(),
            40..44 => {
                self.carry();
            }
            44 => self.give_up(),
            45 | 46 => _ = self.letter(),
            47 if self.random.once_in(4) => self.unwritable(),
            47 if self.random.once_in(4) => self.everywhere(|| Input::Drain),
            48 | 49 => self.release(),
            50 => self.adopt(),
            51 => self.rest(),
            52 if self.random.once_in(3) => self.cancel_thread(),
            52 => self.pause(),
            53 => self.steal(),
            54 => self.retry(),
            55 => self.change(),
            56 => _ = self.begin(),
            _ => {}
        }
    }

    pub(crate) fn say(&self, what: impl FnOnce() -> String) {
        if self.show {
            println!("{}", what());
        }
    }

    fn fresh_root(&mut self) -> ThreadId {
        self.roots += 1;
        ThreadId::from_uuid(Uuid::from_u128(0xabc_0000 + self.roots))
    }

    /// A conversation that was opened.
    fn some_root(&mut self) -> Option<ThreadId> {
        let mut open: Vec<_> = self.clients.sent.values().map(|sent| sent.root).collect();
        open.sort_unstable();
        (!open.is_empty()).then(|| open[self.random.below(open.len())])
    }

    /// A client sends a message to any shard: it may continue a conversation of another one.
    pub(crate) fn send(&mut self) {
        let root = self.fresh_root();
        let continues = self.some_root().filter(|_| self.random.once_in(2));
        let (label, ticket) = self.clients.send(root, continues);
        let n = self.random.below(3) as i64;
        let payload = xml(&format!("q{}", self.random.below(LISTENERS)), n);
        let thread = continues.map_or_else(String::new, |root| format!("<thread>{root}</thread>"));
        let envelope = format!(
            "<message xmlns=\"{}\" xmlns:s=\"{}\"><meta><from>a</from>{thread}<s:id>{label}</s:id></meta>{payload}</message>",
            ns::ENVELOPE,
            ns::SYSTOLE_META
        );
        self.say(|| format!("send {label}: {payload} in {root}, or {continues:?}"));
        let permit = Gauge::new(1, usize::MAX).admit(0).expect("there is room");
        let last = self.random.once_in(2);
        let shard = self.some_core();
        let message = Injected {
            client: self.client(),
            message: Raw::new(envelope).into(),
            root,
            remote: false,
            last,
            attachment: Some(Attachment { ops: Vec::new(), note: None, ticket }),
            permit,
            place: self.exit.reserve(1),
        };
        self.input(shard, Input::Injected(message));
    }

    /// A client leaves a conversation, or cancels it.
    fn give_up(&mut self) {
        let Some(root) = self.some_root() else { return };
        let client = self.client();
        if self.random.once_in(2) {
            self.say(|| format!("leave {root}"));
            return self.everywhere(|| Input::Left { client, root });
        }
        self.say(|| format!("cancel {root}"));
        self.cancelled.insert(root);
        self.everywhere(|| Input::Cancel { client, root });
    }

    /// An operator redrives or discards a dead letter; `false` if there is none.
    fn letter(&mut self) -> bool {
        let of = |shard: usize| self.cores[shard].dead_letters().iter().map(move |letter| (shard, letter.id));
        let letters: Vec<_> = self.present().into_iter().flat_map(of).collect();
        if letters.is_empty() {
            return false;
        }
        let (shard, letter) = letters[self.random.below(letters.len())];
        let (root, redrive) = (self.fresh_root(), !self.random.once_in(3));
        self.say(|| format!("letter {letter}: redrive {redrive}"));
        self.input(
            shard,
            Input::Operate {
                ticket: 0,
                operation: if redrive { Operation::Redrive { letter, root } } else { Operation::Discard { letter } },
                act: act_record(if redrive { "redrive" } else { "discard" }, None),
            },
        );
        true
    }

    /// A listener rests, or is back.
    fn rest(&mut self) {
        let (listener, rests) = (self.some_listener(), self.random.once_in(2));
        self.say(|| format!("{listener:?} rests: {rests}"));
        self.everywhere(|| Input::ListenerRests { listener, rests });
    }

    /// An operator pauses a listener, or resumes it.
    fn pause(&mut self) {
        let (listener, pause) = (self.some_listener(), self.random.once_in(2));
        self.say(|| format!("{listener:?} paused: {pause}"));
        let name = self.blueprint[listener].name.clone();
        self.store.beside(Op::Paused { listener: name.clone(), since: pause.then_some(self.now) }, self.now);
        let blueprint = self.blueprint.clone();
        for listener in blueprint.named(&name) {
            self.everywhere(|| Input::ListenerPaused { listener, paused: pause });
        }
    }

    /// A listener of any version.
    fn some_listener(&mut self) -> ListenerId {
        let all = self.blueprint.all_listeners().count();
        ListenerId(self.random.below(all) as u32)
    }

    /// The organism changes: the cores learn a version with the same contracts, and its conversations begin in one after the
    /// other.
    fn change(&mut self) {
        while self.begin() {}
        self.forget();
        let before = self.blueprint.clone();
        let listeners = before.listeners().map(|(_, contract)| contract.clone()).collect();
        let clients = before.clients().map(|(_, client)| client.clone()).collect();
        let mut next = Blueprint::new(before.organism.clone(), listeners, clients);
        (next.limits, next.budget) = (before.limits.clone(), before.budget);
        let blueprint = Arc::new(next.after(&before));
        self.say(|| format!("change to {:?}", blueprint.version()));
        let version = OrganismVersion {
            decoders: Arc::new(decoders(&blueprint)),
            catalog: CATALOG.with(Arc::clone),
            blueprint: blueprint.clone(),
        };
        self.blueprint = blueprint;
        self.everywhere(|| Input::Version(Box::new(version.clone())));
        self.beginning = self.present();
    }

    /// Lets the conversations of one more core begin with the newest version; `false` if those of all do.
    pub(crate) fn begin(&mut self) -> bool {
        if self.beginning.is_empty() {
            return false;
        }
        let at = self.random.below(self.beginning.len());
        let core = self.beginning.swap_remove(at);
        if self.present().contains(&core) {
            self.input(core, Input::Begin { version: self.blueprint.version() });
        }
        true
    }

    /// Ends the versions that no conversation keeps.
    fn forget(&mut self) {
        let present = self.blueprint.version();
        if self.cores.iter().all(|core| core.roots_before(present).is_empty()) {
            (0..present.0).map(Version).for_each(|version| self.everywhere(|| Input::Forget { version }));
        }
    }

    /// An operator cancels a thread, or a conversation.
    fn cancel_thread(&mut self) {
        let of = |shard: usize| self.cores[shard].snapshot().threads;
        let threads: Vec<_> = self.present().into_iter().flat_map(of).collect();
        if threads.is_empty() {
            return;
        }
        let OpenThread { root, id: thread, .. } = threads[self.random.below(threads.len())];
        self.say(|| format!("an operator cancels {thread} of {root}"));
        let act = act_record("cancel", None);
        self.everywhere(|| Input::Operate {
            ticket: 0,
            operation: Operation::Cancel { root, thread, why: Cancellation::Operator },
            act: act.clone(),
        });
    }

    /// An operator opens a conversation again as the journal has it now. One with a budget has spent nothing afterwards, which
    /// the check of budgets does not know.
    fn retry(&mut self) {
        let all = self.store.seen();
        let owner = self.blueprint.clients().next().expect("there is one").1.name.clone();
        let is_of_client =
            |thread: &&ThreadRecord| thread.parent.is_none() && thread.owner == Owner::Client(owner.clone());
        let roots: Vec<Number> = all.threads.iter().filter(is_of_client).map(|thread| thread.number).collect();
        if roots.is_empty() {
            return;
        }
        let root = roots[self.random.below(roots.len())];
        let threads: Vec<_> = all.threads.into_iter().filter(|thread| thread.root == root).collect();
        let of_it: HashSet<Number> = threads.iter().map(|thread| thread.number).collect();
        let has_budget = all.budgets.iter().any(|budget| of_it.contains(&budget.thread));
        if has_budget || threads.iter().any(|thread| thread.spawned) {
            return;
        }
        let messages: Vec<_> = all.messages.into_iter().filter(|message| of_it.contains(&message.thread)).collect();
        let waiting: HashSet<Number> = messages.iter().map(|message| message.number).collect();
        let moment = Moment {
            at: self.now,
            owner,
            submitted: true,
            threads,
            budgets: Vec::new(),
            messages,
            fans: all.fans.into_iter().filter(|fan| of_it.contains(&fan.thread)).collect(),
            notes: all.notes.into_iter().filter(|note| waiting.contains(&note.message)).collect(),
            remembered: all.remembered.into_iter().filter(|entry| of_it.contains(&entry.thread)).collect(),
        };
        let again = self.fresh_root();
        self.say(|| format!("an operator retries {root} as {again}: {moment:?}"));
        let operation = || Operation::Retry { moment: Box::new(moment.clone()), root: again };
        let act = act_record("retry", Some(again));
        self.everywhere(|| Input::Operate { ticket: 0, operation: operation(), act: act.clone() });
    }

    fn client(&self) -> ClientId {
        self.blueprint.clients().next().expect("there is one").0
    }

    pub(crate) fn input(&mut self, shard: usize, input: Input) {
        if let Some(kind) = kind(&input) {
            self.sent[kind] += 1;
        }
        self.cores[shard].handle(input, self.now);
    }

    fn everywhere(&mut self, input: impl Fn() -> Input) {
        for shard in self.present() {
            self.input(shard, input());
        }
    }

    /// Carries the message that has been on its way between shards longest; `false` if there is none.
    fn carry(&mut self) -> bool {
        let Some((to, message)) = self.links.pop_front() else { return false };
        match self.takeovers.is_gone(to) {
            true => self.input(0, Input::Stray(message)),
            false => self.input(to, Input::Core(message)),
        }
        true
    }

    /// Lets all shards run until nothing is left to do.
    fn poll_all(&mut self) {
        loop {
            let mut worked = false;
            for shard in self.present() {
                while self.poll(shard) {
                    worked = true;
                }
            }
            while self.carry() {
                worked = true;
            }
            if !worked {
                return;
            }
        }
    }

    /// Checks that no thread and no conversation holds more than it may, regardless of the origin of the messages.
    fn check_holdings(&self) {
        /// More than any message here.
        const MESSAGE: usize = 1000;
        let limits = &self.blueprint.limits;
        for held in self.cores.iter().flat_map(Core::holdings) {
            let threads = limits.conversation_threads;
            assert!(held.threads <= threads, "{held:?} of {limits:?}");
            assert!(held.messages <= limits.conversation_messages + threads, "{held:?} of {limits:?}");
            assert!(held.bytes <= limits.conversation_bytes + MESSAGE + 200 * threads, "{held:?} of {limits:?}");
        }
        for thread in self.cores.iter().flat_map(|core| core.snapshot().threads) {
            assert!(thread.queued <= limits.mailbox + limits.fanout, "{thread:?} of {limits:?}");
        }
    }

    /// Asserts that no budget is exceeded by what is spent and reserved, at any time, and that reserves belong to handlers
    /// that wait for their model.
    fn check_budgets(&self, shard: usize) {
        let budgets = self.cores[shard].budgets();
        let held = self.handlers.iter().filter(|handler| handler.shard == shard && !budgets.is_empty());
        let held: u64 = held.map(|handler| handler.held).sum();
        for OpenBudget { budget, spent, reserved, thread } in budgets {
            assert!(reserved.tokens <= held, "{thread}: {reserved} reserved, and {held} tokens are asked for");
            let used = spent.plus(reserved);
            let fits = budget.tokens.is_none_or(|most| used.tokens <= most)
                && budget.cost.is_none_or(|most| used.cost <= most)
                && budget.calls.is_none_or(|most| used.calls <= most)
                && budget.threads.is_none_or(|most| used.threads <= most);
            assert!(fits, "{thread} has {budget} and uses {spent}, {reserved} reserved");
        }
    }

    /// Takes one output of a shard; `false` if there is none.
    pub(crate) fn poll(&mut self, shard: usize) -> bool {
        if self.greed > 0 {
            self.check_holdings();
        }
        let Some(output) = self.cores[shard].poll(self.now) else { return false };
        self.check_budgets(shard);
        match output {
            Output::Append { number, step } => {
                self.say(|| format!("append {number} of {shard}: {:?}", step.ops));
                if !self.broken {
                    self.store.ask(shard, number, step);
                }
            }
            Output::Start(start) => self.start(shard, start),
            Output::Resume { invocation, call, result } => {
                if let Some(handler) =
                    self.handlers.iter_mut().find(|handler| (handler.shard, handler.invocation) == (shard, invocation))
                {
                    handler.resume(call, &result);
                    let (id, listener, resumed) = (handler.message, handler.listener, handler.resumed.clone());
                    self.serial.goes_on(listener, id, &self.store);
                    self.say(|| format!("resume {id} with {call:?}: {result:?}"));
                    let recorded = self.recorded.get(&id).map_or(&[][..], Vec::as_slice);
                    // A listener that reattaches counts its groups anew.
                    let held = !self
                        .blueprint
                        .listeners()
                        .nth(listener)
                        .is_some_and(|(_, it)| it.on_restart != OnRestart::Replay);
                    let both = if held { resumed.len().min(recorded.len()) } else { 0 };
                    assert_eq!(resumed[..both], recorded[..both], "{id}: the order of what it awaited has changed");
                }
            }
            Output::Abort { invocation, .. } => {
                if let Some(at) =
                    self.handlers.iter().position(|handler| (handler.shard, handler.invocation) == (shard, invocation))
                {
                    self.handlers.remove(at);
                    self.input(shard, Input::Finished { invocation, outcome: HandlerOutcome::Aborted });
                }
            }
            Output::Egress { egress, .. } => {
                self.say(|| format!("egress {}: {:?}", egress.number, egress.envelope));
                // The end of the organism is not in the journal.
                if egress.number != 0 {
                    self.clients.inbox.push(egress);
                }
            }
            Output::Taken { ticket, end } => {
                if end != AttachmentEnd::Dropped {
                    self.clients.confirm(ticket);
                }
            }
            Output::Noted { invocation, .. } => {
                if let Some(handler) =
                    self.handlers.iter_mut().find(|handler| (handler.shard, handler.invocation) == (shard, invocation))
                {
                    handler.noting = false;
                }
            }
            Output::Reserved { invocation, result } => {
                self.say(|| format!("reserved for {invocation:?}: {result:?}"));
                if let Some(handler) =
                    self.handlers.iter_mut().find(|handler| (handler.shard, handler.invocation) == (shard, invocation))
                {
                    handler.reserved(result.is_ok());
                }
            }
            Output::DraftOver { invocation, end } => {
                self.say(|| format!("the draft of {invocation:?} is over: {end:?}"));
                assert!(self.drafting.remove(&(shard, invocation)), "{invocation:?} had no draft, or that was over");
                let runs = |handler: &Handler| (handler.shard, handler.invocation) == (shard, invocation);
                assert!(!self.handlers.iter().any(runs), "{invocation:?} still writes");
            }
            Output::Event(event) => self.say(|| format!("event at {}: {:?}", event.path, event.kind)),
            Output::Core { to, message } => self.links.push_back((usize::from(to.0), message)),
            Output::Closed { .. } | Output::Gone { .. } | Output::Operated { .. } | Output::NotRedriven { .. } => {}
        }
        true
    }

    fn start(&mut self, shard: usize, start: Start) {
        let Start { invocation, listener, message } = start;
        self.takeovers.started();
        self.say(|| format!("start {listener:?}: {} on {}", message.id, message.thread));
        assert!(!self.store.done.contains(&message.id), "{} is done, and starts again", message.id);
        let before = self.started.entry(message.thread).or_default();
        match before.iter().position(|id| *id == message.id) {
            Some(at) => assert_eq!(at + 1, before.len(), "{} comes again after later ones", message.id),
            None => before.push(message.id),
        }
        let on_thread = self.handlers.iter().filter(|handler| handler.thread == message.thread);
        assert_eq!(on_thread.count(), 0, "one message of a thread is in flight");
        let version = Version(listener.0 / LISTENERS as u32);
        let listener = listener.0 as usize % LISTENERS;
        if self.blueprint.listeners().nth(listener).is_some_and(|(_, contract)| contract.concurrency == 1) {
            self.serial.begins((listener, version), shard, message.id, &self.store);
        }
        let greedy = self.greed > 0;
        self.greed = self.greed.saturating_sub(1);
        self.handlers.push(Handler::new((shard, invocation), listener, &message, greedy));
        if self.random.once_in(3) {
            self.drafting.insert((shard, invocation));
            self.input(shard, Input::Drafted { invocation });
        }
    }

    /// Reports the steps that the journal has written, to the cores in any order.
    pub(crate) fn tell(&mut self) {
        self.tell_fenced();
        let mut present = self.present();
        let turn = self.random.below(present.len());
        present.rotate_left(turn);
        for shard in present {
            let number = self.store.written(shard);
            if number > self.told[shard] {
                self.told[shard] = number;
                self.input(shard, Input::Appended { number });
            }
        }
    }

    /// Lets a handler go on; `false` if it waits.
    pub(crate) fn act(&mut self, at: usize) -> bool {
        let fresh = self.random.next() % 1000;
        let handler = &mut self.handlers[at];
        let (shard, invocation) = (handler.shard, handler.invocation);
        match handler.act(fresh) {
            Act::Call { call, requests, join, within } => {
                self.input(shard, Input::Called { invocation, call, requests, join, within });
            }
            Act::Park => {
                self.serial.parks(handler.listener, handler.message);
                self.input(shard, Input::Parked { invocation });
                return false;
            }
            Act::Drop(call) => self.input(shard, Input::CallDropped { invocation, call }),
            Act::Reserve(tokens) => {
                // Written down before the request is sent, and for good if it ends without a word on its use.
                self.late_tokens += tokens;
                let amounts = Amounts { tokens, cost: Millionths(tokens * 3), ..Amounts::default() };
                self.input(shard, Input::Reserve { invocation, amounts, is_last: None });
            }
            Act::Charge(output) => {
                self.late_tokens += output;
                let usage = Usage { output, cost: Millionths(output * 3), ..Usage::default() };
                self.input(shard, Input::Charged { invocation, usage });
            }
            Act::Note { index, name, value: Some(value), tokens } => {
                let thread = handler.thread;
                if !self.cores[shard].snapshot().threads.iter().any(|open| open.id == thread) {
                    self.late_tokens += tokens.unwrap_or(0);
                }
                let answer = tokens.map(|output| {
                    let usage = Usage { output, cost: Millionths(output * 3), ..Usage::default() };
                    Box::new(ModelAnswer {
                        backend: "b".into(),
                        model: "m".into(),
                        usage,
                        took: Duration::ZERO,
                        text: "t".into(),
                        fault: None,
                    })
                });
                self.input(shard, Input::Noted { invocation, index, name: name.into(), value: value.into(), answer });
            }
            Act::Note { value: None, .. } => {}
            Act::Wait => return false,
            Act::End(outcome) => {
                let handler = self.handlers.remove(at);
                self.say(|| format!("end {}: {outcome:?}", handler.message));
                self.input(shard, Input::Finished { invocation, outcome });
            }
        }
        true
    }

    fn read(&mut self) {
        if !self.clients.inbox.is_empty() {
            let at = self.random.below(self.clients.inbox.len());
            // A client can't say that it has read a message while no core serves the conversation.
            let root = self.clients.inbox[at].root;
            let Some(core) = self.takeovers.directory.core_of(Partition::of(root)) else { return };
            let number = self.clients.read(at);
            let at_once = number.is_multiple_of(2);
            if !at_once {
                self.late.insert(number);
            }
            self.input(usize::from(core.0), Input::Read { number, at_once });
        }
    }

    /// The process is killed, and starts again.
    pub(crate) fn crash(&mut self) {
        self.say(|| "crash".to_owned());
        self.crashes += 1;
        self.store.crash();
        self.restart();
    }

    /// The journal can't be written: the organism ends with a fault for each client that waits, and starts again. What
    /// was not written is lost.
    fn unwritable(&mut self) {
        self.say(|| "unwritable".to_owned());
        self.crashes += 1;
        self.store.crash();
        self.broken = true;
        self.everywhere(|| Input::Unwritable);
        self.poll_all();
        let open: Vec<_> = self.cores.iter().flat_map(|core| core.snapshot().threads).collect();
        assert!(open.is_empty(), "the organism has ended, and these are open: {open:?}");
        self.restart();
    }

    /// The organism stops in order, and starts again.
    fn stop(&mut self) {
        self.say(|| "stop".to_owned());
        self.everywhere(|| Input::Stop);
        self.poll_all();
        self.store.write(usize::MAX, self.late_tokens);
        self.store.close();
        self.restart();
    }

    fn restart(&mut self) {
        self.handlers.clear();
        self.drafting.clear();
        self.clients.inbox.clear();
        self.links.clear();
        self.broken = false;
        self.serial.restarts(self.blueprint.version());
        self.beginning.clear();
        self.recorded = self.store.decided.clone();
        self.start_shards();
    }

    /// Starts with one to three shards, which take up what the journal holds.
    fn start_shards(&mut self) {
        let shards = 1 + self.random.below(3) as u16;
        let directory = Directory::default();
        self.takeovers.begin(directory.clone(), &shares(shards));
        let recovered = self.store.recover(&shares(shards));
        let ids: HashMap<_, _> = recovered.threads.iter().map(|thread| (thread.number, thread.id)).collect();
        let kept = recovered.budgets.iter().map(|record| (ids[&record.thread], (record.budget, record.spent)));
        let mut kept: HashMap<_, _> = kept.collect();
        let parts = (0..).zip(shares(shards)).zip(recovered.split(&shares(shards)));
        let start = |((shard, partitions), recovered)| {
            start_shard(&self.blueprint, recovered, (CoreId(shard), shards, partitions), &directory, self.now)
        };
        self.cores = parts.map(start).collect();
        self.told = vec![0; self.cores.len()];
        let open = self.cores.iter().flat_map(Core::budgets);
        let open = open.inspect(|open| assert_eq!(open.reserved, Amounts::default()));
        let open: HashMap<_, _> = open.map(|open| (open.thread, (open.budget, open.spent))).collect();
        // A start cancels the calls of parties that it asks again.
        let threads: HashSet<_> =
            self.cores.iter().flat_map(|core| core.snapshot().threads).map(|open| open.id).collect();
        kept.retain(|thread, _| threads.contains(thread));
        assert_eq!(open, kept, "the budgets that the cores opened, and those of the journal");
    }

    /// Lets everything end.
    pub(crate) fn finish(&mut self) {
        while self.begin() {}
        let all = self.blueprint.all_listeners().count() as u32;
        for listener in (0..all).map(ListenerId) {
            self.everywhere(|| Input::ListenerRests { listener, rests: false });
        }
        let (mut rounds, mut redriven) = (0, 0);
        loop {
            rounds += 1;
            let open: Vec<_> = self.cores.iter().flat_map(|core| core.snapshot().threads).collect();
            assert!(rounds < 2_000, "it does not come to an end: {open:?}");
            // A start takes up what was paused.
            for listener in (0..all).map(ListenerId) {
                self.everywhere(|| Input::ListenerPaused { listener, paused: false });
            }
            self.poll_all();
            self.hand_over();
            while self.takeovers.are_waiting() {
                self.adopt();
            }
            if self.store.is_behind() {
                self.store.write(usize::MAX, self.late_tokens);
                self.tell();
                continue;
            }
            self.tell();
            for _ in 0..self.clients.inbox.len() {
                self.read();
            }
            let acted = (0..self.handlers.len()).rev().filter(|&at| self.act(at)).count();
            self.poll_all();
            let open: Vec<_> = self.cores.iter().flat_map(|core| core.snapshot().threads).collect();
            let is_busy = acted > 0 || self.store.is_behind() || !self.clients.inbox.is_empty();
            if is_busy || !self.takeovers.are_over() {
                continue;
            } else if open.is_empty() {
                assert!(self.cores.iter().all(Core::is_idle), "nothing is open, but a core isn't idle");
                // Most dead letters are made here; those of redriven ones are the last.
                if redriven == 2 || !self.letter() {
                    return;
                }
                redriven += 1;
                self.poll_all();
                if self.random.once_in(2) {
                    let steps = self.random.below(3);
                    self.store.write(steps, self.late_tokens);
                    self.crash();
                }
            } else if let Some(wake) = self.cores.iter().filter_map(Core::next_wake).min() {
                self.now = self.now.max(wake);
            } else {
                panic!("nothing can happen, but these are open: {open:?}");
            }
        }
    }

    /// Checks that every client whose message was confirmed has had one answer, and that nothing is left.
    fn check(&mut self) {
        let everybody_answers = self.blueprint.listeners().all(|(_, contract)| contract.silence == Silence::Error);
        for (label, sent) in &self.clients.sent {
            let answers = self.clients.answers.get(label).map_or(&[][..], Vec::as_slice);
            assert!(answers.len() <= 1, "{label} has {} answers: {answers:?}", answers.len());
            let cancelled =
                [Some(sent.root), sent.continues].iter().flatten().any(|root| self.cancelled.contains(root));
            assert!(
                !sent.confirmed || !everybody_answers || cancelled || answers.len() == 1,
                "{label} was taken, and never answered"
            );
        }
        assert!(self.drafting.is_empty(), "drafts whose end nobody told: {:?}", self.drafting);
        let left = self.store.recover(&[]);
        assert!(left.threads.is_empty(), "{:?}", left.threads);
        assert!(left.budgets.is_empty() && self.cores.iter().all(|core| core.budgets().is_empty()), "{left:?}");
        assert!(left.messages.is_empty() && left.fans.is_empty() && left.notes.is_empty(), "{left:?}");
        let unread = |egress: &EgressRecord| !self.late.contains(&egress.number);
        assert!(!left.egress.iter().any(unread) && left.remembered.is_empty(), "{left:?}");
        for counts in self.cores.iter().map(Core::counts) {
            let came = counts.injected + counts.emitted + counts.made + counts.redriven + counts.recovered;
            let went = counts.delivered + counts.faulted + counts.dead + counts.cancelled;
            assert_eq!(came, went, "{counts:?}");
        }
        let exit = (self.exit.answers(), self.exit.bytes());
        assert_eq!(exit, (0, 0), "the exit keeps places for answers that nobody owes");
    }
}

/// An organism where every listener may call every listener.
fn blueprint(random: &mut Random, greedy: bool) -> Blueprint {
    let all = |letter: char| (0..LISTENERS).map(|i| qname(&format!("{letter}{i}"))).collect::<Vec<_>>();
    let listeners = (0..LISTENERS).map(|i| {
        let mut contract = Contract::new(Name::parse(&format!("l{i}")).expect("a name"));
        contract.accepts = vec![qname(&format!("q{i}"))];
        contract.replies = vec![qname(&format!("a{i}"))];
        contract.calls = all('q');
        contract.returns = all('a');
        contract.returns.extend(["thread-spawned", "capabilities", "fan-out-ended"].map(|local| {
            let namespace = if local == "fan-out-ended" { ns::CORE } else { ns::META };
            qname(&format!("{{{namespace}}}{local}"))
        }));
        contract.accepts_faults = random.once_in(2);
        contract.context = random.once_in(3);
        contract.concurrency = 1 + random.below(3) as u32;
        contract.silence = if random.once_in(10) { Silence::Idle } else { Silence::Error };
        contract.on_restart = match random.below(8) {
            0 | 1 => OnRestart::Reattach,
            2 => OnRestart::AskAgain,
            _ => OnRestart::Replay,
        };
        contract
    });
    let mut listeners: Vec<_> = listeners.collect();
    let mut client = ClientContract::new(Name::parse("alice").expect("a name")).calls(all('q'));
    let mut whole = Budget::NONE;
    if random.once_in(2) {
        (whole, client.budget) = (budget(random, 3), budget(random, 2));
        listeners.iter_mut().for_each(|contract| contract.budget = budget(random, 1));
    }
    let mut blueprint = Blueprint::new("durable", listeners, vec![client]);
    blueprint.budget = whole;
    // A crash may hit any handler that runs: that is the effect of most crashes here.
    blueprint.limits.max_attempts = 200;
    blueprint.limits.thread_depth = 6;
    // A start forgets rounds, so a history with crashes is not refused what one without is.
    (blueprint.limits.turns, blueprint.limits.repeats) = (u32::MAX, u32::MAX);
    if greedy {
        let limits = &mut blueprint.limits;
        (limits.mailbox, limits.fanout) = (2 + random.below(12), 6 + random.below(12));
        limits.conversation_threads = 3 + random.below(30);
        limits.conversation_messages = 2 + random.below(40);
        limits.conversation_bytes = 100 + random.below(4000);
    }
    blueprint
}

/// A budget of some kinds, of so many times what is little.
fn budget(random: &mut Random, times: usize) -> Budget {
    let mut amount = |little: usize| random.once_in(3).then(|| random.below(little * times) as u64);
    let (tokens, cost) = (amount(160), amount(480).map(Millionths));
    let (calls, threads) = (amount(12), amount(12));
    let time = random.once_in(6).then(|| Duration::from_secs(1 + random.below(9) as u64));
    Budget::NONE.tokens(tokens).cost(cost).calls(calls).threads(threads).time(time)
}

/// The partitions of each of so many shards.
pub(crate) fn shares(shards: u16) -> Vec<Partitions> {
    (0..shards.into()).map(|shard| Partitions::share(shard, shards.into())).collect()
}

/// A core with these partitions, of an organism that started with so many cores.
pub(crate) fn start_shard(
    blueprint: &Arc<Blueprint>,
    recovered: Recovered,
    (core, cores, partitions): (CoreId, u16, Partitions),
    directory: &Directory,
    now: Time,
) -> Core {
    let mut core = Core::new(CoreConfig {
        core,
        cores,
        partitions,
        blueprint: blueprint.clone(),
        catalog: CATALOG.with(Arc::clone),
        decoders: Arc::new(decoders(blueprint)),
        key: IdKey::new(recovered.key),
        gauge: Gauge::new(100_000, 1 << 30),
        directory: directory.clone(),
        events: false,
        started: now,
        epoch: Some(recovered.epoch),
    });
    core.handle(Input::Recovered(Box::new(recovered)), now);
    core
}
