//! Rules of the house that no compiler checks. A failure names the file and the rule.

mod circles;

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// The crates and their modules, lowest first: a module may use those that stand before it in its crate, and a crate only
/// what its Cargo.toml names. Inside of a module `circles` looks for them.
const MODULES: [(&str, &[&str]); 4] = [
    ("crates/systole-xml/src", &["vocab", "ladder", "schema"]),
    ("crates/systole-core/src", &["vocab", "protocol", "journal", "inbox", "core", "mailbox", "question", "lease"]),
    ("crates/systole-store/src", &["entered", "clock", "entropy", "principal", "token", "sqlite", "tenure", "journal"]),
    (
        "src",
        &[
            "settings",
            "identity",
            "terminal",
            "network",
            "process",
            "drafts",
            "runtime",
            "jobs",
            "listeners",
            "schedules",
            "operations",
            "upgrade",
            "replay",
            "accept",
            "outbound",
            "telemetry",
            "remote",
            "federation",
            "model",
            "gateway",
            "console",
            "molecule",
            "mcp",
            "cluster",
            "config",
            "testing",
            "prelude",
            "actor",
        ],
    ),
];

/// Names that `systole-xml` and `systole-core` never use: both are pure, time and bytes come in from outside. tokio and
/// actix are not among their dependencies.
const IMPURE: [&str; 7] =
    ["std::fs", "std::net", "std::process", "Instant", "SystemTime", "Timestamp::now", "std::thread"];

const MAX_HELLO: usize = 15;

#[test]
fn no_module_uses_one_that_stands_above_it() {
    each_source(|path, code| {
        let Some((own, modules)) = module_of(path) else { return };
        let at = modules.iter().position(|module| *module == own);
        let at = at.unwrap_or_else(|| panic!("{}: give {own} a place among the modules here", path.display()));
        for line in code.lines().filter(|line| !line.trim_start().starts_with("//")) {
            for above in &modules[at + 1..] {
                let named = line.contains(&format!("crate::{above}::")) || line.contains(&format!("crate::{above};"));
                assert!(!named, "{}: {own} uses {above}, which stands above it: {line}", path.display());
            }
        }
    });
}

#[test]
fn the_lower_crates_are_pure() {
    each_source(|path, code| {
        if !["crates/systole-xml/src", "crates/systole-core/src"].iter().any(|folder| path.starts_with(folder)) {
            return;
        }
        for line in code.lines() {
            let words: Vec<&str> = line.split(|c: char| !(c.is_alphanumeric() || c == '_' || c == ':')).collect();
            for name in IMPURE {
                let named = words.iter().any(|word| *word == name || word.starts_with(&format!("{name}::")));
                assert!(!named, "{}: it may not name {name}: {line}", path.display());
            }
        }
    });
}

#[test]
fn libxml_is_named_in_one_module() {
    each_source(|path, code| {
        let allowed = path.ends_with("schema/libxml2.rs") || path.starts_with("crates/systole-bench/src");
        let named = code.lines().any(|line| line.contains("libxml::"));
        assert!(!named || allowed, "{}: libxml belongs into schema/libxml2.rs of systole-xml", path.display());
    });
}

#[test]
fn nobody_above_the_stores_names_one() {
    const OWN: [&str; 5] = ["rusqlite", "SqliteJournal", "JournalReader", "JournalQuery", "StoreError"];
    each_source(|path, code| {
        if !path.starts_with("src") && !path.starts_with("crates/systole-cli/src") {
            return;
        }
        let code = code.split("#[cfg(test)]").next().unwrap_or_default();
        for name in OWN {
            assert!(!code.contains(name), "{}: {name} is of one store: use the traits of all", path.display());
        }
    });
}

#[test]
fn one_module_sends_to_networks() {
    each_source(|path, code| {
        let named = code.lines().any(|line| line.contains("hyper_util::client"));
        assert!(!named || path.ends_with("outbound/http.rs"), "{}: send it through src/outbound", path.display());
    });
}

#[test]
fn the_program_prints_through_what_escapes() {
    // Text for a terminal is escaped in these files; `report` renders findings, which are escaped as they are made.
    let program = Path::new("crates/systole-cli/src");
    let escaping = ["print.rs", "screen.rs", "report.rs"].map(|file| program.join(file));
    let ways = ["stdout()", "stderr()", "print!(", "println!("];
    each_source(|path, code| {
        if !path.starts_with(program) || escaping.iter().any(|file| path == file) {
            return;
        }
        for line in code.lines().filter(|line| !line.contains("is_terminal()")) {
            let named = ways.iter().find(|way| line.contains(*way));
            assert!(named.is_none(), "{}: print it through print.rs: {line}", path.display());
        }
    });
}

