//! Conversations: their ids, their owners, their ends.

use systole_core::core::*;
use systole_core::vocab::{FaultCode, ThreadId};
use uuid::Uuid;

use super::harness::*;
use super::payloads::*;

/// A `relay` that passes each question on to `echo`, and answers with its answer.
fn relay() -> World {
    relay_with(true)
}

fn relay_with(events: bool) -> World {
    let relay = listener("relay", |relay| {
        relay.accepts = qnames(&["ask"]);
        relay.calls = qnames(&["ping"]);
        relay.returns = qnames(&["pong"]);
        relay.replies = qnames(&["told"]);
    });
    let mut setup = Setup::new(vec![relay, server("echo", &["ping"], &["pong"])]);
    setup.events = events;
    let mut world = setup.build();
    world.emits("relay", |message| match message.in_reply_to {
        None => vec![call("ping", number_in(message))],
        Some(_) => vec![reply("told", number_in(message))],
    });
    world.emits("echo", |message| vec![reply("pong", number_in(message))]);
    world
}

fn one_echo() -> World {
    let mut world = Setup::new(vec![server("echo", &["ask"], &["told"])]).build();
    world.emits("echo", |message| vec![reply("told", number_in(message))]);
    world
}

#[test]
fn a_request_gets_its_reply_under_its_label() {
    let mut world = one_echo();
    let root = world.send("alice", letter("ask", 7).label("first"));
    assert_eq!((world.egress[0].root, world.egress[0].client), (root, world.client_id("alice")));
    assert_eq!(world.said(), ["echo: told 7 [first]"]);
    assert_eq!(world.started, ["echo <- alice: ask 7"]);
}

#[test]
fn what_leaves_is_an_envelope_that_names_the_root_and_the_direct_correspondent() {
    let mut world = relay();
    let root = world.send("alice", letter("ask", 7).label("l"));
    let envelope = String::from_utf8(world.egress[0].envelope.to_vec()).unwrap();
    assert!(envelope.contains(&format!("<thread>{root}</thread>")), "{envelope}");
    assert!(envelope.contains("<from>relay</from><to>alice</to>"), "{envelope}");
    assert!(!envelope.contains("echo"), "{envelope}");
    assert!(world.egress[0].proof.is_some());
}

#[test]
fn thousands_of_conversations_through_the_same_listeners_do_not_mix() {
    let mut world = relay_with(false);
    let mut roots = std::collections::HashMap::new();
    for n in 0..3_000 {
        let root = world.post("alice", letter("ask", n).label(&format!("l{n}")));
        roots.insert(root, n);
    }
    world.run();
    assert_eq!(world.egress.len(), 3_000);
    for egress in &world.egress {
        let n = roots.remove(&egress.root).expect("one answer for each conversation");
        assert_eq!(describe_egress(egress), format!("relay: told {n} [l{n}]"));
    }
}

#[test]
fn requests_of_one_conversation_run_in_parallel_and_end_in_any_order() {
    let mut world = Setup::new(vec![server("slow", &["ask"], &["told"])]).build();
    let root = world.send("alice", letter("ask", 1).label("a"));
    let other = world.send("alice", letter("ask", 2).label("b").thread(root));
    assert_eq!(world.runs("slow"), 2);
    let (first, second) = (world.invocation_with("slow", 1), world.invocation_with("slow", 2));
    world.finish(second, vec![reply("told", 2)]);
    world.finish(first, vec![reply("told", 1)]);
    assert!(world.egress.iter().all(|egress| egress.root == root), "the id {other} was not needed");
    assert_eq!(world.said(), ["slow: told 2 [b]", "slow: told 1 [a]"]);
    assert_eq!(world.paths(), ["root"]);
}

#[test]
fn a_claimed_sender_is_overwritten_and_recorded() {
    let mut world = one_echo();
    world.send("alice", Letter { from: "bob".into(), ..letter("ask", 1) });
    assert_eq!(world.started, ["echo <- alice: ask 1"]);
    let claims = world.events.iter().filter_map(|event| match &event.kind {
        EventKind::Injected { from, claimed, .. } => Some((from.to_string(), claimed.clone())),
        _ => None,
    });
    assert_eq!(claims.collect::<Vec<_>>(), [("alice".to_owned(), Some("bob".to_owned()))]);
}

