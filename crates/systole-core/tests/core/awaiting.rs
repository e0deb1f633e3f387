//! Handlers that wait for answers.

use systole_core::core::*;

use super::harness::*;
use super::payloads::*;

/// A boss whose handler runs, and workers that hold what they get.
fn world(boss_is: fn(&mut Contract), worker_is: fn(&mut Contract)) -> (World, Invocation) {
    let mut world = Setup::new(vec![boss(boss_is), worker(worker_is)]).build();
    world.send("alice", letter("ask", 0));
    world.take_started();
    let invocation = world.invocation("boss");
    (world, invocation)
}

fn pings(n: i64) -> Vec<Emission> {
    (0..n).map(|n| call("ping", n)).collect()
}

impl World {
    fn answer(&mut self, n: i64) {
        let invocation = self.invocation_with("worker", n);
        self.finish(invocation, vec![reply("pong", 10 + n)]);
    }

    fn refuse(&mut self, n: i64) {
        let invocation = self.invocation_with("worker", n);
        self.fail(invocation, "no");
    }
}

#[test]
fn all_gives_every_reply_in_order() {
    let (mut world, boss) = world(|_| {}, |_| {});
    world.call(boss, 0, pings(3), Join::All);
    world.answer(2);
    world.answer(0);
    assert_eq!(world.next_resume(), None);
    world.answer(1);
    assert_eq!(world.next_resume().unwrap(), "0: 0 pong 10, 1 pong 11, 2 pong 12");
    world.finish(boss, vec![reply("told", 1)]);
    assert_eq!(world.said(), ["boss: told 1"]);
}

#[test]
fn an_awaited_answer_never_enters_the_mailbox() {
    let (mut world, boss) = world(|boss| boss.returns.clear(), |_| {});
    world.call(boss, 0, pings(1), Join::All);
    world.answer(0);
    assert_eq!(world.next_resume().unwrap(), "0: 0 pong 10");
    assert!(world.take_started().iter().all(|line| line.starts_with("worker")));
    world.finish(boss, vec![reply("told", 1)]);
}

#[test]
fn the_first_fault_ends_all_and_cancels_the_losers() {
    let (mut world, boss) = world(|_| {}, |_| {});
    world.call(boss, 0, pings(3), Join::All);
    world.answer(0);
    world.refuse(1);
    assert_eq!(world.next_resume().unwrap(), "0: !failed");
    assert_eq!((world.aborted.len(), world.runs("worker")), (1, 0));
    world.finish(boss, vec![reply("told", 1)]);
}

#[test]
fn first_takes_the_first_reply_and_cancels_the_rest() {
    let (mut world, boss) = world(|_| {}, |_| {});
    world.call(boss, 0, pings(3), Join::First);
    world.refuse(0);
    assert_eq!(world.next_resume(), None);
    world.answer(2);
    assert_eq!(world.next_resume().unwrap(), "0: 2 pong 12");
    assert_eq!(world.runs("worker"), 0);
    world.finish(boss, vec![reply("told", 1)]);
}

#[test]
fn first_fails_only_if_none_replied() {
    let (mut world, boss) = world(|_| {}, |_| {});
    world.call(boss, 0, pings(2), Join::First);
    world.refuse(0);
    assert_eq!(world.next_resume(), None);
    world.refuse(1);
    assert_eq!(world.next_resume().unwrap(), "0: !failed");
    world.finish(boss, vec![reply("told", 1)]);
}

#[test]
fn a_quorum_needs_n_replies_and_fails_once_they_are_out_of_reach() {
    let (mut world, boss) = world(|_| {}, |_| {});
    world.call(boss, 0, pings(3), Join::Quorum(2));
    world.answer(2);
    world.answer(0);
    assert_eq!(world.next_resume().unwrap(), "0: 0 pong 10, 2 pong 12");
    assert_eq!(world.runs("worker"), 0);
    world.call(boss, 1, pings(3), Join::Quorum(2));
    world.refuse(0);
    world.refuse(1);
    assert_eq!(world.next_resume().unwrap(), "1: !failed");
    assert_eq!(world.runs("worker"), 0);
    world.finish(boss, vec![reply("told", 1)]);
}

#[test]
fn settled_gives_every_outcome() {
    let (mut world, boss) = world(|_| {}, |worker| worker.silence = Silence::Idle);
    let mut requests = pings(3);
    requests.push(call("job", 3));
    world.call(boss, 0, requests, Join::Settled);
    world.refuse(0);
    world.answer(1);
    let silent = world.invocation_with("worker", 2);
    world.finish(silent, vec![]);
    assert_eq!(world.next_resume().unwrap(), "0: 0 !failed, 1 pong 11, 2 !silent, 3 !route");
    world.finish(boss, vec![reply("told", 1)]);
}

