//! `job:` and `jobs:`: listeners with tasks.

use systole_core::core::{Contract, Routing};
use systole_core::inbox::{Absent, InboxPrincipal, Jobs};
use systole_core::vocab::Name;

use super::document::Node;
use super::keys::{Flag, Key, Named, OneOf, Word, mapping};
use super::reader::{At, Reader};
use crate::jobs::{Job, JobRegistry};
use crate::runtime::OrganismBuilder;

/// A listener with tasks: `docs/tasks.md`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TasksSpec {
    /// The job or the registry.
    pub of: TasksOf,
    /// True if the results of detached tasks are sent to their submitters.
    pub results: bool,
    /// True if the events of watched tasks are sent to their submitters.
    pub events: bool,
    /// True if questions are sent to submitters.
    pub questions: bool,
}

/// The jobs whose tasks a listener has.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum TasksOf {
    /// A single job, by its owner.
    Owner(Name),
    /// All jobs that register, and the treatment of tasks for jobs that don't.
    Registered(Absent),
}

/// A listener with tasks, as the organism runs it.
enum Listener {
    Job(Job),
    Registry(JobRegistry),
}

impl TasksSpec {
    /// Registers the listener, with the name, the description and the routing of a contract.
    #[must_use]
    pub fn install(&self, builder: OrganismBuilder, contract: &Contract) -> OrganismBuilder {
        match self.listener(contract) {
            Listener::Job(job) => job.install(builder),
            Listener::Registry(registry) => registry.install(builder),
        }
    }

    /// The contract of the listener, with the name, the description and the routing of another one.
    pub(super) fn contract(&self, contract: &Contract) -> Contract {
        match self.listener(contract) {
            Listener::Job(job) => job.contract(),
            Listener::Registry(registry) => registry.contract(),
        }
    }

    fn listener(&self, contract: &Contract) -> Listener {
        macro_rules! set {
            ($listener:expr) => {{
                let listener = $listener.description(&contract.description).routing(contract.routing);
                let listener = if self.results { listener.sends_results() } else { listener };
                let listener = if self.events { listener.sends_events() } else { listener };
                if self.questions { listener.sends_questions() } else { listener }
            }};
        }
        match &self.of {
            TasksOf::Owner(owner) => {
                Listener::Job(set!(Job::named(contract.name.clone(), InboxPrincipal::new(owner.clone()))))
            }
            TasksOf::Registered(absent) => {
                Listener::Registry(set!(JobRegistry::named(contract.name.clone(), Jobs::new(*absent))))
            }
        }
    }
}

mapping! {
    /// An inbox of tasks.
    JobKeys: Job {
        /// Listener or client that takes the tasks on.
        owner: Named, of "a job";
        /// True if the results of detached tasks are sent to their submitters.
        results: Flag = false;
        /// True if the events of watched tasks are sent.
        events: Flag = false;
        /// True if the questions of owners are sent.
        questions: Flag = false;
    }
}

mapping! {
    /// A registry of jobs.
    RegistryKeys: Jobs {
        /// Treatment of tasks for jobs that are not registered: they wait, or are refused.
        absent: OneOf<Absent> = "keep";
        /// True if the results of detached tasks are sent to their submitters.
        results: Flag = false;
        /// True if the events of watched tasks are sent.
        events: Flag = false;
        /// True if the questions of owners are sent.
        questions: Flag = false;
    }
}

impl Word for Absent {
    const WORDS: &'static [(&'static str, Self)] = &[("keep", Self::Keep), ("refuse", Self::Refuse)];
}

/// Reads the value of `job:`, and its owner, with the place.
pub(super) fn job(reader: &mut Reader, node: &Node) -> Option<(TasksSpec, Option<At<Name>>)> {
    let keys = JobKeys::open(reader, node)?;
    let owner = keys.owner.read(reader);
    let sends = sends(reader, [keys.results, keys.events, keys.questions]);
    owner.map(|owner| (sends(TasksOf::Owner(owner.value.clone())), Some(owner)))
}

/// Reads the value of `jobs:`.
pub(super) fn jobs(reader: &mut Reader, node: &Node) -> Option<(TasksSpec, Option<At<Name>>)> {
    let keys = RegistryKeys::open(reader, node)?;
    let absent = if keys.absent.node.is_some() { keys.absent.read(reader) } else { Some(Absent::Keep) };
    let sends = sends(reader, [keys.results, keys.events, keys.questions]);
    absent.map(|absent| (sends(TasksOf::Registered(absent)), None))
}

fn sends(reader: &mut Reader, keys: [Key<'_, Flag>; 3]) -> impl FnOnce(TasksOf) -> TasksSpec + use<> {
    let [results, events, questions] = keys.map(|key| key.read(reader).unwrap_or_default());
    move |of| TasksSpec { of, results, events, questions }
}

/// Routing of payloads that name no listener to one with tasks, by default.
pub(super) const ROUTING: Routing = Routing::Addressed;
