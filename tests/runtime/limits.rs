//! The table of limits in `docs/limits.md`: each key has a row, and the party that the row names learns of the limit by
//! what the row names, whether its conversation is open, closes with the answer, or was left.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use systole::actor::*;
use systole::core::{Contract, EventKind, HandlerOutcome, Message};
use systole::drafts::DraftNews;
use systole::journal::MemoryJournal;
use systole::ladder::Raw;
use systole::prelude::*;
use systole::runtime::{LocalBoxFuture, OrganismBuilder, RawListener, RunContext, SendError};
use systole::testing::Kit;

use crate::calculator::*;

const TABLE: &str = include_str!("../../docs/limits.md");
const REFERENCE: &str = include_str!("../../src/config/reference.yaml");

/// A row of the table: what the key bounds, and the means by which parties learn that the limit was reached.
struct Row {
    means: String,
}

/// The rows below a heading, by key.
fn rows(heading: &str) -> BTreeMap<&'static str, Row> {
    let (_, section) = TABLE.split_once(heading).unwrap_or_else(|| panic!("docs/limits.md has no section '{heading}'"));
    let lines = section.lines().take_while(|line| !line.starts_with("## "));
    let row = |line: &'static str| {
        let mut cells = line.strip_prefix("| `")?.split(" | ");
        let key = cells.next()?.strip_suffix('`')?;
        let (_, learns, means) = (cells.next()?, cells.next()?, cells.next()?);
        assert!(!learns.trim().is_empty(), "the row of {key} names no party");
        Some((key, Row { means: means.to_owned() }))
    };
    lines.filter_map(row).collect()
}

/// The keys of a section of the reference, with what stands before them cut off.
fn keys(section: &str, prefix: &str) -> Vec<&'static str> {
    let lines = REFERENCE.lines().skip_while(|line| !line.starts_with(section)).skip(1);
    let lines = lines.take_while(|line| line.starts_with(prefix));
    lines.filter_map(|line| line.strip_prefix(prefix)?.split_once(':').map(|(key, _)| key)).collect()
}

#[test]
fn each_key_has_a_row_and_each_row_a_key() {
    let known = |heading: &str| rows(heading).into_keys().collect::<Vec<_>>();
    let mut limits = keys("limits:", "  ");
    limits.sort_unstable();
    assert_eq!(known("## Limits of the organism"), limits);
    // These are no limits.
    let no_limits = ["console", "listen", "molecule", "tls"];
    let mut gateway: Vec<_> = keys("# gateway:", "#   ").into_iter().filter(|key| !no_limits.contains(key)).collect();
    gateway.sort_unstable();
    assert_eq!(known("## Limits of the gateway"), gateway);
}

/// The tests that reach the limits of the gateway: the answer, and what the test asserts.
const GATEWAY: [(&str, &str, &str, &str); 9] = [
    ("requests", "who_asks_too_often_is_told_when_to_ask_again", "429 `rate`", "problem(429, \"rate\")"),
    ("connections", NO_ROOM, "503 `connections`", "problem(503, \"connections\")"),
    ("reserve", RESERVE, "503 `connections`", "boss.get(\"/v1/mailboxes/worker/messages\").is(200)"),
    (
        "connections_per_address",
        "an_address_whose_requests_are_all_under_way_is_full_and_no_other_is",
        "429 `connections`",
        "Full::Address",
    ),
    ("connections_per_principal", RESERVE, "429 `connections`", "problem(429, \"connections\")"),
    ("bodies", NO_ROOM, "503 `bodies`", "problem(503, \"bodies\")"),
    (
        "bodies_per_principal",
        "the_bodies_of_one_principal_are_bounded_together",
        "429 `bodies`",
        "problem(429, \"bodies\")",
    ),
    ("header_time", TIMES, "the connection ends", "assert_ne!(send(\"X-Slow: 1"),
    ("body_time", TIMES, "408 `slow_body`", "problem(408, \"slow_body\")"),
];
const NO_ROOM: &str = "whoever_finds_no_room_at_all_is_told_what_is_full";
const RESERVE: &str = "one_principals_long_polls_leave_room_for_others_admins_and_health";
const TIMES: &str = "bodies_have_a_bound_and_a_time";

