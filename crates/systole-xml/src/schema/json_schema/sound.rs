//! The form of keywords, as the meta-schema of the draft 2020-12 has it: a schema with a keyword that has none would judge less
//! than its author means.

use std::collections::HashSet;

use super::Maker;
use super::compile::BEYOND;
use crate::schema::contract::ContractError;
use crate::schema::json::document::{Kind, NodeId};

/// The form of a keyword.
#[derive(Clone, Copy)]
enum Form {
    Text,
    Flag,
    Number,
    Count,
    Texts,
    Types,
    List,
    Schema,
    Schemas,
    SchemaMap,
    TextsMap,
}

const FORMS: [(&str, Form); 44] = [
    ("$anchor", Form::Text),
    ("$comment", Form::Text),
    ("$defs", Form::SchemaMap),
    ("$ref", Form::Text),
    ("$schema", Form::Text),
    ("additionalProperties", Form::Schema),
    ("allOf", Form::Schemas),
    ("anyOf", Form::Schemas),
    ("contains", Form::Schema),
    ("definitions", Form::SchemaMap),
    ("dependentRequired", Form::TextsMap),
    ("dependentSchemas", Form::SchemaMap),
    ("deprecated", Form::Flag),
    ("description", Form::Text),
    ("else", Form::Schema),
    ("enum", Form::List),
    ("examples", Form::List),
    ("exclusiveMaximum", Form::Number),
    ("exclusiveMinimum", Form::Number),
    ("format", Form::Text),
    ("if", Form::Schema),
    ("items", Form::Schema),
    ("maxContains", Form::Count),
    ("maxItems", Form::Count),
    ("maxLength", Form::Count),
    ("maxProperties", Form::Count),
    ("maximum", Form::Number),
    ("minContains", Form::Count),
    ("minItems", Form::Count),
    ("minLength", Form::Count),
    ("minProperties", Form::Count),
    ("minimum", Form::Number),
    ("multipleOf", Form::Number),
    ("not", Form::Schema),
    ("oneOf", Form::Schemas),
    ("pattern", Form::Text),
    ("patternProperties", Form::SchemaMap),
    ("prefixItems", Form::Schemas),
    ("properties", Form::SchemaMap),
    ("propertyNames", Form::Schema),
    ("required", Form::Texts),
    ("then", Form::Schema),
    ("title", Form::Text),
    ("uniqueItems", Form::Flag),
];

/// Keywords of the draft that narrow no value.
const WORDS: [&str; 11] = [
    "$anchor",
    "$comment",
    "$defs",
    "$schema",
    "definitions",
    "deprecated",
    "description",
    "examples",
    "format",
    "title",
    "default",
];

/// Returns whether a keyword narrows values: all that the draft has do, but for words about them. Unknown ones narrow nothing.
pub(super) fn narrows(keyword: &str) -> bool {
    let has_form = || FORMS.binary_search_by_key(&keyword, |(known, _)| known).is_ok();
    let is_known = matches!(keyword, "const" | "type") || BEYOND.contains(&keyword) || has_form();
    is_known && !WORDS.contains(&keyword)
}

impl Maker<'_, '_> {
    /// Checks the form of each keyword of a document, without recursion.
    ///
    /// # Errors
    /// The place of a keyword that has another one.
    pub(super) fn sound(&self) -> Result<(), ContractError> {
        let mut pending = vec![0];
        while let Some(schema) = pending.pop() {
            match self.document.kind(schema) {
                Kind::True | Kind::False => continue,
                Kind::Object => {}
                _ => return Err(self.wrong(schema, "expected a schema: an object, true or false")),
            }
            for (keyword, value) in self.document.members(schema) {
                if keyword == "type" {
                    self.keyword(Form::Types, value, &mut pending)?;
                } else if keyword == "$id" && schema != 0 {
                    return Err(self.wrong(value, "a schema within a document has no address of its own here: leave \"$id\" out, and refer to the schema by its place, such as \"#/$defs/Line\""));
                } else if let Ok(at) = FORMS.binary_search_by_key(&&*keyword, |(known, _)| known) {
                    self.keyword(FORMS[at].1, value, &mut pending)?;
                }
            }
        }
        Ok(())
    }

    fn keyword(&self, form: Form, value: NodeId, pending: &mut Vec<NodeId>) -> Result<(), ContractError> {
        let kind = self.document.kind(value);
        let is_text = |kind| matches!(kind, Kind::Plain | Kind::Escaped);
        let wrong = |why: &str| Err(self.wrong(value, why));
        match form {
            Form::Text if !is_text(kind) => wrong("expected a string"),
            Form::Flag if !matches!(kind, Kind::True | Kind::False) => wrong("expected true or false"),
            Form::Number if kind != Kind::Number => wrong("expected a number"),
            Form::List | Form::Schemas | Form::Texts if kind != Kind::Array => wrong("expected an array"),
            Form::SchemaMap | Form::TextsMap if kind != Kind::Object => wrong("expected an object"),
            Form::Text | Form::Flag | Form::Number | Form::List => Ok(()),
            Form::Count => self.number_of(value).map(drop),
            Form::Texts => {
                for item in self.document.items(value) {
                    if !is_text(self.document.kind(item)) {
                        return Err(self.wrong(item, "expected a string"));
                    }
                }
                Ok(())
            }
            Form::Types => self.types(value),
            Form::Schema if kind == Kind::Array => {
                wrong("schemas of single items are \"prefixItems\" since draft 2020-12: write that")
            }
            Form::Schema => {
                pending.push(value);
                Ok(())
            }
            Form::Schemas if self.document.items(value).next().is_none() => {
                wrong("expected at least one schema: leave the keyword out, or write true or false")
            }
            Form::Schemas => {
                pending.extend(self.document.items(value));
                Ok(())
            }
            Form::SchemaMap => {
                pending.extend(self.document.members(value).map(|(_, schema)| schema));
                Ok(())
            }
            Form::TextsMap => {
                self.document.members(value).try_for_each(|(_, list)| self.keyword(Form::Texts, list, pending))
            }
        }
    }

    /// Checks the value of `type`.
    fn types(&self, value: NodeId) -> Result<(), ContractError> {
        if self.document.kind(value) != Kind::Array {
            return self.type_bit(value).map(drop);
        }
        let mut known = HashSet::new();
        for item in self.document.items(value) {
            if !known.insert(self.type_bit(item)?) {
                return Err(self.wrong(item, "the type is repeated: write each type once"));
            }
        }
        match known.is_empty() {
            true => Err(self.wrong(value, "expected at least one type: leave \"type\" out for a value of any type")),
            false => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keywords_are_found_by_their_names() {
        assert!(FORMS.is_sorted_by_key(|(name, _)| name));
    }

    #[test]
    fn each_keyword_is_honoured_by_a_type_or_narrows_beside_it() {
        let honoured = |keyword: &str| super::super::FORMED.contains(&keyword);
        for (keyword, _) in FORMS {
            assert_eq!(narrows(keyword), !WORDS.contains(&keyword), "{keyword}");
        }
        for keyword in super::super::FORMED.into_iter().chain(BEYOND) {
            assert!(narrows(keyword), "{keyword}");
        }
        for keyword in
            ["$ref", "allOf", "anyOf", "oneOf", "not", "if", "multipleOf", "contains", "minProperties", "uniqueItems"]
        {
            assert!(narrows(keyword) && !honoured(keyword), "{keyword}");
        }
        assert!(!narrows("x-unit") && !narrows("$id") && !narrows("readOnly"));
    }
}
