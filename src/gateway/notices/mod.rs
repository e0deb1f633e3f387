//! Notices: messages that wait for a client ride on the responses to its calls, so that a client that can't be called
//! and doesn't poll gets them anyway.
//!
//! A client calls in a session. After a call has succeeded, a [`QueueDelegate`] is asked once for what is pending; its
//! rows are spliced in front of the response's content. The session holds them until it confirms them by their token.
//!
//! - A row is held by one session at a time, and comes until it is confirmed: again under a new token once its session
//!   has ended, has been silent for 120 s, or the process has ended.
//! - Whatever error a delegate makes, the response goes out as if nothing were pending, byte for byte.
//! - No row can say that the notices end, or that others begin: see [`splice`](fn@splice::splice).
//!
//! Not here: the calls over HTTP, which are the gateway's; `docs/notices.md` has them.

mod ask;
mod delegate;
mod mailbox;
mod scan;
mod session;
mod sessions;
mod splice;

pub(super) use ask::DelegateFailure;
pub use delegate::{
    Block, BoxFuture, Call, DelegateError, NoticeLimits, NoticeToken, QueueDelegate, QueueRead, Row, SessionId,
};
pub(super) use mailbox::MailboxDelegate;
pub(super) use scan::tokens;
pub(super) use session::{NoticeBatch, SESSIONS, name};
pub(super) use sessions::Sessions;
pub(super) use splice::splice;
