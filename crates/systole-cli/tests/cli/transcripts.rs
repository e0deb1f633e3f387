//! Transcripts: `systole thread transcript` and `import`, and `systole verify` of what was done to one.

use std::fs;
use std::process::Command;

use rustix::fs::{CWD, FileType, Mode, mknodat};
use serde_json::Value;
use systole::identity::TranscriptWriter;
use systole_xml::ladder::transcript::Entry;

use crate::kit::running::Running;
use crate::kit::{Scratch, has, said};

const SCHEMA: &str = r#"<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema" targetNamespace="urn:e"><xs:element name="say" type="xs:string"/></xs:schema>"#;

const ORGANISM: &str = r#"organism: { name: echo }
durability: process
journal: echo.journal
identity: own.jwks
clients: [{ name: cli, calls: ["{urn:e}say"] }]
listeners: [{ name: echo, echo: true, schemas: [e.xsd], accepts: ["{urn:e}say"] }]
"#;

/// A folder with an organism that has answered once, and the id of the conversation.
fn answered(name: &str) -> (Scratch, String) {
    let folder = Scratch::new(&format!("transcripts-{name}"));
    fs::write(folder.join("e.xsd"), SCHEMA).unwrap();
    fs::write(folder.join("organism.yaml"), ORGANISM).unwrap();
    folder.done(&["key", "new", "own.jwks"]);
    fs::write(folder.join("own.public"), folder.done(&["key", "show", "own.jwks"])).unwrap();
    let (code, answer, why) = said(
        &folder,
        &["run", "organism.yaml", "--until-idle", "-"],
        "<say xmlns=\"urn:e\">two\nlines &amp; more</say>",
    );
    assert_eq!(code, 0, "{why}");
    has(&answer, &["two\nlines"]);
    let list: Value = serde_json::from_str(&folder.done(&["thread", "list", "--json"])).unwrap();
    let id = list[0]["conversation"].as_str().unwrap().to_owned();
    (folder, id)
}

#[test]
fn a_conversation_is_signed_verified_imported_and_retried_elsewhere() {
    let (folder, id) = answered("whole");
    let (code, transcript, told) = said(&folder, &["thread", "transcript", &id[28..], "--sign", "own.jwks"], "");
    assert_eq!(code, 0, "{told}");
    fs::write(folder.join("t.xml"), &transcript).unwrap();
    let head = told.trim_end().rsplit_once(' ').unwrap().1.to_owned();
    let verified = folder.done(&["verify", "t.xml", "--key", "own.public"]);
    has(&verified, &[&format!("conversation {id} of echo, taken 2"), &head, "signed by 2", " of own.public\n"]);
    has(&folder.done(&["verify", "t.xml", "--head", &head]), &["not signed; its head is the known one"]);
    // Each entry says who, when, and with which end; the text is the one that came.
    has(
        &transcript,
        &[
            " sender=\"cli\"",
            " to=\"echo\"",
            " path=\"root/echo\"",
            " ending=\"done\"",
            "<t:body><say xmlns=\"urn:e\">two\nlines &amp; more</say></t:body>",
            "<t:egress ",
            "<from>echo</from>",
        ],
    );
    let import = ["thread", "import", "t.xml", "--key", "own.public", "--journal", "fresh.journal"];
    assert_eq!(folder.done(&import), format!("{id}\n"));
    let show = |journal: &str| folder.done(&["thread", "show", &id, "--json", "--journal", journal]);
    assert_eq!(show("fresh.journal"), show("echo.journal"));
    has(&folder.done(&["audit", "--journal", "fresh.journal"]), &["import", &id]);
    folder.done(&["journal", "verify", "fresh.journal"]);
    let retried = folder.done(&["thread", "retry", &id, "--journal", "fresh.journal"]);
    assert_ne!(retried.trim_end(), id);
    fs::write(folder.join("fresh.yaml"), ORGANISM.replace("echo.journal", "fresh.journal")).unwrap();
    has(&folder.done(&["run", "fresh.yaml", "--until-idle"]), &["<from>echo</from>", "two\nlines"]);
    let (code, _, why) =
        said(&folder, &["thread", "import", "t.xml", "--key", "own.public", "--journal", "echo.journal"], "");
    assert_eq!(code, 1);
    has(&why, &["is in this journal already"]);
}

