//! `systole ask` as a process: one message in, one answer out, and the exit code.

use std::path::Path;
use std::process::{Command, Stdio};

use crate::kit::waiting::until;
use crate::kit::{self, Scratch, fresh};

const RUN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/golden/run");

/// Exit code, standard output, standard error.
fn ask(directory: &Path, args: &[&str], input: &str) -> (i32, String, String) {
    kit::said(directory, &[&["ask"], args].concat(), input)
}

fn said(args: &[&str], input: &str) -> (i32, String, String) {
    ask(Path::new(RUN), args, input)
}

#[test]
fn a_reply_is_printed_alone() {
    let swarm = Path::new(RUN).join("../../../examples/swarm");
    let question = "<question><subject>R&D</subject><figure>20</figure><figure>22</figure></question>";
    let (code, out, err) = ask(&swarm, &["organism.yaml", question], "");
    assert_eq!(code, 0, "{err}");
    let alone = out.starts_with("<answer xmlns=\"urn:example:research:v1\">") && out.lines().count() == 1;
    assert!(alone && out.contains("<total>42</total>"), "{out}");
    assert_eq!(err, "", "nothing is shown but what is wrong");
}

#[test]
fn a_message_comes_from_standard_input_and_an_answer_in_its_envelope() {
    let say = "<say xmlns='urn:t'>hello</say>";
    let (code, out, err) = said(&["things.yaml", "-", "--envelope"], say);
    assert_eq!(code, 0, "{err}");
    assert!(
        out.starts_with("<message ") && out.contains("<from>parrot</from>") && out.contains(">hello</say>"),
        "{out}"
    );
    let (envelope, meta) = ("https://xml-pipeline.org/ns/envelope/v1", "<meta><to>parrot</to></meta>");
    let message = format!("<message xmlns='{envelope}'>{meta}{say}</message>");
    let (code, out, err) = said(&["things.yaml", &message], "");
    assert_eq!((code, out.as_str()), (0, "<say xmlns=\"urn:t\">hello</say>\n"), "{err}");
}

#[test]
fn a_fault_is_an_answer_that_says_no() {
    let (code, out, err) = said(&["things.yaml", "<fail xmlns='urn:t'/>"], "");
    assert!(code == 1 && out.contains("<code>failed</code>") && out.contains("exited with status 3"), "{out}{err}");
    let (code, out, _) = said(&["things.yaml", "<nothing xmlns='urn:t'/>"], "");
    assert!(
        code == 1 && out.contains("<code>envelope</code>") && out.contains("a payload that its sender may call"),
        "{out}"
    );
}

#[test]
fn the_words_of_a_program_are_shown_if_it_fails() {
    let folder = Scratch::new("words");
    let schema = "<xs:schema xmlns:xs='http://www.w3.org/2001/XMLSchema' targetNamespace='urn:w'>\
                  <xs:element name='good' type='xs:string'/><xs:element name='bad' type='xs:string'/></xs:schema>";
    std::fs::write(folder.join("w.xsd"), schema).unwrap();
    let listener = |name: &str, code: u32| {
        format!(
            "  - name: {name}\n    schemas: [w.xsd]\n    accepts: ['{{urn:w}}{name}']\n    replies: ['{{urn:w}}good']\n    \
             command: [sh, -c, 'echo {name} words >&2; echo \"<good xmlns=\\\"urn:w\\\">so</good>\"; exit {code}']\n"
        )
    };
    let organism = format!(
        "organism: {{ name: w }}\nclients: [{{ name: cli, calls: [good, bad] }}]\nlisteners:\n{}{}",
        listener("good", 0),
        listener("bad", 3)
    );
    std::fs::write(folder.join("organism.yaml"), organism).unwrap();
    let (code, out, err) = ask(&folder, &["organism.yaml", "<good xmlns='urn:w'/>"], "");
    assert_eq!((code, &*out, &*err), (0, "<good xmlns=\"urn:w\">so</good>\n", ""));
    let (code, _, err) = ask(&folder, &["organism.yaml", "<bad xmlns='urn:w'/>"], "");
    assert_eq!(code, 1, "{err}");
    assert!(err.contains("| bad words\n") && err.contains("warn a command failed listener=bad"), "{err}");
    assert!(err.find("| bad words") < err.find("warn a command failed"), "{err}");
}

#[test]
fn an_output_that_was_refused_is_shown_with_the_rule_that_it_breaks() {
    let folder = Scratch::new("refused-output");
    let schema = "<xs:schema xmlns:xs='http://www.w3.org/2001/XMLSchema' targetNamespace='urn:w'>\
                  <xs:element name='add' type='xs:string'/><xs:element name='sum' type='xs:int'/></xs:schema>";
    std::fs::write(folder.join("w.xsd"), schema).unwrap();
    let organism = "organism: { name: w }\nclients: [{ name: cli, calls: ['{urn:w}add'] }]\nlisteners:\n  - name: adder\n    schemas: [w.xsd]\n    \
                    accepts: ['{urn:w}add']\n    replies: ['{urn:w}sum']\n    \
                    command: [sh, -c, 'echo \"<sum xmlns=\\\"urn:w\\\">many</sum>\"']\n";
    std::fs::write(folder.join("organism.yaml"), organism).unwrap();
    let (code, out, err) = ask(&folder, &["organism.yaml", "<add xmlns='urn:w'/>"], "");
    assert_eq!(code, 1, "{err}");
    assert!(out.contains("<code>payload</code>") && !out.contains("many"), "{out}");
    assert!(err.contains("adder") && err.contains("found 'many'") && err.contains(">many</sum>"), "{err}");
}

