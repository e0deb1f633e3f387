//! Jobs and registries as listeners of an organism.

use super::builder::OrganismBuilder;
use super::inbox::{Enrolment, Inboxes, Job, JobRegistry};

impl Job {
    /// Registers the listener.
    #[must_use]
    pub fn install(&self, builder: OrganismBuilder) -> OrganismBuilder {
        install(&self.enrolment(), builder)
    }
}

impl JobRegistry {
    /// Registers the listener.
    #[must_use]
    pub fn install(&self, builder: OrganismBuilder) -> OrganismBuilder {
        install(&self.enrolment(), builder)
    }
}

fn install<I: Inboxes>(job: &Enrolment<'_, I>, builder: OrganismBuilder) -> OrganismBuilder {
    builder.tasks(|board| job.enlist(board)).listener(job.name(), job.factory(), |contract| job.fill(contract))
}
