//! Schedules of an organism with a gateway: the answers of a client, the API, the figures.

use std::time::Duration;

use serde_json::json;

use crate::kit::{Site, organism, reply, text};

const HOUR: Duration = Duration::from_secs(3600);

/// An organism whose client asks each hour, as another party with a schedule.
fn hourly() -> String {
    organism("requests: 1000000", "7d")
        + "schedules:\n- { name: hourly, every: 1h, as: ada, message: '<ask xmlns=\"urn:t\">7</ask>' }\n"
}

#[test]
fn the_answer_to_a_tick_is_one_of_the_clients() {
    let mut site = Site::of(&hourly());
    site.advance(HOUR);
    let looked = site.admin().get("/v1/admin/schedules").is(200).json();
    let tick = &looked["items"][0]["ticks"][0];
    assert_eq!((text(&tick["end"]), text(&tick["outcome"])), ("sent", "open"), "{looked}");
    let leased = site.party("worker").lease("worker", "{}");
    assert_eq!(leased.len(), 1);
    site.party("worker").post(&format!("/v1/messages/{}/reply", text(&leased[0]["id"])), &reply("8")).is(202);
    let path = format!("/v1/messages/{}", text(&tick["message"]));
    site.party("ada").until(&path, |sent| sent["state"] == "answered");
    let looked = site.admin().get("/v1/admin/schedules").is(200).json();
    assert_eq!(text(&looked["items"][0]["ticks"][0]["outcome"]), "answered", "{looked}");
    // A start after a kill sends nothing again.
    site.kill();
    site.start();
    site.advance(Duration::from_secs(60));
    let looked = site.admin().get("/v1/admin/schedules").is(200).json();
    assert_eq!(looked["items"][0]["ticks"].as_array().unwrap().len(), 1, "{looked}");
    assert!(site.party("worker").lease("worker", "{}").is_empty());
}

#[test]
fn an_admin_acts_on_a_schedule_and_sees_its_figures() {
    let site = Site::of(&hourly());
    let act = |act: &str| site.admin().post("/v1/admin/acts", &json!({ "act": act, "schedule": "hourly" }).to_string());
    let opened = act("run-schedule").is(200).json()["outcomes"][0]["opened"].clone();
    let looked = site.admin().get("/v1/admin/schedules").is(200).json();
    assert_eq!(looked["items"][0]["ticks"][0]["conversation"], opened, "{looked}");
    act("pause-schedule").is(200);
    site.advance(3 * HOUR);
    let figures = site.admin().get("/v1/admin/metrics").is(200);
    let figures = figures.body;
    let sent = "systole_schedule_ticks_total{schedule=\"hourly\",end=\"sent\"} 1";
    assert!(figures.contains(sent), "{figures}");
    let nobody = json!({ "act": "pause-schedule", "schedule": "none" }).to_string();
    site.admin().post("/v1/admin/acts", &nobody).is(404);
    site.party("ada").get("/v1/admin/schedules").is(403);
}
