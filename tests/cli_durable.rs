//! `systole run` of a durable organism: killed while it asks a person, and started again.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};

const ROOT: &str = env!("CARGO_MANIFEST_DIR");

/// A folder with an organism in it, gone with the test.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        let path = std::env::temp_dir().join(format!("systole-test-{}-durable", std::process::id()));
        fs::create_dir_all(&path).unwrap();
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
}

impl Drop for Folder {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.0).unwrap();
    }
}

/// Reads up to a text that somebody says.
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
    let mut first = folder.systole(&["run", "organism.yaml", "ask.xml"]).spawn().unwrap();
    until(first.stderr.as_mut().unwrap(), "cli asks judge");
    kill(first);

    let listed = folder.systole(&["thread", "list", "--journal", "court.journal"]).output().unwrap();
    let listed = String::from_utf8(listed.stdout).unwrap();
    assert!(listed.contains("cli") && listed.contains("open"), "{listed}");

    // Five times in a row: what waits for a person is not what ends the process.
    for _ in 0..5 {
        let mut again = folder.systole(&["run", "organism.yaml"]).spawn().unwrap();
        until(again.stderr.as_mut().unwrap(), "cli asks judge");
        kill(again);
    }

    let mut last = folder.systole(&["run", "organism.yaml"]).spawn().unwrap();
    until(last.stderr.as_mut().unwrap(), "cli asks judge");
    let mut said = lines(&mut last);
    last.stdin.as_mut().unwrap().write_all(b"1\nfalse\nnot <proven>\n").unwrap();
    let mut reply = String::new();
    said.read_line(&mut reply).unwrap();
    assert!(reply.contains("<from>judge</from>") && reply.contains("not &lt;proven&gt;"), "{reply}");
    kill(last);

    let stat = folder.systole(&["journal", "verify", "court.journal"]).output().unwrap();
    assert!(stat.status.success(), "{}", String::from_utf8_lossy(&stat.stderr));
}

#[test]
fn a_conversation_begins_anew_with_another_answer() {
    let path = std::env::temp_dir().join(format!("systole-test-{}-swarm", std::process::id()));
    fs::create_dir_all(&path).unwrap();
    let folder = Folder(path);
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
    let at = shown.as_array().unwrap().iter().find(sum).unwrap()["id"].as_str().unwrap();

    fs::write(folder.0.join("sum.xml"), "<sum xmlns=\"urn:example:calculator:v1\" value=\"many\"/>").unwrap();
    let fork = ["thread", "fork", conversation, "--at", at, "--edit", "sum.xml", "--organism", "organism.yaml"];
    let fork = |more: &[&str]| said(&[&fork[..], &["--journal", "swarm.journal"], more].concat());
    let (code, _, err) = fork(&[]);
    assert!(code == 1 && err.starts_with("sum.xml:1:") && err.contains("many"), "{err}");
    fs::write(folder.0.join("sum.xml"), "<sum xmlns=\"urn:example:calculator:v1\" value=\"-100\"/>").unwrap();
    let (code, _, err) = fork(&["--as", "nobody"]);
    assert!(code == 1 && err.contains("no client 'nobody'"), "{err}");
    let (code, id, err) = fork(&[]);
    assert_eq!((code, err.as_str()), (0, ""));

    // The researcher has what it was answered before, as context: it is not asked for again.
    let (code, answer, err) = said(&["run", "organism.yaml", "--until-idle"]);
    assert!(code == 0 && answer.contains("<total>4</total>"), "{answer}{err}");
    assert!(answer.contains(&format!("<thread>{}</thread>", id.trim_end())), "{answer}");
    assert!(!err.contains("a question from"), "the researcher splits nothing up again: {err}");

    let (_, listed, _) = said(&["thread", "list", "--journal", "swarm.journal"]);
    let fork = listed.lines().find(|line| line.starts_with(id.trim_end())).unwrap();
    assert!(fork.contains("closed"), "it has given its answer: {listed}");
    let (_, open, _) = said(&["thread", "list", "--open", "--journal", "swarm.journal"]);
    assert_eq!(open.lines().count(), 1, "{open}");
}

#[test]
fn a_file_that_is_no_journal_is_refused_and_left_alone() {
    let path = std::env::temp_dir().join(format!("systole-test-{}-no-journal", std::process::id()));
    fs::create_dir_all(&path).unwrap();
    let folder = Folder(path);
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
