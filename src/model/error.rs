//! Errors that providers report: their words, and the chance of another attempt.

use serde_json::Value;

use super::{Again, Billed, Setback};
use crate::terminal::readable;

/// Parts of the names of errors that the same request meets again.
const LASTING: [&str; 20] = [
    "insufficient_quota",
    "billing",
    "credit",
    "payment",
    "authentication",
    "permission",
    "unauthorized",
    "forbidden",
    "invalid",
    "badrequest",
    "bad_request",
    "not_found",
    "notfound",
    "unsupported",
    "context_length",
    "too_large",
    "content_filter",
    "policy",
    "validation",
    "accessdenied",
];
/// Parts of the names of errors that pass.
const PASSING: [&str; 9] = [
    "rate_limit",
    "ratelimit",
    "throttl",
    "overloaded",
    "exhausted",
    "timeout",
    "unavailable",
    "server_error",
    "internal",
];
/// Statuses that pass, beside errors of the server: all others are a mistake in the request or the settings.
const STATUSES: [u64; 4] = [408, 409, 425, 429];
/// Bytes of the compact form of an error without a message, at most.
const SHOWN: usize = 300;

/// The error in an event or a body, where it is one: `{"error": …}`, also in a list or in the choice that it ends,
/// `{"object": "error", …}` or `{"type": "error", …}`, or one that stands in place of an answer.
pub(super) fn error_in(event: &Value) -> Option<&Value> {
    let event = event.as_array().and_then(|all| all.first()).unwrap_or(event);
    let is_error = |field: &str| event.get(field).and_then(Value::as_str) == Some("error");
    let choice = || event.get("choices")?.get(0)?.get("error");
    let is_said = |error: &&Value| !error.is_null() && **error != Value::Bool(false);
    let inner = event.get("error").filter(is_said).or_else(|| choice().filter(is_said));
    inner.or_else(|| (is_error("object") || is_error("type")).then_some(event)).or_else(|| bare_error_in(event))
}

/// The error of a gateway that writes one without its name, by fields that no answer has: `{"errors": […]}`,
/// `{"detail": …}`, or a message with a code, a status or the name of an exception.
fn bare_error_in(event: &Value) -> Option<&Value> {
    let has = |field: &str| event.get(field).is_some_and(|value| !value.is_null());
    if ["choices", "content", "delta", "usage", "done"].into_iter().any(has) {
        return None;
    }
    let is_named = ["code", "status", "status_code", "__type"].into_iter().any(has);
    let is_error = has("detail") || is_named && event.get("message").is_some_and(Value::is_string);
    event.get("errors").and_then(|errors| errors.get(0)).or_else(|| is_error.then_some(event))
}

/// The setback of an error that a provider reports instead of an answer, or in the middle of one. Where nothing of an
/// answer came before, nothing is billed.
pub(super) fn reported(error: &Value) -> Setback {
    let message = "it reported an error instead of an answer".to_owned();
    let detail = format!("{message}: {}", words(error));
    // An error of an unknown kind is its server's.
    let passes = passes(None, error).unwrap_or(true);
    Setback { message, detail, again: if passes { Again::Later(None) } else { Again::Never }, billed: Billed::Nothing }
}

/// Tests whether the same request may succeed later, by the name of an error and its status; `None` if neither says it.
pub(super) fn passes(status: Option<u16>, error: &Value) -> Option<bool> {
    let names = ["type", "code", "status", "__type"].into_iter().filter_map(|field| error.get(field)?.as_str());
    let names = names.map(str::to_ascii_lowercase).collect::<Vec<_>>().join(" ");
    let number = |value: &Value| value.as_u64().or_else(|| value.as_str()?.parse().ok());
    let codes = ["code", "status", "status_code"].into_iter().filter_map(|field| number(error.get(field)?));
    let status = status.map(u64::from).or_else(|| codes.into_iter().find(|code| (400..600).contains(code)));
    if LASTING.iter().any(|name| names.contains(name)) {
        return Some(false);
    }
    let named = PASSING.iter().any(|name| names.contains(name)).then_some(true);
    status.map(|status| status >= 500 || STATUSES.contains(&status)).or(named)
}

/// The words of an error: its message, wherever the provider puts it, with its code.
pub(super) fn words(error: &Value) -> String {
    if let Some(text) = error.as_str() {
        return readable(text);
    }
    let fields = ["message", "msg", "details", "detail", "error", "error_description"];
    let found = fields.into_iter().filter_map(|field| error.get(field)).find(|value| !value.is_null());
    match found {
        Some(Value::String(text)) => {
            let code = ["code", "type", "status", "__type"]
                .into_iter()
                .filter_map(|field| error.get(field))
                .find(|code| !code.is_null());
            let code = code.map(|code| code.as_str().map_or_else(|| code.to_string(), str::to_owned));
            let code = code.filter(|code| !text.contains(code.as_str()));
            readable(&code.map_or_else(|| text.clone(), |code| format!("{text} ({code})")))
        }
        Some(inner @ Value::Object(_)) => words(inner),
        _ => readable(&error.to_string().chars().take(SHOWN).collect::<String>()),
    }
}

