//! Stores for tests: the suite that each store passes, and a store on a simulated server.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use systole_core::journal::{
    ActRecord, AppendError, Batch, BodyRecord, Durability, Journal, JournalError, JournalErrorKind, LetterPlace,
    LetterRecord, MailRecord, MailState, MailStatus, MemoryJournal, MessageRecord, MessageState, Number, Op, Owner,
    Recovered, ReplyTo, Step, Tail, TaskRecord, ThreadRecord, numbers_after,
};
use systole_core::vocab::{
    Fault, FaultCode, MessageId, Name, Partition, Partitions, TaskId, ThreadId, ThreadPath, Time,
};
use systole_store::principal::PrincipalKind;
use uuid::Uuid;

use crate::journal::{
    Claim, ConversationFilter, HistoryPosition, KeptLetter, LetterFilter, LetterPosition, Store, TaskFilter,
    TaskPosition,
};
use crate::runtime::{Token, block_on};

/// Checks that a store keeps the promises of [`Journal`]. `open` opens the same store again, whose process may have ended
/// without closing it; it is empty at first.
///
/// # Panics
/// If the store breaks a promise: the message says which.
pub fn check_journal(mut open: impl FnMut() -> Box<dyn Journal>) {
    let [even, odd] = [0, 1].map(|half| Partitions::share(half, 2));
    let mut store = open();
    let empty = store.recover().expect("a new store can be recovered");
    assert!(empty.threads.is_empty() && !empty.crashed, "a new store is empty, and did not crash: {empty:?}");
    let (mut first, mut second) = (Tail::begin(even, empty.epoch), Tail::begin(odd, empty.epoch));
    let beside = Tail::begin(Partitions::default(), empty.epoch);

    // Steps of several logs are one append, and each log moves on by one.
    let mut batch = Batch::default();
    batch.push(first, open_conversation(empty.epoch, 1, Partition(0)));
    batch.push(second, open_conversation(empty.epoch, 2, Partition(1)));
    batch.push(first, open_conversation(empty.epoch, 3, Partition(2)));
    store.append(&batch).expect("the owners of shares append to them");
    (first.position, second.position) = (1, 1);

    // The same append again, as after a lost answer, and one behind a hole.
    let holed = Tail { position: 3, ..second };
    for stale in [Tail { position: 0, ..first }, holed, Tail { epoch: empty.epoch + 1, ..first }] {
        let mut batch = Batch::of(stale, vec![open_conversation(empty.epoch, 4, Partition(4))]);
        batch.push(if stale == holed { first } else { second }, open_conversation(empty.epoch, 5, Partition(5)));
        assert_eq!(store.append(&batch), Err(AppendError::Fenced(vec![stale])), "another end, and nothing is written");
    }
    let close = Step { ops: vec![Op::Close { thread: number(empty.epoch, 3) }], at: time(6) };
    store.append(&Batch::of(first, vec![close])).expect("a fenced append moves no log on");
    first.position += 1;
    let paused = Op::Paused { listener: name("l"), since: Some(time(1)) };
    store
        .append(&Batch::of(beside, vec![Step { ops: vec![paused], at: time(7) }]))
        .expect("what lives beside the cores");
    store.feed().expect("a store can be fed");
    assert!(store.is_fed(), "a store that was fed is");

    // A takeover fences the log that had the partition, and no other.
    let one = Partitions::from(Partition(0));
    let taken = store.adopt(&one).expect("partitions can be taken over");
    assert_eq!(roots(&taken), [Partition(0)], "the records of those partitions alone");
    assert!(taken.crashed, "nobody gave them up");
    assert!(taken.epoch > empty.epoch, "a takeover begins an epoch");
    let mut batch = Batch::of(first, vec![open_conversation(empty.epoch, 8, Partition(2))]);
    batch.push(second, open_conversation(empty.epoch, 9, Partition(1)));
    assert_eq!(store.append(&batch), Err(AppendError::Fenced(vec![first])));
    batch.drop_logs(&[first]);
    store.append(&batch).expect("the other log goes on");
    second.position += 1;
    let owner = Tail::begin(one, taken.epoch);
    store.append(&Batch::of(owner, vec![open_conversation(taken.epoch, 10, Partition(0))])).expect("the new owner");

    // Partitions that were given up can be taken over, all or some of them, and their log is at its end.
    store.release(&second).expect("the owner gives them up");
    let late = Batch::of(second, vec![open_conversation(empty.epoch, 11, Partition(1))]);
    assert_eq!(store.append(&late), Err(AppendError::Fenced(vec![second])), "it owns them no more");
    assert_eq!(store.release(&second), Err(AppendError::Fenced(vec![second])));
    let some = odd.without(&Partition(3).into());
    let taken = store.adopt(&some).expect("partitions can be taken over");
    assert!(!taken.crashed, "they were given up in order");
    assert_eq!(roots(&taken), [Partition(1), Partition(1)]);

    // A process that is killed and started again finds all that was confirmed, and nothing of what was refused.
    drop(store);
    let mut store = open();
    let again = store.recover().expect("a store can be recovered after its process was killed");
    assert!(again.crashed, "it was not closed");
    assert_eq!(again.key, empty.key, "the secret stays");
    assert!(again.epoch > taken.epoch, "a start begins an epoch");
    assert_eq!(roots(&again), [Partition(0), Partition(0), Partition(1), Partition(1)]);
    assert_eq!(again.messages.len(), 4, "with their messages");
    assert_eq!(again.paused.len(), 1, "with what lives beside the cores");
    let late = Batch::of(owner, vec![open_conversation(again.epoch, 12, Partition(0))]);
    assert!(matches!(store.append(&late), Err(AppendError::Fenced(_))), "a start takes all partitions over");
    while store.tidy(time(13)).expect("a store can be tidied") {}
    store.close().expect("a store can be closed");
    drop(store);
    assert!(!open().recover().expect("a store can be recovered after its end").crashed, "it was closed");
}

