//! The gateway, over real sockets, against the real program.
#![cfg(feature = "gateway")]

mod calls;
mod cursors;
mod example;
mod guard;
mod kit;
mod many;
mod path;
mod peer;
mod push;
mod survive;
mod tasks;
mod tls;
