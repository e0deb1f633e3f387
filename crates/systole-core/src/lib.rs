//! The pure machines of Systole: what a message pump decides, without a clock, a thread, a file or a socket.
//!
//! - [`vocab`]: names, ids, times, limits, faults;
//! - [`protocol`]: what the pump itself says;
//! - [`journal`]: what an organism writes down, so that it survives its process;
//! - [`core`]: the deterministic state machine that owns threads and mailboxes;
//! - [`inbox`]: tasks that others submit to a job, and the rules by which they move;
//! - [`mailbox`]: messages that wait for remote listeners, and how they are delivered and answered.
//!
//! `systole` is the runtime around them; time and randomness come in from there.

pub mod core;
pub mod inbox;
pub mod journal;
pub mod mailbox;
pub mod protocol;
pub mod vocab;
