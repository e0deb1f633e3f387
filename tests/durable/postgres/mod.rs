//! Journals in PostgreSQL: the suites of all stores, and what goes wrong between a process and a server.

mod proxy;
mod server;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use systole::journal::{
    AppendError, Batch, Journal, JournalErrorKind, Journaled, LeaseStore, MemoryJournal, NodeCard, OpenStore, Postgres,
    Recovered, Step, Store, Tail,
};
use systole::runtime::Tenure;
use systole::runtime::clock::steady;
use systole::testing::{check_journal, check_store};
use systole::vocab::{Partitions, Time};
use systole_core::lease::{Answer, Ask};

use crate::journal::story::{Dice, Folder, KEY, Story, content, open};
use crate::kill;
use proxy::{Proxy, Way};
use server::Server;

/// A journal with the end of its log, as its owner knows it.
struct Writer {
    journal: Box<dyn Journal>,
    tail: Tail,
}

impl Writer {
    fn start(store: &Postgres) -> (Self, Recovered) {
        let OpenStore { mut journal, .. } = store.open(KEY, None).unwrap();
        let recovered = journal.recover().unwrap();
        (Self { journal, tail: Tail::begin(Partitions::default(), recovered.epoch) }, recovered)
    }

    fn write(&mut self, steps: &[Step]) -> Result<(), AppendError> {
        self.journal.append(&Batch::of(self.tail, steps.to_vec()))?;
        self.tail.position += 1;
        Ok(())
    }
}

/// The open rows that these steps leave.
fn expected(steps: &[Step]) -> Recovered {
    let mut memory = MemoryJournal::new(KEY);
    memory.write(steps).unwrap();
    content(memory.recover().unwrap())
}

/// Writes steps in batches of random sizes, fed now and then.
fn write_all(writer: &mut Writer, steps: &[Step], dice: &mut Dice) {
    let mut rest = steps;
    while !rest.is_empty() {
        let (batch, behind) = rest.split_at(rest.len().min(1 + dice.below(12) as usize));
        writer.write(batch).unwrap();
        if dice.below(4) == 0 {
            writer.journal.feed().unwrap();
        }
        rest = behind;
    }
}

#[test]
fn the_store_in_postgres_passes_the_suites_of_stores() {
    let server = Server::start();
    let store = server.journal();
    check_journal(|| store.open([1; 32], None).unwrap().journal);
    server.sql("postgres", "CREATE DATABASE other");
    check_store(|| Postgres::new(&server.url("other"), None).unwrap());
}

#[test]
fn the_same_steps_leave_the_same_rows_as_in_memory_whether_it_is_closed_or_crashes() {
    let server = Server::start();
    let mut dice = Dice::new(5);
    for (seed, closed) in [(1, true), (2, false), (3, true)] {
        server.sql("work", "DROP SCHEMA IF EXISTS systole CASCADE");
        let (store, steps) = (server.journal(), Story::whole_steps(seed, 400));
        let (mut writer, _) = Writer::start(&store);
        write_all(&mut writer, &steps, &mut dice);
        if closed {
            writer.journal.close().unwrap();
        }
        drop(writer);
        let report = store.verify().unwrap();
        assert!(report.faults.is_empty() && report.rows > 0, "{report:?}");
        let (_, recovered) = Writer::start(&store);
        assert_eq!(recovered.crashed, !closed);
        assert_eq!(content(recovered), expected(&steps), "seed {seed}");
    }
}

#[test]
fn a_second_process_takes_the_journal_over_and_the_first_writes_nothing_more() {
    let server = Server::start();
    let steps = Story::steps(3, 60);
    let ([mine, others], mut dice) = ([&steps[..30], &steps[30..]], Dice::new(1));
    let (mut first, _) = Writer::start(&server.journal());
    write_all(&mut first, mine, &mut dice);
    // Another store of the same process is as good as one of another process.
    let (mut second, recovered) = Writer::start(&server.journal());
    assert!(recovered.crashed, "the first one did not end");
    assert_eq!(content(recovered), expected(mine), "with all that was confirmed");
    match first.write(others) {
        Err(AppendError::Failed(error)) => assert_eq!(error.kind(), JournalErrorKind::Fenced, "{error}"),
        other => panic!("it is fenced: {other:?}"),
    }
    assert!(first.journal.close().is_err(), "it can't be closed in order either");
    write_all(&mut second, others, &mut dice);
    drop((first, second));
    let (_, recovered) = Writer::start(&server.journal());
    assert_eq!(content(recovered), expected(&steps));
}

