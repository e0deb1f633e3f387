//! People who answer from elsewhere, as processes: questions that outlive the program and its terminal, `systole inbox` from a
//! second process, and tokens of people.

use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::ops::Deref;
use std::process::{Child, Stdio};
use std::sync::{Arc, Mutex};

use serde_json::Value;

use crate::kit::waiting::{Lines, until};
use crate::kit::{Scratch, has};

/// A shop whose clerk asks its boss; `PEOPLE` may answer.
const ORGANISM: &str = r#"organism: { name: shop }
durability: process
journal: shop.journal
gateway: { listen: "127.0.0.1:0" }
teams: { owners: [bob, eve] }
clients: [{ name: cli, calls: ["{urn:t}ask"] }]
listeners:
  - name: boss
    human: { people: [PEOPLE]ANNOUNCE }
    schemas: [thing.xsd]
    accepts: ["{urn:t}ask"]
    replies: ["{urn:t}verdict"]
"#;

const ASK: &str = "<ask xmlns=\"urn:t\">guilty?</ask>";
const VERDICT: &str = "<verdict xmlns=\"urn:t\"><ok>true</ok><note>x</note></verdict>";

struct Shop {
    folder: Scratch,
}

impl Deref for Shop {
    type Target = Scratch;

    fn deref(&self) -> &Scratch {
        &self.folder
    }
}

impl Shop {
    fn new(name: &str, people: &str) -> Self {
        Self::announcing(name, people, "")
    }

    fn announcing(name: &str, people: &str, announce: &str) -> Self {
        let folder = Scratch::new(&format!("inbox-{name}"));
        let organism = ORGANISM.replace("PEOPLE", people).replace("ANNOUNCE", announce);
        fs::write(folder.join("organism.yaml"), organism).unwrap();
        fs::write(folder.join("ask.xml"), ASK).unwrap();
        let schema = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/golden/run/thing.xsd");
        fs::copy(schema, folder.join("thing.xsd")).unwrap();
        Self { folder }
    }

    /// Starts the organism without a terminal, and waits until its question is there.
    fn start(&self) -> Runs {
        let log = fs::File::create(self.folder.join("log")).unwrap();
        let mut run = self.systole(&["run", "organism.yaml", "ask.xml"]);
        let mut child = run.stdout(Stdio::piped()).stderr(log).spawn().unwrap();
        let out = Lines::of(child.stdout.take().unwrap());
        let runs = Runs { child, out };
        until("the question", || (self.questions().len() == 1).then_some(()));
        runs
    }

    /// Runs a command that fails; its exit code and what it complains of.
    #[track_caller]
    fn fails(&self, args: &[&str]) -> (i32, String) {
        let output = self.command(args);
        (output.status.code().unwrap(), String::from_utf8_lossy(&output.stderr).into_owned())
    }

    fn read(&self, file: &str) -> String {
        fs::read_to_string(self.folder.join(file)).unwrap()
    }

    /// The questions of the running organism; none while it doesn't serve.
    fn questions(&self) -> Vec<Value> {
        let output = self.command(&["inbox", "--json"]);
        let is_served = fs::exists(self.folder.join("shop.journal.socket")).unwrap();
        let all: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
        all.as_array().cloned().filter(|_| is_served).unwrap_or_default()
    }

    fn question(&self) -> String {
        self.questions()[0]["question"].as_str().unwrap().to_owned()
    }

    /// A request as a person; status and body of the answer.
    fn http(&self, token: &str, method: &str, path: &str, body: &str) -> (u16, String) {
        let log = self.read("log");
        let (_, address) = log.split_once("address=").expect("the log names the address");
        let mut stream = TcpStream::connect(address.lines().next().unwrap()).unwrap();
        let length = body.len();
        write!(
            stream,
            "{method} {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\nConnection: close\r\n\
             Content-Length: {length}\r\n\r\n{body}"
        )
        .unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let status = answer.split(' ').nth(1).unwrap().parse().unwrap();
        (status, answer.split_once("\r\n\r\n").unwrap().1.to_owned())
    }

    fn token(&self, name: &str) -> String {
        self.done(&["token", "new", name]).trim().to_owned()
    }
}

