//! Both sides of a push: the gateway of an organism, and an agent that is pushed to.

use std::net::SocketAddr;
use std::sync::Arc;

use serde_json::{Value, json};
use systole::outbound::Secret;
use systole::remote::{
    Failed, Handled, Handler, Inbound, InboundDelivery, LoopEnd, LoopOptions, Mailbox, PushDelivery, PushOptions,
    run_agent_loop,
};
use systole::testing::World;
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinHandle;

use super::setup::{ALL, ANYWHERE, Seen, answer, answered, hang, mailbox, patiently};
use crate::kit::{Site, Who, envelope, text};

const SECRET: &[u8] = b"what both sides know";

/// An organism whose listener `worker` is pushed to; no server is at its declared URL.
fn organism(secret: &str) -> String {
    format!(
        r#"organism: {{ name: remote }}
durability: process
gateway: {{ listen: "127.0.0.1:0", requests: 1000000 }}
clients:
  - {{ name: ada, calls: ["{{urn:t}}ask", "{{urn:t}}note", "{{urn:t}}order"] }}
listeners:
  - name: worker
    remote: {{ mode: push, url: "http://127.0.0.1:1/"{secret}, allow_private: true }}
    schemas: [t.xsd]
    accepts: ["{{urn:t}}ask", "{{urn:t}}note"]
    replies: ["{{urn:t}}answer"]
  - name: mate
    remote: {{ mode: push, url: "http://127.0.0.1:1/", allow_private: true }}
    accepts: ["{{urn:t}}order"]
    replies: ["{{urn:t}}answer"]
"#
    )
}

/// A site that signs what it pushes, with its client and its listener.
fn site() -> (Site, Who, Who) {
    let mut site = Site::idle(&organism(", secret: worker.secret"));
    std::fs::write(site.folder.join("worker.secret"), [SECRET, b"\n"].concat()).unwrap();
    site.start();
    let (ada, worker) = (site.party("ada"), site.party("worker"));
    (site, ada, worker)
}

fn signed(secret: &[u8]) -> PushOptions {
    PushOptions::signed(Secret::new(secret)).path("/in")
}

/// Listens, and registers its URL.
async fn bind(mailbox: &Mailbox, at: SocketAddr, options: PushOptions) -> PushDelivery {
    let path = options.path.clone();
    let delivery = PushDelivery::bind(at, options).await.unwrap();
    mailbox.register_push(&format!("http://{}{path}", delivery.address())).await.unwrap();
    delivery
}

/// An agent in the world of its organism.
struct Agent {
    world: World,
    stop: watch::Sender<bool>,
    task: JoinHandle<LoopEnd>,
}

impl Agent {
    /// Returns once the agent is registered.
    fn start(site: &Site, who: &Who, options: PushOptions, handler: impl Handler + 'static) -> Self {
        Self::of(site, mailbox(who, "worker"), ANYWHERE.into(), options, handler)
    }

    fn of(
        site: &Site,
        mailbox: Mailbox,
        address: SocketAddr,
        options: PushOptions,
        handler: impl Handler + 'static,
    ) -> Self {
        let (stop, stopped) = watch::channel(false);
        let mut delivery = site.run(bind(&mailbox, address, options));
        let task = site.spawn(async move {
            let options = LoopOptions::default().stop(Some(stopped));
            run_agent_loop(&mut delivery, &handler, &mailbox, options).await
        });
        Self { world: site.world.clone(), stop, task }
    }

    fn end(self) {
        self.stop.send_replace(true);
        assert_eq!(self.ended(), LoopEnd::Stopped);
    }

    /// Waits until the agent ends.
    fn ended(self) -> LoopEnd {
        self.world.block_on(patiently("the end of the agent", self.task)).unwrap()
    }
}

/// Checks that the only answer is a fault with that reason.
fn failed(ada: &Who, sent: &Value, why: &str) {
    let known = answered(ada, sent);
    assert_eq!((text(&known["state"]), text(&known["reply"]["fault"])), ("faulted", "failed"), "{known}");
    assert!(text(&known["reply"]["envelope"]).contains(why), "{known}");
    assert_eq!(known["replies"].as_array().unwrap().len(), 1, "{known}");
}

fn dead(worker: &Who) -> Vec<Value> {
    worker.get("/v1/mailboxes/worker/dead").is(200).json()["items"].as_array().unwrap().clone()
}

/// Redrives a dead letter until it is replied to.
fn redrive(worker: &Who, letter: &Value) -> Value {
    let id = text(&letter["id"]);
    let redriven = worker.post("/v1/mailboxes/worker/dead/redrive", &json!({ "id": id }).to_string()).is(200);
    assert_eq!(redriven.json()["redriven"], 1);
    worker.until(&format!("/v1/messages/{id}"), |known| known["state"] == "replied")
}

