//! Durations and sizes in arguments, with the remedy of a mistake.

use std::time::Duration;

use systole::config::{Mistake, parse_duration, parse_size};

/// Parses a duration.
pub(super) fn duration(text: &str) -> Result<Duration, String> {
    parse_duration(text).map_err(|mistake| told(&mistake))
}

/// Parses a size.
pub(super) fn size(text: &str) -> Result<usize, String> {
    parse_size(text).map_err(|mistake| told(&mistake))
}

/// A mistake with the help for it.
pub(super) fn told(mistake: &Mistake) -> String {
    mistake.help().map_or_else(|| mistake.to_string(), |help| format!("{mistake}: {help}"))
}
