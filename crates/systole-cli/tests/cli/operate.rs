//! Commands for a running organism, through the socket beside its journal.

use std::fs;
use std::io::Write;
use std::ops::Deref;
use std::os::unix::fs::PermissionsExt;
use std::process::{Child, Command, Stdio};

use serde_json::Value;

use crate::kit::waiting::{Lines, until};
use crate::kit::{Scratch, has};

/// A durable organism whose listener waits for a file before it answers.
const ORGANISM: &str = r#"organism: { name: desk }
durability: process
journal: desk.journal
clients: [{ name: cli, calls: ["{urn:t}say"] }]
listeners:
  - name: parrot
    command: [sh, -c, "while [ ! -e go ]; do sleep 0.01; done; echo '<say xmlns=\"urn:t\">done</say>'"]
    schemas: [thing.xsd]
    accepts: ["{urn:t}say"]
    replies: ["{urn:t}say"]
"#;

struct Desk {
    folder: Scratch,
}

impl Deref for Desk {
    type Target = Scratch;

    fn deref(&self) -> &Scratch {
        &self.folder
    }
}

impl Desk {
    fn new(name: &str) -> Self {
        let folder = Scratch::new(name);
        fs::write(folder.join("organism.yaml"), ORGANISM).unwrap();
        let schema = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/golden/run/thing.xsd");
        fs::copy(schema, folder.join("thing.xsd")).unwrap();
        Self { folder }
    }

    /// Starts the organism, and waits until it serves operators.
    fn start(&self) -> (Child, Lines) {
        let mut run = self.systole(&["run", "organism.yaml", "-"]);
        let mut child = run.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let out = Lines::of(child.stdout.take().unwrap());
        until("the socket", || self.command(&["top"]).status.success().then_some(()));
        (child, out)
    }

    fn top(&self) -> Value {
        serde_json::from_str(&self.done(&["top", "--json"])).unwrap()
    }
}

fn say(child: &mut Child) {
    child.stdin.as_mut().unwrap().write_all(b"<say xmlns='urn:t'>hi</say>\n").unwrap();
}

fn conversations(top: &Value) -> usize {
    top["conversations"].as_array().unwrap().len()
}

#[test]
fn a_pause_survives_a_kill_and_ends_with_resume() {
    let desk = Desk::new("paused");
    fs::write(desk.folder.join("go"), "").unwrap();
    let (mut child, _) = desk.start();
    assert_eq!(desk.done(&["pause", "parrot"]), "pause parrot: done\n");
    say(&mut child);
    until("the conversation", || (conversations(&desk.top()) == 1).then_some(()));
    child.kill().unwrap();
    child.wait().unwrap();
    let (mut child, out) = desk.start();
    let top = desk.top();
    assert_eq!((conversations(&top), &top["listeners"][0]["running"]), (1, &0.into()), "{top}");
    has(&desk.done(&["top"]), &["parrot", "paused since 20"]);
    desk.done(&["resume", "parrot"]);
    out.until("done", |line| line.contains("<say xmlns=\"urn:t\">done</say>"));
    desk.done(&["drain"]);
    assert!(child.wait().unwrap().success());
}

