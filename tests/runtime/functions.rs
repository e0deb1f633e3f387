//! Listeners that are async functions.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use systole::prelude::*;

use crate::calculator::*;

async fn add(add: Delivery<Add>) -> Result<Sum, Failure> {
    Ok(Sum { value: add.a + add.b })
}

async fn ask(organism: &Organism, request: impl Request<Reply = Sum>) -> Result<i64, Fault> {
    match within(organism.client("cli").unwrap().ask(request)).await {
        Ok(sum) => Ok(sum.value),
        Err(AskError::Fault { fault, .. }) => Err(fault),
        Err(other) => panic!("{other}"),
    }
}

#[tokio::test]
async fn a_function_is_a_listener_with_the_contract_of_its_types() {
    let organism = Organism::builder("functions")
        .on("named", add)
        .on("closure", async |count: Delivery<Count>| Ok(Sum { value: count.left }))
        .client("cli", |c| c.calls::<Add>().calls::<Count>())
        .start()
        .unwrap();
    assert_eq!(ask(&organism, Add { a: 40, b: 2 }).await, Ok(42));
    assert_eq!(ask(&organism, Count { left: 7 }).await, Ok(7));
}

#[tokio::test]
async fn a_function_shares_state_and_awaits_calls_that_its_contract_lists() {
    let total = Arc::new(AtomicI64::new(0));
    let summed = total.clone();
    let count = move |count: Delivery<Count>| {
        let total = summed.clone();
        async move {
            let sum = count.thread().call(Add { a: count.left, b: 1 }).await?;
            Ok(Sum { value: total.fetch_add(sum.value, Ordering::SeqCst) + sum.value })
        }
    };
    let organism = Organism::builder("functions")
        .on("calculator", add)
        .on_with("counter", count, |c| c.calls::<Add>())
        .client("cli", |c| c.calls::<Count>())
        .start()
        .unwrap();
    assert_eq!(ask(&organism, Count { left: 1 }).await, Ok(2));
    assert_eq!(ask(&organism, Count { left: 2 }).await, Ok(5));
    assert_eq!(total.load(Ordering::SeqCst), 5);
}

#[tokio::test]
async fn a_state_by_value_is_a_clone_for_each_call() {
    let total = Arc::new(AtomicI64::new(1));
    let count = async |total: Arc<AtomicI64>, count: Delivery<Count>| {
        Ok(Sum { value: total.fetch_add(count.left, Ordering::SeqCst) })
    };
    let organism = Organism::builder("functions")
        .on("counter", with_state(total.clone(), count))
        .client("cli", |c| c.calls::<Count>())
        .start()
        .unwrap();
    assert_eq!(ask(&organism, Count { left: 2 }).await, Ok(1));
    assert_eq!(ask(&organism, Count { left: 3 }).await, Ok(3));
    assert_eq!(total.load(Ordering::SeqCst), 6);
}

#[tokio::test]
async fn a_state_of_a_factory_is_shared_by_the_functions_and_made_again_after_a_panic() {
    hush();
    let organism = Organism::builder("functions")
        .stateful(
            "counter",
            || Cell::new(10),
            |c| {
                let counted = c.on_state(async |total: Rc<Cell<i64>>, count: Delivery<Count>| {
                    total.set(total.get() + count.left);
                    Ok(Sum { value: total.get() })
                });
                counted.on_state(async |total: Rc<Cell<i64>>, add: Delivery<Add>| {
                    assert_ne!(add.a, 0, "as told");
                    Ok(Sum { value: total.get() })
                })
            },
        )
        .client("cli", |c| c.calls::<Add>().calls::<Count>())
        .start()
        .unwrap();
    assert_eq!(ask(&organism, Count { left: 2 }).await, Ok(12));
    assert_eq!(ask(&organism, Add { a: 1, b: 0 }).await, Ok(12));
    assert_eq!(ask(&organism, Add { a: 0, b: 0 }).await.unwrap_err().code, FaultCode::ListenerFailed);
    assert_eq!(ask(&organism, Add { a: 1, b: 0 }).await, Ok(10));
}

#[tokio::test]
async fn a_listener_has_a_function_for_each_payload() {
    let organism = Organism::builder("functions")
        .on_with("both", add, |c| c.on(async |count: Delivery<Count>| Ok(Sum { value: -count.left })))
        .client("cli", |c| c.calls::<Add>().calls::<Count>())
        .start()
        .unwrap();
    assert_eq!(ask(&organism, Add { a: 1, b: 2 }).await, Ok(3));
    assert_eq!(ask(&organism, Count { left: 3 }).await, Ok(-3));
}

#[tokio::test]
async fn errors_and_panics_of_a_function_are_faults_of_its_message() {
    hush();
    let risky = async |add: Delivery<Add>| {
        assert_ne!(add.a, 0, "as told");
        let a = u8::try_from(add.a)?;
        Ok(Sum { value: a.into() })
    };
    let organism =
        Organism::builder("functions").on("risky", risky).client("cli", |c| c.calls::<Add>()).start().unwrap();
    assert_eq!(ask(&organism, Add { a: 0, b: 0 }).await.unwrap_err().code, FaultCode::ListenerFailed);
    let failed = ask(&organism, Add { a: 256, b: 0 }).await.unwrap_err();
    assert_eq!(failed.code, FaultCode::Failed);
    assert!(failed.message.contains("out of range"), "{}", failed.message);
    assert_eq!(ask(&organism, Add { a: 255, b: 0 }).await, Ok(255));
}

#[tokio::test]
async fn an_emission_of_a_function_is_held_to_its_contract() {
    let emit = async |add: Delivery<Add>| match add.a {
        0 => Ok(none()),
        _ => Ok(add.reply(Sum { value: add.a })),
    };
    let lists_nothing = Organism::builder("functions").on("emits", emit).client("cli", |c| c.calls::<Add>()).start();
    let organism = lists_nothing.unwrap();
    assert!(ask(&organism, Add { a: 1, b: 0 }).await.is_err(), "it lists no reply");
    let organism = Organism::builder("functions")
        .on_with("emits", emit, |c| c.replies::<Sum>())
        .client("cli", |c| c.calls::<Add>())
        .start()
        .unwrap();
    assert_eq!(ask(&organism, Add { a: 1, b: 0 }).await, Ok(1));
    assert_eq!(ask(&organism, Add { a: 0, b: 0 }).await.unwrap_err().code, FaultCode::Silent);
}

#[test]
fn two_functions_for_one_payload_are_refused_at_the_start() {
    let twice = Organism::builder("functions").on_with("twice", add, |c| c.on(add)).start();
    let refused = twice.map(drop).unwrap_err().to_string();
    assert!(refused.contains("two functions for {urn:example:test:v1}add"), "{refused}");
}
