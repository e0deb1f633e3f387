//! The organism that is killed: it takes orders from standard input, each a number, and reports orders and answers.

use std::io::{BufRead, Write};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use systole::actor::*;
use systole::core::Join;
use systole::inbox::payload::{Accept, Complete, ResultPayload, Submit};
use systole::inbox::{Status, TaskEvent, TaskEventKind};
use systole::jobs::Job;
use systole::journal::{Durability, NamedJournal};
use systole::prelude::*;
use systole::runtime::block_on;
use systole::vocab::{Limits, TaskId};

pub(crate) const JOURNAL: &str = "SYSTOLE_TEST_JOURNAL";
pub(crate) const LEVEL: &str = "SYSTOLE_TEST_LEVEL";

/// An order.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
struct Order {
    /// The number, by which it is answered.
    n: i64,
}

/// The answer to an order.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
struct Made {
    /// The number of the order.
    n: i64,
    /// The sum of all parts.
    sum: i64,
}

/// A part to be made.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
struct Part {
    /// The input.
    n: i64,
}

/// A part that was made.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
struct Piece {
    /// The output.
    n: i64,
}

macro_rules! payload {
    ($($type:ident $root:literal)*) => {
        $(impl Payload for $type {
            const NAMESPACE: &'static str = "urn:test:kill:v1";
            const ROOT: &'static str = $root;
        })*
    };
}
payload! { Order "order" Made "made" Part "part" Piece "piece" }

impl Request for Order {
    type Reply = Made;
}

impl Request for Part {
    type Reply = Piece;
}

/// Returns the answer to an order.
pub(crate) fn answer(n: i64) -> i64 {
    let first = 2 * n + 1;
    first + (2 * (first + 1) + 1) + (2 * (first + 2) + 1) + review(n)
}

/// Returns the part that a review adds to an order.
const fn review(n: i64) -> i64 {
    7 * n
}

struct Front;

impl Actor for Front {
    type Context = Context<Self>;
}

impl Handler<Delivery<Order>> for Front {
    type Result = ResponseFuture<Response>;

    fn handle(&mut self, order: Delivery<Order>, _: &mut Context<Self>) -> Self::Result {
        Box::pin(async move {
            let thread = order.thread().clone();
            let first = thread.call(Part { n: order.n }).await?;
            let seen = thread.record("seen", async { first.n }).await?;
            assert_eq!(seen, first.n, "what was recorded belongs to the same run");
            let parts = [Part { n: first.n + 1 }, Part { n: first.n + 2 }];
            let others = thread.call_all(parts, Join::All).await?;
            let submit = call_to("reviews", Submit::new(order.n.to_string()));
            let review: ResultPayload = thread.call_any(submit).await?.decode()?;
            let review: i64 = review.text.parse().map_err(|_| Failure::new(format!("a review is {review:?}")))?;
            let sum = first.n + others.replies().map(|piece| piece.n).sum::<i64>() + review;
            Ok(order.reply(Made { n: order.n, sum }))
        })
    }
}

struct Worker;

impl Actor for Worker {
    type Context = Context<Self>;
}

impl Handler<Delivery<Part>> for Worker {
    type Result = Response;

    fn handle(&mut self, part: Delivery<Part>, _: &mut Context<Self>) -> Response {
        Ok(part.reply(Piece { n: 2 * part.n + 1 }))
    }
}

/// Accepts and completes tasks as they come, first those from before a kill.
fn review_all(organism: &Organism, reviews: &Job, events: std::sync::mpsc::Receiver<TaskEvent>) {
    let reviewer = organism.client("reviewer").expect("it is registered");
    let reader = reviewer.clone();
    // The answers confirm it, or that it was done before the kill.
    std::thread::spawn(move || block_on(async { while reader.receive().await.is_some() {} }));
    let left: Vec<_> = reviews.read(|inbox| {
        let known = |status| match status {
            Status::Pending => Some(TaskEventKind::Routed),
            Status::Accepted => Some(TaskEventKind::Accepted),
            _ => None,
        };
        inbox.tasks().filter_map(|task| Some((task.id, known(task.status)?))).collect()
    });
    let reviews = reviews.clone();
    std::thread::spawn(move || {
        let events = events.into_iter().map(|event| (event.task, event.kind));
        for (id, kind) in left.into_iter().chain(events) {
            let posted = match kind {
                TaskEventKind::Routed => block_on(reviewer.post(call_to("reviews", Accept { id }))),
                TaskEventKind::Accepted => {
                    let text = review(order_of(&reviews, id)).to_string();
                    block_on(reviewer.post(call_to("reviews", Complete { id, text })))
                }
                _ => continue,
            };
            posted.expect("the organism goes on until it is killed");
        }
    });
}

fn order_of(reviews: &Job, id: TaskId) -> i64 {
    reviews.read(|inbox| inbox.get(id).expect("it is open").description.parse().expect("a number"))
}

/// Runs until the process is killed.
pub(crate) fn serve() {
    let journal = std::env::var(JOURNAL).expect("the test says where the journal is");
    let level = match std::env::var(LEVEL).as_deref() {
        Ok("power") => Durability::Power,
        _ => Durability::Process,
    };
    let store = NamedJournal::parse(&journal, None).expect("it is a path or a URL").durability(level).into();
    let (tell, events) = std::sync::mpsc::channel();
    let reviews = Job::new("reviews", "reviewer").expect("names").on_event(move |event| {
        say(&format!("event {} {}/{}", event.number, event.task, event.kind));
        // The receiver ends with the process.
        let _ = tell.send(event.clone());
    });
    let organism = reviews
        .install(Organism::builder("killed"))
        .listener(
            "front",
            || Front,
            |contract| contract.accepts::<Order>().replies::<Made>().calls::<Part>().calls::<Submit>(),
        )
        .listener("worker", || Worker, |contract| contract.accepts::<Part>().replies::<Piece>())
        .client("customer", |client| client.calls::<Order>())
        .client("reviewer", |client| client.calls::<Accept>().calls::<Complete>())
        // Kills are no fault of a message, so it may run often.
        .limits(Limits::default().max_attempts(250))
        .shards(2)
        .store(store)
        .start()
        .unwrap_or_else(|error| panic!("{error}"));
    review_all(&organism, &reviews, events);
    let customer = organism.client("customer").expect("it is registered");
    let reader = customer.clone();
    std::thread::spawn(move || {
        block_on(async {
            while let Some(egress) = reader.receive().await {
                let made: Made = match (&egress.proof, &egress.fault) {
                    (Some(proof), _) => systole::schema::decode(proof).expect("it is a Made"),
                    (None, fault) => panic!("a fault came back: {fault:?}"),
                };
                say(&format!("answer {} {}/{}", made.n, made.sum, egress.number));
            }
        });
    });
    for line in std::io::stdin().lock().lines() {
        let n: i64 = line.expect("it can be read").parse().expect("a number");
        let customer = customer.clone();
        if block_on(customer.post(Order { n })).is_ok() {
            say(&format!("taken {n}"));
        }
    }
    // The other end has only closed its side.
    loop {
        std::thread::park();
    }
}

/// Writes a line in one piece.
fn say(text: &str) {
    let mut out = std::io::stdout().lock();
    out.write_all(format!("organism: {text}.\n").as_bytes()).expect("somebody listens");
    out.flush().expect("somebody listens");
}
