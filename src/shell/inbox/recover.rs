use std::collections::HashSet;
use std::sync::Arc;

use super::place::GONE;
use super::shared::Shared;
use crate::inbox::{Change, Principal, Task, TaskInbox};
use crate::journal::{JournalError, Owner, Recovered};
use crate::shell::ledger::{Ledger, Resident};
use crate::vocab::{Name, Time};

impl Resident for Shared {
    /// What the journal holds of a job counts; what it never held is written down.
    fn move_in(self: Arc<Self>, recovered: &Recovered, ledger: Ledger) -> Result<(), JournalError> {
        let now = ledger.now();
        let _ = self.change(|kept| {
            let job = kept.job().clone();
            let mut change = Change::default();
            if recovered.tasks.iter().any(|task| task.inbox == job) {
                kept.inbox = kept.inbox.taken_up(&recovered.tasks).map_err(|error| JournalError {
                    message: format!("the inbox of '{job}' can't be taken up as the journal has it: {error}"),
                })?;
                change.append(cancel_orphans(&mut kept.inbox, recovered, now));
            } else {
                change.append(kept.inbox.all());
            }
            kept.ledger = Some(ledger);
            let state = match recovered.states.iter().find(|state| state.listener == job) {
                Some(state) => {
                    kept.state = Some(state.blob.clone());
                    None
                }
                None => kept.state.clone().map(|state| kept.keep(state)),
            };
            Ok::<_, JournalError>((change, state.into_iter().collect(), ()))
        })?;
        Ok(())
    }
}

/// Cancels the tasks whose submitters went away right before a crash: no message waits for them.
fn cancel_orphans(inbox: &mut TaskInbox, recovered: &Recovered, now: Time) -> Change {
    let waiting: HashSet<_> = recovered.messages.iter().map(|message| *message.id.as_uuid()).collect();
    // Of several who wait for one task by its key, each has a message of its own.
    let others = has_messages(recovered, inbox.job());
    let waited = |task: &Task| waiting.contains(task.id.as_uuid()) || (task.key.is_some() && others);
    let open = inbox.tasks().filter(|task| !task.detached && !task.status.is_ended());
    let orphans: Vec<_> =
        open.filter(|task| !waited(task)).map(|task| (task.id, Principal::new(task.source.agent.clone()))).collect();
    let mut change = Change::default();
    for (id, submitter) in orphans {
        // It is open, and that is its submitter.
        change.append(inbox.cancel(&submitter, id, GONE, now).unwrap_or_default());
    }
    change
}

fn has_messages(recovered: &Recovered, job: &Name) -> bool {
    let of_job = |owner: &Owner| matches!(owner, Owner::Listener(name) if name == job);
    let threads: HashSet<_> =
        recovered.threads.iter().filter(|thread| of_job(&thread.owner)).map(|thread| thread.number).collect();
    recovered.messages.iter().any(|message| threads.contains(&message.thread))
}
