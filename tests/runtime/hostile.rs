//! Hostile documents: each ends with the right error or the right result, soon, in little memory, and without using up
//! the stack.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use systole::ladder::repair::Vocabulary;
use systole::ladder::split::{Piece, Splitter};
use systole::ladder::strict::{self, StrictErrorKind};
use systole::ladder::{Canonical, Envelope, Raw, StrictError, parse_fragment, properties};
use systole::schema::{self, Catalog, PayloadSchema, Validator};
use systole::vocab::XmlLimits;
use systole_bench::hostile::{DOCUMENTS, verdict};

fn strict(text: impl Into<Bytes>) -> Result<Canonical, StrictError> {
    strict::canonicalize(&text.into(), &XmlLimits::default().message_bytes(64 << 20))
}

fn kind(result: Result<Canonical, StrictError>) -> StrictErrorKind {
    match result {
        Ok(canonical) => panic!("{} bytes were taken", canonical.bytes().len()),
        Err(error) => error.kind().clone(),
    }
}

#[test]
fn nesting_is_bounded_by_the_limit_and_not_by_the_stack() {
    for depth in [4_000, 100_000] {
        let text = "<a>".repeat(depth) + &"</a>".repeat(depth);
        assert_eq!(kind(strict(text.clone())), StrictErrorKind::TooDeep { limit: 256 });
        let canonical = strict::canonicalize(&text.clone().into(), &XmlLimits::UNLIMITED).unwrap();
        assert_eq!(canonical.as_str(), text);
        assert!(canonical.position(depth - 1).is_some());
        assert_eq!(canonical.position(depth), None);
    }
    let open = "<a>".repeat(100_000);
    assert!(matches!(
        kind(strict::canonicalize(&open.into(), &XmlLimits::UNLIMITED)),
        StrictErrorKind::Unclosed { .. }
    ));
}

#[test]
fn deep_payloads_are_cut_out_without_recursion() {
    let payload = format!("<p:a xmlns:p='urn:p'>{}{}</p:a>", "<a>".repeat(50_000), "</a>".repeat(50_000));
    let text =
        format!("<message xmlns='https://xml-pipeline.org/ns/envelope/v1'><meta><from/></meta>{payload}</message>");
    let message = strict::canonicalize(&text.into(), &XmlLimits::UNLIMITED).unwrap();
    let envelope = Envelope::open(message).unwrap();
    assert!(envelope.payload().as_str().starts_with("<p:a xmlns:p=\"urn:p\"><a xmlns=\"https:"));
}

#[test]
fn attributes_are_bounded() {
    let attributes = |count: usize| (0..count).map(|i| format!(" a{i}=''")).collect::<String>();
    let million = format!("<a{}/>", attributes(1_000_000));
    assert_eq!(kind(strict(million)), StrictErrorKind::TooManyAttributes { limit: 256 });
    let many = format!("<a{} a7=''/>", attributes(50_000));
    let twice = kind(strict::canonicalize(&many.into(), &XmlLimits::UNLIMITED));
    assert_eq!(twice, StrictErrorKind::DuplicateAttribute { name: "a7".into() });
}

/// Each took minutes or hours while quotes were checked again for each value that they could close.
#[test]
fn quotes_are_looked_at_once() {
    for (unit, end) in [
        ("b b =\"", "</r>"),
        ("b b =\"c c ='", "</r>"),
        ("b b =\"c c ='d d =“", ">t</r>"),
        ("{\"x\": \"y\"}, ", "\">t</r>"),
        ("b=&quot;b b =&quot;", "</r>"),
    ] {
        let text = format!("<r a=\"{}{end}", unit.repeat(100_000));
        let limits = XmlLimits::default().message_bytes(64 << 20);
        // Repaired or refused: what counts is that it ends.
        let _ = parse_fragment(&Raw::new(text), &limits, &Vocabulary::default());
    }
}

