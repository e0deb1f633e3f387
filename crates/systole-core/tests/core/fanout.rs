//! Several calls at once: indices, positions, count-offs, silence.

use systole_core::core::*;
use systole_core::vocab::FaultCode;

use super::harness::*;
use super::payloads::*;

fn idle(contract: &mut Contract) {
    contract.silence = Silence::Idle;
}

fn takes_faults(contract: &mut Contract) {
    contract.accepts_faults = true;
}

fn takes_the_end(contract: &mut Contract) {
    contract.returns.push(core_qname("fan-out-ended"));
}

/// A boss that has sent `n` pings to workers, which all still work.
fn fanned(boss_is: fn(&mut Contract), worker_is: fn(&mut Contract), n: i64) -> World {
    let mut world = Setup::new(vec![boss(boss_is), worker(worker_is)]).build();
    world.send("alice", letter("ask", 0));
    let pings = (0..n).map(|n| call("ping", n)).collect();
    world.finish(world.invocation("boss"), pings);
    world.take_started();
    world
}

#[test]
fn answers_come_one_by_one_with_their_position() {
    let mut world = fanned(|_| {}, |_| {}, 3);
    for n in [1, 2, 0] {
        let invocation = world.invocation_with("worker", n);
        world.finish(invocation, vec![reply("pong", n)]);
    }
    assert_eq!(world.take_started(), ["boss <- worker: pong 1 (1/3, 2 left)"], "one in flight per thread");
    world.finish(world.invocation("boss"), vec![]);
    world.finish(world.invocation("boss"), vec![]);
    assert_eq!(world.take_started(), ["boss <- worker: pong 2 (2/3, 1 left)", "boss <- worker: pong 0 (0/3, 0 left)"]);
    world.finish(world.invocation("boss"), vec![reply("told", 9)]);
    assert_eq!(world.said(), ["boss: told 9"]);
}

#[test]
fn an_answer_says_which_message_it_answers() {
    let mut world = fanned(|_| {}, |_| {}, 1);
    let request = world.message(world.invocation("worker")).id;
    world.finish(world.invocation("worker"), vec![reply("pong", 0)]);
    let answer = world.message(world.invocation("boss"));
    assert_eq!(answer.in_reply_to, Some(request));
    assert_eq!(answer.join, Some(JoinPosition { index: 0, total: 1, remaining: 0 }));
    world.finish(world.invocation("boss"), vec![reply("told", 0)]);
}

#[test]
fn a_refused_call_holds_its_index() {
    let mut world = Setup::new(vec![boss(takes_faults), worker(|_| {})]).build();
    world.emits("worker", |message| vec![reply("pong", number_in(message))]);
    world.send("alice", letter("ask", 0));
    let bad = call_xml("<ping xmlns=\"urn:test\"><n>x</n></ping>");
    world
        .finish(world.invocation("boss"), vec![call("ping", 0), call("job", 1), bad, call("note", 3), call("ping", 4)]);
    for _ in 0..4 {
        world.finish(world.invocation("boss"), vec![]);
    }
    let started: Vec<_> = world.take_started().into_iter().filter(|line| line.starts_with("boss")).collect();
    assert_eq!(
        started[1..],
        [
            "boss <- system: !route (1/5, 4 left)",
            "boss <- system: !payload (2/5, 3 left)",
            "boss <- system: !route (3/5, 2 left)",
            "boss <- worker: pong 0 (0/5, 1 left)",
            "boss <- worker: pong 4 (4/5, 0 left)",
        ]
    );
    world.finish(world.invocation("boss"), vec![reply("told", 0)]);
}

#[test]
fn a_refused_reply_among_calls_takes_no_index() {
    let mut world = Setup::new(vec![boss(takes_faults), worker(|_| {})]).build();
    let failed = || HandlerOutcome::Failed(Failure { message: "no".into(), fault: None });
    world.script("worker", move |message| match number_in(message) {
        // Its fault must not have the id of the one for the refused reply.
        1 => Act::End(failed()),
        n => Act::End(HandlerOutcome::Emitted(vec![reply("pong", n)])),
    });
    world.send("alice", letter("ask", 0));
    let bad = emission(EmissionKind::Reply, "<told xmlns=\"urn:test\"><n>x</n></told>");
    world.finish(world.invocation("boss"), vec![bad, call("ping", 1), call("ping", 2)]);
    world.finish(world.invocation("boss"), vec![]);
    world.finish(world.invocation("boss"), vec![]);
    let started: Vec<_> = world.take_started().into_iter().filter(|line| line.starts_with("boss")).collect();
    assert_eq!(
        started[1..],
        ["boss <- system: !payload", "boss <- worker: !failed (0/2, 1 left)", "boss <- worker: pong 2 (1/2, 0 left)"]
    );
    world.finish(world.invocation("boss"), vec![reply("told", 0)]);
}

#[test]
fn an_idle_child_is_counted_off() {
    let mut world = fanned(|_| {}, idle, 3);
    let invocation = world.invocation_with("worker", 1);
    world.finish(invocation, vec![]);
    for n in [0, 2] {
        let invocation = world.invocation_with("worker", n);
        world.finish(invocation, vec![reply("pong", n)]);
    }
    world.finish(world.invocation("boss"), vec![]);
    assert_eq!(world.take_started(), ["boss <- worker: pong 0 (0/3, 1 left)", "boss <- worker: pong 2 (2/3, 0 left)"]);
    world.finish(world.invocation("boss"), vec![reply("told", 0)]);
}

