//! `worker:` with the real program: Python processes that stay, by hand and with the package of `sdk/python`.

use std::fs;
use std::process::{Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::kit::has;
use crate::kit::waiting::{runs, until};
use crate::kit::worker::{Folder, ROOT};

/// A worker by hand: the text of a payload is its command.
const BY_HAND: &str = r#"
import json, os, re, subprocess, sys, threading
out = os.fdopen(int(os.environ["SYSTOLE_WORKER"]), "w")
open("started", "a").write(f"{os.getpid()}\n")
def write(line):
    with writes:
        out.write((line if isinstance(line, str) else json.dumps(line)) + "\n")
        out.flush()
writes = threading.Lock()
def say(line, text):
    write({"id": line["id"], "payloads": [f"<say xmlns='urn:t'>{text}</say>"]})
held, passing, faults = [], {}, {}
for line in sys.stdin:
    line = json.loads(line)
    open("lines", "a").write(json.dumps(line) + "\n")
    if "ping" in line and not os.path.exists("deaf"):
        write({"pong": line["ping"]})
    elif "as" in line and line["id"] in faults:
        faults[line["id"]] -= 1
        if not faults[line["id"]]:
            write({"id": line["id"], "error": "its own words", "as": "0"})
    elif "as" in line and line["id"] in passing:
        write({"id": line["id"], "error": "its own words", "as": passing[line["id"]]})
    elif "as" in line:
        say(line, "<![CDATA[" + re.sub("<.*?>", "", line.get("reply", "")) + json.dumps(line.get("fault", "")) + "]]>")
    elif "type" in line:
        text = re.sub("<.*?>", "", line["payload"])
        if text == "die":
            os.kill(os.getpid(), 9)
        elif text.startswith("line "):
            write(text[5:].replace("ID", line["id"]))
        elif text == "print":
            print("{\"id\": 1}", flush=True)
            print("to the log", file=sys.stderr, flush=True)
            say(line, "printed")
        elif text == "strays":
            for _ in range(1100):
                write({"id": "00000000-0000-0000-0000-000000000000", "error": "x"})
        elif text.startswith("long "):
            write(text[5:].replace("ID", line["id"]).replace("...", "x" * 7_000_000))
        elif text == "endless":
            for _ in range(1700):
                out.write("x" * 65536)
        elif text == "hold":
            held.append(line)
            if len(held) == 3:
                for one in reversed(held):
                    say(one, len(held))
        elif text == "hang":
            pass
        elif text.startswith("late "):
            threading.Timer(0.1, say, (line, text)).start()
        elif text == "hang once":
            if os.path.exists("hung"):
                say(line, text)
            open("hung", "w")
        elif text == "leave":
            sys.exit(0)
        elif text == "bear":
            child = subprocess.Popen(["sleep", "600"], stdin=subprocess.DEVNULL)
            say(line, child.pid)
        elif text.startswith("ask "):
            write({"id": line["id"], "call": text[4:].replace("[", "<").replace("]", ">"), "as": "k"})
        elif text.startswith("pass "):
            _, passing[line["id"]], call = text.split(" ", 2)
            write({"id": line["id"], "call": call.replace("[", "<").replace("]", ">"), "as": "k"})
        elif text == "faults":
            faults[line["id"]] = 200
            for n in range(200):
                write({"id": line["id"], "call": "<other xmlns='urn:t'/>", "as": str(n)})
        elif text == "greedy":
            for n in range(300):
                write({"id": line["id"], "call": "<ask xmlns='urn:t'>hang</ask>", "as": str(n)})
        elif text == "fail":
            write({"id": line["id"], "error": "no luck"})
        elif text == "dirty":
            write({"id": line["id"], "payloads": ["Sure:\n```xml\n<say>R&D</say>\n```"]})
        else:
            say(line, text.upper())
"#;

const PRINTING: &str = r#"
import sys
from systole_sdk import call, listener, run

@listener("{urn:t}do")
async def do(xml: str):
    print("before the call", file=sys.stderr, flush=True)
    await call("<ask xmlns='urn:t'/>")

run()
"#;

#[test]
fn what_a_program_writes_on_standard_error_belongs_to_its_message() {
    let folder = Folder::new("stderr", PRINTING, "");
    let organism = folder.path().join("organism.yaml");
    let failing =
        fs::read_to_string(&organism).unwrap().replace("sed 's/ask/say/g'", "echo from the command >&2; exit 3");
    fs::write(organism, failing).unwrap();
    let mut running = folder.start(&[]);
    has(&running.ask("x"), &["<code>failed</code>"]);
    for (by, text) in [("agent", "before the call"), ("parrot", "from the command")] {
        let said = || {
            let log = folder.read("log");
            let lines = log.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
            lines.into_iter().find(|line| line["event"] == "program-said" && line["by"] == by)
        };
        let said = until(&format!("the words of {by}"), said);
        assert!(said["text"].as_str().unwrap().contains(text), "{said}");
        let lines = folder.read("log");
        let lines: Vec<Value> = lines.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
        let line = lines.iter().find(|line| line["event"] == "log" && line["message"] == text).unwrap();
        let delivered =
            lines.iter().find(|line| line["event"] == "delivered" && line["thread"] == said["thread"]).unwrap();
        assert_eq!((&line["listener"], &line["thread"]), (&by.into(), &said["thread"]), "{line}");
        assert_eq!((&line["message_id"], &line["trace"]), (&delivered["message"], &delivered["trace"]), "{line}");
    }
    let warned = folder.read("log");
    let warned = warned.lines().find(|line| line.contains("a command failed")).unwrap();
    has(warned, &["\"thread\":", "\"message_id\":", "\"trace\":"]);
}

#[test]
fn one_process_answers_many_messages() {
    let folder = Folder::new("many", BY_HAND, "timeout: 60s");
    let mut running = folder.start(&["--until-idle"]);
    assert_eq!(folder.started(), 0, "started before its first message");
    has(&running.ask("one"), &[">ONE</say>"]);
    has(&running.ask("dirty"), &[">R&amp;D</say>"]);
    has(&running.ask("fail"), &["<code>failed</code>", "no luck"]);
    has(&running.ask("print"), &[">printed</say>"]);
    let big = "x".repeat(1_000_000);
    has(&running.ask(&big), &[&big.to_uppercase()]);
    // Three at once, answered in another order.
    (0..3).for_each(|_| running.send("hold"));
    (0..3).for_each(|_| has(&running.receive(), &[">3</say>"]));
    assert_eq!(folder.started(), 1);
    let lines = folder.read("lines");
    let mut lines = lines.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
    assert_eq!(lines.next().unwrap()["ping"], 1, "each process is asked first whether it has come up");
    let first = lines.next().unwrap();
    assert_eq!((first["type"].as_str(), first["from"].as_str()), (Some("{urn:t}do"), Some("cli")));
    assert!(first["id"].is_string() && first["thread"].is_string() && first.get("history").is_none(), "{first}");
    assert_eq!(running.end().0, Some(1), "a fault was among the answers");
    folder.logs(&["{\\\"id\\\": 1}", "to the log"]);
}

#[test]
fn processes_start_with_the_organism_where_they_are_to() {
    let folder = Folder::new("eager", BY_HAND, "timeout: 60s, processes: 2, start: eager");
    let mut running = folder.start(&["--until-idle"]);
    until("both processes", || (folder.started() == 2).then_some(()));
    has(&running.ask("one"), &[">ONE</say>"]);
    assert_eq!((running.end(), folder.started()), ((Some(0), String::new()), 2));
}

#[test]
fn a_worker_calls_and_awaits() {
    let folder = Folder::new("calls", BY_HAND, "timeout: 60s");
    let mut running = folder.start(&[]);
    has(&running.ask("ask [ask xmlns='urn:t']x[/ask]"), &[">x\"\"</say>"]);
    has(&running.ask("ask [ask xmlns='urn:t']x & y[/ask]"), &[">x &amp;amp; y\"\"</say>"]);
    // Operators see what the worker wrote.
    has(&running.ask("ask Sure: [ask xmlns='urn:t']p[/ask]"), &[">p\"\"</say>"]);
    folder.logs(&["\"repaired\"", "\"text\":\"Sure: <ask xmlns='urn:t'>p</ask>\""]);
    has(&running.ask("ask [other xmlns='urn:t'/]"), &["\"code\": \"route\""]);
    has(&running.ask("ask ]"), &["\"code\": \"malformed\""]);
    // A fault of a call is passed on as it is; another label names none.
    let passed = running.ask("pass k [other xmlns='urn:t'/]");
    has(&passed, &["<code>route</code>", "no listener takes {urn:t}other from its sender"]);
    assert!(!passed.contains("its own words"), "{passed}");
    for (label, call) in [("l", "[other xmlns='urn:t'/]"), ("k", "[ask xmlns='urn:t']x[/ask]")] {
        has(&running.ask(&format!("pass {label} {call}")), &["<code>failed</code>", "its own words"]);
    }
    // The first of many, too.
    has(&running.ask("faults"), &["<code>route</code>", "no listener takes {urn:t}other from its sender"]);
    // More calls than fanout fail the message, not the process.
    has(&running.ask("greedy"), &["<code>limit</code>", "256"]);
    until("the cancellation", || folder.read("lines").contains("\"cancel\"").then_some(()));
    has(&running.ask("one"), &[">ONE</say>"]);
    assert_eq!(folder.started(), 1);
}

#[test]
fn what_breaks_the_protocol_ends_the_process_and_fails_its_message_alone() {
    let folder = Folder::new("broken", BY_HAND, "timeout: 60s");
    folder.limit("max_attempts: 1");
    let mut running = folder.start(&[]);
    for (n, (text, why)) in [
        ("line no JSON", "breaks the protocol"),
        ("line {\"id\":\"ID\"}", "breaks the protocol"),
        ("strays", "breaks the protocol"),
        ("long {\"error\":\"...\",\"id\":\"ID\"}", "breaks the protocol"),
        ("die", "killed by signal 9"),
    ]
    .into_iter()
    .enumerate()
    {
        // The message beside it runs again, alone.
        running.send(&format!("late {n}"));
        running.send(text);
        let mut answers = [running.receive(), running.receive()];
        answers.sort_by_key(|answer| answer.contains("<code>"));
        has(&answers[0], &[&format!(">late {n}</say>")]);
        has(&answers[1], &["<code>listener-failed</code>", "<retryable>true</retryable>", why, "in attempt 1 of 1"]);
    }
    has(&running.ask("one"), &[">ONE</say>"]);
    folder.logs(&["1000 lines in a row", "a worker ended"]);
}

#[test]
fn messages_that_end_their_process_take_no_other_with_them() {
    for (name, keys) in [("many", ""), ("one", ", concurrency: 1"), ("several", ", processes: 3")] {
        let folder = Folder::new(&format!("poison-{name}"), BY_HAND, &format!("timeout: 60s{keys}"));
        folder.keep();
        let mut running = folder.start(&["--until-idle"]);
        (0..40).for_each(|n| match n {
            3 | 7 => running.send("die"),
            _ => running.send(&format!("late {n}")),
        });
        let answers: Vec<String> = (0..40).map(|_| running.receive()).collect();
        for n in (0..40).filter(|n| ![3, 7].contains(n)) {
            let found = answers.iter().filter(|answer| answer.contains(&format!(">late {n}</say>"))).count();
            assert_eq!(found, 1, "{name}, {n}: {answers:?}");
        }
        let failed: Vec<_> = answers.iter().filter(|answer| answer.contains("<code>")).collect();
        assert_eq!(failed.len(), 2, "{failed:?}");
        failed.iter().for_each(|one| has(one, &["<code>listener-failed</code>", "in attempt 5 of 5"]));
        assert_eq!(running.end(), (Some(1), String::new()));
    }
}

/// A worker that says why it ends, in its second run only once a file allows it.
const SAYS_WHY: &str = r#"
import json, os, sys, time
out = os.fdopen(int(os.environ["SYSTOLE_WORKER"]), "w")
for line in sys.stdin:
    line = json.loads(line)
    if "ping" in line:
        print(json.dumps({"pong": line["ping"]}), file=out, flush=True)
    elif "die" in line.get("payload", ""):
        open("runs", "a").write("run\n")
        if len(open("runs").readlines()) == 2:
            continue
        sys.exit("secret of " + line["id"])
    elif "type" in line:
        print(json.dumps({"id": line["id"], "payloads": ["<say xmlns='urn:t'>fine</say>"]}), file=out, flush=True)
"#;

#[test]
fn attempts_are_counted_across_starts_and_operators_learn_what_the_program_said() {
    let folder = Folder::new("attempts", SAYS_WHY, "timeout: 60s, processes: 2");
    folder.limit("max_attempts: 4");
    folder.keep();
    let runs = |n: usize| until("a run", || (folder.read("runs").lines().count() == n).then_some(()));
    let mut running = folder.start(&[]);
    running.send("die");
    runs(2);
    // What came before it is in the journal.
    has(&running.ask("one"), &[">fine</say>"]);
    drop(running);
    // The first run counts, and the second one, which a crash of the organism ended.
    let mut running = folder.start(&["--until-idle"]);
    // Behind a kill, an answer that was read may come again.
    let failed = until("the fault", || Some(running.receive()).filter(|answer| answer.contains("<code>")));
    has(&failed, &["<code>listener-failed</code>", "exited with status 1, in attempt 4 of 4"]);
    runs(4);
    assert!(!failed.contains("secret"), "{failed}");
    folder.logs(&["\"event\":\"program-said\"", "\"text\":\"secret of "]);
    assert_eq!(running.end().0, Some(1));
    let thread = |args: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_systole"));
        command.arg("thread").args(args).args(["--json", "--journal", "the.journal"]).current_dir(folder.path());
        String::from_utf8(command.output().unwrap().stdout).unwrap()
    };
    let listed: serde_json::Value = serde_json::from_str(&thread(&["list"])).unwrap();
    let shown = thread(&["show", listed[0]["conversation"].as_str().unwrap()]);
    has(&shown, &["\"standard-error\"", "secret of "]);
}

