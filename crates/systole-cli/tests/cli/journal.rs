//! `systole journal`, `thread` and `dead`: the content of a journal, as an operator sees it.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use systole::journal::{JournalOptions, SqliteJournal};
use systole::vocab::{Fault, FaultCode, MessageId, Name, Partition, ThreadId, ThreadPath, Time};
use systole_core::journal::{
    BodyRecord, EgressRecord, Journal, LetterPlace, LetterRecord, MessageRecord, MessageState, Op, Owner, ReplyTo,
    Step, ThreadRecord,
};
use uuid::Uuid;

use crate::kit::Scratch;

const ROOT: &str = "00000000-0000-0000-0000-000000000001";
const RESEARCHER: &str = "00000000-0000-0000-0000-000000000002";
/// 2026-01-02T03:04:05Z
const START: u64 = 1_767_323_045_000_000_000;

/// Exit code, standard output, standard error.
fn said(args: &[&str]) -> (i32, String, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_systole")).args(args).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

/// A folder of a test with a journal in it, removed with it.
struct Folder(Scratch);

impl Folder {
    fn new(name: &str) -> Self {
        let path = Scratch::new(name);
        Self(path)
    }

    fn file(&self) -> String {
        self.0.join("organism.journal").to_str().unwrap().to_owned()
    }
}

fn name(name: &str) -> Name {
    Name::parse(name).unwrap()
}

fn thread(number: u64, parent: Option<u64>, owner: Owner, ordinal: u32) -> Op {
    Op::Open(ThreadRecord {
        number,
        id: ThreadId::from_uuid(Uuid::from_u128(number.into())),
        parent,
        root: 1,
        owner,
        ordinal,
        depth: number as u16 - 1,
        opened_by: MessageId::from_uuid(Uuid::from_u128(9)),
        reply_to: ReplyTo::Single,
        deadline: Time::MAX,
        own_deadline: false,
        spawned: false,
        left: false,
        label: None,
        traceparent: None,
    })
}

fn message(number: u64, thread: u64, from: &str, payload: &str) -> Op {
    Op::Put(MessageRecord {
        number,
        place: number,
        thread,
        id: MessageId::from_uuid(Uuid::from_u128(number.into())),
        from: name(from),
        in_reply_to: None,
        answers: ReplyTo::None,
        state: MessageState::Queued,
        body: BodyRecord::Payload(payload.to_owned().into()),
        attempts: 0,
    })
}

fn letter(number: u64, payload: Option<&str>) -> Op {
    Op::Letter(LetterRecord {
        partition: Partition::default(),
        number,
        at: Time::from_nanos(START),
        from: name("researcher"),
        to: Some(name("calculator")),
        place: LetterPlace {
            conversation: Some(ROOT.parse().unwrap()),
            path: ThreadPath::new(vec![(name("researcher"), 1)]),
        },
        payload: payload.map(|payload| ("{urn:c}add".parse().unwrap(), payload.to_owned().into())),
        reason: Fault::new(FaultCode::Limit, "too deep"),
    })
}

/// A client asked the researcher, who waits for two calculators; one is done.
fn journal(file: &str) -> SqliteJournal {
    let mut journal = SqliteJournal::open(Path::new(file), &JournalOptions::new([1; 32])).unwrap();
    journal.recover().unwrap();
    let steps = [
        vec![
            thread(1, None, Owner::Client(name("cli")), 1),
            thread(2, Some(1), Owner::Listener(name("researcher")), 1),
            message(10, 2, "cli", "<question>\u{1b}[2J?</question>"),
        ],
        vec![
            Op::Done { message: 10 },
            thread(3, Some(2), Owner::Listener(name("calculator")), 1),
            message(11, 3, "researcher", "<add>1</add>"),
            thread(4, Some(2), Owner::Listener(name("calculator")), 2),
            message(12, 4, "researcher", "<add>2</add>"),
        ],
        vec![Op::Done { message: 12 }, Op::Close { thread: 4 }, message(13, 2, "calculator", "<sum>2</sum>")],
        vec![letter(20, Some("<add>3</add>")), letter(21, None), letter(22, Some("<add>4</add>"))],
        vec![Op::Leave(EgressRecord {
            number: 30,
            client: name("cli"),
            root: ROOT.parse().unwrap(),
            from: name("researcher"),
            in_reply_to: None,
            envelope: "<message/>".into(),
            fault: None,
            payload: "<progress>half</progress>".into(),
        })],
    ];
    let steps =
        (0..).zip(steps).map(|(second, ops)| Step { ops, at: Time::from_nanos(START + second * 1_000_000_000) });
    journal.write(&steps.collect::<Vec<_>>()).unwrap();
    journal.feed().unwrap();
    journal
}

#[test]
fn steps_that_the_tables_lack_are_seen_once_their_process_has_ended() {
    let folder = Folder::new("batches");
    let file = folder.file();
    let mut journal = journal(&file);
    let step = |number| Step {
        ops: vec![thread(number, Some(1), Owner::Listener(name("late")), 1)],
        at: Time::from_nanos(START + 60_000_000_000),
    };
    journal.write(&(40..46).map(step).collect::<Vec<_>>()).unwrap();
    let stat = || said(&["journal", "stat", &file]).1;
    let lacking = stat();
    assert!(lacking.contains("threads         3 open, 1 kept"), "{lacking}");
    assert!(lacking.contains("batches         1 not in the tables yet"), "{lacking}");
    assert_eq!(said(&["journal", "verify", &file]).0, 0);
    // As when it is killed.
    drop(journal);
    let (_, listed, _) = said(&["thread", "tree", ROOT, "--journal", &file]);
    assert_eq!(listed.matches("late").count(), 6, "{listed}");
    let whole = stat();
    assert!(whole.contains("threads         9 open, 1 kept") && !whole.contains("batches"), "{whole}");
}

#[test]
fn a_running_organism_can_be_looked_at_but_not_changed() {
    let folder = Folder::new("running");
    let file = folder.file();
    let _running = journal(&file);
    let (code, out, err) = said(&["journal", "stat", &file]);
    assert_eq!((code, err.as_str()), (0, ""));
    assert!(out.contains(&format!("state           in use by process {}\n", std::process::id())), "{out}");
    for line in [
        "last written    2026-01-02T03:04:09Z",
        "conversations   1 open",
        "threads         3 open, 1 kept",
        "messages        2 waiting, 2 kept",
        "unread egress   1",
        "dead letters    3",
    ] {
        assert!(out.contains(&format!("{line}\n")), "{line} is missing in\n{out}");
    }
    let (code, out, _) = said(&["journal", "verify", &file]);
    assert_eq!((code, out), (0, format!("{file}: in order\n")));
    for args in [
        &["dead", "drop", "20", "--journal", &file][..],
        &["dead", "redrive", "20", "--journal", &file],
        &["journal", "compact", &file],
    ] {
        let (code, out, err) = said(args);
        assert_eq!((code, out.as_str()), (2, ""), "{args:?}");
        let refusal = format!("journal {file}: in use by process {}: end that first", std::process::id());
        assert!(err.starts_with(&refusal), "{err}");
    }
    for (args, lines) in [
        (&["dead", "list"][..], 4),
        (&["dead", "show", "20"], 4),
        (&["thread", "list"], 2),
        (&["thread", "tree"], 3),
        (&["thread", "show", ROOT], 10),
    ] {
        let (code, out, err) = said(&[args, &["--journal", &file]].concat());
        assert_eq!((code, out.lines().count(), err.as_str()), (0, lines, ""), "{args:?}: {out}");
    }
}

#[test]
fn conversations_are_listed_drawn_and_told() {
    let folder = Folder::new("threads");
    let file = folder.file();
    journal(&file).close().unwrap();
    let (code, out, _) = said(&["thread", "list", "--journal", &file]);
    assert_eq!(code, 0);
    let line: Vec<&str> = out.lines().nth(1).unwrap().split_whitespace().collect();
    assert_eq!(line, [ROOT, "cli", "open", "2026-01-02T03:04:05Z", "3", "of", "4", "2"], "{out}");
    let tree = "\
client cli  00000000-0000-0000-0000-000000000001  open since 2026-01-02T03:04:05Z
└ researcher  00000000-0000-0000-0000-000000000002  open since 2026-01-02T03:04:05Z, 1 waiting
  ├ calculator  00000000-0000-0000-0000-000000000003  open since 2026-01-02T03:04:06Z, 1 waiting
  └ calculator#2  00000000-0000-0000-0000-000000000004  closed since 2026-01-02T03:04:07Z
";
    assert_eq!(said(&["thread", "tree", RESEARCHER, "--journal", &file]), (0, tree.to_owned(), String::new()));
    let open = said(&["thread", "tree", "--journal", &file]).1;
    assert_eq!(open.lines().count(), 3, "{open}");
    let told = "\
2026-01-02T03:04:05Z  root/researcher  message 00000000-0000-0000-0000-00000000000a from cli, done at 2026-01-02T03:04:06Z
  <question>\\u{1b}[2J?</question>
2026-01-02T03:04:07Z  root/researcher  message 00000000-0000-0000-0000-00000000000d from calculator, waiting
  <sum>2</sum>
";
    assert_eq!(said(&["thread", "show", RESEARCHER, "--journal", &file]), (0, told.to_owned(), String::new()));
    assert_eq!(said(&["thread", "show", "0002", "--journal", &file]).1, told, "the last digits mean one thread");
    let (_, whole, _) = said(&["thread", "show", ROOT, "--journal", &file]);
    // Events name a conversation by the last digits of its id.
    let digits = &ROOT[ROOT.len() - 8..];
    assert_eq!(said(&["thread", "show", digits, "--journal", &file]).1, whole);
    let (code, _, err) = said(&["thread", "tree", "beef", "--journal", &file]);
    assert!(code == 1 && err.contains("no thread whose id ends with beef"), "{code}: {err}");
    assert_eq!(whole.lines().count(), 10, "{whole}");
    assert!(whole.ends_with("root  answer from researcher, unread\n  <progress>half</progress>\n"), "{whole}");
    let (_, json, _) = said(&["thread", "show", ROOT, "--json", "--journal", &file]);
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json[2]["path"], "root/researcher/calculator#2");
    assert_eq!(json[0]["message"], "00000000-0000-0000-0000-00000000000a");
    assert_eq!(json[0]["text"], "<question>\u{1b}[2J?</question>");
    let (code, _, err) = said(&["thread", "show", "67e55044-10b1-426f-9247-bb680e5fe0c8", "--journal", &file]);
    assert_eq!((code, err.contains("`systole thread list` shows the threads that are kept")), (1, true), "{err}");
}

#[test]
fn dead_letters_are_shown_dropped_and_queued_again() {
    let folder = Folder::new("dead");
    let file = folder.file();
    journal(&file).close().unwrap();
    let (code, out, _) = said(&["dead", "show", "20", "--journal", &file]);
    let expected = "dead letter 20, 2026-01-02T03:04:05Z, from researcher to calculator, at root/researcher\n\
                    conversation 00000000-0000-0000-0000-000000000001\n\
                    limit: too deep\n<add>3</add>\n";
    assert_eq!((code, out.as_str()), (0, expected));
    let deleted = "dead letter 22 is deleted\n".to_owned();
    assert_eq!(said(&["dead", "drop", "22", "--journal", &file]), (0, deleted, String::new()));
    let (code, _, err) = said(&["dead", "redrive", "21", "20", "--journal", &file]);
    assert_eq!((code, err.contains("dead letter 21: this dead letter holds no payload")), (1, true), "{err}");
    let queued = "dead letter 20 is redriven at the next start\n".to_owned();
    assert_eq!(said(&["dead", "redrive", "20", "--journal", &file]), (0, queued, String::new()));
    let (code, _, err) = said(&["dead", "drop", "22", "--journal", &file]);
    assert_eq!((code, err.starts_with("there is no dead letter 22")), (1, true), "{err}");
    let (_, json, _) = said(&["dead", "list", "--json", "--journal", &file]);
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json.as_array().unwrap().len(), 2);
    assert_eq!((&json[0]["redrives"], &json[1]["redrives"]), (&true.into(), &serde_json::Value::Null));
    let mut journal = SqliteJournal::open(Path::new(&file), &JournalOptions::new([0; 32])).unwrap();
    let recovered = journal.recover().unwrap();
    assert_eq!((recovered.redrive, recovered.letters.len(), recovered.epoch), (vec![20], 2, 2));
    journal.write(&[Step { ops: vec![Op::LetterGone { letter: 20 }], at: Time::from_nanos(START) }]).unwrap();
    assert!(journal.recover().unwrap().redrive.is_empty());
}

