//! The actor of listeners with tasks.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use actix::{Actor, Context, Handler, ResponseFuture};
use systole_core::core::Failure;
use systole_core::inbox::payload::{
    Accept, ArtifactPayload, Brief, Cancel, Changed, Complete, Fail, Get, Input, InputRequired, List, Progress,
    Question, Reject, ResultPayload, Submit, Submitted, TaskPayload, Tasks,
};
use systole_core::inbox::{ArtifactPart, InboxError, InboxPrincipal, Submission, Task, TaskAction, page};
use systole_core::protocol::{Boot, Request};
use systole_core::vocab::{Name, TaskId};

use super::inboxes::Inboxes;
use super::outbox::send;
use super::shared::{Shared, Written, failure};
use super::waiter::{WaitGuard, may_wait};
use crate::runtime::{AsActor, ContractBuilder, Delivery, Response, call_to, none, reply_any};

/// Concurrency slots besides those of handlers that wait for tasks.
pub(super) const SLOTS: u32 = 64;
/// Bytes of descriptions in one answer to `list`, so that the answer fits into a message.
pub(super) const LISTED: usize = 128 << 10;

/// The actor of a [`Job`](super::Job), or of a [`JobRegistry`](super::JobRegistry).
pub(super) struct JobActor<I> {
    pub(super) shared: Arc<Shared<I>>,
}

impl<I: Inboxes> JobActor<I> {
    pub(super) const fn new(shared: Arc<Shared<I>>) -> Self {
        Self { shared }
    }

    /// Changes a task for the sender, and replies its status after the change.
    fn act<T: Request<Reply = Changed>>(
        &self,
        delivery: &Delivery<T>,
        id: TaskId,
        action: TaskAction,
    ) -> ResponseFuture<Response> {
        let actor = InboxPrincipal::new(delivery.from().clone());
        let acted = self.shared.act(delivery.thread(), None, |inboxes, now| {
            let (change, status) = inboxes.step(id, |inbox| inbox.apply(&actor, id, action, now)).map_err(failure)?;
            Ok((change, Changed { id, status }))
        });
        Box::pin(async move {
            let (changed, written) = acted?;
            written.durable().await;
            Ok(reply_any(changed))
        })
    }

    /// Takes a task, under the id of the message that submitted it.
    fn submit(&self, submit: &Delivery<Submit>) -> Result<(Submitted, Written), Failure> {
        let read = (**submit).clone().read_context(submit.proof().payload())?;
        let (actor, shared) = (InboxPrincipal::new(submit.from().clone()), &self.shared);
        shared.act(submit.thread(), None, |inboxes, now| {
            shared.may_watch(read.watched).map_err(failure)?;
            if !read.detached {
                may_wait(shared.waiters.load(Ordering::Relaxed), inboxes.limits().open)?;
            }
            let submission = Submission {
                job: read.job.as_ref().map_or_else(|| actor.name().to_string(), Name::to_string),
                description: read.description,
                context: read.context.map(|context| context.into_context()).unwrap_or_default(),
                deadline: read.deadline,
                key: read.key,
                detached: read.detached,
                watched: read.watched,
            };
            let id = TaskId::from_uuid(*submit.id().as_uuid());
            inboxes.take(&actor, read.to.as_ref(), submission, id, now).map_err(failure)
        })
    }
}

/// Adds the payloads that a job accepts and replies to its contract.
pub(super) fn contract<I: Inboxes>(
    contract: ContractBuilder<JobActor<I>, AsActor>,
) -> ContractBuilder<JobActor<I>, AsActor> {
    contract
        .accepts_boot()
        .accepts::<Submit>()
        .accepts::<Get>()
        .accepts::<List>()
        .accepts::<Accept>()
        .accepts::<Progress>()
        .accepts::<ArtifactPayload>()
        .accepts::<InputRequired>()
        .accepts::<Input>()
        .accepts::<Complete>()
        .accepts::<Fail>()
        .accepts::<Reject>()
        .accepts::<Cancel>()
        .replies::<ResultPayload>()
        .replies::<Submitted>()
        .replies::<TaskPayload>()
        .replies::<Tasks>()
        .replies::<Changed>()
}

impl<I: Inboxes> Actor for JobActor<I> {
    type Context = Context<Self>;
}

impl<I: Inboxes> Handler<Delivery<Boot>> for JobActor<I> {
    type Result = ResponseFuture<Response>;

    fn handle(&mut self, boot: Delivery<Boot>, _: &mut Context<Self>) -> Self::Result {
        let shared = self.shared.clone();
        Box::pin(async move {
            let clock = boot.thread().clock()?;
            send(&shared, boot.thread(), &clock).await;
            Ok(none())
        })
    }
}

impl<I: Inboxes> Handler<Delivery<Submit>> for JobActor<I> {
    type Result = ResponseFuture<Response>;

    fn handle(&mut self, submit: Delivery<Submit>, _: &mut Context<Self>) -> Self::Result {
        // Submitted at once, so that tasks keep the order in which they were delivered.
        let submitted = self.submit(&submit).and_then(|(submitted, written)| {
            let place = (!submit.detached).then(|| {
                let submitter = InboxPrincipal::new(submit.from().clone());
                Ok::<_, Failure>(WaitGuard::take(
                    self.shared.clone(),
                    submit.thread().clock()?,
                    submitted.id,
                    submitter,
                ))
            });
            Ok((submitted, written, place.transpose()?))
        });
        let shared = self.shared.clone();
        Box::pin(async move {
            let (submitted, written, place) = submitted?;
            written.durable().await;
            match place {
                Some(place) => wait(&shared, &submit, &place, submitted.id).await,
                None => Ok(reply_any(submitted)),
            }
        })
    }
}

