//! A process that writes lines: the next one, or the reason why no other comes.

use std::io;
use std::pin::{Pin, pin};
use std::process::ExitStatus;
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, AsyncRead, BufReader};
use tokio::process::ChildStdout;
use tokio::time::{Instant, timeout, timeout_at};

use crate::process::run::{CommandError, LINGER, Process};

/// Size of the read buffer, in bytes.
const READ: usize = 64 * 1024;
/// Capacity that a buffer keeps after a longer line, in bytes.
const KEPT: usize = 1024 * 1024;
/// Bytes of a line past the limit that are kept: its message is named there.
const BEGINNING: usize = 256;
/// Length of a line past which its process is ended, as a multiple of the limit.
const ENDLESS: usize = 16;

/// Reason for the end of a process.
#[derive(Debug, thiserror::Error)]
pub(crate) enum End {
    #[error("{}", CommandError::Exit(*.0))]
    Exit(ExitStatus),
    #[error("the listener closed its streams")]
    Closed,
    #[error("the listener wrote a line that breaks the protocol")]
    Line { line: String, why: String },
    #[error("the listener wrote {0} bytes without a line feed, far past the limit of {1} bytes for a line")]
    Endless(usize, usize),
    #[error("the listener did not answer a heartbeat within {0:?}")]
    Heartbeat(Duration),
    #[error("the listener did not answer its first heartbeat within {0:?}")]
    Silent(Duration),
    #[error("the streams of the listener can't be used")]
    Stream(#[source] io::Error),
}

impl End {
    /// Returns whether it is an orderly exit.
    pub(crate) fn is_success(&self) -> bool {
        matches!(self, Self::Exit(status) if status.success())
    }

    /// Describes the end for the log, with details that the caller doesn't get.
    pub(crate) fn detail(&self) -> String {
        match self {
            Self::Line { line, why } => format!("{self}: {why}: {line}"),
            Self::Stream(cause) => format!("{self}: {cause}"),
            Self::Exit(_) | Self::Closed | Self::Endless(..) | Self::Heartbeat(_) | Self::Silent(_) => self.to_string(),
        }
    }
}

/// A line that a process wrote, without its line feed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Written<'a> {
    /// A line within the limit.
    Whole(&'a [u8]),
    /// The beginning of a line past the limit, whose rest was read and dropped, and the length of that line.
    Cut(&'a [u8], usize),
}

impl<'a> Written<'a> {
    /// The bytes that are kept.
    pub(crate) fn bytes(self) -> &'a [u8] {
        match self {
            Self::Whole(line) | Self::Cut(line, _) => line,
        }
    }
}

/// A process with the lines of the protocol that it writes. Dropping it ends its group.
pub(crate) struct LineProcess {
    process: Process,
    lines: Lines<ChildStdout>,
    /// The end of the process, and the time until which lines from before are awaited.
    exit: Option<(io::Result<ExitStatus>, Instant)>,
}

impl LineProcess {
    /// Wraps a process whose lines have at most `longest` bytes.
    pub(crate) fn new(process: Process, lines: ChildStdout, longest: usize) -> Self {
        Self { process, lines: Lines::new(lines, longest), exit: None }
    }

    /// Waits for the next [line](Self::line). After the exit of the process, the lines that it wrote before still come,
    /// and the rest of its group is killed: a descendant may hold the stream open.
    ///
    /// # Cancel safety
    /// Dropping the future loses no line.
    pub(crate) async fn next(&mut self) -> Result<(), End> {
        loop {
            if let Some((exit, until)) = &mut self.exit {
                if let Ok(Ok(())) = timeout_at(*until, self.lines.next()).await {
                    return Ok(());
                }
                let exit = std::mem::replace(exit, Err(io::Error::other("the process ended before")));
                return Err(exit.map_or_else(End::Stream, End::Exit));
            }
            tokio::select! {
                biased;
                line = self.lines.next() => match line {
                    Err(End::Closed) => return Err(self.closed().await),
                    line => return line,
                },
                status = self.process.wait() => {
                    self.process.kill();
                    self.exit = Some((status, Instant::now() + LINGER));
                }
            }
        }
    }

    /// The line that came last.
    pub(crate) fn line(&self) -> Written<'_> {
        self.lines.line()
    }

    /// Ends the process: SIGTERM, and SIGKILL behind the grace.
    async fn end(&mut self) {
        self.process.end().await;
    }

    /// Ends a process, unless it `has_exited`, and waits for the end of what it prints, which may be reached already.
    pub(crate) async fn finish(&mut self, has_exited: bool, mut printing: Pin<&mut impl Future>, mut is_printed: bool) {
        if !has_exited {
            let mut ending = pin!(self.end());
            loop {
                tokio::select! {
                    () = &mut ending => break,
                    _ = &mut printing, if !is_printed => is_printed = true,
                }
            }
        }
        if !is_printed {
            let _ = timeout(LINGER, printing).await;
        }
    }

    /// Waits for the exit of a process that closed its stream, since mostly it is about to exit.
    async fn closed(&mut self) -> End {
        match timeout(LINGER, self.process.wait()).await {
            Ok(Ok(status)) => End::Exit(status),
            Ok(Err(_)) | Err(_) => End::Closed,
        }
    }
}

