//! Refusals that no router makes: of hyper, of the accept loop, of the port itself. They have the shape of all
//! problems.

use axum::http::StatusCode;

/// Most bytes of the head of a request: its line and its fields.
pub(super) const HEAD: usize = 64 << 10;

/// A problem document (RFC 9457) without further members.
fn document(status: StatusCode, code: &str, detail: &str) -> String {
    let title = status.canonical_reason().unwrap_or("The request can't be served");
    let kind = format!("urn:systole:problem:{code}");
    serde_json::json!({ "type": kind, "title": title, "status": status.as_u16(), "detail": detail, "code": code })
        .to_string()
}

/// A whole response with such a document, after which the connection is closed.
pub(super) fn response(status: StatusCode, code: &str, detail: &str) -> Vec<u8> {
    let (reason, body) = (status.canonical_reason().unwrap_or("Refused"), document(status, code, detail));
    let (status, length) = (status.as_u16(), body.len());
    let retry = if matches!(status, 429 | 503) { "retry-after: 1\r\n" } else { "" };
    let head =
        format!("HTTP/1.1 {status} {reason}\r\ncontent-type: application/problem+json\r\ncontent-length: {length}");
    format!("{head}\r\n{retry}connection: close\r\n\r\n{body}").into_bytes()
}

/// The response that replaces a bare one of hyper; `None` if those bytes are no response.
pub(super) fn instead_of(bare: &[u8]) -> Option<Vec<u8>> {
    let status = bare.strip_prefix(b"HTTP/1.1 ").or_else(|| bare.strip_prefix(b"HTTP/1.0 "))?.get(..3)?;
    let status = StatusCode::from_bytes(status).ok()?;
    let (code, detail) = match status {
        StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE => {
            ("head_too_large", format!("the head of a request may have {HEAD} bytes and 100 fields: send less"))
        }
        StatusCode::URI_TOO_LONG => ("uri_too_long", "the path and its query are too long: send less".to_owned()),
        _ => (
            "malformed_head",
            "the request is not well-formed HTTP/1.1 (RFC 9112): its line, a field or the length \
              of its body can't be read"
                .to_owned(),
        ),
    };
    Some(response(status, code, &detail))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_bare_refusal_becomes_a_problem() {
        for (status, code) in [(400, "malformed_head"), (414, "uri_too_long"), (431, "head_too_large")] {
            let bare = format!("HTTP/1.1 {status} Some Reason\r\nconnection: close\r\ncontent-length: 0\r\n\r\n");
            let text = String::from_utf8(instead_of(bare.as_bytes()).unwrap()).unwrap();
            let (head, body) = text.split_once("\r\n\r\n").unwrap();
            assert!(head.starts_with(&format!("HTTP/1.1 {status} ")), "{head}");
            assert!(head.contains(&format!("content-length: {}", body.len())), "{head}");
            let body: serde_json::Value = serde_json::from_str(body).unwrap();
            assert_eq!((&body["status"], &body["code"]), (&status.into(), &code.into()));
        }
        assert_eq!(instead_of(b"\x16\x03\x01"), None);
    }
}
