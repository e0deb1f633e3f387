//! Checkpoints beside the writer: a thread writes the log back to the file, so that no transaction waits for the disk
//! meanwhile.
//!
//! SQLite starts its log over with the first transaction that finds all of it written back. While transactions come
//! without a break none does, since each adds frames that the thread has not seen. So the thread writes back until
//! little is left, and reports; once the log is long, the writer writes back the rest between two transactions. If the log
//! grows longer all the same, because the disk is slower than the writer, the writer waits for the thread.
//!
//! Source: <https://www.sqlite.org/wal.html>, sections 2.1 and 3.3.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, TryRecvError, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use rusqlite::hooks::Wal;
use rusqlite::wal::CheckpointMode;
use rusqlite::{Connection, MAIN_DB};

use super::file_lock::LockedFile;
use super::format::Format;
use super::open::{CHECKPOINT, join};
use super::problem::FileProblem;
use systole_core::journal::Durability;

/// Growth in pages after which the thread starts again if the log could not start over, because of a reader.
const AGAIN: i32 = CHECKPOINT / 4;

/// Length in pages at which the writer writes back the rest, so that the log starts over. It waits for the disk twice
/// then, so this is rarer than the passes of the thread: with 64 conversations under way less than one message in a hundred
/// waits for it.
const START_OVER: i32 = 3 * CHECKPOINT;

/// Length in pages at which the writer waits for the thread.
const MOST: i32 = 4 * CHECKPOINT;

/// Length in pages at which a reader is the reason why the log did not start over: the disk is not, since the writer has
/// waited for it before.
const PINNED: i32 = MOST + AGAIN;

/// Length in pages from which on no new work is to come, because a reader keeps the log from starting over. Commands of
/// other processes have given up long before.
const FULL: i32 = 4 * MOST;

/// Time after which the thread looks again whether the reader of a full log has gone.
const LOOK: Duration = Duration::from_secs(1);

/// The most pages that the writer writes back itself.
const REST: i32 = 256;

/// The most passes of the thread over the log.
const PASSES: usize = 8;

/// States whether the log of a file is full: a program reads the file in one transaction, and no new work is to come
/// before that has ended.
#[derive(Debug, Clone, Default)]
pub struct LogFull(Arc<AtomicBool>);

impl LogFull {
    /// Returns whether the log is full.
    pub fn get(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// Sets the state; returns the one before.
    fn set(&self, full: bool) -> bool {
        self.0.swap(full, Ordering::Relaxed)
    }
}

/// Checkpoints of a file while its writer goes on.
#[derive(Debug)]
pub(super) struct Checkpoints {
    format: Format,
    durability: Durability,
    /// Pages of the log after the last transaction.
    pages: Arc<AtomicI32>,
    /// Pages of the log when the writer last looked.
    seen: i32,
    /// Pages at which a checkpoint starts.
    next: i32,
    thread: Option<Thread>,
    /// True if the thread is working.
    asked: bool,
    /// Pages at which it is reported next that the log can't start over.
    tell: i32,
    full: LogFull,
}

/// The checkpoint thread, which ends when this value is dropped.
#[derive(Debug)]
struct Thread {
    /// The questions to the thread; `None` while the thread is to end.
    ask: Option<Sender<()>>,
    done: Receiver<()>,
    handle: Option<JoinHandle<()>>,
}

impl Checkpoints {
    /// Replaces SQLite's own checkpoints, which run in the transaction that makes the log too long.
    ///
    /// # Errors
    /// [`FileProblem`] of SQLite.
    pub(super) fn of(db: &mut Connection, format: Format, durability: Durability) -> Result<Self, FileProblem> {
        let pages = Arc::new(AtomicI32::new(0));
        let counted = pages.clone();
        let hook = move |log: &mut Wal, pages| {
            counted.store(pages, Ordering::Relaxed);
            if pages >= MOST {
                // The transaction is in the log: a later checkpoint can write it back.
                let _ = log.checkpoint();
            }
            Ok(())
        };
        db.wal_hook(Some(hook))?;
        let (full, next, tell) = (LogFull::default(), CHECKPOINT, PINNED);
        Ok(Self { format, durability, pages, seen: 0, next, thread: None, asked: false, tell, full })
    }

    /// Returns the state that says whether the log is full.
    pub(super) fn full(&self) -> LogFull {
        self.full.clone()
    }

    /// Pages of the log after the last transaction.
    pub(super) fn pages(&self) -> i32 {
        self.pages.load(Ordering::Relaxed)
    }

    /// Forgets the length of the log, which was emptied.
    pub(super) fn forget(&self) {
        self.pages.store(0, Ordering::Relaxed);
    }

