//! Calls with an effect, dropped after any number of polls: a durable change has happened, and no other one
//! has; the repeated call has its effect; and nothing waits for the dropped one.

use axum::http::Method;
use serde_json::{Value, json};

use crate::cut::everywhere;
use crate::site::{Call, Site, WORKER, answer, ask, text};
use crate::stop::ended;

/// A call to drop.
#[derive(Clone)]
pub(crate) struct Row {
    who: &'static str,
    method: Method,
    path: String,
    key: Option<String>,
    body: String,
    /// The statuses of the repeated call.
    again: &'static [u16],
}

impl Row {
    pub(crate) fn post(who: &'static str, path: impl Into<String>, body: Value, again: &'static [u16]) -> Self {
        Self { who, method: Method::POST, path: path.into(), key: None, body: body.to_string(), again }
    }

    pub(crate) fn of(self, method: Method) -> Self {
        Self { method, ..self }
    }

    pub(crate) fn with(self, body: String) -> Self {
        Self { body, ..self }
    }

    pub(crate) fn keyed(self, key: String) -> Self {
        Self { key: Some(key), ..self }
    }

    /// Drops a call without an effect everywhere.
    pub(crate) fn shows_nothing(&self, site: &Site) {
        everywhere(|polls| {
            let answered = site.cut_off(&self.call(), polls);
            assert_eq!(site.metric("systole_gateway_waiters"), 0, "{} after {polls} polls", self.path);
            let again = site.call(&self.call());
            assert!(self.again.contains(&again.status.as_u16()), "{}: {again:?}", self.path);
            answered.is_some()
        });
    }

    pub(crate) fn call(&self) -> Call<'_> {
        let Self { who, method, path, key, body, .. } = self;
        Call { who, method: method.clone(), path, key: key.as_deref(), body }
    }
}

/// Drops a call everywhere. `prepare` makes the next call with its subject; `done` checks whether it has happened, and
/// `clear` leaves the site as it was before.
pub(crate) fn dropped<T>(
    name: &str,
    prepare: impl Fn(&Site, usize) -> (Row, T),
    done: impl Fn(&Site, &T) -> bool,
    clear: impl Fn(&Site, &T),
) {
    let site = Site::new();
    let mut happened = [false; 2];
    everywhere(|polls| {
        let (row, about) = prepare(&site, polls);
        assert!(!done(&site, &about), "{name}: it has not happened before");
        ended(name, &site, polls, |_| row.clone(), |_, next| done(next, &about));
        let (answered, torn) = site.cut_call(&row.call(), polls);
        if let Some(answered) = &answered {
            assert!(answered.status.is_success(), "{name}: {answered:?}");
        }
        assert_eq!(site.metric("systole_gateway_waiters"), 0, "{name} after {polls} polls");
        let killed = site.killed();
        let [at_once, later, here] = [&torn, &killed, &site].map(|site| done(site, &about));
        assert_eq!(later, here, "{name} after {polls} polls: durable, and has happened");
        assert!(here || !at_once, "{name} after {polls} polls: it was durable, and has not happened");
        assert!(answered.is_none() || at_once, "{name}: it was answered, and was not durable");
        happened[usize::from(here)] |= answered.is_none();
        for site in [&torn, &killed, &site] {
            let again = site.call(&row.call());
            assert!(row.again.contains(&again.status.as_u16()), "{name} again after {polls} polls: {again:?}");
            site.kit().settle();
            assert!(done(site, &about), "{name} again after {polls} polls");
        }
        clear(&site, &about);
        answered.is_some()
    });
    assert!(happened[0], "{name}: no drop was before it happened");
    assert!(happened[1], "{name}: no drop was between its effect and its answer");
}

/// A message that the worker has leased: the id for its sender, its own id and its receipt.
struct Leased {
    sent: String,
    id: String,
    receipt: Value,
}

impl Leased {
    fn new(site: &Site, number: usize) -> Self {
        let sent = site.ask(number);
        let item = site.lease("{}").remove(0);
        Self { sent, id: text(&item["id"]), receipt: item["receipt"].clone() }
    }

