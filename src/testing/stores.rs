//! Stores for tests: the suite that each store passes, and a store on a simulated server.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use systole_core::journal::{
    AppendError, Batch, BodyRecord, Durability, Journal, JournalError, JournalErrorKind, MemoryJournal, MessageRecord,
    MessageState, Number, Op, Owner, Recovered, ReplyTo, Step, Tail, ThreadRecord, numbers_after,
};
use systole_core::vocab::{MessageId, Name, Partition, Partitions, ThreadId, Time};
use uuid::Uuid;

/// Checks that a store keeps the promises of [`Journal`]. `open` opens the same store again, whose process may have ended
/// without closing it; it is empty at first.
///
/// # Panics
/// If the store breaks a promise: the message says which.
pub fn check_journal<J: Journal>(mut open: impl FnMut() -> J) {
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
