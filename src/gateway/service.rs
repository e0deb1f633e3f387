//! The mailboxes of remote listeners at work: the machine of [`systole_core::mailbox`], the journal that its changes go into,
//! the handlers that wait for ends, and the readers that wait for messages.
//!
//! A request asks by [`MailboxService::act`] and awaits [`Acted::durable`]; dropping the request changes nothing. The
//! effects of a change happen when the change is durable, on the thread that made it so.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use systole_core::core::{Attachment, AttachmentEnd, DeadLetterError, ListenerId, OperationError, ReadAnswer};
use systole_core::journal::{ActRecord, JournalError, Number, Op, Recovered};
use systole_core::mailbox::{
    DeliveryMode, End, MailboxChange, MailboxInput, MailboxLimits, Mailboxes, Refused, Settlement,
};
use systole_core::vocab::{MessageId, Name, ThreadId, Time};
use tokio::sync::{Notify, mpsc, oneshot, watch};

use super::recovered_mail::RecoveredMail;
pub(super) use crate::runtime::Ending;
use crate::runtime::{ActedElsewhere, Drafter, Elsewhere, Following, JournalAppender, MailboxAct, Recoverable};
use crate::settings::Mode;
use systole_store::clock::Clock;

/// Mailboxes of all remote listeners of an organism, for any thread.
#[derive(Clone)]
pub struct MailboxService(Arc<Inner>);

struct Inner {
    modes: HashMap<Name, Mode>,
    machine: Mutex<Mailboxes>,
    /// The date at the start of the clock, as the machine knows it.
    dated: Mutex<Option<Time>>,
    /// Unset before the organism starts.
    appender: OnceLock<JournalAppender>,
    recovered_mail: RecoveredMail,
    /// Handlers that wait for the end of a message.
    handlers: Mutex<HashMap<MessageId, Waiting>>,
    /// Ends on their way into the journal, and requests that wait for them.
    settling: Mutex<HashMap<MessageId, Vec<oneshot::Sender<()>>>>,
    arrivals: HashMap<Name, Notify>,
    /// Notification that the next end of a lease may have changed.
    deadline: Notify,
    pushes: mpsc::UnboundedSender<Push>,
    pushed: Mutex<Option<mpsc::UnboundedReceiver<Push>>>,
    /// True once the organism ends.
    stopping: watch::Sender<bool>,
}

/// A handler that waits for the end of a message.
struct Waiting {
    tell: oneshot::Sender<Ended>,
    /// The listener that it belongs to, of whichever version.
    listener: ListenerId,
    drafter: Option<Drafter>,
}

/// End of a message, for its handler.
#[derive(Debug)]
pub(super) struct Ended {
    pub(super) settlement: Settlement,
    /// The reply as the judge has read it, so that the pump does not judge it again.
    pub(super) read: Option<ReadAnswer>,
    /// Changes that are written in the step that consumes the message.
    pub(super) attachment: Attachment,
}

/// News for the sender of pushed messages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Push {
    /// A listener may have a message to send.
    Wake(Name),
    /// The delivery of a message is cancelled.
    Withdraw(Name, MessageId),
    /// A message gets no attempt after the one in flight.
    Answered(Name, MessageId),
    /// The endpoint of a listener may have changed.
    Move(Name),
}

/// Effect of an input.
pub(super) struct Acted {
    pub(super) change: MailboxChange,
    durable: Vec<oneshot::Receiver<()>>,
}

/// Reason why an input had no effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ActError {
    Refused(Refused),
    Ending,
}

impl From<Ending> for ActError {
    fn from(_: Ending) -> Self {
        Self::Ending
    }
}

impl From<Refused> for ActError {
    fn from(refused: Refused) -> Self {
        Self::Refused(refused)
    }
}

impl Acted {
    /// Waits until the effect, and all that came before it, is durable.
    ///
    /// # Cancel safety
    /// Dropping it changes nothing.
    pub(super) async fn durable(&mut self) -> Result<(), Ending> {
        for durable in self.durable.drain(..) {
            durable.await.map_err(|_| Ending)?;
        }
        Ok(())
    }
}

