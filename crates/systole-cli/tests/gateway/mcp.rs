//! Hosts of the Model Context Protocol: `systole mcp` on standard input and output, and `/mcp` over HTTP, in both revisions.

use std::fs;
use std::io::Write;
use std::process::{Child, ChildStdin, ExitStatus, Stdio};
use std::time::Duration;

use serde_json::{Value, json};

use crate::kit::{Answer, Site, Who};
use crate::waiting::{Lines, until};

/// An echo, an agent elsewhere, a program that waits for a file, one that fails, and the caller as a person.
const ORGANISM: &str = r#"organism: { name: hosts }
durability: process
gateway: { listen: "127.0.0.1:0", requests: 100000 }
mcp:
  as: host
  origins: ["http://x"]
  tools:
    - { call: parrot.say, name: say, title: Say, output: true, read_only: true, task: never }
    - { call: worker.ask, task: required }
clients:
  - { name: host, calls: [parrot, worker, slow, user, faulty, adder] }
  - { name: other, calls: [parrot, user] }
  - { name: cli, calls: [parrot] }
listeners:
  - { name: parrot, description: Repeats., echo: true, schemas: [t.xsd], accepts: ["{urn:t}say"], routing: addressed }
  - { name: worker, description: Works., remote: { mode: poll }, accepts: ["{urn:t}ask"], replies: ["{urn:t}answer"] }
  - name: slow
    command: [sh, -c, "touch began; while [ ! -e go ]; do sleep 0.02; done; echo '<answer xmlns=\"urn:t\">gone</answer>'"]
    accepts: ["{urn:t}order"]
    replies: ["{urn:t}answer"]
  - { name: faulty, command: [sh, -c, "echo broken >&2; exit 3"], accepts: ["{urn:t}fail"], replies: ["{urn:t}answer"] }
  - { name: adder, echo: true, accepts: ["{urn:t}sum"] }
  - { name: user, human: { people: [caller] }, accepts: ["{urn:t}note"], replies: ["{urn:t}answer"] }
"#;

const NEW: &str = "2026-07-28";

/// The `_meta` of a request of the stateless revision.
fn meta(capabilities: &Value) -> Value {
    json!({
        "io.modelcontextprotocol/protocolVersion": NEW,
        "io.modelcontextprotocol/clientInfo": { "name": "test", "version": "1" },
        "io.modelcontextprotocol/clientCapabilities": capabilities,
    })
}

fn tasks() -> Value {
    json!({ "extensions": { "io.modelcontextprotocol/tasks": {} } })
}

/// A request of the stateless revision over HTTP; the answer as it is.
fn request(who: &Who, method: &str, mut params: Value, capabilities: &Value) -> Answer {
    let name = params.get("name").or(params.get("uri")).or(params.get("taskId"));
    let name = name.and_then(Value::as_str).unwrap_or_default().to_owned();
    params["_meta"] = meta(capabilities);
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params }).to_string();
    let mut headers = headers();
    headers.extend([("MCP-Protocol-Version", NEW), ("Mcp-Method", method)]);
    if !name.is_empty() {
        headers.push(("Mcp-Name", &name));
    }
    who.ask("POST", "/mcp", &headers, &body)
}

fn headers() -> Vec<(&'static str, &'static str)> {
    vec![("Content-Type", "application/json"), ("Accept", "application/json, text/event-stream")]
}

/// The message of an answer: JSON, or the last one of a stream.
fn message(answer: &Answer) -> Value {
    let mut data = answer.body.lines().filter_map(|line| line.strip_prefix("data:")).map(str::trim);
    match data.rfind(|data| !data.is_empty()) {
        Some(data) => serde_json::from_str(data).unwrap_or_else(|_| panic!("{answer:?}")),
        None => answer.json(),
    }
}

/// The result of a request of the stateless revision.
#[track_caller]
fn result(who: &Who, method: &str, params: Value, capabilities: &Value) -> Value {
    let answer = request(who, method, params, capabilities).is(200);
    let message = message(&answer);
    assert!(message["result"].is_object(), "{message}");
    message["result"].clone()
}

/// A process of `systole mcp`.
struct Host {
    process: Child,
    input: Option<ChildStdin>,
    lines: Lines,
    log: Lines,
}

impl Host {
    fn of(site: &Site, args: &[&str]) -> Self {
        let mut command = site.systole(&[&["mcp", "organism.yaml"], args].concat());
        let mut process = command.stdin(Stdio::piped()).spawn().unwrap();
        let input = process.stdin.take();
        let lines = Lines::of(process.stdout.take().unwrap());
        let log = Lines::of(process.stderr.take().unwrap());
        Self { process, input, lines, log }
    }

    /// One that has begun a session of the older revision.
    fn initialized(site: &Site) -> Self {
        let mut host = Self::of(site, &[]);
        host.initialize(&json!({}));
        host
    }

    fn initialize(&mut self, capabilities: &Value) -> Value {
        let info = json!({ "name": "test", "version": "1" });
        let params = json!({ "protocolVersion": "2025-11-25", "capabilities": capabilities, "clientInfo": info });
        self.send(&json!({ "jsonrpc": "2.0", "id": "begin", "method": "initialize", "params": params }));
        let answer = self.answer(&json!("begin"));
        self.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
        answer["result"].clone()
    }

    fn send(&mut self, message: &Value) {
        self.write(&format!("{message}\n"));
    }

    fn write(&mut self, text: &str) {
        self.input.as_mut().unwrap().write_all(text.as_bytes()).unwrap();
    }

    fn call(&mut self, id: u64, tool: &str, arguments: &Value) {
        let params = json!({ "name": tool, "arguments": arguments });
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params }));
    }

    /// The next line: it is always a message.
    #[track_caller]
    fn next(&self) -> Value {
        let line = self.lines.next().unwrap_or_else(|error| panic!("no message: {error}"));
        let message: Value = serde_json::from_str(&line).unwrap_or_else(|_| panic!("no message: {line}"));
        assert_eq!(message["jsonrpc"], "2.0", "{message}");
        message
    }

    /// The answer to a request.
    #[track_caller]
    fn answer(&self, id: &Value) -> Value {
        loop {
            let message = self.next();
            if message["id"] == *id && message.get("method").is_none() {
                return message;
            }
        }
    }

    /// Ends standard input, and waits for the end of the process.
    fn end(mut self) -> ExitStatus {
        drop(self.input.take());
        self.process.wait().unwrap()
    }

    fn kill(mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }
}

fn text(result: &Value) -> &str {
    result["content"][0]["text"].as_str().unwrap_or_default()
}

