//! The built-in types, and the attributes that every schema declares.

use super::model::Made;
use super::particle::{Particle, Term};
use super::{BrokenSchemaRule, Compiler, Draft, DraftContent, Reference, Slot};
use crate::schema::engine::grammar::{
    Attribute, Attributes, Derivation, Derivations, Name, ProcessContents, TypeId, UNBOUNDED, Wildcard,
};
use crate::schema::engine::namespace::{Namespace, NamespaceSet};
use crate::schema::simple::{SimpleType, XsdType};
use crate::vocab::ns;

/// The attributes in the namespace of `xsi:type`, with their types; for `xsi:schemaLocation`, the type of each list
/// item.
const INSTANCE: [(&str, &str); 4] =
    [("type", "QName"), ("nil", "boolean"), ("schemaLocation", "anyURI"), ("noNamespaceSchemaLocation", "anyURI")];

impl Compiler<'_, '_> {
    /// Adds the types that every schema has; `xs:anyType` is the first.
    pub(super) fn xsd_types(&mut self) -> Result<(), BrokenSchemaRule> {
        let any = self.any_draft();
        let any = self.add(Slot::Read(Box::new(any)));
        debug_assert_eq!(any, self.any_type());
        self.global_types.push((xsd("anyType"), any));
        for xsd_type in XsdType::all() {
            let Some(simple) = SimpleType::xsd_type(xsd_type.name) else { continue };
            let base = self.xsd_type(xsd_type.base())?;
            let draft = Draft::simple(format!("xs:{}", xsd_type.name).into(), base, simple, Made::XsdType(xsd_type));
            let id = self.add(Slot::Read(Box::new(draft)));
            self.global_types.push((xsd(xsd_type.name), id));
        }
        // Every schema declares the attributes in the namespace of xsi:type (section 3.2.7).
        for (local, ty) in INSTANCE {
            let id = self.xsd_type(ty)?;
            let name = Name { namespace: Namespace::XSI, local: local.into() };
            let ty = self.simple_of(id)?;
            let ty = if local == "schemaLocation" { SimpleType::list(&ty)? } else { ty };
            self.global_attributes.push((name, Attribute { ty, id, value: None }));
        }
        Ok(())
    }

    /// The attribute in the namespace of `xsi:type` that a reference names: every schema has it (section 3.2.7).
    pub(super) fn instance_attribute(&self, (namespace, local): &Reference) -> Option<Attribute> {
        let mut known = self.global_attributes.iter().take(INSTANCE.len());
        let found = known.find(|(name, _)| **namespace == *ns::XSI && name.is(Namespace::XSI, local));
        found.map(|(_, attribute)| attribute.clone())
    }

    pub(super) fn any_type(&self) -> TypeId {
        TypeId(0)
    }

    /// The built-in type of a local name, if there is one.
    pub(super) fn known_xsd_type(&self, local: &str) -> Option<TypeId> {
        // The built-in types are the first entries.
        let known = self.global_types.iter().take(XsdType::all().len() + 1);
        known.filter(|(name, _)| name.is(Namespace::XSD, local)).map(|(_, id)| *id).next()
    }

    /// The built-in type of a local name that exists.
    pub(super) fn xsd_type(&self, local: &str) -> Result<TypeId, BrokenSchemaRule> {
        self.known_xsd_type(local).ok_or_else(|| BrokenSchemaRule::new(None, format!("there is no type xs:{local}")))
    }

    /// The draft of `xs:anyType`: any content and any attributes, checked laxly (section 3.4.7).
    fn any_draft(&mut self) -> Draft {
        let lax = Wildcard { namespaces: NamespaceSet::any(), process: ProcessContents::Lax };
        let particle = Particle { id: self.particle_id(), min: 0, max: UNBOUNDED, term: Term::Wildcard(lax.clone()) };
        Draft {
            label: "xs:anyType".into(),
            attributes: Attributes { wildcard: Some(lax), ..Attributes::default() },
            content: DraftContent::Children { particle: particle.into(), mixed: true },
            ..Draft::placeholder(None)
        }
    }
}

impl Draft {
    /// A draft with a base, as all types but `xs:anyType` have one, and nothing else.
    pub(super) fn placeholder(base: impl Into<Option<TypeId>>) -> Self {
        Self {
            label: Box::default(),
            base: base.into(),
            derivation: Derivation::Restriction,
            members: Vec::new(),
            is_abstract: false,
            block: Derivations::default(),
            last: Derivations::default(),
            place: None,
            text: None,
            is_simple: false,
            made: Made::Parts,
            narrowed: None,
            attributes: Attributes::default(),
            content: DraftContent::Empty,
        }
    }

    pub(super) fn simple(label: Box<str>, base: TypeId, simple: SimpleType, made: Made) -> Self {
        Self { label, content: DraftContent::Simple(simple), is_simple: true, made, ..Self::placeholder(base) }
    }
}

fn xsd(local: &str) -> Name {
    Name { namespace: Namespace::XSD, local: local.into() }
}
