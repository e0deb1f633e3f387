//! The handler of a remote listener: its messages wait in a mailbox for the answers of an agent.

use std::rc::Rc;
use std::sync::Arc;

use systole_core::core::{Failure, HandlerOutcome, ListenerId, Message};
use systole_core::journal::MailRecord;
use systole_core::mailbox::{Refused, Settlement};
use systole_core::vocab::{MessageId, Name, Time};
use systole_xml::ladder::{Meta, Raw, write_envelope};
use tokio::sync::oneshot;

use super::service::{ActError, Ended, MailboxService, UNPLACED};
use crate::runtime::{LocalBoxFuture, RawListener, RunContext, Thread};

/// A listener that is elsewhere: each of its messages waits in its mailbox until the listener answers there.
///
/// The answer is judged like any emission, and is durable in the same step as its effects. After a crash the pump runs
/// a message without an answer again, and finds it in the mailbox.
#[derive(Debug, Clone)]
pub struct RemoteListener {
    mailboxes: MailboxService,
}

impl RemoteListener {
    /// Makes a listener whose mailbox is among these, under the name of its contract.
    pub fn new(mailboxes: MailboxService) -> Self {
        Self { mailboxes }
    }

    async fn answer(&self, mail: MailRecord, listener: ListenerId, thread: Thread) -> HandlerOutcome {
        let (id, name) = (mail.id, mail.mailbox.clone());
        let told = match self.mailboxes.arrive(mail, listener, thread.drafter()) {
            Ok(told) => told,
            Err(ActError::Refused(Refused::Full(cap))) => {
                return failed(format!("the mailbox of {name} is full: {cap} bytes wait in it"));
            }
            Err(_) => return failed(format!("the mailbox of {name} takes no messages")),
        };
        let mut waiting = WaitingMail { mailboxes: &self.mailboxes, id, told: Some(told) };
        let Some(Ended { settlement, read, attachment }) = waiting.ended().await else {
            return failed(format!("the mailbox of {name} was closed"));
        };
        if let Err(attachment) = thread.attach(attachment) {
            self.mailboxes.append_attached(attachment);
        }
        match (settlement, read) {
            (Settlement::Reply(_), Some(read)) => HandlerOutcome::Read(Box::new(read)),
            (Settlement::Reply(bytes), None) => HandlerOutcome::Wrote(Raw::new(bytes)),
            (Settlement::Fail(why), _) => HandlerOutcome::Failed(Failure { message: why, fault: None }),
            (Settlement::Silent, _) => HandlerOutcome::Emitted(Vec::new()),
        }
    }
}

impl RawListener for RemoteListener {
    fn run(self: Rc<Self>, message: Message, context: RunContext) -> LocalBoxFuture<HandlerOutcome> {
        let mail = mail(&message, context.contract().name.clone(), self.mailboxes.now());
        let (listener, thread) = (context.listener, context.thread().clone());
        Box::pin(async move { self.answer(mail, listener, thread).await })
    }
}

/// A message while its handler waits. Dropping it deregisters the handler: the pump no longer waits for the end of the
/// message.
struct WaitingMail<'a> {
    mailboxes: &'a MailboxService,
    id: MessageId,
    told: Option<oneshot::Receiver<Ended>>,
}

impl WaitingMail<'_> {
    async fn ended(&mut self) -> Option<Ended> {
        let ended = self.told.as_mut()?.await.ok();
        self.told = None;
        ended
    }
}

impl Drop for WaitingMail<'_> {
    fn drop(&mut self) {
        if let Some(told) = self.told.take() {
            self.mailboxes.leave(self.id, told);
        }
    }
}

fn mail(message: &Message, mailbox: Name, now: Time) -> MailRecord {
    let payload = message.body.written();
    let meta = Meta {
        from: message.from.clone(),
        to: Some(mailbox.clone()),
        thread: message.thread,
        id: message.id,
        in_reply_to: message.in_reply_to.map(|id| id.to_string()),
        deadline: message.deadline.filter(|deadline| *deadline < Time::MAX),
        traceparent: message.traceparent.map(|traceparent| traceparent.to_string()),
    };
    MailRecord {
        seq: UNPLACED,
        mailbox,
        id: message.id,
        thread: message.thread,
        from: message.from.clone(),
        in_reply_to: message.in_reply_to,
        payload: payload.root().clone(),
        envelope: write_envelope(&meta, &payload),
        at: now,
    }
}

fn failed(why: impl Into<Arc<str>>) -> HandlerOutcome {
    HandlerOutcome::Failed(Failure { message: why.into(), fault: None })
}
