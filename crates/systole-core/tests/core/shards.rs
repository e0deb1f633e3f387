//! Several shards: conversations that continue elsewhere, slots of singletons.

use systole_core::core::*;
use systole_core::vocab::Partition;

use super::harness::*;
use super::payloads::*;

/// `echo` is at home in shard 0.
fn world(shards: u16, concurrency: u32) -> World {
    let mut setup = Setup::new(vec![server("echo", &["ask"], &["told"]).concurrency(concurrency)]);
    setup.shards = shards;
    setup.build()
}

#[test]
fn a_message_is_carried_to_the_shard_of_its_conversation() {
    let mut world = world(3, 64);
    world.emits("echo", |message| vec![reply("told", number_in(message))]);
    let root = world.send("alice", letter("ask", 1).at(2));
    assert_eq!(world.directory.core_of(Partition::of(root)), Some(CoreId(2)));
    world.send("alice", letter("ask", 2).thread(root).at(0));
    assert!(world.egress.iter().all(|egress| egress.root == root));
    assert_eq!(world.said(), ["echo: told 1", "echo: told 2"]);
    assert_eq!(world.cores[0].counts().injected, 0, "it is counted where it is handled");
}

#[test]
fn a_conversation_that_closed_meanwhile_is_opened_anew() {
    let mut world = world(2, 64);
    world.emits("echo", |message| vec![reply("told", number_in(message))]);
    let root = world.send("alice", letter("ask", 1).at(1));
    world.slow_links = true;
    let fresh = world.post("alice", letter("ask", 2).thread(root).at(0));
    while world.step(0) {}
    world.handle(1, world.left(root));
    while world.step(1) {}
    world.slow_links = false;
    world.run();
    assert_eq!(world.egress.last().unwrap().root, fresh);
}

#[test]
fn a_singleton_shares_its_slots_among_all_shards_in_one_line() {
    let mut world = world(3, 2);
    for n in 0..9 {
        world.send("alice", letter("ask", n).at(n as usize % 3));
    }
    for n in 0..9 {
        assert_eq!(world.runs("echo"), 2.min(9 - n as usize));
        let invocation = world.invocation_with("echo", n);
        assert_eq!(invocation.shard, n as usize % 3);
        world.finish(invocation, vec![reply("told", n)]);
    }
}

#[test]
fn a_stateless_listener_has_slots_of_its_own_in_each_shard() {
    let mut setup = Setup::new(vec![listener("echo", |echo| {
        echo.accepts = qnames(&["ask"]);
        echo.replies = qnames(&["told"]);
        echo.concurrency = 1;
        echo.stateless = true;
    })]);
    setup.shards = 3;
    let mut world = setup.build();
    for n in 0..6 {
        world.send("alice", letter("ask", n).at(n as usize % 3));
    }
    assert_eq!(world.runs("echo"), 3);
    for n in 0..6 {
        let invocation = world.invocation_with("echo", n);
        world.finish(invocation, vec![reply("told", n)]);
    }
}

#[test]
fn a_thread_that_closes_while_it_waits_gives_its_slot_on() {
    let mut world = world(3, 1);
    world.send("alice", letter("ask", 0).at(0));
    let waiting = world.send("alice", letter("ask", 1).at(1));
    world.send("alice", letter("ask", 2).at(2));
    world.handle(1, world.cancelled(waiting));
    world.run();
    world.finish(world.invocation("echo"), vec![reply("told", 0)]);
    assert_eq!(world.invocation("echo"), world.invocation_with("echo", 2));
    world.finish(world.invocation("echo"), vec![reply("told", 2)]);
}

#[test]
fn a_slot_that_is_granted_to_a_closed_thread_comes_back() {
    let mut world = world(2, 1);
    world.send("alice", letter("ask", 0).at(0));
    let waiting = world.send("alice", letter("ask", 1).at(1));
    world.slow_links = true;
    world.end(world.invocation("echo"), HandlerOutcome::Emitted(vec![reply("told", 0)]));
    while world.step(0) {}
    // The grant is on its way when the thread closes; its refusal crosses it.
    assert_eq!(world.links.len(), 1);
    world.handle(1, world.cancelled(waiting));
    while world.step(1) {}
    world.slow_links = false;
    world.run();
    world.send("alice", letter("ask", 2).at(1));
    world.finish(world.invocation("echo"), vec![reply("told", 2)]);
}

#[test]
fn a_parked_handler_of_another_shard_gives_its_slot_back_and_comes_first() {
    let mut setup = Setup::new(vec![boss(|boss| boss.concurrency = 1), worker(|worker| worker.stateless = true)]);
    setup.shards = 2;
    let mut world = setup.build();
    let root = world.send("alice", letter("ask", 0).at(1));
    let boss = world.invocation("boss");
    world.call(boss, 0, vec![call("ping", 0)], Join::All);
    world.send("alice", letter("ask", 1).at(0));
    world.send("alice", letter("ask", 2).thread(root).at(0));
    world.finish(world.invocation("worker"), vec![reply("pong", 0)]);
    assert_eq!(world.next_resume(), None, "its slot is taken");
    let other = world.invocation_with("boss", 1);
    world.finish(other, vec![reply("told", 1)]);
    assert_eq!(world.next_resume().unwrap(), "0: 0 pong 0");
    assert_eq!(world.runs("boss"), 1);
    world.finish(boss, vec![reply("told", 0)]);
    world.finish(world.invocation("boss"), vec![reply("told", 2)]);
}

#[test]
fn a_blocking_handler_of_another_shard_keeps_its_slot_until_it_ends() {
    let mut world = world(2, 1);
    world.blocking.insert("echo".into());
    let root = world.send("alice", letter("ask", 0).at(1));
    world.send("alice", letter("ask", 1).at(0));
    world.cancel(root);
    assert_eq!(world.runs("echo"), 1);
    world.finish(world.invocation("echo"), vec![]);
    assert_eq!(world.invocation("echo").shard, 0);
    world.finish(world.invocation("echo"), vec![reply("told", 1)]);
}

#[test]
fn the_waiting_of_every_shard_stay_in_line_while_their_listener_rests() {
    let mut world = world(3, 1);
    for n in 0..3 {
        world.send("alice", letter("ask", n).at(n as usize).label(&format!("l{n}")));
    }
    let listener = world.listener_id("echo");
    world.tell(|| Input::ListenerRests { listener, rests: true });
    world.finish(world.invocation("echo"), vec![reply("told", 0)]);
    assert_eq!((world.runs("echo"), world.said()), (0, vec!["echo: told 0 [l0]".to_owned()]));
    world.tell(|| Input::ListenerRests { listener, rests: false });
    for n in 1..3 {
        world.finish(world.invocation_with("echo", n), vec![reply("told", n)]);
    }
    assert_eq!(world.said(), ["echo: told 1 [l1]", "echo: told 2 [l2]"]);
}
