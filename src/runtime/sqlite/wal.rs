//! The write-ahead log as SQLite will read it at its next start. SQLite takes the intact frames from the front, and
//! drops the rest silently. So this module reads the log first, to tell which frames are dropped, and whether their
//! transactions were finished.
//!
//! The log alone can't tell a last transaction that was damaged from one that was never finished. Its index (`-shm`)
//! can: the writer puts the number of finished frames there before a transaction is reported, and the file outlives the
//! process. The index is valid while its salt is that of the log and a writer wrote it: a reader after a crash rebuilds
//! it from the log (its counter of changes is 0 then). Without a valid index, a log counts as damaged if a finished
//! transaction can be seen behind the place.
//!
//! Not detected: a last transaction whose end is damaged beyond recognition, where there is no index.
//!
//! Formats: <https://www.sqlite.org/fileformat2.html#the_write_ahead_log>, <https://www.sqlite.org/walformat.html>.

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::Path;

use super::place::beside;
use super::problem::FileProblem;

const HEADER: usize = 32;
const FRAME: usize = 24;

/// The incomplete end of a log, which is cut off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cut {
    /// The offset up to which the log is in order, in bytes.
    pub at: u64,
    /// Bytes behind that offset.
    pub bytes: u64,
    /// Finished transactions that are lost with it, at least; the crash of a process loses none.
    pub(crate) lost: u64,
    /// True if the log only ends too early, as after a loss of power if transactions don't wait for the disk.
    pub(crate) short: bool,
}

impl Cut {
    /// Returns whether the log is damaged, rather than incomplete.
    pub(crate) fn is_damage(&self) -> bool {
        self.lost > 0
    }
}

/// Length of a log with that many pages, in bytes; 0 for none.
pub(super) fn length(pages: u64, page: u64) -> u64 {
    if pages == 0 { 0 } else { HEADER as u64 + pages * (FRAME as u64 + page) }
}

/// Finds the part of the log that the next start will drop, if any.
///
/// `index` gets the open index: when a process closes a descriptor of it, SQLite loses its locks there.
pub(super) fn inspect(database: &Path, index: &mut Vec<File>) -> Result<Option<Cut>, FileProblem> {
    let index = Index::read(&beside(database, "-shm"), index)?;
    let file = match File::open(beside(database, "-wal")) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Index::gone(index)),
        Err(error) => return Err(error.into()),
    };
    let len = file.metadata()?.len();
    if len == 0 {
        return Ok(Index::gone(index));
    }
    Ok(Log::read(&mut BufReader::with_capacity(1 << 16, file), len, index)?)
}

/// The state of a log as its writer noted it in the index.
#[derive(Debug, Clone, Copy)]
struct Index {
    /// Number of finished frames.
    frames: u64,
    /// Number of frames that are written back; losing them loses nothing.
    back: u64,
    salt: [u8; 8],
}

impl Index {
    /// Reads the index; `None` if it is incomplete or not a writer's.
    fn read(path: &Path, opened: &mut Vec<File>) -> Result<Option<Self>, FileProblem> {
        /// Two copies of a header, and the number of frames that are written back.
        const LEN: usize = 2 * 48 + 4;
        const VERSION: u32 = 3_007_000;
        let mut bytes = [0; LEN];
        let whole = match File::open(path) {
            Ok(file) => {
                opened.push(file);
                read_full(&mut &opened[opened.len() - 1], &mut bytes)?
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => false,
            Err(error) => return Err(error.into()),
        };
        let word = |at: usize| u32::from_ne_bytes(bytes[at..at + 4].try_into().expect("four bytes are a word"));
        let mut sum = Sum { big_endian: cfg!(target_endian = "big"), sum: (0, 0) };
        sum.add(&bytes[..40]);
        let is_whole = whole && bytes[..48] == bytes[48..96] && sum.sum == (word(40), word(44));
        let (changes, made) = (word(8), bytes[12] == 1);
        let valid = is_whole && word(0) == VERSION && made && changes > 0;
        let salt = bytes[32..40].try_into().expect("eight bytes are two words");
        Ok(valid.then(|| Self { frames: word(16).into(), back: word(96).into(), salt }))
    }

    /// The loss if the log is missing.
    fn gone(index: Option<Self>) -> Option<Cut> {
        let lost = index.is_some_and(|index| index.frames > index.back);
        lost.then_some(Cut { at: 0, bytes: 0, lost: 1, short: true })
    }
}

/// The header of a log, and the checksum so far.
struct Log {
    page: usize,
    salt: [u8; 8],
    sum: Sum,
}

/// The checksum of SQLite's logs.
struct Sum {
    big_endian: bool,
    sum: (u32, u32),
}

impl Log {
    fn read(input: &mut impl Read, len: u64, index: Option<Index>) -> io::Result<Option<Cut>> {
        let mut header = [0; HEADER];
        let whole = read_full(input, &mut header)?;
        let Some(mut log) = whole.then(|| Self::of(&header)).flatten() else {
            // A log that has just been started has a header alone.
            return Ok(Some(Cut { at: 0, bytes: len, lost: u64::from(len > HEADER as u64), short: false }));
        };
        let index = index.filter(|index| index.salt == log.salt);
        let mut frame = vec![0; FRAME + log.page];
        let frame_len = frame.len() as u64;
        // Where it is in order up to, where its present round ends, and the transactions finished between the two.
        let (mut at, mut end, mut last, mut finished) = (HEADER as u64, HEADER as u64, HEADER as u64, 0);
        let told = index.map(|index| HEADER as u64 + index.frames * frame_len);
        let (mut good, mut damaged) = (true, false);
        while read_full(input, &mut frame)? {
            at += frame_len;
            // Frames of an earlier round of the log have another salt; SQLite stops there.
            good = good && frame[8..16] == log.salt && log.accepts(&frame);
            // One half of the salt is enough: a frame of another round differs in both.
            damaged |= !good && (frame[8..12] == log.salt[..4] || frame[12..16] == log.salt[4..]);
            if frame[8..16] == log.salt {
                let commits = frame[4..8] != [0; 4];
                match (good, commits) {
                    (true, true) => end = at,
                    // Frames behind those that the writer noted as finished are not finished.
                    (false, true) => finished += u64::from(told.is_none_or(|told| at <= told)),
                    (_, false) => {}
                }
                last = at;
            }
        }
        if at < len {
            last = len;
        }
        let missing = told.is_some_and(|told| told > end) && index.is_some_and(|index| index.frames > index.back);
        let cut = Cut { at: end, bytes: last - end, lost: finished.max(missing.into()), short: missing && !damaged };
        Ok((last > end || missing).then_some(cut))
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
        let mut log = Self { page, salt, sum: Sum { big_endian, sum: (0, 0) } };
        log.sum.add(&header[..24]);
        (log.sum.sum == (word(24), word(28))).then_some(log)
    }

    /// Returns whether a frame is the next one.
    fn accepts(&mut self, frame: &[u8]) -> bool {
        self.sum.add(&frame[..8]);
        self.sum.add(&frame[FRAME..]);
        let word = |at: usize| u32::from_be_bytes(frame[at..at + 4].try_into().expect("four bytes are a word"));
        self.sum.sum == (word(16), word(20))
    }
}

impl Sum {
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
