//! The calls of a message, over all runs of its handler.
//!
//! A process may end while a message is in flight; the message runs again in another one. The calls that it made before are
//! not made again: the next run has to make the same ones in the same order, and gets the same answers in the order in
//! which they came. So a call has its effect once, and a durable organism, which recognizes calls in the same way after a
//! crash, sees the calls of one handler.

use std::pin::Pin;
use std::task::{Context, Poll};

use systole_core::core::{Answer, Emission};
use systole_core::vocab::{Fault, Name};

use crate::runtime::Calling;
use crate::runtime::Emit;
use crate::runtime::RunContext;

/// The calls of a message.
pub(super) struct Calls {
    made: Vec<Made>,
    /// Number of calls that the present run has made.
    asked: usize,
    /// Calls in the order in which their answers came, and how many of these the present run has got.
    decided: Vec<usize>,
    handed: usize,
    /// Bytes of the answers, and the most that are kept for another run.
    kept: usize,
    most: usize,
}

struct Made {
    /// Digest of the call.
    digest: blake3::Hash,
    /// The label that the present run gave it.
    label: String,
    state: State,
}

enum State {
    Open(Calling<Answer>),
    Answered(Result<Answer, Fault>),
    /// Answered, and not kept.
    Forgotten,
}

impl Calls {
    /// Keeps answers of at most `most` bytes together for another run.
    pub(super) fn new(most: usize) -> Self {
        Self { made: Vec::new(), asked: 0, decided: Vec::new(), handed: 0, kept: 0, most }
    }

    /// Begins another run; `false` if the answers of the run before are not kept.
    pub(super) fn begin_again(&mut self) -> bool {
        (self.asked, self.handed) = (0, 0);
        self.kept <= self.most
    }

    /// Returns whether the present run awaits an answer.
    pub(super) fn are_open(&self) -> bool {
        self.made[..self.asked.min(self.made.len())].iter().any(|made| matches!(made.state, State::Open(_)))
    }

    /// Makes a call, or takes it for the one that the run before made; `false` if that one was another.
    pub(super) fn make(&mut self, label: String, call: Emission, context: &RunContext) -> bool {
        let digest = digest(&call);
        self.asked += 1;
        match self.made.get_mut(self.asked - 1) {
            Some(made) if made.digest != digest => return false,
            Some(made) => made.label = label,
            None => {
                let state = State::Open(context.thread().call_any(Emit::from(call)));
                self.made.push(Made { digest, label, state });
            }
        }
        true
    }

    /// The next answer for the present run, with the label of its call.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<(String, Result<Answer, Fault>)> {
        // In the order of the calls, by which a durable organism recognizes them after a start.
        for (at, made) in self.made.iter_mut().enumerate() {
            if let State::Open(calling) = &mut made.state
                && let Poll::Ready(outcome) = Pin::new(calling).poll(cx)
            {
                self.kept += outcome.as_ref().map_or(0, |answer| answer.payload.payload().as_str().len());
                made.state = State::Answered(outcome);
                self.decided.push(at);
            }
        }
        let Some(&at) = self.decided.get(self.handed).filter(|&&at| at < self.asked) else { return Poll::Pending };
        self.handed += 1;
        let made = &mut self.made[at];
        let label = std::mem::take(&mut made.label);
        let outcome = match &made.state {
            State::Answered(outcome) if self.kept <= self.most => outcome.clone(),
            _ => match std::mem::replace(&mut made.state, State::Forgotten) {
                State::Answered(outcome) => outcome,
                // No run comes behind one whose answers are not kept.
                State::Open(_) | State::Forgotten => return Poll::Pending,
            },
        };
        Poll::Ready((label, outcome))
    }
}

fn digest(call: &Emission) -> blake3::Hash {
    let mut hasher = blake3::Hasher::new();
    hasher.update(call.to.as_ref().map_or("", Name::as_str).as_bytes()).update(&[0]);
    if let Some(payload) = call.payload.clone().into_payload() {
        hasher.update(payload.bytes());
    }
    hasher.finalize()
}
