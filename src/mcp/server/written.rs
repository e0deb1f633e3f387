//! JSON of messages as it is written: a number keeps its digits, and a key that stands there twice is seen. The crate `rmcp` has
//! values of `serde_json` in both directions, which keep neither, and takes parameters that it can't read for none where they may
//! be left out. So each message is looked at before it goes there ([`flaw`]).
//!
//! Arguments are read beside `rmcp` ([`Written`]). JSON of a result goes through it as a text ([`kept`]), which is written as it is
//! at the border behind it ([`exact`]).

use std::collections::HashSet;
use std::fmt;

use bytes::Bytes;
use rmcp::model::{ErrorData, Extensions, PaginatedRequestParams};
use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::stdio::spliced;

/// The methods whose arguments are read here.
const METHODS: [&str; 2] = ["tools/call", "prompts/get"];
/// Levels of a message that are looked at: the library reads no more.
const DEEPEST: usize = 128;
/// The key of JSON on its way through the library. Nothing else has it: it has a character that XML can't carry.
const KEPT: &str = "\0json";
/// The beginning of such JSON.
const MARK: &[u8] = br#"{"\u0000json":"#;

/// The parts of a message that are read beside `rmcp`.
#[derive(Deserialize)]
pub(super) struct Message<'m> {
    #[serde(default)]
    pub(super) method: Option<String>,
    #[serde(borrow, default)]
    params: Option<&'m RawValue>,
}

/// The parameters of a call.
#[derive(Deserialize)]
struct Params<'m> {
    #[serde(borrow, default)]
    arguments: Option<&'m RawValue>,
}

/// The arguments of a call, as text; or the mistake around them.
#[derive(Clone)]
pub(super) struct Written(Result<Option<Bytes>, String>);

impl Written {
    /// Reads those of a message; none if its method has none.
    pub(super) fn of(message: &[u8]) -> Option<Self> {
        let params = match serde_json::from_slice::<Message<'_>>(message) {
            Ok(Message { method: Some(method), params }) if METHODS.contains(&method.as_str()) => params,
            Ok(_) => return None,
            Err(error) => return Some(Self(Err(error.to_string()))),
        };
        let arguments = params.map(|params| serde_json::from_str::<Params<'_>>(params.get())).transpose();
        let arguments = arguments.map(|params| params.and_then(|params| params.arguments));
        let text = |arguments: &RawValue| Bytes::copy_from_slice(arguments.get().as_bytes());
        Some(Self(arguments.map(|arguments| arguments.map(text)).map_err(|error| error.to_string())))
    }

    /// The text of the arguments in a request's extensions; none if they have none.
    ///
    /// # Errors
    /// The mistake around them.
    pub(super) fn text(in_: &Extensions) -> Result<Option<Bytes>, ErrorData> {
        let over_http = || in_.get::<axum::http::request::Parts>()?.extensions.get::<Self>();
        match in_.get::<Self>().or_else(over_http) {
            Some(Self(Ok(text))) => Ok(text.clone()),
            Some(Self(Err(why))) => {
                Err(ErrorData::invalid_params(format!("the parameters of the request: {why}"), None))
            }
            None => Ok(None),
        }
    }
}

/// A message without arguments that the library can't read, such as the number `1e400`: they are judged here. `None` if it
/// reads them.
pub(super) fn bare(message: &[u8]) -> Option<Vec<u8>> {
    let Message { method, params } = serde_json::from_slice::<Message<'_>>(message).ok()?;
    if !METHODS.contains(&method.as_deref()?) {
        return None;
    }
    let arguments = serde_json::from_str::<Params<'_>>(params?.get()).ok()?.arguments?;
    let is_unread = arguments.get().starts_with('{') && serde_json::from_str::<Value>(arguments.get()).is_err();
    is_unread.then(|| spliced(message, arguments, "{}"))
}

/// The code of JSON-RPC for a message whose members are wrong, and the reason: one that stands there twice, of which readers take the
/// first, the last or both, and parameters of a list that are none. Arguments are judged by their contract.
pub(super) fn flaw(message: &[u8]) -> Option<(i32, String)> {
    let members = serde_json::from_slice::<Members<'_>>(message).ok()?.0;
    let repeated = |key: &str, place: &str| {
        let at = if place.is_empty() { String::new() } else { format!(" in {}", place.escape_debug()) };
        format!("the member '{}' is repeated{at}: write it once", key.escape_debug())
    };
    if let Some(key) = twice(&members) {
        return Some((-32600, repeated(key, "")));
    }
    let text = |wanted: &str| members.iter().find(|(key, _)| key == wanted).map(|(_, value)| value.get());
    let method = text("method").and_then(|method| serde_json::from_str::<String>(method).ok()).unwrap_or_default();
    for (key, value) in &members {
        if key != "params" {
            if let Some((place, key)) = within(value.get(), key) {
                return Some((-32600, repeated(&key, &place)));
            }
            continue;
        }
        let Ok(params) = serde_json::from_str::<Members<'_>>(value.get()) else { continue };
        if let Some(key) = twice(&params.0) {
            return Some((-32602, repeated(key, "params")));
        }
        for (key, value) in params.0.iter().filter(|(key, _)| key != "arguments" || !METHODS.contains(&&*method)) {
            if let Some((place, key)) = within(value.get(), &format!("params.{key}")) {
                return Some((-32602, repeated(&key, &place)));
            }
        }
    }
    let params = text("params").filter(|_| method.ends_with("/list"))?;
    let error = serde_json::from_str::<Option<PaginatedRequestParams>>(params).err()?;
    Some((
        -32602,
        format!("the parameters of {method} are wrong: {error}: the cursor is a text, that of the last page"),
    ))
}

