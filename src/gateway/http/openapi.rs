//! The description of all of it, for programs.

use axum::http::StatusCode;
use axum::response::Response;

use super::view;

/// OpenAPI 3.1.
const DOCUMENT: &str = include_str!("openapi.json");

pub(super) async fn document() -> Response {
    view::typed(StatusCode::OK, "application/json", DOCUMENT)
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
}
