//! A conversation that waits for a person, and outlives the process that it waits in.
//!
//! `cargo run --example durable` starts an organism in a process of its own, sends it a request, kills it with
//! `kill -9` while it asks a person, starts it again from the same journal, and answers as that person. The clerk's
//! handler runs again, gets no answer twice, and its reply reaches the customer.

use std::error::Error;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::Arc;

use systole::actor::*;
use systole::core::Contract;
use systole::journal::Durability;
use systole::listeners::human::{Console, HumanListener, Keyboard};
use systole::prelude::*;
use systole::schema::PayloadSchema;

/// Asks for leave.
#[derive(Debug, Serialize, Deserialize, JsonSchema, Payload)]
#[payload(namespace = "urn:example:leave:v1", reply = Decision)]
struct Leave {
    /// First and last day.
    when: String,
}

/// The decision on a leave.
#[derive(Debug, Serialize, Deserialize, JsonSchema, Payload)]
#[payload(namespace = "urn:example:leave:v1")]
struct Decision {
    /// The decision, in words.
    text: String,
}

/// Asks a manager.
#[derive(Debug, Serialize, Deserialize, JsonSchema, Payload)]
#[payload(namespace = "urn:example:leave:v1", reply = Verdict)]
struct Approve {
    /// The request to decide on.
    what: String,
}

/// The verdict of a manager.
#[derive(Debug, Serialize, Deserialize, JsonSchema, Payload)]
#[payload(namespace = "urn:example:leave:v1")]
struct Verdict {
    /// The verdict, in words.
    text: String,
}

struct Clerk;

impl Actor for Clerk {
    type Context = Context<Self>;
}

impl Handler<Delivery<Leave>> for Clerk {
    type Result = ResponseFuture<Response>;

    fn handle(&mut self, leave: Delivery<Leave>, _: &mut Context<Self>) -> Self::Result {
        Box::pin(async move {
            // A handler that runs again gets the recorded value: between its awaits a handler must do the same each
            // time.
            let number = leave.thread().record("number", async { std::process::id() }).await?;
            println!("clerk: case {number} is about {}", leave.when);
            let request = Approve { what: format!("leave {}", leave.when) };
            let verdict = leave.thread().call(request).await?;
            Ok(leave.reply(Decision { text: format!("case {number}: {}", verdict.text) }))
        })
    }
}

/// Runs the organism: it asks the person at its standard input, and prints the answers to the customer.
fn serve(journal: &Path, ask: bool) -> Result<(), Box<dyn Error>> {
    let print: Arc<dyn Fn(&str) + Send + Sync> = Arc::new(|text| {
        print!("{text}");
        std::io::stdout().flush().unwrap_or_default();
    });
    let console = Console::new(Keyboard::lines(BufReader::new(std::io::stdin())), print);
    let mut manager = Contract::new("manager".parse()?);
    manager.accepts = vec!["{urn:example:leave:v1}approve".parse()?];
    manager.replies = vec!["{urn:example:leave:v1}verdict".parse()?];
    manager.timeout = None;
    let organism = Organism::builder("office")
        .listener("clerk", || Clerk, |c| c.answers::<Leave>().calls::<Approve>())
        .raw_listener(manager, move || HumanListener::new(console.clone()))
        .schemas([PayloadSchema::of::<Approve>()?, PayloadSchema::of::<Verdict>()?])
        .client("customer", |c| c.calls::<Leave>())
        .durable(journal, Durability::Process)
        .start()?;
    let customer = organism.client("customer")?;
    if ask {
        // Returns when the journal has the request: from then on only an answer ends it.
        block_on(customer.post(Leave { when: "from 1 to 14 May".into() }))?;
        println!("customer: the request is taken");
    }
    while let Some(egress) = block_on(customer.receive()) {
        println!("customer: {} says {}", egress.from, egress.payload.as_str());
    }
    Ok(())
}

/// The organism in a process of its own.
struct Office {
    process: Child,
    said: BufReader<ChildStdout>,
}

impl Office {
    fn start(journal: &Path, how: &str) -> Result<Self, Box<dyn Error>> {
        let mut command = Command::new(std::env::current_exe()?);
        let mut process = command.arg(how).arg(journal).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let said = BufReader::new(process.stdout.take().ok_or("its output is not piped")?);
        Ok(Self { process, said })
    }

    /// Prints the output of the process, up to a line that contains a text.
    fn listen(&mut self, until: &str) -> Result<String, Box<dyn Error>> {
        loop {
            let mut line = String::new();
            if self.said.read_line(&mut line)? == 0 {
                return Err(format!("the process ended before it said '{until}'").into());
            }
            print!("    {line}");
            if line.contains(until) {
                return Ok(line);
            }
        }
    }

    /// `kill -9`.
    fn kill(mut self) -> std::io::Result<u32> {
        self.process.kill()?;
        self.process.wait()?;
        Ok(self.process.id())
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    match (args.next().as_deref(), args.next().map(PathBuf::from)) {
        (Some("ask"), Some(journal)) => return serve(&journal, true),
        (Some("again"), Some(journal)) => return serve(&journal, false),
        _ => {}
    }
    let directory = std::env::temp_dir().join(format!("systole-durable-{}", std::process::id()));
    std::fs::create_dir_all(&directory)?;
    let journal = directory.join("office.journal");
    println!("A process asks its manager:");
    let mut first = Office::start(&journal, "ask")?;
    first.listen("clerk asks manager")?;
    let killed = first.kill()?;
    println!("It was killed. Another one starts from its journal, and asks again:");
    let mut second = Office::start(&journal, "again")?;
    second.listen("clerk asks manager")?;
    let keyboard = second.process.stdin.as_mut().ok_or("its input is not piped")?;
    println!("    (the manager types: go!)");
    writeln!(keyboard, "<verdict xmlns=\"urn:example:leave:v1\"><text>go!</text></verdict>\ny")?;
    let said = second.listen("customer: clerk")?;
    second.kill()?;
    std::fs::remove_dir_all(&directory)?;
    assert!(said.contains(&format!("case {killed}: go!")), "the number is that of the first process: {said}");
    Ok(())
}