/// Lines of a stream.
struct Lines<R> {
    reader: BufReader<R>,
    longest: usize,
    /// The beginning of a line that came in pieces; complete once the line has come.
    begun: Vec<u8>,
    /// Bytes of the buffer that hold the line that came last, with its line feed, if it came in one piece.
    whole: usize,
    /// True if `begun` is the line that came last, or its beginning.
    pieced: bool,
    /// Length of the line in `begun` so far, if that is past the limit.
    cut: Option<usize>,
}

impl<R: AsyncRead + Unpin> Lines<R> {
    fn new(stream: R, longest: usize) -> Self {
        let reader = BufReader::with_capacity(READ, stream);
        Self { reader, longest, begun: Vec::new(), whole: 0, pieced: false, cut: None }
    }

    fn line(&self) -> Written<'_> {
        match self.cut {
            Some(bytes) => Written::Cut(&self.begun, bytes),
            None if self.pieced => Written::Whole(&self.begun),
            None => Written::Whole(&self.reader.buffer()[..self.whole.saturating_sub(1)]),
        }
    }

    async fn next(&mut self) -> Result<(), End> {
        self.reader.consume(std::mem::take(&mut self.whole));
        if std::mem::take(&mut self.pieced) {
            self.begun.clear();
            self.begun.shrink_to(KEPT);
            self.cut = None;
        }
        loop {
            let available = match self.reader.fill_buf().await {
                Ok([]) => return Err(End::Closed),
                Ok(available) => available,
                Err(error) => return Err(End::Stream(error)),
            };
            let end = memchr::memchr(b'\n', available);
            let piece = &available[..end.unwrap_or(available.len())];
            let bytes = self.cut.unwrap_or(self.begun.len()) + piece.len();
            if bytes > self.longest {
                if bytes > self.longest.saturating_mul(ENDLESS) {
                    return Err(End::Endless(bytes, self.longest));
                }
                let missing = BEGINNING.saturating_sub(self.begun.len()).min(piece.len());
                self.begun.extend_from_slice(&piece[..missing]);
                self.begun.truncate(BEGINNING);
                self.cut = Some(bytes);
            } else if self.begun.is_empty() && end.is_some() {
                self.whole = piece.len() + 1;
                return Ok(());
            } else {
                self.begun.extend_from_slice(piece);
            }
            let used = piece.len() + usize::from(end.is_some());
            self.reader.consume(used);
            if end.is_some() {
                self.pieced = true;
                return Ok(());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn read(bytes: &'static [u8], longest: usize) -> (Vec<String>, String) {
        // Pieces of three bytes.
        let (ours, mut theirs) = tokio::io::duplex(3);
        tokio::spawn(async move { tokio::io::AsyncWriteExt::write_all(&mut theirs, bytes).await });
        let mut lines = Lines::new(ours, longest);
        let mut found = Vec::new();
        loop {
            match lines.next().await {
                Ok(()) => found.push(match lines.line() {
                    Written::Whole(line) => String::from_utf8(line.to_vec()).unwrap(),
                    Written::Cut(line, bytes) => format!("{bytes}: {}", String::from_utf8_lossy(line)),
                }),
                Err(end) => return (found, end.to_string()),
            }
        }
    }

    #[tokio::test]
    async fn lines_come_whole_in_whatever_pieces_they_were_written() {
        let closed = End::Closed.to_string();
        assert_eq!(
            read(b"a\n\nbcdefgh\ni\nrest", 7).await,
            (vec!["a".into(), String::new(), "bcdefgh".into(), "i".into()], closed)
        );
        let mut lines = Lines::new(&b"one\ntwo\n"[..], 3);
        lines.next().await.unwrap();
        assert_eq!(lines.line(), Written::Whole(b"one"));
        lines.next().await.unwrap();
        assert_eq!(lines.line(), Written::Whole(b"two"));
        assert!(matches!(lines.next().await, Err(End::Closed)));
    }

    #[tokio::test]
    async fn a_line_past_the_limit_is_cut_and_the_next_one_is_whole() {
        let closed = End::Closed.to_string();
        let expected = vec!["a".to_owned(), "7: bcdefgh".to_owned(), "ijklmn".to_owned()];
        assert_eq!(read(b"a\nbcdefgh\nijklmn\n", 6).await, (expected, closed.clone()));
        // At once, and behind a beginning.
        let long = format!("{}\n{}\n", "x".repeat(1000), "y".repeat(300));
        let mut lines = Lines::new(long.as_bytes(), 299);
        for (letter, bytes) in [(b'x', 1000), (b'y', 300)] {
            lines.next().await.unwrap();
            assert_eq!(lines.line(), Written::Cut(&[letter; BEGINNING], bytes));
        }
        let (found, end) = read(&[b'x'; 100], 6).await;
        assert!(found.is_empty() && end.contains("the limit of 6 bytes"), "{found:?}: {end}");
        assert_eq!(read(&[b'x'; 96], 6).await, (Vec::new(), closed));
    }
}
