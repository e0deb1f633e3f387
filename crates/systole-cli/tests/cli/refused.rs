//! Refused output of a listener: operators see it, and so does the listener itself.

use std::fs;
use std::process::{Command, Stdio};

use crate::kit::Scratch;

const SCHEMA: &str = r#"<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema" targetNamespace="urn:t">
  <xs:element name="ask" type="xs:string"/><xs:element name="say" type="xs:long"/>
</xs:schema>"#;

/// A folder with a durable organism of one command, gone with the test.
struct Folder(Scratch);

impl Folder {
    /// `wrong` is the first output of the command, for `printf`; then it keeps its history and answers.
    fn new(name: &str, wrong: &str) -> Self {
        let path = Scratch::new(&format!("refused-{name}"));
        fs::write(path.join("t.xsd"), SCHEMA).unwrap();
        let script = format!(
            "case $(cat) in\n*system-error*) cp \"$SYSTOLE_HISTORY\" history; echo '<say>7</say>' ;;\n*) printf '{wrong}' ;;\nesac\n"
        );
        fs::write(path.join("script"), script).unwrap();
        let organism = "\
            organism: { name: refused }\n\
            durability: process\n\
            journal: the.journal\n\
            clients: [{ name: cli, calls: ['{urn:t}ask'] }]\n\
            listeners:\n\
            - name: model\n  command: [sh, script]\n  schemas: [t.xsd]\n  accepts: ['{urn:t}ask']\n  replies: ['{urn:t}say']\n  accepts_faults: true\n  context: true\n";
        fs::write(path.join("organism.yaml"), organism).unwrap();
        let ask = "<message xmlns='https://xml-pipeline.org/ns/envelope/v1'><meta><from>cli</from></meta>\
            <ask xmlns='urn:t'>?</ask></message>";
        fs::write(path.join("ask.xml"), ask).unwrap();
        Self(path)
    }

    fn said(&self, args: &[&str]) -> (String, String) {
        let mut command = Command::new(env!("CARGO_BIN_EXE_systole"));
        let output = command.args(args).current_dir(&self.0).stdin(Stdio::null()).output().unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        let (out, err) = (text(output.stdout), text(output.stderr));
        assert!(output.status.success(), "{args:?}: {out}{err}");
        (out, err)
    }

    fn run(&self) -> String {
        let (out, err) = self.said(&["run", "organism.yaml", "ask.xml", "--until-idle"]);
        assert!(out.contains(">7</say>"), "{out}{err}");
        err
    }

    fn show(&self) -> String {
        let (listed, _) = self.said(&["thread", "list", "--journal", "the.journal"]);
        let id = listed.lines().nth(1).unwrap().split_whitespace().next().unwrap().to_owned();
        self.said(&["thread", "show", &id, "--journal", "the.journal"]).0
    }
}

#[test]
fn output_that_is_no_xml_is_kept_and_escaped() {
    // The output is cut in its text, with a control character of the terminal in it.
    let folder = Folder::new("raw", "Well: <say>I will \\302\\233not");
    let err = folder.run();
    let line = err.lines().find(|line| line.contains("refused what model wrote")).unwrap_or_else(|| panic!("{err}"));
    assert!(line.contains("malformed") && line.contains(r"Well: <say>I will \u{9b}not"), "{line}");
    let shown = folder.show();
    assert!(shown.contains("refused output from model"), "{shown}");
    assert!(shown.contains(r"<output>Well: &lt;say&gt;I will \u{9b}not</output>"), "{shown}");
    let (listed, _) = folder.said(&["dead", "list", "--journal", "the.journal"]);
    let mut cells = listed.lines().nth(1).unwrap().split_whitespace();
    let number = cells.next().unwrap().to_owned();
    let (of, _) = folder.said(&["thread", "tree", cells.nth(1).unwrap(), "--journal", "the.journal"]);
    assert!(of.contains("model"), "the list names the conversation: {listed}{of}");
    let (letter, _) = folder.said(&["dead", "show", &number, "--journal", "the.journal"]);
    assert!(letter.contains(r"I will \u{9b}not"), "{letter}");
    let history = fs::read_to_string(folder.0.join("history")).unwrap();
    let (_, refused) =
        history.split_once("<message from=\"model\" number=\"2\"><refused").unwrap_or_else(|| panic!("{history}"));
    assert!(refused.contains("<code>malformed</code>") && refused.contains("<rule"), "the rule: {history}");
    assert!(refused.contains("<output>Well: &lt;say&gt;I will \u{9b}not</output>"), "{history}");
}

#[test]
fn a_payload_that_breaks_its_contract_is_kept_with_the_rule() {
    let folder = Folder::new("payload", "<say>many</say>");
    let err = folder.run();
    assert!(err.contains("refused what model wrote: payload") && err.contains("<say>many</say>"), "{err}");
    let shown = folder.show();
    assert!(shown.contains("refused output from model") && shown.contains("&lt;say&gt;many&lt;/say&gt;"), "{shown}");
    let (letters, _) = folder.said(&["dead", "list", "--json", "--journal", "the.journal"]);
    let letters: serde_json::Value = serde_json::from_str(&letters).unwrap();
    assert_eq!(letters[0]["text"], "<say xmlns=\"urn:t\">many</say>", "{letters}");
    assert_eq!((&letters[0]["from"], &letters[0]["fault"]), (&"model".into(), &"payload".into()), "{letters}");
    let history = fs::read_to_string(folder.0.join("history")).unwrap();
    assert!(history.contains("<refused") && history.contains("&lt;say&gt;many&lt;/say&gt;"), "{history}");
}
