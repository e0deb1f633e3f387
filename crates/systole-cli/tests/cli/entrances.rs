//! One table of the acts and looks of operators: what each entrance does with each of them, while the organism runs, when it
//! has stopped, and where it lives in memory.
//!
//! All entrances reach the same organism: the library's handle, its gateway, the socket beside its journal, and the program.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};
use systole::config::{Config, ConfiguredOrganism};
use systole::gateway::{Method, PrincipalKind, call_operator};
use systole::journal::{JournalOptions, Journaled, Principals};
use systole::operations::{Act, Page, Past, Wanted};
use systole::runtime::block_on;
use systole::vocab::{Name, Time};

use crate::kit::Scratch;
use crate::kit::waiting::until;

/// A durable organism: a listener that waits for a file, one whose output is refused, a mailbox, a job.
const ORGANISM: &str = r#"organism: { name: desk }
durability: process
journal: desk.journal
gateway: { listen: "127.0.0.1:PORT" }
clients: [{ name: cli, calls: ["{urn:t}say", "{urn:t}fail", "{urn:t}ask", "{urn:systole:task:v1}submit"] }]
listeners:
  - name: parrot
    command: [sh, -c, "while [ ! -e go ]; do sleep 0.01; done; echo '<say xmlns=\"urn:t\">done</say>'"]
    schemas: [thing.xsd]
    accepts: ["{urn:t}say"]
    replies: ["{urn:t}say"]
    concurrency: 64
  - name: broken
    command: [echo, "<verdict xmlns=\"urn:t\">no</verdict>"]
    accepts: ["{urn:t}fail"]
    replies: ["{urn:t}verdict"]
  - name: agent
    remote: { mode: poll }
    accepts: ["{urn:t}ask"]
    replies: ["{urn:t}say"]
  - name: reviews
    job: { owner: cli }
"#;

/// A message with a task for the job.
const TASK: &str = "<message xmlns='https://xml-pipeline.org/ns/envelope/v1'><meta><from>cli</from><to>reviews</to></meta>\
                    <submit xmlns='urn:systole:task:v1'><description>Read chapter 3.</description></submit></message>";

/// The entrances, in the order of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Entrance {
    Library,
    Http,
    Socket,
    Program,
}

const ENTRANCES: [Entrance; 4] = [Entrance::Library, Entrance::Http, Entrance::Socket, Entrance::Program];

