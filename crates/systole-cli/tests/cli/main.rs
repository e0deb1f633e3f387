//! The program `systole` as a process: its commands, their output and exit codes, its workers, commands and models.

#![allow(clippy::disallowed_methods, reason = "the tests wait for real processes")]

mod kit;
#[path = "../../../../tests/oracle/mod.rs"]
mod oracle;

mod ask;
mod check;
mod citizen;
#[cfg(feature = "gateway")]
mod console;
mod demo;
mod describe;
mod drafts;
mod durable;
#[cfg(feature = "gateway")]
mod entrances;
mod guide;
#[cfg(feature = "gateway")]
mod inbox;
mod journal;
mod json;
mod killed;
mod manual;
#[cfg(feature = "mcp")]
mod mcp;
#[cfg(feature = "mcp")]
mod mcp_mutual;
mod model;
#[cfg(feature = "gateway")]
mod model_serve;
#[cfg(feature = "gateway")]
mod model_tls;
mod new;
#[cfg(feature = "gateway")]
mod operate;
#[cfg(feature = "gateway")]
mod pages;
mod people;
mod pictures;
mod readers;
mod refused;
mod reload;
mod replay;
mod retry;
mod run;
#[cfg(feature = "gateway")]
mod schedules;
#[cfg(feature = "gateway")]
mod secrets;
#[cfg(feature = "gateway")]
mod signatures;
mod traces;
#[cfg(feature = "gateway")]
mod transcripts;
mod upgrade;
mod watch;
mod worker;
mod worker_json;
mod worker_killed;
mod worker_mapping;
mod worker_node;
mod worker_python;
mod worker_record;
mod worker_test;
mod xml;
