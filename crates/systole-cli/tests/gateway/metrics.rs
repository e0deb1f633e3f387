//! Figures of a running process, in the text format of Prometheus.

use std::collections::{BTreeMap, BTreeSet};

use crate::kit::{Site, ask, envelope, wait};

const ORGANISM: &str = r#"organism: { name: figures }
durability: process
gateway: { listen: "127.0.0.1:0" }
clients: [{ name: ada, calls: ["{urn:t}ask", "{urn:t}answer", "{urn:t}order"] }]
listeners:
  - { name: fails, command: [sh, -c, "exit 3"], schemas: [t.xsd], accepts: ["{urn:t}ask"], replies: ["{urn:t}answer"] }
  - { name: parrot, echo: true, schemas: [t.xsd], accepts: ["{urn:t}answer"] }
  - { name: agent, remote: { mode: poll }, schemas: [t.xsd], accepts: ["{urn:t}order"] }
"#;

const PAGE: &str = include_str!("../../../../docs/metrics.md");

/// The samples of a text by name and labels; each belongs to a family with a help and a type, whose name says its unit or that
/// it counts.
fn samples(text: &str) -> BTreeMap<String, f64> {
    let (mut helps, mut types) = (BTreeSet::new(), BTreeMap::new());
    let mut samples = BTreeMap::new();
    for line in text.lines() {
        if let Some(help) = line.strip_prefix("# HELP ") {
            let (name, help) = help.split_once(' ').unwrap();
            assert!(!help.is_empty() && helps.insert(name), "{line}");
        } else if let Some(kind) = line.strip_prefix("# TYPE ") {
            let (name, kind) = kind.split_once(' ').unwrap();
            assert_eq!(kind == "counter", name.ends_with("_total"), "{line}");
            assert!(kind != "histogram" || name.ends_with("_seconds"), "{line}");
            assert!(helps.contains(name) && types.insert(name, kind).is_none(), "{line}");
            assert!(PAGE.contains(&format!("`{name}`")), "docs/metrics.md has no {name}");
        } else {
            let (sample, value) = line.rsplit_once(' ').unwrap();
            let name = sample.split('{').next().unwrap();
            let of = ["_bucket", "_sum", "_count"].iter().find_map(|part| name.strip_suffix(part)).unwrap_or(name);
            assert!(types.contains_key(of), "no type of {line}");
            assert!(samples.insert(sample.to_owned(), value.parse().unwrap()).is_none(), "twice: {line}");
        }
    }
    samples
}

#[test]
fn figures_tell_of_each_listener_to_admins_alone() {
    let site = Site::of(ORGANISM);
    let ada = site.party("ada");
    let boss = site.who(&site.token(&["boss", "--kind", "admin"]));
    for (request, fault) in [(ask(1), true), (ask(2), true), (envelope("<answer xmlns='urn:t'>a & b</answer>"), false)]
    {
        let answer = ada.post("/v1/messages?wait=60", &request).is(200).body;
        assert_eq!(answer.contains("<code>failed</code>"), fault, "{answer}");
    }
    let of_all = |name: &str| samples(&site.who("").get("/metrics").is(200).body).get(name).copied();
    wait("two faults are counted", || (of_all("systole_faults_total{code=\"failed\"}") >= Some(2.0)).then_some(()));
    let public = site.who("").get("/metrics").is(200).body;
    for name in ["fails", "parrot", "ada", "boss"] {
        assert!(!public.contains(&format!("\"{name}\"")), "{public}");
    }
    ada.get("/v1/admin/metrics").problem(403, "forbidden");
    let told = |name: &str| samples(&boss.get("/v1/admin/metrics").is(200).body).get(name).copied();
    wait("the handlers have ended", || {
        let ended = ["fails", "parrot"]
            .map(|listener| told(&format!("systole_listener_handler_seconds_count{{listener=\"{listener}\"}}")));
        (ended == [Some(2.0), Some(1.0)]).then_some(())
    });
    let all = samples(&boss.get("/v1/admin/metrics").is(200).body);
    let is = |name: &str, value: f64| assert_eq!(all.get(name), Some(&value), "{name}: {all:#?}");
    is("systole_listener_deliveries_total{listener=\"fails\"}", 2.0);
    is("systole_listener_faults_total{listener=\"fails\",code=\"failed\"}", 2.0);
    is("systole_listener_repairs_total{listener=\"ada\",kind=\"stray-ampersand\"}", 1.0);
    is("systole_listener_running{listener=\"fails\"}", 0.0);
    is("systole_messages_total{fate=\"injected\"}", 3.0);
    is("systole_events_missed_total", 0.0);
    is("systole_listener_queue_seconds_count{listener=\"fails\"}", 2.0);
    is("systole_queue_seconds_count", 3.0);
    is("systole_oldest_waiting_seconds", 0.0);
    is("systole_mailbox_leased{mailbox=\"agent\"}", 0.0);
    is("systole_mailbox_lag_seconds{mailbox=\"agent\"}", 0.0);
    assert!(all["systole_journal_bytes{part=\"file\"}"] > 0.0, "{all:#?}");
    assert!(all["systole_journal_append_seconds_count"] >= 3.0, "{all:#?}");
    // A message that no agent has come for, and then one that it has leased.
    let agent = site.party("agent");
    ada.post("/v1/messages", &envelope("<order xmlns='urn:t'>7</order>")).is(202);
    wait("the message lags", || told("systole_mailbox_lag_seconds{mailbox=\"agent\"}").filter(|lag| *lag > 0.0));
    assert_eq!(told("systole_mailbox_leased{mailbox=\"agent\"}"), Some(0.0));
    agent.post("/v1/mailboxes/agent/lease", r#"{"wait":60}"#).is(200);
    assert_eq!(told("systole_mailbox_leased{mailbox=\"agent\"}"), Some(1.0));
    // A pause lets requests wait for their handler.
    let act = |act: &str| {
        let act = format!(r#"{{"act":"{act}","listener":"fails"}}"#);
        boss.ask("POST", "/v1/admin/acts", &[("Content-Type", "application/json")], &act).is(200);
    };
    act("pause");
    ada.post("/v1/messages", &ask(3)).is(202);
    wait("the request ages", || {
        told("systole_listener_oldest_waiting_seconds{listener=\"fails\"}").filter(|age| *age > 0.0)
    });
    assert!(of_all("systole_oldest_waiting_seconds") > Some(0.0));
    act("resume");
    wait("the request is handled", || {
        let waited = told("systole_listener_queue_seconds_count{listener=\"fails\"}");
        (waited == Some(3.0) && told("systole_listener_oldest_waiting_seconds{listener=\"fails\"}") == Some(0.0))
            .then_some(())
    });
    // A name of a listener can't break out of a label, and an act counts.
    boss.ask(
        "POST",
        "/v1/admin/acts",
        &[("Content-Type", "application/json")],
        r#"{"act":"pause","listener":"parrot"}"#,
    )
    .is(200);
    wait("the pause is counted", || {
        (told("systole_acts_total{act=\"pause\",outcome=\"done\"}") == Some(2.0)).then_some(())
    });
    assert_eq!(told("systole_listener_paused{listener=\"parrot\"}"), Some(1.0));
}
