//! Messages that are pushed to an agent.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use systole::outbound::Secret;
use systole::outbound::signature::{HEADER, TOLERANCE};
use systole::remote::{Failed, Inbound, InboundDelivery, PushDelivery, PushOptions};
use systole::testing::{Network, NetworkStream};
use systole::vocab::Time;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::task::JoinSet;

use super::setup::{ANYWHERE, NOW, Seen, answer, hang, id, item, number, within};

const SECRET: &[u8] = b"what both sides know";

fn envelope(number: u32) -> String {
    item(number)["envelope"].as_str().unwrap().to_owned()
}

fn signed(body: &str, at: Time, secret: &[u8]) -> String {
    Secret::new(secret).sign(at, body.as_bytes())
}

async fn bind(options: PushOptions) -> PushDelivery {
    PushDelivery::bind(ANYWHERE.into(), options).await.unwrap()
}

fn connect(address: SocketAddr) -> io::Result<NetworkStream> {
    Network::current().unwrap().connect(address)
}

/// An answer of the agent.
#[derive(Debug)]
struct Answer {
    status: u16,
    head: String,
    body: String,
}

impl Answer {
    /// Checks the status.
    #[track_caller]
    fn is(self, status: u16) -> Self {
        assert_eq!(self.status, status, "{self:?}");
        self
    }
}

/// Sends a request to an agent; returns all that it says.
async fn say(address: SocketAddr, number: u32) -> String {
    let mut stream = connect(address).unwrap();
    stream.write_all(&request("POST", "/", &[("Idempotency-Key", &id(number))], &envelope(number))).await.unwrap();
    let mut all = String::new();
    stream.read_to_string(&mut all).await.unwrap();
    all
}

/// Sends a request; returns the answer while the agent handles messages.
async fn push(agent: &mut PushDelivery, seen: &Seen, request: &[u8]) -> Answer {
    let mut stream = connect(agent.address()).unwrap();
    let handler = seen.handler(|number, _| match number {
        500 => Err(Failed::new("no more coffee")),
        501 => panic!("it is broken"),
        502 => Ok(String::new()),
        number => Ok(answer(&format!("to {number}."))),
    });
    let asked = async {
        let _ = stream.write_all(request).await;
        let mut all = Vec::new();
        let _ = stream.read_to_end(&mut all).await;
        let all = String::from_utf8(all).unwrap();
        let (head, body) = all.split_once("\r\n\r\n").unwrap_or((&all, ""));
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0);
        Answer { status, head: head.to_owned(), body: body.to_owned() }
    };
    let taking = async {
        loop {
            agent.run_once(&handler).await.unwrap();
        }
    };
    tokio::select! {
        answer = asked => answer,
        () = taking => unreachable!("it takes for ever"),
    }
}

