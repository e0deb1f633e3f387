//! The runtime from outside: real threads and actors, task inboxes, deliveries, models, `organism.yaml`, the test kit.

#[path = "../oracle/mod.rs"]
mod oracle;

mod attack;
mod blocked;
mod calculator;
mod calls;
mod config;
#[cfg(feature = "gateway")]
mod drafts;
mod edge;
mod ending;
mod failing;
mod functions;
mod hostile;
mod inbox;
mod kinds;
mod limits;
#[cfg(feature = "gateway")]
mod model;
mod order;
mod reload;
mod start;
mod testing;
mod ui;