#[test]
fn an_idle_organism_learns_that_it_was_replaced_or_that_its_last_entry_is_lost() {
    let server = Server::start();
    let tidied = |writer: &mut Writer| writer.journal.tidy(Time::default()).unwrap_err().kind();
    let (mut first, _) = Writer::start(&server.journal());
    let (mut second, _) = Writer::start(&server.journal());
    assert_eq!(tidied(&mut first), JournalErrorKind::Fenced);
    second.write(&Story::steps(1, 3)).unwrap();
    // As after the promotion of a standby that lacks it.
    server.sql("work", "DELETE FROM systole.log WHERE seq = (SELECT max(seq) FROM systole.log)");
    assert_eq!(tidied(&mut second), JournalErrorKind::Damaged);
    let lost = second.write(&Story::steps(1, 1)).unwrap_err();
    assert!(matches!(&lost, AppendError::Failed(error) if error.to_string().contains("has lost entry")), "{lost:?}");
}

#[test]
fn an_append_whose_answer_is_lost_is_there_once_and_one_that_did_not_arrive_is_sent_again() {
    let server = Server::start();
    let proxy = Proxy::start(&server);
    let store = Postgres::new(&server.url_by("work", proxy.folder()), None).unwrap();
    let (steps, mut dice) = (Story::steps(8, 200), Dice::new(4));
    let (mut writer, _) = Writer::start(&store);
    for (number, step) in steps.iter().enumerate() {
        match dice.below(3) {
            0 => proxy.cut_next(Way::Answer),
            1 => proxy.cut_next(Way::Request),
            _ => {}
        }
        writer.write(std::slice::from_ref(step)).unwrap();
        let entries = server.sql("work", "SELECT max(seq) FROM systole.log");
        // Behind the entries of the creation and the start.
        assert_eq!(entries, (number + 3).to_string(), "each append is one entry");
    }
    let [answers, requests] = proxy.cuts();
    assert!(answers > 40 && requests > 40, "{answers} answers and {requests} requests were lost");
    drop(writer);
    let (_, recovered) = Writer::start(&server.journal());
    assert_eq!(content(recovered), expected(&steps));
}

#[test]
fn what_was_confirmed_is_there_though_connections_end_and_the_server_crashes_during_appends_and_recoveries() {
    let mut server = Server::start();
    let (store, steps, mut dice) = (server.journal(), Story::steps(21, 600), Dice::new(6));
    let (mut writer, _) = Writer::start(&store);
    // What the process has done so far: the server crashes again once it has done something since.
    let (done, ends) = (AtomicUsize::new(0), AtomicBool::new(false));
    std::thread::scope(|scope| {
        let work = scope.spawn(|| {
            let mut rest = &steps[..];
            let mut opened = 1;
            while !rest.is_empty() {
                let (batch, behind) = rest.split_at(rest.len().min(1 + dice.below(4) as usize));
                writer.write(batch).unwrap();
                done.fetch_add(1, Ordering::Relaxed);
                if dice.below(3) == 0 {
                    writer.journal.feed().unwrap();
                }
                rest = behind;
                // The process crashes, too, so that the journal is recovered while the server is.
                if dice.below(20) == 0 {
                    let (next, recovered) = Writer::start(&store);
                    assert_eq!(content(recovered), expected(&steps[..steps.len() - rest.len()]));
                    writer = next;
                    opened += 1;
                    done.fetch_add(1, Ordering::Relaxed);
                }
            }
            ends.store(true, Ordering::Relaxed);
            opened
        });
        let (mut crashes, mut at) = (0, 0);
        while !ends.load(Ordering::Relaxed) && !work.is_finished() {
            let now = done.load(Ordering::Relaxed);
            if now < at + 5 {
                std::thread::yield_now();
                continue;
            }
            at = now;
            if crashes % 2 == 0 {
                server.disconnect_all()
            } else {
                server.crash()
            }
            crashes += 1;
        }
        let opened = work.join().unwrap();
        assert!(crashes > 10 && opened > 3, "{crashes} ends of connections and of the server, {opened} of the process");
    });
    let (_, recovered) = Writer::start(&store);
    assert_eq!(content(recovered), expected(&steps));
}

