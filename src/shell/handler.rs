use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use systole_core::core::{CallId, InvocationId, ListenerId, Settled, ShardId};
use systole_core::vocab::Fault;

/// A handler that was started and has not finished: which desk serves it, whose task it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct HandlerKey {
    /// The desk of the shard that it runs in.
    pub(super) desk: u64,
    /// The shard that its thread lives in.
    pub(super) origin: ShardId,
    /// Its name in the core of that shard.
    pub(super) task: InvocationId,
}

/// All handlers that one shard knows: those that run in it, and those that run elsewhere for its
/// own threads. Found by index, without hashing: the tasks of a core are numbered densely.
#[derive(Default)]
pub(super) struct Handlers {
    by_origin: Vec<Vec<Option<Handler>>>,
}

/// What is known of one handler.
pub(super) struct Handler {
    pub(super) task: InvocationId,
    pub(super) listener: ListenerId,
    pub(super) place: Place,
    /// Whether it can await answers.
    pub(super) can_park: bool,
    /// Whether the core has been told that it waits for calls only.
    pub(super) parked: bool,
    /// Whether it is here and has not run yet.
    pub(super) fresh: bool,
    next_call: u32,
    next_note: u32,
    /// Notes that are not durable yet, and who waits for that.
    notes: Vec<(u32, Option<Waker>)>,
    calls: Vec<Call>,
}

/// Where a handler is to be found.
pub(super) enum Place {
    /// In another shard.
    Away(ShardId),
    /// With its listener's host: queued, or running in its actor.
    Host,
    /// In a task of its own.
    Detached(Rc<dyn Cancel>),
}

/// Something that runs and can be dropped.
pub(super) trait Cancel {
    /// Drops it now and reports that it was aborted.
    fn cancel(&self);
}

struct Call {
    id: CallId,
    state: CallState,
}

enum CallState {
    Open(Option<Waker>),
    Decided(Result<Vec<Settled>, Fault>),
}

impl Handlers {
    pub(super) fn insert(&mut self, origin: ShardId, handler: Handler) {
        let (origin, index) = (usize::from(origin.0), handler.task.index());
        if self.by_origin.len() <= origin {
            self.by_origin.resize_with(origin + 1, Vec::new);
        }
        let tasks = &mut self.by_origin[origin];
        if tasks.len() <= index {
            tasks.resize_with(index + 1, || None);
        }
        tasks[index] = Some(handler);
    }

    pub(super) fn get(&mut self, origin: ShardId, task: InvocationId) -> Option<&mut Handler> {
        let slot = self.by_origin.get_mut(usize::from(origin.0))?.get_mut(task.index())?;
        slot.as_mut().filter(|handler| handler.task == task)
    }

    pub(super) fn remove(&mut self, origin: ShardId, task: InvocationId) -> Option<Handler> {
        let slot = self.by_origin.get_mut(usize::from(origin.0))?.get_mut(task.index())?;
        slot.take_if(|handler| handler.task == task)
    }

    /// Everything, for the end of the shard.
    pub(super) fn drain(&mut self) -> Vec<Handler> {
        self.by_origin.iter_mut().flat_map(|tasks| tasks.drain(..)).flatten().collect()
    }
}

impl Handler {
    pub(super) fn new(task: InvocationId, listener: ListenerId, place: Place, can_park: bool) -> Self {
        let fresh = matches!(place, Place::Host);
        Self {
            task,
            listener,
            place,
            can_park,
            parked: false,
            fresh,
            next_call: 0,
            next_note: 0,
            notes: Vec::new(),
            calls: Vec::new(),
        }
    }

    /// Opens a group of calls.
    pub(super) fn open(&mut self) -> CallId {
        let id = CallId(self.next_call);
        self.next_call += 1;
        self.calls.push(Call { id, state: CallState::Open(None) });
        id
    }

    /// The place of the next note.
    pub(super) fn next_note(&mut self) -> u32 {
        self.next_note += 1;
        self.next_note - 1
    }

    /// Notes that something is being written down.
    pub(super) fn note(&mut self, index: u32) {
        self.notes.push((index, None));
    }

    /// Something that was noted is durable; who waits for that.
    pub(super) fn noted(&mut self, index: u32) -> Option<Waker> {
        let at = self.notes.iter().position(|(other, _)| *other == index)?;
        self.notes.swap_remove(at).1
    }

    /// Whether a note is durable; if not, a waker is left with it.
    pub(super) fn poll_note(&mut self, index: u32, cx: &mut Context<'_>) -> Poll<()> {
        match self.notes.iter_mut().find(|(other, _)| *other == index) {
            Some((_, waker)) => {
                *waker = Some(cx.waker().clone());
                Poll::Pending
            }
            None => Poll::Ready(()),
        }
    }

    /// Takes the result of a group, or leaves a waker with it; `None` if there is no such group.
    pub(super) fn poll(&mut self, call: CallId, cx: &mut Context<'_>) -> Poll<Option<Result<Vec<Settled>, Fault>>> {
        let Some(at) = self.calls.iter().position(|open| open.id == call) else { return Poll::Ready(None) };
        if let CallState::Open(waker) = &mut self.calls[at].state {
            match waker {
                Some(waker) => waker.clone_from(cx.waker()),
                None => *waker = Some(cx.waker().clone()),
            }
            return Poll::Pending;
        }
        match self.calls.swap_remove(at).state {
            CallState::Decided(result) => Poll::Ready(Some(result)),
            CallState::Open(_) => Poll::Ready(None),
        }
    }

    /// Keeps the result of a group and gives back whom to wake.
    pub(super) fn decide(&mut self, call: CallId, result: Result<Vec<Settled>, Fault>) -> Option<Waker> {
        self.parked = false;
        let call = self.calls.iter_mut().find(|open| open.id == call)?;
        match std::mem::replace(&mut call.state, CallState::Decided(result)) {
            CallState::Open(waker) => waker,
            CallState::Decided(_) => None,
        }
    }

    /// Forgets a group; whether it was still undecided.
    pub(super) fn forget(&mut self, call: CallId) -> bool {
        let Some(at) = self.calls.iter().position(|open| open.id == call) else { return false };
        matches!(self.calls.swap_remove(at).state, CallState::Open(_))
    }

    /// Whether it waits for an answer that has not come.
    pub(super) fn awaits(&self) -> bool {
        self.calls.iter().any(|call| matches!(call.state, CallState::Open(_)))
    }
}
