//! Traces by OTLP, as a collector gets them from the program.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::sync::{Arc, Mutex};

use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::{KeyValue, any_value};
use opentelemetry_proto::tonic::trace::v1::Span;
use prost::Message;
use serde_json::Value;

use crate::kit::Scratch;
use crate::kit::waiting::until;

const EXAMPLES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples");

/// A collector that keeps what it gets.
#[derive(Clone, Default)]
struct Collector {
    requests: Arc<Mutex<Vec<ExportTraceServiceRequest>>>,
    heads: Arc<Mutex<String>>,
}

impl Collector {
    fn start() -> (Self, SocketAddr) {
        let (collector, listener) = (Self::default(), TcpListener::bind("127.0.0.1:0").unwrap());
        let (kept, address) = (collector.clone(), listener.local_addr().unwrap());
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let kept = kept.clone();
                std::thread::spawn(move || kept.serve(stream.unwrap()));
            }
        });
        (collector, address)
    }

    fn serve(&self, stream: TcpStream) {
        let mut read = BufReader::new(stream.try_clone().unwrap());
        let mut write = stream;
        loop {
            let (mut line, mut length) = (String::new(), 0);
            loop {
                line.clear();
                if read.read_line(&mut line).unwrap_or(0) == 0 {
                    return;
                }
                *self.heads.lock().unwrap() += &line.to_ascii_lowercase();
                if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                    length = value.trim().parse().unwrap();
                }
                if line == "\r\n" {
                    break;
                }
            }
            let mut body = vec![0; length];
            read.read_exact(&mut body).unwrap();
            self.requests.lock().unwrap().push(ExportTraceServiceRequest::decode(&*body).unwrap());
            write.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").unwrap();
        }
    }

    fn spans(&self) -> Vec<Span> {
        let requests = self.requests.lock().unwrap();
        let scopes = requests.iter().flat_map(|request| &request.resource_spans).flat_map(|spans| &spans.scope_spans);
        scopes.flat_map(|scope| scope.spans.clone()).collect()
    }
}

fn text(attributes: &[KeyValue], key: &str) -> Option<String> {
    let value = attributes.iter().find(|attribute| attribute.key == key)?.value.as_ref()?.value.as_ref()?;
    Some(match value {
        any_value::Value::StringValue(text) => text.clone(),
        any_value::Value::IntValue(number) => number.to_string(),
        other => panic!("{key}: {other:?}"),
    })
}

/// Runs an organism with messages, and variables that name a collector.
fn run(organism: &str, messages: &[&str], variables: &[(&str, &str)]) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_systole"))
        .args(["run", "organism.yaml", "-", "--until-idle", "--json"])
        .current_dir(Path::new(EXAMPLES).join(organism))
        .env_remove("SYSTOLE_LOG")
        .envs(variables.iter().copied())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let (mut input, all) = (child.stdin.take().unwrap(), messages.concat());
    let writer = std::thread::spawn(move || drop(input.write_all(all.as_bytes())));
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap();
    output
}

/// The conversation of a thread, its path, and the path of the thread above it.
type Edge = (String, String, Option<String>);

/// The trees of the events.
fn trees(events: &str) -> BTreeSet<Edge> {
    let events = events.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    // The thread of boot stays open.
    let opened = |event: &Value| event["event"] == "thread-opened" && !event["path"].as_str().unwrap().contains('<');
    let opened: Vec<_> = events.filter(opened).collect();
    let paths: BTreeMap<_, _> = opened.iter().map(|event| (event["thread"].to_string(), &event["path"])).collect();
    let edge = |event: &Value| {
        let parent = event.get("parent").map(|parent| paths[&parent.to_string()].as_str().unwrap().to_owned());
        (event["root"].as_str().unwrap().replace('-', ""), event["path"].as_str().unwrap().to_owned(), parent)
    };
    opened.iter().map(edge).collect()
}

const QUESTION: &str = "<question><subject>R&amp;D</subject><figure>20</figure><figure>22</figure></question>\n";

