//! Payloads that the pump itself writes: each keeps its schema, and is read back.

use std::sync::Arc;

use bytes::Bytes;
use systole_core::protocol::*;
use systole_core::vocab::{BrokenRule, Fault, FaultCode, MessageId, Position, QName, ThreadId, Time, XmlLimits};
use systole_xml::ladder::Canonical;
use systole_xml::ladder::strict::canonicalize;
use systole_xml::schema::{Catalog, Payload, PayloadSchema, Validator, XsdDocument, decode, encode};

fn canonical(text: &str) -> Canonical {
    canonicalize(&Bytes::from(text.to_owned()), &XmlLimits::default()).unwrap()
}

fn valid(payload: &Canonical) {
    let mut validator = Validator::new(Arc::new(Catalog::new()));
    if let Err(error) = validator.validate(payload.clone()) {
        panic!("{error} in {payload:?}");
    }
}

fn typed<T: Payload>(payload: &Canonical) -> T {
    let mut validator = Validator::new(Arc::new(Catalog::new()));
    decode(&validator.validate(payload.clone()).unwrap()).unwrap()
}

fn qname(text: &str) -> QName {
    text.parse().unwrap()
}

const ID: &str = "67e55044-10b1-426f-9247-bb680e5fe0c8";

#[test]
fn boot_goes_both_ways() {
    let boot =
        Boot { organism: "de<mo\u{1}".into(), started: Time::from_nanos(1_700_000_000_500_000_000), listeners: 3 };
    let written = boot.write();
    assert_eq!(
        written.as_str(),
        "<boot xmlns=\"https://xml-pipeline.org/ns/core/v1\"><organism>de&lt;mo\u{FFFD}</organism><started>2023-11-14T22:13:20.5Z</started><listeners>3</listeners></boot>"
    );
    valid(&written);
    assert_eq!(written.root(), &boot_qname());
    assert_eq!(typed::<Boot>(&written), Boot { organism: "de<mo\u{FFFD}".into(), ..boot.clone() });
    let plain = Boot { organism: "demo".into(), ..boot };
    assert_eq!(encode(&plain).unwrap().bytes(), plain.write().bytes());
}

#[test]
fn fan_out_ended_goes_both_ways() {
    let written = write_fan_out_ended(7);
    valid(&written);
    assert_eq!(written.root(), &fan_out_ended_qname());
    assert_eq!(typed::<FanOutEnded>(&written), FanOutEnded { total: 7 });
}

fn faults() -> Vec<Fault> {
    let mut faults: Vec<Fault> =
        FaultCode::ALL.into_iter().map(|code| Fault::new(code, format!("about {code} & more"))).collect();
    let examples = [
        None,
        Some("<add xmlns=\"urn:x\"><a>1</a></add>"),
        Some("<add><a></a></add>"),
        Some("<p:add xmlns:p=\"urn:x\"><a></a></p:add>"),
        Some("<boot xmlns=\"https://xml-pipeline.org/ns/core/v1\"></boot>"),
    ];
    for example in examples {
        faults.push(Fault {
            in_reply_to: Some(ID.parse::<MessageId>().unwrap()),
            retryable: true,
            rule: Some(Box::new(BrokenRule {
                rule: "<a>: found 'x', expected a whole number".into(),
                at: Some(Position { line: 3, column: 14 }),
                example: example.map(str::to_owned),
            })),
            ..Fault::new(FaultCode::Payload, "the payload breaks its schema")
        });
    }
    faults
}

#[test]
fn faults_go_both_ways() {
    for fault in faults() {
        let written = write_fault(&fault);
        valid(&written);
        assert!(is_fault(written.root()));
        assert_eq!(written.root().local(), fault.code.element());
        assert_eq!(read_fault(&written).unwrap(), fault, "{written:?}");
        let mut validator = Validator::new(Arc::new(Catalog::new()));
        let decoded = fault_decoder()(&validator.validate(written).unwrap()).unwrap();
        assert_eq!(*decoded.downcast::<Fault>().unwrap(), fault);
    }
}

#[test]
fn a_fault_carries_any_words() {
    let mut fault = Fault::new(FaultCode::Failed, "\u{0}<bad>\u{FFFE}");
    fault.rule = Some(Box::new(BrokenRule { rule: "\u{7}".into(), at: None, example: Some("no XML".into()) }));
    let written = write_fault(&fault);
    valid(&written);
    let read = read_fault(&written).unwrap();
    assert_eq!(&*read.message, "\u{FFFD}<bad>\u{FFFD}");
    assert_eq!(read.rule.unwrap().example, None);
}

