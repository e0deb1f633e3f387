//! The contract of polling, sentence by sentence, against the real gateway.

use std::fs;
use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use systole::remote::{
    Failed, Handled, Inbound, InboundDelivery, LoopEnd, LoopOptions, PollDelivery, RemoteError, SourceKind,
    run_agent_loop,
};
use tokio::sync::{Notify, watch};

use super::setup::{ALL, Seen, answer, answered, asked, cursor, mailbox, take};
use crate::kit::{Site, text};

#[test]
fn one_batch_at_a_time_comes_in_order_and_is_answered() {
    let site = Site::new();
    let (ada, worker) = (site.party("ada"), site.party("worker"));
    let order = asked(&ada, &worker, 0..5);
    let seen = Seen::default();
    let handler = seen.echo();
    let mut poll = PollDelivery::new(mailbox(&worker, "worker")).limit(2).wait(Duration::ZERO);
    let mut counts = Vec::new();
    for _ in 0..4 {
        counts.push(site.run(poll.run_once(&handler)).unwrap());
    }
    assert_eq!((counts, seen.numbers()), (vec![2, 2, 1, 0], order));
    assert_eq!(poll.interval(), Duration::from_secs(5));
    // Replies don't come back: the mailbox has nothing but the questions, and all of them have an answer.
    let left = worker.get(ALL).is(200).json();
    let states: Vec<_> = left["items"].as_array().unwrap().iter().map(|item| text(&item["state"])).collect();
    assert_eq!(states, ["replied"; 5]);

    let message = seen.all()[0].clone();
    assert_eq!((&*message.from, message.source.kind), ("ada", SourceKind::Peer));
    assert_eq!(message.idempotency_key(), text(&left["items"][0]["id"]));
    assert_eq!(message.thread.to_string(), text(&left["items"][0]["thread"]));
    assert_eq!(message.payload_type.to_string(), "{urn:t}ask");
}

#[test]
fn the_caller_gets_the_reply_and_an_empty_one_is_none() {
    let site = Site::new();
    let (ada, worker) = (site.party("ada"), site.party("worker"));
    let sent: Vec<_> = (0..2).map(|number| ada.send(number).is(202).json()).collect();
    let handler = Seen::default().handler(|number, _| Ok(if number == 0 { " \n".to_owned() } else { answer("yes") }));
    let poll = mailbox(&worker, "worker");
    site.run(take(&mut PollDelivery::new(poll), &handler, 2));
    let reply = answered(&ada, &sent[1]);
    assert_eq!((text(&reply["state"]), text(&reply["reply"]["from"])), ("answered", "worker"));
    // The other one is done without a reply.
    let silent = answered(&ada, &sent[0]);
    assert_eq!((text(&silent["state"]), text(&silent["reply"]["fault"])), ("faulted", "silent"));
}

#[test]
fn what_is_answered_later_waits_behind_the_cursor() {
    let site = Site::new();
    let (ada, worker) = (site.party("ada"), site.party("worker"));
    let sent = ada.send(7).is(202).json();
    let (agent, file) = (mailbox(&worker, "worker"), cursor(&site));
    let later = |_: Inbound| std::future::ready(Ok::<_, Failed>(Handled::Later));
    site.run(take(&mut PollDelivery::new(agent.clone()).cursor_file(&file).unwrap(), &later, 1));
    // That also holds once the agent has begun anew.
    let mut poll = PollDelivery::new(agent.clone()).cursor_file(&file).unwrap().wait(Duration::ZERO);
    assert_eq!(site.run(poll.run_once(&later)).unwrap(), 0);
    let item = worker.get(ALL).json()["items"][0].clone();
    assert_eq!(text(&item["state"]), "waiting", "{item}");
    site.run(agent.reply(text(&item["id"]).parse().unwrap(), answer("later"))).unwrap();
    assert!(text(&answered(&ada, &sent)["reply"]["envelope"]).contains("later"));
}