/// A running organism; it is killed when the test drops it.
struct Runs {
    child: Child,
    out: Lines,
}

impl Runs {
    fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Runs {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn a_question_outlives_kills_and_starts_without_a_terminal_until_a_person_answers_over_http() {
    let shop = Shop::new("outlives", "ada, owners");
    let (ada, eve) = (shop.token("ada"), shop.token("eve"));
    let runs = shop.start();
    let question = shop.question();
    runs.kill();
    // Nothing runs: the journal has the question.
    let listed = shop.command(&["inbox"]);
    let (out, err) = (String::from_utf8_lossy(&listed.stdout), String::from_utf8_lossy(&listed.stderr));
    assert!(listed.status.success() && out.contains(&question) && out.contains("ada, bob, eve"), "{out}{err}");
    has(&err, &["the organism doesn't run: start it with `systole run organism.yaml`"]);
    let (code, err) = shop.fails(&["inbox", "answer", &question, VERDICT]);
    assert!(code == 2 && err.contains("start it with `systole run`"), "{err}");
    shop.start().kill();
    let runs = shop.start();
    assert_eq!(shop.question(), question, "it is the same one");
    let path = format!("/v1/questions/{question}/answer");
    let (status, refused) =
        shop.http(&ada, "POST", &path, "<verdict xmlns='urn:t'><ok>maybe</ok><note>x</note></verdict>");
    assert!(status == 422 && refused.contains("\"place\"") && refused.contains("\"example\""), "{refused}");
    let (status, answered) = shop.http(&ada, "POST", &path, VERDICT);
    assert_eq!(status, 200, "{answered}");
    let (status, late) = shop.http(&eve, "POST", &path, VERDICT);
    assert!(status == 409 && late.contains("was answered by ada"), "{late}");
    runs.out.until("the answer", |line| line.contains(VERDICT));
}

#[test]
fn a_second_process_answers_claims_and_declines() {
    let shop = Shop::new("second", "ada, operator");
    let runs = shop.start();
    let question = shop.question();
    let digits = &question[28..];
    has(&shop.done(&["inbox"]), &[&question, "cli", "boss", "ada, operator"]);
    has(&shop.done(&["inbox", "show", digits]), &["│ <ask xmlns=\"urn:t\">guilty?</ask>", "answer as in <verdict"]);
    assert_eq!(shop.done(&["inbox", "claim", digits, "--as", "ada"]), "claimed by ada\n");
    let (code, err) = shop.fails(&["inbox", "answer", digits, VERDICT]);
    assert!(code == 1 && err.contains("ada has claimed the question at "), "{err}");
    assert_eq!(shop.done(&["inbox", "release", digits]), "shown\n");
    let (code, err) =
        shop.fails(&["inbox", "answer", digits, "<verdict xmlns='urn:t'><ok>maybe</ok><note>x</note></verdict>"]);
    assert!(code == 1 && err.contains("1:") && err.contains("Write it as in <verdict"), "{err}");
    let (code, err) = shop.fails(&["inbox", "answer", digits, r#"{"verdict": {"ok": "maybe", "note": "x"}}"#]);
    assert!(code == 1 && err.contains("/verdict/ok: found 'maybe', expected true or false"), "{err}");
    let (code, err) = shop.fails(&["inbox", "answer", digits, VERDICT, "--as", "bob"]);
    assert!(code == 1 && err.contains("no open question"), "{err}");
    let verdict = r#"{"verdict": {"ok": true, "note": "x"}}"#;
    assert_eq!(shop.done(&["inbox", "answer", digits, verdict]), "answered by system\n");
    runs.out.until("the answer", |line| line.contains(VERDICT));
    runs.kill();
    fs::write(shop.folder.join("ask.xml"), "<ask xmlns=\"urn:t\">again?</ask>").unwrap();
    let runs = shop.start();
    let declined = shop.done(&["inbox", "decline", &shop.question(), "--reason", "no time"]);
    assert_eq!(declined, "declined by system\n");
    runs.out.until("the fault", |line| line.contains("the person declined to answer: no time"));
}

#[test]
fn the_keyboard_of_a_second_process_asks_part_by_part() {
    let shop = Shop::new("keyboard", "ada");
    let runs = shop.start();
    let mut inbox = shop.systole(&["inbox", "answer", "--as", "ada"]);
    let mut inbox = inbox.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    // The entry is refused first, with the rule and an example.
    let typed = "<verdict xmlns='urn:t'><ok>maybe</ok><note>x</note></verdict>\n1\ntrue\nx\ny\n";
    inbox.stdin.take().unwrap().write_all(typed.as_bytes()).unwrap();
    let output = inbox.wait_with_output().unwrap();
    let shown = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{shown}");
    has(&shown, &["--- cli asks boss, since 20", "│ <ask xmlns=\"urn:t\">guilty?</ask>", "Write it as in <verdict"]);
    runs.out.until("the answer", |line| line.contains(VERDICT));
    assert_eq!(shop.command(&["inbox", "answer", "--as", "ada"]).status.code(), Some(0), "nothing waits");
}

#[test]
fn the_end_of_the_keyboard_of_a_second_process_leaves_the_question() {
    let shop = Shop::new("left", "ada");
    let _runs = shop.start();
    let left = shop.command(&["inbox", "answer", "--as", "ada"]);
    assert_eq!(left.status.code(), Some(4));
    assert_eq!(shop.questions().len(), 1);
}

#[test]
fn a_running_organism_is_asked_and_the_question_left_to_people() {
    let shop = Shop::new("ask", "ada");
    let runs = shop.start();
    shop.done(&["inbox", "answer", &shop.question(), VERDICT, "--as", "ada"]);
    runs.out.until("the first answer", |line| line.contains(VERDICT));
    let (code, err) = shop.fails(&["ask", "organism.yaml", ASK]);
    assert_eq!(code, 4, "{err}");
    has(&err, &["cli asks boss, which waits for ada", "systole inbox answer", "--within"]);
    // Its answer is printed by the organism.
    shop.done(&["inbox", "answer", &shop.question(), VERDICT, "--as", "ada"]);
    runs.out.until("the second answer", |line| line.contains(VERDICT));
    // With a time to wait the answer comes here.
    let mut asking = shop.systole(&["ask", "organism.yaml", ASK, "--within", "60s"]);
    let asking = asking.stdout(Stdio::piped()).spawn().unwrap();
    until("the question", || (shop.questions().len() == 1).then_some(()));
    shop.done(&["inbox", "answer", &shop.question(), VERDICT, "--as", "ada"]);
    let asked = asking.wait_with_output().unwrap();
    assert_eq!((asked.status.code(), String::from_utf8_lossy(&asked.stdout)), (Some(0), format!("{VERDICT}\n").into()));
}

#[test]
fn a_question_is_announced_once_over_restarts() {
    let announce =
        ", announce: { command: [sh, -c, \"[ -e ready ] || { touch ready; exit 1; }; cat >>told; echo >>told\"] }";
    let shop = Shop::announcing("announce", "ada", announce);
    let runs = shop.start();
    let told = || fs::read_to_string(shop.folder.join("told")).unwrap_or_default();
    // The first attempt fails.
    until("the announcement", || told().ends_with("</message>\n").then_some(()));
    has(&told(), &["<to>boss</to>", "guilty?", &shop.question()]);
    let thread = shop.questions()[0]["thread"].as_str().unwrap().to_owned();
    until("its note", || shop.done(&["thread", "show", &thread]).contains("announced").then_some(()));
    runs.kill();
    let runs = shop.start();
    fs::write(shop.folder.join("second.xml"), "<ask xmlns=\"urn:t\">innocent?</ask>").unwrap();
    let (code, err) = shop.fails(&["ask", "organism.yaml", "<ask xmlns=\"urn:t\">innocent?</ask>"]);
    assert_eq!(code, 4, "{err}");
    until("the second announcement", || told().contains("innocent?").then_some(()));
    assert_eq!(told().matches("guilty?").count(), 1, "{}", told());
    runs.kill();
}

/// A webhook that keeps the requests it gets, and answers none unless it is told an answer. It closes no connection that it
/// has answered.
struct Webhook {
    address: SocketAddr,
    got: Arc<Mutex<Vec<String>>>,
    answer: Arc<Mutex<Option<&'static str>>>,
}

impl Webhook {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let webhook = Self { address: listener.local_addr().unwrap(), got: Arc::default(), answer: Arc::default() };
        let (got, answer) = (webhook.got.clone(), webhook.answer.clone());
        std::thread::spawn(move || {
            let mut answered = Vec::new();
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                let mut request = Vec::new();
                let mut buffer = [0; 4096];
                // The head, and the body behind it, which is an envelope.
                while !request.ends_with(b"</message>") {
                    match stream.read(&mut buffer).unwrap_or(0) {
                        0 => break,
                        read => request.extend(&buffer[..read]),
                    }
                }
                got.lock().unwrap().push(String::from_utf8(request).unwrap());
                if let Some(answer) = *answer.lock().unwrap() {
                    stream.write_all(answer.as_bytes()).unwrap();
                    answered.push(stream);
                }
            }
        });
        webhook
    }

    /// Gives all requests from now on an answer.
    fn answers(&self, answer: &'static str) {
        *self.answer.lock().unwrap() = Some(answer);
    }

    fn got(&self) -> Vec<String> {
        self.got.lock().unwrap().clone()
    }
}

/// A shop that announces to a webhook.
fn shop_of(webhook: &Webhook, name: &str) -> Shop {
    let address = webhook.address;
    let shop = Shop::announcing(
        name,
        "ada",
        &format!(", announce: {{ url: \"http://{address}/in\", secret: pushed.secret, allow_private: true }}"),
    );
    fs::write(shop.folder.join("pushed.secret"), "0123456789abcdef0123456789abcdef").unwrap();
    shop
}

#[test]
fn a_question_is_announced_to_a_webhook_once_and_signed() {
    let webhook = Webhook::start();
    webhook.answers("HTTP/1.1 204 No Content\r\n\r\n");
    let shop = shop_of(&webhook, "webhook");
    let runs = shop.start();
    let question = shop.question();
    until("the announcement", || (!webhook.got().is_empty()).then_some(()));
    let head = format!("idempotency-key: {question}\r\n");
    has(
        &webhook.got()[0].to_lowercase(),
        &["post /in http/1.1", &head, "systole-signature: t=", "<to>boss</to>", "guilty?"],
    );
    let thread = shop.questions()[0]["thread"].as_str().unwrap().to_owned();
    until("its note", || shop.done(&["thread", "show", &thread]).contains("announced").then_some(()));
    runs.kill();
    let runs = shop.start();
    shop.done(&["inbox", "answer", &question, VERDICT, "--as", "ada"]);
    assert_eq!(webhook.got().len(), 1, "{:?}", webhook.got());
    runs.kill();
}

#[test]
fn the_attempts_of_an_announcement_are_bounded_over_restarts() {
    let webhook = Webhook::start();
    let shop = shop_of(&webhook, "attempts");
    // A restart doesn't wait for the time of the next attempt, but it counts those before.
    let mut starts = 0;
    let runs = loop {
        let (runs, before) = (shop.start(), webhook.got().len());
        let thread = shop.questions()[0]["thread"].as_str().unwrap().to_owned();
        let is_over = until("an attempt, or the end of them", || {
            let is_over = shop.done(&["thread", "show", &thread]).contains("announced");
            (is_over || webhook.got().len() > before).then_some(is_over)
        });
        if is_over {
            break runs;
        }
        runs.kill();
        starts += 1;
        assert!(starts < 6, "{} attempts", webhook.got().len());
    };
    // On a busy machine one start may make several.
    assert!(starts > 0 && webhook.got().len() <= 5, "{starts} starts, {} attempts", webhook.got().len());
    // The question waits all the same.
    shop.done(&["inbox", "answer", &shop.question(), VERDICT, "--as", "ada"]);
    runs.kill();
}

#[test]
fn the_body_of_a_webhooks_answer_is_not_read() {
    let webhook = Webhook::start();
    // Neither body ends, and the second one would be longer than an answer may be.
    webhook.answers("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n");
    let shop = shop_of(&webhook, "body");
    let runs = shop.start();
    let announced = |count| {
        until("the notes of the announcements", || {
            let threads = shop.questions().into_iter().map(|question| question["thread"].as_str().unwrap().to_owned());
            let is_announced = |thread: String| shop.done(&["thread", "show", &thread]).contains("announced");
            (threads.filter(|thread| is_announced(thread.clone())).count() == count).then_some(())
        });
    };
    announced(1);
    webhook.answers("HTTP/1.1 200 OK\r\nContent-Length: 100000000\r\n\r\nx");
    let (code, err) = shop.fails(&["ask", "organism.yaml", "<ask xmlns=\"urn:t\">innocent?</ask>"]);
    assert_eq!(code, 4, "{err}");
    announced(2);
    assert_eq!(webhook.got().len(), 2, "{:?}", webhook.got());
    assert!(!shop.read("log").contains("a question was not announced"), "{}", shop.read("log"));
    runs.kill();
}

#[test]
fn an_announcement_that_fails_for_good_is_an_error_in_the_log() {
    let webhook = Webhook::start();
    webhook.answers("HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n");
    let shop = shop_of(&webhook, "refused");
    let runs = shop.start();
    let log = until("the error", || {
        let log = shop.read("log");
        log.lines().find(|line| line.contains("a question was not announced")).map(str::to_owned)
    });
    let question = format!("question={}", shop.question());
    has(
        &log,
        &[
            "error a question was not announced",
            "listener=boss",
            &question,
            "cause=rejected",
            "attempts=1",
            "403 Forbidden",
        ],
    );
    assert!(!shop.read("log").contains("a delivery was given up"), "it is told once");
    runs.kill();
}

/// The program of the boss writes the question, hangs until it may go on, and fails.
#[test]
fn announcements_that_hang_or_fail_hold_up_no_others() {
    let shop = Shop::announcing("turns", "ada", ", announce: { command: [sh, hang.sh] }");
    fs::write(
        shop.folder.join("hang.sh"),
        "echo $SYSTOLE_MESSAGE_ID >>tried; until [ -e go ] || ! [ -e hang.sh ]; do sleep 0.02; done; exit 1\n",
    )
    .unwrap();
    let organism = shop
        .read("organism.yaml")
        .replace("calls: [\"{urn:t}ask\"] }]", "calls: [boss] }, { name: api, calls: [boss, judge] }]")
        + r#"  - name: judge
    human: { people: [ada], announce: { command: [sh, -c, "cat >>told"] } }
    schemas: [thing.xsd]
    accepts: ["{urn:t}say"]
    replies: ["{urn:t}verdict"]
"#;
    fs::write(shop.folder.join("organism.yaml"), organism.replace("    schemas", "    concurrency: 20\n    schemas"))
        .unwrap();
    let api = shop.token("api");
    let runs = shop.start();
    let post = |message: &str| assert_eq!(shop.http(&api, "POST", "/v1/messages", message).0, 202);
    let tried = || fs::read_to_string(shop.folder.join("tried")).unwrap_or_default();
    // Eight take all turns of the boss.
    (1..8).for_each(|_| post(ASK));
    until("the first attempts", || (tried().lines().count() == 8).then_some(()));
    post("<say xmlns=\"urn:t\">hello</say>");
    until("the announcement of the judge", || {
        fs::read_to_string(shop.folder.join("told")).ok().filter(|told| told.contains("hello"))
    });
    // A ninth waits for a turn, and gets it in the pause of another one.
    post(ASK);
    until("all questions", || (shop.questions().len() == 10).then_some(()));
    assert_eq!(tried().lines().count(), 8, "eight run at once");
    let hanging = tried();
    fs::write(shop.folder.join("go"), "").unwrap();
    let all = until("the ninth question", || {
        let all = tried();
        all.ends_with('\n').then_some(all).filter(|all| all.lines().any(|line| !hanging.contains(line)))
    });
    let before: Vec<&str> = all.lines().take_while(|line| hanging.contains(line)).collect();
    let attempts = hanging.lines().map(|line| before.iter().filter(|other| **other == line).count());
    assert!(attempts.max().unwrap() < 5, "it waits for no question to use up its attempts: {all}");
    runs.kill();
}
