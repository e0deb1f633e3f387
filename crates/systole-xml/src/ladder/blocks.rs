//! Searches in blocks of 16 bytes: the first byte of a class, for the loops of the strict pass.
//!
//! On x86-64 a block is compared at once by instructions of SSE2, elsewhere by a table, byte by byte. This is the only
//! module of the crate with `unsafe` code.

use super::chars::{NAME, TEXT_STOP, VALUE_STOP, is};

/// Length of a block in bytes.
pub(super) const BLOCK: usize = 16;

/// The offset of the first stop of text; [`BLOCK`] if there is none.
#[inline]
pub(super) fn text_stop(block: &[u8; BLOCK]) -> usize {
    first(block, Class::TextStop)
}

/// The offset of the first stop of values; [`BLOCK`] if there is none.
#[inline]
pub(super) fn value_stop(block: &[u8; BLOCK]) -> usize {
    first(block, Class::ValueStop)
}

/// The offset of the first byte that is no ASCII character of an NCName; [`BLOCK`] if there is none.
#[inline]
pub(super) fn name_end(block: &[u8; BLOCK]) -> usize {
    first(block, Class::NameEnd)
}

/// Returns whether blocks have a control character other than white space, or the first byte of U+FFFE and U+FFFF.
#[inline]
pub(super) fn have_suspects(blocks: &[[u8; BLOCK]]) -> bool {
    any(blocks, Class::Suspect)
}

/// A class of bytes to search for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Class {
    TextStop,
    ValueStop,
    NameEnd,
    Suspect,
}

impl Class {
    /// The definition that all searches agree with.
    fn has(self, byte: u8) -> bool {
        match self {
            Self::TextStop => is(byte, TEXT_STOP),
            Self::ValueStop => is(byte, VALUE_STOP),
            Self::NameEnd => !is(byte, NAME),
            Self::Suspect => matches!(byte, 0..0x20 | 0xEF) && !matches!(byte, b'\t' | b'\n' | b'\r'),
        }
    }
}

/// Panics unless the searches agree with the definitions of their classes, in each block of the bytes.
pub(super) fn check(data: &[u8]) {
    for class in [Class::TextStop, Class::ValueStop, Class::NameEnd, Class::Suspect] {
        let mut rest = data;
        while let Some(block) = rest.first_chunk() {
            let expected = block.iter().position(|&byte| class.has(byte)).unwrap_or(BLOCK);
            assert_eq!(first(block, class), expected, "{class:?} in {block:?}");
            let (blocks, _) = rest.as_chunks();
            let is_there = blocks.as_flattened().iter().any(|&byte| class.has(byte));
            assert_eq!(any(blocks, class), is_there, "{class:?} in {blocks:?}");
            rest = &rest[1..];
        }
    }
}

#[cfg(not(target_arch = "x86_64"))]
#[inline]
fn any(blocks: &[[u8; BLOCK]], class: Class) -> bool {
    blocks.as_flattened().iter().any(|&byte| class.has(byte))
}

#[cfg(not(target_arch = "x86_64"))]
#[inline]
fn first(block: &[u8; BLOCK], class: Class) -> usize {
    block.iter().position(|&byte| class.has(byte)).unwrap_or(BLOCK)
}

#[cfg(target_arch = "x86_64")]
#[inline]
#[expect(unsafe_code, reason = "a call of a function with a target feature")]
fn any(blocks: &[[u8; BLOCK]], class: Class) -> bool {
    // SAFETY: as for `first`.
    unsafe { sse2::any(blocks, class) }
}

#[cfg(target_arch = "x86_64")]
#[inline]
#[expect(unsafe_code, reason = "a call of a function with a target feature")]
fn first(block: &[u8; BLOCK], class: Class) -> usize {
    // SAFETY: the function needs SSE2 and nothing else. All x86-64 processors have it, and the compiler assumes it for
    // this architecture.
    unsafe { sse2::first(block, class) }
}

#[cfg(target_arch = "x86_64")]
mod sse2 {
    use std::arch::x86_64::{
        __m128i, _mm_add_epi8, _mm_andnot_si128, _mm_cmpeq_epi8, _mm_min_epu8, _mm_movemask_epi8, _mm_or_si128,
        _mm_set_epi64x, _mm_set1_epi8, _mm_setzero_si128,
    };

