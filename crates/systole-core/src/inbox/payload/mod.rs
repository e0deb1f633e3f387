//! Tasks in XML: the payloads of `schemas/task.xsd`, namespace `urn:systole:task:v1`.
//!
//! Each is an ordinary [`Payload`]. A context that is an element of any name has no Rust type: a payload with one is
//! sent with its `write` and read with its `read`.

mod answers;
mod context;
mod registry;
mod requests;

use std::sync::LazyLock;

use schemars::{Schema, SchemaGenerator, json_schema};

pub use answers::{
    Brief, Changed, EventPayload, Noted, ProgressPayload, Question, ResultPayload, ResultPiece, Submitted,
};
pub use answers::{ExchangePayload, TaskPayload, Tasks};
pub use context::{ContextPayload, EntryPayload, WriteError, XmlContext};
pub use registry::{Find, JobPayload, JobsPayload, Register, Registered, Remove, Removed};
pub use requests::Submit;
pub use requests::{
    Accept, ArtifactPayload, Cancel, Complete, Fail, Get, Input, InputRequired, List, Progress, Reject,
};

use crate::protocol::answered_by;
use crate::vocab::QName;
use systole_xml::schema::{ContractError, Payload, PayloadSchema};

/// The namespace of tasks.
pub const NAMESPACE: &str = "urn:systole:task:v1";

/// The schemas of all payloads about tasks, from `schemas/task.xsd`: for contracts without Rust types.
pub fn schemas() -> &'static [PayloadSchema] {
    static ALL: LazyLock<Vec<PayloadSchema>> = LazyLock::new(|| {
        // The document is part of the program, and its tests compile it.
        PayloadSchema::from_xsd("task.xsd", include_str!("../../../schemas/task.xsd")).expect("task.xsd compiles")
    });
    &ALL
}

fn contract(payload: &QName) -> Result<PayloadSchema, ContractError> {
    let known = schemas().iter().find(|schema| schema.qname() == payload);
    known.cloned().ok_or_else(|| ContractError::Reserved { payload: payload.clone() })
}

macro_rules! payloads {
    ($($type:ty: $root:literal;)*) => {
        $(impl Payload for $type {
            const NAMESPACE: &'static str = NAMESPACE;
            const ROOT: &'static str = $root;

            fn contract() -> Result<PayloadSchema, ContractError> {
                contract(&Self::qname())
            }
        })*
    };
}

payloads! {
    Submit: "submit";
    Cancel: "cancel";
    Input: "input";
    Noted: "noted";
    Get: "get";
    List: "list";
    Accept: "accept";
    Progress: "progress";
    ArtifactPayload: "artifact";
    InputRequired: "input-required";
    Complete: "complete";
    Fail: "fail";
    Reject: "reject";
    Submitted: "submitted";
    Changed: "changed";
    Tasks: "tasks";
    TaskPayload: "task";
    ResultPayload: "result";
    Question: "question";
    EventPayload: "event";
    Register: "register";
    Remove: "remove";
    Find: "find";
    Registered: "registered";
    Removed: "removed";
    JobsPayload: "jobs";
}

// A submit is answered by a result, or by submitted where it is detached.
answered_by! {
    Cancel: Changed;
    Input: Changed;
    Get: TaskPayload;
    List: Tasks;
    Accept: Changed;
    Progress: Changed;
    ArtifactPayload: Changed;
    InputRequired: Changed;
    Complete: Changed;
    Fail: Changed;
    Reject: Changed;
    ResultPayload: Noted;
    Question: Input;
    EventPayload: Noted;
    Register: Registered;
    Remove: Removed;
    Find: JobsPayload;
}

/// The JSON Schema of a task's id.
fn id(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "string",
        "pattern": "^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$",
        "examples": ["67e55044-10b1-426f-9247-bb680e5fe0c8", "0b2a8b5e-7f0c-4d9e-8a51-3c6f1e2d4b7a"],
    })
}

/// The JSON Schema of a name.
fn name(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "string", "pattern": r"^[A-Za-z0-9_.\-]{1,128}$", "examples": ["reviews", "drafts"] })
}

/// The JSON Schema of a date and time.
fn date_time(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "string", "format": "date-time" })
}

/// Returns whether an attribute that is false by default can be left out.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes fields by reference")]
const fn is_false(value: &bool) -> bool {
    !*value
}
