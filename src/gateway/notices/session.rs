//! A session of a client, and the notices that it holds unconfirmed.

use std::collections::VecDeque;
use std::time::Duration;

use systole_core::vocab::Time;

use super::delegate::{NoticeToken, SessionId};

/// Longest silence of a session, before it expires.
pub(super) const SILENCE: Duration = Duration::from_secs(120);

/// Sessions of one principal at once.
pub(in crate::gateway) const SESSIONS: usize = 64;

/// Most rows that a session holds unconfirmed; past that it gets no more.
pub(super) const ROWS: usize = 1000;

/// Confirmed tokens that are still known, so that a repeated confirmation is no mistake.
const CONFIRMED: usize = 1000;

/// Longest name of a session, in bytes.
const NAME: usize = 64;

/// Checks the name of a session: 1 to 64 ASCII letters, digits, `_`, `-` and `.`, the first a letter or a digit.
pub(in crate::gateway) fn name(text: &str) -> Option<String> {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.');
    let first = text.bytes().next().is_some_and(|byte| byte.is_ascii_alphanumeric());
    (first && text.len() <= NAME && text.bytes().all(allowed)).then(|| text.to_owned())
}

/// The notices of one token.
#[derive(Debug, Clone)]
pub(in crate::gateway) struct NoticeBatch {
    pub(in crate::gateway) token: NoticeToken,
    pub(in crate::gateway) ids: Vec<String>,
    pub(in crate::gateway) at: Time,
    confirmed: bool,
}

/// A session, while the process lives.
#[derive(Debug)]
pub(super) struct Session {
    pub(super) id: SessionId,
    last_call: Time,
    batches: VecDeque<NoticeBatch>,
}

impl Session {
    pub(super) fn begin(now: Time) -> Self {
        Self { id: SessionId::draw(), last_call: now, batches: VecDeque::new() }
    }

    pub(super) fn touch(&mut self, now: Time) {
        self.last_call = self.last_call.max(now);
    }

    /// Time of expiry, unless the session calls before.
    pub(super) fn lapses(&self) -> Time {
        self.last_call.after(SILENCE)
    }

    /// Rows that the session may get now.
    pub(super) fn free_rows(&self) -> usize {
        let waiting: usize = self.unconfirmed().map(|batch| batch.ids.len()).sum();
        ROWS.saturating_sub(waiting)
    }

    pub(super) fn unconfirmed(&self) -> impl Iterator<Item = &NoticeBatch> {
        self.batches.iter().filter(|batch| !batch.confirmed)
    }

    pub(super) fn add(&mut self, token: NoticeToken, ids: Vec<String>, at: Time) {
        self.batches.push_back(NoticeBatch { token, ids, at, confirmed: false });
    }

    pub(super) fn knows(&self, token: NoticeToken) -> bool {
        self.batches.iter().any(|batch| batch.token == token)
    }

    pub(super) fn confirm(&mut self, token: NoticeToken) {
        self.batches.iter_mut().filter(|batch| batch.token == token).for_each(|batch| batch.confirmed = true);
        if self.batches.iter().filter(|batch| batch.confirmed).count() > CONFIRMED
            && let Some(oldest) = self.batches.iter().position(|batch| batch.confirmed)
        {
            self.batches.remove(oldest);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_a_bound_and_mean_nothing_in_a_path() {
        for good in ["a", "A-1_b.c", "0", &"x".repeat(64)] {
            assert_eq!(name(good).as_deref(), Some(good));
        }
        for bad in ["", ".", "..", "-a", "a/b", "a b", "é", "a\n", &"x".repeat(65)] {
            assert_eq!(name(bad), None, "{bad}");
        }
    }

    #[test]
    fn what_was_confirmed_is_known_for_a_while_and_takes_no_room() {
        let mut session = Session::begin(Time::default());
        let tokens: Vec<_> = (0..=CONFIRMED as u128).map(|n| NoticeToken::from_bytes(n.to_be_bytes())).collect();
        for &token in &tokens {
            session.add(token, vec!["a".into(), "b".into()], Time::default());
            assert_eq!(session.free_rows(), ROWS - 2);
            session.confirm(token);
        }
        assert_eq!((session.free_rows(), session.unconfirmed().count()), (ROWS, 0));
        assert!(!session.knows(tokens[0]) && session.knows(tokens[1]) && session.knows(tokens[CONFIRMED]));
    }
}