#[test]
fn a_line_that_is_too_long_fails_its_message_alone() {
    let folder = Folder::new("long", BY_HAND, "timeout: 60s");
    folder.limit("max_attempts: 1");
    let mut running = folder.start(&[]);
    (0..2).for_each(|_| running.send("hold"));
    for line in ["{\"id\":\"ID\",\"payloads\":[\"...\"]}", "{ \"id\" : \"ID\", \"call\":\"...\",\"as\":\"k\"}"] {
        let said = running.ask(&format!("long {line}"));
        has(&said, &["<code>limit</code>", "the listener wrote a line of 70000", "a line has at most 6604096"]);
    }
    until("the cancellation", || folder.read("lines").contains("\"cancel\"").then_some(()));
    running.send("hold");
    (0..3).for_each(|_| has(&running.receive(), &[">3</say>"]));
    assert_eq!(folder.started(), 1);
    has(&running.ask("endless"), &["without a line feed, far past the limit of 6604096 bytes for a line"]);
    assert_eq!(folder.started(), 1);
}

#[test]
fn a_durable_organism_hands_a_message_over_again() {
    let folder = Folder::new("durable", BY_HAND, "timeout: 60s");
    folder.keep();
    let ids = || -> Vec<serde_json::Value> {
        let lines = folder.read("lines");
        let whole = lines.lines().filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok());
        whole.filter(|line| line.get("type").is_some()).map(|line| line["id"].clone()).collect()
    };
    for attempt in 1..3 {
        let mut running = folder.start(&[]);
        if attempt == 1 {
            running.send("hang");
        }
        until("the message", || (ids().len() == attempt).then_some(()));
    }
    assert_eq!(ids()[0], ids()[1]);
}

