//! Deliveries over real sockets: scripted peers at the other end, a store in memory.

mod circuit;
mod guard;
#[path = "../../../tests/peers/peer.rs"]
mod peer;
mod queues;
mod random;
mod restart;
mod retry;
#[path = "../../../tests/peers/script.rs"]
mod script;
mod setup;
mod tls;
