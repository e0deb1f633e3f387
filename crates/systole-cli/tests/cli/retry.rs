//! Changes of an operator for the next start of an organism: `systole thread retry` forks a conversation at one of its
//! messages, `dead redrive` redrives a dead letter.

use std::fs;
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::Value;
use systole::actor::*;
use systole::core::Egress;
use systole::journal::{JournalOptions, Retention, SqliteJournal};
use systole::prelude::*;
use systole::runtime::OrganismBuilder;
use systole::schema::PayloadSchema;
use systole::testing::Kit;
use systole::vocab::Time;
use systole_core::journal::{Journal, Op, Step};

use crate::kit::Scratch;
use crate::oracle::{Answered, Oracle, Question, answered, question};

const KEY: [u8; 32] = [5; 32];

macro_rules! payloads {
    ($($type:ident $root:literal)*) => {
        $(
            /// A text.
            #[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
            struct $type {
                /// The words.
                #[schemars(length(max = 40))]
                text: String,
            }

            impl Payload for $type {
                const NAMESPACE: &'static str = crate::oracle::NAMESPACE;
                const ROOT: &'static str = $root;
            }

            impl<T: Into<String>> From<T> for $type {
                fn from(text: T) -> Self {
                    Self { text: text.into() }
                }
            }
        )*
    };
}
payloads! { Ask "ask" Told "told" Split "split" Later "later" Half "half" }

impl Request for Ask {
    type Reply = Told;
}

impl Request for Split {
    type Reply = Half;
}

/// A folder with a journal in it, gone with the test.
struct Folder(Scratch);

impl Folder {
    fn new(name: &str) -> Self {
        let path = Scratch::new(&format!("fork-{name}"));
        let schema = PayloadSchema::of::<Told>().unwrap();
        fs::write(path.join("told.xsd"), schema.document()).unwrap();
        Self(path)
    }

    fn write(&self, file: &str, told: &str) {
        fs::write(self.0.join(file), told).unwrap();
    }

    /// Exit code, standard output, standard error.
    fn said(&self, args: &[&str]) -> (i32, String, String) {
        let output = Command::new(env!("CARGO_BIN_EXE_systole")).args(args).current_dir(&self.0).output().unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
    }

    fn fork(&self, conversation: &str, at: &str, more: &[&str]) -> (i32, String, String) {
        let args = ["thread", "retry", conversation, "--at", at, "--journal", "a.journal"];
        self.said(&[&args, more].concat())
    }

    /// Makes a fork; returns its id.
    fn forked(&self, conversation: &str, at: &str, more: &[&str]) -> String {
        let (code, out, err) = self.fork(conversation, at, more);
        assert_eq!((code, err.as_str()), (0, ""));
        out.trim_end().to_owned()
    }

    /// All messages of the only conversation, and its id.
    fn show(&self) -> (String, Vec<Value>) {
        let json = |args: &[&str]| {
            let (code, out, err) = self.said(&[args, &["--json", "--journal", "a.journal"]].concat());
            assert_eq!((code, err.as_str()), (0, ""));
            serde_json::from_str::<Value>(&out).unwrap()
        };
        let id = json(&["thread", "list"])[0]["conversation"].as_str().unwrap().to_owned();
        let said = json(&["thread", "show", &id]);
        (id, said.as_array().unwrap().clone())
    }

    fn journal(&self) -> SqliteJournal {
        SqliteJournal::open(&self.0.join("a.journal"), &JournalOptions::new(KEY)).unwrap()
    }
}

fn id<'a>(said: &'a [Value], kind: &str, text: &str) -> &'a str {
    let of = |line: &&Value| line["kind"] == kind.replace(' ', "-") && line["text"].as_str().unwrap().contains(text);
    let line = said.iter().find(of).unwrap_or_else(|| panic!("nothing says {text}: {said:#?}"));
    line["message"].as_str().unwrap()
}

type Asked = Arc<Mutex<Vec<String>>>;

/// Replies with the question, and keeps it as state.
struct Teller(Asked);

impl Actor for Teller {
    type Context = Context<Self>;
}

impl Handler<Delivery<Ask>> for Teller {
    type Result = Response;

    fn handle(&mut self, ask: Delivery<Ask>, _: &mut Context<Self>) -> Response {
        self.0.lock().unwrap().push(ask.text.clone());
        if ask.text == "nothing" {
            return Err(Fault::new(FaultCode::Failed, "there is nothing to tell").into());
        }
        Ok(ask.reply(Told::from(format!("<{}>", ask.text))))
    }
}

