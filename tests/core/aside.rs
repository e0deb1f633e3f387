//! Payloads that libxml judges: the core asks for it, and goes on with everything else. Of those here `ping` and
//! `done` are on that path.

use systole::core::*;
use systole::ladder::Raw;
use systole::vocab::FaultCode;

use super::harness::*;
use super::payloads::*;

/// A world whose judges take their time, without waiting for `worker`, whose `ping` they judge.
fn slow(change: impl FnOnce(&mut Contract)) -> World {
    let setup = Setup::new(vec![boss(change), worker(|_| {}), server("clerk", &["job"], &["told"])]);
    let mut world = Setup { libxml: true, ..setup }.build();
    world.slow_judges = true;
    world
}

fn asked(judgement: &(usize, JudgementId, Vec<systole::ladder::Canonical>)) -> Vec<String> {
    judgement.2.iter().map(short).collect()
}

#[test]
fn the_shard_goes_on_while_a_message_is_judged() {
    let mut world = slow(|_| {});
    world.send("alice", letter("ping", 1).label("slow"));
    assert_eq!(asked(&world.judgements[0]), ["ping 1"]);
    world.send("alice", letter("ask", 2).label("fast"));
    world.finish(world.task("boss"), vec![reply("told", 3)]);
    assert_eq!(world.said(), ["boss: told 3 [fast]"]);
    assert!(!world.is_idle() && !world.cores[0].is_idle());
    assert_eq!(world.cores[0].waiting(), 1);
    world.judge(0);
    world.run();
    world.slow_judges = false;
    world.finish(world.task("worker"), vec![reply("pong", 4)]);
    assert_eq!(world.said(), ["worker: pong 4 [slow]"]);
}

#[test]
fn what_breaks_its_contract_is_refused_with_the_rule() {
    let mut world = slow(|_| {});
    world.send("alice", letter_xml("<ping xmlns=\"urn:test\"><n>x</n></ping>").label("l"));
    world.judge(0);
    world.run();
    let fault = world.egress[0].fault.clone().unwrap();
    assert_eq!(fault.code, FaultCode::Payload);
    assert!(fault.rule.unwrap().rule.contains("'x'"));
}

#[test]
fn what_is_too_large_for_libxml_or_for_nobody_is_refused_at_once() {
    let mut world = slow(|_| {});
    let text = "x".repeat(64 << 10);
    world.send("alice", letter_xml(&format!("<ping xmlns=\"urn:test\"><n>1</n><text>{text}</text></ping>")).label("l"));
    world.send("alice", letter("ping", 1).to("boss").label("m"));
    assert_eq!(world.said(), ["system: !payload [l]", "system: !route [m]"]);
    assert!(world.judgements.is_empty());
}

#[test]
fn a_conversation_keeps_the_order_of_its_messages() {
    let mut world = slow(|_| {});
    let root = world.send("alice", letter("ask", 0));
    world.send("alice", letter("ping", 1).thread(root));
    world.send("alice", letter("ask", 2).thread(root));
    world.leave(root);
    assert_eq!(world.take_started(), ["boss <- alice: ask 0"]);
    world.finish(world.task("boss"), vec![reply("told", 0)]);
    assert_eq!(world.closed, [], "a conversation was closed that a message is judged for");
    world.judge(0);
    world.run();
    assert_eq!(world.take_started(), ["worker <- alice: ping 1", "boss <- alice: ask 2"]);
    world.finish(world.task("boss"), vec![reply("told", 2)]);
    world.finish(world.task("worker"), vec![reply("pong", 1)]);
    assert_eq!(world.closed, [root]);
}

#[test]
fn an_idle_conversation_waits_for_a_message_that_is_judged() {
    let mut world = slow(|_| {});
    let root = world.send("alice", letter("ask", 0));
    world.finish(world.task("boss"), vec![reply("told", 0)]);
    world.send("alice", letter("ping", 1).thread(root));
    world.sleep(secs(3600));
    assert_eq!(world.closed, []);
    world.judge(0);
    world.run();
    world.finish(world.task("worker"), vec![reply("pong", 1)]);
    assert_eq!(world.paths(), ["root"]);
}

#[test]
fn what_was_cancelled_meanwhile_is_dropped_and_counted() {
    let mut world = slow(|_| {});
    let root = world.send("alice", letter("ask", 0));
    world.send("alice", letter("ping", 1).thread(root));
    world.end(world.task("boss"), Outcome::Emitted(vec![call("ping", 2), call("job", 3)]));
    world.run();
    assert_eq!(world.judgements.len(), 2);
    world.cancel(root);
    assert_eq!(world.closed, [root]);
    assert_eq!(world.counts().cancelled, 0);
    world.be_quick();
    world.run();
    assert_eq!(world.counts().cancelled, 3);
    assert_eq!(world.paths(), [""; 0]);
    assert_eq!(world.take_started(), ["boss <- alice: ask 0"]);
}

