//! Tests of reading and writing envelopes.

use bytes::Bytes;
use proptest::prelude::*;

use super::*;
use crate::ladder::strict::{canonicalize, canonicalize_fragment};
use crate::ladder::{Repair, RepairKind};
use crate::vocab::{Position, Span, XmlLimits, ns};

const E: &str = ns::ENVELOPE;

fn canonical(text: &str) -> Canonical {
    canonicalize(&text.to_owned().into(), &XmlLimits::default()).unwrap_or_else(|error| panic!("{error} in {text}"))
}

fn open(text: &str) -> Result<Envelope, EnvelopeError> {
    Envelope::open(canonical(text))
}

fn payload_of(message: &str) -> String {
    open(message).unwrap_or_else(|error| panic!("{error} in {message}")).payload().as_str().to_owned()
}

fn meta() -> Meta {
    Meta {
        from: "researcher".parse().unwrap(),
        to: None,
        thread: "67e55044-10b1-426f-9247-bb680e5fe0c8".parse().unwrap(),
        id: "67e55044-10b1-826f-9247-bb680e5fe0c9".parse().unwrap(),
        in_reply_to: None,
        deadline: None,
        traceparent: None,
    }
}

#[test]
fn claims_are_read_from_any_shape_of_envelope() {
    let full = format!(
        r#"<?xml version="1.0"?>
<e:message xmlns:e="{E}" xmlns:xsi="{}" xsi:schemaLocation="{E} envelope.xsd">
  <e:meta>
    <e:from> system <?pi?></e:from><e:to>
       calculator</e:to><e:thread/>
    <s:deadline xmlns:s="urn:systole:meta:v1">2031-05-07T12:00:00Z</s:deadline>
    <s:budget xmlns:s="urn:systole:meta:v1"> calls=5
      time=30s </s:budget>
    <id xmlns="urn:systole:meta:v1" more="x">&lt;4711&amp;lt;&gt;</id>
    <x:id xmlns:x="urn:other"><y/></x:id>
    <in-reply-to xmlns="urn:systole:meta:v1"/>
    <unknown xmlns="urn:systole:meta:v1"/>
    <traceparent xmlns="urn:systole:meta:v1">00-<![CDATA[ab]]>-01</traceparent>
  </e:meta>
  <add/>
</e:message>"#,
        ns::XSI
    );
    let (claims, payload) = open(&full).unwrap().into_parts();
    let claim = |text: &str| Claim::from(text.to_owned());
    let expected = Claims {
        from: claim("system"),
        to: Some(claim("calculator")),
        thread: None,
        id: Some(claim("<4711&lt;>")),
        in_reply_to: None,
        deadline: Some("2031-05-07T12:00:00Z".parse().unwrap()),
        budget: Some(Box::new("calls=5 time=30s".parse().unwrap())),
        traceparent: Some(claim("00-ab-01")),
        correlation: None,
        foreign: 2,
    };
    assert_eq!(claims, expected);
    assert_eq!(payload.as_str(), "<add></add>");
    assert_eq!(payload.position(0), Some(Position { line: 15, column: 3 }));
}

#[test]
fn metadata_is_added_to_what_the_pump_wrote_and_read_again() {
    let payload = canonical("<a xmlns='urn:a'>&lt;/meta></a>");
    let of_sender = Meta { in_reply_to: Some("</meta>".to_owned()), ..meta() };
    let envelope = write_envelope(&of_sender, &payload);
    let longer = with_metadata(&with_metadata(&envelope, "budget", "calls=2"), "correlation", "key=<&\u{1}>");
    let read = canonical(std::str::from_utf8(&longer).unwrap());
    assert_eq!(*read.bytes(), longer, "it is canonical");
    let (claims, found) = Envelope::open(read).unwrap().into_parts();
    assert_eq!(claims.correlation.as_deref(), Some("key=<&\u{FFFD}>"));
    assert_eq!(claims.budget.as_deref(), Some(&"calls=2".parse().unwrap()));
    assert_eq!(claims.in_reply_to.as_deref(), Some("</meta>"));
    assert_eq!(found.bytes(), payload.bytes());
    let other = Bytes::from_static(b"<other/>");
    assert_eq!(with_metadata(&other, "budget", "calls=2"), other);
}

#[test]
fn an_envelope_of_the_python_pipeline_is_read() {
    let text = format!(
        r#"<message xmlns="{E}"><meta><from>console</from></meta><greeting xmlns=""><name>World</name></greeting></message>"#
    );
    let envelope = open(&text).unwrap();
    assert_eq!(envelope.payload().as_str(), "<greeting><name>World</name></greeting>");
    assert_eq!(envelope.payload().root().to_string(), "greeting");
}

