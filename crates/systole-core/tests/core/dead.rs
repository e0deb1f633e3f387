//! Dead letters: listed, redriven, discarded.

use systole_core::core::*;

use super::harness::*;
use super::payloads::*;

/// Two workers that take the same; only a name reaches the second.
fn workers() -> World {
    let worker = |name: &str| {
        listener(name, |worker| {
            worker.accepts = qnames(&["ping"]);
            worker.replies = qnames(&["pong"]);
            worker.concurrency = 1;
        })
    };
    let second = worker("second").routing(Routing::Addressed);
    Setup::new(vec![boss(|_| {}), worker("first"), second]).build()
}

#[test]
fn a_letter_knows_who_sent_it_to_whom() {
    let mut world = workers();
    world.send("alice", letter("job", 1).to("second"));
    world.send("alice", letter("job", 2));
    let way = |letter: &DeadLetter| (letter.from.to_string(), letter.to.as_ref().map(ToString::to_string));
    let seen: Vec<_> = world.cores[0].dead_letters().iter().map(way).collect();
    assert_eq!(seen, [("alice".to_owned(), Some("second".to_owned())), ("alice".to_owned(), None)]);
}

/// A world with one dead letter of the boss: a call beside its answer.
fn superseded(call: Emission) -> World {
    let mut world = workers();
    world.send("alice", letter("ask", 1).label("l"));
    world.finish(world.invocation("boss"), vec![reply("told", 1), call]);
    assert_eq!(world.said(), ["boss: told 1 [l]"]);
    assert_eq!(world.dead(), ["ping 7"]);
    world.take_started();
    world
}

#[test]
fn a_letter_that_is_queued_again_goes_to_its_listener_and_its_answer_to_nobody() {
    for (emission, receiver) in [(call("ping", 7), "first"), (to("second", call("ping", 7)), "second")] {
        let mut world = superseded(emission);
        assert_eq!(world.redrive(world.last_letter(0)), Ok(()));
        assert_eq!(world.dead(), [""; 0], "it is on its way");
        assert_eq!(world.take_started(), [format!("{receiver} <- boss: ping 7")]);
        assert_eq!(world.paths()[1..], ["root".to_owned(), format!("root/{receiver}")]);
        assert!(!world.is_idle(), "it is work like any other");
        world.finish(world.invocation(receiver), vec![reply("pong", 7)]);
        assert_eq!((world.dead(), world.said()), (vec!["pong 7".to_owned()], vec![]));
        assert_eq!(world.paths(), ["root"], "the conversation of alice");
        assert_eq!(world.counts().redriven, 1);
    }
}

#[test]
fn its_handler_has_a_timeout_and_its_silence_just_ends_it() {
    let mut world = superseded(call("ping", 7));
    let letter = world.last_letter(0);
    assert_eq!(world.redrive(letter), Ok(()));
    assert_eq!(world.redrive(letter), Err(DeadLetterError::Unknown.into()), "it is queued once");
    world.sleep(secs(30));
    assert_eq!(world.dead(), ["!timeout"]);
    let mut world = superseded(call("ping", 7));
    assert_eq!(world.redrive(world.last_letter(0)), Ok(()));
    world.finish(world.invocation("first"), vec![]);
    assert_eq!(world.dead(), [""; 0]);
}

#[test]
fn what_is_refused_again_is_a_dead_letter_again() {
    let mut world = workers();
    world.send("alice", letter("job", 1));
    world.said();
    let first = world.last_letter(0);
    assert_eq!(world.redrive(first), Ok(()));
    assert_eq!((world.dead(), world.said()), (vec!["job 1".to_owned()], vec![]), "alice has had her answer");
    let second = world.last_letter(0);
    assert!(second > first, "under a new number");
    assert_eq!(world.redrive(first), Err(DeadLetterError::Unknown.into()));
    assert_eq!(world.counts().redriven, 1);
}

#[test]
fn what_its_sender_may_not_call_stays_where_it_is_and_the_operator_is_told_why() {
    let mut world = workers();
    // A reply is for a thread that waits for it.
    world.send("alice", letter("ask", 2));
    world.finish(world.invocation("boss"), vec![reply("told", 1), reply("told", 2)]);
    let told = world.last_letter(0);
    let refused = world.redrive(told).unwrap_err();
    assert!(refused.to_string().starts_with("boss may not call {urn:test}told: a reply or a question"), "{refused}");
    assert_eq!(world.last_letter(0), told);
    // A question to the core can't be redriven either.
    world.send("alice", letter_xml(&format!("<close-thread xmlns=\"{}\"/>", systole_core::vocab::ns::META)));
    assert!(matches!(
        world.redrive(world.last_letter(0)),
        Err(OperationError::Letter(DeadLetterError::NotACall { .. }))
    ));
    assert_eq!(world.dead(), ["told 2", "close-thread"]);
    assert_eq!(world.counts().redriven, 0);
}