    /// Starts or finishes a checkpoint after a transaction, by the length of the log.
    pub(super) fn after_commit(&mut self, db: &Connection, file: &LockedFile) {
        let pages = self.pages.load(Ordering::Relaxed);
        let anew = pages < self.seen;
        self.seen = pages;
        if anew {
            (self.next, self.tell) = (CHECKPOINT, PINNED);
        }
        if pages >= self.tell {
            self.tell = pages.saturating_mul(2);
            tell_of_reader(file, pages, "end that transaction or that program before the log is full");
        }
        if self.asked {
            if !self.is_done(pages >= MOST) {
                return;
            }
            self.asked = false;
            match pages >= START_OVER {
                _ if anew => {}
                true => self.finish(db, pages),
                false => self.next = pages.saturating_add(CHECKPOINT),
            }
        } else if pages >= self.next && !self.ask(file.path()) {
            self.finish(db, pages);
        }
        self.judge(file, pages);
    }

    /// Notes whether the log is full. While it is, the thread looks for the end of the reader, since no transaction may
    /// come that would.
    fn judge(&mut self, file: &LockedFile, pages: i32) {
        let full = pages >= FULL && self.thread.is_some();
        if !self.full.set(full) && full {
            tell_of_reader(file, pages, "no new messages are taken before the end of that transaction");
        }
    }

    /// Asks the thread to start; `false` if there is no thread.
    fn ask(&mut self, file: &Path) -> bool {
        if self.thread.is_none() {
            let log = Log { pages: self.pages.clone(), full: self.full.clone() };
            let started = Thread::start(file, self.format, self.durability, log);
            self.thread = started.inspect_err(|error| tracing::warn!(%error, "no thread can be started")).ok();
        }
        self.asked =
            self.thread.as_ref().is_some_and(|thread| thread.ask.as_ref().is_some_and(|ask| ask.send(()).is_ok()));
        if !self.asked {
            self.thread = None;
        }
        self.asked
    }

    /// Returns whether the thread has finished or is gone; with `wait`, waits for that.
    fn is_done(&self, wait: bool) -> bool {
        let Some(thread) = &self.thread else { return true };
        if wait {
            let _ = thread.done.recv();
            return true;
        }
        thread.done.try_recv() != Err(TryRecvError::Empty)
    }

    /// Writes back the rest, so that the next transaction starts the log over.
    fn finish(&mut self, db: &Connection, pages: i32) {
        // A later checkpoint can do it, as in the hook.
        let _ = write_back(db);
        self.next = pages.saturating_add(AGAIN);
    }
}

/// The log, as the thread sees it.
struct Log {
    pages: Arc<AtomicI32>,
    full: LogFull,
}

impl Log {
    /// Receives the next question to the thread; `None` if the thread is to end. Meanwhile looks at a full log.
    fn next(&self, db: &Connection, asked: &Receiver<()>) -> Option<()> {
        // Where the log can become full, there was a question since it got so long.
        while self.pages.load(Ordering::Relaxed) >= MOST {
            match asked.recv_timeout(LOOK) {
                Ok(()) => return Some(()),
                Err(RecvTimeoutError::Disconnected) => return None,
                Err(RecvTimeoutError::Timeout) => self.look(db),
            }
        }
        asked.recv().ok()
    }

