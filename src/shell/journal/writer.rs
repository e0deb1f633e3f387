use std::io;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, TryRecvError, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use super::Durability;
use crate::core::ShardId;
use crate::core::contain::contain;
use crate::journal::{Journal, JournalError, Step};
use crate::shell::clock::Clock;
use crate::vocab::Time;

/// At most so many steps are one transaction.
const BATCH: usize = 64;

/// How long a writer that has not been idle waits for more, where each transaction waits for the disk.
const GATHER: Duration = Duration::from_millis(2);

/// How often a writer that has nothing to write looks for what has had its time.
const TIDY: Duration = Duration::from_secs(60);

/// Who is told what was written: a shard, and the number of the last of its steps that is, or why no more will be.
///
/// It is called on the writer's thread, which writes nothing meanwhile.
pub type Told = Box<dyn FnMut(ShardId, Result<u64, JournalError>) + Send>;

/// What is called on the writer's thread when a step is written; it is dropped when that won't be.
pub type Written = Box<dyn FnOnce() + Send>;

/// The thread that writes the journal of an organism.
///
/// It takes the steps of all shards in the order in which they come, as many as there are and 64 at most, and writes
/// them in one transaction; a writer that is idle begins at once. When a transaction is written, each shard that has
/// steps in it is told the number of its last one. While nothing comes it deletes what is over and has had its time: at
/// the start, and each minute. After an error all shards are told once, and nothing more is written.
/// Without [`close`](Self::close) it ends when the last sender is gone, and leaves the journal as a crash would.
#[derive(Debug)]
pub struct JournalWriter {
    inbox: JournalSender,
    thread: JoinHandle<Result<(), JournalError>>,
}

/// Where shards put their steps. It never blocks; what waits is bounded by what the shards have under way.
#[derive(Debug, Clone)]
pub struct JournalSender(Sender<Order>);

enum Order {
    Write { shard: ShardId, number: u64, step: Step },
    Beside { step: Step, written: Written },
    Close,
}

impl JournalSender {
    /// Hands over a step; the numbers of a shard rise. Nothing happens after an error: the shard was told.
    pub fn send(&self, shard: ShardId, number: u64, step: Step) {
        // A writer that is gone has told everybody why.
        let _ = self.0.send(Order::Write { shard, number, step });
    }

    /// Hands over a step that is no shard's. It stands in the journal between what was handed over before and after.
    pub fn send_beside(&self, step: Step, written: Written) {
        // As above: it is dropped with the order.
        let _ = self.0.send(Order::Beside { step, written });
    }
}

impl JournalWriter {
    /// Starts the thread for a journal that was recovered, and for these shards.
    ///
    /// # Errors
    /// The system's, if there can be no more threads.
    pub fn start(
        journal: Box<dyn Journal>,
        durability: Durability,
        shards: Vec<ShardId>,
        told: Told,
    ) -> io::Result<Self> {
        Self::start_tidying(journal, durability, shards, told, TIDY)
    }

    fn start_tidying(
        journal: Box<dyn Journal>,
        durability: Durability,
        shards: Vec<ShardId>,
        told: Told,
        every: Duration,
    ) -> io::Result<Self> {
        let (sender, inbox) = channel();
        let gather = match durability {
            Durability::Process => Duration::ZERO,
            Durability::Power => GATHER,
        };
        let (clock, batch) = (Clock::real(), Batch::default());
        let tidy = Tidy { every, next: clock.now() };
        let work = Work { journal, inbox, gather, clock, tidy, shards, told, batch };
        let thread = std::thread::Builder::new().name("journal".into()).spawn(move || work.run())?;
        Ok(Self { inbox: JournalSender(sender), thread })
    }

    /// Where shards put their steps.
    pub fn sender(&self) -> JournalSender {
        self.inbox.clone()
    }

    /// Writes what was sent before, notes that the organism has ended in order, and closes the journal.
    ///
    /// # Errors
    /// The one that the shards were told, or that of closing.
    pub fn close(self) -> Result<(), JournalError> {
        // A writer that is gone says below why.
        let _ = self.inbox.0.send(Order::Close);
        let gone = || Err(JournalError { message: "the thread that writes the journal has panicked".into() });
        self.thread.join().unwrap_or_else(|_| gone())
    }
}

struct Work {
    journal: Box<dyn Journal>,
    inbox: Receiver<Order>,
    gather: Duration,
    clock: Clock,
    tidy: Tidy,
    shards: Vec<ShardId>,
    told: Told,
    batch: Batch,
}

/// When a writer that has nothing to write looks for what has had its time.
struct Tidy {
    every: Duration,
    next: Time,
}

/// Steps that are written together, and how far each shard has come with them.
#[derive(Default)]
struct Batch {
    steps: Vec<Step>,
    last: Vec<(ShardId, u64)>,
    beside: Vec<Written>,
    end: Option<End>,
}

