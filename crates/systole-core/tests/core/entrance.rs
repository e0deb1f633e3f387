//! Messages that an entrance has read and judged: the core takes them as it would take their bytes.

use std::sync::Arc;

use systole_core::core::*;
use systole_core::vocab::{Fault, FaultCode, ThreadId, ns};
use systole_xml::ladder::{Canonical, Raw};
use systole_xml::schema::{Catalog, Draft, Element, PayloadSchema, Validated, Validator};

use super::harness::*;
use super::payloads::*;

fn world(shards: u16) -> World {
    let mut world = Setup { shards, ..Setup::new(vec![worker(|_| {})]) }.build();
    world.emits("worker", |message| vec![reply("pong", number_in(message))]);
    world
}

/// Reads a letter of alice as her entrance does.
fn read(world: &World, letter: &Letter) -> Result<ReadMessage, Unreadable> {
    let mut validator = Validator::new(catalog());
    precheck(&Raw::new(letter.bytes()), world.client_id("alice"), &world.blueprint, &mut validator)
}

/// Hands over what an entrance has read, and lets everything run.
fn hand_over(world: &mut World, read: Result<ReadMessage, Unreadable>, shard: usize) -> ThreadId {
    let (client, root) = (world.client_id("alice"), world.fresh_root_at(shard));
    let permit = world.gauge.admit(0).expect("there is room");
    let message = Arrival::Read(Box::new(read));
    let injected =
        Injected { client, message, root, remote: false, last: false, attachment: None, permit, place: None };
    world.handle(shard, Input::Injected(injected));
    world.run();
    root
}

#[test]
fn a_message_that_was_read_is_answered_as_its_bytes_are() {
    let mut world = world(1);
    let letter = letter("ping", 7).label("l");
    let message = read(&world, &letter).expect("it is good");
    assert!(message.proof.is_some(), "a call is judged at its entrance");
    hand_over(&mut world, Ok(message), 0);
    assert_eq!(world.said(), ["worker: pong 7 [l]"]);
    world.send("alice", letter);
    assert_eq!(world.said(), ["worker: pong 7 [l]"]);
    assert_eq!(world.take_started(), ["worker <- alice: ping 7"; 2]);
}

#[test]
fn a_message_without_a_proof_is_judged() {
    let mut world = world(1);
    let letter = letter_xml("<ping xmlns=\"urn:test\"><n>no number</n></ping>");
    assert_eq!(read(&world, &letter).map(drop).unwrap_err().fault.code, FaultCode::Payload);
    // Without a proof the core judges it.
    let mut broken = read(&world, &letter_xml(&xml("ping", 1))).expect("it is good");
    broken.payload = canonical("<ping xmlns=\"urn:test\"><n>no number</n></ping>");
    broken.proof = None;
    hand_over(&mut world, Ok(broken), 0);
    assert_eq!(world.said(), ["system: !payload"]);
}

#[test]
fn the_fault_of_an_entrance_is_the_answer() {
    let mut world = world(1);
    let fault = read(&world, &letter("told", 1)).map(drop).unwrap_err();
    hand_over(&mut world, Err(fault), 0);
    assert_eq!(world.said(), ["system: !route"]);
}

#[test]
fn a_message_goes_to_the_shard_of_its_conversation_as_it_was_read() {
    let mut world = world(2);
    let root = world.send("alice", letter("ping", 1));
    world.slow_links = true;
    let again = read(&world, &letter("ping", 2).thread(root)).expect("it is good");
    hand_over(&mut world, Ok(again), 1);
    // Bytes are forwarded as the first shard has read them.
    world.post("alice", letter("ping", 3).thread(root).at(1));
    world.run();
    let proofs = world.links.iter().map(|(_, message)| match message {
        CoreMessage::Injected(message) => match &message.message {
            Arrival::Read(read) => (**read).as_ref().expect("it is good").proof.is_some(),
            Arrival::Raw(_) => panic!("it would be read again"),
        },
        other => panic!("{other:?}"),
    });
    assert_eq!(proofs.collect::<Vec<_>>(), [true, false]);
    world.slow_links = false;
    world.run();
    let said = world.said();
    assert_eq!(said, ["worker: pong 1", "worker: pong 2", "worker: pong 3"]);
    assert!(world.egress.is_empty() && world.paths().len() == 1, "all of it is one conversation");
}

/// Judges the bytes with which the worker answers as the entrance of agents does.
fn read_answer(world: &World, invocation: Invocation, text: &str) -> Result<PrecheckedAnswer, Fault> {
    let mut validator = Validator::new(catalog());
    let (Some(Party::Listener(worker)), message) = (world.blueprint.party("worker"), world.message(invocation)) else {
        panic!("worker is no listener")
    };
    let to = Answered { message: message.id, thread: message.thread };
    precheck_answer(Raw::new(text.to_owned()), to, worker, &world.blueprint, &mut validator)
}

#[test]
fn an_answer_that_was_read_is_not_read_again() {
    let mut world = Setup::new(vec![worker(|_| {})]).build();
    let enveloped = format!("<message xmlns=\"{}\">{}</message>", ns::ENVELOPE, xml("pong", 2));
    for text in [xml("pong", 2), format!("```xml\n{}\n```", xml("pong", 2)), enveloped] {
        world.send("alice", letter("ping", 1));
        let invocation = world.invocation("worker");
        let PrecheckedAnswer { replies, mut read, .. } = read_answer(&world, invocation, &text).expect("it is good");
        assert_eq!((replies, read.parts.len()), (1, 1));
        assert!(matches!(read.parts[0].payload, Draft::Proved(_)), "a reply is judged at its entrance");
        // These bytes would be refused: they count for operators only.
        read.raw = Raw::new("<never");
        world.end(invocation, HandlerOutcome::Read(Box::new(read)));
        world.run();
        assert_eq!(world.said(), ["worker: pong 2"], "{text}");
    }
}

