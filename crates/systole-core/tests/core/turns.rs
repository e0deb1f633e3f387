//! The order of dispatch: the run queue, the slots, and precedence.

use systole_core::core::*;

use super::harness::*;
use super::payloads::*;

fn one_slot(name: &str) -> Contract {
    listener(name, |contract| {
        contract.accepts = qnames(&["ask", "tick"]);
        contract.replies = qnames(&["told"]);
        contract.concurrency = 1;
    })
}

#[test]
fn slots_are_given_first_come_first_served() {
    let mut world = Setup::new(vec![one_slot("echo")]).build();
    world.emits("echo", |message| vec![reply("told", number_in(message))]);
    for n in 0..10 {
        world.post("alice", letter("ask", n));
    }
    world.run();
    let order: Vec<_> = (0..10).map(|n| format!("echo <- alice: ask {n}")).collect();
    assert_eq!(world.started, order);
}

#[test]
fn no_listener_runs_more_handlers_than_it_has_slots() {
    let mut world = Setup::new(vec![server("echo", &["ask"], &["told"]).concurrency(3)]).build();
    for n in 0..10 {
        world.send("alice", letter("ask", n));
    }
    for n in 0..10 {
        assert_eq!(world.runs("echo"), 3.min(10 - n as usize));
        let invocation = world.invocation_with("echo", n);
        world.finish(invocation, vec![reply("told", n)]);
    }
}

#[test]
fn a_full_listener_does_not_hold_up_another() {
    let mut world = Setup::new(vec![one_slot("slow"), server("fast", &["ping"], &["pong"])]).build();
    world.emits("fast", |_| vec![reply("pong", 1)]);
    for n in 0..5 {
        world.post("alice", letter("ask", n));
    }
    world.post("alice", letter("ping", 1));
    world.run();
    assert_eq!(world.said(), ["fast: pong 1"]);
    for n in 0..5 {
        let invocation = world.invocation_with("slow", n);
        world.finish(invocation, vec![reply("told", n)]);
    }
}

/// Three bosses, in one conversation or in three, work on an answer each, and two more wait for each; the order in
/// which those are dispatched once the bosses are done.
fn queued_answers(depth_first: bool, together: bool) -> Vec<String> {
    let mut setup = Setup::new(vec![boss(|_| {}), worker(|_| {})]);
    if depth_first {
        setup.blueprint = |blueprint| blueprint.scheduling = Scheduling::DepthFirst;
    }
    let mut world = setup.build();
    world.emits("worker", |message| vec![reply("pong", number_in(message))]);
    let mut conversation = None;
    for n in 0..3 {
        let ask = letter("ask", n);
        let root = world.send("alice", conversation.filter(|_| together).map_or(ask.clone(), |root| ask.thread(root)));
        conversation.get_or_insert(root);
        let invocation = world.invocation_with("boss", n);
        world.finish(invocation, (0..3).map(|answer| call("ping", 10 * answer + n)).collect());
    }
    world.take_started();
    for invocation in world.running.iter().map(|running| running.invocation).collect::<Vec<_>>() {
        world.end(invocation, HandlerOutcome::Emitted(vec![]));
    }
    world.emits("boss", |message| match message.join {
        Some(JoinPosition { remaining: 0, .. }) => vec![reply("told", 0)],
        _ => vec![],
    });
    world.run();
    let order = world.take_started();
    order.iter().map(|line| line.split(' ').nth(4).unwrap().to_owned()).collect()
}

#[test]
fn breadth_first_takes_one_message_of_each_thread_in_turn() {
    assert_eq!(queued_answers(false, false), ["10", "11", "12", "20", "21", "22"]);
    assert_eq!(queued_answers(false, true), ["10", "11", "12", "20", "21", "22"]);
}

#[test]
fn depth_first_takes_the_newest_thread_of_each_conversation_in_turn() {
    assert_eq!(queued_answers(true, true), ["12", "2", "11", "1", "10", "0"], "also among the workers");
    assert_eq!(queued_answers(true, false), ["10", "11", "12", "0", "1", "2"]);
}

