//! `systole run --watch`: a changed file starts the organism again; one that is wrong leaves it as it is.

use std::fs;

use rustix::process::{Pid, Signal, kill_process};

use crate::kit::Scratch;
use crate::kit::running::Running;
use crate::kit::waiting::{runs, until};

const ORGANISM: &str = "organism: { name: watched }
clients: [{ name: cli, calls: [agent] }]
listeners:
  - { name: agent, command: [sh, agent.sh], schemas: [t.xsd], accepts: ['{urn:t}do'], replies: ['{urn:t}say'] }
";

const SCHEMA: &str = r#"<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema" targetNamespace="urn:t">
  <xs:element name="do" type="xs:string"/><xs:element name="say" type="xs:string"/>
</xs:schema>"#;

struct Folder(Scratch);

impl Folder {
    fn new(name: &str) -> Self {
        let path = Scratch::new(&format!("watch-{name}"));
        let folder = Self(path);
        folder.write("organism.yaml", ORGANISM);
        folder.write("t.xsd", SCHEMA);
        folder.says("one");
        folder
    }

    /// Replaces a file at once, as many editors do.
    fn write(&self, name: &str, text: &str) {
        let new = self.0.join("new");
        fs::write(&new, text).unwrap();
        fs::rename(new, self.0.join(name)).unwrap();
    }

    fn says(&self, word: &str) {
        self.write("agent.sh", &format!("sed 's/do/say/g; s/>[^<]*</>{word}</'\n"));
    }

    fn start(&self, args: &[&str]) -> Running {
        Running::organism(&self.0, &[&["--watch", "--quiet"], args].concat())
    }

    /// Waits until the log has a text so many times.
    fn logged(&self, text: &str, times: usize) {
        until(text, || {
            let log = fs::read_to_string(self.0.join("log")).unwrap_or_default();
            (log.matches(text).count() >= times).then_some(())
        });
    }
}

impl Running {
    #[track_caller]
    fn answers(&mut self, word: &str) {
        let answer = self.receive();
        assert!(answer.contains(&format!(">{word}</say>")), "no {word} in {answer}");
    }

    fn stop(mut self) -> Option<i32> {
        kill_process(Pid::from_raw(self.child.id().cast_signed()).unwrap(), Signal::TERM).unwrap();
        self.child.wait().unwrap().code()
    }
}

#[test]
fn a_changed_file_starts_the_organism_again_which_gets_its_messages() {
    let folder = Folder::new("files");
    folder.write("do.xml", "<do xmlns='urn:t'>it</do>");
    let mut running = folder.start(&["do.xml"]);
    running.answers("one");
    folder.says("two");
    running.answers("two");
    folder.write("do.xml", "<do xmlns='urn:t'>it</do><do xmlns='urn:t'>it again</do>");
    running.answers("two");
    running.answers("two");
    // A new file of the configuration is watched from then on.
    folder.write("three.sh", "echo '<say>three</say>'");
    folder.write("organism.yaml", &ORGANISM.replace("agent.sh", "three.sh"));
    running.answers("three");
    running.answers("three");
    folder.write("three.sh", "echo '<say>four</say>'");
    running.answers("four");
    running.answers("four");
    assert_eq!(running.stop(), Some(0));
    folder.logged("do.xml changed: the organism starts again", 1);
}

#[test]
fn a_change_that_does_not_check_leaves_the_organism_as_it_is() {
    let folder = Folder::new("wrong");
    let mut running = folder.start(&[]);
    running.send("it");
    running.answers("one");
    folder.write("organism.yaml", &ORGANISM.replace("replies", "replys"));
    folder.logged("organism.yaml changed: the organism goes on unchanged", 1);
    folder.logged("did you mean 'replies'?", 1);
    running.send("it");
    running.answers("one");
    // A file that the wrong one names, and that is missing.
    folder.write("organism.yaml", &ORGANISM.replace("t.xsd", "other.xsd"));
    folder.logged("organism.yaml changed: the organism goes on unchanged", 2);
    running.send("it");
    running.answers("one");
    folder.says("two");
    folder.logged("agent.sh changed: the organism goes on unchanged", 1);
    folder.write("other.xsd", SCHEMA);
    folder.logged("other.xsd changed: the organism starts again", 1);
    running.send("it");
    running.answers("two");
    folder.write("other.xsd", &SCHEMA.replace("xs:string", "xs:strong"));
    folder.logged("other.xsd changed: the organism goes on unchanged", 1);
    running.send("it");
    running.answers("two");
    assert_eq!(running.stop(), Some(0));
}

#[test]
fn work_in_flight_ends_before_the_organism_starts_again() {
    let folder = Folder::new("drain");
    folder.write("agent.sh", "echo $$ >began; until [ -e go ]; do sleep 0.05; done; echo '<say>one</say>'");
    let mut running = folder.start(&[]);
    running.send("it");
    let command = until("the command", || {
        let pid = fs::read_to_string(folder.0.join("began")).unwrap_or_default();
        pid.ends_with('\n').then(|| pid.trim().to_owned())
    });
    folder.says("two");
    folder.logged("agent.sh changed: the organism starts again", 1);
    running.send("it");
    assert!(runs(&command));
    folder.write("go", "");
    running.answers("one");
    running.answers("two");
    assert_eq!(running.stop(), Some(0));
}

#[test]
fn an_organism_that_can_not_start_waits_for_the_next_change() {
    let folder = Folder::new("start");
    let mut running = folder.start(&[]);
    running.send("it");
    running.answers("one");
    fs::create_dir(folder.0.join("a.journal")).unwrap();
    folder.write("organism.yaml", &format!("{ORGANISM}durability: process\njournal: a.journal\n"));
    folder.logged("the organism can't start: the journal can't be opened", 1);
    running.send("it");
    folder.write("organism.yaml", ORGANISM);
    running.answers("one");
    assert_eq!(running.stop(), Some(0));
}

#[test]
fn a_watch_has_no_end_of_its_own() {
    let folder = Folder::new("idle");
    let mut running = folder.start(&["--until-idle"]);
    assert_eq!(running.child.wait().unwrap().code(), Some(2));
    folder.logged("--until-idle", 1);
    folder.write("organism.yaml", "nonsense");
    let mut running = folder.start(&[]);
    assert_eq!(running.child.wait().unwrap().code(), Some(2));
}

#[cfg(feature = "gateway")]
#[test]
fn a_new_key_starts_the_organism_again() {
    let folder = Folder::new("keys");
    for name in ["own", "cli", "other"] {
        folder.0.done(&["key", "new", &format!("{name}.jwks")]);
        folder.write(&format!("{name}.public"), &folder.0.done(&["key", "show", &format!("{name}.jwks")]));
    }
    let keys = ORGANISM.replace("clients: [", "clients: [{ name: ada, calls: [agent], keys: [cli.public] }, ");
    folder.write("organism.yaml", &format!("{keys}identity: own.jwks\n"));
    let mut running = folder.start(&[]);
    running.send("it");
    running.answers("one");
    folder.write("cli.public", "{}");
    folder.logged("cli.public changed: the organism goes on unchanged", 1);
    folder.write("cli.public", &fs::read_to_string(folder.0.join("other.public")).unwrap());
    folder.logged("cli.public changed: the organism starts again", 1);
    folder.0.done(&["key", "new", "own.jwks"]);
    folder.logged("own.jwks changed: the organism starts again", 1);
    running.send("it");
    running.answers("one");
    assert_eq!(running.stop(), Some(0));
}