#[test]
fn the_spans_of_conversations_are_the_trees_of_their_threads() {
    let (collector, address) = Collector::start();
    let endpoint = format!("http://{address}");
    let messages: Vec<_> = (0..6).map(|_| QUESTION).collect();
    let variables = [("OTEL_EXPORTER_OTLP_ENDPOINT", &*endpoint), ("OTEL_EXPORTER_OTLP_HEADERS", "x-team=red")];
    let output = run("swarm", &messages, &variables);
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert!(collector.heads.lock().unwrap().contains("post /v1/traces"), "{}", collector.heads.lock().unwrap());
    assert!(collector.heads.lock().unwrap().contains("x-team: red"), "{}", collector.heads.lock().unwrap());
    let service = collector.requests.lock().unwrap()[0].resource_spans[0].resource.clone().unwrap();
    assert_eq!(text(&service.attributes, "service.name").as_deref(), Some("swarm"));
    let spans = collector.spans();
    let ids: BTreeMap<_, _> = spans.iter().map(|span| (span.span_id.clone(), span)).collect();
    assert_eq!(ids.len(), spans.len(), "no id is there twice");
    // Each has its conversation, and its parent in it.
    for span in &spans {
        let conversation = text(&span.attributes, "gen_ai.conversation.id").unwrap();
        assert_eq!(hex(&span.trace_id), conversation.replace('-', ""), "{span:?}");
        assert_eq!(text(&span.attributes, "session.id"), Some(conversation));
        assert!(span.start_time_unix_nano <= span.end_time_unix_nano, "{span:?}");
        if !span.parent_span_id.is_empty() {
            let parent = ids[&span.parent_span_id];
            assert_eq!(parent.trace_id, span.trace_id);
            assert!(parent.start_time_unix_nano <= span.start_time_unix_nano, "{span:?}\n{parent:?}");
        }
    }
    // The threads are those of the events.
    let of_threads: Vec<_> = spans.iter().filter(|span| text(&span.attributes, "systole.path").is_some()).collect();
    let path = |span: &Span| text(&span.attributes, "systole.path").unwrap();
    let edge =
        |span: &&Span| (hex(&span.trace_id), path(span), ids.get(&span.parent_span_id).map(|parent| path(parent)));
    let trees = trees(&said);
    assert_eq!(of_threads.iter().map(edge).collect::<BTreeSet<_>>(), trees);
    assert_eq!((of_threads.len(), trees.iter().filter(|(.., parent)| parent.is_none()).count()), (trees.len(), 6));
    // A run of a handler is below its thread, which may have several.
    let names: BTreeSet<_> = spans.iter().map(|span| span.name.as_str()).collect();
    let wanted = ["invoke_workflow swarm", "invoke_agent researcher", "execute_tool calculator", "process calculator"];
    assert!(wanted.iter().all(|name| names.contains(name)), "{names:?}");
    for run in spans.iter().filter(|span| span.name == "process calculator") {
        assert_eq!(ids[&run.parent_span_id].name, "execute_tool calculator");
        assert_eq!(text(&run.attributes, "messaging.system").as_deref(), Some("systole"));
    }
}

/// A client's span, and an organism in which a worker asks a command: both tell the caller that they are given.
const CALLER: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
const TELLING: &str = r#"
organism: { name: telling }
clients: [{ name: cli, calls: ['{urn:t}do'] }]
listeners:
- name: agent
  worker: [python3, agent.py]
  schemas: [t.xsd]
  env: ['PYTHONPATH=ROOT/sdk/python']
  accepts: ['{urn:t}do']
  replies: ['{urn:t}say']
  calls: ['{urn:t}ask']
- name: command
  command: [sh, -c, 'echo "<say xmlns=\"urn:t\">$TRACEPARENT</say>"']
  accepts: ['{urn:t}ask']
  replies: ['{urn:t}say']
durability: process
journal: the.journal
"#;
const TELLING_SCHEMA: &str = r#"<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema" targetNamespace="urn:t">
  <xs:element name="do" type="xs:string"/><xs:element name="say" type="xs:string"/><xs:element name="ask" type="xs:string"/>
