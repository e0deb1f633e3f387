//! Files of keys: JSON Web Key Sets (RFC 7517), with secrets or without.

use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use base64::prelude::{BASE64_URL_SAFE_NO_PAD, Engine};
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair};
use serde_json::{Map, Value, json};
use systole_core::vocab::Time;
use systole_xml::ladder::signature::POINT;

use super::Identity;
use super::keys::{PublicKey, PublicKeys};
use crate::settings::read_regular;

/// Bytes of a file of keys.
const MOST: u64 = 1 << 20;
/// Most bytes of the id of a key.
const ID: usize = 256;
/// Bytes of a secret.
const SECRET: usize = 32;

/// Reason why keys can't be used.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum IdentityError {
    /// The file can't be read or written.
    #[error("{0}")]
    File(#[from] io::Error),
    /// Others than the owner may read or write a file of secrets.
    #[error("its mode is {mode:04o}: a file of secret keys is for its owner alone, so run `chmod 600` on it")]
    Mode {
        /// The permissions.
        mode: u32,
    },
    /// The file is no set of keys.
    #[error("it is no JSON Web Key Set of `systole key`: {0}")]
    Malformed(String),
    /// A key of the set can't be used.
    #[error("its key '{id}' can't be used: {why}")]
    Key {
        /// The id of the key.
        id: String,
        /// The reason.
        why: &'static str,
    },
    /// No key of the file signs.
    #[error("each of its keys is retired: make one with `systole key new`")]
    Retired,
    /// No key has that id.
    #[error("it has no key '{0}': `systole key list` shows its keys")]
    Unknown(String),
    /// A key was retired before.
    #[error("its key '{0}' is retired already")]
    RetiredBefore(String),
    /// A file of public keys holds a secret.
    #[error("it holds secret keys: give the output of `systole key show`, which has the public ones")]
    Secret,
}

systole_core::vocab::debug_is_display!(IdentityError);

/// A file of an organism's own keys. The last one that is not retired signs.
#[derive(Debug)]
pub struct KeyFile {
    path: PathBuf,
    keys: Vec<Entry>,
    /// The lock of whoever changes the file: that of its folder, since the file itself is replaced.
    _lock: Option<File>,
}

#[derive(Debug)]
struct Entry {
    public: PublicKey,
    /// None once it is retired.
    secret: Option<Secret>,
}

/// A secret, which is never shown.
struct Secret([u8; SECRET]);

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Secret(..)")
    }
}

impl KeyFile {
    /// Reads a file of keys.
    ///
    /// # Errors
    /// [`IdentityError`], also if the mode of the file lets others read or write it.
    pub fn load(path: &Path) -> Result<Self, IdentityError> {
        let mode = fs::metadata(path)?.mode() & 0o7777;
        if mode & 0o077 != 0 {
            return Err(IdentityError::Mode { mode });
        }
        Ok(Self { path: path.to_owned(), keys: read(&read_regular(path, MOST)?)?, _lock: None })
    }

    /// Reads a file of keys to change it, or begins one that is not there yet. Others who open one of the same folder wait until
    /// this value is dropped. Behind a symbolic link the file itself is changed.
    ///
    /// # Errors
    /// As [`load`](Self::load).
    pub fn open(path: &Path) -> Result<Self, IdentityError> {
        let is_missing = |error: &io::Error| error.kind() == io::ErrorKind::NotFound;
        let path = match fs::canonicalize(path) {
            Err(error) if is_missing(&error) => path.to_owned(),
            real => real?,
        };
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let lock = File::open(folder)?;
        lock.lock()?;
        match Self::load(&path) {
            Err(IdentityError::File(error)) if is_missing(&error) => {
                Ok(Self { path, keys: Vec::new(), _lock: Some(lock) })
            }
            loaded => Ok(Self { _lock: Some(lock), ..loaded? }),
        }
    }

    /// Adds a key to a file that was [opened](Self::open), which signs from the next start of the organism on, and writes the file. Its id is the date; further keys of one
    /// date have a number behind it.
    ///
    /// # Errors
    /// [`IdentityError`] if the file can't be written.
    pub fn add(&mut self, now: Time) -> Result<&PublicKey, IdentityError> {
        let date = now.to_string()[..10].to_owned();
        let number = |number: usize| if number == 1 { date.clone() } else { format!("{date}.{number}") };
        let is_free = |id: &String| self.keys.iter().all(|key| key.public.id != *id);
        let id = (1..).map(number).find(is_free).unwrap_or_default();
        let entry = generate(id)?;
        self.keys.push(entry);
        self.write()?;
        Ok(&self.keys[self.keys.len() - 1].public)
    }

