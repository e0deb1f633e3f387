//! `systole worker test`: workers that keep the protocol pass, and each that breaks it is found out.

// The test waits for real processes.

use std::fs;
use std::process::Command;

use crate::kit::Scratch;
use crate::kit::waiting::{runs, until};

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

const ORGANISM: &str = r#"
organism: { name: worker }
clients: [{ name: cli, calls: [agent] }]
listeners:
  - { name: agent, worker: [python3, agent.py], schemas: [t.xsd], accepts: ["{urn:t}do"], replies: ["{urn:t}say"], calls: [parrot] }
  - { name: parrot, echo: true, accepts: ["{urn:t}ask"] }
"#;

const SCHEMA: &str = r#"<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema" targetNamespace="urn:t">
  <xs:element name="do" type="xs:string"/><xs:element name="say" type="xs:string"/><xs:element name="ask" type="xs:string"/>
</xs:schema>"#;

/// A worker by hand, which keeps the protocol but for its first argument.
const BY_HAND: &str = r#"
import json, os, signal, subprocess, sys, threading
flaw = (sys.argv[1:] or [""])[0]
out = os.fdopen(1 if flaw == "prints" else int(os.environ["SYSTOLE_WORKER"]), "w")
def write(**line):
    out.write(json.dumps(line) + "\n")
    out.flush()
say, held = ["<say xmlns='urn:t'>R&D</say>"], []
if flaw == "dies":
    print("out of luck", file=sys.stderr)
    sys.exit(3)
sys.stdin.reconfigure(encoding="utf-8")
for line in sys.stdin:
    for line in map(json.loads, line.splitlines() if flaw == "splits" else [line]):
        if flaw == "prints":
            write(pong=1)
            sys.exit(0)
        elif flaw == "deaf" and line.get("ping") == 2 and not os.path.exists("deaf"):
            open("deaf", "w").close()
        elif "ping" in line:
            write(pong=line["ping"] + (flaw == "miscounts"))
        elif "cancel" in line and flaw == "faints":
            sys.exit(0)
        elif "cancel" in line and flaw.startswith("floods") and not held:
            held.append(line)
            # In one piece, so that none of it is read before the rest is written.
            late = json.dumps({"id": line["cancel"], "payloads": []}) + "\n"
            os.write(out.fileno(), (late * int(flaw.split()[1])).encode())
        elif "as" in line:
            if flaw == "rambles" and "fault" in line:
                write(id=line["id"], payloads=["<nonsense/>"])
            elif flaw != "hopes" or "reply" in line:
                write(id=line["id"], payloads=say)
        elif "type" in line:
            if flaw == "strict" and set(line) - {"id", "type", "payload", "from", "thread", "history"}:
                sys.exit("a field that nobody knows")
            elif flaw == "silent":
                pass
            elif flaw == "mistakes":
                write(id="00000000-0000-8000-8000-00000000beef", payloads=say)
            elif flaw == "twice":
                write(id=line["id"], payloads=say)
                write(id=line["id"], payloads=say)
            elif flaw == "broken":
                out.write("{'id': 'as Python writes it'}\n")
                out.flush()
            elif flaw == "unlabelled":
                write(id=line["id"], call="<ask xmlns='urn:t'/>")
            elif flaw in ("same", "greedy"):
                labels = ["k", "k"] if flaw == "same" else [str(n) for n in range(257)]
                calls = [json.dumps({"id": line["id"], "call": "<ask xmlns='urn:t'/>", "as": label}) for label in labels]
                os.write(out.fileno(), "".join(call + "\n" for call in calls).encode())
            elif flaw == "sprawls":
                write(id=line["id"], payloads=["x" * 7_000_000])
            elif flaw == "strays":
                write(id=line["id"], call="<tell xmlns='urn:t'/>", **{"as": "k"})
            elif flaw == "addresses":
                write(id=line["id"], call="<ask xmlns='urn:t'/>", to="agent", **{"as": "k"})
            elif flaw in ("forks", "forks apart"):
                subprocess.Popen(["sleep", "20"], pass_fds=[out.fileno()], start_new_session=flaw == "forks apart")
                sys.exit(3)
            elif flaw == "late" and "history" in line:
                write(id=held[0]["id"], payloads=say)
                write(id=line["id"], payloads=say)
            elif flaw == "late":
                held.append(line)
                write(id=line["id"], payloads=say)
            elif flaw == "decays":
                write(id=line["id"], payloads=["<rubbish/>"] if held else say)
                held.append(line)
            elif flaw == "breaches":
                write(id=line["id"], payloads=["<say xmlns='urn:t' not='1'/>"])
            elif flaw == "forgets":
                held.append(line)
                if len(held) != 3:
                    write(id=line["id"], payloads=say)
            elif flaw == "records" and "recorded" in line:
                write(id=line["id"], payloads=say)
            elif flaw == "renames":
                write(id=line["id"], record=os.urandom(8).hex(), value=1, **{"as": "k"})
            elif flaw in ("records", "records again"):
                write(id=line["id"], progress="tossing")
                write(id=line["id"], record="coin", value={"heads": True}, **{"as": "k"})
            elif flaw in ("calls", "hopes", "rambles"):
                write(id=line["id"], call="<ask xmlns='urn:t'>R&amp;D</ask>", **{"as": "k"})
            elif flaw == "declines":
                write(id=line["id"], error="no luck")
            else:
                write(id=line["id"], payloads=say)
