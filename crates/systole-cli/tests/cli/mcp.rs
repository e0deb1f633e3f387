//! `mcp:` with the real program: MCP servers in Python that keep the protocol, and servers that break it.

use std::fs;
use std::io::Write;
use std::path::Path;

use rustix::process::{Pid, Signal, kill_process};

use crate::kit::running::Running;
use crate::kit::waiting::{runs, until};
use crate::kit::{Scratch, has, said};

/// A server each of whose tools does one thing, or breaks the protocol in one way.
const SERVER: &str = include_str!("mcp/server.py");

const ORGANISM: &str = r#"organism: { name: tools }
limits: { message_bytes: 1MiB }
clients: [{ name: cli, calls: [t] }]
listeners:
  - { name: t, mcp: { command: [python3, server.py] }, KEYS }
"#;

/// A folder with an organism whose server was imported.
fn imported(name: &str, keys: &str) -> Scratch {
    let folder = Scratch::new(&format!("mcp-{name}"));
    fs::write(folder.join("server.py"), SERVER).unwrap();
    fs::write(folder.join("organism.yaml"), ORGANISM.replace("KEYS", keys)).unwrap();
    has(&folder.done(&["mcp", "import", "organism.yaml", "t"]), &["t: 30 tools of t 1 (2025-11-25)"]);
    fs::remove_file(folder.join("started")).unwrap();
    folder
}

/// Changes the file of the organism.
fn change(folder: &Path, from: &str, to: &str) {
    let file = folder.join("organism.yaml");
    let text = fs::read_to_string(&file).unwrap();
    assert!(text.contains(from), "no {from} in {text}");
    fs::write(file, text.replace(from, to)).unwrap();
}

fn payload(tool: &str, arguments: &str) -> String {
    format!("<{tool} xmlns='urn:systole:mcp:server:t'>{arguments}</{tool}>")
}

/// An argument `n` with a JSON value, whose namespace is written as `XML`.
fn n(value: &str) -> String {
    format!("<n>{}</n>", value.replace("XML", "xmlns='http://www.w3.org/2005/xpath-functions'"))
}

/// Asks for a tool, and returns what is printed.
fn ask(folder: &Path, tool: &str, arguments: &str) -> String {
    let (_, out, error) = said(folder, &["ask", "organism.yaml", &payload(tool, arguments)], "");
    out + &error
}

impl Running {
    fn call(&mut self, tool: &str, arguments: &str) -> String {
        self.tell(tool, arguments);
        self.receive()
    }

    fn tell(&mut self, tool: &str, arguments: &str) {
        writeln!(self.child.stdin.as_mut().unwrap(), "{}", payload(tool, arguments)).unwrap();
    }
}

fn lines(folder: &Path, file: &str) -> usize {
    fs::read_to_string(folder.join(file)).unwrap_or_default().lines().count()
}

