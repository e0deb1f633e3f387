//! Moves of partitions that meet each other, the end of the organism, and a journal that fails.

use std::rc::Rc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use systole_core::core::{Body, Contract, Emission, EmissionKind, HandlerOutcome, Message};
use systole_core::journal::{AppendError, Batch, Durability, Journal, MemoryJournal, Recovered, Tail};
use systole_core::vocab::Name;
use systole_xml::schema::{Draft, Payload, PayloadSchema};
use tokio::task::yield_now;

use super::*;
use crate::runtime::{LocalBoxFuture, OrganismBuilder, RawListener, RunContext};
use crate::testing::Kit;

/// Asks for something.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
struct Ask {}

impl Payload for Ask {
    const NAMESPACE: &'static str = "urn:example:test:v1";
    const ROOT: &'static str = "ask";
}

/// A listener that counts `<boot>` and its runs.
#[derive(Clone, Default)]
struct Listener {
    boots: Arc<AtomicU32>,
    runs: Arc<AtomicU32>,
    way: Way,
}

/// Behaviour of a listener when it gets a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Way {
    /// Waits for ever.
    #[default]
    Waits,
    /// Takes another turn, for ever and without a wait.
    GoesOn,
    /// Panics.
    Panics,
}

impl RawListener for Listener {
    fn run(self: Rc<Self>, message: Message, _: RunContext) -> LocalBoxFuture<HandlerOutcome> {
        let Body::Payload { payload, .. } = message.body else { panic!("nobody sends it faults") };
        if *payload.payload().root() != Ask::qname() {
            self.boots.fetch_add(1, Ordering::Relaxed);
            return Box::pin(std::future::ready(HandlerOutcome::Emitted(Vec::new())));
        }
        self.runs.fetch_add(1, Ordering::Relaxed);
        match self.way {
            Way::Waits => return Box::pin(std::future::pending()),
            Way::Panics => panic!("as it was told to"),
            Way::GoesOn => {}
        }
        let kind = EmissionKind::Continue { after: Duration::ZERO };
        let again = Emission { kind, to: None, thread: None, payload: Draft::Proved(payload) };
        Box::pin(std::future::ready(HandlerOutcome::Emitted(vec![again])))
    }
}

/// A journal that fails on demand: at the next append, or at the next takeover.
struct Breakable {
    journal: MemoryJournal,
    broken: Arc<Mutex<Option<Part>>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    Append,
    Adopt,
}

impl Breakable {
    fn check(&self, part: Part) -> Result<(), JournalError> {
        match *self.broken.lock().unwrap() == Some(part) {
            true => Err(JournalError::new(JournalErrorKind::Full, "as it was told to")),
            false => Ok(()),
        }
    }
}

impl Journal for Breakable {
    fn durability(&self) -> Option<Durability> {
        self.journal.durability()
    }

    fn may_block(&self) -> bool {
        self.journal.may_block()
    }

    fn append(&mut self, batch: &Batch) -> Result<(), AppendError> {
        self.check(Part::Append)?;
        self.journal.append(batch)
    }

    fn recover(&mut self) -> Result<Recovered, JournalError> {
        self.journal.recover()
    }

    fn adopt(&mut self, partitions: &Partitions) -> Result<Recovered, JournalError> {
        self.check(Part::Adopt)?;
        self.journal.adopt(partitions)
    }

    fn release(&mut self, tail: &Tail) -> Result<(), AppendError> {
        self.journal.release(tail)
    }

    fn close(&mut self) -> Result<(), JournalError> {
        self.journal.close()
    }
}

/// An organism with that listener.
fn builder(listener: &Listener, is_stateless: bool) -> OrganismBuilder {
    let mut contract = Contract::new(Name::parse("listener").unwrap());
    contract.accepts = vec![systole_core::protocol::boot_qname(), Ask::qname()];
    contract.concurrency = 1000;
    contract.timeout = Some(Duration::from_secs(3600));
    contract.stateless = is_stateless;
    let listener = listener.clone();
    crate::runtime::Organism::builder("moved")
        .raw_listener(contract, move || listener.clone())
        .schemas([PayloadSchema::of::<Ask>().unwrap()])
        .client("alice", |c| c.calls::<Ask>())
}

