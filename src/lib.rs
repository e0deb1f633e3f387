//! Systole is a message pump for organisms of actors.
//!
//! Listeners talk in XML envelopes; every envelope is repaired, canonicalized and checked
//! against its schemas before a listener sees it as a typed value. The parts, lowest first, of which those above [`runtime`]
//! are the crates `systole-xml`, `systole-core` and `systole-store`:
//!
//! - [`vocab`]: names, identifiers, spans, limits, fault codes;
//! - [`ladder`] and [`schema`]: pure functions from raw bytes to a validated payload;
//! - [`journal`]: stores that keep what survives the process of an organism: their interface, and the journal on disk;
//! - [`core`]: contracts, messages and events of the deterministic state machine that owns threads and mailboxes;
//! - [`inbox`]: tasks that clients submit to a job, and the rules of their states;
//! - [`settings`]: settings of the entrance over HTTP, of remote listeners and of models;
//! - [`terminal`]: text of others, escaped for a terminal;
//! - [`process`]: processes of programs, from their environment to their end;
//! - [`drafts`]: what handlers have written so far of messages that are not there yet;
//! - [`runtime`]: the runtime that turns the outputs of the core into work;
//! - [`jobs`]: listeners with tasks: jobs, and registries of jobs;
//! - [`listeners`]: listeners that are programs, workers, people or echoes;
//! - [`schedules`]: messages that clients send at times, once a tick;
//! - `config`: organisms from an `organism.yaml`, with the feature `yaml`;
//! - `gateway`: the entrance over HTTP, and remote listeners, with the feature `gateway`;
//! - `outbound`: deliveries to other machines over HTTP, with the feature `gateway`;
//! - `remote`: the client of a program that is an agent of an organism elsewhere, with the feature `gateway`;
//! - `cluster`: nodes of one organism that take over from each other, with the feature `gateway`;
//! - `model`: listeners that a model speaks for, with the feature `gateway`;
//! - `replay`: recorded conversations once more, with some listeners of another version of their organism, with the feature `yaml`;
//! - `mcp`: the Model Context Protocol, with the feature `mcp`;
//! - `molecule`: agents of another platform's SDK, with the feature `compat-molecule`.
//!
//! [`prelude`] has the names that a program needs first; it begins with
//! [`Organism::builder`](runtime::Organism::builder). [`actor`] has those for listeners that are actix actors. With the feature `testing`, `testing` runs an organism on a
//! simulated clock.
//!
//! ```
//! use systole::prelude::*;
//!
//! #[derive(Serialize, Deserialize, JsonSchema, Payload)]
//! #[payload(namespace = "urn:example:hello:v1", reply = Hello)]
//! struct Hello {
//!     name: String,
//! }
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let organism = Organism::builder("hello")
//!     .on("greeter", async |hello: Delivery<Hello>| Ok(Hello { name: format!("{} from the greeter", hello.name) }))
//!     .client("cli", |c| c.calls::<Hello>())
//!     .start()?;
//! let answer = block_on(organism.client("cli")?.ask(Hello { name: "world".into() }))?;
//! assert_eq!(answer.name, "world from the greeter");
//! # Ok(())
//! # }
//! ```

#[cfg(panic = "abort")]
compile_error!("systole contains the panics of listeners by unwinding: build with panic = \"unwind\"");

pub use systole_core::{inbox, protocol, vocab};
pub use systole_xml::{ladder, schema};

/// Contracts, messages, answers and events, as listeners, clients and operators meet them. The inputs and outputs of the
/// machine behind them are in the crate `systole-core`:
///
/// ```compile_fail,E0432
/// use systole::core::Input;
/// ```
pub mod core {
    pub use systole_core::core::{
        Access, Answer, Blueprint, BlueprintProblem, Body, CallId, ClientContract, ClientId, Contract, Counts,
        DeadLetter, DeadLetterError, DeadLetterId, Egress, Emission, EmissionKind, Event, EventKind, Failure,
        HandlerOutcome, Join, JoinPosition, ListenerId, Message, MetaFlags, Millionths, Misroute, OnRestart,
        OpenThread, OperationError, Party, Place, ReadAnswer, ReadPart, Remembered, Routing, Scheduling, Settled,
        Silence, Snapshot, ThreadState, Usage, Value, Version, listener_json_prompt, listener_prompt,
    };
}

/// Journals: the interface of stores ([`Store`](journal::Store)), the one in an SQLite file, and one in memory for tests.
/// Operations and records, which a [`Step`](journal::Step) holds and a [`Reader`](journal::Reader) returns, are in the crate `systole-core`; the store on disk is the crate `systole-store`.
pub mod journal {
    pub use systole_core::journal::{
        AppendError, Batch, FailingJournal, Heads, Journal, JournalError, JournalErrorKind, MemoryJournal, Recovered,
        Step, Tail,
    };
    #[doc(inline)]
    pub use systole_store::journal::*;
}

// The derives of the prelude name these two crates through this one.
pub use {schemars, serde};

#[doc(hidden)]
pub use systole_macros::remove as __remove;

#[cfg(feature = "gateway")]
mod accept;
pub mod actor;
#[cfg(feature = "gateway")]
pub mod cluster;
#[cfg(feature = "yaml")]
pub mod config;
#[cfg(feature = "gateway")]
pub mod console;
pub mod drafts;
#[cfg(feature = "gateway")]
pub mod federation;
#[cfg(feature = "gateway")]
pub mod gateway;
#[cfg(feature = "gateway")]
pub mod identity;
pub mod jobs;
pub mod listeners;
#[cfg(feature = "mcp")]
pub mod mcp;
#[cfg(feature = "gateway")]
pub mod model;
#[cfg(feature = "compat-molecule")]
pub mod molecule;
#[cfg(feature = "testing")]
mod network;
pub mod operations;
#[cfg(feature = "gateway")]
pub mod outbound;
pub mod prelude;
pub mod process;
#[cfg(feature = "gateway")]
pub mod remote;
#[cfg(feature = "yaml")]
pub mod replay;
pub mod runtime;
pub mod schedules;
pub mod settings;
#[cfg(feature = "otel")]
pub mod telemetry;
pub mod terminal;
#[cfg(feature = "testing")]
pub mod testing;
pub mod upgrade;

/// The programs of the README are built as they stand.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