#[test]
fn a_transcript_is_made_while_the_organism_runs_and_no_import_comes_between() {
    let (folder, id) = answered("running");
    let running = Running::organism(&folder, &["--quiet"]);
    crate::kit::waiting::until("the organism holds its journal", || {
        let stat = folder.command(&["journal", "stat", "echo.journal", "--json"]);
        String::from_utf8_lossy(&stat.stdout).contains("\"in_use\": true").then_some(())
    });
    let (code, transcript, told) = said(&folder, &["thread", "transcript", &id, "--sign", "own.jwks"], "");
    assert_eq!(code, 0, "{told}");
    fs::write(folder.join("t.xml"), transcript).unwrap();
    folder.done(&["verify", "t.xml", "--key", "own.public"]);
    let (code, _, why) = said(&folder, &["thread", "import", "t.xml", "--key", "own.public"], "");
    assert_eq!(code, 2);
    has(&why, &["in use by process "]);
    drop(running);
}

#[test]
fn an_import_that_fails_leaves_no_journal() {
    let folder = Scratch::new("transcripts-import");
    // The chain is right, and the message is no row.
    let mut file = Vec::new();
    let mut writer = TranscriptWriter::new(&mut file).unwrap();
    let mut entry = Entry::new("conversation");
    entry.put("id", "ae26e52c-0000-4000-8000-000000000000");
    writer.entry(entry).unwrap();
    writer.entry(Entry::new("message")).unwrap();
    let head = writer.finish(None).unwrap().head.to_string();
    fs::write(folder.join("t.xml"), file).unwrap();
    folder.done(&["verify", "t.xml", "--head", &head]);
    let import =
        |file: &str| said(&folder, &["thread", "import", file, "--head", &head, "--journal", "new.journal"], "");
    let (code, _, why) = import("t.xml");
    assert_eq!(code, 1, "{why}");
    has(&why, &["t.xml: entry ", "can't be imported"]);
    mknodat(CWD, folder.join("fifo"), FileType::Fifo, Mode::RUSR, 0).unwrap();
    let (code, _, why) = import("fifo");
    assert_eq!(code, 2, "{why}");
    has(&why, &["fifo: it is a FIFO: only a regular file is read, so copy the text into one"]);
    let left: Vec<_> = fs::read_dir(&*folder).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert!(left.iter().all(|name| !name.to_string_lossy().contains("journal")), "{left:?}");
}

#[test]
fn a_transcript_tells_of_rows_that_retention_had_deleted() {
    let folder = Scratch::new("transcripts-retention");
    let written = |kept_from: Option<&str>| {
        let mut file = Vec::new();
        let mut writer = TranscriptWriter::new(&mut file).unwrap();
        let mut entry = Entry::new("conversation");
        entry.put("id", "ae26e52c-0000-4000-8000-000000000000");
        if let Some(time) = kept_from {
            entry.put("kept-from", time);
        }
        writer.entry(entry).unwrap();
        let head = writer.finish(None).unwrap().head.to_string();
        fs::write(folder.join("t.xml"), file).unwrap();
        folder.done(&["verify", "t.xml", "--head", &head])
    };
    let missing = "entries of the conversation may be missing";
    assert!(!written(None).contains(missing));
    has(&written(Some("2026-11-30T12:00:00Z")), &[missing, " that ended by 2026-11-30T12:00:00Z\n"]);
}

