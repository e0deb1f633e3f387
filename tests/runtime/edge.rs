//! Entrances and egress: clients that send and receive.

use std::sync::Arc;
use std::time::Duration;

use systole::prelude::*;
use systole::protocol::ListCapabilities;
use systole::runtime::{AskError, SendError};
use tokio::sync::Semaphore;

use crate::calculator::*;

/// An organism whose `oracle` answers a question when the semaphore allows it.
fn gated(limits: Limits, gate: Arc<Semaphore>) -> Organism {
    let wait = move |q: Delivery<Question>| {
        let gate = gate.clone();
        async move {
            gate.acquire().await?.forget();
            Ok(q.reply(answered(&*q.text)))
        }
    };
    Organism::builder("gated")
        .limits(limits)
        .listener(
            "oracle",
            move || Oracle(wait.clone()),
            |c| c.accepts::<Question>().replies::<Answered>().concurrency(2),
        )
        .listener("calculator", || Calculator, |c| c.accepts::<Add>().replies::<Sum>())
        .client("cli", |c| c.calls::<Question>())
        .start()
        .unwrap()
}

fn envelope(text: &str) -> String {
    format!(
        "<message xmlns=\"https://xml-pipeline.org/ns/envelope/v1\"><meta><from>cli</from></meta>\
         <question xmlns=\"urn:example:test:v1\"><text>{text}</text></question></message>"
    )
}

#[tokio::test]
async fn a_full_organism_refuses_at_the_edge_and_loses_nothing_that_it_took() {
    let gate = Arc::new(Semaphore::new(0));
    let organism = gated(Limits::default().queue(10), gate.clone());
    let client = organism.client("cli").unwrap();
    let mut taken = 0;
    let refused = loop {
        match client.tell(question("?")) {
            Ok(_) => taken += 1,
            Err(error) => break error,
        }
        assert!(taken < 1_000, "never full");
    };
    assert!(matches!(refused, SendError::Overloaded(_)), "{refused}");
    gate.add_permits(10_000);
    for n in 0..taken {
        let egress = within(client.receive()).await.expect("an answer to what was taken");
        assert_eq!(egress.fault, None, "answer {n} of {taken}");
    }
    within(organism.run_until_idle()).await;
    assert!(client.try_receive().is_none());
    client.tell(question("again")).expect("there is room again");
}

/// Fills the organism, whose gate is closed; returns the number of messages that it took.
async fn fill(organism: &Organism, client: &Client) -> usize {
    let mut taken = 0;
    loop {
        // Running messages are not queued: the organism is full only once both handlers run.
        let both_run = organism.counts().await.delivered == 2;
        match client.tell(question("?")) {
            Ok(_) => taken += 1,
            Err(_) if both_run => return taken,
            Err(_) => {}
        }
    }
}

#[tokio::test]
async fn the_core_answers_while_the_organism_is_full() {
    let gate = Arc::new(Semaphore::new(0));
    let organism = gated(Limits::default().queue(10), gate.clone());
    let client = organism.client("cli").unwrap();
    let taken = within(fill(&organism, &client)).await;
    let capabilities = within(client.ask(ListCapabilities)).await.unwrap();
    assert_eq!(capabilities.capability.len(), 1);
    assert!(matches!(client.tell(question("?")), Err(SendError::Overloaded(_))), "still full for everything else");
    gate.add_permits(taken);
    for _ in 0..taken {
        assert_eq!(within(client.receive()).await.unwrap().fault, None);
    }
}

#[tokio::test]
async fn what_pretends_to_be_a_question_to_the_core_is_answered_with_overload() {
    let gate = Arc::new(Semaphore::new(0));
    let organism = gated(Limits::default().queue(10), gate.clone());
    let client = organism.client("cli").unwrap();
    let taken = within(fill(&organism, &client)).await;
    let sly = envelope("https://xml-pipeline.org/ns/meta/v1");
    let root = client.send(sly).unwrap();
    let egress = within(client.receive()).await.unwrap();
    assert_eq!((egress.root, egress.fault.map(|fault| fault.code)), (root, Some(FaultCode::Overload)));
    gate.add_permits(taken);
    within(organism.run_until_idle()).await;
}

