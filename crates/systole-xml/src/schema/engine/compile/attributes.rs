//! Attributes of complex types and attribute groups: declarations, uses, wildcards, and the rules for extension and
//! restriction (XSD 1.0 part 1, sections 3.2, 3.4 and 3.6).

use std::sync::Arc;

use foldhash::{HashSet, HashSetExt};

use super::simple::{Scope, check_notation, checked_key};
use super::{BrokenSchemaRule, Compiler, key, value_constraint, wrong};
use crate::schema::engine::grammar::{
    Attribute, AttributeUse, Attributes, Derivations, FEW, Name, ProcessContents, ValueConstraint, Wildcard,
};
use crate::schema::engine::namespace::{Namespace, NamespaceSet};
use crate::schema::shorten::quoted;
use crate::schema::simple::NoPrefixes;
use crate::schema::source::Place;
use crate::schema::source::read::Kind;
use crate::schema::source::tree::Tree;

/// The attributes that a complex type or an attribute group declares.
#[derive(Default, Clone)]
pub(super) struct Written {
    pub(super) uses: Vec<AttributeUse>,
    /// The attributes that a restriction removes.
    pub(super) prohibited: Vec<Name>,
    pub(super) wildcard: Option<Wildcard>,
}

impl Compiler<'_, '_> {
    /// Checks a global attribute group, which may have no reference to it.
    pub(super) fn attribute_group(&mut self, place: &Place) -> Result<(), BrokenSchemaRule> {
        let mut written = self.group_attributes(place)?;
        let mut redefined = place;
        // The redefined group may be a redefinition itself.
        while let Some(original) = self.reader.original(redefined) {
            let base = self.group_attributes(original)?;
            if !self.refers_to_itself(redefined, "attributeGroup").map_err(|wrong| wrong.at(redefined))? {
                let [own, base] = [&written, &base].map(|group| Written::clone(group).alone());
                self.check_attributes(&own?, &base?, false).map_err(|wrong| wrong.at(redefined))?;
            }
            (written, redefined) = (base, original);
        }
        Ok(())
    }

    /// The attributes of an attribute group; each group is read once.
    fn group_attributes(&mut self, place: &Place) -> Result<Arc<Written>, BrokenSchemaRule> {
        if let Some(known) = self.attribute_groups.get(&key(place)) {
            return Ok(known.clone());
        }
        if self.reading_groups.contains(&key(place)) {
            return wrong("an attribute group contains itself: remove the reference to it")
                .map_err(|wrong: BrokenSchemaRule| wrong.at(place));
        }
        self.reading_groups.push(key(place));
        let written = self.nested(|compiler| compiler.written_attributes(place));
        let written = written.and_then(|mut written| {
            keep_distinct(&mut written.uses);
            by_name(&written.uses).map(|_| Arc::new(written))
        });
        let written = written.map_err(|wrong| wrong.at(place))?;
        self.reading_groups.pop();
        self.attribute_groups.insert(key(place), written.clone());
        Ok(written)
    }

    /// The attributes that are written inside of a type, derivation or attribute group.
    pub(super) fn written_attributes(&mut self, place: &Place) -> Result<Written, BrokenSchemaRule> {
        let tree = self.tree(place);
        let mut written = Written::default();
        let mut groups: Vec<Wildcard> = Vec::new();
        for node in tree.parts(place.node) {
            let part = Place { node, ..place.clone() };
            match tree.node(node).local {
                "attribute" => {
                    let used = self.attribute_use(&part).map_err(|wrong| wrong.at(&part))?;
                    match tree.get(node, "use") {
                        Some("prohibited") => written.prohibited.push(used.name),
                        _ => written.uses.push(used),
                    }
                }
                "attributeGroup" => {
                    let Some(reference) = tree.get(node, "ref") else { continue };
                    let name = self.reference(Kind::AttributeGroup, &part, reference)?;
                    let found = self.find(Kind::AttributeGroup, &name, &part)?;
                    let group = self.group_attributes(found)?;
                    self.spend_on_attributes(&group.uses)?;
                    written.uses.extend(group.uses.iter().cloned());
                    groups.extend(group.wildcard.clone());
                }
                "anyAttribute" => written.wildcard = Some(self.wildcard(&part)?),
                _ => {}
            }
        }
        // Section 3.4.2, {attribute wildcard}: the intersection of all, with the processContents of the type's own
        // wildcard or else of the first group.
        for group in groups {
            written.wildcard = Some(match written.wildcard {
                None => group,
                Some(own) => {
                    let namespaces = own.namespaces.intersection(&group.namespaces);
                    if !namespaces.is_expressible() {
                        return wrong(
                            "the intersection of these wildcards for attributes can't be expressed in XSD 1.0",
                        );
                    }
                    Wildcard { namespaces, process: own.process }
                }
            });
        }
        Ok(written)
    }

