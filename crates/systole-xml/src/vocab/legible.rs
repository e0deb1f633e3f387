//! Errors that read as a sentence wherever they end.
//!
//! A `main` that returns `Result<(), Box<dyn Error>>` shows its error by `Debug`, and so do `unwrap` and `expect`: where
//! `Debug` lists fields, the sentence of the error is never seen.

/// Gives an error the `Debug` that its user can read: the text of its `Display`. `tests/tidy.rs` says which errors need it.
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
