//! Costs of appending steps to the journal, compared with the same SQL statements without a journal around them. Run
//! `cargo bench --bench journal`, optionally with a folder to write in (default: the temporary folder) and the number
//! of steps. With the URL of an empty database behind them it compares that with files (`scripts/bench-postgres`).
#![allow(clippy::disallowed_methods)] // A benchmark reads clocks.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rusqlite::{Connection, params};
use systole::core::{Contract, HandlerOutcome, Message};
use systole::journal::{Durability, JournalOptions, SqliteJournal};
use systole::prelude::*;
use systole::runtime::{LocalBoxFuture, RawListener, RunContext};
use systole::schema::PayloadSchema;
use systole::vocab::{MessageId, Name, ThreadId, Time};
use systole_core::journal::{BodyRecord, Journal, MessageRecord, MessageState, Op, Owner, ReplyTo, Step, ThreadRecord};
use uuid::Uuid;

const ROUNDS: usize = 5;
const WAITING: u64 = 1_000_000;
const FIRST: u64 = 1 << 48;

fn main() {
    let mut args = std::env::args().skip(1).filter(|arg| arg != "--bench");
    let folder = args.next().map_or_else(std::env::temp_dir, PathBuf::from).join("systole-bench-journal");
    let steps: u64 = args.next().map_or(100_000, |steps| steps.parse().expect("a number of steps"));
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).expect("a folder that can be written");
    #[cfg(feature = "postgres")]
    if let Some(url) = args.next() {
        databases(&folder, &url, steps);
        return;
    }
    println!("durability  batch      steps/s  bare steps/s   CPU µs  bare CPU µs  CPU ratio  ratio");
    for (durability, batch, steps) in [
        (Durability::Process, 1, steps),
        (Durability::Process, 64, steps),
        (Durability::Power, 1, steps / 50),
        (Durability::Power, 64, steps),
    ] {
        compare(&folder, durability, batch, steps);
    }
    size(&folder, steps);
    waiting(&folder);
    starting(&folder);
    let _ = fs::remove_dir_all(&folder);
}

/// Compares journals in a database with files on the disk: both survive the loss of power.
#[cfg(feature = "postgres")]
fn databases(folder: &Path, url: &str, steps: u64) {
    use systole::journal::{Batch, Postgres, Store, Tail};
    use systole::vocab::Partitions;

    let store = Postgres::new(url, None).expect("the URL of a database");
    println!("store     batch      steps/s   CPU µs of this process");
    for (batch, steps) in [(1, steps / 50), (64, steps), (256, steps)] {
        let tell = |name: &str, rounds: &mut Vec<(Duration, Duration)>| {
            rounds.sort();
            let (wall, cpu) = rounds[ROUNDS / 2];
            let (rate, micros) = (steps as f64 / wall.as_secs_f64(), cpu.as_secs_f64() * 1e6 / steps as f64);
            println!("{name:<8}  {batch:>5}  {rate:>11.0}  {micros:>7.1}");
        };
        let (mut postgres, mut sqlite) = (Vec::new(), Vec::new());
        for _ in 0..ROUNDS {
            let mut journal = store.open([1; 32], None).expect("the database can be written").journal;
            let epoch = journal.recover().expect("it is recovered").epoch;
            let mut tail = Tail::begin(Partitions::default(), epoch);
            let base = u64::from(epoch) << 32;
            postgres.push(timed(|| {
                for first in (0..steps).step_by(batch as usize) {
                    let steps: Vec<_> = (first..(first + batch).min(steps)).map(|n| step(base + n)).collect();
                    journal.append(&Batch::of(tail, steps)).expect("the database can be written");
                    tail.position += 1;
                }
            }));
            journal.close().expect("the database can be written");
            let (mut journal, _) = fresh(folder, Durability::Power);
            sqlite.push(timed(|| append(&mut journal, steps, batch)));
        }
        tell("postgres", &mut postgres);
        tell("sqlite", &mut sqlite);
    }
}

/// Compares the medians of rounds in which both sides take turns on fresh files.
fn compare(folder: &Path, durability: Durability, batch: u64, steps: u64) {
    let (mut own, mut bare) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let (mut journal, _) = fresh(folder, durability);
        own.push(timed(|| append(&mut journal, steps, batch)));
        drop(journal);
        let (journal, file) = fresh(folder, durability);
        drop(journal);
        bare.push(timed(|| bare_statements(&file, durability, steps, batch)));
    }
    let [own, bare] = [own, bare].map(|mut rounds| {
        rounds.sort();
        rounds[ROUNDS / 2]
    });
    let per_second = |(wall, _): (Duration, Duration)| steps as f64 / wall.as_secs_f64();
    let micros = |(_, cpu): (Duration, Duration)| cpu.as_secs_f64() * 1e6 / steps as f64;
    println!(
        "{:<10}  {batch:>5}  {:>11.0}  {:>12.0}  {:>7.1}  {:>11.1}  {:>9.2}  {:>5.2}",
        format!("{durability:?}").to_lowercase(),
        per_second(own),
        per_second(bare),
        micros(own),
        micros(bare),
        micros(own) / micros(bare),
        per_second(bare) / per_second(own),
    );
}

