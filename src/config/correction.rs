//! Corrections of values of a wrong kind: the same value in the right form.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use systole_core::vocab::{Name, is_ncname};

use super::document::{self, Key, Node, Value};
use super::short_form::Prefixes;
use super::units;

/// Longest text that a help repeats, in bytes.
const SHOWN: usize = 60;

/// The mappings of the file, each with an example of the form that its key takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shape {
    Root,
    Organism,
    Prefixes,
    Limits,
    Budget,
    Meta,
    Retention,
    Reload,
    Gateway,
    Cluster,
    Mcp,
    McpTool,
    McpPrompt,
    McpResource,
    Tls,
    Llm,
    Backend,
    Headers,
    Secret,
    Query,
    Body,
    Rename,
    Price,
    Rule,
    ToolCall,
    Client,
    Listener,
    Model,
    McpListener,
    OrganismListener,
    Remote,
    Human,
    Announce,
    Teams,
    Schedule,
    Job,
    Jobs,
}

impl Shape {
    /// A value that the key takes.
    pub(super) fn example(self) -> &'static str {
        match self {
            Self::Root => "organism: { name: demo }, and listeners: below it",
            Self::Organism => "{ name: demo }",
            Self::Prefixes => "{ n: \"urn:example:demo:v1\" }",
            Self::Limits => "{ message_bytes: 4MiB }",
            Self::Budget => "{ calls: 40, time: 5min }",
            Self::Meta => "{ list_capabilities: peers }",
            Self::Retention => "{ age: 7d }",
            Self::Reload => "{ keep: 24h }",
            Self::Gateway => "{ listen: \"127.0.0.1:8420\" }",
            Self::Cluster => "{ node: a, url: \"http://10.0.0.7:8420\" }",
            Self::Mcp => "{ as: assistant }",
            Self::McpTool => "{ call: calculator.add, name: add }",
            Self::McpPrompt => "{ call: writer.greet }",
            Self::McpResource => "{ uri: \"docs://{page}\", name: page, listener: library }",
            Self::Tls => "{ cert: cert.pem, key: key.pem }",
            Self::Llm => "{ backends: [{ name: main, provider: scripted, script: script.yaml }] }",
            Self::Backend => "{ name: main, provider: scripted, script: script.yaml }",
            Self::Headers => "{ x-team: search }",
            Self::Secret => "{ env: THE_KEY }",
            Self::Query => "{ api-version: \"2024-10-21\" }",
            Self::Body => "{ reasoning_effort: low }",
            Self::Rename => "{ max_tokens: max_completion_tokens }",
            Self::Price => "{ input: 3, output: 15 }",
            Self::Rule => "{ when: \"<task\", answer: \"<plan/>\" }",
            Self::ToolCall => "{ name: order, arguments: '{\"article\": \"tea\"}' }",
            Self::Client => "{ name: cli }",
            Self::Listener => "{ name: greeter, command: [./greeter] }",
            Self::Model => "{ instructions: planner.md }",
            Self::McpListener => "{ command: [./server] }",
            Self::OrganismListener => "{ url: \"https://bank.example:8420\", token_file: bank.token }",
            Self::Remote => "{ mode: poll }",
            Self::Human => "{ people: [ada, operator] }",
            Self::Announce => "{ command: [./announce] }",
            Self::Teams => "{ team-a: [ada, bob] }",
            Self::Schedule => "{ name: daily, cron: \"0 8 * * *\", as: cli, message: \"<report/>\" }",
            Self::Job => "{ owner: cli }",
            Self::Jobs => "{ absent: keep }",
        }
    }

    /// Checks whether a key without a value lacks its mapping, rather than being one to leave out.
    fn is_needed(self) -> bool {
        use Shape::*;
        matches!(
            self,
            Organism
                | Client
                | Listener
                | Backend
                | Rule
                | ToolCall
                | Model
                | McpListener
                | OrganismListener
                | Remote
                | Schedule
                | Job
                | Jobs
        )
    }

    /// The entries that a single value probably stands for.
    fn entries(self, text: &str) -> Option<String> {
        let is_word = !matches!(text, "true" | "false" | "yes" | "no" | "on" | "off");
        let lead = |key: &str| Some(format!("{key}: {}", quoted(text)));
        let named = Name::parse(text).is_ok() && is_word;
        match self {
            Self::Organism if is_word => lead("name"),
            Self::Client if named => lead("name"),
            Self::Listener if named => Some(format!("name: {text}, command: [./{text}]")),
            Self::Backend if named => Some(format!("name: {text}, provider: scripted, script: script.yaml")),
            Self::Job if named => lead("owner"),
            Self::Prefixes if text.contains(':') => lead("n"),
            Self::Gateway => Some(format!("listen: \"{}\"", address(text)?)),
            Self::Cluster if named => lead("node"),
            Self::Remote if matches!(text, "poll" | "stream") => lead("mode"),
            Self::Remote if text.starts_with("http") => Some(format!("mode: push, url: {}", quoted(text))),
            Self::Retention if units::duration(text, Duration::ZERO).is_ok() => lead("age"),
            Self::Reload if units::duration(text, Duration::ZERO).is_ok() => lead("keep"),
            Self::Retention if units::size(text).is_some() && text.parse::<u64>().is_err() => lead("bytes"),
            Self::Budget if units::duration(text, Duration::ZERO).is_ok() => lead("time"),
            Self::Price if text.parse::<u32>().is_ok() => Some(format!("input: {text}, output: {text}")),
            Self::Model if is_word => lead("instructions"),
            Self::Rule => lead("answer"),
            Self::ToolCall if is_word => lead("name"),
            _ => None,
        }
    }
}

