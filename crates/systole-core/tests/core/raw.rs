//! Responses that handlers write as bytes.

use systole_core::core::*;
use systole_core::vocab::{FaultCode, ThreadId, ns};
use systole_xml::ladder::repair::Author;
use uuid::Uuid;

use super::harness::*;
use super::payloads::*;

fn started() -> World {
    let mut world = Setup::new(vec![boss(|boss| boss.accepts_faults = true), worker(|_| {})]).build();
    world.send("alice", letter("ask", 0));
    world.take_started();
    world
}

/// A `<message>` as a model might write it.
fn message(meta: &str, payload: &str) -> String {
    format!("<message xmlns=\"{}\"><meta>{meta}</meta>{payload}</message>", ns::ENVELOPE)
}

#[test]
fn bytes_are_read_as_replies_and_calls_by_the_contract() {
    let mut world = started();
    world.write(world.invocation("boss"), &format!("{}\n {}", xml("ping", 1), xml("ping", 2)));
    assert_eq!(world.take_started(), ["worker <- boss: ping 1", "worker <- boss: ping 2"]);
    for n in [1, 2] {
        let invocation = world.invocation_with("worker", n);
        world.write(invocation, &xml("pong", n));
    }
    world.write(world.invocation("boss"), " \n ");
    world.write(world.invocation("boss"), &xml("told", 5));
    assert_eq!(world.said(), ["boss: told 5"]);
}

#[test]
fn a_payload_without_its_namespace_gets_it() {
    let mut world = started();
    world.write(world.invocation("boss"), "<told><n>5</n></told>");
    assert_eq!(world.said(), ["boss: told 5"]);
}

#[test]
fn an_emission_past_repair_fails_whole() {
    let mut world = started();
    world.write(world.invocation("boss"), &format!("{}<ping", xml("ping", 1)));
    assert_eq!(world.runs("worker"), 0);
    let answer = world.message(world.invocation("boss"));
    assert_eq!((fault_of(answer).code, answer.join), (FaultCode::Malformed, None));
    world.write(world.invocation("boss"), &xml("told", 5));
}

#[test]
fn what_nobody_takes_is_answered() {
    let mut world = started();
    world.write(world.invocation("boss"), "<whatever/>");
    assert_eq!(fault_of(world.message(world.invocation("boss"))).code, FaultCode::Route);
    world.write(world.invocation("boss"), &xml("told", 5));
}

#[test]
fn a_message_is_unwrapped_and_its_address_counts() {
    let mut world = started();
    world.write(world.invocation("boss"), &message("<from>boss</from><to>worker</to>", &xml("ping", 1)));
    assert_eq!(world.take_started(), ["worker <- boss: ping 1"]);
    let invocation = world.invocation("worker");
    world.write(invocation, &message("<from>worker</from>", &xml("pong", 1)));
    assert_eq!(world.take_started(), ["boss <- worker: pong 1"], "without an address a reply stays a reply");
    world.write(world.invocation("boss"), &message("<from>boss</from><to>alice</to>", &xml("told", 1)));
    assert_eq!(fault_of(world.message(world.invocation("boss"))).code, FaultCode::Route, "with one it is a call");
    world.write(world.invocation("boss"), &xml("told", 5));
}

#[test]
fn a_message_may_leave_out_what_does_not_count() {
    let mut world = started();
    world.write(world.invocation("boss"), &message("<to>worker</to>", &xml("ping", 1)));
    assert_eq!(world.take_started(), ["worker <- boss: ping 1"]);
    let bare = format!("<message xmlns=\"{}\">{}</message>", ns::ENVELOPE, xml("pong", 1));
    world.write(world.invocation("worker"), &bare);
    assert_eq!(world.take_started(), ["boss <- worker: pong 1"]);
    world.write(world.invocation("boss"), &xml("told", 5));
}

#[test]
fn claims_in_a_message_are_ignored_and_recorded() {
    let mut world = started();
    let own = world.message(world.invocation("boss")).thread;
    let nowhere = ThreadId::from_uuid(Uuid::from_u128(5));
    let forged = message(&format!("<from>alice</from><to>worker</to><thread>{nowhere}</thread>"), &xml("ping", 1));
    let honest = message(&format!("<from>boss</from><to>worker</to><thread>{own}</thread>"), &xml("ping", 2));
    world.write(world.invocation("boss"), &(forged + &honest));
    assert_eq!(world.take_started(), ["worker <- boss: ping 1", "worker <- boss: ping 2"]);
    let forgeries = world.events.iter().filter_map(|event| match &event.kind {
        EventKind::Forged { by, claimed, thread } => Some((by.to_string(), claimed.clone(), thread.clone())),
        _ => None,
    });
    let expected = ("boss".to_owned(), Some("alice".to_owned()), Some(nowhere.to_string()));
    assert_eq!(forgeries.collect::<Vec<_>>(), [expected]);
    for n in [1, 2] {
        let invocation = world.invocation_with("worker", n);
        world.finish(invocation, vec![reply("pong", n)]);
    }
    world.write(world.invocation("boss"), "");
    world.write(world.invocation("boss"), &xml("told", 5));
}