if flaw == "stays":
    child = subprocess.Popen(["sleep", "600"])
    def clean(*_):
        sum(range(3_000_000))
        open("cleaned", "w").close()
        os._exit(0)
    signal.signal(signal.SIGTERM, clean)
    open("children", "a").write(f"{os.getpid()}\n{child.pid}\n")
    threading.Event().wait()
"#;

struct Folder(Scratch);

impl Folder {
    fn new(name: &str) -> Self {
        let path = Scratch::new(&format!("worker-test-{name}"));
        for (file, text) in [("organism.yaml", ORGANISM), ("t.xsd", SCHEMA), ("agent.py", BY_HAND)] {
            fs::write(path.join(file), text).unwrap();
        }
        Self(path)
    }

    /// The exit code and the report.
    fn test(&self, args: &[&str]) -> (Option<i32>, String) {
        let run = Command::new(env!("CARGO_BIN_EXE_systole"))
            .args(["worker", "test"])
            .args(args)
            .current_dir(&self.0)
            .output()
            .unwrap();
        let text = String::from_utf8(run.stdout).unwrap() + &String::from_utf8(run.stderr).unwrap();
        (run.status.code(), text)
    }

    /// Tests the worker by hand with a flaw, for which no check waits long.
    fn flaw(&self, flaw: &str, within: &str) -> (Option<i32>, String) {
        self.test(&["--organism", "organism.yaml", "--start", "60s", "--within", within, "python3", "agent.py", flaw])
    }
}

#[track_caller]
fn has(text: &str, parts: &[&str]) {
    parts.iter().for_each(|part| assert!(text.contains(part), "no {part} in {text}"));
}

#[test]
fn workers_that_keep_the_protocol_pass() {
    let folder = Folder::new("kept");
    let example = format!("{ROOT}/examples/worker/organism.yaml");
    let (code, said) = folder.test(&["--organism", &example, "--listener", "statistician"]);
    assert!(code == Some(0) && said.ends_with("10 passed, 0 failed, 1 not run\n"), "{said}");
    let (code, said) = folder.test(&["--organism", &example, "--listener", "calculator"]);
    has(&said, &["not run a call and its reply: no message made it call\n", "8 passed, 0 failed, 3 not run\n"]);
    assert_eq!(code, Some(0));
    for (flaw, passed) in [
        ("", "8 passed, 0 failed, 3 not run"),
        ("calls", "10 passed, 0 failed, 1 not run"),
        ("records", "9 passed, 0 failed, 2 not run"),
    ] {
        let (code, said) = folder.flaw(flaw, "60s");
        assert!(code == Some(0) && said.contains(passed), "{flaw}: {said}");
    }
    let (code, said) = folder.flaw("declines", "60s");
    has(&said, &["passed  a message of each payload: one was answered with an error: no luck\n", "7 passed, 0 failed"]);
    assert_eq!(code, Some(0));
}

#[test]
fn the_worker_in_the_docs_passes() {
    let page = include_str!("../../../../docs/worker.md");
    let script = page.split("```python\n").nth(1).and_then(|rest| rest.split("```").next()).unwrap();
    let folder = Folder::new("docs");
    fs::write(folder.0.join("docs.py"), script).unwrap();
    let example = format!("{ROOT}/examples/worker/organism.yaml");
    let (code, said) = folder.test(&["--organism", &example, "--listener", "calculator", "python3", "docs.py"]);
    assert!(code == Some(0) && said.contains("8 passed, 0 failed, 3 not run"), "{said}");
}

