//! Payloads and listeners that several tests use.

use std::sync::Arc;

use systole::actor::*;
use systole::prelude::*;
use systole::runtime::OrganismBuilder;
use tokio::sync::{Semaphore, mpsc};

pub(crate) use crate::oracle::*;

macro_rules! payload {
    ($type:ident, $root:literal) => {
        impl Payload for $type {
            const NAMESPACE: &'static str = crate::oracle::NAMESPACE;
            const ROOT: &'static str = $root;
        }
    };
}

/// Adds two integers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Add {
    pub(crate) a: i64,
    pub(crate) b: i64,
}
payload!(Add, "add");

/// The sum of two integers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Sum {
    pub(crate) value: i64,
}
payload!(Sum, "sum");

/// Counts down.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Count {
    pub(crate) left: i64,
}
payload!(Count, "count");

/// An order, in words.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Order {
    pub(crate) what: String,
}
payload!(Order, "order");

macro_rules! answered_by {
    ($($request:ident $reply:ident)*) => {
        $(impl Request for $request {
            type Reply = $reply;
        })*
    };
}
answered_by! { Add Sum Count Sum Order Answered }

pub(crate) fn order(what: &str) -> Order {
    Order { what: what.to_owned() }
}

pub(crate) struct Calculator;

impl Actor for Calculator {
    type Context = Context<Self>;
}

impl Handler<Delivery<Add>> for Calculator {
    type Result = Response;

    fn handle(&mut self, add: Delivery<Add>, _: &mut Context<Self>) -> Response {
        if add.a == 13 {
            panic!("as told");
        }
        Ok(add.reply(Sum { value: add.a + add.b }))
    }
}

/// Hides the output of panics that tests cause on purpose.
pub(crate) fn hush() {
    std::panic::set_hook(Box::new(|info| {
        if info.payload().downcast_ref::<&str>() != Some(&"as told") {
            eprintln!("{info}");
        }
    }));
}

/// Starts an organism whose `oracle` has so many concurrency slots: it reports each question, and answers when the
/// semaphore allows it.
pub(crate) fn held_back(
    builder: OrganismBuilder,
    concurrency: u32,
    gate: Arc<Semaphore>,
) -> (Organism, Client, mpsc::UnboundedReceiver<String>) {
    let (begin, begun) = mpsc::unbounded_channel();
    let wait = move |q: Delivery<Question>| {
        let gate = gate.clone();
        let _ = begin.send(q.text.clone());
        async move {
            gate.acquire().await?.forget();
            Ok(q.reply(answered(&*q.text)))
        }
    };
    let oracle = move || Oracle(wait.clone());
    let organism = builder
        .listener("oracle", oracle, |c| c.accepts::<Question>().replies::<Answered>().concurrency(concurrency))
        .client("cli", |c| c.calls::<Question>())
        .start()
        .unwrap();
    let client = organism.client("cli").unwrap();
    (organism, client, begun)
}

/// Fails a test that would hang.
pub(crate) async fn within<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(std::time::Duration::from_secs(60), future).await.expect("the organism hangs")
}
