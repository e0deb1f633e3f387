//! A browser that is signed in at the console: its cookie, and the links that sign one in.
//!
//! A cookie is a statement of this gateway with a seal (a keyed hash): the session, who signed in, and until when. It carries the
//! hash of the token, never the token, and is good for as long as that token is. So open sessions need not be kept, and outlast
//! a restart; those of a link, which no token can end, are sealed for one start. The sessions that were signed out are kept until
//! their ends, and are acts in the journal.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use axum::http::HeaderMap;
use axum::http::header::COOKIE;
use blake3::Hash;
use systole_core::vocab::{Name, Time};
use systole_store::principal::TokenHash;
use systole_store::token::Token;
use tokio::sync::OnceCell;

use super::AppState;
use crate::gateway::problem::Problem;
use crate::journal::{KeptAct, QueryError};
use crate::operations::SIGN_OUT;

/// The time for which a link can be opened.
const OPENS: Duration = Duration::from_secs(600);
/// The time for which a browser is signed in.
pub(crate) const SIGNED_IN: Duration = Duration::from_secs(12 * 3600);
/// Acts that are read at once.
const ACTS: usize = 500;
/// Most sessions of one name that were signed out and whose time has not passed.
const SIGNED_OUT: usize = 1000;

/// The secret of statements, and the links that were opened.
pub(crate) struct Link {
    key: [u8; 32],
    /// The key of links and of the sessions that they open, of this start alone: what was opened before is not known to a later
    /// one.
    links: [u8; 32],
    opened: Mutex<HashMap<[u8; 32], Time>>,
    /// Name of the cookie. Cookies don't tell ports apart (RFC 6265, section 8.5), so each organism has a name of its own.
    cookie: String,
    /// Sessions that were signed out, until their ends; read from the journal once they are needed.
    over: OnceCell<Mutex<SignedOut>>,
}

/// Sessions that were signed out, with the names of who was signed in, and their ends.
type SignedOut = HashMap<SessionId, (Name, Time)>;

/// The id of a session.
pub(crate) type SessionId = [u8; 32];

/// A browser that is signed in.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Session {
    pub(crate) id: SessionId,
    /// The token that signed it in; none for a link.
    pub(crate) token: Option<TokenHash>,
    pub(crate) until: Time,
}

impl fmt::Debug for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Link(..)")
    }
}

impl Link {
    /// The links of an organism with that secret.
    pub(crate) fn new(secret: &[u8; 32]) -> Self {
        let key = blake3::derive_key("systole gateway 2026 console", secret);
        let name = blake3::derive_key("systole gateway 2026 console cookie", secret);
        let cookie = format!("systole_console_{}", &Hash::from_bytes(name).to_hex()[..16]);
        Self { key, links: Token::draw().hash().0, opened: Mutex::default(), cookie, over: OnceCell::new() }
    }

    /// The name of the cookie.
    pub(crate) fn cookie(&self) -> &str {
        &self.cookie
    }

    /// The path and query of a link that signs an operator in once, within ten minutes.
    pub(crate) fn make(&self, now: Time) -> String {
        format!("/login?link={}", self.statement("link", now.after(OPENS), &[Token::draw().hash().0]))
    }

    /// Takes a link; each is taken once.
    pub(crate) fn open(&self, link: &str, now: Time) -> bool {
        let Some((until, [number])) = self.read("link", link) else { return false };
        let mut opened = self.opened.lock().unwrap_or_else(PoisonError::into_inner);
        opened.retain(|_, until| *until > now);
        until > now && opened.insert(number, until).is_none()
    }

    /// The value of a cookie that signs a browser in until then: by a token, or as an operator.
    pub(crate) fn sign_in(&self, token: Option<TokenHash>, until: Time) -> String {
        let id = Token::draw().hash().0;
        match token {
            Some(TokenHash(token)) => self.statement("cookie", until, &[id, token]),
            None => self.statement("link-cookie", until, &[id]),
        }
    }

    /// The session of a browser that has signed in, unless it is over.
    pub(crate) async fn session(&self, app: &AppState, headers: &HeaderMap) -> Result<Option<Session>, QueryError> {
        for session in self.sessions(headers) {
            if !self.is_over(app, &session).await? {
                return Ok(Some(session));
            }
        }
        Ok(None)
    }

    /// The sessions that a browser names. It sends the cookies of all ports of a host, in any bytes (RFC 6265, section 5.4), and
    /// several of one name where their paths differ.
    fn sessions(&self, headers: &HeaderMap) -> impl Iterator<Item = Session> {
        let pairs = headers.get_all(COOKIE).iter().flat_map(|field| field.as_bytes().split(|byte| *byte == b';'));
        let values =
            pairs.filter_map(|pair| pair.trim_ascii().strip_prefix(self.cookie.as_bytes())?.strip_prefix(b"="));
        values.filter_map(|value| {
            let statement = str::from_utf8(value).ok()?;
            match self.read("cookie", statement) {
                Some((until, [id, token])) => Some(Session { id, token: Some(TokenHash(token)), until }),
                None => self.read("link-cookie", statement).map(|(until, [id])| Session { id, token: None, until }),
            }
        })
    }

