//! Valid `organism.yaml` files and their configurations.

use std::path::Path;
use std::time::Duration;

use systole::config::{Config, HumanSpec, ListenerKind, TasksOf, TasksSpec};
use systole::core::{Access, Contract, MetaFlags, Millionths, Routing, Scheduling, Silence};
use systole::inbox::Absent;
use systole::journal::Durability;
use systole::ladder::repair::Author;
use systole::listeners::human::Announce;
use systole::listeners::worker::{WorkerSpec, WorkerStart};
use systole::process::Variable;
use systole::settings::{
    Backend, Dialect, HeaderText, KeySource, Mode, ModelSettings, Price, ProviderSettings, Rule, Strategy,
};
use systole::vocab::{Budget, Limits, QName, XmlLimits};

fn load(file: &str) -> Config {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR"));
    Config::load(&directory.join("tests/golden/config").join(file)).unwrap()
}

fn qnames(names: &[&str]) -> Vec<QName> {
    names.iter().map(|name| name.parse().unwrap()).collect()
}

#[test]
fn every_key_arrives() {
    let config = load("all-keys.yaml");
    let blueprint = &config.blueprint;
    assert_eq!(blueprint.organism, "All keys");
    assert_eq!(blueprint.scheduling, Scheduling::DepthFirst);
    assert_eq!(
        blueprint.limits,
        Limits::default()
            .xml(
                XmlLimits::default()
                    .message_bytes(2 << 20)
                    .depth(11)
                    .attributes(12)
                    .namespaces(13)
                    .name_bytes(14)
                    .value_bytes(26)
                    .comment_bytes(0)
                    .instruction_bytes(27 << 10)
                    .relative_namespaces(false)
            )
            .thread_depth(15)
            .fanout(16)
            .mailbox(17)
            .queue(18)
            .queue_bytes(19 << 10)
            .conversation_threads(20)
            .conversation_messages(29)
            .conversation_bytes(30 << 10)
            .threads(1000)
            .handler_timeout(Duration::from_millis(1500))
            .invalid_responses(21)
            .turns(48)
            .repeats(49)
            .max_attempts(3)
            .root_idle(Duration::from_secs(120))
            .egress(22)
            .egress_bytes(23_000)
            .context_messages(24)
            .context_bytes(25)
            .context_total_bytes(26)
            .dead_letters(0)
            .dead_letter_bytes(27)
            .draft_bytes(28)
            .draft_total_bytes(31 << 10)
    );
    assert_eq!(
        blueprint.meta,
        MetaFlags::default()
            .list_capabilities(Access::None)
            .request_schema(Access::Peers)
            .request_example(Access::Authenticated)
            .request_prompt(Access::Admin)
            .spawn_thread(Access::None)
            .clear_context(Access::Admin)
            .remote(true)
    );
    let clients: Vec<_> = blueprint.clients().map(|(_, c)| (c.name.as_str(), c.calls.len(), c.admin)).collect();
    assert_eq!(clients, [("cli", 2, true), ("guest", 0, false)]);
    let journal = config.journal.as_ref().and_then(|journal| journal.as_file()).expect("it is durable");
    assert!(journal.file.ends_with("tests/golden/config/kept/all.journal"), "{:?}", journal.file);
    assert_eq!((journal.durability, journal.retention.bytes), (Durability::Power, 28 << 20));
    assert_eq!(journal.retention.age, Duration::from_secs(2 * 60 * 60));
    let gateway = config.gateway.expect("it is served");
    assert_eq!((gateway.listen, gateway.connections, gateway.requests), ("[::1]:29".parse().unwrap(), 30, 31));
    assert_eq!((gateway.header_time, gateway.body_time), (Duration::from_secs(32), Duration::from_secs(33)));
    let (per_address, per_principal) = (gateway.connections_per_address, gateway.connections_per_principal);
    assert_eq!((gateway.reserve, per_address, per_principal), (34, 35, 36));
    assert_eq!((gateway.bodies, gateway.bodies_per_principal), (37 << 20, 38 << 20));
    let owned: Vec<_> = gateway.mailboxes.iter().map(|(client, mailbox)| (client.as_str(), mailbox.as_str())).collect();
    assert_eq!(owned, [("guest", "agent")]);
    let tls = gateway.tls.expect("by TLS");
    assert!(tls.cert.ends_with("tests/golden/config/../../fixtures/tls/cert.pem"), "{tls:?}");
    assert!(tls.key.ends_with("tests/golden/config/../../fixtures/tls/key.pem"), "{tls:?}");
    assert!(config.warnings.is_empty(), "{:?}", config.warnings);
}

