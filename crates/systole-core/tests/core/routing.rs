//! Routing of payloads: targets, permissions, broadcasts.

use systole_core::core::*;
use systole_core::vocab::{Fault, FaultCode, Name};

use super::harness::*;
use super::payloads::*;

fn egress_fault(world: &World, at: usize) -> Fault {
    world.egress[at].fault.clone().expect("a fault")
}

#[test]
fn the_address_must_name_a_listener_that_accepts() {
    let mut world =
        Setup::new(vec![server("echo", &["ask"], &["told"]), server("other", &["ping"], &["pong"])]).build();
    world.emits("echo", |message| vec![reply("told", number_in(message))]);
    world.send("alice", letter("ask", 1).to("echo"));
    for wrong in ["other", "nobody", "bob", "core", "root", "no name!"] {
        world.send("alice", letter("ask", 2).to(wrong));
    }
    let said = world.said();
    assert_eq!(said[0], "echo: told 1");
    assert_eq!(said[1..], vec!["system: !route"; 6]);
}

#[test]
fn what_is_not_there_and_what_is_not_allowed_give_the_same_fault_word_for_word() {
    let secret = server("secret", &["done"], &["told"]);
    let mut with = Setup::new(vec![secret]).build();
    let mut without = Setup::new(vec![]).build();
    for world in [&mut with, &mut without] {
        world.send("alice", letter("done", 1).label("l"));
    }
    assert_eq!(egress_fault(&with, 0), egress_fault(&without, 0));
    assert_eq!(with.egress[0].envelope, without.egress[0].envelope);
    let why = |world: &World| {
        let mut faults = world.events.iter().filter_map(|event| match &event.kind {
            EventKind::Faulted { misroute, .. } => misroute.clone(),
            _ => None,
        });
        faults.next().unwrap()
    };
    let expected = (Misroute::NotInCalls, Misroute::NotAccepted);
    assert_eq!((why(&with), why(&without)), expected, "operators see the difference");
    assert_eq!((with.dead(), without.dead()), (vec!["done 1".to_owned()], vec!["done 1".to_owned()]));
}

#[test]
fn a_listener_that_may_not_call_gets_the_same_fault_as_for_what_is_not_there() {
    let faults = [vec![server("secret", &["done"], &["told"])], vec![]].map(|others| {
        let caller = listener("caller", |caller| {
            caller.accepts = qnames(&["ask"]);
            caller.replies = qnames(&["told"]);
            caller.accepts_faults = true;
        });
        let mut world = Setup::new([vec![caller], others].concat()).build();
        world.send("alice", letter("ask", 1));
        world.finish(world.invocation("caller"), vec![call("done", 1)]);
        let fault = fault_of(world.message(world.invocation("caller"))).clone();
        world.finish(world.invocation("caller"), vec![reply("told", 1)]);
        fault
    });
    assert_eq!(faults[0], faults[1]);
    assert_eq!(faults[0].code, FaultCode::Route);
}

#[test]
fn a_client_may_only_send_what_it_may_call() {
    let mut setup = Setup::new(vec![server("echo", &["ask", "job"], &["told"])]);
    setup.clients = vec![client("carol", &["ask"])];
    let mut world = setup.build();
    world.emits("echo", |message| vec![reply("told", number_in(message))]);
    world.send("carol", letter("ask", 1));
    world.send("carol", letter("job", 2));
    world.send("carol", letter("job", 3).to("echo"));
    assert_eq!(world.said(), ["echo: told 1", "system: !route", "system: !route"]);
}

#[test]
fn nobody_outside_sends_core_payloads() {
    let mut setup = Setup::new(vec![server("console", &["{https://xml-pipeline.org/ns/core/v1}boot"], &[])]);
    setup.clients[0].calls.push(core_qname("boot"));
    let mut world = setup.build();
    let core = systole_core::vocab::ns::CORE;
    for payload in ["<boot xmlns=\"C\"/>", "<system-error xmlns=\"C\"/>", "<agent-error xmlns=\"C\"/>"] {
        world.send("alice", letter_xml(&payload.replace('C', core)));
    }
    assert_eq!(world.said(), vec!["system: !route"; 3]);
}

