//! Organisms of an `organism.yaml`, without a socket and on the clock of the test, and clients of their gateways.
//!
//! An organism is built as `systole run` builds it, by the same reader. A program among its listeners runs within
//! ([`Program`]): no other process takes part.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs;
use std::future::{Future, poll_fn};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::rc::Rc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Poll;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, HttpBody, to_bytes};
use axum::http::{HeaderMap, Request};
use serde_json::Value;
use systole::config::{Config, ListenerKind};
use systole::core::{Blueprint, Body as MessageBody, Failure, HandlerOutcome, Message};
use systole::gateway::{Gateway, PrincipalKind, RemoteListener};
use systole::journal::{JournalOptions, Principals};
use systole::ladder::Raw;
use systole::listeners::echo::EchoListener;
use systole::listeners::human::{HumanListener, People};
use systole::runtime::{LocalBoxFuture, Organism, OrganismBuilder, RawListener, RunContext};
use systole::schedules::{AnswersTo, Scheduler};
use systole::testing::{Kit, World};
use systole::vocab::{Name, Time};
use tokio::task::JoinHandle;
use tower::ServiceExt;

const SCHEMA: &str = r#"<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema" targetNamespace="urn:t" elementFormDefault="qualified">
  <xs:element name="ask" type="xs:int"/>
  <xs:element name="order" type="xs:int"/>
  <xs:element name="answer" type="xs:string"/>
  <xs:element name="note" type="xs:string"/>
  <xs:element name="say" type="xs:string"/>
  <xs:element name="fail" type="xs:string"/>
</xs:schema>
"#;

/// Two clients, two agents elsewhere, and the client of the command line.
const ORGANISM: &str = r#"organism: { name: remote }
durability: process
gateway: { listen: "127.0.0.1:0", GATEWAY }
retention: { age: AGE }
clients:
  - { name: ada, calls: ["{urn:t}ask", "{urn:t}order"] }
  - { name: bob, calls: ["{urn:t}ask"] }
  - { name: cli, calls: ["{urn:t}ask"] }
listeners:
  - name: worker
    remote: { mode: poll }
    schemas: [t.xsd]
    accepts: ["{urn:t}ask"]
    replies: ["{urn:t}answer"]
  - name: other
    remote: { mode: stream }
    accepts: ["{urn:t}order"]
    replies: ["{urn:t}answer"]
"#;

/// The client of the command line, whose answers the gateway leaves alone.
const CLIENT: &str = "cli";

/// The name of the journal where the file names none.
const JOURNAL: &str = "systole.journal";

/// The longest wait of a helper, on the clock of the organism; a failure names what it waited for.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// Time that passes between two looks of a helper that waits.
const STEP: Duration = Duration::from_millis(20);

/// A program that stands for the command of a listener: it gets the sender and the payload, and writes payloads, or fails.
pub(crate) type Program = fn(&str, &str) -> Option<String>;

/// The organism of most tests, with further keys in `gateway:`, and that retention.
pub(crate) fn organism(gateway: &str, age: &str) -> String {
    ORGANISM.replace("GATEWAY", gateway).replace("AGE", age)
}

/// A folder with an organism in it, and the organism as a process would run it; both end with this value.
pub(crate) struct Site {
    pub(crate) folder: PathBuf,
    programs: BTreeMap<&'static str, Program>,
    /// The world of the organism and its agents; it goes on when the organism ends.
    pub(crate) world: World,
    /// The address of the gateway, over all its starts.
    address: Option<SocketAddr>,
    running: Rc<RefCell<Option<Running>>>,
}

struct Running {
    /// Dropped before the kit.
    #[expect(dead_code, reason = "it runs as long as it is there")]
    scheduler: Option<Scheduler>,
    kit: Kit,
    router: Router,
    /// The kind of the principal of each name that can have a token.
    kinds: BTreeMap<String, PrincipalKind>,
}

impl Site {
    /// A running site with default settings.
    pub(crate) fn new() -> Self {
        Self::with("requests: 1000000", "7d")
    }

    /// A running site, with further keys in `gateway:`, and that retention.
    pub(crate) fn with(gateway: &str, age: &str) -> Self {
        Self::of(&organism(gateway, age))
    }

