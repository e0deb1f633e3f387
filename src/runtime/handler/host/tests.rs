//! Tests of hosts without a core: their reports for the actions of listeners.

mod actors;
mod others;

use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use actix::prelude::*;
use systole_core::core::{
    Blueprint, Body, Contract, CoreId, Emission, EmissionKind, Failure, HandlerOutcome, Input, InvocationId,
    ListenerId, Message as Incoming, OrganismVersion,
};
use systole_core::vocab::{Fault, FaultCode, IdKey, Limits, MessageId, Name, ThreadId, XmlLimits};
use tokio::task::yield_now;

use super::ActorHost;
use crate::drafts::DraftTable;
use crate::runtime::handler::delivery::Delivery;
use crate::runtime::handler::kind::{Accepts, AsActor};
use crate::runtime::handler::response::{Emit, Response, none};
use crate::runtime::shard::command::{Command, links};
use crate::runtime::shard::context::ShardContext;
use crate::runtime::shard::handlers::Place;
use crate::runtime::shard::host::Host;
use systole_store::clock::Clock;

const HERE: CoreId = CoreId(0);
const LISTENER: ListenerId = ListenerId(0);

/// A shard context whose pump is the test.
struct Bench {
    shard_context: Rc<ShardContext>,
    host: Rc<dyn Host>,
    commands: tokio::sync::mpsc::UnboundedReceiver<(CoreId, Command)>,
    next: u32,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Seen {
    Said(u32),
    Failed(u32, String),
    Panicked(u32),
    Discarded(u32),
    Aborted(u32),
    Called(u32),
    CallDropped(u32),
    Parked(u32),
    Rests(bool),
    Stalled(u32, bool),
}

impl Bench {
    fn new(host: impl FnOnce(Rc<ShardContext>) -> Rc<dyn Host>) -> Self {
        let (links, mut receivers) = links(1);
        let contract = Contract::new(Name::parse("tested").unwrap());
        let blueprint = Arc::new(Blueprint::new("bench", vec![contract], vec![]));
        let shard_context = ShardContext::new(
            HERE,
            Clock::real(),
            links,
            OrganismVersion { blueprint, catalog: Arc::default(), decoders: Arc::default() },
            IdKey::new([0; 32]),
            (DraftTable::new(&Limits::default(), 0).writer(), Arc::default()),
        );
        Self { host: host(shard_context.clone()), shard_context, commands: receivers.remove(0), next: 0 }
    }

