//! The resident memory of this process, as Linux tells it; elsewhere nothing is known.

use std::fs;

/// Bytes that are resident now.
pub(super) fn resident() -> Option<u64> {
    status("VmRSS:")
}

/// The most that was resident since the last [`forget_peak`].
pub(super) fn peak() -> Option<u64> {
    status("VmHWM:")
}

/// Starts a new peak. Where the system refuses, peaks are those of the whole process.
pub(super) fn forget_peak() {
    // A peak that is too high is the worst that can come of it.
    let _ = fs::write("/proc/self/clear_refs", "5");
}

fn status(field: &str) -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix(field))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kibibytes * 1024)
}
