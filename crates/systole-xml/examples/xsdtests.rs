//! Runs the XSD 1.0 tests of the public suite (github.com/w3c/xsdtests) unchanged:
//! `cargo run --release --example xsdtests -- FOLDER [--list]`.
//!
//! It prints the number of schemas and instances that are judged as the suite expects; with `--list`, each other one,
//! too. Tests for XSD 1.1 only, and disputed ones, are left out; those that the working group queries are not. If an
//! instance names documents for namespaces that its schema lacks, it is judged by the schema with them. The test set of
//! NIST is larger than some copies of the suite hold; then its files are found by their names, which tell the expected
//! verdicts.

#![allow(clippy::disallowed_methods, reason = "it takes the time that schemas and instances need")]

use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};
use std::time::{Duration, Instant};

use systole_xml::schema::XsdDocument;
use systole_xml::schema::oracle::{Refusal, Whole};

const SUITE: &str = "http://www.w3.org/XML/2004/xml-schema-test-suite/";
const XLINK: &str = "http://www.w3.org/1999/xlink";
const XSI: &str = "http://www.w3.org/2001/XMLSchema-instance";

/// A group: the documents of one schema, and its instances.
struct Group {
    name: String,
    schemas: Vec<PathBuf>,
    /// The expected validity of the schema; `None` if the suite doesn't tell.
    expected: Option<bool>,
    instances: Vec<(PathBuf, bool)>,
}

#[derive(Default)]
struct Score {
    valid: u32,
    refused: u32,
    invalid: u32,
    accepted: u32,
    instances: u32,
    agreed: u32,
    slowest: Duration,
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let folder = PathBuf::from(arguments.next().expect("the folder of the suite"));
    let list = arguments.next().is_some_and(|argument| argument == "--list");
    let mut scores: BTreeMap<String, Score> = BTreeMap::new();
    for (set, groups) in sets(&folder) {
        let contributor = set.split('/').next().unwrap_or_default().trim_end_matches("Meta").to_owned();
        for group in groups {
            run(&group, scores.entry(contributor.clone()).or_default(), list);
        }
    }
    let mut total = Score::default();
    println!(
        "{:10} {:>7} {:>8} {:>8} {:>9} {:>10} {:>8}",
        "", "valid", "refused", "invalid", "accepted", "instances", "agreed"
    );
    for (name, score) in &scores {
        score.print(name);
        total.add(score);
    }
    total.print("all");
}

impl Score {
    fn print(&self, name: &str) {
        let Self { valid, refused, invalid, accepted, instances, agreed, slowest } = self;
        println!(
            "{name:10} {valid:7} {refused:8} {invalid:8} {accepted:9} {instances:10} {agreed:8}  slowest {slowest:?}"
        );
    }

    fn add(&mut self, other: &Self) {
        self.valid += other.valid;
        self.refused += other.refused;
        self.invalid += other.invalid;
        self.accepted += other.accepted;
        self.instances += other.instances;
        self.agreed += other.agreed;
        self.slowest = self.slowest.max(other.slowest);
    }
}

fn run(group: &Group, score: &mut Score, list: bool) {
    let mut documents = Vec::new();
    group.schemas.iter().for_each(|path| load(path, &mut documents));
    let begun = Instant::now();
    let compiled = Whole::new(&documents);
    score.slowest = score.slowest.max(begun.elapsed());
    if list && begun.elapsed() > Duration::from_millis(100) {
        println!("slow {} {:?}", group.name, begun.elapsed());
    }
    match (group.expected, &compiled) {
        (Some(true), compiled) => {
            score.valid += 1;
            score.refused += u32::from(compiled.is_err());
        }
        (Some(false), compiled) => {
            score.invalid += 1;
            score.accepted += u32::from(compiled.is_ok());
        }
        (None, _) => {}
    }
    if list && group.expected.is_some_and(|expected| expected != compiled.is_ok()) {
        let what = compiled.as_ref().err().map_or("ACCEPTED".to_owned(), |error| format!("REFUSED {error}"));
        println!("schema {} {:?}: {what}", group.name, group.schemas);
    }
    let mut compiled = compiled;
    for (path, expected) in &group.instances {
        score.instances += 1;
        let begun = Instant::now();
        let found = match (&mut compiled, read(path)) {
            (Ok(schema), Some(text)) => match with_named(&documents, path, &text) {
                Some(more) => Whole::new(&more)
                    .map_err(|error| Refusal::Schema(error.to_string()))
                    .and_then(|mut schema| schema.judge(&text)),
                None => schema.judge(&text),
            },
            (Ok(_), None) => Err(Refusal::NotWellFormed("it is no text".to_owned())),
            (Err(error), _) => Err(Refusal::Schema(error.to_string())),
        };
        score.slowest = score.slowest.max(begun.elapsed());
        // An instance of a refused schema has no verdict.
        let agrees = !matches!(found, Err(Refusal::Schema(_))) && found.is_ok() == *expected;
        score.agreed += u32::from(agrees);
        if list && !agrees {
            println!("instance {} {} expected {expected}: {found:?}", group.name, path.display());
        }
    }
}

