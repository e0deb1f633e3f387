//! Ends of processes: time for each to end by itself, and SIGKILL behind that.
//!
//! A thread of its own waits for them: the runtime that started a process may be gone before that has ended.
//!
//! Invariant: each process is dead and reaped [`GRACE`] behind its SIGTERM, with its group, or at once after [`hurry`].

use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::process::Child;
use tokio::sync::Notify;

use super::guard::Group;
use systole_store::clock::instant;

/// Time between SIGTERM and SIGKILL.
pub(crate) const GRACE: Duration = Duration::from_secs(5);
/// Time that a process whose standard input has ended gets before SIGTERM.
pub(crate) const PATIENCE: Duration = Duration::from_secs(1);
/// Time between two looks at the processes that end.
const PAUSE: Duration = Duration::from_millis(5);

/// A process that has to end.
struct Ending {
    child: Child,
    /// `None` once it was killed.
    group: Option<Group>,
    /// The time of SIGTERM, until that.
    terminate: Option<Instant>,
    kill: Instant,
    /// Its outputs: a process that wrote to closed ones would end before it has cleaned up.
    _outputs: Vec<OwnedFd>,
    _counted: Option<Counted>,
}

/// The processes that have to end.
struct Endings {
    all: Vec<Ending>,
    /// The thread that waits for them runs.
    is_watched: bool,
    /// There is no time left for any.
    hurries: bool,
}

static ENDINGS: Mutex<Endings> = Mutex::new(Endings { all: Vec::new(), is_watched: false, hurries: false });
/// A process has to end, or has ended.
static CHANGED: Condvar = Condvar::new();

/// Lets a process end: SIGTERM to its group, at once or behind [`PATIENCE`], and SIGKILL behind [`GRACE`].
pub(super) fn end(child: Child, (group, outputs): (Group, Vec<OwnedFd>), is_patient: bool, ends: Option<&Arc<Ends>>) {
    let mut endings = lock();
    endings.is_watched =
        endings.is_watched || std::thread::Builder::new().name("systole-endings".into()).spawn(watch).is_ok();
    if !endings.is_watched {
        // The system has no thread to wait for it.
        return drop((group, child));
    }
    let now = instant();
    let terminate = if is_patient { now + PATIENCE } else { now };
    let group = Some(group).filter(|_| !endings.hurries);
    if !is_patient {
        group.iter().for_each(Group::terminate);
    }
    let ending = Ending {
        child,
        group,
        terminate: is_patient.then_some(terminate),
        kill: terminate + GRACE,
        _outputs: outputs,
        _counted: ends.map(Ends::count),
    };
    endings.all.push(ending);
    CHANGED.notify_all();
}

/// Waits until all processes that had to end have done so: at most a moment longer than they are given.
pub fn wait() {
    let until = instant() + PATIENCE + GRACE + PATIENCE;
    let mut endings = lock();
    while !endings.all.is_empty() && instant() < until {
        endings = CHANGED.wait_timeout(endings, PAUSE).unwrap_or_else(PoisonError::into_inner).0;
    }
}

/// Kills the processes that have to end, and from now on each that has to, when there is no time left for them. Others
/// go on: their messages are not over.
pub fn hurry() {
    let mut endings = lock();
    endings.hurries = true;
    endings.all.iter_mut().for_each(|ending| ending.group = None);
    CHANGED.notify_all();
}

fn watch() {
    let mut endings = lock();
    loop {
        if endings.all.is_empty() {
            endings = CHANGED.wait(endings).unwrap_or_else(PoisonError::into_inner);
            continue;
        }
        let now = instant();
        endings.all.retain_mut(|ending| ending.goes_on(now));
        CHANGED.notify_all();
        endings = CHANGED.wait_timeout(endings, PAUSE).unwrap_or_else(PoisonError::into_inner).0;
    }
}

fn lock() -> MutexGuard<'static, Endings> {
    ENDINGS.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Ending {
    /// Returns `false` once the process is reaped; the rest of its group is killed then.
    fn goes_on(&mut self, now: Instant) -> bool {
        if !matches!(self.child.try_wait(), Ok(None)) {
            return false;
        }
        if self.terminate.is_some_and(|at| at <= now) {
            self.terminate = None;
            self.group.iter().for_each(Group::terminate);
        }
        if self.kill <= now {
            self.group = None;
        }
        true
    }
}

/// The number of processes of a listener that have to end and have not.
#[derive(Debug, Default)]
pub(crate) struct Ends {
    count: AtomicUsize,
    fewer: Notify,
}

/// A process among them.
struct Counted(Arc<Ends>);

impl Ends {
    fn count(self: &Arc<Self>) -> Counted {
        self.count.fetch_add(1, Ordering::Relaxed);
        Counted(self.clone())
    }

    /// Waits until one has ended, if there is any; `false` if there was none.
    pub(crate) async fn next(&self) -> bool {
        let fewer = self.fewer.notified();
        if self.count.load(Ordering::Relaxed) == 0 {
            return false;
        }
        fewer.await;
        true
    }

    /// The number of them.
    pub(crate) fn len(&self) -> usize {
        self.count.load(Ordering::Relaxed)
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.count.fetch_sub(1, Ordering::Relaxed);
        self.0.fewer.notify_waiters();
    }
}
