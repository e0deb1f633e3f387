//! The resident memory of this process, from Linux's procfs; `None` on other systems.

use std::fs;

/// The resident memory now, in bytes.
pub(super) fn resident() -> Option<u64> {
    status("VmRSS:")
}

/// The greatest resident memory since the last [`forget_peak`], in bytes.
pub(super) fn peak() -> Option<u64> {
    status("VmHWM:")
}

/// Resets the peak. If the system refuses, peaks are those of the whole life of the process.
pub(super) fn forget_peak() {
    // An error is harmless: the peak is only too high.
    let _ = fs::write("/proc/self/clear_refs", "5");
}

fn status(field: &str) -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix(field))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kibibytes * 1024)
}
