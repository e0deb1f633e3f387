use super::simple::Scope;
use super::{Compiler, unsupported, value_constraint};
use crate::schema::engine::grammar::{
    Attribute, AttributeUse, Attributes, Name, ProcessContents, ValueConstraint, Wildcard,
};
use crate::schema::engine::namespace::{Namespace, NamespaceSet};
use crate::schema::engine::simple::{Identity, Unsupported};
use crate::schema::xsd::read::{Kind, Place};
use crate::schema::xsd::tree::Tree;

/// What a complex type, or an attribute group, says of attributes.
#[derive(Default)]
pub(super) struct Written {
    pub(super) uses: Vec<AttributeUse>,
    /// Those that a restriction takes away.
    pub(super) prohibited: Vec<Name>,
    pub(super) wildcard: Option<Wildcard>,
}

impl Compiler<'_, '_> {
    /// The attributes that are written inside of a type, derivation or attribute group.
    pub(super) fn written_attributes(&mut self, place: &Place) -> Result<Written, Unsupported> {
        let tree = self.tree(place);
        let mut written = Written::default();
        let mut groups: Vec<Wildcard> = Vec::new();
        for node in tree.parts(place.node) {
            let part = Place { node, ..place.clone() };
            match tree.node(node).local.as_str() {
                "attribute" => {
                    let used = self.attribute_use(&part)?;
                    match tree.get(node, "use") {
                        Some("prohibited") => written.prohibited.push(used.name),
                        _ => written.uses.push(used),
                    }
                }
                "attributeGroup" => {
                    let Some(reference) = tree.get(node, "ref") else { continue };
                    let name = self.reference(&part, reference)?;
                    let found = self.find(Kind::AttributeGroup, &name)?;
                    let group = self.nested(|compiler| compiler.written_attributes(found))?;
                    written.uses.extend(group.uses);
                    groups.extend(group.wildcard);
                }
                "anyAttribute" => written.wildcard = Some(self.wildcard(&part)),
                _ => {}
            }
        }
        // Section 3.4.2, {attribute wildcard}: all of them together, processed as its own one or else the first says.
        written.wildcard = written.wildcard.into_iter().chain(groups).reduce(|one, other| Wildcard {
            namespaces: one.namespaces.intersection(&other.namespaces),
            process: one.process,
        });
        Ok(written)
    }

    fn attribute_use(&mut self, place: &Place) -> Result<AttributeUse, Unsupported> {
        let tree = self.tree(place);
        let required = tree.get(place.node, "use") == Some("required");
        if let Some(reference) = tree.get(place.node, "ref") {
            let reference = self.reference(place, reference)?;
            let found = self.find(Kind::Attribute, &reference)?;
            let mut attribute = self.attribute(found)?;
            if let Some(constraint) = value_constraint(tree, place) {
                attribute.fixed = self.fixed(place, &attribute, constraint)?;
            }
            let name = Name { namespace: self.namespaces.intern(&reference.0), local: reference.1.into() };
            return Ok(AttributeUse { name, required, attribute });
        }
        let form = tree.get(place.node, "form").or_else(|| tree.get(0, "attributeFormDefault"));
        let qualified = form == Some("qualified");
        let namespace = if qualified { self.namespaces.intern(&place.target) } else { Namespace::NONE };
        let Some(local) = tree.get(place.node, "name") else { return unsupported("an attribute has no name") };
        let name = Name { namespace, local: local.into() };
        Ok(AttributeUse { name, required, attribute: self.attribute(place)? })
    }

    /// An attribute declaration.
    pub(super) fn attribute(&mut self, place: &Place) -> Result<Attribute, Unsupported> {
        let tree = self.tree(place);
        let inner = tree.parts(place.node).find(|part| tree.node(*part).local == "simpleType");
        let ty = match (tree.get(place.node, "type"), inner) {
            (Some(name), _) => self.named_type(place, name)?,
            (None, Some(node)) => self.type_at(&Place { node, ..place.clone() })?,
            (None, None) => self.builtin("anySimpleType")?,
        };
        let mut attribute = Attribute { ty: self.simple_of(ty)?, fixed: None };
        if let Some(constraint) = value_constraint(tree, place) {
            attribute.fixed = self.fixed(place, &attribute, constraint)?;
        }
        Ok(attribute)
    }

    /// The fixed value of an attribute, which is one of its type.
    fn fixed(
        &self,
        place: &Place,
        attribute: &Attribute,
        constraint: ValueConstraint,
    ) -> Result<Option<Box<str>>, Unsupported> {
        let scope = Scope::new(self.tree(place), place.node);
        if attribute.ty.check(&constraint.text, &scope).is_err() {
            return unsupported(format!(
                "the value '{}' that an attribute is given is none of its type",
                constraint.text
            ));
        }
        if attribute.ty.identity() != Identity::None || scope.was_asked() {
            return unsupported("an attribute is given a value that is a qualified name or a reference to an ID");
        }
        Ok(constraint.fixed.then_some(constraint.text))
    }

    /// `xs:any` or `xs:anyAttribute`.
    pub(super) fn wildcard(&mut self, place: &Place) -> Wildcard {
        let tree: &Tree = self.tree(place);
        let target = self.namespaces.intern(&place.target);
        let namespaces = match tree.get(place.node, "namespace") {
            None | Some("##any") => NamespaceSet::any(),
            Some("##other") => NamespaceSet::other_than(target),
            Some(list) => NamespaceSet::of(list.split_ascii_whitespace().map(|name| match name {
                "##targetNamespace" => target,
                "##local" => Namespace::NONE,
                name => self.namespaces.intern(name),
            })),
        };
        let process = match tree.get(place.node, "processContents") {
            Some("lax") => ProcessContents::Lax,
            Some("skip") => ProcessContents::Skip,
            _ => ProcessContents::Strict,
        };
        Wildcard { namespaces, process }
    }
}

impl Written {
    /// The attributes of a type that is no derivation.
    pub(super) fn alone(self) -> Attributes {
        assemble(self.uses, self.wildcard)
    }

    /// Those of an extension: section 3.4.2, the wildcards of both together.
    pub(super) fn extending(self, base: &Attributes) -> Attributes {
        let wildcard = match (&base.wildcard, self.wildcard) {
            (Some(base), Some(own)) => {
                Some(Wildcard { namespaces: base.namespaces.union(&own.namespaces), process: own.process })
            }
            (base, own) => own.or_else(|| base.clone()),
        };
        assemble(base.uses.iter().cloned().chain(self.uses).collect(), wildcard)
    }

    /// Those of a restriction: what it doesn't say again stays, but for the wildcard.
    pub(super) fn restricting(self, base: &Attributes) -> Attributes {
        let own = |name: &Name| self.uses.iter().any(|used| used.name == *name);
        let kept = base.uses.iter().filter(|used| !own(&used.name) && !self.prohibited.contains(&used.name));
        let uses = kept.cloned().chain(self.uses.iter().cloned()).collect();
        assemble(uses, self.wildcard)
    }
}

fn assemble(uses: Vec<AttributeUse>, wildcard: Option<Wildcard>) -> Attributes {
    let required = uses.iter().filter(|used| used.required).count();
    Attributes { uses, required: u32::try_from(required).unwrap_or(u32::MAX), wildcard }
}
