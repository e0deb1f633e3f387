//! `systole check --journal`: open work beside another version of its organism, and what a start with that makes of it.

use std::fs;
use std::process::Command;

use crate::kit::running::Running;
use crate::kit::waiting::until;
use crate::kit::{Scratch, has};

const SCHEMA: &str = r#"<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema" targetNamespace="urn:d">
  <xs:element name="order" type="xs:string"/><xs:element name="say" type="xs:string"/>
  <xs:element name="ask" type="xs:string"/><xs:element name="answer" type="xs:string"/>
  <xs:element name="other" type="xs:string"/>
</xs:schema>"#;

/// A worker whose handler awaits an echo, then a person.
const CLERK: &str = r#"
import json, os, sys
out = os.fdopen(int(os.environ["SYSTOLE_WORKER"]), "w")
for line in sys.stdin:
    message = json.loads(line)
    if "ping" in message:
        said = {"pong": message["ping"]}
    elif "type" in message:
        said = {"id": message["id"], "call": "<say xmlns='urn:d'>seven</say>", "as": "1"}
    elif message.get("as") == "1":
        said = {"id": message["id"], "call": "<ask xmlns='urn:d'>May I?</ask>", "as": "2"}
    elif message.get("as") == "2":
        said = {"id": message["id"], "payloads": ["<answer xmlns='urn:d'>done</answer>"]}
    print(json.dumps(said), file=out, flush=True)
"#;

const ORGANISM: &str = r#"organism: { name: desk }
durability: process
journal: desk.journal
clients: [{ name: cli, calls: [clerk] }]
listeners:
  - { name: echo, echo: true, schemas: [d.xsd], accepts: ["{urn:d}say"] }
  - { name: judge, human: true, accepts: ["{urn:d}ask"], replies: ["{urn:d}answer"] }
  - name: clerk
    worker: [python3, clerk.py]
    accepts: ["{urn:d}order"]
    replies: ["{urn:d}answer"]
    calls: [echo, judge]
"#;

/// An organism that was killed while a person was asked.
struct Desk(Scratch);

impl Desk {
    fn new(name: &str) -> Self {
        let folder = Scratch::new(name);
        fs::write(folder.join("d.xsd"), SCHEMA).unwrap();
        fs::write(folder.join("clerk.py"), CLERK).unwrap();
        fs::write(folder.join("organism.yaml"), ORGANISM).unwrap();
        fs::write(folder.join("order.xml"), "<order xmlns='urn:d'>tea</order>").unwrap();
        let running = Running::organism(&folder, &["order.xml"]);
        until("the person to be asked", || {
            fs::read_to_string(folder.join("log")).unwrap().contains("judge").then_some(())
        });
        drop(running);
        Self(folder)
    }

    /// Checks the journal beside an organism in which a text is another one, and its schema.
    fn check(&self, changes: &[(&str, &str)], schema: (&str, &str)) -> (i32, String) {
        let mut organism = ORGANISM.replace("d.xsd", "new.xsd");
        for (before, after) in changes {
            assert!(organism.contains(before), "{before}");
            organism = organism.replace(before, after);
        }
        fs::write(self.0.join("new.xsd"), SCHEMA.replace(schema.0, schema.1)).unwrap();
        fs::write(self.0.join("new.yaml"), organism).unwrap();
        let mut check = Command::new(env!("CARGO_BIN_EXE_systole"));
        let said = check.args(["check", "new.yaml", "--journal"]).current_dir(&*self.0).output().unwrap();
        let text = String::from_utf8_lossy(&[said.stdout, said.stderr].concat()).into_owned();
        (said.status.code().unwrap(), text)
    }
}

