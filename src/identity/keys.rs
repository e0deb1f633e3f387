//! Public keys, and the verification of signatures by them.

use std::path::Path;
use std::sync::Arc;

use base64::prelude::{BASE64_STANDARD, BASE64_URL_SAFE_NO_PAD, Engine};
use ring::signature::{ECDSA_P256_SHA256_FIXED, UnparsedPublicKey};
use systole_core::core::CheckSignature;
use systole_core::vocab::Time;
use systole_xml::ladder::signature::{POINT, SignatureError, Signed};
use systole_xml::ladder::{Canonical, LadderError, Raw, parse};
use systole_xml::vocab::XmlLimits;

use super::key_file::{self, IdentityError};
use super::sha256;

/// A public key.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct PublicKey {
    /// The name of the key, which signatures have as `KeyName` and `kid`.
    pub id: String,
    /// The point of P-256, uncompressed.
    pub point: [u8; POINT],
    /// The time at which it was retired, if it was: it signs no more, and still verifies.
    pub retired: Option<Time>,
}

/// Public keys that signatures are verified by.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PublicKeys(Vec<PublicKey>);

/// Reason why a signature does not verify.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum VerifyError {
    /// The message has no signature of the one form.
    #[error(transparent)]
    Form(#[from] SignatureError),
    /// The bytes are no message.
    #[error("it can't be read: {0}")]
    Unreadable(String),
    /// The signature names a key that is not among the known ones, or shows another key under its name.
    #[error("its key '{0}' is none of those that it is verified by")]
    UnknownKey(String),
    /// The message is another one than was signed.
    #[error("the message was changed after it was signed by '{0}': its digest differs")]
    Changed(String),
    /// The signature was not made with its key.
    #[error("the signature was not made with the key '{0}', or was changed")]
    Mismatch(String),
}

systole_core::vocab::debug_is_display!(VerifyError);

impl PublicKey {
    /// The key as a JSON Web Key (RFC 7517, RFC 7518, section 6.2), without its secret.
    pub(super) fn jwk(&self) -> serde_json::Map<String, serde_json::Value> {
        let (x, y) = self.point[1..].split_at(32);
        let mut jwk = serde_json::Map::new();
        let members = [("kty", "EC"), ("crv", "P-256"), ("alg", "ES256"), ("use", "sig"), ("kid", &self.id)];
        jwk.extend(members.map(|(name, value)| (name.to_owned(), value.into())));
        jwk.insert("x".to_owned(), BASE64_URL_SAFE_NO_PAD.encode(x).into());
        jwk.insert("y".to_owned(), BASE64_URL_SAFE_NO_PAD.encode(y).into());
        if let Some(retired) = self.retired {
            jwk.insert("retired".to_owned(), retired.to_string().into());
        }
        jwk
    }

    /// The key as PEM (`SubjectPublicKeyInfo`, RFC 5480), as OpenSSL and xmlsec read it.
    pub fn pem(&self) -> String {
        // SEQUENCE { SEQUENCE { id-ecPublicKey, prime256v1 }, BIT STRING }.
        const HEAD: [u8; 26] = [
            0x30, 0x59, 0x30, 0x13, 0x06, 0x07, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01, 0x06, 0x08, 0x2a, 0x86, 0x48,
            0xce, 0x3d, 0x03, 0x01, 0x07, 0x03, 0x42, 0x00,
        ];
        let text = BASE64_STANDARD.encode([&HEAD[..], &self.point].concat());
        let (first, second) = text.split_at(64);
        format!("-----BEGIN PUBLIC KEY-----\n{first}\n{second}\n-----END PUBLIC KEY-----\n")
    }

    fn verifies(&self, bytes: &[u8], signature: &[u8]) -> bool {
        UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, &self.point).verify(bytes, signature).is_ok()
    }
}

impl PublicKeys {
    pub(super) fn new(keys: Vec<PublicKey>) -> Self {
        Self(keys)
    }

    /// Reads the keys of a JSON Web Key Set, as `systole key show` prints it.
    ///
    /// # Errors
    /// [`IdentityError`] has the reason. A file with secrets is refused: whoever verifies needs none.
    pub fn load(file: &Path) -> Result<Self, IdentityError> {
        key_file::public(file)
    }

    /// Adds the keys of another set.
    pub fn extend(&mut self, other: Self) {
        self.0.extend(other.0);
    }

    /// The keys.
    pub fn iter(&self) -> impl Iterator<Item = &PublicKey> {
        self.0.iter()
    }

    /// The key of an id.
    pub fn get(&self, id: &str) -> Option<&PublicKey> {
        self.0.iter().find(|key| key.id == id)
    }

    /// Verifies the signature of the bytes of a message. Returns the key that made it.
    ///
    /// # Errors
    /// [`VerifyError`] has the reason why the message is not as one of the keys signed it.
    pub fn verify_bytes(&self, raw: &Raw, limits: &XmlLimits) -> Result<&PublicKey, VerifyError> {
        let message = parse(raw, limits).map_err(|error: LadderError| VerifyError::Unreadable(error.to_string()))?;
        self.verify(raw, &message)
    }

    /// Verifies the signature of a message that was read. Returns the key that made it.
    ///
    /// # Errors
    /// As [`verify_bytes`](Self::verify_bytes).
    pub fn verify(&self, raw: &Raw, message: &Canonical) -> Result<&PublicKey, VerifyError> {
        let signed = Signed::open(raw, message)?;
        let key = self.0.iter().find(|key| key.id == signed.key && key.point == signed.point);
        let key = key.ok_or_else(|| VerifyError::UnknownKey(shown(&signed.key)))?;
        if !key.verifies(&signed.info, &signed.value) {
            return Err(VerifyError::Mismatch(key.id.clone()));
        }
        if sha256(&signed.content) != signed.digest {
            return Err(VerifyError::Changed(key.id.clone()));
        }
        Ok(key)
    }
}

impl CheckSignature for PublicKeys {
    fn check(&self, raw: &Raw, message: &Canonical) -> Result<(), Arc<str>> {
        self.verify(raw, message).map(drop).map_err(|error| error.to_string().into())
    }
}

/// The start of a name that a message gives.
fn shown(name: &str) -> String {
    name.chars().take(64).collect()
}
