//! The table of disagreements: lines of `CASE | ORACLE | SECTION | REASON`. Lines that start with `#` are notes.

use std::collections::BTreeSet;
use std::fs;

use super::corpus::folder;

/// A verdict that differs from the expected one.
pub(crate) struct Disagreement {
    /// The name of the instance.
    pub(crate) case: String,
    /// The name of the oracle.
    pub(crate) oracle: String,
    /// The verdict of the oracle, or its error text.
    pub(crate) said: String,
}

/// The disagreements in the table, as pairs of instance and oracle.
pub(crate) struct Disagreements(BTreeSet<(String, String)>);

impl Disagreements {
    pub(crate) fn read() -> Self {
        let text = fs::read_to_string(folder().join("disagreements.txt")).unwrap_or_default();
        let lines = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
        let rows = lines.map(|line| {
            let columns: Vec<&str> = line.split('|').map(str::trim).collect();
            match columns.as_slice() {
                [case, oracle, section, reason] if !section.is_empty() && !reason.is_empty() => {
                    ((*case).to_owned(), (*oracle).to_owned())
                }
                _ => panic!("disagreements.txt: a line is CASE | ORACLE | SECTION | REASON: {line}"),
            }
        });
        Self(rows.collect())
    }

    /// Fails if a disagreement was found that is not listed, or one is listed for these oracles that was not found.
    pub(crate) fn assert_are(&self, found: &[Disagreement], oracles: &[&str]) {
        let mut wrong = String::new();
        for Disagreement { case, oracle, said } in found {
            if !self.0.contains(&(case.clone(), oracle.clone())) {
                wrong.push_str(&format!("not listed: {case} | {oracle} | says: {said}\n"));
            }
        }
        for (case, oracle) in self.0.iter().filter(|(_, oracle)| oracles.contains(&oracle.as_str())) {
            if !found.iter().any(|found| found.case == *case && found.oracle == *oracle) {
                wrong.push_str(&format!("listed, but {oracle} agrees: {case}\n"));
            }
        }
        assert!(wrong.is_empty(), "tests/corpus/xsd/disagreements.txt is not what was found:\n{wrong}");
    }
}
