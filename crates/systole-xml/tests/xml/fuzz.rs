//! Replays the committed corpora of the fuzz targets: each file through the property of its target.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use systole_xml::{ladder, schema};

/// A property of the bytes; panics if it doesn't hold.
type Property = fn(&[u8]);

/// The properties, by the names of their targets.
const TARGETS: [(&str, Property); 13] = [
    ("blocks", ladder::properties::blocks),
    ("c14n", ladder::properties::c14n),
    ("decode", schema::properties::decoding),
    ("envelope", ladder::properties::envelope),
    ("fragment", ladder::properties::fragment),
    ("json", schema::properties::json),
    ("libxml", schema::properties::libxml),
    ("repair", ladder::properties::repair),
    ("signatures", ladder::properties::signatures),
    ("split", ladder::properties::split),
    ("strict", ladder::properties::strict),
    ("transcript", ladder::properties::transcript),
    ("validation", schema::properties::validation),
];

#[test]
fn properties_hold_for_the_corpora() {
    for (target, property) in TARGETS {
        let files = files(&format!("corpus/{target}"));
        assert!(files.len() >= 10, "{target}: {} files", files.len());
        for (name, input) in files {
            // Names the file before the output of a failure.
            println!("fuzz/corpus/{target}/{name}");
            property(&input);
        }
    }
}

/// The tokens that a mutation inserts.
const TOKENS: [&str; 20] = [
    "<",
    ">",
    "/>",
    "</",
    "<a>",
    "</a>",
    "<!--",
    "-->",
    "<![CDATA[",
    "]]>",
    "<?p ",
    "?>",
    "&amp;",
    "&#x3C;",
    "&",
    "=''",
    " xmlns='urn:m'",
    " xmlns:p='urn:m'",
    "p:",
    "\r\n",
];

/// Checks that the strict pass and libxml2 agree on mutations of the corpus, which are the same in each run.
/// `FUZZ_MUTATIONS=1000000` makes more of them.
#[test]
fn libxml_agrees_on_mutations_of_its_corpus() {
    let mutations = std::env::var("FUZZ_MUTATIONS").ok().and_then(|count| count.parse().ok()).unwrap_or(20_000);
    let corpus: Vec<Vec<u8>> = files("corpus/libxml").into_values().filter(|input| input.len() < 2_000).collect();
    let mut random = 0x2545_F491_4F6C_DD1D_u64;
    // Marsaglia, "Xorshift RNGs" (2003).
    let mut below = |bound: usize| {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        usize::try_from(random >> 33).unwrap() % bound.max(1)
    };
    for _ in 0..mutations {
        let mut input = corpus[below(corpus.len())].clone();
        for _ in 0..=below(3) {
            let at = below(input.len());
            let end = (at + below(12)).min(input.len());
            match below(4) {
                0 => drop(input.drain(at..end)),
                1 => drop(input.splice(at..at, TOKENS[below(TOKENS.len())].bytes())),
                2 => {
                    let other = &corpus[below(corpus.len())];
                    let from = below(other.len());
                    let part = other[from..(from + below(40)).min(other.len())].to_vec();
                    drop(input.splice(at..end, part));
                }
                _ => {
                    let part = input[at..end].to_vec();
                    let to = below(input.len());
                    drop(input.splice(to..to, part));
                }
            }
        }
        schema::properties::libxml(&input);
    }
}

#[test]
fn each_target_has_a_property_here() {
    let sources: Vec<_> = files("fuzz_targets").into_keys().collect();
    let named: Vec<_> = TARGETS.iter().map(|(target, _)| format!("{target}.rs")).collect();
    assert_eq!(sources, named);
}

fn files(folder: &str) -> BTreeMap<String, Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz").join(folder);
    let entries = fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let read = |entry: std::io::Result<fs::DirEntry>| {
        let entry = entry.expect("a readable folder");
        (entry.file_name().into_string().expect("names are text"), fs::read(entry.path()).expect("a readable file"))
    };
    entries.map(read).collect()
}
