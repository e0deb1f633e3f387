//! The program as process 1, of a container for example: there it inherits the processes that others leave behind.
//!
//! Process 1 has to reap them, and the program waits for its own children alone. So process 1 starts the program again as a
//! child, passes signals on to it, reaps all that ends, and ends with the exit code of the child.

use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};

use rustix::process::{Pid, Signal, WaitOptions, getpgrp, getpid, kill_process, wait};
use rustix::termios::tcgetpgrp;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};

use systole::process::signals;

/// Signals that are passed on.
const PASSED: [Signal; 3] = [Signal::TERM, Signal::USR1, Signal::USR2];
/// Signals that are passed on, too, unless a terminal sends them to the child itself, which is in the same group.
const OF_TERMINAL: [Signal; 3] = [Signal::INT, Signal::HUP, Signal::QUIT];

/// Returns whether this process is process 1.
pub(super) fn is_wanted() -> bool {
    getpid().is_init()
}

/// Runs the program in a child, until that ends.
///
/// # Errors
/// The error of the system.
pub(super) fn run() -> io::Result<ExitCode> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
    runtime.block_on(async {
        let mut ended = signal(SignalKind::child())?;
        let (sender, mut signals) = unbounded_channel();
        let passed: &[&[Signal]] = if has_terminal() { &[&PASSED] } else { &[&PASSED, &OF_TERMINAL] };
        for &one in passed.iter().copied().flatten().filter(|signal| !signals::is_ignored(signal.as_raw())) {
            listen(one, sender.clone())?;
        }
        // The file of this process, even if an update has replaced it.
        let mut command = Command::new("/proc/self/exe");
        let child = command.arg0("systole").args(std::env::args_os().skip(1)).spawn()?;
        let child = Pid::from_raw(child.id().cast_signed()).ok_or(io::ErrorKind::InvalidData)?;
        loop {
            tokio::select! {
                _ = ended.recv() => if let Some(code) = reap(child)? {
                    return Ok(code);
                },
                // The sender is here.
                Some(signal) = signals.recv() => {
                    // The child may have ended just now.
                    let _ = kill_process(child, signal);
                }
            }
        }
    })
}

/// Hears a signal from now on.
fn listen(one: Signal, heard: UnboundedSender<Signal>) -> io::Result<()> {
    let mut signals = signal(SignalKind::from_raw(one.as_raw()))?;
    tokio::spawn(async move { while signals.recv().await.is_some() && heard.send(one).is_ok() {} });
    Ok(())
}

/// Reaps all processes that have ended. Returns the exit code of the child, if it is among them.
fn reap(child: Pid) -> io::Result<Option<ExitCode>> {
    let mut code = None;
    loop {
        match wait(WaitOptions::NOHANG) {
            Ok(Some((pid, status))) if pid == child => {
                let signal = status.terminating_signal().map(|signal| 128 + signal);
                let status = status.exit_status().or(signal).and_then(|code| u8::try_from(code).ok());
                code = Some(status.map_or(ExitCode::FAILURE, ExitCode::from));
            }
            Ok(Some(_)) | Err(rustix::io::Errno::INTR) => {}
            Ok(None) | Err(rustix::io::Errno::CHILD) => return Ok(code),
            Err(error) => return Err(error.into()),
        }
    }
}

/// Checks whether a terminal sends signals to the group of this process.
fn has_terminal() -> bool {
    tcgetpgrp(io::stdin()).is_ok_and(|group| group == getpgrp())
}
