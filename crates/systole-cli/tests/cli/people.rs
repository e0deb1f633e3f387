//! People at the terminal of `systole run`: a real one, so that the test sees the place of each text.

use std::fs::File;
use std::io::{Read, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use rustix::fs::{Mode, OFlags, open};
use rustix::process::{Pid, Signal, kill_process};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

use crate::kit::Scratch;

const ORGANISM: &str = r#"
organism: { name: court }
clients:
  - { name: cli, calls: ["{urn:t}ask"] }
listeners:
  - name: judge
    human: true
    schemas: [SCHEMAS/thing.xsd]
    accepts: ["{urn:t}ask"]
    replies: ["{urn:t}verdict"]
  - name: bell
    command: [sh, -c, 'while [ ! -e ring ]; do sleep 0.02; done; echo "<say>ding</say>"']
    accepts: ["{https://xml-pipeline.org/ns/core/v1}boot"]
    calls: ["{urn:t}say"]
  - name: parrot
    echo: true
    accepts: ["{urn:t}say"]
"#;

/// A person at a terminal of their own, in front of an organism.
struct Person {
    child: Child,
    keyboard: File,
    pieces: Receiver<String>,
    seen: String,
    folder: Scratch,
}

impl Person {
    /// `apart`: events go to a file.
    fn sit_down(name: &str, apart: bool) -> Self {
        Self::before(ORGANISM, name, apart, &["--until-idle"])
    }

    fn before(organism: &str, name: &str, apart: bool, args: &[&str]) -> Self {
        let folder = Scratch::new(&format!("people-{name}"));
        let golden = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/golden/run"));
        let organism = organism.replace("SCHEMAS", golden.to_str().unwrap());
        std::fs::write(folder.join("organism.yaml"), organism).unwrap();
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&master).unwrap();
        unlockpt(&master).unwrap();
        let terminal = || {
            File::from(
                open(&*ptsname(&master, Vec::new()).unwrap(), OFlags::RDWR | OFlags::NOCTTY, Mode::empty()).unwrap(),
            )
        };
        let events = if apart { File::create(folder.join("events.log")).unwrap() } else { terminal() };
        let child = Command::new(env!("CARGO_BIN_EXE_systole"))
            .args(["run", "organism.yaml"])
            .arg(golden.join("ask.xml"))
            .args(args)
            .current_dir(&folder)
            .stdin(terminal())
            .stdout(Stdio::piped())
            .stderr(events)
            .spawn()
            .unwrap();
        let keyboard = File::from(master);
        let mut screen = keyboard.try_clone().unwrap();
        let (sender, pieces) = channel();
        std::thread::spawn(move || {
            let mut piece = [0; 4096];
            // The last process with the terminal closes it, which is an error here.
            while let Ok(read) = screen.read(&mut piece) {
                if read == 0 || sender.send(String::from_utf8_lossy(&piece[..read]).replace('\r', "")).is_err() {
                    return;
                }
            }
        });
        Self { child, keyboard, pieces, seen: String::new(), folder }
    }

    fn types(&mut self, text: &str) {
        self.keyboard.write_all(text.as_bytes()).unwrap();
    }

    /// Waits until the terminal has shown a text, and forgets all up to its end.
    fn sees(&mut self, text: &str) -> String {
        loop {
            if let Some(at) = self.seen.find(text) {
                let rest = self.seen.split_off(at + text.len());
                return std::mem::replace(&mut self.seen, rest);
            }
            let piece = self.pieces.recv_timeout(Duration::from_secs(30));
            self.seen += &piece.unwrap_or_else(|_| panic!("quiet for 30 s before {text:?} was shown: {:?}", self.seen));
        }
    }

    /// Lets other messages travel, whose events come onto the screen.
    fn ring(&self) {
        std::fs::write(self.folder.join("ring"), "").unwrap();
    }

    fn stops(&self) {
        kill_process(Pid::from_child(&self.child), Signal::TERM).unwrap();
    }

    /// The end of the run: its exit code, its standard output, and the file of events.
    fn ends(mut self) -> (Option<i32>, String, String) {
        let mut out = String::new();
        self.child.stdout.take().unwrap().read_to_string(&mut out).unwrap();
        let code = self.child.wait().unwrap().code();
        let events = std::fs::read_to_string(self.folder.join("events.log")).unwrap_or_default();
        (code, out, events)
    }
}

const VERDICT: &str = "<verdict xmlns=\"urn:t\"><ok>true</ok><note>x</note></verdict>";

#[test]
fn questions_go_to_the_terminal_of_the_person_and_events_to_standard_error() {
    let mut person = Person::sit_down("apart", true);
    let before = person.sees("--- cli asks judge ---\n│ <ask xmlns=\"urn:t\">guilty?</ask>\nType XML");
    assert_eq!(before.lines().filter(|line| line.contains("root")).count(), 0, "{before}");
    person.ring();
    person.sees("> ");
    person.types("<verdict><ok>true</ok><note>x</note></verdict>\n");
    person.sees(&format!("\n│ {VERDICT}\nSend it? (y sends it, n sends nothing): "));
    person.types("y\n");
    let (code, out, events) = person.ends();
    assert!(code == Some(0) && out.contains(VERDICT), "{out}{events}");
    assert!(events.contains("root/judge delivered {urn:t}ask") && !events.contains("---"), "{events}");
}

