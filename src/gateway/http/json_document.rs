//! JSON documents of requests and answers, each key of an object once: of two members with one name, readers take the
//! first, the last or both (RFC 8259, section 4), and so each another document.

use std::collections::HashSet;
use std::fmt;

use serde::de::{DeserializeOwned, DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};

/// Parses a document.
///
/// # Errors
/// The mistake and its place; a repeated key is one, however deep it is.
pub(in crate::gateway) fn parse<T: DeserializeOwned>(bytes: &[u8]) -> serde_json::Result<T> {
    let mut reader = serde_json::Deserializer::from_slice(bytes);
    Unique.deserialize(&mut reader)?;
    serde_json::from_slice(bytes)
}

/// A value whose objects have each key once.
struct Unique;

impl<'de> DeserializeSeed<'de> for Unique {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Unique {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<(), A::Error> {
        let mut keys = HashSet::new();
        while let Some(key) = members.next_key::<String>()? {
            if keys.contains(&key) {
                return Err(A::Error::custom(format_args!("the key {key:?} is repeated: write it once")));
            }
            keys.insert(key);
            members.next_value_seed(Unique)?;
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        while items.next_element_seed(Unique)?.is_some() {}
        Ok(())
    }

    fn visit_str<E: Error>(self, _: &str) -> Result<(), E> {
        Ok(())
    }

    fn visit_bool<E: Error>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E: Error>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E: Error>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E: Error>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_unit<E: Error>(self) -> Result<(), E> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    #[test]
    fn a_repeated_key_is_refused_at_any_depth_and_named() {
        for (document, key) in [
            (r#"{"a":1,"a":1}"#, "a"),
            (r#"{"a":1,"b":2,"\u0061":3}"#, "a"),
            (r#"{"a":{"b":[0,{"c":1.5,"d":null,"c":-1}]}}"#, "c"),
            (r#"[{"a":{}},{"a":{},"a":true}]"#, "a"),
            (r#"{"":"","":""}"#, ""),
        ] {
            let error = parse::<Value>(document.as_bytes()).unwrap_err().to_string();
            assert!(error.starts_with(&format!("the key {key:?} is repeated: write it once at line 1")), "{error}");
        }
        let document = r#"{"a":{"a":[{"a":1},{"a":1}]},"b":{"a":18446744073709551615}}"#;
        assert_eq!(parse::<Value>(document.as_bytes()).unwrap().to_string(), document);
        for broken in ["", "{", r#"{"a":}"#, r#"{"a":1} x"#, r#"{1:1}"#] {
            let expected = serde_json::from_str::<Value>(broken).unwrap_err().to_string();
            assert_eq!(parse::<Value>(broken.as_bytes()).unwrap_err().to_string(), expected, "{broken}");
        }
        let deep = "[".repeat(100_000);
        assert!(parse::<Value>(deep.as_bytes()).unwrap_err().to_string().contains("recursion limit"));
    }
}
