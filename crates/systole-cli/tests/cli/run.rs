//! `systole run` as a process: its input, its output, and its end.

use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};

use rustix::process::{Pid, Signal, kill_process};

use crate::kit::waiting::{Lines, runs, until};
use crate::kit::{Scratch, fresh};

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

fn start(args: &[&str]) -> Child {
    Command::new(env!("CARGO_BIN_EXE_systole"))
        .arg("run")
        .args(args)
        .current_dir(Path::new(ROOT).join("tests/golden/run"))
        .env_remove("SYSTOLE_LOG")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

/// Output of a run, and its end.
struct Said {
    code: i32,
    out: String,
    err: String,
}

fn run(args: &[&str], input: &str) -> Said {
    let mut child = start(args);
    let mut stdin = child.stdin.take().unwrap();
    let input = input.to_owned();
    let typist = std::thread::spawn(move || drop(stdin.write_all(input.as_bytes())));
    let output = child.wait_with_output().unwrap();
    typist.join().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    Said { code: output.status.code().unwrap(), out: text(output.stdout), err: text(output.stderr) }
}

fn envelope(payload: &str) -> String {
    format!(
        "<message xmlns='https://xml-pipeline.org/ns/envelope/v1'><meta><from>cli</from></meta>{payload}</message>\n"
    )
}

fn stop(child: &Child, signal: Signal) {
    kill_process(Pid::from_raw(child.id().cast_signed()).unwrap(), signal).unwrap();
}

fn wait(mut child: Child) -> (ExitStatus, String) {
    drop(child.stdin.take());
    let mut out = String::new();
    child.stdout.take().unwrap().read_to_string(&mut out).unwrap();
    (child.wait().unwrap(), out)
}

/// Starts an organism whose command hangs, and waits until it does; the process id of the command.
fn hang(name: &str, extra: &[&str]) -> (Child, String) {
    let file: PathBuf = fresh(name);
    let mut child = start(&[&["things.yaml"], extra].concat());
    let message = envelope(&format!("<hang xmlns='urn:t'>{}</hang>", file.display()));
    child.stdin.as_mut().unwrap().write_all(message.as_bytes()).unwrap();
    let pid = until("the process id of the command", || {
        std::fs::read_to_string(&file).ok().filter(|pid| pid.ends_with('\n'))
    });
    std::fs::remove_file(&file).unwrap();
    (child, pid.trim().to_owned())
}

#[test]
fn the_swarm_answers_through_dirty_xml() {
    let file = |name: &str| format!("{ROOT}/examples/swarm/{name}");
    let said = run(&[&file("organism.yaml"), &file("question.xml"), "--until-idle", "--json"], "");
    assert_eq!((said.code, said.out.lines().count()), (0, 1), "{}{}", said.out, said.err);
    let answer = "<headline>R&amp;D at AT&amp;T &amp; the rest: profit &lt; spending</headline><total>146</total>";
    assert!(said.out.contains(answer), "{}", said.out);
    let events: Vec<serde_json::Value> = said.err.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let count = |name: &str| events.iter().filter(|event| event["event"] == name).count();
    assert_eq!((count("injected"), count("left"), count("fault"), count("dead-letter")), (1, 1, 0, 0));
    assert_eq!((count("thread-opened"), count("thread-closed")), (6, 6), "{}", said.err);
    assert!(count("repaired") >= 5, "{}", said.err);
    assert!(events.iter().any(|event| event["path"] == "root/researcher/calculator#3"), "{}", said.err);
    let logged = |event: &&serde_json::Value| event["event"] == "log" && event["listener"] == "researcher";
    assert_eq!(events.iter().find(logged).unwrap()["message"], "a question from cli");
}

#[test]
fn standard_input_takes_several_envelopes_dirty_ones_too() {
    let say = |text: &str| envelope(&format!("<say xmlns='urn:t'>{text}</say>"));
    let input = format!("Here you are:\n```xml\n{}{}```\n", say("one"), say("AT&T"));
    let said = run(&["things.yaml", "--until-idle"], &input);
    assert_eq!(said.code, 0, "{}", said.err);
    let mut lines: Vec<&str> =
        said.out.lines().filter_map(|line| line.split_once("<say xmlns=\"urn:t\">")).map(|(_, rest)| rest).collect();
    lines.sort_unstable();
    assert_eq!(lines, ["AT&amp;T</say></message>", "one</say></message>"], "{}", said.out);
}

#[test]
fn an_entrance_completes_what_the_pump_stamps() {
    let e = "xmlns='https://xml-pipeline.org/ns/envelope/v1'";
    let whole = "<say xmlns='urn:t'>x</say>";
    let ask = "<list-capabilities xmlns='https://xml-pipeline.org/ns/meta/v1'/>";
    let forms = [
        whole.to_owned(),
        "```xml\n<say>x</say>\n```".to_owned(),
        format!("<message {e}>{whole}</message>"),
        format!("<message {e}><meta/>{whole}</message>"),
        format!("<message {e}><meta><to>parrot</to></meta><say xmlns=''>x</say></message>"),
    ];
    let said = run(&["things.yaml", "--until-idle"], &(forms.join("\n") + ask));
    assert_eq!(said.code, 0, "{}", said.err);
    assert_eq!(said.out.matches("<say xmlns=\"urn:t\">x</say>").count(), forms.len(), "{}", said.out);
    assert_eq!(said.out.matches("<capabilities ").count(), 1, "{}", said.out);
}

#[test]
fn what_is_no_message_is_told_once_with_an_example_and_what_may_be_meant() {
    let said = |input: &str| {
        let said = run(&["things.yaml", "--until-idle"], input);
        assert_eq!(said.code, 1, "{}", said.err);
        (said.out, said.err)
    };
    let (out, err) = said("<sya xmlns='urn:t'/>");
    assert!(out.contains("<rule column=\"1\" line=\"1\">the root is {urn:t}sya: write an envelope"), "{out}");
    assert!(out.contains("did you mean {urn:t}say?</rule>"), "{out}");
    let example = "<example><message xmlns=\"https://xml-pipeline.org/ns/envelope/v1\"><meta><from>cli</from></meta><";
    assert!(out.contains(example), "{out}");
    assert_eq!(err.matches(" at 1:1)").count(), 1, "the place is told once: {err}");
    let (out, err) = said("<message xmlns='https://xml-pipeline.org/ns/envelope/v1'/>");
    assert!(out.contains("<rule column=\"1\" line=\"1\">the message has no payload"), "{out}");
    assert!(out.contains(example) && err.matches(" at 1:1)").count() == 1, "{out}{err}");
    let (out, err) = said("<message><<");
    assert!(out.contains(">malformed<") && !out.contains("\">1:"), "{out}{err}");
    for slip in ["<say>x</say>", "<sya xmlns='urn:t'>x</sya>"] {
        let (out, err) = said(&envelope(slip));
        assert!(out.contains("<rule>did you mean {urn:t}say?</rule>"), "{slip}: {out}");
        assert!(err.contains("(did you mean {urn:t}say?)"), "{slip}: {err}");
    }
    // A payload that the client may not call is no nearer than one that doesn't exist.
    for payload in ["<ask xmlns='urn:t'/>", "<gone xmlns='urn:t'/>"] {
        assert!(!said(&envelope(payload)).0.contains("did you mean"), "{payload}");
    }
}

#[test]
fn a_fault_comes_back_as_an_envelope_and_as_exit_code_1() {
    let fault = |payload: &str, config: &str| {
        let said = run(&[config, "--until-idle"], &envelope(payload));
        assert_eq!(said.code, 1, "{payload}: {}", said.err);
        said
    };
    let failed = fault("<fail xmlns='urn:t'/>", "things.yaml");
    assert!(failed.out.contains("<agent-error") && failed.out.contains("status 3"), "{}", failed.out);
    assert!(failed.err.contains(r"| it \u{1b}[2J broke") && failed.err.contains(" failer "), "{}", failed.err);
    assert!(fault("<flood xmlns='urn:t'/>", "things.yaml").out.contains("more than 4096 bytes"));
    assert!(fault("<hang xmlns='urn:t'>/dev/null</hang>", "hasty.yaml").out.contains(">timeout<"));
    let (unknown, forbidden) = ("<gone xmlns='urn:t'/>", "<ask xmlns='urn:t'/>");
    for payload in [unknown, forbidden] {
        assert!(fault(payload, "things.yaml").out.contains(">route<"));
    }
    let large = format!("<say xmlns='urn:t'>{}</say>", "x".repeat(5000));
    let refused = fault(&large, "things.yaml");
    assert!(refused.err.contains("standard input:1:1: a message of "), "{}", refused.err);
}

#[test]
fn a_program_can_part_envelopes_whose_text_has_line_feeds() {
    let input = "<say xmlns='urn:t'>a\nb</say><say xmlns='urn:t'>c\n</say>";
    let said = run(&["things.yaml", "--until-idle", "--print0"], input);
    let envelopes: Vec<&str> = said.out.split_terminator('\0').collect();
    assert_eq!((said.code, envelopes.len()), (0, 2), "{}", said.err);
    assert!(envelopes.iter().all(|one| one.starts_with("<message ") && one.ends_with("</message>")), "{}", said.out);
    assert!(run(&["things.yaml", "--shards", "abc"], "").err.contains("write a whole number from 1 to 1024"));
}

#[test]
fn an_organism_is_not_idle_while_a_command_has_still_to_speak() {
    let said = run(&["alarm.yaml", "--until-idle"], "");
    assert_eq!(said.code, 0, "{}", said.err);
    assert!(said.err.contains("root/alarm/parrot delivered {urn:t}say from alarm"), "{}", said.err);
}

#[test]
fn a_log_level_that_is_none_is_told() {
    let mut child = Command::new(env!("CARGO_BIN_EXE_systole"));
    child.args(["run", "things.yaml", "--until-idle"]).current_dir(Path::new(ROOT).join("tests/golden/run"));
    let said = child.env("SYSTOLE_LOG", "loud").stdin(Stdio::null()).output().unwrap();
    let err = String::from_utf8(said.stderr).unwrap();
    assert!(said.status.success() && err.contains("SYSTOLE_LOG=loud: "), "{err}");
    assert!(err.contains("write error, warn, info, debug or trace"), "{err}");
}

#[test]
fn a_command_that_accepts_faults_gets_them_as_messages() {
    let said = run(&["catcher.yaml", "ask.xml", "--until-idle"], "");
    assert_eq!(said.code, 0, "{}{}", said.out, said.err);
    assert!(said.out.contains("<note>failer: the listener exited with status 3</note>"), "{}", said.out);
}

#[test]
fn what_is_odd_is_said_in_the_style_of_the_log() {
    let said = run(&["../check/warning.yaml", "--until-idle", "--json"], "");
    assert_eq!(said.code, 0, "{}", said.err);
    let lines: Vec<serde_json::Value> = said.err.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let told = lines.iter().filter(|line| line["message"].as_str().unwrap_or_default().contains("not in its returns"));
    assert_eq!(told.count(), 1, "{}", said.err);
}

#[test]
fn an_interrupt_lets_the_work_end_and_a_second_one_does_not() {
    let (mut child, pid) = hang("twice", &[]);
    let err = Lines::of(child.stderr.take().unwrap());
    stop(&child, Signal::INT);
    err.until("the end to begin", |line| line.contains("Z stopping: "));
    assert!(runs(&pid), "what was begun goes on");
    stop(&child, Signal::INT);
    let (status, _) = wait(child);
    assert_eq!(status.code(), Some(130));
    until("the end of the command", || (!runs(&pid)).then_some(()));
}

#[test]
fn a_signal_ends_an_organism_that_has_nothing_to_do() {
    let mut child = start(&["quiet.yaml"]);
    let err = Lines::of(child.stderr.take().unwrap());
    err.until("the words of the command", |line| line.contains(" waker ") && line.ends_with("| awake\n"));
    stop(&child, Signal::TERM);
    let (status, out) = wait(child);
    assert_eq!((status.code(), out.as_str()), (Some(0), ""));
}

/// A folder with an organism that answers as a parrot does, and a file of messages with the numbers up to `last`.
fn crowded(name: &str, keys: &str, last: usize) -> Scratch {
    let folder = Scratch::new(name);
    let organism = format!(
        "organism: {{ name: crowd }}\n{keys}clients:\n  - {{ name: cli, calls: [parrot] }}\n\
         listeners:\n  - {{ name: parrot, echo: true, schemas: [thing.xsd], accepts: [\"{{urn:t}}say\"] }}\n"
    );
    std::fs::write(folder.join("organism.yaml"), organism).unwrap();
    std::fs::copy(Path::new(ROOT).join("tests/golden/run/thing.xsd"), folder.join("thing.xsd")).unwrap();
    let say = |n| format!("<say xmlns=\"urn:t\">{n} {}</say>\n", "x".repeat(500));
    std::fs::write(folder.join("messages.xml"), (1..=last).map(say).collect::<String>()).unwrap();
    folder
}

/// The numbers of the answers in an output, and its faults.
fn numbers(out: &[u8]) -> (Vec<usize>, usize) {
    let out = String::from_utf8_lossy(out);
    let said = out.split("<say xmlns=\"urn:t\">").skip(1);
    let mut numbers: Vec<_> = said.map(|rest| rest.split(' ').next().unwrap().parse().unwrap()).collect();
    numbers.sort_unstable();
    (numbers, out.matches("<system-error").count())
}

#[test]
fn a_file_is_back_pressure_for_the_exit_and_never_loses_an_answer() {
    const LAST: usize = 300;
    let all: Vec<_> = (1..=LAST).collect();
    for limits in ["egress: 1", "egress: 7", "egress_bytes: 1", "egress_bytes: 4KiB", "egress: 7, queue: 3"] {
        for durability in ["off", "process"] {
            let keys = format!("durability: {durability}\nlimits: {{ {limits} }}\n");
            let folder = crowded("crowded", &keys, LAST);
            for file in ["messages.xml", "-"] {
                let mut command = Command::new(env!("CARGO_BIN_EXE_systole"));
                command.args(["run", "organism.yaml", file, "--until-idle", "-q"]).current_dir(&folder);
                command.stdin(std::fs::File::open(folder.join("messages.xml")).unwrap());
                let output = command.output().unwrap();
                let case = format!("{limits}, durability {durability}, {file}");
                assert_eq!(output.status.code(), Some(0), "{case}: {}", String::from_utf8_lossy(&output.stderr));
                assert_eq!(numbers(&output.stdout), (all.clone(), 0), "{case}");
            }
        }
    }
}

/// Runs the organism of a folder until it is idle; its exit code, the numbers of its answers, and standard error.
fn run_here(folder: &Path, args: &[&str]) -> (Option<i32>, Vec<usize>, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_systole"));
    command.args(["run", "organism.yaml", "--until-idle", "-q"]).args(args).current_dir(folder);
    let output = command.stdin(Stdio::null()).output().unwrap();
    let (said, faults) = numbers(&output.stdout);
    assert_eq!(faults, 0);
    (output.status.code(), said, String::from_utf8(output.stderr).unwrap())
}

#[test]
fn a_durable_organism_is_sent_each_message_of_a_file_once() {
    const LAST: usize = 9;
    let folder = crowded("once", "durability: process\n", LAST);
    let all: Vec<_> = (1..=LAST).collect();
    assert_eq!(run_here(&folder, &["messages.xml"]), (Some(0), all.clone(), String::new()));
    let (code, said, told) = run_here(&folder, &["messages.xml"]);
    assert_eq!((code, said), (Some(0), vec![]));
    crate::kit::has(&told, &["messages.xml: messages that were sent before", "are not sent again: 9", "--again"]);
    // It grows.
    let path = folder.join("messages.xml");
    let more = std::fs::read_to_string(&path).unwrap() + "<say xmlns=\"urn:t\">77 x</say>";
    std::fs::write(&path, &more).unwrap();
    assert_eq!(run_here(&folder, &["messages.xml"]).1, [77]);
    assert_eq!(run_here(&folder, &["messages.xml", "--again"]).1.len(), LAST + 1);
    // Standard input is no file that could be named again, nor is another descriptor.
    for input in ["-", "/dev/stdin"] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_systole"));
        command.args(["run", "organism.yaml", input, "--until-idle", "-q"]).current_dir(&folder);
        let output = command.stdin(std::fs::File::open(&path).unwrap()).output().unwrap();
        assert_eq!(numbers(&output.stdout).0.len(), LAST + 1, "{input}");
    }
    // The id of an envelope tells a message wherever it stands.
    let meta = "xmlns=\"urn:systole:meta:v1\"";
    let message = format!(
        "<message xmlns=\"https://xml-pipeline.org/ns/envelope/v1\"><meta><id {meta}>a</id></meta>\
         <say xmlns=\"urn:t\">5 x</say></message>"
    );
    std::fs::write(folder.join("one.xml"), &message).unwrap();
    std::fs::write(folder.join("two.xml"), message.replace("5 x", "6 x") + &message).unwrap();
    assert_eq!(run_here(&folder, &["one.xml"]).1, [5]);
    assert_eq!(run_here(&folder, &["two.xml"]).1, [6], "the other is in one.xml");
}