fn request(method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Vec<u8> {
    let headers: String = headers.iter().map(|(key, value)| format!("{key}: {value}\r\n")).collect();
    let length = body.len();
    format!(
        "{method} {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: {length}\r\n{headers}\r\n{body}"
    )
    .into_bytes()
}

#[test]
fn each_push_has_the_answer_that_it_deserves() {
    within(async {
        let mut agent = bind(PushOptions::signed(Secret::new(SECRET)).path("/in")).await;
        let seen = Seen::default();
        let key = |number| id(number);
        let mut check = async |body: &str, method: &str, path: &str, number: u32| {
            let (signature, key) = (signed(body, NOW, SECRET), key(number));
            let headers = [(HEADER, &*signature), ("Idempotency-Key", &*key)];
            push(&mut agent, &seen, &request(method, path, &headers, body)).await
        };
        let answered = check(&envelope(1), "POST", "/in", 1).await.is(200);
        assert_eq!(answered.body, answer("to 1."));
        assert!(answered.head.lines().any(|line| line == "content-type: application/xml"), "{}", answered.head);
        assert_eq!(check(&envelope(502), "POST", "/in", 502).await.is(200).body, "");
        assert_eq!(check(&envelope(500), "POST", "/in", 500).await.is(500).body, "no more coffee");
        assert_eq!(check(&envelope(501), "POST", "/in", 501).await.is(500).body, "the agent panicked");
        for bad in ["", " ", "hello", "<a/>", "<message>", &envelope(3).replace("<from>ada</from>", "<from> </from>")] {
            check(bad, "POST", "/in", 3).await.is(400);
        }
        check(&envelope(3), "POST", "/other", 3).await.is(404);
        check(&envelope(3), "POST", "/in/", 3).await.is(404);
        check(&envelope(3), "GET", "/in", 3).await.is(405);
        check(&format!("<!--{}-->", "x".repeat(2 << 20)), "POST", "/in", 3).await.is(413);
        assert_eq!(seen.numbers(), [1, 502, 500, 501]);
    });
}

#[test]
fn nobody_is_believed_without_a_good_signature() {
    within(async {
        let mut agent = bind(PushOptions::signed(Secret::new(SECRET))).await;
        let (seen, body, key) = (Seen::default(), envelope(1), id(1));
        let late = Duration::from_secs(2);
        let old = Time::from_nanos(NOW.as_nanos() - u64::try_from((TOLERANCE + late).as_nanos()).unwrap());
        let good = signed(&body, NOW, SECRET);
        let bad = [
            String::new(),
            "t=1,v1=zz".to_owned(),
            signed(&body, old, SECRET),
            signed(&body, NOW.after(TOLERANCE + late + late), SECRET),
            signed(&body, NOW, b"something else"),
            signed(&envelope(2), NOW, SECRET),
            good.replace("v1=", "v2="),
        ];
        for signature in &bad {
            let headers = [(HEADER, &**signature), ("Idempotency-Key", &*key)];
            push(&mut agent, &seen, &request("POST", "/", &headers, &body)).await.is(401);
        }
        push(&mut agent, &seen, &request("POST", "/", &[], &body)).await.is(401);
        // Nor is it waited for.
        push(&mut agent, &seen, b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n").await.is(401);
        let twice = [(HEADER, &*good), (HEADER, &*good)];
        push(&mut agent, &seen, &request("POST", "/", &twice, &body)).await.is(401);
        // An unsigned body is not read: the answer doesn't tell that it is no message.
        push(&mut agent, &seen, &request("POST", "/", &[], "hello")).await.is(401);
        assert!(seen.all().is_empty());
        let headers = [(HEADER, &*good), ("Idempotency-Key", &*key)];
        push(&mut agent, &seen, &request("POST", "/", &headers, &body)).await.is(200);
    });
}

#[test]
fn a_message_that_comes_again_gets_the_same_answer_and_is_handled_once() {
    within(async {
        let mut agent = bind(PushOptions::unsigned()).await;
        let (seen, key) = (Seen::default(), id(1));
        let again = request("POST", "/", &[("Idempotency-Key", &key)], &envelope(1));
        for _ in 0..3 {
            assert_eq!(push(&mut agent, &seen, &again).await.is(200).body, answer("to 1."));
        }
        assert_eq!(seen.numbers(), [1]);
        // No id is given.
        push(&mut agent, &seen, &request("POST", "/", &[], &envelope(1))).await.is(400);
    });
}

#[test]
fn slow_and_endless_requests_end() {
    within(async {
        let short = Duration::from_millis(200);
        let options = PushOptions::unsigned().header_time(short).body_time(short).connections(1);
        let mut agent = bind(options).await;
        let seen = Seen::default();
        push(&mut agent, &seen, b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\n<me").await.is(408);
        let head = push(&mut agent, &seen, b"POST / HTTP/1.1\r\nHost: x\r\nX-").await;
        assert!([0, 408].contains(&head.status), "{head:?}");
        let endless = format!("POST / HTTP/1.1\r\nHost: x\r\nX: {}", "x".repeat(200 << 10));
        assert!([0, 431].contains(&push(&mut agent, &seen, endless.as_bytes()).await.status));
        push(&mut agent, &seen, b"SSH-2.0-OpenSSH\r\n\r\n").await.is(400);
        let chunked = b"POST / HTTP/1.1\r\nHost: x\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n";
        push(&mut agent, &seen, chunked).await.is(400);
    });
}

#[test]
fn who_waits_when_it_ends_is_told_to_come_again() {
    within(async {
        let mut agent = bind(PushOptions::unsigned().queue(1)).await;
        let address = agent.address();
        // One waits, the other one finds no room.
        let mut sent = JoinSet::new();
        for number in [1, 2] {
            sent.spawn(say(address, number));
        }
        let refused = sent.join_next().await.unwrap().unwrap();
        agent.stop().await;
        for answer in [refused, sent.join_next().await.unwrap().unwrap()] {
            assert!(answer.starts_with("HTTP/1.1 503 ") && answer.contains("retry-after: 1"), "{answer}");
        }
        assert!(connect(address).is_err());
        assert_eq!(agent.run_once(&Seen::default().echo()).await.unwrap(), 0);
    });
}

#[test]
fn a_message_whose_batch_was_dropped_is_handled_by_the_next_one() {
    within(async {
        let mut agent = bind(PushOptions::unsigned()).await;
        let (hang, began) = hang();
        let sent = tokio::spawn(say(agent.address(), 1));
        tokio::select! {
            done = agent.run_once(&hang) => panic!("it hangs: {done:?}"),
            () = began.notified() => {}
        }
        let echo = |message: Inbound| async move { Ok::<_, Failed>(answer(&format!("{}", number(&message.payload)))) };
        assert_eq!(agent.run_once(&echo).await.unwrap(), 1);
        assert!(sent.await.unwrap().ends_with(&answer("1")));
    });
}
