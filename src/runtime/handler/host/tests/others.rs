//! Tests of listeners that are not actors.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use systole_core::core::{Body, HandlerOutcome, InvocationId, Join, Message as Incoming};
use systole_core::vocab::Fault;
use tokio::task::yield_now;

use super::{Bench, LISTENER, Seen, counted, some_call, test};
use crate::runtime::handler::delivery::Delivery;
use crate::runtime::handler::host::{BlockingHost, RawHost, Routed, Run};
use crate::runtime::handler::kind::{Accepts, AsBlocking, BlockingHandler};
use crate::runtime::handler::raw::{LocalBoxFuture, RawListener, RunContext};
use crate::runtime::handler::response::{Response, none};
use crate::runtime::shard::command::Command;

struct Plain {
    seen: RefCell<Vec<String>>,
    dropped: Rc<Cell<usize>>,
}
impl Drop for Plain {
    fn drop(&mut self) {
        self.dropped.set(self.dropped.get() + 1);
    }
}
impl RawListener for Plain {
    fn run(self: Rc<Self>, message: Incoming, context: RunContext) -> LocalBoxFuture<HandlerOutcome> {
        let Body::Fault(fault) = message.body else { unreachable!() };
        if &*fault.message == "panic in run" {
            panic!("as told");
        }
        Box::pin(async move {
            yield_now().await;
            match &*fault.message {
                "panic" => panic!("as told"),
                "call" => {
                    let _ = context.thread().call_all_any([some_call(), some_call()], Join::Settled).await;
                }
                _ => {}
            }
            self.seen.borrow_mut().push(fault.message.to_string());
            HandlerOutcome::Emitted(Vec::new())
        })
    }
}

#[test]
fn a_listener_that_is_no_actor_is_contained_too() {
    test(async || {
        let mut bench = Bench::new(|shard_context| {
            RawHost::new(
                shard_context,
                LISTENER,
                Arc::new(|| Rc::new(Plain { seen: RefCell::default(), dropped: Rc::default() })),
            )
        });
        for text in ["call", "panic in run", "panic", "now"] {
            bench.send(text);
        }
        let seen = bench.reports(5).await;
        assert_eq!(seen[0], Seen::Panicked(1), "{seen:?}");
        for expected in [Seen::Panicked(2), Seen::Said(3), Seen::Called(0), Seen::Parked(0)] {
            assert!(seen.contains(&expected), "{seen:?}");
        }
        bench.abort(InvocationId::made_up(0));
        assert_eq!(bench.reports(1).await, [Seen::Aborted(0)]);
    });
}

struct Slow;
impl BlockingHandler<Fault> for Slow {
    fn handle(&self, delivery: Delivery<Fault>) -> Response {
        match &*delivery.message {
            "panic" => panic!("as told"),
            "call" => drop(crate::runtime::block_on(delivery.thread().call_any(some_call()))?),
            _ => {}
        }
        Ok(none())
    }
}

#[test]
fn a_blocking_listener_runs_elsewhere_and_cannot_wait() {
    test(async || {
        let (made, factory) = counted(|_| Slow);
        let factory = move || -> Arc<dyn Run> {
            Arc::new(Routed { listener: factory(), routes: [<Slow as Accepts<Fault, AsBlocking>>::route()].into() })
        };
        let mut bench = Bench::new(|shard_context| BlockingHost::new(shard_context, LISTENER, Arc::new(factory)));
        for text in ["now", "panic", "call"] {
            bench.send(text);
            while bench.shard_context.has_input() {
                yield_now().await;
            }
        }
        let mut seen = Vec::new();
        while seen.len() < 3 {
            seen.extend(bench.settle().await);
            if let Some((_, Command::Unblocked { key, outcome, .. })) = bench.commands.recv().await {
                bench.host.clone().ended(key, outcome);
            }
            seen.extend(bench.settle().await);
        }
        assert!(seen.contains(&Seen::Said(0)) && seen.contains(&Seen::Panicked(1)), "{seen:?}");
        assert!(seen.iter().any(|seen| matches!(seen, Seen::Failed(2, _))), "{seen:?}");
        bench.send("now");
        let Some((_, Command::Unblocked { key, outcome, .. })) = bench.commands.recv().await else {
            panic!("nothing ran")
        };
        bench.host.clone().ended(key, outcome);
        assert_eq!(bench.settle().await, [Seen::Said(3)]);
        assert!(made.load(Ordering::Relaxed) >= 2, "made anew after the panic");
    });
}
