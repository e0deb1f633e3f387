//! Steps that an organism could have made, and some that it could not.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use bytes::Bytes;
use systole::journal::{JournalOptions, Retention, SqliteJournal};
use systole::vocab::{
    Amounts, BrokenRule, Budget, Fault, FaultCode, MessageId, Millionths, Name, Partition, Position, TaskId, ThreadId,
    ThreadPath, Time,
};
use systole_core::journal::{
    AgentRecord, AnswerRecord, BodyRecord, BudgetRecord, CallRecord, EgressRecord, FanId, FanOutcome, FanRecord,
    LetterPlace, LetterRecord, Link, MailRecord, MailState, MailStatus, MessageRecord, MessageState, NoteRecord,
    Number, Op, Owner, Recovered, Registration, RememberedRecord, ReplyTo, RequestRecord, SettledRecord, StateRecord,
    Step, SubmissionRecord, TaskRecord, ThreadRecord,
};
use uuid::Uuid;

pub(crate) const KEY: [u8; 32] = [7; 32];

/// A folder of a test, deleted with this value.
pub(crate) struct Folder(PathBuf);

impl Folder {
    pub(crate) fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let name = format!("systole-journal-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        // In memory where there is such a folder, since these tests don't test the disk.
        let memory = Path::new("/dev/shm");
        let path = if memory.is_dir() { memory.join(name) } else { std::env::temp_dir().join(name) };
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    pub(crate) fn journal(&self) -> PathBuf {
        self.0.join("organism.journal")
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

pub(crate) fn open(file: &Path) -> SqliteJournal {
    SqliteJournal::open(file, &JournalOptions::new(KEY)).unwrap()
}

/// Opens a journal that keeps no ended rows.
pub(crate) fn open_keeping_nothing(file: &Path) -> SqliteJournal {
    let retention = Retention::default().age(Duration::ZERO);
    SqliteJournal::open(file, &JournalOptions::new(KEY).retention(retention)).unwrap()
}

/// Returns the recovered state without the parts that change with each start.
pub(crate) fn content(mut recovered: Recovered) -> Recovered {
    (recovered.epoch, recovered.crashed) = (0, false);
    recovered
}

/// Drops the ordinals of children, too: they come from ended rows, of which retention deletes some.
pub(crate) fn open_rows(recovered: Recovered) -> Recovered {
    Recovered { ordinals: Vec::new(), ..content(recovered) }
}

/// Numbers that look random, the same on each run.
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// Draws a number below a bound.
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        // xorshift64*, <https://doi.org/10.18637/jss.v008.i14>.
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 32) % bound
    }
}

/// Makes steps out of random numbers.
#[derive(Default)]
pub(crate) struct Story {
    next: Number,
    now: u64,
    threads: Vec<Number>,
    messages: Vec<Number>,
    fans: Vec<FanId>,
    egress: Vec<Number>,
    letters: Vec<Number>,
    mail: Vec<Number>,
    last_mail: Number,
}

impl Story {
    /// Makes steps, the same for the same seed.
    pub(crate) fn steps(seed: u64, count: usize) -> Vec<Step> {
        let mut story = Self::default();
        let mut dice = Dice::new(seed);
        (0..count).map(|_| story.random_step(&mut dice)).collect()
    }

    /// Makes steps with operations on tasks, mailboxes and submissions, too.
    pub(crate) fn whole_steps(seed: u64, count: usize) -> Vec<Step> {
        let mut story = Self::default();
        let mut dice = Dice::new(seed);
        let step = |_| {
            let mut step = story.random_step(&mut dice);
            let later = (0..=dice.below(4)).map(|_| (dice.below(256) as u8, dice.below(1 << 16) as u16));
            step.ops.extend(later.map(|(kind, pick)| story.later(kind, pick)));
            step
        };
        (0..count).map(step).collect()
    }

