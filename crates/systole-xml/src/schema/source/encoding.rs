//! The encoding of a schema document.

use encoding_rs::{Encoding, UTF_16BE, UTF_16LE};

/// The text of a schema document in UTF-8, or in the encoding that its byte order mark or its XML declaration names, which then
/// names UTF-8 instead. `None` if its bytes are no characters of that encoding, or the encoding is unknown.
pub fn decoded(bytes: &[u8]) -> Option<String> {
    // The start of UTF-16 without a mark may be UTF-8 as well, but no document.
    let wide = match bytes {
        [b'<', 0, ..] => Some((UTF_16LE, 0)),
        [0, b'<', ..] => Some((UTF_16BE, 0)),
        _ => Encoding::for_bom(bytes),
    };
    let (encoding, mark) = match (wide, std::str::from_utf8(bytes)) {
        (None, Ok(text)) => return Some(text.to_owned()),
        (Some(found), _) => found,
        (None, Err(_)) => (named(bytes)?, 0),
    };
    let text = encoding.decode_without_bom_handling_and_without_replacement(&bytes[mark..])?;
    Some(match declared(&text) {
        Some(label) => text.replacen(label, "UTF-8", 1),
        None => text.into_owned(),
    })
}

/// The encoding that the XML declaration of bytes names.
fn named(bytes: &[u8]) -> Option<&'static Encoding> {
    let end = memchr::memmem::find(bytes, b"?>")? + b"?>".len();
    Encoding::for_label(declared(std::str::from_utf8(&bytes[..end]).ok()?)?.as_bytes())
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
        let meant = Some(text("UTF-8"));
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
        assert_eq!(decoded(&bare), None, "no encoding is named");
        assert_eq!(decoded(&[&b"<?xml version='1.0' encoding='UTF-8'?>"[..], &bare].concat()), None);
        assert_eq!(decoded(&[&b"<?xml version='1.0' encoding='x-none'?>"[..], &bare].concat()), None);
    }
}
