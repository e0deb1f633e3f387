//! Answers reach the sender of the row that they are for, for any handler of an agent.

use serde_json::Value;

use super::office::{SCOUT, UUID, a2a, answer, message, notify, office, reply, rows, said, texts};
use crate::kit::{Answer, Site, Who, text};

/// Rows of scout behind a row, once there are that many; this is the SDK's poll.
fn behind(scout: &Who, row: &Value, count: usize) -> Vec<Value> {
    rows(scout, SCOUT, &format!("type=a2a_receive&limit=100&since_id={}", text(&row["id"])), count)
}

fn say(who: &Who, words: &str) -> Answer {
    who.post("/v1/messages", &said("scout", words)).is(202)
}

/// The first row of a workspace with a text of another party.
fn first(scout: &Who, from: &Who, words: &str) -> (Answer, Value) {
    let sent = say(from, words);
    (sent, rows(scout, SCOUT, "", 1).remove(0))
}

/// Checks that the listener ended a message without an answer.
fn is_silent(who: &Who, sent: &Answer) {
    let reply = reply(who, sent);
    assert!(reply.contains("silent") && !reply.contains("<text>"), "{reply}");
}

fn people(site: &Site) -> (Who, Who, Who) {
    (site.party("scout"), site.party("ada"), site.party("bob"))
}

#[test]
fn two_people_are_answered_each_at_their_own_row() {
    let site = office();
    let (scout, ada, bob) = people(&site);
    let (first, _) = first(&scout, &ada, "one");
    let second = say(&bob, "two");
    let page = rows(&scout, SCOUT, "", 2);
    // In any order, and in one page.
    answer(&scout, &page[1], "to bob").is(200);
    answer(&scout, &page[0], "to ada").is(200);
    assert!(reply(&ada, &first).contains("<text>to ada</text>"));
    assert!(reply(&bob, &second).contains("<text>to bob</text>"));
    assert_eq!((texts(&page), text(&page[0]["data"]["source"])), (vec!["one", "two"], "canvas_user"));
    assert_eq!((text(&page[1]["data"]["peer_name"]), text(&page[1]["data"]["peer_role"])), ("bob", "person"));
    notify(&scout, SCOUT, "to nobody").problem(409, "nobody_waits");
}

#[test]
fn a_handler_that_passes_over_a_row_answers_the_next_person_alone() {
    let site = office();
    let (scout, ada, bob) = people(&site);
    let (of_ada, one) = first(&scout, &ada, "one");
    let of_bob = say(&bob, "two");
    let two = behind(&scout, &one, 1).remove(0);
    is_silent(&ada, &of_ada);
    // The answer to ada may come as late as it likes: it is no answer to bob.
    notify(&scout, SCOUT, "for ada alone").problem(409, "nobody_waits");
    answer(&scout, &two, "for bob alone").is(200);
    assert!(reply(&bob, &of_bob).contains("<text>for bob alone</text>"));
}

#[test]
fn an_admin_reads_rows_and_answers_none() {
    let site = office();
    let (scout, ada, _) = people(&site);
    let (sent, row) = first(&scout, &ada, "one");
    let admin = site.admin();
    assert_eq!(texts(&rows(&admin, SCOUT, "", 1)), ["one"]);
    notify(&admin, SCOUT, "from elsewhere").problem(403, "forbidden");
    answer(&scout, &row, "my own").is(200);
    assert!(reply(&ada, &sent).contains("<text>my own</text>"));
}

#[test]
fn an_answer_said_twice_reaches_nobody_else() {
    let site = office();
    let (scout, ada, bob) = people(&site);
    let (of_ada, one) = first(&scout, &ada, "one");
    answer(&scout, &one, "for ada").is(200);
    notify(&scout, SCOUT, "for ada, again").problem(409, "nobody_waits");
    let of_bob = say(&bob, "two");
    let two = behind(&scout, &one, 1).remove(0);
    notify(&scout, SCOUT, "for ada, late").problem(409, "nobody_waits");
    answer(&scout, &two, "for bob").is(200);
    answer(&scout, &two, "for bob, another").problem(409, "settled");
    assert!(reply(&ada, &of_ada).contains("<text>for ada</text>"));
    assert!(reply(&bob, &of_bob).contains("<text>for bob</text>"));
}