    /// Bounds the attribute uses that types and groups take over from others.
    ///
    /// Each 100 bytes of a name or value count as one more.
    pub(super) fn spend_on_attributes(&mut self, uses: &[AttributeUse]) -> Result<(), BrokenSchemaRule> {
        const MOST: usize = 200_000;
        let text = |used: &AttributeUse| {
            used.name.local.len() + used.attribute.value.as_ref().map_or(0, |value| value.text.len())
        };
        self.attribute_uses += uses.iter().map(|used| 1 + text(used) / 100).sum::<usize>();
        if self.attribute_uses > MOST {
            return wrong(format!(
                "types and attribute groups take over more than {MOST} attributes from each other, each 100 bytes of \
                 their names and values counted as one more"
            ));
        }
        Ok(())
    }

    fn attribute_use(&mut self, place: &Place) -> Result<AttributeUse, BrokenSchemaRule> {
        self.attribute_components += 1;
        let number = self.attribute_components;
        let tree = self.tree(place);
        let required = tree.get(place.node, "use") == Some("required");
        if tree.get(place.node, "default").is_some() {
            if tree.get(place.node, "fixed").is_some() {
                return wrong("an attribute has either default or fixed, not both");
            }
            if tree.get(place.node, "use").is_some_and(|used| used != "optional") {
                return wrong("an attribute with a default is optional: remove the use, or the default");
            }
        }
        if let Some(reference) = tree.get(place.node, "ref") {
            let inner = tree.parts(place.node).any(|part| tree.node(part).local == "simpleType");
            let other = ["name", "type", "form"].into_iter().find(|name| tree.get(place.node, name).is_some());
            if let Some(other) = other.or(inner.then_some("xs:simpleType")) {
                return wrong(format!("an attribute with a ref has no {other} of its own: its declaration has it"));
            }
            let reference = self.reference(Kind::Attribute, place, reference)?;
            let (mut attribute, found) = match self.instance_attribute(&reference) {
                Some(known) => (known, None),
                None => {
                    let found = self.find(Kind::Attribute, &reference, place)?;
                    (self.attribute(found)?, Some(found))
                }
            };
            if let Some(constraint) = value_constraint(tree, place) {
                let constraint = self.checked_value(place, &attribute, constraint)?;
                let scope = Scope::new(tree, place.node);
                if let Some(fixed) = attribute.fixed()
                    && !(constraint.fixed && attribute.ty.equal(fixed, &constraint.text, &scope) == Ok(true))
                {
                    return wrong(format!(
                        "the attribute is declared with the fixed value '{}', which its use can't change",
                        quoted(fixed)
                    ));
                }
                attribute.value = Some(constraint);
            }
            let name = Name { namespace: self.namespaces.intern(&reference.0), local: reference.1.into() };
            let doc = self.docs(place).or_else(|| self.docs(found?));
            return Ok(AttributeUse { number, name, doc, required, attribute });
        }
        let form = tree.get(place.node, "form").or_else(|| tree.get(0, "attributeFormDefault"));
        let qualified = form == Some("qualified");
        let namespace = if qualified { self.namespaces.intern(&place.target) } else { Namespace::NONE };
        let Some(local) = tree.get(place.node, "name") else { return wrong("an attribute has a name or a ref") };
        let name = Name { namespace, local: local.into() };
        if namespace == Namespace::XSI {
            return wrong("no attribute can be declared in the namespace of xsi:type");
        }
        Ok(AttributeUse { number, name, doc: self.docs(place), required, attribute: self.attribute(place)? })
    }

