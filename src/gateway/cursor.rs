//! Cursors of readers: places in a mailbox. A cursor is opaque, valid in that mailbox alone, and can't be forged.

use systole_core::vocab::Name;

/// Bytes of the seal.
const SEAL: usize = 16;

/// A place in a mailbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Place {
    /// Sequence number of the message before the place.
    pub(super) seq: u64,
    /// Sequence number up to which messages were forgotten when the cursor was made: the reader knows of that loss.
    pub(super) mark: u64,
    /// True for a reader that reads in order and has seen every message before the place.
    pub(super) order: bool,
}

impl Place {
    /// Checks whether a message behind the place was forgotten without the knowledge of its reader.
    pub(super) fn is_lost(self, pruned: u64) -> bool {
        pruned > self.seq.max(self.mark)
    }
}

/// Writes a place as a cursor.
pub(super) fn write(key: &[u8; 32], mailbox: &Name, place: Place) -> String {
    let Place { seq, mark, order } = place;
    let (order, seal) = (u8::from(order), u128::from_be_bytes(seal(key, mailbox, place)));
    format!("{order}{seq:016x}{mark:016x}{seal:032x}")
}

/// Reads a cursor; `None` if it was not made for that mailbox.
pub(super) fn read(key: &[u8; 32], mailbox: &Name, cursor: &str) -> Option<Place> {
    let number = |text: Option<&str>| u64::from_str_radix(text?, 16).ok();
    let order = match cursor.get(..1)? {
        "0" => false,
        "1" => true,
        _ => return None,
    };
    let place = Place { seq: number(cursor.get(1..17))?, mark: number(cursor.get(17..33))?, order };
    (write(key, mailbox, place) == cursor).then_some(place)
}

fn seal(key: &[u8; 32], mailbox: &Name, place: Place) -> [u8; SEAL] {
    let mut input = [place.seq.to_be_bytes(), place.mark.to_be_bytes()].concat();
    input.push(place.order.into());
    input.extend_from_slice(mailbox.as_str().as_bytes());
    let hash: [u8; 32] = blake3::keyed_hash(key, &input).into();
    hash[..SEAL].try_into().expect("half of 32 bytes is 16")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn name(text: &str) -> Name {
        Name::parse(text).unwrap()
    }

    proptest! {
        #[test]
        fn a_cursor_is_good_where_it_was_made(seq: u64, mark: u64, order: bool, key: [u8; 32]) {
            let place = Place { seq, mark, order };
            let cursor = write(&key, &name("ada"), place);
            prop_assert_eq!(read(&key, &name("ada"), &cursor), Some(place));
            prop_assert_eq!(read(&key, &name("bob"), &cursor), None);
            prop_assert_eq!(read(&[0; 32], &name("ada"), &cursor), None);
        }

        #[test]
        fn anything_else_is_none(text in "\\PC{0,70}", at in 0..65usize) {
            prop_assert_eq!(read(&[1; 32], &name("ada"), &text), None);
            let mut cursor = write(&[1; 32], &name("ada"), Place { seq: 7, mark: 3, order: true }).into_bytes();
            cursor[at] = if cursor[at] == b'0' { b'1' } else { b'0' };
            prop_assert_eq!(read(&[1; 32], &name("ada"), std::str::from_utf8(&cursor).unwrap()), None);
        }
    }

    #[test]
    fn a_place_is_lost_once_something_behind_it_is_forgotten_that_its_reader_did_not_know_of() {
        let place = Place { seq: 5, mark: 10, order: false };
        assert!(!place.is_lost(10));
        assert!(place.is_lost(11));
        assert!(!Place { seq: 12, mark: 10, order: false }.is_lost(11));
    }
}
