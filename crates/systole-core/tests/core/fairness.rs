//! No ready thread waits longer than one turn of each thread that was ready before it; nor one that is alone in its
//! conversation longer than one turn of each other conversation; nor one that is alone with its client longer than one turn
//! of each other client.

use std::collections::{HashMap, HashSet};

use proptest::prelude::*;
use systole_core::core::*;
use systole_core::vocab::ThreadId;

use crate::harness::{Seen, Setup, World, boss, client, letter, server, worker};
use crate::model::cases;
use crate::payloads::{call, reply};

/// The number of threads that may go before a ready one, and the number that have gone.
struct Wait {
    ahead: usize,
    gone: usize,
}

/// A thread of `boss`: its conversation, and the number of messages in its mailbox.
struct Mail {
    root: ThreadId,
    queued: usize,
}

const CLIENTS: [&str; 4] = ["alice", "bob", "carol", "dave"];

/// Threads of `boss`, each with one answer at hand and some in its mailbox, in the conversations of those numbers, of
/// `alice`.
fn with_mail(mail: impl IntoIterator<Item = (u8, u8)>) -> (World, HashMap<ThreadId, Mail>) {
    with_mail_of(mail, |_| "alice")
}

/// The same, with the client of each conversation.
fn with_mail_of(
    mail: impl IntoIterator<Item = (u8, u8)>,
    client_of: fn(u8) -> &'static str,
) -> (World, HashMap<ThreadId, Mail>) {
    let plenty = |contract: &mut Contract| contract.concurrency = 10_000;
    let mut setup = Setup::new(vec![boss(plenty), worker(plenty)]);
    setup.clients = CLIENTS.map(|name| client(name, &["ask"])).into();
    setup.events = false;
    let mut world = setup.build();
    world.emits("worker", |_| vec![reply("pong", 0)]);
    let (mut threads, mut roots) = (HashMap::new(), HashMap::new());
    for (n, (conversation, mail)) in (0..).zip(mail) {
        let ask = letter("ask", n);
        let ask = roots.get(&conversation).map_or(ask.clone(), |&root| ask.thread(root));
        let root = world.send(client_of(conversation), ask);
        let root = *roots.entry(conversation).or_insert(root);
        let invocation = world.invocation_with("boss", n);
        threads.insert(world.message(invocation).thread, Mail { root, queued: usize::from(mail) });
        world.finish(invocation, (0..=mail).map(|_| call("ping", 0)).collect());
    }
    world.log.clear();
    (world, threads)
}

/// Ends the handler of that number or, if it mustn't end or none runs, takes a step of the dispatcher. Gives back the
/// thread that became ready by that.
fn turn(world: &mut World, threads: &HashMap<ThreadId, Mail>, ends: bool, choice: u8) -> Option<ThreadId> {
    if !ends || world.running.is_empty() {
        world.step(0);
        return None;
    }
    let running = &world.running[usize::from(choice) % world.running.len()];
    let (invocation, thread) = (running.invocation, running.message.thread);
    let is_ready = threads[&thread].queued > 0;
    world.end(invocation, HandlerOutcome::Emitted(if is_ready { vec![] } else { vec![reply("told", 0)] }));
    is_ready.then_some(thread)
}

/// A listener with one slot, and clients that may call it.
fn one_slot(shards: u16) -> World {
    let mut setup = Setup::new(vec![server("slow", &["ask"], &["told"]).concurrency(1)]);
    setup.clients = CLIENTS.map(|name| client(name, &["ask"])).into();
    (setup.events, setup.shards) = (false, shards);
    setup.build()
}