/// Checks that a store keeps the promises of [`Store`] to readers, queries, principals and editors. `open` names the same
/// store again, which does not exist yet.
///
/// # Panics
/// If the store breaks a promise: the message says which.
pub fn check_store<S: Store>(open: impl Fn() -> S) {
    let store = open();
    store.check().expect("a store that could be created is none that refuses");
    assert!(store.read().is_err(), "there is nothing to read before it is created");
    let claim = Some(Claim { organism: "suite", id: Uuid::from_u128(1) });
    let mut opened = store.open([5; 32], claim).expect("a store can be created");
    let epoch = opened.journal.recover().expect("a new store can be recovered").epoch;
    let beside = Tail::begin(Partitions::default(), epoch);
    let owner = Tail::begin(Partitions::ALL, epoch);
    let mut steps: Vec<_> = (1..=3).map(|n| open_conversation(epoch, n, Partition(n as u8))).collect();
    steps.push(Step { ops: vec![Op::Close { thread: number(epoch, 1) }], at: time(10) });
    let letters = [4, 5].map(|n| Op::Letter(letter(number(epoch, n), n)));
    steps.extend(letters.into_iter().zip(11..).map(|(op, n)| Step { ops: vec![op], at: time(n) }));
    opened.journal.append(&Batch::of(owner, steps)).expect("the owner appends");
    let task = |n: u64| TaskRecord {
        inbox: name("job"),
        id: TaskId::from_uuid(Uuid::from_u128(n.into())),
        place: n,
        state: if n == 1 { "pending".into() } else { "accepted".into() },
        body: format!("{{\"n\":{n}}}").into(),
    };
    let acts = (1..=3).map(|n| Step { ops: vec![act(n), Op::Task(task(n))], at: time(20 + n) });
    let mail = Step {
        ops: vec![Op::Mail(mail(1), MailStatus { state: MailState::Dead, ..MailStatus::default() })],
        at: time(30),
    };
    opened.journal.append(&Batch::of(beside, acts.chain([mail]).collect())).expect("what lives beside the cores");
    opened.journal.feed().expect("a store can be fed");

    // Queries see what is confirmed, in pages that follow each other.
    let query = store.ask(None, true).expect("a running organism is asked");
    let roots = pages(|after| {
        let before = after.copied();
        let (page, next) =
            block_on(query.conversations(ConversationFilter { before, limit: 2, ..Default::default() })).unwrap();
        (page.into_iter().map(|kept| (kept.root.record.number, kept.root.closed.is_some())).collect(), next)
    });
    let newest = [3, 2, 1].map(|n| (number(epoch, n), n == 1));
    assert_eq!(roots, newest, "conversations come newest first, open and ended");
    let found = pages(|after| {
        let filter = LetterFilter { after: after.copied(), limit: 1, ..Default::default() };
        let (page, next) = block_on(query.letters(filter)).unwrap();
        (page.iter().map(KeptLetter::position).collect(), next)
    });
    let expected = [number(epoch, 4), number(epoch, 5)].map(LetterPosition::Pump);
    assert_eq!(
        found,
        [&expected[..], &[LetterPosition::Mailbox(1)]].concat(),
        "dead letters of the pump, then of mailboxes"
    );
    let of = |text: &str| {
        let filter = LetterFilter { text: Some(text.into()), limit: 9, ..Default::default() };
        block_on(query.letters(filter)).unwrap().0.len()
    };
    assert_eq!([of("no 4"), of("no 6")], [1, 0], "a text in a reason is found");
    let tasks = pages(|after: Option<&TaskPosition>| {
        let (page, next) =
            block_on(query.tasks(TaskFilter { after: after.cloned(), limit: 2, ..Default::default() })).unwrap();
        (page.into_iter().map(|task| task.place).collect(), next)
    });
    assert_eq!(tasks, [1, 2, 3], "tasks come in order of arrival");
    let acted = pages(|after: Option<&Time>| {
        let (page, has_more) = block_on(query.acts(after.copied(), 2)).unwrap();
        let next = page.last().filter(|_| has_more).map(|last| last.at);
        (page.into_iter().map(|kept| kept.record.of.to_string()).collect(), next)
    });
    assert_eq!(acted, ["3", "2", "1"], "acts come newest first");
    let boxes = block_on(query.mailboxes(time(40))).unwrap();
    assert_eq!((boxes.len(), boxes[0].dead, boxes[0].waiting), (1, 1, 0), "a mailbox is counted");
    let root = Partition(2).place(ThreadId::from_uuid(Uuid::from_u128(u128::from(number(epoch, 2)) << 8)));
    let (history, next) = block_on(query.history_of(root, HistoryPosition::default(), 9)).unwrap();
    assert!(history.len() == 1 && next.is_none(), "a thread has its message: {history:?}");

    // Principals are admitted and dismissed while the organism runs.
    let mut principals = store.admit([5; 32]).expect("principals can be admitted");
    let token = principals.admit(name("boss"), PrincipalKind::Admin, time(50)).expect("a new principal");
    let bearer = |token: &Token| block_on(query.bearer(token.hash())).unwrap().map(|principal| principal.name);
    assert_eq!(bearer(&token), Some(name("boss")), "a token is known at once");
    let newer = principals.admit(name("boss"), PrincipalKind::Admin, time(51)).expect("a newer token");
    assert_eq!((bearer(&token), bearer(&newer)), (None, Some(name("boss"))), "it replaces the one before");
    assert_eq!(principals.list().unwrap().len(), 1);
    assert!(principals.dismiss(&name("boss")).unwrap() && !principals.dismiss(&name("boss")).unwrap());
    assert_eq!(bearer(&newer), None, "a revoked token is none");
    assert!(store.edit().is_err(), "nothing is edited while an organism runs");
    drop((query, principals));
    opened.journal.close().expect("a store can be closed");
    drop(opened);

    // Readers see one state; editors change it, with the record of each act, and the next start has it.
    let reader = store.read().expect("a store that was closed is read");
    reader.check_owner("suite").expect("it belongs to the organism that claimed it");
    assert!(reader.check_owner("another").is_err());
    let stat = reader.stat().unwrap();
    assert_eq!((stat.open_conversations, stat.dead_letters, stat.ended_in_order), (2, 2, true));
    assert_eq!(reader.letters().unwrap().len(), 2);
    drop(reader);
    let (operator, now) = (name("ada"), time(60));
    let mut editor = store.edit().expect("a stopped organism is edited");
    let [first, second] = [4, 5].map(|n| number(epoch, n));
    assert!(editor.drop_letter(first, &operator, now).unwrap() && !editor.drop_letter(first, &operator, now).unwrap());
    assert!(editor.redrive_letter(second, &operator, now).unwrap());
    let message = mail_id(1);
    assert!(
        editor.redrive_mail(message, &operator, now).unwrap() && !editor.drop_mail(message, &operator, now).unwrap()
    );
    drop(editor);
    let query = store.ask(None, true).expect("it is asked");
    let (acts, _) = block_on(query.acts(None, 3)).unwrap();
    let told: Vec<_> = acts.iter().map(|kept| (kept.record.by.as_str(), &*kept.record.act)).collect();
    assert_eq!(told, [("ada", "redrive"), ("ada", "redrive"), ("ada", "discard")], "each is recorded");
    drop(query);
    let report = store.verify().expect("it is verified");
    assert!(report.faults.is_empty(), "it is in order: {:?}", report.faults);
    let recovered = store.open([5; 32], claim).unwrap().journal.recover().unwrap();
    let states: Vec<_> = recovered.mail.iter().map(|mail| (mail.seq, mail.status.state)).collect();
    assert_eq!((recovered.redrive, states), (vec![second], vec![(2, MailState::Redriven)]));
}

