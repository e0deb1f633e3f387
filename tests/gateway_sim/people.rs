//! Questions to people over HTTP: rights, claims, answers, races, and the state after a kill.

use std::future::{Future, poll_fn};
use std::task::Poll;
use std::time::Duration;

use serde_json::{Value, json};
use systole::gateway::PrincipalKind;
use systole::operations::{Answerer, QuestionError};
use systole::vocab::Name;

use crate::kit::{Answer, Site, Who, envelope, text};

/// Two listeners with people of their own; the first has a team, and may call an echo.
const COURT: &str = r#"organism: { name: court }
durability: process
gateway: { listen: "127.0.0.1:0", requests: 1000000 }
teams: { jury: [ben, carl] }
clients:
  - { name: clerk, calls: ["{urn:t}ask", "{urn:t}order"] }
listeners:
  - name: judge
    human: { people: [amy, jury] }
    schemas: [t.xsd]
    accepts: ["{urn:t}ask"]
    replies: ["{urn:t}answer"]
    calls: ["{urn:t}note"]
  - name: chief
    human: { people: [zoe, operator] }
    accepts: ["{urn:t}order"]
    replies: ["{urn:t}answer"]
  - name: parrot
    echo: true
    accepts: ["{urn:t}note"]
"#;

const ANSWER: &str = "<answer xmlns='urn:t'>guilty</answer>";

/// A running organism, in which the clerk has asked the judge.
fn asked() -> (Site, String) {
    let site = Site::of(COURT);
    let sent = site.party("clerk").post("/v1/messages", &envelope("<ask xmlns=\"urn:t\">1</ask>")).is(202).json();
    (site, text(&sent["id"]).to_owned())
}

fn person(site: &Site, name: &str) -> Who {
    site.who(&site.token_of(name, PrincipalKind::Person))
}

fn open(who: &Who) -> Vec<Value> {
    who.get("/v1/questions").is(200).json()["items"].as_array().unwrap().clone()
}

/// The one question that the party sees.
fn only(who: &Who) -> String {
    let page = who.until("/v1/questions", |page| page["items"].as_array().is_some_and(|items| items.len() == 1));
    text(&page["items"][0]["question"]).to_owned()
}

fn act(who: &Who, question: &str, act: &str, body: &str) -> Answer {
    who.post(&format!("/v1/questions/{question}/{act}"), body)
}

/// The state of the message that the clerk sent.
fn sent(site: &Site, id: &str) -> Value {
    site.party("clerk").get(&format!("/v1/messages/{id}")).is(200).json()
}

#[test]
fn a_person_sees_the_questions_that_it_may_answer_and_no_others() {
    let (site, _) = asked();
    let (amy, ben, zoe, admin) = (person(&site, "amy"), person(&site, "ben"), person(&site, "zoe"), site.admin());
    let question = only(&amy);
    assert_eq!([only(&ben), only(&admin)], [question.clone(), question.clone()]);
    assert!(open(&zoe).is_empty());
    let path = format!("/v1/questions/{question}");
    zoe.get(&path).problem(404, "not_found");
    for (verb, body) in [("claim", "{}"), ("release", "{}"), ("answer", ANSWER), ("decline", "{}")] {
        act(&zoe, &question, verb, body).problem(404, "not_found");
    }
    // An operator sees all, and answers those that are addressed to operators.
    assert_eq!(admin.get("/v1/questions").json()["waiting"], 0);
    act(&admin, &question, "answer", ANSWER).problem(403, "forbidden");
    let clerk = site.party("clerk");
    clerk.get("/v1/questions").problem(403, "forbidden");
    amy.post("/v1/messages", &envelope("<ask xmlns=\"urn:t\">1</ask>")).problem(403, "forbidden");
    amy.get("/v1/admin/conversations").problem(403, "forbidden");
    // Somebody whom the organism doesn't know any more has no token.
    person(&site, "stranger").get("/v1/questions").is(401);

    let seen = amy.get(&path).is(200).json();
    let addressed = (&seen["people"], &seen["operators"], text(&seen["from"]), text(&seen["listener"]));
    assert_eq!(addressed, (&json!(["amy", "ben", "carl"]), &json!(false), "clerk", "judge"));
    assert_eq!((text(&seen["state"]), &seen["cost"]["tokens"]), ("shown", &json!(0)));
    assert_eq!(text(&seen["text"]), "<ask xmlns=\"urn:t\">1</ask>");
    assert_eq!(text(&seen["answers"][0]["payload"]), "{urn:t}answer");
    assert!(text(&seen["answers"][0]["schema"]).contains("<xs:element name=\"answer\""), "{seen}");
}

