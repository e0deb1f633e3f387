//! Golden files of the repair stage: `NAME.in.xml` beside `NAME.out.xml` and `NAME.repairs`, or beside `NAME.err`.
//! Those named `contract-…` are emissions of a listener with the contract of `corpus/model`.
//!
//! With `UPDATE_GOLDEN=1` in the environment, the test writes the expected files instead of comparing them.

use std::fs;
use std::path::Path;

use systole_xml::ladder::repair::Shape;
use systole_xml::ladder::{RepairKind, properties};

use super::files::{beside, contract, inputs, list, run, run_by, shape};

#[test]
fn golden_files() {
    let bless = std::env::var_os("UPDATE_GOLDEN").is_some();
    let mut failures = Vec::new();
    for (name, path) in inputs("golden/repair", ".in.xml") {
        let raw = fs::read(&path).expect("a readable file");
        properties::repair(&raw);
        properties::repair_by(contract(), &raw);
        let repaired = match name.starts_with("contract-") {
            true => run_by(contract(), raw, Shape::Fragment),
            false => run(raw, shape(&name)),
        };
        let actual: [(&str, Option<Vec<u8>>); 3] = match repaired {
            Ok(repaired) => {
                let bytes = repaired.bytes().to_vec();
                [(".out.xml", Some(bytes)), (".repairs", Some(list(&repaired).into_bytes())), (".err", None)]
            }
            Err(error) => [(".out.xml", None), (".repairs", None), (".err", Some(format!("{error}\n").into_bytes()))],
        };
        for (suffix, actual) in actual {
            let file = beside(&path, &name, suffix);
            if bless {
                write(&file, actual.as_deref());
            } else if fs::read(&file).ok() != actual {
                let shown = actual.as_deref().map(String::from_utf8_lossy);
                failures.push(format!("{name}{suffix} differs; now it is {shown:?}"));
            }
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

fn write(file: &Path, content: Option<&[u8]>) {
    match content {
        Some(content) => fs::write(file, content).expect("a writable folder"),
        None => drop(fs::remove_file(file)),
    }
}

/// Checks that no repair or refusal is untested.
#[test]
fn each_rule_and_each_refusal_has_a_golden_pair() {
    use RepairKind::{
        AttributeQuotes, AttributeSpace, CharacterReference, Comment, ControlCharacter, Doctype, DuplicateAttribute,
        EmptyTag, Encoding, EndTagName, EndTagSyntax, Fence, HtmlEntity, LiteralReference, MisnestedEndTag,
        MissingEndTag, ProcessingInstruction, Prose, SectionEnd, StartTagSyntax, StrayAmpersand, StrayEndTag,
        StrayLessThan, UnknownEntity, ValuelessAttribute, XmlDeclaration,
    };
    let all = |suffix: &str| -> String {
        let files = inputs("golden/repair", suffix).into_iter();
        files.map(|(_, path)| fs::read_to_string(path).expect("text")).collect()
    };
    let (repairs, refusals) = (all(".repairs"), all(".err"));
    let kinds = [
        AttributeQuotes,
        AttributeSpace,
        CharacterReference,
        Comment,
        ControlCharacter,
        Doctype,
        DuplicateAttribute,
        EmptyTag,
        Encoding,
        EndTagName,
        EndTagSyntax,
        Fence,
        HtmlEntity,
        LiteralReference,
        MisnestedEndTag,
        MissingEndTag,
        ProcessingInstruction,
        Prose,
        SectionEnd,
        StartTagSyntax,
        StrayAmpersand,
        StrayEndTag,
        StrayLessThan,
        UnknownEntity,
        ValuelessAttribute,
        XmlDeclaration,
    ];
    for kind in kinds {
        assert!(repairs.contains(&format!(" {kind}\n")), "{kind}");
    }
    for said in [
        "truncated: the input ends",
        "truncated: this comment has no end",
        "opens no comment",
        "twice, with different values",
        "nothing here looks like XML",
        "second top-level element",
        "is ambiguous here",
        "stands amid a sentence",
        "stands in thoughts or in the words of another speaker",
        "stands behind thoughts that begin at",
        "turn of another speaker",
        "this thought has no end",
        "internal subset",
        "CDATA section ends at its first",
        "is bound to no namespace",
        "can't be bound to nothing",
        "belong to XML itself",
        "is relative",
        "is not supported",
        "can be read in two ways",
        "are no UTF-8",
        "this control sequence of a terminal has no end",
    ] {
        assert!(refusals.contains(said), "{said}");
    }
}
