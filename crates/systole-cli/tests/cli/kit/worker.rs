//! An organism with a worker, run by the real program.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use super::running::Running;
use super::waiting::{Lines, until};

pub(crate) const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

use crate::kit::Scratch;

/// The beginning of each script for the package of `sdk/python`: a check of errors, and dataclasses without a payload of their
/// own.
const SCRIPT: &str = r#"
from dataclasses import dataclass

def fails(kind, *parts, of):
    try:
        of()
    except kind as error:
        assert all(part in str(error) for part in parts), (error, parts)
    else:
        assert False, parts

@dataclass
class Fetched:
    pass

@dataclass
class ByCourier:
    street: str
    note: str | None = None
"#;

/// A script in Python with the package, in the folder of the repository.
pub(crate) fn python(script: &str) -> Command {
    let mut command = Command::new("python3");
    command.arg("-c").arg(format!("{SCRIPT}{script}"));
    command.current_dir(ROOT).env("PYTHONPATH", format!("{ROOT}/sdk/python"));
    command
}

const SCHEMA: &str = r#"<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema" targetNamespace="urn:t">
  <xs:element name="do" type="xs:string"/><xs:element name="say" type="xs:string"/><xs:element name="ask" type="xs:string"/>
</xs:schema>"#;

/// A folder with an organism: the worker `agent`, and the command `parrot`. It is removed when the test drops it.
pub(crate) struct Folder(Scratch);

impl Folder {
    pub(crate) fn new(name: &str, agent: &str, keys: &str) -> Self {
        let path = Scratch::new(&format!("worker-{name}"));
        fs::write(path.join("t.xsd"), SCHEMA).unwrap();
        fs::write(path.join("agent.py"), agent).unwrap();
        let organism = format!(
            "organism: {{ name: worker }}\n\
             limits: {{ message_bytes: 1100000 }}\n\
             clients: [{{ name: cli, calls: ['{{urn:t}}do'] }}]\n\
             listeners:\n\
             - {{ name: parrot, schemas: [t.xsd], command: [sh, -c, \"sed 's/ask/say/g'\"], accepts: ['{{urn:t}}ask'], replies: ['{{urn:t}}say'] }}\n\
             - {{ name: agent, worker: [python3, agent.py], accepts: ['{{urn:t}}do'], replies: ['{{urn:t}}say'], calls: ['{{urn:t}}ask'], \
             env: ['PYTHONPATH={ROOT}/sdk/python'], {keys} }}\n"
        );
        fs::write(path.join("organism.yaml"), organism).unwrap();
        Self(path)
    }

    /// Adds a limit of the organism.
    pub(crate) fn limit(&self, limit: &str) {
        let file = self.0.join("organism.yaml");
        let text = fs::read_to_string(&file).unwrap().replace("limits: {", &format!("limits: {{ {limit},"));
        fs::write(file, text).unwrap();
    }

    /// Makes the organism durable.
    pub(crate) fn keep(&self) {
        let file = self.0.join("organism.yaml");
        let text = fs::read_to_string(&file).unwrap();
        fs::write(file, format!("{text}durability: process\njournal: the.journal\n")).unwrap();
    }

    pub(crate) fn start(&self, extra: &[&str]) -> Running {
        Running::organism(&self.0, &[&["--json"], extra].concat())
    }

    /// Asks the agent by `systole ask --stream`: the process, and the lines of its standard error.
    pub(crate) fn streamed(&self) -> (Child, Lines) {
        let mut ask = self.0.systole(&["ask", "organism.yaml", "<do xmlns='urn:t'>it</do>", "--stream"]);
        let mut child = ask.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let lines = Lines::of(child.stderr.take().unwrap());
        (child, lines)
    }

    pub(crate) fn read(&self, name: &str) -> String {
        fs::read_to_string(self.0.join(name)).unwrap_or_default()
    }

    /// Waits until the log has these texts: lines follow the answers that they are about.
    #[track_caller]
    pub(crate) fn logs(&self, parts: &[&str]) {
        for part in parts {
            until(&format!("'{part}' in the log"), || self.read("log").contains(part).then_some(()));
        }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    /// Processes that were started.
    pub(crate) fn started(&self) -> usize {
        self.read("started").lines().count()
    }
}

impl Running {
    pub(crate) fn send(&mut self, text: &str) {
        let text = text.replace('&', "&amp;").replace('<', "&lt;");
        writeln!(self.child.stdin.as_mut().unwrap(), "<do xmlns='urn:t'>{text}</do>").unwrap();
    }

    pub(crate) fn ask(&mut self, text: &str) -> String {
        self.send(text);
        self.receive()
    }

    pub(crate) fn end(&mut self) -> (Option<i32>, String) {
        drop(self.child.stdin.take());
        let rest = self.out.rest();
        (self.child.wait().unwrap().code(), rest)
    }
}
