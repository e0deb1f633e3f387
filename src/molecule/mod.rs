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

use axum::Extension;
use axum::http::Method;
use axum::routing::{MethodRouter, get, post};

use crate::gateway::Gateway;
use crate::gateway::facade::{AppState, Routes};
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
    gateway.with_routes(routes().layer(Extension(facade)), DESCRIPTION)
}

/// The description of the façade's calls, for `/openapi.json`.
const DESCRIPTION: &str = include_str!("openapi.json");

/// Every route: path, method, handler. The description names these and no others.
fn calls() -> [(&'static str, Method, MethodRouter<Arc<AppState>>); 15] {
    [
        ("/registry/register", Method::POST, post(registry::register)),
        ("/registry/heartbeat", Method::POST, post(registry::heartbeat)),
        ("/registry/discover/{id}", Method::GET, get(registry::discover)),
        ("/registry/{id}/peers", Method::GET, get(registry::peers)),
        ("/workspaces/{id}/state", Method::GET, get(registry::state)),
        ("/workspaces/{id}/activity", Method::GET, get(activity::list)),
        ("/workspaces/{id}/activity", Method::POST, post(unsupported::not_found)),
        ("/workspaces/{id}/plugins", Method::GET, get(unsupported::empty_list)),
        ("/workspaces/{id}/plugins", Method::POST, post(unsupported::not_found)),
        ("/workspaces/{id}/plugins/{name}/download", Method::GET, get(unsupported::not_found)),
        ("/workspaces/{id}/files", Method::GET, get(unsupported::empty_list)),
        ("/workspaces/{id}/notify", Method::POST, post(notify::notify)),
        ("/workspaces/{id}/a2a", Method::POST, post(a2a::send)),
        ("/workspaces/{id}/delegate", Method::POST, post(a2a::delegate)),
        ("/workspaces/{id}/secrets/values", Method::GET, get(registry::secrets)),
    ]
}

fn routes() -> Routes {
    calls().into_iter().fold(Routes::new(), |routes, (path, _, method)| routes.route(path, method))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn the_description_names_each_call_and_no_other() {
        let document: serde_json::Value = serde_json::from_str(DESCRIPTION).unwrap();
        let described: BTreeSet<_> = document["paths"]
            .as_object()
            .unwrap()
            .iter()
            .flat_map(|(path, item)| item.as_object().unwrap().keys().map(move |method| (path.clone(), method.clone())))
            .collect();
        let served: BTreeSet<_> = calls()
            .iter()
            .map(|(path, method, _)| ((*path).to_owned(), method.as_str().to_ascii_lowercase()))
            .collect();
        assert_eq!(described, served);
    }
}
