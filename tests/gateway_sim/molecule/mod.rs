//! The façade for agents of another platform's SDK.

mod activity;
mod bad;
mod hands;
mod inbound;
mod office;
mod push;
mod registry;
mod talk;
