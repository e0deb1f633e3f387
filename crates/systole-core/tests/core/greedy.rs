//! Listeners that ask for more than they may have: the messages that the pump makes for them are bounded too, and no
//! other listener waits for them.

use proptest::prelude::*;
use systole_core::core::*;

use super::harness::*;
use super::model::cases;
use super::payloads::*;

/// A listener that takes everything that comes back, and may call itself.
fn greedy(change: impl FnOnce(&mut Contract)) -> Contract {
    listener("greedy", |greedy| {
        greedy.accepts = qnames(&["ask"]);
        greedy.replies = qnames(&["told"]);
        greedy.calls = qnames(&["ask"]);
        greedy.returns = qnames(&["told"]);
        greedy.returns.push(meta_qname("capabilities"));
        greedy.accepts_faults = true;
        change(greedy);
    })
}

/// Runs so many steps, with at most `bound` messages that wait. Returns whether everything came to an end.
fn run_within(world: &mut World, steps: usize, bound: u64) -> bool {
    for _ in 0..steps {
        if !world.step(0) {
            return true;
        }
        world.started.clear();
        let waiting = world.cores[0].waiting();
        assert!(waiting <= bound, "{waiting} messages wait, {bound} may");
    }
    false
}

/// Checks the bound on messages that wait when `greedy` answers each message, faults too, by so many calls of itself.
fn calls_itself(times: usize, change: fn(&mut Blueprint), gauge: (usize, usize), bound: u64) -> World {
    let mut setup = Setup::new(vec![greedy(|_| {})]);
    (setup.events, setup.blueprint, setup.gauge) = (false, change, gauge);
    let mut world = setup.build();
    world.emits("greedy", move |_| (0..times as i64).map(|n| call("ask", n)).collect());
    world.strict = false;
    world.post("alice", letter("ask", 0));
    run_within(&mut world, 3_000, bound);
    world
}

const ROOMY: (usize, usize) = (65_536, 256 << 20);

#[test]
fn whoever_calls_itself_on_each_fault_holds_no_more_than_its_conversation_may() {
    let attacked: fn(&mut Blueprint) = |blueprint| {
        blueprint.limits.conversation_threads = 10;
        blueprint.limits.mailbox = 100;
        blueprint.limits.queue = 1000;
    };
    for times in [1, 2, 256] {
        let mut world = calls_itself(times, attacked, (1000, 256 << 20), 110);
        // One call at a time makes a loop of failures that hold little.
        assert_eq!(world.said(), vec!["greedy: !limit".to_owned(); usize::from(times > 1)], "{times} calls");
    }
}

/// A change of the blueprint, the bounds of the gauge, and the number of messages that may wait then.
type Bound = (fn(&mut Blueprint), (usize, usize), u64);

#[test]
fn each_bound_that_refuses_calls_bounds_the_faults_that_say_so() {
    let bounds: [Bound; 5] = [
        (|blueprint| blueprint.limits.thread_depth = 1, ROOMY, 1024 + 256),
        (|blueprint| blueprint.limits.mailbox = 100, ROOMY, 16_384 + 10_000),
        (|blueprint| blueprint.limits.conversation_messages = 300, ROOMY, 300 + 300),
        (|blueprint| blueprint.limits.threads = 3, ROOMY, 3 * (1024 + 256)),
        (|_| {}, (1000, 256 << 20), 2 * 1000 + 1000),
    ];
    for (at, (change, gauge, bound)) in bounds.into_iter().enumerate() {
        for times in [2, 256] {
            println!("bound {at}, {times} calls");
            calls_itself(times, change, gauge, bound);
        }
    }
}

#[test]
fn answers_of_the_core_are_bounded_like_those_of_listeners() {
    let mut setup = Setup::new(vec![greedy(|_| {})]);
    setup.events = false;
    let mut world = setup.build();
    let question = format!("<list-capabilities xmlns=\"{}\"/>", systole_core::vocab::ns::META);
    world.emits("greedy", move |_| (0..256).map(|_| call_xml(&question)).collect());
    world.post("alice", letter("ask", 0));
    assert!(run_within(&mut world, 5_000, 1024 + 256), "it goes on");
    assert_eq!(world.said(), ["greedy: !limit"]);
}

/// A listener whose responses each make 256 calls of itself, beside one of another conversation that answers at once.
fn fan_out_bomb(takes_faults: bool) {
    let bomb = greedy(|greedy| greedy.accepts_faults = takes_faults);
    let mut setup = Setup::new(vec![bomb, server("echo", &["ping"], &["pong"])]);
    (setup.events, setup.gauge) = (false, ROOMY);
    let mut world = setup.build();
    world.strict = false;
    world.emits("greedy", |_| (0..256).map(|n| call("ask", n)).collect());
    world.emits("echo", |message| vec![reply("pong", number_in(message))]);
    world.post("alice", letter("ask", 0));
    for n in 0..3 {
        run_within(&mut world, 250, 16_384 + 10_000);
        world.post("bob", letter("ping", n));
        // One response of the bomb may stand before it on the entrance queue for each slot, and one turn in the run queue.
        run_within(&mut world, 3 * 64, 16_384 + 10_000);
        assert!(world.said().contains(&format!("echo: pong {n}")), "bob waits for {n}");
    }
}