#[test]
fn a_host_lists_calls_and_ends_over_standard_input_and_output() {
    let site = Site::idle(ORGANISM);
    let mut host = Host::of(&site, &[]);
    let begun = host.initialize(&json!({}));
    assert_eq!((&begun["protocolVersion"], &begun["serverInfo"]["title"]), (&json!("2025-11-25"), &json!("hosts")));
    host.send(&json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list" }));
    let listed = host.answer(&json!(1));
    let tools = listed["result"]["tools"].as_array().unwrap();
    let names: Vec<_> = tools.iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["say", "worker.ask", "slow.order", "user.note", "faulty.fail", "adder.sum"]);
    assert_eq!((&tools[0]["title"], &tools[0]["annotations"]["readOnlyHint"]), (&json!("Say"), &json!(true)));
    assert_eq!(tools[0]["description"], "Repeats.");
    assert_eq!(
        tools[0]["inputSchema"],
        json!({ "type": "object", "properties": { "$": { "type": "string" } }, "required": ["$"], "additionalProperties": false })
    );
    assert!(tools[0]["outputSchema"].is_object() && tools[1].get("outputSchema").is_none());
    host.call(2, "say", &json!({ "$": "hello" }));
    let said = host.answer(&json!(2))["result"].clone();
    assert_eq!((&said["structuredContent"], &said["isError"]), (&json!({ "$": "hello" }), &json!(false)));
    // A mistake and a failure are results that a model can act on.
    host.call(3, "slow.order", &json!({ "$": "many" }));
    let refused = host.answer(&json!(3))["result"].clone();
    // The place is that of the arguments: they are one value.
    assert_eq!((&refused["isError"], &refused["_meta"]["systole/fault"]["pointer"]), (&json!(true), &json!("")));
    assert!(text(&refused).contains("many") && text(&refused).contains("whole number"), "{refused}");
    host.call(4, "faulty.fail", &json!({ "$": "now" }));
    let failed = host.answer(&json!(4))["result"].clone();
    assert_eq!(
        (&failed["isError"], &failed["_meta"]["systole/fault"]["code"]),
        (&json!(true), &json!("failed")),
        "{failed}"
    );
    assert_eq!(host.end().code(), Some(0));
}