impl MailboxService {
    /// Mailboxes for the listeners of these names.
    pub fn new(listeners: impl IntoIterator<Item = (Name, Mode)>) -> Self {
        let modes: HashMap<Name, Mode> = listeners.into_iter().collect();
        let delivery = |mode: &Mode| match mode {
            Mode::Push(_) => DeliveryMode::Pushed,
            Mode::Poll | Mode::Stream => DeliveryMode::Pulled,
        };
        let boxes = modes.iter().map(|(name, mode)| (name.clone(), delivery(mode)));
        let (pushes, pushed) = mpsc::unbounded_channel();
        Self(Arc::new(Inner {
            machine: Mutex::new(Mailboxes::new(boxes, MailboxLimits::default())),
            dated: Mutex::default(),
            appender: OnceLock::new(),
            recovered_mail: RecoveredMail::default(),
            handlers: Mutex::default(),
            settling: Mutex::default(),
            arrivals: modes.keys().map(|name| (name.clone(), Notify::new())).collect(),
            modes,
            deadline: Notify::new(),
            pushes,
            pushed: Mutex::new(Some(pushed)),
            stopping: watch::Sender::new(false),
        }))
    }

    /// The recoverable that recovers the mailboxes from the journal of an organism.
    pub(crate) fn recoverable(&self) -> Arc<dyn Recoverable> {
        self.0.clone()
    }

    /// Announces the end of the organism: all that wait get their answers.
    pub(super) fn stop(&self) {
        self.0.stopping.send_replace(true);
    }

    /// Waits for news, until a time or the end of the organism; true if there were any.
    pub(super) async fn await_news(&self, news: impl Future<Output = ()>, over: impl Future<Output = ()>) -> bool {
        tokio::select! {
            biased;
            () = news => true,
            () = self.stopping() => false,
            () = over => false,
        }
    }

    /// Waits until the end of the organism is announced.
    pub(super) fn stopping(&self) -> impl Future<Output = ()> + use<> {
        let mut stopping = self.0.stopping.subscribe();
        async move {
            // Without a sender it is over, too.
            let _ = stopping.wait_for(|stopping| *stopping).await;
        }
    }

    pub(super) fn is_stopping(&self) -> bool {
        *self.0.stopping.borrow() || self.is_sealed()
    }

    /// Returns whether nothing is written any more.
    pub(super) fn is_sealed(&self) -> bool {
        self.0.appender.get().is_some_and(JournalAppender::is_sealed)
    }

    /// Mode in which a mailbox is read; none if there is no such mailbox.
    pub(super) fn mode(&self, name: &Name) -> Option<&Mode> {
        self.0.modes.get(name)
    }

    pub(super) fn modes(&self) -> impl Iterator<Item = (&Name, &Mode)> {
        self.0.modes.iter()
    }

    pub(super) fn is_pushed(&self, name: &Name) -> bool {
        matches!(self.mode(name), Some(Mode::Push(_)))
    }

    /// The notification of a mailbox: a message can be read, or leased.
    pub(super) fn arrivals(&self, name: &Name) -> Option<&Notify> {
        self.0.arrivals.get(name)
    }

    /// The news of pushed messages; `None` for all callers but the first.
    pub(super) fn pushes(&self) -> Option<mpsc::UnboundedReceiver<Push>> {
        lock(&self.0.pushed).take()
    }

    /// Reads the state of the machine.
    pub(super) fn look<T>(&self, look: impl FnOnce(&Mailboxes) -> T) -> T {
        look(&lock(&self.0.machine))
    }

    /// Ends of messages that are on their way into the journal, whether or not a request waits for them.
    pub(super) fn waiters(&self) -> usize {
        lock(&self.0.settling).len()
    }

    /// The time of the organism; the epoch before it starts.
    pub(super) fn now(&self) -> Time {
        self.0.appender.get().map(JournalAppender::now).unwrap_or_default()
    }

    /// The clock of the organism.
    pub(super) fn clock(&self) -> Option<&Clock> {
        self.0.appender.get().map(JournalAppender::clock)
    }

    /// Gives an input to the machine, and hands its changes over to the journal and to waiting handlers.
    ///
    /// # Errors
    /// [`ActError`]: nothing has changed.
    pub(super) fn act(&self, input: MailboxInput) -> Result<Acted, ActError> {
        self.0.act(input, None, None)
    }

