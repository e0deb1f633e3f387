//! Deliveries to other machines, with the checks before they are sent.

use bytes::Bytes;
use hyper::header::{HeaderMap, HeaderName, HeaderValue};
use systole_core::vocab::{MessageId, Name};
use url::Url;

use super::address::{AddressRefused, Guard};
use super::{signature, signing};

/// A message to send: the body of a `POST`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct OutboundDelivery {
    /// The id of the message, which is also the idempotency key of all attempts.
    pub(crate) id: MessageId,
    /// The target: deliveries to one target are sent one after the other, in the order in which they came.
    pub(crate) target: Name,
    /// The URL: `http` or `https`, without a user or a password.
    pub(crate) url: String,
    /// Headers of the request. Without a `Content-Type` among them it is `application/xml`.
    pub(crate) headers: Vec<(String, String)>,
    /// The body: the envelope, unless another format is agreed.
    pub(crate) body: Bytes,
    /// True to sign the delivery with the secret of its target.
    pub(crate) signed: bool,
}

impl OutboundDelivery {
    /// Makes a delivery without further headers, not signed.
    pub(crate) fn new(id: MessageId, target: Name, url: impl Into<String>, body: impl Into<Bytes>) -> Self {
        Self { id, target, url: url.into(), headers: Vec::new(), body: body.into(), signed: false }
    }
}

/// Most bytes of a URL.
const URL: usize = 8 << 10;

/// Headers that the sender sets itself, or that belong to the connection.
const RESERVED: [&str; 14] = [
    "connection",
    "content-encoding",
    "content-length",
    "expect",
    "host",
    "idempotency-key",
    "keep-alive",
    "proxy-authorization",
    "proxy-connection",
    signature::HEADER,
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// Checks whether a URL may be sent to, as far as possible before its name is looked up. The error ends a sentence that
/// begins with the URL.
pub(crate) fn check_url(text: &str, guard: &Guard) -> Result<(), String> {
    if text.len() > URL {
        return Err(format!("has {} bytes, at most {URL} are sent", text.len()));
    }
    let url = parse_url(text)?;
    check_literal(&url, guard).map_err(|refused| format!("is refused: {refused}"))
}

/// Checks whether a URL is below another one: the same scheme, host and port, and a path that continues behind whole
/// segments. A path that servers may read in more than one way is below nothing: one with an escape of anything but a
/// character beyond ASCII, an empty segment, or a segment that begins with two dots.
pub(crate) fn is_below(text: &str, above: &str) -> bool {
    let (Ok(url), Ok(above)) = (parse_url(text), parse_url(above)) else { return false };
    let Some(rest) = url.path().strip_prefix(above.path().trim_end_matches('/')) else { return false };
    let is_plain = |segment: &str| !segment.starts_with("..") && has_plain_escapes(segment);
    url.origin() == above.origin()
        && (rest.is_empty() || rest.starts_with('/'))
        && !rest.contains("//")
        && url.path().split('/').all(is_plain)
}

/// Checks that a path escapes nothing but characters beyond ASCII, in the one form that UTF-8 has for each.
fn has_plain_escapes(segment: &str) -> bool {
    let bytes: Vec<u8> = percent_encoding::percent_decode_str(segment).collect();
    let escaped = segment.matches('%').count();
    let beyond = bytes.iter().filter(|byte| !byte.is_ascii()).count();
    escaped == beyond && std::str::from_utf8(&bytes).is_ok()
}

/// Parses a URL that may be sent to, with any host.
pub(super) fn parse_url(text: &str) -> Result<Url, String> {
    let url = Url::parse(text).map_err(|error| format!("is malformed: {error}"))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(format!("has the scheme '{}': use http or https", url.scheme().escape_debug()));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err("has a user or a password: send a header instead".to_owned());
    }
    Ok(url)
}

/// Checks the host of a URL if it is an address: no name is looked up.
pub(super) fn check_literal(url: &Url, guard: &Guard) -> Result<(), AddressRefused> {
    let host = url.host_str().unwrap_or_default();
    match host.trim_start_matches('[').trim_end_matches(']').parse() {
        Ok(address) => guard.check(address),
        Err(_) => Ok(()),
    }
}

/// The URL for texts, without its query, which may hold secrets.
pub(super) fn shown(url: &str) -> String {
    let Ok(mut url) = Url::parse(url) else { return "?".to_owned() };
    url.set_query(None);
    url.set_fragment(None);
    url.into()
}

