//! Properties of each stage that hold for any bytes: the bodies of the fuzz targets.
//!
//! Each function panics if its property is broken. No part of the API.

use bytes::Bytes;
use uuid::Uuid;

use super::repair::{Repaired, Shape, Vocabulary, repair_by as run_repair};
use super::scan::{ScanToken, Scanner};
use super::signature::{DIGEST, POINT, SIGNATURE, Signed, sign};
use super::split::{Piece, Splitter};
use super::strict::{
    CanonicalOptions, StrictErrorKind, c14n as whole, c14n_subtree, canonicalize, canonicalize_fragment,
};
use super::tape::Cursor;
use super::transcript::{Cutter, Entry, FormError, Head, Piece as Cut};
use super::{Canonical, Envelope, Meta, Raw, write_envelope};
use crate::vocab::{MessageId, Position, ThreadId, XmlLimits};

/// The default limits, widened by the declarations that an envelope adds to a payload, or that a payload needs as a
/// document of its own.
const WIDER: XmlLimits = XmlLimits {
    message_bytes: 64 << 20,
    depth: 258,
    attributes: 258,
    namespaces: 1026,
    name_bytes: 1 << 10,
    value_bytes: 1 << 20,
    comment_bytes: 1 << 20,
    instruction_bytes: 1 << 20,
    relative_namespaces: false,
};

/// The strict pass returns an error with a place, or canonical bytes that it takes unchanged.
pub fn strict(data: &[u8]) {
    let input = Bytes::copy_from_slice(data);
    match canonicalize(&input, &XmlLimits::default()) {
        Ok(canonical) => {
            assert_canonical(&canonical, &XmlLimits::default());
            let elements = canonical.as_str().matches("</").count();
            assert!(canonical.position(elements).is_none() || canonical.as_str().contains("<?"));
            assert!(canonical.position(0) >= Some(Position { line: 1, column: 1 }));
        }
        Err(error) => {
            assert!(error.offset() <= data.len(), "{error} at {} of {}", error.offset(), data.len());
            let text = error.to_string();
            assert!(text.starts_with(&format!("{}: ", error.position())) && text.ends_with(']'), "{text}");
        }
    }
}

/// Searches of a class find the first byte that is in it.
pub fn blocks(data: &[u8]) {
    super::blocks::check(data);
}

/// Canonicalizing is idempotent, comments change nothing but themselves, and a subtree
/// is as canonical as the whole.
pub fn c14n(data: &[u8]) {
    let limits = XmlLimits::default();
    let bare = CanonicalOptions::default();
    let with_comments = CanonicalOptions { comments: true, ..bare };
    let Ok(plain) = whole(data, bare, &limits) else { return };
    assert_eq!(whole(&plain, bare, &limits).as_ref(), Ok(&plain));
    if let Ok(commented) = whole(data, with_comments, &limits) {
        assert_eq!(whole(&commented, with_comments, &limits).as_ref(), Ok(&commented));
        assert_eq!(whole(&commented, bare, &limits).as_ref(), Ok(&plain));
    }
    for prefixes in [&["p"][..], &["q", "#default", "p"]] {
        let form = CanonicalOptions { prefixes, ..bare };
        let Ok(listed) = whole(data, form, &limits) else { continue };
        assert_eq!(whole(&listed, form, &WIDER).as_ref(), Ok(&listed));
        assert_eq!(whole(&listed, bare, &WIDER).as_ref(), Ok(&plain));
    }
    let root = c14n_subtree(data, 0, bare, &limits).expect("well-formed").expect("there is a root");
    for (index, form) in [(1, bare), (2, with_comments), (1, CanonicalOptions { prefixes: &["p"], ..bare })] {
        let Ok(Some(subtree)) = c14n_subtree(data, index, form, &limits) else { continue };
        assert_eq!(whole(&subtree, form, &WIDER).as_ref(), Ok(&subtree));
        let again = c14n_subtree(&root, index, bare, &WIDER).expect("the canonical form is well-formed");
        assert!(again == whole(&subtree, bare, &WIDER).ok());
    }
    let element = canonicalize(&plain.into(), &limits).expect("the canonical form is well-formed");
    assert_eq!(element.bytes(), &root);
    // The element keeps the prefixes that its values use; but for these it is in plain form.
    if let Ok(again) = canonicalize(&Bytes::copy_from_slice(data), &limits) {
        assert_eq!(whole(again.bytes(), bare, &WIDER).as_deref(), Ok(&root[..]));
    }
}

