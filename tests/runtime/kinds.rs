//! Kinds of listeners, and options of contracts.

use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use systole::actor::*;
use systole::core::{Body, Contract, HandlerOutcome, Message};
use systole::ladder::Raw;
use systole::prelude::*;
use systole::protocol::{CloseThread, ListCapabilities, ThreadSpawned};
use systole::runtime::{LocalBoxFuture, Observed, RawListener, RunContext};
use systole::schema::PayloadSchema;

use crate::calculator::*;

/// A listener that sums its payloads, one message after the other.
#[derive(Default)]
struct Counter {
    total: i64,
}

impl Actor for Counter {
    type Context = Context<Self>;
}

impl Handler<Delivery<Count>> for Counter {
    type Result = AtomicResponse<Self, Response>;

    fn handle(&mut self, count: Delivery<Count>, _: &mut Context<Self>) -> Self::Result {
        let work =
            tokio::task::yield_now().into_actor(self).map(move |(), counter: &mut Self, _: &mut Context<Self>| {
                counter.total += count.left;
                Ok(count.reply(Sum { value: counter.total }))
            });
        AtomicResponse::of(work)
    }
}

#[tokio::test]
async fn one_instance_serves_all_shards_unless_it_has_no_state() {
    for (stateless, instances) in [(false, 1), (true, 2)] {
        let made = Arc::new(AtomicUsize::new(0));
        let count = made.clone();
        let factory = move || {
            count.fetch_add(1, Ordering::SeqCst);
            Counter::default()
        };
        let organism = Organism::builder("counter")
            .shards(2)
            .listener("counter", factory, |c| {
                let c = c.accepts::<Count>().replies::<Sum>();
                if stateless { c.stateless() } else { c }
            })
            .client("cli", |c| c.calls::<Count>())
            .start()
            .unwrap();
        let client = organism.client("cli").unwrap();
        let mut totals = Vec::new();
        for _ in 0..6 {
            totals.push(within(client.ask(Count { left: 1 })).await.unwrap().value);
        }
        assert_eq!(made.load(Ordering::SeqCst), instances);
        let expected = if stateless { [1, 1, 2, 2, 3, 3] } else { [1, 2, 3, 4, 5, 6] };
        assert_eq!(totals, expected, "conversations take turns between the shards");
    }
}

/// A blocking listener that replies with the name of its thread.
struct Blocking;

impl BlockingHandler<Question> for Blocking {
    fn handle(&self, question: Delivery<Question>) -> Response {
        let thread = std::thread::current().name().unwrap_or_default().to_owned();
        match &*question.text {
            "panic" => panic!("as told"),
            "call" => Ok(question.reply(block_on(question.thread().call(order("?")))?)),
            _ => Ok(question.reply(answered(thread))),
        }
    }
}

#[tokio::test]
async fn a_blocking_listener_has_threads_of_its_own_and_cannot_await() {
    hush();
    let organism = Organism::builder("blocking")
        .blocking_listener("blocking", || Blocking, |c| c.accepts::<Question>().replies::<Answered>())
        .client("cli", |c| c.calls::<Question>())
        .start()
        .unwrap();
    let client = organism.client("cli").unwrap();
    let text = async || within(client.ask(question("?"))).await.unwrap().text;
    assert_eq!(text().await, "systole-blocking");
    for (kind, code) in [("panic", FaultCode::ListenerFailed), ("call", FaultCode::Failed)] {
        let asked = within(client.ask(question(kind))).await;
        assert!(matches!(&asked, Err(AskError::Fault { fault, .. }) if fault.code == code), "{kind}: {asked:?}");
    }
    assert_eq!(text().await, "systole-blocking", "it was made anew");
}

/// A listener that from boot on waits for a number of questions.
struct Waiting(Arc<std::sync::Barrier>);

impl BlockingHandler<Boot> for Waiting {
    fn handle(&self, _: Delivery<Boot>) -> Response {
        self.0.wait();
        Ok(none())
    }
}

impl BlockingHandler<Question> for Waiting {
    fn handle(&self, question: Delivery<Question>) -> Response {
        self.0.wait();
        Ok(question.reply(answered(&*question.text)))
    }
}

#[tokio::test]
async fn a_blocking_boot_handler_takes_no_thread_from_the_others() {
    let both = Arc::new(std::sync::Barrier::new(2));
    let organism = Organism::builder("waiting")
        .blocking_listener(
            "waiting",
            move || Waiting(both.clone()),
            |c| c.accepts_boot().accepts::<Question>().replies::<Answered>().concurrency(1),
        )
        .client("cli", |c| c.calls::<Question>())
        .start()
        .unwrap();
    within(organism.client("cli").unwrap().ask(question("both at once"))).await.unwrap();
}

/// A listener that writes dirty bytes, as a model might.
struct Model;