/// Reads pages until the last one.
fn pages<T, N>(page: impl Fn(Option<&N>) -> (Vec<T>, Option<N>)) -> Vec<T> {
    let (mut found, mut after) = (Vec::new(), None);
    loop {
        let (items, next) = page(after.as_ref());
        found.extend(items);
        match next {
            Some(next) => after = Some(next),
            None => return found,
        }
    }
}

fn letter(number: Number, n: u64) -> LetterRecord {
    LetterRecord {
        number,
        partition: Partition(0),
        at: time(n),
        from: name("c"),
        to: None,
        place: LetterPlace { conversation: None, path: ThreadPath::new(Vec::new()) },
        payload: Some(("{urn:t}a".parse().expect("a name"), "<a xmlns=\"urn:t\"/>".into())),
        reason: Fault::new(FaultCode::Route, format!("no {n}")),
    }
}

fn act(n: u64) -> Op {
    Op::Acted(ActRecord { by: name("boss"), act: "pause".into(), of: n.to_string().into(), error: None, opened: None })
}

fn mail_id(n: u64) -> MessageId {
    MessageId::from_uuid(Uuid::from_u128(1000 + u128::from(n)))
}

fn mail(seq: u64) -> MailRecord {
    MailRecord {
        seq,
        mailbox: name("agent"),
        id: mail_id(seq),
        thread: ThreadId::from_uuid(Uuid::from_u128(2000 + u128::from(seq))),
        from: name("c"),
        in_reply_to: None,
        payload: "{urn:t}a".parse().expect("a name"),
        envelope: "<message/>".into(),
        at: time(seq),
    }
}

