//! The real path of a file, once it is known that a journal can be there.

use std::fs::{self, FileType, Metadata};
use std::io::ErrorKind;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use super::problem::FileProblem;

/// Returns the path of a companion file with that ending.
pub(crate) fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(ending);
    name.into()
}

/// Resolves the symbolic links in the path of a file that exists or can be created. SQLite finds the log of a file
/// beside the resolved path, too.
///
/// # Errors
/// [`FileProblem::NoFile`] if something other than a file is there, [`FileProblem::Dangling`] for a link without a
/// target, and [`FileProblem::Linked`] for a file with other names: the log is beside one name alone.
pub(crate) fn place(path: &Path) -> Result<PathBuf, FileProblem> {
    match fs::canonicalize(path) {
        Ok(real) => {
            judge(&fs::metadata(&real)?)?;
            Ok(real)
        }
        Err(error) if error.kind() == ErrorKind::NotFound => absent(path),
        Err(error) => Err(error.into()),
    }
}

/// Refuses anything but a file with one name.
pub(super) fn judge(found: &Metadata) -> Result<(), FileProblem> {
    if !found.is_file() {
        return Err(FileProblem::NoFile { what: kind(found.file_type()) });
    }
    match found.nlink() {
        0 | 1 => Ok(()),
        links => Err(FileProblem::Linked { links }),
    }
}

fn absent(path: &Path) -> Result<PathBuf, FileProblem> {
    if let Ok(target) = fs::read_link(path) {
        return Err(FileProblem::Dangling { target });
    }
    let name = path.file_name().ok_or(FileProblem::NoFile { what: "a folder" })?;
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
