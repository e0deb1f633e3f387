//! The core against a naive model of it: random organisms, random handlers, random times.
//!
//! After each event the world runs until it is quiet. Then the messages that left, the handlers that were started,
//! resumed and aborted, the open threads, the waiting messages and the time of the next wake must be those of the
//! model.

mod check;
pub(crate) mod plan;
mod reference;

use std::collections::HashMap;
use std::time::Duration;

use proptest::prelude::*;
use systole_core::core::*;
use systole_core::vocab::{Name, QName, ThreadId, ns};
use systole_xml::ladder::Raw;

use self::plan::{Plan, plans};
use self::reference::{End, Model, Say};
use crate::harness::{Invocation, World, letter_xml, secs};
use crate::payloads::{emission, meta, on, spawn_xml, xml};

/// A random event. Its numbers pick from the things that are there at that moment.
#[derive(Debug, Clone)]
enum Op {
    Inject { bob: bool, conversation: Option<u8>, target: u8, ok: bool, deadline: Option<u8> },
    End { invocation: u8, how: Ending },
    Await { invocation: u8, calls: Vec<Saying>, join: Join },
    Park { invocation: u8 },
    DropCall { invocation: u8, call: u8 },
    Sleep { seconds: u16 },
    Leave { conversation: u8 },
    Cancel { conversation: u8 },
    Rest { listener: u8, rests: bool },
    Redrive { letter: u8 },
    Drain,
}

#[derive(Debug, Clone)]
enum Ending {
    Says(Vec<Saying>),
    Malformed,
    Failed,
    Panicked,
    Discarded,
}

#[derive(Debug, Clone)]
enum Saying {
    Reply(bool),
    Call(u8, bool),
    Continue(bool, u8),
    Spawn(u8, bool),
    On(u8, Option<u8>, bool),
    Close(u8),
}

fn ops() -> impl Strategy<Value = Op> {
    let ok = || prop::bool::weighted(0.9);
    let join = prop_oneof![Just(Join::All), Just(Join::First), (0..4u32).prop_map(Join::Quorum), Just(Join::Settled)];
    let inject =
        (any::<bool>(), prop::option::of(any::<u8>()), any::<u8>(), ok(), prop::option::weighted(0.2, 1..60u8));
    prop_oneof![
        30 => inject.prop_map(|(bob, conversation, target, ok, deadline)| Op::Inject { bob, conversation, target, ok, deadline }),
        60 => (any::<u8>(), endings()).prop_map(|(invocation, how)| Op::End { invocation, how }),
        25 => (any::<u8>(), prop::collection::vec(requests(), 0..5), join)
            .prop_map(|(invocation, calls, join)| Op::Await { invocation, calls, join }),
        5 => any::<u8>().prop_map(|invocation| Op::Park { invocation }),
        6 => (any::<u8>(), any::<u8>()).prop_map(|(invocation, call)| Op::DropCall { invocation, call }),
        8 => prop_oneof![4 => 1..40u16, 1 => 800..1000u16].prop_map(|seconds| Op::Sleep { seconds }),
        3 => any::<u8>().prop_map(|conversation| Op::Leave { conversation }),
        3 => any::<u8>().prop_map(|conversation| Op::Cancel { conversation }),
        5 => (any::<u8>(), prop::bool::weighted(0.4)).prop_map(|(listener, rests)| Op::Rest { listener, rests }),
        6 => any::<u8>().prop_map(|letter| Op::Redrive { letter }),
        1 => Just(Op::Drain),
    ]
}

fn requests() -> impl Strategy<Value = Saying> {
    let ok = || prop::bool::weighted(0.9);
    prop_oneof![
        8 => (any::<u8>(), ok()).prop_map(|(target, ok)| Saying::Call(target, ok)),
        2 => (any::<u8>(), ok()).prop_map(|(target, ok)| Saying::Spawn(target, ok)),
        4 => (any::<u8>(), prop::option::weighted(0.2, any::<u8>()), ok())
            .prop_map(|(child, target, ok)| Saying::On(child, target, ok)),
        1 => any::<u8>().prop_map(Saying::Close),
    ]
}

fn endings() -> impl Strategy<Value = Ending> {
    let ok = || prop::bool::weighted(0.9);
    let saying = prop_oneof![
        2 => ok().prop_map(Saying::Reply),
        6 => requests(),
        1 => (ok(), 0..20u8).prop_map(|(ok, after)| Saying::Continue(ok, after)),
    ];
    prop_oneof![
        6 => Just(Ending::Says(vec![Saying::Reply(true)])),
        6 => prop::collection::vec(requests(), 1..4).prop_map(Ending::Says),
        6 => prop::collection::vec(saying, 0..5).prop_map(Ending::Says),
        1 => Just(Ending::Malformed),
        1 => Just(Ending::Failed),
        1 => Just(Ending::Panicked),
        1 => Just(Ending::Discarded),
    ]
}

