//! Allocations of a clean message on the ladder: only the memory that the result owns.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use systole_xml::ladder::strict::canonicalize;
use systole_xml::ladder::{Canonical, Envelope, Raw, parse};
use systole_xml::schema::{Catalog, Payload, PayloadSchema, Validator, decode};
use systole_xml::vocab::XmlLimits;

use crate::counting::{BYTES, COUNT};

const SCHEMA: &str = r###"<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema" xmlns:t="urn:t" targetNamespace="urn:t" elementFormDefault="qualified">
  <xs:element name="list"><xs:complexType><xs:choice maxOccurs="unbounded">
    <xs:element name="row"><xs:complexType><xs:sequence>
        <xs:element name="name" type="xs:string"/><xs:element name="count" type="xs:unsignedInt" maxOccurs="100"/><xs:element name="price" type="xs:double" minOccurs="0"/>
      </xs:sequence><xs:attribute name="unit" use="required"><xs:simpleType><xs:restriction base="xs:string"><xs:enumeration value="m"/><xs:enumeration value="km"/></xs:restriction></xs:simpleType></xs:attribute>
      <xs:attribute name="id" type="xs:ID"/></xs:complexType></xs:element>
    <xs:element name="any"><xs:complexType><xs:all><xs:element name="on" type="xs:boolean"/><xs:element name="at" type="xs:dateTime" nillable="true"/></xs:all></xs:complexType></xs:element>
    <xs:element name="mixed"><xs:complexType mixed="true"><xs:sequence><xs:any processContents="lax" minOccurs="0" maxOccurs="unbounded"/></xs:sequence></xs:complexType></xs:element>
  </xs:choice></xs:complexType></xs:element>
</xs:schema>"###;

fn payload(rows: usize) -> Canonical {
    let row = |number: usize| {
        format!(
            "<row unit='km' id='i{number}'><name>a&amp;b &lt;{number}&gt;</name><count>{number}</count><count>7</count><price>1.5E3</price></row>\
             <any><at xmlns:xsi='http://www.w3.org/2001/XMLSchema-instance' xsi:nil='true'/><on>true</on></any>\
             <mixed>text<p:x xmlns:p='urn:p' a='1'>more<p:y/></p:x>&#xD;</mixed>"
        )
    };
    let rows: String = (0..rows).map(row).collect();
    let limits = XmlLimits::default().message_bytes(16 << 20);
    canonicalize(&format!("<list xmlns='urn:t'>{rows}</list>").into(), &limits).expect("it is well-formed")
}

fn validator(schema: &str) -> Validator {
    let schemas = PayloadSchema::from_xsd("t.xsd", schema).expect("it is a schema");
    Validator::new(Arc::new(Catalog::only(schemas)))
}

/// The allocations of a validation, with the memory warmed up that the validator keeps between payloads.
fn allocations(validator: &mut Validator, payload: &Canonical) -> usize {
    for _ in 0..2 {
        validator.validate(payload.clone()).expect("it is valid");
    }
    let before = COUNT.get();
    let proof = validator.validate(payload.clone());
    let count = COUNT.get() - before;
    proof.expect("it is valid");
    count
}

#[test]
fn a_valid_payload_costs_the_same_allocations_however_many_elements_it_has() {
    let mut validator = validator(SCHEMA);
    let [few, many] = [10, 1_000].map(|rows| allocations(&mut validator, &payload(rows)));
    assert_eq!(few, many);
    assert!(many <= 2, "{many} allocations");
}

/// A schema with `constraints` on elements `r`, and a payload of elements `a` with these values of `b` inside of
/// `depth` elements `r`.
fn keyed(constraints: &str, depth: usize, each: &[String]) -> (Validator, Canonical) {
    let schema = format!(
        "<xs:schema xmlns:xs='http://www.w3.org/2001/XMLSchema' xmlns:t='urn:t' targetNamespace='urn:t' elementFormDefault='qualified'>
           <xs:element name='r'><xs:complexType><xs:choice minOccurs='0' maxOccurs='unbounded'><xs:element ref='t:r'/>
             <xs:element name='a'><xs:complexType><xs:attribute name='b'/><xs:attribute name='c'/></xs:complexType></xs:element>
           </xs:choice></xs:complexType>{constraints}</xs:element></xs:schema>"
    );
    let each: String = each.iter().map(|b| format!("<a b='{b}' c=''/>")).collect();
    let limits = XmlLimits::default().message_bytes(64 << 20);
    let (open, close) = ("<r xmlns='urn:t'>".repeat(depth), "</r>".repeat(depth));
    (validator(&schema), canonicalize(&format!("{open}{each}{close}").into(), &limits).expect("it is well-formed"))
}

fn unique(number: usize, fields: &str) -> String {
    let fields: String = fields.split(' ').map(|field| format!("<xs:field xpath='{field}'/>")).collect();
    format!("<xs:unique name='u{number}'><xs:selector xpath='.//t:a'/>{fields}</xs:unique>")
}