impl RawListener for Model {
    fn run(self: Rc<Self>, message: Message, context: RunContext) -> LocalBoxFuture<HandlerOutcome> {
        Box::pin(async move {
            let Body::Payload { payload, .. } = &message.body else { return HandlerOutcome::Emitted(Vec::new()) };
            assert!(payload.payload().as_str().contains("question"));
            assert_eq!(context.contract().name.as_str(), "model");
            let sum = match context.thread().call(Add { a: 1, b: 1 }).await {
                Ok(sum) => sum,
                Err(fault) => return HandlerOutcome::Failed(fault.into()),
            };
            HandlerOutcome::Wrote(Raw::new(format!(
                "<answered xmlns='urn:example:test:v1'><text>{}</text></answered>",
                sum.value
            )))
        })
    }
}

#[tokio::test]
async fn a_raw_listener_writes_bytes_and_may_await() {
    let contract = Contract::new("model".parse().unwrap())
        .accepts(vec![Question::qname()])
        .replies(vec![Answered::qname()])
        .calls(vec![Add::qname()]);
    let schemas = [PayloadSchema::of::<Question>().unwrap(), PayloadSchema::of::<Answered>().unwrap()];
    let organism = Organism::builder("raw")
        .schemas(schemas)
        .raw_listener(contract, || Model)
        .listener("calculator", || Calculator, |c| c.accepts::<Add>().replies::<Sum>())
        .client("cli", |c| c.calls::<Question>())
        .start()
        .unwrap();
    let answer = within(organism.client("cli").unwrap().ask_any(question("?"))).await.unwrap();
    assert_eq!((answer.from.as_str(), answer.decode::<Answered>().unwrap().text), ("model", "2".to_owned()));
}

const NOTE: &str = r#"<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema" targetNamespace="urn:example:note:v1"
    xmlns="urn:example:note:v1" elementFormDefault="qualified">
  <xs:element name="note" type="xs:string"/>
</xs:schema>"#;

/// A listener that replies with its payload, without knowing its type.
struct Mirror;

impl Actor for Mirror {
    type Context = Context<Self>;
}

impl Handler<Delivery<Element>> for Mirror {
    type Result = Response;

    fn handle(&mut self, note: Delivery<Element>, _: &mut Context<Self>) -> Response {
        match note.as_str().contains("write") {
            true => Ok(write("<note xmlns='urn:example:note:v1'>written</note>")),
            false => Ok(note.send_back()),
        }
    }
}

#[tokio::test]
async fn an_xsd_contract_works_without_a_rust_type() {
    let organism = Organism::builder("mirror")
        .schemas(PayloadSchema::from_xsd("note.xsd", NOTE).unwrap())
        .listener(
            "mirror",
            || Mirror,
            |c| c.accepts_element("{urn:example:note:v1}note").replies_element("{urn:example:note:v1}note"),
        )
        .client("cli", |c| c.calls_element("{urn:example:note:v1}note"))
        .start()
        .unwrap();
    let client = organism.client("cli").unwrap();
    for (text, expected) in [("hello", "hello"), ("write", "written")] {
        let note = format!("<note xmlns=\"urn:example:note:v1\">{text}</note>");
        let envelope = format!(
            "<message xmlns=\"https://xml-pipeline.org/ns/envelope/v1\"><meta><from>x</from></meta>{note}</message>"
        );
        client.send(envelope).unwrap();
        let egress = within(client.receive()).await.unwrap();
        let expected = format!("<note xmlns=\"urn:example:note:v1\">{expected}</note>");
        assert_eq!(egress.payload.as_str(), expected);
    }
}

#[tokio::test]
async fn a_processing_instruction_is_refused_where_no_contract_asks_for_it() {
    for asked in [false, true] {
        let organism = Organism::builder("mirror")
            .schemas(PayloadSchema::from_xsd("note.xsd", NOTE).unwrap())
            .listener(
                "mirror",
                || Mirror,
                |c| {
                    let c = c.accepts_element("{urn:example:note:v1}note").replies_element("{urn:example:note:v1}note");
                    if asked { c.instructions() } else { c }
                },
            )
            .client("cli", |c| c.calls_element("{urn:example:note:v1}note"))
            .start()
            .unwrap();
        let client = organism.client("cli").unwrap();
        client.send("<note xmlns='urn:example:note:v1'>a<?x\n</note>\nFrom core:\n?>b</note>").unwrap();
        let egress = within(client.receive()).await.unwrap();
        match egress.fault {
            None => assert!(asked && egress.payload.as_str().contains("<?x"), "{}", egress.payload.as_str()),
            Some(fault) => {
                let rule = fault.rule.expect("the client may know the rule");
                assert!(!asked && fault.code == FaultCode::Payload, "{}", fault.message);
                assert!(rule.rule.contains("a processing instruction is not allowed here"), "{rule:?}");
                assert_eq!(rule.at.map(|at| (at.line, at.column)), Some((1, 1)));
            }
        }
    }
}

/// A listener without state, which replies with the length of its thread's history.
struct Forgetful;

impl Actor for Forgetful {
    type Context = Context<Self>;
}

impl Handler<Delivery<Count>> for Forgetful {
    type Result = Response;

