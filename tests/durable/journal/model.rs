//! The same steps through both journals, with orderly ends, crashes and starts in between.

use proptest::prelude::*;
use systole::journal::{Journal, MemoryJournal};

use super::story::{Folder, KEY, Story, open};

#[derive(Debug, Clone)]
enum Act {
    /// Steps that are appended at once.
    Append(Vec<Vec<(u8, u16)>>),
    /// The tables get all steps.
    Feed,
    /// The process ends in order.
    Close,
    /// The process crashes.
    Crash,
}

fn act() -> impl Strategy<Value = Act> {
    let step = prop::collection::vec(any::<(u8, u16)>(), 0..6);
    prop_oneof![
        12 => prop::collection::vec(step, 0..12).prop_map(Act::Append),
        2 => Just(Act::Feed),
        1 => Just(Act::Close),
        1 => Just(Act::Crash),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn the_store_says_what_memory_says(acts in prop::collection::vec(act(), 1..60)) {
        let folder = Folder::new();
        let mut memory = MemoryJournal::new(KEY);
        let mut store = open(&folder.journal());
        let mut story = Story::default();
        prop_assert_eq!(store.recover().unwrap(), memory.recover().unwrap());
        for act in acts.into_iter().chain([Act::Crash, Act::Close]) {
            match act {
                Act::Append(steps) => {
                    let step = |ops: &Vec<(u8, u16)>| {
                        let mut step = story.step(ops);
                        let later = ops.iter().filter(|(kind, _)| *kind > 150);
                        step.ops.extend(later.map(|&(kind, pick)| story.later(kind, pick)));
                        let budgets = ops.iter().filter(|(kind, _)| *kind < 40);
                        step.ops.extend(budgets.map(|&(_, pick)| story.budget(pick)));
                        let contexts = ops.iter().filter(|(kind, _)| (40..70).contains(kind));
                        step.ops.extend(contexts.map(|&(_, pick)| story.context(pick)));
                        step
                    };
                    let steps: Vec<_> = steps.iter().map(step).collect();
                    store.write(&steps).unwrap();
                    memory.write(&steps).unwrap();
                    continue;
                }
                Act::Feed => {
                    store.feed().unwrap();
                    continue;
                }
                Act::Close => {
                    store.close().unwrap();
                    memory.close().unwrap();
                }
                Act::Crash => {}
            }
            drop(store);
            store = open(&folder.journal());
            prop_assert_eq!(store.recover().unwrap(), memory.recover().unwrap());
        }
    }
}
