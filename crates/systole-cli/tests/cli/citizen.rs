//! The program among others: as process 1, with few descriptors, with files that are none, and with a time to end.

use std::fs;
use std::io::{Read, Write};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, ExitStatus, Output, Stdio};

use rustix::fs::{CWD, FileType, Mode, mknodat};
use rustix::process::{Pid, Signal, kill_process};

use crate::kit::Scratch;
use crate::kit::running::Running;
use crate::kit::waiting::until;

const ORGANISM: &str = r#"
organism: { name: citizen }
drain: 1s
clients:
  - { name: cli, calls: ["{urn:c}leave", "{urn:c}count", "{urn:c}hang"] }
listeners:
  - { name: echo, echo: true, schemas: [c.xsd], accepts: ["{urn:c}never"] }
  - name: leaver
    command: [sh, -c, '(setsid sh -c "exit 0" >/dev/null 2>&1 </dev/null &); echo "<done>left</done>"']
    accepts: ["{urn:c}leave"]
    replies: ["{urn:c}done"]
  - name: counter
    command: [sh, -c, 'echo "<done>$(grep -l "^State:.Z" /proc/[0-9]*/status 2>/dev/null | wc -l) zombies</done>"']
    accepts: ["{urn:c}count"]
    replies: ["{urn:c}done"]
  - name: hanger
    command: [sh, -c, 'echo hangs >&2; sleep 1000']
    accepts: ["{urn:c}hang"]
    replies: ["{urn:c}done"]
"#;

const SCHEMA: &str = r#"<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema" targetNamespace="urn:c">
  <xs:element name="leave" type="xs:string"/><xs:element name="count" type="xs:string"/>
  <xs:element name="hang" type="xs:string"/><xs:element name="never" type="xs:string"/>
  <xs:element name="done" type="xs:string"/>
</xs:schema>"#;

fn folder(name: &str) -> Scratch {
    let folder = Scratch::new(name);
    fs::write(folder.join("organism.yaml"), ORGANISM).unwrap();
    fs::write(folder.join("c.xsd"), SCHEMA).unwrap();
    folder
}

fn ask(running: &mut Running, what: &str) -> String {
    writeln!(running.child.stdin.as_mut().unwrap(), "<{what} xmlns='urn:c'/>").unwrap();
    running.receive()
}

/// Processes in a namespace of their own need a right that not every machine gives.
fn may_unshare() -> bool {
    let tried = Command::new("unshare").args(["-rpf", "--kill-child", "--mount-proc", "true"]).output();
    tried.is_ok_and(|tried| tried.status.success())
}

#[test]
fn process_1_reaps_what_others_leave_behind_and_ends_as_it_should() {
    if !may_unshare() {
        eprintln!("no namespace of processes is to be had here: nothing was tried");
        return;
    }
    let folder = folder("init");
    let child = Command::new("unshare")
        .args(["-rpf", "--kill-child", "--mount-proc", env!("CARGO_BIN_EXE_systole"), "run", "organism.yaml", "-"])
        .current_dir(&folder)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(fs::File::create(folder.join("log")).unwrap())
        .spawn()
        .unwrap();
    let mut running = Running::of(child);
    for _ in 0..10 {
        assert!(ask(&mut running, "leave").contains(">left<"));
    }
    until("the end of all zombies", || ask(&mut running, "count").contains(">0 zombies<").then_some(()));
    // The process that unshare waits for.
    let children = format!("/proc/{0}/task/{0}/children", running.child.id());
    let first = fs::read_to_string(children).unwrap().trim().parse().ok().and_then(Pid::from_raw).unwrap();
    kill_process(first, Signal::TERM).unwrap();
    let end = until("the end of process 1", || running.child.try_wait().unwrap());
    assert_eq!(end.code(), Some(0), "{}", fs::read_to_string(folder.join("log")).unwrap());
}

/// A user of few processes, who runs the program in a folder. The limit counts all processes of a user, so each test has one of its own.
struct FewProcesses<'a> {
    folder: &'a Scratch,
    user: u32,
    program: PathBuf,
}

impl<'a> FewProcesses<'a> {
    /// `None` for a test that is not run by root: only root becomes another user, and the limit binds no root.
    fn new(folder: &'a Scratch, user: u32) -> Option<Self> {
        if !rustix::process::geteuid().is_root() {
            eprintln!("only root becomes a user of few processes: nothing was tried");
            return None;
        }
        // The user of the test may not read the folder of the built program. A process of its own makes the copy: a program
        // can't be run while a file of ours writes it.
        let program = folder.join("systole");
        assert!(Command::new("cp").arg(env!("CARGO_BIN_EXE_systole")).arg(&program).status().unwrap().success());
        Some(Self { folder, user, program })
    }

    /// The end of a run with so many processes and threads at most: its status, standard output and standard error.
    fn run(&self, most: u32, args: &[&str]) -> (ExitStatus, String, String) {
        let mut command = Command::new("prlimit");
        command.arg(format!("--nproc={most}")).arg(&self.program).args(["run", "organism.yaml", "--until-idle"]);
        command.args(args).stdin(Stdio::null()).current_dir(self.folder).uid(self.user).gid(self.user);
        let Output { status, stdout, stderr } = command.output().unwrap();
        (status, String::from_utf8(stdout).unwrap(), String::from_utf8(stderr).unwrap())
    }
}