#[test]
fn each_limit_of_the_gateway_has_a_test_that_reaches_it() {
    const TESTS: [&str; 4] = [
        include_str!("../gateway_sim/guard.rs"),
        include_str!("../../crates/systole-cli/tests/gateway/edge.rs"),
        include_str!("../../crates/systole-cli/tests/gateway/guard.rs"),
        include_str!("../../src/accept/admission.rs"),
    ];
    let mut rows = rows("## Limits of the gateway");
    for (key, test, answer, asserted) in GATEWAY {
        let row = rows.remove(key).unwrap_or_else(|| panic!("{key} has no row"));
        assert!(row.means.contains(answer), "{key}: {answer} is not in '{}'", row.means);
        let body = TESTS.iter().find_map(|file| file.split_once(&format!("fn {test}()")));
        let (_, body) = body.unwrap_or_else(|| panic!("{key}: there is no test {test}"));
        let body = body.split("#[t").next().unwrap_or_default();
        assert!(body.contains(asserted), "{key}: {test} does not assert {asserted}");
    }
    assert_eq!(rows.into_keys().collect::<Vec<_>>(), [""; 0], "no test reaches these");
}

/// The state of the conversation of the party that reaches a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Party {
    Open,
    /// It closes with its answer.
    Closing,
    /// The client has left it, and reads no answer.
    Gone,
}

/// Asks for as many calls as the number says, and joins them; a slow handler.
struct Boss;

impl Actor for Boss {
    type Context = Context<Self>;
}

impl Handler<Delivery<Question>> for Boss {
    type Result = ResponseFuture<Response>;

    fn handle(&mut self, question: Delivery<Question>, _: &mut Context<Self>) -> Self::Result {
        Box::pin(async move {
            actix::clock::sleep(Duration::from_secs(1)).await;
            let adds = vec![Add { a: 1, b: 1 }; question.text.parse().unwrap_or(0)];
            let sums = question.thread().call_all(adds, Join::All).await?;
            Ok(question.reply(answered(sums.replies().count().to_string())))
        })
    }
}

struct Slow;

impl Actor for Slow {
    type Context = Context<Self>;
}

impl Handler<Delivery<Add>> for Slow {
    type Result = ResponseFuture<Response>;

    fn handle(&mut self, add: Delivery<Add>, _: &mut Context<Self>) -> Self::Result {
        Box::pin(async move {
            actix::clock::sleep(Duration::from_secs(1)).await;
            Ok(add.reply(Sum { value: add.a + add.b }))
        })
    }
}

/// A listener that writes no XML, whatever it is told.
struct Babbler;

impl RawListener for Babbler {
    fn run(self: Rc<Self>, _: Message, _: RunContext) -> LocalBoxFuture<HandlerOutcome> {
        Box::pin(async { HandlerOutcome::Wrote(Raw::new("<order")) })
    }
}

fn office(limits: Limits) -> OrganismBuilder {
    let mut babbler = Contract::new("babbler".parse_name());
    babbler.accepts = vec!["{urn:example:test:v1}order".parse().unwrap()];
    babbler.replies = vec!["{urn:example:test:v1}answered".parse().unwrap()];
    babbler.accepts_faults = true;
    Organism::builder("office")
        .limits(limits)
        .listener("boss", || Boss, |c| c.accepts::<Question>().replies::<Answered>().calls::<Add>())
        .listener("slow", || Slow, |c| c.accepts::<Add>().replies::<Sum>())
        .raw_listener(babbler, || Babbler)
        .schemas([systole::schema::PayloadSchema::of::<Order>().unwrap()])
        .client("cli", |c| c.calls::<Question>().calls::<Order>())
}

