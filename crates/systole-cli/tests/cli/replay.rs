//! `systole replay`: recorded conversations by another organism.yaml, and what it does otherwise.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::kit::{Scratch, has};

const SCHEMA: &str = r#"<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema" targetNamespace="urn:d">
  <xs:element name="order" type="xs:string"/><xs:element name="answer" type="xs:string"/>
  <xs:element name="ask" type="xs:string"/><xs:element name="price" type="xs:string"/>
</xs:schema>"#;

/// A worker whose handler awaits two prices at once, then one that depends on them.
const CLERK: &str = r#"
import json, os, sys
out = os.fdopen(int(os.environ["SYSTOLE_WORKER"]), "w")
orders = {}
for line in sys.stdin:
    message = json.loads(line)
    name = message.get("as")
    if "ping" in message:
        said = [{"pong": message["ping"]}]
    elif "type" in message:
        with open("orders.txt", "a") as file:
            file.write(os.environ.get("SYSTOLE_REPLAY", "0"))
        orders[message["id"]] = 0
        said = [{"id": message["id"], "call": "<ask xmlns='urn:d'>%s</ask>" % what, "as": what} for what in FIRST]
    elif name == "sum":
        said = [{"id": message["id"], "payloads": ["<answer xmlns='urn:d'>ANSWER</answer>"]}]
    elif name:
        orders[message["id"]] += 1
        said = []
        if orders[message["id"]] == len(FIRST):
            said = [{"id": message["id"], "call": "<ask xmlns='urn:d'>sum</ask>", "as": "sum"}]
    else:
        said = []
    for one in said:
        print(json.dumps(one), file=out, flush=True)
"#;

const PRICES: &str = r#"
import sys
with open("asked.txt", "a") as file:
    file.write("1")
text = sys.stdin.read()
if "bad" in text:
    sys.exit("there is no price")
print("<price xmlns='urn:d'>7</price>")
"#;

const ORGANISM: &str = r#"organism: { name: desk }
durability: process
journal: desk.journal
clients: [{ name: cli, calls: [clerk] }]
listeners:
  - name: clerk
    worker: [python3, clerk.py]
    schemas: [d.xsd]
    accepts: ["{urn:d}order"]
    replies: ["{urn:d}answer"]
    calls: [prices]
  - { name: prices, command: [python3, prices.py], accepts: ["{urn:d}ask"], replies: ["{urn:d}price"] }
"#;

fn write_clerk(folder: &Path, first: &str, answer: &str) {
    fs::write(folder.join("clerk.py"), CLERK.replace("FIRST", first).replace("ANSWER", answer)).unwrap();
}

