//! The properties of an object that may stand together: groups of a content model as keywords of JSON Schema.

use std::sync::Arc;

use serde_json::Value;

use super::Object;
use super::mapping::{ANY, element_key};
use super::sketch::Sketch;
use crate::schema::model::{Order, Particle, Term};

/// The greatest number of names in the rules of one group: rules grow by the square of the group.
const LONGEST: usize = 4_096;

/// The rules of a particle whose elements each have a name of their own and whose groups occur once at most.
#[derive(Default)]
pub(super) struct Presence {
    /// The properties of the particle.
    names: Vec<String>,
    required: Vec<String>,
    /// Further rules, each a schema.
    rules: Vec<Object>,
}

impl Presence {
    /// Recurses as deep as groups nest, of which a model bounds the depth.
    pub(super) fn of(particle: &Particle, namespace: &Arc<str>) -> Self {
        let one = |name: String| {
            let required = if particle.min > 0 { vec![name.clone()] } else { Vec::new() };
            Self { names: vec![name], required, rules: Vec::new() }
        };
        match &particle.term {
            _ if particle.max == Some(0) => Self::default(),
            Term::Element(element) => {
                let mut one = one(element_key(element, namespace));
                if element.json.as_ref().is_some_and(|json| json.always) {
                    one.required.clone_from(&one.names);
                }
                one
            }
            Term::Any(_) => one(ANY.to_owned()),
            Term::Group(Order::Choice, parts) => Self::choice(particle.min == 0, parts, namespace),
            Term::Group(Order::Sequence | Order::All, parts) => {
                let mut all = Self::default();
                for part in parts {
                    let Self { names, required, rules } = Self::of(part, namespace);
                    all.names.extend(names);
                    all.required.extend(required);
                    all.rules.extend(rules);
                }
                if particle.min == 0 { all.optional() } else { all }
            }
        }
    }

    /// The rules of a group that may be left out.
    fn optional(mut self) -> Self {
        let required = std::mem::take(&mut self.required);
        if !self.rules.is_empty() || required.len().saturating_mul(self.names.len()) > LONGEST {
            let rules = std::mem::take(&mut self.rules);
            let present = Self { names: Vec::new(), required, rules }.schema(&[]);
            self.rules = vec![any_of(vec![absent(&self.names), present])];
        } else if !required.is_empty() && self.names.len() > 1 {
            let mut dependent = Object::new();
            for name in &self.names {
                let others: Vec<Value> =
                    required.iter().filter(|other| *other != name).map(|other| other.as_str().into()).collect();
                if !others.is_empty() {
                    dependent.insert(name.clone(), others.into());
                }
            }
            self.rules = vec![Sketch::with("dependentRequired", dependent).keywords];
        }
        self
    }

    fn choice(is_optional: bool, parts: &[Particle], namespace: &Arc<str>) -> Self {
        let mut branches = Vec::new();
        let mut pending: Vec<&Particle> = parts.iter().rev().collect();
        while let Some(part) = pending.pop() {
            match &part.term {
                Term::Group(Order::Choice, inner) if (part.min, part.max) == (1, Some(1)) => {
                    pending.extend(inner.iter().rev())
                }
                _ => branches.push(Self::of(part, namespace)),
            }
        }
        let names: Vec<String> = branches.iter().flat_map(|branch| branch.names.iter().cloned()).collect();
        let is_single = |branch: &Self| branch.names.len() == 1 && branch.required.len() == 1;
        if let ([only], false) = (&branches[..], is_optional) {
            return Self { names, required: only.required.clone(), rules: only.rules.clone() };
        }
        if branches.iter().all(is_single) {
            let mut options: Vec<Object> =
                branches.iter().map(|branch| Sketch::with("required", branch.required.clone()).keywords).collect();
            if is_optional {
                options.push(absent(&names));
            }
            let options: Vec<Value> = options.into_iter().map(Value::Object).collect();
            return Self { names, required: Vec::new(), rules: vec![Sketch::with("oneOf", options).keywords] };
        }
        if branches.len().saturating_mul(names.len()) > LONGEST {
            // The validator has the last word.
            return Self { names, required: Vec::new(), rules: Vec::new() };
        }
        let mut options: Vec<Object> = Vec::new();
        for (at, branch) in branches.iter().enumerate() {
            let others = branches.iter().enumerate().filter(|(other, _)| *other != at);
            let others: Vec<String> = others.flat_map(|(_, other)| other.names.iter().cloned()).collect();
            let branch = Self { names: Vec::new(), required: branch.required.clone(), rules: branch.rules.clone() };
            options.push(branch.schema(&others));
        }
        if is_optional {
            options.push(absent(&names));
        }
        Self { names, required: Vec::new(), rules: vec![any_of(options)] }
    }

    /// The names that are always there, and the keywords of all other rules.
    pub(super) fn keywords(self) -> (Vec<Value>, Object) {
        let keywords = match <[Object; 1]>::try_from(self.rules) {
            Ok([only]) => only,
            Err(rules) if rules.is_empty() => Object::new(),
            Err(rules) => Sketch::with("allOf", rules.into_iter().map(Value::Object).collect::<Vec<_>>()).keywords,
        };
        (self.required.into_iter().map(Value::String).collect(), keywords)
    }

    /// The rules as one schema, with properties that may not be there.
    fn schema(self, without: &[String]) -> Object {
        let (required, mut keywords) = self.keywords();
        if !required.is_empty() {
            keywords.insert("required".to_owned(), required.into());
        }
        if !without.is_empty() {
            keywords.extend(absent(without));
        }
        keywords
    }
}

/// The schema of objects without some properties.
fn absent(names: &[String]) -> Object {
    let properties: Object = names.iter().map(|name| (name.clone(), Value::Bool(false))).collect();
    Sketch::with("properties", properties).keywords
}

fn any_of(options: Vec<Object>) -> Object {
    Sketch::with("anyOf", options.into_iter().map(Value::Object).collect::<Vec<_>>()).keywords
}
