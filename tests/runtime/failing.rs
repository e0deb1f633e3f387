//! Listeners that fail, and the answers that their callers get.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use systole::actor::*;
use systole::core::{DeadLetterError, OperationError};
use systole::journal::{
    AppendError, Batch, Durability, Journal, JournalError, JournalErrorKind, MemoryJournal, Recovered, Tail,
};
use systole::operations::ActError;
use systole::prelude::*;
use systole::runtime::Breakdown;
use systole::vocab::Partitions;
use tokio::task::{JoinSet, yield_now};

use crate::calculator::*;

/// A listener that obeys orders.
struct Actress {
    made: usize,
}

impl Actor for Actress {
    type Context = Context<Self>;
}

impl Handler<Delivery<Order>> for Actress {
    type Result = ResponseFuture<Response>;

    fn handle(&mut self, order: Delivery<Order>, _: &mut Context<Self>) -> Self::Result {
        let made = self.made;
        if order.what == "panic" {
            panic!("as told");
        }
        Box::pin(async move {
            yield_now().await;
            match &*order.what {
                "panic later" => panic!("as told"),
                "fail" => Err("no number".parse::<i64>().unwrap_err().into()),
                "hang" => std::future::pending().await,
                "mute" => Ok(none()),
                "stray" => Ok(call(question("?"))),
                "stray beside" => Ok(order.reply(answered("and")).and(call(question("?")))),
                "wrong" => Ok(reply_any(question("?"))),
                _ => Ok(order.reply(answered(made.to_string()))),
            }
        })
    }
}

const LONG: Duration = Duration::from_secs(30);

fn theatre(shards: u16, timeout: Duration) -> (Organism, Client) {
    hush();
    let made = Arc::new(AtomicUsize::new(0));
    let organism = Organism::builder("theatre")
        .shards(shards)
        .listener(
            "actress",
            move || Actress { made: made.fetch_add(1, Ordering::SeqCst) },
            |c| c.accepts::<Order>().replies::<Answered>().timeout(timeout),
        )
        .client("cli", |c| c.calls::<Order>())
        .start()
        .unwrap();
    let client = organism.client("cli").unwrap();
    (organism, client)
}

async fn fault_of(client: &Client, what: &str) -> Fault {
    match within(client.ask(order(what))).await {
        Err(AskError::Fault { fault, .. }) => fault,
        other => panic!("{what}: {other:?}"),
    }
}

#[tokio::test]
async fn of_a_hundred_messages_the_one_that_panics_faults() {
    for (shards, kind) in [(1, "panic"), (1, "panic later"), (2, "panic"), (2, "panic later")] {
        let (organism, client) = theatre(shards, LONG);
        let mut asks = JoinSet::new();
        for n in 0..100 {
            let client = client.clone();
            asks.spawn(async move { client.ask(order(if n == 50 { kind } else { "speak" })).await });
        }
        let (answers, faults): (Vec<_>, Vec<_>) = within(asks.join_all()).await.into_iter().partition(Result::is_ok);
        assert_eq!((answers.len(), faults.len()), (99, 1), "{kind}, {shards} shards: {faults:?}");
        let Err(AskError::Fault { fault, .. }) = &faults[0] else { panic!("{:?}", faults[0]) };
        assert_eq!((fault.code, fault.retryable), (FaultCode::ListenerFailed, false));
        let answer = within(client.ask(order("speak"))).await.unwrap();
        assert_eq!(answer.text, "1", "{kind}: the listener was made anew, once");
        within(organism.run_until_idle()).await;
    }
}

#[tokio::test]
async fn a_reply_that_was_not_announced_is_told_as_one_with_who_made_it() {
    let (_organism, client) = theatre(1, LONG);
    let told = within(client.ask(order("wrong"))).await.unwrap_err().to_string();
    assert!(told.starts_with("actress: route: a listener replied with {"), "{told}");
    assert!(told.ends_with("question, which the replies of its contract do not list"), "{told}");
}

