//! The table against a model that keeps all, and readers on other threads.

use std::collections::BTreeMap;
use std::sync::Arc;

use proptest::prelude::*;
use systole_core::core::{CoreId, DraftEnd, InvocationId};
use systole_core::vocab::{Limits, MessageId, Name, ThreadId};
use uuid::Uuid;

use super::table::{DraftSource, DraftSubject, Piece, Place, RunId, Table};
use super::{DraftNews, DraftTable};
use crate::runtime::block_on;

const CONVERSATIONS: u64 = 3;

fn root(number: u64) -> ThreadId {
    ThreadId::from_uuid(Uuid::from_u64_pair(1, number))
}

fn run(number: u64) -> RunId {
    RunId { core: CoreId(0), invocation: InvocationId::made_up(number as u32 + 1) }
}

/// The runs take turns among the conversations.
fn source(number: u64) -> Arc<DraftSource> {
    let conversation = root(number % CONVERSATIONS);
    let message = MessageId::from_uuid(Uuid::from_u64_pair(2, number));
    let subject = DraftSubject { conversation, thread: conversation, message };
    Arc::new(DraftSource { subject, listener: Name::parse("writer").unwrap() })
}

#[derive(Debug, Clone)]
enum Step {
    Write {
        run: u64,
        text: String,
    },
    GiveUp {
        run: u64,
        end: DraftEnd,
    },
    Over {
        run: u64,
    },
    ConversationOver {
        of: u64,
    },
    Read {
        reader: usize,
        bytes: usize,
        pieces: usize,
    },
    /// A reader comes back at its place, as over HTTP.
    Resume {
        reader: usize,
    },
}

fn step() -> impl Strategy<Value = Step> {
    let text = prop_oneof!["[a-zé𝄞]{1,12}", "[a-z]{90,140}", "[é𝄞]{200,300}"];
    prop_oneof![
        8 => (0..6u64, text).prop_map(|(run, text)| Step::Write { run, text }),
        2 => (0..6u64, prop_oneof![Just(DraftEnd::Refused), Just(DraftEnd::Retried)])
            .prop_map(|(run, end)| Step::GiveUp { run, end }),
        1 => (0..6u64).prop_map(|run| Step::Over { run }),
        1 => (0..CONVERSATIONS).prop_map(|of| Step::ConversationOver { of }),
        6 => (0..4usize, 1..200usize, 1..5usize)
            .prop_map(|(reader, bytes, pieces)| Step::Read { reader, bytes, pieces }),
        1 => (0..4usize).prop_map(|reader| Step::Resume { reader }),
    ]
}

/// All that was written, and nothing dropped.
#[derive(Debug, Default)]
struct Model {
    /// The whole text of each draft, by number, with its run.
    texts: BTreeMap<u64, (u64, String)>,
    open: BTreeMap<u64, u64>,
    ends: BTreeMap<u64, DraftEnd>,
    numbered: u64,
}

impl Model {
    fn write(&mut self, run: u64, text: &str) {
        let numbered = &mut self.numbered;
        let draft = *self.open.entry(run).or_insert_with(|| {
            *numbered += 1;
            *numbered
        });
        self.texts.entry(draft).or_insert((run, String::new())).1.push_str(text);
    }

    fn end(&mut self, run: u64, end: DraftEnd) {
        if let Some(draft) = self.open.remove(&run) {
            self.ends.insert(draft, end);
        }
    }
}

/// A reader, and what it has of open drafts: the end of each.
struct Reader {
    of: u64,
    place: Place,
    has: BTreeMap<u64, u64>,
}

impl Reader {
    fn read(&mut self, table: &Table, model: &Model, sizes: (usize, usize)) -> Result<usize, TestCaseError> {
        let before = self.place.at;
        let pieces = table.read(root(self.of), &mut self.place, sizes);
        let mut last = 0;
        for (at, piece) in &pieces {
            prop_assert!(*at >= last && *at <= self.place.at, "in order");
            last = *at;
            match piece {
                Piece::Lost => self.has.clear(),
                Piece::Text { of, from, text } => {
                    let (run, whole) = &model.texts[&of.number];
                    prop_assert_eq!(run % CONVERSATIONS, self.of);
                    let has = self.has.entry(of.number).or_default();
                    prop_assert!(*from >= *has, "nothing comes twice: {} at {}", from, has);
                    prop_assert!(*from == *has || table.figures().dropped > 0);
                    prop_assert_eq!(&whole[*from as usize..*from as usize + text.len()], text);
                    *has = from + text.len() as u64;
                }
                Piece::Gone { of, end } => {
                    prop_assert_eq!(model.ends.get(&of.number), Some(end));
                    self.has.remove(&of.number);
                }
            }
        }
        prop_assert!(self.place.at >= before || matches!(pieces.first(), Some((_, Piece::Lost))));
        Ok(pieces.len())
    }
}

