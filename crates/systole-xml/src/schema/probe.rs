//! The round trip of a type at registration: examples made from its schema must be valid, must be decoded, and
//! must be encoded unchanged. It reveals properties of a type that JSON Schema hides.

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::contract::RoundTrip;
use super::decode::{DecodeProblem, Undecodable, decode_canonical};
use super::example::{Examples, Wish, alternatives};
use super::model::Model;
use super::payload_schema::Checker;
use crate::ladder::Canonical;
use crate::ladder::encode::encode_as;
use crate::ladder::scan::{ScanToken, Scanner};
use crate::vocab::QName;

/// Maximum number of alternatives of choices and enumerations to try.
pub(super) const MOST_ALTERNATIVES: usize = 32;

/// Sends examples of a type through XML and back.
///
/// # Errors
/// [`RoundTrip`] for the first example that failed.
pub(super) fn probe<T: Serialize + DeserializeOwned>(
    payload: &QName,
    root: (&'static str, &'static str),
    (model, examples): (&Model, &Examples),
    checker: Checker,
) -> Result<(), RoundTrip> {
    let mut trip = Trip { payload, root, checker };
    let example = |wish| {
        let mut room = usize::MAX;
        examples.example(wish, &mut room)
    };
    let least = Wish { full: false, choice: 0, values: 0, hints: true, distinct: false };
    for example in [least, Wish::SHOWN].into_iter().filter_map(example) {
        trip.go::<T>(&example)?;
    }
    for choice in 0..alternatives(model).clamp(1, MOST_ALTERNATIVES) {
        // A field may be left out for one value, but not for two different ones.
        let mut changed = None;
        for values in 0..2 {
            let Some(example) = example(Wish { full: true, choice, values, hints: true, distinct: false }) else {
                continue;
            };
            let written = trip.go::<T>(&example)?;
            changed = if same_structure(&example, &written) { None } else { Some((example, written)) };
            if changed.is_none() {
                break;
            }
        }
        if let Some((read, written)) = changed {
            return Err(RoundTrip::Changed { read: read.as_str().to_owned(), written: written.as_str().to_owned() });
        }
    }
    Ok(())
}

struct Trip<'a> {
    payload: &'a QName,
    /// The namespace and the local name.
    root: (&'static str, &'static str),
    checker: Checker<'a>,
}

impl Trip<'_> {
    /// Decodes and encodes an example; the result must come back unchanged.
    fn go<T: Serialize + DeserializeOwned>(&mut self, example: &Canonical) -> Result<Canonical, RoundTrip> {
        self.checker.check(example).map_err(|error| RoundTrip::Example(error.to_string()))?;
        let once = self.through::<T>(example)?;
        let twice = self.through::<T>(&once)?;
        if once.bytes() != twice.bytes() {
            let [read, written] = [once, twice].map(|canonical| canonical.as_str().to_owned());
            return Err(RoundTrip::Changed { read, written });
        }
        Ok(once)
    }

    fn through<T: Serialize + DeserializeOwned>(&mut self, payload: &Canonical) -> Result<Canonical, RoundTrip> {
        let value: T = decode_canonical(payload).map_err(|error| match error.problem {
            DecodeProblem::Shape(Undecodable::Map) => RoundTrip::Flattened,
            DecodeProblem::Shape(Undecodable::NestedOption) => RoundTrip::NestedOption,
            DecodeProblem::Shape(Undecodable::OptionalUnit) => RoundTrip::OptionalUnit,
            problem => RoundTrip::Decode(problem.to_string()),
        })?;
        let written = encode_as(&value, self.root.0, self.root.1, self.payload.clone());
        let written = written.map_err(|error| RoundTrip::Encode(error.to_string()))?;
        self.checker.check(&written).map_err(|error| RoundTrip::Written(error.to_string()))?;
        Ok(written)
    }
}

/// Returns whether two payloads have the same elements and attributes: values may be spelled differently.
fn same_structure(one: &Canonical, other: &Canonical) -> bool {
    let shape = |token: ScanToken| match token {
        ScanToken::Start(tag) => (tag.name().to_owned(), tag.attributes().map(|(name, _)| name.to_owned()).collect()),
        ScanToken::End => (String::new(), Vec::<String>::new()),
        ScanToken::Text(_) => ("#".to_owned(), Vec::new()),
    };
    let structure = |canonical: &Canonical| Scanner::new(canonical.as_str()).map(shape).collect::<Vec<_>>();
    structure(one) == structure(other)
}
