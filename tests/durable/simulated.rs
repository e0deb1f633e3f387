//! Durable organisms on the simulated clock. A crash is a copy of the journal: another organism starts from it, and
//! later actions of the first one have never happened.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use systole::actor::*;
use systole::core::{Contract, HandlerOutcome};
use systole::journal::{FailingJournal, Journal, MemoryJournal};
use systole::ladder::Raw;
use systole::prelude::*;
use systole::runtime::{LocalBoxFuture, OrganismBuilder, RawListener, RunContext, SendError};
use systole::testing::Kit;
use systole::vocab::{Partition, Partitions, ThreadId};

use crate::oracle::{Answered, Oracle, Question, answered, question};

type Shared = Arc<Mutex<MemoryJournal>>;

macro_rules! payloads {
    ($($type:ident $root:literal)*) => {
        $(
            /// A text.
            #[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
            struct $type {
                /// The words.
                text: String,
            }

            impl Payload for $type {
                const NAMESPACE: &'static str = crate::oracle::NAMESPACE;
                const ROOT: &'static str = $root;
            }

            impl<T: Into<String>> From<T> for $type {
                fn from(text: T) -> Self {
                    Self { text: text.into() }
                }
            }
        )*
    };
}
payloads! { Ask "ask" Tick "tick" Told "told" }

impl Request for Ask {
    type Reply = Told;
}

