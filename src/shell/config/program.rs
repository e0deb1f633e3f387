//! Finds the program of a command listener.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

const SCRIPTS: [&str; 7] = ["py", "sh", "js", "mjs", "ts", "rb", "pl"];

/// The program of a command: relative to `directory` if it has a `/`, else the first on `PATH`.
pub(super) fn find(program: &str, directory: &Path) -> Option<PathBuf> {
    if program.contains('/') {
        return Some(directory.join(program)).filter(|path| is_executable(path));
    }
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path)
        .filter(|entry| entry.is_absolute())
        .map(|entry| entry.join(program))
        .find(|path| is_executable(path))
}

/// Whether an argument looks like a script that the program is to run, but isn't there.
pub(super) fn is_missing_script(argument: &str, directory: &Path) -> bool {
    let extension = Path::new(argument).extension().and_then(|extension| extension.to_str());
    !argument.starts_with('-')
        && extension.is_some_and(|extension| SCRIPTS.contains(&extension))
        && !directory.join(argument).exists()
}

fn is_executable(path: &Path) -> bool {
    path.metadata().is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}