#[test]
fn a_file_is_sent_once_by_runs_that_begin_at_once() {
    const LAST: usize = 3;
    let folder = crowded("at-once", "durability: process\n", LAST);
    assert_eq!(run_here(&folder, &["messages.xml"]).1, [1, 2, 3]);
    for round in 0..6 {
        let path = folder.join(format!("{round}.xml"));
        std::fs::write(path, format!("<say xmlns=\"urn:t\">{round} x</say>")).unwrap();
        let run = || {
            let mut command = Command::new(env!("CARGO_BIN_EXE_systole"));
            let file = format!("{round}.xml");
            command.args(["run", "organism.yaml", &file, "--until-idle", "-q"]).current_dir(&folder);
            command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
        };
        let outputs = [run(), run(), run()].map(|child| child.wait_with_output().unwrap());
        let answers: usize = outputs.iter().map(|output| numbers(&output.stdout).0.len()).sum();
        // Who can't have the journal in time is refused.
        let refused = outputs.iter().all(|output| matches!(output.status.code(), Some(0 | 2)));
        assert!(answers == 1 && refused, "round {round}: {outputs:?}");
    }
}

#[test]
fn a_file_is_sent_once_over_the_kill_of_a_run() {
    const LAST: usize = 60;
    let folder = crowded("kill", "durability: process\n", LAST);
    // The ids of the answers to each number: a message that is sent twice has two.
    let mut ids = std::collections::BTreeMap::<usize, std::collections::BTreeSet<String>>::new();
    for kill in [true, true, false] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_systole"));
        command.args(["run", "organism.yaml", "messages.xml", "-q"]).current_dir(&folder);
        command.args(if kill { &[][..] } else { &["--until-idle"] });
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
        let mut out = child.stdout.take().unwrap();
        let mut said = Vec::new();
        if kill {
            let mut some = [0; 4096];
            let read = out.read(&mut some).unwrap();
            said.extend_from_slice(&some[..read]);
            child.kill().unwrap();
        }
        out.read_to_end(&mut said).unwrap();
        assert_eq!(child.wait().unwrap().success(), !kill);
        for answer in String::from_utf8_lossy(&said).split_inclusive("</message>") {
            let between = |from: &str, to: &str| Some(answer.split_once(from)?.1.split_once(to)?.0.to_owned());
            if let (Some(id), Some(number)) =
                (between("<id xmlns=\"urn:systole:meta:v1\">", "<"), between("<say xmlns=\"urn:t\">", " "))
            {
                ids.entry(number.parse().unwrap()).or_default().insert(id);
            }
        }
    }
    assert!(ids.keys().copied().eq(1..=LAST), "{:?}", ids.keys());
    assert!(ids.values().all(|ids| ids.len() == 1), "sent twice: {ids:?}");
}

