//! The suite of stores, for each of them; and organisms on one that fails.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use systole::journal::{
    AppendError, Batch, FailingJournal, Journal, JournalError, JournalErrorKind, JournalOptions, Journaled, Logs,
    MemoryJournal, Recovered, SqliteJournal, Step,
};
use systole::testing::{Failure, Interrupted, Kit, RemoteServer, check_journal, check_store};
use systole::vocab::{Partition, Partitions, Time};
use systole_core::core::{CoreId, EventKind};
use systole_core::journal::{BudgetRecord, Op};
use systole_core::vocab::{Amounts, Budget};

use crate::oracle::{Question, answered, question};
use systole::prelude::*;

struct File(PathBuf);

impl File {
    fn new(name: &str) -> Self {
        let folder = Path::new("/dev/shm");
        let folder = if folder.is_dir() { folder.to_owned() } else { std::env::temp_dir() };
        Self(folder.join(format!("systole-stores-{}-{name}.journal", std::process::id())))
    }
}

impl Drop for File {
    fn drop(&mut self) {
        for ending in ["", "-wal", "-shm", "-lock"] {
            let _ = std::fs::remove_file(format!("{}{ending}", self.0.display()));
        }
    }
}

#[test]
fn the_store_in_memory_passes() {
    let store = Arc::new(Mutex::new(MemoryJournal::new([1; 32])));
    check_journal(|| Box::new(store.clone()));
}

#[test]
fn the_failing_stores_pass_until_they_fail() {
    let store = Arc::new(Mutex::new(MemoryJournal::new([1; 32])));
    check_journal(|| Box::new(FailingJournal::new(store.clone(), 100)));
    let store = Arc::new(Mutex::new(MemoryJournal::new([1; 32])));
    check_journal(|| Box::new(Interrupted::new(store.clone(), 100, true)));
}

#[test]
fn the_store_in_a_file_passes() {
    for durability in [systole::journal::Durability::Process, systole::journal::Durability::Power] {
        let file = File::new(&format!("{durability:?}"));
        let options = JournalOptions::new([1; 32]).durability(durability);
        check_journal(|| Box::new(SqliteJournal::open(&file.0, &options).unwrap()));
    }
}

#[test]
fn the_store_on_a_server_passes() {
    let server = RemoteServer::new([1; 32], 1, 0);
    check_journal(|| Box::new(server.connect()));
}

fn budget(thread: u64) -> Step {
    let record = BudgetRecord { thread, budget: Budget::NONE, spent: Amounts::default() };
    Step { ops: vec![Op::Budget(record)], at: Time::default() }
}

#[test]
fn what_a_failing_connection_acknowledges_is_there_and_what_is_fenced_is_not() {
    let mut met = Vec::new();
    for seed in 0..300 {
        let server = RemoteServer::new([1; 32], seed, 4);
        let mut journal = server.connect();
        let epoch = journal.recover().unwrap().epoch;
        let cores = [0, 1, 2].map(|core| (CoreId(core), Partitions::share(core.into(), 3)));
        let mut logs = Logs::begin(epoch, cores);
        let (mut written, mut gone) = (Vec::new(), Vec::new());
        for number in 0..40 {
            let (core, thread) = (CoreId(number as u16 % 3), number + 1);
            let mut batch = Batch::default();
            let has_log = logs.put(&mut batch, Some(core), budget(thread));
            assert_eq!(has_log, !gone.contains(&core), "a core is told once that it is fenced");
            // Together with one of what lives beside the cores, which is written whatever becomes of the other.
            logs.put(&mut batch, None, budget(thread + 1000));
            let fenced = logs.append(&mut journal, &mut batch).unwrap();
            written.push(thread + 1000);
            written.extend((has_log && fenced.is_empty()).then_some(thread));
            gone.extend(fenced);
        }
        journal.close().unwrap();
        let mut found: Vec<_> =
            server.connect().recover().unwrap().budgets.iter().map(|budget| budget.thread).collect();
        found.sort_unstable();
        written.sort_unstable();
        assert_eq!(found, written, "seed {seed}");
        met.extend(server.met());
    }
    for failure in [Failure::Request, Failure::Answer, Failure::Delay, Failure::Theft] {
        assert!(met.contains(&failure), "no connection meets {failure:?}");
    }
}

#[test]
fn only_the_next_opening_tells_whether_an_interrupted_append_was_written() {
    for is_written in [false, true] {
        let store = Arc::new(Mutex::new(MemoryJournal::new([1; 32])));
        let mut journal = Interrupted::new(store.clone(), 0, is_written);
        let epoch = journal.recover().unwrap().epoch;
        let (mut logs, mut batch) = (Logs::begin(epoch, [(CoreId(0), Partitions::ALL)]), Batch::default());
        logs.put(&mut batch, Some(CoreId(0)), budget(1));
        let failed: JournalError = logs.append(&mut journal, &mut batch).unwrap_err();
        assert_eq!(failed.kind(), JournalErrorKind::Other);
        assert!(matches!(journal.append(&batch), Err(AppendError::Failed(_))), "nothing more is taken");
        let found: Recovered = store.lock().unwrap().recover().unwrap();
        assert_eq!(found.budgets.len(), usize::from(is_written));
    }
}

