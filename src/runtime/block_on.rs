//! Waiting for futures without a runtime.

use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};

/// Waits for a future on a thread that runs no async runtime.
///
/// Every future of an [`super::Organism`] and its clients works here: their work is done on threads of the organism.
/// Futures that need a runtime of their own (timers, sockets) don't.
pub fn block_on<F: Future>(future: F) -> F::Output {
    struct Unpark(Thread);
    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let mut future = std::pin::pin!(future);
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(output) => return output,
            Poll::Pending => thread::park(),
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
