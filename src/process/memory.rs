//! Sealed files in memory.

use std::fs::File;
use std::io::{self, BufWriter, Seek, Write};

use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, memfd_create};

/// Makes a sealed file in memory: no process can change it; reading starts at its first byte.
///
/// The file is complete before a process gets it, and has no name in any directory: however this process ends, a reader
/// sees all of it, and nothing is left behind when the last reader has ended.
pub(crate) fn sealed(name: &str, write: impl FnOnce(&mut BufWriter<&File>) -> io::Result<()>) -> io::Result<File> {
    let mut file = File::from(memfd_create(name, MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?);
    let mut out = BufWriter::new(&file);
    write(&mut out)?;
    out.flush()?;
    drop(out);
    file.rewind()?;
    fcntl_add_seals(&file, SealFlags::WRITE | SealFlags::GROW | SealFlags::SHRINK | SealFlags::SEAL)?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;

    #[test]
    fn a_sealed_file_is_whole_and_cannot_be_changed() {
        let mut file = sealed("test", |out| out.write_all(b"<a/>")).unwrap();
        let mut text = String::new();
        file.read_to_string(&mut text).unwrap();
        assert_eq!(text, "<a/>");
        assert!((&file).write_all(b"more").is_err(), "written after the seal");
        assert!(file.set_len(1).is_err(), "shortened after the seal");
    }
}
