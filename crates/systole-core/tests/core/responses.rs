//! Responses of handlers, and their effects.

use std::time::Duration;

use systole_core::core::*;
use systole_core::vocab::FaultCode;
use systole_xml::schema::Draft;

use super::harness::*;
use super::payloads::*;

fn go_on(local: &str, n: i64, after: Duration) -> Emission {
    emission(EmissionKind::Continue { after }, &xml(local, n))
}

fn bad(local: &str) -> Emission {
    emission(EmissionKind::Inferred, &format!("<{local} xmlns=\"urn:test\"><n>x</n></{local}>"))
}

fn with_boss(change: impl FnOnce(&mut Contract)) -> World {
    let mut world = Setup::new(vec![boss(change), worker(|_| {})]).build();
    world.send("alice", letter("ask", 0).label("l"));
    world
}

#[test]
fn a_valid_reply_is_the_answer_and_everything_beside_it_is_never_opened() {
    let mut world = with_boss(|_| {});
    let both = vec![call("ping", 1), bad("told"), reply("told", 2), reply("told", 3), meta("list-capabilities")];
    world.finish(world.invocation("boss"), both);
    assert_eq!(world.said(), ["boss: told 2 [l]"]);
    assert_eq!(world.runs("worker"), 0);
    assert_eq!(world.dead(), ["ping 1", "told x", "told 3", "list-capabilities"]);
}

#[test]
fn an_invalid_reply_is_not_the_answer() {
    let mut world = with_boss(|boss| boss.accepts_faults = true);
    world.finish(world.invocation("boss"), vec![bad("told")]);
    let message = world.message(world.invocation("boss"));
    assert_eq!((fault_of(message).code, message.join), (FaultCode::Payload, None));
    assert_eq!(world.said(), [""; 0]);
    world.finish(world.invocation("boss"), vec![reply("told", 1)]);
    assert_eq!(world.said(), ["boss: told 1 [l]"]);
}

#[test]
fn what_is_in_replies_is_a_reply_and_anything_else_a_call() {
    let mut world = with_boss(|_| {});
    world.emits("worker", |_| vec![emission(EmissionKind::Inferred, &xml("pong", 4))]);
    world.finish(world.invocation("boss"), vec![emission(EmissionKind::Inferred, &xml("ping", 1))]);
    assert_eq!(world.take_started().last().unwrap(), "boss <- worker: pong 4");
    world.finish(world.invocation("boss"), vec![emission(EmissionKind::Inferred, &xml("told", 1))]);
    assert_eq!(world.said(), ["boss: told 1 [l]"]);
}

#[test]
fn a_reply_that_the_contract_does_not_list_is_refused() {
    let mut world = with_boss(|_| {});
    world.finish(world.invocation("boss"), vec![reply("pong", 1)]);
    assert_eq!(world.said(), ["boss: !route [l]"]);
}

#[test]
fn three_responses_in_a_row_without_a_valid_emission_end_a_thread() {
    let mut world = with_boss(|boss| boss.accepts_faults = true);
    for _ in 0..2 {
        world.finish(world.invocation("boss"), vec![call("note", 1), bad("told")]);
        world.finish(world.invocation("boss"), vec![]);
    }
    assert_eq!(world.said(), [""; 0]);
    world.finish(world.invocation("boss"), vec![bad("ping")]);
    assert_eq!(world.egress[0].fault.as_ref().unwrap().code, FaultCode::Failed);
    assert!(world.egress[0].fault.as_ref().unwrap().message.contains("3 responses"));
}

#[test]
fn a_valid_emission_in_between_forgives() {
    let mut world = with_boss(|boss| boss.accepts_faults = true);
    world.emits("worker", |_| vec![reply("pong", 1)]);
    for _ in 0..4 {
        for _ in 0..2 {
            world.finish(world.invocation("boss"), vec![bad("ping")]);
        }
        world.finish(world.invocation("boss"), vec![call("ping", 1), bad("ping")]);
        world.finish(world.invocation("boss"), vec![]);
    }
    world.finish(world.invocation("boss"), vec![reply("told", 1)]);
    assert_eq!(world.said(), ["boss: told 1 [l]"]);
}

#[test]
fn questions_to_the_core_that_are_refused_are_mistakes_too() {
    let mut world = with_boss(|boss| boss.accepts_faults = true);
    for _ in 0..3 {
        world.finish(world.invocation("boss"), vec![meta("request-schema payload=\"{urn:test}done\"")]);
    }
    assert_eq!(world.said(), ["boss: !failed [l]"]);
}

#[test]
fn output_of_a_closed_thread_is_counted_as_cancelled() {
    let mut world = Setup::new(vec![server("slow", &["ask"], &["told"])]).build();
    world.blocking.insert("slow".into());
    let root = world.send("alice", letter("ask", 0));
    world.cancel(root);
    let before = world.counts();
    world.finish(world.invocation("slow"), vec![reply("told", 1), reply("told", 2)]);
    let after = world.counts();
    assert_eq!((after.emitted - before.emitted, after.cancelled - before.cancelled), (2, 2));
    assert_eq!((world.said(), world.closed.clone()), (vec![], vec![root]));
}

#[test]
fn output_on_queue_1_of_a_thread_that_closes_is_cancelled() {
    let mut world = Setup::new(vec![server("slow", &["ask"], &["told"])]).build();
    let root = world.send("alice", letter("ask", 0));
    world.end(world.invocation("slow"), HandlerOutcome::Emitted(vec![reply("told", 1)]));
    world.handle(0, world.cancelled(root));
    world.run();
    assert_eq!(world.said(), [""; 0]);
    assert_eq!(world.counts().cancelled, 1);
}

