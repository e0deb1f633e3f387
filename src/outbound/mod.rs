//! The one way to other machines: HTTP with retries, circuits, signatures and checked addresses.
//!
//! An `Engine` sends the deliveries of a `DeliveryStore`, which are those of an organism's mailboxes
//! (`gateway::push`). A delivery is sent until the peer has answered, or it is given up for a [`Cause`]; the store has the
//! attempts that were made, so that the next start goes on after a crash. All attempts carry the id of the message as their
//! idempotency key, so that a peer can recognize them as one. Deliveries to one target are sent one after the other, those
//! to different targets at the same time.
//!
//! `docs/outbound.md` has the rules of retries, with all limits; [`retry`] implements them.

mod address;
mod answer;
mod cause;
mod circuit;
mod client;
mod delivery;
mod engine;
mod error;
mod failure;
pub(crate) mod http;
mod options;
mod progress;
pub mod retry;
mod retry_after;
pub mod signature;
pub(crate) mod signing;
mod store;
mod target_queue;
mod target_queues;
#[cfg(test)]
mod tests;
mod tls;

pub use cause::Cause;
pub use error::OutboundError;
pub use failure::{AttemptFailure, FailureKind};
pub use signature::Secret;

pub(crate) use address::Guard;
#[cfg(test)]
pub(crate) use answer::Taken;
pub(crate) use answer::{DeliveryAnswer, Said, media_type, refusal};
pub(crate) use client::{unanswered, wait_of};
pub(crate) use delivery::{OutboundDelivery, check_url, is_below};
pub(crate) use engine::Engine;
pub(crate) use error::{DeliveryOutcome, Undelivered};
pub(crate) use options::DeliveryOptions;
pub(crate) use retry_after::parse as retry_after;
pub(crate) use store::{Begun, DeliveryStore, Job, StoreClosed, Stored};
pub(crate) use tls::config as tls;