#[test]
fn a_journal_is_verified_and_made_smaller() {
    let folder = Folder::new("verify");
    let file = folder.file();
    let mut store = journal(&file);
    for number in 100..400 {
        let step = Step {
            ops: vec![message(number, 2, "cli", &"x".repeat(3000)), Op::Done { message: number }],
            at: Time::from_nanos(START),
        };
        store.write(&[step]).unwrap();
    }
    store.close().unwrap();
    drop(store);
    let before = fs::metadata(&file).unwrap().len();
    let (code, out, _) = said(&["journal", "compact", "--age", "1s", &file]);
    assert_eq!(code, 0);
    assert!(out.starts_with("303 rows deleted, ") && fs::metadata(&file).unwrap().len() < before / 4, "{out}");
    assert_eq!(said(&["journal", "verify", &file]).0, 0);
    assert_eq!(said(&["thread", "tree", "--journal", &file]).1.lines().count(), 3, "what is open stays");
    let mut bytes = fs::read(&file).unwrap();
    let at = bytes.windows(8).position(|text| text == b"<add>1</").unwrap();
    bytes[at + 5] ^= 2;
    fs::write(&file, bytes).unwrap();
    let (code, out, err) = said(&["journal", "verify", &file]);
    assert_eq!((code, err.as_str()), (1, &*format!("{file}: message 11 is not as it was written\n")));
    assert!(out.contains("damaged: restore a copy"), "{out}");
    let (code, _, err) = said(&["thread", "show", ROOT, "--journal", &file]);
    assert_eq!((code, err.contains("damaged: message 11 is not as it was written")), (1, true), "{err}");
}

