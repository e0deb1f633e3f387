//! Reads envelopes from files and standard input, on a thread of its own.

use std::fs::File;
use std::io::{self, Cursor, Read};
use std::path::{Path, PathBuf};

use bytes::Bytes;
use systole_core::vocab::XmlLimits;
use systole_xml::ladder::split::{Piece, Splitter};
use tokio::sync::mpsc::{Receiver, Sender, channel};

use crate::descriptor::Patient;
use crate::failure::Failure;

/// An item of a source.
pub(super) enum Taken {
    /// An envelope.
    Message(Message),
    /// Bytes that can't be offered.
    Refused(String),
    /// A source that failed.
    Failed(Failure),
}

/// The bytes of one envelope, possibly dirty.
#[derive(Clone)]
pub(super) struct Message {
    pub(super) bytes: Bytes,
    /// True if no message can follow in its conversation: a file can't name a thread that doesn't exist yet, a program
    /// on standard input can.
    pub(super) last: bool,
}

/// An open file, or standard input.
pub(super) struct Source {
    name: PathBuf,
    reader: Box<dyn Read + Send>,
    is_file: bool,
}

/// Pieces that are read ahead, and bytes of one.
const AHEAD: usize = 16;
const CHUNK: usize = 64 << 10;

impl Source {
    /// Opens a file; `-` is standard input.
    pub(super) fn open(path: &Path) -> Result<Self, Failure> {
        if path == Path::new("-") {
            return Ok(Self { name: "standard input".into(), reader: Box::new(Patient(io::stdin())), is_file: false });
        }
        let file = File::open(path).map_err(|cause| Failure::read(path, cause))?;
        Ok(Self { name: path.to_owned(), reader: Box::new(Patient(file)), is_file: true })
    }

    /// The text of an argument.
    pub(super) fn given(text: Bytes) -> Self {
        Self { name: "the message".into(), reader: Box::new(Cursor::new(text)), is_file: true }
    }
}

/// Reads the sources one after the other and splits each into messages.
pub(super) fn read(sources: Vec<Source>, limits: XmlLimits) -> Receiver<Taken> {
    let (sender, receiver) = channel(AHEAD);
    // Detached: a read from a terminal can't be interrupted, and ends with the process.
    std::thread::spawn(move || {
        for source in sources {
            if forward(source, &limits, &sender).is_none() {
                return;
            }
        }
    });
    receiver
}

/// Sends all messages of a source; `None` if the receiver is gone, or the source fails.
fn forward(mut source: Source, limits: &XmlLimits, sender: &Sender<Taken>) -> Option<()> {
    let name = source.name.display().to_string();
    let mut splitter = Splitter::new(limits);
    let mut chunk = vec![0; CHUNK];
    loop {
        match source.reader.read(&mut chunk) {
            Ok(0) => break,
            Ok(read) => splitter.push(&chunk[..read]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => {
                sender.blocking_send(Taken::Failed(Failure::read(&source.name, error))).ok()?;
                return None;
            }
        }
        while let Some(piece) = splitter.next() {
            sender.blocking_send(taken(piece, &name, source.is_file, limits)).ok()?;
        }
    }
    while let Some(piece) = splitter.finish() {
        sender.blocking_send(taken(piece, &name, source.is_file, limits)).ok()?;
    }
    Some(())
}

fn taken(piece: Piece, name: &str, last: bool, limits: &XmlLimits) -> Taken {
    match piece {
        Piece::Message(bytes) => Taken::Message(Message { bytes, last }),
        Piece::TooLarge { at, bytes } => {
            let limit = limits.message_bytes;
            Taken::Refused(format!("{name}:{at}: a message of {bytes} bytes, {limit} are allowed: it was skipped"))
        }
    }
}
