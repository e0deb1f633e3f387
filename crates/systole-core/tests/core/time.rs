//! Deadlines, timeouts, cancellation.

use systole_core::core::*;
use systole_core::vocab::FaultCode;

use super::harness::*;
use super::payloads::*;

/// alice -> boss -> two workers, of which one is at work and one waits for the slot.
fn tree(deadline: Option<u64>) -> World {
    let untimed = |contract: &mut Contract| contract.timeout = None;
    let worker = worker(|worker| {
        worker.timeout = None;
        worker.concurrency = 1;
    });
    let mut world = Setup::new(vec![boss(untimed), worker]).build();
    let ask = letter("ask", 0).label("l");
    let ask = match deadline {
        Some(seconds) => ask.deadline(world.now.after(secs(seconds))),
        None => ask,
    };
    world.send("alice", ask);
    world.finish(world.invocation("boss"), vec![call("ping", 0), call("ping", 1)]);
    world
}

#[test]
fn a_deadline_goes_down_the_tree_and_makes_one_fault_at_the_top() {
    let mut world = tree(Some(60));
    let deadline = world.message(world.invocation("worker")).deadline;
    assert_eq!(deadline, Some(world.now.after(secs(60))));
    world.sleep(secs(59));
    assert_eq!(world.said(), [""; 0]);
    world.sleep(secs(1));
    assert_eq!(world.said(), ["boss: !timeout [l]"]);
    assert_eq!((world.aborted.len(), world.paths()), (1, vec!["root".to_owned()]));
    let made = world.events.iter().filter(|event| matches!(event.kind, EventKind::Faulted { .. })).count();
    assert_eq!(made, 1);
    assert_eq!(world.counts().cancelled, 1, "the message that waited");
}

#[test]
fn a_deadline_that_has_passed_runs_nothing() {
    let mut world = Setup::new(vec![server("echo", &["ask"], &["told"])]).build();
    let past = world.now;
    world.sleep(secs(5));
    world.send("alice", letter("ask", 0).deadline(past));
    assert_eq!((world.said(), world.started.len()), (vec!["echo: !timeout".to_owned()], 0));
}

#[test]
fn an_answer_in_time_disarms_the_deadline() {
    let mut world = Setup::new(vec![server("echo", &["ask"], &["told"])]).build();
    world.send("alice", letter("ask", 0).deadline(world.now.after(secs(5))));
    world.finish(world.invocation("echo"), vec![reply("told", 1)]);
    world.sleep(secs(10));
    assert_eq!(world.said(), ["echo: told 1"]);
}

#[test]
fn a_parked_handler_is_bounded_by_its_deadline() {
    let mut world = Setup::new(vec![boss(|_| {}), worker(|worker| worker.timeout = None)]).build();
    world.send("alice", letter("ask", 0).deadline(world.now.after(secs(100))));
    let invocation = world.invocation("boss");
    world.call(invocation, 0, vec![call("ping", 0)], Join::All);
    world.sleep(secs(100));
    assert_eq!((world.said(), world.running.len()), (vec!["boss: !timeout".to_owned()], 0));
}

#[test]
fn a_handler_that_takes_too_long_fails_its_thread_alone() {
    let mut world = Setup::new(vec![boss(|boss| boss.accepts_faults = true), worker(|_| {})]).build();
    world.send("alice", letter("ask", 0));
    world.finish(world.invocation("boss"), vec![call("ping", 0), call("ping", 1)]);
    world.sleep(secs(29));
    let invocation = world.invocation_with("worker", 1);
    world.finish(invocation, vec![reply("pong", 1)]);
    world.finish(world.invocation("boss"), vec![]);
    world.sleep(secs(1));
    assert_eq!(world.take_started().last().unwrap(), "boss <- worker: !timeout (0/2, 0 left)");
    let fault = fault_of(world.message(world.invocation("boss")));
    assert_eq!((fault.code, fault.code.element()), (FaultCode::Timeout, "system-error"));
    world.finish(world.invocation("boss"), vec![reply("told", 1)]);
}

#[test]
fn waiting_for_a_slot_is_not_running() {
    let echo = server("echo", &["ask"], &["told"]).concurrency(1);
    let mut world = Setup::new(vec![echo]).build();
    world.send("alice", letter("ask", 0));
    world.send("alice", letter("ask", 1));
    world.sleep(secs(20));
    world.finish(world.invocation("echo"), vec![reply("told", 0)]);
    world.sleep(secs(29));
    world.finish(world.invocation("echo"), vec![reply("told", 1)]);
    assert_eq!(world.said(), ["echo: told 0", "echo: told 1"]);
}

