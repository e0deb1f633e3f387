//! Refusals that no router makes: of the accept loop, of the port itself. They have the shape of all problems.

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
