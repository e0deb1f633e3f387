//! Settings of listeners that are other organisms, the contract that such an organism has with its client, and the lock file of
//! that contract: what it was when it was imported.
//!
//! They are plain values, which a program without the feature `gateway` may hold, too. `gateway` tells contracts, `federation`
//! runs such listeners.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use systole_core::vocab::{Amounts, Budget, Name, QName};
use systole_xml::schema::{ContractError, PayloadSchema, XsdDocument};

use super::mcp::{apart, shown};
use crate::settings::read_regular;

/// The number in a lock file that tells its form.
const FORM: u32 = 1;
/// Bytes of a contract, of its lock file, and of each of its schema files, at most.
pub(crate) const MOST: usize = 16 << 20;

/// A listener that is another organism.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct OrganismListenerSettings {
    /// The URL of its gateway.
    pub url: String,
    /// The file with the token of its client.
    pub token: PathBuf,
    /// The contract, as it was imported.
    pub lock: OrganismLock,
    /// The file with certificates to trust besides the roots of the system, as PEM.
    pub certificates: Option<PathBuf>,
    /// The keys of which one must sign each answer, if answers must be signed.
    #[cfg(feature = "gateway")]
    pub keys: Option<crate::identity::PublicKeys>,
}

impl OrganismListenerSettings {
    /// Settings of an organism whose answers need no signature.
    pub fn new(url: String, token: PathBuf, lock: OrganismLock) -> Self {
        Self {
            url,
            token,
            lock,
            certificates: None,
            #[cfg(feature = "gateway")]
            keys: None,
        }
    }

    /// Sets the file with certificates to trust besides the roots of the system.
    #[must_use]
    pub fn certificates(self, certificates: Option<PathBuf>) -> Self {
        Self { certificates, ..self }
    }

    /// Sets the keys of which one must sign each answer.
    #[cfg(feature = "gateway")]
    #[must_use]
    pub fn keys(self, keys: Option<crate::identity::PublicKeys>) -> Self {
        Self { keys, ..self }
    }
}

/// The contract of an organism with one of its clients: what the client may call, and what comes back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct OrganismContract {
    /// The organism.
    pub organism: String,
    /// The client.
    pub client: String,
    /// The payloads that the client may call, each with the listener that accepts it.
    pub payloads: Vec<CalledPayload>,
    /// The documents of each payload that is called or comes back.
    pub schemas: Vec<PayloadDocuments>,
    /// The documents that declare them, as their authors wrote them.
    pub documents: Vec<ContractDocument>,
}

/// A payload that a client may call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct CalledPayload {
    /// The payload: {namespace}local.
    pub payload: String,
    /// The listener that accepts it.
    pub listener: String,
    /// True if the listener is reached by its name alone.
    pub addressed: bool,
    /// The description of the listener.
    pub description: String,
    /// The payloads that the listener replies with.
    pub replies: Vec<String>,
}

/// The documents of a payload.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct PayloadDocuments {
    /// The payload: {namespace}local.
    pub payload: String,
    /// The place of the document that declares it among the documents of the contract, then those that this one leads to.
    pub documents: Vec<usize>,
}

/// A schema document of a contract.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct ContractDocument {
    /// The name of the file; one that ends with `.json` is a JSON Schema.
    pub name: String,
    /// The text.
    pub text: String,
}

impl OrganismContract {
    /// A contract without payloads.
    pub fn new(organism: &str, client: &Name) -> Self {
        Self {
            organism: organism.to_owned(),
            client: client.to_string(),
            payloads: Vec::new(),
            schemas: Vec::new(),
            documents: Vec::new(),
        }
    }

    /// Adds a payload that a listener accepts.
    pub fn add(&mut self, payload: &QName, listener: (&Name, bool), description: &str, replies: &[QName]) {
        let (listener, addressed) = (listener.0.to_string(), listener.1);
        let replies = replies.iter().map(QName::to_string).collect();
        let (payload, description) = (payload.to_string(), description.to_owned());
        self.payloads.push(CalledPayload { payload, listener, addressed, description, replies });
    }

