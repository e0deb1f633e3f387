//! The writer's thread of a journal.

use std::io;
use std::sync::{Arc, Weak};
use std::thread::JoinHandle;
use std::time::Duration;

use systole_core::core::CoreId;
use systole_core::journal::{Journal, JournalError, JournalErrorKind, Recovered, Step};
use systole_core::vocab::{Partitions, Time};

use super::queue::{End, Order, Queue, Turn, WriteAccess};
use crate::clock::Clock;

/// Time for which a writer that has just written waits for more steps, where each transaction waits for the disk.
const GATHER: Duration = Duration::from_millis(2);

/// Callback for written steps: a core with the number of its last written step, or with the reason why none will be
/// written any more.
///
/// Called on the thread that writes, which writes nothing meanwhile.
pub type Told = Box<dyn FnMut(CoreId, Result<u64, Lost>) + Send>;

/// Reason why nothing more of a core is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Lost {
    /// Another owner has taken partitions of the core over. Other cores go on.
    Fenced,
    /// The journal can't be written.
    Failed(JournalError),
}

/// Callback on the thread that writes once a step is written; dropped if the step won't be written.
pub type Written = Box<dyn FnOnce() + Send>;

/// Callback on the thread that writes, with the records of partitions that are taken over; dropped if they can't be
/// read.
pub type Adopted = Box<dyn FnOnce(Recovered) + Send>;

/// The thread that writes the journal of an organism.
///
/// It takes the steps of all cores in the order in which they come, at most 256 and 256 KiB or one longer step, and writes
/// them in one transaction; an idle writer starts at once. After a transaction, each core with steps in it receives the number of its last one.
/// While no steps come, the thread feeds the tables of the journal, if they lack steps, and deletes rows that are past
/// their retention: at the start, and then each [interval](Journal::tidy_interval). After an error all cores receive it once, and nothing more is
/// written. Without [`close`](Self::close) the thread ends when the last sender is dropped, and leaves the journal as a
/// crash would.
///
/// Where an append [does not block](Journal::may_block), a shard with nothing else to do writes a few steps itself
/// ([`JournalSender::flush`]): that is faster than the way to this thread and back.
#[derive(Debug)]
pub struct JournalWriter {
    inbox: JournalSender,
    thread: JoinHandle<Result<(), JournalError>>,
}

/// A sender of steps for cores. Waiting steps are bounded by the work that the cores have in flight.
#[derive(Debug, Clone)]
pub struct JournalSender(Arc<Sending>);

/// The sending end of a queue, which ends with the last sender.
#[derive(Debug)]
struct Sending(Arc<Queue>);

impl Drop for Sending {
    fn drop(&mut self) {
        self.0.end(End::Abandoned);
    }
}

impl JournalSender {
    /// Queues a step of a core, whose numbers must rise; never blocks. The step is written by the next
    /// [`flush`](Self::flush) at the latest. After an error nothing happens: the core has received it.
    pub fn send(&self, core: CoreId, number: u64, step: Step) {
        self.0.0.put(Order::Write { core, number, step });
    }

    /// Queues a step that belongs to no core; never blocks. It keeps its position between steps queued before and
    /// after.
    pub fn send_beside(&self, step: Step, written: Written) {
        self.0.0.put(Order::Beside { step, written });
    }

    /// Takes partitions over for a core, and reads their records, once the steps queued before are written; never blocks.
    pub fn adopt(&self, core: CoreId, partitions: Partitions, adopted: Adopted) {
        self.0.0.put(Order::Adopt { core, partitions, adopted });
    }

    /// Gives the partitions of a core up, once the steps queued before are written; never blocks. `released` is called
    /// then, also if another owner has them already, or dropped if the journal has failed.
    pub fn release(&self, core: CoreId, released: Written) {
        self.0.0.put(Order::Release { core, released });
    }

    /// Returns the feeder of the journal's tables.
    pub fn feeder(&self) -> JournalFeeder {
        JournalFeeder(Arc::downgrade(&self.0.0))
    }

    /// Writes the waiting steps if they are few, the transaction does not wait for the disk, and no other thread
    /// writes; otherwise leaves them to the writer's thread.
    pub fn flush(&self) {
        self.0.0.flush();
    }
}