    pub(crate) fn random_step(&mut self, dice: &mut Dice) -> Step {
        let ops = (0..=dice.below(4)).map(|_| (dice.below(256) as u8, dice.below(1 << 16) as u16)).collect::<Vec<_>>();
        self.step(&ops)
    }

    /// Makes one step; each pair is a kind of operation and its subject.
    pub(crate) fn step(&mut self, ops: &[(u8, u16)]) -> Step {
        self.now += 1_000_000;
        let ops = ops.iter().map(|&(kind, pick)| self.op(kind, pick)).collect();
        Step { ops, at: Time::from_nanos(self.now) }
    }

    fn op(&mut self, kind: u8, pick: u16) -> Op {
        let n = pick as usize;
        let (thread, message) = (some(&self.threads, n), some(&self.messages, n));
        match kind % 27 {
            0..4 => {
                let number = self.number();
                self.threads.push(number);
                Op::Open(thread_record(number, thread, n))
            }
            4..9 => {
                let number = self.number();
                self.messages.push(number);
                Op::Put(message_record(number, thread, n))
            }
            9 => Op::Put(message_record(message, thread, n / 3)),
            10..14 => Op::Done { message },
            14 => Op::Cancelled { message },
            15 => Op::Close { thread },
            16 => Op::Attempt { message, attempts: u32::from(pick) % 7 },
            17 => {
                let call = (!n.is_multiple_of(3)).then_some(u32::from(pick) % 4);
                let id = FanId { message, call };
                self.fans.push(id);
                Op::Fan(fan_record(id, thread, n))
            }
            18 => Op::Delivered { fan: self.fan(n), count: u32::from(pick) % 4 },
            19 => Op::CountedOff { fan: self.fan(n), count: u32::from(pick) % 3 },
            20 => Op::Settled { fan: self.fan(n), settled: settled(n) },
            21 => match n % 4 {
                0 => Op::Dropped { fan: self.fan(n) },
                1 => Op::Decided { fan: self.fan(n), order: self.number(), result: Err(fault(n)) },
                _ => {
                    Op::Decided { fan: self.fan(n), order: self.number(), result: Ok(vec![settled(n), settled(n / 7)]) }
                }
            },
            22 => Op::Note(NoteRecord {
                message,
                index: u32::from(pick) % 5,
                name: "now".into(),
                value: format!("\"{pick}\"").into(),
            }),
            23 if n.is_multiple_of(5) => {
                Op::Forget { thread, before: if n.is_multiple_of(2) { Number::MAX } else { self.next / 2 } }
            }
            23 => {
                let number = self.number();
                let (place, link) = (0, Link::None);
                Op::Remember(RememberedRecord { number, thread, place, link, from: name(n), payload: payload(n) })
            }
            24 => match n % 3 {
                0 => Op::Read { egress: some(&self.egress, n) },
                _ => {
                    let number = self.number();
                    self.egress.push(number);
                    Op::Leave(egress_record(number, n))
                }
            },
            25 => match n % 3 {
                0 => Op::LetterGone { letter: some(&self.letters, n) },
                _ => {
                    let number = self.number();
                    self.letters.push(number);
                    Op::Letter(letter_record(number, n))
                }
            },
            _ if n.is_multiple_of(2) => Op::Left { thread },
            _ => Op::Owes { thread, opened_by: message_id(n), reply_to: reply_to(n) },
        }
    }

