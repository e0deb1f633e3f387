//! Loads: the work of a case, which starts once and then runs in rounds.

use std::collections::VecDeque;

use bytes::Bytes;
use systole::runtime::{AskError, Client, Conversation, NoSuchClient, Organism, SendError, StartError, block_on};
use systole_core::vocab::Fault;
use systole_xml::schema::ContractError;

use super::latency::Latencies;
use super::stopwatch;

/// A workload that can be measured repeatedly.
pub trait Load {
    /// Runs one round. Adds the latencies of its conversations, and returns the number of deliveries.
    ///
    /// # Errors
    /// [`LoadError`] if the organism fails.
    fn round(&mut self, latencies: &mut Latencies) -> Result<u64, LoadError>;
}

/// The amount of work in one round.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scale {
    /// The amount that a figure needs.
    Full,
    /// The smallest amount that shows that the load works.
    Smoke,
}

impl Scale {
    /// The number for this scale: `full`, or few enough for a fast run of a debug build.
    pub(super) fn of(self, full: u64) -> u64 {
        match self {
            Self::Full => full,
            Self::Smoke => (full / 500).clamp(1, 100),
        }
    }
}

/// The reason why a case has no figures.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// A payload of the benchmarks is no contract.
    #[error(transparent)]
    Contract(#[from] ContractError),
    /// The organism did not start.
    #[error(transparent)]
    Start(#[from] StartError),
    /// The organism has no such client.
    #[error(transparent)]
    Client(#[from] NoSuchClient),
    /// The organism refused a message.
    #[error(transparent)]
    Send(#[from] SendError),
    /// A question had no answer.
    #[error(transparent)]
    Ask(#[from] AskError),
    /// An answer was a fault.
    #[error("a fault came back: {0}")]
    Fault(#[from] Fault),
    /// A conversation closed without an answer.
    #[error("a conversation closed without an answer")]
    Silent,
    /// The runtime of a load without an organism did not start.
    #[error("the runtime of a load without an organism did not start: {0}")]
    Runtime(#[from] std::io::Error),
    /// The process that measures something failed.
    #[error("the process that measures {what} failed: {error}")]
    Apart {
        /// The subject: the name of a document, or of the first case of a group.
        what: &'static str,
        /// The reason.
        error: std::io::Error,
    },
    /// A load without an organism lost a message.
    #[error("a load without an organism lost a message and ended early")]
    Lost,
}

/// An organism with one client, and the number of its deliveries so far.
pub(super) struct Pump {
    pub(super) organism: Organism,
    pub(super) client: Client,
    delivered: u64,
}

impl Pump {
    /// Takes an organism, which must have a client `cli`.
    pub(super) fn new(organism: Organism) -> Result<Self, LoadError> {
        let client = organism.client("cli")?;
        Ok(Self { organism, client, delivered: 0 })
    }

    /// The number of deliveries to handlers, to the core and to clients since the last call.
    ///
    /// Waits until the organism has nothing left to do, so that every round pays for all the work that it started.
    pub(super) fn delivered(&mut self) -> u64 {
        let counts = block_on(async {
            self.organism.run_until_idle().await;
            self.organism.counts().await
        });
        counts.delivered - std::mem::replace(&mut self.delivered, counts.delivered)
    }

    /// Opens `count` conversations with the same envelope, `window` of them at a time, and waits for the one answer of
    /// each.
    pub(super) fn converse(
        &self,
        envelope: &Bytes,
        count: u64,
        window: usize,
        latencies: &mut Latencies,
    ) -> Result<(), LoadError> {
        let mut open: VecDeque<(std::time::Duration, Conversation)> = VecDeque::with_capacity(window);
        block_on(async {
            for _ in 0..count {
                if open.len() == window {
                    answered(&mut open, latencies).await?;
                }
                let mut conversation = self.client.converse();
                let sent = stopwatch::wall();
                conversation.send_bytes(envelope.clone())?;
                open.push_back((sent, conversation));
            }
            while !open.is_empty() {
                answered(&mut open, latencies).await?;
            }
            Ok(())
        })
    }
}

/// Waits for the answer of the oldest conversation.
async fn answered(
    open: &mut VecDeque<(std::time::Duration, Conversation)>,
    latencies: &mut Latencies,
) -> Result<(), LoadError> {
    let Some((sent, mut conversation)) = open.pop_front() else { return Ok(()) };
    let egress = conversation.receive().await.ok_or(LoadError::Silent)?;
    latencies.add(stopwatch::wall() - sent);
    egress.fault.map_or(Ok(()), |fault| Err(fault.into()))
}
