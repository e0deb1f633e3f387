//! No ready thread waits longer than one turn of each thread that was ready before it.

use std::collections::HashMap;

use proptest::prelude::*;
use systole::core::*;
use systole::vocab::ThreadId;

use crate::harness::{Seen, Setup, World, boss, letter, worker};
use crate::model::cases;
use crate::payloads::{call, reply};

/// How many threads may go before a ready one, and how many have gone.
struct Wait {
    ahead: usize,
    gone: usize,
}

/// Threads of `boss`, each with one answer at hand and some in its mailbox.
fn with_mail(mail: &[u8]) -> (World, HashMap<ThreadId, usize>) {
    let plenty = |contract: &mut Contract| contract.concurrency = 10_000;
    let mut setup = Setup::new(vec![boss(plenty), worker(plenty)]);
    setup.events = false;
    let mut world = setup.build();
    world.emits("worker", |_| vec![reply("pong", 0)]);
    let mut queued = HashMap::new();
    for (n, &mail) in (0..).zip(mail) {
        world.send("alice", letter("ask", n));
        let task = world.task_with("boss", n);
        queued.insert(world.message(task).thread, usize::from(mail));
        world.finish(task, (0..=mail).map(|_| call("ping", 0)).collect());
    }
    world.log.clear();
    (world, queued)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(cases() / 2) })]

    #[test]
    fn with_n_threads_in_the_ring_none_waits_more_than_n_dispatches(
        mail in prop::collection::vec(0..12u8, 1..24),
        choices in prop::collection::vec((any::<bool>(), any::<u8>()), 0..400),
    ) {
        let (mut world, mut queued) = with_mail(&mail);
        let mut ready: HashMap<ThreadId, Wait> = HashMap::new();
        let choices = choices.into_iter().chain((0..2000).map(|n| (n % 2 == 0, 0)));
        for (ends, choice) in choices {
            if ends && !world.running.is_empty() {
                let running = &world.running[usize::from(choice) % world.running.len()];
                let (task, thread) = (running.task, running.message.thread);
                if queued[&thread] > 0 {
                    ready.insert(thread, Wait { ahead: ready.len(), gone: 0 });
                    world.end(task, Outcome::Emitted(vec![]));
                } else {
                    world.end(task, Outcome::Emitted(vec![reply("told", 0)]));
                }
            } else {
                world.step(0);
            }
            for seen in std::mem::take(&mut world.log) {
                let Seen::Started(_, thread, _) = seen else { continue };
                let wait = ready.remove(&thread).expect("only a ready thread is dispatched");
                prop_assert!(wait.gone <= wait.ahead, "{} went before, {} stood before", wait.gone, wait.ahead);
                ready.values_mut().for_each(|other| other.gone += 1);
                *queued.get_mut(&thread).expect("a thread of boss") -= 1;
            }
        }
        world.run();
        prop_assert_eq!(world.said().len(), mail.len(), "all came to their ends");
    }
}