    /// Makes an operation on tasks, states, mailboxes and submissions.
    pub(crate) fn later(&mut self, kind: u8, pick: u16) -> Op {
        let n = pick as usize;
        let (inbox, id) = (name(n / 3), TaskId::from_uuid(Uuid::from_u128(n as u128 % 5)));
        match kind % 16 {
            6..9 => {
                self.last_mail += 1;
                self.mail.push(self.last_mail);
                Op::Mail(mail_record(self.last_mail, n), mail_status(n / 3))
            }
            9 => {
                // It comes again, as after a crash.
                self.last_mail += 1;
                Op::Mail(mail_record(self.last_mail, n % 4), mail_status(n))
            }
            10..12 => Op::MailStatus { seq: some(&self.mail, n), status: mail_status(n / 5) },
            12 => {
                let from = some(&self.mail, n);
                self.last_mail += 1;
                self.mail.push(self.last_mail);
                Op::MailMoved { from, to: self.last_mail, status: mail_status(n) }
            }
            13 => Op::MailGone { seq: some(&self.mail, n) },
            14 => Op::Agent(agent_record(n)),
            15 => Op::Submitted(submission_record(some(&self.threads, n), n)),
            0 => Op::TaskGone { inbox, id },
            1..3 => {
                let (state, body) = ("pending".into(), format!("{{\"n\":{n}}}").into());
                Op::Task(TaskRecord { inbox, id, place: self.number(), state, body })
            }
            3 => Op::State(StateRecord { listener: name(n), blob: payload(n) }),
            4 => Op::Forgotten { fan: self.fan(n) },
            _ => {
                let number = self.number();
                Op::Open(ThreadRecord { owner: Owner::Boot, ..thread_record(number, number, n) })
            }
        }
    }

    /// Makes an operation on a budget.
    pub(crate) fn budget(&self, pick: u16) -> Op {
        let n = u64::from(pick);
        let budget = Budget::NONE
            .tokens(n.is_multiple_of(2).then_some(n << 32))
            .cost(n.is_multiple_of(3).then_some(Millionths(n)))
            .calls(n.is_multiple_of(5).then_some(0))
            .threads(n.is_multiple_of(7).then_some(u64::MAX));
        let spent = Amounts { tokens: n / 2, cost: Millionths(u64::MAX - n), calls: n / 3, threads: n / 4 };
        Op::Budget(BudgetRecord { thread: some(&self.threads, pick.into()), budget, spent })
    }

    /// Makes an operation on the context of a thread.
    pub(crate) fn context(&mut self, pick: u16) -> Op {
        let n = pick as usize;
        let thread = some(&self.threads, n / 5);
        if n.is_multiple_of(5) {
            let epoch = 1 << 48;
            let before = if n.is_multiple_of(2) { Number::MAX } else { epoch + (1 << 40) + self.next };
            return Op::ForgetBetween { thread, after: epoch + self.next / 2, before };
        }
        let link = match n % 3 {
            0 => Link::None,
            1 => Link::Answers(u32::from(pick)),
            _ => Link::Calls((0..n % 4).map(message_id).collect()),
        };
        // Calls of which there are none are no link.
        let link = if link == Link::Calls(Vec::new()) { Link::None } else { link };
        let (number, place) = (self.number(), 1 + u32::from(pick));
        Op::Remember(RememberedRecord { number, thread, place, link, from: name(n), payload: payload(n) })
    }

    fn number(&mut self) -> Number {
        self.next += 1;
        1 << 48 | (self.next % 2) << 40 | self.next
    }

    fn fan(&self, n: usize) -> FanId {
        if self.fans.is_empty() { FanId { message: 1, call: None } } else { self.fans[n % self.fans.len()] }
    }
}

/// Picks one of the existing numbers, mostly of the last.
fn some(of: &[Number], n: usize) -> Number {
    match of.len() {
        0 => 1,
        len if n.is_multiple_of(4) => of[n % len],
        len => of[len - 1 - n % len.min(6)],
    }
}

