//! Drafts of real processes: a scripted model, workers in Python and in JavaScript, one of which is killed while it writes.

use std::fs;

use rustix::process::{Pid, Signal, kill_process};

use crate::kit::running::Running;
use crate::kit::waiting::until;
use crate::kit::worker::Folder;
use crate::kit::{Scratch, has};

const STORIES: &str = "organism: { name: stories }
llm: { backends: [{ name: script, provider: scripted, script: script.yaml }] }
clients: [{ name: cli, calls: ['{urn:s}wish'] }]
listeners:
- { name: teller, model: { instructions: Tell stories. }, schemas: [s.xsd], accepts: ['{urn:s}wish'], replies: ['{urn:s}story'] }
";

const SCRIPT: &str = "- { when: <wish, pace: 300ms, answer: \"I know none,\\nplanner: sorry.\" }
- { pace: 300ms, answer: \"<story>Once upon a time</story>\" }
";

const WISH: &str = "<wish xmlns='urn:s'>a king</wish>";

fn stories(keys: &str) -> Scratch {
    let folder = Scratch::new("stories");
    let schema = "<xs:schema xmlns:xs='http://www.w3.org/2001/XMLSchema' targetNamespace='urn:s'>\
                  <xs:element name='wish' type='xs:string'/><xs:element name='story' type='xs:string'/></xs:schema>";
    for (file, text) in [("s.xsd", schema), ("script.yaml", SCRIPT), ("organism.yaml", &format!("{STORIES}{keys}"))] {
        fs::write(folder.join(file), text).unwrap();
    }
    folder
}

fn shows_both_drafts(folder: &Scratch) {
    let asked = folder.command(&["ask", "organism.yaml", WISH, "--stream"]);
    let [out, err] = [asked.stdout, asked.stderr].map(|bytes| String::from_utf8(bytes).unwrap());
    assert_eq!(out, "<story xmlns=\"urn:s\">Once upon a time</story>\n", "{err}");
    has(
        &err,
        &[
            "teller: writes:\n│ I",
            "\nteller: what it wrote was refused\n",
            "teller: writes (attempt 2):\n│ <story>Once",
        ],
    );
    let is_told = |line: &str| line.starts_with("│ ") || line.starts_with("teller: w");
    assert!(err.lines().all(is_told), "{err}");
    let asked = folder.command(&["ask", "organism.yaml", WISH]);
    assert_eq!((asked.status.code(), asked.stderr), (Some(0), Vec::new()), "nothing is shown without the option");
}

#[test]
fn ask_shows_what_a_model_writes_and_what_becomes_of_it() {
    shows_both_drafts(&stories(""));
}

#[test]
fn ask_shows_it_of_an_organism_that_runs() {
    let folder = stories("durability: process\n");
    let _running = Running::organism(&folder, &["--json"]);
    until("the socket of operators", || folder.join("systole.journal.socket").exists().then_some(()));
    shows_both_drafts(&folder);
}

/// A function that writes a draft, and stays with it in its first run.
const PLAIN: &str = r#"
import os, time
from systole_sdk import draft, listener, run

@listener("{urn:t}do")
def handle(xml: str) -> str:
    again = os.path.exists("pid")
    draft("so far\n")
    draft("a\udcff\x1b[2J" + "é" * 100_000 + "\n" if again else "", anew=False)
    with open("written", "w") as file:
        file.write(str(os.getpid()))
    os.rename("written", "pid")
    while not again:
        time.sleep(1)
    draft("anew\n", anew=True)
    while not os.path.exists("seen"):
        time.sleep(0.01)
    return "<say xmlns='urn:t'>done</say>"

run()
"#;

#[test]
fn a_worker_that_is_killed_while_it_writes_begins_another_draft() {
    let folder = Folder::new("drafts", PLAIN, "heartbeat: 60s");
    let (child, lines) = folder.streamed();
    assert_eq!(lines.next().unwrap(), "agent: writes:\n");
    assert_eq!(lines.next().unwrap(), "│ so far\n");
    let pid = until("the process of the worker", || folder.read("pid").parse().ok());
    kill_process(Pid::from_raw(pid).unwrap(), Signal::KILL).unwrap();
    lines.until("the end of the draft", |line| line == "agent: what it wrote broke off\n");
    let mut all = String::new();
    lines.until("the third draft", |line| {
        all += line;
        line == "│ anew\n"
    });
    assert!(all.ends_with("agent: writes (attempt 3):\n│ anew\n") && !all.contains('\u{1b}'), "{all:?}");
    fs::write(folder.path().join("seen"), "").unwrap();
    assert_eq!(lines.rest(), "");
    let output = child.wait_with_output().unwrap();
    assert_eq!(String::from_utf8(output.stdout).unwrap(), "<say xmlns=\"urn:t\">done</say>\n");
}

/// The same as an async function, which writes after its answer, too.
const ASYNC: &str = r#"
import asyncio, os
from systole_sdk import call, draft, listener, run

@listener("{urn:t}do")
async def handle(xml: str) -> str:
    draft("one ")
    said = await call("<ask xmlns='urn:t'>a</ask>")
    draft("two\n")
    while not os.path.exists("seen"):
        await asyncio.sleep(0.01)
    async def late():
        await asyncio.sleep(0)
        draft("too late")
    asyncio.get_running_loop().create_task(late())
    return said

run()
"#;

#[test]
fn an_async_function_writes_between_its_calls_and_nothing_after_its_answer() {
    let folder = Folder::new("drafts-async", ASYNC, "heartbeat: 60s");
    let (child, lines) = folder.streamed();
    assert_eq!([lines.next().unwrap(), lines.next().unwrap()].concat(), "agent: writes:\n│ one two\n");
    fs::write(folder.path().join("seen"), "").unwrap();
    assert_eq!(lines.rest(), "");
    assert!(child.wait_with_output().unwrap().status.success());
}
