//! Transitions of a task that an inbox holds.

use super::checks;
use super::error::{Field, InboxError, InboxProblem};
use super::event::{InboxChange, TaskEventKind};
use super::principal::InboxPrincipal;
use super::status::{Status, Transition};
use super::store::{Said, TaskInbox};
use super::task::{Artifact, Exchange, Task, TaskProgress};
use crate::vocab::{TaskId, Time};

/// A part of a piece of the result.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ArtifactPart {
    /// The name of the piece.
    pub name: String,
    /// The text of the part; may be empty.
    pub text: String,
    /// True if the part is appended to the earlier parts, false if it replaces them.
    pub append: bool,
    /// True if no other part follows.
    pub last: bool,
}

/// An action of a principal on a task, with its text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TaskAction {
    /// The owner accepts a pending task.
    Accept,
    /// The owner reports progress: in percent, in words, or both.
    Progress {
        /// The percentage that is done.
        percent: Option<u8>,
        /// The words; may be empty.
        text: String,
    },
    /// The owner hands in a piece of the result, or a part of one.
    Artifact(ArtifactPart),
    /// The owner asks the submitter something, and waits.
    Ask(String),
    /// The submitter answers the question.
    Answer(String),
    /// The owner is done, with a result that may be empty.
    Complete(String),
    /// The owner fails the task, with the reason.
    Fail(String),
    /// The owner rejects a pending task, with the reason.
    Reject(String),
    /// The submitter cancels the task; the reason may be empty.
    Cancel(String),
}

impl TaskAction {
    const fn transition(&self) -> Transition {
        match self {
            Self::Accept => Transition::Accept,
            Self::Progress { .. } => Transition::Progress,
            Self::Artifact(_) => Transition::Artifact,
            Self::Ask(_) => Transition::Ask,
            Self::Answer(_) => Transition::Answer,
            Self::Complete(_) => Transition::Complete,
            Self::Fail(_) => Transition::Fail,
            Self::Reject(_) => Transition::Reject,
            Self::Cancel(_) => Transition::Cancel,
        }
    }
}

/// The reason of a task that expired.
const EXPIRED: &str = "its deadline passed";

impl TaskInbox {
    /// Applies an action of a principal to a task.
    ///
    /// # Errors
    /// [`InboxError::NotOwner`] and [`InboxError::NotSubmitter`] for the wrong principal, [`InboxError::Unknown`],
    /// [`InboxError::Transition`] in the wrong status; a text that is empty and may not be, too long, or no XML; too many
    /// questions or pieces; [`InboxProblem::Percent`], [`InboxProblem::ArtifactEnded`], [`InboxProblem::NoArtifact`];
    /// [`InboxError::Full`]; [`InboxProblem::Outbox`] while the submitter takes no events.
    pub fn apply(
        &mut self,
        actor: &InboxPrincipal,
        id: TaskId,
        action: TaskAction,
        now: Time,
    ) -> Result<InboxChange, InboxError> {
        let place = self.possible(actor, id, action.transition())?;
        let limit = self.limits.text_bytes;
        match action {
            TaskAction::Accept => {
                self.may_tell(self.at(place))?;
                Ok(self.step(place, now, said(TaskEventKind::Accepted, ""), |task| {
                    task.status = Status::Accepted;
                    task.attempts += 1;
                }))
            }
            TaskAction::Progress { percent, text } => self.progress(place, percent, text, now),
            TaskAction::Artifact(part) => self.artifact(place, part, now),
            TaskAction::Ask(question) => {
                let more = checks::said(Field::Question, &question, limit)?;
                if self.at(place).questions.len() >= self.limits.questions {
                    return Err(InboxError::TooMany { field: Field::Question, limit: self.limits.questions });
                }
                let change = self.grow(place, more, now)?;
                Ok(self.after(change, place, now, said(TaskEventKind::InputRequired, &question), |task| {
                    task.status = Status::InputRequired;
                    let (number, question) = (task.events + 1, question.clone());
                    task.questions.push(Exchange { number, question, asked: now, answer: None });
                }))
            }
            TaskAction::Answer(answer) => {
                let more = checks::said(Field::Answer, &answer, limit)?;
                self.may_grow(self.at(place), more)?;
                let change = self.make_room(more, now);
                Ok(self.after(change, place, now, said(TaskEventKind::Input, &answer), |task| {
                    task.status = Status::Accepted;
                    if let Some(exchange) = task.questions.last_mut() {
                        exchange.answer = Some(answer.clone());
                    }
                }))
            }
            TaskAction::Complete(result) => {
                checks::text(Field::Result, &result, limit)?;
                Ok(self.step(place, now, said(TaskEventKind::Completed, &result), |task| {
                    end(task, Status::Completed);
                    task.result = Some(result.clone());
                }))
            }
            TaskAction::Fail(reason) => {
                checks::said(Field::Reason, &reason, limit)?;
                Ok(self.end_with(place, (Status::Failed, TaskEventKind::Failed), &reason, now))
            }
            TaskAction::Reject(reason) => {
                checks::said(Field::Reason, &reason, limit)?;
                Ok(self.end_with(place, (Status::Rejected, TaskEventKind::Rejected), &reason, now))
            }
            TaskAction::Cancel(reason) => {
                checks::text(Field::Reason, &reason, limit)?;
                Ok(self.end_with(place, (Status::Cancelled, TaskEventKind::Cancelled), &reason, now))
            }
        }
    }

