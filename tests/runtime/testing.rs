//! The test kit as its users use it.

use std::time::Duration;

use systole::actor::*;
use systole::core::EventKind;
use systole::prelude::*;
use systole::testing::{Kit, Probe};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema, Payload)]
#[payload(namespace = "urn:example:calculator:v1", reply = Sum)]
struct Add {
    a: i64,
    b: i64,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema, Payload)]
#[payload(namespace = "urn:example:calculator:v1")]
struct Sum {
    value: i64,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema, Payload)]
#[payload(namespace = "urn:example:research:v1", reply = Sum)]
struct Question {
    text: String,
}

/// A listener that asks for two sums at once, and sleeps in between.
struct Researcher;

impl Actor for Researcher {
    type Context = Context<Self>;
}

impl Handler<Delivery<Question>> for Researcher {
    type Result = ResponseFuture<Response>;

    fn handle(&mut self, question: Delivery<Question>, _: &mut Context<Self>) -> Self::Result {
        Box::pin(async move {
            actix::clock::sleep(Duration::from_secs(5)).await;
            let sums = question.thread().call_all([Add { a: 1, b: 2 }, Add { a: 3, b: 4 }], Join::All).await?;
            Ok(question.reply(Sum { value: sums.replies().map(|sum| sum.value).sum() }))
        })
    }
}

fn kit(calculator: &Probe<Add>) -> Kit {
    let builder = Organism::builder("tested")
        .listener("researcher", || Researcher, |c| c.accepts::<Question>().replies::<Sum>().calls::<Add>())
        .listener("calculator", calculator.factory(), |c| c.accepts::<Add>().replies::<Sum>())
        .client("cli", |c| c.calls::<Question>().calls::<Add>());
    Kit::start(builder).unwrap()
}

fn question() -> Question {
    Question { text: "how much?".into() }
}

#[test]
fn time_passes_only_when_the_test_lets_it() {
    let calculator = Probe::<Add>::new();
    let kit = kit(&calculator);
    let start = kit.now();
    kit.client("cli").tell(question()).unwrap();
    kit.settle();
    assert_eq!(kit.tree(), "root\n  researcher\n");
    assert_eq!(kit.now(), start);
    kit.advance(Duration::from_millis(4_999));
    assert_eq!(calculator.received(), []);
    kit.advance(Duration::from_millis(1));
    assert_eq!(calculator.received(), [Add { a: 1, b: 2 }, Add { a: 3, b: 4 }]);
    assert_eq!(kit.now().since(start), Duration::from_secs(5));
    let tree = kit.tree();
    assert!(tree.starts_with("root\n  researcher\n    calculator\n    calculator"), "{tree}");
}

#[test]
fn a_probe_answers_by_hand_or_by_closure() {
    let calculator = Probe::<Add>::new();
    let mut kit = kit(&calculator);
    let client = kit.client("cli");
    client.tell(question()).unwrap();
    kit.advance(Duration::from_secs(5));
    let first = calculator.take().expect("it holds two");
    assert_eq!((first.payload.clone(), first.from.as_str()), (Add { a: 1, b: 2 }, "researcher"));
    first.reply(Sum { value: 10 });
    calculator.take().expect("it holds another").reply(Sum { value: 20 });
    assert!(calculator.take().is_none());
    kit.settle();
    let egress = client.try_receive().expect("the researcher answered");
    assert!(egress.payload.as_str().contains("30"), "{}", egress.payload.as_str());

    calculator.reply_with(|add| Sum { value: add.a * add.b });
    let answer = kit.ask("cli", question()).unwrap();
    assert_eq!(answer, Sum { value: 14 }, "and five seconds passed by themselves");
    assert_eq!(kit.tree(), "");
    let opened = kit.events().into_iter().filter(|event| matches!(event.kind, EventKind::Opened { .. })).count();
    assert_eq!(opened, 8, "two roots, two researchers, four calculators");
}

#[test]
fn a_handler_that_hangs_times_out_on_the_simulated_clock() {
    let calculator = Probe::<Add>::new();
    let kit = kit(&calculator);
    let before = kit.now();
    let asked = kit.ask("cli", question());
    assert!(matches!(&asked, Err(AskError::Fault { fault, .. }) if fault.code == FaultCode::Timeout), "{asked:?}");
    assert_eq!(kit.now().since(before), Duration::from_secs(35), "5 s of sleep, then the timeout of the calculator");
    assert!(calculator.take().is_none(), "nobody waits for an answer any more");
}

#[test]
fn a_listener_that_panics_comes_back_and_one_that_keeps_panicking_after_its_rest() {
    let calculator = Probe::<Add>::new();
    let kit = kit(&calculator);
    calculator.reply_with(|add| if add.a == 13 { panic!("as told") } else { Sum { value: add.a } });
    for _ in 0..6 {
        kit.ask("cli", Add { a: 13, b: 0 }).unwrap_err();
    }
    let before = kit.now();
    assert_eq!(kit.ask("cli", Add { a: 1, b: 0 }).unwrap(), Sum { value: 1 });
    assert_eq!(kit.now().since(before), Duration::from_secs(1), "the message waits until it is back");
}