    /// A running site of another organism.
    pub(crate) fn of(organism: &str) -> Self {
        Self::of_programs(organism, [])
    }

    /// A running site of another organism, with the programs of its commands, by listener.
    pub(crate) fn of_programs(organism: &str, programs: impl IntoIterator<Item = (&'static str, Program)>) -> Self {
        let mut site = Self::idle(organism);
        site.programs = programs.into_iter().collect();
        site.start();
        site
    }

    /// A site that doesn't run yet.
    pub(crate) fn idle(organism: &str) -> Self {
        Self::idle_in(World::new(), organism)
    }

    /// A site in that world that doesn't run yet.
    pub(crate) fn idle_in(world: World, organism: &str) -> Self {
        let folder = fresh();
        fs::write(folder.join("organism.yaml"), organism).unwrap();
        fs::write(folder.join("t.xsd"), SCHEMA).unwrap();
        Self { folder, programs: BTreeMap::new(), world, address: None, running: Rc::default() }
    }

    /// A running site of an organism that is written in Rust: its builder and its gateway, for a journal.
    pub(crate) fn made(make: impl FnOnce(&Path) -> (OrganismBuilder, Gateway)) -> Self {
        let folder = fresh();
        let (builder, gateway) = make(&folder.join(JOURNAL));
        let world = World::new();
        let mut kit = world.start(builder).unwrap();
        let router = kit.serve(gateway, &[CLIENT]).unwrap();
        let (kinds, address) = (kinds(&kit.organism().blueprint(), []), kit.address());
        let running = Rc::new(RefCell::new(Some(Running { scheduler: None, kit, router, kinds })));
        Self { folder, programs: BTreeMap::new(), world, address, running }
    }

    /// Starts the organism, at the time at which it ended.
    pub(crate) fn start(&mut self) {
        let config = Config::load(&self.folder.join("organism.yaml")).unwrap_or_else(|mistakes| panic!("{mistakes:?}"));
        let Some(settings) = &config.gateway else { panic!("it has no gateway") };
        let settings = settings.clone().listen(self.address.unwrap_or(settings.listen));
        let listeners = config.blueprint.listeners().zip(&config.kinds);
        let modes = listeners.filter_map(|((_, contract), kind)| match kind {
            ListenerKind::Remote(mode) => Some((contract.name.clone(), mode.clone())),
            _ => None,
        });
        let modes: Vec<_> = modes.collect();
        let kinds = kinds(&config.blueprint, modes.iter().map(|(name, _)| name));
        let gateway = Gateway::new(&settings, modes).unwrap();
        let is_facade = settings.molecule;
        let builder = gateway.install(self.builder(&config, &gateway));
        let mut kit = self.world.start(builder).unwrap();
        let blueprint = kit.organism().blueprint();
        let gateway = if is_facade { systole::molecule::serve(gateway, &blueprint) } else { gateway };
        let router = kit.serve(gateway, &[CLIENT]).unwrap();
        self.address = kit.address();
        let read = |client: &Name| if client.as_str() == CLIENT { AnswersTo::Program } else { AnswersTo::Gateway };
        let scheduler = kit.block_on(async { Scheduler::start(kit.organism(), read) }).unwrap();
        *self.running.borrow_mut() = Some(Running { scheduler, kit, router, kinds });
    }

    /// The organism, as `systole run` builds it.
    fn builder(&self, config: &Config, gateway: &Gateway) -> OrganismBuilder {
        let (blueprint, journal) =
            (&config.blueprint, config.journal.as_ref().and_then(|journal| journal.as_file()).unwrap());
        let mut builder = Organism::builder(&*blueprint.organism)
            .limits(blueprint.limits.clone())
            .budget(blueprint.budget)
            .scheduling(blueprint.scheduling)
            .meta(blueprint.meta.clone())
            .schemas(config.payloads().cloned().collect::<Vec<_>>())
            .durable(journal.file.clone(), journal.durability)
            .retention(journal.retention);
        if let Some(identity) = &config.identity {
            builder = builder.identity(identity.clone());
        }
        for schedule in &config.schedules {
            builder = builder.schedule(schedule.clone());
        }
        let people = People::new();
        builder = builder.people(&people);
        for (_, client) in blueprint.clients() {
            builder = builder.raw_client(client.clone());
        }
        for ((_, contract), kind) in blueprint.listeners().zip(&config.kinds) {
            let contract = contract.clone();
            builder = match kind {
                ListenerKind::Remote(_) => {
                    let remote = RemoteListener::new(gateway.mailboxes().clone());
                    builder.raw_listener(contract, move || remote.clone())
                }
                ListenerKind::Human(human) => {
                    let listener = HumanListener::elsewhere(&people);
                    people.address(contract.name.clone(), human.to.clone());
                    builder.raw_listener(contract, move || listener.clone())
                }
                ListenerKind::Echo => builder.raw_listener(contract, EchoListener::default),
                ListenerKind::Tasks(tasks) => tasks.install(builder, &contract),
                _ => {
                    let program = *self.programs.get(contract.name.as_str()).expect("a program within");
                    builder.raw_listener(contract, move || Within(program))
                }
            };
        }
        builder
    }

    /// Ends the organism as `kill -9` does: its files are left as another process would find them.
    pub(crate) fn kill(&mut self) {
        let kept = fresh();
        for entry in fs::read_dir(&self.folder).unwrap() {
            let file = entry.unwrap().path();
            fs::copy(&file, kept.join(file.file_name().unwrap())).unwrap();
        }
        // What it does from now on reaches nobody.
        self.world.network().go_down();
        self.end();
        self.world.network().come_up();
        fs::remove_dir_all(&self.folder).unwrap();
        fs::rename(kept, &self.folder).unwrap();
    }

    /// Ends the organism in order, without time for what is in flight.
    pub(crate) fn stop(&mut self) {
        self.stop_within(Duration::ZERO);
    }

    /// Ends the organism in order, with that time for what is in flight.
    pub(crate) fn stop_within(&mut self, time: Duration) {
        self.running.borrow_mut().as_mut().unwrap().kit.drain(time);
        self.end();
    }

    fn end(&mut self) {
        drop(self.running.borrow_mut().take().unwrap());
    }

    /// Lets time pass, and runs what is due.
    pub(crate) fn advance(&self, duration: Duration) {
        self.with_kit(|kit| kit.advance(duration));
    }

    /// The time in the world of the organism.
    pub(crate) fn now(&self) -> Time {
        self.world.now()
    }

    fn with_kit<T>(&self, with: impl FnOnce(&Kit) -> T) -> T {
        with(&self.running.borrow().as_ref().unwrap().kit)
    }

    /// Begins the end of the organism, and makes a call at each of its first turns, and once behind it; what they gave.
    pub(crate) fn at_each_turn_of_the_end<T>(&self, call: impl AsyncFn(&Organism) -> T) -> Vec<T> {
        self.with_kit(|kit| {
            kit.block_on(async {
                let organism = kit.organism();
                let (mut end, mut told) = (Box::pin(organism.drain(Duration::ZERO)), Vec::new());
                let mut polled = Poll::Pending;
                for _ in 0..100 {
                    polled = poll_fn(|context| Poll::Ready(end.as_mut().poll(context))).await;
                    if polled.is_ready() {
                        break;
                    }
                    told.push(call(organism).await);
                    tokio::task::yield_now().await;
                }
                // The rest takes time, which passes while nobody has a turn.
                if polled.is_pending() {
                    end.await;
                }
                told.push(call(organism).await);
                told
            })
        })
    }

    /// Runs these at the same time, each one's turn ending where it waits; their results in order.
    pub(crate) fn together<T: 'static>(
        &self,
        parties: impl IntoIterator<Item = impl Future<Output = T> + 'static>,
    ) -> Vec<T> {
        self.with_kit(|kit| {
            kit.block_on(async {
                let running: Vec<_> = parties.into_iter().map(tokio::task::spawn_local).collect();
                let mut done = Vec::new();
                for party in running {
                    done.push(party.await.unwrap());
                }
                done
            })
        })
    }

