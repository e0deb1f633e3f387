//! Listeners with one slot, in an organism of one to four shards that is killed and stopped at random: messages go out
//! in the order in which they came in, and never two run at once.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use bytes::Bytes;
use systole_core::core::*;
use systole_core::journal::{Journal, MailRecord, MailStatus, MemoryJournal, Op, Step};
use systole_core::vocab::{MessageId, Name, Partition, ThreadId, Time, ns};
use systole_xml::ladder::Raw;
use uuid::Uuid;

use super::random::Random;
use super::simulation::{shares, start_shard};
use crate::payloads::{number, qname, reply, xml};

const LISTENERS: usize = 3;

struct Organism {
    random: Random,
    journal: MemoryJournal,
    blueprint: Arc<Blueprint>,
    cores: Vec<Core>,
    /// Messages between shards, in order for each pair.
    links: VecDeque<(usize, CoreMessage)>,
    /// The handlers of each listener, with their shards and numbers.
    running: Vec<(usize, usize, InvocationId, i64)>,
    /// The messages of each listener that have not ended, in order of arrival.
    expected: Vec<VecDeque<i64>>,
    conversations: Vec<ThreadId>,
    /// The verdicts on messages that came in, by ticket: true if the message was accepted.
    taken: HashMap<u64, AttachmentEnd>,
    /// The ids of messages that were started.
    ids: HashMap<i64, MessageId>,
    now: Time,
    next: i64,
    restarts: usize,
}

impl Organism {
    fn new(seed: u64) -> Self {
        let listeners = (0..LISTENERS).map(|i| {
            let mut contract = Contract::new(Name::parse(&format!("l{i}")).expect("a name"));
            contract.accepts = vec![qname(&format!("q{i}"))];
            contract.replies = vec![qname(&format!("a{i}"))];
            contract.concurrency = 1;
            contract
        });
        let calls = (0..LISTENERS).map(|i| qname(&format!("q{i}"))).collect();
        let client = ClientContract::new(Name::parse("alice").expect("a name")).calls(calls);
        let mut blueprint = Blueprint::new("order", listeners.collect(), vec![client]);
        blueprint.limits.max_attempts = 200;
        let mut organism = Self {
            random: Random::new(seed),
            journal: MemoryJournal::new([7; 32]),
            blueprint: Arc::new(blueprint),
            cores: Vec::new(),
            links: VecDeque::new(),
            running: Vec::new(),
            expected: vec![VecDeque::new(); LISTENERS],
            conversations: Vec::new(),
            taken: HashMap::new(),
            ids: HashMap::new(),
            now: "2030-01-01T00:00:00Z".parse().expect("a time"),
            next: 0,
            restarts: 0,
        };
        organism.start();
        organism
    }

    /// Starts with as many shards as chance wants; some say what they want before others are there.
    fn start(&mut self) {
        let shards = 1 + self.random.below(4) as u16;
        let directory = Directory::default();
        let recovered = self.journal.recover().expect("it is memory").split(&shares(shards));
        let start = |((shard, partitions), recovered)| {
            start_shard(&self.blueprint, recovered, (CoreId(shard), shards, partitions), &directory, self.now)
        };
        self.cores = (0..).zip(shares(shards)).zip(recovered).map(start).collect();
        (self.running, self.links) = (Vec::new(), VecDeque::new());
    }

    fn restart(&mut self) {
        self.restarts += 1;
        if self.random.once_in(2) {
            // One shard after the other: the rest goes on meanwhile.
            for stopped in 0..self.cores.len() {
                self.cores[stopped].handle(Input::Stop, self.now);
                for _ in 0..self.random.below(3) {
                    for shard in 0..self.cores.len() {
                        while self.poll(shard) {}
                    }
                    while self.carry() {}
                }
            }
            for shard in 0..self.cores.len() {
                while self.poll(shard) {}
            }
            self.journal.close().expect("it is memory");
        }
        self.start();
    }

