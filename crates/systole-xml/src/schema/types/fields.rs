//! Complex types: structs, their fields and the variants of their enums.

use std::collections::{HashMap, HashSet};

use serde_json::{Map, Value};

use super::order::Step;
use super::variants::Variant;
use super::view::{Kind, View};
use super::{Derivation, at, empty};
use crate::schema::contract::{ContractError, TypePlace, TypeShape};
use crate::schema::model::{Attribute, Complex, Content, Element, Order, Particle, Term, Type, TypeId};
use crate::vocab::is_ncname;

/// A property of a struct.
struct Field<'a, 'v> {
    place: &'v TypePlace,
    /// The name, without the `@` of an attribute.
    name: &'a str,
    view: &'v View<'a>,
    required: bool,
}

impl<'a> Derivation<'a> {
    /// The type of a struct, made once for each name.
    pub(super) fn complex(&mut self, view: &View<'a>, name: Option<String>) -> Result<TypeId, ContractError> {
        if let Some(id) = name.as_ref().and_then(|name| self.made.get(name)) {
            return Ok(*id);
        }
        let type_name = name.clone().unwrap_or_else(|| "an unnamed struct".to_owned());
        // The type is registered before it is finished, because its fields may lead back to it.
        let id = self.add(Type::Complex(empty()));
        let xsd_name = name.map(|name| {
            let xsd_name = self.type_name(&name);
            self.made.insert(name, id);
            xsd_name
        });
        let (attributes, content) = self.fields(view, &type_name)?;
        let doc = view.type_doc().to_owned();
        self.types[id] = Type::Complex(Complex { name: xsd_name, doc, attributes, content, ..empty() });
        Ok(id)
    }

    fn fields(&mut self, view: &View<'a>, type_name: &str) -> Result<(Vec<Attribute>, Content), ContractError> {
        let (mut attributes, mut particles, mut text) = (Vec::new(), Vec::new(), None);
        let none = Map::new();
        let properties = view.get("properties").and_then(Value::as_object);
        let required: HashSet<&str> =
            view.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect();
        for (key, schema) in self.in_order(properties.into_iter().flatten(), type_name)? {
            let place = &TypePlace { type_name: type_name.to_owned(), field: Some(key.clone()) };
            let view = &View::of(schema, self.definitions).map_err(at(place))?;
            let field = Field { place, name: key, view, required: required.contains(key.as_str()) };
            self.way.push(Step::Field(key.clone()));
            match key.strip_prefix('@') {
                Some(name) => attributes.push(self.attribute(Field { name, ..field })?),
                None if key == "$text" => text = Some((place.clone(), self.text(&field, type_name)?)),
                None if key == "$value" => {
                    let others = properties.unwrap_or(&none);
                    particles.push(self.value(&field, others)?);
                }
                None => particles.push(self.child(field)?),
            }
            self.way.pop();
        }
        let content = match text {
            Some((place, _)) if !particles.is_empty() => return Err(at(&place)(TypeShape::MixedText)),
            Some((_, ty)) => Content::Text(ty),
            None if particles.is_empty() => Content::Empty,
            None => Content::Children(Particle::once(Term::Group(Order::Sequence, particles))),
        };
        Ok((attributes, content))
    }

    /// The properties of the struct at the end of the way, in the order of its fields.
    fn in_order(
        &self,
        properties: impl Iterator<Item = (&'a String, &'a Value)>,
        type_name: &str,
    ) -> Result<Vec<(&'a String, &'a Value)>, ContractError> {
        let mut properties: Vec<_> = properties.collect();
        let Some(order) = self.order else { return Ok(properties) };
        let mut places: HashMap<&str, usize> = HashMap::new();
        for (at, name) in order(&self.way).unwrap_or_default().iter().enumerate() {
            // A name that stands twice is an alias of a later field, too: the first one is read.
            places.entry(name).or_insert(at);
        }
        // Attributes and text have no order among the elements.
        let is_element = |name: &str| !name.starts_with('@') && name != "$text";
        let elements = properties.iter().filter(|(name, _)| is_element(name));
        let unknown = elements.clone().find(|(name, _)| !places.contains_key(name.as_str()));
        if let Some((name, _)) = unknown.filter(|_| elements.count() > 1) {
            let place = TypePlace { type_name: type_name.to_owned(), field: Some((*name).clone()) };
            return Err(at(&place)(TypeShape::UnknownOrder));
        }
        properties.sort_by_key(|(name, _)| places.get(name.as_str()).copied().unwrap_or(usize::MAX));
        Ok(properties)
    }

    fn attribute(&mut self, field: Field<'a, '_>) -> Result<Attribute, ContractError> {
        if !is_ncname(field.name) || field.name == "xmlns" {
            return Err(at(field.place)(TypeShape::FieldName));
        }
        field.check_option()?;
        let ty = self.text_type(&field, TypeShape::ComplexAttribute)?;
        Ok(Attribute {
            namespace: "".into(),
            local: field.name.to_owned(),
            doc: field.view.own_doc().to_owned(),
            ty,
            required: field.required,
            fixed: None,
            hints: field.view.hints(),
        })
    }

    fn text(&mut self, field: &Field<'a, '_>, of: &str) -> Result<TypeId, ContractError> {
        if field.view.nullable {
            return Err(at(field.place)(TypeShape::OptionalText));
        }
        let ty = self.text_type(field, TypeShape::ComplexText)?;
        // Attributes can only be added to a type with a name.
        let name = self.type_name(&format!("{of}.text"));
        match &mut self.types[ty] {
            Type::Simple(simple) if simple.name.is_none() && !simple.facets.is_empty() => simple.name = Some(name),
            _ => {}
        }
        Ok(ty)
    }