proptest! {
    #[test]
    fn readers_get_all_in_order_but_for_what_fell_out(
        steps in prop::collection::vec(step(), 1..120),
        most in 60..400usize,
        most_in_all in 4000..6000usize,
    ) {
        let (mut table, mut model) = (Table::new(most, most_in_all), Model::default());
        let mut readers: Vec<_> = (0..4)
            .map(|n| {
                let of = n % CONVERSATIONS;
                Reader { of, place: table.enter(root(of), None).0, has: BTreeMap::new() }
            })
            .collect();
        for step in steps {
            match step {
                Step::Write { run: number, text } => {
                    table.write(run(number), || source(number), &text);
                    model.write(number, &text);
                }
                Step::GiveUp { run: number, end } => {
                    table.give_up(run(number), end);
                    model.end(number, end);
                }
                Step::Over { run: number } => {
                    table.over(run(number), DraftEnd::Answered);
                    model.end(number, DraftEnd::Answered);
                }
                Step::ConversationOver { of } => {
                    table.conversation_over(root(of));
                    (0..6).filter(|number| number % CONVERSATIONS == of).for_each(|run| model.end(run, DraftEnd::Ended));
                }
                Step::Read { reader, bytes, pieces } => {
                    readers[reader].read(&table, &model, (bytes, pieces))?;
                }
                Step::Resume { reader } => {
                    let reader = &mut readers[reader];
                    table.leave(root(reader.of));
                    reader.place = table.enter(root(reader.of), Some(reader.place.at)).0;
                }
            }
            prop_assert!(table.figures().bytes <= most_in_all);
            prop_assert_eq!(table.figures().drafts, model.open.len());
        }
        for reader in &mut readers {
            while reader.read(&table, &model, (50, 3))? > 0 {}
            let open = model.open.iter().filter(|(run, _)| *run % CONVERSATIONS == reader.of);
            let all: BTreeMap<_, _> = open.map(|(_, draft)| (*draft, model.texts[draft].1.len() as u64)).collect();
            // One that lost its text to others is there, and nothing of it.
            reader.has.retain(|draft, _| all.contains_key(draft) || !model.ends.contains_key(draft));
            for (draft, end) in &reader.has {
                prop_assert!(all.get(draft).is_some_and(|whole| end <= whole));
            }
            let kept = table.read(root(reader.of), &mut Place::from_beginning(), (usize::MAX, usize::MAX));
            let mut shown = BTreeMap::new();
            for (_, piece) in kept {
                if let Piece::Text { of, from, text } = piece {
                    shown.insert(of.number, from + text.len() as u64);
                }
            }
            for (draft, end) in shown {
                prop_assert_eq!((Some(&end), Some(&end)), (all.get(&draft), reader.has.get(&draft)));
            }
        }
        for number in 0..6 {
            table.over(run(number), DraftEnd::Ended);
        }
        readers.iter().for_each(|reader| table.leave(root(reader.of)));
        prop_assert_eq!((table.figures().bytes, table.figures().drafts, table.conversations()), (0, 0, 0));
    }
}

#[test]
fn a_text_that_has_no_room_begins_behind_what_fell_out() {
    let mut table = Table::new(100, 10_000);
    let (mut place, _) = table.enter(root(0), None);
    table.write(run(0), || source(0), &"a".repeat(70));
    table.write(run(0), || source(0), &"b".repeat(70));
    let pieces = table.read(root(0), &mut place, (1000, 10));
    let Some((140, Piece::Text { from, text, .. })) = pieces.first() else { panic!("{pieces:?}") };
    assert_eq!(*from as usize + text.len(), 140);
    assert!((50..=84).contains(&text.len()), "its end, with its mark: {}", text.len());
    table.write(run(0), || source(0), &"c".repeat(1000));
    let pieces = table.read(root(0), &mut place, (1000, 10));
    let Some((1140, Piece::Text { from, .. })) = pieces.first() else { panic!("{pieces:?}") };
    assert!(*from >= 1040, "{from}");
}

