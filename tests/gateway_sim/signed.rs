//! Signatures of what leaves an organism, and entrances that require them.

use std::fs;
use std::path::Path;

use bytes::Bytes;
use systole::identity::{Identity, KeyFile, PublicKeys};
use systole::ladder::Raw;
use systole::vocab::{XmlLimits, ns};

use crate::kit::{Site, Who, ask, organism, reply, text};

/// A file of one key.
fn keys(folder: &Path, name: &str) -> Identity {
    let mut keys = KeyFile::open(&folder.join(name)).unwrap();
    keys.add("2026-11-30T00:00:00Z".parse().unwrap()).unwrap();
    keys.identity().unwrap()
}

/// A site that signs, and where ada must sign; with the keys of both.
fn site() -> (Site, Identity, Identity) {
    let organism = organism("requests: 1000000", "7d")
        .replace("durability", "identity: own.jwks\ndurability")
        .replace("{ name: ada,", "{ name: ada, keys: [ada.public],");
    let mut site = Site::idle(&organism);
    let (own, ada) = (keys(&site.folder, "own.jwks"), keys(&site.folder, "ada.jwks"));
    fs::write(site.folder.join("ada.public"), ada.jwks()).unwrap();
    site.start();
    (site, own, ada)
}

fn envelope(payload: &str) -> Bytes {
    format!("<message xmlns=\"{}\"><meta><from>ada</from></meta>{payload}</message>", ns::ENVELOPE).into()
}

fn signed(identity: &Identity, number: u32) -> String {
    let envelope = envelope(&format!("<ask xmlns=\"urn:t\">{number}</ask>"));
    String::from_utf8(identity.sign(&envelope).unwrap().into()).unwrap()
}

#[track_caller]
fn verify(keys: &PublicKeys, envelope: &str) {
    let verified = keys.verify_bytes(&Raw::new(envelope.to_owned()), &XmlLimits::default());
    assert_eq!(verified.map(|key| &*key.id), Ok("2026-11-30"), "{envelope}");
}

/// Sends an ask and answers it; returns what the listener was given, and the answer.
fn exchange(site: &Site, who: &Who, sent: &str) -> (String, String) {
    let worker = site.party("worker");
    let sent = who.post("/v1/messages", sent).is(202).json();
    let items = worker.lease("worker", "{\"wait\": 60}");
    worker.post(&format!("/v1/messages/{}/reply", text(&items[0]["id"])), &reply("forty-two")).is(202);
    let path = format!("/v1/messages/{}", text(&sent["id"]));
    let known = who.until(&path, |known| known["state"] == "answered");
    (text(&items[0]["envelope"]).to_owned(), text(&known["reply"]["envelope"]).to_owned())
}

#[test]
fn what_leaves_for_clients_and_remote_listeners_is_signed() {
    let (site, own, _) = site();
    let (leased, answered) = exchange(&site, &site.party("bob"), &ask(42));
    for envelope in [&leased, &answered] {
        verify(own.keys(), envelope);
        assert_eq!(envelope.matches("<ds:Signature ").count(), 1, "{envelope}");
    }
    assert!(leased.contains(">42</ask>") && answered.contains("forty-two"));
    let known = site.stranger().get("/.well-known/jwks.json").is(200);
    assert_eq!(known.header("content-type"), Some("application/jwk-set+json"));
    assert_eq!(known.body, own.jwks());
    assert!(!known.body.contains("\"d\""), "{}", known.body);
    // A waiting client and a reader of a stream get the same.
    let bob = site.party("bob");
    let pending = bob.begin("POST", "/v1/messages?wait=60", &ask(7));
    let mut stream = site.party("worker").stream("/v1/mailboxes/worker/stream", None);
    let (_, item) = std::iter::repeat_with(|| stream.next()).find(|(_, item)| item["state"] == "waiting").unwrap();
    verify(own.keys(), text(&item["envelope"]));
    let path = format!("/v1/messages/{}/reply", text(&item["id"]));
    site.party("worker").post(&path, &reply("seven")).is(202);
    let answer = pending.answer().is(200);
    assert!(answer.body.contains("seven"));
    verify(own.keys(), &answer.body);
}

#[test]
fn an_organism_without_an_identity_signs_nothing_and_shows_no_keys() {
    let site = Site::new();
    let (leased, answered) = exchange(&site, &site.party("ada"), &ask(42));
    assert!(!leased.contains("Signature") && !answered.contains("Signature"));
    site.stranger().get("/.well-known/jwks.json").problem(404, "not_found");
}

#[test]
fn a_client_that_must_sign_is_heard_only_signed() {
    let (site, own, key) = site();
    let ada = site.party("ada");
    let good = signed(&key, 42);
    let (leased, _) = exchange(&site, &ada, &good);
    assert!(leased.contains(">42</ask>"), "{leased}");
    let unknown = ada.post("/v1/messages", "<nothing xmlns=\"urn:t\"/>").problem(404, "route");
    let wrong = [
        ask(42),
        String::from_utf8(envelope("<ask xmlns=\"urn:t\">42</ask>").into()).unwrap(),
        good.replace(">42<", ">43<"),
        good.replace(">42<", "><!-- -->42<"),
        signed(&own, 42),
    ];
    for message in wrong {
        let problem = ada.post("/v1/messages", &message).problem(404, "route");
        // The sender learns no more than of a payload that nobody accepts.
        let same = text(&unknown["detail"]).replace("nothing", "ask");
        assert_eq!(text(&problem["detail"]), same, "{message}");
    }
    let json = ada.ask("POST", "/v1/messages", &[("content-type", "application/json")], "{\"{urn:t}ask\": 42}");
    json.problem(404, "route");
    assert!(site.party("worker").lease("worker", "{}").is_empty(), "nothing of it has come");
    // A call that takes no message has no signature.
    let refused = ada.post("/v1/jobs/reviews/tasks", "{\"description\": \"Read.\"}").problem(403, "forbidden");
    assert!(text(&refused["detail"]).contains("ada must sign: send {urn:systole:task:v1}submit"), "{refused}");
    // Others need no signature.
    site.party("bob").send(1).is(202);
}
