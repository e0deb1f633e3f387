//! Questions to the core, and the context of threads.

use systole_core::core::*;
use systole_core::vocab::{FaultCode, ns};

use super::harness::*;
use super::payloads::*;

fn world(meta: fn(&mut Blueprint)) -> World {
    let echo = listener("echo", |echo| {
        echo.description = "It echoes.".into();
        echo.accepts = qnames(&["ask", "ping"]);
        echo.replies = qnames(&["told"]);
        echo.routing = Routing::Addressed;
    });
    let secret = server("secret", &["done", "{https://xml-pipeline.org/ns/core/v1}boot"], &["a0"]);
    let mut setup = Setup::new(vec![echo, secret]);
    setup.clients = vec![client("alice", &["ask"]), client("root2", &["ask"]).admin(true)];
    setup.blueprint = meta;
    setup.build()
}

fn ask(world: &mut World, client: &str, request: &str) -> String {
    ask_from(world, client, request, false)
}

/// The answer of the core: the canonical payload, or the code of the fault.
fn ask_from(world: &mut World, client: &str, request: &str, remote: bool) -> String {
    let (name, rest) = request.split_once(' ').unwrap_or((request, ""));
    let payload = format!("<{name} xmlns=\"{}\" {rest}/>", ns::META);
    world.send(client, Letter { remote, ..letter_xml(&payload) });
    let said = world.egress.pop().expect("every question is answered");
    match said.fault {
        Some(fault) => format!("!{}", fault.code),
        None => {
            assert_eq!(said.from.as_str(), "core");
            said.payload.as_str().to_owned()
        }
    }
}

#[test]
fn capabilities_are_what_the_asker_may_call() {
    let mut world = world(|_| {});
    let said = ask(&mut world, "alice", "list-capabilities");
    assert!(said.contains("{urn:test}ask") && said.contains("It echoes."), "{said}");
    assert!(!said.contains("{urn:test}done") && !said.contains("{urn:test}ping"), "{said}");
    assert_eq!(world.paths(), [""; 0], "a question opens no conversation");
}

#[test]
fn schema_example_and_prompt_are_given_for_what_the_asker_may_call() {
    let mut world = world(|_| {});
    let schema = ask(&mut world, "alice", "request-schema payload=\"{urn:test}ask\"");
    assert!(schema.contains("http://www.w3.org/2001/XMLSchema"), "{schema}");
    assert!(schema.contains("name=\"ask\"") && !schema.contains("name=\"done\""), "one file declares both: {schema}");
    let example = ask(&mut world, "alice", "request-example payload=\"{urn:test}ask\"");
    assert!(example.contains("<ask xmlns=\"urn:test\"><n>"), "{example}");
    for request in ["request-prompt payload=\"{urn:test}ask\"", "request-prompt"] {
        let prompt = ask(&mut world, "alice", request);
        assert!(prompt.contains("<prompt"), "{prompt}");
    }
    for what in ["request-schema", "request-example", "request-prompt"] {
        for payload in ["{urn:test}done", "{urn:test}nothing"] {
            assert_eq!(ask(&mut world, "alice", &format!("{what} payload=\"{payload}\"")), "!route");
        }
    }
}

#[test]
fn an_example_validates() {
    let mut world = world(|_| {});
    let example = ask(&mut world, "alice", "request-example payload=\"{urn:test}ask\"");
    let inner = &example[example.find("<ask").unwrap()..example.find("</example>").unwrap_or(example.len())];
    world.emits("echo", |_| vec![reply("told", 1)]);
    world.send("alice", letter_xml(inner).to("echo"));
    assert_eq!(world.said(), ["echo: told 1"]);
}

#[test]
fn a_refusal_says_nothing_but_that_nobody_takes_it() {
    let mut open = world(|_| {});
    let mut closed = world(|blueprint| blueprint.meta.request_schema = Access::None);
    for world in [&mut open, &mut closed] {
        let payload = format!("<request-schema xmlns=\"{}\" payload=\"{{urn:test}}done\"/>", ns::META);
        world.send("alice", letter_xml(&payload));
    }
    assert_eq!(open.egress[0].fault, closed.egress[0].fault);
}

#[test]
fn each_flag_controls_its_request() {
    let requests = [
        "list-capabilities",
        "request-schema payload=\"{urn:test}ask\"",
        "request-example payload=\"{urn:test}ask\"",
        "request-prompt payload=\"{urn:test}ask\"",
    ];
    let closed: [fn(&mut Blueprint); 4] = [
        |blueprint| blueprint.meta.list_capabilities = Access::None,
        |blueprint| blueprint.meta.request_schema = Access::None,
        |blueprint| blueprint.meta.request_example = Access::None,
        |blueprint| blueprint.meta.request_prompt = Access::None,
    ];
    for (shut, change) in closed.into_iter().enumerate() {
        let mut world = world(change);
        for (n, request) in requests.iter().enumerate() {
            let said = ask(&mut world, "alice", request);
            assert_eq!(said == "!route", n == shut, "{request}: {said}");
        }
    }
}

