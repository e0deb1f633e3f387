//! Bodies of requests that may have to be sent once more: what was read of one is kept, within a bound for all of them.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use axum::body::{Body, HttpBody};
use bytes::Bytes;
use http_body::{Frame, SizeHint};
use tokio::sync::watch;

/// Most bytes that are kept of one body. A longer one is sent once.
const MOST: usize = 4 << 20;

/// The body of a request, and what was read of it.
#[derive(Debug, Clone)]
pub(super) struct KeptBody(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    /// True once the client has broken off.
    broken: watch::Sender<bool>,
    /// The bytes of all bodies that are kept, and the most of them.
    all: Arc<AtomicUsize>,
    most: usize,
}

#[derive(Debug)]
struct State {
    rest: Body,
    read: Vec<Bytes>,
    bytes: usize,
    /// True once something was read that is not kept.
    lost: bool,
    /// The reader that is to go on; earlier ones get nothing more.
    reader: u64,
}

impl KeptBody {
    /// Keeps a body, as far as all together have fewer than `most` bytes.
    pub(super) fn new(body: Body, all: &Arc<AtomicUsize>, most: usize) -> Self {
        let state = State { rest: body, read: Vec::new(), bytes: 0, lost: false, reader: 0 };
        Self(Arc::new(Shared { state: Mutex::new(state), broken: watch::Sender::new(false), all: all.clone(), most }))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the body from its begin; a reader from before reads nothing more. None if that is not kept.
    pub(super) fn replay(&self) -> Option<Replay> {
        let mut state = self.state();
        state.reader += 1;
        (!state.lost).then(|| Replay { body: self.clone(), reader: state.reader, at: 0 })
    }

    /// Waits until the client has broken the body off.
    pub(super) async fn broken(&self) {
        // The sender is this value.
        let _ = self.0.broken.subscribe().wait_for(|broken| *broken).await;
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        let bytes = self.state.get_mut().unwrap_or_else(PoisonError::into_inner).bytes;
        self.all.fetch_sub(bytes, Ordering::Relaxed);
    }
}

impl Shared {
    /// Keeps a piece, or gives up all.
    fn keep(&self, state: &mut State, piece: &Bytes) {
        let bytes = piece.len();
        let fits = state.bytes + bytes <= MOST && self.all.fetch_add(bytes, Ordering::Relaxed) + bytes <= self.most;
        if fits {
            state.bytes += bytes;
            state.read.push(piece.clone());
            return;
        }
        if state.bytes + bytes <= MOST {
            self.all.fetch_sub(bytes, Ordering::Relaxed);
        }
        self.all.fetch_sub(state.bytes, Ordering::Relaxed);
        (state.read, state.bytes, state.lost) = (Vec::new(), 0, true);
    }
}

/// The body of a request, from its begin.
#[derive(Debug)]
pub(super) struct Replay {
    body: KeptBody,
    reader: u64,
    at: usize,
}

impl HttpBody for Replay {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let body = self.body.clone();
        let mut state = body.state();
        if state.reader != self.reader {
            return Poll::Ready(None);
        }
        if let Some(piece) = state.read.get(self.at) {
            let piece = piece.clone();
            self.at += 1;
            return Poll::Ready(Some(Ok(Frame::data(piece))));
        }
        loop {
            match Pin::new(&mut state.rest).poll_frame(context) {
                Poll::Ready(Some(Ok(frame))) => {
                    // Trailers say nothing here.
                    let Ok(piece) = frame.into_data() else { continue };
                    if !state.lost {
                        body.0.keep(&mut state, &piece);
                    }
                    self.at = state.read.len();
                    return Poll::Ready(Some(Ok(Frame::data(piece))));
                }
                // The end would be taken for that of the body: who waits for the answer hears of the break, and gives up.
                Poll::Ready(Some(Err(_))) => {
                    drop(state);
                    body.0.broken.send_replace(true);
                    return Poll::Pending;
                }
                Poll::Ready(None) => return Poll::Ready(None),
                Poll::Pending => return Poll::Pending,
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        let state = self.body.state();
        self.at >= state.read.len() && state.rest.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let state = self.body.state();
        let rest = state.rest.size_hint();
        let kept: usize = state.read.iter().skip(self.at).map(Bytes::len).sum();
        match rest.exact() {
            Some(rest) => SizeHint::with_exact(rest + kept as u64),
            None => SizeHint::default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;
    use std::task::Waker;

    use http_body_util::BodyExt;

    use super::*;

    /// A body of pieces that are all there.
    struct Pieces(VecDeque<&'static str>);

    impl HttpBody for Pieces {
        type Data = Bytes;
        type Error = Infallible;

        fn poll_frame(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
            Poll::Ready(self.0.pop_front().map(|piece| Ok(Frame::data(Bytes::from_static(piece.as_bytes())))))
        }
    }

    fn pieces(pieces: &[&'static str]) -> Body {
        Body::new(Pieces(pieces.iter().copied().collect()))
    }

    fn read(body: Replay) -> String {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let bytes = runtime.block_on(body.collect()).unwrap().to_bytes();
        String::from_utf8(bytes.to_vec()).unwrap()
    }

    /// Reads one piece.
    fn first(body: &mut Replay) -> String {
        let mut context = Context::from_waker(Waker::noop());
        match Pin::new(body).poll_frame(&mut context) {
            Poll::Ready(Some(Ok(frame))) => String::from_utf8(frame.into_data().unwrap().to_vec()).unwrap(),
            other => panic!("a piece: {other:?}"),
        }
    }

    #[test]
    fn a_body_that_was_read_in_part_is_read_from_its_begin_again() {
        let all = Arc::default();
        let kept = KeptBody::new(pieces(&["one ", "two ", "three"]), &all, 1000);
        let mut early = kept.replay().unwrap();
        assert_eq!(first(&mut early), "one ");
        assert_eq!(read(kept.replay().unwrap()), "one two three");
        assert_eq!(read(early), "", "an earlier reader gets nothing more");
        assert_eq!(read(kept.replay().unwrap()), "one two three");
        assert_eq!(all.load(Ordering::Relaxed), 13);
        drop(kept);
        assert_eq!(all.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn a_body_for_which_there_is_no_room_is_sent_once() {
        let all = Arc::new(AtomicUsize::new(90));
        let kept = KeptBody::new(pieces(&["one ", "two ", "three"]), &all, 100);
        assert_eq!(read(kept.replay().unwrap()), "one two three", "it is whole all the same");
        assert!(kept.replay().is_none());
        assert_eq!(all.load(Ordering::Relaxed), 90);
    }

    #[test]
    fn a_request_without_a_body_has_none() {
        let kept = KeptBody::new(Body::empty(), &Arc::default(), 100);
        assert!(kept.replay().unwrap().is_end_stream());
        assert_eq!(kept.replay().unwrap().size_hint().exact(), Some(0));
    }
}
