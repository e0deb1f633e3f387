//! Nodes as processes, a server of PostgreSQL, proxies between them, and clients that take any node.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use super::server::Server;
use crate::kit::{Answer, PATIENCE, answer, text, wait};

/// The length of leases, unless the environment sets another: the shortest.
pub(super) const LEASE: &str = "2s";

const SCHEMA: &str = r#"<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema" targetNamespace="urn:t" elementFormDefault="qualified">
  <xs:element name="say" type="xs:int"/>
  <xs:element name="said" type="xs:int"/>
  <xs:element name="ask" type="xs:int"/>
  <xs:element name="answer" type="xs:string"/>
</xs:schema>
"#;

/// A clerk that notes in a file which number it had, and on which node; and a desk that nobody answers for.
const ORGANISM: &str = r#"organism: { name: cluster }
journal: "JOURNAL"
drain: 20s
gateway: { listen: "127.0.0.1:PORT", requests: 1000000 }
cluster: { node: NODE, url: "http://127.0.0.1:PORT", lease: LEASE }
clients:
  - { name: ada, calls: ["{urn:t}say", "{urn:t}ask"] }
listeners:
  - name: clerk
    command: [sh, clerk.sh]
    env: ["EFFECTS=FILE", "NODE=NODE"]
    schemas: [t.xsd]
    accepts: ["{urn:t}say"]
    replies: ["{urn:t}said"]
  - name: desk
    remote: { mode: poll }
    accepts: ["{urn:t}ask"]
    replies: ["{urn:t}answer"]
"#;

