//! The beginning and the end of the organism.

use std::time::Duration;

use systole_core::core::*;
use systole_core::vocab::FaultCode;

use super::harness::*;
use super::payloads::*;

/// A listener that is told of the start, and may call the worker.
fn console(name: &str) -> Contract {
    listener(name, |console| {
        console.accepts = vec![core_qname("boot"), qname("tick")];
        console.replies = qnames(&["told"]);
        console.calls = qnames(&["ping"]);
        console.returns = qnames(&["pong"]);
        console.routing = Routing::Addressed;
    })
}

fn booted(listeners: Vec<Contract>) -> World {
    let mut world = Setup::new(listeners).build();
    let root = world.fresh_root();
    world.handle(0, Input::Boot { root });
    world.run();
    world
}

#[test]
fn every_listener_that_accepts_boot_gets_it_on_a_thread_of_its_own() {
    let mut world = booted(vec![console("a"), worker(|_| {}), console("b")]);
    assert_eq!(world.take_started(), ["a <- system: boot", "b <- system: boot"]);
    assert_eq!(world.paths(), ["root", "root/a", "root/b"]);
    let text = world.message(world.invocation("a")).body_text();
    assert!(text.contains("test") && text.contains("2030-01-01T00:00:00Z"), "{text}");
    for name in ["a", "b"] {
        world.finish(world.invocation(name), vec![]);
    }
    assert_eq!(world.paths(), [""; 0], "silence just closes the thread, and the last one the root");
}

trait BodyText {
    fn body_text(&self) -> String;
}

impl BodyText for Message {
    fn body_text(&self) -> String {
        match &self.body {
            Body::Payload { payload, .. } => payload.payload().as_str().to_owned(),
            Body::Fault(fault) => fault.to_string(),
        }
    }
}

#[test]
fn questions_that_nobody_can_answer_are_no_work_but_stay_open() {
    for shards in [1, 2] {
        let person = server("person", &["ping"], &["pong"]).concurrency(1);
        let mut world = Setup { shards, ..Setup::new(vec![person]) }.build();
        for n in 0..4 {
            world.send("alice", letter("ping", n).at(n as usize % usize::from(shards)));
        }
        assert!(!world.is_idle(), "a person may answer");
        let person = world.listener_id("person");
        for _ in 0..2 {
            world.tell(|| Input::ListenerUnattended { listener: person });
        }
        world.run();
        assert!(world.is_idle(), "one is asked, and the others wait for that");
        let told = |event: &&Event| matches!(event.kind, EventKind::Unattended { .. });
        assert_eq!(world.events.iter().filter(told).count(), 1, "operators learn it once");
        for _ in 0..4 {
            let asked = world.invocation("person");
            let n = number_in(world.message(asked));
            world.finish(asked, vec![reply("pong", n)]);
        }
        assert_eq!(world.said().len(), 4, "an answer counts as ever");
    }
}

#[test]
fn nobody_needs_to_accept_boot() {
    let world = booted(vec![worker(|_| {})]);
    assert_eq!((world.paths(), world.dead()), (vec![], vec![]));
}

#[test]
fn a_boot_thread_that_ends_leaves_the_others_alone() {
    let mut world = booted(vec![console("a"), console("b")]);
    world.finish(world.invocation("a"), vec![]);
    assert_eq!((world.runs("b"), world.aborted.len()), (1, 0));
    world.finish(world.invocation("b"), vec![]);
}

#[test]
fn a_boot_handler_runs_for_ever_and_does_not_keep_the_organism_busy() {
    let mut world = booted(vec![console("a"), worker(|_| {})]);
    world.sleep(secs(10_000));
    assert!(world.is_idle());
    let console = world.invocation("a");
    world.call(console, 0, vec![call("ping", 1)], Join::All);
    assert!(!world.is_idle(), "what it called counts");
    world.finish(world.invocation("worker"), vec![reply("pong", 1)]);
    assert_eq!(world.next_resume().unwrap(), "0: 0 pong 1");
    assert!(world.is_idle());
    world.finish(console, vec![]);
}

#[test]
fn a_result_that_waits_for_a_boot_handler_keeps_the_organism_busy() {
    let mut world = booted(vec![console("a"), worker(|_| {})]);
    let console = world.invocation("a");
    world.call(console, 0, vec![call("ping", 1)], Join::All);
    world.end(world.invocation("worker"), HandlerOutcome::Emitted(vec![reply("pong", 1)]));
    while world.resumed.is_empty() {
        assert!(!world.is_idle());
        assert!(world.step(0));
    }
    world.finish(console, vec![]);
}

