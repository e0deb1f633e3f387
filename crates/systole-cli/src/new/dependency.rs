//! The dependency of a crate on the library, which is in no registry.

use std::fs;
use std::path::Path;

use super::template::File;
use crate::failure::Failure;

/// The dependency as the template has it.
const WRITTEN: &str = r#"{ path = "../systole" }"#;

/// Names that cargo gives to no crate with a program: the words of the language, its own crates, and cargo's folders. The
/// last one is the library's.
const TAKEN: [&str; 62] = [
    "as",
    "async",
    "await",
    "break",
    "const",
    "continue",
    "crate",
    "dyn",
    "else",
    "enum",
    "extern",
    "false",
    "fn",
    "for",
    "gen",
    "if",
    "impl",
    "in",
    "let",
    "loop",
    "match",
    "mod",
    "move",
    "mut",
    "pub",
    "ref",
    "return",
    "self",
    "Self",
    "static",
    "struct",
    "super",
    "trait",
    "true",
    "type",
    "unsafe",
    "use",
    "where",
    "while",
    "abstract",
    "become",
    "box",
    "do",
    "final",
    "macro",
    "override",
    "priv",
    "try",
    "typeof",
    "unsized",
    "virtual",
    "yield",
    "test",
    "core",
    "std",
    "alloc",
    "proc-macro",
    "proc_macro",
    "build",
    "deps",
    "examples",
    "incremental",
];

/// Refuses a name that no crate may have.
pub(super) fn judge(name: &str) -> Result<(), Failure> {
    let letter = name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_');
    if !letter || name.contains('.') {
        return Err(Failure::unusable(format!(
            "'{name}' can't be the name of a crate: write letters, digits, - and _, a letter first"
        )));
    }
    if TAKEN.contains(&name) || name == "systole" {
        return Err(Failure::unusable(format!(
            "'{name}' can't be the name of a crate, since Rust or Cargo reserves it: name another one"
        )));
    }
    Ok(())
}

/// The library, as a line of a `Cargo.toml` names it.
pub(super) struct Dependency(String);

impl Dependency {
    /// Takes a folder or an address; without one, the checkout that is here or beside the new folder.
    pub(super) fn find(named: Option<&str>) -> Result<Self, Failure> {
        const ELSEWHERE: &str = "name its folder, or the address of its repository: --systole WHERE";
        match named {
            Some(address) if address.contains("://") => Ok(Self(format!("{{ git = {} }}", quoted(address)))),
            Some(folder) if is_checkout(folder) => {
                let whole = fs::canonicalize(folder).map_err(|cause| Failure::read(Path::new(folder), cause))?;
                let whole = whole.to_str().ok_or_else(|| {
                    Failure::unusable(format!("{} is not UTF-8, so no Cargo.toml can name it", whole.display()))
                })?;
                Ok(Self(format!("{{ path = {} }}", quoted(whole))))
            }
            Some(folder) => Err(Failure::unusable(format!("there is no checkout of Systole in {folder}: {ELSEWHERE}"))),
            None if is_checkout(".") => Ok(Self(r#"{ path = ".." }"#.to_owned())),
            None if is_checkout("systole") => Ok(Self(WRITTEN.to_owned())),
            None => Err(Failure::unusable(format!(
                "the library is in no registry, and neither this folder nor the folder systole is a checkout of it: {ELSEWHERE}"
            ))),
        }
    }

    /// Names the library in the `Cargo.toml`.
    pub(super) fn write_into(&self, files: &mut [File]) {
        for (_, text) in files.iter_mut().filter(|(path, _)| *path == "Cargo.toml") {
            *text = text.replace(WRITTEN, &self.0);
        }
    }
}

fn is_checkout(folder: &str) -> bool {
    let manifest = fs::read_to_string(Path::new(folder).join("Cargo.toml"));
    manifest.is_ok_and(|text| text.lines().any(|line| line == r#"name = "systole""#))
}

/// A text in quotes of TOML, which are those of JSON.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}
