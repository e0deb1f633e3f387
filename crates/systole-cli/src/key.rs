//! `systole key`, `sign` and `verify`: keys, and the signatures of messages and of transcripts.

use std::fs::File;
use std::io::{self, BufReader, Cursor, Read};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, Subcommand};
use systole::identity::{
    Hash, Identity, IdentityError, KeyFile, PublicKey, PublicKeys, TRANSCRIPT_START, TranscriptFault, TranscriptReader,
    is_transcript,
};
use systole::runtime::clock::Clock;
use systole_core::vocab::XmlLimits;
use systole_xml::ladder::Raw;

use super::failure::Failure;
use super::{file, print};

#[derive(Debug, Subcommand)]
pub(super) enum Action {
    /// Make a key, which signs from the next start on, and print its id; the file is created if it is missing
    New {
        /// The file of keys, which only its owner may read
        file: PathBuf,
    },
    /// Print the ids of keys, and which of them signs
    List {
        /// The file of keys
        file: PathBuf,
    },
    /// Print public keys as a JSON Web Key Set, for those who verify
    Show {
        /// The file of keys
        file: PathBuf,
        /// Print one key as PEM instead, for OpenSSL and xmlsec
        #[arg(long, value_name = "ID")]
        pem: Option<String>,
    },
    /// Retire a key: its secret is deleted, and it goes on verifying
    Retire {
        /// The file of keys
        file: PathBuf,
        /// The id of the key
        id: String,
    },
}

#[derive(Debug, Args)]
pub(super) struct Sign {
    /// The message: an envelope with <meta>, or - for standard input
    message: PathBuf,
    /// The file of keys of `systole key`
    #[arg(long, value_name = "FILE")]
    key: PathBuf,
}

#[derive(Debug, Args)]
pub(super) struct Verify {
    /// The message or the transcript, or - for standard input
    message: PathBuf,
    /// A file of public keys: the output of `systole key show`, or of /.well-known/jwks.json
    #[arg(long, value_name = "FILE", required_unless_present = "head")]
    key: Vec<PathBuf>,
    /// The head that a transcript must have, known from elsewhere; with it a transcript needs no key
    #[arg(long, value_name = "HASH")]
    head: Option<Hash>,
}

