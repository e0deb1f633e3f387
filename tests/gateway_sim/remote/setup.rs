//! Helpers of the tests of agents.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use serde_json::{Value, json};
use systole::remote::{CallOptions, Failed, Handler, Inbound, InboundDelivery, Mailbox, RemoteError};
use systole::testing::World;
use systole::vocab::Time;
use tokio::sync::Notify;

use super::peer::{Act, Peer};
use crate::kit::{PATIENCE, Site, Who, text};

/// Options without waits between attempts.
pub(crate) fn options() -> CallOptions {
    let policy = CallOptions::default().policy.base(Duration::from_millis(1)).cap(Duration::from_millis(2)).jitter(0.0);
    CallOptions::default().policy(policy)
}

/// The mailbox of that listener.
pub(crate) fn mailbox(who: &Who, name: &str) -> Mailbox {
    at(&format!("http://{}", who.address()), name, who.token())
}

/// A mailbox at a scripted peer.
pub(crate) fn of(peer: &Peer) -> Mailbox {
    at(&format!("http://{}", peer.address), "worker", "t")
}

fn at(url: &str, name: &str, token: &str) -> Mailbox {
    Mailbox::new(url, name.parse().unwrap(), token, options()).unwrap()
}

/// Sends that many asks, and returns when all of them are in the mailbox: their numbers in its order.
pub(crate) fn asked(ada: &Who, worker: &Who, numbers: std::ops::Range<u32>) -> Vec<u32> {
    let all = numbers.end as usize;
    numbers.for_each(|number| drop(ada.send(number).is(202)));
    let page = worker.until(ALL, |page| page["items"].as_array().unwrap().len() == all);
    page["items"].as_array().unwrap().iter().map(|item| number(text(&item["envelope"]))).collect()
}

/// The path of the worker's whole mailbox.
pub(crate) const ALL: &str = "/v1/mailboxes/worker/messages?limit=500";

/// The number of an ask.
pub(crate) fn number(xml: &str) -> u32 {
    let (_, rest) = xml.split_once("<ask xmlns=\"urn:t\">").unwrap_or_else(|| panic!("no ask: {xml}"));
    rest.split('<').next().unwrap().parse().unwrap()
}

/// Any address of this machine.
pub(crate) const ANYWHERE: ([u8; 4], u16) = ([127, 0, 0, 1], 0);

/// Waits for a future for a minute of the clock; a failure names what was waited for.
pub(crate) async fn patiently<T>(what: &str, future: impl Future<Output = T>) -> T {
    let late = |_| panic!("waited a minute for: {what}");
    tokio::time::timeout(PATIENCE, future).await.unwrap_or_else(late)
}

/// The state of a client's message, once it has an answer.
pub(crate) fn answered(who: &Who, sent: &Value) -> Value {
    who.until(&format!("/v1/messages/{}", text(&sent["id"])), |known| known["reply"].is_object())
}

pub(crate) fn answer(words: &str) -> String {
    format!("<answer xmlns=\"urn:t\">{words}</answer>")
}

/// The messages that were handled, in order.
#[derive(Clone, Default)]
pub(crate) struct Seen(Arc<Mutex<Vec<Inbound>>>);

impl Seen {
    pub(crate) fn all(&self) -> MutexGuard<'_, Vec<Inbound>> {
        self.0.lock().unwrap()
    }

    /// Waits until so many were handled.
    pub(crate) fn until(&self, site: &Site, count: usize) {
        site.wait(&format!("{count} messages are handled"), || (self.all().len() >= count).then_some(()));
    }

    pub(crate) fn numbers(&self) -> Vec<u32> {
        self.all().iter().map(|message| number(&message.payload)).collect()
    }

    /// A handler that notes its messages, and replies with that.
    pub(crate) fn handler(
        &self,
        say: impl Fn(u32, &Inbound) -> Result<String, Failed> + Send + Sync + 'static,
    ) -> impl Handler + 'static {
        let (seen, say) = (self.clone(), Arc::new(say));
        move |message: Inbound| {
            let (seen, say) = (seen.clone(), say.clone());
            async move {
                seen.all().push(message.clone());
                say(number(&message.payload), &message)
            }
        }
    }

    /// A handler that replies with the number of its message.
    pub(crate) fn echo(&self) -> impl Handler + 'static {
        self.handler(|number, _| Ok(answer(&format!("to {number}."))))
    }
}

/// A handler that never answers, and a notification of its begin.
pub(crate) fn hang() -> (impl Handler + 'static, Arc<Notify>) {
    let began = Arc::new(Notify::new());
    let bell = began.clone();
    let hang = move |_: Inbound| {
        let bell = bell.clone();
        async move {
            bell.notify_one();
            std::future::pending::<Result<String, Failed>>().await
        }
    };
    (hang, began)
}

/// Handles batches until so many messages were handled.
pub(crate) async fn take(delivery: &mut dyn InboundDelivery, handler: &dyn Handler, count: usize) {
    let mut handled = 0;
    while handled < count {
        handled += delivery.run_once(handler).await.unwrap();
    }
    assert_eq!(handled, count);
}

/// The status of a refused batch.
pub(crate) fn status(batch: Result<usize, RemoteError>) -> u16 {
    let error = batch.unwrap_err();
    error.status().unwrap_or_else(|| panic!("no status: {error}"))
}

/// Sends a document.
pub(crate) fn say(status: &str, document: &Value) -> Act {
    let body = document.to_string();
    let text = format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\n\r\n{body}", body.len());
    Act::Say(Box::leak(text.into_boxed_str()))
}

/// Sends a page of items.
pub(crate) fn page(items: &[Value]) -> Act {
    say("200 OK", &json!({ "items": items, "next": "end", "oldest": "start", "has_more": false }))
}

pub(crate) fn id(number: u32) -> String {
    format!("00000000-0000-4000-8000-{number:012}")
}

/// An item with an ask of that number.
pub(crate) fn item(number: u32) -> Value {
    item_from(number, "ada")
}

pub(crate) fn item_from(number: u32, from: &str) -> Value {
    let thread = id(number + 500);
    let envelope = format!(
        "<message xmlns=\"https://xml-pipeline.org/ns/envelope/v1\"><meta><from>{from}</from><to>worker</to><thread>{thread}\
         </thread></meta><ask xmlns=\"urn:t\">{number}</ask></message>"
    );
    json!({ "id": id(number), "cursor": format!("c{number}"), "state": "waiting", "envelope": envelope })
}

/// A file of a site's folder.
pub(crate) fn cursor(site: &Site) -> PathBuf {
    site.folder.join("cursor")
}

/// The time at which the world of such a test begins.
pub(crate) const NOW: Time = Time::from_nanos(1_935_921_600_000_000_000);

/// Runs a test in a world of its own.
pub(crate) fn within(test: impl Future<Output = ()>) {
    World::at(NOW).block_on(test);
}
