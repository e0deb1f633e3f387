//! Messages on their way to listeners that are pushed to.

use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Notify, mpsc, watch};
use tokio::task::{AbortHandle, Id, JoinError, JoinSet};

use super::Order;
use super::lane::{Lane, Stuck};
use super::places::{Places, PushError, outbox};
use crate::gateway::mailboxes::Mailboxes;
use crate::gateway::store::{Item, Settlement, State, StoreError, TAKEN};
use crate::outbound::{Cause, DeliveryError, Handle, Outbound};
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
    /// Listeners that rest.
    resting: HashSet<Name>,
}

/// A message under way.
struct Course {
    mailbox: Name,
    seq: u64,
    watch: AbortHandle,
    /// It is not to be sent any more.
    enough: Arc<Notify>,
    /// It was to be pushed once more while it was.
    again: bool,
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
        let mut resting = HashSet::new();
        for name in places.names() {
            if mailboxes.store().is_paused(name.clone()).await? {
                resting.insert(name.clone());
            }
        }
        let pusher = Self { lane, places, orders, open: HashMap::new(), watches: JoinSet::new(), resting };
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

    /// Ends deliveries of an earlier run whose message has ended, or whose listener is none that is pushed to, or rests.
    async fn stop_stray(&self) -> Result<(), PushError> {
        let Lane { mailboxes, outbound } = &*self.lane;
        for id in outbound.open().await? {
            let item = mailboxes.store().item(id).await?.map(|(item, _)| item);
            let pushed = |name: &Name| self.places.names().any(|known| known == name) && !self.resting.contains(name);
            let wanted = |item: &Item| item.state == State::Waiting && pushed(&item.mailbox);
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
            self.push_all(name).await?;
        }
        Ok(())
    }

    async fn push_all(&mut self, name: Name) -> Result<(), StoreError> {
        for id in self.lane.mailboxes.store().awaited(name).await? {
            self.push(id).await;
        }
        Ok(())
    }

    /// Sends a message, now or after what is under way with it.
    async fn push(&mut self, id: MessageId) {
        let done = match self.open.get_mut(&id) {
            Some(course) => {
                course.again = true;
                Ok(())
            }
            None => self.take(id).await,
        };
        note(done);
    }

    async fn obey(&mut self, order: Order) {
        let done = match order {
            Order::Push(id) => return self.push(id).await,
            Order::Answered(id) => {
                self.open.get(&id).iter().for_each(|course| course.enough.notify_one());
                Ok(())
            }
            Order::Presence(name) => self.rest_or_work(name).await,
            Order::Abandon(id) => self.lane.outbound.cancel(id).await.map(drop).map_err(Stuck::from),
            Order::Move(name, url) => match self.places.go(&name, url) {
                true => self.redirect(&name).await,
                false => Ok(()),
            },
        };
        note(done);
    }

    /// Sends a message, unless it was, or its listener rests.
    async fn take(&mut self, id: MessageId) -> Result<(), Stuck> {
        let Lane { mailboxes, outbound } = &*self.lane;
        let Some((item, _)) = mailboxes.store().item(id).await? else { return Ok(()) };
        if item.state != State::Waiting || item.due == TAKEN || self.resting.contains(&item.mailbox) {
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
        let enough = Arc::new(Notify::new());
        let watch = self.watches.spawn(self.lane.clone().watch(item.id, handle, enough.clone()));
        let course = Course { mailbox: item.mailbox.clone(), seq: item.seq, watch, enough, again: false };
        self.open.insert(item.id, course);
    }

    /// Does as a listener is told now, whatever it was told before.
    async fn rest_or_work(&mut self, name: Name) -> Result<(), Stuck> {
        if !self.lane.mailboxes.store().is_paused(name.clone()).await? {
            return if self.resting.remove(&name) { Ok(self.push_all(name).await?) } else { Ok(()) };
        }
        for course in self.open.values_mut().filter(|course| course.mailbox == name) {
            // What it has at this moment it may answer.
            course.again = false;
            course.enough.notify_one();
        }
        self.resting.insert(name);
        Ok(())
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
            self.push(id).await;
        }
    }
}

fn note(done: Result<(), Stuck>) {
    if let Err(error) = done {
        tracing::error!(%error, "a message can't be pushed: it waits for the next start");
    }
}
