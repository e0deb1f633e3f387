//! Budgets: what a thread and those below it may use.

use std::time::Duration;

use systole_core::core::*;
use systole_core::vocab::{Amounts, Budget, FaultCode, Millionths};

use super::harness::*;
use super::payloads::*;

fn budget(text: &str) -> Budget {
    text.parse().unwrap()
}

/// An organism of a boss and workers that answer.
fn world(boss_is: impl FnOnce(&mut Contract), worker_is: impl FnOnce(&mut Contract), whole: &str) -> World {
    let mut world = Setup::new(vec![boss(boss_is), worker(worker_is)]).build_with(|blueprint| {
        if !whole.is_empty() {
            blueprint.budget = budget(whole);
        }
    });
    world.emits("worker", |message| vec![reply("pong", number_in(message))]);
    world
}

/// The amounts that the thread with the n-th account has used.
fn spent(world: &World, n: usize) -> Amounts {
    world.cores[0].budgets()[n].spent
}

fn calls(calls: u64, threads: u64) -> Amounts {
    Amounts { calls, threads, ..Amounts::default() }
}

#[test]
fn an_organism_without_budgets_has_no_accounts() {
    let mut world = world(|_| {}, |_| {}, "");
    world.send("alice", letter("ask", 0));
    assert_eq!(world.cores[0].budgets(), []);
    assert!(!world.message(world.invocation("boss")).is_budgeted);
    world.finish(world.invocation("boss"), vec![reply("told", 1)]);
}

#[test]
fn a_refused_call_leaves_one_turn_to_hand_back_what_there_is() {
    let mut world = world(|boss| boss.accepts_faults = true, |_| {}, "calls=3");
    let root = world.send("alice", letter("ask", 0));
    assert!(world.message(world.invocation("boss")).is_budgeted);
    world.finish(world.invocation("boss"), (1..5).map(|n| call("ping", n)).collect());
    assert_eq!(spent(&world, 0), calls(3, 3), "the message of the client is the first call");
    // The refused ones are answered at once, in their order, and nothing else is called in their place.
    for _ in 0..3 {
        world.finish(world.invocation("boss"), vec![]);
    }
    let started = world.take_started();
    let faults: Vec<_> = started.iter().filter(|line| line.contains("!budget")).collect();
    assert_eq!(faults, ["boss <- system: !budget (2/4, 3 left)", "boss <- system: !budget (3/4, 2 left)"]);
    let message = world.message(world.invocation("boss"));
    assert_eq!(describe(message), "pong 2 (1/4, 0 left)");
    world.finish(world.invocation("boss"), vec![reply("told", 7)]);
    assert_eq!(world.said(), ["boss: told 7"]);
    world.leave(root);
    let spent = world.events.iter().find_map(|event| match &event.kind {
        EventKind::Spent { budget, spent } => Some((event.path.to_string(), *budget, *spent)),
        _ => None,
    });
    assert_eq!(spent, Some(("root".to_owned(), budget("calls=3"), calls(3, 3))));
}

#[test]
fn the_fault_says_what_is_left_and_what_to_do() {
    let mut world = world(|boss| boss.accepts_faults = true, |_| {}, "threads=1 calls=9");
    world.send("alice", letter("ask", 0));
    world.finish(world.invocation("boss"), vec![call("ping", 1)]);
    let fault = fault_of(world.message(world.invocation("boss")));
    assert_eq!(fault.code, FaultCode::Budget);
    assert_eq!(&*fault.message, "a budget has 0 of 1 threads left, and 1 would be needed");
    let rule = fault.rule.as_ref().unwrap();
    assert!(rule.rule.starts_with("a reply with what there is is all that can still be sent"), "{}", rule.rule);
    world.finish(world.invocation("boss"), vec![reply("told", 1)]);
}

#[test]
fn whoever_goes_on_after_that_turn_ends_with_the_fault() {
    let takes = |boss: &mut Contract| {
        boss.accepts_faults = true;
        boss.returns.push(meta_qname("capabilities"));
    };
    for again in [call("ping", 2), meta("list-capabilities"), go_on()] {
        let mut world = world(takes, |_| {}, "calls=1");
        world.send("alice", letter("ask", 0).label("l"));
        world.finish(world.invocation("boss"), vec![call("ping", 1)]);
        assert_eq!(describe(world.message(world.invocation("boss"))), "!budget");
        world.finish(world.invocation("boss"), vec![again]);
        assert_eq!(world.said(), ["boss: !budget [l]"]);
    }
}

