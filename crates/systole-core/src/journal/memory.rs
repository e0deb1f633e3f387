//! A journal in memory, for tests.

use std::collections::{BTreeMap, BTreeSet};

use super::mail::{AddresseeRecord, AgentRecord, MailRecord, MailStatus, OpenMail};
use super::{
    AppendError, Batch, Durability, FanId, FanOutcome, FanRecord, Heads, Journal, JournalError, MessageRecord, Number,
    Op, OrdinalRecord, Owner, PausedRecord, Recovered, Step, Tail, ThreadRecord, epoch_of,
};
use super::{BudgetRecord, EgressRecord, LetterRecord, NoteRecord, RememberedRecord, StateRecord, TaskRecord};
use crate::vocab::{Name, Partitions, TaskId, Time};

/// A journal in memory, which survives the core that wrote it, and nothing else: the duties of a store, without a file.
///
/// Tests crash a core by throwing it away and starting another one from the same journal.
#[derive(Debug, Clone, Default)]
pub struct MemoryJournal {
    key: [u8; 32],
    epoch: u32,
    running: bool,
    heads: Heads,
    threads: BTreeMap<Number, ThreadRecord>,
    /// The greatest ordinals of children, by parent and listener.
    ordinals: BTreeMap<(Number, Name), u32>,
    budgets: BTreeMap<Number, BudgetRecord>,
    fans: BTreeMap<FanId, FanRecord>,
    messages: BTreeMap<Number, MessageRecord>,
    notes: BTreeMap<(Number, u32), NoteRecord>,
    remembered: BTreeMap<Number, RememberedRecord>,
    egress: BTreeMap<Number, EgressRecord>,
    letters: BTreeMap<Number, LetterRecord>,
    tasks: BTreeMap<(Name, TaskId), TaskRecord>,
    states: BTreeMap<Name, StateRecord>,
    redrive: BTreeSet<Number>,
    mail: BTreeMap<Number, (MailRecord, MailStatus)>,
    last_mail: Number,
    agents: BTreeMap<Name, AgentRecord>,
    addressees: BTreeMap<Name, AddresseeRecord>,
    paused: BTreeMap<Name, Time>,
}

impl MemoryJournal {
    /// An empty journal of an organism with that secret.
    pub fn new(key: [u8; 32]) -> Self {
        Self { key, ..Self::default() }
    }

    /// Marks a dead letter, as an operator does while the organism is stopped; `false` if there is none.
    pub fn redrive(&mut self, letter: Number) -> bool {
        self.letters.contains_key(&letter) && {
            self.redrive.insert(letter);
            true
        }
    }

    /// Appends steps to the log of what lives beside the cores, wherever it ends: for tests without owners.
    ///
    /// # Errors
    /// As [`append`](Journal::append).
    pub fn write(&mut self, steps: &[Step]) -> Result<(), JournalError> {
        Ok(self.append(&Batch::of(self.heads.beside(), steps.to_vec()))?)
    }

