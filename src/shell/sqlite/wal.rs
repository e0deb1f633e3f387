//! The write-ahead log as SQLite will read it at its next start: it takes what is in order from the front, and drops
//! the rest without a word. So this reads it first, to tell what is dropped.
//!
//! Format: <https://www.sqlite.org/fileformat2.html#the_write_ahead_log>.

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::Path;

use super::place::beside;
use super::problem::Problem;

const HEADER: usize = 32;
const FRAME: usize = 24;

/// The end of a log that is cut off, because it was not written whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cut {
    /// Where the log is in order up to, in bytes.
    pub at: u64,
    /// Bytes behind that.
    pub bytes: u64,
    /// Whether a transaction stands there that was finished before the last one: no crash of a process does that.
    pub(crate) finished: bool,
}

/// What the next start will drop of the log of a file; none if that is nothing.
pub(crate) fn inspect(database: &Path) -> Result<Option<Cut>, Problem> {
    let file = match File::open(beside(database, "-wal")) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    let len = file.metadata()?.len();
    if len == 0 {
        return Ok(None);
    }
    Ok(Log::read(&mut BufReader::with_capacity(1 << 16, file), len)?)
}

/// The header of a log, and the checksum so far.
struct Log {
    big_endian: bool,
    page: usize,
    salt: [u8; 8],
    sum: (u32, u32),
}

impl Log {
    fn read(input: &mut impl Read, len: u64) -> io::Result<Option<Cut>> {
        let mut header = [0; HEADER];
        let whole = read_full(input, &mut header)?;
        let Some(mut log) = whole.then(|| Self::of(&header)).flatten() else {
            // A log that only begins has a header alone.
            return Ok(Some(Cut { at: 0, bytes: len, finished: len > HEADER as u64 }));
        };
        let mut frame = vec![0; FRAME + log.page];
        let frame_len = frame.len() as u64;
        // Up to where it is in order, up to where it is of this round, and what was finished between the two.
        let (mut at, mut end, mut last, mut finished) = (HEADER as u64, HEADER as u64, HEADER as u64, 0);
        let mut good = true;
        while read_full(input, &mut frame)? {
            at += frame_len;
            // What an earlier round of the log left behind has another salt; SQLite goes no further.
            good = good && frame[8..16] == log.salt && log.accepts(&frame);
            if frame[8..16] == log.salt {
                let commits = frame[4..8] != [0; 4];
                match (good, commits) {
                    (true, true) => end = at,
                    (false, true) => finished += 1,
                    (_, false) => {}
                }
                last = at;
            }
        }
        if at < len {
            last = len;
        }
        // The last transaction may be written in any order, until it is known to be on the disk.
        Ok((last > end).then_some(Cut { at: end, bytes: last - end, finished: finished > 1 }))
    }

    fn of(header: &[u8; HEADER]) -> Option<Self> {
        let word = |at: usize| u32::from_be_bytes(header[at..at + 4].try_into().expect("four bytes are a word"));
        let big_endian = match word(0) {
            0x377f_0682 => false,
            0x377f_0683 => true,
            _ => return None,
        };
        let page = usize::try_from(word(8)).ok().filter(|page| (512..=65536).contains(page))?;
        let salt = header[16..24].try_into().expect("eight bytes are two words");
        let mut log = Self { big_endian, page, salt, sum: (0, 0) };
        log.add(&header[..24]);
        (log.sum == (word(24), word(28))).then_some(log)
    }

    /// Whether a frame is the next one.
    fn accepts(&mut self, frame: &[u8]) -> bool {
        self.add(&frame[..8]);
        self.add(&frame[FRAME..]);
        let word = |at: usize| u32::from_be_bytes(frame[at..at + 4].try_into().expect("four bytes are a word"));
        self.sum == (word(16), word(20))
    }

    fn add(&mut self, bytes: &[u8]) {
        let (mut first, mut second) = self.sum;
        for pair in bytes.chunks_exact(8) {
            let word = |at: usize| {
                let bytes = pair[at..at + 4].try_into().expect("four bytes are a word");
                if self.big_endian { u32::from_be_bytes(bytes) } else { u32::from_le_bytes(bytes) }
            };
            first = first.wrapping_add(word(0)).wrapping_add(second);
            second = second.wrapping_add(word(4)).wrapping_add(first);
        }
        self.sum = (first, second);
    }
}

/// Fills a buffer; `false` if the input ends before.
fn read_full(input: &mut impl Read, buffer: &mut [u8]) -> io::Result<bool> {
    match input.read_exact(buffer) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
        Err(error) => Err(error),
    }
}
