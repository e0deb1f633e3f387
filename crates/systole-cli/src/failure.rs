//! Failures of commands, and their exit codes.

use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use super::{print, report};
use systole::config::ConfigFinding;
use systole::journal::JournalError;
use systole::operations::LookError;
use systole::process::descriptors;
use systole::runtime::Breakdown;
use systole_core::journal::JournalErrorKind;

/// Exit code of a command that a signal stopped, or a second one, as of SIGINT.
pub(super) const INTERRUPTED: u8 = 130;
/// Exit code for an organism that could not go on.
const BROKEN: u8 = 3;

/// Reason why a command failed.
#[derive(Debug, thiserror::Error)]
pub(super) enum Failure {
    #[error("can't read {}: {cause}", .file.display())]
    Read { file: PathBuf, cause: io::Error },
    #[error("can't write to standard output: {0}")]
    Write(#[from] io::Error),
    #[error("the operating system refuses a resource that the program needs: {0}")]
    System(io::Error),
    #[error("{} problems in the configuration", .0.len())]
    Config(Vec<ConfigFinding>),
    #[error("{}: {}", .0, remedy(.0))]
    Broken(Breakdown),
    #[error("{message}")]
    Refused { code: u8, message: String },
}

/// The fate of the work that was acknowledged.
fn remedy(breakdown: &Breakdown) -> &'static str {
    match breakdown {
        Breakdown::Journal(error) if error.kind() == JournalErrorKind::Moved => {
            "acknowledged work is in the moved files; if they were deleted or truncated, it is lost"
        }
        _ => "acknowledged work is in the journal, and goes on with the next start",
    }
}

impl Failure {
    /// Makes a failure whose answer is no.
    pub(super) fn no(message: impl Into<String>) -> Self {
        Self::Refused { code: 1, message: message.into() }
    }

    /// Makes a failure of a command that could not be carried out.
    pub(super) fn unusable(message: impl Into<String>) -> Self {
        Self::Refused { code: 2, message: message.into() }
    }

    /// Makes a failure of a journal that is damaged, or can't be used.
    /// A look that shows nothing.
    pub(super) fn look(error: LookError) -> Self {
        match error {
            LookError::Store(error) => Self::store(error),
            error => Self::no(error.to_string()),
        }
    }

    pub(super) fn store(error: JournalError) -> Self {
        match error.kind() {
            JournalErrorKind::Damaged => Self::no(error.to_string()),
            _ => Self::unusable(error.to_string()),
        }
    }

    pub(super) fn read(file: &Path, cause: io::Error) -> Self {
        Self::Read { file: file.to_owned(), cause }
    }

    /// Prints the failure on standard error; returns the exit code.
    pub(super) fn exit(self) -> ExitCode {
        match &self {
            // Like a program that SIGPIPE ends: the process that closed the pipe knows why.
            Self::Write(error) if error.kind() == io::ErrorKind::BrokenPipe => return ExitCode::from(141),
            Self::Config(findings) => report::print(findings),
            Self::Read { .. } | Self::Write(_) | Self::System(_) | Self::Broken(_) | Self::Refused { .. } => {
                print::note(&self);
                // Not every error names it, such as that of a journal which can't be opened.
                if let Some(most) = descriptors::too_few() {
                    print::note(format!(
                        "this process may open {most} files at once (ulimit -n), and an organism needs more: raise the limit to 256 or more"
                    ));
                }
            }
        }
        match self {
            Self::Refused { code, .. } => ExitCode::from(code),
            Self::Broken(_) => ExitCode::from(BROKEN),
            Self::Read { .. } | Self::Write(_) | Self::System(_) | Self::Config(_) => ExitCode::from(2),
        }
    }
}
