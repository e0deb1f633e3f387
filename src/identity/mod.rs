//! The identity of an organism: the keys that sign what leaves it, and the keys of clients that must sign.
//!
//! Keys are those of ECDSA over P-256 with SHA-256, by ring. A key file is a JSON Web Key Set (RFC 7517) of the organism's own
//! keys, with their secrets; it has the mode 0600. The public parts of such a file, a set without secrets, are what others
//! verify by. A signature has the one form of [`ladder::signature`](systole_xml::ladder::signature); its key is looked up among
//! configured keys alone, never in the message.

mod key_file;
mod keys;
#[cfg(test)]
mod tests;
mod transcript;

pub use key_file::{IdentityError, KeyFile};
pub use keys::{PublicKey, PublicKeys, VerifyError};
pub use transcript::{
    Hash, HashError, TRANSCRIPT_START, TranscriptEnd, TranscriptFault, TranscriptReader, TranscriptWriter,
    is_transcript,
};

use std::fmt;

use bytes::Bytes;
use ring::digest::{SHA256, digest};
use ring::rand::SystemRandom;
use ring::signature::EcdsaKeyPair;
use systole_xml::ladder::signature::{self, DIGEST, POINT, SIGNATURE, SignatureError};

/// The key that signs what leaves an organism, and the public keys that verify it.
pub struct Identity {
    id: String,
    point: [u8; POINT],
    pair: EcdsaKeyPair,
    random: SystemRandom,
    keys: PublicKeys,
    jwks: String,
}

impl Identity {
    /// Signs a message: returns its canonical form with the signature.
    ///
    /// # Errors
    /// [`SignatureError`] for bytes that are no envelope with `<meta>`, have a signature, have a prefix that only values use, or
    /// are the head of a transcript, which [`TranscriptWriter`] signs.
    ///
    /// # Panics
    /// If the system has no random numbers.
    pub fn sign(&self, envelope: &Bytes) -> Result<Bytes, SignatureError> {
        signature::sign(envelope, (&self.id, &self.point), sha256, |bytes| self.sign_bytes(bytes))
    }

    /// Signs the head of a transcript that this program made, which [`sign`](Self::sign) refuses.
    fn sign_head(&self, envelope: &Bytes) -> Result<Bytes, SignatureError> {
        signature::sign_head(envelope, (&self.id, &self.point), sha256, |bytes| self.sign_bytes(bytes))
    }

    /// Signs bytes by ECDSA over P-256 with SHA-256: r, then s.
    pub(crate) fn sign_bytes(&self, bytes: &[u8]) -> [u8; SIGNATURE] {
        let signature = self.pair.sign(&self.random, bytes).expect("the system has random numbers");
        signature.as_ref().try_into().expect("a signature over P-256 has 64 bytes")
    }

    /// The id of the key that signs.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The public keys, those that are retired included.
    pub fn keys(&self) -> &PublicKeys {
        &self.keys
    }

    /// The public keys as a JSON Web Key Set (RFC 7517).
    pub fn jwks(&self) -> &str {
        &self.jwks
    }
}

impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Identity").field("id", &self.id).finish_non_exhaustive()
    }
}

pub(crate) fn sha256(bytes: &[u8]) -> [u8; DIGEST] {
    digest(&SHA256, bytes).as_ref().try_into().expect("SHA-256 has 32 bytes")
}
