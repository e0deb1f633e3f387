//! Restriction of simple types: one step of facets, checked against the base.

use std::cmp::Ordering;
use std::sync::Arc;

use super::bound::Bound;
use super::decimal::Decimal;
use super::definition::{Definition, Variety};
use super::enumeration::Enumeration;
use super::facets::{FACETS, Facets, Pattern};
use super::lexis::Lexis;
use super::space::{Space, WHITE};
use super::value::Value;
use super::{Facet, SimpleType, Unsupported, words};
use crate::schema::pattern::{self, Flaw};
use crate::schema::shorten::quoted;

/// The definition of a type after one step of restriction.
pub(super) fn restrict(base: &SimpleType, name: &str, given: &[Facet]) -> Result<Definition, Unsupported> {
    for (number, facet) in given.iter().enumerate() {
        let repeats = !matches!(facet.name, "pattern" | "enumeration");
        if repeats && given[..number].iter().any(|before| before.name == facet.name) {
            return Err(Unsupported::of(number, format!("the facet {} is given twice: keep one of them", facet.name)));
        }
    }
    let mut step = Step { base, name, facets: base.definition.facets.clone(), space: base.definition.space };
    for (number, facet) in given.iter().enumerate() {
        step.add(facet).map_err(|reason| {
            let Facet { name, value, .. } = facet;
            let value = quoted(value);
            Unsupported::of(number, format!("the facet {name} with the value '{value}': {reason}"))
        })?;
        if facet.fixed {
            step.facets.fixed.insert(facet.name);
        }
    }
    step.check_together(given)?;
    step.add_patterns(given)?;
    step.add_enumeration(given)?;
    let Step { facets, space, .. } = step;
    let own: Arc<[Box<str>]> =
        given.iter().filter(|facet| facet.name == "enumeration").map(|facet| facet.value.into()).collect();
    let (noun, implied) = match own.is_empty() {
        true => (base.definition.noun.clone(), base.definition.implied.clone()),
        false => {
            let first: Vec<&str> = own.iter().take(words::MOST).map(|value| &**value).collect();
            (words::enumeration(&first, own.len()), Some(base.definition.clone()))
        }
    };
    let enumerated = if own.is_empty() { base.definition.enumerated.clone() } else { Some(own) };
    let made = Definition {
        variety: base.definition.variety.clone(),
        space,
        lexis: base.definition.lexis,
        identity: base.definition.identity,
        words: words::restriction(
            &noun,
            &base.definition.variety,
            &facets,
            implied.as_deref().map(|base| &base.facets),
        ),
        noun,
        implied,
        enumerated,
        facets,
        depth: 0,
        width: base.definition.width,
    };
    made.nested(base.definition.depth)
}

struct Step<'a> {
    base: &'a SimpleType,
    /// The name of the base type in texts.
    name: &'a str,
    facets: Facets,
    space: Space,
}