/// An actor that panics at numbers divisible by its own.
struct Fragile(i64);

impl Actor for Fragile {
    type Context = Context<Self>;
}

impl Handler<Delivery<Add>> for Fragile {
    type Result = Response;

    fn handle(&mut self, add: Delivery<Add>, _: &mut Context<Self>) -> Response {
        assert!(add.a % self.0 != 0, "as told");
        Ok(add.reply(Sum { value: add.a }))
    }
}

#[test]
fn a_panic_fails_its_own_message_alone_however_often_the_actor_panics() {
    // The second one rests: some messages are queued at the actor then, the others wait for a slot.
    for (divisor, panics) in [(37, 1), (5, 8)] {
        for concurrency in [1, 4, 64] {
            let builder = Organism::builder("tested")
                .listener(
                    "fragile",
                    move || Fragile(divisor),
                    |c| c.accepts::<Add>().replies::<Sum>().concurrency(concurrency),
                )
                .client("cli", |c| c.calls::<Add>());
            let kit = Kit::start(builder).unwrap();
            let client = kit.client("cli");
            let roots: Vec<_> = (1..41).map(|a| (client.tell(Add { a, b: 0 }).unwrap(), a)).collect();
            kit.run_until_idle();
            let mut came: Vec<_> = std::iter::from_fn(|| client.try_receive()).collect();
            assert_eq!(came.len(), 40, "{concurrency} slots");
            came.retain(|egress| egress.fault.is_some());
            let failed = |egress: &Egress| roots.iter().find(|(root, _)| *root == egress.root).expect("it was sent").1;
            assert!(came.iter().all(|egress| failed(egress) % divisor == 0), "each fault has its own cause: {came:?}");
            assert_eq!(came.len(), panics, "{concurrency} slots");
            let message = |egress: &Egress| egress.fault.as_ref().expect("retained above").message.clone();
            assert!(came.iter().all(|egress| &*message(egress) == "a listener failed while it handled a message"));
        }
    }
}

#[test]
fn an_organism_drains_on_the_simulated_clock() {
    let calculator = Probe::<Add>::new();
    let mut kit = kit(&calculator);
    let client = kit.client("cli");
    client.tell(Add { a: 1, b: 2 }).unwrap();
    kit.settle();
    let before = kit.now();
    let drained = kit.drain(Duration::from_secs(10));
    assert_eq!((drained.idle, drained.ended), (false, true));
    assert_eq!(kit.now().since(before), Duration::from_secs(10));
    let fault = client.try_receive().and_then(|egress| egress.fault);
    assert_eq!(fault.map(|fault| fault.code), Some(FaultCode::Cancelled));
}

#[test]
fn two_runs_are_the_same() {
    let run = || {
        let calculator = Probe::<Add>::new();
        calculator.reply_with(|add| Sum { value: add.a + add.b });
        let mut kit = kit(&calculator);
        for _ in 0..3 {
            kit.client("cli").tell(question()).unwrap();
        }
        kit.run_until_idle();
        kit.events().into_iter().map(|event| format!("{event:?}")).collect::<Vec<_>>()
    };
    let first = run();
    assert!(first.len() > 20, "{first:?}");
    assert_eq!(first, run());
}

/// A listener that works for ever from boot on, and adds for its callers.
struct Scheduler;

impl Actor for Scheduler {
    type Context = Context<Self>;
}

impl Handler<Delivery<Boot>> for Scheduler {
    type Result = ResponseFuture<Response>;

    fn handle(&mut self, boot: Delivery<Boot>, _: &mut Context<Self>) -> Self::Result {
        Box::pin(async move {
            loop {
                actix::clock::sleep(Duration::from_secs(60)).await;
                boot.thread().call(question()).await?;
            }
        })
    }
}

impl Handler<Delivery<Add>> for Scheduler {
    type Result = Response;

    fn handle(&mut self, add: Delivery<Add>, _: &mut Context<Self>) -> Response {
        Ok(add.reply(Sum { value: add.a + add.b }))
    }
}

#[test]
fn a_boot_handler_that_never_ends_starves_nobody() {
    let questions = Probe::<Question>::new();
    questions.reply_with(|_| Sum { value: 0 });
    let builder = Organism::builder("scheduled")
        .listener(
            "scheduler",
            || Scheduler,
            |c| c.accepts_boot().accepts::<Add>().replies::<Sum>().calls::<Question>().concurrency(1),
        )
        .listener("asked", questions.factory(), |c| c.accepts::<Question>().replies::<Sum>())
        .client("cli", |c| c.calls::<Add>());
    let mut kit = Kit::start(builder).unwrap();
    for minute in 0..10 {
        assert_eq!(questions.received().len(), minute, "it ticks in spite of the questions");
        let sum = kit.ask("cli", Add { a: 1, b: 2 }).unwrap();
        assert_eq!(sum.value, 3, "and they are answered in spite of the ticks");
        kit.advance(Duration::from_secs(60));
    }
    let drained = kit.drain(Duration::from_secs(10));
    assert!(drained.idle && drained.ended, "{drained:?}");
}