/// The members of an object as they are written.
struct Members<'m>(Vec<(String, &'m RawValue)>);

impl<'de> Deserialize<'de> for Members<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct All;
        impl<'de> Visitor<'de> for All {
            type Value = Members<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut all = Vec::new();
                while let Some(member) = map.next_entry()? {
                    all.push(member);
                }
                Ok(Members(all))
            }
        }
        deserializer.deserialize_map(All)
    }
}

/// The first key that stands twice.
fn twice<'k>(members: &'k [(String, &RawValue)]) -> Option<&'k str> {
    let mut known = HashSet::new();
    members.iter().map(|(key, _)| key.as_str()).find(|key| !known.insert(*key))
}

/// The place of the first object in a value that has a key twice, and the key. A value that the library can't read, such as one that
/// nests too deep for it, has none. Takes no stack.
fn within(value: &str, place: &str) -> Option<(String, String)> {
    let mut pending = vec![(value, place.to_owned(), 0)];
    while let Some((value, place, depth)) = pending.pop() {
        match value.as_bytes().first() {
            _ if depth > DEEPEST => {}
            Some(b'{') => {
                let members = serde_json::from_str::<Members<'_>>(value).ok()?.0;
                if let Some(key) = twice(&members) {
                    return Some((place, key.to_owned()));
                }
                let inner = members.into_iter().rev();
                pending.extend(inner.map(|(key, value)| (value.get(), format!("{place}.{key}"), depth + 1)));
            }
            Some(b'[') => {
                let items: Vec<&RawValue> = serde_json::from_str(value).ok()?;
                let inner = items.into_iter().enumerate().rev();
                pending.extend(inner.map(|(at, value)| (value.get(), format!("{place}.{at}"), depth + 1)));
            }
            _ => {}
        }
    }
    None
}

