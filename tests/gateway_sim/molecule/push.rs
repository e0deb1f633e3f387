//! Workspaces that are pushed to: their messages go to a server as the SDK's `A2AServer`.

use std::time::Duration;

use serde_json::{Value, json};

use super::inbound::{Act, Server};
use super::office::{SCOUT, a2a, message, reply, rows, said, texts};
use crate::kit::{Answer, Site, Who, text};

/// An organism whose workspace `scout` is pushed to, as its `remote:` says, beside a polling one and a listener within.
fn organism(remote: &str) -> String {
    let said = r#"["{urn:systole:chat:v1}said"]"#;
    let talks =
        format!("routing: addressed\n    accepts: {said}\n    replies: {said}\n    calls: {said}\n    returns: {said}");
    format!(
        r#"organism: {{ name: chat }}
durability: process
gateway: {{ listen: "127.0.0.1:0", molecule: true, requests: 1000000 }}
clients:
  - {{ name: ada, calls: {said} }}
listeners:
  - name: scout
    description: Looks around.
    remote: {{ mode: push, format: molecule, allow_private: true, {remote} }}
    {talks}
  - name: writer
    remote: {{ mode: poll }}
    {talks}
  - name: echo
    echo: true
    routing: addressed
    accepts: {said}
"#
    )
}

/// An organism whose workspace reports its URL, which may be that of the server.
fn reported(server: &Server) -> Site {
    started(server, &format!("url: reported, allowed: [\"http://{}/a2a\"]", server.address))
}

/// An organism that declares the URL of its workspace.
fn declared(server: &Server) -> Site {
    started(server, &format!("url: \"{}\"", server.url()))
}

fn started(server: &Server, remote: &str) -> Site {
    let mut site = Site::idle_in(server.world.clone(), &organism(remote));
    site.start();
    site
}

/// Registers as the SDK does, with the token among the headers if the session has one.
fn register(who: &Who, url: &str) -> Answer {
    let body = json!({ "id": "scout", "url": url, "agent_card": { "name": "scout" } });
    who.post("/registry/register", &body.to_string())
}

fn ask(ada: &Who, words: &str) -> Answer {
    ada.post("/v1/messages", &said("scout", words)).is(202)
}

fn says(words: &str) -> Act {
    Act::Return(json!({ "text": words }))
}

/// The fault in the answer to a client's message.
fn fault(ada: &Who, sent: &Answer) -> (String, String) {
    let envelope = reply(ada, sent);
    let known = ada.get(&format!("/v1/messages/{}", text(&sent.json()["id"]))).is(200).json();
    assert_eq!(known["replies"].as_array().unwrap().len(), 1, "{known}");
    (text(&known["reply"]["fault"]).to_owned(), envelope)
}

#[test]
fn messages_wait_for_the_url_that_a_workspace_reports_and_its_answers_are_replies() {
    let server = Server::start([says("HELLO"), Act::Return(json!("AGAIN"))]);
    let site = reported(&server);
    let (scout, ada) = (site.party("scout"), site.party("ada"));
    let first = ask(&ada, "hello");
    // Without a token a registration changes nothing.
    let body = json!({ "id": "scout", "url": server.url(), "agent_card": {} }).to_string();
    let unproven = site.stranger().post("/registry/register", &body).is(200).json();
    assert_eq!(unproven, json!({ "status": "unverified" }));
    register(&scout, "remote://no-inbound").problem(400, "bad_request");
    assert!(server.rest().is_empty());

    let answer = register(&scout, &server.url()).is(200).json();
    assert_eq!(answer, json!({ "status": "registered", "id": SCOUT, "delivery_mode": "push" }));
    let pushed = server.next();
    assert_eq!(pushed.header("content-type"), Some("application/json"));
    let (id, body) = (pushed.header("idempotency-key").unwrap().to_owned(), &pushed.body);
    // The task that the server's documentation shows.
    assert_eq!((text(&body["task_id"]), text(&body["idempotency_key"])), (&*id, &*id));
    assert_eq!((text(&body["sender"]), text(&body["message"])), ("ada", "hello"));
    assert_eq!(text(&body["data"]["peer_role"]), "person");
    // The request of JSON-RPC that agents send each other.
    assert_eq!((text(&body["jsonrpc"]), text(&body["method"]), text(&body["id"])), ("2.0", "message/send", &*id));
    assert_eq!(body["params"]["message"]["parts"], json!([{ "kind": "text", "text": "hello" }]));
    assert!(reply(&ada, &first).contains("<text>HELLO</text>"));
    let second = ask(&ada, "once more");
    assert!(reply(&ada, &second).contains("<text>AGAIN</text>"));
    assert_eq!(text(&server.next().body["message"]), "once more");
    assert!(server.rest().is_empty());
    // Its server takes one connection after the other: none of the organism's is left open before that of another.
    // Sooner than an idle connection would be closed.
    let said = site.run(async { tokio::time::timeout(Duration::from_secs(45), server.ask_elsewhere()).await });
    assert!(said.unwrap().starts_with("HTTP/1.1 404 "));
}

