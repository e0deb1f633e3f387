//! Agents elsewhere, against the real gateway and against peers that misbehave: over a network in memory, on the clock of
//! the test.

mod agent_loop;
mod joined;
mod lease;
mod peer;
mod poll;
mod presence;
mod push;
#[path = "../../peers/script.rs"]
#[allow(dead_code, reason = "not all of it is needed here")]
mod script;
mod scripted;
pub(crate) mod setup;
mod stream;
