//! Waiting for futures without a runtime.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};

use crate::runtime::shard::spin::{SPIN, Spin, look};
use systole_store::clock::instant;

thread_local! {
    static RECENT: Cell<Spin> = const { Cell::new(Spin::new()) };
}

/// A wake of a thread that waits.
struct Signal {
    woken: AtomicBool,
    thread: Thread,
}

impl Wake for Signal {
    fn wake(self: Arc<Self>) {
        self.woken.store(true, Ordering::Release);
        self.thread.unpark();
    }
}

impl Signal {
    /// Takes a wake that has come.
    fn take(&self) -> bool {
        self.woken.swap(false, Ordering::Acquire)
    }

    /// Waits for a wake.
    fn wait(&self) {
        let (start, mut recent) = (instant(), RECENT.get());
        let looks = recent.is_worth();
        while looks && start.elapsed() < SPIN {
            if look(|| self.woken.load(Ordering::Relaxed)) && self.take() {
                return;
            }
        }
        while !self.take() {
            thread::park();
        }
        recent.slept(start.elapsed(), looks);
        RECENT.set(recent);
    }
}

/// Waits for a future on a thread that runs no async runtime.
///
/// Every future of an [`crate::runtime::Organism`] and its clients works here: their work is done on threads of the organism.
/// Futures that need a runtime of their own (timers, sockets) don't.
pub fn block_on<F: Future>(future: F) -> F::Output {
    let mut future = std::pin::pin!(future);
    let signal = Arc::new(Signal { woken: AtomicBool::new(false), thread: thread::current() });
    let waker = Waker::from(signal.clone());
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(output) => return output,
            Poll::Pending => signal.wait(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_future_is_woken_from_another_thread() {
        let (tx, rx) = tokio::sync::oneshot::channel();
        let other = thread::spawn(move || tx.send(7));
        assert_eq!(block_on(rx), Ok(7));
        assert_eq!(other.join().unwrap(), Ok(()));
    }
}
