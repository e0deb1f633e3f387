//! Values that workers record, and their progress, with the real program.

use std::fs;

use crate::kit::has;
use crate::kit::waiting::until;
use crate::kit::worker::Folder;

/// A worker of the Python package, which notes what it learns. The text of a payload is its command.
const AGENT: &str = r#"
import asyncio, os, re, signal
from systole_sdk import listener, progress, record, run

def learn(name, value=None):
    def look():
        with open("learned", "a") as notes:
            notes.write(name + "\n")
        return value or (os.getpid(), None)
    return look

@listener("{urn:t}do")
async def do(xml):
    text = re.sub("<.*?>", "", xml)
    if text == "long":
        await record("long", learn("long", "x" * 1_200_000))
    name = f"first of {os.getpid()}" if text == "fickle" else "first"
    first = await record(name, learn(text + ".first"))
    progress(f"{text} \x1b[2J goes on")
    if text in ("die", "fickle") and not os.path.exists("died"):
        open("died", "w").close()
        os.kill(os.getpid(), signal.SIGKILL)
    while text == "wait" and not os.path.exists("go"):
        await asyncio.sleep(0.01)
    async def later():
        return learn(text + ".second")()
    second = await record("second", later)
    third = await asyncio.to_thread(lambda: record("third", learn(text + ".third")))
    ours = [pid == os.getpid() for pid, nothing in (first, second, third)]
    return f"<say xmlns='urn:t'>{ours}</say>"

run()
"#;

#[test]
fn a_message_that_runs_again_has_what_it_recorded() {
    let folder = Folder::new("record", AGENT, "timeout: 60s");
    let mut running = folder.start(&["--until-idle"]);
    has(&running.ask("one"), &[">[True, True, True]</say>"]);
    has(&running.ask("die"), &[">[False, True, True]</say>"]);
    assert_eq!(running.end(), (Some(0), String::new()));
    let learned = folder.read("learned");
    assert_eq!(learned, "one.first\none.second\none.third\ndie.first\ndie.second\ndie.third\n");
}

#[test]
fn a_durable_organism_has_what_its_messages_recorded_before_a_kill() {
    let folder = Folder::new("record-durable", AGENT, "timeout: 60s");
    folder.keep();
    let mut running = folder.start(&[]);
    running.send("wait");
    // It comes behind the recorded value, which is durable.
    let shown = r#"{"event":"progress""#;
    let seen =
        until("the progress", || folder.read("log").lines().find(|line| line.contains(shown)).map(str::to_owned));
    has(&seen, &[r#""path":"root/agent""#, r#""by":"agent""#, r#""text":"wait \u001b[2J goes on""#]);
    running.child.kill().unwrap();
    running.child.wait().unwrap();
    fs::write(folder.path().join("go"), "").unwrap();
    let mut running = folder.start(&[]);
    has(&running.receive(), &[">[False, True, True]</say>"]);
    assert_eq!(folder.read("learned"), "wait.first\nwait.second\nwait.third\n");
}

#[test]
fn a_name_that_no_run_before_recorded_is_learned() {
    let folder = Folder::new("record-fickle", AGENT, "timeout: 60s");
    let mut running = folder.start(&[]);
    has(&running.ask("fickle"), &[">[True, True, True]</say>"]);
    assert_eq!(folder.read("learned"), "fickle.first\nfickle.first\nfickle.second\nfickle.third\n");
}

/// A worker whose process ends once, after it learned values side by side: the first of them last.
const SIDE_BY_SIDE: &str = r#"
import asyncio, os, signal
from systole_sdk import listener, record, run

async def slow():
    await asyncio.sleep(0.3)
    return "slow"

@listener("{urn:t}do")
async def do(xml):
    values = await asyncio.gather(
        record("a", slow),
        record("b", lambda: "fast"),
        record("same", lambda: 1),
        record("same", lambda: 2),
        record("e", lambda: (3.5, {"k\\ud800": "\\ud800", 2: (None,)})),
    )
    if not os.path.exists("died"):
        with open("died", "w") as died:
            died.write(repr(values))
        os.kill(os.getpid(), signal.SIGKILL)
    with open("died") as died:
        alike = died.read() == repr(values)
    return f"<say xmlns='urn:t'>{alike} {values[:4]} {await record('same', lambda: 3)}</say>"

run()
"#;

#[test]
fn values_recorded_side_by_side_come_back_by_their_names_as_they_were_returned() {
    let folder = Folder::new("record-sides", SIDE_BY_SIDE, "timeout: 60s");
    let mut running = folder.start(&[]);
    has(&running.ask("x"), &[">True ['slow', 'fast', 1, 2] 3</say>"]);
}

#[test]
fn a_message_that_records_too_much_fails() {
    let folder = Folder::new("record-long", AGENT, "timeout: 60s");
    let mut running = folder.start(&[]);
    has(&running.ask("long"), &["<code>limit</code>", "recorded more than 1100000 bytes for one message"]);
    has(&running.ask("one"), &[">[True, True, True]</say>"]);
}

/// A worker that asks models by itself.
const SPENDER: &str = r#"
import re
from systole_sdk import listener, run, usage

@listener("{urn:t}do")
def do(xml):
    if "wrong" in xml:
        refused = 0
        for bad in ({"input": -1}, {"output": 1.5}, {"cost": -0.1}, {"seconds": float("nan")}):
            try:
                usage(**bad)
            except ValueError:
                refused += 1
        return f"<say xmlns='urn:t'>{refused} refused</say>"
    for _ in range(100):
        usage(input=10, output=2, cached=5, cost=0.25, model="m", provider="p", seconds=0.5)
    return "<say xmlns='urn:t'>paid</say>"

run()
"#;

#[test]
fn what_a_worker_uses_of_models_is_charged_and_told() {
    let folder = Folder::new("usage", SPENDER, "timeout: 60s, budget: { tokens: 100000 }");
    let mut running = folder.start(&["--until-idle"]);
    has(&running.ask("pay"), &[">paid</say>"]);
    has(&running.ask("wrong"), &[">4 refused</say>"]);
    assert_eq!(running.end(), (Some(0), String::new()));
    let log = folder.read("log");
    let events: Vec<_> = log.lines().filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok()).collect();
    let of = |kind: &'static str| events.iter().filter(move |event| event["event"] == kind);
    // What comes faster than it is taken is added up.
    let (mut input, mut cost, mut ms) = (0, 0.0, 0);
    for told in of("model-answered") {
        let names = ["backend", "model", "by"].map(|name| told[name].as_str().unwrap());
        assert_eq!(names, ["p", "m", "agent"], "{told}");
        input += told["usage"]["input"].as_u64().unwrap();
        cost += told["usage"]["cost"].as_f64().unwrap();
        ms += told["ms"].as_u64().unwrap();
    }
    assert_eq!((input, cost, ms), (1000, 25.0, 50_000));
    let spent: Vec<_> = of("spent").map(|spent| spent["tokens"]["spent"].as_u64().unwrap()).collect();
    assert_eq!(spent, [1200, 0]);
}