const CLERK: &str = r#"text=$(cat)
number=${text#*>}
number=${number%%<*}
echo "$number $NODE" >>"$EFFECTS"
printf '<said xmlns="urn:t">%s</said>' "$number"
"#;

/// The nodes of an organism, and their server.
pub(super) struct Cluster {
    pub(super) server: Server,
    folder: PathBuf,
    pub(super) nodes: Vec<Node>,
    pub(super) token: String,
}

/// A node: its folder, its address and its process.
pub(super) struct Node {
    pub(super) name: String,
    folder: PathBuf,
    pub(super) address: SocketAddr,
    process: Mutex<Option<Child>>,
    log: Arc<Mutex<String>>,
}

impl Cluster {
    /// Three nodes that run, one of them active.
    pub(super) fn start() -> Self {
        Self::with(|server, _| server.url("work"))
    }

    /// Three nodes, each with a URL of the database of its own.
    pub(super) fn with(journal: impl Fn(&Server, &str) -> String) -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let name = format!("systole-test-{}-cluster-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let folder = std::env::temp_dir().join(name);
        fs::create_dir_all(&folder).unwrap();
        let server = Server::start();
        let lease = std::env::var("SYSTOLE_LEASE").unwrap_or_else(|_| LEASE.to_owned());
        let node = |name: &str| {
            // The port is free when it is looked for, and the node must know it before it starts.
            let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
            let own = folder.join(name);
            fs::create_dir(&own).unwrap();
            let organism = ORGANISM
                .replace("JOURNAL", &journal(&server, name))
                .replace("PORT", &address.port().to_string())
                .replace("FILE", folder.join("effects").to_str().unwrap())
                .replace("LEASE", &lease)
                .replace("NODE=NODE", &format!("NODE={name}"))
                .replace("node: NODE", &format!("node: {name}"));
            fs::write(own.join("organism.yaml"), organism).unwrap();
            fs::write(own.join("t.xsd"), SCHEMA).unwrap();
            fs::write(own.join("clerk.sh"), CLERK).unwrap();
            Node { name: name.to_owned(), folder: own, address, process: Mutex::default(), log: Arc::default() }
        };
        let nodes: Vec<Node> = ["a", "b", "c"].iter().map(|name| node(name)).collect();
        let made = nodes[0].systole(&["token", "new", "ada"]).output().unwrap();
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        let token = String::from_utf8(made.stdout).unwrap().trim().to_owned();
        let cluster = Self { server, folder, nodes, token };
        cluster.nodes.iter().for_each(Node::start);
        cluster.active();
        cluster
    }

    /// Waits until a node is active, and all that run are ready; returns its place.
    pub(super) fn active(&self) -> usize {
        self.active_but(usize::MAX)
    }

    /// Waits until a node other than that one is active.
    pub(super) fn active_but(&self, not: usize) -> usize {
        wait("an active node", || {
            let active = |at: &usize| *at != not && self.nodes[*at].role().as_deref() == Some("active");
            (0..self.nodes.len()).find(active)
        })
    }

    /// Waits until each node that runs is ready.
    pub(super) fn all_ready(&self) {
        for node in self.nodes.iter().filter(|node| node.runs()) {
            wait(&format!("node {} to be ready: {}", node.name, node.log()), || node.role());
        }
    }

    /// A client that takes any node.
    pub(super) fn client(&self) -> Client {
        let addresses = self.nodes.iter().map(|node| node.address).collect();
        Client { addresses, token: self.token.clone(), next: Arc::default() }
    }

    /// How often each number was handled, and where last.
    pub(super) fn effects(&self) -> BTreeMap<u32, (usize, String)> {
        let mut effects = BTreeMap::<u32, (usize, String)>::new();
        for line in fs::read_to_string(self.folder.join("effects")).unwrap_or_default().lines() {
            let (number, node) = line.split_once(' ').unwrap();
            let effect = effects.entry(number.parse().unwrap()).or_default();
            *effect = (effect.0 + 1, node.to_owned());
        }
        effects
    }

    /// The epochs of the log rise by takeovers alone: the number of the last one.
    pub(super) fn epoch(&self) -> u64 {
        self.server.sql("work", "SELECT epoch FROM systole.fed").parse().unwrap()
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        if std::thread::panicking() {
            for node in &self.nodes {
                eprintln!("--- node {}\n{}", node.name, node.log());
            }
        }
        self.nodes.iter().for_each(Node::kill);
        let _ = fs::remove_dir_all(&self.folder);
    }
}

impl Node {
    pub(super) fn systole(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_systole"));
        command.args(args).current_dir(&self.folder).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// Its folder.
    pub(super) fn path(&self) -> &Path {
        &self.folder
    }

    pub(super) fn start(&self) {
        let mut process = self.systole(&["run", "organism.yaml"]).stdout(Stdio::null()).spawn().unwrap();
        let (said, log) = (BufReader::new(process.stderr.take().unwrap()), self.log.clone());
        // The process must not wait for the test to read.
        std::thread::spawn(move || {
            for line in said.lines().map_while(Result::ok) {
                *log.lock().unwrap() += &(line + "\n");
            }
        });
        *self.process.lock().unwrap() = Some(process);
    }

    pub(super) fn log(&self) -> String {
        self.log.lock().unwrap().clone()
    }

    pub(super) fn runs(&self) -> bool {
        self.process.lock().unwrap().is_some()
    }

    /// Its role, if it is ready.
    pub(super) fn role(&self) -> Option<String> {
        let answer = self.ask("/readyz").filter(|answer| answer.status == 200)?;
        Some(text(&answer.json()["role"]).to_owned())
    }

    /// What it answers by itself.
    pub(super) fn ask(&self, path: &str) -> Option<Answer> {
        let mut stream = TcpStream::connect(self.address).ok()?;
        // A node that is stopped accepts, and says nothing.
        stream.set_read_timeout(Some(Duration::from_millis(500))).ok()?;
        stream.write_all(format!("GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").as_bytes()).ok()?;
        Some(answer(stream)).filter(|answer| answer.status > 0)
    }

    pub(super) fn signal(&self, signal: Signal) {
        let process = self.process.lock().unwrap();
        let pid = Pid::from_child(process.as_ref().expect("it runs"));
        kill_process(pid, signal).unwrap();
    }

    pub(super) fn kill(&self) {
        if let Some(mut process) = self.process.lock().unwrap().take() {
            process.kill().unwrap();
            process.wait().unwrap();
        }
    }

    /// Ends it in order.
    pub(super) fn stop(&self) {
        self.signal(Signal::TERM);
        let mut process = self.process.lock().unwrap().take().unwrap();
        let code = wait(&format!("the end of node {}", self.name), || process.try_wait().unwrap());
        assert_eq!(code.code(), Some(0), "{}", self.log());
    }
}

/// The fate of a request.
#[derive(Debug)]
pub(super) enum Sent {
    Answer(Answer),
    /// No node was connected to.
    Refused,
    /// The connection broke off behind the request.
    Cut,
}

/// A client that takes the nodes in turn.
#[derive(Clone)]
pub(super) struct Client {
    addresses: Vec<SocketAddr>,
    token: String,
    next: Arc<AtomicUsize>,
}

impl Client {
    /// A client of one node.
    pub(super) fn of(&self, node: &Node) -> Self {
        Self { addresses: vec![node.address], ..self.clone() }
    }

    /// Makes one request, at the next node that takes the connection.
    pub(super) fn send(&self, method: &str, path: &str, headers: &str, body: &str) -> Sent {
        let token = &self.token;
        let head =
            format!("{method} {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\nConnection: close\r\n");
        let request = format!("{head}{headers}Content-Length: {}\r\n\r\n{body}", body.len());
        for _ in 0..self.addresses.len() {
            let at = self.next.fetch_add(1, Ordering::Relaxed) % self.addresses.len();
            let Ok(mut stream) = TcpStream::connect(self.addresses[at]) else { continue };
            stream.set_read_timeout(Some(PATIENCE)).unwrap();
            if stream.write_all(request.as_bytes()).is_err() {
                return Sent::Cut;
            }
            let answer = answer(stream);
            return if answer.status == 0 { Sent::Cut } else { Sent::Answer(answer) };
        }
        Sent::Refused
    }

    /// Sends a number to the clerk, once under its key.
    pub(super) fn say(&self, number: u32) -> Sent {
        let headers = format!("Idempotency-Key: n{number}\r\nContent-Type: application/xml\r\n");
        self.send("POST", "/v1/messages?wait=10", &headers, &format!("<say xmlns=\"urn:t\">{number}</say>"))
    }

    /// Sends a number until it is answered, whatever happens to nodes; returns the id of the message, and the attempts that
    /// failed.
    pub(super) fn insist(&self, number: u32) -> (Option<String>, usize) {
        let mut failed = 0;
        wait(&format!("the answer to {number}"), || match self.say(number) {
            Sent::Answer(answer) if answer.status == 200 => Some((None, failed)),
            Sent::Answer(answer) if answer.status == 202 => Some((Some(text(&answer.json()["id"]).to_owned()), failed)),
            Sent::Answer(_) | Sent::Refused | Sent::Cut => {
                failed += 1;
                None
            }
        })
    }

    /// The replies that the gateway has to a number, by its key.
    pub(super) fn replies(&self, number: u32) -> Value {
        wait(&format!("the replies to {number}"), || {
            // The key stands for the message that was sent before.
            let headers = format!("Idempotency-Key: n{number}\r\nContent-Type: application/xml\r\n");
            let body = format!("<say xmlns=\"urn:t\">{number}</say>");
            let Sent::Answer(sent) = self.send("POST", "/v1/messages", &headers, &body) else { return None };
            if sent.status != 202 {
                return None;
            }
            let id = text(&sent.json()["id"]).to_owned();
            let Sent::Answer(found) = self.send("GET", &format!("/v1/messages/{id}?wait=10"), "", "") else {
                return None;
            };
            (found.status == 200).then(|| found.json()).filter(|found| found["state"] == "answered")
        })
    }
}

/// Clients that send numbers, one after the other each, until they are told to end.
pub(super) struct Load {
    stop: Arc<AtomicBool>,
    threads: Vec<std::thread::JoinHandle<Vec<u32>>>,
    pub(super) failed: Arc<AtomicUsize>,
    pub(super) answered: Arc<AtomicUsize>,
    pub(super) failures: Arc<Mutex<Vec<String>>>,
}

impl Load {
    /// Starts them; numbers begin at `from`.
    pub(super) fn start(client: &Client, clients: u32, from: u32) -> Self {
        let (stop, failed, answered) =
            (Arc::<AtomicBool>::default(), Arc::<AtomicUsize>::default(), Arc::<AtomicUsize>::default());
        let failures = Arc::<Mutex<Vec<String>>>::default();
        let threads = (0..clients).map(|own| {
            let (client, stop, failed, answered) =
                (client.clone(), stop.clone(), failed.clone(), Arc::clone(&answered));
            let failures = failures.clone();
            std::thread::spawn(move || {
                let mut numbers = Vec::new();
                while !stop.load(Ordering::Relaxed) {
                    let number = from + own + u32::try_from(numbers.len()).unwrap() * clients;
                    match client.say(number) {
                        Sent::Answer(answer) if matches!(answer.status, 200 | 202) => {
                            numbers.push(number);
                            answered.fetch_add(1, Ordering::Relaxed);
                        }
                        other => {
                            failed.fetch_add(1, Ordering::Relaxed);
                            failures.lock().unwrap().push(format!("{number}: {other:?}"));
                        }
                    }
                }
                numbers
            })
        });
        let threads = threads.collect();
        Self { stop, threads, failed, answered, failures }
    }

    /// Waits until so many more were answered.
    pub(super) fn more(&self, count: usize) {
        let before = self.answered.load(Ordering::Relaxed);
        wait("answers under load", || (self.answered.load(Ordering::Relaxed) >= before + count).then_some(()));
    }

    /// Ends them, and returns the numbers that were acknowledged.
    pub(super) fn end(self) -> Vec<u32> {
        self.stop.store(true, Ordering::Relaxed);
        self.threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    }
}

/// Looks at the roles of all nodes all the time: two that are active at once fail the test.
pub(super) struct Watch {
    stop: Arc<AtomicBool>,
    thread: Option<std::thread::JoinHandle<Vec<String>>>,
}

impl Watch {
    pub(super) fn start(cluster: &Cluster) -> Self {
        let stop = Arc::<AtomicBool>::default();
        let nodes: Vec<(String, SocketAddr)> =
            cluster.nodes.iter().map(|node| (node.name.clone(), node.address)).collect();
        let ended = stop.clone();
        let thread = std::thread::spawn(move || {
            let is_active = |address: SocketAddr| {
                let node = Node {
                    name: String::new(),
                    folder: PathBuf::new(),
                    address,
                    process: Mutex::default(),
                    log: Arc::default(),
                };
                node.role().as_deref() == Some("active")
            };
            let mut twice = Vec::new();
            while !ended.load(Ordering::Relaxed) {
                for (name, address) in &nodes {
                    if !is_active(*address) {
                        continue;
                    }
                    for (other, also) in nodes.iter().filter(|(other, _)| other != name) {
                        // Active before and after the other was.
                        if is_active(*also) && is_active(*address) {
                            twice.push(format!("{name} and {other}"));
                        }
                    }
                }
                std::thread::park_timeout(Duration::from_millis(10));
            }
            twice
        });
        Self { stop, thread: Some(thread) }
    }

    pub(super) fn end(mut self) {
        self.stop.store(true, Ordering::Relaxed);
        let twice = self.thread.take().unwrap().join().unwrap();
        assert!(twice.is_empty(), "active at once: {twice:?}");
    }
}

/// A proxy before the server, whose connections can be frozen: nothing comes through, and nothing ends.
pub(super) struct Proxy {
    folder: PathBuf,
    frozen: Arc<AtomicBool>,
}

impl Proxy {
    /// A proxy in a folder of its own.
    pub(super) fn start(server: &Server, name: &str) -> Self {
        let folder = server.folder().join(format!("proxy-{name}"));
        fs::create_dir(&folder).unwrap();
        let listener = UnixListener::bind(folder.join(".s.PGSQL.5432")).unwrap();
        let (frozen, socket) = (Arc::<AtomicBool>::default(), server.socket());
        let state = frozen.clone();
        std::thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let Ok(server) = UnixStream::connect(&socket) else { continue };
                for (from, to) in [(&client, &server), (&server, &client)] {
                    let (from, to, frozen) = (from.try_clone().unwrap(), to.try_clone().unwrap(), state.clone());
                    std::thread::spawn(move || carry(from, to, &frozen));
                }
            }
        });
        Self { folder, frozen }
    }

    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    pub(super) fn freeze(&self, frozen: bool) {
        self.frozen.store(frozen, Ordering::SeqCst);
    }
}

fn carry(mut from: UnixStream, mut to: UnixStream, frozen: &AtomicBool) {
    let mut buffer = vec![0; 1 << 16];
    while let Ok(length @ 1..) = from.read(&mut buffer) {
        while frozen.load(Ordering::SeqCst) {
            std::thread::park_timeout(Duration::from_millis(5));
        }
        if to.write_all(&buffer[..length]).is_err() {
            break;
        }
    }
    let _ = from.shutdown(std::net::Shutdown::Both);
    let _ = to.shutdown(std::net::Shutdown::Both);
}