/// The world and its model, side by side.
pub(crate) struct Pair {
    world: World,
    model: Model,
    /// The conversations that opened, by the id of their roots.
    roots: HashMap<ThreadId, usize>,
    root_ids: HashMap<usize, ThreadId>,
    /// Every request of a client: its number, its conversation, how many answers it must get.
    requests: Vec<(i64, Option<usize>, usize)>,
    owners: HashMap<usize, String>,
    cancelled: Vec<usize>,
    answers: HashMap<i64, usize>,
    step: usize,
    next: i64,
}

impl Pair {
    fn new(plan: Plan) -> Self {
        let world = plan.build();
        let model = Model::new(plan, world.now);
        Self {
            world,
            model,
            roots: HashMap::new(),
            root_ids: HashMap::new(),
            requests: Vec::new(),
            owners: HashMap::new(),
            cancelled: Vec::new(),
            answers: HashMap::new(),
            step: 0,
            next: 0,
        }
    }

    fn number(&mut self) -> i64 {
        self.next += 1;
        self.next
    }

    /// Runs one event, a second after the last.
    fn event(&mut self, op: &Op) {
        self.pass(secs(1));
        match op {
            Op::Inject { bob, conversation, target, ok, deadline } => {
                self.inject(*bob, *conversation, *target, *ok, *deadline);
            }
            Op::End { invocation, how } => {
                if let Some(invocation) = self.pick(*invocation) {
                    let how = self.ending(invocation, how);
                    self.end(invocation, how);
                }
            }
            Op::Await { invocation, calls, join } => {
                if let Some(invocation) = self.pick(*invocation) {
                    self.awaits(invocation, calls, *join);
                }
            }
            Op::Park { invocation } => {
                if let Some(invocation) = self.pick(*invocation) {
                    self.world.handle(invocation.shard, Input::Parked { invocation: invocation.id });
                    self.model.park(invocation, false);
                }
            }
            Op::DropCall { invocation, call } => {
                if let Some(invocation) = self.pick(*invocation) {
                    let at = self.model.invocation_index(invocation);
                    let call = u32::from(*call) % self.model.invocations[at].calls.max(1);
                    self.world
                        .handle(invocation.shard, Input::CallDropped { invocation: invocation.id, call: CallId(call) });
                    self.model.drop_call(invocation, call);
                }
            }
            Op::Sleep { seconds } => self.pass(secs(u64::from(*seconds))),
            Op::Leave { conversation } => {
                if let Some(root) = self.conversation(*conversation) {
                    self.world.handle(0, self.world.left(self.root_ids[&root]));
                    self.model.leave(root);
                }
            }
            Op::Cancel { conversation } => {
                if let Some(root) = self.conversation(*conversation) {
                    self.world.handle(0, self.world.cancelled(self.root_ids[&root]));
                    self.cancelled.push(root);
                    self.model.close(root);
                }
            }
            Op::Rest { listener, rests } => self.rest(*listener, *rests),
            Op::Redrive { letter } => self.redrive(*letter),
            Op::Drain => {
                self.world.handle(0, Input::Drain);
                self.model.drain();
            }
        }
        self.settle();
    }

    fn rest(&mut self, listener: u8, rests: bool) {
        let index = usize::from(listener) % self.model.plan.count();
        let listener = self.world.listener_id(&format!("l{index}"));
        self.world.handle(0, Input::ListenerRests { listener, rests });
        self.model.rests[index] = rests;
    }

    fn inject(&mut self, bob: bool, conversation: Option<u8>, target: u8, ok: bool, deadline: Option<u8>) {
        let client = if bob { "bob" } else { "alice" };
        let target = usize::from(target) % (self.model.plan.count() + 1);
        let n = self.number();
        let deadline = deadline.map(|after| self.world.now.after(secs(u64::from(after)) + Duration::from_millis(500)));
        let conversation = conversation.and_then(|conversation| self.conversation(conversation));
        let own = conversation.filter(|root| self.is_own(*root, client));
        let mut letter = letter_xml(&payload(&self.model.plan.local(target), n, ok)).label(&format!("m{n}"));
        letter.thread = conversation.map(|root| self.root_ids[&root].to_string());
        letter.deadline = deadline;
        let id = self.world.post(client, letter);
        let root = self.model.inject(client, own, target, (n, ok), deadline);
        if let Some(root) = root.filter(|_| own.is_none()) {
            self.roots.insert(id, root);
            self.root_ids.insert(root, id);
            self.owners.insert(root, client.to_owned());
        }
        let refused = client == "bob" && target == 0 || !ok;
        let copies = if refused { 1 } else { self.model.plan.targets(target).len().max(1) };
        self.requests.push((n, root, copies));
    }