    fn docs(&self, place: &Place) -> Option<Arc<str>> {
        let docs = self.tree(place).documentation(place.node);
        (!docs.is_empty()).then(|| docs.into())
    }

    /// The attribute declaration at a place.
    pub(super) fn attribute(&mut self, place: &Place) -> Result<Attribute, BrokenSchemaRule> {
        let tree = self.tree(place);
        let is_global = tree.ancestors(place.node).nth(1) == Some(0);
        if is_global && let Some(known) = self.attributes.get(&key(place)) {
            return Ok(known.clone());
        }
        if tree.get(place.node, "name") == Some("xmlns") {
            return wrong("no attribute can be called xmlns");
        }
        if *place.target == *crate::vocab::ns::XSI && is_global {
            return wrong("no attribute can be declared in the namespace of xsi:type");
        }
        let inner = tree.parts(place.node).find(|part| tree.node(*part).local == "simpleType");
        let id = match (tree.get(place.node, "type"), inner) {
            (Some(_), Some(_)) => return wrong("an attribute has either a type or an xs:simpleType inside, not both"),
            (Some(name), _) => self.named_type(place, name)?,
            (None, Some(node)) => self.type_at(&Place { node, ..place.clone() })?,
            (None, None) => self.xsd_type("anySimpleType")?,
        };
        let ty = self.simple_of(id)?;
        check_notation(&ty, "the type of an attribute")?;
        let mut attribute = Attribute { ty, id, value: value_constraint(tree, place) };
        if tree.get(place.node, "default").is_some() && tree.get(place.node, "fixed").is_some() {
            return wrong("an attribute has either default or fixed, not both");
        }
        if let Some(constraint) = attribute.value.take() {
            attribute.value = Some(self.checked_value(place, &attribute, constraint)?);
        }
        // Local declarations are read once, with the type or group that contains them.
        if is_global {
            self.attributes.insert(key(place), attribute.clone());
        }
        Ok(attribute)
    }

    /// Checks that the given value of an attribute is valid for its type (section 3.2.6, a-props-correct).
    fn checked_value(
        &mut self,
        place: &Place,
        attribute: &Attribute,
        mut constraint: ValueConstraint,
    ) -> Result<ValueConstraint, BrokenSchemaRule> {
        self.spend_on_value(&attribute.ty, &constraint.text)?;
        let scope = Scope::new(self.tree(place), place.node);
        if attribute.ty.is_id() {
            return wrong("an attribute that is an ID can't have a default or fixed value");
        }
        match checked_key(&attribute.ty, &constraint.text, &scope) {
            Ok(key) => {
                constraint.key = key;
                Ok(constraint)
            }
            Err(mismatch) => Err(self.wrong_value(place, &constraint, &mismatch.to_string())),
        }
    }

    /// The wildcard of an `xs:any` or `xs:anyAttribute`.
    pub(super) fn wildcard(&mut self, place: &Place) -> Result<Wildcard, BrokenSchemaRule> {
        /// The greatest number of namespaces: the lists of wildcards are compared with each other.
        const MOST: usize = 256;
        let tree: &Tree = self.tree(place);
        let target = self.namespaces.intern(&place.target);
        let namespaces = match tree.get(place.node, "namespace") {
            None | Some("##any") => NamespaceSet::any(),
            Some("##other") => NamespaceSet::other_than(target),
            Some(list) => {
                if list.split_ascii_whitespace().nth(MOST).is_some() {
                    let rule = format!("a wildcard lists more than {MOST} namespaces: write \"##any\" or \"##other\"");
                    return Err(BrokenSchemaRule::of_attribute(place, "namespace", rule));
                }
                NamespaceSet::of(list.split_ascii_whitespace().map(|name| match name {
                    "##targetNamespace" => target,
                    "##local" => Namespace::NONE,
                    name => self.namespaces.intern(name),
                }))
            }
        };
        let process = match tree.get(place.node, "processContents") {
            Some("lax") => ProcessContents::Lax,
            Some("skip") => ProcessContents::Skip,
            _ => ProcessContents::Strict,
        };
        Ok(Wildcard { namespaces, process })
    }

