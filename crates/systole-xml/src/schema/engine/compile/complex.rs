//! Complex types: their content and attributes, and their derivation by extension or restriction (XSD 1.0 part 1,
//! section 3.4).

use std::sync::Arc;

use super::model::{Made, Narrowed};
use super::particle::{Order, Particle, Term, is_group};
use super::simple::{check_notation, is_facet};
use super::{BrokenSchemaRule, Compiler, Draft, DraftContent, derivations, is_true, key, wrong};
use crate::schema::engine::grammar::{Attributes, Derivation, Derivations, TypeId};
use crate::schema::source::Place;
use crate::schema::source::tree::NodeId;

/// The properties that a derived type takes from its base.
struct Base {
    id: TypeId,
    attributes: Attributes,
    content: DraftContent,
    /// The simple type of the text content, and the facets by which the base narrows that type.
    text: Option<TypeId>,
    narrowed: Option<Arc<Narrowed>>,
    last: Derivations,
    is_simple: bool,
}

/// The properties of a complex type, from its base and its own declarations.
struct Derived {
    base: TypeId,
    derivation: Derivation,
    attributes: Attributes,
    content: DraftContent,
    text: Option<TypeId>,
    narrowed: Option<Arc<Narrowed>>,
}

impl Compiler<'_, '_> {
    /// The draft of a complex type definition (XSD 1.0 part 1, section 3.4.2).
    pub(super) fn complex(&mut self, place: &Place) -> Result<Draft, BrokenSchemaRule> {
        let tree = self.tree(place);
        let mixed = is_true(tree, place, "mixed");
        let content =
            tree.parts(place.node).find(|part| matches!(tree.node(*part).local, "simpleContent" | "complexContent"));
        let Derived { base, derivation, attributes, content, text, narrowed } = match content {
            None => {
                if self.reader.original(place).is_some() {
                    return wrong("a type in xs:redefine extends or restricts itself");
                }
                let attributes = self.written_attributes(place)?.alone()?;
                let content = self.own_content(place, mixed)?;
                let (base, derivation) = (self.any_type(), Derivation::Restriction);
                Derived { base, derivation, attributes, content, text: None, narrowed: None }
            }
            Some(node) => self.derived(&Place { node, ..place.clone() }, mixed)?,
        };
        if let DraftContent::Simple(text) = &content {
            check_notation(text, "the type of simple content")?;
        }
        Ok(Draft {
            label: tree.get(place.node, "name").unwrap_or_default().into(),
            base: Some(base),
            derivation,
            members: Vec::new(),
            is_abstract: is_true(tree, place, "abstract"),
            block: derivations(tree, place, "block", "blockDefault"),
            last: derivations(tree, place, "final", "finalDefault"),
            place: None,
            text,
            is_simple: false,
            made: Made::Parts,
            narrowed,
            attributes,
            content,
        })
    }

    /// The properties of a type with `xs:simpleContent` or `xs:complexContent`.
    fn derived(&mut self, place: &Place, mixed: bool) -> Result<Derived, BrokenSchemaRule> {
        let tree = self.tree(place);
        let whole = place.clone();
        let is_simple = tree.node(place.node).local == "simpleContent";
        let mixed = tree.get(place.node, "mixed").map_or(mixed, |mixed| matches!(mixed, "true" | "1"));
        let found = tree.parts(place.node).find_map(|part| {
            let derivation = match tree.node(part).local {
                "extension" => Derivation::Extension,
                "restriction" => Derivation::Restriction,
                _ => return None,
            };
            Some((part, derivation, tree.get(part, "base")?))
        });
        let Some((node, derivation, base)) = found else { return wrong("a derived type has no base") };
        let place = Place { node, ..place.clone() };
        let id = self.named_type(&place, base)?;
        self.check_redefinition(&whole, id)?;
        let draft = self.read(id)?;
        let base = Base {
            id,
            attributes: draft.attributes.clone(),
            content: draft.content.clone(),
            text: draft.text.or(draft.is_simple.then_some(id)),
            narrowed: draft.narrowed.clone(),
            last: draft.last,
            is_simple: draft.is_simple,
        };
        if derivation == Derivation::Extension && base.last.extension
            || derivation == Derivation::Restriction && base.last.restriction
        {
            return wrong("the 'final' of the base forbids this derivation");
        }
        self.spend_on_attributes(&base.attributes.uses)?;
        let written = self.written_attributes(&place)?;
        if !is_simple && base.is_simple {
            return wrong("complex content can't be derived from a simple type: write xs:simpleContent");
        }
        if is_simple && derivation == Derivation::Restriction && base.is_simple {
            return wrong("simple content can't restrict a simple type: write xs:extension, or an xs:simpleType");
        }
        let (mut text, mut narrowed) = (base.text, base.narrowed.clone());
        let (attributes, content) = match (is_simple, derivation) {
            (true, Derivation::Extension) => match &base.content {
                DraftContent::Simple(_) => (written.extending(&base.attributes)?, base.content),
                _ => return wrong("simple content extends a type that has none"),
            },
            (true, Derivation::Restriction) => {
                let (content, inner) = self.restricted_text(&place, &base.content, base.text)?;
                if inner.is_some() {
                    (text, narrowed) = (inner, None);
                }
                let tree = self.tree(&place);
                if tree.parts(place.node).any(|part| is_facet(tree.node(part).local)) {
                    narrowed = Some(Arc::new(Narrowed { at: place.clone(), before: narrowed }));
                }
                (self.restricted_attributes(written, &base)?, content)
            }
            (false, Derivation::Extension) => {
                let own = self.own_content(&place, mixed)?;
                (written.extending(&base.attributes)?, self.extended(base.content, own, mixed)?)
            }
            (false, Derivation::Restriction) => {
                (self.restricted_attributes(written, &base)?, self.own_content(&place, mixed)?)
            }
        };
        Ok(Derived { base: base.id, derivation, attributes, content, text, narrowed })
    }

