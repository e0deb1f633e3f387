//! `systole xml`: streams and exit codes of the stages.

use std::io::Write;
use std::process::{Command, Output, Stdio};

use crate::kit::Scratch;

fn run(args: &[&str], input: &[u8]) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_systole"))
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // A stage that refuses early may not read all of it.
    let _ = child.stdin.take().unwrap().write_all(input);
    child.wait_with_output().unwrap()
}

/// Exit code, standard output, standard error.
fn said(args: &[&str], input: &str) -> (i32, String, String) {
    let output = run(args, input.as_bytes());
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

#[test]
fn c14n_writes_canonical_bytes_and_nothing_else() {
    let dirty = "<?xml version='1.0'?>\n<a  c='2' b=\"1\"><!-- x --><b/></a >\n";
    let canonical = r#"<a b="1" c="2"><b></b></a>"#;
    assert_eq!(said(&["xml", "c14n"], dirty), (0, canonical.into(), String::new()));
    let comments = r#"<a b="1" c="2"><!-- x --><b></b></a>"#;
    assert_eq!(said(&["xml", "c14n", "--with-comments", "-"], dirty), (0, comments.into(), String::new()));
}

#[test]
fn c14n_writes_one_element_if_asked() {
    let text = "<a xmlns:p='urn:p'><p:b><!-- x --><c/></p:b></a>";
    let element = |args: &[&str]| said(&[&["xml", "c14n"], args].concat(), text);
    let canonical = r#"<p:b xmlns:p="urn:p"><c></c></p:b>"#;
    assert_eq!(element(&["--element", "1"]), (0, canonical.into(), String::new()));
    let comments = r#"<p:b xmlns:p="urn:p"><!-- x --><c></c></p:b>"#;
    assert_eq!(element(&["--element", "1", "--with-comments"]), (0, comments.into(), String::new()));
    assert_eq!(
        element(&["--element", "3"]),
        (1, String::new(), "-: there are fewer elements: count them from 0\n".into())
    );
}

#[test]
fn c14n_keeps_the_prefixes_that_it_is_told() {
    let text = "<a xmlns='urn:d' xmlns:p='urn:p' xmlns:q='urn:q'><p:b/>q:c</a>";
    let canonical = |args: &[&str]| said(&[&["xml", "c14n"], args].concat(), text).1;
    let plain = r#"<a xmlns="urn:d"><p:b xmlns:p="urn:p"></p:b>q:c</a>"#;
    assert_eq!(canonical(&[]), plain);
    let kept = r#"<a xmlns="urn:d" xmlns:p="urn:p" xmlns:q="urn:q"><p:b></p:b>q:c</a>"#;
    assert_eq!(canonical(&["--inclusive", "q p x"]), kept);
    assert_eq!(canonical(&["--inclusive", "q", "--inclusive", "p"]), kept);
    let element = r#"<p:b xmlns="urn:d" xmlns:p="urn:p"></p:b>"#;
    assert_eq!(canonical(&["--inclusive", "#default", "--element", "1", "-"]), element);
}

#[test]
fn repair_knows_the_contract_of_a_listener() {
    let folder = Scratch::new("repair-by-contract");
    let schema = r#"<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema" targetNamespace="urn:x">
        <xs:element name="answer" type="xs:string"/></xs:schema>"#;
    std::fs::write(folder.join("answer.xsd"), schema).unwrap();
    let organism = "organism: { name: demo }\nlisteners:\n  - name: writer\n    command: [cat]\n    schemas: [answer.xsd]\n    accepts: ['{urn:x}answer']\n    replies: ['{urn:x}answer']\n";
    let file = folder.join("organism.yaml");
    std::fs::write(&file, organism).unwrap();
    let dirty = "<answer>a <b>bold</b> & old <b> tag</answer>";
    let by = |listener| said(&["xml", "repair", "--organism", file.to_str().unwrap(), "--listener", listener], dirty);
    let repaired = "<answer>a &lt;b>bold&lt;/b> &amp; old &lt;b> tag</answer>";
    let (code, out, err) = by("writer");
    assert_eq!((code, out.as_str()), (0, repaired), "{err}");
    assert!(err.starts_with("1:11 stray-less-than\n"), "{err}");
    // As the pump does, also from a well-formed document.
    let thought = "<think>x</think><answer>five</answer>";
    let (code, out, err) =
        said(&["xml", "repair", "--organism", file.to_str().unwrap(), "--listener", "writer"], thought);
    assert_eq!((code, out.as_str(), err.as_str()), (0, "<answer>five</answer>", "1:1 thought\n"));
    let (code, _, err) = by("nobody");
    assert!(code != 0 && err.contains("no listener is called 'nobody'"), "{err}");
}

#[test]
fn c14n_repairs_nothing() {
    let (code, out, err) = said(&["xml", "c14n"], "<a>\n <b></a>");
    assert_eq!((code, out.as_str()), (1, ""));
    assert!(err.starts_with("-:2:5: "), "{err}");
}

#[test]
fn a_document_over_the_limit_is_refused_unless_the_limit_is_raised() {
    let large = format!("<a>{}</a>", "x".repeat(1 << 20));
    assert_eq!(said(&["xml", "c14n"], &large).0, 1);
    assert_eq!(said(&["xml", "c14n", "--message-bytes", "2MiB"], &large), (0, large.clone(), String::new()));
}

#[test]
fn what_can_not_be_read_is_another_code_than_what_is_refused() {
    let (code, _, err) = said(&["xml", "c14n", "no-such-file.xml"], "");
    assert_eq!(code, 2);
    assert!(err.starts_with("can't read no-such-file.xml: No such file"), "{err}");
    assert_eq!(said(&["xml", "c14n", "--message-bytes", "1Mib"], "").0, 2);
    assert_eq!(said(&["xml"], "").0, 2);
}

#[test]
fn foreign_text_in_errors_is_escaped() {
    let (code, _, err) = said(&["xml", "c14n"], "<a\u{202e}\u{1b}[2J/>");
    assert_eq!(code, 1);
    assert!(!err.contains(['\u{202e}', '\u{1b}']), "{err:?}");
}

#[test]
fn repair_leaves_clean_input_alone() {
    let clean = "<?xml version='1.0'?>\n<a  b=\"1\">\n <!-- x --></a>\n";
    assert_eq!(said(&["xml", "repair"], clean), (0, clean.into(), String::new()));
}

#[test]
fn repair_tells_each_thing_it_changed_with_its_place() {
    let dirty = "Sure:\n<a b=1>AT&T</a>\n";
    let repairs = "1:1 prose\n2:6 attribute-quotes\n2:10 stray-ampersand\n";
    assert_eq!(said(&["xml", "repair"], dirty), (0, "<a b=\"1\">AT&amp;T</a>\n".into(), repairs.into()));
}

#[test]
fn repair_takes_several_elements_only_as_a_fragment() {
    let two = "<a/>\n<b><c/>";
    let (code, out, err) = said(&["xml", "repair"], two);
    assert_eq!((code, out.as_str()), (1, ""));
    assert!(err.starts_with("-:2:1: "), "{err}");
    let repaired = (0, "<a/>\n<b><c/></b>".to_owned(), "2:8 missing-end-tag\n".to_owned());
    assert_eq!(said(&["xml", "repair", "--fragment"], two), repaired);
}

#[test]
fn repair_refuses_with_the_place() {
    let (code, out, err) = said(&["xml", "repair"], "<a>\n cut in the mid");
    assert_eq!((code, out.as_str(), err.lines().count()), (1, "", 1));
    assert!(err.starts_with("-:2:2: truncated: "), "{err}");
}
