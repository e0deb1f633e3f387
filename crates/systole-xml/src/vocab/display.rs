//! Traits that follow from `Display`: `Debug` of errors, `Serialize` of names, ids, paths and times.
//!
//! A `main` that returns `Result<(), Box<dyn Error>>` shows its error by `Debug`, and so do `unwrap` and `expect`: if
//! `Debug` lists fields, the sentence of the error is never seen.

/// Implements `Debug` for an error by its `Display`, so that its user reads a sentence. `tests/tidy` lists the
/// errors that need it.
#[doc(hidden)]
#[macro_export]
macro_rules! debug_is_display {
    ($error:ty) => {
        impl ::std::fmt::Debug for $error {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                ::std::fmt::Display::fmt(self, f)
            }
        }
    };
}

/// Implements `Serialize` for values whose text is their form in JSON, too.
#[doc(hidden)]
#[macro_export]
macro_rules! serialize_is_display {
    ($($value:ty),+ $(,)?) => {$(
        impl ::serde::Serialize for $value {
            fn serialize<S: ::serde::Serializer>(&self, serializer: S) -> ::std::result::Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }
    )+};
}
