//! Operations over HTTP: acts and looks of an admin, and of nobody else.

use serde_json::{Value, json};

use crate::site::{Site, answer, ask, text};

const ACTS: &str = "/v1/admin/acts";

fn act(site: &Site, act: &Value) -> Value {
    site.post("boss", ACTS, None, &act.to_string()).is(200)["outcomes"].clone()
}

fn items(site: &Site, path: &str) -> Vec<Value> {
    site.get("boss", path).is(200)["items"].as_array().unwrap().clone()
}

#[test]
fn an_admin_cancels_a_conversation_and_its_sender_learns_it() {
    let site = Site::new();
    let sent = site.ask(1);
    let open = items(&site, "/v1/admin/conversations?state=open&listener=worker");
    assert_eq!((open.len(), &open[0]["listeners"]), (1, &json!(["worker"])));
    let id = text(&open[0]["conversation"]);
    let threads = items(&site, &format!("/v1/admin/conversations/{id}/threads"));
    let paths: Vec<_> = threads.iter().map(|thread| (text(&thread["path"]), text(&thread["state"]))).collect();
    assert_eq!(paths, [("root".to_owned(), "waiting".to_owned()), ("root/worker".to_owned(), "running".to_owned())]);
    assert_eq!(act(&site, &json!({ "act": "cancel", "conversation": id })), json!([{ "of": id }]));
    let known = site.sent(&sent);
    assert_eq!((text(&known["state"]), text(&known["reply"]["fault"])), ("faulted".to_owned(), "cancelled".to_owned()));
    assert!(items(&site, "/v1/admin/conversations?state=open&listener=worker").is_empty());
    let again = act(&site, &json!({ "act": "cancel", "conversation": id }));
    assert!(text(&again[0]["error"]).contains("is no open thread"), "{again}");
}

