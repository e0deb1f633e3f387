//! The write-ahead log as SQLite will read it at its next start. SQLite takes the intact frames from the front, and
//! drops the rest silently. So this module reads the log first, to tell which frames are dropped, and whether their
//! transactions were finished.
//!
//! The frames that were not on the disk when the power failed can be missing in any number and order, by pages of the
//! file, so a missing frame can stand before others that are there. Three things tell such a *torn* end from damage:
//!
//! - The index (`-shm`). The writer puts the number of finished frames there before a transaction is reported, and the
//!   file outlives the process, though not the machine. It is valid while its salt is that of the log, a writer wrote it
//!   (a reader after a crash rebuilds it from the log: its counter of changes is 0 then), and the machine has not started
//!   since. Then nothing that it counts can be missing.
//! - The chain of checksums. Each frame has the sum of all before it, so a frame behind a bad one can be judged by the
//!   sum that stands in the header of its predecessor. A page of the file that is missing takes the beginning of a
//!   frame with it, and so its salt. A frame that is bad while it, its predecessor and its successor have the salt of
//!   the log is therefore damaged, not missing.
//! - The order of transactions. Under `power` each is on the disk before the next one begins, so only the last can be
//!   torn: it was never reported. Under `process` all that came since the log was last written back can be.
//!
//! Not told from a torn end, where there is no valid index: damage to the last frame, or to the salt of a frame.
//!
//! Formats: <https://www.sqlite.org/fileformat2.html#the_write_ahead_log>, <https://www.sqlite.org/walformat.html>.

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::ops::Range;
use std::path::Path;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

use super::place::beside;
use super::problem::FileProblem;
use systole_core::journal::Durability;

const HEADER: usize = 32;
const FRAME: usize = 24;

/// The unit in which a file reaches the disk, in bytes.
const BLOCK: u64 = 4096;

/// The incomplete end of a log, which is cut off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cut {
    /// The offset up to which the log is in order, in bytes.
    pub at: u64,
    /// Bytes behind that offset.
    pub bytes: u64,
    /// Frames behind that offset, each with a page of the journal.
    pub frames: u64,
    /// The cause, and what is lost.
    pub loss: Loss,
}

/// The cause of an incomplete end of a log, and what is lost with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Loss {
    /// The last transaction was never finished: its process was killed, or the power failed.
    Unfinished,
    /// Finished transactions were not on the disk when the power failed, at least so many. Where each transaction waits
    /// for the disk that is damage.
    Unsynced(u64),
    /// Finished transactions are damaged, at least so many: neither a kill nor a loss of power does that.
    Damaged(u64),
}

impl Cut {
    /// Returns whether a start goes on without what is lost, by what its durability promises.
    pub(crate) fn is_due(&self, durability: Durability) -> bool {
        match (self.loss, durability) {
            (Loss::Unfinished, _) | (Loss::Unsynced(_), Durability::Process) => true,
            (Loss::Unsynced(_), Durability::Power) | (Loss::Damaged(_), _) => false,
        }
    }