    /// Waits for a future in the world of the organism, whether that runs or not; time passes as it must.
    pub(crate) fn run<T>(&self, future: impl Future<Output = T>) -> T {
        match &*self.running.borrow() {
            Some(running) => running.kit.block_on(future),
            None => self.world.block_on(future),
        }
    }

    /// Begins a task that goes on while the world does.
    #[allow(clippy::async_yields_async, reason = "the task is spawned on the runtime of the world, and awaited later")]
    pub(crate) fn spawn<T: 'static>(&self, task: impl Future<Output = T> + 'static) -> JoinHandle<T> {
        self.run(async { tokio::task::spawn_local(task) })
    }

    /// Lets time pass until a probe gives a value; a failure names what was waited for.
    #[track_caller]
    pub(crate) fn wait<T>(&self, what: &str, mut probe: impl FnMut() -> Option<T>) -> T {
        self.stranger().wait(what, || probe().ok_or(Value::Null))
    }

    /// Makes a token of the kind that the organism declares for the name.
    pub(crate) fn token(&self, name: &str) -> String {
        let kind = self.running.borrow().as_ref().unwrap().kinds[name];
        self.token_of(name, kind)
    }

    pub(crate) fn token_of(&self, name: &str, kind: PrincipalKind) -> String {
        let now = self.with_kit(Kit::now);
        self.principals().admit(name.parse().unwrap(), kind, now).unwrap().reveal().to_owned()
    }

    /// Makes the token of a name invalid.
    pub(crate) fn revoke(&self, name: &str) {
        assert!(self.principals().dismiss(&name.parse().unwrap()).unwrap(), "{name} had a token");
    }

    fn principals(&self) -> Principals {
        Principals::open(&self.folder.join(JOURNAL), &JournalOptions::new([7; 32])).unwrap()
    }

    /// A client with that token.
    pub(crate) fn who(&self, token: &str) -> Who {
        Who { running: self.running.clone(), address: self.address, token: Some(token.to_owned()) }
    }

    /// A client without a token.
    pub(crate) fn stranger(&self) -> Who {
        Who { running: self.running.clone(), address: self.address, token: None }
    }

    /// A client with a token of that name.
    pub(crate) fn party(&self, name: &str) -> Who {
        self.who(&self.token(name))
    }

    /// A client with the token of an admin.
    pub(crate) fn admin(&self) -> Who {
        self.who(&self.token_of("boss", PrincipalKind::Admin))
    }

    /// A figure of `/metrics`, which need no token.
    pub(crate) fn metric(&self, name: &str) -> u64 {
        let metrics = self.who("").get("/metrics").is(200).body;
        let figure = metrics.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        figure.unwrap_or_else(|| panic!("no {name}: {metrics}")).parse().unwrap()
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        *self.running.borrow_mut() = None;
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// A listener that is a program within.
struct Within(Program);

impl RawListener for Within {
    fn run(self: Rc<Self>, message: Message, _: RunContext) -> LocalBoxFuture<HandlerOutcome> {
        let written = match &message.body {
            MessageBody::Payload { payload, .. } => (self.0)(message.from.as_str(), payload.payload().as_str()),
            MessageBody::Fault(_) => None,
        };
        Box::pin(std::future::ready(match written {
            Some(written) => HandlerOutcome::Wrote(Raw::new(written)),
            None => HandlerOutcome::Failed(Failure::new("the program failed")),
        }))
    }
}

/// A client with a token, over all starts of its site.
#[derive(Clone)]
pub(crate) struct Who {
    running: Rc<RefCell<Option<Running>>>,
    address: Option<SocketAddr>,
    token: Option<String>,
}

/// An answer of the gateway.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    headers: HeaderMap,
    pub(crate) body: String,
}