#[test]
fn a_message_that_times_out_is_cancelled_in_its_process() {
    let folder = Folder::new("timeout", BY_HAND, "timeout: 200ms");
    let mut running = folder.start(&[]);
    has(&running.ask("hang"), &["<code>timeout</code>"]);
    let cancelled = until("the cancellation", || {
        let lines = folder.read("lines");
        let line = lines.lines().find(|line| line.contains("cancel"))?.to_owned();
        Some((line, lines.lines().find(|line| line.contains("type"))?.to_owned()))
    });
    let field = |line: &str, name: &str| serde_json::from_str::<serde_json::Value>(line).unwrap()[name].clone();
    assert_eq!(field(&cancelled.0, "cancel"), field(&cancelled.1, "id"));
    assert_eq!(folder.started(), 1);
}

#[test]
fn a_message_waits_no_longer_than_its_timeout_for_a_process_that_never_comes_up() {
    let folder = Folder::new("silent", BY_HAND, "timeout: 200ms");
    fs::write(folder.path().join("deaf"), "").unwrap();
    let mut running = folder.start(&[]);
    (0..2).for_each(|n| running.send(&n.to_string()));
    for _ in 0..2 {
        let why = "no process of the listener came up within 10s: it has not answered its first heartbeat";
        has(&running.receive(), &["<code>listener-failed</code>", "<retryable>true</retryable>", why]);
    }
    assert_eq!(folder.started(), 1, "the process itself has more time");
    folder.logs(&[
        "no process of a worker came up within 10s: where that takes long, write `start: eager`, or a longer `timeout`",
    ]);
}

