//! Threads and messages that an argument names, by the whole id or by its last digits.

use std::fmt::Display;
use std::str::FromStr;

use systole::journal::Reader;
use systole_core::vocab::ThreadId;

use crate::failure::Failure;

/// A thread to find.
#[derive(Debug, Clone)]
pub(super) enum Sought {
    Id(ThreadId),
    /// The last digits of its id.
    Digits(String),
}

/// Fewest digits: with fewer, too many conversations match.
const FEWEST: usize = 4;

impl FromStr for Sought {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        text.parse().map(Self::Id).or_else(|error| digits(text, &error).map(Self::Digits))
    }
}

/// The last digits of an id.
pub(super) fn digits(text: &str, error: &dyn Display) -> Result<String, String> {
    let is_digit = |byte: u8| byte.is_ascii_hexdigit() || byte == b'-';
    match text.len() >= FEWEST && text.bytes().all(is_digit) {
        true => Ok(text.to_ascii_lowercase()),
        false => Err(format!("{error}; its last {FEWEST} digits or more are enough if only one id ends with them")),
    }
}

/// The one id that ends with some digits.
pub(super) fn only<T: Copy + Display>(ids: impl Iterator<Item = T>, digits: &str) -> Result<Option<T>, Failure> {
    let found: Vec<T> = ids.filter(|id| id.to_string().ends_with(digits)).collect();
    match found.as_slice() {
        [] => Ok(None),
        [one] => Ok(Some(*one)),
        several => {
            let ids: Vec<String> = several.iter().map(ToString::to_string).collect();
            Err(Failure::no(format!("more than one id ends with {digits}: {}: write more digits", ids.join(" or "))))
        }
    }
}

impl Sought {
    /// Finds the one thread.
    pub(super) fn find(&self, reader: &dyn Reader) -> Result<ThreadId, Failure> {
        let digits = match self {
            Self::Id(id) => return Ok(*id),
            Self::Digits(digits) => digits,
        };
        let (roots, threads) = reader.ids_with_end(digits).map_err(Failure::store)?;
        if let Some(conversation) = only(roots.into_iter(), digits)? {
            return Ok(conversation);
        }
        only(threads.into_iter(), digits)?.ok_or_else(|| {
            Failure::no(format!(
                "there is no thread whose id ends with {digits}: `systole thread list` shows the threads that are kept"
            ))
        })
    }
}