#[test]
fn messages_that_are_sent_again_are_remembered_and_an_empty_file_becomes_a_journal() {
    let folder = crowded("again", "durability: process\n", 3);
    std::fs::write(folder.join("systole.journal"), "").unwrap();
    assert_eq!(run_here(&folder, &["messages.xml", "--again"]).1, [1, 2, 3]);
    assert_eq!(run_here(&folder, &["messages.xml"]).1, Vec::<usize>::new());
    assert_eq!(run_here(&folder, &["messages.xml", "--again"]).1, [1, 2, 3]);
}

#[test]
fn a_journal_is_not_shared_by_two_organisms() {
    let folder = crowded("shared", "durability: process\n", 3);
    assert_eq!(run_here(&folder, &["messages.xml"]).0, Some(0));
    let other = std::fs::read_to_string(folder.join("organism.yaml")).unwrap();
    // Another organism, whose parties have other names, too.
    let other = other.replace("name: crowd", "name: guests").replace("name: parrot", "name: bird");
    std::fs::write(folder.join("organism.yaml"), other.replace("[parrot]", "[bird]")).unwrap();
    let (code, said, told) = run_here(&folder, &["messages.xml", "--again"]);
    assert_eq!((code, said), (Some(2), vec![]));
    crate::kit::has(&told, &["belongs to the organism 'crowd'", "'guests'", "systole journal rename guests"]);
    // Nor by a command that reads or changes the work of the one that organism.yaml describes.
    for args in [&["dead", "list"][..], &["thread", "list"]] {
        let output = Command::new(env!("CARGO_BIN_EXE_systole")).args(args).current_dir(&folder).output().unwrap();
        crate::kit::has(&String::from_utf8(output.stderr).unwrap(), &["belongs to the organism 'crowd'"]);
        assert_eq!(output.status.code(), Some(2), "{args:?}");
    }
    let renamed = Command::new(env!("CARGO_BIN_EXE_systole"))
        .args(["journal", "rename", "guests"])
        .current_dir(&folder)
        .output()
        .unwrap();
    assert!(renamed.status.success(), "{}", String::from_utf8_lossy(&renamed.stderr));
    assert_eq!(run_here(&folder, &["messages.xml", "--again"]).1, [1, 2, 3]);
    let stat = Command::new(env!("CARGO_BIN_EXE_systole")).args(["journal", "stat"]).current_dir(&folder).output();
    crate::kit::has(&String::from_utf8(stat.unwrap().stdout).unwrap(), &["organism        guests, journal "]);
}