#[test]
fn a_fan_out_bomb_stays_within_its_conversation_and_delays_nobody() {
    fan_out_bomb(false);
}

#[test]
fn a_fan_out_bomb_that_takes_its_faults_stays_within_its_conversation_and_delays_nobody() {
    fan_out_bomb(true);
}

#[test]
fn bytes_that_a_conversation_holds_are_bounded_and_so_are_replies() {
    let mut setup = Setup::new(vec![boss(|boss| boss.accepts_faults = true), worker(|_| {})]);
    setup.blueprint = |blueprint| blueprint.limits.conversation_bytes = 200;
    setup.events = false;
    let mut world = setup.build();
    world.send("alice", letter("ask", 0));
    world.finish(world.invocation("boss"), (0..3).map(|n| call("ping", n)).collect());
    for n in 0..3 {
        let invocation = world.invocation_with("worker", n);
        world.finish(invocation, vec![reply("pong", 1_000_000_000_000_000 + n)]);
    }
    let mut outcomes = Vec::new();
    for _ in 0..3 {
        let invocation = world.invocation("boss");
        outcomes.push(describe(world.message(invocation)));
        world.finish(invocation, if outcomes.len() < 3 { vec![] } else { vec![reply("told", 1)] });
    }
    assert!(outcomes[0].starts_with("pong"), "{outcomes:?}");
    assert_eq!(world.said(), ["boss: told 1"]);
}

#[test]
fn a_client_is_told_that_its_conversation_is_full() {
    let slow = server("slow", &["ask"], &["told"]).concurrency(1);
    let mut setup = Setup::new(vec![slow]);
    setup.blueprint = |blueprint| blueprint.limits.conversation_messages = 3;
    let mut world = setup.build();
    let root = world.send("alice", letter("ask", 0));
    for n in 1..6 {
        world.send("alice", letter("ask", n).thread(root));
    }
    assert_eq!(world.said(), vec!["system: !limit".to_owned(); 2], "one runs, three wait");
    for n in 0..4 {
        let invocation = world.invocation_with("slow", n);
        world.finish(invocation, vec![reply("told", n)]);
    }
}

#[test]
fn a_loop_that_holds_little_goes_on() {
    let mut setup = Setup::new(vec![greedy(|greedy| greedy.accepts.push(qname("tick")))]);
    setup.blueprint = |blueprint| {
        blueprint.limits.conversation_messages = 1;
        blueprint.limits.mailbox = 1;
        blueprint.limits.conversation_bytes = 1;
    };
    setup.events = false;
    let mut world = setup.build();
    world.strict = false;
    let after = std::time::Duration::ZERO;
    world.emits("greedy", move |_| vec![emission(EmissionKind::Continue { after }, &xml("tick", 1))]);
    world.post("alice", letter("ask", 0));
    assert!(!run_within(&mut world, 10_000, 1), "it ended");
    assert_eq!(world.said(), [""; 0]);
}

#[test]
fn awaited_answers_are_bounded_until_they_are_handed_over() {
    let mut setup = Setup::new(vec![greedy(|_| {})]);
    setup.blueprint = |blueprint| blueprint.limits.conversation_messages = 100;
    setup.events = false;
    let mut world = setup.build();
    world.send("alice", letter("ask", 0));
    let invocation = world.invocation("greedy");
    let question = format!("<list-capabilities xmlns=\"{}\"/>", systole_core::vocab::ns::META);
    for call in 0..4 {
        let requests = (0..256).map(|_| call_xml(&question)).collect();
        world.handle(
            0,
            Input::Called {
                invocation: invocation.id,
                call: CallId(call),
                requests,
                join: Join::Settled,
                within: None,
            },
        );
    }
    world.run();
    assert_eq!(world.said(), ["greedy: !limit"]);
    assert_eq!(world.aborted, [invocation]);
}

#[test]
fn groups_of_calls_that_wait_to_be_judged_are_bounded() {
    let mut setup = Setup::new(vec![greedy(|_| {})]);
    setup.blueprint = |blueprint| (blueprint.limits.mailbox, blueprint.limits.fanout) = (4, 4);
    let mut world = setup.build();
    world.send("alice", letter("ask", 0));
    let invocation = world.invocation("greedy");
    for call in 0..9 {
        let requests = vec![emission(EmissionKind::Call, &xml("ask", 1))];
        world.handle(
            0,
            Input::Called { invocation: invocation.id, call: CallId(call), requests, join: Join::All, within: None },
        );
    }
    world.run();
    assert_eq!(world.said(), ["greedy: !limit"]);
}

