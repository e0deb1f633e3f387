//! Base64 (RFC 4648), in the standard alphabet with padding and in the one for URLs without.

/// An alphabet of base64, and whether the last group is padded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Base64 {
    /// The standard alphabet, with padding (section 4): for XML.
    Standard,
    /// The alphabet for URLs, without padding (section 5): for JSON Web Keys.
    Url,
}

const STANDARD: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
const URL: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

impl Base64 {
    /// Writes bytes, without white space.
    pub fn encode(self, bytes: &[u8]) -> String {
        let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
        for group in bytes.chunks(3) {
            let word = group.iter().fold(0, |word, &byte| word << 8 | u32::from(byte)) << (8 * (3 - group.len()));
            let digits = [18, 12, 6, 0].map(|shift| char::from(self.alphabet()[(word >> shift & 63) as usize]));
            text.extend(&digits[..=group.len()]);
            if self == Self::Standard {
                text.extend(std::iter::repeat_n('=', 3 - group.len()));
            }
        }
        text
    }

    /// Reads bytes back; `None` for a text that [`encode`](Self::encode) doesn't write.
    pub fn decode(self, text: &str) -> Option<Vec<u8>> {
        let mut bytes = Vec::with_capacity(text.len() / 4 * 3 + 2);
        for group in text.trim_end_matches('=').as_bytes().chunks(4) {
            let mut word = 0;
            for digit in group {
                word = word << 6 | self.alphabet().iter().position(|known| known == digit)? as u32;
            }
            let whole = group.len() * 6 / 8;
            let word = (word << (6 * (4 - group.len()))).to_be_bytes();
            bytes.extend_from_slice(&word[1..=whole]);
        }
        // One spelling of each sequence of bytes: neither unused bits nor other padding.
        (self.encode(&bytes) == text).then_some(bytes)
    }

    fn alphabet(self) -> &'static [u8; 64] {
        match self {
            Self::Standard => STANDARD,
            Self::Url => URL,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_examples_of_the_standard_are_written_and_read() {
        for (bytes, text) in
            [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foob", "Zm9vYg=="), ("fooba", "Zm9vYmE=")]
        {
            assert_eq!(Base64::Standard.encode(bytes.as_bytes()), text);
            assert_eq!(Base64::Standard.decode(text).as_deref(), Some(bytes.as_bytes()));
            assert_eq!(Base64::Url.encode(bytes.as_bytes()), text.trim_end_matches('='));
        }
        assert_eq!(
            (Base64::Standard.encode(&[0xfb, 0xff]), Base64::Url.encode(&[0xfb, 0xff])),
            ("+/8=".into(), "-_8".into())
        );
    }

    #[test]
    fn other_spellings_are_refused() {
        for bad in ["Zg", "Zg=", "Zg===", "Zh==", "Z", "=", "Zm9v=", "Zm 9v", "Zm9-", "Zm9vé", "Zg==Zg=="] {
            assert_eq!(Base64::Standard.decode(bad), None, "{bad}");
        }
        for bad in ["Zg==", "Zh", "Z", "Zm+v"] {
            assert_eq!(Base64::Url.decode(bad), None, "{bad}");
        }
    }

    proptest! {
        #[test]
        fn bytes_come_back(bytes: Vec<u8>) {
            for form in [Base64::Standard, Base64::Url] {
                prop_assert_eq!(form.decode(&form.encode(&bytes)), Some(bytes.clone()));
            }
        }
    }
}