#[test]
fn authenticated_means_everybody_about_everything() {
    let mut world = world(|blueprint| {
        blueprint.meta.request_schema = Access::Authenticated;
        blueprint.meta.list_capabilities = Access::Authenticated;
    });
    assert!(ask(&mut world, "alice", "request-schema payload=\"{urn:test}done\"").starts_with("<schema"));
    let all = ask(&mut world, "alice", "list-capabilities");
    assert!(all.contains("{urn:test}done") && !all.contains("boot"), "{all}");
}

#[test]
fn admin_means_admins_only() {
    let mut world = world(|blueprint| blueprint.meta.request_schema = Access::Admin);
    assert_eq!(ask(&mut world, "alice", "request-schema payload=\"{urn:test}ask\""), "!route");
    assert!(ask(&mut world, "root2", "request-schema payload=\"{urn:test}done\"").starts_with("<schema"));
}

#[test]
fn remote_principals_ask_only_where_the_flag_lets_them() {
    let mut shut = world(|_| {});
    assert_eq!(ask_from(&mut shut, "alice", "list-capabilities", true), "!route");
    let mut open = world(|blueprint| blueprint.meta.remote = true);
    assert!(ask_from(&mut open, "alice", "list-capabilities", true).starts_with("<capabilities"));
}

#[test]
fn what_the_core_does_not_know_is_refused_like_anything_that_nobody_takes() {
    let mut world = world(|_| {});
    for unknown in ["open-sesame", "capabilities", "thread-spawned"] {
        let payload = format!("<{unknown} xmlns=\"{}\"/>", ns::META);
        world.send("alice", letter_xml(&payload));
        let fault = world.egress.pop().unwrap().fault.unwrap();
        assert_eq!((fault.code, fault.rule), (FaultCode::Route, None));
        assert_eq!(&*fault.message, format!("no listener takes {{{}}}{unknown} from its sender", ns::META));
    }
    assert_eq!(world.dead(), ["open-sesame", "capabilities", "thread-spawned"]);
    let mut world = Setup::new(vec![boss(|boss| boss.accepts_faults = true), worker(|_| {})]).build();
    world.send("alice", letter("ask", 1));
    world.finish(world.invocation("boss"), vec![meta("open-sesame")]);
    assert_eq!(fault_of(world.message(world.invocation("boss"))).code, FaultCode::Route);
    let thread = world.spawn_on(world.invocation("boss"));
    world.call(world.invocation("boss"), 11, vec![on(thread, meta("open-sesame"))], Join::Settled);
    assert_eq!(world.next_resume().unwrap(), "11: 0 !route");
    world.finish(world.invocation("boss"), vec![reply("told", 1)]);
}

#[test]
fn a_malformed_request_is_answered_with_its_place() {
    let mut world = world(|_| {});
    for (request, culprit) in [
        ("<m:request-schema xmlns:m='META'/>", "<m:request-schema"),
        ("<m:request-schema xmlns:m='META' payload='{urn:test}ask'>  <m:a/></m:request-schema>", "<m:a/>"),
        ("<m:list-capabilities xmlns:m='META' what='x'/>", "<m:list-capabilities"),
    ] {
        let like = letter_xml(&request.replace("META", ns::META));
        let column = like.bytes().find(culprit).unwrap() + 1;
        world.send("alice", like);
        let fault = world.egress.pop().unwrap().fault.unwrap();
        assert_eq!(fault.code, FaultCode::Payload, "{request}");
        let at = fault.rule.expect("the rule that failed").at.expect("and where");
        assert_eq!((at.line, at.column as usize), (1, column), "{request}");
    }
}

#[test]
fn a_listener_asks_without_listing_it_and_takes_answers_that_stand_in_its_returns() {
    let curious = |returns: &[&str]| {
        listener("curious", |curious| {
            curious.accepts = qnames(&["ask"]);
            curious.replies = qnames(&["told"]);
            curious.calls = qnames(&["ping"]);
            curious.returns = returns.iter().map(|local| meta_qname(local)).collect();
        })
    };
    let mut world = Setup::new(vec![curious(&["capabilities"]), worker(|_| {})]).build();
    world.send("alice", letter("ask", 1));
    world.finish(world.invocation("curious"), vec![meta("list-capabilities")]);
    let message = world.message(world.invocation("curious"));
    assert_eq!((message.from.as_str(), describe(message)), ("core", "capabilities".to_owned()));
    world.finish(world.invocation("curious"), vec![reply("told", 1)]);
    let mut world = Setup::new(vec![curious(&[]), worker(|_| {})]).build();
    world.send("alice", letter("ask", 1));
    world.finish(world.invocation("curious"), vec![meta("list-capabilities")]);
    assert_eq!(world.said(), ["curious: !payload"]);
    // One that takes faults learns why, and goes on.
    let mut world = Setup::new(vec![boss(|boss| boss.accepts_faults = true)]).build();
    world.send("alice", letter("ask", 1));
    world.finish(world.invocation("boss"), vec![meta("clear-context")]);
    let fault = fault_of(world.message(world.invocation("boss")));
    assert!(fault.rule.as_ref().unwrap().rule.contains("context-cleared is not in the returns"), "{fault:?}");
    world.finish(world.invocation("boss"), vec![reply("told", 1)]);
    assert_eq!(world.said(), ["boss: told 1"]);
}

