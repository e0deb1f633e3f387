//! Changes of a running organism: by `systole reload`, by SIGHUP, and by files that don't fit.

use std::fs;
use std::io::Write;
use std::ops::Deref;
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::kit::waiting::{Lines, until};
use crate::kit::{Scratch, has};

/// A durable organism whose worker waits for a file before it answers with its own word, and whose boss is asked.
const ORGANISM: &str = r#"organism: { name: desk }
durability: process
journal: desk.journal
reload: { keep: KEEP }
clients: [{ name: cli, calls: [parrot, boss] }]
listeners:
  - { name: parrot, worker: [python3, parrot.py], schemas: [t.xsd], accepts: ["{urn:t}say"], replies: ["{urn:t}said"] }
  - { name: boss, human: { people: [PEOPLE] }, schemas: [t.xsd], accepts: ["{urn:t}ask"], replies: ["{urn:t}said"] }
"#;

const SCHEMA: &str = r#"<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema" targetNamespace="urn:t">
  <xs:element name="say" type="xs:string"/>
  <xs:element name="ask" type="xs:string"/>
  <xs:element name="said" type="xs:string"/>
</xs:schema>"#;

/// A worker that notes that it has begun, and answers once a file is there.
const WORKER: &str = r#"
import json, os, sys, time

out = os.fdopen(int(os.environ["SYSTOLE_WORKER"]), "w")
for line in sys.stdin:
    line = json.loads(line)
    if "ping" in line:
        print(json.dumps({"pong": line["ping"]}), file=out, flush=True)
    elif "type" in line:
        open("begun", "w").close()
        while not os.path.exists("FILE"):
            time.sleep(0.01)
        answer = '<said xmlns="urn:t">WORD</said>'
        print(json.dumps({"id": line["id"], "payloads": [answer]}), file=out, flush=True)
"#;

fn organism(keep: &str, people: &str) -> String {
    ORGANISM.replace("KEEP", keep).replace("PEOPLE", people)
}

struct Desk {
    folder: Scratch,
}

impl Deref for Desk {
    type Target = Scratch;

    fn deref(&self) -> &Scratch {
        &self.folder
    }
}

/// A running organism; it is killed when the test drops it.
struct Runs {
    child: Child,
    out: Lines,
}

impl Runs {
    fn send(&mut self, payload: &str) {
        writeln!(self.child.stdin.as_mut().unwrap(), "{payload}").unwrap();
    }

    fn said(&self, what: &str) {
        self.out.until(what, |line| line.contains(&format!(">{what}</said>")));
    }
}

impl Drop for Runs {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Desk {
    fn new(name: &str, keep: &str, people: &str) -> Self {
        let folder = Scratch::new(&format!("reload-{name}"));
        let desk = Self { folder };
        desk.write("organism.yaml", &organism(keep, people));
        desk.write("t.xsd", SCHEMA);
        desk.say("first", "go");
        desk
    }

    fn write(&self, file: &str, text: &str) {
        fs::write(self.join(file), text).unwrap();
    }

    /// Lets the worker of the next version answer with a word, once a file is there.
    fn say(&self, word: &str, file: &str) {
        let script = WORKER.replace("WORD", word).replace("FILE", file);
        self.write("parrot.py", &script);
    }

    /// Starts the organism without a terminal, and waits until it serves operators. Standard input has its messages.
    fn start(&self) -> Runs {
        self.start_with(&["-"])
    }

    fn start_with(&self, sources: &[&str]) -> Runs {
        let log = fs::File::create(self.join("log")).unwrap();
        let mut run = Command::new("setsid");
        run.args([env!("CARGO_BIN_EXE_systole"), "run", "organism.yaml"]).args(sources).current_dir(&*self.folder);
        let mut child = run.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(log).spawn().unwrap();
        let out = Lines::of(child.stdout.take().unwrap());
        until("the socket", || self.command(&["top"]).status.success().then_some(()));
        Runs { child, out }
    }

    fn log(&self) -> String {
        fs::read_to_string(self.join("log")).unwrap()
    }

    fn begun(&self) {
        until("the worker", || fs::exists(self.join("begun")).unwrap().then_some(()));
        fs::remove_file(self.join("begun")).unwrap();
    }

