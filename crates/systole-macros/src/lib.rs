//! The derive macros of `systole`, which re-exports them: `Payload`, and the derives of serde and schemars, which name
//! those crates through `systole`. A crate that depends only on `systole` can use them all.

mod payload;
mod through;

use proc_macro::TokenStream;
use syn::{DeriveInput, parse_macro_input};

/// Implements `systole::schema::Payload` for a type, and `systole::protocol::Request` where it names its reply:
/// `#[payload(namespace = "urn:example:hello:v1", root = "hello", reply = Greeting)]`.
///
/// - `namespace` is the namespace of the element: a string, empty for none, or a path to a constant.
/// - `root` is its local name, likewise; without it the name of the type in kebab case (`TaskDone`: `task-done`).
/// - `reply` is the type of the payload that answers it, `Self` where it is the same: the type implements
///   `systole::protocol::Request`, and calls of it give back the reply as a value.
/// - `crate = "path"` is the path to `systole`, where a program calls it something else.
#[proc_macro_derive(Payload, attributes(payload))]
pub fn payload(input: TokenStream) -> TokenStream {
    payload::derive(&parse_macro_input!(input as DeriveInput)).into()
}

/// Derives `serde::Serialize`, with all attributes of serde, through `systole`.
#[proc_macro_derive(Serialize, attributes(serde))]
pub fn serialize(input: TokenStream) -> TokenStream {
    through::derive(parse_macro_input!(input as DeriveInput), "serde", "Serialize").into()
}

/// Derives `serde::Deserialize`, with all attributes of serde, through `systole`.
#[proc_macro_derive(Deserialize, attributes(serde))]
pub fn deserialize(input: TokenStream) -> TokenStream {
    through::derive(parse_macro_input!(input as DeriveInput), "serde", "Deserialize").into()
}

/// Derives `schemars::JsonSchema`, with all attributes of schemars, through `systole`.
#[proc_macro_derive(JsonSchema, attributes(schemars, serde, validate, garde))]
pub fn json_schema(input: TokenStream) -> TokenStream {
    through::derive(parse_macro_input!(input as DeriveInput), "schemars", "JsonSchema").into()
}

/// Removes the item that it annotates: the copy that a derive through `systole` hands to the derive of another crate.
#[doc(hidden)]
#[proc_macro_attribute]
pub fn remove(_: TokenStream, _: TokenStream) -> TokenStream {
    TokenStream::new()
}
