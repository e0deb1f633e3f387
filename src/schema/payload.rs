use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::{ContractError, PayloadSchema};
use crate::vocab::QName;

/// A Rust type that travels as the payload of an envelope.
///
/// ```
/// use schemars::JsonSchema;
/// use serde::{Deserialize, Serialize};
/// use systole::schema::{Payload, PayloadSchema};
///
/// /// Adds two integers and returns their sum.
/// #[derive(Serialize, Deserialize, JsonSchema)]
/// struct Add {
///     /// Left operand.
///     a: i64,
///     /// Right operand.
///     b: i64,
/// }
///
/// impl Payload for Add {
///     const NAMESPACE: &'static str = "urn:example:calculator:v1";
///     const ROOT: &'static str = "add";
/// }
///
/// let schema = PayloadSchema::of::<Add>()?;
/// assert_eq!(schema.description(), "Adds two integers and returns their sum.");
/// # Ok::<(), systole::schema::ContractError>(())
/// ```
pub trait Payload: Serialize + DeserializeOwned + JsonSchema + Send + 'static {
    /// The namespace of the element; empty for none.
    const NAMESPACE: &'static str;
    /// The local name of the element.
    const ROOT: &'static str;

    /// The qualified name of the element.
    ///
    /// # Panics
    /// If `ROOT` is no NCName; [`PayloadSchema::of`] refuses such a type before.
    fn qname() -> QName {
        QName::new(Self::NAMESPACE, Self::ROOT).expect("ROOT is an element name")
    }

    /// The schema of the type: made from its fields and docs. A type whose schema is written by hand
    /// returns it from here.
    ///
    /// # Errors
    /// [`ContractError`] if XML can't carry the type.
    fn contract() -> Result<PayloadSchema, ContractError> {
        PayloadSchema::derive::<Self>()
    }
}