pub(crate) fn thread_record(number: Number, parent: Number, n: usize) -> ThreadRecord {
    let root = n.is_multiple_of(3);
    ThreadRecord {
        number,
        id: ThreadId::from_uuid(Uuid::from_u128(number as u128 * 31)),
        parent: (!root).then_some(parent),
        root: if root { number } else { parent },
        owner: match n % 4 {
            0 => Owner::Client(name(n)),
            1 => Owner::None,
            _ => Owner::Listener(name(n)),
        },
        ordinal: n as u32 % 9,
        depth: n as u16 % 64,
        opened_by: message_id(n),
        reply_to: reply_to(n),
        deadline: if n.is_multiple_of(2) { Time::MAX } else { Time::from_nanos(n as u64) },
        own_deadline: n.is_multiple_of(5),
        spawned: n.is_multiple_of(7),
        left: n.is_multiple_of(11),
        label: (n.is_multiple_of(2)).then(|| "a label \u{fc}".into()),
        traceparent: (n.is_multiple_of(3)).then(|| "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01".into()),
    }
}

pub(crate) fn message_record(number: Number, thread: Number, n: usize) -> MessageRecord {
    MessageRecord {
        number,
        place: number + n as u64 % 3,
        thread,
        id: message_id(n),
        from: name(n),
        in_reply_to: (n.is_multiple_of(2)).then(|| message_id(n + 1)),
        answers: reply_to(n),
        state: match n % 4 {
            0 => MessageState::Delayed(Time::from_nanos(n as u64)),
            1 => MessageState::Backlog(reply_to(n / 4)),
            _ => MessageState::Queued,
        },
        body: match n % 5 {
            0 => BodyRecord::Fault(fault(n)),
            1 => BodyRecord::Fatal(fault(n)),
            _ => BodyRecord::Payload(payload(n)),
        },
        attempts: n as u32 % 2,
    }
}

pub(crate) fn fan_record(id: FanId, thread: Number, n: usize) -> FanRecord {
    let call = id.call.map(|_| CallRecord {
        requests: vec![RequestRecord {
            to: (n.is_multiple_of(2)).then(|| name(n)),
            thread: (n.is_multiple_of(3)).then(|| ThreadId::from_uuid(Uuid::from_u128(n as u128))),
            text: "<question>\"?\"</question>".into(),
            digest: [n as u8; 32],
        }],
        join: ["all", "first", "settled", "2"][n % 4].into(),
        until: n.is_multiple_of(3).then(|| Time::from_nanos(1_900_000_000_123_456_789 + n as u64)),
        settled: (0..n % 3).map(settled).collect(),
        outcome: if n.is_multiple_of(13) { FanOutcome::Dropped } else { FanOutcome::Open },
    });
    FanRecord { id, thread, source: message_id(n), total: 1 + n as u32 % 4, delivered: 0, counted_off: 0, call }
}

pub(crate) fn settled(n: usize) -> SettledRecord {
    let outcome = match n % 3 {
        0 => Err(fault(n)),
        _ => Ok(AnswerRecord { from: name(n), payload: payload(n % 4) }),
    };
    SettledRecord { index: n as u32 % 4, outcome }
}

pub(crate) fn egress_record(number: Number, n: usize) -> EgressRecord {
    EgressRecord {
        number,
        client: name(n),
        root: ThreadId::from_uuid(Uuid::from_u128(n as u128)),
        from: name(n + 1),
        in_reply_to: (n.is_multiple_of(2)).then(|| "label".into()),
        envelope: payload(n),
        fault: (n.is_multiple_of(3)).then(|| fault(n)),
        payload: payload(n + 1),
    }
}

fn mail_record(seq: Number, n: usize) -> MailRecord {
    MailRecord {
        seq,
        mailbox: Name::parse(["remote", "far.away"][n % 2]).unwrap(),
        id: message_id(n),
        thread: ThreadId::from_uuid(Uuid::from_u128(n as u128 * 17)),
        from: name(n),
        in_reply_to: n.is_multiple_of(3).then(|| message_id(n + 1)),
        payload: "{urn:example}note".parse().unwrap(),
        envelope: payload(n),
        at: Time::from_nanos(n as u64 * 1_000),
    }
}

