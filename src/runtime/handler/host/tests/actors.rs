//! Tests of actors, by the results of their handlers.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use actix::fut::wrap_future;
use actix::prelude::*;
use systole_core::core::{CallId, InvocationId};
use systole_core::vocab::{Fault, FaultCode};

use super::{Bench, HERE, Seen, counted, obey, test};
use crate::runtime::handler::delivery::Delivery;
use crate::runtime::handler::response::{Response, none};
use crate::runtime::handler::result::AtomicResponse;
use crate::runtime::shard::restart::{LONGEST_REST, rest};

struct Detaching;
impl Actor for Detaching {
    type Context = Context<Self>;
}
impl Handler<Delivery<Fault>> for Detaching {
    type Result = ResponseFuture<Response>;
    fn handle(&mut self, delivery: Delivery<Fault>, _: &mut Context<Self>) -> Self::Result {
        if &*delivery.message == "panic in handle" {
            panic!("as told");
        }
        Box::pin(obey(delivery))
    }
}

struct Acting;
impl Actor for Acting {
    type Context = Context<Self>;
}
impl Handler<Delivery<Fault>> for Acting {
    type Result = ResponseActFuture<Self, Response>;
    fn handle(&mut self, delivery: Delivery<Fault>, _: &mut Context<Self>) -> Self::Result {
        Box::pin(wrap_future(obey(delivery)))
    }
}

struct Excluding;
impl Actor for Excluding {
    type Context = Context<Self>;
}
impl Handler<Delivery<Fault>> for Excluding {
    type Result = AtomicResponse<Self, Response>;
    fn handle(&mut self, delivery: Delivery<Fault>, _: &mut Context<Self>) -> Self::Result {
        AtomicResponse::of(wrap_future(obey(delivery)))
    }
}

struct Foreign;
impl Actor for Foreign {
    type Context = Context<Self>;
}
impl Handler<Delivery<Fault>> for Foreign {
    type Result = actix::AtomicResponse<Self, Response>;
    fn handle(&mut self, delivery: Delivery<Fault>, _: &mut Context<Self>) -> Self::Result {
        actix::AtomicResponse::new(Box::pin(wrap_future(obey(delivery))))
    }
}

#[test]
fn of_a_hundred_queued_messages_only_the_one_that_panics_fails() {
    for kind in ["panic in handle", "panic", "panic later"] {
        test(async || {
            let (made, factory) = counted(|_| Detaching);
            let mut bench = Bench::of(factory);
            for n in 0..100 {
                bench.send(if n == 37 { kind } else { "later" });
            }
            let mut seen = bench.reports(100).await;
            seen.sort_by_key(|seen| match seen {
                Seen::Said(n) | Seen::Panicked(n) => *n,
                other => panic!("{kind}: {other:?}"),
            });
            let panicked: Vec<_> = seen.iter().filter(|seen| matches!(seen, Seen::Panicked(_))).collect();
            assert_eq!(panicked, [&Seen::Panicked(37)], "{kind}");
            bench.settle().await;
            assert_eq!(made.load(Ordering::Relaxed), 2, "{kind}: the listener was made anew once");
        });
    }
}

#[test]
fn messages_that_were_not_started_keep_their_order() {
    test(async || {
        let mut bench = Bench::of(|| Detaching);
        for n in 0..10 {
            bench.send(if n % 4 == 3 { "panic in handle" } else { "now" });
        }
        let order: Vec<_> = bench.reports(10).await;
        let expected = (0..10).map(|n| if n % 4 == 3 { Seen::Panicked(n) } else { Seen::Said(n) });
        assert_eq!(order, expected.collect::<Vec<_>>());
    });
}

#[test]
fn futures_that_need_the_actor_are_discarded_with_it() {
    test(async || {
        let mut bench = Bench::of(|| Acting);
        bench.send("never");
        bench.settle().await;
        bench.send("panic");
        bench.send("later");
        assert_eq!(bench.reports(3).await, [Seen::Panicked(1), Seen::Discarded(0), Seen::Said(2)]);
    });
}