#[test]
fn what_is_no_fault_is_refused() {
    let ns = "xmlns=\"https://xml-pipeline.org/ns/core/v1\"";
    for text in [
        "<system-error/>".to_owned(),
        format!("<boot {ns}/>"),
        format!("<system-error {ns}/>"),
        format!("<system-error {ns}><code>silent</code><message/><retryable>true</retryable></system-error>"),
        format!("<agent-error {ns}><code>silent</code><message/><retryable>maybe</retryable></agent-error>"),
        format!("<agent-error {ns}><code>silent</code><message/><retryable>true</retryable><more/></agent-error>"),
        format!(
            "<agent-error {ns}><code>silent</code><message/><retryable>true</retryable><in-reply-to>x</in-reply-to></agent-error>"
        ),
    ] {
        assert!(read_fault(&canonical(&text)).is_err(), "{text}");
    }
}

fn meta(text: &str) -> Canonical {
    canonical(&text.replacen(' ', " xmlns='https://xml-pipeline.org/ns/meta/v1' ", 1))
}

#[test]
fn requests_are_read() {
    let read = |text: &str| MetaRequest::read(&meta(text)).unwrap();
    assert!(matches!(read("<list-capabilities />"), MetaRequest::ListCapabilities));
    assert!(matches!(read("<clear-context > <?x?> </clear-context>"), MetaRequest::ClearContext));
    assert!(matches!(read("<close-thread />"), MetaRequest::CloseThread));
    let add = qname("{urn:x}add");
    assert!(
        matches!(read("<request-schema payload='{urn:x}add'/>"), MetaRequest::RequestSchema { payload } if payload == add)
    );
    assert!(
        matches!(read("<request-example payload='add'/>"), MetaRequest::RequestExample { payload } if payload == qname("add"))
    );
    assert!(matches!(read("<request-prompt />"), MetaRequest::RequestPrompt { payload: None }));
    assert!(matches!(read("<request-prompt payload='{urn:x}add'/>"), MetaRequest::RequestPrompt { payload: Some(_) }));
    for text in [
        "<spawn-thread payload='{urn:x}add'> <add xmlns='urn:x'><a>1</a></add> </spawn-thread>",
        "<spawn-thread ><add xmlns='urn:x'><a>1</a></add></spawn-thread>",
    ] {
        let MetaRequest::SpawnThread { first } = read(text) else { panic!("{text}") };
        assert_eq!(first.as_str(), "<add xmlns=\"urn:x\"><a>1</a></add>");
        assert_eq!(first.root(), &add);
    }
}

#[test]
fn other_requests_are_refused_with_a_reason() {
    let sentences: Vec<String> = [
        "<shutdown />",
        "<list-capabilities all='yes'/>",
        "<list-capabilities >all</list-capabilities>",
        "<list-capabilities ><all/></list-capabilities>",
        "<request-schema />",
        "<request-schema payload='a b'/>",
        "<request-schema payload='{urn:x'/>",
        "<spawn-thread />",
        "<spawn-thread ><a/><b/></spawn-thread>",
        "<spawn-thread payload='{urn:x}add'><add/></spawn-thread>",
    ]
    .iter()
    .map(|text| MetaRequest::read(&meta(text)).unwrap_err().to_string())
    .collect();
    golden(&sentences.join("\n"));
    let error = MetaRequest::read(&meta("<spawn-thread >\n <a/>\n <b/></spawn-thread>")).unwrap_err();
    assert!(error.at.is_some());
    let elsewhere = canonical("<list-capabilities/>");
    assert!(matches!(MetaRequest::read(&elsewhere).unwrap_err().problem, MetaProblem::Unknown { .. }));
}

fn golden(actual: &str) {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/schema/meta-refused.txt");
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(path, actual).unwrap();
    }
    assert_eq!(actual, std::fs::read_to_string(path).unwrap_or_default(), "UPDATE_GOLDEN=1 writes it");
}

#[test]
fn requests_from_rust_types_are_valid_and_read() {
    let add = qname("{urn:x}add");
    let requests = [
        encode(&ListCapabilities).unwrap(),
        encode(&RequestSchema { payload: add.clone() }).unwrap(),
        encode(&RequestExample { payload: add.clone() }).unwrap(),
        encode(&RequestPrompt { payload: Some(add) }).unwrap(),
        encode(&RequestPrompt { payload: None }).unwrap(),
        encode(&ClearContext).unwrap(),
        encode(&CloseThread).unwrap(),
    ];
    for request in &requests {
        valid(request);
        assert!(MetaRequest::read(request).is_ok(), "{request:?}");
    }
    assert_eq!(typed::<RequestPrompt>(&requests[3]).payload, Some(qname("{urn:x}add")));
}

