//! An organism with a gateway, as a process of its own, and an HTTP client that can also misbehave.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::Value;

const SCHEMA: &str = r#"<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema" targetNamespace="urn:t" elementFormDefault="qualified">
  <xs:element name="ask" type="xs:int"/>
  <xs:element name="order" type="xs:int"/>
  <xs:element name="answer" type="xs:string"/>
  <xs:element name="note" type="xs:string"/>
  <xs:element name="say" type="xs:string"/>
  <xs:element name="fail" type="xs:string"/>
  <xs:element name="sum" type="xs:integer"/>
</xs:schema>
"#;

/// Two clients, two agents elsewhere, and an echo.
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

/// The organism of most tests, with further keys in `gateway:`, and that retention.
pub(crate) fn organism(gateway: &str, age: &str) -> String {
    ORGANISM.replace("GATEWAY", gateway).replace("AGE", age)
}

/// A folder with an organism in it, and its process; both end with this value.
pub(crate) struct Site {
    pub(crate) folder: PathBuf,
    process: Option<Child>,
    pub(crate) address: SocketAddr,
    log: Arc<Mutex<String>>,
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
        let mut site = Self::idle(organism);
        site.start();
        site
    }

    /// A site that doesn't run yet.
    pub(crate) fn idle(organism: &str) -> Self {
        static SITES: AtomicUsize = AtomicUsize::new(0);
        let number = SITES.fetch_add(1, Ordering::Relaxed);
        let folder = std::env::temp_dir().join(format!("systole-test-{}-gateway-{number}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("organism.yaml"), organism).unwrap();
        fs::write(folder.join("t.xsd"), SCHEMA).unwrap();
        Self { folder, process: None, address: SocketAddr::from(([127, 0, 0, 1], 0)), log: Arc::default() }
    }

    /// Runs the organism.
    pub(crate) fn start(&mut self) {
        self.start_with(&[]);
    }

    /// Runs the organism with more arguments.
    pub(crate) fn start_with(&mut self, args: &[&str]) {
        let args = [&["run", "organism.yaml"], args].concat();
        self.begin(self.systole(&args));
    }

    /// Runs the organism behind a command of a shell, such as one that limits it.
    pub(crate) fn start_under(&mut self, shell: &str) {
        let mut command = Command::new("sh");
        let script = format!("{shell} && exec \"$0\" run organism.yaml");
        command.args(["-c", &script, env!("CARGO_BIN_EXE_systole")]);
        command.current_dir(&self.folder).stdout(Stdio::piped()).stderr(Stdio::piped());
        self.begin(command);
    }

    fn begin(&mut self, mut command: Command) {
        let mut process = command.stdin(Stdio::null()).spawn().unwrap();
        let said = BufReader::new(process.stderr.take().unwrap());
        let (tell, told) = channel();
        // The process must not wait for the test to read.
        let kept = self.log.clone();
        std::thread::spawn(move || {
            let mut tell = Some(tell);
            for line in said.lines().map_while(Result::ok) {
                let address = line.split_once("the gateway listens address=").map(|(_, address)| address.to_owned());
                *kept.lock().unwrap() += &(line + "\n");
                if let Some(address) = address
                    && let Some(tell) = tell.take()
                {
                    let _ = tell.send(address);
                }
            }
        });
        let address = told.recv_timeout(PATIENCE);
        let address = address.unwrap_or_else(|error| panic!("it does not listen: {error}: {}", self.log()));
        self.address = address.trim().parse().unwrap();
        self.process = Some(process);
    }

    /// Limits a resource of the process from now on.
    pub(crate) fn limit(&self, what: rustix::process::Resource, most: u64) {
        use rustix::process::{Pid, Rlimit, prlimit};
        let limit = Rlimit { current: Some(most), maximum: Some(most) };
        prlimit(Some(Pid::from_child(self.process.as_ref().unwrap())), what, limit).unwrap();
    }

    /// The id of the process.
    pub(crate) fn pid(&self) -> u32 {
        self.process.as_ref().unwrap().id()
    }

    /// The log of the process since it listens.
    pub(crate) fn log(&self) -> String {
        self.log.lock().unwrap().clone()
    }

    /// Kills the process.
    pub(crate) fn kill(&mut self) {
        let mut process = self.process.take().unwrap();
        process.kill().unwrap();
        process.wait().unwrap();
    }

    /// Waits until the process ends by itself; returns its exit code.
    pub(crate) fn ended(&mut self) -> Option<i32> {
        let mut process = self.process.take().unwrap();
        let (tell, told) = channel();
        std::thread::spawn(move || tell.send(process.wait().unwrap().code()));
        told.recv_timeout(PATIENCE).expect("the process goes on")
    }

    /// Ends the process in order: at once, whatever waits, and without a word of threads that stay open. A conversation whose
    /// answer has left may close meanwhile, for its client can have it before its log line is written.
    #[track_caller]
    pub(crate) fn stop(&mut self) {
        let before = self.log().len();
        self.terminate();
        assert_eq!(self.ended(), Some(0), "{}", self.log());
        let log = self.log();
        for line in log[before..].lines().filter(|line| line.ends_with(" closed")) {
            let conversation = line.split(' ').nth(1).unwrap();
            assert!(log.contains(&format!(" {conversation} root left ")), "{log}");
        }
    }

    /// Tells the process to end in order.
    pub(crate) fn terminate(&self) {
        let pid = rustix::process::Pid::from_child(self.process.as_ref().unwrap());
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    }

    pub(crate) fn systole(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_systole"));
        command.args(args).current_dir(&self.folder).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// Makes a token.
    pub(crate) fn token(&self, args: &[&str]) -> String {
        let made = self.systole(&[&["token", "new"], args].concat()).output().unwrap();
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        String::from_utf8(made.stdout).unwrap().trim().to_owned()
    }

    /// A client with that token.
    pub(crate) fn who(&self, token: &str) -> Who {
        Who { address: self.address, token: token.to_owned() }
    }

    /// A figure of `/metrics`, which need no token.
    pub(crate) fn metric(&self, name: &str) -> u64 {
        let metrics = self.who("").get("/metrics").is(200).body;
        let figure = metrics.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        figure.unwrap_or_else(|| panic!("no {name}: {metrics}")).parse().unwrap()
    }

    /// A client with a token of that name.
    pub(crate) fn party(&self, name: &str) -> Who {
        self.who(&self.token(&[name]))
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        if self.process.is_some() {
            self.kill();
        }
        fs::remove_dir_all(&self.folder).unwrap();
    }
}

/// A client with a token.
#[derive(Clone)]
pub(crate) struct Who {
    pub(crate) address: SocketAddr,
    pub(crate) token: String,
}

/// An answer of the gateway.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: String,
}

/// The value of a header, of a request or an answer.
pub(crate) fn header<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    head.lines().find_map(|line| {
        let (key, value) = line.split_once(':')?;
        key.eq_ignore_ascii_case(name).then(|| value.trim())
    })
}

