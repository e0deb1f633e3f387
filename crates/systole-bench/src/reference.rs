//! References for the stages: libxml2 and quick-xml on the same bytes.
//!
//! It uses libxml directly, because the pump never parses, canonicalizes and validates with it in one go, as a pump
//! built on libxml2 would.

use libxml::parser::{Parser, ParserOptions};
use libxml::schemas::{SchemaParserContext, SchemaValidationContext};
use libxml::tree::Document;
use libxml::tree::c14n::CanonicalizationOptions;
use quick_xml::XmlVersion;
use quick_xml::events::Event;
use quick_xml::reader::Reader;
use serde::Deserialize;
use serde::de::DeserializeOwned;

const ENVELOPE: &str = include_str!("../schemas/envelope.xsd");

/// libxml2 with the compiled schemas of one kind of message.
pub(super) struct Libxml {
    parser: Parser,
    envelope: SchemaValidationContext,
    payload: SchemaValidationContext,
}

impl Libxml {
    /// Compiles the schema of a payload and that of envelopes.
    ///
    /// # Panics
    /// If a schema of the benchmarks is invalid.
    pub(super) fn new(payload: &str) -> Self {
        let compiled = |schema: &str| {
            let mut parser = SchemaParserContext::from_buffer(schema);
            SchemaValidationContext::from_parser(&mut parser).expect("the schemas of the benchmarks are schemas")
        };
        Self { parser: Parser::default(), envelope: compiled(ENVELOPE), payload: compiled(payload) }
    }

    pub(super) fn parse(&self, message: &[u8]) -> Document {
        let strict = ParserOptions { recover: false, no_net: true, ..ParserOptions::default() };
        self.parser.parse_string_with_options(message, strict).expect("the samples are well-formed")
    }

    /// The exclusive canonical form without comments.
    pub(super) fn canonicalize(document: &Document) -> String {
        document.canonicalize(CanonicalizationOptions::default(), None).expect("what was parsed has a canonical form")
    }

    /// Validates the envelope by its schema, then the payload by its own.
    pub(super) fn validate(&mut self, document: &Document) {
        self.envelope.validate_document(document).expect("the samples keep the envelope schema");
        self.validate_payload(document);
    }

    /// Validates the payload alone by its schema.
    pub(super) fn validate_payload(&mut self, document: &Document) {
        let payload = document.get_root_element().and_then(|message| message.get_last_element_child());
        self.payload.validate_node(&payload.expect("a message has a payload")).expect("the samples keep their schema");
    }
}

/// A message as quick-xml's serde deserializes it.
#[derive(Deserialize)]
#[expect(dead_code, reason = "reading them is what is measured")]
pub(super) struct Message<T> {
    meta: Meta,
    #[serde(rename = "$value")]
    payload: T,
}

/// The metadata of a message.
#[derive(Deserialize)]
#[expect(dead_code, reason = "reading them is what is measured")]
pub(super) struct Meta {
    from: String,
    to: Option<String>,
    thread: Option<String>,
}

/// Deserializes a whole message with quick-xml's serde.
pub(super) fn deserialize<T: DeserializeOwned>(message: &str) -> Message<T> {
    quick_xml::de::from_str(message).expect("the samples are what they say")
}

/// Reads all events of quick-xml, with the names and values of all attributes and the text. Returns a number that
/// depends on all of them, so that the work isn't optimized away.
pub(super) fn tokenize(message: &str) -> usize {
    let mut reader = Reader::from_str(message);
    let mut seen = 0;
    loop {
        match reader.read_event().expect("the samples are well-formed") {
            Event::Start(start) | Event::Empty(start) => {
                seen += start.name().as_ref().len();
                for attribute in start.attributes() {
                    let attribute = attribute.expect("the samples are well-formed");
                    let value = attribute.normalized_value(XmlVersion::Implicit1_0);
                    seen += attribute.key.as_ref().len() + value.expect("the samples have no entities").len();
                }
            }
            Event::Text(text) => seen += text.xml10_content().len(),
            Event::Eof => return seen,
            _ => seen += 1,
        }
    }
}