fn roots(recovered: &Recovered) -> Vec<Partition> {
    let mut roots: Vec<_> = recovered.threads.iter().map(|thread| Partition::of(thread.id)).collect();
    roots.sort_unstable();
    roots
}

fn number(epoch: u32, n: u64) -> Number {
    numbers_after(epoch) + 2 * n
}

fn time(n: u64) -> Time {
    Time::from_nanos(1_000_000_000 + n)
}

fn name(text: &str) -> Name {
    Name::parse(text).expect("a name")
}

/// Opens a conversation with one message that waits.
fn open_conversation(epoch: u32, n: u64, partition: Partition) -> Step {
    let (thread, id) = (number(epoch, n), Uuid::from_u128(u128::from(number(epoch, n)) << 8));
    let opened = ThreadRecord {
        number: thread,
        id: partition.place(ThreadId::from_uuid(id)),
        parent: None,
        root: thread,
        owner: Owner::Client(name("c")),
        ordinal: 0,
        depth: 0,
        opened_by: MessageId::from_uuid(id),
        reply_to: ReplyTo::None,
        deadline: Time::MAX,
        own_deadline: false,
        spawned: false,
        left: false,
        label: None,
        traceparent: None,
    };
    let message = MessageRecord {
        number: thread + 1,
        place: thread + 1,
        thread,
        id: MessageId::from_uuid(id),
        from: name("c"),
        in_reply_to: None,
        answers: ReplyTo::None,
        state: MessageState::Queued,
        body: BodyRecord::Payload("<a xmlns=\"urn:t\"/>".into()),
        attempts: 0,
    };
    Step { ops: vec![Op::Open(opened), Op::Put(message)], at: time(n) }
}