#[test]
fn a_message_inside_a_message_is_a_payload_that_nobody_takes() {
    let mut world = started();
    let inner = message("<from>alice</from><to>worker</to>", &xml("ping", 1));
    world.write(world.invocation("boss"), &message("<from>boss</from>", &inner));
    assert_eq!(world.runs("worker"), 0);
    assert_eq!(fault_of(world.message(world.invocation("boss"))).code, FaultCode::Route);
    world.write(world.invocation("boss"), &xml("told", 5));
}

#[test]
fn a_message_that_is_no_envelope_is_answered_with_its_place_among_the_calls() {
    let mut world = started();
    let broken = format!("<message xmlns=\"{}\"><meta><from>boss</from></meta></message>", ns::ENVELOPE);
    world.write(world.invocation("boss"), &(xml("ping", 1) + &broken));
    assert_eq!(world.take_started(), ["worker <- boss: ping 1", "boss <- system: !envelope (1/2, 1 left)"]);
    world.finish(world.invocation("worker"), vec![reply("pong", 1)]);
    world.write(world.invocation("boss"), "");
    world.write(world.invocation("boss"), &xml("told", 5));
}

#[test]
fn a_message_addresses_a_spawned_thread() {
    let mut world = Setup::new(vec![boss(|boss| boss.accepts_faults = true), worker(|_| {})]).build();
    world.send("alice", letter("ask", 0));
    let boss = world.invocation("boss");
    world.call(boss, 0, vec![spawn("ping", 0)], Join::First);
    let (_, _, result) = world.resumed.pop_front().unwrap();
    let told = result.unwrap()[0].outcome.clone().unwrap();
    let id = spawned_id(told.payload.payload());
    world.take_started();
    world.write(boss, &message(&format!("<from>boss</from><thread>{id}</thread>"), &xml("ping", 7)));
    assert_eq!(world.take_started(), ["worker <- boss: ping 7"]);
    assert_eq!(world.message(world.invocation("worker")).thread, id);
    world.finish(world.invocation("worker"), vec![reply("pong", 1)]);
    let close =
        message(&format!("<from>boss</from><thread>{id}</thread>"), &format!("<close-thread xmlns=\"{}\"/>", ns::META));
    world.write(world.invocation("boss"), &(close + &xml("ping", 8)));
    assert_eq!(world.paths(), ["root", "root/boss", "root/boss/worker#2"]);
    world.finish(world.invocation("worker"), vec![reply("pong", 1)]);
    world.write(world.invocation("boss"), &xml("told", 5));
}

#[test]
fn an_end_tag_without_a_start_leaves_open_in_what_the_payloads_stood() {
    let mut world = started();
    world.write(world.invocation("boss"), &format!("{}{}</dummy>", xml("ping", 1), xml("ping", 2)));
    let started = world.take_started();
    assert_eq!(started, ["boss <- system: !malformed"]);
    world.write(world.invocation("boss"), &xml("told", 5));
}

#[test]
fn dirty_bytes_are_repaired_and_the_repairs_recorded() {
    let mut world = started();
    let dirty = "Sure! Here it is:\n```xml\n<told xmlns=\"urn:test\"><n>5</n><text>AT&T</text></told>\n```";
    world.write(world.invocation("boss"), dirty);
    assert_eq!(world.said(), ["boss: told 5"]);
    assert!(
        world.events.iter().any(|event| matches!(&event.kind, EventKind::Repaired { by, .. } if by.as_str() == "boss"))
    );
}

#[test]
fn words_around_a_payload_count_by_the_author_in_the_contract() {
    for draft in ["When the stock is back:\n{}", "The page says this.\n\n{}", "Zxcv: {}", "{}\n\nThis needs a review."]
    {
        let text = draft.replace("{}", &xml("told", 5));
        for (author, said) in [(Author::Program, "boss: told 5"), (Author::Model, "boss: told 6")] {
            let mut world = Setup::new(vec![boss(|boss| (boss.author, boss.accepts_faults) = (author, true))]).build();
            world.send("alice", letter("ask", 0));
            world.take_started();
            world.write(world.invocation("boss"), &text);
            if author == Author::Model {
                let fault = fault_of(world.message(world.invocation("boss")));
                assert_eq!(fault.code, FaultCode::Malformed, "{draft}");
                let broken = fault.rule.as_deref().expect("a rule");
                assert!(broken.rule.contains("may be a draft: send only what you mean"), "{draft}: {}", broken.rule);
                assert!(broken.at.is_some(), "{draft}");
                world.write(world.invocation("boss"), &xml("told", 6));
            }
            assert_eq!(world.said(), [said], "{draft}");
        }
    }
}

#[test]
fn a_flood_of_payloads_is_refused_without_a_look_at_each_but_for_the_answer() {
    let mut world = started();
    let broken = "<ping xmlns='urn:test'><n>x</n></ping>";
    world.write(world.invocation("boss"), &broken.repeat(20_000));
    assert_eq!(fault_of(world.message(world.invocation("boss"))).code, FaultCode::Limit);
    let broken_answers = "<told xmlns='urn:test'><n>x</n></told>".repeat(100);
    world.write(world.invocation("boss"), &(broken.repeat(1_000) + &broken_answers + &xml("told", 5)));
    assert_eq!(world.said(), ["boss: told 5"]);
}
