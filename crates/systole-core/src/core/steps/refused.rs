//! Refused outputs of listeners, kept for operators and for the listener itself.

use std::sync::Arc;

use systole_xml::ladder::Raw;

use super::Core;
use crate::core::blueprint::ListenerId;
use crate::core::event::{EventKind, excerpt, shown};
use crate::core::judge::Verdict;
use crate::core::key::{InvocationId, ThreadKey};
use crate::core::queued::Sender;
use crate::core::tree::About;
use crate::core::usage::ModelAnswer;
use crate::journal::{NoteRecord, Number, Op};
use crate::protocol::write_refused;
use crate::vocab::{Fault, Name};

/// Bytes that are kept of one output.
const KEPT: usize = 64 << 10;

impl Core {
    /// Keeps the refused part of a response: all that the listener wrote, or the payload that it made.
    ///
    /// Must be called before the message counts as done: the journal keeps the output with that.
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
            self.keep_dead_output(key, listener, &output, &fault);
        }
        self.keep_output(key, listener, message, (output, wrote.is_some()), fault);
    }

    /// Keeps an output that can't be parsed.
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
            self.keep_dead_output(key, listener, &output, fault);
            self.keep_output(key, listener, message, (output, true), fault.clone());
        }
    }

    fn keep_dead_output(&mut self, key: ThreadKey, listener: ListenerId, output: &str, fault: &Fault) {
        let payload = write_refused(output, fault);
        let entry = self.step.books.made();
        self.keep_dead(key, (Sender::Listener(listener), None), Some(payload), fault.clone(), entry);
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
        let contract = self.setup.blueprint.contract(listener);
        let (by, context) = (contract.name.clone(), contract.context && written);
        let is_kept = message != 0 && self.step.out.writes();
        if is_kept || context {
            let payload = write_refused(&output, &fault);
            if is_kept {
                let (name, value) = (NoteRecord::REFUSED_NAME.into(), payload.as_str().into());
                self.step.out.write(|| Op::Note(NoteRecord { message, index: NoteRecord::REFUSED, name, value }));
            }
            if context {
                self.tree.remember(key, (by.clone(), payload), About::Nothing, &mut self.step);
            }
        }
        self.tree.event(key, &mut self.step, || EventKind::Refused { by, output: shown(output.as_bytes()), fault });
    }

    /// Reports an event of a running handler to operators: `what` makes it of the name of the listener.
    pub(super) fn tell_of(&mut self, id: InvocationId, what: impl FnOnce(Name) -> EventKind) {
        let Some(invocation) = self.invocations.get(id) else { return };
        let Some(thread) = invocation.thread else { return };
        let by = self.setup.blueprint.contract(invocation.listener).name.clone();
        self.tree.event(thread, &mut self.step, || what(by));
    }

    /// Charges an answer that a handler got from a model, and tells operators of it.
    pub(super) fn model_answered(&mut self, id: InvocationId, answer: ModelAnswer) {
        self.charge_usage(id, answer.usage);
        let Some(invocation) = self.invocations.get(id) else { return };
        let Some(thread) = invocation.thread else { return };
        let (by, message) = (self.setup.blueprint.contract(invocation.listener).name.clone(), invocation.message);
        let ModelAnswer { backend, model, usage, text, fault } = answer;
        let output = || shown(text.as_bytes());
        let answered = || EventKind::ModelAnswered { by: by.clone(), message, backend, model, usage, text: output() };
        self.tree.event(thread, &mut self.step, answered);
        if let Some(fault) = fault {
            self.tree.event(thread, &mut self.step, || EventKind::Refused { by, output: output(), fault });
        }
    }
}
