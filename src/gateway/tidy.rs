//! What is over goes when it has had its time, although nothing comes that would take it along.

use std::time::Duration;

use super::mailboxes::Mailboxes;
use crate::outbound::Outbound;

/// How often it is looked, at least and at most.
const PACE: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(60));

/// Runs until the gateway ends.
pub(super) async fn tidy(mailboxes: Mailboxes, outbound: Option<Outbound>) {
    loop {
        // Whatever is written takes along what has had its time.
        if let Err(error) = mailboxes.store().check().await {
            tracing::warn!(%error, "what is over can't be deleted");
        }
        let next = match &outbound {
            Some(outbound) => outbound.tidy().await.unwrap_or_default(),
            None => None,
        };
        let pause = next.map_or(PACE.1, |next| mailboxes.clock().until(next));
        tokio::time::sleep(pause.clamp(PACE.0, PACE.1)).await;
    }
}
