//! The path of one call, for `scripts/trace-call`.

use systole_core::core::*;

use super::harness::*;
use super::payloads::*;

#[test]
fn one_call() {
    let mut setup = Setup::new(vec![server("echo", &["ask"], &["told"])]);
    setup.events = false;
    let mut world = setup.build();
    // The first one makes what later ones find.
    call_and_reply(&mut world, 0);
    traced(&mut world);
    assert_eq!(world.said(), ["echo: told 0", "echo: told 1"]);
}

/// The call that callgrind finds by the name of this function.
#[inline(never)]
fn traced(world: &mut World) {
    call_and_reply(world, 1);
}

fn call_and_reply(world: &mut World, n: i64) {
    world.post("alice", letter("ask", n));
    while world.step(0) {}
    let (invocation, outcome) = (world.invocation("echo").id, HandlerOutcome::Emitted(vec![reply("told", n)]));
    world.running.clear();
    world.handle(0, Input::Finished { invocation, outcome });
    while world.step(0) {}
}