    /// Acts as [`act`](Self::act), for an operator if there is a record: that is written with the changes, if there are any.
    ///
    /// # Errors
    /// As [`act`](Self::act).
    pub(super) fn operate(&self, input: MailboxInput, record: Option<ActRecord>) -> Result<Acted, ActError> {
        self.0.act(input, None, record)
    }

    /// Settles a message: like [`act`](Self::act), with the reply as the judge has read it.
    pub(super) fn settle(
        &self,
        id: MessageId,
        settlement: Settlement,
        read: Option<ReadAnswer>,
    ) -> Result<Acted, ActError> {
        self.0.act(MailboxInput::Settle { id, settlement }, read, None)
    }

    /// Expires leases; runs until the future is dropped.
    pub(super) async fn lapse(self) {
        loop {
            let changed = self.0.deadline.notified();
            let next = self.look(Mailboxes::next_deadline);
            let left = next.zip(self.clock()).map_or(Duration::MAX, |(next, clock)| clock.until(next));
            // The earlier of the two: the machine checks the time at any input.
            if tokio::time::timeout(left, changed).await.is_err() {
                // The organism may have ended.
                drop(self.act(MailboxInput::Tick));
            }
        }
    }

    /// Puts a message into the mailbox of its listener; the receiver gets the end of the message.
    pub(super) fn arrive(
        &self,
        mail: systole_core::journal::MailRecord,
        listener: ListenerId,
        drafter: Option<Drafter>,
    ) -> Result<oneshot::Receiver<Ended>, ActError> {
        let id = mail.id;
        let (tell, told) = oneshot::channel();
        lock(&self.0.handlers).insert(id, Waiting { tell, listener, drafter });
        match self.act(MailboxInput::Arrived(mail)) {
            Ok(_) => Ok(told),
            Err(error) => {
                lock(&self.0.handlers).remove(&id);
                Err(error)
            }
        }
    }

    /// The listener whose handler waits for the end of a message: its version judges the answer.
    pub(super) fn listener_of(&self, id: MessageId) -> Option<ListenerId> {
        lock(&self.0.handlers).get(&id).map(|waiting| waiting.listener)
    }

    /// The way to the draft of a message whose handler waits for its end.
    pub(super) fn drafter(&self, id: MessageId) -> Option<Drafter> {
        lock(&self.0.handlers).get(&id).and_then(|waiting| waiting.drafter.clone())
    }

    /// Deregisters a dropped handler. An end that the handler got and did not pass on is written without it.
    pub(super) fn leave(&self, id: MessageId, mut told: oneshot::Receiver<Ended>) {
        lock(&self.0.handlers).remove(&id);
        told.close();
        let Some(appender) = self.0.appender.get() else { return };
        match told.try_recv() {
            Ok(ended) if appender.runs_again() => appender.drop_attached(ended.attachment),
            Ok(ended) => appender.append_attached(ended.attachment),
            Err(_) if appender.runs_again() => drop(self.act(MailboxInput::Moved { id })),
            // Refused if the organism ends: its next start runs the message again.
            Err(_) => drop(self.act(MailboxInput::Abandoned { id })),
        }
    }

    /// Appends changes that a handler could not attach to its end.
    pub(super) fn append_attached(&self, attachment: Attachment) {
        if let Some(appender) = self.0.appender.get() {
            appender.append_attached(attachment);
        }
    }

    /// Mailbox and thread of a message that the machine still knows.
    pub(super) fn place_of(&self, id: MessageId) -> Option<(Name, ThreadId)> {
        self.look(|machine| machine.place_of(id).map(|(name, thread)| (name.clone(), thread)))
    }
}