/// A person who answers later: the answer, once it is given.
#[derive(Clone, Default)]
struct Person(Arc<Mutex<Option<&'static str>>>);

impl RawListener for Person {
    fn run(self: std::rc::Rc<Self>, _: systole::core::Message, _: RunContext) -> LocalBoxFuture<HandlerOutcome> {
        Box::pin(async move {
            loop {
                if let Some(text) = *self.0.lock().unwrap() {
                    let told = format!("<told xmlns=\"urn:example:test:v1\"><text>{text}</text></told>");
                    return HandlerOutcome::Wrote(Raw::new(told));
                }
                actix::clock::sleep(Duration::from_secs(1)).await;
            }
        })
    }
}

/// The contract of a person to be asked.
fn asked() -> Contract {
    let mut contract = Contract::new("person".parse_name());
    contract.accepts = vec!["{urn:example:test:v1}ask".parse().unwrap()];
    contract.replies = vec!["{urn:example:test:v1}told".parse().unwrap()];
    (contract.timeout, contract.on_restart) = (None, OnRestart::AskAgain);
    contract
}

/// An organism with a front that answers questions, and a person to be asked.
fn organism<F, R>(person: &Person, answer: F) -> OrganismBuilder
where
    F: Fn(Delivery<Question>) -> R + Clone + Send + Sync + Unpin + 'static,
    R: Future<Output = Response> + 'static,
{
    let person = person.clone();
    Organism::builder("durable")
        .listener(
            "front",
            move || Oracle(answer.clone()),
            |c| c.accepts::<Question>().replies::<Answered>().calls::<Ask>(),
        )
        .raw_listener(asked(), move || person.clone())
        .schemas([
            systole::schema::PayloadSchema::of::<Told>().unwrap(),
            systole::schema::PayloadSchema::of::<Ask>().unwrap(),
        ])
        .client("alice", |c| c.calls::<Question>())
}

trait ParseName {
    fn parse_name(&self) -> systole::vocab::Name;
}

impl ParseName for str {
    fn parse_name(&self) -> systole::vocab::Name {
        systole::vocab::Name::parse(self).unwrap()
    }
}

fn start(builder: OrganismBuilder, journal: &Shared) -> Kit {
    Kit::start(builder.journal(journal.clone())).unwrap()
}

fn fresh() -> Shared {
    Arc::new(Mutex::new(MemoryJournal::new([3; 32])))
}

/// Returns the state that a crash at this moment leaves.
fn crash(journal: &Shared) -> Shared {
    Arc::new(Mutex::new(journal.lock().unwrap().clone()))
}

/// Lists the answers to the client since the last call: the text, or the code of a fault.
fn answers(kit: &Kit) -> Vec<String> {
    kit.settle();
    let client = kit.client("alice");
    let next = || client.try_receive();
    let text = |egress: Egress| match &egress.fault {
        Some(fault) => format!("!{}", fault.code),
        None => {
            let text = egress.payload.as_str();
            let (_, text) = text.split_once("<text>").unwrap();
            text.split_once("</text>").unwrap().0.to_owned()
        }
    };
    let answers = std::iter::from_fn(next).map(text).collect();
    kit.settle();
    answers
}

async fn pass_on(question: Delivery<Question>) -> Response {
    let told = question.thread().call(Ask::from(&question.text)).await?;
    Ok(question.reply(answered(told.text)))
}

#[test]
fn a_wait_for_a_person_outlives_any_number_of_crashes() {
    let (person, journal) = (Person::default(), fresh());
    let kit = start(organism(&person, pass_on), &journal);
    kit.client("alice").tell(question("may I?")).unwrap();
    kit.settle();
    let mut journal = crash(&journal);
    for _ in 0..12 {
        let kit = start(organism(&person, pass_on), &journal);
        assert_eq!(kit.tree(), "root\n  front\n    person\n");
        kit.advance(Duration::from_secs(3));
        assert_eq!(answers(&kit), [""; 0]);
        journal = crash(&journal);
    }
    *person.0.lock().unwrap() = Some("you may");
    let kit = start(organism(&person, pass_on), &journal);
    kit.advance(Duration::from_secs(3));
    let unread = crash(&journal);
    assert_eq!(answers(&kit), ["you may"]);
    assert_eq!(answers(&start(organism(&person, pass_on), &unread)), ["you may"], "it was not read before the crash");
    let read = crash(&journal);
    assert_eq!(answers(&start(organism(&person, pass_on), &read)), [""; 0], "it was read");
}

#[test]
fn partitions_move_to_other_cores_while_the_others_go_on() {
    let (person, journal) = (Person::default(), fresh());
    let kit = start(organism(&person, pass_on), &journal);
    let client = kit.client("alice");
    assert_eq!(kit.release(Partition::BOOT).unwrap(), Partitions::ALL);
    client.tell(question("who is there?")).unwrap_err();
    kit.release(Partition::BOOT).unwrap_err();
    let [even, odd] = [0, 1].map(|half| Partitions::share(half, 2));
    kit.adopt(even).unwrap();
    kit.adopt(odd).unwrap();
    kit.adopt(odd).unwrap_err();
    let mut asked: Vec<_> = (0..32).map(|n| client.tell(question(format!("may I? {n}"))).unwrap()).collect();
    kit.settle();
    let received = || -> Vec<ThreadId> {
        kit.advance(Duration::from_secs(3));
        std::iter::from_fn(|| client.try_receive()).map(|egress| egress.root).collect()
    };
    assert_eq!(received(), []);
    // Handlers of the one half end without effects; those of the other half have their answers meanwhile.
    assert_eq!(kit.release(Partition(1)).unwrap(), odd);
    *person.0.lock().unwrap() = Some("you may");
    let mut answered = received();
    assert!(answered.len() > 4 && answered.iter().all(|&root| even.contains(Partition::of(root))), "{answered:?}");
    kit.adopt(odd).unwrap();
    let later = received();
    assert!(later.len() > 4 && later.iter().all(|&root| odd.contains(Partition::of(root))), "{later:?}");
    answered.extend(later);
    answered.sort_unstable();
    asked.sort_unstable();
    assert_eq!(answered, asked, "each has one answer");
    kit.settle();
    let counts = kit.counts();
    let came = counts.injected + counts.emitted + counts.made + counts.redriven + counts.recovered;
    assert_eq!(came, counts.delivered + counts.faulted + counts.dead + counts.cancelled, "{counts:?}");
    let kit = start(organism(&person, pass_on), &crash(&journal));
    assert!(kit.snapshot().threads.is_empty());
    assert_eq!(answers(&kit), [""; 0]);
}

#[test]
fn a_core_whose_partitions_another_process_takes_over_drops_them_and_the_others_go_on() {
    let (person, journal) = (Person::default(), fresh());
    let kit = start(organism(&person, pass_on), &journal);
    let client = kit.client("alice");
    let [even, odd] = [0, 1].map(|half| Partitions::share(half, 2));
    kit.release(Partition::BOOT).unwrap();
    kit.adopt(even).unwrap();
    kit.adopt(odd).unwrap();
    let asked: Vec<_> = (0..32).map(|n| client.tell(question(format!("may I? {n}"))).unwrap()).collect();
    kit.settle();
    journal.lock().unwrap().adopt(&Partition(1).into()).unwrap();
    *person.0.lock().unwrap() = Some("you may");
    kit.advance(Duration::from_secs(3));
    let received = || std::iter::from_fn(|| client.try_receive()).collect::<Vec<_>>();
    let (faults, answered): (Vec<_>, Vec<_>) = received().into_iter().partition(|egress| egress.fault.is_some());
    let of = |roots: &[ThreadId], half: Partitions| {
        let mut roots: Vec<_> = roots.iter().copied().filter(|&root| half.contains(Partition::of(root))).collect();
        roots.sort_unstable();
        roots
    };
    let roots = |egress: &[Egress]| egress.iter().map(|egress| egress.root).collect::<Vec<_>>();
    assert_eq!(of(&roots(&answered), Partitions::ALL), of(&asked, even), "the others go on");
    assert_eq!(of(&roots(&faults), Partitions::ALL), of(&asked, odd), "each is told");
    assert!(faults.iter().all(|egress| egress.fault.as_ref().is_some_and(|fault| fault.retryable)), "{faults:?}");
    assert!(kit.snapshot().threads.is_empty(), "nothing is left of them");
    client.tell(question("in an odd one")).err().or_else(|| client.tell(question("in an odd one")).err()).unwrap();
    // Taken back, they go on from what is written: no step behind the takeover is.
    kit.adopt(odd).unwrap();
    kit.advance(Duration::from_secs(3));
    let later = received();
    assert!(later.iter().all(|egress| egress.fault.is_none()), "{later:?}");
    assert_eq!(of(&roots(&later), odd), of(&asked, odd));
    let counts = kit.counts();
    let came = counts.injected + counts.emitted + counts.made + counts.redriven + counts.recovered;
    assert_eq!(came, counts.delivered + counts.faulted + counts.dead + counts.cancelled, "{counts:?}");
}

#[test]
fn an_answer_is_read_when_the_client_comes_back_from_it() {
    let (person, journal) = (Person(Arc::new(Mutex::new(Some("you may")))), fresh());
    let next = |journal: &Shared, count: usize| {
        let kit = start(organism(&person, pass_on), journal);
        let client = kit.client("alice");
        kit.settle();
        let numbers: Vec<_> = (0..count).map_while(|_| client.try_receive()).map(|answer| answer.number).collect();
        kit.settle();
        (kit, numbers)
    };
    let kit = start(organism(&person, pass_on), &journal);
    for text in ["first", "second"] {
        kit.client("alice").tell(question(text)).unwrap();
    }
    kit.advance(Duration::from_secs(3));
    let unread = crash(&journal);
    let (_alive, both) = next(&unread, 2);
    assert_eq!(both.len(), 2);
    let one = crash(&unread);
    let (_alive, left) = next(&one, 1);
    assert_eq!(left, both[1..], "the first was read, the second was being looked at");
    let again = crash(&one);
    let (mut kit, once_more) = next(&again, 1);
    assert_eq!(once_more, left, "it was being looked at in the crash");
    kit.drain(Duration::ZERO);
    assert_eq!(next(&again, 1).1, [0; 0], "the organism ended in order");
}

#[test]
fn a_conversations_answer_is_read_when_it_is_asked_on_or_dropped() {
    let (person, journal) = (Person(Arc::new(Mutex::new(Some("you may")))), fresh());
    let kit = start(organism(&person, pass_on), &journal);
    let mut conversation = kit.client("alice").converse();
    conversation.send(question("may I?")).unwrap();
    kit.advance(Duration::from_secs(3));
    let answer = conversation.try_receive().unwrap();
    kit.settle();
    let looked_at = crash(&journal);
    drop(conversation);
    kit.settle();
    let left = crash(&journal);
    let come_again = |journal| {
        let kit = start(organism(&person, pass_on), journal);
        kit.settle();
        kit.client("alice").try_receive().map(|answer| answer.number)
    };
    assert_eq!(come_again(&looked_at), Some(answer.number));
    assert_eq!(come_again(&left), None);
}

#[test]
fn a_message_that_ends_the_process_is_given_up() {
    let (person, mut journal) = (Person::default(), fresh());
    let runs = Arc::new(AtomicU32::new(0));
    let deadly = {
        let runs = runs.clone();
        move |_: Delivery<Question>| {
            runs.fetch_add(1, Ordering::Relaxed);
            std::future::pending::<Response>()
        }
    };
    let kit = start(organism(&person, deadly.clone()), &journal);
    kit.client("alice").tell(question("go on, crash")).unwrap();
    kit.settle();
    journal = crash(&journal);
    for _ in 1..5 {
        let kit = start(organism(&person, deadly.clone()), &journal);
        journal = crash(&journal);
        // The orderly end comes too late.
        drop(kit);
    }
    assert_eq!(runs.load(Ordering::Relaxed), 5, "it has five attempts");
    let kit = start(organism(&person, deadly), &journal);
    assert_eq!((runs.load(Ordering::Relaxed), answers(&kit)), (5, vec!["!listener-failed".to_owned()]));
    let dead = kit.dead_letters();
    assert_eq!(dead.len(), 1);
    assert_eq!(dead[0].reason.message.as_ref(), "the process ended 5 times while a message was handled");
    assert!(dead[0].payload.as_ref().unwrap().as_str().contains("go on, crash"));
}

#[test]
fn a_handler_that_comes_further_each_time_is_not_given_up() {
    let (person, mut journal) = (Person(Arc::new(Mutex::new(Some("yes")))), fresh());
    let furthest = Arc::new(AtomicU32::new(0));
    let slow = {
        let furthest = furthest.clone();
        move |question: Delivery<Question>| {
            let furthest = furthest.clone();
            async move {
                for n in 1..=8 {
                    question.thread().call(Ask::from(n.to_string())).await?;
                    if furthest.fetch_max(n, Ordering::Relaxed) < n {
                        std::future::pending::<()>().await;
                    }
                }
                Ok(question.reply(answered("there at last")))
            }
        }
    };
    let kit = start(organism(&person, slow.clone()), &journal);
    kit.client("alice").tell(question("?")).unwrap();
    kit.advance(Duration::from_secs(2));
    for n in 2..=8 {
        journal = crash(&journal);
        let kit = start(organism(&person, slow.clone()), &journal);
        kit.advance(Duration::from_secs(2));
        assert_eq!(furthest.load(Ordering::Relaxed), n, "each answer sets back the count of attempts");
        journal = crash(&journal);
    }
    let kit = start(organism(&person, slow), &journal);
    assert_eq!(answers(&kit), ["there at last"]);
}

#[test]
fn a_handler_that_runs_again_has_the_context_that_it_had() {
    let (person, mut journal) = (Person::default(), fresh());
    let seen = Arc::new(Mutex::new(Vec::new()));
    let organism = || {
        let mut contract = Contract::new("person".parse_name());
        contract.accepts = vec!["{urn:example:test:v1}ask".parse().unwrap()];
        contract.replies = vec!["{urn:example:test:v1}told".parse().unwrap()];
        let (person, seen) = (person.clone(), seen.clone());
        let keep = move |question: Delivery<Question>| {
            let seen = seen.clone();
            async move {
                let thread = question.thread();
                let texts = thread.history().iter().map(|entry| entry.payload.as_str().len()).collect::<Vec<_>>();
                seen.lock().unwrap().push(texts);
                thread.call(Ask::from("first")).await?;
                thread.call(Ask::from("second")).await?;
                std::future::pending().await
            }
        };
        Organism::builder("durable")
            .listener(
                "front",
                move || Oracle(keep.clone()),
                |c| c.accepts::<Question>().replies::<Answered>().calls::<Ask>().context(),
            )
            .raw_listener(contract, move || person.clone())
            .schemas([
                systole::schema::PayloadSchema::of::<Told>().unwrap(),
                systole::schema::PayloadSchema::of::<Ask>().unwrap(),
            ])
            .client("alice", |c| c.calls::<Question>())
    };
    let kit = start(organism(), &journal);
    kit.client("alice").tell(question("?")).unwrap();
    kit.settle();
    journal = crash(&journal);
    *person.0.lock().unwrap() = Some("yes");
    for _ in 0..2 {
        let kit = start(organism(), &journal);
        kit.advance(Duration::from_secs(5));
        journal = crash(&journal);
    }
    assert_eq!(*seen.lock().unwrap(), vec![Vec::<usize>::new(); 3], "it begins anew each time");
    let recovered = journal.lock().unwrap().recover().unwrap();
    let remembered = recovered.remembered.iter().map(|entry| entry.from.as_str()).collect::<Vec<_>>();
    assert_eq!(remembered, ["alice", "front", "person", "front", "person"], "nothing is remembered twice");
}

#[test]
fn a_deadline_is_the_same_after_a_crash() {
    let (person, journal) = (Person::default(), fresh());
    let kit = start(organism(&person, pass_on), &journal);
    let envelope = format!(
        "<message xmlns='https://xml-pipeline.org/ns/envelope/v1'><meta><from>alice</from>\
         <deadline xmlns='urn:systole:meta:v1'>2031-05-07T12:01:00Z</deadline></meta>\
         <question xmlns='{}'><text>in time?</text></question></message>",
        crate::oracle::NAMESPACE
    );
    kit.client("alice").send(envelope).unwrap();
    kit.advance(Duration::from_secs(30));
    assert_eq!(kit.tree(), "root\n  front\n    person\n");
    // The clock starts where that of the process before started.
    let kit = start(organism(&person, pass_on), &crash(&journal));
    kit.advance(Duration::from_secs(59));
    assert_eq!(answers(&kit), [""; 0]);
    kit.advance(Duration::from_secs(2));
    assert_eq!(answers(&kit), ["!timeout"]);
}

#[test]
fn the_time_of_a_call_goes_on_through_a_crash_and_its_outcome_stays() {
    let (person, journal) = (Person::default(), fresh());
    let held = Arc::new(AtomicU32::new(1));
    let patient = {
        let held = held.clone();
        move |question: Delivery<Question>| {
            let held = held.clone();
            async move {
                let asked = [Ask::from("first"), Ask::from("second")];
                let told = question.thread().call_all(asked, Join::Settled).within(Duration::from_secs(60)).await?;
                let codes = told.into_iter().map(|settled| match settled.outcome {
                    Ok(told) => told.text,
                    Err(fault) => fault.code.to_string(),
                });
                let codes: Vec<_> = codes.collect();
                while held.load(Ordering::Relaxed) > 0 {
                    actix::clock::sleep(Duration::from_secs(1)).await;
                }
                Ok(question.reply(answered(codes.join(" "))))
            }
        }
    };
    let kit = start(organism(&person, patient.clone()), &journal);
    kit.client("alice").tell(question("?")).unwrap();
    kit.advance(Duration::from_secs(30));
    // The clock of the next start begins where the one before began.
    let waiting = crash(&journal);
    let kit = start(organism(&person, patient.clone()), &waiting);
    kit.advance(Duration::from_secs(59));
    assert_eq!(kit.tree(), "root\n  front\n    person\n    person#2\n");
    kit.advance(Duration::from_secs(2));
    assert_eq!(kit.tree(), "root\n  front\n", "what was asked is cancelled");
    // A re-run gets what came, though the person would answer now.
    *person.0.lock().unwrap() = Some("yes");
    held.store(0, Ordering::Relaxed);
    let kit = start(organism(&person, patient), &crash(&waiting));
    assert_eq!(answers(&kit), ["timeout timeout"]);
}

#[test]
fn what_was_answered_is_not_asked_again() {
    let (person, journal) = (Person(Arc::new(Mutex::new(Some("yes")))), fresh());
    let (asked, held) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicU32::new(1)));
    let answer = {
        let (asked, held) = (asked.clone(), held.clone());
        move |question: Delivery<Question>| {
            let (asked, held) = (asked.clone(), held.clone());
            async move {
                let thread = question.thread();
                let first = thread.call(Ask::from("first")).await?;
                let drawn = thread.record("drawn", async { asked.fetch_add(1, Ordering::Relaxed) }).await?;
                let (at, bits) = (thread.now().await?, thread.random().await?);
                while held.load(Ordering::Relaxed) > 0 {
                    actix::clock::sleep(Duration::from_secs(1)).await;
                }
                Ok(question.reply(answered(format!("{} {drawn} {at} {bits}", first.text))))
            }
        }
    };
    let kit = start(organism(&person, answer.clone()), &journal);
    kit.client("alice").tell(question("?")).unwrap();
    kit.advance(Duration::from_secs(2));
    let crashed = crash(&journal);
    held.store(0, Ordering::Relaxed);
    kit.advance(Duration::from_secs(2));
    let before = answers(&kit);
    *person.0.lock().unwrap() = Some("no");
    let kit = start(organism(&person, answer), &crashed);
    kit.advance(Duration::from_secs(20));
    assert_eq!(answers(&kit), before);
    assert_eq!(asked.load(Ordering::Relaxed), 1);
    assert!(before[0].starts_with("yes 0 2031-05-07T12:00:"), "{before:?}");
}

