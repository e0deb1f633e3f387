//! Entropy: the only module that draws random numbers, for ids of roots and secrets.
#![allow(clippy::disallowed_methods)]

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use systole_core::vocab::{IdKey, Partition, ThreadId, Time};
use uuid::Uuid;

/// Source of the ids of roots.
#[derive(Debug, Clone)]
pub enum Entropy {
    /// The operating system.
    Real,
    /// A counter, so that a test sees the same ids on each run.
    Counted(Arc<AtomicU64>),
}

impl Entropy {
    /// Returns a counter, for the same ids on each run.
    pub fn counted() -> Self {
        Self::Counted(Arc::new(AtomicU64::new(1)))
    }

    /// Skips the counted ids of earlier starts, at the n-th start of a journal.
    pub fn enter(&self, epoch: u32) {
        if let Self::Counted(next) = self {
            next.fetch_max(u64::from(epoch.saturating_sub(1)) << 32, Ordering::Relaxed);
        }
    }

    /// Makes the id of a new root in a partition, a UUIDv7 (RFC 9562, section 5.7) of 66 random bits: ids of the same
    /// time are neighbours in the indexes of a journal, so that a transaction changes few of their pages. The partition
    /// of a counted id follows from the count.
    pub fn root(&self, now: Time, partition: Partition) -> ThreadId {
        let id = ThreadId::from_uuid(self.id(now));
        match self {
            Self::Real => partition.place(id),
            Self::Counted(_) => id,
        }
    }

    /// Makes an id like that of a root, with 74 random bits.
    pub fn id(&self, now: Time) -> Uuid {
        let random = self.random();
        match (self, random.as_bytes().last_chunk()) {
            (Self::Real, Some(tail)) => {
                uuid::Builder::from_unix_timestamp_millis(now.as_nanos() / 1_000_000, tail).into_uuid()
            }
            _ => random,
        }
    }

    /// Makes a UUIDv4: 122 random bits.
    pub fn random(&self) -> Uuid {
        match self {
            Self::Real => Uuid::new_v4(),
            Self::Counted(next) => {
                uuid::Builder::from_random_bytes(u128::from(next.fetch_add(1, Ordering::Relaxed)).to_be_bytes())
                    .into_uuid()
            }
        }
    }

    /// Draws 64 random bits.
    pub fn bits(&self) -> u64 {
        // The version and the variant of a UUID are in its middle.
        let (high, low) = self.random().as_u64_pair();
        high.rotate_left(32) ^ low.rotate_left(8)
    }

    /// Draws a number from 0 to 1.
    pub fn fraction(&self) -> f64 {
        self.bits() as f64 / u64::MAX as f64
    }

    /// Draws the key that makes derived ids unguessable.
    pub fn key(&self) -> IdKey {
        IdKey::new(self.secret())
    }

    /// Draws a secret of 244 random bits.
    pub fn secret(&self) -> [u8; 32] {
        let mut secret = [0; 32];
        for half in secret.chunks_exact_mut(16) {
            half.copy_from_slice(self.random().as_bytes());
        }
        secret
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_of_roots_are_in_the_order_of_their_times() {
        let at = |millis: u64| Time::from_nanos(millis * 1_000_000);
        let ids = [1, 2, 300, 70_000, 1 << 40].map(|millis| Entropy::Real.id(at(millis)));
        assert!(ids.is_sorted(), "{ids:?}");
        assert!(ids.iter().all(|id| id.get_version_num() == 7), "{ids:?}");
        assert_ne!(Entropy::Real.id(at(1)), Entropy::Real.id(at(1)));
    }
}
