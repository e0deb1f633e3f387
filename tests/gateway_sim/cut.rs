//! Requests that are dropped after any number of polls. A durable change has happened, or happens; one that is not
//! durable has not; and a repeated request has its effect once. The same holds for a process that is killed there.

use axum::http::Method;
use serde_json::json;

use crate::site::{Call, Site, WORKER, answer, ask, text};

/// More polls than any request needs.
const MOST: usize = 200;

/// Drops a request after 0, 1, 2… polls until it is answered; `cut` gets the number, and says whether it was.
pub(crate) fn everywhere(mut cut: impl FnMut(usize) -> bool) {
    for polls in 0..MOST {
        if cut(polls) {
            assert!(polls > 0, "a request that is never polled is answered");
            return;
        }
    }
    panic!("a request needs more than {MOST} polls");
}

/// Counts a question in the mailbox.
fn times(site: &Site, number: usize) -> usize {
    let has = |item: &&serde_json::Value| text(&item["envelope"]).contains(&format!(">{number}</ask>"));
    site.all().iter().filter(has).count()
}

#[test]
fn a_message_whose_sender_hangs_up_is_sent_once() {
    let site = Site::new();
    everywhere(|polls| {
        let key = format!("k{polls}");
        let done = site.cut("ada", "/v1/messages", Some(&key), &ask(polls), polls);
        // A process that is killed here, and one that goes on.
        for site in [&site.killed(), &site] {
            assert!(times(site, polls) <= 1, "after {polls} polls");
            let first = text(&site.post("ada", "/v1/messages", Some(&key), &ask(polls)).is(202)["id"]);
            let again = text(&site.post("ada", "/v1/messages", Some(&key), &ask(polls)).is(202)["id"]);
            assert_eq!((&first, times(site, polls)), (&again, 1), "after {polls} polls");
            site.post("ada", "/v1/messages", Some(&key), &ask(polls + 1)).is(409);
        }
        done.is_some()
    });
}

#[test]
fn a_question_of_an_operator_who_hangs_up_is_given_up() {
    let site = Site::new();
    // No answer comes, so that each of these hangs up.
    for polls in 0..40 {
        assert!(site.cut("boss", "/v1/admin/ask?client=ada", None, &ask(polls), polls).is_none(), "{polls}");
        site.kit().settle();
        let open = site.get("boss", "/v1/admin/conversations?state=open&listener=worker").is(200);
        assert_eq!(open["items"], json!([]), "after {polls} polls");
        assert!(site.lease("{}").is_empty(), "after {polls} polls");
    }
}

#[test]
fn a_message_without_a_key_is_sent_once_or_not_at_all() {
    let site = Site::new();
    everywhere(|polls| {
        let done = site.cut("ada", "/v1/messages", None, &ask(polls), polls);
        let sent = times(&site, polls);
        assert!(sent <= 1 && (done.is_none() || sent == 1), "{sent} after {polls} polls");
        assert_eq!(times(&site.killed(), polls), sent, "what has happened is durable, after {polls} polls");
        done.is_some()
    });
}

#[test]
fn a_reply_whose_listener_hangs_up_reaches_its_caller_once() {
    let site = Site::new();
    everywhere(|polls| {
        let sent = site.ask(polls);
        let item = site.lease("{}").remove(0);
        let path = format!("/v1/messages/{}/reply", text(&item["id"]));
        let done = site.cut("worker", &path, None, &answer("one"), polls);
        for site in [&site.killed(), &site] {
            let replies = || site.sent(&sent)["replies"].as_array().unwrap().len();
            assert!(replies() <= 1, "after {polls} polls");
            site.post("worker", &path, None, &answer("one")).is(202);
            site.kit().settle();
            assert_eq!(replies(), 1, "after {polls} polls: {}", site.sent(&sent));
            site.post("worker", &path, None, &answer("two")).is(409);
            let receipt = json!({ "receipt": item["receipt"] }).to_string();
            let ack = format!("{WORKER}/messages/{}/ack", text(&item["id"]));
            assert_eq!(site.post("worker", &ack, None, &receipt).status.as_u16(), 204);
        }
        done.is_some()
    });
    assert_eq!(site.metric("systole_gateway_waiting"), 0);
}

#[test]
fn an_end_without_a_reply_happens_once() {
    for verb in ["ack", "term"] {
        let site = Site::new();
        everywhere(|polls| {
            let sent = site.ask(polls);
            let item = site.lease("{}").remove(0);
            let path = format!("{WORKER}/messages/{}/{verb}", text(&item["id"]));
            let receipt = json!({ "receipt": item["receipt"] }).to_string();
            let done = site.cut("worker", &path, None, &receipt, polls);
            for site in [&site.killed(), &site] {
                assert_eq!(site.post("worker", &path, None, &receipt).status.as_u16(), 204, "{verb} after {polls}");
                site.kit().settle();
                let known = site.sent(&sent);
                assert_eq!(known["replies"].as_array().unwrap().len(), 1, "{verb} after {polls} polls: {known}");
                assert_eq!(text(&known["reply"]["fault"]), "silent", "{known}");
            }
            done.is_some()
        });
    }
}

#[test]
fn a_lease_that_nobody_hears_of_ends() {
    let site = Site::new();
    everywhere(|polls| {
        let sent = site.ask(polls);
        let done = site.cut("worker", &format!("{WORKER}/lease"), None, r#"{"visibility":30}"#, polls);
        // Whether leased or not, 30 s later it can be leased. The same where the process is killed.
        for site in [&site.killed(), &site] {
            site.kit().advance(std::time::Duration::from_secs(31));
            let item = site.lease("{}").remove(0);
            site.post("worker", &format!("/v1/messages/{}/reply", text(&item["id"])), None, &answer("one")).is(202);
            site.kit().settle();
            assert_eq!(text(&site.sent(&sent)["state"]), "answered", "after {polls} polls");
        }
        done.is_some()
    });
}

#[test]
fn a_hold_that_nobody_hears_of_can_be_answered() {
    let site = Site::new();
    everywhere(|polls| {
        let sent = site.ask(polls);
        let id = text(&site.all().pop().unwrap()["id"]);
        let done = site.cut("worker", &format!("{WORKER}/messages/{id}/hold"), None, "{}", polls);
        for site in [&site.killed(), &site] {
            site.post("worker", &format!("/v1/messages/{id}/reply"), None, &answer("one")).is(202);
            site.kit().settle();
            assert_eq!(text(&site.sent(&sent)["state"]), "answered", "after {polls} polls");
        }
        done.is_some()
    });
}

#[test]
fn nobody_sees_a_task_that_a_crash_could_undo() {
    const TASKS: &str = "/v1/jobs/reviews/tasks";
    let body = r#"{"description":"Read."}"#;
    let submit = Call { who: "ada", method: Method::POST, path: TASKS, key: Some("k"), body };
    let list = Call { who: "worker", method: Method::GET, path: TASKS, key: None, body: "" };
    let tasks = |page: &serde_json::Value| page["items"].as_array().unwrap().len();
    let mut seen = 0;
    for polls in 0..20 {
        let (page, crashed) = Site::new().beside(&submit, polls, &list);
        let shown = tasks(&page.is(200));
        assert!(shown <= tasks(&crashed.get("worker", TASKS).is(200)), "a list after {polls} polls");
        seen += shown;
        let (again, crashed) = Site::new().beside(&submit, polls, &submit);
        assert!(again.status.is_success(), "{again:?}");
        assert_eq!(tasks(&crashed.get("worker", TASKS).is(200)), 1, "a repeated key after {polls} polls");
    }
    assert!(seen > 0, "it was seen while its submission was in flight");
}