#[test]
fn lines_that_are_no_requests_are_answered_and_nothing_hangs() {
    let site = Site::idle(ORGANISM);
    let mut host = Host::of(&site, &[]);
    // Each line, and the code of the error that answers it.
    let before = [
        ("{oops", -32700),
        ("[]", -32600),
        ("7", -32600),
        (r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":"x"}"#, -32600),
        (r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#, -32602),
        (r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#, -32600),
        (r#"{"jsonrpc":"2.0","id":1e400,"method":"ping"}"#, -32600),
        (r#"{"jsonrpc":"2.0","id":"\ud800","method":"ping"}"#, -32600),
        (r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"capabilities":{},"capabilities":{}}}"#, -32602),
    ];
    for (line, code) in before {
        host.write(&format!("{line}\n"));
        let answer = host.next();
        assert_eq!(answer["error"]["code"], code, "{line}: {answer}");
        assert!(!answer["error"]["message"].as_str().unwrap().is_empty());
    }
    host.write("\n  \n");
    // A session that is refused leaves nothing behind.
    host.write("{\"jsonrpc\":\"2.0\",\"id\":3,\"method\":\"initialize\",\"params\":{\"capabilities\":[]}}\n");
    assert!(host.answer(&json!(3))["error"]["code"].is_number());
    host.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
    host.initialize(&json!({}));
    let unknown = json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": { "name": "nothing" } });
    let wrong = [
        (unknown, -32602, "say"),
        (json!({ "jsonrpc": "2.0", "id": 2, "method": "no/such" }), -32601, "no/such"),
        (
            json!({ "jsonrpc": "2.0", "id": 2, "method": "prompts/get", "params": { "name": "x" } }),
            -32602,
            "prompts/list",
        ),
        (
            json!({ "jsonrpc": "2.0", "id": 2, "method": "resources/read", "params": { "uri": "a://b" } }),
            -32002,
            "resources/list",
        ),
        (json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/list", "params": { "cursor": "x" } }), -32602, "cursor"),
        (json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/list", "params": { "cursor": 5 } }), -32602, "cursor"),
        (json!({ "jsonrpc": "2.0", "id": 2, "method": "prompts/list", "params": { "cursor": [] } }), -32602, "cursor"),
        (json!({ "jsonrpc": "2.0", "id": 2, "method": "resources/list", "params": { "cursor": 5 } }), -32602, "cursor"),
        (
            json!({ "jsonrpc": "2.0", "id": 2, "method": "resources/templates/list", "params": { "cursor": {} } }),
            -32602,
            "cursor",
        ),
        (json!({ "jsonrpc": "2.0", "id": 2, "method": "skills/list", "params": { "cursor": 5 } }), -32602, "cursor"),
        (
            json!({ "jsonrpc": "2.0", "id": 2, "method": "resources/subscribe", "params": { "uri": 5 } }),
            -32602,
            "the parameters of resources/subscribe are wrong",
        ),
        (
            json!({ "jsonrpc": "2.0", "id": 2, "method": "resources/unsubscribe", "params": { "uri": 5 } }),
            -32602,
            "the parameters of resources/unsubscribe are wrong",
        ),
        (
            json!({ "jsonrpc": "2.0", "id": 2, "method": "logging/setLevel", "params": { "level": 5 } }),
            -32602,
            "the parameters of logging/setLevel are wrong",
        ),
        (
            json!({ "jsonrpc": "2.0", "id": 2, "method": "initialize", "params": { "capabilities": 5 } }),
            -32602,
            "the parameters of initialize are wrong",
        ),
        // A tool that is a task always, for a client that declares none.
        (
            json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": { "name": "worker.ask", "arguments": { "$": 1 } } }),
            -32021,
            "capability",
        ),
        (
            json!({ "jsonrpc": "2.0", "id": 2, "method": "tasks/get", "params": { "taskId": "x" } }),
            -32021,
            "capability",
        ),
    ];
    for (request, code, words) in wrong {
        host.send(&request);
        let answer = host.answer(&json!(2));
        assert_eq!(answer["error"]["code"], code, "{request}: {answer}");
        assert!(answer["error"]["message"].as_str().unwrap().contains(words), "{answer}");
    }
    for (method, params, code, words) in [
        ("tools/list", r#"{"cursor":"0","cursor":"0"}"#, -32602, "the member 'cursor' is repeated in params"),
        (
            "ping",
            r#"{"_meta":{"progressToken":1,"progressToken":1}}"#,
            -32602,
            "'progressToken' is repeated in params._meta",
        ),
        ("logging/setLevel", r#"{"level":"info","level":"info"}"#, -32602, "'level' is repeated in params"),
        ("initialize", r#"{"capabilities":{},"capabilities":{}}"#, -32602, "'capabilities' is repeated in params"),
        ("ping", r#"{},"jsonrpc":"2.0""#, -32600, "the member 'jsonrpc' is repeated"),
        ("prompts/get", r#"{"name":"say","arguments":{"$":"a","$":"b"}}"#, -32602, "/$: the argument is repeated"),
    ] {
        host.write(&format!("{{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"{method}\",\"params\":{params}}}\n"));
        let answer = host.answer(&json!(2));
        assert_eq!(answer["error"]["code"], code, "{method} {params}: {answer}");
        assert!(answer["error"]["message"].as_str().unwrap().contains(words), "{answer}");
    }
    // A flood of one id, and a line without an end.
    host.call(9, "slow.order", &json!({ "$": 1 }));
    host.call(9, "slow.order", &json!({ "$": 1 }));
    assert_eq!(host.answer(&json!(9))["error"]["code"], -32600);
    host.write(&"x".repeat((16 << 20) + 10));
    host.write("\n");
    assert!(host.next()["error"]["message"].as_str().unwrap().contains("bytes"));
    // The same of a request that says its id first, and of one that the protocol allows, but the organism doesn't.
    host.call(11, "say", &json!({ "$": "x".repeat((16 << 20) + 10) }));
    assert!(host.answer(&json!(11))["error"]["message"].as_str().unwrap().contains("bytes"));
    host.call(12, "say", &json!({ "$": "x".repeat(3 << 20) }));
    let long = host.answer(&json!(12))["result"].clone();
    assert!(long["isError"] == true && text(&long).contains("bytes"), "{long}");
    host.write("[{\"jsonrpc\":\"2.0\",\"id\":13,\"method\":\"ping\"}]\n");
    let batch = host.next();
    assert_eq!((&batch["id"], &batch["error"]["code"]), (&Value::Null, &json!(-32600)), "{batch}");
    fs::write(site.folder.join("go"), "").unwrap();
    assert_eq!(text(&host.answer(&json!(9))["result"]), r#"{"$":"gone"}"#);
    host.write(r#"{"jsonrpc":"2.0","id":10,"method":"ping"}"#);
    assert_eq!(host.end().code(), Some(0), "the last line has no end");
}

#[test]
fn a_client_that_can_not_be_served_is_told_why() {
    let site = Site::idle(ORGANISM);
    for (args, words) in [(&["--as", "nobody"][..], "no client 'nobody'"), (&["--as", "worker"][..], "'worker'")] {
        let host = Host::of(&site, args);
        let said = host.log.until(words, |line| line.contains(words));
        assert!(said.contains("host"), "{said}");
        assert_eq!(host.end().code(), Some(2));
    }
    let mut site = Site::idle(ORGANISM);
    site.start();
    let host = Host::of(&site, &["--as", "cli"]);
    host.log.until("systole run", |line| line.contains("the output of `systole run`"));
    assert_eq!(host.end().code(), Some(2));
}

#[test]
fn hosts_share_an_organism_and_a_call_outlives_the_process_that_ran_it() {
    for end in [Host::kill, |host: Host| assert_eq!(host.end().code(), Some(0))] {
        outlives(end);
    }
}

fn outlives(end: impl FnOnce(Host)) {
    let site = Site::idle(ORGANISM);
    let first = Host::initialized(&site);
    let mut second = Host::initialized(&site);
    second.call(1, "slow.order", &json!({ "$": 1 }));
    until("the call to begin", || site.folder.join("began").exists().then_some(()));
    end(first);
    fs::write(site.folder.join("go"), "").unwrap();
    // The second one runs the organism now: the call goes on, and the host has seen nothing of it.
    assert_eq!(text(&second.answer(&json!(1))["result"]), r#"{"$":"gone"}"#);
    second.call(2, "say", &json!({ "$": "here" }));
    assert_eq!(second.answer(&json!(2))["result"]["structuredContent"], json!({ "$": "here" }));
    let mut third = Host::initialized(&site);
    third.call(1, "say", &json!({ "$": "too" }));
    assert_eq!(third.answer(&json!(1))["result"]["structuredContent"], json!({ "$": "too" }));
    assert_eq!((second.end().code(), third.end().code()), (Some(0), Some(0)));
}

#[test]
fn a_service_that_is_restarted_keeps_its_organism() {
    let mut site = Site::of(ORGANISM);
    let mut host = Host::initialized(&site);
    host.call(1, "say", &json!({ "$": "before" }));
    assert_eq!(host.answer(&json!(1))["result"]["structuredContent"], json!({ "$": "before" }));
    site.kill();
    site.start();
    host.call(2, "say", &json!({ "$": "after" }));
    assert_eq!(host.answer(&json!(2))["result"]["structuredContent"], json!({ "$": "after" }));
    assert_eq!(host.end().code(), Some(0));
    // It is the service's still.
    site.party("host").get("/readyz").is(200);
}

#[test]
fn a_cancelled_call_ends_its_conversation() {
    let mut site = Site::of(ORGANISM);
    let mut host = Host::initialized(&site);
    host.call(1, "slow.order", &json!({ "$": 1 }));
    until("the call to begin", || site.folder.join("began").exists().then_some(()));
    let cancelled = json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 1 } });
    host.send(&cancelled);
    // So many conversations with the program have ended, and none is open.
    let are_over = |site: &Site, count: usize| {
        let shown = site.systole(&["thread", "list", "--json"]).output().unwrap();
        let all: Vec<Value> = serde_json::from_slice(&shown.stdout).unwrap();
        let ended = |one: &&Value| one["open"] == false && one["listeners"] == json!(["slow"]);
        (all.len() == count && all.iter().filter(ended).count() == count).then_some(())
    };
    until("the conversation to end", || are_over(&site, 1));
    // The same by a stream of the stateless revision that its client closes.
    fs::remove_file(site.folder.join("began")).unwrap();
    let who = site.party("host");
    let params = json!({ "name": "slow.order", "arguments": { "$": 1 }, "_meta": meta(&json!({})) });
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params }).to_string();
    let mut all = headers();
    all.extend([("MCP-Protocol-Version", NEW), ("Mcp-Method", "tools/call"), ("Mcp-Name", "slow.order")]);
    let stream = who.connect_and(&who.request("POST", "/mcp", &all, &body));
    until("the call to begin", || site.folder.join("began").exists().then_some(()));
    drop(stream);
    until("the conversation to end", || are_over(&site, 2));
    assert_eq!(host.end().code(), Some(0));
    site.stop();
}

#[test]
fn a_task_has_its_result_after_the_process_was_killed() {
    let mut site = Site::of(ORGANISM);
    let (host, other) = (site.token(&["host"]), site.token(&["other"]));
    let worker = site.token(&["worker"]);
    let created =
        result(&site.who(&host), "tools/call", json!({ "name": "worker.ask", "arguments": { "$": 7 } }), &tasks());
    assert_eq!((&created["resultType"], &created["status"]), (&json!("task"), &json!("working")), "{created}");
    let task = json!({ "taskId": created["taskId"] });
    site.kill();
    site.start();
    let (who, agent) = (site.who(&host), site.who(&worker));
    assert_eq!(result(&who, "tasks/get", task.clone(), &tasks())["status"], "working");
    let leased = until("the message to come again", || agent.lease("worker", "{}").into_iter().next());
    assert_eq!(leased["id"].as_str().map(str::len), Some(36));
    agent
        .post(
            &format!("/v1/messages/{}/reply", leased["id"].as_str().unwrap()),
            r#"<answer xmlns="urn:t">seven</answer>"#,
        )
        .is(202);
    let done = until("the task to end", || {
        let state = result(&who, "tasks/get", task.clone(), &tasks());
        (state["status"] != "working").then_some(state)
    });
    assert_eq!(
        (&done["status"], &done["result"]["structuredContent"]),
        (&json!("completed"), &json!({ "$": "seven" }))
    );
    site.kill();
    site.start();
    let again = result(&site.who(&host), "tasks/get", task.clone(), &tasks());
    assert_eq!(
        (&again["result"], &again["lastUpdatedAt"]),
        (&done["result"], &done["lastUpdatedAt"]),
        "it changed once"
    );
    assert!(done["createdAt"].as_str() < done["lastUpdatedAt"].as_str(), "{done}");
    // To another client there is no such task; and one that has ended can be cancelled without an effect.
    let hidden = message(&request(&site.who(&other), "tasks/get", task.clone(), &tasks()));
    assert_eq!(hidden["error"]["code"], -32602, "{hidden}");
    result(&site.who(&host), "tasks/cancel", task.clone(), &tasks());
    assert_eq!(result(&site.who(&host), "tasks/get", task, &tasks())["status"], "completed");
    let next =
        result(&site.who(&host), "tools/call", json!({ "name": "worker.ask", "arguments": { "$": 8 } }), &tasks());
    let next = json!({ "taskId": next["taskId"] });
    result(&site.who(&host), "tasks/cancel", next.clone(), &tasks());
    until("the task to be cancelled", || {
        (result(&site.who(&host), "tasks/get", next.clone(), &tasks())["status"] == "cancelled").then_some(())
    });
    site.stop();
}

#[test]
fn a_question_to_the_caller_is_asked_through_its_host() {
    let mut site = Site::of(ORGANISM);
    let (host, other) = (site.party("host"), site.party("other"));
    let able = json!({ "elicitation": {} });
    let call = json!({ "name": "user.note", "arguments": { "$": "May I?" } });
    let asked = result(&host, "tools/call", call.clone(), &able);
    assert_eq!(asked["resultType"], "input_required", "{asked}");
    let (key, input) = asked["inputRequests"].as_object().unwrap().iter().next().unwrap();
    assert_eq!(input["method"], "elicitation/create");
    assert!(input["params"]["message"].as_str().unwrap().contains("May I?"), "{input}");
    assert_eq!(input["params"]["requestedSchema"]["properties"]["answer"]["type"], "string");
    let given = |answer: Value| {
        let mut retry = call.clone();
        retry["requestState"] = asked["requestState"].clone();
        retry["inputResponses"] = json!({ key: answer });
        retry
    };
    let yes = given(json!({ "action": "accept", "content": { "answer": "yes" } }));
    // The state is that of one client, of one tool, and as it was.
    let stolen = message(&request(&other, "tools/call", yes.clone(), &able));
    assert_eq!(stolen["error"]["code"], -32602, "{stolen}");
    let mut elsewhere = yes.clone();
    elsewhere["name"] = json!("say");
    assert_eq!(message(&request(&host, "tools/call", elsewhere, &able))["error"]["code"], -32602);
    let empty = result(&host, "tools/call", given(json!({ "action": "perhaps" })), &able);
    assert_eq!(empty["resultType"], "input_required", "{empty}");
    // The question waits for its answer over a restart, too.
    site.kill();
    site.start();
    let host = site.who(&host.token);
    let answered = result(&host, "tools/call", yes, &able);
    assert_eq!(answered["structuredContent"], json!({ "$": "yes" }), "{answered}");
    // A host that can't ask is refused, and the question ends.
    let unable = request(&host, "tools/call", call.clone(), &json!({}));
    assert_eq!((unable.status, message(&unable)["error"]["code"].clone()), (400, json!(-32021)), "{unable:?}");
    // A host of sessions is asked in the midst of its call.
    let mut session = Host::of(&site, &[]);
    session.initialize(&able);
    session.call(1, "user.note", &json!({ "$": "And now?" }));
    let asked = session.next();
    assert_eq!(asked["method"], "elicitation/create", "{asked}");
    let answer = json!({ "action": "decline" });
    session.send(&json!({ "jsonrpc": "2.0", "id": asked["id"], "result": answer }));
    let declined = session.answer(&json!(1))["result"].clone();
    assert_eq!(declined["isError"], true, "{declined}");
    assert!(text(&declined).contains("declined"), "{declined}");
    assert_eq!(session.end().code(), Some(0));
    site.stop();
}

#[test]
fn an_answer_to_a_dialog_of_a_process_that_was_killed_reaches_no_other_question() {
    let site = Site::idle(ORGANISM);
    let first = Host::initialized(&site);
    let mut host = Host::of(&site, &[]);
    host.initialize(&json!({ "elicitation": {} }));
    let dialog = |host: &Host, words: &str| loop {
        let message = host.next();
        if message["method"] == "elicitation/create" {
            assert!(message["params"]["message"].as_str().unwrap().contains(words), "{message}");
            return message["id"].clone();
        }
    };
    let give = |host: &mut Host, id: &Value, answer: &str| {
        let result = json!({ "action": "accept", "content": { "answer": answer } });
        host.send(&json!({ "jsonrpc": "2.0", "id": id, "result": result }));
    };
    let said = |host: &Host, id: u64| text(&host.answer(&json!(id))["result"]).to_owned();
    host.call(1, "user.note", &json!({ "$": "ready" }));
    let ready = dialog(&host, "ready");
    give(&mut host, &ready, "yes");
    assert_eq!(said(&host, 1), r#"{"$":"yes"}"#);
    host.call(2, "user.note", &json!({ "$": "read" }));
    let read = dialog(&host, "read");
    host.call(3, "user.note", &json!({ "$": "delete" }));
    let delete = dialog(&host, "delete");
    first.kill();
    // The old dialogs are withdrawn, and the questions come again under other ids.
    let (mut withdrawn, mut again) = (Vec::new(), Vec::new());
    while withdrawn.len() < 2 || again.len() < 2 {
        let message = host.next();
        match message["method"].as_str() {
            Some("notifications/cancelled") => withdrawn.push(message["params"]["requestId"].clone()),
            Some("elicitation/create") => again.push(message),
            _ => {}
        }
    }
    assert_eq!(withdrawn, [read.clone(), delete.clone()]);
    let of = |words: &str| {
        let is_it = |message: &&Value| message["params"]["message"].as_str().is_some_and(|text| text.contains(words));
        again.iter().find(is_it).unwrap_or_else(|| panic!("{again:?}"))["id"].clone()
    };
    let (read_again, delete_again) = (of("read"), of("delete"));
    for id in [&read_again, &delete_again] {
        assert!(![&ready, &read, &delete].contains(&id), "{again:?}");
    }
    for old in [&ready, &read, &delete] {
        give(&mut host, old, "old");
    }
    give(&mut host, &delete_again, "no");
    assert_eq!(said(&host, 3), r#"{"$":"no"}"#);
    give(&mut host, &read_again, "seen");
    assert_eq!(said(&host, 2), r#"{"$":"seen"}"#);
    assert_eq!(host.end().code(), Some(0));
}

#[test]
fn questions_that_a_client_leaves_hold_up_nobody() {
    let site = Site::of(ORGANISM);
    let (host, other) = (site.party("host"), site.party("other"));
    let able = json!({ "elicitation": {} });
    let ask = |who: &Who, text: &str| {
        result(who, "tools/call", json!({ "name": "user.note", "arguments": { "$": text } }), &able)
    };
    // More than the handlers of a listener elsewhere, and as many as a client may leave.
    for number in 0..128 {
        let asked = ask(&other, &format!("left {number}"));
        assert_eq!(asked["resultType"], "input_required", "{number}: {asked}");
    }
    let refused = ask(&other, "one more");
    assert!(refused["isError"] == true && text(&refused).contains("128 calls of 'other'"), "{refused}");
    assert_eq!(ask(&host, "May I?")["resultType"], "input_required");
}

#[test]
fn arguments_arrive_as_they_were_written() {
    let mut site = Site::of(ORGANISM);
    let mut session = Host::initialized(&site);
    let who = site.party("host");
    let mut id = 0;
    // Each way has the same arguments, as text, and returns the result.
    let mut both = |arguments: &str| {
        id += 1;
        session.write(&format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"adder.sum","arguments":{arguments}}}}}"#
        ));
        session.write("\n");
        let meta = meta(&json!({}));
        let body = format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"adder.sum","arguments":{arguments},"_meta":{meta}}}}}"#
        );
        let mut all = headers();
        all.extend([("MCP-Protocol-Version", NEW), ("Mcp-Method", "tools/call"), ("Mcp-Name", "adder.sum")]);
        [session.answer(&json!(id)), message(&who.ask("POST", "/mcp", &all, &body))]
    };
    // A number that programs may round is a text in results.
    for (given, shown) in [("123456789012345678901234567890", "\"123456789012345678901234567890\""), ("-7", "-7")] {
        for answer in both(&format!(r#"{{"$": {given}}}"#)) {
            assert_eq!(text(&answer["result"]), format!(r#"{{"$":{shown}}}"#), "{answer}");
        }
    }
    for answer in both(r#"{"$": 1, "$": 2}"#) {
        let result = &answer["result"];
        assert!(result["isError"] == true && text(result).contains("is repeated"), "{answer}");
    }
    for wrong in ["[]", "\"x\"", "5"] {
        for answer in both(wrong) {
            assert_eq!(answer["error"]["code"], -32602, "{wrong}: {answer}");
            assert!(answer["error"]["message"].as_str().unwrap().contains("object"), "{wrong}: {answer}");
        }
    }
    assert_eq!(session.end().code(), Some(0));
    site.stop();
}

/// A request, its status, and words of the refusal.
type Refused<'t> = (&'t Who, Vec<(&'t str, &'t str)>, String, u16, &'t str);

#[test]
fn what_comes_over_http_is_checked_and_refused_with_a_reason() {
    let site = Site::of(ORGANISM);
    let (host, worker) = (site.party("host"), site.party("worker"));
    let ping = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
    let list = |version: &str| {
        let mut meta = meta(&json!({}));
        meta["io.modelcontextprotocol/protocolVersion"] = json!(version);
        json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": { "_meta": meta } }).to_string()
    };
    let with = |more: &[(&'static str, &'static str)]| [headers(), more.to_vec()].concat();
    let new = [("MCP-Protocol-Version", NEW), ("Mcp-Method", "tools/list")];
    let wrong: Vec<Refused<'_>> = vec![
        (&worker, with(&[]), ping.into(), 403, "token of a client"),
        (&host, with(&[("Origin", "https://evil.example")]), ping.into(), 403, "origins"),
        (&host, with(&[("Origin", "null")]), ping.into(), 403, "origins"),
        (&host, vec![("Content-Type", "application/json")], ping.into(), 406, "text/event-stream"),
        (&host, vec![("Content-Type", "text/csv"), ("Accept", "*/*")], ping.into(), 415, "application/json"),
        (&host, with(&[]), ping.into(), 400, "initialize"),
        (&host, with(&[("Mcp-Session-Id", "none")]), ping.into(), 404, "initialize"),
        (&host, with(&[]), "{oops".into(), 400, "-32700"),
        (&host, with(&[]), "[]".into(), 400, "-32600"),
        (&host, with(&[]), "".into(), 400, "-32700"),
        (
            &host,
            with(&[]),
            r#"{"jsonrpc":"2.0","id":7,"method":"ping","jsonrpc":"2.0"}"#.into(),
            400,
            r#""id":7,"error":{"code":-32600,"message":"the member 'jsonrpc' is repeated"#,
        ),
        (&host, with(&new), list(NEW).replace("{\"_meta\"", "{\"cursor\":5,\"_meta\""), 400, "the cursor is a text"),
        (
            &host,
            with(&[]),
            r#"{"jsonrpc":"2.0","id":7,"method":"initialize","params":{"capabilities":{},"capabilities":{}}}"#.into(),
            400,
            "the member 'capabilities' is repeated in params",
        ),
        (&host, with(&[("Idempotency-Key", "")]), ping.into(), 400, "1 to 255"),
        (&host, with(&[("Origin", "http://x"), ("Origin", "https://evil.example")]), ping.into(), 403, "origins"),
        (&host, with(&[("MCP-Protocol-Version", "1999-01-01")]), ping.into(), 400, "1999-01-01"),
        (&host, with(&[("MCP-Protocol-Version", NEW), ("Mcp-Method", "tools/call")]), list(NEW), 400, "-32020"),
        (&host, with(&[("MCP-Protocol-Version", NEW)]), list(NEW), 400, "-32020"),
        (
            &host,
            with(&[("MCP-Protocol-Version", "2025-11-25"), ("Mcp-Method", "tools/list")]),
            list(NEW),
            400,
            "-32020",
        ),
        (
            &host,
            with(&[("MCP-Protocol-Version", "2027-01-01"), ("Mcp-Method", "tools/list")]),
            list("2027-01-01"),
            400,
            "-32022",
        ),
        (&host, with(&new), r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#.into(), 400, "_meta"),
        (&host, with(&[]), "x".repeat(8 << 20), 413, "bytes"),
    ];
    for (who, headers, body, status, words) in wrong {
        let answer = who.ask("POST", "/mcp", &headers, &body);
        let shown = &body[..body.len().min(100)];
        assert!(
            answer.status == status || status == 400 && matches!(answer.status, 400 | 415 | 422),
            "{shown} {headers:?}: {answer:?}"
        );
        assert!(answer.body.contains(words), "{shown} {headers:?}: {answer:?}");
    }
    assert_eq!(site.who("wrong").ask("POST", "/mcp", &headers(), ping).status, 401);
    assert_eq!(host.ask("PUT", "/mcp", &headers(), ping).status, 405);
    let unknown = message(&request(&host, "tools/call", json!({ "name": "nothing" }), &json!({})));
    assert!(unknown["error"]["message"].as_str().unwrap().contains("worker.ask"), "{unknown}");
    let host_of_page = host.ask("POST", "/mcp", &[headers(), vec![("Origin", "http://localhost:3000")]].concat(), ping);
    assert_ne!(host_of_page.status, 403, "a page of this machine may call: {host_of_page:?}");
    // A session belongs to the principal that began it.
    let info =
        json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "t", "version": "1" } });
    let begin = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": info }).to_string();
    let begun = host.ask("POST", "/mcp", &headers(), &begin).is(200);
    let session = begun.header("mcp-session-id").unwrap().to_owned();
    let mut in_session = headers();
    in_session.push(("Mcp-Session-Id", &session));
    let stolen = site.party("other").ask("POST", "/mcp", &in_session, ping);
    let none = host.ask("POST", "/mcp", &[headers(), vec![("Mcp-Session-Id", "none")]].concat(), ping);
    let [stolen, none] = [stolen, none].map(|answer| answer.problem(404, "not_found")["detail"].clone());
    assert_eq!(stolen, none, "a session of another client looks like none");
    host.ask("DELETE", "/mcp", &in_session, "");
    // A client that begins sessions without an end has its other calls.
    for _ in 0..64 {
        host.ask("POST", "/mcp", &headers(), &begin);
    }
    host.ask("POST", "/mcp", &headers(), &begin).problem(429, "sessions");
    assert_eq!(
        result(&host, "tools/call", json!({ "name": "say", "arguments": { "$": "a" } }), &json!({}))["isError"],
        false
    );
    until("the session to end", || (host.ask("POST", "/mcp", &in_session, ping).status == 404).then_some(()));
}

#[test]
fn signs_of_progress_come_while_a_call_is_under_way() {
    let site = Site::idle(ORGANISM);
    let mut host = Host::initialized(&site);
    let params = json!({ "name": "slow.order", "arguments": { "$": 1 }, "_meta": { "progressToken": "p" } });
    host.send(&json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params }));
    let told = host.next();
    assert_eq!((&told["method"], &told["params"]["progressToken"]), (&json!("notifications/progress"), &json!("p")));
    assert!(told["params"]["progress"].as_f64().unwrap() >= Duration::from_secs(10).as_secs_f64(), "{told}");
    fs::write(site.folder.join("go"), "").unwrap();
    assert_eq!(text(&host.answer(&json!(1))["result"]), r#"{"$":"gone"}"#);
    assert_eq!(host.end().code(), Some(0));
}

#[test]
fn a_call_shows_nothing_and_ends_once_its_token_is_revoked() {
    let site = Site::of(ORGANISM);
    let host = site.party("host");
    let mut meta = meta(&json!({}));
    meta["progressToken"] = json!("p");
    let params = json!({ "name": "slow.order", "arguments": { "$": 1 }, "_meta": meta });
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params }).to_string();
    let headers =
        [headers(), vec![("MCP-Protocol-Version", NEW), ("Mcp-Method", "tools/call"), ("Mcp-Name", "slow.order")]]
            .concat();
    let call = host.connect_and(&host.request("POST", "/mcp", &headers, &body));
    until("the call to begin", || site.folder.join("began").exists().then_some(()));
    assert!(site.systole(&["token", "revoke", "host"]).output().unwrap().status.success());
    // The program goes on until its conversation is cancelled: the file that it waits for never comes.
    let answer = crate::kit::answer(call);
    assert!(!answer.body.contains("notifications/progress"), "{answer:?}");
    assert!(message(&answer)["error"]["message"].as_str().unwrap().contains("the token was revoked"), "{answer:?}");
}