/// The key that an object has twice.
pub(super) fn repeated_key(object: &[u8]) -> Option<String> {
    twice(&serde_json::from_slice::<Members<'_>>(object).ok()?.0).map(str::to_owned)
}

/// JSON as a value that keeps its text until [`exact`] writes it.
pub(super) fn kept(json: &str) -> Value {
    // A message is one line.
    let (mut text, mut in_string, mut is_escaped) = (String::with_capacity(json.len()), false, false);
    for c in json.chars() {
        match c {
            _ if std::mem::take(&mut is_escaped) => {}
            '\\' => is_escaped = true,
            '"' => in_string = !in_string,
            ' ' | '\t' | '\n' | '\r' if !in_string => continue,
            _ => {}
        }
        text.push(c);
    }
    json!({ KEPT: text })
}

/// A message of the library with the JSON that was kept.
pub(super) fn exact(message: Bytes) -> Bytes {
    let mut out = Vec::new();
    let mut rest = &message[..];
    while let Some(at) = memchr::memmem::find(rest, MARK) {
        let behind = &rest[at + MARK.len()..];
        let mut texts = serde_json::Deserializer::from_slice(behind).into_iter::<String>();
        let text = texts.next().and_then(Result::ok);
        let end = texts.byte_offset();
        let json =
            text.filter(|text| serde_json::from_str::<&RawValue>(text).is_ok() && behind.get(end) == Some(&b'}'));
        let (kept, taken) = match &json {
            Some(json) => (json.as_bytes(), MARK.len() + end + 1),
            None => (MARK, MARK.len()),
        };
        out.extend_from_slice(&rest[..at]);
        out.extend_from_slice(kept);
        rest = &rest[at + taken..];
    }
    if out.is_empty() {
        return message;
    }
    out.extend_from_slice(rest);
    out.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(message: &str) -> Option<Result<Option<Bytes>, String>> {
        Written::of(message.as_bytes()).map(|written| written.0)
    }

    #[test]
    fn arguments_are_kept_as_they_were_written() {
        let call = |params: &str| text(&format!(r#"{{"id":1,"method":"tools/call","params":{params}}}"#));
        let exact = r#"{"a":123456789012345678901234567890,"b":1.50,"a":-0}"#;
        let kept = call(&format!(r#"{{"name":"x","arguments":{exact}}}"#)).unwrap().unwrap().unwrap();
        assert_eq!(kept, exact);
        assert_eq!(call(r#"{"name":"x"}"#), Some(Ok(None)));
        assert!(text(r#"{"id":1,"method":"ping"}"#).is_none());
    }

    #[test]
    fn arguments_that_the_library_can_t_read_are_left_out_for_it() {
        let call = |arguments: &str| {
            let params = format!(r#"{{"name":"x","arguments":{arguments}}}"#);
            let message = format!(r#"{{"id":1,"method":"tools/call","params":{params}}}"#);
            bare(message.as_bytes()).map(|bare| String::from_utf8(bare).unwrap())
        };
        let without = r#"{"id":1,"method":"tools/call","params":{"name":"x","arguments":{}}}"#;
        assert_eq!(call(r#"{"a": [1e400]}"#).as_deref(), Some(without));
        let deep = format!("{{\"a\":{}1{}}}", "[".repeat(200), "]".repeat(200));
        assert_eq!(call(&deep).as_deref(), Some(without));
        assert_eq!((call(r#"{"a":1}"#), call("[1e400]"), bare(br#"{"method":"ping"}"#)), (None, None, None));
    }

    #[test]
    fn a_member_that_is_repeated_is_a_flaw_wherever_it_stands() {
        for (message, code, why) in [
            (r#"{"jsonrpc":"2.0","id":1,"jsonrpc":"2.0","method":"ping"}"#, -32600, "the member 'jsonrpc' is repeated"),
            (r#"{"id":1,"id":2,"method":"ping"}"#, -32600, "the member 'id' is repeated"),
            (r#"{"id":1,"result":{"a":{"b":1,"b":2}}}"#, -32600, "the member 'b' is repeated in result.a"),
            (r#"{"method":"x","params":{"a":1,"\u0061":2}}"#, -32602, "the member 'a' is repeated in params"),
            (
                r#"{"params":{"_meta":{"t":1,"t":1}},"method":"x"}"#,
                -32602,
                "the member 't' is repeated in params._meta",
            ),
            (r#"{"method":"x","params":{"a":[0,{"b":1,"b":1}]}}"#, -32602, "the member 'b' is repeated in params.a.1"),
            (
                r#"{"method":"tools/call","params":{"name":"x","arguments":{},"arguments":{}}}"#,
                -32602,
                "the member 'arguments' is repeated in params",
            ),
            (r#"{"method":"tools/list","params":{"cursor":5}}"#, -32602, "the cursor is a text"),
            (r#"{"method":"prompts/list","params":[5]}"#, -32602, "the parameters of prompts/list are wrong"),
        ] {
            let (found, said) = flaw(message.as_bytes()).unwrap_or_else(|| panic!("{message}"));
            assert!(found == code && said.contains(why), "{message}: {found} {said}");
        }
        let deep = format!(r#"{{"method":"x","params":{{"a":{}1{}}}}}"#, "[".repeat(50_000), "]".repeat(50_000));
        for message in [
            r#"{"method":"tools/call","params":{"name":"x","arguments":{"a":1,"a":2}}}"#,
            r#"{"method":"tools/list","params":{"cursor":null}}"#,
            r#"{"method":"tools/list","params":{"cursor":"5"}}"#,
            r#"{"method":"tools/list"}"#,
            r#"{"method":"tools/list","params":null}"#,
            r#"{"a":{"b":1},"c":{"b":1},"d":[{"b":1},{"b":1}]}"#,
            "[]",
            "{nonsense",
            &deep,
        ] {
            assert_eq!(flaw(message.as_bytes()), None, "{message:.200}");
        }
    }

    #[test]
    fn a_repeated_key_is_seen() {
        assert_eq!(repeated_key(br#"{"a":1,"b":{"a":1,"a":2},"a":"3"}"#).as_deref(), Some("a"));
        assert_eq!(repeated_key(br#"{"a":1,"b":2}"#), None);
    }

    #[test]
    fn json_of_a_result_keeps_its_digits_and_its_keys() {
        let text = "{ \"b\" : 1.50, \"a\" : [123456789012345678901234567890 ,\n1e400], \"c\": \"x \\\" \\\\\" }";
        let result = json!({ "result": [{ "structuredContent": kept(text) }, { "structuredContent": kept("{}") }] });
        let written = exact(Bytes::from(result.to_string()));
        let expected = r#"{"result":[{"structuredContent":{"b":1.50,"a":[123456789012345678901234567890,1e400],"c":"x \" \\"}},{"structuredContent":{}}]}"#;
        assert_eq!(written, expected);
        for other in [
            json!({ "text": "{\"\\u0000json\":\"1\"}" }).to_string(),
            json!({ KEPT: "no JSON" }).to_string(),
            json!({ KEPT: "1", "more": 2 }).to_string(),
            "{}".to_owned(),
        ] {
            assert_eq!(exact(Bytes::from(other.clone())), other);
        }
    }
}
