//! All cases with their names, descriptions, sizes and bars.

use std::time::Duration;

use super::bare::{ActixSend, TokioMpsc};
use super::beside::Beside;
use super::dispatch::Dispatch;
use super::fan_out::{FanOut, Style};
use super::idle::{Chains, Conversations, Sleepers};
use super::load::{Load, LoadError, Scale};
use super::messages::{Note, Order};
#[cfg(feature = "peers")]
use super::peers::{self, TwoHopOf};
use super::ping_pong::PingPong;
use super::two_hop::TwoHop;
use super::under_way::UnderWay;
use systole::journal::{Durability, Retention};

/// The function that starts a load.
type Start = fn(Scale) -> Result<Box<dyn Load>, LoadError>;

/// A load under a name.
pub struct Case {
    /// The name, which `--filter` searches.
    pub name: &'static str,
    /// The description.
    pub what: &'static str,
    start: Start,
}

impl Case {
    /// Starts the load.
    ///
    /// # Errors
    /// [`LoadError`] if its organism does not start.
    pub fn start(&self, scale: Scale) -> Result<Box<dyn Load>, LoadError> {
        (self.start)(scale)
    }
}

/// A case with the cases of the same run that it is compared with: their rounds take turns.
pub struct Group {
    /// The letter of the case in the list of the documentation.
    pub letter: char,
    /// The case first, then the reference of the comparison, then further cases of the same kind.
    pub cases: Vec<Case>,
    pub(super) rounds: u32,
    pub(super) by: By,
    pub(super) bar: Option<Bar>,
}

/// The figure that a group compares.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum By {
    /// The CPU time of a delivery.
    Cpu,
    /// The 99th percentile of the latency.
    P99,
    /// The memory of so many threads, which each round leaves behind.
    Memory { threads: u64 },
}

/// A requirement of the specification: an upper bound of a figure.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bar {
    pub(super) what: &'static str,
    pub(super) of: Figure,
    pub(super) must: f64,
}

/// The figure of the first case of a group that a bar bounds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Figure {
    CpuMicros,
    /// The CPU time of a delivery, as a multiple of that of the second case.
    RatioToNext,
    BytesOfThread,
}

pub(super) const THREADS: u64 = 100_000;

/// All groups, in the order in which they run, each in a process of its own.
pub fn groups() -> Vec<Group> {
    vec![
        waiting(),
        memory("idle-roots", "100,000 conversations, answered and open", |scale| {
            boxed(Conversations::start(scale, THREADS))
        }),
        under_way(),
        memory("asleep", "100,000 threads that continue in an hour", |scale| boxed(Sleepers::start(scale, THREADS))),
        Group {
            #[cfg(feature = "peers")]
            cases: two_hop_of_peers(),
            bar: Some(Bar { what: "two hops of 1 KB, CPU \u{b5}s a delivery", of: Figure::CpuMicros, must: 2.8 }),
            ..single('a', TWO_HOP.name, TWO_HOP.what, TWO_HOP.start)
        },
        single('a', "two-hop-alone", "1 KB of text, 1 in flight, 1 shard", |scale| {
            boxed(TwoHop::<Note>::start(scale, Some(1), 1000, 1))
        }),
        single('a', "two-hop-cores", "1 KB of text, 64 in flight, all cores", |scale| {
            boxed(TwoHop::<Note>::start(scale, None, 4000, 64))
        }),
        single('b', "elements", "945 B, 28 elements, 64 in flight, 1 shard", |scale| {
            boxed(TwoHop::<Order>::start(scale, Some(1), 4000, 64))
        }),
        single('d', "fan-out", "100 calls, answers as messages", |scale| boxed(FanOut::start(scale, Style::Messages))),
        single('d', "fan-out-await", "100 calls, answers awaited", |scale| boxed(FanOut::start(scale, Style::Awaited))),
        single('e', "ping-pong", "awaits one answer after the other", |scale| boxed(PingPong::start(scale))),
        durable(),
        drafts(),
        beside(),
        dispatch_1k(),
        dispatch_100k(),
        dispatch_1m(),
    ]
}

