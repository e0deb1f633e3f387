use std::time::Duration;

use systole_core::vocab::{Name, Time};
use tokio::io::{AsyncRead, BufReader};

use crate::shell::clock::Clock;
use crate::shell::command::STDERR_TARGET;
use crate::shell::command::streams::{LINES, read_line};
use crate::shell::terminal::Escaped;

/// How long a process has for [`LINES`] lines in the log.
const WINDOW: Duration = Duration::from_secs(10);

/// Logs what a process prints, line by line, to its end. What passes the bounds is read and dropped, so that the process
/// is never held up.
pub(super) async fn log(stream: Option<impl AsyncRead + Unpin>, name: &Name, clock: &Clock) {
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
        if lines <= LINES {
            let text = String::from_utf8_lossy(&line);
            tracing::info!(target: STDERR_TARGET, listener = %name, "{}", Escaped::line(text.trim_end()));
        } else if lines == LINES + 1 {
            tracing::warn!(target: STDERR_TARGET, listener = %name, "more than {LINES} lines in {WINDOW:?}: the rest is dropped");
        }
    }
}
