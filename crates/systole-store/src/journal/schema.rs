//! The format of a journal's file.

use crate::sqlite::Format;

/// The application id `SyJ1`, and the tables.
pub(super) const FORMAT: Format =
    Format { name: "journal", id: 0x5379_4a31, version: 12, schema: include_str!("schema.sql") };
