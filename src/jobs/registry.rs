//! Registries of jobs.

use std::fmt;
use std::sync::Arc;

use actix::{Context, Handler, ResponseFuture};
use systole_core::core::{Contract, Failure, Routing};
use systole_core::inbox::payload::{Find, JobPayload, JobsPayload, Register, Registered, Remove, Removed};
use systole_core::inbox::{Absent, InboxChange, InboxError, InboxPrincipal, JobError, Jobs, TaskEvent, page};
use systole_core::protocol::Request;
use systole_core::vocab::{Name, Time};

use super::actor::{JobActor, LISTED};
use super::setting::{Enrolment, Setting, settings};
use super::shared::{Shared, failure};
use crate::runtime::{AsActor, ContractBuilder, Delivery, LocalBoxFuture, Response, Thread, reply_any};

/// A listener with which jobs register while the organism runs. It holds the inbox of each job: a task is submitted to
/// it with the name of the job. Clones share one registry; an organism has at most one.
///
/// ```
/// use systole::inbox::payload::{Complete, Register, ResultPayload, Submit};
/// use systole::prelude::*;
/// use systole::jobs::JobRegistry;
///
/// let jobs = JobRegistry::new("jobs")?;
/// let organism = jobs
///     .install(Organism::builder("office"))
///     .client("writer", |c| c.calls::<Submit>())
///     .client("reviewer", |c| c.calls::<Register>().calls::<Complete>())
///     .start()?;
/// let (writer, reviewer) = (organism.client("writer")?, organism.client("reviewer")?);
/// let result = block_on(async {
///     let submitted = writer.ask_any(call_to("jobs", Submit::new("Read chapter 3.").to("reviews".parse()?)));
///     let reviewed = async {
///         // The task waits for the job, or the job for the task.
///         reviewer.ask_to("jobs", Register::new("reviews".parse()?, "Reads drafts.", ["read"])).await?;
///         let id = loop {
///             let first = |jobs: &systole::inbox::Jobs| Some(jobs.inboxes().next()?.pending().next()?.id);
///             if let Some(id) = jobs.read(first) {
///                 break id;
///             }
///             tokio::task::yield_now().await;
///         };
///         reviewer.ask_to("jobs", Complete { id, text: "Two typos.".into() }).await?;
///         Ok::<_, Box<dyn std::error::Error>>(())
///     };
///     let (submitted, reviewed) = tokio::join!(submitted, reviewed);
///     reviewed?;
///     Ok::<_, Box<dyn std::error::Error>>(submitted?)
/// })?;
/// assert_eq!(result.decode::<ResultPayload>()?.text, "Two typos.");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct JobRegistry {
    shared: Arc<Shared<Jobs>>,
    setting: Setting,
}

impl JobRegistry {
    /// Makes a registry without jobs; tasks for unregistered jobs wait for them.
    ///
    /// # Errors
    /// [`InboxError::Empty`] and [`InboxError::Name`] if the name is invalid.
    pub fn new(name: &str) -> Result<Self, InboxError> {
        Self::of(name, Jobs::new(Absent::Keep))
    }

    /// Makes a registry with another policy, other limits, or existing jobs.
    ///
    /// # Errors
    /// [`InboxError::Empty`] and [`InboxError::Name`] if the name is invalid.
    pub fn of(name: &str, jobs: Jobs) -> Result<Self, InboxError> {
        Ok(Self::named(InboxPrincipal::parse(name)?.name().clone(), jobs))
    }

    pub(crate) fn named(name: Name, jobs: Jobs) -> Self {
        Self { shared: Arc::new(Shared::new(name, jobs)), setting: Setting::default() }
    }

    /// Returns the contract of the listener.
    pub fn contract(&self) -> Contract {
        self.enrolment().contract()
    }

