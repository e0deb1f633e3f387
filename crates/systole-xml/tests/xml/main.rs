//! The crate from outside: the ladder, repair, schemas and their engine, beside independent judges.

mod allocations;
mod built;
mod counting;
mod deep;
mod examples;
mod examples_random;
#[cfg(feature = "libxml")]
mod fuzz;
mod golden;
mod hostile;
mod hostile_schemas;
mod json;
#[cfg(feature = "libxml")]
mod ladder;
#[cfg(feature = "libxml")]
mod oracles;
mod prompts;
mod property;
mod random_schemas;
mod repair;
mod rules;
mod shapes;
mod types;
mod validator;
mod xsd;