#[test]
fn a_poison_pill_answers_its_caller_and_blocks_nobody() {
    let site = Site::new();
    let (ada, worker) = (site.party("ada"), site.party("worker"));
    let sent: Vec<_> = (0..4).map(|number| ada.send(number).is(202).json()).collect();
    let seen = Seen::default();
    let handler = seen.handler(|number, _| match number {
        1 => Err(Failed::new("no more coffee")),
        2 => panic!("it is broken"),
        3 => Ok("<answer xmlns='urn:t' left='1'>a</answer>".to_owned()),
        _ => Ok(answer("fine")),
    });
    let file = cursor(&site);
    let mut poll = PollDelivery::new(mailbox(&worker, "worker")).cursor_file(&file).unwrap();
    site.run(take(&mut poll, &handler, 4));
    let known: Vec<_> = sent.iter().map(|sent| answered(&ada, sent)).collect();
    assert_eq!(text(&known[0]["state"]), "answered");
    for (known, words) in known[1..].iter().zip(["no more coffee", "the agent panicked", ""]) {
        assert_eq!(text(&known["state"]), "faulted", "{known}");
        assert!(text(&known["reply"]["envelope"]).contains(words), "{known}");
    }
    assert_eq!((text(&known[1]["reply"]["fault"]), known[1]["replies"].as_array().unwrap().len()), ("failed", 1));
    // A message whose handler failed is a dead letter, and so is one whose answer breaks the contract.
    let dead = worker.get("/v1/mailboxes/worker/dead").is(200).json();
    let mut dead: Vec<_> = dead["items"].as_array().unwrap().iter().map(|item| text(&item["last_error"])).collect();
    dead.sort_unstable();
    assert_eq!((dead.len(), &dead[..2]), (3, &["no more coffee", "the agent panicked"][..]));
    let refused = "422 payload: a payload {urn:t}answer breaks its contract (attribute 'left' of <answer>: not allowed";
    assert!(dead[2].contains(refused), "{dead:?}");
    // The cursor has moved past all of them.
    let mut again = PollDelivery::new(mailbox(&worker, "worker")).cursor_file(&file).unwrap().wait(Duration::ZERO);
    assert_eq!(site.run(again.run_once(&handler)).unwrap(), 0);
    assert_eq!(seen.all().len(), 4);
}

#[test]
fn the_cursor_file_is_written_after_each_message() {
    let site = Site::new();
    let (ada, worker) = (site.party("ada"), site.party("worker"));
    asked(&ada, &worker, 0..3);
    let file = cursor(&site);
    let found = Arc::new(std::sync::Mutex::new(Vec::new()));
    let handler = {
        let (file, found) = (file.clone(), found.clone());
        Seen::default().handler(move |_, _| {
            found.lock().unwrap().push(fs::read_to_string(&file).ok());
            Ok(answer("yes"))
        })
    };
    let mut poll = PollDelivery::new(mailbox(&worker, "worker")).cursor_file(&file).unwrap();
    site.run(take(&mut poll, &handler, 3));
    let page = worker.get(ALL).json();
    let place = |at: usize| Some(text(&page["items"][at]["cursor"]).to_owned());
    assert_eq!(*found.lock().unwrap(), [None, place(0), place(1)]);
    assert_eq!(fs::read_to_string(&file).ok(), place(2));
}

#[test]
fn an_agent_that_ends_in_the_middle_goes_on_there() {
    let site = Site::new();
    let (ada, worker) = (site.party("ada"), site.party("worker"));
    let order = asked(&ada, &worker, 0..3);
    let file = cursor(&site);
    let (stuck, stop_at) = (Arc::new(Notify::new()), order[1]);
    let handler = {
        let stuck = stuck.clone();
        move |message: Inbound| {
            let stuck = stuck.clone();
            async move {
                if super::setup::number(&message.payload) == stop_at {
                    stuck.notify_one();
                    std::future::pending::<()>().await;
                }
                Ok::<_, Failed>(answer("before"))
            }
        }
    };
    let mut poll = PollDelivery::new(mailbox(&worker, "worker")).cursor_file(&file).unwrap();
    site.run(async {
        tokio::select! {
            done = poll.run_once(&handler) => panic!("it hangs: {done:?}"),
            () = stuck.notified() => {}
        }
    });
    drop(poll);
    let seen = Seen::default();
    let mut poll = PollDelivery::new(mailbox(&worker, "worker")).cursor_file(&file).unwrap();
    site.run(take(&mut poll, &seen.echo(), 2));
    assert_eq!(seen.numbers(), order[1..]);
}

