//! Questions about the bytes of tags, and about those between tags.

use std::sync::LazyLock;

use memchr::memmem::Finder;

use super::scanner;
use crate::vocab::ns;

/// The name in a start or end tag.
pub(super) fn name_of(tag: &[u8]) -> &[u8] {
    let name = tag.strip_prefix(b"</").unwrap_or(&tag[1..]);
    let end = name.iter().position(|byte| byte.is_ascii_whitespace() || matches!(byte, b'/' | b'>'));
    &name[..end.unwrap_or(name.len())]
}

/// The FNV-1a hash of a name. A sender that makes two names collide spoils only its own message.
pub(super) fn hash(name: &[u8]) -> u64 {
    name.iter().fold(0xCBF2_9CE4_8422_2325, |hash, &byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01B3))
}

/// Returns whether a start tag binds its own prefix to the envelope namespace; quotes may be missing.
pub(super) fn declares_envelope(tag: &[u8], name: &[u8]) -> bool {
    // Built once: building it takes longer than the search in one tag.
    static NAMESPACE: LazyLock<Finder> = LazyLock::new(|| Finder::new(ns::ENVELOPE));
    let (attribute, prefix): (&[u8], _) = match name.strip_suffix(b":message") {
        Some(prefix) => (b"xmlns:", prefix),
        None => (b"xmlns", &b""[..]),
    };
    NAMESPACE.find_iter(tag).any(|at| {
        let before = without_quote(&tag[..at]).trim_ascii_end();
        let Some(before) = before.strip_suffix(b"=") else { return false };
        let Some(before) = before.trim_ascii_end().strip_suffix(prefix) else { return false };
        let Some(before) = before.strip_suffix(attribute) else { return false };
        let behind = tag.get(at + ns::ENVELOPE.len());
        before.last().is_some_and(u8::is_ascii_whitespace)
            && behind.is_some_and(|byte| byte.is_ascii_whitespace() || b"\"'/>".contains(byte))
    })
}

/// Returns whether a start or end tag begins somewhere in the bytes, outside of comments and the like.
pub(super) fn has_tag(bytes: &[u8]) -> bool {
    let mut rest = bytes;
    while let Some(at) = memchr::memchr(b'<', rest) {
        rest = &rest[at..];
        let starts = rest.get(1).is_some_and(|&byte| byte == b'/' || scanner::starts_name(byte));
        let next = memchr::memchr2(b'<', b'>', &rest[1..]).map(|ahead| rest[1 + ahead]);
        if starts && next == Some(b'>') {
            return true;
        }
        rest = &rest[hidden_len(rest).unwrap_or(1)..];
    }
    false
}

/// The length of the comment, section or instruction at the start of the bytes.
fn hidden_len(bytes: &[u8]) -> Option<usize> {
    let terminators: [(&[u8], &[u8]); 3] = [(b"<!--", b"-->"), (b"<![CDATA[", b"]]>"), (b"<?", b"?>")];
    let (opener, terminator) = terminators.into_iter().find(|(opener, _)| bytes.starts_with(opener))?;
    let length = memchr::memmem::find(&bytes[opener.len()..], terminator)?;
    Some(opener.len() + length + terminator.len())
}

/// Returns whether the bytes can be dropped without loss.
pub(super) fn is_noise(bytes: &[u8]) -> bool {
    let mut rest = bytes.trim_ascii_start();
    while let Some(&first) = rest.first() {
        let fence = rest.iter().take_while(|&&byte| byte == first).count();
        let is_fence = matches!(first, b'`' | b'~') && fence >= 3;
        let is_section = rest.starts_with(b"<![");
        let hidden = if is_fence { Some(fence) } else { hidden_len(rest).filter(|_| !is_section) };
        let Some(length) = hidden else { return false };
        rest = rest[length..].trim_ascii_start();
    }
    true
}

/// The bytes without the quote at their end.
fn without_quote(bytes: &[u8]) -> &[u8] {
    match bytes {
        [rest @ .., b'"' | b'\''] => rest,
        all => all,
    }
}