#[test]
fn a_message_that_the_format_cannot_carry_is_a_dead_letter_and_holds_up_no_other() {
    // The server accepts no envelope.
    let server = Server::start([says("HELLO")]);
    let url = format!("url: \"{}\"", server.url());
    let narrow = organism(&url);
    let broad = narrow
        .replace("format: molecule, ", "")
        .replace("    accepts: [", "    schemas: [t.xsd]\n    accepts: [\"{urn:t}ask\", ")
        .replace("ada, calls: [", "ada, calls: [\"{urn:t}ask\", ");
    let mut site = Site::idle_in(server.world.clone(), &broad);
    site.start();
    let (ada, scout) = (site.party("ada"), site.party("scout"));
    let ask_for_number = crate::kit::ask(7).replace("</from>", "</from><to>scout</to>");
    let sent = ada.post("/v1/messages", &ask_for_number).is(202);
    reply(&ada, &sent);
    site.kill();
    std::fs::write(site.folder.join("organism.yaml"), narrow).unwrap();
    site.start();
    scout.post("/v1/mailboxes/scout/dead/redrive", "").is(200);
    assert!(reply(&ada, &ask(&ada, "hello")).contains("<text>HELLO</text>"));
    let dead = scout.get("/v1/mailboxes/scout/dead").is(200).json();
    assert!(text(&dead["items"][0]["last_error"]).contains("can't carry"), "{dead}");
    assert_eq!(server.rest().len(), 1, "an envelope is no task");
}

#[test]
fn a_workspace_can_be_nowhere_but_where_its_operator_allows() {
    let server = Server::start([says("HELLO")]);
    let site = reported(&server);
    let (scout, ada) = (site.party("scout"), site.party("ada"));
    register(&scout, &server.url()).is(200);
    let port = server.address.port();
    for url in [
        "http://127.0.0.1:1/a2a/inbound".to_owned(),
        format!("http://localhost:{port}/a2a/inbound"),
        format!("https://127.0.0.1:{port}/a2a/inbound"),
        format!("http://127.0.0.1:{port}/admin"),
        format!("http://127.0.0.1:{port}/a2a/../admin"),
        format!("http://127.0.0.1:{port}/a2a/..%2fadmin"),
        format!("http://127.0.0.1:{port}/a2ab"),
        format!("http://user@127.0.0.1:{port}/a2a/inbound"),
        format!("http://127.0.0.1:{port}@agents.example/a2a/inbound"),
        "http://169.254.169.254/latest/meta-data".to_owned(),
    ] {
        register(&scout, &url).problem(400, "bad_request");
        let body = json!({ "name": "scout", "mode": "push", "url": url });
        scout.post("/v1/listeners", &body.to_string()).problem(400, "bad_request");
    }
    // One workspace can't report the URL of another one.
    let other = site.party("writer");
    register(&other, &server.url()).problem(403, "forbidden");
    // A workspace that polls gets no pushes either.
    let body = json!({ "id": "writer", "url": server.url() }).to_string();
    other.post("/registry/register", &body).problem(400, "bad_request");
    assert!(reply(&ada, &ask(&ada, "hello")).contains("<text>HELLO</text>"), "it is where it was");
}