#[test]
fn a_run_until_idle_prints_older_answers_that_nobody_has_read() {
    const LAST: usize = 40;
    let folder = crowded("older", "durability: process\n", LAST);
    let run = |out: Stdio| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_systole"));
        command.args(["run", "organism.yaml", "messages.xml", "--until-idle", "-q"]).current_dir(&folder);
        command.stdin(Stdio::null()).stdout(out).stderr(Stdio::piped()).output().unwrap()
    };
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    assert_ne!(run(full.into()).status.code(), Some(0), "no answer could be printed");
    // A smaller exit than the answers of before need.
    let organism = std::fs::read_to_string(folder.join("organism.yaml")).unwrap();
    std::fs::write(folder.join("organism.yaml"), format!("limits: {{ egress: 2 }}\n{organism}")).unwrap();
    std::fs::write(folder.join("messages.xml"), "").unwrap();
    let output = run(Stdio::piped());
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let (said, faults) = numbers(&output.stdout);
    assert!(!said.is_empty() && faults == 0, "{said:?}");
    let stat = Command::new(env!("CARGO_BIN_EXE_systole")).args(["journal", "stat"]).current_dir(&folder).output();
    crate::kit::has(&String::from_utf8(stat.unwrap().stdout).unwrap(), &["unread egress   0"]);
}