const TWO_HOP: Case = Case {
    name: "two-hop",
    what: "1 KB of text, 64 in flight, 1 shard",
    start: |scale| boxed(TwoHop::<Note>::start(scale, Some(1), 4000, 64)),
};

/// The conversation of two hops beside that of other libraries.
#[cfg(feature = "peers")]
fn two_hop_of_peers() -> Vec<Case> {
    let case = |name, what, start| Case { name, what, start };
    vec![
        TWO_HOP,
        case("two-hop-tokio-xml", "tokio and quick-xml, no checks", |scale| {
            Ok(Box::new(TwoHopOf::<peers::Tokio>::start(scale, 4000, 64)))
        }),
        case("two-hop-actix-json", "actix and serde_json, no checks", |scale| {
            Ok(Box::new(TwoHopOf::<peers::Actix>::start(scale, 4000, 64)))
        }),
        case("two-hop-kameo-json", "kameo and serde_json, no checks", |scale| {
            Ok(Box::new(TwoHopOf::<peers::Kameo>::start(scale, 4000, 64)))
        }),
        case("two-hop-ractor-json", "ractor and serde_json, no checks", |scale| {
            Ok(Box::new(TwoHopOf::<peers::Ractor>::start(scale, 4000, 64)))
        }),
    ]
}

fn waiting() -> Group {
    let bar = Bar { what: "idle thread, bytes", of: Figure::BytesOfThread, must: 200.0 };
    let group =
        memory("waiting", "100,000 threads that wait for an answer", |scale| boxed(Chains::start(scale, THREADS)));
    Group { bar: Some(bar), ..group }
}

fn under_way() -> Group {
    let bar = Bar { what: "conversation under way, bytes", of: Figure::BytesOfThread, must: 5120.0 };
    let group = memory("under-way", "100,000 conversations of two hops, 1 KB of text, answered in an hour", |scale| {
        boxed(UnderWay::start(scale, THREADS))
    });
    Group { bar: Some(bar), ..group }
}

fn memory(name: &'static str, what: &'static str, start: Start) -> Group {
    Group { rounds: 1, by: By::Memory { threads: THREADS }, ..single('f', name, what, start) }
}

fn durable() -> Group {
    let case = |name, what, start| Case { name, what, start };
    let cases = vec![
        case("durable-process", "two hops, survives kill -9, all cores", |scale| {
            boxed(TwoHop::<Note>::durable(scale, (Durability::Process, Retention::default()), 4000, 256))
        }),
        case("durable-off", "the same without a journal", |scale| boxed(TwoHop::<Note>::start(scale, None, 4000, 256))),
        case("durable-power", "the same, survives the loss of power", |scale| {
            boxed(TwoHop::<Note>::durable(scale, (Durability::Power, Retention::default()), 4000, 256))
        }),
        case("durable-brief", "the same, survives kill -9, keeps no ended work", |scale| {
            let retention = Retention::default().age(Duration::ZERO);
            boxed(TwoHop::<Note>::durable(scale, (Durability::Process, retention), 4000, 256))
        }),
    ];
    let bar =
        Bar { what: "survives kill -9, multiple of the same without a journal", of: Figure::RatioToNext, must: 3.0 };
    Group { letter: 'j', cases, rounds: 5, by: By::Cpu, bar: Some(bar) }
}

fn drafts() -> Group {
    let case = |name, what, start| Case { name, what, start };
    let cases = vec![
        case("drafts", "two hops of 1 KB, 20 pieces of a draft of the second, no reader, 1 shard", |scale| {
            boxed(TwoHop::<Note>::drafting(scale, 20, 4000, 64))
        }),
        case("drafts-none", "the same without drafts", |scale| boxed(TwoHop::<Note>::drafting(scale, 0, 4000, 64))),
        case("drafts-one", "the same with one piece", |scale| boxed(TwoHop::<Note>::drafting(scale, 1, 4000, 64))),
    ];
    Group { letter: 'k', cases, rounds: 9, by: By::Cpu, bar: None }
}