#[tokio::test]
async fn bytes_are_an_envelope_like_any_other() {
    let organism = gated(Limits::default(), Arc::new(Semaphore::new(10)));
    let client = organism.client("cli").unwrap();
    let root = client.send(envelope("hello")).unwrap();
    let egress = within(client.receive()).await.unwrap();
    assert_eq!((egress.root, egress.from.as_str()), (root, "oracle"));
    assert!(egress.payload.as_str().contains("<text>hello</text>"), "{}", egress.payload.as_str());
    let refused = client.send_last("no envelope").unwrap();
    let egress = within(client.receive()).await.unwrap();
    assert_eq!((egress.root, egress.fault.map(|fault| fault.code)), (refused, Some(FaultCode::Malformed)));
}

#[tokio::test]
async fn messages_of_one_conversation_share_its_root() {
    let organism = gated(Limits::default(), Arc::new(Semaphore::new(10)));
    let mut conversation = organism.client("cli").unwrap().converse();
    conversation.send(question("one")).unwrap();
    conversation.send_bytes(envelope("two")).unwrap();
    let mut texts = Vec::new();
    for _ in 0..2 {
        let egress = within(conversation.receive()).await.unwrap();
        assert_eq!(egress.root, conversation.id());
        texts.push(egress.payload.as_str().contains("one"));
    }
    texts.sort_unstable();
    assert_eq!(texts, [false, true]);
    let open = organism.snapshot().await.threads;
    assert_eq!(open.iter().map(|thread| thread.id).collect::<Vec<_>>(), [conversation.id()], "the root waits for more");
    drop(conversation);
    within(organism.run_until_idle()).await;
    assert_eq!(organism.snapshot().await.threads, [], "its client has left");
}

#[tokio::test]
async fn a_question_that_is_given_up_is_cancelled() {
    let organism = gated(Limits::default(), Arc::new(Semaphore::new(0)));
    let client = organism.client("cli").unwrap();
    let impatient = tokio::time::timeout(Duration::from_millis(5), client.ask(question("?"))).await;
    assert!(impatient.is_err());
    within(organism.run_until_idle()).await;
    assert_eq!(organism.snapshot().await.threads, []);
}

#[tokio::test]
async fn a_client_can_bound_its_patience() {
    let organism = gated(Limits::default(), Arc::new(Semaphore::new(0)));
    let client = organism.client("cli").unwrap();
    let asked = within(client.ask(question("?")).within(Duration::from_millis(5))).await;
    assert!(matches!(&asked, Err(AskError::Fault { fault, .. }) if fault.code == FaultCode::Timeout), "{asked:?}");
}

#[tokio::test]
async fn what_a_client_may_not_send_is_like_what_nobody_takes() {
    let organism = gated(Limits::default(), Arc::new(Semaphore::new(10)));
    let client = organism.client("cli").unwrap();
    let fault = async |asked| match asked {
        Err(AskError::Fault { fault, .. }) => (fault.code, fault.message.replace("order", "add")),
        other => panic!("{other:?}"),
    };
    let forbidden = fault(within(client.ask_any(Add { a: 1, b: 1 })).await).await;
    let unknown = fault(within(client.ask_any(order("?"))).await).await;
    assert_eq!(forbidden, unknown, "word for word, but for the payload that was sent");
    assert_eq!(forbidden.0, FaultCode::Route);
    assert_eq!(organism.client("nobody").unwrap_err().name, "nobody");
}

