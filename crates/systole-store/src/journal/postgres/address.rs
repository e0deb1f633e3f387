//! The address of a database: `postgres://USER@HOST/DATABASE`, as libpq writes it.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use tokio_postgres::Config;
use tokio_postgres::config::{Host, SslMode};
use url::Url;

/// Time for which one attempt to connect may last.
const CONNECT: Duration = Duration::from_secs(5);

/// Time without an answer of the other machine after which a connection counts as lost.
const SILENCE: Duration = Duration::from_secs(15);

/// The address of a database. Neither `Display` nor `Debug` shows its password.
#[derive(Clone)]
pub(super) struct Address {
    pub(super) config: Config,
    /// Certificates in PEM, beside the roots of the system.
    pub(super) roots: Option<PathBuf>,
    shown: String,
}

/// An address that can't be one of a journal.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AddressError {
    /// The text is no URL, or has an unknown parameter.
    #[error("{0}: write it as postgres://USER@HOST/DATABASE")]
    Malformed(String),
    /// The address names no database.
    #[error("it names no database: write it behind the host, as in postgres://USER@HOST/DATABASE")]
    NoDatabase,
    /// The mode of TLS would let a network read or change what is sent.
    #[error(
        "sslmode={0} may send everything in clear text, or to another server: write sslmode=verify-full, or \
         sslmode=disable for a network that is trusted"
    )]
    Tls(String),
}

impl Address {
    /// Reads the address of a database. The password may be in `PGPASSWORD` instead.
    pub(super) fn parse(text: &str, password: Option<String>) -> Result<Self, AddressError> {
        let mut url = Url::parse(text).map_err(|error| AddressError::Malformed(error.to_string()))?;
        if !matches!(url.scheme(), "postgres" | "postgresql") {
            return Err(AddressError::Malformed(format!("its scheme is {}", url.scheme())));
        }
        let (mut mode, mut roots, mut others) = (None, None, Vec::new());
        for (key, value) in url.query_pairs() {
            match &*key {
                "sslmode" => mode = Some(value.into_owned()),
                "sslrootcert" => roots = Some(PathBuf::from(value.into_owned())),
                _ => others.push((key.into_owned(), value.into_owned())),
            }
        }
        url.set_query(None);
        if !others.is_empty() {
            url.query_pairs_mut().extend_pairs(others);
        }
        let mut config: Config = url.as_str().parse().map_err(|error: tokio_postgres::Error| {
            let cause = std::error::Error::source(&error).map_or_else(|| error.to_string(), ToString::to_string);
            AddressError::Malformed(cause)
        })?;
        if config.get_dbname().is_none_or(str::is_empty) {
            return Err(AddressError::NoDatabase);
        }
        if let (None, Some(password)) = (config.get_password(), password) {
            config.password(password);
        }
        let is_here = config.get_hosts().iter().all(|host| match host {
            Host::Unix(_) => true,
            Host::Tcp(name) => matches!(&**name, "localhost" | "127.0.0.1" | "::1"),
        });
        config.ssl_mode(match mode.as_deref() {
            None if is_here => SslMode::Disable,
            Some("disable") => SslMode::Disable,
            None | Some("require" | "verify-full") => SslMode::Require,
            Some(other) => return Err(AddressError::Tls(other.to_owned())),
        });
        // Another machine that is gone without a word is noticed in time; the system's default is two hours.
        config.connect_timeout(CONNECT).keepalives(true).keepalives_idle(SILENCE / 3);
        config.keepalives_interval(SILENCE / 5).keepalives_retries(3).tcp_user_timeout(SILENCE);
        if config.get_application_name().is_none() {
            config.application_name("systole");
        }
        // A URL without a host has no password.
        let _ = url.set_password(None);
        url.set_query(None);
        Ok(Self { config, roots, shown: url.into() })
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.shown)
    }
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Address").field(&self.shown).finish()
    }
}

impl PartialEq for Address {
    fn eq(&self, other: &Self) -> bool {
        self.config == other.config && self.roots == other.roots
    }
}

impl Eq for Address {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_shown_nowhere_and_may_come_from_the_environment() {
        let written = Address::parse("postgres://ada:secret@db.example/work?connect_timeout=3", None).unwrap();
        assert_eq!(written.to_string(), "postgres://ada@db.example/work");
        assert!(!format!("{written:?}").contains("secret"), "{written:?}");
        assert_eq!(written.config.get_password(), Some(&b"secret"[..]));
        let given = Address::parse("postgres://ada@db.example/work", Some("other".to_owned())).unwrap();
        assert_eq!(given.config.get_password(), Some(&b"other"[..]));
    }

    #[test]
    fn another_machine_is_reached_by_tls_unless_the_address_says_otherwise() {
        let mode = |text: &str| Address::parse(text, None).map(|address| address.config.get_ssl_mode());
        assert_eq!(mode("postgres://db.example/work"), Ok(SslMode::Require));
        assert_eq!(mode("postgres://db.example/work?sslmode=verify-full"), Ok(SslMode::Require));
        assert_eq!(mode("postgres://db.example/work?sslmode=disable"), Ok(SslMode::Disable));
        assert_eq!(mode("postgres://localhost/work"), Ok(SslMode::Disable));
        assert_eq!(mode("postgres:///work?host=/run/postgresql"), Ok(SslMode::Disable));
        assert_eq!(mode("postgres://db.example/work?sslmode=prefer"), Err(AddressError::Tls("prefer".to_owned())));
    }

    #[test]
    fn an_address_names_a_database_and_nothing_unknown() {
        assert_eq!(Address::parse("postgres://db.example", None), Err(AddressError::NoDatabase));
        let unknown = Address::parse("postgres://db.example/work?colour=red", None).unwrap_err();
        assert!(unknown.to_string().contains("colour"), "{unknown}");
    }
}
