//! Handlers that await answers.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use systole::actor::*;
use systole::prelude::*;
use tokio::task::JoinSet;

use crate::calculator::*;

#[tokio::test]
async fn thousands_of_conversations_get_their_own_answers() {
    let adder = async |question: Delivery<Question>| {
        let n: i64 = question.text.parse()?;
        let sum = question.thread().call(Add { a: n, b: 1_000_000 }).await?;
        Ok(question.reply(answered(sum.value.to_string())))
    };
    for shards in [1, 2] {
        let organism = Organism::builder("many")
            .shards(shards)
            .listener("adder", move || Oracle(adder), |c| c.accepts::<Question>().replies::<Answered>().calls::<Add>())
            .listener("calculator", || Calculator, |c| c.accepts::<Add>().replies::<Sum>())
            .client("cli", |c| c.calls::<Question>())
            .start()
            .unwrap();
        let client = organism.client("cli").unwrap();
        let mut asks = JoinSet::new();
        for n in 20..2_020_i64 {
            let client = client.clone();
            asks.spawn(async move { (n, client.ask(question(n.to_string())).await) });
        }
        within(async {
            while let Some(asked) = asks.join_next().await {
                let (n, answer) = asked.unwrap();
                let text = answer.unwrap().text;
                assert_eq!(text, (n + 1_000_000).to_string(), "{shards} shards");
            }
            organism.run_until_idle().await;
        })
        .await;
        assert_eq!(organism.snapshot().await.threads, [], "{shards} shards: every thread has closed");
        let counts = organism.counts().await;
        assert_eq!((counts.injected, counts.faulted, counts.dead), (2_000, 0, 0));
    }
}

/// A listener that calls itself with one less until nothing is left, then counts up again.
struct Diver;

impl Actor for Diver {
    type Context = Context<Self>;
}

impl Handler<Delivery<Count>> for Diver {
    type Result = ResponseActFuture<Self, Response>;

    fn handle(&mut self, count: Delivery<Count>, _: &mut Context<Self>) -> Self::Result {
        let dive = async move {
            let left = count.left;
            if left == 0 {
                return Ok(count.reply(Sum { value: 0 }));
            }
            let below = count.thread().call(Count { left: left - 1 }).await?;
            Ok(count.reply(Sum { value: below.value + 1 }))
        };
        Box::pin(dive.into_actor(self))
    }
}

#[tokio::test]
async fn waiting_handlers_hold_no_slot_however_deep_or_many() {
    for shards in [1, 2] {
        let organism = Organism::builder("deep")
            .shards(shards)
            .listener("diver", || Diver, |c| c.accepts::<Count>().replies::<Sum>().calls::<Count>().concurrency(4))
            .client("cli", |c| c.calls::<Count>())
            .start()
            .unwrap();
        let client = organism.client("cli").unwrap();
        let answer = within(client.ask(Count { left: 60 })).await.unwrap();
        assert_eq!(answer.value, 60, "60 deep with 4 slots");
        let mut asks = JoinSet::new();
        for _ in 0..1_000 {
            let client = client.clone();
            asks.spawn(async move { client.ask(Count { left: 5 }).await });
        }
        let answers = within(asks.join_all()).await;
        assert!(answers.iter().all(|answer| answer.as_ref().is_ok_and(|sum| sum.value == 5)));
    }
}

#[tokio::test]
async fn a_thread_cannot_go_deeper_than_the_limit() {
    let organism = Organism::builder("deep")
        .listener("diver", || Diver, |c| c.accepts::<Count>().replies::<Sum>().calls::<Count>())
        .client("cli", |c| c.calls::<Count>())
        .start()
        .unwrap();
    let asked = within(organism.client("cli").unwrap().ask(Count { left: 64 })).await;
    assert!(matches!(&asked, Err(AskError::Fault { fault, .. }) if fault.code == FaultCode::Limit), "{asked:?}");
}

/// A listener that obeys orders, and counts its futures that were dropped.
struct Servant(Arc<AtomicUsize>);

impl Actor for Servant {
    type Context = Context<Self>;
}

impl Handler<Delivery<Order>> for Servant {
    type Result = ResponseFuture<Response>;

    fn handle(&mut self, order: Delivery<Order>, _: &mut Context<Self>) -> Self::Result {
        struct Guard(Arc<AtomicUsize>);
        impl Drop for Guard {
            fn drop(&mut self) {
                self.0.fetch_add(1, Ordering::SeqCst);
            }
        }
        let guard = Guard(self.0.clone());
        Box::pin(async move {
            let _guard = guard;
            match &*order.what {
                "never" => std::future::pending().await,
                "broken" => Err(systole::core::Failure::new("broken")),
                "mute" => Ok(none()),
                what => Ok(order.reply(answered(what))),
            }
        })
    }
}

