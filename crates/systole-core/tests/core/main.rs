//! The core, by scenario: each test pins one rule of the specification. `durable` crashes it in random histories.

mod harness;
mod model;
mod payloads;

mod awaiting;
mod boot;
mod budgets;
mod chaos;
mod conversations;
mod dead;
mod drafts;
mod durable;
mod entrance;
mod fairness;
mod fanout;
mod faults;
mod greedy;
mod lease;
mod limits;
mod loops;
mod meta;
mod operate;
mod protocol;
mod raw;
mod responses;
mod routing;
mod shards;
mod spawned;
mod time;
mod trace;
mod turns;
