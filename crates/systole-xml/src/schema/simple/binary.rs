//! `hexBinary` (part 2, section 3.2.15) and `base64Binary` (section 3.2.16).

pub(super) fn is_hex(text: &str) -> bool {
    text.len().is_multiple_of(2) && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// Reports whether a literal with collapsed white space has whole groups, and zeros in the bits that belong to no
/// octet.
pub(super) fn is_base64(text: &str) -> bool {
    let alphabet = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/');
    let (mut last, mut data, mut padding) = (0, 0usize, 0usize);
    for byte in characters(text) {
        match byte {
            b'=' => padding += 1,
            _ if padding > 0 || !alphabet(byte) => return false,
            _ => (data, last) = (data + 1, byte),
        }
    }
    let zero_bits: &[u8] = match padding {
        0 => return data.is_multiple_of(4),
        1 => b"AEIMQUYcgkosw048",
        2 => b"AQgw",
        _ => return false,
    };
    (data + padding).is_multiple_of(4) && zero_bits.contains(&last)
}

/// The characters of a literal without the spaces that may separate them.
pub(super) fn characters(text: &str) -> impl Iterator<Item = u8> {
    text.bytes().filter(|&byte| byte != b' ')
}

/// The number of octets of a valid literal of `hexBinary`.
pub(super) fn hex_len(text: &str) -> usize {
    text.len() / 2
}

/// The number of octets of a valid literal of `base64Binary`.
pub(super) fn base64_len(text: &str) -> usize {
    characters(text).filter(|&byte| byte != b'=').count() * 3 / 4
}
