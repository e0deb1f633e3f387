//! JSON of calls and results as it is written: the library of the protocol reads numbers as those of 64 bits, which loses digits.
//!
//! At both borders of the library, such JSON is a string with its text: [`wrap`] makes the structured content of a result one
//! before the library reads the message, and [`unwrap`] writes the arguments of a call as they are behind it. So is each entry of
//! a list of skills: the library reads a list whole or not at all, and an ill-formed entry is to cost no other one.

use std::borrow::Cow;
use std::collections::BTreeMap;

use rmcp::model::Skill;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

/// The key of the structured content of a result.
const STRUCTURED: &str = "structuredContent";
/// The key of a list of skills.
const SKILLS: &str = "skills";
/// The mark of a text on its way through the library: the name of an argument that is the text of all arguments, and the address
/// of a skill whose name is the text of its entry. No tool has an argument of this name.
const KEPT: &str = "\0json";

/// Levels of the structured content of a result, at most: the library reads 127 of a message, and two are around it.
const DEEPEST: usize = 125;

/// The members of an object as they are written.
type Members<'t> = BTreeMap<String, &'t RawValue>;

/// The text that takes the place of another one.
type Change = fn(&str) -> Vec<u8>;

/// A message of a server whose structured content is a string with its text, and so is each entry of its list of skills. Other
/// messages, and texts that are none, stay.
pub(super) fn wrap(message: &[u8]) -> Cow<'_, [u8]> {
    let changes: [(&str, Change); 2] = [(STRUCTURED, as_string), (SKILLS, as_skills)];
    let mut wrapped = Cow::Borrowed(message);
    for (key, change) in changes {
        let has_key = memchr::memmem::find(&wrapped, key.as_bytes()).is_some();
        if let Some(changed) = has_key.then(|| replaced(&wrapped, "result", key, change)).flatten() {
            wrapped = Cow::Owned(changed);
        }
    }
    wrapped
}

/// Text within a message as a string; it stays if it nests deeper than the library reads, which refuses the message then.
fn as_string(text: &str) -> Vec<u8> {
    match levels(text) > DEEPEST {
        true => text.into(),
        false => serde_json::to_vec(text).unwrap_or_else(|_| text.into()),
    }
}

/// The levels of objects and arrays in JSON.
fn levels(json: &str) -> usize {
    let (mut depth, mut most, mut in_string, mut is_escaped) = (0_usize, 0, false, false);
    for byte in json.bytes() {
        match byte {
            _ if std::mem::take(&mut is_escaped) => {}
            b'\\' => is_escaped = true,
            b'"' => in_string = !in_string,
            b'[' | b'{' if !in_string => {
                depth += 1;
                most = most.max(depth);
            }
            b']' | b'}' if !in_string => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    most
}

/// A list whose entries are skills for the library, whatever they are: each has the text of an entry as its name.
fn as_skills(list: &str) -> Vec<u8> {
    let Ok(entries) = serde_json::from_str::<Vec<&RawValue>>(list) else { return list.into() };
    let skill = |entry: &RawValue| {
        let front = json!({ "name": entry.get(), "description": "" });
        json!({ "uri": KEPT, "frontmatter": front, "resources": "dynamic" })
    };
    Value::from_iter(entries.into_iter().map(skill)).to_string().into_bytes()
}

/// The text of an entry of a list of skills.
pub(super) fn entry(listed: &Skill) -> Cow<'_, str> {
    match listed.uri == KEPT {
        true => Cow::Borrowed(listed.name()),
        false => Cow::Owned(serde_json::to_string(listed).unwrap_or_default()),
    }
}

/// The arguments of a call, as the library takes them: it makes headers of some (`x-mcp-header`), and their text goes out. Those
/// with a number that it can't read have no headers.
pub(super) fn arguments(text: &str) -> Map<String, Value> {
    let mut arguments: Map<String, Value> = serde_json::from_str(text).unwrap_or_default();
    arguments.insert(KEPT.to_owned(), Value::from(text));
    arguments
}

/// A message to a server, in which the arguments of a call are as they are written.
pub(super) fn unwrap(message: Vec<u8>) -> Vec<u8> {
    let is_call = memchr::memmem::find(&message, b"\"tools/call\"").is_some();
    let text_of = |wrapped: &str| {
        let all: Members<'_> = serde_json::from_str(wrapped).unwrap_or_default();
        let text = all.get(KEPT).and_then(|text| serde_json::from_str::<String>(text.get()).ok());
        text.map_or_else(|| wrapped.into(), String::into_bytes)
    };
    let unwrapped = is_call.then(|| replaced(&message, "params", "arguments", text_of)).flatten();
    unwrapped.unwrap_or(message)
}

/// A message with another value of a member of a member; `None` if it has none.
fn replaced(message: &[u8], outer: &str, inner: &str, change: impl Fn(&str) -> Vec<u8>) -> Option<Vec<u8>> {
    let members: Members<'_> = serde_json::from_slice(message).ok()?;
    let within: Members<'_> = serde_json::from_str(members.get(outer)?.get()).ok()?;
    let value = within.get(inner)?;
    let mut out = Vec::with_capacity(message.len() + message.len() / 8);
    let write = |out: &mut Vec<u8>, members: &Members<'_>, but: &str, value: &dyn Fn(&mut Vec<u8>)| {
        out.push(b'{');
        for (at, (key, text)) in members.iter().enumerate() {
            if at > 0 {
                out.push(b',');
            }
            out.extend(Value::from(key.as_str()).to_string().bytes());
            out.push(b':');
            if key == but { value(out) } else { out.extend(text.get().bytes()) }
        }
        out.push(b'}');
    };
    write(&mut out, &members, outer, &|out| {
        write(out, &within, inner, &|out| out.extend(change(value.get())));
    });
    Some(out)
}

