//! Tokens as `systole token` makes and revokes them, and requests that are slow or cut.

use std::io::{Read, Write};

use crate::kit::{Site, Who, answer, ask, text, wait};

#[test]
fn nobody_comes_in_without_a_good_token() {
    let site = Site::new();
    let good = site.token(&["ada"]);
    let twice = site.token(&["ada"]);
    let bad = ["", "x", &good, &good[..good.len() - 1], &twice.to_uppercase(), &format!("{twice} {twice}")];
    for token in bad {
        let answer = site.who(token).get("/v1/messages/x");
        assert_eq!(answer.header("www-authenticate"), Some("Bearer"), "{token}");
        answer.problem(401, "unauthorized");
    }
    site.who(&twice).get("/v1/messages/x").problem(404, "not_found");
    let mut bare = site.who("").connect();
    write!(bare, "GET /v1/messages/x HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAuthorization: Basic eDp5\r\n\r\n")
        .unwrap();
    answer(bare).problem(401, "unauthorized");
    // The journal has no token in clear text.
    let kept = std::fs::read(site.folder.join("systole.journal")).unwrap();
    assert!(!kept.windows(twice.len()).any(|bytes| bytes == twice.as_bytes()));
    assert!(site.systole(&["token", "revoke", "ada"]).output().unwrap().status.success());
    site.who(&twice).get("/v1/messages/x").problem(401, "unauthorized");
}

#[test]
fn tokens_are_made_for_those_who_are_there() {
    let site = Site::new();
    for args in [&["nobody"][..], &["cli"], &["worker", "--kind", "client"], &["ada", "--kind", "admin"]] {
        let made = site.systole(&[&["token", "new"], args].concat()).output().unwrap();
        assert!(!made.status.success() && made.stdout.is_empty(), "{args:?}");
    }
    let (_, _) = (site.token(&["boss", "--kind", "admin"]), site.token(&["worker"]));
    let listed = String::from_utf8(site.systole(&["token", "list"]).output().unwrap().stdout).unwrap();
    assert!(listed.contains("boss\tadmin\t") && listed.contains("worker\tlistener\t"), "{listed}");
}

#[test]
fn bodies_have_a_bound_and_a_time() {
    let site = Site::with("requests: 1000000, header_time: 300ms, body_time: 300ms", "7d");
    let ada = site.party("ada");
    let send = |head: &str| {
        let mut stream = ada.connect();
        let token = &ada.token;
        write!(stream, "POST /v1/messages HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\n{head}").unwrap();
        answer(stream)
    };
    send("Content-Length: 1048577\r\n\r\n").problem(413, "too_large");
    send("Content-Length: 99999999999999999999\r\n\r\n").is(400);
    // The head comes whole, the body never does.
    send("Content-Length: 10\r\n\r\n<mess").problem(408, "slow_body");
    send("Transfer-Encoding: chunked\r\n\r\n5\r\n<mess").problem(408, "slow_body");
    // The head never comes whole: the connection ends.
    assert_ne!(send("X-Slow: 1\r\nX-").status, 200);
    // A head without end is cut off.
    let endless = format!("X-Long: {}", "x".repeat(200 << 10));
    let mut stream = ada.connect();
    let _ = write!(stream, "GET /livez HTTP/1.1\r\nHost: x\r\n{endless}");
    answer(stream).is(431);
    // A connection in the queue of the system is accepted once another one has ended.
    ada.get("/livez").is(200);
}

#[test]
fn who_waits_hears_nothing_once_the_token_is_revoked() {
    let site = Site::new();
    let (ada, worker) = (site.party("ada"), site.party("worker"));
    let request = |method: &str, path: &str, body: &str| worker.connect_and(&worker.request(method, path, &[], body));
    let waiting = [
        request("GET", "/v1/mailboxes/worker/messages?wait=60", ""),
        request("POST", "/v1/mailboxes/worker/lease", r#"{"wait":60}"#),
    ];
    let upgrade = "GET /v1/mailboxes/worker/stream HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
                   Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nAuthorization: Bearer";
    let streams = [
        request("GET", "/v1/mailboxes/worker/stream", ""),
        worker.connect_and(format!("{upgrade} {}\r\n\r\n", worker.token).as_bytes()),
    ];
    wait("all four wait", || (site.metric("systole_gateway_calls") >= 4).then_some(()));
    assert!(site.systole(&["token", "revoke", "worker"]).output().unwrap().status.success());
    ada.send(7).is(202);
    for waited in waiting {
        answer(waited).problem(401, "unauthorized");
    }
    for mut stream in streams {
        let mut said = String::new();
        stream.read_to_string(&mut said).expect("the stream ends");
        assert!(!said.contains("</ask>"), "{said}");
    }
    // A client waits for an answer in the same way; a new token gets the message that the old one did not.
    let bob = site.party("bob");
    let asked = bob.connect_and(&bob.request("POST", "/v1/messages?wait=60", &[], &ask(8)));
    wait("bob waits", || (site.metric("systole_gateway_waiters") >= 1).then_some(()));
    assert!(site.systole(&["token", "revoke", "bob"]).output().unwrap().status.success());
    let worker = site.party("worker");
    let page = worker.until("/v1/mailboxes/worker/messages", |page| page["items"].as_array().unwrap().len() == 2);
    for item in page["items"].as_array().unwrap() {
        worker.post(&format!("/v1/messages/{}/reply", text(&item["id"])), &crate::kit::reply("secret")).is(202);
    }
    let told = answer(asked).is(202);
    assert!(told.body.contains("queued") && !told.body.contains("secret"), "{told:?}");
}

#[test]
fn what_came_after_a_token_was_revoked_has_no_effect() {
    let site = Site::new();
    let (ada, worker) = (site.party("ada"), site.party("worker"));
    let id = text(&ada.send(1).is(202).json()["id"]).to_owned();
    let item = &worker.until("/v1/mailboxes/worker/messages", |page| !page["items"].as_array().unwrap().is_empty());
    let received = text(&item["items"][0]["id"]).to_owned();
    // Sends half a body behind an accepted head.
    let half = |who: &Who, path: &str, body: &str| {
        let (head, tail) = body.split_at(body.len() / 2);
        let request = who.request("POST", path, &[], body);
        let stream = who.connect_and(&request[..request.len() - tail.len()]);
        assert!(request.ends_with([head, tail].concat().as_bytes()));
        (stream, tail.to_owned())
    };
    let posted = half(&ada, "/v1/messages", &ask(2));
    let replied = half(&worker, &format!("/v1/messages/{received}/reply"), &crate::kit::reply("late"));
    wait("both are let in", || (site.metric("systole_gateway_calls") >= 2).then_some(()));
    assert!(site.systole(&["token", "revoke", "ada"]).output().unwrap().status.success());
    let worker = site.party("worker");
    for (mut stream, tail) in [posted, replied] {
        stream.write_all(tail.as_bytes()).unwrap();
        answer(stream).problem(401, "unauthorized");
    }
    let ada = site.party("ada");
    assert_eq!(ada.get(&format!("/v1/messages/{id}")).is(200).json()["state"], "delivered", "nobody answered it");
    let leased = worker.lease("worker", r#"{"max":10}"#);
    assert_eq!(leased.len(), 1, "{leased:?}");
}