/// Works without awaiting: the parts that it splits off come back as messages, half of them later.
struct Splitter;

impl Actor for Splitter {
    type Context = Context<Self>;
}

impl Handler<Delivery<Split>> for Splitter {
    type Result = Response;

    fn handle(&mut self, split: Delivery<Split>, _: &mut Context<Self>) -> Response {
        let ask = |part: &str| call(Ask::from(format!("{} {part}", split.text)));
        Ok(ask("left").and(ask("right")).and(ask("middle")))
    }
}

impl Handler<Delivery<Told>> for Splitter {
    type Result = Response;

    fn handle(&mut self, told: Delivery<Told>, _: &mut Context<Self>) -> Response {
        match told.join().map(|join| join.remaining) {
            Some(0) => Ok(continue_with(Later::from("all is told"), Duration::from_secs(5))),
            _ => Ok(none()),
        }
    }
}

impl Handler<Delivery<Later>> for Splitter {
    type Result = Response;

    fn handle(&mut self, later: Delivery<Later>, _: &mut Context<Self>) -> Response {
        Ok(reply_any(Half::from(&later.text)))
    }
}

/// Asks one question after the other, and several at once: it awaits all, one, or the first.
async fn plan(question: Delivery<Question>) -> Response {
    let thread = question.thread();
    let first = thread.call(Ask::from(&question.text)).await?;
    let drawn: u32 = thread.record("drawn", async { 7 }).await?;
    let half = thread.call(Split::from("it"));
    let second = thread.call(Ask::from(&first.text));
    let (second, half) = tokio::join!(second, half);
    let (second, half) = (second?, half?);
    thread.call_all(["one", "two"].map(Ask::from), Join::All).await?;
    thread.call_all(["three", "four"].map(Ask::from), Join::First).await?;
    tokio::select! {
        biased;
        told = thread.call(Ask::from("five")) => drop(told?),
        told = thread.call(Ask::from("six")) => drop(told?),
    }
    let lost = thread.call(Ask::from("nothing")).await.is_err();
    Ok(question.reply(answered(format!("{} {drawn} {} {lost}", second.text, half.text))))
}

const ANSWER: &str = "<<may I?>> 7 all is told true";

fn organism(asked: &Asked) -> OrganismBuilder {
    let asked = asked.clone();
    Organism::builder("forked")
        .listener(
            "planner",
            || Oracle(plan),
            |c| c.accepts::<Question>().replies::<Answered>().calls::<Ask>().calls::<Split>(),
        )
        .listener("teller", move || Teller(asked.clone()), |c| c.accepts::<Ask>().replies::<Told>())
        .listener(
            "splitter",
            || Splitter,
            |c| c.accepts::<Split>().accepts::<Later>().returns::<Told>().replies::<Half>().calls::<Ask>(),
        )
        .client("alice", |c| c.calls::<Question>())
        .client("bob", |c| c.calls::<Question>())
}

/// The answers of an organism that goes on from the journal, by client, and the questions of its teller.
struct Run {
    alice: Vec<Egress>,
    bob: Vec<Egress>,
    asked: Vec<String>,
}

impl Folder {
    fn run(&self, first: Option<Question>) -> Run {
        let asked = Asked::default();
        let kit = Kit::start(organism(&asked).journal(self.journal())).unwrap();
        let (alice, bob) = (kit.client("alice"), kit.client("bob"));
        if let Some(question) = first {
            alice.tell(question).unwrap();
        }
        kit.run_until_idle();
        kit.advance(Duration::from_secs(10));
        let all = |client: &Client| std::iter::from_fn(|| client.try_receive()).collect();
        let (alice, bob) = (all(&alice), all(&bob));
        kit.settle();
        assert!(kit.dead_letters().is_empty(), "{:?}", kit.dead_letters());
        drop(kit);
        Run { alice, bob, asked: asked.lock().unwrap().clone() }
    }

    /// The one answer of an organism that goes on with a fork.
    fn goes_on(&self, fork: &str) -> (String, Vec<String>) {
        let Run { alice, bob, asked } = self.run(None);
        assert_eq!((alice.len(), bob.len()), (1, 0), "{alice:?}");
        assert_eq!(alice[0].root.to_string(), fork);
        (text(&alice[0]), asked)
    }
}

