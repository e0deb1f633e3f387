//! `systole inbox`: the questions to people of a running organism, and their answers.

use std::fmt::Write as _;
use std::io::{self, BufReader, IsTerminal};
use std::os::fd::AsFd;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use clap::{Args, Subcommand};
use serde_json::{Value, json};
use systole::config::{Config, ListenerKind};
use systole::gateway::{Method, call_operator};
use systole::journal::{HistoryRecord, NamedJournal};
use systole::listeners::human::{Console, Heard, Keyboard, OpenQuestion, PersonEntry};
use systole::schema::PayloadSchema;
use systole::terminal::{Escaped, quote};
use systole_core::journal::Owner;
use systole_core::vocab::{Name, XmlLimits};
use tokio::task::LocalSet;

use super::columns::{self, moment};
use super::descriptor::Patient;
use super::failure::Failure;
use super::journal_args::JournalArgs;
use super::{file, operate, print};

/// Interval of looks whether a question was answered elsewhere.
const LOOK: Duration = Duration::from_secs(1);
/// Longest wait for the organism.
const PATIENCE: Duration = Duration::from_secs(60);
/// Exit code where questions are left, and no keyboard.
const LEFT: u8 = 4;

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(super) struct Inbox {
    #[command(subcommand)]
    action: Option<Action>,
    #[command(flatten)]
    of: Of,
}

#[derive(Debug, Args)]
struct Of {
    /// The person for whom to look and act; by default you are an operator, as at the terminal of the organism
    #[arg(long = "as", value_name = "NAME")]
    person: Option<Name>,
    /// Print as JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    of: JournalArgs,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// List the questions, as without an action
    List {
        #[command(flatten)]
        of: Of,
    },
    /// Print a question: the message, its history and the payloads that answer it
    Show {
        /// The question; the last digits of its id are enough
        question: String,
        #[command(flatten)]
        of: Of,
    },
    /// Answer a question with XML, or at the keyboard: one after the other all that wait for you
    Answer {
        /// The question; the last digits of its id are enough. By default all
        question: Option<String>,
        /// The answer, XML or JSON such as {"answer": "yes"}; - reads it from standard input. By default the keyboard asks for it
        answer: Option<String>,
        #[command(flatten)]
        of: Of,
    },
    /// Take a question on: nobody else answers it
    Claim {
        /// The question; the last digits of its id are enough
        question: String,
        /// Take it also from another party that has claimed it
        #[arg(long)]
        take_over: bool,
        #[command(flatten)]
        of: Of,
    },
    /// Give a question back; an operator also for another party
    Release {
        /// The question; the last digits of its id are enough
        question: String,
        #[command(flatten)]
        of: Of,
    },
    /// Decline to answer: the caller gets a fault
    Decline {
        /// The question; the last digits of its id are enough
        question: String,
        /// The reason, which the caller gets
        #[arg(long, value_name = "TEXT", default_value = "")]
        reason: String,
        #[command(flatten)]
        of: Of,
    },
}

pub(super) fn inbox(args: &Inbox) -> Result<ExitCode, Failure> {
    match &args.action {
        None => list(&args.of),
        Some(Action::List { of }) => list(of),
        Some(Action::Show { question, of }) => show(&Desk::of(of)?, question, of.json),
        Some(Action::Answer { question, answer: None, of }) => converse(&Desk::of(of)?, question.as_deref()),
        Some(Action::Answer { question, answer: Some(answer), of }) => {
            let entry = match answer.as_str() {
                "-" => file::from_stdin(file::DOCUMENT)?,
                answer => answer.as_bytes().to_vec(),
            };
            let desk = Desk::of(of)?;
            let id = desk.find(question.as_deref().unwrap_or_default())?;
            done(&desk.post(&format!("/v1/questions/{id}/answer"), entry)?, of.json)
        }
        Some(Action::Claim { question, take_over, of }) => {
            act(&Desk::of(of)?, question, "claim", &json!({ "take_over": take_over }), of.json)
        }
        Some(Action::Release { question, of }) => act(&Desk::of(of)?, question, "release", &json!({}), of.json),
        Some(Action::Decline { question, reason, of }) => {
            act(&Desk::of(of)?, question, "decline", &json!({ "reason": reason }), of.json)
        }
    }
}