fn go_on() -> Emission {
    emission(EmissionKind::Continue { after: std::time::Duration::ZERO }, &xml("tick", 1))
}

#[test]
fn silence_after_a_refusal_is_the_fault_of_the_budget() {
    let mut world = world(|boss| boss.accepts_faults = true, |_| {}, "calls=1");
    world.send("alice", letter("ask", 0));
    world.finish(world.invocation("boss"), vec![call("ping", 1)]);
    world.finish(world.invocation("boss"), vec![]);
    assert_eq!(world.said(), ["boss: !budget"]);
}

#[test]
fn who_takes_no_faults_passes_it_on() {
    let mut world = world(|_| {}, |_| {}, "calls=1");
    world.send("alice", letter("ask", 0));
    world.finish(world.invocation("boss"), vec![call("ping", 1)]);
    assert_eq!(world.said(), ["boss: !budget"]);
}

#[test]
fn a_handler_that_awaits_has_its_turn_too() {
    let mut world = world(|_| {}, |_| {}, "calls=2");
    world.send("alice", letter("ask", 0));
    let boss = world.invocation("boss");
    world.call(boss, 0, vec![call("ping", 1)], Join::All);
    assert_eq!(world.next_resume().unwrap(), "0: 0 pong 1");
    world.call(boss, 1, vec![call("ping", 2)], Join::All);
    assert_eq!(world.next_resume().unwrap(), "1: !budget");
    world.finish(boss, vec![reply("told", 5)]);
    assert_eq!(world.said(), ["boss: told 5"]);
    world.send("alice", letter("ask", 1));
    let boss = world.invocation("boss");
    for group in 0..2 {
        world.call(boss, group, vec![call("ping", 1), call("ping", 2)], Join::Settled);
    }
    assert_eq!(world.next_resume().unwrap(), "0: 0 pong 1, 1 !budget");
    // It made them before it learned of the first refusal.
    assert_eq!(world.next_resume().unwrap(), "1: 0 !budget, 1 !budget");
    world.finish(boss, vec![reply("told", 6)]);
    assert_eq!(world.said(), ["boss: told 6"]);
}

#[test]
fn a_handler_that_goes_on_awaiting_ends_with_the_fault() {
    let mut world = world(|_| {}, |_| {}, "calls=1");
    world.send("alice", letter("ask", 0));
    let boss = world.invocation("boss");
    let mut groups = 0;
    while world.said().is_empty() {
        world.call(boss, groups, vec![call("ping", 1)], Join::All);
        world.next_resume();
        groups += 1;
        assert!(groups < 1000, "it goes on for ever");
    }
    assert_eq!(groups, 258, "one, as many again as a handler may make at once, and the one that ends it");
}

#[test]
fn parallel_children_share_what_their_parent_has() {
    let lead = listener("lead", |lead| {
        lead.accepts = qnames(&["job"]);
        lead.replies = qnames(&["done"]);
        lead.calls = qnames(&["ask"]);
        lead.returns = qnames(&["told"]);
        lead.budget = budget("calls=7 tokens=100");
    });
    let boss = boss(|boss| {
        boss.accepts_faults = true;
        boss.budget = budget("calls=50");
    });
    let mut world = Setup::new(vec![lead, boss, worker(|_| {})]).build();
    world.emits("lead", |message| match number_in(message) {
        0 => (1..4).map(|n| call("ask", n)).collect(),
        _ => match message.join {
            Some(join) if join.remaining > 0 => vec![],
            _ => vec![reply("done", 1)],
        },
    });
    let heard = std::rc::Rc::new(std::cell::Cell::new(0));
    let counts = heard.clone();
    world.emits("worker", |message| vec![reply("pong", number_in(message))]);
    world.emits("boss", move |message| match &message.body {
        Body::Fault(_) => {
            counts.set(counts.get() + 1);
            vec![reply("told", number_in(message))]
        }
        Body::Payload { .. } => vec![call("ping", number_in(message) + 1)],
    });
    let root = world.send("alice", letter("job", 0));
    // Three bosses call their workers one after the other for ever, as long as the budget of their parent lasts.
    assert_eq!(heard.get(), 3, "each of them is told");
    assert_eq!(
        world.started.iter().filter(|line| line.starts_with("worker")).count(),
        4,
        "3 of 7 calls were for bosses"
    );
    assert_eq!(world.said(), ["lead: done 1"]);
    world.leave(root);
    let mut ended = world.events.iter().filter_map(|event| match &event.kind {
        EventKind::Spent { spent, .. } => Some((event.path.to_string(), spent.calls)),
        _ => None,
    });
    assert_eq!(ended.next_back(), Some(("root/lead".to_owned(), 7)));
}