#[test]
fn a_broadcast_reaches_all_in_the_order_of_registration() {
    let broadcast = |name: &str| {
        listener(name, |contract| {
            contract.accepts = qnames(&["ping"]);
            contract.replies = qnames(&["pong"]);
            contract.routing = Routing::Broadcast;
        })
    };
    let asker = listener("asker", |asker| {
        asker.accepts = qnames(&["ask"]);
        asker.replies = qnames(&["told"]);
        asker.calls = qnames(&["ping"]);
        asker.returns = qnames(&["pong"]);
    });
    let mut world = Setup::new(vec![broadcast("c"), asker, broadcast("a"), broadcast("b")]).build();
    for (name, n) in [("a", 1), ("b", 2), ("c", 3)] {
        world.emits(name, move |_| vec![reply("pong", n)]);
    }
    world.send("alice", letter("ask", 0));
    world.finish(world.invocation("asker"), vec![call("ping", 5)]);
    assert_eq!(
        world.take_started(),
        [
            "asker <- alice: ask 0",
            "c <- asker: ping 5",
            "a <- asker: ping 5",
            "b <- asker: ping 5",
            "asker <- c: pong 3 (0/3, 2 left)"
        ]
    );
    world.finish(world.invocation("asker"), vec![]);
    world.finish(world.invocation("asker"), vec![]);
    assert_eq!(world.take_started(), ["asker <- a: pong 1 (1/3, 1 left)", "asker <- b: pong 2 (2/3, 0 left)"]);
    world.finish(world.invocation("asker"), vec![reply("told", 0)]);
    world.send("alice", letter("ping", 6).label("all"));
    world.send("alice", letter("ping", 7).to("b"));
    let said = world.said();
    assert_eq!(said[1..], ["c: pong 3 [all]", "a: pong 1 [all]", "b: pong 2 [all]", "b: pong 2"]);
}

#[test]
fn an_addressed_listener_is_reached_by_name_only() {
    let addressed = |name: &str| {
        listener(name, |contract| {
            contract.accepts = qnames(&["ask"]);
            contract.replies = qnames(&["told"]);
            contract.routing = Routing::Addressed;
        })
    };
    let mut world = Setup::new(vec![addressed("one"), addressed("two")]).build();
    world.emits("one", |_| vec![reply("told", 1)]);
    world.emits("two", |_| vec![reply("told", 2)]);
    world.send("alice", letter("ask", 0));
    world.send("alice", letter("ask", 0).to("two"));
    assert_eq!(world.said(), ["system: !route", "two: told 2"]);
}

#[test]
fn a_payload_can_be_request_and_return_at_once() {
    let ping = listener("ping", |ping| {
        ping.accepts = qnames(&["ask", "ping"]);
        ping.replies = qnames(&["told"]);
        ping.calls = qnames(&["job"]);
        ping.returns = qnames(&["ping"]);
    });
    let mut world = Setup::new(vec![ping, server("worker", &["job"], &["ping"])]).build();
    world.emits("worker", |message| vec![reply("ping", number_in(message))]);
    world.send("alice", letter("ask", 1));
    world.finish(world.invocation("ping"), vec![call("job", 5)]);
    assert_eq!(world.take_started().last().unwrap(), "ping <- worker: ping 5");
    world.finish(world.invocation("ping"), vec![reply("told", 1)]);
    world.send("alice", letter("ping", 9));
    assert_eq!(world.take_started(), ["ping <- alice: ping 9"]);
    world.finish(world.invocation("ping"), vec![reply("told", 2)]);
}

#[test]
fn an_invalid_payload_is_answered_with_the_rule_and_an_example() {
    let mut world = Setup::new(vec![server("echo", &["ask"], &["told"])]).build();
    world.send("alice", letter_xml("<ask xmlns=\"urn:test\"><n>seven</n></ask>").label("l"));
    let fault = egress_fault(&world, 0);
    assert_eq!(fault.code, FaultCode::Payload);
    let rule = fault.rule.expect("the sender may see the contract");
    assert!(rule.example.is_some_and(|example| example.starts_with("<ask xmlns=\"urn:test\">")));
    assert_eq!(world.said(), ["system: !payload [l]"]);
}

