//! Tables of disagreements: lines of `CASE | ORACLE | SECTION | REASON`. Lines that start with `#` are notes.

use std::collections::BTreeSet;
use std::fs;

use super::corpus::folder;

/// A verdict that differs from the expected one.
pub(crate) struct Disagreement {
    /// The name of the instance or the schema.
    pub(crate) case: String,
    /// The name of the oracle.
    pub(crate) oracle: String,
    /// The verdict of the oracle, or its error text.
    pub(crate) said: String,
}

/// The disagreements in a table, as pairs of case and oracle.
pub(crate) struct Disagreements {
    file: &'static str,
    rows: BTreeSet<(String, String)>,
}

impl Disagreements {
    /// Reads a table of the corpus.
    pub(crate) fn read(file: &'static str) -> Self {
        let text = fs::read_to_string(folder().join(file)).unwrap_or_default();
        let lines = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
        let rows = lines.map(|line| {
            let columns: Vec<&str> = line.split('|').map(str::trim).collect();
            match columns.as_slice() {
                [case, oracle, section, reason] if !section.is_empty() && !reason.is_empty() => {
                    ((*case).to_owned(), (*oracle).to_owned())
                }
                _ => panic!("{file}: a line is CASE | ORACLE | SECTION | REASON: {line}"),
            }
        });
        Self { file, rows: rows.collect() }
    }

    /// Fails if a disagreement was found that is not listed, or one is listed for these oracles that was not found.
    pub(crate) fn assert_are(&self, found: &[Disagreement], oracles: &[&str]) {
        let mut wrong = String::new();
        for Disagreement { case, oracle, said } in found {
            if !self.rows.contains(&(case.clone(), oracle.clone())) {
                wrong.push_str(&format!("not listed: {case} | {oracle} | says: {said}\n"));
            }
        }
        for (case, oracle) in self.rows.iter().filter(|(_, oracle)| oracles.contains(&oracle.as_str())) {
            if !found.iter().any(|found| found.case == *case && found.oracle == *oracle) {
                wrong.push_str(&format!("listed, but {oracle} agrees: {case}\n"));
            }
        }
        assert!(wrong.is_empty(), "tests/corpus/xsd/{} is not what was found:\n{wrong}", self.file);
    }
}