trait ParseName {
    fn parse_name(&self) -> systole::vocab::Name;
}

impl ParseName for str {
    fn parse_name(&self) -> systole::vocab::Name {
        systole::vocab::Name::parse(self).unwrap()
    }
}

/// A question with this in it, and this behind the attributes of its root.
fn ask(attributes: &str, text: &str) -> String {
    format!("<question xmlns=\"{}\"{attributes}><text>{text}</text></question>", crate::oracle::NAMESPACE)
}

fn calls(count: usize) -> String {
    ask("", &count.to_string())
}

fn word(error: &SendError) -> String {
    let name = match error {
        SendError::Overloaded(_) => "Overloaded",
        SendError::Unread => "Unread",
        SendError::Closed => "Closed",
        other => panic!("{other}"),
    };
    format!("`SendError::{name}`")
}

/// How the client learns of a limit, or, where it is gone, the operator by an event.
fn learns(mut kit: Kit, party: Party, messages: &[String]) -> Vec<String> {
    let client = kit.client("cli");
    let mut conversation = client.converse();
    let mut learned = Vec::new();
    for message in messages {
        let sent = match party {
            Party::Open | Party::Gone => conversation.send_bytes(message.clone()),
            Party::Closing => client.send_last(message.clone()).map(drop),
        };
        learned.extend(sent.err().map(|error| word(&error)));
    }
    let answers: Vec<_> = match party {
        Party::Gone => {
            drop(conversation);
            kit.advance(Duration::from_secs(60));
            Vec::new()
        }
        Party::Open => {
            kit.advance(Duration::from_secs(60));
            std::iter::from_fn(|| conversation.try_receive()).collect()
        }
        Party::Closing => {
            kit.advance(Duration::from_secs(60));
            std::iter::from_fn(|| client.try_receive()).collect()
        }
    };
    let faults = answers.into_iter().filter_map(|egress| egress.fault);
    learned.extend(faults.map(|fault| format!("fault `{}`", fault.code)));
    if party == Party::Gone {
        let events = kit.events().into_iter().filter_map(|event| match event.kind {
            EventKind::Faulted { fault, .. } => Some(format!("fault `{}`", fault.code)),
            _ => None,
        });
        learned.extend(events);
    }
    learned
}

/// A change of the limits.
type Change = fn(&mut Limits);

/// A change of the limits, and messages that reach the changed one.
type Drive = (Change, Vec<String>);

fn drives() -> BTreeMap<&'static str, Drive> {
    let long = || "x".repeat(2_000);
    let order = || vec![format!("<order xmlns=\"{}\"><what>?</what></order>", crate::oracle::NAMESPACE)];
    let prefixes = (0..9).map(|n| format!(" xmlns:p{n}=\"urn:{n}\"")).collect::<String>();
    let attributes = (0..9).map(|n| format!(" a{n}=\"\"")).collect::<String>();
    BTreeMap::from([
        ("message_bytes", ((|l| l.xml.message_bytes = 1_000) as Change, vec![ask("", &long())])),
        ("element_depth", (|l| l.xml.depth = 1, vec![calls(0)])),
        ("attributes", (|l| l.xml.attributes = 8, vec![ask(&attributes, "0")])),
        ("namespaces", (|l| l.xml.namespaces = 8, vec![ask(&prefixes, "0")])),
        ("name_bytes", (|l| l.xml.name_bytes = 1_000, vec![ask(&format!(" {}=\"\"", long()), "0")])),
        ("value_bytes", (|l| l.xml.value_bytes = 1_000, vec![ask(&format!(" a=\"{}\"", long()), "0")])),
        ("comment_bytes", (|l| l.xml.comment_bytes = 1_000, vec![ask("", &format!("<!--{}-->0", long()))])),
        ("instruction_bytes", (|l| l.xml.instruction_bytes = 1_000, vec![ask("", &format!("<?p {}?>0", long()))])),
        ("thread_depth", (|l| l.thread_depth = 1, vec![calls(1)])),
        ("fanout", (|l| l.fanout = 2, vec![calls(3)])),
        ("mailbox", (|l| l.mailbox = 2, vec![calls(3)])),
        ("queue", (|l| l.queue = 0, vec![calls(0)])),
        ("queue_bytes", (|l| l.queue_bytes = 10, vec![calls(0)])),
        ("conversation_threads", (|l| l.conversation_threads = 2, vec![calls(1)])),
        ("conversation_messages", (|l| l.conversation_messages = 2, vec![calls(5)])),
        ("conversation_bytes", (|l| l.conversation_bytes = 10, vec![calls(5)])),
        ("threads", (|l| l.threads = 2, vec![calls(1)])),
        ("handler_timeout", (|l| l.handler_timeout = Duration::from_millis(500), vec![calls(0)])),
        ("invalid_responses", (|l| l.invalid_responses = 2, order())),
        ("egress", (|l| l.egress = 1, vec![calls(0), calls(0)])),
        ("egress_bytes", (|l| l.egress_bytes = 1, vec![calls(0), calls(0)])),
    ])
}