#[test]
fn futures_that_need_no_actor_survive_it() {
    test(async || {
        let mut bench = Bench::of(|| Detaching);
        bench.send("call");
        assert_eq!(bench.reports(2).await, [Seen::Called(0), Seen::Parked(0)]);
        bench.send("panic");
        assert_eq!(bench.reports(1).await, [Seen::Panicked(1)]);
        bench.settle().await;
        bench.shard_context.resume(
            HERE,
            InvocationId::made_up(0),
            CallId(0),
            Err(Fault::new(FaultCode::Silent, "nobody")),
        );
        assert_eq!(bench.reports(1).await, [Seen::Failed(0, "silent: nobody".into())]);
    });
}

#[test]
fn an_exclusive_handler_is_alone_until_it_ends_or_is_dropped() {
    test(async || {
        let (made, factory) = counted(|_| Excluding);
        let mut bench = Bench::of(factory);
        let first = bench.send("never");
        bench.send("later");
        assert_eq!(bench.settle().await, []);
        bench.abort(first);
        assert_eq!(bench.reports(2).await, [Seen::Aborted(0), Seen::Said(1)]);
        assert_eq!(made.load(Ordering::Relaxed), 1, "its state survives");
    });
}

#[test]
fn an_exclusive_handler_of_actix_takes_its_actor_with_it() {
    test(async || {
        let (made, factory) = counted(|_| Foreign);
        let mut bench = Bench::of(factory);
        bench.send("later");
        assert_eq!(bench.reports(1).await, [Seen::Said(0)]);
        let first = bench.send("never");
        bench.send("later");
        assert_eq!(bench.settle().await, []);
        bench.abort(first);
        assert_eq!(bench.reports(2).await, [Seen::Aborted(1), Seen::Said(2)]);
        assert_eq!(made.load(Ordering::Relaxed), 2);
        bench.send("panic later");
        bench.send("later");
        assert_eq!(bench.reports(2).await, [Seen::Panicked(3), Seen::Said(4)]);
    });
}

#[test]
fn a_handler_that_holds_its_actor_cannot_wait() {
    test(async || {
        for mut bench in [Bench::of(|| Excluding), Bench::of(|| Foreign)] {
            bench.send("call");
            let seen = bench.reports(1).await;
            assert!(matches!(&seen[..], [Seen::Failed(0, text)] if text.contains("can't await")), "{seen:?}");
        }
    });
}

#[test]
fn a_handler_that_waits_parks_once_and_ends_when_it_is_resumed() {
    test(async || {
        for mut bench in [Bench::of(|| Detaching), Bench::of(|| Acting)] {
            let invocation = bench.send("call");
            assert_eq!(bench.settle().await, [Seen::Called(0), Seen::Parked(0)]);
            bench.shard_context.resume(HERE, invocation, CallId(0), Ok(Vec::new()));
            let seen = bench.reports(1).await;
            assert!(matches!(&seen[..], [Seen::Failed(0, _)]), "{seen:?}");
        }
    });
}

#[test]
fn a_call_that_is_given_up_is_dropped() {
    test(async || {
        for mut bench in [Bench::of(|| Detaching), Bench::of(|| Acting)] {
            bench.send("give up");
            assert_eq!(bench.settle().await, [Seen::Called(0), Seen::CallDropped(0)]);
        }
    });
}

#[test]
fn an_aborted_handler_ends_at_once_wherever_it_is() {
    test(async || {
        for mut bench in [Bench::of(|| Detaching), Bench::of(|| Acting)] {
            let running = bench.send("call");
            bench.settle().await;
            let queued = bench.send("now");
            bench.abort(queued);
            bench.abort(running);
            assert_eq!(bench.settle().await, [Seen::Aborted(1), Seen::Aborted(0)], "no word of its calls");
        }
    });
}