#[test]
fn an_answer_that_does_not_come_in_time_is_none() {
    let pid = fresh("ask");
    let hang = format!("<hang xmlns='urn:t'>{}</hang>", pid.display());
    let (code, out, err) = said(&["things.yaml", &hang, "--within", "200ms"], "");
    assert_eq!((code, out.as_str()), (1, ""));
    assert!(err.contains("no answer came in time"), "{err}");
    let _ = std::fs::remove_file(&pid);
}

#[test]
fn a_conversation_that_ends_silently_has_no_answer() {
    let folder = Scratch::new("silent");
    let schema = Path::new(RUN).join("thing.xsd");
    for durable in ["", "durability: process\n"] {
        let organism = format!(
            "organism: {{ name: s }}\n{durable}clients: [{{ name: cli, calls: ['{{urn:t}}say'] }}]\n\
             listeners: [{{ name: quiet, command: ['true'], silence: idle, schemas: ['{}'], accepts: ['{{urn:t}}say'] }}]\n",
            schema.display()
        );
        std::fs::write(folder.join("organism.yaml"), organism).unwrap();
        let (code, out, err) = ask(&folder, &["organism.yaml", "<say xmlns='urn:t'>hello</say>", "--within", "1m"], "");
        assert!(code == 1 && out.is_empty() && err.contains("closed without an answer"), "{durable}: {out}{err}");
    }
}

#[test]
fn who_asks_no_more_gives_up_a_durable_conversation() {
    let folder = Scratch::new("gives-up");
    let schema = Path::new(RUN).join("thing.xsd");
    let organism = format!(
        "organism: {{ name: g }}\ndurability: process\njournal: g.journal\nclients: [{{ name: cli, calls: ['{{urn:t}}say'] }}]\n\
         listeners: [{{ name: slow, command: [sh, -c, 'touch began; exec sleep 600'], schemas: ['{}'], accepts: ['{{urn:t}}say'] }}]\n",
        schema.display()
    );
    std::fs::write(folder.join("organism.yaml"), organism).unwrap();
    let message = "<say xmlns='urn:t'>hello</say>";
    let ended = |count: usize| {
        let list = folder.done(&["thread", "list", "--journal", "g.journal"]);
        assert!(list.matches("  ended  ").count() == count && !list.contains("open"), "{list}");
    };
    let (code, out, err) = ask(&folder, &["organism.yaml", message, "--within", "500ms"], "");
    assert!(code == 1 && out.is_empty() && err.contains("no answer came in time"), "{out}{err}");
    ended(1);
    let _ = std::fs::remove_file(folder.join("began"));
    let mut child = folder.systole(&["ask", "organism.yaml", message]).stderr(Stdio::null()).spawn().unwrap();
    until("the command begins", || folder.join("began").exists().then_some(()));
    rustix::process::kill_process(rustix::process::Pid::from_child(&child), rustix::process::Signal::TERM).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130));
    ended(2);
}

#[test]
fn an_answer_of_a_person_is_not_waited_for_without_a_keyboard() {
    let (code, out, err) = said(&["human.yaml", "<ask xmlns='urn:t'>guilty?</ask>"], "");
    assert_eq!((code, out.as_str()), (4, ""), "{err}");
    assert!(err.contains("questions wait for a person: cli asks judge: they end with this run"), "{err}");
}

#[test]
fn the_end_of_the_conversation_is_in_the_journal() {
    let folder = Scratch::new("closes");
    let schema = Path::new(RUN).join("thing.xsd");
    let organism = format!(
        "organism: {{ name: c }}\ndurability: process\njournal: c.journal\nclients: [{{ name: cli, calls: ['{{urn:t}}say'] }}]\n\
         listeners: [{{ name: parrot, echo: true, schemas: ['{}'], accepts: ['{{urn:t}}say'] }}]\n",
        schema.display()
    );
    std::fs::write(folder.join("organism.yaml"), organism).unwrap();
    for round in 0..5 {
        let (code, _, err) = ask(&folder, &["organism.yaml", "<say xmlns='urn:t'>hello</say>"], "");
        assert_eq!(code, 0, "{err}");
        let list = ["thread", "list", "--journal", "c.journal"];
        let list = Command::new(env!("CARGO_BIN_EXE_systole")).args(list).current_dir(&folder).output().unwrap();
        let list = String::from_utf8(list.stdout).unwrap();
        assert!(list.contains("ended") && !list.contains("open"), "round {round}: {list}");
    }
}

#[test]
fn what_can_not_be_asked_is_told() {
    let (code, out, err) = said(&["things.yaml", "-"], "");
    assert!(code == 2 && out.is_empty() && err.contains("there is no message: write a payload"), "{err}");
    let two = "<say xmlns='urn:t'>a</say><say xmlns='urn:t'>b</say>";
    let (code, out, err) = said(&["things.yaml", two], "");
    assert!(code == 2 && out.is_empty() && err.contains("more than one message: systole run"), "{err}");
    let (code, _, err) = said(&["quiet.yaml", "<say xmlns='urn:t'>a</say>"], "");
    assert!(code == 2 && err.contains("there is no client 'cli'"), "{err}");
    let (code, _, err) = said(&["no-such.yaml", "<a/>"], "");
    assert!(code == 2 && err.contains("can't read no-such.yaml"), "{err}");
    let (code, _, err) = said(&["things.yaml", "<a/>", "--within", "soon"], "");
    assert!(code == 2 && err.contains("'soon' is no duration"), "{err}");
}