#[test]
fn budgets_are_those_of_the_organism_its_clients_and_its_listeners() {
    let blueprint = load("all-keys.yaml").blueprint;
    let budget = |text: &str| text.parse::<Budget>().unwrap();
    assert_eq!(blueprint.budget, budget("tokens=44000 cost=0.25 calls=45 threads=46 time=47s"));
    let clients: Vec<_> = blueprint.clients().map(|(_, client)| client.budget).collect();
    assert_eq!(clients, [budget("cost=48"), Budget::NONE]);
    let listeners: Vec<_> = blueprint.listeners().map(|(_, listener)| listener.budget).take(2).collect();
    assert_eq!(listeners, [budget("calls=0"), Budget::NONE]);
}

#[test]
fn each_kind_of_listener_has_its_defaults() {
    let config = load("all-keys.yaml");
    let listeners: Vec<&Contract> = config.blueprint.listeners().map(|(_, listener)| listener).collect();
    let [program, plain, stayer, _, thinker, plain_thinker, person, _, _, parrot, agent, reviews, jobs, pushed] =
        listeners[..]
    else {
        panic!("{listeners:?}")
    };

    assert_eq!(program.description, "Answers questions.");
    assert_eq!(program.accepts, qnames(&["{urn:t}ask", "{https://xml-pipeline.org/ns/core/v1}boot"]));
    assert_eq!(program.replies, qnames(&["{urn:t}answer"]));
    assert_eq!((&program.calls, &program.returns), (&qnames(&["{urn:t}note"]), &qnames(&["{urn:t}note"])));
    assert_eq!([program, plain, thinker].map(|known| known.author), [Author::Model, Author::Program, Author::Model]);
    assert!(program.accepts_faults && program.instructions && program.context && !program.can_park);
    assert_eq!((program.silence, program.routing), (Silence::Idle, Routing::Unique));
    assert_eq!((program.timeout, program.concurrency), (Some(Duration::from_secs(3)), 5));

    assert_eq!((plain.timeout, plain.concurrency), (Some(Duration::from_millis(1500)), Contract::COMMAND_CONCURRENCY));
    assert_eq!((plain.silence, plain.routing), (Silence::Error, Routing::Unique));
    assert!(!plain.accepts_faults && !plain.instructions && !plain.context);

    assert!(stayer.can_park && !stayer.stateless);
    assert_eq!((stayer.timeout, stayer.concurrency), (plain.timeout, Contract::ACTOR_CONCURRENCY));

    let ended = "{https://xml-pipeline.org/ns/core/v1}fan-out-ended";
    assert_eq!(thinker.returns, qnames(&["{urn:t}note", ended]), "what comes back from its calls");
    assert!(thinker.context && thinker.accepts_faults && thinker.can_park);
    assert_eq!((thinker.timeout, thinker.concurrency), (Some(Duration::from_secs(600)), Contract::ACTOR_CONCURRENCY));
    assert!(!plain_thinker.context && !plain_thinker.accepts_faults && plain_thinker.returns.is_empty());
    assert_eq!(plain_thinker.timeout, Some(Duration::from_secs(45)));

    assert_eq!((person.timeout, person.can_park), (None, true));
    assert_eq!(parrot.replies, parrot.accepts, "an echo replies with what it accepts");
    assert_eq!(parrot.concurrency, Contract::ACTOR_CONCURRENCY);
    for remote in [agent, pushed] {
        assert_eq!((remote.timeout, remote.concurrency), (None, 10_000));
    }
    assert_eq!((&*reviews.description, reviews.routing, reviews.timeout), ("Reads drafts.", Routing::Unique, None));
    assert_eq!((jobs.routing, jobs.concurrency), (Routing::Addressed, 1024 + 64));
    let register = &qnames(&["{urn:systole:task:v1}register"])[0];
    assert!(jobs.accepts.contains(register) && !reviews.accepts.contains(register));
}

#[test]
fn a_push_says_where_to_and_with_which_secret() {
    let config = load("all-keys.yaml");
    let Some(ListenerKind::Remote(Mode::Push(push))) = config.kinds.last() else { panic!("{:?}", config.kinds) };
    assert_eq!((push.url.as_deref(), push.allow_private), (Some("http://10.0.0.7:8080/in"), true));
    assert!(push.secret.as_ref().unwrap().ends_with("tests/golden/config/pushed.secret"), "{push:?}");
}

