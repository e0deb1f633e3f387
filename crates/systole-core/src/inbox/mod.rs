//! Layer 2, the task inbox: the requests of submitters to a job, as data, and the rules of their transitions.
//!
//! A [`TaskInbox`] holds the tasks of one job. [`TaskInbox::apply`] takes the actions of its owner and of submitters. Each
//! method checks everything first: an error has changed nothing, a
//! success comes back as an [`InboxChange`], with the events ([`TaskEvent`]s, once each and in order) and the
//! operations to write ([`TaskInbox::ops`]). [`Jobs`] is the registry beside it: jobs by name and by skill, and tasks
//! for jobs that aren't registered yet. [`payload`] is the same in XML, `urn:systole:task:v1`.
//!
//! Invariants: only the [`InboxPrincipal`] that owns an inbox moves its tasks, only the one that submitted a task
//! cancels it or answers a question, and neither is ever taken from a body's claims. Every text is one that XML can
//! carry and within its limit. No clock, no randomness: the time and the ids come in from outside.

mod checks;
mod context;
mod directory;
mod error;
mod event;
mod jobs;
mod limits;
mod markdown;
mod page;
pub mod payload;
mod principal;
mod records;
mod render;
mod status;
mod store;
mod submit;
mod task;
mod transitions;

pub use context::{ContextEntry, TaskContext, Xml};
pub use error::{Field, InboxError, InboxProblem};
pub use event::{InboxChange, TaskEvent, TaskEventKind};
pub use jobs::{Absent, JobCard, JobError, Jobs, JobsLimits};
pub use limits::InboxLimits;
#[doc(hidden)]
pub use page::page;
pub use principal::InboxPrincipal;
pub use records::RecoverError;
pub use status::{Status, Transition};
pub use store::TaskInbox;
pub use submit::{Submission, SubmittedTask};
pub use task::{Artifact, Exchange, Submitter, Task, TaskProgress};
pub use transitions::{ArtifactPart, TaskAction};
