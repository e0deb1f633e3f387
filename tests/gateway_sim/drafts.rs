//! Drafts over HTTP: written by an agent, read by the client of the conversation and by admins, to their end.

use serde_json::{Value, json};
use systole::gateway::PrincipalKind;

use crate::cut::everywhere;
use crate::kit::{Site, Stream, Who, reply, text};
use crate::site;

/// A running organism in which ada has asked the worker, with her message and that in the worker's mailbox.
fn asked() -> (Site, String, String) {
    let site = Site::new();
    let sent = site.party("ada").send(1).is(202).json();
    let mail = waiting(&site.party("worker"), 1);
    (site, text(&sent["id"]).to_owned(), mail[0].clone())
}

/// The messages that wait in the worker's mailbox, once there are so many.
fn waiting(worker: &Who, many: usize) -> Vec<String> {
    let waiting = |page: &Value| {
        let items = page["items"].as_array().into_iter().flatten().filter(|item| item["state"] == "waiting");
        items.map(|item| text(&item["id"]).to_owned()).collect::<Vec<_>>()
    };
    waiting(&worker.until("/v1/mailboxes/worker/messages?limit=500", |page| waiting(page).len() == many))
}

fn write(worker: &Who, mail: &str, text: &str, anew: bool) {
    let body = json!({ "text": text, "anew": anew }).to_string();
    worker.post(&format!("/v1/messages/{mail}/draft"), &body).is(204);
}

/// The kind, the number of the draft, and what is said of it.
fn next(stream: &mut Stream) -> (String, u64, String) {
    let (id, kind, data) = stream.next_event();
    assert_eq!(data["what"], Value::from(kind.as_str()));
    if kind != "end" {
        assert_eq!(data["cursor"], Value::from(id));
    }
    let said = match kind.as_str() {
        "text" => format!("{}:{}", data["from"], text(&data["text"])),
        "gone" => text(&data["why"]).to_owned(),
        _ => String::new(),
    };
    (kind, data["draft"].as_u64().unwrap_or_default(), said)
}

#[track_caller]
fn comes(stream: &mut Stream, expected: (&str, u64, &str)) {
    let (kind, draft, said) = next(stream);
    assert_eq!((kind.as_str(), draft, said.as_str()), expected);
}

#[test]
fn what_an_agent_writes_is_read_as_it_grows_and_gone_when_its_reply_is_there() {
    let (site, sent, mail) = asked();
    let (ada, worker) = (site.party("ada"), site.party("worker"));
    let path = format!("/v1/messages/{sent}/draft");
    let mut stream = ada.stream(&path, None);
    write(&worker, &mail, "<answ", false);
    comes(&mut stream, ("text", 1, "0:<answ"));
    write(&worker, &mail, "er>é", false);
    write(&worker, &mail, "", false);
    comes(&mut stream, ("text", 1, "5:er>é"));
    write(&worker, &mail, "again", true);
    comes(&mut stream, ("gone", 1, "retried"));
    comes(&mut stream, ("text", 2, "0:again"));
    let mut late = ada.stream(&path, None);
    comes(&mut late, ("text", 2, "0:again"));
    worker.post(&format!("/v1/messages/{mail}/reply"), &reply("done")).is(202);
    comes(&mut stream, ("gone", 2, "answered"));
    comes(&mut late, ("gone", 2, "answered"));
    ada.until(&format!("/v1/messages/{sent}"), |found| found["state"] == "answered");
    comes(&mut stream, ("end", 0, ""));
    assert!(stream.try_next().is_none() && late.next_event().1 == "end" && late.try_next().is_none());
    let body = json!({ "text": "late" }).to_string();
    worker.post(&format!("/v1/messages/{mail}/draft"), &body).problem(409, "settled");
    comes(&mut ada.stream(&path, None), ("end", 0, ""));
    assert_eq!((site.metric("systole_drafts"), site.metric("systole_draft_bytes")), (0, 0));
}