#[test]
fn a_letter_stays_where_it_is_while_there_is_no_room_for_it() {
    let mut setup = Setup::new(vec![boss(|_| {}), worker(|_| {})]);
    setup.gauge = (1, 1 << 20);
    let mut world = setup.build();
    world.send("alice", letter("ask", 1));
    world.finish(world.invocation("boss"), vec![reply("told", 1), call("ping", 7)]);
    let full = world.gauge.count(0);
    assert!(matches!(world.redrive(world.last_letter(0)), Err(OperationError::Letter(DeadLetterError::Overloaded(_)))));
    drop(full);
    world.tell(|| Input::Drain);
    assert_eq!(world.redrive(world.last_letter(0)), Err(DeadLetterError::Closed.into()));
    assert_eq!(world.dead(), ["ping 7"]);
}

#[test]
fn a_fault_and_what_could_not_be_read_hold_nothing_to_send() {
    let mut world = Setup::new(vec![listener("a", |a| {
        a.accepts = vec![core_qname("boot")];
    })])
    .build();
    let root = world.fresh_root();
    world.handle(0, Input::Boot { root });
    world.run();
    world.fail(world.invocation("a"), "no");
    let fault = world.last_letter(0);
    assert_eq!(world.redrive(fault), Err(DeadLetterError::NoPayload.into()));
    assert_eq!(world.dead(), ["!failed"]);
    for expected in [Ok(()), Err(DeadLetterError::Unknown.into())] {
        world.handle(0, Input::Operate { ticket: 0, operation: Operation::Discard { letter: fault }, act: None });
        world.run();
        assert_eq!(world.operated.pop(), Some(expected));
    }
    assert_eq!(world.dead(), [""; 0]);
}

#[test]
fn a_stop_buries_what_was_queued_again() {
    let mut world = superseded(call("ping", 7));
    let (letter, root) = (world.last_letter(0), world.fresh_root());
    world.handle(0, Input::Operate { ticket: 0, operation: Operation::Redrive { letter, root }, act: None });
    world.handle(0, Input::Stop);
    world.run();
    assert_eq!((world.dead(), world.paths()), (vec!["ping 7".to_owned()], vec![]));
}

/// A world of four cores in which nobody handles a job.
fn nobody(change: impl FnOnce(&mut systole_core::vocab::Limits)) -> World {
    let listeners = vec![listener("other", |other| other.accepts = qnames(&["tick"]))];
    Setup { shards: 4, ..Setup::new(listeners) }.build_with(|blueprint| change(&mut blueprint.limits))
}

#[test]
fn cores_share_the_bounds_and_the_oldest_letter_of_all_is_pushed_out() {
    let mut alone = nobody(|_| {});
    alone.send("alice", letter("job", 0));
    let held =
        alone.cores[0].dead_letters().iter().filter_map(|letter| Some(letter.payload.as_ref()?.held())).sum::<usize>();
    for by_bytes in [false, true] {
        let mut world = nobody(|limits| match by_bytes {
            true => limits.dead_letter_bytes = 2 * held,
            false => limits.dead_letters = 2,
        });
        for n in 0..9_u8 {
            world.send("alice", letter("job", n.into()).at(usize::from(n) % 4));
        }
        let mut kept = world.dead();
        kept.sort_unstable();
        assert_eq!(kept, ["job 7", "job 8"]);
        let dropped = |event: &&Event| matches!(event.kind, EventKind::LetterDropped { .. });
        let figures = world.cores.iter().map(|core| core.dead_letters().dropped()).sum::<u64>();
        assert_eq!((world.events.iter().filter(dropped).count(), figures), (7, 7));
        // A letter that is discarded makes room for another one.
        let letter_8 = world.last_letter(0);
        world.handle(0, Input::Operate { ticket: 0, operation: Operation::Discard { letter: letter_8 }, act: None });
        world.send("alice", letter("job", 9).at(1));
        assert_eq!(world.cores[3].dead_letters().len(), 1, "there was room");
    }
}
