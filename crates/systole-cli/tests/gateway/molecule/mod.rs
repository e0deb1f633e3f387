//! Agents of another platform's SDK that are programs of their own.

mod agent;
mod office;
mod registry;
mod relay;
