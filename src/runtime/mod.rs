//! The runtime: it turns the outputs of the core into work.
//!
//! An [`Organism`] has a number of shards, each a thread with an actix arbiter, a core of its own and the listeners
//! that live there. Messages are data in the core until a listener has a free slot; a listener is an actor that its
//! host feeds, so nothing depends on an actix mailbox or supervisor.
//!
//! | folder | content |
//! |---|---|
//! | `shard` | the state of shards, and the ways to reach them |
//! | `write` | the journal, as shards and parts beside the cores write it |
//! | `handler` | kinds of listeners, contracts, what a handler gets and returns, the hosts that run it |
//! | `client` | clients, conversations and questions |
//! | `pump` | the loop of a shard: between its cores, its hosts and its journal |
//! | `organism` | the builder, the handle, the end |
//!
//! Each uses those above it in this list alone.

mod block_on;
mod client;
mod handler;
mod organism;
mod pump;
mod shard;
mod start;
mod write;

#[cfg(feature = "gateway")]
pub(crate) use self::write::appender::Following;
pub(crate) use self::write::appender::{Ending, JournalAppender, Recoverable};
pub use block_on::block_on;
pub use client::asking::{AskError, Asking};
pub use client::{Client, Conversation, SendError};
pub use handler::calling::{Answers, Calling, CallingAll};
#[cfg(feature = "yaml")]
pub(crate) use handler::contract;
pub use handler::contract::{ClientBuilder, ContractBuilder};
pub use handler::delivery::Delivery;
pub use handler::function::{AsFunctions, FunctionAnswer, Functions, with_state};
pub use handler::kind::{Accepts, AsActor, AsBlocking, BlockingHandler, HandlerKind};
pub use handler::raw::{BoxFuture, LocalBoxFuture, RawListener, RunContext, StartContext};
pub use handler::response::{
    Emit, Response, call, call_on, call_to, continue_with, none, reply_any, spawn_thread, write,
};
pub use handler::result::{AtomicResponse, HandlerResult};
#[cfg(feature = "gateway")]
pub(crate) use handler::thread::Drafter;
pub(crate) use handler::thread::Noted;
pub use handler::thread::{IntoRequest, Thread};
pub use organism::builder::OrganismBuilder;
pub use organism::drain::{Drained, Reader};
pub(crate) use organism::part::Part;
#[cfg(feature = "gateway")]
pub(crate) use organism::part::{ActedElsewhere, Elsewhere, MailboxAct};
#[cfg(feature = "yaml")]
pub(crate) use organism::reload::Reloader;
pub use organism::reload::{Keep, ReloadError, Reloaded, Then};
pub use organism::serve::ServeError;
pub use organism::{NoSuchClient, Organism};
pub use shard::breakdown::Breakdown;
#[cfg(feature = "gateway")]
pub(crate) use shard::command::OpenWork;
#[cfg(feature = "testing")]
pub(crate) use shard::context::ShardContext;
pub use shard::egress::Unread;
#[cfg(feature = "gateway")]
pub(crate) use shard::endings::WatchedEnd;
pub use shard::events::{Events, Observed};
pub(crate) use shard::handlers::is_moving;
pub(crate) use shard::restart::{Rest, Restarts, Rests, rest};
pub use start::{StartError, StartRefusal};
pub use systole_store::tenure::Tenure;
#[cfg(feature = "gateway")]
pub use systole_store::token::Token;
#[doc(hidden)]
pub use systole_store::{clock, entropy};
pub use systole_xml::schema::{IntoDraft, Proven};
