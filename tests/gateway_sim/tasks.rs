//! Jobs and tasks: the calls, their permissions, and the state after a kill.

use serde_json::{Value, json};

use crate::kit::{Answer, Site, Who, text};

/// A writer, a remote reviewer that owns a job and registers others, and a guest without permissions.
const OFFICE: &str = r#"organism: { name: office }
durability: process
gateway: { listen: "127.0.0.1:0", requests: 1000000 }
clients:
  - { name: writer, calls: ["{urn:systole:task:v1}submit", "{urn:systole:task:v1}cancel", "{urn:systole:task:v1}input", "{urn:systole:task:v1}find"] }
  - { name: guest }
listeners:
  - name: reviewer
    remote: { mode: poll }
    routing: addressed
    accepts: ["{urn:systole:task:v1}result", "{urn:systole:task:v1}event"]
    replies: ["{urn:systole:task:v1}noted"]
    calls: &moves
      - "{urn:systole:task:v1}submit"
      - "{urn:systole:task:v1}register"
      - "{urn:systole:task:v1}remove"
      - "{urn:systole:task:v1}accept"
      - "{urn:systole:task:v1}progress"
      - "{urn:systole:task:v1}artifact"
      - "{urn:systole:task:v1}input-required"
      - "{urn:systole:task:v1}complete"
      - "{urn:systole:task:v1}fail"
      - "{urn:systole:task:v1}reject"
  - name: editor
    remote: { mode: poll }
    routing: addressed
    accepts: ["{urn:systole:task:v1}result"]
    calls: *moves
  - name: reviews
    description: Reads drafts.
    job: { owner: reviewer, results: true }
  - name: jobs
    jobs: { results: true }
"#;

impl Who {
    fn put(&self, path: &str, body: &str) -> Answer {
        self.ask("PUT", path, &[], body)
    }

    fn submit(&self, job: &str, description: &str) -> String {
        let body = json!({ "description": description }).to_string();
        let answer = self.post(&format!("/v1/jobs/{job}/tasks"), &body).is(201);
        let id = text(&answer.json()["id"]).to_owned();
        assert_eq!(answer.header("location"), Some(&*format!("/v1/tasks/{id}")));
        id
    }

    fn act(&self, id: &str, verb: &str, body: Value) -> Answer {
        self.post(&format!("/v1/tasks/{id}/{verb}"), &body.to_string())
    }

    fn task(&self, id: &str) -> Value {
        self.get(&format!("/v1/tasks/{id}")).is(200).json()
    }
}

fn status(answer: &Answer) -> String {
    text(&answer.json()["status"]).to_owned()
}

#[test]
fn a_task_goes_its_way_and_each_call_says_how_far_it_is() {
    let site = Site::of(OFFICE);
    let (writer, reviewer) = (site.party("writer"), site.party("reviewer"));
    let id = writer.submit("reviews", "Read <chapter> 3.");
    let list = reviewer.get("/v1/jobs/reviews/tasks").is(200).json();
    assert_eq!((text(&list["items"][0]["id"]), text(&list["items"][0]["agent"])), (&*id, "writer"));
    let page = reviewer.get("/v1/jobs/reviews/inbox.md").is(200);
    assert_eq!(page.header("content-type"), Some("text/markdown; charset=utf-8"));
    assert!(page.body.contains(&id) && page.body.contains("Read &lt;chapter&gt; 3."), "{}", page.body);

    assert_eq!(status(&reviewer.act(&id, "accept", json!({})).is(200)), "accepted");
    assert_eq!(status(&reviewer.act(&id, "progress", json!({ "percent": 50, "text": "half" })).is(200)), "accepted");
    reviewer.act(&id, "artifact", json!({ "name": "typos", "text": "teh" })).is(200);
    reviewer.act(&id, "artifact", json!({ "name": "typos", "text": ", hte", "append": true, "last": true })).is(200);
    assert_eq!(status(&reviewer.act(&id, "input-required", json!({ "text": "US?" })).is(200)), "input-required");
    assert_eq!(writer.task(&id)["questions"][0]["question"], "US?");
    assert_eq!(status(&writer.act(&id, "input", json!({ "text": "British" })).is(200)), "accepted");
    assert_eq!(status(&reviewer.act(&id, "complete", json!({ "text": "Two typos." })).is(200)), "completed");
    let task = writer.task(&id);
    assert_eq!((&task["result"], &task["attempts"]), (&json!("Two typos."), &json!(1)), "{task}");
    assert_eq!(task["artifacts"][0]["text"], "teh, hte", "{task}");
    assert_eq!(writer.get("/v1/jobs/reviews/tasks").json()["items"], json!([]), "it has ended");
    let ended = writer.get("/v1/jobs/reviews/tasks?status=completed").json();
    assert_eq!(text(&ended["items"][0]["id"]), id);
}

