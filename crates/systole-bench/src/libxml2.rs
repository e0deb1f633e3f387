//! References for the stages: libxml2 on the same bytes (feature `libxml`).
//!
//! It uses libxml directly, because the pump never parses, canonicalizes and validates with it in one go, as a pump
//! built on libxml2 would.

use libxml::parser::{Parser, ParserOptions};
use libxml::schemas::{SchemaParserContext, SchemaValidationContext};
use libxml::tree::Document;
use libxml::tree::c14n::CanonicalizationOptions;

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
