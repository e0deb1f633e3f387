//! The bytes of a connection below hyper: refusals of hyper itself become problem documents, bytes of a client that no
//! handler read are read before the end, and the wait for a client that reads nothing has a limit.
//!
//! hyper answers a head that it can't parse before any router sees it, with a status and nothing else. Such an answer
//! is recognized by its moment: no request is being answered ([`Phase::Clean`]), and yet bytes are written. One
//! exception is left as it is: a bad head behind a request whose answer its client has not read yet.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::{Buf, Bytes};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Sleep, sleep};

use super::refusal::instead_of;

/// Time and bytes for the rest of a request that was answered before its end: a connection that is closed with bytes
/// unread is reset, and its client may lose the answer (RFC 9112, section 9.6).
const LINGER: (Duration, usize) = (Duration::from_secs(2), 8 << 20);

/// Bytes of that rest that are read at a time.
const SIP: usize = 4096;

/// State of the writing side of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
enum Phase {
    /// No bytes: all answers are written.
    Clean,
    /// An answer.
    Answering,
    /// The rest of an answer that is complete.
    Ended,
    /// The bytes of the protocol that replaced HTTP.
    Through,
}

/// State that a connection and its service share.
#[derive(Debug)]
pub(super) struct Progress {
    phase: AtomicU8,
    /// True while a part of the request is unread.
    unread: AtomicBool,
}

impl Progress {
    pub(super) fn new() -> Arc<Self> {
        Arc::new(Self { phase: AtomicU8::new(Phase::Clean as u8), unread: AtomicBool::new(false) })
    }

    /// Notes that a request has come.
    pub(super) fn begin(&self, has_body: bool) {
        self.set(Phase::Answering);
        self.unread.store(has_body, Ordering::Relaxed);
    }

    /// Notes that the body was read to its end.
    pub(super) fn read(&self) {
        self.unread.store(false, Ordering::Relaxed);
    }

    /// Checks whether a part of the request is unread.
    pub(super) fn is_unread(&self) -> bool {
        self.unread.load(Ordering::Relaxed)
    }

    /// Notes that the answer is complete.
    pub(super) fn end(&self) {
        self.set(Phase::Ended);
    }

    /// Notes that another protocol replaces HTTP on the connection.
    pub(super) fn upgrade(&self) {
        self.set(Phase::Through);
    }

    fn set(&self, phase: Phase) {
        if !self.is(Phase::Through) {
            self.phase.store(phase as u8, Ordering::Relaxed);
        }
    }

    fn is(&self, phase: Phase) -> bool {
        self.phase.load(Ordering::Relaxed) == phase as u8
    }
}

/// A connection.
pub(super) struct Wire<S> {
    stream: S,
    progress: Arc<Progress>,
    /// The bytes that replace those of hyper.
    instead: Bytes,
    /// Time limit for a write without progress.
    time: Duration,
    stalled: Option<Pin<Box<Sleep>>>,
    ended: bool,
    linger: Option<Linger>,
}

/// The end of a connection of which some bytes are unread.
struct Linger {
    until: Pin<Box<Sleep>>,
    left: usize,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Wire<S> {
    pub(super) fn new(stream: S, progress: Arc<Progress>, time: Duration) -> Self {
        Self { stream, progress, instead: Bytes::new(), time, stalled: None, ended: false, linger: None }
    }

    /// Writes by `write`, which must make progress in time.
    fn in_time<T>(
        &mut self,
        cx: &mut Context<'_>,
        write: impl FnOnce(Pin<&mut S>, &mut Context<'_>) -> Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        match write(Pin::new(&mut self.stream), cx) {
            Poll::Ready(done) => {
                self.stalled = None;
                Poll::Ready(done)
            }
            Poll::Pending => {
                let time = self.time;
                ready!(self.stalled.get_or_insert_with(|| Box::pin(sleep(time))).as_mut().poll(cx));
                Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
            }
        }
    }

    /// Writes the bytes that replace those of hyper.
    fn poll_instead(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while !self.instead.is_empty() {
            let rest = self.instead.clone();
            let written = ready!(self.in_time(cx, |stream, cx| stream.poll_write(cx, &rest)))?;
            if written == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            self.instead.advance(written);
        }
        Poll::Ready(Ok(()))
    }

    /// Takes an answer of hyper itself; false if the bytes are none.
    fn replaces(&mut self, bytes: &[u8]) -> bool {
        let instead = if self.progress.is(Phase::Clean) { instead_of(bytes) } else { None };
        let Some(instead) = instead else { return false };
        self.instead = instead.into();
        self.progress.begin(true);
        true
    }

    /// Reads and drops the bytes that the client still sends.
    fn poll_linger(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let linger = self.linger.get_or_insert_with(|| Linger { until: Box::pin(sleep(LINGER.0)), left: LINGER.1 });
        if linger.until.as_mut().poll(cx).is_ready() {
            return Poll::Ready(());
        }
        let mut sip = [0; SIP];
        while linger.left > 0 {
            let mut buffer = ReadBuf::new(&mut sip);
            match ready!(Pin::new(&mut self.stream).poll_read(cx, &mut buffer)) {
                Ok(()) if !buffer.filled().is_empty() => {
                    linger.left = linger.left.saturating_sub(buffer.filled().len())
                }
                _ => break,
            }
        }
        Poll::Ready(())
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncRead for Wire<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let (before, admission) = (buffer.filled().len(), buffer.remaining());
        let read = ready!(Pin::new(&mut self.stream).poll_read(cx, buffer));
        self.ended |= admission > 0 && buffer.filled().len() == before;
        Poll::Ready(read)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Wire<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        ready!(self.poll_instead(cx))?;
        if self.replaces(bytes) {
            return Poll::Ready(Ok(bytes.len()));
        }
        self.in_time(cx, |stream, cx| stream.poll_write(cx, bytes))
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        ready!(self.poll_instead(cx))?;
        // An answer of hyper itself is one slice.
        if let [only] = slices
            && self.replaces(only)
        {
            return Poll::Ready(Ok(only.len()));
        }
        self.in_time(cx, |stream, cx| stream.poll_write_vectored(cx, slices))
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_instead(cx))?;
        ready!(self.in_time(cx, |stream, cx| stream.poll_flush(cx)))?;
        if self.progress.is(Phase::Ended) {
            self.progress.set(Phase::Clean);
        }
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.linger.is_none() {
            ready!(self.poll_instead(cx))?;
            ready!(self.in_time(cx, |stream, cx| stream.poll_shutdown(cx)))?;
        }
        if self.progress.unread.load(Ordering::Relaxed) && !self.ended {
            ready!(self.poll_linger(cx));
        }
        Poll::Ready(Ok(()))
    }
}
