//! The signals that end a program.
#![allow(unsafe_code)]

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::signal::unix::{Signal, SignalKind, signal};

/// True once signals are heard, and so end nothing by themselves.
static HEARD: AtomicBool = AtomicBool::new(false);

/// Returns whether the program hears the signals that would end it.
pub fn are_heard() -> bool {
    HEARD.load(Ordering::Relaxed)
}

/// The signals that stop the program: those that were not ignored when it started, as `nohup` ignores SIGHUP and a shell
/// SIGINT of a job in its background.
pub struct Signals {
    interrupt: Option<Signal>,
    terminate: Option<Signal>,
    /// The terminal was closed; without one, the program is to read its files again.
    hangup: Option<Signal>,
    has_terminal: bool,
    /// Heard, so that a parent that ignored it can't let the system lose the ends of programs: who ignores it has no children
    /// to wait for.
    _child: Signal,
}

impl Signals {
    /// Handles the signals: from now on they don't end the program.
    ///
    /// # Errors
    /// The error of the system.
    pub fn listen() -> io::Result<Self> {
        let listen = |kind: SignalKind| (!is_ignored(kind.as_raw_value())).then(|| signal(kind)).transpose();
        let signals = Self {
            interrupt: listen(SignalKind::interrupt())?,
            terminate: listen(SignalKind::terminate())?,
            hangup: listen(SignalKind::hangup())?,
            has_terminal: has_terminal(),
            _child: signal(SignalKind::child())?,
        };
        HEARD.store(true, Ordering::Relaxed);
        Ok(signals)
    }

    /// Waits for the next signal to stop.
    ///
    /// # Cancel safety
    /// Dropping the future loses none.
    pub async fn stop(&mut self) {
        tokio::select! {
            () = next(&mut self.interrupt) => {}
            () = next(&mut self.terminate) => {}
            () = next(&mut self.hangup) => {}
        }
    }

    /// Waits for the next signal, for a program that can read its files again.
    ///
    /// # Cancel safety
    /// Dropping the future loses none.
    pub async fn next(&mut self) -> Heard {
        tokio::select! {
            () = next(&mut self.interrupt) => Heard::Stop,
            () = next(&mut self.terminate) => Heard::Stop,
            () = next(&mut self.hangup) => if self.has_terminal { Heard::Stop } else { Heard::Reload },
        }
    }
}

/// The wish behind a signal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Heard {
    /// The program is to end: SIGINT, SIGTERM, or SIGHUP of its terminal.
    Stop,
    /// The program is to read its files again: SIGHUP of a program without a terminal.
    Reload,
}

/// Returns whether a terminal controls this process.
fn has_terminal() -> bool {
    std::fs::File::open("/dev/tty").is_ok()
}

async fn next(signal: &mut Option<Signal>) {
    match signal {
        Some(signal) => drop(signal.recv().await),
        None => std::future::pending().await,
    }
}

/// Gives SIGINT, SIGTERM and SIGHUP, unless they are ignored, their usual effect again: they end the program.
pub fn unhear() {
    for kind in [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()] {
        let signal = kind.as_raw_value();
        if !is_ignored(signal) {
            // SAFETY: `signal` takes any number, and the default disposition is one of every signal.
            unsafe { libc::signal(signal, libc::SIG_DFL) };
        }
    }
    HEARD.store(false, Ordering::Relaxed);
}

/// Lets the signals through that a program handles here: a parent may have blocked them, and its children inherit that. To
/// be called at the start of a program, before it has a second thread.
pub fn unblock() {
    let mut set = std::mem::MaybeUninit::uninit();
    // SAFETY: `sigemptyset` makes a set of the memory that it gets, and the other functions change that set and the mask of
    // this thread alone. They fail for a number that is no signal, and then change nothing.
    unsafe {
        libc::sigemptyset(set.as_mut_ptr());
        for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT, libc::SIGCHLD, libc::SIGXFSZ] {
            libc::sigaddset(set.as_mut_ptr(), signal);
        }
        libc::pthread_sigmask(libc::SIG_UNBLOCK, set.as_ptr(), std::ptr::null_mut());
    }
}

/// Returns whether this process ignores a signal; false where the system doesn't say.
pub fn is_ignored(signal: i32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    mask >> (signal - 1) & 1 == 1
}
