//! `systole key`, `sign` and `verify`: keys, and the signatures of messages.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, Subcommand};
use systole::identity::{IdentityError, KeyFile, PublicKeys};
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
    /// The message, or - for standard input
    message: PathBuf,
    /// A file of public keys: the output of `systole key show`, or of /.well-known/jwks.json
    #[arg(long, value_name = "FILE", required = true)]
    key: Vec<PathBuf>,
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
    let identity = load(&args.key)?.identity().map_err(|error| failure(&args.key, error))?;
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
    let load = |file: &PathBuf| PublicKeys::load(file).map_err(|error| failure(file, error));
    let files = args.key.iter().map(|file| Ok((file, load(file)?))).collect::<Result<Vec<_>, Failure>>()?;
    let mut keys = PublicKeys::default();
    files.iter().for_each(|(_, read)| keys.extend(read.clone()));
    let message = read(&args.message)?;
    let key = keys
        .verify_bytes(&message, &XmlLimits::UNLIMITED)
        .map_err(|error| Failure::no(format!("{}: {error}", args.message.display())))?;
    let retired = key.retired.map_or_else(String::new, |at| format!(", which was retired at {at}"));
    // Keys of several files may have one id.
    let of = files.iter().find(|(_, keys)| keys.iter().any(|known| known == key));
    let of = of.map_or_else(String::new, |(file, _)| format!(" of {}", file.display()));
    print::line(format_args!("signed by {}{of}{retired}", key.id))?;
    Ok(ExitCode::SUCCESS)
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
