//! A mailbox and the drafts of a message as WebSockets: an upgrade needs a connection.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;

use serde_json::{Value, json};

use crate::kit::{Site, Who, reply, text, wait};

#[test]
fn a_mailbox_is_a_websocket_too() {
    let site = Site::new();
    let (ada, worker) = (site.party("ada"), site.party("worker"));
    let mut stream = upgraded(&worker, MAILBOX);
    for number in 1..=2 {
        ada.send(number).is(202);
        let item: Value = serde_json::from_str(&frame(&mut stream)).unwrap();
        assert!(text(&item["envelope"]).contains(&format!(">{number}</ask>")), "{item}");
    }
}

#[test]
fn a_reader_that_sends_pings_and_reads_no_pong_is_not_read_and_then_let_go() {
    const FLOOD: usize = 128 << 20;
    let site = Site::with("body_time: 1s", "7d");
    let worker = site.party("worker");
    let stream = upgraded(&worker, MAILBOX);
    // A masked ping with the most bytes that a control frame may have (RFC 6455, section 5.5).
    let ping = [&[0x89, 0x80 | 125, 0, 0, 0, 0][..], &[b'x'; 125]].concat();
    let pings = ping.repeat(512);
    let mut sent = 0;
    while stream.get_ref().write_all(&pings).is_ok() {
        sent += pings.len();
        assert!(sent < FLOOD, "{sent} bytes of pings were read, whose pongs nobody reads");
    }
    wait("the call to end", || (site.metric("systole_gateway_calls") == 0).then_some(()));
}

#[test]
fn the_drafts_of_a_message_are_a_websocket_too() {
    let site = Site::new();
    let (ada, bob, worker) = (site.party("ada"), site.party("bob"), site.party("worker"));
    let sent = ada.send(1).is(202).json();
    let path = format!("/v1/messages/{}/draft", text(&sent["id"]));
    let mail = worker.until("/v1/mailboxes/worker/messages", |page| !page["items"][0].is_null());
    let mail = text(&mail["items"][0]["id"]).to_owned();
    let write = |text: &str| {
        let body = json!({ "text": text }).to_string();
        worker.post(&format!("/v1/messages/{mail}/draft"), &body).is(204);
    };
    let mut stream = upgraded(&ada, &path);
    let next = |stream: &mut BufReader<TcpStream>| -> Value { serde_json::from_str(&frame(stream)).unwrap() };
    write("<answ");
    let first = next(&mut stream);
    assert_eq!((text(&first["what"]), &first["from"], text(&first["text"])), ("text", &json!(0), "<answ"), "{first}");
    // A reader that comes back goes on behind its cursor.
    drop(stream);
    write("er>é");
    let mut stream = upgraded(&ada, &format!("{path}?after={}", text(&first["cursor"])));
    let second = next(&mut stream);
    assert_eq!((&second["from"], text(&second["text"])), (&json!(5), "er>é"), "{second}");
    worker.post(&format!("/v1/messages/{mail}/reply"), &reply("done")).is(202);
    let gone = next(&mut stream);
    assert_eq!((text(&gone["what"]), text(&gone["why"])), ("gone", "answered"), "{gone}");
    assert_eq!(next(&mut stream), json!({ "what": "end" }));
    // The close frame with its status, 1000 (RFC 6455, section 7.4.1).
    let mut close = [0; 4];
    stream.read_exact(&mut close).unwrap();
    assert_eq!((close[0], u16::from_be_bytes([close[2], close[3]])), (0x88, 1000), "{close:?}");
    bob.get(&path).problem(404, "not_found");
}

const MAILBOX: &str = "/v1/mailboxes/worker/stream";

/// A stream, as a WebSocket.
fn upgraded(who: &Who, path: &str) -> BufReader<TcpStream> {
    let mut stream = who.connect();
    let upgrade = "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\
                   Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==";
    let head = format!("GET {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer");
    write!(stream, "{head} {}\r\n{upgrade}\r\n\r\n", who.token).unwrap();
    let mut stream = BufReader::new(stream);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        assert_ne!(stream.read_line(&mut head).unwrap(), 0, "{head}");
    }
    // The key and its answer of RFC 6455, section 1.3.
    assert!(head.starts_with("HTTP/1.1 101 ") && head.contains("s3pPLMBiTxaQ9kYGzzhZRbK+xOo="), "{head}");
    stream
}

/// The next text of a WebSocket, in one frame (RFC 6455, section 5.2).
fn frame(stream: &mut impl Read) -> String {
    let mut read = |length: usize| {
        let mut bytes = vec![0; length];
        stream.read_exact(&mut bytes).unwrap();
        bytes
    };
    let head = read(2);
    assert_eq!(head[0], 0x81, "a whole text");
    let length = match head[1] {
        126 => usize::from(u16::from_be_bytes(read(2).try_into().unwrap())),
        short => usize::from(short),
    };
    String::from_utf8(read(length)).unwrap()
}
