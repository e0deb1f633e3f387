//! `systole model serve`: a script answers organisms, and clients of the protocols of OpenAI and Anthropic.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::Stdio;

use serde_json::{Value, json};

use crate::kit::running::Running;
use crate::kit::{Scratch, has};

const SCRIPT: &str = r#"
- when: order tea
  answer: I order.
  call: { name: order, arguments: '{"article": "tea"}' }
- when: "ordered"
  answer: done and done
  pace: 1ms
- listener: planner
  when: <do
  answer: <say xmlns='urn:t'>R&D</say>
- when: long
  answer: one two three four
"#;

/// A server of the script; it is killed when the test drops it.
struct Server {
    folder: Scratch,
    running: Running,
    url: String,
}

impl Server {
    fn new(name: &str) -> Self {
        let folder = Scratch::new(&format!("serve-{name}"));
        fs::write(folder.join("script.yaml"), SCRIPT).unwrap();
        let log = fs::File::create(folder.join("log")).unwrap();
        let mut serve = folder.systole(&["model", "serve", "script.yaml", "--listen", "127.0.0.1:0"]);
        let mut running = Running::of(serve.stdout(Stdio::piped()).stderr(log).spawn().unwrap());
        let url = running.receive().trim_end().to_owned();
        Self { folder, running, url }
    }

    fn connect(&self) -> TcpStream {
        TcpStream::connect(self.url.strip_prefix("http://").unwrap()).unwrap()
    }

    /// Sends a request, and returns the status and the body of the answer.
    fn ask(&self, method: &str, path: &str, body: &str) -> (u16, String) {
        let mut stream = self.connect();
        let head = format!(
            "{method} {path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n",
            body.len()
        );
        stream.write_all(head.as_bytes()).unwrap();
        // A body that is refused may not be read.
        let _ = stream.write_all(body.as_bytes());
        let mut all = String::new();
        stream.read_to_string(&mut all).unwrap();
        let (head, body) = all.split_once("\r\n\r\n").unwrap_or_else(|| panic!("no head in {all}"));
        (head[9..12].parse().unwrap(), body.to_owned())
    }

    fn answer(&self, path: &str, body: &Value) -> Value {
        let (status, body) = self.ask("POST", path, &body.to_string());
        assert_eq!(status, 200, "{body}");
        serde_json::from_str(&body).unwrap()
    }

    #[track_caller]
    fn refused(&self, method: &str, path: &str, body: &str, status: u16, parts: &[&str]) {
        let (found, body) = self.ask(method, path, body);
        assert_eq!(found, status, "{body}");
        let error: Value = serde_json::from_str(&body).unwrap();
        assert_eq!(error["type"], "error", "{body}");
        has(error["error"]["message"].as_str().unwrap(), parts);
    }
}

fn chat(text: &str) -> Value {
    json!({
        "model": "scripted", "messages": [{ "role": "user", "content": text }],
        "tools": [{ "type": "function", "function": { "name": "order" } }],
    })
}

#[test]
fn each_protocol_calls_a_tool_and_goes_on_with_its_result() {
    let server = Server::new("tools");
    let first = server.answer("/v1/chat/completions", &chat("order tea"));
    let choice = &first["choices"][0];
    assert_eq!(choice["finish_reason"], "tool_calls", "{first}");
    let call = &choice["message"]["tool_calls"][0];
    assert_eq!(call["function"], json!({ "name": "order", "arguments": "{\"article\": \"tea\"}" }));
    let mut next = chat("order tea");
    let turns = next["messages"].as_array_mut().unwrap();
    turns.push(choice["message"].clone());
    turns.push(json!({ "role": "tool", "tool_call_id": call["id"], "content": "ordered" }));
    assert_eq!(server.answer("/v1/chat/completions", &next)["choices"][0]["message"]["content"], "done and done");

    let tools = json!([{ "type": "namespace", "name": "shop", "tools": [{ "type": "function", "name": "order" }] }]);
    let asked = json!({ "model": "m", "input": "order tea", "tools": tools });
    server.refused("POST", "/v1/responses", &asked.to_string(), 400, &["the tools shop.order", "says: order tea"]);
    let tools = json!([{ "type": "function", "name": "order" }]);
    let first = server.answer("/v1/responses", &json!({ "model": "m", "input": "order tea", "tools": tools }));
    assert_eq!(
        (&first["output"][0]["content"][0]["text"], &first["output"][1]["name"]),
        (&json!("I order."), &json!("order"))
    );

    let asked = json!({ "model": "m", "max_tokens": 9, "messages": [{ "role": "user", "content": "order tea" }], "tools": [{ "name": "order" }] });
    let first = server.answer("/v1/messages", &asked);
    assert_eq!(
        (&first["stop_reason"], &first["content"][1]["input"]),
        (&json!("tool_use"), &json!({ "article": "tea" }))
    );
}

