//! The gateway, over real sockets, against the real program.
#![cfg(feature = "gateway")]

mod calls;
mod cursors;
mod delegate;
mod edge;
mod example;
mod guard;
mod hold;
mod kit;
mod many;
mod notices;
mod path;
mod peer;
mod push;
mod survive;
mod tasks;
mod tls;
