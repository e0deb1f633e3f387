//! Signatures of requests to peers, in the forms that others verify.
//!
//! - Our own: [`signature`](super::signature), by the secret that both sides share.
//! - Standard Webhooks 1.0 (standardwebhooks.com): `webhook-id`, `webhook-timestamp` and `webhook-signature`, by the same secret.
//! - HTTP Message Signatures (RFC 9421) over the method, the target URI, the type, the key of the message and a digest of the
//!   body (RFC 9530): by the identity of the organism, else by the secret.

use base64::prelude::{BASE64_STANDARD, Engine};
use hyper::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, InvalidHeaderValue};
use systole_core::vocab::Time;
use url::Url;

use super::signature::{self, Secret, seconds};
use crate::identity::{Identity, sha256};

const CONTENT_DIGEST: &str = "content-digest";
const SIGNATURE: &str = "signature";
const SIGNATURE_INPUT: &str = "signature-input";
const WEBHOOK_ID: &str = "webhook-id";
const WEBHOOK_SIGNATURE: &str = "webhook-signature";
const WEBHOOK_TIMESTAMP: &str = "webhook-timestamp";
pub(crate) const IDEMPOTENCY_KEY: &str = "idempotency-key";

/// The headers that are set here, beside that of our own signature.
pub(super) const HEADERS: [&str; 6] =
    [CONTENT_DIGEST, SIGNATURE, SIGNATURE_INPUT, WEBHOOK_ID, WEBHOOK_SIGNATURE, WEBHOOK_TIMESTAMP];

/// The label of the signature (RFC 9421, section 4).
const LABEL: &str = "systole";

/// The parties that sign a request.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Signers<'a> {
    /// The secret that is shared with the peer.
    pub(crate) secret: Option<&'a Secret>,
    /// The identity of the organism.
    pub(crate) identity: Option<&'a Identity>,
    /// The name under which the peer has the secret: that of the listener.
    pub(crate) peer: &'a str,
}

impl Signers<'_> {
    /// Adds the signatures of a `POST` with this URL, body, and id of the message, which the headers have as their idempotency
    /// key.
    pub(crate) fn sign(
        &self,
        headers: &mut HeaderMap,
        url: &Url,
        (id, body): (&str, &[u8]),
        now: Time,
    ) -> Result<(), InvalidHeaderValue> {
        if let Some(secret) = self.secret {
            set(headers, signature::HEADER, secret.sign(now, body))?;
            let signed = [format!("{id}.{}.", seconds(now)).as_bytes(), body].concat();
            set(headers, WEBHOOK_ID, id.to_owned())?;
            set(headers, WEBHOOK_TIMESTAMP, seconds(now).to_string())?;
            set(headers, WEBHOOK_SIGNATURE, format!("v1,{}", BASE64_STANDARD.encode(secret.tag(&signed))))?;
        }
        let (algorithm, key) = match (self.identity, self.secret) {
            (Some(identity), _) => ("ecdsa-p256-sha256", identity.id()),
            (None, Some(_)) => ("hmac-sha256", self.peer),
            (None, None) => return Ok(()),
        };
        set(headers, CONTENT_DIGEST, format!("sha-256=:{}:", BASE64_STANDARD.encode(sha256(body))))?;
        let mut covered = vec![("@method", "POST".to_owned()), ("@target-uri", target(url))];
        for name in [CONTENT_DIGEST, CONTENT_TYPE.as_str(), IDEMPOTENCY_KEY] {
            if let Some(value) = headers.get(name).and_then(|value| value.to_str().ok()) {
                covered.push((name, value.trim().to_owned()));
            }
        }
        let names: Vec<_> = covered.iter().map(|(name, _)| format!("\"{name}\"")).collect();
        let params =
            format!("({});created={};keyid=\"{}\";alg=\"{algorithm}\"", names.join(" "), seconds(now), string(key));
        let mut base: String = covered.iter().map(|(name, value)| format!("\"{name}\": {value}\n")).collect();
        base.push_str(&format!("\"@signature-params\": {params}"));
        let value = match (self.identity, self.secret) {
            (Some(identity), _) => identity.sign_bytes(base.as_bytes()).to_vec(),
            (None, Some(secret)) => secret.tag(base.as_bytes()).to_vec(),
            (None, None) => return Ok(()),
        };
        set(headers, SIGNATURE_INPUT, format!("{LABEL}={params}"))?;
        set(headers, SIGNATURE, format!("{LABEL}=:{}:", BASE64_STANDARD.encode(value)))
    }
}

fn set(headers: &mut HeaderMap, name: &'static str, value: String) -> Result<(), InvalidHeaderValue> {
    headers.insert(HeaderName::from_static(name), HeaderValue::try_from(value)?);
    Ok(())
}

/// The target URI (RFC 9110, section 7.1), which has no fragment.
fn target(url: &Url) -> String {
    let mut url = url.clone();
    url.set_fragment(None);
    url.into()
}

/// The content of a string (RFC 9651, section 3.3.3): characters beyond ASCII, which only the id of a key can have, are
/// percent-encoded.
fn string(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            ' '..='~' => out.push(c),
            _ => out.extend(c.to_string().bytes().map(|byte| format!("%{byte:02X}"))),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Time = Time::from_nanos(1_674_087_231_000_000_000);

    fn signed(signers: Signers<'_>) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/xml"));
        headers.insert(IDEMPOTENCY_KEY, HeaderValue::from_static("msg_1"));
        let url = Url::parse("https://agent.example/in?a=1#part").unwrap();
        signers.sign(&mut headers, &url, ("msg_1", b"<a></a>"), NOW).unwrap();
        headers
    }

    #[test]
    fn the_secret_signs_in_three_forms() {
        let secret = Secret::new(b"hunter2");
        let headers = signed(Signers { secret: Some(&secret), identity: None, peer: "till \"1\" é" });
        let of = |name: &str| headers[name].to_str().unwrap().to_owned();
        // printf 'msg_1.1674087231.<a></a>' | openssl dgst -sha256 -hmac hunter2 -binary | base64
        assert_eq!(of("webhook-signature"), "v1,JiTJOWZxtH8wKMach0cuByMbxnW8xm6TgKoS6hW+kIg=");
        assert_eq!((of("webhook-id"), of("webhook-timestamp")), ("msg_1".to_owned(), "1674087231".to_owned()));
        assert!(of("systole-signature").starts_with("t=1674087231,v1="));
        // printf '<a></a>' | openssl dgst -sha256 -binary | base64
        assert_eq!(of("content-digest"), "sha-256=:qBKmm6aFilTO/bL8OILnzrfWaqHteSViCChy3W7U+SE=:");
        let input = "systole=(\"@method\" \"@target-uri\" \"content-digest\" \"content-type\" \"idempotency-key\");created=1674087231;\
                     keyid=\"till \\\"1\\\" %C3%A9\";alg=\"hmac-sha256\"";
        assert_eq!(of("signature-input"), input);
        assert_eq!(of("signature"), "systole=:QTU1WBwhFEEGGu2XUFj4zS8WuyG2ofSBVQNXurA2ACk=:");
    }

    #[test]
    fn nobody_signs_without_a_key() {
        let headers = signed(Signers { secret: None, identity: None, peer: "till" });
        assert_eq!(headers.len(), 2, "{headers:?}");
    }
}