#[test]
fn a_cancelled_conversation_ends_with_a_fault() {
    let desk = Desk::new("cancelled");
    let (mut child, out) = desk.start();
    say(&mut child);
    let top = until("the conversation", || Some(desk.top()).filter(|top| conversations(top) == 1));
    let id = top["conversations"][0]["conversation"].as_str().unwrap();
    assert_eq!(desk.done(&["cancel", id]), format!("cancel {id}: done\n"));
    out.until("the fault", |line| line.contains("an operator cancelled it"));
    let again = desk.command(&["cancel", id]);
    assert_eq!(again.status.code(), Some(1));
    has(&String::from_utf8_lossy(&again.stdout), &["no effect", "is no open thread"]);
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn a_conversation_is_retried_while_the_organism_runs() {
    let desk = Desk::new("retried");
    // This one answers with what it got.
    fs::write(
        desk.folder.join("organism.yaml"),
        ORGANISM.replace(
            r#"[sh, -c, "while [ ! -e go ]; do sleep 0.01; done; echo '<say xmlns=\"urn:t\">done</say>'"]"#,
            "[cat]",
        ),
    )
    .unwrap();
    let (mut child, out) = desk.start();
    say(&mut child);
    out.until("the answer", |line| line.contains(">hi</say>"));
    let listed: Value = serde_json::from_str(&desk.done(&["thread", "list", "--json"])).unwrap();
    let id = listed[0]["conversation"].as_str().unwrap();
    let again = desk.done(&["thread", "retry", id]);
    out.until("the answer again", |line| line.contains(again.trim()) && line.contains(">hi</say>"));
    let edit = desk.folder.join("edit.xml");
    fs::write(&edit, "<say xmlns='urn:other'>x</say>").unwrap();
    let refused = desk.command(&["thread", "retry", id, "--edit", "edit.xml"]);
    assert_eq!(refused.status.code(), Some(1));
    has(&String::from_utf8_lossy(&refused.stderr), &["urn:other"]);
    fs::write(&edit, "<say xmlns='urn:t'>edited</say>").unwrap();
    let nobody = desk.command(&["thread", "retry", id, "--as", "nobody"]);
    has(&String::from_utf8_lossy(&nobody.stderr), &["no client 'nobody'"]);
    // What it opened is durable: it goes on after a kill.
    desk.done(&["pause", "parrot"]);
    let edited = desk.done(&["thread", "retry", id, "--edit", "edit.xml"]);
    child.kill().unwrap();
    child.wait().unwrap();
    let (mut child, out) = desk.start();
    desk.done(&["resume", "parrot"]);
    out.until("the edited answer", |line| line.contains(edited.trim()) && line.contains(">edited</say>"));
    desk.done(&["drain"]);
    assert!(child.wait().unwrap().success());
}

#[test]
fn a_question_is_asked_while_the_organism_runs() {
    let desk = Desk::new("asked");
    let (mut child, out) = desk.start();
    let asked = desk.systole(&["ask", "organism.yaml", "<say xmlns='urn:t'>hi</say>"]).stdout(Stdio::piped()).spawn();
    until("the conversation", || (conversations(&desk.top()) == 1).then_some(()));
    fs::write(desk.folder.join("go"), "").unwrap();
    let asked = asked.unwrap().wait_with_output().unwrap();
    assert_eq!(String::from_utf8_lossy(&asked.stdout), "<say xmlns=\"urn:t\">done</say>\n");
    let refused = desk.command(&["ask", "organism.yaml", "<other xmlns='urn:t'/>"]);
    assert_eq!(refused.status.code(), Some(1), "{refused:?}");
    // An answer of several lines is printed as it is.
    let lines = "<say xmlns=\"urn:t\">one\n\ttwo</say>";
    let command = "sh, -c, \"cat lines.txt\"";
    let other = Desk::new("lines");
    let of_lines = ORGANISM.lines().map(|line| match line.contains("command:") {
        true => format!("    command: [{command}]"),
        false => line.to_owned(),
    });
    fs::write(other.folder.join("organism.yaml"), of_lines.collect::<Vec<_>>().join("\n")).unwrap();
    fs::write(other.folder.join("lines.txt"), lines).unwrap();
    let stopped = other.done(&["ask", "organism.yaml", "<say xmlns='urn:t'>hi</say>"]);
    assert!(stopped.contains("one\n\ttwo"), "{stopped}");
    let (mut answering, _) = other.start();
    assert_eq!(other.done(&["ask", "organism.yaml", "<say xmlns='urn:t'>hi</say>"]), stopped);
    answering.kill().unwrap();
    answering.wait().unwrap();
    // What is asked for is answered there, and nowhere else.
    say(&mut child);
    out.until("the answer to standard input", |line| line.contains("done"));
    let listed = desk.done(&["thread", "list", "--text", "done", "--payload", "{urn:t}say"]);
    assert_eq!(listed.lines().count(), 3, "{listed}");
    // A fault ends it, and is found.
    fs::remove_file(desk.folder.join("go")).unwrap();
    let ask = || {
        desk.systole(&["ask", "organism.yaml", "<say xmlns='urn:t'>hi</say>"]).stdout(Stdio::null()).spawn().unwrap()
    };
    let mut asked = ask();
    // That of standard input stays open as long as this is.
    let running = || {
        let top = desk.top();
        let all = top["conversations"].as_array().unwrap().iter();
        all.filter(|one| one["running"] == 1).find_map(|one| one["conversation"].as_str().map(str::to_owned))
    };
    let id = until("the conversation", running);
    desk.done(&["cancel", &id]);
    assert_eq!(asked.wait().unwrap().code(), Some(1));
    has(&desk.done(&["thread", "list", "--fault", "cancelled"]), &["ended, cancelled"]);
    // Who hangs up gives up.
    let mut asked = ask();
    until("the conversation", running);
    asked.kill().unwrap();
    asked.wait().unwrap();
    until("its end", || running().is_none().then_some(()));
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn the_levels_of_the_log_are_set_while_the_organism_runs() {
    let desk = Desk::new("levels");
    let (mut child, _) = desk.start();
    assert_eq!(desk.done(&["log-level", "debug"]), "log-level debug: done\n");
    let refused = desk.command(&["log-level", "loud"]);
    assert_eq!(refused.status.code(), Some(1));
    has(&String::from_utf8_lossy(&refused.stderr), &["there is no such level: write error, warn"]);
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn the_socket_is_for_its_owner_alone_and_goes_with_the_organism() {
    let desk = Desk::new("socket");
    let socket = desk.folder.join("desk.journal.socket");
    // One that a killed process left.
    drop(std::os::unix::net::UnixListener::bind(&socket).unwrap());
    let (mut child, _) = desk.start();
    assert_eq!(fs::metadata(&socket).unwrap().permissions().mode() & 0o777, 0o600);
    let unknown = desk.command(&["pause", "nobody"]);
    has(&String::from_utf8_lossy(&unknown.stderr), &["the organism has no listener 'nobody'"]);
    desk.done(&["drain", "--within", "5"]);
    assert!(child.wait().unwrap().success());
    assert!(!socket.exists());
    let refused = desk.command(&["top"]);
    assert_eq!(refused.status.code(), Some(2));
    has(&String::from_utf8_lossy(&refused.stderr), &["no running organism serves operators"]);
}

#[test]
fn a_listener_that_rests_is_shown_with_the_cause() {
    let desk = Desk::new("rests");
    let organism = ORGANISM.replace(
        "command: [sh, -c, \"while [ ! -e go ]; do sleep 0.01; done; echo '<say xmlns=\\\"urn:t\\\">done</say>'\"]",
        "worker: [sh, -c, \"echo no model >&2; exit 3\"]",
    );
    assert!(organism.contains("worker:"));
    fs::write(desk.folder.join("organism.yaml"), organism).unwrap();
    let (mut child, _) = desk.start();
    child.stdin.as_mut().unwrap().write_all(b"<say xmlns='urn:t'>x</say>\n").unwrap();
    let rest = until("a rest", || desk.top()["listeners"][0]["rests"].as_object().cloned());
    assert!(rest["why"].as_str().unwrap().ends_with("exited with status 3: no model"), "{rest:?}");
    assert!(rest["since"].as_str() < rest["until"].as_str(), "{rest:?}");
    until("a rest in the table", || desk.done(&["top"]).contains(": no model").then_some(()));
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn a_socket_that_another_user_put_there_is_told_nothing() {
    if !rustix::process::geteuid().is_root() {
        eprintln!("only root becomes another user: nothing was tried");
        return;
    }
    const USER: u32 = 54_322;
    let desk = Desk::new("foreign");
    fs::write(desk.folder.join("desk.journal"), "").unwrap();
    fs::set_permissions(&desk.folder, fs::Permissions::from_mode(0o777)).unwrap();
    let bind = "import os, socket, sys; os.setuid(int(sys.argv[1])); s = socket.socket(socket.AF_UNIX); \
                s.bind('desk.journal.socket'); s.listen(); print('there', flush=True); \
                c, _ = s.accept(); print(len(c.recv(100)), flush=True)";
    let mut other = Command::new("python3");
    other.args(["-c", bind, &USER.to_string()]).current_dir(&desk.folder).stdout(Stdio::piped());
    let mut other = other.spawn().unwrap();
    let said = Lines::of(other.stdout.take().unwrap());
    assert_eq!(said.next().unwrap(), "there\n");
    let output = desk.command(&["pause", "parrot", "--journal", "desk.journal"]);
    let err = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.code() == Some(2) && err.contains("belongs to another user"), "{err}");
    assert_eq!(said.next().unwrap(), "0\n", "it was told nothing");
    other.wait().unwrap();
}
