//! Ends of messages in mailboxes by a start, before their listener has them again.

use std::fs;

use crate::kit::{Site, text};

/// The messages of a mailbox, by their states.
fn states(site: &Site, mailbox: &str) -> Vec<String> {
    let boss = site.admin();
    let page = boss.get(&format!("/v1/mailboxes/{mailbox}/messages")).is(200).json();
    page["items"].as_array().unwrap().iter().map(|item| text(&item["state"]).to_owned()).collect()
}

/// Ada has asked worker, and another start of the organism, with this change, ends that.
fn ended(change: impl Fn(&str) -> String) -> Site {
    let mut site = Site::new();
    let (ada, worker) = (site.party("ada"), site.party("worker"));
    ada.send(1).is(202);
    worker.until("/v1/mailboxes/worker/messages", |page| !page["items"].as_array().unwrap().is_empty());
    site.stop();
    let file = site.folder.join("organism.yaml");
    let organism = fs::read_to_string(&file).unwrap();
    assert_ne!(change(&organism), organism);
    fs::write(&file, change(&organism)).unwrap();
    site.start();
    let over = |page: &serde_json::Value| page["items"][0]["state"] == "gone" && page["waiting"] == 0;
    let page = worker.until("/v1/mailboxes/worker/messages", over);
    let id = text(&page["items"][0]["id"]);
    worker.post(&format!("/v1/messages/{id}/reply"), &crate::kit::reply("late")).problem(409, "settled");
    assert!(worker.lease("worker", r#"{"max":10}"#).is_empty());
    assert_eq!(site.metric("systole_gateway_waiting"), 0);
    site
}

#[test]
fn messages_of_a_client_that_is_dropped_are_gone() {
    let mut site =
        ended(|organism| organism.lines().filter(|line| !line.contains("name: ada")).collect::<Vec<_>>().join("\n"));
    site.stop();
    site.start();
    assert_eq!(states(&site, "worker"), ["gone"]);
}

#[test]
fn who_is_not_in_the_organism_any_more_is_nobody() {
    let mut site = Site::new();
    let (ada, other, boss) = (site.party("ada"), site.party("other"), site.admin());
    site.stop();
    let file = site.folder.join("organism.yaml");
    let organism = fs::read_to_string(&file).unwrap();
    let (kept, _) = organism.split_once("  - name: other").unwrap();
    let kept: Vec<&str> = kept.lines().filter(|line| !line.contains("name: ada")).collect();
    fs::write(&file, kept.join("\n")).unwrap();
    site.start();
    for gone in [ada, other] {
        gone.get("/v1/mailboxes").problem(401, "unauthorized");
    }
    boss.get("/v1/mailboxes/worker/messages").is(200);
}

#[test]
fn messages_that_the_listener_does_not_accept_any_more_are_gone() {
    let [asks, orders] = ["ask", "order"].map(|name| format!("accepts: [\"{{urn:t}}{name}\"]"));
    let both = "accepts: [\"{urn:t}order\", \"{urn:t}ask\"]";
    drop(ended(|organism| organism.replace(&asks, "accepts: [\"{urn:t}note\"]").replace(&orders, both)));
}
