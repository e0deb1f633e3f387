//! Texts through the pump, both ways.

use super::office::{SCOUT, UUID, a2a, answer, message, notify, office, reply, rows, said, texts};
use crate::kit::{ask, text};

const QUEUED: &str = r#"{"status":"queued","delivery_mode":"poll","method":"message/send"}"#;

#[test]
fn an_answer_may_name_its_row() {
    let site = office();
    let (scout, ada) = (site.party("scout"), site.party("ada"));
    let sent = ada.post("/v1/messages", &said("scout", "hi")).is(202);
    let row = rows(&scout, "scout", "", 1).remove(0);
    let body = serde_json::json!({ "message": "named", "in_reply_to": row["id"] }).to_string();
    scout.post("/workspaces/scout/notify", &body).is(200);
    assert!(reply(&ada, &sent).contains("<text>named</text>"));
    let body = r#"{"message":"x","in_reply_to":"00000000-0000-4000-8000-000000000000"}"#;
    scout.post("/workspaces/scout/notify", body).problem(404, "not_found");
    // The receiver and the row must agree.
    let mut named = message("x", "m");
    named["params"]["message"]["metadata"] = serde_json::json!({ "in_reply_to": row["id"] });
    scout.post(&format!("/workspaces/{UUID}/a2a"), &named.to_string()).problem(404, "not_found");
}

#[test]
fn an_answer_that_names_another_row_in_any_field_is_refused() {
    let site = office();
    let (scout, ada, bob) = (site.party("scout"), site.party("ada"), site.party("bob"));
    let sent = [ada.post("/v1/messages", &said("scout", "one")), bob.post("/v1/messages", &said("scout", "two"))];
    let rows = rows(&scout, "scout", "", 2);
    let [first, second] = [0, 1].map(|at| text(&rows[at]["id"]).to_owned());
    for field in ["taskId", "contextId", "messageId", "anything"] {
        let mut named = message("hi", "m");
        named["params"]["message"][field] = serde_json::json!(second);
        scout.post(&format!("/workspaces/{first}/a2a"), &named.to_string()).problem(409, "ambiguous");
    }
    let body = serde_json::json!({ "message": "hi", "in_reply_to": first, "task_id": second }).to_string();
    scout.post("/workspaces/scout/notify", &body).problem(409, "ambiguous");
    // Its own id, ids of the agent and a text that is an id name no other row.
    let mut own = message(&second, "m");
    own["params"]["message"]["taskId"] = serde_json::json!(first);
    own["params"]["message"]["contextId"] = serde_json::json!("67e55044-10b1-426f-9247-bb680e5fe0c8");
    scout.post(&format!("/workspaces/{first}/a2a"), &own.to_string()).is(200);
    let asker = if texts(&rows)[0] == "one" { (&ada, &sent[0]) } else { (&bob, &sent[1]) };
    assert!(reply(asker.0, asker.1).contains(&format!("<text>{second}</text>")));
}

#[test]
fn two_workspaces_talk_to_each_other() {
    let site = office();
    let (scout, other) = (site.party("scout"), site.party(UUID));
    assert_eq!(a2a(&scout, UUID, "how are you?", "m1").is(200).body, QUEUED);
    let asked = rows(&other, UUID, "", 1);
    assert_eq!((text(&asked[0]["data"]["peer_id"]), texts(&asked)), (SCOUT, vec!["how are you?"]));
    let headers = [("X-Source-Workspace-Id", UUID), ("X-Workspace-ID", UUID)];
    let body = message("fine, <thanks> & you?\n", "m2").to_string();
    assert_eq!(
        other.ask("POST", &format!("/workspaces/{}/a2a", text(&asked[0]["source_id"])), &headers, &body).is(200).body,
        QUEUED
    );
    let answered = rows(&scout, "scout", "", 1);
    assert_eq!(texts(&answered), ["fine, <thanks> & you?\n"]);
    assert_eq!(text(&answered[0]["data"]["peer_id"]), UUID);
    assert!(answered[0]["data"]["in_reply_to"].is_string());
    // The row was an answer: it takes none. A text to the peer opens a conversation.
    answer(&scout, &answered[0], "thanks").problem(409, "settled");
    a2a(&scout, UUID, "me too", "m3").is(200);
    assert_eq!(texts(&rows(&other, UUID, "", 2)), ["how are you?", "me too"]);
    assert_eq!(texts(&rows(&other, UUID, &format!("since_id={}", text(&asked[0]["id"])), 1)), ["me too"]);
}

#[test]
fn what_comes_twice_is_said_once() {
    let site = office();
    let (scout, other) = (site.party("scout"), site.party(UUID));
    for _ in 0..2 {
        assert_eq!(a2a(&scout, UUID, "once", "m1").is(200).body, QUEUED);
    }
    let asked = rows(&other, UUID, "", 1).remove(0);
    for _ in 0..2 {
        assert_eq!(answer(&other, &asked, "answered once").is(200).body, QUEUED);
    }
    a2a(&scout, UUID, "another", "m1").problem(409, "key_reused");
    // Conversations have no order among each other.
    rows(&scout, "scout", "", 1);
    a2a(&other, SCOUT, "new", "m2").is(200);
    assert_eq!(texts(&rows(&scout, "scout", "", 2)), ["answered once", "new"]);
    assert_eq!(texts(&rows(&other, UUID, "", 1)), ["once"]);
}