#[test]
fn cancelling_a_conversation_cancels_its_whole_tree_and_no_other() {
    let mut world = tree(None);
    let root = world.cores[0].snapshot().threads[0].root;
    world.send("bob", letter("ping", 7));
    world.cancel(root);
    assert_eq!(world.closed, [root]);
    assert_eq!((world.aborted.len(), world.said()), (1, vec![]));
    assert_eq!(world.counts().cancelled, 1, "the message that waited for its slot");
    assert_eq!(world.paths(), ["root", "root/worker"], "bob's");
    world.finish(world.invocation("worker"), vec![reply("pong", 7)]);
    assert_eq!(world.said(), ["worker: pong 7"]);
}

#[test]
fn a_blocking_handler_keeps_its_slot_until_it_ends() {
    let mut world = tree(None);
    world.blocking.insert("worker".into());
    let root = world.cores[0].snapshot().threads[0].root;
    world.send("bob", letter("ping", 7));
    world.cancel(root);
    assert_eq!((world.runs("worker"), world.aborted.len()), (1, 1));
    assert!(!world.is_idle());
    world.finish(world.invocation("worker"), vec![reply("pong", 0)]);
    assert_eq!(world.message(world.invocation("worker")).from.as_str(), "bob");
    world.finish(world.invocation("worker"), vec![reply("pong", 7)]);
    assert_eq!(world.said(), ["worker: pong 7"]);
}

#[test]
fn the_time_of_a_stalled_handler_stands_still_and_it_keeps_its_slot() {
    let echo = server("echo", &["ask"], &["told"]).concurrency(1);
    let mut world = Setup::new(vec![echo]).build();
    world.send("alice", letter("ask", 0));
    world.send("alice", letter("ask", 1));
    let invocation = world.invocation("echo");
    let stall = |world: &mut World, stalled| {
        world.handle(invocation.shard, Input::Stalled { invocation: invocation.id, stalled });
        world.run();
    };
    world.sleep(secs(20));
    stall(&mut world, true);
    world.sleep(secs(200));
    stall(&mut world, true);
    assert_eq!((world.said().len(), world.runs("echo"), world.aborted.len()), (0, 1, 0));
    stall(&mut world, false);
    stall(&mut world, false);
    world.sleep(secs(9));
    assert!(world.aborted.is_empty());
    world.sleep(secs(1));
    assert_eq!((world.said(), world.aborted.len()), (vec!["echo: !timeout".to_owned()], 1));
    world.finish(world.invocation("echo"), vec![reply("told", 1)]);
}

#[test]
fn a_stalled_handler_is_bounded_by_its_deadline() {
    let mut world = Setup::new(vec![server("slow", &["ask"], &["told"])]).build();
    world.send("alice", letter("ask", 0).deadline(world.now.after(secs(100))));
    let invocation = world.invocation("slow");
    world.handle(invocation.shard, Input::Stalled { invocation: invocation.id, stalled: true });
    world.sleep(secs(100));
    assert_eq!((world.said(), world.running.len()), (vec!["slow: !timeout".to_owned()], 0));
}

#[test]
fn a_timed_out_blocking_handler_is_aborted_once() {
    let mut world = Setup::new(vec![server("slow", &["ask"], &["told"])]).build();
    world.blocking.insert("slow".into());
    world.send("alice", letter("ask", 0));
    world.sleep(secs(300));
    assert_eq!((world.said(), world.aborted.len()), (vec!["slow: !timeout".to_owned()], 1));
    world.end(world.invocation("slow"), HandlerOutcome::Failed(Failure { message: "late".into(), fault: None }));
    world.run();
    assert_eq!(world.said(), [""; 0]);
}

#[test]
fn the_wake_is_exact() {
    let mut world = Setup::new(vec![server("echo", &["ask"], &["told"])]).build();
    assert_eq!(world.next_wake(), None);
    world.send("alice", letter("ask", 0).deadline(world.now.after(secs(20))));
    assert_eq!(world.next_wake(), Some(world.now.after(secs(20))));
    world.finish(world.invocation("echo"), vec![reply("told", 1)]);
    assert_eq!(world.next_wake(), Some(world.now.after(secs(900))));
}

#[test]
fn time_that_goes_backwards_stands_still() {
    let mut world = Setup::new(vec![server("echo", &["ask"], &["told"])]).build();
    world.sleep(secs(100));
    world.send("alice", letter("ask", 0));
    let now = world.now;
    world.now = world.cores[0].next_wake().map(|_| "2029-01-01T00:00:00Z".parse().unwrap()).unwrap();
    world.finish(world.invocation("echo"), vec![reply("told", 1)]);
    world.now = now;
    assert_eq!(world.next_wake(), Some(now.after(secs(900))));
}