impl Answer {
    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|_| panic!("no JSON: {self:?}"))
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().unwrap())
    }

    /// Checks the status.
    #[track_caller]
    pub(crate) fn is(self, status: u16) -> Self {
        assert_eq!(self.status, status, "{self:?}");
        self
    }

    /// Checks that the answer is that problem, in the shape that all problems have.
    #[track_caller]
    pub(crate) fn problem(self, status: u16, code: &str) -> Value {
        let answer = self.is(status);
        assert_eq!(answer.header("content-type"), Some("application/problem+json"), "{answer:?}");
        let problem = answer.json();
        assert_eq!((&problem["code"], &problem["status"]), (&code.into(), &status.into()), "{problem}");
        assert!(problem["type"].is_string() && problem["title"].is_string() && problem["detail"].is_string());
        problem
    }
}

/// A request that is in flight.
pub(crate) struct Pending {
    running: Rc<RefCell<Option<Running>>>,
    answer: JoinHandle<Answer>,
}

impl Pending {
    /// Waits for the answer; time passes as it must.
    pub(crate) fn answer(self) -> Answer {
        let running = self.running.borrow();
        running.as_ref().unwrap().kit.block_on(self.answer).unwrap()
    }
}

impl Who {
    /// The token.
    pub(crate) fn token(&self) -> &str {
        self.token.as_deref().unwrap()
    }