#[test]
fn messages_wait_while_the_user_may_have_no_further_process() {
    const MESSAGES: usize = 30;
    let folder = folder("few-processes");
    let Some(user) = FewProcesses::new(&folder, 54_321) else { return };
    let organism = ORGANISM.replace(
        "[sh, -c, '(setsid sh -c \"exit 0\" >/dev/null 2>&1 </dev/null &); echo \"<done>left</done>\"']",
        "[sed, s/leave/done/g]\n    concurrency: 20",
    );
    fs::write(folder.join("organism.yaml"), organism).unwrap();
    fs::write(folder.join("m.xml"), "<leave xmlns='urn:c'>a</leave>\n".repeat(MESSAGES)).unwrap();
    let (status, said, log) = user.run(14, &["m.xml", "-q"]);
    assert_eq!((status.code(), said.matches("<done").count()), (Some(0), MESSAGES), "{said}{log}");
}

#[test]
fn a_start_without_enough_threads_is_undone_and_says_why() {
    let folder = folder("few-threads");
    let Some(user) = FewProcesses::new(&folder, 54_323) else { return };
    let organism = ORGANISM.replace("drain: 1s", "durability: process\ngateway: { listen: 127.0.0.1:0 }");
    fs::write(folder.join("organism.yaml"), organism).unwrap();
    std::os::unix::fs::chown(&folder, Some(user.user), Some(user.user)).unwrap();
    let mut codes = Vec::new();
    for most in 1..24 {
        let (status, _, said) = user.run(most, &["--shards", "3"]);
        assert!(matches!(status.code(), Some(0 | 2)) && !said.contains("panicked"), "{most}: {status}: {said}");
        assert!(status.success() || !said.is_empty(), "{most}");
        codes.extend(status.code());
    }
    assert!(codes.contains(&0) && codes.contains(&2), "{codes:?}");
}

#[test]
fn a_message_that_waits_for_descriptors_in_vain_says_so() {
    let folder = folder("no-descriptors");
    fs::write(folder.join("organism.yaml"), ORGANISM.replace("name: leaver", "name: leaver\n    timeout: 200ms"))
        .unwrap();
    fs::write(folder.join("m.xml"), "<leave xmlns='urn:c'>a</leave>\n").unwrap();
    let mut told = 0;
    for most in 12..40 {
        let script = "ulimit -n $0; exec \"$1\" run organism.yaml m.xml --until-idle --shards 1 -q";
        let mut command = Command::new("sh");
        command.args(["-c", script, &most.to_string()]).arg(env!("CARGO_BIN_EXE_systole")).stdin(Stdio::null());
        let Output { stdout, stderr, .. } = command.current_dir(&folder).output().unwrap();
        let (said, log) = (String::from_utf8(stdout).unwrap(), String::from_utf8(stderr).unwrap());
        assert!(!said.contains("took too long"), "{most}: {said}{log}");
        told += usize::from(said.contains("listener-failed") && said.contains("no free descriptors (ulimit -n)"));
    }
    assert!(told > 0, "none had too few");
}

#[test]
fn a_start_without_enough_descriptors_is_undone_and_says_why() {
    let folder = folder("few");
    let organism = ORGANISM.replace("drain: 1s", "durability: process\ngateway: { listen: 127.0.0.1:0 }");
    fs::write(folder.join("organism.yaml"), organism).unwrap();
    let mut refused = 0;
    for most in 8..48 {
        let mut child = Command::new("sh")
            .args(["-c", "ulimit -n $0; exec \"$1\" run organism.yaml --until-idle --shards 3", &most.to_string()])
            .arg(env!("CARGO_BIN_EXE_systole"))
            .current_dir(&folder)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut said = String::new();
        child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
        let code = until("the end of the program", || child.try_wait().unwrap()).code();
        assert!(matches!(code, Some(0 | 2)) && !said.contains("panicked"), "{most}: {code:?}: {said}");
        let remedy = format!("this process may open {most} files at once (ulimit -n)");
        assert!(code == Some(0) || said.contains(&remedy), "{most}: {said}");
        refused += usize::from(code == Some(2));
    }
    assert!(refused > 0, "all could start");
}

fn check(folder: &Scratch, file: &str) -> (Option<i32>, String) {
    let Output { status, stderr, .. } =
        Command::new(env!("CARGO_BIN_EXE_systole")).args(["check", file]).current_dir(folder).output().unwrap();
    (status.code(), String::from_utf8(stderr).unwrap())
}