impl Answer {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|_| panic!("no JSON: {self:?}"))
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        header(&self.head, name)
    }

    /// Checks the status.
    pub(crate) fn is(self, status: u16) -> Self {
        assert_eq!(self.status, status, "{self:?}");
        self
    }

    /// Checks that the answer is that problem, in the shape that all problems have.
    pub(crate) fn problem(self, status: u16, code: &str) -> Value {
        let answer = self.is(status);
        assert_eq!(answer.header("content-type"), Some("application/problem+json"), "{answer:?}");
        let problem = answer.json();
        assert_eq!((&problem["code"], &problem["status"]), (&code.into(), &status.into()), "{problem}");
        assert!(problem["type"].is_string() && problem["title"].is_string() && problem["detail"].is_string());
        problem
    }
}

impl Who {
    pub(crate) fn get(&self, path: &str) -> Answer {
        self.ask("GET", path, &[], "")
    }

    pub(crate) fn post(&self, path: &str, body: &str) -> Answer {
        self.ask("POST", path, &[], body)
    }

    /// Makes a request, and repeats it while the organism has started again and has not come to its message yet.
    pub(crate) fn ask(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Answer {
        let deadline = Deadline::new("a start");
        loop {
            let answer = answer(self.connect_and(&self.request(method, path, headers, body)));
            if answer.status != 503 || answer.json()["code"] != "starting" {
                return answer;
            }
            deadline.check_with(&answer.json());
            std::thread::park_timeout(Duration::from_millis(2));
        }
    }

    /// The bytes of a request.
    pub(crate) fn request(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Vec<u8> {
        let headers: String = headers.iter().map(|(key, value)| format!("{key}: {value}\r\n")).collect();
        let token = &self.token;
        let head = format!(
            "{method} {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\nConnection: close\r\n{headers}"
        );
        format!("{head}Content-Length: {}\r\n\r\n{body}", body.len()).into_bytes()
    }

    pub(crate) fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address).unwrap();
        // Longer than a long poll.
        stream.set_read_timeout(Some(2 * PATIENCE)).unwrap();
        stream
    }

