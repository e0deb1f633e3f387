//! Registration, heartbeats and peers.

use serde_json::{Value, json};

use super::office::{SCOUT, UUID, office};
use crate::kit::{Who, text};

fn register(who: &Who, body: &Value) -> crate::kit::Answer {
    who.post("/registry/register", &body.to_string())
}

#[test]
fn a_workspace_registers_by_its_name_or_its_id_and_gets_no_token() {
    let site = office();
    let (scout, other) = (site.party("scout"), site.party(UUID));
    for id in ["scout", SCOUT] {
        let body = json!({ "id": id, "url": "remote://no-inbound", "agent_card": { "name": "s" }, "more": 1 });
        let answer = register(&scout, &body).is(200).json();
        assert_eq!(answer, json!({ "status": "registered", "id": SCOUT, "delivery_mode": "poll" }));
    }
    let answer = register(&other, &json!({ "id": UUID, "delivery_mode": "poll" })).is(200).json();
    assert_eq!(text(&answer["id"]), UUID);
    register(&other, &json!({ "id": "scout" })).problem(403, "forbidden");
    register(&site.party("ada"), &json!({ "id": "ada" })).problem(403, "forbidden");
    register(&site.who("syt_0"), &json!({ "id": "scout" })).problem(401, "unauthorized");
}

#[test]
fn the_sdk_registers_without_a_token_and_learns_nothing() {
    let site = office();
    for id in ["scout", "nobody"] {
        let body = format!("{{\"id\":\"{id}\",\"url\":\"remote://no-inbound\",\"agent_card\":{{}}}}");
        let answer = site.stranger().post("/registry/register", &body).is(200).json();
        assert_eq!(answer, json!({ "status": "unverified" }));
    }
}

#[test]
fn a_workspace_hears_in_its_heartbeat_and_its_state_that_it_is_to_rest() {
    let site = office();
    let (scout, boss) = (site.party("scout"), site.admin());
    let beat = |who: &Who, id: &str| {
        let body = json!({ "workspace_id": id, "current_task": "", "active_tasks": 0, "error_rate": 0.0 });
        who.post("/registry/heartbeat", &body.to_string())
    };
    assert_eq!(beat(&scout, SCOUT).is(200).json(), json!({ "status": "ok" }));
    let state = scout.get("/workspaces/scout/state").is(200).json();
    assert_eq!(state, json!({ "workspace_id": SCOUT, "status": "online", "paused": false, "deleted": false }));
    boss.post("/v1/listeners/scout/pause", "").is(200);
    assert_eq!(beat(&scout, "scout").is(200).json(), json!({ "status": "paused" }));
    let state = scout.get(&format!("/workspaces/{SCOUT}/state")).is(200).json();
    assert_eq!((text(&state["status"]), &state["paused"]), ("paused", &json!(true)));
    assert_eq!(state["deleted"], json!(false));
    beat(&scout, UUID).problem(403, "forbidden");
    scout.get(&format!("/workspaces/{UUID}/state")).problem(403, "forbidden");
    boss.get("/workspaces/native/state").problem(404, "not_found");
}

#[test]
fn a_workspace_finds_whoever_takes_what_is_said() {
    let site = office();
    let scout = site.party("scout");
    let peers = scout.get(&format!("/registry/{SCOUT}/peers")).is(200).json();
    let names: Vec<_> = peers.as_array().unwrap().iter().map(|peer| text(&peer["name"]).to_owned()).collect();
    assert_eq!(names, [UUID, "mute", "native"]);
    for peer in peers.as_array().unwrap() {
        for id in [text(&peer["id"]), text(&peer["name"])] {
            assert_eq!(&scout.get(&format!("/registry/discover/{id}")).is(200).json(), peer);
        }
        assert_eq!(text(&peer["url"]), "remote://no-inbound");
    }
    scout.get("/registry/discover/asker").problem(404, "not_found");
    scout.get(&format!("/registry/{UUID}/peers")).problem(403, "forbidden");
    site.party("ada").get("/registry/discover/scout").problem(403, "forbidden");
    site.who("syt_0").get("/registry/discover/scout").problem(401, "unauthorized");
}