#[test]
fn a_refused_call_can_decide_while_the_group_is_being_placed() {
    let (mut world, boss) = world(|_| {}, |_| {});
    let requests = vec![call("ping", 0), call("job", 1), call("ping", 2)];
    world.call(boss, 0, requests, Join::All);
    assert_eq!(world.next_resume().unwrap(), "0: !route");
    assert_eq!(world.runs("worker"), 0, "what was placed is cancelled, the rest is not placed");
    world.finish(boss, vec![reply("told", 1)]);
}

#[test]
fn no_calls_at_all_are_decided_at_once() {
    let (mut world, boss) = world(|_| {}, |_| {});
    world.call(boss, 0, vec![], Join::All);
    assert_eq!(world.next_resume().unwrap(), "0: ");
    world.finish(boss, vec![reply("told", 1)]);
}

#[test]
fn an_awaited_broadcast_has_an_index_for_each_receiver() {
    let broadcast = |name: &str| {
        listener(name, |contract| {
            contract.accepts = qnames(&["job"]);
            contract.replies = qnames(&["done"]);
            contract.routing = Routing::Broadcast;
        })
    };
    let mut world = Setup::new(vec![boss(|_| {}), broadcast("a"), broadcast("b")]).build();
    world.emits("a", |_| vec![reply("done", 1)]);
    world.emits("b", |_| vec![reply("done", 2)]);
    world.send("alice", letter("ask", 0));
    let invocation = world.invocation("boss");
    world.call(invocation, 0, vec![call("job", 0)], Join::All);
    assert_eq!(world.next_resume().unwrap(), "0: 0 done 1, 1 done 2");
    world.finish(invocation, vec![reply("told", 1)]);
}

#[test]
fn dropping_the_future_cancels_the_calls() {
    let (mut world, boss) = world(|_| {}, |_| {});
    world.call(boss, 0, pings(2), Join::All);
    world.handle(0, Input::CallDropped { invocation: boss.id, call: CallId(0) });
    world.run();
    assert_eq!((world.aborted.len(), world.runs("worker")), (2, 0));
    world.finish(boss, vec![reply("told", 1)]);
    assert_eq!(world.resumed.len(), 0);
}

#[test]
fn a_future_that_is_dropped_before_its_calls_are_read_makes_none() {
    let (mut world, boss) = world(|_| {}, |_| {});
    world.handle(
        0,
        Input::Called { invocation: boss.id, call: CallId(0), requests: pings(1), join: Join::All, within: None },
    );
    world.handle(0, Input::CallDropped { invocation: boss.id, call: CallId(0) });
    world.run();
    assert_eq!(world.runs("worker"), 0);
    world.finish(boss, vec![reply("told", 1)]);
}

#[test]
fn a_result_that_was_dropped_while_it_waited_is_not_handed_over() {
    let (mut world, boss) = world(|boss| boss.concurrency = 1, |_| {});
    world.call(boss, 0, pings(1), Join::All);
    // Another conversation takes the slot, so that the result has to wait for it.
    world.send("alice", letter("ask", 1));
    world.answer(0);
    world.handle(0, Input::CallDropped { invocation: boss.id, call: CallId(0) });
    let other = world.invocation_with("boss", 1);
    world.finish(other, vec![reply("told", 1)]);
    assert_eq!(world.resumed.len(), 0);
    world.finish(boss, vec![reply("told", 0)]);
    assert_eq!(world.said(), ["boss: told 1", "boss: told 0"]);
}

#[test]
fn a_handler_that_ends_cancels_what_it_still_awaits() {
    let (mut world, boss) = world(|_| {}, |_| {});
    world.call(boss, 0, pings(2), Join::All);
    world.finish(boss, vec![reply("told", 1)]);
    assert_eq!((world.aborted.len(), world.runs("worker")), (2, 0));
    assert_eq!(world.said(), ["boss: told 1"]);
}

