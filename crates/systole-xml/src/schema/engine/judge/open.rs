//! Start tags: the declaration and the type of an element, `xsi:type` and `xsi:nil`.

use super::violation::{Part, Subject};
use super::{Open, Started, Walk};
use crate::ladder::scan::{split_prefix, unescape};
use crate::ladder::tape::Attribute;
use crate::schema::engine::grammar::{Content, Element, ElementId, ProcessContents, StateId, Type, TypeId};
use crate::schema::engine::namespace::Namespace;

/// The values of the `xsi:` attributes of an element.
#[derive(Default)]
struct Instance<'a> {
    ty: Option<&'a str>,
    nil: Option<&'a str>,
}

impl<'a> Walk<'_, 'a> {
    /// Validates an element with a declaration (XSD 1.0 part 1, section 3.3.4, Element Locally Valid (Element)).
    pub(super) fn element(&mut self, started: &Started<'a>, id: ElementId) {
        let grammar = self.grammar;
        let element = &grammar.elements[id.index()];
        if self.is_clearly_valid(started, element) {
            return self.cursor.leave();
        }
        if element.is_abstract {
            self.refuse(started, Part::Tag, "it is abstract: write an element of its substitution group");
            return self.skip();
        }
        let instance = self.instance(started);
        let mut ty = element.ty;
        if let Some(written) = instance.ty {
            match self.instance_type(started, written, Some(element)) {
                Some(given) => ty = given,
                None => return self.skip(),
            }
        }
        let mut nil = false;
        if let Some(written) = instance.nil {
            let value = unescape(written);
            let value = value.trim_matches([' ', '\t', '\n', '\r']);
            if !element.nillable || !matches!(value, "true" | "1" | "false" | "0") {
                let name = self.shown(&started.tag, started.namespace);
                let clause = match element.nillable {
                    true => format!("found '{value}', expected true or false"),
                    false => "it can't be nil".to_owned(),
                };
                let part = Part::Attribute(self.instance_name(started, "nil"));
                self.report(started.number, part, &Subject::Attribute("xsi:nil", &name), clause);
                return self.skip();
            }
            nil = matches!(value, "true" | "1");
        }
        if nil && element.value.as_ref().is_some_and(|value| value.fixed) {
            self.refuse(started, Part::Tag, "it can't be nil, because its value is fixed");
            return self.skip();
        }
        self.typed(started, ty, Some(element), nil);
    }

    /// Returns whether an element with text alone is valid by tests that take little time. Most elements are.
    #[inline]
    fn is_clearly_valid(&self, started: &Started<'a>, element: &Element) -> bool {
        let ty = &self.grammar.types[element.ty.index()];
        let Content::Simple(simple) = &ty.content else { return false };
        !started.tag.has_attributes()
            && ty.attributes.may_be_absent()
            && !ty.is_abstract
            && !element.is_abstract
            && element.value.is_none()
            && self.grammar.constraints.is_empty()
            && self.cursor.plain_text().is_some_and(|text| simple.is_clearly_valid(text))
    }

    /// Validates an element without a declaration, by its `xsi:type` if it has one.
    pub(super) fn undeclared(&mut self, started: &Started<'a>, process: ProcessContents) {
        let instance = self.instance(started);
        match (instance.ty, process) {
            (Some(written), _) => match self.instance_type(started, written, None) {
                Some(ty) => self.typed(started, ty, None, false),
                None => self.skip(),
            },
            (None, ProcessContents::Strict) => {
                let is_root = self.judge.open.is_empty();
                let why = if is_root { "it has no xsi:type" } else { "only declared elements are allowed here" };
                self.refuse(started, Part::Tag, format!("not declared in the schema, and {why}"));
                self.skip();
            }
            (None, _) => self.typed(started, self.grammar.any, None, false),
        }
    }

    /// Validates an element of a known type (section 3.3.4, Element Locally Valid (Type)).
    fn typed(&mut self, started: &Started<'a>, id: TypeId, element: Option<&Element>, nil: bool) {
        let grammar = self.grammar;
        let ty: &Type = &grammar.types[id.index()];
        if ty.is_abstract {
            self.refuse(
                started,
                Part::Tag,
                format_args!("its type {} is abstract: xsi:type must name another one", ty.label),
            );
            return self.skip();
        }
        self.attributes(started, &ty.attributes);
        self.keys_enter(started, ty, element);
        if let Content::Simple(simple) = &ty.content {
            return self.simple_content(started, simple, id, element, nil);
        }
        let fixed = element.and_then(|element| element.value.as_ref()).filter(|value| value.fixed);
        if let (Some(fixed), Content::Sequence { mixed: true, .. } | Content::All { mixed: true, .. }) =
            (fixed, &ty.content)
        {
            return self.fixed_text(started, &fixed.text);
        }
        let seen = self.judge.seen.len();
        if let Content::All { members, .. } = &ty.content {
            self.judge.seen.resize(seen + members.required.len().div_ceil(64), 0);
        }
        self.judge.open.push(Open {
            ty: id,
            state: StateId::START,
            count: 0,
            seen,
            number: started.number,
            namespace: started.namespace,
            nil,
            lost: false,
            told: false,
        });
    }

    #[inline]
    fn instance(&self, started: &Started<'a>) -> Instance<'a> {
        if self.xsi.is_none() { Instance::default() } else { self.read_instance(started) }
    }

    #[inline(never)]
    fn read_instance(&self, started: &Started<'a>) -> Instance<'a> {
        let mut instance = Instance::default();
        for attribute in started.tag.attributes().filter(|attribute| attribute.uri() == self.xsi) {
            match attribute.local() {
                "type" => instance.ty = Some(attribute.written()),
                "nil" => instance.nil = Some(attribute.written()),
                _ => {}
            }
        }
        instance
    }

    /// The type that `xsi:type` names, if it may replace the declared type.
    fn instance_type(&mut self, started: &Started<'a>, written: &str, element: Option<&Element>) -> Option<TypeId> {
        let grammar = self.grammar;
        let value = unescape(written);
        let value = value.trim_matches([' ', '\t', '\n', '\r']);
        let (prefix, local) = split_prefix(value);
        let namespace = match self.prefixes(started).uri(prefix) {
            Some(uri) => Some(self.namespace(uri)),
            None => prefix.is_empty().then_some(Namespace::NONE),
        };
        let found = namespace.and_then(|namespace| grammar.global_types.get(namespace, local)).copied();
        let clause = match (namespace, found, element) {
            (None, _, _) => format!("found '{value}', whose prefix is not bound: declare it with xmlns:{prefix}"),
            (Some(_), None, _) => format!("found '{value}', which is not a type of the schema"),
            (Some(_), Some(given), Some(element)) => {
                let declared = &grammar.types[element.ty.index()];
                if grammar.is_derived(given, element.ty, element.block.union(declared.block)) {
                    return Some(given);
                }
                match &*declared.label {
                    "" => format!("found '{value}', a type that can't replace the type of the element"),
                    label => format!("found '{value}', a type that can't replace {label}"),
                }
            }
            (Some(_), Some(given), None) => return Some(given),
        };
        let name = self.shown(&started.tag, started.namespace);
        let part = Part::Attribute(self.instance_name(started, "type"));
        self.report(started.number, part, &Subject::Attribute("xsi:type", &name), clause);
        None
    }

    /// The qualified name of an `xsi:` attribute in the payload.
    fn instance_name(&self, started: &Started, local: &str) -> String {
        let named =
            |attribute: &Attribute| attribute.local() == local && self.xsi.is_some() && attribute.uri() == self.xsi;
        let name = started.tag.attributes().find(named).map(|attribute| attribute.name());
        name.unwrap_or_default().to_owned()
    }
}
