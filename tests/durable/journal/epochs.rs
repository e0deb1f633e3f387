//! Epochs: the numbers of each start, and their end.

use systole::vocab::{MessageId, Name};
use systole_core::journal::{
    BodyRecord, Journal, LAST_EPOCH, MemoryJournal, MessageRecord, MessageState, Number, Op, ReplyTo, Step,
    numbers_after,
};
use uuid::Uuid;

use super::story::{Folder, KEY, open};

fn put(number: Number) -> Step {
    let message = MessageRecord {
        number,
        place: number,
        thread: 1,
        id: MessageId::from_uuid(Uuid::from_u128(number.into())),
        from: Name::core(),
        in_reply_to: None,
        answers: ReplyTo::None,
        state: MessageState::Queued,
        body: BodyRecord::Payload("<a></a>".into()),
        attempts: 0,
    };
    Step { ops: vec![Op::Put(message)], ..Step::default() }
}

#[test]
fn a_start_that_gives_more_numbers_than_an_epoch_has_goes_on_in_the_next() {
    // The last number of the first epoch, and the first of the next.
    for (number, next) in [(numbers_after(2) - 1, 2), (numbers_after(2), 3)] {
        let folder = Folder::new();
        let mut memory = MemoryJournal::new(KEY);
        let mut store = open(&folder.journal());
        assert_eq!((store.recover().unwrap().epoch, memory.recover().unwrap().epoch), (1, 1));
        store.write(&[put(number)]).unwrap();
        memory.write(&[put(number)]).unwrap();
        drop(store);
        let recovered = open(&folder.journal()).recover().unwrap();
        assert_eq!(recovered, memory.recover().unwrap());
        assert_eq!(recovered.epoch, next, "behind number {number:x}");
        assert!(numbers_after(recovered.epoch) > number);
    }
}

#[test]
fn the_last_epoch_is_the_last() {
    let folder = Folder::new();
    let mut store = open(&folder.journal());
    store.recover().unwrap();
    store.write(&[put(numbers_after(LAST_EPOCH))]).unwrap();
    let refusal = store.recover().unwrap_err().to_string();
    assert!(refusal.contains("started too often"), "{refusal}");
    // The last start may outlast its epoch, by far.
    assert!(numbers_after(LAST_EPOCH).checked_add(1 << 47).is_some_and(|last| i64::try_from(last).is_ok()));
}
