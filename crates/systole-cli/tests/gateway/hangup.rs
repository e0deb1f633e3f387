//! Clients that hang up at any moment, against the real program under load: a durable change has happened, and a
//! repeated request happens once.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;
use std::net::Shutdown;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::Value;

use crate::kit::{Answer, Site, Who, answer, ask, reply, text, wait};
use crate::random::Random;

const ALL: &str = "/v1/mailboxes/worker/messages?limit=500";

/// The number of an ask.
fn number(item: &Value) -> u32 {
    let (_, rest) = text(&item["envelope"]).split_once("<ask xmlns=\"urn:t\">").unwrap();
    rest.split('<').next().unwrap().parse().unwrap()
}

/// Sends a request, or its first bytes, gives the answer a few milliseconds or none, and hangs up.
fn cut(who: &Who, request: &[u8], random: &mut Random) {
    let whole = !random.once_in(4);
    let said = if whole { request.len() } else { random.below(request.len()) };
    let mut stream = who.connect_and(&request[..said]);
    if whole && !random.once_in(3) {
        stream.set_read_timeout(Some(Duration::from_micros(1 + random.next() % 12_000))).unwrap();
        // The answer may have come by then.
        let _ = stream.read(&mut [0; 1]);
    }
}

/// The state of a client's message, once it has its answers.
fn answered(ada: &Who, sent: &str) -> Value {
    ada.until(&format!("/v1/messages/{sent}"), |known| known["reply"].is_object())
}

/// Waits until no request is in flight, none has left an entry, and no message is open.
fn nothing_is_left(site: &Site) {
    for figure in ["systole_gateway_calls", "systole_gateway_waiters", "systole_gateway_waiting"] {
        wait(&format!("{figure} is 0"), || (site.metric(figure) == 0).then_some(()));
    }
}

fn post(ada: &Who, number: u32) -> Answer {
    ada.ask("POST", "/v1/messages", &[("Idempotency-Key", &format!("k{number}"))], &ask(number))
}

/// Answers each message with its number until so many have their answer; `say` sends it to the gateway.
fn work(worker: &Who, answers: &AtomicUsize, all: usize, mut say: impl FnMut(&str, &str)) {
    while answers.load(Ordering::Relaxed) < all {
        for item in worker.lease("worker", r#"{"max":5,"wait":1}"#) {
            say(&format!("/v1/messages/{}/reply", text(&item["id"])), &reply(&format!("to {}.", number(&item))));
            answers.fetch_add(1, Ordering::Relaxed);
        }
    }
}

#[test]
fn messages_whose_senders_hang_up_under_load_are_each_answered_once() {
    const SENDERS: u32 = 4;
    const EACH: u32 = 75;
    let all = (SENDERS * EACH) as usize;
    let site = Site::new();
    let (ada, worker) = (site.party("ada"), site.party("worker"));
    let (ids, answers) = (Mutex::new(BTreeMap::new()), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        for sender in 0..SENDERS {
            let (ada, ids) = (&ada, &ids);
            scope.spawn(move || {
                let mut random = Random::new(sender.into());
                for number in sender * EACH..(sender + 1) * EACH {
                    let key = format!("k{number}");
                    cut(
                        ada,
                        &ada.request("POST", "/v1/messages", &[("Idempotency-Key", &key)], &ask(number)),
                        &mut random,
                    );
                    let again = post(ada, number).is(202);
                    let place = again.header("location").unwrap();
                    ids.lock().unwrap().insert(number, place.rsplit('/').next().unwrap().to_owned());
                }
            });
        }
        for _ in 0..2 {
            scope.spawn(|| work(&worker, &answers, all, |path, body| drop(worker.post(path, body).is(202))));
        }
    });
    for (number, id) in ids.into_inner().unwrap() {
        let known = answered(&ada, &id);
        assert_eq!((text(&known["state"]), known["replies"].as_array().unwrap().len()), ("answered", 1), "{known}");
        assert!(text(&known["reply"]["envelope"]).contains(&format!(">to {number}.<")), "{number}: {known}");
        // The key gives the same message for good.
        let again = post(&ada, number).is(202);
        assert_eq!(again.header("location"), Some(&*format!("/v1/messages/{id}")));
    }
    let mut times = BTreeMap::new();
    for item in worker.get(ALL).is(200).json()["items"].as_array().unwrap() {
        *times.entry(number(item)).or_default() += 1;
    }
    assert_eq!(times, (0..SENDERS * EACH).map(|number| (number, 1)).collect::<BTreeMap<u32, u32>>());
    nothing_is_left(&site);
}

