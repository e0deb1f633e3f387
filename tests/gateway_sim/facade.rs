//! The façade's calls, dropped after any number of polls: a durable change has happened, and no other one has; the
//! repeated call has its effect once; and nothing waits for the dropped one.

use axum::http::Method;
use serde_json::{Value, json};

use crate::cut::everywhere;
use crate::site::{Site, text};
use crate::stop::ended;
use crate::table::{Row, dropped};

/// Sends a text of a person to the workspace; returns the sender's id of it.
fn say(site: &Site, who: &str, words: &str) -> String {
    let envelope = format!(
        "<message xmlns=\"https://xml-pipeline.org/ns/envelope/v1\"><meta><from>{who}</from><to>scout</to></meta>\
         <said xmlns=\"urn:systole:chat:v1\"><text>{words}</text></said></message>"
    );
    text(&site.post(who, "/v1/messages", None, &envelope).is(202)["id"])
}

/// A request of JSON-RPC with a text.
fn message(words: &str) -> Value {
    let message = json!({ "role": "user", "messageId": words, "parts": [{ "kind": "text", "text": words }] });
    json!({ "jsonrpc": "2.0", "id": words, "method": "message/send", "params": { "message": message } })
}

/// Rows of a workspace, as an admin sees them: that skips none.
fn rows(site: &Site, workspace: &str) -> Vec<Value> {
    let page = site.get("boss", &format!("/workspaces/{workspace}/activity?limit=500")).is(200);
    page.as_array().unwrap().clone()
}

/// Id of the last row of the workspace.
fn last(site: &Site) -> String {
    text(&rows(site, "scout").last().unwrap()["id"])
}

/// Rows with a text.
fn times(site: &Site, workspace: &str, words: &str) -> usize {
    rows(site, workspace).iter().filter(|row| row["data"]["text"] == words).count()
}

fn is_answered(site: &Site, sent: &str) -> bool {
    let sent = site.sent(sent);
    assert!(sent["replies"].as_array().unwrap().len() <= 1, "{sent}");
    text(&sent["state"]) == "answered"
}

#[test]
fn an_answer_at_the_id_of_its_row() {
    dropped(
        "a2a to a row",
        |site, number| {
            let sent = say(site, "ada", &format!("question {number}"));
            (Row::post("scout", format!("/workspaces/{}/a2a", last(site)), message("yes"), &[200]), sent)
        },
        |site, sent| is_answered(site, sent),
        |_, _| {},
    );
}

#[test]
fn an_answer_to_a_person_that_names_its_row() {
    dropped(
        "notify",
        |site, number| {
            let sent = say(site, "ada", &format!("question {number}"));
            let body = json!({ "message": "yes", "in_reply_to": last(site) });
            (Row::post("scout", "/workspaces/scout/notify", body, &[200]), sent)
        },
        |site, sent| is_answered(site, sent),
        |_, _| {},
    );
}

#[test]
fn an_answer_to_a_person_that_names_no_row() {
    let site = Site::new();
    let mut happened = [false; 2];
    everywhere(|polls| {
        let sent = say(&site, "ada", &format!("question {polls}"));
        let page = site.get("scout", "/workspaces/scout/activity?limit=500").is(200);
        let shown = page.as_array().unwrap().last().unwrap().clone();
        assert_eq!(shown["data"]["source"], "canvas_user", "after {polls} polls: {shown}");
        let row = Row::post("scout", "/workspaces/scout/notify", json!({ "message": "yes" }), &[]);
        let (answered, torn) = site.cut_call(&row.call(), polls);
        let killed = site.killed();
        let [at_once, later, here] = [&torn, &killed, &site].map(|site| is_answered(site, &sent));
        assert_eq!(later, here, "after {polls} polls: durable, and has happened");
        assert!(here || !at_once, "after {polls} polls: it was durable, and has not happened");
        assert!(answered.is_none() || at_once, "it was answered, and was not durable");
        happened[usize::from(here)] |= answered.is_none();
        // A process that has shown no row does not guess which one is meant.
        assert_eq!(killed.call(&row.call()).is(409)["code"], "nobody_waits");
        let again = site.call(&row.call());
        assert_eq!(again.status.as_u16(), if answered.is_some() { 409 } else { 200 }, "after {polls} polls: {again:?}");
        assert!(is_answered(&site, &sent), "after {polls} polls");
        assert_eq!(site.metric("systole_gateway_waiters"), 0, "after {polls} polls");
        answered.is_some()
    });
    assert_eq!(happened, [true; 2], "drops before and behind its effect");
}

#[test]
fn a_text_that_opens_a_conversation() {
    for (who, to) in [("scout", "mate"), ("ada", "scout")] {
        dropped(
            "a2a to a listener",
            |_, number| {
                let words = format!("hello {number}");
                (Row::post(who, format!("/workspaces/{to}/a2a"), message(&words), &[200]), words)
            },
            |site, words| {
                let times = times(site, to, words);
                assert!(times <= 1, "'{words}' {times} times");
                times == 1
            },
            |_, _| {},
        );
    }
}

