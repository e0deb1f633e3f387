//! Takeover: the journal imports the files of an older organism, as written by their last version.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use rusqlite::Connection;
use systole::runtime::journal::{JournalReader, SqliteJournal, Takeover};
use systole::vocab::{MessageId, ThreadId, Time};
use systole_core::journal::{
    BodyRecord, Journal, MailState, MessageRecord, MessageState, Op, OpenMail, Origin, Owner, Recovered, Step,
    ThreadRecord,
};
use uuid::Uuid;

use super::story::{Folder, content, open};

const DAY: u64 = 86_400_000_000_000;
const BASE: u64 = 22_000 * DAY;

fn id(n: u128) -> MessageId {
    MessageId::from_uuid(Uuid::from_u128(n))
}

fn thread(n: u128) -> ThreadId {
    ThreadId::from_uuid(Uuid::from_u128(n))
}

fn beside(folder: &Folder, ending: &str) -> PathBuf {
    PathBuf::from(format!("{}{ending}", folder.journal().display()))
}

/// Makes a journal with conversations 1, 2 and 4, in the first of which messages 11 and 13 wait; and the older files.
fn older() -> Folder {
    let folder = Folder::new();
    let mut journal = open(&folder.journal());
    journal.recover().unwrap();
    let mut ops: Vec<Op> = [1, 2, 4].into_iter().map(|n| Op::Open(root(n))).collect();
    ops.extend([11, 13].map(|n| Op::Put(message(n))));
    ops.push(Op::Close { thread: 2 });
    journal.append(&[Step { ops, at: Time::from_nanos(BASE) }]).unwrap();
    journal.close().unwrap();
    for ending in [".gateway", ".outbox"] {
        let name = format!("tests/fixtures/takeover/organism.journal{ending}");
        fs::copy(Path::new(env!("CARGO_MANIFEST_DIR")).join(name), beside(&folder, ending)).unwrap();
    }
    folder
}

fn root(n: u64) -> ThreadRecord {
    ThreadRecord {
        number: n,
        id: thread(300 + u128::from(n)),
        parent: None,
        root: n,
        owner: Owner::Client("ada".parse().unwrap()),
        ordinal: 1,
        depth: 0,
        opened_by: id(200 + u128::from(n)),
        origin: Origin::None,
        deadline: Time::MAX,
        own_deadline: false,
        spawned: false,
        left: false,
        label: None,
        traceparent: None,
    }
}

fn message(n: u64) -> MessageRecord {
    MessageRecord {
        number: n,
        place: n,
        thread: 1,
        id: id(n.into()),
        from: "ada".parse().unwrap(),
        in_reply_to: None,
        answers: Origin::None,
        state: MessageState::Queued,
        body: BodyRecord::Payload("<ask xmlns=\"urn:example\"/>".into()),
        attempts: 0,
    }
}

fn take_over(folder: &Folder) -> (SqliteJournal, Takeover) {
    let mut journal = open(&folder.journal());
    let takeover = journal.take_over().unwrap();
    (journal, takeover)
}

fn by_id(recovered: &Recovered) -> BTreeMap<u128, &OpenMail> {
    recovered.mail.iter().map(|mail| (mail.id.as_uuid().as_u128(), mail)).collect()
}

fn notes() -> BTreeMap<String, String> {
    let notes = include_str!("../../fixtures/takeover/notes.txt");
    notes.lines().filter_map(|line| line.rsplit_once(' ')).map(|(what, is)| (what.to_owned(), is.to_owned())).collect()
}

