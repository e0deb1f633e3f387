//! The one form of signatures of envelopes: how it is written, and how it is read. Keys and curves are the caller's.
//!
//! A `ds:Signature` (XML-Signature Syntax and Processing 1.1) is the last child of `<meta>`. It is enveloped, so it covers
//! the whole document but itself, in Exclusive XML Canonicalization 1.0 without comments, by SHA-256; it is made by ECDSA over
//! P-256 with SHA-256 (RFC 6931, section 2.3.6), and names its key and shows it.
//!
//! Always true of what [`Signed::open`] returns: the bytes that were signed are the bytes that the pump reads, all of them and
//! nothing else. A message that was repaired, that has comments, or whose canonical form drops something that a reader may use
//! is refused. Nothing is looked up by an id, and no other algorithm, reference or transform is known.

use std::borrow::Cow;

use base64::prelude::{BASE64_STANDARD, Engine};
use bytes::Bytes;

use super::Raw;
use super::strict::{self, Canonical, CanonicalOptions};
use super::tape::{Cursor, Tag};
use crate::vocab::{XmlLimits, ns};

/// Bytes of a point of P-256, uncompressed: `04`, x, y.
pub const POINT: usize = 65;
/// Bytes of a signature: r, then s.
pub const SIGNATURE: usize = 64;
/// Bytes of a digest.
pub const DIGEST: usize = 32;

const C14N: &str = "http://www.w3.org/2001/10/xml-exc-c14n#";
const ECDSA_SHA256: &str = "http://www.w3.org/2001/04/xmldsig-more#ecdsa-sha256";
const ENVELOPED: &str = "http://www.w3.org/2000/09/xmldsig#enveloped-signature";
const SHA256: &str = "http://www.w3.org/2001/04/xmlenc#sha256";
const P256: &str = "urn:oid:1.2.840.10045.3.1.7";

/// Reason why a message has no signature of the one form.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SignatureError {
    /// The message is no envelope with `<meta>`.
    #[error("only an envelope with <meta> can be signed")]
    NoMeta,
    /// `<meta>` has no signature.
    #[error("<meta> has no ds:Signature: sign the message")]
    Unsigned,
    /// A second signature, or another element of its namespace, in `<meta>`.
    #[error("<meta> has a second element of XML Signature: keep the one signature")]
    Repeated,
    /// The canonical form of the message is not all that it says.
    #[error(
        "the message says more than its canonical form, which is what is signed: send it as it was signed, without repairs, \
         comments, instructions around it, or prefixes that only values use"
    )]
    NotCovered,
    /// The payload is the head of a transcript.
    #[error(
        "a payload of the namespace {} is the head of a transcript: `systole thread transcript --sign` alone signs it",
        ns::TRANSCRIPT
    )]
    Transcript,
    /// The signature has another form.
    #[error("the signature is not of the one form: {expected} is expected")]
    Form {
        /// The element, attribute or text that should stand there.
        expected: &'static str,
    },
    /// A value of the signature is no base64 of the right length.
    #[error("<{element}> of the signature does not hold {bytes} bytes in base64")]
    Value {
        /// The element.
        element: &'static str,
        /// The bytes that it should hold.
        bytes: usize,
    },
}

/// A message with a signature of the one form, which the caller verifies.
#[derive(Debug)]
#[non_exhaustive]
pub struct Signed {
    /// The name of the key.
    pub key: String,
    /// The public key that the signature shows. It proves nothing by itself.
    pub point: [u8; POINT],
    /// The signature over `info`.
    pub value: [u8; SIGNATURE],
    /// The digest that the message must have.
    pub digest: [u8; DIGEST],
    /// The canonical form of `<ds:SignedInfo>`.
    pub info: Vec<u8>,
    /// The canonical form of the message without its signature, which has the digest.
    pub content: Vec<u8>,
}

/// Signs the envelope of a message, which is well-formed: `digest` is SHA-256, `sign` makes an ECDSA signature over its
/// argument. Returns its canonical form with the signature.
///
/// # Errors
/// [`SignatureError::NoMeta`] for bytes that are no envelope with `<meta>`, [`SignatureError::Repeated`] for one that has a
/// signature, [`SignatureError::NotCovered`] for one with a prefix that only values use, [`SignatureError::Transcript`] for the
/// head of a transcript: it would prove that the signer made the transcript, and any message can have such a payload.
pub fn sign(
    envelope: &Bytes,
    key: (&str, &[u8; POINT]),
    digest: impl FnOnce(&[u8]) -> [u8; DIGEST],
    sign: impl FnOnce(&[u8]) -> [u8; SIGNATURE],
) -> Result<Bytes, SignatureError> {
    attach(envelope, false, key, digest, sign)
}

