//! The delegate of a gateway, unless it was handed another: messages that wait in durable mailboxes.

use std::collections::BTreeMap;

use super::delegate::{Block, BoxFuture, Call, DelegateError, NoticeToken, QueueDelegate, QueueRead, Row, SessionId};
use crate::gateway::mailboxes::Mailboxes;
use crate::gateway::store::{Item, Reserve, Settlement};
use crate::vocab::{MessageId, Name};

/// Tells clients what waits in the mailbox that is theirs by the configuration.
///
/// A row that was told is leased to its session without a time; confirming acknowledges it, as `ack` does.
#[derive(Debug, Clone)]
pub(in crate::gateway) struct MailboxDelegate {
    mailboxes: Mailboxes,
    /// The mailbox of each client that has one.
    owned: BTreeMap<Name, Name>,
}

impl MailboxDelegate {
    pub(in crate::gateway) fn new(mailboxes: Mailboxes, owned: BTreeMap<Name, Name>) -> Self {
        Self { mailboxes, owned }
    }

    async fn reserve(&self, call: Call) -> Result<Option<QueueRead>, DelegateError> {
        let Some(mailbox) = self.owned.get(&call.principal) else { return Ok(None) };
        let (store, now) = (self.mailboxes.store(), self.mailboxes.clock().now());
        let deliveries = self.mailboxes.caps().deliveries;
        // Most calls find nothing: they don't write.
        if !store.pending(mailbox.clone(), now, deliveries).await? {
            return Ok(None);
        }
        let token = NoticeToken::draw();
        let (mailbox, session) = (mailbox.clone(), *call.session.as_bytes());
        let wanted = Reserve { mailbox, session, token: *token.as_bytes(), now, deliveries, room: call.room };
        let mut unread = Unread { delegate: self, session: call.session, token: Some(token) };
        let items = store.reserve(wanted).await?;
        unread.token = None;
        let rows: Vec<_> = items.into_iter().map(row).collect();
        Ok((!rows.is_empty()).then_some(QueueRead { token, rows }))
    }

    async fn acknowledge(self, session: SessionId, token: NoticeToken) -> Result<Vec<MessageId>, DelegateError> {
        let now = self.mailboxes.clock().now();
        let confirmed = self.mailboxes.store().confirm(*session.as_bytes(), *token.as_bytes(), now).await?;
        confirmed.iter().filter(|row| row.ended).for_each(|row| self.mailboxes.end(row.id, Settlement::Silent));
        Ok(confirmed.into_iter().map(|row| row.id).collect())
    }

    async fn free(self, session: SessionId, token: Option<NoticeToken>) -> Result<(), DelegateError> {
        let token = token.map(|token| *token.as_bytes());
        let freed = self.mailboxes.store().release(*session.as_bytes(), token).await?;
        freed.iter().for_each(|mailbox| self.mailboxes.ring(mailbox));
        Ok(())
    }
}

impl QueueDelegate for MailboxDelegate {
    fn read(&self, call: Call) -> BoxFuture<'_, Result<Option<QueueRead>, DelegateError>> {
        Box::pin(self.reserve(call))
    }

    fn confirm(&self, session: SessionId, token: NoticeToken) -> BoxFuture<'_, Result<Vec<String>, DelegateError>> {
        // Whoever asked may go: what is written down is told to the handlers that wait in any case.
        let confirmed = tokio::spawn(self.clone().acknowledge(session, token));
        Box::pin(async move { Ok(confirmed.await??.iter().map(MessageId::to_string).collect()) })
    }

    fn release(&self, session: SessionId, token: Option<NoticeToken>) -> BoxFuture<'_, Result<(), DelegateError>> {
        let freed = tokio::spawn(self.clone().free(session, token));
        Box::pin(async move { freed.await? })
    }
}

/// What is reserved for a response that is not there yet: if nobody waits for it any more, it is free again.
struct Unread<'a> {
    delegate: &'a MailboxDelegate,
    session: SessionId,
    token: Option<NoticeToken>,
}

impl Drop for Unread<'_> {
    fn drop(&mut self) {
        if let Some(token) = self.token {
            // It happens without being awaited, after what was reserved.
            drop(self.delegate.mailboxes.store().release(*self.session.as_bytes(), Some(*token.as_bytes())));
        }
    }
}

fn row(item: Item) -> Row {
    Row { id: item.id.to_string(), blocks: vec![Block::text(item.envelope)] }
}
