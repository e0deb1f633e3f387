//! `systole agent` and `systole listen`, as operators start them.

use std::process::{Child, Command, Output, Stdio};

use serde_json::Value;
use systole::outbound::Secret;
use systole::remote::{Failed, Inbound, InboundDelivery, PushDelivery, PushOptions};

use super::setup::{Seen, answered, number, stay_here};
use crate::kit::{Site, Who, text, wait};
use crate::waiting::Lines;

/// A program beside the organism, which ends with this value.
struct Beside {
    child: Option<Child>,
    /// Lines of its log.
    said: Lines,
}

impl Beside {
    /// Starts the program, and waits until its gateway knows it.
    fn start(command: Command) -> Self {
        let mut beside = Self::spawn(command);
        beside.until("the gateway knows the agent");
        beside
    }

    fn spawn(mut command: Command) -> Self {
        let mut child = command.stdin(Stdio::null()).spawn().unwrap();
        let said = Lines::of(child.stderr.take().unwrap());
        Self { child: Some(child), said }
    }

    /// Reads the log up to a line with these words.
    fn until(&mut self, words: &str) -> String {
        self.said.until(words, |line| line.contains(words))
    }

    fn signal(&self) {
        let pid = rustix::process::Pid::from_child(self.child.as_ref().unwrap());
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    }

    /// Waits for the end of the program: its exit code, and the rest of its log.
    fn end(mut self) -> (Option<i32>, String) {
        let said = self.said.rest();
        (self.child.take().unwrap().wait().unwrap().code(), said)
    }
}

impl Drop for Beside {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// The program as the agent of the worker, with more arguments.
fn command(site: &Site, worker: &Who, verb: &str, args: &[&str]) -> Command {
    let token = site.folder.join("worker.token");
    std::fs::write(&token, format!("{}\n", worker.token)).unwrap();
    let url = format!("http://{}", site.address);
    let mut command = site.systole(&[verb, "worker", "--url", &url, "--token-file", token.to_str().unwrap()]);
    command.args(args);
    command
}

const SHELL: &str = r#"number=$(sed 's/.*>\([0-9]*\)<.*/\1/')
case $number in
1) echo "<answer xmlns='urn:t'>$number from $SYSTOLE_FROM, ${GREETING-} ${SYSTOLE_TOKEN-no token}</answer>" ;;
2) echo "first line" >&2; echo "no more coffee" >&2; exit 3 ;;
3) ;;
4) exec sleep 1000 ;;
5) printf '\377' ;;
*) echo "<answer xmlns='urn:t'>$SYSTOLE_MESSAGE_ID $SYSTOLE_THREAD</answer>" ;;
esac"#;

#[test]
fn any_command_is_an_agent_in_one_line() {
    let site = Site::new();
    let (ada, worker) = (site.party("ada"), site.party("worker"));
    let mut command =
        command(&site, &worker, "agent", &["--exec", SHELL, "--env", "GREETING=hello", "--timeout", "1s"]);
    let agent = Beside::start({
        command.env("SYSTOLE_TOKEN", "secret");
        command
    });
    let ask = |number| answered(&ada, &ada.send(number).is(202).json());
    let replied = ask(1);
    assert_eq!(text(&replied["state"]), "answered", "{replied}");
    assert!(text(&replied["reply"]["envelope"]).contains(">1 from ada, hello no token<"), "{replied}");
    let failed = ask(2);
    let envelope = text(&failed["reply"]["envelope"]);
    assert_eq!(text(&failed["reply"]["fault"]), "failed");
    assert!(envelope.contains("exited with status 3") && envelope.contains("no more coffee"), "{envelope}");
    assert_eq!(text(&ask(3)["reply"]["fault"]), "silent");
    let slow = ask(4);
    assert!(text(&slow["reply"]["envelope"]).contains("the command took longer than 1s"), "{slow}");
    assert!(text(&ask(5)["reply"]["envelope"]).contains("no UTF-8"));
    let told = ask(6);
    let page = worker.get("/v1/mailboxes/worker/messages?limit=500").json();
    let item = page["items"].as_array().unwrap().last().unwrap();
    let expected = format!(">{} {}<", text(&item["id"]), text(&item["thread"]));
    assert!(text(&told["reply"]["envelope"]).contains(&expected), "{told}");
    agent.signal();
    let (code, said) = agent.end();
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("no more coffee"), "its standard error is in the log: {said}");
}