    fn question(&self) -> String {
        let question = || {
            let all: Value = serde_json::from_str(&self.done(&["inbox", "--json"])).unwrap();
            all[0]["question"].as_str().map(str::to_owned)
        };
        until("the question", question)
    }
}

#[test]
fn a_conversation_keeps_its_worker_and_a_new_one_has_the_changed_script() {
    let desk = Desk::new("worker", "24h", "ada");
    let mut runs = desk.start();
    runs.send("<say xmlns='urn:t'/>");
    desk.begun();
    desk.say("second", "organism.yaml");
    let reloaded = "reload desk: done: version 1; open conversations that keep an earlier one: 1\n";
    assert_eq!(desk.done(&["reload"]), reloaded);
    runs.send("<say xmlns='urn:t'/>");
    runs.said("second");
    // A process of each version is there: the first one ends with its last conversation.
    desk.write("go", "");
    runs.said("first");
    // No message of standard input can follow in its conversation now.
    drop(runs.child.stdin.take());
    until("the end of the first version", || desk.log().contains("its listeners end").then_some(()));
    has(&desk.done(&["audit"]), &["reload", "desk"]);
    desk.done(&["drain"]);
    assert!(runs.child.wait().unwrap().success());
}

#[test]
fn a_hangup_without_a_terminal_changes_the_organism_and_a_mistake_leaves_it_as_it_is() {
    let desk = Desk::new("hangup", "24h", "ada");
    desk.write("go", "");
    let mut runs = desk.start();
    let hang_up = || kill_process(Pid::from_child(&runs.child), Signal::HUP).unwrap();
    desk.say("second", "go");
    hang_up();
    until("the change", || desk.log().contains("the organism has changed").then_some(()));
    desk.write("organism.yaml", &organism("24h", "ada").replace("accepts: [\"{urn:t}say\"]", "accepts: [nothing]"));
    hang_up();
    until("the mistake", || desk.log().contains("goes on unchanged").then_some(()));
    let refused = desk.command(&["reload", "--journal", "desk.journal"]);
    has(&String::from_utf8_lossy(&refused.stderr), &["organism.yaml:7:", "nothing"]);
    assert_eq!(refused.status.code(), Some(1));
    runs.send("<say xmlns='urn:t'/>");
    runs.said("second");
    desk.write("organism.yaml", &organism("24h", "ada").replace("desk.journal", "other.journal"));
    let refused = desk.command(&["reload", "--journal", "desk.journal"]);
    has(&String::from_utf8_lossy(&refused.stderr), &["can't change while the organism runs: journal: start it again"]);
}

#[test]
fn an_open_question_is_answered_by_its_own_contract() {
    let desk = Desk::new("question", "24h", "ada, operator");
    let runs = desk.start_with(&[]);
    let ask = |text: &str| drop(desk.command(&["ask", "organism.yaml", text]));
    ask("<ask xmlns='urn:t'>first?</ask>");
    let first = desk.question();
    // From now on an answer is a number.
    desk.write("t.xsd", &SCHEMA.replace("name=\"said\" type=\"xs:string\"", "name=\"said\" type=\"xs:int\""));
    desk.done(&["reload"]);
    desk.done(&["inbox", "answer", &first, "<said xmlns='urn:t'>a word</said>"]);
    runs.said("a word");
    ask("<ask xmlns='urn:t'>second?</ask>");
    let second = desk.question();
    assert_ne!(first, second);
    let refused = desk.command(&["inbox", "answer", &second, "<said xmlns='urn:t'>a word</said>"]);
    has(&String::from_utf8_lossy(&refused.stderr), &["a word"]);
    assert!(!refused.status.success());
    desk.done(&["inbox", "answer", &second, "<said xmlns='urn:t'>42</said>"]);
    runs.said("42");
}

#[test]
fn a_conversation_past_its_time_is_cancelled() {
    let desk = Desk::new("past", "1s", "ada");
    let mut runs = desk.start();
    runs.send("<say xmlns='urn:t'/>");
    desk.begun();
    desk.done(&["reload"]);
    runs.out.until("the fault", |line| line.contains("<cancelled") || line.contains("cancelled"));
    has(&desk.log(), &["conversations kept an earlier version of the organism for 1s: they are cancelled"]);
}

#[test]
fn a_start_behind_a_change_goes_on_with_the_changed_file() {
    let desk = Desk::new("killed", "24h", "ada");
    let mut runs = desk.start();
    runs.send("<say xmlns='urn:t'/>");
    desk.begun();
    desk.say("second", "go");
    desk.done(&["reload"]);
    drop(runs);
    desk.write("go", "");
    let runs = desk.start();
    runs.said("second");
}
