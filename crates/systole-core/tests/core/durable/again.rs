//! Messages whose handlers had not ended at a crash: which ids their calls get, and which runs count.

use std::sync::Arc;
use std::time::Duration;

use systole_core::core::*;
use systole_core::journal::{Journal, MemoryJournal};
use systole_core::vocab::{FaultCode, Limits, MessageId, Name, ThreadId, Time};
use systole_xml::ladder::Raw;
use uuid::Uuid;

use super::simulation::{shares, start_shard};
use crate::payloads::{call, qname, qnames, xml};

/// An organism in which `caller` calls `callee`, and which is killed again and again.
struct Organism {
    journal: MemoryJournal,
    blueprint: Arc<Blueprint>,
    core: Core,
    now: Time,
}

/// The outputs of a core until it has nothing to do.
#[derive(Default)]
struct Came {
    /// The handlers that started: the listener, the handler, and the id of the message.
    started: Vec<(u32, InvocationId, MessageId)>,
    faults: Vec<FaultCode>,
}

impl Organism {
    fn new(caller: impl FnOnce(Contract) -> Contract) -> (Self, Came) {
        Self::limited(|_| {}, caller)
    }

    fn limited(change: impl FnOnce(&mut Limits), caller: impl FnOnce(Contract) -> Contract) -> (Self, Came) {
        let contract = |name: &str| Contract::new(Name::parse(name).expect("a name"));
        let caller =
            caller(contract("caller").accepts(qnames(&["q0"])).replies(qnames(&["a0"])).calls(qnames(&["q1"])));
        let callee = contract("callee").accepts(qnames(&["q1"])).replies(qnames(&["a1"])).timeout(None);
        let callee = callee.on_restart(OnRestart::AskAgain);
        let client = ClientContract::new(Name::parse("alice").expect("a name")).calls(vec![qname("q0")]);
        let mut blueprint = Blueprint::new("again", vec![caller, callee], vec![client]);
        change(&mut blueprint.limits);
        let blueprint = Arc::new(blueprint);
        let mut journal = MemoryJournal::new([7; 32]);
        let now: Time = "2030-01-01T00:00:00Z".parse().expect("a time");
        let core = start(&mut journal, &blueprint, now);
        let mut organism = Self { journal, blueprint, core, now };
        let (permit, root) = (Gauge::new(1, 1).count(0), ThreadId::from_uuid(Uuid::from_u128(1 << 8)));
        let message = Raw::new(xml("q0", 0)).into();
        let client = organism.blueprint.clients().next().expect("there is one").0;
        let (remote, last, attachment, place) = (false, false, None, None);
        let injected = Injected { client, message, root, remote, last, attachment, permit, place };
        let came = organism.input(Input::Injected(injected));
        (organism, came)
    }

    fn input(&mut self, input: Input) -> Came {
        self.core.handle(input, self.now);
        self.run()
    }

    fn run(&mut self) -> Came {
        let mut came = Came::default();
        while let Some(output) = self.core.poll(self.now) {
            match output {
                Output::Append { number, step } => {
                    self.journal.write(&[step]).expect("it is memory");
                    self.core.handle(Input::Appended { number }, self.now);
                }
                Output::Start(Start { invocation, listener, message }) => {
                    came.started.push((listener.0, invocation, message.id));
                }
                Output::Egress { egress, .. } => came.faults.extend(egress.fault.map(|fault| fault.code)),
                _ => {}
            }
        }
        came
    }

    /// The process is killed, and starts again.
    fn crash(&mut self) -> Came {
        self.core = start(&mut self.journal, &self.blueprint, self.now);
        self.run()
    }
}

fn start(journal: &mut MemoryJournal, blueprint: &Arc<Blueprint>, now: Time) -> Core {
    let recovered = journal.recover().expect("it is memory");
    start_shard(blueprint, recovered, (CoreId(0), 1, shares(1)[0]), &Directory::default(), now)
}

fn invocation(came: &Came, listener: u32) -> InvocationId {
    came.started.iter().find(|(other, ..)| *other == listener).expect("it runs").1
}

fn ids(came: &Came, listener: u32) -> Vec<MessageId> {
    came.started.iter().filter(|(other, ..)| *other == listener).map(|(.., id)| *id).collect()
}