/// An actor that fails at a chosen place.
struct Fragile {
    dies_on_stop: bool,
}
impl Actor for Fragile {
    type Context = Context<Self>;
    fn stopping(&mut self, _: &mut Context<Self>) -> Running {
        assert!(!self.dies_on_stop, "as told");
        Running::Continue
    }
}
impl Handler<Delivery<Fault>> for Fragile {
    type Result = Response;
    fn handle(&mut self, delivery: Delivery<Fault>, ctx: &mut Context<Self>) -> Response {
        match &*delivery.message {
            "panic" => panic!("as told"),
            "stop" => ctx.stop(),
            "ticking" => drop(ctx.spawn(wrap_future(async { panic!("as told") }))),
            _ => {}
        }
        Ok(none())
    }
}

#[test]
fn panics_while_it_stops_and_of_its_own_tasks_hit_no_message() {
    test(async || {
        for dies_on_stop in [false, true] {
            let (made, factory) = counted(move |_| Fragile { dies_on_stop });
            let mut bench = Bench::of(factory);
            for text in ["panic", "ticking", "now"] {
                bench.send(text);
                bench.settle().await;
            }
            assert_eq!(made.load(Ordering::Relaxed), 3, "dies on stop: {dies_on_stop}");
            bench.send("stop");
            bench.send("now");
            assert_eq!(bench.reports(2).await, [Seen::Said(3), Seen::Said(4)]);
        }
    });
}

/// A factory that fails but for the instances of these numbers.
fn failing(good: &'static [usize]) -> (Arc<AtomicUsize>, impl Fn() -> Detaching + Send + Sync) {
    counted(|n| {
        assert!(good.contains(&n), "as told");
        Detaching
    })
}

#[test]
fn messages_of_a_listener_that_rests_wait_and_only_those_that_are_cancelled_end() {
    test(async || {
        let (made, factory) = failing(&[0, 6]);
        let mut bench = Bench::of(factory);
        tokio::time::pause();
        bench.send("panic");
        bench.send("now");
        assert_eq!(bench.reports(3).await, [Seen::Panicked(0), Seen::Rests(true), Seen::Stalled(1, true)]);
        assert_eq!(made.load(Ordering::Relaxed), 6, "five restarts");
        let cancelled = bench.send("now");
        bench.abort(cancelled);
        bench.send("now");
        assert_eq!(bench.settle().await, [Seen::Stalled(2, true), Seen::Aborted(2), Seen::Stalled(3, true)]);
        tokio::time::sleep(rest(1)).await;
        let back = [Seen::Rests(false), Seen::Stalled(1, false), Seen::Stalled(3, false)];
        assert_eq!(bench.reports(5).await, [&back[..], &[Seen::Said(1), Seen::Said(3)]].concat());
    });
}

#[test]
fn a_message_that_has_waited_is_given_up_if_the_factory_still_fails_behind_the_longest_rest() {
    test(async || {
        let (made, factory) = failing(&[]);
        let mut bench = Bench::of(factory);
        tokio::time::pause();
        bench.send("now");
        assert_eq!(bench.reports(2).await, [Seen::Rests(true), Seen::Stalled(0, true)]);
        let mut rests = 1;
        while rest(rests) < LONGEST_REST {
            tokio::time::sleep(rest(rests)).await;
            let seen = bench.reports(4).await;
            let again = [Seen::Rests(false), Seen::Stalled(0, false), Seen::Rests(true), Seen::Stalled(0, true)];
            assert_eq!(seen, again, "behind rest {rests}");
            rests += 1;
        }
        tokio::time::sleep(LONGEST_REST).await;
        let seen = bench.reports(4).await;
        assert!(matches!(&seen[2], Seen::Failed(0, why) if why.contains("its factory panicked")), "{seen:?}");
        assert_eq!(seen[3], Seen::Rests(true), "the failures of the listener are not forgotten");
        assert_eq!(made.load(Ordering::Relaxed), 6 + rests as usize, "one attempt behind each rest");
    });
}

#[test]
fn a_closed_host_drops_everything_and_reports_nothing_more() {
    test(async || {
        let mut bench = Bench::of(|| Acting);
        bench.send("never");
        bench.settle().await;
        bench.send("now");
        bench.shard_context.handlers.borrow_mut().drain();
        bench.host.close();
        assert_eq!(bench.settle().await, []);
    });
}