#[test]
fn remaining_is_computed_at_dispatch() {
    let mut world = fanned(|_| {}, idle, 3);
    for n in [0, 1] {
        let invocation = world.invocation_with("worker", n);
        world.finish(invocation, vec![reply("pong", n)]);
    }
    // The second answer is queued when the last child is counted off.
    world.finish(world.invocation("worker"), vec![]);
    world.finish(world.invocation("boss"), vec![]);
    assert_eq!(world.take_started(), ["boss <- worker: pong 0 (0/3, 2 left)", "boss <- worker: pong 1 (1/3, 0 left)"]);
    world.finish(world.invocation("boss"), vec![reply("told", 0)]);
}

#[test]
fn a_count_off_after_the_last_delivery_ends_the_fan_out_for_who_asks_for_it() {
    let mut world = fanned(takes_the_end, idle, 2);
    let invocation = world.invocation_with("worker", 0);
    world.finish(invocation, vec![reply("pong", 0)]);
    world.finish(world.invocation("boss"), vec![]);
    world.finish(world.invocation("worker"), vec![]);
    assert_eq!(world.take_started(), ["boss <- worker: pong 0 (0/2, 1 left)", "boss <- core: fan-out-ended"]);
    world.finish(world.invocation("boss"), vec![reply("told", 1)]);
    assert_eq!(world.said(), ["boss: told 1"]);
}

#[test]
fn without_asking_a_fan_out_that_ends_is_silence() {
    let mut world = fanned(|_| {}, idle, 2);
    let invocation = world.invocation_with("worker", 0);
    world.finish(invocation, vec![reply("pong", 0)]);
    world.finish(world.invocation("boss"), vec![]);
    assert_eq!(world.said(), [""; 0]);
    world.finish(world.invocation("worker"), vec![]);
    assert_eq!(world.said(), ["boss: !silent"]);
}

#[test]
fn a_single_idle_call_ends_its_fan_out_of_one() {
    let mut world = fanned(takes_the_end, idle, 1);
    world.finish(world.invocation("worker"), vec![]);
    assert_eq!(world.take_started(), ["boss <- core: fan-out-ended"]);
    world.finish(world.invocation("boss"), vec![reply("told", 1)]);
}

#[test]
fn silence_is_an_error_by_default() {
    let mut world = fanned(takes_faults, |_| {}, 1);
    world.finish(world.invocation("worker"), vec![]);
    let fault = fault_of(world.message(world.invocation("boss"))).clone();
    assert_eq!((fault.code, fault.code.element()), (FaultCode::Silent, "agent-error"));
    assert_eq!(world.take_started(), ["boss <- worker: !silent"]);
    world.finish(world.invocation("boss"), vec![reply("told", 1)]);
}

#[test]
fn idle_silence_climbs_and_is_judged_anew_at_each_thread() {
    let mut world = fanned(|_| {}, idle, 1);
    world.finish(world.invocation("worker"), vec![]);
    assert_eq!(world.said(), ["boss: !silent"], "an idle worker, a boss that must answer");
    let mut world = fanned(idle, idle, 1);
    world.finish(world.invocation("worker"), vec![]);
    assert_eq!(world.said(), [""; 0], "idle all the way up");
    assert_eq!(world.paths(), ["root"]);
}

#[test]
fn an_answer_is_no_silence_of_the_other_children() {
    let mut world = fanned(|_| {}, |_| {}, 3);
    let invocation = world.invocation_with("worker", 1);
    world.finish(invocation, vec![reply("pong", 1)]);
    world.finish(world.invocation("boss"), vec![reply("told", 7)]);
    assert_eq!(world.said(), ["boss: told 7"]);
    assert_eq!(world.aborted.len(), 2, "the open children are cancelled");
    assert_eq!(world.paths(), ["root"]);
}

#[test]
fn a_deep_chain_of_idle_threads_closes_at_once() {
    let chain = listener("chain", |chain| {
        chain.accepts = qnames(&["ask"]);
        chain.calls = qnames(&["ask"]);
        chain.replies = qnames(&["told"]);
        chain.silence = Silence::Idle;
    });
    let mut world = Setup::new(vec![chain]).build();
    world.emits("chain", |message| match number_in(message) {
        63 => vec![],
        n => vec![call("ask", n + 1)],
    });
    world.send("alice", letter("ask", 0));
    assert_eq!(world.started.len(), 64);
    assert_eq!(world.paths(), ["root"]);
}

#[test]
fn a_path_counts_the_children_of_the_same_listener() {
    let mut world = Setup::new(vec![boss(|_| {}), worker(|_| {}), server("smith", &["job"], &["done"])]).build();
    world.send("alice", letter("ask", 1));
    world.call(
        world.invocation("boss"),
        0,
        vec![call("ping", 1), call("job", 2), call("ping", 3), call("job", 4)],
        Join::All,
    );
    let below = ["worker", "smith", "worker#2", "smith#2"].map(|child| format!("root/boss/{child}"));
    assert_eq!(world.paths()[2..], below);
    for (listener, answer, n) in
        [("worker", "pong", 1), ("worker", "pong", 3), ("smith", "done", 2), ("smith", "done", 4)]
    {
        world.finish(world.invocation_with(listener, n), vec![reply(answer, n)]);
    }
    world.finish(world.invocation("boss"), vec![call("ping", 5)]);
    assert_eq!(world.paths()[2..], ["root/boss/worker#3"], "an ordinal is never given twice");
    world.finish(world.invocation("worker"), vec![reply("pong", 5)]);
    world.finish(world.invocation("boss"), vec![reply("told", 1)]);
}