#[test]
fn a_stream_has_the_words_as_they_come_and_ends_as_its_protocol_says() {
    let server = Server::new("stream");
    let stream = |path: &str, body: Value| {
        let (status, said) = server.ask("POST", path, &body.to_string());
        assert_eq!(status, 200, "{said}");
        said
    };
    let mut asked = chat("ordered");
    asked["stream"] = true.into();
    let said = stream("/v1/chat/completions", asked);
    has(&said, &[r#""content":"done""#, r#""content":" and""#, r#""finish_reason":"stop""#, "data: [DONE]\n\n"]);
    let said = stream("/v1/responses", json!({ "model": "m", "input": "ordered", "stream": true }));
    has(
        &said,
        &["event: response.created\n", r#""delta":" and""#, "event: response.completed\n", r#""sequence_number":0"#],
    );
    let turns = json!([{ "role": "user", "content": "ordered" }]);
    let said = stream("/v1/messages", json!({ "model": "m", "max_tokens": 9, "messages": turns, "stream": true }));
    has(&said, &["event: message_start\n", r#""text":" and""#, r#""stop_reason":"end_turn""#, "event: message_stop\n"]);
}

#[test]
fn a_request_that_is_none_is_refused_with_what_to_write() {
    let server = Server::new("refused");
    let chats = "/v1/chat/completions";
    server.refused("POST", chats, "{", 400, &["the body is no JSON"]);
    server.refused("POST", chats, "[]", 400, &["the body is no object"]);
    server.refused("POST", chats, r#"{"model":"m"}"#, 400, &["messages: write a list"]);
    server.refused("POST", "/v1/messages", r#"{"model":"m","messages":[{}]}"#, 400, &["max_tokens: write"]);
    server.refused(
        "POST",
        chats,
        &chat("nothing").to_string(),
        400,
        &["no rule of script.yaml fits", "the tools order", "says: nothing"],
    );
    server.refused("POST", "/v1/embeddings", "{}", 404, &["there is no POST /v1/embeddings", "/v1/responses"]);
    server.refused("GET", chats, "", 404, &["there is no GET /v1/chat/completions"]);
    let large = chat(&"x".repeat(16 << 20)).to_string();
    server.refused("POST", chats, &large, 413, &["16777216 bytes"]);
    let (_, models) = server.ask("GET", "/v1/models", "");
    has(&models, &[r#""id":"scripted""#, r#""id":"planner""#]);
    // It goes on, and says what it was asked.
    let cut = server.answer(
        "/v1/messages",
        &json!({ "model": "m", "max_tokens": 2, "messages": [{ "role": "user", "content": "long" }] }),
    );
    assert_eq!((&cut["content"][0]["text"], &cut["stop_reason"]), (&json!("one two "), &json!("max_tokens")));
    has(&fs::read_to_string(server.folder.join("log")).unwrap(), &["fits the request", "status=400", "rule=4"]);
}

#[test]
fn an_organism_asks_it_as_a_provider() {
    let server = Server::new("organism");
    let schema = r#"<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema" targetNamespace="urn:t"><xs:element name="do" type="xs:string"/><xs:element name="say" type="xs:string"/></xs:schema>"#;
    fs::write(server.folder.join("t.xsd"), schema).unwrap();
    fs::write(server.folder.join("key"), "any").unwrap();
    for (provider, url) in [("openai", format!("{}/v1", server.url)), ("anthropic", server.url.clone())] {
        let organism = format!(
            "organism: {{ name: o }}\nclients: [{{ name: cli, calls: [planner] }}]\n\
             llm: {{ backends: [{{ name: b, provider: {provider}, model: planner, url: \"{url}\", api_key_file: key }}] }}\n\
             listeners: [{{ name: planner, model: {{ instructions: Plan. It is a test. }}, schemas: [t.xsd], accepts: [\"{{urn:t}}do\"], \
             replies: [\"{{urn:t}}say\"] }}]\n"
        );
        fs::write(server.folder.join("organism.yaml"), organism).unwrap();
        let said = server.folder.done(&["ask", "organism.yaml", "<do xmlns='urn:t'>plan</do>"]);
        assert_eq!(said, "<say xmlns=\"urn:t\">R&amp;D</say>\n", "{provider}");
    }
}

#[test]
fn what_can_not_be_served_is_told_before() {
    let server = Server::new("before");
    let refused = |args: &[&str], parts: &[&str]| {
        let output = server.folder.command(&[&["model", "serve"], args].concat());
        assert_eq!((output.status.code(), &*output.stdout), (Some(2), &b""[..]), "{output:?}");
        has(&String::from_utf8(output.stderr).unwrap(), parts);
    };
    let taken = server.url.strip_prefix("http://").unwrap();
    refused(&["script.yaml", "--listen", taken], &["can't listen at", "--listen"]);
    refused(&["none.yaml"], &["can't read none.yaml"]);
    for (script, part) in [
        ("- when: a\n", "a rule needs a key 'answer'"),
        ("- call: { name: a, arguments: '[1]' }\n", "the arguments of a call are no JSON object"),
        ("- call: { arguments: '{}' }\n", "a call needs a key 'name'"),
        ("- answer: a\n  colour: red\n", "unknown key 'colour'"),
        ("a: [\n", "invalid YAML"),
    ] {
        fs::write(server.folder.join("wrong.yaml"), script).unwrap();
        refused(&["wrong.yaml"], &[part, "wrong.yaml"]);
    }
}

#[test]
fn a_signal_ends_it() {
    let mut server = Server::new("signal");
    let pid = rustix::process::Pid::from_child(&server.running.child);
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    assert_eq!(server.running.child.wait().unwrap().code(), Some(0));
}