    /// Retires a key of a file that was [opened](Self::open), and writes it: its secret is deleted, and it goes on verifying.
    ///
    /// # Errors
    /// [`IdentityError`] if there is no such key, it was retired before, or the file can't be written.
    pub fn retire(&mut self, id: &str, now: Time) -> Result<(), IdentityError> {
        let entry = self.keys.iter_mut().find(|key| key.public.id == id);
        let entry = entry.ok_or_else(|| IdentityError::Unknown(id.to_owned()))?;
        if entry.public.retired.is_some() {
            return Err(IdentityError::RetiredBefore(id.to_owned()));
        }
        entry.public.retired = Some(now);
        entry.secret = None;
        self.write()
    }

    /// The public keys, oldest first.
    pub fn keys(&self) -> PublicKeys {
        PublicKeys::new(self.keys.iter().map(|key| key.public.clone()).collect())
    }

    /// The id of the key that signs, if one does.
    pub fn signing(&self) -> Option<&str> {
        self.keys.iter().rfind(|key| key.secret.is_some()).map(|key| &*key.public.id)
    }

    /// The public keys as a JSON Web Key Set.
    pub fn jwks(&self) -> String {
        set(self.keys.iter().map(|key| key.public.jwk()))
    }

    /// The identity of an organism: the last key that is not retired signs.
    ///
    /// # Errors
    /// [`IdentityError::Retired`] if each key is.
    pub fn identity(self) -> Result<Identity, IdentityError> {
        let signing = self.keys.iter().rfind(|key| key.secret.is_some()).ok_or(IdentityError::Retired)?;
        let (id, point, pair) = (signing.public.id.clone(), signing.public.point, signing.pair()?);
        Ok(Identity { id, point, pair, random: SystemRandom::new(), keys: self.keys(), jwks: self.jwks() })
    }

    /// Replaces the file as a whole, so that none of its readers finds half of it.
    fn write(&self) -> Result<(), IdentityError> {
        let jwk = |key: &Entry| {
            let mut jwk = key.public.jwk();
            if let Some(secret) = &key.secret {
                jwk.insert("d".to_owned(), BASE64_URL_SAFE_NO_PAD.encode(secret.0.as_slice()).into());
            }
            jwk
        };
        let text = set(self.keys.iter().map(jwk));
        let mut beside = self.path.clone().into_os_string();
        beside.push(".systole-new");
        let beside = PathBuf::from(beside);
        // A file that an interrupted command left has no keys that anything was signed with.
        match fs::remove_file(&beside) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error.into()),
            _ => {}
        }
        let mut file = File::options().write(true).create_new(true).mode(0o600).open(&beside)?;
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        Ok(fs::rename(&beside, &self.path)?)
    }
}

impl Entry {
    fn pair(&self) -> Result<EcdsaKeyPair, IdentityError> {
        let (id, secret) = (self.public.id.clone(), self.secret.as_ref().ok_or(IdentityError::Retired)?);
        let (algorithm, random) = (&ECDSA_P256_SHA256_FIXED_SIGNING, SystemRandom::new());
        EcdsaKeyPair::from_private_key_and_public_key(algorithm, &secret.0, &self.public.point, &random)
            .map_err(|_| IdentityError::Key { id, why: "its secret `d` does not belong to its point `x`, `y`" })
    }
}

/// Draws a key.
fn generate(id: String) -> Result<Entry, IdentityError> {
    let no_random = || IdentityError::File(io::Error::other("the system has no random numbers"));
    let document = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &SystemRandom::new());
    let document = document.map_err(|_| no_random())?;
    // The secret stands behind a head of 36 bytes, and the point is last (RFC 5208, RFC 5915); `pair` checks both.
    let der = document.as_ref();
    let secret = der.get(36..36 + SECRET).and_then(|secret| secret.try_into().ok());
    let point = der.last_chunk::<POINT>().copied();
    let (Some(secret), Some(point)) = (secret, point) else {
        return Err(IdentityError::Key { id, why: "ring wrote it in another form than before" });
    };
    let entry = Entry { public: PublicKey { id, point, retired: None }, secret: Some(Secret(secret)) };
    entry.pair()?;
    Ok(entry)
}

