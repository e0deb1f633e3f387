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
pub(in crate::gateway) struct Told {
    pub(in crate::gateway) token: NoticeToken,
    pub(in crate::gateway) ids: Vec<String>,
    pub(in crate::gateway) at: Time,
    confirmed: bool,
}

/// A session, while the process lives.
#[derive(Debug)]
pub(super) struct Session {
    pub(super) id: SessionId,
    heard: Time,
    told: VecDeque<Told>,
}

impl Session {
    pub(super) fn begin(now: Time) -> Self {
        Self { id: SessionId::draw(), heard: now, told: VecDeque::new() }
    }

    pub(super) fn hear(&mut self, now: Time) {
        self.heard = self.heard.max(now);
    }

    /// Time of expiry, unless the session calls before.
    pub(super) fn lapses(&self) -> Time {
        self.heard.after(SILENCE)
    }

    /// Rows that the session may get now.
    pub(super) fn room(&self) -> usize {
        let waiting: usize = self.unconfirmed().map(|told| told.ids.len()).sum();
        ROWS.saturating_sub(waiting)
    }

    pub(super) fn unconfirmed(&self) -> impl Iterator<Item = &Told> {
        self.told.iter().filter(|told| !told.confirmed)
    }

    pub(super) fn tell(&mut self, token: NoticeToken, ids: Vec<String>, at: Time) {
        self.told.push_back(Told { token, ids, at, confirmed: false });
    }

    pub(super) fn knows(&self, token: NoticeToken) -> bool {
        self.told.iter().any(|told| told.token == token)
    }

    pub(super) fn confirm(&mut self, token: NoticeToken) {
        self.told.iter_mut().filter(|told| told.token == token).for_each(|told| told.confirmed = true);
        if self.told.iter().filter(|told| told.confirmed).count() > CONFIRMED
            && let Some(oldest) = self.told.iter().position(|told| told.confirmed)
        {
            self.told.remove(oldest);
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
            session.tell(token, vec!["a".into(), "b".into()], Time::default());
            assert_eq!(session.room(), ROWS - 2);
            session.confirm(token);
        }
        assert_eq!((session.room(), session.unconfirmed().count()), (ROWS, 0));
        assert!(!session.knows(tokens[0]) && session.knows(tokens[1]) && session.knows(tokens[CONFIRMED]));
    }
}
