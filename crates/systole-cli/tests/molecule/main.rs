//! Agents of another platform's SDK: every call of the façade over real sockets, against the real program.

#[path = "../gateway/kit.rs"]
#[allow(dead_code)]
mod kit;
#[path = "../waiting/mod.rs"]
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
