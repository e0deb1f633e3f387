//! An open file that the program prints to, while it has signals to hear and an organism to run.
//!
//! Always: one thread alone waits for the file, so a reader that doesn't read, a full disk or a stopped terminal stops
//! nothing else. What may be lost (events, the log) has a bound in bytes, and lines beyond it are missed, counted and
//! told; what may not (answers) is kept, and those who print it wait for [room](Outlet::room) before they take more.

use std::collections::VecDeque;
use std::io::{self, Write};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::watch;

/// Bytes of lines that wait for the file; further ones are missed.
const MOST_OFFERED: usize = 1 << 20;
/// Bytes that are kept for the file before those who print wait.
const MOST_KEPT: usize = 64 << 10;
/// Bytes of several items in one write: those of a blocked write are not known to be taken, however many are.
const CHUNK: usize = 16 << 10;

/// Writes the line that so many others are missed.
pub(super) type TellMissed = Box<dyn Fn(u64) -> String + Send>;

/// Called once the file has taken all bytes of an item.
type Taken = Box<dyn FnOnce() + Send>;

/// An open file with the thread that writes to it. Dropping it ends the thread, once all is written.
pub(super) struct Outlet(Arc<Shared>);

struct Shared {
    queue: Mutex<Queue>,
    changed: Condvar,
    progress: watch::Sender<Progress>,
}

struct Queue {
    items: VecDeque<Item>,
    missed: u64,
    /// True if the file has refused the last line: the next one asks again.
    refused: bool,
    tell_missed: TellMissed,
    /// The first error of a write of kept bytes.
    error: Option<io::Error>,
    progress: Progress,
    closed: bool,
}

struct Item {
    bytes: Vec<u8>,
    kind: Kind,
}

enum Kind {
    /// Lines that may be missed.
    Offered { lines: u64 },
    /// Bytes that may not.
    Kept { taken: Option<Taken> },
}

impl Item {
    fn is_kept(&self) -> bool {
        matches!(self.kind, Kind::Kept { .. })
    }
}

/// The state of an outlet.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Progress {
    /// Bytes of lines that the file has not taken yet.
    offered: usize,
    /// Bytes and items that are kept, of which the file has not taken all.
    kept: (usize, usize),
    /// Bytes that the file has taken so far.
    pub(super) taken: u64,
    /// True if kept bytes could not be written.
    failed: bool,
}

impl Progress {
    /// Returns whether further kept bytes find room.
    pub(super) fn has_room(self) -> bool {
        self.kept.0 < MOST_KEPT
    }

    /// Returns the number of kept items that the file has not taken.
    pub(super) fn unwritten(self) -> usize {
        self.kept.1
    }

    /// Returns whether lines wait for the file.
    pub(super) fn is_behind(self) -> bool {
        self.offered > 0
    }

    /// Returns whether kept bytes can't be written, or the file has no thread to write to it.
    pub(super) fn has_failed(self) -> bool {
        self.failed
    }

    fn is_written(self) -> bool {
        self.offered == 0 && self.kept.1 == 0
    }
}

impl Outlet {
    /// Opens an outlet to a file.
    pub(super) fn new(file: impl Write + Send + 'static, tell_missed: TellMissed) -> Arc<Self> {
        let queue = Queue {
            items: VecDeque::new(),
            missed: 0,
            refused: false,
            tell_missed,
            error: None,
            progress: Progress::default(),
            closed: false,
        };
        let shared = Shared { queue: Mutex::new(queue), changed: Condvar::new(), progress: watch::Sender::default() };
        let shared = Arc::new(shared);
        let writer = shared.clone();
        // Detached: a write may never return, and ends with the process.
        let started = std::thread::Builder::new().name("systole-print".into()).spawn(move || writer.write_to(file));
        if let Err(error) = started {
            let mut queue = shared.lock();
            (queue.closed, queue.error, queue.progress.failed) = (true, Some(error), true);
            shared.tell(queue);
        }
        Arc::new(Self(shared))
    }

    /// Prints lines that may be missed; never waits.
    pub(super) fn offer(&self, text: String) {
        let lines = text.bytes().filter(|&byte| byte == b'\n').count().max(1) as u64;
        let mut queue = self.0.lock();
        if queue.closed || queue.progress.offered + text.len() > MOST_OFFERED {
            queue.missed += lines;
            return;
        }
        queue.refused = false;
        queue.tell_missed();
        queue.push(Item { bytes: text.into_bytes(), kind: Kind::Offered { lines } });
        self.0.tell(queue);
    }

    /// Prints bytes that may not be lost; never waits. `taken` is called, by the thread of the outlet, once the file has
    /// all of them.
    pub(super) fn keep(&self, bytes: Vec<u8>, taken: impl FnOnce() + Send + 'static) {
        let mut queue = self.0.lock();
        if !queue.progress.failed {
            queue.push(Item { bytes, kind: Kind::Kept { taken: Some(Box::new(taken)) } });
            self.0.tell(queue);
        }
    }

    /// Returns the present state.
    pub(super) fn progress(&self) -> Progress {
        self.0.lock().progress
    }

