//! Organisms that `systole check` and `systole run` refuse.

use std::fs;

use crate::kit::{Site, text};

/// Ada has a mailbox, in which Bob leaves notes; her calls are answered by an echo, fail, or wait in the attic.
const ORGANISM: &str = r#"organism: { name: notices }
durability: process
gateway: { listen: "127.0.0.1:0", requests: 1000000 }
clients:
  - { name: ada, calls: ["{urn:t}say", "{urn:t}fail", "{urn:t}answer"], mailbox: desk }
  - { name: eve, calls: ["{urn:t}say"], mailbox: attic }
  - { name: bob, calls: ["{urn:t}note"] }
listeners:
  - { name: desk, remote: { mode: poll }, schemas: [t.xsd], accepts: ["{urn:t}note"], replies: ["{urn:t}answer"], silence: idle }
  - { name: attic, remote: { mode: poll }, accepts: ["{urn:t}answer"], replies: ["{urn:t}note"] }
  - { name: parrot, echo: true, accepts: ["{urn:t}say"] }
  - { name: broken, command: [sh, -c, "exit 1"], accepts: ["{urn:t}fail"], replies: ["{urn:t}answer"] }
"#;

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
    refuse(&["--drop", "ada"], "declares 'ada': remove it there first");
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

#[test]
fn a_client_can_only_have_the_mailbox_of_a_remote_listener() {
    let site = Site::idle(ORGANISM);
    for (wrong, why) in
        [("parrot", "has no mailbox to read"), ("nobody", "has no mailbox to read"), ("", "can't be empty")]
    {
        let organism = ORGANISM.replace("mailbox: desk", &format!("mailbox: '{wrong}'"));
        std::fs::write(site.folder.join("wrong.yaml"), organism).unwrap();
        let checked = site.systole(&["check", "wrong.yaml"]).output().unwrap();
        let said = String::from_utf8(checked.stderr).unwrap();
        assert!(!checked.status.success() && said.contains(why) && said.contains("wrong.yaml:5:"), "{said}");
    }
}
