//! Enumerations.

use std::borrow::Cow;
use std::fmt;
use std::hash::{DefaultHasher, Hasher};

use super::value::Value;

/// The greatest number of values for which comparing each is faster than hashing.
const FEW: usize = 16;

/// The values of the facet `enumeration` (part 2, section 4.3.5).
#[derive(Debug)]
pub(super) enum Enumeration {
    /// Texts, sorted.
    Texts(Vec<Box<str>>),
    /// Other values, at most [`FEW`].
    Few(Vec<Value<'static>>),
    Many(Keys),
}

/// The keys of many values, with an index by hash.
#[derive(Debug, Default)]
pub(super) struct Keys {
    /// The keys, each followed by [`END`].
    keys: String,
    /// The hash of each key and its position, sorted.
    places: Vec<(u32, u32)>,
    longest_list: usize,
}

/// The character U+0000, which no XML document can contain, so no key does.
const END: char = '\u{0}';

impl Enumeration {
    /// An enumeration of `count` values. Many values are reduced to their keys one by one, because values take more
    /// memory.
    pub(super) fn new<'v, E>(count: usize, mut values: impl Iterator<Item = Result<Value<'v>, E>>) -> Result<Self, E> {
        let (mut texts, mut few, mut keys) = (Vec::new(), Vec::new(), Keys::default());
        texts.reserve_exact(count);
        values.try_for_each(|value| {
            match value? {
                Value::Text(text) if few.is_empty() && keys.places.is_empty() => texts.push(Box::from(text)),
                value if count <= FEW => {
                    few.extend(texts.drain(..).map(|text: Box<str>| Value::Text(String::from(text).into())));
                    few.push(value.into_owned());
                }
                value => {
                    keys.places.reserve_exact(count - keys.places.len());
                    texts.drain(..).for_each(|text| keys.push(&Value::Text(Cow::Borrowed(&text))));
                    keys.push(&value);
                }
            }
            Ok(())
        })?;
        texts.sort_unstable();
        keys.places.sort_unstable();
        Ok(match (few.is_empty(), keys.places.is_empty()) {
            (false, _) => Self::Few(few),
            (true, false) => Self::Many(keys),
            (true, true) => Self::Texts(texts),
        })
    }

    pub(super) fn contains(&self, value: &Value) -> bool {
        match (self, value) {
            (Self::Texts(texts), Value::Text(text)) => {
                texts.binary_search_by(|known| known.as_ref().cmp(text.as_ref())).is_ok()
            }
            (Self::Texts(_), _) => false,
            (Self::Few(values), value) => values.contains(value),
            (Self::Many(keys), value) => keys.contains(value),
        }
    }

    /// The number of items of the longest list among the values.
    pub(super) fn longest_list(&self) -> usize {
        match self {
            Self::Texts(_) => 0,
            Self::Few(values) => values.iter().map(items).max().unwrap_or(0),
            Self::Many(keys) => keys.longest_list,
        }
    }
}

fn items(value: &Value) -> usize {
    match value {
        Value::List(items) => items.len(),
        _ => 0,
    }
}

impl Keys {
    fn push(&mut self, value: &Value) {
        let start = self.keys.len();
        value.key(&mut self.keys);
        self.keys.push(END);
        // Keys are about as long as the values, and a schema document has at most 64 MiB.
        self.places.push((hash(value), u32::try_from(start).unwrap_or(u32::MAX)));
        self.longest_list = self.longest_list.max(items(value));
    }

    fn contains(&self, value: &Value) -> bool {
        let hash = hash(value);
        let first = self.places.partition_point(|(known, _)| *known < hash);
        let same = self.places[first..].iter().take_while(|(known, _)| *known == hash);
        same.into_iter().any(|(_, start)| {
            let mut left = Left(self.keys.get(*start as usize..));
            value.key(&mut left);
            left.0.is_some_and(|left| left.starts_with(END))
        })
    }
}

/// The hash of the key of a value, without building the key in memory.
fn hash(value: &Value) -> u32 {
    let mut hashed = Hashed(DefaultHasher::new());
    value.key(&mut hashed);
    // Any half of the 64 bits will do.
    hashed.0.finish() as u32
}

struct Hashed(DefaultHasher);

impl fmt::Write for Hashed {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0.write(text.as_bytes());
        Ok(())
    }
}

/// The rest of a known text after the written part; `None` once they differ.
struct Left<'k>(Option<&'k str>);

impl fmt::Write for Left<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0 = self.0.and_then(|known| known.strip_prefix(text));
        self.0.map(|_| ()).ok_or(fmt::Error)
    }
}
