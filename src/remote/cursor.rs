//! The cursor of a mailbox, in memory and on disk: its file is whole, either the old one or the new one.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use super::error::RemoteError;

/// The longest cursor, in bytes: a file with more holds something else.
const MOST: usize = 4096;

/// The place of a reader.
#[derive(Debug)]
pub(super) struct Cursor {
    file: Option<PathBuf>,
    place: Option<String>,
}

impl Cursor {
    /// Makes a cursor that ends with the process: it begins with the oldest message.
    pub(super) fn in_memory() -> Self {
        Self { file: None, place: None }
    }

    /// Opens the cursor in a file; where the file is missing or empty, it begins with the oldest message.
    pub(super) fn open(file: &Path) -> Result<Self, RemoteError> {
        let place = read(file).map_err(|cause| RemoteError::Cursor { file: file.to_owned(), cause })?;
        Ok(Self { file: Some(file.to_owned()), place })
    }

    pub(super) fn place(&self) -> Option<&str> {
        self.place.as_deref()
    }

    /// Moves the cursor. In memory it has moved also if the file can't be written.
    pub(super) async fn move_to(&mut self, place: &str) -> Result<(), RemoteError> {
        self.place = Some(place.to_owned());
        let place = place.to_owned();
        self.on_disk(move |file| write(file, &place)).await
    }

    /// Clears the cursor, also on disk.
    pub(super) async fn clear(&mut self) -> Result<(), RemoteError> {
        self.place = None;
        self.on_disk(remove).await
    }

    async fn on_disk(&self, act: impl FnOnce(&Path) -> io::Result<()> + Send + 'static) -> Result<(), RemoteError> {
        let Some(file) = self.file.clone() else { return Ok(()) };
        let path = file.clone();
        let done = tokio::task::spawn_blocking(move || act(&path)).await.map_err(io::Error::other).flatten();
        done.map_err(|cause| RemoteError::Cursor { file, cause })
    }
}

fn read(file: &Path) -> io::Result<Option<String>> {
    let text = match fs::read_to_string(file) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        read => read?,
    };
    let place = text.trim();
    if place.len() > MOST || place.chars().any(|c| !c.is_ascii_graphic()) {
        return Err(io::Error::other("it holds no cursor: name another file, or delete this one"));
    }
    Ok(Some(place.to_owned()).filter(|place| !place.is_empty()))
}

/// Replaces the old file at once by the new one, which is on disk before.
fn write(file: &Path, place: &str) -> io::Result<()> {
    let new = beside(file);
    let mut out = File::create(&new)?;
    out.write_all(place.as_bytes())?;
    out.sync_all()?;
    fs::rename(&new, file)?;
    sync_folder(file)
}

fn remove(file: &Path) -> io::Result<()> {
    match fs::remove_file(file) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
        Ok(()) => sync_folder(file),
    }
}

fn beside(file: &Path) -> PathBuf {
    let mut name = file.as_os_str().to_owned();
    name.push(".new");
    name.into()
}

fn sync_folder(file: &Path) -> io::Result<()> {
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    File::open(folder)?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(name: &str) -> PathBuf {
        std::env::temp_dir().join(format!("systole-test-{}-cursor-{name}", std::process::id()))
    }

    #[tokio::test]
    async fn a_place_outlives_its_process_and_is_cleared_on_disk() {
        let file = file("kept");
        let mut cursor = Cursor::open(&file).unwrap();
        assert_eq!(cursor.place(), None);
        for place in ["one", "two"] {
            cursor.move_to(place).await.unwrap();
            assert_eq!(fs::read_to_string(&file).unwrap(), place);
            assert_eq!(Cursor::open(&file).unwrap().place(), Some(place));
        }
        assert!(!beside(&file).exists());
        // The remains of a crashed write are no cursor.
        fs::write(beside(&file), "thr").unwrap();
        assert_eq!(Cursor::open(&file).unwrap().place(), Some("two"));
        cursor.move_to("three").await.unwrap();
        cursor.clear().await.unwrap();
        assert!(!file.exists() && cursor.place().is_none());
        cursor.clear().await.unwrap();
    }

    #[test]
    fn a_file_of_something_else_is_refused_and_an_empty_one_is_none() {
        let file = file("strange");
        for strange in ["a b", "é", &"x".repeat(MOST + 1)] {
            fs::write(&file, strange).unwrap();
            let error = Cursor::open(&file).unwrap_err().to_string();
            assert!(error.contains("it holds no cursor") && error.contains("cursor-strange"), "{error}");
        }
        fs::write(&file, "\n").unwrap();
        assert_eq!(Cursor::open(&file).unwrap().place(), None);
        fs::write(&file, [0xff]).unwrap();
        assert!(Cursor::open(&file).is_err());
        fs::remove_file(&file).unwrap();
    }

    #[tokio::test]
    async fn it_moves_on_in_memory_where_the_disk_fails() {
        let mut cursor = Cursor::open(Path::new("/nonexistent/folder/cursor")).unwrap();
        assert!(matches!(cursor.move_to("one").await, Err(RemoteError::Cursor { .. })));
        assert_eq!(cursor.place(), Some("one"));
    }
}
