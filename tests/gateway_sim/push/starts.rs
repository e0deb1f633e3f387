//! Pushes over the kills, ends and starts of the organism, and over moves of the listener.

use std::fs;

use serde_json::{Value, json};

use super::peer::{Act, Peer, say};
use super::setup::{SECRET, answered, failed, site};
use crate::kit::{Who, reply, text};

#[test]
fn who_has_it_answers_later_and_outlives_a_kill_meanwhile() {
    let peer = Peer::start([say("202 Accepted", "")]);
    let (mut site, ada) = site(&peer);
    let worker = site.party("worker");
    let sent: Vec<Value> = (1..=2).map(|number| ada.send(number).is(202).json()).collect();
    // Two conversations have no order between them.
    let mut pushes = [peer.next(), peer.next()];
    pushes.sort_by_key(|push| push.body.contains(">2</ask>"));
    let ids = pushes.map(|push| push.id());
    for id in &ids {
        worker.until(&format!("/v1/messages/{id}"), |known| known["attempts"] == 1);
    }
    worker.post(&format!("/v1/messages/{}/reply", ids[0]), &reply("later")).is(202);
    assert!(text(&answered(&ada, &sent[0])["reply"]["envelope"]).contains("later"));

    // A message behind it is pushed once the journal has its acceptance by the listener.
    ada.send(3).is(202);
    assert!(peer.next().body.contains(">3</ask>"));
    site.kill();
    site.start();
    // So it is not pushed again. The acceptance of the one behind it may not be written.
    ada.send(4).is(202);
    let again = peer.next();
    let next = if again.body.contains(">3</ask>") { peer.next() } else { again };
    assert!(next.body.contains(">4</ask>"), "{next:?}");
    worker.post(&format!("/v1/messages/{}/fail", ids[1]), r#"{"message":"no more coffee"}"#).is(202);
    failed(&ada, &sent[1], "no more coffee");
    assert!(peer.rest().is_empty());
}

#[test]
fn what_was_pushed_is_leased_once_its_listener_comes_for_it() {
    let peer = Peer::start([say("202 Accepted", ""), Act::Close]);
    let (mut site, ada) = site(&peer);
    let worker = site.party("worker");
    let sent: Vec<Value> = (1..=2).map(|number| ada.send(number).is(202).json()).collect();
    // The second one comes once the journal has that the listener accepted the first.
    assert!(peer.next().body.contains(">1</ask>") && peer.next().body.contains(">2</ask>"));
    site.stop();
    let file = site.folder.join("organism.yaml");
    let written = fs::read_to_string(&file).unwrap();
    let line = written.lines().find(|line| line.contains("mode: push")).unwrap();
    fs::write(&file, written.replace(line, "    remote: { mode: poll }")).unwrap();
    site.start();
    for _ in &sent {
        let leased = worker.lease("worker", r#"{"wait":60}"#);
        worker.post(&format!("/v1/messages/{}/reply", text(&leased[0]["id"])), &reply("polled")).is(202);
    }
    for sent in &sent {
        assert!(text(&answered(&ada, sent)["reply"]["envelope"]).contains("polled"));
    }
}

#[test]
fn a_kill_while_it_backs_off_changes_nothing_for_the_agent() {
    let peer = Peer::start([Act::Close, say("200 OK", &reply("at last"))]);
    let (mut site, ada) = site(&peer);
    let worker = site.party("worker");
    let sent = ada.send(7).is(202).json();
    let first = peer.next();
    worker.until(&format!("/v1/messages/{}", first.id()), |known| known["last_error"].is_string());
    site.kill();
    site.start();
    let second = peer.next();
    assert_eq!((second.id(), &second.body), (first.id(), &first.body));
    second.verify(SECRET, site.world.now()).unwrap();
    let known = answered(&ada, &sent);
    assert!(text(&known["reply"]["envelope"]).contains("at last"), "{known}");
    let known = worker.until(&format!("/v1/messages/{}", first.id()), |known| known["state"] == "replied");
    assert_eq!(known["attempts"], 2, "{known}");
    // No answer comes twice after one more start.
    site.kill();
    site.start();
    assert_eq!(answered(&ada, &sent)["replies"].as_array().unwrap().len(), 1);
    assert!(peer.rest().is_empty());
}

#[test]
fn an_end_in_order_leaves_what_backs_off_for_the_next_start() {
    let peer = Peer::start([Act::Close, Act::Close, say("200 OK", &reply("at last"))]);
    let (mut site, ada) = site(&peer);
    let sent = ada.send(7).is(202).json();
    let id = peer.next().id();
    site.stop();
    site.start();
    assert!(text(&answered(&ada, &sent)["reply"]["envelope"]).contains("at last"));
    assert!(peer.rest().iter().all(|request| request.id() == id));
}

#[test]
fn a_listener_that_moves_takes_along_what_was_not_delivered() {
    let old = Peer::start([Act::Close]);
    let new = Peer::start_in(&old.world, [say("200 OK", &reply("moved"))]);
    let (mut site, ada) = site(&old);
    let worker = site.party("worker");
    let sent: Vec<Value> = (1..=3).map(|number| ada.send(number).is(202).json()).collect();
    let first = old.next().id();
    worker.until(&format!("/v1/messages/{first}"), |known| known["last_error"].is_string());
    let register = |worker: &Who, url: &str| {
        let body = json!({ "name": "worker", "mode": "push", "url": url }).to_string();
        worker.post("/v1/listeners", &body).is(201).json()
    };
    assert_eq!(text(&register(&worker, &new.url())["mode"]), "push");
    for sent in &sent {
        assert!(text(&answered(&ada, sent)["reply"]["envelope"]).contains("moved"));
    }
    let mut came: Vec<_> = (1..=3).map(|_| new.next()).collect();
    assert!(came.iter().any(|request| request.id() == first));
    came.dedup_by_key(|request| request.id());
    assert_eq!(came.len(), 3);
    // The registered URL holds, also after a start; until another one is declared.
    site.kill();
    site.start();
    answered(&ada, &ada.send(4).is(202).json());
    new.next();
    let third = Peer::start_in(&old.world, [say("200 OK", &reply("declared"))]);
    site.stop();
    let written = fs::read_to_string(site.folder.join("organism.yaml")).unwrap();
    fs::write(site.folder.join("organism.yaml"), written.replace(&old.url(), &third.url())).unwrap();
    site.start();
    assert!(text(&answered(&ada, &ada.send(5).is(202).json())["reply"]["envelope"]).contains("declared"));
    // The same URL once more changes nothing.
    register(&worker, &third.url());
    assert!(text(&answered(&ada, &ada.send(6).is(202).json())["reply"]["envelope"]).contains("declared"));
}