    /// Adds the documents of a payload, once.
    pub fn declare(&mut self, schema: &PayloadSchema) {
        let payload = schema.qname().to_string();
        if self.schemas.iter().any(|known| known.payload == payload) {
            return;
        }
        let mut documents = Vec::new();
        for source in schema.sources() {
            // Its folder is nobody's business; a schema location is found by the name of the file, too.
            let name = source.name.rsplit(['/', '\\']).next().unwrap_or_default();
            let known = |one: &ContractDocument| one.name == name && *one.text == *source.text;
            documents.push(self.documents.iter().position(known).unwrap_or_else(|| {
                self.documents.push(ContractDocument { name: name.to_owned(), text: source.text.to_string() });
                self.documents.len() - 1
            }));
        }
        self.schemas.push(PayloadDocuments { payload, documents });
    }

    /// BLAKE3 of the whole contract, in hexadecimal digits: the same at both sides.
    pub fn hash(&self) -> String {
        let text = serde_json::to_vec(self).expect("the keys of the contract are texts");
        blake3::hash(&text).to_hex().to_string()
    }

    /// The schemas of the payloads, in their order: those of an XML Schema are compiled with the documents that they lead to.
    ///
    /// # Errors
    /// [`DeclareError`] for the first payload that its documents don't declare.
    pub fn declared(&self) -> Result<Vec<PayloadSchema>, DeclareError> {
        let mut made: BTreeMap<&[usize], Vec<PayloadSchema>> = BTreeMap::new();
        let mut all = Vec::new();
        for PayloadDocuments { payload, documents } in &self.schemas {
            let undeclared = || DeclareError::Undeclared { payload: payload.clone() };
            if !made.contains_key(&documents[..]) {
                let texts: Option<Vec<&ContractDocument>> =
                    documents.iter().map(|at| self.documents.get(*at)).collect();
                let texts = texts.filter(|texts| !texts.is_empty()).ok_or_else(undeclared)?;
                made.insert(documents, compiled(&texts)?);
            }
            let found = made[&documents[..]].iter().find(|schema| schema.qname().to_string() == *payload);
            all.push(found.cloned().ok_or_else(undeclared)?);
        }
        Ok(all)
    }

    /// The differences to the contract as it is now, a line each, none if there is no difference.
    pub fn differences(&self, now: &Self) -> Vec<String> {
        let mut found = Vec::new();
        if self.client != now.client {
            found.push(format!(
                "the token is that of the client {}, and was that of {}",
                shown(Some(&now.client)),
                self.client
            ));
        }
        if self.organism != now.organism {
            found.push(format!("the organism is {}, and was {}", shown(Some(&now.organism)), self.organism));
        }
        let same =
            |one: &CalledPayload, other: &CalledPayload| one.payload == other.payload && one.listener == other.listener;
        for was in &self.payloads {
            match now.payloads.iter().find(|is| same(was, is)) {
                None => found.push(format!("the payload {} of {} is gone", was.payload, was.listener)),
                Some(is) => was.differences(is, &mut found),
            }
        }
        for is in now.payloads.iter().filter(|is| !self.payloads.iter().any(|was| same(was, is))) {
            found.push(format!("the payload {} of {} is new", shown(Some(&is.payload)), shown(Some(&is.listener))));
        }
        let mut documents = Vec::new();
        for was in &self.schemas {
            let Some(is) = now.schemas.iter().find(|is| is.payload == was.payload) else { continue };
            let (was, is) = (self.documents_of(was), now.documents_of(is));
            for document in &was {
                match is.iter().find(|is| is.name == document.name) {
                    None => documents.push(format!("the schema {} is gone", document.name)),
                    Some(is) => documents.extend(document.difference(is)),
                }
            }
            let new = is.iter().filter(|is| !was.iter().any(|was| was.name == is.name));
            documents.extend(new.map(|is| format!("the schema {} is new", shown(Some(&is.name)))));
        }
        for difference in documents {
            if !found.contains(&difference) {
                found.push(difference);
            }
        }
        if found.is_empty() && self != now {
            found.push("the order of its payloads or schemas is another one".to_owned());
        }
        found
    }

    fn documents_of(&self, schema: &PayloadDocuments) -> Vec<&ContractDocument> {
        schema.documents.iter().filter_map(|at| self.documents.get(*at)).collect()
    }

    /// The payload of a name.
    pub fn payload(&self, payload: &QName) -> Option<&CalledPayload> {
        let name = payload.to_string();
        self.payloads.iter().find(|called| called.payload == name)
    }
}

