//! Several shards that are polled a little at a time, with messages between them on their way:
//! what must hold whatever the order.

use std::collections::{HashMap, HashSet};

use proptest::prelude::*;
use systole_core::core::*;
use systole_core::vocab::ThreadId;

use crate::harness::{Invocation, Seen, World, letter_xml, secs};
use crate::model::cases;
use crate::model::plan::{Plan, plans};
use crate::payloads::{call, emission, reply, xml};

#[derive(Debug, Clone)]
enum Op {
    Inject { shard: u8, conversation: Option<u8>, target: u8 },
    End { invocation: u8, how: u8, targets: Vec<u8> },
    Await { invocation: u8, targets: Vec<u8>, join: u8 },
    Drop { invocation: u8 },
    Poll { shard: u8, steps: u8 },
    Carry { messages: u8 },
    Sleep { seconds: u8 },
    Leave { conversation: u8 },
    Cancel { conversation: u8 },
    Rest { listener: u8, rests: bool },
    Pause { listener: u8, pause: bool },
    CancelThread { thread: u8 },
    Redrive { shard: u8, letter: u8 },
    Discard { shard: u8, letter: u8 },
    Drain,
}

fn ops() -> impl Strategy<Value = Op> {
    let targets = || prop::collection::vec(any::<u8>(), 0..4);
    prop_oneof![
        10 => (any::<u8>(), prop::option::of(any::<u8>()), any::<u8>())
            .prop_map(|(shard, conversation, target)| Op::Inject { shard, conversation, target }),
        14 => (any::<u8>(), any::<u8>(), targets()).prop_map(|(invocation, how, targets)| Op::End { invocation, how, targets }),
        8 => (any::<u8>(), targets(), any::<u8>()).prop_map(|(invocation, targets, join)| Op::Await { invocation, targets, join }),
        2 => any::<u8>().prop_map(|invocation| Op::Drop { invocation }),
        30 => (any::<u8>(), 1..12u8).prop_map(|(shard, steps)| Op::Poll { shard, steps }),
        10 => (1..4u8).prop_map(|messages| Op::Carry { messages }),
        3 => (1..20u8).prop_map(|seconds| Op::Sleep { seconds }),
        1 => any::<u8>().prop_map(|conversation| Op::Leave { conversation }),
        1 => any::<u8>().prop_map(|conversation| Op::Cancel { conversation }),
        2 => (any::<u8>(), any::<bool>()).prop_map(|(listener, rests)| Op::Rest { listener, rests }),
        2 => (any::<u8>(), any::<bool>()).prop_map(|(listener, pause)| Op::Pause { listener, pause }),
        2 => any::<u8>().prop_map(|thread| Op::CancelThread { thread }),
        5 => (any::<u8>(), any::<u8>()).prop_map(|(shard, letter)| Op::Redrive { shard, letter }),
        1 => (any::<u8>(), any::<u8>()).prop_map(|(shard, letter)| Op::Discard { shard, letter }),
        1 => Just(Op::Drain),
    ]
}

struct Chaos {
    world: World,
    plan: Plan,
    roots: Vec<ThreadId>,
    /// The number of each request, the root that it was given, and whether it will be answered.
    requests: Vec<(i64, ThreadId)>,
    cancelled: HashSet<ThreadId>,
    /// The listener of each handler that runs, and whether it is parked.
    holders: HashMap<Invocation, (String, bool)>,
    /// Calls that a handler awaits.
    awaited: HashMap<Invocation, Vec<u32>>,
    /// Calls that handlers gave up.
    dropped: HashSet<u32>,
    calls: u32,
    next: i64,
}

impl Chaos {
    fn new(plan: Plan, shards: u16) -> Self {
        let mut world = plan.build_on(shards);
        world.slow_links = true;
        Self {
            world,
            plan,
            roots: Vec::new(),
            requests: Vec::new(),
            cancelled: HashSet::new(),
            holders: HashMap::new(),
            awaited: HashMap::new(),
            dropped: HashSet::new(),
            calls: 0,
            next: 0,
        }
    }