</xs:schema>"#;
const TELLING_AGENT: &str = r#"
from systole_sdk import call, listener, message, run

@listener("{urn:t}do")
async def do(xml: str):
    answer = await call("<ask xmlns='urn:t'/>")
    told = answer.split(">")[1].split("<")[0]
    return f"<say xmlns='urn:t'>{message().traceparent} {told}</say>"

run()
"#;

/// Makes a folder with that organism.
fn telling(name: &str) -> Scratch {
    let folder = Scratch::new(name);
    let root = Path::new(EXAMPLES).parent().unwrap().display().to_string();
    fs::write(folder.join("organism.yaml"), TELLING.replace("ROOT", &root)).unwrap();
    fs::write(folder.join("t.xsd"), TELLING_SCHEMA).unwrap();
    fs::write(folder.join("agent.py"), TELLING_AGENT).unwrap();
    let meta = format!("<meta><traceparent xmlns='urn:systole:meta:v1'>{CALLER}</traceparent></meta>");
    let envelope =
        format!("<message xmlns='https://xml-pipeline.org/ns/envelope/v1'>{meta}<do xmlns='urn:t'>x</do></message>");
    fs::write(folder.join("do.xml"), envelope).unwrap();
    folder
}

/// The callers that the worker and the command of that organism tell.
fn told(folder: &Scratch, variables: &[(&str, &str)]) -> (String, String) {
    let mut command = folder.systole(&["run", "organism.yaml", "do.xml", "--until-idle", "--again"]);
    let output = command.envs(variables.iter().copied()).output().unwrap();
    let (out, said) = (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap());
    assert_eq!(output.status.code(), Some(0), "{said}");
    let told = out.split_once("urn:t\">").and_then(|(_, rest)| rest.split_once('<')).map(|(told, _)| told);
    let (agent, command) = told.and_then(|told| told.split_once(' ')).unwrap_or_else(|| panic!("{out}{said}"));
    (agent.to_owned(), command.to_owned())
}

#[test]
fn a_conversation_is_a_part_of_its_caller_s_trace_and_programs_learn_of_theirs() {
    let (collector, address) = Collector::start();
    let endpoint = format!("http://{address}");
    let folder = telling("callers");
    let exports = [("OTEL_EXPORTER_OTLP_ENDPOINT", &*endpoint)];
    let (agent, command) = told(&folder, &exports);
    let spans = collector.spans();
    let of_caller: Vec<_> =
        spans.iter().filter(|span| hex(&span.trace_id) == "4bf92f3577b34da6a3ce929d0e0e4736").collect();
    let named = |name: &str| *of_caller.iter().find(|span| span.name == name).unwrap_or_else(|| panic!("{spans:?}"));
    assert_eq!(hex(&named("invoke_workflow telling").parent_span_id), "00f067aa0ba902b7");
    let thread = named("invoke_agent agent");
    assert_eq!(thread.parent_span_id, named("invoke_workflow telling").span_id);
    assert_eq!(named("execute_tool command").parent_span_id, thread.span_id);
    for (told, run) in [(&agent, "process agent"), (&command, "process command")] {
        assert_eq!(*told, format!("00-4bf92f3577b34da6a3ce929d0e0e4736-{}-01", hex(&named(run).span_id)), "{run}");
    }
    // Without traces of the organism they learn of the caller.
    assert_eq!(told(&folder, &[]), (CALLER.to_owned(), CALLER.to_owned()));
    // The caller decides what is sampled, unless the sampler is one that asks no caller.
    let before = collector.spans().len();
    let own = |sampler| [exports[0], ("OTEL_TRACES_SAMPLER", sampler)];
    told(&folder, &own("parentbased_always_off"));
    assert!(collector.spans().len() > before);
    let after = collector.spans().len();
    let (agent, _) = told(&folder, &own("always_off"));
    assert!(agent.starts_with("00-4bf92f3577b34da6a3ce929d0e0e4736-") && agent.ends_with("-00"), "{agent}");
    assert_eq!(collector.spans().len(), after);
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn requests_to_a_model_are_spans_with_their_tokens() {
    let (collector, address) = Collector::start();
    let task = std::fs::read_to_string(Path::new(EXAMPLES).join("model/task.xml")).unwrap();
    let endpoint = format!("http://{address}/v1/traces");
    let output =
        run("model", &[&task], &[("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", &endpoint), ("OTEL_SERVICE_NAME", "desk")]);
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(0), "{said}");
    let service = collector.requests.lock().unwrap()[0].resource_spans[0].resource.clone().unwrap();
    assert_eq!(text(&service.attributes, "service.name").as_deref(), Some("desk"));
    let spans = collector.spans();
    let chats: Vec<_> = spans.iter().filter(|span| span.name.starts_with("chat ")).collect();
    let answered = said.lines().filter(|line| line.contains("\"event\":\"model-answered\"")).count();
    assert!(answered > 1 && chats.len() == answered, "{answered}: {chats:?}");
    for chat in chats {
        let run = spans.iter().find(|span| span.span_id == chat.parent_span_id).expect("a run of the handler");
        assert_eq!(run.name, "process planner");
        assert!(text(&chat.attributes, "gen_ai.usage.input_tokens").unwrap().parse::<u64>().unwrap() > 0, "{chat:?}");
        assert_eq!(text(&chat.attributes, "gen_ai.operation.name").as_deref(), Some("chat"));
        assert_eq!(text(&chat.attributes, "gen_ai.agent.name").as_deref(), Some("planner"));
    }
    let all = format!("{spans:?}");
    assert!(!all.contains("Oslo") && !all.contains("<task"), "no content is sent: {all}");
}

