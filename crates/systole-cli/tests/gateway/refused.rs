//! Organisms that `systole check` and `systole run` refuse.

use std::fs;

use crate::kit::{Site, text};

#[test]
fn work_of_a_party_that_is_gone_ends_only_where_the_operator_drops_it() {
    let mut site = Site::new();
    let (ada, mut worker) = (site.party("ada"), site.party("worker"));
    ada.send(1).is(202);
    worker.until("/v1/mailboxes/worker/messages", |page| !page["items"].as_array().unwrap().is_empty());
    site.stop();
    let refuse = |args: &[&str], why: &str| {
        let refused = site.systole(&[&["run", "organism.yaml"], args].concat());
        let refused = { refused }.stdin(std::process::Stdio::null()).output().unwrap();
        let said = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert!(refused.status.code() == Some(2) && said.contains(why), "{said}");
        said
    };
    refuse(&["--drop", "ada"], "has 'ada': take it out of there first");
    let file = site.folder.join("organism.yaml");
    let organism = fs::read_to_string(&file).unwrap();
    let kept: Vec<&str> = organism.lines().filter(|line| !line.contains("name: ada")).collect();
    fs::write(&file, kept.join("\n")).unwrap();
    // A name that was mistyped would end work as well.
    assert!(refuse(&[], "'ada' (open threads: 1)").contains("--drop ada"));
    site.start_with(&["--drop", "ada"]);
    worker.address = site.address;
    let page = worker.until("/v1/mailboxes/worker/messages", |page| page["items"][0]["state"] == "gone");
    worker
        .post(&format!("/v1/messages/{}/reply", text(&page["items"][0]["id"])), &crate::kit::reply("late"))
        .problem(409, "settled");
}