#[test]
fn only_those_whom_it_concerns_and_whose_contract_says_so_may() {
    let site = Site::of(OFFICE);
    let (writer, reviewer, editor) = (site.party("writer"), site.party("reviewer"), site.party("editor"));
    let (guest, boss) = (site.party("guest"), site.admin());
    let id = writer.submit("reviews", "Read.");
    writer.act(&id, "accept", json!({})).problem(403, "forbidden");
    for act in ["accept", "complete"] {
        let none = "01890000-0000-7000-8000-000000000000";
        let [theirs, none] = [&*id, none].map(|id| editor.act(id, act, json!({})).problem(404, "not_found"));
        assert_eq!(
            text(&theirs["detail"]).replace(&id, ""),
            text(&none["detail"]).replace("01890000-0000-7000-8000-000000000000", "")
        );
    }
    guest.post("/v1/jobs/reviews/tasks", r#"{"description":"x"}"#).problem(403, "forbidden");
    boss.act(&id, "complete", json!({})).problem(403, "forbidden");
    for stranger in [&editor, &guest] {
        stranger.get(&format!("/v1/tasks/{id}")).problem(404, "not_found");
        stranger.get("/v1/jobs/reviews/inbox.md").problem(404, "not_found");
    }
    assert_eq!(editor.get("/v1/jobs/reviews/tasks").is(200).json()["items"], json!([]), "it may submit");
    guest.get("/v1/jobs/reviews/tasks").problem(404, "not_found");
    assert_eq!(boss.task(&id)["status"], "pending", "who runs the organism may look");
    boss.get("/v1/jobs/reviews/inbox.md").is(200);
    // Only the submitter cancels a task.
    assert_eq!(status(&writer.act(&id, "cancel", json!({ "text": "no more" })).is(200)), "cancelled");
    reviewer.act(&id, "complete", json!({})).problem(409, "transition");
    assert_eq!(writer.task(&id)["reason"], "no more");
}

#[test]
fn no_task_of_a_paused_job_begins_and_those_that_have_go_on() {
    let site = Site::of(OFFICE);
    let (writer, reviewer, boss) = (site.party("writer"), site.party("reviewer"), site.admin());
    reviewer.put("/v1/jobs/proofs", r#"{"description":"Reads proofs."}"#).is(200);
    // The listener of a job that has registered is the registry.
    for (listener, job) in [("reviews", "reviews"), ("jobs", "proofs")] {
        let pause = |act: &str| boss.post("/v1/admin/acts", &json!({ "act": act, "listener": listener }).to_string());
        let begun = writer.submit(job, "Read.");
        reviewer.act(&begun, "accept", json!({})).is(200);
        pause("pause").is(200);
        let waits = writer.submit(job, "Read more.");
        reviewer.act(&waits, "accept", json!({})).problem(409, "paused");
        writer.act(&waits, "accept", json!({})).problem(403, "forbidden");
        reviewer.act("67e55044-10b1-426f-9247-bb680e5fe0c8", "accept", json!({})).problem(404, "not_found");
        assert_eq!(writer.task(&waits)["status"], "pending");
        assert_eq!(status(&reviewer.act(&begun, "complete", json!({ "text": "Done." })).is(200)), "completed");
        pause("resume").is(200);
        reviewer.act(&waits, "accept", json!({})).is(200);
    }
}

#[test]
fn what_is_wrong_with_a_task_is_told_and_nothing_is_kept_of_it() {
    let site = Site::of(OFFICE);
    let (writer, reviewer) = (site.party("writer"), site.party("reviewer"));
    let submit = |body: &str| writer.post("/v1/jobs/reviews/tasks", body);
    submit("{}").problem(400, "bad_request");
    submit(r#"{"description":"x","from":"reviewer"}"#).problem(400, "bad_request");
    submit(r#"{"description":" "}"#).problem(422, "task");
    submit(r#"{"description":"\u0001"}"#).problem(422, "task");
    submit(r#"{"description":"x","job":"a b"}"#).problem(422, "task");
    submit(r#"{"description":"x","deadline":"noon"}"#).problem(400, "bad_request");
    submit(r#"{"description":"x","deadline":"2001-01-01T00:00:00Z"}"#).problem(422, "task");
    submit(r#"{"description":"x","context":{"xml":"<a>"}}"#).problem(400, "bad_request");
    submit(r#"{"description":"x","watched":true}"#).problem(422, "task");
    submit(&json!({ "description": "x".repeat(65 << 10) }).to_string()).problem(422, "task");
    // Only announced.
    let length = (2 << 20).to_string();
    writer.ask("POST", "/v1/jobs/reviews/tasks", &[("Content-Length", &length)], "{").problem(413, "too_large");
    writer.post("/v1/jobs/a%20b/tasks", r#"{"description":"x"}"#).problem(404, "not_found");
    assert_eq!(writer.get("/v1/jobs/reviews/tasks").json()["items"], json!([]));

    let id = writer.submit("reviews", "Read.");
    reviewer.act(&id, "progress", json!({ "percent": 10 })).problem(409, "transition");
    reviewer.act(&id, "fail", json!({})).problem(400, "bad_request");
    reviewer.act(&id, "reject", json!({ "text": "" })).problem(422, "task");
    reviewer.act("x", "accept", json!({})).problem(404, "not_found");
    reviewer.act("67e55044-10b1-426f-9247-bb680e5fe0c8", "accept", json!({})).problem(404, "not_found");
    reviewer.post(&format!("/v1/tasks/{id}/accept?force=1"), "").problem(400, "bad_request");
    assert_eq!(writer.task(&id)["attempts"], 0);
    reviewer.act(&id, "accept", json!({})).is(200);
    reviewer.act(&id, "progress", json!({ "percent": 101 })).problem(422, "task");
    reviewer.act(&id, "artifact", json!({ "name": "", "text": "x" })).problem(422, "task");
}

#[test]
fn the_same_key_submits_once() {
    let site = Site::of(OFFICE);
    let writer = site.party("writer");
    let keyed = |text: &str| {
        let body = json!({ "description": text }).to_string();
        writer.ask("POST", "/v1/jobs/reviews/tasks", &[("Idempotency-Key", "k")], &body)
    };
    let first = keyed("Read.").is(201).json();
    let again = keyed("Read.").is(200).json();
    assert_eq!((&again["id"], &again["new"]), (&first["id"], &json!(false)));
    keyed("Write.").problem(409, "key_taken");
}

#[test]
fn tasks_are_paged_in_order_of_arrival() {
    let site = Site::of(OFFICE);
    let (writer, reviewer) = (site.party("writer"), site.party("reviewer"));
    let ids: Vec<_> = (0..10).map(|number| writer.submit("reviews", &format!("Read {number}."))).collect();
    let (mut seen, mut after) = (Vec::new(), 0);
    loop {
        let page = reviewer.get(&format!("/v1/jobs/reviews/tasks?limit=3&after={after}")).is(200).json();
        let items = page["items"].as_array().unwrap();
        seen.extend(items.iter().map(|item| text(&item["id"]).to_owned()));
        if page["has_more"] == false {
            break;
        }
        assert_eq!(items.len(), 3);
        after = page["next"].as_u64().unwrap();
    }
    assert_eq!(seen, ids);
    reviewer.get("/v1/jobs/reviews/tasks?status=done").problem(400, "bad_request");
}

#[test]
fn a_job_registers_takes_what_waited_for_it_and_is_its_owners() {
    let site = Site::of(OFFICE);
    let (writer, reviewer, editor) = (site.party("writer"), site.party("reviewer"), site.party("editor"));
    let id = writer.submit("layout", "Set it.");
    reviewer.get("/v1/jobs/nowhere/tasks").problem(404, "not_found");
    let card = r#"{"description":"Sets pages.","skills":["set"]}"#;
    writer.put("/v1/jobs/layout", card).problem(403, "forbidden");
    assert_eq!(editor.put("/v1/jobs/layout", card).is(200).json()["skills"], json!(["set"]));
    // A job of another principal, a listener with an inbox, and another principal.
    let taken = ["layout", "reviews", "writer"]
        .map(|name| reviewer.put(&format!("/v1/jobs/{name}"), card).problem(409, "taken"));
    assert!(taken.iter().all(|problem| *problem == taken[0]), "the answers tell who has the name: {taken:?}");
    editor.put("/v1/jobs/more", r#"{"description":"","skills":[" "]}"#).problem(422, "task");
    let found = |query: &str| {
        let jobs = writer.get(&format!("/v1/jobs{query}")).is(200).json();
        jobs["items"].as_array().unwrap().iter().map(|job| text(&job["name"]).to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(found(""), ["layout", "reviews"]);
    assert_eq!(found("?skill=set"), ["layout"]);
    assert_eq!(found("?limit=1&after=layout"), ["reviews"]);
    editor.act(&id, "accept", json!({})).is(200);
    assert_eq!(editor.put("/v1/jobs/layout", card).is(200).status, 200);
    assert_eq!(writer.task(&id)["status"], "pending", "it was given back");
    reviewer.ask("DELETE", "/v1/jobs/layout", &[], "").problem(404, "not_found");
    editor.ask("DELETE", "/v1/jobs/layout", &[], "").is(204);
    editor.ask("DELETE", "/v1/jobs/layout", &[], "").problem(404, "not_found");
    assert_eq!(found(""), ["reviews"]);
}

#[test]
fn a_result_reaches_a_submitter_elsewhere_and_a_kill_loses_nothing() {
    let mut site = Site::of(OFFICE);
    let (reviewer, editor) = (site.token("reviewer"), site.token("editor"));
    let registered = r#"{"description":"Sets pages."}"#;
    site.who(&editor).put("/v1/jobs/layout", registered).is(200);
    let id = site.who(&reviewer).submit("layout", "Set it.");
    site.who(&editor).act(&id, "accept", json!({})).is(200);
    site.kill();
    site.start();
    let (reviewer, editor) = (site.who(&reviewer), site.who(&editor));
    assert_eq!(editor.task(&id)["status"], "accepted");
    assert_eq!(editor.put("/v1/jobs/layout", registered).is(200).status, 200, "it is still the editor's");
    editor.act(&id, "complete", json!({ "text": "Set." })).is(200);
    let page = reviewer.get("/v1/mailboxes/reviewer/messages?wait=60").json();
    let envelope = text(&page["items"][0]["envelope"]);
    assert!(envelope.contains(&id) && envelope.contains("<text>Set.</text>"), "{envelope}");
}

#[test]
fn who_has_nothing_to_do_with_a_job_does_not_learn_that_it_is_there() {
    let site = Site::of(OFFICE);
    let (writer, reviewer, guest) = (site.party("writer"), site.party("reviewer"), site.party("guest"));
    reviewer.put("/v1/jobs/layout", r#"{"description":"Sets pages."}"#).is(200);
    writer.submit("reviews", "Read.");
    // What it may call says what it may learn: a submitter may ask for a job by its name, and one that finds may list.
    for (who, may_know) in [(&guest, false), (&site.party("editor"), true)] {
        for (method, call) in [("GET", "inbox.md"), ("GET", "tasks"), ("DELETE", "")] {
            let told = ["reviews", "layout", "nothing"].map(|job| {
                let path = format!("/v1/jobs/{job}/{call}");
                let answer = who.ask(method, path.trim_end_matches('/'), &[], "");
                (answer.status, answer.body.replace(job, "JOB"))
            });
            let alike = told[0] == told[2] && told[1] == told[2];
            assert_eq!(alike, !(may_know && call == "tasks"), "{method} {call}: {told:?}");
        }
    }
}