impl Step<'_> {
    /// Adds a facet. Patterns and enumerations are added later; for them, only checks that the type has the facet.
    fn add(&mut self, facet: &Facet) -> Result<(), String> {
        if !has_facet(&self.base.definition.variety, facet.name) {
            let known: Vec<&str> = FACETS.into_iter().filter(|name| self.base.has_facet(name)).collect();
            return Err(format!("{} has no such facet: it has {}", self.name, known.join(", ")));
        }
        let is_integer = self.base.definition.lexis == Lexis::Integer;
        let is_fixed = self.base.definition.facets.fixed.has(facet.name);
        let facets = &mut self.facets;
        match facet.name {
            "length" => narrow(&mut facets.length, facet, (self.name, is_fixed), |new, old| new == old)?,
            "minLength" => narrow(&mut facets.min_length, facet, (self.name, is_fixed), |new, old| new >= old)?,
            "maxLength" => narrow(&mut facets.max_length, facet, (self.name, is_fixed), |new, old| new <= old)?,
            "totalDigits" => {
                if count(facet)? == 0 {
                    return Err("it must be at least 1".to_owned());
                }
                narrow(&mut facets.total_digits, facet, (self.name, is_fixed), |new, old| new <= old)?;
            }
            "fractionDigits" => {
                if is_integer && count(facet)? > 0 {
                    return Err("a whole number has no digits behind the point".to_owned());
                }
                narrow(&mut facets.fraction_digits, facet, (self.name, is_fixed), |new, old| new <= old)?;
            }
            "whiteSpace" => {
                let space =
                    Space::named(facet.value.trim_matches(WHITE)).ok_or("expected preserve, replace or collapse")?;
                if space < self.space {
                    return Err(format!("{} already normalizes more white space", self.name));
                }
                if is_fixed && space != self.space {
                    return Err(fixed(self.name));
                }
                self.space = space;
            }
            "minInclusive" | "minExclusive" => self.facets.least = Some(self.bound(facet, Ordering::Greater)?),
            "maxInclusive" | "maxExclusive" => self.facets.most = Some(self.bound(facet, Ordering::Less)?),
            _ => {}
        }
        Ok(())
    }

    /// A bound, which must be a value of the base, or exclude the same value as the base does (sections 4.3.7 to
    /// 4.3.10).
    fn bound(&self, facet: &Facet, side: Ordering) -> Result<Bound, String> {
        let Variety::Atomic(primitive) = self.base.definition.variety else {
            return Err(format!("{} has no order", self.name));
        };
        let written = facet.value.trim_matches(WHITE);
        let no_value = || format!("it is no value of {}: expected {}", self.name, self.base.words());
        let value = primitive.value(written, facet.prefixes).map_err(|_| no_value())?;
        let inclusive = facet.name.ends_with("Inclusive");
        let bound = Bound { value: value.into_owned(), inclusive, written: written.into() };
        let of_base = &self.base.definition;
        if !of_base.lexis.allows(written) {
            return Err(no_value());
        }
        let known = if side == Ordering::Greater { &of_base.facets.least } else { &of_base.facets.most };
        match known {
            Some(known) if of_base.facets.fixed.has(facet.name) && known.value != bound.value => Err(fixed(self.name)),
            Some(known) if !bound.is_within(known, side) => {
                Err(format!("it lies outside of {}: expected {}", self.name, self.base.words()))
            }
            Some(known) if !inclusive && !known.inclusive && known.value == bound.value => Ok(bound),
            _ => match of_base.value(written, facet.prefixes, false) {
                Ok(_) => Ok(bound),
                Err(_) => Err(no_value()),
            },
        }
    }

    /// Refuses facets that contradict each other (part 2, sections 4.3.1 to 4.3.12).
    fn check_together(&self, given: &[Facet]) -> Result<(), Unsupported> {
        let has = |name: &str| given.iter().any(|facet| facet.name == name);
        let refuse = |rule: &str| Err(Unsupported::because(rule));
        let Facets { length, min_length, max_length, total_digits, fraction_digits, least, most, .. } = &self.facets;
        let base = &self.base.definition.facets;
        if let (Some(min), Some(max)) = (min_length, max_length)
            && min > max
        {
            return refuse("minLength is more than maxLength");
        }
        if let Some(length) = length {
            // minLength or maxLength may accompany length only if a base type without length has the same value
            // (section 4.3.1.4). Below a length, these bounds can't change, so the bound of the immediate base decides.
            let is_new = |name: &str, known: Option<usize>, now: &Option<usize>| has(name) && known != *now;
            if is_new("minLength", base.min_length, min_length) || is_new("maxLength", base.max_length, max_length) {
                return refuse("length already bounds the length: remove minLength and maxLength");
            }
            if min_length.is_some_and(|min| min > *length) || max_length.is_some_and(|max| max < *length) {
                return refuse("the length is not between minLength and maxLength");
            }
        }
        if let (Some(total), Some(fraction)) = (total_digits, fraction_digits)
            && fraction > total
        {
            return refuse("fractionDigits is more than totalDigits");
        }
        for side in ["min", "max"] {
            if has(&format!("{side}Inclusive")) && has(&format!("{side}Exclusive")) {
                return refuse("a bound is either inclusive or exclusive, not both");
            }
        }
        if let (Some(least), Some(most)) = (least, most) {
            let is_of_base = |bound: &Option<Bound>| bound.as_ref().is_some_and(|bound| bound.value == least.value);
            // Two bounds that exclude the same value leave nothing between them. One step may state both, but a new
            // exclusive bound must differ from the opposite bound of the base (sections 4.3.8.4 and 4.3.9.4).
            let is_closed =
                || has("minExclusive") && is_of_base(&base.most) || has("maxExclusive") && is_of_base(&base.least);
            let fits = match least.value.order(&most.value) {
                Some(Ordering::Less) => true,
                Some(Ordering::Equal) => least.inclusive == most.inclusive && !is_closed(),
                _ => false,
            };
            if !fits {
                return refuse("the lower bound lies above the upper one");
            }
        }
        Ok(())
    }

    fn add_patterns(&mut self, given: &[Facet]) -> Result<(), Unsupported> {
        let patterns: Vec<&str> =
            given.iter().filter(|facet| facet.name == "pattern").map(|facet| facet.value).collect();
        if patterns.is_empty() {
            return Ok(());
        }
        let written: Arc<str> = patterns.join(" or ").into();
        let automaton = match pattern::alternatives(&patterns) {
            Ok(automaton) => automaton,
            Err(Flaw { at, why }) => {
                let wrong = |facet: &Facet| facet.name == "pattern" && pattern::alternatives(&[facet.value]).is_err();
                let number = given.iter().position(wrong);
                let written = number.map_or(&*written, |number| given[number].value);
                let at = at.map(|at| format!(", character {at}")).unwrap_or_default();
                return Err(Unsupported(format!("the pattern '{}'{at}: {why}", quoted(written)), number));
            }
        };
        self.facets.patterns.push(Pattern { automaton, written });
        Ok(())
    }

    fn add_enumeration(&mut self, given: &[Facet]) -> Result<(), Unsupported> {
        let enumerated = || given.iter().enumerate().filter(|(_, facet)| facet.name == "enumeration");
        let count = enumerated().count();
        if count > 0 {
            let values = enumerated().map(|(number, facet)| self.enumerated(number, facet));
            self.facets.values = Some(Arc::new(Enumeration::new(count, values)?));
        }
        Ok(())
    }

    fn enumerated<'v>(&'v self, number: usize, facet: &Facet<'v>) -> Result<Value<'v>, Unsupported> {
        /// The greatest number of items of an enumerated list, each of which is a value while the list is parsed.
        const MOST: usize = 100_000;
        let is_list = matches!(self.base.definition.variety, Variety::List(_));
        if is_list && facet.value.split(WHITE).filter(|item| !item.is_empty()).nth(MOST).is_some() {
            let reason = format!("an enumerated list has more than {MOST} items: give it a maxLength instead");
            return Err(Unsupported::of(number, reason));
        }
        self.base.definition.value(facet.value, facet.prefixes, true).map_err(|_| {
            let (name, words) = (self.name, self.base.words());
            let value = quoted(facet.value);
            let reason = format!("the enumerated '{value}' is no value of {name}: expected {words}");
            Unsupported::of(number, reason)
        })
    }
}

