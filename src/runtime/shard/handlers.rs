//! Handlers that have started and not finished.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

#[cfg(feature = "gateway")]
use systole_core::core::Short;
use systole_core::core::{CallId, CoreId, InvocationId, ListenerId, Settled};
use systole_core::journal::NoteRecord;
use systole_core::vocab::Fault;

use crate::drafts::RunId;

thread_local! {
    /// True while a handler of this thread is dropped whose message runs again.
    static MOVES: Cell<bool> = const { Cell::new(false) };
}

/// Drops a handler, whose message runs again if it `moves`: what it leaves behind is for that run.
pub(crate) fn dropping<T>(moves: bool, drop: impl FnOnce() -> T) -> T {
    let before = MOVES.replace(moves);
    let dropped = drop();
    MOVES.set(before);
    dropped
}

/// Returns whether the message of the handler that this thread drops runs again.
pub(crate) fn is_moving() -> bool {
    MOVES.get()
}

/// Identity of a handler that has started and not finished.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct HandlerKey {
    /// The context of the shard that the handler runs in.
    pub(crate) shard_context: u64,
    /// The shard of the handler's thread.
    pub(crate) origin: CoreId,
    /// The handler's id in the core of that shard.
    pub(crate) invocation: InvocationId,
}

impl HandlerKey {
    /// The run, as drafts know it.
    pub(crate) fn run(self) -> RunId {
        RunId { core: self.origin, invocation: self.invocation }
    }
}

/// All handlers that a shard knows: those that run in it, and those that run elsewhere for its own threads. Found by
/// index, without hashing: a core numbers them densely.
#[derive(Default)]
pub(crate) struct Handlers {
    by_origin: Vec<Vec<Option<Handler>>>,
}

/// State of one handler.
pub(crate) struct Handler {
    pub(crate) invocation: InvocationId,
    pub(crate) listener: ListenerId,
    pub(crate) place: Place,
    /// True if the handler can await answers.
    pub(crate) can_park: bool,
    /// True if the core knows that the handler waits only for calls.
    pub(crate) parked: bool,
    /// True if the handler is here and has not run yet.
    pub(crate) fresh: bool,
    /// True once it has written a draft.
    pub(crate) drafts: bool,
    next_call: u32,
    /// Number of notes of earlier runs that were taken, of each name.
    taken: Vec<(Arc<str>, usize)>,
    next_note: u32,
    /// Notes that are not durable yet, and the wakers of their waiters.
    notes: Vec<(u32, Option<Waker>)>,
    calls: Vec<Call>,
    /// The reservation that it waits for.
    #[cfg(feature = "gateway")]
    reservation: Option<Reservation>,
}

/// Place of a handler.
pub(crate) enum Place {
    /// The handler runs in another shard.
    Away(CoreId),
    /// The handler is with its listener's host: queued, or running in its actor.
    Host,
    /// The handler runs in a task of its own.
    Detached(Rc<dyn Cancel>),
}

/// A running handler that can be dropped.
pub(crate) trait Cancel {
    /// Drops the handler now, and reports that it was aborted.
    fn cancel(&self);
}

struct Call {
    id: CallId,
    state: CallState,
}

#[cfg(feature = "gateway")]
enum Reservation {
    Open(Option<Waker>),
    Decided(Result<(), Box<Short>>),
}

enum CallState {
    Open(Option<Waker>),
    Decided(Result<Vec<Settled>, Fault>),
}

impl Handlers {
    pub(crate) fn insert(&mut self, origin: CoreId, handler: Handler) {
        let (origin, index) = (usize::from(origin.0), handler.invocation.index());
        if self.by_origin.len() <= origin {
            self.by_origin.resize_with(origin + 1, Vec::new);
        }
        let tasks = &mut self.by_origin[origin];
        if tasks.len() <= index {
            tasks.resize_with(index + 1, || None);
        }
        tasks[index] = Some(handler);
    }

    pub(crate) fn get(&mut self, origin: CoreId, invocation: InvocationId) -> Option<&mut Handler> {
        let slot = self.by_origin.get_mut(usize::from(origin.0))?.get_mut(invocation.index())?;
        slot.as_mut().filter(|handler| handler.invocation == invocation)
    }

    pub(crate) fn remove(&mut self, origin: CoreId, invocation: InvocationId) -> Option<Handler> {
        let slot = self.by_origin.get_mut(usize::from(origin.0))?.get_mut(invocation.index())?;
        slot.take_if(|handler| handler.invocation == invocation)
    }

    /// Removes all handlers, at the end of the shard.
    pub(crate) fn drain(&mut self) -> Vec<Handler> {
        self.by_origin.iter_mut().flat_map(|tasks| tasks.drain(..)).flatten().collect()
    }
}