/// Keys whose limit no message reaches by itself: each has a test of its own below.
const ALONE: [&str; 11] = [
    "turns",
    "repeats",
    "max_attempts",
    "root_idle",
    "context_messages",
    "context_bytes",
    "context_total_bytes",
    "dead_letters",
    "dead_letter_bytes",
    "draft_bytes",
    "draft_total_bytes",
];

#[test]
fn the_named_party_learns_of_each_limit_by_the_named_means() {
    let (mut rows, mut drives) = (rows("## Limits of the organism"), drives());
    for key in ALONE {
        rows.remove(key).unwrap_or_else(|| panic!("{key} has no row"));
    }
    for (key, row) in rows {
        let (change, messages) = drives.remove(key).unwrap_or_else(|| panic!("no message of this test reaches {key}"));
        for party in [Party::Open, Party::Closing, Party::Gone] {
            let mut limits = Limits::default();
            change(&mut limits);
            let learned = learns(Kit::start(office(limits)).unwrap(), party, &messages);
            assert!(!learned.is_empty(), "{key}, {party:?}: nothing tells of it");
            let told = |means: &String| row.means.contains(means.as_str());
            assert!(learned.iter().any(told), "{key}, {party:?}: {learned:?} is not in '{}'", row.means);
        }
    }
    assert_eq!(drives.into_keys().collect::<Vec<_>>(), [""; 0], "no row");
}

/// The means of one key.
fn means(key: &str) -> String {
    rows("## Limits of the organism").remove(key).unwrap_or_else(|| panic!("{key} has no row")).means
}

#[test]
fn a_conversation_that_was_idle_for_long_is_closed_and_its_client_learns_it() {
    let kit = Kit::start(office(Limits::default())).unwrap();
    let mut conversation = kit.client("cli").converse();
    conversation.send_bytes(calls(0)).unwrap();
    kit.advance(Duration::from_secs(3600));
    assert!(conversation.try_receive().is_some_and(|egress| egress.fault.is_none()));
    let refused = word(&conversation.send_bytes(calls(0)).unwrap_err());
    assert!(means("root_idle").contains(&refused), "{refused}");
    assert!(kit.block_on(conversation.receive()).is_none() && means("root_idle").contains("`None`"));
}

/// A listener that adds one and one, whatever it is told.
struct Looper;

impl RawListener for Looper {
    fn run(self: Rc<Self>, _: Message, _: RunContext) -> LocalBoxFuture<HandlerOutcome> {
        let add = format!("<add xmlns=\"{}\"><a>1</a><b>1</b></add>", crate::oracle::NAMESPACE);
        Box::pin(async { HandlerOutcome::Wrote(Raw::new(add)) })
    }
}