fn timed(work: impl FnOnce()) -> (Duration, Duration) {
    let cpu = || {
        let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
        Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
    };
    let (start, before) = (Instant::now(), cpu());
    work();
    (start.elapsed(), cpu() - before)
}

fn fresh(folder: &Path, durability: Durability) -> (SqliteJournal, PathBuf) {
    let file = folder.join("bench.journal");
    for ending in ["", "-wal", "-shm"] {
        let _ = fs::remove_file(format!("{}{ending}", file.display()));
    }
    let options = JournalOptions::new([1; 32]).durability(durability);
    (SqliteJournal::open(&file, &options).expect("a new journal"), file)
}

fn append(journal: &mut SqliteJournal, steps: u64, batch: u64) {
    for first in (0..steps).step_by(batch as usize) {
        let steps: Vec<_> = (first..(first + batch).min(steps)).map(step).collect();
        journal.write(&steps).expect("room for steps");
    }
    journal.feed().expect("room for steps");
}

/// A typical step: one of 64 conversations consumes its message and makes a call.
fn step(n: u64) -> Step {
    let ops = vec![
        Op::Done { message: FIRST + n.saturating_sub(64) },
        Op::Open(thread(FIRST + n)),
        Op::Put(message(FIRST + n)),
    ];
    Step { ops, at: Time::from_nanos(n * 1000) }
}

fn thread(number: u64) -> ThreadRecord {
    ThreadRecord {
        number,
        id: ThreadId::from_uuid(uuid(number)),
        parent: Some(number - 64),
        root: FIRST + number % 64,
        owner: Owner::Listener(Name::parse("calculator").expect("a name")),
        ordinal: 1,
        depth: 3,
        opened_by: MessageId::from_uuid(uuid(number)),
        reply_to: ReplyTo::Single,
        deadline: Time::from_nanos(1 << 60),
        own_deadline: false,
        spawned: false,
        left: false,
        label: None,
        traceparent: None,
    }
}

fn message(number: u64) -> MessageRecord {
    MessageRecord {
        number,
        place: number,
        thread: number,
        id: MessageId::from_uuid(uuid(number)),
        from: Name::parse("researcher").expect("a name"),
        in_reply_to: Some(MessageId::from_uuid(uuid(number - 1))),
        answers: ReplyTo::None,
        state: MessageState::Queued,
        body: BodyRecord::Payload(payload().into()),
        attempts: 0,
    }
}

fn payload() -> String {
    format!("<add xmlns=\"urn:example:calculator:v1\"><a>1</a><b>2</b><why>{}</why></add>", "x".repeat(120))
}

/// An id as scattered as a derived one.
fn uuid(number: u64) -> Uuid {
    Uuid::from_u128(u128::from(number).wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835))
}

/// Writes the same rows to the same tables, with a constant in place of each checksum.
fn bare_statements(file: &Path, durability: Durability, steps: u64, batch: u64) {
    let db = Connection::open(file).expect("a journal");
    for (name, value) in [("cache_size", -32 * 1024), ("wal_autocheckpoint", 4096), ("journal_size_limit", 64 << 20)] {
        db.pragma_update(None, name, value).expect("a pragma");
    }
    let synchronous = if durability == Durability::Power { "FULL" } else { "NORMAL" };
    db.pragma_update(None, "synchronous", synchronous).expect("a pragma");
    let prepare = |sql| db.prepare(sql).expect("a statement");
    let mut begin = prepare("BEGIN IMMEDIATE");
    let mut commit = prepare("COMMIT");
    let mut done = prepare("UPDATE message SET ended = ?2, ending = 'done' WHERE number = ?1 AND ended IS NULL");
    let mut open = prepare(
        "INSERT INTO thread (number, id, parent, root, listener, client, ordinal, depth, opened_by, origin, deadline, \
         own_deadline, spawned, gone, label, traceparent, sum, at) \
         VALUES (?1, ?2, ?3, ?4, 'calculator', NULL, 1, 3, ?2, 'single', ?5, 0, 0, 0, NULL, NULL, ?6, ?7)",
    );
    let mut put = prepare(
        "INSERT INTO message (number, place, thread, id, sender, in_reply_to, answers, state, due, owes, kind, body, \
         attempts, sum, at) VALUES (?1, ?1, ?1, ?2, 'researcher', ?3, NULL, 'queued', NULL, NULL, 'payload', ?4, 0, ?5, ?6)",
    );
    let sum = 0x7eed_c0de_dead_beef_i64;
    let payload = payload();
    for first in (0..steps).step_by(batch as usize) {
        begin.execute([]).expect("a transaction");
        for n in first..(first + batch).min(steps) {
            let (number, at) = ((FIRST + n) as i64, (n * 1000) as i64);
            let (id, before) = (uuid(FIRST + n), uuid(FIRST + n - 1));
            done.execute((number.saturating_sub(64), at)).expect("an update");
            let root = (FIRST + n % 64) as i64;
            let row = params![number, id.as_bytes().as_slice(), number - 64, root, 1_i64 << 60, sum, at];
            open.execute(row).expect("a row");
            let (id, before) = (id.as_bytes().as_slice(), before.as_bytes().as_slice());
            put.execute(params![number, id, before, payload, sum, at]).expect("a row");
        }
        commit.execute([]).expect("a transaction");
    }
}

