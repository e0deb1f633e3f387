//! Mistakes behind `route` faults, for operators.

use crate::vocab::Name;

/// The mistake behind a `route` fault. Its receiver reads the same text for all mistakes, so that it can't find out
/// the calls of other parties; operators read this.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Misroute {
    /// No listener accepts the payload.
    #[error("no listener accepts it")]
    NotAccepted,
    /// Only `addressed` listeners accept the payload, and none is named.
    #[error("the listeners that accept it are `addressed`: name one in <to>")]
    NotAddressed,
    /// `<to>` names no listener.
    #[error("<to> names no listener: there is no '{0}'")]
    UnknownListener(Name),
    /// `<to>` names a listener that does not accept the payload.
    #[error("'{0}', which <to> names, does not accept it")]
    NotAcceptedBy(Name),
    /// `<to>` can't be a name.
    #[error("<to> holds no name of a listener")]
    NoName,
    /// The route exists, but not for this sender.
    #[error("the `calls` of its sender don't list it")]
    NotInCalls,
    /// A reply that was not announced.
    #[error("the `replies` of its sender don't list it")]
    NotInReplies,
    /// A message to its own sender, which doesn't accept it.
    #[error("its sender continues with it, and does not accept it")]
    NotContinued,
    /// An address that is not one of the sender's threads.
    #[error("<thread> names no thread that its sender spawned and did not close")]
    UnknownThread,
    /// A thread of its own for several listeners.
    #[error("a spawned thread has one listener, and several would take it")]
    ManyListeners,
    /// A request that the core does not answer there.
    #[error("the core answers no such request there")]
    NoRequest,
}

impl Misroute {
    /// Returns whether the payload has a target which its sender may not call.
    pub fn is_denied(&self) -> bool {
        matches!(self, Self::NotInCalls)
    }
}
