//! The strict pass beside libxml2.

use crate::ladder::strict::{CanonicalOptions, c14n};
use crate::schema::libxml2::c14n::{Reading, read};
use crate::vocab::XmlLimits;

/// The strict pass and libxml2 agree about a document: whether it is well-formed, and its canonical form.
///
/// Documents that libxml2 can't judge are not compared: over Systole's limits; with a DOCTYPE, which Systole refuses;
/// in another encoding than UTF-8; with another version than 1.0, of which libxml2 accepts `1.`; with a NUL, where
/// libxml2 stops reading; with a namespace name that is no plain URI, which libxml2 refuses or writes unescaped.
pub fn libxml(data: &[u8]) {
    for (comments, prefixes) in [(false, &[][..]), (true, &[]), (false, &["p"]), (true, &["q", "#default", "p"])] {
        compare(data, CanonicalOptions { comments, prefixes });
    }
}

fn compare(data: &[u8], form: CanonicalOptions) {
    let shown = || String::from_utf8_lossy(data).into_owned();
    let ours = c14n(data, form, &XmlLimits::default());
    match (&ours, is_judged(data)) {
        (_, false) => return,
        (Err(error), true) if error.is_limit() => return,
        _ => {}
    }
    match (ours, read(data, form)) {
        (Ok(ours), Reading::Canonical(Some(libxml))) => {
            let (ours, libxml) = (String::from_utf8_lossy(&ours), String::from_utf8_lossy(&libxml));
            assert_eq!(ours, libxml, "canonical forms differ ({form:?}) of {:?}", shown());
        }
        (Err(_), Reading::Refused(_) | Reading::Canonical(None)) => {}
        (Ok(_), found) => panic!("libxml2 refuses what the strict pass takes: {found:?} in {:?}", shown()),
        (Err(error), Reading::Canonical(Some(_))) => {
            panic!("libxml2 takes what the strict pass refuses: {error} in {:?}", shown())
        }
    }
}

/// Returns whether libxml2 and the strict pass read these bytes by the same rules.
fn is_judged(data: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(data) else { return false };
    let declaration = text.trim_start_matches('\u{FEFF}').split("?>").next().unwrap_or_default();
    let is_special = |declaration: &str| declaration.contains("encoding") || !declaration.contains("1.0");
    let is_special = declaration.starts_with("<?xml") && is_special(declaration);
    !is_special && !text.contains("<!DOCTYPE") && !text.contains('\0') && has_plain_namespaces(text)
}

/// Returns whether all namespace names are URIs of the plainest kind, those that the canonical form omits included.
fn has_plain_namespaces(text: &str) -> bool {
    text.match_indices("xmlns").all(|(at, _)| {
        let Some((_, value)) = text[at..].split_once('=') else { return true };
        let value = value.trim_start();
        let Some(quote) = value.chars().next() else { return true };
        let name = value[quote.len_utf8()..].split(quote).next().unwrap_or_default();
        // A colon elsewhere may stand before a text that is no port.
        let rest = name.split_once(':').map_or(name, |(_, rest)| rest);
        rest.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"/.-_".contains(&byte))
            && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b":/.-_".contains(&byte))
    })
}