fn mail_status(n: usize) -> MailStatus {
    MailStatus {
        state: MailState::ALL[n % MailState::ALL.len()],
        deliveries: n as u32 % 6,
        due: if n.is_multiple_of(4) { Time::MAX } else { Time::from_nanos(n as u64) },
        receipt: n.is_multiple_of(2).then_some([n as u8; 16]),
        spent: n as u64 * 1_000_003,
        error: n.is_multiple_of(3).then(|| format!("refused {n}").into()),
        answer: n.is_multiple_of(5).then(|| Bytes::from(vec![n as u8; n % 100])),
    }
}

fn agent_record(n: usize) -> AgentRecord {
    let registration = || Registration {
        at: Time::from_nanos(n as u64),
        mode: "push".into(),
        url: n.is_multiple_of(2).then(|| "https://example.com/in".into()),
        declared: n.is_multiple_of(5).then(|| "https://example.com/declared".into()),
    };
    AgentRecord {
        name: name(n),
        paused: n.is_multiple_of(3).then(|| Time::from_nanos(n as u64 * 7)),
        registered: n.is_multiple_of(4).then(registration),
    }
}

/// Makes a submission of a thread's conversation, if the thread is a root.
pub(crate) fn submission_record(thread: Number, n: usize) -> SubmissionRecord {
    SubmissionRecord {
        id: message_id(n),
        client: name(n),
        root: ThreadId::from_uuid(Uuid::from_u128(thread as u128 * 31)),
        key: n.is_multiple_of(2).then(|| (format!("key {n}").into(), [n as u8; 32])),
    }
}

pub(crate) fn letter_record(number: Number, n: usize) -> LetterRecord {
    LetterRecord {
        number,
        partition: Partition(n as u8),
        at: Time::from_nanos(n as u64),
        from: name(n),
        to: (n.is_multiple_of(2)).then(|| name(n + 1)),
        place: LetterPlace {
            conversation: n.is_multiple_of(4).then(|| ThreadId::from_uuid(Uuid::from_u128(n as u128 * 31))),
            path: ThreadPath::new((0..n % 3).map(|at| (name(n), 1 + at as u32)).collect()),
        },
        payload: (!n.is_multiple_of(3)).then(|| ("{urn:example}note".parse().unwrap(), payload(n))),
        reason: fault(n),
    }
}

fn reply_to(n: usize) -> ReplyTo {
    match n % 4 {
        0 => ReplyTo::None,
        1 => ReplyTo::Single,
        2 => ReplyTo::Fan(FanId { message: n as u64, call: None }, n as u32 % 9),
        _ => ReplyTo::Fan(FanId { message: n as u64, call: Some(n as u32 % 5) }, 3),
    }
}

fn fault(n: usize) -> Fault {
    let rule = BrokenRule {
        rule: "too \"long\"".into(),
        at: (n.is_multiple_of(2)).then_some(Position { line: 3, column: 1 }),
        example: (n.is_multiple_of(3)).then(|| "<a/>".into()),
    };
    Fault {
        code: FaultCode::ALL[n % FaultCode::ALL.len()],
        message: format!("fault {n}\u{1b}[2J").into(),
        retryable: n.is_multiple_of(2),
        in_reply_to: (n.is_multiple_of(3)).then(|| message_id(n)),
        rule: (n.is_multiple_of(4)).then(|| Box::new(rule)),
    }
}

fn message_id(n: usize) -> MessageId {
    MessageId::from_uuid(Uuid::from_u128(n as u128 * 12_345))
}

pub(crate) fn name(n: usize) -> Name {
    match n % 7 {
        0 => Name::core(),
        1 => Name::system(),
        n => Name::parse(["researcher", "calculator.v2", "cli", "a", "b-c"][n - 2]).unwrap(),
    }
}

pub(crate) fn payload(n: usize) -> Bytes {
    let filler = if n.is_multiple_of(50) { 9000 } else { n % 200 };
    format!("<note xmlns=\"urn:example\">{n} gr\u{fc}\u{df}e {}</note>", "x".repeat(filler)).into()
}
