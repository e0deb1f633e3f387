//! `systole thread transcript` and `import`: a conversation as a file that anybody can verify, and back.

use std::fs::{self, File};
use std::io::{self, BufReader, BufWriter, Read, Seek};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use systole::identity::{Hash, TranscriptFault, TranscriptWriter};
use systole::journal::{Editor, Journaled, NamedJournal, TranscriptError};
use systole::runtime::clock::Clock;
use systole::runtime::entropy::Entropy;
use systole::settings::open_regular;
use systole_core::journal::JournalErrorKind;
use systole_core::vocab::Name;

use crate::failure::Failure;
use crate::journal_args::JournalArgs;
use crate::key::{self, Trusted};
use crate::print;
use crate::sought::Sought;

#[derive(Debug, Args)]
pub(crate) struct Transcript {
    /// The conversation, or a thread in it; the last digits of its id are enough, as events show them
    id: Sought,
    /// The file of keys of `systole key` that signs the head
    #[arg(long, value_name = "KEYFILE")]
    sign: Option<PathBuf>,
    #[command(flatten)]
    of: JournalArgs,
}

#[derive(Debug, Args)]
pub(crate) struct Import {
    /// The transcript
    file: PathBuf,
    /// A file of public keys, one of which must have signed the head: the output of `systole key show`
    #[arg(long, value_name = "FILE", required_unless_present = "head")]
    key: Vec<PathBuf>,
    /// The head, known from elsewhere, as `systole thread transcript` printed it
    #[arg(long, value_name = "HASH")]
    head: Option<Hash>,
    #[command(flatten)]
    of: JournalArgs,
}

/// Prints a transcript. It is printed once it is whole, so a journal is not read for as long as a reader takes.
pub(super) fn transcript(args: &Transcript) -> Result<ExitCode, Failure> {
    let identity = args.sign.as_deref().map(key::identity).transpose()?;
    let reader = args.of.journal()?.read().map_err(Failure::store)?;
    let id = args.id.find(&*reader)?;
    let written = |cause: io::Error| {
        let folder = std::env::temp_dir();
        Failure::unusable(format!(
            "the transcript can't be kept in {}, the folder for temporary files, until it is whole: {cause}; name another one by \
             the environment variable TMPDIR",
            folder.display()
        ))
    };
    let spool = spool().map_err(written)?;
    let mut writer = TranscriptWriter::new(BufWriter::new(&spool)).map_err(written)?;
    reader.transcript(id, Clock::real().now(), &mut |entry| writer.entry(entry)).map_err(|error| match error {
        // A reader writes nothing else: SQLite sorts many rows in a file.
        TranscriptError::Store(error) if error.kind() == JournalErrorKind::Full => {
            written(io::Error::other(error.to_string()))
        }
        TranscriptError::Store(error) => Failure::store(error),
        // An entry that no transcript has room for.
        TranscriptError::Write(cause) if cause.kind() == io::ErrorKind::Other => Failure::no(cause.to_string()),
        TranscriptError::Write(cause) => written(cause),
        error => Failure::no(error.to_string()),
    })?;
    drop(reader);
    let end = writer.finish(identity.as_ref()).map_err(written)?;
    let mut spool = spool;
    spool.rewind().map_err(written)?;
    let mut piece = vec![0; 1 << 20];
    loop {
        match spool.read(&mut piece) {
            Ok(0) => break,
            Ok(bytes) => print::document(&piece[..bytes])?,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(cause) => return Err(written(cause)),
        }
    }
    let by = identity.map_or_else(|| ", not signed".to_owned(), |identity| format!(", signed by {}", identity.id()));
    print::note(format_args!("{} entries{by}; the head is {}", end.entries, end.head));
    Ok(ExitCode::SUCCESS)
}

/// A file without a name, which is gone with the process.
fn spool() -> io::Result<File> {
    let folder = std::env::temp_dir();
    let path = folder.join(format!("systole-transcript-{}-{:x}", std::process::id(), Entropy::Real.bits()));
    let file = File::options().read(true).write(true).create_new(true).mode(0o600).open(&path)?;
    fs::remove_file(&path)?;
    Ok(file)
}

/// Writes a conversation into a journal, which is created if it is missing, and prints its id.
pub(super) fn import(args: &Import) -> Result<ExitCode, Failure> {
    let trusted = Trusted::load(&args.key)?;
    let journal = args.of.journal()?;
    // A journal is created for a transcript that was verified: the file is read twice.
    let unreadable = |cause| Failure::read(&args.file, cause);
    let file = open_regular(&args.file).map_err(unreadable)?;
    let (mut editor, created) = match (journal.edit(), journal.as_file()) {
        (Ok(editor), _) => (editor, None),
        (Err(error), Some(place)) if error.kind() == JournalErrorKind::Missing => {
            let mut reader = trusted.transcript(BufReader::new(&file), args.head)?;
            while reader.next_entry().map_err(|fault| key::refused(&args.file, fault))?.is_some() {}
            (&file).rewind().map_err(unreadable)?;
            (create(&journal, place)?, Some(place))
        }
        (Err(error), _) => return Err(Failure::store(error)),
    };
    let mut reader = trusted.transcript(BufReader::new(&file), args.head)?;
    let mut next = || reader.next_entry().map_err(|fault: TranscriptFault| fault.into());
    let imported = editor.import(&mut next, &Name::system(), Clock::real().now());
    drop(editor);
    if let (Err(_), Some(created)) = (&imported, created) {
        remove(&created.file);
    }
    let id = imported.map_err(|error| match error {
        TranscriptError::Store(error) => Failure::store(error),
        error => Failure::no(format!("{}: {error}", args.file.display())),
    })?;
    print::line(id)?;
    Ok(ExitCode::SUCCESS)
}

/// Creates a journal, and opens it. A disk that has no room for it leaves none.
fn create(journal: &NamedJournal, place: &Journaled) -> Result<Box<dyn Editor>, Failure> {
    let opened = journal.open(Entropy::Real.secret(), None);
    let editor = opened.and_then(|opened| {
        drop(opened);
        journal.edit()
    });
    editor.map_err(|error| {
        if error.kind() == JournalErrorKind::Full {
            remove(&place.file);
        }
        Failure::store(error)
    })
}

/// Removes a journal that was created for an import that failed.
fn remove(journal: &Path) {
    for ending in ["", "-wal", "-shm"] {
        let mut file = journal.as_os_str().to_owned();
        file.push(ending);
        // The log is gone with the last connection, as a rule.
        let _ = fs::remove_file(file);
    }
}
