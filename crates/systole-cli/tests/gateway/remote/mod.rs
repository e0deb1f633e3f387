//! Agents elsewhere: the library, whose client speaks HTTP over sockets, and the program, against the real gateway and
//! against peers that misbehave.

#[path = "../../../../../tests/runtime/outbound/peer.rs"]
#[allow(dead_code)]
mod peer;

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
