//! Places in traces, as `traceparent` tells them between programs (W3C Trace Context), and the ids of the spans of
//! conversations.
//!
//! Ids are derived: a conversation is a trace under the id of its root, or of the caller that its message names, and each
//! thread and each run of a handler has a span whose id follows from those of the thread and the message. So an export long
//! after the fact, and other programs that were told of a span, agree.

use std::fmt;

use super::{MessageId, ThreadId};

/// A span in a trace: that of a caller elsewhere, or of the run of a handler here. As text it is a `traceparent` of version 00.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Traceparent {
    trace: [u8; 16],
    span: [u8; 8],
    is_sampled: bool,
}

/// The length of a `traceparent` of version 00.
const LENGTH: usize = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01".len();

impl Traceparent {
    /// Parses a `traceparent` (W3C Trace Context, section 3.2); none if it is malformed, or of a version that can't be read as
    /// 00.
    pub fn parse(text: &str) -> Option<Self> {
        let (known, later) = text.split_at_checked(LENGTH)?;
        let mut parts = known.split('-');
        let [version] = bytes_of(parts.next()?)?;
        let (trace, span, [flags]) = (bytes_of(parts.next()?)?, bytes_of(parts.next()?)?, bytes_of(parts.next()?)?);
        // Later versions may append fields.
        let is_readable = match version {
            0 => later.is_empty(),
            0xff => false,
            _ => later.is_empty() || later.starts_with('-'),
        };
        let is_valid = is_readable && parts.next().is_none() && trace != [0; 16] && span != [0; 8];
        is_valid.then_some(Self { trace, span, is_sampled: flags & 1 == 1 })
    }

    /// Returns the id of the trace.
    pub fn trace(&self) -> [u8; 16] {
        self.trace
    }

    /// Returns the id of the span.
    pub fn span(&self) -> [u8; 8] {
        self.span
    }
}

impl fmt::Display for Traceparent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { trace, span, is_sampled } = self;
        let (trace, span) = (u128::from_be_bytes(*trace), u64::from_be_bytes(*span));
        write!(f, "00-{trace:032x}-{span:016x}-{:02x}", u8::from(*is_sampled))
    }
}

/// Reads hexadecimal digits, lower-case ones alone.
fn bytes_of<const N: usize>(text: &str) -> Option<[u8; N]> {
    let digits = text.as_bytes();
    let value = |digit: u8| match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        _ => None,
    };
    let mut bytes = [0; N];
    if digits.len() != 2 * N {
        return None;
    }
    for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
        *byte = value(pair[0])? << 4 | value(pair[1])?;
    }
    Some(bytes)
}

/// The id of the trace of a conversation: that of its caller, or of its root.
pub fn trace_of(root: ThreadId, caller: Option<Traceparent>) -> [u8; 16] {
    caller.map_or(*root.as_uuid().as_bytes(), |caller| caller.trace)
}

/// The id of the span of a thread.
pub fn span_of_thread(thread: ThreadId) -> [u8; 8] {
    span_id(&[b"thread", thread.as_uuid().as_bytes()])
}

/// The id of the span of a run of a handler.
pub fn span_of_run(thread: ThreadId, message: MessageId) -> [u8; 8] {
    span_id(&[b"run", thread.as_uuid().as_bytes(), message.as_uuid().as_bytes()])
}

/// The id of a span: a hash of what it is of.
pub fn span_id(of: &[&[u8]]) -> [u8; 8] {
    let mut hasher = blake3::Hasher::new();
    for part in of {
        hasher.update(part);
    }
    let mut id = [0; 8];
    id.copy_from_slice(&hasher.finalize().as_bytes()[..8]);
    id
}

/// The choice of conversations whose spans are recorded: all spans of a trace are, or none.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sampler {
    ratio: f64,
    follows: bool,
}

impl Sampler {
    /// Samples this part of the traces, from 0 to 1. `follows`: where a message has a caller, that decides.
    pub fn new(ratio: f64, follows: bool) -> Self {
        Self { ratio, follows }
    }

    /// Returns whether the spans of a conversation are recorded.
    pub fn samples(&self, root: ThreadId, caller: Option<Traceparent>) -> bool {
        if let Some(caller) = caller.filter(|_| self.follows) {
            return caller.is_sampled;
        }
        // As the sampler TraceIdRatioBased of OpenTelemetry's SDK for Rust decides.
        let low = (u128::from_be_bytes(trace_of(root, caller)) as u64) >> 1;
        self.ratio >= 1.0 || low < (self.ratio * (1_u64 << 63) as f64) as u64
    }

    /// The place of the run of a handler, for the programs that it asks.
    pub fn run(
        &self,
        root: ThreadId,
        caller: Option<Traceparent>,
        thread: ThreadId,
        message: MessageId,
    ) -> Traceparent {
        Traceparent {
            trace: trace_of(root, caller),
            span: span_of_run(thread, message),
            is_sampled: self.samples(root, caller),
        }
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    const CALLER: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    #[test]
    fn a_traceparent_is_read_as_the_recommendation_says() {
        for text in [CALLER, "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00"] {
            assert_eq!(Traceparent::parse(text).unwrap().to_string(), text);
        }
        // Unknown flags are not passed on, and a later version is read as 00.
        for other in [
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-03",
            "cc-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            "cc-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-what-the-future-holds",
        ] {
            assert_eq!(Traceparent::parse(other).unwrap().to_string(), CALLER, "{other}");
        }
    }

    #[test]
    fn a_malformed_traceparent_is_none() {
        let long = format!("{CALLER}{}", "a".repeat(1 << 20));
        for text in [
            "",
            "00",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-0",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-x",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01.",
            "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            "cc-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01.x",
            "00-4BF92F3577B34DA6A3CE929D0E0E4736-00F067AA0BA902B7-01",
            "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
            "00-4bf92f3577b34da6a3ce929d0e0e473600-f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e473é-00f067aa0ba902b7-01",
            "00_4bf92f3577b34da6a3ce929d0e0e4736_00f067aa0ba902b7_01",
            "+0-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            &long,
        ] {
            assert_eq!(Traceparent::parse(text), None, "{text:.80}");
        }
    }

    #[test]
    fn a_caller_decides_what_is_sampled_where_the_sampler_follows_it() {
        let root = ThreadId::from_uuid(Uuid::from_u128(7));
        let sampled = Traceparent::parse(CALLER);
        let other = sampled.map(|caller| Traceparent { is_sampled: false, ..caller });
        for ratio in [0.0, 1.0] {
            let (following, own) = (Sampler::new(ratio, true), Sampler::new(ratio, false));
            assert_eq!((following.samples(root, sampled), following.samples(root, other)), (true, false));
            assert_eq!(following.samples(root, None), ratio > 0.5);
            assert_eq!((own.samples(root, sampled), own.samples(root, other)), (ratio > 0.5, ratio > 0.5));
        }
    }
}
