//! Payloads of tasks: the Rust types agree with `task.xsd`.

use std::sync::Arc;

use bytes::Bytes;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize};
use systole::inbox::payload::*;
use systole::inbox::{Submission, TaskContext};
use systole::ladder::Canonical;
use systole::ladder::strict::canonicalize;
use systole::schema::{Catalog, Payload, PayloadSchema, Validator, decode, encode};
use systole::vocab::XmlLimits;

use super::*;

/// A type by the schema that is made from its fields, rather than that of `task.xsd`.
#[derive(Serialize, Deserialize)]
#[serde(transparent)]
struct Derived<T>(T);

impl<T: Payload> JsonSchema for Derived<T> {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        T::schema_name()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        T::json_schema(generator)
    }
}

impl<T: Payload> Payload for Derived<T> {
    const NAMESPACE: &'static str = T::NAMESPACE;
    const ROOT: &'static str = T::ROOT;
}

fn canonical(text: &str) -> Canonical {
    canonicalize(&Bytes::from(text.to_owned()), &XmlLimits::default()).unwrap()
}

fn validator(schema: PayloadSchema) -> Validator {
    Validator::new(Arc::new(Catalog::only([schema])))
}

fn about<T: Payload>() -> (Validator, Validator) {
    let derived = PayloadSchema::of::<Derived<T>>().unwrap_or_else(|error| panic!("{}: {error}", T::ROOT));
    (validator(PayloadSchema::of::<T>().unwrap()), validator(derived))
}

/// Checks that both schemas agree on a payload, and that a valid one survives decoding and encoding.
fn judge<T: Payload>(text: &str, valid: bool) {
    let (mut written, mut derived) = about::<T>();
    let payload = canonical(&text.replacen(' ', " xmlns='urn:systole:task:v1' ", 1));
    for (validator, which) in [(&mut written, "task.xsd"), (&mut derived, "the type")] {
        let verdict = validator.validate(payload.clone());
        assert_eq!(verdict.is_ok(), valid, "{which} of {text}: {verdict:?}");
    }
    if let Ok(payload) = written.validate(payload) {
        let value: T = decode(&payload).unwrap_or_else(|error| panic!("{text}: {error}"));
        let again = encode(&value).unwrap();
        let again = written.validate(again).unwrap_or_else(|error| panic!("{text}: {error}"));
        let value: T = decode(&again).unwrap();
        assert_eq!(encode(&value).unwrap().bytes(), again.payload().bytes(), "{text}");
    }
}

/// Checks that the examples of each schema are valid by the other.
fn examples<T: Payload>() {
    let (mut written, mut derived) = about::<T>();
    let of_document = PayloadSchema::of::<T>().unwrap();
    assert!(!of_document.description().is_empty(), "{} is described", T::ROOT);
    for schema in [of_document, PayloadSchema::of::<Derived<T>>().unwrap()] {
        // A context of any element has no generated example.
        let Some(example) = schema.example() else { panic!("{} has no example", T::ROOT) };
        written.validate(example.clone()).unwrap_or_else(|error| panic!("{}: {error}", example.as_str()));
        derived.validate(example.clone()).unwrap_or_else(|error| panic!("{}: {error}", example.as_str()));
    }
}

#[test]
fn types_and_document_agree_on_their_examples() {
    examples::<Submit>();
    examples::<Cancel>();
    examples::<Input>();
    examples::<Noted>();
    examples::<Get>();
    examples::<List>();
    examples::<Accept>();
    examples::<Progress>();
    examples::<ArtifactPayload>();
    examples::<InputRequired>();
    examples::<Complete>();
    examples::<Fail>();
    examples::<Reject>();
    examples::<payload::Submitted>();
    examples::<Changed>();
    examples::<Tasks>();
    examples::<TaskPayload>();
    examples::<ResultPayload>();
    examples::<Question>();
    examples::<EventPayload>();
    examples::<Register>();
    examples::<Remove>();
    examples::<Find>();
    examples::<Registered>();
    examples::<Removed>();
    examples::<JobsPayload>();
    assert_eq!(schemas().len(), 26, "each global element has a type");
}

use systole::inbox::payload;

const ID: &str = "67e55044-10b1-426f-9247-bb680e5fe0c8";
const AT: &str = "2031-05-07T12:00:00Z";

fn each<T: Payload>(valid: &[&str], invalid: &[&str]) {
    let filled = |text: &&str| text.replace("ID", ID).replace("AT", AT);
    valid.iter().for_each(|text| judge::<T>(&filled(text), true));
    invalid.iter().for_each(|text| judge::<T>(&filled(text), false));
}