#[test]
fn values_that_are_learned_side_by_side_are_found_by_their_names() {
    let (person, journal, runs) = (Person::default(), fresh(), Arc::new(AtomicU32::new(0)));
    let answer = {
        let runs = runs.clone();
        move |question: Delivery<Question>| {
            let run = runs.fetch_add(1, Ordering::Relaxed);
            async move {
                let branch = async |first: &str, second: &str, seconds: u64| {
                    let thread = question.thread();
                    let learn = async {
                        actix::clock::sleep(Duration::from_secs(seconds)).await;
                        run
                    };
                    let first_run = thread.record(first, learn).await?;
                    let second_run = thread.record(second, async { run }).await?;
                    Ok::<_, Fault>(format!("{first}{first_run} {second}{second_run}"))
                };
                // The second branch goes on first, until both have their first values recorded.
                let (left, right) = tokio::try_join!(branch("a", "b", 2), branch("c", "d", 1))?;
                let last = question.thread().record("last", async { run }).await?;
                if run < 2 {
                    std::future::pending::<()>().await;
                }
                Ok(question.reply(answered(format!("{left} {right} last{last}"))))
            }
        }
    };
    let kit = start(organism(&person, answer.clone()), &journal);
    kit.client("alice").tell(question("?")).unwrap();
    // All but what the slower branch learns.
    kit.advance(Duration::from_millis(1_500));
    let second = crash(&journal);
    let kit = start(organism(&person, answer.clone()), &second);
    kit.advance(Duration::from_secs(10));
    let kit = start(organism(&person, answer), &crash(&second));
    kit.advance(Duration::from_secs(10));
    assert_eq!(answers(&kit), ["a1 b1 c0 d0 last1"]);
}