    /// Redrives a dead letter. The model keeps none: it reads those of the world.
    fn redrive(&mut self, number: u8) {
        let letters: Vec<_> = self.world.cores[0].dead_letters().iter().cloned().collect();
        if letters.is_empty() {
            return;
        }
        let DeadLetter { id, from, to, payload, .. } = letters[usize::from(number) % letters.len()].clone();
        let root = self.world.fresh_root();
        self.world
            .handle(0, Input::Operate { ticket: 0, operation: Operation::Redrive { letter: id, root }, act: None });
        self.world.run();
        let expected = match &payload {
            None => Err(DeadLetterError::NoPayload),
            // An output that could not be read.
            Some(payload) if payload.root().namespace() == ns::CORE => Err(DeadLetterError::NoPayload),
            Some(payload) if !self.may_call(&from, payload.root()) => {
                Err(DeadLetterError::NotACall { from: from.clone(), payload: payload.root().clone() })
            }
            Some(_) if self.model.draining => Err(DeadLetterError::Closed),
            Some(_) => Ok(()),
        };
        let expected = expected.map_err(OperationError::from);
        assert_eq!(self.world.operated.pop(), Some(expected.clone()), "what comes of the wish");
        assert_eq!(self.world.cores[0].dead_letters().get(id).is_none(), expected.is_ok());
        if let (Some(payload), Ok(())) = (payload, expected) {
            let target = (0..=self.model.plan.count()).find(|&at| self.model.plan.local(at) == payload.root().local());
            let number = payload.as_str().split_once("<n>").and_then(|(_, rest)| rest.split_once('<')?.0.parse().ok());
            if let (Some(target), Some(n)) = (target, number) {
                self.model.redrive(from.as_str(), to.as_ref().map(|to| to.as_str()), target, n);
            }
        }
    }

    /// Tells whether a payload is one of its sender's calls to listeners.
    fn may_call(&self, from: &Name, payload: &QName) -> bool {
        let blueprint = &self.world.blueprint;
        let calls = match blueprint.party(from.as_str()) {
            Some(Party::Listener(id)) => blueprint.listener(id).map(|listener| &listener.calls),
            Some(Party::Client(id)) => blueprint.client(id).map(|client| &client.calls),
            None => None,
        };
        payload.namespace() != ns::META && calls.is_some_and(|calls| calls.contains(payload))
    }

    fn awaits(&mut self, invocation: Invocation, calls: &[Saying], join: Join) {
        let says: Vec<_> = calls.iter().map(|saying| self.say(invocation, saying)).collect();
        let at = self.model.invocation_index(invocation);
        let id = self.model.invocations[at].calls;
        self.model.invocations[at].calls += 1;
        let requests = says.iter().map(|say| self.emission(say, 0)).collect();
        self.world.handle(
            invocation.shard,
            Input::Called { invocation: invocation.id, call: CallId(id), requests, join, within: None },
        );
        self.world.handle(invocation.shard, Input::Parked { invocation: invocation.id });
        self.model.awaits(invocation, id, &says, join);
    }

    fn end(&mut self, invocation: Invocation, how: End) {
        let at = self.model.invocation_index(invocation);
        let listener = self.model.invocations[at].listener;
        let outcome = match &how {
            End::Says(says) => HandlerOutcome::Emitted(says.iter().map(|say| self.emission(say, listener)).collect()),
            End::Malformed => HandlerOutcome::Wrote(Raw::new("<never")),
            End::Failed => HandlerOutcome::Failed(Failure { message: "no".into(), fault: None }),
            End::Panicked => HandlerOutcome::Panicked,
            End::Discarded => HandlerOutcome::Discarded,
        };
        self.world.end(invocation, outcome);
        self.model.end(invocation, how);
    }

    fn ending(&mut self, invocation: Invocation, how: &Ending) -> End {
        match how {
            Ending::Says(sayings) => End::Says(sayings.iter().map(|saying| self.say(invocation, saying)).collect()),
            Ending::Malformed => End::Malformed,
            Ending::Failed => End::Failed,
            Ending::Panicked => End::Panicked,
            Ending::Discarded => End::Discarded,
        }
    }