    /// The simple type of an attribute or of text.
    fn text_type(&mut self, field: &Field<'a, '_>, otherwise: TypeShape) -> Result<TypeId, ContractError> {
        match field.view.kind().map_err(at(field.place))? {
            Kind::List => Err(at(field.place)(TypeShape::ListInText)),
            Kind::Unit | Kind::Struct => Err(at(field.place)(otherwise)),
            Kind::Simple(_) | Kind::Enum(_) => self.type_of(field.view, field.place),
        }
    }

    fn child(&mut self, field: Field<'a, '_>) -> Result<Particle, ContractError> {
        if !is_ncname(field.name) {
            return Err(at(field.place)(TypeShape::FieldName));
        }
        let element = |ty| {
            Term::Element(Box::new(Element {
                namespace: self.namespace.clone(),
                local: field.name.to_owned(),
                doc: field.view.own_doc().to_owned(),
                ty,
                as_type: None,
                fixed: None,
                nillable: false,
                constraints: Vec::new(),
                hints: field.view.hints(),
                json: None,
            }))
        };
        let placeholder = element(0);
        let (ty, min, max) = match field.view.kind().map_err(at(field.place))? {
            Kind::List => {
                let (items, min, max) = field.list(self.definitions)?;
                (self.type_of(&items, field.place)?, min, max)
            }
            _ => {
                field.check_option()?;
                (self.type_of(field.view, field.place)?, u64::from(field.required), Some(1))
            }
        };
        let Term::Element(element) = placeholder else { unreachable!("element() makes elements") };
        Ok(Particle { min, max, term: Term::Element(Box::new(Element { ty, ..*element })) })
    }

    /// The choice between the variants of a `$value` field.
    fn value(&mut self, field: &Field<'a, '_>, others: &Map<String, Value>) -> Result<Particle, ContractError> {
        let kind = field.view.kind().map_err(at(field.place))?;
        let (items, min, max) = match kind {
            Kind::List => field.list(self.definitions).map(|(items, min, max)| (Some(items), min, max))?,
            _ => {
                field.check_option()?;
                (None, u64::from(field.required), Some(1))
            }
        };
        let view = items.as_ref().unwrap_or(field.view);
        let Kind::Enum(variants) = view.kind().map_err(at(field.place))? else {
            return Err(at(field.place)(TypeShape::ValueWithoutEnum));
        };
        let mut alternatives = Vec::new();
        for variant in &variants {
            if others.contains_key(variant.name) {
                return Err(at(field.place)(TypeShape::VariantClash(variant.name.to_owned())));
            }
            let element = self.variant(variant, view, field.place)?;
            alternatives.push(Particle::once(Term::Element(Box::new(element))));
        }
        Ok(Particle { min, max, term: Term::Group(Order::Choice, alternatives) })
    }

    fn variant(&mut self, variant: &Variant<'a>, of: &View<'a>, place: &TypePlace) -> Result<Element, ContractError> {
        let name = variant.name.to_owned();
        if !is_ncname(variant.name) {
            return Err(at(place)(TypeShape::VariantName(name)));
        }
        let place = &TypePlace { type_name: of.definition.unwrap_or(&place.type_name).to_owned(), field: None };
        let (ty, hints) = match variant.data {
            None => (self.add(Type::Complex(empty())), Vec::new()),
            Some(schema) => {
                let view = View::of(schema, self.definitions).map_err(at(place))?;
                let kind = match view.kind() {
                    Err(TypeShape::Tuple) => return Err(at(place)(TypeShape::TupleVariant(name))),
                    kind => kind.map_err(at(place))?,
                };
                self.way.push(Step::Variant(name.clone()));
                let ty = match kind {
                    _ if view.nullable => return Err(at(place)(TypeShape::VariantContent(name))),
                    Kind::List => return Err(at(place)(TypeShape::VariantContent(name))),
                    // The fields of a variant make a type that is named after both, so that it can contain its enum.
                    Kind::Struct if view.definition.is_none() => {
                        self.complex(&view, of.definition.map(|of| format!("{of}.{name}")))?
                    }
                    _ => self.type_of(&view, place)?,
                };
                self.way.pop();
                (ty, view.hints())
            }
        };
        let namespace = self.namespace.clone();
        Ok(Element {
            namespace,
            local: name,
            doc: variant.doc.to_owned(),
            ty,
            as_type: None,
            fixed: None,
            nillable: false,
            constraints: Vec::new(),
            hints,
            json: None,
        })
    }
}

impl<'a> Field<'a, '_> {
    fn check_option(&self) -> Result<(), ContractError> {
        if self.view.nullable && self.required { Err(at(self.place)(TypeShape::RequiredOption)) } else { Ok(()) }
    }

    /// The items of a list, with their minimum and maximum number.
    fn list(&self, definitions: &'a Map<String, Value>) -> Result<(View<'a>, u64, Option<u64>), ContractError> {
        let refuse = |shape| Err(at(self.place)(shape));
        let count = |key| self.view.get(key).and_then(Value::as_u64);
        let min = count("minItems").unwrap_or(0);
        if self.view.nullable {
            return refuse(TypeShape::OptionalList);
        }
        if self.required && min == 0 {
            return refuse(TypeShape::ListWithoutDefault);
        }
        let Some(items) = self.view.get("items") else { return refuse(TypeShape::Anything) };
        let items = View::of(items, definitions).map_err(at(self.place))?;
        if items.nullable {
            return refuse(TypeShape::ListOfOptions);
        }
        if matches!(items.kind().map_err(at(self.place))?, Kind::List) {
            return refuse(TypeShape::NestedList);
        }
        Ok((items, min, count("maxItems")))
    }
}
