//! The bytes of a connection below hyper: bytes of a client that nobody has read are read before the end, the wait for
//! a client that reads nothing has a limit, and a client that closes its side behind a request still gets the answer.
//!
//! hyper drops a request whose client has closed its side. But a client that has nothing more to say may do that (RFC 9112,
//! section 9.6), and a client that has left looks the same. So the end of what the client sends is kept from hyper while an
//! answer is made, and the code that makes it is told ([`ClientSide`]). A client that has left can't take bytes any more, while one
//! that waits ignores an interim answer (RFC 9110, section 15.2): some are written, until the system refuses one.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::watch;
use tokio::time::{Sleep, sleep};

/// Time and bytes for the rest of a request that was answered before its end: a connection that is closed with bytes
/// unread is reset, and its client may lose the answer (RFC 9112, section 9.6).
const LINGER: (Duration, usize) = (Duration::from_secs(2), 8 << 20);

/// Bytes of that rest that are read at a time.
const SIP: usize = 4096;

/// State that a connection and its service share.
#[derive(Debug, Default)]
pub(super) struct Progress {
    /// True while a part of the request is unread.
    unread: AtomicBool,
    /// True if bytes have come since the last request began or was read.
    heard: AtomicBool,
    /// True once another protocol has replaced HTTP.
    upgraded: AtomicBool,
    /// True while an answer is made or sent.
    answering: AtomicBool,
    /// True while an interim answer may be written: the client knows them, and nothing of the answer is written.
    awaits_head: AtomicBool,
    /// True once the client has closed its side.
    closed: watch::Sender<bool>,
    /// Reads again once the body is taken.
    waits: Mutex<Option<Waker>>,
}

/// Time in which a body that has come whole is taken. A body that has not ended by then is torn: its client has left.
const TAKEN: Duration = Duration::from_secs(1);

/// Time that an answer may take once its client has closed its side. The client may have left: then its request must not keep
/// its place for long.
const PATIENCE: Duration = Duration::from_secs(10);

/// An interim answer, which tells a client that waits nothing.
const INTERIM: &[u8] = b"HTTP/1.1 102 Processing\r\n\r\n";

/// Pauses behind the probes of a client that has closed its side. The system of one that has left refuses the second, or a later
/// one if it is far away.
pub(super) const PROBES: [Duration; 4] =
    [Duration::from_millis(100), Duration::from_millis(400), Duration::from_millis(1500), Duration::MAX];

/// The side of a client, among the extensions of each of its requests.
#[derive(Debug, Clone)]
pub(crate) struct ClientSide(watch::Receiver<bool>);

impl ClientSide {
    /// Waits until the client has closed its side behind the request: it sends nothing more, and may have left.
    pub(crate) async fn closed(&self) {
        let mut closed = self.0.clone();
        if closed.wait_for(|closed| *closed).await.is_err() {
            // The connection has ended, and the request with it.
            std::future::pending::<()>().await;
        }
    }

    /// Waits until the client has closed its side for so long that its request has ended.
    pub(super) async fn given_up(&self) {
        self.closed().await;
        sleep(PATIENCE).await;
    }
}

/// An answer that is made or sent, until this value is dropped.
#[derive(Debug)]
pub(super) struct Answering(Arc<Progress>);

impl Answering {
    pub(super) fn begin(progress: &Arc<Progress>) -> Self {
        progress.answering.store(true, Ordering::Relaxed);
        Self(progress.clone())
    }
}

impl Drop for Answering {
    fn drop(&mut self) {
        self.0.answering.store(false, Ordering::Relaxed);
    }
}

impl Progress {
    /// The side of the client.
    pub(super) fn client(&self) -> ClientSide {
        ClientSide(self.closed.subscribe())
    }

    /// Checks whether an answer is due.
    fn owes_answer(&self) -> bool {
        self.answering.load(Ordering::Relaxed) && !self.upgraded.load(Ordering::Relaxed)
    }

    fn waits(&self) -> MutexGuard<'_, Option<Waker>> {
        self.waits.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes that a request has come.
    pub(super) fn begin(&self, has_body: bool) {
        self.heard.store(false, Ordering::Relaxed);
        self.unread.store(has_body, Ordering::Relaxed);
    }

    /// Notes that a request has come whose client knows interim answers.
    pub(super) fn await_head(&self) {
        self.awaits_head.store(true, Ordering::Relaxed);
    }

    /// Notes that the body was read to its end.
    pub(super) fn read(&self) {
        self.begin(false);
        self.waits().take().into_iter().for_each(Waker::wake);
    }

