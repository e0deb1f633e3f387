//! Secrets of the program that the programs which it runs must not read: as a user that is not root, who sees
//! everything.

use std::io::{Read, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::geteuid;

use crate::kit::Scratch;

/// The user `nobody`.
const NOBODY: u32 = 65_534;

/// A command as a user that is not root.
fn as_user(program: &str) -> Command {
    let mut command = Command::new(program);
    if geteuid().is_root() {
        command.uid(NOBODY).gid(NOBODY);
    }
    command
}

/// A process that ends with the test.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn environment_of(pid: u32) -> std::process::Output {
    as_user("/bin/cat").arg(format!("/proc/{pid}/environ")).output().unwrap()
}

#[test]
fn the_token_of_an_agent_cannot_be_read_from_its_environment() {
    let mut agent = as_user(env!("CARGO_BIN_EXE_systole"));
    agent.args(["agent", "calculator", "--url", "http://127.0.0.1:9", "--exec", "true"]).env("SYSTOLE_TOKEN", "s3cret");
    agent.current_dir("/").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut agent = Running(agent.spawn().unwrap());
    // The agent has begun once it logs that its gateway doesn't answer.
    let mut said = [0; 64];
    let length = agent.0.stderr.as_mut().unwrap().read(&mut said).unwrap();
    assert!(String::from_utf8_lossy(&said[..length]).contains("the gateway doesn't answer"));
    let read = environment_of(agent.0.id());
    assert!(!read.status.success() && read.stdout.is_empty(), "{}", String::from_utf8_lossy(&read.stdout));
    // The test can fail: any other process shows its environment.
    let mut other = as_user("/bin/sleep");
    let other = Running(other.arg("1000").env("SYSTOLE_TOKEN", "s3cret").spawn().unwrap());
    let begun = Instant::now();
    while !String::from_utf8_lossy(&environment_of(other.0.id()).stdout).contains("SYSTOLE_TOKEN=s3cret") {
        assert!(begun.elapsed() < Duration::from_secs(30), "waited for the environment of another process");
    }
}

#[test]
fn an_agent_does_not_hand_its_token_on() {
    let mut agent = as_user(env!("CARGO_BIN_EXE_systole"));
    agent.args(["agent", "calculator", "--url", "http://127.0.0.1:9", "--exec", "env", "--env", "SYSTOLE_TOKEN"]);
    let output = agent.current_dir("/").env("SYSTOLE_TOKEN", "s3cret").output().unwrap();
    let error = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{error}");
    assert!(error.contains("leave it out"), "{error}");
}

#[test]
fn a_command_sees_neither_the_environment_nor_the_files_of_its_parent() {
    let folder = Scratch::new("secrets");
    let script = "\
        cat /proc/$PPID/environ >/dev/null 2>&1 && echo environment >&2\n\
        cat /proc/$PPID/fd/3 >/dev/null 2>&1 && echo file >&2\n\
        cat <&3 >/dev/null 2>&1 && echo inherited >&2\n\
        cat\n";
    std::fs::write(folder.join("look"), script).unwrap();
    std::fs::write(folder.join("secret"), "s3cret").unwrap();
    let schema = r#"<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema" targetNamespace="urn:t">
        <xs:element name="say" type="xs:string"/></xs:schema>"#;
    std::fs::write(folder.join("t.xsd"), schema).unwrap();
    let organism = "\
        organism: { name: secrets }\n\
        clients: [{ name: cli, calls: ['{urn:t}say'] }]\n\
        listeners:\n\
        - { name: looker, schemas: [t.xsd], command: [sh, look], accepts: ['{urn:t}say'], replies: ['{urn:t}say'] }\n";
    std::fs::write(folder.join("organism.yaml"), organism).unwrap();
    let mut run = as_user("/bin/sh");
    run.args(["-c", "exec 3<secret; exec \"$0\" run organism.yaml - --until-idle", env!("CARGO_BIN_EXE_systole")]);
    run.current_dir(&folder).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut run = run.spawn().unwrap();
    let message = "<message xmlns='https://xml-pipeline.org/ns/envelope/v1'><meta><from>cli</from></meta>\
        <say xmlns='urn:t'>hello</say></message>";
    run.stdin.take().unwrap().write_all(message.as_bytes()).unwrap();
    let output = run.wait_with_output().unwrap();
    let (out, err) = (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap());
    assert!(out.contains(">hello</say>"), "{out}{err}");
    for seen in ["looker| environment", "looker| file", "looker| inherited"] {
        assert!(!err.contains(seen), "{err}");
    }
}
