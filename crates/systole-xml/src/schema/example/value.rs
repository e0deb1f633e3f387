//! Simple values of examples.

use serde_json::Value;

use super::Sampler;
use crate::ladder::encode::float_text;
use crate::schema::model::{Simple, Type, TypeId, Variety};
use crate::schema::simple::Kind;

impl<'a> Sampler<'a> {
    /// A value of a simple type.
    pub(super) fn value(&mut self, ty: TypeId, hint: Option<&'a Value>) -> Option<String> {
        let mut value = self.unbounded(ty, hint)?;
        if self.wish.distinct {
            value = self.distinct(ty, value)?;
        }
        let value = self.named(ty, value);
        self.spend(1 + value.len())?;
        Some(value)
    }

    /// A value whose prefix is bound where it is written, if it is an enumerated name.
    fn named(&mut self, ty: TypeId, value: String) -> String {
        let names = self.model.simple(ty).filter(
            |simple| matches!(simple.variety, Variety::Atomic(base) if matches!(base.name, "QName" | "NOTATION")),
        );
        let mut values = names.into_iter().flat_map(|simple| &simple.facets.values);
        match values.find(|known| known.value == value).and_then(|known| known.namespace.as_ref()) {
            Some(namespace) => {
                let local = value.split_once(':').map_or(&*value, |(_, local)| local).trim();
                self.writer.bind(namespace) + local
            }
            None => value,
        }
    }

    fn unbounded(&mut self, ty: TypeId, hint: Option<&'a Value>) -> Option<String> {
        let Type::Simple(simple) = &self.model.types[ty] else { return None };
        if let Some(text) = hint.and_then(|hint| given(hint, simple)) {
            return Some(text);
        }
        match &simple.variety {
            Variety::Atomic(base) if base.name == "ID" => self.id(ty, simple),
            // A reference leads to the first ID, which is mostly the one that is written for the first plain ID.
            Variety::Atomic(base) if base.name == "IDREF" && simple.facets.is_empty() => {
                Some(self.ids.first().map_or("name", String::as_str).to_owned())
            }
            _ => {
                let turn = if simple.facets.values.is_empty() { 0 } else { self.wish.choice };
                self.values.get(ty, turn + self.wish.values).map(str::to_owned)
            }
        }
    }

    /// An ID that no element before has.
    fn id(&mut self, ty: TypeId, simple: &Simple) -> Option<String> {
        let is_new = |id: &str| !self.ids.iter().any(|known| known == id);
        let id = if simple.facets.is_empty() {
            match self.ids.len() {
                0 => "name".to_owned(),
                others => (others + 1..).map(|number| format!("name{number}")).find(|id| is_new(id))?,
            }
        } else {
            self.values.all(ty).find(|id| is_new(id))?.to_owned()
        };
        self.ids.push(id.clone());
        Some(id)
    }
}

/// The author's example in its XML form.
fn given(hint: &Value, simple: &Simple) -> Option<String> {
    let float = matches!(simple.variety, Variety::Atomic(base) if base.kind() == Kind::Float);
    match hint {
        Value::Number(number) if float => number.as_f64().map(float_text),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(value) => Some(value.to_string()),
        Value::String(text) => Some(text.clone()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}
