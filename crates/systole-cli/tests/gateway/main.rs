//! The gateway end to end: the real program and the agents of its library, over real sockets. What needs neither a
//! process nor a socket is in `tests/gateway_sim` of the crate `systole`.
#![cfg(feature = "gateway")]

#[cfg(feature = "postgres")]
mod cluster;
mod edge;
mod example;
mod federation;
mod guard;
mod hangup;
mod kit;
#[cfg(feature = "mcp")]
mod mcp;
mod metrics;
#[cfg(feature = "compat-molecule")]
mod molecule;
mod order;
mod path;
mod peer;
mod push;
#[path = "../../../systole-core/tests/core/durable/random.rs"]
mod random;
mod refused;
mod reload;
mod remote;
mod stop;
mod survive;
mod tls;
#[allow(dead_code, clippy::disallowed_methods, reason = "it waits for real processes; not all of it here")]
#[path = "../cli/kit/waiting.rs"]
mod waiting;
mod websocket;