/// The lists of the file, by their entries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Items {
    /// Names of payloads or listeners, and files.
    Texts,
    /// Variables of the environment.
    Variables,
    /// Mappings of a shape, whose first key is `lead`.
    Maps { shape: Shape, lead: &'static str },
}

/// Correction of a value in the place of a mapping.
pub(super) fn mapping(value: &Value, shape: Shape) -> String {
    let entries = match value {
        Value::Scalar(text) if text.len() <= SHOWN => shape.entries(text),
        _ => None,
    };
    match value {
        _ if shape == Shape::Root => format!("write {}", shape.example()),
        Value::Nothing if shape.is_needed() => {
            format!("write {}, or these keys below it, indented", shape.example())
        }
        Value::Nothing => "indent its keys below it, or leave it out".into(),
        Value::List(items) if items.iter().any(|item| matches!(item.value, Value::Map(_))) => {
            "write its keys without '- ' and without [ ]".into()
        }
        _ => entries.map_or_else(|| format!("write {}", shape.example()), |entries| format!("write {{ {entries} }}")),
    }
}

/// Correction of a value in the place of a list.
pub(super) fn list(value: &Value, items: Items) -> String {
    match (value, items) {
        (Value::Nothing, Items::Maps { shape, .. }) => format!("write [{}]", shape.example()),
        (Value::Scalar(_), Items::Maps { shape, .. }) => {
            format!("write [{}]", mapping(value, shape).strip_prefix("write ").unwrap_or(shape.example()))
        }
        (Value::Scalar(text), _) if text.len() <= SHOWN => {
            format!("write {}", unquoted(text).unwrap_or_else(|| format!("[{}]", quoted(text))))
        }
        (Value::Map(map), Items::Maps { lead, .. }) if map.iter().any(|(key, _)| key.text == lead) => {
            format!("write '- ' before '{lead}:', and its other keys below that")
        }
        (Value::Map(_), Items::Maps { lead, .. }) => format!("write a list, with '- {lead}: …' for each of its keys"),
        (Value::Map(map), _) if map.iter().map(|(key, _)| key.text.len() + 2).sum::<usize>() <= SHOWN => {
            let entries = map.iter().map(|(key, node)| match (&node.value, items) {
                (Value::Scalar(value), Items::Variables) => quoted(&format!("{}={value}", key.text)),
                _ => quoted(&key.text),
            });
            format!("write [{}]", entries.collect::<Vec<_>>().join(", "))
        }
        (_, Items::Variables) => "write [NAME, OTHER=value], or [] for none".into(),
        _ => "write [one, two], or [] for none".into(),
    }
}

/// Correction of a value in the place of a list of names.
pub(super) fn names(value: &Value, prefixes: &Prefixes) -> String {
    let joined = prefixed(value, prefixes).map(|names| format!("write [{}] ({NO_BLANK})", names.join(", ")));
    joined.unwrap_or_else(|| list(value, Items::Texts))
}