#[test]
fn a_heartbeat_without_an_answer_ends_the_process() {
    let folder = Folder::new("heartbeat", BY_HAND, "heartbeat: 1s, timeout: 60s");
    let mut running = folder.start(&[]);
    has(&running.ask("one"), &[">ONE</say>"]);
    until("two heartbeats", || folder.read("lines").contains("{\"ping\": 2}").then_some(()));
    assert_eq!(folder.started(), 1);
    fs::write(folder.path().join("deaf"), "").unwrap();
    running.send("hang");
    until("another process", || (folder.started() > 1).then_some(()));
    folder.logs(&["a worker ended", "did not answer a heartbeat"]);
}

#[test]
fn what_a_worker_started_ends_with_it() {
    for (way, why) in [
        ("line no JSON", "breaks the protocol"),
        ("leave", "exited with status 0"),
        ("die", "killed by signal 9"),
        ("deaf", "did not answer a heartbeat"),
    ] {
        let heartbeat = if way == "deaf" { "2s" } else { "60s" };
        let folder = Folder::new("group", BY_HAND, &format!("heartbeat: {heartbeat}, timeout: 60s"));
        folder.limit("max_attempts: 1");
        let mut running = folder.start(&[]);
        let born = running.ask("bear");
        let child = born.split_once("</say>").and_then(|(front, _)| front.rsplit('>').next()).unwrap().to_owned();
        assert!(runs(&child), "{born}");
        if way == "deaf" {
            fs::write(folder.path().join("deaf"), "").unwrap();
            running.send("hang");
        } else {
            running.send(way);
        }
        has(&running.receive(), &["<code>listener-failed</code>", why]);
        until("the end of the child", || (!runs(&child)).then_some(()));
        // The organism goes on, with another process.
        let _ = fs::remove_file(folder.path().join("deaf"));
        has(&running.ask("one"), &[">ONE</say>"]);
        assert_eq!(folder.started(), 2);
    }
}

/// A worker whose program exits before it has read or written a line, unless it was mended.
const EXITS: &str = r#"
import os, sys
open("started", "a").write(f"{os.getpid()}\n")
if not os.path.exists("mended"):
    sys.exit("out of luck")
"#;

#[test]
fn messages_wait_for_a_worker_that_exits_before_its_first_line() {
    for (name, start) in [("lazy", ""), ("eager", ", start: eager")] {
        let agent = format!("{EXITS}{BY_HAND}");
        let folder = Folder::new(&format!("exits-{name}"), &agent, &format!("timeout: 60s{start}"));
        let mut running = folder.start(&[]);
        running.send("one");
        folder.logs(&["a worker ended before its first line", "\"stderr\":\"out of luck\"", "messages wait"]);
        fs::write(folder.path().join("mended"), "").unwrap();
        has(&running.receive(), &[">ONE</say>"]);
    }
}