#[test]
fn calls_of_a_run_that_need_not_repeat_the_one_before_have_new_ids() {
    for on_restart in [OnRestart::AskAgain, OnRestart::Reattach] {
        let (mut organism, mut came) = Organism::new(|caller| caller.on_restart(on_restart));
        let (mut known, mut group) = (Vec::new(), 0);
        for crash in 0..4 {
            // One group that is forgotten, and one that is open at the crash; the last calls end the handler.
            let handler = invocation(&came, 0);
            if on_restart == OnRestart::Reattach {
                let _none_is_wanted = organism.input(Input::Reattached { invocation: handler });
            }
            for at in 0..2 {
                let (call_id, requests) = (CallId(at), vec![call("q1", group)]);
                let (join, within) = (Join::All, None);
                let called = Input::Called { invocation: handler, call: call_id, requests, join, within };
                known.extend(ids(&organism.input(called), 1));
                group += 1;
                if at == 0 {
                    let _none = organism.input(Input::CallDropped { invocation: handler, call: call_id });
                }
            }
            if crash == 3 {
                let outcome = HandlerOutcome::Emitted(vec![call("q1", group)]);
                known.extend(ids(&organism.input(Input::Finished { invocation: handler, outcome }), 1));
            }
            came = organism.crash();
        }
        assert_eq!(known.len(), 9, "{on_restart:?}");
        let mut distinct = known.clone();
        distinct.sort_unstable();
        distinct.dedup();
        assert_eq!(distinct.len(), known.len(), "{on_restart:?}: two calls have one id: {known:?}");
    }
}

#[test]
fn runs_count_by_what_the_contract_says_of_restarts_and_not_by_its_timeout() {
    let day = Some(Duration::from_secs(86_400));
    for (on_restart, timeout, ends) in [
        (OnRestart::Replay, None, true),
        (OnRestart::Replay, day, true),
        (OnRestart::AskAgain, None, false),
        (OnRestart::AskAgain, day, false),
        (OnRestart::Reattach, day, false),
    ] {
        let (mut organism, came) = Organism::new(|caller| caller.on_restart(on_restart).timeout(timeout));
        assert_eq!(ids(&came, 0).len(), 1);
        let most = organism.blueprint.limits.max_attempts;
        for _ in 1..most {
            assert_eq!(ids(&organism.crash(), 0).len(), 1, "{on_restart:?}, {timeout:?}");
        }
        let last = organism.crash();
        let expected = if ends { (0, vec![FaultCode::ListenerFailed]) } else { (1, Vec::new()) };
        assert_eq!((ids(&last, 0).len(), last.faults), expected, "{on_restart:?}, {timeout:?}");
    }
}

#[test]
fn a_listener_without_a_timeout_gets_the_results_that_it_had() {
    let (mut organism, came) = Organism::new(|caller| caller.timeout(None));
    let group = |invocation| {
        let (call, requests, join, within) = (CallId(0), vec![call("q1", 0)], Join::All, None);
        Input::Called { invocation, call, requests, join, within }
    };
    let first = ids(&organism.input(group(invocation(&came, 0))), 1);
    let came = organism.crash();
    assert_eq!(ids(&came, 1), first, "the call is open still");
    assert_eq!(ids(&organism.input(group(invocation(&came, 0))), 1), [], "and is not made again");
}

#[test]
fn a_message_is_run_as_often_as_it_may_be() {
    // With one slot it is written that its handler began; with several it may only have waited, so it runs once more.
    for (most, concurrency, runs) in [(1, 1, 1), (1, 2, 2), (2, 1, 2), (2, 2, 2), (5, 1, 5), (5, 2, 5)] {
        let change = |limits: &mut Limits| limits.max_attempts = most;
        let (mut organism, mut came) = Organism::limited(change, |caller| caller.concurrency(concurrency));
        let mut seen = 0;
        while came.faults.is_empty() {
            seen += ids(&came, 0).len();
            assert!(seen <= runs, "{most} attempts, {concurrency} slots");
            came = organism.crash();
        }
        assert_eq!(seen, runs, "{most} attempts, {concurrency} slots");
    }
}