#[test]
fn types_and_document_agree_on_requests() {
    each::<Submit>(
        &[
            "<submit ><description>Read.</description></submit>",
            "<submit key='k' deadline='AT' detached='true' watched='1'><job>drafts</job><description>x</description><context></context></submit>",
            "<submit ><description> </description><context><entry key='a'>1</entry><entry key='a'></entry></context></submit>",
            "<submit deadline='2031-05-07T12:00:00.5+02:00'><description>x</description></submit>",
        ],
        &[
            "<submit />",
            "<submit ><description></description></submit>",
            "<submit ><job>a b</job><description>x</description></submit>",
            "<submit ><job></job><description>x</description></submit>",
            "<submit ><description>x</description><job>a</job></submit>",
            "<submit ><description>x</description><context/><context/></submit>",
            "<submit ><description>x</description><context><entry>1</entry></context></submit>",
            "<submit ><description>x</description><context><entry key=''>1</entry></context></submit>",
            "<submit ><description>x</description><context>text</context></submit>",
            "<submit key=''><description>x</description></submit>",
            "<submit deadline='2031-05-07T12:00:00'><description>x</description></submit>",
            "<submit deadline='tomorrow'><description>x</description></submit>",
            "<submit detached='maybe'><description>x</description></submit>",
            "<submit from='writer'><description>x</description></submit>",
            "<submit ><description>x</description><more/></submit>",
        ],
    );
    each::<Get>(&["<get id='ID'/>"], &["<get />", "<get id='x'/>", "<get id=' ID'/>", "<get id='ID'>x</get>"]);
    each::<Accept>(&["<accept id='ID'/>"], &["<accept />", "<accept id='67E55044-10B1-426F-9247-BB680E5FE0C8'/>"]);
    each::<Noted>(&["<noted id='ID'/>"], &["<noted />"]);
    each::<List>(
        &["<list />", "<list status='input-required' after='18446744073709551615'/>"],
        &["<list status='done'/>", "<list after='-1'/>", "<list after='18446744073709551616'/>", "<list >x</list>"],
    );
    each::<Progress>(
        &["<progress id='ID'>half</progress>", "<progress id='ID' percent='100'/>", "<progress id='ID' percent='0'/>"],
        &[
            "<progress id='ID' percent='101'/>",
            "<progress id='ID' percent='-1'/>",
            "<progress percent='1'/>",
            "<progress id='ID'><b/></progress>",
        ],
    );
    each::<ArtifactPayload>(
        &["<artifact id='ID' name='a'/>", "<artifact id='ID' name='a' append='true' last='false'>part</artifact>"],
        &["<artifact id='ID'/>", "<artifact id='ID' name=''/>", "<artifact id='ID' name='a' last='x'/>"],
    );
    each::<Complete>(&["<complete id='ID'/>", "<complete id='ID'>done &lt;x></complete>"], &["<complete />"]);
    each::<Cancel>(&["<cancel id='ID'/>", "<cancel id='ID'>too late</cancel>"], &["<cancel >why</cancel>"]);
    each::<Fail>(&["<fail id='ID'>no</fail>"], &["<fail id='ID'/>", "<fail >no</fail>"]);
    each::<Reject>(&["<reject id='ID'>no</reject>"], &["<reject id='ID'/>"]);
    each::<InputRequired>(&["<input-required id='ID'>which?</input-required>"], &["<input-required id='ID'/>"]);
    each::<Input>(&["<input id='ID'>this</input>"], &["<input id='ID'/>"]);
}

#[test]
fn types_and_document_agree_on_answers() {
    each::<payload::Submitted>(
        &["<submitted id='ID' status='pending' new='true'/>"],
        &["<submitted id='ID' status='pending'/>", "<submitted id='ID' new='true'/>"],
    );
    each::<Changed>(&["<changed id='ID' status='cancelled'/>"], &["<changed id='ID'/>"]);
    each::<Tasks>(
        &[
            "<tasks more='0'/>",
            "<tasks more='1'><brief id='ID' status='pending' place='1' agent='a' job='b'>Read.</brief></tasks>",
        ],
        &["<tasks />", "<tasks more='0'><brief id='ID' status='pending' place='1' agent='a'>Read.</brief></tasks>"],
    );
    let task = |attributes: &str, content: &str| {
        format!(
            "<task id='ID' status='failed' place='1' agent='a' job='b' target='c' created='AT' changed='AT' attempts='2'{attributes}><description>x</description>{content}</task>"
        )
    };
    let valid = [
        task("", ""),
        task(
            " deadline='AT' detached='true'",
            "<context><entry key='k'>v</entry></context><progress at='AT' percent='1'>x</progress><exchange><question>?</question></exchange><exchange><question>?</question><answer>!</answer></exchange><artifact name='n' last='true'>t</artifact><result/><reason>r</reason><undelivered>u</undelivered>",
        ),
    ];
    let invalid = [
        task("", "<progress percent='1'>x</progress>"),
        task("", "<exchange><answer>!</answer></exchange>"),
        task("", "<exchange><question/></exchange>"),
        task("", "<reason/><result/>"),
        task(" owner='me'", ""),
    ];
    each::<TaskPayload>(&valid.each_ref().map(String::as_str), &invalid.each_ref().map(String::as_str));
    each::<ResultPayload>(
        &[
            "<result id='ID' status='completed'><text/></result>",
            "<result id='ID' status='failed'><text>no</text><artifact name='a'>b</artifact></result>",
        ],
        &["<result id='ID' status='completed'/>", "<result id='ID'><text/></result>"],
    );
    each::<Question>(
        &["<question id='ID' number='3'>which?</question>"],
        &["<question id='ID' number='3'/>", "<question id='ID'>which?</question>"],
    );
    each::<EventPayload>(
        &[
            "<event id='ID' number='1' kind='submitted' at='AT'/>",
            "<event id='ID' number='2' kind='progress' at='AT' percent='5'>x</event>",
        ],
        &[
            "<event id='ID' number='1' kind='begun' at='AT'/>",
            "<event id='ID' kind='routed' at='AT'/>",
            "<event id='ID' number='1' kind='routed' at='noon'/>",
        ],
    );
}