#[test]
fn answers_come_to_the_boot_thread_and_its_handlers_then_are_ordinary() {
    let mut world = booted(vec![console("a"), worker(|_| {})]);
    world.finish(world.invocation("a"), vec![call("ping", 1)]);
    world.finish(world.invocation("worker"), vec![reply("pong", 2)]);
    assert_eq!(world.take_started().last().unwrap(), "a <- worker: pong 2");
    assert!(!world.is_idle());
    world.sleep(secs(30));
    assert_eq!(world.runs("a"), 0, "it has a timeout");
    assert_eq!(world.dead(), ["!timeout"]);
}

#[test]
fn what_a_boot_thread_answers_is_a_dead_letter() {
    let mut world = booted(vec![console("a"), console("b"), console("c")]);
    world.finish(world.invocation("a"), vec![reply("told", 1)]);
    world.fail(world.invocation("b"), "no");
    world.end(world.invocation("c"), HandlerOutcome::Panicked);
    world.run();
    assert_eq!(world.dead(), ["told 1", "!failed", "!listener-failed"]);
}

#[test]
fn a_fault_in_the_tree_of_boot_ends_as_a_dead_letter() {
    let mut world = booted(vec![console("a"), worker(|_| {})]);
    world.finish(world.invocation("a"), vec![call("ping", 1)]);
    world.fail(world.invocation("worker"), "no");
    assert_eq!((world.dead(), world.paths()), (vec!["!failed".to_owned()], vec![]));
}

fn ticking(world: &mut World, after: Duration) {
    let tick = emission(EmissionKind::Continue { after }, &xml("tick", 1));
    world.script("a", move |_| Act::End(HandlerOutcome::Emitted(vec![tick.clone()])));
}

#[test]
fn a_scheduler_ticks_from_boot_on() {
    let mut world = Setup::new(vec![console("a")]).build();
    ticking(&mut world, secs(60));
    let root = world.fresh_root();
    world.handle(0, Input::Boot { root });
    world.run();
    world.sleep(secs(600));
    assert_eq!(world.take_started().len(), 11);
    assert!(world.is_idle());
    world.tell(|| Input::Drain);
    assert_eq!(world.paths(), [""; 0]);
}

#[test]
fn draining_cancels_pending_continues_and_boot_handlers_and_lets_the_rest_run() {
    let mut world = booted(vec![console("a"), boss(|_| {}), worker(|_| {})]);
    world.send("alice", letter("ask", 1).label("slow"));
    world.finish(world.invocation("boss"), vec![call("ping", 1)]);
    world.send("alice", letter("ask", 2).label("later"));
    let tick = || emission(EmissionKind::Continue { after: secs(60) }, &xml("tick", 2));
    world.finish(world.invocation("boss"), vec![tick()]);
    world.tell(|| Input::Drain);
    assert_eq!(world.runs("a"), 0);
    assert_eq!(world.said(), ["boss: !cancelled [later]"]);
    world.finish(world.invocation("worker"), vec![reply("pong", 1)]);
    world.finish(world.invocation("boss"), vec![tick()]);
    assert_eq!(world.said(), ["boss: !cancelled [slow]"], "no continue is put off any more");
    assert!(world.is_idle());
}

#[test]
fn a_boot_handler_holds_no_slot_of_its_listener() {
    let mut world = booted(vec![
        listener("a", |a| {
            a.accepts = vec![core_qname("boot"), qname("ask")];
            a.replies = qnames(&["told"]);
            a.calls = qnames(&["ping"]);
            a.concurrency = 1;
        }),
        worker(|_| {}),
    ]);
    let boot = world.invocation("a");
    world.send("alice", letter("ask", 1));
    assert_eq!(world.runs("a"), 2, "the only slot is free for others");
    world.send("alice", letter("ask", 2));
    assert_eq!(world.runs("a"), 2, "and no more than it");
    world.call(boot, 0, vec![call("ping", 1)], Join::All);
    world.finish(world.invocation("worker"), vec![reply("pong", 1)]);
    assert_eq!(world.next_resume().unwrap(), "0: 0 pong 1", "it needs none to go on either");
    world.finish(boot, vec![]);
    assert_eq!(world.runs("a"), 1, "nor does it give one back");
    for n in [1, 2] {
        world.finish(world.invocation_with("a", n), vec![reply("told", n)]);
    }
    assert_eq!(world.said(), ["a: told 1", "a: told 2"]);
}

