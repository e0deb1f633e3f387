//! `systole completions` and `systole man`: made from the arguments of the program itself.

use std::fs;
use std::path::Path;
use std::process::ExitCode;

use clap::{Command, CommandFactory};
use clap_complete::Shell;
use clap_mangen::Man;

use super::Cli;
use super::failure::Failure;
use super::print;

/// Prints the script with which a shell completes the arguments.
pub(super) fn completions(shell: Shell) -> Result<ExitCode, Failure> {
    let all = Cli::command();
    // The script for bash would offer hidden commands, too.
    let shown = all.get_subcommands().filter(|command| !command.is_hide_set()).cloned();
    let mut command = Command::new("systole").version(env!("CARGO_PKG_VERSION")).subcommands(shown);
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut command, "systole", &mut script);
    print::document(&script)?;
    Ok(ExitCode::SUCCESS)
}

/// Prints the manual page, or writes it and those of all commands into a folder.
pub(super) fn man(into: Option<&Path>) -> Result<ExitCode, Failure> {
    match into {
        Some(folder) => {
            let failed = |error| Failure::unusable(format!("can't write into {}: {error}", folder.display()));
            let written = fs::create_dir_all(folder).and_then(|()| clap_mangen::generate_to(Cli::command(), folder));
            written.map_err(failed)?;
        }
        None => {
            let mut page = Vec::new();
            Man::new(Cli::command()).render(&mut page)?;
            print::document(&page)?;
        }
    }
    Ok(ExitCode::SUCCESS)
}