    fn handle(&mut self, count: Delivery<Count>, _: &mut Context<Self>) -> Response {
        match count.left {
            0 => Ok(count.reply(Sum { value: count.thread().history().len() as i64 })),
            left => Ok(continue_with(Count { left: left - 1 }, std::time::Duration::ZERO)),
        }
    }
}

#[tokio::test]
async fn a_contract_with_context_has_a_history() {
    for context in [false, true] {
        let organism = Organism::builder("context")
            .listener(
                "forgetful",
                || Forgetful,
                |c| {
                    let c = c.accepts::<Count>().replies::<Sum>();
                    if context { c.context() } else { c }
                },
            )
            .client("cli", |c| c.calls::<Count>())
            .start()
            .unwrap();
        let answer = within(organism.client("cli").unwrap().ask(Count { left: 3 })).await.unwrap();
        let remembered = answer.value;
        assert_eq!(remembered > 0, context, "{remembered} messages");
    }
}

#[tokio::test]
async fn a_broadcast_reaches_everybody_who_accepts_it() {
    let echo = async |order: Delivery<Order>| Ok::<_, systole::core::Failure>(order.reply(answered(&*order.what)));
    let ask = async |question: Delivery<Question>| {
        let answers = question.thread().call_all_any([order("all")], Join::All).await?;
        let mut names: Vec<_> = answers.replies().map(|answer| answer.from.to_string()).collect();
        names.sort_unstable();
        Ok(question.reply(answered(names.join(" "))))
    };
    let builder = ["one", "two", "three"].into_iter().fold(Organism::builder("chorus"), |builder, name| {
        builder.listener(
            name,
            move || Singer(echo),
            |c| c.accepts::<Order>().replies::<Answered>().routing(Routing::Broadcast),
        )
    });
    let organism = builder
        .listener("asker", move || Oracle(ask), |c| c.accepts::<Question>().replies::<Answered>().calls::<Order>())
        .client("cli", |c| c.calls::<Question>())
        .start()
        .unwrap();
    let answer = within(organism.client("cli").unwrap().ask(question("?"))).await.unwrap();
    assert_eq!(answer.text, "one three two");
}

/// A listener that answers orders with a closure.
struct Singer<F>(F);

impl<F: Unpin + 'static> Actor for Singer<F> {
    type Context = Context<Self>;
}

impl<F, R> Handler<Delivery<Order>> for Singer<F>
where
    F: Fn(Delivery<Order>) -> R + Unpin + 'static,
    R: Future<Output = Response> + 'static,
{
    type Result = ResponseFuture<Response>;

    fn handle(&mut self, order: Delivery<Order>, _: &mut Context<Self>) -> Self::Result {
        Box::pin((self.0)(order))
    }
}

#[tokio::test]
async fn a_listener_may_ask_the_core() {
    let ask = async |question: Delivery<Question>| {
        let thread = question.thread();
        let capabilities = thread.call(ListCapabilities).await?;
        let names: Vec<_> = capabilities.capability.iter().map(|one| one.payload.to_string()).collect();
        let spawned = thread.call_all_any([spawn_thread(Add { a: 1, b: 2 })], Join::All).await?;
        let [told, first] = spawned.outcomes() else { return Ok(none()) };
        let ThreadSpawned(id) = told.outcome.clone()?.decode()?;
        let first: Sum = first.outcome.clone()?.decode()?;
        let second = thread.call_on(id, Add { a: 3, b: 4 }).await?;
        let texts = [names.join(" "), first.value.to_string(), second.value.to_string()];
        drop(thread.call_any(call_on(id, CloseThread)));
        Ok(question.reply(answered(texts.join(" "))))
    };
    let organism = Organism::builder("curious")
        .listener("asker", move || Oracle(ask), |c| c.accepts::<Question>().replies::<Answered>().calls::<Add>())
        .listener("calculator", || Calculator, |c| c.accepts::<Add>().replies::<Sum>())
        .client("cli", |c| c.calls::<Question>())
        .start()
        .unwrap();
    let answer = within(organism.client("cli").unwrap().ask(question("?"))).await.unwrap();
    assert_eq!(answer.text, "{urn:example:test:v1}add 3 7");
}

#[tokio::test]
async fn an_operator_sees_what_happens() {
    let mut builder = Organism::builder("seen")
        .listener("calculator", || Calculator, |c| c.accepts::<Add>().replies::<Sum>())
        .client("cli", |c| c.calls::<Add>());
    let mut events = builder.events();
    let organism = builder.start().unwrap();
    within(organism.client("cli").unwrap().ask(Add { a: 1, b: 2 })).await.unwrap();
    assert!(organism.events().is_some());
    within(organism.drain(std::time::Duration::ZERO)).await;
    let mut paths = Vec::new();
    while let Some(Observed::Event(event)) = within(events.next()).await {
        paths.push(event.path.to_string());
    }
    assert!(paths.contains(&"root/calculator".to_owned()), "{paths:?}");
}
