//! Bounds: calls past them are answered with a fault, and promised answers come.

use systole_core::core::*;
use systole_core::vocab::FaultCode;

use super::harness::*;
use super::payloads::*;

fn faulty_boss() -> Contract {
    boss(|boss| boss.accepts_faults = true)
}

fn started_boss(mut setup: Setup) -> World {
    setup.events = false;
    let mut world = setup.build();
    world.send("alice", letter("ask", 0));
    world.take_started();
    world
}

#[test]
fn a_response_with_too_many_calls_is_refused_whole() {
    let mut world = started_boss(Setup::new(vec![faulty_boss(), worker(|_| {})]));
    world.finish(world.invocation("boss"), (0..257).map(|n| call("ping", n)).collect());
    let message = world.message(world.invocation("boss"));
    assert_eq!((fault_of(message).code, message.join), (FaultCode::Limit, None));
    assert_eq!(world.runs("worker"), 0);
    world.finish(world.invocation("boss"), vec![reply("told", 1)]);
}

#[test]
fn a_full_fan_out_is_fine() {
    let mut world = started_boss(Setup::new(vec![faulty_boss(), worker(|_| {})]));
    world.emits("worker", |message| vec![reply("pong", number_in(message))]);
    world.finish(world.invocation("boss"), (0..256).map(|n| call("ping", n)).collect());
    for _ in 0..255 {
        world.finish(world.invocation("boss"), vec![]);
    }
    assert_eq!(world.take_started().last().unwrap(), "boss <- worker: pong 255 (255/256, 0 left)");
    world.finish(world.invocation("boss"), vec![reply("told", 1)]);
}

#[test]
fn a_thread_at_the_deepest_level_can_not_call() {
    let deep = listener("deep", |deep| {
        deep.accepts = qnames(&["ask"]);
        deep.calls = qnames(&["ask"]);
        deep.replies = qnames(&["told"]);
        deep.returns = qnames(&["told"]);
    });
    let mut world = Setup::new(vec![deep]).build();
    world.emits("deep", |message| vec![call("ask", number_in(message) + 1)]);
    world.send("alice", letter("ask", 1));
    assert_eq!(world.started.last().unwrap(), "deep <- deep: ask 64");
    assert_eq!(world.said(), ["deep: !limit"]);
}

#[test]
fn a_mailbox_bounds_open_calls_and_messages_together() {
    let mut setup = Setup::new(vec![faulty_boss(), worker(|_| {})]);
    setup.blueprint = |blueprint| blueprint.limits.mailbox = 4;
    let mut world = started_boss(setup);
    world.finish(world.invocation("boss"), (0..6).map(|n| call("ping", n)).collect());
    assert_eq!(world.runs("worker"), 4);
    assert_eq!(world.take_started().last().unwrap(), "boss <- system: !limit (4/6, 5 left)");
    for n in 0..4 {
        let invocation = world.invocation_with("worker", n);
        world.finish(invocation, vec![reply("pong", n)]);
    }
    for _ in 0..5 {
        world.finish(world.invocation("boss"), vec![]);
    }
    assert_eq!(
        world.take_started().last().unwrap(),
        "boss <- worker: pong 3 (3/6, 0 left)",
        "answers have their place"
    );
    world.finish(world.invocation("boss"), vec![reply("told", 1)]);
}

#[test]
fn a_pending_continue_holds_a_place_in_the_mailbox() {
    let mut setup = Setup::new(vec![faulty_boss(), worker(|_| {})]);
    setup.blueprint = |blueprint| blueprint.limits.mailbox = 2;
    let mut world = started_boss(setup);
    let go_on = || emission(EmissionKind::Continue { after: secs(5) }, &xml("tick", 1));
    world.finish(world.invocation("boss"), vec![go_on(), go_on(), go_on(), call("ping", 1)]);
    let refused: Vec<_> = world.take_started();
    assert_eq!(refused, ["boss <- system: !limit"], "and the call's comes after it");
    world.finish(world.invocation("boss"), vec![reply("told", 1)]);
}

#[test]
fn a_root_has_a_mailbox_too() {
    let mut setup = Setup::new(vec![server("slow", &["ask"], &["told"])]);
    setup.blueprint = |blueprint| blueprint.limits.mailbox = 2;
    let mut world = setup.build();
    let root = world.send("alice", letter("ask", 0));
    for n in 1..4 {
        world.send("alice", letter("ask", n).thread(root));
    }
    assert_eq!((world.runs("slow"), world.said()), (2, vec!["system: !limit".to_owned(); 2]));
    for n in 0..2 {
        let invocation = world.invocation_with("slow", n);
        world.finish(invocation, vec![reply("told", n)]);
    }
}

#[test]
fn a_conversation_has_a_number_of_live_threads() {
    let mut setup = Setup::new(vec![faulty_boss(), worker(|_| {})]);
    setup.blueprint = |blueprint| blueprint.limits.conversation_threads = 5;
    let mut world = started_boss(setup);
    world.emits("worker", |message| vec![reply("pong", number_in(message))]);
    world.finish(world.invocation("boss"), (0..3).map(|n| call("ping", n)).collect());
    for _ in 0..2 {
        world.finish(world.invocation("boss"), vec![]);
    }
    world.take_started();
    world.finish(world.invocation("boss"), vec![call("ping", 9)]);
    assert_eq!(world.take_started(), ["worker <- boss: ping 9", "boss <- worker: pong 9"], "closed ones don't count");
    world.finish(world.invocation("boss"), (0..5).map(|n| call("ping", n)).collect());
    assert_eq!(world.take_started(), [""; 0], "whoever goes past it fails, and opens nothing more");
    assert_eq!(world.said(), ["boss: !limit"]);
}

