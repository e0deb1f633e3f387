//! The bounds of threads and conversations, and the failure of a thread that exceeds them.
//!
//! An emission makes one message for each of its indices: the request in the mailbox of a child, the answer
//! of the core, a continue, or the fault that refuses one of these. [`Tree::room_for`] asks for the places of all
//! indices before an emission takes effect, also for what the core makes. Where there are none, the thread that emitted
//! fails, once, with one fault, and nothing more of its response takes effect. The bounds:
//!
//! - a thread holds `mailbox` open calls and messages; past it a call is refused with a fault, and such faults may
//!   take as many places again as one fan-out has;
//! - a conversation holds `conversation_threads` threads, `conversation_messages` messages and `conversation_bytes`
//!   bytes of them: in mailboxes and backlogs, delayed, and answers that handlers await;
//! - the organism holds `queue` messages and `queue_bytes` bytes; past it a call is refused with `overload`, and past
//!   twice as much a thread that emits anything but a reply or a continue fails with `overload`.
//!
//! Answers are never refused: each thread owes one answer at most, and its caller keeps a place for it from the moment
//! of the call. So a conversation holds at most one message for each of its threads beyond the bound. A reply that
//! finds no room for its bytes fails its thread, and the caller gets that fault in the same place.
//!
//! # Why this can't deadlock
//! Nothing waits for room: an emission that finds none ends its thread in the same step. A thread that ends frees what
//! it and the threads below it hold, and gives its caller an answer in a place that is kept. So each thread that waits
//! waits for a thread below it which is ready, runs, or waits itself; the leaves have messages or timeouts; and
//! every message that is dispatched frees its own place before its handler can ask for others. A conversation that is
//! full thus shrinks with each dispatch, or makes as many messages as it consumes, until it has room or is over.
//! A loop by `continue_with` consumes one message for each that it makes, so that it may run for ever.

use super::Tree;
use crate::core::faults;
use crate::core::judge::Verdict;
use crate::core::key::ThreadKey;
use crate::vocab::Fault;

impl Tree {
    /// Checks that an emission of a thread may take effect; the fault ends the thread.
    pub(in crate::core) fn room_for(&self, key: ThreadKey, verdict: &Verdict) -> Result<(), Fault> {
        let (messages, threads) = match verdict {
            // An emission that ends a thread needs no room.
            Verdict::Reply(_) | Verdict::CloseThread { .. } => return Ok(()),
            Verdict::Call { others, .. } => (1 + others.len(), 1 + others.len()),
            Verdict::Spawn { .. } => (verdict.width(), 1),
            Verdict::Continue { .. } | Verdict::Addressed { .. } | Verdict::Core { .. } => (1, 0),
            Verdict::Refused(refusal) => (refusal.width.max(1), 0),
        };
        if !matches!(verdict, Verdict::Continue { .. }) && self.gauge.is_flooded() {
            return Err(faults::overload());
        }
        self.room_over_mailbox(key, messages)?;
        self.room_in_conversation(key, messages, threads)
    }

    /// Checks that so many messages fit into the mailbox of a thread and the room for refusals beyond it.
    fn room_over_mailbox(&self, key: ThreadKey, messages: usize) -> Result<(), Fault> {
        let limits = &self.setup.blueprint.limits;
        match self.threads[key].reserved() + messages > limits.mailbox.saturating_add(limits.fanout) {
            true => Err(mailbox_full(limits.mailbox)),
            false => Ok(()),
        }
    }

    /// Checks that the conversation of a thread may hold so many more messages and threads.
    fn room_in_conversation(&self, key: ThreadKey, messages: usize, threads: usize) -> Result<(), Fault> {
        let limits = &self.setup.blueprint.limits;
        let root = &self.threads[self.threads[key].root];
        let Some(state) = root.extra.as_ref().and_then(|extra| extra.root.as_ref()) else { return Ok(()) };
        if threads > 0 && state.live_threads as usize + threads > limits.conversation_threads {
            return Err(faults::limit(format_args!("a conversation may have {} threads", limits.conversation_threads)));
        }
        let held = state.conversation.as_ref().map_or(0, |conversation| conversation.messages());
        if held + messages > limits.conversation_messages {
            let limit = limits.conversation_messages;
            return Err(faults::limit(format_args!("a conversation may hold {limit} messages at once")));
        }
        self.room_for_bytes(key)
    }

    /// Checks that the conversation of a thread may hold more bytes.
    pub(in crate::core) fn room_for_bytes(&self, key: ThreadKey) -> Result<(), Fault> {
        let limit = self.setup.blueprint.limits.conversation_bytes;
        let root = &self.threads[self.threads[key].root];
        let state = root.extra.as_ref().and_then(|extra| extra.root.as_ref());
        let held = state.and_then(|state| state.conversation.as_ref()).map_or(0, |conversation| conversation.bytes());
        if held >= limit {
            return Err(faults::limit(format_args!("a conversation may hold messages of {limit} bytes at once")));
        }
        Ok(())
    }

    /// Checks that a thread may make one more call.
    pub(in crate::core) fn room_for_call(&self, parent: ThreadKey) -> Result<(), Fault> {
        let limits = &self.setup.blueprint.limits;
        let thread = &self.threads[parent];
        if u32::from(thread.depth) >= limits.thread_depth {
            return Err(faults::limit(format_args!(
                "calls can be {} deep, and this would be deeper",
                limits.thread_depth
            )));
        }
        self.room_in_mailbox(parent)
    }

    /// Checks that one more message may come to a thread, or be promised to it.
    pub(in crate::core) fn room_in_mailbox(&self, key: ThreadKey) -> Result<(), Fault> {
        let limit = self.setup.blueprint.limits.mailbox;
        if self.threads[key].reserved() >= limit {
            return Err(mailbox_full(limit));
        }
        Ok(())
    }

    /// Checks that a thread may open one more child.
    pub(in crate::core) fn room_for_child(&self, parent: ThreadKey) -> Result<(), Fault> {
        self.room_for_call(parent)?;
        self.room_in_conversation(parent, 1, 1)?;
        self.room_in_organism()
    }

    /// Checks that the organism may have one more thread.
    pub(in crate::core) fn room_in_organism(&self) -> Result<(), Fault> {
        let limit = self.setup.blueprint.limits.threads;
        if self.directory.threads() >= limit {
            return Err(faults::limit(format_args!("the organism may have {limit} threads")));
        }
        Ok(())
    }
}

pub(in crate::core) fn mailbox_full(limit: usize) -> Fault {
    faults::limit(format_args!("a thread may have {limit} open calls and messages together"))
}
