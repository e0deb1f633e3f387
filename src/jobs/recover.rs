//! Recovery of listeners with tasks.

use std::collections::HashSet;
use std::sync::Arc;

use systole_core::inbox::{InboxChange, InboxPrincipal, Task, TaskAction, TaskInbox};
use systole_core::journal::{JournalError, JournalErrorKind, Owner, Recovered};
use systole_core::vocab::{Name, Time};

use super::inboxes::Inboxes;
use super::shared::Shared;
use super::waiter::GONE;
use crate::runtime::{JournalAppender, Recoverable};

impl<I: Inboxes> Recoverable for Shared<I> {
    /// Replaces the inboxes by the journal's records; inboxes without records are written to the journal.
    fn move_in(self: Arc<Self>, recovered: &Recovered, appender: JournalAppender) -> Result<(), JournalError> {
        let now = appender.now();
        let _ = self.change(|kept| {
            let mut change = InboxChange::default();
            let inboxes = kept.inboxes.recovered(&self.name, recovered).map_err(|error| {
                let message = format!("the inbox of '{}' can't be recovered from the journal: {error}", self.name);
                JournalError::new(JournalErrorKind::Damaged, message)
            })?;
            if let Some(inboxes) = inboxes {
                kept.enrolled = inboxes.revision();
                kept.inboxes = inboxes;
                change.append(cancel_orphans(&mut kept.inboxes, &self.name, recovered, now));
            } else {
                kept.inboxes.inboxes().for_each(|inbox| change.append(inbox.all()));
            }
            kept.appender = Some(appender);
            let state = match recovered.states.iter().find(|state| state.listener == self.name) {
                // The state of a registry is its directory.
                Some(_) if kept.inboxes.directory().is_some() => None,
                Some(state) => {
                    kept.state = Some(state.blob.clone());
                    None
                }
                None => kept.state.clone().map(|state| kept.keep(&self.name, state)),
            };
            Ok::<_, JournalError>((change, state.into_iter().collect(), ()))
        })?;
        Ok(())
    }
}

/// Cancels tasks whose submitters went away right before a crash: no message waits for them.
fn cancel_orphans(inboxes: &mut impl Inboxes, listener: &Name, recovered: &Recovered, now: Time) -> InboxChange {
    let waiting: HashSet<_> = recovered.messages.iter().map(|message| *message.id.as_uuid()).collect();
    // Each of several submitters that wait for one task by its key has a message of its own.
    let others = has_messages(recovered, listener);
    let waited = |task: &Task| waiting.contains(task.id.as_uuid()) || (task.key.is_some() && others);
    let open = inboxes.inboxes().flat_map(TaskInbox::tasks).filter(|task| !task.detached && !task.status.is_ended());
    let orphans: Vec<_> = open
        .filter(|task| !waited(task))
        .map(|task| (task.id, InboxPrincipal::new(task.source.agent.clone())))
        .collect();
    let mut change = InboxChange::default();
    for (id, submitter) in orphans {
        // The task is open and was submitted by that principal, so this succeeds.
        let cancelled = inboxes
            .holding_mut(id)
            .and_then(|inbox| inbox.apply(&submitter, id, TaskAction::Cancel(GONE.to_owned()), now));
        change.append(cancelled.unwrap_or_default());
    }
    change
}

fn has_messages(recovered: &Recovered, listener: &Name) -> bool {
    let of_listener = |owner: &Owner| matches!(owner, Owner::Listener(name) if name == listener);
    let threads: HashSet<_> =
        recovered.threads.iter().filter(|thread| of_listener(&thread.owner)).map(|thread| thread.number).collect();
    recovered.messages.iter().any(|message| threads.contains(&message.thread))
}