/// An organism with that listener, and the means to break its journal.
fn start(listener: &Listener) -> (Kit, Arc<Mutex<Option<Part>>>) {
    let broken = Arc::default();
    let journal = Breakable { journal: MemoryJournal::new([3; 32]), broken: Arc::clone(&broken) };
    (Kit::start(builder(listener, false).journal(journal)).unwrap(), broken)
}

fn handover(kit: &Kit) -> &Handover {
    kit.organism().handover().unwrap()
}

/// Moves even partitions to a core of their own and leaves the odd ones without one.
fn part(kit: &Kit) -> Partitions {
    let [even, odd] = [0, 1].map(|half| Partitions::share(half, 2));
    assert_eq!(kit.release(Partition::BOOT).unwrap(), Partitions::ALL);
    kit.adopt(even).unwrap();
    odd
}

/// Sends a question in each partition that a core serves.
fn ask(kit: &Kit) -> usize {
    (0..Partition::COUNT).filter(|_| kit.client("alice").tell(Ask {}).is_ok()).count()
}

fn kind(result: Result<(), JournalError>) -> JournalErrorKind {
    result.unwrap_err().kind()
}

#[test]
fn of_two_takeovers_of_the_same_partitions_one_is_refused() {
    let listener = Listener::default();
    let (kit, _) = start(&listener);
    assert_eq!(kit.release(Partition::BOOT).unwrap(), Partitions::ALL);
    let both =
        async { tokio::join!(handover(&kit).adopt(Partitions::ALL, 0), handover(&kit).adopt(Partition(1).into(), 0)) };
    let (first, second) = kit.block_on(both);
    first.unwrap();
    assert_eq!(kind(second), JournalErrorKind::Refused);
    assert_eq!(kind(kit.adopt(Partitions::ALL)), JournalErrorKind::Refused);
    kit.client("alice").tell(Ask {}).unwrap();
    kit.settle();
    assert_eq!((listener.boots.load(Ordering::Relaxed), listener.runs.load(Ordering::Relaxed)), (2, 1));
}

#[test]
fn a_takeover_is_whole_although_its_caller_leaves() {
    let listener = Listener::default();
    let (kit, _) = start(&listener);
    kit.release(Partition::BOOT).unwrap();
    kit.block_on(async {
        let mut adopting = Box::pin(handover(&kit).adopt(Partitions::ALL, 0));
        let begun = std::future::poll_fn(|cx| std::task::Poll::Ready(adopting.as_mut().poll(cx).is_pending())).await;
        assert!(begun, "it waits for the shard");
    });
    assert_eq!(kind(kit.adopt(Partitions::ALL)), JournalErrorKind::Refused);
    assert_eq!(listener.boots.load(Ordering::Relaxed), 2, "one at each start of the core of <boot>");
    kit.release(Partition::BOOT).unwrap();
}

#[test]
fn partitions_leave_a_core_although_another_one_always_has_work() {
    let listener = Listener { way: Way::GoesOn, ..Listener::default() };
    let (kit, _) = start(&listener);
    let odd = part(&kit);
    kit.adopt(odd).unwrap();
    let released = kit.block_on(async {
        let alice = kit.client("alice");
        for _ in 0..Partition::COUNT {
            alice.tell(Ask {}).unwrap();
        }
        let turns = async || {
            for _ in 0..1000 {
                yield_now().await;
            }
        };
        turns().await;
        assert!(listener.runs.load(Ordering::Relaxed) > 1000, "they go on");
        let released = tokio::select! {
            biased;
            released = handover(&kit).release(Partition(1)) => Some(released),
            () = turns() => None,
        };
        kit.organism().stop();
        released
    });
    assert_eq!(released.map(Result::unwrap), Some(odd), "within 1000 turns");
}

#[test]
fn a_listener_that_rests_starts_nothing_of_a_new_core() {
    let listener = Listener { way: Way::Panics, ..Listener::default() };
    let (kit, _) = start(&listener);
    let tell = || {
        kit.client("alice").tell(Ask {}).unwrap();
        kit.settle();
        listener.runs.load(Ordering::Relaxed)
    };
    let rests = (0..100).map(|_| tell()).is_sorted_by(|before, after| before < after);
    assert!(!rests, "it rests at last");
    let runs = tell();
    kit.adopt(kit.release(Partition::BOOT).unwrap()).unwrap();
    assert_eq!(tell(), runs);
    kit.advance(Duration::from_secs(60));
    assert!(listener.runs.load(Ordering::Relaxed) > runs, "what has waited starts when it is back");
}