/// A place of a span: its trace, its id, its parent, and its name, kind and error.
type Placed = (String, String, String, String, i32, bool);

fn placed(collector: &Collector) -> BTreeSet<Placed> {
    let spans = collector.spans();
    let count = spans.len();
    let place = |span: Span| {
        let failed = span.status.is_some_and(|status| status.code == 2);
        (hex(&span.trace_id), hex(&span.span_id), hex(&span.parent_span_id), span.name, span.kind, failed)
    };
    let placed: BTreeSet<_> = spans.into_iter().map(place).collect();
    assert_eq!(placed.len(), count, "no span is there twice");
    placed
}

#[test]
fn old_conversations_are_exported_with_the_ids_that_they_had() {
    let folder = telling("export");
    let example = Path::new(EXAMPLES).join("model");
    for file in fs::read_dir(&example).unwrap() {
        let file = file.unwrap();
        fs::copy(file.path(), folder.join(file.file_name())).unwrap();
    }
    let organism = fs::read_to_string(folder.join("organism.yaml")).unwrap();
    assert!(!organism.contains("journal:"));
    fs::write(folder.join("organism.yaml"), organism + "\ndurability: process\njournal: the.journal\n").unwrap();
    let (live, address) = Collector::start();
    let endpoint = format!("http://{address}");
    // The second is refused.
    for message in ["task.xml", "do.xml"] {
        let mut command = folder.systole(&["run", "organism.yaml", message, "--until-idle"]);
        command.env("OTEL_EXPORTER_OTLP_ENDPOINT", &endpoint);
        let output = command.output().unwrap();
        assert!(output.status.code().is_some_and(|code| code < 2), "{}", String::from_utf8_lossy(&output.stderr));
    }
    let live = placed(&live);
    assert!(live.iter().any(|(.., name, _, _)| name.starts_with("chat ")), "{live:?}");
    let export = |args: &[&str]| {
        let (collector, address) = Collector::start();
        let mut command = folder.systole(&[&["thread", "export", "--otlp"], args].concat());
        command.env("OTEL_EXPORTER_OTLP_ENDPOINT", format!("http://{address}"));
        let output = command.output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{said}");
        (placed(&collector), String::from_utf8(output.stdout).unwrap())
    };
    let (first, printed) = export(&["--json"]);
    assert_eq!(first, live);
    let printed: Value = serde_json::from_str(&printed).unwrap();
    assert_eq!(printed["spans"], first.len(), "{printed}");
    assert_eq!(export(&[]).0, first, "the same ids each time");
    let conversation = &first.iter().next().unwrap().0;
    let (one, _) = export(&[&conversation[24..]]);
    assert_eq!(one, first.iter().filter(|placed| placed.0 == *conversation).cloned().collect());
    assert!(export(&["--since", "2100-01-01T00:00:00Z"]).0.is_empty());
}

