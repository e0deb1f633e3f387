//! `systole run` of a durable organism: killed while it asks a person, and started again.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::Duration;

use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open, pidfd_send_signal};

use crate::kit::Scratch;

/// Time limit of a process, on a machine under load.
const PATIENCE: Duration = Duration::from_secs(120);

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// A folder with an organism in it, gone with the test.
struct Folder(Scratch);

impl Folder {
    fn new() -> Self {
        let path = Scratch::new("durable");
        let organism = fs::read_to_string(Path::new(ROOT).join("tests/golden/run/human.yaml")).unwrap();
        let organism = format!("durability: process\njournal: court.journal\n{organism}");
        fs::write(path.join("organism.yaml"), organism).unwrap();
        for file in ["thing.xsd", "ask.xml"] {
            fs::copy(Path::new(ROOT).join("tests/golden/run").join(file), path.join(file)).unwrap();
        }
        Self(path)
    }

    fn systole(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_systole"));
        command.args(args).current_dir(&self.0).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// Starts the program, and kills it after far more time than it needs, so that a test that reads from it goes on.
    fn start(&self, args: &[&str]) -> Child {
        let child = self.systole(args).spawn().unwrap();
        let process = pidfd_open(Pid::from_child(&child), PidfdFlags::empty()).unwrap();
        let words = format!("systole {}", args.join(" "));
        std::thread::spawn(move || {
            std::thread::sleep(PATIENCE);
            if pidfd_send_signal(process, Signal::KILL).is_ok() {
                eprintln!("killed after {PATIENCE:?}: {words}");
            }
        });
        child
    }
}

/// Reads up to a text.
fn until(from: &mut impl Read, text: &str) -> String {
    let (mut said, mut byte) = (String::new(), [0]);
    while !said.contains(text) {
        assert_eq!(from.read(&mut byte).unwrap(), 1, "it ended before '{text}': {said}");
        said.push(char::from(byte[0]));
    }
    said
}

fn kill(mut child: Child) {
    child.kill().unwrap();
    child.wait().unwrap();
}

fn lines(child: &mut Child) -> BufReader<ChildStdout> {
    BufReader::new(child.stdout.take().unwrap())
}

#[test]
fn a_question_to_a_person_outlives_the_process() {
    let folder = Folder::new();
    let mut first = folder.start(&["run", "organism.yaml", "ask.xml"]);
    until(first.stderr.as_mut().unwrap(), "cli asks judge");
    kill(first);

    let listed = folder.systole(&["thread", "list", "--journal", "court.journal"]).output().unwrap();
    let listed = String::from_utf8(listed.stdout).unwrap();
    assert!(listed.contains("cli") && listed.contains("open"), "{listed}");

    // Five times in a row: the message that waits for a person is not the one that ends the process.
    for _ in 0..5 {
        let mut again = folder.start(&["run", "organism.yaml"]);
        until(again.stderr.as_mut().unwrap(), "cli asks judge");
        kill(again);
    }

    let mut last = folder.start(&["run", "organism.yaml"]);
    until(last.stderr.as_mut().unwrap(), "cli asks judge");
    let mut said = lines(&mut last);
    last.stdin.as_mut().unwrap().write_all(b"1\nfalse\nnot <proven>\ny\n").unwrap();
    let mut reply = String::new();
    said.read_line(&mut reply).unwrap();
    assert!(reply.contains("<from>judge</from>") && reply.contains("not &lt;proven&gt;"), "{reply}");
    kill(last);

    let stat = folder.systole(&["journal", "verify", "court.journal"]).output().unwrap();
    assert!(stat.status.success(), "{}", String::from_utf8_lossy(&stat.stderr));
}

#[test]
fn a_question_outlives_the_end_of_its_keyboard() {
    let folder = Folder::new();
    let nobody = |args: &[&str]| {
        let mut command = folder.systole(args);
        command.stdin(Stdio::null());
        command
    };
    let said = nobody(&["run", "organism.yaml", "ask.xml", "--until-idle"]).output().unwrap();
    let err = String::from_utf8(said.stderr).unwrap();
    assert_eq!((said.status.code(), said.stdout.as_slice()), (Some(4), &b""[..]), "{err}");
    let waits = "questions wait for a person: cli asks judge: they wait in the journal (`systole inbox` lists them)";
    assert!(err.contains(waits), "{err}");

    // A service.
    let mut service = nobody(&["run", "organism.yaml"]).spawn().unwrap();
    until(service.stderr.as_mut().unwrap(), "a question to judge waits for people elsewhere");
    kill_process(Pid::from_child(&service), Signal::TERM).unwrap();
    let mut rest = String::new();
    service.stderr.as_mut().unwrap().read_to_string(&mut rest).unwrap();
    assert_eq!(service.wait().unwrap().code(), Some(0), "{rest}");

    let mut last = folder.start(&["run", "organism.yaml", "--until-idle"]);
    last.stdin.as_mut().unwrap().write_all(b"1\nfalse\nnot <proven>\ny\n").unwrap();
    let last = last.wait_with_output().unwrap();
    let (out, err) = (String::from_utf8_lossy(&last.stdout), String::from_utf8_lossy(&last.stderr));
    assert!(last.status.code() == Some(0) && out.contains("not &lt;proven&gt;"), "{out}{err}");
}

#[test]
fn a_conversation_begins_anew_with_another_answer() {
    let folder = Folder(Scratch::new("swarm"));
    for file in fs::read_dir(Path::new(ROOT).join("examples/swarm")).unwrap() {
        let file = file.unwrap();
        fs::copy(file.path(), folder.0.join(file.file_name())).unwrap();
    }
    let organism = fs::read_to_string(folder.0.join("organism.yaml")).unwrap();
    let organism = format!("durability: process\njournal: swarm.journal\n{organism}");
    fs::write(folder.0.join("organism.yaml"), organism).unwrap();
    let said = |args: &[&str]| {
        let output = folder.systole(args).stdin(Stdio::null()).output().unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
    };
    let (code, answer, err) = said(&["run", "organism.yaml", "question.xml", "--until-idle"]);
    assert!(code == 0 && answer.contains("<total>146</total>"), "{answer}{err}");
    let (_, listed, _) = said(&["thread", "list", "--journal", "swarm.journal"]);
    let conversation = listed.lines().nth(1).unwrap().split_whitespace().next().unwrap();
    let (_, shown, _) = said(&["thread", "show", conversation, "--json", "--journal", "swarm.journal"]);
    let shown: serde_json::Value = serde_json::from_str(&shown).unwrap();
    let sum =
        |line: &&serde_json::Value| line["kind"] == "message" && line["text"].as_str().unwrap().contains("\"42\"");
    let at = shown.as_array().unwrap().iter().find(sum).unwrap()["message"].as_str().unwrap();

    fs::write(folder.0.join("sum.xml"), "<sum xmlns=\"urn:example:calculator:v1\" value=\"many\"/>").unwrap();
    let fork = ["thread", "retry", conversation, "--at", at, "--edit", "sum.xml", "--organism", "organism.yaml"];
    let fork = |more: &[&str]| said(&[&fork[..], &["--journal", "swarm.journal"], more].concat());
    let (code, _, err) = fork(&[]);
    assert!(code == 1 && err.starts_with("sum.xml:1:") && err.contains("many"), "{err}");
    fs::write(folder.0.join("sum.xml"), "<sum xmlns=\"urn:example:calculator:v1\" value=\"-100\"/>").unwrap();
    let (code, _, err) = fork(&["--as", "nobody"]);
    assert!(code == 1 && err.contains("no client 'nobody'"), "{err}");
    let (code, id, err) = fork(&[]);
    assert_eq!((code, err.as_str()), (0, ""));

    // The researcher has its earlier answers as context: it doesn't ask for them again.
    let (code, answer, err) = said(&["run", "organism.yaml", "--until-idle"]);
    assert!(code == 0 && answer.contains("<total>4</total>"), "{answer}{err}");
    assert!(answer.contains(&format!("<thread>{}</thread>", id.trim_end())), "{answer}");
    assert!(!err.contains("a question from"), "the researcher splits nothing up again: {err}");

    let (_, listed, _) = said(&["thread", "list", "--journal", "swarm.journal"]);
    let fork = listed.lines().find(|line| line.starts_with(id.trim_end())).unwrap();
    assert!(fork.contains("ended"), "it has given its answer: {listed}");
    let (_, open, _) = said(&["thread", "list", "--open", "--journal", "swarm.journal"]);
    assert_eq!(open.lines().count(), 1, "{open}");
}

#[test]
fn a_file_that_is_no_journal_is_refused_and_left_alone() {
    let folder = Folder(Scratch::new("no-journal"));
    fs::write(
        folder.0.join("organism.yaml"),
        "organism: { name: x }\ndurability: power\njournal: notes.txt\nlisteners: []\n",
    )
    .unwrap();
    fs::write(folder.0.join("notes.txt"), "not a journal".repeat(100)).unwrap();
    let run = folder.systole(&["run", "organism.yaml"]).stdin(Stdio::null()).output().unwrap();
    let error = String::from_utf8(run.stderr).unwrap();
    assert!(!run.status.success() && error.contains("notes.txt"), "{error}");
    assert_eq!(fs::read_to_string(folder.0.join("notes.txt")).unwrap(), "not a journal".repeat(100));
}

/// A parrot that is durable, in a folder of its own.
fn parrot(name: &str) -> Folder {
    let path = Scratch::new(name);
    fs::copy(Path::new(ROOT).join("tests/golden/run/thing.xsd"), path.join("thing.xsd")).unwrap();
    let organism = "organism: { name: parrots }\ndurability: process\njournal: full.journal\n\
        clients:\n  - { name: cli, calls: [\"{urn:t}say\"] }\n\
        listeners:\n  - { name: parrot, echo: true, schemas: [thing.xsd], accepts: [\"{urn:t}say\"] }\n";
    fs::write(path.join("organism.yaml"), organism).unwrap();
    Folder(path)
}

/// A program whose files can't grow past a megabyte or two, as on a full disk.
fn on_a_small_disk(folder: &Folder, args: &[&str]) -> Child {
    let mut command = Command::new("sh");
    command.args(["-c", "ulimit -S -f 2000; exec \"$0\" \"$@\"", env!("CARGO_BIN_EXE_systole")]);
    command.args(args).current_dir(&folder.0);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

fn envelope(text: &str) -> String {
    let head = "<message xmlns=\"https://xml-pipeline.org/ns/envelope/v1\"><meta><from>cli</from></meta>";
    format!("{head}<say xmlns=\"urn:t\">{text}{}</say></message>\n", "x".repeat(3000))
}

/// The numbers that answers begin with.
fn answered(out: &str) -> std::collections::BTreeSet<u32> {
    let numbers = out.split("<say xmlns=\"urn:t\">").skip(1);
    numbers.map(|rest| rest.split('-').next().unwrap().parse().unwrap()).collect()
}

#[test]
fn a_full_disk_ends_the_process_with_a_code_of_its_own_and_nothing_confirmed_is_lost() {
    let folder = parrot("full");
    let mut child = on_a_small_disk(&folder, &["run", "organism.yaml"]);
    let mut input = child.stdin.take().unwrap();
    // The test writes until the reader is gone.
    let writer = std::thread::spawn(move || {
        (0..100_000).find(|n| input.write_all(envelope(&format!("{n}-")).as_bytes()).is_err()).expect("no end")
    });
    let output = child.wait_with_output().unwrap();
    let sent = writer.join().unwrap();
    let (out, err) = (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap());
    assert_eq!(output.status.code(), Some(3), "{err}");
    assert!(err.contains("goes on with the next start") && err.contains("full.journal"), "{err}");
    assert!(err.contains("(ulimit -f): raise that and try again"), "{err}");
    let faults = out.matches("the journal can't be written").count();
    assert!(faults > 0, "whoever waits is told: {err}");

    let verified = folder.systole(&["journal", "verify", "full.journal"]).output().unwrap();
    assert!(verified.status.success(), "{}", String::from_utf8_lossy(&verified.stderr));
    let again = folder.systole(&["run", "organism.yaml", "--until-idle"]).stdin(Stdio::null()).output().unwrap();
    assert!(again.status.success(), "{}", String::from_utf8_lossy(&again.stderr));
    let mut answers = answered(&out);
    answers.extend(answered(&String::from_utf8(again.stdout).unwrap()));
    let last = *answers.last().unwrap();
    // The number of answers depends on how many were written together.
    assert!(last < sent && last > 5, "{last} of {sent}");
    let missing = (0..=last).filter(|n| !answers.contains(n)).count();
    assert!(missing <= faults, "{missing} are missing, {faults} were told");
}

#[test]
fn an_organism_that_is_to_start_again_does_so_when_there_is_room() {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};
    let folder = parrot("again");
    let mut child = on_a_small_disk(&folder, &["run", "organism.yaml", "--restart"]);
    let (mut input, mut err) = (child.stdin.take().unwrap(), child.stderr.take().unwrap());
    let room = Arc::new(AtomicBool::new(false));
    let writer = std::thread::spawn({
        let room = room.clone();
        move || {
            let mut number = 0;
            while !room.load(Ordering::Acquire) {
                input.write_all(envelope(&format!("{number}-")).as_bytes()).unwrap();
                number += 1;
            }
            input.write_all(envelope("999999-").as_bytes()).unwrap();
            input
        }
    });
    let mut out = BufReader::new(child.stdout.take().unwrap());
    let reader = std::thread::spawn(move || {
        let mut line = String::new();
        while !line.contains(">999999-") {
            line.clear();
            assert!(out.read_line(&mut line).unwrap() > 0, "it ended before it answered again");
        }
    });
    until(&mut err, "the organism starts again when that is over");
    let grow = rustix::process::Rlimit { current: None, maximum: None };
    let process = rustix::process::Pid::from_raw(child.id() as i32);
    rustix::process::prlimit(process, rustix::process::Resource::Fsize, grow).unwrap();
    room.store(true, Ordering::Release);
    let rest = std::thread::spawn(move || std::io::copy(&mut err, &mut std::io::sink()));
    reader.join().unwrap();
    drop(writer.join().unwrap());
    rustix::process::kill_process(process.unwrap(), rustix::process::Signal::TERM).unwrap();
    assert!(child.wait().unwrap().code().is_some());
    rest.join().unwrap().unwrap();
    let verified = folder.systole(&["journal", "verify", "full.journal"]).output().unwrap();
    assert!(verified.status.success(), "{}", String::from_utf8_lossy(&verified.stderr));
}
