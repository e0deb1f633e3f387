//! Agents of another platform's SDK: every call of the façade over real sockets, against the real program.

#[path = "../gateway/kit.rs"]
#[allow(dead_code)]
mod kit;
#[allow(dead_code, clippy::disallowed_methods, reason = "it waits for real processes; not all of it here")]
#[path = "../cli/kit/waiting.rs"]
mod waiting;

mod activity;
mod agent;
mod bad;
mod hands;
mod inbound;
mod office;
mod push;
mod registry;
mod relay;
mod talk;
