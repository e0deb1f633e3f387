//! The corpus of schemas and instances: `NAME.xsd`, the documents that it refers to as `NAME.PART.xsd`,
//! `NAME.valid-LABEL.xml` and `NAME.invalid-LABEL.xml`; or short instances in `NAME.rows`, one a line, each behind its
//! `valid-LABEL` or `invalid-LABEL`. The verdict in a name is that of the Recommendation.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use bytes::Bytes;
use systole_xml::ladder::Canonical;
use systole_xml::ladder::strict::canonicalize;
use systole_xml::schema::XsdDocument;
use systole_xml::schema::oracle::{Judges, Verdict};
use systole_xml::vocab::XmlLimits;

use super::disagreements::{Disagreement, Disagreements};

/// A schema with its instances.
struct Case {
    name: String,
    documents: Vec<XsdDocument>,
    instances: Vec<Instance>,
}

struct Instance {
    /// The file name without its extension, such as `all.valid-order`.
    name: String,
    valid: bool,
    payload: Canonical,
}

pub(crate) fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/corpus/xsd")
}

#[test]
fn verdicts_are_those_of_the_recommendation() {
    let mut found = Vec::new();
    let (mut schemas, mut instances) = (0, 0);
    for case in cases() {
        let mut judges = Judges::new(&case.documents).unwrap_or_else(|error| panic!("{}: {error}", case.name));
        schemas += 1;
        for instance in &case.instances {
            instances += 1;
            let mut compare = |oracle: &str, verdict: Verdict| {
                if verdict.is_ok() != instance.valid {
                    found.push(Disagreement {
                        case: instance.name.clone(),
                        oracle: oracle.to_owned(),
                        said: verdict.err().unwrap_or_else(|| "valid".to_owned()),
                    });
                }
            };
            compare("engine", judges.engine(&instance.payload));
            compare("libxml2", judges.libxml(&instance.payload));
        }
    }
    println!("{schemas} schemas, {instances} instances, {} disagreements", found.len());
    Disagreements::read("disagreements.txt").assert_are(&found, &["engine", "libxml2"]);
}

#[test]
fn the_corpus_is_whole() {
    let (mut valid, mut invalid) = (0, 0);
    for instance in cases().flat_map(|case| case.instances) {
        *(if instance.valid { &mut valid } else { &mut invalid }) += 1;
    }
    assert!(valid > 300 && invalid > 400, "{valid} valid and {invalid} invalid instances: the walk is broken");
}

fn cases() -> impl Iterator<Item = Case> {
    let mut files: BTreeMap<String, String> = BTreeMap::new();
    for entry in fs::read_dir(folder()).expect("the corpus is there") {
        let path = entry.expect("its entries too").path();
        let name = path.file_name().and_then(|name| name.to_str()).expect("names are ASCII").to_owned();
        files.insert(name, fs::read_to_string(&path).expect("the corpus is UTF-8"));
    }
    let main = |name: &String| name.strip_suffix(".xsd").is_some_and(|stem| !stem.contains('.') && stem != "large");
    let names: Vec<String> = files.keys().filter(|name| main(name)).cloned().collect();
    names.into_iter().map(move |file| {
        let name = file.trim_end_matches(".xsd").to_owned();
        let start = format!("{name}.");
        let own = || files.iter().filter(|(file, _)| file.starts_with(&start));
        let is_document = |(file, _): &(&String, &String)| file.ends_with(".xsd");
        // The main document first.
        let mut documents: Vec<XsdDocument> = own().filter(is_document).map(document).collect();
        documents.sort_by_key(|document| document.name != file);
        let whole = own().filter_map(|(file, text)| Some(instance(file.strip_suffix(".xml")?.to_owned(), text)));
        let rows = own().filter(|(file, _)| file.ends_with(".rows")).flat_map(|(_, text)| text.lines());
        let rows = rows.map(|row| {
            let (label, text) =
                row.split_once(' ').unwrap_or_else(|| panic!("{name}.rows: a line is LABEL INSTANCE: {row}"));
            instance(format!("{name}.{label}"), text)
        });
        let instances = whole.chain(rows).collect();
        Case { name, documents, instances }
    })
}

fn document((name, text): (&String, &String)) -> XsdDocument {
    XsdDocument { name: name.clone(), text: text.clone() }
}

fn instance(name: String, text: &str) -> Instance {
    let verdict = name.rsplit('.').next().unwrap_or_default();
    let valid = verdict.starts_with("valid-");
    assert!(valid || verdict.starts_with("invalid-"), "{name} has no verdict in its name");
    let payload = canonicalize(&Bytes::from(text.to_owned()), &XmlLimits::default());
    Instance { payload: payload.unwrap_or_else(|error| panic!("{name}: {error}")), name, valid }
}
