//! `json: true` with the real program: workers and commands that see no XML, by hand and with the packages.

use std::fs;

use serde_json::{Value, json};

use crate::kit::worker::ROOT;
use crate::kit::{Scratch, said};
use crate::worker_node::node;

const SCHEMA: &str = r#"<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema" targetNamespace="urn:t" elementFormDefault="qualified">
  <xs:element name="do" type="xs:string"/>
  <xs:element name="ask"><xs:complexType><xs:sequence><xs:element name="n" type="xs:byte" maxOccurs="2"/></xs:sequence></xs:complexType></xs:element>
  <xs:element name="say"><xs:complexType><xs:sequence><xs:element name="text" type="xs:string"/></xs:sequence></xs:complexType></xs:element>
</xs:schema>"#;

/// A worker by hand: the payload is its command. `SAID` are the lines that it got.
const BY_HAND: &str = r#"
import json, os, sys
out = os.fdopen(int(os.environ["SYSTOLE_WORKER"]), "w")
def write(line):
    print(json.dumps(line), file=out, flush=True)
for line in sys.stdin:
    line = json.loads(line)
    open("lines", "a").write(json.dumps(line) + "\n")
    if "ping" in line:
        write({"pong": line["ping"]})
    elif "type" in line and line["payload"]["do"].startswith("call "):
        write({"id": line["id"], "call": json.loads(line["payload"]["do"][5:]), "as": "k"})
    elif "type" in line:
        write({"id": line["id"], "payloads": json.loads(line["payload"]["do"])})
    elif "as" in line:
        write({"id": line["id"], "payloads": [{"say": {"text": json.dumps(line.get("reply", line.get("fault")))}}]})
"#;

/// A folder with a worker, and a command that it calls; both read and write JSON.
fn folder(name: &str, agent: &str, keys: &str) -> Scratch {
    let folder = Scratch::new(&format!("json-{name}"));
    fs::write(folder.join("t.xsd"), SCHEMA).unwrap();
    fs::write(folder.join("agent.py"), agent).unwrap();
    let organism = format!(
        "organism: {{ name: worker }}\n\
         clients: [{{ name: cli, calls: ['{{urn:t}}do'] }}]\n\
         listeners:\n\
         - {{ name: adder, schemas: [t.xsd], command: [python3, -c, \"import json, sys; n = json.load(sys.stdin)['ask']['n']; print(json.dumps({{'say': {{'text': str(sum(n))}}}}))\"], json: true, accepts: ['{{urn:t}}ask'], replies: ['{{urn:t}}say'] }}\n\
         - {{ name: agent, worker: [python3, agent.py], json: true, accepts: ['{{urn:t}}do'], replies: ['{{urn:t}}say'], calls: ['{{urn:t}}ask'], \
         env: ['PYTHONPATH={ROOT}/sdk/python'], {keys} }}\n"
    );
    fs::write(folder.join("organism.yaml"), organism).unwrap();
    folder
}

/// Asks the agent; returns the answer, and the text in it as JSON.
fn ask(folder: &Scratch, text: &str) -> (String, Value) {
    let message = json!({ "do": text }).to_string();
    let (_, out, err) = said(folder, &["ask", "organism.yaml", &message], "");
    let answer: Value = serde_json::from_str(&out).unwrap_or_default();
    let inner = answer["say"]["text"].as_str().and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default();
    (out + &err, inner)
}