#[test]
fn a_url_is_judged_anew_when_the_operator_has_changed_what_is_allowed() {
    let before = Server::start([Act::ReturnWhenTold(json!("lost")), says("before")]);
    let after = Server::start_in(&before.world, [says("after")]);
    let mut site = reported(&before);
    let (scout, ada) = (site.party("scout"), site.party("ada"));
    register(&scout, &before.url()).is(200);
    let sent = ask(&ada, "are you there?");
    before.next();
    site.kill();
    before.go_on();
    let file = site.folder.join("organism.yaml");
    let declared = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, declared.replace(&before.address.to_string(), &after.address.to_string())).unwrap();
    // The message is sent first of all, if it is sent.
    site.start();
    assert_eq!(texts(&rows(&scout, "scout", "", 1)), ["are you there?"]);
    // The URL that was registered is no longer allowed: the message waits for another one.
    register(&scout, &before.url()).problem(400, "bad_request");
    register(&scout, &after.url()).is(200);
    assert!(reply(&ada, &sent).contains("<text>after</text>"));
    assert!(before.rest().is_empty());
}

#[test]
fn a_push_outlives_a_kill_and_is_the_same_task_again() {
    let server = Server::start([Act::ReturnWhenTold(json!({ "text": "lost" })), says("found")]);
    let mut site = reported(&server);
    let (scout, ada) = (site.party("scout"), site.party("ada"));
    register(&scout, &server.url()).is(200);
    let sent = ask(&ada, "look");
    let first = server.next();
    site.kill();
    server.go_on();
    site.start();
    let again = server.next();
    assert_eq!(again.body, first.body);
    assert_eq!(again.header("idempotency-key"), first.header("idempotency-key"));
    assert!(reply(&ada, &sent).contains("<text>found</text>"));
    let known = ada.get(&format!("/v1/messages/{}", text(&sent.json()["id"]))).is(200).json();
    assert_eq!(known["replies"].as_array().unwrap().len(), 1, "{known}");
    assert!(server.rest().is_empty());
}

#[test]
fn an_answer_that_comes_while_the_organism_ends_counts() {
    let server = Server::start([Act::ReturnWhenTold(json!("in time")), says("again")]);
    let mut site = declared(&server);
    let ada = site.party("ada");
    let sent = ask(&ada, "look");
    server.next();
    server.go_on_in(Duration::from_secs(1));
    site.stop_within(Duration::from_secs(30));
    site.start();
    assert!(reply(&ada, &sent).contains("<text>in time</text>"));
    assert!(server.rest().is_empty(), "it is not pushed again");
}

#[test]
fn a_server_that_is_away_for_a_while_is_asked_again() {
    let server = Server::start([Act::Die, says("back")]);
    let site = declared(&server);
    let ada = site.party("ada");
    let sent = ask(&ada, "hello");
    assert!(reply(&ada, &sent).contains("<text>back</text>"));
    let ids = [server.next(), server.next()].map(|pushed| text(&pushed.body["task_id"]).to_owned());
    assert_eq!(ids[0], ids[1]);
}

#[test]
fn what_is_no_answer_is_a_fault_that_says_why() {
    let error = json!({ "jsonrpc": "2.0", "id": 1, "error": { "code": -32603, "message": "no tool at 10.0.0.7:80" } });
    let server = Server::start([
        Act::Raise("boom"),
        Act::Return(error),
        Act::Return(json!({ "ack": true })),
        Act::Return(json!({ "text": "\u{0}" })),
        Act::Return(json!({ "task_id": "67e55044-10b1-426f-9247-bb680e5fe0c8", "text": "for somebody else" })),
        Act::Return(Value::Null),
    ]);
    let site = declared(&server);
    let ada = site.party("ada");
    for (code, why) in [
        ("failed", "internal error: boom"),
        ("failed", "no tool at (address)"),
        ("failed", "return a text"),
        ("failed", "XML can't carry"),
        ("failed", "answers another message, as its task_id says"),
        // There was no text: the contract's silence decides.
        ("silent", ""),
    ] {
        let (fault, envelope) = fault(&ada, &ask(&ada, "hello"));
        assert_eq!(fault, code, "{envelope}");
        assert!(envelope.contains(why) || envelope.contains(&why.replace('\'', "&apos;")), "{envelope}");
    }
    // A refusal is final: no message was tried twice.
    assert_eq!(server.rest().len(), 6);
}

