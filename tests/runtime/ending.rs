//! Ends of an organism.

use std::sync::Arc;
use std::time::Duration;

use systole::actor::*;
use systole::prelude::*;
use systole::runtime::SendError;
use tokio::sync::{Semaphore, mpsc};

use crate::calculator::*;

fn two_at_once(gate: Arc<Semaphore>) -> (Organism, Client, mpsc::UnboundedReceiver<String>) {
    held_back(Organism::builder("gated").shards(2), 2, gate)
}

#[tokio::test]
async fn a_drain_lets_the_work_end() {
    let gate = Arc::new(Semaphore::new(0));
    let (organism, client, mut begun) = two_at_once(gate.clone());
    let asks: Vec<_> = (0..10)
        .map(|_| {
            tokio::spawn({
                let client = client.clone();
                async move { client.ask(question("?")).await }
            })
        })
        .collect();
    within(begun.recv()).await.unwrap();
    within(async {
        while organism.counts().await.injected < 10 {
            tokio::task::yield_now().await
        }
    })
    .await;
    let drained = {
        let mut drain = std::pin::pin!(organism.drain(Duration::from_secs(60)));
        tokio::select! {
            biased;
            _ = &mut drain => panic!("it drained while handlers ran"),
            () = tokio::task::yield_now() => {}
        }
        assert_eq!(client.tell(question("late")), Err(SendError::Closed), "the entrance is closed");
        gate.add_permits(10);
        within(drain).await
    };
    assert!(drained.idle && drained.ended, "{drained:?}");
    for ask in asks {
        within(ask).await.unwrap().expect("work that was begun is done");
    }
    assert!(client.receive().await.is_none());
    assert_eq!(organism.snapshot().await.threads, []);
}

#[tokio::test]
async fn past_the_deadline_each_open_conversation_gets_a_fault() {
    let (organism, client, mut begun) = two_at_once(Arc::new(Semaphore::new(0)));
    let ask = tokio::spawn(async move { client.ask(question("?")).await });
    within(begun.recv()).await.unwrap();
    let drained = within(organism.drain(Duration::from_millis(1))).await;
    assert!(!drained.idle && drained.ended, "{drained:?}");
    let asked = within(ask).await.unwrap();
    assert!(matches!(&asked, Err(AskError::Fault { fault, .. }) if fault.code == FaultCode::Cancelled), "{asked:?}");
}

#[tokio::test]
async fn a_second_drain_brings_the_deadline_forward() {
    let (organism, client, mut begun) = two_at_once(Arc::new(Semaphore::new(0)));
    client.tell(question("?")).unwrap();
    within(begun.recv()).await.unwrap();
    let (first, second) =
        tokio::join!(within(organism.drain(Duration::from_secs(3600))), within(organism.drain(Duration::ZERO)));
    assert_eq!(first, second);
    assert!(!first.idle);
}

#[tokio::test]
async fn dropping_the_organism_ends_everything() {
    let (organism, client, mut begun) = two_at_once(Arc::new(Semaphore::new(0)));
    let ask = tokio::spawn({
        let client = client.clone();
        async move { client.ask(question("?")).await }
    });
    within(begun.recv()).await.unwrap();
    drop(organism);
    assert!(within(ask).await.unwrap().is_err());
    within(async { while client.receive().await.is_some() {} }).await;
    assert_eq!(client.tell(question("?")), Err(SendError::Closed));
}

/// A listener that ticks for ever from boot on.
struct Clockwork;

impl Actor for Clockwork {
    type Context = Context<Self>;
}

impl Handler<Delivery<Boot>> for Clockwork {
    type Result = ResponseFuture<Response>;

    fn handle(&mut self, boot: Delivery<Boot>, _: &mut Context<Self>) -> Self::Result {
        assert_eq!(boot.organism, "clockwork");
        Box::pin(async move {
            boot.thread().call_any(Count { left: 3 }).await?;
            std::future::pending().await
        })
    }
}

impl Handler<Delivery<Count>> for Clockwork {
    type Result = Response;

    fn handle(&mut self, count: Delivery<Count>, _: &mut Context<Self>) -> Response {
        match count.left {
            0 => Ok(reply_any(answered("done"))),
            left => Ok(continue_with(Count { left: left - 1 }, Duration::ZERO)),
        }
    }
}

