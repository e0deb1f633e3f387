//! Simple values of examples.

use serde_json::Value;

use super::Sampler;
use crate::ladder::encode::float_text;
use crate::schema::engine::{Builtin, Kind};
use crate::schema::model::{Bound, Facets, Simple, Type, TypeId, Variety};

impl<'a> Sampler<'a> {
    /// A value of a simple type.
    pub(super) fn value(&mut self, ty: TypeId, hint: Option<&'a Value>) -> Option<String> {
        let value = self.unbounded(ty, hint)?;
        self.spend(1 + value.len())?;
        Some(value)
    }

    fn unbounded(&mut self, ty: TypeId, hint: Option<&'a Value>) -> Option<String> {
        let Type::Simple(simple) = &self.model.types[ty] else { return None };
        if let Some(text) = hint.and_then(|hint| given(hint, simple)) {
            return Some(text);
        }
        let facets = &simple.facets;
        if !facets.values.is_empty() {
            return Some(facets.values[(self.wish.choice + self.wish.values) % facets.values.len()].value.clone());
        }
        match &simple.variety {
            Variety::List(item) => {
                let count = facets.min_length.unwrap_or(0).max(1);
                self.spend(usize::try_from(count).ok()?)?;
                let items: Option<Vec<String>> = (0..count).map(|_| self.value(*item, None)).collect();
                Some(items?.join(" "))
            }
            Variety::Union(members) => {
                self.spend(1)?;
                members.iter().find_map(|member| self.value(*member, None))
            }
            Variety::Atomic(base) if base.name == "ID" => {
                self.ids += 1;
                Some(if self.ids == 1 { "name".to_owned() } else { format!("name{}", self.ids) })
            }
            Variety::Atomic(base) => self.atomic(base, facets),
        }
    }

    /// A simple value that keeps the facets, as far as that is easy.
    fn atomic(&mut self, base: &Builtin, facets: &Facets) -> Option<String> {
        let values = self.wish.values;
        let sample = base.samples[values % 2];
        if let Some(pattern) = facets.patterns.first() {
            let fits =
                |text: &str| has_length(facets, text) && facets.patterns.iter().all(|pattern| pattern.matches(text));
            // The simple value is tried first: only with it does a date stay a date.
            let mut samples = std::iter::once(sample.to_owned()).chain(pattern.samples(values));
            return samples.find_map(|text| match self.spend(1 + text.len()) {
                Some(()) => fits(&text).then_some(Some(text)),
                None => Some(None),
            })?;
        }
        match base.kind() {
            Kind::Text => Some(fitted(sample, facets)),
            Kind::Boolean => Some(sample.to_owned()),
            Kind::Integer(min, max) => integer(facets, min, max, sample.parse().ok()?, values),
            Kind::Decimal | Kind::Float => number(facets, sample.parse().ok()?),
            Kind::Form => {
                Some(facets.min.as_ref().or(facets.max.as_ref()).map_or(sample, |bound| &bound.value).to_owned())
            }
        }
    }
}

/// The author's example in its XML form.
fn given(hint: &Value, simple: &Simple) -> Option<String> {
    let float = matches!(simple.variety, Variety::Atomic(base) if base.kind() == Kind::Float);
    match hint {
        Value::Number(number) if float => number.as_f64().map(float_text),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(value) => Some(value.to_string()),
        Value::String(text) => Some(text.clone()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

fn has_length(facets: &Facets, text: &str) -> bool {
    let length = text.chars().count() as u64;
    facets.min_length.is_none_or(|min| length >= min) && facets.max_length.is_none_or(|max| length <= max)
}

/// The text, cut or repeated to an allowed length.
fn fitted(text: &str, facets: &Facets) -> String {
    const LONGEST: u64 = 1 << 16;
    let length = text.chars().count() as u64;
    let wanted = length.min(facets.max_length.unwrap_or(u64::MAX)).max(facets.min_length.unwrap_or(0)).min(LONGEST);
    if wanted == length {
        return text.to_owned();
    }
    // Spaces are left out, because some types don't allow them at an end.
    text.chars().filter(|c| *c != ' ').cycle().take(usize::try_from(wanted).unwrap_or(0)).collect()
}

fn integer(facets: &Facets, min: Option<i128>, max: Option<i128>, wanted: i128, values: usize) -> Option<String> {
    let end = |bound: &Option<Bound>, inward: i128| {
        let bound = bound.as_ref()?;
        let value: i128 = bound.value.parse().ok()?;
        Some(if bound.exclusive { value + inward } else { value })
    };
    let min = end(&facets.min, 1).max(min);
    let max = end(&facets.max, -1).into_iter().chain(max).min();
    let shift = i128::try_from(values % 2).unwrap_or(0);
    let value = match (min, max) {
        (Some(min), _) if wanted < min + shift => (min + shift).min(max.unwrap_or(i128::MAX)),
        (_, Some(max)) if wanted > max => (max - shift).max(min.unwrap_or(i128::MIN)),
        _ => wanted,
    };
    (min.is_none_or(|min| value >= min) && max.is_none_or(|max| value <= max)).then(|| value.to_string())
}

fn number(facets: &Facets, wanted: f64) -> Option<String> {
    /// The value, and whether it is excluded itself.
    type End = Option<(f64, bool)>;
    let end = |bound: &Option<Bound>| bound.as_ref().and_then(|b| Some((b.value.parse().ok()?, b.exclusive)));
    let (min, max): (End, End) = (end(&facets.min), end(&facets.max));
    let fits = |value: &f64| {
        min.is_none_or(|(min, exclusive)| *value > min || (*value == min && !exclusive))
            && max.is_none_or(|(max, exclusive)| *value < max || (*value == max && !exclusive))
    };
    let middle = min.zip(max).map(|((min, _), (max, _))| min + (max - min) / 2.0);
    let near =
        [Some(wanted), middle, min.map(|(min, _)| min + 1.0), max.map(|(max, _)| max - 1.0), min.map(|(min, _)| min)];
    near.into_iter().flatten().find(fits).map(float_text)
}