const SCHEMA: &str = r#"<!-- a schema --><schema xmlns="http://www.w3.org/2001/XMLSchema" xmlns:u="urn:used" xmlns:v="urn:unused"
  targetNamespace="urn:used" elementFormDefault="qualified">
  <element name="r" type="u:R"><key name="k"><selector xpath="u:a|.//u:b/child::u:c"/><field xpath="@u:i"/></key></element>
  <complexType name="R"><annotation><documentation>A &lt;doc&gt; with <b xmlns="urn:html" xml:lang="en">markup</b>.</documentation></annotation>
    <sequence><element name="a" type="int"/></sequence><attribute name="b" type="u:B"/></complexType>
  <simpleType name="B"><union memberTypes="int u:C"/></simpleType>
  <simpleType name="C"><restriction base="string"><pattern value="[&amp;&quot;]"/></restriction></simpleType>
</schema>"#;

#[test]
fn answers_go_both_ways() {
    let document =
        |text: &str| PayloadSchema::from_xsd("x.xsd", text).unwrap()[0].embeddable_document().unwrap().clone();
    let add = qname("{urn:x}add");
    let answers = [
        MetaAnswer::Capabilities(vec![(add.clone(), "Adds & more.\u{1}".into()), (qname("b"), String::new())]),
        MetaAnswer::Capabilities(Vec::new()),
        MetaAnswer::Schema { payload: add.clone(), document: document(SCHEMA) },
        MetaAnswer::Example { payload: add.clone(), instance: canonical("<add xmlns='urn:x'/>") },
        MetaAnswer::Example { payload: add.clone(), instance: canonical("<add><a xmlns='urn:y'/></add>") },
        MetaAnswer::Example { payload: add, instance: canonical("<p:add xmlns:p='urn:x'><a/></p:add>") },
        MetaAnswer::Prompt("Write <add>.\n".into()),
        MetaAnswer::ThreadSpawned(ID.parse::<ThreadId>().unwrap()),
        MetaAnswer::ContextCleared,
    ];
    for answer in &answers {
        let written = answer.write();
        valid(&written);
        let again = MetaAnswer::read(&written).unwrap().write();
        assert_eq!(again.bytes(), written.bytes());
    }
    let MetaAnswer::Example { instance, .. } = MetaAnswer::read(&answers[4].write()).unwrap() else {
        panic!("no example")
    };
    assert_eq!(instance.as_str(), "<add><a xmlns=\"urn:y\"></a></add>");
    assert_eq!(typed::<Capabilities>(&answers[0].write()).capability[0].description, "Adds & more.\u{FFFD}");
    assert_eq!(typed::<Prompt>(&answers[6].write()).0, "Write <add>.\n");
    assert_eq!(typed::<ThreadSpawned>(&answers[7].write()).0.to_string(), ID);
    let ContextCleared = typed::<ContextCleared>(&answers[8].write());
}

#[test]
fn a_schema_means_the_same_inside_of_an_answer() {
    let given = PayloadSchema::from_xsd("x.xsd", SCHEMA).unwrap().remove(0);
    let answer =
        MetaAnswer::Schema { payload: given.qname().clone(), document: given.embeddable_document().unwrap().clone() }
            .write();
    // Canonicalizing the answer once more changes nothing.
    assert_eq!(canonical(answer.as_str()).bytes(), answer.bytes());
    let MetaAnswer::Schema { document, .. } = MetaAnswer::read(&answer).unwrap() else { panic!("no schema") };
    let document = XsdDocument { name: "out.xsd".into(), text: document.as_str().to_owned() };
    let taken = PayloadSchema::from_xsd_set(&[document]).unwrap().remove(0);
    assert_eq!(taken.prompt(), given.prompt());
    assert_eq!(taken.example().map(Canonical::as_str), given.example().map(Canonical::as_str));
    assert!(given.prompt().contains("A <doc> with markup."), "{}", given.prompt());
}

#[test]
fn every_payload_of_the_pump_has_an_example_and_a_prompt() {
    let catalog = Catalog::new();
    let names: Vec<String> = catalog.payloads().map(|schema| schema.qname().local().to_owned()).collect();
    for name in
        ["boot", "system-error", "agent-error", "fan-out-ended", "list-capabilities", "capabilities", "thread-spawned"]
    {
        assert!(names.iter().any(|known| known == name), "{name} is missing in {names:?}");
    }
    for schema in catalog.payloads() {
        assert!(!schema.description().is_empty(), "{}", schema.qname());
        assert!(schema.prompt().contains("answer with exactly one"), "{}", schema.qname());
        // Payloads that hold any element have no example of their own.
        let open = ["message", "spawn-thread", "schema", "example"].contains(&schema.qname().local());
        assert_eq!(schema.example().is_none(), open, "{}", schema.qname());
    }
    assert_eq!(PayloadSchema::of::<Boot>().unwrap().qname(), &boot_qname());
}
