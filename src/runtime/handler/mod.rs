//! Handlers: the kinds of listeners with their contracts, what a handler gets and returns, and the hosts that run it.

pub(super) mod calling;
pub(crate) mod contract;
pub(super) mod delivery;
pub(super) mod function;
pub(super) mod host;
pub(super) mod kind;
mod pool;
pub(super) mod raw;
pub(super) mod response;
pub(super) mod result;
pub(super) mod thread;
