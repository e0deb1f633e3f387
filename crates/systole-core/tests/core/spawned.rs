//! Threads that a listener keeps: `<spawn-thread>`, addressed calls, `<close-thread>`.

use systole_core::core::*;
use systole_core::vocab::{FaultCode, ThreadId};

use super::harness::*;
use super::payloads::*;

fn owner(change: impl FnOnce(&mut Contract)) -> Contract {
    boss(|boss| {
        boss.returns.push(meta_qname("thread-spawned"));
        boss.accepts_faults = true;
        boss.timeout = None;
        change(boss);
    })
}

/// A boss that has asked for a thread of `worker`, and has been told its id; the worker has
/// `ping 0`, and its answer is to come.
fn spawned(worker_is: fn(&mut Contract)) -> (World, ThreadId) {
    let mut world = Setup::new(vec![owner(|_| {}), worker(worker_is)]).build();
    world.send("alice", letter("ask", 0));
    world.finish(world.invocation("boss"), vec![spawn("ping", 0)]);
    let id = told_id(&world);
    (world, id)
}

/// The id in the `<thread-spawned>` that the boss has.
fn told_id(world: &World) -> ThreadId {
    let Body::Payload { payload, .. } = &world.message(world.invocation("boss")).body else { panic!("an id") };
    assert_eq!(payload.payload().root(), &meta_qname("thread-spawned"));
    spawned_id(payload.payload())
}

fn close(thread: ThreadId) -> Emission {
    on(thread, meta("close-thread"))
}

fn working(world: &World) -> String {
    describe(world.message(world.invocation("worker")))
}

#[test]
fn spawning_tells_the_id_and_answers_the_first_payload_under_the_next_index() {
    let (mut world, id) = spawned(|_| {});
    assert_eq!(
        world.take_started(),
        ["boss <- alice: ask 0", "worker <- boss: ping 0", "boss <- core: thread-spawned (0/2, 1 left)"]
    );
    assert_eq!(world.message(world.invocation("worker")).thread, id);
    world.finish(world.invocation("worker"), vec![reply("pong", 0)]);
    world.finish(world.invocation("boss"), vec![]);
    assert_eq!(world.take_started(), ["boss <- worker: pong 0 (1/2, 0 left)"]);
    world.finish(world.invocation("boss"), vec![reply("told", 1)]);
}

#[test]
fn an_addressed_message_is_a_call_on_the_same_thread() {
    let (mut world, id) = spawned(|worker| worker.context = true);
    world.finish(world.invocation("worker"), vec![reply("pong", 0)]);
    world.finish(world.invocation("boss"), vec![]);
    world.take_started();
    world.finish(world.invocation("boss"), vec![on(id, call("ping", 1))]);
    let message = world.message(world.invocation("worker"));
    assert_eq!(message.thread, id);
    let history: Vec<_> = message.history.iter().map(|said| short(&said.payload)).collect();
    assert_eq!(history, ["ping 0", "pong 0"], "it remembers the call before");
    world.finish(world.invocation("worker"), vec![reply("pong", 1)]);
    assert_eq!(world.take_started(), ["worker <- boss: ping 1", "boss <- worker: pong 1"]);
    world.finish(world.invocation("boss"), vec![reply("told", 1)]);
}

#[test]
fn the_next_call_starts_when_the_one_before_is_answered() {
    let (mut world, id) = spawned(|_| {});
    world.finish(world.invocation("boss"), (1..4).map(|n| on(id, call("ping", n))).collect());
    assert_eq!(world.runs("worker"), 1);
    for n in 0..4 {
        assert_eq!(working(&world), format!("ping {n}"));
        world.finish(world.invocation("worker"), vec![reply("pong", 10 + n)]);
    }
    for _ in 0..3 {
        world.finish(world.invocation("boss"), vec![]);
    }
    let answers: Vec<_> = world.take_started().into_iter().filter(|line| line.contains("pong")).collect();
    assert_eq!(
        answers,
        [
            "boss <- worker: pong 10 (1/2, 0 left)",
            "boss <- worker: pong 11 (0/3, 2 left)",
            "boss <- worker: pong 12 (1/3, 1 left)",
            "boss <- worker: pong 13 (2/3, 0 left)",
        ]
    );
    world.finish(world.invocation("boss"), vec![reply("told", 1)]);
}

