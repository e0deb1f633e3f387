//! Faults on their way up, and failing listeners.

use systole_core::core::*;
use systole_core::vocab::{Fault, FaultCode};

use super::harness::*;
use super::payloads::*;

/// A chain `first` -> `second` -> `third`: each calls the next with the payload that it got.
fn chain(takes_faults: &[&str]) -> World {
    let link = |name: &str, accepts: &str, replies: &str, calls: &str, returns: &str| {
        listener(name, |contract| {
            contract.accepts = qnames(&[accepts]);
            contract.replies = qnames(&[replies]);
            contract.calls = qnames(&[calls]);
            contract.returns = qnames(&[returns]);
            contract.accepts_faults = takes_faults.contains(&name);
        })
    };
    let mut world = Setup::new(vec![
        link("first", "ask", "told", "ping", "pong"),
        link("second", "ping", "pong", "job", "done"),
        link("third", "job", "done", "q0", "a0"),
    ])
    .build();
    if takes_faults.is_empty() {
        world.emits("first", |_| vec![call("ping", 1)]);
    }
    world.emits("second", |_| vec![call("job", 1)]);
    world.send("alice", letter("ask", 0).label("l"));
    world
}

fn egress_fault(world: &World) -> Fault {
    world.egress[0].fault.clone().expect("a fault")
}

#[test]
fn a_fault_passes_through_listeners_that_take_none_with_the_name_of_the_last() {
    let mut world = chain(&[]);
    world.fail(world.invocation("third"), "out of paper");
    let fault = egress_fault(&world);
    assert_eq!((fault.code, fault.message.as_ref()), (FaultCode::Failed, "out of paper"));
    let envelope = String::from_utf8(world.egress[0].envelope.to_vec()).unwrap();
    assert!(envelope.contains("<agent-error"), "{envelope}");
    assert_eq!(world.said(), ["first: !failed [l]"]);
    assert_eq!(world.paths(), ["root"]);
}

#[test]
fn a_fault_stops_at_a_listener_that_takes_it() {
    let mut world = chain(&["first"]);
    world.finish(world.invocation("first"), vec![call("ping", 1)]);
    let request =
        world.running.iter().find(|running| running.listener == "third").map(|running| running.invocation).unwrap();
    world.fail(request, "out of paper");
    let message = world.message(world.invocation("first"));
    assert_eq!(message.from.as_str(), "second", "its direct correspondent");
    assert_eq!(fault_of(message).message.as_ref(), "out of paper");
    assert!(message.in_reply_to.is_some());
    world.finish(world.invocation("first"), vec![reply("told", 3)]);
    assert_eq!(world.said(), ["first: told 3 [l]"]);
}

#[test]
fn a_fault_that_passes_cancels_the_other_children() {
    let mut world = Setup::new(vec![boss(|_| {}), worker(|_| {})]).build();
    world.send("alice", letter("ask", 0));
    world.finish(world.invocation("boss"), vec![call("ping", 0), call("ping", 1)]);
    let invocation = world.invocation_with("worker", 0);
    world.fail(invocation, "no");
    assert_eq!((world.runs("worker"), world.aborted.len()), (0, 1));
    assert_eq!(world.said(), ["boss: !failed"]);
}

#[test]
fn a_fault_acts_when_its_turn_in_the_mailbox_comes() {
    let mut world = Setup::new(vec![boss(|_| {}), worker(|_| {})]).build();
    world.send("alice", letter("ask", 0));
    world.finish(world.invocation("boss"), vec![call("ping", 0), call("ping", 1)]);
    let [zero, one] = [0, 1].map(|n| world.invocation_with("worker", n));
    world.finish(zero, vec![reply("pong", 0)]);
    world.fail(one, "no");
    assert_eq!(world.said(), [""; 0], "the first answer is being handled");
    world.finish(world.invocation("boss"), vec![reply("told", 1)]);
    assert_eq!(world.said(), ["boss: told 1"], "it answered before the fault came to its turn");
}

#[test]
fn a_handler_that_passes_a_fault_on_keeps_code_message_and_whether_to_retry() {
    let mut world = chain(&[]);
    let fault = Fault { retryable: true, ..Fault::new(FaultCode::Limit, "the model is busy") };
    let failure = Failure { message: "ignored".into(), fault: Some(fault) };
    world.end(world.invocation("third"), HandlerOutcome::Failed(failure));
    world.run();
    let fault = egress_fault(&world);
    assert_eq!((fault.code, fault.message.as_ref(), fault.retryable), (FaultCode::Limit, "the model is busy", true));
}

#[test]
fn a_broken_rule_is_told_to_whoever_broke_it_and_nobody_else() {
    let bad = || vec![call_xml("<ping xmlns=\"urn:test\"><n>x</n></ping>")];
    let mut world = Setup::new(vec![boss(|boss| boss.accepts_faults = true), worker(|_| {})]).build();
    world.send("alice", letter("ask", 0));
    world.finish(world.invocation("boss"), bad());
    let fault = fault_of(world.message(world.invocation("boss"))).clone();
    assert_eq!(fault.code, FaultCode::Payload);
    assert!(fault.rule.unwrap().example.unwrap().contains("<ping"));
    world.end(world.invocation("boss"), HandlerOutcome::Failed(Failure { message: "".into(), fault: None }));
    world.run();
    let mut world = Setup::new(vec![boss(|_| {}), worker(|_| {})]).build();
    world.send("alice", letter("ask", 0));
    world.finish(world.invocation("boss"), bad());
    let fault = egress_fault(&world);
    assert_eq!((fault.code, fault.rule), (FaultCode::Payload, None), "alice does not see the contract of ping");
}

