//! The package of `sdk/typescript` with the real program. Without Node the tests are skipped, and say so.

use std::fs;
use std::process::{Command, Stdio};

use crate::kit::waiting::until;
use crate::kit::worker::{Folder, ROOT};
use crate::kit::{Scratch, has};

const WITH_THE_PACKAGE: &str = r#"
import { appendFileSync, existsSync, writeFileSync, writeSync } from "node:fs";
import { Fault, call, encode, listener, message, payload, progress, record, run, t } from "PACKAGE";

const Do = payload("{urn:t}do", { text: t.content(t.text) });
const Say = payload("{urn:t}say", { text: t.content(t.text) });
const Ask = payload("{urn:t}ask", { text: t.content(t.text) });
const All = payload("{urn:a&b}all", {
  id: t.attribute(t.bigint),
  amount: t.float,
  way: t.oneOf("sent", "fetched"),
  line: t.list(t.object({ cents: t.attribute(t.int), article: t.content(t.text) })),
  gift: t.named("is-gift", t.bool),
  note: t.optional(t.text),
});
const waiting = [];

listener(Do, async ({ text }) => {
  switch (text) {
    case "hold":
      await new Promise((resolve) => {
        waiting.push(resolve);
        if (waiting.length === 3) waiting.forEach((one) => one());
      });
      return Say({ text: "held" });
    case "cancel": {
      const { signal } = message();
      signal.addEventListener("abort", () => writeFileSync("cancelled", ""));
      const never = call(Ask({ text: "hang" })).catch((error) => writeFileSync("rejected", error.name));
      await new Promise((resolve) => signal.addEventListener("abort", resolve));
      await never;
      return Say({ text: "too late" });
    }
    case "calls": {
      const answers = await Promise.all([0, 1, 2, 3, 4].map((n) => call(Ask({ text: `${n} & more` }), { to: "parrot" })));
      return Say({ text: answers.map(({ text }) => text).join() + message().sender });
    }
    case "refused":
      try {
        await call("<nobody xmlns='urn:t'/>");
      } catch (error) {
        return Say({ text: `${error instanceof Fault} ${error.code}` });
      }
    case "forgets":
      // Neither is awaited: the fault of one must not end the process.
      call("<nobody xmlns='urn:t'/>");
      call(Ask({ text: "nobody hears it" }));
      await call(Ask({ text: "x" }));
      return [Say({ text: "went on" })];
    case "mapping": {
      const line = [{ cents: -3, article: "<bread> & \"rolls\"\r" }, { cents: 0, article: "" }];
      const xml = encode(All({ id: 2n ** 63n - 1n, amount: -Infinity, way: "sent", line, gift: true }));
      const again = All.decode(xml);
      const prefixed = All.decode('<q:all xmlns:q="urn:a&amp;b" id="7"><q:amount> 1.5 </q:amount><q:way>sent</q:way><way>x</way>' +
        '<q:is-gift>1</q:is-gift><!-- > --><q:note>&#xD;</q:note></q:all>');
      return Say({ text: [encode(again) === xml, xml, prefixed.amount, prefixed.gift, encode(prefixed)].join(" | ") });
    }
    case "record": {
      const learn = (name) => () => {
        appendFileSync("learned", `${name}\n`);
        return { pid: process.pid, at: new Date(0) };
      };
      const first = await record("first", learn("first"));
      if (!existsSync("died")) {
        writeFileSync("died", "");
        process.kill(process.pid, "SIGKILL");
      }
      progress("halfway");
      const second = await record("second", learn("second"));
      return Say({ text: [first.pid === process.pid, second.pid === process.pid, second.at].join() });
    }
    case "surrogate":
      return Say({ text: "\ud800" });
    case "throw":
      throw new Error("no luck");
    case "nothing":
      return Ask({ text: "no reply" });
  }
  console.log("{}".repeat(1000));
  writeSync(1, "not a line of the protocol\n");
  return `<say xmlns='urn:t'>${text.toUpperCase()}</say>`;
});

run();
"#;

/// Says so where there is no Node.
pub(crate) fn node() -> bool {
    let is_there =
        Command::new("node").arg("--version").stdout(Stdio::null()).status().is_ok_and(|status| status.success());
    if !is_there {
        eprintln!("SKIPPED: node is missing; scripts/setup installs it");
    }
    is_there
}

fn folder(name: &str, keys: &str) -> Folder {
    folder_with(name, WITH_THE_PACKAGE, keys)
}

