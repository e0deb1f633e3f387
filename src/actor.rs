//! Names for listeners that are actix actors, beside those of the [`prelude`](crate::prelude):
//! `use systole::actor::*;`
//!
//! Handlers return [`Response`], or a future of it: `type Result = ResponseFuture<Response>` for a handler that awaits,
//! and `ResponseActFuture<Self, Response>` or [`AtomicResponse`] for one that needs its actor between two awaits. `Response`
//! and `AtomicResponse` are Systole's; actix has others of these names, so the two preludes don't go together. The rest of
//! actix is under [`actix`].

pub use actix::{
    self, Actor, ActorContext, ActorFutureExt, AsyncContext, Context, Handler, ResponseActFuture, ResponseFuture,
    WrapFuture,
};

pub use crate::runtime::{AtomicResponse, Response};
