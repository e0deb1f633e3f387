//! Checks of this machine for a start: the file of the journal, the address of the gateway.

use std::io::ErrorKind;
use std::net::TcpListener;
use std::path::Path;

use super::Mistake;
use super::organism::Organism;
use super::reader::Reader;
use crate::journal::NamedJournal;

/// Reports reasons for which a start would be refused.
pub(super) fn judge(reader: &mut Reader, organism: &Organism, directory: &Path) {
    if let Some(keep) = &organism.journal
        // A URL that can't be used is reported by itself, and a server that doesn't answer by the start.
        && let Ok(named) = NamedJournal::parse(&keep.file.value, Some(directory))
        && named.as_file().is_some()
        && let Err(why) = journal(&named)
    {
        let path = keep.file.value.clone().into();
        reader.report(Mistake::File { what: "journal", path, why }, keep.file.span);
    }
    let Some(gateway) = organism.gateway.as_ref().filter(|gateway| gateway.value.listen.port() != 0) else { return };
    let address = gateway.value.listen;
    // The address is free again at once: no connection was accepted.
    match TcpListener::bind(address) {
        Ok(_) => {}
        Err(error) if error.kind() == ErrorKind::AddrInUse => {
            reader.report(Mistake::AddressInUse { address }, gateway.span);
        }
        Err(error) => reader.report(Mistake::NoAddress { address, why: error.to_string() }, gateway.span),
    }
}

/// Checks whether a journal can be at its place, as far as can be seen without opening it.
///
/// # Errors
/// The reason why it can't, as a sentence about the journal.
pub fn journal(named: &NamedJournal) -> Result<(), String> {
    if let Some(file) = named.as_file() {
        let folder = file.file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        if !folder.is_dir() {
            return Err("its folder doesn't exist".to_owned());
        }
    }
    named.check().map_err(|error| error.to_string())
}
