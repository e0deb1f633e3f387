//! Layer 2, the core: a deterministic state machine that owns threads and mailboxes.
//!
//! [`Core::handle`] takes an [`Input`] and the time, [`Core::poll`] gives one [`Output`] after the
//! other. No clock, no I/O, no async: the same inputs give the same outputs.

mod blueprint;
mod books;
mod budgets;
pub mod catch_panic;
mod clock;
mod contract;
mod conversation;
mod dead_letters;
mod directory;
mod entrance;
mod event;
mod exit;
mod faults;
mod gauge;
mod invocations;
mod io;
mod judge;
mod key;
mod latency;
mod outcomes;
mod outputs;
mod precheck;
mod prompt;
mod queued;
mod read;
mod records;
mod setup;
mod slots;
mod steps;
mod tree;
mod usage;

pub use crate::vocab::{Millionths, NoDecimal};
pub use blueprint::{Blueprint, BlueprintProblem, ClientId, ListenerId, Party, Version};
pub use books::Counts;
pub use budgets::{OpenBudget, Short};
pub use catch_panic::Value;
pub use contract::{
    Access, CheckSignature, ClientContract, Contract, MetaFlags, OnRestart, Routing, Scheduling, Signatures, Silence,
};
pub use dead_letters::{DeadLetter, DeadLetterError, DeadLetterId, DeadLetters};
pub use directory::Directory;
pub use event::{Event, EventKind, HandlerEnd, Misroute, Spending};
pub use exit::{Exit, ExitPlace};
pub use gauge::{ClientUse, Gauge, Overloaded, Permit};
pub use io::{
    Answer, Arrival, AttachedNote, Attachment, AttachmentEnd, Body, CallId, Cancellation, CoreId, CoreMessage,
    DraftEnd, Egress, Emission, EmissionKind, Failure, HandlerOutcome, Injected, Input, Join, JoinPosition, Message,
    Operation, OperationError, OrganismVersion, Output, Place, Precedence, Remembered, Settled, Start,
};
pub use judge::Decoders;
pub use key::{InvocationId, ThreadKey};
pub use latency::Latency;
#[doc(hidden)]
pub use precheck::{
    Answered, PrecheckedAnswer, precheck, precheck_answer, precheck_call, precheck_read, precheck_valid,
};
pub use prompt::{listener_json_prompt, listener_prompt};
#[doc(hidden)]
pub use read::read_label;
pub use read::{ReadAnswer, ReadMessage, ReadPart, Unreadable, json_fault, read_answer};
pub use setup::CoreConfig;
pub use slots::ListenerSlots;
pub use steps::Core;
pub use tree::{Holding, OpenConversation, OpenFilter, OpenThread, Snapshot, ThreadState};
pub use usage::{ModelAnswer, ModelFailure, Usage};