    fn apply(&mut self, op: &Op) {
        self.epoch = op.number().map_or(self.epoch, |number| self.epoch.max(epoch_of(number)));
        match op {
            Op::Open(thread) => {
                if let (Some(parent), Owner::Listener(listener)) = (thread.parent, &thread.owner) {
                    let last = self.ordinals.entry((parent, listener.clone())).or_default();
                    *last = thread.ordinal.max(*last);
                }
                self.threads.insert(thread.number, thread.clone());
            }
            Op::Owes { thread, opened_by, reply_to } => {
                if let Some(thread) = self.threads.get_mut(thread) {
                    (thread.opened_by, thread.reply_to) = (*opened_by, *reply_to);
                }
            }
            Op::Left { thread } => {
                if let Some(thread) = self.threads.get_mut(thread) {
                    thread.left = true;
                }
            }
            Op::Close { thread } => self.close_thread(*thread),
            Op::Budget(budget) => {
                self.budgets.insert(budget.thread, *budget);
            }
            Op::Put(message) => {
                self.messages.insert(message.number, message.clone());
            }
            Op::Done { message } | Op::Cancelled { message } => self.forget_message(*message),
            Op::Attempt { message, attempts } => {
                if let Some(message) = self.messages.get_mut(message) {
                    message.attempts = *attempts;
                }
            }
            Op::Fan(fan) => {
                self.fans.insert(fan.id, fan.clone());
            }
            Op::Delivered { fan, count } => self.with_fan(*fan, |fan| fan.delivered = *count),
            Op::CountedOff { fan, count } => self.with_fan(*fan, |fan| fan.counted_off = *count),
            Op::Settled { fan, settled } => self.with_fan(*fan, |fan| {
                if let Some(call) = &mut fan.call {
                    call.settled.push(settled.clone());
                }
            }),
            Op::Decided { fan, order, result } => {
                let outcome = FanOutcome::Decided { order: *order, result: result.clone() };
                self.conclude(*fan, outcome);
            }
            Op::Dropped { fan } => self.conclude(*fan, FanOutcome::Dropped),
            Op::Forgotten { fan } => {
                self.fans.remove(fan);
            }
            Op::Note(note) => {
                if self.messages.contains_key(&note.message) {
                    self.notes.insert((note.message, note.index), note.clone());
                }
            }
            Op::Remember(remembered) => {
                self.remembered.insert(remembered.number, remembered.clone());
            }
            Op::Forget { thread, before } => {
                self.remembered.retain(|number, entry| entry.thread != *thread || number >= before);
            }
            Op::ForgetBetween { thread, after, before } => {
                self.remembered.retain(|number, entry| entry.thread != *thread || number <= after || number >= before);
            }
            Op::Leave(egress) => {
                self.egress.insert(egress.number, egress.clone());
            }
            Op::Read { egress } => {
                self.egress.remove(egress);
            }
            Op::Letter(letter) => {
                self.letters.insert(letter.number, letter.clone());
            }
            Op::LetterGone { letter } => {
                self.letters.remove(letter);
                self.redrive.remove(letter);
            }
            Op::Unmark { letter } => {
                self.redrive.remove(letter);
            }
            Op::Task(task) => {
                self.tasks.insert((task.inbox.clone(), task.id), task.clone());
            }
            Op::TaskGone { inbox, id } => {
                self.tasks.remove(&(inbox.clone(), *id));
            }
            Op::State(state) => {
                self.states.insert(state.listener.clone(), state.clone());
            }
            Op::Mail(mail, status) => {
                self.last_mail = self.last_mail.max(mail.seq);
                if self.mail.values().all(|(known, _)| known.id != mail.id) {
                    self.mail.insert(mail.seq, (mail.clone(), status.clone()));
                }
            }
            Op::MailStatus { seq, status } => {
                if let Some((_, known)) = self.mail.get_mut(seq) {
                    *known = status.clone();
                }
            }
            Op::MailMoved { from, to, status } => {
                if let Some((mail, _)) = self.mail.remove(from) {
                    self.last_mail = self.last_mail.max(*to);
                    self.mail.insert(*to, (MailRecord { seq: *to, ..mail }, status.clone()));
                }
            }
            Op::MailGone { seq } => {
                self.mail.remove(seq);
            }
            Op::Agent(agent) => {
                self.agents.insert(agent.name.clone(), agent.clone());
            }
            Op::Addressee(addressee) => {
                self.addressees.insert(addressee.mailbox.clone(), addressee.clone());
            }
            Op::Paused { listener, since: Some(since) } => {
                self.paused.insert(listener.clone(), *since);
            }
            Op::Paused { listener, since: None } => {
                self.paused.remove(listener);
            }
            // A start takes up no submission, and no act.
            Op::Submitted(_) | Op::Acted(_) => {}
        }
    }

    fn with_fan(&mut self, fan: FanId, change: impl FnOnce(&mut FanRecord)) {
        if let Some(fan) = self.fans.get_mut(&fan) {
            change(fan);
            if fan.call.is_none() && fan.delivered + fan.counted_off >= fan.total {
                let id = fan.id;
                self.fans.remove(&id);
            }
        }
    }

    fn conclude(&mut self, fan: FanId, outcome: FanOutcome) {
        self.with_fan(fan, |fan| {
            if let Some(call) = &mut fan.call {
                call.outcome = outcome;
            }
        });
    }

    fn forget_message(&mut self, message: Number) {
        self.messages.remove(&message);
        self.notes.retain(|(of, _), _| *of != message);
        // Calls of a response outlive the message that made them, awaited ones don't.
        self.fans.retain(|id, fan| id.message != message || fan.call.is_none());
    }

    fn close_thread(&mut self, thread: Number) {
        self.threads.remove(&thread);
        self.ordinals.retain(|(parent, _), _| *parent != thread);
        self.budgets.remove(&thread);
        let of_it: BTreeSet<_> =
            self.messages.values().filter(|message| message.thread == thread).map(|message| message.number).collect();
        of_it.into_iter().for_each(|message| self.forget_message(message));
        self.fans.retain(|_, fan| fan.thread != thread);
        self.remembered.retain(|_, entry| entry.thread != thread);
    }
}

impl Journal for MemoryJournal {
    fn durability(&self) -> Option<Durability> {
        None
    }

    fn may_block(&self) -> bool {
        false
    }

