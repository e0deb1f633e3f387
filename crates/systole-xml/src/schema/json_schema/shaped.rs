//! Values that have no form in XML Schema: their type is the vocabulary of JSON, and their rules are those of the author.

use std::sync::LazyLock;

use super::portable::Portable;
use super::{Maker, Value};
use crate::schema::PayloadSchema;
use crate::schema::contract::ContractError;
use crate::schema::json::document::NodeId;
use crate::schema::json::rules::{Rule, RuleId, types};
use crate::schema::json::values::ValueRules;
use crate::schema::model::{
    Attribute, Beside, Complex, Content, Element, Order, Particle, Simple, Term, Type, TypeId, Variety,
};

/// The rules of the values of a payload, and a sample of the whole payload as JSON, if there is one.
type RulesAndSample = (ValueRules, Option<String>);

/// The values of a payload that travel in the vocabulary.
#[derive(Default)]
pub(super) struct Shaped {
    /// The type of each value, with its rule and its schema.
    values: Vec<(TypeId, RuleId, NodeId)>,
    /// The elements of the vocabulary, whose types are among those of the payload.
    elements: Vec<Element>,
}

/// The payloads of the vocabulary: one for each kind of value, which share their types.
static VOCABULARY: LazyLock<Vec<PayloadSchema>> = LazyLock::new(|| {
    let schemas = PayloadSchema::built_in("json.xsd", include_str!("../source/json.xsd"));
    schemas.expect("the vocabulary compiles")
});

impl Maker<'_, '_> {
    /// The type of a value in the vocabulary, which its schema judges.
    ///
    /// # Errors
    /// The place of a keyword that is wrong, or that contracts can't have.
    pub(super) fn shaped(&mut self, node: NodeId) -> Result<Value, ContractError> {
        let rule = self.rule(node)?;
        if self.shaped.elements.is_empty() {
            self.add_vocabulary();
        }
        let options = self.shaped.elements.iter();
        let options = options.map(|element| Particle::once(Term::Element(Box::new(element.clone()))));
        let content = Content::Children(Particle::once(Term::Group(Order::Choice, options.collect())));
        let (name, attributes, any_attributes, beside) = (None, Vec::new(), None, Beside::Nothing);
        let doc = String::new();
        self.types.push(Type::Complex(Complex { name, doc, attributes, any_attributes, content, beside }));
        let ty = self.types.len() - 1;
        self.shaped.values.push((ty, rule, node));
        let is_object = self.document.kind(node) == crate::schema::json::document::Kind::Object;
        let doc = if is_object { self.doc(node)? } else { String::new() };
        Ok(Value { ty, doc, nullable: false, fixed: None })
    }

    /// Adds the types of the vocabulary to those of the payload.
    fn add_vocabulary(&mut self) {
        let first = self.types.len();
        let Some(types) = VOCABULARY.first().map(|schema| &schema.model().types) else { return };
        self.types.extend(types.iter().map(|ty| moved(ty, first)));
        self.shaped.elements = VOCABULARY.iter().map(|schema| moved_element(&schema.model().root, first)).collect();
        for ty in &self.types[first..] {
            let name = match ty {
                Type::Complex(complex) => &complex.name,
                Type::Simple(simple) => &simple.name,
            };
            self.names.extend(name.clone());
        }
    }

    /// The rules of the values of a payload, and a sample of the whole; `None` without such values.
    ///
    /// # Errors
    /// The place of schemas that no value fits, or that lead in a circle.
    pub(super) fn value_rules(
        &mut self,
        root: NodeId,
        root_type: TypeId,
    ) -> Result<Option<RulesAndSample>, ContractError> {
        if self.shaped.values.is_empty() {
            return Ok(None);
        }
        let whole = self.rule(root)?;
        // A payload is an object.
        let object = Rule { types: types::OBJECT, all: vec![whole], ..Rule::default() };
        let object = self.compiled.add(object);
        let (rules, numbers) = self.ordered_rules()?;
        let is_shaped = self.shaped.values.iter().any(|(ty, ..)| *ty == root_type);
        if is_shaped && !rules.may_be_object(numbers[whole as usize]) {
            return Err(self.wrong(
                root,
                "a payload is an object, or a value of one type: write an object with a property that is this value",
            ));
        }
        let sample = rules.sample(numbers[whole as usize]);
        let mut portable = Portable::default();
        let mut of = std::collections::HashMap::new();
        for (ty, rule, node) in &self.shaped.values {
            let rule = if *ty == root_type { object } else { *rule };
            of.insert(*ty, (numbers[rule as usize], self.portable(*node, &mut portable)?));
        }
        let definitions = self.definitions(portable)?;
        Ok(Some((ValueRules { rules, of, definitions }, sample)))
    }
}

/// A type whose references are moved.
fn moved(ty: &Type, by: usize) -> Type {
    match ty {
        Type::Simple(simple) => {
            let variety = match &simple.variety {
                Variety::Atomic(base) => Variety::Atomic(base),
                Variety::List(item) => Variety::List(item + by),
                Variety::Union(members) => Variety::Union(members.iter().map(|member| member + by).collect()),
            };
            Type::Simple(Simple { variety, ..simple.clone() })
        }
        Type::Complex(complex) => {
            let moved_attribute = |attribute: &Attribute| Attribute { ty: attribute.ty + by, ..attribute.clone() };
            let attributes = complex.attributes.iter().map(moved_attribute).collect();
            let content = match &complex.content {
                Content::Empty => Content::Empty,
                Content::Text(ty) => Content::Text(ty + by),
                Content::Children(particle) => Content::Children(moved_particle(particle, by)),
            };
            Type::Complex(Complex { attributes, content, ..complex.clone() })
        }
    }
}

/// Recurses as deep as the groups of the vocabulary nest.
fn moved_particle(particle: &Particle, by: usize) -> Particle {
    let term = match &particle.term {
        Term::Element(element) => Term::Element(Box::new(moved_element(element, by))),
        Term::Group(order, parts) => Term::Group(*order, parts.iter().map(|part| moved_particle(part, by)).collect()),
        Term::Any(words) => Term::Any(words.clone()),
    };
    Particle { term, ..*particle }
}

fn moved_element(element: &Element, by: usize) -> Element {
    Element { ty: element.ty + by, ..element.clone() }
}
