//! Agents elsewhere: the library and the program against the real gateway, and against peers that misbehave.

#[path = "../gateway/kit.rs"]
#[allow(dead_code)]
mod kit;
#[path = "../../../../tests/runtime/outbound/peer.rs"]
#[allow(dead_code)]
mod peer;
#[allow(dead_code, clippy::disallowed_methods, reason = "it waits for real processes; not all of it here")]
#[path = "../cli/kit/waiting.rs"]
mod waiting;

mod agent_loop;
mod joined;
mod lease;
mod poll;
mod presence;
mod program;
mod push;
mod scripted;
mod setup;
mod stream;
