//! The core, by scenario: each test pins one rule of the specification.

mod harness;
mod model;
mod payloads;

mod awaiting;
mod boot;
mod budgets;
mod chaos;
mod conversations;
mod dead;
mod entrance;
mod fairness;
mod fanout;
mod faults;
mod greedy;
mod limits;
mod meta;
mod raw;
mod responses;
mod routing;
mod shards;
mod spawned;
mod time;
mod turns;
