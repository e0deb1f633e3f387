//! Settings of a listener with tasks, made before it is registered.

use std::sync::Arc;

use systole_core::core::{Contract, Routing};
use systole_core::inbox::payload::{EventPayload, Question, ResultPayload};

use super::actor::{self, JobActor};
use super::inboxes::Inboxes;
use super::shared::Shared;
use crate::runtime::accepts::AsActor;
use crate::runtime::builder::OrganismBuilder;
use crate::runtime::contract::ContractBuilder;

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
type Builder<I> = ContractBuilder<JobActor<I>, AsActor>;

/// Registers the listener, with what `more` adds to its contract.
pub(super) fn install<I: Inboxes>(
    shared: &Arc<Shared<I>>,
    setting: &Setting,
    builder: OrganismBuilder,
    more: impl FnOnce(Builder<I>) -> Builder<I>,
) -> OrganismBuilder {
    shared.set(setting);
    let made = shared.clone();
    let factory = move || JobActor::new(made.clone());
    let contract = |contract| fill(contract, shared, setting, more);
    builder.tasks(|board| I::enlist(shared.clone(), board)).listener(shared.name.as_str(), factory, contract)
}

/// Builds the contract of the listener.
pub(super) fn contract<I: Inboxes>(
    shared: &Arc<Shared<I>>,
    setting: &Setting,
    more: impl FnOnce(Builder<I>) -> Builder<I>,
) -> Contract {
    let contract = fill(ContractBuilder::new(shared.name.clone()), shared, setting, more).contract;
    contract.timeout(None)
}

fn fill<I: Inboxes>(
    contract: Builder<I>,
    shared: &Arc<Shared<I>>,
    setting: &Setting,
    more: impl FnOnce(Builder<I>) -> Builder<I>,
) -> Builder<I> {
    // Each awaited task holds a slot; the other slots are for messages that change tasks.
    let open = shared.lock().inboxes.limits().open;
    let slots = u32::try_from(open).unwrap_or(u32::MAX).saturating_add(actor::SLOTS);
    let contract = more(actor::contract(contract)).description(&setting.description).routing(setting.routing);
    let mut contract = contract.concurrency(slots).no_timeout();
    contract.contract.reattaches = true;
    if setting.sends.results {
        contract = contract.calls::<ResultPayload>();
    }
    if setting.sends.events {
        contract = contract.calls::<EventPayload>();
    }
    if setting.sends.questions { contract.calls::<Question>() } else { contract }
}

/// The setters of a listener with tasks.
macro_rules! settings {
    ($listener:ty) => {
        impl $listener {
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
            pub fn on_event(self, hear: impl Fn(&TaskEvent) + Send + Sync + 'static) -> Self {
                self.shared.hear(Box::new(hear));
                self
            }
        }
    };
}
pub(super) use settings;
