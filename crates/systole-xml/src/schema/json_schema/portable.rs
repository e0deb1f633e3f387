//! Schemas of values in the vocabulary as the author wrote them, for the JSON Schema of their payload: references lead to
//! definitions of that one.

use std::collections::{HashMap, HashSet};

use serde_json::{Map, Value};

use super::Maker;
use crate::schema::contract::ContractError;
use crate::schema::json::document::{Kind, NodeId};

/// The definitions that schemas refer to.
#[derive(Default)]
pub(super) struct Portable {
    names: HashMap<NodeId, String>,
    taken: HashSet<String>,
    pending: Vec<(NodeId, String)>,
}

impl Maker<'_, '_> {
    /// A schema with its references changed. Recurses as deep as the schema, of which the reader bounds the depth.
    ///
    /// # Errors
    /// The place of a reference that leads nowhere, and of a value that nests too deep.
    pub(super) fn portable(&self, node: NodeId, portable: &mut Portable) -> Result<Value, ContractError> {
        if self.document.kind(node) != Kind::Object {
            return self.verbatim(node);
        }
        let mut out = Map::new();
        for (keyword, value) in self.document.members(node) {
            let changed = match &*keyword {
                "$ref" => format!("#/$defs/{}", self.definition(self.target(value)?, portable)).into(),
                "$defs" | "definitions" | "$id" | "$schema" | "$anchor" | "$comment" => continue,
                "properties" | "patternProperties" | "dependentSchemas"
                    if self.document.kind(value) == Kind::Object =>
                {
                    let schemas = self.document.members(value);
                    let schemas = schemas.map(|(key, value)| Ok((key.into_owned(), self.portable(value, portable)?)));
                    Value::Object(schemas.collect::<Result<_, ContractError>>()?)
                }
                "allOf" | "anyOf" | "oneOf" | "prefixItems" => {
                    let schemas = self.document.items(value).map(|value| self.portable(value, portable));
                    Value::Array(schemas.collect::<Result<_, _>>()?)
                }
                "items" | "additionalProperties" | "contains" | "propertyNames" | "not" | "if" | "then" | "else" => {
                    self.portable(value, portable)?
                }
                _ => self.verbatim(value)?,
            };
            out.insert(keyword.into_owned(), changed);
        }
        Ok(Value::Object(out))
    }

    /// The definitions that the schemas refer to, and those that these refer to.
    ///
    /// # Errors
    /// As [`Self::portable`].
    pub(super) fn definitions(&self, mut portable: Portable) -> Result<Map<String, Value>, ContractError> {
        let mut definitions = Map::new();
        while let Some((node, name)) = portable.pending.pop() {
            let schema = self.portable(node, &mut portable)?;
            definitions.insert(name, schema);
        }
        Ok(definitions)
    }

    fn definition(&self, node: NodeId, portable: &mut Portable) -> String {
        if let Some(known) = portable.names.get(&node) {
            return known.clone();
        }
        let key = self.document.parent(node).and_then(|(_, key)| key);
        let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-');
        let wanted: String =
            key.as_deref().unwrap_or("payload").chars().map(|c| if is_plain(c) { c } else { '_' }).collect();
        let mut name = wanted.clone();
        let mut number = 2;
        while !portable.taken.insert(name.clone()) {
            name = format!("{wanted}.{number}");
            number += 1;
        }
        portable.names.insert(node, name.clone());
        portable.pending.push((node, name.clone()));
        name
    }

    fn verbatim(&self, node: NodeId) -> Result<Value, ContractError> {
        serde_json::from_str(self.document.value(node))
            .map_err(|error| self.wrong(node, &format!("the value can't be read: {error}: nest it less deep")))
    }
}
