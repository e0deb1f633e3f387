//! `organism:`: a listener that is another organism, by the lock file of its import.

use std::path::{Path, PathBuf};

use systole_core::core::{Contract, OnRestart};
use systole_core::vocab::{Name, QName};
use systole_xml::schema::{Catalog, ContractError};

use super::document::Node;
use super::finding::ConfigFinding;
use super::keys::{Text, Texts, mapping};
use super::listener::{Listener, Written};
use super::mcp_listener::import_of;
use super::mistake::Mistake;
use super::organism::Organism;
use super::reader::{At, Reader};
use super::{Config, remote};
use crate::listeners::organism::{DeclareError, OrganismListenerSettings, OrganismLock};

/// Another organism as it is written.
#[derive(Debug)]
pub(super) struct OrganismListener {
    way: Way,
    lock: OrganismLock,
    lock_file: At<String>,
    #[cfg(feature = "gateway")]
    keys: Option<crate::identity::PublicKeys>,
}

/// The way to another organism as it is written.
#[derive(Debug)]
struct Way {
    url: String,
    token: PathBuf,
    certificates: Option<PathBuf>,
}

mapping! {
    /// Another organism, by the URL of its gateway.
    OrganismListenerKeys: OrganismListener {
        /// URL of its gateway.
        url: Text, of "another organism";
        /// File with the token of a client of it, relative to this file.
        token_file: Text, of "another organism";
        /// Lock file that systole organism import writes, relative to this file; NAME.organism.json by default.
        lock: Text;
        /// Files of public keys, one of which must sign each answer (docs/signatures.md); without it: no signature is asked for.
        keys: Texts;
        /// File of certificates to trust besides the roots of the system, as PEM.
        ca_file: Text;
    }
}

/// Reads the value of `organism:`.
pub(super) fn read(reader: &mut Reader, node: &Node, name: Option<&At<Name>>) -> Option<OrganismListener> {
    let keys = OrganismListenerKeys::open(reader, node)?;
    let way = way(reader, &keys);
    let name = name?;
    if cfg!(not(feature = "gateway")) {
        reader.report(Mistake::NotBuilt { key: "organism", feature: "gateway" }, node.span);
        return None;
    }
    let lock_file = lock_file(reader, &keys, name);
    let path = reader.directory.join(&lock_file.value);
    let lock = OrganismLock::read(&path, &name.value);
    reader.files.push(path);
    let lock = match lock {
        Ok(lock) => Some(lock),
        Err(error) => {
            let (file, listener, why) = (lock_file.value.clone(), name.value.clone(), error.to_string());
            reader.report(Mistake::OrganismLock { file, listener, why }, lock_file.span);
            None
        }
    };
    #[cfg_attr(not(feature = "gateway"), expect(unused_variables, reason = "it verifies no signature"))]
    let files = keys.keys.read(reader);
    #[cfg(feature = "gateway")]
    let keys = files.map(|files| super::organism::public_keys(reader, files));
    Some(OrganismListener {
        way: way?,
        lock: lock?,
        lock_file,
        #[cfg(feature = "gateway")]
        keys,
    })
}

/// Reads the way to another organism.
fn way(reader: &mut Reader, keys: &OrganismListenerKeys<'_>) -> Option<Way> {
    let url = keys.url.read(reader).map(str::to_owned);
    if let Some((url, span)) = url.as_ref().zip(keys.url.span())
        && let Err(problem) = remote::judge(url, true)
    {
        reader.report(Mistake::Url { problem, private: false }, span);
    }
    let token = keys.token_file.read(reader).map(|file| reader.directory.join(file));
    let certificates = keys.ca_file.read(reader).map(|file| reader.directory.join(file));
    Some(Way { url: url?, token: token?, certificates })
}

fn lock_file(reader: &mut Reader, keys: &OrganismListenerKeys<'_>, name: &At<Name>) -> At<String> {
    match keys.lock.read(reader).zip(keys.lock.span()) {
        Some((file, span)) => At { value: file.to_owned(), span },
        None => At { value: format!("{}.organism.json", name.value), span: keys.own.span },
    }
}

/// The behaviour of another organism's listener, unless its keys say otherwise: it is asked again after a restart, and may take
/// longer than the organism here runs.
pub(super) fn defaults(contract: &mut Contract) {
    contract.on_restart = OnRestart::AskAgain;
    contract.outlives = true;
}

impl OrganismListener {
    /// The settings of the listener.
    pub(super) fn settings(self) -> OrganismListenerSettings {
        let Way { url, token, certificates } = self.way;
        let settings = OrganismListenerSettings::new(url, token, self.lock).certificates(certificates);
        #[cfg(feature = "gateway")]
        let settings = settings.keys(self.keys);
        settings
    }
}

/// The listener of another organism.
pub(super) fn listener(name: At<Name>, mut contract: Contract, kind: Written) -> Listener {
    let Written::Organism(other) = &kind else { unreachable!("it is called for organisms alone") };
    let span = other.lock_file.span;
    contract.accepts = other.lock.accepts().collect();
    contract.replies = other.lock.replies();
    if contract.description.is_empty() {
        contract.description = other.lock.description();
    }
    let at = |list: &[QName]| list.iter().map(|qname| At { value: qname.clone(), span }).collect();
    let (accepts, replies) = (at(&contract.accepts), at(&contract.replies));
    let (called, calls, returned, returns, schemas) = (Vec::new(), Vec::new(), None, Vec::new(), Vec::new());
    Listener { name, accepts, replies, called, calls, returned, returns, schemas, contract, kind }
}

/// Adds the payloads of all other organisms, as their contracts declare them.
pub(super) fn declare(reader: &mut Reader, organism: &Organism, catalog: &mut Catalog) {
    for listener in &organism.listeners {
        let Written::Organism(other) = &listener.kind else { continue };
        let declared = match other.lock.contract.declared() {
            Ok(declared) => declared,
            Err(error) => {
                let (file, listener, why) =
                    (other.lock_file.value.clone(), listener.name.value.clone(), error.to_string());
                let mistake = match error {
                    DeclareError::Schema(error @ ContractError::Document { .. }) => Mistake::Schema(error),
                    _ => Mistake::OrganismLock { file, listener, why },
                };
                reader.report(mistake, other.lock_file.span);
                continue;
            }
        };
        for schema in declared {
            if let Err(error) = catalog.add(schema) {
                reader.report(Mistake::Schema(error), other.lock_file.span);
            }
        }
    }
}

/// Another organism of an `organism.yaml` whose contract may not have been imported yet.
#[derive(Debug)]
#[non_exhaustive]
pub struct OrganismImport {
    /// The URL of its gateway.
    pub url: String,
    /// The file with the token.
    pub token: PathBuf,
    /// The file with certificates to trust besides the roots of the system.
    pub certificates: Option<PathBuf>,
    /// The lock file.
    pub lock: PathBuf,
}

impl Config {
    /// The other organism of a listener, for the import of its contract: the rest of the file need not be right.
    ///
    /// # Errors
    /// The mistakes of the file and of that listener.
    pub fn other_organism(path: &Path, listener: &Name) -> Result<OrganismImport, Vec<ConfigFinding>> {
        let missing = Mistake::NoOtherOrganism { listener: listener.clone() };
        import_of(path, listener, ("organism", missing), |reader, name, node, _| {
            let keys = OrganismListenerKeys::open(reader, node)?;
            let way = way(reader, &keys);
            let lock = lock_file(reader, &keys, name);
            let Way { url, token, certificates } = way?;
            Some(OrganismImport { url, token, certificates, lock: reader.directory.join(lock.value) })
        })
    }
}
