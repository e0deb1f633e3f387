//! Jobs: listeners with a [task inbox](systole_core::inbox). Registries: listeners with the inboxes of all jobs that
//! register with them while the organism runs.
//!
//! Submitters send tasks to a job, and its owner works on them, by payloads of [`systole_core::inbox::payload`]. An
//! awaited task is an open child of the submitting thread: `submit` is answered when the task has ended, and when that
//! thread is cancelled, so is the task. The result and the events of a detached task open threads of its
//! submitter below the thread of `<boot>` of the job.
//!
//! Durability: the inbox lives in the [`Job`], not in its actor, so a panic of the actor loses nothing. In a
//! [durable](crate::runtime::OrganismBuilder::durable) organism it also lives in the journal: a change and the note that the handler
//! has made it are one transaction, so that each message changes the inbox once, and a submitter that waited for a task
//! waits again after a start. The journal's records of a job then replace the contents of the [`Job`]. A message to a
//! submitter (the result of a detached task, an event, a question) is sent once: after a start it is the call that was
//! made before, with its outcome (`OnRestart::Reattach`).

mod actor;
mod board;
mod inboxes;
mod outbox;
mod recover;
mod registry;
mod setting;
mod shared;
mod waiter;

use std::fmt;
use std::sync::Arc;

pub use board::{BoardError, TaskBoard};
use bytes::Bytes;
pub use registry::JobRegistry;
use setting::{Enrolment, Setting, settings};
use shared::{Shared, failure};

use crate::runtime::{LocalBoxFuture, Organism, Thread};
use systole_core::core::{Contract, Failure, Routing};
use systole_core::inbox::{InboxChange, InboxError, InboxLimits, InboxPrincipal, TaskEvent, TaskInbox};
use systole_core::vocab::{Name, Time};

/// A listener with an inbox. Clones share one job.
///
/// ```
/// use systole::inbox::payload::{Complete, ResultPayload, Submit};
/// use systole::prelude::*;
/// use systole::jobs::Job;
///
/// let reviews = Job::new("reviews", "reviewer")?;
/// let organism = reviews
///     .install(Organism::builder("office"))
///     .client("writer", |c| c.calls::<Submit>())
///     .client("reviewer", |c| c.calls::<Complete>())
///     .start()?;
/// let (writer, reviewer) = (organism.client("writer")?, organism.client("reviewer")?);
/// let result = block_on(async {
///     let submitted = writer.ask_any(call_to("reviews", Submit::new("Read chapter 3.")));
///     let reviewed = async {
///         // A real reviewer is a listener, and reads `reviews.render_pending_context()`.
///         let id = loop {
///             if let Some(id) = reviews.read(|inbox| inbox.pending().next().map(|task| task.id)) {
///                 break id;
///             }
///             tokio::task::yield_now().await;
///         };
///         reviewer.ask_to("reviews", Complete { id, text: "Two typos.".into() }).await
///     };
///     tokio::join!(submitted, reviewed).0
/// })?;
/// assert_eq!(result.decode::<ResultPayload>()?.text, "Two typos.");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Job {
    shared: Arc<Shared<TaskInbox>>,
    setting: Setting,
}

impl Organism {
    /// Returns the task board: the jobs and their tasks.
    pub fn tasks(&self) -> &TaskBoard {
        static NONE: TaskBoard = TaskBoard::new();
        self.part().unwrap_or(&NONE)
    }
}

impl Job {
    /// Makes a job with an empty inbox, owned by a listener or a client, by name.
    ///
    /// # Errors
    /// [`InboxError::Empty`] and [`InboxError::Name`] if one of the two is no valid name.
    pub fn new(name: &str, owner: &str) -> Result<Self, InboxError> {
        TaskInbox::new(name, InboxPrincipal::parse(owner)?).map(Self::of)
    }

    /// Makes a job from checked names.
    pub fn named(name: Name, owner: InboxPrincipal) -> Self {
        Self::of(TaskInbox::named(name, owner))
    }

    /// Makes a job from an inbox: one with other limits, or one from the records of a journal. Accepted tasks stay accepted
    /// ([`TaskInbox::release`] makes them pending again), and awaited tasks become detached, since no handler waits for
    /// them.
    pub fn of(mut inbox: TaskInbox) -> Self {
        inbox.detach_all();
        Self { shared: Arc::new(Shared::new(inbox.job().clone(), inbox)), setting: Setting::default() }
    }

    /// Returns the contract of the listener.
    pub fn contract(&self) -> Contract {
        self.enrolment().contract()
    }

    fn enrolment(&self) -> Enrolment<'_, TaskInbox> {
        Enrolment { shared: &self.shared, setting: &self.setting, more: |contract| contract }
    }

    /// Reads the inbox, under its lock.
    pub fn read<T>(&self, read: impl FnOnce(&TaskInbox) -> T) -> T {
        read(&self.shared.lock().inboxes)
    }

    /// Changes the inbox from a handler of the same organism: the owner moves a task without a message, or stores
    /// `state` with its tasks, in one transaction with the change. A handler that runs again after a crash changes
    /// nothing again. The change is visible when this method returns, and durable when the future is done; a refused
    /// one changes nothing.
    ///
    /// `state` is any bytes, such as the progress of a model; the last one counts, and [`state`](Self::state) returns
    /// it, also after the next start.
    ///
    /// # Errors
    /// The refusal of `act`, as a fault; a fault if this is not the handler's own thread. If the organism ends first the
    /// future is never done: the handler is dropped with it, and runs again with the next start.
    pub fn act(
        &self,
        thread: &Thread,
        state: Option<Bytes>,
        act: impl FnOnce(&mut TaskInbox, Time) -> Result<InboxChange, InboxError>,
    ) -> LocalBoxFuture<Result<(), Failure>> {
        let acted = self.shared.act(thread, state, |inbox, now| Ok((act(inbox, now).map_err(failure)?, ())));
        Box::pin(async move {
            acted?.1.durable().await;
            Ok(())
        })
    }

    /// Returns the state that the owner stored last.
    pub fn state(&self) -> Option<Bytes> {
        self.shared.lock().state.clone()
    }

    /// Makes accepted tasks pending again, for a program whose owner has restarted and lost its work.
    pub fn release(&self, now: Time) {
        self.shared.try_change(|inbox| Ok(inbox.release(now)));
    }

    /// Renders the pending tasks as Markdown for a model: see [`TaskInbox::render_pending_context`].
    pub fn render_pending_context(&self) -> String {
        self.read(TaskInbox::render_pending_context)
    }

    /// Returns the limits of the inbox.
    pub fn limits(&self) -> InboxLimits {
        self.read(|inbox| inbox.limits().clone())
    }
}

settings!(Job);

impl fmt::Debug for Job {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Job").field("inbox", &self.shared.lock().inboxes).finish_non_exhaustive()
    }
}