#[test]
fn a_log_that_is_damaged_in_its_middle_is_refused_until_it_is_cut() {
    let folder = Folder::new("cut");
    let file = folder.file();
    let mut store = journal(&file);
    for number in 100..110 {
        store.write(&[Step { ops: vec![message(number, 2, "cli", "<more/>")], at: Time::from_nanos(START) }]).unwrap();
    }
    // As a crash leaves it, but for one bit.
    let damaged = folder.0.join("damaged.journal");
    let damaged = damaged.to_str().unwrap();
    fs::copy(&file, damaged).unwrap();
    let mut log = fs::read(format!("{file}-wal")).unwrap();
    let middle = log.len() / 2;
    log[middle] ^= 1;
    fs::write(format!("{damaged}-wal"), &log).unwrap();
    for args in [&["journal", "compact", damaged][..], &["dead", "drop", "20", "--journal", damaged]] {
        let (code, _, err) = said(args);
        assert_eq!((code, err.contains("its log is damaged at byte")), (1, true), "{err}");
        assert!(err.contains("`systole journal compact --cut`"), "{err}");
        assert_eq!(fs::read(format!("{damaged}-wal")).unwrap(), log, "left as it was");
    }
    assert_eq!(said(&["journal", "compact", "--cut", damaged]).0, 0);
    assert_eq!(said(&["journal", "verify", damaged]), (0, format!("{damaged}: in order\n"), String::new()));
}

