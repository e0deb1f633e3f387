//! `#[derive(Payload)]`.

use proc_macro2::TokenStream;
use quote::quote;
use syn::ext::IdentExt;
use syn::{DeriveInput, Error, Expr, LitStr, Path, Type};

/// The implementation of `Payload` that the attribute `#[payload(…)]` of a type describes, with the errors in it. The
/// type is a payload in spite of them: else the compiler would bury them below errors of all code that needs a payload.
pub(crate) fn derive(input: &DeriveInput) -> TokenStream {
    let (mut implementation, wrong) = implement(input);
    implementation.extend(wrong.map(Error::into_compile_error));
    implementation
}

fn implement(input: &DeriveInput) -> (TokenStream, Option<Error>) {
    if !input.generics.params.is_empty() {
        let why = "a payload has one schema, so its type has no parameters: derive Payload for a type without, or write \
                   `impl Payload for` each type that they make";
        return (TokenStream::new(), Some(Error::new_spanned(&input.generics, why)));
    }
    let (Settings { namespace, root, reply, systole }, wrong) = settings(input);
    let name = &input.ident;
    let mut implementation = quote! {
        #[automatically_derived]
        impl #systole::schema::Payload for #name {
            const NAMESPACE: &'static str = #namespace;
            const ROOT: &'static str = #root;
        }
    };
    if let Some(reply) = reply {
        implementation.extend(quote! {
            #[automatically_derived]
            impl #systole::protocol::Request for #name {
                type Reply = #reply;
            }
        });
    }
    (implementation, wrong)
}

struct Settings {
    namespace: Expr,
    root: Expr,
    reply: Option<Type>,
    systole: Path,
}

fn settings(input: &DeriveInput) -> (Settings, Option<Error>) {
    let (mut namespace, mut root, mut reply, mut systole) = (None, None, None, None);
    let mut wrong: Option<Error> = None;
    let mut note = |error| match &mut wrong {
        Some(wrong) => wrong.combine(error),
        None => wrong = Some(error),
    };
    for attribute in input.attrs.iter().filter(|attribute| attribute.path().is_ident("payload")) {
        let parsed = attribute.parse_nested_meta(|meta| {
            let slot = match &meta.path {
                path if path.is_ident("namespace") => &mut namespace,
                path if path.is_ident("root") => &mut root,
                path if path.is_ident("reply") => {
                    if reply.replace(meta.value()?.parse::<Type>()?).is_some() {
                        note(meta.error("the key stands here twice: leave one out"));
                    }
                    return Ok(());
                }
                path if path.is_ident("crate") => {
                    systole = Some(meta.value()?.parse::<LitStr>()?.parse::<Path>()?);
                    return Ok(());
                }
                _ => {
                    note(meta.error("unknown key: write namespace, root, reply or crate"));
                    meta.value()?.parse::<Expr>()?;
                    return Ok(());
                }
            };
            if slot.is_some() {
                note(meta.error("the key stands here twice: leave one out"));
            }
            *slot = Some(meta.value()?.parse::<Expr>()?);
            Ok(())
        });
        if let Err(error) = parsed {
            note(error);
        }
    }
    if namespace.is_none() && wrong.is_none() {
        let missing = "the namespace is missing: write #[payload(namespace = \"urn:…\")]";
        wrong = Some(Error::new_spanned(&input.ident, missing));
    }
    let kebab = LitStr::new(&kebab_case(&input.ident.unraw().to_string()), input.ident.span());
    let settings = Settings {
        namespace: namespace.unwrap_or_else(|| syn::parse_quote!("")),
        root: root.unwrap_or_else(|| syn::parse_quote!(#kebab)),
        reply,
        systole: systole.unwrap_or_else(|| syn::parse_quote!(::systole)),
    };
    (settings, wrong)
}

/// The name of a type in kebab case: `TaskDone` is `task-done`, `HTTPRequest` `http-request`.
fn kebab_case(name: &str) -> String {
    let chars: Vec<char> = name.chars().collect();
    let mut out = String::with_capacity(name.len() + 4);
    for (at, &c) in chars.iter().enumerate() {
        let before = at.checked_sub(1).map(|at| chars[at]);
        let after_lower = before.is_some_and(|before| before.is_lowercase() || before.is_ascii_digit());
        let ends_acronym =
            before.is_some_and(char::is_uppercase) && chars.get(at + 1).is_some_and(|c| c.is_lowercase());
        if (c == '_' || c.is_uppercase() && (after_lower || ends_acronym)) && !out.is_empty() && !out.ends_with('-') {
            out.push('-');
        }
        if c != '_' {
            out.extend(c.to_lowercase());
        }
    }
    out.trim_end_matches('-').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_types_become_kebab_case() {
        // The package for Python is judged by the same names.
        let names = include_str!("../../../tests/fixtures/kebab-case.txt");
        for (name, expected) in names.lines().map(|line| line.split_once(' ').unwrap()) {
            assert_eq!(kebab_case(name), expected);
        }
    }

    #[test]
    fn mistakes_are_told_with_what_to_write_instead() {
        let said = |text: &str| implement(&syn::parse_str(text).unwrap()).1.unwrap().to_string();
        assert!(said("struct A;").contains("#[payload(namespace = "));
        assert!(
            said("#[payload(namespace = \"\", name = \"a\")] struct A;")
                .contains("write namespace, root, reply or crate")
        );
        assert!(said("#[payload(root = \"a\", root = \"a\")] struct A;").contains("twice"));
        assert!(said("#[payload(namespace = \"\", reply = A, reply = A)] struct A;").contains("twice"));
        assert!(said("#[payload(namespace = \"\")] struct A<T>(T);").contains("impl Payload for"));
    }
}