    fn progress(
        &mut self,
        place: u64,
        percent: Option<u8>,
        text: String,
        now: Time,
    ) -> Result<InboxChange, InboxError> {
        let more = match percent {
            Some(percent) if percent > 100 => return Err(InboxProblem::Percent { percent }.into()),
            Some(_) => checks::text(Field::Progress, &text, self.limits.text_bytes)?,
            None => checks::said(Field::Progress, &text, self.limits.text_bytes)?,
        };
        let change = self.grow(place, more, now)?;
        let said = Said { percent, ..said(TaskEventKind::Progress, &text) };
        Ok(self.after(change, place, now, said, |task| {
            task.progress = Some(TaskProgress { percent, text: text.clone(), at: now });
        }))
    }

    fn artifact(&mut self, place: u64, part: ArtifactPart, now: Time) -> Result<InboxChange, InboxError> {
        let ArtifactPart { name, text, append, last } = part;
        let task = self.at(place);
        let known = task.artifacts.iter().position(|artifact| artifact.name == name);
        let mut more = checks::said(Field::ArtifactName, &name, self.limits.key_bytes)?
            + checks::text(Field::Artifact, &text, self.limits.artifact_bytes)?;
        match known.map(|at| &task.artifacts[at]) {
            Some(artifact) if artifact.ended => return Err(InboxProblem::ArtifactEnded { name }.into()),
            Some(artifact) => {
                let freed = checks::cost(&name) + if append { 0 } else { checks::cost(&artifact.text) };
                more = more.saturating_sub(freed);
            }
            None if append => return Err(InboxProblem::NoArtifact { name }.into()),
            None if task.artifacts.len() >= self.limits.artifacts => {
                return Err(InboxError::TooMany { field: Field::Artifact, limit: self.limits.artifacts });
            }
            None => {}
        }
        checks::within(Field::Artifact, task.artifact_size() + more, self.limits.artifact_bytes)?;
        let change = self.grow(place, more, now)?;
        let event = name.clone();
        Ok(self.after(change, place, now, said(TaskEventKind::Artifact, &event), |task| match known {
            Some(at) => {
                let artifact = &mut task.artifacts[at];
                if !append {
                    artifact.text.clear();
                }
                artifact.text.push_str(&text);
                artifact.ended = last;
            }
            None => task.artifacts.push(Artifact { name, text, ended: last }),
        }))
    }

