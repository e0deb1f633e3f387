//! The TLS configuration of clients.

use std::sync::Arc;

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};
use rustls_platform_verifier::Verifier;

use super::error::OutboundError;

/// Makes a configuration of TLS 1.2 and 1.3 by ring that trusts the roots of the system and these, in PEM.
pub(crate) fn config(roots: &[u8]) -> Result<ClientConfig, OutboundError> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let failed = |error: rustls::Error| OutboundError::Http(error.to_string());
    let builder = ClientConfig::builder_with_provider(provider.clone()).with_safe_default_protocol_versions();
    let builder = builder.map_err(failed)?;
    let certificates = certificates(roots)?;
    let builder = match Verifier::new_with_extra_roots(certificates.iter().cloned(), provider) {
        Ok(verifier) => builder.dangerous().with_custom_certificate_verifier(Arc::new(verifier)),
        Err(error) => {
            tracing::warn!(%error, "the system has no root certificates: https works with those of the options only");
            let mut store = RootCertStore::empty();
            store.add_parsable_certificates(certificates);
            builder.with_root_certificates(store)
        }
    };
    Ok(builder.with_no_client_auth())
}

fn certificates(pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, OutboundError> {
    let read: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
    let certificates = read.map_err(|error| OutboundError::Certificates(error.to_string()))?;
    if certificates.is_empty() && !pem.is_empty() {
        return Err(OutboundError::Certificates("there is none".to_owned()));
    }
    Ok(certificates)
}
