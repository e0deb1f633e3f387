//! Layer 0: plain values, parsed once: names, ids, positions, times and limits. No I/O, no clock.

mod budget;
mod display;
mod id;
mod limits;
mod millionths;
mod name;
#[doc(hidden)]
pub mod near;
pub mod ns;
mod qname;
mod setters;
mod span;
mod time;
mod unseen;

#[doc(hidden)]
pub use crate::{debug_is_display, serialize_is_display, setters};
pub use budget::{Budget, BudgetError};
pub use id::{IdKey, MessageId, ParseIdError, TaskId, ThreadId};
pub use limits::XmlLimits;
pub use millionths::{Millionths, NoDecimal};
pub use name::{Name, NameError};
pub(crate) use qname::{NAME_REST, NAME_START, is_name_char, is_name_start};
pub use qname::{QName, QNameError, is_ncname};
pub use span::{Position, Span};
pub use time::{Time, TimeError};
pub use unseen::{is_invisible, is_unseen, with_unseen};

serialize_is_display!(Name, QName, MessageId, TaskId, ThreadId, Time);