/// Asks one question, which `ask` answers with the help of a servant; returns the answer or the fault, and how many
/// handlers of the servant have ended.
async fn answer_to<F, R>(ask: F) -> (Result<String, Fault>, usize)
where
    F: Fn(Delivery<Question>) -> R + Copy + Send + Sync + Unpin + 'static,
    R: Future<Output = Response> + 'static,
{
    let ended = Arc::new(AtomicUsize::new(0));
    let counter = ended.clone();
    let organism = Organism::builder("asking")
        .listener("asker", move || Oracle(ask), |c| c.accepts::<Question>().replies::<Answered>().calls::<Order>())
        .listener("servant", move || Servant(counter.clone()), |c| c.accepts::<Order>().replies::<Answered>())
        .client("cli", |c| c.calls::<Question>())
        .start()
        .unwrap();
    let asked = within(organism.client("cli").unwrap().ask(question("?"))).await;
    within(organism.run_until_idle()).await;
    assert_eq!(organism.snapshot().await.threads, []);
    let answer = match asked {
        Ok(answer) => Ok(answer.text),
        Err(AskError::Fault { fault, .. }) => Err(fault),
        Err(other) => panic!("{other}"),
    };
    (answer, ended.load(Ordering::SeqCst))
}

#[tokio::test]
async fn all_gives_the_replies_in_order_or_the_first_fault() {
    let (answer, _) = answer_to(async |q: Delivery<Question>| {
        let replies = q.thread().call_all(["a", "b", "c"].map(order), Join::All).await?;
        let texts: Vec<_> = replies.into_replies().map(|reply| reply.text).collect();
        Ok(q.reply(answered(texts.join(" "))))
    })
    .await;
    assert_eq!(answer.unwrap(), "a b c");
    let (answer, ended) = answer_to(async |q: Delivery<Question>| {
        q.thread().call_all(["never", "broken"].map(order), Join::All).await?;
        Ok(none())
    })
    .await;
    let fault = answer.unwrap_err();
    assert_eq!((fault.code, &*fault.message), (FaultCode::Failed, "broken"), "the fault passes on unchanged");
    assert_eq!(ended, 2, "the other call was cancelled");
}

#[tokio::test]
async fn first_takes_the_first_reply_and_cancels_the_others() {
    let (answer, ended) = answer_to(async |q: Delivery<Question>| {
        let replies = q.thread().call_all(["never", "broken", "quick"].map(order), Join::First).await?;
        let first = replies.into_replies().next().ok_or_else(|| Failure::new("no reply"))?;
        Ok(q.reply(first))
    })
    .await;
    assert_eq!((answer.unwrap().as_str(), ended), ("quick", 3));
    let (answer, _) = answer_to(async |q: Delivery<Question>| {
        q.thread().call_all(["broken", "mute"].map(order), Join::First).await?;
        Ok(none())
    })
    .await;
    assert!(answer.is_err(), "none replied");
}

#[tokio::test]
async fn a_quorum_needs_its_number_and_settled_takes_everything() {
    let (answer, _) = answer_to(async |q: Delivery<Question>| {
        let orders = ["a", "never", "b"].map(order);
        let replies = q.thread().call_all(orders, Join::Quorum(2)).await?;
        Ok(q.reply(answered(replies.outcomes().len().to_string())))
    })
    .await;
    assert_eq!(answer.unwrap(), "2");
    let (answer, _) = answer_to(async |q: Delivery<Question>| {
        let outcomes = q.thread().call_all(["a", "broken", "mute"].map(order), Join::Settled).await?;
        let texts = outcomes.into_iter().map(|settled| match settled.outcome {
            Ok(_) => "replied".to_owned(),
            Err(fault) => fault.code.to_string(),
        });
        Ok(q.reply(answered(texts.collect::<Vec<_>>().join(" "))))
    })
    .await;
    assert_eq!(answer.unwrap(), "replied failed silent");
}

#[tokio::test]
async fn a_call_that_is_given_up_is_cancelled_and_the_handler_goes_on() {
    let (answer, ended) = answer_to(async |q: Delivery<Question>| {
        let other = q.thread().clone();
        tokio::select! {
            biased;
            _ = q.thread().call(order("never")) => {}
            // Its turn comes after that of the other call.
            _ = other.call(order("quick")) => {}
        }
        let second = q.thread().call(order("second")).await?;
        Ok(q.reply(second))
    })
    .await;
    assert_eq!((answer.unwrap().as_str(), ended), ("second", 3));
}

#[tokio::test]
async fn calls_in_one_handler_may_run_side_by_side() {
    let (answer, _) = answer_to(async |q: Delivery<Question>| {
        let (thread, other) = (q.thread().clone(), q.thread().clone());
        let (a, b) = tokio::join!(async { thread.call(order("a")).await }, async {
            other.call(order("b1")).await?;
            other.call(order("b2")).await
        });
        Ok(q.reply(answered(a?.text + &b?.text)))
    })
    .await;
    assert_eq!(answer.unwrap(), "ab2");
}

#[tokio::test]
async fn what_is_no_call_cannot_be_awaited() {
    let (answer, _) = answer_to(async |q: Delivery<Question>| {
        q.thread().call_any(reply_any(order("a"))).await?;
        Ok(none())
    })
    .await;
    assert_eq!(&*answer.unwrap_err().message, "only calls can be awaited");
    let (answer, _) = answer_to(async |q: Delivery<Question>| {
        q.thread().call_to("nobody", order("a")).await?;
        Ok(none())
    })
    .await;
    assert_eq!(answer.unwrap_err().code, FaultCode::Route);
}
