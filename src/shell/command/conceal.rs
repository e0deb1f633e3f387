//! Keeps what this process knows from the programs that it runs.
//!
//! A program starts with the variables and descriptors that it is given, but as the same user it
//! could look for more: in `/proc/PID/environ`, `/proc/PID/mem` and `/proc/PID/fd` of its parent,
//! and in what the parent had inherited itself.
#![allow(unsafe_code)]

use std::io;
use std::os::fd::{BorrowedFd, RawFd};

use rustix::io::{FdFlags, fcntl_setfd};
use rustix::process::{DumpableBehavior, set_dumpable_behavior};

/// Hides the environment, the memory and the descriptors of this process from other processes of
/// its user, and what it has inherited from those that it starts. For the start of a program,
/// before it has a second thread.
///
/// Processes of root see everything all the same. There are no core dumps from now on, and only
/// root can attach a debugger.
///
/// # Errors
/// If the system refuses.
pub fn conceal() -> io::Result<()> {
    set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
    let listed: Vec<RawFd> = std::fs::read_dir("/proc/self/fd")?
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .filter(|&fd| fd > 2)
        .collect();
    for fd in listed {
        // SAFETY: the number is that of a descriptor which was open a moment ago, and no other
        // thread is there that could have closed it. That of the listing itself is closed by now:
        // it is an error that changes nothing.
        let inherited = unsafe { BorrowedFd::borrow_raw(fd) };
        let _ = fcntl_setfd(inherited, FdFlags::CLOEXEC);
    }
    Ok(())
}
