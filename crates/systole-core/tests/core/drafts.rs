//! The ends of drafts: told once of each handler that wrote one, with what it became, before that leaves.

use std::time::Duration;

use systole_core::core::*;

use super::harness::*;
use super::payloads::*;

fn bad(local: &str) -> Emission {
    emission(EmissionKind::Inferred, &format!("<{local} xmlns=\"urn:test\"><n>x</n></{local}>"))
}

/// A boss that writes a draft.
fn drafting(change: impl FnOnce(&mut Contract)) -> (World, Invocation) {
    let mut world = Setup::new(vec![boss(change), worker(|_| {})]).build();
    world.send("alice", letter("ask", 0).label("l"));
    let boss = world.invocation("boss");
    world.handle(boss.shard, Input::Drafted { invocation: boss.id });
    world.run();
    assert_eq!(world.drafts, [], "it goes on");
    (world, boss)
}

#[test]
fn a_draft_is_over_before_its_message_is_there() {
    let (mut world, boss) = drafting(|_| {});
    world.finish(boss, vec![reply("told", 1)]);
    assert_eq!(world.said(), ["boss: told 1 [l]"]);
    assert_eq!(world.drafts, [(DraftEnd::Answered, 0)]);
    let (mut world, boss) = drafting(|_| {});
    world.emits("worker", |_| vec![reply("pong", 4)]);
    world.finish(boss, vec![call("ping", 1)]);
    assert_eq!(world.drafts, [(DraftEnd::Answered, 0)], "calls are messages, too");
    world.finish(world.invocation("boss"), vec![reply("told", 1)]);
    assert_eq!(world.drafts.len(), 1, "this handler wrote none");
}

#[test]
fn a_draft_of_what_is_refused_is_refused() {
    for is_bytes in [false, true] {
        let (mut world, boss) = drafting(|boss| boss.accepts_faults = true);
        match is_bytes {
            false => world.finish(boss, vec![bad("told")]),
            true => world.write(boss, "no payload at all"),
        }
        assert_eq!(world.drafts, [(DraftEnd::Refused, 0)]);
        let again = world.invocation("boss");
        world.handle(again.shard, Input::Drafted { invocation: again.id });
        world.finish(again, vec![reply("told", 1)]);
        assert_eq!(world.drafts[1..], [(DraftEnd::Answered, 0)]);
    }
    // More than a response may have.
    let (mut world, boss) = drafting(|_| {});
    world.finish(boss, (0..300).map(|n| call("ping", n)).collect());
    assert_eq!(world.drafts, [(DraftEnd::Refused, 0)]);
}

#[test]
fn a_draft_ends_with_a_handler_that_fails_or_is_cancelled_or_says_nothing() {
    let (mut world, boss) = drafting(|_| {});
    world.fail(boss, "it failed");
    assert_eq!(world.drafts, [(DraftEnd::Ended, 0)]);
    let (mut world, boss) = drafting(|boss| boss.silence = Silence::Idle);
    world.finish(boss, Vec::new());
    assert_eq!(world.drafts, [(DraftEnd::Ended, 0)]);
    let (mut world, _) = drafting(|boss| boss.timeout = Some(Duration::from_secs(1)));
    world.sleep(Duration::from_secs(2));
    assert_eq!(world.drafts.iter().map(|(end, _)| *end).collect::<Vec<_>>(), [DraftEnd::Ended]);
}