#[test]
fn a_handler_that_asks_for_something_else_fails_with_both_sides_shown() {
    let (person, journal) = (Person(Arc::new(Mutex::new(Some("yes")))), fresh());
    let runs = Arc::new(AtomicU32::new(0));
    let fickle = {
        let runs = runs.clone();
        move |question: Delivery<Question>| {
            let run = runs.fetch_add(1, Ordering::Relaxed);
            async move {
                question.thread().call(Ask::from(format!("run {run}"))).await?;
                std::future::pending().await
            }
        }
    };
    let kit = start(organism(&person, fickle.clone()), &journal);
    kit.client("alice").tell(question("?")).unwrap();
    kit.advance(Duration::from_secs(2));
    let kit = start(organism(&person, fickle), &crash(&journal));
    kit.advance(Duration::from_secs(2));
    assert_eq!(answers(&kit), ["!listener-failed"]);
    let dead = kit.dead_letters();
    let rule = &dead[0].reason.rule.as_ref().expect("it says what differs").rule;
    assert!(rule.contains("<text>run 0</text>") && rule.contains("<text>run 1</text>"), "{rule}");
}

#[test]
fn a_listener_that_is_gone_fails_its_threads() {
    let (person, journal) = (Person::default(), fresh());
    let kit = start(organism(&person, pass_on), &journal);
    kit.client("alice").tell(question("anybody?")).unwrap();
    kit.settle();
    let without = Organism::builder("durable")
        .listener("front", || Oracle(pass_on), |c| c.accepts::<Question>().replies::<Answered>())
        .client("alice", |c| c.calls::<Question>());
    let kit = start(without, &crash(&journal));
    kit.settle();
    assert_eq!(answers(&kit), ["!listener-failed"]);
    let dead = kit.dead_letters();
    assert_eq!(dead[0].reason.message.as_ref(), "a listener is no longer registered");
}

