use std::collections::BTreeSet;

use super::build::Builder;
use super::read::Place;
use crate::schema::engine::Builtin;
use crate::schema::model::{Bound, Enumerator, Facets, Simple, Type, TypeId, Variety};
use crate::schema::pattern::Pattern;

impl Builder<'_, '_> {
    pub(super) fn builtin(&mut self, name: &str) -> Option<TypeId> {
        let variety = Variety::Atomic(Builtin::named(name));
        self.add(Type::Simple(Simple { name: None, doc: String::new(), variety, facets: Facets::default() }))
    }

    pub(super) fn simple(&mut self, place: &Place) -> Option<Simple> {
        let tree = &self.reader.document(place).tree;
        let name = tree.get(place.node, "name").map(str::to_owned);
        let doc = tree.documentation(place.node);
        let derivation = tree.parts(place.node).find(|part| tree.node(*part).local != "annotation")?;
        let derived = Place { node: derivation, ..place.clone() };
        match tree.node(derivation).local.as_str() {
            "restriction" => {
                let base = self.base(&derived)?;
                let restricted = self.restricted(base, &derived)?;
                let Type::Simple(restricted) = &self.types[restricted] else { return None };
                Some(Simple { name, doc, ..restricted.clone() })
            }
            "list" => {
                let item = match tree.get(derivation, "itemType") {
                    Some(item) => self.named_type(&self.reader.name(&derived, item)?, &derived)?,
                    None => self.inner_types(&derived)?.into_iter().next()?,
                };
                Some(Simple { name, doc, variety: Variety::List(item), facets: Facets::default() })
            }
            _ => {
                let mut members = Vec::new();
                for member in tree.get(derivation, "memberTypes").unwrap_or_default().split_whitespace() {
                    members.push(self.named_type(&self.reader.name(&derived, member)?, &derived)?);
                }
                members.extend(self.inner_types(&derived)?);
                // One that stands twice decides nothing the second time.
                let mut seen = BTreeSet::new();
                members.retain(|member| seen.insert(*member));
                Some(Simple { name, doc, variety: Variety::Union(members), facets: Facets::default() })
            }
        }
    }

    /// The type that a restriction narrows.
    fn base(&mut self, derived: &Place) -> Option<TypeId> {
        match self.reader.document(derived).tree.get(derived.node, "base") {
            Some(base) => self.named_type(&self.reader.name(derived, base)?, derived),
            None => self.inner_types(derived)?.into_iter().next(),
        }
    }

    fn inner_types(&mut self, place: &Place) -> Option<Vec<TypeId>> {
        let tree = &self.reader.document(place).tree;
        let inner = tree.parts(place.node).filter(|part| tree.node(*part).local == "simpleType");
        inner.map(|node| self.type_at(&Place { node, ..place.clone() })).collect()
    }

    /// A simple type with the facets of a restriction.
    pub(super) fn restricted(&mut self, base: TypeId, restriction: &Place) -> Option<TypeId> {
        let Type::Simple(base) = self.types[base].clone() else { return None };
        let facets = self.facets(base.facets, restriction)?;
        self.add(Type::Simple(Simple { name: None, doc: String::new(), variety: base.variety, facets }))
    }

    fn facets(&self, mut facets: Facets, restriction: &Place) -> Option<Facets> {
        let tree = &self.reader.document(restriction).tree;
        let (mut patterns, mut values) = (Vec::new(), Vec::new());
        for node in tree.parts(restriction.node) {
            let Some(value) = tree.node(node).attributes.iter().find(|(name, _)| name == "value").map(|(_, v)| v)
            else {
                continue;
            };
            let bound = |exclusive| Some(Bound { value: value.trim().to_owned(), exclusive });
            let number = || value.trim().parse().ok();
            match tree.node(node).local.as_str() {
                "length" => (facets.min_length, facets.max_length) = (number(), number()),
                "minLength" => facets.min_length = number(),
                "maxLength" => facets.max_length = number(),
                "minInclusive" => facets.min = bound(false),
                "minExclusive" => facets.min = bound(true),
                "maxInclusive" => facets.max = bound(false),
                "maxExclusive" => facets.max = bound(true),
                "pattern" => patterns.push(format!("({value})")),
                "enumeration" => values.push(Enumerator { value: value.clone(), doc: tree.documentation(node) }),
                _ => {}
            }
        }
        // The patterns of one restriction are alternatives.
        if !patterns.is_empty() {
            let pattern =
                if patterns.len() == 1 { patterns[0][1..patterns[0].len() - 1].to_owned() } else { patterns.join("|") };
            facets.patterns.push(Pattern::from_xsd(&pattern));
        }
        if !values.is_empty() {
            facets.values = values;
        }
        Some(facets)
    }
}
