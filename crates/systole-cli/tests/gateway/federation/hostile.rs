//! Signatures, wrong tokens, and another side that answers with anything.

use std::fs;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use super::relay::{Passing, Way, says};
use super::{Keys, Two, answer, answered, asked, leased, send};
use crate::kit::{Site, organism, text, wait};

/// A bank with an identity, whose public keys are in `bank.public` of its folder.
fn signing_bank() -> Site {
    let organism = organism("requests: 1000000", "7d").replace("clients:\n", "identity: own.jwks\nclients:\n");
    let mut site = Site::idle(&organism);
    new_keys(&site, "own.jwks", "bank.public");
    site.start();
    site
}

/// Makes a file of keys, and one of its public ones.
fn new_keys(site: &Site, own: &str, public: &str) {
    assert!(site.systole(&["key", "new", own]).output().unwrap().status.success());
    let shown = site.systole(&["key", "show", own]).output().unwrap();
    assert!(shown.status.success());
    fs::write(site.folder.join(public), shown.stdout).unwrap();
}

/// The bank signs, and the shop holds it to these keys.
fn held_to(bank: Site, public: &[u8]) -> Two {
    let two = Two::idle(bank, Keys { other: "keys: [bank.public]", ..Keys::default() });
    fs::write(two.shop.folder.join("bank.public"), public).unwrap();
    let mut two = two;
    two.import();
    two.shop.start();
    two
}

/// The fault of a message, which must be one.
#[track_caller]
fn faulted(two: &Two, parts: &[&str]) {
    let buyer = two.buyer();
    let (state, envelope) = answered(&buyer, &send(&buyer, 1));
    assert_eq!(state, "faulted", "{envelope}");
    for part in parts {
        assert!(envelope.contains(part), "no {part}: {envelope}");
    }
}