#[test]
fn any_thread_but_an_own_root_opens_a_new_conversation() {
    let mut world = Setup::new(vec![server("slow", &["ask"], &["told"])]).build();
    let bobs = world.send("bob", letter("ask", 1));
    let inner = world.message(world.invocation("slow")).thread;
    let nowhere = ThreadId::from_uuid(Uuid::from_u128(99));
    let mut roots = vec![bobs];
    for claim in [bobs.to_string(), inner.to_string(), nowhere.to_string(), "no id at all".into()] {
        let sent = world.send("alice", Letter { thread: Some(claim), ..letter("ask", 2) });
        roots.push(sent);
    }
    assert_eq!(world.runs("slow"), 5);
    for invocation in world.running.iter().map(|running| running.invocation).collect::<Vec<_>>() {
        world.finish(invocation, vec![reply("told", 0)]);
    }
    let answered: Vec<_> = world.egress.iter().map(|egress| egress.root).collect();
    assert_eq!(answered, roots, "each in a conversation of its own");
    let clients: Vec<_> = world.egress.iter().map(|egress| egress.client).collect();
    assert_eq!(clients[0], world.client_id("bob"));
    assert!(clients[1..].iter().all(|client| *client == world.client_id("alice")));
}

#[test]
fn a_given_root_that_is_taken_opens_nobody_elses_door() {
    let mut world = one_echo();
    let bobs = world.send("bob", letter("ask", 1));
    let permit = world.gauge.admit(1).unwrap();
    let (client, raw) = (world.client_id("alice"), systole_xml::ladder::Raw::new(letter("ask", 2).bytes()));
    world.handle(
        0,
        Input::Injected(Injected {
            client,
            message: raw.into(),
            root: bobs,
            remote: false,
            last: false,
            attachment: None,
            permit,
            place: None,
        }),
    );
    world.run();
    assert_eq!(world.egress.len(), 2);
    assert_ne!(world.egress[1].root, bobs);
}

#[test]
fn a_root_closes_once_its_client_has_left_and_its_children_are_gone() {
    let mut world = Setup::new(vec![server("slow", &["ask"], &["told"])]).build();
    let root = world.send("alice", letter("ask", 1));
    world.leave(root);
    assert!(world.closed.is_empty());
    world.finish(world.invocation("slow"), vec![reply("told", 1)]);
    assert_eq!(world.closed, [root]);
    assert_eq!(world.said(), ["slow: told 1"]);
    assert_eq!(world.paths(), [""; 0]);
}

#[test]
fn a_client_that_leaves_before_its_message_was_read_has_left_it() {
    let mut world = one_echo();
    let root = world.post("alice", letter("ask", 1));
    world.handle(0, world.left(root));
    world.run();
    assert_eq!((world.said(), world.closed.clone()), (vec!["echo: told 1".to_owned()], vec![root]));
    let last = world.send("alice", Letter { last: true, ..letter("ask", 2) });
    assert_eq!((world.said(), world.closed.clone()), (vec!["echo: told 2".to_owned()], vec![root, last]));
}

#[test]
fn a_conversation_that_is_cancelled_before_its_message_was_read_is_cancelled() {
    let mut world = Setup::new(vec![server("slow", &["ask"], &["told"])]).build();
    let root = world.post("alice", letter("ask", 1));
    world.handle(0, world.cancelled(root));
    world.run();
    assert_eq!((world.runs("slow"), world.closed.clone()), (0, vec![root]));
}

#[test]
fn an_idle_root_closes_after_fifteen_minutes_without_a_message() {
    let mut world = one_echo();
    let root = world.send("alice", letter("ask", 1));
    world.sleep(secs(14 * 60));
    world.send("alice", letter("ask", 2).thread(root));
    world.sleep(secs(14 * 60));
    // A message that is refused is a message, too.
    world.send("alice", letter("job", 3).thread(root));
    world.sleep(secs(15 * 60 - 1));
    assert!(world.closed.is_empty());
    world.sleep(secs(1));
    assert_eq!(world.closed, [root]);
    let next = world.send("alice", letter("ask", 4).thread(root));
    assert_eq!(world.egress.last().unwrap().root, next, "a closed conversation is nobody's");
}

#[test]
fn a_root_with_an_open_child_never_goes_idle() {
    let mut world = Setup::new(vec![listener("slow", |slow| {
        slow.accepts = qnames(&["ask"]);
        slow.replies = qnames(&["told"]);
        slow.timeout = None;
    })])
    .build();
    world.send("alice", letter("ask", 1));
    world.sleep(secs(3600));
    assert!(world.closed.is_empty());
    world.finish(world.invocation("slow"), vec![reply("told", 1)]);
    assert_eq!(world.said(), ["slow: told 1"]);
}

