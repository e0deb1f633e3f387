//! Values of the core as the journal has them, and back.

use bytes::Bytes;
use systole_xml::ladder::{Canonical, Raw, parse};
use systole_xml::schema::Draft;

use super::faults;
use super::io::{Emission, Join, Settled};
use crate::journal::{AnswerRecord, RequestRecord, SettledRecord};
use crate::vocab::{Fault, XmlLimits};

/// The requests of a handler, as far as a re-run must repeat them.
pub(super) fn requests_record(requests: &[Emission]) -> Vec<RequestRecord> {
    requests.iter().map(request_record).collect()
}

fn request_record(request: &Emission) -> RequestRecord {
    let (text, digest) = match &request.payload {
        Draft::Canonical(payload) => (excerpt(payload.as_str()), blake3::hash(payload.bytes())),
        Draft::Proved(payload) => {
            let payload = payload.payload();
            (excerpt(payload.as_str()), blake3::hash(payload.bytes()))
        }
        Draft::Unencodable(error) => written(error),
        Draft::NoEnvelope(error) => written(error),
    };
    RequestRecord { to: request.to.clone(), thread: request.thread, text, digest: digest.into() }
}

fn written(error: &dyn std::fmt::Display) -> (String, blake3::Hash) {
    let text = error.to_string();
    (excerpt(&text), blake3::hash(text.as_bytes()))
}

fn excerpt(text: &str) -> String {
    /// Bytes of a request that are kept, to be shown if a re-run asks something else.
    const EXCERPT: usize = 1024;
    let end = (0..=EXCERPT.min(text.len())).rev().find(|&end| text.is_char_boundary(end));
    text[..end.unwrap_or(0)].to_owned()
}

/// The rule by which a group of calls ends, as a word.
pub(super) fn join_word(join: Join) -> String {
    match join {
        Join::All => "all".to_owned(),
        Join::First => "first".to_owned(),
        Join::Settled => "settled".to_owned(),
        Join::Quorum(n) => n.to_string(),
    }
}

/// The rule of a word; `All` for any other word.
pub(super) fn join_of(word: &str) -> Join {
    match word {
        "first" => Join::First,
        "settled" => Join::Settled,
        word => word.parse().map_or(Join::All, Join::Quorum),
    }
}

pub(super) fn settled_record(settled: &Settled) -> SettledRecord {
    let outcome = match &settled.outcome {
        Ok(answer) => Ok(AnswerRecord { from: answer.from.clone(), payload: answer.payload.payload().bytes().clone() }),
        Err(fault) => Err(fault.clone()),
    };
    SettledRecord { index: settled.index, outcome }
}

pub(super) fn result_record(result: &Result<Vec<Settled>, Fault>) -> Result<Vec<SettledRecord>, Fault> {
    match result {
        Ok(settled) => Ok(settled.iter().map(settled_record).collect()),
        Err(fault) => Err(fault.clone()),
    }
}

/// Canonical bytes of the journal, parsed.
pub(super) fn stored(payload: Bytes) -> Result<Canonical, Fault> {
    parse(&Raw::new(payload), &XmlLimits::UNLIMITED).map_err(|error| faults::malformed(&error))
}
