//! The gateway in process, on a simulated clock: requests that are dropped at any await, and the changes that are
//! durable then.

mod broken;
mod cut;
mod facade;
mod readers;
mod site;
mod stop;
mod table;