pub(super) fn run(action: &Action) -> Result<ExitCode, Failure> {
    match action {
        Action::New { file } => {
            let mut keys = KeyFile::open(file).map_err(|error| failure(file, error))?;
            let id = keys.add(Clock::real().now()).map_err(|error| failure(file, error))?.id.clone();
            print::line(id)?;
            print::note(format_args!("the key is in {}, and signs from the next start on", file.display()));
        }
        Action::List { file } => {
            let keys = load(file)?;
            for key in keys.keys().iter() {
                let state = match key.retired {
                    Some(at) => format!("retired {at}"),
                    None if keys.signing() == Some(&key.id) => "signs".to_owned(),
                    None => "verifies".to_owned(),
                };
                print::document(format!("{}\t{state}\n", key.id).as_bytes())?;
            }
        }
        Action::Show { file, pem: None } => print::document(load(file)?.jwks().as_bytes())?,
        Action::Show { file, pem: Some(id) } => {
            let keys = load(file)?.keys();
            let key = keys.get(id).ok_or_else(|| failure(file, IdentityError::Unknown(id.clone())))?;
            print::document(key.pem().as_bytes())?;
        }
        Action::Retire { file, id } => {
            // A file that is missing is not begun.
            load(file)?;
            let mut keys = KeyFile::open(file).map_err(|error| failure(file, error))?;
            keys.retire(id, Clock::real().now()).map_err(|error| failure(file, error))?;
            if keys.signing().is_none() {
                print::note("no key is left that signs: make one with `systole key new`");
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

pub(super) fn sign(args: &Sign) -> Result<ExitCode, Failure> {
    let identity = identity(&args.key)?;
    let message = read(&args.message)?;
    let signed = identity.sign(message.bytes()).map_err(|error| Failure::no(error.to_string()))?;
    identity
        .keys()
        .verify_bytes(&Raw::new(signed.clone()), &XmlLimits::UNLIMITED)
        .map_err(|error| Failure::no(error.to_string()))?;
    print::document(&signed)?;
    print::document(b"\n")?;
    Ok(ExitCode::SUCCESS)
}

pub(super) fn verify(args: &Verify) -> Result<ExitCode, Failure> {
    let trusted = Trusted::load(&args.key)?;
    let input: Box<dyn Read> = match args.message == Path::new("-") {
        true => Box::new(io::stdin()),
        false => Box::new(File::open(&args.message).map_err(|cause| Failure::read(&args.message, cause))?),
    };
    let failed = |cause| Failure::read(&args.message, cause);
    let (mut start, mut input) = (Vec::new(), input);
    input.by_ref().take(TRANSCRIPT_START as u64).read_to_end(&mut start).map_err(failed)?;
    let is_transcript = is_transcript(&start);
    let mut whole = Cursor::new(start).chain(input);
    if is_transcript {
        return verify_transcript(&args.message, whole, &trusted, args.head);
    }
    if args.head.is_some() {
        return Err(Failure::unusable(format!(
            "{} is no transcript, and messages have no head: give --key FILE alone",
            args.message.display()
        )));
    }
    let mut message = Vec::new();
    whole.by_ref().take(file::DOCUMENT + 1).read_to_end(&mut message).map_err(failed)?;
    if message.len() as u64 > file::DOCUMENT {
        let most = file::DOCUMENT;
        return Err(Failure::unusable(format!(
            "{}: a message of more than {most} bytes is not read",
            args.message.display()
        )));
    }
    let key = trusted
        .keys
        .verify_bytes(&Raw::new(message), &XmlLimits::UNLIMITED)
        .map_err(|error| Failure::no(format!("{}: {error}", args.message.display())))?;
    print::line(trusted.signed_by(key))?;
    Ok(ExitCode::SUCCESS)
}

/// Verifies a transcript, and prints what it proves.
fn verify_transcript(
    file: &Path,
    input: impl Read,
    trusted: &Trusted,
    head: Option<Hash>,
) -> Result<ExitCode, Failure> {
    let refused = |fault| refused(file, fault);
    let mut reader: TranscriptReader<'_, _> = trusted.transcript(BufReader::new(input), head)?;
    let (mut about, mut kept_from) = (String::new(), None);
    while let Some(entry) = reader.next_entry().map_err(refused)? {
        if about.is_empty() {
            let value = |name: &str| entry.get(name).unwrap_or("?").to_owned();
            about = format!("conversation {} of {}, taken {}", value("id"), value("organism"), value("taken"));
            kept_from = entry.get("kept-from").map(str::to_owned);
        }
    }
    if let Some(end) = reader.end() {
        print::line(format_args!("{about}: {} entries, the head is {}", end.entries, end.head))?;
        match &end.key {
            Some(key) => print::line(trusted.signed_by(key))?,
            None => print::line("not signed; its head is the known one")?,
        }
        if let Some(time) = kept_from {
            print::line(format_args!(
                "entries of the conversation may be missing: retention had deleted rows of the journal that ended by {time}"
            ))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// The failure that a transcript is.
pub(super) fn refused(file: &Path, fault: TranscriptFault) -> Failure {
    match fault {
        TranscriptFault::Io(cause) => Failure::read(file, cause),
        fault => Failure::no(format!("{}: {fault}", file.display())),
    }
}

/// The public keys of some files.
#[derive(Debug)]
pub(super) struct Trusted {
    files: Vec<(PathBuf, PublicKeys)>,
    keys: PublicKeys,
}

impl Trusted {
    pub(super) fn load(files: &[PathBuf]) -> Result<Self, Failure> {
        let load = |file: &PathBuf| PublicKeys::load(file).map_err(|error| failure(file, error));
        let files = files.iter().map(|file| Ok((file.clone(), load(file)?))).collect::<Result<Vec<_>, Failure>>()?;
        let mut keys = PublicKeys::default();
        files.iter().for_each(|(_, read)| keys.extend(read.clone()));
        Ok(Self { files, keys })
    }

    /// Reads a transcript that one of the keys must have signed, and with that head.
    pub(super) fn transcript<R: Read>(&self, input: R, head: Option<Hash>) -> Result<TranscriptReader<'_, R>, Failure> {
        match (self.files.is_empty(), head) {
            (false, head) => Ok(TranscriptReader::signed(input, &self.keys).with_head(head)),
            (true, Some(head)) => Ok(TranscriptReader::known(input, head)),
            (true, None) => Err(Failure::unusable("give --key FILE or --head HASH".to_owned())),
        }
    }

    /// Names a key, and its file: keys of several files may have one id.
    pub(super) fn signed_by(&self, key: &PublicKey) -> String {
        let retired = key.retired.map_or_else(String::new, |at| format!(", which was retired at {at}"));
        let of = self.files.iter().find(|(_, keys)| keys.iter().any(|known| known == key));
        let of = of.map_or_else(String::new, |(file, _)| format!(" of {}", file.display()));
        format!("signed by {}{of}{retired}", key.id)
    }
}

/// The identity in a file of keys.
pub(super) fn identity(file: &Path) -> Result<Identity, Failure> {
    load(file)?.identity().map_err(|error| failure(file, error))
}

fn load(file: &Path) -> Result<KeyFile, Failure> {
    KeyFile::load(file).map_err(|error| failure(file, error))
}

fn read(message: &Path) -> Result<Raw, Failure> {
    let bytes = match message == Path::new("-") {
        true => file::from_stdin(file::DOCUMENT)?,
        false => file::read(message, file::DOCUMENT)?,
    };
    Ok(Raw::new(bytes))
}

fn failure(file: &Path, error: IdentityError) -> Failure {
    Failure::unusable(format!("the file of keys {} can't be used: {error}", file.display()))
}
