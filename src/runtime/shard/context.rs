//! The shared state of a shard.

use std::cell::{Cell, Ref, RefCell};
use std::collections::{BTreeMap, VecDeque};
use std::rc::{Rc, Weak};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

#[cfg(feature = "gateway")]
use systole_core::core::Short;
use systole_core::core::catch_panic::Panicked;
use systole_core::core::{
    Blueprint, CallId, CoreId, DraftEnd, Emission, HandlerOutcome, Input, InvocationId, Join, ListenerId, ModelAnswer,
    OrganismVersion, Settled, Version,
};
use systole_core::journal::NoteRecord;
#[cfg(feature = "gateway")]
use systole_core::vocab::Amounts;
use systole_core::vocab::{Fault, FaultCode, IdKey};

use super::command::{Command, Links};
use super::handlers::{Handler, HandlerKey, Handlers, Place, is_moving};
use super::restart::{Rest, Restarts, given_up};
use super::shared::version_of;
use super::watchdog::Pulse;
use crate::drafts::{DraftSource, DraftSubject, DraftWriter, RunId};
use systole_store::clock::Clock;

/// The shared state of one shard: the local queue into its core, the running handlers, the links to other shards.
/// Handlers find it through their key, on the shard's thread only.
pub(crate) struct ShardContext {
    pub(crate) token: u64,
    /// The core that the shard started with, by which other shards name it.
    pub(crate) shard: CoreId,
    pub(crate) clock: Clock,
    pub(crate) links: Links,
    /// The versions of the organism, oldest first: those that conversations keep, and the present one.
    versions: RefCell<Vec<OrganismVersion>>,
    /// The key of the organism.
    #[cfg_attr(not(feature = "gateway"), expect(dead_code, reason = "for listeners that models speak for"))]
    pub(crate) key: IdKey,
    pub(crate) handlers: RefCell<Handlers>,
    /// The drafts of the organism.
    drafts: DraftWriter,
    /// The failures in a row of listeners of this shard.
    restarts: RefCell<BTreeMap<ListenerId, Restarts>>,
    inputs: RefCell<VecDeque<(CoreId, Input)>>,
    pump: Cell<Option<Waker>>,
    /// Number of handlers here that have not run yet.
    fresh: Cell<usize>,
    /// True if the pump waits for them before it reports that it is idle.
    awaits_fresh: Cell<bool>,
    /// Count of everything that ran here.
    activity: Cell<u64>,
    /// The listener whose code runs, for the watchdog.
    pulse: Arc<Pulse>,
    /// True once the journal is sealed.
    sealed: Cell<bool>,
}

thread_local! {
    static CONTEXTS: RefCell<Vec<Weak<ShardContext>>> = const { RefCell::new(Vec::new()) };
}

static NEXT_TOKEN: AtomicU64 = AtomicU64::new(0);

impl ShardContext {
    /// Makes the context of a shard that lives on this thread from now on.
    pub(crate) fn new(
        shard: CoreId,
        clock: Clock,
        links: Links,
        version: OrganismVersion,
        key: IdKey,
        (drafts, pulse): (DraftWriter, Arc<Pulse>),
    ) -> Rc<Self> {
        let shard_context = Rc::new(Self {
            token: NEXT_TOKEN.fetch_add(1, Ordering::Relaxed),
            shard,
            clock,
            links,
            versions: RefCell::new(vec![version]),
            key,
            handlers: RefCell::default(),
            drafts,
            restarts: RefCell::default(),
            inputs: RefCell::default(),
            pump: Cell::default(),
            fresh: Cell::default(),
            awaits_fresh: Cell::default(),
            activity: Cell::default(),
            pulse,
            sealed: Cell::default(),
        });
        CONTEXTS.with_borrow_mut(|contexts| {
            contexts.retain(|shard_context| shard_context.strong_count() > 0);
            contexts.push(Rc::downgrade(&shard_context));
        });
        shard_context
    }