/// Makes the headers of a request; an error has the name of one that can't be sent, and the reason.
pub(super) fn header_map(headers: &[(String, String)]) -> Result<HeaderMap, (String, &'static str)> {
    let mut map = HeaderMap::new();
    for (name, value) in headers {
        let refused = |problem| (name.clone(), problem);
        let key: HeaderName = name.parse().map_err(|_| refused("has a name that HTTP doesn't know"))?;
        if RESERVED.contains(&key.as_str()) || signing::HEADERS.contains(&key.as_str()) {
            return Err(refused("is set by the sender"));
        }
        let value = HeaderValue::from_str(value).map_err(|_| refused("has a value that HTTP can't carry"))?;
        map.append(key, value);
    }
    Ok(map)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(url: &str) -> String {
        check_url(url, &Guard::new()).map_or_else(|problem| problem, |()| String::new())
    }

    #[test]
    fn a_public_http_url_is_taken() {
        for url in ["http://example.org", "https://example.org:8443/a?b=c", "http://1.1.1.1/", "http://[2606:4700::1]/"]
        {
            assert_eq!(refusal(url), "");
        }
    }

    #[test]
    fn other_urls_are_not() {
        for (url, part) in [
            ("", "is malformed"),
            ("/relative", "is malformed"),
            ("ftp://example.org", "'ftp'"),
            ("file:///etc/passwd", "'file'"),
            ("http://", "is malformed"),
            ("http://user@example.org", "a user or a password"),
            ("http://:secret@example.org", "a user or a password"),
            ("http://127.0.0.1/", "loopback"),
            ("http://127.1/", "loopback"),
            ("http://2130706433/", "loopback"),
            ("http://0x7f.0.0.1/", "loopback"),
            ("http://0177.0.0.1/", "loopback"),
            ("http://127.0.0.1./", "loopback"),
            ("http://１２７.0.0.1/", "loopback"),
            ("http://[::1]/", "loopback"),
            ("http://[::ffff:127.0.0.1]/", "IPv4-mapped"),
            ("http://169.254.169.254/latest/meta-data", "link-local"),
            ("https://0/", "unspecified"),
        ] {
            let refusal = refusal(url);
            assert!(refusal.contains(part), "{url}: {refusal}");
        }
        assert!(refusal(&format!("http://a/{}", "x".repeat(URL))).contains("at most 8192"));
    }

    #[test]
    fn headers_can_not_change_what_is_sent() {
        let with = |name: &str, value: &str| {
            header_map(&[(name.to_owned(), value.to_owned())]).map_or_else(|(_, problem)| problem, |_| "")
        };
        assert_eq!(with("X-Trace", "1"), "");
        assert!(with("Host", "internal").contains("set by the sender"));
        assert!(with("Idempotency-Key", "1").contains("set by the sender"));
        for signature in ["Systole-Signature", "Webhook-Signature", "Signature-Input", "Content-Digest"] {
            assert!(with(signature, "t=1").contains("set by the sender"));
        }
        assert_eq!(with("Content-Type", "application/json"), "");
        assert!(with("Transfer-Encoding", "chunked").contains("set by the sender"));
        assert!(with("X-A", "1\r\nHost: internal").contains("can't carry"));
        assert!(with("X-A\r\nHost", "1").contains("doesn't know"));
        assert!(with("", "1").contains("doesn't know"));
    }

    #[test]
    fn a_url_is_below_another_by_whole_segments() {
        let above = "https://agents.example/a2a/";
        for below in [
            "https://agents.example/a2a",
            "https://AGENTS.example:443/a2a/inbound?x=1",
            "https://agents.example/a2a/",
            "https://agents.example/a2a/größe",
        ] {
            assert!(is_below(below, above), "{below}");
        }
        for other in [
            "http://agents.example/a2a/inbound",
            "https://agents.example:444/a2a/inbound",
            "https://agents.example.evil.example/a2a/inbound",
            "https://agents.example@evil.example/a2a/inbound",
            "https://evil.example/a2a/inbound",
            "https://agents.example/a2ab",
            "https://agents.example/a2a/../admin",
            "https://agents.example/a2a/%2e%2e/admin",
            "https://agents.example/a2a/..%2fadmin",
            "https://agents.example/a2a/..%5Cadmin",
            "https://agents.example/a2a\\..\\admin",
            "https://agents.example/a2a/%252e%252e/admin",
            "https://agents.example/a2a/..;/admin",
            "https://agents.example/a2a/.%00./admin",
            "https://agents.example/a2a/%c0%ae%c0%ae/admin",
            "https://agents.example/a2a//admin",
            "remote://no-inbound",
            "",
        ] {
            assert!(!is_below(other, above), "{other}");
        }
        assert!(is_below("http://10.0.0.7:8080/in", "http://10.0.0.7:8080"));
        assert!(
            is_below("http://0x0a000007:8080/in", "http://10.0.0.7:8080"),
            "a host is compared as it is understood"
        );
    }

    #[test]
    fn a_query_is_not_shown() {
        assert_eq!(shown("https://a.b/c?token=1#d"), "https://a.b/c");
    }
}