#[test]
fn keys_take_no_more_memory_than_their_bound() {
    let numbers = |most: usize| (0..most).map(|i| i.to_string()).collect::<Vec<_>>();
    let long: Vec<String> = (0..40).map(|i| format!("{i}{}", "x".repeat(20_000))).collect();
    let constraints = |most: usize, fields| (0..most).map(|i| unique(i, fields)).collect::<String>();
    for (constraints, depth, each, refused) in [
        // One entry per constraint and value, and per scope and value.
        (constraints(1_000, "@b"), 1, numbers(5_000), Some("more steps")),
        (constraints(1, "@b"), 100, numbers(20_000), Some("more steps")),
        // Keys of several fields, which are joined texts.
        (constraints(100, "@b @c"), 1, long.clone(), Some("more than 33554432 bytes")),
        // One text that all constraints share.
        (constraints(100, "@b"), 1, long, None),
        (constraints(5, "@b"), 10, numbers(2_000), None),
        (constraints(1, "@b"), 1, numbers(100_000), None),
    ] {
        let (mut validator, payload) = keyed(&constraints, depth, &each);
        let (held, _) = BYTES.get();
        BYTES.set((held, held));
        let judged = validator.validate(payload.clone());
        let most = BYTES.get().1 - held;
        match (judged, refused) {
            (Ok(_), None) => {}
            (Err(error), Some(clause)) => assert!(error.to_string().contains(clause), "{error}"),
            (judged, _) => panic!("{} constraints, {depth} deep: {judged:?}", constraints.matches("name=").count()),
        }
        assert!(most < 40 << 20, "{most} bytes for {} bytes", payload.as_str().len());
        validator.validate(keyed("", 1, &[]).1).expect("it is valid");
        let kept = BYTES.get().0 - held;
        assert!(kept < 2 << 20, "{kept} bytes are kept for the next payloads");
    }
}

/// A payload with texts, numbers, attributes and a list.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
struct Order {
    /// The customer.
    customer: String,
    /// Set for an urgent order.
    express: bool,
    /// The price of all items.
    total: f64,
    /// The ordered items.
    #[serde(default)]
    item: Vec<Item>,
}

/// A line of an order.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
struct Item {
    /// The line number.
    #[serde(rename = "@line")]
    line: u32,
    /// The unit of the quantity.
    #[serde(rename = "@unit")]
    unit: String,
    /// The name of the item.
    name: String,
}

impl Payload for Order {
    const NAMESPACE: &'static str = "urn:t";
    const ROOT: &'static str = "order";
}

/// A message in canonical form except for the quotes of its attributes.
fn message(quote: char) -> Raw {
    let item = |line: usize| {
        format!("<item line={quote}{line}{quote} unit={quote}piece{quote}><name>hinge &amp; screws</name></item>")
    };
    let items: String = (0..4).map(item).collect();
    Raw::new(format!(
        "<message xmlns=\"https://xml-pipeline.org/ns/envelope/v1\"><meta><from>cli</from><to>front</to>\
         <thread>67e55044-10b1-426f-9247-bb680e5fe0c8</thread></meta><order xmlns=\"urn:t\"><customer>ada</customer>\
         <express>true</express><total>402.5</total>{items}</order></message>"
    ))
}

/// Takes a message up the ladder: strict pass, canonical form, validation of envelope and payload, decoding. Returns
/// the value and the number of allocations.
fn way_up(raw: &Raw, validator: &mut Validator) -> (Order, usize) {
    let limits = XmlLimits::default();
    let before = COUNT.get();
    let message = parse(raw, &limits).expect("it is well-formed");
    let envelope = Envelope::open(message).expect("it is an envelope");
    let proof = validator.validate(envelope.payload().clone()).expect("it is valid");
    let order = decode::<Order>(&proof).expect("it is an order");
    (order, COUNT.get() - before)
}

#[test]
fn a_clean_message_allocates_what_it_owns() {
    let mut validator = Validator::new(Arc::new(Catalog::only([PayloadSchema::of::<Order>().unwrap()])));
    // The handle of the message, which becomes the handle of its payload.
    let owned = 1;
    // Bytes that are not canonical are written once, and shared by message and payload.
    for (quote, written) in [('"', 0), ('\'', 2)] {
        let raw = message(quote);
        for _ in 0..2 {
            way_up(&raw, &mut validator);
        }
        let (order, allocations) = way_up(&raw, &mut validator);
        let before = COUNT.get();
        let again = order.clone();
        let own = COUNT.get() - before;
        assert_eq!(again, order);
        assert_eq!(allocations, own + owned + written, "{quote}");
        assert_eq!(own, 1 + 1 + 4 * 2, "a clone allocates what the value owns");
    }
}

#[test]
fn the_schema_of_a_type_is_made_once() {
    let first = PayloadSchema::of::<Order>().unwrap();
    let before = COUNT.get();
    let again: Vec<PayloadSchema> = (0..100).map(|_| PayloadSchema::of::<Order>().unwrap()).collect();
    assert_eq!(COUNT.get() - before, 1, "allocations, one for the list of them");
    assert!(again.iter().all(|schema| std::ptr::eq(schema.document(), first.document())));
}

#[test]
fn the_counter_does_count() {
    let before = COUNT.get();
    let text = std::hint::black_box("a".repeat(100));
    assert_eq!((COUNT.get() - before, text.len()), (1, 100));
}
