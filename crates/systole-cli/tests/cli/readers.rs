//! Standard streams whose other end does as it likes: none of it stops the pump, its signals or its end.

use std::fs::File;
use std::io::{self, PipeReader, PipeWriter, Read, Write};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};

use rustix::fs::{OFlags, fcntl_setfl};
use rustix::process::{Pid, Signal, kill_process};

use crate::kit::Scratch;
use crate::kit::waiting::{Lines, until};

const MESSAGES: usize = 3000;
/// So many that their answers fill a pipe.
const FEW: usize = 500;

fn say(text: &str) -> String {
    format!("<say xmlns='urn:t'>{text}</say>\n")
}

fn messages(count: usize, size: usize) -> String {
    (0..count).map(|number| say(&format!("{number} {}", "x".repeat(size)))).collect()
}

fn systole(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_systole"));
    command.args(["run", "things.yaml"]).args(args).env_remove("SYSTOLE_LOG").stdin(Stdio::null());
    command.current_dir(Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/golden/run")));
    command
}

fn ends(mut child: Child) -> ExitStatus {
    let end = || child.try_wait().unwrap();
    until("the end of the program", end)
}

fn stop(child: &Child, signal: Signal) {
    kill_process(Pid::from_raw(child.id().cast_signed()).unwrap(), signal).unwrap();
}

fn feed(child: &mut Child, text: String) {
    let mut stdin = child.stdin.take().unwrap();
    // The program may end before it has read all.
    std::thread::spawn(move || drop(stdin.write_all(text.as_bytes())));
}

/// A pipe whose end for the program is non-blocking.
fn non_blocking_output() -> (PipeReader, PipeWriter) {
    let (reader, writer) = io::pipe().unwrap();
    fcntl_setfl(&writer, OFlags::NONBLOCK).unwrap();
    (reader, writer)
}

#[test]
fn answers_go_on_though_nobody_reads_the_events() {
    for style in [&["--until-idle"][..], &["--until-idle", "--json"]] {
        let mut child =
            systole(style).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        feed(&mut child, messages(MESSAGES, 0));
        let unread = child.stderr.take();
        let mut out = String::new();
        child.stdout.take().unwrap().read_to_string(&mut out).unwrap();
        assert_eq!((ends(child).code(), out.matches("</say>").count()), (Some(0), MESSAGES));
        drop(unread);
    }
}

#[cfg(feature = "gateway")]
#[test]
fn health_is_told_though_nobody_reads_the_log() {
    use std::io::{BufRead, BufReader};

    let folder = Scratch::new("health");
    let schema = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/golden/run/thing.xsd");
    let organism = format!(
        "organism: {{ name: health }}\ndurability: process\ngateway: {{ listen: 127.0.0.1:0 }}\n\
         clients: [{{ name: cli, calls: ['{{urn:t}}say'] }}]\n\
         listeners: [{{ name: parrot, echo: true, schemas: [{schema}], accepts: ['{{urn:t}}say'] }}]\n"
    );
    std::fs::write(folder.join("organism.yaml"), organism).unwrap();
    let mut child = Command::new(env!("CARGO_BIN_EXE_systole"))
        .args(["run", "organism.yaml", "-"])
        .current_dir(&folder)
        .env("SYSTOLE_LOG", "debug")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut log = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    while !line.contains("the gateway listens address=") {
        line.clear();
        assert!(log.read_line(&mut line).unwrap() > 0, "it has not begun");
    }
    let address = line.trim_end().rsplit('=').next().unwrap().to_owned();
    // Nobody reads on. The events of these fill the pipe.
    feed(&mut child, messages(MESSAGES, 0));
    let out = Lines::of(child.stdout.take().unwrap());
    (0..MESSAGES).for_each(|_| drop(out.next().unwrap()));
    for _ in 0..20 {
        let mut stream = std::net::TcpStream::connect(&address).unwrap();
        stream.set_read_timeout(Some(std::time::Duration::from_secs(60))).unwrap();
        stream.write_all(b"GET /livez HTTP/1.1\r\nHost: here\r\nConnection: close\r\n\r\n").unwrap();
        let mut said = String::new();
        stream.read_to_string(&mut said).unwrap();
        assert!(said.starts_with("HTTP/1.1 200 "), "{said}");
    }
    stop(&child, Signal::TERM);
    assert_eq!(ends(child).code(), Some(0));
    drop(log);
}

#[test]
fn events_that_a_full_disk_refuses_stop_nothing() {
    let full = File::options().write(true).open("/dev/full").unwrap();
    let mut child =
        systole(&["--until-idle"]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(full).spawn().unwrap();
    feed(&mut child, messages(MESSAGES, 0));
    let mut out = String::new();
    child.stdout.take().unwrap().read_to_string(&mut out).unwrap();
    assert_eq!((ends(child).code(), out.matches("</say>").count()), (Some(0), MESSAGES));
}

#[test]
fn a_signal_ends_a_program_whose_answers_nobody_reads_and_it_says_how_many() {
    let mut child =
        systole(&["-"]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    feed(&mut child, messages(MESSAGES, 1000));
    let err = Lines::of(child.stderr.take().unwrap());
    // More than the pipe and the program hold.
    let mut left = 0;
    err.until("300 answers", |line| {
        left += usize::from(line.contains(" left {urn:t}say"));
        left == 300
    });
    stop(&child, Signal::TERM);
    let unread = err.until("the answers that are unread", |line| line.contains("are unread"));
    let count: usize = unread.split(' ').find_map(|word| word.parse().ok()).unwrap();
    assert!(count > 1 && unread.contains("the reader of standard output did not take them"), "{unread}");
    let out = child.stdout.take();
    assert_eq!(ends(child).code(), Some(1));
    drop(out);
}

/// The numbers of the messages among answers.
fn numbers(answers: &str) -> std::collections::BTreeSet<u32> {
    let texts = answers.split("<say xmlns=\"urn:t\">").skip(1);
    let found: Vec<u32> = texts.map(|text| text.split(' ').next().unwrap().parse().unwrap()).collect();
    let all: std::collections::BTreeSet<u32> = found.iter().copied().collect();
    assert_eq!(found.len(), all.len(), "each answer comes once");
    all
}

#[test]
fn answers_that_are_read_while_a_durable_organism_ends_do_not_come_again() {
    let folder = Scratch::new("read-at-end");
    let schema = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/golden/run/thing.xsd");
    let organism = format!(
        "organism: {{ name: end }}\ndurability: process\nclients: [{{ name: cli, calls: ['{{urn:t}}say'] }}]\n\
         listeners: [{{ name: parrot, echo: true, schemas: [{schema}], accepts: ['{{urn:t}}say'] }}]\n"
    );
    std::fs::write(folder.join("organism.yaml"), organism).unwrap();
    std::fs::write(folder.join("messages.xml"), messages(MESSAGES, 300)).unwrap();
    let run = |extra: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_systole"));
        command.args(["run", "organism.yaml", "messages.xml"]).args(extra).current_dir(&folder).stdin(Stdio::null());
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    };
    // By a signal, and by an operator.
    let mut all = std::collections::BTreeSet::new();
    for by_operator in [false, true] {
        let mut child = run(&[]);
        let err = Lines::of(child.stderr.take().unwrap());
        let mut operator = None;
        err.until("an answer", |line| line.contains(" left {urn:t}say"));
        match by_operator {
            false => {
                stop(&child, Signal::TERM);
                err.until("the beginning of the end", |line| line.contains("stopping: "));
            }
            true => {
                let mut drain = Command::new(env!("CARGO_BIN_EXE_systole"));
                drain.arg("drain").current_dir(&folder).stdout(Stdio::null()).stderr(Stdio::null());
                operator = Some(drain.spawn().unwrap());
                err.until("the act", |line| line.contains("an operator acted"));
            }
        }
        // Nobody has read a byte so far: the program has more than the pipe holds.
        let mut out = String::new();
        child.stdout.take().unwrap().read_to_string(&mut out).unwrap();
        assert_eq!(ends(child).code(), Some(0));
        if let Some(operator) = operator {
            assert_eq!(ends(operator).code(), Some(0));
        }
        let read = numbers(&out);
        assert!(read.is_disjoint(&all) && !read.is_empty(), "{:?}", read.intersection(&all));
        all.extend(read);
    }
    let mut child = run(&["--until-idle", "-q"]);
    let mut out = String::new();
    child.stdout.take().unwrap().read_to_string(&mut out).unwrap();
    assert_eq!(ends(child).code(), Some(0));
    let rest = numbers(&out);
    assert!(rest.is_disjoint(&all), "{:?}", rest.intersection(&all));
    assert_eq!(rest.len() + all.len(), MESSAGES);
}

#[test]
fn a_signal_ends_a_program_that_nobody_reads_at_all() {
    let mut child =
        systole(&["-"]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    // The pipes of both are full by the time that so much was read.
    stdin.write_all(messages(MESSAGES, 1000).as_bytes()).unwrap();
    stop(&child, Signal::TERM);
    let streams = (child.stdout.take(), child.stderr.take());
    assert_eq!(ends(child).code(), Some(1));
    drop((streams, stdin));
}

#[test]
fn an_output_that_others_made_non_blocking_gets_all_answers() {
    let (mut reader, writer) = non_blocking_output();
    let (mut said, errors) = non_blocking_output();
    let mut child = systole(&["--until-idle"]).stdin(Stdio::piped()).stdout(writer).stderr(errors).spawn().unwrap();
    feed(&mut child, messages(FEW, 400));
    // Nothing is read before the pipe of events is full, and so the one of answers soon is.
    let mut first = [0; 1 << 16];
    said.read_exact(&mut first).unwrap();
    let rest = std::thread::spawn(move || io::copy(&mut said, &mut io::sink()));
    let mut out = String::new();
    reader.read_to_string(&mut out).unwrap();
    rest.join().unwrap().unwrap();
    assert_eq!((ends(child).code(), out.matches("</say>").count()), (Some(0), FEW));
}

#[test]
fn an_input_that_others_made_non_blocking_is_waited_for() {
    let (reader, mut writer) = io::pipe().unwrap();
    fcntl_setfl(&reader, OFlags::NONBLOCK).unwrap();
    let mut child = systole(&["-", "--until-idle"])
        .stdin(OwnedFd::from(reader))
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let out = Lines::of(child.stdout.take().unwrap());
    for text in ["one", "two", "three"] {
        // By the answer the program has found the pipe empty.
        writer.write_all(say(text).as_bytes()).unwrap();
        out.until("the answer", |line| line.contains(&format!(">{text}</say>")));
    }
    drop(writer);
    assert_eq!(ends(child).code(), Some(0));
}

#[test]
fn short_commands_print_to_what_others_made_non_blocking() {
    let (mut reader, writer) = non_blocking_output();
    let child = Command::new(env!("CARGO_BIN_EXE_systole"))
        .args(["reference", "--schema"])
        .stdin(Stdio::null())
        .stdout(writer)
        .spawn()
        .unwrap();
    let mut out = String::new();
    reader.read_to_string(&mut out).unwrap();
    assert_eq!(ends(child).code(), Some(0));
    assert!(serde_json::from_str::<serde_json::Value>(&out).is_ok(), "{} bytes", out.len());
}

#[test]
fn a_signal_that_was_ignored_at_the_start_stays_so() {
    let folder = Scratch::new("ignored");
    let mut child = Command::new("sh")
        .args(["-c", "trap '' HUP INT; exec \"$0\" run things.yaml -"])
        .arg(env!("CARGO_BIN_EXE_systole"))
        .current_dir(Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/golden/run")))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(File::create(folder.join("log")).unwrap())
        .spawn()
        .unwrap();
    let out = Lines::of(child.stdout.take().unwrap());
    let ask = |child: &mut Child, text: &str| {
        child.stdin.as_mut().unwrap().write_all(say(text).as_bytes()).unwrap();
        out.until("the answer", |line| line.contains(&format!(">{text}</say>")));
    };
    ask(&mut child, "before");
    stop(&child, Signal::HUP);
    stop(&child, Signal::INT);
    ask(&mut child, "after");
    stop(&child, Signal::TERM);
    assert_eq!(ends(child).code(), Some(0));
}