    /// Takes one output of a shard; `false` if there is none.
    fn poll(&mut self, shard: usize) -> bool {
        let Some(output) = self.cores[shard].poll(self.now) else { return false };
        match output {
            Output::Append { number, step } => {
                self.journal.write(&[step]).expect("it is memory");
                self.cores[shard].handle(Input::Appended { number }, self.now);
            }
            Output::Start(Start { invocation, listener, message }) => {
                let Body::Payload { payload, .. } = &message.body else { panic!("a fault: {:?}", message.body) };
                let listener = self.blueprint.listeners().position(|(id, _)| id == listener).expect("one of ours");
                let n = number(payload.payload());
                let before = self.running.iter().find(|(_, other, ..)| *other == listener);
                assert_eq!(before, None, "two handlers of l{listener} run: the second has {n}");
                assert_eq!(self.expected[listener].front(), Some(&n), "the order at l{listener}");
                self.running.push((shard, listener, invocation, n));
                self.ids.insert(n, message.id);
            }
            Output::Abort { invocation, .. } => {
                self.running.retain(|(other, _, id, _)| (*other, *id) != (shard, invocation));
                self.cores[shard].handle(Input::Finished { invocation, outcome: HandlerOutcome::Aborted }, self.now);
            }
            Output::Core { to, message } => self.links.push_back((usize::from(to.0), message)),
            Output::Egress { egress, .. } if egress.number != 0 => {
                assert!(egress.fault.is_none(), "{:?}", egress.fault);
                self.cores[shard].handle(Input::Read { number: egress.number, at_once: true }, self.now);
            }
            Output::Taken { ticket, end } => {
                self.taken.insert(ticket, end);
            }
            _ => {}
        }
        true
    }

    fn carry(&mut self) -> bool {
        let Some((to, message)) = self.links.pop_front() else { return false };
        self.cores[to].handle(Input::Core(message), self.now);
        true
    }

    /// A message comes in, and is taken before the next one does.
    fn send(&mut self) {
        let (listener, shard) = (self.random.below(LISTENERS), self.random.below(self.cores.len()));
        self.send_to(listener, shard);
        // The messages of its shard to the others are on their way before the client learns that it was accepted.
        while self.carry() {}
    }

    /// A message comes in at a shard, which takes it; the others don't know yet. Returns its number.
    fn send_to(&mut self, listener: usize, shard: usize) -> i64 {
        self.send_into(None, listener, shard)
    }

    /// A message comes in as [`send_to`](Self::send_to) says, into that conversation or a new one.
    fn send_into(&mut self, conversation: Option<ThreadId>, listener: usize, shard: usize) -> i64 {
        self.next += 1;
        let (n, ticket) = (self.next, self.next as u64);
        let root = Partition(shard as u8).place(ThreadId::from_uuid(Uuid::from_u128(u128::from(ticket) << 8)));
        let thread = conversation.map_or_else(String::new, |root| format!("<thread>{root}</thread>"));
        let envelope = format!(
            "<message xmlns=\"{}\"><meta><from>alice</from>{thread}</meta>{}</message>",
            ns::ENVELOPE,
            xml(&format!("q{listener}"), n)
        );
        let permit = Gauge::new(1, usize::MAX).admit(0).expect("there is room");
        let (message, attachment) =
            (Raw::new(envelope).into(), Some(Attachment { ops: Vec::new(), note: None, ticket }));
        let client = self.blueprint.clients().next().expect("there is one").0;
        let message = Injected { client, message, root, remote: false, last: false, attachment, permit, place: None };
        self.expected[listener].push_back(n);
        self.conversations.push(root);
        self.cores[shard].handle(Input::Injected(message), self.now);
        while !self.taken.contains_key(&(n as u64)) {
            assert!(self.poll(shard), "{n} is not taken");
        }
        assert_eq!(self.taken[&(n as u64)], AttachmentEnd::Effective);
        n
    }

    /// Goes on until nothing more happens.
    fn settle(&mut self) {
        loop {
            let polled = (0..self.cores.len()).filter(|&shard| self.poll(shard)).count();
            if polled == 0 && !self.carry() {
                return;
            }
        }
    }