    fn append(&mut self, batch: &Batch) -> Result<(), AppendError> {
        self.heads.check(batch.tails())?;
        batch.steps().iter().flat_map(|step| &step.ops).for_each(|op| self.apply(op));
        self.heads.advance(batch.tails());
        Ok(())
    }

    fn recover(&mut self) -> Result<Recovered, JournalError> {
        self.epoch += 1;
        self.heads = Heads::begin(self.epoch);
        let crashed = std::mem::replace(&mut self.running, true);
        Ok(self.read(crashed))
    }

    fn adopt(&mut self, partitions: &Partitions) -> Result<Recovered, JournalError> {
        self.epoch += 1;
        let crashed = self.heads.adopt(*partitions, self.epoch);
        Ok(self.read(crashed).split(&[*partitions]).pop().unwrap_or_default())
    }

    fn release(&mut self, tail: &Tail) -> Result<(), AppendError> {
        self.heads.release(tail)
    }

    fn close(&mut self) -> Result<(), JournalError> {
        self.running = false;
        Ok(())
    }
}

impl MemoryJournal {
    fn read(&self, crashed: bool) -> Recovered {
        let mut messages: Vec<_> = self.messages.values().cloned().collect();
        messages.sort_by_key(|message| message.place);
        let mut tasks: Vec<_> = self.tasks.values().cloned().collect();
        tasks.sort_by(|one, other| (&one.inbox, one.place).cmp(&(&other.inbox, other.place)));
        Recovered {
            key: self.key,
            epoch: self.epoch,
            crashed,
            threads: self.threads.values().cloned().collect(),
            ordinals: self
                .ordinals
                .iter()
                .filter(|((parent, _), _)| self.threads.contains_key(parent))
                .map(ordinal)
                .collect(),
            budgets: self.budgets.values().copied().collect(),
            fans: self.fans.values().cloned().collect(),
            messages,
            notes: self.notes.values().cloned().collect(),
            remembered: self.remembered.values().cloned().collect(),
            egress: self.egress.values().cloned().collect(),
            letters: self.letters.values().cloned().collect(),
            tasks,
            states: self.states.values().cloned().collect(),
            redrive: self.redrive.iter().copied().collect(),
            mail: self.mail.values().filter(|(_, status)| !status.state.is_over()).map(open_mail).collect(),
            last_mail: self.last_mail,
            agents: self.agents.values().cloned().collect(),
            addressees: self.addressees.values().cloned().collect(),
            paused: self.paused.iter().map(paused).collect(),
        }
    }
}

fn ordinal(((parent, listener), last): (&(Number, Name), &u32)) -> OrdinalRecord {
    OrdinalRecord { parent: *parent, listener: listener.clone(), last: *last }
}

fn paused((listener, since): (&Name, &Time)) -> PausedRecord {
    PausedRecord { listener: listener.clone(), since: *since }
}

fn open_mail((mail, status): &(MailRecord, MailStatus)) -> OpenMail {
    OpenMail {
        seq: mail.seq,
        mailbox: mail.mailbox.clone(),
        id: mail.id,
        thread: mail.thread,
        from: mail.from.clone(),
        bytes: mail.envelope.len() as u64,
        at: mail.at,
        status: status.clone(),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use uuid::Uuid;

    use super::*;

    #[test]
    fn tasks_are_replaced_removed_and_given_back_in_order_of_arrival() {
        let mut journal = MemoryJournal::new([0; 32]);
        let task = |inbox: &str, id: u128, place, state: &str| TaskRecord {
            inbox: inbox.parse().unwrap(),
            id: TaskId::from_uuid(Uuid::from_u128(id)),
            place,
            state: state.into(),
            body: Arc::from("{}"),
        };
        let state = |blob: &'static [u8]| {
            Op::State(StateRecord { listener: "b".parse().unwrap(), blob: bytes::Bytes::from_static(blob) })
        };
        let first = task("b", 9, 1, "pending");
        let ops = vec![
            Op::Task(task("b", 1, 2, "pending")),
            Op::Task(first.clone()),
            Op::Task(task("a", 9, 7, "pending")),
            Op::Task(task("b", 1, 2, "accepted")),
            Op::TaskGone { inbox: "a".parse().unwrap(), id: first.id },
            state(b"old"),
            state(b"new"),
        ];
        journal.write(&[Step { ops, ..Step::default() }]).unwrap();
        let recovered = journal.recover().unwrap();
        assert_eq!(recovered.tasks, [first, task("b", 1, 2, "accepted")]);
        assert_eq!(recovered.states.iter().map(|state| &state.blob[..]).collect::<Vec<_>>(), [b"new"]);
    }
}