/// Ten threads of `crowd` are at work, each with an answer in its mailbox.
fn crowd_of(listeners: Vec<Contract>) -> World {
    let crowd = listener("crowd", |crowd| {
        crowd.accepts = qnames(&["note"]);
        crowd.calls = qnames(&["q0"]);
        crowd.returns = qnames(&["a0"]);
        crowd.silence = Silence::Idle;
    });
    let mut setup = Setup::new([listeners, vec![crowd, server("echo", &["q0"], &["a0"])]].concat());
    setup.events = false;
    let mut world = setup.build();
    world.emits("echo", |_| vec![reply("a0", 0)]);
    for n in 1..11 {
        world.send("alice", letter("note", n));
        let invocation = world.invocation_with("crowd", n);
        world.finish(invocation, vec![call("q0", 0), call("q0", 0)]);
    }
    world
}

/// Ends the crowd with the first answer, so that all of them stand in the run queue with the second.
fn crowd_the_ring(world: &mut World) {
    let crowd = world.running.iter().filter(|running| running.listener == "crowd");
    for invocation in crowd.map(|running| running.invocation).collect::<Vec<_>>() {
        world.end(invocation, HandlerOutcome::Emitted(vec![]));
    }
    world.emits("crowd", |_| vec![]);
    world.take_started();
}

#[test]
fn a_thread_that_lost_its_place_takes_a_new_one_at_the_tail() {
    let owner = boss(|boss| boss.returns.push(meta_qname("thread-spawned")));
    let mut world = crowd_of(vec![owner, worker(|_| {}), server("other", &["job"], &["done"])]);
    world.send("alice", letter("ask", 0));
    let boss = world.invocation("boss");
    let id = world.spawn_on(boss);
    crowd_the_ring(&mut world);
    let ask = |world: &mut World, group, request| {
        let requests = vec![request];
        world.handle(
            0,
            Input::Called { invocation: boss.id, call: CallId(group), requests, join: Join::Settled, within: None },
        );
    };
    ask(&mut world, 11, on(id, call("ping", 1)));
    ask(&mut world, 12, on(id, call("ping", 2)));
    ask(&mut world, 13, call("job", 3));
    // The entrance queue and the run queue take turns: then both callees stand behind what is left of the crowd.
    for _ in 0..4 {
        assert!(world.step(0));
    }
    world.handle(0, Input::CallDropped { invocation: boss.id, call: CallId(11) });
    world.run();
    let order = world.take_started();
    assert_eq!(order.len(), 10 + 2);
    assert_eq!(order[10..], ["other <- boss: job 3", "worker <- boss: ping 2"]);
    for (name, emission) in [("worker", reply("pong", 2)), ("other", reply("done", 3))] {
        let invocation = world.invocation(name);
        world.finish(invocation, vec![emission]);
    }
    world.finish(boss, vec![reply("told", 1)]);
}

#[test]
fn the_next_message_waits_until_what_was_said_to_the_last_is_judged() {
    let mut world = Setup::new(vec![boss(|_| {}), worker(|_| {})]).build();
    world.send("alice", letter("ask", 0));
    world.finish(world.invocation("boss"), vec![call("ping", 0), call("ping", 1)]);
    let invocation = world.invocation_with("worker", 0);
    world.finish(invocation, vec![reply("pong", 0)]);
    world.take_started();
    // The second answer comes to the mailbox while the boss's own answer is on the entrance queue.
    world.end(world.invocation("worker"), HandlerOutcome::Emitted(vec![reply("pong", 1)]));
    world.end(world.invocation("boss"), HandlerOutcome::Emitted(vec![reply("told", 1)]));
    world.run();
    assert_eq!((world.take_started(), world.said()), (vec![], vec!["boss: told 1".to_owned()]));
}

#[test]
fn queue_1_and_the_ring_take_turns() {
    let mut setup = Setup::new(vec![server("echo", &["ask"], &["told"])]);
    setup.events = false;
    let mut world = setup.build();
    world.emits("echo", |message| vec![reply("told", number_in(message))]);
    for n in 0..100 {
        world.post("alice", letter("ask", n));
    }
    assert!(world.step(0));
    assert_eq!(world.started, ["echo <- alice: ask 0"]);
    assert!(world.cores[0].waiting() > 90, "the first handler starts before the last message is read");
    world.run();
}