#[test]
fn parallel_posts_under_one_key_are_one_message() {
    let site = Site::new();
    let (ada, worker) = (site.party("ada"), site.party("worker"));
    let places: Vec<String> = std::thread::scope(|scope| {
        let posts: Vec<_> = (0..50).map(|_| scope.spawn(|| post(&ada, 1).is(202))).collect();
        posts.into_iter().map(|post| post.join().unwrap().header("location").unwrap().to_owned()).collect()
    });
    assert!(places.iter().all(|place| *place == places[0]), "{places:?}");
    assert_eq!(worker.get(ALL).is(200).json()["items"].as_array().unwrap().len(), 1);
    // All requests but one hang up while that one is being submitted.
    let request = ada.request("POST", "/v1/messages", &[("Idempotency-Key", "k2")], &ask(2));
    std::thread::scope(|scope| {
        for seed in 0..49 {
            let (ada, request) = (&ada, &request);
            scope.spawn(move || cut(ada, request, &mut Random::new(seed)));
        }
        post(&ada, 2).is(202);
    });
    assert_eq!(worker.get(ALL).is(200).json()["items"].as_array().unwrap().len(), 2);
    work(&worker, &AtomicUsize::new(0), 2, |path, body| drop(worker.post(path, body).is(202)));
    nothing_is_left(&site);
}

#[test]
fn replies_whose_listeners_hang_up_reach_their_callers_once() {
    const ALL_OF_THEM: usize = 100;
    let site = Site::new();
    let (ada, worker) = (site.party("ada"), site.party("worker"));
    let answers = AtomicUsize::new(0);
    let sent: Vec<String> = std::thread::scope(|scope| {
        for seed in 0..4 {
            let (worker, answers, mut random) = (&worker, &answers, Random::new(seed));
            let say = move |path: &str, body: &str| {
                cut(worker, &worker.request("POST", path, &[], body), &mut random);
                worker.post(path, body).is(202);
            };
            scope.spawn(move || work(worker, answers, ALL_OF_THEM, say));
        }
        // Some of the callers wait for their answers, and some of those hang up.
        let mut random = Random::new(99);
        (0..ALL_OF_THEM as u32)
            .map(|number| {
                let sent = post(&ada, number).is(202);
                let place = sent.header("location").unwrap().to_owned();
                let key = format!("k{number}");
                let waits = ada.request("POST", "/v1/messages?wait=60", &[("Idempotency-Key", &key)], &ask(number));
                cut(&ada, &waits, &mut random);
                place.rsplit('/').next().unwrap().to_owned()
            })
            .collect()
    });
    for (number, id) in sent.iter().enumerate() {
        let known = answered(&ada, id);
        assert_eq!((text(&known["state"]), known["replies"].as_array().unwrap().len()), ("answered", 1), "{known}");
        assert!(text(&known["reply"]["envelope"]).contains(&format!(">to {number}.<")), "{number}: {known}");
    }
    nothing_is_left(&site);
}

#[test]
fn replies_that_are_cut_and_never_repeated_reach_their_callers_once_or_not_at_all() {
    let site = Site::new();
    let (ada, worker) = (site.party("ada"), site.party("worker"));
    let sent: Vec<Value> = (0..60).map(|number| ada.send(number).is(202).json()).collect();
    let mut random = Random::new(5);
    for item in worker.lease("worker", r#"{"max":60,"wait":60,"visibility":1}"#) {
        let path = format!("/v1/messages/{}/reply", text(&item["id"]));
        cut(&worker, &worker.request("POST", &path, &[], &reply("one")), &mut random);
    }
    // A message without a reported answer can be leased again when its lease has ended, and no other one can.
    wait("each message has the answer that was said, or the one that is said now", || {
        for item in worker.lease("worker", r#"{"max":60,"wait":2}"#) {
            worker.post(&format!("/v1/messages/{}/reply", text(&item["id"])), &reply("two")).is(202);
        }
        (site.metric("systole_gateway_waiting") == 0).then_some(())
    });
    for sent in &sent {
        let known = answered(&ada, text(&sent["id"]));
        assert_eq!((text(&known["state"]), known["replies"].as_array().unwrap().len()), ("answered", 1), "{known}");
    }
    nothing_is_left(&site);
}

