//! Errors of an agent at its gateway.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use super::source::UnknownSource;
use crate::outbound::{AttemptFailure, OutboundError};

/// Reason why a call to the gateway failed.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum RemoteError {
    /// The URL of the gateway can't be used.
    #[error("'{url}' is no URL of a gateway: {problem}; write http://HOST:PORT or https://HOST")]
    Url {
        /// The URL.
        url: String,
        /// The problem of the URL.
        problem: String,
    },
    /// The token can't be sent.
    #[error("the token is empty, or has characters that no token has: make one with 'systole token new'")]
    Token,
    /// TLS or HTTP can't be set up.
    #[error(transparent)]
    Setup(#[from] OutboundError),
    /// No answer came, after all attempts.
    #[error("{what}: {failure}")]
    Unanswered {
        /// The call.
        what: String,
        /// The failure of the last attempt.
        failure: AttemptFailure,
    },
    /// The gateway refused the call.
    #[error("{what}: {status} {code}: {detail}")]
    Refused {
        /// The call.
        what: String,
        /// The status of HTTP.
        status: u16,
        /// The code of the problem, or the name of the status.
        code: String,
        /// The explanation of the gateway.
        detail: String,
        /// The wait that the gateway asks for.
        retry_after: Option<Duration>,
    },
    /// The answer is not one of a gateway.
    #[error("{what}: the answer can't be used: {problem}")]
    Unusable {
        /// The call.
        what: String,
        /// The problem of the answer.
        problem: String,
    },
    /// The cursor can't be written or read.
    #[error("the cursor can't be kept in {}: {cause}", .file.display())]
    Cursor {
        /// The file.
        file: PathBuf,
        /// The error of the system.
        cause: io::Error,
    },
    /// A reply has no receiver.
    #[error(transparent)]
    Source(#[from] UnknownSource),
    /// The address can't be bound.
    #[error("can't listen at {address}: {cause}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// The error of the system.
        cause: io::Error,
    },
}

systole_core::vocab::debug_is_display!(RemoteError);

impl RemoteError {
    /// The status of the refusal, if the gateway refused.
    pub fn status(&self) -> Option<u16> {
        if let Self::Refused { status, .. } = self { Some(*status) } else { None }
    }

    /// Checks whether the token is unknown.
    pub fn is_unauthorized(&self) -> bool {
        self.status() == Some(401)
    }

    /// Checks for a final refusal: the same call would be refused again.
    pub(super) fn is_final(&self) -> bool {
        matches!(self.status(), Some(400 | 403 | 404 | 405 | 409 | 410 | 411 | 413 | 414 | 415 | 422 | 431))
    }

    /// Checks whether the same call may succeed later: no answer came, or the gateway or a proxy before it was busy or down.
    pub(crate) fn may_pass(&self) -> bool {
        match self {
            Self::Unanswered { failure, .. } => failure.kind.is_transport(),
            _ => matches!(self.status(), Some(408 | 425 | 429 | 500 | 502 | 503 | 504)),
        }
    }

    /// Checks whether no answer came; the agent's connection has logged that.
    pub fn is_unanswered(&self) -> bool {
        matches!(self, Self::Unanswered { .. })
    }

    /// Checks whether the mailbox is not for this agent, as long as the configuration of the organism stays as it is:
    /// it belongs to another principal, or its messages are pushed.
    pub(super) fn is_of_mailbox(&self) -> bool {
        matches!(self, Self::Refused { status, code, .. } if *status == 403 || code == "pushed")
    }

    pub(super) fn retry_after(&self) -> Option<Duration> {
        if let Self::Refused { retry_after, .. } = self { *retry_after } else { None }
    }
}
