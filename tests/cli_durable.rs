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

    // Three times in a row: what waits for a person is not what ends the process.
    for _ in 0..3 {
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
