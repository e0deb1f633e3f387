//! Output of processes that stay in the log.

use std::time::Duration;

use systole_core::vocab::{Name, Time};
use tokio::io::{AsyncRead, BufReader};

use crate::process::streams::{LINES, log_line, read_line};
use crate::process::{STDERR_TARGET, Subject};
use systole_store::clock::Clock;

/// Time in which a process may log [`LINES`] lines.
const WINDOW: Duration = Duration::from_secs(10);

/// Logs the output of a process, line by line, to its end, with the message that it has in flight if that is one
/// (`subject`); `said` gets each line. Lines beyond the limits are read and dropped, so that the process is never blocked.
pub(crate) async fn log(
    stream: Option<impl AsyncRead + Unpin>,
    name: &Name,
    clock: &Clock,
    subject: impl Fn() -> Option<Subject>,
    said: impl Fn(&str),
) {
    let Some(stream) = stream else { return };
    let mut reader = BufReader::new(stream);
    let mut line = Vec::new();
    let mut log = Log::new(name, clock);
    while let Ok(true) = read_line(&mut reader, &mut line).await {
        let text = String::from_utf8_lossy(&line);
        said(&text);
        log.line(subject().as_ref(), &text);
    }
}

/// A log of the lines of one stream, with a limit for each span of time.
pub(crate) struct Log<'a> {
    name: &'a Name,
    clock: &'a Clock,
    lines: usize,
    since: Time,
}

impl<'a> Log<'a> {
    pub(crate) fn new(name: &'a Name, clock: &'a Clock) -> Self {
        Self { name, clock, lines: 0, since: clock.now() }
    }

    /// Logs a line; those past the limit are dropped.
    pub(crate) fn line(&mut self, subject: Option<&Subject>, text: &str) {
        let now = self.clock.now();
        if now.since(self.since) >= WINDOW {
            (self.lines, self.since) = (0, now);
        }
        self.lines += 1;
        if self.lines <= LINES {
            log_line(self.name, subject, text);
        } else if self.lines == LINES + 1 {
            tracing::warn!(target: STDERR_TARGET, listener = %self.name, "more than {LINES} lines in {WINDOW:?}: the rest is dropped");
        }
    }
}
