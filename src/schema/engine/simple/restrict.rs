use std::cmp::Ordering;
use std::sync::Arc;

use super::bound::Bound;
use super::decimal::Decimal;
use super::definition::{Definition, Variety};
use super::enumeration::Enumeration;
use super::facets::{Facets, Pattern};
use super::space::{Space, WHITE};
use super::{Facet, SimpleType, Unsupported, words};
use crate::schema::pattern;

/// One step of restriction.
pub(super) fn restrict(base: &SimpleType, given: &[Facet]) -> Result<Definition, Unsupported> {
    if matches!(base.definition.variety, Variety::Any) {
        return Err(Unsupported::because("it restricts anySimpleType"));
    }
    let mut step = Step { base, facets: base.definition.facets.clone(), space: base.definition.space };
    for facet in given {
        step.add(facet).map_err(|reason| {
            let Facet { name, value, .. } = facet;
            Unsupported::because(format!("the facet {name} with the value '{value}': {reason}"))
        })?;
    }
    step.add_patterns(given)?;
    step.add_enumeration(given)?;
    let Step { facets, space, .. } = step;
    let noun = base.definition.noun.clone();
    let made = Definition {
        variety: base.definition.variety.clone(),
        space,
        lexis: base.definition.lexis,
        identity: base.definition.identity,
        words: words::restriction(&noun, &base.definition.variety, &facets, enumerators(base, given)),
        noun,
        facets,
        depth: 0,
    };
    made.nested(base.definition.depth)
}

/// The values of an enumeration as written, those of the base if there are none of its own.
fn enumerators<'a>(base: &SimpleType, given: &[Facet<'a>]) -> words::Enumerators<'a> {
    let own: Vec<&str> = given.iter().filter(|facet| facet.name == "enumeration").map(|facet| facet.value).collect();
    match (own.is_empty(), &base.definition.facets.values) {
        (true, Some(_)) => words::Enumerators::OfBase(base.words().to_owned()),
        (true, None) => words::Enumerators::None,
        (false, _) => words::Enumerators::Own(own),
    }
}

struct Step<'a> {
    base: &'a SimpleType,
    facets: Facets,
    space: Space,
}

impl Step<'_> {
    /// Adds one facet; patterns and enumerations are only checked for whether the type has them.
    fn add(&mut self, facet: &Facet) -> Result<(), String> {
        if !has_facet(&self.base.definition.variety, facet.name) {
            return Err("its base type has no such facet".to_owned());
        }
        let facets = &mut self.facets;
        match facet.name {
            "length" => facets.length = Some(count(facet)?),
            "minLength" => facets.min_length = Some(count(facet)?.max(facets.min_length.unwrap_or(0))),
            "maxLength" => facets.max_length = Some(count(facet)?.min(facets.max_length.unwrap_or(usize::MAX))),
            "totalDigits" => facets.total_digits = Some(count(facet)?.min(facets.total_digits.unwrap_or(usize::MAX))),
            "fractionDigits" => {
                facets.fraction_digits = Some(count(facet)?.min(facets.fraction_digits.unwrap_or(usize::MAX)));
            }
            "whiteSpace" => {
                let space = Space::named(facet.value.trim_matches(WHITE)).ok_or("it is none of the three")?;
                if space < self.space {
                    return Err("its base type normalizes more".to_owned());
                }
                self.space = space;
            }
            "minInclusive" | "minExclusive" => self.facets.least = Some(self.bound(facet, Ordering::Greater)?),
            "maxInclusive" | "maxExclusive" => self.facets.most = Some(self.bound(facet, Ordering::Less)?),
            _ => {}
        }
        Ok(())
    }

    fn bound(&self, facet: &Facet, side: Ordering) -> Result<Bound, String> {
        let Variety::Atomic(primitive) = self.base.definition.variety else {
            return Err("its base type has no order".to_owned());
        };
        let written = facet.value.trim_matches(WHITE);
        let value = primitive.value(written, facet.prefixes).map_err(|_| "it is no value of its base type")?;
        let inclusive = facet.name.ends_with("Inclusive");
        let bound = Bound { value: value.into_owned(), inclusive, written: written.into() };
        let known = if side == Ordering::Greater { &self.facets.least } else { &self.facets.most };
        match known {
            Some(known) if !bound.is_within(known, side) => Err("it lies outside of its base type".to_owned()),
            _ => Ok(bound),
        }
    }

    fn add_patterns(&mut self, given: &[Facet]) -> Result<(), Unsupported> {
        let patterns: Vec<&str> =
            given.iter().filter(|facet| facet.name == "pattern").map(|facet| facet.value).collect();
        if patterns.is_empty() {
            return Ok(());
        }
        let written: Arc<str> = patterns.join(" or ").into();
        let regex = pattern::alternatives(&patterns)
            .map_err(|reason| Unsupported::because(format!("the pattern '{written}': {reason}")))?;
        self.facets.patterns.push(Pattern { regex, written });
        Ok(())
    }

    fn add_enumeration(&mut self, given: &[Facet]) -> Result<(), Unsupported> {
        let value = |facet: &Facet| match self.base.definition.value(facet.value, facet.prefixes, true) {
            Ok(value) => Ok(value.into_owned()),
            Err(_) => {
                let reason = format!("the enumerated '{}' is no value of its base type", facet.value);
                Err(Unsupported::because(reason))
            }
        };
        let enumerated = given.iter().filter(|facet| facet.name == "enumeration").map(value);
        let values = enumerated.collect::<Result<Vec<_>, _>>()?;
        if !values.is_empty() {
            self.facets.values = Some(Arc::new(Enumeration::new(values)));
        }
        Ok(())
    }
}

/// Whether a facet may restrict a type of this variety (section 4.1.5).
fn has_facet(variety: &Variety, facet: &str) -> bool {
    match variety {
        Variety::Any => false,
        Variety::Atomic(primitive) => primitive.has_facet(facet),
        Variety::List(_) => {
            matches!(facet, "length" | "minLength" | "maxLength" | "pattern" | "enumeration" | "whiteSpace")
        }
        Variety::Union(_) => matches!(facet, "pattern" | "enumeration"),
    }
}

/// A count of any size: more than memory holds is as good as the most that it holds.
fn count(facet: &Facet) -> Result<usize, String> {
    let text = facet.value.trim_matches(WHITE);
    if text.contains('.') || text.starts_with('-') || Decimal::parse(text).is_none() {
        return Err("it is no whole number".to_owned());
    }
    Ok(text.trim_start_matches('+').parse().unwrap_or(usize::MAX))
}
