//! Derives of other crates, set up to name their crate through `systole`.
//!
//! Such a derive takes the path to its crate from an attribute of the type, and a derive can't add attributes to its
//! type. So it hands a copy of the type to the other derive, with the attribute, and has the copy removed before the
//! compiler resolves names: the other derive's implementation for the name of the copy is one for the type.

use proc_macro2::TokenStream;
use quote::{format_ident, quote};
use syn::{Attribute, Data, DeriveInput, parse_quote};

/// The attributes that derives of serde and schemars read. Others belong to derives that the copy doesn't have.
const READ: [&str; 7] = ["serde", "schemars", "validate", "garde", "doc", "deprecated", "repr"];

/// Derives the trait `name` of a crate that `systole` re-exports under its own name.
pub(crate) fn derive(mut input: DeriveInput, krate: &str, name: &str) -> TokenStream {
    retain_read(&mut input);
    let named = names_crate(&input.attrs, krate);
    let (path, derive, krate) = (format!("::systole::{krate}"), format_ident!("{name}"), format_ident!("{krate}"));
    if !named {
        input.attrs.push(parse_quote!(#[#krate(crate = #path)]));
    }
    quote! {
        #[derive(::systole::#krate::#derive)]
        #[::systole::__remove]
        #input
    }
}

/// Returns whether an attribute of the type gives the path to the crate.
fn names_crate(attributes: &[Attribute], krate: &str) -> bool {
    attributes.iter().filter(|attribute| attribute.path().is_ident(krate)).any(|attribute| {
        let mut found = false;
        // The other derive reports errors in the attribute.
        let _ = attribute.parse_nested_meta(|meta| {
            found |= meta.path.is_ident("crate");
            if meta.input.peek(syn::token::Paren) {
                let content;
                syn::parenthesized!(content in meta.input);
                content.parse::<TokenStream>()?;
            } else if let Ok(value) = meta.value() {
                value.parse::<syn::Expr>()?;
            }
            Ok(())
        });
        found
    })
}

/// Keeps the attributes of a type, its variants and its fields that the derive reads.
fn retain_read(input: &mut DeriveInput) {
    retain(&mut input.attrs);
    match &mut input.data {
        Data::Struct(data) => data.fields.iter_mut().for_each(|field| retain(&mut field.attrs)),
        Data::Enum(data) => {
            for variant in &mut data.variants {
                retain(&mut variant.attrs);
                variant.fields.iter_mut().for_each(|field| retain(&mut field.attrs));
            }
        }
        // The other derive refuses a union.
        Data::Union(_) => {}
    }
}

fn retain(attributes: &mut Vec<Attribute>) {
    attributes.retain(|attribute| READ.iter().any(|read| attribute.path().is_ident(read)));
}
