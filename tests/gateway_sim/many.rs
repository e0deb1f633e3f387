//! Many clients and messages at once.

use std::collections::BTreeMap;

use crate::kit::{Site, ask, reply, text};

#[test]
fn racing_readers_lease_each_message_once() {
    let site = Site::new();
    let (ada, worker) = (site.party("ada"), site.party("worker"));
    (0..200).for_each(|number| drop(ada.send(number).is(202)));
    worker.until("/v1/mailboxes/worker/messages?limit=500", |page| page["items"].as_array().unwrap().len() == 200);
    let readers = (0..8).map(|_| {
        let worker = worker.clone();
        async move {
            let mut seen = Vec::new();
            loop {
                let leased =
                    worker.asking("POST", "/v1/mailboxes/worker/lease", &[], r#"{"max":7}"#).await.is(200).json();
                let leased = leased["items"].as_array().unwrap();
                if leased.is_empty() {
                    return seen;
                }
                seen.extend(leased.iter().map(|item| text(&item["id"]).to_owned()));
            }
        }
    });
    let readers = site.together(readers);
    assert!(readers.iter().filter(|seen| !seen.is_empty()).count() > 1, "they race");
    let mut seen = BTreeMap::<String, u32>::new();
    readers.into_iter().flatten().for_each(|id| *seen.entry(id).or_default() += 1);
    assert_eq!((seen.len(), seen.values().max()), (200, Some(&1)));
}

#[test]
fn racing_answers_to_one_message_give_one() {
    let site = Site::new();
    let (ada, worker) = (site.party("ada"), site.party("worker"));
    let sent = ada.send(1).is(202).json();
    let leased = worker.lease("worker", r#"{"wait":60}"#);
    let place = format!("/v1/messages/{}/reply", text(&leased[0]["id"]));
    let racing = (0..8).map(|number| worker.asking("POST", &place, &[], &reply(&format!("number {number}"))));
    let statuses: Vec<u16> = site.together(racing).iter().map(|answer| answer.status).collect();
    assert_eq!(statuses.iter().filter(|status| **status == 202).count(), 1, "{statuses:?}");
    assert!(statuses.iter().all(|status| [202, 409].contains(status)), "{statuses:?}");
    let place = format!("/v1/messages/{}", text(&sent["id"]));
    assert_eq!(ada.until(&place, |known| known["reply"].is_object())["replies"].as_array().unwrap().len(), 1);
}

#[test]
fn many_conversations_each_get_their_own_answer() {
    let site = Site::new();
    let (ada, worker) = (site.party("ada"), site.party("worker"));
    let askers: Vec<_> = (0..40).map(|number| ada.begin("POST", "/v1/messages?wait=60", &ask(number))).collect();
    let mut answered = 0;
    while answered < 40 {
        for item in worker.lease("worker", r#"{"max":5,"wait":60}"#) {
            let envelope = text(&item["envelope"]);
            let number = envelope.split("<ask xmlns=\"urn:t\">").nth(1).unwrap().split('<').next().unwrap();
            let place = format!("/v1/messages/{}/reply", text(&item["id"]));
            worker.post(&place, &reply(&format!("to {number}."))).is(202);
            worker.handle("worker", &item, "ack").is(204);
            answered += 1;
        }
    }
    for (number, asker) in askers.into_iter().enumerate() {
        let answer = asker.answer().is(200).body;
        assert!(answer.contains(&format!(">to {number}.<")), "{number}: {answer}");
    }
}