#[tokio::test]
async fn boot_handlers_and_pending_continues_keep_nobody_waiting() {
    let organism = Organism::builder("clockwork")
        .listener(
            "clockwork",
            || Clockwork,
            |c| c.accepts_boot().accepts::<Count>().replies::<Answered>().calls::<Count>(),
        )
        .client("cli", |c| c.calls::<Count>())
        .start()
        .unwrap();
    within(organism.run_until_idle()).await;
    let counts = organism.counts().await;
    assert_eq!((counts.made, counts.emitted, counts.dead), (1, 5, 0), "boot; one call, three continues, a reply");
    let drained = within(organism.drain(Duration::from_secs(3600))).await;
    assert!(drained.idle && drained.ended, "{drained:?}");
}

/// A listener that blocks its thread.
struct Stuck(Arc<std::sync::Barrier>, mpsc::UnboundedSender<()>);

impl Actor for Stuck {
    type Context = Context<Self>;
}

impl Handler<Delivery<Question>> for Stuck {
    type Result = Response;

    fn handle(&mut self, _: Delivery<Question>, _: &mut Context<Self>) -> Response {
        self.1.send(())?;
        self.0.wait();
        Ok(none())
    }
}

impl BlockingHandler<Question> for Stuck {
    fn handle(&self, _: Delivery<Question>) -> Response {
        self.1.send(())?;
        self.0.wait();
        Ok(none())
    }
}

#[tokio::test]
async fn a_listener_that_blocks_its_thread_cannot_block_a_drain() {
    for blocking in [false, true] {
        let barrier = Arc::new(std::sync::Barrier::new(2));
        let (begin, mut begun) = mpsc::unbounded_channel();
        let factory = {
            let barrier = barrier.clone();
            move || Stuck(barrier.clone(), begin.clone())
        };
        let builder = Organism::builder("stuck").shards(2).client("cli", |c| c.calls::<Question>());
        let organism = match blocking {
            true => builder.blocking_listener("stuck", factory, |c| c.accepts::<Question>()),
            false => builder.listener("stuck", factory, |c| c.accepts::<Question>()),
        };
        let organism = organism.start().unwrap();
        organism.client("cli").unwrap().tell(question("?")).unwrap();
        within(begun.recv()).await.unwrap();
        let drained = within(organism.drain(Duration::ZERO)).await;
        assert_eq!((drained.idle, drained.ended), (false, blocking), "a pool's thread is not one of ours");
        barrier.wait();
    }
}

#[tokio::test]
async fn an_organism_is_served_until_a_signal_and_ends_its_work_first() {
    let gate = Arc::new(Semaphore::new(0));
    let (organism, client, mut begun) = two_at_once(gate.clone());
    let ask = tokio::spawn(async move { client.ask(question("?")).await });
    within(begun.recv()).await.unwrap();
    let drained = within(async {
        let mut served = std::pin::pin!(organism.serve());
        let heard = async {
            while !systole::process::signals::are_heard() {
                tokio::task::yield_now().await
            }
        };
        tokio::select! {
            biased;
            ended = &mut served => panic!("it ended before the signal: {ended:?}"),
            () = heard => {}
        }
        rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::TERM).unwrap();
        let closed = async {
            while organism.ready().is_ok() {
                tokio::task::yield_now().await
            }
        };
        tokio::select! {
            biased;
            ended = &mut served => panic!("it ended before its work: {ended:?}"),
            () = closed => gate.add_permits(1),
        }
        served.await.unwrap()
    })
    .await;
    assert!(drained.idle && drained.ended, "{drained:?}");
    within(ask).await.unwrap().expect("work that was begun is done");
}

#[tokio::test]
async fn a_client_cancels_a_conversation_by_its_id() {
    let (organism, client, mut begun) = two_at_once(Arc::new(Semaphore::new(0)));
    let conversation = client.tell(question("?")).unwrap();
    within(begun.recv()).await.unwrap();
    client.cancel(conversation);
    within(organism.run_until_idle()).await;
    assert_eq!(organism.snapshot().await.threads, []);
}
