//! Conditional inclusion: documents for several versions of XML Schema mark their elements by `vc:` attributes
//! (XSD 1.1 part 1, section 4.2.2). Elements that are not for 1.0 are removed before the document is judged.

use std::ops::Range;

use super::tree::{NodeId, Tree};
use crate::schema::shorten::quoted;
use crate::schema::simple;
use crate::vocab::ns;

/// The namespace of the attributes.
const VERSIONING: &str = "http://www.w3.org/2007/XMLSchema-versioning";

/// The version of this engine.
const OWN: f64 = 1.0;

/// The text without elements for other versions, with the same lines; `None` if all of it is for this version.
pub(super) fn included(tree: &Tree) -> Option<String> {
    let text = tree.document();
    if !text.contains(VERSIONING) {
        return None;
    }
    let mut pending = vec![0];
    let mut excluded: Vec<Range<usize>> = Vec::new();
    while let Some(id) = pending.pop() {
        match (is_excluded(tree, id), id) {
            (false, _) => pending.extend(tree.parts(id)),
            // A document for other versions is empty.
            (true, 0) => excluded.extend(tree.parts(id).map(|part| tree.node(part).whole)),
            (true, _) => excluded.push(tree.node(id).whole),
        }
    }
    if excluded.is_empty() {
        return None;
    }
    let mut bytes = text.as_bytes().to_vec();
    for range in excluded {
        bytes[range].iter_mut().filter(|byte| **byte != b'\n').for_each(|byte| *byte = b' ');
    }
    String::from_utf8(bytes).ok()
}

/// The first attribute of the versions of an element that is no version: a decimal number, such as `1.1`. Returns its element,
/// its name and the rule.
pub(super) fn flaw(tree: &Tree) -> Option<(NodeId, &str, String)> {
    if !tree.document().contains(VERSIONING) {
        return None;
    }
    let is_decimal = |value: &str| {
        let digits = value.strip_prefix(['+', '-']).unwrap_or(value);
        let count = digits.bytes().filter(u8::is_ascii_digit).count();
        count > 0 && digits.len() - count <= 1 && digits.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.')
    };
    let mut pending = vec![0];
    while let Some(id) = pending.pop() {
        let wrong = tree.attributes(id).find_map(|(name, value)| {
            let (prefix, local) = name.split_once(':')?;
            let is_version = matches!(local, "minVersion" | "maxVersion") && tree.resolve(id, prefix) == VERSIONING;
            (is_version && !is_decimal(value.trim())).then_some((name, value))
        });
        if let Some((name, value)) = wrong {
            let value = quoted(value);
            let rule =
                format!("'{value}' is no version of XML Schema: write {name}=\"1.1\" for what version 1.0 leaves out");
            return Some((id, name, rule));
        }
        // Of what is for other versions, nothing is read.
        if !is_excluded(tree, id) {
            pending.extend(tree.parts(id));
        }
    }
    None
}

fn is_excluded(tree: &Tree, id: NodeId) -> bool {
    let versioning = tree.attributes(id).filter_map(|(name, value)| {
        let (prefix, local) = name.split_once(':')?;
        (tree.resolve(id, prefix) == VERSIONING).then_some((local, value.trim()))
    });
    // An author who writes the least version at the root says what the document was tested with. It is read as far as it is of
    // this version: an element of a later one is refused by its name, where an empty document would refuse each instance.
    let mut versioning = versioning.filter(|(local, _)| id > 0 || *local != "minVersion");
    versioning.any(|(local, value)| {
        let version = || value.parse::<f64>().ok();
        let mut names = value.split_whitespace();
        match local {
            "minVersion" => version().is_some_and(|least| OWN < least),
            "maxVersion" => version().is_some_and(|first| OWN >= first),
            "typeAvailable" => !names.all(|name| is_known(tree, id, name, simple::is_xsd_type)),
            "typeUnavailable" => names.all(|name| is_known(tree, id, name, simple::is_xsd_type)),
            "facetAvailable" => !names.all(|name| is_known(tree, id, name, simple::is_facet)),
            "facetUnavailable" => names.all(|name| is_known(tree, id, name, simple::is_facet)),
            _ => false,
        }
    })
}

/// Returns whether a qualified name is one of XML Schema and known.
fn is_known(tree: &Tree, id: NodeId, name: &str, known: impl Fn(&str) -> bool) -> bool {
    let (prefix, local) = name.split_once(':').unwrap_or(("", name));
    tree.resolve(id, prefix) == ns::XSD && known(local)
}
