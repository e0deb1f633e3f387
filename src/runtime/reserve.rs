//! Reservations of handlers, out of the budgets of their threads.

use std::task::Poll;

use systole_core::core::{Input, Short};
use systole_core::vocab::{Amounts, Fault};

use super::handler::HandlerKey;
use super::shard_context::ShardContext;

/// Reserves amounts for a request of a handler. `is_last`: the request takes what is left, and the thread ends with this
/// fault unless the handler answers then.
pub(super) async fn reserve(key: HandlerKey, amounts: Amounts, is_last: Option<Fault>) -> Result<(), Box<Short>> {
    let Some(shard_context) = ShardContext::here(key.shard_context) else { return Ok(()) };
    if shard_context.reserves(key) {
        shard_context.tell(key.origin, Input::Reserve { invocation: key.invocation, amounts, is_last });
    }
    drop(shard_context);
    std::future::poll_fn(|cx| match ShardContext::here(key.shard_context) {
        Some(shard_context) => shard_context.poll_reserved(key, cx),
        // The organism has ended, and this handler with it.
        None => Poll::Ready(Ok(())),
    })
    .await
}