#[test]
fn a_continue_comes_to_the_tail_of_the_own_mailbox() {
    let mut world = with_boss(|_| {});
    world.finish(world.invocation("boss"), vec![call("ping", 1), call("ping", 2), go_on("tick", 3, Duration::ZERO)]);
    assert_eq!(world.take_started().last().unwrap(), "boss <- boss: tick 3");
    let invocation = world.invocation_with("worker", 1);
    world.finish(invocation, vec![reply("pong", 1)]);
    world.finish(world.invocation("boss"), vec![go_on("tick", 4, Duration::ZERO)]);
    assert_eq!(world.take_started(), ["boss <- worker: pong 1 (0/2, 1 left)"]);
    world.finish(world.invocation("boss"), vec![]);
    assert_eq!(world.take_started(), ["boss <- boss: tick 4"]);
    world.finish(world.invocation("boss"), vec![reply("told", 0)]);
}

#[test]
fn a_delayed_continue_waits_and_keeps_its_thread_open() {
    let mut world = with_boss(|_| {});
    world.finish(world.invocation("boss"), vec![go_on("tick", 1, secs(10))]);
    assert!(world.is_idle(), "a delayed continue does not keep the organism from being idle");
    assert_eq!(world.paths(), ["root", "root/boss"]);
    world.sleep(secs(9));
    assert_eq!(world.runs("boss"), 0);
    world.sleep(secs(1));
    assert_eq!(world.take_started(), ["boss <- alice: ask 0", "boss <- boss: tick 1"]);
    world.finish(world.invocation("boss"), vec![reply("told", 0)]);
}

#[test]
fn a_continue_must_be_accepted_and_can_not_stand_beside_a_reply() {
    let mut world = with_boss(|boss| boss.accepts_faults = true);
    world.finish(world.invocation("boss"), vec![go_on("job", 1, Duration::ZERO)]);
    let message = world.message(world.invocation("boss"));
    assert_eq!((fault_of(message).code, message.join), (FaultCode::Route, None));
    world.finish(world.invocation("boss"), vec![go_on("tick", 1, secs(1)), reply("told", 1)]);
    assert_eq!(world.said(), ["boss: told 1 [l]"]);
    assert_eq!(world.dead(), ["job 1", "tick 1"]);
    assert_eq!(world.next_wake().map(|wake| wake.since(world.now)), Some(secs(900)), "only the root's own");
}

#[test]
fn a_loop_runs_for_ever_in_constant_memory() {
    let mut setup = Setup::new(vec![boss(|_| {})]);
    setup.events = false;
    let mut world = setup.build();
    let (next, last) = (go_on("tick", 1, Duration::ZERO), reply("told", 1));
    let mut left = 20_000;
    world.script("boss", move |_| {
        left -= 1;
        Act::End(HandlerOutcome::Emitted(vec![if left == 0 { last.clone() } else { next.clone() }]))
    });
    world.post("alice", letter("ask", 0));
    let mut peak = (0, 0);
    while world.step(0) {
        world.started.clear();
        peak = (peak.0.max(world.gauge.messages()), peak.1.max(world.directory.threads()));
    }
    assert!(peak.0 <= 1 && peak.1 == 2, "{peak:?}");
    assert_eq!(world.said(), ["boss: told 1"]);
    assert_eq!(world.counts().delivered, 20_001);
}

#[test]
fn calling_yourself_deepens_the_path() {
    let narcissus = listener("self", |contract| {
        contract.accepts = qnames(&["ask"]);
        contract.calls = qnames(&["ask"]);
        contract.replies = qnames(&["told"]);
        contract.returns = qnames(&["told"]);
    });
    let mut world = Setup::new(vec![narcissus]).build();
    world.send("alice", letter("ask", 0));
    world.finish(world.invocation("self"), vec![call("ask", 1), call("ask", 2)]);
    assert_eq!(world.paths(), ["root", "root/self", "root/self/self", "root/self/self#2"]);
    for n in [1, 2] {
        let invocation = world.invocation_with("self", n);
        world.finish(invocation, vec![reply("told", n)]);
    }
    world.finish(world.invocation("self"), vec![]);
    world.finish(world.invocation("self"), vec![reply("told", 9)]);
    assert_eq!(world.said(), ["self: told 9"]);
}

#[test]
fn a_payload_from_a_delivery_is_not_checked_again() {
    let mut world = with_boss(|boss| boss.replies = qnames(&["ask"]));
    let Body::Payload { payload, .. } = &world.message(world.invocation("boss")).body else { panic!("a payload") };
    let proved = Draft::Proved(payload.clone());
    let answer = Emission { kind: EmissionKind::Reply, to: None, thread: None, payload: proved };
    world.finish(world.invocation("boss"), vec![answer]);
    assert_eq!(world.said(), ["boss: ask 0 [l]"]);
}

#[test]
fn an_error_of_a_handler_is_an_agent_error() {
    let mut world = with_boss(|_| {});
    world.fail(world.invocation("boss"), "no more ink");
    let fault = world.egress[0].fault.clone().unwrap();
    assert_eq!((fault.code, fault.message.as_ref(), fault.retryable), (FaultCode::Failed, "no more ink", false));
}

#[test]
fn however_much_patience_a_limit_asks_for_no_quarrel_is_endless() {
    let mut setup = Setup::new(vec![boss(|boss| boss.accepts_faults = true)]);
    setup.blueprint = |blueprint| blueprint.limits.invalid_responses = u32::MAX;
    let mut world = setup.build();
    world.send("alice", letter("ask", 1));
    for _ in 0..255 {
        world.finish(world.invocation("boss"), vec![call("note", 1)]);
    }
    assert_eq!(world.said(), ["boss: !failed"]);
}