/// The steps of all values of a payload are limited together, or patterns could block a shard for minutes.
#[test]
fn values_take_no_more_steps_than_a_payload_may() {
    let xsd = |types: &str| {
        let head = "<xs:schema xmlns:xs='http://www.w3.org/2001/XMLSchema' targetNamespace='urn:t' xmlns='urn:t'>";
        let text = format!("{head}{types}<xs:element name='r' type='t'/></xs:schema>");
        Validator::new(Arc::new(Catalog::only(PayloadSchema::from_xsd("t.xsd", &text).unwrap())))
    };
    let restricted = |name: &str, pattern: &str| {
        format!(
            "<xs:simpleType name='{name}'><xs:restriction base='xs:token'><xs:pattern value='{pattern}'/>\
             </xs:restriction></xs:simpleType>"
        )
    };
    let nested = xsd(&restricted("t", "((((a{0,9}){0,9}){0,9}){0,9}){0,9}"));
    let members: String = (0..400).map(|n| restricted(&format!("m{n}"), &format!("x{n}y*"))).collect();
    let names: String = (0..400).map(|n| format!("m{n} ")).collect();
    let list = "<xs:simpleType name='t'><xs:list itemType='u'/></xs:simpleType>";
    let union = format!("{members}<xs:simpleType name='u'><xs:union memberTypes='{names}'/></xs:simpleType>{list}");
    let union = xsd(&union);
    let ranges: String = (0..4_000)
        .map(|n| {
            format!(
                "<xs:simpleType name='m{n}'><xs:restriction base='xs:int'><xs:minInclusive value='{n}'/>\
             <xs:maxInclusive value='{n}'/></xs:restriction></xs:simpleType>"
            )
        })
        .collect();
    let names: String = (0..4_000).map(|n| format!("m{n} ")).collect();
    let union_of_ranges =
        format!("{ranges}<xs:simpleType name='u'><xs:union memberTypes='{names} xs:token'/></xs:simpleType>{list}");
    for (mut validator, value) in [
        (nested, "a".repeat(50_000) + "b"),
        (union, "x399 ".repeat(40_000)),
        (xsd(&union_of_ranges), "x ".repeat(100_000)),
    ] {
        let error = validator.validate(strict(format!("<r xmlns='urn:t'>{value}</r>")).unwrap()).unwrap_err();
        assert!(error.to_string().contains("more steps than a payload may"), "{error}");
    }
}

#[test]
fn namespace_declarations_are_bounded() {
    let declarations = |count: usize| (0..count).map(|i| format!(" xmlns:a{i}='urn:{i}'")).collect::<String>();
    let wide = format!("<a{}/>", declarations(100_000));
    assert_eq!(kind(strict(wide.clone())), StrictErrorKind::TooManyAttributes { limit: 256 });
    let deep: String = (0..100).map(|i| format!("<a xmlns:b{i}='urn:b'{}>", declarations(200))).collect();
    let limits = XmlLimits::default().namespaces(250).message_bytes(64 << 20);
    assert_eq!(kind(strict::canonicalize(&deep.into(), &limits)), StrictErrorKind::TooManyNamespaces { limit: 250 });
    assert_eq!(strict::canonicalize(&wide.into(), &XmlLimits::UNLIMITED).unwrap().as_str(), "<a></a>");
}

#[test]
fn names_are_bounded() {
    let name = "n".repeat(10 << 20);
    assert_eq!(kind(strict(format!("<{name}/>"))), StrictErrorKind::NameTooLong { bytes: 10 << 20, limit: 1024 });
    let name = &name[..1 << 20];
    let too_long = StrictErrorKind::NameTooLong { bytes: 1 << 20, limit: 1024 };
    assert_eq!(kind(strict(format!("<a {name}=''/>"))), too_long);
    assert_eq!(kind(strict(format!("<a><?{name}?></a>"))), too_long);
    assert!(matches!(kind(strict(format!("<a></{name}>"))), StrictErrorKind::MismatchedEnd { .. }));
    assert!(matches!(kind(strict(format!("<a>&{name};</a>"))), StrictErrorKind::UndeclaredEntity { .. }));
    let number = "9".repeat(1 << 20);
    assert!(matches!(kind(strict(format!("<a>&#{number};</a>"))), StrictErrorKind::IllegalReference { .. }));
    let namespace = format!("<a xmlns='urn:{name}'/>");
    assert_eq!(kind(strict(namespace)), StrictErrorKind::NamespaceTooLong { bytes: (1 << 20) + 4, limit: 1024 });
}