fn beside() -> Group {
    let beside = Case {
        name: "beside-slow",
        what: "a fast listener beside two slow ones",
        start: |scale| boxed(Beside::start(scale, true)),
    };
    let alone =
        Case { name: "fast-alone", what: "the fast listener alone", start: |scale| boxed(Beside::start(scale, false)) };
    Group { letter: 'h', cases: vec![beside, alone], rounds: 7, by: By::P99, bar: None }
}

fn dispatch_1k() -> Group {
    let dispatch = Case {
        name: "dispatch-1k",
        what: "1,000 threads take turns",
        start: |scale| boxed(Dispatch::start(scale, 1000, 200)),
    };
    let calls = Case {
        name: "calls-1k",
        what: "1,000 threads open, reply and close",
        start: |scale| boxed(Dispatch::start(scale, 1000, 0)),
    };
    let send = Case {
        name: "actix-send-1k",
        what: "1,000 tasks, bare actix send",
        start: |scale| Ok(Box::new(ActixSend::start(scale, 1000, 200))),
    };
    let mpsc = Case {
        name: "tokio-mpsc-1k",
        what: "1,000 tokens, bare tokio mpsc",
        start: |scale| Ok(Box::new(TokioMpsc::start(scale, 1000, 200))),
    };
    Group { letter: 'c', cases: vec![dispatch, send, mpsc, calls], rounds: 7, by: By::Cpu, bar: None }
}

fn dispatch_100k() -> Group {
    let dispatch = Case {
        name: "dispatch-100k",
        what: "100,000 threads take turns",
        start: |scale| boxed(Dispatch::start(scale, THREADS, 8)),
    };
    let calls = Case {
        name: "calls-100k",
        what: "100,000 threads open, reply and close",
        start: |scale| boxed(Dispatch::start(scale, THREADS, 0)),
    };
    let send = Case {
        name: "actix-send-100k",
        what: "100,000 tasks, bare actix send",
        start: |scale| Ok(Box::new(ActixSend::start(scale, THREADS, 8))),
    };
    let mpsc = Case {
        name: "tokio-mpsc-100k",
        what: "100,000 tokens, bare tokio mpsc",
        start: |scale| Ok(Box::new(TokioMpsc::start(scale, THREADS, 8))),
    };
    let bar =
        Bar { what: "dispatch, 100,000 threads, multiple of a bare actix send", of: Figure::RatioToNext, must: 1.0 };
    Group { letter: 'c', cases: vec![dispatch, send, mpsc, calls], rounds: 5, by: By::Cpu, bar: Some(bar) }
}

fn dispatch_1m() -> Group {
    let dispatch = Case {
        name: "dispatch-1m",
        what: "1,000,000 threads take turns",
        start: |scale| boxed(Dispatch::start(scale, 1_000_000, 4)),
    };
    let send = Case {
        name: "actix-send-1m",
        what: "1,000,000 tasks, bare actix send",
        start: |scale| Ok(Box::new(ActixSend::start(scale, 1_000_000, 4))),
    };
    let mpsc = Case {
        name: "tokio-mpsc-1m",
        what: "1,000,000 tokens, bare tokio mpsc",
        start: |scale| Ok(Box::new(TokioMpsc::start(scale, 1_000_000, 4))),
    };
    Group { letter: 'c', cases: vec![dispatch, send, mpsc], rounds: 3, by: By::Cpu, bar: None }
}

fn single(letter: char, name: &'static str, what: &'static str, start: Start) -> Group {
    Group { letter, cases: vec![Case { name, what, start }], rounds: 7, by: By::Cpu, bar: None }
}

fn boxed<L: Load + 'static>(load: Result<L, LoadError>) -> Result<Box<dyn Load>, LoadError> {
    Ok(Box::new(load?))
}
