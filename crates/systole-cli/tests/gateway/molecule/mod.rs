//! Agents of another platform's SDK that are programs of their own, and servers that are pushed to.

mod agent;
mod inbound;
mod office;
mod push;
mod registry;
mod relay;
