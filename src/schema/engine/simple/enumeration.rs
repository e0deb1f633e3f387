use std::fmt;
use std::hash::{DefaultHasher, Hasher};

use super::value::Value;

/// Values that are compared one by one faster than they are hashed.
const FEW: usize = 16;

/// The values of the facet `enumeration` (part 2, section 4.3.5).
#[derive(Debug)]
pub(super) enum Enumeration {
    /// Texts, in order.
    Texts(Vec<Box<str>>),
    /// At most [`FEW`].
    Few(Vec<Value<'static>>),
    /// By the hashes of their keys, in order.
    Many(Vec<(u64, Value<'static>)>),
}

impl Enumeration {
    pub(super) fn new(values: Vec<Value<'static>>) -> Self {
        let text = |value: &Value| match value {
            Value::Text(text) => Some(Box::from(text.as_ref())),
            _ => None,
        };
        match values.iter().map(text).collect::<Option<Vec<Box<str>>>>() {
            Some(mut texts) => {
                texts.sort_unstable();
                Self::Texts(texts)
            }
            None if values.len() <= FEW => Self::Few(values),
            None => {
                let mut values: Vec<_> = values.into_iter().map(|value| (hash(&value), value)).collect();
                values.sort_by_key(|(hash, _)| *hash);
                Self::Many(values)
            }
        }
    }

    pub(super) fn contains(&self, value: &Value) -> bool {
        match (self, value) {
            (Self::Texts(texts), Value::Text(text)) => {
                texts.binary_search_by(|known| known.as_ref().cmp(text.as_ref())).is_ok()
            }
            (Self::Texts(_), _) => false,
            (Self::Few(values), value) => values.contains(value),
            (Self::Many(values), value) => {
                let hash = hash(value);
                let first = values.partition_point(|(known, _)| *known < hash);
                values[first..].iter().take_while(|(known, _)| *known == hash).any(|(_, known)| known == value)
            }
        }
    }

    /// The items of the longest list among the values.
    pub(super) fn longest_list(&self) -> usize {
        let items = |value: &Value| match value {
            Value::List(items) => items.len(),
            _ => 0,
        };
        match self {
            Self::Texts(_) => 0,
            Self::Few(values) => values.iter().map(items).max().unwrap_or(0),
            Self::Many(values) => values.iter().map(|(_, value)| items(value)).max().unwrap_or(0),
        }
    }
}

/// The same for equal values; takes no memory.
fn hash(value: &Value) -> u64 {
    let mut hashed = Hashed(DefaultHasher::new());
    value.key(&mut hashed);
    hashed.0.finish()
}

struct Hashed(DefaultHasher);

impl fmt::Write for Hashed {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0.write(text.as_bytes());
        Ok(())
    }
}
