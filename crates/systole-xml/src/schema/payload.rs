//! The trait of Rust types that are payloads.

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
/// use systole_xml::schema::{Payload, PayloadSchema};
///
/// /// Adds two integers and returns their sum.
/// #[derive(Serialize, Deserialize, JsonSchema, Payload)]
/// #[payload(crate = "systole_xml", namespace = "urn:example:calculator:v1", root = "add")]
/// struct Add {
///     /// Left operand.
///     a: i64,
///     /// Right operand.
///     b: i64,
/// }
///
/// let schema = PayloadSchema::of::<Add>()?;
/// assert_eq!(schema.description(), "Adds two integers and returns their sum.");
/// # Ok::<(), systole_xml::schema::ContractError>(())
/// ```
///
/// A field is a child element; `#[serde(rename = "@id")]` makes it an attribute, `$text` the text, `$value` a choice
/// whose variants name the elements (`docs/types.md`).
///
/// Types inside a payload need only the three other derives. Those of `systole::prelude` are serde's and schemars', set
/// up to name their crates through `systole`, so that a program needs neither of them as a dependency; a program that
/// has them may use their own derives. Without the derive, write an `impl Payload for Add` with the two constants.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no payload",
    label = "no payload",
    note = "derive it: `#[derive(Serialize, Deserialize, JsonSchema, Payload)]` with `#[payload(namespace = \"urn:…\")]`"
)]
pub trait Payload: Serialize + DeserializeOwned + JsonSchema + Send + 'static {
    /// The namespace of the element; empty for none.
    const NAMESPACE: &'static str;
    /// The local name of the element.
    const ROOT: &'static str;

    /// The qualified name of the element.
    ///
    /// If `ROOT` is no NCName. [`PayloadSchema::of`] refuses such a type before.
    /// If `ROOT` is no NCName; [`PayloadSchema::of`] refuses such a type before.
    fn qname() -> QName {
        QName::new(Self::NAMESPACE, Self::ROOT).expect("ROOT is an element name")
    }

    /// The schema of the type, made from its fields and docs. A type with a schema written by hand
    /// returns it from here.
    ///
    /// # Errors
    /// [`ContractError`] if XML can't carry the type.
    fn contract() -> Result<PayloadSchema, ContractError> {
        PayloadSchema::derived::<Self>()
    }
}