#[test]
fn two_agents_that_answer_each_other_for_ever_end() {
    let agent = |name: &str, accepts: &str, calls: &str| {
        listener(name, |agent| {
            agent.accepts = qnames(&[accepts]);
            agent.replies = qnames(&["told"]);
            agent.calls = qnames(&[calls]);
            agent.returns = qnames(&["told"]);
            agent.accepts_faults = true;
        })
    };
    let mut world = Setup::new(vec![agent("one", "ask", "ping"), agent("two", "ping", "ask")])
        .build_with(|blueprint| blueprint.budget = budget("calls=20"));
    for (name, other) in [("one", "ping"), ("two", "ask")] {
        world.emits(name, move |message| match &message.body {
            // It tries again whatever comes.
            Body::Fault(_) => vec![call(other, 0)],
            Body::Payload { .. } => vec![call(other, number_in(message) + 1)],
        });
    }
    world.send("alice", letter("ask", 0).label("first"));
    assert_eq!(world.said(), ["one: !budget [first]"]);
    assert_eq!(spent(&world, 0), calls(20, 20));
}

#[test]
fn a_conversation_keeps_its_account_and_a_client_has_its_own() {
    let mut setup = Setup::new(vec![boss(|_| {}), worker(|_| {})]);
    setup.clients[1].budget = budget("calls=1");
    let mut world = setup.build_with(|blueprint| blueprint.budget = budget("calls=2"));
    world.emits("boss", |message| vec![reply("told", number_in(message))]);
    for (client, said) in [("alice", ["told 1", "told 2", "!budget"]), ("bob", ["told 1", "!budget", "!budget"])] {
        let root = world.send(client, letter("ask", 1));
        world.send(client, letter("ask", 2).thread(root));
        world.send(client, letter("ask", 3).thread(root));
        let found: Vec<_> = world.said().iter().map(|line| line.split_once(": ").unwrap().1.to_owned()).collect();
        assert_eq!(found, said, "{client}");
    }
    world.send("bob", letter("ask", 4));
    assert_eq!(world.said(), ["boss: told 4"], "another conversation has a budget of its own");
}

#[test]
fn an_envelope_narrows_what_its_threads_may_use() {
    let mut world = world(|boss| boss.budget = budget("calls=5 threads=9"), |_| {}, "");
    world.send("alice", letter("ask", 0).budget("calls=1 tokens=7"));
    assert_eq!(world.cores[0].budgets()[0].budget, budget("calls=1 threads=9 tokens=7"));
    world.finish(world.invocation("boss"), vec![call("ping", 1), call("ping", 2)]);
    assert_eq!(world.said(), ["boss: !budget"]);
    world.send("alice", letter("ask", 0).budget("calls=1000"));
    assert_eq!(world.cores[0].budgets()[0].budget, budget("calls=5 threads=9"));
    world.finish(world.invocation("boss"), vec![reply("told", 1)]);
}

