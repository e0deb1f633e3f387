//! The `systole` program; everything in it is [`systole::cli`].

use std::process::ExitCode;

fn main() -> ExitCode {
    systole::cli::main()
}
