//! Mailboxes as the store of pushed deliveries.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use systole_core::core::{Answered, ReadAnswer};
use systole_core::mailbox::{MailboxInput, Settlement};
use systole_core::vocab::{MessageId, Name, Time};

use super::answer::{Verdict, judge, refused};
use super::endpoints::{Endpoints, Next};
use crate::gateway::judge::Judge;
use crate::gateway::service::{ActError, Acted, MailboxService};
use crate::journal::Query;
use crate::outbound::{Begun, DeliveryOutcome, DeliveryStore, Job, Said, StoreClosed, Stored, Undelivered};
use crate::runtime::Organism;

/// Mailboxes of listeners that messages are pushed to.
#[derive(Debug)]
pub(in crate::gateway) struct MailStore {
    pub(in crate::gateway) mailboxes: MailboxService,
    pub(in crate::gateway) query: Arc<dyn Query>,
    pub(in crate::gateway) endpoints: Endpoints,
    pub(in crate::gateway) judge: Arc<Judge>,
    pub(in crate::gateway) organism: Arc<Organism>,
}

impl MailStore {
    async fn head(&self, target: Name) -> Result<Option<Job>, StoreClosed> {
        loop {
            let head = self.mailboxes.look(|machine| {
                let (seq, status) = machine.to_push(&target)?;
                Some((seq, status.clone(), machine.registration(&target).cloned()))
            });
            let Some((seq, status, registered)) = head else { return Ok(None) };
            // The message is durable: the engine is woken only then.
            let mail = self.query.mail_at(vec![seq]).await.map_err(|error| {
                tracing::error!(%error, %target, "a message can't be read: it waits for the next start");
                StoreClosed
            })?;
            let Some(mail) = mail.into_iter().next() else { return Ok(None) };
            let id = mail.record.id;
            match self.endpoints.next(&target, registered.as_ref(), mail, |envelope| self.organism.sign(envelope)) {
                Next::Send(delivery) => {
                    return Ok(Some(Job {
                        delivery,
                        attempts: status.deliveries,
                        spent: Duration::from_nanos(status.spent),
                        next: Some(status.due).filter(|due| *due > Time::default()),
                        last_error: status.error.as_deref().map(str::to_owned),
                    }));
                }
                Next::Wait => return Ok(None),
                Next::Unsendable => {
                    let why = "the format that this listener is sent can't carry the message";
                    self.act(MailboxInput::Settle { id, settlement: Settlement::Fail(why.into()) }).await?;
                }
            }
        }
    }

    /// Extracts the reply from the body of a listener's answer.
    fn read(&self, id: MessageId, body: Bytes) -> Result<Option<Bytes>, String> {
        let listener = self.mailboxes.place_of(id).map(|(name, _)| name);
        match listener.as_ref().and_then(|name| Some((name, self.endpoints.format(name)?))) {
            Some((name, format)) => format.read(name, id, &body),
            None => Ok(Some(body)),
        }
    }

    /// Another message of the same mailbox that an answer names.
    async fn other(&self, id: MessageId, outcome: &DeliveryOutcome) -> Result<Option<MessageId>, StoreClosed> {
        let (Ok(answer), Some((name, _))) = (outcome, self.mailboxes.place_of(id)) else { return Ok(None) };
        let Said::Reply(body) = answer.clone().said() else { return Ok(None) };
        let others = self.endpoints.format(&name).map_or_else(Vec::new, |format| format.others(id, &body));
        if others.is_empty() {
            return Ok(None);
        }
        self.query.mail_among(name, others).await.map_err(|error| {
            tracing::error!(%error, "an answer can't be judged: it is asked for again after the next start");
            StoreClosed
        })
    }

    /// Turns a reply that the pump would refuse into a failure; reads one that it takes.
    async fn judged(
        &self,
        id: MessageId,
        settlement: Settlement,
    ) -> Result<(Settlement, Option<ReadAnswer>), StoreClosed> {
        let Settlement::Reply(reply) = &settlement else { return Ok((settlement, None)) };
        let place = self.mailboxes.place_of(id);
        let place = place.and_then(|(name, thread)| Some((self.judge.listener(&self.mailboxes, id, &name)?, thread)));
        let Some((listener, thread)) = place else { return Ok((settlement, None)) };
        let to = Answered { message: id, thread };
        let verdict = self.judge.answer(listener, to, reply.clone()).await.ok_or(StoreClosed)?;
        Ok(match verdict {
            Ok(read) => (settlement, Some(read)),
            Err(fault) => (Settlement::Fail(refused(&fault.to_string()).into()), None),
        })
    }

    /// Gives an input to the mailboxes, durably; false if they refused it.
    async fn act(&self, input: MailboxInput) -> Result<bool, StoreClosed> {
        self.done(self.mailboxes.act(input)).await
    }

    async fn done(&self, acted: Result<Acted, ActError>) -> Result<bool, StoreClosed> {
        match acted {
            Ok(mut acted) => acted.durable().await.map(|()| true).map_err(|_| StoreClosed),
            Err(ActError::Refused(_)) => Ok(false),
            Err(ActError::Ending) => Err(StoreClosed),
        }
    }
}

impl DeliveryStore for MailStore {
    fn head(&self, target: Name) -> Stored<'_, Option<Job>> {
        Box::pin(self.head(target))
    }

    fn begin(&self, id: MessageId, attempts: u32, spent: Duration) -> Stored<'_, Option<Begun>> {
        Box::pin(async move {
            // Counted before the end of the organism is looked for: it waits for the attempt, or there is none.
            let begun = Begun(Some(self.organism.open_work()));
            if self.mailboxes.is_stopping() {
                return Err(StoreClosed);
            }
            Ok(self.act(MailboxInput::Attempt { id, attempts, spent }).await?.then_some(begun))
        })
    }

    fn back_off(&self, id: MessageId, until: Time, error: String, spent: Duration) -> Stored<'_, bool> {
        Box::pin(self.act(MailboxInput::BackOff { id, until, error: error.into(), spent }))
    }

    fn settle(&self, id: MessageId, outcome: DeliveryOutcome) -> Stored<'_, ()> {
        if let Err(undelivered) = &outcome {
            // A field of the name `message` would replace the text.
            let Undelivered { target, url, cause, message: error, attempts, .. } = undelivered;
            tracing::warn!(delivery = %id, %target, url, %cause, attempts, error, "a delivery was given up");
        }
        Box::pin(async move {
            let other = self.other(id, &outcome).await?;
            let read = |body| match other {
                Some(other) => Err(format!("it answers another message, as the id {other} in it says")),
                None => self.read(id, body),
            };
            match judge(outcome, read) {
                Verdict::End(settlement) => {
                    let (settlement, read) = self.judged(id, settlement).await?;
                    self.done(self.mailboxes.settle(id, settlement, read)).await.map(drop)
                }
                Verdict::Awaits => self.act(MailboxInput::Taken { id }).await.map(drop),
            }
        })
    }
}
