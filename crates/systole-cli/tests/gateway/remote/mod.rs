//! Agents elsewhere: the library, whose client speaks HTTP over sockets, and the program, against the real gateway and
//! against peers that misbehave.

#[path = "../../../../../tests/peers/peer.rs"]
#[allow(dead_code)]
mod peer;

mod deliveries;
mod joined;
mod program;
#[path = "../../../../../tests/peers/script.rs"]
#[allow(dead_code)]
mod script;
mod setup;
