//! Refused outputs of listeners: kept, so that operators and the listener itself can see them.

use std::sync::Arc;

use systole_xml::ladder::Raw;

use super::blueprint::ListenerId;
use super::event::EventKind;
use super::io::{Outcome, Remembered};
use super::judge::Verdict;
use super::key::ThreadKey;
use super::machine::Core;
use super::thread::Sender;
use crate::journal::{NoteRecord, Number, Op};
use crate::protocol::write_refused;
use crate::vocab::Fault;

/// Bytes that are kept of one output.
const KEPT: usize = 64 << 10;
/// Bytes of it in an event: thousands of events may wait for their subscribers.
const SHOWN: usize = 4 << 10;

impl Core {
    /// Keeps what was refused of a response: all that the listener wrote, or the payload that it made.
    ///
    /// To be called before the message counts as done: the journal keeps it with that.
    pub(super) fn keep_refused(
        &mut self,
        key: ThreadKey,
        listener: ListenerId,
        message: Number,
        wrote: Option<&Raw>,
        verdicts: &[Verdict],
    ) {
        let refusal = verdicts.iter().find_map(|verdict| match verdict {
            Verdict::Refused(refusal) => Some(refusal),
            _ => None,
        });
        let Some(refusal) = refusal else { return };
        let payload = refusal.payload.as_ref().map(|payload| payload.bytes());
        let Some(output) = wrote.map(Raw::bytes).or(payload) else { return };
        let (output, fault) = (excerpt(output, KEPT), refusal.fault.clone());
        // Payloads that were read have dead letters of their own.
        if verdicts.iter().any(|verdict| matches!(verdict, Verdict::Refused(refusal) if refusal.payload.is_none())) {
            self.bury_output(key, listener, &output, &fault);
        }
        self.keep_output(key, listener, message, (output, wrote.is_some()), fault);
    }

    /// Keeps an output in which there is nothing that can be read.
    pub(super) fn keep_unreadable(
        &mut self,
        key: ThreadKey,
        listener: ListenerId,
        message: Number,
        wrote: Option<&Raw>,
        fault: &Fault,
    ) {
        if let Some(wrote) = wrote {
            let output = excerpt(wrote.bytes(), KEPT);
            self.bury_output(key, listener, &output, fault);
            self.keep_output(key, listener, message, (output, true), fault.clone());
        }
    }

    fn bury_output(&mut self, key: ThreadKey, listener: ListenerId, output: &str, fault: &Fault) {
        let payload = write_refused(output, fault);
        self.counts.made += 1;
        self.bury(key, (Sender::Listener(listener), None), Some(payload), fault.clone());
    }

    /// Keeps an output of bytes in the context of the thread. A handler that emitted a value sees the fault with it.
    fn keep_output(
        &mut self,
        key: ThreadKey,
        listener: ListenerId,
        message: Number,
        (output, written): (Arc<str>, bool),
        fault: Fault,
    ) {
        let contract = self.blueprint.contract(listener);
        let (by, context) = (contract.name.clone(), contract.context && written);
        let is_kept = message != 0 && self.logs();
        if is_kept || context {
            let payload = write_refused(&output, &fault);
            if is_kept {
                let (name, value) = (NoteRecord::REFUSED_NAME.into(), payload.as_str().into());
                self.log(|_| Op::Note(NoteRecord { message, index: NoteRecord::REFUSED, name, value }));
            }
            if context {
                self.remember(key, Remembered { from: by.clone(), payload });
            }
        }
        self.event(key, || EventKind::Refused { by, output: shown(output.as_bytes()), fault });
    }
}

/// The bytes that a handler wrote, where its outcome is bytes.
pub(super) fn written(outcome: &Outcome) -> Option<Raw> {
    match outcome {
        Outcome::Wrote(raw) => Some(raw.clone()),
        Outcome::Emitted(_) | Outcome::Failed(_) | Outcome::Panicked | Outcome::Discarded | Outcome::Aborted => None,
    }
}

/// The start of an output, as an event shows it.
pub(super) fn shown(output: &[u8]) -> Arc<str> {
    excerpt(output, SHOWN)
}

/// The start of an output, as text.
fn excerpt(output: &[u8], most: usize) -> Arc<str> {
    let kept = String::from_utf8_lossy(&output[..output.len().min(most)]);
    match output.len().saturating_sub(most) {
        0 => kept.into(),
        more => format!("{kept}… {more} bytes more").into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_excerpt_is_bounded_text() {
        assert_eq!(&*excerpt(b"a\xffb", KEPT), "a\u{fffd}b");
        let long = excerpt(&[b'x'; 17], 10);
        assert!(long.ends_with("x… 7 bytes more"), "{long}");
    }
}
