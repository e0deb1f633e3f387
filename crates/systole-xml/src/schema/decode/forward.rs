//! Methods that the deserializers of this module share.

/// Shapes that can't be read.
macro_rules! refused {
    ($($method:ident($($arg:ty),*): $shape:ident,)*) => {
        $(fn $method<V: Visitor<'de>>(self, $(_: $arg,)* _: V) -> Result<V::Value, DecodeError> {
            Err(Undecodable::$shape.into())
        })*
    };
}
pub(super) use refused;

/// Types without a form of their own in XML: the value in them is read from the same place.
macro_rules! wrapped {
    () => {
        fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DecodeError> {
            self.reader.within = self.reader.within.option()?;
            visitor.visit_some(self)
        }

        fn deserialize_newtype_struct<V: Visitor<'de>>(
            self,
            _: &'static str,
            visitor: V,
        ) -> Result<V::Value, DecodeError> {
            self.reader.within = self.reader.within.wrapper();
            visitor.visit_newtype_struct(self)
        }
    };
}
pub(super) use wrapped;

/// Lists of the next elements.
macro_rules! listed {
    ($($method:ident($($arg:ty),*))*) => {
        $(fn $method<V: Visitor<'de>>(self, $(_: $arg,)* visitor: V) -> Result<V::Value, DecodeError> {
            visitor.visit_seq(self)
        })*
    };
}
pub(super) use listed;