#[test]
fn a_reader_that_goes_away_ends_the_run() {
    let mut child = start(&["things.yaml"]);
    drop(child.stdout.take());
    let _read_on = Lines::of(child.stderr.take().unwrap());
    let mut stdin = child.stdin.take().unwrap();
    // Until the program has noticed, it reads input.
    while stdin.write_all(envelope("<say xmlns='urn:t'>x</say>").as_bytes()).is_ok() {
        if child.try_wait().unwrap().is_some() {
            break;
        }
    }
    assert_eq!(child.wait().unwrap().code(), Some(141));
}

#[test]
fn a_person_answers_by_filling_in_a_form() {
    let typed = "what?\n1\nmaybe\nfalse\nnot <proven>\ny\n";
    let said = run(&["human.yaml", "ask.xml", "--until-idle"], typed);
    assert_eq!(said.code, 0, "{}{}", said.out, said.err);
    assert!(said.err.contains("--- cli asks judge ---\n│ <ask xmlns=\"urn:t\">guilty?</ask>\n"), "{}", said.err);
    assert!(said.err.contains("This is neither XML nor a number of the list; - declines"), "{}", said.err);
    assert!(said.err.contains("found 'maybe', expected true or false\nverdict/ok, true or false: "), "{}", said.err);
    assert!(said.err.contains("</verdict>\nSend it? (y sends it"), "{}", said.err);
    let verdict = "<verdict xmlns=\"urn:t\"><ok>false</ok><note>not &lt;proven&gt;</note></verdict>";
    assert!(said.out.contains(verdict), "{}", said.out);
}

