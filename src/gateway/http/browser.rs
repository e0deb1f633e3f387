//! A browser that is signed in at the console: its cookie, and the links that sign one in.
//!
//! A cookie is a statement of this gateway with a seal (a keyed hash): who signed in, and until when. So nothing has to be kept, and a
//! browser stays signed in over a restart. It carries the hash of the token, never the token, and is good for as long as that
//! token is.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use axum::http::HeaderMap;
use axum::http::header::COOKIE as COOKIE_FIELD;
use blake3::Hash;
use systole_core::vocab::Time;
use systole_store::principal::TokenHash;
use systole_store::token::Token;

/// The time for which a link can be opened.
const OPENS: Duration = Duration::from_secs(600);
/// The name of the cookie.
pub(super) const COOKIE: &str = "systole_console";
/// The token hash of a statement without one: of a link.
const NO_TOKEN: TokenHash = TokenHash([0; 32]);

/// The first segments of the paths of the console.
const PATHS: [&str; 19] = [
    "",
    "act",
    "acts",
    "check",
    "console.css",
    "console.js",
    "console.svg",
    "conversations",
    "dead-letters",
    "listeners",
    "live",
    "login",
    "logout",
    "mailboxes",
    "messages",
    "models",
    "questions",
    "tasks",
    "threads",
];

/// Returns whether a path is one of the console, where a cookie is good.
pub(super) fn is_page(path: &str) -> bool {
    PATHS.contains(&path.trim_start_matches('/').split('/').next().unwrap_or_default())
}

/// The secret of statements, and the links that were opened.
pub(in crate::gateway) struct Link {
    key: [u8; 32],
    /// The key of links, of this start alone: what was opened before is not known to a later one.
    links: [u8; 32],
    opened: Mutex<HashMap<[u8; 32], Time>>,
}

impl fmt::Debug for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Link(..)")
    }
}

impl Link {
    /// The links of an organism with that secret.
    pub(in crate::gateway) fn new(secret: &[u8; 32]) -> Self {
        let key = blake3::derive_key("systole gateway 2026 console", secret);
        Self { key, links: Token::draw().hash().0, opened: Mutex::default() }
    }

    /// The path and query of a link that signs an operator in once, within ten minutes.
    pub(in crate::gateway) fn make(&self, now: Time) -> String {
        format!("/login?link={}", self.statement("link", now.after(OPENS), &Token::draw().hash().0))
    }

    /// Takes a link; each is taken once.
    pub(super) fn open(&self, link: &str, now: Time) -> bool {
        let Some((until, number)) = self.read("link", link) else { return false };
        let mut opened = self.opened.lock().unwrap_or_else(PoisonError::into_inner);
        opened.retain(|_, until| *until > now);
        until > now && opened.insert(number, until).is_none()
    }

    /// The value of a cookie that signs a browser in until then: by a token, or as an operator.
    pub(super) fn cookie(&self, token: Option<TokenHash>, until: Time) -> String {
        self.statement("cookie", until, &token.unwrap_or(NO_TOKEN).0)
    }

    /// The token of a browser that is signed in, if it signed in by one, and the end of that.
    pub(super) fn signed_in(&self, headers: &HeaderMap) -> Option<(Option<TokenHash>, Time)> {
        let cookies = headers.get_all(COOKIE_FIELD).iter().filter_map(|field| field.to_str().ok());
        let mut pairs = cookies.flat_map(|field| field.split(';')).filter_map(|pair| pair.trim().split_once('='));
        let (_, statement) = pairs.find(|(name, _)| *name == COOKIE)?;
        let (until, token) = self.read("cookie", statement)?;
        let token = TokenHash(token);
        Some(((token != NO_TOKEN).then_some(token), until))
    }

    /// Writes a statement: kind, end, contents and seal.
    fn statement(&self, kind: &str, until: Time, contents: &[u8; 32]) -> String {
        let body = format!("{:016x}.{}", until.as_nanos(), Hash::from_bytes(*contents).to_hex());
        format!("{body}.{}", self.seal(kind, &body).to_hex())
    }

    fn seal(&self, kind: &str, body: &str) -> Hash {
        let key = if kind == "link" { &self.links } else { &self.key };
        blake3::keyed_hash(key, format!("{kind}.{body}").as_bytes())
    }

    /// Reads a statement of that kind.
    fn read(&self, kind: &str, text: &str) -> Option<(Time, [u8; 32])> {
        let (body, seal) = text.rsplit_once('.')?;
        // The comparison of hashes takes the same time for all.
        if Hash::from_hex(seal).ok()? != self.seal(kind, body) {
            return None;
        }
        let (until, contents) = body.split_once('.')?;
        let until = Time::from_nanos(u64::from_str_radix(until, 16).ok()?);
        Some((until, *Hash::from_hex(contents).ok()?.as_bytes()))
    }
}