#[test]
fn a_conversation_that_never_opened_is_closed() {
    let mut world = one_echo();
    let root = world.send("alice", letter("job", 1));
    assert_eq!((world.said(), world.closed.clone()), (vec!["system: !route".to_owned()], vec![root]));
    assert_eq!(world.paths(), [""; 0]);
}

#[test]
fn what_is_no_envelope_is_answered_with_its_place() {
    let mut world = one_echo();
    world.post_bytes("alice", "<message".into(), &letter("ask", 1));
    world.post_bytes("alice", "<wrong/>".into(), &letter("ask", 1));
    world.run();
    let faults: Vec<_> = world.egress.iter().map(|egress| egress.fault.clone().unwrap()).collect();
    assert_eq!(faults[0].code, FaultCode::Malformed);
    assert_eq!(faults[1].code, FaultCode::Envelope);
    assert!(faults[1].rule.as_ref().unwrap().at.is_some());
}

#[test]
fn a_label_is_bounded_because_it_is_kept() {
    let mut world = one_echo();
    world.send("alice", letter("ask", 1).label(&"l".repeat(256)));
    world.send("alice", letter("ask", 1).label(&"l".repeat(257)));
    assert_eq!(world.said(), [format!("echo: told 1 [{}]", "l".repeat(256)), "system: !limit".into()]);
}

#[test]
fn the_same_inputs_give_the_same_ids() {
    let ids = || {
        let mut world = relay();
        let root = world.send("alice", letter("ask", 7));
        let envelope = world.egress[0].envelope.clone();
        (root, envelope)
    };
    assert_eq!(ids(), ids());
}

#[test]
fn ids_of_another_organism_open_no_door_and_break_nothing() {
    let many =
        (0..5).map(|n| worker(|worker| worker.name = systole_core::vocab::Name::parse(&format!("w{n}")).unwrap()));
    let mut elsewhere = Setup::new(many.collect());
    elsewhere.clients = (0..5).map(|n| client(&format!("c{n}"), &["ping"])).collect();
    let elsewhere = elsewhere.build();
    let (listener, stranger) = (elsewhere.listener_id("w4"), elsewhere.client_id("c4"));
    let mut world = Setup::new(vec![worker(|_| {})]).build();
    assert!(world.blueprint.listener(listener).is_none() && world.blueprint.client(stranger).is_none());
    let (bytes, root) = (letter("ping", 1).bytes(), world.fresh_root());
    let permit = world.gauge.admit(bytes.len()).unwrap();
    let raw = systole_xml::ladder::Raw::new(bytes);
    let injected = Injected {
        client: stranger,
        message: raw.into(),
        root,
        remote: false,
        last: true,
        attachment: None,
        permit,
        place: None,
    };
    world.handle(0, Input::Injected(injected));
    world.handle(0, Input::ListenerRests { listener, rests: true });
    world.handle(0, Input::Core(CoreMessage::SlotReturned { listener }));
    world.run();
    assert_eq!((world.dead(), world.said()), (vec!["!internal".to_owned()], vec![]));
}

#[test]
fn whoever_leaves_is_told_that_nothing_is_open_once_what_was_sent_before_is_done() {
    let mut world = Setup::new(vec![worker(|_| {})]).build();
    let never = world.fresh_root();
    world.leave(never);
    assert_eq!(std::mem::take(&mut world.gone), [never]);
    // A message that goes to another conversation opens none of its own.
    let first = world.send("alice", letter("ping", 1));
    let second = world.post("alice", letter("ping", 2).thread(first));
    world.handle(0, world.left(second));
    world.run();
    assert_eq!(std::mem::take(&mut world.gone), [second]);
    // One that is still on the entrance queue opens it: it closes when it is done.
    let third = world.post("alice", letter("ping", 3));
    world.handle(0, world.left(third));
    world.run();
    assert_eq!((world.gone.len(), world.closed.len()), (0, 0));
    for n in 1..4 {
        world.finish(world.invocation_with("worker", n), vec![reply("pong", n)]);
    }
    assert_eq!(world.closed, [third]);
    let fourth = world.post("alice", letter("ping", 4));
    world.cancel(fourth);
    assert_eq!((world.gone.clone(), world.closed.clone()), (vec![fourth], vec![third, fourth]));
}