/// A handler that notes its messages, and replies with that after a signal.
fn held(seen: &Seen, go: &Arc<Semaphore>, said: &'static str) -> impl Handler + 'static {
    let (seen, go) = (seen.clone(), go.clone());
    move |message: Inbound| {
        let (seen, go) = (seen.clone(), go.clone());
        async move {
            seen.all().push(message);
            go.acquire().await?.forget();
            Ok::<_, Failed>(answer(said))
        }
    }
}

#[test]
fn what_a_client_asks_is_pushed_to_an_agent_and_its_reply_comes_back() {
    let (site, ada, worker) = site();
    let seen = Seen::default();
    let agent = Agent::start(&site, &worker, signed(SECRET), seen.echo());
    let at_once = ada.post("/v1/messages?wait=60", &crate::kit::ask(0)).is(200).body;
    assert!(at_once.contains("<from>worker</from><to>ada</to>") && at_once.contains("to 0."), "{at_once}");
    let sent: Vec<Value> = (1..20).map(|number| ada.send(number).is(202).json()).collect();
    for (number, sent) in (1..20).zip(&sent) {
        let known = answered(&ada, sent);
        assert_eq!((text(&known["state"]), text(&known["reply"]["from"])), ("answered", "worker"), "{known}");
        assert!(text(&known["reply"]["envelope"]).contains(&format!("to {number}.")), "{known}");
    }
    agent.end();
    // Each was handled once, in the order of the mailbox, as the mailbox has it.
    let page = worker.get(ALL).json();
    let items = page["items"].as_array().unwrap();
    let seen = seen.all();
    assert_eq!((items.len(), seen.len()), (20, 20));
    for (item, message) in items.iter().zip(seen.iter()) {
        assert_eq!((text(&item["id"]), text(&item["state"])), (&*message.id.to_string(), "replied"), "{item}");
        assert_eq!((text(&item["thread"]), &*message.from), (&*message.thread.to_string(), "ada"), "{item}");
        assert_eq!((text(&item["envelope"]), &item["deliveries"]), (&*message.envelope, &1.into()), "{item}");
    }
}

#[test]
fn an_agent_that_fails_or_says_nothing_leaves_nobody_in_silence() {
    let (site, ada, worker) = site();
    let seen = Seen::default();
    let tried = seen.clone();
    let handler = seen.handler(move |number, _| match number {
        1 if tried.numbers().iter().filter(|&&number| number == 1).count() == 2 => Ok(answer("better")),
        1 => Err(Failed::new("no more coffee")),
        2 => panic!("it is broken"),
        3 => Ok(String::new()),
        4 => Ok(" \n".to_owned()),
        _ => Ok("<bomb xmlns=\"urn:x\"/>".to_owned()),
    });
    let agent = Agent::start(&site, &worker, signed(SECRET), handler);
    let ask = |number| ada.send(number).is(202).json();
    failed(&ada, &ask(1), "500 Internal Server Error: no more coffee");
    failed(&ada, &ask(2), "500 Internal Server Error: the agent panicked");
    for number in [3, 4] {
        assert_eq!(text(&answered(&ada, &ask(number))["reply"]["fault"]), "silent");
    }
    let broken = answered(&ada, &ask(5));
    assert_eq!(text(&broken["state"]), "faulted", "{broken}");
    // Each failure is a dead letter; redriven it is a new attempt, not the answer of the first one.
    let letters = dead(&worker);
    assert_eq!(letters.len(), 3, "{letters:?}");
    assert!(text(&letters[2]["last_error"]).contains("no listener takes {urn:x}bomb"), "{letters:?}");
    assert!(text(&redrive(&worker, &letters[0])["reply"]).contains("better"));
    assert_eq!(seen.numbers(), [1, 2, 3, 4, 5, 1]);
    agent.end();
}

#[test]
fn what_an_agent_does_not_believe_is_a_dead_letter_and_comes_again_when_it_is_driven() {
    let (site, ada, worker) = site();
    let seen = Seen::default();
    let agent = Agent::start(&site, &worker, signed(b"something else altogether"), seen.echo());
    failed(&ada, &ada.send(1).is(202).json(), "401 Unauthorized: systole-signature:");
    agent.end();
    let letters = dead(&worker);
    assert_eq!((letters.len(), &letters[0]["deliveries"]), (1, &1.into()), "it isn't tried again: {letters:?}");
    assert!(seen.all().is_empty());

    let agent = Agent::start(&site, &worker, signed(SECRET), seen.echo());
    assert!(text(&redrive(&worker, &letters[0])["reply"]).contains("to 1."));
    assert_eq!(text(&answered(&ada, &ada.send(2).is(202).json())["state"]), "answered");
    assert_eq!(seen.numbers(), [1, 2]);
    agent.end();
}

#[test]
fn an_agent_with_a_secret_refuses_an_organism_without_one() {
    let site = Site::of(&organism(""));
    let (ada, worker) = (site.party("ada"), site.party("worker"));
    let seen = Seen::default();
    let agent = Agent::start(&site, &worker, signed(SECRET), seen.echo());
    failed(&ada, &ada.send(1).is(202).json(), "401 Unauthorized: there has to be one systole-signature");
    agent.end();
    assert!(seen.all().is_empty());
    let agent = Agent::start(&site, &worker, PushOptions::unsigned(), seen.echo());
    assert_eq!(text(&answered(&ada, &ada.send(2).is(202).json())["state"]), "answered");
    agent.end();
}

#[test]
fn only_who_is_declared_so_registers_to_be_pushed_to() {
    let (site, _, pushed) = site();
    let polled = Site::new();
    let status = |site: &Site, who: &Who, url: &str| {
        let registered = site.run(mailbox(who, "worker").register_push(url));
        registered.unwrap_err().status()
    };
    assert_eq!(status(&polled, &polled.party("worker"), "http://127.0.0.1:1/"), Some(400));
    assert_eq!(status(&site, &pushed, "http://169.254.169.254/"), Some(400));
    assert_eq!(status(&site, &pushed, "no url"), Some(400));
    assert_eq!(status(&site, &site.who("nobody"), "http://127.0.0.1:1/"), Some(401));
}

#[test]
fn an_agent_that_ends_before_it_answers_gets_the_message_when_it_is_there_again() {
    let (site, ada, worker) = site();
    let (hang, began) = hang();
    let mut delivery = site.run(bind(&mailbox(&worker, "worker"), ANYWHERE.into(), signed(SECRET)));
    let sent = ada.send(7).is(202).json();
    site.run(async {
        tokio::select! {
            done = delivery.run_once(&hang) => panic!("it hangs: {done:?}"),
            () = began.notified() => {}
        }
        // Requests that still wait get 503.
        delivery.stop().await;
    });
    let address = delivery.address();
    let seen = Seen::default();
    let agent = Agent::of(&site, mailbox(&worker, "worker"), address, signed(SECRET), seen.echo());
    let known = answered(&ada, &sent);
    assert!(text(&known["reply"]["envelope"]).contains("to 7."), "{known}");
    assert_eq!((seen.numbers(), dead(&worker).len()), (vec![7], 0));
    agent.end();
}

#[test]
fn what_comes_while_an_agent_rests_waits_until_it_works() {
    let (mut site, ada, worker) = site();
    let boss = site.admin();
    // No server is there: the first message is tried again, until its attempts are over.
    let mut sent = vec![ada.send(1).is(202).json()];
    worker.until(ALL, |page| page["items"].as_array().unwrap().iter().any(|item| item["last_error"].is_string()));
    boss.post("/v1/listeners/worker/pause", "").is(200);
    sent.push(ada.send(2).is(202).json());
    worker.until(ALL, |page| page["items"].as_array().unwrap().len() == 2);
    let fine = |_: Inbound| std::future::ready(Ok::<_, Failed>(answer("fine")));
    let mate = Agent::of(&site, mailbox(&site.party("mate"), "mate"), ANYWHERE.into(), PushOptions::unsigned(), fine);
    let order = || envelope("<order xmlns=\"urn:t\">1</order>");
    for killed in [false, true] {
        if killed {
            site.kill();
            site.start();
            sent.push(ada.send(3).is(202).json());
            worker.until(ALL, |page| page["items"].as_array().unwrap().len() == 3);
        }
        // The messages behind it reach other listeners, and those for worker have not been tried.
        assert!(ada.post("/v1/messages?wait=60", &order()).is(200).body.contains("fine"));
        let page = worker.get(ALL).json();
        for item in &page["items"].as_array().unwrap()[1..] {
            assert_eq!((&item["deliveries"], text(&item["state"])), (&0.into(), "waiting"), "{item}");
            assert!(item["last_error"].is_null(), "{item}");
        }
    }
    // A new agent learns that it is paused.
    let seen = Seen::default();
    let agent = Agent::start(&site, &worker, signed(SECRET), seen.echo());
    assert_eq!(agent.ended(), LoopEnd::Paused);
    assert!(seen.all().is_empty());
    boss.post("/v1/listeners/worker/resume", "").is(200);
    let agent = Agent::start(&site, &worker, signed(SECRET), seen.echo());
    for (number, sent) in (1..).zip(&sent) {
        let known = answered(&ada, sent);
        assert!(text(&known["reply"]["envelope"]).contains(&format!("to {number}.")), "{known}");
    }
    let mut numbers = seen.numbers();
    numbers.sort_unstable();
    assert_eq!((numbers, dead(&worker).len()), (vec![1, 2, 3], 0));
    agent.end();
    mate.end();
}

#[test]
fn what_an_agent_has_when_it_is_told_to_rest_it_may_answer() {
    let (site, ada, worker) = site();
    let boss = site.admin();
    let (seen, go) = (Seen::default(), Arc::new(Semaphore::new(0)));
    let agent = Agent::start(&site, &worker, signed(SECRET), held(&seen, &go, "done"));
    let first = ada.send(1).is(202).json();
    seen.until(&site, 1);
    boss.post("/v1/listeners/worker/pause", "").is(200);
    let second = ada.send(2).is(202).json();
    go.add_permits(2);
    assert_eq!(text(&answered(&ada, &first)["state"]), "answered");
    assert_eq!(seen.numbers(), [1]);
    boss.post("/v1/listeners/worker/resume", "").is(200);
    assert_eq!(text(&answered(&ada, &second)["state"]), "answered");
    assert_eq!(seen.numbers(), [1, 2]);
    agent.end();
}

#[test]
fn a_message_that_is_as_large_as_may_be_arrives() {
    let (site, ada, worker) = site();
    let handler = |message: Inbound| async move { Ok::<_, Failed>(answer(&message.payload.len().to_string())) };
    let agent = Agent::start(&site, &worker, signed(SECRET), handler);
    let room = (1 << 20) - envelope("<note xmlns=\"urn:t\"></note>").len();
    let send = |bytes| {
        let note = envelope(&format!("<note xmlns=\"urn:t\">{}</note>", "x".repeat(bytes)));
        ada.post("/v1/messages", &note)
    };
    // The agent accepts every message that the gateway accepts.
    let sent = (0..).step_by(8).map(|less| send(room - less)).find(|sent| sent.status != 413);
    let known = answered(&ada, &sent.unwrap().is(202).json());
    assert_eq!(text(&known["state"]), "answered", "{known}");
    agent.end();
}

#[test]
fn an_agent_that_answers_later_is_not_pushed_to_again() {
    let (mut site, ada, worker) = site();
    let seen = Seen::default();
    let handler = {
        let seen = seen.clone();
        move |message: Inbound| {
            seen.all().push(message);
            std::future::ready(Ok::<_, Failed>(Handled::Later))
        }
    };
    let agent = Agent::start(&site, &worker, signed(SECRET), handler);
    let send = |number: u32| {
        let sent = ada.send(number).is(202).json();
        seen.until(&site, number as usize);
        sent
    };
    // Conversations have no order among each other.
    let sent = [send(1), send(2)];
    let ids: Vec<_> = seen.all().iter().map(|message| message.id).collect();
    // The second push may be in flight: the end waits for its answer.
    site.stop();
    site.start();
    let third = ada.send(3).is(202).json();
    seen.until(&site, 3);
    let told = mailbox(&worker, "worker");
    let third_id = seen.all()[2].id;
    site.run(async {
        told.reply(ids[0], answer("later")).await.unwrap();
        told.fail(ids[1], "no more coffee").await.unwrap();
        told.reply(third_id, answer("at once")).await.unwrap();
    });
    assert!(text(&answered(&ada, &sent[0])["reply"]["envelope"]).contains("later"));
    failed(&ada, &sent[1], "no more coffee");
    assert!(text(&answered(&ada, &third)["reply"]["envelope"]).contains("at once"));
    // A failed message is pushed once more when it is redriven, and handled.
    let redriven = worker.post("/v1/mailboxes/worker/dead/redrive", "{}").is(200).json();
    assert_eq!(redriven["redriven"], 1);
    seen.until(&site, 4);
    assert_eq!(seen.numbers(), [1, 2, 3, 2]);
    agent.end();
}

#[test]
fn a_gateway_that_is_killed_while_the_agent_works_gets_the_one_answer() {
    let (mut site, ada, worker) = site();
    let (seen, go) = (Seen::default(), Arc::new(Semaphore::new(0)));
    let agent = Agent::start(&site, &worker, signed(SECRET), held(&seen, &go, "once"));
    let sent = ada.send(1).is(202).json();
    seen.until(&site, 1);
    site.kill();
    site.start();
    go.add_permits(1);
    let known = answered(&ada, &sent);
    assert!(text(&known["reply"]["envelope"]).contains("once"), "{known}");
    assert_eq!(known["replies"].as_array().unwrap().len(), 1, "{known}");
    assert_eq!(seen.numbers(), [1], "it has the same id");
    agent.end();
}
