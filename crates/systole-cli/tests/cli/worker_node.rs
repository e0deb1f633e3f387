//! The package of `sdk/typescript` with the real program. Without Node the tests are skipped, and say so.

use std::fs;
use std::process::{Command, Stdio};

use crate::kit::has;
use crate::kit::waiting::until;
use crate::kit::worker::{Folder, ROOT};

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
fn node() -> bool {
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
    has(&running.ask("surrogate"), &[">\u{fffd}</say>"]);
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
  deep: () => record("deep", () => nested(101)),
  sides: async () => {
    const values = await Promise.all([
      record("a", () => sleep(300).then(() => "slow")),
      record("b", () => "fast"),
      record("same", () => 1),
      record("same", () => 2),
      record("\ud800", () => ({ "k\ud800": "\ud800", backslash: "\\ud800", not: NaN })),
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