/// Signs the head of a transcript, which [`sign`] refuses. The caller has made the transcript itself.
///
/// # Errors
/// As [`sign`].
pub fn sign_head(
    envelope: &Bytes,
    key: (&str, &[u8; POINT]),
    digest: impl FnOnce(&[u8]) -> [u8; DIGEST],
    sign: impl FnOnce(&[u8]) -> [u8; SIGNATURE],
) -> Result<Bytes, SignatureError> {
    attach(envelope, true, key, digest, sign)
}

fn attach(
    envelope: &Bytes,
    is_head: bool,
    key: (&str, &[u8; POINT]),
    digest: impl FnOnce(&[u8]) -> [u8; DIGEST],
    sign: impl FnOnce(&[u8]) -> [u8; SIGNATURE],
) -> Result<Bytes, SignatureError> {
    let message = strict::canonicalize(envelope, &XmlLimits::UNLIMITED).map_err(|_| SignatureError::NoMeta)?;
    let (end, of_transcript) = message.read(|cursor| Reader { cursor }.free_place())?;
    if of_transcript && !is_head {
        return Err(SignatureError::Transcript);
    }
    // A declaration that only values use is no part of the form that is signed, so anybody could change it.
    if message.keeps_prefixes() {
        return Err(SignatureError::NotCovered);
    }
    let info = signed_info(&digest(message.bytes()));
    let value = sign(format!("<ds:SignedInfo xmlns:ds=\"{}\">{info}", ns::DSIG).as_bytes());
    let signature = element(key, &info, &value);
    let (before, behind) = message.as_str().split_at(end);
    let signed = [before, &signature, behind].concat().into();
    // Where a tag around it declares the same prefix, the canonical form declares it once.
    if [ns::DSIG, ns::DSIG11].iter().any(|uri| before.contains(uri)) {
        let signed = strict::canonicalize(&signed, &XmlLimits::UNLIMITED).map_err(|_| SignatureError::NotCovered)?;
        return Ok(signed.bytes().clone());
    }
    Ok(signed)
}

/// `<ds:Signature>` in the spelling of [`sign`]; `info` is the rest of `<ds:SignedInfo>` behind its start tag.
fn element((key, point): (&str, &[u8; POINT]), info: &str, value: &[u8; SIGNATURE]) -> String {
    let mut name = String::new();
    strict::push_text(&mut name, key);
    format!(
        "<ds:Signature xmlns:ds=\"{}\"><ds:SignedInfo>{info}<ds:SignatureValue>{}</ds:SignatureValue><ds:KeyInfo>\
         <ds:KeyName>{name}</ds:KeyName><ds:KeyValue><dsig11:ECKeyValue xmlns:dsig11=\"{}\"><dsig11:NamedCurve \
         URI=\"{P256}\"></dsig11:NamedCurve><dsig11:PublicKey>{}</dsig11:PublicKey></dsig11:ECKeyValue></ds:KeyValue>\
         </ds:KeyInfo></ds:Signature>",
        ns::DSIG,
        BASE64_STANDARD.encode(value),
        ns::DSIG11,
        BASE64_STANDARD.encode(point),
    )
}

/// The rest of `<ds:SignedInfo>` behind its start tag.
fn signed_info(digest: &[u8; DIGEST]) -> String {
    format!(
        "<ds:CanonicalizationMethod Algorithm=\"{C14N}\"></ds:CanonicalizationMethod><ds:SignatureMethod \
         Algorithm=\"{ECDSA_SHA256}\"></ds:SignatureMethod><ds:Reference URI=\"\"><ds:Transforms><ds:Transform \
         Algorithm=\"{ENVELOPED}\"></ds:Transform><ds:Transform Algorithm=\"{C14N}\"></ds:Transform></ds:Transforms>\
         <ds:DigestMethod Algorithm=\"{SHA256}\"></ds:DigestMethod><ds:DigestValue>{}</ds:DigestValue></ds:Reference>\
         </ds:SignedInfo>",
        BASE64_STANDARD.encode(digest)
    )
}