#[test]
fn backends_are_asked_as_the_file_says() {
    let llm = load("all-keys.yaml").llm.expect("there are models");
    assert_eq!(llm.strategy, Strategy::LeastLoaded);
    let millionths = |text: &str| text.parse::<Millionths>().unwrap();
    let price = Price::default().input(millionths("3")).output(millionths("15.5")).cached(Some(millionths("0.3")));
    // Of this provider, what it writes into its cache has the price of its list.
    let price = price.written(Some(millionths("3.75")));
    let bare = |name: &str| Backend::new(name.parse().unwrap());
    let main = bare("main").priority(2).rate_limit_tpm(Some(41_000)).max_concurrent(Some(42)).price(price);
    let (first, between) = (Duration::from_secs(51), Duration::from_secs(52));
    let near = bare("near").when_env(Some("PATH".into())).first_token(first).between_tokens(between);
    let backends: Vec<&Backend> = llm.backends.iter().map(|(backend, _)| backend).collect();
    let script = bare("script").unless_env(Some("SYSTOLE_TEST_UNSET".into()));
    assert_eq!(backends, [&main, &near, &bare("local"), &script]);
    let providers: Vec<&ProviderSettings> = llm.backends.iter().map(|(_, provider)| provider).collect();
    let [
        ProviderSettings::Http(main),
        ProviderSettings::Http(near),
        ProviderSettings::Http(local),
        ProviderSettings::Scripted(script),
    ] = providers[..]
    else {
        panic!("{providers:?}")
    };
    assert_eq!((main.dialect, &*main.model, &*main.url), (Dialect::Anthropic, "big", "https://api.anthropic.com"));
    assert!(matches!(&main.key, Some(KeySource::File(file)) if file.ends_with("tests/golden/config/pushed.secret")));
    assert_eq!((near.dialect, &*near.url, near.context), (Dialect::OpenAi, "http://127.0.0.1:8000/v1", Some(4300)));
    let pair = |name: &str, text: &str| (name.to_owned(), text.to_owned());
    assert_eq!(near.query, [pair("api-version", "2024-10-21")]);
    assert_eq!(near.rename, [pair("max_tokens", "max_completion_tokens")]);
    assert_eq!((&*near.omit, near.stream), (&["temperature".to_owned()][..], false));
    let body = serde_json::json!({ "effort": "low", "top": { "k": [5, "5", true] } });
    assert_eq!(serde_json::Value::Object(near.body.clone()), body);
    assert_eq!(near.headers[0], ("x-team".to_owned(), HeaderText::Plain("search".to_owned())));
    assert!(matches!(&near.headers[1].1, HeaderText::Secret(KeySource::File(file)) if file.ends_with("pushed.secret")));
    assert_eq!(near.headers[2].1, HeaderText::Secret(KeySource::Env("PATH".to_owned())));
    assert_eq!(near.proxy.as_deref(), Some("http://127.0.0.1:3128"));
    assert!(near.ca_file.as_ref().unwrap().ends_with("../../fixtures/tls/cert.pem"));
    assert_eq!((local.dialect, &*local.model, &local.key), (Dialect::Ollama, "tiny:1b", &None));
    let rules = [
        Rule::default()
            .listener(Some("thinker".parse().unwrap()))
            .when(vec!["one".into(), "two".into()])
            .answer("<answer/>\n")
            .cut(true)
            .after(Duration::from_millis(46)),
        Rule::default().when(vec!["three".into()]).answer("no"),
    ];
    assert_eq!((&*script.file, &*script.rules), ("script.yaml", &rules[..]));
}