#[test]
fn a_paused_listener_gets_no_messages_until_it_is_resumed() {
    let site = Site::new();
    let waited = site.ask(1);
    act(&site, &json!({ "act": "pause", "listener": "worker" }));
    let listed = items(&site, "/v1/admin/listeners");
    let worker = listed.iter().find(|listener| listener["listener"] == "worker").unwrap();
    assert!(worker["paused"].is_string(), "{worker}");
    let sent = site.ask(2);
    assert!(site.lease("{}").is_empty(), "neither what waited before the pause nor what came later");
    // It stays so over a restart.
    let site = site.killed();
    assert!(site.lease("{}").is_empty());
    assert_eq!(act(&site, &json!({ "act": "resume", "listener": "worker" })), json!([{ "of": "worker" }]));
    let leased = site.lease(r#"{"max":2}"#);
    for message in &leased {
        site.post("worker", &format!("/v1/messages/{}/reply", text(&message["id"])), None, &answer("one")).is(202);
    }
    site.kit().settle();
    assert_eq!([&waited, &sent].map(|sent| text(&site.sent(sent)["state"])), ["answered", "answered"]);
}

#[test]
fn each_entrance_pauses_the_mailbox_of_a_listener() {
    let site = Site::new();
    site.ask(1);
    let paused = |site: &Site| {
        let listed = items(site, "/v1/admin/listeners");
        listed.iter().any(|listener| listener["listener"] == "worker" && listener["paused"].is_string())
    };
    let set = |entrance: &str, verb: &str| match entrance {
        "library" => {
            let organism = site.kit().organism();
            let operations = organism.operations(systole_core::vocab::Name::system());
            site.kit().block_on(async {
                match verb {
                    "pause" => operations.pause("worker").await.unwrap(),
                    _ => operations.resume("worker").await.unwrap(),
                }
            });
        }
        "acts" => drop(act(&site, &json!({ "act": verb, "listener": "worker" }))),
        _ => drop(site.post("boss", &format!("/v1/listeners/worker/{verb}"), None, "").is(200)),
    };
    const ENTRANCES: [&str; 3] = ["library", "acts", "presence"];
    for (pause, resume) in ENTRANCES.into_iter().flat_map(|pause| ENTRANCES.map(|resume| (pause, resume))) {
        set(pause, "pause");
        assert!(paused(&site) && site.lease("{}").is_empty(), "{pause}");
        set(resume, "resume");
        assert!(!paused(&site), "{pause}, {resume}");
    }
    assert_eq!(site.lease("{}").len(), 1);
}

#[test]
fn a_page_looks_the_same_while_a_conversation_is_open_and_when_it_has_ended() {
    let site = Site::new();
    let sent = site.ask(1);
    let id = text(&site.sent(&sent)["thread"]);
    let only = |path: &str| {
        let found = items(&site, path);
        assert_eq!(found.len(), 1, "{path}: {found:?}");
        found[0].clone()
    };
    let look = "/v1/admin/conversations?listener=worker&payload=%7Burn:t%7Dask";
    let open = only(&format!("{look}&state=open"));
    assert_eq!((&open["conversation"], &open["open"], &open["running"]), (&json!(id), &json!(true), &json!(1)));
    let threads = items(&site, &format!("/v1/admin/conversations/{id}/threads"));
    let leased = site.lease("{}");
    site.post("worker", &format!("/v1/messages/{}/reply", text(&leased[0]["id"])), None, &answer("done it")).is(202);
    site.kit().settle();
    let ended = only(&format!("{look}&state=ended"));
    for field in ["conversation", "owner", "opened", "payload", "listeners"] {
        assert_eq!(open[field], ended[field], "{field}");
    }
    assert_eq!((&ended["open"], &ended["threads"], &ended["owner"]), (&json!(false), &json!(0), &json!("ada")));
    let closed = items(&site, &format!("/v1/admin/conversations/{id}/threads"));
    assert_eq!(threads.len(), closed.len());
    for (before, now) in threads.iter().zip(&closed) {
        assert_eq!((&before["thread"], &before["path"]), (&now["thread"], &now["path"]));
        assert!(before["state"].is_string() && now["state"].is_null() && now["closed"].is_string(), "{now}");
    }
    // What was said is found by a part of it, and by nothing else.
    assert_eq!(only("/v1/admin/conversations?text=done%20it")["conversation"], json!(id));
    assert!(items(&site, "/v1/admin/conversations?text=nobody+said+so").is_empty());
    assert!(items(&site, "/v1/admin/conversations?fault=timeout").is_empty());
    let worker = closed.iter().find(|thread| thread["path"] == "root/worker").unwrap();
    let said = items(&site, &format!("/v1/admin/threads/{}/messages", text(&worker["thread"])));
    assert_eq!(
        (&said[0]["kind"], &said[0]["payload"], &said[0]["ending"]),
        (&json!("message"), &json!("{urn:t}ask"), &json!("done"))
    );
    let found = items(&site, &format!("/v1/admin/messages/{}", text(&said[0]["message"])));
    assert_eq!(found[0], said[0]);
    let left = items(&site, &format!("/v1/admin/threads/{id}/messages"));
    assert_eq!((&left[0]["kind"], &left[0]["from"]), (&json!("answer"), &json!("worker")));
    site.get("boss", "/v1/admin/conversations?since=yesterday").is(422);
    site.get("boss", "/v1/admin/conversations?state=shut").is(400);
}

#[test]
fn pages_of_conversations_follow_each_other() {
    let site = Site::new();
    let sent: Vec<_> = (1..=7).map(|number| text(&site.sent(&site.ask(number))["thread"])).collect();
    let (mut seen, mut after) = (Vec::new(), String::new());
    loop {
        let page = site.get("boss", &format!("/v1/admin/conversations?listener=worker&limit=3{after}")).is(200);
        seen.extend(page["items"].as_array().unwrap().iter().map(|record| text(&record["conversation"])));
        match page["next"].as_str() {
            Some(next) => after = format!("&after={next}"),
            None => break,
        }
    }
    assert!(seen.iter().eq(sent.iter().rev()), "{seen:?} of {sent:?}");
}

#[test]
fn a_retried_message_is_read_under_the_id_of_its_conversation() {
    let site = Site::new();
    let answered = |words: &str| {
        let leased = site.lease("{}");
        site.post("worker", &format!("/v1/messages/{}/reply", text(&leased[0]["id"])), None, &answer(words)).is(202);
        site.kit().settle();
    };
    let sent = site.ask(1);
    answered("first");
    let id = text(&site.sent(&sent)["thread"]);
    let outcome = act(&site, &json!({ "act": "retry", "conversation": id }));
    let opened = text(&outcome[0]["opened"]);
    answered("second");
    let known = site.get("ada", &format!("/v1/messages/{opened}")).is(200);
    assert!(text(&known["reply"]["envelope"]).contains("second"), "{known}");
    assert!(text(&site.sent(&sent)["reply"]["envelope"]).contains("first"));
    // One from another message of it, with another payload.
    let edit = ask(2);
    let edit = &edit[edit.find("<ask").unwrap()..];
    let edit = &edit[..edit.find("</message").unwrap_or(edit.len())];
    let outcome = act(&site, &json!({ "act": "retry", "conversation": opened, "edit": edit }));
    assert!(outcome[0]["opened"].is_string(), "{outcome}");
    assert!(text(&site.lease("{}")[0]["envelope"]).contains(edit));
    let outcome = act(&site, &json!({ "act": "retry", "conversation": "67e55044-10b1-426f-9247-bb680e5fe0c8" }));
    assert!(text(&outcome[0]["error"]).contains("there is no thread"), "{outcome}");
    site.post("boss", ACTS, None, &json!({ "act": "retry", "conversation": id, "edit": "<x" }).to_string()).is(400);
}

#[test]
fn what_is_no_act_is_refused_with_its_mistake() {
    let site = Site::new();
    for (body, status, part) in [
        (json!({ "act": "explode" }), 400, "unknown variant"),
        (json!({ "act": "pause", "listener": "worker", "why": "x" }), 400, "unknown field"),
        (json!({ "act": "pause", "listener": "nobody" }), 404, "no listener 'nobody'"),
        (json!({ "act": "cancel", "conversation": "x" }), 400, "id"),
        (json!({ "act": "redrive", "letters": { "fault": "because" } }), 400, "no code of a fault"),
        (json!({ "act": "discard", "letters": [null, null] }), 400, "invalid type"),
    ] {
        let refused = site.post("boss", ACTS, None, &body.to_string()).is(status);
        assert!(text(&refused["detail"]).contains(part), "{body}: {refused}");
    }
    let none = act(&site, &json!({ "act": "discard", "letters": { "ids": ["0-99"] } }));
    assert!(text(&none[0]["error"]).contains("no such dead letter"), "{none}");
}

#[test]
fn what_the_gateway_rejects_is_an_event_and_counted() {
    let site = Site::new();
    site.post("ada", "/v1/sessions/s/call", None, "<message/>").is(422);
    site.get("worker", "/v1/admin/ask").is(405);
    let events = site.get("boss", "/v1/admin/events?limit=500").is(200);
    let rejected: Vec<_> =
        events["events"].as_array().unwrap().iter().filter(|event| event["event"] == "rejected").collect();
    let told: Vec<_> = rejected.iter().map(|event| json!([event["by"], event["call"], event["status"]])).collect();
    assert_eq!(told, [json!(["ada", "POST /v1/sessions/s/call", 422]), json!(["worker", "GET /v1/admin/ask", 405])]);
    assert!(rejected.iter().all(|event| event["reason"].is_string() && event["code"].is_string()), "{rejected:?}");
    assert_eq!(site.metric("systole_gateway_rejected_total{status=\"405\",code=\"method_not_allowed\"}"), 1);
}

#[test]
fn only_admins_operate() {
    let site = Site::new();
    let sent = site.ask(1);
    for who in ["ada", "worker"] {
        site.post(who, ACTS, None, &json!({ "act": "pause", "listener": "worker" }).to_string()).is(403);
        for path in [
            "acts",
            "conversations",
            "conversations/x/threads",
            "dead-letters",
            "events",
            "listeners",
            "mailboxes",
            "tasks",
        ] {
            site.get(who, &format!("/v1/admin/{path}")).is(403);
        }
    }
    assert_eq!(site.lease("{}").len(), 1, "nothing was paused: {sent}");
}

#[test]
fn acts_and_messages_are_events_behind_a_number() {
    let site = Site::new();
    site.post("ada", "/v1/sessions/s/call", None, &ask(1)).is(202);
    act(&site, &json!({ "act": "pause", "listener": "worker" }));
    let seen = site.get("boss", "/v1/admin/events?limit=500").is(200);
    let events = seen["events"].as_array().unwrap();
    let numbers: Vec<_> = events.iter().map(|event| event["number"].as_u64().unwrap()).collect();
    assert!(numbers.iter().copied().eq(1..=events.len() as u64), "{numbers:?}");
    let last = events.last().unwrap();
    assert_eq!(
        (&last["event"], &last["by"], &last["act"], &last["of"]),
        (&json!("operated"), &json!("boss"), &json!("pause"), &json!("worker"))
    );
    let behind = site.get("boss", &format!("/v1/admin/events?after={}", events.len() - 1)).is(200);
    assert_eq!((&behind["events"], &behind["missed"]), (&json!([last]), &json!(0)));
}

#[test]
fn dead_letters_of_the_pump_and_of_mailboxes_are_found_and_chosen_by_one_filter() {
    let site = Site::new();
    // A part of the reply that its listener may not send: a dead letter of the pump.
    site.ask(1);
    let leased = site.lease("{}");
    let both = answer("one") + "<note xmlns=\"urn:t\">two</note>";
    site.post("worker", &format!("/v1/messages/{}/reply", text(&leased[0]["id"])), None, &both).is(202);
    // Those of the mailbox: its listener gives them up.
    for number in 2..=4 {
        site.ask(number);
        let leased = site.lease("{}");
        let fail = json!({ "message": format!("no {number}") }).to_string();
        site.post("worker", &format!("/v1/messages/{}/fail", text(&leased[0]["id"])), None, &fail).is(202);
    }
    site.kit().settle();
    let found = |query: &str| items(&site, &format!("/v1/admin/dead-letters?{query}"));
    assert_eq!(found("listener=worker&fault=failed").len(), 3);
    let three = found("text=no%203");
    assert_eq!((three.len(), &three[0]["mailbox"], &three[0]["from"]), (1, &json!(true), &json!("ada")));
    for (query, count) in [("from=ada&fault=failed", 3), ("from=bob", 0), ("payload=%7Burn:t%7Dask&fault=failed", 3)] {
        assert_eq!(found(query).len(), count, "{query}");
    }
    site.get("boss", "/v1/admin/dead-letters?since=yesterday").is(422);
    // Pages follow each other over both kinds.
    let (all, mut seen, mut after) = (found(""), Vec::new(), String::new());
    assert_eq!((all.len(), &all[0]["mailbox"]), (4, &json!(false)), "{all:?}");
    loop {
        let page = site.get("boss", &format!("/v1/admin/dead-letters?limit=1{after}")).is(200);
        seen.extend(page["items"].as_array().unwrap().clone());
        match page["next"].as_str() {
            Some(next) => after = format!("&after={next}"),
            None => break,
        }
    }
    assert_eq!(seen, all);
    let boxes = items(&site, "/v1/admin/mailboxes");
    let worker = boxes.iter().find(|mailbox| mailbox["mailbox"] == "worker").unwrap();
    assert_eq!((&worker["dead"], &worker["waiting"]), (&json!(3), &json!(0)), "{worker}");
    assert_eq!(boxes.len(), 4, "empty ones are listed, too");
    // One act by the same filter, item by item.
    let dropped = act(&site, &json!({ "act": "discard", "letters": { "text": "no 3" } }));
    assert_eq!(dropped, json!([{ "of": three[0]["letter"] }]));
    let redriven = act(&site, &json!({ "act": "redrive", "letters": { "listener": "worker", "fault": "failed" } }));
    assert_eq!((redriven.as_array().unwrap().len(), &redriven[0]["error"]), (2, &Value::Null), "{redriven}");
    assert_eq!(site.lease(r#"{"max":10}"#).len(), 2);
    let boxes = items(&site, "/v1/admin/mailboxes");
    let worker = boxes.iter().find(|mailbox| mailbox["mailbox"] == "worker").unwrap();
    assert_eq!((&worker["leased"], worker["oldest"].is_string()), (&json!(2), true), "{worker}");
    // What was done is known after a kill, newest first, with the operator and the effect.
    let site = site.killed();
    let acts = items(&site, "/v1/admin/acts");
    let told: Vec<_> = acts.iter().map(|act| (text(&act["by"]), text(&act["act"]), text(&act["of"]))).collect();
    let of = |at: usize| text(&redriven[at]["of"]);
    let by = |act: &str, of: String| ("boss".to_owned(), act.to_owned(), of);
    assert_eq!(told, [by("redrive", of(1)), by("redrive", of(0)), by("discard", text(&three[0]["letter"]))]);
}

#[test]
fn an_act_that_is_refused_is_recorded_with_the_reason() {
    let site = Site::new();
    let outcome = act(&site, &json!({ "act": "cancel", "conversation": "67e55044-10b1-426f-9247-bb680e5fe0c8" }));
    site.post("boss", &format!("{}/dead/redrive", crate::site::WORKER), None, "{}").is(200);
    let acts = items(&site, "/v1/admin/acts");
    assert_eq!(acts.len(), 1, "nothing was redriven: {acts:?}");
    assert_eq!((&acts[0]["by"], &acts[0]["error"]), (&json!("boss"), &outcome[0]["error"]));
}