#[test]
fn only_the_client_of_a_conversation_and_admins_read_its_drafts_and_only_its_agent_writes_them() {
    let (site, sent, mail) = asked();
    let (ada, bob, worker, other, admin) =
        (site.party("ada"), site.party("bob"), site.party("worker"), site.party("other"), site.admin());
    let conversation = text(&ada.get(&format!("/v1/messages/{sent}")).is(200).json()["thread"]).to_owned();
    let of_message = format!("/v1/messages/{sent}/draft");
    let of_conversation = format!("/v1/admin/conversations/{conversation}/draft");
    bob.get(&of_message).problem(404, "not_found");
    worker.get(&of_message).problem(404, "not_found");
    worker.get(&format!("/v1/messages/{mail}/draft")).problem(404, "not_found");
    for who in [&ada, &bob, &worker, &site.who(&site.token_of("zoe", PrincipalKind::Person))] {
        assert!([401, 403].contains(&who.get(&of_conversation).status));
    }
    site.stranger().get(&of_message).problem(401, "unauthorized");
    for who in [&other, &ada] {
        who.post(&format!("/v1/messages/{mail}/draft"), r#"{"text":"x"}"#).problem(404, "not_found");
    }
    for (body, query) in [("{}", ""), (r#"{"text":5}"#, ""), (r#"{"text":"x","more":1}"#, ""), ("", "?anew=true")] {
        worker.post(&format!("/v1/messages/{mail}/draft{query}"), body).problem(400, "bad_request");
    }
    for query in ["?after=x", "?after=-1", "?after=1", "?before=1-1"] {
        ada.get(&format!("{of_message}{query}")).problem(400, "bad_request");
    }
    let large = json!({ "text": "x".repeat(70_000) }).to_string();
    worker.post(&format!("/v1/messages/{mail}/draft"), &large).problem(413, "too_large");
    write(&admin, &mail, "by an admin", false);
    comes(&mut admin.stream(&of_message, None), ("text", 1, "0:by an admin"));
    comes(&mut admin.stream(&of_conversation, None), ("text", 1, "0:by an admin"));
    let mut stream = ada.stream(&of_message, None);
    comes(&mut stream, ("text", 1, "0:by an admin"));
    site.revoke("ada");
    write(&worker, &mail, ", and more", false);
    assert!(stream.try_next().is_none(), "a token that is revoked gets nothing more");
}

#[test]
fn a_reader_goes_on_behind_its_cursor_and_learns_that_drafts_end_with_the_process() {
    let (mut site, sent, mail) = asked();
    let (ada, worker) = (site.party("ada"), site.party("worker"));
    let path = format!("/v1/messages/{sent}/draft");
    let mut stream = ada.stream(&path, None);
    write(&worker, &mail, "one ", false);
    let (cursor, _, _) = stream.next_event();
    drop(stream);
    write(&worker, &mail, "two", false);
    comes(&mut ada.stream(&path, Some(&cursor)), ("text", 1, "4:two"));
    comes(&mut ada.stream(&format!("{path}?after={cursor}"), None), ("text", 1, "4:two"));
    comes(&mut ada.stream(&path, Some("")), ("text", 1, "0:one two"));
    site.kill();
    site.start();
    waiting(&worker, 1);
    let mut stream = ada.stream(&path, Some(&cursor));
    comes(&mut stream, ("lost", 0, ""));
    site.wait("the handler of the message", || {
        let body = json!({ "text": "three" }).to_string();
        (worker.post(&format!("/v1/messages/{mail}/draft"), &body).status == 204).then_some(())
    });
    comes(&mut stream, ("text", 1, "0:three"));
}

#[test]
fn a_draft_ends_with_its_conversation_and_with_the_organism() {
    let (mut site, sent, mail) = asked();
    let (ada, worker, admin) = (site.party("ada"), site.party("worker"), site.admin());
    let path = format!("/v1/messages/{sent}/draft");
    let mut stream = ada.stream(&path, None);
    write(&worker, &mail, "never", false);
    comes(&mut stream, ("text", 1, "0:never"));
    let conversation = text(&ada.get(&format!("/v1/messages/{sent}")).is(200).json()["thread"]).to_owned();
    admin.post("/v1/admin/acts", &json!({ "act": "cancel", "conversation": conversation }).to_string()).is(200);
    comes(&mut stream, ("gone", 1, "ended"));
    comes(&mut stream, ("end", 0, ""));
    let sent = ada.send(2).is(202).json();
    let mail = waiting(&worker, 1)[0].clone();
    write(&worker, &mail, "open", false);
    let mut open = ada.stream(&format!("/v1/messages/{}/draft", text(&sent["id"])), None);
    let (kind, _, said) = next(&mut open);
    assert_eq!((kind.as_str(), said.as_str()), ("text", "0:open"));
    let rest = site.spawn(axum::body::to_bytes(open.into_body(), usize::MAX));
    site.stop();
    site.run(rest).unwrap().unwrap();
}

#[test]
fn readers_that_read_nothing_hold_nobody_up() {
    let site = Site::with("requests: 1000000, connections_per_principal: 512", "7d");
    let (ada, worker) = (site.party("ada"), site.party("worker"));
    let sent: Vec<_> = (0..100).map(|number| text(&ada.send(number).is(202).json()["id"]).to_owned()).collect();
    let mails = waiting(&worker, 100);
    let unread: Vec<_> = sent.iter().map(|id| ada.stream(&format!("/v1/messages/{id}/draft"), None)).collect();
    for _ in 0..5 {
        mails.iter().for_each(|mail| write(&worker, mail, &"word ".repeat(1000), false));
    }
    mails.iter().for_each(|mail| drop(worker.post(&format!("/v1/messages/{mail}/reply"), &reply("done")).is(202)));
    for id in &sent {
        ada.until(&format!("/v1/messages/{id}"), |found| found["state"] == "answered");
    }
    site.wait("the end of the drafts", || (site.metric("systole_drafts") == 0).then_some(()));
    for mut stream in unread {
        let last = std::iter::from_fn(|| stream.try_next()).last().unwrap();
        assert_eq!(last.1, "end");
    }
}

#[test]
fn a_stream_of_drafts_that_is_dropped_leaves_nothing() {
    let site = site::Site::new();
    let sent = site.ask(1);
    let mail = text(&site.lease("{}")[0]["id"]).to_owned();
    let found = site.get("ada", &format!("/v1/messages/{sent}")).is(200);
    let conversation = text(&found["thread"]);
    let body = json!({ "text": "x" }).to_string();
    let path = format!("/v1/messages/{mail}/draft");
    everywhere(|polls| site.cut("worker", &path, None, &body, polls).is_some());
    let of_conversation = format!("/v1/admin/conversations/{conversation}/draft");
    for (who, path) in [("ada", format!("/v1/messages/{sent}/draft")), ("boss", of_conversation)] {
        let read = (0..20).map(|polls| site.cut_stream(who, &path, polls).contains("event: text"));
        assert!(read.collect::<Vec<_>>().contains(&true), "no drop was behind the draft");
    }
    site.post("worker", &format!("/v1/messages/{mail}/reply"), None, &site::answer("done")).is(202);
    site.kit().settle();
    assert_eq!((site.metric("systole_drafts"), site.metric("systole_draft_bytes")), (0, 0));
}