#[test]
fn a_spawned_thread_that_owes_nothing_is_no_open_child() {
    let (mut world, _) = spawned(|_| {});
    world.finish(world.invocation("worker"), vec![reply("pong", 0)]);
    world.finish(world.invocation("boss"), vec![]);
    assert_eq!(world.paths(), ["root", "root/boss", "root/boss/worker"]);
    world.finish(world.invocation("boss"), vec![]);
    assert_eq!(world.said(), ["boss: !silent"], "nothing is open, so the boss was silent");
    assert_eq!(world.paths(), ["root"], "and its thread went with it");
}

#[test]
fn a_spawned_thread_survives_its_own_failures() {
    let (mut world, id) = spawned(|_| {});
    world.finish(world.invocation("boss"), vec![on(id, call("ping", 1)), on(id, call("ping", 2))]);
    world.fail(world.invocation("worker"), "no");
    assert_eq!(working(&world), "ping 1");
    world.end(world.invocation("worker"), HandlerOutcome::Panicked);
    world.run();
    assert_eq!(working(&world), "ping 2");
    world.sleep(secs(30));
    for _ in 0..2 {
        world.finish(world.invocation("boss"), vec![]);
    }
    let faults: Vec<_> = world.take_started().into_iter().filter(|line| line.contains('!')).collect();
    assert_eq!(
        faults,
        [
            "boss <- worker: !failed (1/2, 0 left)",
            "boss <- worker: !listener-failed (0/2, 1 left)",
            "boss <- worker: !timeout (1/2, 0 left)"
        ]
    );
    world.finish(world.invocation("boss"), vec![on(id, call("ping", 3))]);
    world.finish(world.invocation("worker"), vec![]);
    assert_eq!(world.take_started().last().unwrap(), "boss <- worker: !silent");
    world.finish(world.invocation("boss"), vec![reply("told", 1)]);
}

#[test]
fn mistakes_of_one_call_are_not_held_against_the_next() {
    let (mut world, id) = spawned(|worker| worker.accepts_faults = true);
    world.finish(world.invocation("boss"), vec![on(id, call("ping", 1))]);
    for _ in 0..3 {
        world.finish(world.invocation("worker"), vec![call("note", 1)]);
    }
    assert_eq!(working(&world), "ping 1", "the call before has failed");
    world.finish(world.invocation("worker"), vec![call("note", 1)]);
    world.finish(world.invocation("worker"), vec![reply("pong", 1)]);
    world.finish(world.invocation("boss"), vec![]);
    assert_eq!(world.take_started().last().unwrap(), "boss <- worker: pong 1");
    world.finish(world.invocation("boss"), vec![reply("told", 1)]);
}

#[test]
fn an_idle_spawned_thread_is_counted_off_and_stays() {
    let (mut world, id) = spawned(|worker| worker.silence = Silence::Idle);
    world.finish(world.invocation("worker"), vec![]);
    world.take_started();
    world.finish(world.invocation("boss"), vec![on(id, call("ping", 1))]);
    world.finish(world.invocation("worker"), vec![reply("pong", 1)]);
    assert_eq!(world.take_started(), ["worker <- boss: ping 1", "boss <- worker: pong 1"]);
    world.finish(world.invocation("boss"), vec![reply("told", 1)]);
}

#[test]
fn only_its_owner_can_address_it() {
    let (mut world, id) = spawned(|_| {});
    world.send("alice", letter("ask", 5));
    let other = world.invocation_with("boss", 5);
    world.finish(other, vec![on(id, call("ping", 6))]);
    let stranger = world.running.iter().find(|running| matches!(running.message.body, Body::Fault(_))).unwrap();
    assert_eq!(fault_of(&stranger.message).code, FaultCode::Route);
    let stranger = stranger.invocation;
    world.finish(stranger, vec![reply("told", 5)]);
    world.send("bob", letter("ping", 7).thread(id));
    assert_eq!(world.runs("worker"), 2, "bob's opened a conversation of its own");
    let bobs = world.invocation_with("worker", 7);
    assert_ne!(world.message(bobs).thread, id);
    world.finish(bobs, vec![reply("pong", 7)]);
    world.finish(world.invocation_with("worker", 0), vec![reply("pong", 0)]);
    let told = world.invocation("boss");
    world.finish(told, vec![reply("told", 1)]);
}

