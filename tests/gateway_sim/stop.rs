//! An organism that ends in order while a call is in flight, at any point of both: what was acknowledged is there after
//! the next start, and what could not be made durable any more is refused as a call to repeat.

use axum::http::Method;
use serde_json::{Value, json};

use crate::cut::everywhere;
use crate::site::{Answer, Site, WORKER, answer, ask, text};
use crate::table::Row;

/// Turns by which the end of the organism is ahead of the call; the last is more than it needs.
const AHEAD: [usize; 4] = [0, 1, 4, 40];

/// Ends copies of a site after so many polls of a call, which is made for each; `there` checks the next start for its
/// effect. True if the call was answered before the end began.
pub(crate) fn ended(
    name: &str,
    site: &Site,
    polls: usize,
    call: impl Fn(&Site) -> Row,
    there: impl Fn(&Answer, &Site) -> bool,
) -> bool {
    let mut answered = false;
    for ahead in AHEAD {
        let copy = site.killed();
        let row = call(&copy);
        let (answer, early, next) = copy.end_during(&row.call(), polls, ahead);
        let place = format!("{name}: ended after {polls} polls, {ahead} ahead: {answer:?}");
        if answer.status.is_success() {
            next.kit().settle();
            assert!(there(&answer, &next), "{place}: it is not there after the next start");
        } else {
            assert_eq!((answer.status.as_u16(), &answer.body["code"]), (503, &json!("stopping")), "{place}");
        }
        answered = early;
    }
    answered
}

/// A message that the worker has leased, and its sender's id of it.
fn leased(site: &Site) -> (String, Value) {
    let sent = site.ask(1);
    (sent, site.lease("{}").remove(0))
}

#[test]
fn an_end_of_a_message() {
    let site = Site::new();
    let (sent, item) = leased(&site);
    let id = text(&item["id"]);
    let receipt = json!({ "receipt": item["receipt"] });
    let rows = [
        (
            "reply",
            Row::post("worker", format!("/v1/messages/{id}/reply"), Value::Null, &[]).with(answer("one")),
            "answered",
        ),
        ("fail", Row::post("worker", format!("/v1/messages/{id}/fail"), json!({}), &[]), "faulted"),
        ("ack", Row::post("worker", format!("{WORKER}/messages/{id}/ack"), receipt.clone(), &[]), "faulted"),
        ("term", Row::post("worker", format!("{WORKER}/messages/{id}/term"), receipt, &[]), "faulted"),
    ];
    for (verb, row, state) in rows {
        everywhere(|polls| {
            ended(
                verb,
                &site,
                polls,
                |_| row.clone(),
                |_, next| {
                    let known = next.sent(&sent);
                    text(&known["state"]) == state && known["replies"].as_array().unwrap().len() == 1
                },
            )
        });
    }
}

#[test]
fn a_page_behind_a_cursor() {
    let site = Site::new();
    let sent = site.ask(1);
    let next = text(&site.get("worker", &format!("{WORKER}/messages")).is(200)["next"]);
    let row = Row::post("worker", format!("{WORKER}/messages?ack={next}"), Value::Null, &[]).of(Method::GET);
    everywhere(|polls| {
        ended("page", &site, polls, |_| row.clone(), |_, next| text(&next.sent(&sent)["state"]) == "faulted")
    });
}

#[test]
fn a_submission() {
    let site = Site::new();
    for path in ["/v1/messages", "/v1/messages?wait=5", "/v1/sessions/s/call?wait=5"] {
        everywhere(|polls| {
            let call = |_: &Site| Row::post("ada", path, Value::Null, &[]).with(ask(polls));
            ended(path, &site, polls, call, |answer, next| {
                let body = &answer.body;
                let id = body["id"].as_str().or_else(|| body["metadata"]["id"].as_str()).unwrap();
                // A waiting call, too, has the id of a message that is there once.
                next.get("ada", &format!("/v1/messages/{id}")).status == 200 && next.all().len() == 1
            }) || path.contains("wait") && polls > 20
        });
    }
}

#[test]
fn a_lease() {
    let site = Site::new();
    site.ask(1);
    let row = Row::post("worker", format!("{WORKER}/lease"), json!({ "visibility": 600 }), &[]);
    everywhere(|polls| {
        ended(
            "lease",
            &site,
            polls,
            |_| row.clone(),
            |answer, next| {
                let given = answer.body["items"].as_array().unwrap().len();
                next.lease("{}").len() == 1 - given
            },
        )
    });
}

#[test]
fn a_confirmation() {
    let site = Site::new();
    let note = ask(7).replace("ask", "note");
    site.post("ada", "/v1/messages", None, &note).is(202);
    let page = site.get("desk", "/v1/mailboxes/desk/messages").is(200);
    let id = text(&page["items"][0]["id"]);
    let call = |copy: &Site| {
        // Sessions end with their process.
        let told = copy.post("ada", "/v1/sessions/s/call", None, &ask(1)).is(202);
        let token = &told["metadata"]["notices"]["token"];
        Row::post("ada", "/v1/sessions/s/confirm", json!({ "token": token }), &[])
    };
    everywhere(|polls| {
        ended("confirm", &site, polls, call, |_, next| {
            text(&next.get("desk", &format!("/v1/messages/{id}")).is(200)["state"]) == "acked"
        })
    });
}
