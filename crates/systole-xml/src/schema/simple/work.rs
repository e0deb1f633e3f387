//! The steps that checks of values are charged, beside those of their patterns.
//!
//! A step stands for some 5 ns at most, so that the bound on the steps of a payload bounds its time, whatever the types
//! of its unions and lists are.

use super::definition::{Definition, Variety};
use super::enumeration::Enumeration;
use super::primitive::Primitive;
use crate::schema::pattern::COMPARISON;

impl Definition {
    /// Steps of a check of one literal by the type itself: its form, its bounds and its enumeration. The items of a list
    /// and its enumeration, and the members of a union, come on top.
    pub(super) fn own_work(&self, text: &str) -> usize {
        let parsed = match &self.variety {
            Variety::Atomic(primitive) => primitive.work(text),
            Variety::Any | Variety::List(_) | Variety::Union(_) => text.len(),
        };
        let lookup = if matches!(self.variety, Variety::List(_)) { 0 } else { self.lookup_work(text.len()) };
        parsed.saturating_add(COMPARISON).saturating_add(lookup)
    }

    /// Steps of a search in the enumeration for a literal of `bytes` bytes.
    pub(super) fn lookup_work(&self, bytes: usize) -> usize {
        // An item of a list may be as short as a byte, and is a value of its own.
        let each = if matches!(self.variety, Variety::List(_)) { 8 } else { 1 };
        match self.facets.values.as_deref() {
            None => 0,
            Some(Enumeration::Texts(_)) => 32,
            Some(Enumeration::Few(values)) => values.len().saturating_mul(self.comparison() + each * bytes),
            Some(Enumeration::Many(_)) => (4 * each).saturating_mul(bytes).saturating_add(64),
        }
    }

    /// Steps of a check of one literal at worst, with those of all items and members.
    pub(super) fn work(&self, text: &str) -> usize {
        let below = match &self.variety {
            Variety::Any | Variety::Atomic(_) => 0,
            Variety::List(item) => {
                let items = sum(text.split_ascii_whitespace().map(|literal| item.definition.work(literal)));
                items.saturating_add(self.lookup_work(text.len()))
            }
            Variety::Union(members) => sum(members.iter().map(|member| member.definition.work(text))),
        };
        below.saturating_add(self.own_work(text))
    }

    /// Steps of a comparison of two short values.
    fn comparison(&self) -> usize {
        match self.variety {
            Variety::Atomic(Primitive::Duration) => 24,
            _ => 8,
        }
    }
}

fn sum(steps: impl Iterator<Item = usize>) -> usize {
    steps.fold(0, usize::saturating_add)
}

impl Primitive {
    /// Steps to parse a literal and to compare it with two bounds.
    fn work(self, text: &str) -> usize {
        let (any, each) = match self {
            Self::String | Self::Boolean | Self::Hex | Self::Base64 => (0, 1),
            Self::Decimal | Self::Uri | Self::QName | Self::Notation => (16, 1),
            Self::DateTime(_) => (32, 1),
            Self::Duration => (48, 2),
            Self::Float | Self::Double if is_long(text) => (4_096, 16),
            Self::Float | Self::Double => (16, 2),
        };
        text.len().saturating_mul(each).saturating_add(any)
    }
}