/// Prompts with values, a program with a large result, a person who may call, and a folder of a skill.
const FACE: &str = r#"organism: { name: "My Shop" }
durability: process
limits: { message_bytes: 24MiB }
gateway: { listen: "127.0.0.1:0" }
mcp:
  as: host
  origins: ["http://x"]
  tools: [{ call: parrot.say, name: say }]
  prompts: [{ call: sums.order, name: sum }]
  skills: [skills/refunds]
clients: [{ name: host, calls: [parrot, sums, large, user, keeper] }]
listeners:
  - { name: parrot, description: Repeats., echo: true, schemas: [t.xsd], accepts: ["{urn:t}say"] }
  - { name: sums, echo: true, accepts: ["{urn:t}order"] }
  - name: large
    command: [sh, -c, "echo '<answer xmlns=\"urn:t\">'; head -c 17000000 /dev/zero | tr '\\0' x; echo '</answer>'"]
    accepts: ["{urn:t}fail"]
    replies: ["{urn:t}answer"]
  - name: user
    human: { people: [caller] }
    accepts: ["{urn:t}note"]
    replies: ["{urn:t}answer"]
    calls: [parrot]
  - { name: keeper, echo: true, schemas: [kept.schema.json], accepts: [kept] }
"#;

/// A site of that organism, with the files of the skill.
fn faced() -> Site {
    let site = Site::idle(FACE);
    let skill = site.folder.join("skills/refunds");
    fs::create_dir_all(skill.join("references/deep")).unwrap();
    let main = "---\nname: refunds\ndescription: Pays back.\nlicense: MIT\n---\n# Refunds\n";
    fs::write(skill.join("SKILL.md"), main).unwrap();
    fs::write(skill.join("references/a b.md"), "text").unwrap();
    fs::write(skill.join("references/deep/picture.png"), [0xff, 0, 1]).unwrap();
    fs::write(skill.join(".hidden"), "not served").unwrap();
    let kept = json!({ "type": "object", "properties": { "n": { "type": "number", "maximum": 1000 } }, "additionalProperties": {} });
    fs::write(site.folder.join("kept.schema.json"), kept.to_string()).unwrap();
    site
}