/// The test sets with their groups.
fn sets(folder: &Path) -> Vec<(String, Vec<Group>)> {
    let suite = std::fs::read_to_string(folder.join("suite.xml")).expect("suite.xml in the folder");
    let suite = roxmltree::Document::parse(&suite).expect("suite.xml is well-formed");
    let references = suite.descendants().filter(|node| node.has_tag_name((SUITE, "testSetRef")));
    let mut sets = Vec::new();
    for reference in references {
        let href = reference.attribute((XLINK, "href")).unwrap_or_default();
        let path = folder.join(href);
        match read(&path) {
            Some(text) => sets.push((href.to_owned(), groups(&path, &text))),
            None if href.starts_with("nist") => sets.push((href.to_owned(), nist(&folder.join("nistData")))),
            None => eprintln!("{} is not there", path.display()),
        }
    }
    sets
}

fn groups(set: &Path, text: &str) -> Vec<Group> {
    let document = parsed(text).expect("a test set is well-formed");
    let base = set.parent().expect("a test set is in a folder");
    let is_10 = |node: &roxmltree::Node| {
        node.attribute("version").is_none_or(|versions| versions.split_whitespace().any(|v| v == "1.0"))
    };
    let root = document.root_element();
    let mut found = Vec::new();
    for group in root.children().filter(|node| node.has_tag_name((SUITE, "testGroup")) && is_10(&root) && is_10(node)) {
        let tests =
            |name: &'static str| group.children().filter(move |node| node.has_tag_name((SUITE, name))).filter(is_10);
        let files = |node: roxmltree::Node, name: &str| -> Vec<PathBuf> {
            let documents = node.children().filter(|child| child.has_tag_name((SUITE, name)));
            documents
                .filter_map(|child| child.attribute((XLINK, "href")))
                .map(|href| normal(&base.join(href)))
                .collect()
        };
        let mut made = Group {
            name: group.attribute("name").unwrap_or_default().to_owned(),
            schemas: Vec::new(),
            expected: None,
            instances: Vec::new(),
        };
        for test in tests("schemaTest") {
            made.schemas.extend(files(test, "schemaDocument"));
            made.expected = expected(&test);
        }
        for test in tests("instanceTest") {
            let Some(expected) = expected(&test) else { continue };
            made.instances.extend(files(test, "instanceDocument").into_iter().map(|path| (path, expected)));
        }
        if !made.schemas.is_empty() {
            found.push(made);
        }
    }
    found
}

/// The expected verdict of a test; `None` if the suite has no verdict that counts.
fn expected(test: &roxmltree::Node) -> Option<bool> {
    let status = test.children().find(|node| node.has_tag_name((SUITE, "current")));
    if status.and_then(|node| node.attribute("status")).is_some_and(|status| status.starts_with("disputed")) {
        return None;
    }
    let applies = |node: &roxmltree::Node| {
        node.has_tag_name((SUITE, "expected"))
            && node.attribute("version").is_none_or(|versions| versions.split_whitespace().any(|v| v == "1.0"))
    };
    match test.children().find(applies)?.attribute("validity")? {
        "valid" => Some(true),
        "invalid" => Some(false),
        _ => None,
    }
}