#[test]
fn results_are_payloads_and_errors_of_tools_are_faults() {
    let folder = imported("results", "timeout: 20s");
    has(
        &ask(&folder, "echo", "<text>a &lt;b&gt;  c</text>"),
        &["<content xmlns=\"urn:systole:mcp:v1\"><text>a &lt;b&gt;  c</text></content>"],
    );
    let blocks = ask(&folder, "blocks", "");
    has(&blocks, &["<text>a &lt; b &amp; \u{fffd} c</text>", "<image mime=\"image/png\">aGk=</image>"]);
    has(&blocks, &["<audio mime=\"audio/wav\">aGk=</audio>", "<text>inside</text>", "<link ", "uri=\"t://b\""]);
    has(&blocks, &["<structured>{\"a\": [1]}</structured>"]);
    has(&ask(&folder, "fail", ""), &["agent-error", "no luck"]);
    has(&ask(&folder, "refuse", ""), &["I don't do tools/call"]);
    has(
        &ask(&folder, "typed", &n("<number XML>7</number>")),
        &["<typed-result xmlns=\"urn:systole:mcp:server:t\"><n>7</n></typed-result>"],
    );
    let json = |text: &str| said(&folder, &["ask", "organism.yaml", text], "").1;
    assert_eq!(json(r#"{"typed": {"n": 7}}"#), "{\"typed-result\":{\"n\":7}}\n");
    // Numbers keep their digits, in results and in arguments.
    let exact = "123456789012345678901234567890";
    has(&ask(&folder, "typed", &n("<string XML>exact</string>")), &[&format!("<n>{exact}</n>")]);
    has(&ask(&folder, "typed", &n(&format!("<number XML>{exact}</number>"))), &[&format!("<n>{exact}</n>")]);
    has(&ask(&folder, "typed", &n("<number XML>1</number><number XML>2</number>")), &["breaks its contract"]);
    has(&ask(&folder, "typed", &n("<map XML><null key='a'/><null key='a'/></map>")), &["the key 'a' is repeated"]);
}

#[test]
fn a_result_that_breaks_its_own_schema_is_refused() {
    let folder = imported("schema", "timeout: 20s");
    has(&ask(&folder, "typed", &n("<string XML>seven</string>")), &["breaks its own output schema", "/n"]);
    has(&ask(&folder, "typed", &n("<string XML>1</string>")), &["/n: found \"1\", expected a whole number"]);
    has(&ask(&folder, "typed", &n("<number XML>1.5</number>")), &["breaks its own output schema", "/n"]);
    has(&ask(&folder, "typed", &n("<array XML/>")), &["breaks its own output schema"]);
    has(&ask(&folder, "untyped", ""), &["it has no structured content"]);
    has(&ask(&folder, "other", ""), &["a result of another kind"]);
    has(&ask(&folder, "typed", "<n>seven</n>"), &["breaks its contract", "<example>"]);
}

#[test]
fn a_server_that_prints_floods_or_answers_wrongly_gets_a_clear_end() {
    let folder = imported("wrong", "timeout: 20s");
    has(&ask(&folder, "noise", ""), &["after the noise"]);
    let twice = ask(&folder, "twice", "");
    has(&twice, &["<text>once</text>"]);
    assert!(!twice.contains("<text>foreign"), "{twice}");
    has(&ask(&folder, "null", ""), &["<text>right</text>"]);
    has(&ask(&folder, "nan", ""), &["can't be read as JSON", "NaN"]);
    has(&ask(&folder, "last", ""), &["the last word"]);
    has(&ask(&folder, "bigish", ""), &["more than the 1048576 of limits.message_bytes"]);
    has(&ask(&folder, "big", ""), &["more than fit into a message of the organism", "message_bytes"]);
    has(&ask(&folder, "flood", ""), &["no messages", "flood", "standard error"]);
    has(&ask(&folder, "endless", ""), &["without a line feed", "unknown outcome"]);
}

#[test]
fn a_call_whose_outcome_is_unknown_is_made_again_only_if_that_is_harmless() {
    let folder = imported("crash", "timeout: 20s");
    let why = "unknown outcome: the tool 'crash' was called, and the listener was killed by signal 9";
    has(&ask(&folder, "crash", ""), &[why, "readOnlyHint"]);
    assert_eq!(lines(&folder, "calls"), 1);
    has(&ask(&folder, "crash_once", ""), &["the second time"]);
    assert_eq!(lines(&folder, "calls"), 3);
    let poison = ask(&folder, "poison", "");
    has(&poison, &["killed by signal 9", "in attempt 5 of 5"]);
    assert_eq!(lines(&folder, "calls"), 8);
    change(&folder, "server.py] }", "server.py], repeat: always }");
    has(&ask(&folder, "crash", ""), &["in attempt 5 of 5"]);
    assert_eq!(lines(&folder, "calls"), 13);
}

#[test]
fn progress_begins_the_timeout_anew_and_silence_cancels_the_call() {
    let folder = imported("silent", "timeout: 1s");
    has(&ask(&folder, "slow", ""), &["at last"]);
    has(&ask(&folder, "hang", ""), &["<code>timeout</code>", "nor told of progress within 1s"]);
    let before = lines(&folder, "started");
    let mut running = Running::organism(&folder, &[]);
    for _ in 0..2 {
        has(&running.call("hang", ""), &["timeout"]);
    }
    until("the server to hear of the cancelled calls", || (lines(&folder, "cancelled") >= 2).then_some(()));
    has(&running.call("echo", "<text>x</text>"), &["<text>x</text>"]);
    assert_eq!(lines(&folder, "started"), before + 1, "a server that answers other requests is kept");
}

#[test]
fn a_server_that_changed_is_refused_until_it_is_imported_again() {
    let folder = imported("changed", "timeout: 20s");
    let mut running = Running::organism(&folder, &[]);
    has(&running.call("fail", ""), &["no luck"]);
    has(&running.call("change", ""), &["changed"]);
    until("the refusal", || running.call("fail", "").contains("are not those that were imported").then_some(()));
    let refused = running.call("fail", "");
    has(&refused, &["description of 'echo' was", "IMPORTANT", "'new' is new", "systole mcp import"]);
    drop(running);
    has(&ask(&folder, "fail", ""), &["are not those that were imported", "id_rsa"]);
    has(&said(&folder, &["check", "organism.yaml"], "").1, &["tools: ok"]);
    let (code, shown, _) = said(&folder, &["mcp", "import", "organism.yaml", "t", "--dry-run"], "");
    assert_eq!(code, 1);
    has(&shown, &["the tool 'new' is new", "description of 'echo'"]);
    has(&ask(&folder, "fail", ""), &["are not those"]);
    has(&folder.done(&["mcp", "import", "organism.yaml", "t"]), &["the tool 'new' is new", "31 tools"]);
    has(&ask(&folder, "fail", ""), &["no luck"]);
}

#[test]
fn files_of_an_import_that_were_changed_by_hand_are_refused() {
    let folder = imported("edited", "timeout: 20s");
    let check = || {
        let report = said(&folder, &["check", "organism.yaml"], "").2;
        report.replace('│', " ").split_whitespace().collect::<Vec<_>>().join(" ")
    };
    for (file, why) in [("t.mcp.json", "the tool 'echo' was changed"), ("t.mcp.xsd", "not the file that was imported")]
    {
        let path = folder.join(file);
        let text = fs::read_to_string(&path).unwrap();
        fs::write(&path, text.replacen("Does echo.", "Does more.", 1)).unwrap();
        has(&check(), &[why, "systole mcp import"]);
        fs::write(&path, text).unwrap();
    }
    change(&folder, "server.py] }", "server.py], tools: [ecko] }");
    has(&check(), &["no tool 'ecko'", "write echo"]);
    change(&folder, "ecko", "echo");
    assert!(!ask(&folder, "fail", "").contains("no luck"));
    has(&ask(&folder, "echo", "<text>x</text>"), &["<text>x</text>"]);
}

#[test]
fn a_server_that_does_not_come_up_fails_messages_in_time() {
    let folder = imported("mute", "timeout: 1s");
    fs::write(folder.join("mute"), "").unwrap();
    has(&ask(&folder, "fail", ""), &["came up within"]);
    fs::remove_file(folder.join("mute")).unwrap();
    fs::write(folder.join("server.py"), "raise SystemExit('no such module')").unwrap();
    has(&ask(&folder, "fail", ""), &["exited with status 1"]);
    let (code, _, error) = said(&folder, &["mcp", "import", "organism.yaml", "t"], "");
    assert_eq!(code, 1);
    has(&error, &["was not imported", "no such module"]);
}

#[test]
fn after_a_kill_of_the_organism_a_call_is_made_again_only_if_that_is_harmless() {
    for (tool, answer, calls) in [("kill_us", "unknown outcome", 1), ("kill_us_safe", "called again", 2)] {
        let folder = imported(tool, "timeout: 50s");
        change(&folder, "limits:", "durability: process\njournal: the.journal\nlimits:");
        let mut running = Running::organism(&folder, &[]);
        running.tell(tool, "");
        until("the call", || folder.join("killed").exists().then_some(()));
        let server = fs::read_to_string(folder.join("started")).unwrap();
        drop(running);
        until("the end of the server", || (!runs(server.trim())).then_some(()));
        let mut again = Running::organism(&folder, &["--until-idle"]);
        drop(again.child.stdin.take());
        has(&again.receive(), &[answer]);
        assert_eq!(lines(&folder, "calls"), calls, "{tool}");
    }
}

#[test]
fn a_killed_server_is_started_again() {
    let folder = imported("killed", "timeout: 20s");
    // A call may reach a process that has ended, before that is known.
    change(&folder, "server.py] }", "server.py], repeat: always }");
    let mut running = Running::organism(&folder, &[]);
    for _ in 0..3 {
        has(&running.call("echo", "<text>x</text>"), &["<text>x</text>"]);
        let started = fs::read_to_string(folder.join("started")).unwrap();
        let last = started.lines().last().unwrap();
        kill_process(Pid::from_raw(last.parse().unwrap()).unwrap(), Signal::KILL).unwrap();
        until("the end of the server", || (!runs(last)).then_some(()));
    }
    has(&running.call("echo", "<text>x</text>"), &["<text>x</text>"]);
    assert_eq!(lines(&folder, "started"), 4);
}

/// Lets a program answer requests of the server: the key that names it, what it accepts, and what it replies with.
fn asks(folder: &Scratch, key: &str, (accepts, replies): (&str, &str)) {
    let name = key.split(": ").last().unwrap();
    change(folder, "server.py] }", &format!("server.py], {key} }}"));
    let listener = format!(
        "  - {{ name: {name}, command: [python3, {name}.py], accepts: ['{{urn:systole:mcp:v1}}{accepts}'], replies: ['{{urn:systole:mcp:v1}}{replies}'] }}\n"
    );
    change(folder, "listeners:\n", &format!("listeners:\n{listener}"));
}

#[test]
fn questions_of_a_server_go_to_a_listener_or_are_declined() {
    let folder = imported("ask", "timeout: 20s");
    has(&ask(&folder, "ask", ""), &["\"action\": \"decline\""]);
    has(&ask(&folder, "asks_at_once", ""), &["it asked more than 32 questions before it answered"]);
    asks(&folder, "questions: desk", ("elicitation", "elicited"));
    let answer = r#"
import sys
asked = sys.stdin.read()
assert 'server="t"' in asked and '<option>green</option>' in asked, asked
print('<elicited xmlns="urn:systole:mcp:v1" action="accept"><value name="color">green</value></elicited>')
"#;
    fs::write(folder.join("desk.py"), answer).unwrap();
    has(&ask(&folder, "ask", ""), &["{\"action\": \"accept\", \"content\": {\"color\": \"green\"}}"]);
    let answer = r#"
import sys
text = "7" if "no whole number" in sys.stdin.read() else "seven"
print(f'<elicited xmlns="urn:systole:mcp:v1" action="accept"><value name="age">{text}</value></elicited>')
"#;
    let first = fs::read_to_string(folder.join("desk.py")).unwrap();
    fs::write(folder.join("desk.py"), answer).unwrap();
    has(&ask(&folder, "age", ""), &["{\"action\": \"accept\", \"content\": {\"age\": 7}}"]);
    fs::write(folder.join("desk.py"), first).unwrap();
    has(&ask(&folder, "asks", ""), &["it asked more than 32 questions before it answered"]);
    // That of the question too many may still reach it.
    let answered = lines(&folder, "asked");
    assert!((32..=33).contains(&answered), "{answered}");
    change(&folder, "questions: desk", "questions: desc");
    assert_eq!(said(&folder, &["check", "organism.yaml"], "").0, 1);
}

#[test]
fn texts_of_a_server_are_completed_by_a_listener_within_the_budget_or_refused() {
    let folder = imported("complete", "timeout: 20s");
    has(&ask(&folder, "complete", ""), &["-32601"]);
    asks(&folder, "sampling: writer", ("sampling", "sampled"));
    has(&ask(&folder, "misasks", ""), &["-32602", "the parameters of sampling/createMessage are wrong"]);
    let answer = r#"
import sys
asked = sys.stdin.read()
assert '<system>Be brief.</system><message role="user">2 &lt; 3?</message>' in asked and 'tokens="7"' in asked, asked
print('<sampled xmlns="urn:systole:mcp:v1">yes &amp; no</sampled>')
"#;
    fs::write(folder.join("writer.py"), answer).unwrap();
    let completed = ask(&folder, "complete", "");
    has(&completed, &["\"text\": \"yes &amp; no\"", "\"role\": \"assistant\"", "\"model\": \"writer\""]);
    // A fault of the listener is the error of the request.
    fs::write(folder.join("writer.py"), "import sys; sys.exit('no words today')").unwrap();
    has(&ask(&folder, "complete", ""), &["\"code\": -32603"]);
    fs::write(folder.join("writer.py"), answer).unwrap();
    change(&folder, "calls: [t] }", "calls: [t], budget: { calls: 1 } }");
    has(&ask(&folder, "complete", ""), &["\"code\": -32603", "budget"]);
    change(&folder, "sampling: writer", "sampling: waiter");
    let (code, _, error) = said(&folder, &["check", "organism.yaml"], "");
    assert!(code == 1 && error.contains("waiter"), "{error}");
}

/// A server of the revision 2026-07-28.
const MODERN: &str = include_str!("mcp/modern.py");

/// A folder with an organism and a server of the revision 2026-07-28, which was imported.
fn modern(name: &str, keys: &str, skills: &[&str]) -> Scratch {
    let folder = Scratch::new(&format!("mcp-{name}"));
    fs::write(folder.join("server.py"), MODERN).unwrap();
    for skill in skills {
        let own = folder.join("skills").join(skill);
        fs::create_dir_all(&own).unwrap();
        let main = format!("---\nname: {skill}\ndescription: How to do {skill}.\n---\nFirst look at fees.md.\n");
        fs::write(own.join("SKILL.md"), main).unwrap();
        fs::write(own.join("fees.md"), "A fee is <5>.\n").unwrap();
    }
    fs::write(folder.join("organism.yaml"), ORGANISM.replace("KEYS", keys)).unwrap();
    let imported = folder.done(&["mcp", "import", "organism.yaml", "t"]);
    has(&imported, &["t: 2 tools of modern 1 (2026-07-28): complete, plain"]);
    assert_eq!(imported.contains("skill"), !skills.is_empty(), "{imported}");
    folder
}

#[test]
fn texts_of_a_server_without_a_session_are_completed_within_the_budget_or_its_call_fails() {
    let folder = modern("modern", "timeout: 20s", &[]);
    let why = "the MCP server failed the call of 'complete': it asked for the completion of a text, and nothing completes texts here";
    has(&ask(&folder, "complete", ""), &[why, "sampling"]);
    asks(&folder, "sampling: writer", ("sampling", "sampled"));
    let answer = r#"
import re, sys
asked = sys.stdin.read()
assert '<system>Be brief.</system>' in asked and 'tokens="7"' in asked, asked
number = re.search('role="user">([0-9]) &lt; 3', asked)[1]
print(f'<sampled xmlns="urn:systole:mcp:v1">word {number}</sampled>')
"#;
    fs::write(folder.join("writer.py"), answer).unwrap();
    // Other calls are in flight: each request tells its own call.
    has(&ask(&folder, "complete", ""), &["['word 0', 'word 1'] ['sampling'] writer"]);
    change(&folder, "calls: [t] }", "calls: [t], budget: { calls: 2 } }");
    has(&ask(&folder, "complete", ""), &["it asked for the completion of a text, and", "budget"]);
}

#[test]
fn skills_of_a_server_are_loaded_by_name_and_a_changed_one_is_refused() {
    let folder = modern("skills", "timeout: 20s", &["fees", "refunds"]);
    has(
        &said(&folder, &["prompt", "organism.yaml", "{urn:systole:mcp:server:t}skill"], "").1,
        &["- refunds: How to do refunds."],
    );
    let load = |arguments: &str| ask(&folder, "skill", arguments);
    let loaded = load("<name>refunds</name>");
    has(&loaded, &["<text>---\nname: refunds", "<link name=\"fees.md\" uri=\"skill://refunds/fees.md\"></link>"]);
    has(&load("<name>refunds</name><file>fees.md</file>"), &["<content", "<text>A fee is &lt;5&gt;."]);
    let (_, json, _) =
        said(&folder, &["ask", "organism.yaml", r#"{"skill": {"name": "fees", "file": "fees.md"}}"#], "");
    has(&json, &["A fee is <5>."]);
    has(&load("<name>refunds</name><file>other.md</file>"), &["has no file 'other.md': it has SKILL.md, fees.md"]);
    has(&load("<name>other</name>"), &["breaks its contract", "one of"]);
    assert_eq!(lines(&folder, "got"), 3, "a skill is asked for when it is loaded");

    // Its bytes are not those of its digest.
    fs::write(folder.join("lie"), "").unwrap();
    let lied = load("<name>refunds</name>");
    has(&lied, &["'refunds' of the MCP server 't' is not the one that was imported", "the manifest says"]);
    assert!(!lied.contains("id_rsa"), "{lied}");
    fs::remove_file(folder.join("lie")).unwrap();

    // It has another file: that skill is refused until it is imported again, and all else goes on.
    fs::write(folder.join("skills/refunds/fees.md"), "A fee is 7.\n").unwrap();
    let changed = load("<name>refunds</name>");
    has(&changed, &["is not the one that was imported: its file 'fees.md' has other content", "systole mcp import"]);
    has(&load("<name>fees</name>"), &["<text>---\nname: fees"]);
    has(&ask(&folder, "plain", ""), &["plain"]);
    let (code, shown, _) = said(&folder, &["mcp", "import", "organism.yaml", "t", "--dry-run"], "");
    assert_eq!(code, 1);
    has(&shown, &["the skill 'refunds': its file 'fees.md' has other content"]);
    has(&folder.done(&["mcp", "import", "organism.yaml", "t"]), &["t: 2 skills: fees, refunds"]);
    has(&load("<name>refunds</name><file>fees.md</file>"), &["A fee is 7."]);
    fs::remove_dir_all(folder.join("skills/refunds")).unwrap();
    has(&load("<name>refunds</name>"), &["it is gone: There is none"]);

    // A skill whose files may be any is not imported, and neither is anything of a server without the extension.
    fs::write(folder.join("fees.dynamic"), "").unwrap();
    let imported = folder.done(&["mcp", "import", "organism.yaml", "t"]);
    has(&imported, &["'fees' of the server is left out: its files change", "the skill 'refunds' is gone"]);
    assert!(!fs::read_to_string(folder.join("t.mcp.xsd")).unwrap().contains("\"skill\""));
    let lock = fs::read_to_string(folder.join("t.mcp.json")).unwrap();
    assert!(!lock.contains("skill"), "{lock}");
}

#[test]
fn an_ill_formed_skill_is_left_out_alone_and_a_list_that_fails_removes_none() {
    let folder = modern("skills-odd", "timeout: 20s", &["fees", "refunds"]);
    let files = || ["t.mcp.json", "t.mcp.xsd"].map(|file| fs::read_to_string(folder.join(file)).unwrap());
    let before = files();
    fs::write(folder.join("unlisted"), "").unwrap();
    for dry in [&["--dry-run"][..], &[]] {
        let (code, told, error) = said(&folder, &[&["mcp", "import", "organism.yaml", "t"][..], dry].concat(), "");
        let told = told + &error;
        assert_eq!(code, 1, "{told}");
        has(&told, &["'t' was not imported", "it does not list them: There is none", "t.mcp.json"]);
        assert_eq!(files(), before, "the files of the import before stay");
    }
    fs::remove_file(folder.join("unlisted")).unwrap();
    fs::write(folder.join("fees.odd"), "").unwrap();
    let imported = folder.done(&["mcp", "import", "organism.yaml", "t"]);
    let why = "the skill 'fees' of the server is left out: its `frontmatter.description` is missing, or is no text";
    has(&imported, &[why, "t: 1 skill: refunds"]);
}

#[test]
fn a_lock_whose_skill_was_changed_by_hand_is_refused() {
    let folder = modern("skill-edited", "timeout: 20s", &["refunds"]);
    let path = folder.join("t.mcp.json");
    let lock = fs::read_to_string(&path).unwrap();
    fs::write(&path, lock.replace("How to do refunds.", "How to do all.")).unwrap();
    let report = said(&folder, &["check", "organism.yaml"], "").2.replace('│', " ");
    let report = report.split_whitespace().collect::<Vec<_>>().join(" ");
    has(&report, &["the skill 'refunds' was changed in it by hand"]);
}

/// An organism whose model uses the tools and the skills of another one.
const LEARNER: &str = r#"organism: { name: learner }
llm: { backends: [{ name: script, provider: scripted, script: script.yaml }] }
clients: [{ name: cli, calls: [clerk] }]
listeners:
  - { name: desk, mcp: { command: [PROGRAM, mcp, ../desk/organism.yaml] }, timeout: 1min }
  - name: clerk
    model: { instructions: "Help with refunds." }
    schemas: [clerk.xsd]
    accepts: [task]
    replies: [answer]
    calls: [desk]
"#;

const DESK: &str = r#"organism: { name: desk }
durability: process
mcp: { as: peer, skills: [skills/refunds] }
clients: [{ name: peer, calls: [parrot] }]
listeners:
  - { name: parrot, echo: true, schemas: [desk.xsd], accepts: ["{urn:d}say"] }
"#;

/// The model loads the skill, then a file of it, and answers.
const SCRIPT: &str = r#"
- when: <task>
  answer: <skill xmlns="urn:systole:mcp:server:desk"><name>refunds</name></skill>
- when: A fee is five
  answer: <answer>five</answer>
- when: references/fees.md
  answer: <skill xmlns="urn:systole:mcp:server:desk"><name>refunds</name><file>references/fees.md</file></skill>
"#;

#[test]
fn a_model_loads_a_skill_of_another_organism_when_a_task_needs_it() {
    let folder = Scratch::new("mcp-learner");
    let (desk, learner) = (folder.join("desk"), folder.join("learner"));
    let references = desk.join("skills/refunds/references");
    fs::create_dir_all(&references).unwrap();
    fs::create_dir(&learner).unwrap();
    let xsd = |namespace: &str, elements: &[&str]| {
        let elements: String =
            elements.iter().map(|name| format!("<xs:element name=\"{name}\" type=\"xs:string\"/>")).collect();
        format!(
            "<xs:schema xmlns:xs=\"http://www.w3.org/2001/XMLSchema\" {namespace} elementFormDefault=\"qualified\">{elements}</xs:schema>"
        )
    };
    fs::write(desk.join("organism.yaml"), DESK).unwrap();
    fs::write(desk.join("desk.xsd"), xsd("targetNamespace=\"urn:d\"", &["say"])).unwrap();
    let main = "---\nname: refunds\ndescription: How to pay money back.\n---\nSee references/fees.md.\n";
    fs::write(desk.join("skills/refunds/SKILL.md"), main).unwrap();
    fs::write(references.join("fees.md"), "A fee is five.\n").unwrap();
    fs::write(references.join("form.bin"), [0xff, 0, 1]).unwrap();
    fs::write(learner.join("organism.yaml"), LEARNER.replace("PROGRAM", env!("CARGO_BIN_EXE_systole"))).unwrap();
    fs::write(learner.join("clerk.xsd"), xsd("", &["task", "answer"])).unwrap();
    fs::write(learner.join("script.yaml"), SCRIPT).unwrap();
    let run = |args: &[&str]| {
        let (code, out, error) = said(&learner, args, "");
        assert_eq!(code, 0, "{out}{error}");
        out
    };
    // That of the tools is one, too.
    has(
        &run(&["mcp", "import", "organism.yaml", "desk"]),
        &["desk: 1 tool of systole", "desk: 2 skills: desk, refunds"],
    );
    has(&run(&["prompt", "organism.yaml", "--listener", "clerk"]), &["- refunds: How to pay money back."]);
    has(&run(&["ask", "organism.yaml", "<task>Pay back</task>"]), &["<answer>five</answer>"]);
    // A file that is no text.
    fs::write(
        learner.join("organism.yaml"),
        fs::read_to_string(learner.join("organism.yaml")).unwrap().replace("calls: [clerk]", "calls: [desk]"),
    )
    .unwrap();
    let binary = r#"{"skill": {"name": "refunds", "file": "references/form.bin"}}"#;
    has(&run(&["ask", "organism.yaml", binary]), &["skill://refunds/references/form.bin", "/wAB"]);
}

#[test]
fn a_server_over_http_is_called_with_its_token() {
    let folder = Scratch::new("mcp-http");
    fs::write(folder.join("web.py"), include_str!("mcp/web.py")).unwrap();
    fs::write(folder.join("token"), "a-secret-of-the-server\n").unwrap();
    let server = std::process::Command::new("python3").arg("web.py").current_dir(&*folder).spawn().unwrap();
    let _server = Killed(server);
    let port = until("the port", || fs::read_to_string(folder.join("port")).ok().filter(|port| port.ends_with('\n')));
    let way = format!("url: 'http://127.0.0.1:{}/mcp', token_file: token", port.trim());
    fs::write(
        folder.join("organism.yaml"),
        ORGANISM.replace("command: [python3, server.py]", &way).replace("KEYS", "timeout: 20s"),
    )
    .unwrap();
    has(&folder.done(&["mcp", "import", "organism.yaml", "t"]), &["t: 4 tools of web 1 (2025-11-25)"]);
    has(&ask(&folder, "plain", ""), &["<text>as JSON</text>"]);
    has(&ask(&folder, "stream", ""), &["<text>as a stream</text>"]);
    let foreign = ask(&folder, "foreign", "");
    has(&foreign, &["<text>the right one</text>"]);
    assert!(!foreign.contains("<text>foreign"), "{foreign}");
    has(&ask(&folder, "deep", ""), &["can't be read as JSON", "127 levels"]);
    for (status, remedy, is_unknown) in [
        ("307", "/other, as the url", false),
        ("404", "as the url", false),
        ("405", "as the url", false),
        ("500", "the server answered HTTP 500", true),
    ] {
        fs::write(folder.join("status"), status).unwrap();
        let told = ask(&folder, "plain", "");
        has(&told, &[status, remedy]);
        assert!(told.contains("unknown outcome") == is_unknown && !told.contains("rmcp"), "{told}");
    }
    fs::remove_file(folder.join("status")).unwrap();
    fs::write(folder.join("token"), "another").unwrap();
    let told = ask(&folder, "plain", "");
    has(&told, &["401", "no such token", "token_file"]);
    assert!(!told.contains("unknown outcome") && !told.contains("rmcp"), "{told}");
}

/// A server whose answers to the handshake and to the list stand in a file.
const IMPORTED: &str = r#"
import json, sys
hello, listed = json.load(open("says.json"))
for line in sys.stdin:
    asked = json.loads(line)
    result = {"initialize": hello, "tools/list": listed}.get(asked.get("method"))
    if "id" in asked and result is not None:
        print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": result}), flush=True)
    elif "id" in asked and "method" in asked:
        error = {"code": -32601, "message": "no such method"}
        print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "error": error}), flush=True)
"#;

#[test]
fn an_import_writes_what_the_organism_takes_or_nothing() {
    let folder = Scratch::new("mcp-odd");
    fs::write(folder.join("server.py"), IMPORTED).unwrap();
    fs::write(folder.join("organism.yaml"), ORGANISM.replace(", KEYS", "")).unwrap();
    let hello = r#"{"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "s", "version": "1"}}"#;
    let import = |hello: &str, listed: &str| {
        fs::write(folder.join("says.json"), format!("[{hello}, {listed}]")).unwrap();
        let (code, out, error) = said(&folder, &["mcp", "import", "organism.yaml", "t"], "");
        (code, out + &error)
    };
    let bounds = r#"{"name": "odd", "inputSchema": {"type": "object", "properties": {"n": {"type": "integer", "minimum": 5, "maximum": 1}}}}"#;
    let plain = r#"{"name": "plain", "inputSchema": {"type": "object"}}"#;
    let (code, told) = import(hello, &format!(r#"{{"tools": [{bounds}, {plain}, {plain}]}}"#));
    assert_eq!(code, 0, "{told}");
    has(&told, &["'odd' takes any JSON as its arguments", "'plain' twice", "t: 2 tools of s 1"]);
    has(&said(&folder, &["check", "organism.yaml"], "").1, &["tools: ok"]);
    let files = || ["t.mcp.json", "t.mcp.xsd"].map(|file| fs::read_to_string(folder.join(file)).unwrap());
    let before = files();
    let deep = format!(r#"{{"name": "a", "inputSchema": {}1{}}}"#, r#"{"a":"#.repeat(130), "}".repeat(130));
    for (hello, tools, why) in [
        (hello.to_owned(), "[]", "lists no tools"),
        (hello.to_owned(), r#"[{"name": "a"}]"#, "the tool 'a' has no `inputSchema`"),
        (hello.to_owned(), r#"[{"nme": "a", "inputSchema": {}}]"#, "the tool number 1 of its list has no `name`"),
        (hello.to_owned(), &*format!("[{deep}]"), "can't be read as JSON: recursion limit exceeded"),
        (hello.replace("2025-11-25", "1066-10-14"), "[]", "the revision '1066-10-14'"),
        (hello.replace("serverInfo", "server"), "[]", "has no serverInfo"),
    ] {
        let (code, told) = import(&hello, &format!(r#"{{"tools": {tools}}}"#));
        assert_eq!(code, 1, "{told}");
        has(&told, &["'t' was not imported", why]);
        assert_eq!(files(), before, "the files of the import before stay");
    }
}

/// A program that is killed when the test drops it.
struct Killed(std::process::Child);

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
