//! Schedules on the simulated clock, with crashes: each tick has one end, whatever happens.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use proptest::prelude::*;
use systole::journal::{FailingJournal, Journal, MemoryJournal};
use systole::ladder::{Raw, parse};
use systole::operations::{ScheduleRecord, Wanted};
use systole::prelude::*;
use systole::runtime::OrganismBuilder;
use systole::schedules::{AnswersTo, Missed, Overlap, ScheduleSpec, Scheduler, Timing};
use systole::testing::Kit;
use systole::vocab::{Limits, MessageId, Time, XmlLimits};

use crate::oracle::{Question, answered};

type Shared = Arc<Mutex<MemoryJournal>>;

/// The messages that came, by id: those of a handler that runs again have the same one.
type Came = Arc<Mutex<BTreeMap<MessageId, u32>>>;

fn fresh() -> Shared {
    Arc::new(Mutex::new(MemoryJournal::new([3; 32])))
}

/// Returns the state that a crash at this moment leaves.
fn crash(journal: &Shared) -> Shared {
    Arc::new(Mutex::new(journal.lock().unwrap().clone()))
}

fn every(seconds: u64) -> ScheduleSpec {
    let payload = Raw::new("<question xmlns=\"urn:example:test:v1\"><text>?</text></question>");
    let payload = parse(&payload, &XmlLimits::default()).unwrap();
    let timing = Timing::Every(Duration::from_secs(seconds));
    ScheduleSpec::new("beat".parse().unwrap(), "alice".parse().unwrap(), timing, payload).unwrap()
}

fn organism(came: &Came, spec: ScheduleSpec, takes: Duration) -> OrganismBuilder {
    let came = came.clone();
    let answer = move |question: Delivery<Question>| {
        *came.lock().unwrap().entry(question.id()).or_default() += 1;
        async move {
            tokio::time::sleep(takes).await;
            Ok(answered("!"))
        }
    };
    Organism::builder("clockwork").on("front", answer).client("alice", |c| c.calls::<Question>()).schedule(spec)
}

struct Running {
    // Dropped first.
    scheduler: Scheduler,
    kit: Kit,
}

impl Running {
    fn start(builder: OrganismBuilder, journal: impl Journal + 'static, now: Option<Time>) -> Self {
        let builder = builder.journal(journal);
        let kit = match now {
            Some(now) => Kit::start_at(builder, now),
            None => Kit::start(builder),
        };
        let kit = kit.unwrap();
        let scheduler = kit.block_on(async { Scheduler::start(kit.organism(), |_| AnswersTo::Nobody) });
        Self { scheduler: scheduler.unwrap().unwrap(), kit }
    }

    fn look(&self) -> ScheduleRecord {
        let operator = self.kit.organism().operations("ada".parse().unwrap());
        self.kit.block_on(operator.schedules(&Wanted::default())).unwrap().items.remove(0)
    }

    /// The ends of the ticks that are kept, newest first: the second of the tick since the start of the hour, and its end.
    fn ends(&self) -> Vec<(u64, String)> {
        let ticks = self.look().ticks.into_iter();
        ticks.map(|tick| (tick.at.parse::<Time>().unwrap().as_nanos() / 1_000_000_000 % 3600, tick.end)).collect()
    }
}

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

#[test]
fn a_tick_has_a_message_and_its_conversation_an_end() {
    let (came, journal) = (Came::default(), fresh());
    let running = Running::start(organism(&came, every(60), seconds(5)), journal.clone(), None);
    running.kit.advance(seconds(59));
    assert!(came.lock().unwrap().is_empty(), "before the first tick");
    running.kit.advance(seconds(1));
    running.kit.advance(seconds(120));
    assert_eq!(came.lock().unwrap().len(), 3);
    assert_eq!(running.ends(), [(180, "sent"), (120, "sent"), (60, "sent")].map(|(at, end)| (at, end.to_owned())));
    let look = running.look();
    assert_eq!((look.missed_ticks, look.next[0].as_str()), (0, "2031-05-07T12:04:00+00:00"));
    running.kit.advance(seconds(30));
    assert!(running.kit.snapshot().threads.is_empty(), "each conversation has closed");
}