#[test]
fn open_work_that_another_version_would_not_carry_on_is_told_before_its_start() {
    let desk = Desk::new("upgrade");
    let same = ("", "");
    let (code, said) = desk.check(&[], same);
    assert_eq!((code, said.lines().last()), (0, Some("open conversations: 1, and all go on")), "{said}");
    // A new payload changes nothing.
    let (code, said) =
        desk.check(&[], (r#"<xs:element name="say""#, r#"<xs:element name="new"/><xs:element name="say""#));
    assert_eq!(code, 0, "{said}");

    // Two messages and one answer wait: each schema is that of one of them.
    let number = |name: &str| format!(r#"name="{name}" type="xs:int""#);
    let text = |name: &str| format!(r#"name="{name}" type="xs:string""#);
    for (name, parts) in [
        ("order", ["the message {urn:d}order is refused: ", "becomes a dead letter", " root/clerk message "]),
        ("ask", ["the message {urn:d}ask is refused: ", "becomes a dead letter", " root/clerk/judge message "]),
        ("say", ["the recorded answer {urn:d}say is refused: ", "gets a fault instead", " root/clerk message "]),
    ] {
        let (code, said) = desk.check(&[], (&text(name), &number(name)));
        assert_eq!(code, 1, "{said}");
        has(&said, &parts);
        has(&said, &["open conversations: 1, with conflicts: 1", "found: 1"]);
    }
    for (changes, parts) in [
        (
            vec![("name: judge", "name: juge"), ("echo, judge]", "echo, juge]")],
            vec!["there is no listener 'judge'; there is 'juge'", "the start is refused; with --drop NAME"],
        ),
        (vec![("name: cli,", "name: clip,")], vec!["there is no client 'cli'; there is 'clip'"]),
        (
            vec![(r#"accepts: ["{urn:d}ask"]"#, r#"accepts: ["{urn:d}other"]"#)],
            vec!["'judge' no longer takes {urn:d}ask", "delivered all the same"],
        ),
        (
            vec![("durability: process", "durability: process\nlimits: { conversation_threads: 2 }")],
            vec!["3 threads are open, and conversation_threads is 2"],
        ),
        (
            vec![("durability: process", "durability: process\nlimits: { threads: 2 }")],
            vec!["3 threads of all conversations are open, and threads is 2"],
        ),
    ] {
        let (code, said) = desk.check(&changes, same);
        assert_eq!(code, 1, "{said}");
        has(&said, &parts);
    }
    // A payload of another name.
    let (code, said) = desk.check(&[("{urn:d}ask", "{urn:d}asks")], (r#"name="ask""#, r#"name="asks""#));
    assert_eq!(code, 1, "{said}");
    has(&said, &["the message {urn:d}ask is refused: ", "; there is {urn:d}asks"]);
}

#[test]
fn a_start_does_what_the_check_has_told() {
    let desk = Desk::new("upgrade-start");
    let schema = (r#"name="ask" type="xs:string""#, r#"name="ask" type="xs:int""#);
    let (code, said) = desk.check(&[], schema);
    assert_eq!(code, 1, "{said}");
    has(&said, &["becomes a dead letter"]);
    let run = desk.0.systole(&["run", "new.yaml", "--until-idle"]).output().unwrap();
    let letters = desk.0.done(&["dead", "list", "--organism", "new.yaml"]);
    has(&letters, &["{urn:d}ask"]);
    assert_eq!(letters.matches("{urn:d}").count(), 1, "{letters}\n{}", String::from_utf8_lossy(&run.stderr));
    let (code, said) = desk.check(&[], schema);
    assert_eq!((code, said.lines().last()), (0, Some("open conversations: 0, and all go on")), "{said}");
}

#[test]
fn a_request_that_a_changed_handler_would_not_make_again_is_found_by_a_replay() {
    let desk = Desk::new("upgrade-replay");
    let check = || {
        let output = desk.0.systole(&["check", "organism.yaml", "--journal", "--replay", "clerk"]).output().unwrap();
        (output.status.code(), String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned())
    };
    // The person was asked, and the answer is still to come.
    let (code, said) = check();
    assert_eq!((code, said.lines().last()), (Some(0), Some("open conversations: 1, and all go on")), "{said}");
    fs::write(desk.0.join("clerk.py"), CLERK.replace("seven", "eight")).unwrap();
    let (code, said) = check();
    assert_eq!(code, Some(1), "{said}");
    let cause = "a recorded request {urn:d}say to 'echo' is not made again";
    has(&said, &[cause, "the handler fails with listener-failed", " root/clerk"]);
    // A start does what was told.
    desk.0.systole(&["run", "organism.yaml", "--until-idle"]).output().unwrap();
    let failed = desk.0.done(&["thread", "list", "--fault", "listener-failed"]);
    assert_eq!(failed.lines().count(), 2, "{failed}");
}

#[test]
fn a_check_of_a_journal_that_is_no_journal_says_so() {
    let desk = Desk::new("upgrade-none");
    let said = |journal: &str| {
        let output = desk.0.systole(&["check", "organism.yaml", "--journal", journal]).output().unwrap();
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    assert_eq!(said("desk.journal").0, Some(0));
    let (code, absent) = said("absent.journal");
    assert_eq!(code, Some(2), "{absent}");
    has(&absent, &["absent.journal"]);
    let (code, wrong) = said("d.xsd");
    assert!(code.is_some_and(|code| code > 0), "{wrong}");
    has(&wrong, &["d.xsd"]);
    fs::write(desk.0.join("organism.yaml"), ORGANISM.replace("name: desk", "name: table")).unwrap();
    let (code, other) = said("desk.journal");
    assert_eq!(code, Some(2), "{other}");
    has(&other, &["desk", "table"]);
}

#[test]
fn a_listener_of_boot_that_is_gone_is_told() {
    let folder = Scratch::new("upgrade-boot");
    fs::write(folder.join("d.xsd"), SCHEMA).unwrap();
    let echo = "organism: { name: desk }\ndurability: process\njournal: desk.journal\nlisteners:\n  \
                - { name: echo, echo: true, schemas: [d.xsd], accepts: [\"{urn:d}say\"] }\n";
    let booter =
        "  - { name: booter, command: [sleep, \"60\"], accepts: [\"{https://xml-pipeline.org/ns/core/v1}boot\"] }\n";
    fs::write(folder.join("organism.yaml"), format!("{echo}{booter}")).unwrap();
    fs::write(folder.join("new.yaml"), echo).unwrap();
    let running = Running::organism(&folder, &[]);
    until("the listener to boot", || {
        fs::read_to_string(folder.join("log")).unwrap().contains("booter delivered").then_some(())
    });
    drop(running);
    folder.done(&["check", "organism.yaml", "--journal"]);
    let new = folder.systole(&["check", "new.yaml", "--journal"]).output().unwrap();
    assert_eq!(new.status.code(), Some(1), "{new:?}");
    has(&String::from_utf8_lossy(&new.stdout), &["there is no listener 'booter'", "the start is refused"]);
    assert_eq!(folder.systole(&["run", "new.yaml", "--until-idle"]).output().unwrap().status.code(), Some(2));
}
