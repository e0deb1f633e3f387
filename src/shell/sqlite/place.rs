//! The real path of a file of ours, once it is known that a journal can be there.

use std::fs::{self, FileType, Metadata};
use std::io::ErrorKind;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use super::problem::Problem;

/// The name of a file that belongs to a file of ours.
pub(crate) fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(ending);
    name.into()
}

/// The path without symbolic links of a file that is there, or that could be made. SQLite finds the log of a file
/// beside that path, too.
///
/// # Errors
/// [`Problem::NoFile`] if something else than a file is there, [`Problem::Dangling`] for a link that leads nowhere, and
/// [`Problem::Linked`] for a file that has another name: the log stands beside one name alone.
pub(crate) fn place(path: &Path) -> Result<PathBuf, Problem> {
    match fs::canonicalize(path) {
        Ok(real) => {
            judge(&fs::metadata(&real)?)?;
            Ok(real)
        }
        Err(error) if error.kind() == ErrorKind::NotFound => absent(path),
        Err(error) => Err(error.into()),
    }
}

/// Refuses what no file of ours can be.
pub(super) fn judge(found: &Metadata) -> Result<(), Problem> {
    if !found.is_file() {
        return Err(Problem::NoFile { what: kind(found.file_type()) });
    }
    match found.nlink() {
        0 | 1 => Ok(()),
        links => Err(Problem::Linked { links }),
    }
}

fn absent(path: &Path) -> Result<PathBuf, Problem> {
    if let Ok(target) = fs::read_link(path) {
        return Err(Problem::Dangling { target });
    }
    let name = path.file_name().ok_or(Problem::NoFile { what: "a folder" })?;
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    Ok(fs::canonicalize(folder)?.join(name))
}

fn kind(found: FileType) -> &'static str {
    if found.is_dir() {
        "a folder"
    } else if found.is_fifo() {
        "a FIFO"
    } else if found.is_socket() {
        "a socket"
    } else {
        "a device"
    }
}
