//! A handler that ends by the word of a party that waits to learn whether it counts, as a person does: against a deadline, a
//! cancellation of the thread or the conversation, and a crash, at each place between two steps.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use systole_core::core::*;
use systole_core::journal::{Journal, MemoryJournal, Number, Op};
use systole_core::vocab::{FaultCode, Name, Partitions, ThreadId, Time, ns};
use systole_xml::ladder::Raw;

use super::random::Random;
use super::simulation::start_shard;
use crate::payloads::{call, qname, reply, xml};

const TICKET: u64 = 7;
const TIME: &str = "2030-01-01T00:00:00Z";
const DEADLINE: &str = "2030-01-01T00:01:00Z";

/// The rivals of the answer, by number.
const RIVALS: [&str; 4] = ["deadline", "conversation", "thread", "crash"];

struct Race {
    random: Random,
    blueprint: Arc<Blueprint>,
    journal: MemoryJournal,
    core: Core,
    now: Time,
    root: ThreadId,
    /// Steps on their way into the journal.
    appends: VecDeque<Output>,
    /// The handler that runs, and its thread.
    running: Option<(InvocationId, ThreadId)>,
    /// States whether it said its word, and as an answer rather than a failure.
    said: Option<bool>,
    /// The answer to the party.
    told: Option<AttachmentEnd>,
    /// The answers that left, by number, since a crash may repeat one: true for the word of the party, false for a fault of the
    /// pump.
    left: BTreeMap<Number, bool>,
    /// States whether the note of the word is in the journal.
    noted: bool,
}

impl Race {
    fn new(seed: u64) -> Self {
        Self::of(seed, OnRestart::Reattach)
    }

    /// A race of a handler that a restart treats so. It may call a clerk, which never replies.
    fn of(seed: u64, on_restart: OnRestart) -> Self {
        let mut contract = Contract::new(Name::parse("judge").expect("a name"));
        (contract.accepts, contract.replies) = (vec![qname("q0")], vec![qname("a0")]);
        (contract.calls, contract.on_restart) = (vec![qname("q1")], on_restart);
        let mut clerk = Contract::new(Name::parse("clerk").expect("a name"));
        (clerk.accepts, clerk.replies) = (vec![qname("q1")], vec![qname("a1")]);
        let client = ClientContract::new(Name::parse("alice").expect("a name")).calls(vec![qname("q0")]);
        let blueprint = Arc::new(Blueprint::new("court", vec![contract, clerk], vec![client]));
        let (mut journal, now) = (MemoryJournal::new([7; 32]), TIME.parse().expect("a time"));
        let core = start(&blueprint, &mut journal, now);
        let mut race = Self {
            random: Random::new(seed),
            blueprint,
            journal,
            core,
            now,
            root: ThreadId::from_uuid(uuid::Uuid::from_u128(1 << 80)),
            appends: VecDeque::new(),
            running: None,
            said: None,
            told: None,
            left: BTreeMap::new(),
            noted: false,
        };
        race.send();
        race
    }

    fn send(&mut self) {
        let envelope = format!(
            "<message xmlns=\"{}\"><meta><from>alice</from><deadline xmlns=\"urn:systole:meta:v1\">{DEADLINE}</deadline>\
             </meta>{}</message>",
            ns::ENVELOPE,
            xml("q0", 1)
        );
        let permit = Gauge::new(1, usize::MAX).admit(0).expect("there is room");
        let (message, client) = (Raw::new(envelope).into(), self.blueprint.clients().next().expect("there is one").0);
        let (root, remote, last, attachment, place) = (self.root, false, true, None, None);
        let message = Injected { client, message, root, remote, last, attachment, permit, place };
        self.core.handle(Input::Injected(message), self.now);
        self.settle();
        assert!(self.running.is_some(), "the handler runs");
    }

    /// Takes one output; `false` if there is none.
    fn poll(&mut self) -> bool {
        let Some(output) = self.core.poll(self.now) else { return false };
        match output {
            Output::Append { .. } => self.appends.push_back(output),
            Output::Start(Start { invocation, listener, message, .. }) if listener == self.judge() => {
                self.running = Some((invocation, message.thread))
            }
            Output::Abort { invocation, .. } if self.running.take_if(|(id, _)| *id == invocation).is_some() => {
                self.core.handle(Input::Finished { invocation, outcome: HandlerOutcome::Aborted }, self.now);
            }
            Output::Egress { egress, .. } if egress.number != 0 => {
                let code = egress.fault.as_ref().map(|fault| fault.code);
                self.left.insert(egress.number, code.is_none_or(|code| code == FaultCode::Failed));
                self.core.handle(Input::Read { number: egress.number, at_once: true }, self.now);
            }
            Output::Taken { ticket, end } => {
                assert_eq!((ticket, self.told), (TICKET, None), "the party is told once");
                self.told = Some(end);
            }
            _ => {}
        }
        true
    }

    fn judge(&self) -> ListenerId {
        self.blueprint.listeners().next().expect("there is one").0
    }

    /// Writes the oldest step.
    fn write(&mut self) -> bool {
        let Some(Output::Append { number, step }) = self.appends.pop_front() else { return false };
        let is_note = |op: &Op| matches!(op, Op::Note(note) if &*note.name == "word");
        if step.ops.iter().any(is_note) {
            assert!(step.ops.iter().any(|op| matches!(op, Op::Done { .. })), "the word ends its message: {step:?}");
            self.noted = true;
        }
        self.journal.write(&[step]).expect("it is memory");
        self.core.handle(Input::Appended { number }, self.now);
        true
    }

    fn settle(&mut self) {
        while self.poll() || self.write() {}
    }