#[test]
fn an_agent_that_is_told_to_end_ends_what_it_has_begun() {
    let site = Site::new();
    let (ada, worker) = (site.party("ada"), site.party("worker"));
    let exec = "echo begun >&2; while [ ! -e go ]; do sleep 0.01; done; echo \"<answer xmlns='urn:t'>done</answer>\"";
    let mut agent = Beside::start(command(&site, &worker, "agent", &["--exec", exec]));
    let sent = ada.send(1).is(202).json();
    agent.until("begun");
    agent.signal();
    std::fs::write(site.folder.join("go"), "").unwrap();
    assert_eq!(text(&answered(&ada, &sent)["state"]), "answered");
    assert_eq!(agent.end().0, Some(0));
}

#[test]
fn an_agent_that_is_killed_loses_nothing_and_one_that_is_told_twice_ends_at_once() {
    let site = Site::new();
    let (ada, worker) = (site.party("ada"), site.party("worker"));
    let mut agent = Beside::start(command(&site, &worker, "agent", &["--exec", "echo begun >&2; exec sleep 1000"]));
    let sent = ada.send(1).is(202).json();
    agent.until("begun");
    agent.signal();
    // The agent gets signals until it has handled two.
    let code = wait("the agent ends", || {
        agent.signal();
        agent.child.as_mut().unwrap().try_wait().unwrap().map(|status| status.code())
    });
    assert_eq!(code, Some(130));
    // The message is still there, for another agent.
    let item = &worker.get("/v1/mailboxes/worker/messages").json()["items"][0];
    assert_eq!((text(&item["state"]), &item["deliveries"]), ("waiting", &1.into()));
    let reply = crate::kit::reply("by hand");
    worker.post(&format!("/v1/messages/{}/reply", text(&item["id"])), &reply).is(202);
    assert_eq!(text(&answered(&ada, &sent)["state"]), "answered");
}

#[test]
fn an_agent_outlives_the_kill_of_the_pump_and_ends_with_its_token() {
    let mut site = Site::new();
    let (ada, worker) = (site.party("ada"), site.party("worker"));
    stay_here(&site);
    let exec = "cat >/dev/null; echo \"<answer xmlns='urn:t'>yes</answer>\"";
    let agent = Beside::start(command(&site, &worker, "agent", &["--exec", exec, "--workers", "2", "--lease", "3s"]));
    for number in 0..3 {
        // A lease whose answer was lost by the kill has to end first.
        let sent = ada.send(number).is(202).json();
        site.kill();
        site.start();
        assert_eq!(text(&answered(&ada, &sent)["state"]), "answered");
    }
    assert!(site.systole(&["token", "revoke", "worker"]).output().unwrap().status.success());
    // Workers that wait for a message notice the revocation with the next one.
    (0..2).for_each(|number| drop(ada.send(number).is(202)));
    let (code, said) = agent.end();
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("no longer accepts 'worker'"), "{said}");
}

#[test]
fn an_agent_that_can_not_begin_says_why() {
    let site = Site::new();
    let (worker, other) = (site.party("worker"), site.party("other"));
    let run = |command: &mut Command| -> Output { command.env_remove("SYSTOLE_TOKEN").output().unwrap() };
    let refused = |output: &Output, words: &str| {
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(2) && said.contains(words), "{words}: {said}");
    };
    let url = format!("http://{}", site.address);
    refused(
        &run(site.systole(&["agent", "worker", "--url", &url, "--exec", "cat"]).env("A", "b")),
        "there is no token",
    );
    refused(
        &run(&mut command(&site, &site.who("nobody"), "agent", &["--exec", "cat"])),
        "doesn't accept that token for 'worker'",
    );
    refused(&run(&mut command(&site, &other, "agent", &["--exec", "cat"])), "403 forbidden");
    refused(&run(&mut command(&site, &worker, "agent", &["--exec", "cat", "--workers", "0"])), "workers");
    for lease in ["0s", "1500ms", "13h"] {
        refused(&run(&mut command(&site, &worker, "agent", &["--exec", "cat", "--lease", lease])), "from 1s to 12h");
    }
    refused(&run(&mut command(&site, &worker, "agent", &["--exec", "cat", "--timeout", "soon"])), "timeout");
    refused(
        &run(&mut command(&site, &worker, "listen", &["--forward-to", "ftp://x"])),
        "its scheme is not http or https",
    );
    let empty = site.folder.join("empty");
    std::fs::write(&empty, "\n").unwrap();
    let secret = ["--forward-to", "http://127.0.0.1:1", "--secret-file", empty.to_str().unwrap()];
    refused(&run(&mut command(&site, &worker, "listen", &secret)), "the secret in ");
    let mut by_variable = site.systole(&["agent", "worker", "--url", "ftp://x", "--exec", "cat"]);
    let output = by_variable.env("SYSTOLE_TOKEN", &worker.token).output().unwrap();
    refused(&output, "is no URL of a gateway");
}

