//! Order over ends of the process, with one slot and two shards: messages are handled in the order in which they come,
//! one at a time.

use serde_json::Value;

use crate::kit::{Site, Who, reply, text, wait};

/// A remote listener and a command, with one slot each. The command writes its messages down, and answers when a file
/// appears.
const ORGANISM: &str = r#"organism: { name: order }
durability: process
gateway: { listen: "127.0.0.1:0", requests: 1000000 }
clients:
  - { name: ada, calls: ["{urn:t}ask", "{urn:t}order"] }
  - { name: cli, calls: ["{urn:t}ask"] }
listeners:
  - name: worker
    remote: { mode: poll }
    schemas: [t.xsd]
    accepts: ["{urn:t}ask"]
    replies: ["{urn:t}answer"]
    concurrency: 1
  - name: program
    command: [sh, program.sh]
    accepts: ["{urn:t}order"]
    replies: ["{urn:t}answer"]
    concurrency: 1
    timeout: 120s
"#;

const PROGRAM: &str = r#"cat >> seen; echo >> seen
until [ -e go ]; do sleep 0.01; done
echo '<answer xmlns="urn:t">done</answer>'
"#;

const WAITING: &str = "/v1/mailboxes/worker/messages";

/// The ways in which the process ends.
const ENDS: [fn(&mut Site); 2] = [Site::kill, terminated];

/// Ends the process in order. A command that runs on makes its exit code 1, once its time is over.
fn terminated(site: &mut Site) {
    site.terminate();
    assert!(matches!(site.ended(), Some(0 | 1)), "{}", site.log());
}

/// A site with two shards.
fn site() -> (Site, Who, Who) {
    let mut site = Site::idle(ORGANISM);
    std::fs::write(site.folder.join("program.sh"), PROGRAM).unwrap();
    site.start_with(&["--shards", "2"]);
    let (ada, worker) = (site.party("ada"), site.party("worker"));
    (site, ada, worker)
}

/// Starts the organism again, at another address.
fn start(site: &mut Site, whos: [&mut Who; 2]) {
    site.start_with(&["--shards", "2"]);
    whos.into_iter().for_each(|who| who.address = site.address);
}

/// The messages that wait in the mailbox.
fn waiting(worker: &Who) -> Vec<Value> {
    let page = worker.get(WAITING).is(200).json();
    page["items"].as_array().unwrap().iter().filter(|item| item["state"] == "waiting").cloned().collect()
}

fn number(xml: &str) -> u32 {
    let (_, rest) = xml.split_once("xmlns=\"urn:t\">").unwrap_or_else(|| panic!("no number: {xml}"));
    rest.split('<').next().unwrap().parse().unwrap()
}

#[test]
fn a_listener_elsewhere_with_one_slot_gets_its_messages_in_order_over_any_end() {
    for end in ENDS {
        let (mut site, mut ada, mut worker) = site();
        let sent: Vec<Value> = (0..8).map(|number| ada.send(number).is(202).json()).collect();
        let mut order = Vec::new();
        for round in 0..8 {
            // The process ends before each of the first messages, leased or not.
            if round < 4 {
                worker.until(WAITING, |page| page["items"].as_array().unwrap().len() == round + 1);
                assert_eq!(waiting(&worker).len(), 1, "one at a time stands in the mailbox");
                if round % 2 == 1 {
                    assert_eq!(worker.lease("worker", r#"{"max":100,"visibility":1}"#).len(), 1);
                }
                end(&mut site);
                start(&mut site, [&mut ada, &mut worker]);
            }
            let leased = worker.lease("worker", r#"{"max":100,"wait":60}"#);
            assert_eq!((leased.len(), waiting(&worker).len()), (1, 1), "round {round}: {order:?}");
            order.push(number(text(&leased[0]["envelope"])));
            worker.post(&format!("/v1/messages/{}/reply", text(&leased[0]["id"])), &reply("one")).is(202);
        }
        assert_eq!(order, (0..8).collect::<Vec<_>>());
        for sent in &sent {
            let known = ada.until(&format!("/v1/messages/{}", text(&sent["id"])), |known| known["reply"].is_object());
            assert_eq!((text(&known["state"]), known["replies"].as_array().unwrap().len()), ("answered", 1), "{known}");
        }
    }
}

#[test]
fn a_command_with_one_slot_gets_its_messages_in_order_over_any_end() {
    for end in ENDS {
        let (mut site, mut ada, mut worker) = site();
        let file = site.folder.join("seen");
        let seen = || -> Vec<u32> {
            let seen = std::fs::read_to_string(&file).unwrap_or_default();
            seen.split_inclusive("</order>").filter(|part| part.contains("</order>")).map(number).collect()
        };
        // A message that waits for the remote listener keeps no process from ending.
        let other = ada.send(99).is(202).json();
        let order = |number: u32| crate::kit::envelope(&format!("<order xmlns=\"urn:t\">{number}</order>"));
        let sent: Vec<Value> = (0..8).map(|number| ada.post("/v1/messages", &order(number)).is(202).json()).collect();
        wait("the command has the first message", || (seen() == [0]).then_some(()));
        end(&mut site);
        start(&mut site, [&mut ada, &mut worker]);
        wait("the command has the first message again", || (seen() == [0, 0]).then_some(()));
        std::fs::write(site.folder.join("go"), "").unwrap();
        for sent in &sent {
            let known = ada.until(&format!("/v1/messages/{}", text(&sent["id"])), |known| known["reply"].is_object());
            assert_eq!((text(&known["state"]), known["replies"].as_array().unwrap().len()), ("answered", 1), "{known}");
        }
        assert_eq!(seen(), [0, 0, 1, 2, 3, 4, 5, 6, 7]);
        let leased = worker.lease("worker", r#"{"wait":60}"#);
        worker.post(&format!("/v1/messages/{}/reply", text(&leased[0]["id"])), &reply("one")).is(202);
        ada.until(&format!("/v1/messages/{}", text(&other["id"])), |known| known["reply"].is_object());
    }
}