#[test]
fn a_journal_that_can_not_be_written_says_so() {
    use std::os::unix::fs::PermissionsExt;
    use std::os::unix::process::CommandExt;
    let folder = Folder::new("read-only");
    let file = folder.file();
    journal(&file).close().unwrap();
    let before = fs::read(&file).unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o444)).unwrap();
    // A copy, because the user of the test may not read the folder of the built program. A process of its own makes it:
    // a program can't be run while a file of ours writes it, and a process that another test starts meanwhile has our
    // files, too.
    let program = folder.0.join("systole");
    let copied = Command::new("cp").arg(env!("CARGO_BIN_EXE_systole")).arg(&program).status().unwrap();
    assert!(copied.success());
    let mut command = Command::new(program);
    if rustix::process::geteuid().is_root() {
        command.uid(65534);
    }
    let output = command.args(["journal", "compact", &file]).output().unwrap();
    let err = String::from_utf8(output.stderr).unwrap();
    let expected = format!("journal {file}: it can't be written: let this user write the file and its folder\n");
    assert_eq!((output.status.code(), err), (Some(2), expected));
    assert_eq!(fs::read(&file).unwrap(), before);
}

#[test]
fn what_is_no_journal_is_said_to_be_none() {
    let folder = Folder::new("none");
    let file = folder.file();
    for args in [&["journal", "stat", &file][..], &["dead", "list", "--journal", &file], &["journal", "compact", &file]]
    {
        let (code, _, err) = said(args);
        assert_eq!((code, err.contains("organism.journal: there is no such file")), (2, true), "{err}");
    }
    assert_eq!(fs::read_dir(&folder.0).unwrap().count(), 0, "nothing is made");
    fs::write(&file, "no journal").unwrap();
    let (code, _, err) = said(&["journal", "verify", &file]);
    assert_eq!((code, err.contains("this is no journal")), (2, true), "{err}");
}