/// The elements of a fragment are canonical, and make the same fragment again.
pub fn fragment(data: &[u8]) {
    let limits = XmlLimits::default();
    let input = Bytes::copy_from_slice(data);
    let Ok(elements) = canonicalize_fragment(&input, &limits) else { return };
    elements.iter().for_each(|element| assert_canonical(element, &limits));
    let joined: Vec<u8> = elements.iter().flat_map(|element| element.bytes().to_vec()).collect();
    let again = canonicalize_fragment(&joined.into(), &limits).expect("canonical elements are well-formed");
    assert!(again.iter().map(Canonical::bytes).eq(elements.iter().map(Canonical::bytes)));
    if let ([only], Ok(document)) = (&elements[..], canonicalize(&input, &limits)) {
        assert_eq!(only.bytes(), document.bytes());
    }
}

/// A payload is canonical, unless the declarations that it needs alone are over a limit. An envelope around any element
/// returns that element byte for byte. A message that keeps the schema means the same at an entrance.
pub fn envelope(data: &[u8]) {
    let limits = XmlLimits::default();
    let Ok(message) = canonicalize(&Bytes::copy_from_slice(data), &limits) else { return };
    if let Ok(envelope) = Envelope::open(message.clone()) {
        assert_canonical(envelope.payload(), &WIDER);
        carries(envelope.payload());
        let entered = Envelope::open_entered(message.clone()).expect("an entrance takes each envelope");
        assert_eq!(entered.claims(), envelope.claims());
        assert_eq!(entered.payload().bytes(), envelope.payload().bytes());
    }
    carries(&message);
}

/// The boundaries of chunks never change the pieces, and none is over the limit. The first two
/// bytes choose limit and chunks.
pub fn split(data: &[u8]) {
    let [limit, size, stream @ ..] = data else { return };
    let limits = XmlLimits { message_bytes: 1 + 8 * usize::from(*limit), ..XmlLimits::default() };
    let pieces = split_in(stream, &limits, 1 + usize::from(*size));
    assert_eq!(pieces, split_in(stream, &limits, stream.len().max(1)));
    for piece in pieces {
        match piece {
            Piece::Message(bytes) => assert!(bytes.len() <= limits.message_bytes),
            Piece::TooLarge { bytes, .. } => assert!(bytes > limits.message_bytes as u64),
        }
    }
}

/// An envelope that was signed is read as it was signed; a signature that is read covers all of its message, and nothing else.
pub fn signatures(data: &[u8]) {
    let input = Bytes::copy_from_slice(data);
    let key = ("k<&>", &[4; POINT]);
    if let Ok(signed) = sign(&input, key, |_| [1; DIGEST], |_| [2; SIGNATURE]) {
        let message = canonicalize(&signed, &XmlLimits::UNLIMITED).expect("a signed message is well-formed");
        assert_eq!(message.bytes(), &signed, "a signed message is canonical");
        let unsigned = canonicalize(&input, &XmlLimits::UNLIMITED).expect("it was signed");
        match Signed::open(&Raw::new(signed.clone()), &message) {
            Ok(opened) => {
                let Signed { key: name, point, value, digest, content, .. } = opened;
                assert_eq!((&*name, point, digest, value), (key.0, *key.1, [1; DIGEST], [2; SIGNATURE]));
                assert_eq!(content, unsigned.bytes()[..]);
            }
            // What is no envelope, such as a message with text in <meta>, is signed in vain.
            Err(error) => assert!(Envelope::open(unsigned).is_err(), "{error}"),
        }
        assert!(sign(&signed, key, |_| [1; DIGEST], |_| [2; SIGNATURE]).is_err(), "one signature for a message");
    }
    let Ok(message) = canonicalize(&input, &XmlLimits::default()) else { return };
    let Ok(opened) = Signed::open(&Raw::new(input), &message) else { return };
    let again = whole(&opened.content, CanonicalOptions::default(), &XmlLimits::UNLIMITED);
    assert_eq!(again.as_ref(), Ok(&opened.content), "what was signed is canonical");
    assert!(opened.content.len() < message.bytes().len());
    let removed = message.bytes().len() - opened.content.len();
    let at = message.bytes().iter().zip(&opened.content).take_while(|(own, its)| own == its).count();
    // The signature alone is missing, wherever its first bytes are like those behind it.
    let is_cut = |at: usize| opened.content[at..] == message.bytes()[at + removed..];
    assert!((0..=at).rev().any(is_cut), "the rest of the message was signed");
}

