//! Signals that stop the program.

use std::io;

use tokio::signal::unix::{Signal, SignalKind, signal};

/// The signals that stop the program.
pub(super) struct Signals {
    interrupt: Signal,
    terminate: Signal,
    /// The terminal was closed.
    hangup: Signal,
}

impl Signals {
    /// Handles the signals: from now on they don't end the program. Nor does SIGXFSZ, for a file that may not grow
    /// (`ulimit -f`): then writing fails, as on a full disk.
    ///
    /// # Errors
    /// The error of the system.
    pub(super) fn listen() -> io::Result<Self> {
        // The handler stays installed when its stream is dropped.
        drop(signal(SignalKind::from_raw(rustix::process::Signal::XFSZ.as_raw()))?);
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hangup: signal(SignalKind::hangup())?,
        })
    }

    /// Waits for the next signal.
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
