//! Threads that call again and again: `turns` and `repeats` bound what owes an answer, and nothing else.

use std::time::Duration;

use systole_core::core::*;

use super::harness::*;
use super::payloads::*;

/// A boss that gets what it is told, and a worker that answers each ping; `change` is made to the limits of the default.
fn world(faults: bool, turns: u32, repeats: u32) -> World {
    let setup = Setup::new(vec![boss(|boss| boss.accepts_faults = faults), worker(|_| {})]);
    setup.build_with(|blueprint| {
        blueprint.limits.turns = turns;
        blueprint.limits.repeats = repeats;
    })
}

/// Lets the boss make a call, and the worker answer it, where the call was not refused.
fn round(world: &mut World, ping: i64, pong: i64) {
    world.finish(world.invocation("boss"), vec![call("ping", ping)]);
    if world.runs("worker") > 0 {
        world.finish(world.invocation("worker"), vec![reply("pong", pong)]);
    }
}

#[test]
fn the_same_call_with_the_same_answer_is_refused() {
    for pongs in [[7, 7, 7, 7, 7], [1, 7, 7, 7, 7]] {
        let mut world = world(true, 1000, 3);
        world.send("alice", letter("ask", 0));
        for pong in &pongs[..4] {
            round(&mut world, 5, *pong);
            assert!(!describe(world.message(world.invocation("boss"))).contains('!'));
        }
        round(&mut world, 5, pongs[4]);
        let fault = fault_of(world.message(world.invocation("boss")));
        assert_eq!(&*fault.message, "the same call got the same answer 3 times, and nothing new came between");
        assert!(fault.rule.as_ref().unwrap().rule.contains("repeats: 3"), "{fault:?}");
        // Another call is taken.
        round(&mut world, 6, 7);
        assert!(!describe(world.message(world.invocation("boss"))).contains('!'));
        world.finish(world.invocation("boss"), vec![reply("told", 1)]);
        assert_eq!(world.said(), ["boss: told 1"]);
    }
}

#[test]
fn white_space_makes_no_other_call() {
    let spaced = [">5<", "> 5<", ">5\n   <", "  >\t5 <", ">5   <"].map(|five| xml("ping", 5).replace(">5<", five));
    let mut world = world(true, 1000, 3);
    world.send("alice", letter("ask", 0));
    for text in spaced {
        assert!(!describe(world.message(world.invocation("boss"))).contains('!'), "{text}");
        world.finish(world.invocation("boss"), vec![call_xml(&text)]);
        if world.runs("worker") > 0 {
            world.finish(world.invocation("worker"), vec![reply("pong", 7)]);
        }
    }
    let fault = fault_of(world.message(world.invocation("boss")));
    assert!(fault.message.contains("3 times"), "{fault:?}");
    world.finish(world.invocation("boss"), vec![reply("told", 1)]);
    assert_eq!(world.said(), ["boss: told 1"]);
}

#[test]
fn calls_that_turn_in_a_circle_are_refused() {
    for length in [2, 3, 5, 16] {
        let mut world = world(true, 1000, 3);
        world.send("alice", letter("ask", 0));
        // The first round has no place among those that are counted, and each call comes three times.
        for n in 0..=3 * length {
            round(&mut world, n % length, 7);
            assert!(!describe(world.message(world.invocation("boss"))).contains('!'), "{n} of {length}");
        }
        // The circle goes on: each of its calls is refused, and one that is new is taken.
        for next in [1, 2] {
            round(&mut world, next % length, 7);
            let fault = fault_of(world.message(world.invocation("boss")));
            assert!(fault.message.contains("3 times"), "{length}: {fault:?}");
        }
        round(&mut world, 99, 7);
        assert!(!describe(world.message(world.invocation("boss"))).contains('!'));
        round(&mut world, 1, 7);
        assert!(!describe(world.message(world.invocation("boss"))).contains('!'), "they are counted anew");
        world.finish(world.invocation("boss"), vec![reply("told", 1)]);
        assert_eq!(world.said(), ["boss: told 1"]);
    }
}

