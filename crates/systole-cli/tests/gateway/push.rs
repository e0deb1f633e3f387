//! Listeners that are pushed to.

use std::fs;
use std::time::Duration;

use serde_json::{Value, json};

use crate::kit::{Site, Who, ask, reply, text};
use crate::peer::{Act, Peer, Request, now, say, say_when_told};

const SECRET: &[u8] = b"0123456789abcdef0123456789abcdef";

/// An organism whose listener `worker` is pushed to at that URL.
fn organism(url: &str, more: &str) -> String {
    format!(
        r#"organism: {{ name: remote }}
durability: process
gateway: {{ listen: "127.0.0.1:0", requests: 1000000 }}
retention: {{ age: 7d }}
clients:
  - {{ name: ada, calls: ["{{urn:t}}ask"] }}
listeners:
  - name: worker
    remote: {{ mode: push, url: "{url}"{more} }}
    schemas: [t.xsd]
    accepts: ["{{urn:t}}ask"]
    replies: ["{{urn:t}}answer"]
"#
    )
}

/// A site whose worker is that peer, and its client.
fn site(peer: &Peer) -> (Site, Who) {
    let site = Site::idle(&organism(&peer.url(), ", secret: worker.secret, allow_private: true"));
    fs::write(site.folder.join("worker.secret"), [SECRET, b"\n"].concat()).unwrap();
    started(site)
}

fn started(mut site: Site) -> (Site, Who) {
    site.start();
    let ada = site.party("ada");
    (site, ada)
}

fn place(sent: &Value) -> String {
    format!("/v1/messages/{}", text(&sent["id"]))
}

fn answered(ada: &Who, sent: &Value) -> Value {
    ada.until(&place(sent), |known| known["reply"].is_object())
}

/// Checks that the only answer is a fault with that reason.
fn failed(ada: &Who, sent: &Value, why: &str) {
    let known = answered(ada, sent);
    assert_eq!((text(&known["state"]), text(&known["reply"]["fault"])), ("faulted", "failed"), "{known}");
    assert!(text(&known["reply"]["envelope"]).contains(why), "{known}");
    assert_eq!(known["replies"].as_array().unwrap().len(), 1, "{known}");
    assert!(!known.to_string().contains("hush"), "where it is, is its own business: {known}");
}

fn dead(worker: &Who) -> Vec<Value> {
    worker.get("/v1/mailboxes/worker/dead").is(200).json()["items"].as_array().unwrap().clone()
}

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
    request.verify(SECRET).unwrap();
    request.verify(b"another secret of somebody else").unwrap_err();
    Request { body: request.body.replace("42", "43"), ..request.clone() }.verify(SECRET).unwrap_err();

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
    let broken = "<answer xmlns=\"urn:t\"><left/></answer>";
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
    let whys =
        ["no listener takes {urn:x}bomb", "can't be read as XML", "elements are not allowed in it, only text at 1:1"];
    assert_eq!(dead.len(), whys.len(), "{dead:?}");
    for (item, why) in dead.iter().zip(whys) {
        assert!(text(&item["last_error"]).contains(why), "{why}: {item}");
        let known = worker.get(&format!("/v1/messages/{}", text(&item["id"]))).is(200).json();
        assert_eq!((text(&known["state"]), &known["last_error"]), ("dead", &item["last_error"]));
    }
}

