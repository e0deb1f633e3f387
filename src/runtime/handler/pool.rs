//! Threads for blocking listeners.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Time for which a thread waits for work before it ends.
const LINGER: Duration = Duration::from_secs(10);

/// A pool of threads that start when there is work, up to a limit, and end when there is none.
pub(crate) struct Pool {
    threads: Option<Arc<Threads>>,
}

/// Blocking work.
pub(crate) type Work = Box<dyn FnOnce() + Send>;

/// The work, given back because the system refuses a thread and none is running.
pub(crate) struct NoThread(pub(crate) Work);

struct Threads {
    state: Mutex<State>,
    work: Condvar,
    max: usize,
}

#[derive(Default)]
struct State {
    queue: VecDeque<Work>,
    threads: usize,
    waiting: usize,
    closed: bool,
}

impl Pool {
    /// Makes a pool that runs work on the calling thread, so that a test is deterministic.
    pub(crate) fn inline() -> Self {
        Self { threads: None }
    }

    /// Makes a pool of at most `max` threads.
    pub(crate) fn of_threads(max: usize) -> Self {
        let threads = Threads { state: Mutex::default(), work: Condvar::new(), max };
        Self { threads: Some(Arc::new(threads)) }
    }

    /// Runs the work when a thread is free.
    ///
    /// # Errors
    /// [`NoThread`], with the work.
    pub(crate) fn submit(&self, work: Work) -> Result<(), NoThread> {
        let Some(threads) = &self.threads else {
            work();
            return Ok(());
        };
        let mut state = threads.lock();
        state.queue.push_back(work);
        if state.queue.len() <= state.waiting || state.threads == threads.max {
            threads.work.notify_one();
            return Ok(());
        }
        let worker = threads.clone();
        let spawned = std::thread::Builder::new().name("systole-blocking".into()).spawn(move || worker.serve());
        match spawned {
            Ok(_) => state.threads += 1,
            Err(_) if state.threads == 0 => return state.queue.pop_back().map_or(Ok(()), |work| Err(NoThread(work))),
            // A running thread takes the work later.
            Err(_) => {}
        }
        Ok(())
    }

    /// Ends the threads once they are idle, and drops work that has not begun.
    pub(crate) fn close(&self) {
        if let Some(threads) = &self.threads {
            let dropped = {
                let mut state = threads.lock();
                state.closed = true;
                std::mem::take(&mut state.queue)
            };
            threads.work.notify_all();
            systole_core::core::catch_panic::discard(dropped);
        }
    }
}

impl Threads {
    fn serve(&self) {
        let mut state = self.lock();
        loop {
            if let Some(work) = state.queue.pop_front() {
                drop(state);
                work();
                state = self.lock();
                continue;
            }
            if state.closed {
                break;
            }
            state.waiting += 1;
            let (woken, timeout) = self.work.wait_timeout(state, LINGER).unwrap_or_else(PoisonError::into_inner);
            state = woken;
            state.waiting -= 1;
            if timeout.timed_out() && state.queue.is_empty() {
                break;
            }
        }
        state.threads -= 1;
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;

    #[test]
    fn work_runs_on_no_more_threads_than_allowed_and_all_of_it_runs() {
        let pool = Pool::of_threads(2);
        let (report, reports) = channel();
        for n in 0..50 {
            let report = report.clone();
            assert!(pool.submit(Box::new(move || report.send((n, std::thread::current().id())).unwrap())).is_ok());
        }
        drop(report);
        let (mut numbers, mut threads): (Vec<_>, Vec<_>) = reports.iter().unzip();
        numbers.sort_unstable();
        assert_eq!(numbers, (0..50).collect::<Vec<_>>());
        threads.sort_unstable_by_key(|id| format!("{id:?}"));
        threads.dedup();
        assert!(threads.len() <= 2, "ran on {} threads", threads.len());
    }

    #[test]
    fn a_closed_pool_drops_what_has_not_begun() {
        let pool = Pool::of_threads(1);
        let (enter, entered) = channel();
        let (leave, left) = channel::<()>();
        let first = pool.submit(Box::new(move || {
            enter.send(()).unwrap();
            left.recv().unwrap();
        }));
        assert!(first.is_ok());
        entered.recv().unwrap();
        let (report, reports) = channel::<()>();
        assert!(pool.submit(Box::new(move || report.send(()).unwrap())).is_ok());
        pool.close();
        leave.send(()).unwrap();
        assert!(reports.recv().is_err(), "work ran after the pool was closed");
    }
}
