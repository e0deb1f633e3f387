//! Descriptors of the process: how many there are, and what is to be done when none is left.
//!
//! The soft limit is raised to the hard one when the program starts. Connections get what is left of it without a
//! reserve for files, commands and connections to others, so that idle connections can't take what the work needs.

use std::io;

use rustix::process::{Resource, getrlimit, setrlimit};

/// Descriptors that no connection takes: a command that starts needs six, and threads start some at once.
#[cfg(feature = "gateway")]
const RESERVE: u64 = 256;

/// Raises the limit of open descriptors as far as the system lets this process.
pub fn raise() {
    let limit = getrlimit(Resource::Nofile);
    if limit.current != limit.maximum {
        // Refused where the hard limit is above what the system has: then the soft one stays.
        let _ = setrlimit(Resource::Nofile, rustix::process::Rlimit { current: limit.maximum, ..limit });
    }
}

/// Connections that may be open at once, of as many as are wanted.
#[cfg(feature = "gateway")]
pub(crate) fn for_connections(wanted: usize) -> usize {
    let all = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    // A small limit is shared half and half.
    let left = all.saturating_sub(RESERVE.min(all / 2));
    wanted.min(usize::try_from(left).unwrap_or(usize::MAX)).max(1)
}

/// Whether an error says that there is no descriptor left, in the process or in the system: there will be one again.
pub(crate) fn are_out(error: &io::Error) -> bool {
    let code = error.raw_os_error().map(rustix::io::Errno::from_raw_os_error);
    matches!(code, Some(rustix::io::Errno::MFILE | rustix::io::Errno::NFILE))
}