/// JSON without characters that XML can't carry: each is U+FFFD.
pub(super) fn carriable(json: &str) -> Cow<'_, str> {
    let mut out = String::new();
    let mut rest = json;
    while let Some(at) = rest.find(['\\', '\u{fffe}', '\u{ffff}']) {
        let (before, found) = rest.split_at(at);
        out.push_str(before);
        let escape = found.get(..2).unwrap_or(found);
        let (kept, length) = match escape {
            "\\b" | "\\f" => ("\u{fffd}", 2),
            "\\u" => {
                let code = found.get(2..6).and_then(|digits| u32::from_str_radix(digits, 16).ok());
                match code {
                    Some(0..=8 | 11 | 12 | 14..=31 | 0xfffe | 0xffff) => ("\u{fffd}", 6),
                    _ => (escape, 2),
                }
            }
            escape if escape.starts_with('\\') => (escape, escape.len()),
            _ => ("\u{fffd}", 3),
        };
        out.push_str(kept);
        rest = &found[length..];
    }
    if out.is_empty() && rest.len() == json.len() {
        return Cow::Borrowed(json);
    }
    out.push_str(rest);
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_of_structured_content_come_through_the_library() {
        let message = br#"{"jsonrpc":"2.0","id":1,"result":{"content":[],"structuredContent":{"a":1.50,"b":123456789012345678901234567890}}}"#;
        let value: Value = serde_json::from_slice(&wrap(message)).unwrap();
        assert_eq!(value["result"][STRUCTURED], r#"{"a":1.50,"b":123456789012345678901234567890}"#);
        assert_eq!((&value["jsonrpc"], &value["id"]), (&Value::from("2.0"), &Value::from(1)));
        for other in [&br#"{"result":{"a":"structuredContent"}}"#[..], b"{structuredContent", b"[]", b"{\"result\":1}"]
        {
            assert!(matches!(wrap(other), Cow::Borrowed(_)));
        }
    }

    #[test]
    fn content_that_nests_too_deep_for_the_library_is_not_kept_from_it() {
        let message = |levels: usize| {
            let content = format!("{{\"[\":{}1{}}}", "[".repeat(levels - 1), "]".repeat(levels - 1));
            format!(r#"{{"jsonrpc":"2.0","id":1,"result":{{"content":[],"structuredContent":{content}}}}}"#)
        };
        let value: Value = serde_json::from_slice(&wrap(message(DEEPEST).as_bytes())).unwrap();
        assert!(value["result"][STRUCTURED].is_string());
        assert!(serde_json::from_str::<Value>(&message(DEEPEST)).is_ok(), "the library reads it");
        for levels in [DEEPEST + 1, 5000] {
            assert!(serde_json::from_slice::<Value>(&wrap(message(levels).as_bytes())).is_err(), "{levels}");
        }
    }

    #[test]
    fn each_entry_of_a_list_of_skills_comes_through_the_library() {
        let message = br#"{"jsonrpc":"2.0","id":1,"result":{"skills":[{"uri":7},1e400,{"uri":"skill://a/SKILL.md"}]}}"#;
        let value: Value = serde_json::from_slice(&wrap(message)).unwrap();
        let skills: Vec<Skill> = serde_json::from_value(value["result"]["skills"].clone()).unwrap();
        let texts: Vec<_> = skills.iter().map(entry).collect();
        assert_eq!(texts, [r#"{"uri":7}"#, "1e400", r#"{"uri":"skill://a/SKILL.md"}"#]);
        let other = br#"{"result":{"skills":"none"}}"#;
        assert_eq!(serde_json::from_slice::<Value>(&wrap(other)).unwrap(), json!({ "result": { "skills": "none" } }));
    }

    #[test]
    fn arguments_of_a_call_are_written_as_they_are() {
        let text = r#"{"a":1.50,"json":"x"}"#;
        let call =
            serde_json::json!({ "method": "tools/call", "params": { "name": "n", "arguments": arguments(text) } });
        let written = String::from_utf8(unwrap(call.to_string().into_bytes())).unwrap();
        assert_eq!(written, format!(r#"{{"method":"tools/call","params":{{"arguments":{text},"name":"n"}}}}"#));
        let other = br#"{"method":"ping"}"#.to_vec();
        assert_eq!(unwrap(other.clone()), other);
    }

    #[test]
    fn characters_that_xml_lacks_are_replaced_in_json() {
        for (json, expected) in [
            (r#""a\u0000b\b\f\uFFFE""#, "\"a\u{fffd}b\u{fffd}\u{fffd}\u{fffd}\""),
            (r#""\\u0000\n\u0009\u000a""#, r#""\\u0000\n\u0009\u000a""#),
            ("\"\u{ffff}\"", "\"\u{fffd}\""),
            (r#"{"a":1}"#, r#"{"a":1}"#),
        ] {
            assert_eq!(carriable(json), expected);
            assert!(serde_json::from_str::<Value>(&carriable(json)).is_ok());
        }
    }
}