/// A listener that ticks from boot on, and on request.
struct Clock(Arc<AtomicU32>);

impl Actor for Clock {
    type Context = Context<Self>;
}

impl Handler<Delivery<Boot>> for Clock {
    type Result = Response;

    fn handle(&mut self, _: Delivery<Boot>, _: &mut Context<Self>) -> Response {
        Ok(continue_with(Tick::from("boot"), Duration::from_secs(10)))
    }
}

impl Handler<Delivery<Tick>> for Clock {
    type Result = Response;

    fn handle(&mut self, tick: Delivery<Tick>, _: &mut Context<Self>) -> Response {
        if tick.text == "boot" {
            self.0.fetch_add(1, Ordering::Relaxed);
            return Ok(continue_with(Tick::from("boot"), Duration::from_secs(10)));
        }
        Ok(reply_any(answered(&tick.text)))
    }
}

impl Handler<Delivery<Question>> for Clock {
    type Result = Response;

    fn handle(&mut self, question: Delivery<Question>, _: &mut Context<Self>) -> Response {
        Ok(continue_with(Tick::from(&question.text), Duration::from_secs(60)))
    }
}

#[test]
fn a_delay_goes_on_and_boot_begins_anew() {
    let (journal, ticks) = (fresh(), Arc::new(AtomicU32::new(0)));
    let clock = || {
        let ticks = ticks.clone();
        Organism::builder("clock")
            .listener(
                "clock",
                move || Clock(ticks.clone()),
                |c| c.accepts_boot().accepts::<Tick>().accepts::<Question>().replies::<Answered>(),
            )
            .client("alice", |c| c.calls::<Question>())
    };
    let kit = start(clock(), &journal);
    kit.client("alice").tell(question("in a minute")).unwrap();
    kit.advance(Duration::from_secs(35));
    assert_eq!(ticks.swap(0, Ordering::Relaxed), 3);
    let mut crashed = crash(&journal);
    drop(kit);
    for _ in 0..3 {
        let kit = start(clock(), &crashed);
        kit.advance(Duration::from_secs(35));
        assert_eq!(ticks.swap(0, Ordering::Relaxed), 3, "one clock ticks");
        assert_eq!(answers(&kit), [""; 0], "each kit begins at the same time");
        crashed = crash(&crashed);
        drop(kit);
    }
    let kit = start(clock(), &crashed);
    kit.advance(Duration::from_secs(61));
    assert_eq!(answers(&kit), ["in a minute"]);
}