    /// Waits until further kept bytes find room.
    ///
    /// # Cancel safety
    /// Dropping the future changes nothing.
    pub(super) async fn room(&self) {
        self.until(Progress::has_room).await;
    }

    /// Waits until further lines are hardly missed.
    ///
    /// # Cancel safety
    /// Dropping the future changes nothing.
    pub(super) async fn line_room(&self) {
        self.until(|progress| progress.offered < MOST_OFFERED / 2).await;
    }

    /// Waits until the file has taken more than so many bytes.
    ///
    /// # Cancel safety
    /// Dropping the future changes nothing.
    pub(super) async fn took_more_than(&self, bytes: u64) {
        self.until(|progress| progress.taken > bytes).await;
    }

    /// Waits until all is written.
    ///
    /// # Cancel safety
    /// Dropping the future changes nothing.
    pub(super) async fn written(&self) {
        self.until(Progress::is_written).await;
    }

    /// Waits for an error of a write of kept bytes. They and all that follow are not written.
    ///
    /// # Cancel safety
    /// Dropping the future loses nothing.
    pub(super) async fn failed(&self) -> io::Error {
        self.until(|progress| progress.failed).await;
        let error = self.0.lock().error.take();
        error.unwrap_or_else(|| io::Error::other("an earlier write failed"))
    }

    /// Waits on this thread until all is written, so long at most; returns whether it is.
    pub(super) fn flush(&self, most: Duration) -> bool {
        let is_unwritten = |queue: &mut Queue| !queue.progress.is_written() && !queue.closed;
        let waited = self.0.changed.wait_timeout_while(self.0.lock(), most, is_unwritten);
        waited.unwrap_or_else(PoisonError::into_inner).0.progress.is_written()
    }

    async fn until(&self, is_so: impl Fn(Progress) -> bool) {
        // The sender lives as long as this outlet.
        let _ = self.0.progress.subscribe().wait_for(|progress| is_so(*progress)).await;
    }
}

impl Drop for Outlet {
    fn drop(&mut self) {
        self.0.lock().closed = true;
        self.0.changed.notify_all();
    }
}

impl Queue {
    fn push(&mut self, item: Item) {
        let size = item.bytes.len();
        match item.kind {
            Kind::Offered { .. } => self.progress.offered += size,
            Kind::Kept { .. } => self.progress.kept = (self.progress.kept.0 + size, self.progress.kept.1 + 1),
        }
        self.items.push_back(item);
    }

    /// Tells of the lines that were missed so far.
    fn tell_missed(&mut self) {
        if self.missed > 0 {
            let lines = std::mem::take(&mut self.missed);
            let bytes = (self.tell_missed)(lines).into_bytes();
            self.push(Item { bytes, kind: Kind::Offered { lines } });
        }
    }

