//! References from one component to another, and the advice for a reference to a missing component.

use super::{BrokenSchemaRule, Compiler, Reference, shown};
use crate::schema::engine::grammar::{TypeId, ValueConstraint};
use crate::schema::shorten::quoted;
use crate::schema::simple::XsdType;
use crate::schema::source::Place;
use crate::schema::source::read::{Kind, nearest};
use crate::vocab::ns;

impl<'r> Compiler<'r, '_> {
    /// The type that a reference names.
    pub(super) fn named_type(&mut self, place: &Place, written: &str) -> Result<TypeId, BrokenSchemaRule> {
        let name = self.reference(Kind::Type, place, written)?;
        if &*name.0 == ns::XSD && self.reader.refer(Kind::Type, &name, place).is_none() {
            return self
                .known_xsd_type(&name.1)
                .ok_or_else(|| self.wrong_reference(place, &name.1, self.no_xsd_type(place, &name.1)));
        }
        let found = self.find(Kind::Type, &name, place)?;
        self.type_at(found)
    }

    /// The expanded name of a reference. Its namespace must be one that the document may refer to (XSD 1.0 part 1,
    /// section 4.2.3, src-resolve).
    pub(super) fn reference(&self, kind: Kind, place: &Place, qname: &str) -> Result<Reference, BrokenSchemaRule> {
        let tree = self.tree(place);
        let (prefix, local) = qname.split_once(':').unwrap_or(("", qname));
        let refused = |rule: String| Err(self.wrong_reference(place, local, rule));
        let xsd_type = || self.meant_xsd_type(kind, place, local).map(|name| format!("did you mean {name}?"));
        if !prefix.is_empty() && prefix != "xml" && tree.resolve(place.node, prefix).is_empty() {
            let advice = xsd_type().unwrap_or_else(|| format!("declare xmlns:{}", quoted(prefix)));
            let written = quoted(qname);
            return refused(format!("the prefix of '{written}' is not bound: {advice}"));
        }
        let Some(name) = self.reader.name(place, qname) else {
            return refused(format!("the reference '{}' is not a qualified name", quoted(qname)));
        };
        if &*name.0 != ns::XSD && !self.reader.may_refer(place, &name.0) {
            let written = quoted(qname);
            return refused(match &*name.0 {
                "" if place.target.is_empty() => format!(
                    "'{written}' is in no namespace, which this document doesn't import: write xs:import without namespace"
                ),
                "" => {
                    let advice = xsd_type().unwrap_or_else(|| self.with_prefix(place, local));
                    format!("'{written}' has no prefix: {advice}")
                }
                namespace => {
                    let namespace = quoted(namespace);
                    let advice = xsd_type().unwrap_or_else(|| {
                        format!("write xs:import, or did you mean targetNamespace=\"{namespace}\"?")
                    });
                    format!("'{written}' is in the namespace {namespace}, which this document doesn't import: {advice}")
                }
            });
        }
        Ok(name)
    }

    /// The component that a reference at a place names.
    pub(super) fn find(&self, kind: Kind, name: &Reference, from: &Place) -> Result<&'r Place, BrokenSchemaRule> {
        if let Some(place) = self.reader.refer(kind, name, from) {
            return Ok(place);
        }
        let near = self.meant_xsd_type(kind, from, &name.1).map(|name| format!(": did you mean {name}?"));
        let near = near.or_else(|| self.reader.nearest(kind, name).map(|near| format!(": did you mean '{near}'?")));
        let rule = format!(
            "there is no {} '{}' in the given documents{}",
            kind.words(),
            shown(name),
            near.unwrap_or_default()
        );
        Err(self.wrong_reference(from, &name.1, rule))
    }

    /// The error for a reference, with the attribute that contains it.
    fn wrong_reference(&self, place: &Place, local: &str, rule: String) -> BrokenSchemaRule {
        const REFERRING: [&str; 7] = ["type", "ref", "base", "itemType", "memberTypes", "substitutionGroup", "refer"];
        let tree = self.tree(place);
        let names = |value: &str| {
            value.split_ascii_whitespace().any(|word| word.rsplit(':').next().is_some_and(|name| name == local))
        };
        let attribute = REFERRING.into_iter().find(|name| tree.get(place.node, name).is_some_and(names));
        BrokenSchemaRule { attribute, ..BrokenSchemaRule::new(Some(place.clone()), rule) }
    }

    /// The error for a `default` or `fixed` value that is not valid for the type of its element or attribute.
    pub(super) fn wrong_value(&self, place: &Place, value: &ValueConstraint, mismatch: &str) -> BrokenSchemaRule {
        let tree = self.tree(place);
        let name = tree.get(place.node, "name").or_else(|| tree.get(place.node, "ref")).unwrap_or_default();
        let (what, name) = match tree.node(place.node).local {
            "attribute" => ("attribute", format!("'{}'", quoted(name))),
            _ => ("element", format!("<{}>", quoted(name))),
        };
        let given = if value.fixed { "fixed" } else { "default" };
        let ty = tree.get(place.node, "type").map_or("its type".to_owned(), |ty| format!("its type {}", quoted(ty)));
        let rule = format!("the '{given}' of the {what} {name} is no value of {ty}: {mismatch}");
        BrokenSchemaRule::of_attribute(place, given, rule)
    }

    /// The built-in type that the author of a reference to a user-defined type probably meant, as the document would
    /// write it.
    fn meant_xsd_type(&self, kind: Kind, place: &Place, local: &str) -> Option<String> {
        if kind != Kind::Type {
            return None;
        }
        let known = || XsdType::all().iter().map(|xsd_type| xsd_type.name);
        let xsd_type = known().find(|name| *name == local).or_else(|| {
            let in_other_case = known().find(|name| name.eq_ignore_ascii_case(local));
            in_other_case.filter(|_| self.reader.nearest(kind, &(place.target.clone(), local.to_owned())).is_none())
        })?;
        Some(self.xsd_type_name(place, xsd_type))
    }

    /// The name of a built-in type as the document would write it.
    fn xsd_type_name(&self, place: &Place, local: &str) -> String {
        let tree = self.tree(place);
        match tree.prefix_of(place.node, ns::XSD) {
            Some(prefix) => format!("{prefix}:{local}"),
            None => format!("{local} without a prefix"),
        }
    }

    /// The error text for an unknown type in the namespace of XML Schema.
    fn no_xsd_type(&self, place: &Place, local: &str) -> String {
        let name = format!("xs:{}", quoted(local));
        if matches!(local, "dateTimeStamp" | "yearMonthDuration" | "dayTimeDuration" | "anyAtomicType" | "error") {
            return format!("{name} is a type of XSD 1.1, and schemas here are XSD 1.0");
        }
        let own = (place.target.clone(), local.to_owned());
        let advice = match (alias(local), nearest(local, XsdType::all().iter().map(|xsd_type| xsd_type.name))) {
            _ if self.reader.refer(Kind::Type, &own, place).is_some() => {
                format!("for the type of that name in this schema, {}", self.with_prefix(place, local))
            }
            (Some(meant), _) | (None, Some(meant)) => format!("did you mean {}?", self.xsd_type_name(place, meant)),
            (None, None) => format!(
                "write a built-in type such as {}, or one of this schema, in its own namespace",
                self.xsd_type_name(place, "string")
            ),
        };
        format!("there is no type {name}: {advice}")
    }

    /// The advice to qualify a name with the target namespace.
    fn with_prefix(&self, place: &Place, local: &str) -> String {
        let tree = self.tree(place);
        let target = &place.target;
        match tree.prefix_of(place.node, target) {
            Some(prefix) => format!("write {}:{}", quoted(prefix), quoted(local)),
            None if !target.is_empty() => {
                let (target, local) = (quoted(target), quoted(local));
                format!("declare xmlns:t=\"{target}\" in <xs:schema>, and write t:{local}")
            }
            None if tree.resolve(place.node, "").is_empty() => format!("write {} without a prefix", quoted(local)),
            None => "bind XML Schema to a prefix (xmlns:xs=\"…\"), and write the name without one".to_owned(),
        }
    }
}

/// The built-in type for a common type name of other languages.
fn alias(local: &str) -> Option<&'static str> {
    Some(match local {
        "text" | "str" | "char" | "varchar" => "string",
        "bool" => "boolean",
        "number" | "numeric" | "money" => "decimal",
        "real" => "double",
        "url" | "uri" | "URL" | "URI" => "anyURI",
        "timestamp" => "dateTime",
        "int32" => "int",
        "int64" => "long",
        "binary" | "bytes" => "base64Binary",
        _ => return None,
    })
}