/// The pieces of a file don't depend on its chunks; an entry and a head that are read are written alike.
pub fn transcript(data: &[u8]) {
    let [size, file @ ..] = data else { return };
    let pieces = cut_in(file, 1 + usize::from(*size));
    let whole = cut_in(file, file.len().max(1));
    assert_eq!(pieces, whole);
    for piece in pieces.0 {
        let Cut::Element(element) = piece else { continue };
        if let Ok(entry) = Entry::read(&element) {
            assert_eq!(entry.write(), element);
            canonicalize(&element.clone().into(), &XmlLimits::UNLIMITED).expect("an entry is a document");
        }
        if let Ok(head) = Head::read(&element)
            && !head.is_signed
        {
            assert_eq!(Head::write(head.entries, &head.hash), element);
        }
    }
}

fn cut_in(file: &[u8], size: usize) -> (Vec<Cut>, Option<FormError>) {
    let (mut cutter, mut pieces) = (Cutter::default(), Vec::new());
    for chunk in file.chunks(size) {
        cutter.push(chunk);
        loop {
            match cutter.next_piece() {
                Ok(Some(piece)) => pieces.push(piece),
                Ok(None) => break,
                Err(error) => return (pieces, Some(error)),
            }
        }
    }
    (pieces, None)
}

/// Repair refuses with a place, or its output passes the strict pass, needs no repair, and differs
/// from the input only where a repair says so. Equal inputs have equal outputs.
pub fn repair(data: &[u8]) {
    repair_by(&Vocabulary::default(), data);
    repair_by(&sample(), data);
}

/// A contract with the names that most inputs use.
fn sample() -> Vocabulary {
    let mut sample = Vocabulary::default();
    for (parent, child, repeats) in [("a", "b", false), ("a", "c", true), ("c", "b", true), ("list", "item", true)] {
        sample.place(parent, child, repeats);
    }
    for (name, text, open) in [("b", true, false), ("c", true, false), ("item", true, false), ("d", true, true)] {
        sample.declare(name, text, open);
    }
    sample
}

/// The properties of [`repair`] with the contract of an emitter.
pub fn repair_by(vocabulary: &Vocabulary, data: &[u8]) {
    let raw = Raw::new(data.to_vec());
    for shape in [Shape::Document, Shape::Fragment] {
        let outcome = run_repair(vocabulary, &raw, shape, &XmlLimits::default());
        match (&outcome, run_repair(vocabulary, &raw, shape, &XmlLimits::default())) {
            (Ok(first), Ok(second)) => {
                assert_eq!((first.bytes(), first.repairs()), (second.bytes(), second.repairs()));
                assert_repaired(vocabulary, data, shape, first);
            }
            (Err(first), Err(second)) => {
                assert_eq!(*first, second);
                assert!(first.to_string().starts_with(&format!("{}: ", first.position())), "{first}");
            }
            (_, second) => panic!("{outcome:?}, then {second:?}"),
        }
    }
}

fn assert_repaired(vocabulary: &Vocabulary, raw: &[u8], shape: Shape, repaired: &Repaired) {
    let shown = || format!("{shape:?} {:?} -> {:?}", String::from_utf8_lossy(raw), repaired.bytes());
    assert_strict_takes(repaired.bytes(), shape, &shown);
    let again = run_repair(vocabulary, &Raw::new(repaired.bytes().clone()), shape, &XmlLimits::default());
    let again = again.unwrap_or_else(|error| panic!("{}: refused the second time: {error}", shown()));
    assert_eq!(again.bytes(), repaired.bytes(), "{}", shown());
    assert_eq!(again.repairs(), [], "{}", shown());
    let body = raw.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(raw);
    if repaired.repairs().is_empty() {
        assert_eq!(&repaired.bytes()[..], body, "changed without a repair");
    }
    let is_utf_16 = raw.starts_with(b"\xFF\xFE") || raw.starts_with(b"\xFE\xFF");
    // Counting from the start each time is quadratic: here, not in repair.
    let counts = raw.len() < 1 << 14 && !is_utf_16 && std::str::from_utf8(raw).is_ok();
    let mut last = 0;
    for repair in repaired.repairs() {
        let span = repair.span;
        assert!(last <= span.start && span.start <= span.end && span.end <= raw.len(), "{}", shown());
        last = span.start;
        if counts {
            let skipped = raw.len() - body.len();
            assert_eq!(repair.at, Position::of(body, span.start.saturating_sub(skipped)), "{}", shown());
        }
    }
}