/// Why nothing comes after a batch.
#[derive(Clone, Copy)]
enum End {
    /// The organism has ended in order.
    Closed,
    /// Nobody is left who could send anything: what ran may have been torn away.
    Abandoned,
}

impl Work {
    fn run(mut self) -> Result<(), JournalError> {
        let panicked = |_| Err(JournalError { message: "the thread that writes it has panicked: see above".into() });
        let done = contain(|| self.write()).unwrap_or_else(panicked);
        if let Err(error) = &done {
            for shard in std::mem::take(&mut self.shards) {
                (self.told)(shard, Err(error.clone()));
            }
        }
        done
    }

    fn write(&mut self) -> Result<(), JournalError> {
        loop {
            self.collect()?;
            if !self.batch.steps.is_empty() {
                self.journal.append(&self.batch.steps)?;
                self.batch.steps.clear();
                for (shard, number) in self.batch.last.drain(..) {
                    (self.told)(shard, Ok(number));
                }
                self.batch.beside.drain(..).for_each(|written| written());
            }
            match self.batch.end {
                None => {}
                Some(End::Closed) => return self.journal.close(),
                Some(End::Abandoned) => return Ok(()),
            }
        }
    }

    /// Waits for a step, and takes those that are there as well.
    fn collect(&mut self) -> Result<(), JournalError> {
        let (first, idle) = match self.inbox.try_recv() {
            Ok(order) => (Some(order), false),
            Err(TryRecvError::Disconnected) => (None, false),
            Err(TryRecvError::Empty) => (self.wait()?, true),
        };
        match first {
            Some(order) => self.batch.take(order),
            None => self.batch.end = Some(End::Abandoned),
        }
        let end = self.clock.now().after(if idle { Duration::ZERO } else { self.gather });
        while self.batch.steps.len() < BATCH && self.batch.end.is_none() {
            // Even where there is no time left, what is there is taken.
            match self.inbox.recv_timeout(self.clock.until(end)) {
                Ok(order) => self.batch.take(order),
                Err(RecvTimeoutError::Timeout) => return Ok(()),
                Err(RecvTimeoutError::Disconnected) => self.batch.end = Some(End::Abandoned),
            }
        }
        Ok(())
    }

    /// Waits for something to do, and meanwhile deletes what has had its time; nothing if nobody is left who could send.
    fn wait(&mut self) -> Result<Option<Order>, JournalError> {
        loop {
            match self.inbox.recv_timeout(self.clock.until(self.tidy.next)) {
                Ok(order) => return Ok(Some(order)),
                Err(RecvTimeoutError::Disconnected) => return Ok(None),
                Err(RecvTimeoutError::Timeout) => {
                    let now = self.clock.now();
                    let more = self.journal.tidy(now)?;
                    self.tidy.next = if more { now } else { now.after(self.tidy.every) };
                }
            }
        }
    }
}

