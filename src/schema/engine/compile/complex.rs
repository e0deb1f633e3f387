use std::sync::Arc;

use super::particle::{Order, Particle, Term, is_group};
use super::simple::restrict;
use super::{Compiler, Draft, DraftContent, derivations, is_true, unsupported};
use crate::schema::engine::grammar::{Attributes, Derivation, TypeId};
use crate::schema::engine::simple::Unsupported;
use crate::schema::xsd::read::Place;
use crate::schema::xsd::tree::NodeId;

/// What a derived type takes from its base.
struct Base {
    id: TypeId,
    attributes: Attributes,
    content: DraftContent,
}

impl Compiler<'_, '_> {
    /// A complex type definition (XSD 1.0 part 1, section 3.4.2).
    pub(super) fn complex(&mut self, place: &Place) -> Result<Draft, Unsupported> {
        let tree = self.tree(place);
        let mixed = is_true(tree, place, "mixed");
        let content = tree
            .parts(place.node)
            .find(|part| matches!(tree.node(*part).local.as_str(), "simpleContent" | "complexContent"));
        let (base, derivation, attributes, content) = match content {
            None => {
                let attributes = self.written_attributes(place)?.alone();
                let content = self.own_content(place, mixed)?;
                (self.any_type(), Derivation::Restriction, attributes, content)
            }
            Some(node) => self.derived(&Place { node, ..place.clone() }, mixed)?,
        };
        Ok(Draft {
            label: tree.get(place.node, "name").unwrap_or_default().into(),
            base: Some(base),
            derivation,
            members: Vec::new(),
            is_abstract: is_true(tree, place, "abstract"),
            block: derivations(tree, place, "block", "blockDefault"),
            attributes,
            content,
        })
    }

    /// `xs:simpleContent` or `xs:complexContent`.
    fn derived(
        &mut self,
        place: &Place,
        mixed: bool,
    ) -> Result<(TypeId, Derivation, Attributes, DraftContent), Unsupported> {
        let tree = self.tree(place);
        let is_simple = tree.node(place.node).local == "simpleContent";
        let mixed = tree.get(place.node, "mixed").map_or(mixed, |mixed| matches!(mixed, "true" | "1"));
        let found = tree.parts(place.node).find_map(|part| {
            let derivation = match tree.node(part).local.as_str() {
                "extension" => Derivation::Extension,
                "restriction" => Derivation::Restriction,
                _ => return None,
            };
            Some((part, derivation, tree.get(part, "base")?))
        });
        let Some((node, derivation, base)) = found else { return unsupported("a derived type has no base") };
        let place = Place { node, ..place.clone() };
        let id = self.named_type(&place, base)?;
        self.read(id)?;
        self.unfit.check_type(id)?;
        let draft = self.read(id)?;
        let base = Base { id, attributes: draft.attributes.clone(), content: draft.content.clone() };
        let written = self.written_attributes(&place)?;
        let (attributes, content) = match (is_simple, derivation) {
            (true, Derivation::Extension) => match &base.content {
                DraftContent::Simple(_) => (written.extending(&base.attributes), base.content),
                _ => return unsupported("simple content extends a type that has none"),
            },
            (true, Derivation::Restriction) => {
                let content = self.restricted_text(&place, &base.content)?;
                (written.restricting(&base.attributes), content)
            }
            (false, Derivation::Extension) => {
                let own = self.own_content(&place, mixed)?;
                (written.extending(&base.attributes), self.extended(base.content, own, mixed)?)
            }
            (false, Derivation::Restriction) => {
                (written.restricting(&base.attributes), self.own_content(&place, mixed)?)
            }
        };
        Ok((base.id, derivation, attributes, content))
    }

    /// The text of a restriction with simple content.
    fn restricted_text(&mut self, place: &Place, base: &DraftContent) -> Result<DraftContent, Unsupported> {
        let tree = self.tree(place);
        let has_inner = tree.parts(place.node).any(|part| tree.node(part).local == "simpleType");
        let text = match (has_inner, base) {
            (true, DraftContent::Simple(_) | DraftContent::Children { mixed: true, .. }) => {
                let inner = self.inner_type(place)?;
                self.simple_of(inner)?
            }
            (false, DraftContent::Simple(text)) => text.clone(),
            _ => return unsupported("simple content restricts a type that has none"),
        };
        Ok(DraftContent::Simple(restrict(&text, tree, place.node)?))
    }

    /// What stands behind the content of the base.
    fn extended(&mut self, base: DraftContent, own: DraftContent, mixed: bool) -> Result<DraftContent, Unsupported> {
        let (before, own) = match (base, own) {
            (DraftContent::Simple(_), _) => return unsupported("complex content extends a type with simple content"),
            (base, DraftContent::Empty) => return Ok(base),
            (DraftContent::Empty, own) => return Ok(own),
            (DraftContent::Children { particle, .. }, DraftContent::Children { particle: own, .. }) => (particle, own),
            (DraftContent::Children { .. }, DraftContent::Simple(_)) => {
                return unsupported("complex content holds a simple type");
            }
        };
        // An own content without any particle adds nothing but its being mixed.
        if own.is_empty() {
            return Ok(DraftContent::Children { particle: before, mixed });
        }
        let parts = [Particle::clone(&before), Particle::clone(&own)].into();
        let particle = self.once(Term::Group(Order::Sequence, parts));
        Ok(DraftContent::Children { particle: Arc::new(particle), mixed })
    }

    /// The content that is written inside of a type or derivation.
    fn own_content(&mut self, place: &Place, mixed: bool) -> Result<DraftContent, Unsupported> {
        let tree = self.tree(place);
        let group = tree.parts(place.node).find(|part| is_group(&tree.node(*part).local));
        let particle = match group {
            Some(node) if !self.says_nothing(place, node) => self.particle(&Place { node, ..place.clone() })?,
            _ => None,
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

    /// Whether a group makes the content empty rather than a list of no elements.
    fn says_nothing(&self, place: &Place, group: NodeId) -> bool {
        let tree = self.tree(place);
        let has_parts = tree.parts(group).any(|part| tree.node(part).local != "annotation");
        match tree.node(group).local.as_str() {
            "sequence" | "all" => !has_parts,
            "choice" => !has_parts && tree.get(group, "minOccurs") == Some("0"),
            _ => false,
        }
    }
}