#[test]
fn a_fault_that_came_from_below_is_true_for_whoever_gets_it() {
    let relay = listener("relay", |relay| {
        relay.accepts = qnames(&["ask"]);
        relay.calls = qnames(&["ping"]);
    });
    let mut world = Setup::new(vec![relay]).build();
    world.emits("relay", |_| vec![call("ping", 1)]);
    world.send("alice", letter("ask", 1));
    assert_eq!(&*egress_fault(&world, 0).message, format!("no listener takes {} from its sender", qname("ping")));
    assert_eq!(world.said(), ["relay: !route"]);
}

#[test]
fn operators_read_which_mistake_a_refused_route_was() {
    let relay = listener("relay", |relay| {
        relay.accepts = qnames(&["job"]);
        relay.replies = qnames(&["done"]);
        relay.calls = qnames(&["ask", "ping", "note"]);
    });
    let shy = listener("shy", |shy| {
        shy.accepts = qnames(&["ping"]);
        shy.routing = Routing::Addressed;
    });
    let mut world =
        Setup::new(vec![relay, shy, server("echo", &["ask"], &["told"]), server("ticker", &["tick"], &["told"])])
            .build();
    world.emits("relay", |message| {
        vec![
            call("note", 1),
            to("nobody", call("ask", 1)),
            to("shy", call("ask", 1)),
            call("ping", 1),
            call("tick", 1),
            reply("told", 1),
            emission(EmissionKind::Continue { after: std::time::Duration::ZERO }, &xml("ask", 1)),
            on(message.thread, call("ask", 1)),
        ]
    });
    world.send("alice", letter("job", 1));
    let name = |text| Name::parse(text).unwrap();
    let found: Vec<_> = world
        .events
        .iter()
        .filter_map(|event| match &event.kind {
            EventKind::Faulted { misroute, .. } => misroute.clone(),
            _ => None,
        })
        .collect();
    let expected = [
        Misroute::NotAccepted,
        Misroute::UnknownListener(name("nobody")),
        Misroute::NotAcceptedBy(name("shy")),
        Misroute::NotAddressed,
        Misroute::NotInCalls,
        Misroute::NotInReplies,
        Misroute::NotContinued,
        Misroute::UnknownThread,
    ];
    assert_eq!(found, expected);
}

/// The warnings and errors of `check` and `start()`.
fn problems(listeners: Vec<Contract>, calls: &[&str]) -> Vec<String> {
    let calls = calls.iter().map(|call| call.parse().unwrap()).collect();
    let client = ClientContract::new(Name::parse("ada").unwrap()).calls(calls);
    let blueprint = Blueprint::new("demo", listeners, vec![client]);
    blueprint
        .problems()
        .iter()
        .map(|problem| format!("{}{problem}", if problem.is_warning() { "" } else { "! " }))
        .collect()
}

fn taker(name: &str, accepts: &str, replies: &[&str]) -> Contract {
    let mut contract = Contract::new(Name::parse(name).unwrap());
    contract.accepts = vec![accepts.parse().unwrap()];
    contract.replies = replies.iter().map(|reply| reply.parse().unwrap()).collect();
    contract
}

#[test]
fn a_listener_without_replies_is_warned_of_where_a_caller_waits() {
    let told = "'ada' calls a and waits for an answer, but 'sink', which accepts it, has no replies: each such call \
                ends in the fault `silent`";
    assert_eq!(problems(vec![taker("sink", "a", &[])], &["a"]), [told]);
    assert_eq!(problems(vec![taker("sink", "a", &["b"])], &["a"]), [""; 0]);
    assert_eq!(problems(vec![taker("sink", "a", &[])], &[]), [""; 0], "no party calls it");
    let idle = taker("sink", "a", &[]).silence(Silence::Idle);
    assert_eq!(problems(vec![idle], &["a"]), [""; 0], "no caller waits");
}

#[test]
fn a_call_that_no_listener_accepts_is_told() {
    assert_eq!(problems(vec![taker("one", "a", &["b"])], &["c"]), ["! 'ada' may call c, which no listener accepts"]);
}

