//! What is set of a listener with tasks before it is registered.

use std::sync::Arc;

use systole_core::core::{Contract, Routing};
use systole_core::inbox::payload::{EventPayload, Question, ResultPayload};

use super::actor::{self, JobActor};
use super::inboxes::Inboxes;
use super::shared::Shared;
use crate::shell::accepts::AsActor;
use crate::shell::builder::OrganismBuilder;
use crate::shell::contract::ContractBuilder;

/// What the contract of a job lets it send to submitters.
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

/// A contract of what kind of listener it is.
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

/// What it promises and may do.
pub(super) fn contract<I: Inboxes>(
    shared: &Arc<Shared<I>>,
    setting: &Setting,
    more: impl FnOnce(Builder<I>) -> Builder<I>,
) -> Contract {
    let contract = fill(ContractBuilder::new(shared.name.clone()), shared, setting, more).contract;
    Contract { timeout: None, ..contract }
}

fn fill<I: Inboxes>(
    contract: Builder<I>,
    shared: &Arc<Shared<I>>,
    setting: &Setting,
    more: impl FnOnce(Builder<I>) -> Builder<I>,
) -> Builder<I> {
    // Each task that is waited for holds a slot; the rest is for what moves them.
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

/// The methods that set it.
macro_rules! settings {
    ($listener:ty) => {
        impl $listener {
            /// One line for people and models.
            #[must_use]
            pub fn description(mut self, description: impl Into<String>) -> Self {
                self.setting.description = description.into();
                self
            }

            /// How payloads that name no listener find it; without a call of this, not at all, because there may be
            /// several listeners with tasks.
            #[must_use]
            pub fn routing(mut self, routing: Routing) -> Self {
                self.setting.routing = routing;
                self
            }

            /// Sends the results of detached tasks to their submitters: at least one listener accepts
            /// [`ResultPayload`](systole_core::inbox::payload::ResultPayload). Without it they ask for them.
            #[must_use]
            pub fn sends_results(mut self) -> Self {
                self.setting.sends.results = true;
                self
            }

            /// Sends the events of watched tasks: at least one listener accepts
            /// [`EventPayload`](systole_core::inbox::payload::EventPayload). Without it no task can be watched.
            #[must_use]
            pub fn sends_events(mut self) -> Self {
                self.setting.sends.events = true;
                self
            }

            /// Sends questions to submitters: at least one listener accepts
            /// [`Question`](systole_core::inbox::payload::Question), and replies [`Input`](systole_core::inbox::payload::Input).
            /// Without it they look whether there is one.
            #[must_use]
            pub fn sends_questions(mut self) -> Self {
                self.setting.sends.questions = true;
                self
            }

            /// Hears of every event, once and in order, on the thread that made it happen, or that made it durable; a new
            /// one replaces the one before. It may look at the tasks, and must not wait.
            #[must_use]
            pub fn on_event(self, hear: impl Fn(&Event) + Send + Sync + 'static) -> Self {
                self.shared.hear(Box::new(hear));
                self
            }
        }
    };
}
pub(super) use settings;
