//! The signal that must not end the program.

use std::io;

use tokio::signal::unix::{SignalKind, signal};

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
