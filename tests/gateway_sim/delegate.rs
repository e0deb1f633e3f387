//! A delegate of its own, in an organism that is written in Rust.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use systole::actor::*;
use systole::gateway::{
    Block, BoxFuture, Call, DelegateError, Gateway, NoticeToken, QueueDelegate, QueueRead, Row, SessionId,
};
use systole::journal::Durability;
use systole::prelude::*;
use systole::settings::GatewaySettings;

use crate::kit::{Answer, Site, Who, envelope, text};

#[derive(Serialize, Deserialize, JsonSchema)]
struct Say {
    words: String,
}

impl Payload for Say {
    const NAMESPACE: &'static str = "urn:t";
    const ROOT: &'static str = "say";
}

struct Parrot;

impl Actor for Parrot {
    type Context = Context<Self>;
}

impl Handler<Delivery<Say>> for Parrot {
    type Result = Response;

    fn handle(&mut self, said: Delivery<Say>, _: &mut Context<Self>) -> Response {
        Ok(reply_any(Say { words: said.words.clone() }))
    }
}

/// The next answers of the delegate, and the calls that it got.
#[derive(Clone, Default)]
struct Moody(Arc<Mood>);

#[derive(Default)]
struct Mood {
    next: Mutex<&'static str>,
    calls: Mutex<Vec<Call>>,
    released: AtomicUsize,
}

impl QueueDelegate for Moody {
    fn read(&self, call: Call) -> BoxFuture<'_, Result<Option<QueueRead>, DelegateError>> {
        let next = *self.0.next.lock().unwrap();
        assert_ne!(next, "panics", "at once");
        Box::pin(async move {
            self.0.calls.lock().unwrap().push(call);
            let row = |id: &str| Row { id: id.into(), blocks: vec![Block::text("a <"), Block::text("?b")] };
            let rows = match next {
                "refuses" => return Err("not today".into()),
                "panics later" => panic!("later"),
                "has one" => vec![row("one")],
                "has too many" => (0..101).map(|_| row("many")).collect(),
                "has no rows" => Vec::new(),
                _ => return Ok(None),
            };
            Ok(Some(QueueRead { token: NoticeToken::draw(), rows }))
        })
    }

    fn confirm(&self, _: SessionId, _: NoticeToken) -> BoxFuture<'_, Result<Vec<String>, DelegateError>> {
        let refuses = *self.0.next.lock().unwrap() == "refuses";
        Box::pin(async move { if refuses { Err("not today".into()) } else { Ok(vec!["one".to_owned()]) } })
    }

    fn release(&self, _: SessionId, _: Option<NoticeToken>) -> BoxFuture<'_, Result<(), DelegateError>> {
        self.0.released.fetch_add(1, Ordering::Relaxed);
        Box::pin(async { Ok(()) })
    }
}

/// An organism with that delegate, and one of its clients.
struct Place {
    _site: Site,
    ada: Who,
}

impl Place {
    fn new(delegate: Moody) -> Self {
        let site = Site::made(|file| {
            let gateway = Gateway::new(&GatewaySettings::default(), []).unwrap().with_delegate(delegate);
            let organism = gateway.install(Organism::builder("office").durable(file, Durability::Process));
            let organism = organism.listener("parrot", || Parrot, |c| c.accepts::<Say>().replies::<Say>());
            (organism.client("ada", |c| c.calls::<Say>()), gateway)
        });
        let ada = site.party("ada");
        Self { _site: site, ada }
    }

    /// Makes the same call over and over.
    fn say(&self) -> Answer {
        let say = envelope("<say xmlns=\"urn:t\"><words>hello</words></say>");
        self.ada.ask("POST", "/v1/sessions/s/call?wait=60", &[("Idempotency-Key", "k")], &say).is(200)
    }
}

#[test]
fn whatever_a_delegate_does_only_good_rows_change_a_response() {
    let moody = Moody::default();
    let place = Place::new(moody.clone());
    let next = |what| *moody.0.next.lock().unwrap() = what;
    let bare = place.say().body;
    for trouble in ["refuses", "panics", "panics later", "has too many", "has no rows"] {
        next(trouble);
        assert_eq!(place.say().body, bare, "{trouble}");
    }
    assert_eq!(moody.0.released.load(Ordering::Relaxed), 1, "the rows that were too many");
    next("has one");
    let told = place.say().json();
    let blocks: Vec<_> = told["content"].as_array().unwrap().iter().map(|block| text(&block["text"])).collect();
    assert_eq!(blocks[1..3], ["a &lt;", "?b"]);
    let token = text(&told["metadata"]["notices"]["token"]);
    assert_eq!(told["metadata"]["notices"], json!({ "token": token, "rows": 1, "blocks": 4 }));

    let confirm = || place.ada.post("/v1/sessions/s/confirm", &json!({ "token": token }).to_string());
    next("refuses");
    confirm().problem(503, "store");
    next("");
    let confirmed: Value = confirm().is(200).json();
    assert_eq!(confirmed, json!({ "confirmed": [{ "token": token, "ids": ["one"] }] }));
    assert_eq!(place.say().body, bare);

    let calls = moody.0.calls.lock().unwrap();
    let call = &calls[0];
    assert_eq!((call.principal.as_str(), &*call.name, call.limits.rows, call.limits.bytes), ("ada", "s", 100, 65_536));
    assert!(calls.iter().all(|other| other.session == call.session));
    assert!(call.arguments.starts_with(b"<message ") && call.arguments.ends_with(b"</message>"));
    assert_eq!(calls.len(), 7, "once for each call, but for the one that panicked before it looked");
}
