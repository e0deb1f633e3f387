//! The Model Context Protocol: the organism as a server (`server`) for hosts, over HTTP and over standard input and output.
//!
//! A tool is a payload that a client calls; arguments and results are JSON by the mapping of its schema, and all judgement is
//! the gateway's. What the protocol carries beyond typed payloads, such as images, is the payload `content` of [`content`].
//! `docs/mcp.md` describes it for operators.

pub mod client;
pub mod content;
pub mod server;

use std::sync::LazyLock;

use systole_xml::schema::PayloadSchema;

pub use crate::listeners::mcp::NAMESPACE;

/// The schemas of the protocol's own payloads, from `schemas/mcp.xsd`.
pub(crate) fn schemas() -> &'static [PayloadSchema] {
    static ALL: LazyLock<Vec<PayloadSchema>> = LazyLock::new(|| {
        // The document is part of the program, and its tests compile it.
        PayloadSchema::from_xsd("mcp.xsd", include_str!("../../schemas/mcp.xsd")).expect("mcp.xsd compiles")
    });
    &ALL
}