#[test]
fn a_part_of_an_answer_without_a_proof_is_judged() {
    let mut world = Setup::new(vec![worker(|_| {})]).build();
    world.send("alice", letter("ping", 1));
    let invocation = world.invocation("worker");
    let mut read = read_answer(&world, invocation, &xml("pong", 2)).expect("it is good").read;
    read.parts[0].payload = Draft::Canonical(canonical("<pong xmlns=\"urn:test\"><n>no number</n></pong>"));
    world.end(invocation, HandlerOutcome::Read(Box::new(read)));
    world.run();
    assert_eq!(world.said(), ["worker: !payload"]);
}

/// A proof that `<pong>` with any text is valid, by a schema of that name that the organism does not have.
fn foreign_proof() -> Validated<Element> {
    let lax = "<xs:schema xmlns:xs='http://www.w3.org/2001/XMLSchema' targetNamespace='urn:test'>
        <xs:element name='pong' type='xs:anyType'/></xs:schema>";
    let mut catalog = Catalog::new();
    for schema in PayloadSchema::from_xsd("lax.xsd", lax).unwrap() {
        catalog.add(schema).unwrap();
    }
    let payload = canonical("<pong xmlns=\"urn:test\"><n>no number</n></pong>");
    Validator::new(Arc::new(catalog)).validate(payload).unwrap()
}

#[test]
fn a_proof_by_another_schema_of_that_name_is_none() {
    let mut world = Setup::new(vec![worker(|_| {})]).build();
    world.emits("worker", |_| vec![Emission { payload: Draft::Proved(foreign_proof()), ..reply("pong", 1) }]);
    world.send("alice", letter("ping", 1));
    assert_eq!(world.said(), ["worker: !payload"]);
    let mut read = read(&world, &letter("ping", 2)).expect("it is good");
    (read.payload, read.proof) = (foreign_proof().payload().clone(), Some(foreign_proof()));
    hand_over(&mut world, Ok(read), 0);
    assert_eq!(world.said(), ["system: !route"], "no client calls <pong>");
}

#[test]
fn a_crowded_answer_is_judged_before_as_the_core_judges_it() {
    let mut setup = Setup::new(vec![worker(|_| {})]);
    setup.blueprint = |blueprint| blueprint.limits.fanout = 8;
    let mut world = setup.build();
    let (good, bad) = (xml("pong", 2), "<pong xmlns=\"urn:test\"><n>no number</n></pong>".to_owned());
    let many = |count: usize, text: &str| text.repeat(count);
    for (text, said) in [
        (many(7, &bad) + &good, "worker: pong 2"),
        (many(300, &xml("tick", 1)) + &many(7, &bad) + &good, "worker: pong 2"),
        (many(300, &bad) + &good, "worker: !limit"),
        (many(9, &xml("tick", 1)), "worker: !limit"),
    ] {
        world.send("alice", letter("ping", 1));
        let invocation = world.invocation("worker");
        let checked = read_answer(&world, invocation, &text);
        assert_eq!(checked.is_ok(), !said.contains('!'), "{said}: {checked:?}");
        world.write(invocation, &text);
        assert_eq!(world.said(), [said]);
    }
}

/// A check that takes messages with a word in them for signed ones.
struct Sealed;

impl CheckSignature for Sealed {
    fn check(&self, raw: &Raw, message: &Canonical) -> Result<(), Arc<str>> {
        assert!(!message.as_str().is_empty());
        let is_sealed = raw.bytes().windows(6).any(|word| word == b"sealed");
        if is_sealed { Ok(()) } else { Err("there is no seal".into()) }
    }
}

#[test]
fn a_message_of_a_client_that_must_sign_is_refused_without_a_signature_wherever_it_comes_in() {
    let mut setup = Setup::new(vec![worker(|_| {})]);
    for client in &mut setup.clients {
        client.signatures = Some(Signatures::new(Sealed));
    }
    let mut world = setup.build();
    world.emits("worker", |message| vec![reply("pong", number_in(message))]);
    let sealed = letter("ping", 1).label("sealed");
    world.send("alice", sealed.clone());
    assert_eq!(world.said(), ["worker: pong 1 [sealed]"]);
    let message = read(&world, &sealed).expect("it is sealed");
    hand_over(&mut world, Ok(message), 0);
    assert_eq!(world.said(), ["worker: pong 1 [sealed]"]);
    world.send("alice", letter("ping", 2));
    let refused = read(&world, &letter("ping", 3)).map(drop).unwrap_err();
    assert_eq!(
        (refused.fault.code, refused.misroute.clone()),
        (FaultCode::Route, Some(Misroute::Unsigned("there is no seal".into())))
    );
    hand_over(&mut world, Err(refused), 0);
    world.post_bytes("alice", xml("ping", 4), &letter("ping", 4));
    world.run();
    assert_eq!(world.said(), ["system: !route", "system: !route", "system: !route"]);
    let denied = world.events.iter().filter(|event| match &event.kind {
        EventKind::Faulted { misroute: Some(misroute), .. } => misroute.is_denied(),
        _ => false,
    });
    assert_eq!(denied.count(), 3, "operators learn why");
    // What has no envelope has no signature.
    let mut validator = Validator::new(catalog());
    let payload = validator.validate(canonical(&xml("ping", 5))).expect("it is valid");
    let client = world.client_id("alice");
    let error = precheck_valid(payload, None, client, &world.blueprint, &mut validator).map(drop).unwrap_err();
    assert_eq!(error.fault.code, FaultCode::Route);
}
