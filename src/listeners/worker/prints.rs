//! Output of workers in the log.

use std::cell::RefCell;
use std::time::Duration;

use systole_core::vocab::{Name, Time};
use tokio::io::{AsyncRead, BufReader};

use super::connection::Connection;
use crate::process::STDERR_TARGET;
use crate::process::streams::{LINES, keep_end, log_line, read_line};
use systole_store::clock::Clock;

/// Time in which a process may log [`LINES`] lines.
const WINDOW: Duration = Duration::from_secs(10);

/// Logs the output of a process, line by line, to its end, with the message that it has in flight if that is one, and keeps
/// its end in `said`, if that is there, and for that message. Lines beyond the limits are read and dropped, so that the process
/// is never blocked.
pub(super) async fn log(
    stream: Option<impl AsyncRead + Unpin>,
    name: &Name,
    connection: &Connection,
    clock: &Clock,
    said: Option<&RefCell<String>>,
) {
    let Some(stream) = stream else { return };
    let mut reader = BufReader::new(stream);
    let mut line = Vec::new();
    let (mut lines, mut since): (usize, Time) = (0, clock.now());
    while let Ok(true) = read_line(&mut reader, &mut line).await {
        let now = clock.now();
        if now.since(since) >= WINDOW {
            (lines, since) = (0, now);
        }
        lines += 1;
        let text = String::from_utf8_lossy(&line);
        if let Some(said) = said {
            keep_end(&mut said.borrow_mut(), &text);
            connection.said(&text);
        }
        if lines <= LINES {
            log_line(name, connection.subject().as_ref(), &text);
        } else if lines == LINES + 1 {
            tracing::warn!(target: STDERR_TARGET, listener = %name, "more than {LINES} lines in {WINDOW:?}: the rest is dropped");
        }
    }
}
