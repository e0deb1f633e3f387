//! The runtime from outside: real threads, real actors, no simulated clock.

mod calculator;
mod calls;
mod edge;
mod ending;
mod failing;
mod kinds;
mod start;
