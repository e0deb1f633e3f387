//! SIGTERM under load: the process ends, and what it acknowledged meanwhile is there after the next start.

use std::collections::HashMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::Value;

use crate::kit::{Answer, Site, Who, answer, ask, organism, reply, text, wait};

const ROUNDS: usize = 3;
const MESSAGES: u32 = 240;
const REPLIERS: usize = 3;

/// The organism of most tests, with a job.
fn busy() -> String {
    let submit = "{urn:systole:task:v1}submit";
    organism("requests: 1000000", "7d").replace("\"{urn:t}order\"]", &format!("\"{{urn:t}}order\", \"{submit}\"]"))
        + "  - name: reviews\n    job: { owner: worker }\n"
}

/// Checks that a call after SIGTERM was refused as one that may be repeated.
fn is_refusal(answer: &Answer) -> bool {
    answer.status == 503 && answer.header("retry-after").is_some() && answer.json()["code"] == "stopping"
}

/// Leases that many messages; each with the id that its sender knows.
fn lease_all(worker: &Who, sent: &HashMap<u32, String>) -> Vec<(String, Value)> {
    let mut leased = Vec::new();
    wait("all messages are leased", || {
        leased.extend(worker.lease("worker", r#"{"max":100,"wait":1,"visibility":600}"#));
        (leased.len() == sent.len()).then_some(())
    });
    let number = |item: &Value| {
        let envelope = text(&item["envelope"]).split("<ask xmlns=\"urn:t\">").nth(1).unwrap().to_owned();
        envelope.split('<').next().unwrap().parse::<u32>().unwrap()
    };
    leased.into_iter().map(|item| (sent[&number(&item)].clone(), item)).collect()
}

#[test]
fn what_is_acknowledged_while_the_process_ends_is_there_after_the_next_start() {
    for (round, verb) in ["reply", "fail", "ack"].into_iter().cycle().take(ROUNDS).enumerate() {
        let mut site = Site::of(&busy());
        let (mut ada, bob, worker) = (site.party("ada"), site.party("bob"), site.party("worker"));
        let sent = |number| (number, text(&ada.send(number).is(202).json()["id"]).to_owned());
        let sent: HashMap<_, _> = (0..MESSAGES).map(sent).collect();
        let leased = lease_all(&worker, &sent);
        let (ended, tasks, waited) = (Mutex::new(Vec::new()), Mutex::new(Vec::new()), Mutex::new(Vec::new()));
        let count = AtomicUsize::new(0);
        let code = std::thread::scope(|scope| {
            for number in 0..2 {
                let (bob, waited) = (&bob, &waited);
                scope.spawn(move || {
                    let answer = bob.try_post("/v1/messages?wait=60", &ask(MESSAGES + number));
                    waited.lock().unwrap().push(answer);
                });
            }
            wait("two callers wait", || (site.metric("systole_gateway_waiters") == 2).then_some(()));
            for first in 0..REPLIERS {
                let (worker, leased, ended, count) = (&worker, &leased, &ended, &count);
                scope.spawn(move || {
                    for (sent, item) in leased.iter().skip(first).step_by(REPLIERS) {
                        let id = text(&item["id"]);
                        let answer = match verb {
                            "reply" => worker.try_post(&format!("/v1/messages/{id}/reply"), &reply("yes")),
                            "fail" => worker.try_post(&format!("/v1/messages/{id}/fail"), "{}"),
                            _ => worker.try_post(
                                &format!("/v1/mailboxes/worker/messages/{id}/ack"),
                                &serde_json::json!({ "receipt": item["receipt"] }).to_string(),
                            ),
                        };
                        let Some(answer) = answer else { return };
                        if answer.status >= 300 {
                            assert!(is_refusal(&answer), "{verb}: {answer:?}");
                            return;
                        }
                        ended.lock().unwrap().push(sent.clone());
                        count.fetch_add(1, Ordering::Relaxed);
                    }
                });
            }
            scope.spawn(|| {
                for number in 0.. {
                    let body = format!(r#"{{"description":"Read {number}."}}"#);
                    let Some(answer) = ada.try_post("/v1/jobs/reviews/tasks", &body) else { return };
                    if answer.status != 201 {
                        assert!(is_refusal(&answer), "submit: {answer:?}");
                        return;
                    }
                    tasks.lock().unwrap().push(text(&answer.json()["id"]).to_owned());
                }
            });
            wait("twenty messages have ended", || (count.load(Ordering::Relaxed) >= 20).then_some(()));
            site.terminate();
            site.ended()
        });
        assert_eq!(code, Some(0), "{}", site.log());
        site.start();
        ada.address = site.address;
        let bob = site.who(&bob.token);
        for id in ended.into_inner().unwrap() {
            let known = ada.until(&format!("/v1/messages/{id}"), |known| known["reply"].is_object());
            assert_eq!(known["replies"].as_array().unwrap().len(), 1, "round {round}, {verb}: {known}");
        }
        for id in tasks.into_inner().unwrap() {
            ada.get(&format!("/v1/tasks/{id}")).is(200);
        }
        let waited = waited.into_inner().unwrap();
        assert_eq!(waited.len(), 2);
        for answer in waited {
            let answer = answer.expect("a caller that waits is answered").is(202);
            bob.get(&format!("/v1/messages/{}", text(&answer.json()["id"]))).is(200);
        }
    }
}

fn is_delivery(event: &Value) -> bool {
    event["event"] == "delivered"
}

#[test]
fn each_call_that_waits_is_answered_when_the_process_ends() {
    let mut site = Site::of(&organism("requests: 1000000", "7d").replace("organism:", "drain: 1h\norganism:"));
    let (ada, worker, other) = (site.party("ada"), site.party("worker"), site.party("other"));
    let boss = site.who(&site.token(&["boss", "--kind", "admin"]));
    let called = ada.connect_and(&ada.request("POST", "/v1/messages?wait=60", &[], &ask(1)));
    // Behind the delivery, nothing happens until the end.
    let seen = boss.until("/v1/admin/events", |seen| seen["events"].as_array().unwrap().iter().any(is_delivery));
    let (run, last) = (&seen["run"], &seen["events"].as_array().unwrap().last().unwrap()["number"]);
    let events = format!("/v1/admin/events?wait=60&run={run}&after={last}");
    let waiting = [
        called,
        worker.connect_and(&worker.request("GET", "/v1/mailboxes/worker/messages?wait=60&peer=bob", &[], "")),
        other.connect_and(&other.request("POST", "/v1/mailboxes/other/lease", &[], r#"{"wait":60}"#)),
        boss.connect_and(&boss.request("GET", &events, &[], "")),
    ];
    wait("all of them are let in", || (site.metric("systole_gateway_calls") == waiting.len() as u64).then_some(()));
    site.terminate();
    for (number, stream) in waiting.into_iter().enumerate() {
        let answer = answer(stream);
        // The process may end between the door and the wait.
        assert!((200..300).contains(&answer.status) || is_refusal(&answer), "call {number}: {answer:?}");
    }
    assert_eq!(site.ended(), Some(0), "{}", site.log());
}