impl Elsewhere for MailboxService {
    fn act(&self, mailbox: &Name, act: MailboxAct, record: ActRecord) -> Option<ActedElsewhere> {
        self.mode(mailbox)?;
        let name = mailbox.clone();
        let (input, is_of_letter) = match act {
            MailboxAct::Pause => (MailboxInput::Pause { name }, false),
            MailboxAct::Resume => (MailboxInput::Resume { name }, false),
            MailboxAct::Redrive(id) => (MailboxInput::Redrive { mailbox: name, id: Some(id) }, true),
            MailboxAct::Discard(id) => (MailboxInput::Discard { mailbox: name, id: Some(id) }, true),
        };
        let acted = self.operate(input, Some(record));
        Some(Box::pin(async move {
            // The mailbox is there, so nothing but an end refuses it.
            let mut acted = acted.map_err(|_| OperationError::Closed)?;
            acted.durable().await.map_err(|Ending| OperationError::Closed)?;
            if is_of_letter && acted.change.count == 0 { Err(DeadLetterError::Unknown.into()) } else { Ok(()) }
        }))
    }

    fn paused_since(&self, listener: &Name) -> Option<Time> {
        self.look(|machine| machine.paused_since(listener))
    }

    fn names(&self) -> Vec<Name> {
        self.0.modes.keys().cloned().collect()
    }
}

impl Inner {
    fn act(
        self: &Arc<Self>,
        input: MailboxInput,
        mut read: Option<ReadAnswer>,
        record: Option<ActRecord>,
    ) -> Result<Acted, ActError> {
        let appender = self.appender.get().filter(|appender| !appender.is_sealed()).ok_or(Ending)?;
        let asked = about(&input);
        let moved = match &input {
            MailboxInput::Register { name, .. } => Some(name.clone()),
            _ => None,
        };
        let mut machine = lock(&self.machine);
        let before = machine.next_deadline();
        let now = self.follow_date(&mut machine, appender.clock());
        let (mut change, done) = machine.handle(input, now);
        let mut durable = Vec::new();
        if let Some(record) = record
            && done.is_ok()
            && !change.ops.is_empty()
        {
            change.ops.push(Op::Acted(record));
        }
        let ends = std::mem::take(&mut change.ends);
        let ended_here = ends.iter().any(|end| Some(end.id) == asked);
        for end in ends {
            let read = if Some(end.id) == asked { read.take() } else { None };
            self.conclude(appender, end, read, Some(&mut durable).filter(|_| done.is_ok()));
        }
        // A repeated end is acknowledged when the first one is durable.
        let same = asked.filter(|_| change.repeated).and_then(|id| {
            let (tell, told) = oneshot::channel();
            lock(&self.settling).get_mut(&id)?.push(tell);
            Some(told)
        });
        let writes = !change.ops.is_empty() || !(ended_here || same.is_some());
        durable.extend(same);
        let told = writes.then(|| {
            let (tell, told) = oneshot::channel();
            let ops = std::mem::take(&mut change.ops);
            let (wakes, ended) = (std::mem::take(&mut change.wakes), change.ended.clone());
            let inner = self.clone();
            // Handed over while the machine is locked: so changes are written in the order in which they were made. If it
            // is refused, `tell` is dropped, and the request learns that.
            let _ = appender.append(
                ops,
                Box::new(move || {
                    inner.wake(&wakes);
                    inner.forget(&ended);
                    // The request may have been dropped.
                    let _ = tell.send(());
                }),
            );
            told
        });
        let after = machine.next_deadline();
        drop(machine);
        if after != before {
            self.deadline.notify_one();
        }
        self.tell(change.withdrawn.drain(..).map(|(name, id)| Push::Withdraw(name, id)));
        self.tell(change.answered.drain(..).map(|(name, id)| Push::Answered(name, id)));
        self.tell(moved.filter(|_| done.is_ok()).map(Push::Move));
        durable.extend(told);
        done?;
        Ok(Acted { change, durable })
    }

    /// Returns the time. If the date was set, the machine learns that before.
    fn follow_date(&self, machine: &mut Mailboxes, clock: &Clock) -> Time {
        // The clock looks at the date when it is read.
        let now = clock.now();
        let start = clock.start();
        if let Some(before) = lock(&self.dated).replace(start).filter(|before| *before != start) {
            machine.clock_set(before, start);
        }
        now
    }