#[test]
fn an_export_without_a_collector_says_so() {
    let folder = telling("nowhere");
    told(&folder, &[]);
    let export = |endpoint: Option<&str>| {
        let mut command = folder.systole(&["thread", "export", "--otlp"]);
        command.env_remove("OTEL_EXPORTER_OTLP_ENDPOINT");
        let output = command.envs(endpoint.map(|url| ("OTEL_EXPORTER_OTLP_ENDPOINT", url))).output().unwrap();
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    let (code, said) = export(None);
    assert!(code == Some(2) && said.contains("set OTEL_EXPORTER_OTLP_ENDPOINT"), "{said}");
    let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let (code, said) = export(Some(&format!("http://{address}")));
    assert!(code == Some(1) && said.contains("the collector did not take"), "{said}");
}

#[test]
fn a_dead_collector_costs_a_line_of_the_log() {
    // Nobody listens at the port of a socket that is closed.
    let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let endpoint = format!("http://{address}");
    let output = run("swarm", &[QUESTION; 3], &[("OTEL_EXPORTER_OTLP_ENDPOINT", &endpoint)]);
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert_eq!(String::from_utf8(output.stdout).unwrap().matches("<total>42</total>").count(), 3);
    assert_eq!(said.matches("spans are lost").count(), 1, "{said}");
}

#[test]
fn a_collector_that_does_not_answer_does_not_hold_the_end() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let endpoint = format!("http://{}", listener.local_addr().unwrap());
    let folder = Scratch::new("silent-collector");
    let mut command = folder.systole(&["ask", "organism.yaml", QUESTION]);
    command.current_dir(Path::new(EXAMPLES).join("swarm")).stdout(Stdio::null()).stderr(Stdio::null());
    // Without the bound of the end it would take this long.
    command.envs([("OTEL_EXPORTER_OTLP_ENDPOINT", &*endpoint), ("OTEL_EXPORTER_OTLP_TIMEOUT", "600000")]);
    let mut child = command.spawn().unwrap();
    let ended = until("the end of the program", || child.try_wait().unwrap());
    assert_eq!(ended.code(), Some(0));
    assert!(listener.accept().is_ok(), "spans were on their way");
}

#[test]
fn variables_switch_traces_off_or_are_refused() {
    let (collector, address) = Collector::start();
    let endpoint = format!("http://{address}");
    for off in [("OTEL_SDK_DISABLED", "true"), ("OTEL_TRACES_EXPORTER", "none"), ("OTEL_TRACES_SAMPLER", "always_off")]
    {
        let output = run("swarm", &[QUESTION], &[("OTEL_EXPORTER_OTLP_ENDPOINT", &endpoint), off]);
        assert_eq!(output.status.code(), Some(0), "{off:?}");
        assert!(collector.spans().is_empty(), "{off:?}");
    }
    for (variable, value) in [
        ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"),
        ("OTEL_TRACES_EXPORTER", "zipkin"),
        ("OTEL_TRACES_SAMPLER", "sometimes"),
        ("OTEL_EXPORTER_OTLP_TIMEOUT", "soon"),
        ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "no url at all"),
    ] {
        let output = run("swarm", &[QUESTION], &[("OTEL_EXPORTER_OTLP_ENDPOINT", &*endpoint), (variable, value)]);
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(
            output.status.code() == Some(2) && said.contains(variable) && said.contains(value),
            "{variable}: {said}"
        );
    }
}
