//! Both sides of a push over real sockets: the gateway of an organism, and an agent that is pushed to.

use std::sync::Arc;
use std::sync::mpsc::channel;
use std::thread::JoinHandle;

use serde_json::Value;
use systole::outbound::Secret;
use systole::remote::{Failed, Handler, Inbound, LoopEnd, LoopOptions, PushDelivery, PushOptions, run_agent_loop};
use tokio::sync::{Semaphore, watch};

use super::setup::{ALL, Seen, answer, answered, mailbox, stay_here};
use crate::kit::{PATIENCE, Site, Who, text, wait};

const SECRET: &[u8] = b"what both sides know";

/// An organism whose listener `worker` is pushed to; no server is at its declared URL.
const ORGANISM: &str = r#"organism: { name: remote }
durability: process
gateway: { listen: "127.0.0.1:0", requests: 1000000 }
clients:
  - { name: ada, calls: ["{urn:t}ask"] }
listeners:
  - name: worker
    remote: { mode: push, url: "http://127.0.0.1:1/", secret: worker.secret, allow_private: true }
    schemas: [t.xsd]
    accepts: ["{urn:t}ask"]
    replies: ["{urn:t}answer"]
"#;

/// A site that signs what it pushes, with its client and its listener.
fn site() -> (Site, Who, Who) {
    let mut site = Site::idle(ORGANISM);
    std::fs::write(site.folder.join("worker.secret"), [SECRET, b"\n"].concat()).unwrap();
    site.start();
    let (ada, worker) = (site.party("ada"), site.party("worker"));
    (site, ada, worker)
}

/// An agent on a thread of its own, which ends when this value is dropped.
struct Agent {
    stop: watch::Sender<bool>,
    thread: JoinHandle<LoopEnd>,
}

impl Agent {
    /// Returns once the agent is registered.
    fn start(who: &Who, handler: impl Handler + 'static) -> Self {
        let mailbox = mailbox(who, "worker");
        let (stop, stopped) = watch::channel(false);
        let (tell, told) = channel();
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                let options = PushOptions::signed(Secret::new(SECRET)).path("/in");
                let mut delivery = PushDelivery::bind(([127, 0, 0, 1], 0).into(), options).await.unwrap();
                mailbox.register_push(&format!("http://{}/in", delivery.address())).await.unwrap();
                tell.send(()).unwrap();
                let options = LoopOptions::default().stop(Some(stopped));
                run_agent_loop(&mut delivery, &handler, &mailbox, options).await
            })
        });
        told.recv_timeout(PATIENCE).expect("waited a minute for the agent to register");
        Self { stop, thread }
    }

    fn end(self) {
        self.stop.send_replace(true);
        wait("the agent ends", || self.thread.is_finished().then_some(()));
        assert_eq!(self.thread.join().unwrap(), LoopEnd::Stopped);
    }
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
    let (_site, ada, worker) = site();
    let seen = Seen::default();
    let agent = Agent::start(&worker, seen.echo());
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
fn a_gateway_that_is_killed_while_the_agent_works_gets_the_one_answer() {
    let (mut site, ada, worker) = site();
    stay_here(&site);
    let (seen, go) = (Seen::default(), Arc::new(Semaphore::new(0)));
    let agent = Agent::start(&worker, held(&seen, &go, "once"));
    let sent = ada.send(1).is(202).json();
    seen.until(1);
    site.kill();
    site.start();
    go.add_permits(1);
    let known = answered(&ada, &sent);
    assert!(text(&known["reply"]["envelope"]).contains("once"), "{known}");
    assert_eq!(known["replies"].as_array().unwrap().len(), 1, "{known}");
    assert_eq!(seen.numbers(), [1], "it has the same id");
    agent.end();
}
