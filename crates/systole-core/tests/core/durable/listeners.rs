//! The behaviour of the listeners: decided by the id of the message, so that a handler that runs again does the same.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use systole_core::core::{
    Body, CallId, Emission, EmissionKind, Failure, HandlerOutcome, InvocationId, Join, Message, Settled,
};
use systole_core::vocab::{Fault, MessageId, ThreadId};

use super::random::Random;
use crate::payloads::{call, call_xml, emission, number, reply, spawn, xml};

pub(crate) const LISTENERS: usize = 4;

/// A handler that runs.
pub(crate) struct Handler {
    pub(crate) shard: usize,
    pub(crate) invocation: InvocationId,
    pub(crate) message: MessageId,
    pub(crate) thread: ThreadId,
    pub(crate) listener: usize,
    script: Script,
    /// Groups of calls that it has made.
    made: u32,
    waiting: HashSet<u32>,
    /// The groups whose results it got, in order.
    pub(crate) resumed: Vec<u32>,
    replies: i64,
    pub(crate) noting: bool,
    notes: HashMap<u32, String>,
    /// The tokens that it has reserved, or asked for.
    pub(crate) held: u64,
}

/// The next action of a handler.
pub(crate) enum Act {
    Call {
        call: CallId,
        requests: Vec<Emission>,
        join: Join,
        within: Option<Duration>,
    },
    Park,
    Drop(CallId),
    /// Asks whether a request to a model may use so many tokens.
    Reserve(u64),
    /// Says that a request to a model got no answer, and used so many tokens.
    Charge(u64),
    Note {
        index: u32,
        name: &'static str,
        value: Option<String>,
        /// The tokens that a request to a model used.
        tokens: Option<u64>,
    },
    End(HandlerOutcome),
    /// No action until it is resumed.
    Wait,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Script {
    /// Ends at once.
    End(Ending),
    /// Makes so many groups of calls one after the other, each with so many calls, and replies.
    Await { groups: u32, width: usize, join: Join },
    /// Makes two groups at once; drops the one that is not decided first, if told so.
    Race { drop: bool },
    /// Notes something, then replies with it.
    Note,
    /// Asks a model that may use so many tokens, notes what it used, then replies.
    Think(u64),
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Ending {
    Reply,
    Call(usize),
    /// A call whose payload breaks its contract: a dead letter.
    Break,
    Spawn,
    /// A flood: so many calls, so many questions to the core, and as many continues.
    Flood(usize),
    Continue(u64),
    Fail,
    Nothing,
}

impl Handler {
    /// The name of a note with the tokens of a request to a model.
    pub(crate) const THOUGHT: &str = "thought";

    /// `greedy`: it may answer anything with more than it may have.
    pub(crate) fn new(
        (shard, invocation): (usize, InvocationId),
        listener: usize,
        message: &Message,
        greedy: bool,
    ) -> Self {
        let (n, is_request) = match &message.body {
            Body::Payload { payload, .. } => {
                let payload = payload.payload();
                (number(payload), payload.root().local().starts_with('q'))
            }
            Body::Fault(_) => (0, false),
        };
        let mut random = Random::new(message.id.as_uuid().as_u64_pair().1);
        let last = message.join.is_none_or(|join| join.remaining == 0);
        let script = match greedy && random.once_in(2) {
            true => Script::End(Ending::Flood(1 + random.below(6))),
            false if is_request => request(n, &mut random),
            false => answer(n, last, &mut random),
        };
        Self {
            shard,
            invocation,
            message: message.id,
            thread: message.thread,
            listener,
            script,
            made: 0,
            waiting: HashSet::new(),
            resumed: Vec::new(),
            replies: n,
            noting: false,
            held: 0,
            notes: message.notes.iter().map(|note| (note.index, note.value.to_string())).collect(),
        }
    }

    /// The next action, with so much budget for its calls as its message leaves.
    pub(crate) fn act(&mut self, fresh: u64) -> Act {
        if self.noting {
            return Act::Wait;
        }
        match self.script {
            Script::End(ending) => Act::End(self.end(ending)),
            Script::Await { groups, width, join } => match self.made {
                made if made == self.resumed.len() as u32 && made < groups => self.call(width, join),
                made if made == self.resumed.len() as u32 => Act::End(self.end(Ending::Reply)),
                _ => Act::Park,
            },
            Script::Race { drop } => match (self.made, self.resumed.len()) {
                (0 | 1, _) => self.call(1 + self.made as usize, Join::All),
                (_, 0) => Act::Park,
                (_, 1) if drop && !self.waiting.is_empty() => {
                    let loser = self.waiting.drain().next().expect("it is not empty");
                    Act::Drop(CallId(loser))
                }
                (_, 1) if !drop => Act::Park,
                _ => Act::End(self.end(Ending::Reply)),
            },
            Script::Note => match self.made {
                0 => {
                    self.made = 1;
                    let value = self.notes.get(&0).cloned();
                    if value.is_none() {
                        self.noting = true;
                    }
                    self.replies += value.as_ref().map_or(fresh as i64, |value| value.parse().expect("a number")) % 7;
                    let value = value.is_none().then(|| fresh.to_string());
                    Act::Note { index: 0, name: "number", value, tokens: None }
                }
                _ => Act::End(self.end(Ending::Reply)),
            },
            Script::Think(most) => match self.made {
                0 if !self.notes.contains_key(&0) => {
                    (self.made, self.noting, self.held) = (1, true, most);
                    Act::Reserve(most)
                }
                // The request breaks off: after some tokens, or without a word on its use.
                1 if fresh.is_multiple_of(5) => {
                    (self.made, self.held) = (2, 0);
                    Act::Charge(fresh % (most + 1))
                }
                1 if fresh % 5 == 1 => Act::End(self.end(Ending::Reply)),
                1 => {
                    (self.made, self.noting, self.held) = (2, true, 0);
                    let used = fresh % (most + 1);
                    Act::Note { index: 0, name: Self::THOUGHT, value: Some(used.to_string()), tokens: Some(used) }
                }
                _ => Act::End(self.end(Ending::Reply)),
            },
        }
    }

    /// It may ask the model, or has to hand back what there is.
    pub(crate) fn reserved(&mut self, may: bool) {
        self.noting = false;
        if !may {
            (self.made, self.held) = (2, 0);
        }
    }

    pub(crate) fn resume(&mut self, call: CallId, result: &Result<Vec<Settled>, Fault>) {
        if !self.waiting.remove(&call.0) {
            return;
        }
        self.resumed.push(call.0);
        // The actions of a handler depend on the order and on the answers.
        self.replies = self.replies * 31 + i64::from(call.0) + result.as_ref().map_or(17, |all| all.len() as i64);
        self.replies %= 1_000_003;
    }

    fn call(&mut self, width: usize, join: Join) -> Act {
        let call = CallId(self.made);
        self.made += 1;
        self.waiting.insert(call.0);
        Act::Call { call, requests: self.requests(width, u64::from(call.0)), join, within: self.within(call) }
    }

    /// The longest wait for a group; `None` for a wait without a limit.
    fn within(&self, call: CallId) -> Option<Duration> {
        let mut random = Random::new(self.message.as_uuid().as_u64_pair().0 ^ (77 + u64::from(call.0)));
        random.once_in(4).then(|| Duration::from_secs(random.below(4) as u64))
    }

    fn requests(&self, width: usize, salt: u64) -> Vec<Emission> {
        let mut random = Random::new(self.message.as_uuid().as_u64_pair().0 ^ salt);
        (0..width).map(|_| call(&format!("q{}", random.below(LISTENERS)), random.below(3) as i64)).collect()
    }

    fn end(&self, ending: Ending) -> HandlerOutcome {
        let (own, n) = (self.listener, self.replies.abs() % 1_000_003);
        match ending {
            Ending::Reply => HandlerOutcome::Emitted(vec![reply(&format!("a{own}"), n)]),
            Ending::Call(width) => HandlerOutcome::Emitted(self.requests(width, 99)),
            Ending::Break => {
                let broken = xml(&format!("q{}", (own + 1) % LISTENERS), n).replace(&format!(">{n}<"), ">many<");
                HandlerOutcome::Emitted(vec![call_xml(&broken)])
            }
            Ending::Spawn => HandlerOutcome::Emitted(vec![spawn("q1", 0)]),
            Ending::Flood(width) => {
                let question = format!("<list-capabilities xmlns=\"{}\"/>", systole_core::vocab::ns::META);
                let questions = (0..width).map(|_| call_xml(&question));
                let after = std::time::Duration::ZERO;
                let go_on = || emission(EmissionKind::Continue { after }, &xml(&format!("q{own}"), 0));
                let emissions = self.requests(width, 98).into_iter().chain(questions);
                HandlerOutcome::Emitted(emissions.chain((0..width / 2).map(|_| go_on())).collect())
            }
            Ending::Continue(after) => {
                let after = std::time::Duration::from_secs(after);
                HandlerOutcome::Emitted(vec![emission(EmissionKind::Continue { after }, &xml(&format!("q{own}"), 0))])
            }
            Ending::Fail => HandlerOutcome::Failed(Failure { message: "no".into(), fault: None }),
            Ending::Nothing => HandlerOutcome::Emitted(Vec::new()),
        }
    }
}

/// The script for a request with so much left to do.
fn request(n: i64, random: &mut Random) -> Script {
    if n <= 0 {
        return match random.below(13) {
            0 => Script::End(Ending::Fail),
            4..7 => Script::End(Ending::Break),
            1 => Script::End(Ending::Nothing),
            2 => Script::Note,
            3 => Script::Think(random.below(60) as u64),
            _ => Script::End(Ending::Reply),
        };
    }
    let joins = [Join::All, Join::First, Join::Quorum(1), Join::Settled];
    match random.below(14) {
        0..3 => Script::Await {
            groups: 1 + random.below(2) as u32,
            width: 1 + random.below(3),
            join: joins[random.below(joins.len())],
        },
        3..6 => Script::Race { drop: random.once_in(2) },
        6..9 => Script::End(Ending::Call(1 + random.below(3))),
        9 => Script::End(Ending::Continue(random.below(3) as u64)),
        10 => Script::Note,
        11 | 12 => Script::Think(random.below(60) as u64),
        _ => Script::End(Ending::Spawn),
    }
}

/// The script for an answer that comes as a message.
fn answer(n: i64, last: bool, random: &mut Random) -> Script {
    match random.below(6) {
        0 if n > 0 => Script::Race { drop: false },
        1 => Script::Note,
        2 => Script::End(Ending::Continue(0)),
        _ if last => Script::End(Ending::Reply),
        _ => Script::End(Ending::Nothing),
    }
}