    fn event(&mut self, op: &Op) {
        match op {
            Op::Inject { shard, conversation, target } => self.inject(*shard, *conversation, *target),
            Op::End { invocation, how, targets } => {
                if let Some(invocation) = self.pick(*invocation) {
                    let outcome = self.outcome(invocation, *how, targets);
                    self.end(invocation, outcome);
                }
            }
            Op::Await { invocation, targets, join } => {
                if let Some(invocation) = self.pick(*invocation) {
                    self.awaits(invocation, targets, *join);
                }
            }
            Op::Drop { invocation } => {
                let dropped = self
                    .pick(*invocation)
                    .and_then(|invocation| Some((invocation, self.awaited.get_mut(&invocation)?.pop()?)));
                if let Some((invocation, call)) = dropped {
                    self.dropped.insert(call);
                    self.world
                        .handle(invocation.shard, Input::CallDropped { invocation: invocation.id, call: CallId(call) });
                }
            }
            Op::Poll { shard, steps } => {
                let shard = usize::from(*shard) % self.world.cores.len();
                for _ in 0..*steps {
                    self.world.step(shard);
                    self.look();
                }
            }
            Op::Carry { messages } => {
                for _ in 0..*messages {
                    self.world.carry_one();
                }
            }
            Op::Sleep { seconds } => self.world.now = self.world.now.after(secs(u64::from(*seconds))),
            Op::Leave { conversation } => {
                if let Some(root) = self.conversation(*conversation) {
                    let client = self.world.client_of(root);
                    self.everywhere(|| Input::Left { client, root });
                }
            }
            Op::Cancel { conversation } => {
                if let Some(root) = self.conversation(*conversation) {
                    self.cancelled.insert(root);
                    let client = self.world.client_of(root);
                    self.everywhere(|| Input::Cancel { client, root });
                }
            }
            Op::Rest { listener, rests } => {
                let listener = usize::from(*listener) % self.plan.count();
                let listener = self.world.listener_id(&format!("l{listener}"));
                self.everywhere(|| Input::ListenerRests { listener, rests: *rests });
            }
            Op::Pause { listener, pause } => {
                let listener = usize::from(*listener) % self.plan.count();
                let listener = self.world.listener_id(&format!("l{listener}"));
                self.everywhere(|| Input::ListenerPaused { listener, paused: *pause });
            }
            Op::CancelThread { thread } => {
                let threads: Vec<_> = self.world.cores.iter().flat_map(|core| core.snapshot().threads).collect();
                if let Some(thread) = threads.get(usize::from(*thread) % threads.len().max(1)) {
                    let (root, thread) = (thread.root, thread.id);
                    self.everywhere(|| operate(Operation::Cancel { root, thread, why: Cancellation::Operator }));
                }
            }
            Op::Redrive { shard, letter } => {
                let root = self.world.fresh_root();
                self.letter(*shard, *letter, |letter| Operation::Redrive { letter, root });
            }
            Op::Discard { shard, letter } => self.letter(*shard, *letter, |letter| Operation::Discard { letter }),
            Op::Drain => self.everywhere(|| Input::Drain),
        }
        self.look();
        self.world.check_books();
    }

    fn letter(&mut self, shard: u8, letter: u8, of: impl FnOnce(DeadLetterId) -> Operation) {
        let shard = usize::from(shard) % self.world.cores.len();
        let letters: Vec<_> = self.world.cores[shard].dead_letters().iter().map(|letter| letter.id).collect();
        if !letters.is_empty() {
            self.world.handle(shard, operate(of(letters[usize::from(letter) % letters.len()])));
        }
    }

    fn everywhere(&mut self, input: impl Fn() -> Input) {
        for shard in 0..self.world.cores.len() {
            self.world.handle(shard, input());
        }
    }