    fn say(&mut self, invocation: Invocation, saying: &Saying) -> Say {
        let count = self.model.plan.count();
        let n = self.number();
        let target = |target: u8| usize::from(target) % (count + 1);
        match *saying {
            Saying::Reply(ok) => Say::Reply { n, ok },
            Saying::Call(to, ok) => Say::Call { target: target(to), n, ok },
            Saying::Continue(ok, after) => {
                let after =
                    if after < 5 { Duration::ZERO } else { Duration::from_millis(1000 * u64::from(after) + 250) };
                Say::Continue { n, ok, after }
            }
            Saying::Spawn(to, ok) => Say::Spawn { target: target(to), n, ok },
            Saying::On(child, to, ok) => match self.spawned(invocation, child) {
                Some(child) => {
                    let own = self.model.threads[child].listener.expect("it is spawned");
                    Say::On { child, target: to.map_or(own, target), n, ok }
                }
                None => Say::Call { target: target(child), n, ok },
            },
            Saying::Close(child) => match self.spawned(invocation, child) {
                Some(child) => Say::Close { child },
                None => Say::Call { target: target(child), n, ok: true },
            },
        }
    }

    /// A thread that the thread of a handler has spawned, and whose id has been seen; it may be
    /// closed by now.
    fn spawned(&self, invocation: Invocation, number: u8) -> Option<usize> {
        let owner = self.model.invocations[self.model.invocation_index(invocation)].thread?;
        let is_one = |&at: &usize| {
            let thread = &self.model.threads[at];
            thread.parent == Some(owner) && thread.spawned && thread.id.is_some()
        };
        let all: Vec<_> = (0..self.model.threads.len()).filter(is_one).collect();
        (!all.is_empty()).then(|| all[usize::from(number) % all.len()])
    }

    fn emission(&self, say: &Say, me: usize) -> Emission {
        match *say {
            Say::Reply { n, ok } => emission(EmissionKind::Reply, &payload(&format!("a{me}"), n, ok)),
            Say::Call { target, n, ok } => {
                emission(EmissionKind::Call, &payload(&self.model.plan.local(target), n, ok))
            }
            Say::Continue { n, ok, after } => {
                emission(EmissionKind::Continue { after }, &payload(&format!("q{me}"), n, ok))
            }
            Say::Spawn { target, n, ok } => {
                let local = self.model.plan.local(target);
                spawn_xml(&local, &payload(&local, n, ok))
            }
            Say::On { child, target, n, ok } => {
                let id = self.model.threads[child].id.expect("it has been seen");
                on(id, emission(EmissionKind::Call, &payload(&self.model.plan.local(target), n, ok)))
            }
            Say::Close { child } => on(self.model.threads[child].id.expect("it has been seen"), meta("close-thread")),
        }
    }

    /// Picks one of the handlers that run.
    fn pick(&self, number: u8) -> Option<Invocation> {
        let invocations = &self.model.invocations;
        (!invocations.is_empty()).then(|| invocations[usize::from(number) % invocations.len()].name)
    }

    /// Picks one of the conversations that are open.
    fn conversation(&self, number: u8) -> Option<usize> {
        let mut open: Vec<_> = self.root_ids.keys().copied().filter(|&root| self.model.threads[root].open).collect();
        open.sort_unstable();
        (!open.is_empty()).then(|| open[usize::from(number) % open.len()])
    }

    /// Lets everything end, and checks that every party got its messages.
    fn finish(mut self) {
        for listener in 0..self.model.plan.count() {
            self.rest(listener as u8, false);
        }
        self.settle();
        let mut rounds = 0;
        while !self.model.invocations.is_empty() || self.model.waits_for_time() {
            rounds += 1;
            assert!(rounds < 10_000, "it does not come to an end");
            match self.pick(0) {
                Some(invocation) => {
                    let n = self.number();
                    self.end(invocation, End::Says(vec![Say::Reply { n, ok: true }]));
                    self.settle();
                }
                None => self.pass(secs(5)),
            }
        }
        let everybody_answers = self.model.plan.listeners.iter().all(|member| !member.idle);
        for (n, root, copies) in &self.requests {
            let answers = self.answers.get(n).copied().unwrap_or(0);
            assert!(answers <= *copies, "request {n} got {answers} answers");
            if everybody_answers && root.is_none_or(|root| !self.cancelled.contains(&root)) {
                assert_eq!(answers, *copies, "answers to request {n}");
            }
        }
    }
}

fn payload(local: &str, n: i64, ok: bool) -> String {
    if ok { xml(local, n) } else { format!("<{local} xmlns=\"urn:test\"><n>x{n}</n></{local}>") }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(cases()) })]

    #[test]
    fn the_core_does_what_the_model_says(plan in plans(), ops in prop::collection::vec(ops(), 1..80)) {
        let mut pair = Pair::new(plan);
        for op in &ops {
            pair.event(op);
        }
        pair.finish();
    }
}

/// More of them with `CORE_CASES=10000`.
pub(crate) fn cases() -> u32 {
    std::env::var("CORE_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(128)
}