/// Waits for the end of a task, and passes the questions of its owner to its submitter.
async fn wait<I: Inboxes>(
    shared: &Arc<Shared<I>>,
    submit: &Delivery<Submit>,
    place: &WaitGuard<I>,
    id: TaskId,
) -> Response {
    let clock = submit.thread().clock()?;
    let submitter = submit.from();
    let mut asked = 0;
    loop {
        if let Some(result) = place.waiter.ended.get() {
            return Ok(reply_any(result.clone()));
        }
        let question = shared.read(id, |task| {
            if task.is_forgotten() {
                let why = "the task of that key has ended, and its result is forgotten: submit it under a new key";
                return Err(Err(Failure::new(why)));
            }
            if task.status.is_ended() {
                // The task had ended before: a submission under the same key.
                return Err(Ok(reply_any(ResultPayload::from(task))));
            }
            let open = task.open_question().filter(|open| open.number > asked);
            Ok(open.map(|open| (open.number, open.question.clone())))
        });
        let question = match question.map_err(failure)? {
            Ok(question) => question,
            Err(response) => return response,
        };
        let question = question.filter(|_| shared.sends().questions && place.is_first());
        let Some((number, text)) = question else {
            submit.thread().reattached();
            submit.thread().waits_elsewhere();
            place.waiter.news.notified().await;
            continue;
        };
        asked = number;
        let mut answer = submit.thread().call_any(call_to(submitter.as_str(), Question { id, number, text }));
        let answered = loop {
            submit.thread().waits_elsewhere();
            tokio::select! {
                answered = &mut answer => break Some(answered),
                () = place.waiter.news.notified() => {
                    let open = |task: &Task| task.open_question().is_some_and(|open| open.number == number);
                    if shared.read(id, open) != Ok(true) {
                        break None;
                    }
                }
            }
        };
        // A submitter that takes no questions, or fails, may still answer by a message; the task waits for it.
        if let Some(Ok(answered)) = answered
            && let Ok(input) = answered.decode::<Input>()
        {
            shared.answer(&InboxPrincipal::new(submitter.clone()), id, number, &input.text, clock.now());
        }
        answer.forget();
    }
}

macro_rules! transitions {
    ($($payload:ident: |$given:ident| $action:expr;)*) => {
        $(impl<I: Inboxes> Handler<Delivery<$payload>> for JobActor<I> {
            type Result = ResponseFuture<Response>;

            fn handle(&mut self, $given: Delivery<$payload>, _: &mut Context<Self>) -> Self::Result {
                let action = $action;
                self.act(&$given, $given.id, action)
            }
        })*
    };
}

transitions! {
    Accept: |given| TaskAction::Accept;
    Progress: |given| TaskAction::Progress { percent: given.percent, text: given.text.clone() };
    ArtifactPayload: |given| TaskAction::Artifact(part(&given));
    InputRequired: |given| TaskAction::Ask(given.text.clone());
    Input: |given| TaskAction::Answer(given.text.clone());
    Complete: |given| TaskAction::Complete(given.text.clone());
    Fail: |given| TaskAction::Fail(given.text.clone());
    Reject: |given| TaskAction::Reject(given.text.clone());
    Cancel: |given| TaskAction::Cancel(given.text.clone());
}

fn part(given: &ArtifactPayload) -> ArtifactPart {
    ArtifactPart { name: given.name.clone(), text: given.text.clone(), append: given.append, last: given.last }
}

impl<I: Inboxes> Handler<Delivery<Get>> for JobActor<I> {
    type Result = Response;

    fn handle(&mut self, get: Delivery<Get>, _: &mut Context<Self>) -> Response {
        let kept = self.shared.lock();
        let inbox = kept.inboxes.holding(get.id).map_err(failure)?;
        // Tasks of other parties are reported as unknown.
        let task = inbox.get(get.id).ok().filter(|task| inbox.concerns(task, get.from()) && !task.is_forgotten());
        let task = task.ok_or(InboxError::Unknown { id: get.id }).map_err(failure)?;
        Ok(reply_any(TaskPayload::from(task).write()?))
    }
}

impl<I: Inboxes> Handler<Delivery<List>> for JobActor<I> {
    type Result = Response;

    fn handle(&mut self, list: Delivery<List>, _: &mut Context<Self>) -> Response {
        let kept = self.shared.lock();
        let inbox = kept.inboxes.of(list.job.as_ref()).map_err(failure)?;
        let wanted = |task: &&Task| {
            let status = list.status.map_or(!task.status.is_ended(), |status| task.status == status);
            status && list.after.is_none_or(|after| task.place > after) && inbox.concerns(task, list.from())
        };
        let (tasks, behind) = page(inbox.tasks().filter(wanted), usize::MAX, LISTED, |task| size(task));
        let more = u32::try_from(behind.count()).unwrap_or(u32::MAX);
        Ok(list.reply(Tasks { more, brief: tasks.into_iter().map(Brief::from).collect() }))
    }
}

/// Returns a lower bound of a task's size in a list: its attributes, and a description without escaped characters.
fn size(task: &Task) -> usize {
    const ATTRIBUTES: usize = 512;
    ATTRIBUTES + task.description.len()
}
