//! Layer 0: the words every other layer uses. Plain values, parsed once; no I/O, no clock.

mod fault;
mod id;
mod legible;
mod limits;
mod name;
pub(crate) mod near;
pub mod ns;
mod path;
mod qname;
mod span;
mod time;

pub use fault::{BrokenRule, Fault, FaultCode};
pub use id::{IdKey, MessageId, ParseIdError, TaskId, ThreadId};
pub(crate) use legible::debug_is_display;
pub use limits::{Limits, XmlLimits};
pub use name::{Name, NameError};
pub use path::ThreadPath;
pub use qname::{QName, QNameError, is_ncname};
pub(crate) use qname::{is_name_char, is_name_start};
pub use span::{Position, Span};
pub use time::{Time, TimeError};
