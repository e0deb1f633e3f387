//! Round trips of every type that registers: types built from each other, with all values that could be mistaken for
//! another.

use std::fmt::Debug;
use std::sync::Arc;

use crate::built::check_document;
use crate::json::check_payload;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use systole_xml::schema::{Catalog, Payload, PayloadSchema, Validator, decode, encode};

/// The boundary values of a type.
trait Values: Sized + Clone {
    fn values() -> Vec<Self>;
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
struct Newtype<T>(T);

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
struct Inner {
    a: Option<String>,
    #[serde(rename = "@b")]
    b: Option<u8>,
}

impl Values for i64 {
    fn values() -> Vec<Self> {
        vec![0, -7]
    }
}

impl Values for () {
    fn values() -> Vec<Self> {
        vec![()]
    }
}

impl Values for Inner {
    fn values() -> Vec<Self> {
        [(None, None), (Some(""), Some(1)), (Some("x"), None)].map(|(a, b)| Self { a: a.map(str::to_owned), b }).into()
    }
}

impl<T: Values> Values for Option<T> {
    fn values() -> Vec<Self> {
        std::iter::once(None).chain(T::values().into_iter().map(Some)).collect()
    }
}

impl<T: Values> Values for Box<T> {
    fn values() -> Vec<Self> {
        T::values().into_iter().map(Box::new).collect()
    }
}

impl<T: Values> Values for Newtype<T> {
    fn values() -> Vec<Self> {
        T::values().into_iter().map(Newtype).collect()
    }
}

impl<T: Values> Values for Vec<T> {
    fn values() -> Vec<Self> {
        let all = T::values();
        let one = all[..1].to_vec();
        vec![Vec::new(), one, all]
    }
}

/// Payloads that hold the type as a required field, as an optional field and as an attribute.
macro_rules! holders {
    ($($holder:ident $(#[$attribute:meta])*;)*) => {
        $(
            #[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
            #[serde(bound(deserialize = "T: Default + DeserializeOwned"))]
            #[schemars(bound = "T: Default + Serialize + JsonSchema")]
            struct $holder<T> {
                $(#[$attribute])*
                x: T,
                last: u8,
            }

            impl<T> Payload for $holder<T>
            where
                T: Default + Serialize + DeserializeOwned + JsonSchema + Send + 'static,
            {
                const NAMESPACE: &'static str = "urn:example:shapes:v1";
                const ROOT: &'static str = "holder";
            }

            impl<T: Values> Values for $holder<T> {
                fn values() -> Vec<Self> {
                    T::values().into_iter().map(|x| Self { x, last: 1 }).collect()
                }
            }
        )*
    };
}

holders! {
    Bare;
    Defaulted #[serde(default)];
    Attribute #[serde(rename = "@x")];
}

/// The numbers of registered and of refused shapes.
#[derive(Default)]
struct Count {
    registered: usize,
    refused: usize,
}

fn check<T: Payload + Values + PartialEq + Debug>(count: &mut Count) {
    let name = std::any::type_name::<T>();
    let Ok(schema) = PayloadSchema::of::<T>() else {
        count.refused += 1;
        return;
    };
    count.registered += 1;
    let mut catalog = Catalog::new();
    catalog.add(schema.clone()).unwrap();
    let mut validator = Validator::new(Arc::new(catalog));
    check_document(&schema);
    for value in T::values() {
        let written = encode(&value).unwrap_or_else(|error| panic!("{name}: {value:?} can't be written: {error}"));
        let judged = validator.validate(written.clone());
        let valid = judged.unwrap_or_else(|error| panic!("{name}: {value:?} is {}: {error}", written.as_str()));
        let read: T = decode(&valid).unwrap_or_else(|error| panic!("{name}: {value:?} can't be read: {error}"));
        assert_eq!(read, value, "{name}: {} was written", written.as_str());
        check_payload(&schema, &written);
    }
}

macro_rules! held {
    ($count:ident: $type:ty) => {
        check::<Bare<$type>>(&mut $count);
        check::<Defaulted<$type>>(&mut $count);
        check::<Attribute<$type>>(&mut $count);
    };
}

macro_rules! wrapped {
    ($count:ident: $type:ty) => {
        held!($count: $type);
        held!($count: Option<$type>);
        held!($count: Box<$type>);
        held!($count: Newtype<$type>);
        held!($count: Vec<$type>);
    };
}

macro_rules! twice {
    ($count:ident: $type:ty) => {
        wrapped!($count: $type);
        wrapped!($count: Option<$type>);
        wrapped!($count: Newtype<$type>);
        wrapped!($count: Vec<$type>);
    };
}

#[test]
fn what_registers_round_trips() {
    let mut count = Count::default();
    twice!(count: i64);
    twice!(count: ());
    twice!(count: Inner);
    wrapped!(count: Box<Option<i64>>);
    wrapped!(count: Newtype<Option<i64>>);
    wrapped!(count: Option<Box<Option<()>>>);
    assert!(count.registered > 60 && count.refused > 60, "{} and {}", count.registered, count.refused);
}
