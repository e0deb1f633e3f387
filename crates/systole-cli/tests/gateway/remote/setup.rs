//! Helpers of the tests of agents.

use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use serde_json::Value;
use systole::remote::{CallOptions, Failed, Handler, Inbound, InboundDelivery, Mailbox};

use crate::kit::{Site, Who, text, wait};

/// Options without waits between attempts.
pub(crate) fn options() -> CallOptions {
    let policy = CallOptions::default().policy.base(Duration::from_millis(1)).cap(Duration::from_millis(2)).jitter(0.0);
    CallOptions::default().policy(policy)
}

/// The mailbox of that listener.
pub(crate) fn mailbox(who: &Who, name: &str) -> Mailbox {
    at(&format!("http://{}", who.address), name, &who.token)
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
    pub(crate) fn until(&self, count: usize) {
        wait(&format!("{count} messages are handled"), || (self.all().len() >= count).then_some(()));
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

/// Handles batches until so many messages were handled.
pub(crate) async fn take(delivery: &mut dyn InboundDelivery, handler: &dyn Handler, count: usize) {
    let mut handled = 0;
    while handled < count {
        handled += delivery.run_once(handler).await.unwrap();
    }
    assert_eq!(handled, count);
}

/// Makes a site listen at its present address also after further starts.
pub(crate) fn stay_here(site: &Site) {
    let file = site.folder.join("organism.yaml");
    let organism = std::fs::read_to_string(&file).unwrap().replace("127.0.0.1:0", &site.address.to_string());
    std::fs::write(file, organism).unwrap();
}
