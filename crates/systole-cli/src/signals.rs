use std::io;

use tokio::signal::unix::{Signal, SignalKind, signal};

/// The signals that ask the program to stop.
pub(super) struct Signals {
    interrupt: Signal,
    terminate: Signal,
    /// The terminal has gone.
    hangup: Signal,
}

impl Signals {
    /// Takes them over: from now on they don't end the program. Nor does a file that may not grow (`ulimit -f`): then
    /// writing fails, as on a full disk.
    ///
    /// # Errors
    /// If the system refuses.
    pub(super) fn listen() -> io::Result<Self> {
        // It stays taken over when nobody listens.
        drop(signal(SignalKind::from_raw(rustix::process::Signal::XFSZ.as_raw()))?);
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hangup: signal(SignalKind::hangup())?,
        })
    }

    /// Waits for the next of them.
    ///
    /// # Cancel safety
    /// Dropping the future loses none.
    pub(super) async fn stop(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
            _ = self.hangup.recv() => {}
        }
    }
}
