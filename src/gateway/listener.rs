use std::rc::Rc;

use super::mailboxes::Mailboxes;
use super::push::Order;
use super::store::{Item, Put, Settlement, State};
use crate::core::{Body, Failure, Message, Outcome};
use crate::ladder::{Meta, Raw, write_envelope};
use crate::protocol::write_fault;
use crate::shell::{LocalBoxFuture, RawListener, RunContext};
use crate::vocab::{MessageId, Name, Time};

/// A listener that is elsewhere: each of its messages waits in its mailbox until somebody answers there.
///
/// What was answered is judged like anything that a listener emits. After a crash the pump runs the same message again
/// and finds it in the mailbox, maybe with its answer.
#[derive(Debug, Clone)]
pub struct RemoteListener {
    mailboxes: Mailboxes,
}

impl RemoteListener {
    /// A listener whose mailbox is among these, under the name of its contract.
    pub fn new(mailboxes: Mailboxes) -> Self {
        Self { mailboxes }
    }

    async fn answer(&self, item: Item) -> Outcome {
        let (id, bytes) = (item.id, item.envelope.len());
        if !self.mailboxes.take(&item.mailbox, bytes) {
            let cap = self.mailboxes.caps().mailbox_bytes;
            return failed(format!("the mailbox of {} is full: {cap} bytes wait in it", item.mailbox));
        }
        let told = self.mailboxes.await_end(id);
        let mut stay = Stay { mailboxes: &self.mailboxes, name: item.mailbox.clone(), id, bytes, over: false };
        let settled = match self.mailboxes.store().put(item).await {
            Ok(Put::Settled(settled)) => Ok(settled),
            Ok(Put::Waits) => {
                self.mailboxes.ring(&stay.name);
                self.mailboxes.order(&stay.name, Order::Push(id));
                told.await.map_err(|_| "the mailbox was closed".to_owned())
            }
            Err(error) => Err(error.to_string()),
        };
        stay.over = true;
        match settled {
            Ok(Settlement::Reply(bytes)) => Outcome::Wrote(Raw::new(bytes)),
            Ok(Settlement::Fail(why)) => failed(why),
            Ok(Settlement::Silent) => Outcome::Emitted(Vec::new()),
            Err(why) => failed(why),
        }
    }
}

impl RawListener for RemoteListener {
    fn run(self: Rc<Self>, message: Message, context: RunContext) -> LocalBoxFuture<Outcome> {
        let item = item(&message, context.contract().name.clone(), self.mailboxes.clock().now());
        Box::pin(async move { self.answer(item).await })
    }
}

/// A message while its handler waits. If the handler is dropped, nobody waits for its answer any more, unless the
/// organism itself ends.
struct Stay<'a> {
    mailboxes: &'a Mailboxes,
    name: Name,
    id: MessageId,
    bytes: usize,
    over: bool,
}

impl Drop for Stay<'_> {
    fn drop(&mut self) {
        self.mailboxes.give_back(&self.name, self.bytes);
        self.mailboxes.forget(self.id);
        if !self.over && !self.mailboxes.is_stopping() {
            self.mailboxes.store().abandon(self.id, self.mailboxes.clock().now());
            self.mailboxes.order(&self.name, Order::Abandon(self.id));
        }
    }
}

fn item(message: &Message, mailbox: Name, now: Time) -> Item {
    let payload = match &message.body {
        Body::Payload { payload, .. } => payload.payload().clone(),
        Body::Fault(fault) => write_fault(fault),
    };
    let meta = Meta {
        from: message.from.clone(),
        to: Some(mailbox.clone()),
        thread: message.thread,
        id: message.id,
        in_reply_to: message.in_reply_to.map(|id| id.to_string()),
        deadline: message.deadline.filter(|deadline| *deadline < Time::MAX),
        traceparent: message.traceparent.as_deref().map(str::to_owned),
    };
    let envelope = write_envelope(&meta, &payload);
    Item {
        seq: 0,
        mailbox,
        id: message.id,
        thread: message.thread,
        from: message.from.to_string(),
        in_reply_to: message.in_reply_to,
        payload: payload.root().to_string(),
        envelope: String::from_utf8_lossy(&envelope).into_owned(),
        at: now,
        state: State::Waiting,
        deliveries: 0,
        due: Time::default(),
        error: None,
    }
}

fn failed(why: String) -> Outcome {
    Outcome::Failed(Failure { message: why.into(), fault: None })
}
