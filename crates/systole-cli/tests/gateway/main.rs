//! The gateway, over real sockets, against the real program.
#![cfg(feature = "gateway")]

mod calls;
mod cursors;
mod delegate;
mod edge;
mod example;
mod gone;
mod guard;
mod hangup;
mod hold;
mod kit;
mod many;
mod notices;
mod order;
mod path;
mod peer;
mod push;
#[path = "../../../systole-core/tests/core/durable/random.rs"]
mod random;
mod stop;
mod survive;
mod tasks;
mod tls;
