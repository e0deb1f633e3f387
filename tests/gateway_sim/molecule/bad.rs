//! Bad input: each is refused with its mistake, and has no effect.

use serde_json::{Value, json};

use super::office::{SCOUT, UUID, message, office, rows};
use crate::kit::{Site, Who};

/// A request that is refused: method, path, headers, body, status, code.
type Bad<'a> = (&'a str, String, Vec<(&'a str, &'a str)>, String, u16, &'a str);

fn bad_queries<'a>() -> Vec<Bad<'a>> {
    let refused = [
        "limit=0",
        "limit=-1",
        "limit=ten",
        "limit=",
        "since_secs=1.5",
        "peer_id=scout",
        "peer_id=0f9a3c5211114222833344445555666",
        "before_ts=yesterday",
        "before_ts=2026-13-01T00:00:00Z",
        "limit=1&limit=2",
        "limit=%ff",
    ];
    let bad = |query: &str| format!("/workspaces/scout/activity?{query}");
    refused.iter().map(|query| ("GET", bad(query), vec![], String::new(), 400, "bad_request")).collect()
}

fn bad_messages<'a>() -> Vec<Bad<'a>> {
    let mut other = message("x", "m");
    let with = |at: &str, value: Value, message: &mut Value| {
        *message.pointer_mut(at).unwrap() = value;
        message.to_string()
    };
    let part = "/params/message/parts";
    let bodies = [
        with("/jsonrpc", json!("1.0"), &mut message("x", "m")),
        with("/method", json!("tasks/get"), &mut message("x", "m")),
        with("/method", Value::Null, &mut message("x", "m")),
        with("/params", json!([]), &mut message("x", "m")),
        with(part, json!([]), &mut message("x", "m")),
        with(part, json!([{ "kind": "file", "file": { "bytes": "AA==" } }]), &mut message("x", "m")),
        with(part, json!([{ "kind": "text", "text": 7 }]), &mut message("x", "m")),
        with(part, json!([{ "kind": "text", "text": " \n" }]), &mut message("x", "m")),
        with("/params/message/messageId", json!("m".repeat(256)), &mut other),
        "[]".to_owned(),
        "null".to_owned(),
        "{".to_owned(),
        String::new(),
    ];
    let path = format!("/workspaces/{UUID}/a2a");
    bodies.into_iter().map(|body| ("POST", path.clone(), vec![], body, 400, "bad_request")).collect()
}