#[test]
fn a_call_between_others_that_make_progress_is_no_loop() {
    let mut world = world(false, 1000, 3);
    world.send("alice", letter("ask", 0));
    for n in 0..20 {
        // A test that fails between changes, and a counter that is raised and read.
        for (ping, pong) in [(100 + n, 1), (1, 0), (2, 0), (3, n)] {
            round(&mut world, ping, pong);
            assert!(world.said().is_empty(), "{n}: {:?}", world.said());
        }
    }
    world.finish(world.invocation("boss"), vec![reply("told", 1)]);
    assert_eq!(world.said(), ["boss: told 1"]);
}

#[test]
fn a_listener_that_can_not_learn_it_ends_with_the_reason() {
    let mut world = world(true, 1000, 3);
    world.send("alice", letter("ask", 0));
    for _ in 0..7 {
        round(&mut world, 5, 7);
    }
    let fault = world.egress[0].fault.clone().unwrap();
    let told = "a listener gave 3 responses in a row without a valid payload; the last was refused: the same call got the \
                same answer 3 times, and nothing new came between";
    assert_eq!(&*fault.message, told);

    let mut world = self::world(false, 1000, 3);
    world.send("alice", letter("ask", 0));
    for _ in 0..5 {
        round(&mut world, 5, 7);
    }
    let fault = world.egress[0].fault.clone().unwrap();
    assert_eq!(&*fault.message, "the same call got the same answer 3 times, and nothing new came between");
}

#[test]
fn faults_are_answers_and_what_changes_is_no_loop() {
    let mut world = world(true, 1000, 3);
    world.send("alice", letter("ask", 0));
    for _ in 0..4 {
        world.finish(world.invocation("boss"), vec![call("ping", 1)]);
        world.fail(world.invocation("worker"), "no luck");
    }
    world.finish(world.invocation("boss"), vec![call("ping", 1)]);
    assert!(fault_of(world.message(world.invocation("boss"))).message.contains("3 times, and nothing new"));
    world.finish(world.invocation("boss"), vec![reply("told", 1)]);

    let mut world = self::world(false, 1000, 3);
    world.send("alice", letter("ask", 0));
    for n in 0..20 {
        // The calls, or the answers, or both differ from round to round.
        round(&mut world, n / 3, n % 3);
        assert!(world.said().is_empty());
    }
    world.finish(world.invocation("boss"), vec![reply("told", 1)]);
}

#[test]
fn a_request_takes_so_many_turns() {
    let mut world = world(false, 5, u32::MAX);
    for _ in 0..2 {
        world.send("alice", letter("ask", 0));
        for n in 0..5 {
            round(&mut world, n, n);
            assert!(world.said().is_empty());
        }
        round(&mut world, 9, 9);
        let fault = world.egress.last().unwrap().fault.clone().unwrap();
        assert_eq!(&*fault.message, "a listener has called in 5 turns of one request, and not answered it");
        assert_eq!(world.said(), ["boss: !limit"]);
    }
}

#[test]
fn what_goes_on_by_itself_is_not_bound() {
    let mut world = world(false, 2, 2);
    world.send("alice", letter("ask", 0));
    for _ in 0..20 {
        round(&mut world, 1, 1);
        let tick = emission(EmissionKind::Continue { after: Duration::ZERO }, &xml("tick", 1));
        world.finish(world.invocation("boss"), vec![tick]);
    }
    world.finish(world.invocation("boss"), vec![reply("told", 2)]);
    assert_eq!(world.said(), ["boss: told 2"]);
}

#[test]
fn a_thread_of_boot_owes_nothing_and_is_not_bound() {
    let scheduler = boss(|boss| {
        boss.accepts.push(core_qname("boot"));
        boss.replies.clear();
    });
    let mut world = Setup::new(vec![scheduler, worker(|_| {})]).build_with(|blueprint| {
        blueprint.limits.turns = 2;
        blueprint.limits.repeats = 2;
    });
    let root = world.fresh_root();
    world.handle(0, Input::Boot { root });
    world.run();
    for _ in 0..20 {
        round(&mut world, 1, 1);
    }
    assert_eq!(world.runs("boss"), 1, "it goes on");
    world.finish(world.invocation("boss"), Vec::new());
}