#[test]
fn a_program_without_an_organism_is_tested_with_a_payload() {
    let folder = Folder::new("payload");
    fs::write(folder.0.join("do.xml"), "<do xmlns='urn:t'>R&D</do>").unwrap();
    let (code, said) = folder.test(&["--payload", "do.xml", "--env", "PYTHONUTF8=1", "python3", "agent.py", "calls"]);
    assert_eq!(code, Some(0), "{said}");
    has(
        &said,
        &[
            "not run answers and calls that keep the contract: no --organism says what it may answer\n",
            "not run a call and its reply: no --organism says what its calls are replied to with\n",
            "passed  a call and its fault\n",
        ],
    );
}

/// Tests workers with flaws, all at the same time: most of it is waiting.
fn found_out(folder: &Folder, flaws: &[(&str, &str, &[&str])]) {
    std::thread::scope(|scope| {
        for (flaw, within, parts) in flaws {
            scope.spawn(move || {
                let (code, said) = folder.flaw(flaw, within);
                assert_eq!(code, Some(1), "{flaw}: {said}");
                has(&said, parts);
            });
        }
    });
}

#[test]
fn a_worker_that_does_not_answer_is_found_out() {
    found_out(
        &Folder::new("silent"),
        &[
            (
                "silent",
                "5s",
                &[
                    "passed  heartbeats\n",
                    "failed  a message of each payload\n        sent      {\"id\":\"",
                    "        came      nothing within 5s\n        expected  an answer to each message",
                    "not run several messages at once: no message was answered\n",
                    "passed  the end of its input\n2 passed, 1 failed, 8 not run\n",
                ],
            ),
            ("forgets", "5s", &["failed  several messages at once\n", "passed  a line in two pieces\n"]),
            (
                "deaf",
                "5s",
                &[
                    "failed  heartbeats\n        sent      {\"ping\":1}\n        sent      {\"ping\":2}\n        came      nothing within 5s\n",
                ],
            ),
            ("hopes", "5s", &["passed  a call and its reply\nfailed  a call and its fault\n"]),
            (
                "records again",
                "60s",
                &["failed  a message that recorded, run again\n", "expected  'coin' from \"recorded\" of the message"],
            ),
            (
                "prints",
                "60s",
                &[
                    "        came      a line of the protocol on standard output: {\"pong\": 1}\n        expected  a pong",
                    "        printed   {\"pong\": 1}\n        hint      lines of the protocol go to the descriptor in SYSTOLE_WORKER",
                ],
            ),
        ],
    );
}

#[test]
fn a_worker_that_breaks_the_protocol_is_found_out() {
    found_out(
        &Folder::new("broken"),
        &[
            ("mistakes", "60s", &["failed  a message of each payload\n", "beef\"", "in flight: none has had this id"]),
            (
                "twice",
                "60s",
                &[
                    "failed  a message of each payload\n",
                    "expected  nothing more about a message that has its answer: this one is of the check \"a message of each payload\"",
                ],
            ),
            (
                "late",
                "60s",
                &[
                    "passed  a line in two pieces\nfailed  a long line\n",
                    "expected  nothing more about a message that has its answer: this one is of the check \"a message of each payload\"",
                ],
            ),
            (
                "broken",
                "60s",
                &["failed  a message of each payload\n", "as Python writes it", "a line that keeps the protocol: "],
            ),
            ("unlabelled", "60s", &["failed  a message of each payload\n", "\"call\"", "needs \"as\""]),
            (
                "breaches",
                "60s",
                &[
                    "passed  a message of each payload\nfailed  answers and calls that keep the contract\n",
                    "not=",
                    "of <say>: not allowed",
                ],
            ),
            (
                "miscounts",
                "60s",
                &[
                    "failed  heartbeats\n",
                    "came      {\"pong\": 2}",
                    "expected  a line that keeps the protocol: the last heartbeat has the number 1",
                ],
            ),
            (
                "strict",
                "60s",
                &["failed  a message of each payload\n", "exited with status 1", "a field that nobody knows"],
            ),
            (
                "splits",
                "60s",
                &["failed  a long line\n", "came      the listener exited with status 1", "JSONDecodeError"],
            ),
            (
                "faints",
                "60s",
                &["passed  a long line\n", "failed  a message that is cancelled\n", "exited with status 0"],
            ),
            (
                "dies",
                "60s",
                &["failed  heartbeats\n", "came      the listener exited with status 3", "printed   out of luck"],
            ),
        ],
    );
}

