//! The namespaces of Systole and of the standards that it reads.

/// Envelopes: `<message>`, `<meta>`, `<from>`, `<to>`, `<thread>`.
pub const ENVELOPE: &str = "https://xml-pipeline.org/ns/envelope/v1";
/// Requests to the core and the answers of the core.
pub const META: &str = "https://xml-pipeline.org/ns/meta/v1";
/// Messages that the pump makes itself: `<boot>`, faults, `<fan-out-ended>`.
pub const CORE: &str = "https://xml-pipeline.org/ns/core/v1";
/// Systole's metadata inside `<meta>`: `id`, `in-reply-to`, `deadline`, `budget`, `traceparent`.
pub const SYSTOLE_META: &str = "urn:systole:meta:v1";
/// The namespace that the prefix `xml` is always bound to.
pub const XML: &str = "http://www.w3.org/XML/1998/namespace";
/// The namespace that the prefix `xmlns` is always bound to.
pub const XMLNS: &str = "http://www.w3.org/2000/xmlns/";
/// XML Schema.
pub const XSD: &str = "http://www.w3.org/2001/XMLSchema";
/// The namespace of XLink 1.1.
pub const XLINK: &str = "http://www.w3.org/1999/xlink";
/// `xsi:type`, `xsi:nil` and the schema location hints, which Systole never follows.
pub const XSI: &str = "http://www.w3.org/2001/XMLSchema-instance";
/// JSON values as XML: the functions and operators of XPath, whose `json-to-xml` makes them (XSLT 3.0, section 22).
pub const JSON: &str = "http://www.w3.org/2005/xpath-functions";
/// Attributes of element declarations in XML Schema that tell the JSON of the element: `key` and `array`.
pub const JSON_FORM: &str = "urn:systole:json:v1";
/// XML Signature (XML-Signature Syntax and Processing 1.1).
pub const DSIG: &str = "http://www.w3.org/2000/09/xmldsig#";
/// The elements that version 1.1 of XML Signature adds.
pub const DSIG11: &str = "http://www.w3.org/2009/xmldsig11#";
/// Transcripts of conversations, version 1: the elements of their files, and the signed payload of their heads.
pub const TRANSCRIPT: &str = "urn:systole:transcript:v1";