#[test]
fn a_parked_handler_holds_no_slot_and_is_resumed_before_messages_of_its_conversation_that_have_not_started() {
    let (mut world, boss) = world(|boss| boss.concurrency = 1, |_| {});
    world.call(boss, 0, pings(1), Join::All);
    let root = world.cores[0].snapshot().threads[0].id;
    for n in 1..4 {
        world.send("alice", letter("ask", n).thread(root));
    }
    assert_eq!(world.runs("boss"), 2, "the parked one, and one more");
    world.answer(0);
    assert_eq!(world.next_resume(), None, "its slot is taken");
    let other = world.invocation_with("boss", 1);
    world.finish(other, vec![reply("told", 1)]);
    assert_eq!(world.next_resume().unwrap(), "0: 0 pong 10");
    assert_eq!(world.runs("boss"), 1);
    world.finish(boss, vec![reply("told", 0)]);
    for n in 2..4 {
        let invocation = world.invocation_with("boss", n);
        world.finish(invocation, vec![reply("told", n)]);
    }
    assert_eq!(world.said(), ["boss: told 1", "boss: told 0", "boss: told 2", "boss: told 3"]);
}

#[test]
fn a_parked_message_is_still_the_one_in_flight_of_its_thread() {
    let (mut world, boss) = world(|_| {}, |_| {});
    world.finish(boss, vec![call("ping", 0), call("ping", 1)]);
    world.answer(0);
    world.call(world.invocation("boss"), 0, vec![call("ping", 5)], Join::All);
    world.answer(1);
    assert_eq!(world.runs("boss"), 1);
    world.answer(5);
    let boss = world.invocation("boss");
    world.finish(boss, vec![]);
    assert_eq!(world.take_started().last().unwrap(), "boss <- worker: pong 11 (1/2, 0 left)");
    world.finish(world.invocation("boss"), vec![reply("told", 1)]);
}

#[test]
fn settled_gives_what_came_in_its_time_and_cancels_the_rest() {
    let (mut world, boss) = world(|_| {}, |_| {});
    world.call_within(boss, pings(3), Join::Settled, secs(5));
    world.answer(1);
    world.sleep(secs(4));
    assert_eq!(world.next_resume(), None);
    world.sleep(secs(1));
    assert_eq!(world.next_resume().unwrap(), "0: 0 !timeout, 1 pong 11, 2 !timeout");
    assert_eq!((world.aborted.len(), world.runs("worker")), (2, 0));
    world.finish(boss, vec![reply("told", 1)]);
}

#[test]
fn other_joins_fail_once_their_time_puts_them_out_of_reach() {
    for (join, result) in [
        (Join::All, "0: !timeout"),
        (Join::First, "0: !failed"),
        (Join::Quorum(2), "0: !failed"),
        (Join::Settled, "0: 0 !failed, 1 !timeout, 2 !timeout"),
    ] {
        let (mut world, boss) = world(|_| {}, |_| {});
        world.call_within(boss, pings(3), join, secs(5));
        if join != Join::All {
            world.refuse(0);
        }
        world.sleep(secs(5));
        assert_eq!(world.next_resume().unwrap(), result, "{join:?}");
        assert_eq!(world.runs("worker"), 0, "{join:?}");
        world.finish(boss, vec![reply("told", 1)]);
    }
}

#[test]
fn calls_that_are_over_in_time_leave_no_timer() {
    let (mut world, boss) = world(|_| {}, |_| {});
    world.call_within(boss, pings(1), Join::All, secs(5));
    let wake = world.next_wake();
    world.answer(0);
    assert_eq!(world.next_resume().unwrap(), "0: 0 pong 10");
    assert_ne!(world.next_wake(), wake);
    // Dropped by its handler, and by the end of its handler.
    world.call_within(boss, pings(1), Join::All, secs(6));
    world.handle(0, Input::CallDropped { invocation: boss.id, call: CallId(0) });
    world.run();
    world.call_within(boss, pings(1), Join::All, secs(7));
    world.finish(boss, vec![reply("told", 1)]);
    assert_eq!(world.said(), ["boss: told 1"]);
}

#[test]
fn a_call_on_a_spawned_thread_has_its_time_and_the_thread_goes_on() {
    let (mut world, boss) = world(|_| {}, |_| {});
    let id = world.spawn_on(boss);
    world.call_within(boss, vec![on(id, call("ping", 1))], Join::All, secs(5));
    world.sleep(secs(5));
    assert_eq!(world.next_resume().unwrap(), "0: !timeout");
    world.call(boss, 11, vec![on(id, call("ping", 2))], Join::All);
    world.answer(2);
    assert_eq!(world.next_resume().unwrap(), "11: 0 pong 12");
    world.finish(boss, vec![reply("told", 1)]);
}