#[test]
fn xml_of_a_person_is_shown_as_it_goes_and_sent_at_their_word() {
    let typed = "<verdict><ok>1</ok><note>AT&T</note></verdict>\n\nn\n<verdict><ok>0</ok><note/></verdict>\ny\n";
    let said = run(&["human.yaml", "ask.xml", "--until-idle"], typed);
    assert_eq!(said.code, 0, "{}{}", said.out, said.err);
    let review = "│ repaired: 1:28 stray-ampersand\n│ <verdict xmlns=\"urn:t\"><ok>1</ok><note>AT&amp;T</note></verdict>\n\
                  Send it? (y sends it, n sends nothing): ";
    assert!(said.err.contains(review), "{}", said.err);
    assert!(said.err.contains("nothing was sent.\n"), "{}", said.err);
    assert!(said.out.contains("<verdict xmlns=\"urn:t\"><ok>0</ok><note></note></verdict>"), "{}", said.out);
}

#[test]
fn a_person_who_accepts_boot_calls_whom_they_may() {
    let mut child = start(&["booted.yaml"]);
    let err = Lines::of(child.stderr.take().unwrap());
    let typed =
        "<gone/>\n<say>one</say>\ny\n1\ntwo\ny\n<list-capabilities xmlns='https://xml-pipeline.org/ns/meta/v1'/>\ny\n";
    child.stdin.as_mut().unwrap().write_all(typed.as_bytes()).unwrap();
    let mut seen = String::new();
    err.until("the answer of the core", |line| {
        seen += line;
        line.contains("│ <capabilities")
    });
    assert!(seen.contains("--- operator is ready ---\n"), "{seen}");
    assert!(seen.contains("gone is neither a reply nor a call of operator\n"), "{seen}");
    for text in ["one", "two"] {
        assert!(seen.contains(&format!("parrot answers:\n│ <say xmlns=\"urn:t\">{text}</say>\n")), "{seen}");
    }
    stop(&child, Signal::TERM);
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn the_end_of_input_ends_a_form_but_no_question() {
    let said = run(&["human.yaml", "ask.xml", "--until-idle"], "1\nfalse\nnot proven\n");
    assert_eq!((said.code, said.out.as_str()), (4, ""), "{}", said.err);
    assert!(said.err.contains("The unfinished entry was not sent."), "{}", said.err);
    assert!(said.err.contains("questions wait for a person: cli asks judge: they end with this run"), "{}", said.err);
}

#[test]
fn a_person_who_is_not_there_ends_no_question() {
    let said = run(&["human.yaml", "ask.xml", "--until-idle"], "");
    assert_eq!((said.code, said.out.as_str()), (4, ""), "{}", said.err);
    assert!(said.err.contains("The keyboard is closed."), "{}", said.err);
    assert!(said.err.contains("a question to judge waits for people elsewhere"), "{}", said.err);
}

#[test]
fn what_can_not_run_says_why() {
    let said = run(&["quiet.yaml", "ask.xml"], "");
    assert_eq!(said.code, 2);
    assert!(said.err.starts_with("there is no client 'cli': add clients: "), "{}", said.err);
    let said = run(&["human.yaml", "no-such-file.xml"], "");
    assert_eq!((said.code, said.err.starts_with("can't read no-such-file.xml: ")), (2, true), "{}", said.err);
    let said = run(&["../check/shapes.yaml"], "");
    assert_eq!((said.code, said.out.as_str()), (2, ""));
    assert!(said.err.contains("did you mean 'command'?"), "{}", said.err);
    assert_eq!(run(&["things.yaml", "--shards", "0"], "").code, 2);
}

#[test]
fn a_quiet_run_shows_no_events_and_only_what_is_wrong_of_the_log() {
    let said = run(&["things.yaml", "--until-idle", "--quiet"], &envelope("<say xmlns='urn:t'>a</say>"));
    assert!(said.code == 0 && said.out.contains(">a</say>"), "{}{}", said.out, said.err);
    assert!(!said.err.is_empty() && said.err.lines().all(|line| line.contains("Z warn ")), "{}", said.err);
}
