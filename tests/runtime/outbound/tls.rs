//! HTTPS: with a certificate of an authority that is trusted, and with others.

use std::sync::Arc;

use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use systole::outbound::{Cause, Outbound, OutboundError};
use tokio::net::TcpListener;
use tokio::sync::{Notify, mpsc};
use tokio_rustls::TlsAcceptor;

use super::peer::OK;
use super::script::serve;
use super::setup::{Folder, deliver, delivery, options};

const AUTHORITY: &[u8] = include_bytes!("../../fixtures/tls/ca.pem");

/// A peer with a certificate for `localhost` and 127.0.0.1; its port.
async fn start() -> u16 {
    let certificate = CertificateDer::from_pem_slice(include_bytes!("../../fixtures/tls/cert.pem")).unwrap();
    let key = PrivateKeyDer::from_pem_slice(include_bytes!("../../fixtures/tls/key.pem")).unwrap();
    let config = ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()));
    let config = config.with_safe_default_protocol_versions().unwrap().with_no_client_auth();
    let acceptor = TlsAcceptor::from(Arc::new(config.with_single_cert(vec![certificate], key).unwrap()));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        let (requests, _kept) = mpsc::unbounded_channel();
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            if let Ok(stream) = acceptor.accept(stream).await {
                serve(stream, OK, requests.clone(), Arc::new(Notify::new())).await;
            }
        }
    });
    port
}

#[tokio::test]
async fn a_peer_is_believed_by_its_certificate() {
    let port = start().await;
    let folder = Folder::new();
    let outbound = folder.start(options().certificates(AUTHORITY.to_vec())).await;
    for (number, host) in (1..).zip(["localhost", "127.0.0.1"]) {
        deliver(&outbound, delivery(number, &format!("https://{host}:{port}/"))).await.unwrap();
    }
    // The address is that of the peer, the name is not.
    let error = deliver(&outbound, delivery(7, &format!("https://127.0.0.2:{port}/"))).await.unwrap_err();
    assert_eq!(error.cause, Cause::AttemptsExhausted, "{error}");
}

#[tokio::test]
async fn an_authority_that_nobody_knows_is_not_believed() {
    let port = start().await;
    let folder = Folder::new();
    let outbound = folder.start(options()).await;
    let error = deliver(&outbound, delivery(7, &format!("https://localhost:{port}/"))).await.unwrap_err();
    assert_eq!(error.cause, Cause::AttemptsExhausted, "{error}");
    assert!(error.message.contains("certificate"), "{error}");
}

#[tokio::test]
async fn what_is_no_certificate_is_refused() {
    for bad in ["no certificate", "-----BEGIN CERTIFICATE-----\nAAAA"] {
        let folder = Folder::new();
        let refused = Outbound::start(&folder.outbox(), options().certificates(bad.into())).await;
        assert!(matches!(refused.unwrap_err(), OutboundError::Certificates(_)), "{bad}");
    }
}
