//! One message on its way: followed to the end of its delivery, and ended with that.

use std::sync::Arc;

use tokio::sync::Notify;

use super::answer::{Verdict, judge};
use crate::gateway::mailboxes::Mailboxes;
use crate::gateway::store::{Settled, Settlement, StoreError};
use crate::outbound::{Handle, Outbound, OutboxError, Outcome, State};
use crate::vocab::MessageId;

/// What all messages share.
pub(super) struct Lane {
    pub(super) mailboxes: Mailboxes,
    pub(super) outbound: Outbound,
}

/// Why a message can't be seen to at the moment; the next start does.
#[derive(Debug, thiserror::Error)]
pub(super) enum Stuck {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Outbox(#[from] OutboxError),
}

impl Lane {
    /// Follows a delivery to its end, and tells how far it has come.
    pub(super) async fn watch(self: Arc<Self>, id: MessageId, handle: Handle, enough: Arc<Notify>) -> MessageId {
        if let Err(error) = self.try_watch(id, handle, &enough).await {
            tracing::error!(%error, "what came of a push can't be written down: it is told at the next start");
        }
        id
    }

    async fn try_watch(&self, id: MessageId, mut handle: Handle, enough: &Notify) -> Result<(), Stuck> {
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
                () = enough.notified() => {
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
    pub(super) async fn end(&self, id: MessageId, outcome: Outcome) -> Result<(), StoreError> {
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
    pub(super) async fn settle(&self, id: MessageId, with: Settlement) -> Result<(), StoreError> {
        let now = self.mailboxes.clock().now();
        if let Settled::Done(_) = self.mailboxes.store().settle(id, with.clone(), now).await? {
            self.mailboxes.end(id, with);
        }
        Ok(())
    }
}