    /// Counts an item off.
    fn ended(&mut self, item: &Item) {
        let size = item.bytes.len();
        match item.kind {
            Kind::Offered { .. } => self.progress.offered -= size,
            Kind::Kept { .. } => self.progress.kept = (self.progress.kept.0 - size, self.progress.kept.1 - 1),
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Shows the progress to all who wait.
    fn tell(&self, queue: MutexGuard<'_, Queue>) {
        // Under the lock, so that an older state never comes last.
        self.progress.send_replace(queue.progress);
        drop(queue);
        self.changed.notify_all();
    }

    fn write_to(&self, mut file: impl Write) {
        while let Some(mut items) = self.next() {
            let bytes: Vec<u8> = items.iter().flat_map(|item| item.bytes.iter().copied()).collect();
            // Bytes that are written, and those of them that are of whole items.
            let (mut written, mut whole) = (0, 0);
            while written < bytes.len() {
                match file.write(&bytes[written..]) {
                    Ok(taken) if taken > 0 => {
                        written += taken;
                        let ended = items.iter().take_while(|item| {
                            let ends = whole + item.bytes.len() <= written;
                            whole += if ends { item.bytes.len() } else { 0 };
                            ends
                        });
                        let ended = ended.count();
                        self.took(taken, items.drain(..ended).collect());
                    }
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    refused => {
                        self.give_up(items, refused.err().unwrap_or(io::ErrorKind::WriteZero.into()));
                        break;
                    }
                }
            }
        }
    }

    /// Waits for items, and takes those of one write; `None` when no more can come.
    fn next(&self) -> Option<Vec<Item>> {
        let mut queue = self.lock();
        loop {
            if queue.items.is_empty() && !queue.refused {
                queue.tell_missed();
            }
            if !queue.items.is_empty() {
                break;
            }
            if queue.closed {
                return None;
            }
            queue = self.changed.wait(queue).unwrap_or_else(PoisonError::into_inner);
        }
        let mut bytes = 0;
        let of_one_write = queue.items.iter().take_while(|item| {
            bytes += item.bytes.len();
            bytes == item.bytes.len() || bytes <= CHUNK
        });
        let count = of_one_write.count();
        Some(queue.items.drain(..count).collect())
    }

    /// The file has taken so many bytes, with which these items are whole.
    fn took(&self, bytes: usize, mut whole: Vec<Item>) {
        for item in &mut whole {
            if let Kind::Kept { taken } = &mut item.kind
                && let Some(taken) = taken.take()
            {
                taken();
            }
        }
        let mut queue = self.lock();
        queue.progress.taken += bytes as u64;
        whole.iter().for_each(|item| queue.ended(item));
        self.tell(queue);
    }

    /// The file has refused these items: lines are missed, and kept bytes fail for good.
    fn give_up(&self, mut refused: Vec<Item>, error: io::Error) {
        let mut queue = self.lock();
        if refused.iter().any(Item::is_kept) {
            let all = std::mem::take(&mut queue.items);
            let (kept, lines): (Vec<_>, Vec<_>) = all.into_iter().partition(Item::is_kept);
            queue.items = lines.into();
            refused.extend(kept);
            queue.progress.failed = true;
            queue.error.get_or_insert(error);
        }
        for item in &refused {
            queue.ended(item);
            if let Kind::Offered { lines } = item.kind {
                queue.missed += lines;
            }
        }
        queue.refused = true;
        self.tell(queue);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::mpsc::{Receiver, Sender, channel};

    use super::*;

    const PATIENCE: Duration = Duration::from_secs(60);

    /// A file that takes each write when it is told to, and says what it got.
    struct Slow {
        allowed: Receiver<io::Result<()>>,
        got: Sender<String>,
    }

    impl Write for Slow {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.allowed.recv().unwrap_or(Ok(()))?;
            let _ = self.got.send(String::from_utf8_lossy(bytes).into_owned());
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn slow() -> (Arc<Outlet>, Sender<io::Result<()>>, Receiver<String>) {
        let ((allow, allowed), (got, written)) = (channel(), channel());
        (Outlet::new(Slow { allowed, got }, Box::new(|missed| format!("{missed} missed\n"))), allow, written)
    }

    #[test]
    fn lines_beyond_the_bound_are_missed_and_counted_and_the_printer_never_waits() {
        let (outlet, allow, written) = slow();
        let line = "x".repeat(1023) + "\n";
        // One write may be under way beside those that wait.
        (0..3000).for_each(|_| outlet.offer(line.clone()));
        assert!(!outlet.flush(Duration::ZERO));
        drop(allow);
        assert!(outlet.flush(PATIENCE));
        outlet.offer("last\n".into());
        assert!(outlet.flush(PATIENCE));
        drop(outlet);
        let all: String = written.iter().collect();
        let (shown, missed) = all.split_once(" missed\n").expect("it is told").0.rsplit_once('\n').unwrap();
        assert_eq!(shown.lines().count() + missed.parse::<usize>().unwrap(), 3000);
        assert!(shown.len() <= MOST_OFFERED + CHUNK && all.ends_with(" missed\nlast\n"));
    }

    #[test]
    fn lines_that_a_full_disk_refuses_are_counted_until_it_takes_some() {
        let (outlet, allow, written) = slow();
        for _ in 0..2 {
            outlet.offer("a\nb\n".into());
            allow.send(Err(io::ErrorKind::StorageFull.into())).unwrap();
            assert!(outlet.flush(PATIENCE), "refused");
        }
        drop(allow);
        outlet.offer("c\n".into());
        assert!(outlet.flush(PATIENCE));
        drop(outlet);
        assert_eq!(written.iter().collect::<String>(), "4 missed\nc\n");
    }

    #[tokio::test]
    async fn kept_bytes_are_read_once_the_file_has_them_and_make_printers_wait() {
        let (outlet, allow, written) = slow();
        let read = Arc::<AtomicUsize>::default();
        let mut kept = 0;
        while outlet.progress().has_room() {
            let read = read.clone();
            outlet.keep(vec![b'x'; 1000], move || {
                read.fetch_add(1, Ordering::SeqCst);
            });
            kept += 1;
        }
        assert_eq!((outlet.progress().unwritten(), read.load(Ordering::SeqCst)), (kept, 0));
        allow.send(Ok(())).unwrap();
        outlet.room().await;
        assert!(read.load(Ordering::SeqCst) > 0);
        drop(allow);
        outlet.written().await;
        assert_eq!((outlet.progress().unwritten(), read.load(Ordering::SeqCst)), (0, kept));
        drop(outlet);
        assert_eq!(written.iter().map(|piece| piece.len()).sum::<usize>(), kept * 1000);
    }

    #[tokio::test]
    async fn kept_bytes_that_a_file_refuses_fail_for_good() {
        let (outlet, allow, written) = slow();
        outlet.keep(b"a".to_vec(), || unreachable!("it was not written"));
        allow.send(Err(io::ErrorKind::BrokenPipe.into())).unwrap();
        assert_eq!(outlet.failed().await.kind(), io::ErrorKind::BrokenPipe);
        outlet.keep(b"b".to_vec(), || unreachable!("what follows neither"));
        drop(allow);
        outlet.written().await;
        drop(outlet);
        assert_eq!(written.iter().count(), 0);
    }
}