fn size(folder: &Path, steps: u64) {
    let (mut journal, file) = fresh(folder, Durability::Process);
    append(&mut journal, steps, 64);
    drop(journal);
    let bytes = fs::metadata(&file).expect("a journal").len();
    println!("\n{:.0} bytes a step, {} bytes of payload in it", bytes as f64 / steps as f64, payload().len());
}

fn waiting(folder: &Path) {
    let (mut journal, file) = fresh(folder, Durability::Process);
    let put = |number| Step { ops: vec![Op::Put(message(FIRST + number))], at: Time::from_nanos(number) };
    for first in (0..WAITING).step_by(1000) {
        journal.write(&(first..first + 1000).map(put).collect::<Vec<_>>()).expect("room for steps");
    }
    drop(journal);
    let mut opened = None;
    let open = timed(|| opened = Some(SqliteJournal::open(&file, &JournalOptions::new([0; 32])).expect("a journal")));
    let mut journal = opened.expect("it was opened");
    let mut found = 0;
    let recover = timed(|| found = journal.recover().expect("a journal in order").messages.len());
    let bytes = fs::metadata(&file).expect("a journal").len();
    println!(
        "{found} waiting messages, {} MiB: opened and checked in {:.2} s, read in {:.2} s; CPU {:.2} and {:.2} s",
        bytes >> 20,
        open.0.as_secs_f64(),
        recover.0.as_secs_f64(),
        open.1.as_secs_f64(),
        recover.1.as_secs_f64()
    );
}

/// A listener that takes a message and never ends.
struct Waits;

impl RawListener for Waits {
    fn run(self: std::rc::Rc<Self>, _: Message, _: RunContext) -> LocalBoxFuture<HandlerOutcome> {
        Box::pin(std::future::pending())
    }
}

/// Measures the start of an organism, up to the first answer about its contents: 1,000 conversations of 1,000 messages.
fn starting(folder: &Path) {
    const EACH: u64 = 1000;
    let (mut journal, file) = fresh(folder, Durability::Process);
    for conversation in 0..WAITING / EACH {
        let root = FIRST + conversation * (EACH + 2);
        let owner = Owner::Client(Name::parse("customer").expect("a name"));
        let opened = ThreadRecord { parent: None, root, owner, depth: 0, reply_to: ReplyTo::None, ..thread(root) };
        let child = ThreadRecord { parent: Some(root), root, depth: 1, ..thread(root + 1) };
        let mut ops = vec![Op::Open(opened), Op::Open(child)];
        let messages = (root + 2..).take(EACH as usize);
        ops.extend(messages.map(|number| Op::Put(MessageRecord { thread: root + 1, ..message(number) })));
        journal.write(&[Step { ops, at: Time::from_nanos(root) }]).expect("room for a step");
    }
    drop(journal);
    let schema = r#"<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema" targetNamespace="urn:example:calculator:v1"
        elementFormDefault="qualified"><xs:element name="add"><xs:complexType><xs:sequence><xs:element name="a" type="xs:int"/>
        <xs:element name="b" type="xs:int"/><xs:element name="why" type="xs:string"/></xs:sequence></xs:complexType></xs:element></xs:schema>"#;
    let schemas = PayloadSchema::from_xsd("add.xsd", schema).expect("a schema");
    let mut contract = Contract::new(Name::parse("calculator").expect("a name"));
    contract.accepts = vec!["{urn:example:calculator:v1}add".parse().expect("a name")];
    let builder = Organism::builder("bench").raw_listener(contract, || Waits).schemas(schemas);
    let builder = builder.client("customer", |client| client).durable(&file, Durability::Process);
    let mut organism = None;
    let mut waiting = 0;
    let start = timed(|| {
        let started = builder.start().expect("an organism");
        waiting = block_on(started.counts()).recovered;
        organism = Some(started);
    });
    println!(
        "an organism with {waiting} of them: started in {:.2} s; CPU {:.2} s",
        start.0.as_secs_f64(),
        start.1.as_secs_f64()
    );
}
