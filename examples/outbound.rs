//! A delivery that survives the process that sends it.
//!
//! `cargo run --example outbound` starts a peer that ends the connection on its first two requests, and a process that
//! delivers to it. The process is killed with `kill -9` while it backs off, and again after the second attempt; the
//! third one delivers. All attempts carry the same idempotency key, and the count goes on.

use std::error::Error;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};

use systole::outbound::retry::Policy;
use systole::outbound::signature::TOLERANCE;
use systole::outbound::{DeliveryOptions, Guard, Outbound, OutboundDelivery, Secret, State};
use systole::vocab::{MessageId, Time};
use uuid::Uuid;

const SECRET: &[u8] = b"what both sides know";

/// The process that delivers: it prints its progress until it has delivered.
#[tokio::main(flavor = "current_thread")]
async fn deliver(outbox: &Path, url: &str) -> Result<(), Box<dyn Error>> {
    let options = DeliveryOptions::default()
        // This machine has a private address, which is refused otherwise.
        .guard(Guard::new().allow("127.0.0.0/8".parse()?))
        .policy(Policy::default().base(std::time::Duration::from_millis(500)))
        .secrets(std::sync::Arc::new(|_| Some(Secret::new(SECRET))));
    let outbound = Outbound::start(outbox, options).await?;
    let id = MessageId::from_uuid(Uuid::from_u128(0x67e5_5044_10b1_426f_9247_bb68_0e5f_e0c8));
    let envelope = "<message xmlns='https://xml-pipeline.org/ns/envelope/v1'>…</message>";
    let delivery = OutboundDelivery { signed: true, ..OutboundDelivery::new(id, "peer".parse()?, url, envelope) };
    // The same message under the same id: accepted once, however often it is sent.
    let mut handle = outbound.send(delivery).await?;
    let mut seen = 0;
    loop {
        let news = |state: &State| match state {
            State::BackingOff { attempts, .. } => *attempts > seen,
            State::Settled(_) => true,
            State::Waiting | State::Attempting { .. } => false,
        };
        match handle.wait_for(news).await? {
            State::BackingOff { attempts, error, .. } => {
                println!("attempt {attempts} failed ({error}): backing off");
                seen = attempts;
            }
            State::Settled(outcome) => {
                println!("delivered: {}", String::from_utf8_lossy(&outcome?.body));
                outbound.close(std::time::Duration::ZERO).await;
                return Ok(());
            }
            State::Waiting | State::Attempting { .. } => {}
        }
    }
}

/// A process that delivers.
struct Sender {
    process: Child,
    said: BufReader<ChildStdout>,
}

impl Sender {
    fn start(outbox: &Path, url: &str) -> Result<Self, Box<dyn Error>> {
        let mut command = Command::new(std::env::current_exe()?);
        let mut process = command.arg(outbox).arg(url).stdout(Stdio::piped()).spawn()?;
        let said = BufReader::new(process.stdout.take().ok_or("its output is not piped")?);
        Ok(Self { process, said })
    }

    /// Waits for a line with a text.
    fn listen(&mut self, until: &str) -> Result<(), Box<dyn Error>> {
        let mut line = String::new();
        if self.said.read_line(&mut line)? == 0 {
            return Err(format!("the process ended before it said '{until}'").into());
        }
        print!("    process {}: {line}", self.process.id());
        if line.contains(until) { Ok(()) } else { Err(format!("it should say '{until}'").into()) }
    }
}

/// Reads a request; returns its idempotency key, if the signature is right.
fn read(stream: &mut TcpStream) -> Result<String, Box<dyn Error>> {
    let mut reader = BufReader::new(stream);
    let (mut key, mut signature, mut len) = (None, None, 0);
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        match line.trim_end().split_once(": ") {
            Some(("idempotency-key", value)) => key = Some(value.to_owned()),
            Some(("systole-signature", value)) => signature = Some(value.to_owned()),
            Some(("content-length", value)) => len = value.parse()?,
            Some(_) => {}
            None if line == "\r\n" => break,
            None => {}
        }
    }
    let mut body = vec![0; len];
    reader.read_exact(&mut body)?;
    let now: Time = jiff::Timestamp::now().to_string().parse()?;
    Secret::new(SECRET).verify(&signature.ok_or("it is not signed")?, &body, now, TOLERANCE)?;
    Ok(key.ok_or("it has no key")?)
}

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    if let [outbox, url] = &args[..] {
        return deliver(Path::new(outbox), url);
    }
    let directory = std::env::temp_dir().join(format!("systole-outbound-{}", std::process::id()));
    std::fs::create_dir_all(&directory)?;
    let outbox = directory.join("outbox");
    let peer = TcpListener::bind("127.0.0.1:0")?;
    let url = format!("http://{}/", peer.local_addr()?);
    let mut keys = Vec::new();
    for attempt in 1..=2 {
        let mut sender = Sender::start(&outbox, &url)?;
        // The peer hangs up without an answer.
        keys.push(read(&mut peer.accept()?.0)?);
        sender.listen(&format!("attempt {attempt} failed"))?;
        sender.process.kill()?;
        sender.process.wait()?;
        println!("It was killed while it backs off. Another one starts from its outbox:");
    }
    let mut sender = Sender::start(&outbox, &url)?;
    let mut stream = peer.accept()?.0;
    keys.push(read(&mut stream)?);
    stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n<thanks/>")?;
    sender.listen("delivered: <thanks/>")?;
    assert!(sender.process.wait()?.success());
    std::fs::remove_dir_all(&directory)?;
    println!("The peer was asked {} times, with the keys {keys:?}", keys.len());
    assert!(keys.iter().all(|key| *key == keys[0]), "one message, one key");
    Ok(())
}