#[test]
fn an_agent_says_at_once_that_the_gateway_does_not_answer_and_then_ever_more_rarely() {
    let site = Site::idle(&crate::kit::organism("requests: 1000", "7d"));
    // A bound port without a listener: connections are refused.
    let taken = rustix::net::socket(rustix::net::AddressFamily::INET, rustix::net::SocketType::STREAM, None).unwrap();
    rustix::net::bind(&taken, &std::net::SocketAddr::from(([127, 0, 0, 1], 0))).unwrap();
    let address: std::net::SocketAddr = rustix::net::getsockname(&taken).unwrap().try_into().unwrap();
    let url = format!("http://{address}");
    let mut command = site.systole(&["agent", "worker", "--url", &url, "--exec", "cat"]);
    command.env("SYSTOLE_TOKEN", "syt_anything");
    let mut agent = Beside::spawn(command);
    let mut said = Vec::new();
    for attempts in [1, 2, 4] {
        let line = agent.until("");
        assert!(line.contains("the gateway doesn't answer") && line.contains(&url), "{line}");
        assert!(line.contains(&format!("attempts={attempts} ")), "{line}");
        said.push(line);
    }
    agent.signal();
    let (code, rest) = agent.end();
    assert_eq!((code, rest.as_str()), (Some(0), ""), "{said:?}");
}

#[test]
fn an_agent_of_a_listener_that_is_pushed_ends_and_says_why() {
    let pushed = "mode: push, url: \"http://127.0.0.1:9/in\", allow_private: true";
    let site = Site::of(&crate::kit::organism("requests: 1000", "7d").replacen("mode: poll", pushed, 1));
    let worker = site.party("worker");
    let agent = Beside::start(command(&site, &worker, "agent", &["--exec", "cat", "--workers", "3"]));
    let (code, said) = agent.end();
    assert_eq!(code, Some(2), "{said}");
    assert!(
        said.contains("409 pushed") && said.contains("an agent handles the messages of its own listener"),
        "{said}"
    );
}