#[test]
fn ticks_while_it_did_not_run_end_by_the_rule() {
    for (rule, sent, missed) in
        [(Missed::Skip, 1, 10), (Missed::Once, 2, 9), (Missed::All(3), 4, 7), (Missed::All(50), 11, 0)]
    {
        let (came, journal) = (Came::default(), fresh());
        let spec = || every(600).missed(rule);
        let running = Running::start(organism(&came, spec(), seconds(1)), journal.clone(), None);
        running.kit.advance(seconds(700));
        let (left, now) = (crash(&journal), running.kit.now());
        drop(running);
        // Down for 100 minutes; the last tick is 100 s ago.
        let running = Running::start(organism(&came, spec(), seconds(1)), left, Some(now.after(seconds(6000))));
        running.kit.advance(seconds(10));
        assert_eq!(came.lock().unwrap().len(), sent, "{rule:?}");
        assert_eq!(running.look().missed_ticks, missed, "{rule:?}");
    }
}

#[test]
fn a_tick_is_skipped_while_an_earlier_conversation_is_open_if_it_is_told_so() {
    // Each takes 17 s: the conversation of a tick is open at the next three.
    for (rule, sent) in [(Overlap::Allow, 6), (Overlap::Skip, 2)] {
        let (came, journal) = (Came::default(), fresh());
        let running = Running::start(organism(&came, every(5).overlap(rule), seconds(17)), journal.clone(), None);
        running.kit.advance(seconds(31));
        assert_eq!(came.lock().unwrap().len(), sent, "{rule:?}: {:?}", running.ends());
        if rule == Overlap::Skip {
            let ends: Vec<_> = running.ends().into_iter().map(|(_, end)| end).rev().collect();
            assert_eq!(ends, ["sent", "overlapped", "overlapped", "overlapped", "sent", "overlapped"]);
        }
    }
}

#[test]
fn other_ticks_than_before_miss_nothing() {
    let (came, journal) = (Came::default(), fresh());
    let running = Running::start(organism(&came, every(3600), seconds(1)), journal.clone(), None);
    running.kit.advance(seconds(60));
    let (left, now) = (crash(&journal), running.kit.now());
    drop(running);
    let spec = every(1).missed(Missed::All(1000));
    let running = Running::start(organism(&came, spec, seconds(1)), left, Some(now.after(seconds(600))));
    running.kit.advance(seconds(3));
    assert_eq!((came.lock().unwrap().len(), running.look().missed_ticks), (3, 0));
}

#[test]
fn an_operator_pauses_a_schedule_and_runs_it_by_hand() {
    let (came, journal) = (Came::default(), fresh());
    let spec = || every(60).missed(Missed::All(100));
    let running = Running::start(organism(&came, spec(), seconds(1)), journal.clone(), None);
    let act = |running: &Running, act: &str| {
        let act = serde_json::from_value(serde_json::json!({ "act": act, "schedule": "beat" })).unwrap();
        let operator = running.kit.organism().operations("ada".parse().unwrap());
        running.kit.block_on(operator.act(&act)).unwrap().remove(0)
    };
    running.kit.advance(seconds(61));
    assert_eq!(act(&running, "pause-schedule").error, None);
    running.kit.advance(seconds(600));
    assert_eq!(came.lock().unwrap().len(), 1, "none while it is paused");
    let (left, now) = (crash(&journal), running.kit.now());
    drop(running);
    let running = Running::start(organism(&came, spec(), seconds(1)), left, Some(now));
    running.kit.advance(seconds(600));
    assert!(running.look().paused.is_some(), "the pause outlives the process");
    let opened = act(&running, "run-schedule").opened;
    running.kit.advance(seconds(2));
    let look = running.look();
    assert_eq!((look.ticks[0].by_hand, &look.ticks[0].conversation), (true, &opened));
    assert_eq!(came.lock().unwrap().len(), 2);
    act(&running, "resume-schedule");
    running.kit.advance(seconds(61));
    assert_eq!((came.lock().unwrap().len(), running.look().missed_ticks), (3, 0), "what was paused is not made up for");
    let nobody = serde_json::from_value(serde_json::json!({ "act": "run-schedule", "schedule": "none" })).unwrap();
    let operator = running.kit.organism().operations("ada".parse().unwrap());
    let error = running.kit.block_on(operator.act(&nobody)).unwrap_err().to_string();
    assert_eq!(error, "the organism has no schedule 'none'");
}

