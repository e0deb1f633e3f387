//! The real path of a file, once it is known that a journal can be there.

use std::fs::{self, FileType, Metadata};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use rustix::fs::{Access, StatVfsMountFlags, access, statvfs};

use super::problem::FileProblem;

/// Returns the path of a companion file with that ending.
pub(crate) fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(ending);
    name.into()
}

/// Endings of the files that are made beside a file, and those of a new file, which are made before it has its name.
const COMPANIONS: [&str; 3] = ["-wal", "-shm", "-journal"];
const NEW: [&str; 4] = ["-new", "-new-wal", "-new-shm", "-new-journal"];

/// Checks whether a file, of that real path, and its companions can be written, as far as can be seen without a write.
///
/// # Errors
/// [`FileProblem::InTheWay`], [`FileProblem::ReadOnlyMount`] or [`FileProblem::ReadOnly`].
pub(crate) fn writable(file: &Path) -> Result<(), FileProblem> {
    let found = fs::metadata(file).ok();
    let is_new = found.as_ref().is_none_or(|found| found.len() == 0);
    let endings = COMPANIONS.iter().chain(NEW.iter().filter(|_| is_new));
    if let Some(path) = endings.map(|ending| beside(file, ending)).find(|path| path.is_dir()) {
        return Err(FileProblem::InTheWay { path });
    }
    let places = file.parent().into_iter().chain(found.is_some().then_some(file));
    for place in places {
        if is_mounted_read_only(place)? {
            return Err(FileProblem::ReadOnlyMount);
        }
        access(place, Access::WRITE_OK).map_err(|_| FileProblem::ReadOnly)?;
    }
    Ok(())
}

/// Returns whether the file system of a file or folder takes no writes.
pub(super) fn is_mounted_read_only(path: &Path) -> io::Result<bool> {
    Ok(statvfs(path)?.f_flag.contains(StatVfsMountFlags::RDONLY))
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