impl CalledPayload {
    fn differences(&self, now: &Self, found: &mut Vec<String>) {
        let Self { payload, listener, .. } = self;
        if self.addressed != now.addressed {
            let how = |addressed| if addressed { "by its name alone" } else { "by its payload" };
            let (was, is) = (how(self.addressed), how(now.addressed));
            found.push(format!("{listener} was reached {was} for {payload}, and is {is}"));
        }
        if self.description != now.description {
            let (was, is) = apart(Some(&self.description), Some(&now.description));
            found.push(format!("the description of {listener} was {was}, and is {is}"));
        }
        if self.replies != now.replies {
            let (was, is) = (self.replies.join(", "), now.replies.join(", "));
            let (was, is) = (shown(Some(&was)), shown(Some(&is)));
            found.push(format!("{listener} replied to {payload} with {was}, and replies with {is}"));
        }
    }
}

impl ContractDocument {
    /// The first line that differs.
    fn difference(&self, now: &Self) -> Option<String> {
        if self.text == now.text {
            return None;
        }
        let (mut was, mut is) = (self.text.lines(), now.text.lines());
        for line in 1.. {
            match (was.next(), is.next()) {
                (None, None) => break,
                (was, is) if was == is => {}
                (was, is) => {
                    let (was, is) = apart(was.map(str::trim), is.map(str::trim));
                    return Some(format!("the schema {}: line {line} was {was}, and is {is}", self.name));
                }
            }
        }
        Some(format!("the schema {} has other line ends", self.name))
    }
}

fn compiled(documents: &[&ContractDocument]) -> Result<Vec<PayloadSchema>, ContractError> {
    match documents {
        [only] if only.name.ends_with(".json") => PayloadSchema::from_json_schema(&only.name, &only.text),
        all => {
            let document = |one: &&ContractDocument| XsdDocument { name: one.name.clone(), text: one.text.clone() };
            PayloadSchema::from_xsd_set(&all.iter().map(document).collect::<Vec<_>>())
        }
    }
}

/// The reason why a contract has no schemas.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum DeclareError {
    /// A document is no schema.
    #[error(transparent)]
    Schema(#[from] ContractError),
    /// No document declares a payload.
    #[error("no schema of the contract declares {payload}")]
    Undeclared {
        /// The payload.
        payload: String,
    },
}

systole_core::vocab::debug_is_display!(DeclareError);

/// The contract of an organism, as it was imported: a lock file, and a folder of schema files beside it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct OrganismLock {
    /// The contract.
    pub contract: OrganismContract,
    /// The hash of the contract.
    pub hash: String,
}

/// The text of a lock file.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    form: u32,
    listener: String,
    organism: String,
    client: String,
    /// BLAKE3 of the whole contract.
    contract: String,
    payloads: Vec<CalledPayload>,
    schemas: Vec<PayloadDocuments>,
    documents: Vec<WrittenDocument>,
}

/// A schema file that a lock file vouches for.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenDocument {
    file: String,
    blake3: String,
}