#[test]
fn a_message_waits_for_its_timeout_where_no_process_comes_up() {
    let folder = Folder::new("never-up", EXITS, "timeout: 2s");
    let mut running = folder.start(&[]);
    let failed = running.ask("one");
    has(&failed, &["<code>listener-failed</code>", "<retryable>true</retryable>"]);
    has(&failed, &["no process of the listener came up within 2s: the listener exited with status 1"]);
    assert!(!failed.contains("out of luck"), "{failed}");
    folder.logs(&["\"event\":\"program-said\"", "\"text\":\"out of luck"]);
    // It rests between its starts.
    assert!((1..=3).contains(&folder.started()), "{}", folder.started());
}

/// A worker that notes how it ends, and goes on at the end of its input.
const ENDS_AT_THE_SIGNAL: &str = r#"
import signal, sys, time
def end(*_):
    time.sleep(0.2)
    print("it cleans up", flush=True)
    open("ended", "a").write("sigterm\n")
    sys.exit(0)
signal.signal(signal.SIGTERM, end)
"#;

#[test]
fn a_worker_has_time_to_end() {
    let by_hand = format!("{ENDS_AT_THE_SIGNAL}{BY_HAND}\nsignal.pause()\n");
    let folder = Folder::new("grace", &by_hand, "timeout: 60s");
    let mut running = folder.start(&["--until-idle"]);
    has(&running.ask("one"), &[">ONE</say>"]);
    // The program waits for it.
    assert_eq!(running.end().0, Some(0));
    assert_eq!(folder.read("ended"), "sigterm\n");

    let cleans_up = format!("{WITH_THE_PACKAGE_AND_AN_END}{WITH_THE_PACKAGE}");
    let folder = Folder::new("grace-package", &cleans_up, "timeout: 60s");
    let mut running = folder.start(&["--until-idle"]);
    has(&running.ask("one"), &[">ONE</say>"]);
    assert_eq!((running.end().0, folder.read("ended")), (Some(0), "atexit\n".to_owned()));
}

const WITH_THE_PACKAGE_AND_AN_END: &str = r#"
import atexit
atexit.register(lambda: open("ended", "a").write("atexit\n"))
"#;

#[test]
fn a_worker_that_misses_a_heartbeat_has_time_to_end_before_its_messages_run_again() {
    let by_hand = format!("{ENDS_AT_THE_SIGNAL}{BY_HAND}\nsignal.pause()\n");
    let folder = Folder::new("grace-heartbeat", &by_hand, "heartbeat: 1s, timeout: 60s");
    let mut running = folder.start(&[]);
    has(&running.ask("one"), &[">ONE</say>"]);
    fs::write(folder.path().join("deaf"), "").unwrap();
    running.send("hang once");
    until("the end of the process", || folder.path().join("ended").exists().then_some(()));
    fs::remove_file(folder.path().join("deaf")).unwrap();
    has(&running.receive(), &[">hang once</say>"]);
    assert_eq!(folder.started(), 2);
}

#[test]
fn a_command_gets_the_whole_locale_and_no_other_variable() {
    let folder = Folder::new("locale", BY_HAND, "timeout: 60s");
    let file = folder.path().join("organism.yaml");
    let text = fs::read_to_string(&file).unwrap();
    let own = text.replace("worker: [python3, agent.py]", "command: [sh, say.sh]");
    assert_ne!(own, text);
    fs::write(file, own).unwrap();
    let script = r#"echo "<say xmlns='urn:t'>$LANG $LANGUAGE $LC_ALL $LC_PAPER $LCD</say>""#;
    fs::write(folder.path().join("say.sh"), script).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_systole"));
    command.args(["ask", "organism.yaml", "<do xmlns='urn:t'>x</do>"]).current_dir(folder.path()).stdin(Stdio::null());
    command.env("LANG", "a").env("LANGUAGE", "b").env("LC_ALL", "c").env("LC_PAPER", "d").env("LCD", "e");
    let output = command.output().unwrap();
    has(&String::from_utf8_lossy(&output.stdout), &[">a b c d </say>"]);
}

#[test]
fn a_command_that_takes_too_long_has_time_to_end_and_keeps_its_place_until_then() {
    let folder = Folder::new("grace-command", BY_HAND, "timeout: 60s");
    let script = "trap 'sleep 0.3; echo bye; echo ended >> log.txt; exit' TERM; echo began >> log.txt; while :; do sleep 0.05; done";
    fs::write(folder.path().join("slow.sh"), script).unwrap();
    let file = folder.path().join("organism.yaml");
    let text = fs::read_to_string(&file).unwrap();
    let slow = "worker: [python3, agent.py]";
    assert!(text.contains(slow));
    let text = text.replace(slow, "command: [sh, slow.sh], concurrency: 1").replace("timeout: 60s", "timeout: 300ms");
    fs::write(file, text).unwrap();
    let mut running = folder.start(&["--until-idle"]);
    (0..2).for_each(|_| running.send("x"));
    (0..2).for_each(|_| has(&running.receive(), &["<code>timeout</code>"]));
    assert_eq!(running.end().0, Some(1));
    assert_eq!(folder.read("log.txt"), "began\nended\nbegan\nended\n");
}

