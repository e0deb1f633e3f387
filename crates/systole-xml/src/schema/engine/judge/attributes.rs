//! Attributes: their names, values and wildcards, and the IDs among them.

use super::content::is_fixed;
use super::violation::{Clause, Part, Subject, shown_name};
use super::{Started, Walk};
use crate::ladder::scan::{find, unescape_into};
use crate::schema::engine::grammar::{Attribute, AttributeUse, Attributes, ProcessContents};
use crate::schema::engine::namespace::Namespace;
use crate::schema::simple::{Identity, Mismatch, SimpleType};

impl<'a> Walk<'_, 'a> {
    /// Validates the attributes of an element (XSD 1.0 part 1, section 3.4.4, Element Locally Valid (Complex Type),
    /// clauses 3 to 5).
    #[inline]
    pub(super) fn attributes(&mut self, started: &Started<'a>, attributes: &Attributes) {
        if started.tag.has_attributes() || !attributes.may_be_absent() {
            self.check_attributes(started, attributes);
        }
    }

    fn check_attributes(&mut self, started: &Started<'a>, attributes: &Attributes) {
        let mut required = 0;
        // Clause 5: an attribute that only a wildcard allows may be an ID if no other attribute is one.
        let (mut wild_ids, mut used_ids) = (0, 0);
        for attribute in started.tag.attributes() {
            let Some(uri) = attribute.uri() else { continue };
            let (local, name, written) = (attribute.local(), attribute.name(), attribute.written());
            let namespace = self.namespace(uri);
            if let Some(used) = attributes.find(namespace, local) {
                required += u32::from(used.required);
                used_ids += u32::from(used.attribute.ty.identity() == Identity::Id);
                self.attribute(started, name, written, &used.attribute);
                continue;
            }
            if namespace == Namespace::XSI
                && matches!(local, "type" | "nil" | "schemaLocation" | "noNamespaceSchemaLocation")
            {
                continue;
            }
            match &attributes.wildcard {
                Some(wildcard) if wildcard.namespaces.contains(namespace) => {
                    let declared = match wildcard.process {
                        ProcessContents::Skip => continue,
                        ProcessContents::Lax | ProcessContents::Strict => {
                            self.grammar.global_attributes.get(namespace, local)
                        }
                    };
                    match declared {
                        Some(declared) => {
                            wild_ids += u32::from(declared.ty.identity() == Identity::Id);
                            self.attribute(started, name, written, declared);
                        }
                        None if wildcard.process == ProcessContents::Strict => {
                            self.refuse_attribute(
                                started,
                                name,
                                "not declared in the schema, and only declared attributes are allowed here",
                            );
                        }
                        None => {}
                    }
                }
                _ => self.not_allowed(started, name, attributes),
            }
        }
        if wild_ids > 1 || wild_ids == 1 && used_ids > 0 {
            self.refuse(started, Part::Tag, "it has more than one attribute that is an ID");
        }
        if required < attributes.required {
            self.missing(started, &attributes.uses);
        }
        if attributes.refers {
            self.refer_by_default(started, &attributes.uses);
        }
    }

    /// Records the references to IDs in default and fixed values of absent attributes (sections 3.4.5 and 3.15.4).
    fn refer_by_default(&mut self, started: &Started<'a>, uses: &[AttributeUse]) {
        for used in uses {
            let Some(value) = &used.attribute.value else { continue };
            if used.attribute.ty.identity().refers() && !self.is_there(started, used) {
                self.judge.identities.refer(&value.text, started.number);
            }
        }
    }

    fn attribute(&mut self, started: &Started<'a>, name: &str, written: &'a str, attribute: &Attribute) {
        if find(written.as_bytes(), b'&').is_none() {
            return self.attribute_value(started, name, written, attribute);
        }
        let mut resolved = std::mem::take(&mut self.judge.text);
        resolved.clear();
        unescape_into(&mut resolved, written);
        self.attribute_value(started, name, &resolved, attribute);
        self.judge.text = resolved;
    }

    fn attribute_value(&mut self, started: &Started<'a>, name: &str, value: &str, attribute: &Attribute) {
        let prefixes = self.prefixes(started);
        if let Err(mismatch) = attribute.ty.check(value, &prefixes) {
            return self.refuse_attribute_value(started, name, &mismatch);
        }
        if let Some(fixed) = attribute.value.as_ref().filter(|value| value.fixed) {
            match is_fixed(&attribute.ty, value, fixed, &prefixes) {
                Ok(true) => {}
                Ok(false) => {
                    let clause = format_args!("found '{value}', expected '{}'", fixed.text);
                    return self.refuse_attribute(started, name, clause);
                }
                Err(mismatch) => return self.refuse_attribute_value(started, name, &mismatch),
            }
        }
        self.identify(started, &attribute.ty, value, Some(started.number));
    }

    /// Records a value that is an ID or refers to IDs. An ID belongs to the element `owner`.
    pub(super) fn identify(&mut self, started: &Started<'a>, ty: &SimpleType, value: &str, owner: Option<usize>) {
        match ty.identity() {
            Identity::None => {}
            Identity::Mixed => self.identify_parts(started, ty, value, owner),
            identity => self.judge.identities.record(identity, value, started.number, owner),
        }
    }

    /// Records the IDs and references among the items of a list and the members of a union.
    #[cold]
    fn identify_parts(&mut self, started: &Started<'a>, ty: &SimpleType, value: &str, owner: Option<usize>) {
        let mut identities = std::mem::take(&mut self.judge.identities);
        let mut record = |identity, value: &str| identities.record(identity, value, started.number, owner);
        let found = ty.identities(value, &self.prefixes(started), &mut record);
        self.judge.identities = identities;
        if let Err(mismatch) = found {
            self.refuse_value(started, &mismatch);
        }
    }

    fn not_allowed(&mut self, started: &Started<'a>, name: &str, attributes: &Attributes) {
        const MOST: usize = 12;
        let uses = attributes.uses.iter().take(MOST);
        let mut expected: Vec<String> = uses.map(|used| format!("'{}'", self.attribute_name(used))).collect();
        // In a schema document, attributes of other namespaces correct no slip.
        let others = attributes.wildcard.as_ref().filter(|_| started.namespace != Namespace::XSD);
        expected.extend(others.map(|wildcard| wildcard.namespaces.words(&self.grammar.namespaces, "attribute")));
        let clause = match expected.as_slice() {
            [] => "not allowed; expected no attributes".to_owned(),
            [one] => format!("not allowed; expected {one}"),
            several => format!("not allowed; expected one of {}", several.join(", ")),
        };
        let clause = match name {
            "nil" => format!("{clause}; for an element without a value write xsi:nil"),
            _ => clause,
        };
        self.refuse_attribute(started, name, clause);
    }

    /// Reports the missing required attributes.
    fn missing(&mut self, started: &Started<'a>, uses: &[AttributeUse]) {
        for used in uses.iter().filter(|used| used.required) {
            if self.violations.len() >= self.most {
                return;
            }
            if !self.is_there(started, used) {
                let name = self.attribute_name(used);
                let json = format!("the property '@{name}' is missing");
                self.refuse_clause(
                    started,
                    Part::Tag,
                    Clause(format!("the attribute '{name}' is required but missing"), json),
                );
            }
        }
    }

    pub(super) fn is_there(&self, started: &Started<'a>, used: &AttributeUse) -> bool {
        started
            .tag
            .attributes()
            .any(|attribute| attribute.uri().is_some_and(|uri| used.name.is(self.namespace(uri), attribute.local())))
    }

    fn attribute_name(&self, used: &AttributeUse) -> String {
        let uri = self.grammar.namespaces.name(used.name.namespace);
        match used.name.namespace {
            Namespace::XML => format!("xml:{}", used.name.local),
            // An attribute has a namespace only by a prefix, so the namespace of the payload is shown too.
            namespace => shown_name(Namespace::NONE, namespace, uri, &used.name.local),
        }
    }

    /// Refuses the value of an attribute.
    #[cold]
    pub(super) fn refuse_attribute_value(&mut self, started: &Started, name: &str, mismatch: &Mismatch) {
        self.refuse_attribute(started, name, mismatch);
        self.end_without_steps(mismatch);
    }

    fn refuse_attribute(&mut self, started: &Started, name: &str, clause: impl std::fmt::Display) {
        let element = self.shown(&started.tag, started.namespace);
        self.report(started.number, Part::Attribute(name.to_owned()), &Subject::Attribute(name, &element), clause);
    }
}