#[test]
fn a_time_is_a_deadline() {
    let mut world = world(|boss| boss.budget = budget("time=20s"), |_| {}, "time=30s");
    let root = world.send("alice", letter("ask", 0).label("a"));
    assert_eq!(world.message(world.invocation("boss")).deadline, Some(world.now.after(secs(20))));
    world.sleep(secs(20));
    assert_eq!(world.said(), ["boss: !timeout [a]"]);
    // The time of the conversation is that of its first message.
    world.send("alice", letter("ask", 0).thread(root).label("b"));
    assert_eq!(world.message(world.invocation("boss")).deadline, Some(world.now.after(secs(10))));
    world.sleep(secs(10));
    assert_eq!(world.said(), ["boss: !timeout [b]"]);
    world.send("alice", letter("ask", 0).thread(root).label("c"));
    world.sleep(secs(1));
    assert_eq!(world.said(), ["boss: !timeout [c]"]);
    world.send("alice", letter("ask", 0).budget("time=3s"));
    assert_eq!(world.message(world.invocation("boss")).deadline, Some(world.now.after(secs(3))));
    world.finish(world.invocation("boss"), vec![reply("told", 1)]);
}

fn tokens(tokens: u64, cost: u64) -> Amounts {
    Amounts { tokens, cost: Millionths(cost), ..Amounts::default() }
}

impl World {
    fn reserve(&mut self, invocation: Invocation, amounts: Amounts, is_last: bool) -> Result<(), Box<Short>> {
        let is_last = is_last.then(|| systole_core::vocab::Fault::new(FaultCode::Budget, "it is spent"));
        self.handle(invocation.shard, Input::Reserve { invocation: invocation.id, amounts, is_last });
        self.run();
        self.reserved.pop().expect("each reservation has a result")
    }

    fn use_tokens(&mut self, invocation: Invocation, index: u32, input: u64, cost: u64) {
        let usage = Usage { input, cost: Millionths(cost), ..Usage::default() };
        let answer = ModelAnswer {
            backend: "b".into(),
            model: "m".into(),
            usage,
            took: Duration::ZERO,
            text: "t".into(),
            fault: None,
        };
        let (name, value) = ("model".into(), "1".into());
        self.handle(
            invocation.shard,
            Input::Noted { invocation: invocation.id, index, name, value, answer: Some(Box::new(answer)) },
        );
        self.run();
    }
}

#[test]
fn a_request_is_reserved_before_and_settled_after() {
    let mut world = world(|_| {}, |_| {}, "tokens=100 cost=0.000050");
    world.send("alice", letter("ask", 0));
    let boss = world.invocation("boss");
    assert_eq!(world.reserve(boss, tokens(60, 20), false), Ok(()));
    let account = world.cores[0].budgets()[0];
    assert_eq!((account.spent, account.reserved), (calls(1, 1), tokens(60, 20)));
    world.use_tokens(boss, 0, 30, 12);
    let account = world.cores[0].budgets()[0];
    assert_eq!((account.spent, account.reserved), (tokens(30, 12).plus(calls(1, 1)), Amounts::default()));
    let short = world.reserve(boss, tokens(71, 1), false).unwrap_err();
    assert_eq!((short.left, short.fault.code), (budget("tokens=70 cost=0.000038"), FaultCode::Budget));
    let short = world.reserve(boss, tokens(1, 39), false).unwrap_err();
    assert_eq!(
        &*short.fault.message,
        "a budget has 0.000038 of 0.00005 units of cost left, and 0.000039 would be needed"
    );
    assert_eq!(world.reserve(boss, tokens(70, 38), false), Ok(()), "it fits exactly");
    world.use_tokens(boss, 1, 0, 0);
    assert_eq!(world.cores[0].budgets()[0], account, "nothing was used of it");
    world.finish(boss, vec![reply("told", 1)]);
}

