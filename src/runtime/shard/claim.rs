//! Claims on partitions: each is in one move at a time.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use systole_core::journal::{JournalError, JournalErrorKind};
use systole_core::vocab::Partitions;

/// The partitions that are in a move.
#[derive(Clone, Default)]
pub(crate) struct Moving(Arc<Mutex<Partitions>>);

/// Partitions in a move, until it is dropped.
pub(crate) struct Claim {
    partitions: Partitions,
    moving: Moving,
}

impl Moving {
    /// Claims partitions for a move. No move begins or ends while `choose` looks for them.
    ///
    /// # Errors
    /// The errors of `choose`, and [`JournalError`] if one of the partitions is in another move.
    pub(crate) fn claim<T>(
        &self,
        choose: impl FnOnce() -> Result<(T, Partitions), JournalError>,
    ) -> Result<(T, Claim), JournalError> {
        let mut moving = self.lock();
        let (chosen, partitions) = choose()?;
        if partitions.iter().any(|partition| moving.contains(partition)) {
            return Err(JournalError::new(JournalErrorKind::Refused, "one of these partitions moves already"));
        }
        *moving = moving.iter().chain(partitions.iter()).collect();
        Ok((chosen, Claim { partitions, moving: self.clone() }))
    }

    fn lock(&self) -> MutexGuard<'_, Partitions> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Claim {
    /// The partitions that move.
    pub(crate) fn partitions(&self) -> Partitions {
        self.partitions
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        let mut moving = self.moving.lock();
        *moving = moving.iter().filter(|&partition| !self.partitions.contains(partition)).collect();
    }
}
