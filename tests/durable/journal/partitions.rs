//! Records of some partitions: what a core takes over is what belongs to it, and all of that.

use systole::journal::{JournalReader, SqliteJournal};
use systole::vocab::{Amounts, Budget, Name, Partition, Partitions, ThreadId, Time};
use systole_core::journal::{
    BudgetRecord, EgressRecord, FanId, FanRecord, Journal, LetterRecord, Link, MemoryJournal, MessageRecord,
    NoteRecord, Number, Op, Owner, Recovered, RememberedRecord, Step, ThreadRecord, numbers_after,
};
use uuid::Uuid;

use super::story::{
    Dice, Folder, KEY, content, egress_record, fan_record, letter_record, message_record, name, open, payload, settled,
    thread_record,
};

/// Conversations with all kinds of records, some of them over.
struct Office {
    dice: Dice,
    next: Number,
    now: u64,
}

impl Office {
    fn number(&mut self) -> Number {
        self.next += 1;
        numbers_after(1) + self.next
    }

    fn step(&mut self, ops: Vec<Op>) -> Step {
        self.now += 1;
        Step { ops, at: Time::from_nanos(self.now) }
    }

    /// The steps of one conversation.
    fn conversation(&mut self, n: usize) -> Vec<Step> {
        let id = ThreadId::from_uuid(Uuid::from_u128((n as u128) << 64 | u128::from(self.dice.below(256))));
        let root = self.number();
        let owner = if n.is_multiple_of(11) { Owner::Boot } else { Owner::Client(name(n)) };
        let record =
            |number, parent, id, owner| ThreadRecord { id, parent, root, owner, ..thread_record(number, root, n) };
        let mut ops = vec![Op::Open(record(root, None, id, owner))];
        let (mut parent, mut threads) = (root, Vec::new());
        for depth in 0..1 + n % 3 {
            let number = self.number();
            let id = ThreadId::from_uuid(Uuid::from_u128(u128::from(number)));
            ops.push(Op::Open(record(number, Some(parent), id, Owner::Listener(name(n)))));
            threads.push(number);
            if depth.is_multiple_of(2) {
                let spent = Amounts { calls: n as u64, ..Amounts::default() };
                ops.push(Op::Budget(BudgetRecord { thread: number, budget: Budget::NONE, spent }));
            }
            parent = number;
        }
        let mut steps = vec![self.step(ops)];
        for &thread in &threads {
            let message = self.number();
            let id = FanId { message, call: n.is_multiple_of(2).then_some(1) };
            let mut ops = vec![
                Op::Put(MessageRecord { place: message, ..message_record(message, thread, n) }),
                Op::Fan(FanRecord { thread, id, ..fan_record(id, thread, n) }),
                Op::Note(NoteRecord { message, index: 0, name: "now".into(), value: "1".into() }),
                Op::Remember(RememberedRecord {
                    number: self.number(),
                    thread,
                    place: 1,
                    link: Link::Answers(7),
                    from: name(n),
                    payload: payload(n),
                }),
            ];
            if id.call.is_some() {
                ops.push(Op::Settled { fan: id, settled: settled(n) });
            }
            steps.push(self.step(ops));
            if self.dice.below(3) == 0 {
                let done = Op::Done { message };
                steps.push(self.step(vec![done]));
            }
        }
        let (egress, letter) = (self.number(), self.number());
        steps.push(self.step(vec![
            Op::Leave(EgressRecord { root: id, ..egress_record(egress, n) }),
            Op::Letter(LetterRecord { partition: Partition::of(id), ..letter_record(letter, n) }),
        ]));
        if self.dice.below(4) == 0 {
            let closed = threads.into_iter().rev().chain([root]).map(|thread| Op::Close { thread }).collect();
            steps.push(self.step(closed));
        }
        steps
    }
}

fn full(folder: &Folder) -> (SqliteJournal, MemoryJournal) {
    let (mut store, mut memory) = (open(&folder.journal()), MemoryJournal::new(KEY));
    assert_eq!(store.recover().unwrap(), memory.recover().unwrap());
    let mut office = Office { dice: Dice::new(8), next: 0, now: 0 };
    for n in 0..120 {
        let steps = office.conversation(n);
        store.write(&steps).unwrap();
        memory.write(&steps).unwrap();
    }
    let marked = memory.recover().unwrap().letters.into_iter().step_by(3).map(|letter| letter.number);
    for letter in marked {
        assert!(memory.redrive(letter) && store.redrive_letter(letter, &Name::system(), Time::default()).unwrap());
    }
    store.recover().unwrap();
    (store, memory)
}

/// Counts the records that belong to conversations.
fn count(recovered: &Recovered) -> [usize; 8] {
    [
        recovered.threads.len(),
        recovered.messages.len(),
        recovered.budgets.len(),
        recovered.fans.len(),
        recovered.notes.len(),
        recovered.remembered.len(),
        recovered.egress.len(),
        recovered.letters.len() + recovered.redrive.len(),
    ]
}

#[test]
fn partitions_that_are_taken_over_are_read_alone_and_whole() {
    let folder = Folder::new();
    let (mut store, mut memory) = full(&folder);
    let whole = memory.recover().unwrap();
    for count_of_cores in [1, 2, 7, 256] {
        let mut sum = [0; 8];
        for core in 0..count_of_cores {
            let partitions = Partitions::share(core, count_of_cores);
            let found = content(store.adopt(&partitions).unwrap());
            assert_eq!(found, content(memory.adopt(&partitions).unwrap()), "{core} of {count_of_cores}");
            sum.iter_mut().zip(count(&found)).for_each(|(sum, count)| *sum += count);
        }
        assert_eq!(sum, count(&whole), "{count_of_cores} cores");
    }
    assert!(count(&whole).iter().all(|&count| count > 20), "{:?}", count(&whole));
    assert!(count(&store.adopt(&Partitions::default()).unwrap()).iter().all(|&count| count == 0));
}

#[test]
fn taking_partitions_over_begins_an_epoch_and_changes_no_record() {
    let folder = Folder::new();
    let (mut store, _) = full(&folder);
    let before = content(store.recover().unwrap());
    let first = store.adopt(&Partitions::share(0, 2)).unwrap();
    let second = store.adopt(&Partitions::share(1, 2)).unwrap();
    assert_eq!(second.epoch, first.epoch + 1);
    assert!(first.crashed && second.crashed && first.key == KEY);
    drop(store);
    assert_eq!(JournalReader::open(&folder.journal()).unwrap().verify().unwrap().faults, [""; 0]);
    let after = open(&folder.journal()).recover().unwrap();
    assert_eq!(after.epoch, second.epoch + 1);
    assert_eq!(content(after), before);
}