#[test]
fn files_begin_with_their_purpose() {
    each_source(|path, code| {
        assert!(code.starts_with("//! "), "{}: its first line says what is in it", path.display())
    });
}

/// The compiler keeps these ways to a proof inside of `ladder`; there, each has one file that may take it.
#[test]
fn each_proof_has_one_minter() {
    let minters = [
        ("from_encoder(", "encode/mod.rs"),
        (".into_part(", "envelope/open.rs"),
        ("Canonical::checked(", "strict/mod.rs"),
        ("Validated {", "schema/validator.rs"),
    ];
    each_source(|path, code| {
        let is_definition = |line: &str| ["fn ", "struct ", "impl", "//"].iter().any(|word| line.contains(word));
        for (way, minter) in minters {
            let mints = code.lines().any(|line| line.contains(way) && !is_definition(line));
            assert!(!mints || path.ends_with(minter), "{}: only {minter} may write {way}", path.display());
        }
    });
}

/// The parts of the core keep their state to themselves: the steps alone join them.
#[test]
fn the_steps_alone_implement_the_core() {
    each_source(|path, code| {
        let is_step = path.starts_with("crates/systole-core/src/core/steps");
        assert!(is_step || !code.contains("\nimpl Core {"), "{}: move it into core/steps", path.display());
    });
}

/// A façade in a crate of its own could be written so, too.
#[test]
fn the_facade_uses_public_interfaces_alone() {
    let public = ["gateway::facade::", "gateway::Gateway;", "remote::", "terminal::"];
    each_source(|path, code| {
        if path.starts_with("src/molecule") {
            for line in code.lines().filter(|line| !line.trim_start().starts_with("//")) {
                let private = line.match_indices("crate::").find(|(at, _)| {
                    let own = line[..*at].ends_with(|c: char| c.is_alphanumeric() || c == '_');
                    !own && !public.iter().any(|name| line[at + "crate::".len()..].starts_with(name))
                });
                assert!(private.is_none(), "{}: take it from gateway::facade: {line}", path.display());
            }
        }
        let is_interface = path.ends_with("gateway/facade.rs");
        assert!(!is_interface || !code.contains("pub(crate)"), "{}: all of it is public", path.display());
    });
}

#[test]
fn the_smallest_organism_is_short() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/hello.rs");
    let text = read(&path);
    let lines = text.lines().filter(|line| !line.trim().is_empty() && !line.starts_with("//!")).count();
    assert!(lines <= MAX_HELLO, "{}: {lines} lines without blanks, at most {MAX_HELLO}", path.display());
}

#[test]
fn the_example_of_a_model_is_short() {
    let path = Path::new("examples/rust_model.rs");
    let lines = read(path).lines().count();
    assert!(lines < 80, "{}: {lines} lines: docs/model.md says fewer than 80", path.display());
}

#[test]
fn modules_have_telling_names() {
    each_source(|path, _| {
        let stem = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
        let empty = ["utils", "util", "common", "helpers", "helper", "misc"];
        assert!(!empty.contains(&stem), "{}: name it after what it does", path.display());
    });
}

/// The name of the public type that a line defines.
fn public_type(line: &str) -> Option<&str> {
    let rest = line.trim_start().strip_prefix("pub ")?;
    let rest = rest.strip_prefix("unsafe ").unwrap_or(rest);
    let (kind, rest) = rest.split_once(' ')?;
    let is_type = ["struct", "enum", "union", "trait", "type"].contains(&kind);
    let name = rest.split(|c: char| !(c.is_alphanumeric() || c == '_')).next()?;
    (is_type && !name.is_empty()).then_some(name)
}

/// Files whose types users make or match on, besides errors.
const OF_USERS: [&str; 9] = [
    "crates/systole-core/src/core/event.rs",
    "crates/systole-core/src/journal/error.rs",
    "crates/systole-core/src/vocab/fault.rs",
    "crates/systole-xml/src/ladder/repair/kind.rs",
    "src/outbound/cause.rs",
    "src/runtime/organism/drain.rs",
    "crates/systole-store/src/journal/edit.rs",
    "crates/systole-store/src/journal/reader.rs",
    "crates/systole-store/src/journal/verify.rs",
];