/// The way of an entrance with an operation.
#[derive(Debug, Clone, Copy)]
enum Cell {
    Works,
    /// It refuses, in these words.
    Refused(&'static str),
    /// It has no such call, for this reason.
    Absent(&'static str),
}
use Cell::{Absent, Refused, Works};

/// A condition on what a look shows, and whether a record meets it.
type Case = (&'static str, &'static str, &'static str, fn(&Value) -> bool);

fn has(record: &Value, listener: &str) -> bool {
    record["listeners"].as_array().unwrap().iter().any(|name| name == listener)
}

const CASES: [Case; 12] = [
    ("conversations", "listener", "parrot", |one| has(one, "parrot")),
    ("conversations", "listener", "-parrot", |one| !has(one, "parrot")),
    ("conversations", "listener", "-parrot -broken", |one| !has(one, "parrot") && !has(one, "broken")),
    ("conversations", "listener", "agent -parrot", |one| has(one, "agent")),
    ("conversations", "payload", "-{urn:t}say -{urn:t}ask", |one| {
        one["payload"] != "{urn:t}say" && one["payload"] != "{urn:t}ask"
    }),
    ("conversations", "fault", "-failed", |one| one["fault"] != "failed"),
    ("conversations", "fault", "-failed -payload", |one| one["fault"].is_null()),
    ("dead-letters", "listener", "agent", |letter| letter["listener"] == "agent"),
    ("dead-letters", "listener", "-agent", |letter| letter["listener"] != "agent"),
    ("dead-letters", "payload", "-{urn:t}ask", |letter| letter["payload"] != "{urn:t}ask"),
    ("dead-letters", "fault", "-failed", |letter| letter["fault"] != "failed"),
    ("dead-letters", "fault", "-payload -limit", |letter| letter["fault"] != "payload"),
];

/// Conditions that no entrance takes, with words of the reason.
const MISTAKES: [(&str, &str, &str); 4] = [
    ("listener", "parrot agent", "write -agent to leave it out"),
    ("listener", "-", "empty"),
    ("payload", "-{urn:t", "{namespace}local"),
    ("fault", "-failed -because", "'because' is no code of a fault"),
];

fn wanted(name: &str, value: &str) -> Wanted {
    let mut wanted = Wanted::default();
    let field = match name {
        "listener" => &mut wanted.listener,
        "payload" => &mut wanted.payload,
        _ => &mut wanted.fault,
    };
    *field = Some(value.to_owned());
    wanted
}

/// A stopped organism has no process that answers: its program and its library read the journal.
const NOBODY: Cell = Absent("no process listens: HTTP and the socket end with the organism");
const LIVE: Cell = Refused("no running organism serves operators");
const TYPE: Cell = Absent("the library has this for the running organism alone");
const PAST: Cell = Refused("has no journal, so it keeps no past");

/// Each operation: running, by entrance; stopped, by entrance; in memory, where the library is the only entrance, as gateway,
/// socket and program need a journal.
#[rustfmt::skip]
const TABLE: [(&str, [Cell; 4], [Cell; 4], Cell); 16] = [
    ("conversations", [Works, Works, Works, Works], [Works, NOBODY, NOBODY, Works], Works),
    ("threads",       [Works, Works, Works, Works], [Works, NOBODY, NOBODY, Works], Works),
    ("messages",      [Works, Works, Works, Works], [Works, NOBODY, NOBODY, Works], PAST),
    ("dead-letters",  [Works, Works, Works, Works], [Works, NOBODY, NOBODY, Works], Works),
    ("mailboxes",     [Works, Works, Works, Works], [Works, NOBODY, NOBODY, Works], Works),
    ("tasks",         [Works, Works, Works, Works], [Works, NOBODY, NOBODY, Works], Works),
    ("acts",          [Works, Works, Works, Works], [Works, NOBODY, NOBODY, Works], PAST),
    ("listeners",     [Works, Works, Works, Works], [TYPE,  NOBODY, NOBODY, LIVE],  Works),
    ("pause",         [Works, Works, Works, Works], [TYPE,  NOBODY, NOBODY, LIVE],  Works),
    ("resume",        [Works, Works, Works, Works], [TYPE,  NOBODY, NOBODY, LIVE],  Works),
    ("cancel",        [Works, Works, Works, Works], [TYPE,  NOBODY, NOBODY, LIVE],  Works),
    ("redrive",       [Works, Works, Works, Works], [TYPE,  NOBODY, NOBODY, Works], Works),
    ("discard",       [Works, Works, Works, Works], [TYPE,  NOBODY, NOBODY, Works], Works),
    ("retry",         [Works, Works, Works, Works], [TYPE,  NOBODY, NOBODY, Works], PAST),
    ("log-level",     [Refused("sets no levels of its log"), Refused("sets no levels of its log"),
                       Refused("sets no levels of its log"), Refused("sets no levels of its log")],
                                                    [TYPE,  NOBODY, NOBODY, LIVE],  Refused("sets no levels of its log")),
    ("drain",         [Works, Works, Works, Works], [TYPE,  NOBODY, NOBODY, LIVE],  Works),
];

/// The answer of an entrance: the records of a look or the outcomes of an act, or the reason of a refusal.
type Answer = Result<Vec<Value>, String>;

struct Desk {
    folder: Scratch,
    port: u16,
    token: String,
    running: Option<ConfiguredOrganism>,
}

impl Desk {
    fn start(name: &str) -> Self {
        let folder = Scratch::new("entrances");
        let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let yaml =
            ORGANISM.replace("PORT", &port.to_string()).replace("{ name: desk }", &format!("{{ name: {name} }}"));
        fs::write(folder.join("organism.yaml"), yaml).unwrap();
        let schema = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/golden/run/thing.xsd");
        fs::copy(schema, folder.join("thing.xsd")).unwrap();
        let journal = folder.join("desk.journal");
        let mut principals = Principals::open(&journal, &JournalOptions::new([7; 32])).unwrap();
        let admit = |principals: &mut Principals, name: &str, kind| {
            principals.admit(name.parse().unwrap(), kind, Time::default()).unwrap().reveal().to_owned()
        };
        let token = admit(&mut principals, "boss", PrincipalKind::Admin);
        drop(principals);
        let mut desk = Self { folder, port, token, running: None };
        desk.running = Some(desk.run());
        desk
    }

    fn run(&self) -> ConfiguredOrganism {
        let config = Config::load(&self.folder.join("organism.yaml")).unwrap();
        config.into_builder(None).unwrap().start(&["cli"]).unwrap()
    }

    fn journal(&self) -> PathBuf {
        self.folder.join("desk.journal")
    }

    fn organism(&self) -> &systole::runtime::Organism {
        &self.running.as_ref().unwrap().organism
    }

    fn send(&self, payload: &str) {
        self.organism().client("cli").unwrap().send(payload.to_owned()).unwrap();
    }

    fn program(&self, args: &[&str]) -> Result<String, String> {
        let mut command = Command::new(env!("CARGO_BIN_EXE_systole"));
        let output = command.args(args).current_dir(&self.folder).env_remove("SYSTOLE_LOG").output().unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        match output.status.success() {
            true => Ok(text(&output.stdout)),
            false => Err(text(&output.stdout) + &text(&output.stderr)),
        }
    }

    /// Asks over HTTP or at the socket.
    fn call(&self, entrance: Entrance, method: &str, path: &str, body: &str) -> Answer {
        let (status, body) = match entrance {
            Entrance::Socket => {
                let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
                let method = if method == "GET" { Method::GET } else { Method::POST };
                let journal = self.journal();
                let call = call_operator(&journal, method, path, body.as_bytes().to_vec());
                let (status, bytes) = runtime.block_on(call).unwrap();
                (status, serde_json::from_slice::<Value>(&bytes).unwrap())
            }
            _ => self.ask(method, path, body),
        };
        match status {
            200 => Ok(body["items"].as_array().or(body["outcomes"].as_array()).unwrap().clone()),
            _ => Err(body["detail"].as_str().unwrap().to_owned()),
        }
    }

    /// Looks; `of` is the conversation or the thread.
    fn look(&self, entrance: Entrance, look: &str, of: &str) -> Answer {
        match entrance {
            Entrance::Library => match &self.running {
                Some(running) => library(&running.organism, look, of),
                None => past(&self.journal(), look, of),
            },
            Entrance::Http | Entrance::Socket => {
                let path = match look {
                    "threads" => format!("/v1/admin/conversations/{of}/threads"),
                    "messages" => format!("/v1/admin/threads/{of}/messages"),
                    look => format!("/v1/admin/{look}"),
                };
                self.call(entrance, "GET", &path, "")
            }
            Entrance::Program => {
                let args: &[&str] = match look {
                    "conversations" => &["thread", "list", "--json"],
                    "threads" => &["thread", "tree", of, "--json"],
                    "messages" => &["thread", "show", of, "--json"],
                    "dead-letters" => &["dead", "list", "--json"],
                    "mailboxes" => &["mailboxes", "--json"],
                    "tasks" => &["tasks", "--json"],
                    "acts" => &["audit", "--json"],
                    _ => &["top", "--json"],
                };
                let printed: Value = serde_json::from_str(&self.program(args)?).unwrap();
                let printed = if look == "listeners" { printed["listeners"].clone() } else { printed };
                Ok(printed.as_array().unwrap().clone())
            }
        }
    }

    /// The ids of what a look shows that meets a condition, in order.
    fn found(&self, entrance: Entrance, look: &str, (name, value): (&str, &str)) -> Result<Vec<String>, String> {
        let records = match entrance {
            Entrance::Library => match &self.running {
                Some(running) => library_where(&running.organism, look, "", &wanted(name, value))?,
                None => {
                    let past = Past::open(&Journaled::new(self.journal())).unwrap();
                    let records = block_on(async {
                        Ok(match look {
                            "conversations" => records(past.conversations(&wanted(name, value)).await?),
                            _ => records(past.dead_letters(&wanted(name, value)).await?),
                        })
                    });
                    records.map_err(|error: systole::operations::LookError| error.to_string())?
                }
            },
            Entrance::Http | Entrance::Socket => {
                let encode =
                    |c: char| if c.is_ascii_alphanumeric() { c.to_string() } else { format!("%{:02X}", c as u32) };
                let value: String = value.chars().map(encode).collect();
                self.call(entrance, "GET", &format!("/v1/admin/{look}?{name}={value}"), "")?
            }
            Entrance::Program => {
                let what = if look == "conversations" { "thread" } else { "dead" };
                let printed = self.program(&[what, "list", "--json", &format!("--{name}"), value])?;
                serde_json::from_str::<Value>(&printed).unwrap().as_array().unwrap().clone()
            }
        };
        Ok(ids(look, records.iter()))
    }

    /// Does an act on something of its own.
    fn act(&self, entrance: Entrance, act: &Value) -> Answer {
        match entrance {
            Entrance::Library => acted(self.organism(), act),
            Entrance::Http | Entrance::Socket => self.call(entrance, "POST", "/v1/admin/acts", &act.to_string()),
            Entrance::Program => {
                let text = |name: &str| act[name].as_str().unwrap_or_default();
                let letter = act["letters"]["ids"][0].as_str().unwrap_or_default();
                let args: &[&str] = match text("act") {
                    "cancel" => &["cancel", text("conversation")],
                    "redrive" => &["dead", "redrive", letter],
                    "discard" => &["dead", "drop", letter],
                    "retry" => &["thread", "retry", text("conversation")],
                    "log-level" => &["log-level", text("level")],
                    "drain" => &["drain", "--within", "0"],
                    verb => &[verb, text("listener")],
                };
                self.program(args).map(|printed| vec![json!(printed)])
            }
        }
    }

    /// Makes something that an act can be about, and returns the act.
    fn prepare(&self, act: &str) -> Value {
        match act {
            "pause" | "resume" => json!({ "act": act, "listener": "parrot" }),
            "log-level" => json!({ "act": act, "level": "debug" }),
            "drain" => json!({ "act": act, "within": 0 }),
            "cancel" | "retry" => {
                let known = self.conversations();
                self.send("<say xmlns='urn:t'>hi</say>");
                let new = || self.conversations().into_iter().find(|id| !known.contains(id));
                json!({ "act": act, "conversation": until("a conversation", new) })
            }
            _ => json!({ "act": act, "letters": { "ids": [self.letter()] } }),
        }
    }

    fn conversations(&self) -> Vec<String> {
        let found = library(self.organism(), "conversations", "").unwrap();
        found.iter().map(|one| one["conversation"].as_str().unwrap().to_owned()).collect()
    }

    /// Makes a dead letter of the mailbox, and returns its id.
    fn letter(&self) -> String {
        let dead = || {
            let letters = library(self.organism(), "dead-letters", "").unwrap();
            let of_mailbox = letters.into_iter().filter(|letter| letter["mailbox"] == true);
            of_mailbox.map(|letter| letter["letter"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
        };
        let known = dead();
        self.send("<ask xmlns='urn:t'>?</ask>");
        let waits = || {
            let (_, page) = self.ask("GET", "/v1/mailboxes/agent/messages", "");
            let waiting = page["items"].as_array().unwrap().iter().find(|item| item["state"] == "waiting");
            waiting.map(|item| item["id"].as_str().unwrap().to_owned())
        };
        let id = until("a message in the mailbox", waits);
        self.ask("POST", &format!("/v1/messages/{id}/fail"), "{}");
        until("a dead letter", || dead().into_iter().find(|letter| !known.contains(letter)))
    }

    /// Calls the gateway; returns status and body.
    fn ask(&self, method: &str, path: &str, body: &str) -> (u16, Value) {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        let (token, bytes) = (&self.token, body.len());
        let head = format!(
            "{method} {path} HTTP/1.1\r\nHost: desk\r\nAuthorization: Bearer {token}\r\nConnection: close\r\n\
             Content-Type: application/json\r\nContent-Length: {bytes}\r\n\r\n"
        );
        stream.write_all((head + body).as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        let body = serde_json::from_str(body).unwrap_or_else(|error| panic!("{error}: {answer}"));
        (head[9..12].parse().unwrap(), body)
    }
}

fn records<T: systole::serde::Serialize>(page: Page<T>) -> Vec<Value> {
    page.items.into_iter().map(|item| json!(item)).collect()
}

/// The ids of conversations or dead letters, in order.
fn ids<'a>(look: &str, records: impl Iterator<Item = &'a Value>) -> Vec<String> {
    let key = if look == "conversations" { "conversation" } else { "letter" };
    let mut ids: Vec<_> = records.map(|record| record[key].as_str().unwrap().to_owned()).collect();
    ids.sort_unstable();
    ids
}

/// Looks by the handle of a running organism.
fn library(organism: &systole::runtime::Organism, look: &str, of: &str) -> Answer {
    library_where(organism, look, of, &Wanted::default())
}

fn library_where(organism: &systole::runtime::Organism, look: &str, of: &str, wanted: &Wanted) -> Answer {
    let operations = organism.operations(Name::system());
    let found = block_on(async {
        Ok(match look {
            "conversations" => records(operations.conversations(wanted).await?),
            "threads" => records(operations.threads(of.parse().unwrap(), wanted).await?),
            "messages" => records(operations.messages(of.parse().unwrap(), wanted).await?),
            "dead-letters" => records(operations.dead_letters(wanted).await?),
            "mailboxes" => records(operations.mailboxes(wanted).await?),
            "tasks" => records(operations.tasks(wanted).await?),
            "acts" => records(operations.acts(wanted).await?),
            "listeners" => records(operations.listeners(wanted).await),
            look => panic!("{look}"),
        })
    });
    found.map_err(|error: systole::operations::LookError| error.to_string())
}

/// Looks into the journal of a stopped organism.
fn past(journal: &Path, look: &str, of: &str) -> Answer {
    let (past, wanted) = (Past::open(&Journaled::new(journal)).unwrap(), Wanted::default());
    let found = block_on(async {
        Ok(match look {
            "conversations" => records(past.conversations(&wanted).await?),
            "threads" => records(past.threads(of.parse().unwrap(), &wanted).await?),
            "messages" => records(past.messages(of.parse().unwrap(), &wanted).await?),
            "dead-letters" => records(past.dead_letters(&wanted).await?),
            "mailboxes" => records(past.mailboxes(&wanted, Time::default()).await?),
            "tasks" => records(past.tasks(&wanted).await?),
            "acts" => records(past.acts(&wanted).await?),
            look => panic!("{look}"),
        })
    });
    found.map_err(|error: systole::operations::LookError| error.to_string())
}

fn acted(organism: &systole::runtime::Organism, act: &Value) -> Answer {
    let act: Act = serde_json::from_value(act.clone()).unwrap();
    let outcomes = block_on(organism.operations(Name::system()).act(&act)).map_err(|error| error.to_string())?;
    match outcomes.iter().find_map(|outcome| outcome.error.clone()) {
        Some(error) => Err(error),
        None => Ok(outcomes.iter().map(|outcome| json!(outcome)).collect()),
    }
}

#[track_caller]
fn is_as_said(cell: Cell, what: &str, answer: &Answer) {
    match (cell, answer) {
        (Works, Ok(_)) => {}
        (Refused(words), Err(why)) if why.contains(words) => {}
        _ => panic!("{what}: {cell:?}, and not {answer:?}"),
    }
}

fn is_look(operation: &str) -> bool {
    TABLE.iter().position(|(name, ..)| *name == operation).unwrap() < 8
}

#[test]
fn each_entrance_does_what_the_table_says() {
    let mut desk = Desk::start("desk");
    // Something to look at: a conversation that waits, a refused output, a dead letter of the mailbox, a task, an act.
    desk.send("<fail xmlns='urn:t'>x</fail>");
    desk.send(TASK);
    let waiting = desk.prepare("cancel")["conversation"].as_str().unwrap().to_owned();
    desk.letter();
    until("a dead letter of the pump", || {
        let letters = library(desk.organism(), "dead-letters", "").unwrap();
        letters.iter().any(|letter| letter["mailbox"] == false).then_some(())
    });
    until("a task", || (!library(desk.organism(), "tasks", "").unwrap().is_empty()).then_some(()));
    acted(desk.organism(), &json!({ "act": "resume", "listener": "parrot" })).unwrap();
    let threads = library(desk.organism(), "threads", &waiting).unwrap();
    let thread = threads[1]["thread"].as_str().unwrap().to_owned();
    for (operation, running, ..) in TABLE.iter().filter(|(operation, ..)| is_look(operation)) {
        let of = if *operation == "messages" { &thread } else { &waiting };
        let first = desk.look(Entrance::Library, operation, of).unwrap();
        assert!(!first.is_empty(), "{operation}: there is something to look at");
        for (entrance, cell) in ENTRANCES.iter().zip(running) {
            let what = format!("{operation} at {entrance:?}: one record for all");
            // The program shows more of these in columns of its own.
            let of_own = *entrance == Entrance::Program && ["conversations", "threads"].contains(operation);
            // It reads the tables of the journal, which have the last steps a little later.
            until(&what, || {
                let answer = desk.look(*entrance, operation, of);
                is_as_said(*cell, &what, &answer);
                let records = answer.unwrap();
                (records == first || of_own && records.len() == first.len()).then_some(())
            });
        }
    }
    for (operation, running, ..) in TABLE.iter().filter(|(operation, ..)| !is_look(operation) && *operation != "drain")
    {
        for (entrance, cell) in ENTRANCES.iter().zip(running) {
            let act = desk.prepare(operation);
            is_as_said(*cell, &format!("{operation} at {entrance:?}"), &desk.act(*entrance, &act));
        }
    }
    let acts = library(desk.organism(), "acts", "").unwrap();
    for operator in ["boss", "system"] {
        assert!(acts.iter().any(|act| act["by"] == operator), "each is recorded: {acts:?}");
    }

    // Stopped: a drain by each entrance, and a start between.
    let letters: Vec<_> = (0..2).map(|_| desk.letter()).collect();
    for (entrance, cell) in ENTRANCES.iter().zip(&TABLE[15].1) {
        is_as_said(*cell, &format!("drain at {entrance:?}"), &desk.act(*entrance, &desk.prepare("drain")));
        block_on(desk.organism().drained());
        desk.running = None;
        if *entrance != Entrance::Program {
            desk.running = Some(desk.run());
        }
    }
    for (operation, _, stopped, _) in &TABLE {
        let of = if *operation == "messages" { &thread } else { &waiting };
        let mut first = None;
        for (entrance, cell) in ENTRANCES.iter().zip(stopped) {
            if let Absent(why) = cell {
                assert!(!why.is_empty(), "{operation} at {entrance:?}: a reason belongs there");
                continue;
            }
            let answer = match is_look(operation) {
                true => desk.look(*entrance, operation, of),
                false => {
                    let act = match *operation {
                        "redrive" => json!({ "act": operation, "letters": { "ids": [letters[0]] } }),
                        "discard" => json!({ "act": operation, "letters": { "ids": [letters[1]] } }),
                        _ => {
                            json!({ "act": operation, "listener": "parrot", "conversation": waiting, "level": "info" })
                        }
                    };
                    desk.act(*entrance, &act)
                }
            };
            is_as_said(*cell, &format!("{operation} at {entrance:?}, stopped"), &answer);
            let is_same = is_look(operation) && !["conversations", "threads"].contains(operation);
            if let (true, Ok(records)) = (is_same, answer) {
                assert_eq!(&records, first.get_or_insert(records.clone()), "{operation}: one record for all");
            }
        }
    }
    // What was done meanwhile holds: the next start has it, and the record of who did it.
    desk.running = Some(desk.run());
    let acts = library(desk.organism(), "acts", "").unwrap();
    let done: Vec<_> = acts.iter().take(3).map(|act| act["act"].as_str().unwrap()).collect();
    assert_eq!(done, ["retry", "discard", "redrive"]);
    let dead = library(desk.organism(), "dead-letters", "").unwrap();
    assert!(dead.iter().all(|letter| letters.iter().all(|id| letter["letter"] != json!(id))), "{dead:?}");
}

#[test]
fn a_condition_leaves_out_the_same_at_each_entrance() {
    let mut desk = Desk::start("desk");
    desk.send("<fail xmlns='urn:t'>x</fail>");
    desk.send("<say xmlns='urn:t'>hi</say>");
    desk.send(TASK);
    desk.letter();
    let all = |desk: &Desk, look: &str| library(desk.organism(), look, "").unwrap();
    let faults = |desk: &Desk| all(desk, "conversations").iter().filter(|one| one["fault"].is_string()).count();
    until("the failed ones", || (faults(&desk) == 2 && all(&desk, "dead-letters").len() == 2).then_some(()));
    let known = ["conversations", "dead-letters"].map(|look| (look, all(&desk, look)));
    for is_running in [true, false] {
        if !is_running {
            acted(desk.organism(), &json!({ "act": "drain", "within": 0 })).unwrap();
            block_on(desk.organism().drained());
            desk.running = None;
        }
        let entrances: &[_] = if is_running { &ENTRANCES } else { &[Entrance::Library, Entrance::Program] };
        for &entrance in entrances {
            for (look, name, value, meets) in CASES {
                let records = &known.iter().find(|(known, _)| *known == look).unwrap().1;
                let expected = ids(look, records.iter().filter(|record| meets(record)));
                assert!(!expected.is_empty() && expected.len() < records.len(), "{look}, {name} {value}: {records:?}");
                let what = format!("{look} of {name} {value} at {entrance:?}, running: {is_running}");
                // The program reads the tables of the journal, which have the last steps a little later.
                until(&what, || (desk.found(entrance, look, (name, value)).unwrap() == expected).then_some(()));
            }
            for (name, value, words) in MISTAKES {
                for look in ["conversations", "dead-letters"] {
                    let refused = desk.found(entrance, look, (name, value)).unwrap_err();
                    assert!(refused.contains(words), "{look} of {name} {value} at {entrance:?}: {refused}");
                }
            }
        }
    }
}

#[test]
fn an_organism_in_memory_does_what_the_table_says() {
    let folder = Scratch::new("memory");
    let yaml =
        ORGANISM.lines().filter(|line| !["durability", "journal", "gateway"].iter().any(|key| line.starts_with(key)));
    let yaml = yaml.collect::<Vec<_>>().join("\n");
    // A mailbox needs a journal, too.
    let yaml = yaml.replace("    remote: { mode: poll }", "    command: [cat]");
    fs::write(folder.join("organism.yaml"), yaml).unwrap();
    let schema = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/golden/run/thing.xsd");
    fs::copy(schema, folder.join("thing.xsd")).unwrap();
    let config = Config::load(&folder.join("organism.yaml")).unwrap();
    let running = config.into_builder(None).unwrap().start(&["cli"]).unwrap();
    let organism = &running.organism;
    let client = organism.client("cli").unwrap();
    let send = |payload: &str| client.send(payload.to_owned()).unwrap();
    send("<fail xmlns='urn:t'>x</fail>");
    send(TASK);
    let conversation = send("<say xmlns='urn:t'>hi</say>").to_string();
    let letter = until("a dead letter", || {
        let letters = library(organism, "dead-letters", "").unwrap();
        Some(letters.first()?["letter"].as_str().unwrap().to_owned())
    });
    until("a task", || (!library(organism, "tasks", "").unwrap().is_empty()).then_some(()));
    until("the conversation", || (!library(organism, "threads", &conversation).unwrap().is_empty()).then_some(()));
    for (look, name, value, meets) in
        CASES.iter().filter(|(look, name, ..)| *look != "conversations" || *name == "listener")
    {
        let what = format!("{look} of {name} {value} in memory");
        until(&what, || {
            let all = library(organism, look, "").unwrap();
            let found = library_where(organism, look, "", &wanted(name, value)).unwrap();
            (ids(look, found.iter()) == ids(look, all.iter().filter(|record| meets(record)))).then_some(())
        });
    }
    for (operation, _, _, cell) in &TABLE {
        let answer = match *operation {
            look if is_look(look) => library(organism, look, &conversation),
            // A refused output holds no call that could be sent again: the act says so of the letter itself.
            "redrive" => {
                let refused = acted(organism, &json!({ "act": "redrive", "letters": { "ids": [letter] } }));
                assert!(refused.unwrap_err().contains("can't be redriven"));
                acted(organism, &json!({ "act": "redrive", "letters": { "from": "cli" } }))
            }
            act @ "discard" => acted(organism, &json!({ "act": act, "letters": { "ids": [letter] } })),
            act @ ("cancel" | "retry") => acted(organism, &json!({ "act": act, "conversation": conversation })),
            act @ "log-level" => acted(organism, &json!({ "act": act, "level": "info" })),
            act @ "drain" => acted(organism, &json!({ "act": act, "within": 0 })),
            act => acted(organism, &json!({ "act": act, "listener": "parrot" })),
        };
        is_as_said(*cell, &format!("{operation} in memory"), &answer);
    }
    block_on(organism.drained());
}

#[test]
fn an_admin_of_one_organism_reaches_no_other_one() {
    let (one, other) = (Desk::start("one"), Desk::start("other"));
    let pause = json!({ "act": "pause", "listener": "parrot" }).to_string();
    let stranger = Desk { token: one.token.clone(), folder: Scratch::new("stranger"), port: other.port, running: None };
    assert_eq!(stranger.ask("POST", "/v1/admin/acts", &pause).0, 401, "a token of one is none of the other");
    one.program(&["pause", "parrot"]).unwrap();
    let paused = |desk: &Desk| {
        let listeners = library(desk.organism(), "listeners", "").unwrap();
        listeners.iter().any(|listener| listener["paused"].is_string())
    };
    assert!(paused(&one) && !paused(&other), "the commands of a folder reach its organism alone");
    let (file, journal) = (other.folder.join("organism.yaml"), one.journal());
    let named = ["--organism", file.to_str().unwrap(), "--journal", journal.to_str().unwrap()];
    let refused = other.program(&[&["resume", "parrot"], &named[..]].concat()).unwrap_err();
    assert!(refused.contains("belongs to"), "{refused}");
    assert!(paused(&one), "nothing was resumed");
    for desk in [&one, &other] {
        let acts = desk.call(Entrance::Socket, "GET", "/v1/admin/acts", "").unwrap();
        assert_eq!(acts.len(), usize::from(std::ptr::eq(desk, &one)), "{acts:?}");
    }
}