impl Signed {
    /// Reads the signature of a message; `message` is what the pump has read of the bytes `raw`.
    ///
    /// # Errors
    /// [`SignatureError`] has the reason why there is none of the one form, or why it doesn't cover the message.
    pub fn open(raw: &Raw, message: &Canonical) -> Result<Self, SignatureError> {
        let is_changed = || {
            let signed = strict::c14n(raw.bytes(), CanonicalOptions::default(), &XmlLimits::UNLIMITED);
            signed.map_or(true, |signed| signed != *message.bytes())
        };
        if !message.repairs().is_empty() || has_comment(raw.bytes()) || is_changed() {
            return Err(SignatureError::NotCovered);
        }
        message.read(|cursor| Reader { cursor }.signed())
    }

    /// The signature in the spelling of [`sign`]. Other signers write white space between its elements and in its base64.
    pub fn spelling(&self) -> String {
        element((&self.key, &self.point), &signed_info(&self.digest), &self.value)
    }
}

/// Returns whether a well-formed document has a comment.
fn has_comment(document: &[u8]) -> bool {
    let mut rest = document;
    while let Some(at) = memchr::memchr(b'<', rest) {
        rest = &rest[at..];
        let end: &[u8] = match rest {
            rest if rest.starts_with(b"<!--") => return true,
            rest if rest.starts_with(b"<![CDATA[") => b"]]>",
            rest if rest.starts_with(b"<?") => b"?>",
            _ => b"<",
        };
        let Some(end) = memchr::memmem::find(rest, end) else { return false };
        rest = &rest[end + 1..];
    }
    false
}

struct Reader<'a> {
    cursor: Cursor<'a>,
}

impl<'a> Reader<'a> {
    fn signed(mut self) -> Result<Signed, SignatureError> {
        self.enter_meta()?;
        let (index, at) = self.found()?.ok_or(SignatureError::Unsigned)?;
        self.cursor = at;
        self.signature(index)
    }

    /// The end of the content of `<meta>`, which has no signature yet, and whether an element of a transcript stands behind it.
    fn free_place(mut self) -> Result<(usize, bool), SignatureError> {
        let meta = self.enter_meta()?;
        if self.found()?.is_some() {
            return Err(SignatureError::Repeated);
        }
        let end = self.cursor.range(1).end - meta.name().len() - "</>".len();
        self.cursor.leave();
        let mut of_transcript = false;
        while let Some(child) = self.cursor.child() {
            of_transcript |= self.uri(&child) == ns::TRANSCRIPT;
            self.cursor.enter();
            self.cursor.leave();
        }
        Ok((end, of_transcript))
    }

