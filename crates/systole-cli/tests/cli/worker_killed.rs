//! Workers whose processes are killed: their messages run again in others, up to `max_attempts`, and their calls are not
//! made again.

use std::collections::BTreeMap;
use std::fs;
use std::hash::{BuildHasher, Hasher, RandomState};

use rustix::process::{Pid, Signal, kill_process};

use crate::kit::has;
use crate::kit::waiting::{runs, until};
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

/// Numbers by a seed: xorshift64* (<https://doi.org/10.18637/jss.v008.i14>).
struct Dice(u64);

impl Dice {
    /// Takes the seed of `SYSTOLE_SEED`, or draws one, and prints it.
    fn cast() -> Self {
        let drawn = || RandomState::new().build_hasher().finish();
        let seed = std::env::var("SYSTOLE_SEED").map_or_else(|_| drawn(), |seed| seed.parse().unwrap());
        eprintln!("SYSTOLE_SEED={seed} kills the same processes at the same places");
        Self(seed | 1)
    }

    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) as usize % bound
    }
}

/// Kills one of the processes that run.
fn kill(folder: &Folder, dice: &mut Dice) {
    until("a process to kill", || {
        let started = folder.read("started");
        let running: Vec<&str> = started.lines().filter(|pid| runs(pid)).collect();
        let victim = running.get(dice.below(running.len().max(1)))?.parse().unwrap();
        kill_process(Pid::from_raw(victim).unwrap(), Signal::KILL).ok()
    });
}

#[test]
fn messages_run_again_when_their_process_is_killed() {
    const MESSAGES: usize = 120;
    const KILLS: usize = 5;
    let mut dice = Dice::cast();
    for durable in [false, true] {
        let folder = folder(if durable { "again-durable" } else { "again" }, "timeout: 60s, processes: 2");
        // Each kill may hit the same message.
        folder.limit("max_attempts: 6");
        if durable {
            folder.keep();
        }
        let mut places: Vec<usize> = (0..KILLS).map(|_| 10 + dice.below(2 * MESSAGES - 40)).collect();
        places.sort_unstable();
        let mut running = folder.start(&["--until-idle"]);
        (0..MESSAGES).for_each(|n| running.send(&format!("{n}.")));
        for &calls in &places {
            until("calls", || (folder.read("heard").lines().count() >= calls).then_some(()));
            kill(&folder, &mut dice);
        }
        let answers: Vec<String> = (0..MESSAGES).map(|_| running.receive()).collect();
        for n in 0..MESSAGES {
            let expected = format!(">{n}..first+{n}..second</say>");
            let found = answers.iter().filter(|answer| answer.contains(&expected)).count();
            assert_eq!(found, 1, "kills at {places:?}: {n}: {answers:?}");
        }
        assert_eq!(running.end(), (Some(0), String::new()));
        let runs = counts(&folder.read("runs"));
        assert!(runs.len() == MESSAGES && runs.values().all(|&runs| runs <= 1 + KILLS), "{places:?}: {runs:?}");
        assert!(runs.values().any(|&runs| runs > 1), "no kill at {places:?} hit a message");
        let calls = counts(&folder.read("heard"));
        assert!(
            calls.len() == 2 * MESSAGES && calls.values().all(|&calls| calls == 1),
            "kills at {places:?}: a call was made again: {calls:?}"
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
    // The attempts of one message are no reason to rest.
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