/// The words of a body that should have been an answer, or that came with a refusal: those of an error in JSON, the title
/// or the text of a page, or its beginning.
pub(super) fn said(body: &[u8]) -> String {
    if let Ok(json) = serde_json::from_slice::<Value>(body) {
        let json = json.as_array().and_then(|all| all.first()).unwrap_or(&json);
        return words(error_in(json).unwrap_or(json));
    }
    let text = String::from_utf8_lossy(body);
    if text.trim_start().starts_with('<') { readable(&page(&text)) } else { readable(&text) }
}

/// The title of a page of HTML, or its text.
fn page(html: &str) -> String {
    let lower = html.to_ascii_lowercase();
    let title = lower.find("<title>").map(|at| at + "<title>".len());
    if let Some(title) = title.and_then(|at| Some(&html[at..at + lower[at..].find('<')?]))
        && !title.trim().is_empty()
    {
        return format!("a page with the title '{}'", title.trim());
    }
    let mut text = String::new();
    for piece in html.split('<').map(|piece| piece.split_once('>').map_or("", |(_, text)| text)) {
        text.push_str(piece);
        text.push(' ');
    }
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_error_keeps_its_words_and_is_tried_again_by_its_kind() {
        for (event, said, again) in [
            (
                json!({ "object": "error", "message": "too long", "type": "BadRequestError", "code": 400 }),
                "too long (400)",
                false,
            ),
            (json!({ "error": { "message": "slow down", "code": 429 } }), "slow down (429)", true),
            (
                json!({ "error": { "message": "none left", "code": 429, "type": "insufficient_quota" } }),
                "none left (429)",
                false,
            ),
            (json!({ "error": { "message": "busy", "code": "503" } }), "busy (503)", true),
            (json!({ "error": "model not loaded" }), "model not loaded", true),
            (
                json!({ "type": "error", "error": { "type": "overloaded_error", "message": "Overloaded" } }),
                "Overloaded (overloaded_error)",
                true,
            ),
            (
                json!({ "type": "error", "error": { "type": "invalid_request_error", "message": "prompt is too long" } }),
                "prompt is too long (invalid_request_error)",
                false,
            ),
            (json!({ "error": { "code": 400, "message": "no", "status": "INVALID_ARGUMENT" } }), "no (400)", false),
            (json!([{ "error": { "message": "quota", "code": 429 } }]), "quota (429)", true),
            (
                json!({ "choices": [{ "error": { "code": 502, "message": "lost" }, "finish_reason": "error" }] }),
                "lost (502)",
                true,
            ),
            (
                json!({ "choices": [{ "delta": { "content": "" }, "error": { "code": 403, "message": "flagged" } }] }),
                "flagged (403)",
                false,
            ),
            (json!({ "status": 503, "message": "warming up" }), "warming up (503)", true),
            (json!({ "status": 422, "message": "too long" }), "too long (422)", false),
            (json!({ "detail": "no worker is free" }), "no worker is free", true),
            (
                json!({ "detail": [{ "msg": "bad" }], "status": 400 }),
                "{\"detail\":[{\"msg\":\"bad\"}],\"status\":400}",
                false,
            ),
            (json!({ "errors": [{ "code": 3040, "message": "no capacity" }] }), "no capacity (3040)", true),
            (json!({ "errors": ["lost"] }), "lost", true),
            (json!({ "code": "Throttling.RateQuota", "message": "slow" }), "slow (Throttling.RateQuota)", true),
            (json!({ "code": "InvalidParameter", "message": "no" }), "no (InvalidParameter)", false),
            (json!({ "__type": "ThrottlingException", "message": "slow" }), "slow (ThrottlingException)", true),
            (json!({ "__type": "ValidationException", "message": "no" }), "no (ValidationException)", false),
            (json!({ "error": { "metadata": 1 } }), "{\"metadata\":1}", true),
            (json!({ "error": { "message": { "detail": "extra" } } }), "extra", true),
        ] {
            let setback = reported(error_in(&event).unwrap());
            assert_eq!(setback.detail, format!("it reported an error instead of an answer: {said}"));
            assert_eq!(setback.again, if again { Again::Later(None) } else { Again::Never }, "{event}");
        }
        for event in [
            json!({ "choices": [], "error": null }),
            json!({ "type": "ping" }),
            json!({ "error": false }),
            json!({ "choices": [{ "delta": { "content": "a" }, "error": null }], "detail": "x" }),
            json!({ "message": { "content": "a" }, "status": 200 }),
            json!({ "usage": { "prompt_tokens": 1 }, "errors": [] }),
            json!({ "message": "hello" }),
            json!([]),
        ] {
            assert_eq!(error_in(&event), None, "{event}");
        }
    }

    #[test]
    fn a_body_is_quoted_by_its_words() {
        for (body, words) in [
            ("<html><head><title>Sign in</title></head>", "a page with the title 'Sign in'"),
            (" <html><h1>502 Bad Gateway</h1><hr>nginx", "502 Bad Gateway nginx"),
            ("{\"detail\":\"no such model\"}", "no such model"),
            ("[{\"error\":{\"message\":\"quota\"}}]", "quota"),
            ("upstream connect error", "upstream connect error"),
            ("", ""),
        ] {
            assert_eq!(said(body.as_bytes()), words, "{body}");
        }
    }
}