/// Correction of a value in the place of a name in a list.
pub(super) fn name(value: &Value, prefixes: &Prefixes) -> String {
    let joined = prefixed(value, prefixes).map(|names| format!("write {} ({NO_BLANK})", names.join(", ")));
    joined.unwrap_or_else(|| text(value, Some("one name")))
}

const NO_BLANK: &str = "a name with a prefix has no blank behind its colon";

/// The names with a prefix that a mapping probably stands for: YAML reads `n: order` as one.
fn prefixed(value: &Value, prefixes: &Prefixes) -> Option<Vec<String>> {
    let Value::Map(map) = value else { return None };
    let name = |(key, node): &(Key, Node)| match &node.value {
        Value::Scalar(local) if is_ncname(local) && prefixes.has(&key.text) => Some(format!("{}:{local}", key.text)),
        _ => None,
    };
    let names = map.iter().map(name).collect::<Option<Vec<_>>>()?;
    (1..=SHOWN).contains(&names.iter().map(String::len).sum()).then_some(names)
}

/// The list that a text probably stands for: one in quotes.
fn unquoted(text: &str) -> Option<String> {
    if !text.trim().starts_with('[') || text.len() > SHOWN {
        return None;
    }
    let items: Vec<String> = match document::parse(text).ok()?.value {
        Value::List(items) => {
            let text = |item: Node| if let Value::Scalar(text) = item.value { Some(text) } else { None };
            items.into_iter().map(text).collect::<Option<_>>()?
        }
        _ => return None,
    };
    (!items.is_empty()).then(|| format!("[{}]", items.iter().map(|item| quoted(item)).collect::<Vec<_>>().join(", ")))
}

/// Correction of a value in the place of a command and its arguments.
pub(super) fn command(value: &Value) -> String {
    const SHELL: &[char] = &['|', '&', ';', '<', '>', '$', '`', '*', '?', '"', '\'', '\\', '(', '~'];
    match value {
        Value::Scalar(text) if text.len() > SHOWN => {
            "write the program and each argument: [python3, listener.py]".into()
        }
        Value::Scalar(text) => match unquoted(text) {
            Some(words) => format!("write {words}"),
            None if text.contains(SHELL) => format!("write [sh, -c, {}]", quoted(text)),
            None => format!("write [{}]", text.split_whitespace().map(quoted).collect::<Vec<_>>().join(", ")),
        },
        _ => "write the program and its arguments: [python3, listener.py]".into(),
    }
}

/// Correction of a value in the place of a single value: `such` says which values the key takes, where it doesn't take
/// any text.
pub(super) fn text(value: &Value, such: Option<&str>) -> String {
    if let (Value::List(items), None) = (value, such)
        && let [Node { value: Value::Scalar(text), .. }] = &items[..]
        && text.len() <= SHOWN
    {
        return format!("write {}", quoted(text));
    }
    match (value, such) {
        (Value::Nothing, Some(such)) => format!("write {such} behind the ':'"),
        (Value::Nothing, None) => "write a value behind the ':'".into(),
        (_, Some(such)) => format!("write {such}"),
        (Value::Map(_), None) => "write one value; a text with ': ' or with braces needs quotes".into(),
        (_, None) => "write one value, without [ ] and without '- '".into(),
    }
}

/// Correction of a value in the place of a variable.
pub(super) fn variable(value: &Value) -> String {
    match value {
        Value::Map(map) => match &map[..] {
            [(key, Node { value: Value::Scalar(value), .. })] if key.text.len() + value.len() <= SHOWN => {
                format!("write {}", quoted(&format!("{}={value}", key.text)))
            }
            _ => "write NAME=value".into(),
        },
        _ => text(value, Some("NAME=value")),
    }
}

/// The address with a port that a text probably stands for.
pub(super) fn address(text: &str) -> Option<SocketAddr> {
    const HERE: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
    let port = |text: &str| text.parse::<u16>().ok();
    let ip = |text: &str| if text == "localhost" { Some(HERE) } else { text.parse::<IpAddr>().ok() };
    let split = || {
        text.rsplit_once(':')
            .map(|(host, own)| Some(SocketAddr::new(if host.is_empty() { HERE } else { ip(host)? }, port(own)?)))
    };
    let alone =
        || port(text).map(|port| SocketAddr::new(HERE, port)).or_else(|| Some(SocketAddr::new(ip(text)?, 8420)));
    text.parse().ok().or_else(alone).or_else(|| split().flatten())
}