#[test]
fn the_lines_of_a_worker_carry_json_both_ways() {
    let folder = folder("lines", BY_HAND, "");
    let (answer, _) = ask(&folder, r#"[{"say": {"text": "hi"}}]"#);
    assert_eq!(answer, "{\"say\":{\"text\":\"hi\"}}\n");
    let lines = fs::read_to_string(folder.join("lines")).unwrap();
    let line =
        lines.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()).find(|line| line.get("type").is_some());
    let line = line.unwrap();
    assert_eq!(
        (&line["type"], &line["payload"]),
        (&json!("{urn:t}do"), &json!({ "do": r#"[{"say": {"text": "hi"}}]"# }))
    );
    let (answer, reply) = ask(&folder, r#"call {"ask": {"n": [40, 2]}}"#);
    assert_eq!(reply, json!({ "say": { "text": "42" } }), "{answer}");
}

#[test]
fn refusals_of_calls_name_the_place_in_the_json() {
    let folder = folder("refused", BY_HAND, "");
    for (call, code, rule) in [
        (r#"{"ask": {"n": [40, 200]}}"#, "payload", "/ask/n/1: "),
        (r#"{"ask": {"n": [1, 2, 3]}}"#, "payload", "/ask/n/2: "),
        (r#"{"ask": {"m": 1}}"#, "payload", "/ask/m: no property 'm' is known here"),
        (r#"{"sake": {}}"#, "payload", "the name of the payload: {\"ask\": …}, {\"say\": …}"),
        (
            r#""<ask xmlns='urn:t'><n>1</n></ask>""#,
            "payload",
            "expected an object with one property, the name of the payload",
        ),
    ] {
        let (answer, fault) = ask(&folder, &format!("call {call}"));
        assert_eq!(fault["code"], code, "{call}: {answer}");
        assert!(fault["rule"].as_str().unwrap_or_default().contains(rule), "{call}: {answer}");
    }
    let (answer, fault) = ask(&folder, r#"call {"ask": {"n": [200]}}"#);
    let example: Value = serde_json::from_str(fault["example"].as_str().unwrap()).unwrap();
    assert!(example["ask"]["n"].is_array(), "{answer}");
}

#[test]
fn answers_that_are_refused_are_shown_as_they_were_written() {
    let folder = folder("answers", BY_HAND, "");
    for (payloads, told) in [
        (r#"[{"say": {"text": 5}}]"#, "/0/say/text: found a number, expected a string"),
        (r#"[{"say": {"text": "a"}}, {"say": {}}]"#, "/1/say: "),
        (r#"["<say xmlns='urn:t'/>"]"#, "/0: expected an object with one property"),
        (r#"{"do": "x"}"#, "expected an object with one property, the name of the payload"),
    ] {
        let (answer, _) = ask(&folder, payloads);
        assert!(answer.contains(told), "{payloads}: {answer}");
        assert!(!answer.contains("<agent-error"), "{payloads}: {answer}");
    }
}

#[test]
fn a_command_gets_its_history_as_json() {
    let folder = folder("history", "", "");
    let organism = fs::read_to_string(folder.join("organism.yaml")).unwrap();
    let script = "import json, os, sys; past = json.load(open(os.environ['SYSTOLE_HISTORY'])); message = json.load(sys.stdin); \
        print(json.dumps({'ask': {'n': [1]}} if 'do' in message else {'say': {'text': json.dumps(past)}}))";
    let organism = organism.replace(
        "worker: [python3, agent.py], json: true",
        &format!("command: [python3, -c, \"{script}\"], json: true, context: true, returns: ['{{urn:t}}say']"),
    );
    fs::write(folder.join("organism.yaml"), organism).unwrap();
    let (answer, past) = ask(&folder, "it");
    assert_eq!(past[0]["payload"], json!({ "do": "it" }), "{answer}");
    assert_eq!((&past[1]["payload"], &past[1]["from"]), (&json!({ "ask": { "n": [1] } }), &json!("agent")), "{answer}");
}

const WITH_THE_PACKAGE: &str = r#"
from dataclasses import dataclass
from systole_sdk import Fault, call, listener, message, named, payload, run

@payload
@dataclass
class Ask:
    n: list[int]

@payload("urn:t")
@dataclass
class Say:
    text: str

@listener("do")
async def do(message: dict):
    n = [int(number) for number in message["do"].split()]
    try:
        reply = await call(Ask(n))
    except Fault as fault:
        return {"say": {"text": fault.rule or fault.message}}
    again = await call({"ask": {"n": n[:1]}})
    return [Say(f"{reply.text} {again.text}")]

run()
"#;

#[test]
fn the_package_for_python_reads_and_writes_json() {
    let folder = folder("python", WITH_THE_PACKAGE, "");
    assert_eq!(ask(&folder, "40 2").0, "{\"say\":{\"text\":\"42 40\"}}\n");
    assert!(ask(&folder, "400").0.contains("/ask/n/0: "), "{}", ask(&folder, "400").0);
    // One that takes XML says so.
    fs::write(folder.join("agent.py"), WITH_THE_PACKAGE.replace("message: dict", "message: str")).unwrap();
    let (answer, _) = ask(&folder, "1");
    assert!(answer.contains("takes str, and payloads are JSON"), "{answer}");
    fs::write(
        folder.join("agent.py"),
        WITH_THE_PACKAGE.replace("return [Say", "return str and [\"<say/>\"] and \"<say/>\" or [Say"),
    )
    .unwrap();
    let (answer, _) = ask(&folder, "1");
    assert!(answer.contains("has `json: true`, and its payloads are no XML"), "{answer}");
}

const WITH_THE_PACKAGE_OF_NODE: &str = r#"
import { Fault, call, listener, payload, run, t } from "PACKAGE";

const Ask = payload("ask", { n: t.list(t.int) });
const Say = payload("{urn:t}say", { text: t.text });

listener("do", async (message) => {
  const n = message.do.split(" ").map(Number);
  try {
    const { text } = await call(Ask({ n }), { reply: Say });
    const again = await call({ ask: { n: n.slice(0, 1) } });
    return [Say({ text: `${text} ${again.text}` })];
  } catch (error) {
    return { say: { text: error instanceof Fault ? error.rule : error.message } };
  }
});
run();
"#;

#[test]
fn the_package_for_node_reads_and_writes_json() {
    if !node() {
        return;
    }
    let folder = folder("node", "", "");
    let script = WITH_THE_PACKAGE_OF_NODE.replace("PACKAGE", &format!("{ROOT}/sdk/typescript/index.js"));
    fs::write(folder.join("agent.mjs"), script).unwrap();
    let organism = fs::read_to_string(folder.join("organism.yaml")).unwrap();
    fs::write(folder.join("organism.yaml"), organism.replace("[python3, agent.py]", "[node, agent.mjs]")).unwrap();
    assert_eq!(ask(&folder, "40 2").0, "{\"say\":{\"text\":\"42 40\"}}\n");
    assert!(ask(&folder, "400").0.contains("/ask/n/0: "), "{}", ask(&folder, "400").0);
}

#[test]
fn a_worker_with_json_passes_the_test_of_workers() {
    let folder = folder("tested", WITH_THE_PACKAGE, "");
    fs::write(folder.join("do.json"), r#"{"do": "40 2"}"#).unwrap();
    let arguments = ["worker", "test", "--organism", "organism.yaml", "--payload", "do.json"];
    let (code, out, err) = said(&folder, &arguments, "");
    assert!(code == 0 && out.contains("0 failed") && out.contains("passed  a call and its reply"), "{out}{err}");
    let (code, _, err) = said(&folder, &["worker", "test", "--payload", "do.json", "python3", "agent.py"], "");
    assert!(code == 2 && err.contains("payloads as JSON need an organism"), "{err}");
}

const DECLARED: &str = r#"
from dataclasses import dataclass
from enum import Enum
from systole_sdk import listener, named, payload, run

class Way(Enum):
    SENT = "sent"
    FETCHED = "fetched"

@dataclass
class Line:
    """A line of an order."""
    article: str
    count: int = 1

@payload("urn:example:shop:v1")
@dataclass
class TakeOrder:
    """An order."""
    way: Way
    line: list[Line]
    id: int | None = named("@id", default=None)

@payload("urn:example:shop:v1")
@dataclass
class Receipt:
    total: int

@listener
def take(order: TakeOrder) -> Receipt:
    return Receipt(sum(line.count for line in order.line))

run()
"#;

/// Prints the contracts of a program.
fn described(folder: &Scratch) -> (bool, String) {
    let mut python = std::process::Command::new("python3");
    python.args(["-m", "systole_sdk", "schema", "agent.py"]).current_dir(folder);
    let output = python.env("PYTHONPATH", format!("{ROOT}/sdk/python")).output().unwrap();
    let text = if output.status.success() { output.stdout } else { output.stderr };
    (output.status.success(), String::from_utf8(text).unwrap())
}

#[test]
fn dataclasses_are_contracts() {
    let folder = Scratch::new("json-declared");
    fs::write(folder.join("agent.py"), DECLARED).unwrap();
    let (is_done, schema) = described(&folder);
    assert!(is_done, "{schema}");
    fs::write(folder.join("shop.schema.json"), &schema).unwrap();
    let organism = format!(
        "organism: {{ name: shop }}\n\
         prefixes: {{ shop: 'urn:example:shop:v1' }}\n\
         clients: [{{ name: cli, calls: [desk] }}]\n\
         listeners:\n\
         - {{ name: desk, worker: [python3, agent.py], json: true, env: ['PYTHONPATH={ROOT}/sdk/python'], schemas: [shop.schema.json], accepts: ['shop:take-order'], replies: ['shop:receipt'] }}\n"
    );
    fs::write(folder.join("organism.yaml"), organism).unwrap();
    let ask = |message: &str| said(&folder, &["ask", "organism.yaml", message], "");
    let (_, out, err) = ask(
        r#"{"take-order": {"line": [{"article": "tea"}, {"article": "rum", "count": 2}], "@id": 7, "way": "sent"}}"#,
    );
    assert_eq!(out, "{\"receipt\":{\"total\":3}}\n", "{err}");
    let (code, _, err) = ask(r#"{"take-order": {"way": "flown"}}"#);
    assert!(code == 2 && err.contains("/take-order/way: "), "{err}");
    let (code, out, _) = said(&folder, &["schema", "organism.yaml", "take-order", "--json"], "");
    let schema: Value = serde_json::from_str(&out).unwrap();
    assert_eq!((code, &schema["properties"]["way"]["enum"]), (0, &json!(["sent", "fetched"])), "{out}");
    // What has no JSON Schema is named.
    fs::write(
        folder.join("agent.py"),
        DECLARED.replace("total: int", "total: int = named(\"$text\")\n    at: str = named(\"@at\")"),
    )
    .unwrap();
    let (is_done, told) = described(&folder);
    assert!(!is_done && told.contains("agent.py: Receipt.total: $text has no JSON Schema"), "{told}");
}

#[test]
fn a_mistake_in_a_json_schema_is_shown_at_its_place() {
    let folder = Scratch::new("json-mistake");
    let schema = "{\n  \"type\": \"object\",\n  \"properties\": {\n    \"a\": { \"type\": \"array\", \"items\": { \"anyOf\": [{ \"type\": \"string\" }, { \"type\": \"text\" }] } }\n  }\n}\n";
    fs::write(folder.join("order.schema.json"), schema).unwrap();
    let organism = "organism: { name: shop }\nlisteners:\n- { name: desk, echo: true, schemas: [order.schema.json], accepts: [order] }\n";
    fs::write(folder.join("organism.yaml"), organism).unwrap();
    let (code, out, err) = said(&folder, &["check", "organism.yaml"], "");
    let told = out + &err;
    assert!(
        code != 0
            && told.contains("order.schema.json:4:")
            && told.contains("/properties/a/items/anyOf/1/type: expected a type"),
        "{told}"
    );
    fs::write(folder.join("order.schema.json"), schema.replace("{ \"type\": \"text\" }", "{ \"type\": \"null\" }"))
        .unwrap();
    let (code, out, err) = said(&folder, &["check", "organism.yaml"], "");
    assert_eq!(code, 0, "{out}{err}");
}

#[test]
fn declarations_of_node_are_contracts() {
    if !node() {
        return;
    }
    let folder = folder("described", "", "");
    let script = r#"
import { listener, payload, run, t } from "PACKAGE";
const Do = payload("do", { text: t.content(t.text) });
const Order = payload("order", { id: t.attribute(t.optional(t.bigint)), way: t.oneOf("sent", "fetched"), line: t.list(t.object({ price: t.float })), gift: t.named("is-gift", t.bool) });
listener(Order, () => Do({ text: "x" }));
run();
"#;
    let script = script.replace("PACKAGE", &format!("{ROOT}/sdk/typescript/index.js"));
    fs::write(folder.join("agent.mjs"), script).unwrap();
    let schema = || {
        let mut node = std::process::Command::new("node");
        node.arg(format!("{ROOT}/sdk/typescript/schema.js")).arg("agent.mjs").current_dir(&folder).output().unwrap()
    };
    let output = schema();
    let printed: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{output:?}"));
    let expected = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$defs": {
            "do": { "type": "string" },
            "order": {
                "type": "object",
                "properties": {
                    "@id": { "type": "integer" },
                    "way": { "enum": ["sent", "fetched"] },
                    "line": { "type": "array", "items": { "type": "object", "properties": { "price": { "type": "number" } }, "required": ["price"], "additionalProperties": false } },
                    "is-gift": { "type": "boolean" },
                },
                "required": ["way", "is-gift"],
                "additionalProperties": false,
            },
        },
    });
    assert_eq!(printed, expected);
    fs::write(
        folder.join("agent.mjs"),
        fs::read_to_string(folder.join("agent.mjs")).unwrap().replace("t.float", "t.choice({ a: t.int })"),
    )
    .unwrap();
    let output = schema();
    let told = String::from_utf8(output.stderr).unwrap();
    assert!(
        !output.status.success() && told.contains("agent.mjs: order.line.price: a choice has no JSON Schema here"),
        "{told}"
    );
}

#[test]
fn whatever_a_python_function_returns_ends_its_message() {
    const AGENT: &str = r#"
from datetime import date
from decimal import Decimal
from systole_sdk import listener, run

DEEP = {}
for _ in range(100_000):
    DEEP = {"a": DEEP}
RETURNS = {
    "decimal": lambda: {"say": {"text": Decimal("1.50")}}, "date": lambda: {"say": {"text": date(2026, 2, 3)}},
    "set": lambda: {"say": {"text": {1}}}, "nan": lambda: {"say": {"text": float("nan")}}, "deep": lambda: {"say": DEEP},
    "object": lambda: {"say": object()},
}

@listener("{urn:t}do")
def do(payload: dict):
    return RETURNS[payload["do"]]()

run()
"#;
    let folder = folder("returns", AGENT, "timeout: 600s");
    for (what, expected) in [("decimal", r#"{"say":{"text":"1.50"}}"#), ("date", r#"{"say":{"text":"2026-02-03"}}"#)] {
        assert_eq!(ask(&folder, what).0, format!("{expected}\n"));
    }
    for what in ["set", "nan", "deep", "object"] {
        let (answer, _) = ask(&folder, what);
        assert!(answer.contains("agent-error"), "{what}: {answer}");
    }
}