#[tokio::test]
async fn an_entrance_takes_no_more_than_its_exit_can_hold() {
    let text = "x".repeat(300);
    for (egress, bytes) in [(1, 1 << 20), (5, 1 << 20), (100, 1), (100, 1_200), (100, 1 << 20)] {
        let gate = Arc::new(Semaphore::new(0));
        let mut limits = Limits::default().egress(egress);
        limits.egress_bytes = bytes;
        let organism = gated(limits, gate.clone());
        let client = organism.client("cli").unwrap();
        // Nothing is unread yet: what counts are the answers to come. A conversation is open, and others close with theirs.
        let mut open = client.converse();
        let mut taken = 0;
        let refused = loop {
            let sent = match taken % 3 {
                0 => client.tell(question(&*text)).map(drop),
                1 => open.send(question(&*text)),
                _ => client.send_last("no envelope").map(drop),
            };
            match sent {
                Ok(()) => taken += 1,
                Err(error) => break error,
            }
            assert!(taken <= egress, "more than fits: {egress} answers, {bytes} bytes");
        };
        assert_eq!(refused, SendError::Unread, "{egress} answers, {bytes} bytes");
        assert!(taken > 0, "an empty exit has room for one answer of any size");
        gate.add_permits(taken);
        within(organism.run_until_idle()).await;
        let mut answers = Vec::new();
        answers.extend(std::iter::from_fn(|| open.try_receive()));
        answers.extend(std::iter::from_fn(|| client.try_receive()));
        assert_eq!(answers.len(), taken, "each has its answer: {egress} answers, {bytes} bytes");
        let cancelled = |egress: &Egress| egress.fault.as_ref().is_some_and(|fault| fault.code == FaultCode::Cancelled);
        assert!(!answers.iter().any(cancelled), "none is cancelled");
        drop((open, answers));
        client.tell(question("again")).expect("all is read, so there is room again");
    }
}

#[tokio::test]
async fn an_answer_that_never_comes_keeps_no_room() {
    let organism = gated(Limits::default().egress(2), Arc::new(Semaphore::new(0)));
    let client = organism.client("cli").unwrap();
    for _ in 0..20 {
        let mut conversation = client.converse();
        conversation.send(question("?")).unwrap();
        conversation.send(question("?")).unwrap();
        assert_eq!(conversation.send(question("?")), Err(SendError::Unread));
        conversation.cancel();
        within(organism.run_until_idle()).await;
    }
}

#[tokio::test]
async fn the_answers_of_a_broadcast_are_all_kept() {
    let sing = async |q: Delivery<Question>| Ok::<_, systole::core::Failure>(q.reply(answered("la")));
    let builder = ["one", "two", "three"].into_iter().fold(Organism::builder("chorus"), |builder, name| {
        builder.listener(
            name,
            move || Oracle(sing),
            |c| c.accepts::<Question>().replies::<Answered>().routing(Routing::Broadcast),
        )
    });
    let limits = Limits::default().egress(1);
    let organism = builder.limits(limits).client("cli", |c| c.calls::<Question>()).start().unwrap();
    let client = organism.client("cli").unwrap();
    for _ in 0..3 {
        client.tell(question("sing")).unwrap();
        within(organism.run_until_idle()).await;
        assert_eq!(client.tell(question("sing")), Err(SendError::Unread));
        let answers = std::iter::from_fn(|| client.try_receive());
        assert!(answers.map(|egress| egress.fault.is_none()).eq([true; 3]));
    }
}

#[tokio::test]
async fn a_client_that_does_not_read_is_refused() {
    let organism = gated(Limits::default().egress(2), Arc::new(Semaphore::new(100)));
    let client = organism.client("cli").unwrap();
    for _ in 0..2 {
        client.tell(question("?")).unwrap();
    }
    within(organism.run_until_idle()).await;
    assert_eq!(client.tell(question("?")), Err(SendError::Unread));
    within(client.receive()).await.unwrap();
    client.tell(question("?")).expect("it reads again");
}