    fn of<A>(factory: impl Fn() -> A + Send + Sync + 'static) -> Self
    where
        A: Actor<Context = Context<A>> + Accepts<Fault, AsActor>,
    {
        Self::new(|shard_context| {
            let routes = [<A as Accepts<Fault, AsActor>>::route()];
            ActorHost::spawn(shard_context, LISTENER, Arc::new(factory), Arc::from(routes))
        })
    }

    fn send(&mut self, text: &str) -> InvocationId {
        let invocation = InvocationId::made_up(self.next);
        self.next += 1;
        let id = uuid::Uuid::from_u128(u128::from(self.next));
        let message = Incoming {
            id: MessageId::from_uuid(id),
            thread: ThreadId::from_uuid(id),
            from: Name::system(),
            in_reply_to: None,
            body: Body::Fault(Fault::new(FaultCode::Failed, text)),
            join: None,
            deadline: None,
            is_budgeted: false,
            attempts: 0,
            root: ThreadId::from_uuid(uuid::Uuid::nil()),
            traceparent: None,
            history: Vec::new(),
            place: Default::default(),
            number: 0,
            notes: Vec::new(),
        };
        let key = self.shard_context.enter(HERE, invocation, LISTENER, Place::Host);
        self.host.clone().start(key, message);
        invocation
    }

    fn abort(&self, invocation: InvocationId) {
        let key = self.shard_context.key(HERE, invocation);
        let detached = match &self.shard_context.handlers.borrow_mut().get(HERE, invocation).unwrap().place {
            Place::Detached(running) => Some(running.clone()),
            _ => None,
        };
        match detached {
            Some(running) => running.cancel(),
            None => self.host.abort(key),
        }
    }

    /// Lets everything run until `count` reports have come.
    async fn reports(&mut self, count: usize) -> Vec<Seen> {
        let mut seen = Vec::new();
        for _ in 0..10_000 {
            if seen.len() >= count {
                break;
            }
            while let Some(input) = self.shard_context.next_input() {
                seen.push(see(input));
            }
            while let Ok((_, command)) = self.commands.try_recv() {
                if let Command::Unblocked { key, outcome, .. } = command {
                    self.host.clone().ended(key, outcome);
                }
            }
            yield_now().await;
        }
        assert_eq!(seen.len(), count, "reported: {seen:?}");
        seen
    }

    /// Lets everything run, and returns the reports.
    async fn settle(&mut self) -> Vec<Seen> {
        for _ in 0..50 {
            yield_now().await;
        }
        std::iter::from_fn(|| self.shard_context.next_input()).map(see).collect()
    }
}

fn see((_, input): (CoreId, Input)) -> Seen {
    let index = |invocation: InvocationId| u32::try_from(invocation.index()).unwrap();
    match input {
        Input::Finished { invocation, outcome } => match outcome {
            HandlerOutcome::Emitted(_) | HandlerOutcome::Wrote(_) => Seen::Said(index(invocation)),
            HandlerOutcome::Failed(failure) => Seen::Failed(index(invocation), failure.message.to_string()),
            HandlerOutcome::Panicked => Seen::Panicked(index(invocation)),
            HandlerOutcome::Discarded => Seen::Discarded(index(invocation)),
            HandlerOutcome::Aborted => Seen::Aborted(index(invocation)),
            other => panic!("a host does not end a handler with {other:?}"),
        },
        Input::Called { invocation, .. } => Seen::Called(index(invocation)),
        Input::CallDropped { invocation, .. } => Seen::CallDropped(index(invocation)),
        Input::Parked { invocation } => Seen::Parked(index(invocation)),
        Input::ListenerRests { rests, .. } => Seen::Rests(rests),
        Input::Stalled { invocation, stalled } => Seen::Stalled(index(invocation), stalled),
        other => panic!("a host said {other:?}"),
    }
}

fn test(run: impl AsyncFnOnce()) {
    // The panics are part of the tests, so their messages are not printed.
    std::panic::set_hook(Box::new(|info| {
        if info.payload().downcast_ref::<&str>() != Some(&"as told") {
            eprintln!("{info}");
        }
    }));
    System::new().block_on(run());
}

fn some_call() -> Emit {
    let text = "<x xmlns='urn:test'/>".to_owned();
    let payload = systole_xml::ladder::parse(&systole_xml::ladder::Raw::new(text), &XmlLimits::default()).unwrap();
    let payload = systole_xml::schema::Draft::Canonical(payload);
    Emit::from(Emission { kind: EmissionKind::Call, to: None, thread: None, payload })
}

/// Acts as the text of the fault asks.
async fn obey(delivery: Delivery<Fault>) -> Response {
    match &*delivery.message {
        "panic" => panic!("as told"),
        "panic later" => {
            yield_now().await;
            panic!("as told")
        }
        "later" => yield_now().await,
        "never" => std::future::pending().await,
        "call" => drop(delivery.thread().call_any(some_call()).await?),
        "give up" => {
            let mut call = delivery.thread().call_any(some_call());
            std::future::poll_fn(|cx| {
                assert!(std::pin::Pin::new(&mut call).poll(cx).is_pending());
                std::task::Poll::Ready(())
            })
            .await;
            drop(call);
            std::future::pending().await
        }
        "fail" => return Err(Failure::new("failed as told")),
        _ => {}
    }
    Ok(none())
}

/// A factory that counts the instances it made.
fn counted<A>(make: impl Fn(usize) -> A + Send + Sync) -> (Arc<AtomicUsize>, impl Fn() -> A + Send + Sync) {
    let made = Arc::new(AtomicUsize::new(0));
    let count = made.clone();
    (made, move || make(count.fetch_add(1, Ordering::Relaxed)))
}