#[test]
fn skills_are_listed_with_all_of_their_files_and_read() {
    let mut site = faced();
    site.start();
    let host = site.party("host");
    let ask = |method: &str, params: Value| result(&host, method, params, &json!({}));
    let able = ask("server/discover", json!({}))["capabilities"]["extensions"].clone();
    assert_eq!(able["io.modelcontextprotocol/skills"], json!({ "directoryRead": true }), "{able}");
    let listed = ask("skills/list", json!({}));
    assert!(listed["ttlMs"].is_number() && listed["cacheScope"] == "private", "{listed}");
    let [refunds, own] = listed["skills"].as_array().unwrap().as_slice() else { panic!("{listed}") };
    assert_eq!(refunds["uri"], "skill://refunds/SKILL.md");
    assert_eq!(refunds["frontmatter"], json!({ "name": "refunds", "description": "Pays back.", "license": "MIT" }));
    let files: Vec<_> =
        refunds["resources"].as_array().unwrap().iter().map(|file| file["uri"].as_str().unwrap()).collect();
    let all = [
        "skill://refunds/SKILL.md",
        "skill://refunds/references/a%20b.md",
        "skill://refunds/references/deep/picture.png",
    ];
    assert_eq!(files, all, "without what is hidden");
    assert_eq!(refunds["resources"][1]["size"], 4);
    // As `printf text | sha256sum` prints it.
    let digest = "sha256:982d9e3eb996f559e633f4d194def3761d909f5a3b647d1a851fead67c32c9d1";
    assert_eq!(refunds["resources"][1]["digest"], digest);
    assert_eq!(ask("skills/get", json!({ "uri": all[0] }))["skill"], *refunds);
    let read = |uri: &str| ask("resources/read", json!({ "uri": uri }))["contents"][0].clone();
    let main = read(all[0]);
    assert_eq!(
        (&main["mimeType"], main["text"].as_str().map(str::len)),
        (&json!("text/markdown"), refunds["resources"][0]["size"].as_u64().map(|size| size as usize))
    );
    assert_eq!(read(all[1])["text"], "text");
    assert_eq!((&read(all[2])["mimeType"], &read(all[2])["blob"]), (&json!("image/png"), &json!("/wAB")));
    // That of the tools is made of the contracts.
    assert_eq!(own["uri"], "skill://my-shop/SKILL.md");
    let main = read("skill://my-shop/SKILL.md")["text"].as_str().unwrap().to_owned();
    assert!(main.contains("[say](references/say.md): Repeats."), "{main}");
    let say = read("skill://my-shop/references/say.md")["text"].as_str().unwrap().to_owned();
    assert!(say.contains("such as\n\n    {\"$\":") && say.contains("urn:t"), "{say}");
    // Folders, and what is none.
    let folder = |uri: &str| {
        let listed = ask("resources/directory/read", json!({ "uri": uri }));
        let names =
            |child: &Value| format!("{} {}", child["name"].as_str().unwrap(), child["mimeType"].as_str().unwrap());
        listed["resources"].as_array().unwrap().iter().map(names).collect::<Vec<_>>()
    };
    assert_eq!(folder("skill://refunds"), ["refunds text/markdown", "references inode/directory"]);
    assert_eq!(folder("skill://refunds/references"), ["a%20b.md text/markdown", "deep inode/directory"]);
    for (method, uri) in [
        ("resources/directory/read", "skill://refunds/SKILL.md"),
        ("resources/directory/read", "skill://"),
        ("skills/get", "skill://refunds/references/SKILL.md"),
        ("resources/read", "skill://refunds/.hidden"),
        ("resources/read", "skill://refunds/../refunds/SKILL.md"),
    ] {
        let refused = message(&request(&host, method, json!({ "uri": uri }), &json!({})));
        assert_eq!(refused["error"]["code"], -32602, "{method} {uri}: {refused}");
    }
    // A host without the extension finds it among the resources.
    let resources = ask("resources/list", json!({}))["resources"].to_string();
    assert!(resources.contains(all[0]) && !resources.contains(all[1]), "{resources}");
    site.stop();
}