fn folder_with(name: &str, script: &str, keys: &str) -> Folder {
    let folder = Folder::new(name, "", keys);
    let file = folder.path().join("organism.yaml");
    let text = fs::read_to_string(&file).unwrap().replace("[python3, agent.py]", "[node, agent.mjs]");
    fs::write(file, text).unwrap();
    let script = script.replace("PACKAGE", &format!("{ROOT}/sdk/typescript/index.js"));
    fs::write(folder.path().join("agent.mjs"), script).unwrap();
    folder
}

#[test]
fn the_package_answers_and_calls() {
    if !node() {
        return;
    }
    let folder = folder("node", "timeout: 60s, heartbeat: 30s");
    let mut running = folder.start(&["--until-idle"]);
    has(&running.ask("one"), &[">ONE</say>"]);
    (0..3).for_each(|_| running.send("hold"));
    (0..3).for_each(|_| has(&running.receive(), &[">held</say>"]));
    has(&running.ask("calls"), &[">0 &amp; more,1 &amp; more,2 &amp; more,3 &amp; more,4 &amp; morecli</say>"]);
    has(&running.ask("refused"), &[">true route</say>"]);
    has(&running.ask("forgets"), &[">went on</say>"]);
    has(&running.ask("surrogate"), &["<code>failed</code>", "say.text: XML has no character U+D800"]);
    has(&running.ask("record"), &[">false,true,1970-01-01T00:00:00.000Z</say>"]);
    assert_eq!(folder.read("learned"), "first\nsecond\n");
    folder.logs(&[r#""text":"halfway""#]);
    has(&running.ask("throw"), &["<code>failed</code>", "no luck"]);
    let all = "<all xmlns=\"urn:a&amp;b\" id=\"9223372036854775807\"><amount>-INF</amount><way>sent</way>\
        <line cents=\"-3\">&lt;bread&gt; &amp; \"rolls\"&#xD;</line><line cents=\"0\"></line><is-gift>true</is-gift></all>";
    let all = all.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    has(&running.ask("mapping"), &[&format!(">true | {all} | 1.5 | true | ")]);
    let big = "x".repeat(1_000_000);
    has(&running.ask(&big), &[&big.to_uppercase()]);
    assert_eq!(running.end().0, Some(1), "a fault was among the answers");
    folder.logs(&["Error: no luck", "not a line of the protocol"]);
    assert_eq!(folder.read("log").matches("a worker ended").count(), 1, "{}", folder.read("log"));
}

#[test]
fn the_package_cancels_what_times_out() {
    if !node() {
        return;
    }
    let folder = folder("node-cancelled", "timeout: 2s");
    let file = folder.path().join("organism.yaml");
    let text = fs::read_to_string(&file).unwrap();
    // Its call is never answered, and takes longer than its thread has.
    let text =
        text.replace("sed 's/ask/say/g'", "grep -q hang && sleep 60").replace("parrot, ", "parrot, timeout: 60s, ");
    fs::write(&file, text.replace("calls: ['{urn:t}do'] }", "calls: ['{urn:t}do'], budget: { time: 5s } }")).unwrap();
    let mut running = folder.start(&[]);
    until("an answer", || running.ask("one").contains(">ONE</say>").then_some(()));
    has(&running.ask("cancel"), &["<code>timeout</code>"]);
    until("the cancellation", || folder.path().join("cancelled").exists().then_some(()));
    until("the end of its call", || (folder.read("rejected") == "AbortError").then_some(()));
}

const FAILS: &str = r#"
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { call, listener, progress, record, run } from "PACKAGE";

const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
const fail = (why) => {
  throw new Error(why);
};
const nested = (depth) => (depth ? [nested(depth - 1)] : 1);

const cases = {
  hold: async () => {
    while (!existsSync("go")) await sleep(10);
    return "held";
  },
  rejects: async () => {
    // The second one rejects while the first one is awaited.
    const first = record("a", () => sleep(200).then(() => fail("the first")));
    const second = record("b", () => fail("the second"));
    return [await first, await second];
  },
  forgets: async () => {
    record("a", () => fail("nobody hears it")).then(String);
    await sleep(100);
    return "went on";
  },
  empty: () => {
    throw Object.create(null);
  },
  getter: () => {
    throw {
      get message() {
        return fail("no message");
      },
    };
  },
  proxy: () => {
    throw new Proxy({}, { get: () => fail("no field"), getPrototypeOf: () => fail("no prototype") });
  },
  stack: () => {
    throw Object.defineProperty(new Error("no stack"), "stack", { get: () => fail("the stack") });
  },
  name: () => record(5, () => 1),
  to: () => call("<ask xmlns='urn:t'>x</ask>", { to: 5 }),
  progress: () => progress(5),
  long: () => record("long", () => "x".repeat(7_000_000)),
  longer: () => "x".repeat(7_000_000),
  deep: () => record("deep", () => nested(101)),
  half: () => "\n\ud83d",
  "half call": () => call("<ask xmlns='urn:t'>\n \udc00</ask>"),
  "half value": () => record("half", () => ({ list: ["whole", "a \ud83d"] })),
  "half key": () => record("half", () => ({ "\ud83d": 1 })),
  "half name": () => record("\ud83d", () => 1),
  "half thrown": () => fail("no \ud83d here"),
  sides: async () => {
    const values = await Promise.all([
      record("a", () => sleep(300).then(() => "slow")),
      record("b", () => "fast"),
      record("same", () => 1),
      record("same", () => 2),
      record("e", () => ({ backslash: "\\ud800", pair: "\u{1f600}", not: NaN })),
    ]);
    const text = JSON.stringify(values);
    if (!existsSync("died")) {
      writeFileSync("died", text);
      process.kill(process.pid, "SIGKILL");
    }
    const other = await record("other", () => "other");
    return [readFileSync("died", "utf8") === text, ...values.slice(0, 4), values[4].backslash, other].join(" ");
  },
};

listener("{urn:t}do", async (xml) => `<say xmlns='urn:t'>${await cases[xml.replace(/<.*?>/g, "")]()}</say>`);
// As each module of a program may do that registers functions.
run();
run();
"#;

#[test]
fn what_a_function_throws_fails_its_message_alone() {
    if !node() {
        return;
    }
    let folder = folder_with("node-fails", FAILS, "timeout: 60s");
    let mut running = folder.start(&[]);
    running.send("hold");
    for (text, said) in [
        ("rejects", ">the first<"),
        ("empty", ">what was thrown has no text<"),
        ("getter", ">what was thrown has no text<"),
        ("proxy", ">what was thrown has no text<"),
        ("stack", ">no stack<"),
        ("name", "the name has to be a string, not number"),
        ("to", "to has to be a string, not number"),
        ("progress", "progress has to be a string, not number"),
        ("deep", "nested deeper than 100"),
        ("half", "the XML: line 2, column 1: U+D83D is half of a surrogate pair, and no character: remove it"),
        ("half call", "the XML: line 2, column 2: U+DC00 is half"),
        ("half value", "the value of half.list[1]: line 1, column 3: U+D83D is half"),
        ("half key", "the value of half: a key: line 1, column 1: U+D83D is half"),
        ("half name", "the name: line 1, column 1: U+D83D is half"),
        ("half thrown", r">no \ud83d here<"),
        ("long", "bytes is too long: the pump takes at most 6604096 (limits: message_bytes)"),
        ("longer", "bytes is too long: the pump takes at most 6604096 (limits: message_bytes)"),
    ] {
        has(&running.ask(text), &["<code>failed</code>", said]);
    }
    has(&running.ask("forgets"), &[">went on</say>"]);
    fs::write(folder.path().join("go"), "").unwrap();
    has(&running.receive(), &[">held</say>"]);
    assert!(!folder.read("log").contains("a worker ended"), "{}", folder.read("log"));
}

#[test]
fn values_recorded_side_by_side_come_back_by_their_names_as_they_were_returned() {
    if !node() {
        return;
    }
    let folder = folder_with("node-sides", FAILS, "timeout: 60s");
    let mut running = folder.start(&[]);
    has(&running.ask("sides"), &[">true slow fast 1 2 \\ud800 other</say>"]);
}

/// Values of fields: what is written and read, and what is refused.
const FIELDS: &str = r#"
import { strict as assert } from "node:assert";
import { encode, listener, payload, t } from "PACKAGE";

// A payload has one declaration.
let count = 0;
const declare = (fields) => payload(`{urn:t${count++}}one`, fields);
const one = (field) => declare({ x: field });
const whole = (kind, text) => `<one xmlns="${kind.qname.slice(1, -4)}">${text}</one>`;
const writes = (field, x, text, kind = one(field)) => assert.equal(encode(kind({ x })), whole(kind, text));
const reads = (field, text, x, kind = one(field)) => assert.deepEqual(kind.decode(whole(kind, text)).x, x);
const fails = (part, of) => assert.throws(of, (error) => error instanceof TypeError && error.message.includes(part) || assert.fail(error));
const node = { name: t.text, get child() { return t.list(t.object(node)); } };

for (const [field, ...values] of [
  [t.text, "", "5", " a "], [t.int, 0, -5, 2 ** 53 - 1], [t.bigint, 0n, -(2n ** 70n)], [t.bool, true, false],
  [t.float, 1.5, -1e-7, 1e21, NaN, Infinity, -Infinity], [t.oneOf("a", " a", "b"), "a", " a", "b"],
  [t.list(t.text), [], ["a", ""]], [t.list(t.object({ y: t.attribute(t.int) })), [{ y: 1 }, { y: 2 }]],
  [t.object(node), { name: "a", child: [{ name: "b", child: [] }] }],
]) {
  const kind = one(field);
  for (const x of values) assert.deepEqual(kind.decode(encode(kind({ x }))).x, x);
}
for (const [x, text] of [[NaN, "NaN"], [Infinity, "INF"], [-Infinity, "-INF"], [1e21, "1e+21"]]) writes(t.float, x, `<x>${text}</x>`);
writes(t.optional(t.text), null, "");
writes(t.optional(t.text), undefined, "");
for (const [field, text, x] of [
  [t.int, " +5\n", 5], [t.bigint, "+5", 5n], [t.float, "+INF", Infinity], [t.float, " .5E1 ", 5], [t.bool, " 1 ", true], [t.bool, "0", false],
  [t.oneOf("a", "b"), " a ", "a"],
]) reads(field, `<x>${text}</x>`, x);
reads(t.optional(t.int), "", undefined);

// A wrong value is refused with the name of its field.
for (const [field, ...values] of [
  [t.text, 5, true, {}, new Date(0), ["a"]], [t.int, 1.5, 1e21, 2 ** 53, NaN, "5", 5n, true], [t.bigint, 5, 1.5, "5"],
  [t.float, "1.5", 1n, true], [t.bool, "no", "true", 1], [t.oneOf("a", "b"), "c", " a", ["a"]], [t.object({ y: t.optional(t.int) }), "abc", 5],
  [t.attribute(t.int), 1.5, "5"], [t.content(t.int), 1.5, "5"], [t.list(t.text), "abc", { 0: "a" }],
]) for (const x of values) fails("one.x has to be ", () => encode(one(field)({ x })));
for (const field of [t.text, t.int, t.object({})])
  for (const no of [null, undefined]) fails("one.x[1] has to be ", () => encode(one(t.list(field))({ x: [field.fields ? {} : field === t.text ? "" : 1, no] })));
for (const x of [null, undefined]) fails("one.x is missing", () => encode(one(t.text)({ x })));
fails("one.x[0].y has to be a string, not 5", () => encode(one(t.list(t.object({ y: t.text })))({ x: [{ y: 5 }] })));
fails("one has no field y", () => encode(one(t.int)({ x: 1, y: 2 })));
fails("one.x has no field z", () => encode(one(t.object({ y: t.int }))({ x: { y: 1, z: 2 } })));
fails("one.toString is missing", () => encode(declare({ toString: t.text })({})));

// So is a wrong text, and what is missing.
for (const [field, ...texts] of [
  [t.int, "", " ", "1.5", "1e3", "0x10", "1_0", "\u00a01", "\uff11", "9007199254740992"], [t.bigint, "", "1.5", "0x10", "\u00a01"],
  [t.float, "", "x", "0x10", "Infinity", "constructor", "\u00a01", "1_0"], [t.bool, "", "yes", "TRUE", "constructor", "\u00a01"],
  [t.oneOf("a", "b"), "", "c", "\u00a0a"],
]) for (const text of texts) fails(`one.x has to be `, () => reads(field, `<x>${text}</x>`));
fails("one.x has to be one element", () => reads(t.int, "<x>1</x><x>2</x>"));
for (const field of [t.int, t.attribute(t.text), t.object({})]) fails("one.x is missing", () => reads(field, ""));
for (const [field, part] of [
  [t.number, "one.x has no type"], [t.optional(undefined), "one.x has no type"], [t.object({ y: undefined }), "one.x.y has no type"],
  [t.attribute(t.object({})), "one.x is elements"], [t.list(t.content(t.text)), "one.x is elements"],
  [t.list(t.list(t.text)), "one.x is a list of lists"], [t.list(t.list(t.object({}))), "one.x is a list of lists"],
  [t.object([t.text]), "one.x needs an object of fields, such as { a: t.text }, not an array"], [t.object("a"), "one.x needs an object of fields"],
  [t.object(t.text), "one.x needs an object of fields"], [t.object(t.list(t.text)), "one.x needs an object of fields"], [t.object({ "a b": t.text }), "one.x.a b: \"a b\" is no name of an element"],
  [t.object({ a: t.attribute(t.text), b: t.named("a", t.attribute(t.text)) }), "one.x.b: one.x.a is the attribute a, too"],
  [t.object({ a: t.content(t.text), b: t.content(t.int) }), "one.x.b: one.x.a is the text of the element, too"],
  [t.named("a:b", t.text), "\"a:b\" is no name of an element"], [t.named("1", t.attribute(t.text)), "\"1\" is no name of an attribute"],
  [t.named("xmlns", t.attribute(t.text)), "one.x: xmlns declares a namespace"], [t.named("\u00aa", t.text), "is no name of an element"],
]) fails(part, () => one(field));

// A choice is one element of several names.
const ways = { fetched: t.object({}), courier: t.object({ street: t.text }), byPost: t.named("by-post", t.int) };
const way = t.choice(ways);
for (const [x, text] of [
  [{ fetched: {} }, "<fetched></fetched>"], [{ courier: { street: "Mill Lane 3" } }, "<courier><street>Mill Lane 3</street></courier>"],
  [{ byPost: 5 }, "<by-post>5</by-post>"],
]) {
  writes(way, x, text);
  for (const field of [way, t.optional(way)]) reads(field, text, x);
  reads(t.list(way), `${text}<other></other><x></x>${text}`, [x, x]);
}
const mixed = [{ byPost: 1 }, { fetched: {} }, { byPost: 2 }];
writes(t.list(way), mixed, "<by-post>1</by-post><fetched></fetched><by-post>2</by-post>");
reads(t.list(way), "<by-post>1</by-post><fetched></fetched><by-post>2</by-post>", mixed);
reads(t.list(way), "<fetched xmlns='urn:u'></fetched>".replaceAll("'", '"'), []);
reads(t.optional(way), "", undefined);
writes(t.optional(way), undefined, "");
writes(way, { fetched: {}, courier: undefined }, "<fetched></fetched>");
for (const x of ["fetched", 5, {}, [], { flown: {} }, { fetched: {}, byPost: 5 }, { "by-post": 5 }, { constructor: {} }])
  fails("one.x has to be an object with one of fetched, courier, byPost, not ", () => encode(one(way)({ x })));
fails("not one with fetched and byPost", () => encode(one(way)({ x: { fetched: {}, byPost: 5 } })));
fails("one.x[1] has to be an object with one of ", () => encode(one(t.list(way))({ x: [{ fetched: {} }, null] })));
fails("one.x.courier.street is missing", () => encode(one(way)({ x: { courier: {} } })));
fails("one.x.byPost has to be an integer", () => encode(one(way)({ x: { byPost: "5" } })));
fails("one.x.byPost has to be an integer", () => reads(way, "<by-post>x</by-post>"));
fails("one.x has to be one element", () => reads(way, "<fetched></fetched><by-post>5</by-post>"));
fails("one.x is missing", () => reads(way, "<x></x>"));
for (const [field, part] of [
  [t.choice({}), "one.x: t.choice takes an object of one field or more"], [t.choice([t.text]), "one.x: t.choice takes an object"],
  [t.choice("a"), "one.x: t.choice takes an object"], [t.choice({ "a b": t.text }), "\"a b\" is no name of an element"],
  [t.choice({ y: undefined }), "one.x.y has no type"], [t.attribute(way), "one.x is elements"], [t.content(way), "one.x is elements"],
  [t.named("y", way), "one.x has no element of its own"], [t.choice({ y: t.text, z: t.named("y", t.int) }), "one.x.z: one.x.y is <y>, too"],
  [t.choice({ y: t.list(t.text) }), "one.x.y is one element"], [t.choice({ y: t.optional(t.text) }), "one.x.y is one element"],
  [t.choice({ y: t.attribute(t.text) }), "one.x.y is one element"], [t.choice({ y: t.choice({ z: t.text }) }), "one.x.y is one element"],
]) fails(part, () => one(field));
fails("one.way: one.fetched is <fetched>, too", () => declare({ fetched: t.text, way }));
const tree = { leaf: t.text, get node() { return t.object({ child: t.list(t.choice(tree)) }); } };
reads(t.choice(tree), "<node><leaf>a</leaf><node></node></node>", { node: { child: [{ leaf: "a" }, { node: { child: [] } }] } });

// So are payloads and types that can't be declared. An attribute may have the name of an element.
assert.equal(encode(payload("{urn:t}pair", { a: t.attribute(t.int), b: t.named("a", t.int) })({ a: 1, b: 2 })), '<pair xmlns="urn:t" a="1"><a>2</a></pair>');
reads(t.object({ write: t.text, list: t.int, fields: t.text }), "<x><write>a</write><list>1</list><fields></fields></x>", { write: "a", list: 1, fields: "" });
fails("{urn:t}pair is a payload that was declared", () => payload("{urn:t}pair", {}));
for (const fields of [undefined, null, [], "a", t.text]) fails("one needs an object of fields", () => declare(fields));
for (const name of ["", "{urn:t}", "{urn:t}a b", "{urn:t}1", "{urn:t}a:b", "a{b}"]) fails("is no name of an element", () => payload(name, {}));
for (const name of ["urn:a b", "urn:\n", "{urn:t", "\ud800", "http://www.w3.org/2000/xmlns/"]) fails("is no namespace", () => payload(`{${name}}a`, {}));
fails("the name of a payload has to be a string", () => payload({}, {}));
for (const values of [[], [["a", "b"]], [1]]) fails("t.oneOf takes one or more strings", () => t.oneOf(...values));

// What would be read as another value is no field.
for (const [field, part] of [
  [t.optional(t.content(t.text)), "one.x: an element without a text reads as an empty one: write t.content without t.optional"],
  [t.content(t.optional(t.text)), "one.x: an element without a text"], [t.optional(t.list(t.text)), "one.x: a list that is missing"],
  [t.list(t.optional(t.text)), "one.x: a list that is missing"],
]) fails(part, () => one(field));
for (const fields of [{ ["__proto__"]: t.text }, { __proto__: t.text }, { __proto__: t.object({}) }])
  for (const of of [() => declare(fields), () => declare({ x: t.object(fields) }), () => one(t.choice({ ...fields, y: t.int, ["__proto__"]: t.text })) ])
    fails('__proto__ is no field of an object: write t.named("__proto__", …) behind another key', of);
reads(t.object({ proto: t.named("__proto__", t.text) }), "<x><__proto__>a</__proto__></x>", { proto: "a" });
const Inner = payload("{urn:t}inner", { y: t.int });
for (const field of [Inner, t.optional(Inner), t.list(Inner), t.named("y", Inner)]) fails("one.x is a payload, and ", () => one(field));
fails("write t.object({ … })", () => one(t.choice({ y: Inner })));
fails("one.x needs an object of fields", () => one(t.object(Inner)));

// XML doesn't have all characters.
for (const [x, code] of [["a\0", "U+0000"], ["\x0b", "U+000B"], ["\ufffe", "U+FFFE"], ["\ud800", "U+D800"], ["\u{1f600}\x7f\x1f", "U+001F"]])
  for (const field of [t.text, t.attribute(t.text), t.content(t.text), t.oneOf(x)]) fails(`one.x: XML has no character ${code}`, () => encode(one(field)({ x })));
fails("one.x[1].y: XML has no character U+FFFF", () => encode(one(t.list(t.object({ y: t.text })))({ x: [{ y: "" }, { y: "\uffff" }] })));

const Add = payload("{urn:t}add", {});
listener(Add, () => {});
fails("{urn:t}add has a listener", () => listener("{urn:t}add", () => {}));
fails("a payload or a name", () => listener({}, () => {}));
fails("a function", () => listener("{urn:t}other"));
"#;

#[test]
fn the_package_reads_what_it_writes_and_refuses_other_values() {
    if !node() {
        return;
    }
    let folder = folder_with("node-fields", FIELDS, "timeout: 60s");
    let output = Command::new("node").arg(folder.path().join("agent.mjs")).stdin(Stdio::null()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// A worker whose calls fail, and its pump: the same program, which starts itself.
const FAULTS: &str = r#"
import { strict as assert } from "node:assert";
import { spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { Fault, call, listener, progress, run } from "PACKAGE";

const cases = {
  long: () => {
    for (const text of ["\0", "\u{1f600}", "x"]) progress(text.repeat(10_000));
  },
  own: () => {
    throw new Fault({ code: "busy", message: "too much" });
  },
  call: () => call("<ask/>"),
  caught: () => call("<ask/>").catch(({ reason }) => Promise.reject(new Error(reason))),
};
let kept;
cases.keep = () => call("<ask/>").catch((fault) => Promise.reject((kept = fault)));
cases.kept = () => Promise.reject(kept);

if (process.env.SYSTOLE_WORKER) {
  listener("{urn:t}do", (name) => cases[name]());
  run();
} else {
  const env = { ...process.env, SYSTOLE_WORKER: "3", SYSTOLE_WORKER_LINE: "4200" };
  const worker = spawn(process.execPath, [process.argv[1]], { stdio: ["pipe", "inherit", "inherit", "pipe"], env });
  const lines = createInterface({ input: worker.stdio[3] })[Symbol.asyncIterator]();
  const hear = async () => JSON.parse((await lines.next()).value);
  const say = (line) => worker.stdin.write(`${JSON.stringify(line)}\n`);
  const ask = async (name) => {
    say({ id: name, type: "{urn:t}do", payload: name, from: "cli", thread: "t" });
    const said = await hear();
    if (!("call" in said)) return said;
    say({ id: name, as: said.as, fault: { code: "busy", message: "too much", retryable: true } });
    const { as, ...answer } = await hear();
    return { ...answer, passed: as === said.as };
  };
  assert.deepEqual(await ask("own"), { id: "own", error: "busy: too much" });
  assert.deepEqual(await ask("call"), { id: "call", error: "busy: too much", passed: true });
  assert.deepEqual(await ask("caught"), { id: "caught", error: "too much", passed: false });
  assert.deepEqual(await ask("keep"), { id: "keep", error: "busy: too much", passed: true });
  // The fault of another message's call.
  assert.deepEqual(await ask("kept"), { id: "kept", error: "busy: too much" });
  // A line of progress has the room that the pump gives.
  const said = [await ask("long"), await hear(), await hear()];
  const bytes = said.map((line) => Buffer.byteLength(JSON.stringify(line)));
  assert.ok(bytes.every((one) => one > 4100 && one <= 4200), bytes);
  assert.deepEqual(await hear(), { id: "long", payloads: [] });
  worker.stdin.end();
}
"#;

#[test]
fn a_fault_that_a_function_does_not_catch_ends_its_message_with_the_label_of_its_call() {
    if !node() {
        return;
    }
    let folder = folder_with("node-faults", FAULTS, "timeout: 60s");
    let output = Command::new("node").arg(folder.path().join("agent.mjs")).stdin(Stdio::null()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn the_example_keeps_the_protocol_and_writes_an_invoice() {
    if !node() {
        return;
    }
    let file = |name: &str| format!("{ROOT}/examples/typescript/{name}");
    for (listener, passed) in
        [("desk", "10 passed, 0 failed, 1 not run\n"), ("exchange", "8 passed, 0 failed, 3 not run\n")]
    {
        let output = Command::new(env!("CARGO_BIN_EXE_systole"))
            .args(["worker", "test", "--within", "60s", "--organism", &file("organism.yaml"), "--listener", listener])
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success() && said.ends_with(passed), "{said}");
    }
    let output = Command::new(env!("CARGO_BIN_EXE_systole"))
        .args(["run", &file("organism.yaml"), &file("order.xml"), "--until-idle"])
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    has(&out, &["<total>363</total><note>bread &amp; a roll: R&amp;D</note>"]);
    assert!(output.status.success() && err.contains("2 lines, 363 cents"), "{err}");
}

/// Functions that start a program with their own standard input, as the script does before `run()`, and that ask for a
/// reply of one payload.
const PARENT: &str = r#"
import { spawnSync } from "node:child_process";
import { call, listener, payload, run, t } from "PACKAGE";

const Say = payload("{urn:t}say", { text: t.content(t.text) });
const Other = payload("{urn:t}other", { text: t.content(t.text) });

function child() {
  const stdio = ["inherit", "pipe", "inherit"];
  const said = spawnSync("sh", ["-c", "cat; ls -l /proc/self/fd | grep -c pipe:"], { stdio, timeout: 30_000 }).stdout;
  return Say({ text: `read ${String(said).trim()}` });
}
const early = child();

listener("{urn:t}do", async (xml) => {
  if (xml.includes("child")) return child();
  if (xml.includes("early")) return early;
  const reply = xml.includes("right") ? Say : Other;
  return Say({ text: (await call("<ask xmlns='urn:t'>a</ask>", { reply })).text });
});
run();
"#;

#[test]
fn what_a_function_starts_reads_none_of_the_protocol() {
    if !node() {
        return;
    }
    let folder = folder_with("child", PARENT, "timeout: 60s");
    let mut running = folder.start(&["--until-idle"]);
    for _ in 0..2 {
        // A child has the pipe that it writes to, and the standard error of the worker.
        (0..3).for_each(|_| running.send("child"));
        (0..3).for_each(|_| has(&running.receive(), &[">read 2</say>"]));
    }
    has(&running.ask("early"), &[">read 2</say>"]);
    has(&running.ask("right"), &[">a</say>"]);
    has(&running.ask("wrong"), &["<code>failed</code>", "the reply has to be {urn:t}other, not {urn:t}say"]);
    assert_eq!(running.end().0, Some(1));
}

#[test]
fn the_worker_in_the_docs_answers() {
    if !node() {
        return;
    }
    let page = include_str!("../../../../docs/worker.md");
    let block = |language: &str| {
        let found = crate::guide::blocks(page).into_iter().find(|(has, _)| *has == language);
        found.unwrap_or_else(|| panic!("docs/worker.md has no block {language}")).1
    };
    let folder = Scratch::new("worker-docs");
    fs::write(folder.join("numbers.xsd"), include_str!("../../../../examples/worker/numbers.xsd")).unwrap();
    let script = block("js").replace("\"systole\"", &format!("\"{ROOT}/sdk/typescript/index.js\""));
    fs::write(folder.join("agent.mjs"), script).unwrap();
    let listeners = block("yaml").replace("[python3, agent.py]", "[node, agent.mjs]");
    let organism = format!("organism: {{ name: docs }}\nclients: [{{ name: cli, calls: [calculator] }}]\n{listeners}",);
    fs::write(folder.join("organism.yaml"), organism).unwrap();
    let asked = Command::new(env!("CARGO_BIN_EXE_systole"))
        .args(["ask", "organism.yaml", "<add><a>20</a><b>22</b></add>"])
        .current_dir(&*folder)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let answer = String::from_utf8(asked.stdout).unwrap();
    assert_eq!(answer.trim_end(), "<sum xmlns=\"urn:example:numbers:v1\" value=\"42\"></sum>", "{:?}", asked.stderr);
}

const DRAFTS: &str = r#"
import { existsSync } from "node:fs";
import { draft, listener, run } from "PACKAGE";

const seen = async (file) => {
  while (!existsSync(file)) await new Promise((resolve) => setTimeout(resolve, 10));
};
listener("{urn:t}do", async () => {
  draft("so ");
  draft("far\n");
  draft("");
  await seen("first");
  draft("\ud834anew: " + "𝄞".repeat(70_000) + "\n", { anew: true });
  await seen("second");
  setImmediate(() => draft("too late"));
  return "<say xmlns='urn:t'>done</say>";
});
run();
"#;

#[test]
fn a_function_shows_what_it_writes_in_pieces_without_half_a_character() {
    if !node() {
        return;
    }
    let folder = folder_with("node-drafts", DRAFTS, "timeout: 60s");
    folder.limit("draft_bytes: 1MiB");
    let (child, lines) = folder.streamed();
    assert_eq!([lines.next().unwrap(), lines.next().unwrap()].concat(), "agent: writes:\n│ so far\n");
    fs::write(folder.path().join("first"), "").unwrap();
    let told = [lines.next().unwrap(), lines.next().unwrap(), lines.next().unwrap()].concat();
    let notes = "𝄞".repeat(70_000);
    let begins = "agent: what it wrote broke off\nagent: writes (attempt 2):\n│ \\ud834anew: ";
    assert!(told == format!("{begins}{notes}\n"), "{}", &told[..200]);
    fs::write(folder.path().join("second"), "").unwrap();
    assert_eq!(lines.rest(), "");
    let output = child.wait_with_output().unwrap();
    assert_eq!(String::from_utf8(output.stdout).unwrap(), "<say xmlns=\"urn:t\">done</say>\n");
}
