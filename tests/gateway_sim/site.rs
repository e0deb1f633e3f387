//! An organism with a gateway and a remote listener, without a socket and on the clock of the test.

use std::fs;
use std::future::poll_fn;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Poll;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::{Method, Request, StatusCode};
use serde_json::Value;
use systole::core::{Client, Contract};
use systole::gateway::{Gateway, Kind, RemoteListener};
use systole::schema::PayloadSchema;
use systole::shell::Organism;
use systole::shell::config::{Gateway as Settings, Journaled, Mode};
use systole::shell::journal::{Durability, Options, Principals, Retention};
use systole::testing::Kit;
use systole::vocab::{Name, Time};
use tower::ServiceExt;

const SCHEMA: &str = r#"<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema" targetNamespace="urn:t" elementFormDefault="qualified">
  <xs:element name="ask" type="xs:int"/>
  <xs:element name="answer" type="xs:string"/>
</xs:schema>"#;

pub(crate) const WORKER: &str = "/v1/mailboxes/worker";

/// An organism whose listener `worker` is elsewhere, and whose client is `ada`.
pub(crate) struct Site {
    folder: PathBuf,
    ada: String,
    worker: String,
    set: fn(&mut Contract),
    // Before the folder goes.
    kit: Option<Kit>,
    router: Router,
}

/// What came back.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) body: Value,
}

impl Answer {
    #[track_caller]
    pub(crate) fn is(self, status: u16) -> Value {
        assert_eq!(self.status.as_u16(), status, "{}", self.body);
        self.body
    }
}

impl Site {
    pub(crate) fn new() -> Self {
        Self::with(|_| {})
    }

    /// A site that changes the contract of its listener.
    pub(crate) fn with(set: fn(&mut Contract)) -> Self {
        let folder = fresh();
        let journal = folder.join("x.journal");
        let mut principals = Principals::open(&journal, &Options::new([7; 32])).unwrap();
        let mut admit = |name: &str, kind| {
            let token = principals.admit(name.parse().unwrap(), kind, Time::default()).unwrap();
            token.reveal().to_owned()
        };
        let (ada, worker) = (admit("ada", Kind::Client), admit("worker", Kind::Listener));
        drop(principals);
        Self::start(folder, ada, worker, set)
    }

    fn start(folder: PathBuf, ada: String, worker: String, set: fn(&mut Contract)) -> Self {
        let file = folder.join("x.journal");
        let (durability, retention) = (Durability::Process, Retention::default());
        let settings = Settings { requests: 1_000_000, ..Settings::default() };
        let journal = Journaled { file: file.clone(), durability, retention };
        let name: Name = "worker".parse().unwrap();
        let gateway = Gateway::new(&settings, &journal, [(name.clone(), Mode::Poll)]).unwrap();
        let remote = RemoteListener::new(gateway.mailboxes().clone());
        let mut contract = Contract::new(name);
        contract.accepts = vec!["{urn:t}ask".parse().unwrap()];
        contract.replies = vec!["{urn:t}answer".parse().unwrap()];
        (contract.can_park, contract.timeout, contract.outlives, contract.concurrency) = (false, None, true, 10_000);
        set(&mut contract);
        let ask = Client { name: "ada".parse().unwrap(), calls: contract.accepts.clone(), admin: false };
        let builder = Organism::builder("office")
            .durable(&file, durability)
            .schemas(PayloadSchema::from_xsd("t.xsd", SCHEMA).unwrap())
            .raw_client(ask)
            .raw_listener(contract, move || remote.clone());
        let mut kit = Kit::start(gateway.install(builder)).unwrap();
        let router = kit.serve(gateway, &[]).unwrap();
        Self { folder, ada, worker, set, kit: Some(kit), router }
    }

    /// The organism as another process would find it if this one were killed now.
    pub(crate) fn killed(&self) -> Self {
        let folder = fresh();
        for entry in fs::read_dir(&self.folder).unwrap() {
            let file = entry.unwrap().path();
            fs::copy(&file, folder.join(file.file_name().unwrap())).unwrap();
        }
        Self::start(folder, self.ada.clone(), self.worker.clone(), self.set)
    }

    pub(crate) fn kit(&self) -> &Kit {
        self.kit.as_ref().unwrap()
    }

