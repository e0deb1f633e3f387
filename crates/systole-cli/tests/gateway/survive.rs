//! `kill -9`, and ends in order.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::kit::{Site, Who, ask, reply, text, wait};

const ALL: &str = "/v1/mailboxes/worker/messages?limit=500";

/// Counts each number in the whole mailbox.
fn asked(worker: &Who) -> BTreeMap<u32, u32> {
    let page = worker.get(ALL).is(200).json();
    let mut asked = BTreeMap::new();
    for item in page["items"].as_array().unwrap() {
        let number = text(&item["envelope"]).split("<ask xmlns=\"urn:t\">").nth(1).unwrap().split('<').next().unwrap();
        *asked.entry(number.parse().unwrap()).or_default() += 1;
    }
    asked
}

#[test]
fn what_was_acknowledged_outlives_a_kill_and_comes_once() {
    let mut site = Site::new();
    let (mut ada, mut worker) = (site.party("ada"), site.party("worker"));
    let taken = std::sync::Mutex::new(Vec::new());
    for round in 0..3_u32 {
        let acknowledged = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for sender in 0..4 {
                let (ada, taken, acknowledged) = (&ada, &taken, &acknowledged);
                scope.spawn(move || {
                    for number in (sender..100).step_by(4) {
                        let number = round * 100 + number;
                        // A message without an acknowledgement may have arrived or not.
                        if ada.try_post("/v1/messages", &ask(number)).is_none_or(|answer| answer.status != 202) {
                            return;
                        }
                        taken.lock().unwrap().push(number);
                        acknowledged.fetch_add(1, Ordering::Relaxed);
                    }
                });
            }
            wait("20 messages are acknowledged", || (acknowledged.load(Ordering::Relaxed) >= 20).then_some(()));
            site.kill();
        });
        site.start();
        (ada.address, worker.address) = (site.address, site.address);
    }
    let taken = taken.into_inner().unwrap();
    let all = |asked: &BTreeMap<u32, u32>| taken.iter().all(|number| asked.contains_key(number));
    let seen = wait("all that was acknowledged is in the mailbox", || Some(asked(&worker)).filter(all));
    assert!(seen.values().all(|times| *times == 1), "{seen:?}");
}

#[test]
fn leases_and_answers_outlive_a_kill() {
    let mut site = Site::new();
    let (mut ada, mut worker) = (site.party("ada"), site.party("worker"));
    let sent: Vec<_> = (1..=2).map(|number| ada.send(number).is(202).json()).collect();
    worker.until(ALL, |page| page["items"].as_array().unwrap().len() == 2);
    let leased = worker.lease("worker", r#"{"max":2,"visibility":43200}"#);
    worker.post(&format!("/v1/messages/{}/reply", text(&leased[0]["id"])), &reply("before")).is(202);
    site.kill();
    site.start();
    (ada.address, worker.address) = (site.address, site.address);
    // The pump hands both over again; the first has its answer, the other is still with its reader.
    assert!(worker.lease("worker", r#"{"wait":1}"#).is_empty());
    worker.handle("worker", &leased[1], "extend").is(204);
    worker.post(&format!("/v1/messages/{}/reply", text(&leased[1]["id"])), &reply("after")).is(202);
    worker.handle("worker", &leased[1], "ack").is(204);
    for sent in &sent {
        let place = format!("/v1/messages/{}", text(&sent["id"]));
        let known = ada.until(&place, |known| known["reply"].is_object());
        assert_eq!((text(&known["state"]), known["replies"].as_array().unwrap().len()), ("answered", 1), "{known}");
    }
}

#[test]
fn an_end_in_order_leaves_what_waits_for_the_next_start() {
    let mut site = Site::new();
    let (mut ada, mut worker) = (site.party("ada"), site.party("worker"));
    let sent = ada.send(1).is(202).json();
    worker.get("/v1/mailboxes/worker/messages?wait=60");
    site.stop();
    // The journal alone has everything: an operator who copies it needs no other file.
    let log = std::fs::metadata(site.folder.join("systole.journal-wal")).map_or(0, |log| log.len());
    assert_eq!(log, 0, "the log was not written back");
    site.start();
    (ada.address, worker.address) = (site.address, site.address);
    let leased = worker.lease("worker", r#"{"wait":60}"#);
    worker.post(&format!("/v1/messages/{}/reply", text(&leased[0]["id"])), &reply("late")).is(202);
    let known = ada.until(&format!("/v1/messages/{}", text(&sent["id"])), |known| known["reply"].is_object());
    assert_eq!(text(&known["state"]), "answered");
}

#[test]
fn an_organism_that_can_not_go_on_ends_its_process() {
    let mut site = Site::new();
    let ada = site.party("ada");
    ada.send(1).is(202);
    ada.get("/readyz").is(200);
    // Further writes would be lost with the file.
    std::fs::remove_file(site.folder.join("systole.journal")).unwrap();
    ada.try_post("/v1/messages", &ask(2));
    assert_eq!(site.ended(), Some(3), "{}", site.log());
    assert!(site.log().contains("it was deleted, moved or replaced while it was in use"), "{}", site.log());
}

#[test]
fn an_organism_whose_log_is_deleted_acknowledges_nothing_more_and_loses_nothing() {
    for ending in ["-wal", "-shm"] {
        let mut site = Site::new();
        let (mut ada, mut worker) = (site.party("ada"), site.party("worker"));
        (1..=20).for_each(|number| drop(ada.send(number).is(202)));
        worker.until(ALL, |page| page["items"].as_array().unwrap().len() == 20);
        std::fs::remove_file(site.folder.join(format!("systole.journal{ending}"))).unwrap();
        let answer = ada.try_post("/v1/messages", &ask(21));
        assert!(answer.as_ref().is_none_or(|answer| answer.status == 503), "{answer:?}");
        assert_eq!(site.ended(), Some(3), "{}", site.log());
        assert!(site.log().contains(&format!("{ending} was deleted, moved or replaced")), "{}", site.log());
        site.start();
        (ada.address, worker.address) = (site.address, site.address);
        let asked = asked(&worker);
        assert!((1..=20).all(|number| asked.get(&number) == Some(&1)), "without {ending}: {asked:?}");
    }
}

#[test]
fn a_file_that_may_not_grow_is_a_full_disk() {
    let mut site = Site::new();
    let ada = site.party("ada");
    let kept = ada.send(1).is(202).json();
    site.limit(rustix::process::Resource::Fsize, 4096);
    for number in 2..40 {
        ada.try_post("/v1/messages", &ask(number));
    }
    assert_eq!(site.ended(), Some(3), "{}", site.log());
    // Conversations that the next start takes up have not ended.
    let says = |word: &str| site.log().lines().any(|line| line.ends_with(word));
    assert!(says(" opened") && !says(" closed"), "{}", site.log());
    site.start();
    site.who(&ada.token).get(&format!("/v1/messages/{}", text(&kept["id"]))).is(200);
}

#[test]
fn one_process_serves() {
    let site = Site::new();
    let second = site.systole(&["run", "organism.yaml"]).stdin(std::process::Stdio::null()).output().unwrap();
    let error = String::from_utf8(second.stderr).unwrap();
    assert!(!second.status.success() && error.contains("in use by process"), "{error}");
}