    fn enrolment(&self) -> Enrolment<'_, Jobs> {
        Enrolment { shared: &self.shared, setting: &self.setting, more: enrolling }
    }

    /// Reads the jobs, under their lock.
    pub fn read<T>(&self, read: impl FnOnce(&Jobs) -> T) -> T {
        read(&self.shared.lock().inboxes)
    }

    /// Changes jobs and tasks from a handler of the same organism, once, even if the handler runs again. The change is
    /// visible when this method returns, and durable when the future is done; a refused one changes nothing.
    ///
    /// # Errors
    /// The refusal of `act`, as a fault; a fault if this is not the handler's own thread. If the organism ends first the
    /// future is never done: the handler is dropped with it, and runs again with the next start.
    pub fn act(
        &self,
        thread: &Thread,
        act: impl FnOnce(&mut Jobs, Time) -> Result<InboxChange, JobError>,
    ) -> LocalBoxFuture<Result<(), Failure>> {
        let acted = self.shared.act(thread, None, |jobs, now| Ok((act(jobs, now).map_err(failure)?, ())));
        Box::pin(async move {
            acted?.1.durable().await;
            Ok(())
        })
    }
}

settings!(JobRegistry);

fn enrolling(contract: ContractBuilder<JobActor<Jobs>, AsActor>) -> ContractBuilder<JobActor<Jobs>, AsActor> {
    let contract = contract.accepts::<Register>().accepts::<Remove>().accepts::<Find>();
    contract.replies::<Registered>().replies::<Removed>().replies::<JobsPayload>()
}

impl fmt::Debug for JobRegistry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JobRegistry").field("jobs", &self.shared.lock().inboxes).finish_non_exhaustive()
    }
}

impl JobActor<Jobs> {
    /// Changes a registration, and replies the number of the job's pending tasks after the change.
    fn enrol<T: Request>(
        &self,
        delivery: &Delivery<T>,
        job: &Name,
        act: impl FnOnce(&mut Jobs, &InboxPrincipal, Time) -> Result<InboxChange, JobError>,
        answer: impl FnOnce(u32) -> T::Reply + 'static,
    ) -> ResponseFuture<Response> {
        let actor = InboxPrincipal::new(delivery.from().clone());
        let acted = self.shared.act(delivery.thread(), None, |jobs, now| {
            let change = act(jobs, &actor, now).map_err(failure)?;
            let pending = jobs.inbox(job).map_or(0, |inbox| inbox.pending().count());
            Ok((change, u32::try_from(pending).unwrap_or(u32::MAX)))
        });
        Box::pin(async move {
            let (pending, written) = acted?;
            written.durable().await;
            Ok(reply_any(answer(pending)))
        })
    }
}

impl Handler<Delivery<Register>> for JobActor<Jobs> {
    type Result = ResponseFuture<Response>;

    fn handle(&mut self, register: Delivery<Register>, _: &mut Context<Self>) -> Self::Result {
        let job = register.job.clone();
        let card = (*register).clone().into();
        let answer = move |pending| Registered { job, pending };
        self.enrol(&register, &register.job, |jobs, actor, now| jobs.register(actor, card, now), answer)
    }
}

impl Handler<Delivery<Remove>> for JobActor<Jobs> {
    type Result = ResponseFuture<Response>;

    fn handle(&mut self, remove: Delivery<Remove>, _: &mut Context<Self>) -> Self::Result {
        let job = remove.job.clone();
        let answer = move |pending| Removed { job, pending };
        self.enrol(&remove, &remove.job, |jobs, actor, now| jobs.remove(actor, &remove.job, now), answer)
    }
}

impl Handler<Delivery<Find>> for JobActor<Jobs> {
    type Result = Response;

    fn handle(&mut self, find: Delivery<Find>, _: &mut Context<Self>) -> Response {
        let kept = self.shared.lock();
        let wanted = |job: &JobPayload| {
            find.job.as_ref().is_none_or(|name| job.name == *name)
                && find.skill.as_ref().is_none_or(|skill| job.skill.contains(skill))
                && find.after.as_ref().is_none_or(|after| job.name > *after)
        };
        let found = kept.inboxes.cards().map(JobPayload::from).filter(wanted);
        let (job, behind) = page(found, usize::MAX, LISTED, size);
        let more = u32::try_from(behind.count()).unwrap_or(u32::MAX);
        Ok(find.reply(JobsPayload { more, job }))
    }
}

/// Returns a lower bound of a job's size in a list.
fn size(job: &JobPayload) -> usize {
    const TAGS: usize = 256;
    TAGS + job.description.len() + job.skill.iter().map(|skill| TAGS / 8 + skill.len()).sum::<usize>()
}
