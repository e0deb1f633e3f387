//! The gateway and its façade in process, on a simulated clock: each call with its answers, requests that are dropped at any
//! await, with the changes that are durable then, and agents elsewhere, which poll or are pushed to over a network in memory.

mod broken;
mod calls;
mod cost;
mod cursors;
mod cut;
mod delegate;
mod drafts;
mod edge;
mod every;
mod facade;
mod gone;
mod guard;
mod health;
mod hold;
mod json;
mod kit;
mod many;
mod molecule;
mod moved;
mod notices;
mod operate;
mod path;
mod people;
mod promises;
mod push;
mod readers;
mod remote;
mod room;
mod schedules;
mod signed;
mod site;
mod stop;
mod table;
mod tasks;