    /// Makes accepted tasks pending again, at their old places, without progress and without open questions, because
    /// the job was removed or registered anew. The host of the job calls it, no principal.
    pub fn release(&mut self, now: Time) -> InboxChange {
        let accepted = self.tasks().filter(|task| task.status.after(Transition::Release).is_some());
        let places: Vec<_> = accepted.map(|task| task.place).collect();
        let mut change = InboxChange::default();
        for place in places {
            change.append(self.step(place, now, said(TaskEventKind::Released, ""), |task| {
                task.status = Status::Pending;
                task.progress = None;
                task.questions.retain(|exchange| exchange.answer.is_some());
            }));
        }
        change
    }

    /// Fails the open tasks whose deadline has passed, in order of deadline. Until this is called they go on.
    pub fn expire(&mut self, now: Time) -> InboxChange {
        let mut change = InboxChange::default();
        for place in self.expired(now) {
            change.append(self.end_with(place, (Status::Failed, TaskEventKind::Failed), EXPIRED, now));
        }
        change
    }

    /// Acknowledges the events of a detached task up to a number, for its submitter.
    ///
    /// # Errors
    /// [`InboxError::Unknown`].
    pub fn acknowledge(&mut self, id: TaskId, number: u32) -> Result<InboxChange, InboxError> {
        let place = self.place(id)?;
        if self.at(place).outbox.front().is_none_or(|event| event.number > number) {
            return Ok(InboxChange::default());
        }
        self.edit(place, |task| task.outbox.retain(|event| event.number > number));
        Ok(self.saved(id))
    }

    /// Drops the events of a detached task whose submitter will never take them. The submitter may still ask for the
    /// task.
    ///
    /// # Errors
    /// [`InboxError::Unknown`].
    pub fn undeliverable(&mut self, id: TaskId, reason: &str) -> Result<InboxChange, InboxError> {
        const LONGEST: usize = 256;
        let place = self.place(id)?;
        let reason = systole_xml::ladder::escape::carriable(reason).chars().take(LONGEST).collect();
        self.edit(place, |task| {
            task.outbox.clear();
            task.undelivered = Some(reason);
        });
        Ok(self.saved(id))
    }

    fn end_with(
        &mut self,
        place: u64,
        (status, kind): (Status, TaskEventKind),
        reason: &str,
        now: Time,
    ) -> InboxChange {
        self.step(place, now, said(kind, reason), |task| {
            end(task, status);
            task.reason = Some(reason.to_owned());
        })
    }

    /// Makes room for more of a task, or refuses.
    fn grow(&mut self, place: u64, more: usize, now: Time) -> Result<InboxChange, InboxError> {
        self.may_tell(self.at(place))?;
        self.may_grow(self.at(place), more)?;
        Ok(self.make_room(more, now))
    }

    fn after(
        &mut self,
        mut change: InboxChange,
        place: u64,
        now: Time,
        said: Said,
        edit: impl FnOnce(&mut Task),
    ) -> InboxChange {
        change.append(self.step(place, now, said, edit));
        change
    }

    /// The place of a task that the principal may do this to, now: the submitter answers and cancels, the owner does the rest.
    fn possible(&self, actor: &InboxPrincipal, id: TaskId, transition: Transition) -> Result<u64, InboxError> {
        let is_submitters = matches!(transition, Transition::Answer | Transition::Cancel);
        if !is_submitters && self.owner.as_ref() != Some(actor) {
            return Err(InboxError::NotOwner { actor: actor.clone(), transition });
        }
        let task = self.get(id)?;
        if is_submitters && task.source.agent != *actor.name() {
            return Err(InboxError::NotSubmitter { id, actor: actor.clone(), transition });
        }
        match task.status.after(transition) {
            Some(_) => Ok(task.place),
            None => Err(InboxError::Transition { id, from: task.status, transition }),
        }
    }
}

/// The text of an event; none if it is empty.
fn said(kind: TaskEventKind, text: &str) -> Said<'_> {
    Said { kind, percent: None, text: (!text.is_empty()).then_some(text) }
}

fn end(task: &mut Task, status: Status) {
    task.status = status;
    // A question that will never be answered is none.
    task.questions.retain(|exchange| exchange.answer.is_some());
}