    fn row(&self, verb: &str, more: Value, again: &'static [u16]) -> Row {
        let mut body = json!({ "receipt": self.receipt });
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        Row::post("worker", format!("{WORKER}/messages/{}/{verb}", self.id), body, again)
    }

    fn item(&self, site: &Site) -> Value {
        site.all().into_iter().find(|item| text(&item["id"]) == self.id).unwrap()
    }

    fn end(&self, site: &Site) {
        site.post("worker", &format!("/v1/messages/{}/reply", self.id), None, &answer("one")).is(202);
        site.kit().settle();
    }
}

/// A dead letter of the worker.
fn dead(site: &Site, number: usize) -> String {
    let leased = Leased::new(site, number);
    site.post("worker", &format!("/v1/messages/{}/fail", leased.id), None, "{}").is(202);
    leased.id
}

fn dead_letters(site: &Site) -> Vec<String> {
    let page = site.get("worker", &format!("{WORKER}/dead")).is(200);
    page["items"].as_array().unwrap().iter().map(|item| text(&item["id"])).collect()
}

#[test]
fn a_failure() {
    dropped(
        "fail",
        |site, number| {
            let leased = Leased::new(site, number);
            let path = format!("/v1/messages/{}/fail", leased.id);
            (Row::post("worker", path, json!({ "message": "no more coffee" }), &[202]), leased)
        },
        |site, leased| text(&site.sent(&leased.sent)["state"]) == "faulted",
        |site, leased| assert_eq!(site.sent(&leased.sent)["replies"].as_array().unwrap().len(), 1),
    );
}

#[test]
fn a_message_that_is_cancelled() {
    dropped(
        "cancel",
        |site, number| {
            let sent = site.ask(number);
            (Row::post("ada", format!("/v1/messages/{sent}/cancel"), json!({}), &[204]), sent)
        },
        |site, sent| text(&site.sent(sent)["state"]) == "faulted",
        |site, sent| {
            assert_eq!(text(&site.sent(sent)["reply"]["fault"]), "cancelled");
            assert!(site.lease("{}").is_empty(), "its listener does not get it any more");
        },
    );
}

#[test]
fn a_message_given_back() {
    dropped(
        "nack",
        |site, number| {
            let leased = Leased::new(site, number);
            (leased.row("nack", json!({ "error": "busy" }), &[204, 409]), leased)
        },
        |site, leased| leased.item(site)["last_error"] == "busy",
        |site, leased| {
            // It is there for the next reader.
            assert_eq!(text(&site.lease("{}")[0]["id"]), leased.id);
            leased.end(site);
        },
    );
}