#[test]
fn messages_come_with_their_places_and_what_was_known_of_them() {
    let folder = older();
    let (mut journal, takeover) = take_over(&folder);
    let recovered = journal.recover().unwrap();
    let mail = by_id(&recovered);
    assert_eq!(mail.keys().copied().collect::<Vec<_>>(), [1, 2, 5, 7, 8, 9, 10, 11, 12, 13]);
    let of = |n| &mail[&n].status;
    let receipt = |seq: u64| *notes()[&format!("receipt {seq}")].parse::<Uuid>().unwrap().as_bytes();
    let until = Time::from_nanos(BASE + 20_000 * DAY);
    assert_eq!((of(1).state, of(1).deliveries, of(1).due), (MailState::Waiting, 1, until));
    assert_eq!(of(1).receipt, Some(receipt(mail[&1].seq)), "a lease goes on");
    assert_eq!((of(2).due, of(2).receipt), (Time::MAX, Some(receipt(mail[&2].seq))), "so does a hold");
    assert_eq!((of(5).state, of(5).error.as_deref()), (MailState::Dead, Some("it broke")));
    assert_eq!(of(5).answer.as_deref(), Some(&b"it broke"[..]));
    assert_eq!((of(7).state, of(7).receipt), (MailState::Redriven, None));
    assert_eq!((of(8).deliveries, of(8).spent, of(8).error.as_deref()), (3, 1_500_000, Some("connection refused")));
    assert_eq!((of(9).due, of(9).receipt), (Time::MAX, None), "it was pushed, and taken");
    assert_eq!((of(10).due, of(10).receipt), (Time::default(), None), "its session is over");
    assert_eq!((of(11).state, of(12).state), (MailState::Waiting, MailState::Waiting));
    assert_eq!((of(13).state, of(13).answer.as_deref()), (MailState::Waiting, None), "the pump never had its end");
    assert!(recovered.last_mail >= mail.values().map(|mail| mail.seq).max().unwrap());
    let far = &mail[&8];
    assert_eq!((far.mailbox.as_str(), far.from.as_str()), ("far", "ada"));
    let db = Connection::open(folder.journal()).unwrap();
    let state = |n: u128| -> (String, i64) {
        let sql = "SELECT state, ended FROM mail JOIN mail_status USING (seq) WHERE id = ?1";
        db.query_row(sql, [Uuid::from_u128(n).as_bytes()], |row| Ok((row.get(0)?, row.get(1)?))).unwrap()
    };
    let ended = (BASE + DAY).cast_signed();
    for (n, expected) in [(3, "replied"), (4, "acked"), (6, "gone"), (14, "acked")] {
        let (state, at) = state(n);
        assert_eq!(state, expected, "message {n}");
        assert!(n == 14 || at == ended, "message {n} ended at {at}");
    }
    let pruned: i64 =
        db.query_row("SELECT pruned FROM mail_gone WHERE mailbox = 'remote'", [], |row| row.get(0)).unwrap();
    assert!(pruned > 0 && pruned.cast_unsigned() < mail[&1].seq, "{pruned}");
    takeover.finish().unwrap();
}

#[test]
fn agents_principals_and_submissions_come_too() {
    let folder = older();
    let (mut journal, takeover) = take_over(&folder);
    let agents = journal.recover().unwrap().agents;
    let names: Vec<_> = agents.iter().map(|agent| agent.name.as_str()).collect();
    assert_eq!(names, ["far", "remote", "resting"]);
    let far = agents[0].registered.as_ref().unwrap();
    assert_eq!((&*far.mode, far.url.as_deref()), ("push", Some("https://reported.example/")));
    assert_eq!(far.declared.as_deref(), Some("https://declared.example/"));
    assert_eq!(agents[1].paused, Some(Time::from_nanos(BASE + 2)));
    assert_eq!((agents[2].paused, &agents[2].registered), (Some(Time::from_nanos(BASE + 3)), &None));
    let accepted: Vec<_> = takeover.accepted.iter().map(|(record, envelope)| (record.id, &envelope[..])).collect();
    assert_eq!(accepted, [(id(203), &b"<message>3</message>"[..])], "the journal knows the others");
    let (record, _) = &takeover.accepted[0];
    assert_eq!((record.root, record.key.clone()), (thread(303), Some(("key 3".into(), [3; 32]))));
    let db = Connection::open(folder.journal()).unwrap();
    let sent = "SELECT hex(id), key, at, ended IS NULL FROM submission ORDER BY at";
    let sent: Vec<(String, Option<String>, i64, bool)> = db
        .prepare(sent)
        .unwrap()
        .query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?)))
        .unwrap()
        .collect::<Result<_, _>>()
        .unwrap();
    let expected = |n: u64, key: Option<&str>, open| {
        (format!("{:032X}", 200 + n), key.map(str::to_owned), (BASE + 10 * n).cast_signed(), open)
    };
    assert_eq!(
        sent,
        [expected(1, Some("key 1"), true), expected(2, None, false), expected(4, Some("key 4"), true)],
        "those of open conversations are not over"
    );
    let answers = "SELECT number, payload, fault IS NOT NULL, ended IS NOT NULL FROM egress ORDER BY number";
    let answers: Vec<(i64, String, bool, bool)> = db
        .prepare(answers)
        .unwrap()
        .query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?)))
        .unwrap()
        .collect::<Result<_, _>>()
        .unwrap();
    let answer = "<answer xmlns=\"urn:example\">42</answer>".to_owned();
    assert_eq!(answers, [(77, answer.clone(), false, true), (78, answer, true, true)]);
    drop(journal);
    assert_eq!(JournalReader::open(&folder.journal()).unwrap().verify().unwrap().faults, Vec::<String>::new());
}