    /// Opens a connection, and writes these bytes to it.
    pub(crate) fn connect_and(&self, bytes: &[u8]) -> TcpStream {
        let mut stream = self.connect();
        stream.write_all(bytes).unwrap();
        stream
    }

    /// Posts to a process that may end meanwhile; none if the connection fails or is cut.
    pub(crate) fn try_post(&self, path: &str, body: &str) -> Option<Answer> {
        let mut stream = TcpStream::connect(self.address).ok()?;
        stream.set_read_timeout(Some(2 * PATIENCE)).ok()?;
        stream.write_all(&self.request("POST", path, &[], body)).ok()?;
        Some(answer(stream)).filter(|answer| answer.status > 0)
    }

    /// Sends an ask with that number.
    pub(crate) fn send(&self, number: u32) -> Answer {
        self.post("/v1/messages", &ask(number))
    }

    /// Leases some messages.
    pub(crate) fn lease(&self, mailbox: &str, body: &str) -> Vec<Value> {
        let answer = self.post(&format!("/v1/mailboxes/{mailbox}/lease"), body).is(200);
        answer.json()["items"].as_array().unwrap().clone()
    }

    /// Applies an action to a leased message.
    pub(crate) fn handle(&self, mailbox: &str, item: &Value, verb: &str) -> Answer {
        let body = serde_json::json!({ "receipt": item["receipt"] }).to_string();
        self.post(&format!("/v1/mailboxes/{mailbox}/messages/{}/{verb}", text(&item["id"])), &body)
    }

    /// Repeats a request until the condition holds.
    pub(crate) fn until(&self, path: &str, so: impl Fn(&Value) -> bool) -> Value {
        let deadline = Deadline::new(path);
        loop {
            let last = self.get(path).json();
            if so(&last) {
                return last;
            }
            deadline.check_with(&last);
            std::thread::park_timeout(Duration::from_millis(2));
        }
    }
}

/// Time limit of a wait, on a machine under load.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// Waits for a condition; a failure names it.
pub(crate) fn wait<T>(what: &str, mut probe: impl FnMut() -> Option<T>) -> T {
    let deadline = Deadline::new(what);
    loop {
        if let Some(found) = probe() {
            return found;
        }
        deadline.check();
        // The process that is waited for gets the processor.
        std::thread::park_timeout(Duration::from_millis(2));
    }
}

/// The time limit of a wait.
pub(crate) struct Deadline<'a> {
    what: &'a str,
    began: Instant,
}

impl<'a> Deadline<'a> {
    /// Begins to wait for `what`.
    #[allow(clippy::disallowed_methods, reason = "it waits for a real process")]
    pub(crate) fn new(what: &'a str) -> Self {
        Self { what, began: Instant::now() }
    }

    /// Fails if the time is over, with what there is instead.
    pub(crate) fn check_with(&self, last: &Value) {
        assert!(self.began.elapsed() < PATIENCE, "waited a minute for: {}, which is {last}", self.what);
    }

    /// Fails if the time is over.
    pub(crate) fn check(&self) {
        assert!(self.began.elapsed() < PATIENCE, "waited a minute for: {}", self.what);
    }
}

/// Reads a whole answer.
pub(crate) fn answer(mut stream: TcpStream) -> Answer {
    let mut all = Vec::new();
    // A connection that is cut off is an end, too.
    let _ = stream.read_to_end(&mut all);
    let all = String::from_utf8(all).unwrap();
    let mut all = &*all;
    // Interim answers come before, while a client that has closed its side waits.
    while let Some((_, rest)) = all.strip_prefix("HTTP/1.1 102").and_then(|rest| rest.split_once("\r\n\r\n")) {
        all = rest;
    }
    let (head, body) = all.split_once("\r\n\r\n").unwrap_or((all, ""));
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0);
    Answer { status, head: head.to_owned(), body: body.to_owned() }
}

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
