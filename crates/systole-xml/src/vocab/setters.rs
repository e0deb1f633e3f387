//! Setters of options.

/// Writes a chained setter for each named field of a struct of options: `Limits::default().mailbox(100)`. Such a struct
/// is `#[non_exhaustive]`, so that a new option breaks no program.
#[doc(hidden)]
#[macro_export]
macro_rules! setters {
    ($options:ident $(<$life:lifetime>)? { $($field:ident: $value:ty),* $(,)? }) => {
        impl $(<$life>)? $options $(<$life>)? {
            $(
                #[doc = concat!("Sets the field `", stringify!($field), "`.")]
                #[must_use]
                pub fn $field(mut self, $field: $value) -> Self {
                    self.$field = $field.into();
                    self
                }
            )*
        }
    };
}
