use super::value::Value;

/// The values of the facet `enumeration` (part 2, section 4.3.5).
#[derive(Debug)]
pub(super) enum Enumeration {
    /// Texts, in order.
    Texts(Vec<Box<str>>),
    Values(Vec<Value<'static>>),
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
            None => Self::Values(values),
        }
    }

    pub(super) fn contains(&self, value: &Value) -> bool {
        match (self, value) {
            (Self::Texts(texts), Value::Text(text)) => {
                texts.binary_search_by(|known| known.as_ref().cmp(text.as_ref())).is_ok()
            }
            (Self::Texts(_), _) => false,
            (Self::Values(values), value) => values.contains(value),
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
            Self::Values(values) => values.iter().map(items).max().unwrap_or(0),
        }
    }
}
