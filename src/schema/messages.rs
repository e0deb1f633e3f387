//! libxml's messages in words for people and models who never saw it: which element, what was found, what was
//! expected.

use super::builtin::Builtin;
use super::shorten::{LONGEST_RULE, shortened};

/// What is wrong, in one clause. `namespace` is that of the payload; its names stand without it. `expected` tells
/// what an element, or an attribute of it, should hold.
pub(super) fn sentence<'a>(
    message: &str,
    namespace: &str,
    expected: impl Fn(&str, Option<&str>) -> Option<&'a str>,
) -> String {
    let own = format!("{{{namespace}}}");
    let message = if namespace.is_empty() { message.to_owned() } else { message.replace(&own, "") };
    let message = message.trim_end();
    let sentence = match split(message) {
        Some((element, Some(attribute), rule)) => {
            format!("attribute '{attribute}' of <{element}>: {}", clause(rule, expected(element, Some(attribute))))
        }
        Some((element, None, rule)) => format!("<{element}>: {}", clause(rule, expected(element, None))),
        None => message.trim_end_matches('.').to_owned(),
    };
    shortened(&sentence, LONGEST_RULE)
}

/// Whether a message only repeats that the value before it breaks a facet.
pub(super) fn repeats_facet(message: &str) -> bool {
    message.contains("is not a valid value of the") && !message.contains("type 'xs:")
}

/// Whether a message names a facet.
pub(super) fn is_facet(message: &str) -> bool {
    message.contains(": [facet '")
}

/// `Element 'name', attribute 'name': rule`.
fn split(message: &str) -> Option<(&str, Option<&str>, &str)> {
    let (element, rest) = message.strip_prefix("Element '")?.split_once('\'')?;
    match rest.strip_prefix(", attribute '") {
        Some(rest) => {
            let (attribute, rest) = rest.split_once('\'')?;
            Some((element, Some(attribute), rest.strip_prefix(": ")?))
        }
        None => Some((element, None, rest.strip_prefix(": ")?)),
    }
}

fn clause(rule: &str, expected: Option<&str>) -> String {
    let rule = rule.strip_suffix('.').unwrap_or(rule);
    if let Some((_, facet)) = rule.strip_prefix("[facet '").and_then(|rest| rest.split_once("'] ")) {
        return lower(facet);
    }
    if let Some((found, ty)) = value_of_type(rule) {
        let found = shortened(found, 80);
        return match (expected, ty.strip_prefix("xs:")) {
            (Some(expected), _) => format!("found '{found}', expected {expected}"),
            (None, Some(name)) => format!("found '{found}', expected {} (xs:{name})", Builtin::named(name).words()),
            (None, None) => format!("found '{found}', which is no {ty}"),
        };
    }
    let (fact, expected) = match rule.split_once(". Expected is ") {
        Some((fact, expected)) => (fact, names(expected)),
        None => (rule, None),
    };
    let fact = match fact {
        "This element is not expected" => "not expected here",
        "Missing child element(s)" => "ends too early",
        "Character content other than whitespace is not allowed because the content type is 'element-only'" => {
            "text is not allowed between its elements"
        }
        "Character content is not allowed, because the content type is empty" => "must be empty",
        "Element content is not allowed, because the content type is a simple type definition"
        | "Element content is not allowed, because the type definition is simple" => {
            "elements are not allowed in it, only text"
        }
        fact => &lower(fact),
    };
    match expected {
        Some(expected) => format!("{fact}; expected {expected}"),
        None => fact.to_owned(),
    }
}

/// `'found' is not a valid value of the … type 'name'`.
fn value_of_type(rule: &str) -> Option<(&str, &str)> {
    let (found, ty) = rule.strip_prefix('\'')?.rsplit_once("' is not a valid value of the ")?;
    match ty.split_once('\'') {
        Some((_, name)) => Some((found, name.trim_end_matches('\''))),
        None => Some((found, "value of its type")),
    }
}

/// `( a )` or `one of ( a, b )`.
fn names(expected: &str) -> Option<String> {
    let (several, list) = match expected.strip_prefix("one of ") {
        Some(list) => (true, list),
        None => (false, expected),
    };
    let list = list.strip_prefix("( ")?.strip_suffix(" )")?;
    let names: Vec<String> = list.split(", ").map(|name| format!("<{name}>")).collect();
    Some(format!("{}{}", if several { "one of " } else { "" }, names.join(", ")))
}

fn lower(sentence: &str) -> String {
    let mut chars = sentence.chars();
    chars.next().map(|first| first.to_lowercase().chain(chars).collect()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_become_clauses() {
        for (message, expected) in [
            (
                "Element '{urn:x}a': 'foo' is not a valid value of the atomic type 'xs:long'.\n",
                "<a>: found 'foo', expected whole number (xs:long)",
            ),
            (
                "Element '{urn:x}c': This element is not expected. Expected is one of ( {urn:x}a, {urn:x}b ).\n",
                "<c>: not expected here; expected one of <a>, <b>",
            ),
            (
                "Element '{urn:x}add': Missing child element(s). Expected is ( {urn:x}b ).\n",
                "<add>: ends too early; expected <b>",
            ),
            (
                "Element '{urn:x}a', attribute 'k': The attribute 'k' is not allowed.\n",
                "attribute 'k' of <a>: the attribute 'k' is not allowed",
            ),
            (
                "Element '{urn:x}a': [facet 'maxInclusive'] The value '9' is greater than the maximum value allowed ('5').\n",
                "<a>: the value '9' is greater than the maximum value allowed ('5')",
            ),
            ("something else.", "something else"),
        ] {
            assert_eq!(sentence(message, "urn:x", |_, _| None), expected);
        }
    }

    #[test]
    fn what_the_schema_says_of_a_field_is_told() {
        let message = "Element '{urn:x}a', attribute 'k': 'foo' is not a valid value of the local atomic type.";
        let expected = |element: &str, attribute: Option<&str>| {
            (element == "a" && attribute == Some("k")).then_some("whole number from 1 to 5")
        };
        let sentence = sentence(message, "urn:x", expected);
        assert_eq!(sentence, "attribute 'k' of <a>: found 'foo', expected whole number from 1 to 5");
    }

    #[test]
    fn long_values_are_cut() {
        let message =
            format!("Element 'a': '{}' is not a valid value of the atomic type 'xs:long'.", "x".repeat(100_000));
        assert!(sentence(&message, "", |_, _| None).len() < 200);
    }
}
