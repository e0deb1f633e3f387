//! TLS of the gateway: its certificate and private key.

use std::path::PathBuf;

/// Certificate and private key of a gateway.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Tls {
    /// The file of the certificate chain, the gateway's own certificate first, in PEM.
    pub cert: PathBuf,
    /// The file of the private key, in PEM.
    pub key: PathBuf,
}

impl Tls {
    /// The files of a certificate chain and of its private key.
    pub fn new(cert: impl Into<PathBuf>, key: impl Into<PathBuf>) -> Self {
        Self { cert: cert.into(), key: key.into() }
    }
}

systole_core::vocab::setters!(Tls {
    cert: impl Into<PathBuf>,
    key: impl Into<PathBuf>,
});

#[cfg(feature = "gateway")]
pub use load::TlsProblem;

#[cfg(feature = "gateway")]
mod load {
    use std::path::Path;
    use std::sync::Arc;

    use rustls::pki_types::pem::{Error as PemError, PemObject};
    use rustls::pki_types::{CertificateDer, PrivateKeyDer};
    use rustls::{Error, InconsistentKeys, ServerConfig};

    use super::Tls;
    use crate::settings::read_regular;

    /// An unusable certificate or private key.
    #[derive(Clone, PartialEq, Eq, thiserror::Error)]
    #[non_exhaustive]
    pub enum TlsProblem {
        /// The certificate can't be used.
        #[error("the certificate can't be used: {0}")]
        Cert(String),
        /// The private key can't be used.
        #[error("the private key can't be used: {0}")]
        Key(String),
    }

    systole_core::vocab::debug_is_display!(TlsProblem);

    impl Tls {
        /// Builds TLS 1.2 and 1.3 by ring, for HTTP/1.1, from the present contents of the files.
        ///
        /// # Errors
        /// [`TlsProblem`] says which file can't be used, and why.
        pub(crate) fn load(&self) -> Result<ServerConfig, TlsProblem> {
            let (cert, key) = (TlsProblem::Cert, TlsProblem::Key);
            let chain: Vec<_> = parse(&self.cert, |pem| CertificateDer::pem_slice_iter(pem).collect()).map_err(cert)?;
            if chain.is_empty() {
                return Err(cert(told(&PemError::NoItemsFound)));
            }
            let private = parse(&self.key, PrivateKeyDer::from_pem_slice).map_err(key)?;
            let provider = Arc::new(rustls::crypto::ring::default_provider());
            provider.key_provider.load_private_key(private.clone_key()).map_err(|error| key(error.to_string()))?;
            let builder = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
            let builder = builder.map_err(|error| cert(error.to_string()))?.with_no_client_auth();
            let mut config = builder.with_single_cert(chain, private).map_err(|error| match error {
                Error::InconsistentKeys(InconsistentKeys::KeyMismatch) => {
                    key("it does not belong to the certificate".to_owned())
                }
                other => cert(other.to_string()),
            })?;
            config.alpn_protocols = vec![b"http/1.1".to_vec()];
            Ok(config)
        }
    }

    /// Bytes of a file with certificates or a key.
    const MOST: u64 = 16 << 20;

    fn parse<T>(file: &Path, read: impl FnOnce(&[u8]) -> Result<T, PemError>) -> Result<T, String> {
        let bytes = read_regular(file, MOST).map_err(|error| error.to_string())?;
        read(&bytes).map_err(|error| told(&error))
    }

    /// Describes the error without quoting the file, which may hold a secret.
    fn told(error: &PemError) -> String {
        match error {
            PemError::NoItemsFound => "the file has none (expected PEM without a password)",
            PemError::MissingSectionEnd { .. } => "the PEM line `-----END` is missing",
            PemError::IllegalSectionStart { .. } => "the PEM line `-----BEGIN` is malformed",
            PemError::Base64Decode(_) => "its base64 is invalid",
            _ => "it is not PEM",
        }
        .to_owned()
    }
}
