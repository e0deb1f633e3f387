//! Events as lines for people.

use std::fmt;

use systole::terminal::shorten;
use systole_core::core::{Event, EventKind, HandlerEnd};

/// Characters of a refused output in the line of its event; its JSON has all that is kept.
const SHOWN: usize = 400;

/// An event as text for people: conversation, thread path, event. The printer escapes it as one line.
#[derive(Debug)]
pub(super) struct EventLine<'a>(pub(super) &'a Event);

impl fmt::Display for EventLine<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Event { root, path, kind, .. } = self.0;
        if !matches!(
            kind,
            EventKind::Blocked { .. }
                | EventKind::Released { .. }
                | EventKind::Operated { .. }
                | EventKind::Fenced { .. }
                | EventKind::Rejected { .. }
        ) {
            let conversation = if f.alternate() { root.to_string() } else { root.short() };
            write!(f, "{conversation} {path} ")?;
        }
        match kind {
            EventKind::Injected { from, claimed, .. } => {
                write!(f, "injected by {from}")?;
                claimed.as_deref().map_or(Ok(()), |claimed| write!(f, ", who claimed to be {claimed}"))
            }
            EventKind::Delivered { from, payload: Some(payload), .. } => write!(f, "delivered {payload} from {from}"),
            EventKind::Delivered { from, payload: None, .. } => write!(f, "delivered a fault from {from}"),
            EventKind::Handled { outcome: HandlerEnd::Returned, .. } => f.write_str("its handler returned"),
            EventKind::Handled { outcome: HandlerEnd::Failed, .. } => f.write_str("its handler failed"),
            EventKind::Handled { outcome: HandlerEnd::Panicked, .. } => f.write_str("its handler panicked"),
            EventKind::Handled { .. } => f.write_str("its handler was dropped"),
            EventKind::Emitted { payload } => write!(f, "emitted {payload}"),
            EventKind::Repaired { by, repairs, text, .. } => {
                write!(f, "repaired what {by} wrote:")?;
                repairs.iter().try_for_each(|repair| write!(f, " {} {};", repair.at, repair.kind))?;
                write!(f, " {}", shorten(text, SHOWN))
            }
            EventKind::Forged { by, claimed, thread } => {
                write!(f, "{by} wrote an envelope that claims")?;
                let claims = [("to be from", claimed), ("the thread", thread)];
                let claims = claims.iter().filter_map(|(what, claim)| Some((what, claim.as_deref()?)));
                claims.into_iter().try_for_each(|(what, claim)| write!(f, " {what} {claim};"))
            }
            EventKind::Refused { by, output, fault } => {
                let output = shorten(output, SHOWN);
                write!(f, "refused what {by} wrote: {fault}: {output}")
            }
            EventKind::Unattended { by } => write!(f, "a question to {by} waits for people elsewhere"),
            EventKind::LeftOut { messages, why } => {
                write!(f, "left {messages} of its messages out of its context: {}", one_line(why))
            }
            EventKind::Summarized { messages, bytes } => {
                write!(f, "has a summary of {bytes} bytes in place of {messages} of its messages")
            }
            EventKind::Progress { by, text } => write!(f, "{by} goes on: {}", one_line(text)),
            EventKind::ProgramSaid { by, text } => {
                write!(f, "the program of {by} said: {}", shorten(&one_line(text), SHOWN))
            }
            EventKind::ModelWrites { by, text } => write!(f, "a model writes for {by}: {}", one_line(text)),
            EventKind::ModelFailed { by, backend, attempt, error, usage, .. } => {
                let error = shorten(&one_line(error), SHOWN);
                write!(f, "{backend} did not answer {by} (attempt {attempt}; charged: {usage}): {error}")
            }
            EventKind::ModelAnswered { by, backend, model, usage, text, .. } => {
                write!(f, "{model} at {backend} answered {by}: {usage}: {}", shorten(&one_line(text), SHOWN))
            }
            EventKind::Faulted { fault, misroute } => {
                write!(f, "fault {fault}")?;
                misroute.iter().try_for_each(|misroute| write!(f, " ({misroute})"))
            }
            EventKind::Spent { budget, spent } => write!(f, "spent {}", spent.of(budget)),
            EventKind::Opened { .. } => f.write_str("opened"),
            EventKind::Closed { cancelled: 0 } => f.write_str("closed"),
            EventKind::Closed { cancelled } => write!(f, "closed, {cancelled} queued messages cancelled"),
            EventKind::Left { payload, fault: None, .. } => write!(f, "left {payload}"),
            EventKind::Left { payload, fault: Some(code), .. } => write!(f, "left {payload} {code}"),
            EventKind::DeadLetter { payload: Some(payload), reason } => write!(f, "dead letter {payload}: {reason}"),
            EventKind::DeadLetter { payload: None, reason } => write!(f, "dead letter: {reason}"),
            EventKind::LetterDropped { number, .. } => {
                write!(f, "dead letter {number} is dropped, since later ones need its room (limits: dead_letters)")
            }
            EventKind::Operated { by, act, of, error } => {
                write!(f, "{by} did {act} {of}")?;
                error.iter().try_for_each(|error| write!(f, ", without effect: {error}"))
            }
            EventKind::Fenced { core } => {
                write!(
                    f,
                    "another process has taken partitions of core {core} over: their conversations are dropped here"
                )
            }
            EventKind::Rejected { by, call, status, code, reason, untold } => {
                let by = by.as_ref().map_or("a stranger", |by| by.as_str());
                write!(f, "rejected {call} of {by}: {status} {code}: {}", one_line(reason))?;
                if *untold > 0 { write!(f, " (and {untold} requests before it)") } else { Ok(()) }
            }
            EventKind::Blocked { listener, shard, took } => {
                write!(f, "{listener} has blocked the thread of shard {shard} for {took:.1?}")
            }
            EventKind::Released { listener, shard, took } => {
                write!(f, "{listener} has released the thread of shard {shard} after {took:.1?}")
            }
            _ => f.write_str("an event that this program does not know"),
        }
    }
}