#[test]
fn the_organism_has_a_number_of_live_threads_over_all_shards() {
    let mut setup = Setup::new(vec![server("slow", &["ask"], &["told"])]);
    setup.blueprint = |blueprint| blueprint.limits.threads = 5;
    setup.shards = 2;
    let mut world = setup.build();
    for n in 0..4 {
        world.send("alice", letter("ask", n).at(n as usize % 2));
    }
    assert_eq!((world.runs("slow"), world.directory.threads()), (2, 5), "two roots with a child, one without");
    assert_eq!(world.said(), ["system: !limit"; 2]);
    assert_eq!(world.closed.len(), 1, "the last could not even open");
    for n in 0..2 {
        let invocation = world.invocation_with("slow", n);
        world.finish(invocation, vec![reply("told", n)]);
    }
}

#[test]
fn while_overloaded_calls_are_refused_but_answers_are_delivered() {
    let mut setup = Setup::new(vec![faulty_boss(), worker(|_| {})]);
    setup.gauge = (2, 1 << 20);
    let mut world = started_boss(setup);
    world.finish(world.invocation("boss"), vec![call("ping", 0)]);
    let _full = [world.gauge.count(0), world.gauge.count(0)];
    world.send_refused("alice");
    let invocation = world.invocation_with("worker", 0);
    world.finish(invocation, vec![reply("pong", 0)]);
    world.finish(world.invocation("boss"), vec![call("ping", 1)]);
    let fault = fault_of(world.message(world.invocation("boss")));
    assert_eq!((fault.code, fault.retryable), (FaultCode::Overload, true));
    world.finish(world.invocation("boss"), vec![reply("told", 1)]);
    assert_eq!(world.said(), ["boss: told 1"]);
}

impl World {
    fn send_refused(&mut self, client: &str) {
        let bytes = letter("ask", 9).bytes();
        assert!(self.gauge.admit(bytes.len()).is_err(), "{client} is refused at the edge");
    }
}

#[test]
fn bytes_that_wait_are_bounded_too() {
    let mut setup = Setup::new(vec![server("slow", &["ask"], &["told"])]);
    setup.gauge = (100, 1000);
    let world = setup.build();
    let first = world.gauge.admit(900).unwrap();
    assert!(world.gauge.admit(101).is_err());
    drop(first);
    assert!(world.gauge.admit(101).is_ok());
}

#[test]
fn a_permit_is_held_until_the_message_is_handled() {
    let mut world = Setup::new(vec![server("slow", &["ask"], &["told"]).concurrency(1)]).build();
    for n in 0..3 {
        world.send("alice", letter("ask", n));
    }
    assert_eq!(world.gauge.messages(), 2);
    for n in 0..3 {
        let invocation = world.invocation_with("slow", n);
        world.finish(invocation, vec![reply("told", n)]);
    }
    assert_eq!((world.gauge.messages(), world.gauge.bytes()), (0, 0));
}

/// A letter in the reserve for questions to the core.
fn through_the_reserve(world: &mut World, client: &str, letter: &Letter) {
    let bytes = letter.bytes();
    let permit = world.gauge.admit_core(bytes.len()).expect("the reserve is free");
    world.post_with(client, bytes, letter, permit);
    world.run();
}

#[test]
fn the_core_answers_through_its_reserve_while_the_organism_is_overloaded() {
    let mut setup = Setup::new(vec![server("echo", &["ask"], &["told"])]);
    setup.gauge = (0, 0);
    let mut world = setup.build();
    assert!(world.gauge.admit(1).is_err());
    let question = format!("<list-capabilities xmlns=\"{}\"/>", systole_core::vocab::ns::META);
    through_the_reserve(&mut world, "alice", &letter_xml(&question));
    through_the_reserve(&mut world, "alice", &letter("ask", 1));
    assert_eq!(world.said(), ["core: capabilities", "system: !overload"]);
    assert_eq!(world.runs("echo"), 0);
}

#[test]
fn the_reserve_is_rate_limited_per_client() {
    let mut setup = Setup::new(vec![server("echo", &["ask"], &["told"])]);
    setup.gauge = (0, 0);
    let mut world = setup.build();
    let question = letter_xml(&format!("<list-capabilities xmlns=\"{}\"/>", systole_core::vocab::ns::META));
    for _ in 0..20 {
        through_the_reserve(&mut world, "alice", &question);
    }
    through_the_reserve(&mut world, "bob", &question);
    let said = world.said();
    assert_eq!(said.iter().filter(|line| line.contains("overload")).count(), 4);
    assert_eq!(said.last().unwrap(), "core: capabilities");
    world.sleep(secs(1));
    through_the_reserve(&mut world, "alice", &question);
    assert_eq!(world.said(), ["core: capabilities"]);
}

#[test]
fn a_call_that_is_refused_for_want_of_room_again_and_again_ends_its_thread() {
    let mut world = Setup::new(vec![boss(|boss| boss.accepts_faults = true), worker(|_| {})])
        .build_with(|blueprint| blueprint.limits.thread_depth = 1);
    world.send("alice", letter("ask", 0));
    for _ in 0..3 {
        assert_eq!(world.said(), Vec::<String>::new());
        world.finish(world.invocation("boss"), vec![call("ping", 1)]);
    }
    assert_eq!(world.said(), ["boss: !failed"]);
}
