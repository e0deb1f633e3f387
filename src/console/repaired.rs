//! The bytes of a message that had to be repaired, in three columns: as they came, after the repair, and as canonical XML.
//!
//! [Events](crate::core::Event) have the bytes as they came, 4 KiB of them at most, and are kept for a while. The other two are
//! made of them anew, by the rules with which the pump read them; what can't be made so is said.

use std::sync::Arc;

use maud::{Markup, html};
use systole_core::core::{Event, EventKind};
use systole_core::vocab::{MessageId, Name};
use systole_xml::ladder::repair::{Shape, Vocabulary};
use systole_xml::ladder::{Raw, Repair, RepairKind, mend, parse, parse_fragment};
use systole_xml::schema::Sendable;

use super::views::{pre, time};
use crate::gateway::pages::AppState;
use crate::operations::MessageRecord;
use crate::runtime::Observed;
use crate::terminal::Escaped;

/// Bytes of a text that an event has at most.
const KEPT: usize = 4096;
/// Most repairs that are listed by their places.
const LISTED: usize = 200;

/// A repair of bytes that became a message, or that its handler wrote.
struct Found {
    event: Arc<Event>,
    /// False for the bytes of the message itself, true for those that its handler wrote.
    is_answer: bool,
}

/// Bytes that came, as far as an event has them.
struct Came<'a> {
    by: &'a Name,
    repairs: &'a [Repair],
    text: &'a str,
    bytes: usize,
}

/// Writes the repairs of a message and of what its handler wrote, as far as events are kept.
pub(super) fn repairs(app: &AppState, id: MessageId, record: &MessageRecord) -> Markup {
    let found = found(app, id, record);
    html! {
        h2 { "Bytes" }
        @if found.is_empty() {
            p.soft { "No repair of this message, or of what its handler wrote, is among the events that are kept." }
        }
        @for Found { event, is_answer } in &found {
            @if let EventKind::Repaired { by, repairs, text, bytes, .. } = &event.kind {
                section.repaired {
                    p {
                        @if *is_answer { "Its handler wrote" } @else { "It was written" } " by " strong { (by) }
                        ", and repaired at " (time(Some(&event.at.to_string()))) ": "
                        (repairs.len()) @if repairs.len() == 1 { " change" } @else { " changes" }
                    }
                    (columns(app, &Came { by, repairs, text, bytes: *bytes }, Some(record).filter(|_| !is_answer)))
                }
            }
        }
    }
}

/// The repairs of a message among the events. One that a handler emitted was written in the step that placed it.
fn found(app: &AppState, id: MessageId, record: &MessageRecord) -> Vec<Found> {
    let mut events = app.organism().events_after(0);
    let all = std::iter::from_fn(|| events.as_mut()?.try_next());
    let answered = record.in_reply_to.as_deref().and_then(|id| id.parse::<MessageId>().ok());
    all.filter_map(|observed| {
        let Observed::Event(event) = observed else { return None };
        let EventKind::Repaired { by, message, .. } = &event.kind else { return None };
        let is_sender = record.from.as_deref() == Some(by.as_str());
        let is_placed = event.root.to_string() == record.conversation && event.at.to_string() == record.at;
        let is_own = is_sender && (*message == id || Some(*message) == answered || is_placed);
        let is_answer = *message == id && !is_own;
        (is_own || is_answer).then_some(Found { is_answer, event })
    })
    .collect()
}

