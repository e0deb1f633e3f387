//! `systole run`, ended by `kill -9`: its output, the input of its commands, and their remains.

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdout, Command, Stdio};

use rustix::io::ioctl_fionread;
use systole::journal::JournalReader;

use crate::kit::Scratch;
use crate::kit::waiting::{runs, until};

const SCHEMA: &str = r#"<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema" targetNamespace="urn:t">
  <xs:element name="say" type="xs:string"/><xs:element name="run" type="xs:string"/>
</xs:schema>"#;

/// A folder with a durable organism: a parrot, and a command that is a shell script.
struct Folder(Scratch);

impl Folder {
    fn new(name: &str, script: &str) -> Self {
        let path = Scratch::new(&format!("killed-{name}"));
        fs::create_dir_all(path.join("tmp")).unwrap();
        fs::write(path.join("t.xsd"), SCHEMA).unwrap();
        fs::write(path.join("script"), script).unwrap();
        let organism = "\
            organism: { name: killed }\n\
            durability: process\n\
            journal: the.journal\n\
            clients: [{ name: cli, calls: ['{urn:t}say', '{urn:t}run'] }]\n\
            listeners:\n\
            - { name: parrot, schemas: [t.xsd], echo: true, accepts: ['{urn:t}say'] }\n\
            - { name: runner, command: [sh, script], accepts: ['{urn:t}run'], replies: ['{urn:t}say'], context: true, timeout: 1000s }\n";
        fs::write(path.join("organism.yaml"), organism).unwrap();
        Self(path)
    }

    fn start(&self, files: &[&str]) -> Child {
        Command::new(env!("CARGO_BIN_EXE_systole"))
            .args(["run", "organism.yaml", "--shards", "1"])
            .args(files)
            .current_dir(&self.0)
            .env("TMPDIR", self.0.join("tmp"))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .spawn()
            .unwrap()
    }

    fn envelopes(&self, name: &str, payloads: impl Iterator<Item = String>) {
        let mut text = String::new();
        for payload in payloads {
            text += "<message xmlns='https://xml-pipeline.org/ns/envelope/v1'><meta><from>cli</from></meta>";
            text += &format!("{payload}</message>\n");
        }
        fs::write(self.0.join(name), text).unwrap();
    }

    fn read(&self, name: &str) -> Option<String> {
        fs::read_to_string(self.0.join(name)).ok()
    }
}

fn kill(child: &mut Child) {
    child.kill().unwrap();
    child.wait().unwrap();
}

/// The number of an answer, if its line is whole.
fn answer(line: &str) -> Option<usize> {
    let (_, rest) = line.strip_suffix("</message>\n")?.split_once("xmlns=\"urn:t\">")?;
    rest.split_once('.')?.0.parse().ok()
}

/// Adds the answers in the pipe; an answer that is cut in its middle was not printed.
fn collect(out: ChildStdout, answers: &mut BTreeSet<usize>) {
    let mut out = BufReader::new(out);
    let mut line = String::new();
    while out.read_line(&mut line).unwrap() > 0 {
        answers.extend(answer(&line));
        line.clear();
    }
}

#[test]
fn no_answer_is_lost_when_the_pipe_is_slow() {
    // No message is answered before all were read: an answer that can't be printed stops the process from reading on.
    let script = "while [ ! -e go ]; do sleep 0.05; done; sed 's/run/say/g'\n";
    let (folder, count) = (Folder::new("pipe", script), 8);
    folder.envelopes("all.xml", (0..count).map(|n| format!("<run xmlns='urn:t'>{n}.{}</run>", "x".repeat(30_000))));
    let journal = folder.0.join("the.journal");
    let stat = || JournalReader::open(&journal).and_then(|reader| reader.stat()).ok();
    let mut answers = BTreeSet::new();
    while answers.len() < count {
        let mut child = folder.start(&["all.xml"][..usize::from(answers.is_empty())]);
        let out = child.stdout.take().unwrap();
        if answers.is_empty() {
            until("all messages in the journal", || stat().filter(|stat| stat.open_conversations == count as u64));
            fs::write(folder.0.join("go"), "").unwrap();
        }
        // The pipe has room for two answers, and no reader: the process waits in the middle of its third.
        let left = count - answers.len();
        let (bytes, printed) = if left > 2 { (61_000, 2) } else { (30_000 * left as u64, left) };
        until("a full pipe", || ioctl_fionread(&out).is_ok_and(|there| there > bytes).then_some(()));
        // The printed answers are read, and no other one is.
        until("the end of what was printed", || stat().filter(|stat| stat.unread_egress == (left - printed) as u64));
        kill(&mut child);
        collect(out, &mut answers);
        assert_eq!(answers.len(), count - left + printed, "{answers:?}");
    }
}

#[test]
fn a_command_sees_the_whole_payload_of_a_process_that_was_killed() {
    // The command leaves the group, so that it outlives its parent, and reads after the end of the parent.
    let script = "setsid sh -c 'mkfifo go; echo > begun; cat go; wc -c > count.new; mv count.new count'\ntrue\n";
    let folder = Folder::new("payload", script);
    let payload = format!("<run xmlns=\"urn:t\">{}</run>", "x".repeat(300_000));
    let whole = payload.len();
    folder.envelopes("one.xml", std::iter::once(payload));
    let mut child = folder.start(&["one.xml"]);
    until("the command", || folder.read("begun"));
    kill(&mut child);
    // The guard kills the processes that stayed in the group; this one has left it.
    writeln!(fs::OpenOptions::new().write(true).open(folder.0.join("go")).unwrap()).unwrap();
    let count = until("what the command read", || folder.read("count"));
    assert_eq!(count.trim(), whole.to_string());
}

#[test]
fn commands_end_with_the_process_and_leave_nothing() {
    let script =
        "(sh -c 'sleep 1000') & echo $$ $! > pids.new; test -s \"$SYSTOLE_HISTORY\" && mv pids.new pids; wait\n";
    let folder = Folder::new("group", script);
    folder.envelopes("one.xml", std::iter::once("<run xmlns='urn:t'/>".to_owned()));
    for _ in 0..3 {
        let mut child = folder.start(&["one.xml"]);
        let pids = until("the command", || folder.read("pids"));
        kill(&mut child);
        for pid in pids.split_whitespace() {
            until("the end of the command and what it started", || (!runs(pid)).then_some(()));
        }
        fs::remove_file(folder.0.join("pids")).unwrap();
        let left: Vec<_> = fs::read_dir(folder.0.join("tmp")).unwrap().map(|entry| entry.unwrap().path()).collect();
        assert!(left.is_empty(), "{left:?}");
        for ending in ["", "-wal", "-shm"] {
            fs::remove_file(folder.0.join(format!("the.journal{ending}"))).unwrap();
        }
    }
}
