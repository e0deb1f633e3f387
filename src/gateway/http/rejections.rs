//! Requests that the gateway rejects, told to operators: each is counted, and an event within bounds, so that a flood of
//! them leaves other events in the ring.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::Response;
use systole_core::core::{Event, EventKind};
use systole_core::vocab::{Name, ThreadPath, Time};
use systole_store::token::PREFIX;

use super::AppState;
use crate::gateway::problem::Rejection;
use crate::terminal::shorten;

/// Most events in an interval: a flood of a day leaves others in the ring for hours.
const TOLD: (u32, Duration) = (32, Duration::from_secs(60));
/// Most characters of a path, and of a reason, in an event.
const SHOWN: usize = 256;

/// The principal of a request, among the extensions of its response.
#[derive(Clone)]
pub(super) struct Principal(pub(super) Name);

/// The requests that were rejected since the start.
#[derive(Debug, Default)]
pub(super) struct Rejections(Mutex<Counts>);

#[derive(Debug, Default)]
struct Counts {
    /// By status and code.
    all: BTreeMap<(u16, &'static str), u64>,
    /// Begin of the interval, and the events in it.
    begun: Time,
    told: u32,
    /// Requests since the last event that have none.
    untold: u64,
}

impl Rejections {
    /// The counts by status and code.
    pub(super) fn all(&self) -> BTreeMap<(u16, &'static str), u64> {
        self.counts().all.clone()
    }

    /// Counts a request; returns the number of those before it without an event, if this one has one.
    fn count(&self, of: (u16, &'static str), now: Time) -> Option<u64> {
        let mut counts = self.counts();
        *counts.all.entry(of).or_default() += 1;
        let (most, interval) = TOLD;
        if now.since(counts.begun) >= interval {
            (counts.begun, counts.told) = (now, 0);
        }
        if counts.told == most {
            counts.untold += 1;
            return None;
        }
        counts.told += 1;
        Some(std::mem::take(&mut counts.untold))
    }

    fn counts(&self) -> MutexGuard<'_, Counts> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Tells of a request if it is rejected.
pub(super) async fn tell(State(app): State<Arc<AppState>>, request: Request, next: Next) -> Response {
    // A query may hold what belongs to the caller alone.
    let call = format!("{} {}", request.method(), request.uri().path());
    let response = next.run(request).await;
    let Some(Rejection { code, detail }) = response.extensions().get() else { return response };
    let status = response.status().as_u16();
    let now = app.mailboxes.now();
    if let Some(untold) = app.edge.rejections.count((status, code), now) {
        let by = response.extensions().get::<Principal>().map(|principal| principal.0.clone());
        let kind = EventKind::Rejected {
            by,
            call: shorten(&masked(&call), SHOWN).into(),
            status,
            code,
            reason: shorten(&masked(detail), SHOWN).into(),
            untold,
        };
        app.organism.report(Event::of_none(ThreadPath::new(Vec::new()), now, kind));
    }
    response
}

/// Takes tokens out of a text, which a client may have put where none belongs.
fn masked(text: &str) -> String {
    let mut parts = text.split(PREFIX);
    let mut masked = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        masked += PREFIX;
        masked += "…";
        masked += part.trim_start_matches(|c: char| c.is_ascii_alphanumeric());
    }
    masked
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_token_is_shown() {
        assert_eq!(masked("GET /v1/messages/syt_09af?x=syt_1 z"), "GET /v1/messages/syt_…?x=syt_… z");
        assert_eq!(masked("GET /v1"), "GET /v1");
    }

    #[test]
    fn a_flood_is_counted_and_told_within_bounds() {
        let rejections = Rejections::default();
        let now = Time::default().after(Duration::from_secs(99));
        let told = (0..1000).filter(|_| rejections.count((401, "unauthorized"), now).is_some()).count();
        assert_eq!(told, 32);
        let later = now.after(Duration::from_secs(60));
        assert_eq!(rejections.count((422, "broken"), later), Some(968), "the first one behind tells of the others");
        assert_eq!(rejections.count((422, "broken"), later), Some(0));
        assert_eq!(rejections.all(), [((401, "unauthorized"), 1000), ((422, "broken"), 2)].into());
    }
}
