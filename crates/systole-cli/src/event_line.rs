//! Events as lines: for people, and as JSON for programs.

use std::fmt;
use std::time::Duration;

use serde_json::{Map, Value, json};
use systole::terminal::shorten;
use systole_core::core::{Event, EventKind, Misroute};
use systole_core::vocab::{Amounts, Budget, Fault, Name};

/// Characters of a refused output in the line of its event; its JSON has all that is kept.
const SHOWN: usize = 400;

/// An event as text for people: conversation, thread path, event. The printer escapes it as one line.
#[derive(Debug)]
pub(super) struct EventLine<'a>(pub(super) &'a Event);

impl fmt::Display for EventLine<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Event { root, path, kind, .. } = self.0;
        if !matches!(kind, EventKind::Blocked { .. } | EventKind::Released { .. }) {
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
            EventKind::Emitted { payload } => write!(f, "emitted {payload}"),
            EventKind::Repaired { by, repairs, text } => {
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
            EventKind::Unattended { by } => write!(f, "a question to {by} waits without a keyboard"),
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

/// An event as one JSON object: `event`, `at`, `root`, `thread`, `path` and the details of its kind.
pub(super) fn to_json(event: &Event) -> Value {
    let (name, details) = match &event.kind {
        EventKind::Injected { message, from, claimed } => {
            ("injected", json!({ "message": message.to_string(), "from": from.as_str(), "claimed": claimed }))
        }
        EventKind::Delivered { message, from, in_reply_to, payload, attempts } => (
            "delivered",
            json!({
                "message": message.to_string(),
                "from": from.as_str(),
                "in_reply_to": in_reply_to.map(|id| id.to_string()),
                "payload": payload.as_ref().map(ToString::to_string),
                "attempts": attempts,
            }),
        ),
        EventKind::Emitted { payload } => ("emitted", json!({ "payload": payload.to_string() })),
        EventKind::Repaired { by, repairs, text } => {
            let repairs: Vec<Value> = repairs
                .iter()
                .map(|repair| {
                    json!({ "line": repair.at.line, "column": repair.at.column, "kind": repair.kind.to_string() })
                })
                .collect();
            ("repaired", json!({ "by": by.as_str(), "repairs": repairs, "text": &**text }))
        }
        EventKind::Forged { by, claimed, thread } => {
            ("forged", json!({ "by": by.as_str(), "claimed": claimed, "claimed_thread": thread }))
        }
        EventKind::Refused { by, output, fault } => {
            ("refused", json!({ "by": by.as_str(), "output": &**output, "fault": fault_json(fault, None) }))
        }
        EventKind::Unattended { by } => ("unattended", json!({ "by": by.as_str() })),
        EventKind::LeftOut { messages, why } => ("left-out", json!({ "messages": messages, "why": &**why })),
        EventKind::Summarized { messages, bytes } => ("summarized", json!({ "messages": messages, "bytes": bytes })),
        EventKind::Progress { by, text } => ("progress", json!({ "by": by.as_str(), "text": &**text })),
        EventKind::ProgramSaid { by, text } => ("program-said", json!({ "by": by.as_str(), "text": &**text })),
        EventKind::ModelWrites { by, text } => ("model-writes", json!({ "by": by.as_str(), "text": &**text })),
        EventKind::ModelFailed { by, message, backend, attempt, error, usage } => (
            "model-failed",
            json!({
                "by": by.as_str(),
                "message": message.to_string(),
                "backend": &**backend,
                "attempt": attempt,
                "error": &**error,
                "usage": usage,
            }),
        ),
        EventKind::ModelAnswered { by, message, backend, model, usage, text } => (
            "model-answered",
            json!({
                "by": by.as_str(),
                "message": message.to_string(),
                "backend": &**backend,
                "model": &**model,
                "usage": usage,
                "text": &**text,
            }),
        ),
        EventKind::Faulted { fault, misroute } => ("fault", fault_json(fault, misroute.as_ref())),
        EventKind::Spent { budget, spent } => ("spent", budget_json(budget, spent)),
        EventKind::Opened { parent } => ("thread-opened", json!({ "parent": parent.map(|id| id.to_string()) })),
        EventKind::Closed { cancelled } => ("thread-closed", json!({ "cancelled": cancelled })),
        EventKind::Left { message, in_reply_to, payload, fault } => (
            "left",
            json!({
                "message": message.to_string(),
                "in_reply_to": in_reply_to,
                "payload": payload.to_string(),
                "fault": fault.map(|code| code.as_str()),
            }),
        ),
        EventKind::DeadLetter { payload, reason } => {
            ("dead-letter", json!({ "payload": payload.as_ref().map(ToString::to_string), "reason": reason.as_str() }))
        }
        EventKind::LetterDropped { number, payload, reason } => (
            "dead-letter-dropped",
            // As text: a number has more digits than JSON keeps everywhere.
            json!({
                "number": number.to_string(),
                "payload": payload.as_ref().map(ToString::to_string),
                "reason": reason.as_str(),
            }),
        ),
        EventKind::Blocked { listener, shard, took } => ("blocked", blocked_json(listener, *shard, *took)),
        EventKind::Released { listener, shard, took } => ("released", blocked_json(listener, *shard, *took)),
        _ => ("unknown", Value::Null),
    };
    let mut object = Map::new();
    object.insert("event".into(), name.into());
    object.insert("at".into(), event.at.to_string().into());
    object.insert("root".into(), event.root.to_string().into());
    object.insert("thread".into(), event.thread.to_string().into());
    object.insert("path".into(), event.path.to_string().into());
    if let Value::Object(details) = details {
        object.extend(details.into_iter().filter(|(_, value)| !value.is_null()));
    }
    Value::Object(object)
}

/// A text with single spaces for all white space.
pub(super) fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The amounts that were spent, each beside its bound where there is one.
pub(super) fn budget_json(budget: &Budget, spent: &Amounts) -> Value {
    let kind = |spent: Value, most: Option<Value>| json!({ "spent": spent, "most": most });
    json!({
        "tokens": kind(spent.tokens.into(), budget.tokens.map(Value::from)),
        "cost": kind(spent.cost.as_f64().into(), budget.cost.map(|cost| cost.as_f64().into())),
        "calls": kind(spent.calls.into(), budget.calls.map(Value::from)),
        "threads": kind(spent.threads.into(), budget.threads.map(Value::from)),
    })
}

fn blocked_json(listener: &Name, shard: u16, took: Duration) -> Value {
    json!({ "listener": listener.as_str(), "shard": shard, "ms": took.as_millis() as u64 })
}

fn fault_json(fault: &Fault, misroute: Option<&Misroute>) -> Value {
    let mut fields = json!({
        "code": fault.code.as_str(),
        "message": &*fault.message,
        "retryable": fault.retryable,
        "denied": misroute.map(Misroute::is_denied),
        "reason": misroute.map(ToString::to_string),
        "in_reply_to": fault.in_reply_to.map(|id| id.to_string()),
        "rule": fault.rule.as_ref().map(|rule| &rule.rule),
        "line": fault.rule.as_ref().and_then(|rule| rule.at).map(|at| at.line),
        "column": fault.rule.as_ref().and_then(|rule| rule.at).map(|at| at.column),
    });
    if let Value::Object(fields) = &mut fields {
        fields.retain(|_, value| !value.is_null());
    }
    fields
}

#[cfg(test)]
mod tests {
    use systole_core::vocab::{FaultCode, ThreadId, ThreadPath};
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
        let json = to_json(&spent);
        assert_eq!(json["calls"], json!({ "spent": 3, "most": 3 }));
        assert_eq!(json["tokens"], json!({ "spent": 40, "most": null }));
    }

    #[test]
    fn json_has_what_belongs_to_the_kind_and_no_nulls() {
        let dead = event(EventKind::DeadLetter { payload: None, reason: FaultCode::Route });
        assert_eq!(
            to_json(&dead).to_string(),
            r#"{"event":"dead-letter","at":"2030-01-02T03:04:05Z","root":"00000000-0000-0000-0000-000067e55044","thread":"00000000-0000-0000-0000-000000000007","path":"root/researcher/calculator#2","reason":"route"}"#
        );
    }
}
