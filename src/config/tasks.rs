//! `job:` and `jobs:`: listeners with tasks.

use systole_core::core::{Contract, Routing};
use systole_core::inbox::{Absent, InboxPrincipal, Jobs};
use systole_core::vocab::Name;

use super::correction::Shape;
use super::document::Node;
use super::mistake::Mistake;
use super::reader::{At, Fields, Reader};
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

/// Reads the value of `job:`, and its owner, with the place.
pub(super) fn job(reader: &mut Reader, node: &Node) -> Option<(TasksSpec, Option<At<Name>>)> {
    let mut fields = reader.fields(node, Shape::Job)?;
    let owner = fields.require("owner", "a job", reader).and_then(|node| reader.name(node));
    let sends = sends(reader, &mut fields);
    reader.finish(fields);
    owner.map(|owner| (sends(TasksOf::Owner(owner.value.clone())), Some(owner)))
}

/// Reads the value of `jobs:`.
pub(super) fn jobs(reader: &mut Reader, node: &Node) -> Option<(TasksSpec, Option<At<Name>>)> {
    const ABSENT: [(&str, Absent); 2] = [("keep", Absent::Keep), ("refuse", Absent::Refuse)];
    let mut fields = reader.fields(node, Shape::Jobs)?;
    let absent = fields.take("absent").map_or(Some(Absent::Keep), |node| reader.choice(node, &ABSENT));
    let sends = sends(reader, &mut fields);
    reader.finish(fields);
    absent.map(|absent| (sends(TasksOf::Registered(absent)), None))
}

fn sends(reader: &mut Reader, fields: &mut Fields<'_>) -> impl FnOnce(TasksOf) -> TasksSpec + use<> {
    let flag = |key| fields.take(key).and_then(|node| reader.flag(node)).unwrap_or_default();
    let [results, events, questions] = ["results", "events", "questions"].map(flag);
    move |of| TasksSpec { of, results, events, questions }
}

/// Routing of payloads that name no listener to one with tasks, by default.
pub(super) const ROUTING: Routing = Routing::Addressed;

/// Keys whose values the kind of the listener determines.
const OWN: [&str; 11] = [
    "budget",
    "schemas",
    "accepts",
    "replies",
    "calls",
    "returns",
    "accepts_faults",
    "context",
    "silence",
    "timeout",
    "concurrency",
];

/// Refuses the keys that are the same for every listener with tasks.
pub(super) fn refuse_own(reader: &mut Reader, fields: &mut Fields<'_>) {
    for key in OWN {
        if let Some(node) = fields.take(key) {
            reader.report(Mistake::Pointless { key, kind: "a job" }, node.span);
        }
    }
}