#[test]
fn check_reads_no_device_and_waits_for_no_fifo() {
    let folder = folder("files");
    mknodat(CWD, folder.join("fifo"), FileType::Fifo, Mode::RUSR, 0).unwrap();
    for (file, why) in [("/dev/zero", "it is a device: only a regular file is read"), ("fifo", "it is a FIFO: ")] {
        let (code, said) = check(&folder, file);
        assert!(code == Some(1) && said.contains(why), "{code:?}: {said}");
        fs::write(folder.join("other.yaml"), ORGANISM.replace("c.xsd", file)).unwrap();
        let (code, said) = check(&folder, "other.yaml");
        assert!(code == Some(1) && said.contains(why), "{code:?}: {said}");
    }
}

#[test]
fn a_source_without_the_end_of_a_message_is_an_error_that_names_its_place() {
    let folder = folder("endless");
    fs::write(folder.join("a.xml"), "<leave xmlns='urn:c'>a</leave>\n").unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_systole"));
    command.args(["run", "organism.yaml", "a.xml", "/dev/zero", "-q"]).current_dir(&folder).stdin(Stdio::null());
    let Output { status, stderr, .. } = command.output().unwrap();
    let said = String::from_utf8(stderr).unwrap();
    assert_eq!(status.code(), Some(2), "{said}");
    let why = "/dev/zero:1:1: no message ends in 67108864 bytes: name a file or a pipe of messages";
    assert!(said.contains(why), "{said}");
}

#[test]
fn a_parent_that_ignores_the_ends_of_children_loses_no_outcome() {
    const MESSAGES: usize = 20;
    let folder = folder("ignored");
    fs::write(folder.join("m.xml"), "<leave xmlns='urn:c'>a</leave>\n".repeat(MESSAGES)).unwrap();
    let script = "trap '' CHLD; exec \"$0\" run organism.yaml m.xml --until-idle -q";
    let mut command = Command::new("bash");
    command.args(["-c", script, env!("CARGO_BIN_EXE_systole")]).current_dir(&folder);
    let Output { status, stdout, stderr } = command.output().unwrap();
    let (said, log) = (String::from_utf8(stdout).unwrap(), String::from_utf8(stderr).unwrap());
    assert_eq!((status.code(), said.matches("<done").count()), (Some(0), MESSAGES), "{said}{log}");
}

#[test]
fn the_time_for_work_in_flight_is_a_key() {
    let folder = folder("drain");
    let mut running = Running::organism(&folder, &["-"]);
    writeln!(running.child.stdin.as_mut().unwrap(), "<hang xmlns='urn:c'/>").unwrap();
    let log = || fs::read_to_string(folder.join("log")).unwrap();
    until("the words of the command", || log().contains("| hangs\n").then_some(()));
    kill_process(Pid::from_child(&running.child), Signal::TERM).unwrap();
    let end = until("the end of the program", || running.child.try_wait().unwrap());
    assert_eq!(end.code(), Some(1));
    assert!(log().contains("stopping: work in flight goes on for 1 s at most"), "{}", log());
}

#[test]
fn a_parent_that_blocks_signals_makes_the_program_deaf_to_none() {
    let folder = folder("blocked");
    for signal in [Signal::TERM, Signal::INT, Signal::HUP] {
        // Without a terminal, of which SIGHUP would be the end.
        let child = Command::new("setsid")
            .args(["env", "--block-signal", env!("CARGO_BIN_EXE_systole"), "run", "organism.yaml", "-"])
            .current_dir(&folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(fs::File::create(folder.join("log")).unwrap())
            .spawn()
            .unwrap();
        let mut running = Running::of(child);
        // The end of a child is a signal, too.
        assert!(ask(&mut running, "leave").contains(">left<"));
        let (pid, log) = (Pid::from_child(&running.child), || fs::read_to_string(folder.join("log")).unwrap());
        kill_process(pid, signal).unwrap();
        if signal == Signal::HUP {
            until("the change", || log().contains("the organism has changed").then_some(()));
            kill_process(pid, Signal::TERM).unwrap();
        }
        let end = until("the end of the program", || running.child.try_wait().unwrap());
        assert_eq!(end.code(), Some(0), "{}", log());
    }
}

#[test]
fn a_second_signal_leaves_a_program_no_time() {
    let folder = folder("second");
    let hangs = "echo hangs >&2; sleep 1000";
    let trap = "trap \"touch told\" TERM; echo hangs >&2; while :; do sleep 0.01; done";
    for durability in ["", "durability: process\n"] {
        fs::write(
            folder.join("organism.yaml"),
            durability.to_owned() + &ORGANISM.replace(hangs, trap).replace("1s", "60s"),
        )
        .unwrap();
        let mut running = Running::organism(&folder, &["-"]);
        writeln!(running.child.stdin.as_mut().unwrap(), "<hang xmlns='urn:c'/>").unwrap();
        let log = || fs::read_to_string(folder.join("log")).unwrap();
        let pid = Pid::from_child(&running.child);
        until("the words of the command", || log().contains("| hangs\n").then_some(()));
        kill_process(pid, Signal::TERM).unwrap();
        until("the first signal is heard", || log().contains("stopping:").then_some(()));
        kill_process(pid, Signal::TERM).unwrap();
        let end = until("the end of the program", || running.child.try_wait().unwrap());
        assert_eq!((end.code(), folder.join("told").exists()), (Some(130), false), "{}", log());
    }
}