#[test]
fn a_skill_that_hosts_would_refuse_keeps_the_organism_from_running() {
    let site = faced();
    let skill = site.folder.join("skills/refunds");
    let refused = |part: &str| {
        let output = site.systole(&["check", "organism.yaml"]).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.code() == Some(1) && said.contains(part), "{part}: {said}");
    };
    std::os::unix::fs::symlink("/etc/passwd", skill.join("link")).unwrap();
    refused("link is a symbolic link");
    fs::remove_file(skill.join("link")).unwrap();
    fs::write(skill.join("SKILL.md"), "---\nname: other\ndescription: a\n---\n").unwrap();
    refused("its name is 'other', and its folder 'refunds'");
    fs::write(skill.join("large"), vec![0; 17 << 20]).unwrap();
    refused("its files have more than 16777216 bytes");
    fs::remove_dir_all(&skill).unwrap();
    refused("can't be read");
}

#[test]
fn arguments_of_a_prompt_are_texts() {
    let mut site = faced();
    site.start();
    let host = site.party("host");
    let listed = result(&host, "prompts/list", json!({}), &json!({}));
    let argument = &listed["prompts"][0]["arguments"][0];
    assert_eq!(
        (&argument["name"], &argument["description"]),
        (&json!("$"), &json!("Write a whole number, such as 2."))
    );
    let ask = |text: &str| {
        message(&request(&host, "prompts/get", json!({ "name": "sum", "arguments": { "$": text } }), &json!({})))
    };
    let written = ask("77");
    assert!(written["result"]["messages"].to_string().contains("77"), "{written}");
    let refused = ask("many");
    assert_eq!(
        (&refused["error"]["code"], &refused["error"]["data"]["pointer"]),
        (&json!(-32602), &json!("/$")),
        "{refused}"
    );
    assert!(refused["error"]["message"].as_str().unwrap().contains("a whole number"), "{refused}");
    site.stop();
}

