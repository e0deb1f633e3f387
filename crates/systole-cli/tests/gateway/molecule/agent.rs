//! Agents as the SDK makes them, of Python's standard library alone: those of `examples/molecule`.

use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use super::office::{SCOUT, UUID, a2a, office, reply, rows, said, texts};
use super::relay::Relay;
use crate::kit::{Site, text};
use crate::waiting::Lines;

/// An agent that runs until it is dropped.
struct Agent {
    process: Child,
    said: Lines,
}

impl Agent {
    fn start(site: &Site, relay: &Relay, workspace: &str) -> Self {
        let url = format!("http://{}", relay.address);
        let mut agent = Self::run(site, "agent.py", &[&url, workspace, "scout.token", "scout.cursor", "0.01"]);
        agent.until("registered unverified");
        agent
    }

    fn run(site: &Site, script: &str, args: &[&str]) -> Self {
        let mut process = Command::new("python3")
            .arg(example(script))
            .args(args)
            .current_dir(&site.folder)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let said = Lines::of(process.stdout.take().unwrap());
        Self { process, said }
    }

    /// Waits for a line with these words.
    #[track_caller]
    fn until(&mut self, words: &str) {
        self.said.until(words, |line| line.trim_end() == words);
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }
}

fn example(file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/molecule").join(file)
}

fn set_out() -> (Site, Relay) {
    let site = office();
    fs::write(site.folder.join("scout.token"), site.token(&["scout"])).unwrap();
    let relay = Relay::to(site.address);
    (site, relay)
}

#[test]
fn an_agent_answers_people_and_peers() {
    let (site, relay) = set_out();
    let mut agent = Agent::start(&site, &relay, SCOUT);
    let (ada, other) = (site.party("ada"), site.party(UUID));
    let sent = ada.post("/v1/messages", &said("scout", "hello")).is(202);
    assert!(reply(&ada, &sent).contains("<text>HELLO!</text>"));
    agent.until("answered HELLO!");
    a2a(&other, SCOUT, "you there?", "m1").is(200);
    agent.until("answered YOU THERE?!");
    assert_eq!(texts(&rows(&other, UUID, "", 1)), ["YOU THERE?!"]);
    let boss = site.who(&site.token(&["boss", "--kind", "admin"]));
    boss.post("/v1/listeners/scout/pause", "").is(200);
    agent.until("paused");
}

#[test]
fn an_agent_survives_what_goes_wrong() {
    let (mut site, relay) = set_out();
    let mut agent = Agent::start(&site, &relay, "scout");
    let mut ada = site.party("ada");
    let mut ask = |site: &Site, words: &str| {
        ada.address = site.address;
        let sent = ada.post("/v1/messages", &said("scout", words)).is(202);
        assert!(reply(&ada, &sent).contains(&format!("<text>{}!</text>", words.to_uppercase())));
    };
    ask(&site, "first");
    // One after the other, as an answer stands before those that come after it: the agent calls meanwhile.
    for (path, status) in [("/registry/heartbeat", 500), ("/activity", 429), ("/activity", 503)] {
        relay.answer(path, status);
        agent.until(&format!("again {status}"));
    }
    relay.answer("/notify", 500);
    ask(&site, "second");
    agent.until("again 500");
    agent.until("answered SECOND!");
    site.kill();
    agent.until("away");
    site.start();
    relay.moved(site.address);
    ask(&site, "third");
    agent.until("answered THIRD!");
}

#[test]
fn an_agent_that_lost_its_cursor_answers_nobody_twice() {
    let (site, relay) = set_out();
    let ada = site.party("ada");
    let first = ada.post("/v1/messages", &said("scout", "first")).is(202);
    let agent = Agent::start(&site, &relay, "scout");
    assert!(reply(&ada, &first).contains("<text>FIRST!</text>"));
    drop(agent);
    let second = ada.post("/v1/messages", &said("scout", "second")).is(202);
    fs::write(site.folder.join("scout.cursor"), "00000000-0000-4000-8000-000000000000").unwrap();
    let mut agent = Agent::start(&site, &relay, "scout");
    agent.until("lost");
    agent.until("answered FIRST!");
    agent.until("answered SECOND!");
    assert!(reply(&ada, &second).contains("<text>SECOND!</text>"));
    let path = format!("/v1/messages/{}", text(&first.json()["id"]));
    assert_eq!(ada.get(&path).json()["replies"].as_array().unwrap().len(), 1);
}

#[test]
fn the_pushed_agent_of_the_example_is_pushed_to_and_outlives_a_kill() {
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port().to_string();
    let organism = fs::read_to_string(example("organism.yaml")).unwrap();
    let mut site = Site::idle(&organism.replace("127.0.0.1:8420", "127.0.0.1:0").replace("8421", &port));
    site.start();
    fs::write(site.folder.join("runner.token"), site.token(&["runner"])).unwrap();
    let mut ada = site.party("ada");
    let first = ada.post("/v1/messages", &said("runner", "hello")).is(202);
    let relay = Relay::to(site.address);
    let url = format!("http://{}", relay.address);
    let mut agent = Agent::run(&site, "pushed.py", &[&url, "runner", "runner.token", &port]);
    agent.until("registered push");
    assert!(reply(&ada, &first).contains("<text>HELLO!</text>"));
    site.kill();
    agent.until("away");
    site.start();
    relay.moved(site.address);
    ada.address = site.address;
    // It is at the URL that it registered.
    let second = ada.post("/v1/messages", &said("runner", "once more")).is(202);
    assert!(reply(&ada, &second).contains("<text>ONCE MORE!</text>"));
    agent.until("answered ONCE MORE!");
    let boss = site.who(&site.token(&["boss", "--kind", "admin"]));
    boss.post("/v1/listeners/runner/pause", "").is(200);
    agent.until("paused");
}