#[test]
fn a_request_elsewhere_is_settled_with_its_note_and_its_reserve_is_taken_up_again() {
    let mut world = world(|_| {}, |_| {}, "tokens=100 calls=9");
    world.send("alice", letter("ask", 0));
    let boss = world.invocation("boss");
    let state = |world: &World| {
        let OpenBudget { spent, reserved, .. } = world.cores[0].budgets()[0];
        (spent.tokens, spent.calls, reserved.tokens, reserved.calls)
    };
    let some = |tokens, calls| Amounts { tokens, calls, ..Amounts::default() };
    assert_eq!(world.reserve(boss, some(60, 5), false), Ok(()));
    assert_eq!(state(&world), (0, 1, 60, 5));
    let settle = |world: &mut World, used| {
        let (name, value) = ("organism".into(), "true".into());
        world.handle(boss.shard, Input::Settled { invocation: boss.id, index: 0, name, value, used });
        world.run();
    };
    settle(&mut world, some(7, 2));
    assert_eq!(state(&world), (7, 3, 0, 0));
    // What a crash leaves: the reserve of the killed process counts as spent.
    assert_eq!(world.reserve(boss, some(40, 1), false), Ok(()));
    settle(&mut world, some(40, 1));
    assert_eq!(state(&world), (47, 4, 0, 0));
    world.handle(boss.shard, Input::Reclaimed { invocation: boss.id, amounts: some(40, 1) });
    world.run();
    assert_eq!(state(&world), (7, 3, 40, 1), "nothing more is left than before");
    assert_eq!(world.reserve(boss, some(94, 0), false).unwrap_err().left, budget("tokens=53 calls=5"));
    assert_eq!(state(&world), (47, 4, 0, 0), "another reservation spends it");
    world.finish(boss, vec![reply("told", 1)]);
}

#[test]
fn a_request_without_an_answer_is_charged() {
    let charged = |world: &World| {
        let OpenBudget { spent, reserved, .. } = world.cores[0].budgets()[0];
        (spent.tokens, spent.cost.0, reserved.tokens)
    };
    let mut world = world(|_| {}, |_| {}, "tokens=100");
    world.send("alice", letter("ask", 0));
    let boss = world.invocation("boss");
    assert_eq!(world.reserve(boss, tokens(40, 9), false), Ok(()));
    let charge = |world: &mut World, input| {
        let usage = Usage { input, ..Usage::default() };
        world.handle(boss.shard, Input::Charged { invocation: boss.id, usage });
        world.run();
    };
    charge(&mut world, 3);
    assert_eq!(charged(&world), (3, 0, 0), "what its provider reported");
    assert_eq!(world.reserve(boss, tokens(40, 9), false), Ok(()));
    charge(&mut world, 0);
    assert_eq!(charged(&world), (3, 0, 0), "no provider took it");
    assert_eq!(world.reserve(boss, tokens(40, 9), false), Ok(()));
    assert_eq!(world.reserve(boss, tokens(30, 7), false), Ok(()));
    assert_eq!(charged(&world), (43, 9, 30), "nobody said what the first one used");
    assert_eq!(world.reserve(boss, tokens(28, 0), false).unwrap_err().left, budget("tokens=27"));
    assert_eq!(world.reserve(boss, tokens(27, 5), false), Ok(()));
    world.finish(boss, vec![reply("told", 1)]);
    assert_eq!(charged(&world), (100, 21, 0), "its handler ended before");
}

#[test]
fn an_answer_that_grows_is_an_event_and_charges_nothing() {
    let mut world = world(|_| {}, |_| {}, "tokens=100");
    world.send("alice", letter("ask", 0));
    let boss = world.invocation("boss");
    assert_eq!(world.reserve(boss, tokens(60, 0), false), Ok(()));
    let before = world.cores[0].budgets()[0];
    world.handle(boss.shard, Input::Grown { invocation: boss.id, text: "<told>".into() });
    world.run();
    assert_eq!(world.cores[0].budgets()[0], before);
    let grown = world.events.iter().filter_map(|event| match &event.kind {
        EventKind::ModelWrites { by, text } => Some(format!("{} {by} {text}", event.path)),
        _ => None,
    });
    assert_eq!(grown.collect::<Vec<_>>(), ["root/boss boss <told>"]);
    world.finish(boss, vec![reply("told", 1)]);
    // The handler has ended meanwhile.
    let before = world.events.len();
    world.handle(boss.shard, Input::Grown { invocation: boss.id, text: "late".into() });
    world.run();
    assert_eq!(world.events.len(), before);
}