/// The groups of NIST by the names of their files: `NISTSchema-SV-IV-…-1.xsd` with `…-1-1.xml` to `…-1-5.xml`. SV and
/// SI tell whether the schema is valid, IV and II whether the instances are.
fn nist(folder: &Path) -> Vec<Group> {
    let (mut files, mut pending) = (Vec::new(), vec![folder.to_owned()]);
    while let Some(folder) = pending.pop() {
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() { pending.push(path) } else { files.push(path) }
        }
    }
    files.sort();
    let stem = |path: &Path| path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
    let mut groups: BTreeMap<String, Group> = BTreeMap::new();
    for path in files.iter().filter(|path| path.extension().is_some_and(|end| end == "xsd")) {
        let name = stem(path);
        let group =
            Group { expected: Some(!name.contains("-SI-")), schemas: vec![path.clone()], instances: Vec::new(), name };
        groups.insert(group.name.clone(), group);
    }
    for path in files.iter().filter(|path| path.extension().is_some_and(|end| end == "xml")) {
        let name = stem(path);
        if let Some((schema, _)) = name.rsplit_once('-')
            && let Some(group) = groups.get_mut(&schema.replacen("NISTXML-", "NISTSchema-", 1))
        {
            group.instances.push((path.clone(), name.contains("-IV-")));
        }
    }
    groups.into_values().collect()
}

/// Loads a schema document and all files that it refers to.
fn load(path: &Path, documents: &mut Vec<XsdDocument>) {
    let mut pending = vec![path.to_owned()];
    while let Some(path) = pending.pop() {
        let name = path.to_string_lossy().into_owned();
        if documents.iter().any(|known| known.name == name) {
            continue;
        }
        let Some(text) = read(&path) else { continue };
        if let Some(document) = parsed(&text) {
            for link in document.root_element().children() {
                let is_link = matches!(link.tag_name().name(), "include" | "import" | "redefine");
                if let Some(location) = link.attribute("schemaLocation").filter(|_| is_link) {
                    pending.push(normal(&path.parent().expect("a file is in a folder").join(location.trim())));
                }
            }
        }
        documents.push(XsdDocument { name, text });
    }
}

fn parsed(text: &str) -> Option<roxmltree::Document<'_>> {
    let options = roxmltree::ParsingOptions { allow_dtd: true, ..roxmltree::ParsingOptions::default() };
    roxmltree::Document::parse_with_options(text, options).ok()
}

/// The documents together with those that an instance names (`xsi:schemaLocation`) for further namespaces; `None` if it
/// names none.
fn with_named(documents: &[XsdDocument], instance: &Path, text: &str) -> Option<Vec<XsdDocument>> {
    let target = |document: &XsdDocument| {
        let parsed = parsed(&document.text)?;
        Some(parsed.root_element().attribute("targetNamespace").unwrap_or_default().to_owned())
    };
    let known: Vec<String> = documents.iter().filter_map(target).collect();
    let parsed = parsed(text)?;
    let mut more = documents.to_vec();
    for element in parsed.descendants().filter(roxmltree::Node::is_element) {
        let pairs = element.attribute((XSI, "schemaLocation")).unwrap_or_default();
        let pairs: Vec<&str> = pairs.split_whitespace().collect();
        let mut named: Vec<(&str, &str)> = pairs.chunks_exact(2).map(|pair| (pair[0], pair[1])).collect();
        named.extend(element.attribute((XSI, "noNamespaceSchemaLocation")).map(|location| ("", location.trim())));
        for (_, location) in named.iter().filter(|(namespace, _)| !known.iter().any(|known| known == namespace)) {
            load(&normal(&instance.parent().expect("a file is in a folder").join(location)), &mut more);
        }
    }
    (more.len() > documents.len()).then_some(more)
}

/// A path without `.` and `..`.
fn normal(path: &Path) -> PathBuf {
    let mut out = PathBuf::new();
    for component in path.components() {
        match component {
            Component::ParentDir => drop(out.pop()),
            Component::CurDir => {}
            other => out.push(other),
        }
    }
    out
}

/// A file as text: UTF-16 with a byte order mark, UTF-8, or else ISO-8859-1.
fn read(path: &Path) -> Option<String> {
    let bytes = std::fs::read(path).ok()?;
    Some(match bytes.as_slice() {
        [0xFE, 0xFF, rest @ ..] => utf16(rest, u16::from_be_bytes),
        [0xFF, 0xFE, rest @ ..] => utf16(rest, u16::from_le_bytes),
        _ => {
            String::from_utf8(bytes).unwrap_or_else(|error| error.as_bytes().iter().map(|byte| *byte as char).collect())
        }
    })
}

fn utf16(bytes: &[u8], unit: fn([u8; 2]) -> u16) -> String {
    let (units, _) = bytes.as_chunks::<2>();
    char::decode_utf16(units.iter().map(|pair| unit(*pair))).map(|c| c.unwrap_or(char::REPLACEMENT_CHARACTER)).collect()
}