    fn number(&mut self) -> i64 {
        self.next += 1;
        self.next
    }

    fn conversation(&self, number: u8) -> Option<ThreadId> {
        (!self.roots.is_empty()).then(|| self.roots[usize::from(number) % self.roots.len()])
    }

    fn pick(&self, number: u8) -> Option<Invocation> {
        let running = &self.world.running;
        (!running.is_empty()).then(|| running[usize::from(number) % running.len()].invocation)
    }

    fn inject(&mut self, shard: u8, conversation: Option<u8>, target: u8) {
        let n = self.number();
        let target = usize::from(target) % self.plan.count();
        let mut letter = letter_xml(&xml(&self.plan.local(target), n)).label(&format!("m{n}"));
        letter.thread = conversation.and_then(|number| self.conversation(number)).map(|root| root.to_string());
        letter.shard = usize::from(shard) % self.world.cores.len();
        let root = self.world.post("alice", letter);
        self.roots.push(root);
        self.requests.push((n, root));
    }

    fn outcome(&mut self, invocation: Invocation, how: u8, targets: &[u8]) -> HandlerOutcome {
        let listener = self.holders[&invocation].0[1..].to_owned();
        let n = self.number();
        match how % 16 {
            0..7 => HandlerOutcome::Emitted(vec![reply(&format!("a{listener}"), n)]),
            7..12 => HandlerOutcome::Emitted(self.requests_to(targets)),
            12 => HandlerOutcome::Failed(Failure { message: "no".into(), fault: None }),
            13 => HandlerOutcome::Panicked,
            14 => HandlerOutcome::Discarded,
            _ => {
                let after = std::time::Duration::from_secs(u64::from(how) % 3);
                HandlerOutcome::Emitted(vec![emission(
                    EmissionKind::Continue { after },
                    &xml(&format!("q{listener}"), n),
                )])
            }
        }
    }

    fn requests_to(&mut self, targets: &[u8]) -> Vec<Emission> {
        let count = self.plan.count() + 1;
        targets.iter().map(|&target| call(&self.plan.local(usize::from(target) % count), self.number())).collect()
    }

    fn awaits(&mut self, invocation: Invocation, targets: &[u8], join: u8) {
        let requests = self.requests_to(targets);
        let within = join.is_multiple_of(3).then(|| std::time::Duration::from_secs(u64::from(join) % 4));
        let join = [Join::All, Join::First, Join::Quorum(2), Join::Settled][usize::from(join) % 4];
        self.calls += 1;
        let call = self.calls;
        self.awaited.entry(invocation).or_default().push(call);
        self.world.handle(
            invocation.shard,
            Input::Called { invocation: invocation.id, call: CallId(call), requests, join, within },
        );
        self.world.handle(invocation.shard, Input::Parked { invocation: invocation.id });
        self.holders.get_mut(&invocation).expect("it runs").1 = true;
    }

    fn end(&mut self, invocation: Invocation, outcome: HandlerOutcome) {
        self.holders.remove(&invocation);
        self.awaited.remove(&invocation);
        self.world.end(invocation, outcome);
    }

