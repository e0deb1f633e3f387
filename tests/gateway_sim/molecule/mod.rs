//! The façade for agents of another platform's SDK.

mod activity;
mod bad;
mod hands;
mod office;
mod registry;
mod talk;