/// A text as an entry of `[ ]`: in quotes where YAML needs them.
fn quoted(text: &str) -> String {
    let is_plain = text.starts_with(|c: char| c.is_alphanumeric() || "./_".contains(c))
        && text.chars().all(|c| c.is_alphanumeric() || "./_-+=@ ".contains(c))
        && text.trim() == text;
    let is_flag =
        text.starts_with('-') && text.len() > 1 && text.chars().all(|c| c.is_alphanumeric() || "-=_.".contains(c));
    if is_plain || is_flag {
        text.to_owned()
    } else {
        format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
    }
}

#[cfg(test)]
mod tests {
    use systole_core::vocab::Span;

    use super::super::document::parse;
    use super::super::finding::File;
    use super::super::reader::Reader;
    use super::super::short_form::Prefixes;
    use super::super::{Mistake, organism};
    use super::*;

    #[test]
    fn the_value_is_repeated_in_the_right_form() {
        let scalar = |text: &str| Value::Scalar(text.to_owned());
        let texts = |text: &str| list(&scalar(text), Items::Texts);
        assert_eq!(command(&scalar("python3 -u shop.py")), "write [python3, -u, shop.py]");
        assert_eq!(command(&scalar("a | \"b\"")), r#"write [sh, -c, "a | \"b\""]"#);
        assert_eq!(texts("{urn:shop:v1}order"), "write [\"{urn:shop:v1}order\"]");
        assert_eq!(texts("shop.xsd"), "write [shop.xsd]");
        assert_eq!(command(&scalar("[python3, -u, 'a b.py']")), "write [python3, -u, a b.py]");
        assert_eq!(texts("['{urn:shop:v1}order', n:other]"), "write [\"{urn:shop:v1}order\", \"n:other\"]");
        assert_eq!(mapping(&scalar("poll"), Shape::Remote), "write { mode: poll }");
        assert_eq!(mapping(&scalar("true"), Shape::Remote), "write { mode: poll }");
        assert_eq!(mapping(&scalar("5"), Shape::Limits), "write { message_bytes: 4MiB }");
        assert_eq!(mapping(&Value::Nothing, Shape::Limits), "indent its keys below it, or leave it out");
        assert_eq!(mapping(&Value::Nothing, Shape::Organism), "write { name: demo }, or these keys below it, indented");
    }

    #[test]
    fn an_address_is_completed() {
        for (text, expected) in [
            ("8420", "127.0.0.1:8420"),
            ("localhost", "127.0.0.1:8420"),
            ("localhost:80", "127.0.0.1:80"),
            (":80", "127.0.0.1:80"),
            ("0.0.0.0", "0.0.0.0:8420"),
            ("::1", "[::1]:8420"),
            ("10.0.0.1:80", "10.0.0.1:80"),
        ] {
            assert_eq!(address(text).map(|address| address.to_string()).as_deref(), Some(expected), "{text}");
        }
        for text in ["", "true", "example.org:80", "99999", "a:b"] {
            assert_eq!(address(text), None, "{text}");
        }
    }

    /// Files that have each key together.
    const FILES: [&str; 2] = [
        include_str!("../../tests/golden/config/all-keys.yaml"),
        "organism: { name: a }\n\
         budget: { tokens: 1, cost: 0.5, calls: 1, threads: 1, time: 1s }\n\
         gateway: { listen: \"127.0.0.1:0\", tls: { cert: a, key: b } }\n\
         llm: { backends: [{ name: a, provider: openai, model: b, api_key_env: A, price: { input: 1, output: 2 } }] }\n\
         listeners:\n\
         - { name: a, model: { instructions: Do it., temperature: 0.5 }, budget: { calls: 1 } }\n\
         - { name: b, worker: [a], processes: 2, heartbeat: 1s, start: eager, env: [A=b] }\n\
         - { name: c, remote: { mode: push, url: \"https://a.example/b\" } }\n\
         - { name: d, job: { owner: a } }\n\
         - { name: e, jobs: { absent: keep } }\n",
    ];

    /// Values of a wrong kind at most places.
    const WRONG: [&str; 5] = ["8420", "true", "[word]", "{ a: 1 }", "[{ a: 1 }]"];

    fn value(text: &str) -> Value {
        let Value::Map(mut map) = parse(&format!("value: {text}")).unwrap().value else { panic!("{text}") };
        map.remove(0).1.value
    }

    /// The nodes of a document, by their places in it.
    fn places(node: &Node, at: &[usize], found: &mut Vec<Vec<usize>>) {
        found.push(at.to_vec());
        let inner: Vec<&Node> = match &node.value {
            Value::List(items) => items.iter().collect(),
            Value::Map(map) => map.iter().map(|(_, node)| node).collect(),
            Value::Nothing | Value::Scalar(_) => Vec::new(),
        };
        inner.iter().enumerate().for_each(|(n, node)| places(node, &[at, &[n]].concat(), found));
    }

    fn node<'n>(node: &'n mut Node, at: &[usize]) -> &'n mut Node {
        let [first, rest @ ..] = at else { return node };
        match &mut node.value {
            Value::List(items) => self::node(&mut items[*first], rest),
            Value::Map(map) => self::node(&mut map[*first].1, rest),
            Value::Nothing | Value::Scalar(_) => panic!("{at:?}"),
        }
    }

    /// Mistakes of the form of a file with another value at a place, each with whether it is of its kind, and its remedy.
    fn mistakes(source: &str, at: &[usize], value: Value) -> Vec<(Span, bool, String)> {
        let mut root = parse(source).unwrap();
        node(&mut root, at).value = value;
        let mut reader = Reader {
            file: File::new("a.yaml", source),
            base: ".".into(),
            directory: ".".into(),
            prefixes: Prefixes::default(),
            findings: Vec::new(),
            files: Vec::new(),
        };
        organism::read(&mut reader, &root);
        let is_form = |mistake: &Mistake| {
            use Mistake::*;
            let words =
                matches!(mistake, Choice { .. } | Number { .. } | Size { .. } | Duration { .. } | Decimal { .. });
            words
                || matches!(
                    mistake,
                    Kind { .. } | Address { .. } | MissingKey { .. } | UnknownKey { .. } | Variable { .. }
                )
        };
        let findings = reader.findings.iter().filter(|finding| is_form(finding.mistake()));
        let told = findings.map(|finding| {
            let is_kind = matches!(finding.mistake(), Mistake::Kind { .. });
            (finding.span_in(&reader.file).unwrap(), is_kind, finding.mistake().help().unwrap_or_default())
        });
        told.collect()
    }

    /// The value that a remedy names, if it names one.
    fn named(help: &str) -> Option<&str> {
        let rest = help.strip_prefix("write ")?;
        if let Some((_, example)) = rest.split_once("such as ") {
            return Some(example);
        }
        let is_told = ["'- '", "a ", "an ", "one ", "the ", "its "].iter().any(|words| rest.starts_with(words));
        let value = rest.split(" behind ").next()?.split(", or ").next()?.split(" or ").next()?;
        (!is_told).then_some(value)
    }

    #[test]
    fn each_value_that_a_remedy_names_is_taken_in_its_place() {
        let mut taken = 0;
        for source in FILES {
            let mut found = Vec::new();
            places(&parse(source).unwrap(), &[], &mut found);
            for at in &found[1..] {
                let span = node(&mut parse(source).unwrap(), at).span;
                for wrong in WRONG {
                    let told = mistakes(source, at, value(wrong));
                    let Some((_, _, help)) = told.iter().find(|(place, is_kind, _)| *place == span && *is_kind) else {
                        continue;
                    };
                    let Some(remedy) = named(help) else { continue };
                    // What a value that is taken leads to, such as a key that it needs, is another mistake.
                    let is_of_form = |(place, is_kind, _): &&(Span, bool, String)| *place == span || *is_kind;
                    let left = mistakes(source, at, value(remedy));
                    let left: Vec<_> =
                        left.iter().filter(is_of_form).filter(|one| one.0 == span || !told.contains(one)).collect();
                    assert!(left.is_empty(), "{at:?}: {wrong}: {help}: {left:?}");
                    taken += 1;
                }
            }
        }
        assert!(taken > 200, "{taken}");
    }
}
