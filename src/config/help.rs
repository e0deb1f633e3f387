//! Remedies for mistakes: one sentence for each, with the text to write instead.

use systole_core::core::BlueprintProblem;
use systole_core::vocab::Name;

use super::Mistake;
use super::check::is_the_pumps;
use super::correction;
use super::units;

/// Listeners that a remedy lists at most.
const NAMES: usize = 12;

impl Mistake {
    /// The remedy of the mistake.
    pub fn help(&self) -> Option<String> {
        Some(match self {
            Self::UnknownKey { near: Some(near), .. } | Self::Choice { near: Some(near), .. } => {
                format!("did you mean '{near}'?")
            }
            Self::Prefix { near: Some(near), .. } => format!("did you mean '{near}'?"),
            Self::Prefix { prefix, known, .. } if known.is_empty() => {
                format!("declare it above: prefixes: {{ {prefix}: \"urn:…\" }}, or write {{urn:…}}name")
            }
            Self::Prefix { known, .. } => format!("the prefixes are {}: add it to them, or write {{urn:…}}name", known.join(", ")),
            Self::PrefixOfNone { near: Some(near), .. } => format!("did you mean '{near}'?"),
            Self::PrefixOfNone { known, .. } if known.is_empty() => {
                "add the file that declares them to the schemas of a listener".into()
            }
            Self::PrefixOfNone { known, .. } => format!("the schemas declare payloads in {}", known.join(", ")),
            Self::PrefixName { .. } => "begin it with a letter or '_', and go on with letters, digits, '.', '-' or '_'".into(),
            Self::PrefixOfNothing => "write the namespace, or a payload in none without a prefix".into(),
            Self::TwoMeanings { word, payloads } => {
                let all: Vec<_> = payloads.iter().map(ToString::to_string).collect();
                format!("write {{}}{word} for the payload, or for the listener what it accepts: {}", all.join(", "))
            }
            Self::UnknownKey { known, .. } => format!("the keys here are {}", known.join(", ")),
            Self::Choice { choices, .. } => format!("write {}", choices.join(" or ")),
            Self::DuplicateKey { .. } => "remove one of them".into(),
            Self::Arguments { .. } => "write an object as a text, such as arguments: '{\"article\": \"tea\"}'".into(),
            Self::MissingKey { key: "organism", .. } => "write organism: { name: demo }".into(),
            Self::MissingKey { key, .. } => format!("add '{key}:'"),
            Self::Kind { instead, .. } => instead.clone(),
            Self::Number { .. } => "write digits, such as 64 or 10_000".into(),
            Self::Size { .. } => {
                "write a whole number of bytes with or without a unit: 1MiB (1,048,576 bytes), 1MB (1,000,000), 64KiB".into()
            }
            Self::Duration { text } => match units::short(text) {
                Some(short) => format!("did you mean {short}?"),
                None => "write a whole number with a unit: 250ms, 30s, 15min, 1h".into(),
            },
            Self::TooLong { .. } => "write at most 876000h, which are 100 years".into(),
            Self::TooShort { least, .. } => format!("write at least {least:?}"),
            Self::EmptyBudget => "write the most of something, such as budget: { calls: 40, time: 5min }, or remove it".into(),
            Self::Bounds { key, .. } => format!("write a number in these bounds, or leave '{key}' out"),
            Self::Decimal { help, .. } => help.clone(),
            Self::NoLlm => {
                "add llm: { backends: [{ name: main, provider: anthropic, model: NAME, api_key_env: ANTHROPIC_API_KEY }] }".into()
            }
            Self::NoBackend { near, backends, .. } => {
                let else_write = "name one of llm: backends, or leave 'backend' out";
                did_you_mean(near.as_deref(), &listed("backend", backends), else_write)
            }
            Self::LeftOut { .. } => "the organism can't start like this; a backend without 'when_env' and 'unless_env' is always there".into(),
            Self::Forgetful => "leave 'context' out: a model has one by itself".into(),
            Self::NotSummarized => "write context: true".into(),
            Self::NoSummaries { .. } => "write context: summary beside model:, or remove the key".into(),
            Self::NoPrice { .. } => {
                "add the price of a million tokens, such as price: { input: 3, output: 15 }, or price: { input: 0, output: 0 } if it is free".into()
            }
            Self::NoBackends => {
                "add one, such as { name: main, provider: scripted, script: script.yaml }".into()
            }
            Self::NoInstructions => "write what the model is to do, or the name of a file with that, such as planner.md".into(),
            Self::TwoBackends { .. } => "give it another name".into(),
            Self::NoKey { .. } => "the organism can't start before it is there".into(),
            Self::NoVariable => "write the name of a variable, such as OPENAI_API_KEY: never a key itself".into(),
            Self::TwoKeys | Self::TwoSecrets => "remove one of them".into(),
            Self::SecretVariable { .. } => "set it before the organism starts; openssl rand -hex 32 prints a secret".into(),
            Self::NoKind => {
                "add one of: command: [program, argument], worker: [program, argument], model: { instructions: FILE.md }, human: true, echo: true, remote: { mode: poll }, job: { owner: name }, jobs: {}".into()
            }
            Self::TwoKinds => "remove all but one".into(),
            Self::FalseKind { .. } => "remove it, or write true".into(),
            Self::NoPeople => "name people, teams, or operator for who runs the organism: people: [ada, operator]".into(),
            Self::PersonTaken { .. } => "give the person another name; in a list of people, operator is who runs the organism".into(),
            Self::PeopleNotDurable => "add durability: process, or add operator to the people".into(),
            Self::EmptyCommand => "write the program and its arguments: command: [python3, listener.py]".into(),
            Self::NoProgram { program, beside: true, .. } => format!("write ./{program} for the file beside this one"),
            Self::NotExecutable { program } => format!("let it be run: chmod +x {program}, beside this file"),
            Self::NoInterpreter { interpreter, .. } if interpreter.ends_with('\r') => {
                "it has Windows line ends: save it with those of Unix (sed -i 's/\\r$//' FILE)".into()
            }
            Self::NoInterpreter { .. } => "install it, or write where it is behind #!".into(),
            Self::Syntax { .. } => "correct it, or name the Python that it is written for: command: [python3.12, listener.py]".into(),
            Self::Import { .. } => {
                "install it for this Python, or let env: [PYTHONPATH=FOLDER] name its folder; the package of workers is systole-sdk".into()
            }
            Self::Expires { .. } => "put a new one in its place, and start the organism again, which reads it then".into(),
            Self::AddressInUse { .. } => {
                "this organism does, if it runs; else write another port, or 0 for any that is free".into()
            }
            Self::NoAddress { .. } => "write an address of this machine (127.0.0.1, or 0.0.0.0 for all), and a port from 1024".into(),
            Self::File { what: "journal", .. } => {
                "the path is relative to this file; its folder has to be there, and this user writes in both".into()
            }
            Self::NoProgram { on_path: true, .. } => {
                "install it, or write its path: one with a '/' is relative to this file".into()
            }
            Self::NoProgram { on_path: false, .. } => {
                "the path is relative to this file".into()
            }
            Self::NoScript { .. } => "arguments are passed as they are; the command runs beside this file".into(),
            Self::Variable { .. } => {
                "write NAME to pass a variable on, or NAME=value to set it; names are letters, digits and '_'".into()
            }
            Self::ReservedVariable => "choose another name".into(),
            Self::NoReceiver { .. } => "leave `routing: addressed` out at that listener, or let this one write XML: a worker's call names its receiver in either form".into(),
            Self::Pointless { .. } | Self::NotOfBackend { .. } => "remove it".into(),
            Self::McpLock { listener, .. } => {
                format!("systole mcp import FILE {listener} connects to the server, and writes it and the schemas of the tools")
            }
            Self::OrganismLock { listener, .. } => {
                format!("systole organism import FILE {listener} asks the other organism for its contract, and writes both")
            }
            Self::NoOtherOrganism { .. } => "write the name of a listener that has `organism:`".into(),
            Self::McpWay => "write command: [PROGRAM, ARGUMENT] for a program, or url: https://… for a server elsewhere".into(),
            Self::NoTool { near: Some(near), .. } => format!("write {near}"),
            Self::NoTool { tools, .. } => format!("its tools are {}", tools.join(", ")),
            Self::NoMcpServer { .. } => "write the name of a listener that has `mcp:`".into(),
            Self::Header { .. } => {
                "write NAME: text, or NAME: { env: VARIABLE } or NAME: { file: FILE } for a secret".into()
            }
            Self::Proxy { .. } => "write http://HOST:PORT".into(),
            Self::OwnField { .. } => {
                "fields such as max_tokens, temperature and stream_options can be omitted or renamed; stream: is a key of the backend".into()
            }
            Self::TwoFields { .. } => "give it another name, or omit: or rename: the field that is called so".into(),
            Self::NoRoom { key, .. } => format!("write a greater {key}, or a smaller max_tokens"),
            Self::TwoRegistries => "remove one of the two".into(),
            Self::NoOwner { near, names, .. } => {
                let else_write = "name the listener or the client that takes its tasks on";
                did_you_mean(near.as_deref(), &listed("name", names), else_write)
            }
            Self::Mute { .. } => "name it cli, or add gateway: { listen: 127.0.0.1:8420 }".into(),
            Self::NoGateway => "add gateway: { listen: 127.0.0.1:8420 }".into(),
            Self::Cluster { help, .. } => (*help).into(),
            Self::Mcp { help, .. } | Self::Schedule { help, .. } => help.clone(),
            Self::NotBuilt { key, feature } => format!("build it with --features {feature}, or remove '{key}'"),
            Self::NoMailbox { near, mailboxes, .. } => {
                let else_write = "name a listener with remote: { mode: poll }, or leave 'mailbox' out";
                did_you_mean(near.as_ref().map(Name::as_str), &listed("mailbox", mailboxes), else_write)
            }
            Self::NotDurable => "write durability: process, or power".into(),
            Self::Url { private: true, .. } => "write another, or allow_private: true to trust it".into(),
            Self::Url { .. } => "write https://HOST/PATH, or http://HOST/PATH".into(),
            Self::TextAlone { help, .. } => (*help).into(),
            Self::SharedId { .. } => "rename one of them: text for one would reach the other".into(),
            Self::Unsigned => "add secret: FILE, with what openssl rand -hex 32 prints".into(),
            Self::File { what: "secret", .. } => {
                "the path is relative to this file; openssl rand -hex 32 prints a secret".into()
            }
            Self::File { .. } => "the path is relative to this file".into(),
            Self::Address { text } => match correction::address(text) {
                Some(address) => format!("write \"{address}\""),
                None => "write an IP address and a port: 127.0.0.1:8420, [::1]:8420".into(),
            },
            Self::EchoReply { .. } => "add it to replies, or leave 'replies' out".into(),
            Self::Objection { .. } | Self::Lenient { .. } => {
                "the engine decides: docs/xsd.md says where the two are known to differ".into()
            }
            Self::Pitfall { help, .. } => (*help).into(),
            Self::Yaml { help, .. } => return help.clone(),
            Self::NoOpinion { .. } => "the engine decides: nothing needs to be done".into(),
            Self::Unreadable { what, why, .. } => return why.help(!what.is_empty()).map(Into::into),
            Self::NoListener => {
                "add one: listeners: [{ name: greeter, description: Says hello., command: [./greeter], accepts: [...] }]".into()
            }
            Self::Undeclared { namesake: Some(namesake), .. } => namesake.clone(),
            Self::Undeclared { payload, near: Some(near), .. } => match (payload.namespace(), near.namespace()) {
                (wanted, "") if !wanted.is_empty() => {
                    format!("a schema declares {near} in no namespace: write targetNamespace=\"{wanted}\" in it")
                }
                _ => format!("did you mean {near}?"),
            },
            Self::Undeclared { payload, .. } if is_the_pumps(payload) => "the pump has no such payload".into(),
            Self::NoCallee { word, near, listeners } => {
                let names = format!("{}; a payload is written {{urn:…}}{word}", listed("listener", listeners));
                match near {
                    Some(near) => format!("did you mean {near}, with all that it accepts? ({names})"),
                    None => names,
                }
            }
            Self::Undeclared { .. } => "add the file that declares it to the schemas of a listener".into(),
            Self::Organism(problem) => return organism_help(problem),
            Self::Name(_)
            | Self::QName(_)
            | Self::Document { .. }
            | Self::Schema(_) => return None,
        })
    }
}