#[test]
fn two_questions_of_a_person_are_shown_one_after_the_other() {
    let site = office();
    let (scout, ada, bob) = people(&site);
    let (first, one) = first(&scout, &ada, "one");
    let boss = site.admin();
    // Conversations have no order among each other: the second question is a row before the third is sent.
    let second = say(&ada, "two");
    rows(&boss, SCOUT, "", 2);
    let third = say(&bob, "three");
    // Behind the second question no row is shown, so that no cursor passes it.
    rows(&boss, SCOUT, "", 3);
    assert_eq!(texts(&rows(&scout, SCOUT, "", 1)), ["one"]);
    answer(&scout, &one, "to one").is(200);
    let next = behind(&scout, &one, 2);
    for (row, words) in next.iter().zip(["to two", "to three"]) {
        answer(&scout, row, words).is(200);
    }
    for (who, sent, words) in [(&ada, &first, "to one"), (&ada, &second, "to two"), (&bob, &third, "to three")] {
        assert!(reply(who, sent).contains(&format!("<text>{words}</text>")), "{words}");
    }
}

#[test]
fn a_row_that_was_passed_over_makes_the_next_one_of_that_person_be_named() {
    let site = office();
    let (scout, ada, _) = people(&site);
    let (first, one) = first(&scout, &ada, "one");
    let second = say(&ada, "two");
    let two = behind(&scout, &one, 1).remove(0);
    is_silent(&ada, &first);
    notify(&scout, SCOUT, "to one or to two").problem(409, "nobody_waits");
    answer(&scout, &one, "to one").problem(409, "nobody_waits");
    answer(&scout, &two, "to two").is(200);
    assert!(reply(&ada, &second).contains("<text>to two</text>"));
}

#[test]
fn two_polls_at_once_leave_no_answer_for_the_wrong_question() {
    let site = office();
    let (scout, ada, _) = people(&site);
    let (first, one) = first(&scout, &ada, "one");
    let again = rows(&scout, SCOUT, "", 1).remove(0);
    let second = say(&ada, "two");
    answer(&scout, &one, "to one").is(200);
    let two = behind(&scout, &one, 1).remove(0);
    // The other copy of the agent answers the first question, late.
    answer(&scout, &again, "to one, by the other").problem(409, "nobody_waits");
    answer(&scout, &two, "to two").is(200);
    assert!(reply(&ada, &first).contains("<text>to one</text>"));
    assert!(reply(&ada, &second).contains("<text>to two</text>"));
}

#[test]
fn a_start_in_mid_handler_loses_no_address_and_guesses_nothing() {
    let mut site = office();
    let (scout, ada, bob) = people(&site);
    let (of_ada, one) = first(&scout, &ada, "one");
    let of_bob = say(&bob, "two");
    let two = rows(&scout, SCOUT, "", 2).pop().unwrap();
    site.kill();
    site.start();
    answer(&scout, &one, "for ada").problem(409, "nobody_waits");
    answer(&scout, &two, "for bob").is(200);
    assert!(reply(&bob, &of_bob).contains("<text>for bob</text>"));
    let one = rows(&scout, SCOUT, "", 2).remove(0);
    answer(&scout, &one, "for ada").is(200);
    assert!(reply(&ada, &of_ada).contains("<text>for ada</text>"));
}

#[test]
fn two_questions_of_a_peer_are_answered_each_at_its_own_row() {
    let site = office();
    let (scout, other) = (site.party("scout"), site.party(UUID));
    a2a(&other, SCOUT, "one", "m1").is(200);
    let one = rows(&scout, SCOUT, "", 1).remove(0);
    a2a(&other, SCOUT, "two", "m2").is(200);
    let two = rows(&scout, SCOUT, "", 2).pop().unwrap();
    answer(&scout, &two, "to two").is(200);
    rows(&other, UUID, "", 1);
    answer(&scout, &one, "to one").is(200);
    assert_eq!(texts(&rows(&other, UUID, "", 2)), ["to two", "to one"]);
    // A row of another workspace looks like one that never was.
    let body = message("x", "m3").to_string();
    let path = |id: &str| format!("/workspaces/{id}/a2a");
    let theirs = other.post(&path(text(&one["id"])), &body).problem(404, "not_found");
    assert_eq!(other.post(&path("00000000-0000-4000-8000-000000000000"), &body).problem(404, "not_found"), theirs);
}

#[test]
fn a_row_of_a_peer_that_was_passed_over_ends() {
    let site = office();
    let (scout, other) = (site.party("scout"), site.party(UUID));
    a2a(&other, SCOUT, "one", "m1").is(200);
    let one = rows(&scout, SCOUT, "", 1).remove(0);
    behind(&scout, &one, 0);
    answer(&scout, &one, "late").problem(409, "settled");
    let told = rows(&other, UUID, "type=error", 1).remove(0);
    assert!(text(&told["data"]["text"]).contains("silen") || text(&told["status"]) == "error");
}

#[test]
fn whoever_looks_something_up_passes_over_nothing() {
    let site = office();
    let (scout, ada, _) = people(&site);
    let (sent, one) = first(&scout, &ada, "one");
    let boss = site.admin();
    let since = format!("since_id={}", text(&one["id"]));
    rows(&boss, SCOUT, &since, 0);
    for filter in ["since_secs=60", "before_ts=2020-01-01T00:00:00Z", &format!("peer_id={UUID}"), "type=error"] {
        rows(&scout, SCOUT, &format!("{since}&{filter}"), 0);
    }
    answer(&scout, &one, "still waits").is(200);
    assert!(reply(&ada, &sent).contains("<text>still waits</text>"));
}

