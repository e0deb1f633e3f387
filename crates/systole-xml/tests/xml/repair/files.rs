//! Test inputs of the repair stage, and the calls that repair them.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use systole_xml::ladder::Raw;
use systole_xml::ladder::repair::{Author, RepairError, Repaired, Shape, Vocabulary, repair, repair_by};
use systole_xml::schema::{self, Catalog, PayloadSchema, XsdDocument};
use systole_xml::vocab::XmlLimits;

/// The inputs in a folder of `tests`, by name: files with a name that ends in `suffix`.
pub(crate) fn inputs(folder: &str, suffix: &str) -> Vec<(String, PathBuf)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(folder);
    let mut found: Vec<(String, PathBuf)> = fs::read_dir(&folder)
        .unwrap_or_else(|error| panic!("{}: {error}", folder.display()))
        .map(|entry| entry.expect("a readable folder").path())
        .filter_map(|path| Some((path.file_name()?.to_str()?.strip_suffix(suffix)?.to_owned(), path)))
        .collect();
    found.sort();
    assert!(!found.is_empty(), "{} holds no {suffix}", folder.display());
    found
}

/// The path of the file beside an input with another suffix.
pub(crate) fn beside(input: &Path, name: &str, suffix: &str) -> PathBuf {
    input.with_file_name(format!("{name}{suffix}"))
}

/// The shape of a case: a fragment if its name starts with `fragment-`.
pub(crate) fn shape(name: &str) -> Shape {
    if name.starts_with("fragment-") { Shape::Fragment } else { Shape::Document }
}

pub(crate) fn run(raw: impl Into<bytes::Bytes>, shape: Shape) -> Result<Repaired, RepairError> {
    repair(&Raw::new(raw), shape, &XmlLimits::default())
}

/// Repairs the output of an emitter that may send the payloads of the contract.
pub(crate) fn run_by(
    contract: &Vocabulary,
    raw: impl Into<bytes::Bytes>,
    shape: Shape,
) -> Result<Repaired, RepairError> {
    repair_by(contract, &Raw::new(raw), shape, &XmlLimits::default())
}

/// The vocabulary of an emitter that may send the payloads of `corpus/model/contract.xsd`.
pub(crate) fn contract() -> &'static Vocabulary {
    static CONTRACT: LazyLock<Vocabulary> = LazyLock::new(|| read_contract("contract.xsd"));
    &CONTRACT
}

/// The vocabulary of an emitter that may send the payloads of `corpus/model/review.xsd`.
pub(crate) fn review() -> &'static Vocabulary {
    static CONTRACT: LazyLock<Vocabulary> = LazyLock::new(|| read_contract("review.xsd"));
    &CONTRACT
}

/// The vocabulary of an emitter that may send the payloads of `corpus/model/shop.xsd`.
pub(crate) fn shop() -> &'static Vocabulary {
    static CONTRACT: LazyLock<Vocabulary> = LazyLock::new(|| read_contract("shop.xsd"));
    &CONTRACT
}

/// The vocabulary of an emitter that may send the payloads of `corpus/model/bot.xsd`: calls that can't be undone.
pub(crate) fn bot() -> &'static Vocabulary {
    static CONTRACT: LazyLock<Vocabulary> = LazyLock::new(|| read_contract("bot.xsd"));
    &CONTRACT
}

/// The vocabulary of an emitter that may send the payloads of `corpus/model/ops.xsd`: searches, and acts on services and accounts.
pub(crate) fn ops() -> &'static Vocabulary {
    static CONTRACT: LazyLock<Vocabulary> = LazyLock::new(|| read_contract("ops.xsd"));
    &CONTRACT
}

/// The schemas of the payloads of a file of `corpus/model`.
pub(crate) fn schemas(file: &str) -> Vec<PayloadSchema> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus/model").join(file);
    let text = fs::read_to_string(path).expect("a readable file");
    let document = XsdDocument { name: file.to_owned(), text };
    PayloadSchema::from_xsd_set(&[document]).expect("a schema")
}

fn read_contract(file: &str) -> Vocabulary {
    let schemas = schemas(file);
    let catalog = Catalog::only(schemas.iter().cloned());
    schema::vocabulary(schemas.iter().map(PayloadSchema::qname), &catalog).by(Author::Model)
}

/// The repairs, formatted as on the command line.
pub(crate) fn list(repaired: &Repaired) -> String {
    repaired.repairs().iter().map(|repair| format!("{} {}\n", repair.at, repair.kind)).collect()
}