/// Reports whether a number has more digits than 64 bits hold: if it is close to the middle of two values of its type,
/// reading it takes a multiplication of large numbers. Programs write 17 digits at most.
fn is_long(number: &str) -> bool {
    const DIGITS: usize = 19;
    if number.len() <= DIGITS {
        return false;
    }
    let digits = number.trim_start_matches(|c: char| !matches!(c, '1'..='9')).bytes();
    digits.take_while(|byte| !matches!(byte, b'e' | b'E')).filter(u8::is_ascii_digit).nth(DIGITS).is_some()
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::super::{Facet, Prefixes, SimpleType};

    /// Counts the steps that are spent.
    struct Counter(Cell<usize>);

    impl Prefixes for Counter {
        fn namespace(&self, prefix: &str) -> Option<&str> {
            (prefix == "p").then_some("urn:p")
        }

        fn spend(&self, steps: usize) -> bool {
            self.0.set(self.0.get() + steps);
            true
        }
    }

    fn restricted(base: &SimpleType, facets: impl IntoIterator<Item = (&'static str, String)>) -> SimpleType {
        let prefixes = Counter(Cell::new(0));
        let facets: Vec<(&str, String)> = facets.into_iter().collect();
        let facets: Vec<Facet> =
            facets.iter().map(|(name, value)| Facet { name, value, fixed: false, prefixes: &prefixes }).collect();
        base.restrict("its base", &facets).unwrap()
    }

    fn range(base: &str, least: &str, most: &str) -> SimpleType {
        let bounds = [("minInclusive", least.to_owned()), ("maxInclusive", most.to_owned())];
        restricted(&SimpleType::xsd_type(base).unwrap(), bounds)
    }

    fn values(base: &SimpleType, count: usize, value: impl Fn(usize) -> String) -> SimpleType {
        restricted(base, (0..count).map(|at| ("enumeration", value(at))))
    }

    /// Steps of a check of a literal against a union of types, with those of the items of lists.
    fn spent(members: Vec<SimpleType>, literal: &str) -> usize {
        let prefixes = Counter(Cell::new(0));
        let _ = SimpleType::union(members).unwrap().check(literal, &prefixes);
        prefixes.0.get()
    }

    /// The steps of each kind of comparison. A machine took 2 to 6 ns for a step of each, in a union of 200 members.
    #[test]
    fn each_kind_of_comparison_costs_what_it_takes() {
        let xsd_type = |name| SimpleType::xsd_type(name).unwrap();
        let list = |item: &SimpleType| SimpleType::list(item).unwrap();
        let durations = range("duration", "P2Y", "P3Y");
        let ones = |count: usize| "1".repeat(count);
        for (ty, literal, steps) in [
            (xsd_type("boolean"), "x".to_owned(), 17),
            (restricted(&xsd_type("string"), [("maxLength", "3".to_owned())]), ones(1_000), 1_016),
            (range("int", "1", "2"), "3".to_owned(), 33),
            (range("decimal", "1", "2"), ones(1_000), 1_032),
            (values(&xsd_type("decimal"), 16, |at| at.to_string()), "99".to_owned(), 194),
            (values(&xsd_type("decimal"), 17, |at| at.to_string()), "99".to_owned(), 106),
            (range("double", "1", "2"), "1.2345678901234567e17".to_owned(), 74),
            (range("double", "1", "2"), "8.98846567431158053656668e307".to_owned(), 4_576),
            (range("double", "1", "2"), "0.000000000000000000123".to_owned(), 78),
            (durations.clone(), "P731D".to_owned(), 74),
            (values(&xsd_type("duration"), 16, |at| format!("P{at}M1D")), "P31D".to_owned(), 520),
            (range("dateTime", "2000-01-01T00:00:00", "2001-01-01T00:00:00"), "2002-01-01T00:00:00Z".to_owned(), 68),
            (range("gYear", "2000", "2001"), "2002".to_owned(), 52),
            (values(&xsd_type("hexBinary"), 16, |at| format!("{at:04}")), ones(1_000), 17_144),
            (values(&xsd_type("base64Binary"), 16, |at| format!("AA{at:02}")), "AA33".to_owned(), 212),
            (values(&xsd_type("QName"), 16, |at| format!("p:a{at}")), "p:b".to_owned(), 211),
            (values(&xsd_type("anyURI"), 17, |at| format!("urn:a{at}")), "urn:b".to_owned(), 121),
            (values(&xsd_type("token"), 17, |at| format!("v{at}")), "w".to_owned(), 49),
            // A list costs its items, and its enumeration for each of its bytes.
            (restricted(&list(&durations), [("length", "7".to_owned())]), "P31M ".repeat(10), 66 + 10 * 72),
            (values(&list(&xsd_type("int")), 2, |at| format!("1 {at}")), "1 9".to_owned(), 19 + 2 * 33 + 64),
        ] {
            assert_eq!(spent(vec![ty.clone()], &literal), steps, "{}: {literal:.40}", ty.words());
            assert!(ty.work(&literal) >= steps, "{}: {literal:.40}", ty.words());
        }
    }

    /// A list of 10 kB of a union of 1,500 ranges of durations took 1.6 s within its steps.
    #[test]
    fn ranges_of_durations_are_charged() {
        let members: Vec<_> =
            (0..1_500).map(|at| range("duration", &format!("P{at}Y"), &format!("P{at}YT1S"))).collect();
        assert_eq!(spent(members, "P9D"), 1_500 * 70);
    }
}
