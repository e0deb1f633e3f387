//! An organism with a gateway, its façade and remote listeners, without a socket and on the clock of the test.

use std::collections::BTreeMap;
use std::fs;
use std::future::poll_fn;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Poll;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, HttpBody, to_bytes};
use axum::http::{Method, Request, StatusCode};
use serde_json::Value;
use systole::core::{ClientContract, Contract, Routing};
use systole::gateway::{Gateway, PrincipalKind, RemoteListener};
use systole::jobs::{Job, JobRegistry};
use systole::journal::{Durability, JournalOptions, Principals};
use systole::molecule;
use systole::runtime::Organism;
use systole::schema::PayloadSchema;
use systole::settings::{GatewaySettings, Mode};
use systole::testing::Kit;
use systole::vocab::{Name, QName, Time};
use tower::ServiceExt;

const SCHEMA: &str = r#"<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema" targetNamespace="urn:t" elementFormDefault="qualified">
  <xs:element name="ask" type="xs:int"/>
  <xs:element name="answer" type="xs:string"/>
  <xs:element name="note" type="xs:string"/>
</xs:schema>"#;

/// The schema of the façade's payload.
const CHAT: &str = include_str!("../../schemas/chat.xsd");

/// The façade's payload.
const SAID: &str = "{urn:systole:chat:v1}said";

pub(crate) const WORKER: &str = "/v1/mailboxes/worker";

/// The principals.
const PARTIES: [(&str, PrincipalKind); 7] = [
    ("ada", PrincipalKind::Client),
    ("bob", PrincipalKind::Client),
    ("worker", PrincipalKind::Listener),
    ("desk", PrincipalKind::Listener),
    ("scout", PrincipalKind::Listener),
    ("mate", PrincipalKind::Listener),
    ("boss", PrincipalKind::Admin),
];

/// Calls of `ada` and the worker about tasks: the worker owns the job `reviews`, and may register others.
const ADA: [&str; 4] = ["submit", "cancel", "find", "input"];
const OWNER: [&str; 9] =
    ["register", "remove", "accept", "progress", "artifact", "input-required", "complete", "fail", "reject"];

/// An organism whose clients are `ada` and `bob`, and whose listeners are remote: `worker`; `desk`, whose messages ride
/// on the responses to ada's calls; and the workspaces `scout` and `mate`.
pub(crate) struct Site {
    folder: PathBuf,
    tokens: BTreeMap<String, String>,
    set: fn(&mut Contract),
    // Dropped before the folder.
    kit: Option<Kit>,
    router: Router,
}

/// A request.
#[derive(Debug)]
pub(crate) struct Call<'a> {
    pub(crate) who: &'a str,
    pub(crate) method: Method,
    pub(crate) path: &'a str,
    pub(crate) key: Option<&'a str>,
    pub(crate) body: &'a str,
}