/// A request to bring the tables of a journal up to date, for those who read them. It keeps no queue alive.
#[derive(Debug, Clone)]
pub struct JournalFeeder(Weak<Queue>);

impl JournalFeeder {
    /// Waits until the tables have all steps that were confirmed before; `false` if they never will.
    pub async fn feed(&self) -> bool {
        let Some(queue) = self.0.upgrade().filter(|queue| !queue.is_fed()) else { return true };
        let (tell, told) = tokio::sync::oneshot::channel();
        let fed = move || {
            // The caller may have dropped its future.
            let _ = tell.send(());
        };
        queue.put(Order::Feed { fed: Box::new(fed) });
        told.await.is_ok() || queue.is_fed()
    }
}

impl JournalWriter {
    /// Starts the thread for a journal that was recovered in that epoch, and for cores that own these partitions. All of
    /// them get its error. Retention goes by `clock`.
    ///
    /// # Errors
    /// The system's error, if no thread can be started.
    pub fn start(
        journal: Box<dyn Journal>,
        epoch: u32,
        cores: impl IntoIterator<Item = (CoreId, Partitions)>,
        clock: Clock,
        told: Told,
    ) -> io::Result<Self> {
        let may_block = journal.may_block();
        let gather = if may_block { GATHER } else { Duration::ZERO };
        let tidy = Tidy { every: journal.tidy_interval(), next: clock.now() };
        let queue = Arc::new(Queue::new(WriteAccess::new(journal, epoch, cores, told), !may_block));
        let work = Work { queue: queue.clone(), gather, clock, tidy };
        let thread = std::thread::Builder::new().name("journal".into()).spawn(move || work.run())?;
        Ok(Self { inbox: JournalSender(Arc::new(Sending(queue))), thread })
    }

    /// Returns a sender for cores.
    pub fn sender(&self) -> JournalSender {
        self.inbox.clone()
    }

    /// Writes the queued steps, notes that the organism has ended in order, and closes the journal.
    ///
    /// # Errors
    /// The error that the cores have received, or the error of closing.
    pub fn close(self) -> Result<(), JournalError> {
        let Self { inbox, thread } = self;
        inbox.0.0.end(End::Closed);
        let message = "the thread that writes the journal has panicked";
        thread.join().unwrap_or_else(|_| Err(JournalError::new(JournalErrorKind::Panicked, message)))
    }
}

struct Work {
    queue: Arc<Queue>,
    gather: Duration,
    clock: Clock,
    tidy: Tidy,
}

/// Schedule of an idle writer for looking for rows that are past their retention.
struct Tidy {
    every: Duration,
    next: Time,
}

