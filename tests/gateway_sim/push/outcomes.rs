//! Outcomes of messages that are pushed.

use std::time::Duration;

use serde_json::json;

use super::peer::{Act, Peer, Request, say, say_when_told};
use super::setup::{SECRET, answered, dead, failed, organism, place, site, started};
use crate::kit::{Site, ask, reply, text};

#[test]
fn a_message_is_pushed_signed_and_what_comes_back_is_its_reply() {
    let peer = Peer::start([say("200 OK", &reply("forty-two"))]);
    let (site, ada) = site(&peer);
    let worker = site.party("worker");
    let sent = ada.send(42).is(202).json();
    let request = peer.next();
    assert!(request.head.starts_with("POST /in?key=hush HTTP/1.1\r\n"), "{}", request.head);
    assert_eq!(request.header("content-type"), Some("application/xml"));
    assert!(request.body.contains("<from>ada</from><to>worker</to>") && request.body.contains(">42</ask>"));
    request.verify(SECRET, site.world.now()).unwrap();
    request.verify(b"another secret of somebody else", site.world.now()).unwrap_err();
    Request { body: request.body.replace("42", "43"), ..request.clone() }.verify(SECRET, site.world.now()).unwrap_err();

    let known = answered(&ada, &sent);
    assert_eq!((text(&known["state"]), text(&known["reply"]["from"])), ("answered", "worker"));
    assert!(text(&known["reply"]["envelope"]).contains("forty-two"), "{known}");
    let known = worker.get(&format!("/v1/messages/{}", request.id())).is(200).json();
    assert_eq!((text(&known["state"]), &known["attempts"]), ("replied", &1.into()), "{known}");
    assert!(known["last_error"].is_null() && text(&known["reply"]).contains("forty-two"), "{known}");
    // No other reader gets it.
    worker.post("/v1/mailboxes/worker/lease", "").problem(409, "pushed");
    assert!(peer.rest().is_empty());
}

#[test]
fn a_push_names_the_caller_that_the_client_named_unless_it_is_malformed() {
    const CALLER: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    const OTHER: &str = "00-5bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    let long = format!("{CALLER}-{}", "x".repeat(6000));
    let peer = Peer::start([say("204 No Content", "")]);
    let (_site, ada) = site(&peer);
    for (headers, own, expected) in [
        (&[("traceparent", CALLER)][..], None, Some(CALLER)),
        (&[], Some(OTHER), Some(OTHER)),
        (&[("traceparent", CALLER)], Some(OTHER), Some(CALLER)),
        (&[], None, None),
        (&[("traceparent", "00-abc-01")], None, None),
        (&[("traceparent", "00-abc-01")], Some(OTHER), Some(OTHER)),
        (&[("traceparent", &long)], None, None),
        (&[("traceparent", CALLER), ("traceparent", CALLER)], None, None),
    ] {
        let own = own.map(|own| format!("<traceparent xmlns=\"urn:systole:meta:v1\">{own}</traceparent>"));
        let (meta, payload) = (own.unwrap_or_default(), "<ask xmlns=\"urn:t\">7</ask>");
        let envelope = format!(
            "<message xmlns=\"https://xml-pipeline.org/ns/envelope/v1\"><meta>{meta}</meta>{payload}</message>"
        );
        ada.ask("POST", "/v1/messages", headers, &envelope).is(202);
        let pushed = peer.next();
        assert_eq!(pushed.header("traceparent"), expected, "{headers:?} {envelope}");
        assert_eq!(pushed.body.contains("<traceparent"), expected.is_some(), "{}", pushed.body);
        assert!(expected.is_none_or(|expected| pushed.body.contains(expected)), "{}", pushed.body);
    }
}

#[test]
fn an_empty_answer_is_an_end_without_a_reply() {
    let peer = Peer::start([say("200 OK", ""), say("204 No Content", ""), say("200 OK", " \n")]);
    let (_site, ada) = site(&peer);
    for number in 1..=3 {
        let known = answered(&ada, &ada.send(number).is(202).json());
        assert_eq!(text(&known["reply"]["fault"]), "silent", "{known}");
    }
}