#[test]
fn a_wrong_answer_is_refused_with_rule_place_and_example_and_the_question_stays() {
    let (site, _) = asked();
    let amy = person(&site, "amy");
    let question = only(&amy);
    for (entry, rule) in [
        ("<answer xmlns='urn:t' a='1'>x</answer>", "a"),
        ("<anwser/>", "anwser is neither a reply nor a call of judge: did you mean {urn:t}answer?"),
        ("   ", "there is no element in this"),
    ] {
        let refused = act(&amy, &question, "answer", entry).is(422).json();
        assert!(text(&refused["rule"]).contains(rule) && text(&refused["example"]).starts_with('<'), "{refused}");
    }
    let wrong = act(&amy, &question, "answer", "<note xmlns='urn:t' a='1'>x</note>").is(422).json();
    assert_eq!((&wrong["place"]["line"], text(&wrong["example"])), (&json!(1), "<note xmlns=\"urn:t\">text</note>"));
    let preview = act(&amy, &question, "preview", "```\n<answer>so</answer>\n```").is(200).json();
    assert!(text(&preview["preview"]).ends_with("<answer xmlns=\"urn:t\">so</answer>"), "{preview}");
    assert_ne!(text(&open(&amy)[0]["state"]), "answered");
}

#[test]
fn a_claim_holds_others_off_until_it_is_released_or_taken_over() {
    let (mut site, id) = asked();
    let (amy, ben, admin) = (person(&site, "amy"), person(&site, "ben"), site.admin());
    let question = only(&amy);
    act(&amy, &question, "release", "{}").problem(409, "not_claimed");
    act(&amy, &question, "claim", "{}").is(200);
    for (verb, body) in [("claim", "{}"), ("release", "{}"), ("answer", ANSWER), ("decline", "{}")] {
        let refused = act(&ben, &question, verb, body).problem(409, "claimed");
        assert_eq!(refused["by"], "amy");
    }
    // A claim outlives the process, a look doesn't.
    site.kill();
    site.start();
    assert_eq!(only(&ben), question);
    assert_eq!((&open(&ben)[0]["state"], &open(&ben)[0]["by"]), (&json!("claimed"), &json!("amy")));
    act(&ben, &question, "claim", r#"{"take_over":true}"#).is(200);
    act(&amy, &question, "answer", ANSWER).problem(409, "claimed");
    act(&admin, &question, "release", "{}").is(200);
    act(&amy, &question, "answer", ANSWER).is(200);
    let late = act(&ben, &question, "answer", ANSWER).problem(409, "answered");
    assert!(late["by"] == "amy" && text(&late["detail"]).contains("was answered by amy at "), "{late}");
    // What was answered is durable.
    site.kill();
    site.start();
    assert!(open(&amy).is_empty());
    site.wait("the answer", || (sent(&site, &id)["state"] == "answered").then_some(()));
}

#[test]
fn of_two_answers_at_once_one_counts_and_the_other_is_told_who_gave_it() {
    let (site, id) = asked();
    let (amy, ben) = (person(&site, "amy"), person(&site, "ben"));
    let question = only(&amy);
    let path = format!("/v1/questions/{question}/answer");
    let answers = site.together([&amy, &ben, &amy, &ben].map(|who| who.asking("POST", &path, &[], ANSWER)));
    let taken: Vec<_> = answers.iter().filter(|answer| answer.status == 200).collect();
    assert_eq!(taken.len(), 1, "{answers:?}");
    let by = taken[0].json()["by"].clone();
    for late in answers.iter().filter(|answer| answer.status != 200) {
        let late = late.json();
        assert_eq!((&late["code"], &late["by"]), (&json!("answered"), &by), "{late}");
    }
    site.wait("the answer", || (sent(&site, &id)["state"] == "answered").then_some(()));
}

/// Polls a request so often, and hangs up then.
fn cut(site: &Site, asked: impl Future<Output = Answer> + 'static, polls: usize) -> Option<Answer> {
    site.run(async move {
        let mut asked = Box::pin(asked);
        for _ in 0..polls {
            let polled = poll_fn(|context| Poll::Ready(asked.as_mut().poll(context))).await;
            if let Poll::Ready(answer) = polled {
                return Some(answer);
            }
            tokio::task::yield_now().await;
        }
        None
    })
}

#[test]
fn an_answer_whose_caller_hangs_up_counts_as_a_whole_or_not_at_all() {
    let (mut cuts, mut done) = (0, false);
    while !done {
        let (mut site, id) = asked();
        let (amy, ben) = (person(&site, "amy"), person(&site, "ben"));
        let question = only(&amy);
        let path = format!("/v1/questions/{question}/answer");
        done = cut(&site, amy.asking("POST", &path, &[], ANSWER), cuts).is_some();
        if cuts % 2 == 1 {
            site.kill();
            site.start();
        }
        // Either it counts already, or another answer does.
        let second = site.wait("an end", || match open(&ben).is_empty() {
            true => Some(None),
            false => Some(Some(act(&ben, &question, "answer", "<answer xmlns='urn:t'>free</answer>"))),
        });
        site.wait("the answer", || (sent(&site, &id)["state"] == "answered").then_some(()));
        let words = text(&sent(&site, &id)["reply"]["envelope"]).to_owned();
        let is_bens = second.is_some_and(|answer| answer.status == 200);
        assert!(words.contains(if is_bens { "free" } else { "guilty" }), "after {cuts} polls: {words}");
        cuts += 1;
        assert!(cuts < 100, "a request needs more than 100 polls");
    }
    assert!(cuts > 1, "a request that is never polled is answered");
}

#[test]
fn an_act_whose_caller_hangs_up_happens_as_a_whole_or_not_at_all() {
    for (verb, body) in [("claim", "{}"), ("release", "{}"), ("decline", "{}"), ("preview", ANSWER)] {
        let (mut polls, mut is_answered) = (0, false);
        while !is_answered {
            let (mut site, id) = asked();
            let amy = person(&site, "amy");
            let question = only(&amy);
            if verb == "release" {
                act(&amy, &question, "claim", "{}").is(200);
            }
            let path = format!("/v1/questions/{question}/{verb}");
            let answered = cut(&site, amy.asking("POST", &path, &[], body), polls);
            is_answered = answered.map(|answer| answer.is(200)).is_some();
            site.kill();
            site.start();
            let is_claimed = || only(&amy) == question && open(&amy)[0]["state"] == "claimed";
            match verb {
                "claim" => assert!(is_claimed() || !is_answered, "after {polls} polls"),
                "release" => assert!(!is_claimed() || !is_answered, "after {polls} polls"),
                "preview" => assert!(!is_claimed(), "after {polls} polls"),
                _ => {
                    let is_declined = || sent(&site, &id)["state"] == "faulted";
                    site.wait("the question or its end", || {
                        (is_declined() || !is_answered && !open(&amy).is_empty()).then_some(())
                    });
                }
            }
            polls += 1;
            assert!(polls < 100, "{verb}: a request needs more than 100 polls");
        }
    }
}

#[test]
fn a_question_that_is_declined_fails_with_the_reason() {
    let (site, id) = asked();
    let amy = person(&site, "amy");
    act(&amy, &only(&amy), "decline", r#"{"reason":"out of my hands"}"#).is(200);
    let reply = site.wait("the fault", || Some(sent(&site, &id)).filter(|sent| sent["state"] == "faulted"));
    let envelope = text(&reply["reply"]["envelope"]);
    assert!(envelope.contains("the person declined to answer: out of my hands"), "{envelope}");
}

#[test]
fn calls_of_a_person_are_made_and_their_answers_shown_before_it_answers() {
    let (site, id) = asked();
    let (amy, ben) = (person(&site, "amy"), person(&site, "ben"));
    let question = only(&amy);
    let called = act(&amy, &question, "answer", "<note xmlns='urn:t'>who?</note>").is(200).json();
    assert_eq!((text(&called["state"]), text(&called["by"])), ("claimed", "amy"));
    let told = amy.until(&format!("/v1/questions/{question}"), |seen| seen["told"].is_array());
    let answers = text(&told["told"][0]);
    assert!(answers.contains("parrot answers:") && answers.contains("who?"), "{told}");
    act(&ben, &question, "answer", ANSWER).problem(409, "claimed");
    act(&amy, &question, "answer", ANSWER).is(200);
    site.wait("the answer", || (sent(&site, &id)["state"] == "answered").then_some(()));
}

#[test]
fn a_question_whose_caller_gave_up_is_withdrawn() {
    let (site, _) = asked();
    let (amy, admin) = (person(&site, "amy"), site.admin());
    let question = only(&amy);
    let conversation = text(&open(&amy)[0]["conversation"]).to_owned();
    let cancel = json!({ "act": "cancel", "conversation": conversation }).to_string();
    admin.post("/v1/admin/acts", &cancel).is(200);
    site.wait("the end of the question", || open(&amy).is_empty().then_some(()));
    act(&amy, &question, "answer", ANSWER).problem(409, "withdrawn");
}

#[test]
fn who_leaves_questions_to_people_learns_which_and_the_conversation_goes_on() {
    let site = Site::of(COURT);
    let (admin, zoe) = (site.admin(), person(&site, "zoe"));
    let order = envelope("<order xmlns=\"urn:t\">1</order>");
    let left = admin.post("/v1/admin/ask?client=clerk&people=leave", &order).is(200).json();
    assert_eq!((&left["people"][0]["listener"], &left["ended"]), (&json!("chief"), &json!(false)), "{left}");
    assert!(left["payload"].is_null());
    let question = only(&zoe);
    // Operators are among those who may answer it.
    act(&admin, &question, "answer", ANSWER).is(200);
    let events = admin.get("/v1/admin/conversations?state=ended").is(200).json();
    assert_eq!(events["items"][0]["conversation"], left["conversation"], "{events}");
}

/// The rival of an answer: an end of its question from elsewhere, at the same moment.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Rival {
    Deadline,
    CancelledConversation,
    CancelledThread,
    /// The process ends, and the next one starts after the deadline.
    Kill,
}

/// An act of amy that gets so many turns before its rival comes. Returns what she was told, if anything, whether that was
/// before the rival, and what the clerk got.
fn race(rival: Rival, (verb, body): (&str, &str), turns: usize) -> (Option<Answer>, bool, Value) {
    let mut site = Site::of(COURT);
    let time = Duration::from_secs(10);
    let meta = format!("<deadline xmlns=\"urn:systole:meta:v1\">{}</deadline></meta>", site.now().after(time));
    let message = envelope("<ask xmlns=\"urn:t\">1</ask>").replace("</meta>", &meta);
    let sent_as = site.party("clerk").post("/v1/messages", &message).is(202).json();
    let (amy, admin) = (person(&site, "amy"), site.admin());
    let question = only(&amy);
    let asked = open(&amy).remove(0);
    let cancel = match rival {
        Rival::CancelledConversation => Some(json!({ "act": "cancel", "conversation": asked["conversation"] })),
        Rival::CancelledThread => {
            Some(json!({ "act": "cancel", "conversation": asked["conversation"], "thread": asked["thread"] }))
        }
        Rival::Deadline | Rival::Kill => None,
    };
    let cancel = cancel.map(|act| admin.asking("POST", "/v1/admin/acts", &[], &act.to_string()));
    let act = amy.asking("POST", &format!("/v1/questions/{question}/{verb}"), &[], body);
    site.advance(time - Duration::from_millis(100));
    let (told, is_first) = site.run(async move {
        let mut cancel = cancel;
        let mut comes = async || match (rival, cancel.take()) {
            (Rival::Deadline, _) => tokio::time::advance(Duration::from_millis(200)).await,
            (_, Some(cancel)) => drop(cancel.await.is(200)),
            (_, None) => {}
        };
        // At first the rival is there before.
        if turns == 0 {
            comes().await;
        }
        let act = tokio::task::spawn_local(act);
        for _ in 0..turns {
            tokio::task::yield_now().await;
        }
        let is_first = turns > 0 && act.is_finished();
        if rival == Rival::Kill && !is_first {
            return (None, false);
        }
        if turns > 0 {
            comes().await;
        }
        (Some(act.await.unwrap()), is_first)
    });
    if rival == Rival::Kill {
        site.kill();
        site.run(async move { tokio::time::sleep(time).await });
        site.start();
    }
    let end = site.wait("an end", || Some(sent(&site, text(&sent_as["id"]))).filter(|sent| sent["reply"].is_object()));
    (told, is_first, end)
}

/// Lets an answer, and the refusal to give one, race against a rival at each of their turns.
fn races(rival: Rival) {
    for (act, words) in [(("answer", ANSWER), "guilty"), (("decline", r#"{"reason":"mine"}"#), "to answer: mine")] {
        let (mut refused, mut turns) = (0, 0);
        loop {
            let (told, is_first, end) = race(rival, act, turns);
            let is_reply = text(&end["reply"]["envelope"]).contains(words);
            match told {
                Some(told) if told.status == 200 => assert!(is_reply, "accepted after {turns} turns, but {end}"),
                Some(told) => {
                    told.problem(409, "withdrawn");
                    assert!(!is_reply, "refused after {turns} turns, but {end}");
                    refused += 1;
                }
                None => {}
            }
            if is_first {
                break;
            }
            turns += 1;
            assert!(turns < 200, "{} needs more than 200 turns", act.0);
        }
        assert!(turns > 0 && (refused > 0 || rival == Rival::Kill), "{} was never too late", act.0);
    }
}

#[test]
fn an_answer_is_accepted_if_and_only_if_it_is_the_reply_however_close_the_deadline_is() {
    races(Rival::Deadline);
}

#[test]
fn an_answer_is_accepted_if_and_only_if_it_is_the_reply_when_the_conversation_is_cancelled_meanwhile() {
    races(Rival::CancelledConversation);
}

#[test]
fn an_answer_is_accepted_if_and_only_if_it_is_the_reply_when_its_thread_is_cancelled_meanwhile() {
    races(Rival::CancelledThread);
}

#[test]
fn an_answer_that_was_accepted_before_a_kill_is_the_reply_though_the_deadline_passes_before_the_next_start() {
    races(Rival::Kill);
}

#[test]
fn a_late_answer_learns_of_the_first_one_after_a_restart_too() {
    let (mut site, id) = asked();
    let (amy, ben, zoe) = (person(&site, "amy"), person(&site, "ben"), person(&site, "zoe"));
    let question = only(&amy);
    act(&amy, &question, "answer", ANSWER).is(200);
    site.kill();
    site.start();
    let late = act(&ben, &question, "answer", ANSWER).problem(409, "answered");
    assert!(late["by"] == "amy" && text(&late["detail"]).contains("was answered by amy at "), "{late}");
    act(&zoe, &question, "answer", ANSWER).problem(404, "not_found");
    assert_eq!(sent(&site, &id)["state"], "answered");
}

#[test]
fn a_question_that_is_not_asked_again_yet_after_a_start_is_to_be_repeated_and_not_missing() {
    let (mut site, id) = asked();
    let (amy, zoe, admin) = (person(&site, "amy"), person(&site, "zoe"), site.admin());
    let question = only(&amy);
    // Its listener rests after the start.
    admin.post("/v1/admin/acts", r#"{"act":"pause","listener":"judge"}"#).is(200);
    site.kill();
    site.start();
    let path = format!("/v1/questions/{question}");
    for who in [&amy, &admin] {
        let early = who.get(&path);
        assert_eq!(early.header("retry-after"), Some("1"), "{early:?}");
        assert!(text(&early.problem(503, "starting")["detail"]).contains("not asked it again yet"));
    }
    for (verb, body) in [("claim", "{}"), ("answer", ANSWER), ("preview", ANSWER), ("decline", "{}")] {
        act(&amy, &question, verb, body).problem(503, "starting");
    }
    // Others don't learn of it, and other messages are no questions.
    zoe.get(&path).problem(404, "not_found");
    admin.get(&format!("/v1/questions/{id}")).problem(404, "not_found");
    admin.post("/v1/admin/acts", r#"{"act":"resume","listener":"judge"}"#).is(200);
    assert_eq!(only(&amy), question);
    act(&amy, &question, "answer", ANSWER).is(200);
    site.wait("the answer", || (sent(&site, &id)["state"] == "answered").then_some(()));
}

#[test]
fn an_act_on_a_question_while_the_organism_ends_counts_or_is_left_to_the_next_start() {
    let (mut site, _) = asked();
    let question = only(&person(&site, "amy"));
    let by = Answerer { name: Name::parse("amy").unwrap(), is_operator: false };
    let told = site.at_each_turn_of_the_end(async |organism| {
        let questions = organism.questions(by.clone());
        [questions.look(&question).await.map(drop), questions.claim(&question, false).await.map(drop)]
    });
    let told: Vec<_> = told.into_iter().flatten().collect();
    assert!(told.iter().all(|told| matches!(told, Ok(()) | Err(QuestionError::Lost))), "{told:?}");
    assert!(matches!(told.last(), Some(Err(QuestionError::Lost))), "{told:?}");
    site.stop();
    site.start();
    assert_eq!(only(&person(&site, "ben")), question);
}