#[tokio::test]
async fn each_way_to_fail_has_its_fault() {
    let (organism, client) = theatre(2, Duration::from_millis(500));
    for (what, code) in [
        ("fail", FaultCode::Failed),
        ("mute", FaultCode::Silent),
        ("hang", FaultCode::Timeout),
        ("panic", FaultCode::ListenerFailed),
    ] {
        assert_eq!(fault_of(&client, what).await.code, code, "{what}");
    }
    assert_eq!(&*fault_of(&client, "fail").await.message, "invalid digit found in string");
    // The actress gets a fault for a call that its contract forbids; it accepts no faults, so the fault ends its
    // thread.
    for what in ["stray", "wrong"] {
        assert_eq!(fault_of(&client, what).await.code, FaultCode::Route, "{what}");
    }
    within(organism.run_until_idle()).await;
    assert_eq!(organism.snapshot().await.threads, []);
}

/// A listener that holds itself exclusively for ever.
struct Jealous;

impl Actor for Jealous {
    type Context = Context<Self>;
}

impl Handler<Delivery<Order>> for Jealous {
    type Result = AtomicResponse<Self, Response>;

    fn handle(&mut self, order: Delivery<Order>, _: &mut Context<Self>) -> Self::Result {
        let work = async move {
            if order.what == "hang" {
                std::future::pending::<()>().await;
            }
            Ok(order.reply(answered("free")))
        };
        AtomicResponse::of(work.into_actor(self))
    }
}

#[tokio::test]
async fn an_actor_that_is_held_for_ever_is_free_after_the_timeout() {
    let organism = Organism::builder("jealous")
        .listener(
            "jealous",
            || Jealous,
            |c| c.accepts::<Order>().replies::<Answered>().timeout(Duration::from_millis(500)),
        )
        .client("cli", |c| c.calls::<Order>())
        .start()
        .unwrap();
    let client = organism.client("cli").unwrap();
    assert_eq!(fault_of(&client, "hang").await.code, FaultCode::Timeout);
    within(client.ask(order("speak"))).await.unwrap();
}

#[tokio::test]
async fn an_operator_queues_dead_letters_again_or_discards_them() {
    let (organism, client) = theatre(2, LONG);
    // The actress emits a payload beside its answer, which is undeliverable.
    for _ in 0..3 {
        within(client.ask(order("stray beside"))).await.unwrap();
    }
    within(organism.run_until_idle()).await;
    let letters = organism.dead_letters().await;
    assert_eq!(letters.len(), 3);
    let [first, second, third] = [0, 1, 2].map(|at: usize| letters[at].id);
    // The actress may not call that.
    let operations = organism.operations("ada".parse().unwrap());
    let refused = within(operations.redrive(first)).await.unwrap_err();
    let is_hers =
        |error: &DeadLetterError| matches!(error, DeadLetterError::NotACall { from, .. } if from.as_str() == "actress");
    assert!(matches!(&refused, ActError::Refused(OperationError::Letter(error)) if is_hers(error)), "{refused}");
    let unknown = || Err(OperationError::Letter(DeadLetterError::Unknown).into());
    let closed = || Err(OperationError::Letter(DeadLetterError::Closed).into());
    assert_eq!(within(operations.discard(second)).await, Ok(()));
    assert_eq!(within(operations.redrive(second)).await, unknown());
    within(organism.run_until_idle()).await;
    let left: Vec<_> = organism.dead_letters().await.iter().map(|letter| letter.id).collect();
    assert_eq!(left, [first, third]);
    within(organism.drain(LONG)).await;
    assert_eq!(within(operations.redrive(third)).await, closed());
    assert_eq!(within(operations.discard(third)).await, closed());
}

/// A listener that accepts faults, and replies with their code.
struct Understanding;

impl Actor for Understanding {
    type Context = Context<Self>;
}

