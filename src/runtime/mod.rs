//! The runtime: it turns the outputs of the core into work.
//!
//! An [`Organism`] has a number of shards, each a thread with an actix arbiter, a core of its own and the listeners
//! that live there. Messages are data in the core until a listener has a free slot; a listener is an actor that its
//! host feeds, so nothing depends on an actix mailbox or supervisor.

mod accepts;
mod asking;
mod block_on;
mod breakdown;
mod budget;
mod builder;
mod calling;
#[cfg(feature = "testing")]
mod claim;
mod client;
mod client_envelope;
pub(crate) mod contract;
mod cores;
mod delivery;
mod drain;
mod egress;
#[cfg(feature = "gateway")]
mod endings;
mod events;
mod function;
mod handler;
#[cfg(feature = "testing")]
mod handover;
mod host;
mod journal_appender;
mod journal_handle;
mod link;
#[cfg(feature = "testing")]
pub(crate) mod network;
mod organism;
mod part;
mod pending_acks;
mod pool;
mod pump;
mod raw;
#[cfg(feature = "gateway")]
mod reserve;
mod response;
mod result;
mod shard_context;
mod shard_spec;
mod shared;
#[cfg(feature = "testing")]
pub(crate) mod simulation;
mod spin;
mod start;
mod thread;
mod watchdog;

pub use accepts::{Accepts, AsActor, AsBlocking, BlockingHandler, HandlerKind};
pub use asking::{AskError, Asking};
pub use block_on::block_on;
pub use breakdown::Breakdown;
pub use builder::OrganismBuilder;
pub use calling::{Answers, Calling, CallingAll};
pub use client::{Client, Conversation, SendError};
pub use contract::{ClientBuilder, ContractBuilder};
pub use delivery::Delivery;
pub use drain::Drained;
pub use egress::Unread;
pub use events::{Events, Observed};
pub use function::{AsFunctions, FunctionAnswer, Functions};
#[cfg(feature = "gateway")]
pub(crate) use journal_appender::Following;
pub(crate) use journal_appender::{Ending, JournalAppender, Recoverable};
#[cfg(feature = "gateway")]
pub(crate) use link::OpenWork;
pub use organism::{NoSuchClient, Organism};
pub(crate) use part::Part;
pub use raw::{BoxFuture, LocalBoxFuture, RawListener, RunContext, StartContext};
pub use response::{Emit, Response, call, call_on, call_to, continue_with, none, reply_any, spawn_thread, write};
pub use result::{AtomicResponse, HandlerResult};
pub use start::{StartError, StartRefusal};
#[cfg(feature = "gateway")]
pub use systole_store::token::Token;
#[doc(hidden)]
pub use systole_store::{clock, entropy};
pub use systole_xml::schema::{IntoDraft, Proven};
pub(crate) use thread::Noted;
pub use thread::{IntoRequest, Thread};
