//! `systole schema|example|prompt` and `systole xml validate`: a contract as its users see it.

use std::path::Path;
use std::process::Command;

use crate::kit::{Scratch, fresh};

/// Exit code, standard output, standard error.
fn said(args: &[&str]) -> (i32, String, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_systole"))
        .args(args)
        .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/swarm"))
        .output()
        .unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

const SUM: &str = "{urn:example:calculator:v1}sum";

#[test]
fn the_reference_is_an_organism_of_its_own() {
    let (code, reference, err) = said(&["reference"]);
    assert_eq!((code, &*err), (0, ""));
    for key in ["organism:", "limits:", "listeners:", "clients:", "durability:"] {
        assert!(reference.lines().any(|line| line.starts_with(key)), "{key} is missing in\n{reference}");
    }
}

#[test]
fn the_schema_of_a_payload_is_its_document() {
    let document = include_str!("../../../../examples/swarm/calculator.xsd");
    assert_eq!(said(&["schema", "organism.yaml", SUM]), (0, document.into(), String::new()));
    let (code, all, _) = said(&["schema", "organism.yaml"]);
    assert_eq!((code, all.matches(document).count()), (0, 1), "payloads of one document print it once");
}

#[test]
fn the_json_schema_of_a_payload_has_its_fields() {
    let (code, json, err) = said(&["schema", "organism.yaml", SUM, "--json"]);
    assert_eq!((code, &*err), (0, ""));
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!((&json["title"], &json["type"]), (&SUM.into(), &"object".into()), "{json:#}");
    assert_eq!(json["properties"]["@value"]["type"], serde_json::json!(["integer", "string"]), "{json:#}");
    let (code, all, _) = said(&["schema", "organism.yaml", "--json"]);
    let all: Vec<serde_json::Value> =
        serde_json::Deserializer::from_str(&all).into_iter().map(Result::unwrap).collect();
    assert_eq!(
        (code, all.len(), all.iter().filter(|other| **other == json).count()),
        (0, 6, 1),
        "one for each payload"
    );
}

#[test]
fn the_example_of_a_payload_is_valid() {
    let (code, example, _) = said(&["example", "organism.yaml", SUM]);
    assert_eq!(code, 0);
    let file = fresh("example.xml");
    std::fs::write(&file, example).unwrap();
    let validated = said(&["xml", "validate", "--schema", "calculator.xsd", file.to_str().unwrap()]);
    std::fs::remove_file(&file).unwrap();
    assert_eq!(validated, (0, String::new(), String::new()));
    assert_eq!(said(&["example", "organism.yaml"]).1.lines().count(), 6);
}

#[test]
fn payloads_without_an_example_are_named() {
    let folder = Scratch::new("none");
    let element = |name: &str, ty: &str| format!("<xs:element name='{name}' type='xs:{ty}'/>");
    // An IDREF alone has no ID to refer to. Attempts that fail leave room for those that don't.
    let none: String = (0..200).map(|n| element(&format!("r{n}"), "IDREF")).collect();
    let schema = format!(
        "<xs:schema xmlns:xs='http://www.w3.org/2001/XMLSchema' targetNamespace='urn:n'>{none}{}</xs:schema>",
        element("last", "int")
    );
    let organism = "organism: { name: n }\nprefixes: { n: urn:n }\nclients: [{ name: cli, calls: [n:r0] }]\n\
                    listeners: [{ name: a, schemas: [n.xsd], accepts: [n:r0], replies: [n:last], command: [cat] }]\n";
    std::fs::write(folder.join("n.xsd"), schema).unwrap();
    std::fs::write(folder.join("organism.yaml"), organism).unwrap();
    let file = folder.join("organism.yaml");
    let file = file.to_str().unwrap();
    let (code, examples, err) = said(&["example", file]);
    assert_eq!((code, &*examples), (1, "<last xmlns=\"urn:n\">1</last>\n"), "{err}");
    assert!(err.contains("no example could be made of {urn:n}r0, {urn:n}r1, "), "{err}");
    assert!(err.ends_with(", {urn:n}r9, 190 more\n"), "{err}");
    let (code, _, err) = said(&["example", file, "--envelope"]);
    assert_eq!((code, &*err), (1, "no example could be made of {urn:n}r0\n"));
    let (code, _, err) = said(&["example", file, "n:r7"]);
    assert_eq!((code, &*err), (1, "no example could be made of {urn:n}r7\n"));
}

#[test]
fn the_example_of_an_envelope_is_what_run_takes() {
    let (code, example, err) = said(&["example", "organism.yaml", "question", "--envelope"]);
    let start = "<message xmlns=\"https://xml-pipeline.org/ns/envelope/v1\"><meta><from>cli</from></meta><question ";
    assert!(code == 0 && example.starts_with(start), "{example}{err}");
    let file = fresh("envelope.xml");
    std::fs::write(&file, example).unwrap();
    let (code, answer, err) = said(&["run", "organism.yaml", file.to_str().unwrap(), "--until-idle"]);
    std::fs::remove_file(&file).unwrap();
    assert!(code == 0 && answer.contains("<answer "), "{answer}{err}");
    assert_eq!(said(&["example", "organism.yaml", "--envelope"]).1.lines().count(), 1, "what clients may send");
    let (code, _, err) = said(&["example", "organism.yaml", SUM, "--envelope"]);
    assert_eq!((code, err), (1, format!("no client may send {SUM}: add it to the `calls` of a client\n")));
}

#[test]
fn a_local_name_finds_its_payload_and_a_slip_is_told() {
    assert_eq!(said(&["example", "organism.yaml", "sum"]), said(&["example", "organism.yaml", SUM]));
    let (code, _, err) = said(&["example", "organism.yaml", "summ"]);
    let start = format!("no schema declares summ; did you mean {SUM}? the schemas declare\n  {{");
    assert!(code == 1 && err.starts_with(&start), "{err}");
    let file = fresh("bare.xml");
    std::fs::write(&file, "<sum/>").unwrap();
    let (code, _, err) = said(&["xml", "validate", "--schema", "calculator.xsd", file.to_str().unwrap()]);
    std::fs::remove_file(&file).unwrap();
    let end = format!(":1:1: <sum>: not declared in the schema, and it has no xsi:type: did you mean {SUM}?\n");
    assert!(code == 1 && err.ends_with(&end), "{err}");
}

#[test]
fn the_prompt_of_a_payload_tells_its_fields() {
    let (code, prompt, _) = said(&["prompt", "organism.yaml", "{urn:example:research:v1}question"]);
    assert_eq!(code, 0);
    assert!(prompt.contains("What the figures are about.") && prompt.contains("<figure>"), "{prompt}");
}

#[test]
fn an_unknown_payload_is_answered_with_the_known_ones() {
    let (code, out, err) = said(&["example", "organism.yaml", "{urn:x}y"]);
    assert_eq!((code, out.as_str()), (1, ""));
    assert!(err.starts_with("no schema declares {urn:x}y; the schemas declare\n  {urn:example:"), "{err}");
    assert_eq!(said(&["example", "organism.yaml", "{urn:x"]).0, 2);
    assert_eq!(said(&["example", "../../tests/golden/check/shapes.yaml"]).0, 2);
}

#[test]
fn an_invalid_document_is_told_rule_by_rule_with_line_and_column() {
    let file = fresh("invalid.xml");
    std::fs::write(&file, "<add xmlns='urn:example:calculator:v1'>\n  <a>one</a>\n  <b>2</b>\n</add>\n").unwrap();
    let path = file.to_str().unwrap();
    let (code, out, err) = said(&["xml", "validate", "--schema", "calculator.xsd", path]);
    assert_eq!((code, out.as_str(), err.lines().count()), (1, "", 1), "{err}");
    assert!(err.starts_with(&format!("{path}:2:6: ")), "{err}");
    let (code, _, err) = said(&["xml", "validate", "--schema", "writer.xsd", "--schema", "research.xsd", path]);
    assert_eq!(code, 1);
    assert!(
        err.starts_with(&format!("{path}:1:1: <{{urn:example:calculator:v1}}add>: not declared in the schema")),
        "{err}"
    );
    std::fs::write(&file, "<add>").unwrap();
    assert_eq!(said(&["xml", "validate", "--schema", "calculator.xsd", path]).0, 1);
    std::fs::remove_file(&file).unwrap();
}

#[test]
fn a_bad_schema_is_no_verdict() {
    let (code, _, err) = said(&["xml", "validate", "--schema", "../../tests/golden/check/broken.xsd", "question.xml"]);
    assert_eq!(code, 2);
    assert!(err.contains("broken.xsd:3:26: "), "{err}");
    assert_eq!(said(&["xml", "validate", "--schema", "no-such.xsd", "question.xml"]).0, 2);
    // A root that a document declares which was not given.
    let (schema, document) = (fresh("parted.xsd"), fresh("parted.xml"));
    let text =
        "<xs:schema xmlns:xs='http://www.w3.org/2001/XMLSchema'>\n<xs:include schemaLocation='parts.xsd'/></xs:schema>";
    std::fs::write(&schema, text).unwrap();
    std::fs::write(&document, "<part/>").unwrap();
    let [schema, document] = [schema.to_str().unwrap(), document.to_str().unwrap()];
    let (code, _, err) = said(&["xml", "validate", "--schema", schema, document]);
    let told = format!("'parts.xsd', which {schema}:2:1 refers to, is not among the schemas: add it by --schema");
    assert!(code == 1 && err.contains(&told), "{err}");
    assert_eq!(said(&["xml", "validate", "question.xml"]).0, 2);
}

#[test]
fn each_command_that_a_text_names_is_there() {
    let root = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
    let mut files = vec![root.join("README.md")];
    let mut folders = vec![root.join("src"), root.join("crates"), root.join("docs"), root.join("examples")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            match path.extension().and_then(|extension| extension.to_str()) {
                _ if path.is_dir() => folders.push(path),
                Some("rs" | "md" | "yaml") => files.push(path),
                _ => {}
            }
        }
    }
    let mut named = std::collections::BTreeMap::new();
    for file in files {
        let text = std::fs::read_to_string(&file).unwrap();
        for (at, _) in text.match_indices("`systole ") {
            let command = text[at + 1..].split(['`', '\n']).next().unwrap();
            let is_word =
                |word: &&str| word.chars().all(|c| c.is_ascii_lowercase() || c == '-') && !word.starts_with('-');
            let words: Vec<_> = command.split(' ').skip(1).take_while(is_word).take(2).map(str::to_owned).collect();
            named.entry(words).or_insert_with(|| file.clone());
        }
    }
    assert!(named.len() > 10, "{named:?}");
    for (words, file) in named {
        let [command, rest @ ..] = words.as_slice() else { continue };
        let (code, help, _) = said(&[command, "--help"]);
        assert_eq!(code, 0, "{} names `systole {command}`", file.display());
        if let ([second], true) = (rest, help.contains("\nCommands:\n")) {
            assert_eq!(
                said(&[command, second, "--help"]).0,
                0,
                "{} names `systole {command} {second}`",
                file.display()
            );
        }
    }
}

#[test]
fn a_payload_is_named_with_a_prefix_of_the_file() {
    let (code, prefixed, _) = said(&["example", "organism.yaml", "research:question"]);
    assert_eq!((code, prefixed), (0, said(&["example", "organism.yaml", "{urn:example:research:v1}question"]).1));
    let (code, _, err) = said(&["example", "organism.yaml", "reserch:question"]);
    assert_eq!((code, err.as_str()), (2, "there is no prefix 'reserch': did you mean 'research'?\n"));
}

#[test]
fn the_reference_is_printed_for_people_and_for_editors() {
    let (code, reference, _) = said(&["reference"]);
    assert!(code == 0 && reference.starts_with("organism: "), "{reference}");
    let (code, schema, _) = said(&["reference", "--schema"]);
    let published = concat!(env!("CARGO_MANIFEST_DIR"), "/../../schemas/organism.schema.json");
    assert_eq!((code, schema), (0, std::fs::read_to_string(published).unwrap()));
}