/// Reports whether a facet may restrict a type of this variety (section 4.1.5).
pub(super) fn has_facet(variety: &Variety, facet: &str) -> bool {
    match variety {
        Variety::Any => false,
        Variety::Atomic(primitive) => primitive.has_facet(facet),
        Variety::List(_) => {
            matches!(facet, "length" | "minLength" | "maxLength" | "pattern" | "enumeration" | "whiteSpace")
        }
        Variety::Union(_) => matches!(facet, "pattern" | "enumeration"),
    }
}

fn fixed(base: &str) -> String {
    format!("{base} fixes another value")
}

/// Sets a count, which may only narrow the count of the base.
fn narrow(
    known: &mut Option<usize>,
    facet: &Facet,
    (base, is_fixed): (&str, bool),
    narrows: impl Fn(usize, usize) -> bool,
) -> Result<(), String> {
    let new = count(facet)?;
    match *known {
        Some(old) if is_fixed && new != old => return Err(fixed(base)),
        Some(old) if !narrows(new, old) => {
            return Err(format!("{base} has {old}, which a restriction can't widen"));
        }
        _ => {}
    }
    *known = Some(new);
    Ok(())
}

/// A count of any size. A count above `usize::MAX` becomes `usize::MAX`, which no value exceeds.
fn count(facet: &Facet) -> Result<usize, String> {
    let text = facet.value.trim_matches(WHITE);
    if text.contains('.') || text.starts_with('-') || Decimal::parse(text).is_none() {
        return Err("it is not a whole number".to_owned());
    }
    Ok(text.trim_start_matches('+').parse().unwrap_or(usize::MAX))
}