fn text(egress: &Egress) -> String {
    assert_eq!(egress.fault, None);
    let (_, text) = egress.payload.as_str().split_once("<text>").unwrap();
    text.split_once("</text>").unwrap().0.replace("&lt;", "<").replace("&gt;", ">")
}

/// A journal in which one question was answered.
fn answered_once(name: &str) -> Folder {
    let folder = Folder::new(name);
    let Run { alice, asked, .. } = folder.run(Some(question("may I?")));
    assert_eq!((alice.len(), text(&alice[0]).as_str()), (1, ANSWER));
    assert!(asked.len() >= 10, "{asked:?}");
    folder
}

#[test]
fn an_edited_answer_is_handed_to_the_handler_and_what_came_before_is_not_asked_again() {
    let folder = answered_once("edit");
    let (conversation, said) = folder.show();
    folder.write("edit.xml", "<told xmlns='urn:example:test:v1'><text>never</text></told>");
    let first = id(&said, "awaited answer", "&lt;may I?&gt;");
    // The last digits of an id are enough where they mean one.
    let (short, first) = (&conversation[28..], &first[24..]);
    let fork = folder.forked(short, first, &["--edit", "edit.xml", "--schema", "told.xsd"]);
    let (answer, asked) = folder.goes_on(&fork);
    assert_eq!(answer, "<never> 7 all is told true");
    assert!(!asked.contains(&"may I?".to_owned()) && asked.contains(&"never".to_owned()), "{asked:?}");
    // The first conversation is unchanged, and the fork is a conversation like any other.
    let (_, out, _) = folder.said(&["thread", "list", "--journal", "a.journal"]);
    assert_eq!(out.lines().count(), 3, "{out}");
    assert!(!out.contains(" open "), "{out}");
    let (_, out, _) = folder.said(&["thread", "show", &fork, "--journal", "a.journal"]);
    assert!(out.contains("awaited answer") && out.contains("never"), "{out}");
    assert_eq!(folder.said(&["journal", "verify", "a.journal"]).0, 0);
}

#[test]
fn a_conversation_goes_on_the_same_way_from_each_of_its_messages() {
    let folder = answered_once("each");
    let (conversation, said) = folder.show();
    let before = fs::read(folder.0.join("a.journal")).unwrap();
    let mut least = usize::MAX;
    let ids: Vec<_> = said.iter().filter_map(|line| line["message"].as_str()).collect();
    assert!(ids.len() >= 1 + 12 + 1 + 3 + 1 + 8, "a question, asks, a split, what is told to it, later, answers");
    for (at, line) in ids.iter().zip(said.iter().filter(|line| line["message"].is_string())) {
        fs::write(folder.0.join("a.journal"), &before).unwrap();
        let fork = folder.forked(&conversation, at, &[]);
        let (answer, asked) = folder.goes_on(&fork);
        assert_eq!(answer, ANSWER, "from {line}");
        least = least.min(asked.len());
        assert_eq!(folder.said(&["journal", "verify", "a.journal"]).0, 0, "from {line}");
    }
    assert_eq!(least, 0, "from the last answer on nothing is asked");
}

#[test]
fn a_fork_of_a_fork_and_one_for_somebody_else() {
    let folder = answered_once("twice");
    let (conversation, said) = folder.show();
    let opening = id(&said, "message", "may I?");
    folder.write("edit.xml", "<question xmlns='urn:example:test:v1'><text>must I?</text></question>");
    fs::write(folder.0.join("question.xsd"), PayloadSchema::of::<Question>().unwrap().document()).unwrap();
    let edit = ["--edit", "edit.xml", "--schema", "question.xsd"];
    let fork = folder.forked(&conversation, opening, &[&edit[..], &["--as", "bob"]].concat());
    let Run { alice, bob, asked } = folder.run(None);
    assert_eq!((alice.len(), bob.len()), (0, 1));
    assert!(asked.contains(&"must I?".to_owned()), "{asked:?}");
    assert_eq!(text(&bob[0]), "<<must I?>> 7 all is told true");
    let (_, json, _) = folder.said(&["thread", "show", &fork, "--json", "--journal", "a.journal"]);
    let said: Vec<Value> = serde_json::from_str(&json).unwrap();
    let second = id(&said, "awaited answer", "&lt;&lt;must I?");
    let again = folder.forked(&fork, second, &[]);
    let Run { alice, bob, .. } = folder.run(None);
    assert_eq!((alice.len(), bob.len(), bob[0].root.to_string()), (0, 1, again));
}