#[test]
fn an_orderly_end_leaves_the_rest_to_the_next_start() {
    let (person, journal) = (Person::default(), fresh());
    let mut kit = start(organism(&person, pass_on), &journal);
    kit.client("alice").tell(question("later?")).unwrap();
    kit.settle();
    kit.drain(Duration::from_secs(5));
    assert_eq!(answers(&kit), [""; 0], "nobody is told that it is over");
    drop(kit);
    *person.0.lock().unwrap() = Some("now");
    let kit = start(organism(&person, pass_on), &journal);
    kit.advance(Duration::from_secs(2));
    assert_eq!(answers(&kit), ["now"]);
}

#[test]
fn a_journal_that_fails_ends_the_organism_and_whoever_waits_is_told() {
    for appends in 0..8 {
        let (person, journal) = (Person::default(), fresh());
        let failing = organism(&person, pass_on).journal(FailingJournal::new(journal.clone(), appends));
        let kit = Kit::start(failing).unwrap();
        let client = kit.client("alice");
        let asked: Vec<_> = (0..8).map(|_| kit.block_on(client.post(question("?")))).collect();
        let taken = asked.iter().filter(|asked| asked.is_ok()).count();
        assert!(taken < 8, "it fails after {appends} appends, and all were taken");
        assert_eq!(client.tell(question("?")), Err(SendError::Closed));
        *person.0.lock().unwrap() = Some("yes");
        let kit = start(organism(&person, pass_on), &crash(&journal));
        kit.advance(Duration::from_secs(5));
        let answers = answers(&kit);
        assert!(answers.len() >= taken && answers.iter().all(|answer| answer == "yes"), "{taken}: {answers:?}");
    }
}