impl Work {
    fn run(mut self) -> Result<(), JournalError> {
        loop {
            match self.queue.turn(&self.clock, self.tidy.next, self.gather) {
                Turn::Write(access) => self.queue.give_back(access.write()),
                Turn::Feed(access) => self.queue.give_back(access.feed()),
                Turn::Tidy(access) => {
                    let now = self.clock.now();
                    let tidied = access.tidy(now).map(|(access, more)| {
                        self.tidy.next = if more { now } else { now.after(self.tidy.every) };
                        access
                    });
                    self.queue.give_back(tidied);
                }
                Turn::End(access, End::Closed) => return access.close(),
                Turn::End(_, End::Abandoned) => return Ok(()),
                Turn::Failed(error) => return Err(error),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::mpsc::{Receiver, channel};
    use std::thread::ThreadId;

    use systole_core::journal::{
        AppendError, Batch, BudgetRecord, Durability, FailingJournal, MemoryJournal, NoteRecord, Op, Tail,
    };
    use systole_core::vocab::{Amounts, Budget};

    use super::super::batch::FEW;
    use super::super::queue::BATCH;
    use super::*;

    /// Deadline of tests that wait for an event.
    const DEADLINE: Duration = Duration::from_secs(60);

    /// A journal that reports the number of steps of each transaction, and waits for a signal before each.
    struct Slow {
        go: Receiver<()>,
        batches: Arc<Mutex<Vec<usize>>>,
    }

    impl Journal for Slow {
        fn durability(&self) -> Option<Durability> {
            None
        }

        fn may_block(&self) -> bool {
            false
        }

        fn adopt(&mut self, _: &Partitions) -> Result<Recovered, JournalError> {
            self.recover()
        }

        fn release(&mut self, _: &Tail) -> Result<(), AppendError> {
            Ok(())
        }

        fn append(&mut self, batch: &Batch) -> Result<(), AppendError> {
            let _ = self.go.recv();
            self.batches.lock().unwrap().push(batch.steps().len());
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

    type Answers = Receiver<(CoreId, Result<u64, Lost>)>;

    /// A journal that may block, or not.
    struct Paced<J>(J, bool);

    impl<J: Journal> Journal for Paced<J> {
        fn durability(&self) -> Option<Durability> {
            self.0.durability()
        }

        fn may_block(&self) -> bool {
            self.1
        }

        fn append(&mut self, batch: &Batch) -> Result<(), AppendError> {
            self.0.append(batch)
        }

        fn recover(&mut self) -> Result<Recovered, JournalError> {
            self.0.recover()
        }

        fn adopt(&mut self, partitions: &Partitions) -> Result<Recovered, JournalError> {
            self.0.adopt(partitions)
        }

        fn release(&mut self, tail: &Tail) -> Result<(), AppendError> {
            self.0.release(tail)
        }

        fn tidy(&mut self, now: Time) -> Result<bool, JournalError> {
            self.0.tidy(now)
        }

        fn is_fed(&self) -> bool {
            self.0.is_fed()
        }

        fn feed(&mut self) -> Result<(), JournalError> {
            self.0.feed()
        }

        fn close(&mut self) -> Result<(), JournalError> {
            self.0.close()
        }
    }

    /// Two shards, one with the even partitions, and one with the odd ones.
    fn shards() -> [(CoreId, Partitions); 2] {
        [0, 1].map(|shard| (CoreId(shard), Partitions::share(shard.into(), 2)))
    }

    fn start(journal: impl Journal + 'static, may_block: bool) -> (JournalWriter, Answers) {
        let (tell, answers) = channel();
        let told: Told = Box::new(move |shard, written| tell.send((shard, written)).unwrap());
        let mut journal = Paced(journal, may_block);
        let epoch = journal.recover().unwrap().epoch;
        (JournalWriter::start(Box::new(journal), epoch, shards(), Clock::real(), told).unwrap(), answers)
    }

    fn step(message: u64) -> Step {
        Step { ops: vec![Op::Done { message }], at: Time::default() }
    }

    #[test]
    fn what_is_there_is_written_together_and_each_shard_is_told_its_last() {
        let (go, wait) = channel();
        let batches = Arc::new(Mutex::new(Vec::new()));
        let (writer, answers) = start(Slow { go: wait, batches: batches.clone() }, false);
        let sender = writer.sender();
        sender.send(CoreId(0), 1, step(1));
        go.send(()).unwrap();
        sender.flush();
        assert_eq!(answers.recv().unwrap(), (CoreId(0), Ok(1)), "an idle writer begins at once");
        sender.send(CoreId(1), 1, step(1));
        // The thread is busy with that and some of these until it is signalled: more than a batch waits behind.
        (2..=601).for_each(|number| sender.send(CoreId(number as u16 % 2), number, step(number)));
        drop(go);
        writer.close().unwrap();
        let told: Vec<_> = answers.iter().collect();
        assert!(told.contains(&(CoreId(0), Ok(600))) && told.contains(&(CoreId(1), Ok(601))), "{told:?}");
        for shard in [CoreId(0), CoreId(1)] {
            let numbers: Vec<_> =
                told.iter().filter(|(of, _)| *of == shard).map(|(_, number)| number.clone()).collect();
            assert!(numbers.is_sorted_by_key(|number| number.clone().unwrap()), "{told:?}");
        }
        let batches = batches.lock().unwrap();
        assert_eq!(batches.iter().sum::<usize>(), 602);
        assert!(batches.iter().all(|steps| *steps <= BATCH) && batches.contains(&BATCH), "{batches:?}");
        assert_eq!(batches.last(), Some(&0), "closed when all was written");
    }

    #[test]
    fn long_steps_are_written_by_the_thread_and_share_no_transaction_with_the_short_ones_before() {
        let long = |message| Step { ops: vec![Op::Note(long_note(message))], at: Time::default() };
        for may_block in [false, true] {
            let (go, wait) = channel();
            let batches = Arc::new(Mutex::new(Vec::new()));
            let (writer, answers) = start(Slow { go: wait, batches: batches.clone() }, may_block);
            let sender = writer.sender();
            sender.send(CoreId(0), 1, long(1));
            // It returns at once, although the journal writes nothing yet.
            sender.flush();
            (2..=3).for_each(|number| sender.send(CoreId(0), number, step(number)));
            (4..=6).for_each(|number| sender.send(CoreId(0), number, long(number)));
            (7..=9).for_each(|number| sender.send(CoreId(0), number, step(number)));
            drop(go);
            writer.close().unwrap();
            assert_eq!(answers.iter().last(), Some((CoreId(0), Ok(9))));
            let batches = std::mem::take(&mut *batches.lock().unwrap());
            let ends: Vec<_> = batches
                .iter()
                .scan(0, |sum, steps| {
                    Some({
                        *sum += steps;
                        *sum
                    })
                })
                .collect();
            let parted = [1, 3, 4, 5, 6, 9].iter().all(|end| ends.contains(end));
            assert!(parted, "{may_block}: transactions of {batches:?} steps");
        }
    }

    fn long_note(message: u64) -> NoteRecord {
        NoteRecord { message, index: 0, name: "long".into(), value: "x".repeat(300 << 10).into() }
    }

    #[test]
    fn where_each_transaction_waits_for_the_disk_nothing_is_lost_either() {
        let (writer, answers) = start(MemoryJournal::new([0; 32]), true);
        let sender = writer.sender();
        (1..=1000).for_each(|number| sender.send(CoreId(0), number, step(number)));
        writer.close().unwrap();
        assert_eq!(answers.iter().last(), Some((CoreId(0), Ok(1000))));
    }

    #[test]
    fn after_an_error_every_shard_is_told_once_and_nothing_is_written() {
        // On the thread of the shard, and on that of the writer.
        for may_block in [false, true] {
            let (writer, answers) = start(FailingJournal::new(MemoryJournal::new([0; 32]), 1), may_block);
            let sender = writer.sender();
            let send = |shard, number, message| {
                sender.send(shard, number, step(message));
                sender.flush();
            };
            send(CoreId(0), 1, 1);
            assert_eq!(answers.recv().unwrap(), (CoreId(0), Ok(1)));
            send(CoreId(0), 2, 2);
            let error = JournalError::new(JournalErrorKind::Full, "the journal fails, as it was told to");
            assert_eq!(answers.recv().unwrap(), (CoreId(0), Err(Lost::Failed(error.clone()))));
            assert_eq!(answers.recv().unwrap(), (CoreId(1), Err(Lost::Failed(error.clone()))));
            send(CoreId(1), 3, 3);
            let (tell, told) = channel::<()>();
            sender.send_beside(step(4), Box::new(move || tell.send(()).unwrap()));
            assert!(told.recv().is_err() && answers.recv().is_err(), "nobody is told anything else");
            assert_eq!(writer.close(), Err(error));
        }
    }

    fn budget(thread: u64) -> Step {
        let record = BudgetRecord { thread, budget: Budget::NONE, spent: Amounts::default() };
        Step { ops: vec![Op::Budget(record)], at: Time::default() }
    }

    #[test]
    fn partitions_are_taken_over_behind_the_steps_before_and_before_those_behind() {
        for may_block in [false, true] {
            let (writer, answers) = start(MemoryJournal::new([0; 32]), may_block);
            let sender = writer.sender();
            let ((tell, told), (left, gone)) = (channel(), channel());
            (1..=100).for_each(|number| sender.send(CoreId(0), number, budget(number)));
            sender.release(CoreId(0), Box::new(move || left.send(()).unwrap()));
            let adopted: Adopted = Box::new(move |recovered| tell.send(recovered).unwrap());
            sender.adopt(CoreId(2), Partitions::share(0, 2), adopted);
            // The core that is gone is not heard, the others are.
            sender.send(CoreId(0), 101, budget(101));
            (1..=100).for_each(|number| sender.send(CoreId(2), number, budget(200 + number)));
            sender.send(CoreId(1), 1, budget(401));
            let recovered = told.recv_timeout(DEADLINE).unwrap();
            gone.try_recv().unwrap();
            assert_eq!((recovered.budgets.len(), recovered.epoch, recovered.crashed), (100, 2, false), "{may_block}");
            writer.close().unwrap();
            let mut last = [0; 3];
            answers.iter().for_each(|(core, told)| last[usize::from(core.0)] = told.unwrap());
            assert_eq!(last, [100, 1, 100], "{may_block}");
        }
    }

    #[test]
    fn a_core_that_is_fenced_is_told_once_and_the_steps_of_others_are_written() {
        for may_block in [false, true] {
            let journal = Arc::new(Mutex::new(MemoryJournal::new([0; 32])));
            let (writer, answers) = start(journal.clone(), may_block);
            let sender = writer.sender();
            journal.lock().unwrap().adopt(&systole_core::vocab::Partition(4).into()).unwrap();
            for number in 1..=100 {
                sender.send(CoreId(0), number, budget(number));
                sender.send(CoreId(1), number, budget(1000 + number));
            }
            let (tell, told) = channel();
            sender.send_beside(budget(2000), Box::new(move || tell.send(()).unwrap()));
            told.recv_timeout(DEADLINE).unwrap();
            writer.close().unwrap();
            let answers: Vec<_> = answers.iter().collect();
            let of = |core| answers.iter().filter(move |(of, _)| *of == CoreId(core)).map(|(_, told)| told.clone());
            assert_eq!(of(0).collect::<Vec<_>>(), [Err(Lost::Fenced)], "{may_block}");
            assert_eq!(of(1).next_back(), Some(Ok(100)), "{may_block}");
            assert_eq!(journal.lock().unwrap().recover().unwrap().budgets.len(), 101, "{may_block}");
        }
    }

    #[test]
    fn an_organism_that_another_process_has_started_is_told_that_it_can_write_nothing_more() {
        let journal = Arc::new(Mutex::new(MemoryJournal::new([0; 32])));
        let (writer, answers) = start(journal.clone(), false);
        let sender = writer.sender();
        journal.lock().unwrap().recover().unwrap();
        let (tell, told) = channel::<()>();
        sender.send_beside(budget(1), Box::new(move || tell.send(()).unwrap()));
        told.recv_timeout(DEADLINE).unwrap_err();
        assert_eq!(writer.close().unwrap_err().kind(), JournalErrorKind::Fenced);
        assert!(answers.iter().all(|(_, told)| matches!(told, Err(Lost::Failed(_)))));
    }

    /// A journal that reports the thread of each transaction, and panics at one of `panics_at` steps.
    struct Traced {
        written: std::sync::mpsc::Sender<(ThreadId, usize)>,
        panics_at: usize,
    }

    impl Journal for Traced {
        fn durability(&self) -> Option<Durability> {
            None
        }

        fn may_block(&self) -> bool {
            false
        }

        fn adopt(&mut self, _: &Partitions) -> Result<Recovered, JournalError> {
            self.recover()
        }

        fn release(&mut self, _: &Tail) -> Result<(), AppendError> {
            Ok(())
        }

        fn append(&mut self, batch: &Batch) -> Result<(), AppendError> {
            assert_ne!(batch.steps().len(), self.panics_at, "as told");
            let _ = self.written.send((std::thread::current().id(), batch.steps().len()));
            Ok(())
        }

        fn recover(&mut self) -> Result<Recovered, JournalError> {
            Ok(Recovered::default())
        }

        fn close(&mut self) -> Result<(), JournalError> {
            Ok(())
        }
    }

    #[test]
    fn a_shard_writes_a_few_steps_itself_where_no_transaction_waits_for_the_disk() {
        for (may_block, few_here) in [(false, true), (true, false)] {
            let (written, traced) = channel();
            let (writer, answers) = start(Traced { written, panics_at: 0 }, may_block);
            let sender = writer.sender();
            let here = std::thread::current().id();
            let (few, mut last) = (FEW as u64, 0);
            let mut send = |count| {
                (last + 1..=last + count).for_each(|number| sender.send(CoreId(0), number, step(number)));
                last += count;
                last
            };
            let heard = |last| while answers.recv_timeout(DEADLINE).unwrap() != (CoreId(0), Ok(last)) {};
            // The thread may be tidying, as it does first.
            let is_here = (0..1000).any(|_| {
                let last = send(few);
                sender.flush();
                heard(last);
                traced.try_iter().any(|(thread, _)| thread == here)
            });
            assert_eq!(is_here, few_here, "{may_block}");
            // One more step starts the thread at once.
            heard(send(few + 1));
            // So does a step that no shard flushes.
            let (tell, told) = channel();
            sender.send_beside(step(0), Box::new(move || tell.send(()).unwrap()));
            told.recv_timeout(DEADLINE).unwrap();
            assert!(traced.try_iter().all(|(thread, _)| thread != here), "{may_block}");
            writer.close().unwrap();
        }
    }

    #[test]
    fn a_journal_that_panics_on_the_thread_of_a_shard_fails_as_on_its_own() {
        let (written, _traced) = channel();
        let (writer, answers) = start(Traced { written, panics_at: 1 }, false);
        writer.sender().send(CoreId(1), 1, step(1));
        writer.sender().flush();
        let told: Vec<_> = answers.iter().map(|(shard, told)| (shard, told.is_err())).collect();
        assert_eq!(told, [(CoreId(0), true), (CoreId(1), true)]);
        writer.close().unwrap_err();
    }

    #[test]
    fn nothing_stays_behind_whoever_writes() {
        const STEPS: u64 = 2000;
        let (asked, _tidied) = channel();
        let (ways, inboxes): (Vec<_>, Vec<_>) = (0..2).map(|_| channel()).unzip();
        let told: Told = Box::new(move |shard, written| ways[usize::from(shard.0)].send(written).unwrap());
        let journal = Box::new(Untidy { asked, more: 0, every: Duration::from_millis(1) });
        let writer = JournalWriter::start(journal, 0, shards(), Clock::real(), told).unwrap();
        std::thread::scope(|scope| {
            for (shard, inbox) in (0..).map(CoreId).zip(inboxes) {
                let sender = writer.sender();
                scope.spawn(move || {
                    // Each shard waits for its own steps, so a step that is left behind stops it.
                    let mut number = 0;
                    for round in 0..STEPS {
                        let count = 1 + round % (FEW as u64 + 2);
                        (0..count).for_each(|_| {
                            number += 1;
                            sender.send(shard, number, step(number));
                        });
                        sender.flush();
                        while inbox.recv_timeout(DEADLINE).unwrap().unwrap() != number {}
                    }
                });
            }
            let sender = writer.sender();
            scope.spawn(move || {
                for _ in 0..STEPS {
                    let (tell, told) = channel();
                    sender.send_beside(step(0), Box::new(move || tell.send(()).unwrap()));
                    told.recv_timeout(DEADLINE).unwrap();
                }
            });
        });
        writer.close().unwrap();
    }

    /// A journal that reports when it is asked to tidy, and answers twice that more is to be done.
    struct Untidy {
        asked: std::sync::mpsc::Sender<Time>,
        more: u32,
        every: Duration,
    }

    impl Journal for Untidy {
        fn durability(&self) -> Option<Durability> {
            None
        }

        fn may_block(&self) -> bool {
            false
        }

        fn adopt(&mut self, _: &Partitions) -> Result<Recovered, JournalError> {
            self.recover()
        }

        fn release(&mut self, _: &Tail) -> Result<(), AppendError> {
            Ok(())
        }

        fn append(&mut self, _: &Batch) -> Result<(), AppendError> {
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

        fn tidy_interval(&self) -> Duration {
            self.every
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
            let journal = Box::new(Untidy { asked, more: 3, every });
            let writer = JournalWriter::start(journal, 0, shards(), Clock::real(), told).unwrap();
            let times: Vec<_> = tidied.iter().take(times).collect();
            assert!(times.is_sorted(), "{times:?}");
            writer.sender().send(CoreId(0), 1, step(1));
            writer.sender().flush();
            assert_eq!(answers.recv().unwrap(), (CoreId(0), Ok(1)), "it writes as before");
            writer.close().unwrap();
        }
    }

    /// A journal whose tables lack steps until it feeds them.
    struct Lagging {
        lacks: usize,
        /// Steps that the tables have.
        has: Arc<AtomicUsize>,
        /// The number of steps at which feeding fails.
        fails_at: usize,
    }

    impl Journal for Lagging {
        fn durability(&self) -> Option<Durability> {
            None
        }

        fn may_block(&self) -> bool {
            false
        }

        fn adopt(&mut self, _: &Partitions) -> Result<Recovered, JournalError> {
            self.recover()
        }

        fn release(&mut self, _: &Tail) -> Result<(), AppendError> {
            Ok(())
        }

        fn append(&mut self, batch: &Batch) -> Result<(), AppendError> {
            self.lacks += batch.steps().len();
            Ok(())
        }

        fn recover(&mut self) -> Result<Recovered, JournalError> {
            Ok(Recovered::default())
        }

        fn is_fed(&self) -> bool {
            self.lacks == 0
        }

        fn feed(&mut self) -> Result<(), JournalError> {
            let has = self.has.fetch_add(std::mem::take(&mut self.lacks), Ordering::SeqCst);
            let full = || JournalError::new(JournalErrorKind::Full, "it fails, as it was told to");
            if has >= self.fails_at { Err(full()) } else { Ok(()) }
        }

        fn close(&mut self) -> Result<(), JournalError> {
            self.feed()
        }
    }

    #[test]
    fn an_idle_writer_feeds_the_tables() {
        for may_block in [false, true] {
            let has = Arc::<AtomicUsize>::default();
            let (writer, answers) = start(Lagging { lacks: 0, has: has.clone(), fails_at: 9 }, may_block);
            writer.sender().send(CoreId(0), 1, step(1));
            writer.sender().flush();
            assert_eq!(answers.recv().unwrap(), (CoreId(0), Ok(1)));
            let is_fed = (0..DEADLINE.as_millis()).any(|_| {
                std::thread::park_timeout(Duration::from_millis(1));
                has.load(Ordering::SeqCst) > 0
            });
            assert!(is_fed, "waited {DEADLINE:?} for the tables");
            writer.close().unwrap();
        }
    }

    #[test]
    fn who_reads_the_tables_waits_for_the_confirmed_steps() {
        let has = Arc::<AtomicUsize>::default();
        let (writer, answers) = start(Lagging { lacks: 0, has: has.clone(), fails_at: 100 }, false);
        let (sender, feeder) = (writer.sender(), writer.sender().feeder());
        let feed = || crate::block_on(feeder.feed());
        for number in 1..=100 {
            sender.send(CoreId(0), number, step(number));
            sender.flush();
            assert_eq!(answers.recv().unwrap(), (CoreId(0), Ok(number)));
            assert!(feed());
            assert!(has.load(Ordering::SeqCst) >= number as usize);
        }
        sender.send(CoreId(0), 101, step(101));
        sender.flush();
        assert_eq!(answers.recv().unwrap(), (CoreId(0), Ok(101)));
        assert!(!feed(), "the tables will never have that step");
        writer.close().unwrap_err();
        assert!(!feed());
    }

    #[test]
    fn shards_that_are_gone_end_it_as_a_crash_does() {
        let batches = Arc::new(Mutex::new(Vec::new()));
        let (go, wait) = channel();
        drop(go);
        let (writer, answers) = start(Slow { go: wait, batches: batches.clone() }, false);
        writer.sender().send(CoreId(1), 7, step(7));
        let JournalWriter { inbox, thread } = writer;
        drop(inbox);
        thread.join().unwrap().unwrap();
        assert_eq!(answers.iter().collect::<Vec<_>>(), [(CoreId(1), Ok(7))]);
        assert_eq!(*batches.lock().unwrap(), [1], "not closed");
    }
}
