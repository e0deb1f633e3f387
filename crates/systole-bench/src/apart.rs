//! Measurements in a process of their own: memory that an earlier one left in the allocator would count for later ones.

use std::io;
use std::process::{Command, ExitCode, Stdio};

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::load::LoadError;

/// Runs this program with these arguments, and returns what [`print`] wrote there. `what` is measured.
///
/// # Errors
/// [`LoadError`] if the process fails.
pub(super) fn run<T: DeserializeOwned>(what: &'static str, arguments: &[&str]) -> Result<T, LoadError> {
    let run = || {
        let mut command = Command::new("/proc/self/exe");
        let output = command.args(arguments).stdin(Stdio::null()).stderr(Stdio::inherit()).output()?;
        if !output.status.success() {
            return Err(io::Error::other(output.status.to_string()));
        }
        Ok(serde_json::from_slice(&output.stdout)?)
    };
    run().map_err(|error| LoadError::Apart { what, error })
}

/// Prints figures for the process that asked for them.
pub(super) fn print<T: Serialize>(figures: Result<T, LoadError>) -> ExitCode {
    let figures = figures.map_err(|error| error.to_string());
    match figures.and_then(|figures| serde_json::to_string(&figures).map_err(|error| error.to_string())) {
        Ok(text) => {
            println!("{text}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}