#[test]
fn without_a_journal_a_schedule_begins_at_the_start() {
    let came = Came::default();
    let kit = Kit::start(organism(&came, every(60), seconds(1))).unwrap();
    let scheduler = kit.block_on(async { Scheduler::start(kit.organism(), |_| AnswersTo::Nobody) }).unwrap();
    kit.advance(seconds(181));
    assert_eq!(came.lock().unwrap().len(), 3);
    scheduler.unwrap().stop();
    kit.advance(seconds(181));
    assert_eq!(came.lock().unwrap().len(), 3, "it has stopped");
}

/// A crash after each number of appends: the tick of the append that fails is sent by the next start, and no tick twice.
#[test]
fn a_crash_at_any_append_neither_loses_a_tick_nor_doubles_it() {
    for appends in 0..24 {
        let (came, journal) = (Came::default(), fresh());
        let spec = || every(10).missed(Missed::All(1000));
        let failing = FailingJournal::new(journal.clone(), appends);
        let running = Running::start(organism(&came, spec(), seconds(3)), failing, None);
        running.kit.advance(seconds(65));
        let now = running.kit.now();
        drop(running);
        let running = Running::start(organism(&came, spec(), seconds(3)), journal.clone(), Some(now));
        running.kit.advance(seconds(60));
        let began = if appends == 0 { 6 } else { 12 };
        let ticks = running.ends();
        assert_eq!(came.lock().unwrap().len(), began, "{appends} appends: {ticks:?}");
        assert_eq!(ticks.len(), began, "{appends} appends: {ticks:?}");
        assert!(ticks.windows(2).all(|pair| pair[0].0 == pair[1].0 + 10), "{appends} appends: {ticks:?}");
    }
}

/// An event in the life of an organism with a schedule.
#[derive(Debug, Clone, Copy)]
enum Happening {
    /// So many seconds go by.
    Runs(u64),
    /// It is killed, and starts again so many seconds later.
    Killed(u64),
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    /// The reference counts: each tick since the first start is sent or missed, once; under `all` each is sent.
    #[test]
    fn each_tick_has_one_end_whenever_the_organism_is_killed(
        happenings in prop::collection::vec(
            prop_oneof![(0_u64..90).prop_map(Happening::Runs), (0_u64..400).prop_map(Happening::Killed)],
            1..14,
        ),
        rule in prop_oneof![Just(Missed::Skip), Just(Missed::Once), (1_u32..4).prop_map(Missed::All), Just(Missed::All(1000))],
        interval in 2_u64..50,
    ) {
        let (came, mut journal) = (Came::default(), fresh());
        let build = || organism(&came, every(interval).missed(rule), seconds(2));
        let mut running = Running::start(build(), journal.clone(), None);
        let start = running.kit.now();
        for happening in happenings {
            match happening {
                Happening::Runs(time) => running.kit.advance(seconds(time)),
                Happening::Killed(time) => {
                    let (left, now) = (crash(&journal), running.kit.now());
                    drop(running);
                    journal = left;
                    running = Running::start(build(), journal.clone(), Some(now.after(seconds(time))));
                }
            }
        }
        running.kit.settle();
        let now = running.kit.now();
        // What is sent waits for a slot.
        running.scheduler.stop();
        running.kit.run_until_idle();
        let second = |time: Time| time.as_nanos() / 1_000_000_000;
        let all = second(now) / interval - second(start) / interval;
        let (sent, missed) = (came.lock().unwrap().len() as u64, running.look().missed_ticks);
        prop_assert_eq!(sent + missed, all);
        if rule == Missed::All(1000) {
            prop_assert_eq!(missed, 0);
        }
    }
}

#[test]
fn answers_that_nobody_reads_hold_no_tick_up() {
    let (came, journal) = (Came::default(), fresh());
    let limited = organism(&came, every(1), Duration::ZERO).limits(Limits::default().egress(2));
    let running = Running::start(limited, journal, None);
    running.kit.advance(seconds(30));
    assert_eq!(came.lock().unwrap().len(), 30);
}
