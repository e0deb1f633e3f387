//! Rounds of a thread: its calls, and the answers that came to them.
//!
//! A thread that answers each answer with another call never ends by itself. So a request may take `turns` rounds, and
//! the same calls with the same answers may come `repeats` times while nothing new comes: neither another call, nor
//! another answer to a call that was made before. So a row of calls that turns in a circle ends, and a call that is
//! repeated between others that make progress, as a test between two changes, goes on. This binds what owes its caller
//! an answer, whoever speaks for it: a model, a program, an actor. It does not bind calls that a handler awaits, whose
//! code decides when it ends, nor a thread that goes on by itself: a continue begins the count anew, and a thread of
//! `<boot>` owes nothing.

use blake3::Hash;

use super::{Owner, Tree};
use crate::core::faults;
use crate::core::io::Body;
use crate::core::judge::Verdict;
use crate::core::key::ThreadKey;
use crate::core::queued::{ReplyTo, Sender};
use crate::vocab::Fault;

/// Different rounds that a thread knows, the latest ones: the longest circle that is seen.
const KNOWN: usize = 16;

/// The rounds of a thread since its second: most threads have no other than the first.
#[derive(Debug)]
pub(in crate::core) struct Rounds {
    /// The number of all rounds.
    count: u32,
    /// The round without all of its answers; none while calls are refused.
    present: Option<Round>,
    /// The rounds before, with how often each came since the last one that was new; the latest ones are last.
    known: Vec<(Round, u32)>,
}

/// Calls and their answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Round {
    asked: Hash,
    /// The answers so far, in any order.
    answered: u128,
}

impl Tree {
    /// Begins the round of a response without an answer. The fault that refuses it: it is one too many, or the calls are
    /// those that had the same answers before.
    pub(in crate::core) fn begin_round(&mut self, key: ThreadKey, verdicts: &[Verdict]) -> Result<(), Fault> {
        if !self.owes(key) {
            return Ok(());
        }
        if verdicts.iter().any(|verdict| matches!(verdict, Verdict::Continue { .. })) {
            self.threads[key].end_rounds();
            return Ok(());
        }
        if !verdicts.iter().any(Verdict::goes_on) {
            return Ok(());
        }
        let limits = &self.setup.blueprint.limits;
        let (turns, repeats) = (limits.turns, limits.repeats);
        let thread = &mut self.threads[key];
        let count = match &thread.extra {
            _ if !thread.has_called => 0,
            Some(extra) => extra.rounds.as_ref().map_or(1, |rounds| rounds.count),
            None => 1,
        };
        if count >= turns {
            return Err(faults::too_many_rounds(turns));
        }
        if !std::mem::replace(&mut thread.has_called, true) {
            return Ok(());
        }
        let asked = digest(verdicts);
        match &mut thread.extra.get_or_insert_default().rounds {
            none @ None => {
                let present = Some(Round { asked, answered: 0 });
                *none = Some(Box::new(Rounds { count: 2, present, known: Vec::new() }));
            }
            Some(rounds) => {
                rounds.settle();
                if rounds.known.iter().any(|(known, times)| known.asked == asked && *times >= repeats) {
                    return Err(faults::repeated(repeats));
                }
                (rounds.count, rounds.present) = (count.saturating_add(1), Some(Round { asked, answered: 0 }));
            }
        }
        Ok(())
    }

    /// Counts an answer to a call of the present round, by its place among the calls.
    pub(super) fn note_answer(&mut self, key: ThreadKey, index: u32, from: Sender, body: &Body) {
        let rounds = self.threads[key].extra.as_mut().and_then(|extra| extra.rounds.as_mut());
        let Some(round) = rounds.and_then(|rounds| rounds.present.as_mut()) else { return };
        let mut hash = blake3::Hasher::new();
        let from = self.setup.name_of(from);
        hash.update(&index.to_le_bytes()).update(from.as_str().as_bytes()).update(b"\n");
        match body {
            Body::Payload { payload, .. } => hash.update(payload.payload().bytes()),
            // Without the id of the message that it is about.
            Body::Fault(fault) => hash.update(fault.code.as_str().as_bytes()).update(fault.message.as_bytes()),
        };
        let half = hash.finalize().as_bytes().first_chunk::<16>().copied().unwrap_or_default();
        round.answered = round.answered.wrapping_add(u128::from_le_bytes(half));
    }

    /// Returns whether a thread owes its caller an answer.
    fn owes(&self, key: ThreadKey) -> bool {
        let thread = &self.threads[key];
        let parent = thread.parent.and_then(|parent| self.threads.get(parent));
        thread.reply_to != ReplyTo::None && parent.is_some_and(|parent| parent.owner != Owner::None)
    }
}

impl Rounds {
    /// Counts the present round, with the answers that it has. A new one is progress: the others are counted anew.
    fn settle(&mut self) {
        let Some(round) = self.present.take() else { return };
        let known = self.known.iter().position(|(known, _)| *known == round).map(|at| self.known.remove(at));
        if known.is_none() {
            self.known.iter_mut().for_each(|(_, times)| *times = 1);
            self.known.drain(..self.known.len().saturating_sub(KNOWN - 1));
        }
        self.known.push((round, known.map_or(1, |(_, times)| times.saturating_add(1))));
    }
}

/// A hash of calls, by their receivers and payloads. White space that a model changes makes no other call.
fn digest(verdicts: &[Verdict]) -> Hash {
    let mut hash = blake3::Hasher::new();
    for verdict in verdicts {
        let payload = match verdict {
            Verdict::Call { first, payload, .. } => {
                hash.update(&first.0.to_le_bytes());
                payload.payload()
            }
            Verdict::Addressed { payload, .. } | Verdict::Continue { payload, .. } | Verdict::Reply(payload) => {
                payload.payload()
            }
            Verdict::CloseThread { payload, .. } | Verdict::Core { payload, .. } | Verdict::Spawn { payload, .. } => {
                payload
            }
            Verdict::Refused(_) => continue,
        };
        hash.update(b"\0");
        for piece in payload.as_str().split(['<', '>']) {
            for word in piece.split_whitespace() {
                hash.update(word.as_bytes()).update(b" ");
            }
            hash.update(b"<");
        }
    }
    hash.finalize()
}
