//! Protection of this process's secrets from the programs that it runs.
//!
//! A program starts with the variables and descriptors that it gets, but as the same user it could read more: in
//! `/proc/PID/environ`, `/proc/PID/mem` and `/proc/PID/fd` of its parent, and descriptors that the parent inherited.
#![allow(unsafe_code)]

use std::io;
use std::os::fd::{BorrowedFd, RawFd};

use rustix::io::{FdFlags, fcntl_setfd};
use rustix::process::{DumpableBehavior, set_dumpable_behavior};

/// Hides the environment, the memory and the descriptors of this process from other processes of its user, and
/// inherited descriptors from the processes that it starts. To be called at the start of a program, before it has a
/// second thread.
///
/// Processes of root are not affected. Core dumps are off from now on, and only root can attach a debugger.
///
/// # Errors
/// The system's error if it refuses.
pub fn conceal() -> io::Result<()> {
    set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
    let listed: Vec<RawFd> = std::fs::read_dir("/proc/self/fd")?
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .filter(|&fd| fd > 2)
        .collect();
    for fd in listed {
        // SAFETY: the number is that of a descriptor that was open a moment ago, and there is no other thread that
        // could have closed it. The descriptor of the listing itself is closed by now: `fcntl` fails for it and changes
        // nothing.
        let inherited = unsafe { BorrowedFd::borrow_raw(fd) };
        let _ = fcntl_setfd(inherited, FdFlags::CLOEXEC);
    }
    Ok(())
}
