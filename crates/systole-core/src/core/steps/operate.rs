//! Operations: acts of operators on the running organism.
//!
//! An operation goes through the core as any input does: it has an effect or a reason, its changes are written where the organism is
//! durable, and its result goes out when they are.

use super::Core;
use crate::core::blueprint::Party;
use crate::core::entrance::Phase;
use crate::core::faults;
use crate::core::io::{Cancellation, Operation, OperationError, Output};
use crate::journal::{ActRecord, Moment, Op, Recovered};
use crate::vocab::{Partition, ThreadId};

impl Core {
    pub(super) fn operate(&mut self, ticket: u64, operation: Operation, mut act: Option<Box<ActRecord>>) {
        let result = match operation {
            _ if self.entrance.phase == Phase::Stopped => Err(OperationError::Closed),
            // A core that has given its partitions up writes nothing, so an effect here would be none.
            _ if self.step.out.is_sealed() => Err(OperationError::Fenced),
            Operation::Cancel { root, thread, why } => self.cancel_thread(root, thread, why),
            // Its effect, and so its result, comes when it is judged.
            Operation::Redrive { letter, root } => match self.redrive(letter, root, Some((ticket, act.take()))) {
                Ok(()) => return,
                Err(error) => Err(error.into()),
            },
            Operation::Discard { letter } => self.discard_letter(letter).map_err(OperationError::from),
            Operation::Retry { moment, root } => self.retry(*moment, root),
        };
        if let (Ok(()), Some(act)) = (&result, act) {
            self.step.out.write(|| Op::Acted(*act));
        }
        self.step.out.emit(Output::Operated { ticket, result });
    }

    /// Ends a thread as a deadline does, and a conversation call by call: whoever waits for an answer gets a fault.
    fn cancel_thread(&mut self, root: ThreadId, thread: ThreadId, why: Cancellation) -> Result<(), OperationError> {
        let Some(key) = self.root_key(root) else { return Err(OperationError::NotOpen(root)) };
        if thread != root {
            let found = self.tree.with_below(key).find(|&key| self.tree[key].id == thread);
            let found = found.ok_or(OperationError::NotOpen(thread))?;
            self.fail(found, faults::cancelled_by(why));
            return Ok(());
        }
        let mut calls = Vec::new();
        self.tree.children_of(key, &mut calls);
        for call in calls {
            // The end of one may have closed the others.
            if self.tree.threads.contains_key(call) {
                self.fail(call, faults::cancelled_by(why));
            }
        }
        if self.tree.threads.contains_key(key) {
            self.close(key);
        }
        Ok(())
    }

    /// Opens a conversation as a start would that finds it in the journal. Its records are written with this step.
    fn retry(&mut self, moment: Moment, root: ThreadId) -> Result<(), OperationError> {
        if self.entrance.phase >= Phase::Draining {
            return Err(OperationError::Closed);
        }
        if !self.setup.partitions.contains(Partition::of(root)) {
            return Err(OperationError::Fenced);
        }
        if !matches!(self.present.blueprint.party(moment.owner.as_str()), Some(Party::Client(_))) {
            return Err(OperationError::NoClient(moment.owner));
        }
        self.room_in_organism().map_err(OperationError::Full)?;
        let out = &mut self.step.out;
        let ops = moment.renew(&self.setup.key, root, &mut || out.next_number(), self.step.clock.now)?;
        let mut opened = Recovered::default();
        for op in &ops {
            match op {
                Op::Open(thread) => opened.threads.push(thread.clone()),
                Op::Budget(budget) => opened.budgets.push(*budget),
                Op::Fan(fan) => opened.fans.push(fan.clone()),
                Op::Put(message) => opened.messages.push(message.clone()),
                Op::Note(note) => opened.notes.push(note.clone()),
                Op::Remember(entry) => opened.remembered.push(entry.clone()),
                _ => {}
            }
        }
        ops.into_iter().for_each(|op| self.step.out.write(|| op));
        self.recover(opened);
        Ok(())
    }
}
