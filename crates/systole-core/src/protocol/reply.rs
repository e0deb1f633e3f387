//! Requests whose replies have one type.

use systole_xml::schema::Payload;

use super::typed::{Capabilities, ClearContext, ContextCleared, ListCapabilities, Prompt, RequestPrompt};

/// A payload whose replies have one type: a call of it gives back the reply as a value.
///
/// `#[payload(namespace = "urn:…", reply = Greeting)]` beside `#[derive(Payload)]` implements it. A payload that may be
/// answered by several types, or by none, is no request; `ask_any`, `call_any` and `reply_any` take it.
#[diagnostic::on_unimplemented(
    message = "`{Self}` has no type of reply",
    label = "no request",
    note = "add `reply = …` to its `#[payload(…)]`, or leave the type of the reply open: `ask_any`, `call_any`, `reply_any`"
)]
pub trait Request: Payload {
    /// The payload that answers it.
    type Reply: Payload;
}

/// Implements `Request`: the payload that answers each request.
macro_rules! answered_by {
    ($($request:ident: $reply:ident;)*) => {
        $(impl $crate::protocol::Request for $request {
            type Reply = $reply;
        })*
    };
}
pub(crate) use answered_by;

answered_by! {
    ListCapabilities: Capabilities;
    RequestPrompt: Prompt;
    ClearContext: ContextCleared;
}