#[test]
fn boot_does_not_wait_for_a_slot() {
    let mut world = Setup::new(vec![listener("a", |a| {
        a.accepts = vec![core_qname("boot"), qname("ask")];
        a.replies = qnames(&["told"]);
        a.concurrency = 1;
    })])
    .build();
    world.send("alice", letter("ask", 1));
    let root = world.fresh_root();
    world.handle(0, Input::Boot { root });
    world.run();
    assert_eq!(world.take_started(), ["a <- alice: ask 1", "a <- system: boot"]);
    world.finish(world.invocation_with("a", 1), vec![reply("told", 1)]);
    world.finish(world.invocation("a"), vec![]);
}

#[test]
fn draining_cancels_boot_messages_that_have_not_started() {
    let mut world = Setup::new(vec![console("a")]).build();
    let root = world.fresh_root();
    world.handle(0, Input::Boot { root });
    world.tell(|| Input::Drain);
    assert_eq!((world.take_started(), world.paths()), (vec![], vec![]));
}

#[test]
fn stopping_gives_each_open_conversation_one_fault_and_buries_the_rest() {
    let mut world =
        Setup::new(vec![boss(|_| {}), worker(|worker| worker.concurrency = 1), server("echo", &["note"], &["a0"])])
            .build();
    world.emits("echo", |_| vec![reply("a0", 1)]);
    let done = world.send("alice", letter("note", 0));
    let open = world.send("alice", letter("ask", 1).label("l"));
    world.finish(world.invocation("boss"), vec![call("ping", 1), call("ping", 2), call("ping", 3)]);
    world.said();
    let unread = world.post("bob", letter("ask", 4));
    world.end(world.invocation("worker"), HandlerOutcome::Emitted(vec![reply("pong", 1)]));
    world.handle(0, Input::Stop);
    world.run();
    let faults: Vec<_> = world.egress.iter().map(|egress| (egress.root, egress.fault.as_ref().unwrap().code)).collect();
    assert_eq!(faults, [(unread, FaultCode::Cancelled), (open, FaultCode::Cancelled)]);
    assert_eq!(world.closed, [unread, done, open]);
    assert_eq!(world.dead(), ["pong 1", "ping 2", "ping 3"]);
    assert_eq!(world.paths(), [""; 0]);
}

#[test]
fn nothing_enters_a_stopped_organism_and_nothing_leaves_it_but_refusals() {
    let mut world = Setup::new(vec![server("slow", &["ask"], &["told"])]).build();
    world.blocking.insert("slow".into());
    world.send("alice", letter("ask", 1));
    world.handle(0, Input::Stop);
    world.run();
    let late = world.send("bob", letter("ask", 2));
    assert_eq!(world.said(), ["system: !cancelled", "system: !cancelled"]);
    assert_eq!(world.closed.last(), Some(&late));
    world.finish(world.invocation("slow"), vec![reply("told", 1)]);
    assert_eq!(world.said(), [""; 0]);
}

#[test]
fn stopping_twice_or_with_nothing_open_is_harmless() {
    let mut world = booted(vec![console("a"), worker(|_| {})]);
    world.tell(|| Input::Stop);
    world.tell(|| Input::Stop);
    world.tell(|| Input::Drain);
    assert_eq!(world.paths(), [""; 0]);
}

#[test]
fn stopping_buries_the_calls_that_a_spawned_thread_has_not_started() {
    let mut world = Setup::new(vec![boss(|_| {}), worker(|_| {})]).build();
    world.send("alice", letter("ask", 1));
    let boss = world.invocation("boss");
    world.call(boss, 0, vec![spawn("ping", 0)], Join::First);
    let (_, _, result) = world.resumed.pop_front().unwrap();
    let told = result.unwrap()[0].outcome.clone().unwrap();
    let id = spawned_id(told.payload.payload());
    world.call(boss, 1, vec![on(id, call("ping", 1)), on(id, call("ping", 2))], Join::All);
    world.handle(0, Input::Stop);
    world.run();
    assert_eq!(world.dead(), ["ping 2"]);
    assert_eq!(world.said(), ["system: !cancelled"]);
}
