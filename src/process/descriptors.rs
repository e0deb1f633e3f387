//! Descriptors of the process: their number, and their shortage.
//!
//! The program raises the soft limit to the hard one at its start. Connections get the descriptors beyond a reserve for
//! files, commands and outgoing connections, so that idle connections can't take the descriptors that the work needs.

use rustix::process::{Resource, getrlimit, setrlimit};

/// Descriptors that connections don't get: a command needs eight at its start, and several may start at once.
#[cfg(feature = "gateway")]
const RESERVE: u64 = 256;

/// Raises the limit of open descriptors as far as the system lets this process.
pub fn raise() {
    let limit = getrlimit(Resource::Nofile);
    if limit.current != limit.maximum {
        // Refused where the hard limit is above the system's: then the soft one stays.
        let _ = setrlimit(Resource::Nofile, rustix::process::Rlimit { current: limit.maximum, ..limit });
    }
}

/// Descriptors that an organism of a few shards with a gateway and a journal needs to start.
const NEEDED: u64 = 64;

/// Returns the limit of open descriptors, if that is too low for an organism.
pub fn too_few() -> Option<u64> {
    getrlimit(Resource::Nofile).current.filter(|most| *most < NEEDED)
}

/// Returns the number of connections that may be open at once, up to `wanted`.
#[cfg(feature = "gateway")]
pub(crate) fn for_connections(wanted: usize) -> usize {
    let all = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    // A small limit is split in halves.
    let left = all.saturating_sub(RESERVE.min(all / 2));
    wanted.min(usize::try_from(left).unwrap_or(usize::MAX)).max(1)
}
