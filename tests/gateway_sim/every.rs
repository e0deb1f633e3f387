//! Every call of the API description, so that a new one can't be forgotten: those that read are dropped after any
//! number of polls here, and for each of the others the test that drops it is named.

use std::collections::{BTreeMap, BTreeSet};

use axum::http::Method;
use serde_json::{Value, json};

use crate::site::{Site, answer, ask, text};
use crate::table::Row;

/// The calls that are not dropped by `calls_that_read`, each with the test that drops it.
const DROPPED: [(&str, &str); 52] = [
    ("delete /v1/jobs/{job}", "a_job_that_is_registered_and_one_that_is_removed"),
    ("delete /v1/mailboxes/{mailbox}/dead", "a_dead_letter_that_is_deleted"),
    ("delete /v1/sessions/{session}", "the_end_of_a_session_frees_what_it_had"),
    ("get /v1/mailboxes/{mailbox}/messages", "a_cursor_that_passes_a_message"),
    ("get /v1/mailboxes/{mailbox}/stream", "a_stream"),
    ("get /workspaces/{id}/activity", "a_cursor_that_skips_a_row"),
    ("get /v1/admin/conversations/{id}/draft", "a_stream_of_drafts_that_is_dropped_leaves_nothing"),
    ("get /v1/messages/{id}/draft", "a_stream_of_drafts_that_is_dropped_leaves_nothing"),
    ("post /registry/heartbeat", "calls_without_a_durable_effect_can_be_dropped"),
    ("post /registry/register", "calls_without_a_durable_effect_can_be_dropped"),
    ("post /v1/admin/acts", "an_act_of_an_operator"),
    ("post /v1/admin/ask", "a_question_of_an_operator_who_hangs_up_is_given_up"),
    ("post /v1/jobs/{job}/tasks", "a_task_that_is_submitted"),
    ("post /v1/listeners", "calls_that_show_nothing_can_be_dropped"),
    ("post /v1/listeners/{name}/heartbeat", "calls_that_show_nothing_can_be_dropped"),
    ("post /v1/listeners/{name}/pause", "a_pause_and_its_end"),
    ("post /v1/listeners/{name}/resume", "a_pause_and_its_end"),
    ("post /v1/mailboxes/{mailbox}/dead/redrive", "a_dead_letter_that_is_driven_again"),
    ("post /v1/mailboxes/{mailbox}/lease", "a_lease_that_nobody_hears_of_ends"),
    ("post /v1/mailboxes/{mailbox}/messages/{id}/ack", "an_end_without_a_reply_happens_once"),
    ("post /v1/mailboxes/{mailbox}/messages/{id}/extend", "a_longer_lease"),
    ("post /v1/mailboxes/{mailbox}/messages/{id}/hold", "a_hold_that_nobody_hears_of_can_be_answered"),
    ("post /v1/mailboxes/{mailbox}/messages/{id}/nack", "a_message_given_back"),
    ("post /v1/mailboxes/{mailbox}/messages/{id}/term", "an_end_without_a_reply_happens_once"),
    ("post /v1/messages", "a_message_whose_sender_hangs_up_is_sent_once"),
    ("post /v1/messages/{id}/cancel", "a_message_that_is_cancelled"),
    ("post /v1/messages/{id}/draft", "a_stream_of_drafts_that_is_dropped_leaves_nothing"),
    ("post /v1/messages/{id}/fail", "a_failure"),
    ("post /v1/messages/{id}/reply", "a_reply_whose_listener_hangs_up_reaches_its_caller_once"),
    ("post /v1/questions/{id}/answer", "an_answer_whose_caller_hangs_up_counts_as_a_whole_or_not_at_all"),
    ("post /v1/questions/{id}/claim", "an_act_whose_caller_hangs_up_happens_as_a_whole_or_not_at_all"),
    ("post /v1/questions/{id}/decline", "an_act_whose_caller_hangs_up_happens_as_a_whole_or_not_at_all"),
    ("post /v1/questions/{id}/preview", "an_act_whose_caller_hangs_up_happens_as_a_whole_or_not_at_all"),
    ("post /v1/questions/{id}/release", "an_act_whose_caller_hangs_up_happens_as_a_whole_or_not_at_all"),
    ("post /v1/sessions/{session}/call", "a_call_of_a_session_leaves_each_note_with_the_session_or_with_nobody"),
    ("post /v1/sessions/{session}/confirm", "a_confirmation"),
    ("post /v1/sessions/{session}/heartbeat", "calls_that_show_nothing_can_be_dropped"),
    ("post /v1/tasks/{id}/accept", "what_is_done_to_a_task"),
    ("post /v1/tasks/{id}/artifact", "what_is_done_to_a_task"),
    ("post /v1/tasks/{id}/cancel", "what_is_done_to_a_task"),
    ("post /v1/tasks/{id}/complete", "what_is_done_to_a_task"),
    ("post /v1/tasks/{id}/fail", "what_is_done_to_a_task"),
    ("post /v1/tasks/{id}/input", "what_is_done_to_a_task"),
    ("post /v1/tasks/{id}/input-required", "what_is_done_to_a_task"),
    ("post /v1/tasks/{id}/progress", "what_is_done_to_a_task"),
    ("post /v1/tasks/{id}/reject", "what_is_done_to_a_task"),
    ("post /workspaces/{id}/a2a", "a_text_that_opens_a_conversation"),
    ("post /workspaces/{id}/activity", "calls_without_a_durable_effect_can_be_dropped"),
    ("post /workspaces/{id}/delegate", "a_task_for_a_peer"),
    ("post /workspaces/{id}/notify", "an_answer_to_a_person_that_names_its_row"),
    ("post /workspaces/{id}/plugins", "calls_without_a_durable_effect_can_be_dropped"),
    ("put /v1/jobs/{job}", "a_job_that_is_registered_and_one_that_is_removed"),
];