#[test]
fn what_it_does_not_accept_is_refused_like_any_call() {
    let (mut world, id) = spawned(|_| {});
    world.finish(world.invocation("worker"), vec![reply("pong", 0)]);
    world.finish(
        world.invocation("boss"),
        vec![on(id, call("job", 1)), on(id, call("note", 1)), on(id, meta("clear-context"))],
    );
    for _ in 0..3 {
        world.finish(world.invocation("boss"), vec![]);
    }
    let faults: Vec<_> = world.take_started().into_iter().filter(|line| line.contains('!')).collect();
    assert_eq!(
        faults,
        [
            "boss <- system: !route (0/3, 2 left)",
            "boss <- system: !route (1/3, 1 left)",
            "boss <- system: !route (2/3, 0 left)"
        ]
    );
    world.finish(world.invocation("boss"), vec![reply("told", 1)]);
}

#[test]
fn closing_ends_it_and_counts_off_what_it_owed() {
    let (mut world, id) = spawned(|_| {});
    world.finish(
        world.invocation("boss"),
        vec![on(id, call("ping", 1)), on(id, call("ping", 2)), close(id), call("ping", 3)],
    );
    assert_eq!(world.aborted.len(), 1, "the first call was at work");
    assert_eq!(world.paths(), ["root", "root/boss", "root/boss/worker#2"]);
    world.finish(world.invocation("worker"), vec![reply("pong", 3)]);
    assert_eq!(world.take_started().last().unwrap(), "boss <- worker: pong 3 (3/4, 0 left)");
    world.finish(world.invocation("boss"), vec![on(id, call("ping", 4))]);
    assert_eq!(fault_of(world.message(world.invocation("boss"))).code, FaultCode::Route, "it is gone");
    world.finish(world.invocation("boss"), vec![reply("told", 1)]);
}

#[test]
fn closing_what_is_being_closed_and_calling_it_in_one_response_is_safe() {
    let (mut world, id) = spawned(|_| {});
    world.finish(world.invocation("boss"), vec![close(id), on(id, call("ping", 1)), close(id)]);
    assert_eq!(world.take_started().last().unwrap(), "boss <- system: !route (1/3, 0 left)");
    world.finish(world.invocation("boss"), vec![reply("told", 1)]);
}

#[test]
fn an_awaited_call_on_a_thread_that_is_closed_is_silent() {
    let (mut world, id) = spawned(|_| {});
    let boss = world.invocation("boss");
    world.call(boss, 0, vec![on(id, call("ping", 1)), on(id, call("ping", 2))], Join::Settled);
    world.call(boss, 1, vec![close(id)], Join::Settled);
    let results = [world.next_resume(), world.next_resume()];
    world.handle(0, Input::Parked { invocation: boss.id });
    world.run();
    let results = results.into_iter().chain([world.next_resume()]).flatten().collect::<Vec<_>>();
    assert_eq!(results, ["0: 0 !silent, 1 !silent", "1: 0 !silent"]);
    world.finish(boss, vec![reply("told", 1)]);
}

#[test]
fn late_output_never_answers_the_next_call() {
    let (mut world, id) = spawned(|_| {});
    world.finish(world.invocation("worker"), vec![reply("pong", 0)]);
    let boss = world.invocation("boss");
    world.call(boss, 0, vec![on(id, call("ping", 1))], Join::All);
    world.handle(
        0,
        Input::Called {
            invocation: boss.id,
            call: CallId(1),
            requests: vec![on(id, call("ping", 2))],
            join: Join::All,
            within: None,
        },
    );
    world.run();
    // The answer to the first call is on the entrance queue when the boss gives that call up.
    world.end(world.invocation("worker"), HandlerOutcome::Emitted(vec![reply("pong", 1)]));
    world.handle(0, Input::CallDropped { invocation: boss.id, call: CallId(0) });
    world.run();
    assert_eq!(working(&world), "ping 2");
    assert_eq!(world.resumed.len(), 0);
    world.finish(world.invocation("worker"), vec![reply("pong", 2)]);
    assert_eq!(world.next_resume().unwrap(), "1: 0 pong 2");
    world.finish(boss, vec![reply("told", 1)]);
}

#[test]
fn late_output_of_a_thread_that_owes_nothing_is_just_cancelled() {
    let mut world = Setup::new(vec![owner(|_| {}), worker(|_| {})]).build();
    world.send("alice", letter("ask", 0));
    let boss = world.invocation("boss");
    let id = world.spawn_on(boss);
    world.call(boss, 0, vec![on(id, call("ping", 1))], Join::All);
    world.end(world.invocation("worker"), HandlerOutcome::Emitted(vec![reply("pong", 1)]));
    world.handle(0, Input::CallDropped { invocation: boss.id, call: CallId(0) });
    world.run();
    assert_eq!((world.dead(), world.paths().len()), (vec![], 3));
    world.finish(boss, vec![reply("told", 1)]);
}