#[test]
fn a_loop_ends_and_its_caller_learns_of_it() {
    for (key, turns, repeats) in [("turns", 2, u32::MAX), ("repeats", 1000, 2)] {
        for accepts_faults in [false, true] {
            let limits = Limits::default().turns(turns).repeats(repeats);
            let named = |local: &str| vec![format!("{{{}}}{local}", crate::oracle::NAMESPACE).parse().unwrap()];
            let mut looper = Contract::new("looper".parse_name());
            (looper.accepts, looper.replies) = (named("order"), named("answered"));
            (looper.calls, looper.returns) = (named("add"), named("sum"));
            looper.accepts_faults = accepts_faults;
            let schemas = [
                systole::schema::PayloadSchema::of::<Order>().unwrap(),
                systole::schema::PayloadSchema::of::<Answered>().unwrap(),
            ];
            let organism = Organism::builder("loop")
                .limits(limits)
                .listener("slow", || Slow, |c| c.accepts::<Add>().replies::<Sum>())
                .raw_listener(looper, || Looper)
                .schemas(schemas)
                .client("cli", |c| c.calls::<Order>());
            let kit = Kit::start(organism).unwrap();
            let order = format!("<order xmlns=\"{}\"><what>?</what></order>", crate::oracle::NAMESPACE);
            kit.client("cli").send_last(order).unwrap();
            kit.advance(Duration::from_secs(60));
            let fault =
                kit.client("cli").try_receive().and_then(|egress| egress.fault).expect("the client has its fault");
            assert_eq!(fault.code, if accepts_faults { FaultCode::Failed } else { FaultCode::Limit }, "{key}: {fault}");
            assert!(means(key).contains(&format!("fault `{}`", fault.code)), "{key}: {fault}");
        }
    }
}

/// A listener that continues its thread some times, and then says how many messages of it it remembers.
struct Recaller;

impl Actor for Recaller {
    type Context = Context<Self>;
}

impl Handler<Delivery<Count>> for Recaller {
    type Result = Response;

    fn handle(&mut self, count: Delivery<Count>, _: &mut Context<Self>) -> Response {
        match count.left {
            0 => Ok(count.reply(Sum { value: count.thread().history().len() as i64 })),
            left => Ok(continue_with(Count { left: left - 1 }, Duration::ZERO)),
        }
    }
}

#[test]
fn a_context_that_leaves_messages_out_shows_it_to_its_listener_and_to_the_operator() {
    // The answer with the number of messages, and the number of those that were left out.
    let recalled = |change: Change| {
        let mut limits = Limits::default();
        change(&mut limits);
        let organism = Organism::builder("context")
            .limits(limits)
            .listener("recaller", || Recaller, |c| c.accepts::<Count>().replies::<Sum>().context())
            .client("cli", |c| c.calls::<Count>());
        let mut kit = Kit::start(organism).unwrap();
        kit.client("cli").tell(Count { left: 8 }).unwrap();
        kit.advance(Duration::from_secs(60));
        let answer = kit.client("cli").try_receive().expect("it is answered");
        let left_out = kit.events().into_iter().filter_map(|event| match event.kind {
            EventKind::LeftOut { messages, why } => Some((messages, why)),
            _ => None,
        });
        (answer.payload.as_str().to_owned(), left_out.collect::<Vec<_>>())
    };
    let (all, left_out) = recalled(|_| {});
    assert_eq!(left_out, []);
    let changes: [(&str, Change); 3] = [
        ("context_messages", |limits| limits.context_messages = 2),
        ("context_bytes", |limits| limits.context_bytes = 200),
        ("context_total_bytes", |limits| limits.context_total_bytes = 200),
    ];
    for (key, change) in changes {
        let (some, left_out) = recalled(change);
        let is_told = left_out.iter().all(|(messages, why)| *messages > 0 && **why == *format!("limits: {key}"));
        assert!(means(key).contains("the event `left-out`") && !left_out.is_empty() && is_told, "{key}: {left_out:?}");
        assert!(means(key).contains("a `history` without") && some != all, "{key}: the listener has {some}");
    }
}

