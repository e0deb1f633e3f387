//! The payloads `<boot>` and `<fan-out-ended>`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use systole_xml::ladder::Canonical;

use super::typed::{display, written_by_hand};
use super::writer::Writer;
use crate::vocab::{QName, Time, ns};

/// The name of the payload with which every organism starts.
pub fn boot_qname() -> QName {
    core_qname("boot")
}

/// The name of the payload that reports the end of a fan-out.
pub fn fan_out_ended_qname() -> QName {
    core_qname("fan-out-ended")
}

pub(super) fn core_qname(local: &str) -> QName {
    QName::new(ns::CORE, local).expect("the names of the core are names")
}

/// The organism starts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Boot {
    /// The name of the organism.
    pub organism: String,
    /// The time of the start.
    #[serde(with = "display")]
    #[schemars(with = "String")]
    pub started: Time,
    /// The number of listeners.
    pub listeners: usize,
}

impl Boot {
    /// The payload. Characters in the name that XML can't carry become U+FFFD.
    pub fn write(&self) -> Canonical {
        Writer::new(ns::CORE, "boot")
            .element("organism", &self.organism)
            .element("started", &self.started.to_string())
            .element("listeners", &self.listeners.to_string())
            .finish()
    }
}

/// The end of a fan-out whose last outcome was no message: no call is open any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FanOutEnded {
    /// The number of calls of the fan-out.
    pub total: u32,
}

/// The payload `<fan-out-ended>`.
pub fn write_fan_out_ended(total: u32) -> Canonical {
    Writer::new(ns::CORE, "fan-out-ended").element("total", &total.to_string()).finish()
}

written_by_hand! {
    Boot: ns::CORE, "boot";
    FanOutEnded: ns::CORE, "fan-out-ended";
}
