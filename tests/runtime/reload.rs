//! Changes of an organism while it runs: on the simulated clock of the kit, and on real threads.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use systole::core::Version;
use systole::journal::MemoryJournal;
use systole::operations::Act;
use systole::prelude::*;
use systole::protocol::Boot;
use systole::runtime::{Keep, OrganismBuilder, ReloadError, Reloaded, Then, with_state};
use systole::testing::Kit;
use systole::vocab::{Limits, Partition};
use tokio::sync::Semaphore;

use crate::calculator::{Add, Count, Sum, within};

/// Time after which the desk of a test calls.
const LATER: Duration = Duration::from_secs(100);

/// Counts how many of a version's states live.
struct Alive(Arc<AtomicUsize>);

impl Alive {
    fn new(count: &Arc<AtomicUsize>) -> Self {
        count.fetch_add(1, Ordering::SeqCst);
        Self(count.clone())
    }
}

impl Drop for Alive {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

/// A version: a desk that calls a calculator later, which adds `answer`.
fn desk(answer: i64, alive: &Arc<AtomicUsize>) -> OrganismBuilder {
    let calls = async |count: Delivery<Count>| {
        tokio::time::sleep(LATER).await;
        Ok(count.thread().call(Add { a: count.left, b: 0 }).await?)
    };
    let (alive, adds) = (alive.clone(), move |_, add: Delivery<Add>| async move { Ok(Sum { value: add.a + answer }) });
    Organism::builder("changed")
        .on_with("desk", calls, |c| c.calls::<Add>().concurrency(100).timeout(2 * LATER))
        .stateful("calculator", move || Alive::new(&alive), |c| c.on_state(adds))
        .client("cli", |c| c.calls::<Count>())
}

fn reload(kit: &Kit, builder: OrganismBuilder) -> Result<Reloaded, ReloadError> {
    kit.block_on(kit.organism().reload(builder, Keep::default()))
}

/// The sums that came for the client, in the order in which they came.
fn sums(kit: &Kit) -> Vec<i64> {
    kit.settle();
    let answers = std::iter::from_fn(|| kit.client("cli").try_receive());
    let value = |text: &str| text.split(['<', '>']).find_map(|part| part.parse().ok());
    answers.map(|answer| value(answer.payload.as_str()).unwrap_or_else(|| panic!("{:?}", answer.fault))).collect()
}

#[test]
fn a_conversation_keeps_the_organism_that_it_began_with() {
    for durable in [false, true] {
        let alive = [(); 2].map(|()| Arc::new(AtomicUsize::new(0)));
        let builder = desk(1, &alive[0]);
        let builder = if durable { builder.journal(MemoryJournal::new([1; 32])) } else { builder };
        let kit = Kit::start(builder).unwrap();
        kit.client("cli").tell(Count { left: 10 }).unwrap();
        kit.settle();
        let reloaded = reload(&kit, desk(2, &alive[1])).unwrap();
        assert_eq!((reloaded.version, reloaded.kept), (Version(1), 1));
        kit.client("cli").tell(Count { left: 20 }).unwrap();
        kit.advance(LATER);
        assert_eq!(sums(&kit), [11, 22]);
        assert!(alive.iter().all(|alive| alive.load(Ordering::SeqCst) == 1), "both have answered");
        kit.advance(Duration::from_secs(2));
        let alive = alive.map(|alive| alive.load(Ordering::SeqCst));
        assert_eq!(alive, [0, 1], "no conversation keeps the first version: its listeners have ended");
    }
}

#[test]
fn a_conversation_that_keeps_its_version_for_too_long_is_cancelled_or_goes_on() {
    for (then, answers) in [(Then::Cancel, 0), (Then::Wait, 1)] {
        let alive = Arc::default();
        let kit = Kit::start(desk(1, &alive)).unwrap();
        let conversation = kit.client("cli").tell(Count { left: 10 }).unwrap();
        kit.settle();
        let keep = Keep { time: LATER / 2, then };
        kit.block_on(kit.organism().reload(desk(2, &alive), keep)).unwrap();
        kit.advance(LATER / 2 + Duration::from_secs(2));
        let answer = kit.client("cli").try_receive();
        assert_eq!(answer.is_none(), then == Then::Wait);
        answer.into_iter().for_each(|answer| {
            assert_eq!((answer.root, answer.fault.unwrap().code), (conversation, FaultCode::Cancelled));
        });
        kit.advance(LATER);
        assert_eq!(sums(&kit).len(), answers);
        assert_eq!(alive.load(Ordering::SeqCst), 0, "the first one has ended, and the second one has no state yet");
    }
}

#[test]
fn what_only_a_start_can_change_is_named_and_nothing_has_changed() {
    let alive = Arc::default();
    let kit = Kit::start(desk(1, &alive)).unwrap();
    let other = |builder: OrganismBuilder| reload(&kit, builder).unwrap_err().to_string();
    let error =
        other(desk(2, &alive).limits(Limits::default().fanout(3)).shards(7).journal(MemoryJournal::new([1; 32])));
    for what in ["its limits", "the number of shards", "its journal", "start it again"] {
        assert!(error.contains(what), "{what}: {error}");
    }
    let renamed = Organism::builder("other").on("calculator", async |_: Delivery<Add>| Ok(Sum { value: 0 }));
    assert!(other(renamed).contains("the name of the organism"));
    let taken = desk(2, &alive).on("cli", async |_: Delivery<Add>| Ok(Sum { value: 0 }));
    assert!(other(taken).contains("the name 'cli' is taken"));
    kit.client("cli").tell(Count { left: 10 }).unwrap();
    kit.advance(LATER);
    assert_eq!(sums(&kit), [11]);
    // A timeout is a matter of contracts.
    reload(&kit, desk(2, &alive).limits(Limits::default().handler_timeout(LATER * 3))).unwrap();
}

#[test]
fn clients_come_and_go_with_versions() {
    let alive = Arc::default();
    let kit = Kit::start(desk(1, &alive)).unwrap();
    assert!(kit.organism().client("new").is_err());
    let second = desk(2, &alive).client("new", |c| c.calls::<Count>().calls::<Add>());
    reload(&kit, second).unwrap();
    assert_eq!(kit.ask("new", Add { a: 1, b: 0 }).unwrap().value, 3);
    kit.client("new").tell(Count { left: 1 }).unwrap();
    kit.settle();
    reload(&kit, desk(3, &alive)).unwrap();
    let fault = kit.ask("new", Add { a: 1, b: 0 }).unwrap_err();
    assert!(matches!(&fault, AskError::Fault { fault, .. } if fault.code == FaultCode::Route), "{fault:?}");
    kit.advance(LATER);
    let answer = kit.client("new").try_receive().unwrap();
    assert!(answer.payload.as_str().contains(">3<"), "what it has asked before is answered: {answer:?}");
}

#[test]
fn a_paused_listener_stays_paused_in_the_next_version() {
    let alive = Arc::default();
    let kit = Kit::start(desk(1, &alive)).unwrap();
    let act = |act: Act| kit.block_on(kit.organism().operations("op".parse().unwrap()).act(&act)).map(drop).unwrap();
    act(Act::Pause { listener: "desk".into() });
    kit.client("cli").tell(Count { left: 10 }).unwrap();
    kit.settle();
    reload(&kit, desk(2, &alive)).unwrap();
    kit.client("cli").tell(Count { left: 20 }).unwrap();
    kit.advance(LATER + LATER / 2);
    assert!(sums(&kit).is_empty(), "both wait");
    act(Act::Resume { listener: "desk".into() });
    kit.advance(LATER);
    assert_eq!(sums(&kit), [11, 22], "both go on, each in its version");
}

#[test]
fn boot_comes_again_and_the_earlier_one_has_ended() {
    let (booted, ended) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let version = || {
        let (booted, ended) = (booted.clone(), ended.clone());
        let boot = with_state(
            (booted, ended),
            async |(booted, ended): (Arc<AtomicUsize>, Arc<AtomicUsize>), _: Delivery<Boot>| {
                booted.fetch_add(1, Ordering::SeqCst);
                let _here = Alive::new(&ended);
                std::future::pending::<Result<Emit, Failure>>().await
            },
        );
        Organism::builder("boots").on("clock", boot)
    };
    let kit = Kit::start(version()).unwrap();
    kit.settle();
    for times in 1..5 {
        assert_eq!((booted.load(Ordering::SeqCst), ended.load(Ordering::SeqCst)), (times, 1));
        reload(&kit, version()).unwrap();
        kit.settle();
    }
}

#[test]
fn conversations_keep_so_many_versions_and_no_more() {
    let alive = Arc::default();
    let kit = Kit::start(desk(0, &alive)).unwrap();
    for version in 0..16 {
        kit.client("cli").tell(Count { left: 0 }).unwrap();
        kit.settle();
        let reloaded = reload(&kit, desk(version + 1, &alive));
        assert_eq!(reloaded.is_ok(), version < 15, "{version}: {reloaded:?}");
    }
    kit.advance(LATER);
    assert_eq!(sums(&kit), (0..16).collect::<Vec<_>>(), "each in its version");
    kit.advance(Duration::from_secs(2));
    reload(&kit, desk(16, &alive)).unwrap();
}

#[test]
fn a_version_ends_although_a_conversation_keeps_an_earlier_one() {
    let alive = [(); 2].map(|()| Arc::default());
    let kit = Kit::start(desk(0, &alive[0])).unwrap();
    kit.client("cli").tell(Count { left: 0 }).unwrap();
    kit.settle();
    // Each is used, and then kept by nobody.
    for version in 1..40 {
        reload(&kit, desk(version, &alive[1]).client("other", |c| c.calls::<Add>())).unwrap();
        assert_eq!(kit.ask("other", Add { a: 0, b: 0 }).unwrap().value, version);
        kit.advance(Duration::from_secs(2));
        assert!(alive[1].load(Ordering::SeqCst) <= 2, "{version}: {alive:?}");
    }
    kit.advance(LATER);
    assert_eq!(sums(&kit), [0]);
}

#[test]
fn another_core_goes_on_with_the_present_version() {
    let alive = Arc::default();
    let kit = Kit::start(desk(1, &alive).journal(MemoryJournal::new([2; 32]))).unwrap();
    kit.client("cli").tell(Count { left: 10 }).unwrap();
    kit.settle();
    reload(&kit, desk(2, &alive)).unwrap();
    let released = kit.release(Partition::BOOT).unwrap();
    kit.adopt(released).unwrap();
    kit.client("cli").tell(Count { left: 20 }).unwrap();
    kit.advance(LATER);
    assert_eq!(sums(&kit), [12, 22], "the journal has no version: it is as after a start");
    reload(&kit, desk(3, &alive)).unwrap();
    kit.client("cli").tell(Count { left: 30 }).unwrap();
    kit.advance(LATER);
    assert_eq!(sums(&kit), [33], "the new core changes, too");
}

#[test]
fn an_organism_that_ends_does_not_change() {
    let alive = Arc::default();
    let mut kit = Kit::start(desk(1, &alive)).unwrap();
    kit.drain(Duration::ZERO);
    assert!(matches!(reload(&kit, desk(2, &alive)), Err(ReloadError::Ending)));
}

/// On the threads of several shards, while clients flood the organism: each answer is of the version that its conversation began
/// with, and none is lost.
#[tokio::test]
async fn changes_under_load_lose_nothing() {
    const VERSIONS: i64 = 12;
    let version = |number: i64| {
        let calls = async |count: Delivery<Count>| {
            let first = count.thread().call(Add { a: 0, b: 0 }).await?;
            tokio::task::yield_now().await;
            let second = count.thread().call(Add { a: 0, b: 0 }).await?;
            Ok(Sum { value: if first.value == second.value { first.value } else { -1 } })
        };
        let adds = move |_: Delivery<Add>| async move { Ok(Sum { value: number }) };
        Organism::builder("flooded")
            .shards(3)
            .on_with("desk", calls, |c| c.calls::<Add>().concurrency(4))
            .on("calculator", adds)
            .client("cli", |c| c.calls::<Count>())
    };
    let organism = Arc::new(version(0).start().unwrap());
    let (present, over) = (Arc::new(AtomicUsize::new(0)), Arc::new(Semaphore::new(0)));
    let floods: Vec<_> = (0..4)
        .map(|_| {
            let (organism, present, over) = (organism.clone(), present.clone(), over.clone());
            tokio::spawn(async move {
                let mut asked = 0;
                while over.available_permits() == 0 {
                    let before = present.load(Ordering::SeqCst) as i64;
                    let sum = within(organism.client("cli").unwrap().ask(Count { left: 0 })).await.unwrap().value;
                    let after = present.load(Ordering::SeqCst) as i64;
                    assert!((before..=after + 1).contains(&sum), "{before} <= {sum} <= {after} + 1");
                    asked += 1;
                }
                asked
            })
        })
        .collect();
    for number in 1..=VERSIONS {
        let reloaded = within(organism.reload(version(number), Keep::default())).await.unwrap();
        assert_eq!(i64::from(reloaded.version.0), number);
        present.store(number as usize, Ordering::SeqCst);
        let asked = organism.client("cli").unwrap().ask(Count { left: 0 });
        assert_eq!(within(asked).await.unwrap().value, number, "a new conversation begins with it");
    }
    over.add_permits(1);
    for flood in floods {
        assert!(flood.await.unwrap() > 0);
    }
    let drained = within(organism.drain(Duration::from_secs(10))).await;
    assert!(drained.idle && drained.ended, "{drained:?}");
}
