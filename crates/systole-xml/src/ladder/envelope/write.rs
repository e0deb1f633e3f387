//! The writer of envelopes.

use std::borrow::Cow;

use bytes::Bytes;

use super::Meta;
use crate::ladder::Canonical;
use crate::ladder::chars::is_xml_char;
use crate::ladder::scan::{ScanToken, Scanner};
use crate::ladder::strict::{Surroundings, canonicalize_in, push_text};
use crate::vocab::{Name, XmlLimits, ns};

/// Writes the canonical bytes of the envelope that carries `payload`, with the envelope namespace as
/// default namespace.
///
/// [`Envelope::open`](super::Envelope::open) returns the same payload, byte for byte. Characters in
/// `meta` that XML can't hold become U+FFFD.
pub fn write_envelope(meta: &Meta, payload: &Canonical) -> Bytes {
    let mut out = String::with_capacity(payload.bytes().len() + 512);
    push(&mut out, &["<message xmlns=\"", ns::ENVELOPE, "\"><meta>"]);
    push_element(&mut out, "from", meta.from.as_str());
    if let Some(to) = &meta.to {
        push_element(&mut out, "to", to.as_str());
    }
    push_element(&mut out, "thread", &meta.thread.to_string());
    push_own(&mut out, "id", &meta.id.to_string());
    if let Some(in_reply_to) = &meta.in_reply_to {
        push_own(&mut out, "in-reply-to", in_reply_to);
    }
    if let Some(deadline) = &meta.deadline {
        push_own(&mut out, "deadline", &deadline.to_string());
    }
    if let Some(traceparent) = &meta.traceparent {
        push_own(&mut out, "traceparent", traceparent);
    }
    push(&mut out, &["</meta>"]);
    push_payload(&mut out, payload);
    push(&mut out, &["</message>"]);
    out.into()
}

/// Adds an element of Systole's metadata to the end of `<meta>` of an envelope that [`write_envelope`] wrote; other bytes stay as
/// they are. Characters in `text` that XML can't hold become U+FFFD.
pub fn with_metadata(envelope: &Bytes, name: &str, text: &str) -> Bytes {
    // No element of that metadata has another one in it, so the first end tag is that of the envelope's own.
    let Some(end) = memchr::memmem::find(envelope, b"</meta>") else { return envelope.clone() };
    let mut element = String::new();
    push_own(&mut element, name, text);
    [&envelope[..end], element.as_bytes(), &envelope[end..]].concat().into()
}

/// Writes the smallest envelope that carries `payload` and keeps the schema: an example for senders.
pub fn write_example(from: &Name, payload: &Canonical) -> String {
    let mut out = String::with_capacity(payload.bytes().len() + 256);
    push(&mut out, &["<message xmlns=\"", ns::ENVELOPE, "\"><meta>"]);
    push_element(&mut out, "from", from.as_str());
    push(&mut out, &["</meta>"]);
    push_payload(&mut out, payload);
    push(&mut out, &["</message>"]);
    out
}

/// Writes the payload in its canonical form inside of an element that has rendered the envelope
/// namespace as default: at most the declaration of its own default namespace differs.
fn push_payload(out: &mut String, payload: &Canonical) {
    let text = payload.as_str();
    let Some(ScanToken::Start(root)) = Scanner::new(text).next() else { return };
    let (start, rest) = text.split_at(1 + root.name().len());
    if !root.prefix().is_empty() {
        if payload.read(|cursor| cursor.all_prefixed(0)) {
            push(out, &[text]);
        } else {
            out.push_str(in_envelope(payload).as_str());
        }
    } else if let Some(value) = rest.strip_prefix(" xmlns=\"") {
        let rest = value.strip_prefix(ns::ENVELOPE).and_then(|rest| rest.strip_prefix('"')).unwrap_or(rest);
        push(out, &[start, rest]);
    } else {
        push(out, &[start, " xmlns=\"\"", rest]);
    }
}

/// The payload by the canonicalizer: for a root with a prefix that has descendants without one.
fn in_envelope(payload: &Canonical) -> Canonical {
    let surroundings = Surroundings { declared: &[], rendered: &[("", ns::ENVELOPE)] };
    canonicalize_in(payload.text(), surroundings, payload.origin_of(0), &XmlLimits::UNLIMITED)
        .expect("canonical bytes are well-formed")
}

/// Writes an element of the envelope namespace.
fn push_element(out: &mut String, name: &str, text: &str) {
    push(out, &["<", name, ">"]);
    push_text(out, &carried(text));
    push(out, &["</", name, ">"]);
}

/// Writes an element of Systole's metadata.
fn push_own(out: &mut String, name: &str, text: &str) {
    push(out, &["<", name, " xmlns=\"", ns::SYSTOLE_META, "\">"]);
    push_text(out, &carried(text));
    push(out, &["</", name, ">"]);
}

fn carried(text: &str) -> Cow<'_, str> {
    if text.chars().all(is_xml_char) {
        return Cow::Borrowed(text);
    }
    text.chars().map(|c| if is_xml_char(c) { c } else { char::REPLACEMENT_CHARACTER }).collect()
}

fn push(out: &mut String, parts: &[&str]) {
    for part in parts {
        out.push_str(part);
    }
}
