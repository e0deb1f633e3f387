//! Agents written for another platform's SDK, Molecule AI's, unmodified: its calls over HTTP as a façade over the gateway.
//!
//! A workspace of that platform is a remote listener that polls or is pushed to. Text travels as `said`
//! (`schemas/chat.xsd`) through the pump, judged like everything: to a workspace it comes as a message of its mailbox,
//! which the workspace sees as a row of its activity; what the workspace sends to that row answers it, and what it
//! sends to a listener opens a conversation, by a client of its own (`NAME.voice`).
//!
//! Always: a request has a token of the gateway, and a workspace reads and answers its own rows alone; an answer
//! reaches the sender of the row that it names, or is refused; a row's id is the id of its message, which a restart
//! doesn't change; nothing is acknowledged before it is durable.
//!
//! Not here: plugins, files and secrets of agents, of which there are none. `docs/molecule.md` has the calls.

mod a2a;
mod activity;
mod ids;
mod last_calls;
mod notify;
mod parties;
mod push;
mod registry;
mod row_references;
mod rows;
mod rpc;
mod said;
mod shown_rows;
mod unsupported;
mod workspace_request;

use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

use axum::http::StatusCode;
use serde_json::json;

use crate::gateway::Gateway;
use crate::gateway::facade::{Call, schema};
pub(crate) use ids::id_of;
use last_calls::LastCalls;
use parties::Parties;
pub(crate) use parties::voice;
pub use said::{Said, Speaker};
use shown_rows::ShownRows;
use systole_core::core::Blueprint;
use systole_core::vocab::{Name, QName};
use systole_xml::schema::{Payload, PayloadSchema};

/// State that all calls share.
struct Facade {
    parties: Parties,
    shown_rows: ShownRows,
    last_calls: LastCalls,
}

/// The name of the payload in which text travels.
pub(crate) fn said() -> QName {
    Said::qname()
}

/// The schemas of the façade, from `schemas/chat.xsd`.
pub(crate) fn schemas() -> &'static [PayloadSchema] {
    static ALL: LazyLock<Vec<PayloadSchema>> = LazyLock::new(|| {
        // The document is part of the program, and its tests compile it.
        PayloadSchema::from_xsd("chat.xsd", include_str!("../../schemas/chat.xsd")).expect("chat.xsd compiles")
    });
    &ALL
}

/// Serves the workspaces of an organism by way of its gateway.
pub fn serve(gateway: Gateway, blueprint: &Blueprint) -> Gateway {
    let parties = Parties::of(blueprint);
    let mailboxes: HashMap<Name, Name> = parties.voices().collect();
    let facade = Arc::new(Facade { parties, shown_rows: ShownRows::default(), last_calls: LastCalls::default() });
    let gateway =
        gateway.with_removal_notice(registry::is_state).with_answer_mailboxes(mailboxes).with_format(facade.clone());
    gateway.with_calls(calls(), facade)
}

/// All calls of the façade, with their descriptions.
fn calls() -> Vec<Call> {
    let of_none = |call: Call| call.refuses(&[403, 404]);
    vec![
        Call::post("/registry/register", registry::register)
            .about("molecule", "A workspace says that it is there. Without a token nothing is read or changed.")
            .token_optional()
            .takes::<registry::Registration>()
            .answers::<registry::Registered>(StatusCode::OK, "Done.")
            .refuses(&[403]),
        Call::post("/registry/heartbeat", registry::heartbeat)
            .about("molecule", "A workspace is alive, and hears whether to rest.")
            .takes::<registry::Heartbeat>()
            .answers::<registry::Alive>(StatusCode::OK, "Done.")
            .refuses(&[403, 404]),
        Call::get("/registry/discover/{id}", registry::discover)
            .about("molecule", "One who takes what is said.")
            .answers::<registry::Peer>(StatusCode::OK, "Done.")
            .refuses(&[403, 404]),
        Call::get("/registry/{id}/peers", registry::peers)
            .about("molecule", "All others who take what is said.")
            .answers::<Vec<registry::Peer>>(StatusCode::OK, "Done.")
            .refuses(&[403, 404]),
        Call::get("/workspaces/{id}/state", registry::state)
            .about("molecule", "Whether a workspace is to work.")
            .answers::<registry::WorkspaceState>(StatusCode::OK, "Done.")
            .refuses(&[403, 404]),
        Call::get("/workspaces/{id}/activity", activity::list)
            .about("molecule", "What came for a workspace, oldest first.")
            .query::<String>("type", "`a2a_receive` or `error`.")
            .query::<u64>("limit", "Rows of a page.")
            .query::<String>("since_id", "Rows behind this one.")
            .query::<u64>("since_secs", "No older than so many seconds.")
            .query::<String>("peer_id", "From that listener: a UUID.")
            .query::<String>("before_ts", "Before that date and time (RFC 3339).")
            .answers_json("Done.", |_| schema(json!({ "type": "array", "items": { "type": "object" } })))
            .refuses(&[403, 404])
            .refuses_because(410, "The cursor is lost: the messages behind it are forgotten."),
        of_none(
            Call::post("/workspaces/{id}/activity", unsupported::not_found)
                .about("molecule", "Nothing of what agents do is logged: 404."),
        ),
        of_none(
            Call::get("/workspaces/{id}/plugins", unsupported::empty_list)
                .about("molecule", "Plugins of a workspace: none are kept.")
                .answers_json("Done.", |_| schema(json!({ "type": "array", "maxItems": 0 }))),
        ),
        of_none(
            Call::post("/workspaces/{id}/plugins", unsupported::not_found)
                .about("molecule", "Nothing is recorded: 404."),
        ),
        of_none(
            Call::get("/workspaces/{id}/plugins/{name}/download", unsupported::not_found)
                .about("molecule", "No plugin is kept: 404."),
        ),
        of_none(
            Call::get("/workspaces/{id}/files", unsupported::empty_list)
                .about("molecule", "Files of a workspace: none are kept.")
                .answers_json("Done.", |_| schema(json!({ "type": "array", "maxItems": 0 }))),
        ),
        Call::post("/workspaces/{id}/notify", notify::notify)
            .about("molecule", "Answer a person.")
            .takes::<notify::Notice>()
            .answers::<notify::Notified>(StatusCode::OK, "Done.")
            .refuses(&[403, 404, 409, 422]),
        Call::post("/workspaces/{id}/a2a", a2a::send)
            .about(
                "molecule",
                "Say something to a listener, or answer the row of that id: JSON-RPC 2.0, `message/send`.",
            )
            .takes_json(|_| schema(rpc::request_schema()))
            .answers_json("Done.", |_| schema(rpc::answer_schema()))
            .refuses(&[403, 404, 409, 422]),
        Call::post("/workspaces/{id}/delegate", a2a::delegate)
            .about("molecule", "A workspace has a peer do something: it opens a conversation.")
            .takes::<a2a::Delegation>()
            .answers::<a2a::Delegated>(StatusCode::OK, "Done.")
            .refuses(&[403, 404, 409, 422]),
        of_none(
            Call::get("/workspaces/{id}/secrets/values", registry::secrets)
                .about("molecule", "Secrets of a workspace: none are kept.")
                .answers_json("Done.", |_| {
                    schema(json!({ "type": "object", "additionalProperties": { "type": "string" } }))
                }),
        ),
    ]
}