#[test]
fn a_task_for_a_peer() {
    dropped(
        "delegate",
        |_, number| {
            let task = format!("task {number}");
            let body = json!({ "task": task, "idempotency_key": format!("k{number}") });
            (Row::post("scout", "/workspaces/mate/delegate", body, &[200]), task)
        },
        |site, task| {
            let times = times(site, "mate", task);
            assert!(times <= 1, "'{task}' {times} times");
            times == 1
        },
        |_, _| {},
    );
}

#[test]
fn a_cursor_that_skips_a_row() {
    dropped(
        "activity",
        |site, number| {
            let sent = say(site, "ada", &format!("question {number}"));
            let path = format!("/workspaces/scout/activity?since_id={}", last(site));
            (Row::post("scout", path, Value::Null, &[200]).of(Method::GET), sent)
        },
        |site, sent| text(&site.sent(sent)["state"]) == "faulted",
        |_, _| {},
    );
}

#[test]
fn the_person_of_a_workspace_is_durable_before_a_row_is_shown() {
    everywhere(|polls| {
        let site = Site::new();
        say(&site, "ada", "from ada");
        let ada = last(&site);
        let page = Row::post("scout", "/workspaces/scout/activity", Value::Null, &[200]).of(Method::GET);
        ended(
            "activity",
            &site,
            polls,
            |_| page.clone(),
            |answer, next| {
                say(next, "bob", "from bob");
                let next = next.get("scout", "/workspaces/scout/activity").is(200);
                canvas(&answer.body) == ["from ada"] && canvas(&next) == ["from ada"]
            },
        );
        let (answered, torn) = site.cut_call(&page.call(), polls);
        assert_eq!(site.metric("systole_gateway_waiters"), 0, "after {polls} polls");
        for site in [&torn, &site.killed()] {
            site.post("scout", &format!("/workspaces/{ada}/a2a"), None, &message("yes").to_string()).is(200);
            say(site, "bob", "from bob");
            let rows = site.get("scout", "/workspaces/scout/activity").is(200);
            assert!(answered.is_none() || canvas(&rows).is_empty(), "after {polls} polls: {rows}");
        }
        answered.is_some()
    });
}

#[test]
fn a_late_answer_after_a_restart_reaches_no_later_question() {
    let page = |site: &Site, since: &str| site.get("scout", &format!("/workspaces/scout/activity{since}")).is(200);
    let notify = |site: &Site| {
        let body = json!({ "message": "to one" }).to_string();
        site.post("scout", "/workspaces/scout/notify", None, &body)
    };
    for end in ["passed over", "failed", "shown again and answered"] {
        let mut site = Site::new();
        say(&site, "ada", "one");
        assert_eq!(canvas(&page(&site, "")), ["one"]);
        let one = last(&site);
        match end {
            "passed over" => drop(page(&site, &format!("?since_id={one}"))),
            "failed" => drop(site.post("scout", &format!("/v1/messages/{one}/fail"), None, "{}").is(202)),
            _ => {
                site = site.killed();
                assert_eq!(canvas(&page(&site, "")), ["one"]);
                notify(&site).is(200);
            }
        }
        // Another copy of the agent answers the first question when the second one is there.
        let site = site.killed();
        let two = say(&site, "ada", "two");
        let shown = page(&site, &format!("?since_id={one}"));
        assert_eq!((&shown[0]["data"]["text"], canvas(&shown)), (&json!("two"), vec![]), "{end}");
        assert_eq!(notify(&site).is(409)["code"], "nobody_waits", "{end}");
        let path = format!("/workspaces/{}/a2a", text(&shown[0]["source_id"]));
        site.post("scout", &path, None, &message("to two").to_string()).is(200);
        assert!(is_answered(&site, &two), "{end}");
    }
}

/// Texts of the rows that `notify` answers.
fn canvas(page: &Value) -> Vec<&str> {
    let rows = page.as_array().unwrap().iter().filter(|row| row["data"]["source"] == "canvas_user");
    rows.map(|row| row["data"]["text"].as_str().unwrap()).collect()
}

#[test]
fn calls_without_a_durable_effect_can_be_dropped() {
    let site = Site::new();
    let registration = json!({ "id": "scout", "agent_card": { "name": "scout" }, "delivery_mode": "poll" });
    let rows = [
        Row::post("scout", "/registry/register", registration, &[200]),
        Row::post("scout", "/registry/heartbeat", json!({ "workspace_id": "scout" }), &[200]),
        Row::post("scout", "/workspaces/scout/activity", json!({}), &[404]),
        Row::post("scout", "/workspaces/scout/plugins", json!({}), &[404]),
    ];
    for row in rows {
        row.shows_nothing(&site);
    }
}