/// The reason why a lock file can't be used.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum OrganismLockError {
    /// The file, or a schema file, can't be read.
    #[error("{0} can't be read: {1}")]
    Unreadable(String, #[source] std::io::Error),
    /// The text is no lock file.
    #[error("it is no lock file of an organism: {0}")]
    NoLock(#[source] serde_json::Error),
    /// Another version of systole wrote it.
    #[error("it has the form {0}, which this version of systole does not read: run `systole organism import` again")]
    Form(u32),
    /// It belongs to another listener.
    #[error("it is that of the listener '{0}'")]
    Other(String),
    /// A schema file doesn't fit.
    #[error("{0} is not the file that was imported: its hash does not fit")]
    Document(String),
    /// The contract doesn't fit.
    #[error("it was changed by hand: its hash does not fit")]
    Edited,
}

systole_core::vocab::debug_is_display!(OrganismLockError);

impl OrganismLock {
    /// Makes the lock of a contract.
    pub fn new(contract: OrganismContract) -> Self {
        Self { hash: contract.hash(), contract }
    }

    /// The folder of the schema files of a lock file: `bank.organism` of `bank.organism.json`.
    pub fn folder(path: &Path) -> PathBuf {
        path.with_extension("")
    }

    /// Reads the lock file of a listener, and judges it and the schema files by their hashes.
    ///
    /// # Errors
    /// [`OrganismLockError`] if one of them can't be read, or was changed since the import.
    pub fn read(path: &Path, listener: &Name) -> Result<Self, OrganismLockError> {
        let read = |path: &Path, name: &str| {
            read_regular(path, MOST as u64).map_err(|error| OrganismLockError::Unreadable(name.to_owned(), error))
        };
        let text = read(path, "it")?;
        let written: Written = serde_json::from_slice(&text).map_err(OrganismLockError::NoLock)?;
        if written.form != FORM {
            return Err(OrganismLockError::Form(written.form));
        }
        if written.listener != listener.as_str() {
            return Err(OrganismLockError::Other(written.listener));
        }
        let folder = Self::folder(path);
        let mut documents = Vec::new();
        for WrittenDocument { file, blake3 } in written.documents {
            let path = folder.join(file_name(&file).ok_or(OrganismLockError::Edited)?);
            let text = read(&path, &path.display().to_string())?;
            if blake3::hash(&text).to_hex().as_str() != blake3 {
                return Err(OrganismLockError::Document(path.display().to_string()));
            }
            let text = String::from_utf8(text).map_err(|_| OrganismLockError::Document(path.display().to_string()))?;
            documents.push(ContractDocument { name: file, text });
        }
        let Written { organism, client, contract: hash, payloads, schemas, .. } = written;
        let contract = OrganismContract { organism, client, payloads, schemas, documents };
        match contract.hash() == hash {
            true => Ok(Self { contract, hash }),
            false => Err(OrganismLockError::Edited),
        }
    }

    /// The text of the lock file of a listener.
    pub fn to_text(&self, listener: &Name) -> String {
        let OrganismContract { organism, client, payloads, schemas, documents } = self.contract.clone();
        let written = |document: ContractDocument| WrittenDocument {
            blake3: blake3::hash(document.text.as_bytes()).to_hex().to_string(),
            file: document.name,
        };
        let written = Written {
            form: FORM,
            listener: listener.to_string(),
            organism,
            client,
            contract: self.hash.clone(),
            payloads,
            schemas,
            documents: documents.into_iter().map(written).collect(),
        };
        serde_json::to_string_pretty(&written).expect("the keys of a lock are texts") + "\n"
    }

    /// The payloads that may be called: those that one listener accepts.
    pub fn accepts(&self) -> impl Iterator<Item = QName> {
        let payloads = &self.contract.payloads;
        // A message doesn't say which one of several listeners is meant.
        let is_only =
            |called: &&CalledPayload| payloads.iter().filter(|one| one.payload == called.payload).count() == 1;
        payloads.iter().filter(is_only).filter_map(|called| called.payload.parse().ok())
    }

    /// The payloads that come back, each once.
    pub fn replies(&self) -> Vec<QName> {
        let mut replies: Vec<QName> = Vec::new();
        for reply in self.contract.payloads.iter().flat_map(|called| &called.replies) {
            if let Ok(reply) = reply.parse()
                && !replies.contains(&reply)
            {
                replies.push(reply);
            }
        }
        replies
    }

    /// The words of the other organism on its listeners, for a listener without a description of its own.
    pub fn description(&self) -> String {
        let mut words: Vec<&str> = Vec::new();
        for called in &self.contract.payloads {
            if !called.description.is_empty() && !words.contains(&&*called.description) {
                words.push(&called.description);
            }
        }
        words.join(" ")
    }
}

/// The name of a schema file, if it is one of a file beside others: the names come from another organism.
pub(crate) fn file_name(name: &str) -> Option<&str> {
    let is_plain = !name.is_empty()
        && name.len() <= 200
        && !name.starts_with('.')
        && !name.chars().any(|c| c.is_control() || matches!(c, '/' | '\\' | ':'));
    is_plain.then_some(name)
}

/// The correlation in an answer: the request that it answers, which its signature binds it to, and what was used for it. It is text
/// of the metadata element `correlation`: `blake3=… tokens=… cost=… calls=… threads=… key=…`.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Correlation {
    /// BLAKE3 of the body of the request, in hexadecimal digits.
    pub blake3: String,
    /// The idempotency key of the request.
    pub key: String,
    /// The amounts that were used, if the message had a budget.
    pub used: Option<Amounts>,
}

impl Correlation {
    /// Makes the correlation of a request.
    pub fn new(key: &str, digest: &[u8; 32], used: Option<Amounts>) -> Self {
        Self { blake3: blake3::Hash::from(*digest).to_hex().to_string(), key: key.to_owned(), used }
    }
}

impl fmt::Display for Correlation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "blake3={}", self.blake3)?;
        if let Some(used) = self.used {
            write!(f, " {}", Budget::from(used))?;
        }
        // Last: a key may have blanks.
        write!(f, " key={}", self.key)
    }
}

/// A text that is no correlation.
#[derive(Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("it is no correlation: `blake3=… tokens=… cost=… calls=… threads=… key=…` is one")]
pub struct NoCorrelation;