#[test]
fn two_agents_that_always_answer_come_to_an_end() {
    let site = office();
    let (scout, other) = (site.party("scout"), site.party(UUID));
    a2a(&scout, UUID, "ping", "m1").is(200);
    let asked = rows(&other, UUID, "", 1).remove(0);
    answer(&other, &asked, "pong").is(200);
    let answered = rows(&scout, SCOUT, "", 1).remove(0);
    answer(&scout, &answered, "ping").problem(409, "settled");
    behind(&scout, &answered, 0);
    rows(&other, UUID, &format!("since_id={}", text(&asked["id"])), 0);
}

/// Ada's row is shown as the one that `notify` answers. Then something happens, and another start. Then bob sends a
/// text: a late answer to ada's row, which names no row, must not reach him. So many rows are `left` then.
fn late_answer(left: usize, between: impl Fn(&mut Site, &Who, &Value)) {
    let mut site = office();
    let (scout, ada, bob) = people(&site);
    // A copy of the agent has this row when the organism ends, and answers it late.
    let (_, one) = first(&scout, &ada, "one");
    assert_eq!(text(&one["data"]["source"]), "canvas_user", "{one}");
    between(&mut site, &scout, &one);
    site.start();
    let of_bob = say(&bob, "two");
    let two = rows(&scout, SCOUT, "", left).pop().unwrap();
    assert_eq!(text(&two["data"]["text"]), "two");
    assert_eq!(text(&two["data"]["source"]), "peer_agent", "{two}");
    notify(&scout, SCOUT, "CONFIDENTIAL for ada").problem(409, "nobody_waits");
    answer(&scout, &two, "for bob").is(200);
    assert!(reply(&bob, &of_bob).contains("<text>for bob</text>"));
}

/// Rewrites the configuration line by line.
fn edit(site: &Site, line: impl Fn(&str) -> Option<String>) {
    let file = site.folder.join("organism.yaml");
    let organism = std::fs::read_to_string(&file).unwrap();
    let lines: Vec<String> = organism.lines().filter_map(line).collect();
    std::fs::write(&file, lines.join("\n") + "\n").unwrap();
}

fn without_ada(line: &str) -> Option<String> {
    (!line.contains("name: ada")).then(|| line.to_owned())
}

#[test]
fn an_answer_to_somebody_who_has_gone_reaches_nobody_else() {
    late_answer(2, |site, _, _| {
        site.stop();
        edit(site, without_ada);
    });
}

#[test]
fn an_answer_to_somebody_who_is_a_listener_now_reaches_nobody_else() {
    late_answer(2, |site, _, _| {
        site.stop();
        edit(site, without_ada);
        let ada =
            "  - { name: ada, remote: { mode: poll }, routing: addressed, accepts: [\"{urn:systole:chat:v1}said\"] }";
        edit(site, |line| Some(if line == "listeners:" { format!("{line}\n{ada}") } else { line.to_owned() }));
    });
}

#[test]
fn an_answer_to_a_message_that_was_deleted_reaches_nobody_else() {
    late_answer(1, |site, scout, one| {
        scout.post(&format!("/v1/messages/{}/fail", text(&one["id"])), r#"{"message":"no"}"#).is(202);
        scout.until("/v1/mailboxes/scout/dead", |dead| !dead["items"].as_array().unwrap().is_empty());
        scout.ask("DELETE", "/v1/mailboxes/scout/dead", &[], "").is(200);
        site.kill();
    });
}

#[test]
fn the_person_whom_an_unaddressed_answer_is_for_stays_the_same() {
    let mut site = office();
    let (scout, ada, bob) = people(&site);
    let (sent, one) = first(&scout, &ada, "one");
    notify(&scout, SCOUT, "first").is(200);
    assert!(reply(&ada, &sent).contains("<text>first</text>"));
    site.kill();
    site.start();
    let boss = site.admin();
    say(&bob, "two");
    boss.until(&format!("/workspaces/{SCOUT}/activity"), |rows| texts(rows.as_array().unwrap()).contains(&"two"));
    let sent = say(&ada, "three");
    let page = behind(&scout, &one, 2);
    let sources: Vec<&str> = page.iter().map(|row| text(&row["data"]["source"])).collect();
    assert_eq!((texts(&page), sources), (vec!["two", "three"], vec!["peer_agent", "canvas_user"]));
    notify(&scout, SCOUT, "third").is(200);
    assert!(reply(&ada, &sent).contains("<text>third</text>"));
}
