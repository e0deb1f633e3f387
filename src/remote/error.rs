use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use super::source::UnknownSource;
use crate::outbound::{Failure, OutboundError};

/// Why something could not be done at the gateway.
#[derive(thiserror::Error)]
pub enum RemoteError {
    /// The URL of the gateway can't be used.
    #[error("'{url}' is no URL of a gateway: {problem}; write http://HOST:PORT or https://HOST")]
    Url {
        /// The URL.
        url: String,
        /// What is wrong with it.
        problem: String,
    },
    /// The token can't be sent.
    #[error("the token is none: it is empty, or has characters that no token has")]
    Token,
    /// TLS or HTTP can't be set up.
    #[error(transparent)]
    Setup(#[from] OutboundError),
    /// No answer came, however often it was tried.
    #[error("{what}: {failure}")]
    Unanswered {
        /// The call.
        what: String,
        /// What happened to it.
        failure: Failure,
    },
    /// The gateway says no.
    #[error("{what}: {status} {code}: {detail}")]
    Refused {
        /// The call.
        what: String,
        /// The status of HTTP.
        status: u16,
        /// The code of the problem, or what HTTP calls the status.
        code: String,
        /// What the gateway says of it.
        detail: String,
        /// How long it wants to be left alone.
        retry_after: Option<Duration>,
    },
    /// What came is not what a gateway answers.
    #[error("{what}: the answer can't be used: {problem}")]
    Unusable {
        /// The call.
        what: String,
        /// What is wrong with it.
        problem: String,
    },
    /// The place in the mailbox can't be kept.
    #[error("the cursor can't be kept in {}: {cause}", .file.display())]
    Cursor {
        /// The file.
        file: PathBuf,
        /// What the system says.
        cause: io::Error,
    },
    /// A reply has nowhere to go.
    #[error(transparent)]
    Source(#[from] UnknownSource),
    /// Nothing can be listened to there.
    #[error("can't listen at {address}: {cause}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// What the system says.
        cause: io::Error,
    },
}

systole_core::vocab::debug_is_display!(RemoteError);

impl RemoteError {
    /// The status with which the gateway refused, if it did.
    pub fn status(&self) -> Option<u16> {
        if let Self::Refused { status, .. } = self { Some(*status) } else { None }
    }

    /// Whether nobody is known by the token any more.
    pub fn is_unauthorized(&self) -> bool {
        self.status() == Some(401)
    }

    /// Whether the gateway has said no once and for all: the same again would be refused again.
    pub(super) fn is_final(&self) -> bool {
        matches!(self.status(), Some(400 | 403 | 404 | 405 | 409 | 410 | 411 | 413 | 414 | 415 | 422 | 431))
    }

    /// Whether no answer came, which the connection of the agent has reported.
    pub fn is_unanswered(&self) -> bool {
        matches!(self, Self::Unanswered { .. })
    }

    /// Whether the mailbox is none for this agent, as long as the configuration of the organism stays as it is: it is
    /// another's, or its messages are pushed.
    pub(super) fn is_of_mailbox(&self) -> bool {
        matches!(self, Self::Refused { status, code, .. } if *status == 403 || code == "pushed")
    }

    pub(super) fn retry_after(&self) -> Option<Duration> {
        if let Self::Refused { retry_after, .. } = self { *retry_after } else { None }
    }
}
