//! Files of an organism as text, which must be UTF-8.

use std::fmt;
use std::io::ErrorKind;
use std::path::Path;

use systole_core::vocab::Position;
use systole_xml::schema::{EncodingError, decoded};

use crate::settings::read_regular;

/// Reason why a file can't be read as text.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum TextError {
    /// The system refuses to read the file.
    Io {
        /// The kind of the error.
        kind: ErrorKind,
        /// The message of the error.
        message: String,
    },
    /// The file is no UTF-8.
    Encoding {
        /// The place of the first invalid byte.
        at: Position,
        /// The invalid byte.
        byte: u8,
        /// The encoding that the file probably has.
        looks: &'static str,
    },
    /// The schema file is UTF-8, but calls itself something else.
    Declared(EncodingError),
}

/// Bytes of a file.
const MOST: u64 = 64 << 20;

/// Reads a file.
pub(super) fn read(path: &Path) -> Result<String, TextError> {
    utf_8(bytes(path)?)
}

/// Reads a schema file, in UTF-8 or the encoding that it names.
pub(super) fn read_schema(path: &Path) -> Result<String, TextError> {
    let bytes = bytes(path)?;
    decoded(&bytes).or_else(|error| utf_8(bytes).and(Err(TextError::Declared(error))))
}

fn bytes(path: &Path) -> Result<Vec<u8>, TextError> {
    read_regular(path, MOST).map_err(|error| TextError::Io { kind: error.kind(), message: error.to_string() })
}

fn utf_8(bytes: Vec<u8>) -> Result<String, TextError> {
    String::from_utf8(bytes).map_err(|error| {
        let (valid, bytes) = (error.utf8_error().valid_up_to(), error.as_bytes());
        let looks = match bytes {
            [0xFE, 0xFF, ..] | [0xFF, 0xFE, ..] | [0, ..] | [_, 0, ..] => "UTF-16",
            _ => "Latin-1 or Windows-1252",
        };
        TextError::Encoding { at: Position::of(bytes, valid), byte: bytes[valid], looks }
    })
}

impl TextError {
    /// The remedy. A file that is `named` in another one is relative to that.
    pub(super) fn help(&self, named: bool) -> Option<&'static str> {
        match self {
            Self::Encoding { .. } => Some("save the file as UTF-8"),
            Self::Io { kind: ErrorKind::NotFound, .. } if named => Some("the path is relative to this file"),
            Self::Io { kind: ErrorKind::PermissionDenied, .. } => {
                Some("let the user who runs systole read it: chmod u+r, or chown")
            }
            Self::Io { kind: ErrorKind::IsADirectory, .. } => Some("name a file in that folder"),
            Self::Io { .. } | Self::Declared(_) => None,
        }
    }
}

impl fmt::Display for TextError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io { message, .. } => f.write_str(message),
            Self::Declared(error) => write!(f, "at {error}"),
            Self::Encoding { at, byte, looks } => {
                write!(f, "at {at} the byte 0x{byte:02X} is no UTF-8; the file looks like {looks}")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_that_are_no_utf8_have_a_place() {
        let file = std::env::temp_dir().join(format!("systole-test-{}-encoded.xsd", std::process::id()));
        for (bytes, expected) in [
            (
                &b"<a>\n  <b>K\xF6ln"[..],
                "at 2:7 the byte 0xF6 is no UTF-8; the file looks like Latin-1 or Windows-1252",
            ),
            (b"\xFF\xFE<\0a\0", "at 1:1 the byte 0xFF is no UTF-8; the file looks like UTF-16"),
        ] {
            std::fs::write(&file, bytes).unwrap();
            let why = read(&file).unwrap_err();
            assert_eq!((why.to_string().as_str(), why.help(true)), (expected, Some("save the file as UTF-8")));
        }
        std::fs::remove_file(&file).unwrap();
        assert_eq!(read(&file).unwrap_err().help(true), Some("the path is relative to this file"));
        assert_eq!(read(&std::env::temp_dir()).unwrap_err().help(true), Some("name a file in that folder"));
    }
}