#[test]
fn types_and_document_agree_on_a_registry() {
    each::<Submit>(
        &["<submit to='reviews'><description>x</description></submit>"],
        &["<submit to=''><description>x</description></submit>"],
    );
    each::<List>(&["<list job='reviews'/>"], &["<list job='a b'/>"]);
    each::<Register>(
        &[
            "<register job='reviews'><description>Reads.</description></register>",
            "<register job='r'><description>Reads.</description><skill>read</skill><skill>write</skill></register>",
        ],
        &[
            "<register ><description>Reads.</description></register>",
            "<register job='r'/>",
            "<register job='r'><description/></register>",
            "<register job='r'><description>Reads.</description><skill/></register>",
            "<register job='r' owner='me'><description>Reads.</description></register>",
        ],
    );
    each::<Remove>(&["<remove job='r'/>"], &["<remove />", "<remove job='r'>x</remove>"]);
    each::<Find>(
        &["<find />", "<find job='r' skill='read' after='a'/>"],
        &["<find skill=''/>", "<find name='r'/>", "<find >x</find>"],
    );
    each::<Registered>(&["<registered job='r' pending='0'/>"], &["<registered job='r'/>"]);
    each::<Removed>(&["<removed job='r' pending='4294967295'/>"], &["<removed pending='1'/>"]);
    each::<JobsPayload>(
        &[
            "<jobs more='0'/>",
            "<jobs more='1'><job name='r'><description>Reads.</description><skill>read</skill></job></jobs>",
        ],
        &["<jobs />", "<jobs more='0'><job name='r'/></jobs>", "<jobs more='0'><job><description/></job></jobs>"],
    );
}

#[test]
fn a_context_of_any_element_goes_both_ways() {
    let element = "<p:order xmlns:p=\"urn:o\"><item xmlns=\"urn:systole:task:v1\"><xml></xml></item>x &amp; y<plain></plain></p:order>";
    for text in
        [element, "<order><context><xml><a></a></xml></context></order>", "<a xmlns=\"urn:systole:task:v1\"></a>"]
    {
        let context = TaskContext::xml(text).unwrap();
        let submit = Submit::new("Read.").with_context(&context);
        let error = encode(&submit).unwrap_err();
        assert!(error.to_string().contains("write()"), "never sent without its element: {error}");
        let written = submit.write().unwrap();
        let payload = validator(PayloadSchema::of::<Submit>().unwrap()).validate(written.clone()).unwrap();
        let read: Submit = decode(&payload).unwrap();
        assert_eq!(read.context.as_ref().unwrap().xml, Some(XmlContext::Unread));
        let read = read.read_context(&written).unwrap();
        assert_eq!(read, submit);

        let mut inbox = inbox();
        let submission = Submission { context: context.clone(), ..Submission::new("drafts", "Read.") };
        let _ = inbox.submit(&writer(), submission, id(1), at(1)).unwrap();
        let task = TaskPayload::from(inbox.get(id(1)).unwrap());
        let written = task.write().unwrap();
        let payload = validator(PayloadSchema::of::<TaskPayload>().unwrap()).validate(written.clone()).unwrap();
        assert_eq!(decode::<TaskPayload>(&payload).unwrap().read_context(&written).unwrap(), task);
        let Some(XmlContext::Element(xml)) = task.context.unwrap().xml else { panic!("no element") };
        assert_eq!(xml.as_str(), text);
    }
    let hand_written = |context: &str| {
        let text = format!(
            "<submit xmlns='urn:systole:task:v1'><description>x</description><context>{context}</context></submit>"
        );
        validator(PayloadSchema::of::<Submit>().unwrap()).validate(canonical(&text)).is_ok()
    };
    assert!(hand_written("<xml><a xmlns='urn:a'/></xml>"));
    assert!(!hand_written("<xml></xml>") && !hand_written("<xml><a/><b/></xml>") && !hand_written("<xml>text</xml>"));
    assert!(!hand_written("<entry key='a'/><xml><a/></xml>") && !hand_written("<a xmlns='urn:a'/>"));
}
