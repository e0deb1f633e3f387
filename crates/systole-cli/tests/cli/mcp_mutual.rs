//! Two organisms that use each other by the Model Context Protocol, as real processes: a listener of `a` is `systole mcp` of `b`,
//! and a listener of `b` is `/mcp` of `a`. So a call of `a` to `b` comes back to `a`.

use std::fs;
use std::io::Write;
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::Stdio;

use crate::kit::running::Running;
use crate::kit::waiting::{runs, until};
use crate::kit::{Scratch, has};

const PROGRAM: &str = env!("CARGO_BIN_EXE_systole");

/// The first organism, with a program that notes its id and waits for a file.
const A: &str = r#"organism: { name: a }
durability: process
gateway: { listen: "127.0.0.1:PORT" }
mcp:
  as: peer
  tools:
    - { call: parrot.say, name: say, output: true }
    - { call: slow.wait, name: wait, read_only: true, task: never }
clients: [{ name: peer, calls: [parrot, slow] }, { name: cli, calls: [LISTENER] }]
listeners:
  - { name: parrot, echo: true, schemas: [t.xsd], accepts: ["{urn:t}say"] }
  - name: slow
    command: [sh, -c, "echo $$ >>began; while [ ! -e go ]; do sleep 0.02; done; echo '<say xmlns=\"urn:t\"><text>gone</text></say>'"]
    accepts: ["{urn:t}wait"]
    replies: ["{urn:t}say"]
    timeout: 5min
"#;

const B_OF_A: &str = "  - { name: b, mcp: { command: [PROGRAM, mcp, ../b/organism.yaml] }, timeout: 5min }\n";

/// The second one.
const B: &str = r#"organism: { name: b }
durability: process
mcp:
  as: peer
  tools: [{ call: a.say, name: say }, { call: a.wait, name: wait, read_only: true, task: never }]
clients: [{ name: peer, calls: [a] }]
listeners:
  - { name: a, mcp: { url: "http://127.0.0.1:PORT/mcp", token_file: a.token }, timeout: 5min }
"#;

const SCHEMA: &str = r#"<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema" targetNamespace="urn:t" elementFormDefault="qualified">
  <xs:complexType name="text"><xs:sequence><xs:element name="text" type="xs:string"/></xs:sequence></xs:complexType>
  <xs:element name="say" xmlns:t="urn:t" type="t:text"/><xs:element name="wait" xmlns:t="urn:t" type="t:text"/>
</xs:schema>"#;

/// Both organisms, which run.
struct Two {
    a: Running,
    b: Running,
    folder: Scratch,
}

/// Runs a command that succeeds in the folder of one; what it prints.
fn done(folder: &Path, args: &[&str]) -> String {
    let output =
        std::process::Command::new(PROGRAM).args(args).current_dir(folder).stdin(Stdio::null()).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{args:?}: {text}{}", String::from_utf8_lossy(&output.stderr));
    text
}

impl Two {
    fn new(name: &str) -> Self {
        let folder = Scratch::new(&format!("mutual-{name}"));
        let (a, b) = (folder.join("a"), folder.join("b"));
        fs::create_dir(&a).unwrap();
        fs::create_dir(&b).unwrap();
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port().to_string();
        fs::write(a.join("t.xsd"), SCHEMA).unwrap();
        fs::write(a.join("organism.yaml"), A.replace("PORT", &port).replace("LISTENER", "parrot")).unwrap();
        fs::write(b.join("organism.yaml"), B.replace("PORT", &port)).unwrap();
        // Each is held to what the other one offers; `a` offers it before it knows `b`.
        let serves = |what: &str| until(what, || TcpStream::connect(format!("127.0.0.1:{port}")).ok());
        let first = Running::organism(&a, &[]);
        serves("the gateway of a");
        fs::write(b.join("a.token"), done(&a, &["token", "new", "peer"])).unwrap();
        has(&done(&b, &["mcp", "import", "organism.yaml", "a"]), &["a: 2 tools of systole"]);
        drop(first);
        let whole = A.to_owned() + &B_OF_A.replace("PROGRAM", PROGRAM);
        fs::write(a.join("organism.yaml"), whole.replace("PORT", &port).replace("LISTENER", "b")).unwrap();
        // The skill of a's tools that b may load is a tool of b, too.
        has(&done(&a, &["mcp", "import", "organism.yaml", "b"]), &["b: 3 tools of systole", "b: 1 skill: b"]);
        let two = Self { a: Running::organism(&a, &[]), b: Running::organism(&b, &[]), folder };
        serves("the gateway of a, again");
        until("the socket of b", || {
            std::process::Command::new(PROGRAM)
                .args(["top", "--json"])
                .current_dir(&b)
                .stdin(Stdio::null())
                .output()
                .ok()
                .filter(|top| top.status.success())
        });
        two
    }

    fn send(&mut self, tool: &str, text: &str) {
        let payload = format!("<{tool} xmlns='urn:systole:mcp:server:b'><text>{text}</text></{tool}>");
        writeln!(self.a.child.stdin.as_mut().unwrap(), "{payload}").unwrap();
    }

    /// The ids of the processes that were started for `wait`, once there are so many.
    fn began(&self, count: usize) -> Vec<String> {
        until("the program of a", || {
            let began = fs::read_to_string(self.folder.join("a/began")).unwrap_or_default();
            let began: Vec<String> = began.lines().map(str::to_owned).collect();
            (began.len() >= count).then_some(began)
        })
    }
}

#[test]
fn a_call_goes_through_both_and_back() {
    let mut two = Two::new("through");
    two.send("say", "R&amp;D");
    has(&two.a.receive(), &["<from>b</from>", "R&amp;D"]);
    // A mistake is refused where it is made, and a fault comes back as one.
    two.send("say", "<b/>");
    has(&two.a.receive(), &["<system-error"]);
    fs::write(two.folder.join("a/go"), "").unwrap();
    two.send("wait", "now");
    has(&two.a.receive(), &["<from>b</from>", "gone"]);
}

#[test]
fn a_cancelled_call_is_cancelled_in_both() {
    let mut two = Two::new("cancel");
    two.send("wait", "long");
    let began = two.began(1);
    let a = two.folder.join("a");
    let open = done(&a, &["thread", "list", "--open"]);
    let own = open.lines().find(|line| line.contains(" cli ")).unwrap_or_else(|| panic!("{open}"));
    done(&a, &["cancel", own.split_whitespace().next().unwrap()]);
    until("the end of the program", || (!runs(&began[0])).then_some(()));
    for one in ["a", "b"] {
        let folder = two.folder.join(one);
        until("the end of all conversations", || {
            (done(&folder, &["thread", "list", "--open"]).lines().count() <= 1).then_some(())
        });
    }
    // Both go on.
    two.send("say", "again");
    two.a.out.until("the answer", |line| line.contains("<from>b</from>") && line.contains("again"));
}

#[test]
fn a_call_survives_the_end_of_one() {
    let mut two = Two::new("killed");
    two.send("wait", "long");
    two.began(1);
    two.b.child.kill().unwrap();
    two.b.child.wait().unwrap();
    // The process of `systole mcp`, which a has started, goes on with b. The tool is read_only, so it is called again.
    two.began(2);
    fs::write(two.folder.join("a/go"), "").unwrap();
    has(&two.a.receive(), &["<from>b</from>", "gone"]);
}
