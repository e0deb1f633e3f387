//! Files that arguments name. A pipe may stand for one, but no file is read without end.

use std::fs::File;
use std::io::Read;
#[cfg(feature = "gateway")]
use std::io::Write;
use std::path::Path;
#[cfg(feature = "gateway")]
use std::path::PathBuf;

use super::failure::Failure;

/// Bytes of a document.
pub(super) const DOCUMENT: u64 = 64 << 20;
/// Bytes of a token.
#[cfg(feature = "gateway")]
pub(super) const TOKEN: u64 = 64 << 10;

/// Reads a file of at most `most` bytes.
pub(super) fn read(path: &Path, most: u64) -> Result<Vec<u8>, Failure> {
    let mut bytes = Vec::new();
    let read = File::open(path).and_then(|file| file.take(most + 1).read_to_end(&mut bytes));
    read.map_err(|cause| Failure::read(path, cause))?;
    if bytes.len() as u64 > most {
        return Err(Failure::unusable(format!("{}: a file of more than {most} bytes is not read", path.display())));
    }
    Ok(bytes)
}

/// Reads standard input, of at most `most` bytes.
pub(super) fn from_stdin(most: u64) -> Result<Vec<u8>, Failure> {
    let mut bytes = Vec::new();
    std::io::stdin().take(most + 1).read_to_end(&mut bytes).map_err(Failure::System)?;
    if bytes.len() as u64 > most {
        return Err(Failure::unusable(format!("standard input: more than {most} bytes are not read")));
    }
    Ok(bytes)
}

/// Writes a file, whole or not at all.
#[cfg(feature = "gateway")]
pub(super) fn replace(path: &Path, text: &str) -> Result<(), Failure> {
    let mut beside = path.as_os_str().to_owned();
    beside.push(".new");
    let beside = PathBuf::from(beside);
    let written = File::create(&beside).and_then(|mut file| {
        file.write_all(text.as_bytes())?;
        file.sync_all()
    });
    let written = written.and_then(|()| std::fs::rename(&beside, path));
    written.map_err(|cause| Failure::unusable(format!("can't write {}: {cause}", path.display())))
}

/// Reads a file of UTF-8 text of at most `most` bytes.
#[cfg(feature = "gateway")]
pub(super) fn text(path: &Path, most: u64) -> Result<String, Failure> {
    String::from_utf8(read(path, most)?).map_err(|error| {
        Failure::unusable(format!("{}: it is not a text in UTF-8: {}", path.display(), error.utf8_error()))
    })
}