    /// Checks whether a part of the request is unread.
    pub(super) fn is_unread(&self) -> bool {
        self.unread.load(Ordering::Relaxed)
    }

    /// Notes that another protocol replaces HTTP on the connection.
    pub(super) fn upgrade(&self) {
        self.upgraded.store(true, Ordering::Relaxed);
    }

    /// Notes that bytes are written: behind bytes that are no request they are a refusal of hyper itself, which does not
    /// read the rest.
    fn write(&self) {
        self.awaits_head.store(false, Ordering::Relaxed);
        if self.heard.load(Ordering::Relaxed) && !self.upgraded.load(Ordering::Relaxed) {
            self.unread.store(true, Ordering::Relaxed);
        }
    }
}

/// A connection.
pub(super) struct Wire<S> {
    stream: S,
    progress: Arc<Progress>,
    /// Time limit for a write without progress.
    time: Duration,
    stalled: Option<Pin<Box<Sleep>>>,
    ended: bool,
    /// The wait for a body to be taken, behind the end of what the client sends.
    torn: Option<Pin<Box<Sleep>>>,
    linger: Option<Linger>,
    /// True while bytes of hyper are not all written.
    is_blocked: bool,
    /// The probes that were written, and the pause behind the last one.
    probes: usize,
    pause: Option<Pin<Box<Sleep>>>,
}

/// The end of a connection of which some bytes are unread.
struct Linger {
    until: Pin<Box<Sleep>>,
    left: usize,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Wire<S> {
    pub(super) fn new(stream: S, progress: Arc<Progress>, time: Duration) -> Self {
        Self {
            stream,
            progress,
            time,
            stalled: None,
            ended: false,
            torn: None,
            linger: None,
            is_blocked: false,
            probes: 0,
            pause: None,
        }
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
                self.is_blocked = true;
                let time = self.time;
                ready!(self.stalled.get_or_insert_with(|| Box::pin(sleep(time))).as_mut().poll(cx));
                Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
            }
        }
    }

    /// Waits until a client that has closed its side can't take an interim answer: it has left.
    fn poll_left(&mut self, cx: &mut Context<'_>) -> Poll<io::Error> {
        while !self.is_blocked && self.progress.awaits_head.load(Ordering::Relaxed) {
            if let Some(pause) = &mut self.pause {
                ready!(pause.as_mut().poll(cx));
            }
            let Some(pause) = PROBES.get(self.probes) else { break };
            // It fits in whole, or the client reads nothing.
            match Pin::new(&mut self.stream).poll_write(cx, INTERIM) {
                Poll::Ready(Ok(written)) if written == INTERIM.len() => {}
                Poll::Ready(Ok(_)) => return Poll::Ready(io::ErrorKind::WriteZero.into()),
                Poll::Ready(Err(error)) => return Poll::Ready(error),
                Poll::Pending => break,
            }
            if let Poll::Ready(Err(error)) = Pin::new(&mut self.stream).poll_flush(cx) {
                return Poll::Ready(error);
            }
            self.probes += 1;
            self.pause = Some(Box::pin(sleep(*pause)));
        }
        // Once the answer is sent, hyper reads again.
        Poll::Pending
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
        let read_nothing = buffer.filled().len() == before;
        self.ended |= admission > 0 && read_nothing;
        if !read_nothing {
            self.progress.heard.store(true, Ordering::Relaxed);
        } else if self.ended && read.is_ok() && self.progress.owes_answer() {
            if !self.progress.is_unread() {
                self.progress.closed.send_replace(true);
                return self.poll_left(cx).map(Err);
            }
            // hyper has handed the end of the body over, but it isn't taken yet; or the body is torn.
            *self.progress.waits() = Some(cx.waker().clone());
            ready!(self.torn.get_or_insert_with(|| Box::pin(sleep(TAKEN))).as_mut().poll(cx));
        }
        Poll::Ready(read)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Wire<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.progress.write();
        self.in_time(cx, |stream, cx| stream.poll_write(cx, bytes))
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.progress.write();
        self.in_time(cx, |stream, cx| stream.poll_write_vectored(cx, slices))
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = ready!(self.in_time(cx, |stream, cx| stream.poll_flush(cx)));
        self.is_blocked = false;
        Poll::Ready(flushed)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.linger.is_none() {
            ready!(self.in_time(cx, |stream, cx| stream.poll_shutdown(cx)))?;
        }
        if self.progress.is_unread() && !self.ended {
            ready!(self.poll_linger(cx));
        }
        Poll::Ready(Ok(()))
    }
}
