//! The verdicts of libxml2 on the schemas of the tables of rules. It judges them in a process of its own, since it
//! hangs on some schemas: this test binary runs itself with [`FIRST`].

use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use systole_xml::schema::oracle::compile_by_libxml;

use super::disagreements::{Disagreement, Disagreements};
use crate::rules;

/// The number of the first schema that a process judges.
const FIRST: &str = "SYSTOLE_LIBXML2_JUDGES_FROM";
/// The start of a line that a process writes about a schema.
const MARK: &str = "verdict: ";
/// The time for one schema: libxml2 takes milliseconds, or never ends.
const PATIENCE: Duration = Duration::from_secs(10);

/// The schemas of the tables: a name, the text, and whether it keeps the rule.
fn schemas() -> Vec<(String, String, bool)> {
    let rows = rules::rows().into_iter().flat_map(|(rule, broken, kept)| {
        [
            (format!("{rule}, broken"), rules::document(&broken), false),
            (format!("{rule}, kept"), rules::document(&kept), true),
        ]
    });
    rows.collect()
}

#[test]
#[ignore = "a process of `libxml2_differs_as_listed` runs it"]
fn judge_by_libxml2() {
    let first = std::env::var(FIRST).expect("the first schema is given").parse().expect("it is a number");
    for (_, text, _) in schemas().into_iter().skip(first) {
        let verdict = compile_by_libxml(&text).err().map_or("accepted".to_owned(), |error| error.replace('\n', " "));
        // The harness keeps what `println` writes until the end of the test.
        let mut out = std::io::stdout();
        writeln!(out, "\n{MARK}{verdict}").and_then(|()| out.flush()).expect("the parent reads");
    }
}

/// The verdicts on the schemas from the first on, in a process that ends with them, hangs or dies.
fn verdicts_from(first: usize) -> (Vec<String>, Option<&'static str>) {
    let mut child = Command::new(std::env::current_exe().expect("the test has a file"))
        .args(["--exact", "oracles::rules::judge_by_libxml2", "--ignored", "--nocapture", "--test-threads=1"])
        .env(FIRST, first.to_string())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("the test can run itself");
    let lines = BufReader::new(child.stdout.take().expect("it is piped")).lines();
    let (tell, told) = mpsc::channel();
    std::thread::spawn(move || {
        for line in lines.map_while(Result::ok) {
            if let Some(verdict) = line.strip_prefix(MARK) {
                // The receiver is gone once the process has taken too long.
                let _ = tell.send(verdict.to_owned());
            }
        }
    });
    let mut verdicts = Vec::new();
    let end = loop {
        match told.recv_timeout(PATIENCE) {
            Ok(verdict) => verdicts.push(verdict),
            Err(end) => break end,
        }
    };
    // The process may have ended just now.
    let _ = child.kill();
    let is_well = child.wait().expect("it has ended").success();
    let why = match end {
        RecvTimeoutError::Timeout => Some("it never ends"),
        RecvTimeoutError::Disconnected if !is_well => Some("it dies"),
        RecvTimeoutError::Disconnected => None,
    };
    (verdicts, why)
}

#[test]
fn libxml2_differs_as_listed() {
    let schemas = schemas();
    let mut verdicts: Vec<String> = Vec::new();
    while verdicts.len() < schemas.len() {
        let (more, why) = verdicts_from(verdicts.len());
        verdicts.extend(more);
        match why {
            Some(why) => verdicts.push(why.to_owned()),
            None => break,
        }
    }
    assert_eq!(verdicts.len(), schemas.len(), "each schema has a verdict");
    let differs = schemas.iter().zip(&verdicts).filter(|((_, _, kept), said)| (said.as_str() == "accepted") != *kept);
    let found: Vec<Disagreement> = differs
        .map(|((case, ..), said)| Disagreement { case: case.clone(), oracle: "libxml2".to_owned(), said: said.clone() })
        .collect();
    println!("{} schemas, {} disagreements", schemas.len(), found.len());
    Disagreements::read("disagreements-rules.txt").assert_are(&found, &["libxml2"]);
}
