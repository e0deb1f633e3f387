//! Messages on their way to listeners that are pushed to.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Notify, mpsc, watch};
use tokio::task::{AbortHandle, Id, JoinError, JoinSet};

use super::Order;
use super::answer::{Verdict, judge};
use super::places::{Places, PushError, outbox};
use crate::gateway::mailboxes::Mailboxes;
use crate::gateway::store::{Item, Settled, Settlement, State as ItemState, StoreError, TAKEN};
use crate::outbound::{Cause, DeliveryError, Handle, Outbound, OutboxError, Outcome, State};
use crate::shell::config::Journaled;
use crate::vocab::{MessageId, Name};

/// How long what runs may take once the gateway ends.
const GRACE: Duration = Duration::from_secs(2);

/// Sees to it that messages are pushed.
pub(in crate::gateway) struct Pusher {
    lane: Arc<Lane>,
    places: Places,
    orders: mpsc::UnboundedReceiver<Order>,
    /// What is under way, by its place in its mailbox.
    open: HashMap<MessageId, Course>,
    watches: JoinSet<MessageId>,
}

/// What all messages share.
struct Lane {
    mailboxes: Mailboxes,
    outbound: Outbound,
}

/// A message under way.
struct Course {
    mailbox: Name,
    seq: u64,
    watch: AbortHandle,
    /// It was answered otherwise.
    answered: Arc<Notify>,
    /// It was to be pushed once more while it was.
    again: bool,
}

/// Why a message can't be seen to at the moment; the next start does.
#[derive(Debug, thiserror::Error)]
enum Stuck {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Outbox(#[from] OutboxError),
}

impl Pusher {
    /// Opens the outbox beside a journal, which goes on at once with what waits in it. It runs on the tokio runtime that
    /// this is called in. Answers may have that many bytes.
    pub(in crate::gateway) async fn start(
        mailboxes: &Mailboxes,
        mut places: Places,
        journal: &Journaled,
        answer: usize,
    ) -> Result<Self, PushError> {
        places.registered(mailboxes).await?;
        let file: &Path = &journal.file;
        let outbound = Outbound::start(&outbox(file), places.options(journal, answer)).await?;
        let lane = Arc::new(Lane { mailboxes: mailboxes.clone(), outbound });
        let orders = mailboxes.ordered().unwrap_or_else(|| mpsc::unbounded_channel().1);
        let pusher = Self { lane, places, orders, open: HashMap::new(), watches: JoinSet::new() };
        pusher.stop_stray().await?;
        Ok(pusher)
    }

    /// What deliveries are sent by.
    pub(in crate::gateway) fn outbound(&self) -> Outbound {
        self.lane.outbound.clone()
    }

    /// Pushes until it is told to end; what is left then waits for the next start.
    pub(in crate::gateway) async fn run(mut self, mut end: watch::Receiver<bool>) {
        if let Err(error) = self.resume().await {
            tracing::error!(%error, "what waits to be pushed can't be read: it goes on at the next start");
        }
        loop {
            tokio::select! {
                () = async { drop(end.wait_for(|end| *end).await) } => break,
                Some(order) = self.orders.recv() => self.obey(order).await,
                Some(ended) = self.watches.join_next_with_id() => self.ended(ended).await,
            }
        }
        self.lane.outbound.close(GRACE).await;
        // What ended meanwhile is written down.
        while self.watches.join_next().await.is_some() {}
    }

    /// Ends deliveries of an earlier run whose message has ended, or whose listener is none that is pushed to.
    async fn stop_stray(&self) -> Result<(), PushError> {
        let Lane { mailboxes, outbound } = &*self.lane;
        for id in outbound.open().await? {
            let item = mailboxes.store().item(id).await?.map(|(item, _)| item);
            let wanted =
                |item: &Item| item.state == ItemState::Waiting && self.places.names().any(|name| *name == item.mailbox);
            if !item.as_ref().is_some_and(wanted) {
                outbound.cancel(id).await?;
            }
        }
        Ok(())
    }

    /// Takes what came before this ran, and what an earlier run was to push once more.
    async fn resume(&mut self) -> Result<(), StoreError> {
        let names: Vec<Name> = self.places.names().cloned().collect();
        for name in names {
            for id in self.lane.mailboxes.store().awaited(name).await? {
                self.obey(Order::Push(id)).await;
            }
        }
        Ok(())
    }

    async fn obey(&mut self, order: Order) {
        let done = match order {
            Order::Push(id) => match self.open.get_mut(&id) {
                Some(course) => {
                    course.again = true;
                    Ok(())
                }
                None => self.take(id).await,
            },
            Order::Answered(id) => {
                self.open.get(&id).iter().for_each(|course| course.answered.notify_one());
                Ok(())
            }
            Order::Abandon(id) => self.lane.outbound.cancel(id).await.map(drop).map_err(Stuck::from),
            Order::Move(name, url) => match self.places.go(&name, url) {
                true => self.redirect(&name).await,
                false => Ok(()),
            },
        };
        if let Err(error) = done {
            tracing::error!(%error, "a message can't be pushed: it waits for the next start");
        }
    }

