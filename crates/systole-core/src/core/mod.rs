//! Layer 2, the core: a deterministic state machine that owns threads and mailboxes.
//!
//! [`Core::handle`] takes an [`Input`] and the time, [`Core::poll`] gives one [`Output`] after the
//! other. No clock, no I/O, no async: the same inputs give the same outputs.

mod admit;
mod answer;
mod blueprint;
mod close;
pub mod contain;
mod context;
mod contract;
mod conversation;
mod dead;
mod directory;
mod effect;
mod event;
mod faults;
mod foresee;
mod gather;
mod gauge;
mod io;
mod join;
mod judge;
mod key;
mod lane;
mod log;
mod machine;
mod meta;
mod misroute;
mod open;
mod outcomes;
mod prompt;
mod read;
mod recover;
mod refused;
mod replay;
mod requeue;
mod respond;
mod ring;
mod room;
mod siblings;
mod slots;
mod stop;
mod task;
mod thread;
mod timer;
mod turn;
mod usage;

pub use blueprint::{Blueprint, ClientId, ListenerId, Party, Problem};
pub use contain::Value;
pub use contract::{Access, Client, Contract, MetaFlags, Routing, Scheduling, Silence};
pub use conversation::Holding;
pub use dead::{DeadLetter, DeadLetterError, DeadLetterId, DeadLetters};
pub use directory::Directory;
pub use event::{Event, EventKind};
#[doc(hidden)]
pub use foresee::{Answered, Foreseen, foresee, foresee_answer};
pub use gauge::{Gauge, Overloaded, Permit};
pub use io::{
    Answer, Attachment, Body, CallId, Egress, Emission, EmissionKind, Failure, Injected, Input, Join, JoinPosition,
    Message, Outcome, Output, Remembered, Settled, ShardId, ShardMessage, Start,
};
pub use key::{TaskId, ThreadKey};
pub use machine::{Core, CoreConfig, Counts, Decoders, OpenThread, Snapshot};
pub use misroute::Misroute;
pub use prompt::listener_prompt;
pub use usage::{Millionths, ModelAnswer, NoDecimal, Usage};