#[test]
fn the_oldest_text_falls_out_for_that_of_others() {
    let mut table = Table::new(1 << 20, 200 << 10);
    table.write(run(0), || source(0), &"a".repeat(150 << 10));
    table.write(run(3), || source(3), &"b".repeat(100 << 10));
    let pieces = table.read(root(0), &mut Place::from_beginning(), (usize::MAX, 10));
    let lengths: Vec<_> = pieces
        .iter()
        .map(|(_, piece)| match piece {
            Piece::Text { text, .. } => (text.as_bytes()[0], text.len() >> 10),
            other => panic!("{other:?}"),
        })
        .collect();
    assert!(matches!(lengths[..], [(b'a', 82..=99), (b'b', 100)]), "{lengths:?}");
}

#[test]
fn a_reader_whose_place_is_not_kept_begins_anew() {
    let mut table = Table::new(1000, 100_000);
    let (mut place, _) = table.enter(root(0), None);
    table.write(run(3), || source(3), "kept");
    for _ in 0..5000 {
        table.write(run(0), || source(0), "x");
        table.give_up(run(0), DraftEnd::Retried);
    }
    let pieces = table.read(root(0), &mut place, (1000, 10));
    assert!(
        matches!(&pieces[..], [(_, Piece::Lost), (_, Piece::Text { from: 0, text, .. })] if text == "kept"),
        "{pieces:?}"
    );
    let mut of_another_start = Place::resumed(u64::MAX);
    let pieces = table.read(root(0), &mut of_another_start, (1000, 10));
    assert!(matches!(&pieces[..], [(_, Piece::Lost), (_, Piece::Text { .. })]), "{pieces:?}");
}

#[test]
fn a_slow_reader_and_many_writers_on_other_threads() {
    let drafts = DraftTable::new(&Limits::default().draft_bytes(1 << 10), 7);
    let mut reader = drafts.read(root(0), None);
    let writers: Vec<_> = (0..100).map(|number| (number, drafts.writer())).collect();
    let writers: Vec<_> = writers
        .into_iter()
        .map(|(number, writer)| {
            std::thread::spawn(move || {
                let number = number * CONVERSATIONS;
                (0..200).for_each(|_| writer.write(run(number), || source(number), "word "));
                writer.over(run(number), DraftEnd::Answered);
            })
        })
        .collect();
    writers.into_iter().for_each(|writer| writer.join().unwrap());
    let (mut gone, mut last) = (0, None);
    block_on(async {
        // The last writer has gone, and the organism with it.
        while let Some(record) = reader.next().await {
            assert!(record.cursor.to_string().starts_with("7-"));
            assert!(last.is_none_or(|last| last <= record.cursor.at));
            last = Some(record.cursor.at);
            if let DraftNews::Gone { of, why } = record.news {
                assert_eq!((of.attempt, why), (1, DraftEnd::Answered));
                gone += 1;
            }
        }
    });
    assert_eq!((gone, drafts.figures().bytes), (100, 0));
}

#[test]
fn a_record_is_one_object() {
    let drafts = DraftTable::new(&Limits::default(), 3);
    let (writer, mut reader) = (drafts.writer(), drafts.read(root(0), None));
    writer.write(run(0), || source(0), "<sum");
    writer.give_up(run(0), DraftEnd::Refused);
    writer.write(run(0), || source(0), "<sum/>");
    let mut lines = Vec::new();
    while let Some(record) = reader.try_next() {
        let line = serde_json::to_string(&record).unwrap();
        assert_eq!(serde_json::from_str::<super::DraftRecord>(&line).unwrap(), record);
        lines.push(line);
    }
    let of = |draft: u64| {
        format!(
            r#""draft":{draft},"conversation":"00000000-0000-0001-0000-000000000000","thread":"00000000-0000-0001-0000-000000000000","listener":"writer","message":"00000000-0000-0002-0000-000000000000","attempt":{draft}"#
        )
    };
    assert_eq!(
        lines,
        [
            format!(r#"{{"cursor":"3-5","what":"gone",{},"why":"refused"}}"#, of(1)),
            format!(r#"{{"cursor":"3-11","what":"text",{},"from":0,"text":"<sum/>"}}"#, of(2)),
        ]
    );
    for text in ["", "3", "3-", "-3", "3-+1", "3-1-1", " 3-1", "99999999999-1"] {
        assert!(text.parse::<super::DraftCursor>().is_err(), "{text}");
    }
}