#[test]
fn what_was_done_to_a_transcript_is_named() {
    let (folder, id) = answered("forged");
    let transcript = folder.done(&["thread", "transcript", &id, "--sign", "own.jwks"]);
    folder.done(&["key", "new", "others.jwks"]);
    fs::write(folder.join("others.public"), folder.done(&["key", "show", "others.jwks"])).unwrap();
    let verify = |text: &str, args: &[&str]| said(&folder, &[&["verify", "-"], args].concat(), text);
    let by_key = ["--key", "own.public"];
    assert_eq!(verify(&transcript, &by_key).0, 0);
    // Texts have line feeds, so an entry is not a line.
    let at = |number: usize| transcript.find(&format!(" n=\"{number}\"")).unwrap();
    let start = |number: usize| transcript[..at(number)].rfind('\n').unwrap() + 1;
    let (second, third) = (start(2), start(3));
    let deleted = [&transcript[..second], &transcript[third..]].concat();
    let swapped =
        [&transcript[..second], &transcript[third..start(4)], &transcript[second..third], &transcript[start(4)..]]
            .concat();
    let doubled = [&transcript[..third], &transcript[second..]].concat();
    for (text, why) in [
        (deleted, "entry 2 is missing: entry 3 follows entry 1"),
        (swapped, "entry 3 is in the place of entry 2"),
        (doubled, "entry 2 occurs a second time"),
        (transcript.replacen("&amp; more", "&amp; less", 1), " was changed: it does not have the hash"),
        (transcript.replace("entries=\"", "entries=\"1"), "the message was changed after it was signed"),
        (transcript[..transcript.len() - 40].to_owned(), "the file is cut: it ends behind entry "),
        (transcript.replacen(":v1\">", ":v7\">", 1), "a transcript of another version than v1"),
        (transcript.replace('\n', "\r\n"), "its lines end with CR LF: the file was changed in transfer"),
        (format!("\u{feff}{transcript}"), "a byte order mark or an XML declaration stands in front"),
        (format!("<?xml version=\"1.0\"?>\n{transcript}"), "a byte order mark or an XML declaration stands in front"),
    ] {
        assert_ne!(text, transcript);
        let (code, out, said) = verify(&text, &by_key);
        assert_eq!((code, &*out), (1, ""), "{said}");
        has(&said, &[why]);
        fs::write(folder.join("forged.xml"), &text).unwrap();
        let (code, _, said) = crate::kit::said(
            &folder,
            &["thread", "import", "forged.xml", "--key", "own.public", "--journal", "f.journal"],
            "",
        );
        assert_eq!(code, 1, "{said}");
        has(&said, &[why]);
        assert!(!folder.join("f.journal").exists());
    }
    let (code, _, said) = verify(&transcript, &["--key", "others.public"]);
    assert_eq!(code, 1);
    has(&said, &["is none of those that it is verified by"]);
    let (code, _, said) = verify(&transcript, &["--key", "own.public", "--head", &"a".repeat(64)]);
    assert_eq!(code, 1);
    has(&said, &["the known one is aaaa", "the transcript was cut at its end, or is another one"]);
    for args in [&[][..], &["--head", "12"]] {
        assert_eq!(verify(&transcript, args).0, 2, "{args:?}");
    }
    let unsigned = folder.done(&["thread", "transcript", &id]);
    let (code, _, said) = verify(&unsigned, &by_key);
    assert_eq!(code, 1);
    has(&said, &["the head is not signed"]);
    // No other command signs a head.
    let head = unsigned.lines().find(|line| line.starts_with("<message ")).unwrap();
    let (code, out, said) = crate::kit::said(&folder, &["sign", "-", "--key", "own.jwks"], head);
    assert_eq!((code, &*out), (1, ""), "{said}");
    has(&said, &["is the head of a transcript"]);
    // A message that was signed for another use is none.
    let sent = "<message xmlns=\"https://xml-pipeline.org/ns/envelope/v1\"><meta><from>echo</from></meta><x xmlns=\"urn:x\"/></message>";
    let sent = crate::kit::said(&folder, &["sign", "-", "--key", "own.jwks"], sent).1;
    let with_meta = head.replacen("<meta></meta>", &sent[sent.find("<meta>").unwrap()..sent.find("<x ").unwrap()], 1);
    let (code, _, said) = verify(&unsigned.replacen(head, &with_meta, 1), &by_key);
    assert_eq!(code, 1);
    has(&said, &["the <meta> of the head must hold one signature and nothing else"]);
    // The file is kept until it is whole.
    let mut command = Command::new(env!("CARGO_BIN_EXE_systole"));
    command.args(["thread", "transcript", &id]).current_dir(&*folder).env("TMPDIR", folder.join("none"));
    let kept = command.output().unwrap();
    assert_eq!(kept.status.code(), Some(2));
    has(&String::from_utf8_lossy(&kept.stderr), &["/none, the folder for temporary files", "No such file", "TMPDIR"]);
    // A head is that of a transcript.
    let (code, _, said) = verify("<a/>", &["--head", &"a".repeat(64)]);
    assert_eq!(code, 2);
    has(&said, &["is no transcript"]);
    let (code, _, said) =
        crate::kit::said(&folder, &["thread", "transcript", "00000000-0000-0000-0000-000000000000"], "");
    assert_eq!(code, 1);
    has(&said, &["there is no thread"]);
}