#[test]
fn whatever_start_is_cut_short_nothing_is_doubled() {
    let folder = older();
    let (mut journal, first) = take_over(&folder);
    let once = content(journal.recover().unwrap());
    // A principal is dismissed, and a message ends, before the process is killed.
    let db = Connection::open(folder.journal()).unwrap();
    assert_eq!(db.execute("DELETE FROM principal WHERE name = 'chief'", []).unwrap(), 1);
    drop((journal, first));
    let (mut journal, second) = take_over(&folder);
    assert_eq!(content(journal.recover().unwrap()), once);
    assert_eq!(second.accepted.len(), 1, "it is given back until the journal has it");
    let names: i64 = db.query_row("SELECT count(*) FROM principal", [], |row| row.get(0)).unwrap();
    assert_eq!(names, 2, "who was dismissed stays so");
    // A crash between the two renames.
    second.finish().unwrap();
    drop(journal);
    fs::rename(beside(&folder, ".outbox.taken-over"), beside(&folder, ".outbox")).unwrap();
    let (mut journal, third) = take_over(&folder);
    assert!(third.accepted.is_empty());
    third.finish().unwrap();
    assert_eq!(content(journal.recover().unwrap()), once);
    for ending in [".gateway", ".outbox"] {
        assert!(!beside(&folder, ending).exists(), "{ending}");
        assert!(beside(&folder, &format!("{ending}.taken-over")).exists(), "{ending}");
    }
}

#[test]
fn earlier_versions_of_the_file_have_less_in_them() {
    let folder = older();
    let db = Connection::open(beside(&folder, ".gateway")).unwrap();
    db.execute_batch(
        "DROP TABLE notice; DROP TABLE pause; ALTER TABLE listener DROP COLUMN url; \
         ALTER TABLE listener DROP COLUMN declared; PRAGMA user_version = 1",
    )
    .unwrap();
    drop(db);
    let (mut journal, takeover) = take_over(&folder);
    let recovered = journal.recover().unwrap();
    assert_eq!((recovered.mail.len(), recovered.agents.len(), takeover.accepted.len()), (10, 2, 1));
}

#[test]
fn files_that_are_none_of_ours_stay_as_they_are() {
    let folder = older();
    fs::write(beside(&folder, ".gateway"), "what I wanted to write down ".repeat(1000)).unwrap();
    let before = fs::read(beside(&folder, ".gateway")).unwrap();
    let refusal = open(&folder.journal()).take_over().unwrap_err().to_string();
    assert!(refusal.contains("organism.journal.gateway"), "{refusal}");
    assert_eq!(fs::read(beside(&folder, ".gateway")).unwrap(), before);
    // An outbox without a gateway belongs to another program.
    fs::remove_file(beside(&folder, ".gateway")).unwrap();
    let (_journal, takeover) = take_over(&folder);
    takeover.finish().unwrap();
    assert!(beside(&folder, ".outbox").exists());
}

/// The path of an older file beside another name of the journal.
fn beside_link(folder: &Folder, ending: &str) -> PathBuf {
    folder.path().join(format!("link{ending}"))
}

#[test]
fn files_are_found_beside_the_link_and_beside_the_journal_that_it_leads_to() {
    for moved in [false, true] {
        let folder = older();
        let link = folder.path().join("link");
        symlink(folder.journal(), &link).unwrap();
        if moved {
            for ending in [".gateway", ".outbox"] {
                fs::rename(beside(&folder, ending), beside_link(&folder, ending)).unwrap();
            }
        }
        let mut journal = open(&link);
        let takeover = journal.take_over().unwrap();
        assert_eq!(by_id(&journal.recover().unwrap()).len(), 10, "moved: {moved}");
        assert!(!takeover.accepted.is_empty());
        takeover.finish().unwrap();
        let left = if moved { beside_link(&folder, ".gateway") } else { beside(&folder, ".gateway") };
        assert!(!left.exists() && PathBuf::from(format!("{}.taken-over", left.display())).exists());
    }
}

#[test]
fn of_two_files_none_is_guessed_to_be_the_one() {
    let folder = older();
    let link = folder.path().join("link");
    symlink(folder.journal(), &link).unwrap();
    fs::copy(beside(&folder, ".gateway"), beside_link(&folder, ".gateway")).unwrap();
    let mut journal = open(&link);
    let error = journal.take_over().unwrap_err().to_string();
    for name in [beside(&folder, ".gateway"), beside_link(&folder, ".gateway")] {
        assert!(error.contains(name.to_str().unwrap()) && name.exists(), "{error}");
    }
    assert!(journal.recover().unwrap().mail.is_empty());
    // Two names of the same file count as one file.
    fs::remove_file(beside_link(&folder, ".gateway")).unwrap();
    symlink(beside(&folder, ".gateway"), beside_link(&folder, ".gateway")).unwrap();
    drop(journal);
    let mut journal = open(&link);
    assert!(!journal.take_over().unwrap().accepted.is_empty());
}