    /// Checks that the attributes of a restriction restrict those of its base (section 3.4.6,
    /// derivation-ok-restriction, clauses 2 to 4).
    pub(super) fn check_attributes(
        &self,
        own: &Attributes,
        base: &Attributes,
        of_any: bool,
    ) -> Result<(), BrokenSchemaRule> {
        for used in &own.uses {
            let local = &used.name.local;
            let Some(before) = base.find(used.name.namespace, local) else {
                if base.wildcard.as_ref().is_some_and(|wildcard| wildcard.namespaces.contains(used.name.namespace)) {
                    continue;
                }
                return wrong(format!("a restriction has the attribute '{local}', which its base doesn't allow"));
            };
            if before.required && !used.required {
                return wrong(format!(
                    "the attribute '{local}' is required in the base: a restriction can't make it optional"
                ));
            }
            let is_same = used.attribute.id == before.attribute.id;
            if !is_same && !self.is_restriction(used.attribute.id, before.attribute.id, Derivations::default())? {
                return wrong(format!("the type of the attribute '{local}' is not derived from its type in the base"));
            }
            if let Some(fixed) = before.attribute.fixed() {
                let equal = |own: &str| before.attribute.ty.equal(own, fixed, &NoPrefixes) == Ok(true);
                let is_kept = used.attribute.fixed().is_some_and(equal);
                if !is_kept {
                    let fixed = quoted(fixed);
                    return wrong(format!(
                        "the attribute '{local}' has the fixed value '{fixed}' in the base, which a restriction keeps"
                    ));
                }
            }
        }
        let is_there = |used: &AttributeUse| own.find(used.name.namespace, &used.name.local).is_some();
        if let Some(missing) = base.uses.iter().find(|used| used.required && !is_there(used)) {
            return wrong(format!(
                "the attribute '{}' is required in the base, so a restriction can't prohibit it",
                missing.name.local
            ));
        }
        match (&own.wildcard, &base.wildcard) {
            (None, _) => Ok(()),
            (Some(_), None) => wrong("a restriction has xs:anyAttribute, which its base doesn't have"),
            (Some(own), Some(base)) if !own.namespaces.is_within(&base.namespaces) => {
                wrong("the xs:anyAttribute of a restriction allows namespaces that the one of its base doesn't")
            }
            (Some(own), Some(base)) if !of_any && own.process.is_looser(base.process) => {
                wrong("the xs:anyAttribute of a restriction checks less than the one of its base: see processContents")
            }
            _ => Ok(()),
        }
    }

    /// Reports whether a component of a redefinition refers to the component that it redefines, which may happen once
    /// (section 4.2.2, src-redefine, clauses 6.1 and 7.1).
    pub(super) fn refers_to_itself(&self, place: &Place, element: &str) -> Result<bool, BrokenSchemaRule> {
        let tree = self.tree(place);
        let name = tree.get(place.node, "name").unwrap_or_default();
        let mut pending = vec![place.node];
        let mut found = false;
        while let Some(node) = pending.pop() {
            pending.extend(tree.parts(node));
            let part = Place { node, ..place.clone() };
            if tree.node(node).local == element
                && let Some((namespace, local)) =
                    tree.get(node, "ref").and_then(|reference| self.reader.name(&part, reference))
                && namespace == place.target
                && local == name
            {
                let at = |rule: &str| wrong(rule).map_err(|wrong: BrokenSchemaRule| wrong.at(&part));
                if std::mem::replace(&mut found, true) {
                    return at("a group in xs:redefine refers to itself once at most");
                }
                if ["minOccurs", "maxOccurs"].iter().any(|name| tree.get(node, name).is_some_and(|n| n != "1")) {
                    return at("where a group in xs:redefine refers to itself, it occurs exactly once: \
                               remove minOccurs and maxOccurs");
                }
            }
        }
        Ok(found)
    }
}