#[test]
fn workers_end_with_the_organism() {
    let folder = Folder::new("end", BY_HAND, "timeout: 60s");
    for signal in [Signal::KILL, Signal::TERM] {
        let mut running = folder.start(&[]);
        has(&running.ask("one"), &[">ONE</say>"]);
        let pid = folder.read("started").lines().last().unwrap().to_owned();
        assert!(runs(&pid));
        kill_process(Pid::from_raw(running.child.id().cast_signed()).unwrap(), signal).unwrap();
        running.child.wait().unwrap();
        until("the end of the worker", || (!runs(&pid)).then_some(()));
    }
}

#[test]
fn a_signal_during_the_start_ends_the_organism_in_order() {
    let by_hand = format!("import os, signal\nos.kill(os.getppid(), signal.SIGTERM)\n{BY_HAND}");
    let folder = Folder::new("early", &by_hand, "start: eager, timeout: 60s");
    let mut running = folder.start(&[]);
    assert_eq!(running.child.wait().unwrap().code(), Some(0), "{}", folder.read("log"));
}

#[test]
fn an_end_in_order_waits_for_messages_under_way() {
    let folder = Folder::new("drain", BY_HAND, "timeout: 60s");
    let mut running = folder.start(&["--until-idle"]);
    (0..3).for_each(|_| running.send("hold"));
    let (code, rest) = running.end();
    assert_eq!((code, rest.matches(">3</say>").count()), (Some(0), 3), "{rest}");
}

const WITH_THE_PACKAGE: &str = r#"
import asyncio, os, sys
from dataclasses import dataclass
from systole_sdk import Fault, call, listener, message, named, payload, run

@payload("{urn:t}do")
@dataclass
class Do:
    text: str = named("$text")

@payload("urn:t")
@dataclass
class Say:
    text: str = named("$text")

@payload("urn:t")
@dataclass
class Ask:
    text: str = named("$text")

waiting = []

@listener
async def do(request: Do):
    if request.text == "hold":
        waiting.append(asyncio.get_running_loop().create_future())
        if len(waiting) == 3:
            for one in waiting:
                one.set_result(None)
        await waiting[-1]
        return Say("held")
    if request.text == "cancel":
        try:
            await asyncio.Event().wait()
        finally:
            open("cancelled", "w").close()
    if request.text == "calls":
        answers = await asyncio.gather(*(call(Ask(f"{n} & more")) for n in range(5)))
        return Say(",".join(answer.text for answer in answers) + message().sender)
    if request.text == "threads":
        return Say(await asyncio.to_thread(lambda: call(Ask("from a thread"), to="parrot").text))
    if request.text == "refused":
        try:
            await call("<nobody xmlns='urn:t'/>")
        except Fault as fault:
            return Say(fault.code)
    if request.text == "passes":
        await call("<nobody xmlns='urn:t'/>")
    if request.text == "forgets":
        for one in [Ask("nobody hears it"), "<nobody xmlns='urn:t'/>"]:
            asyncio.ensure_future(call(one))
        await asyncio.sleep(0)
        return Say("went on")
    if request.text == "surrogate":
        return Say("\ud800\U0001f600")
    if request.text == "raise":
        raise ValueError("no luck")
    print("{}" * 1000)
    os.write(1, b"not a line of the protocol")
    return "<say xmlns='urn:t'>" + request.text.upper() + "</say>"

run()
"#;

#[test]
fn the_python_package_answers_calls_and_is_cancelled() {
    let folder = Folder::new("package", WITH_THE_PACKAGE, "timeout: 20s, heartbeat: 2s");
    let mut running = folder.start(&["--until-idle"]);
    has(&running.ask("one"), &[">ONE</say>"]);
    (0..3).for_each(|_| running.send("hold"));
    (0..3).for_each(|_| has(&running.receive(), &[">held</say>"]));
    has(&running.ask("calls"), &[">0 &amp; more,1 &amp; more,2 &amp; more,3 &amp; more,4 &amp; morecli</say>"]);
    has(&running.ask("threads"), &[">from a thread</say>"]);
    has(&running.ask("refused"), &[">route</say>"]);
    has(&running.ask("passes"), &["<code>route</code>", "no listener takes {urn:t}nobody from its sender"]);
    has(&running.ask("forgets"), &[">went on</say>"]);
    has(&running.ask("surrogate"), &["<code>failed</code>", "Say.text: XML has no character U+D800"]);
    has(&running.ask("raise"), &["<code>failed</code>", "no luck"]);
    let big = "x".repeat(1_000_000);
    has(&running.ask(&big), &[&big.to_uppercase()]);
    assert_eq!(running.end().0, Some(1), "a fault was among the answers");
    folder.logs(&["ValueError: no luck", "not a line of the protocol"]);
    assert!(!folder.read("log").contains("a worker ended"), "{}", folder.read("log"));
}

