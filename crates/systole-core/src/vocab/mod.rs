//! Layer 0: plain values, parsed once: those of XML, and the faults, limits and paths of the pump. No I/O, no clock.

mod amounts;
mod fault;
mod limits;
mod partition;
mod path;

pub use amounts::Amounts;
pub use fault::{BrokenRule, Fault, FaultCode};
pub use limits::Limits;
pub use partition::{Partition, Partitions};
pub use path::ThreadPath;
pub use systole_xml::vocab::*;

systole_xml::vocab::serialize_is_display!(FaultCode, ThreadPath);
