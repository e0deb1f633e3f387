//! The description of all calls, for programs.

use std::sync::{Arc, OnceLock};

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use bytes::Bytes;
use serde_json::Value;

use super::{AppState, view};

/// OpenAPI 3.1.
const DOCUMENT: &str = include_str!("openapi.json");

/// The document with the paths of additional routes, written when it is first asked for.
pub(in crate::gateway) struct Description {
    others: Vec<&'static str>,
    written: OnceLock<Bytes>,
}

impl Description {
    pub(in crate::gateway) fn with(others: Vec<&'static str>) -> Self {
        Self { others, written: OnceLock::new() }
    }

    pub(super) fn bytes(&self) -> Bytes {
        self.written.get_or_init(|| write(&self.others)).clone()
    }
}

pub(super) async fn document(State(app): State<Arc<AppState>>) -> Response {
    view::typed(StatusCode::OK, "application/json", app.description.bytes())
}

fn write(others: &[&str]) -> Bytes {
    // All documents are part of the program, and tests read them.
    let mut document: Value = serde_json::from_str(DOCUMENT).expect("openapi.json is JSON");
    for other in others {
        let mut other: Value = serde_json::from_str(other).expect("a description is JSON");
        if let (Some(all), Some(more)) = (document["paths"].as_object_mut(), other["paths"].as_object_mut()) {
            all.append(more);
        }
    }
    Bytes::from(document.to_string())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use serde_json::Value;

    #[test]
    fn it_names_each_route_and_no_other() {
        let document: Value = serde_json::from_str(super::DOCUMENT).unwrap();
        let methods = ["get", "post", "put", "delete", "patch"];
        let described: BTreeSet<_> = document["paths"]
            .as_object()
            .unwrap()
            .iter()
            .flat_map(|(path, item)| item.as_object().unwrap().keys().map(move |method| (path.clone(), method.clone())))
            .filter(|(_, method)| methods.contains(&method.as_str()))
            .collect();
        let routes: BTreeSet<_> = super::super::routes()
            .into_iter()
            .map(|(path, method, _)| (path.to_owned(), method.as_str().to_ascii_lowercase()))
            .collect();
        assert_eq!(described, routes);
    }

    #[test]
    fn each_call_can_be_too_much() {
        let document: Value = serde_json::from_str(super::DOCUMENT).unwrap();
        let paths = document["paths"].as_object().unwrap().iter();
        let calls = paths.flat_map(|(path, item)| item.as_object().unwrap().iter().map(move |call| (path, call)));
        for (path, (method, call)) in calls.filter(|(_, (_, call))| call.get("responses").is_some()) {
            assert!(call["responses"].get("429").is_some(), "{method} {path}");
            assert!(call["responses"].get("415").is_some() || !path.starts_with("/v1/"), "{method} {path}");
        }
    }
}
