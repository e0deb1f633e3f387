//! Layer 2, the core: a deterministic state machine that owns threads and mailboxes.
//!
//! [`Core::handle`] takes an [`Input`] and the time, [`Core::poll`] gives one [`Output`] after the
//! other. No clock, no I/O, no async: the same inputs give the same outputs.

mod admit;
mod answer;
mod blueprint;
mod bounds;
pub mod catch_panic;
mod children;
mod close;
mod concurrency;
mod context;
mod contract;
mod conversation;
mod dead_letters;
mod directory;
mod effect;
mod event;
mod fan_out;
mod faults;
mod gather;
mod gauge;
mod invocation;
mod io;
mod judge;
mod key;
mod machine;
mod meta;
mod misroute;
mod open;
mod outcomes;
mod precheck;
mod rate_limit;
mod read;
mod recover;
mod redrive;
mod refused;
mod replay;
mod respond;
mod run_queue;
mod stop;
mod thread;
mod timer;
mod turn;
mod write_ahead;

pub use blueprint::{Blueprint, ClientId, ListenerId, Party, Problem};
pub use catch_panic::Value;
pub use contract::{Access, Client, Contract, MetaFlags, Routing, Scheduling, Silence};
pub use conversation::Holding;
pub use dead_letters::{DeadLetter, DeadLetterError, DeadLetterId, DeadLetters};
pub use directory::Directory;
pub use event::{Event, EventKind};
pub use gauge::{Gauge, Overloaded, Permit};
pub use io::{
    Answer, Attachment, Body, CallId, Egress, Emission, EmissionKind, Failure, Injected, Input, Join, JoinPosition,
    Message, Outcome, Output, Remembered, Settled, ShardId, ShardMessage, Start,
};
pub use key::{InvocationId, ThreadKey};
pub use machine::{Core, CoreConfig, Counts, Decoders, OpenThread, Snapshot};
pub use misroute::Misroute;
#[doc(hidden)]
pub use precheck::{Answered, Prechecked, precheck, precheck_answer};
