//! Replays the committed corpora of the fuzz targets: each file through the property of its target.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use systole::{ladder, schema};

/// Panics if something doesn't hold for the bytes.
type Property = fn(&[u8]);

/// The properties, by the names of their targets.
const TARGETS: [(&str, Property); 8] = [
    ("c14n", ladder::properties::c14n),
    ("decode", schema::properties::decoding),
    ("envelope", ladder::properties::envelope),
    ("fragment", ladder::properties::fragment),
    ("repair", ladder::properties::repair),
    ("split", ladder::properties::split),
    ("strict", ladder::properties::strict),
    ("validation", schema::properties::validation),
];

#[test]
fn properties_hold_for_the_corpora() {
    for (target, property) in TARGETS {
        let files = files(&format!("corpus/{target}"));
        assert!(files.len() >= 10, "{target}: {} files", files.len());
        for (name, input) in files {
            // What fails says so below this line.
            println!("fuzz/corpus/{target}/{name}");
            property(&input);
        }
    }
}

#[test]
fn each_target_has_a_property_here() {
    let sources: Vec<_> = files("fuzz_targets").into_keys().collect();
    let named: Vec<_> = TARGETS.iter().map(|(target, _)| format!("{target}.rs")).collect();
    assert_eq!(sources, named);
}

fn files(folder: &str) -> BTreeMap<String, Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz").join(folder);
    let entries = fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let read = |entry: std::io::Result<fs::DirEntry>| {
        let entry = entry.expect("a readable folder");
        (entry.file_name().into_string().expect("names are text"), fs::read(entry.path()).expect("a readable file"))
    };
    entries.map(read).collect()
}