#[test]
fn what_can_not_be_forked_says_why() {
    let folder = answered_once("refused");
    let (conversation, said) = folder.show();
    let first = id(&said, "awaited answer", "&lt;may I?&gt;");
    let lost = id(&said, "awaited answer", "nothing");
    let before = fs::read(folder.0.join("a.journal")).unwrap();
    let unknown = "67e55044-10b1-426f-9247-bb680e5fe0c8";
    let told = |text: &str| format!("<told xmlns='urn:example:test:v1'>\n<text>{text}</text></told>");
    folder.write("good.xml", &told("never"));
    folder.write("long.xml", &told(&"x".repeat(41)));
    folder.write("other.xml", "<ask xmlns='urn:example:test:v1'><text>never</text></ask>");
    folder.write("torn.xml", "<told xmlns='urn:example:test:v1'><text>nev");
    fs::write(folder.0.join("ask.xsd"), PayloadSchema::of::<Ask>().unwrap().document()).unwrap();
    let edit = |file: &'static str, schema: &'static str| ["--edit", file, "--schema", schema];
    let refused = |conversation: &str, at: &str, more: &[&str], why: &str| {
        let (code, out, err) = folder.fork(conversation, at, more);
        assert_eq!((code, out.as_str()), (1, ""), "{err}");
        assert!(err.contains(why), "{why} is not in: {err}");
    };
    refused(unknown, first, &[], "there is no thread 67e55044");
    refused(&conversation, unknown, &[], "there is no message 67e55044");
    refused(&conversation, lost, &edit("good.xml", "told.xsd"), "is a fault, which no payload can take the place of");
    refused(&conversation, first, &edit("long.xml", "told.xsd"), "long.xml:2:");
    refused(&conversation, first, &edit("torn.xml", "told.xsd"), "torn.xml:1:");
    refused(&conversation, first, &edit("good.xml", "ask.xsd"), "good.xml:");
    refused(&conversation, first, &edit("other.xml", "ask.xsd"), "can't become a {urn:example:test:v1}ask");
    // An edit without a schema to judge it is refused.
    let (code, _, err) = folder.fork(&conversation, first, &["--edit", "good.xml"]);
    assert_eq!((code, err.contains("--organism")), (2, true), "{err}");
    assert_eq!(fs::read(folder.0.join("a.journal")).unwrap(), before, "nothing is written");

    let second = folder.forked(&conversation, first, &[]);
    refused(&second, first, &[], &format!("is not of this conversation, but of {conversation}"));
    let running = folder.journal();
    let (code, _, err) = folder.fork(&conversation, first, &[]);
    assert_eq!((code, err.contains("in use by process")), (2, true), "{err}");
    drop(running);
}

#[test]
fn what_retention_has_deleted_is_not_made_up() {
    let folder = answered_once("deleted");
    let (conversation, said) = folder.show();
    let ids = [id(&said, "message", "may I?"), id(&said, "awaited answer", "&lt;may I?&gt;")];
    let retention = Retention::default().age(Duration::from_secs(20));
    let file = folder.0.join("a.journal");
    let mut journal = SqliteJournal::open(&file, &JournalOptions::new(KEY).retention(retention)).unwrap();
    journal.recover().unwrap();
    // Messages past their retention go after some steps: all but the end of the conversation.
    let at = Time::from_nanos(1_935_921_600_000_000_000).after(Duration::from_secs(24));
    let idle = |_| Step { ops: vec![Op::LetterGone { letter: 1 }], at };
    journal.write(&(0..64).map(idle).collect::<Vec<_>>()).unwrap();
    journal.close().unwrap();
    drop(journal);
    let (code, _, err) = folder.fork(&conversation, ids[0], &[]);
    assert_eq!((code, err.contains("retention has deleted rows from the time")), (1, true), "{err}");
    let (code, _, err) = folder.fork(&conversation, ids[1], &[]);
    assert_eq!((code, err.contains("retention has deleted rows from the time")), (1, true), "{err}");
    assert_eq!(folder.said(&["journal", "compact", "--age", "1s", "a.journal"]).0, 0);
    let (code, _, err) = folder.fork(&conversation, ids[0], &[]);
    assert_eq!((code, err.contains("there is no thread")), (1, true), "{err}");
}