#[test]
fn neither_the_end_of_input_nor_a_line_that_is_refused_ends_a_question() {
    let mut person = Person::sit_down("stays", true);
    person.sees("\n> ");
    person.types("\u{4}");
    person.sees("The end of input ends no question: - declines to answer.\n");
    person.sees("\n> ");
    person.types(&format!("<verdict><ok>true</ok><note>{}</note></verdict>\n", "x".repeat(6000)));
    person.sees("the end of this one is lost. Nothing of the entry was taken.");
    person.sees("\n> ");
    person.keyboard.write_all(b"<verdict>caf\xc3\n").unwrap();
    person.sees("This line is no UTF-8 text: byte 13 is wrong.");
    person.sees("\n> ");
    person.types("<verdict><ok>maybe</ok><note>x</note></verdict>\n");
    let refused = person.sees("\n> ");
    assert!(refused.contains("1:14: ") && refused.contains("maybe"), "{refused}");
    // The terminal deletes the character, not a byte of it.
    person.types("<verdict><ok>true</ok><note>\u{e9}\u{7f}x</note></verdict>\n");
    person.sees(&format!("│ {VERDICT}\nSend it? (y sends it, n sends nothing): "));
    person.ring();
    person.types("y\n");
    let (code, out, events) = person.ends();
    assert!(code == Some(0) && out.contains(VERDICT), "{out}{events}");
}

/// The organism would give its work an hour.
#[test]
fn the_end_of_an_organism_waits_for_no_person() {
    let patient = format!("drain: 1h\n{ORGANISM}");
    let mut person = Person::before(&patient, "unkept", true, &[]);
    person.sees("\n> ");
    person.stops();
    person.sees("--- cli asks judge --- withdrawn: no answer is taken");
    let (code, out, events) = person.ends();
    assert!(code == Some(1) && out.contains("the organism ended before the person answered"), "{code:?}{out}{events}");
    assert!(events.contains("questions wait for a person: cli asks judge: they end with this run"), "{events}");

    let mut person = Person::before(&format!("durability: process\n{patient}"), "kept", true, &[]);
    person.sees("\n> ");
    person.types("<verdict>");
    person.stops();
    let (code, out, events) = person.ends();
    assert!(code == Some(0) && out.is_empty(), "{out}{events}");
    assert!(events.contains("questions wait for a person: cli asks judge: they wait in the journal"), "{events}");
}

#[test]
fn a_question_is_drawn_again_behind_events_on_its_terminal() {
    let mut person = Person::sit_down("again", false);
    person.sees("--- cli asks judge ---\n");
    person.sees("<verdict xmlns=");
    person.types("<verdict><ok>true</ok>");
    person.sees("<verdict><ok>true</ok>");
    person.ring();
    person.sees("\n");
    person.sees("root/bell/parrot closed\n");
    let again = person.sees("│ <ask xmlns=\"urn:t\">guilty?</ask>\n");
    assert!(again.ends_with("\n--- cli asks judge ---\n│ <ask xmlns=\"urn:t\">guilty?</ask>\n"), "{again:?}");
    person.sees("\n> ");
    // The lines that were typed before count.
    person.types("<note>x</note></verdict>\n");
    person.sees("Send it? (y sends it, n sends nothing): ");
    person.types("y\n");
    let (code, out, _) = person.ends();
    assert!(code == Some(0) && out.contains(VERDICT), "{out}");
}

#[test]
fn a_person_without_a_terminal_is_told_with_their_name() {
    let golden = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/golden/run"));
    // A session of its own has no terminal.
    let said = Command::new("setsid")
        .args(["--wait", env!("CARGO_BIN_EXE_systole"), "run", "human.yaml", "-"])
        .current_dir(golden)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let err = String::from_utf8(said.stderr).unwrap();
    assert_eq!(said.status.code(), Some(2), "{err}");
    assert!(err.starts_with("'judge' (human: true) needs a terminal, because standard input (-) holds"), "{err}");
    assert!(err.contains("name that instead of -"), "{err}");
}

/// The same question, for the person at the terminal and somebody elsewhere.
#[cfg(feature = "gateway")]
#[test]
fn an_answer_from_elsewhere_closes_the_question_on_the_terminal() {
    let organism = ORGANISM.replace("human: true", "human: { people: [ada, operator] }");
    let organism = format!("durability: process\njournal: court.journal\n{organism}");
    let mut person = Person::before(&organism, "elsewhere", true, &["--until-idle"]);
    person.sees("\n> ");
    person.types("<verdict>");
    let inbox = |args: &[&str]| {
        let output = Command::new(env!("CARGO_BIN_EXE_systole"))
            .arg("inbox")
            .args(args)
            .current_dir(&person.folder)
            .stdin(Stdio::null())
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    let listed: serde_json::Value = serde_json::from_str(&inbox(&["--json"])).unwrap();
    let (question, state) = (listed[0]["question"].as_str().unwrap(), listed[0]["state"].as_str().unwrap());
    assert_eq!(state, "shown");
    inbox(&["answer", question, VERDICT, "--as", "ada"]);
    person.sees("--- cli asks judge --- answered by ada: no answer is taken");
    person.ring();
    let (code, out, events) = person.ends();
    assert!(code == Some(0) && out.contains(VERDICT), "{out}{events}");
}