    /// The address of the gateway.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address.unwrap()
    }

    #[track_caller]
    pub(crate) fn get(&self, path: &str) -> Answer {
        self.ask("GET", path, &[], "")
    }

    #[track_caller]
    pub(crate) fn post(&self, path: &str, body: &str) -> Answer {
        self.ask("POST", path, &[], body)
    }

    /// Makes a request; time passes as its answer needs it.
    pub(crate) fn ask(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Answer {
        let asked = self.asking(method, path, headers, body);
        self.running.borrow().as_ref().unwrap().kit.block_on(asked)
    }

    /// Begins a request that is answered later.
    #[allow(
        clippy::async_yields_async,
        reason = "the task is spawned on the runtime of the organism, and awaited later"
    )]
    pub(crate) fn begin(&self, method: &str, path: &str, body: &str) -> Pending {
        let asked = self.asking(method, path, &[], body);
        let running = self.running.borrow();
        let answer = running.as_ref().unwrap().kit.block_on(async { tokio::task::spawn_local(asked) });
        Pending { running: self.running.clone(), answer }
    }

    /// A request, for a task that runs with others.
    pub(crate) fn asking(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> impl Future<Output = Answer> + 'static + use<> {
        let (request, router) = self.request(method, path, headers, body);
        async move {
            let response = router.oneshot(request).await.unwrap();
            let (status, headers) = (response.status().as_u16(), response.headers().clone());
            let bytes = to_bytes(response.into_body(), usize::MAX).await.unwrap();
            Answer { status, headers, body: String::from_utf8(bytes.into()).unwrap() }
        }
    }

    fn request(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> (Request<Body>, Router) {
        let mut request = Request::builder().method(method).uri(path).header("host", "x");
        if let Some(token) = &self.token {
            request = request.header("authorization", format!("Bearer {token}"));
        }
        if headers.iter().all(|(key, _)| *key != "Content-Length") {
            request = request.header("content-length", body.len());
        }
        let request = headers.iter().fold(request, |request, (key, value)| request.header(*key, value.as_bytes()));
        let request = request.body(Body::from(body.to_owned())).unwrap();
        (request, self.running.borrow().as_ref().unwrap().router.clone())
    }

    /// Opens a stream of events behind a place; the answer if that is no stream.
    pub(crate) fn stream(&self, path: &str, last: Option<&str>) -> Stream {
        let last: Vec<_> = last.iter().map(|last| ("last-event-id", *last)).collect();
        let (request, router) = self.request("GET", path, &last, "");
        let response = self.running.borrow().as_ref().unwrap().kit.block_on(router.oneshot(request)).unwrap();
        assert_eq!(response.status(), 200, "{response:?}");
        Stream { running: self.running.clone(), body: response.into_body(), text: String::new() }
    }

    /// Sends an ask with that number.
    #[track_caller]
    pub(crate) fn send(&self, number: u32) -> Answer {
        self.post("/v1/messages", &ask(number))
    }

    /// Leases some messages.
    #[track_caller]
    pub(crate) fn lease(&self, mailbox: &str, body: &str) -> Vec<Value> {
        let answer = self.post(&format!("/v1/mailboxes/{mailbox}/lease"), body).is(200);
        answer.json()["items"].as_array().unwrap().clone()
    }

    /// Applies an action to a leased message.
    #[track_caller]
    pub(crate) fn handle(&self, mailbox: &str, item: &Value, verb: &str) -> Answer {
        let body = serde_json::json!({ "receipt": item["receipt"] }).to_string();
        self.post(&format!("/v1/mailboxes/{mailbox}/messages/{}/{verb}", text(&item["id"])), &body)
    }

    /// Repeats a request until the condition holds.
    #[track_caller]
    pub(crate) fn until(&self, path: &str, so: impl Fn(&Value) -> bool) -> Value {
        self.wait(path, || {
            let last = self.get(path).json();
            if so(&last) { Ok(last) } else { Err(last) }
        })
    }

    /// Repeats a probe until it gives a value; a failure names what was waited for, and what there is instead.
    #[track_caller]
    pub(crate) fn wait<T>(&self, what: &str, mut probe: impl FnMut() -> Result<T, Value>) -> T {
        let mut waited = Duration::ZERO;
        loop {
            match probe() {
                Ok(found) => return found,
                Err(last) => assert!(waited < PATIENCE, "waited a minute for: {what}, which is {last}"),
            }
            self.running.borrow().as_ref().unwrap().kit.advance(STEP);
            waited += STEP;
        }
    }
}

