//! The runtime from outside: real threads, real actors, no simulated clock.

#[path = "../oracle/mod.rs"]
mod oracle;

mod blocked;
mod calculator;
mod calls;
mod edge;
mod ending;
mod failing;
mod functions;
mod kinds;
mod order;
mod start;