    /// The party says its word, if its handler runs.
    fn say(&mut self) {
        let Some((invocation, _)) = self.running.take() else { return };
        let is_answer = self.random.once_in(2);
        self.said = Some(is_answer);
        self.attach(invocation);
        self.step_a_little();
        let outcome = match is_answer {
            true => HandlerOutcome::Emitted(vec![reply("a0", 1)]),
            false => HandlerOutcome::Failed(Failure::new("no")),
        };
        self.core.handle(Input::Finished { invocation, outcome }, self.now);
    }

    fn attach(&mut self, invocation: InvocationId) {
        let note = AttachedNote { index: 0, name: "word".into(), value: "1".into() };
        let attachment = Attachment { ops: Vec::new(), note: Some(note), ticket: TICKET };
        self.core.handle(Input::Attached { invocation, attachment }, self.now);
    }

    fn rival(&mut self, rival: &str) {
        let thread = self.running.map_or(self.root, |(_, thread)| thread);
        let cancel = |thread, root| Input::Operate {
            ticket: 1,
            operation: Operation::Cancel { root, thread, why: Cancellation::Operator },
            act: None,
        };
        match rival {
            "deadline" => self.now = DEADLINE.parse().expect("a time"),
            "conversation" => self.core.handle(cancel(self.root, self.root), self.now),
            "thread" => self.core.handle(cancel(thread, self.root), self.now),
            _ => {
                // What is not written is lost; the deadline passes before the next start.
                (self.appends, self.running) = (VecDeque::new(), None);
                self.now = DEADLINE.parse().expect("a time");
                self.core = start(&self.blueprint, &mut self.journal, self.now);
            }
        }
    }

    fn step_a_little(&mut self) {
        for _ in 0..self.random.below(12) {
            let _ = if self.random.once_in(2) { self.poll() } else { self.write() };
        }
    }

    /// Plays the race; how it ended.
    fn play(mut self, rival: &str) -> Option<AttachmentEnd> {
        let is_first = self.random.once_in(3);
        if is_first {
            self.rival(rival);
            self.step_a_little();
        }
        self.say();
        self.step_a_little();
        if !is_first {
            self.rival(rival);
        }
        self.settle();
        let is_reply = self.left.values().eq([&true]);
        match self.told {
            Some(AttachmentEnd::Effective) => assert!(is_reply, "{rival}: accepted, but {:?} left", self.left),
            Some(AttachmentEnd::Late) => assert!(!is_reply, "{rival}: refused, but it left"),
            Some(AttachmentEnd::Dropped) => panic!("{rival}: nobody stopped the core"),
            None => assert!(self.said.is_none() || rival == "crash", "{rival}: the party is never told"),
        }
        assert_eq!(self.left.len(), 1, "{rival}: one answer leaves, but {:?}", self.left);
        assert_eq!(self.noted, is_reply, "{rival}: the note stands for what counted");
        self.told
    }
}

fn start(blueprint: &Arc<Blueprint>, journal: &mut MemoryJournal, now: Time) -> Core {
    let recovered = journal.recover().expect("it is memory");
    start_shard(blueprint, recovered, (CoreId(0), 1, Partitions::ALL), &Directory::default(), now)
}

#[test]
fn a_party_is_told_that_its_answer_counts_if_and_only_if_it_is_the_answer_of_the_thread() {
    for rival in RIVALS {
        let mut ends = [0; 3];
        for seed in 0..500 {
            let played = std::panic::catch_unwind(|| Race::new(seed).play(rival));
            match played.unwrap_or_else(|_| panic!("the race of seed {seed} against {rival}")) {
                Some(AttachmentEnd::Effective) => ends[0] += 1,
                Some(_) => ends[1] += 1,
                None => ends[2] += 1,
            }
        }
        assert!(ends[0] > 20 && ends[1] + ends[2] > 20, "{rival} never wins, or always: {ends:?}");
    }
}

#[test]
fn a_party_whose_word_is_no_answer_of_the_thread_is_told_that_it_does_not_count() {
    let outcomes = [
        HandlerOutcome::Emitted(Vec::new()),
        HandlerOutcome::Emitted(vec![call("q0", 1)]),
        HandlerOutcome::Wrote(Raw::new("no element at all")),
        HandlerOutcome::Panicked,
    ];
    for outcome in outcomes {
        let (mut race, what) = (Race::new(1), format!("{outcome:?}"));
        let (invocation, _) = race.running.take().expect("the handler runs");
        race.attach(invocation);
        race.core.handle(Input::Finished { invocation, outcome }, race.now);
        race.settle();
        assert_eq!((race.told, race.noted), (Some(AttachmentEnd::Late), false), "{what}");
        assert!(race.left.values().all(|is_word| !is_word), "{what}: {:?}", race.left);
    }
}

#[test]
fn a_party_whose_handler_ends_without_the_calls_that_it_made_before_is_told_that_it_does_not_count() {
    let mut race = Race::of(1, OnRestart::Replay);
    let (invocation, _) = race.running.take().expect("the handler runs");
    let requests = vec![call("q1", 1)];
    race.core.handle(Input::Called { invocation, call: CallId(0), requests, join: Join::All, within: None }, race.now);
    race.settle();
    race.running = None;
    race.core = start(&race.blueprint, &mut race.journal, race.now);
    race.settle();
    let (invocation, _) = race.running.take().expect("the handler runs again");
    race.attach(invocation);
    race.core.handle(Input::Finished { invocation, outcome: HandlerOutcome::Emitted(vec![reply("a0", 1)]) }, race.now);
    race.settle();
    assert_eq!((race.told, race.noted), (Some(AttachmentEnd::Late), false));
}