    /// Checks the outputs of the cores since the last time.
    fn look(&mut self) {
        for seen in std::mem::take(&mut self.world.log) {
            match seen {
                Seen::Started(invocation, thread, line) => {
                    let listener = line.split_once(" <- ").expect("a line of the harness").0;
                    let on_thread = self.world.running.iter().filter(|running| running.message.thread == thread);
                    let others = on_thread.filter(|other| {
                        other.invocation != invocation && !self.world.aborted.contains(&other.invocation)
                    });
                    assert_eq!(others.count(), 0, "'{line}': one message of a thread is in flight");
                    self.holders.insert(invocation, (listener.to_owned(), false));
                    self.check_slots(listener);
                }
                Seen::Resumed(invocation, call, _) => {
                    // It may have ended, or dropped the call, while the result was on its way out.
                    let Some(holder) = self.holders.get_mut(&invocation) else { continue };
                    holder.1 = false;
                    let awaited = self.awaited.entry(invocation).or_default();
                    match awaited.iter().position(|&other| other == call) {
                        Some(at) => drop(awaited.remove(at)),
                        None => assert!(self.dropped.remove(&call), "{invocation:?} does not await {call}"),
                    }
                    let listener = self.holders[&invocation].0.clone();
                    self.check_slots(&listener);
                    // It waits for the others again.
                    if !self.awaited[&invocation].is_empty() {
                        self.world.handle(invocation.shard, Input::Parked { invocation: invocation.id });
                        self.holders.get_mut(&invocation).expect("as above").1 = true;
                    }
                }
                Seen::Aborted(invocation) => {
                    if !self.world.running.iter().any(|running| running.invocation == invocation) {
                        self.holders.remove(&invocation);
                    }
                }
            }
        }
    }

    fn check_slots(&self, listener: &str) {
        let index: usize = listener[1..].parse().expect("l<i>");
        let holders = self.holders.values().filter(|(other, parked)| other == listener && !parked).count();
        assert!(holders <= self.plan.listeners[index].slots as usize, "{holders} handlers of {listener} run");
    }

    /// Lets everything end, and checks that every party got its messages.
    fn finish(mut self) {
        for listener in 0..self.plan.count() {
            self.event(&Op::Rest { listener: listener as u8, rests: false });
            self.event(&Op::Pause { listener: listener as u8, pause: false });
        }
        self.world.slow_links = false;
        self.world.run();
        self.look();
        let mut rounds = 0;
        loop {
            rounds += 1;
            assert!(rounds < 10_000, "it does not come to an end");
            if let Some(invocation) = self.pick(0) {
                let outcome = self.outcome(invocation, 0, &[]);
                self.end(invocation, outcome);
                self.world.run();
                self.look();
            } else if !self.world.paths().iter().all(|path| path == "root") {
                self.world.sleep(secs(3));
                self.look();
            } else {
                break;
            }
        }
        let mut answers: HashMap<&str, usize> = HashMap::new();
        for egress in &self.world.egress {
            *answers.entry(egress.in_reply_to.as_deref().expect("each has a label")).or_default() += 1;
        }
        let everybody_answers = self.plan.listeners.iter().all(|member| !member.idle);
        for (n, _) in &self.requests {
            let count = answers.get(format!("m{n}").as_str()).copied().unwrap_or(0);
            assert!(count <= 1, "request {n} got {count} answers");
            assert!(count == 1 || !everybody_answers || !self.cancelled.is_empty(), "request {n} got no answer");
        }
    }
}

fn operate(operation: Operation) -> Input {
    Input::Operate { ticket: 0, operation, act: None }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(cases() / 2) })]

    #[test]
    fn whatever_the_order_nothing_is_lost_or_doubled(
        plan in plans(),
        shards in 1..4u16,
        ops in prop::collection::vec(ops(), 1..150),
    ) {
        let mut chaos = Chaos::new(plan, shards);
        for op in &ops {
            chaos.event(op);
        }
        chaos.finish();
    }

    #[test]
    fn stopping_at_any_moment_leaves_nothing_open(
        plan in plans(),
        shards in 1..4u16,
        writable in any::<bool>(),
        ops in prop::collection::vec(ops(), 1..60),
    ) {
        let mut chaos = Chaos::new(plan, shards);
        for op in &ops {
            chaos.event(op);
        }
        chaos.everywhere(|| if writable { Input::Stop } else { Input::Unwritable });
        chaos.world.slow_links = false;
        chaos.world.run();
        chaos.look();
        while let Some(invocation) = chaos.pick(0) {
            chaos.end(invocation, HandlerOutcome::Emitted(vec![]));
            chaos.world.run();
        }
        prop_assert!(chaos.world.paths().is_empty());
    }
}
