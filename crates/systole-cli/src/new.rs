//! `systole new`: a folder with an organism that runs.

mod dependency;
mod folder;
mod template;

use std::process::ExitCode;

use clap::{Args, Subcommand};
use systole_core::vocab::Name;

use super::failure::Failure;
use super::print;
use dependency::Dependency;
use template::Template;

#[derive(Debug, Subcommand)]
pub(super) enum New {
    /// A command in Python: a process for each message
    Hello(Named),
    /// A worker: functions in Python, in processes that stay
    Worker(Named),
    /// A worker with payloads as JSON, and contracts as JSON Schema
    Json(Named),
    /// A listener that a language model speaks for; a script plays the model, so that it runs offline
    #[cfg(feature = "gateway")]
    Model(Named),
    /// A program in Rust, with a listener and a client
    Rust {
        #[command(flatten)]
        named: Named,
        /// The library: the folder of a checkout, or the address of a repository; by default the checkout in this folder, or
        /// in the folder systole
        #[arg(long, value_name = "WHERE")]
        systole: Option<String>,
    },
    /// A remote listener with its agent, over HTTP
    #[cfg(feature = "gateway")]
    Remote(Named),
    /// A shop that MCP hosts use, and that uses an MCP server
    #[cfg(feature = "mcp")]
    Mcp(Named),
}

#[derive(Debug, Args)]
pub(super) struct Named {
    /// The name of the new folder and of the organism: letters and digits, and . _ - after the first character
    #[arg(value_parser = folder_name)]
    name: String,
}

/// Parses the name of a folder and of an organism.
fn folder_name(text: &str) -> Result<String, String> {
    let name = Name::parse(text).map_err(|error| error.to_string())?;
    if text.starts_with(['.', '-']) {
        return Err("a name begins with a letter, a digit or _".to_owned());
    }
    Ok(name.to_string())
}

/// Makes the folder, whole or not at all.
pub(super) fn new(kind: &New) -> Result<ExitCode, Failure> {
    let (template, named) = match kind {
        New::Hello(named) => (Template::Hello, named),
        New::Worker(named) => (Template::Worker, named),
        New::Json(named) => (Template::Json, named),
        #[cfg(feature = "gateway")]
        New::Model(named) => (Template::Model, named),
        New::Rust { named, .. } => (Template::Rust, named),
        #[cfg(feature = "gateway")]
        New::Remote(named) => (Template::Remote, named),
        #[cfg(feature = "mcp")]
        New::Mcp(named) => (Template::Mcp, named),
    };
    let mut files = template.files(&named.name);
    if let New::Rust { systole, .. } = kind {
        dependency::judge(&named.name)?;
        let dependency = Dependency::find(systole.as_deref())?;
        dependency.write_into(&mut files);
    }
    folder::make(&named.name, &files)?;
    print::note(format_args!("made {0}; from here:\n    cd {0}\n{1}", named.name, template::commands(&files)));
    Ok(ExitCode::SUCCESS)
}
