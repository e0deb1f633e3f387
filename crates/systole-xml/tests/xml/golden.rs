//! Runs each stage of the ladder over `tests/golden/<stage>/NAME.in.xml` and compares with
//! `NAME.out.xml`, or with `NAME.err` where the stage must refuse. A bug fix is a new pair; `UPDATE_GOLDEN=1` writes what
//! comes out.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use systole_xml::ladder::split::{Piece, Splitter};
use systole_xml::ladder::strict::{self, CanonicalOptions, StrictError};
use systole_xml::ladder::{Claims, Envelope, Raw};
use systole_xml::vocab::XmlLimits;

/// The output of a stage for an input, or the text of its refusal.
type Stage<'a> = &'a dyn Fn(&[u8]) -> Result<Vec<u8>, String>;

#[test]
fn strict() {
    check("strict", &|input| {
        let canonical = strict::canonicalize(&input.to_vec().into(), &XmlLimits::default()).map_err(|e| refusal(&e))?;
        Ok(canonical.bytes().to_vec())
    });
}

#[test]
fn fragment() {
    check("fragment", &|input| {
        let elements =
            strict::canonicalize_fragment(&input.to_vec().into(), &XmlLimits::default()).map_err(|e| refusal(&e))?;
        Ok(elements.iter().flat_map(|element| [element.bytes(), &b"\n"[..]].concat()).collect())
    });
}

#[test]
fn c14n() {
    check("c14n", &|input| {
        strict::c14n(input, CanonicalOptions::default(), &XmlLimits::default()).map_err(|e| refusal(&e))
    });
}

#[test]
fn c14n_with_comments() {
    let form = CanonicalOptions { comments: true, ..CanonicalOptions::default() };
    check("c14n-with-comments", &|input| strict::c14n(input, form, &XmlLimits::default()).map_err(|e| refusal(&e)));
}

#[test]
fn envelope() {
    check("envelope", &|input| {
        let message =
            strict::canonicalize(&input.to_vec().into(), &XmlLimits::default()).map_err(|error| error.to_string())?;
        let (claims, payload) = Envelope::open(message).map_err(|error| error.to_string())?.into_parts();
        Ok(format!("{}\n{}\n", describe(&claims), payload.as_str()).into_bytes())
    });
}

/// The pieces under a limit of 600 bytes.
#[test]
fn split() {
    check("split", &|input| {
        let mut splitter = Splitter::new(&XmlLimits::default().message_bytes(600));
        splitter.push(input);
        let mut out = Vec::new();
        while let Some(piece) = splitter.next().or_else(|| splitter.finish()) {
            match piece {
                Piece::Message(bytes) => out.extend([b"=== message\n", &bytes[..], b"\n"].concat()),
                Piece::TooLarge { at, bytes } => out.extend(format!("=== too large: {bytes} at {at}\n").into_bytes()),
            }
        }
        Ok(out)
    });
}

/// Runs strict pass, repair and strict pass again, under small limits. The repairs are listed below the canonical form.
#[test]
fn parse() {
    let limits = XmlLimits::default().message_bytes(300).attributes(4).value_bytes(30);
    check("parse", &|input| {
        let canonical = systole_xml::ladder::parse(&Raw::new(input.to_vec()), &limits).map_err(|error| {
            let at = error.position().expect("every refusal has a place");
            assert!(error.to_string().starts_with(&format!("{at}: ")), "{error}");
            format!("{error}\n{}", if error.is_limit() { "a limit\n" } else { "" })
        })?;
        let repairs = canonical.repairs().iter().map(|repair| format!("\n{} {}", repair.at, repair.kind));
        Ok((canonical.as_str().to_owned() + &repairs.collect::<String>() + "\n").into_bytes())
    });
}

/// The place, the kind and the rule of a refusal.
fn refusal(error: &StrictError) -> String {
    format!("{} {:?}\n{}\n", error.position(), error.kind(), error.rule())
}

fn describe(claims: &Claims) -> String {
    let Claims { from, to, thread, id, in_reply_to, deadline, budget, traceparent, correlation, foreign } = claims;
    let mut text = format!("from {from:?}\n");
    for (name, claim) in [("to", to), ("thread", thread), ("id", id), ("in-reply-to", in_reply_to)] {
        if let Some(claim) = claim {
            writeln!(text, "{name} {claim:?}").unwrap();
        }
    }
    if let Some(deadline) = deadline {
        writeln!(text, "deadline {deadline}").unwrap();
    }
    if let Some(budget) = budget {
        writeln!(text, "budget {budget}").unwrap();
    }
    if let Some(traceparent) = traceparent {
        writeln!(text, "traceparent {traceparent:?}").unwrap();
    }
    if let Some(correlation) = correlation {
        writeln!(text, "correlation {correlation:?}").unwrap();
    }
    if *foreign > 0 {
        writeln!(text, "foreign {foreign}").unwrap();
    }
    text
}

fn check(stage: &str, run: Stage<'_>) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(stage);
    let names = names(&folder);
    assert!(!names.is_empty(), "no NAME.in.xml in {}", folder.display());
    let flaws: Vec<_> = names.iter().filter_map(|name| flaw(&folder, name, run)).collect();
    assert!(flaws.is_empty(), "{} of {} differ:\n\n{}", flaws.len(), names.len(), flaws.join("\n"));
}

fn names(folder: &Path) -> BTreeSet<String> {
    let files = fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut names = BTreeSet::new();
    for file in files {
        let file = file.unwrap().file_name().into_string().unwrap();
        let name = [".in.xml", ".out.xml", ".err"].iter().find_map(|kind| file.strip_suffix(kind));
        names.insert(name.unwrap_or_else(|| panic!("{file} is no file of a golden pair")).to_owned());
    }
    names
}

/// The difference between the output of the stage and the golden file, if there is one.
fn flaw(folder: &Path, name: &str, run: Stage<'_>) -> Option<String> {
    let read = |kind: &str| fs::read(folder.join(format!("{name}{kind}"))).ok();
    let Some(input) = read(".in.xml") else { return Some(format!("{name}: there is no {name}.in.xml")) };
    let (kind, actual) = match run(&input) {
        Ok(out) => (".out.xml", out),
        Err(error) => (".err", error.into_bytes()),
    };
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        let _ = fs::remove_file(folder.join(format!("{name}{}", if kind == ".err" { ".out.xml" } else { ".err" })));
        fs::write(folder.join(format!("{name}{kind}")), &actual).unwrap();
    }
    let expected = match (read(".out.xml"), read(".err")) {
        (Some(out), None) => (".out.xml", out),
        (None, Some(error)) => (".err", error),
        _ => return Some(format!("{name}: there must be one of {name}.out.xml and {name}.err")),
    };
    if (kind, &actual) == (expected.0, &expected.1) {
        return None;
    }
    Some(format!(
        "{name}: expected {name}{}\n{}\n  got what would be {name}{kind}\n{}\n",
        expected.0,
        show(&expected.1),
        show(&actual)
    ))
}

fn show(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).lines().map(|line| format!("    {}\n", line.escape_debug())).collect()
}
