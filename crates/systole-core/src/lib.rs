//! The pure machines of Systole: the decisions of a message pump, without a clock, a thread, a file or a socket.
//!
//! - [`vocab`]: names, ids, times, limits, faults;
//! - [`protocol`]: the payloads of the pump itself;
//! - [`journal`]: the durable state of an organism, which survives its process;
//! - [`core`]: the deterministic state machine that owns threads and mailboxes;
//! - [`inbox`]: tasks that clients and listeners submit to a job, and the rules of their transitions;
//! - [`mailbox`]: messages that wait for remote listeners, and how they are delivered and answered;
//! - [`question`]: questions to people, and who may answer them;
//! - [`lease`]: the lease of a node on an organism that several nodes can run.
//!
//! `systole` is the runtime around them; time and randomness come in from there.

pub mod core;
pub mod inbox;
pub mod journal;
pub mod lease;
pub mod mailbox;
pub mod protocol;
pub mod question;
pub mod vocab;