#[test]
fn the_python_package_cancels_what_times_out() {
    let folder = Folder::new("cancelled", WITH_THE_PACKAGE, "timeout: 2s");
    let mut running = folder.start(&[]);
    // A slow machine may not start it in time.
    until("an answer", || running.ask("one").contains(">ONE</say>").then_some(()));
    has(&running.ask("cancel"), &["<code>timeout</code>"]);
    until("the cancellation", || folder.path().join("cancelled").exists().then_some(()));
}

/// Failures of a function of the package, by the text of its message: for either kind of function.
const FAILS: &str = r#"
import asyncio, functools, os, re, sys, time
from systole_sdk import call, listener, progress, record, run

HALF = "\n\ud83d"

class Base(BaseException):
    pass

class Silent(Exception):
    def __str__(self):
        raise KeyboardInterrupt

async def leave():
    sys.exit("left a task")

def fail(text):
    if text == "exit":
        sys.exit("left")
    if text == "interrupt":
        raise KeyboardInterrupt
    if text == "cancelled":
        raise asyncio.CancelledError
    if text == "generator":
        raise GeneratorExit
    if text == "base":
        raise Base("a base")
    if text == "silent":
        raise Silent
    if text == "name":
        return record(5, list)
    if text == "to":
        return call("<ask xmlns='urn:t'>x</ask>", to=5)
    if text == "progress":
        return progress(5)
    if text == "payload":
        return call(5)
    if text == "learn":
        return record("learn", lambda: sys.exit("left learn"))
    if text == "infinite":
        return record("infinite", lambda: [float("inf")])
    if text == "long":
        return record("long", lambda: "x" * 7_000_000)
    if text == "half call":
        return call("<ask xmlns='urn:t'>\n \udc00</ask>")
    if text == "half value":
        return record("half", lambda: {"list": ["whole", "a \ud83d"]})
    if text == "half key":
        return record("half", lambda: {"\ud83d": 1})
    if text == "half name":
        return record("\ud83d", list)
    if text == "half raised":
        raise ValueError("no \ud83d here")
    if text == "deep":
        return record("deep", lambda: functools.reduce(lambda value, _: [value], range(101), 1))
"#;

const FAILS_ASYNC: &str = r#"
@listener("{urn:t}do")
async def do(xml):
    text = re.sub("<.*?>", "", xml)
    while text == "hold" and not os.path.exists("go"):
        await asyncio.sleep(0.01)
    if text == "task":
        await asyncio.gather(leave(), asyncio.sleep(60))
    said = fail(text)
    if asyncio.iscoroutine(said):
        await said
    return f"<say xmlns='urn:t'>{text}{HALF if text == 'half' else ''}</say>" * (300_000 if text == "longer" else 1)

run()
"#;

const FAILS_PLAIN: &str = r#"
@listener("{urn:t}do")
def do(xml):
    text = re.sub("<.*?>", "", xml)
    while text == "hold" and not os.path.exists("go"):
        time.sleep(0.01)
    if text == "task":
        asyncio.run(leave())
    fail(text)
    return f"<say xmlns='urn:t'>{text}{HALF if text == 'half' else ''}</say>" * (300_000 if text == "longer" else 1)

run()
"#;

#[test]
fn what_a_python_function_raises_fails_its_message_alone() {
    for (kind, function) in [("async", FAILS_ASYNC), ("plain", FAILS_PLAIN)] {
        let folder = Folder::new(&format!("fails-{kind}"), &format!("{FAILS}{function}"), "timeout: 60s");
        let mut running = folder.start(&[]);
        running.send("hold");
        for (text, said) in [
            ("exit", ">left<"),
            ("task", ">left a task<"),
            ("interrupt", ">KeyboardInterrupt<"),
            ("cancelled", ">CancelledError<"),
            ("generator", ">GeneratorExit<"),
            ("base", ">a base<"),
            ("silent", ">Silent<"),
            ("name", "the name has to be a str, not int"),
            ("to", "to has to be a str, not int"),
            ("progress", "progress has to be a str, not int"),
            ("payload", "int is no payload"),
            ("learn", ">left learn<"),
            ("infinite", "not JSON compliant"),
            ("half", "the XML: line 2, column 1: U+D83D is half of a surrogate pair, and no character: remove it"),
            ("half call", "the XML: line 2, column 2: U+DC00 is half"),
            ("half value", "the value of half['list'][1]: line 1, column 3: U+D83D is half"),
            ("half key", "the value of half: a key: line 1, column 1: U+D83D is half"),
            ("half name", "the name: line 1, column 1: U+D83D is half"),
            ("half raised", r">no \ud83d here<"),
            ("deep", "nested deeper than 100"),
            ("long", "bytes is too long: the pump takes at most 6604096 (limits: message_bytes)"),
            ("longer", "bytes is too long: the pump takes at most 6604096 (limits: message_bytes)"),
        ] {
            has(&running.ask(text), &["<code>failed</code>", said]);
        }
        fs::write(folder.path().join("go"), "").unwrap();
        has(&running.receive(), &[">hold</say>"]);
        assert!(!folder.read("log").contains("a worker ended"), "{}", folder.read("log"));
    }
}

/// Plain functions of the package, two of which may compute at once.
const PLAIN: &str = r#"
import asyncio, contextvars, os, re, threading, time
from concurrent.futures import ThreadPoolExecutor
from systole_sdk import Fault, call, listener, message, progress, record, run

