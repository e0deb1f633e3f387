//! Layer 0: plain values, parsed once: those of XML, and the faults, limits and paths of the pump. No I/O, no clock.

mod amounts;
mod fault;
mod limits;
mod partition;
mod path;
mod trace;

pub use amounts::Amounts;
pub use fault::{BrokenRule, Fault, FaultCode, UnknownCode};
pub use limits::Limits;
pub use partition::{Partition, Partitions};
pub use path::ThreadPath;
pub use systole_xml::vocab::*;
pub use trace::{Sampler, Traceparent, span_id, span_of_run, span_of_thread, trace_of};

systole_xml::vocab::serialize_is_display!(FaultCode, ThreadPath);