/// Files, and folders, whose structs are options that users make.
const OPTIONS: [&str; 12] = [
    "crates/systole-core/src/core/contract.rs",
    "crates/systole-core/src/vocab/limits.rs",
    "crates/systole-xml/src/vocab/budget.rs",
    "crates/systole-xml/src/vocab/limits.rs",
    "src/remote/agent_loop.rs",
    "src/remote/link.rs",
    "src/remote/push.rs",
    "src/process/mod.rs",
    "crates/systole-store/src/journal/mod.rs",
    "crates/systole-store/src/sqlite/mod.rs",
    "src/listeners/worker.rs",
    "src/settings",
];

/// Types that stay exhaustive, and why.
const EXHAUSTIVE: [(&str, &str); 25] = [
    ("Fault", "listeners and stores make it; its fields are those of `schemas/meta.xsd`"),
    ("BrokenRule", "as Fault"),
    ("BlueprintProblem", "the reader of `organism.yaml` gives each a place and an advice"),
    ("Spending", "the program makes it of what the journal has"),
    ("HistoryRecord", "`systole thread show` prints each"),
    ("LetterPosition", "an act goes to the pump or to a mailbox"),
    ("KeptLetter", "as LetterPosition"),
    ("JobError", "the gateway gives each a status"),
    ("ListenerKind", "a program that runs an `organism.yaml` starts each kind"),
    ("WorkerStart", "as ListenerKind"),
    ("LoopEnd", "the program of an agent ends with a status for each"),
    ("AgentState", "an agent does otherwise in each"),
    ("Handled", "as AgentState"),
    ("Lost", "the runtime does otherwise for each"),
    ("Heard", "the program does otherwise at each signal"),
    ("Clock", "not exported: the library reads each"),
    ("Entropy", "as Clock"),
    ("Observed", "as Clock"),
    ("Block", "as Clock"),
    ("Of", "as Clock"),
    ("PrincipalKind", "the gateway gives each its permissions"),
    ("LineKind", "`systole worker test` takes the part of the pump"),
    ("LineEffect", "as LineKind"),
    ("Output", "as LineKind"),
    ("TrialOutput", "as LineKind"),
];

/// A new variant or field must break no program. A struct with a private field can't be made outside in any case.
#[test]
fn types_of_users_may_grow() {
    let found = RefCell::new(Vec::new());
    each_source(|path, code| {
        if !MODULES.iter().any(|(root, _)| path.starts_with(root)) {
            return;
        }
        let is_in = |places: &[&str]| places.iter().any(|place| path.starts_with(place));
        let (of_users, of_options) = (is_in(&OF_USERS), is_in(&OPTIONS));
        let lines: Vec<&str> = code.lines().collect();
        for at in (0..lines.len()).filter(|&at| has_public_parts(&lines[at..])) {
            let name = public_type(lines[at]).unwrap_or_default();
            let above = lines[..at].iter().rev().map(|line| line.trim_start());
            let attributes: Vec<&str> = above.take_while(|line| !line.is_empty() && !line.starts_with("//")).collect();
            let is_error = attributes.iter().any(|attribute| attribute.contains("thiserror::Error"));
            let is_exhaustive = !attributes.contains(&"#[non_exhaustive]");
            let is_option = of_options && lines[at].trim_start().starts_with("pub struct ");
            let is_choice = is_in(&["src", "crates/systole-store/src"]) && lines[at].starts_with("pub enum ");
            if (is_error || of_users || is_option || is_choice) && is_exhaustive {
                found.borrow_mut().push(format!("{}: {name}", path.display()));
            }
        }
    });
    let named = |entry: &String| EXHAUSTIVE.iter().any(|(name, _)| entry.ends_with(&format!(": {name}")));
    let (excepted, others): (Vec<_>, Vec<_>) = found.into_inner().into_iter().partition(named);
    assert!(others.is_empty(), "mark these #[non_exhaustive], or add them to EXHAUSTIVE with the reason: {others:#?}");
    assert_eq!(excepted.len(), EXHAUSTIVE.len(), "only these are exhaustive: {excepted:#?}");
}

/// Tells whether an enum begins here, or a struct of public fields alone.
fn has_public_parts(lines: &[&str]) -> bool {
    let definition = lines[0].trim_start();
    let indent = lines[0].len() - definition.len();
    let body = lines[1..].iter().take_while(|line| !line[indent.min(line.len())..].starts_with('}'));
    let mut fields = body.filter_map(|line| line.get(indent + 4..)).filter(|line| !line.starts_with([' ', '/', '#']));
    definition.starts_with("pub enum ")
        || definition.starts_with("pub struct ")
            && definition.ends_with('{')
            && fields.all(|line| line.starts_with("pub "))
}