#[test]
fn text_of_a_draft_that_fell_out_is_told_by_an_offset() {
    let changes: [(&str, Change); 2] = [
        ("draft_bytes", |limits| limits.draft_bytes = 1000),
        ("draft_total_bytes", |limits| limits.draft_total_bytes = 2000),
    ];
    for (key, change) in changes {
        let mut limits = Limits::default();
        change(&mut limits);
        let write = async |add: Delivery<Add>| {
            add.thread().draft(&"x".repeat(5000));
            actix::clock::sleep(Duration::from_secs(1)).await;
            Err::<Sum, _>(Failure::new("enough"))
        };
        let builder = Organism::builder("drafts").limits(limits).on("writer", write);
        let kit = Kit::start(builder.client("cli", |c| c.calls::<Add>())).unwrap();
        let mut conversation = kit.client("cli").converse();
        let mut drafts = conversation.drafts();
        conversation.send(Add { a: 1, b: 2 }).unwrap();
        let news = kit.block_on(drafts.next()).unwrap().news;
        let is_told =
            matches!(&news, DraftNews::Text { from, text, .. } if *from > 0 && *from as usize + text.len() == 5000);
        assert!(is_told && means(key).contains("an offset (`from`)"), "{key}: {news:?}");
    }
}

#[test]
fn a_dead_letter_that_later_ones_push_out_is_an_event() {
    let changes: [(&str, Change); 2] = [
        ("dead_letters", |limits| limits.dead_letters = 1),
        ("dead_letter_bytes", |limits| limits.dead_letter_bytes = 10),
    ];
    for (key, change) in changes {
        let mut limits = Limits::default();
        change(&mut limits);
        let mut kit = Kit::start(office(limits)).unwrap();
        let unheard = "<message xmlns=\"https://xml-pipeline.org/ns/envelope/v1\"><meta><from>cli</from></meta>\
                       <unheard xmlns=\"urn:example:of\"/></message>";
        for _ in 0..2 {
            kit.client("cli").send_last(unheard).unwrap();
        }
        kit.advance(Duration::from_secs(60));
        let (mut dead, mut dropped) = (0, 0);
        for event in kit.events() {
            dead += usize::from(matches!(event.kind, EventKind::DeadLetter { .. }));
            dropped += usize::from(matches!(event.kind, EventKind::LetterDropped { .. }));
        }
        assert_eq!((dead, dropped + kit.dead_letters().len()), (2, 2), "{key}");
        assert!(dropped > 0 && means(key).contains("the event `dead-letter-dropped`"), "{key}: {dropped} are dropped");
    }
}

#[test]
fn a_message_that_ends_its_process_too_often_is_a_dead_letter_and_a_fault() {
    let mut limits = Limits::default();
    limits.max_attempts = 2;
    let mut journal = MemoryJournal::new([3; 32]);
    let mut learned = None;
    for start in 0..6 {
        let shared = Arc::new(Mutex::new(journal.clone()));
        let kit = Kit::start(office(limits.clone()).journal(shared.clone())).unwrap();
        if start == 0 {
            kit.client("cli").send_last(calls(0)).unwrap();
        }
        // The handler sleeps when the process ends.
        kit.settle();
        journal = shared.lock().unwrap().clone();
        if let Some(fault) = kit.client("cli").try_receive().and_then(|egress| egress.fault) {
            learned = Some((start, format!("fault `{}`", fault.code), kit.dead_letters().len()));
            break;
        }
    }
    let (start, fault, letters) = learned.expect("the client has its fault");
    assert!(start > 1, "not before two attempts");
    assert!(means("max_attempts").contains(&fault), "{fault}");
    assert_eq!(letters, 1);
    assert!(means("max_attempts").contains("dead letter"));
}