/// A server with a store that several processes reach, over connections that fail. The server itself loses nothing.
#[derive(Debug, Clone)]
pub struct RemoteServer(Arc<Mutex<Server>>);

#[derive(Debug)]
struct Server {
    store: MemoryJournal,
    random: u64,
    /// One in so many appends meets a failure; never with 0.
    fails: u64,
    /// Appends that are on their way still, though their sender was told that they failed.
    delayed: Vec<Batch>,
    /// The failures so far.
    met: BTreeSet<Failure>,
}

/// A failure that a connection meets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Failure {
    /// The append did not arrive.
    Request,
    /// The append was written, and the answer was lost.
    Answer,
    /// The append arrives after a later one.
    Delay,
    /// Another process takes a partition of the append over before it.
    Theft,
}

impl RemoteServer {
    /// Makes a server whose connections fail by this seed, once in `fails` appends.
    pub fn new(key: [u8; 32], seed: u64, fails: u64) -> Self {
        let (store, random) = (MemoryJournal::new(key), seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        Self(Arc::new(Mutex::new(Server { store, random, fails, delayed: Vec::new(), met: BTreeSet::new() })))
    }

    /// Connects a process.
    pub fn connect(&self) -> RemoteJournal {
        RemoteJournal { server: self.clone() }
    }

    /// Lets another process take partitions over, which then ends.
    pub fn steal(&self, partitions: &Partitions) {
        self.lock().store.adopt(partitions).expect("it is memory");
    }

    /// The failures that connections met.
    pub fn met(&self) -> Vec<Failure> {
        self.lock().met.iter().copied().collect()
    }

    fn lock(&self) -> MutexGuard<'_, Server> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Server {
    fn next(&mut self, below: u64) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.random % below
    }

    /// Appends that were delayed arrive; each was settled, so the store has to refuse those that it has.
    fn arrive(&mut self) {
        for batch in std::mem::take(&mut self.delayed) {
            let late = self.store.append(&batch);
            assert!(matches!(late, Err(AppendError::Fenced(_))), "an append is written twice: {late:?}");
        }
    }
}

/// A connection of a process to a [`RemoteServer`]. An append whose answer is lost is settled by reading the ends of its
/// logs again.
#[derive(Debug)]
pub struct RemoteJournal {
    server: RemoteServer,
}