#[test]
fn nothing_is_left_unfinished() {
    // Spelled apart, so that this file does not find itself.
    let marks = [concat!("todo", "!("), concat!("unimplemented", "!("), concat!("FIX", "ME"), concat!("dbg", "!(")];
    each_source(|path, code| {
        for mark in marks {
            assert!(!code.contains(mark), "{}: {mark} is unfinished work", path.display());
        }
    });
}

/// A package holds the folder of its crate alone.
#[test]
fn crates_embed_only_files_of_their_own() {
    each_source(|path, code| {
        let folder = match path.strip_prefix("crates") {
            Ok(rest) => Path::new("crates").join(rest.components().next().expect("a crate's name")),
            Err(_) => PathBuf::new(),
        };
        let within = path.parent().and_then(|parent| parent.strip_prefix(&folder).ok()).expect("below its crate");
        for (at, _) in code.match_indices("include_str!(\"").chain(code.match_indices("include_bytes!(\"")) {
            let embedded = code[at..].split('"').nth(1).expect("a path in quotes");
            let up = embedded.split('/').take_while(|part| *part == "..").count();
            assert!(
                up <= within.components().count(),
                "{}: {embedded} is outside of {}",
                path.display(),
                folder.display()
            );
        }
    });
}

#[test]
fn errors_of_users_have_a_debug_that_reads() {
    // Errors that a user's `main` can return; the configuration's mistakes among them.
    let below = [
        "systole-xml/src/schema/decode/mod.rs",
        "systole-core/src/core/dead_letters.rs",
        "systole-core/src/core/gauge.rs",
    ]
    .map(|file| Path::new("crates").join(file));
    each_source(|path, code| {
        let shown = path.starts_with("src")
            || path.starts_with("crates/systole-core/src/inbox")
            || below.iter().any(|file| path == file);
        let lines: Vec<&str> = code.lines().map(str::trim_start).collect();
        for (at, line) in lines.iter().enumerate().filter(|(_, line)| line.contains("thiserror::Error)]") && shown) {
            let item =
                lines[at..].iter().find_map(|line| line.strip_prefix("pub enum ").or(line.strip_prefix("pub struct ")));
            let is_public =
                lines[at + 1..].iter().find(|line| !line.starts_with('#')).is_some_and(|line| line.starts_with("pub "));
            if is_public {
                let name = item.unwrap_or_default();
                assert!(!line.contains("Debug"), "{}: give {name} debug_is_display!, not {line}", path.display());
            }
        }
    });
}

#[test]
fn scripts_find_what_cargo_built() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let scripts = fs::read_dir(root.join("scripts")).expect("the scripts can be read");
    for path in scripts.map(|entry| entry.expect("their entries too").path()).chain([root.join("fuzz/run")]) {
        let text = fs::read_to_string(&path).expect("scripts are UTF-8");
        let named = text.match_indices("target/").any(|(at, _)| !text[..at].ends_with('$'));
        assert!(!named, "{}: the folder is ${{CARGO_TARGET_DIR:-target}}", path.display());
    }
}

#[test]
fn the_book_has_each_page_once() {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs");
    let summary = read(&docs.join("SUMMARY.md"));
    let mut listed: Vec<&str> = links(&summary).collect();
    let mut pages: Vec<String> = pages(&docs).iter().map(|path| file_name(path)).collect();
    pages.retain(|page| page != "SUMMARY.md");
    listed.sort_unstable();
    pages.sort_unstable();
    assert!(pages.len() > 20, "only {} pages found: the walk is broken", pages.len());
    assert_eq!(listed, pages, "docs/SUMMARY.md names each page of docs/ once");
}

#[test]
fn links_of_the_pages_lead_somewhere() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut seen = 0;
    for page in pages(&root.join("docs")).into_iter().chain([root.join("README.md")]) {
        let text = read(&page);
        let is_in_book = page.starts_with(root.join("docs"));
        assert!(!is_in_book || !text.contains("{{#"), "{}: a line for mdBook alone", page.display());
        for link in links(&text) {
            // The book and the package hold docs/ alone.
            let stays = !is_in_book || !link.starts_with("../");
            assert!(stays, "{}: write {link} as code, for it is outside of docs/", page.display());
            let (file, heading) = link.split_once('#').unwrap_or((link, ""));
            let target = if file.is_empty() { page.clone() } else { page.with_file_name("").join(file) };
            assert!(target.exists(), "{}: the link {link} leads to no file", page.display());
            let is_there = heading.is_empty() || headings(&read(&target)).any(|found| found == heading);
            assert!(is_there, "{}: the link {link} leads to no heading", page.display());
            seen += 1;
        }
    }
    assert!(seen > 100, "only {seen} links found: the search is broken");
}

