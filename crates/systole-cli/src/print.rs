//! The only way from a subcommand to the standard streams; `run` draws through its [`Screen`](super::screen::Screen).
//!
//! Always: text passes [`Escaped`] here, so foreign text can't command a terminal wherever it came from.
//! `tests/tidy` keeps other modules of the program from printing by themselves.

use std::fmt::Display;
use std::io::{self, IsTerminal, StdoutLock, Write};

use serde_json::Value;

use systole::runtime::terminal::Escaped;

/// Standard output, for people: lines of escaped text, written when it is finished.
pub(super) struct Page(io::BufWriter<StdoutLock<'static>>);

impl Page {
    pub(super) fn new() -> Self {
        Self(io::BufWriter::new(io::stdout().lock()))
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

/// Prints text that may have several lines on standard error.
pub(super) fn note(text: impl Display) {
    // A closed standard error has no reader.
    let _ = writeln!(io::stderr().lock(), "{}", Escaped::text(&text.to_string()));
}

/// Prints one JSON document on standard output.
pub(super) fn json(value: &Value) -> io::Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "{}", Escaped::json(&format!("{value:#}")))?;
    out.flush()
}

/// Prints a document on standard output: as it is for programs, escaped where that is a terminal.
pub(super) fn document(bytes: &[u8]) -> io::Result<()> {
    let mut out = io::stdout().lock();
    if out.is_terminal() {
        write!(out, "{}", Escaped::text(&String::from_utf8_lossy(bytes)))?;
    } else {
        out.write_all(bytes)?;
    }
    out.flush()
}