#[test]
fn a_worker_that_the_pump_would_end_or_refuse_is_found_out() {
    found_out(
        &Folder::new("pump"),
        &[
            (
                "same",
                "60s",
                &[
                    "failed  a message of each payload\n",
                    "came      {\"id\"",
                    "fails the message: the listener awaits more than",
                ],
            ),
            (
                "greedy",
                "60s",
                &["failed  a message of each payload\n", "\"as\": \"256\"", "more than 256 answers at once"],
            ),
            (
                "sprawls",
                "60s",
                &[
                    "failed  a message of each payload\n",
                    "fails the message: the listener wrote a line of 70000",
                    "and a line has at most 6295552",
                ],
            ),
            (
                "strays",
                "60s",
                &[
                    "passed  a message of each payload\nfailed  answers and calls that keep the contract\n",
                    "<tell xmlns='urn:t'/>",
                    "expected  a call that the listener may make: no listener takes",
                    "not run a call and its reply: its contract does not allow its calls\npassed  a call and its fault\n",
                ],
            ),
            (
                "addresses",
                "60s",
                &["failed  answers and calls that keep the contract\n", "expected  a call that the listener may make"],
            ),
            (
                "floods 1100",
                "60s",
                &[
                    "failed  a message that is cancelled\n",
                    "expected  a line that keeps the protocol: 1000 lines in a row",
                ],
            ),
            (
                "decays",
                "60s",
                &[
                    "passed  answers and calls that keep the contract\nfailed  several messages at once\n",
                    "<rubbish/>",
                    "expected  payloads that the listener may send",
                ],
            ),
            (
                "rambles",
                "60s",
                &["passed  a call and its reply\nfailed  a call and its fault\n", "<nonsense/>", "may send"],
            ),
            (
                "renames",
                "60s",
                &["failed  a message that recorded, run again\n", "a name that differs from run to run finds none"],
            ),
            ("forks", "60s", &["failed  a message of each payload\n", "came      the listener exited with status 3\n"]),
            ("forks apart", "60s", &["came      the listener exited with status 3\n"]),
        ],
    );
    let (code, said) = Folder::new("flood").flaw("floods 400", "60s");
    assert!(code == Some(0) && said.contains("8 passed, 0 failed, 3 not run"), "{said}");
}

#[test]
fn the_process_group_ends_with_the_test() {
    let folder = Folder::new("group");
    let (code, said) = folder.flaw("stays", "5s");
    assert_eq!(code, Some(1), "{said}");
    has(&said, &["failed  the end of its input\n", "expected  an exit with status 0", "7 passed, 1 failed, 3 not run"]);
    let children = fs::read_to_string(folder.0.join("children")).unwrap();
    assert_eq!(children.lines().count(), 2);
    until("the end of the group", || children.lines().all(|pid| !runs(pid)).then_some(()));
    assert!(folder.0.join("cleaned").exists(), "the program had no time to clean up");
}

#[test]
fn what_can_not_be_tested_is_told() {
    let folder = Folder::new("untold");
    fs::write(folder.0.join("say.xml"), "<say xmlns='urn:t'/>").unwrap();
    for (args, why) in [
        (&["python3", "agent.py"][..], "<--organism <FILE>|--payload <FILE>>"),
        (&["--payload", "say.xml", "--env", "=x", "cat"], "write NAME or NAME=VALUE"),
        (&["--payload", "say.xml", "--env", "A B", "cat"], "write NAME or NAME=VALUE"),
        (&["--organism", "organism.yaml", "--listener", "parrot"], "the listener has no `worker:`"),
        (&["--organism", "organism.yaml", "--listener", "nobody"], "there is no listener 'nobody'"),
        (&["--organism", "organism.yaml", "--payload", "say.xml"], "agent doesn't accept {urn:t}say"),
        (&["--payload", "none.xml", "cat"], "can't read none.xml"),
        (&["--payload", "say.xml", "./nowhere"], "./nowhere can't be started"),
    ] {
        let (code, said) = folder.test(args);
        assert!(code == Some(2) && said.contains(why), "{args:?}: {said}");
    }
}