#[test]
fn without_a_name_the_journal_is_that_of_the_organism_here() {
    let folder = Folder::new("here");
    let said = |args: &[&str]| {
        let output = Command::new(env!("CARGO_BIN_EXE_systole")).args(args).current_dir(&folder.0).output().unwrap();
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    let commands: [&[&str]; 4] =
        [&["dead", "list"], &["thread", "list"], &["journal", "stat"], &["journal", "compact"]];
    for command in commands {
        let (code, err) = said(command);
        assert!(
            code == Some(2) && err.contains("there is no organism.yaml and no *.journal here: name the journal"),
            "{command:?}: {err}"
        );
    }
    drop(journal(&folder.file()));
    for command in &commands[..3] {
        assert_eq!(said(command), (Some(0), String::new()), "{command:?}: the only journal here");
    }
    fs::copy(folder.file(), folder.0.join("other.journal")).unwrap();
    let several = "there are several journals here, organism.journal and other.journal: name one\n";
    assert_eq!(said(&["dead", "list"]), (Some(2), several.to_owned()));
    let organism = "organism: { name: a }\nlisteners:\n  - { name: a, human: true }\n";
    fs::write(folder.0.join("organism.yaml"), organism).unwrap();
    assert!(said(&["dead", "list"]).1.contains("organism.yaml has durability: off: name a journal"));
    fs::write(folder.0.join("organism.yaml"), format!("{organism}durability: process\njournal: kept.journal\n"))
        .unwrap();
    for command in commands {
        let (_, err) = said(command);
        assert!(err.contains("kept.journal: there is no such file"), "{command:?}: {err}");
    }
    fs::rename(folder.file(), folder.0.join("kept.journal")).unwrap();
    let organism = folder.0.join("organism.yaml");
    for command in &commands[..3] {
        let elsewhere = [command, &["--organism", organism.to_str().unwrap()][..]].concat();
        assert_eq!(self::said(&elsewhere).0, 0, "{elsewhere:?}");
    }
}

#[test]
fn the_end_of_standard_input_ends_its_conversations() {
    let folder = Folder::new("input");
    let organism = folder.0.join("organism.yaml");
    let schema = "<xs:schema xmlns:xs='http://www.w3.org/2001/XMLSchema' targetNamespace='urn:i'>\
                  <xs:element name='say' type='xs:string'/></xs:schema>";
    fs::write(folder.0.join("say.xsd"), schema).unwrap();
    let contract = "schemas: [say.xsd], accepts: ['{urn:i}say'], replies: ['{urn:i}say'], echo: true";
    let text = format!(
        "organism: {{ name: i }}\ndurability: process\njournal: organism.journal\n\
         clients: [{{ name: cli, calls: ['{{urn:i}}say'] }}]\nlisteners: [{{ name: parrot, {contract} }}]\n"
    );
    fs::write(&organism, text).unwrap();
    let mut run = Command::new(env!("CARGO_BIN_EXE_systole"))
        .args(["run", "--quiet", "--until-idle", organism.to_str().unwrap(), "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    run.stdin.take().unwrap().write_all(&b"<say xmlns='urn:i'>so</say>\n".repeat(3)).unwrap();
    let output = run.wait_with_output().unwrap();
    assert!(output.status.success());
    assert_eq!(String::from_utf8(output.stdout).unwrap().matches(">so</say>").count(), 3);
    let (code, list, err) = said(&["thread", "list", "--json", "--organism", organism.to_str().unwrap()]);
    assert_eq!(code, 0, "{err}");
    assert_eq!(list.matches("\"ended\": \"").count(), 3, "{list}");
}