/// Checks that the worker's mailbox has no message to lease.
async fn nothing(worker: &Who) {
    let worker = worker.clone();
    let leased = tokio::task::spawn_blocking(move || worker.lease("worker", r#"{"wait":2}"#)).await.unwrap();
    assert_eq!(leased, [] as [Value; 0]);
}

#[tokio::test]
async fn a_server_that_says_202_answers_by_itself() {
    let mut site = Site::new();
    let (mut ada, mut worker) = (site.party("ada"), site.party("worker"));
    let queued = r#"{"status":"queued"}"#;
    let json = format!("HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 19\r\n\r\n{queued}");
    let mut server = super::peer::Peer::start([
        super::peer::Act::Say("HTTP/1.1 202 Accepted\r\ncontent-length: 6\r\n\r\nlater!"),
        super::peer::Act::Say(Box::leak(json.into_boxed_str())),
    ])
    .await;
    let listen = command(&site, &worker, "listen", &["--forward-to", &server.url()]);
    let forwarding = tokio::task::spawn_blocking(|| Beside::start(listen)).await.unwrap();
    let mut sent = Vec::new();
    let mut keys = Vec::new();
    for number in 1..=2 {
        sent.push(ada.send(number).is(202).json());
        keys.push(server.next().await.key().to_owned());
    }
    // After a signal, it first reports the outcome of the last message.
    forwarding.signal();
    let (code, said) = tokio::task::spawn_blocking(|| forwarding.end()).await.unwrap();
    assert!(code == Some(0) && !said.contains("WARN"), "{said}");
    nothing(&worker).await;
    site.kill();
    site.start();
    (ada.address, worker.address) = (site.address, site.address);
    // The message is open, and held by the server alone: no answer was sent.
    nothing(&worker).await;
    for sent in &sent {
        let known = ada.get(&format!("/v1/messages/{}", text(&sent["id"]))).is(200).json();
        assert!(known["reply"].is_null(), "{known}");
    }
    // The key of the request is the id of the message.
    worker.post(&format!("/v1/messages/{}/reply", keys[0]), &crate::kit::reply("at last")).is(202);
    worker.post(&format!("/v1/messages/{}/fail", keys[1]), r#"{"message":"no more coffee"}"#).is(202);
    let known = told(&ada, &sent[0]).await;
    assert!(text(&known["reply"]["envelope"]).contains("at last"), "{known}");
    let known = told(&ada, &sent[1]).await;
    assert!(text(&known["reply"]["envelope"]).contains("no more coffee"), "{known}");
    assert!(server.rest().is_empty(), "it was asked once each");
}

/// Calls [`answered`] while the server goes on.
async fn told(who: &Who, sent: &Value) -> Value {
    let (who, sent) = (who.clone(), sent.clone());
    tokio::task::spawn_blocking(move || answered(&who, &sent)).await.unwrap()
}

#[tokio::test]
async fn a_mailbox_is_forwarded_to_a_server_on_this_machine() {
    let site = Site::new();
    let (ada, worker) = (site.party("ada"), site.party("worker"));
    let secret = site.folder.join("secret");
    std::fs::write(&secret, "what both sides know\n").unwrap();
    let signed = PushOptions::signed(Secret::new(b"what both sides know"));
    let address = "127.0.0.1:0".parse().unwrap();
    let mut server = PushDelivery::bind(address, signed.path("/hook")).await.unwrap();
    let url = format!("http://{}/hook", server.address());
    let args = ["--forward-to", &url, "--secret-file", secret.to_str().unwrap()];
    let listen = command(&site, &worker, "listen", &args);
    let forwarding = tokio::task::spawn_blocking(|| Beside::start(listen)).await.unwrap();
    let seen = Seen::default();
    let handler = seen.handler(|number, _| match number {
        1 => Ok(super::setup::answer("one")),
        _ => Err(Failed::new("no more coffee")),
    });
    let sent: Vec<_> = (1..=2).map(|number| ada.send(number).is(202).json()).collect();
    super::setup::take(&mut server, &handler, 2).await;
    let known = told(&ada, &sent[0]).await;
    assert!(text(&known["reply"]["envelope"]).contains("one"), "{known}");
    let known = told(&ada, &sent[1]).await;
    assert_eq!(text(&known["reply"]["fault"]), "failed");
    assert!(text(&known["reply"]["envelope"]).contains("no more coffee"), "{known}");
    assert_eq!(seen.all()[0].from, "ada");
    forwarding.signal();
    assert_eq!(tokio::task::spawn_blocking(|| forwarding.end().0).await.unwrap(), Some(0));
}

#[tokio::test]
async fn a_server_that_is_away_gets_the_message_when_it_is_there_again() {
    let site = Site::new();
    let (ada, worker) = (site.party("ada"), site.party("worker"));
    let address = "127.0.0.1:0".parse().unwrap();
    let mut first = PushDelivery::bind(address, PushOptions::unsigned()).await.unwrap();
    let (address, url) = (first.address(), format!("http://{}/", first.address()));
    first.stop().await;
    let listen = command(&site, &worker, "listen", &["--forward-to", &url]);
    let mut forwarding = tokio::task::spawn_blocking(|| Beside::start(listen)).await.unwrap();
    let sent = ada.send(7).is(202).json();
    let forwarding = tokio::task::spawn_blocking(move || {
        forwarding.until("the server gave no answer");
        forwarding
    });
    let forwarding = forwarding.await.unwrap();
    let mut server = PushDelivery::bind(address, PushOptions::unsigned()).await.unwrap();
    let echo =
        |message: Inbound| async move { Ok::<_, Failed>(super::setup::answer(&number(&message.payload).to_string())) };
    super::setup::take(&mut server, &echo, 1).await;
    assert_eq!(text(&told(&ada, &sent).await["state"]), "answered");
    drop(forwarding);
}