#[test]
fn commands_run_beside_the_file() {
    let config = load("all-keys.yaml");
    let [
        ListenerKind::Command { command: program, json: false },
        ListenerKind::Command { command: plain, json: true },
        ListenerKind::Worker(stayer),
        ListenerKind::Worker(plain_stayer),
        ListenerKind::Model(thinker),
        ListenerKind::Model(plain_thinker),
        ListenerKind::Human(person),
        ListenerKind::Human(people),
        ListenerKind::Human(others),
        ListenerKind::Echo,
        ListenerKind::Remote(Mode::Stream),
        tasks @ ..,
        _,
    ] = &config.kinds[..]
    else {
        panic!("{:?}", config.kinds)
    };
    let names = |human: &HumanSpec| human.to.people.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ");
    assert_eq!((names(person), person.to.operators, &person.announce), (String::new(), true, &None));
    assert_eq!((names(people), people.to.operators), ("bob eve zoe".to_owned(), true), "teams stand for their members");
    assert!(matches!(&people.announce, Some(Announce::Command(program)) if program.env.len() == 1), "{people:?}");
    assert_eq!((names(others), others.to.operators), ("zoe".to_owned(), false));
    assert!(matches!(&others.announce, Some(Announce::Push(push)) if push.allow_private), "{others:?}");
    assert_eq!((stayer.processes, stayer.heartbeat), (39, Duration::from_secs(40)));
    assert_eq!((stayer.start, stayer.json, plain_stayer.json), (WorkerStart::Eager, true, false));
    assert_eq!((plain_stayer.processes, plain_stayer.heartbeat), (1, WorkerSpec::HEARTBEAT));
    assert_eq!(plain_stayer.start, WorkerStart::Lazy);
    assert!(stayer.command.program.ends_with("tests/golden/config/run.sh"), "{stayer:?}");
    assert_eq!(
        (&stayer.command.arguments[..], &stayer.command.env[..]),
        (&["again".into()][..], &["GREETING".parse().unwrap()][..])
    );
    let said = ModelSettings::default()
        .instructions("Be brief.")
        .temperature(Some(Millionths(250_000)))
        .max_tokens(44)
        .tries(2)
        .backend(Some("near".parse().unwrap()));
    assert_eq!((thinker, plain_thinker), (&said, &ModelSettings::default()));
    let silent = |of| ListenerKind::Tasks(TasksSpec { of, results: false, events: false, questions: false });
    let owner = TasksOf::Owner("agent".parse().unwrap());
    assert_eq!(tasks, [silent(owner), silent(TasksOf::Registered(Absent::Refuse))]);
    assert!(program.program.is_absolute() && program.program.ends_with("sh"));
    assert_eq!(program.arguments, ["-c", "1.50", "on"], "arguments are the text that was written");
    let set = Variable::Set("GREETING".into(), "hello=world".into());
    assert_eq!(program.env, [Variable::Inherited("HOME".into()), set]);
    assert!(program.directory.ends_with("tests/golden/config"));
    assert_eq!(plain.program.canonicalize().unwrap(), program.directory.join("run.sh").canonicalize().unwrap());
}

#[test]
fn short_forms_are_written_out() {
    let config = load("short.yaml");
    let (_, cli) = config.blueprint.clients().next().unwrap();
    assert_eq!(cli.calls, qnames(&["{urn:t}ask", "{urn:t}note"]), "all that a listener accepts, without <boot>");
    let listeners: Vec<&Contract> = config.blueprint.listeners().map(|(_, listener)| listener).collect();
    let [asker, clerk, person, woken, silent] = listeners[..] else { panic!("{listeners:?}") };
    assert_eq!(asker.calls, qnames(&["{urn:t}note", "{urn:t}ask"]), "each payload once");
    assert_eq!(asker.returns, qnames(&["{urn:t}note", "{urn:t}answer"]), "what they are replied to with");
    assert_eq!(asker.description, "Asks something.", "as the schema says");
    assert_eq!(clerk.description, "Keeps notes.");
    assert_eq!(
        (&person.calls, &person.returns),
        (&qnames(&["{urn:t}note"]), &Vec::new()),
        "a person is answered below"
    );
    assert_eq!((&woken.calls, &woken.returns), (&qnames(&["{urn:t}note"]), &Vec::new()), "it calls and forgets");
    assert_eq!((&silent.calls, &silent.returns), (&qnames(&["{urn:t}note"]), &Vec::new()), "what is written counts");
    assert_eq!(config.payload("t:note").unwrap(), qnames(&["{urn:t}note"])[0]);
    assert!(config.payload("x:note").unwrap_err().help().unwrap().contains("the prefixes are t"));
    let warned: Vec<String> = config.warnings.iter().map(ToString::to_string).collect();
    let unreturned = |name| format!("'{name}' calls {{urn:t}}note, but the reply {{urn:t}}note of 'clerk'");
    assert!(warned.len() == 2 && warned[0].starts_with(&unreturned("woken")), "{warned:?}");
    assert!(warned[1].starts_with(&unreturned("silent")), "{warned:?}");
}