/// Reads public keys, and refuses secrets.
pub(super) fn public(file: &Path) -> Result<PublicKeys, IdentityError> {
    let keys = read(&read_regular(file, MOST)?)?;
    if keys.iter().any(|key| key.secret.is_some()) {
        return Err(IdentityError::Secret);
    }
    Ok(PublicKeys::new(keys.into_iter().map(|key| key.public).collect()))
}

fn set(keys: impl Iterator<Item = Map<String, Value>>) -> String {
    let keys: Vec<Value> = keys.map(Value::Object).collect();
    let mut text = serde_json::to_string_pretty(&json!({ "keys": keys })).expect("the keys of all objects are texts");
    text.push('\n');
    text
}

fn read(bytes: &[u8]) -> Result<Vec<Entry>, IdentityError> {
    // An error of JSON quotes no value, so no secret.
    let set: Value = serde_json::from_slice(bytes).map_err(|error| IdentityError::Malformed(error.to_string()))?;
    let keys = set.get("keys").and_then(Value::as_array);
    let keys = keys.ok_or_else(|| IdentityError::Malformed("it has no list `keys`".to_owned()))?;
    let mut entries: Vec<Entry> = Vec::new();
    for key in keys {
        let entry = entry(key)?;
        if entries.iter().any(|known| known.public.id == entry.public.id) {
            return Err(IdentityError::Key { id: entry.public.id, why: "another one has the same `kid`" });
        }
        entries.push(entry);
    }
    if entries.is_empty() {
        return Err(IdentityError::Malformed("`keys` is empty".to_owned()));
    }
    Ok(entries)
}

/// Returns whether a point is one of the curve. The verification of signatures doesn't tell a key off the curve from a wrong
/// signature, but the agreement on keys begins with that check (SEC 1, section 3.2.2.1).
fn is_on_curve(point: &[u8; POINT]) -> bool {
    use ring::agreement::{ECDH_P256, EphemeralPrivateKey, UnparsedPublicKey, agree_ephemeral};
    let own = EphemeralPrivateKey::generate(&ECDH_P256, &SystemRandom::new());
    own.and_then(|own| agree_ephemeral(own, &UnparsedPublicKey::new(&ECDH_P256, point), |_| ())).is_ok()
}

fn entry(key: &Value) -> Result<Entry, IdentityError> {
    let text = |name: &str| key.get(name).and_then(Value::as_str);
    let is_id = |id: &&str| (1..=ID).contains(&id.len()) && !id.contains(char::is_control);
    let why = || IdentityError::Malformed(format!("a key has no `kid` of 1 to {ID} bytes without control characters"));
    let id = text("kid").filter(is_id).ok_or_else(why)?.to_owned();
    let refuse = |why| IdentityError::Key { id: id.clone(), why };
    if (text("kty"), text("crv")) != (Some("EC"), Some("P-256")) {
        return Err(refuse("`kty` must be EC and `crv` P-256"));
    }
    if text("alg").is_some_and(|algorithm| algorithm != "ES256") || text("use").is_some_and(|used| used != "sig") {
        return Err(refuse("`alg` must be ES256 and `use` sig"));
    }
    let number = |name: &str| -> Option<[u8; 32]> { BASE64_URL_SAFE_NO_PAD.decode(text(name)?).ok()?.try_into().ok() };
    let (Some(x), Some(y)) = (number("x"), number("y")) else {
        return Err(refuse("`x` and `y` must be 32 bytes in base64url"));
    };
    let mut point = [4; POINT];
    point[1..33].copy_from_slice(&x);
    point[33..].copy_from_slice(&y);
    let retired = match key.get("retired") {
        None => None,
        Some(at) => {
            let at = at.as_str().and_then(|at| at.parse().ok());
            Some(at.ok_or_else(|| refuse("`retired` must be a time of RFC 3339"))?)
        }
    };
    let secret = match key.get("d") {
        None => None,
        Some(_) => Some(Secret(number("d").ok_or_else(|| refuse("`d` must be 32 bytes in base64url"))?)),
    };
    if secret.is_some() && retired.is_some() {
        return Err(refuse("it is retired, and has its secret `d` yet: delete one of them"));
    }
    if !is_on_curve(&point) {
        return Err(refuse("`x` and `y` are no point of the curve P-256"));
    }
    let entry = Entry { public: PublicKey { id: id.clone(), point, retired }, secret };
    if entry.secret.is_some() {
        entry.pair()?;
    }
    Ok(entry)
}