    /// The problem of a file whose log has this end.
    pub(crate) fn problem(&self) -> Option<FileProblem> {
        match self.loss {
            Loss::Unfinished => None,
            Loss::Unsynced(lost) => Some(FileProblem::UnsyncedLog { at: self.at, lost }),
            Loss::Damaged(lost) => Some(FileProblem::DamagedLog { at: self.at, lost }),
        }
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
    /// True if the machine has not started since it was written.
    fresh: bool,
}

impl Index {
    /// Reads the index; `None` if it is incomplete or not a writer's.
    fn read(path: &Path, opened: &mut Vec<File>) -> Result<Option<Self>, FileProblem> {
        /// Two copies of a header, and the number of frames that are written back.
        const LEN: usize = 2 * 48 + 4;
        const VERSION: u32 = 3_007_000;
        let mut bytes = [0; LEN];
        let (whole, fresh) = match File::open(path) {
            Ok(file) => {
                let fresh = is_of_this_boot(&file)?;
                opened.push(file);
                (read_full(&mut &opened[opened.len() - 1], &mut bytes)?, fresh)
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => (false, false),
            Err(error) => return Err(error.into()),
        };
        let word = |at: usize| u32::from_ne_bytes(bytes[at..at + 4].try_into().expect("four bytes are a word"));
        let mut sum = Sum { big_endian: cfg!(target_endian = "big"), sum: (0, 0) };
        sum.add(&bytes[..40]);
        let is_whole = whole && bytes[..48] == bytes[48..96] && sum.sum == (word(40), word(44));
        let (changes, made) = (word(8), bytes[12] == 1);
        let valid = is_whole && word(0) == VERSION && made && changes > 0;
        let salt = bytes[32..40].try_into().expect("eight bytes are two words");
        Ok(valid.then(|| Self { frames: word(16).into(), back: word(96).into(), salt, fresh }))
    }

    /// The loss if the log is missing: an index of before the machine started may have come back without it.
    fn gone(index: Option<Self>) -> Option<Cut> {
        let lost = index.is_some_and(|index| index.fresh && index.frames > index.back);
        lost.then_some(Cut { at: 0, bytes: 0, frames: 0, loss: Loss::Unsynced(1) })
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

/// A frame of a log, as far as the end of the log is judged by it.
#[derive(Debug, Clone, Copy)]
struct Frame {
    /// It is of this round of the log, and its beginning is there: half of its salt is enough, since a frame of another
    /// round differs in both.
    is_present: bool,
    /// It has the salt of the log, and follows the sum in the header of its predecessor.
    is_intact: bool,
    /// It ends a transaction.
    commits: bool,
}

impl Log {
    fn read(input: &mut impl Read, len: u64, index: Option<Index>) -> io::Result<Option<Cut>> {
        let mut header = [0; HEADER];
        let whole = read_full(input, &mut header)?;
        let Some(mut log) = whole.then(|| Self::of(&header)).flatten() else {
            // A log that has just been started has a part of its header alone, and its index counts no frames.
            let loss = match Index::gone(index) {
                _ if len > HEADER as u64 => Loss::Damaged(1),
                Some(gone) => gone.loss,
                None => Loss::Unfinished,
            };
            return Ok(Some(Cut { at: 0, bytes: len, frames: 0, loss }));
        };
        let index = index.filter(|index| index.salt == log.salt);
        let (mut frame, mut frames) = (vec![0; FRAME + log.page], Vec::new());
        let (size, mut left) = (frame.len() as u64, len.saturating_sub(HEADER as u64));
        while left >= size && read_full(input, &mut frame)? {
            frames.push(log.frame(&frame));
            left -= size;
        }
        // The file has a length of its own once it starts over: its last bytes may be the beginning of an older frame.
        let mut rest = vec![0; left.min(size) as usize];
        let is_torn = !rest.is_empty() && (!read_full(input, &mut rest)? || log.may_be_here(&rest));
        let place = |frames: usize| HEADER as u64 + frames as u64 * (FRAME + log.page) as u64;
        let good = frames.iter().take_while(|frame| frame.is_intact).count();
        let end = frames[..good].iter().rposition(|frame| frame.commits).map_or(0, |at| at + 1);
        // Frames of an earlier round of the log have another salt; SQLite stops there.
        let present = frames.iter().rposition(|frame| frame.is_present).map_or(0, |at| at + 1);
        let last = if is_torn { len } else { place(present.max(end)) };
        let known = index.filter(|index| index.frames > index.back).map_or(0, |index| index.frames as usize);
        if last == place(end) && known <= end {
            return Ok(None);
        }
        // A page of the file without a salt in it: behind that of a frame, and before that of the next one.
        let has_bare_page = |at: usize| (place(at) + 16).next_multiple_of(BLOCK) + BLOCK <= place(at + 1) + 8;
        let begins_in_bare_page = |at: usize| at > 0 && has_bare_page(at - 1);
        let commits = |range: Range<usize>| {
            let commits = |at: &usize| {
                let Frame { is_present, is_intact, commits } = frames[*at];
                is_present && commits && (is_intact || !begins_in_bare_page(*at))
            };
            range.filter(commits).count() as u64
        };
        // Frames behind those that the writer noted as finished are not finished.
        let noted = commits(end..known.clamp(end, frames.len())).max(u64::from(known > end));
        // A transaction with another one behind it is finished.
        let followed = commits(end..present.saturating_sub(1).max(end));
        let is_there = |at: usize| frames.get(at).is_some_and(|frame| frame.is_present);
        let is_damaged = (good..present).filter(|at| !frames[*at].is_intact).any(|at| {
            let is_among = (at == 0 || is_there(at - 1)) && is_there(at) && is_there(at + 1);
            is_among && !has_bare_page(at) && !begins_in_bare_page(at)
        });
        let loss = match index {
            // Nothing that it counts can be missing, unless the log was made shorter.
            Some(Index { fresh: true, .. }) => match noted {
                0 => Loss::Unfinished,
                lost if good == present => Loss::Unsynced(lost),
                lost => Loss::Damaged(lost),
            },
            _ => match noted.max(followed) {
                lost if is_damaged => Loss::Damaged(lost.max(1)),
                0 => Loss::Unfinished,
                lost => Loss::Unsynced(lost),
            },
        };
        Ok(Some(Cut { at: place(end), bytes: last - place(end), frames: (present - end.min(present)) as u64, loss }))
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

    /// Returns whether the beginning of a frame may be of this round of the log: its salt isn't another one.
    fn may_be_here(&self, frame: &[u8]) -> bool {
        frame.len() < 16 || frame[8..12] == self.salt[..4] || frame[12..16] == self.salt[4..]
    }

    /// Judges the next frame by the sum that the one before it has.
    fn frame(&mut self, frame: &[u8]) -> Frame {
        self.sum.add(&frame[..8]);
        self.sum.add(&frame[FRAME..]);
        let word = |at: usize| u32::from_be_bytes(frame[at..at + 4].try_into().expect("four bytes are a word"));
        let own = (word(16), word(20));
        let is_intact = self.sum.sum == own && frame[8..16] == self.salt;
        self.sum.sum = own;
        Frame { is_present: self.may_be_here(frame), is_intact, commits: frame[4..8] != [0; 4] }
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

/// Returns whether a file was changed since the machine started, as far as the clock tells.
fn is_of_this_boot(file: &File) -> io::Result<bool> {
    /// The clock and the time of files differ by a tick.
    const SLACK: Duration = Duration::from_secs(2);
    #[cfg(target_os = "linux")]
    let clock = ClockId::Boottime;
    // Elsewhere this one goes on while the machine sleeps.
    #[cfg(not(target_os = "linux"))]
    let clock = ClockId::Monotonic;
    let up = clock_gettime(clock);
    let up = Duration::new(up.tv_sec.try_into().unwrap_or(0), 0);
    Ok(file.metadata()?.modified()?.elapsed().is_ok_and(|age| age <= up + SLACK))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: usize = 512;
    const SALT: [u8; 8] = [7; 8];

    /// A log of whole transactions of one frame each, and its last bytes.
    fn log(frames: usize, rest: &[u8]) -> Vec<u8> {
        let mut sum = Sum { big_endian: true, sum: (0, 0) };
        let words = |sum: &Sum| [sum.sum.0.to_be_bytes(), sum.sum.1.to_be_bytes()].concat();
        let mut bytes = [0x377f_0683_u32, 3_007_000, PAGE as u32, 0].map(u32::to_be_bytes).concat();
        bytes.extend(SALT);
        sum.add(&bytes);
        bytes.extend(words(&sum));
        for _ in 0..frames {
            let head = [1_u32, 1].map(u32::to_be_bytes).concat();
            let page = [1; PAGE];
            sum.add(&head);
            sum.add(&page);
            bytes.extend([&head[..], &SALT, &words(&sum), &page].concat());
        }
        bytes.extend(rest);
        bytes
    }

    fn read(bytes: &[u8]) -> Option<Cut> {
        Log::read(&mut &*bytes, bytes.len() as u64, None).unwrap()
    }

    #[test]
    fn the_beginning_of_an_older_frame_at_the_end_of_the_file_is_none_of_this_round() {
        for frames in [0, 3] {
            for length in [16, 24, 300, FRAME + PAGE - 1] {
                let older = vec![9; length];
                assert_eq!(read(&log(frames, &older)), None, "{frames} frames, {length} bytes");
                let mut own = older;
                own[8..16].copy_from_slice(&SALT);
                let cut = read(&log(frames, &own)).expect("a frame of this round is unfinished");
                assert_eq!((cut.bytes, cut.loss), (length as u64, Loss::Unfinished), "{frames} frames, {length} bytes");
            }
            assert_eq!(read(&log(frames, &[9; 5])).map(|cut| cut.bytes), Some(5), "too little to tell");
        }
    }
}
