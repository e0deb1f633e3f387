//! JSON values that travel as XML: the vocabulary of `json-to-xml` (XSLT 3.0, section 22), as the content of an element.
//!
//! A value is a `map`, an `array`, a `string`, a `number`, a `boolean` or a `null`; what is in a map has its key as an attribute.
//! The grammar judges the elements; this module what it can't: that no key is repeated, and the JSON Schema of the value.

use std::collections::HashMap;

use serde_json::{Map, Value};

use super::document::{Document, Kind, Limits};
use super::judge::pointer;
use super::mapping::Mapping;
use super::rules::{RuleId, Rules};
use super::write::{Literals, Written, written};
use crate::ladder::Canonical;
use crate::schema::engine::SchemaError;
use crate::schema::model::{Beside, Complex, Content, Element, Order, Particle, Term, TypeId};
use crate::schema::shorten::{LONGEST_RULE, quoted, shortened};
use crate::vocab::ns;

/// The elements of the vocabulary.
pub(super) const MAP: &str = "map";
pub(super) const ARRAY: &str = "array";
pub(super) const STRING: &str = "string";
pub(super) const NUMBER: &str = "number";
pub(super) const BOOLEAN: &str = "boolean";
pub(super) const NULL: &str = "null";
const ALL: [&str; 6] = [MAP, ARRAY, STRING, NUMBER, BOOLEAN, NULL];

/// The attribute of what is in a map.
pub(super) const KEY: &str = "key";

/// The name of the element for a value.
pub(super) fn element_of(kind: Kind) -> &'static str {
    match kind {
        Kind::Object => MAP,
        Kind::Array => ARRAY,
        Kind::Plain | Kind::Escaped => STRING,
        Kind::Number => NUMBER,
        Kind::True | Kind::False => BOOLEAN,
        Kind::Null => NULL,
    }
}

/// Returns whether the content of a type is one value of the vocabulary.
pub(in crate::schema) fn is_value(complex: &Complex) -> bool {
    let Complex {
        attributes, any_attributes: None, content: Content::Children(particle), beside: Beside::Nothing, ..
    } = complex
    else {
        return false;
    };
    let mut particle = particle;
    loop {
        let Particle { min: 1, max: Some(1), term: Term::Group(order, parts) } = particle else { return false };
        match (order, &parts[..]) {
            (_, [only]) => particle = only,
            (Order::Choice, parts) => {
                let is_one = |part: &Particle| match &part.term {
                    Term::Element(element) => (part.min, part.max) == (1, Some(1)) && is_of_vocabulary(element),
                    _ => false,
                };
                return attributes.is_empty() && parts.len() == ALL.len() && parts.iter().all(is_one);
            }
            _ => return false,
        }
    }
}

fn is_of_vocabulary(element: &Element) -> bool {
    *element.namespace == *ns::JSON && ALL.contains(&element.local.as_str())
}

/// The rules of the values of a payload that a JSON Schema describes.
#[derive(Debug)]
pub(crate) struct ValueRules {
    pub(in crate::schema) rules: Rules,
    /// The rule of the values of each type, and its schema as the author wrote it.
    pub(in crate::schema) of: HashMap<TypeId, (RuleId, Value)>,
    /// The schemas that these refer to, by the names of definitions.
    pub(in crate::schema) definitions: Map<String, Value>,
}

/// Judges the values of a payload that its grammar allows. Takes linear time.
///
/// # Errors
/// The first broken rule, with the element of the value.
pub(in crate::schema) fn check(
    mapping: &Mapping,
    rules: Option<&ValueRules>,
    payload: &Canonical,
) -> Result<(), SchemaError> {
    if !mapping.has_values {
        return Ok(());
    }
    let (json, values) = written(mapping, payload, Some(""), Literals::Written);
    for Written { element, name, ty, range, has_attributes } in values {
        let refused = |place: &str, inner: usize, rule: &str| {
            let at = if place.is_empty() { String::new() } else { format!(", at {}", quoted(place)) };
            let rule = shortened(&format!("<{name}>{at}: {rule}"), LONGEST_RULE);
            Err(SchemaError::of_element(payload, element + inner, rule))
        };
        if has_attributes {
            return refused("", 0, "an element with a JSON value has no attributes: leave them out");
        }
        let limits = Limits { bytes: usize::MAX, depth: usize::MAX };
        let document = match Document::read(&json[range], limits) {
            Ok(document) => document,
            Err(error) => return refused(&error.pointer, 0, &error.problem.to_string()),
        };
        let Some((rules, (rule, _))) = rules.and_then(|rules| Some((&rules.rules, rules.of.get(&ty)?))) else {
            continue;
        };
        if let Err(broken) = rules.judge(&document, *rule) {
            return refused(&pointer(&document, broken.node), 1 + place_of(&document, broken.node), &broken.rule);
        }
    }
    Ok(())
}

/// The number of values that stand before a value, or before that of a key.
fn place_of(document: &Document<'_>, node: u32) -> usize {
    let mut is_key = vec![false; document.next(0) as usize];
    for at in 0..document.next(0) {
        if document.kind(at) == Kind::Object {
            document.members(at).for_each(|(_, value)| is_key[value as usize - 1] = true);
        }
    }
    is_key[..node as usize].iter().filter(|is_key| !**is_key).count()
}