/// The names of metrics in a text.
fn metrics(text: &str) -> BTreeSet<&str> {
    let words = text.split(|c: char| !c.is_ascii_lowercase() && c != '_');
    words.filter(|word| word.starts_with("systole_")).collect()
}

#[test]
fn the_dashboard_shows_each_metric_of_the_reference_and_no_other() {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs");
    let (page, dashboard) = (read(&docs.join("metrics.md")), read(&docs.join("grafana.json")));
    // A test of the program compares the page with the figures that are told.
    let shown = metrics(&dashboard).into_iter().map(|name| name.strip_suffix("_bucket").unwrap_or(name)).collect();
    assert_eq!(metrics(&page), shown, "docs/metrics.md and docs/grafana.json");
    let dashboard: serde_json::Value = serde_json::from_str(&dashboard).expect("a dashboard is JSON");
    assert!(dashboard["panels"].as_array().is_some_and(|panels| panels.iter().all(|panel| panel["title"].is_string())));
}

#[test]
fn the_reference_has_each_fault_event_and_request() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let rows = |page| read(&root.join("docs").join(page)).lines().map(str::to_owned).collect::<Vec<_>>();
    let has_row = |rows: &[String], name: &str| rows.iter().any(|row| row.starts_with(&format!("| `{name}` |")));

    let source = read(&root.join("crates/systole-core/src/vocab/fault.rs"));
    let words = between(&source, "fn as_str", "fn element");
    let codes: Vec<&str> = words.split("=> \"").skip(1).filter_map(|rest| rest.split('"').next()).collect();
    let all = between(&source, "ALL: [Self; ", "]");
    assert_eq!(codes.len().to_string(), all, "the codes were found: {codes:?}");
    let faults = rows("faults.md");
    for code in codes {
        assert!(has_row(&faults, code), "docs/faults.md: a row for the fault {code} is missing");
    }

    let source = read(&root.join("crates/systole-core/src/core/event.rs"));
    let arms = between(between(&source, "impl EventKind {", "\n}"), "match self {", "\n        }");
    let names: Vec<&str> = arms.split("=> \"").skip(1).filter_map(|rest| rest.split('"').next()).collect();
    let variants = variants(between(&source, "pub enum EventKind {", "\n}"));
    assert!(variants.len() > 10, "the kinds were found: {variants:?}");
    assert_eq!(variants.len(), names.len(), "each kind has a name: {names:?}");
    let events = rows("events.md");
    for name in names.into_iter().chain(["log"]) {
        assert!(has_row(&events, name), "docs/events.md: a row for the event {name} is missing");
    }
    let fields = event_fields(between(&source, "pub enum EventKind {", "\n}"));
    assert!(fields.len() > 40, "the fields were found: {fields:?}");
    for field in &fields {
        let is_there = events.iter().any(|row| row.contains(&format!("`{field}`")));
        assert!(is_there, "docs/events.md: the field {field} is missing");
    }

    let source = read(&root.join("schemas/meta.xsd"));
    let elements = |text: &str| {
        let names = text.split("\n  <xs:element name=\"").skip(1);
        names.filter_map(|rest| Some(rest.split('"').next()?.to_owned())).collect::<Vec<_>>()
    };
    let (requests, answers) = source.split_once("<!-- Answers -->").expect("requests, then answers");
    let (requests, answers) = (elements(requests), elements(answers));
    assert!(requests.len() > 6 && answers.len() > 5, "they were found: {requests:?} {answers:?}");
    let core = rows("core.md");
    for request in requests {
        assert!(has_row(&core, &request), "docs/core.md: a row for the request {request} is missing");
        let is_shown = core.iter().any(|line| !line.starts_with('|') && line.contains(&format!("<{request}")));
        assert!(is_shown, "docs/core.md: an example of the request {request} is missing");
    }
    for answer in answers {
        let is_there = core.iter().any(|row| row.starts_with('|') && row.contains(&format!("| `{answer}`")));
        assert!(is_there, "docs/core.md: the answer {answer} is missing");
    }
}

