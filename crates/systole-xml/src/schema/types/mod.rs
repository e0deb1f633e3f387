//! The [`Model`] of a Rust type, made from the JSON Schema that schemars makes of the type.
//!
//! Rules of JSON Schema that XSD can't express are refused here, with a correction. The round trip of
//! [`probe`](super::probe) finds properties that JSON Schema doesn't show (flattened fields, a `Deserialize` written by
//! hand).

mod agree;
mod facets;
mod fields;
mod order;
mod variants;
mod view;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::contract::{ContractError, TypePlace, TypeShape};
use super::model::{Beside, Complex, Content, Element, Model, Type, TypeId};
use order::Step;
use view::{Kind, View};

/// The model of the element `{namespace}local` whose content is a `T`.
///
/// # Errors
/// [`ContractError::Shape`] if XML can't carry the type.
pub(crate) fn model_of<T: JsonSchema + DeserializeOwned>(namespace: &str, local: &str) -> Result<Model, ContractError> {
    let (read, definitions) = generate::<T>(SchemaSettings::draft2020_12().for_deserialize());
    let (written, written_definitions) = generate::<T>(SchemaSettings::draft2020_12().for_serialize());
    let name = T::schema_name();
    agree::check(&name, &read, &written)?;
    for (name, schema) in &definitions {
        agree::check(name, schema, written_definitions.get(name).unwrap_or(&Value::Null))?;
    }
    Derivation::new(&definitions, namespace, Some(order::fields::<T>)).model(&name, local, &read)
}

/// The model of an element whose content a JSON Schema describes as schemars does. Fields have the order in which the map
/// gives them.
///
/// # Errors
/// [`ContractError::Shape`] if XML can't carry the content.
pub(crate) fn model_of_description(namespace: &str, local: &str, schema: &Value) -> Result<Model, ContractError> {
    let definitions = schema.get("$defs").and_then(Value::as_object).cloned().unwrap_or_default();
    Derivation::new(&definitions, namespace, None).model(local, local, schema)
}

fn generate<T: JsonSchema>(settings: SchemaSettings) -> (Value, Map<String, Value>) {
    let mut generator = settings.into_generator();
    let schema = generator.subschema_for::<T>().to_value();
    (schema, generator.take_definitions(false))
}

/// The names of the fields of the struct at the end of a way from a type.
type Order = fn(&[Step]) -> Option<&'static [&'static str]>;

/// A model in the making.
struct Derivation<'a> {
    definitions: &'a Map<String, Value>,
    namespace: Arc<str>,
    types: Vec<Type>,
    /// The named types, by the definitions that they were made from.
    made: HashMap<String, TypeId>,
    names: HashSet<String>,
    /// The names of the fields of the struct at the end of a way, in their order; `None` if no type is asked.
    order: Option<Order>,
    /// The way from the root to the value whose type is made.
    way: Vec<Step>,
}

impl<'a> Derivation<'a> {
    fn new(definitions: &'a Map<String, Value>, namespace: &str, order: Option<Order>) -> Self {
        let (types, made, names, way) = Default::default();
        Self { definitions, namespace: namespace.into(), types, made, names, order, way }
    }

    fn model(mut self, type_name: &str, local: &str, schema: &'a Value) -> Result<Model, ContractError> {
        let place = TypePlace { type_name: type_name.to_owned(), field: None };
        let view = View::of(schema, self.definitions).map_err(at(&place))?;
        let doc = view.own_doc().to_owned();
        let hints = view.hints();
        if view.nullable {
            return Err(at(&place)(TypeShape::RootOption));
        }
        let ty = match view.kind().map_err(at(&place))? {
            Kind::List => return Err(at(&place)(TypeShape::RootList)),
            Kind::Enum(variants) if variants.iter().any(|variant| variant.data.is_some()) => {
                return Err(at(&place)(TypeShape::RootEnum));
            }
            _ => self.type_of(&view, &place)?,
        };
        let root = Element {
            namespace: self.namespace,
            local: local.to_owned(),
            doc,
            ty,
            as_type: None,
            fixed: None,
            nillable: false,
            constraints: Vec::new(),
            hints,
            json: None,
        };
        Ok(Model { root, types: Arc::new(self.types), is_whole: true, is_json: false })
    }

    /// The type of a value that is one element.
    fn type_of(&mut self, view: &View<'a>, place: &TypePlace) -> Result<TypeId, ContractError> {
        match view.kind().map_err(at(place))? {
            Kind::Simple(base) => self.simple(view, base, place),
            Kind::Enum(variants) if variants.iter().all(|variant| variant.data.is_none()) => {
                self.enumeration(view, &variants, place)
            }
            Kind::Enum(_) => Err(at(place)(TypeShape::DataEnum)),
            Kind::Unit => Ok(self.add(Type::Complex(empty()))),
            Kind::Struct => self.complex(view, view.definition.map(str::to_owned)),
            Kind::List => Err(at(place)(TypeShape::NestedList)),
        }
    }

    fn add(&mut self, ty: Type) -> TypeId {
        self.types.push(ty);
        self.types.len() - 1
    }

    /// A name for a type in the schema: that of the Rust type if XML allows it and no other type has it.
    fn type_name(&mut self, wanted: &str) -> String {
        let mut name: String =
            wanted.chars().map(|c| if crate::vocab::is_ncname(&format!("a{c}")) { c } else { '_' }).collect();
        if !crate::vocab::is_ncname(&name) {
            name.insert(0, '_');
        }
        let free = (1..).map(|n| if n == 1 { name.clone() } else { format!("{name}.{n}") });
        let name = free.into_iter().find(|name| !self.names.contains(name)).unwrap_or_default();
        self.names.insert(name.clone());
        name
    }
}

/// The type of an element that is always empty.
fn empty() -> Complex {
    Complex {
        name: None,
        doc: String::new(),
        attributes: Vec::new(),
        any_attributes: None,
        content: Content::Empty,
        beside: Beside::Nothing,
    }
}

/// Puts a shape at its place.
fn at(place: &TypePlace) -> impl Fn(TypeShape) -> ContractError {
    move |shape| ContractError::Shape { place: place.clone(), shape }
}