impl Handler<Delivery<Question>> for Understanding {
    type Result = Response;

    fn handle(&mut self, question: Delivery<Question>, _: &mut Context<Self>) -> Response {
        Ok(call(order(&question.text)))
    }
}

impl Handler<Delivery<Fault>> for Understanding {
    type Result = Response;

    fn handle(&mut self, fault: Delivery<Fault>, _: &mut Context<Self>) -> Response {
        Ok(reply_any(answered(format!("{} {}", fault.from(), fault.code))))
    }
}

impl Handler<Delivery<Answered>> for Understanding {
    type Result = Response;

    fn handle(&mut self, answered: Delivery<Answered>, _: &mut Context<Self>) -> Response {
        Ok(answered.send_back())
    }
}

#[tokio::test]
async fn a_listener_may_take_faults_as_messages() {
    hush();
    let organism = Organism::builder("understanding")
        .listener(
            "understanding",
            || Understanding,
            |c| c.accepts::<Question>().replies::<Answered>().calls::<Order>().returns::<Answered>().accepts_faults(),
        )
        .listener("actress", || Actress { made: 7 }, |c| c.accepts::<Order>().replies::<Answered>())
        .client("cli", |c| c.calls::<Question>())
        .start()
        .unwrap();
    let client = organism.client("cli").unwrap();
    for (text, expected) in [("panic", "actress listener-failed"), ("mute", "actress silent"), ("speak", "7")] {
        let answer = within(client.ask(question(text))).await.unwrap();
        assert_eq!(answer.text, expected);
    }
}

/// A payload that panics when it is decoded or dropped, depending on its fuse.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
struct Bomb {
    #[serde(deserialize_with = "read_fuse")]
    fuse: String,
}

impl Payload for Bomb {
    const NAMESPACE: &'static str = "urn:example:test:v1";
    const ROOT: &'static str = "bomb";
}

fn read_fuse<'de, D: serde::Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    let fuse = String::deserialize(from)?;
    if fuse == "read" {
        panic!("as told");
    }
    Ok(fuse)
}

impl Drop for Bomb {
    fn drop(&mut self) {
        if self.fuse == "drop" && !std::thread::panicking() {
            panic!("as told");
        }
    }
}

/// A listener that holds its payloads until its future is dropped, except for those that it disarms.
struct Squad;

impl Actor for Squad {
    type Context = Context<Self>;
}

impl Handler<Delivery<Bomb>> for Squad {
    type Result = ResponseFuture<Response>;

    fn handle(&mut self, bomb: Delivery<Bomb>, _: &mut Context<Self>) -> Self::Result {
        Box::pin(async move {
            if bomb.fuse == "hold" {
                std::future::pending().await
            }
            Ok(reply_any(answered(&*bomb.fuse)))
        })
    }
}

fn bomb(fuse: &str) -> Bomb {
    Bomb { fuse: fuse.to_owned() }
}

/// Makes the envelope of a bomb, without a `Bomb` that the test itself would drop.
fn sealed(fuse: &str) -> String {
    format!(
        "<message xmlns=\"https://xml-pipeline.org/ns/envelope/v1\"><meta><from>cli</from></meta>\
         <bomb xmlns=\"urn:example:test:v1\"><fuse>{fuse}</fuse></bomb></message>"
    )
}

