//! Cases (a) and (b): a client asks the front, which asks the back; the answer comes back through
//! both. Every message is decoded and encoded again.

use std::marker::PhantomData;

use actix::{Actor, Context, Handler};

use super::latency::Latencies;
use super::load::{Load, LoadError, Pump, Scale};
use super::messages::Sample;
use crate::core::Routing;
use crate::shell::{Delivery, Organism, Response, call_to, reply};

/// Conversations through two listeners, so many of them at a time.
pub(super) struct TwoHop<T> {
    pump: Pump,
    count: u64,
    window: usize,
    payload: PhantomData<T>,
}

impl<T: Sample> TwoHop<T> {
    pub(super) fn start(scale: Scale, shards: Option<u16>, count: u64, window: usize) -> Result<Self, LoadError> {
        let builder = Organism::builder("two-hop")
            .client("cli", |client| client.calls::<T>())
            .listener("front", Front::<T>::default, |c| {
                c.accepts::<T>().calls::<T>().returns::<T>().replies::<T>().stateless()
            })
            .listener("back", Back::<T>::default, |c| {
                c.accepts::<T>().replies::<T>().routing(Routing::Addressed).stateless()
            });
        let builder = match shards {
            Some(shards) => builder.shards(shards),
            None => builder,
        };
        Ok(Self { pump: Pump::new(builder.start()?)?, count: scale.of(count), window, payload: PhantomData })
    }
}

impl<T: Sample> Load for TwoHop<T> {
    fn round(&mut self, latencies: &mut Latencies) -> Result<u64, LoadError> {
        self.pump.converse(&T::envelope(), self.count, self.window, latencies)?;
        Ok(self.pump.delivered())
    }
}

struct Front<T>(PhantomData<fn() -> T>);
struct Back<T>(PhantomData<fn() -> T>);

impl<T> Default for Front<T> {
    fn default() -> Self {
        Self(PhantomData)
    }
}

impl<T> Default for Back<T> {
    fn default() -> Self {
        Self(PhantomData)
    }
}

impl<T: 'static> Actor for Front<T> {
    type Context = Context<Self>;
}

impl<T: 'static> Actor for Back<T> {
    type Context = Context<Self>;
}

impl<T: Sample> Handler<Delivery<T>> for Front<T> {
    type Result = Response;

    fn handle(&mut self, delivery: Delivery<T>, _: &mut Context<Self>) -> Response {
        Ok(match delivery.in_reply_to() {
            None => call_to("back", delivery.into_inner()),
            Some(_) => reply(delivery.into_inner()),
        })
    }
}

impl<T: Sample> Handler<Delivery<T>> for Back<T> {
    type Result = Response;

    fn handle(&mut self, delivery: Delivery<T>, _: &mut Context<Self>) -> Response {
        Ok(reply(delivery.into_inner()))
    }
}
