//! A process that sends, and is killed at random places: `kill -9`, nothing softer.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::process::Stdio;

use systole::outbound::Outbound;
use tokio::io::{AsyncBufReadExt, BufReader, Lines};
use tokio::process::{Child, ChildStdout, Command};

use super::peer::{Act, OK, Peer};
use super::setup::{Folder, delivery, id, options};

const KILLS: u64 = 30;
const DELIVERIES: u128 = 40;
const OUTBOX: &str = "SYSTOLE_OUTBOX";
const URL: &str = "SYSTOLE_URL";

/// The process itself, which the other test starts. It prints the deliveries that were accepted, and their ends.
#[tokio::test]
#[ignore = "it is a program for the other test"]
async fn process() {
    let outbox = PathBuf::from(std::env::var_os(OUTBOX).expect("where the outbox is"));
    let url = std::env::var(URL).expect("where to send to");
    let outbound = Outbound::start(&outbox, options()).await.unwrap();
    let mut handles = Vec::new();
    for number in 1..=DELIVERIES {
        handles.push((number, outbound.send(delivery(number, &url)).await.unwrap()));
        println!("taken {number}");
    }
    for (number, mut handle) in handles {
        let outcome = handle.outcome().await.unwrap();
        println!("over {number} {}", outcome.map_or_else(|error| error.cause.to_string(), |_| "delivered".to_owned()));
    }
    println!("end");
}

struct Process {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Process {
    fn start(folder: &Folder, url: &str) -> Self {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["outbound::kill::process", "--exact", "--ignored", "--nocapture", "--test-threads=1"])
            .env(OUTBOX, folder.outbox())
            .env(URL, url)
            // A proxy of the environment would see the requests, and reach refused addresses.
            .env("http_proxy", "http://127.0.0.1:1")
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        Self { child, lines }
    }

    /// The next line of the process that is meant for the test.
    async fn say(&mut self) -> Vec<String> {
        loop {
            let line = self.lines.next_line().await.unwrap().expect("it goes on until it is killed");
            let at = ["taken ", "over ", "end"].iter().filter_map(|word| line.find(word)).min();
            if let Some(at) = at {
                return line[at..].split(' ').map(ToOwned::to_owned).collect();
            }
        }
    }
}

#[tokio::test]
async fn what_was_taken_is_sent_with_the_same_key_and_no_more_attempts_than_it_has() {
    let acts = [OK, Act::CloseAfterRequest, Act::Close, OK, Act::CloseAfterRequest, Act::CloseAfterRequest];
    let script: Vec<_> = acts.iter().copied().cycle().take(150).chain([OK]).collect();
    let mut peer = Peer::start(script).await;
    let folder = Folder::new();
    let (mut taken, mut over) = (BTreeSet::new(), BTreeMap::new());
    for kill in 0..=KILLS {
        let mut process = Process::start(&folder, &peer.url());
        // The last process may go to its end.
        let said = if kill < KILLS { 1 + kill * 7 % 29 } else { u64::MAX };
        for _ in 0..said {
            match &process.say().await[..] {
                [what, number] if what == "taken" => {
                    taken.insert(number.parse::<u128>().unwrap());
                }
                [what, number, outcome] if what == "over" => {
                    let before = over.insert(number.parse::<u128>().unwrap(), outcome.clone());
                    assert!(before.is_none_or(|before| before == *outcome), "{number} ended twice");
                }
                [what] if what == "end" => break,
                line => panic!("it says {line:?}"),
            }
        }
        process.child.kill().await.unwrap();
    }
    assert_eq!(taken, (1..=DELIVERIES).collect());
    assert_eq!(over.keys().copied().collect::<BTreeSet<_>>(), taken);
    let mut requests: BTreeMap<u128, u32> = BTreeMap::new();
    let mut last = 0;
    for request in peer.rest() {
        let number = (1..=DELIVERIES).find(|number| request.key() == id(*number).to_string()).expect("one of ours");
        assert!(number >= last, "{number} came after {last}");
        last = number;
        assert_eq!(request.body, format!("<a n='{number}'/>").into_bytes());
        *requests.entry(number).or_default() += 1;
    }
    for (number, outcome) in over {
        let times = requests.get(&number).copied().unwrap_or_default();
        assert!(times <= 3, "{number} came {times} times");
        match outcome.as_str() {
            "delivered" => assert!(times > 0, "{number} never came"),
            outcome => assert_eq!(outcome, "attempts_exhausted"),
        }
    }
}
