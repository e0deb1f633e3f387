//! Agents written for another platform's SDK, Molecule AI's, unmodified: its calls over HTTP as a façade over the gateway.
//!
//! A workspace of that platform is a remote listener that is polled. What is said travels as `said`
//! (`schemas/chat.xsd`) through the pump, judged like everything: to a workspace it comes as a message of its mailbox,
//! which the workspace sees as a row of its activity; what the workspace says back answers the oldest such row that
//! waits, and what it says of its own accord opens a conversation, by a client of its own (`NAME.voice`).
//!
//! Always: whoever asks shows a token of the gateway, and a workspace reads and answers its own rows alone; a row's id is
//! the id of its message, which a restart doesn't change; nothing is acknowledged before it is durable.
//!
//! Not here: secrets, plugins, delegations and files of that platform. `docs/molecule.md` has the calls.

mod a2a;
mod activity;
mod ids;
mod notify;
mod people;
mod registry;
mod room;
mod rows;
mod rpc;
mod said;
mod turns;

use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

use axum::Extension;
use axum::routing::{get, post};

use crate::core::Blueprint;
use crate::gateway::Gateway;
use crate::gateway::seam::Routes;
use crate::schema::{Payload, PayloadSchema};
use crate::vocab::{Name, QName};
use people::People;
pub(crate) use people::voice;
pub use said::{Said, Speaker};
use turns::Turns;

/// What all of its calls know.
struct Facade {
    people: People,
    turns: Turns,
}

/// The name of the payload in which text travels.
pub(crate) fn said() -> QName {
    Said::qname()
}

/// The schemas that come with it, from `schemas/chat.xsd`.
pub(crate) fn schemas() -> &'static [PayloadSchema] {
    static ALL: LazyLock<Vec<PayloadSchema>> = LazyLock::new(|| {
        // The document is part of the program, and its tests compile it.
        PayloadSchema::from_xsd("chat.xsd", include_str!("../../schemas/chat.xsd")).expect("chat.xsd compiles")
    });
    &ALL
}

/// Serves the workspaces of an organism by way of its gateway.
pub(crate) fn serve(gateway: Gateway, blueprint: &Blueprint) -> Gateway {
    let people = People::of(blueprint);
    let letters: HashMap<Name, Name> = people.voices().collect();
    let facade = Facade { people, turns: Turns::default() };
    gateway.with_letters(letters).with_routes(routes().layer(Extension(Arc::new(facade))))
}

fn routes() -> Routes {
    Routes::new()
        .route("/registry/register", post(registry::register))
        .route("/registry/heartbeat", post(registry::heartbeat))
        .route("/registry/discover/{id}", get(registry::discover))
        .route("/registry/{id}/peers", get(registry::peers))
        .route("/workspaces/{id}/state", get(registry::state))
        .route("/workspaces/{id}/activity", get(activity::list))
        .route("/workspaces/{id}/notify", post(notify::notify))
        .route("/workspaces/{id}/a2a", post(a2a::send))
}
