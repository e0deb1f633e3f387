//! The output streams of commands.

use std::io;

use systole_core::vocab::Name;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, BufReader};

use super::run::CommandError;
use super::{STDERR_TARGET, Subject};
use crate::terminal::Escaped;

/// The longest line of standard error that is logged whole, in bytes.
const LINE: usize = 4096;
/// The most lines of standard error that are logged for one message.
pub(crate) const LINES: usize = 1000;
/// Length of the kept end of standard error, in bytes.
const SAID: usize = 2048;

/// Reads `stdout` to its end, but at most `max` bytes.
pub(super) async fn collect(
    stdout: Option<impl AsyncRead + Unpin>,
    output: &mut Vec<u8>,
    max: usize,
) -> Result<(), CommandError> {
    let Some(stdout) = stdout else { return Ok(()) };
    let bound = u64::try_from(max).unwrap_or(u64::MAX).saturating_add(1);
    stdout.take(bound).read_to_end(output).await.map_err(CommandError::Stream)?;
    if output.len() > max { Err(CommandError::TooMuch { max }) } else { Ok(()) }
}

/// Logs standard error, line by line, and keeps its end in `said`. Text beyond the limits is read and dropped, so that
/// the process is never blocked.
pub(super) async fn log_lines(
    stderr: Option<impl AsyncRead + Unpin>,
    (name, subject): (&Name, Option<Subject>),
    said: &mut String,
) -> Result<(), CommandError> {
    let Some(stderr) = stderr else { return Ok(()) };
    let mut reader = BufReader::new(stderr);
    let mut line = Vec::new();
    let mut lines = 0;
    // An error here is no reason to refuse the output of the process.
    while let Ok(true) = read_line(&mut reader, &mut line).await {
        lines += 1;
        let text = String::from_utf8_lossy(&line);
        keep_end(said, &text);
        if lines <= LINES {
            log_line(name, subject.as_ref(), &text);
        }
    }
    if lines > LINES {
        tracing::warn!(target: STDERR_TARGET, listener = %name, dropped = lines - LINES, "too many lines on standard error");
    }
    Ok(())
}

/// Logs a line that a program wrote, with the message that it is about.
pub(crate) fn log_line(name: &Name, subject: Option<&Subject>, text: &str) {
    let line = Escaped::line(text.trim_end());
    match subject {
        Some(subject) => {
            let (Subject { thread, id, .. }, trace) = (subject, subject.trace());
            tracing::info!(target: STDERR_TARGET, listener = %name, %thread, message_id = %id, trace, "{line}");
        }
        None => tracing::info!(target: STDERR_TARGET, listener = %name, "{line}"),
    }
}

/// Adds a line, and keeps the last [`SAID`] bytes of all lines.
pub(crate) fn keep_end(said: &mut String, line: &str) {
    said.push_str(line.trim_end());
    said.push('\n');
    if said.len() > SAID {
        let cut = (said.len() - SAID..).find(|&at| said.is_char_boundary(at)).unwrap_or(said.len());
        said.drain(..cut);
    }
}

/// Reads one line into `line`, cut to [`LINE`] bytes. Returns `false` at the end.
pub(crate) async fn read_line(reader: &mut BufReader<impl AsyncRead + Unpin>, line: &mut Vec<u8>) -> io::Result<bool> {
    line.clear();
    let mut any = false;
    loop {
        let available = reader.fill_buf().await?;
        if available.is_empty() {
            return Ok(any);
        }
        any = true;
        let end = memchr::memchr(b'\n', available);
        let piece = &available[..end.unwrap_or(available.len())];
        line.extend_from_slice(&piece[..piece.len().min(LINE - line.len())]);
        let used = end.map_or(available.len(), |at| at + 1);
        reader.consume(used);
        if end.is_some() {
            return Ok(true);
        }
    }
}
