//! Names that a program of listeners needs: `use systole::prelude::*;`
//!
//! Listeners that are actors need those of [`actor`](crate::actor), too.

pub use serde::de::Deserialize;
pub use serde::ser::Serialize;
/// The derives of serde and schemars, through `systole`: a crate needs neither among its dependencies.
pub use systole_macros::{Deserialize, JsonSchema, Serialize};

pub use self::traits::*;

#[cfg(feature = "gateway")]
pub use crate::model::Llm;
pub use crate::runtime::{
    Answers, AskError, BlockingHandler, Client, Conversation, Delivery, Emit, Organism, OrganismBuilder, SendError,
    StartError, Thread, block_on, call, call_on, call_to, continue_with, none, reply_any, spawn_thread, with_state,
    write,
};
pub use crate::settings::ModelSettings;
pub use systole_core::core::{Answer, Egress, Failure, Join, JoinPosition, OnRestart, Routing, Scheduling, Silence};
pub use systole_core::protocol::{Boot, Request};
pub use systole_core::vocab::{Fault, FaultCode, Limits};
pub use systole_xml::schema::{Element, Payload};

/// Traits that share their name with a derive: the glob import adds the trait alone, since names imported directly win.
mod traits {
    pub use schemars::JsonSchema;
}