#[test]
fn json_keeps_its_digits_there_and_back() {
    let mut site = faced();
    site.start();
    let host = site.party("host");
    let mut session = Host::initialized(&site);
    let mut id = 0;
    let mut both = |method: &str, name: &str, arguments: &str| {
        id += 1;
        let params = format!(r#"{{"name":"{name}","arguments":{arguments}"#);
        let begun = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{params}"#);
        session.write(&format!("{begun}}}}}\n"));
        let line = session.lines.next().unwrap();
        let mut all = headers();
        all.extend([("MCP-Protocol-Version", NEW), ("Mcp-Method", method), ("Mcp-Name", name)]);
        let body = format!("{begun},\"_meta\":{}}}}}", meta(&json!({})));
        [line, host.ask("POST", "/mcp", &all, &body).body]
    };
    let exact = r#"{"b":[123456789012345678901234567890,1.50,1e400],"a":{"n":-0.0}}"#;
    for answer in both("tools/call", "keeper.kept", exact) {
        assert!(answer.contains(&format!(r#""structuredContent":{exact}"#)), "{answer}");
    }
    // What the library of the protocol can't read is judged as all else.
    for (arguments, why) in
        [(r#"{"n": 1e400}"#, "found 1e400, expected at most 1000"), (r#"{"n": 1, "n": 2}"#, "is repeated")]
    {
        for answer in both("tools/call", "keeper.kept", arguments) {
            assert!(answer.contains(r#""isError":true"#) && answer.contains(why), "{answer}");
        }
    }
    for (method, name, arguments, key) in [
        ("tools/call", "keeper.kept", r#"{"n": 1}, "arguments": {"n": 2}"#, "arguments"),
        ("tools/call", "keeper.kept", r#"{"n": 1}, "name": "keeper.kept""#, "name"),
        ("prompts/get", "sum", r#"{"$": "1"}, "arguments": {"$": "2"}"#, "arguments"),
        ("prompts/get", "sum", r#"{"$": "1"}, "name": "sum""#, "name"),
    ] {
        for answer in both(method, name, arguments) {
            let why = format!("the member '{key}' is repeated");
            assert!(answer.contains("-32602") && answer.contains(&why), "{method} {arguments}: {answer}");
        }
    }
    for answer in both("tools/call", "sum", r#"{"$": 1e400}"#) {
        assert!(answer.contains("Unknown tool"), "{answer}");
    }
    for answer in both("prompts/get", "sum", r#"{"$": "1", "$": "2"}"#) {
        assert!(answer.contains("-32602") && answer.contains("/$: the argument is repeated"), "{answer}");
    }
    assert_eq!(session.end().code(), Some(0));
    site.stop();
}

#[test]
fn a_result_that_is_too_long_for_a_line_is_an_error_that_names_the_limit() {
    let site = faced();
    let mut host = Host::initialized(&site);
    host.call(1, "large.fail", &json!({ "$": "now" }));
    let refused = host.answer(&json!(1));
    assert_eq!(refused["error"]["code"], -32603, "{}", refused.to_string().chars().take(500).collect::<String>());
    assert!(refused["error"]["message"].as_str().unwrap().contains("16777216 bytes"), "{refused}");
    host.call(2, "say", &json!({ "$": "on" }));
    assert_eq!(text(&host.answer(&json!(2))["result"]), r#"{"$":"on"}"#);
    assert_eq!(host.end().code(), Some(0));
}

#[test]
fn a_request_with_a_long_id_takes_effect_once() {
    let mut site = faced();
    site.start();
    let mut host = Host::of(&site, &[]);
    host.initialize(&json!({ "elicitation": {} }));
    let id = "x".repeat(300);
    let params = json!({ "name": "user.note", "arguments": { "$": "once" } });
    host.send(&json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params }));
    let open = |site: &Site| {
        let output = site.systole(&["thread", "list", "--open", "--json"]).output().unwrap();
        String::from_utf8(output.stdout).unwrap().matches("\"host\"").count()
    };
    until("the conversation", || (open(&site) == 1).then_some(()));
    // The process of the organism ends, and the relay sends the request again to the next one.
    site.kill();
    site.start();
    host.call(7, "say", &json!({ "$": "on" }));
    host.answer(&json!(7));
    assert_eq!(open(&site), 1, "it is the same conversation");
    host.kill();
    site.stop();
}

#[test]
fn a_person_may_call_before_the_answer_and_is_asked_again_with_what_came() {
    let mut site = faced();
    site.start();
    let host = site.party("host");
    let able = json!({ "elicitation": {} });
    let call = json!({ "name": "user.note", "arguments": { "$": "May I?" } });
    let mut asked = result(&host, "tools/call", call.clone(), &able);
    let mut given = |json: &str| {
        let (key, _) = asked["inputRequests"].as_object().unwrap().iter().next().unwrap();
        let mut retry = call.clone();
        retry["inputResponses"] = json!({ key: { "action": "accept", "content": { "answer": json } } });
        retry["requestState"] = asked["requestState"].clone();
        asked = result(&host, "tools/call", retry, &able);
        asked.clone()
    };
    let again = given(r#"{"say": "What do you say?"}"#);
    assert_eq!(again["resultType"], "input_required", "{again}");
    let said = again["inputRequests"].to_string();
    assert!(said.contains("May I?") && said.contains("What do you say?"), "{said}");
    assert_eq!(given(r#"{"answer": "yes"}"#)["structuredContent"], json!({ "$": "yes" }));
    // The same in a session.
    let mut session = Host::of(&site, &[]);
    session.initialize(&able);
    session.call(1, "user.note", &json!({ "$": "And now?" }));
    for answer in [r#"{"say": "Hm."}"#, r#"{"answer": "no"}"#] {
        let asked = session.next();
        assert_eq!(asked["method"], "elicitation/create", "{asked}");
        let content = json!({ "answer": answer });
        session.send(
            &json!({ "jsonrpc": "2.0", "id": asked["id"], "result": { "action": "accept", "content": content } }),
        );
    }
    assert_eq!(text(&session.answer(&json!(1))["result"]), r#"{"$":"no"}"#);
    assert_eq!(session.end().code(), Some(0));
    site.stop();
}