    fn end_one(&mut self) {
        if self.running.is_empty() {
            return;
        }
        let at = self.random.below(self.running.len());
        let (shard, listener, invocation, n) = self.running.swap_remove(at);
        let outcome = HandlerOutcome::Emitted(vec![reply(&format!("a{listener}"), n)]);
        assert_eq!(self.expected[listener].pop_front(), Some(n));
        self.cores[shard].handle(Input::Finished { invocation, outcome }, self.now);
        // It has ended for good when that is written.
        while self.poll(shard) {}
    }

    fn play(mut self) -> usize {
        for _ in 0..60 {
            match self.random.below(12) {
                0..4 => self.send(),
                4..8 => {
                    let shard = self.random.below(self.cores.len());
                    self.poll(shard);
                }
                8 | 9 => {
                    self.carry();
                }
                10 => self.end_one(),
                _ => self.restart(),
            }
        }
        let mut rounds = 0;
        while self.expected.iter().any(|line| !line.is_empty()) {
            rounds += 1;
            assert!(rounds < 10_000, "these never come: {:?}", self.expected);
            for shard in 0..self.cores.len() {
                while self.poll(shard) {}
            }
            while self.carry() {}
            self.end_one();
        }
        self.restarts
    }
}

#[test]
fn order_in_is_order_out_over_restarts_and_shards() {
    let histories = super::number("SYSTOLE_HISTORIES").unwrap_or(super::HISTORIES) / 10;
    let mut restarts = 0;
    for seed in 0..histories {
        let played = std::panic::catch_unwind(|| Organism::new(seed).play());
        restarts += played.unwrap_or_else(|_| panic!("the history of seed {seed} is out of order"));
    }
    assert!(restarts as u64 > histories, "the histories hardly restart: {restarts} in {histories}");
}

#[test]
fn a_handler_that_had_begun_before_a_crash_begins_first() {
    let mut organism = Organism::new(0);
    while organism.cores.len() != 1 {
        organism.start();
    }
    // Conversations take turns, so the message of the second one goes before the third of the first.
    let first = organism.send_to(0, 0);
    let conversation = organism.conversations[0];
    let [second, third] = [0; 2].map(|listener| organism.send_into(Some(conversation), listener, 0));
    let other = organism.send_to(0, 0);
    organism.expected[0] = [first, second, other, third].into();
    for _ in 0..2 {
        organism.settle();
        organism.end_one();
    }
    organism.settle();
    for _ in 0..3 {
        assert_eq!(organism.running.iter().map(|(.., n)| *n).collect::<Vec<_>>(), [other]);
        organism.start();
        organism.settle();
    }
}

#[test]
fn a_message_that_stands_in_a_mailbox_keeps_its_slot_over_restarts() {
    let mut inverted = 0;
    for seed in 0..40 {
        let mut organism = Organism::new(seed);
        while organism.cores.len() != 2 {
            organism.start();
        }
        // Two clients at once: the second message comes from the home of the listener's slots, and gets there first.
        let (first, second) = (organism.send_to(0, seed as usize % 2), organism.send_to(0, 1 - seed as usize % 2));
        organism.expected[0] = [second, first].into();
        let home_is_second = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| organism.settle())).is_ok();
        if !home_is_second {
            continue;
        }
        inverted += 1;
        // It is in the mailbox of an agent elsewhere.
        let mail = MailRecord {
            seq: 1,
            mailbox: Name::parse("l0").expect("a name"),
            id: organism.ids[&second],
            thread: organism.conversations[0],
            from: Name::parse("alice").expect("a name"),
            in_reply_to: None,
            payload: qname("q0"),
            envelope: Bytes::new(),
            at: organism.now,
        };
        let ops = vec![Op::Mail(mail, MailStatus::default())];
        organism.journal.write(&[Step { ops, at: organism.now }]).expect("it is memory");
        for _ in 0..3 {
            organism.start();
            organism.settle();
            assert_eq!(organism.running.iter().map(|(.., n)| *n).collect::<Vec<_>>(), [second], "seed {seed}");
        }
    }
    assert!(inverted > 5, "{inverted} times");
}
