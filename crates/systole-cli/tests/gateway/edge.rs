//! The edge of the entrance: heads that can't be answered, bodies of unknown clients, and limits of room.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::kit::{Answer, PATIENCE, Site, Who, answer, ask, text, wait};

/// The next answer on a connection, which may stay open.
fn next_answer(stream: &mut TcpStream) -> Answer {
    let (mut all, mut some) = (Vec::new(), [0; 4096]);
    loop {
        let count = stream.read(&mut some).expect("an answer comes in time");
        all.extend_from_slice(&some[..count]);
        let text = String::from_utf8_lossy(&all);
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0);
        let answer = Answer { status, head: head.to_owned(), body: body.to_owned() };
        let length = answer.header("content-length").and_then(|length| length.parse().ok());
        if count == 0 || length.is_some_and(|length: usize| body.len() >= length) {
            return answer;
        }
    }
}

#[test]
fn who_left_a_body_unread_says_that_the_connection_ends() {
    let site = Site::new();
    let ada = site.party("ada");
    let long = "x".repeat(300_000);
    let table = [("Content-Type", "text/csv")];
    for (method, path, status) in
        [("POST", "/v1/messages", 415), ("POST", "/v1/nothing", 404), ("DELETE", "/v1/messages", 405)]
    {
        let request = String::from_utf8(ada.request(method, path, &table, &long)).unwrap();
        let mut stream = ada.connect();
        // The server may have hung up before all of it is written.
        let _ = stream.write_all(request.replace("Connection: close\r\n", "").as_bytes());
        let answer = next_answer(&mut stream);
        assert_eq!((answer.status, answer.header("connection")), (status, Some("close")), "{path}");
    }
    // A body that was read leaves the connection open.
    let request = String::from_utf8(ada.request("POST", "/v1/messages", &[], &ask(1))).unwrap();
    let mut stream = ada.connect_and(request.replace("Connection: close\r\n", "").as_bytes());
    let answer = next_answer(&mut stream);
    assert_eq!((answer.status, answer.header("connection")), (202, None));
    stream.write_all(b"GET /livez HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
    assert_eq!(next_answer(&mut stream).status, 200);
}

/// The code of a refusal without a document: that of a head which can't be parsed.
const BARE: &str = "";

/// Requests as a client writes them, the status of the answer to each, and the code of its problem. `TOKEN` stands for a
/// good token, `{N}` for so many letters.
const MALFORMED: &[(&str, u16, &str)] = &[
    ("GET /v1/messages/x HTTP/1.1\r\nAuthorization: Bearer TOKEN\r\n\r\n", 400, "bad_request"),
    ("GET /livez HTTP/1.1\r\n\r\n", 400, "bad_request"),
    ("GET /livez HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n", 400, "bad_request"),
    ("GET /livez HTTP/1.0\r\nHost: a\r\nHost: b\r\n\r\n", 400, "bad_request"),
    ("GET /livez HTTP/1.1\r\nHost: a b\r\n\r\n", 400, "bad_request"),
    ("GET /livez HTTP/1.1\r\nHost: ada@b\r\n\r\n", 400, "bad_request"),
    ("GET /livez HTTP/1.1\r\nHost: a:b:c\r\n\r\n", 400, "bad_request"),
    (
        "GET /v1/messages/x HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer TOKEN\r\nAuthorization: Bearer TOKEN\r\n\r\n",
        400,
        "bad_request",
    ),
    (
        "GET /v1/messages/x HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer x\r\nAuthorization: Bearer TOKEN\r\n\r\n",
        400,
        "bad_request",
    ),
    ("nonsense\r\n\r\n", 400, BARE),
    ("GET /livez\r\n\r\n", 400, BARE),
    ("GET /livez HTTP/3.0\r\nHost: a\r\n\r\n", 400, BARE),
    ("GET /livez HTTP/1.1\r\nHost a\r\n\r\n", 400, BARE),
    ("GET /livez HTTP/1.1\r\nHost: a\r\n B: folded\r\n\r\n", 400, BARE),
    ("GET /livez HTTP/1.1\r\nHost: a\r\nB : 1\r\n\r\n", 400, BARE),
    ("GET /livez HTTP/1.1\r\nHost: a\r\nB: \u{1}\r\n\r\n", 400, BARE),
    ("GET /li vez HTTP/1.1\r\nHost: a\r\n\r\n", 400, BARE),
    ("POST /v1/messages HTTP/1.1\r\nHost: a\r\nContent-Length: x\r\n\r\n", 400, BARE),
    ("POST /v1/messages HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", 400, BARE),
    ("POST /v1/messages HTTP/1.1\r\nHost: a\r\nContent-Length: 99999999999999999999\r\n\r\n", 400, BARE),
    ("POST /v1/messages HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip\r\n\r\n", 400, BARE),
    ("POST /v1/messages HTTP/1.0\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n", 400, BARE),
    (
        "POST /v1/messages HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer TOKEN\r\nTransfer-Encoding: gzip, chunked\r\n\r\n\
         1\r\nx\r\n0\r\n\r\n",
        501,
        "transfer_coding",
    ),
    ("GET /livez HTTP/1.1\r\nHost: a\r\nB: {100000}\r\n\r\n", 431, BARE),
    ("GET /livez HTTP/1.1\r\nHost: a\r\nB: {65536}\r\n\r\n", 431, BARE),
    ("GET /livez HTTP/1.1\r\nHost: a\r\nB: {300000}", 431, BARE),
    ("GET /livez?{9000} HTTP/1.1\r\nHost: a\r\n\r\n", 414, "uri_too_long"),
    ("GET /livez?{100000} HTTP/1.1\r\nHost: a\r\n\r\n", 431, BARE),
    ("GET /nowhere HTTP/1.1\r\nHost: a\r\n\r\n", 404, "not_found"),
    ("DELETE /livez HTTP/1.1\r\nHost: a\r\n\r\n", 405, "method_not_allowed"),
    ("BREW /livez HTTP/1.1\r\nHost: a\r\n\r\n", 405, "method_not_allowed"),
    ("GET /v1/messages/%ff HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer TOKEN\r\n\r\n", 400, "http"),
    ("GET /v1/messages/x HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer\r\n\r\n", 401, "unauthorized"),
    ("GET /v1/messages/x HTTP/1.1\r\nHost: a\r\nAuthorization: Basic eDp5\r\n\r\n", 401, "unauthorized"),
    ("GET /v1/messages/x HTTP/1.1\r\nHost: a\r\n\r\n", 401, "unauthorized"),
    (
        "POST /v1/messages HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer TOKEN\r\nContent-Encoding: gzip\r\n\
         Content-Length: 2\r\n\r\n\u{1f}x",
        415,
        "content_encoding",
    ),
    (
        "POST /v1/messages HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer TOKEN\r\nContent-Type: text/csv\r\n\
         Content-Length: 2\r\n\r\n{}",
        415,
        "media_type",
    ),
    (
        "POST /v1/messages HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer TOKEN\r\nContent-Type: text/plain\r\n\
         Content-Length: 2\r\n\r\n{}",
        415,
        "media_type",
    ),
    (
        "POST /v1/messages/x/fail HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer TOKEN\r\nContent-Type: text/xml\r\n\
         Content-Length: 2\r\n\r\n{}",
        415,
        "media_type",
    ),
    (
        "POST /v1/messages HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer TOKEN\r\nTransfer-Encoding: chunked\r\n\r\n\
         nonsense\r\n",
        400,
        "bad_request",
    ),
];

#[test]
fn every_malformed_request_gets_its_status() {
    let site = Site::new();
    let ada = site.party("ada");
    for (request, status, code) in MALFORMED {
        let mut bytes = request.replace("TOKEN", &ada.token);
        while let Some((before, (count, after))) =
            bytes.split_once('{').and_then(|(before, rest)| Some((before, rest.split_once('}')?)))
            && let Ok(count) = count.parse()
        {
            bytes = format!("{before}{}{after}", "x".repeat(count));
        }
        let mut stream = ada.connect();
        // A refusal may come before the request is written whole.
        let _ = stream.write_all(bytes.as_bytes());
        let answer = next_answer(&mut stream);
        let context = format!("{request:?}: {answer:?}");
        assert_eq!(answer.status, *status, "{context}");
        if *code == BARE {
            assert_eq!(answer.header("content-length"), Some("0"), "{context}");
            continue;
        }
        assert_eq!(answer.header("content-type"), Some("application/problem+json"), "{context}");
        let problem = answer.json();
        assert_eq!((&problem["code"], &problem["status"]), (&(*code).into(), &(*status).into()), "{context}");
    }
    // A refusal behind good answers reaches its client, too.
    let mut stream = ada.connect();
    stream
        .write_all(b"GET /livez HTTP/1.1\r\nHost: a\r\n\r\nGET /livez HTTP/1.1\r\nHost: a\r\n\r\nnonsense\r\n\r\n")
        .unwrap();
    let mut all = String::new();
    stream.read_to_string(&mut all).unwrap();
    assert_eq!(all.matches("HTTP/1.1 200 OK").count(), 2, "{all}");
    assert!(all.contains("HTTP/1.1 400 Bad Request\r\n"), "{all}");
}

#[test]
fn heads_are_taken_up_to_their_bound() {
    let site = Site::new();
    let mut stream = site.who("").connect();
    let (head, end) = ("GET /livez HTTP/1.1\r\nHost: a\r\nConnection: close\r\nB: ", "\r\n\r\n");
    write!(stream, "{head}{}{end}", "x".repeat((64 << 10) - head.len() - end.len())).unwrap();
    answer(stream).is(200);
    let mut stream = site.who("").connect();
    stream.write_all(b"GET http://a/livez HTTP/1.1\r\nHost: a:80\r\nConnection: close\r\n\r\n").unwrap();
    answer(stream).is(200);
    let mut stream = site.who("").connect();
    stream.write_all(b"GET /livez HTTP/1.0\r\n\r\n").unwrap();
    answer(stream).is(200);
}

#[test]
fn nothing_of_a_body_is_read_before_its_sender_is_known() {
    let site = Site::new();
    for token in ["", "Authorization: Bearer syt_nonsense\r\n"] {
        let mut stream = site.who("").connect();
        // The answer comes although no byte of the body does.
        write!(stream, "POST /v1/messages HTTP/1.1\r\nHost: x\r\n{token}Content-Length: 1000000\r\n\r\n").unwrap();
        answer(stream).problem(401, "unauthorized");
        // The client can read the answer although it sends the whole body first.
        let mut stream = site.who("").connect();
        let body = "x".repeat(1_000_000);
        write!(stream, "POST /v1/messages HTTP/1.1\r\nHost: x\r\n{token}Content-Length: 1000000\r\n\r\n{body}")
            .unwrap();
        answer(stream).problem(401, "unauthorized");
    }
    // A client that asks first gets no `100 Continue`.
    let mut stream = site.who("").connect();
    write!(stream, "POST /v1/messages HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 9\r\n\r\n")
        .unwrap();
    answer(stream).problem(401, "unauthorized");
}

#[test]
#[allow(clippy::disallowed_methods, reason = "it asks for a pause of a real process")]
fn wrong_tokens_are_counted_logged_and_slowed_and_a_good_one_from_there_is_not() {
    let site = Site::new();
    let ada = site.party("ada");
    let bad = site.who("syt_nonsense");
    let began = Instant::now();
    for _ in 0..6 {
        bad.get("/v1/messages/x").problem(401, "unauthorized");
    }
    // 0, 0, 0, 100, 200, 300 ms.
    assert!(began.elapsed() >= Duration::from_millis(600), "{:?}", began.elapsed());
    site.who("").get("/v1/messages/x").problem(401, "unauthorized");
    std::thread::scope(|scope| {
        let waits = scope.spawn(|| bad.get("/v1/messages/x").is(401));
        let began = Instant::now();
        ada.get("/v1/messages/x").is(404);
        // Only a slow machine takes longer.
        assert!(began.elapsed() < PATIENCE);
        waits.join().unwrap();
    });
    let metrics = bad.get("/metrics").is(200).body;
    assert!(metrics.contains("systole_gateway_unauthorized_total{reason=\"wrong\"} 7\n"), "{metrics}");
    // Of `Authorization: Bearer ` without a token.
    assert!(metrics.contains("systole_gateway_unauthorized_total{reason=\"malformed\"} 1\n"), "{metrics}");
    let log = site.log();
    let lines = log.matches("tokens are refused").count();
    assert!((1..=8).contains(&lines) && log.contains("address=127.0.0.1"), "{log}");
    assert!(!log.contains("nonsense"), "{log}");
}

#[test]
fn one_principals_long_polls_leave_room_for_others_admins_and_health() {
    let site = Site::with("requests: 1000000, connections: 8, reserve: 4, connections_per_principal: 6", "7d");
    let (ada, worker, other) = (site.party("ada"), site.party("worker"), site.party("other"));
    let boss = site.who(&site.token(&["boss", "--kind", "admin"]));
    let poll = |who: &Who, mailbox: &str| {
        let token = &who.token;
        let head = format!("GET /v1/mailboxes/{mailbox}/messages?wait=60 HTTP/1.1\r\nHost: x\r\n");
        who.connect_and(format!("{head}Authorization: Bearer {token}\r\n\r\n").as_bytes())
    };
    let calls = |count: usize| {
        let wanted = format!("systole_gateway_calls {count}\n");
        wait(&format!("{count} calls in flight"), || boss.get("/metrics").is(200).body.contains(&wanted).then_some(()));
    };
    let _polls: Vec<_> = (0..6).map(|_| poll(&worker, "worker")).collect();
    calls(6);
    worker.get("/v1/mailboxes/worker/messages").problem(429, "connections");
    ada.send(1).is(202);
    calls(0);
    worker.get("/v1/mailboxes/worker/messages").is(200);
    let _polls: Vec<_> = (0..6).map(|_| poll(&worker, "worker")).collect();
    let _others: Vec<_> = (0..2).map(|_| poll(&other, "other")).collect();
    calls(2);
    // Now unauthenticated clients: more than there is room for, idle and in the middle of a head.
    let strangers: Vec<_> = (0..40)
        .map(|number| site.who("").connect_and(if number % 2 == 0 { b"" } else { b"GET /livez HTTP/1.1\r\n" }))
        .collect();
    for path in ["/livez", "/readyz", "/metrics", "/openapi.json"] {
        site.who("").get(path).is(200);
    }
    boss.get("/v1/mailboxes/worker/messages").is(200);
    ada.send(2).is(202);
    drop(strangers);
}

#[test]
fn whoever_holds_all_descriptors_without_a_token_gives_them_up() {
    let site = Site::new();
    let ada = site.party("ada");
    site.limit(rustix::process::Resource::Nofile, 64);
    let _strangers: Vec<_> = (0..200).map(|_| site.who("").connect()).collect();
    for number in 0..10 {
        site.who("").get("/livez").is(200);
        ada.send(number).is(202);
    }
    assert!(site.log().contains("no connection can be accepted: idle ones are closed"), "{}", site.log());
}

/// An organism whose listener is a command, for more strangers than it has descriptors.
const COMMAND: &str = r#"organism: { name: scarce }
durability: process
gateway: { listen: "127.0.0.1:0", requests: 1000000 }
clients:
  - { name: ada, calls: ["{urn:t}ask"] }
listeners:
  - name: worker
    command: [sh, -c, "cat >/dev/null; echo '<answer xmlns=\"urn:t\">one</answer>'"]
    schemas: [t.xsd]
    accepts: ["{urn:t}ask"]
    replies: ["{urn:t}answer"]
"#;

#[test]
fn strangers_take_no_descriptors_from_commands() {
    let mut site = Site::idle(COMMAND);
    // The soft limit alone would leave none for anything: the program raises it to the hard one.
    site.start_under("ulimit -S -n 40 && ulimit -H -n 200");
    let limits = std::fs::read_to_string(format!("/proc/{}/limits", site.pid())).unwrap();
    let files = limits.lines().find(|line| line.starts_with("Max open files")).unwrap();
    assert_eq!(files.split_whitespace().skip(3).take(2).collect::<Vec<_>>(), ["200", "200"], "{files}");
    let ada = site.party("ada");
    let _strangers: Vec<_> = (0..300).map(|_| site.who("").connect()).collect();
    // Half of so few stay for files and commands.
    assert!((50..=100).contains(&site.metric("systole_gateway_connections")), "{}", site.log());
    for number in 0..20 {
        let answer = ada.post("/v1/messages?wait=60", &ask(number)).is(200);
        assert!(answer.body.contains(">one</answer>"), "{answer:?}");
    }
}

/// Sends the larger part of a body.
fn half(who: &Who) -> TcpStream {
    let (mut stream, token) = (who.connect(), &who.token);
    let head = "POST /v1/messages HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000";
    write!(stream, "{head}\r\nAuthorization: Bearer {token}\r\n\r\n{}", "x".repeat(600_000)).unwrap();
    stream
}

#[test]
fn whoever_finds_no_room_at_all_is_told_what_is_full() {
    let polls = |site: &Site, who: &Who, mailbox: &str, count: usize| {
        let request = who.request("GET", &format!("/v1/mailboxes/{mailbox}/messages?wait=60"), &[], "");
        let polls: Vec<_> = (0..count).map(|_| who.connect_and(&request)).collect();
        wait("they wait", || (site.metric("systole_gateway_calls") == count as u64).then_some(()));
        polls
    };
    // All calls.
    let site = Site::with("requests: 1000000, connections: 4, connections_per_principal: 4", "7d");
    let (worker, other) = (site.party("worker"), site.party("other"));
    let _polls = polls(&site, &worker, "worker", 4);
    other.get("/v1/mailboxes/other/messages").problem(503, "connections");
    // All bytes of bodies.
    let site = Site::with("requests: 1000000, bodies: 1MiB, bodies_per_principal: 1MiB", "7d");
    let (ada, bob) = (site.party("ada"), site.party("bob"));
    let _first = half(&ada);
    wait("600,000 bytes in memory", || (site.metric("systole_gateway_body_bytes") == 600_000).then_some(()));
    next_answer(&mut half(&bob)).problem(503, "bodies");
}

#[test]
fn the_bodies_of_one_principal_are_bounded_together() {
    let site = Site::with("requests: 1000000, bodies_per_principal: 1MiB", "7d");
    let (ada, bob) = (site.party("ada"), site.party("bob"));
    let _first = half(&ada);
    let metrics = || site.who("").get("/metrics").is(200).body;
    wait("600,000 bytes in memory", || metrics().contains("systole_gateway_body_bytes 600000\n").then_some(()));
    next_answer(&mut half(&ada)).problem(429, "bodies");
    ada.send(1).is(202);
    bob.send(1).is(202);
}

#[test]
fn what_is_answered_at_once_is_bounded_in_bytes_too() {
    let site = Site::with("requests: 1000, bodies_per_principal: 1MiB", "90d");
    let (ada, worker) = (site.party("ada"), site.party("worker"));
    let long = crate::kit::envelope(&format!("<ask xmlns=\"urn:t\">{}</ask>", "0".repeat(900_000)));
    (0..8).for_each(|_| drop(ada.post("/v1/messages", &long).is(202)));
    let leased = worker.lease("worker", r#"{"wait":60,"max":100,"visibility":1}"#);
    assert!(!leased.is_empty());
    // Half of what a principal may have is a page, and one message always is.
    let page = worker.get("/v1/mailboxes/worker/messages?limit=500").is(200).json();
    assert_eq!((page["items"].as_array().unwrap().len(), &page["has_more"]), (1, &true.into()));
    let next = format!("/v1/mailboxes/worker/messages?limit=500&after={}", text(&page["next"]));
    assert_eq!(worker.get(&next).is(200).json()["items"].as_array().unwrap().len(), 1);
    // A page counts no longer than it takes to send it.
    wait("nothing is held", || (site.metric("systole_gateway_body_bytes") == 0).then_some(()));
    // Of streams without a reader, those end that would have more than that.
    let request = worker.request("GET", "/v1/mailboxes/worker/stream", &[], "");
    let streams: Vec<_> = (0..8).map(|_| worker.connect_and(&request)).collect();
    wait("streams end", || {
        assert!(site.metric("systole_gateway_body_bytes") <= 1 << 20);
        (site.metric("systole_gateway_calls") < 8).then_some(())
    });
    drop(streams);
}

#[test]
fn requests_without_a_token_have_a_rate_of_their_own() {
    let site = Site::new();
    let ada = site.party("ada");
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let ask = || {
            let mut statuses = [0; 2];
            while !stop.load(Ordering::Relaxed) {
                let answer = site.who("").get("/openapi.json");
                match answer.status {
                    200 => statuses[0] += 1,
                    _ => {
                        assert_eq!(answer.header("retry-after"), Some("1"), "{answer:?}");
                        answer.problem(429, "rate");
                        statuses[1] += 1;
                    }
                }
            }
            statuses
        };
        let strangers: Vec<_> = (0..40).map(|_| scope.spawn(ask)).collect();
        let refused = "systole_gateway_rate_limited_total{of=\"stranger\"}";
        // Health, figures and requests with a token are answered meanwhile.
        wait("strangers are refused", || (site.metric(refused) > 0).then_some(()));
        site.who("").get("/livez").is(200);
        ada.send(1).is(202);
        stop.store(true, Ordering::Relaxed);
        let statuses: Vec<_> = strangers.into_iter().map(|stranger| stranger.join().unwrap()).collect();
        assert!(statuses.iter().any(|[served, _]| *served > 0), "{statuses:?}");
    });
}