#[test]
fn an_organism_whose_partitions_are_stolen_again_and_again_answers_each_question_once_or_may_be_asked_again() {
    let (mut all_takeovers, mut fences) = (0, 0);
    for seed in 0..20 {
        let server = RemoteServer::new([3; 32], seed, 30);
        let organism = Organism::builder("remote")
            .on("front", async |question: Delivery<Question>| Ok(answered(&question.text)))
            .client("alice", |c| c.calls::<Question>());
        let mut kit = Kit::start(organism.journal(server.connect())).unwrap();
        let client = kit.client("alice");
        // The numbers of the answers to each question: an answer that was not marked as read comes again.
        let mut answers = BTreeMap::<String, BTreeSet<u64>>::new();
        let (mut told, mut takeovers) = (0, 0);
        for number in 0..40 {
            let asked = client.tell(question(number.to_string()));
            kit.advance(Duration::from_secs(1));
            told += usize::from(asked.is_err());
            for egress in std::iter::from_fn(|| client.try_receive()) {
                match &egress.fault {
                    Some(fault) => assert!(fault.retryable, "{fault:?}"),
                    None => {
                        answers.entry(egress.payload.as_str().to_owned()).or_default().insert(egress.number);
                    }
                }
                told += 1;
            }
            assert_eq!(kit.organism().breakdown(), None);
            takeovers += usize::from(kit.adopt(Partitions::ALL).is_ok());
        }
        kit.settle();
        fences += kit.events().iter().filter(|event| matches!(event.kind, EventKind::Fenced { .. })).count();
        told += std::iter::from_fn(|| client.try_receive()).count();
        assert!(told >= 40, "seed {seed}: each is told: {told}");
        assert!(answers.values().all(|numbers| numbers.len() == 1), "seed {seed}: {answers:?}");
        all_takeovers += takeovers;
    }
    assert!(all_takeovers > 10, "partitions are hardly stolen: {all_takeovers} times");
    assert!(fences >= all_takeovers, "each is an event: {fences} of {all_takeovers}");
}

#[tokio::test]
async fn partitions_move_between_the_threads_of_an_organism_that_writes_to_a_file() {
    let file = File::new("threads");
    let organism = Organism::builder("threads")
        .shards(2)
        .on("front", async |question: Delivery<Question>| Ok(answered(&question.text)))
        .client("alice", |c| c.calls::<Question>())
        .durable(&file.0, systole::journal::Durability::Process)
        .start()
        .unwrap();
    let client = organism.client("alice").unwrap();
    let moves = async {
        for round in 0..8 {
            let released = organism.release(Partition(round)).await.unwrap();
            assert_eq!(released, Partitions::share(usize::from(round % 2), 2));
            organism.adopt(released, usize::from(round / 2)).await.unwrap();
            // One in each half.
            for text in ["one", "other"] {
                assert_eq!(client.ask(question(text)).await.unwrap().text, text);
            }
        }
    };
    tokio::time::timeout(Duration::from_secs(60), moves).await.expect("partitions move within a minute");
    assert_eq!(organism.breakdown(), None);
    assert!(organism.drain(Duration::from_secs(60)).await.ended);
    drop(organism);
    let left = SqliteJournal::open(&file.0, &JournalOptions::new([1; 32])).unwrap().recover().unwrap();
    assert!(left.threads.is_empty() && !left.crashed, "{left:?}");
}

#[test]
fn a_store_in_a_file_passes_the_suite_of_stores() {
    let file = File::new("suite");
    check_store(|| Journaled::new(&file.0));
}

#[test]
fn an_answer_comes_once_however_often_its_conversation_moves() {
    let journal = Arc::new(Mutex::new(MemoryJournal::new([1; 32])));
    let organism = || {
        Organism::builder("moves")
            .on("front", async |question: Delivery<Question>| Ok(answered(&question.text)))
            .client("alice", |c| c.calls::<Question>())
            .journal(journal.clone())
    };
    let kit = Kit::start(organism()).unwrap();
    let client = kit.client("alice");
    let moves = || kit.adopt(kit.release(Partition(0)).unwrap()).unwrap();
    let asked = |text: &str| {
        client.tell(question(text)).unwrap();
        kit.settle();
    };
    let unread = || std::iter::from_fn(|| client.try_receive()).count();
    // It waits for its client.
    asked("waits");
    moves();
    moves();
    assert_eq!(unread(), 1);
    // The client has it in hand.
    asked("held");
    assert!(client.try_receive().is_some());
    moves();
    assert_eq!(unread(), 0);
    // It is read while no core serves its conversation.
    asked("read");
    let all = kit.release(Partition(0)).unwrap();
    assert_eq!(unread(), 1);
    kit.adopt(all).unwrap();
    kit.settle();
    assert_eq!(unread(), 0);
    moves();
    assert_eq!(unread(), 0);
    drop(kit);
    let again = Kit::start(organism()).unwrap();
    again.settle();
    assert!(again.client("alice").try_receive().is_none(), "it is known that all were read");
}
