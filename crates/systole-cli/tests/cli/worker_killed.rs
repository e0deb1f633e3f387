//! Workers whose processes are killed: their messages run again in others, up to `max_attempts`, and their calls are not
//! made again.

use std::collections::BTreeMap;
use std::fs;

use rustix::process::{Pid, Signal, kill_process};

use crate::kit::has;
use crate::kit::waiting::until;
use crate::kit::worker::Folder;

/// A worker that notes each run of a message, makes two calls, and says what came. The text of a payload is its command.
const AGENT: &str = r#"
import json, os, re, signal, sys
out = os.fdopen(int(os.environ["SYSTOLE_WORKER"]), "w")
def note(file, text):
    with open(file, "a") as notes:
        notes.write(text + "\n")
def write(**line):
    out.write(json.dumps(line) + "\n")
    out.flush()
def content(xml):
    return re.sub("<.*?>", "", xml)
def call(id, text, label):
    write(id=id, call=f"<ask xmlns='urn:t'>{text}</ask>", **{"as": label})
def die():
    os.kill(os.getpid(), signal.SIGKILL)
note("started", str(os.getpid()))
texts, heard = {}, {}
for line in sys.stdin:
    line = json.loads(line)
    if "ping" in line:
        write(pong=line["ping"])
    elif "as" in line:
        id, text = line["id"], texts[line["id"]]
        heard[id].append(content(line["reply"]))
        if text == "fickle" and not os.path.exists("died"):
            note("died", "")
            die()
        if text == "long" and len(heard[id]) == 2:
            die()
        if len(heard[id]) == 1:
            call(id, text + ".second" if text != "long" else "x" * 500, "b")
        else:
            write(id=id, payloads=[f"<say xmlns='urn:t'>{'+'.join(heard[id])}</say>"])
    elif "type" in line:
        id, text = line["id"], content(line["payload"])
        texts[id], heard[id] = text, []
        note("runs", text)
        if text == "poison":
            die()
        else:
            call(id, {"fickle": str(os.getpid()), "long": "x" * 500}.get(text, text + ".first"), "a")
"#;

/// The parrot, which notes each call that it gets.
const PARROT: &str = r#"said=$(sed 's/ask/say/g'); echo "$said" >> heard; echo "$said""#;

fn counts(lines: &str) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    lines.lines().for_each(|line| *counts.entry(line.to_owned()).or_default() += 1);
    counts
}

fn folder(name: &str, keys: &str) -> Folder {
    let folder = Folder::new(name, AGENT, keys);
    let file = folder.path().join("organism.yaml");
    let text = fs::read_to_string(&file).unwrap();
    let own = text.replace("[sh, -c, \"sed 's/ask/say/g'\"]", "[sh, parrot.sh]");
    assert_ne!(own, text);
    fs::write(file, own).unwrap();
    fs::write(folder.path().join("parrot.sh"), PARROT).unwrap();
    folder
}

/// Kills the process that was started last, or the one before.
fn kill(folder: &Folder, before: usize) {
    let started = folder.read("started");
    let pid = started.lines().rev().nth(before).or(started.lines().last()).unwrap().parse().unwrap();
    // It may have been killed before.
    let _ = kill_process(Pid::from_raw(pid).unwrap(), Signal::KILL);
}

#[test]
fn messages_run_again_when_their_process_is_killed() {
    const MESSAGES: usize = 120;
    for durable in [false, true] {
        let folder = folder(if durable { "again-durable" } else { "again" }, "timeout: 60s, processes: 2");
        if durable {
            folder.keep();
        }
        let mut running = folder.start(&["--until-idle"]);
        (0..MESSAGES).for_each(|n| running.send(&format!("{n}.")));
        // Five ends within a minute: one more, and the listener would rest.
        for kills in 1..=5 {
            until("calls", || (folder.read("heard").lines().count() > kills * 30).then_some(()));
            kill(&folder, kills % 2);
        }
        let answers: Vec<String> = (0..MESSAGES).map(|_| running.receive()).collect();
        for n in 0..MESSAGES {
            let expected = format!(">{n}..first+{n}..second</say>");
            let found = answers.iter().filter(|answer| answer.contains(&expected)).count();
            assert_eq!(found, 1, "{n}: {answers:?}");
        }
        assert_eq!(running.end(), (Some(0), String::new()));
        let runs = counts(&folder.read("runs"));
        assert!(runs.len() == MESSAGES && runs.values().all(|&runs| runs <= 5), "{runs:?}");
        assert!(runs.values().any(|&runs| runs > 1), "no kill hit a message");
        let calls = counts(&folder.read("heard"));
        assert!(
            calls.len() == 2 * MESSAGES && calls.values().all(|&calls| calls == 1),
            "a call was made again: {calls:?}"
        );
    }
}

#[test]
fn a_message_that_ends_each_process_fails() {
    let folder = folder("poison", "timeout: 60s");
    let mut running = folder.start(&[]);
    has(
        &running.ask("poison"),
        &["listener-failed", "was killed by signal 9, in attempt 5 of 5", "<retryable>true</retryable>"],
    );
    assert_eq!((counts(&folder.read("runs"))["poison"], folder.started()), (5, 5));
    // Five ends are no reason to rest.
    has(&running.ask("one"), &[">one.first+one.second</say>"]);
}

#[test]
fn a_message_that_calls_otherwise_when_it_runs_again_fails() {
    let folder = folder("fickle", "timeout: 60s");
    let mut running = folder.start(&[]);
    has(&running.ask("fickle"), &["listener-failed", "made other calls than before", "<retryable>true</retryable>"]);
    has(&running.ask("one"), &[">one.first+one.second</say>"]);
}

#[test]
fn a_message_whose_answers_are_too_long_to_keep_does_not_run_again() {
    let folder = folder("long", "timeout: 60s");
    let file = folder.path().join("organism.yaml");
    let text = fs::read_to_string(&file).unwrap().replace("message_bytes: 1100000", "message_bytes: 1000");
    fs::write(&file, text).unwrap();
    let mut running = folder.start(&[]);
    has(&running.ask("long"), &["listener-failed", "killed by signal 9</message>", "<retryable>true</retryable>"]);
    assert_eq!(folder.started(), 1);
}