#[test]
fn a_listener_may_see_what_it_calls_and_what_it_replies() {
    let mut world = Setup::new(vec![boss(|_| {}), worker(|_| {}), server("other", &["note"], &["a0"])]).build();
    world.send("alice", letter("ask", 1));
    let boss = world.invocation("boss");
    let about = |payload: &str| meta(&format!("request-schema payload=\"{{urn:test}}{payload}\""));
    world.call(boss, 0, vec![about("ping"), about("told"), about("note"), about("a0")], Join::Settled);
    assert_eq!(world.next_resume().unwrap(), "0: 0 schema, 1 schema, 2 !route, 3 !route");
    world.finish(boss, vec![reply("told", 1)]);
}

#[test]
fn closing_a_thread_that_is_not_addressed_is_refused() {
    let mut world = Setup::new(vec![boss(|boss| boss.accepts_faults = true)]).build();
    world.send("alice", letter("ask", 1));
    world.finish(world.invocation("boss"), vec![meta("close-thread")]);
    assert_eq!(fault_of(world.message(world.invocation("boss"))).code, FaultCode::Route);
    world.finish(world.invocation("boss"), vec![reply("told", 1)]);
}

fn remembering(change: impl FnOnce(&mut Contract)) -> World {
    let mut world = Setup::new(vec![
        boss(|boss| {
            boss.context = true;
            boss.accepts_faults = true;
            change(boss);
        }),
        worker(|_| {}),
    ])
    .build();
    world.emits("worker", |message| vec![reply("pong", number_in(message))]);
    world.send("alice", letter("ask", 0));
    world
}

fn history(world: &World) -> Vec<String> {
    let history = &world.message(world.invocation("boss")).history;
    history.iter().map(|said| format!("{}: {}", said.from, short(&said.payload))).collect()
}

#[test]
fn a_context_holds_what_was_said_on_the_thread_in_order() {
    let mut world = remembering(|_| {});
    assert_eq!(history(&world), [""; 0]);
    world.finish(world.invocation("boss"), vec![call("ping", 1)]);
    assert_eq!(history(&world), ["alice: ask 0", "boss: ping 1"]);
    world.finish(world.invocation("boss"), vec![call("job", 2)]);
    assert_eq!(history(&world), ["alice: ask 0", "boss: ping 1", "worker: pong 1"], "a refused call was not said");
    let boss = world.invocation("boss");
    world.call(boss, 0, vec![call("ping", 3)], Join::All);
    world.finish(boss, vec![call("ping", 4)]);
    let told = ["system: system-error", "boss: ping 3", "worker: pong 3", "boss: ping 4"];
    assert_eq!(history(&world)[3..], told, "awaited answers belong to it");
    world.finish(world.invocation("boss"), vec![reply("told", 1)]);
}

#[test]
fn a_context_is_bounded_in_messages_and_bytes() {
    for (change, kept) in [
        ((|blueprint| blueprint.limits.context_messages = 4) as fn(&mut Blueprint), 4),
        // The message that opened the thread is kept beside those.
        (|blueprint| blueprint.limits.context_bytes = 100, 3),
        (|blueprint| blueprint.limits.context_total_bytes = 100, 2),
        (|blueprint| blueprint.limits.context_messages = 0, 0),
        (|blueprint| blueprint.limits.context_bytes = 10, 1),
        (|blueprint| blueprint.limits.context_bytes = 0, 0),
    ] {
        let mut setup = Setup::new(vec![boss(|boss| boss.context = true), worker(|_| {})]);
        setup.blueprint = change;
        let mut world = setup.build();
        world.emits("worker", |message| vec![reply("pong", number_in(message))]);
        world.send("alice", letter("ask", 0));
        for n in 0..5 {
            world.finish(world.invocation("boss"), vec![call("ping", n)]);
        }
        assert_eq!(world.message(world.invocation("boss")).history.len(), kept);
        world.finish(world.invocation("boss"), vec![reply("told", 1)]);
    }
}

#[test]
fn clearing_forgets_the_context_of_the_own_thread_but_for_its_request() {
    let mut world = remembering(|boss| boss.returns.push(meta_qname("context-cleared")));
    world.finish(world.invocation("boss"), vec![call("ping", 1)]);
    world.finish(world.invocation("boss"), vec![meta("clear-context")]);
    assert_eq!(
        (history(&world), describe(world.message(world.invocation("boss")))),
        (vec!["alice: ask 0".to_owned()], "context-cleared".to_owned())
    );
    world.finish(world.invocation("boss"), vec![reply("told", 1)]);
}

#[test]
fn a_listener_without_context_has_no_history() {
    let mut world = remembering(|boss| boss.context = false);
    world.finish(world.invocation("boss"), vec![call("ping", 1)]);
    assert_eq!(history(&world), [""; 0]);
    world.finish(world.invocation("boss"), vec![reply("told", 1)]);
}
