//! Calls of a delegate, whose errors, panics and delays stay its own.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use systole_core::core::catch_panic::{catch_panic, discard};

use super::delegate::{BoxFuture, DelegateError};

/// Time limit for one answer of a delegate.
const TIME: Duration = Duration::from_secs(5);

/// Reason why a delegate gave no answer.
#[derive(Debug, thiserror::Error)]
pub(in crate::gateway) enum DelegateFailure {
    /// The delegate returned an error.
    #[error("{0}")]
    Refused(DelegateError),
    /// The delegate panicked.
    #[error("the delegate panicked")]
    Panicked,
    /// The delegate took too long.
    #[error("the delegate took longer than {} s", TIME.as_secs())]
    Late,
}

/// Calls a delegate and awaits its answer, at most for [`TIME`].
pub(super) async fn ask<'a, T>(
    begin: impl FnOnce() -> BoxFuture<'a, Result<T, DelegateError>>,
) -> Result<T, DelegateFailure> {
    let future = catch_panic(begin).map_err(|_| DelegateFailure::Panicked)?;
    match tokio::time::timeout(TIME, Contained(Some(future))).await {
        Ok(answer) => answer?.map_err(DelegateFailure::Refused),
        Err(_) => Err(DelegateFailure::Late),
    }
}

/// A future whose panics, also in its drop, don't spread.
struct Contained<'a, T>(Option<BoxFuture<'a, T>>);

impl<T> Future for Contained<'_, T> {
    type Output = Result<T, DelegateFailure>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let Some(future) = &mut self.0 else { return Poll::Ready(Err(DelegateFailure::Panicked)) };
        match catch_panic(|| future.as_mut().poll(context)) {
            Ok(Poll::Pending) => Poll::Pending,
            Ok(Poll::Ready(answer)) => Poll::Ready(Ok(answer)),
            Err(_) => Poll::Ready(Err(DelegateFailure::Panicked)),
        }
    }
}

impl<T> Drop for Contained<'_, T> {
    fn drop(&mut self) {
        discard(self.0.take());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Bomb;

    impl Drop for Bomb {
        fn drop(&mut self) {
            std::panic::resume_unwind(Box::new("when it is dropped"));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_comes_and_all_else_is_trouble() {
        assert_eq!(ask(|| Box::pin(async { Ok(7) })).await.unwrap(), 7);
        let refused = ask::<()>(|| Box::pin(async { Err("no".into()) })).await;
        assert_eq!(refused.unwrap_err().to_string(), "no");
        let early = ask::<()>(|| std::panic::resume_unwind(Box::new("at once"))).await;
        assert!(matches!(early, Err(DelegateFailure::Panicked)), "{early:?}");
        let panicked = ask::<()>(|| Box::pin(async { std::panic::resume_unwind(Box::new("later")) })).await;
        assert!(matches!(panicked, Err(DelegateFailure::Panicked)), "{panicked:?}");
        let late = ask::<()>(|| {
            Box::pin(async {
                let _bomb = Bomb;
                std::future::pending().await
            })
        });
        assert!(matches!(late.await, Err(DelegateFailure::Late)));
    }
}