    fn enter_meta(&mut self) -> Result<Tag<'a>, SignatureError> {
        let message = self.cursor.enter().filter(|message| self.is(message, ns::ENVELOPE, "message"));
        message.ok_or(SignatureError::NoMeta)?;
        self.cursor.enter().filter(|meta| self.is(meta, ns::ENVELOPE, "meta")).ok_or(SignatureError::NoMeta)
    }

    /// The one element of XML Signature among the children of `<meta>`, by its number, and the place before it.
    fn found(&mut self) -> Result<Option<(usize, Cursor<'a>)>, SignatureError> {
        let mut found = None;
        while let Some(child) = self.cursor.child() {
            let (index, at) = (self.cursor.elements(), self.cursor);
            self.cursor.enter();
            self.cursor.leave();
            if self.uri(&child) == ns::DSIG && found.replace((index, at)).is_some() {
                return Err(SignatureError::Repeated);
            }
        }
        Ok(found)
    }

    fn signature(mut self, index: usize) -> Result<Signed, SignatureError> {
        let document = self.cursor.document();
        let own = self.cursor.range(index);
        if document[own.clone()].contains("<?") {
            return Err(SignatureError::Form { expected: "a signature without instructions" });
        }
        self.enter(ns::DSIG, "Signature", None)?;
        let info = self.cursor.elements();
        self.enter(ns::DSIG, "SignedInfo", None)?;
        self.algorithm("CanonicalizationMethod", C14N)?;
        self.algorithm("SignatureMethod", ECDSA_SHA256)?;
        self.enter(ns::DSIG, "Reference", Some(("URI", "")))?;
        self.enter(ns::DSIG, "Transforms", None)?;
        self.algorithm("Transform", ENVELOPED)?;
        self.algorithm("Transform", C14N)?;
        self.close("</ds:Transforms>")?;
        self.algorithm("DigestMethod", SHA256)?;
        let digest = self.bytes(ns::DSIG, "DigestValue")?;
        self.close("</ds:Reference>")?;
        self.close("</ds:SignedInfo>")?;
        let value = self.bytes(ns::DSIG, "SignatureValue")?;
        self.enter(ns::DSIG, "KeyInfo", None)?;
        self.enter(ns::DSIG, "KeyName", None)?;
        let key = self.text("KeyName")?.into_owned();
        self.enter(ns::DSIG, "KeyValue", None)?;
        self.enter(ns::DSIG11, "ECKeyValue", None)?;
        self.enter(ns::DSIG11, "NamedCurve", Some(("URI", P256)))?;
        self.close("</dsig11:NamedCurve>")?;
        let point = self.bytes(ns::DSIG11, "PublicKey")?;
        self.close("</dsig11:ECKeyValue>")?;
        self.close("</ds:KeyValue>")?;
        self.close("</ds:KeyInfo>")?;
        self.close("</ds:Signature>")?;
        let info = strict::c14n_subtree(document.as_bytes(), info, CanonicalOptions::default(), &XmlLimits::UNLIMITED);
        let info = info.ok().flatten().ok_or(SignatureError::Form { expected: "<ds:SignedInfo>" })?;
        let content = [&document[..own.start], &document[own.end..]].concat().into_bytes();
        Ok(Signed { key, point, value, digest, info, content })
    }

    /// Enters the next child, which must have this name, and this attribute and no other.
    fn enter(
        &mut self,
        namespace: &str,
        local: &'static str,
        attribute: Option<(&str, &str)>,
    ) -> Result<(), SignatureError> {
        self.blank(local)?;
        let tag = self.cursor.enter().filter(|tag| self.is(tag, namespace, local));
        let tag = tag.ok_or(SignatureError::Form { expected: local })?;
        let found = tag.attributes().filter(|attribute| attribute.uri().is_some());
        if found.map(|attribute| (attribute.name(), attribute.written())).eq(attribute) {
            Ok(())
        } else {
            Err(SignatureError::Form { expected: local })
        }
    }

    /// Reads an empty element that names an algorithm.
    fn algorithm(&mut self, local: &'static str, uri: &'static str) -> Result<(), SignatureError> {
        self.enter(ns::DSIG, local, Some(("Algorithm", uri)))?;
        self.close(uri)
    }

    /// Moves behind the end of the innermost element, which must hold nothing more.
    fn close(&mut self, expected: &'static str) -> Result<(), SignatureError> {
        self.blank(expected)?;
        if self.cursor.child().is_some() {
            return Err(SignatureError::Form { expected });
        }
        self.cursor.leave();
        Ok(())
    }

    fn blank(&mut self, expected: &'static str) -> Result<(), SignatureError> {
        while let Some(text) = self.cursor.text() {
            if !text.written.bytes().all(|byte| byte.is_ascii_whitespace()) {
                return Err(SignatureError::Form { expected });
            }
        }
        Ok(())
    }

    fn bytes<const N: usize>(&mut self, namespace: &str, element: &'static str) -> Result<[u8; N], SignatureError> {
        self.enter(namespace, element, None)?;
        let mut text = self.text(element)?.into_owned();
        // Signers break the lines of base64.
        text.retain(|c| !matches!(c, ' ' | '\t' | '\n'));
        let bytes = BASE64_STANDARD.decode(text).ok().and_then(|bytes| bytes.try_into().ok());
        bytes.ok_or(SignatureError::Value { element, bytes: N })
    }

    fn text(&mut self, element: &'static str) -> Result<Cow<'a, str>, SignatureError> {
        self.cursor.content().ok_or(SignatureError::Form { expected: element })
    }

    fn is(&self, tag: &Tag, namespace: &str, local: &str) -> bool {
        self.uri(tag) == namespace && tag.local() == local
    }

    fn uri(&self, tag: &Tag) -> &'a str {
        self.cursor.uri_name(tag.uri())
    }
}

#[cfg(test)]
mod tests {
    use base64::prelude::BASE64_URL_SAFE_NO_PAD;

    use super::*;

    #[test]
    fn bytes_have_one_spelling_in_base64() {
        for bad in ["Zg", "Zg=", "Zg===", "Zh==", "Z", "=", "Zm9v=", "Zm 9v", "Zm9-", "Zm9vé", "Zg==Zg=="] {
            assert!(BASE64_STANDARD.decode(bad).is_err(), "{bad}");
        }
        for bad in ["Zg==", "Zh", "Z", "Zm+v"] {
            assert!(BASE64_URL_SAFE_NO_PAD.decode(bad).is_err(), "{bad}");
        }
        assert_eq!(BASE64_STANDARD.decode("Zg=="), Ok(b"f".to_vec()));
    }
}
