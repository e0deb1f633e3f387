//! Agents elsewhere: the library and the program against the real gateway, and against peers that misbehave.

#[path = "../gateway/kit.rs"]
#[allow(dead_code)]
mod kit;
#[path = "../../../../tests/outbound/peer.rs"]
#[allow(dead_code)]
mod peer;
#[path = "../waiting/mod.rs"]
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
