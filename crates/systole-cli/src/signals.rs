//! Signals that stop the program, and one that must not.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};

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

/// True once signals are heard, and so end nothing by themselves.
static HEARD: AtomicBool = AtomicBool::new(false);

/// Returns whether the program hears the signals that would end it.
pub(super) fn are_heard() -> bool {
    HEARD.load(Ordering::Relaxed)
}

/// The signals that stop the program: those that were not ignored when it started, as `nohup` ignores SIGHUP and a shell
/// SIGINT of a job in its background.
pub(super) struct Signals {
    interrupt: Option<Signal>,
    terminate: Option<Signal>,
    /// The terminal was closed.
    hangup: Option<Signal>,
}

impl Signals {
    /// Handles the signals: from now on they don't end the program.
    ///
    /// # Errors
    /// The error of the system.
    pub(super) fn listen() -> io::Result<Self> {
        let listen = |kind: SignalKind| (!is_ignored(kind.as_raw_value())).then(|| signal(kind)).transpose();
        let signals = Self {
            interrupt: listen(SignalKind::interrupt())?,
            terminate: listen(SignalKind::terminate())?,
            hangup: listen(SignalKind::hangup())?,
        };
        HEARD.store(true, Ordering::Relaxed);
        Ok(signals)
    }

    /// Waits for the next signal.
    ///
    /// # Cancel safety
    /// Dropping the future loses none.
    pub(super) async fn stop(&mut self) {
        tokio::select! {
            () = next(&mut self.interrupt) => {}
            () = next(&mut self.terminate) => {}
            () = next(&mut self.hangup) => {}
        }
    }
}

async fn next(signal: &mut Option<Signal>) {
    match signal {
        Some(signal) => drop(signal.recv().await),
        None => std::future::pending().await,
    }
}

/// Returns whether this process ignores a signal; false where the system doesn't say.
pub(super) fn is_ignored(signal: i32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    mask >> (signal - 1) & 1 == 1
}