    /// Returns whether a session is over: it was signed out, or its time has passed.
    pub(crate) async fn is_over(&self, app: &AppState, session: &Session) -> Result<bool, QueryError> {
        let over = self.over(app).await?.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(session.until <= app.mailboxes.now() || over.contains_key(&session.id))
    }

    /// Ends a session from now on. The journal gets it as an act.
    ///
    /// # Errors
    /// [`Problem`] if too many of that name are remembered, or those of before can't be read.
    pub(crate) async fn sign_out(&self, app: &AppState, by: &Name, session: &Session) -> Result<(), Problem> {
        let now = app.mailboxes.now();
        let mut over = self.over(app).await?.lock().unwrap_or_else(PoisonError::into_inner);
        over.retain(|_, (_, until)| *until > now);
        if over.values().filter(|(name, _)| name == by).count() >= SIGNED_OUT {
            let why = format!("{by} has signed out {SIGNED_OUT} times in 12 hours: revoke the token");
            return Err(Problem::too_many("sessions", why, 3600));
        }
        over.insert(session.id, (by.clone(), session.until));
        Ok(())
    }

    /// The sessions that were signed out, those before this start, too.
    async fn over(&self, app: &AppState) -> Result<&Mutex<SignedOut>, QueryError> {
        let read = async || {
            let (now, mut over, mut before) = (app.mailboxes.now(), HashMap::new(), None);
            loop {
                let (acts, has_more) = app.query.acts(before, ACTS).await?;
                let is_recent = |act: &&KeptAct| now.since(act.at) < SIGNED_IN;
                let recent = acts.iter().take_while(is_recent).filter(|act| &*act.record.act == SIGN_OUT);
                let id = |KeptAct { at, record, .. }: &KeptAct| {
                    let id = *Hash::from_hex(&*record.of).ok()?.as_bytes();
                    Some((id, (record.by.clone(), at.after(SIGNED_IN))))
                };
                over.extend(recent.filter_map(id));
                before = acts.last().filter(|act| has_more && is_recent(act)).map(|act| act.at);
                if before.is_none() {
                    return Ok(Mutex::new(over));
                }
            }
        };
        self.over.get_or_try_init(read).await
    }

    /// Writes a statement: kind, end, contents and seal.
    fn statement(&self, kind: &str, until: Time, contents: &[[u8; 32]]) -> String {
        let mut body = format!("{:016x}", until.as_nanos());
        for content in contents {
            body.push('.');
            body.push_str(&Hash::from_bytes(*content).to_hex());
        }
        let seal = self.seal(kind, &body).to_hex();
        body.push('.');
        body + seal.as_str()
    }

    fn seal(&self, kind: &str, body: &str) -> Hash {
        let key = if kind == "cookie" { &self.key } else { &self.links };
        blake3::keyed_hash(key, format!("{kind}.{body}").as_bytes())
    }

    /// Reads a statement of that kind.
    fn read<const N: usize>(&self, kind: &str, text: &str) -> Option<(Time, [[u8; 32]; N])> {
        let (body, seal) = text.rsplit_once('.')?;
        // The comparison of hashes takes the same time for all.
        if Hash::from_hex(seal).ok()? != self.seal(kind, body) {
            return None;
        }
        let mut parts = body.split('.');
        let until = Time::from_nanos(u64::from_str_radix(parts.next()?, 16).ok()?);
        let contents: Option<Vec<_>> = parts.map(|part| Some(*Hash::from_hex(part).ok()?.as_bytes())).collect();
        Some((until, contents?.try_into().ok()?))
    }
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    #[test]
    fn a_session_is_found_among_all_cookies_of_a_host() {
        let link = Link::new(&[7; 32]);
        let (name, until) = (link.cookie(), Time::from_nanos(7));
        let (by_token, by_link) = (link.sign_in(Some(TokenHash([3; 32])), until), link.sign_in(None, until));
        let tokens = |fields: &[String]| {
            let mut headers = HeaderMap::new();
            for field in fields {
                headers.append(COOKIE, HeaderValue::from_bytes(field.as_bytes()).unwrap());
            }
            link.sessions(&headers).map(|session| session.token.map(|token| token.0[0])).collect::<Vec<_>>()
        };
        assert_eq!(tokens(&[format!("name=Zo\u{eb}; {name}={by_token}; theme=\u{6697}")]), [Some(3)]);
        // Those of other organisms, and of other programs under the same name with a longer path.
        let other = Link::new(&[8; 32]);
        let theirs = format!("{}={}", other.cookie(), other.sign_in(None, until));
        assert_eq!(tokens(&[format!("{theirs};{name}=x; {name}=\u{eb}.; {name}={by_link}")]), [None]);
        assert_eq!(tokens(&[theirs.clone(), format!("{name}={by_link};{name}={by_token}")]), [None, Some(3)]);
        for none in
            [theirs, format!("{name}x={by_token}"), format!("x{name}={by_token}"), name.to_owned(), String::new()]
        {
            assert!(tokens(&[none]).is_empty());
        }
    }
}
