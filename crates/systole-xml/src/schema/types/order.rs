//! The order of the fields of a struct, as its `Deserialize` names them.
//!
//! The schema that schemars makes is no source of it: a JSON object has no order, and a `serde_json::Map` keeps one only
//! under a feature that would change all maps of a user's program. So a type is asked: a deserializer leads it along one
//! way, from value to value, to the struct in question, notes the names that the struct asks for, and refuses. Options,
//! lists and wrappers are passed through, as long as the way goes on.

use std::cell::Cell;

use serde::de::value::{Error, StrDeserializer};
use serde::de::{
    Deserialize, DeserializeSeed, Deserializer, EnumAccess, Error as _, IntoDeserializer, MapAccess, SeqAccess,
    VariantAccess, Visitor,
};

/// A step from a struct or an enum to a value in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Step {
    Field(String),
    Variant(String),
}

/// The names of the fields of a struct.
type Fields = &'static [&'static str];

/// The names of the fields of the struct at the end of a way from a `T`, aliases among them; `None` if the way leads to no
/// struct, or passes a `Deserialize` written by hand that asks for another kind of value.
pub(super) fn fields<T: for<'de> Deserialize<'de>>(way: &[Step]) -> Option<Fields> {
    let found = Cell::new(None);
    // There are no values: what it makes of none is not looked at.
    let _ = T::deserialize(Guide { way, passed: 0, found: &found });
    found.get()
}

/// Leads a type along a way.
#[derive(Clone, Copy)]
struct Guide<'w> {
    way: &'w [Step],
    /// Options, lists and wrappers since the last step: a type may be a list of itself.
    passed: usize,
    found: &'w Cell<Option<Fields>>,
}

/// Options, lists and wrappers in each other, at most.
const DEEPEST: usize = 64;

fn nothing<T>() -> Result<T, Error> {
    Err(Error::custom("no value is here"))
}

impl<'w> Guide<'w> {
    /// The guide behind a step.
    fn at(self, way: &'w [Step]) -> Self {
        Self { way, passed: 0, ..self }
    }

    /// The guide inside of an option, a list or a wrapper.
    fn inside(self) -> Result<Self, Error> {
        if self.passed == DEEPEST { nothing() } else { Ok(Self { passed: self.passed + 1, ..self }) }
    }

    /// The end of the way at a struct, or the next step from it.
    fn through<'de, V: Visitor<'de>>(self, fields: Fields, visitor: V) -> Result<V::Value, Error> {
        match self.way {
            [] => {
                self.found.set(Some(fields));
                nothing()
            }
            [Step::Field(name), way @ ..] => visitor.visit_map(Once { name: Some(name), guide: self.at(way) }),
            [Step::Variant(_), ..] => nothing(),
        }
    }
}

/// Refuses any other kind of value.
macro_rules! refused {
    ($($name:ident($($argument:ty),*);)*) => {
        $(fn $name<V: Visitor<'de>>(self, $(_: $argument,)* _: V) -> Result<V::Value, Error> {
            nothing()
        })*
    };
}

impl<'de> Deserializer<'de> for Guide<'_> {
    type Error = Error;

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_some(self.inside()?)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(self, _: &'static str, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_newtype_struct(self.inside()?)
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_seq(One(Some(self.inside()?)))
    }

    /// An array is a list of a fixed length.
    fn deserialize_tuple<V: Visitor<'de>>(self, _: usize, visitor: V) -> Result<V::Value, Error> {
        self.deserialize_seq(visitor)
    }

    fn deserialize_struct<V: Visitor<'de>>(self, _: &str, fields: Fields, visitor: V) -> Result<V::Value, Error> {
        self.through(fields, visitor)
    }

    fn deserialize_enum<V: Visitor<'de>>(self, _: &str, _: Fields, visitor: V) -> Result<V::Value, Error> {
        match self.way {
            [Step::Variant(name), way @ ..] => visitor.visit_enum(Once { name: Some(name), guide: self.at(way) }),
            _ => nothing(),
        }
    }

    refused! {
        deserialize_any();
        deserialize_bool();
        deserialize_i8();
        deserialize_i16();
        deserialize_i32();
        deserialize_i64();
        deserialize_i128();
        deserialize_u8();
        deserialize_u16();
        deserialize_u32();
        deserialize_u64();
        deserialize_u128();
        deserialize_f32();
        deserialize_f64();
        deserialize_char();
        deserialize_str();
        deserialize_string();
        deserialize_bytes();
        deserialize_byte_buf();
        deserialize_unit();
        deserialize_unit_struct(&'static str);
        deserialize_tuple_struct(&'static str, usize);
        deserialize_map();
        deserialize_identifier();
        deserialize_ignored_any();
    }
}

/// The first element of a list.
struct One<'w>(Option<Guide<'w>>);

