//! Further values of a type, for payloads whose keys need distinct ones.

use std::cell::Cell;

use super::Sampler;
use super::values::StepsLeft;
use crate::schema::model::{Simple, TypeId};

impl<'a> Sampler<'a> {
    /// The value for one more occurrence of a field: the first has the value `base`, each further one another value. So
    /// the fields of a key differ, and those of a reference to it have the same values in the same order.
    pub(super) fn distinct(&mut self, ty: TypeId, base: String) -> Option<String> {
        let turn = self.turn();
        let simple = self.model.simple(ty).filter(|_| turn > 0);
        match simple {
            Some(simple) if !simple.facets.values.is_empty() => {
                let values = &simple.facets.values;
                Some(values[turn % values.len()].value.clone())
            }
            Some(simple) => self.variant(simple, &base, turn).or(Some(base)),
            None => Some(base),
        }
    }

    /// The number of times that the present field was written before.
    fn turn(&mut self) -> usize {
        let field = [self.names.iter().rev().nth(1).copied(), self.names.last().copied(), self.in_attribute];
        let turns = self.turns.entry(field).or_default();
        *turns += 1;
        *turns - 1
    }

    /// A valid text that differs from `base` by a number.
    fn variant(&mut self, simple: &Simple, base: &str, number: usize) -> Option<String> {
        let definition = simple.definition.as_ref()?;
        let steps = StepsLeft(Cell::new(self.room));
        let candidates = [counted(base, false, number), counted(base, true, number), lettered(base, number)];
        let appended = format!("{base}{}", number + 1);
        let digits = number.to_string();
        let cut = base.len().checked_sub(digits.len()).filter(|at| base.is_char_boundary(*at));
        let replaced = cut.map(|at| format!("{}{digits}", &base[..at]));
        // The values of xs:boolean hold no number and too few letters.
        let other = match base {
            "true" if number == 1 => Some("false".to_owned()),
            "false" if number == 1 => Some("true".to_owned()),
            _ => None,
        };
        let mut all = candidates.into_iter().chain([Some(appended), replaced, other]).flatten();
        let found = all.find(|text| steps.take(16 + text.len()) && definition.check(text, &steps).is_ok());
        self.room = steps.0.get();
        found
    }
}

/// A text whose last or first number is greater by `number`.
fn counted(text: &str, is_first: bool, number: usize) -> Option<String> {
    let bytes = text.as_bytes();
    let (start, end) = if is_first {
        let start = bytes.iter().position(u8::is_ascii_digit)?;
        (
            start,
            bytes[start..].iter().position(|byte| !byte.is_ascii_digit()).map_or(bytes.len(), |length| start + length),
        )
    } else {
        let end = bytes.iter().rposition(u8::is_ascii_digit)? + 1;
        (bytes[..end].iter().rposition(|byte| !byte.is_ascii_digit()).map_or(0, |at| at + 1), end)
    };
    let value: u64 = text[start..end].parse().ok()?;
    let next = value.checked_add(u64::try_from(number).ok()?)?;
    Some(format!("{}{next:0width$}{}", &text[..start], &text[end..], width = end - start))
}

/// A text whose last letter is `number` places behind in the alphabet.
fn lettered(text: &str, number: usize) -> Option<String> {
    let at = text.bytes().rposition(|byte| byte.is_ascii_alphabetic())?;
    let letter = text.as_bytes()[at];
    let first = if letter.is_ascii_lowercase() { b'a' } else { b'A' };
    let place = (usize::from(letter - first) + number) % 26;
    let next = char::from(first + u8::try_from(place).ok()?);
    Some(format!("{}{next}{}", &text[..at], &text[at + 1..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_differ_by_a_number() {
        assert_eq!(counted("AB-009/7", false, 1).as_deref(), Some("AB-009/8"));
        assert_eq!(counted("AB-009/7", true, 1).as_deref(), Some("AB-010/7"));
        assert_eq!(counted("é", true, 1), None);
        assert_eq!(counted("99999999999999999999", true, 1), None);
        assert_eq!(lettered("abZ9", 2).as_deref(), Some("abB9"));
        assert_eq!(lettered("1", 2), None);
    }
}
