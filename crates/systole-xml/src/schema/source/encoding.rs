//! The encoding of a schema document.

use encoding_rs::{DecoderResult, Encoding, UTF_8, UTF_16BE, UTF_16LE};

use crate::ladder::chars::excerpt;
use crate::ladder::repair::names_ascii;
use crate::vocab::Position;

/// The reason why the bytes of a schema document are no text.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EncodingError {
    /// Bytes that are no characters of their encoding.
    #[error("{at}: these bytes are no {encoding}: save the file as UTF-8, or name its encoding in the XML declaration")]
    NoCharacters {
        /// The first of the bytes.
        at: Position,
        /// The encoding that the document names, or UTF-8.
        encoding: Box<str>,
    },
    /// An unknown encoding.
    #[error("{at}: the encoding '{label}' of the XML declaration is unknown: save the file as UTF-8")]
    Unknown {
        /// Place of the name.
        at: Position,
        /// The name.
        label: Box<str>,
    },
    /// UTF-16 by its declaration, in bytes that are none.
    #[error("{at}: the XML declaration names {label}, but the file is UTF-8: name UTF-8 there")]
    NotWide {
        /// Place of the name.
        at: Position,
        /// The name.
        label: Box<str>,
    },
}

/// The text of a schema document in UTF-8, or in the encoding that its byte order mark or its XML declaration names, which then
/// names UTF-8 instead.
///
/// # Errors
/// [`EncodingError`] if its bytes are no characters of that encoding, or the encoding is unknown.
pub fn decoded(bytes: &[u8]) -> Result<String, EncodingError> {
    // The start of UTF-16 without a mark may be UTF-8 as well, but no document.
    let wide = match bytes {
        [b'<', 0, ..] => Some((UTF_16LE, 0)),
        [0, b'<', ..] => Some((UTF_16BE, 0)),
        _ => Encoding::for_bom(bytes),
    };
    let (encoding, mark) = match (wide, std::str::from_utf8(bytes)) {
        (None, Ok(text)) => return narrow(text),
        (Some(found), _) => found,
        (None, Err(_)) => (named(bytes)?, 0),
    };
    let text = decode(encoding, bytes, mark)?;
    Ok(match declared(&text) {
        Some(label) => text.replacen(label, "UTF-8", 1),
        None => text,
    })
}

/// A text in UTF-8, which no declaration may call UTF-16. Other encodings are often named for text that is UTF-8 in fact.
fn narrow(text: &str) -> Result<String, EncodingError> {
    match declared(text) {
        Some(label) if label.get(..6).is_some_and(|start| start.eq_ignore_ascii_case("UTF-16")) => {
            let at = Position::of(text.as_bytes(), text.find(label).unwrap_or_default());
            Err(EncodingError::NotWide { at, label: excerpt(label) })
        }
        _ => Ok(text.to_owned()),
    }
}

/// The characters of bytes behind their mark.
fn decode(encoding: &'static Encoding, bytes: &[u8], mark: usize) -> Result<String, EncodingError> {
    let mut decoder = encoding.new_decoder_without_bom_handling();
    let most = decoder.max_utf8_buffer_length_without_replacement(bytes.len() - mark);
    let mut text = String::with_capacity(most.unwrap_or(bytes.len()));
    match decoder.decode_to_string_without_replacement(&bytes[mark..], &mut text, true) {
        (DecoderResult::InputEmpty, _) => Ok(text),
        _ => {
            let at = Position::of(text.as_bytes(), text.len());
            Err(EncodingError::NoCharacters { at, encoding: encoding.name().into() })
        }
    }
}

/// The encoding that the XML declaration of bytes names; UTF-8 if it names none.
fn named(bytes: &[u8]) -> Result<&'static Encoding, EncodingError> {
    let end = memchr::memmem::find(bytes, b"?>").map_or(0, |end| end + b"?>".len());
    let declaration = std::str::from_utf8(&bytes[..end]).unwrap_or_default();
    let Some(label) = declared(declaration) else { return Ok(UTF_8) };
    let unknown = || {
        let at = Position::of(bytes, declaration.find(label).unwrap_or_default());
        EncodingError::Unknown { at, label: excerpt(label) }
    };
    // The Encoding standard reads ASCII as windows-1252, but bytes that are no UTF-8 are in no encoding of that name.
    if names_ascii(label) { Ok(UTF_8) } else { Encoding::for_label(label.as_bytes()).ok_or_else(unknown) }
}

/// The name of the encoding in an XML declaration.
fn declared(text: &str) -> Option<&str> {
    let declaration = text.strip_prefix("<?xml")?.split_once("?>")?.0;
    let rest = declaration.split_once("encoding")?.1.trim_start().strip_prefix('=')?.trim_start();
    let quote = rest.chars().next().filter(|quote| matches!(quote, '"' | '\''))?;
    Some(rest[1..].split_once(quote)?.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documents_are_read_in_the_encoding_that_they_name() {
        let text = |label: &str| format!("<?xml version=\"1.0\" encoding='{label}'?>\n<a>Gr\u{fc}\u{df}e</a>");
        let meant = Ok(text("UTF-8"));
        let latin: Vec<u8> = text("ISO-8859-1").chars().map(|c| c as u8).collect();
        assert_eq!(decoded(&latin), meant);
        assert_eq!(decoded(text("UTF-8").as_bytes()), meant);
        let units: Vec<u16> = text("UTF-16").encode_utf16().collect();
        for mark in [&[][..], &[0xFEFF]] {
            let wide = || mark.iter().chain(&units);
            assert_eq!(decoded(&wide().flat_map(|unit| unit.to_le_bytes()).collect::<Vec<u8>>()), meant);
            assert_eq!(decoded(&wide().flat_map(|unit| unit.to_be_bytes()).collect::<Vec<u8>>()), meant);
        }
        let bare: Vec<u8> = b"<a>Gr\xFC\xDFe</a>".to_vec();
        let refused = |bytes: &[u8]| decoded(bytes).expect_err("no text").to_string();
        let said = refused(&bare);
        assert!(said.starts_with("1:6: these bytes are no UTF-8: "), "no encoding is named: {said}");
        let said = refused(&[&b"<?xml version='1.0' encoding='UTF-8'?>\n"[..], &bare].concat());
        assert!(said.starts_with("2:6: these bytes are no UTF-8: "), "{said}");
        let said = refused(&[&b"<?xml version='1.0' encoding='US-ASCII'?>\n"[..], &bare].concat());
        assert!(said.starts_with("2:6: these bytes are no UTF-8: "), "ASCII has no such bytes: {said}");
        let said = refused(&[&b"<?xml version='1.0' encoding='x-none'?>"[..], &bare].concat());
        assert!(said.starts_with("1:31: the encoding 'x-none' of"), "{said}");
        let said = refused(b"<?xml version='1.0' encoding='UTF-16'?><a/>");
        assert!(said.starts_with("1:31: the XML declaration names UTF-16, but the file is UTF-8"), "{said}");
    }
}