    /// Finds the shard context of a handler, if this is the thread of its shard.
    pub(crate) fn here(token: u64) -> Option<Rc<Self>> {
        let find = |contexts: &RefCell<Vec<Weak<Self>>>| {
            contexts.borrow().iter().filter_map(Weak::upgrade).find(|shard_context| shard_context.token == token)
        };
        CONTEXTS.try_with(find).ok().flatten()
    }

    /// The blueprint of the present version, which knows the listeners of all versions by their ids.
    pub(crate) fn blueprint(&self) -> Ref<'_, Blueprint> {
        Ref::map(self.versions.borrow(), |versions| &*versions.last().expect("one is always present").blueprint)
    }

    /// The version that a listener belongs to.
    pub(crate) fn version_of(&self, listener: ListenerId) -> OrganismVersion {
        version_of(&self.versions.borrow(), listener).clone()
    }

    /// Adds a version, whose listeners live here from now on.
    pub(crate) fn add_version(&self, version: OrganismVersion) {
        self.versions.borrow_mut().push(version);
    }

    /// Forgets a version without conversations. Returns its listeners.
    pub(crate) fn forget_version(&self, version: Version) -> Vec<ListenerId> {
        let mut versions = self.versions.borrow_mut();
        let Some(at) = versions.iter().position(|known| known.blueprint.version() == version) else {
            return Vec::new();
        };
        versions.remove(at).blueprint.listeners().map(|(id, _)| id).collect()
    }

    /// Returns whether a core lives in this shard.
    pub(crate) fn is_here(&self, core: CoreId) -> bool {
        self.links.shard_of(core) == self.links.shard_of(self.shard)
    }

    /// Sends an input to a core.
    pub(crate) fn tell(&self, core: CoreId, input: Input) {
        if self.is_here(core) {
            self.inputs.borrow_mut().push_back((core, input));
            self.wake_pump();
        } else {
            self.links.send(core, Command::Core(input));
        }
    }

    /// Counts a failure of a listener of this shard. The rest behind it, or `None` if it starts again at once.
    pub(crate) fn failed(&self, listener: ListenerId) -> Option<Duration> {
        self.restarts.borrow_mut().entry(listener).or_default().failed()
    }

    /// Reports that a listener of this shard rests for a while, or is back: its slots are kept here.
    pub(crate) fn announce_rest(&self, listener: ListenerId, rest: Option<Duration>) {
        if let Some(rest) = rest {
            let name = &self.blueprint()[listener].name;
            tracing::error!(listener = %name, "a listener fails again and again: it rests for {rest:?}, and its messages wait");
            let (since, why) =
                (self.clock.now(), "it panics or ends again and again, and handles no message in between");
            self.links.rests.begin(name, Rest { since, until: since.after(rest), why: why.into() });
        }
        self.tell(self.shard, Input::ListenerRests { listener, rests: rest.is_some() });
    }

    /// Reports that nobody can answer the questions of a listener of this shard to the cores that use its instance here.
    pub(crate) fn announce_unattended(&self, listener: ListenerId) {
        if self.blueprint()[listener].stateless {
            return self.tell(self.shard, Input::ListenerUnattended { listener });
        }
        for shard in self.links.shards() {
            self.tell(shard, Input::ListenerUnattended { listener });
        }
    }

    /// Takes the next input for a core of this shard.
    pub(crate) fn next_input(&self) -> Option<(CoreId, Input)> {
        self.inputs.borrow_mut().pop_front()
    }

    /// Returns whether an input waits for the core.
    pub(crate) fn has_input(&self) -> bool {
        !self.inputs.borrow().is_empty()
    }

    /// Stores the waker of the idle pump.
    pub(crate) fn sleep(&self, pump: &Waker) {
        self.pump.set(Some(pump.clone()));
    }

    /// Wakes the pump.
    pub(crate) fn wake_pump(&self) {
        if let Some(pump) = self.pump.take() {
            pump.wake();
        }
    }

    /// Registers a handler, which its key finds from now on.
    pub(crate) fn enter(
        &self,
        origin: CoreId,
        invocation: InvocationId,
        listener: ListenerId,
        place: Place,
    ) -> HandlerKey {
        let can_park = self.blueprint()[listener].can_park;
        if matches!(place, Place::Host) {
            self.fresh.set(self.fresh.get() + 1);
        }
        self.handlers.borrow_mut().insert(origin, Handler::new(invocation, listener, place, can_park));
        self.key(origin, invocation)
    }

    /// Runs code of a listener: catches its panics, and shows the listener to the watchdog.
    pub(crate) fn run<R>(&self, listener: ListenerId, code: impl FnOnce() -> R) -> Result<R, Panicked> {
        self.pulse.run(listener, code)
    }

    /// Counts that something ran: a test on a simulated clock waits until the count stays.
    pub(crate) fn count_activity(&self) {
        self.activity.set(self.activity.get().wrapping_add(1));
    }

    /// Returns the count of everything that ran.
    #[cfg(feature = "testing")]
    pub(crate) fn activity(&self) -> u64 {
        self.activity.get()
    }

    /// Notes that a handler has begun to wait.
    ///
    /// The core doesn't count boot handlers when it reports whether it is idle; without this, calls of their first poll
    /// would be missed.
    pub(crate) fn begun(&self, key: HandlerKey) {
        if self.with(key, |handler| std::mem::take(&mut handler.fresh)) == Some(true) {
            self.one_less_fresh();
        }
    }

    fn one_less_fresh(&self) {
        self.fresh.set(self.fresh.get() - 1);
        if self.fresh.get() == 0 && self.awaits_fresh.take() {
            self.wake_pump();
        }
    }

    /// Returns whether handlers here have not run yet; the pump is woken when all have.
    pub(crate) fn awaits_first_steps(&self) -> bool {
        self.awaits_fresh.set(self.fresh.get() > 0);
        self.awaits_fresh.get()
    }

    /// Notes the place of a handler.
    pub(crate) fn moved(&self, key: HandlerKey, place: Place) {
        self.with(key, |handler| handler.place = place);
    }

    /// Notes that a handler holds its actor exclusively, so that it can't wait for answers.
    pub(crate) fn forbid_parking(&self, key: HandlerKey) {
        self.with(key, |handler| handler.can_park = false);
    }

    /// Reports the outcome of a handler. Only the first report of each counts.
    pub(crate) fn finish(&self, key: HandlerKey, outcome: HandlerOutcome) {
        let worked =
            matches!(outcome, HandlerOutcome::Emitted(_) | HandlerOutcome::Read(_) | HandlerOutcome::Failed(_));
        let ended = self.end(key, outcome).filter(|_| worked);
        if let Some(listener) = ended {
            self.restarts.borrow_mut().get_mut(&listener).into_iter().for_each(Restarts::worked);
        }
    }

    /// Ends a handler whose listener could not be made.
    pub(crate) fn give_up(&self, key: HandlerKey) {
        self.end(key, given_up());
    }

    /// Adds text to the draft of a handler of this shard; `false` if that has ended.
    pub(crate) fn draft(&self, key: HandlerKey, subject: DraftSubject, text: &str) -> bool {
        let known = self.with(key, |handler| (handler.listener, !std::mem::replace(&mut handler.drafts, true)));
        let Some((listener, begins)) = known else { return false };
        if !self.drafts.is_on() {
            return true;
        }
        if begins {
            self.tell(key.origin, Input::Drafted { invocation: key.invocation });
        }
        let source = || Arc::new(DraftSource { subject, listener: self.blueprint()[listener].name.clone() });
        self.drafts.write(key.run(), source, text);
        true
    }

    /// Ends the draft of a handler, which may begin another one.
    pub(crate) fn give_draft_up(&self, key: HandlerKey, end: DraftEnd) {
        if self.with(key, |handler| handler.drafts) == Some(true) {
            self.drafts.give_up(key.run(), end);
        }
    }

    /// Ends the draft of a handler that is over.
    pub(crate) fn draft_over(&self, core: CoreId, invocation: InvocationId, end: DraftEnd) {
        self.drafts.over(RunId { core, invocation }, end);
    }

    /// Takes a handler out, and tells its core. The listener, unless it was out already.
    fn end(&self, key: HandlerKey, outcome: HandlerOutcome) -> Option<ListenerId> {
        let handler = self.handlers.borrow_mut().remove(key.origin, key.invocation)?;
        if handler.fresh {
            self.one_less_fresh();
        }
        // Its message runs again. All else the core tells, once it has judged what the handler made.
        if handler.drafts && is_moving() {
            self.drafts.give_up(key.run(), DraftEnd::Retried);
        }
        if self.is_here(key.origin) {
            self.tell(key.origin, Input::Finished { invocation: key.invocation, outcome });
        } else {
            self.links.send(key.origin, Command::Finished { invocation: key.invocation, outcome });
        }
        Some(handler.listener)
    }

    /// Reports, after a poll that ended pending, that a handler waits for calls.
    pub(crate) fn settle(&self, key: HandlerKey) {
        let parks = |handler: &mut Handler| {
            let parked = std::mem::replace(&mut handler.parked, false);
            handler.parked = handler.awaits();
            handler.parked && !parked
        };
        if self.with(key, parks) == Some(true) {
            self.tell(key.origin, Input::Parked { invocation: key.invocation });
        }
    }

    /// Sends calls that a handler awaits.
    pub(crate) fn call(
        &self,
        key: HandlerKey,
        requests: Vec<Emission>,
        join: Join,
        within: Option<Duration>,
    ) -> Result<CallId, Fault> {
        let call = self.with(key, |handler| handler.can_park.then(|| handler.open()));
        let refused = |message: &str| Fault::new(FaultCode::Failed, message);
        let call =
            call.ok_or_else(|| refused("this handler has ended: it can't await an answer"))?.ok_or_else(|| {
                refused("this handler can't await an answer: it holds its actor or its thread exclusively")
            })?;
        self.tell(key.origin, Input::Called { invocation: key.invocation, call, requests, join, within });
        Ok(call)
    }

    /// Takes the result of calls, if it is decided; `None` if their handler has ended.
    pub(crate) fn poll_call(
        &self,
        key: HandlerKey,
        call: CallId,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Vec<Settled>, Fault>>> {
        self.with(key, |handler| handler.poll(call, cx)).unwrap_or(Poll::Ready(None))
    }

    /// Takes the next note of that name of the earlier runs of a handler.
    pub(crate) fn next_recorded<'n>(
        &self,
        key: HandlerKey,
        name: &str,
        before: &'n [NoteRecord],
    ) -> Option<&'n NoteRecord> {
        self.with(key, |handler| handler.next_recorded(name, before)).flatten()
    }

    /// Returns the index of a new note of a handler, `first` or behind it; `None` if the handler has ended.
    pub(crate) fn new_note(&self, key: HandlerKey, first: u32) -> Option<u32> {
        self.with(key, |handler| handler.new_note(first))
    }

    /// Sends a note of a handler to the journal.
    pub(crate) fn note(&self, key: HandlerKey, note: NoteRecord, answer: Option<Box<ModelAnswer>>) {
        let NoteRecord { index, name, value, .. } = note;
        if self.with(key, |handler| handler.note(index)).is_some() {
            self.tell(key.origin, Input::Noted { invocation: key.invocation, index, name, value, answer });
        }
    }

    /// Hands a note of a handler over with what a request of it used.
    #[cfg(feature = "gateway")]
    pub(crate) fn charge_with(&self, key: HandlerKey, note: NoteRecord, used: Amounts) {
        let NoteRecord { index, name, value, .. } = note;
        if self.with(key, |handler| handler.note(index)).is_some() {
            self.tell(key.origin, Input::Settled { invocation: key.invocation, index, name, value, used });
        }
    }

    /// Notes that the journal takes no further change: handlers that are dropped from now on are those of the next start.
    pub(crate) fn seal(&self) {
        self.sealed.set(true);
    }

    /// Returns whether the message of a handler that is dropped now runs again.
    #[cfg(feature = "gateway")]
    pub(crate) fn runs_again(&self) -> bool {
        self.sealed.get() || is_moving()
    }

    /// Hands over an input about a handler, unless that has ended.
    pub(crate) fn tell_of(&self, key: HandlerKey, input: Input) {
        if self.with(key, |_| ()).is_some() {
            self.tell(key.origin, input);
        }
    }

    /// Stops the time of a handler that its listener can't begin yet, or starts it again.
    pub(crate) fn stall(&self, key: HandlerKey, stalled: bool) {
        self.tell_of(key, Input::Stalled { invocation: key.invocation, stalled });
    }

    /// Polls whether a note is durable.
    pub(crate) fn poll_note(&self, key: HandlerKey, index: u32, cx: &mut Context<'_>) -> Poll<()> {
        self.with(key, |handler| handler.poll_note(index, cx)).unwrap_or(Poll::Ready(()))
    }

    /// Lets a handler wait for a reservation; `false` if it has ended.
    #[cfg(feature = "gateway")]
    pub(crate) fn reserves(&self, key: HandlerKey) -> bool {
        self.with(key, Handler::reserves).is_some()
    }

    /// Takes the result of a reservation.
    #[cfg(feature = "gateway")]
    pub(crate) fn poll_reserved(&self, key: HandlerKey, cx: &mut Context<'_>) -> Poll<Result<(), Box<Short>>> {
        self.with(key, |handler| handler.poll_reserved(cx)).unwrap_or(Poll::Ready(Ok(())))
    }

    /// Passes the result of a reservation to a handler of this shard.
    #[cfg(feature = "gateway")]
    pub(crate) fn reserved(&self, origin: CoreId, invocation: InvocationId, result: Result<(), Box<Short>>) {
        let key = self.key(origin, invocation);
        if let Some(waker) = self.with(key, |handler| handler.reserved(result)).flatten() {
            waker.wake();
        }
    }

    /// Drops calls.
    pub(crate) fn drop_call(&self, key: HandlerKey, call: CallId) {
        if self.with(key, |handler| handler.forget(call)) == Some(true) {
            self.tell(key.origin, Input::CallDropped { invocation: key.invocation, call });
        }
    }

    /// Passes the result of calls to a handler of this shard.
    pub(crate) fn resume(
        &self,
        origin: CoreId,
        invocation: InvocationId,
        call: CallId,
        result: Result<Vec<Settled>, Fault>,
    ) {
        let key = self.key(origin, invocation);
        match self.with(key, |handler| handler.decide(call, result)).flatten() {
            Some(waker) => waker.wake(),
            // The handler dropped this call in the meantime, but the core unparked it: it may wait for others.
            None => self.settle(key),
        }
    }

    /// Notes that a note of a handler of this shard is durable.
    pub(crate) fn noted(&self, origin: CoreId, invocation: InvocationId, index: u32) {
        let key = self.key(origin, invocation);
        if let Some(waker) = self.with(key, |handler| handler.noted(index)).flatten() {
            waker.wake();
        }
    }

    /// Returns the key of a handler.
    pub(crate) fn key(&self, origin: CoreId, invocation: InvocationId) -> HandlerKey {
        HandlerKey { shard_context: self.token, origin, invocation }
    }

    /// Returns the other shard that a handler of a core of this shard runs in, if any.
    pub(crate) fn away(&self, core: CoreId, invocation: InvocationId) -> Option<CoreId> {
        match self.handlers.borrow_mut().get(core, invocation)?.place {
            Place::Away(shard) => Some(shard),
            Place::Host | Place::Detached(_) => None,
        }
    }

    fn with<R>(&self, key: HandlerKey, f: impl FnOnce(&mut Handler) -> R) -> Option<R> {
        self.handlers.borrow_mut().get(key.origin, key.invocation).map(f)
    }
}
