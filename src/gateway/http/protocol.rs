//! Heads that hyper parses and that can't be answered: rules of HTTP for servers beyond parsing.

use axum::extract::Request;
use axum::http::header::{AUTHORIZATION, CONTENT_ENCODING, CONTENT_TYPE, HOST, HeaderName, TRANSFER_ENCODING};
use axum::http::uri::Authority;
use axum::http::{HeaderMap, StatusCode, Version};

use crate::gateway::problem::Problem;

/// Most bytes of a path and its query.
const URI: usize = 8 << 10;

/// Fields whose value decides what a request does: a second one would be ignored.
const SINGLE: [HeaderName; 4] =
    [AUTHORIZATION, CONTENT_TYPE, HeaderName::from_static("idempotency-key"), HeaderName::from_static("last-event-id")];

/// Checks whether a request can be answered, by its head.
pub(super) fn judge(request: &Request) -> Result<(), Problem> {
    let headers = request.headers();
    host(headers, request.version())?;
    if let Some(name) = SINGLE.iter().find(|name| count(headers, name) > 1) {
        return Err(Problem::bad_request(format!("there are several fields '{name}': send one")));
    }
    let length = request.uri().path_and_query().map_or(0, |target| target.as_str().len());
    if length > URI {
        let detail = format!("the path and its query have {length} bytes, and may have {URI}: send less");
        return Err(Problem::new(StatusCode::URI_TOO_LONG, "uri_too_long", "The path is too long", detail));
    }
    let other = |name: &HeaderName, plain: &str| {
        let mut all = headers.get_all(name).iter().map(|value| value.to_str().unwrap_or("?").trim());
        all.find(|value| !value.eq_ignore_ascii_case(plain)).map(str::to_owned)
    };
    if let Some(coding) = other(&CONTENT_ENCODING, "identity") {
        return Err(Problem::encoded(format!("the body is encoded with '{coding}': send it as it is")));
    }
    if let Some(coding) = other(&TRANSFER_ENCODING, "chunked") {
        let detail = format!("the transfer coding '{coding}' is not supported: send 'chunked', or a Content-Length");
        return Err(Problem::new(StatusCode::NOT_IMPLEMENTED, "transfer_coding", "Not that way", detail));
    }
    Ok(())
}

/// Checks that there is one `Host` (RFC 9112, section 3.2); HTTP/1.0 needs none.
fn host(headers: &HeaderMap, version: Version) -> Result<(), Problem> {
    match count(headers, &HOST) {
        0 if version == Version::HTTP_10 => Ok(()),
        0 => Err(Problem::bad_request("the Host field is missing: send 'Host: NAME' or 'Host: NAME:PORT'")),
        1 => {
            let host = headers.get(HOST).map(|host| host.as_bytes()).unwrap_or_default();
            match host.is_empty() || Authority::try_from(host).is_ok_and(|host| !host.as_str().contains('@')) {
                true => Ok(()),
                false => {
                    Err(Problem::bad_request("the Host field can't be read: send 'Host: NAME' or 'Host: NAME:PORT'"))
                }
            }
        }
        _ => Err(Problem::bad_request("there are two Host fields: send one")),
    }
}

fn count(headers: &HeaderMap, name: &HeaderName) -> usize {
    headers.get_all(name).iter().count()
}