/// The habits of greedy listeners in one run, with their bounds.
#[derive(Debug, Clone)]
struct Greed {
    /// The answers to messages, by turns: so many calls of itself, questions to the core, continues.
    habits: Vec<(u8, u8, u8)>,
    conversations: u8,
    bounds: (usize, usize, usize, usize),
    bytes: usize,
    takes_faults: bool,
    slots: u32,
    depth_first: bool,
}

fn greeds() -> impl Strategy<Value = Greed> {
    let habits = prop::collection::vec((0..9u8, 0..9u8, 0..3u8), 1..8);
    let bounds = (2usize..12, 2usize..40, 2usize..60, 9usize..20);
    let flags = (any::<bool>(), prop_oneof![Just(1u32), Just(3), Just(64)], any::<bool>());
    (habits, 1..6u8, bounds, 100usize..4000, flags).prop_map(|(habits, conversations, bounds, bytes, flags)| {
        let (takes_faults, slots, depth_first) = flags;
        Greed { habits, conversations, bounds, bytes, takes_faults, slots, depth_first }
    })
}

fn greedy_world(greed: &Greed) -> World {
    let mut bold = greedy(|bold| {
        bold.accepts.push(qname("tick"));
        (bold.accepts_faults, bold.concurrency) = (greed.takes_faults, greed.slots);
    });
    bold.silence = Silence::Idle;
    let lone = listener("lone", |lone| {
        (lone.accepts, lone.replies, lone.concurrency) = (qnames(&["ping"]), qnames(&["pong"]), 1000);
    });
    let (mailbox, threads, messages, fanout) = greed.bounds;
    let (bytes, depth_first) = (greed.bytes, greed.depth_first);
    let mut world = Setup::new(vec![bold, lone]).build_with(move |blueprint| {
        let limits = &mut blueprint.limits;
        (limits.mailbox, limits.conversation_threads, limits.conversation_messages) = (mailbox, threads, messages);
        (limits.fanout, limits.conversation_bytes) = (fanout, bytes);
        if depth_first {
            blueprint.scheduling = Scheduling::DepthFirst;
        }
    });
    let (habits, mut turn) = (greed.habits.clone(), 0);
    let question = format!("<list-capabilities xmlns=\"{}\"/>", systole_core::vocab::ns::META);
    world.emits("greedy", move |_| {
        turn += 1;
        let (calls, questions, continues) = habits[turn % habits.len()];
        let after = std::time::Duration::ZERO;
        let calls = (0..calls).map(|n| call("ask", n.into()));
        let questions = (0..questions).map(|_| call_xml(&question));
        let continues = (0..continues).map(|_| emission(EmissionKind::Continue { after }, &xml("tick", 1)));
        calls.chain(questions).chain(continues).collect()
    });
    world.emits("lone", |message| vec![reply("pong", number_in(message))]);
    world.strict = false;
    world
}

/// Checks that no thread and no conversation holds more than it may.
fn check_holdings(world: &World, greed: &Greed) -> Result<(), TestCaseError> {
    /// More than any message that listeners and the core send here.
    const MESSAGE: usize = 1000;
    let (mailbox, threads, messages, fanout) = greed.bounds;
    for held in world.cores[0].holdings() {
        prop_assert!(held.threads <= threads, "{held:?}");
        prop_assert!(held.messages <= messages + threads, "{held:?}");
        prop_assert!(held.bytes <= greed.bytes + MESSAGE + threads * 200, "{held:?}");
    }
    for thread in world.cores[0].snapshot().threads {
        prop_assert!(thread.queued <= mailbox + fanout, "{thread:?}");
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(cases() / 4) })]

    #[test]
    fn whatever_greedy_listeners_do_they_hold_what_they_may_and_nobody_waits_for_them(greed in greeds()) {
        // Steps in which all that stands before a message on the entrance queue has its turn: 401 were seen.
        const ENOUGH: i64 = 700;
        let mut world = greedy_world(&greed);
        for n in 0..greed.conversations {
            world.post("alice", letter("ask", n.into()));
        }
        // Starts since the lone thread could be dispatched, and how many conversations there were then.
        let mut waits: Option<(usize, usize)> = None;
        let mut sent = 0;
        for step in 0..4 * ENOUGH {
            if step % ENOUGH == 0 {
                let said = world.said();
                prop_assert_eq!(said.iter().filter(|line| line.starts_with("lone: pong")).count(), sent, "{:?}", said);
                sent = 1;
                world.post("bob", letter("ping", step));
            }
            world.step(0);
            check_holdings(&world, &greed)?;
            for event in std::mem::take(&mut world.events) {
                if matches!(event.kind, EventKind::Opened { .. }) && event.path.to_string().contains("lone") {
                    waits = Some((0, world.cores[0].holdings().len()));
                }
            }
            for line in world.take_started() {
                if line.starts_with("lone") {
                    waits = None;
                } else if let Some((gone, conversations)) = &mut waits {
                    *gone += 1;
                    prop_assert!(*gone <= *conversations, "{gone} of {conversations} conversations went before");
                }
            }
        }
    }
}
