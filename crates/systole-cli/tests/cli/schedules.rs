//! Schedules of a process: `kill -9` at any moment neither loses a tick nor doubles it; the commands show what came of each.

use std::collections::BTreeSet;
use std::fs;
use std::process::{Child, Stdio};

use serde_json::Value;
use systole::journal::JournalReader;
use systole_core::vocab::Time;

use crate::kit::waiting::until;
use crate::kit::{Scratch, has};

const ORGANISM: &str = r#"organism: { name: clockwork }
durability: process
journal: the.journal
clients: [{ name: cli, calls: ["{urn:t}say"] }]
schedules:
  - { name: beat, every: 1s, as: cli, missed: all, most_missed: 1000, message: '<say xmlns="urn:t">tick</say>' }
  - { name: daily, cron: "30 8 * * 1-5", zone: Europe/Berlin, as: cli, message: '<say xmlns="urn:t">day</say>' }
listeners:
  - { name: parrot, schemas: [t.xsd], echo: true, accepts: ["{urn:t}say"] }
"#;

const SCHEMA: &str = r#"<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema" targetNamespace="urn:t">
  <xs:element name="say" type="xs:string"/>
</xs:schema>"#;

fn folder(name: &str) -> Scratch {
    let folder = Scratch::new(name);
    fs::write(folder.join("organism.yaml"), ORGANISM).unwrap();
    fs::write(folder.join("t.xsd"), SCHEMA).unwrap();
    folder
}

fn start(folder: &Scratch) -> Child {
    let mut run = folder.systole(&["run", "organism.yaml", "-"]);
    run.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
}

/// The ticks of `beat` that have a message: seconds since 1970, in the order of the journal.
fn ticks(folder: &Scratch) -> Vec<u64> {
    let Ok(reader) = JournalReader::open(&folder.join("the.journal")) else { return Vec::new() };
    let Ok(keys) = reader.keys(&"cli".parse().unwrap(), "schedule/beat/") else { return Vec::new() };
    let second = |key: &str| {
        let tick: Time = key.strip_prefix("schedule/beat/").unwrap().parse().unwrap();
        assert_eq!(tick.as_nanos() % 1_000_000_000, 0, "{key}");
        tick.as_nanos() / 1_000_000_000
    };
    keys.iter().map(|key| second(key)).collect()
}

#[test]
fn each_tick_has_one_message_over_any_number_of_kills() {
    let folder = folder("schedules-killed");
    let mut seen = 0;
    for round in 0..6 {
        let mut child = start(&folder);
        // Killed behind another number of new ticks each time, in the middle of whatever it does.
        let wanted = seen + 1 + round % 3;
        seen = until("ticks in the journal", || Some(ticks(&folder).len()).filter(|count| *count >= wanted));
        child.kill().unwrap();
        child.wait().unwrap();
    }
    let found = ticks(&folder);
    let all: BTreeSet<_> = found.iter().copied().collect();
    assert_eq!(all.len(), found.len(), "no tick twice: {found:?}");
    let (first, last) = (all.first().unwrap(), all.last().unwrap());
    assert_eq!(all.len() as u64, last - first + 1, "no tick lost: {found:?}");
}

#[test]
fn the_commands_show_ticks_and_act_on_a_schedule() {
    let folder = folder("schedules-shown");
    let checked = folder.done(&["check", "organism.yaml"]);
    has(&checked, &["schedules:\n  - name: beat\n    next: [\"20", "- name: daily\n    next: [\"20", "T08:30:00+0"]);
    // Before the first run the times are known, and no tick.
    let listed = folder.done(&["schedule", "list"]);
    has(&listed, &["beat: every 1s, as cli (missed: all, 1000 at most; overlap: allow)\n  next  20", "Europe/Berlin"]);
    let mut child = start(&folder);
    let list = || -> Value { serde_json::from_str(&folder.done(&["schedule", "list", "--json"])).unwrap() };
    until("an answered tick", || {
        let listed = list();
        let ticks = listed[0]["ticks"].as_array()?;
        ticks.iter().any(|tick| tick["outcome"] == "answered").then_some(())
    });
    has(&folder.done(&["schedule", "pause", "beat"]), &["pause-schedule beat: done"]);
    let paused = list();
    assert!(paused[0]["paused"].is_string(), "{paused}");
    has(&folder.done(&["schedule", "run", "daily"]), &["run-schedule daily: done"]);
    has(&folder.done(&["schedule", "list"]), &["  paused since 20", "by hand, "]);
    has(&folder.done(&["audit"]), &["run-schedule", "daily", "opened"]);
    child.kill().unwrap();
    child.wait().unwrap();
    // Of a process that is dead the journal tells, and the pause holds.
    let dead = list();
    assert_eq!((&dead[0]["paused"], &dead[1]["ticks"][0]["by_hand"]), (&paused[0]["paused"], &true.into()), "{dead}");
}