impl Batch {
    fn take(&mut self, order: Order) {
        match order {
            Order::Write { shard, number, step } => {
                self.steps.push(step);
                match self.last.iter_mut().find(|(of, _)| *of == shard) {
                    Some((_, last)) => *last = number,
                    None => self.last.push((shard, number)),
                }
            }
            Order::Beside { step, written } => {
                self.steps.push(step);
                self.beside.push(written);
            }
            Order::Close => self.end = Some(End::Closed),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Receiver, channel};
    use std::sync::{Arc, Mutex};

    use super::*;
    use crate::journal::{FailingJournal, MemoryJournal, Op, Recovered};

    /// Says how many steps each transaction had, and waits for a word before each.
    struct Slow {
        go: Receiver<()>,
        batches: Arc<Mutex<Vec<usize>>>,
    }

    impl Journal for Slow {
        fn append(&mut self, steps: &[Step]) -> Result<(), JournalError> {
            let _ = self.go.recv();
            self.batches.lock().unwrap().push(steps.len());
            Ok(())
        }

        fn recover(&mut self) -> Result<Recovered, JournalError> {
            Ok(Recovered::default())
        }

        fn close(&mut self) -> Result<(), JournalError> {
            self.batches.lock().unwrap().push(0);
            Ok(())
        }
    }

    type Answers = Receiver<(ShardId, Result<u64, JournalError>)>;

    fn start(journal: impl Journal + 'static, durability: Durability) -> (JournalWriter, Answers) {
        let (tell, answers) = channel();
        let told: Told = Box::new(move |shard, written| tell.send((shard, written)).unwrap());
        let shards = vec![ShardId(0), ShardId(1)];
        (JournalWriter::start(Box::new(journal), durability, shards, told).unwrap(), answers)
    }

    fn step(message: u64) -> Step {
        Step { ops: vec![Op::Done { message }], at: Time::default() }
    }

    #[test]
    fn what_is_there_is_written_together_and_each_shard_is_told_its_last() {
        let (go, wait) = channel();
        let batches = Arc::new(Mutex::new(Vec::new()));
        let (writer, answers) = start(Slow { go: wait, batches: batches.clone() }, Durability::Process);
        let sender = writer.sender();
        sender.send(ShardId(0), 1, step(1));
        go.send(()).unwrap();
        assert_eq!(answers.recv().unwrap(), (ShardId(0), Ok(1)), "an idle writer begins at once");
        sender.send(ShardId(1), 1, step(1));
        // The writer is busy with that, and with some of these, until it hears a word: more than a batch waits behind.
        (2..=201).for_each(|number| sender.send(ShardId(number as u16 % 2), number, step(number)));
        drop(go);
        writer.close().unwrap();
        let told: Vec<_> = answers.iter().collect();
        assert!(told.contains(&(ShardId(0), Ok(200))) && told.contains(&(ShardId(1), Ok(201))), "{told:?}");
        for shard in [ShardId(0), ShardId(1)] {
            let numbers: Vec<_> =
                told.iter().filter(|(of, _)| *of == shard).map(|(_, number)| number.clone()).collect();
            assert!(numbers.is_sorted_by_key(|number| number.clone().unwrap()), "{told:?}");
        }
        let batches = batches.lock().unwrap();
        assert_eq!(batches.iter().sum::<usize>(), 202);
        assert!(batches.iter().all(|steps| *steps <= BATCH) && batches.contains(&BATCH), "{batches:?}");
        assert_eq!(batches.last(), Some(&0), "closed when all was written");
    }

    #[test]
    fn where_each_transaction_waits_for_the_disk_nothing_is_lost_either() {
        let (writer, answers) = start(MemoryJournal::new([0; 32]), Durability::Power);
        let sender = writer.sender();
        (1..=1000).for_each(|number| sender.send(ShardId(0), number, step(number)));
        writer.close().unwrap();
        assert_eq!(answers.iter().last(), Some((ShardId(0), Ok(1000))));
    }

    #[test]
    fn after_an_error_every_shard_is_told_once_and_nothing_is_written() {
        let (writer, answers) = start(FailingJournal::new(MemoryJournal::new([0; 32]), 1), Durability::Process);
        let sender = writer.sender();
        sender.send(ShardId(0), 1, step(1));
        assert_eq!(answers.recv().unwrap(), (ShardId(0), Ok(1)));
        sender.send(ShardId(0), 2, step(2));
        let error = JournalError { message: "the journal fails, as it was told to".into() };
        assert_eq!(answers.recv().unwrap(), (ShardId(0), Err(error.clone())));
        assert_eq!(answers.recv().unwrap(), (ShardId(1), Err(error.clone())));
        sender.send(ShardId(1), 3, step(3));
        assert!(answers.recv().is_err(), "nobody is told anything else");
        assert_eq!(writer.close(), Err(error));
    }

    /// Says when it is asked to tidy, and twice that there is more.
    struct Untidy {
        asked: std::sync::mpsc::Sender<Time>,
        more: u32,
    }

    impl Journal for Untidy {
        fn append(&mut self, _: &[Step]) -> Result<(), JournalError> {
            Ok(())
        }

        fn recover(&mut self) -> Result<Recovered, JournalError> {
            Ok(Recovered::default())
        }

        fn tidy(&mut self, now: Time) -> Result<bool, JournalError> {
            let _ = self.asked.send(now);
            self.more = self.more.saturating_sub(1);
            Ok(self.more > 0)
        }

        fn close(&mut self) -> Result<(), JournalError> {
            Ok(())
        }
    }

    #[test]
    fn who_has_nothing_to_write_tidies_at_the_start_and_from_time_to_time() {
        for (every, times) in [(Duration::from_secs(3600), 3), (Duration::from_millis(1), 20)] {
            let (asked, tidied) = channel();
            let (tell, answers) = channel();
            let told: Told = Box::new(move |shard, written| tell.send((shard, written)).unwrap());
            let journal = Box::new(Untidy { asked, more: 3 });
            let shards = vec![ShardId(0)];
            let writer = JournalWriter::start_tidying(journal, Durability::Process, shards, told, every).unwrap();
            let times: Vec<_> = tidied.iter().take(times).collect();
            assert!(times.is_sorted(), "{times:?}");
            writer.sender().send(ShardId(0), 1, step(1));
            assert_eq!(answers.recv().unwrap(), (ShardId(0), Ok(1)), "it writes as before");
            writer.close().unwrap();
        }
    }

    #[test]
    fn shards_that_are_gone_end_it_as_a_crash_does() {
        let batches = Arc::new(Mutex::new(Vec::new()));
        let (go, wait) = channel();
        drop(go);
        let (writer, answers) = start(Slow { go: wait, batches: batches.clone() }, Durability::Process);
        writer.sender().send(ShardId(1), 7, step(7));
        let JournalWriter { inbox, thread } = writer;
        drop(inbox);
        thread.join().unwrap().unwrap();
        assert_eq!(answers.iter().collect::<Vec<_>>(), [(ShardId(1), Ok(7))]);
        assert_eq!(*batches.lock().unwrap(), [1], "not closed");
    }
}