/// An answer of the gateway.
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

    /// A site with another contract of its listener.
    pub(crate) fn with(set: fn(&mut Contract)) -> Self {
        let folder = fresh();
        let journal = folder.join("x.journal");
        let mut principals = Principals::open(&journal, &JournalOptions::new([7; 32])).unwrap();
        let admit = |(name, kind): (&str, _)| {
            let token = principals.admit(name.parse().unwrap(), kind, Time::default()).unwrap();
            (name.to_owned(), token.reveal().to_owned())
        };
        let tokens = PARTIES.map(admit).into();
        drop(principals);
        Self::start(folder, tokens, set, None)
    }

    /// Starts the organism, at a time if an earlier one ended then.
    fn start(folder: PathBuf, tokens: BTreeMap<String, String>, set: fn(&mut Contract), ended: Option<Time>) -> Self {
        let file = folder.join("x.journal");
        let durability = Durability::Process;
        let [ada, worker, desk] = ["ada", "worker", "desk"].map(|name| name.parse::<Name>().unwrap());
        let mailboxes = [(ada.clone(), desk.clone())].into();
        let settings = GatewaySettings::default().requests(1_000_000).mailboxes(mailboxes);
        let [scout, mate] = ["scout", "mate"].map(|name| name.parse::<Name>().unwrap());
        let modes = [&worker, &desk, &scout, &mate].map(|name| (name.clone(), Mode::Poll));
        let gateway = Gateway::new(&settings, modes).unwrap();
        let remote = RemoteListener::new(gateway.mailboxes().clone());
        let elsewhere = |name: Name, accepts: &str| {
            let mut contract = Contract::new(name);
            contract.accepts = vec![accepts.parse().unwrap()];
            contract.replies = vec!["{urn:t}answer".parse().unwrap()];
            (contract.can_park, contract.timeout, contract.outlives, contract.concurrency) =
                (false, None, true, 10_000);
            contract
        };
        let tasks = |verb: &str| format!("{{urn:systole:task:v1}}{verb}").parse().unwrap();
        let (mut worker, desk) = (elsewhere(worker, "{urn:t}ask"), elsewhere(desk, "{urn:t}note"));
        let said: QName = SAID.parse().unwrap();
        let calls = worker.accepts.iter().chain(&desk.accepts).cloned().chain(ADA.map(tasks));
        let calls = calls.chain([said.clone()]).collect();
        worker.calls = OWNER.map(tasks).into();
        set(&mut worker);
        let workspace = |name: Name| {
            let mut contract = elsewhere(name, SAID);
            (contract.replies, contract.routing) = (vec![said.clone()], Routing::Addressed);
            contract
        };
        // Those who send texts, and nothing else: each workspace has a client of its own.
        let speakers = ["bob", "scout.voice", "mate.voice"].map(|name| name.parse().unwrap());
        let builder = Organism::builder("office")
            .durable(&file, durability)
            .schemas(PayloadSchema::from_xsd("t.xsd", SCHEMA).unwrap())
            .schemas(PayloadSchema::from_xsd("chat.xsd", CHAT).unwrap())
            .raw_client(ClientContract::new(ada).calls(calls))
            .raw_listener(worker, {
                let remote = remote.clone();
                move || remote.clone()
            })
            .raw_listener(desk, {
                let remote = remote.clone();
                move || remote.clone()
            });
        let builder = speakers.into_iter().fold(builder, |builder, speaker| {
            builder.raw_client(ClientContract::new(speaker).calls(vec![said.clone()]))
        });
        let builder = [scout, mate].into_iter().fold(builder, |builder, name| {
            let remote = remote.clone();
            builder.raw_listener(workspace(name), move || remote.clone())
        });
        let builder = JobRegistry::new("jobs").unwrap().install(builder);
        let builder = Job::new("reviews", "worker").unwrap().install(builder);
        let builder = gateway.install(builder);
        let kit = match ended {
            None => Kit::start(builder),
            Some(ended) => Kit::start_at(builder, ended),
        };
        let mut kit = kit.unwrap();
        let gateway = molecule::serve(gateway, &kit.organism().blueprint());
        let router = kit.serve(gateway, &[]).unwrap();
        Self { folder, tokens, set, kit: Some(kit), router }
    }

    /// The organism as another process would find it if this one were killed now.
    pub(crate) fn killed(&self) -> Self {
        self.at(self.copy())
    }

    /// A copy of all files.
    fn copy(&self) -> PathBuf {
        let folder = fresh();
        for entry in fs::read_dir(&self.folder).unwrap() {
            let file = entry.unwrap().path();
            fs::copy(&file, folder.join(file.file_name().unwrap())).unwrap();
        }
        folder
    }

    /// The same organism in another folder, at the present time of this one.
    fn at(&self, folder: PathBuf) -> Self {
        Self::start(folder, self.tokens.clone(), self.set, Some(self.kit().now()))
    }

    /// Loses all further writes: the journal has gone.
    pub(crate) fn lose_the_journal(&self) {
        fs::remove_file(self.folder.join("x.journal")).unwrap();
    }

    /// The folder of the journal, `x.journal`.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    pub(crate) fn kit(&self) -> &Kit {
        self.kit.as_ref().unwrap()
    }

    fn request(&self, call: &Call<'_>) -> Request<Body> {
        let Call { who, ref method, path, key, body } = *call;
        let token = &self.tokens[who];
        let request = Request::builder().method(method.clone()).uri(path).header("host", "x");
        let request = request.header("authorization", format!("Bearer {token}"));
        let request = key.iter().fold(request, |request, key| request.header("idempotency-key", *key));
        request.body(Body::from(body.to_owned())).unwrap()
    }

    /// Posts, and gives up after so many polls; none if there was no answer by then.
    pub(crate) fn cut(&self, who: &str, path: &str, key: Option<&str>, body: &str, polls: usize) -> Option<Answer> {
        self.cut_off(&Call { who, method: Method::POST, path, key, body }, polls)
    }

    /// Calls, and gives up after so many polls: no answer if there was none by then.
    pub(crate) fn cut_off(&self, call: &Call<'_>, polls: usize) -> Option<Answer> {
        self.cut_then(call, polls, || ()).0
    }

    /// Calls, and gives up after so many polls: no answer if there was none by then, and the organism as another
    /// process would find it if this one were killed at that moment.
    pub(crate) fn cut_call(&self, call: &Call<'_>, polls: usize) -> (Option<Answer>, Self) {
        let (answer, folder) = self.cut_then(call, polls, || self.copy());
        (answer, self.at(folder))
    }

    /// Opens a stream and reads frames of it, and gives up after so many polls in all: the frames by then.
    pub(crate) fn cut_stream(&self, who: &str, path: &str, polls: usize) -> String {
        let request = self.request(&Call { who, method: Method::GET, path, key: None, body: "" });
        let read = self.kit().block_on(async {
            let mut read = String::new();
            let router = self.router.clone();
            let mut reading = Box::pin(async {
                let mut body = router.oneshot(request).await.unwrap().into_body();
                while let Some(frame) = poll_fn(|cx| Pin::new(&mut body).poll_frame(cx)).await {
                    read += &String::from_utf8(frame.unwrap().into_data().unwrap().into()).unwrap();
                }
            });
            for _ in 0..polls {
                assert!(poll_fn(|cx| Poll::Ready(reading.as_mut().poll(cx))).await.is_pending(), "a stream goes on");
                tokio::task::yield_now().await;
            }
            drop(reading);
            read
        });
        self.kit().settle();
        read
    }

    /// Calls, gives up after so many polls, and does something at that moment.
    fn cut_then<T>(&self, call: &Call<'_>, polls: usize, then: impl FnOnce() -> T) -> (Option<Answer>, T) {
        let request = self.request(call);
        let done = self.kit().block_on(async {
            let mut asked = Box::pin(self.router.clone().oneshot(request));
            let mut answer = None;
            for _ in 0..polls {
                let polled = poll_fn(|cx| Poll::Ready(asked.as_mut().poll(cx))).await;
                if let Poll::Ready(response) = polled {
                    answer = Some(read(response.unwrap()).await);
                    break;
                }
                tokio::task::yield_now().await;
            }
            drop(asked);
            (answer, then())
        });
        self.kit().settle();
        done
    }

    /// The answer to a call after that many polls of another one, which is in flight; and the organism as another
    /// process would find it if this one were killed as the answer comes.
    pub(crate) fn beside(&self, under_way: &Call<'_>, polls: usize, call: &Call<'_>) -> (Answer, Self) {
        let (first, second) = (self.request(under_way), self.request(call));
        let (answer, folder) = self.kit().block_on(async {
            let mut first = Box::pin(self.router.clone().oneshot(first));
            for poll in 0..polls {
                // After the last poll no other task runs before the second call.
                if poll > 0 {
                    tokio::task::yield_now().await;
                }
                if poll_fn(|cx| Poll::Ready(first.as_mut().poll(cx))).await.is_ready() {
                    break;
                }
            }
            let answer = read(self.router.clone().oneshot(second).await.unwrap()).await;
            (answer, self.copy())
        });
        self.kit().settle();
        (answer, self.at(folder))
    }

    /// Calls, and ends the organism in order meanwhile: the end begins after so many polls of the call, and has
    /// `ahead` turns before the call goes on. The answer, whether it came before the end began, and the organism's next
    /// start.
    pub(crate) fn end_during(self, call: &Call<'_>, polls: usize, ahead: usize) -> (Answer, bool, Self) {
        let request = self.request(call);
        let (answer, early) = self.kit().block_on(async {
            let router = self.router.clone();
            let mut asked = Box::pin(async { read(router.oneshot(request).await.unwrap()).await });
            let mut answer = None;
            for _ in 0..polls {
                match poll_fn(|cx| Poll::Ready(asked.as_mut().poll(cx))).await {
                    Poll::Ready(done) => {
                        answer = Some(done);
                        break;
                    }
                    Poll::Pending => tokio::task::yield_now().await,
                }
            }
            let mut end = Box::pin(self.kit().organism().drain(Duration::ZERO));
            let over = poll_fn(|cx| Poll::Ready(end.as_mut().poll(cx))).await;
            assert!(over.is_pending(), "an end takes its time");
            if let Some(answer) = answer {
                end.await;
                return (answer, true);
            }
            // A task of its own takes turns with those that end the organism.
            let asked = tokio::task::spawn_local(async move {
                for _ in 0..ahead {
                    turn().await;
                }
                asked.await
            });
            (tokio::join!(end, asked).1.unwrap(), false)
        });
        let folder = self.copy();
        (answer, early, self.at(folder))
    }

    pub(crate) fn post(&self, who: &str, path: &str, key: Option<&str>, body: &str) -> Answer {
        self.call(&Call { who, method: Method::POST, path, key, body })
    }

    pub(crate) fn call(&self, call: &Call<'_>) -> Answer {
        let request = self.request(call);
        self.kit().block_on(async { read(self.router.clone().oneshot(request).await.unwrap()).await })
    }

    pub(crate) fn get(&self, who: &str, path: &str) -> Answer {
        self.call(&Call { who, method: Method::GET, path, key: None, body: "" })
    }

    /// Sends a question; returns the id of the message.
    pub(crate) fn ask(&self, number: usize) -> String {
        text(&self.post("ada", "/v1/messages", None, &ask(number)).is(202)["id"])
    }

    pub(crate) fn lease(&self, body: &str) -> Vec<Value> {
        let leased = self.post("worker", &format!("{WORKER}/lease"), None, body).is(200);
        leased["items"].as_array().unwrap().clone()
    }

    /// The state of a client's message.
    pub(crate) fn sent(&self, id: &str) -> Value {
        self.get("ada", &format!("/v1/messages/{id}")).is(200)
    }

    /// All messages of the mailbox, ended or not.
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

/// Lets all other tasks that are ready go on once.
async fn turn() {
    let mut waited = false;
    poll_fn(|cx| match std::mem::replace(&mut waited, true) {
        true => Poll::Ready(()),
        false => {
            cx.waker().wake_by_ref();
            Poll::Pending
        }
    })
    .await;
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
    let folder = std::env::temp_dir().join(format!("gateway-sim-{process}-{number}"));
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