fn bad_callers<'a>() -> Vec<Bad<'a>> {
    let body = message("x", "m").to_string();
    let a2a = |to: &str, headers, status, code| {
        ("POST", format!("/workspaces/{to}/a2a"), headers, body.clone(), status, code)
    };
    let post = |path: &str, body: &str, status, code| ("POST", path.to_owned(), vec![], body.to_owned(), status, code);
    vec![
        a2a(UUID, vec![("X-Source-Workspace-Id", UUID)], 403, "forbidden"),
        a2a(UUID, vec![("X-Source-Workspace-Id", SCOUT), ("X-Workspace-ID", "mute")], 403, "forbidden"),
        a2a(UUID, vec![("X-Source-Workspace-Id", "\u{e9}")], 403, "forbidden"),
        a2a("nobody", vec![], 404, "not_found"),
        a2a("..%2f..", vec![], 404, "not_found"),
        post("/workspaces/scout/notify", "{}", 400, "bad_request"),
        post("/workspaces/scout/notify", r#"{"message":"\t"}"#, 400, "bad_request"),
        post("/workspaces/scout/notify", r#"{"message":["x"]}"#, 400, "bad_request"),
        post(&format!("/workspaces/{UUID}/notify"), r#"{"message":"x"}"#, 403, "forbidden"),
        post("/registry/register", r#"{"id":" "}"#, 400, "bad_request"),
        post("/registry/register", r#"{"id":"scout","agent_card":"x"}"#, 400, "bad_request"),
        post("/registry/register", r#"{"id":"scout","url":"https://agent.example/"}"#, 400, "bad_request"),
        post("/registry/register", r#"{"id":"scout","delivery_mode":"push"}"#, 400, "bad_request"),
        post("/registry/register", "scout", 400, "bad_request"),
        post("/registry/heartbeat", "{}", 400, "bad_request"),
        ("GET", "/workspaces/scout/a2a".to_owned(), vec![], String::new(), 405, "method_not_allowed"),
        ("GET", "/workspaces/scout/secrets".to_owned(), vec![], String::new(), 404, "not_found"),
    ]
}

fn refused(who: &Who, (method, path, headers, body, status, code): Bad<'_>) -> Value {
    let answer = who.ask(method, &path, &headers, &body);
    assert_eq!(answer.status, status, "{method} {path} {headers:?} {body}: {answer:?}");
    answer.problem(status, code)
}

fn nothing_came(site: &Site) {
    for workspace in ["scout", UUID] {
        rows(&site.party(workspace), workspace, "", 0);
    }
}

#[test]
fn bad_input_is_refused() {
    let site = office();
    let scout = site.party("scout");
    let all: Vec<_> = [bad_queries(), bad_messages(), bad_callers()].into_iter().flatten().collect();
    assert!(all.len() >= 14);
    all.into_iter().for_each(|bad| drop(refused(&scout, bad)));
    nothing_came(&site);
}

#[test]
fn a_bad_message_is_told_as_json_rpc_tells_it() {
    let site = office();
    let scout = site.party("scout");
    let codes: Vec<_> = bad_messages().into_iter().take(4).map(|bad| refused(&scout, bad)).collect();
    let error = |problem: &Value| (problem["error"]["code"].clone(), problem["id"].clone());
    let expected = [-32600, -32601, -32600, -32602].map(|code| (json!(code), json!("m")));
    assert_eq!(codes.iter().map(error).collect::<Vec<_>>(), expected);
    let broken = scout.post(&format!("/workspaces/{UUID}/a2a"), "{").problem(400, "bad_request");
    assert_eq!(error(&broken), (json!(-32700), Value::Null));
}

#[test]
fn what_cannot_travel_is_refused() {
    let site = office();
    let scout = site.party("scout");
    let path = format!("/workspaces/{UUID}/a2a");
    scout.post(&path, &message("\u{0}", "m").to_string()).problem(422, "payload");
    // Only announced.
    let length = (2 << 20).to_string();
    scout.ask("POST", &path, &[("Content-Length", &length)], "{").problem(413, "too_large");
    nothing_came(&site);
}

#[test]
fn whoever_may_not_speak_does_not() {
    let site = office();
    let (mute, boss) = (site.party("mute"), site.admin());
    let body = message("x", "m").to_string();
    mute.post("/workspaces/scout/a2a", &body).problem(403, "forbidden");
    boss.post("/workspaces/scout/a2a", &body).problem(403, "forbidden");
    site.who("syt_0").post("/workspaces/scout/a2a", &body).problem(401, "unauthorized");
    site.who("syt_0").get("/workspaces/scout/activity").problem(401, "unauthorized");
    nothing_came(&site);
}

#[test]
fn a_key_that_a_body_repeats_is_refused_and_named() {
    let site = office();
    let scout = site.party("scout");
    let rpc = message("x", "m").to_string().replacen('{', r#"{"jsonrpc":"2.0","#, 1);
    for (path, body, key) in [
        ("/workspaces/scout/notify", r#"{"message":"one","message":"two"}"#, "message"),
        ("/workspaces/scout/notify", r#"{"message":"one","more":[{"a":1,"a":2}]}"#, "a"),
        (&*format!("/workspaces/{UUID}/a2a"), &*rpc, "jsonrpc"),
    ] {
        let problem = scout.post(path, body).problem(400, "bad_request");
        assert!(problem["detail"].as_str().unwrap().contains(&format!("the key \"{key}\" is repeated")), "{problem}");
    }
    nothing_came(&site);
}