#[test]
fn a_thread_is_busy_and_starts_nothing_while_its_response_is_judged() {
    let mut world = slow(|boss| boss.returns.extend(qnames(&["told"])));
    world.send("alice", letter("ask", 0).label("l"));
    world.finish(world.task("boss"), vec![call("job", 1), call("job", 2)]);
    world.be_quick();
    world.slow_judges = true;
    world.run();
    world.finish(world.task_with("clerk", 1), vec![reply("told", 1)]);
    world.finish(world.task("clerk"), vec![reply("told", 2)]);
    // The answer of the first runs; what it calls is judged before the second one starts.
    world.finish(world.task("boss"), vec![call("ping", 3)]);
    assert_eq!((world.runs("boss"), world.judgements.len()), (0, 1));
    world.judge(0);
    world.run();
    assert_eq!((world.runs("boss"), world.runs("worker")), (1, 1));
    world.finish(world.task("boss"), vec![reply("told", 9)]);
    assert_eq!(world.said(), ["boss: told 9 [l]"]);
}

#[test]
fn awaited_calls_keep_their_order_and_those_that_are_given_up_are_counted() {
    let mut world = slow(|boss| boss.calls.extend(qnames(&["note"])));
    world.send("alice", letter("ask", 0).label("l"));
    let task = world.task("boss");
    world.call(task, 1, vec![call("ping", 1)], Join::All);
    world.call(task, 2, vec![call("note", 2)], Join::All);
    assert_eq!(world.next_resume(), None, "a call overtook one that is judged");
    world.handle(0, Input::CallDropped { task: task.id, call: CallId(1) });
    world.judge(0);
    world.run();
    assert_eq!(world.next_resume().as_deref(), Some("2: !route"));
    assert_eq!((world.runs("worker"), world.counts().cancelled), (0, 1));
    world.finish(task, vec![reply("told", 1)]);
}

#[test]
fn the_first_payload_of_a_spawned_thread_is_judged_too() {
    let mut world = slow(|boss| boss.returns.push(meta_qname("thread-spawned")));
    world.send("alice", letter("ask", 0).label("l"));
    let task = world.task("boss");
    world.call(task, 1, vec![spawn("ping", 1), spawn_xml("ping", "<ping xmlns=\"urn:test\"/>")], Join::Settled);
    assert_eq!(asked(&world.judgements[0]), ["ping 1", "ping"]);
    world.judge(0);
    world.run();
    world.finish(world.task("worker"), vec![reply("pong", 1)]);
    let resumed = world.next_resume().unwrap();
    assert_eq!(resumed, "1: 0 thread-spawned, 1 pong 1, 2 !payload, 3 !payload");
    world.finish(task, vec![reply("told", 1)]);
}

#[test]
fn of_two_equal_payloads_each_is_told_its_own_place() {
    let mut world = slow(|boss| boss.accepts_faults = true);
    world.send("alice", letter("ask", 0).label("l"));
    let bad = "<ping xmlns=\"urn:test\"><n>x</n></ping>";
    world.end(world.task("boss"), Outcome::Wrote(Raw::new(format!("{bad}\n{bad}"))));
    world.run();
    world.be_quick();
    world.run();
    let mut lines = Vec::new();
    for _ in 0..2 {
        let task = world.task("boss");
        lines.push(fault_of(world.message(task)).rule.clone().unwrap().at.unwrap().line);
        world.finish(task, if lines.len() == 2 { vec![reply("told", 1)] } else { vec![] });
    }
    assert_eq!(lines, [1, 2]);
}

#[test]
fn a_dead_letter_is_judged_before_it_goes_again() {
    let mut world = slow(|_| {});
    world.send("alice", letter("ask", 0));
    world.finish(world.task("boss"), vec![call("ping", 1), reply("told", 2)]);
    world.judge(0);
    world.run();
    assert_eq!(world.dead(), ["ping 1"]);
    world.requeue(world.last_letter(0)).unwrap();
    assert_eq!(asked(&world.judgements[0]), ["ping 1"]);
    assert_eq!(world.cores[0].waiting(), 1);
    world.judge(0);
    world.run();
    world.finish(world.task("worker"), vec![]);
}

#[test]
fn stopping_answers_what_is_judged() {
    let mut world = slow(|_| {});
    world.send("alice", letter("ping", 1).label("l"));
    world.send("alice", letter("ask", 0).label("m"));
    world.end(world.task("boss"), Outcome::Emitted(vec![call("ping", 2)]));
    world.run();
    world.tell(|| Input::Stop);
    let mut said = world.said();
    said.sort();
    assert_eq!(said, ["system: !cancelled", "system: !cancelled [l]"]);
    assert_eq!(world.dead(), ["ping 2"]);
    // Verdicts that come too late change nothing.
    world.be_quick();
    world.run();
    assert!(world.paths().is_empty());
}