#[test]
fn what_is_reserved_is_no_ones_else() {
    let mut world = world(|_| {}, |worker| worker.budget = budget("tokens=80"), "tokens=100");
    world.script("worker", |_| Act::Hold);
    world.send("alice", letter("ask", 0));
    let boss = world.invocation("boss");
    world.call(boss, 0, vec![call("ping", 1), call("ping", 2)], Join::First);
    let (one, two) = (world.invocation_with("worker", 1), world.invocation_with("worker", 2));
    assert_eq!(world.reserve(one, tokens(80, 0), false), Ok(()));
    let short = world.reserve(two, tokens(30, 0), false).unwrap_err();
    assert_eq!(short.left, budget("tokens=20"), "its own budget has 80 left, that of the conversation 20");
    let message = "a budget has 20 of 100 tokens left, and 30 would be needed: requests in flight have reserved 80";
    assert_eq!(&*short.fault.message, message);
    assert_eq!(world.reserve(two, tokens(20, 0), false), Ok(()));
    // The loser is cancelled while its request is in flight, and the winner ends without a word on its own: both are spent.
    world.finish(two, vec![reply("pong", 2)]);
    assert_eq!(world.aborted.len(), 1);
    let OpenBudget { spent, reserved, .. } = world.cores[0].budgets()[0];
    assert_eq!((spent.tokens, reserved), (100, Amounts::default()));
    let closed = world.events.iter().filter_map(|event| match &event.kind {
        EventKind::Spent { spent, .. } => Some(spent.tokens),
        _ => None,
    });
    assert_eq!(closed.collect::<Vec<_>>(), [80, 20], "the event of each thread has it");
    world.finish(boss, vec![reply("told", 1)]);
}

#[test]
fn what_was_used_counts_even_if_it_is_too_much() {
    let mut world = world(|_| {}, |_| {}, "tokens=100");
    world.send("alice", letter("ask", 0));
    let boss = world.invocation("boss");
    assert_eq!(world.reserve(boss, tokens(90, 0), false), Ok(()));
    world.use_tokens(boss, 0, 120, 0);
    assert_eq!(spent(&world, 0).tokens, 120);
    assert_eq!(world.reserve(boss, tokens(1, 0), false).unwrap_err().left, budget("tokens=0"));
    world.finish(boss, vec![reply("told", 1)]);
}

#[test]
fn the_last_request_is_the_last_turn() {
    let mut world = world(|_| {}, |_| {}, "tokens=100");
    world.send("alice", letter("ask", 0));
    let boss = world.invocation("boss");
    assert_eq!(world.reserve(boss, tokens(100, 0), true), Ok(()));
    world.use_tokens(boss, 0, 10, 0);
    world.finish(boss, vec![call("ping", 1)]);
    assert_eq!(world.said(), ["boss: !budget"], "it may reply, and nothing else");
    world.send("alice", letter("ask", 0));
    assert_eq!(world.reserve(world.invocation("boss"), tokens(100, 0), true), Ok(()));
    world.finish(world.invocation("boss"), vec![reply("told", 1)]);
    assert_eq!(world.said(), ["boss: told 1"]);
}

#[test]
fn a_spawned_thread_begins_each_call_without_refusals() {
    let mut world = world(|_| {}, |worker| worker.budget = budget("calls=0"), "");
    world.script("worker", |_| Act::Hold);
    world.send("alice", letter("ask", 0));
    let boss = world.invocation("boss");
    let thread = world.spawn_on(boss);
    for n in 1..3 {
        world.call(boss, n, vec![on(thread, call("ping", n.into()))], Join::Settled);
        world.finish(world.invocation("worker"), vec![reply("pong", 3)]);
        assert_eq!(world.next_resume().unwrap(), format!("{n}: 0 pong 3"));
    }
    world.finish(boss, vec![reply("told", 1)]);
}

#[test]
fn boot_is_bounded_by_the_budgets_of_listeners_alone() {
    let starter = listener("starter", |starter| {
        starter.accepts = vec![core_qname("boot")];
        starter.calls = qnames(&["ping"]);
        starter.returns = qnames(&["pong"]);
    });
    let mut world =
        Setup::new(vec![starter, worker(|_| {})]).build_with(|blueprint| blueprint.budget = budget("calls=0"));
    let root = world.fresh_root();
    world.handle(0, Input::Boot { root });
    world.run();
    world.finish(world.invocation("starter"), vec![call("ping", 1)]);
    assert_eq!(world.runs("worker"), 1);
    world.finish(world.invocation("worker"), vec![reply("pong", 1)]);
    world.finish(world.invocation("starter"), vec![]);
}
