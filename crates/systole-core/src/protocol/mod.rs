//! Layer 1, the payloads that the pump itself speaks: boot, faults, fan-out-ended, and the meta namespace.
//!
//! The shapes are those of `schemas/core.xsd` and `schemas/meta.xsd`, which every [`Catalog`] knows. Payloads written
//! here keep them; requests are read without them, because the core answers while all else is busy.
//!
//! [`Catalog`]: systole_xml::schema::Catalog

mod answer;
mod boot;
mod fault;
mod reader;
mod reply;
mod request;
mod summary;
mod typed;
mod writer;

pub use answer::MetaAnswer;
pub use boot::{Boot, FanOutEnded, boot_qname, fan_out_ended_qname, write_fan_out_ended};
pub use fault::{
    FaultError, agent_error_qname, fault_decoder, is_fault, read_fault, refused_qname, system_error_qname, write_fault,
    write_refused,
};
pub use reader::{MetaError, MetaProblem};
pub use reply::Request;
pub(crate) use reply::answered_by;
pub use request::MetaRequest;
pub use summary::{first_of_summary, summary_qname, write_summary};
pub use typed::{
    Capabilities, Capability, ClearContext, CloseThread, ContextCleared, ListCapabilities, Prompt, RequestExample,
    RequestPrompt, RequestSchema, ThreadSpawned,
};
pub(crate) use typed::{display, display_option};
pub(crate) use writer::embedded;
