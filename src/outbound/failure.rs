//! Failures of attempts.

use std::error::Error;
use std::fmt;

use rustls::CertificateError;

use super::cause::Cause;
use crate::terminal::readable;

/// Failure of an attempt without a usable answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AttemptFailure {
    /// The kind of the failure.
    pub kind: FailureKind,
    /// The message; never empty.
    pub message: String,
}

/// Kinds of failures; the first ones are those of the transport.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum FailureKind {
    /// No connection: the name, TCP or TLS.
    Connect,
    /// No connection in time.
    ConnectTimeout,
    /// The request could not be written.
    Write,
    /// The connection took no byte of the body for too long.
    WriteTimeout,
    /// The answer could not be read.
    Read,
    /// No byte came for too long.
    ReadTimeout,
    /// The peer ended the connection before its answer was whole.
    Closed,
    /// The answer is not HTTP, or its body contradicts its head.
    Unparsable,
    /// The peer's runtime reported an error.
    PeerError,
    /// The answer is longer than the limit.
    AnswerTooLarge,
    /// The address is not allowed.
    AddressRefused,
    /// No secret to sign with.
    NoSecret,
    /// The request can't be made.
    Bug,
}

impl FailureKind {
    /// All kinds.
    pub const ALL: [Self; 13] = [
        Self::Connect,
        Self::ConnectTimeout,
        Self::Write,
        Self::WriteTimeout,
        Self::Read,
        Self::ReadTimeout,
        Self::Closed,
        Self::Unparsable,
        Self::PeerError,
        Self::AnswerTooLarge,
        Self::AddressRefused,
        Self::NoSecret,
        Self::Bug,
    ];

    /// Checks for a failure of the transport: only that is retried.
    pub fn is_transport(self) -> bool {
        self.ends_with().is_none()
    }

    /// Checks whether the peer has answered, though with nothing usable.
    pub(super) fn is_of_peer(self) -> bool {
        matches!(self, Self::Unparsable | Self::PeerError | Self::AnswerTooLarge)
    }

    /// The cause with which the failure ends a delivery; none if it doesn't.
    fn ends_with(self) -> Option<Cause> {
        match self {
            Self::Connect
            | Self::ConnectTimeout
            | Self::Write
            | Self::WriteTimeout
            | Self::Read
            | Self::ReadTimeout
            | Self::Closed => None,
            Self::Unparsable => Some(Cause::Unparsable),
            Self::PeerError => Some(Cause::PeerError),
            Self::AnswerTooLarge => Some(Cause::AnswerTooLarge),
            Self::AddressRefused => Some(Cause::AddressRefused),
            Self::NoSecret => Some(Cause::NoSecret),
            Self::Bug => Some(Cause::Bug),
        }
    }

    /// The likely reason, where no message is known.
    fn likely(self) -> &'static str {
        match self {
            Self::Connect => "the peer is probably down, or its name or port is wrong",
            Self::ConnectTimeout => "the peer is probably unreachable, or a firewall drops what is sent to it",
            Self::Write => "the peer probably ended the connection while it was sent the body",
            Self::WriteTimeout => "the peer probably hangs: it takes no more of the body",
            Self::Read => "the connection probably broke, or the peer was restarted",
            Self::ReadTimeout => "the peer probably still works on it, or hangs",
            Self::Closed => "the peer ended the connection, probably because it failed or was restarted",
            Self::Unparsable => "the peer probably speaks another protocol than HTTP",
            Self::PeerError => "the peer's runtime reported an error without a word: see its log",
            Self::AnswerTooLarge => "the peer probably sends another document than the answer",
            Self::AddressRefused => "the address is private",
            Self::NoSecret => "the target is probably no longer registered",
            Self::Bug => "this is probably a mistake in the program",
        }
    }
}

impl AttemptFailure {
    /// Makes a failure; an empty message is replaced by the kind and a likely reason.
    pub fn new(kind: FailureKind, message: impl Into<String>) -> Self {
        let message = readable(&message.into());
        let message = if message.is_empty() { format!("{kind:?}: {}", kind.likely()) } else { message };
        Self { kind, message }
    }