    /// Hands the end of a message to its handler, or appends it where the handler was dropped.
    fn conclude(
        self: &Arc<Self>,
        appender: &JournalAppender,
        end: End,
        read: Option<ReadAnswer>,
        durable: Option<&mut Vec<oneshot::Receiver<()>>>,
    ) {
        let End { id, settlement, ops } = end;
        let mut waiters = Vec::new();
        if let Some(durable) = durable {
            let (tell, told) = oneshot::channel();
            waiters.push(tell);
            durable.push(told);
        }
        lock(&self.settling).insert(id, waiters);
        let inner = self.clone();
        let attachment = appender.attach(ops, move |end| inner.settled(id, end != AttachmentEnd::Dropped));
        let handler = lock(&self.handlers).remove(&id);
        let unsent = match handler {
            Some(handler) => handler.tell.send(Ended { settlement, read, attachment }).err(),
            None => Some(Ended { settlement, read, attachment }),
        };
        if let Some(Ended { attachment, .. }) = unsent {
            appender.append_attached(attachment);
        }
    }

    /// Acknowledges the end of a message once its step is durable (`taken`), or fails the requests that wait for it: then
    /// the end has not happened, and the message runs again.
    fn settled(self: &Arc<Self>, id: MessageId, taken: bool) {
        let waiters = lock(&self.settling).remove(&id).unwrap_or_default();
        if taken {
            self.forget(&[id]);
            for tell in waiters {
                // A request may have been dropped.
                let _ = tell.send(());
            }
        } else {
            // Refused if the organism ends.
            drop(self.act(MailboxInput::Moved { id }, None, None));
        }
    }

    fn forget(&self, ended: &[MessageId]) {
        if !ended.is_empty() {
            let mut machine = lock(&self.machine);
            for &id in ended {
                let (change, _) = machine.handle(MailboxInput::Durable { id }, Time::default());
                debug_assert!(change.ops.is_empty());
            }
        }
    }

    fn wake(&self, names: &[Name]) {
        for name in names {
            if let Some(arrivals) = self.arrivals.get(name) {
                arrivals.notify_waiters();
            }
            if matches!(self.modes.get(name), Some(Mode::Push(_))) {
                self.tell([Push::Wake(name.clone())]);
            }
        }
    }

    fn tell(&self, news: impl IntoIterator<Item = Push>) {
        for push in news {
            // The receiver is gone once the gateway has ended.
            let _ = self.pushes.send(push);
        }
    }

    fn hand_over(&self, ops: Vec<Op>, told: impl FnOnce() + Send + 'static) {
        if let Some(appender) = self.appender.get() {
            // At a start nothing is sealed.
            let _ = appender.append(ops, Box::new(told));
        }
    }
}

impl Recoverable for Inner {
    fn move_in(self: Arc<Self>, recovered: &Recovered, appender: JournalAppender) -> Result<(), JournalError> {
        let change = lock(&self.machine).recover(recovered, appender.now());
        self.take_over(recovered);
        // An organism starts once.
        let _ = self.appender.set(appender);
        let (inner, ended) = (self.clone(), change.ended);
        if !change.ops.is_empty() {
            self.hand_over(change.ops, move || inner.forget(&ended));
        }
        Ok(())
    }

    fn take_over(&self, recovered: &Recovered) {
        let machine = lock(&self.machine);
        self.recovered_mail.add(recovered, |id| machine.expects(id));
    }

    fn follow(self: Arc<Self>, ops: &[Op]) -> Option<Following> {
        let over = self.recovered_mail.over(ops);
        (!over.is_empty()).then(|| -> Following {
            Box::new(move || {
                for id in over {
                    // No handler waits for the message: one that had it was deregistered.
                    let _ = self.act(MailboxInput::Abandoned { id }, None, None);
                }
            })
        })
    }
}

/// Message that an input is about.
fn about(input: &MailboxInput) -> Option<MessageId> {
    match input {
        MailboxInput::Settle { id, .. } | MailboxInput::Acknowledge { id, .. } | MailboxInput::Handle { id, .. } => {
            Some(*id)
        }
        _ => None,
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Sequence number of a message that has none yet: the machine assigns it.
pub(super) const UNPLACED: Number = 0;

impl std::fmt::Debug for MailboxService {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("MailboxService").field("names", &self.0.modes.keys()).finish_non_exhaustive()
    }
}
