//! Rows: their shapes, their order, and the parameters of requests for them.

use std::time::Duration;

use serde_json::{Value, json};

use super::office::{SCOUT, UUID, a2a, answer, notify, office, rows, said, texts};
use crate::kit::{Site, Who, text};

/// Ada sends some numbers, one after the other, each but the last one answered before the next.
fn counted(site: &Site, scout: &Who, count: usize) -> (Who, Vec<Value>) {
    let ada = site.party("ada");
    for number in 1..=count {
        ada.post("/v1/messages", &said("scout", &number.to_string())).is(202);
        let row = rows(scout, "scout", "", number).pop().unwrap();
        if number < count {
            answer(scout, &row, "heard").is(200);
            site.advance(Duration::from_secs(1));
        }
    }
    (ada, rows(scout, "scout", "", count))
}

#[test]
fn a_row_has_both_shapes() {
    let site = office();
    let (scout, other) = (site.party("scout"), site.party(UUID));
    let (_, from_ada) = counted(&site, &scout, 1);
    let row = &from_ada[0];
    assert_eq!((text(&row["type"]), text(&row["activity_type"])), ("a2a_receive", "a2a_receive"));
    assert_eq!((&row["source_id"], text(&row["workspace_id"])), (&Value::Null, SCOUT));
    assert_eq!((text(&row["data"]["source"]), text(&row["data"]["source_id"])), ("canvas_user", "ada"));
    assert_eq!(texts(&from_ada), ["1"]);
    let part = json!([{ "kind": "text", "text": "1" }]);
    assert_eq!(row["request_body"]["params"]["message"]["parts"], part);
    assert_eq!((text(&row["request_body"]["method"]), text(&row["method"])), ("message/send", "message/send"));
    assert!(text(&row["created_at"]).ends_with('Z'));

    a2a(&other, "scout", "hi", "m1").is(200);
    let row = &rows(&scout, SCOUT, &format!("peer_id={UUID}"), 1)[0];
    assert_eq!((text(&row["data"]["peer_id"]), text(&row["data"]["source"])), (UUID, "peer_agent"));
    assert_eq!(
        (&row["source_id"], &row["data"]["source_id"], &row["ts"]),
        (&row["id"], &row["id"], &row["created_at"])
    );
    let card = text(&row["data"]["agent_card_url"]);
    assert_eq!(text(&scout.get(card).is(200).json()["id"]), UUID);
    // A row's own id stands for its sender.
    let by_row = rows(&scout, SCOUT, &format!("peer_id={}", text(&row["id"])), 1);
    assert_eq!(&by_row[0], row);
    assert_eq!((text(&row["data"]["peer_name"]), text(&row["data"]["text"])), (UUID, "hi"));
}

#[test]
fn rows_come_strictly_behind_the_cursor_oldest_first() {
    let site = office();
    let scout = site.party("scout");
    let (_, all) = counted(&site, &scout, 4);
    assert_eq!(texts(&all), ["1", "2", "3", "4"]);
    let behind = |row: &Value, more: &str| rows_of(&scout, &format!("since_id={}{more}", text(&row["id"])));
    assert_eq!(texts(&behind(&all[1], "")), ["3", "4"]);
    assert_eq!(texts(&behind(&all[1], "&limit=1")), ["3"]);
    assert_eq!(texts(&behind(&all[3], "")), [""; 0]);
    assert_eq!(texts(&rows_of(&scout, "limit=2&type=a2a_receive&source=canvas")), ["1", "2"]);
    assert_eq!(texts(&rows_of(&scout, "limit=100000")).len(), 4);
}

fn rows_of(who: &Who, query: &str) -> Vec<Value> {
    who.get(&format!("/workspaces/scout/activity?{query}")).is(200).json().as_array().unwrap().clone()
}

#[test]
fn rows_of_a_time_and_of_a_type() {
    let site = office();
    let scout = site.party("scout");
    let (_, all) = counted(&site, &scout, 2);
    let second = text(&all[1]["created_at"]);
    assert_eq!(texts(&rows_of(&scout, &format!("before_ts={second}"))), ["1"]);
    assert_eq!(rows_of(&scout, "before_ts=2020-01-01T00:00:00Z"), Vec::<Value>::new());
    assert_eq!(rows_of(&scout, "since_secs=3600").len(), 2);
    assert_eq!(rows_of(&scout, "since_secs=99999999999999999999999").len(), 2);
    assert_eq!(rows_of(&scout, "type=agent_log"), Vec::<Value>::new());
    assert_eq!(rows_of(&scout, &format!("peer_id={UUID}")), Vec::<Value>::new());
}

#[test]
fn what_a_workspace_says_is_no_row_of_its_own() {
    let site = office();
    let scout = site.party("scout");
    let (_, _) = counted(&site, &scout, 1);
    notify(&scout, "scout", "my own").is(200);
    a2a(&scout, UUID, "my own", "m1").is(200);
    rows(&site.party(UUID), UUID, "", 1);
    assert_eq!(texts(&rows_of(&scout, "")), ["1"]);
}

#[test]
fn a_cursor_of_nobody_and_one_of_somebody_else_are_told_alike() {
    let site = office();
    let (scout, other) = (site.party("scout"), site.party(UUID));
    let (_, all) = counted(&site, &scout, 1);
    let lost = |id: &str| {
        let answer = other.get(&format!("/workspaces/{UUID}/activity?since_id={id}"));
        answer.problem(410, "cursor_lost")
    };
    let theirs = lost(text(&all[0]["id"]));
    for unknown in ["00000000-0000-4000-8000-000000000000", "7", "", "%00", "'%20OR%201=1--"] {
        assert_eq!(lost(unknown), theirs, "{unknown}");
    }
    other.get("/workspaces/scout/activity").problem(403, "forbidden");
    site.party("ada").get("/workspaces/scout/activity").problem(403, "forbidden");
    let boss = site.admin();
    assert_eq!(texts(&rows(&boss, "scout", "", 1)), ["1"]);
}