/// Writes the three columns. `record`: the message that the bytes became.
fn columns(app: &AppState, came: &Came, record: Option<&MessageRecord>) -> Markup {
    // Bytes that are no UTF-8 are shown by other ones.
    let is_text = !came.repairs.iter().any(|repair| repair.kind == RepairKind::Encoding);
    let is_whole = came.bytes <= KEPT && came.text.len() == came.bytes && is_text;
    let made = is_whole.then(|| read(app, came)).flatten();
    let canonical =
        record.map(|record| record.text.clone()).or_else(|| made.as_ref().map(|(_, canonical)| canonical.clone()));
    let unkept = |what: &str| {
        let kept = match came.bytes > KEPT {
            true => format!("the event has the first 4 KiB of {} bytes", came.bytes),
            false => "the bytes are no UTF-8, or the contract has changed since".to_owned(),
        };
        format!("{what} can't be made of what is kept: {kept}.")
    };
    html! {
        div.three {
            div { h3 { "As it came, " (came.bytes) " bytes" } (marked(came.text, if is_text { came.repairs } else { &[] }))
                @if !is_whole { p.soft { (unkept("More")) } }
                @if !is_text { p.soft { "The places of the changes are those of the original bytes, so nothing is marked here." } }
            }
            div {
                h3 { "After the repair" }
                @match &made { Some((repaired, _)) => (pre(repaired)), None => p.soft { (unkept("The repaired bytes")) } }
            }
            div {
                h3 { "Canonical" }
                @match &canonical { Some(canonical) => (pre(canonical)), None => p.soft { (unkept("The canonical XML")) } }
            }
        }
        ul.chips {
            @for repair in came.repairs.iter().take(LISTED) {
                li.chip { (repair.at.line) ":" (repair.at.column) " " (repair.kind.as_str()) }
            }
            @if came.repairs.len() > LISTED { li { "and " (came.repairs.len() - LISTED) " more" } }
        }
    }
}

/// Reads whole bytes as the pump did: those after the repair, and the canonical XML. None if that comes to other repairs.
fn read(app: &AppState, came: &Came) -> Option<(String, String)> {
    let (blueprint, catalog) = (app.organism().blueprint(), app.organism().catalog());
    let (raw, limits) = (Raw::new(came.text.to_owned()), &blueprint.limits.xml);
    let contract = blueprint.listeners().map(|(_, contract)| contract).find(|contract| contract.name == *came.by);
    let (repaired, canonical) = match contract {
        Some(contract) => {
            let sendable = contract.replies.iter().chain(&contract.calls);
            let sendable = Sendable::new(contract.author, sendable, &catalog);
            let repaired = mend(&raw, Shape::Fragment, limits, &sendable).ok()?;
            let parts = parse_fragment(&raw, limits, &sendable).ok()?.elements;
            let canonical: Vec<_> = parts.iter().map(|part| part.as_str().to_owned()).collect();
            (repaired, canonical.join("\n"))
        }
        None => {
            let repaired = mend(&raw, Shape::Document, limits, &Vocabulary::default()).ok()?;
            (repaired, parse(&raw, limits).ok()?.as_str().to_owned())
        }
    };
    let text = String::from_utf8(repaired.bytes().to_vec()).ok()?;
    came.repairs.starts_with(repaired.repairs()).then_some((text, canonical))
}

/// Writes bytes with their repairs: each is marked where it was made, and named there.
fn marked(text: &str, repairs: &[Repair]) -> Markup {
    let (mut at, mut parts) = (0, Vec::new());
    let mut repairs: Vec<_> = repairs.iter().collect();
    repairs.sort_by_key(|repair| (repair.span.start, repair.span.end));
    for repair in repairs {
        let (start, end) = (repair.span.start.max(at), repair.span.end.max(at).min(text.len()));
        // A repair behind what is kept, or within one of before.
        let (Some(before), Some(changed)) = (text.get(at..start), text.get(start..end)) else { continue };
        parts.push((before, Some((repair, changed))));
        at = end;
    }
    parts.push((text.get(at..).unwrap_or_default(), None));
    html! {
        pre tabindex="0" {
            @for (before, repair) in &parts {
                (Escaped::text(before))
                @if let Some((repair, changed)) = repair {
                    mark title={ (repair.at.line) ":" (repair.at.column) " " (repair.kind.as_str()) } {
                        (Escaped::text(changed)) small { (repair.kind.as_str()) }
                    }
                }
            }
        }
    }
}