/// The names that a key takes, for a remedy.
fn listed(what: &str, names: &[Name]) -> String {
    let shown: Vec<_> = names.iter().take(NAMES).map(Name::as_str).collect();
    let more = if names.len() > NAMES { ", …" } else { "" };
    let plural = if what.ends_with('x') { "es" } else { "s" };
    match names {
        [] => format!("there is no {what}"),
        [name] => format!("the {what} is {name}"),
        _ => format!("the {what}{plural} are {}{more}", shown.join(", ")),
    }
}

/// The name that may be meant, else the remedy, with the names that there are.
fn did_you_mean(near: Option<&str>, names: &str, else_write: &str) -> String {
    match near {
        Some(near) => format!("did you mean {near}? ({names})"),
        None => format!("{else_write} ({names})"),
    }
}

fn organism_help(problem: &BlueprintProblem) -> Option<String> {
    match problem {
        BlueprintProblem::DuplicateName { .. } => Some("rename one of them".into()),
        BlueprintProblem::Unanswered { payload, .. } => {
            Some(format!("let a listener accept {payload}, or remove it from these calls"))
        }
        BlueprintProblem::Replyless { .. } => {
            Some("add replies, or write silence: idle where no caller waits for an answer".into())
        }
        BlueprintProblem::Unreturned { reply, .. } => Some(format!("add {reply} to returns")),
        BlueprintProblem::NoSpeaker => {
            Some("add clients: [{ name: cli, calls: [...] }], as which `systole run` speaks".into())
        }
        BlueprintProblem::NoSlot { .. } => Some("write at least 1".into()),
        BlueprintProblem::Ambiguous { .. } | BlueprintProblem::Reserved { .. } => None,
    }
}