/// Asserts that the strict pass takes the bytes, or refuses them for a limit of the canonical form, which repair
/// doesn't write.
fn assert_strict_takes(bytes: &Bytes, shape: Shape, shown: &dyn Fn() -> String) {
    let limits = XmlLimits::default();
    let refused = match shape {
        Shape::Document => canonicalize(bytes, &limits).err(),
        Shape::Fragment => canonicalize_fragment(bytes, &limits).err(),
    };
    let is_of_canonical_form = |kind: &StrictErrorKind| {
        matches!(
            kind,
            StrictErrorKind::CanonicalTooLarge { .. }
                | StrictErrorKind::TooManyAttributes { .. }
                | StrictErrorKind::ValueTooLong { .. }
        )
    };
    if let Some(error) = refused.filter(|error| !is_of_canonical_form(error.kind())) {
        panic!("{}: the strict pass refuses: {error}", shown());
    }
}

fn assert_canonical(canonical: &Canonical, limits: &XmlLimits) {
    let again = canonicalize(canonical.bytes(), limits).unwrap_or_else(|error| panic!("{error} in {canonical:?}"));
    assert_eq!(again.as_str(), canonical.as_str());
    assert_eq!(again.root(), canonical.root());
    assert_eq!(again.bytes().as_ptr(), canonical.bytes().as_ptr(), "canonical input is shared");
    let tokens: Vec<Shown> = Scanner::new(canonical.as_str()).map(shown).collect();
    for canonical in [canonical, &again] {
        canonical.read(|cursor| assert_eq!(walked(cursor), tokens, "{canonical:?}"));
    }
}

/// A token: a text, a start tag with its attributes, or an empty name for an end tag.
type Shown<'a> = (&'a str, Vec<(&'a str, &'a str)>);

fn shown(token: ScanToken) -> Shown {
    match token {
        ScanToken::Start(tag) => (tag.name(), tag.attributes().collect()),
        ScanToken::Text(written) => (written, Vec::new()),
        ScanToken::End => ("", Vec::new()),
    }
}

/// The tokens that a walk along the tape of a document finds.
fn walked(mut cursor: Cursor<'_>) -> Vec<Shown<'_>> {
    let mut tokens = Vec::new();
    loop {
        if let Some(text) = cursor.text() {
            tokens.push((text.written, Vec::new()));
        } else if let Some(tag) = cursor.enter() {
            tokens.push((tag.name(), tag.attributes().map(|found| (found.name(), found.written())).collect()));
        } else if cursor.is_inside() {
            cursor.leave();
            tokens.push(("", Vec::new()));
        } else {
            return tokens;
        }
    }
}

fn carries(payload: &Canonical) {
    let uuid = Uuid::from_u128(0x67e5_5044_10b1_826f_9247_bb68_0e5f_e0c8);
    let meta = Meta {
        from: crate::vocab::Name::root(),
        to: None,
        thread: ThreadId::from_uuid(uuid),
        id: MessageId::from_uuid(uuid),
        in_reply_to: Some(payload.as_str().to_owned()),
        deadline: None,
        traceparent: None,
    };
    let written = write_envelope(&meta, payload);
    let message = canonicalize(&written, &WIDER).expect("a written envelope is well-formed");
    assert_eq!(message.bytes(), &written);
    let (claims, again) = Envelope::open(message).expect("a written envelope is one").into_parts();
    assert_eq!(again.as_str(), payload.as_str());
    assert_eq!(claims.in_reply_to.as_deref(), Some(payload.as_str()));
}

fn split_in(stream: &[u8], limits: &XmlLimits, size: usize) -> Vec<Piece> {
    let mut splitter = Splitter::new(limits);
    let mut pieces = Vec::new();
    for chunk in stream.chunks(size) {
        splitter.push(chunk);
        pieces.extend(std::iter::from_fn(|| splitter.next()));
    }
    pieces.extend(std::iter::from_fn(|| splitter.finish()));
    pieces
}
