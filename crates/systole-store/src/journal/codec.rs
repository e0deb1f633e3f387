//! Encoding of values in a batch: numbers as LEB128 (<https://dwarfstd.org/doc/DWARF5.pdf>, section 7.6), texts and lists
//! behind their length, each variant behind its tag. Decoding checks every bound, so damaged bytes are refused.

use std::sync::Arc;

use bytes::Bytes;

/// A value that can be part of a batch.
pub(super) trait Coded: Sized {
    fn write(&self, out: &mut Vec<u8>);

    /// `None` if the bytes encode no such value.
    fn read(from: &mut Source<'_>) -> Option<Self>;
}

/// Bytes that are decoded from their begin.
pub(super) struct Source<'a> {
    bytes: &'a Bytes,
    at: usize,
}

impl<'a> Source<'a> {
    pub(super) fn new(bytes: &'a Bytes) -> Self {
        Self { bytes, at: 0 }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.at == self.bytes.len()
    }

    pub(super) fn byte(&mut self) -> Option<u8> {
        let byte = self.bytes.get(self.at).copied()?;
        self.at += 1;
        Some(byte)
    }

    fn raw(&mut self, len: usize) -> Option<&'a [u8]> {
        let end = self.at.checked_add(len)?;
        let raw = self.bytes.get(self.at..end)?;
        self.at = end;
        Some(raw)
    }

    /// Bytes behind their length.
    fn sized(&mut self) -> Option<&'a [u8]> {
        let len = usize::try_from(u64::read(self)?).ok()?;
        self.raw(len)
    }

    pub(super) fn text(&mut self) -> Option<&'a str> {
        std::str::from_utf8(self.sized()?).ok()
    }
}

pub(super) fn write_text(text: &str, out: &mut Vec<u8>) {
    write_sized(text.as_bytes(), out);
}

fn write_sized(bytes: &[u8], out: &mut Vec<u8>) {
    (bytes.len() as u64).write(out);
    out.extend_from_slice(bytes);
}

impl Coded for u64 {
    fn write(&self, out: &mut Vec<u8>) {
        let mut rest = *self;
        while rest >= 0x80 {
            out.push(rest as u8 | 0x80);
            rest >>= 7;
        }
        out.push(rest as u8);
    }

    fn read(from: &mut Source<'_>) -> Option<Self> {
        let mut number = 0;
        for shift in (0..Self::BITS).step_by(7) {
            let byte = from.byte()?;
            let bits = Self::from(byte & 0x7f);
            if bits << shift >> shift != bits {
                return None;
            }
            number |= bits << shift;
            if byte < 0x80 {
                return Some(number);
            }
        }
        None
    }
}

macro_rules! small {
    ($($type:ty)+) => {
        $(impl Coded for $type {
            fn write(&self, out: &mut Vec<u8>) {
                u64::from(*self).write(out);
            }

            fn read(from: &mut Source<'_>) -> Option<Self> {
                u64::read(from)?.try_into().ok()
            }
        })+
    };
}
small! { u8 u16 u32 }

impl Coded for bool {
    fn write(&self, out: &mut Vec<u8>) {
        out.push(u8::from(*self));
    }

    fn read(from: &mut Source<'_>) -> Option<Self> {
        match from.byte()? {
            0 => Some(false),
            1 => Some(true),
            _ => None,
        }
    }
}

impl<const LEN: usize> Coded for [u8; LEN] {
    fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self);
    }

    fn read(from: &mut Source<'_>) -> Option<Self> {
        from.raw(LEN)?.try_into().ok()
    }
}

impl Coded for Bytes {
    fn write(&self, out: &mut Vec<u8>) {
        write_sized(self, out);
    }

    /// Shares the memory of the batch.
    fn read(from: &mut Source<'_>) -> Option<Self> {
        let bytes = from.sized()?;
        Some(from.bytes.slice_ref(bytes))
    }
}

impl Coded for String {
    fn write(&self, out: &mut Vec<u8>) {
        write_text(self, out);
    }

    fn read(from: &mut Source<'_>) -> Option<Self> {
        from.text().map(str::to_owned)
    }
}

impl Coded for Arc<str> {
    fn write(&self, out: &mut Vec<u8>) {
        write_text(self, out);
    }

    fn read(from: &mut Source<'_>) -> Option<Self> {
        from.text().map(Into::into)
    }
}

impl<T: Coded> Coded for Option<T> {
    fn write(&self, out: &mut Vec<u8>) {
        self.is_some().write(out);
        self.iter().for_each(|value| value.write(out));
    }

    fn read(from: &mut Source<'_>) -> Option<Self> {
        match bool::read(from)? {
            true => T::read(from).map(Some),
            false => Some(None),
        }
    }
}

impl<T: Coded, E: Coded> Coded for Result<T, E> {
    fn write(&self, out: &mut Vec<u8>) {
        self.is_ok().write(out);
        match self {
            Ok(value) => value.write(out),
            Err(error) => error.write(out),
        }
    }

    fn read(from: &mut Source<'_>) -> Option<Self> {
        match bool::read(from)? {
            true => T::read(from).map(Ok),
            false => E::read(from).map(Err),
        }
    }
}

impl<T: Coded> Coded for Vec<T> {
    fn write(&self, out: &mut Vec<u8>) {
        (self.len() as u64).write(out);
        self.iter().for_each(|value| value.write(out));
    }

    fn read(from: &mut Source<'_>) -> Option<Self> {
        // No more memory than the bytes account for is taken before the values are there.
        (0..u64::read(from)?).map(|_| T::read(from)).collect()
    }
}

impl<T: Coded> Coded for Box<T> {
    fn write(&self, out: &mut Vec<u8>) {
        (**self).write(out);
    }

    fn read(from: &mut Source<'_>) -> Option<Self> {
        T::read(from).map(Self::new)
    }
}

impl<A: Coded, B: Coded> Coded for (A, B) {
    fn write(&self, out: &mut Vec<u8>) {
        self.0.write(out);
        self.1.write(out);
    }

    fn read(from: &mut Source<'_>) -> Option<Self> {
        Some((A::read(from)?, B::read(from)?))
    }
}