/// A question that waits, in a sentence.
pub(super) fn waits(question: &Value) -> String {
    let text = |key: &str| Escaped::line(question[key].as_str().unwrap_or_default()).to_string();
    format!("{} asks {}, which waits for {}", text("from"), text("listener"), addressees(question))
}

/// The parties that may answer a question.
fn addressees(question: &Value) -> String {
    let people = question["people"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let operator = (question["operators"] == true).then_some("operator");
    people.chain(operator).collect::<Vec<_>>().join(", ")
}

/// A running organism, as a party sees it.
struct Desk {
    journal: NamedJournal,
    person: Option<Name>,
}

impl Desk {
    fn of(of: &Of) -> Result<Self, Failure> {
        let journal = of.of.journal()?;
        if !operate::is_served(&journal) {
            return Err(Failure::unusable(format!(
                "no organism runs with {journal}: start it with `systole run`; its questions are asked again then, and \
                 `systole inbox` lists them meanwhile"
            )));
        }
        Ok(Self { journal, person: of.person.clone() })
    }

    fn path(&self, path: &str) -> String {
        let sign = if path.contains('?') { '&' } else { '?' };
        self.person.as_ref().map_or_else(|| path.to_owned(), |person| format!("{path}{sign}as={person}"))
    }

    fn get(&self, path: &str) -> Result<Value, Failure> {
        self.call(Method::GET, path, Vec::new())
    }

    fn post(&self, path: &str, body: Vec<u8>) -> Result<Value, Failure> {
        self.call(Method::POST, path, body)
    }

    fn call(&self, method: Method, path: &str, body: Vec<u8>) -> Result<Value, Failure> {
        match operate::exchange(&self.journal, method, &self.path(path), body, Some(PATIENCE))? {
            (200, answer) => Ok(answer),
            (_, answer) => Err(refused(&answer)),
        }
    }

    /// The open questions that the party may see.
    fn all(&self) -> Result<Vec<Value>, Failure> {
        let mut all = Vec::new();
        let mut after = String::new();
        loop {
            let page = self.get(&format!("/v1/questions?limit=500{after}"))?;
            all.extend(page["items"].as_array().cloned().unwrap_or_default());
            match page["next"].as_str() {
                Some(next) => after = format!("&after={next}"),
                None => return Ok(all),
            }
        }
    }

    /// The one question whose id ends so.
    fn find(&self, digits: &str) -> Result<String, Failure> {
        let all = self.all()?;
        let ids = || all.iter().filter_map(|question| question["question"].as_str());
        let found: Vec<_> = ids().filter(|id| id.ends_with(digits)).collect();
        match found.as_slice() {
            [one] => Ok((*one).to_owned()),
            // One that has ended tells how.
            [] if digits.len() == 36 => Ok(digits.to_owned()),
            [] => Err(Failure::no(format!(
                "no open question has an id that ends with '{digits}': `systole inbox` lists them"
            ))),
            several => {
                Err(Failure::no(format!("more than one question ends with '{digits}': {}", several.join(" or "))))
            }
        }
    }
}

/// The refusal of the organism, with rule, place and example.
fn reason(answer: &Value) -> String {
    let mut why = String::new();
    if let (Some(line), Some(column)) = (answer["place"]["line"].as_u64(), answer["place"]["column"].as_u64()) {
        let _ = write!(why, "{line}:{column}: ");
    }
    if let Some(pointer) = answer["pointer"].as_str().filter(|pointer| !pointer.is_empty()) {
        why += &format!("{pointer}: ");
    }
    why += answer["rule"].as_str().or(answer["detail"].as_str()).unwrap_or("it refused");
    if let Some(example) = answer["example"].as_str() {
        let _ = write!(why, "\nWrite it as in {example}");
    }
    why
}

fn refused(answer: &Value) -> Failure {
    Failure::no(Escaped::text(&reason(answer)).to_string())
}

fn list(of: &Of) -> Result<ExitCode, Failure> {
    let journal = of.of.journal()?;
    if !operate::is_served(&journal) {
        return list_stopped(of, &journal);
    }
    let desk = Desk { journal, person: of.person.clone() };
    let all = desk.all()?;
    if of.json {
        print::json(&Value::Array(all))?;
        return Ok(ExitCode::SUCCESS);
    }
    let rows: Vec<_> = all.iter().map(row).collect();
    columns::print(["QUESTION", "FROM", "ASKS", "SINCE", "STATE", "COST", "FOR"], &rows)?;
    Ok(ExitCode::SUCCESS)
}

fn row(question: &Value) -> [String; 7] {
    let text = |key: &str| question[key].as_str().unwrap_or_default().to_owned();
    let id = text("question");
    let state = match question["by"].as_str() {
        Some(by) => format!("{} by {by}", text("state")),
        None => text("state"),
    };
    let since = moment(&text("since"));
    [id, text("from"), text("listener"), since, state, cost(question), addressees(question)]
}

fn cost(question: &Value) -> String {
    let (tokens, cost) = (question["cost"]["tokens"].as_u64().unwrap_or(0), question["cost"]["cost"].as_f64());
    match (tokens, cost.filter(|cost| *cost > 0.0)) {
        (0, _) => "-".to_owned(),
        (tokens, None) => format!("{tokens} tokens"),
        (tokens, Some(cost)) => format!("{cost} ({tokens} tokens)"),
    }
}

/// Lists the questions of an organism that doesn't run.
fn list_stopped(of: &Of, journal: &NamedJournal) -> Result<ExitCode, Failure> {
    let Some(organism) = of.of.organism_file() else {
        return Err(Failure::unusable(
            "no organism runs with this journal: name its organism.yaml to list its questions",
        ));
    };
    let config = Config::load(organism).map_err(Failure::Config)?;
    let humans = config.blueprint.listeners().zip(&config.kinds).filter_map(|((_, contract), kind)| match kind {
        ListenerKind::Human(human) => Some((&contract.name, &human.to)),
        _ => None,
    });
    let humans: Vec<_> = humans.collect();
    let reader = journal.read().map_err(Failure::store)?;
    let mut questions = Vec::new();
    for thread in reader.open_threads().map_err(Failure::store)? {
        let Owner::Listener(name) = &thread.record.owner else { continue };
        let Some((_, to)) = humans.iter().find(|(human, _)| *human == name) else { continue };
        if of.person.as_ref().is_some_and(|person| !to.people.contains(person)) {
            continue;
        }
        let said = reader.said(&thread.record).map_err(Failure::store)?;
        let open = said.into_iter().find_map(|entry| match entry.said {
            HistoryRecord::Message(message, None) => Some((message, entry.at)),
            _ => None,
        });
        let Some((message, at)) = open else { continue };
        questions.push(json!({
            "question": message.id.to_string(),
            "from": message.from.to_string(),
            "listener": name.to_string(),
            "since": at.to_string(),
            "state": "waiting",
            "people": to.people.iter().map(ToString::to_string).collect::<Vec<_>>(),
            "operators": to.operators,
        }));
    }
    if of.json {
        print::json(&Value::Array(questions))?;
        return Ok(ExitCode::SUCCESS);
    }
    let rows: Vec<_> = questions.iter().map(row).collect();
    columns::print(["QUESTION", "FROM", "ASKS", "SINCE", "STATE", "COST", "FOR"], &rows)?;
    print::note(format_args!(
        "the organism doesn't run: start it with `systole run {}`, and answer then",
        organism.display()
    ));
    Ok(ExitCode::SUCCESS)
}

fn show(desk: &Desk, question: &str, as_json: bool) -> Result<ExitCode, Failure> {
    let found = desk.get(&format!("/v1/questions/{}", desk.find(question)?))?;
    if as_json {
        print::json(&found)?;
        return Ok(ExitCode::SUCCESS);
    }
    let [_, _, _, since, state, cost, people] = row(&found);
    let text = |key: &str| Escaped::line(found[key].as_str().unwrap_or_default()).to_string();
    print::line(format_args!("{}  {} asks {}", text("question"), text("from"), text("listener")))?;
    print::line(format_args!(
        "since {since}, {state}, for {people}; conversation {}, cost {cost}",
        text("conversation")
    ))?;
    print::line(quote(found["text"].as_str().unwrap_or_default()))?;
    for told in found["told"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        print::line(Escaped::text(told))?;
    }
    for answer in found["answers"].as_array().into_iter().flatten() {
        let example = answer["example"].as_str().or(answer["payload"].as_str()).unwrap_or_default();
        print::line(format_args!("answer as in {}", Escaped::line(example)))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn act(desk: &Desk, question: &str, act: &str, body: &Value, as_json: bool) -> Result<ExitCode, Failure> {
    let id = desk.find(question)?;
    done(&desk.post(&format!("/v1/questions/{id}/{act}"), body.to_string().into_bytes())?, as_json)
}

fn done(state: &Value, as_json: bool) -> Result<ExitCode, Failure> {
    if as_json {
        print::json(state)?;
    } else {
        let text = |key: &str| state[key].as_str().unwrap_or_default();
        let by = state["by"].as_str().map_or_else(String::new, |by| format!(" by {by}"));
        print::line(format_args!("{}{by}", text("state")))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Asks all questions, or one, at the keyboard, and sends the answers.
fn converse(desk: &Desk, question: Option<&str>) -> Result<ExitCode, Failure> {
    let ids = match question {
        Some(question) => vec![desk.find(question)?],
        None => {
            let may = |question: &Value| match &desk.person {
                Some(_) => true,
                None => question["operators"] == true,
            };
            let all = desk.all()?;
            all.iter().filter(|one| may(one)).filter_map(|one| one["question"].as_str().map(str::to_owned)).collect()
        }
    };
    if ids.is_empty() {
        print::note("no question waits for you");
        return Ok(ExitCode::SUCCESS);
    }
    let questions: Vec<_> = ids.iter().map(|id| desk.get(&format!("/v1/questions/{id}"))).collect::<Result<_, _>>()?;
    let is_terminal = io::stdin().is_terminal();
    let lines = BufReader::new(Patient(io::stdin()));
    let keyboard = if is_terminal {
        Keyboard::terminal(lines, io::stdin().as_fd().try_clone_to_owned().map_err(Failure::System)?)
    } else {
        Keyboard::lines(lines)
    };
    let console = Console::new(keyboard, Arc::new(print::converse));
    console.listen();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(Failure::System)?;
    let asked = async {
        let local = LocalSet::new();
        let mut asking = Vec::new();
        for question in questions {
            let (console, journal, person) = (console.clone(), desk.journal.clone(), desk.person.clone());
            asking.push(local.spawn_local(async move { ask(&console, Desk { journal, person }, &question).await }));
        }
        local
            .run_until(async {
                let mut left = false;
                for asked in asking {
                    left |= asked.await.unwrap_or(true);
                }
                left
            })
            .await
    };
    let left = runtime.block_on(asked);
    // A read of the keyboard can't be interrupted.
    runtime.shutdown_background();
    Ok(if left { ExitCode::from(LEFT) } else { ExitCode::SUCCESS })
}

/// Asks a question at the keyboard until it has ended; returns true if the keyboard ends before.
async fn ask(console: &Console, desk: Desk, question: &Value) -> bool {
    let text = |key: &str| question[key].as_str().unwrap_or_default().to_owned();
    let id = text("question");
    let since = moment(&text("since"));
    let cost = match cost(question).as_str() {
        "-" => String::new(),
        cost => format!(", cost {cost}"),
    };
    let claimed = question["by"].as_str().map_or_else(String::new, |by| format!(", {} by {by}", text("state")));
    let title = format!("{} asks {}, since {since}{cost}{claimed}", text("from"), text("listener"));
    let offers: Arc<[PayloadSchema]> = question["answers"].as_array().into_iter().flatten().filter_map(offer).collect();
    let mut body = text("text");
    for told in question["told"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        body = format!("{body}\n{told}");
    }
    let mut open = console.ask(title, body, offers, XmlLimits::default(), true);
    let mut told = question["told"].as_array().map_or(0, Vec::len);
    loop {
        let heard = tokio::select! {
            heard = open.heard() => heard,
            () = tokio::time::sleep(LOOK) => {
                match desk.exchange(Method::GET, &format!("/v1/questions/{id}"), Vec::new()).await {
                    Ok((200, now)) => {
                        let all = now["told"].as_array().cloned().unwrap_or_default();
                        let new: Vec<_> = all.iter().skip(told).filter_map(Value::as_str).collect();
                        if !new.is_empty() {
                            open.tell(&new.join("\n"));
                        }
                        told = all.len();
                        continue;
                    }
                    Ok((_, ended)) => open.end(reason(&ended)),
                    Err(error) => open.end(format!("the organism is gone: {error}")),
                }
                return false;
            }
        };
        let entry = match heard {
            Heard::Entry(entry) => entry,
            Heard::Shown => continue,
            _ => {
                open.end("it waits".to_owned());
                return true;
            }
        };
        match desk.say(&id, entry).await {
            Said::Ended => {
                open.end(String::new());
                return false;
            }
            said => said.show(&open),
        }
    }
}

/// A schema that the keyboard can ask for part by part.
fn offer(answer: &Value) -> Option<PayloadSchema> {
    let (payload, schema) = (answer["payload"].as_str()?, answer["schema"].as_str()?);
    let mut found = PayloadSchema::from_xsd("answer.xsd", schema).ok()?.into_iter();
    found.find(|schema| schema.qname().to_string() == payload)
}

/// The answer of the organism to an entry.
enum Said {
    /// The question has its end.
    Ended,
    Told(String),
    /// The entry, and what would be sent.
    Review(String, String),
}

impl Said {
    fn show(self, open: &OpenQuestion) {
        match self {
            Self::Ended => {}
            Self::Told(text) => open.tell(&text),
            Self::Review(entry, shown) => open.review(entry, shown),
        }
    }
}

impl Desk {
    async fn exchange(&self, method: Method, path: &str, body: Vec<u8>) -> io::Result<(u16, Value)> {
        // It was served before.
        let place = self.journal.beside().ok_or(io::ErrorKind::NotFound)?;
        let (status, body) = call_operator(place, method, &self.path(path), body).await?;
        Ok((status, serde_json::from_slice(&body).map_err(io::Error::other)?))
    }

    /// Sends an entry.
    async fn say(&self, id: &str, entry: PersonEntry) -> Said {
        let (path, body) = match (entry.declines(), entry.takes()) {
            (Some(reason), _) => ("decline", json!({ "reason": reason }).to_string()),
            (None, true) => ("claim", json!({ "take_over": true }).to_string()),
            (None, false) if entry.reviewed => ("answer", entry.text.clone()),
            (None, false) => ("preview", entry.text.clone()),
        };
        let said = self.exchange(Method::POST, &format!("/v1/questions/{id}/{path}"), body.into_bytes()).await;
        match said {
            Ok((200, answer)) => match (answer["preview"].as_str(), answer["state"].as_str()) {
                (Some(preview), _) => Said::Review(entry.text, preview.to_owned()),
                (None, Some("answered" | "declined")) => Said::Ended,
                (None, _) if entry.takes() => Said::Told("You have taken the question on.".to_owned()),
                (None, _) => Said::Told("The calls are made: their answers come below.".to_owned()),
            },
            Ok((_, answer)) => Said::Told(reason(&answer)),
            Err(error) => Said::Told(format!("the organism did not take it: {error}")),
        }
    }
}
