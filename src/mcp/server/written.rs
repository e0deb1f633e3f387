//! Arguments of calls as their clients wrote them: a number keeps its digits, and a key that stands there twice is seen. The crate
//! `rmcp` reads them as values of `serde_json`, which keep neither.

use bytes::Bytes;
use rmcp::model::{ErrorData, Extensions};
use serde::Deserialize;
use serde_json::value::RawValue;

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
    /// Reads those of a message; none if it calls no tool.
    pub(super) fn of(message: &[u8]) -> Option<Self> {
        let params = match serde_json::from_slice::<Message<'_>>(message) {
            Ok(message) if message.method.as_deref() == Some("tools/call") => message.params,
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
                Err(ErrorData::invalid_params(format!("the parameters of tools/call: {why}"), None))
            }
            None => Ok(None),
        }
    }
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
        let twice = call(r#"{"name":"x","arguments":{},"arguments":{}}"#).unwrap().unwrap_err();
        assert!(twice.contains("arguments"), "{twice}");
        assert!(text(r#"{"id":1,"method":"ping"}"#).is_none());
    }
}