#[test]
fn who_has_it_answers_later_and_outlives_a_kill_meanwhile() {
    let peer = Peer::start([say("202 Accepted", "")]);
    let (mut site, ada) = site(&peer);
    let mut worker = site.party("worker");
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
    let ada = Who { address: site.address, ..ada };
    worker.address = site.address;
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
fn kills_at_any_time_lose_nothing_and_answer_nothing_twice() {
    let peer = Peer::start([Act::Close, say("200 OK", &reply("done"))]);
    let (mut site, mut ada) = site(&peer);
    let (mut sent, mut came) = (Vec::new(), Vec::new());
    for round in 0..4 {
        sent.extend((0..10).map(|number| ada.send(round * 10 + number).is(202).json()));
        came.extend((0..5).map(|_| peer.next().id()));
        site.kill();
        site.start();
        ada.address = site.address;
    }
    for sent in &sent {
        let known = answered(&ada, sent);
        assert_eq!((text(&known["state"]), known["replies"].as_array().unwrap().len()), ("answered", 1), "{known}");
    }
    came.extend(peer.rest().iter().map(Request::id));
    came.sort_unstable();
    came.dedup();
    assert_eq!(came.len(), sent.len(), "each has one id");
}

#[test]
fn what_was_pushed_is_leased_once_its_listener_comes_for_it() {
    let peer = Peer::start([say("202 Accepted", ""), Act::Close]);
    let (mut site, mut ada) = site(&peer);
    let mut worker = site.party("worker");
    let sent: Vec<Value> = (1..=2).map(|number| ada.send(number).is(202).json()).collect();
    // The second one comes once the journal has that the listener accepted the first.
    assert!(peer.next().body.contains(">1</ask>") && peer.next().body.contains(">2</ask>"));
    site.stop();
    let file = site.folder.join("organism.yaml");
    let written = fs::read_to_string(&file).unwrap();
    let line = written.lines().find(|line| line.contains("mode: push")).unwrap();
    fs::write(&file, written.replace(line, "    remote: { mode: poll }")).unwrap();
    site.start();
    (ada.address, worker.address) = (site.address, site.address);
    for _ in &sent {
        let leased = worker.lease("worker", r#"{"wait":60}"#);
        worker.post(&format!("/v1/messages/{}/reply", text(&leased[0]["id"])), &reply("polled")).is(202);
    }
    for sent in &sent {
        assert!(text(&answered(&ada, sent)["reply"]["envelope"]).contains("polled"));
    }
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
fn a_kill_while_it_backs_off_changes_nothing_for_the_agent() {
    let peer = Peer::start([Act::Close, say("200 OK", &reply("at last"))]);
    let (mut site, ada) = site(&peer);
    let worker = site.party("worker");
    let sent = ada.send(7).is(202).json();
    let first = peer.next();
    worker.until(&format!("/v1/messages/{}", first.id()), |known| known["last_error"].is_string());
    site.kill();
    site.start();
    let (ada, worker) = (Who { address: site.address, ..ada }, Who { address: site.address, ..worker });
    let second = peer.next();
    assert_eq!((second.id(), &second.body), (first.id(), &first.body));
    second.verify(SECRET).unwrap();
    let known = answered(&ada, &sent);
    assert!(text(&known["reply"]["envelope"]).contains("at last"), "{known}");
    let known = worker.until(&format!("/v1/messages/{}", first.id()), |known| known["state"] == "replied");
    assert_eq!(known["attempts"], 2, "{known}");
    // No answer comes twice after one more start.
    site.kill();
    site.start();
    let ada = Who { address: site.address, ..ada };
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
    let ada = Who { address: site.address, ..ada };
    assert!(text(&answered(&ada, &sent)["reply"]["envelope"]).contains("at last"));
    assert!(peer.rest().iter().all(|request| request.id() == id));
}

#[test]
fn private_addresses_are_refused_unless_they_are_allowed() {
    let peer = Peer::start([say("200 OK", &reply("inside"))]);
    // A name is judged by its addresses.
    let url = format!("http://localhost:{}/", peer.address.port());
    let (site, ada) = started(Site::idle(&organism(&url, "")));
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
fn a_listener_that_moves_takes_along_what_was_not_delivered() {
    let (old, new) = (Peer::start([Act::Close]), Peer::start([say("200 OK", &reply("moved"))]));
    let (mut site, ada) = site(&old);
    let mut worker = site.party("worker");
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
    let mut ada = Who { address: site.address, ..ada };
    answered(&ada, &ada.send(4).is(202).json());
    new.next();
    let third = Peer::start([say("200 OK", &reply("declared"))]);
    site.stop();
    let written = fs::read_to_string(site.folder.join("organism.yaml")).unwrap();
    fs::write(site.folder.join("organism.yaml"), written.replace(&old.url(), &third.url())).unwrap();
    site.start();
    (ada.address, worker.address) = (site.address, site.address);
    assert!(text(&answered(&ada, &ada.send(5).is(202).json())["reply"]["envelope"]).contains("declared"));
    // The same URL once more changes nothing.
    register(&worker, &third.url());
    assert!(text(&answered(&ada, &ada.send(6).is(202).json())["reply"]["envelope"]).contains("declared"));
}

#[test]
fn a_listener_is_pushed_to_whose_token_is_no_good_but_it_answers_no_more() {
    let peer = Peer::start([say("202 Accepted", ""), say("200 OK", &reply("still here"))]);
    let (site, ada) = site(&peer);
    let worker = site.party("worker");
    ada.send(1).is(202);
    let id = peer.next().id();
    assert!(site.systole(&["token", "revoke", "worker"]).output().unwrap().status.success());
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
            now().after(Duration::from_secs(3))
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

#[test]
fn secrets_are_neither_logged_nor_kept_nor_listed() {
    let peer = Peer::start([say("500 No", ""), say("200 OK", &reply("one"))]);
    let (site, ada) = site(&peer);
    let worker = site.party("worker");
    failed(&ada, &ada.send(1).is(202).json(), "rejected");
    answered(&ada, &ada.send(2).is(202).json());
    let listed = worker.get("/v1/mailboxes/worker/messages").body + &worker.get("/v1/mailboxes/worker/dead").body;
    let checked = site.systole(&["check", "organism.yaml"]).output().unwrap();
    assert!(checked.status.success() && checked.stderr.is_empty(), "{checked:?}");
    let mut all = vec![listed.into_bytes(), checked.stdout, site.log().into_bytes()];
    for file in fs::read_dir(&site.folder).unwrap().map(|entry| entry.unwrap().path()) {
        if !file.ends_with("worker.secret") {
            all.push(fs::read(file).unwrap());
        }
    }
    assert!(!all.iter().any(|bytes| bytes.windows(SECRET.len()).any(|part| part == SECRET)));
    assert!(!site.log().contains("hush"), "{}", site.log());
}

#[test]
fn what_was_delivered_is_forgotten_after_its_time() {
    let peer = Peer::start([say("200 OK", &reply("one"))]);
    let written = organism(&peer.url(), ", allow_private: true").replace("age: 7d", "age: 1ms");
    let (mut site, ada) = started(Site::idle(&written));
    assert!(ada.post("/v1/messages?wait=60", &ask(1)).is(200).body.contains("one"));
    assert!(peer.next().header("systole-signature").is_none(), "it has no secret");
    // A start is one of the times at which a journal is tidied.
    site.kill();
    site.start();
    let worker = site.party("worker");
    worker.until("/v1/mailboxes/worker/messages", |page| page["items"] == json!([]));
}