#[test]
fn its_calls_stand_in_the_description_of_the_gateway() {
    let document = office().who("").get("/openapi.json").is(200).json();
    assert_eq!(document["servers"][0]["url"], "/");
    for path in ["/registry/register", "/workspaces/{id}/a2a", "/v1/messages", "/livez"] {
        assert!(document["paths"][path].is_object(), "{path}");
    }
}

#[test]
fn a_removed_agent_hears_it_from_its_state() {
    let mut site = office();
    let scout = site.party("scout");
    scout.get("/workspaces/scout/state").is(200);
    // A new token replaces the old one.
    let fresh = site.party("scout");
    let gone = |who: &Who, path: &str| who.get(path).problem(404, "not_found")["deleted"].clone();
    assert_eq!(gone(&scout, "/workspaces/scout/state"), json!(true));
    scout.get("/workspaces/scout/activity").problem(401, "unauthorized");
    scout.post("/registry/heartbeat", r#"{"workspace_id":"scout"}"#).problem(401, "unauthorized");
    fresh.get("/workspaces/scout/state").is(200);
    fresh.get(&format!("/workspaces/{UUID}/state")).problem(403, "forbidden");
    // The operator takes a listener out of the organism.
    let mute = site.party("mute");
    mute.get("/workspaces/mute/state").is(200);
    let file = site.folder.join("organism.yaml");
    let declared = std::fs::read_to_string(&file).unwrap();
    let (before, rest) = declared.split_once("  - name: mute\n").unwrap();
    let (_, after) = rest.split_once("  - name: native\n").unwrap();
    std::fs::write(&file, format!("{before}  - name: native\n{after}")).unwrap();
    site.kill();
    site.start();
    assert_eq!(gone(&mute, "/workspaces/mute/state"), json!(true));
}

#[test]
fn online_is_said_of_agents_that_were_heard_of() {
    let site = office();
    let (scout, other) = (site.party("scout"), site.party(UUID));
    let status =
        |name: &str| text(&scout.get(&format!("/registry/discover/{name}")).is(200).json()["status"]).to_owned();
    assert_eq!([status(UUID), status("mute"), status("native")], ["unknown", "unknown", "online"]);
    other.get(&format!("/workspaces/{UUID}/activity")).is(200);
    assert_eq!([status(UUID), status("mute")], ["online", "unknown"]);
    // An admin that looks is not the agent.
    let boss = site.admin();
    assert_eq!(text(&boss.get("/workspaces/mute/state").is(200).json()["status"]), "unknown");
    boss.post(&format!("/v1/listeners/{UUID}/pause"), "").is(200);
    assert_eq!(status(UUID), "paused");
}

#[test]
fn a_workspace_has_no_secrets_here() {
    let site = office();
    let scout = site.party("scout");
    assert_eq!(scout.get("/workspaces/scout/secrets/values").is(200).json(), json!({}));
    scout.get(&format!("/workspaces/{UUID}/secrets/values")).problem(403, "forbidden");
}

#[test]
fn what_is_not_kept_here_is_empty_or_not_found() {
    let site = office();
    let scout = site.party("scout");
    for list in ["plugins", "files"] {
        assert_eq!(scout.get(&format!("/workspaces/scout/{list}")).is(200).json(), json!([]));
        scout.get(&format!("/workspaces/{UUID}/{list}")).problem(403, "forbidden");
        site.who("syt_0").get(&format!("/workspaces/scout/{list}")).problem(401, "unauthorized");
    }
    scout.get("/workspaces/scout/plugins/search/download?source=x").problem(404, "not_found");
    scout.post("/workspaces/scout/plugins", r#"{"source":"local://search"}"#).problem(404, "not_found");
    scout.post("/workspaces/scout/activity", r#"{"activity_type":"agent_log"}"#).problem(404, "not_found");
    scout.post(&format!("/workspaces/{UUID}/activity"), "{}").problem(403, "forbidden");
}