/// Checks that no reader can lease a message when its lease of 30 s is over.
fn stays(site: &Site) -> bool {
    site.kit().advance(std::time::Duration::from_secs(31));
    let nobody = site.lease(r#"{"visibility":1}"#).is_empty();
    site.kit().advance(std::time::Duration::from_secs(2));
    nobody
}

/// Drops a call that keeps a leased message for longer; it can't be repeated when the lease is over.
fn kept(verb: &str, more: &Value) {
    let site = Site::new();
    let mut happened = [false; 2];
    everywhere(|polls| {
        let leased = Leased::new(&site, polls);
        let row = leased.row(verb, more.clone(), &[]);
        ended(verb, &site, polls, |_| row.clone(), |_, next| stays(next));
        let (answered, torn) = site.cut_call(&row.call(), polls);
        // One process repeats the call at once, the others don't.
        let (killed, again) = (site.killed(), site.killed());
        again.call(&row.call()).is(204);
        assert!(stays(&again), "{verb} again after {polls} polls");
        let [at_once, later, here] = [&torn, &killed, &site].map(stays);
        assert_eq!(later, here, "{verb} after {polls} polls: durable, and has happened");
        assert!(here || !at_once, "{verb} after {polls} polls: it was durable, and has not happened");
        assert!(answered.is_none() || at_once, "{verb}: it was answered, and was not durable");
        happened[usize::from(here)] |= answered.is_none();
        leased.end(&site);
        assert_eq!(site.metric("systole_gateway_waiters"), 0, "{verb} after {polls} polls");
        answered.is_some()
    });
    assert_eq!(happened, [true; 2], "{verb}: drops before and behind its effect");
}

#[test]
fn a_longer_lease() {
    kept("extend", &json!({ "visibility": 600 }));
}

#[test]
fn a_leased_message_that_is_held() {
    kept("hold", &json!({}));
}

#[test]
fn a_cursor_that_passes_a_message() {
    dropped(
        "page",
        |site, number| {
            let sent = site.ask(number);
            let page = site.get("worker", &format!("{WORKER}/messages?limit=500")).is(200);
            let path = format!("{WORKER}/messages?ack={}", text(&page["next"]));
            (Row::post("worker", path, Value::Null, &[200]).of(Method::GET), sent)
        },
        |site, sent| text(&site.sent(sent)["state"]) == "faulted",
        |_, _| {},
    );
}

#[test]
fn a_dead_letter_that_is_driven_again() {
    dropped(
        "redrive",
        |site, number| {
            let id = dead(site, number);
            (Row::post("worker", format!("{WORKER}/dead/redrive"), json!({ "id": id }), &[200, 404]), id)
        },
        |site, id| !dead_letters(site).contains(id),
        |site, id| {
            let times = site.all().iter().filter(|item| text(&item["id"]) == *id).count();
            assert_eq!(times, 1);
            site.post("worker", &format!("{WORKER}/messages/{id}/ack"), None, "{}");
            site.kit().settle();
            assert!(site.lease("{}").is_empty());
        },
    );
}

#[test]
fn a_dead_letter_that_is_deleted() {
    dropped(
        "bury",
        |site, number| {
            let id = dead(site, number);
            let row = Row::post("worker", format!("{WORKER}/dead?id={id}"), Value::Null, &[200, 404]);
            (Row { body: String::new(), ..row.of(Method::DELETE) }, id)
        },
        |site, id| !dead_letters(site).contains(id),
        |site, id| assert!(site.all().iter().all(|item| text(&item["id"]) != *id)),
    );
}

#[test]
fn a_pause_and_its_end() {
    let state = |site: &Site| text(&site.post("worker", "/v1/listeners/worker/heartbeat", None, "{}").is(200)["state"]);
    for (verb, other, then) in [("pause", "resume", "paused"), ("resume", "pause", "active")] {
        let set = |site: &Site, verb: &str| {
            drop(site.post("boss", &format!("/v1/listeners/worker/{verb}"), None, "").is(200))
        };
        dropped(
            verb,
            |site, _| {
                set(site, other);
                (Row::post("boss", format!("/v1/listeners/worker/{verb}"), json!({}), &[200]), ())
            },
            |site, ()| state(site) == then,
            |_, ()| {},
        );
    }
}

#[test]
fn an_act_of_an_operator() {
    let paused = |site: &Site| {
        let listeners = site.get("boss", "/v1/admin/listeners").is(200);
        let worker = listeners["items"].as_array().unwrap().iter().find(|listener| listener["listener"] == "worker");
        worker.unwrap()["paused"].is_string()
    };
    for (act, other, then) in [("pause", "resume", true), ("resume", "pause", false)] {
        let body = |act: &str| json!({ "act": act, "listener": "worker" });
        dropped(
            act,
            |site, _| {
                site.post("boss", "/v1/admin/acts", None, &body(other).to_string()).is(200);
                (Row::post("boss", "/v1/admin/acts", body(act), &[200]), ())
            },
            |site, ()| paused(site) == then,
            |_, ()| {},
        );
    }
}

#[test]
fn calls_that_show_nothing_can_be_dropped() {
    let site = Site::new();
    let register = json!({ "name": "worker", "mode": "stream" });
    let rows = [
        Row::post("worker", "/v1/listeners", register, &[201]),
        Row::post("worker", "/v1/listeners/worker/heartbeat", json!({}), &[200]),
        Row::post("ada", "/v1/sessions/s/heartbeat", json!({}), &[204]),
    ];
    site.post("ada", "/v1/sessions/s/call", None, &ask(1)).is(202);
    for row in rows {
        row.shows_nothing(&site);
    }
}

/// Polls after which a request does nothing but wait.
const WAITS: usize = 60;

#[test]
fn readers_that_wait() {
    let site = Site::new();
    let rows = [
        Row::post("worker", format!("{WORKER}/messages?wait=60"), Value::Null, &[200]).of(Method::GET),
        Row::post("worker", format!("{WORKER}/lease"), json!({ "wait": 60 }), &[200]),
    ];
    for row in rows {
        for polls in 0..WAITS {
            let answered = site.cut_off(&row.call(), polls);
            assert!(answered.is_none(), "{answered:?}");
            assert_eq!(site.metric("systole_gateway_waiters"), 0, "{} after {polls} polls", row.path);
        }
    }
    // None of them takes the messages that come.
    let leased = Leased::new(&site, 1);
    assert_eq!(leased.item(&site)["deliveries"], 1);
}

#[test]
fn a_sender_that_waits() {
    let site = Site::new();
    let path = format!("/v1/messages/{}?wait=60", site.ask(1));
    let row = Row::post("ada", path, Value::Null, &[200]).of(Method::GET);
    for polls in 0..WAITS {
        let answered = site.cut_off(&row.call(), polls);
        assert!(answered.is_none(), "{answered:?}");
        assert_eq!(site.metric("systole_gateway_waiters"), 0, "after {polls} polls");
    }
    let item = site.lease("{}").remove(0);
    site.post("worker", &format!("/v1/messages/{}/reply", text(&item["id"])), None, &answer("one")).is(202);
    assert_eq!(text(&site.call(&row.call()).is(200)["state"]), "answered");
}

#[test]
fn a_stream() {
    let site = Site::new();
    let (path, sent) = (format!("{WORKER}/stream"), site.ask(1));
    let mut shown = [0; 2];
    for polls in 0..WAITS {
        let read = site.cut_stream("worker", &path, polls);
        shown[usize::from(read.contains(">1</ask>"))] += 1;
        assert_eq!(site.metric("systole_gateway_waiters"), 0, "after {polls} polls");
    }
    assert!(shown.iter().all(|count| *count > 0), "no drop was before the message, or none behind it: {shown:?}");
    // The message is still there for a reader that ends it.
    assert_eq!(text(&site.sent(&sent)["state"]), "delivered");
    site.post("worker", &format!("/v1/messages/{}/reply", text(&site.all()[0]["id"])), None, &answer("one")).is(202);
}

#[test]
fn a_caller_that_waits_for_its_answer() {
    let site = Site::new();
    for polls in 0..WAITS {
        let key = format!("k{polls}");
        let answered = site.cut("ada", "/v1/messages?wait=60", Some(&key), &ask(polls), polls);
        assert!(answered.is_none(), "{answered:?}");
        assert_eq!(site.metric("systole_gateway_waiters"), 0, "after {polls} polls");
        let id = text(&site.post("ada", "/v1/messages", Some(&key), &ask(polls)).is(202)["id"]);
        let item = site.lease("{}").remove(0);
        site.post("worker", &format!("/v1/messages/{}/reply", text(&item["id"])), None, &answer("one")).is(202);
        site.kit().settle();
        assert_eq!(site.sent(&id)["replies"].as_array().unwrap().len(), 1);
    }
}

/// A note in the mailbox that rides on the responses to ada's calls; its id there.
fn note(site: &Site, number: usize) -> String {
    let envelope = ask(number).replace("ask", "note");
    site.post("ada", "/v1/messages", None, &envelope).is(202);
    let page = site.get("desk", "/v1/mailboxes/desk/messages?limit=500").is(200);
    text(&page["items"].as_array().unwrap().last().unwrap()["id"])
}

fn state_of(site: &Site, note: &str) -> String {
    text(&site.get("desk", &format!("/v1/messages/{note}")).is(200)["state"])
}

/// Calls in a session; returns the notices on the response.
fn told(site: &Site, session: &str, key: &str) -> Value {
    let response = site.post("ada", &format!("/v1/sessions/{session}/call"), Some(key), &ask(0)).is(202);
    response["metadata"]["notices"].clone()
}

/// Tokens that a session has and did not confirm, with their rows; none if it is not there.
fn unconfirmed(site: &Site, session: &str) -> Vec<(String, Value)> {
    let answer = site.get("ada", &format!("/v1/sessions/{session}/notices"));
    let notices = answer.body["notices"].as_array().cloned().unwrap_or_default();
    notices.into_iter().map(|told| (text(&told["token"]), told["ids"].clone())).collect()
}

#[test]
fn a_call_of_a_session_leaves_each_note_with_the_session_or_with_nobody() {
    let site = Site::new();
    everywhere(|polls| {
        let id = note(&site, polls);
        let (session, key) = (format!("s{}", polls % 2), format!("k{polls}"));
        let answered = site.cut("ada", &format!("/v1/sessions/{session}/call"), Some(&key), &ask(0), polls);
        assert_eq!(site.metric("systole_gateway_waiters"), 0, "after {polls} polls");
        // Sessions end with the process.
        let killed = site.killed();
        assert_eq!(told(&killed, &session, &key)["rows"], 1, "after {polls} polls");
        let rides = told(&site, &session, &key);
        let had = unconfirmed(&site, &session);
        assert_eq!(had.len(), 1, "after {polls} polls: {rides}");
        assert_eq!(had[0].1, json!([id]));
        assert!(rides.is_null() || text(&rides["token"]) == had[0].0);
        let body = json!({ "token": had[0].0 }).to_string();
        site.post("ada", &format!("/v1/sessions/{session}/confirm"), None, &body).is(200);
        assert_eq!(state_of(&site, &id), "acked");
        answered.is_some()
    });
}

#[test]
fn a_confirmation() {
    let site = Site::new();
    let mut happened = [false; 2];
    everywhere(|polls| {
        let id = note(&site, polls);
        let token = text(&told(&site, "s", &format!("k{polls}"))["token"]);
        let row = Row::post("ada", "/v1/sessions/s/confirm", json!({ "token": token }), &[]);
        let (answered, torn) = site.cut_call(&row.call(), polls);
        assert_eq!(site.metric("systole_gateway_waiters"), 0, "after {polls} polls");
        let [at_once, later, here] = [&torn, &site.killed(), &site].map(|site| state_of(site, &id) == "acked");
        assert_eq!(later, here, "after {polls} polls: durable, and has happened");
        assert!(here || !at_once, "after {polls} polls: it was durable, and has not happened");
        assert!(answered.is_none() || at_once, "it was answered, and was not durable");
        happened[usize::from(here)] |= answered.is_none();
        let confirmed = site.call(&row.call()).is(200);
        assert_eq!(confirmed["confirmed"], json!([{ "token": token, "ids": [id] }]), "after {polls} polls");
        assert_eq!(state_of(&site, &id), "acked");
        assert!(unconfirmed(&site, "s").is_empty());
        answered.is_some()
    });
    assert_eq!(happened, [true; 2], "drops before and behind its effect");
}

#[test]
fn the_end_of_a_session_frees_what_it_had() {
    let site = Site::new();
    everywhere(|polls| {
        let id = note(&site, polls);
        told(&site, "s", &format!("k{polls}"));
        let end = Row::post("ada", "/v1/sessions/s", Value::Null, &[]).of(Method::DELETE);
        let end = Row { body: String::new(), ..end };
        let answered = site.cut_off(&end.call(), polls);
        let there = !unconfirmed(&site, "s").is_empty();
        assert!(answered.is_none() || !there, "it was answered, and has not happened");
        if there {
            assert_eq!(site.call(&end.call()).status, 204);
        }
        // It is free.
        let leased = site.post("desk", "/v1/mailboxes/desk/lease", None, "{}").is(200);
        assert_eq!(text(&leased["items"][0]["id"]), id, "after {polls} polls");
        site.post("desk", &format!("/v1/messages/{id}/reply"), None, &answer("read")).is(202);
        site.kit().settle();
        assert_eq!(site.metric("systole_gateway_waiters"), 0, "after {polls} polls");
        answered.is_some()
    });
}

fn task(site: &Site, id: &str) -> Value {
    site.get("worker", &format!("/v1/tasks/{id}")).is(200)
}

fn jobs(site: &Site) -> Vec<String> {
    let page = site.get("ada", "/v1/jobs").is(200);
    page["items"].as_array().unwrap().iter().map(|job| text(&job["name"])).collect()
}

#[test]
fn a_job_that_is_registered_and_one_that_is_removed() {
    let card = json!({ "description": "Reads drafts." });
    let path = |job: &str| format!("/v1/jobs/{job}");
    dropped(
        "register",
        |_, number| {
            let job = format!("job{number}");
            (Row::post("worker", path(&job), card.clone(), &[200]).of(Method::PUT), job)
        },
        |site, job| jobs(site).contains(job),
        |_, _| {},
    );
    dropped(
        "remove",
        |site, number| {
            let job = format!("job{number}");
            let put = Row::post("worker", path(&job), card.clone(), &[]).of(Method::PUT);
            assert_eq!(site.call(&put.call()).status, 200);
            let row = Row::post("worker", path(&job), Value::Null, &[204, 404]).of(Method::DELETE);
            (Row { body: String::new(), ..row }, job)
        },
        |site, job| !jobs(site).contains(job),
        |_, _| {},
    );
}

#[test]
fn a_task_that_is_submitted() {
    let all = |site: &Site| {
        let page = site.get("worker", "/v1/jobs/reviews/tasks?limit=100").is(200);
        page["items"].as_array().unwrap().clone()
    };
    dropped(
        "submit",
        |_, number| {
            let (what, key) = (format!("Read draft {number}."), format!("k{number}"));
            (Row::post("ada", "/v1/jobs/reviews/tasks", json!({ "description": what }), &[200, 201]).keyed(key), what)
        },
        |site, what| {
            let times = all(site).iter().filter(|task| text(&task["description"]) == *what).count();
            assert!(times <= 1, "{what} {times} times");
            times == 1
        },
        |site, what| {
            let task = all(site).into_iter().find(|task| text(&task["description"]) == *what).unwrap();
            site.post("ada", &format!("/v1/tasks/{}/cancel", text(&task["id"])), None, "{}").is(200);
        },
    );
}

/// A transition of a task: the caller, the verb, the body, and the check of its effect.
type Act = (&'static str, &'static str, Value, fn(&Value) -> bool);

#[test]
fn what_is_done_to_a_task() {
    let submit = |site: &Site, accepted: bool, asked: bool| {
        let body = json!({ "description": "Read." }).to_string();
        let id = text(&site.post("ada", "/v1/jobs/reviews/tasks", None, &body).is(201)["id"]);
        if accepted {
            site.post("worker", &format!("/v1/tasks/{id}/accept"), None, "{}").is(200);
        }
        if asked {
            site.post("worker", &format!("/v1/tasks/{id}/input-required"), None, r#"{"text":"Which?"}"#).is(200);
        }
        id
    };
    let rows: [Act; 9] = [
        ("worker", "accept", json!({}), |task| task["status"] == "accepted"),
        ("worker", "progress", json!({ "percent": 50 }), |task| task["progress"]["percent"] == 50),
        ("worker", "artifact", json!({ "name": "a", "text": "b" }), |task| task["artifacts"].is_array()),
        ("worker", "input-required", json!({ "text": "Which?" }), |task| task["status"] == "input-required"),
        ("ada", "input", json!({ "text": "That." }), |task| task["status"] == "accepted"),
        ("worker", "complete", json!({ "text": "done" }), |task| task["status"] == "completed"),
        ("worker", "fail", json!({ "text": "no" }), |task| task["status"] == "failed"),
        ("worker", "reject", json!({ "text": "no" }), |task| task["status"] == "rejected"),
        ("ada", "cancel", json!({}), |task| task["status"] == "cancelled"),
    ];
    for (who, verb, body, done) in rows {
        dropped(
            verb,
            |site, _| {
                let id = submit(site, !["accept", "reject"].contains(&verb), verb == "input");
                (Row::post(who, format!("/v1/tasks/{id}/{verb}"), body.clone(), &[200, 409]), id)
            },
            |site, id| done(&task(site, id)),
            |_, _| {},
        );
    }
}