#[tokio::test]
async fn a_payload_that_panics_is_its_listeners_failure_and_nobody_elses() {
    hush();
    for shards in [1, 2] {
        let organism = Organism::builder("squad")
            .shards(shards)
            .listener("squad", || Squad, |c| c.accepts::<Bomb>().replies::<Answered>().concurrency(1))
            .client("cli", |c| c.calls::<Bomb>())
            .start()
            .unwrap();
        let client = organism.client("cli").unwrap();
        for fuse in ["read", "drop"] {
            client.send_last(sealed(fuse)).unwrap();
            let fault = within(client.receive()).await.unwrap().fault.expect(fuse);
            assert_eq!((fault.code, fault.retryable), (FaultCode::ListenerFailed, false), "{fuse}");
        }
        // One of these runs and the others are still in their mailboxes when the client drops them.
        let mut given_up = Vec::new();
        for fuse in ["hold", "drop", "drop", "drop"] {
            let mut conversation = client.converse();
            conversation.send_bytes(sealed(fuse)).unwrap();
            given_up.push(conversation);
        }
        given_up.into_iter().rev().for_each(Conversation::cancel);
        within(organism.run_until_idle()).await;
        let answer = within(client.ask_any(bomb("fine"))).await.expect("the shards live on");
        assert_eq!(answer.decode::<Answered>().unwrap().text, "fine");
        // These are open when the organism ends.
        for fuse in ["hold", "drop", "drop", "drop"] {
            client.send(sealed(fuse)).unwrap();
        }
        let drained = within(organism.drain(Duration::ZERO)).await;
        assert!(drained.ended, "{shards} shards: {drained:?}");
    }
}

/// A journal that panics, or fails, at its n-th append.
struct Bad {
    journal: MemoryJournal,
    left: u32,
    panics: bool,
}

impl Journal for Bad {
    fn durability(&self) -> Option<Durability> {
        self.journal.durability()
    }

    fn may_block(&self) -> bool {
        self.journal.may_block()
    }

    fn append(&mut self, batch: &Batch) -> Result<(), AppendError> {
        match self.left.checked_sub(1) {
            Some(left) => self.left = left,
            None if self.panics => panic!("as told"),
            None => return Err(JournalError::new(JournalErrorKind::Full, "as told").into()),
        }
        self.journal.append(batch)
    }

    fn recover(&mut self) -> Result<Recovered, JournalError> {
        self.journal.recover()
    }

    fn adopt(&mut self, partitions: &Partitions) -> Result<Recovered, JournalError> {
        self.journal.adopt(partitions)
    }

    fn release(&mut self, tail: &Tail) -> Result<(), AppendError> {
        self.journal.release(tail)
    }

    fn close(&mut self) -> Result<(), JournalError> {
        self.journal.close()
    }
}

#[tokio::test]
async fn a_journal_whose_thread_fails_ends_the_organism_and_each_client_that_waits_is_told() {
    hush();
    for (panics, expected) in [(false, JournalErrorKind::Full), (true, JournalErrorKind::Panicked)] {
        let organism = Organism::builder("theatre")
            .shards(2)
            .listener("actress", || Actress { made: 0 }, |c| c.accepts::<Order>().replies::<Answered>().timeout(LONG))
            .client("cli", |c| c.calls::<Order>())
            .journal(Bad { journal: MemoryJournal::new([7; 32]), left: 4, panics })
            .start()
            .unwrap();
        let client = organism.client("cli").unwrap();
        assert_eq!((organism.ready(), organism.breakdown()), (Ok(()), None));
        let mut asked = 0;
        while tokio::time::timeout(LONG, client.post(order("hang"))).await.expect("nothing is said").is_ok() {
            asked += 1;
        }
        assert!(asked > 0, "the first is written");
        let why = tokio::time::timeout(LONG, organism.broken()).await.expect("it goes on without its journal");
        assert!(matches!(&why, Breakdown::Journal(error) if error.kind() == expected), "{why}");
        assert_eq!((organism.breakdown(), organism.ready()), (Some(why), Err(SendError::Closed)));
        let mut told = 0;
        while told < asked {
            let left = tokio::time::timeout(LONG, client.receive()).await.expect("a client is not told");
            let left = left.expect("the shards ended before they told all");
            assert!(left.fault.is_some_and(|fault| fault.message.contains("the journal can't be written")));
            told += 1;
        }
        assert!(organism.drain(Duration::ZERO).await.ended, "its threads end");
    }
}