#[test]
fn values_comments_and_instructions_are_bounded() {
    let long = "x".repeat(10 << 20);
    let value = kind(strict(format!("<a b='{long}'/>")));
    assert_eq!(value, StrictErrorKind::ValueTooLong { name: "b".into(), bytes: 10 << 20, limit: 1 << 20 });
    for text in [format!("<!--{long}--><a/>"), format!("<a><!--{long}--></a>")] {
        assert_eq!(kind(strict(text)), StrictErrorKind::CommentTooLong { bytes: 10 << 20, limit: 1 << 20 });
    }
    for text in [format!("<?p {long}?><a/>"), format!("<a><?p {long}?></a>")] {
        assert_eq!(kind(strict(text)), StrictErrorKind::InstructionTooLong { bytes: (10 << 20) + 1, limit: 1 << 20 });
    }
    assert_eq!(strict(format!("<a>{long}</a>")).unwrap().bytes().len(), (10 << 20) + 7);
}

/// Values are limited as re-encoded: otherwise a value within the limit could exceed it in canonical form, and the
/// canonical form would be refused.
#[test]
fn values_are_bounded_in_canonical_form_too() {
    let limits = XmlLimits::default().value_bytes(20);
    let error = strict::canonicalize(&"<a b='\"\"\"\"'/>".into(), &limits).unwrap_err();
    assert_eq!(*error.kind(), StrictErrorKind::ValueTooLong { name: "b".into(), bytes: 24, limit: 20 });
    let namespace = strict::canonicalize(&"<a xmlns='urn:longer-than-20-bytes'/>".into(), &limits);
    assert!(namespace.is_ok(), "a namespace name is a name");
}

#[test]
fn what_is_too_large_is_not_looked_at() {
    let large = vec![0; (1 << 20) + 1];
    let error = strict::canonicalize(&large.into(), &XmlLimits::default()).unwrap_err();
    assert_eq!(*error.kind(), StrictErrorKind::TooLarge { bytes: (1 << 20) + 1, limit: 1 << 20 });
    assert!(error.is_limit());
}

/// A namespace of 1 KB that a hundred thousand children use would be written for each of them.
#[test]
fn the_canonical_form_is_bounded_too() {
    let text = format!("<a xmlns:p='urn:{}'>{}</a>", "x".repeat(1000), "<p:b/>".repeat(100_000));
    let error = strict::canonicalize(&text.into(), &XmlLimits::default()).unwrap_err();
    assert_eq!(*error.kind(), StrictErrorKind::CanonicalTooLarge { limit: 1 << 20 });
    let quotes = "\"".repeat(100_000);
    let escapes = format!("<a b='{quotes}' c='{quotes}'/>");
    let error = strict::canonicalize(&escapes.into(), &XmlLimits::default()).unwrap_err();
    assert_eq!(*error.kind(), StrictErrorKind::CanonicalTooLarge { limit: 1 << 20 });
}

/// Attributes are sorted by namespace names that differ only in their last byte.
#[test]
fn sorting_by_long_namespace_names_is_bounded() {
    let long = "x".repeat(1000);
    let declarations: String = (0..100).map(|i| format!(" xmlns:n{i:02}='urn:{long}{i:02}'")).collect();
    let attributes: String = (0..100).rev().map(|i| format!(" n{i:02}:a=''")).collect();
    let text = format!("<a{declarations}><b{attributes}>{}</b></a>", format!("<c{attributes}/>").repeat(600));
    let canonical = strict::canonicalize(&text.into(), &XmlLimits::default().message_bytes(8 << 20));
    assert!(canonical.unwrap().as_str().contains("<c n00:a=\"\" n01:a=\"\""));
}

#[test]
fn entities_are_never_expanded() {
    let bomb = "<!DOCTYPE a [<!ENTITY a 'aaaaaaaaaa'><!ENTITY b '&a;&a;&a;&a;&a;&a;&a;&a;'>]><a>&b;</a>";
    assert_eq!(kind(strict(bomb)), StrictErrorKind::Doctype);
    let external = "<!DOCTYPE a SYSTEM 'file:///etc/passwd'><a/>";
    assert_eq!(kind(strict(external)), StrictErrorKind::Doctype);
}

#[test]
fn bytes_that_are_no_characters_are_refused() {
    assert_eq!(kind(strict("<a>\0</a>")), StrictErrorKind::ForbiddenCharacter { found: '\0' });
    for bytes in [
        &b"\xC0\x80"[..],
        b"\xC1\xBF",
        b"\xE0\x80\xBC",
        b"\xF0\x80\x80\xBC",
        b"\xED\xA0\x80",
        b"\xED\xBF\xBF",
        b"\xFF",
        b"\x80",
    ] {
        assert_eq!(kind(strict([b"<a>", bytes, b"</a>"].concat())), StrictErrorKind::NotUtf8, "{bytes:x?}");
    }
}