    /// Makes a failure of an error: the message is that of the innermost source that has one, with the remedy if it is one of
    /// TLS.
    pub(crate) fn of(kind: FailureKind, error: &(dyn Error + 'static)) -> Self {
        let messages = chain(error).map(ToString::to_string);
        let message = messages.filter(|message| !message.trim().is_empty()).last().unwrap_or_default();
        match chain(error).find_map(tls_remedy) {
            Some(remedy) => Self::new(kind, format!("{message}: {remedy}")),
            None => Self::new(kind, message),
        }
    }

    /// The cause with which the failure ends a delivery; none if the delivery is retried.
    pub(super) fn ends_with(&self) -> Option<Cause> {
        self.kind.ends_with()
    }
}

impl fmt::Display for AttemptFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

/// The remedy of an error of TLS.
fn tls_remedy(error: &(dyn Error + 'static)) -> Option<&'static str> {
    // An error of the system holds one of TLS; it is no source of it.
    if let Some(held) = error.downcast_ref::<std::io::Error>().and_then(std::io::Error::get_ref) {
        return tls_remedy(held);
    }
    let error = error.downcast_ref::<rustls::Error>()?;
    Some(match error {
        rustls::Error::InvalidCertificate(invalid) => match invalid {
            CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
                "renew the certificate of the peer, or set the clock of this machine if that is wrong"
            }
            CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
                "set the clock of this machine, or wait for the time of the certificate"
            }
            CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
                "write a name of the certificate in the URL, or give the peer a certificate for this name"
            }
            _ => {
                "trust the root of the peer's certificate: add it to the certificates of the system, or name its file in SSL_CERT_FILE"
            }
        },
        rustls::Error::InvalidMessage(_) => "the peer speaks no TLS at this port: write http:// or another port",
        _ => return None,
    })
}

/// An error and its sources, outermost first.
pub(super) fn chain<'a>(error: &'a (dyn Error + 'static)) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    let mut next = Some(error);
    std::iter::from_fn(move || {
        let error = next?;
        next = error.source();
        Some(error)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_of_tls_names_its_remedy() {
        use rustls::Error as Tls;
        for (error, remedy) in [
            (Tls::InvalidCertificate(CertificateError::Expired), "renew the certificate"),
            (Tls::InvalidCertificate(CertificateError::NotValidYet), "set the clock"),
            (Tls::InvalidCertificate(CertificateError::NotValidForName), "a name of the certificate in the URL"),
            (Tls::InvalidCertificate(CertificateError::UnknownIssuer), "trust the root"),
            (Tls::InvalidMessage(rustls::InvalidMessage::InvalidContentType), "the peer speaks no TLS"),
        ] {
            let said = format!("{error}: ");
            for held in [std::io::Error::other(error.clone()), std::io::Error::other(std::io::Error::other(error))] {
                let message = AttemptFailure::of(FailureKind::Connect, &held).message;
                assert!(message.starts_with(&said) && message.contains(remedy), "{message}");
            }
        }
        let other = std::io::Error::other(Tls::HandshakeNotComplete);
        assert_eq!(AttemptFailure::of(FailureKind::Connect, &other).message, Tls::HandshakeNotComplete.to_string());
    }

    #[test]
    fn an_empty_message_becomes_the_kind_and_a_likely_reason() {
        for kind in FailureKind::ALL {
            let message = AttemptFailure::new(kind, " \n").message;
            assert!(message.starts_with(&format!("{kind:?}: ")) && message.len() > 20, "{message}");
        }
        assert_eq!(
            AttemptFailure::of(FailureKind::Read, &std::io::Error::other("")).message,
            AttemptFailure::new(FailureKind::Read, "").message
        );
        assert_eq!(AttemptFailure::of(FailureKind::Read, &std::io::Error::other("torn")).message, "torn");
    }
}
