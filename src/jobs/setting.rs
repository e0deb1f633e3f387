//! Settings of a listener with tasks, made before it is registered.

use std::sync::Arc;

use systole_core::core::{Contract, OnRestart, Routing};
use systole_core::inbox::payload::{EventPayload, Question, ResultPayload};

use super::actor::{self, JobActor};
use super::board::TaskBoard;
use super::inboxes::Inboxes;
use super::shared::Shared;
use crate::runtime::{AsActor, ContractBuilder, OrganismBuilder};

/// Payloads that the contract of a job lets it send to submitters.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Sends {
    pub(super) results: bool,
    pub(super) events: bool,
    pub(super) questions: bool,
}

#[derive(Clone)]
pub(super) struct Setting {
    pub(super) description: String,
    pub(super) routing: Routing,
    pub(super) sends: Sends,
}

impl Default for Setting {
    fn default() -> Self {
        Self { description: String::new(), routing: Routing::Addressed, sends: Sends::default() }
    }
}

/// The builder of a job's contract.
pub(super) type Builder<I> = ContractBuilder<JobActor<I>, AsActor>;

/// A listener with tasks, before it is registered.
pub(super) struct Enrolment<'a, I: Inboxes> {
    pub(super) shared: &'a Arc<Shared<I>>,
    pub(super) setting: &'a Setting,
    /// Adds to its contract.
    pub(super) more: fn(Builder<I>) -> Builder<I>,
}

impl<I: Inboxes> Enrolment<'_, I> {
    /// Registers the listener, and puts it on the task board, by its setting.
    pub(super) fn install(&self, builder: OrganismBuilder) -> OrganismBuilder {
        self.shared.set(self.setting);
        let (enlisted, shared) = (self.shared.clone(), self.shared.clone());
        builder.part(|board: &mut TaskBoard| I::enlist(enlisted, board)).listener(
            self.shared.name.as_str(),
            move || JobActor::new(shared.clone()),
            |contract| self.fill(contract),
        )
    }

    /// Builds the contract of the listener.
    pub(super) fn contract(&self) -> Contract {
        self.fill(ContractBuilder::new(self.shared.name.clone())).contract.timeout(None)
    }

    fn fill(&self, contract: Builder<I>) -> Builder<I> {
        let Self { shared, setting, more } = self;
        // Each awaited task holds a slot; the other slots are for messages that change tasks.
        let open = shared.lock().inboxes.limits().open;
        let slots = u32::try_from(open).unwrap_or(u32::MAX).saturating_add(actor::SLOTS);
        let contract = more(actor::contract(contract)).description(&setting.description).routing(setting.routing);
        let mut contract = contract.concurrency(slots).no_timeout();
        contract.contract.on_restart = OnRestart::Reattach;
        if setting.sends.results {
            contract = contract.calls::<ResultPayload>();
        }
        if setting.sends.events {
            contract = contract.calls::<EventPayload>();
        }
        if setting.sends.questions { contract.calls::<Question>() } else { contract }
    }
}

/// The setters of a listener with tasks.
macro_rules! settings {
    ($listener:ty) => {
        impl $listener {
            /// Registers the listener.
            #[must_use]
            pub fn install(&self, builder: $crate::runtime::OrganismBuilder) -> $crate::runtime::OrganismBuilder {
                self.enrolment().install(builder)
            }

            /// Sets a one-line description for people and models.
            #[must_use]
            pub fn description(mut self, description: impl Into<String>) -> Self {
                self.setting.description = description.into();
                self
            }

            /// Sets the routing of payloads that name no listener. By default they don't reach this listener, because
            /// an organism may have several listeners with tasks.
            #[must_use]
            pub fn routing(mut self, routing: Routing) -> Self {
                self.setting.routing = routing;
                self
            }

            /// Sends the results of detached tasks to their submitters; at least one listener must accept
            /// [`ResultPayload`](systole_core::inbox::payload::ResultPayload). Without this, submitters ask for
            /// results.
            #[must_use]
            pub fn sends_results(mut self) -> Self {
                self.setting.sends.results = true;
                self
            }

            /// Sends the events of watched tasks; at least one listener must accept
            /// [`EventPayload`](systole_core::inbox::payload::EventPayload). Without this, no task can be watched.
            #[must_use]
            pub fn sends_events(mut self) -> Self {
                self.setting.sends.events = true;
                self
            }

            /// Sends questions to submitters; at least one listener must accept
            /// [`Question`](systole_core::inbox::payload::Question), and reply
            /// [`Input`](systole_core::inbox::payload::Input). Without this, submitters poll for questions.
            #[must_use]
            pub fn sends_questions(mut self) -> Self {
                self.setting.sends.questions = true;
                self
            }

            /// Sets the callback for events, called once for each and in order, on the thread that caused the event or
            /// made it durable; replaces the callback before. It may read the tasks, and must not block.
            #[must_use]
            pub fn on_event(self, callback: impl Fn(&TaskEvent) + Send + Sync + 'static) -> Self {
                self.shared.set_callback(Box::new(callback));
                self
            }
        }
    };
}
pub(super) use settings;