#[test]
fn an_answer_that_names_an_earlier_row_in_a_field_of_its_own_is_none_of_this_one() {
    let server = Server::start([says("HELLO"), Act::ReturnWhenTold(Value::Null)]);
    let site = declared(&server);
    let ada = site.party("ada");
    assert!(reply(&ada, &ask(&ada, "one")).contains("<text>HELLO</text>"));
    let first = text(&server.next().body["task_id"]).to_owned();
    let second = ask(&ada, "two");
    server.next();
    // That row has ended: the answer is a late one.
    server.go_on_with(json!({ "contextId": first, "text": "for somebody else" }));
    let (fault, envelope) = fault(&ada, &second);
    assert_eq!(fault, "failed");
    assert!(envelope.contains("answers another message, as the id"), "{envelope}");
}

#[test]
fn a_pushed_workspace_speaks_too_and_reads_what_comes_back() {
    let server = Server::start([says("HELLO")]);
    let site = declared(&server);
    let (scout, writer) = (site.party("scout"), site.party("writer"));
    register(&scout, "remote://no-inbound").is(200);
    // A peer that calls it has its answer at once.
    let answer = a2a(&writer, SCOUT, "hello", "m1").is(200).json();
    assert_eq!(answer["result"]["parts"], json!([{ "kind": "text", "text": "HELLO" }]), "{answer}");
    let pushed = server.next().body;
    assert_eq!(text(&pushed["data"]["peer_name"]), "writer");
    assert_eq!(pushed["sender"], pushed["data"]["peer_id"]);
    // It calls a peer; the answer is a row, and isn't pushed.
    let answer = a2a(&scout, "echo", "is this on?", "m2").is(200).json();
    assert_eq!(answer["result"]["parts"], json!([{ "kind": "text", "text": "is this on?" }]), "{answer}");
    assert_eq!(texts(&rows(&scout, "scout", "", 2)), ["hello", "is this on?"]);
    assert!(server.rest().is_empty());
    let state = scout.get("/workspaces/scout/state").is(200).json();
    assert_eq!((text(&state["status"]), &state["deleted"]), ("online", &json!(false)));
    scout.post("/registry/heartbeat", r#"{"workspace_id":"scout"}"#).is(200);
    scout.post("/v1/mailboxes/scout/lease", "").problem(409, "pushed");
}

#[test]
fn reading_rows_ends_nothing_that_is_pushed() {
    let server = Server::start([Act::ReturnWhenTold(json!("first")), says("second")]);
    let site = declared(&server);
    let (scout, ada) = (site.party("scout"), site.party("ada"));
    let sent = [ask(&ada, "one"), ask(&ada, "two")];
    let found = rows(&scout, "scout", "", 2);
    let last = text(&found[1]["id"]);
    assert_eq!(scout.get(&format!("/workspaces/scout/activity?since_id={last}")).is(200).json(), json!([]));
    server.next();
    server.go_on();
    assert!(reply(&ada, &sent[0]).contains("<text>first</text>"));
    assert!(reply(&ada, &sent[1]).contains("<text>second</text>"));
}

#[test]
fn a_workspace_that_answers_by_its_row_is_not_asked_again() {
    let server = Server::start([Act::ReturnWhenTold(json!("too late")), says("next")]);
    let site = declared(&server);
    let (scout, ada) = (site.party("scout"), site.party("ada"));
    let sent = ask(&ada, "one");
    let id = text(&server.next().body["task_id"]).to_owned();
    // As the SDK's `reply` posts.
    scout.post(&format!("/workspaces/{id}/a2a"), &message("in time", "a1").to_string()).is(200);
    server.go_on();
    assert!(reply(&ada, &sent).contains("<text>in time</text>"));
    assert!(reply(&ada, &ask(&ada, "two")).contains("<text>next</text>"));
    assert_eq!(fault_count(&ada, &sent), 0);
}

fn fault_count(ada: &Who, sent: &Answer) -> usize {
    let known = ada.get(&format!("/v1/messages/{}", text(&sent.json()["id"]))).is(200).json();
    known["replies"].as_array().unwrap().iter().filter(|reply| !reply["fault"].is_null()).count()
}