    fn restricted_attributes(
        &mut self,
        written: super::attributes::Written,
        base: &Base,
    ) -> Result<Attributes, BrokenSchemaRule> {
        let attributes = written.restricting(&base.attributes)?;
        self.check_attributes(&attributes, &base.attributes, base.id == self.any_type())?;
        Ok(attributes)
    }

    /// Checks that a type in `xs:redefine` derives from the type that it redefines (section 4.2.2, src-redefine, clause
    /// 5).
    pub(super) fn check_redefinition(&self, place: &Place, base: TypeId) -> Result<(), BrokenSchemaRule> {
        let tree = self.tree(place);
        let mut outer = tree.ancestors(place.node).map(|node| Place { node, ..place.clone() });
        let Some(original) = outer.find_map(|outer| self.reader.original(&outer)) else { return Ok(()) };
        // Anonymous types inside of it may derive from any type.
        let is_whole = self
            .reader
            .original(&Place { node: tree.ancestors(place.node).nth(1).unwrap_or(0), ..place.clone() })
            .is_some()
            || self.reader.original(place).is_some();
        if is_whole && self.type_ids.get(&key(original)) != Some(&base) {
            return wrong("a type in xs:redefine extends or restricts itself: its base is its own name");
        }
        Ok(())
    }

    /// The text content of a restriction with simple content.
    fn restricted_text(
        &mut self,
        place: &Place,
        base: &DraftContent,
        of_base: Option<TypeId>,
    ) -> Result<(DraftContent, Option<TypeId>), BrokenSchemaRule> {
        let tree = self.tree(place);
        let has_inner = tree.parts(place.node).any(|part| tree.node(part).local == "simpleType");
        let mut inner = None;
        let text = match (has_inner, base) {
            (true, DraftContent::Simple(_) | DraftContent::Children { mixed: true, .. }) => {
                let id = self.inner_type(place)?;
                inner = Some(id);
                let simple = self.simple_of(id)?;
                if let Some(of_base) = of_base
                    && !self.is_restriction(id, of_base, Derivations::default())?
                {
                    return wrong("the xs:simpleType inside is not derived from the simple type of the base");
                }
                simple
            }
            (false, DraftContent::Simple(text)) => text.clone(),
            _ => return wrong("simple content restricts a type that has none"),
        };
        Ok((DraftContent::Simple(self.restrict(&text, place)?), inner))
    }

    /// The content of an extension: that of the base, then its own.
    fn extended(
        &mut self,
        base: DraftContent,
        own: DraftContent,
        mixed: bool,
    ) -> Result<DraftContent, BrokenSchemaRule> {
        let (before, own) = match (base, own) {
            // An extension without content of its own has that of the base (section 3.4.6, cos-ct-extends, clause
            // 1.4.1).
            (base, DraftContent::Empty) => return Ok(base),
            (DraftContent::Simple(_), _) => return wrong("complex content extends a type with simple content"),
            (DraftContent::Empty, own) => return Ok(own),
            (DraftContent::Children { mixed: before, .. }, DraftContent::Children { mixed, .. }) if before != mixed => {
                return wrong("an extension is mixed if its base is, and only then: set mixed on both or on neither");
            }
            (DraftContent::Children { particle, .. }, DraftContent::Children { particle: own, .. }) => (particle, own),
            (DraftContent::Children { .. }, DraftContent::Simple(_)) => {
                return wrong("complex content holds a simple type");
            }
        };
        if own.is_empty() {
            return Ok(DraftContent::Children { particle: before, mixed });
        }
        if before.holds_all() && !before.is_empty() || own.holds_all() {
            return wrong("xs:all must be the whole content of its type: neither it nor its base can be extended");
        }
        let parts = [Particle::clone(&before), Particle::clone(&own)].into();
        let particle = self.once(Term::Group(Order::Sequence, parts));
        Ok(DraftContent::Children { particle: Arc::new(particle), mixed })
    }

    /// The content that is declared inside of a type or derivation.
    fn own_content(&mut self, place: &Place, mixed: bool) -> Result<DraftContent, BrokenSchemaRule> {
        let tree = self.tree(place);
        let group = tree.parts(place.node).find(|part| is_group(tree.node(*part).local));
        let particle = match group {
            Some(node) => {
                let particle = self.particle(&Place { node, ..place.clone() })?;
                particle.filter(|_| !self.says_nothing(place, node))
            }
            None => None,
        };
        Ok(match particle {
            Some(particle) => DraftContent::Children { particle: particle.into(), mixed },
            None if mixed => {
                let empty = self.once(Term::Group(Order::Sequence, [].into()));
                DraftContent::Children { particle: empty.into(), mixed }
            }
            None => DraftContent::Empty,
        })
    }

    /// Reports whether a group makes the content empty, rather than a choice that nothing satisfies.
    fn says_nothing(&self, place: &Place, group: NodeId) -> bool {
        let tree = self.tree(place);
        let has_parts = tree.parts(group).any(|part| tree.node(part).local != "annotation");
        match tree.node(group).local {
            "sequence" | "all" => !has_parts,
            "choice" => !has_parts && tree.get(group, "minOccurs") == Some("0"),
            _ => false,
        }
    }
}