#[test]
fn the_timeout_stands_still_while_a_handler_is_parked() {
    let (mut world, boss) = world(|_| {}, |worker| worker.timeout = None);
    world.sleep(secs(20));
    world.call(boss, 0, pings(1), Join::All);
    world.sleep(secs(1000));
    world.answer(0);
    assert_eq!(world.next_resume().unwrap(), "0: 0 pong 10");
    world.sleep(secs(9));
    assert_eq!(world.runs("boss"), 1);
    world.sleep(secs(1));
    assert_eq!((world.runs("boss"), world.said()), (0, vec!["boss: !timeout".to_owned()]));
}

#[test]
fn a_parked_handler_that_goes_on_without_its_answer_has_its_clock_again() {
    let (mut world, boss) = world(|_| {}, |worker| worker.timeout = None);
    world.call(boss, 0, pings(1), Join::All);
    world.sleep(secs(100));
    world.handle(0, Input::CallDropped { invocation: boss.id, call: CallId(0) });
    world.sleep(secs(30));
    assert_eq!(world.said(), ["boss: !timeout"]);
}

#[test]
fn a_handler_that_does_not_park_gets_its_answer_too() {
    let (mut world, boss) = world(|boss| boss.concurrency = 1, |_| {});
    world.handle(
        0,
        Input::Called { invocation: boss.id, call: CallId(0), requests: pings(1), join: Join::All, within: None },
    );
    world.run();
    world.answer(0);
    assert_eq!(world.next_resume().unwrap(), "0: 0 pong 10");
    // It said that it waits before it knew.
    world.handle(0, Input::Parked { invocation: boss.id });
    world.send("alice", letter("ask", 1));
    assert_eq!(world.runs("boss"), 1, "it runs, and holds the only slot");
    world.finish(boss, vec![reply("told", 1)]);
    world.finish(world.invocation("boss"), vec![reply("told", 1)]);
}

#[test]
fn two_groups_are_resumed_each_in_its_turn() {
    let (mut world, boss) = world(|_| {}, |_| {});
    for (id, n) in [(0, 0), (1, 1)] {
        let requests = vec![call("ping", n)];
        world.handle(
            0,
            Input::Called { invocation: boss.id, call: CallId(id), requests, join: Join::All, within: None },
        );
    }
    world.handle(0, Input::Parked { invocation: boss.id });
    world.run();
    world.answer(1);
    assert_eq!(world.next_resume().unwrap(), "1: 0 pong 11");
    world.handle(0, Input::Parked { invocation: boss.id });
    world.answer(0);
    assert_eq!(world.next_resume().unwrap(), "0: 0 pong 10");
    world.finish(boss, vec![reply("told", 1)]);
}

#[test]
fn a_listener_that_cannot_park_gets_an_error_at_once() {
    let (mut world, boss) = world(|boss| boss.can_park = false, |_| {});
    world.handle(
        0,
        Input::Called { invocation: boss.id, call: CallId(0), requests: pings(2), join: Join::All, within: None },
    );
    world.run();
    assert_eq!(world.next_resume().unwrap(), "0: !failed");
    assert_eq!(world.runs("worker"), 0);
    world.finish(boss, vec![reply("told", 1)]);
}

#[test]
fn more_calls_than_a_fan_out_are_refused_as_one() {
    let (mut world, boss) = world(|_| {}, |_| {});
    world.call(boss, 0, pings(257), Join::Settled);
    assert_eq!(world.next_resume().unwrap(), "0: !limit");
    world.finish(boss, vec![reply("told", 1)]);
}

#[test]
fn calls_of_a_handler_whose_thread_is_over_are_discarded() {
    let (mut world, boss) = world(|_| {}, |_| {});
    world.blocking.insert("boss".into());
    let root = world.egress.len();
    assert_eq!(root, 0);
    world.sleep(secs(30));
    assert_eq!(world.said(), ["boss: !timeout"]);
    world.call(boss, 0, pings(2), Join::All);
    assert_eq!((world.runs("worker"), world.resumed.len()), (0, 0));
    world.finish(boss, vec![reply("told", 1)]);
    assert_eq!(world.said(), [""; 0]);
}

#[test]
fn what_is_asked_of_the_core_can_be_awaited() {
    let (mut world, boss) = world(|_| {}, |_| {});
    world.call(boss, 0, vec![meta("list-capabilities"), meta("clear-context")], Join::All);
    assert_eq!(world.next_resume().unwrap(), "0: 0 capabilities, 1 context-cleared");
    world.finish(boss, vec![reply("told", 1)]);
}