#[test]
fn what_breaks_the_contract_never_reaches_the_caller() {
    let broken = "<answer xmlns=\"urn:t\" left=\"1\">a</answer>";
    let peer = Peer::start([say("200 OK", "<bomb xmlns=\"urn:x\"/>"), say("200 OK", "hello!"), say("200 OK", broken)]);
    let (site, ada) = site(&peer);
    for number in 1..=3 {
        let known = answered(&ada, &ada.send(number).is(202).json());
        assert_eq!(text(&known["state"]), "faulted", "{known}");
        assert!(!text(&known["reply"]["envelope"]).contains("bomb xmlns"), "{known}");
    }
    // The listener gets the reason of each, and may redrive them.
    let worker = site.party("worker");
    let dead = dead(&worker);
    let whys = ["no listener takes {urn:x}bomb", "can't be read as XML", "not allowed; expected no attributes"];
    assert_eq!(dead.len(), whys.len(), "{dead:?}");
    for (item, why) in dead.iter().zip(whys) {
        assert!(text(&item["last_error"]).contains(why), "{why}: {item}");
        let known = worker.get(&format!("/v1/messages/{}", text(&item["id"]))).is(200).json();
        assert_eq!((text(&known["state"]), &known["last_error"]), ("dead", &item["last_error"]));
    }
}

#[test]
fn a_refusal_is_a_dead_letter_and_its_caller_is_told() {
    let peer = Peer::start([
        say("500 Internal Server Error", "out of memory"),
        say("404 Not Found", ""),
        say("302 Found", ""),
        say("200 OK", &reply("better")),
    ]);
    let (site, ada) = site(&peer);
    let worker = site.party("worker");
    for (number, why) in [(1, "500 Internal Server Error: out of memory"), (2, "404 Not Found"), (3, "302 Found")] {
        let sent = ada.send(number).is(202).json();
        failed(&ada, &sent, "not delivered to worker: rejected after 1/5 attempts");
        failed(&ada, &sent, why);
        let id = peer.next().id();
        let known = worker.get(&format!("/v1/messages/{id}")).json();
        assert_eq!((text(&known["state"]), &known["attempts"]), ("dead", &1.into()), "{known}");
        assert!(text(&known["last_error"]).contains(why), "{known}");
    }
    let letters = dead(&worker);
    assert_eq!(letters.len(), 3);
    // Once more, under the same id; its caller has had an answer.
    let id = text(&letters[0]["id"]).to_owned();
    let redriven = worker.post("/v1/mailboxes/worker/dead/redrive", &json!({ "id": id }).to_string()).is(200);
    assert_eq!(redriven.json()["redriven"], 1);
    assert_eq!(peer.next().id(), id);
    let known = worker.until(&format!("/v1/messages/{id}"), |known| known["state"] == "replied");
    assert!(text(&known["reply"]).contains("better"), "{known}");
    assert_eq!(dead(&worker).len(), 2);
}