/// A stream of server-sent events.
pub(crate) struct Stream {
    running: Rc<RefCell<Option<Running>>>,
    body: Body,
    text: String,
}

impl Stream {
    /// The id and the data of the next message; time passes as it must.
    pub(crate) fn next(&mut self) -> (String, Value) {
        let (id, kind, data) = self.next_event();
        assert_eq!(kind, "message");
        (id, data)
    }

    /// The id, the kind and the data of the next event; time passes as it must.
    pub(crate) fn next_event(&mut self) -> (String, String, Value) {
        self.try_next().expect("the stream goes on")
    }

    /// The same; none at the end of the stream.
    pub(crate) fn try_next(&mut self) -> Option<(String, String, Value)> {
        let began = self.now();
        loop {
            while let Some((event, rest)) = self.text.split_once("\n\n") {
                let (event, rest) = (event.to_owned(), rest.to_owned());
                self.text = rest;
                // A sign of life has no fields.
                if event != ":" {
                    let field = |name: &str| event.lines().find_map(|line| line.strip_prefix(name)).map(str::to_owned);
                    let data = serde_json::from_str(&field("data: ").unwrap()).unwrap();
                    return Some((field("id: ").unwrap_or_default(), field("event: ").unwrap(), data));
                }
            }
            assert!(self.now().since(began) < PATIENCE, "waited a minute for an event");
            let (running, body) = (self.running.borrow(), &mut self.body);
            let frame = poll_fn(|context| Pin::new(&mut *body).poll_frame(context));
            // Signs of life come meanwhile.
            let frame = running.as_ref().unwrap().kit.block_on(frame)?.unwrap();
            self.text += &String::from_utf8(frame.into_data().unwrap().into()).unwrap();
        }
    }

    /// The rest of the answer.
    pub(crate) fn into_body(self) -> Body {
        self.body
    }

    fn now(&self) -> Time {
        self.running.borrow().as_ref().unwrap().kit.now()
    }
}

/// The kinds of the principals of an organism with these remote listeners.
fn kinds<'a>(blueprint: &Blueprint, remote: impl IntoIterator<Item = &'a Name>) -> BTreeMap<String, PrincipalKind> {
    let clients = blueprint.clients().map(|(_, client)| (client.name.to_string(), PrincipalKind::Client));
    clients.chain(remote.into_iter().map(|name| (name.to_string(), PrincipalKind::Listener))).collect()
}

fn fresh() -> PathBuf {
    static MADE: AtomicUsize = AtomicUsize::new(0);
    let (process, number) = (std::process::id(), MADE.fetch_add(1, Ordering::Relaxed));
    let folder = std::env::temp_dir().join(format!("gateway-kit-{process}-{number}"));
    fs::create_dir_all(&folder).unwrap();
    folder
}

#[track_caller]
pub(crate) fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_else(|| panic!("no text: {value}"))
}

/// The envelope of an ask.
pub(crate) fn ask(number: u32) -> String {
    envelope(&format!("<ask xmlns=\"urn:t\">{number}</ask>"))
}

pub(crate) fn envelope(payload: &str) -> String {
    format!("<message xmlns=\"https://xml-pipeline.org/ns/envelope/v1\"><meta><from>x</from></meta>{payload}</message>")
}

pub(crate) fn reply(words: &str) -> String {
    format!("<answer xmlns=\"urn:t\">{words}</answer>")
}