/// A text with single spaces for all white space.
pub(super) fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use systole_core::vocab::{Amounts, Fault, FaultCode, Name, ThreadId, ThreadPath};
    use uuid::Uuid;

    use super::*;

    fn event(kind: EventKind) -> Event {
        let path =
            ThreadPath::new(vec![(Name::parse("researcher").unwrap(), 1), (Name::parse("calculator").unwrap(), 2)]);
        let [root, thread] = [0x67e5_5044, 7].map(|id| ThreadId::from_uuid(Uuid::from_u128(id)));
        Event::new((root, thread), path, "2030-01-02T03:04:05Z".parse().unwrap(), kind)
    }

    #[test]
    fn lines_name_conversation_and_path() {
        let delivered = event(EventKind::Delivered {
            message: systole_core::vocab::MessageId::from_uuid(Uuid::nil()),
            from: Name::parse("cli").unwrap(),
            in_reply_to: None,
            payload: Some("{urn:a}add".parse().unwrap()),
            attempts: Some(1),
        });
        assert_eq!(
            EventLine(&delivered).to_string(),
            "67e55044 root/researcher/calculator#2 delivered {urn:a}add from cli"
        );
        assert!(format!("{:#}", EventLine(&delivered)).starts_with("00000000-0000-0000-0000-000067e55044 root/"));
        let fault = event(EventKind::Faulted { fault: Fault::new(FaultCode::Failed, "why"), misroute: None });
        assert_eq!(EventLine(&fault).to_string(), "67e55044 root/researcher/calculator#2 fault failed: why");
    }

    #[test]
    fn what_was_spent_stands_beside_the_budget() {
        let (budget, spent) =
            ("calls=3".parse().unwrap(), Amounts { calls: 3, tokens: 40, threads: 2, ..Amounts::default() });
        let spent = event(EventKind::Spent { budget, spent });
        let line = "67e55044 root/researcher/calculator#2 spent 40 tokens, 3 of 3 calls, 2 threads";
        assert_eq!(EventLine(&spent).to_string(), line);
    }
}