    /// Lets new work come again, if the next transaction can start the log over.
    fn look(&self, db: &Connection) {
        let pages = self.pages.load(Ordering::Relaxed);
        if self.full.get() && write_back(db).is_ok_and(|back| back >= pages) {
            self.full.set(false);
        }
    }
}

impl Thread {
    fn start(file: &Path, format: Format, durability: Durability, log: Log) -> std::io::Result<Self> {
        let (ask, asked) = channel();
        let (tell, done) = channel();
        let file = file.to_owned();
        let work = move || match join(&file, format, durability) {
            Ok(db) => {
                while let Some(()) = log.next(&db, &asked) {
                    if let Err(error) = go_over(&db, &log.pages) {
                        tracing::warn!(file = %file.display(), %error, "the log can't be written back at the moment");
                    }
                    if tell.send(()).is_err() {
                        return;
                    }
                }
            }
            Err(problem) => {
                tracing::warn!(file = %file.display(), %problem, "the log is not written back beside the writer")
            }
        };
        let handle = std::thread::Builder::new().name("checkpoint".into()).spawn(work)?;
        Ok(Self { ask: Some(ask), done, handle: Some(handle) })
    }
}

impl Drop for Thread {
    fn drop(&mut self) {
        drop(self.ask.take());
        if let Some(handle) = self.handle.take() {
            // The thread has logged its errors itself.
            let _ = handle.join();
        }
    }
}

/// Logs that a program keeps the log from starting over, and the consequence. The writer can't end that program.
fn tell_of_reader(file: &LockedFile, pages: i32, consequence: &str) {
    let reader = file.reader().unwrap_or_default();
    tracing::warn!(file = %file.path().display(), pages, reader, consequence,
        "the journal's log can't start over and grows, because a program reads the journal in one transaction");
}

/// Writes the log back until little is left, or no more can be written back.
fn go_over(db: &Connection, pages: &AtomicI32) -> rusqlite::Result<()> {
    let mut before = -1;
    for _ in 0..PASSES {
        let back = write_back(db)?;
        if back <= before || pages.load(Ordering::Relaxed).saturating_sub(back) <= REST {
            break;
        }
        before = back;
    }
    Ok(())
}

/// Writes back the frames that no reader needs; returns how many pages of the log are written back.
pub(crate) fn write_back(db: &Connection) -> rusqlite::Result<i32> {
    db.wal_checkpoint_v2(Some(MAIN_DB), CheckpointMode::PASSIVE).map(|(_, back)| back)
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;
    use crate::sqlite::{Database, Opened, Opening, beside, open_to_read};

    const FORMAT: Format = Format { name: "test", id: 7, version: 1, schema: "CREATE TABLE page (bytes BLOB)" };

    /// A file with a table, and statistics of its log.
    struct Filled {
        folder: PathBuf,
        db: Database,
        /// Number of times that the log started over, and the most pages that it had.
        anew: u32,
        most: i32,
    }

    impl Filled {
        fn new(name: &str) -> Self {
            let folder = std::env::temp_dir().join(format!("systole-checkpoint-{}-{name}", std::process::id()));
            std::fs::create_dir_all(&folder).unwrap();
            let nothing = |_: &Connection| Ok(());
            let durability = Durability::Process;
            let opening = Opening { format: FORMAT, durability, cut: false, fill: &nothing, read: &nothing };
            let Opened { db, .. } = opening.open(&folder.join("file")).unwrap();
            Self { folder, db, anew: 0, most: 0 }
        }

        /// Commits a transaction of 64 pages or so.
        fn commit(&mut self) {
            let before = self.pages();
            self.db.execute_batch("BEGIN IMMEDIATE; INSERT INTO page VALUES (zeroblob(262144))").unwrap();
            self.db.commit().unwrap();
            self.anew += u32::from(self.pages() < before);
            self.most = self.most.max(self.pages());
        }

        fn pages(&self) -> i32 {
            self.db.checkpoints().pages()
        }
    }

    #[test]
    fn the_log_begins_anew_while_transactions_come_without_a_break() {
        let mut filled = Filled::new("anew");
        // Twice as much as a log may hold.
        (0..2 * MOST / 64).for_each(|_| filled.commit());
        assert!(filled.anew > 0 && filled.most <= MOST + 128, "{} times, {} pages", filled.anew, filled.most);
        let Filled { folder, db, .. } = filled;
        let file = db.file().path().to_owned();
        drop(db);
        assert!(!beside(&file, "-wal").exists(), "whoever writes is the last to close it, and leaves no log");
        std::fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn who_reads_on_keeps_nobody_from_writing() {
        let mut filled = Filled::new("reader");
        let reader = open_to_read(filled.db.file().path(), FORMAT, false).unwrap();
        let count = |reader: &Database| reader.query_row("SELECT count(*) FROM page", [], |row| row.get::<_, i32>(0));
        filled.commit();
        reader.execute_batch("BEGIN").unwrap();
        assert_eq!(count(&reader).unwrap(), 1);
        (0..2 * MOST / 64).for_each(|_| filled.commit());
        assert!(filled.anew == 0 && filled.most > MOST, "{} times, {} pages", filled.anew, filled.most);
        assert_eq!(count(&reader).unwrap(), 1);
        reader.execute_batch("COMMIT").unwrap();
        assert_eq!(count(&reader).unwrap(), 1 + 2 * MOST / 64);
        drop(reader);
        (0..MOST / 64).for_each(|_| filled.commit());
        assert!(filled.anew > 0, "the log of {} pages goes on", filled.pages());
        std::fs::remove_dir_all(filled.folder).unwrap();
    }

    #[test]
    fn a_log_that_a_reader_keeps_is_full_at_last_and_free_once_the_reader_has_ended() {
        let mut filled = Filled::new("full");
        let full = filled.db.checkpoints().full();
        let reader = open_to_read(filled.db.file().path(), FORMAT, false).unwrap();
        let count = |reader: &Database| reader.query_row("SELECT count(*) FROM page", [], |row| row.get::<_, i32>(0));
        filled.commit();
        reader.execute_batch("BEGIN").unwrap();
        count(&reader).unwrap();
        while filled.pages() < FULL {
            assert!(!full.get(), "full at {} pages", filled.pages());
            filled.commit();
        }
        assert!(full.get());
        reader.execute_batch("COMMIT").unwrap();
        drop(reader);
        // No transaction comes, since no work does.
        let is_free = (0..60_000).any(|_| {
            std::thread::park_timeout(Duration::from_millis(1));
            !full.get()
        });
        assert!(is_free, "the log stays full");
        filled.commit();
        assert!(filled.anew > 0 && !full.get(), "the log of {} pages goes on", filled.pages());
        std::fs::remove_dir_all(filled.folder).unwrap();
    }
}
