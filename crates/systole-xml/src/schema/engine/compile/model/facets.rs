//! Simple types of models. Lengths and bounds are those of the compiled types; patterns and enumerated values are read
//! from the documents, because examples are made of the former as written, and the latter have documentation.

use foldhash::{HashSet, HashSetExt};

use super::{Compiled, DOC, DraftContent, Kept, Made, Narrowed, PATTERN, Projection, VALUE};
use crate::schema::engine::grammar::TypeId;
use crate::schema::model::{self, Bound, Enumerator, Facets, Simple, Type, Variety};
use crate::schema::pattern::Pattern;
use crate::schema::simple::SimpleType;
use crate::schema::source::Place;

impl Projection<'_, '_, '_> {
    pub(super) fn simple(&mut self, id: TypeId) -> Option<Simple> {
        let mut facets = Facets::default();
        let variety = self.variety(id, &mut facets)?;
        let definition = match &self.components.grammar.types[id.index()].content {
            Compiled::Simple(simple) => Some(simple.clone()),
            Compiled::Empty | Compiled::Sequence { .. } | Compiled::All { .. } => None,
        };
        let (name, doc) = self.title(id)?;
        Some(Simple { name, doc, ..whole(variety, facets, definition) })
    }

    /// The type of the text content of a complex type.
    pub(super) fn text(&mut self, kept: &Kept) -> Option<model::TypeId> {
        let text = kept.text?;
        let mut narrowed = kept.narrowed.as_ref();
        if narrowed.is_none() {
            return self.refer(text);
        }
        let mut facets = Facets::default();
        while let Some(Narrowed { at, before }) = narrowed.map(|narrowed| &**narrowed) {
            self.listed(&mut facets, at)?;
            narrowed = before.as_ref();
        }
        let variety = self.variety(text, &mut facets)?;
        let definition = match &kept.content {
            DraftContent::Simple(simple) => Some(simple.clone()),
            DraftContent::Empty | DraftContent::Children { .. } => None,
        };
        self.add(Type::Simple(whole(variety, facets, definition)))
    }

    /// The variety of a simple type after all its restrictions. Adds their patterns and values, those of the innermost
    /// restriction last.
    fn variety(&mut self, mut id: TypeId, facets: &mut Facets) -> Option<Variety> {
        let components = self.components;
        loop {
            self.spend(1)?;
            match &components.types[id.index()].made {
                Made::Parts => return None,
                Made::XsdType(xsd_type) => return Some(Variety::Atomic(xsd_type)),
                Made::Restriction(place) => {
                    self.listed(facets, place)?;
                    id = components.grammar.types[id.index()].base?;
                }
                Made::List(item) => return Some(Variety::List(self.refer(*item)?)),
                Made::Union(members) => {
                    // A duplicate member has no effect.
                    let mut seen = HashSet::new();
                    let members = members.iter().filter(|member| seen.insert(**member));
                    return Some(Variety::Union(members.map(|member| self.refer(*member)).collect::<Option<_>>()?));
                }
            }
        }
    }

    /// Adds the patterns and the values of a restriction. Those of restrictions derived from it must be added before.
    fn listed(&mut self, facets: &mut Facets, restriction: &Place) -> Option<()> {
        let tree = &self.components.reader.document(restriction).tree;
        let (mut patterns, mut values) = (Vec::new(), Vec::new());
        let is_enumerated = !facets.values.is_empty();
        // Spends for all of them before any is kept, so that too many never take memory.
        self.spend(tree.parts(restriction.node).count())?;
        for node in tree.parts(restriction.node) {
            let each = if tree.node(node).local == "pattern" { PATTERN } else { VALUE };
            self.spend_on_text(tree.untrimmed(node, "value").unwrap_or_default(), each)?;
        }
        for node in tree.parts(restriction.node) {
            let Some(value) = tree.untrimmed(node, "value") else { continue };
            match tree.node(node).local {
                "pattern" => patterns.push(value),
                "enumeration" if !is_enumerated => {
                    let doc = tree.documentation(node);
                    self.spend_on_text(&doc, DOC)?;
                    let prefix = value.split_once(':').map_or("", |(prefix, _)| prefix.trim());
                    let namespace = Some(tree.bound(node, prefix)).filter(|name| !name.is_empty()).cloned();
                    values.push(Enumerator { value: value.to_owned(), namespace, doc });
                }
                _ => {}
            }
        }
        // The patterns of one restriction are alternatives.
        if !patterns.is_empty() {
            facets.patterns.push(Pattern::from_xsd(&patterns));
        }
        if !is_enumerated {
            facets.values = values;
        }
        Some(())
    }
}

/// A type without a name, with the lengths and bounds that its compiled form has and its built-in type has not.
fn whole(variety: Variety, mut facets: Facets, definition: Option<SimpleType>) -> Simple {
    facets.patterns.reverse();
    if let Some(made) = &definition {
        let xsd_type = match &variety {
            Variety::Atomic(xsd_type) => SimpleType::xsd_type(xsd_type.name),
            Variety::List(_) | Variety::Union(_) => None,
        };
        let known = xsd_type.as_ref();
        let of_xsd_type = known.map(SimpleType::lengths).unwrap_or_default();
        let [min_length, max_length] =
            beyond(made.lengths(), of_xsd_type).map(|length| length.and_then(|length| u64::try_from(length).ok()));
        (facets.min_length, facets.max_length) = (min_length, max_length);
        let of_xsd_type = known.map(SimpleType::bounds).unwrap_or_default();
        let bound = |bound: Option<(&str, bool)>| {
            bound.map(|(value, exclusive)| Bound { value: value.trim().to_owned(), exclusive })
        };
        [facets.min, facets.max] = beyond(made.bounds(), of_xsd_type).map(bound);
    }
    Simple { name: None, doc: String::new(), variety, facets, definition }
}

/// The limits that differ from known ones.
fn beyond<T: PartialEq>([min, max]: [Option<T>; 2], [least, most]: [Option<T>; 2]) -> [Option<T>; 2] {
    [if min == least { None } else { min }, if max == most { None } else { max }]
}
