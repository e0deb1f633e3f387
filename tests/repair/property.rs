//! What holds for any bytes. The fuzz target runs the same function.

use systole::ladder::Raw;
use systole::ladder::repair::{Repaired, Shape, repair};
use systole::vocab::{Position, XmlLimits};

use super::judge;

/// Repair refuses with a place, or its output is well-formed, needs no repair, and differs from the
/// input only where it says so.
pub(crate) fn check(raw: &[u8]) {
    for shape in [Shape::Document, Shape::Fragment] {
        match repair(&Raw::new(raw.to_vec()), shape, &XmlLimits::default()) {
            Ok(repaired) => check_repaired(raw, shape, &repaired),
            Err(error) => assert!(error.to_string().starts_with(&format!("{}: ", error.position())), "{error}"),
        }
    }
}

fn check_repaired(raw: &[u8], shape: Shape, repaired: &Repaired) {
    let shown = || format!("{shape:?} {:?} -> {:?}", String::from_utf8_lossy(raw), repaired.bytes());
    if let Err(error) = judge::accepts(repaired.bytes(), shape) {
        panic!("{}: {error}", shown());
    }
    let again = repair(&Raw::new(repaired.bytes().clone()), shape, &XmlLimits::default());
    let again = again.unwrap_or_else(|error| panic!("{}: refused the second time: {error}", shown()));
    assert_eq!(again.bytes(), repaired.bytes(), "{}", shown());
    assert_eq!(again.repairs(), [], "{}", shown());
    let body = raw.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(raw);
    if repaired.repairs().is_empty() {
        assert_eq!(&repaired.bytes()[..], body, "changed without a repair");
    }
    let is_utf_16 = raw.starts_with(b"\xFF\xFE") || raw.starts_with(b"\xFE\xFF");
    let mut last = 0;
    for repair in repaired.repairs() {
        assert!(last <= repair.span.start && repair.span.start <= repair.span.end && repair.span.end <= raw.len());
        last = repair.span.start;
        if !is_utf_16 && std::str::from_utf8(raw).is_ok() {
            let skipped = raw.len() - body.len();
            assert_eq!(repair.at, Position::of(body, repair.span.start.saturating_sub(skipped)), "{}", shown());
        }
    }
}
