//! Reads envelopes from files and standard input, on a thread of its own.

use std::fs::File;
use std::io::{self, Cursor, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use systole::runtime::Client;
use systole_core::vocab::XmlLimits;
use systole_xml::ladder::split::{Piece, Splitter};
use tokio::sync::mpsc::{Receiver, Sender, channel};

use super::once::{Once, Sending};
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
    /// The file that it stands in.
    file: Option<Arc<Path>>,
    /// The key that it is sent under.
    pub(super) key: Option<Arc<str>>,
}

/// The messages of all sources.
pub(super) struct Input {
    taken: Receiver<Taken>,
    /// The messages that were sent before; none without a journal.
    once: Option<Once>,
}

impl Input {
    pub(super) async fn next(&mut self) -> Option<Taken> {
        self.taken.recv().await
    }

    /// Gives a message of a file its key; none if it was sent before.
    pub(super) fn sift(&mut self, message: Message, client: &Client) -> Option<Message> {
        let (Some(once), Some(file)) = (&mut self.once, &message.file) else { return Some(message) };
        let id = client.label(message.bytes.clone());
        match once.key(file, id.as_deref(), &message.bytes) {
            Sending::First(key) => Some(Message { key: Some(key), ..message }),
            Sending::Again => Some(message),
            Sending::Never => None,
        }
    }

    /// Takes the sentences about messages that were not sent again.
    pub(super) fn told(&mut self) -> impl Iterator<Item = String> + use<> {
        self.once.iter_mut().flat_map(Once::told).collect::<Vec<_>>().into_iter()
    }
}

/// An open file, or standard input.
pub(super) struct Source {
    name: PathBuf,
    reader: Box<dyn Read + Send>,
    is_file: bool,
    /// The path of a file that can be read again: a pipe can't, nor can what standard input is at the moment.
    file: Option<Arc<Path>>,
}

/// Folders whose files are descriptors of the process.
const DESCRIPTORS: [&str; 2] = ["/dev", "/proc"];
/// Pieces that are read ahead, and bytes of one.
const AHEAD: usize = 16;
const CHUNK: usize = 64 << 10;
/// Bytes, and limits of one message, in which a message ends, or its source is none of messages.
const ENDLESS: (u64, u64) = (64 << 20, 16);

impl Source {
    /// Opens a file; `-` is standard input.
    pub(super) fn open(path: &Path) -> Result<Self, Failure> {
        if path == Path::new("-") {
            let (name, reader) = ("standard input".into(), Box::new(Patient(io::stdin())));
            return Ok(Self { name, reader, is_file: false, file: None });
        }
        let file = File::open(path).map_err(|cause| Failure::read(path, cause))?;
        let is_stable = file.metadata().is_ok_and(|found| found.is_file())
            && !DESCRIPTORS.iter().any(|descriptors| path.starts_with(descriptors));
        // A link, and a path from another folder, name the same file.
        let canonical = path.canonicalize().ok().filter(|_| is_stable).map(Into::into);
        Ok(Self { name: path.to_owned(), reader: Box::new(Patient(file)), is_file: true, file: canonical })
    }

    /// The text of an argument.
    pub(super) fn given(text: Bytes) -> Self {
        Self { name: "the message".into(), reader: Box::new(Cursor::new(text)), is_file: true, file: None }
    }

    /// Returns whether it is a file that can be read again.
    pub(super) fn is_stable(&self) -> bool {
        self.file.is_some()
    }
}

/// Reads the sources one after the other and splits each into messages.
///
/// # Errors
/// The error of the system, if it refuses a thread.
pub(super) fn read(sources: Vec<Source>, limits: XmlLimits, once: Option<Once>) -> io::Result<Input> {
    let (sender, taken) = channel(AHEAD);
    // Detached: a read from a terminal can't be interrupted, and ends with the process.
    std::thread::Builder::new().name("systole-input".to_owned()).spawn(move || {
        for source in sources {
            if forward(source, &limits, &sender).is_none() {
                return;
            }
        }
    })?;
    Ok(Input { taken, once })
}

/// Sends all messages of a source; `None` if the receiver is gone, or the source fails.
fn forward(mut source: Source, limits: &XmlLimits, sender: &Sender<Taken>) -> Option<()> {
    let name = source.name.display().to_string();
    let mut splitter = Splitter::new(limits);
    let mut chunk = vec![0; CHUNK];
    let most = ENDLESS.0.max(ENDLESS.1.saturating_mul(limits.message_bytes as u64));
    let mut skipped = (None, 0);
    loop {
        match source.reader.read(&mut chunk) {
            Ok(0) => break,
            Ok(read) => {
                splitter.push(&chunk[..read]);
                let since = splitter.skips_since();
                let before = if since == skipped.0 { skipped.1 } else { 0 };
                skipped = (since, before + read as u64);
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => {
                sender.blocking_send(Taken::Failed(Failure::read(&source.name, error))).ok()?;
                return None;
            }
        }
        while let Some(piece) = splitter.next() {
            sender.blocking_send(taken(piece, &name, &source, limits)).ok()?;
        }
        if let (Some(at), read) = skipped
            && read > most
        {
            let why = format!("{name}:{at}: no message ends in {most} bytes: name a file or a pipe of messages");
            sender.blocking_send(Taken::Failed(Failure::unusable(why))).ok()?;
            return None;
        }
    }
    while let Some(piece) = splitter.finish() {
        sender.blocking_send(taken(piece, &name, &source, limits)).ok()?;
    }
    Some(())
}

fn taken(piece: Piece, name: &str, source: &Source, limits: &XmlLimits) -> Taken {
    let (last, file) = (source.is_file, source.file.clone());
    match piece {
        Piece::Message(bytes) => Taken::Message(Message { bytes, last, file, key: None }),
        Piece::TooLarge { at, bytes } => {
            let limit = limits.message_bytes;
            Taken::Refused(format!("{name}:{at}: a message of {bytes} bytes, {limit} are allowed: it was skipped"))
        }
    }
}