#[test]
fn an_entered_message_may_leave_out_what_the_pump_stamps_and_nothing_else() {
    let open = |text: &str| Envelope::open_entered(canonical(text)).map(Envelope::into_parts);
    let message = |inner: &str| format!(r#"<message xmlns="{E}">{inner}</message>"#);
    let a = r#"<a xmlns="urn:a"/>"#;
    for inner in [a.to_owned(), format!("<meta/>{a}"), format!("<meta><from/></meta>{a}")] {
        let (claims, payload) = open(&message(&inner)).unwrap();
        assert_eq!((claims, payload.as_str()), (Claims::default(), r#"<a xmlns="urn:a"></a>"#), "{inner}");
    }
    let (claims, _) = open(&message(&format!("<meta><to>b</to><thread>t</thread></meta>{a}"))).unwrap();
    assert_eq!((claims.to.as_deref(), claims.thread.as_deref()), (Some("b"), Some("t")));
    for refused in [
        String::new(),
        format!("<to>b</to>{a}"),
        format!("{a}{a}"),
        format!("<meta><thread/><to/></meta>{a}"),
        format!("<meta><to/><from/></meta>{a}"),
        format!("<meta><x xmlns=''/></meta>{a}"),
        "<meta/>".to_owned(),
        message(a),
    ] {
        assert!(open(&message(&refused)).is_err(), "{refused}");
    }
    assert!(Envelope::open(canonical(&message(a))).is_err(), "the wire is strict");
}

#[test]
fn an_emitted_message_may_leave_out_what_the_pump_knows() {
    let open = |text: &str| Envelope::open_emitted(canonical(text)).map(Envelope::into_parts);
    let (claims, payload) = open(&format!(r#"<message xmlns="{E}"><a xmlns="urn:a"/></message>"#)).unwrap();
    assert_eq!((claims, payload.as_str()), (Claims::default(), r#"<a xmlns="urn:a"></a>"#));
    let text =
        format!(r#"<message xmlns="{E}"><meta><x/><thread> t </thread><to>b</to></meta><a xmlns=""/></message>"#);
    let (claims, payload) = open(&text).unwrap();
    assert_eq!((claims.to.as_deref(), claims.thread.as_deref()), (Some("b"), Some("t")));
    assert_eq!(payload.as_str(), "<a></a>");
    assert!(open(&format!(r#"<message xmlns="{E}"><meta/></message>"#)).is_err());
    assert!(open(&format!(r#"<message xmlns="{E}"><a/><b/></message>"#)).is_err());
}

#[test]
fn a_payload_brings_the_namespaces_it_uses_and_no_other() {
    let default =
        |payload: &str| payload_of(&format!(r#"<message xmlns="{E}"><meta><from/></meta>{payload}</message>"#));
    let prefixed = |payload: &str| {
        payload_of(&format!(r#"<e:message xmlns:e="{E}"><e:meta><e:from/></e:meta>{payload}</e:message>"#))
    };
    assert_eq!(default("<meta><x xmlns=''/></meta>"), format!(r#"<meta xmlns="{E}"><x xmlns=""></x></meta>"#));
    assert_eq!(default("<p:a xmlns:p='urn:p'/>"), r#"<p:a xmlns:p="urn:p"></p:a>"#);
    assert_eq!(
        default("<p:a xmlns:p='urn:p'><b/><c xmlns=''/></p:a>"),
        format!(r#"<p:a xmlns:p="urn:p"><b xmlns="{E}"></b><c></c></p:a>"#)
    );
    assert_eq!(default("<a xmlns='urn:a'><b xmlns=''/></a>"), r#"<a xmlns="urn:a"><b xmlns=""></b></a>"#);
    assert_eq!(prefixed("<a x='1'><b/></a>"), r#"<a x="1"><b></b></a>"#);
    assert_eq!(
        prefixed("<a><e:b/><e:c/></a>"),
        format!(r#"<a><e:b xmlns:e="{E}"></e:b><e:c xmlns:e="{E}"></e:c></a>"#)
    );
    assert_eq!(prefixed("<a>e:b</a>"), format!(r#"<a xmlns:e="{E}">e:b</a>"#));
    assert_eq!(prefixed("<a>he:b</a>"), "<a>he:b</a>");
    let unused = "<a k='p:T' xmlns:p='urn:p'/>";
    assert_eq!(prefixed(unused), r#"<a xmlns:p="urn:p" k="p:T"></a>"#);
    assert_eq!(prefixed("<e:message/>"), format!(r#"<e:message xmlns:e="{E}"></e:message>"#));
}

#[test]
fn a_payload_keeps_repairs_and_its_own_name() {
    let at = Position { line: 1, column: 1 };
    let repair = Repair { span: Span { start: 0, end: 1 }, at, kind: RepairKind::Namespace };
    let text = format!(r#"<message xmlns="{E}"><meta><from/></meta><p:a xmlns:p="urn:&lt;a&amp;b"/></message>"#);
    let envelope = Envelope::open(canonical(&text).with_repairs(vec![repair])).unwrap();
    assert_eq!(envelope.payload().repairs(), [repair]);
    assert_eq!(envelope.payload().root().namespace(), "urn:<a&b");
}

#[test]
fn a_written_envelope_has_this_shape() {
    let meta = Meta {
        to: Some("calculator".parse().unwrap()),
        in_reply_to: Some("a<b>&\r\u{1}\u{FFFF}".into()),
        deadline: Some("2031-05-07T12:00:00.5Z".parse().unwrap()),
        traceparent: Some("00-ab-01".into()),
        ..meta()
    };
    let written = write_envelope(&meta, &canonical("<add xmlns='urn:a'/>"));
    let expected = "<message xmlns=\"https://xml-pipeline.org/ns/envelope/v1\"><meta><from>researcher</from>\
        <to>calculator</to><thread>67e55044-10b1-426f-9247-bb680e5fe0c8</thread>\
        <id xmlns=\"urn:systole:meta:v1\">67e55044-10b1-826f-9247-bb680e5fe0c9</id>\
        <in-reply-to xmlns=\"urn:systole:meta:v1\">a&lt;b&gt;&amp;&#xD;\u{FFFD}\u{FFFD}</in-reply-to>\
        <deadline xmlns=\"urn:systole:meta:v1\">2031-05-07T12:00:00.5Z</deadline>\
        <traceparent xmlns=\"urn:systole:meta:v1\">00-ab-01</traceparent></meta>\
        <add xmlns=\"urn:a\"></add></message>";
    assert_eq!(std::str::from_utf8(&written).unwrap(), expected);
}

/// Elements whose names run through all combinations of default namespaces, prefixes and
/// undeclarations that an envelope can collide with.
fn payload() -> impl Strategy<Value = String> {
    let name = prop::sample::select(vec!["a", "p:a", "e:a", "b"]);
    let declarations = prop::sample::subsequence(vec![" xmlns=\"{D}\"", " xmlns:p=\"{P}\"", " xmlns:e=\"{P}\""], 0..=3);
    let namespace = prop::sample::select(vec!["", E, "urn:a", "urn:&amp;"]);
    let bound = prop::sample::select(vec![E, "urn:a", "urn:systole:meta:v1"]);
    let attribute = prop::sample::select(vec!["", " x='>'", " p:x='\"'", " e:x=''"]);
    let tag = (name, declarations, namespace, bound, attribute).prop_map(
        |(name, declarations, default, bound, attribute)| {
            (name.to_owned(), declarations.concat().replace("{D}", default).replace("{P}", bound) + attribute)
        },
    );
    let leaf = tag.clone().prop_map(|(name, attributes)| format!("<{name}{attributes}>t&amp;<?p <x>?></{name}>"));
    let tree = leaf.prop_recursive(4, 16, 3, move |inner| {
        (tag.clone(), prop::collection::vec(inner, 0..3))
            .prop_map(|((name, attributes), children)| format!("<{name}{attributes}>{}</{name}>", children.concat()))
    });
    tree.prop_map(|tree| {
        let end = tree.find([' ', '>']).unwrap();
        let missing = |prefix: &str| {
            let declared = tree[..tree.find('>').unwrap()].contains(&format!(" xmlns:{prefix}="));
            if declared { String::new() } else { format!(" xmlns:{prefix}=\"urn:{prefix}\"") }
        };
        format!("{}{}{}{}", &tree[..end], missing("p"), missing("e"), &tree[end..])
    })
}

proptest! {
    #[test]
    fn written_envelopes_are_canonical_and_give_the_payload_back(text in payload()) {
        let payload = canonical(&text);
        let written = write_envelope(&meta(), &payload);
        let again = canonicalize(&written, &XmlLimits::default()).unwrap();
        prop_assert_eq!(again.as_str(), std::str::from_utf8(&written).unwrap());
        let opened = Envelope::open(again).unwrap();
        prop_assert_eq!(opened.payload().as_str(), payload.as_str());
        prop_assert_eq!(opened.payload().root(), payload.root());
    }

    #[test]
    fn a_payload_is_what_the_canonicalizer_makes_of_it_alone(text in payload(), prefix in prop::sample::select(vec!["", "e", "p", "q"])) {
        let (tag, declaration) = match prefix {
            "" => (String::new(), format!("xmlns=\"{E}\"")),
            prefix => (format!("{prefix}:"), format!("xmlns:{prefix}=\"{E}\"")),
        };
        let message = format!("<{tag}message {declaration}><{tag}meta><{tag}from/></{tag}meta>{text}</{tag}message>");
        // The same element as a top-level element of a fragment, with the declaration of the message added.
        let declared = text.find([' ', '>']).unwrap();
        let own = &text[..text.find('>').unwrap()];
        let name = declaration.split('=').next().unwrap();
        let alone = if own.contains(&format!(" {name}=")) {
            text.clone()
        } else {
            format!("{} {declaration}{}", &text[..declared], &text[declared..])
        };
        let expected = canonicalize_fragment(&alone.into(), &XmlLimits::default()).unwrap().remove(0);
        let opened = open(&message).unwrap();
        prop_assert_eq!(opened.payload().as_str(), expected.as_str());
        prop_assert_eq!(opened.payload().root(), expected.root());
    }
}