/// The same question as `Ask`, by a contract that has changed.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
struct NumberedAsk {
    /// A number instead of a text.
    text: u32,
}

impl Payload for NumberedAsk {
    const NAMESPACE: &'static str = crate::oracle::NAMESPACE;
    const ROOT: &'static str = "ask";
}

/// An organism with a person to be asked, by one of the two.
fn office<Q: Payload + JsonSchema + Serialize + 'static>(person: &Person) -> OrganismBuilder {
    let person = person.clone();
    Organism::builder("durable")
        .raw_listener(asked(), move || person.clone())
        .schemas([
            systole::schema::PayloadSchema::of::<Told>().unwrap(),
            systole::schema::PayloadSchema::of::<Q>().unwrap(),
        ])
        .client("alice", |c| c.calls::<Q>().budget("calls=3".parse().unwrap()))
}

#[test]
fn a_stored_message_that_a_changed_schema_refuses_is_a_dead_letter() {
    let (person, journal) = (Person::default(), fresh());
    let kit = start(office::<Ask>(&person), &journal);
    kit.client("alice").tell(Ask::from("may I?")).unwrap();
    kit.settle();
    let kit = start(office::<NumberedAsk>(&person), &crash(&journal));
    assert_eq!(answers(&kit), ["!payload"]);
    let [letter] = &kit.dead_letters()[..] else { panic!("{:?}", kit.dead_letters()) };
    assert!(letter.payload.as_ref().unwrap().as_str().contains("may I?"), "{letter:?}");
    assert_eq!(
        (letter.from.as_str(), letter.to.as_ref().map(|to| to.as_str()), letter.path.to_string()),
        ("alice", Some("person"), "root/person".to_owned())
    );
    let rule = letter.reason.rule.as_ref().expect("it names the rule");
    assert!(rule.at.is_some(), "{rule:?}");
    assert_eq!(kit.counts().dead, 1);
}

