//! The default delegate of a gateway: notices are messages that wait in durable mailboxes.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

use systole_core::mailbox::MailboxInput;
use systole_core::vocab::{MessageId, Name};

use super::delegate::{Block, BoxFuture, Call, DelegateError, NoticeToken, QueueDelegate, QueueRead, Row, SessionId};
use crate::gateway::service::{ActError, MailboxService};
use crate::journal::{Query, StoredMail};
use crate::runtime::Organism;

/// Gives each client the messages in the mailbox that the configuration assigns to it.
///
/// A row that was given out is reserved for its session without a time limit; confirming acknowledges it, as `ack`
/// does.
#[derive(Debug, Clone)]
pub(in crate::gateway) struct MailboxDelegate {
    mailboxes: MailboxService,
    query: Arc<dyn Query>,
    organism: Arc<Organism>,
    /// The mailbox of each client that has one.
    owned: BTreeMap<Name, Name>,
    /// Rows that open sessions have confirmed, by token.
    confirmed: Arc<Mutex<HashMap<SessionId, Confirmed>>>,
}

/// Rows that came under each token of a session.
type Confirmed = HashMap<NoticeToken, Vec<MessageId>>;

impl MailboxDelegate {
    pub(in crate::gateway) fn new(
        mailboxes: MailboxService,
        query: Arc<dyn Query>,
        organism: Arc<Organism>,
        owned: BTreeMap<Name, Name>,
    ) -> Self {
        Self { mailboxes, query, organism, owned, confirmed: Arc::default() }
    }

    async fn reserve(&self, call: Call) -> Result<Option<QueueRead>, DelegateError> {
        let Some(mailbox) = self.owned.get(&call.principal) else { return Ok(None) };
        if !self.mailboxes.look(|machine| machine.has_free(mailbox)) {
            return Ok(None);
        }
        let token = NoticeToken::draw();
        let (session, bytes) = (*call.session.as_bytes(), call.limits.bytes as u64);
        let (mailbox, rows) = (mailbox.clone(), call.limits.rows);
        let input = MailboxInput::Reserve { mailbox, session, token: *token.as_bytes(), rows, bytes };
        let mut unread = Unread { delegate: self, session: call.session, token: Some(token) };
        let mut reserved = self.mailboxes.act(input).map_err(refused)?;
        reserved.durable().await?;
        let mail = self.query.mail_at(reserved.change.given.iter().map(|given| given.seq).collect()).await?;
        unread.token = None;
        let rows: Vec<_> = mail.into_iter().map(|mail| row(&self.organism, &mail)).collect();
        Ok((!rows.is_empty()).then_some(QueueRead { token, rows }))
    }

    async fn acknowledge(&self, session: SessionId, token: NoticeToken) -> Result<Vec<String>, DelegateError> {
        let input = MailboxInput::Confirm { session: *session.as_bytes(), token: *token.as_bytes() };
        let mut acted = self.mailboxes.act(input).map_err(refused)?;
        let ids = {
            let mut confirmed = self.confirmed.lock().unwrap_or_else(PoisonError::into_inner);
            let ids = confirmed.entry(session).or_default().entry(token).or_default();
            ids.extend(
                acted.change.confirmed.iter().map(|(id, _)| *id).filter(|id| !ids.contains(id)).collect::<Vec<_>>(),
            );
            ids.iter().map(MessageId::to_string).collect()
        };
        acted.durable().await?;
        Ok(ids)
    }

    fn free(&self, session: SessionId, token: Option<NoticeToken>) -> Result<(), DelegateError> {
        if token.is_none() {
            self.confirmed.lock().unwrap_or_else(PoisonError::into_inner).remove(&session);
        }
        let token = token.map(|token| *token.as_bytes());
        // Reservations are not written: there is nothing to wait for.
        self.mailboxes.act(MailboxInput::Release { session: *session.as_bytes(), token }).map(drop).map_err(refused)
    }
}

fn refused(error: ActError) -> DelegateError {
    format!("the mailbox refuses: {error:?}").into()
}

impl QueueDelegate for MailboxDelegate {
    fn read(&self, call: Call) -> BoxFuture<'_, Result<Option<QueueRead>, DelegateError>> {
        Box::pin(self.reserve(call))
    }

    fn confirm(&self, session: SessionId, token: NoticeToken) -> BoxFuture<'_, Result<Vec<String>, DelegateError>> {
        Box::pin(self.acknowledge(session, token))
    }

    fn release(&self, session: SessionId, token: Option<NoticeToken>) -> BoxFuture<'_, Result<(), DelegateError>> {
        let freed = self.free(session, token);
        Box::pin(async move { freed })
    }
}

/// A reservation for a response that is not there yet. Dropping it frees the rows.
struct Unread<'a> {
    delegate: &'a MailboxDelegate,
    session: SessionId,
    token: Option<NoticeToken>,
}

impl Drop for Unread<'_> {
    fn drop(&mut self) {
        if let Some(token) = self.token {
            // The organism may have ended: then no session has a reservation.
            let _ = self.delegate.free(self.session, Some(token));
        }
    }
}

fn row(organism: &Organism, mail: &StoredMail) -> Row {
    let text = String::from_utf8_lossy(&organism.sign(&mail.record.envelope)).into_owned();
    Row { id: mail.record.id.to_string(), blocks: vec![Block::text(text)] }
}