#[test]
fn an_organism_that_is_killed_answers_what_it_confirmed() {
    let server = Server::start();
    let kills = kill::number("SYSTOLE_KILLS").unwrap_or(50);
    kill::play_on(server.url("work").as_ref(), "postgres", kill::number("SYSTOLE_SEED").unwrap_or(1), kills);
}

#[test]
fn a_snapshot_that_is_held_open_stops_nothing() {
    let server = Server::start();
    let (store, steps, mut dice) = (server.journal(), Story::whole_steps(31, 500), Dice::new(2));
    let (mut writer, _) = Writer::start(&store);
    let held = server.snapshot();
    write_all(&mut writer, &steps, &mut dice);
    writer.journal.close().unwrap();
    assert_eq!(server.sql("work", "SELECT count(*) FROM systole.log"), "1", "the tables have all entries but the last");
    drop((held, writer));
    let (_, recovered) = Writer::start(&store);
    assert_eq!(content(recovered), expected(&steps));
}

#[test]
fn a_journal_is_copied_from_a_file_and_back() {
    let (server, folder) = (Server::start(), Folder::new());
    let (steps, file) = (Story::whole_steps(17, 300), Journaled::new(folder.journal()));
    let mut journal = open(&file.file);
    journal.recover().unwrap();
    journal.write(&steps).unwrap();
    journal.close().unwrap();
    drop(journal);
    let store = server.journal();
    store.import(&file).unwrap();
    let again = store.import(&file).unwrap_err();
    assert!(again.to_string().contains("has a journal already"), "{again}");
    let rows = |report: systole::journal::VerifyReport| {
        assert!(report.faults.is_empty(), "{report:?}");
        report.rows
    };
    assert_eq!(rows(store.verify().unwrap()), rows(file.verify().unwrap()), "each row is there, and as it was");
    let back = Journaled::new(folder.path().join("back.journal"));
    store.export(&back.file).unwrap();
    assert_eq!(rows(back.verify().unwrap()), rows(file.verify().unwrap()));
    store.export(&back.file).unwrap_err();
    assert_eq!(content(open(&back.file).recover().unwrap()), expected(&steps));
    let (_writer, recovered) = Writer::start(&store);
    assert_eq!(content(recovered), expected(&steps));
    let running = store.export(&folder.path().join("running.journal")).unwrap_err();
    assert_eq!(running.kind(), JournalErrorKind::InUse, "{running}");
}

#[test]
fn a_layout_of_a_later_program_is_refused_and_left_alone() {
    let server = Server::start();
    let store = server.journal();
    drop(Writer::start(&store));
    server.sql("work", "UPDATE systole.layout SET version = 99");
    for refused in [store.open(KEY, None).map(drop), store.read().map(drop), store.edit().map(drop)] {
        let refused = refused.unwrap_err();
        assert_eq!(refused.kind(), JournalErrorKind::Version, "{refused}");
    }
    assert_eq!(server.sql("work", "SELECT version FROM systole.layout"), "99");
}

#[test]
fn damage_of_a_row_or_of_an_entry_is_found() {
    let server = Server::start();
    let (store, steps) = (server.journal(), Story::steps(2, 80));
    let (mut writer, _) = Writer::start(&store);
    writer.write(&steps[..40]).unwrap();
    // Now the tables have them.
    writer.journal.close().unwrap();
    drop(writer);
    let (mut writer, _) = Writer::start(&store);
    writer.write(&steps[40..]).unwrap();
    drop(writer);
    server.sql("work", "UPDATE systole.log SET body = body || 'x' WHERE seq = (SELECT max(seq) FROM systole.log)");
    let report = store.verify().unwrap();
    assert!(report.faults.iter().any(|fault| fault.contains("of the log is not as it was written")), "{report:?}");
    let refused = store.open(KEY, None).map(drop).unwrap_err();
    assert_eq!(refused.kind(), JournalErrorKind::Damaged, "{refused}");
    server.sql("work", "UPDATE systole.thread SET depth = depth + 1");
    let report = store.verify().unwrap();
    assert!(report.faults.iter().any(|fault| fault.starts_with("thread ")), "{report:?}");
}