#[test]
fn what_a_remote_listener_does_to_tasks_over_http_is_no_warning() {
    let [register, registered] = ["{urn:systole:task:v1}register", "{urn:systole:task:v1}registered"];
    let caller = |outlives| {
        taker("agent", "a", &["b"]).can_park(false).outlives(outlives).calls(vec![register.parse().unwrap()])
    };
    let jobs = || taker("jobs", register, &[registered]);
    assert_eq!(problems(vec![caller(true), jobs()], &[]), [""; 0]);
    let told = problems(vec![caller(false), jobs()], &[]);
    assert!(matches!(&told[..], [one] if one.contains("is not in its returns")), "{told:?}");
}

/// Each pair of listeners is looked at here; `start()` looks at each listener once.
#[test]
fn the_first_listener_that_clashes_with_a_later_one_is_named() {
    let routings = [Routing::Unique, Routing::Broadcast, Routing::Addressed];
    for number in 0..81 {
        let mut takers: Vec<Contract> = (0..4).map(|index| taker(&format!("l{index}"), "a", &["b"])).collect();
        takers.iter_mut().zip([1, 3, 9, 27]).for_each(|(taker, place)| taker.routing = routings[number / place % 3]);
        // Twice the same is no clash with itself.
        takers[1].accepts.push("a".parse().unwrap());
        let clashes = |one: &Contract, other: &Contract| {
            let routed = [one.routing, other.routing];
            !routed.contains(&Routing::Addressed) && routed.contains(&Routing::Unique)
        };
        let mut expected = Vec::new();
        for (index, second) in takers.iter().enumerate() {
            let first = takers[..index].iter().find(|first| clashes(first, second));
            let told = first.map(|first| (first.name.clone(), second.name.clone()));
            expected.extend(std::iter::repeat_n(told, second.accepts.len()).flatten());
        }
        let client = ClientContract::new(Name::parse("ada").unwrap()).calls(vec!["a".parse().unwrap()]);
        let problems = Blueprint::new("demo", takers, vec![client]).problems();
        let found: Vec<_> = problems
            .into_iter()
            .map(|problem| match problem {
                BlueprintProblem::Ambiguous { first, second, .. } => (first, second),
                other => panic!("{other}"),
            })
            .collect();
        assert_eq!(found, expected, "{number}");
    }
}

#[test]
fn each_reply_that_a_caller_does_not_take_is_told_with_who_sends_it() {
    let caller = |name: &str, returns: &[&str]| {
        taker(name, name, &["z"])
            .can_park(false)
            .calls(vec!["a".parse().unwrap()])
            .returns(returns.iter().map(|reply| reply.parse().unwrap()).collect())
    };
    let addressed = |name: &str, replies: &[&str]| taker(name, "a", replies).routing(Routing::Addressed);
    let told = problems(
        vec![addressed("p", &["b"]), addressed("q", &["b", "c"]), caller("all", &["b", "c"]), caller("some", &["b"])],
        &[],
    );
    assert!(matches!(&told[..], [one] if one.contains("'some' calls a, but the reply c of 'q'")), "{told:?}");
}

/// Checks that the parties of a payload are found by it alone, regardless of the other payloads that they list.
#[test]
fn a_party_may_call_what_it_lists() {
    let mut both = taker("both", "a", &["b"]);
    both.calls = vec!["c".parse().unwrap(), "a".parse().unwrap(), "c".parse().unwrap()];
    let client = |name: &str, calls: &[&str]| {
        ClientContract::new(Name::parse(name).unwrap()).calls(calls.iter().map(|call| call.parse().unwrap()).collect())
    };
    let clients = vec![client("ada", &["a"]), client("bob", &[]), client("eve", &["c", "a", "c"])];
    let blueprint = Blueprint::new("demo", vec![taker("one", "c", &["b"]), both], clients);
    for name in ["ada", "bob", "eve", "one", "both"] {
        let party = blueprint.party(name).unwrap();
        for payload in ["a", "b", "c", "d"].map(|payload| payload.parse().unwrap()) {
            let listed = blueprint.calls(party).contains(&payload);
            assert_eq!(blueprint.may_call(party, &payload), listed, "{name} {payload}");
        }
    }
}
