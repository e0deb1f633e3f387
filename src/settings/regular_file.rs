//! Files that settings name, read without a wait and without an end that never comes.

use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::Path;

use rustix::fs::OFlags;
use rustix::io::Errno;

/// Opens a regular file for reading, which can be read more than once. Nothing is read of a device, and no writer of a FIFO is
/// waited for.
///
/// # Errors
/// The error of the system, or which kind of file it is.
pub fn open_regular(path: &Path) -> io::Result<File> {
    let without_wait = OFlags::NONBLOCK.bits().cast_signed();
    let file = File::options().read(true).custom_flags(without_wait).open(path)?;
    let kind = file.metadata()?.file_type();
    let other = match kind {
        kind if kind.is_file() => None,
        kind if kind.is_dir() => return Err(Errno::ISDIR.into()),
        kind if kind.is_fifo() => Some("a FIFO"),
        kind if kind.is_socket() => Some("a socket"),
        _ => Some("a device"),
    };
    if let Some(other) = other {
        let why = format!("it is {other}: only a regular file is read, so copy the text into one");
        return Err(io::Error::new(ErrorKind::InvalidInput, why));
    }
    Ok(file)
}

/// Reads a regular file of at most `most` bytes. Nothing is read of a device, and no writer of a FIFO is waited for.
///
/// # Errors
/// The error of the system, or which kind of file it is, or that it is larger.
pub fn read_regular(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let file = open_regular(path)?;
    let mut bytes = Vec::new();
    file.take(most.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most {
        return Err(io::Error::new(ErrorKind::FileTooLarge, format!("it has more than {most} bytes")));
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use rustix::fs::{CWD, FileType, Mode, mknodat};

    use super::*;

    #[test]
    fn devices_and_fifos_are_refused_at_once_and_large_files_at_their_bound() {
        let folder = std::env::temp_dir().join(format!("systole-test-{}-files", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let (fifo, file) = (folder.join("fifo"), folder.join("file"));
        mknodat(CWD, &fifo, FileType::Fifo, Mode::RUSR, 0).unwrap();
        fs::write(&file, "12345").unwrap();
        let why = |path: &Path, most| read_regular(path, most).unwrap_err().to_string();
        assert!(why(&fifo, 5).starts_with("it is a FIFO: "));
        assert!(why(Path::new("/dev/zero"), 5).starts_with("it is a device: "));
        assert_eq!(read_regular(&folder, 5).unwrap_err().kind(), ErrorKind::IsADirectory);
        assert_eq!(read_regular(&file, 5).unwrap(), b"12345");
        assert_eq!(why(&file, 4), "it has more than 4 bytes");
        fs::remove_dir_all(&folder).unwrap();
    }
}