/// A node that asks for the lease by itself.
struct Asking {
    leases: Box<dyn LeaseStore>,
    card: NodeCard,
    runtime: tokio::runtime::Runtime,
}

impl Asking {
    fn new(store: &Postgres, name: &str) -> Self {
        let process = systole::runtime::entropy::Entropy::Real.random();
        let (name, url) = (name.into(), "http://127.0.0.1:1".into());
        let card = NodeCard { name, url, process, lease: Duration::from_secs(3600) };
        let leases = store.leases("nodes", card.clone()).unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        Self { leases, card, runtime }
    }

    fn ask(&mut self, ask: Ask) -> Answer {
        self.runtime.block_on(self.leases.ask(ask)).unwrap()
    }

    /// Takes the lease, for an organism that works for an hour.
    fn take(&mut self) -> Tenure {
        match self.ask(Ask::Take) {
            Answer::Taken { term, .. } => Tenure::new(self.card.process, term, steady() + Duration::from_secs(3600)),
            other => panic!("it is free: {other:?}"),
        }
    }
}

#[test]
fn an_epoch_begins_only_with_the_lease_and_a_node_that_lost_it_before_its_start_takes_nothing_back() {
    let server = Server::start();
    let store = server.journal();
    drop(store.open(KEY, None).unwrap());
    let (mut a, mut b) = (Asking::new(&store, "a"), Asking::new(&store, "b"));
    assert_eq!(a.ask(Ask::Look), Answer::Found(None));
    let first = a.take();
    assert!(matches!(b.ask(Ask::Take), Answer::Found(Some(holder)) if &*holder.node == "a" && holder.is_there()));
    // Neither a process without a lease, nor a command that edits.
    for refused in [store.open(KEY, None).map(drop), store.edit().map(drop)] {
        assert_eq!(refused.unwrap_err().kind(), JournalErrorKind::InUse);
    }
    // The node is stopped behind its lease, and another one starts.
    assert_eq!(a.ask(Ask::Release { term: first.term() }), Answer::Released);
    let second = b.take();
    assert!(second.term() > first.term());
    let (mut writer, _) = Writer::start(&store.clone().within(second.clone()));
    let late = store.clone().within(first.clone()).open(KEY, None).map(drop).unwrap_err();
    assert_eq!(late.kind(), JournalErrorKind::Fenced, "{late}");
    assert!(matches!(a.ask(Ask::Renew { term: first.term() }), Answer::Found(Some(holder)) if &*holder.node == "b"));
    writer.write(&Story::steps(1, 3)).unwrap();
    assert_eq!(b.ask(Ask::Renew { term: second.term() }), Answer::Renewed);
    // Behind its tenure a node waits for no append, whatever the server does.
    second.end();
    match writer.write(&Story::steps(2, 3)) {
        Err(AppendError::Failed(error)) => assert_eq!(error.kind(), JournalErrorKind::Fenced, "{error}"),
        other => panic!("its lease has ended: {other:?}"),
    }
    let state = store.cluster().unwrap();
    let names: Vec<_> = state.nodes.iter().map(|node| &*node.name).collect();
    assert_eq!((names, &*state.lease.unwrap().holder.node), (vec!["a", "b"], "b"));
}

#[test]
fn a_start_says_what_is_wrong_with_a_server() {
    let server = Server::start();
    let unknown = Postgres::new(&server.url("nowhere"), None).unwrap().check().unwrap_err();
    assert!(unknown.to_string().contains("create it"), "{unknown}");
    server.sql("work", "CREATE USER guest");
    let url = server.url("work").replace("user=systole", "user=guest");
    let refused = Postgres::new(&url, None).unwrap().check().unwrap_err();
    assert!(refused.to_string().contains("GRANT CREATE"), "{refused}");
    let empty = server.journal().read().map(drop).unwrap_err();
    assert_eq!(empty.kind(), JournalErrorKind::Missing, "{empty}");
    let store: Arc<dyn Store> = Arc::new(server.journal());
    assert_eq!(store.check(), Ok(()));
}
