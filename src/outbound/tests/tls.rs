//! HTTPS: with a certificate of an authority that is trusted, and with others.

use std::sync::Arc;

use hyper::Method;
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio::net::TcpListener;
use tokio::sync::{Notify, mpsc};
use tokio_rustls::TlsAcceptor;

use super::peer::OK;
use super::script::serve;
use crate::outbound::http::{Client, Request};
use crate::outbound::{OutboundError, tls, unanswered};

const AUTHORITY: &[u8] = include_bytes!("../../../tests/fixtures/tls/ca.pem");

/// A peer with a certificate for `localhost` and 127.0.0.1; its port.
async fn start() -> u16 {
    let certificate = CertificateDer::from_pem_slice(include_bytes!("../../../tests/fixtures/tls/cert.pem")).unwrap();
    let key = PrivateKeyDer::from_pem_slice(include_bytes!("../../../tests/fixtures/tls/key.pem")).unwrap();
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

/// The status of an answer, or the failure of the attempt.
async fn get(authority: &[u8], url: String) -> Result<u16, String> {
    let client = Client::unpooled(tls(authority).unwrap(), None);
    let answer = client.execute(Request::new(Method::GET, url.parse().unwrap())).await;
    answer.map(|answer| answer.status().as_u16()).map_err(|error| unanswered(&error).message)
}

#[tokio::test]
async fn a_peer_is_believed_by_its_certificate() {
    let port = start().await;
    for host in ["localhost", "127.0.0.1"] {
        assert_eq!(get(AUTHORITY, format!("https://{host}:{port}/")).await, Ok(200));
    }
    // The address is that of the peer, the name is not.
    get(AUTHORITY, format!("https://127.0.0.2:{port}/")).await.unwrap_err();
}

#[tokio::test]
async fn an_authority_that_nobody_knows_is_not_believed() {
    let port = start().await;
    let error = get(&[], format!("https://localhost:{port}/")).await.unwrap_err();
    assert!(error.contains("certificate"), "{error}");
}

#[test]
fn what_is_no_certificate_is_refused() {
    for bad in ["no certificate", "-----BEGIN CERTIFICATE-----\nAAAA"] {
        assert!(matches!(tls(bad.as_bytes()), Err(OutboundError::Certificates(_))), "{bad}");
    }
}