/// Answers the questions for answers: all else passes.
fn of_answers(decide: impl Fn() -> Way + Send + 'static) -> impl FnMut(&Passing) -> Way + Send + 'static {
    move |passing| if asked_for(passing).is_some() { decide() } else { Way::Pass }
}

/// The message whose answer a request asks for.
fn asked_for(passing: &Passing) -> Option<&str> {
    let (path, query) = passing.path.split_once('?')?;
    path.strip_prefix("/v1/messages/").filter(|_| query.contains("correlation=true"))
}

#[test]
fn a_signed_answer_is_taken() {
    let bank = signing_bank();
    let public = fs::read(bank.folder.join("bank.public")).unwrap();
    let two = held_to(bank, &public);
    let (buyer, worker) = (two.buyer(), two.worker());
    let path = send(&buyer, 1);
    answer(&worker, &leased(&worker), "signed");
    assert!(answered(&buyer, &path).1.contains(">signed</answer>"));
    // A fault is an answer, too.
    let path = send(&buyer, 2);
    let item = leased(&worker);
    worker.post(&format!("/v1/messages/{}/fail", item["id"].as_str().unwrap()), "{}").is(202);
    assert!(answered(&buyer, &path).1.contains("<code>failed</code>"));
}

#[test]
fn an_answer_without_a_signature_or_with_that_of_another_key_is_refused() {
    let signing = signing_bank();
    let public = fs::read(signing.folder.join("bank.public")).unwrap();
    for (bank, why) in [(Site::new(), "is not signed by a key of `keys`"), (signing_bank(), "is none of those")] {
        let two = held_to(bank, &public);
        let (buyer, worker) = (two.buyer(), two.worker());
        let path = send(&buyer, 1);
        answer(&worker, &leased(&worker), "forged");
        let (state, envelope) = answered(&buyer, &path);
        assert_eq!(state, "faulted");
        assert!(envelope.contains(why) && envelope.contains("<code>listener-failed</code>"), "no {why}: {envelope}");
        assert!(two.shop.log().contains("an answer of another organism was refused"), "{}", two.shop.log());
    }
}

#[test]
fn a_signed_answer_that_was_changed_or_belongs_to_another_request_is_refused() {
    let bank = signing_bank();
    let public = fs::read(bank.folder.join("bank.public")).unwrap();
    let two = held_to(bank, &public);
    let (buyer, worker) = (two.buyer(), two.worker());
    let kept = Arc::<Mutex<Option<String>>>::default();
    let keep = kept.clone();
    two.relay.decide(of_answers(move || {
        let keep = keep.clone();
        Way::Change(Box::new(move |answer| {
            if answer.contains("\"answered\"") {
                *keep.lock().unwrap() = Some(answer.clone());
            }
            answer
        }))
    }));
    let path = send(&buyer, 1);
    answer(&worker, &leased(&worker), "yes");
    assert!(answered(&buyer, &path).1.contains(">yes</answer>"));
    let first = kept.lock().unwrap().clone().expect("the first answer passed");
    // The man in the middle says yes once more, as if it was about the message of now.
    let (_, report) = first.split_once("\r\n\r\n").unwrap();
    let of_first = text(&serde_json::from_str::<Value>(report).unwrap()["id"]).to_owned();
    two.relay.decide(move |passing| match asked_for(passing) {
        // The envelope stays as it was signed.
        Some(id) => Way::Say(first.replacen(&of_first, id, 1)),
        None => Way::Pass,
    });
    let path = send(&buyer, 2);
    answer(&worker, &leased(&worker), "no");
    let (state, envelope) = answered(&buyer, &path);
    assert_eq!(state, "faulted");
    assert!(envelope.contains("belongs to another request"), "{envelope}");
    // Or he takes the answer, and changes a word.
    two.relay.decide(of_answers(|| Way::Change(Box::new(|answer| answer.replace(">no<", ">ok<")))));
    let path = send(&buyer, 3);
    answer(&worker, &leased(&worker), "no");
    let (state, envelope) = answered(&buyer, &path);
    assert_eq!(state, "faulted");
    assert!(envelope.contains("changed after it was signed"), "{envelope}");
    // Or what binds it.
    two.relay.decide(of_answers(|| {
        Way::Change(Box::new(|answer| {
            let mut shorter = answer;
            while let Some(start) = shorter.find("<correlation") {
                let end = shorter[start..].find("</correlation>").unwrap() + start + "</correlation>".len();
                shorter.replace_range(start..end, "");
            }
            let (head, body) = shorter.split_once("\r\n\r\n").unwrap();
            let status = head.lines().next().unwrap().split_once(' ').unwrap().1;
            says(status, "application/json", body)
        }))
    }));
    let path = send(&buyer, 4);
    answer(&worker, &leased(&worker), "no");
    assert_eq!(answered(&buyer, &path).0, "faulted");
}

#[test]
fn what_is_sent_is_signed_by_the_identity() {
    let file = organism("requests: 1000000", "7d").replace("name: ada,", "name: ada, keys: [shop.public],");
    let mut bank = Site::idle(&file);
    new_keys(&bank, "shop.jwks", "shop.public");
    bank.start();
    let own = fs::read(bank.folder.join("shop.jwks")).unwrap();
    let mut two = Two::idle(bank, Keys { top: "identity: shop.jwks", ..Keys::default() });
    let file = two.shop.folder.join("shop.jwks");
    fs::write(&file, own).unwrap();
    fs::set_permissions(&file, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    two.import();
    two.shop.start();
    let (buyer, worker) = (two.buyer(), two.worker());
    let path = send(&buyer, 1);
    answer(&worker, &leased(&worker), "proved");
    assert!(answered(&buyer, &path).1.contains(">proved</answer>"));
    // The same bytes are sent again after a kill: a signature is another one each time, and the key has one body.
    two.relay.decide(|passing| if passing.method == "POST" { Way::Lose } else { Way::Pass });
    let path = send(&buyer, 2);
    let item = leased(&worker);
    two.shop.kill();
    two.relay.decide(|_| Way::Pass);
    two.shop.start();
    let buyer = crate::kit::Who { address: two.shop.address, ..buyer };
    answer(&worker, &item, "again");
    assert!(answered(&buyer, &path).1.contains(">again</answer>"));
    assert_eq!(asked(&worker).len(), 2);
    // Without an identity it is refused as what may not be called.
    let yaml = two.shop.folder.join("organism.yaml");
    let without = fs::read_to_string(&yaml).unwrap().replace("identity: shop.jwks", "");
    two.shop.stop();
    fs::write(&yaml, without).unwrap();
    two.shop.start();
    faulted(&two, &["<code>route</code>"]);
}

#[test]
fn a_wrong_token_is_told_and_a_right_one_is_read_without_a_restart() {
    let two = Two::new();
    let buyer = two.buyer();
    let right = fs::read_to_string(two.shop.folder.join("bank.token")).unwrap();
    // The bank's operator replaces the token.
    two.give_token("ada");
    let renewed = fs::read_to_string(two.shop.folder.join("bank.token")).unwrap();
    fs::write(two.shop.folder.join("bank.token"), &right).unwrap();
    faulted_by(&two, &buyer, &["does not know the token"]);
    fs::write(two.shop.folder.join("bank.token"), renewed).unwrap();
    let worker = two.worker();
    let path = send(&buyer, 2);
    answer(&worker, &leased(&worker), "known again");
    assert!(answered(&buyer, &path).1.contains(">known again</answer>"));
    assert!(!two.shop.log().contains(right.trim()), "no token is in the log");
}

#[track_caller]
fn faulted_by(two: &Two, buyer: &crate::kit::Who, parts: &[&str]) {
    let (state, envelope) = answered(buyer, &send(buyer, 1));
    assert_eq!(state, "faulted", "{envelope}");
    for part in parts {
        assert!(envelope.contains(part), "no {part}: {envelope}: {}", two.shop.log());
    }
}

#[test]
fn answers_that_are_none_of_a_gateway_are_faults() {
    let two = Two::new();
    let buyer = two.buyer();
    let submitted = |answer: String| two.relay.decide(move |_| Way::Say(answer.clone()));
    for (answer, why) in [
        (says("200 OK", "text/html", "<html>hello</html>"), "does not answer as a gateway does"),
        (says("202 Accepted", "application/json", r#"{"id":"../../x"}"#), "its id is none"),
        (says("202 Accepted", "application/json", "{}"), "missing field"),
        (says("302 Found", "text/html", "elsewhere"), "refuses the message"),
        (says("418 I'm a teapot", "text/plain", "short and stout"), "short and stout"),
        ("SSH-2.0-OpenSSH_9.2\r\n\r\n".to_owned(), "does not answer as a gateway does"),
        (says("202 Accepted", "application/json", &"x".repeat(16 << 20)), "does not answer as a gateway does"),
    ] {
        submitted(answer);
        faulted_by(&two, &buyer, &["<code>listener-failed</code>", why]);
    }
    let accepted = |mut report: Value| {
        const ID: &str = "6e0e8a4c-1b1f-4c9e-9b5e-3d7f1f0f4f10";
        if report["id"].is_null() {
            report["id"] = ID.into();
        }
        two.relay.decide(move |passing| match &*passing.method {
            "GET" => Way::Say(says("200 OK", "application/json", &report.to_string())),
            _ => {
                let id = json!({ "id": ID, "thread": "x", "state": "queued" });
                Way::Say(says("202 Accepted", "application/json", &id.to_string()))
            }
        });
    };
    let envelope = |inner: &str| {
        format!("<message xmlns='https://xml-pipeline.org/ns/envelope/v1'><meta><from>x</from></meta>{inner}</message>")
    };
    for (report, why) in [
        (json!({ "state": "answered", "replies": [] }), "no message is 'answered' without an answer"),
        (json!({ "state": "lol" }), "no message is 'lol' without an answer"),
        (json!({ "state": "silent", "replies": [{ "envelope": "<a/>" }] }), "no message is 'silent' with answers"),
        (json!({ "state": "queued", "replies": [{ "envelope": "<a/>" }] }), "no message is 'queued' with answers"),
        (json!({ "id": "7e0e8a4c-1b1f-4c9e-9b5e-3d7f1f0f4f10", "state": "silent" }), "it is about another message"),
        (json!({ "state": "answered", "replies": [{ "envelope": "<a" }] }), "its answer is no message"),
        (
            json!({ "state": "answered", "replies": [{ "envelope": "<a xmlns='urn:t'/>" }] }),
            "its answer is no envelope",
        ),
        (json!({ "state": 7 }), "invalid type"),
        (
            json!({ "state": "faulted", "replies": [{ "envelope": envelope("<system-error xmlns='https://xml-pipeline.org/ns/core/v1'/>") }] }),
            "its fault can't be read",
        ),
    ] {
        accepted(report);
        faulted_by(&two, &buyer, &["<code>listener-failed</code>", why]);
    }
    // What its contract does not have is refused as what any listener writes.
    accepted(
        json!({ "state": "answered", "replies": [{ "envelope": envelope("<answer xmlns='urn:t'><evil/></answer>") }] }),
    );
    faulted_by(&two, &buyer, &[]);
    accepted(json!({ "state": "answered", "replies": [{ "envelope": envelope("<sum xmlns='urn:t'>1</sum>") }] }));
    faulted_by(&two, &buyer, &[]);
    accepted(json!({ "state": "silent", "replies": [] }));
    faulted_by(&two, &buyer, &["<code>silent</code>"]);
    accepted(json!({ "state": "silent" }));
    faulted_by(&two, &buyer, &["<code>silent</code>"]);
}

#[test]
fn a_side_that_is_busy_is_asked_again_and_one_that_is_forgetful_is_told() {
    let two = Two::new();
    let (buyer, worker) = (two.buyer(), two.worker());
    let mut busy = 0;
    two.relay.decide(move |_| {
        busy += 1;
        let busy_with = |status: &str| Way::Say(says(status, "application/problem+json", r#"{"code":"rate"}"#));
        match busy {
            1 => busy_with("429 Too Many Requests\r\nretry-after: 1"),
            2 => busy_with("503 Service Unavailable"),
            3 => busy_with("502 Bad Gateway"),
            4 => Way::Close,
            _ => Way::Pass,
        }
    });
    let path = send(&buyer, 1);
    answer(&worker, &leased(&worker), "free");
    assert!(answered(&buyer, &path).1.contains(">free</answer>"));
    assert_eq!(asked(&worker).len(), 1);
    let unknown = r#"{"code":"not_found","detail":"there is no such message"}"#;
    two.relay.decide(of_answers(move || Way::Say(says("404 Not Found", "application/problem+json", unknown))));
    faulted_by(&two, &buyer, &["unknown outcome"]);
    let full = r#"{"code":"no_room","detail":"full"}"#;
    two.relay.decide(move |_| Way::Say(says("507 Insufficient Storage", "application/problem+json", full)));
    faulted_by(&two, &buyer, &["<code>overload</code>", "<retryable>true</retryable>"]);
}

/// Sets the time of the shop's listener.
fn within(two: &mut Two, timeout: &str) {
    let file = two.shop.folder.join("organism.yaml");
    let organism = fs::read_to_string(&file).unwrap();
    fs::write(&file, organism.replace("timeout: 5min", &format!("timeout: {timeout}"))).unwrap();
    two.import();
    two.shop.start();
}

#[test]
fn a_side_that_never_answers_or_always_dies_takes_no_longer_than_the_timeout() {
    for way in [|| Way::Hang, || Way::Close] {
        let mut two = Two::idle(Site::new(), Keys::default());
        within(&mut two, "1s");
        two.relay.decide(move |_| way());
        faulted(&two, &["<code>timeout</code>"]);
    }
}

#[test]
fn a_side_that_does_not_wait_is_not_asked_without_a_pause() {
    let mut two = Two::idle(Site::new(), Keys::default());
    within(&mut two, "4s");
    two.relay.decide(|passing| match asked_for(passing) {
        Some(id) => {
            let queued = json!({ "id": id, "state": "queued", "replies": [] });
            Way::Say(says("200 OK", "application/json", &queued.to_string()))
        }
        None => Way::Pass,
    });
    faulted(&two, &["<code>timeout</code>"]);
    let questions = two.relay.passed().iter().filter(|passed| passed.contains("correlation=true")).count();
    assert!((1..=8).contains(&questions), "{questions}: {:?}", two.relay.passed());
    wait("the conversation there ends", || (two.open_there() == 0).then_some(()));
}