impl Journal for RemoteJournal {
    fn durability(&self) -> Option<Durability> {
        Some(Durability::Power)
    }

    fn may_block(&self) -> bool {
        true
    }

    fn append(&mut self, batch: &Batch) -> Result<(), AppendError> {
        let mut server = self.server.lock();
        let fails = server.fails;
        let failure = (fails > 0 && server.next(fails) == 0).then(|| server.next(4));
        match failure {
            // Lost on the way there: the ends are read again, nothing has moved, and it is sent again.
            Some(0) => _ = server.met.insert(Failure::Request),
            Some(1) => {
                server.met.insert(Failure::Answer);
                server.store.append(batch)?;
                // The ends are read again: they are one further.
                let repeated = server.store.append(batch);
                assert!(matches!(repeated, Err(AppendError::Fenced(_))), "an append is written twice: {repeated:?}");
                return Ok(());
            }
            Some(2) => {
                server.met.insert(Failure::Delay);
                server.delayed.push(batch.clone());
            }
            Some(_) => {
                if let Some(partition) = batch.tails().iter().find_map(|tail| tail.partitions.iter().next()) {
                    server.met.insert(Failure::Theft);
                    server.store.adopt(&partition.into())?;
                }
            }
            None => server.arrive(),
        }
        server.store.append(batch)
    }

    fn recover(&mut self) -> Result<Recovered, JournalError> {
        self.server.lock().store.recover()
    }

    fn adopt(&mut self, partitions: &Partitions) -> Result<Recovered, JournalError> {
        let mut server = self.server.lock();
        let adopted = server.store.adopt(partitions);
        // What an owner of before has sent comes too late.
        server.arrive();
        adopted
    }

    fn release(&mut self, tail: &Tail) -> Result<(), AppendError> {
        self.server.lock().store.release(tail)
    }

    fn close(&mut self) -> Result<(), JournalError> {
        let mut server = self.server.lock();
        server.arrive();
        server.store.close()
    }
}

/// A store that fails for good in the middle of its n-th append: whether that was written, only the next opening tells.
#[derive(Debug)]
pub struct Interrupted<J> {
    journal: J,
    left: u64,
    writes_last: bool,
}

impl<J: Journal> Interrupted<J> {
    /// Takes `appends` appends, and fails at the next one, which it writes or not.
    pub fn new(journal: J, appends: u64, writes_last: bool) -> Self {
        Self { journal, left: appends, writes_last }
    }
}

impl<J: Journal> Journal for Interrupted<J> {
    fn durability(&self) -> Option<Durability> {
        self.journal.durability()
    }

    fn may_block(&self) -> bool {
        self.journal.may_block()
    }

    fn append(&mut self, batch: &Batch) -> Result<(), AppendError> {
        if let Some(left) = self.left.checked_sub(1) {
            self.left = left;
            return self.journal.append(batch);
        }
        if std::mem::take(&mut self.writes_last) {
            self.journal.append(batch)?;
        }
        Err(JournalError::new(JournalErrorKind::Other, "the connection to the store is lost, as it was told to").into())
    }

    fn recover(&mut self) -> Result<Recovered, JournalError> {
        self.journal.recover()
    }

    fn adopt(&mut self, partitions: &Partitions) -> Result<Recovered, JournalError> {
        self.journal.adopt(partitions)
    }

    fn release(&mut self, tail: &Tail) -> Result<(), AppendError> {
        self.journal.release(tail)
    }

    fn tidy(&mut self, now: Time) -> Result<bool, JournalError> {
        self.journal.tidy(now)
    }

    fn is_fed(&self) -> bool {
        self.journal.is_fed()
    }

    fn feed(&mut self) -> Result<(), JournalError> {
        self.journal.feed()
    }

    fn close(&mut self) -> Result<(), JournalError> {
        self.journal.close()
    }
}
