//! The payload schemas of an organism.

use foldhash::{HashMap, HashMapExt, HashSet, HashSetExt};
use serde_json::Value;

use super::{ContractError, FromJsonError, JsonPayload, JsonProblem, PayloadSchema, json, own_schemas};
use crate::ladder::Canonical;
use crate::vocab::{QName, XmlLimits, ns};

/// The payload schemas of an organism by name; immutable once built.
///
/// It always has the payloads of the core and meta namespaces.
#[derive(Debug, Clone)]
pub struct Catalog {
    schemas: HashMap<QName, PayloadSchema>,
    /// Names in the order in which the schemas were added, those of the pump first.
    order: Vec<QName>,
    instructions: Instructions,
}

/// The payloads that may hold processing instructions.
#[derive(Debug, Clone)]
enum Instructions {
    All,
    These(HashSet<QName>),
}

impl Catalog {
    /// A catalog of the pump's own payloads.
    pub fn new() -> Self {
        let instructions = Instructions::These(HashSet::new());
        let mut catalog = Self { schemas: HashMap::new(), order: Vec::new(), instructions };
        own_schemas::all().iter().for_each(|schema| catalog.insert(schema.clone()));
        catalog
    }

    /// A catalog of the given schemas and nothing else, for validating documents that are no messages. If two have
    /// one name, the first counts; no namespace is reserved, and processing instructions may stand in all.
    pub fn only(schemas: impl IntoIterator<Item = PayloadSchema>) -> Self {
        let mut catalog = Self { schemas: HashMap::new(), order: Vec::new(), instructions: Instructions::All };
        for schema in schemas {
            if catalog.get(schema.qname()).is_none() {
                catalog.insert(schema);
            }
        }
        catalog
    }

    /// Adds a schema. Adding the same one twice is no error.
    ///
    /// # Errors
    /// [`ContractError::Conflict`] if the payload has another schema, [`ContractError::Reserved`] if it is in a
    /// namespace of the pump.
    pub fn add(&mut self, schema: PayloadSchema) -> Result<(), ContractError> {
        let payload = schema.qname();
        match self.schemas.get(payload) {
            Some(known) if known.digest() == schema.digest() => Ok(()),
            Some(_) => Err(ContractError::Conflict { payload: payload.clone() }),
            None if is_reserved(payload.namespace()) => Err(ContractError::Reserved { payload: payload.clone() }),
            None => {
                self.insert(schema);
                Ok(())
            }
        }
    }

    /// Lets processing instructions stand in a payload. No schema says anything of them, so without this they are
    /// refused: they would carry text of any form past the schema.
    pub fn let_instructions(&mut self, payload: QName) {
        if let Instructions::These(payloads) = &mut self.instructions {
            payloads.insert(payload);
        }
    }

    /// Returns whether processing instructions may stand in a payload.
    pub fn takes_instructions(&self, payload: &QName) -> bool {
        match &self.instructions {
            Instructions::All => true,
            Instructions::These(payloads) => payloads.contains(payload),
        }
    }

    /// The schema of a payload.
    pub fn get(&self, qname: &QName) -> Option<&PayloadSchema> {
        self.schemas.get(qname)
    }

    /// All schemas: those of the pump first, then the others in the order in which they were added.
    pub fn payloads(&self) -> impl Iterator<Item = &PayloadSchema> {
        self.order.iter().filter_map(|qname| self.schemas.get(qname))
    }

    /// Reads a payload that names itself: `{"name": …}` with its local name, or in Clark notation, `{"{urn:o}name": …}`. Of
    /// payloads with one local name, the one that `may_be` is taken.
    ///
    /// # Errors
    /// [`FromJsonError`] as by [`PayloadSchema::from_json`], and if the name is that of no payload or of more than one.
    pub fn from_named_json<'t>(
        &self,
        json: &'t str,
        may_be: impl Fn(&QName) -> bool,
        limits: &XmlLimits,
    ) -> Result<JsonPayload<'t>, FromJsonError> {
        let document = json::parse(json, limits)?;
        let known = || self.order.iter().filter(|name| may_be(name));
        let root = |expected: Vec<String>| {
            let all = expected.iter().take(8).map(|name| format!("{{\"{name}\": …}}")).collect::<Vec<_>>().join(", ");
            let rest = if expected.len() > 8 { ", …" } else { "" };
            FromJsonError::whole(JsonProblem::Root { expected: all + rest })
        };
        let all = || {
            // Those of the pump are rarely meant.
            let (own, given): (Vec<&QName>, Vec<&QName>) = known().partition(|name| is_reserved(name.namespace()));
            root(if given.is_empty() { own } else { given }.into_iter().map(|name| self.json_name(name)).collect())
        };
        let Some((key, value)) = json::named(&document) else { return Err(all()) };
        let found: Vec<&QName> = known().filter(|name| *key == *name.local() || *key == name.to_string()).collect();
        let schema = match found[..] {
            [name] => self.schemas.get(name),
            [] => None,
            _ => return Err(root(found.iter().map(ToString::to_string).collect())),
        };
        json::convert(schema.ok_or_else(all)?.mapping(), document, value, true, limits)
    }

    /// Writes a valid payload as JSON that names it: an object of one property.
    pub fn to_named_json(&self, payload: &Canonical) -> Option<String> {
        let schema = self.schemas.get(payload.root())?;
        Some(schema.to_named_json(payload, &self.json_name(payload.root())))
    }

    /// The JSON Schema of a payload with its name, `{"name": …}`, as [`Self::to_named_json`] writes it and
    /// [`Self::from_named_json`] reads it.
    pub fn named_json_schema(&self, name: &QName) -> Option<Value> {
        let schema = self.schemas.get(name)?;
        Some(json::named_schema(schema.json_schema(), schema.mapping(), &self.json_name(name)))
    }

    /// The name of a payload as JSON: its local name, unless others share it.
    pub fn json_name(&self, name: &QName) -> String {
        let is_shared = self.order.iter().any(|other| other != name && other.local() == name.local());
        if is_shared { name.to_string() } else { name.local().to_owned() }
    }

    fn insert(&mut self, schema: PayloadSchema) {
        self.order.push(schema.qname().clone());
        self.schemas.insert(schema.qname().clone(), schema);
    }
}

impl Default for Catalog {
    fn default() -> Self {
        Self::new()
    }
}

fn is_reserved(namespace: &str) -> bool {
    const OWN: [&str; 5] = [ns::CORE, ns::META, ns::ENVELOPE, ns::SYSTOLE_META, ns::TRANSCRIPT];
    OWN.contains(&namespace) || [ns::XML, ns::XMLNS, ns::XSD, ns::XSI].contains(&namespace)
}