#[test]
fn an_organism_that_ends_takes_nothing_over() {
    let listener = Listener::default();
    let (kit, _) = start(&listener);
    let odd = part(&kit);
    assert_eq!(ask(&kit), Partition::COUNT / 2, "the others are refused");
    kit.settle();
    kit.block_on(async {
        let mut draining = Box::pin(kit.organism().drain(Duration::from_secs(60)));
        tokio::select! {
            biased;
            _ = &mut draining => panic!("the listener waits"),
            result = async {
                for _ in 0..100 {
                    yield_now().await;
                }
                handover(&kit).adopt(odd, 0).await
            } => assert_eq!(kind(result), JournalErrorKind::Closed),
        }
    });
}

#[test]
fn an_organism_whose_journal_fails_takes_nothing_over() {
    for part_of_it in [Part::Append, Part::Adopt] {
        let (kit, broken) = start(&Listener::default());
        let odd = part(&kit);
        *broken.lock().unwrap() = Some(part_of_it);
        if part_of_it == Part::Append {
            ask(&kit);
            kit.settle();
        }
        let refused = kind(kit.adopt(odd));
        assert!(kit.organism().breakdown().is_some(), "{part_of_it:?}: {refused:?}");
        *broken.lock().unwrap() = None;
        assert_eq!(kind(kit.adopt(odd)), JournalErrorKind::Closed);
    }
}

#[test]
fn a_handover_is_no_crash_of_what_runs() {
    let listener = Listener::default();
    let (kit, _) = start(&listener);
    kit.client("alice").tell(Ask {}).unwrap();
    kit.settle();
    for _ in 0..12 {
        kit.adopt(kit.release(Partition::BOOT).unwrap()).unwrap();
    }
    assert_eq!(listener.runs.load(Ordering::Relaxed), 13);
    assert!(kit.dead_letters().is_empty(), "{:?}", kit.dead_letters());
}

/// Moves all partitions to another core.
fn move_all(kit: &Kit) {
    kit.adopt(kit.release(Partition::BOOT).unwrap()).unwrap();
}

#[test]
fn a_pause_holds_for_cores_that_come_later_and_is_durable_without_the_first_ones() {
    let (listener, journal) = (Listener::default(), Arc::new(Mutex::new(MemoryJournal::new([3; 32]))));
    let kit = Kit::start(builder(&listener, true).journal(journal.clone())).unwrap();
    let operations = kit.organism().operations(Name::system());
    let runs = || {
        kit.client("alice").tell(Ask {}).unwrap();
        kit.settle();
        listener.runs.load(Ordering::Relaxed)
    };
    let kept = || journal.lock().unwrap().clone().recover().unwrap().paused.len();
    // No first core serves a partition any more.
    move_all(&kit);
    kit.block_on(operations.pause("listener")).unwrap();
    assert_eq!((runs(), kept()), (0, 1));
    move_all(&kit);
    assert_eq!(runs(), 0, "the next core holds it back, too");
    // What is resumed while no core serves anything is resumed.
    let all = kit.release(Partition::BOOT).unwrap();
    kit.block_on(operations.resume("listener")).unwrap();
    assert_eq!(kept(), 0);
    kit.adopt(all).unwrap();
    assert_eq!(runs(), 3);
    // The records that a core takes over may be older than the pause.
    kit.block_on(async {
        let all = kit.organism().release(Partition::BOOT).await.unwrap();
        let mut adopting = Box::pin(handover(&kit).adopt(all, 0));
        let begun = std::future::poll_fn(|cx| std::task::Poll::Ready(adopting.as_mut().poll(cx).is_pending())).await;
        assert!(begun, "it has read the records, and waits for the shard");
        operations.pause("listener").await.unwrap();
        adopting.await.unwrap();
    });
    let before = listener.runs.load(Ordering::Relaxed);
    assert_eq!((runs(), kept()), (before, 1));
    drop(kit);
    let kit = Kit::start(builder(&listener, true).journal(journal.clone())).unwrap();
    kit.settle();
    assert_eq!(listener.runs.load(Ordering::Relaxed), before, "a start takes the pause up");
}