/// The calls of the gateway and of the façade: the method, a space and the path.
fn described(site: &Site) -> BTreeSet<String> {
    let description = site.get("ada", "/openapi.json").is(200);
    let paths = description["paths"].as_object().unwrap();
    let calls = paths
        .iter()
        .flat_map(|(path, methods)| methods.as_object().unwrap().keys().map(move |method| format!("{method} {path}")));
    calls.collect()
}

#[test]
fn calls_that_read() {
    let site = Site::new();
    site.post("ada", "/v1/sessions/s/call", None, &ask(1)).is(202);
    let sent = site.ask(2);
    let leased = site.lease("{}");
    site.post("worker", &format!("/v1/messages/{}/reply", text(&leased[0]["id"])), None, &answer("one")).is(202);
    let body = json!({ "description": "look" }).to_string();
    let task = text(&site.post("ada", "/v1/jobs/reviews/tasks", None, &body).is(201)["id"]);
    let named: BTreeSet<String> = DROPPED.iter().map(|(call, _)| (*call).to_owned()).collect();
    let reads: Vec<_> = described(&site).into_iter().filter(|call| !named.contains(call)).collect();
    assert!(reads.len() > 15, "{reads:?}");
    for call in reads {
        let path = call.strip_prefix("get ").unwrap_or_else(|| panic!("no test that drops it is named: {call}"));
        let (who, id) = match path {
            _ if path.starts_with("/v1/admin/") || path.starts_with("/v1/questions") => ("boss", sent.as_str()),
            _ if path.starts_with("/v1/messages/") => ("ada", sent.as_str()),
            _ if path.starts_with("/v1/mailboxes/") || path.ends_with("/inbox.md") => ("worker", ""),
            _ if path.starts_with("/v1/") => ("ada", task.as_str()),
            _ => ("scout", "scout"),
        };
        let parameters =
            [("{id}", id), ("{job}", "reviews"), ("{mailbox}", "worker"), ("{session}", "s"), ("{name}", "x")];
        let path = parameters.iter().fold(path.to_owned(), |path, (name, value)| path.replace(name, value));
        // A façade has no plugins to download, and this site asks no people and has no identity.
        let is_absent =
            ["/download", "/jwks.json"].iter().any(|end| path.ends_with(end)) || path.starts_with("/v1/questions/");
        let statuses: &[u16] = if is_absent { &[404] } else { &[200] };
        Row::post(who, path, Value::Null, statuses).of(Method::GET).shows_nothing(&site);
    }
}

#[test]
fn each_other_call_is_dropped_by_the_test_that_is_named() {
    let sources = [
        include_str!("cut.rs"),
        include_str!("table.rs"),
        include_str!("facade.rs"),
        include_str!("readers.rs"),
        include_str!("people.rs"),
        include_str!("drafts.rs"),
    ];
    let described = described(&Site::new());
    for (call, test) in DROPPED {
        assert!(described.contains(call), "no such call: {call}");
        let declared = format!("#[test]\nfn {test}() {{");
        assert!(sources.iter().any(|source| source.contains(&declared)), "{call}: there is no test {test}");
    }
}

/// `UPDATE_GOLDEN=1 cargo test --test gateway_sim` writes the file anew.
#[test]
fn the_description_is_the_one_that_was_read_over() {
    let description = Site::new().get("ada", "/openapi.json").is(200);
    let mut lines = Vec::new();
    let mut ids = BTreeSet::new();
    for (path, methods) in description["paths"].as_object().unwrap() {
        for (method, operation) in methods.as_object().unwrap() {
            let mut operation = operation.clone();
            let id = operation["operationId"].to_string();
            assert!(ids.insert(id.clone()), "{id} names two calls");
            // A refusal is a problem, whatever its status.
            for (status, response) in operation["responses"].as_object_mut().unwrap() {
                if !status.starts_with('2') {
                    *response = response["description"].take();
                }
            }
            lines.push(format!("{path} {method} {}\n", sorted(&operation)));
        }
    }
    let schemas = description["components"]["schemas"].as_object().unwrap();
    lines.extend(schemas.iter().map(|(name, schema)| format!("{name} {}\n", sorted(schema))));
    lines.sort_unstable();
    for reference in description.to_string().split("\"#/components/schemas/").skip(1) {
        let name = reference.split('"').next().unwrap();
        assert!(schemas.contains_key(name), "there is no schema {name}");
    }
    let file = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/openapi.txt");
    let shown = lines.concat();
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(&file, &shown).unwrap();
    }
    assert!(std::fs::read_to_string(file).unwrap_or_default() == shown, "UPDATE_GOLDEN=1 writes it:\n{shown}");
}

/// The text of a value, its members in order of name: it depends on the other crates of a build whether maps have an order.
fn sorted(value: &Value) -> String {
    match value {
        Value::Object(members) => {
            let members: BTreeMap<_, _> = members.iter().map(|(name, value)| (name, sorted(value))).collect();
            let members: Vec<_> = members.iter().map(|(name, value)| format!("{}:{value}", json!(name))).collect();
            format!("{{{}}}", members.join(","))
        }
        Value::Array(items) => format!("[{}]", items.iter().map(sorted).collect::<Vec<_>>().join(",")),
        other => other.to_string(),
    }
}