#[test]
fn answers_of_peers_that_mean_no_good_are_dead_letters() {
    let huge = Act::Say(format!("HTTP/1.1 200 OK\r\nContent-Length: 1048577\r\n\r\n{}", "x".repeat(1 << 20)));
    let json = |body: &str| {
        let Act::Say(said) = say("200 OK", body) else { panic!("it says something") };
        Act::Say(said.replace("application/xml", "application/json"))
    };
    let script = [
        (huge, "answer_too_large"),
        (Act::Say("SSH-2.0-OpenSSH_9.6\r\n\r\n".into()), "unparsable"),
        (json("{"), "unparsable"),
        (json(r#"{"error":"out of \u001b[2J tokens"}"#), "peer_error"),
    ];
    let peer = Peer::start(script.iter().map(|(act, _)| act.clone()).collect::<Vec<_>>());
    let (site, ada) = site(&peer);
    for (number, (_, cause)) in (1..).zip(&script) {
        failed(&ada, &ada.send(number).is(202).json(), cause);
    }
    assert_eq!(dead(&site.party("worker")).len(), 4);
}

#[test]
fn what_never_arrives_is_tried_five_times() {
    let peer = Peer::start([Act::Close]);
    let (site, ada) = site(&peer);
    let worker = site.party("worker");
    let sent = ada.send(1).is(202).json();
    let id = peer.next().id();
    let known = worker.until(&format!("/v1/messages/{id}"), |known| known["last_error"].is_string());
    assert_eq!(text(&known["state"]), "waiting", "{known}");
    for _ in 2..=5 {
        assert_eq!(peer.next().id(), id);
    }
    failed(&ada, &sent, "attempts_exhausted after 5/5 attempts");
    let letters = dead(&worker);
    assert_eq!((&letters[0]["deliveries"], letters.len()), (&5.into(), 1), "{letters:?}");
    assert!(peer.rest().is_empty());
}

#[test]
fn private_addresses_are_refused_unless_they_are_allowed() {
    let peer = Peer::start([say("200 OK", &reply("inside"))]);
    // A name is judged by its addresses.
    let url = format!("http://localhost:{}/", peer.address.port());
    let (site, ada) = started(Site::idle_in(peer.world.clone(), &organism(&url, "")));
    failed(&ada, &ada.send(1).is(202).json(), "address_refused");
    let worker = site.party("worker");
    for url in
        [&peer.url(), "http://169.254.169.254/", "http://[::1]:1/", "http://2130706433/", "ftp://a/", "http://u@a/"]
    {
        let body = json!({ "name": "worker", "mode": "push", "url": url });
        worker.post("/v1/listeners", &body.to_string()).problem(400, "bad_request");
    }
    assert!(peer.rest().is_empty());
}

#[test]
fn metadata_of_clouds_is_refused_even_where_private_addresses_are_allowed() {
    let peer = Peer::start([say("200 OK", "")]);
    let (site, _) = site(&peer);
    let worker = site.party("worker");
    let body = json!({ "name": "worker", "mode": "push", "url": "http://169.254.169.254/latest" });
    let problem = worker.post("/v1/listeners", &body.to_string()).problem(400, "bad_request");
    assert!(text(&problem["detail"]).contains("link-local"), "{problem}");
}

#[test]
fn a_listener_is_pushed_to_whose_token_is_no_good_but_it_answers_no_more() {
    let peer = Peer::start([say("202 Accepted", ""), say("200 OK", &reply("still here"))]);
    let (site, ada) = site(&peer);
    let worker = site.party("worker");
    ada.send(1).is(202);
    let id = peer.next().id();
    site.revoke("worker");
    worker.post(&format!("/v1/messages/{id}/reply"), &reply("mine")).problem(401, "unauthorized");
    worker.post("/v1/listeners", r#"{"name":"worker","mode":"push"}"#).problem(401, "unauthorized");
    // Pushes are signed, and answers come on the same connection.
    assert!(text(&answered(&ada, &ada.send(2).is(202).json())["reply"]["envelope"]).contains("still here"));
}

#[test]
fn an_answer_that_comes_otherwise_ends_what_is_tried_again() {
    let peer = Peer::start([Act::Close, say("200 OK", &reply("twice"))]);
    let (site, ada) = site(&peer);
    let worker = site.party("worker");
    let sent = ada.send(1).is(202).json();
    let id = peer.next().id();
    worker.post(&format!("/v1/messages/{id}/reply"), &reply("once")).is(202);
    assert!(text(&answered(&ada, &sent)["reply"]["envelope"]).contains("once"));
    // The next one is the next that comes, unless the second attempt ran already.
    let next = ada.send(2).is(202).json();
    answered(&ada, &next);
    let known = ada.get(&place(&sent)).json();
    assert_eq!(known["replies"].as_array().unwrap().len(), 1, "{known}");
}

#[test]
fn what_nobody_waits_for_any_more_is_broken_off() {
    let peer = Peer::start([say_when_told("200 OK", &reply("late")), say("200 OK", &reply("next"))]);
    let (site, ada) = site(&peer);
    let worker = site.party("worker");
    // It comes soon, and not before the message has arrived.
    let late = ask(1).replace(
        "<from>x</from>",
        &format!(
            "<from>x</from><deadline xmlns=\"urn:systole:meta:v1\">{}</deadline>",
            site.world.now().after(Duration::from_secs(3))
        ),
    );
    let sent = ada.post("/v1/messages", &late).is(202).json();
    let id = peer.next().id();
    let known = answered(&ada, &sent);
    assert_eq!(text(&known["state"]), "faulted", "{known}");
    worker.until(&format!("/v1/messages/{id}"), |known| known["state"] == "gone");
    peer.go_on();
    assert!(text(&answered(&ada, &ada.send(2).is(202).json())["reply"]["envelope"]).contains("next"));
    assert!(peer.next().body.contains(">2</ask>"));
}

#[test]
fn a_listener_keeps_its_order_and_others_do_not_wait() {
    let peer = Peer::start([say_when_told("200 OK", &reply("one")), say("200 OK", &reply("more"))]);
    let (site, ada) = site(&peer);
    let worker = site.party("worker");
    ada.send(1).is(202);
    let first = peer.next().id();
    (2..=9).for_each(|number| drop(ada.send(number).is(202)));
    // Conversations have no order among themselves; the mailbox has one.
    let page = worker.until("/v1/mailboxes/worker/messages", |page| page["items"].as_array().unwrap().len() == 9);
    let ids: Vec<_> = page["items"].as_array().unwrap().iter().map(|item| text(&item["id"]).to_owned()).collect();
    assert_eq!(ids[0], first);
    assert!(peer.rest().is_empty(), "one after the other");
    peer.go_on();
    for id in &ids[1..] {
        assert_eq!(peer.next().id(), *id);
    }
}