/// The names of the variants in the body of an enum.
fn variants(body: &str) -> Vec<&str> {
    let lines = body.lines().filter_map(|line| line.strip_prefix("    "));
    let named = lines.filter(|line| line.starts_with(|c: char| c.is_ascii_uppercase()));
    named.filter_map(|line| line.split(|c: char| !c.is_alphanumeric()).next()).collect()
}

/// The names of the fields in the body of the enum of events, as JSON has them; those that are flattened have other names.
fn event_fields(body: &str) -> Vec<&str> {
    let (mut fields, mut attribute) = (Vec::new(), "");
    for line in body.lines().filter_map(|line| line.strip_prefix("        ")) {
        if line.starts_with("#[") {
            attribute = line;
        } else if let Some((field, _)) = line.split_once(": ").filter(|_| !line.starts_with('/')) {
            let renamed = attribute.split_once("rename = \"").and_then(|(_, rest)| rest.split('"').next());
            if !attribute.contains("flatten") && attribute.trim() != "#[serde(skip)]" && field != "budget" {
                fields.push(renamed.unwrap_or(field));
            }
            attribute = "";
        }
    }
    fields
}

/// The text between two others, the first of each.
fn between<'a>(text: &'a str, start: &str, end: &str) -> &'a str {
    let (_, rest) = text.split_once(start).unwrap_or_else(|| panic!("{start} is not there"));
    rest.split_once(end).unwrap_or_else(|| panic!("{end} is not there")).0
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn file_name(path: &Path) -> String {
    path.file_name().and_then(|name| name.to_str()).unwrap_or_default().to_owned()
}

/// The pages in a folder of documents.
fn pages(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).expect("the documents can be read");
    let paths = entries.map(|entry| entry.expect("their entries too").path());
    paths.filter(|path| path.extension().is_some_and(|extension| extension == "md")).collect()
}

/// Targets of the relative links of a page, outside of its code.
fn links(page: &str) -> impl Iterator<Item = &str> {
    let targets = prose(page).flat_map(|line| line.split("](").skip(1));
    let targets = targets.filter_map(|rest| Some(rest.split_once(')')?.0));
    targets.filter(|target| !target.contains("://"))
}

/// The anchors of the headings of a page, as GitHub and mdBook make them.
fn headings(page: &str) -> impl Iterator<Item = String> {
    let titles = prose(page).filter(|line| line.starts_with('#')).map(|line| line.trim_start_matches('#').trim());
    titles.map(|title| {
        let kept = title.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
        kept.map(|c| if c == ' ' { '-' } else { c.to_ascii_lowercase() }).collect()
    })
}

/// The lines of a page that are not in a block of code.
fn prose(page: &str) -> impl Iterator<Item = &str> {
    let mut is_code = false;
    page.lines().filter(move |line| {
        let is_fence = line.trim_start().starts_with("```");
        is_code ^= is_fence;
        !is_code && !is_fence
    })
}

/// The module at the root of its crate that a file belongs to, and all modules there.
fn module_of(path: &Path) -> Option<(String, &'static [&'static str])> {
    let (root, modules) = MODULES.iter().find(|(root, _)| path.starts_with(root))?;
    let module = path.strip_prefix(root).ok()?.components().next()?;
    let name = Path::new(module.as_os_str()).file_stem()?.to_str()?.to_owned();
    (name != "lib").then_some((name, *modules))
}

/// Calls `check` with each source file and its code without its unit tests.
fn each_source(check: impl Fn(&Path, &str)) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let crates = fs::read_dir(root.join("crates")).expect("the crates can be read");
    let mut folders: Vec<PathBuf> = crates.map(|krate| krate.expect("their entries too").path().join("src")).collect();
    folders.push(root.join("src"));
    let mut seen = 0;
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).expect("the source folder can be read") {
            let path: PathBuf = entry.expect("its entries too").path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") && !path.ends_with("tests.rs") {
                let text = fs::read_to_string(&path).expect("sources are UTF-8");
                check(path.strip_prefix(root).expect("below the root"), code_of(&text));
                seen += 1;
            }
        }
    }
    assert!(seen > 20, "only {seen} source files found: the walk is broken");
}

/// The code of a file before its tests, if these are in it.
fn code_of(text: &str) -> &str {
    const TESTS: &str = "#[cfg(test)]\nmod ";
    let is_body = |at: &usize| text[at + TESTS.len()..].lines().next().is_some_and(|line| line.ends_with('{'));
    let tests = text.match_indices(TESTS).map(|(at, _)| at).find(is_body);
    &text[..tests.unwrap_or(text.len())]
}
