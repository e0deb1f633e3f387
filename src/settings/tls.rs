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
    use rustls::server::ParsedCertificate;
    use rustls::{CertificateError, Error, InconsistentKeys, ServerConfig};
    use systole_core::vocab::Time;

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
            // The server would send those behind its own to each client without a look at them.
            if let Some(damaged) = chain.iter().position(|certificate| !is_certificate(certificate)) {
                let (number, all) = (damaged + 1, chain.len());
                return Err(cert(format!(
                    "certificate {number} of {all} in the file is damaged: its PEM does not hold a certificate (X.509)"
                )));
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

    impl Tls {
        /// The end of the first certificate that expires, of a chain that [`load`](Self::load) takes.
        pub(crate) fn expires(&self) -> Option<Time> {
            self.validity().map(|(_, end)| end)
        }

        /// The times from which and up to which all certificates are valid, of a chain that [`load`](Self::load) takes.
        pub(crate) fn validity(&self) -> Option<(Time, Time)> {
            let chain: Vec<CertificateDer<'_>> =
                parse(&self.cert, |pem| CertificateDer::pem_slice_iter(pem).collect()).ok()?;
            let times = chain.iter().filter_map(|certificate| validity(certificate));
            times.reduce(|(from, until), (begin, end)| (from.max(begin), until.min(end)))
        }
    }

    /// Returns whether bytes are a certificate. A version or an extension that rustls doesn't know is no damage: the clients
    /// judge it.
    fn is_certificate(certificate: &CertificateDer<'_>) -> bool {
        let damaged = Error::InvalidCertificate(CertificateError::BadEncoding);
        validity(certificate).is_some() && ParsedCertificate::try_from(certificate).err() != Some(damaged)
    }

    /// The begin and the end of the validity of a certificate (RFC 5280, 4.1); `None` if it is no certificate.
    fn validity(certificate: &[u8]) -> Option<(Time, Time)> {
        const SEQUENCE: u8 = 0x30;
        const VERSION: u8 = 0xa0;
        let (_, certificate, _) = element(certificate)?;
        let (_, mut rest, _) = element(certificate)?;
        // Serial number, algorithm and issuer stand before the validity, and the version before those, if there is one.
        let mut before = 3;
        while before > 0 {
            let (tag, _, behind) = element(rest)?;
            before -= usize::from(tag != VERSION);
            rest = behind;
        }
        let (_, times, _) = element(rest).filter(|(tag, ..)| *tag == SEQUENCE)?;
        let (begin_tag, begin, rest) = element(times)?;
        let (end_tag, end, _) = element(rest)?;
        Some((time(begin_tag, str::from_utf8(begin).ok()?)?, time(end_tag, str::from_utf8(end).ok()?)?))
    }

    /// Splits the first element off DER: its tag, its content, and what follows it.
    fn element(der: &[u8]) -> Option<(u8, &[u8], &[u8])> {
        let (&[tag, first], mut rest) = der.split_first_chunk()?;
        let mut length = usize::from(first);
        if first >= 0x80 {
            let (digits, behind) = rest.split_at_checked(usize::from(first & 0x7f))?;
            // A certificate has fewer bytes than three such digits count.
            length = if digits.len() > 3 {
                return None;
            } else {
                digits.iter().fold(0, |all, &digit| all << 8 | usize::from(digit))
            };
            rest = behind;
        }
        let (content, behind) = rest.split_at_checked(length)?;
        Some((tag, content, behind))
    }

    /// Parses a `UTCTime`, whose years go from 1950 to 2049, or a `GeneralizedTime`.
    fn time(tag: u8, text: &str) -> Option<Time> {
        const UTC_TIME: u8 = 0x17;
        const GENERALIZED_TIME: u8 = 0x18;
        let (year, rest) = match tag {
            UTC_TIME => {
                let (year, rest) = text.split_at_checked(2)?;
                (if year < "50" { format!("20{year}") } else { format!("19{year}") }, rest)
            }
            GENERALIZED_TIME => text.split_at_checked(4).map(|(year, rest)| (year.to_owned(), rest))?,
            _ => return None,
        };
        let part = |at: usize| rest.get(at..at + 2);
        let [month, day, hour, minute, second] = [part(0)?, part(2)?, part(4)?, part(6)?, part(8)?];
        format!("{year}-{month}-{day}T{hour}:{minute}:{second}Z").parse().ok()
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

    #[cfg(test)]
    mod tests {
        use super::*;

        fn fixture(name: &str) -> Tls {
            let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/tls");
            Tls::new(folder.join(name), folder.join("key.pem"))
        }

        #[test]
        fn a_chain_is_refused_if_one_of_its_certificates_is_damaged() {
            let folder = std::env::temp_dir().join(format!("systole-test-{}-chain", std::process::id()));
            std::fs::create_dir_all(&folder).unwrap();
            let pem = |name: &str| std::fs::read_to_string(fixture(name).cert).unwrap();
            let (own, authority) = (pem("cert.pem"), pem("ca.pem"));
            let chain = Tls { cert: folder.join("chain.pem"), ..fixture("cert.pem") };
            let load = |text: &str| {
                std::fs::write(&chain.cert, text).unwrap();
                chain.load().map(drop).map_err(|problem| problem.to_string())
            };
            assert_eq!(load(&format!("{own}{authority}")), Ok(()));
            let zeros = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
            // A line of the base64 is missing.
            let lines: Vec<&str> = authority.lines().filter(|line| !line.is_empty()).collect();
            let cut = authority.replace(&format!("{}\n", lines[2]), "");
            for (text, number) in [
                (format!("{own}{zeros}"), "certificate 2 of 2 "),
                (format!("{own}{authority}{zeros}"), "certificate 3 of 3 "),
                (format!("{zeros}{own}"), "certificate 1 of 2 "),
                (format!("{own}{cut}"), "certificate 2 of 2 "),
            ] {
                let refused = load(&text).unwrap_err();
                assert!(refused.contains(number) && refused.contains("is damaged"), "{refused}");
            }
            std::fs::remove_dir_all(&folder).unwrap();
        }

        #[test]
        fn the_end_of_a_certificate_is_read_in_both_forms() {
            for (name, end) in [("cert.pem", "2120-01-01T00:00:00Z"), ("expired.pem", "2021-01-01T00:00:00Z")] {
                assert_eq!(fixture(name).expires(), Some(end.parse().unwrap()), "{name}");
            }
        }

        #[test]
        fn a_certificate_that_is_cut_anywhere_has_no_end_and_no_panic() {
            let pem = std::fs::read(fixture("cert.pem").cert).unwrap();
            let whole = CertificateDer::from_pem_slice(&pem).unwrap();
            assert!((0..whole.len()).all(|length| validity(&whole[..length]).is_none()));
            for at in 0..whole.len() {
                let mut other = whole.to_vec();
                other[at] ^= 0xff;
                // Another end, or none.
                let _ = validity(&other);
            }
        }
    }
}