#[test]
fn a_dropped_call_that_had_not_started_is_owed_no_more() {
    let mut world = Setup::new(vec![owner(|_| {}), worker(|_| {})]).build();
    world.send("alice", letter("ask", 0));
    let boss = world.invocation("boss");
    let id = world.spawn_on(boss);
    for (group, n) in [(0, 1), (1, 2)] {
        let requests = vec![on(id, call("ping", n))];
        world.handle(
            0,
            Input::Called { invocation: boss.id, call: CallId(group), requests, join: Join::All, within: None },
        );
    }
    world.run();
    world.handle(0, Input::CallDropped { invocation: boss.id, call: CallId(1) });
    world.finish(world.invocation("worker"), vec![reply("pong", 1)]);
    world.finish(boss, vec![]);
    assert_eq!(world.said(), ["boss: !silent"], "nothing is open any more");
}

#[test]
fn a_dropped_call_on_a_spawned_thread_leaves_the_thread_and_its_other_calls() {
    let (mut world, id) = spawned(|_| {});
    let boss = world.invocation("boss");
    for (group, n) in [(0, 1), (1, 2), (2, 3)] {
        let requests = vec![on(id, call("ping", n))];
        world.handle(
            0,
            Input::Called { invocation: boss.id, call: CallId(group), requests, join: Join::All, within: None },
        );
    }
    world.run();
    world.handle(0, Input::CallDropped { invocation: boss.id, call: CallId(1) });
    world.finish(world.invocation("worker"), vec![reply("pong", 0)]);
    assert_eq!(working(&world), "ping 1");
    world.handle(0, Input::CallDropped { invocation: boss.id, call: CallId(0) });
    world.run();
    assert_eq!(working(&world), "ping 3");
    world.finish(world.invocation("worker"), vec![reply("pong", 3)]);
    assert_eq!(world.next_resume().unwrap(), "2: 0 pong 3");
    world.finish(boss, vec![]);
    assert_eq!(world.take_started().last().unwrap(), "boss <- worker: pong 0 (1/2, 0 left)");
    world.finish(world.invocation("boss"), vec![reply("told", 1)]);
}

#[test]
fn an_addressed_call_takes_a_place_in_both_mailboxes() {
    let mut setup = Setup::new(vec![owner(|_| {}), worker(|_| {})]);
    setup.blueprint = |blueprint| blueprint.limits.mailbox = 4;
    let mut world = setup.build();
    world.send("alice", letter("ask", 0));
    world.finish(world.invocation("boss"), vec![spawn("ping", 0)]);
    let id = told_id(&world);
    world.finish(world.invocation("boss"), (1..6).map(|n| on(id, call("ping", n))).collect());
    let limited = |world: &mut World| world.take_started().iter().filter(|line| line.contains("!limit")).count();
    assert_eq!(limited(&mut world), 1, "one open, three more fit; the first refusal is delivered");
    world.finish(world.invocation("boss"), vec![]);
    assert_eq!(limited(&mut world), 1);
    for n in 0..4 {
        assert_eq!(working(&world), format!("ping {n}"));
        world.finish(world.invocation("worker"), vec![reply("pong", n)]);
    }
    world.finish(world.invocation("boss"), vec![reply("told", 1)]);
}

#[test]
fn a_call_on_a_spawned_thread_opens_none() {
    let mut setup = Setup::new(vec![owner(|_| {}), worker(|_| {})]);
    setup.blueprint = |blueprint| blueprint.limits.conversation_threads = 3;
    let mut world = setup.build();
    world.emits("worker", |message| vec![reply("pong", number_in(message))]);
    world.send("alice", letter("ask", 0));
    world.finish(world.invocation("boss"), vec![spawn("ping", 0)]);
    let id = told_id(&world);
    world.finish(world.invocation("boss"), vec![]);
    world.finish(world.invocation("boss"), vec![on(id, call("ping", 1))]);
    assert_eq!(world.take_started().last().unwrap(), "boss <- worker: pong 1");
    world.finish(world.invocation("boss"), vec![reply("told", 1)]);
}