#[test]
fn a_lost_cursor_is_cleared_also_on_disk_and_what_is_left_comes() {
    let site = Site::new();
    let (ada, worker, other) = (site.party("ada"), site.party("worker"), site.party("other"));
    let order = asked(&ada, &worker, 0..2);
    let file = cursor(&site);
    // A cursor that was never made, and one of another mailbox.
    let elsewhere = other.get("/v1/mailboxes/other/messages").json();
    for (round, place) in ["7", text(&elsewhere["next"])].into_iter().enumerate() {
        fs::write(&file, place).unwrap();
        let seen = Seen::default();
        let mut poll = PollDelivery::new(mailbox(&worker, "worker")).cursor_file(&file).unwrap().wait(Duration::ZERO);
        assert_eq!(site.run(poll.run_once(&seen.echo())).unwrap(), 0);
        assert!(!file.exists());
        let left = site.run(poll.run_once(&seen.echo())).unwrap();
        // The second time all of them have their answers.
        assert_eq!((left, seen.numbers()), if round == 0 { (2, order.clone()) } else { (0, Vec::new()) });
        assert!(file.exists());
    }
}

#[test]
fn a_mailbox_of_somebody_else_and_a_token_of_nobody_are_refused() {
    let site = Site::new();
    let worker = site.party("worker");
    let handler = Seen::default().echo();
    let mut other = PollDelivery::new(mailbox(&worker, "other")).wait(Duration::ZERO);
    assert_eq!(super::setup::status(site.run(other.run_once(&handler))), 403);
    let mut nobody = PollDelivery::new(mailbox(&site.who("nobody"), "worker")).wait(Duration::ZERO);
    let error = site.run(nobody.run_once(&handler)).unwrap_err();
    assert!(error.is_unauthorized(), "{error}");
    assert!(error.to_string().starts_with("GET /v1/mailboxes/worker/messages: 401 unauthorized: "), "{error}");
    let strange = PollDelivery::new(mailbox(&worker, "worker")).cursor_file(&site.folder);
    assert!(matches!(strange, Err(RemoteError::Cursor { .. })));
}

#[test]
fn an_agent_outlives_the_kills_of_the_pump() {
    let mut site = Site::new();
    let (ada, worker) = (site.party("ada"), site.party("worker"));
    let (seen, file) = (Seen::default(), cursor(&site));
    let (stop, stopped) = watch::channel(false);
    let agent = {
        let (handler, mailbox, file) = (seen.echo(), mailbox(&worker, "worker"), file.clone());
        site.spawn(async move {
            let mut poll = PollDelivery::new(mailbox.clone()).cursor_file(&file).unwrap();
            let options = LoopOptions::default().stop(Some(stopped));
            run_agent_loop(&mut poll, &handler, &mailbox, options).await
        })
    };
    let mut sent = Vec::new();
    for round in 0..3_u32 {
        sent.extend((0..10).map(|number| ada.send(round * 10 + number).is(202).json()));
        let some = round as usize * 10 + 3;
        seen.until(&site, some);
        site.kill();
        site.start();
    }
    // An acknowledged message has one answer, whenever the pump was killed.
    for (number, sent) in sent.iter().enumerate() {
        let place = format!("/v1/messages/{}", text(&sent["id"]));
        let answered = || Some(ada.get(&place).json()).filter(|known| known["reply"].is_object());
        let known = site.wait("the message is answered", answered);
        assert_eq!((text(&known["state"]), known["replies"].as_array().unwrap().len()), ("answered", 1), "{known}");
        assert!(text(&known["reply"]["envelope"]).contains(&format!("to {number}.")), "{known}");
    }
    stop.send_replace(true);
    assert_eq!(site.run(agent).unwrap(), LoopEnd::Stopped);
    assert_eq!(worker.get("/v1/mailboxes/worker/dead").json()["items"], json!([]));
}
