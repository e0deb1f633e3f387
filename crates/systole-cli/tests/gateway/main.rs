//! The gateway, over real sockets, against the real program.
#![cfg(feature = "gateway")]

mod edge;
mod example;
mod guard;
mod hangup;
mod kit;
mod order;
mod path;
mod peer;
mod push;
#[path = "../../../systole-core/tests/core/durable/random.rs"]
mod random;
mod refused;
mod stop;
mod survive;
mod tls;
mod websocket;