#[test]
fn faults_for_a_client_name_no_ids_from_inside() {
    let mut world = chain(&[]);
    world.fail(world.invocation("third"), "no");
    assert_eq!(egress_fault(&world).in_reply_to, None);
}

#[test]
fn a_panic_fails_its_own_thread_only() {
    let mut world = Setup::new(vec![boss(|_| {}), worker(|worker| worker.concurrency = 1)]).build();
    world.send("alice", letter("ask", 0).label("a"));
    world.finish(world.invocation("boss"), vec![call("ping", 0)]);
    world.send("alice", letter("ping", 5).label("b"));
    world.end(world.invocation("worker"), HandlerOutcome::Panicked);
    world.run();
    let fault = egress_fault(&world);
    assert_eq!((fault.code, fault.retryable), (FaultCode::ListenerFailed, false));
    assert_eq!(world.said(), ["boss: !listener-failed [a]"]);
    world.finish(world.invocation("worker"), vec![reply("pong", 5)]);
    assert_eq!(world.said(), ["worker: pong 5 [b]"]);
}

#[test]
fn a_panic_cancels_the_children_and_the_queued_messages_of_its_thread() {
    let mut world = Setup::new(vec![boss(|_| {}), worker(|_| {})]).build();
    world.send("alice", letter("ask", 0));
    world.finish(world.invocation("boss"), (0..3).map(|n| call("ping", n)).collect());
    for n in 0..2 {
        let invocation = world.invocation_with("worker", n);
        world.finish(invocation, vec![reply("pong", n)]);
    }
    let cancelled = world.counts().cancelled;
    world.end(world.invocation("boss"), HandlerOutcome::Panicked);
    world.run();
    assert_eq!(world.counts().cancelled, cancelled + 1, "the second answer");
    assert_eq!(world.aborted.len(), 1, "the third worker");
    assert_eq!(world.said(), ["boss: !listener-failed"]);
}

#[test]
fn a_discarded_handler_may_be_tried_again() {
    for outcome in [HandlerOutcome::Discarded, HandlerOutcome::Aborted] {
        let mut world = Setup::new(vec![server("echo", &["ask"], &["told"])]).build();
        world.send("alice", letter("ask", 0));
        world.end(world.invocation("echo"), outcome);
        world.run();
        let fault = egress_fault(&world);
        assert_eq!((fault.code, fault.retryable), (FaultCode::ListenerFailed, true));
    }
}

#[test]
fn messages_of_a_listener_that_rests_wait_and_only_a_deadline_or_a_cancellation_ends_them() {
    let echo = server("echo", &["ask"], &["told"]).concurrency(2);
    let mut world = Setup::new(vec![echo]).build();
    let listener = world.listener_id("echo");
    world.send("alice", letter("ask", 0).label("running"));
    world.tell(|| Input::ListenerRests { listener, rests: true });
    world.send("alice", letter("ask", 1).label("waits"));
    world.send("alice", letter("ask", 2).label("late").deadline(world.now.after(secs(5))));
    let cancelled = world.send("alice", letter("ask", 3).label("cancelled"));
    world.finish(world.invocation("echo"), vec![reply("told", 0)]);
    world.cancel(cancelled);
    world.sleep(secs(60));
    assert_eq!(world.said(), ["echo: told 0 [running]", "echo: !timeout [late]"]);
    assert_eq!((world.runs("echo"), world.is_idle()), (0, false), "a slot is free, and nothing begins");
    world.tell(|| Input::ListenerRests { listener, rests: false });
    world.finish(world.invocation("echo"), vec![reply("told", 1)]);
    assert_eq!(world.said(), ["echo: told 1 [waits]"]);
}

#[test]
fn a_handler_that_waits_for_an_answer_goes_on_when_its_listener_is_back() {
    let mut world = Setup::new(vec![boss(|_| {}), worker(|_| {})]).build();
    let listener = world.listener_id("boss");
    world.send("alice", letter("ask", 0));
    let boss = world.invocation("boss");
    world.call(boss, 0, vec![call("ping", 0)], Join::All);
    world.tell(|| Input::ListenerRests { listener, rests: true });
    world.finish(world.invocation("worker"), vec![reply("pong", 1)]);
    assert!(world.resumed.is_empty(), "its slot is given when the listener is back");
    world.tell(|| Input::ListenerRests { listener, rests: false });
    assert_eq!(world.resumed.len(), 1);
    world.finish(boss, vec![reply("told", 2)]);
    assert_eq!(world.said(), ["boss: told 2"]);
}

#[test]
fn an_answer_that_the_listener_does_not_take_fails_its_thread() {
    let mut world = Setup::new(vec![boss(|boss| boss.returns.clear()), worker(|_| {})]).build();
    world.emits("worker", |_| vec![reply("pong", 1)]);
    world.send("alice", letter("ask", 0));
    world.finish(world.invocation("boss"), vec![call("ping", 0)]);
    let fault = egress_fault(&world);
    assert_eq!(fault.code, FaultCode::Failed);
    assert!(fault.message.contains("pong"), "{fault}");
    assert_eq!(world.take_started(), ["boss <- alice: ask 0", "worker <- boss: ping 0"]);
}

#[test]
fn a_client_needs_no_returns() {
    let mut world = Setup::new(vec![server("echo", &["ask"], &["q3"])]).build();
    world.emits("echo", |_| vec![reply("q3", 1)]);
    world.send("alice", letter("ask", 0));
    assert_eq!(world.said(), ["echo: q3 1"]);
}
