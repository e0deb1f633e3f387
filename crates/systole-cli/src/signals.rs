//! Signals that stop the program, and one that must not.

use std::io;

use tokio::signal::unix::{Signal, SignalKind, signal};

/// Makes writing to a file that may not grow (`ulimit -f`) an error, as on a full disk, where SIGXFSZ ended the program.
/// Programs that this one starts are ended by it as ever: they inherit no handler.
///
/// # Errors
/// The error of the system.
pub(super) fn outlive_file_limits() -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
    let _guard = runtime.enter();
    // The handler stays installed when its stream and the runtime are dropped.
    signal(SignalKind::from_raw(rustix::process::Signal::XFSZ.as_raw())).map(drop)
}

/// The signals that stop the program.
pub(super) struct Signals {
    interrupt: Signal,
    terminate: Signal,
    /// The terminal was closed.
    hangup: Signal,
}

impl Signals {
    /// Handles the signals: from now on they don't end the program.
    ///
    /// # Errors
    /// The error of the system.
    pub(super) fn listen() -> io::Result<Self> {
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