#[test]
fn megabytes_of_one_thing_are_read_in_one_pass() {
    for (part, canonical) in [
        (">", "&gt;"),
        ("]", "]"),
        ("\r", "\n"),
        ("&amp;", "&amp;"),
        ("&#38;", "&amp;"),
        ("<b/>", "<b></b>"),
        ("<!---->", ""),
        ("<![CDATA[]]>", ""),
        ("<?p?>", "<?p?>"),
        ("<b xmlns:p='urn:p' p:c='d'>x</b>", "<b xmlns:p=\"urn:p\" p:c=\"d\">x</b>"),
    ] {
        let count = 100_000;
        let result =
            strict::canonicalize(&format!("<a>{}</a>", part.repeat(count)).into(), &XmlLimits::UNLIMITED).unwrap();
        assert_eq!(result.bytes().len(), 7 + count * canonical.len(), "{part}");
    }
    for opener in ["<!--", "<![CDATA[", "<?p ", "<b c='", "&", "<", "</"] {
        assert!(strict(format!("<a>{}", opener.repeat(100_000))).is_err(), "{opener}");
    }
}

/// Results of every document of the benchmarks, within the limits and without, as in `golden/hostile.txt`. With
/// `UPDATE_GOLDEN=1` in the environment that file is written instead.
#[test]
fn each_hostile_document_has_the_verdict_that_is_written_down() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/hostile.txt");
    let mut actual = String::from("document | within the limits | without limits | as an emission, without limits\n");
    for document in DOCUMENTS {
        let raw = Raw::new(document.of(1 << 17));
        let emission = match parse_fragment(&raw, &XmlLimits::UNLIMITED, &Vocabulary::default()) {
            Ok(fragment) => format!("{} elements, {} repairs", fragment.elements.len(), fragment.repairs.len()),
            Err(error) => {
                let text = error.to_string();
                text.split_once(": ").map_or(text.clone(), |(_, rest)| rest.chars().take(60).collect())
            }
        };
        let name = document.name;
        let (limited, free) = (verdict(&raw, &XmlLimits::default()), verdict(&raw, &XmlLimits::UNLIMITED));
        writeln!(actual, "{name} | {limited} | {free} | {emission}").unwrap();
    }
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        fs::write(&path, &actual).unwrap();
    }
    let expected = fs::read_to_string(&path).unwrap();
    let differing = expected.lines().zip(actual.lines()).filter(|(expected, actual)| expected != actual);
    let shown: Vec<_> = differing.map(|(expected, actual)| format!("- {expected}\n+ {actual}")).collect();
    assert!(expected == actual, "{}", shown.join("\n"));
}

#[test]
fn every_property_holds_for_hostile_documents() {
    for document in DOCUMENTS {
        let bytes = document.of(1 << 14);
        for property in [
            properties::strict,
            properties::c14n,
            properties::fragment,
            properties::repair,
            properties::split,
            properties::envelope,
            schema::properties::validation,
            schema::properties::decoding,
        ] {
            property(&bytes);
        }
    }
}

/// After any input, envelopes get through again: at the latest when the time limit for its end has passed.
#[test]
fn envelopes_behind_a_hostile_document_get_through() {
    let limits = XmlLimits::default().message_bytes(1 << 12);
    let envelope =
        "<message xmlns='https://xml-pipeline.org/ns/envelope/v1'><meta><from>last</from></meta><a/></message>";
    for document in DOCUMENTS {
        let mut splitter = Splitter::new(&limits);
        splitter.push(&document.of(1 << 11));
        for _ in 0..1_000 {
            splitter.push(b"\n");
            splitter.push(envelope.as_bytes());
        }
        let pieces: Vec<_> = std::iter::from_fn(|| splitter.next().or_else(|| splitter.finish())).collect();
        let whole = pieces.iter().filter(|piece| **piece == Piece::Message(envelope.into())).count();
        assert!(whole > 100, "{}: {whole} of 1000 envelopes in {} pieces", document.name, pieces.len());
    }
}