ASK = "<ask xmlns='urn:t'>x</ask>"
lock, computing, most = threading.Lock(), 0, 0

def compute(by):
    global computing, most
    with lock:
        computing += by
        most = max(most, computing)

def computes():
    compute(1)
    time.sleep(0.1)
    compute(-1)
    return most

async def awaits():
    async def later():
        return 2
    answers = await asyncio.gather(*(asyncio.create_task(call(ASK)) for _ in range(3)))
    recorded = await record("first", lambda: 1), await record("second", later)
    progress("halfway")
    try:
        await asyncio.wait_for(call("<nobody xmlns='urn:t'/>"), 60)
    except Fault as fault:
        return len(answers), recorded, fault.code, message().sender

def refusal(work):
    try:
        work()
    except RuntimeError as error:
        return "contextvars.copy_context().run" in str(error)

def pool():
    asked = [lambda: call(ASK), lambda: record("name", int), lambda: progress("x"), message]
    with ThreadPoolExecutor() as threads:
        refused = list(threads.map(refusal, asked))
        replies = [threads.submit(contextvars.copy_context().run, call, ASK) for _ in range(2)]
        return refused, len({reply.result() for reply in replies})

def refuse(thread):
    raise RuntimeError("can't start new thread")

def starve():
    start, threading.Thread.start = threading.Thread.start, refuse
    while not os.path.exists("go"):
        time.sleep(0.01)
    threading.Thread.start = start
    return "starved"

cases = {
    "calls": lambda: len([call(ASK) for _ in range(2)]),
    "computes": computes,
    "loop": lambda: asyncio.run(awaits()),
    "pool": pool,
    "starve": starve,
}

@listener("{urn:t}do")
def do(xml):
    text = re.sub("<.*?>", "", xml)
    with open("begun", "a") as begun:
        begun.write(text + "\n")
    return f"<say xmlns='urn:t'>{cases[text]()}</say>"

run(threads=2)
"#;

#[test]
fn python_functions_that_wait_for_the_pump_keep_no_other_from_its_thread() {
    let folder = Folder::new("plain", PLAIN, "timeout: 60s, concurrency: 8");
    let mut running = folder.start(&["--until-idle"]);
    (0..16).for_each(|_| running.send("calls"));
    (0..16).for_each(|_| has(&running.receive(), &[">2</say>"]));
    (0..6).for_each(|_| running.send("computes"));
    (0..6).for_each(|_| assert!(!running.receive().contains(">3</say>")));
    has(&running.ask("computes"), &[">2</say>"]);
    assert_eq!(running.end(), (Some(0), String::new()));
}

#[test]
fn python_functions_call_from_loops_and_threads_of_their_own() {
    let folder = Folder::new("own", PLAIN, "timeout: 60s");
    let mut running = folder.start(&["--until-idle"]);
    has(&running.ask("loop"), &[">(3, (1, 2), 'route', 'cli')</say>"]);
    has(&running.ask("pool"), &[">([True, True, True, True], 1)</say>"]);
    assert_eq!(running.end(), (Some(0), String::new()));
}

#[test]
fn a_python_function_that_no_thread_can_be_started_for_fails_its_message() {
    let folder = Folder::new("starve", PLAIN, "timeout: 60s");
    let mut running = folder.start(&[]);
    running.send("starve");
    until("the first function", || folder.read("begun").contains("starve").then_some(()));
    has(&running.ask("calls"), &["<code>failed</code>", "no thread for a plain function: can't start new thread"]);
    fs::write(folder.path().join("go"), "").unwrap();
    has(&running.receive(), &[">starved</say>"]);
    has(&running.ask("calls"), &[">2</say>"]);
    assert_eq!(folder.read("begun"), "starve\ncalls\n", "a message that was answered ran");
}

#[test]
fn the_example_finds_a_mean() {
    let file = |name: &str| format!("{ROOT}/examples/worker/{name}");
    let output = Command::new(env!("CARGO_BIN_EXE_systole"))
        .args(["run", &file("organism.yaml"), &file("mean.xml"), "--until-idle"])
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    has(&out, &["<mean>13.0</mean><note>R&amp;D</note>"]);
    assert!(output.status.success() && err.contains("the sum is 39"), "{err}");
}

#[test]
fn a_message_that_no_process_has_taken_is_not_the_cause_of_a_kill() {
    // The process comes up once it may; until then no message is handled.
    let script = format!(
        "import os, time\nopen(\"begun\", \"a\").write(\"x\")\nwhile not os.path.exists(\"go\"): time.sleep(0.02)\n{SAYS_WHY}"
    );
    let folder = Folder::new("untaken", &script, "timeout: 60s");
    folder.limit("max_attempts: 2");
    folder.keep();
    let mut running = folder.start(&[]);
    running.send("one");
    for start in 1..=4 {
        until("a process", || (folder.read("begun").len() == start).then_some(()));
        drop(running);
        running = folder.start(&[]);
    }
    std::fs::write(folder.path().join("go"), "").unwrap();
    has(&running.receive(), &[">fine</say>"]);
}
