//! Model outputs with their intended meaning: `NAME.txt` beside `NAME.meant.xml`, or beside `NAME.refused`, which
//! contains a part of the refusal.

use std::fs;

use systole_xml::ladder::properties;

use super::files::{beside, inputs, run, shape};
use super::meaning;

/// The share that is repaired as intended; a change may only raise it.
const REACHED: f64 = 137.0 / 140.0;

#[test]
fn corpus_of_model_outputs() {
    let cases = inputs("corpus/repair", ".txt");
    let total = cases.len();
    let mut misses = Vec::new();
    for (name, path) in cases {
        let raw = fs::read(&path).expect("a readable file");
        properties::repair(&raw);
        let shape = shape(&name);
        let meant = fs::read(beside(&path, &name, ".meant.xml"));
        let refused = fs::read_to_string(beside(&path, &name, ".refused"));
        match (run(raw, shape), meant, refused) {
            (Ok(repaired), Ok(meant), Err(_)) => {
                let meant = meaning::of(&meant, shape).unwrap_or_else(|error| panic!("{name}.meant.xml: {error}"));
                let actual = meaning::of(repaired.bytes(), shape);
                if actual.as_ref() != Ok(&meant) {
                    misses.push(format!("{name}:\n  meant {meant}\n  got   {actual:?}"));
                }
            }
            (Err(error), Err(_), Ok(refused)) => {
                if !error.to_string().contains(refused.trim()) {
                    misses.push(format!("{name}: refused, but for another reason: {error}"));
                }
            }
            (Ok(repaired), Err(_), Ok(_)) => misses.push(format!("{name}: not refused: {:?}", repaired.bytes())),
            (Err(error), Ok(_), Err(_)) => misses.push(format!("{name}: refused: {error}")),
            (_, _, _) => panic!("{name}: write either {name}.meant.xml or {name}.refused"),
        }
    }
    let share = (total - misses.len()) as f64 / total as f64;
    println!(
        "{} of {total} model outputs are repaired to what was meant ({:.1} %)",
        total - misses.len(),
        share * 100.0
    );
    misses.iter().for_each(|miss| println!("{miss}"));
    assert!(total >= 140, "the corpus shrank to {total}");
    assert!(share >= REACHED, "{share} is less than the {REACHED} that was reached:\n{}", misses.join("\n"));
}