impl Handler {
    pub(crate) fn new(invocation: InvocationId, listener: ListenerId, place: Place, can_park: bool) -> Self {
        let fresh = matches!(place, Place::Host);
        Self {
            invocation,
            listener,
            place,
            can_park,
            parked: false,
            fresh,
            drafts: false,
            next_call: 0,
            taken: Vec::new(),
            next_note: 0,
            notes: Vec::new(),
            calls: Vec::new(),
            #[cfg(feature = "gateway")]
            reservation: None,
        }
    }

    /// Opens a group of calls.
    pub(crate) fn open(&mut self) -> CallId {
        let id = CallId(self.next_call);
        self.next_call += 1;
        self.calls.push(Call { id, state: CallState::Open(None) });
        id
    }

    /// Takes the next note of that name of earlier runs, which are sorted by index.
    pub(crate) fn next_recorded<'n>(&mut self, name: &str, before: &'n [NoteRecord]) -> Option<&'n NoteRecord> {
        let mut named = before.iter().filter(|note| *note.name == *name);
        let taken = self.taken.iter_mut().find(|(other, _)| **other == *name);
        let note = named.nth(taken.as_ref().map_or(0, |(_, count)| *count))?;
        match taken {
            Some((_, count)) => *count += 1,
            None => self.taken.push((note.name.clone(), 1)),
        }
        Some(note)
    }

    /// Returns the index of a new note, `first` or behind it.
    pub(crate) fn new_note(&mut self, first: u32) -> u32 {
        let index = self.next_note.max(first);
        self.next_note = index + 1;
        index
    }

    /// Registers a note that is on its way into the journal.
    pub(crate) fn note(&mut self, index: u32) {
        self.notes.push((index, None));
    }

    /// Removes a note that is durable; returns the waker of its waiter.
    pub(crate) fn noted(&mut self, index: u32) -> Option<Waker> {
        let at = self.notes.iter().position(|(other, _)| *other == index)?;
        self.notes.swap_remove(at).1
    }

    /// Polls whether a note is durable; leaves a waker if it is not.
    pub(crate) fn poll_note(&mut self, index: u32, cx: &mut Context<'_>) -> Poll<()> {
        match self.notes.iter_mut().find(|(other, _)| *other == index) {
            Some((_, waker)) => {
                *waker = Some(cx.waker().clone());
                Poll::Pending
            }
            None => Poll::Ready(()),
        }
    }

    /// Begins to wait for a reservation.
    #[cfg(feature = "gateway")]
    pub(crate) fn reserves(&mut self) {
        self.reservation = Some(Reservation::Open(None));
    }

    /// Stores the result of the reservation; returns the waker of its waiter.
    #[cfg(feature = "gateway")]
    pub(crate) fn reserved(&mut self, result: Result<(), Box<Short>>) -> Option<Waker> {
        match self.reservation.replace(Reservation::Decided(result)) {
            Some(Reservation::Open(waker)) => waker,
            Some(Reservation::Decided(_)) | None => None,
        }
    }

    /// Takes the result of the reservation, or leaves a waker.
    #[cfg(feature = "gateway")]
    pub(crate) fn poll_reserved(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Box<Short>>> {
        match self.reservation.take() {
            Some(Reservation::Open(_)) => {
                self.reservation = Some(Reservation::Open(Some(cx.waker().clone())));
                Poll::Pending
            }
            Some(Reservation::Decided(result)) => Poll::Ready(result),
            None => Poll::Ready(Ok(())),
        }
    }

    /// Takes the result of a group, or leaves a waker; `None` if there is no such group.
    pub(crate) fn poll(&mut self, call: CallId, cx: &mut Context<'_>) -> Poll<Option<Result<Vec<Settled>, Fault>>> {
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

    /// Stores the result of a group; returns the waker of its waiter.
    pub(crate) fn decide(&mut self, call: CallId, result: Result<Vec<Settled>, Fault>) -> Option<Waker> {
        self.parked = false;
        let call = self.calls.iter_mut().find(|open| open.id == call)?;
        match std::mem::replace(&mut call.state, CallState::Decided(result)) {
            CallState::Open(waker) => waker,
            CallState::Decided(_) => None,
        }
    }

    /// Removes a group; returns whether it was undecided.
    pub(crate) fn forget(&mut self, call: CallId) -> bool {
        let Some(at) = self.calls.iter().position(|open| open.id == call) else { return false };
        matches!(self.calls.swap_remove(at).state, CallState::Open(_))
    }

    /// Returns whether an answer is outstanding.
    pub(crate) fn awaits(&self) -> bool {
        self.calls.iter().any(|call| matches!(call.state, CallState::Open(_)))
    }
}
