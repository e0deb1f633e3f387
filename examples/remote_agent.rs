//! An agent elsewhere: it reads the mailbox of `shouter` in `examples/remote`, and replies with everything louder.
//!
//! ```sh
//! systole run examples/remote/organism.yaml &
//! systole token new shouter --organism examples/remote/organism.yaml > shouter.token
//! cargo run --example remote_agent -- http://127.0.0.1:8420 shouter.token shouter.cursor
//! ```
//!
//! Without arguments it plays all the parts: it starts that organism in a process of its own, asks as a client over
//! HTTP, and is the agent until the client has its answer. The program is `SYSTOLE`, or the one that `cargo build` puts
//! beside the examples.

use std::error::Error;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};

use systole::remote::{
    CallOptions, Failed, Inbound, LoopEnd, LoopOptions, Mailbox, PollDelivery, RemoteError, run_agent_loop,
};
use tokio::sync::watch;

type Failure = Box<dyn Error + Send + Sync>;

fn main() -> Result<ExitCode, Failure> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match &*args.iter().map(String::as_str).collect::<Vec<_>>() {
        [url, token_file, cursor_file] if url.starts_with("http") => {
            let end = agent(url, fs::read_to_string(token_file)?.trim(), Path::new(cursor_file), None)?;
            println!("the agent has ended: {end:?}");
            Ok(ExitCode::SUCCESS)
        }
        [] => play().map(|()| ExitCode::SUCCESS),
        _ => Err("give the address of the gateway and the files of the token and the cursor, or nothing".into()),
    }
}

/// Replies with everything louder, until an admin or its program stops it.
#[tokio::main(flavor = "current_thread")]
async fn agent(
    url: &str,
    token: &str,
    cursor: &Path,
    stop: Option<watch::Receiver<bool>>,
) -> Result<LoopEnd, RemoteError> {
    let shouter = "shouter".parse().expect("that is a name");
    let mailbox = Mailbox::new(url, shouter, token, CallOptions::default())?;
    let mut delivery = PollDelivery::new(mailbox.clone()).cursor_file(cursor)?;
    let options = LoopOptions::default().stop(stop);
    Ok(run_agent_loop(&mut delivery, &shout, &mailbox, options).await)
}

async fn shout(message: Inbound) -> Result<String, Failed> {
    let words = message.payload.split(['<', '>']).nth(2).unwrap_or_default();
    // Escaped characters stay so: references have lower case.
    let louder: Vec<String> = words
        .split(' ')
        .map(|word| match word.contains('&') {
            true => word.to_owned(),
            false => word.to_uppercase(),
        })
        .collect();
    Ok(format!("<shouted xmlns=\"urn:example:shout:v1\">{}!</shouted>", louder.join(" ")))
}

/// An organism, a client and an agent, each where it belongs.
fn play() -> Result<(), Failure> {
    let organism = Organism::start()?;
    let (ada, shouter) = (organism.token("ada")?, organism.token("shouter")?);
    let url = format!("http://{}", organism.address);
    let cursor = organism.folder.join("shouter.cursor");
    let (stop, stopped) = watch::channel(false);
    let agent = std::thread::spawn(move || agent(&url, &shouter, &cursor, Some(stopped)));
    let answer = ask(&organism.address, &ada, "nobody hears me")?;
    println!("{answer}");
    stop.send_replace(true);
    let end = agent.join().map_err(|_| "the agent panicked")??;
    println!("the agent has ended: {end:?}");
    if answer.contains("NOBODY HEARS ME!") { Ok(()) } else { Err("that is not louder".into()) }
}

/// Asks over HTTP and waits for the reply.
fn ask(address: &str, token: &str, words: &str) -> Result<String, Failure> {
    let body = format!(
        "<message xmlns='https://xml-pipeline.org/ns/envelope/v1'><meta><from>ada</from></meta>\
         <shout xmlns='urn:example:shout:v1'>{words}</shout></message>"
    );
    let mut stream = TcpStream::connect(address)?;
    let head = format!("POST /v1/messages?wait=60 HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n");
    let length = body.len();
    write!(stream, "{head}Authorization: Bearer {token}\r\nContent-Length: {length}\r\n\r\n{body}")?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer.split_once("\r\n\r\n").map(|(_, body)| body.to_owned()).ok_or("the gateway hung up")?)
}

/// `examples/remote` in a folder and a process of its own; both end with this value.
struct Organism {
    process: Child,
    folder: PathBuf,
    address: String,
}

impl Organism {
    fn start() -> Result<Self, Failure> {
        let folder = std::env::temp_dir().join(format!("systole-remote-{}", std::process::id()));
        let here = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples");
        for file in ["swarm/calculator.xsd", "remote/shout.xsd", "remote/organism.yaml"] {
            let text = fs::read_to_string(here.join(file))?.replace("127.0.0.1:8420", "\"127.0.0.1:0\"");
            fs::create_dir_all(folder.join(file).parent().ok_or("no folder")?)?;
            fs::write(folder.join(file), text)?;
        }
        let folder = folder.join("remote");
        let mut run = Command::new(program()?);
        let run = run.args(["run", "organism.yaml"]).current_dir(&folder).stdin(Stdio::null()).stderr(Stdio::piped());
        let mut process = run.spawn()?;
        let mut log = BufReader::new(process.stderr.take().ok_or("no log")?);
        let mut line = String::new();
        while !line.contains("the gateway listens") {
            line.clear();
            if log.read_line(&mut line)? == 0 {
                return Err("the organism ended before it listened".into());
            }
        }
        let address = line.rsplit('=').next().unwrap_or_default().trim().to_owned();
        // The process must not wait for a reader of its log.
        std::thread::spawn(move || std::io::copy(&mut log, &mut std::io::sink()));
        Ok(Self { process, folder, address })
    }

    fn token(&self, name: &str) -> Result<String, Failure> {
        let made = Command::new(program()?).args(["token", "new", name]).current_dir(&self.folder).output()?;
        Ok(String::from_utf8(made.stdout)?.trim().to_owned())
    }
}

/// The program `systole`.
fn program() -> Result<PathBuf, Failure> {
    if let Some(program) = std::env::var_os("SYSTOLE") {
        // The process runs in another folder; a name without a path is searched on PATH.
        return Ok(fs::canonicalize(&program).unwrap_or(program.into()));
    }
    let example = std::env::current_exe()?;
    let beside = example.parent().and_then(Path::parent).map(|folder| folder.join("systole"));
    beside.filter(|program| program.exists()).ok_or_else(|| "no program: `cargo build --bin systole` first".into())
}

impl Drop for Organism {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
        let _ = self.folder.parent().map(fs::remove_dir_all);
    }
}