/// A desk with some recorded orders.
fn desk(name: &str, orders: usize) -> Scratch {
    let folder = Scratch::new(name);
    fs::write(folder.join("d.xsd"), SCHEMA).unwrap();
    fs::write(folder.join("prices.py"), PRICES).unwrap();
    fs::write(folder.join("organism.yaml"), ORGANISM).unwrap();
    write_clerk(&folder, r#"["tea", "milk"]"#, "done");
    for order in 0..orders {
        folder.done(&["ask", "organism.yaml", &format!("<order xmlns='urn:d'>{order}</order>")]);
    }
    folder
}

fn read(folder: &Path, file: &str) -> String {
    fs::read_to_string(folder.join(file)).unwrap()
}

/// Replays with the clerk, and returns the exit code and both outputs.
fn replay(folder: &Scratch, more: &[&str]) -> (i32, String) {
    let args = [&["replay", "--organism", "organism.yaml", "--live", "clerk"], more].concat();
    let output = folder.command(&args);
    let text = [output.stdout, output.stderr].concat();
    (output.status.code().unwrap(), String::from_utf8(text).unwrap())
}

#[test]
fn the_same_handler_does_the_same_and_nobody_else_is_asked() {
    let folder = desk("replay-same", 3);
    let asked = read(&folder, "asked.txt");
    assert_eq!((asked.len(), read(&folder, "orders.txt").as_str()), (9, "000"));
    let (code, said) = replay(&folder, &[]);
    assert_eq!(code, 0, "{said}");
    assert_eq!(said.matches("same (4 requests, 1 of live listeners)").count(), 3, "{said}");
    has(&said, &["replayed: 3, same: 3, different: 0, untouched: 0, failed: 0"]);
    assert_eq!((read(&folder, "asked.txt"), read(&folder, "orders.txt").as_str()), (asked, "000111"));
    // The recorded conversations are as they were.
    assert_eq!(folder.done(&["thread", "list", "--json"]).matches("\"conversation\"").count(), 3);
    assert_eq!(said, replay(&folder, &["--parallel", "1"]).1);
    has(&replay(&folder, &["--most", "1"]).1, &["2 older conversations are left out", "replayed: 1, same: 1"]);
}

#[test]
fn another_request_and_another_answer_are_found() {
    let folder = desk("replay-other", 1);
    let asked = read(&folder, "asked.txt");
    // The order of requests that are made at once is no difference.
    write_clerk(&folder, r#"["milk", "tea"]"#, "done");
    has(&replay(&folder, &[]).1, &["same (4 requests, 1 of live listeners)"]);
    write_clerk(&folder, r#"["milk", "tea"]"#, "other");
    let (code, said) = replay(&folder, &[]);
    assert_eq!(code, 1, "{said}");
    let answer = "  root/clerk: answer\n    recorded: <answer xmlns=\"urn:d\">done</answer>\n    replayed: <answer \
                  xmlns=\"urn:d\">other</answer>\n";
    has(&said, &["different (4 requests, 1 differences)", answer]);
    // Characters that a terminal does not get stand in JSON as JSON has them.
    write_clerk(&folder, r#"["milk", "salt"]"#, "a\u{200d}b");
    let output = folder.command(&["replay", "--organism", "organism.yaml", "--live", "clerk", "--json"]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let records: Value = serde_json::from_slice(&output.stdout).unwrap();
    let record = &records[0];
    assert_eq!((&record["result"], &record["requests"]), (&"different".into(), &4.into()));
    let differences = record["differences"].as_array().unwrap();
    let difference = differences.iter().find(|one| one["what"] == "request to prices").unwrap();
    has(difference["recorded"].as_str().unwrap(), &[">tea<"]);
    has(difference["replayed"].as_str().unwrap(), &[">salt<"]);
    // One request less, and one more.
    write_clerk(&folder, r#"["milk"]"#, "done");
    has(&replay(&folder, &[]).1, &["request to prices", ">tea<", "replayed: no such request"]);
    write_clerk(&folder, r#"["milk", "tea", "salt"]"#, "done");
    has(&replay(&folder, &[]).1, &["request to prices", ">salt<", "recorded: no such request"]);
    assert_eq!(read(&folder, "asked.txt"), asked);
}

#[test]
fn a_recorded_fault_comes_again_and_a_new_contract_judges_recorded_answers() {
    let folder = desk("replay-fault", 0);
    write_clerk(&folder, r#"["bad"]"#, "done");
    folder.done(&["ask", "organism.yaml", "<order xmlns='urn:d'>1</order>"]);
    let (code, said) = replay(&folder, &[]);
    assert_eq!(code, 0, "{said}");
    has(&said, &["same (3 requests, 1 of live listeners)"]);
    let schema = SCHEMA.replace(r#"name="price" type="xs:string""#, r#"name="price" type="xs:date""#);
    fs::write(folder.join("d.xsd"), schema).unwrap();
    let (code, said) = replay(&folder, &[]);
    assert_eq!(code, 1, "{said}");
    has(&said, &["root/clerk/prices", "recorded: <price", "replayed: payload: "]);
}

#[test]
fn what_can_not_be_replayed_says_why() {
    let folder = desk("replay-not", 1);
    let refused = |args: &[&str]| {
        let output = folder.command(&[&["replay", "--organism", "organism.yaml"], args].concat());
        (output.status.code().unwrap(), String::from_utf8([output.stdout, output.stderr].concat()).unwrap())
    };
    let (code, said) = refused(&[]);
    assert_eq!(code, 2, "{said}");
    has(&said, &["no model speaks for a listener", "--live NAME"]);
    has(&refused(&["--live", "clark"]).1, &["there is no listener 'clark'"]);
    has(&refused(&["--live", "clerk", "0000000000"]).1, &["there is no thread whose id ends with 0000000000"]);
    has(&refused(&["--live", "clerk", "--journal", "absent.journal"]).1, &["absent.journal"]);
    // A handler that does not end is cancelled.
    fs::write(folder.join("clerk.py"), "import time\ntime.sleep(1000)\n").unwrap();
    let (code, said) = refused(&["--live", "clerk", "--within", "200ms"]);
    assert_eq!(code, 1, "{said}");
    has(&said, &["failed: the replay did not end within 200ms", "failed: 1"]);
    // Another client.
    write_clerk(&folder, r#"["tea", "milk"]"#, "done");
    fs::write(folder.join("organism.yaml"), ORGANISM.replace("name: cli", "name: clip")).unwrap();
    let (code, said) = refused(&["--live", "clerk"]);
    assert_eq!(code, 1, "{said}");
    has(&said, &["failed: ", "'cli'"]);
    // A person can't run.
    let person = "  - { name: judge, human: true, accepts: [\"{urn:d}answer\"], replies: [\"{urn:d}price\"] }\n";
    fs::write(folder.join("organism.yaml"), format!("{ORGANISM}{person}")).unwrap();
    let (code, said) = refused(&["--live", "judge"]);
    assert_eq!(code, 2, "{said}");
    has(&said, &["'judge' can't run in a replay", "its recorded answers are used"]);
}

#[test]
fn a_replay_of_nothing_is_an_error() {
    let folder = desk("replay-none", 1);
    let (code, said) = replay(&folder, &["--most", "0"]);
    assert_eq!(code, 2, "{said}");
    has(&said, &["--most", "0 is not in 1.."]);
    let (code, said) = replay(&folder, &["--payload", "{urn:d}absent"]);
    assert_eq!(code, 1, "{said}");
    has(&said, &["nothing is replayed", "has ended and meets --payload {urn:d}absent", "systole thread list"]);
    let (code, said) = replay(&folder, &["--open", "--json"]);
    assert_eq!(code, 1, "{said}");
    has(&said, &["nothing is replayed", "no conversation of a client that is open"]);
    // No open conversation is one that goes on; it is told that none was tried.
    let args = ["check", "organism.yaml", "--journal", "--replay", "clerk"];
    let output = folder.command(&args);
    let said = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
    assert_eq!(output.status.code(), Some(0), "{said}");
    has(&said, &["open conversations: 0", "nothing is replayed: no conversation of a client is open"]);
}

/// A worker that passes an order on, and answers for itself.
const FRONT: &str = r#"
import json, os, sys
out = os.fdopen(int(os.environ["SYSTOLE_WORKER"]), "w")
for line in sys.stdin:
    message = json.loads(line)
    if "ping" in message:
        said = {"pong": message["ping"]}
    elif "type" in message:
        with open("fronts.txt", "a") as file:
            file.write("1")
        said = {"id": message["id"], "call": "<order xmlns='urn:d'>passed on</order>", "as": "1"}
    elif message.get("as") == "1":
        said = {"id": message["id"], "payloads": ["<price xmlns='urn:d'>mine</price>"]}
    else:
        continue
    print(json.dumps(said), file=out, flush=True)
"#;

#[test]
fn a_live_listener_below_one_that_is_recorded_runs() {
    let folder = desk("replay-below", 0);
    let front = "  - { name: front, worker: [python3, front.py], accepts: [\"{urn:d}ask\"], replies: [\"{urn:d}price\"], calls: \
                 [clerk], routing: addressed }\n  - { name: parrot, echo: true, accepts: [\"{urn:d}price\"] }\n";
    let organism = format!("{ORGANISM}{front}").replace("calls: [clerk] }]", "calls: [clerk, front] }]");
    fs::write(folder.join("organism.yaml"), organism).unwrap();
    fs::write(folder.join("front.py"), FRONT).unwrap();
    let asked = "<e:message xmlns:e='https://xml-pipeline.org/ns/envelope/v1'><e:meta><e:from>cli</e:from><e:to>front</e:to></e:meta>\
                 <ask xmlns='urn:d'>x</ask></e:message>";
    folder.done(&["ask", "organism.yaml", asked]);
    has(&replay(&folder, &[]).1, &["same (5 requests, 1 of live listeners)"]);
    write_clerk(&folder, r#"["tea", "salt"]"#, "done");
    let (code, said) = replay(&folder, &[]);
    assert_eq!(code, 1, "{said}");
    has(&said, &["root/front/clerk: request to prices", ">milk<", ">salt<"]);
    assert_eq!(read(&folder, "fronts.txt"), "1");
    // Nothing was tried.
    let output = folder.command(&["replay", "--organism", "organism.yaml", "--live", "parrot"]);
    let said = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(1), "{said}");
    has(&said, &["untouched: no live listener is in it (5 requests)", "same: 0, different: 0, untouched: 1"]);
}

#[test]
fn replays_that_are_kept_can_be_looked_at() {
    let folder = desk("replay-keep", 1);
    let (code, said) = replay(&folder, &["--keep", "kept.journal"]);
    assert_eq!(code, 0, "{said}");
    let kept = folder.done(&["thread", "list", "--journal", "kept.journal", "--json"]);
    let kept: Value = serde_json::from_str(&kept).unwrap();
    let id = kept[0]["conversation"].as_str().unwrap();
    has(&folder.done(&["thread", "show", id, "--journal", "kept.journal"]), &["<price", "<answer"]);
    let (code, said) = replay(&folder, &["--keep", "kept.journal"]);
    assert_eq!(code, 2, "{said}");
    has(&said, &["kept.journal exists: name another file"]);
}
