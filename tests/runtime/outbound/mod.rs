//! Deliveries over real sockets: scripted peers at the other end, an outbox on a disk between.

mod circuit;
mod durable;
mod guard;
mod kill;
mod peer;
mod queues;
mod random;
mod retry;
mod script;
mod setup;
mod tls;