#[test]
fn a_dead_letter_is_queued_again_at_the_next_start() {
    let folder = Folder::new("redriven");
    let asked = Asked::default();
    // Emissions beside a reply are delivered to no listener.
    let loose = async |_: Delivery<Question>| Ok(reply_any(answered("that is it")).and(call(Ask::from("too late"))));
    let start = || {
        let told = asked.clone();
        let organism = Organism::builder("loose")
            .listener("loose", move || Oracle(loose), |c| c.accepts::<Question>().replies::<Answered>().calls::<Ask>())
            .listener("teller", move || Teller(told.clone()), |c| c.accepts::<Ask>().replies::<Told>())
            .client("alice", |c| c.calls::<Question>());
        Kit::start(organism.journal(folder.journal())).unwrap()
    };
    let kit = start();
    kit.client("alice").tell(question("?")).unwrap();
    kit.run_until_idle();
    let letters = kit.dead_letters();
    assert_eq!((letters.len(), asked.lock().unwrap().len()), (1, 0));
    drop(kit);
    let (_, listed, _) = folder.said(&["dead", "list", "--json", "--journal", "a.journal"]);
    let listed: Value = serde_json::from_str(&listed).unwrap();
    let number = listed[0]["letter"].as_str().unwrap();
    let redriven = folder.said(&["dead", "redrive", number, "--journal", "a.journal"]);
    let said = format!("dead letter {number} is redriven at the next start\n");
    assert_eq!(redriven, (0, said, String::new()));
    let kit = start();
    kit.run_until_idle();
    assert_eq!(*asked.lock().unwrap(), ["too late"]);
    let letters = kit.dead_letters();
    assert!(letters.len() == 1 && letters[0].payload.as_ref().unwrap().as_str().contains("&lt;too late&gt;"));
    drop(kit);
    drop(start());
    assert_eq!(asked.lock().unwrap().len(), 1, "once");
}

#[cfg(feature = "gateway")]
#[test]
fn an_imported_conversation_goes_on_the_same_way_from_each_of_its_messages() {
    let folder = answered_once("import");
    let (conversation, said) = folder.show();
    let (code, transcript, told) = folder.said(&["thread", "transcript", &conversation, "--journal", "a.journal"]);
    assert_eq!(code, 0, "{told}");
    let (_, head) = told.trim_end().rsplit_once(' ').unwrap();
    fs::write(folder.0.join("all.xml"), &transcript).unwrap();
    fs::remove_file(folder.0.join("a.journal")).unwrap();
    let import = ["thread", "import", "all.xml", "--head", head, "--journal", "a.journal"];
    assert_eq!(folder.said(&import), (0, format!("{conversation}\n"), String::new()));
    assert_eq!(folder.said(&["journal", "verify", "a.journal"]).0, 0);
    // The ids of awaited answers are made with the secret of a journal; all else is as it was.
    let (same, imported) = folder.show();
    assert_eq!(same, conversation);
    let without_ids = |said: &[Value]| -> Vec<Value> {
        let of_answer = |mut line: Value| {
            if line["kind"] == "awaited-answer" {
                line["message"] = Value::Null;
            }
            line
        };
        said.iter().cloned().map(of_answer).collect()
    };
    assert_eq!(without_ids(&imported), without_ids(&said));
    let before = fs::read(folder.0.join("a.journal")).unwrap();
    for line in imported.iter().filter(|line| line["message"].is_string()) {
        fs::write(folder.0.join("a.journal"), &before).unwrap();
        let fork = folder.forked(&conversation, line["message"].as_str().unwrap(), &[]);
        assert_eq!(folder.goes_on(&fork).0, ANSWER, "from {line}");
        assert_eq!(folder.said(&["journal", "verify", "a.journal"]).0, 0, "from {line}");
    }
    // A second one of the same conversation is refused, and so is another head; neither changes the journal.
    let (code, _, why) = folder.said(&import);
    assert_eq!(code, 1);
    assert!(why.contains(&format!("the conversation {conversation} is in this journal already")), "{why}");
    let other = ["thread", "import", "all.xml", "--head", &"0".repeat(64), "--journal", "b.journal"];
    let (code, _, why) = folder.said(&other);
    assert_eq!(code, 1);
    assert!(why.contains("and the known one is 0000"), "{why}");
    assert!(!folder.0.join("b.journal").exists(), "a refused transcript makes no journal");
    // A transcript of the import says the same, but for the numbers.
    fs::write(folder.0.join("a.journal"), &before).unwrap();
    let (_, again, _) = folder.said(&["thread", "transcript", &conversation, "--journal", "a.journal"]);
    assert_eq!(again.lines().count(), transcript.lines().count());
}
