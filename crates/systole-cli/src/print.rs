//! The only way from a subcommand to the standard streams; `run` draws through its [`Screen`](super::screen::Screen).
//! A non-blocking stream is waited for.
//!
//! Always: text passes [`Escaped`] here, so foreign text can't command a terminal wherever it came from.
//! `tests/tidy` keeps other modules of the program from printing by themselves.

use std::fmt::Display;
use std::io::{self, IsTerminal, Stdout, Write};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};
use serde_json::Value;

use systole::terminal::Escaped;

use super::descriptor::Patient;
use super::outlet::Outlet;
use systole::process::signals;

/// Time that standard error has to take the last words of a program which hears signals itself: then no signal would end a
/// wait for its reader.
const LAST_WORDS: Duration = Duration::from_secs(2);

/// Standard output, for people: lines of escaped text, written when it is finished.
pub(super) struct Page(io::BufWriter<Patient<Stdout>>);

impl Page {
    pub(super) fn new() -> Self {
        Self(io::BufWriter::new(Patient(io::stdout())))
    }

    /// Prints text that stays on one line.
    pub(super) fn line(&mut self, text: impl Display) -> io::Result<()> {
        writeln!(self.0, "{}", Escaped::line(&text.to_string()))
    }

    /// Prints text that may have several lines, each behind an indentation.
    pub(super) fn block(&mut self, indentation: &str, text: impl Display) -> io::Result<()> {
        let text = text.to_string();
        text.split('\n').try_for_each(|line| self.line(format_args!("{indentation}{line}")))
    }

    pub(super) fn finish(mut self) -> io::Result<()> {
        self.0.flush()
    }
}

/// Prints one line on standard output.
pub(super) fn line(text: impl Display) -> io::Result<()> {
    let mut page = Page::new();
    page.line(text)?;
    page.finish()
}

/// Prints text for a person at the keyboard on standard output, at once; what is foreign in it was escaped before.
#[cfg(feature = "gateway")]
pub(super) fn converse(text: &str) {
    let mut out = Patient(io::stdout());
    // A reader that is gone is found by the next command.
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}

/// Prints text that may have several lines on standard error.
pub(super) fn note(text: impl Display) {
    say(format!("{}\n", Escaped::text(&text.to_string())));
}

/// Prints text on standard error as it is.
pub(super) fn say(text: String) {
    if signals::are_heard() {
        let outlet = Outlet::new(Patient(io::stderr()), Box::new(|_| String::new()));
        if outlet.progress().has_failed() {
            return say_at_once(&text);
        }
        outlet.offer(text);
        outlet.flush(LAST_WORDS);
    } else {
        // A closed standard error has no reader.
        let _ = Patient(io::stderr()).write_all(text.as_bytes());
    }
}

/// Prints text on standard error without a thread that could wait for it: if the file has room soon.
fn say_at_once(text: &str) {
    let mut file = io::stderr();
    let within = LAST_WORDS.try_into().ok();
    if poll(&mut [PollFd::new(&file, PollFlags::OUT)], within.as_ref()).is_ok_and(|ready| ready > 0) {
        // A pipe that has room takes a few words whole.
        let _ = file.write(text.as_bytes());
    }
}

/// Prints one JSON document on standard output.
pub(super) fn json(value: &Value) -> io::Result<()> {
    let text = format!("{}\n", Escaped::json(&format!("{value:#}")));
    Patient(io::stdout()).write_all(text.as_bytes())
}

/// Prints a document on standard output: as it is for programs, escaped where that is a terminal.
pub(super) fn document(bytes: &[u8]) -> io::Result<()> {
    let mut out = Patient(io::stdout());
    if io::stdout().is_terminal() {
        out.write_all(Escaped::text(&String::from_utf8_lossy(bytes)).to_string().as_bytes())
    } else {
        out.write_all(bytes)
    }
}