#[test]
fn a_refused_spawn_holds_both_indices() {
    let bad = "<spawn-thread xmlns=\"https://xml-pipeline.org/ns/meta/v1\" payload=\"{urn:test}ping\"><ping xmlns=\"urn:test\"><n>x</n></ping></spawn-thread>";
    for (first, code) in [(spawn("job", 1), "route"), (spawn("note", 1), "route"), (call_xml(bad), "payload")] {
        let mut world = Setup::new(vec![owner(|_| {}), worker(|_| {})]).build();
        world.emits("worker", |message| vec![reply("pong", number_in(message))]);
        world.send("alice", letter("ask", 0));
        world.finish(world.invocation("boss"), vec![first, call("ping", 2)]);
        world.finish(world.invocation("boss"), vec![]);
        world.finish(world.invocation("boss"), vec![]);
        let started: Vec<_> = world.take_started().into_iter().filter(|line| line.starts_with("boss")).collect();
        let faults =
            [format!("boss <- system: !{code} (0/3, 2 left)"), format!("boss <- system: !{code} (1/3, 1 left)")];
        assert_eq!(started[1..3], faults);
        assert_eq!(started[3], "boss <- worker: pong 2 (2/3, 0 left)");
        world.finish(world.invocation("boss"), vec![reply("told", 1)]);
    }
}

#[test]
fn a_broadcast_can_not_be_spawned() {
    let broadcast = |name: &str| {
        listener(name, |contract| {
            contract.accepts = qnames(&["job"]);
            contract.routing = Routing::Broadcast;
        })
    };
    let mut world = Setup::new(vec![owner(|_| {}), broadcast("a"), broadcast("b")]).build();
    world.send("alice", letter("ask", 0));
    world.finish(world.invocation("boss"), vec![spawn("job", 1)]);
    assert_eq!(fault_of(world.message(world.invocation("boss"))).code, FaultCode::Route);
    world.finish(world.invocation("boss"), vec![reply("told", 1)]);
}

#[test]
fn where_spawning_is_switched_off_it_looks_as_if_nobody_did_it() {
    let mut setup = Setup::new(vec![owner(|_| {}), worker(|_| {})]);
    setup.blueprint = |blueprint| blueprint.meta.spawn_thread = Access::None;
    let mut world = setup.build();
    world.send("alice", letter("ask", 0));
    world.finish(world.invocation("boss"), vec![spawn("ping", 1)]);
    let fault = fault_of(world.message(world.invocation("boss"))).clone();
    assert_eq!(fault.code, FaultCode::Route);
    assert!(fault.message.contains("spawn-thread"), "{fault}");
    assert_eq!(world.runs("worker"), 0);
    world.finish(world.invocation("boss"), vec![reply("told", 1)]);
}

#[test]
fn a_client_can_not_spawn() {
    let mut world = Setup::new(vec![worker(|_| {})]).build();
    let meta = systole_core::vocab::ns::META;
    for payload in [
        format!("<spawn-thread xmlns=\"{meta}\" payload=\"{{urn:test}}ping\">{}</spawn-thread>", xml("ping", 1)),
        format!("<close-thread xmlns=\"{meta}\"/>"),
        format!("<clear-context xmlns=\"{meta}\"/>"),
    ] {
        world.send("alice", letter_xml(&payload));
    }
    assert_eq!(world.said(), ["system: !route"; 3]);
    let told = world.egress.len() + world.runs("worker");
    assert_eq!(told, 0);
}

#[test]
fn spawned_threads_of_one_owner_run_side_by_side() {
    let mut world = Setup::new(vec![owner(|_| {}), worker(|_| {})]).build();
    world.send("alice", letter("ask", 0));
    let boss = world.invocation("boss");
    world.call(boss, 0, vec![spawn("ping", 1), spawn("ping", 2)], Join::Settled);
    assert_eq!(world.runs("worker"), 2);
    let invocation = world.invocation_with("worker", 2);
    world.finish(invocation, vec![reply("pong", 2)]);
    let invocation = world.invocation_with("worker", 1);
    world.finish(invocation, vec![reply("pong", 1)]);
    assert_eq!(world.next_resume().unwrap(), "0: 0 thread-spawned, 1 pong 1, 2 thread-spawned, 3 pong 2");
    world.finish(boss, vec![reply("told", 1)]);
    assert_eq!(world.paths(), ["root"]);
}