#[test]
fn the_message_of_a_client_waits_on_queue_1_for_one_of_each_other_client() {
    let mut setup = Setup::new(vec![worker(|worker| worker.concurrency = 10_000)]);
    setup.clients = CLIENTS.map(|name| client(name, &["ping"])).into();
    let mut world = setup.build();
    world.emits("worker", |_| vec![reply("pong", 0)]);
    for n in 0..100 {
        world.post("alice", letter("ping", n));
        world.post("bob", letter("ping", n));
    }
    world.post("carol", letter("ping", 0));
    let carol = world.client_id("carol");
    while !world.egress.iter().any(|egress| egress.client == carol) {
        assert!(world.step(0), "carol is answered");
    }
    // Two turns on the entrance queue, the message and its response: each behind one item of each other.
    assert!(world.egress.len() <= 5, "{} answers came before", world.egress.len());
    world.run();
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(cases() / 2) })]

    #[test]
    fn with_n_threads_in_the_ring_none_waits_more_than_n_dispatches(
        mail in prop::collection::vec(0..12u8, 1..24),
        choices in prop::collection::vec((any::<bool>(), any::<u8>()), 0..400),
    ) {
        let (mut world, mut threads) = with_mail((0..).zip(mail.iter().copied()));
        let mut ready: HashMap<ThreadId, Wait> = HashMap::new();
        let choices = choices.into_iter().chain((0..2000).map(|n| (n % 2 == 0, 0)));
        for (ends, choice) in choices {
            if let Some(thread) = turn(&mut world, &threads, ends, choice) {
                ready.insert(thread, Wait { ahead: ready.len(), gone: 0 });
            }
            for seen in std::mem::take(&mut world.log) {
                let Seen::Started(_, thread, _) = seen else { continue };
                let wait = ready.remove(&thread).expect("only a ready thread is dispatched");
                prop_assert!(wait.gone <= wait.ahead, "{} went before, {} stood before", wait.gone, wait.ahead);
                ready.values_mut().for_each(|other| other.gone += 1);
                threads.get_mut(&thread).expect("a thread of boss").queued -= 1;
            }
        }
        world.run();
        prop_assert_eq!(world.said().len(), mail.len(), "all came to their ends");
    }

    #[test]
    fn with_n_conversations_in_the_ring_none_waits_more_than_n_dispatches(
        mail in prop::collection::vec((0..6u8, 0..12u8), 1..40),
        choices in prop::collection::vec((any::<bool>(), any::<u8>()), 0..400),
    ) {
        let (mut world, mut threads) = with_mail(mail.iter().copied());
        // Per conversation: its ready threads in order, and since when it waits for a turn.
        let mut ready: HashMap<ThreadId, (Vec<ThreadId>, Wait)> = HashMap::new();
        let choices = choices.into_iter().chain((0..4000).map(|n| (n % 2 == 0, 0)));
        for (ends, choice) in choices {
            if let Some(thread) = turn(&mut world, &threads, ends, choice) {
                let (root, ahead) = (threads[&thread].root, ready.len());
                ready.entry(root).or_insert((Vec::new(), Wait { ahead, gone: 0 })).0.push(thread);
            }
            for seen in std::mem::take(&mut world.log) {
                let Seen::Started(_, thread, _) = seen else { continue };
                let mail = threads.get_mut(&thread).expect("a thread of boss");
                mail.queued -= 1;
                let (mut line, wait) = ready.remove(&mail.root).expect("only a ready thread is dispatched");
                prop_assert_eq!(line.remove(0), thread, "first in, first out within a conversation");
                prop_assert!(wait.gone <= wait.ahead, "{} went before, {} stood before", wait.gone, wait.ahead);
                ready.values_mut().for_each(|(_, other)| other.gone += 1);
                if !line.is_empty() {
                    let ahead = ready.len();
                    ready.insert(mail.root, (line, Wait { ahead, gone: 0 }));
                }
            }
        }
        world.run();
        prop_assert_eq!(world.said().len(), mail.len(), "all came to their ends");
    }

    #[test]
    fn with_p_clients_in_the_ring_none_waits_for_more_than_p_dispatches(
        mail in prop::collection::vec((0..12u8, 0..12u8), 1..40),
        choices in prop::collection::vec((any::<bool>(), any::<u8>()), 0..400),
    ) {
        let (mut world, mut threads) = with_mail_of(mail.iter().copied(), |conversation| CLIENTS[usize::from(conversation) % 4]);
        // Per client: the number of its ready threads, and since when it waits for a turn.
        let mut ready: HashMap<ClientId, (usize, Wait)> = HashMap::new();
        let choices = choices.into_iter().chain((0..4000).map(|n| (n % 2 == 0, 0)));
        for (ends, choice) in choices {
            if let Some(thread) = turn(&mut world, &threads, ends, choice) {
                let (client, ahead) = (world.client_of(threads[&thread].root), ready.len());
                ready.entry(client).or_insert((0, Wait { ahead, gone: 0 })).0 += 1;
            }
            for seen in std::mem::take(&mut world.log) {
                let Seen::Started(_, thread, _) = seen else { continue };
                let mail = threads.get_mut(&thread).expect("a thread of boss");
                mail.queued -= 1;
                let client = world.client_of(mail.root);
                let (count, wait) = ready.remove(&client).expect("only a ready thread is dispatched");
                prop_assert!(wait.gone <= wait.ahead, "{} went before, {} stood before", wait.gone, wait.ahead);
                ready.values_mut().for_each(|(_, other)| other.gone += 1);
                if count > 1 {
                    let ahead = ready.len();
                    ready.insert(client, (count - 1, Wait { ahead, gone: 0 }));
                }
            }
        }
        world.run();
        prop_assert_eq!(world.said().len(), mail.len(), "all came to their ends");
    }

    #[test]
    fn with_p_clients_in_line_for_a_slot_none_waits_for_more_than_p_of_them(
        letters in prop::collection::vec((0..4usize, 0..3u8), 1..60),
        shards in 1..4u16,
    ) {
        let mut world = one_slot(shards);
        let mut waits: HashMap<usize, (usize, Wait)> = HashMap::new();
        for (n, (client, shard)) in (0..).zip(letters) {
            world.send(CLIENTS[client], letter("ask", client as i64).at(usize::from(shard) % usize::from(shards)));
            if n > 0 {
                let ahead = waits.len();
                waits.entry(client).or_insert((0, Wait { ahead, gone: 0 })).0 += 1;
            }
        }
        while let Some(running) = world.running.first() {
            world.finish(running.invocation, vec![reply("told", 0)]);
            let Some(next) = world.running.first() else { continue };
            let client = crate::harness::number_in(&next.message) as usize;
            let (count, wait) = waits.remove(&client).expect("it stood in line");
            prop_assert!(wait.gone <= wait.ahead, "{} went before, {} stood before", wait.gone, wait.ahead);
            waits.values_mut().for_each(|(_, other)| other.gone += 1);
            if count > 1 {
                let ahead = waits.len();
                waits.insert(client, (count - 1, Wait { ahead, gone: 0 }));
            }
        }
        prop_assert!(waits.is_empty(), "all had their turn");
    }

    #[test]
    fn with_n_conversations_in_line_for_a_slot_none_waits_for_more_than_n_of_them(
        letters in prop::collection::vec((0..6u8, 0..3u8), 1..60),
        shards in 1..4u16,
    ) {
        let mut world = one_slot(shards);
        let mut roots: HashMap<u8, ThreadId> = HashMap::new();
        let mut line: Vec<(u8, i64)> = Vec::new();
        let mut waits: HashMap<u8, Wait> = HashMap::new();
        for (n, (conversation, shard)) in (0..).zip(letters) {
            let ask = letter("ask", n).at(usize::from(shard) % usize::from(shards));
            let ask = roots.get(&conversation).map_or(ask.clone(), |&root| ask.thread(root));
            let root = world.send("alice", ask);
            roots.entry(conversation).or_insert(root);
            if n > 0 {
                let ahead = line.iter().map(|(other, _)| *other).collect::<HashSet<_>>().len();
                waits.entry(conversation).or_insert(Wait { ahead, gone: 0 });
                line.push((conversation, n));
            }
        }
        while let Some(running) = world.running.first() {
            let (invocation, thread) = (running.invocation, running.message.thread);
            world.finish(invocation, vec![reply("told", 0)]);
            let Some(next) = world.running.first() else { continue };
            prop_assert_ne!(next.message.thread, thread);
            let n = crate::harness::number_in(&next.message);
            let conversation = line.iter().find(|(_, other)| *other == n).expect("it stood in line").0;
            let first = line.iter().position(|(other, _)| *other == conversation).expect("it stood in line");
            prop_assert_eq!(line.remove(first).1, n, "first in, first out within a conversation");
            let wait = waits.remove(&conversation).expect("it stood in line");
            prop_assert!(wait.gone <= wait.ahead, "{} went before, {} stood before", wait.gone, wait.ahead);
            waits.values_mut().for_each(|other| other.gone += 1);
            if line.iter().any(|(other, _)| *other == conversation) {
                let ahead = waits.len();
                waits.insert(conversation, Wait { ahead, gone: 0 });
            }
        }
        prop_assert!(line.is_empty(), "all had their turn");
    }
}
