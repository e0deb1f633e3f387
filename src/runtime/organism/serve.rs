//! The service of an organism until a signal.

use std::io;
use std::time::Duration;

use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use super::Organism;
use super::drain::Drained;
use crate::process::signals::Signals;
use crate::runtime::shard::breakdown::Breakdown;

/// Time limit for the work in flight after the first signal.
const PATIENCE: Duration = Duration::from_secs(60);

/// Reason why an organism is served no more, besides a signal.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum ServeError {
    /// The system refuses the signals, or a thread for them.
    #[error("signals of the system can't be received: {0}")]
    Signals(#[from] io::Error),
    /// The organism can't go on; it has ended.
    #[error(transparent)]
    Broken(#[from] Breakdown),
}

systole_core::vocab::debug_is_display!(ServeError);

impl Organism {
    /// Serves until the program gets SIGINT, SIGTERM or SIGHUP, then [drains](Self::drain) the organism, with a minute for
    /// the work in flight; a second signal cancels that. Signals that the program ignored at its start, as under `nohup`,
    /// stay ignored.
    ///
    /// From the first call on, these signals end the program no more.
    ///
    /// # Errors
    /// [`ServeError::Broken`] if the organism breaks down, which has ended then; [`ServeError::Signals`] if the system
    /// refuses signals.
    ///
    /// # Cancel safety
    /// Dropping the future leaves the organism as it is; a drain that has begun goes on.
    pub async fn serve(&self) -> Result<Drained, ServeError> {
        let mut signals = signals()?;
        tokio::select! {
            Some(()) = signals.recv() => {}
            // An operator may end it.
            drained = self.drained() => return Ok(drained),
            why = self.broken() => {
                self.drain(Duration::ZERO).await;
                return Err(why.into());
            }
        }
        tokio::select! {
            drained = self.drain(PATIENCE) => Ok(drained),
            Some(()) = signals.recv() => Ok(self.drain(Duration::ZERO).await),
        }
    }
}

/// Receives signals on a thread of its own, as the caller may run no tokio runtime. It ends with the receiver.
fn signals() -> io::Result<UnboundedReceiver<()>> {
    let (sender, receiver) = unbounded_channel();
    let (ready, readiness) = std::sync::mpsc::channel();
    let serve = move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
        runtime.block_on(async {
            let mut signals = Signals::listen()?;
            // The caller waits for it.
            let _ = ready.send(());
            loop {
                tokio::select! {
                    () = signals.stop() => drop(sender.send(())),
                    () = sender.closed() => return Ok(()),
                }
            }
        })
    };
    let thread = std::thread::Builder::new().name("systole-signals".into()).spawn(serve)?;
    match readiness.recv() {
        Ok(()) => Ok(receiver),
        // It has ended before.
        Err(_) => {
            let ended: io::Result<()> = thread.join().unwrap_or_else(|_| Err(io::ErrorKind::Other.into()));
            ended.map(|()| receiver)
        }
    }
}