/// Keeps one of several uses that are the same component (section 3.4.2, {attribute uses}, is a set).
fn keep_distinct(uses: &mut Vec<AttributeUse>) {
    let mut seen = HashSet::with_capacity(uses.len());
    uses.retain(|used| seen.insert(used.number));
}

/// The indexes of attribute uses in the order of their names. Checks that no name occurs twice and that at most one
/// attribute is an ID (section 3.4.6, ct-props-correct, clauses 4 and 5).
fn by_name(uses: &[AttributeUse]) -> Result<Vec<u32>, BrokenSchemaRule> {
    let name = |place: u32| &uses[place as usize].name;
    let mut places: Vec<u32> = (0..).take(uses.len()).collect();
    places.sort_unstable_by(|one, other| name(*one).cmp(name(*other)));
    if let Some(pair) = places.windows(2).find(|pair| name(pair[0]) == name(pair[1])) {
        return wrong(format!("the attribute '{}' is declared twice: keep one of them", name(pair[0]).local));
    }
    if uses.iter().filter(|used| used.attribute.ty.is_id()).count() > 1 {
        return wrong("two attributes of one element can't both be IDs");
    }
    Ok(places)
}

impl Written {
    /// The attributes of a type that has no explicit base.
    pub(super) fn alone(self) -> Result<Attributes, BrokenSchemaRule> {
        assemble(self.uses, self.wildcard)
    }

    /// The attributes of an extension, with the union of both wildcards (section 3.4.2).
    pub(super) fn extending(self, base: &Attributes) -> Result<Attributes, BrokenSchemaRule> {
        let wildcard = match (&base.wildcard, self.wildcard) {
            (Some(base), Some(own)) => {
                let namespaces = base.namespaces.union(&own.namespaces);
                if !namespaces.is_expressible() {
                    return wrong(
                        "the union of the xs:anyAttribute of extension and base can't be expressed in XSD 1.0",
                    );
                }
                Some(Wildcard { namespaces, process: own.process })
            }
            (base, own) => own.or_else(|| base.clone()),
        };
        assemble(base.uses.iter().cloned().chain(self.uses).collect(), wildcard)
    }

    /// The attributes of a restriction: inherits the uses that it doesn't declare again or prohibit, but not the
    /// wildcard.
    pub(super) fn restricting(self, base: &Attributes) -> Result<Attributes, BrokenSchemaRule> {
        let mut own: Vec<&Name> = self.uses.iter().map(|used| &used.name).chain(&self.prohibited).collect();
        own.sort_unstable();
        let kept = base.uses.iter().filter(|used| own.binary_search(&&used.name).is_err());
        let uses = kept.cloned().chain(self.uses.iter().cloned()).collect();
        assemble(uses, self.wildcard)
    }
}

fn assemble(mut uses: Vec<AttributeUse>, wildcard: Option<Wildcard>) -> Result<Attributes, BrokenSchemaRule> {
    keep_distinct(&mut uses);
    let by_name = Some(by_name(&uses)?).filter(|places| places.len() > FEW).unwrap_or_default();
    let required = uses.iter().filter(|used| used.required).count();
    let refers = uses.iter().any(|used| used.attribute.value.is_some() && used.attribute.ty.identity().refers());
    Ok(Attributes { uses, by_name, required: u32::try_from(required).unwrap_or(u32::MAX), refers, wildcard })
}