    fn request(&self, who: &str, method: Method, path: &str, key: Option<&str>, body: &str) -> Request<Body> {
        let token = if who == "ada" { &self.ada } else { &self.worker };
        let request = Request::builder().method(method).uri(path).header("host", "x");
        let request = request.header("authorization", format!("Bearer {token}"));
        let request = key.iter().fold(request, |request, key| request.header("idempotency-key", *key));
        request.body(Body::from(body.to_owned())).unwrap()
    }

    /// Asks, and gives up after so many polls; none if there was no answer by then.
    pub(crate) fn cut(&self, who: &str, path: &str, key: Option<&str>, body: &str, polls: usize) -> Option<Answer> {
        let request = self.request(who, Method::POST, path, key, body);
        let answer = self.kit().block_on(async {
            let mut asked = pin!(self.router.clone().oneshot(request));
            for _ in 0..polls {
                let polled = poll_fn(|cx| Poll::Ready(asked.as_mut().poll(cx))).await;
                if let Poll::Ready(answer) = polled {
                    return Some(read(answer.unwrap()).await);
                }
                tokio::task::yield_now().await;
            }
            None
        });
        self.kit().settle();
        answer
    }

    pub(crate) fn post(&self, who: &str, path: &str, key: Option<&str>, body: &str) -> Answer {
        let request = self.request(who, Method::POST, path, key, body);
        self.kit().block_on(async { read(self.router.clone().oneshot(request).await.unwrap()).await })
    }

    pub(crate) fn get(&self, who: &str, path: &str) -> Answer {
        let request = self.request(who, Method::GET, path, None, "");
        self.kit().block_on(async { read(self.router.clone().oneshot(request).await.unwrap()).await })
    }

    /// Sends a question; the id of the message.
    pub(crate) fn ask(&self, number: usize) -> String {
        text(&self.post("ada", "/v1/messages", None, &ask(number)).is(202)["id"])
    }

    pub(crate) fn lease(&self, body: &str) -> Vec<Value> {
        let leased = self.post("worker", &format!("{WORKER}/lease"), None, body).is(200);
        leased["items"].as_array().unwrap().clone()
    }

    /// What is known of a message that was sent.
    pub(crate) fn sent(&self, id: &str) -> Value {
        self.get("ada", &format!("/v1/messages/{id}")).is(200)
    }

    /// All messages of the mailbox, whatever became of them.
    pub(crate) fn all(&self) -> Vec<Value> {
        let page = self.get("worker", &format!("{WORKER}/messages?limit=500")).is(200);
        page["items"].as_array().unwrap().clone()
    }

    pub(crate) fn metric(&self, name: &str) -> u64 {
        let metrics = self.get("ada", "/metrics").is(200);
        let line = metrics.as_str().unwrap().lines().find_map(|line| line.strip_prefix(&format!("{name} ")));
        line.unwrap().parse().unwrap()
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        self.kit = None;
        let _ = fs::remove_dir_all(&self.folder);
    }
}

async fn read(response: axum::response::Response) -> Answer {
    let status = response.status();
    let bytes = to_bytes(response.into_body(), 1 << 24).await.unwrap();
    let body = serde_json::from_slice(&bytes).unwrap_or_else(|_| String::from_utf8_lossy(&bytes).into_owned().into());
    Answer { status, body }
}

fn fresh() -> PathBuf {
    static MADE: AtomicUsize = AtomicUsize::new(0);
    let (process, number) = (std::process::id(), MADE.fetch_add(1, Ordering::Relaxed));
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("gateway-sim-{process}-{number}"));
    fs::create_dir_all(&folder).unwrap();
    folder
}

pub(crate) fn text(value: &Value) -> String {
    value.as_str().unwrap_or_else(|| panic!("no text: {value}")).to_owned()
}

pub(crate) fn ask(number: usize) -> String {
    format!(
        "<message xmlns=\"https://xml-pipeline.org/ns/envelope/v1\"><meta><from>ada</from></meta>\
         <ask xmlns=\"urn:t\">{number}</ask></message>"
    )
}

pub(crate) fn answer(text: &str) -> String {
    format!("<answer xmlns=\"urn:t\">{text}</answer>")
}