#[test]
fn leases_whose_readers_hang_up_end() {
    let site = Site::new();
    let (ada, worker) = (site.party("ada"), site.party("worker"));
    let sent: Vec<Value> = (0..6).map(|number| ada.send(number).is(202).json()).collect();
    worker.until(ALL, |page| page["items"].as_array().unwrap().len() == 6);
    let path = "/v1/mailboxes/worker/lease";
    let whole = |body: &str| drop(worker.connect_and(&worker.request("POST", path, &[], body)));
    // The fifth request is dropped.
    (0..4).for_each(|_| drop(worker.lease("worker", r#"{"visibility":1}"#)));
    whole(r#"{"max":6,"visibility":1}"#);
    // Whether or not the reader got them, all can be leased when their lease has ended.
    let mut leased = BTreeSet::new();
    wait("all six messages are leased once more", || {
        leased.extend(worker.lease("worker", r#"{"max":6,"wait":2,"visibility":1}"#).iter().map(number));
        (leased.len() == 6).then_some(())
    });
    // Readers that lease them as often as they may also hang up.
    wait("each message was leased five times", || {
        whole(r#"{"max":6,"visibility":1}"#);
        let page = worker.get(ALL).json();
        page["items"].as_array().unwrap().iter().all(|item| item["deliveries"] == 5).then_some(())
    });
    // No reader asks for them any more: the time alone ends them.
    wait("all six are dead letters", || (site.metric("systole_gateway_dead_letters") == 6).then_some(()));
    for sent in &sent {
        let known = answered(&ada, text(&sent["id"]));
        assert_eq!(text(&known["reply"]["fault"]), "failed", "{known}");
    }
    nothing_is_left(&site);
}

#[test]
fn readers_that_hang_up_while_they_wait_leave_nothing() {
    let site = Site::new();
    let (ada, worker) = (site.party("ada"), site.party("worker"));
    let sent = ada.send(1).is(202).json();
    let item = worker.lease("worker", r#"{"wait":60}"#).remove(0);
    let requests = [
        worker.request("POST", "/v1/mailboxes/worker/lease", &[], r#"{"wait":60,"visibility":1}"#),
        worker.request("GET", "/v1/mailboxes/worker/messages?wait=60&peer=bob", &[], ""),
        worker.request("GET", "/v1/mailboxes/worker/stream", &[], ""),
        ada.request("POST", "/v1/messages?wait=60", &[("Idempotency-Key", "k2")], &ask(2)),
    ];
    let waiting: Vec<_> = (0..300).map(|number| worker.connect_and(&requests[number % requests.len()])).collect();
    wait("most of them wait", || (site.metric("systole_gateway_calls") >= 200).then_some(()));
    assert!(site.metric("systole_gateway_waiters") > 0);
    drop(waiting);
    for figure in ["systole_gateway_calls", "systole_gateway_waiters", "systole_gateway_connections"] {
        wait(&format!("nobody is left in {figure}"), || (site.metric(figure) <= 1).then_some(()));
    }
    worker.post(&format!("/v1/messages/{}/reply", text(&item["id"])), &reply("one")).is(202);
    answered(&ada, text(&sent["id"]));
    work(&worker, &AtomicUsize::new(0), 1, |path, body| drop(worker.post(path, body).is(202)));
    nothing_is_left(&site);
}

/// Sends a request, and closes this side behind it.
fn half_close(who: &Who, request: &[u8]) -> std::net::TcpStream {
    let stream = who.connect_and(request);
    stream.shutdown(Shutdown::Write).unwrap();
    stream
}

#[test]
fn a_client_that_closes_its_side_behind_its_request_gets_an_answer_and_leases_nothing_later() {
    let site = Site::new();
    let (ada, worker) = (site.party("ada"), site.party("worker"));
    let short = [
        worker.request("GET", "/v1/mailboxes/worker/messages?wait=60", &[], ""),
        worker.request("POST", "/v1/mailboxes/worker/lease", &[], r#"{"wait":60}"#),
    ];
    for request in &short {
        assert_eq!(answer(half_close(&worker, request)).is(200).json()["items"], Value::Array(Vec::new()));
    }
    // The same in HTTP/1.0, whose clients end their requests so.
    let old = String::from_utf8(ada.request("POST", "/v1/messages", &[], &ask(1))).unwrap();
    let sent = answer(half_close(&ada, old.replace("HTTP/1.1", "HTTP/1.0").as_bytes())).is(202).json();
    let item = worker.lease("worker", r#"{"wait":60}"#).remove(0);
    worker.post(&format!("/v1/messages/{}/reply", text(&item["id"])), &reply("one")).is(202);
    answered(&ada, text(&sent["id"]));
    // A reply that doesn't come is awaited for a while only; one that comes is the answer.
    let waits = |number| half_close(&ada, &ada.request("POST", "/v1/messages?wait=60", &[], &ask(number)));
    let queued = answer(waits(2)).is(202).json();
    assert_eq!(queued["state"], "queued");
    let waiting = waits(3);
    work(&worker, &AtomicUsize::new(0), 2, |path, body| drop(worker.post(path, body).is(202)));
    let said = answer(waiting);
    assert!(said.status == 200 && said.body.contains("to 3.") || said.status == 202, "{}", said.body);
    nothing_is_left(&site);
}
