//! A folder that is made whole, or not at all.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use super::template::File;
use crate::failure::Failure;

/// Makes a folder with these files. After an error nothing of them is left.
pub(super) fn make(folder: &str, files: &[File]) -> Result<(), Failure> {
    let folder = Path::new(folder);
    let mut made = Vec::new();
    let outcome = write(folder, files, &mut made);
    if outcome.is_err() {
        for path in made.iter().rev() {
            // What another program put into a folder meanwhile stays, and so does the folder.
            let _ = if path.is_dir() { fs::remove_dir(path) } else { fs::remove_file(path) };
        }
    }
    outcome
}

/// Writes the files, and notes what it made.
fn write(folder: &Path, files: &[File], made: &mut Vec<PathBuf>) -> Result<(), Failure> {
    match fs::create_dir(folder) {
        Ok(()) => made.push(folder.to_owned()),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => refuse_content(folder)?,
        Err(error) => return Err(failed(folder, &error)),
    }
    for (path, text) in files {
        let path = folder.join(path);
        let inner = path.parent().filter(|inner| !inner.exists());
        if let Some(inner) = inner {
            fs::create_dir(inner).map_err(|error| failed(inner, &error))?;
            made.push(inner.to_owned());
        }
        let file = OpenOptions::new().write(true).create_new(true).open(&path);
        let mut file = file.map_err(|error| failed(&path, &error))?;
        made.push(path.clone());
        file.write_all(text.as_bytes()).map_err(|error| failed(&path, &error))?;
    }
    Ok(())
}

/// Refuses whatever is there, unless it is an empty folder.
fn refuse_content(folder: &Path) -> Result<(), Failure> {
    let mut entries = fs::read_dir(folder).map_err(|error| failed(folder, &error))?;
    match entries.next() {
        None => Ok(()),
        Some(_) => Err(Failure::unusable(format!("{} exists and is not empty: name another folder", folder.display()))),
    }
}

fn failed(path: &Path, error: &io::Error) -> Failure {
    Failure::unusable(format!("can't make {}: {error}", path.display()))
}