systole_core::vocab::debug_is_display!(NoCorrelation);

impl FromStr for Correlation {
    type Err = NoCorrelation;

    fn from_str(text: &str) -> Result<Self, NoCorrelation> {
        let (words, key) = text.split_once(" key=").ok_or(NoCorrelation)?;
        let words = words.strip_prefix("blake3=").ok_or(NoCorrelation)?;
        let (blake3, used) = words.split_once(' ').unwrap_or((words, ""));
        let used = match used {
            "" => None,
            used => Some(used.parse::<Budget>().map_err(|_| NoCorrelation)?.into()),
        };
        Ok(Self { blake3: blake3.to_owned(), key: key.to_owned(), used })
    }
}

#[cfg(test)]
mod tests {
    use systole_core::vocab::Millionths;

    use super::*;

    const PAY: &str = "<xs:schema xmlns:xs='http://www.w3.org/2001/XMLSchema' targetNamespace='urn:pay' elementFormDefault='qualified'>\n\
                       <xs:include schemaLocation='parts/amount.xsd'/>\n<xs:element name='pay' type='amount' xmlns='urn:pay'/>\n\
                       <xs:element name='paid' type='xs:string'/>\n</xs:schema>";
    const AMOUNT: &str = "<xs:schema xmlns:xs='http://www.w3.org/2001/XMLSchema' targetNamespace='urn:pay'>\
                          <xs:simpleType name='amount'><xs:restriction base='xs:integer'/></xs:simpleType></xs:schema>";
    const NOTE: &str = r#"{"$id": "urn:note", "$defs": {"note": {"type": "object", "properties":
                          {"any": {"anyOf": [{"type": "string"}, {"type": "integer"}]}}}}}"#;

    fn name(name: &str) -> Name {
        Name::parse(name).unwrap()
    }

    fn contract() -> OrganismContract {
        let document = |name: &str, text: &str| XsdDocument { name: name.to_owned(), text: text.to_owned() };
        let files = [document("schemas/pay.xsd", PAY), document("schemas/parts/amount.xsd", AMOUNT)];
        let schemas = PayloadSchema::from_xsd_set(&files).unwrap();
        let notes = PayloadSchema::from_json_schema("schemas/notes.json", NOTE).unwrap();
        let mut contract = OrganismContract::new("bank", &name("shop"));
        let payload = |text: &str| text.parse::<QName>().unwrap();
        contract.add(&payload("{urn:pay}pay"), (&name("till"), false), "Takes money.", &[payload("{urn:pay}paid")]);
        contract.add(&payload("{urn:note}note"), (&name("desk"), true), "", &[]);
        schemas.iter().chain(&notes).chain(&schemas).for_each(|schema| contract.declare(schema));
        contract
    }

    #[test]
    fn a_contract_has_each_document_once_and_its_schemas_are_those_of_the_other_side() {
        let contract = contract();
        let names: Vec<_> = contract.documents.iter().map(|document| &*document.name).collect();
        assert_eq!(names, ["pay.xsd", "amount.xsd", "notes.json"]);
        let declared = contract.declared().unwrap();
        let names: Vec<_> = declared.iter().map(|schema| schema.qname().to_string()).collect();
        assert_eq!(names, ["{urn:pay}pay", "{urn:pay}paid", "{urn:note}note"]);
        let again: OrganismContract = serde_json::from_str(&serde_json::to_string(&contract).unwrap()).unwrap();
        assert_eq!(again.hash(), contract.hash());
        let files =
            [PAY, AMOUNT].map(|text| XsdDocument { name: format!("{}.xsd", text.len()), text: text.to_owned() });
        let mut catalog = systole_xml::schema::Catalog::new();
        let renamed = files.map(|file| match file.text == AMOUNT {
            true => XsdDocument { name: "amount.xsd".to_owned(), ..file },
            false => file,
        });
        for schema in PayloadSchema::from_xsd_set(&renamed).unwrap().into_iter().chain(declared) {
            catalog.add(schema).unwrap();
        }
    }

    #[test]
    fn a_contract_without_a_declaration_has_no_schemas() {
        let mut missing = contract();
        missing.schemas[0].documents = vec![9];
        assert!(missing.declared().unwrap_err().to_string().contains("declares {urn:pay}pay"));
        missing.schemas[0].documents.clear();
        assert!(missing.declared().is_err());
        let mut other = contract();
        other.schemas[0].payload = "{urn:pay}other".to_owned();
        assert!(other.declared().unwrap_err().to_string().contains("{urn:pay}other"));
        let mut broken = contract();
        broken.documents[1].text = "<a/>".to_owned();
        assert!(broken.declared().is_err());
    }

    #[test]
    fn each_difference_is_told_once() {
        let was = contract();
        assert_eq!(was.differences(&was), Vec::<String>::new());
        let mut now = was.clone();
        now.payloads[0].description = "Takes your keys.".to_owned();
        now.payloads[0].replies.clear();
        now.payloads[1].listener = "post".to_owned();
        now.documents[1].text = AMOUNT.replace("xs:integer", "xs:decimal");
        now.client = "other".to_owned();
        let told = was.differences(&now);
        assert_eq!(told.len(), 6, "{told:#?}");
        assert_eq!(told[0], "the token is that of the client \"other\", and was that of shop");
        assert_eq!(told[1], "the description of till was \"Takes money.\", and is \"Takes your keys.\"");
        assert_eq!(told[2], "till replied to {urn:pay}pay with \"{urn:pay}paid\", and replies with \"\"");
        assert_eq!(told[3], "the payload {urn:note}note of desk is gone");
        assert_eq!(told[4], "the payload \"{urn:note}note\" of \"post\" is new");
        assert!(told[5].starts_with("the schema amount.xsd: line 1 was "), "{}", told[5]);
        let mut order = was.clone();
        order.payloads.swap(0, 1);
        assert_eq!(was.differences(&order).len(), 1);
    }

    #[test]
    fn a_lock_vouches_for_itself_and_for_its_schema_files() {
        let folder = std::env::temp_dir().join(format!("systole-lock-{}", std::process::id()));
        let path = folder.join("bank.organism.json");
        let schemas = OrganismLock::folder(&path);
        std::fs::create_dir_all(&schemas).unwrap();
        let (lock, bank) = (OrganismLock::new(contract()), name("bank"));
        let write = || {
            for document in &lock.contract.documents {
                std::fs::write(schemas.join(&document.name), &document.text).unwrap();
            }
            std::fs::write(&path, lock.to_text(&bank)).unwrap();
        };
        write();
        assert_eq!(OrganismLock::read(&path, &bank).unwrap(), lock);
        assert_eq!(lock.accepts().count(), 2);
        assert_eq!(lock.replies().len(), 1);
        assert_eq!(lock.description(), "Takes money.");
        assert!(OrganismLock::read(&path, &name("other")).unwrap_err().to_string().contains("listener 'bank'"));
        std::fs::write(schemas.join("pay.xsd"), PAY.replace("xs:string", "xs:token")).unwrap();
        assert!(OrganismLock::read(&path, &bank).unwrap_err().to_string().contains("pay.xsd is not the file"));
        write();
        std::fs::write(&path, lock.to_text(&bank).replace("Takes money.", "Takes all.")).unwrap();
        assert!(OrganismLock::read(&path, &bank).unwrap_err().to_string().contains("changed by hand"));
        std::fs::write(&path, lock.to_text(&bank).replace("\"file\": \"pay.xsd\"", "\"file\": \"../pay.xsd\""))
            .unwrap();
        assert!(matches!(OrganismLock::read(&path, &bank), Err(OrganismLockError::Edited)));
        std::fs::write(&path, lock.to_text(&bank).replace("\"form\": 1", "\"form\": 9")).unwrap();
        assert!(OrganismLock::read(&path, &bank).unwrap_err().to_string().contains("the form 9"));
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn a_correlation_is_read_as_it_was_written() {
        let used = Amounts { tokens: 20, cost: Millionths(1500), calls: 2, threads: 2 };
        for correlation in [Correlation::new("a key=b", &[7; 32], Some(used)), Correlation::new("k", &[0; 32], None)] {
            assert_eq!(correlation.to_string().parse(), Ok(correlation));
        }
        for wrong in ["", "key=a", "blake3=ab", "blake3=ab tokens=x key=a", "tokens=1 key=a"] {
            assert_eq!(wrong.parse::<Correlation>(), Err(NoCorrelation), "{wrong}");
        }
    }

    #[test]
    fn names_of_files_lead_nowhere_else() {
        assert_eq!(file_name("größe.json"), Some("größe.json"));
        for wrong in ["", ".", "..", ".hidden", "a/b.xsd", "a\\b.xsd", "c:x", "a\nb"] {
            assert_eq!(file_name(wrong), None, "{wrong:?}");
        }
    }
}
