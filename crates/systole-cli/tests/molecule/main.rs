//! Agents of another platform's SDK that are programs of their own, and servers that are pushed to, against the real program.

#[path = "../gateway/kit.rs"]
#[allow(dead_code)]
mod kit;
#[allow(dead_code, clippy::disallowed_methods, reason = "it waits for real processes; not all of it here")]
#[path = "../cli/kit/waiting.rs"]
mod waiting;

mod agent;
mod inbound;
mod office;
mod push;
mod registry;
mod relay;