    use super::{BLOCK, Class};

    #[inline]
    #[target_feature(enable = "sse2")]
    pub(super) fn first(block: &[u8; BLOCK], class: Class) -> usize {
        (_mm_movemask_epi8(find(block, class)) | 1 << BLOCK).trailing_zeros() as usize
    }

    #[inline]
    #[target_feature(enable = "sse2")]
    pub(super) fn any(blocks: &[[u8; BLOCK]], class: Class) -> bool {
        let mut found = _mm_setzero_si128();
        for block in blocks {
            found = _mm_or_si128(found, find(block, class));
        }
        _mm_movemask_epi8(found) != 0
    }

    /// Sets all bits of the bytes of a class, and none of the others.
    #[inline]
    #[target_feature(enable = "sse2")]
    fn find(block: &[u8; BLOCK], class: Class) -> __m128i {
        let bytes = load(block);
        match class {
            // `<` and `>` differ in one bit.
            Class::TextStop => {
                let markup = _mm_or_si128(equal(or(bytes, 0x02), b'>'), equal(bytes, b'&'));
                _mm_or_si128(markup, equal(bytes, b'\r'))
            }
            // So do `"` and `&`, a tab and a carriage return.
            Class::ValueStop => {
                let joined = or(bytes, 0x04);
                let quotes = _mm_or_si128(equal(joined, b'&'), equal(bytes, b'\''));
                let spaces = _mm_or_si128(equal(joined, b'\r'), equal(bytes, b'\n'));
                _mm_or_si128(_mm_or_si128(quotes, spaces), equal(bytes, b'<'))
            }
            Class::NameEnd => {
                // From `-` to `9` a slash is the only byte of no name.
                let others = _mm_andnot_si128(equal(bytes, b'/'), within(bytes, b'-', b'9'));
                let letters = within(or(bytes, 0x20), b'a', b'z');
                let names = _mm_or_si128(_mm_or_si128(letters, others), equal(bytes, b'_'));
                _mm_andnot_si128(names, _mm_set1_epi8(-1))
            }
            Class::Suspect => {
                let spaces = _mm_or_si128(equal(or(bytes, 0x04), b'\r'), equal(bytes, b'\n'));
                let controls = _mm_cmpeq_epi8(_mm_min_epu8(bytes, _mm_set1_epi8(0x1F)), bytes);
                _mm_or_si128(_mm_andnot_si128(spaces, controls), equal(bytes, 0xEF))
            }
        }
    }

    #[inline]
    #[target_feature(enable = "sse2")]
    fn load(block: &[u8; BLOCK]) -> __m128i {
        let bits = u128::from_le_bytes(*block);
        _mm_set_epi64x((bits >> 64) as i64, bits as i64)
    }

    #[inline]
    #[target_feature(enable = "sse2")]
    fn equal(bytes: __m128i, byte: u8) -> __m128i {
        _mm_cmpeq_epi8(bytes, _mm_set1_epi8(byte as i8))
    }

    #[inline]
    #[target_feature(enable = "sse2")]
    fn or(bytes: __m128i, bits: u8) -> __m128i {
        _mm_or_si128(bytes, _mm_set1_epi8(bits as i8))
    }

    /// Finds the bytes from `least` to `most`.
    #[inline]
    #[target_feature(enable = "sse2")]
    fn within(bytes: __m128i, least: u8, most: u8) -> __m128i {
        let above = _mm_add_epi8(bytes, _mm_set1_epi8(least.wrapping_neg() as i8));
        _mm_cmpeq_epi8(_mm_min_epu8(above, _mm_set1_epi8((most - least) as i8)), above)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_byte_is_found_at_each_place() {
        for byte in 0..=u8::MAX {
            for other in 0..=u8::MAX {
                let mut data = [other; 2 * BLOCK];
                data[BLOCK] = byte;
                check(&data);
            }
        }
    }

    proptest::proptest! {
        #[test]
        fn searches_agree_with_their_definitions(data in proptest::collection::vec(proptest::num::u8::ANY, 0..200)) {
            check(&data);
        }
    }
}
