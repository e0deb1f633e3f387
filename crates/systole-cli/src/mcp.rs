//! `systole mcp`: the Model Context Protocol.

mod import;

use std::process::ExitCode;

use clap::Subcommand;

use super::failure::Failure;

#[derive(Debug, Subcommand)]
pub(super) enum Action {
    /// Connect to the MCP server of a listener; write the schemas of its tools, and the lock file that it is held to
    Import(import::Import),
}

pub(super) fn run(action: &Action) -> Result<ExitCode, Failure> {
    match action {
        Action::Import(args) => import::import(args),
    }
}