impl<'de> SeqAccess<'de> for One<'_> {
    type Error = Error;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, Error> {
        self.0.take().map(|guide| seed.deserialize(guide)).transpose()
    }
}

/// The one field, or the one variant, that the way takes.
struct Once<'w> {
    name: Option<&'w str>,
    guide: Guide<'w>,
}

impl<'de> MapAccess<'de> for Once<'_> {
    type Error = Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, Error> {
        self.name.take().map(|name| seed.deserialize(name.into_deserializer())).transpose()
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Error> {
        seed.deserialize(self.guide)
    }
}

impl<'de> EnumAccess<'de> for Once<'_> {
    type Error = Error;
    type Variant = Self;

    fn variant_seed<V: DeserializeSeed<'de>>(mut self, seed: V) -> Result<(V::Value, Self), Error> {
        let name: StrDeserializer<'_, Error> = self.name.take().unwrap_or_default().into_deserializer();
        Ok((seed.deserialize(name)?, self))
    }
}

impl<'de> VariantAccess<'de> for Once<'_> {
    type Error = Error;

    fn unit_variant(self) -> Result<(), Error> {
        nothing()
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<T::Value, Error> {
        seed.deserialize(self.guide)
    }

    fn tuple_variant<V: Visitor<'de>>(self, _: usize, _: V) -> Result<V::Value, Error> {
        nothing()
    }

    fn struct_variant<V: Visitor<'de>>(self, fields: Fields, visitor: V) -> Result<V::Value, Error> {
        self.guide.through(fields, visitor)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde::Deserialize;

    use super::*;

    #[derive(Deserialize)]
    #[allow(dead_code)]
    struct Outer {
        zulu: u8,
        #[serde(rename = "@yankee")]
        yankee: f32,
        inner: Option<Box<Inner>>,
        many: Vec<Wrapped>,
        pair: [Inner; 2],
        #[serde(rename = "$value")]
        choices: Vec<Choice>,
        #[serde(skip)]
        never: u8,
        alpha: String,
    }

    #[derive(Deserialize)]
    #[serde(rename_all = "kebab-case")]
    #[allow(dead_code)]
    struct Inner {
        second_one: u8,
        #[serde(alias = "b")]
        a: Option<Box<Outer>>,
    }

    #[derive(Deserialize)]
    struct Wrapped(#[allow(dead_code)] Arc<Inner>);

    #[derive(Deserialize)]
    #[allow(dead_code)]
    enum Choice {
        Unit,
        Data(Inner),
        Named { z: u8, inner: Inner, a: u8 },
    }

    #[derive(Deserialize)]
    #[serde(from = "Inner")]
    #[allow(dead_code)]
    struct From(Inner);

    impl core::convert::From<Inner> for From {
        fn from(inner: Inner) -> Self {
            Self(inner)
        }
    }

    #[derive(Deserialize)]
    struct Endless(#[allow(dead_code)] Vec<Endless>);

    struct Lenient;

    impl<'de> Deserialize<'de> for Lenient {
        fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            let _ = String::deserialize(deserializer);
            Ok(Self)
        }
    }

    fn at<T: for<'de> Deserialize<'de>>(way: &str) -> Option<String> {
        let step = |text: &str| match text.strip_prefix(':') {
            Some(variant) => Step::Variant(variant.to_owned()),
            None => Step::Field(text.to_owned()),
        };
        let way: Vec<Step> = way.split_whitespace().map(step).collect();
        fields::<T>(&way).map(|fields| fields.join(" "))
    }

    #[test]
    fn fields_have_the_order_of_the_source() {
        let (outer, inner) = ("zulu @yankee inner many pair $value alpha", "second-one a b");
        assert_eq!(at::<Outer>("").as_deref(), Some(outer));
        for way in ["inner", "many", "pair", "$value :Data", "$value :Named inner", "inner a many"] {
            assert_eq!(at::<Outer>(way).as_deref(), Some(inner), "{way}");
        }
        assert_eq!(at::<Outer>("inner a").as_deref(), Some(outer));
        assert_eq!(at::<Outer>("$value :Named").as_deref(), Some("z inner a"));
        assert_eq!(at::<From>("").as_deref(), Some(inner));
    }

    #[test]
    fn a_way_to_no_struct_has_no_fields() {
        for way in ["zulu", "unknown", "$value", "$value :Unit", "$value :Unknown", "zulu a", ":Data"] {
            assert_eq!(at::<Outer>(way), None, "{way}");
        }
        assert_eq!(fields::<std::collections::BTreeMap<String, u8>>(&[]), None);
        assert_eq!(fields::<(u8, u8)>(&[]), None);
        assert_eq!(fields::<Endless>(&[]), None);
        assert_eq!(fields::<Vec<Lenient>>(&[]), None);
        assert_eq!(fields::<std::marker::PhantomData<u8>>(&[]), None);
    }
}