#[test]
fn a_listener_within_hears_a_workspace_and_answers_it() {
    let site = office();
    let scout = site.party("scout");
    let result = a2a(&scout, "native", "hello", "m1").is(200).json();
    let answer = rows(&scout, "scout", "", 1);
    let message = &result["result"];
    assert_eq!((text(&result["jsonrpc"]), text(&result["id"]), text(&message["role"])), ("2.0", "m1", "agent"));
    assert_eq!(message["messageId"], answer[0]["id"]);
    assert_eq!(message["parts"], answer[0]["request_body"]["params"]["message"]["parts"]);
    assert_eq!(texts(&answer), ["peer_agent scout scout.voice: hello"]);
    assert_eq!(text(&answer[0]["data"]["peer_name"]), "native");
    let failure = a2a(&scout, text(&answer[0]["data"]["peer_id"]), "fail", "m2").is(200).json();
    assert_eq!((text(&failure["id"]), &failure["error"]["code"]), ("m2", &serde_json::json!(-32603)));
    let failed = rows(&scout, "scout", "type=error", 1);
    assert_eq!((text(&failed[0]["type"]), text(&failed[0]["status"])), ("error", "error"));
    assert_eq!(rows(&scout, "scout", "", 1), answer);
}

#[test]
fn a_listener_within_asks_a_workspace() {
    let site = office();
    let (scout, ada) = (site.party("scout"), site.party("ada"));
    // As for itself: the person that it names counts for nothing.
    let sent = ada.post("/v1/messages", &ask(7)).is(202);
    let row = rows(&scout, "scout", "", 1).remove(0);
    assert_eq!((text(&row["data"]["source"]), text(&row["data"]["peer_name"])), ("peer_agent", "asker"));
    let asker = text(&row["data"]["peer_id"]);
    // It accepts no text unasked.
    scout.get(&format!("/registry/discover/{asker}")).problem(404, "not_found");
    assert_eq!(answer(&scout, &row, "seven").is(200).body, QUEUED);
    assert!(reply(&ada, &sent).contains(">seven</answer>"));
    a2a(&scout, asker, "and more", "m2").problem(404, "not_found");
    // For a person.
    let sent = ada.post("/v1/messages", &ask(1)).is(202);
    let row = rows(&scout, "scout", &format!("since_id={}", text(&row["id"])), 1).remove(0);
    assert_eq!((text(&row["data"]["peer_role"]), text(&row["data"]["peer_name"])), ("person", "eve"));
    notify(&scout, "scout", "one").problem(409, "nobody_waits");
    answer(&scout, &row, "one").is(200);
    assert!(reply(&ada, &sent).contains(">one</answer>"));
}

#[test]
fn a_client_says_something_as_a_person() {
    let site = office();
    let (scout, ada) = (site.party("scout"), site.party("ada"));
    assert_eq!(a2a(&ada, SCOUT, "hi", "m1").is(200).body, QUEUED);
    let row = rows(&scout, "scout", "", 1).remove(0);
    assert_eq!((text(&row["data"]["source"]), text(&row["data"]["source_id"])), ("canvas_user", "ada"));
}

#[test]
fn what_was_queued_outlives_a_kill() {
    let mut site = office();
    let (scout, other) = (site.party("scout"), site.party(UUID));
    for number in 0..20 {
        assert_eq!(a2a(&scout, UUID, &number.to_string(), &number.to_string()).is(200).body, QUEUED);
    }
    site.kill();
    site.start();
    let kept = rows(&other, UUID, "", 20);
    let mut numbers: Vec<u32> = texts(&kept).iter().map(|text| text.parse().unwrap()).collect();
    numbers.sort_unstable();
    assert_eq!(numbers, (0..20).collect::<Vec<_>>());
}

#[test]
fn a_workspace_delegates_a_task_to_a_peer() {
    let site = office();
    let (scout, other) = (site.party("scout"), site.party(UUID));
    let delegate = |to: &str, task: &str| {
        let body = serde_json::json!({ "task": task, "idempotency_key": "k" }).to_string();
        scout.post(&format!("/workspaces/{to}/delegate"), &body)
    };
    let first = delegate(UUID, "look").is(200).json();
    assert_eq!((text(&first["status"]), text(&first["target_id"])), ("queued", UUID));
    assert_eq!(delegate(UUID, "look").is(200).json(), first);
    delegate(UUID, "something else").problem(409, "key_reused");
    let row = rows(&other, UUID, "", 1).remove(0);
    answer(&other, &row, "seen").is(200);
    assert_eq!(texts(&rows(&scout, "scout", "", 1)), ["seen"]);
    // The same key for another peer is another delegation.
    delegate("native", "look").is(200);
    rows(&scout, "scout", "", 2);
    delegate("nobody", "look").problem(404, "not_found");
    delegate(UUID, " ").problem(400, "bad_request");
    scout.post(&format!("/workspaces/{UUID}/delegate"), "{}").problem(400, "bad_request");
    let claimed = [("X-Workspace-ID", UUID)];
    let body = r#"{"task":"x"}"#;
    scout.ask("POST", &format!("/workspaces/{UUID}/delegate"), &claimed, body).problem(403, "forbidden");
    site.party("ada").post(&format!("/workspaces/{UUID}/delegate"), body).problem(403, "forbidden");
}