#[test]
fn a_redriven_letter_of_a_client_has_the_budget_of_its_conversations() {
    let (person, journal) = (Person::default(), fresh());
    let kit = start(office::<Ask>(&person), &journal);
    kit.client("alice").tell(Ask::from("may I?")).unwrap();
    kit.settle();
    let journal = crash(&journal);
    let kit = start(office::<NumberedAsk>(&person), &journal);
    kit.settle();
    let journal = crash(&journal);
    let before = journal.lock().unwrap().recover().unwrap();
    assert!(journal.lock().unwrap().redrive(before.letters[0].number));
    let kit = start(office::<Ask>(&person).budget("calls=9 tokens=50".parse().unwrap()), &journal);
    kit.settle();
    assert_eq!(kit.dead_letters().len(), 0);
    let after = journal.lock().unwrap().clone().recover().unwrap().budgets;
    let redriven: Vec<_> = after.iter().filter(|record| !before.budgets.contains(record)).collect();
    let [redriven] = redriven[..] else { panic!("{redriven:?} of {after:?}") };
    assert_eq!(
        redriven.budget,
        "calls=3 tokens=50".parse().unwrap(),
        "that of the organism, and no more than the client's"
    );
    assert_eq!((redriven.spent.calls, redriven.spent.threads), (1, 1));
}

#[test]
fn a_reply_that_is_marked_to_be_queued_again_stays_a_dead_letter_and_loses_its_mark() {
    let (person, journal) = (Person(Arc::new(Mutex::new(Some("twice")))), fresh());
    let superseded = |_: Delivery<Question>| async {
        let both = [answered("one"), answered("two")].map(reply_any);
        let [one, two] = both;
        Ok(one.and(two))
    };
    let kit = start(organism(&person, superseded), &journal);
    kit.client("alice").tell(question("may I?")).unwrap();
    kit.settle();
    let [letter] = &kit.dead_letters()[..] else { panic!("{:?}", kit.dead_letters()) };
    let journal = crash(&journal);
    let number = journal.lock().unwrap().recover().unwrap().letters[0].number;
    assert!(journal.lock().unwrap().redrive(number));
    let kit = start(organism(&person, superseded), &journal);
    kit.settle();
    assert_eq!(kit.dead_letters()[0].id, letter.id);
    assert!(journal.lock().unwrap().recover().unwrap().redrive.is_empty());
}

#[test]
fn unread_answers_come_again_whatever_the_exit_holds() {
    let (person, journal) = (Person::default(), fresh());
    let echo = async |question: Delivery<Question>| Ok(question.reply(answered(&*question.text)));
    let limited = |answers: usize| organism(&person, echo).limits(Limits::default().egress(answers));
    let kit = start(limited(20), &journal);
    let texts: Vec<String> = (10..30).map(|n| n.to_string()).collect();
    for text in &texts {
        kit.client("alice").tell(question(text)).unwrap();
    }
    assert_eq!(kit.client("alice").tell(question("?")), Err(SendError::Unread));
    kit.settle();
    let mut journal = crash(&journal);
    // Fewer may wait at the next starts, whose client does not read.
    for _ in 0..3 {
        let kit = start(limited(2), &journal);
        kit.settle();
        assert_eq!(kit.client("alice").tell(question("?")), Err(SendError::Unread), "older answers wait");
        journal = crash(&journal);
    }
    let kit = start(limited(2), &journal);
    let mut came = answers(&kit);
    came.sort();
    assert_eq!(came, texts, "none is lost, none comes twice");
    assert_eq!(answers(&kit), [""; 0]);
    kit.client("alice").tell(question("again")).expect("there is room again");
    assert_eq!(answers(&kit), ["again"]);
    assert_eq!(answers(&start(limited(2), &crash(&journal))), [""; 0], "all were read");
}