    /// Sends a message, unless it was.
    async fn take(&mut self, id: MessageId) -> Result<(), Stuck> {
        let Lane { mailboxes, outbound } = &*self.lane;
        let Some((item, _)) = mailboxes.store().item(id).await? else { return Ok(()) };
        if item.state != ItemState::Waiting || item.due == TAKEN {
            return Ok(());
        }
        match outbound.report(id).await?.and_then(|report| report.outcome) {
            // It was stopped, and is wanted again.
            Some(Err(undelivered)) if undelivered.cause == Cause::Cancelled => drop(outbound.forget(id).await?),
            Some(outcome) => return Ok(self.lane.end(id, outcome).await?),
            None => {}
        }
        match self.send(&item).await {
            Ok(Some(handle)) => self.follow(&item, handle),
            Ok(None) => {}
            Err(DeliveryError::Outbox(error)) => return Err(error.into()),
            Err(refused) => self.lane.settle(id, Settlement::Fail(refused.to_string())).await?,
        }
        Ok(())
    }

    /// Gives a message to the outbox. One that is there with another place or without a signature is sent anew.
    async fn send(&self, item: &Item) -> Result<Option<Handle>, DeliveryError> {
        let outbound = &self.lane.outbound;
        let Some(delivery) = self.places.delivery(&item.mailbox, item.id, item.envelope.clone()) else {
            return Ok(None);
        };
        match outbound.send(delivery.clone()).await {
            Err(DeliveryError::IdTaken { id }) => {
                outbound.cancel(id).await?;
                outbound.forget(id).await?;
                outbound.send(delivery).await.map(Some)
            }
            sent => sent.map(Some),
        }
    }

    fn follow(&mut self, item: &Item, handle: Handle) {
        let answered = Arc::new(Notify::new());
        let watch = self.watches.spawn(self.lane.clone().watch(item.id, handle, answered.clone()));
        let course = Course { mailbox: item.mailbox.clone(), seq: item.seq, watch, answered, again: false };
        self.open.insert(item.id, course);
    }

    /// Sends what is open to the place where its listener is now.
    async fn redirect(&mut self, name: &Name) -> Result<(), Stuck> {
        let mut open: Vec<(u64, MessageId)> = self
            .open
            .iter()
            .filter(|(_, course)| course.mailbox == *name)
            .map(|(id, course)| (course.seq, *id))
            .collect();
        open.sort_unstable();
        // What failed was the place that it left.
        self.lane.outbound.close_circuit(name);
        for (_, id) in open {
            // One that ends at this moment has its end.
            if self.lane.outbound.cancel(id).await? {
                if let Some(course) = self.open.remove(&id) {
                    course.watch.abort();
                }
                self.take(id).await?;
            }
        }
        Ok(())
    }

    async fn ended(&mut self, ended: Result<(Id, MessageId), JoinError>) {
        // One that was aborted is not open any more, or was opened anew.
        let Ok((task, id)) = ended else { return };
        let Some(again) = self.open.get(&id).filter(|course| course.watch.id() == task).map(|course| course.again)
        else {
            return;
        };
        self.open.remove(&id);
        if again {
            self.obey(Order::Push(id)).await;
        }
    }
}

impl Lane {
    /// Follows a delivery to its end, and tells how far it has come.
    async fn watch(self: Arc<Self>, id: MessageId, handle: Handle, answered: Arc<Notify>) -> MessageId {
        if let Err(error) = self.try_watch(id, handle, &answered).await {
            tracing::error!(%error, "what came of a push can't be written down: it is told at the next start");
        }
        id
    }

    async fn try_watch(&self, id: MessageId, mut handle: Handle, answered: &Notify) -> Result<(), Stuck> {
        let (mut seen, mut over) = (State::Waiting, false);
        loop {
            let busy = matches!(seen, State::Attempting { .. });
            if over && !busy {
                self.outbound.cancel(id).await?;
                return Ok(());
            }
            tokio::select! {
                state = handle.wait_for(|state| *state != seen) => match state {
                    // The next start goes on.
                    Err(_) => return Ok(()),
                    Ok(state) => seen = state,
                },
                () = answered.notified() => {
                    over = true;
                    continue;
                }
            }
            match &seen {
                State::Waiting => {}
                State::Attempting { attempt } => self.mailboxes.store().attempted(id, *attempt, None).await?,
                State::BackingOff { attempts, error, .. } => {
                    self.mailboxes.store().attempted(id, *attempts, Some(error.clone())).await?;
                }
                State::Settled(outcome) => return Ok(self.end(id, outcome.clone()).await?),
            }
        }
    }

    /// A delivery has ended.
    async fn end(&self, id: MessageId, outcome: Outcome) -> Result<(), StoreError> {
        let store = self.mailboxes.store();
        if let Ok(Some(report)) = self.outbound.report(id).await {
            store.attempted(id, report.attempts, None).await?;
        }
        match judge(outcome) {
            Verdict::End(with) => self.settle(id, with).await,
            Verdict::Awaits => store.taken(id).await,
            Verdict::Leave => Ok(()),
        }
    }

    /// Ends a message, unless somebody else did.
    async fn settle(&self, id: MessageId, with: Settlement) -> Result<(), StoreError> {
        let now = self.mailboxes.clock().now();
        if let Settled::Done(_) = self.mailboxes.store().settle(id, with.clone(), now).await? {
            self.mailboxes.end(id, with);
        }
        Ok(())
    }
}
