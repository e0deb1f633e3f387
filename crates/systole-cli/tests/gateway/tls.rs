//! TLS at the entrance.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::sync::Arc;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned, SupportedProtocolVersion, version};
use serde_json::json;

use crate::kit::{Site, Who, answer, ask, organism};

/// A certificate of the tests: an authority's, or that for `localhost` and 127.0.0.1.
fn file(name: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/tls").join(name)
}

fn site(more: &str) -> Site {
    let mut site =
        Site::idle(&organism(&format!("requests: 1000000, tls: {{ cert: cert.pem, key: key.pem }}{more}"), "7d"));
    for name in ["ca.pem", "cert.pem", "key.pem"] {
        fs::copy(file(name), site.folder.join(name)).unwrap();
    }
    site.start();
    site
}

fn config(versions: &[&'static SupportedProtocolVersion]) -> ClientConfig {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(file("ca.pem")).unwrap()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider).with_protocol_versions(versions).unwrap();
    config.with_root_certificates(roots).with_no_client_auth()
}

fn connect(site: &Site, versions: &[&'static SupportedProtocolVersion]) -> StreamOwned<ClientConnection, TcpStream> {
    let name = ServerName::try_from("localhost").unwrap();
    let connection = ClientConnection::new(Arc::new(config(versions)), name).unwrap();
    StreamOwned::new(connection, TcpStream::connect(site.address).unwrap())
}

/// Reads a stream to its end, which it must have.
fn all(stream: &mut impl Read) -> String {
    let mut said = String::new();
    stream.read_to_string(&mut said).unwrap();
    said
}

#[test]
fn the_calls_are_served_by_both_versions() {
    let site = site("");
    let ada = site.token(&["ada"]);
    for version in [&version::TLS12, &version::TLS13] {
        let mut stream = connect(&site, &[version]);
        let body = ask(1);
        let head = format!("POST /v1/messages HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAuthorization: Bearer {ada}");
        write!(stream, "{head}\r\nContent-Length: {}\r\n\r\n{body}", body.len()).unwrap();
        let said = all(&mut stream);
        assert!(said.starts_with("HTTP/1.1 202 ") && said.contains("\"queued\""), "{said}");
    }
}

#[test]
fn a_client_that_checks_certificates_comes_in() {
    let site = site("");
    let url = format!("https://localhost:{}/livez", site.address.port());
    let client = |config: ClientConfig| {
        let client = reqwest::Client::builder().tls_backend_preconfigured(config).no_proxy().build().unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async { client.get(&url).send().await?.text().await })
    };
    assert_eq!(client(config(&[&version::TLS13])).unwrap(), json!({ "status": "ok" }).to_string());
    let nobody = ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()));
    let nobody = nobody.with_safe_default_protocol_versions().unwrap();
    client(nobody.with_root_certificates(RootCertStore::empty()).with_no_client_auth()).unwrap_err();
}

#[test]
fn a_renewed_certificate_is_in_force_for_the_next_connection() {
    let site = site("");
    // The reason why a client refuses the certificate that the server shows.
    let shown = || {
        let mut stream = connect(&site, &[&version::TLS13]);
        let sent = write!(stream, "GET /livez HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
        let said = sent.and_then(|()| stream.read_to_string(&mut String::new()));
        said.map(|_| ()).map_err(|error| error.to_string())
    };
    shown().unwrap();
    let replace = |from: &str, to: &str| {
        let new = site.folder.join("new");
        fs::copy(file(from), &new).unwrap();
        fs::rename(new, site.folder.join(to)).unwrap();
    };
    replace("expired.pem", "cert.pem");
    let refused = shown().unwrap_err();
    assert!(refused.contains("xpired"), "{refused}");
    // What can't be used leaves the one before in force: the expired one, then the good one.
    fs::write(site.folder.join("cert.pem"), "no certificate").unwrap();
    assert_eq!(shown().unwrap_err(), refused);
    replace("cert.pem", "cert.pem");
    shown().unwrap();
    fs::remove_file(site.folder.join("key.pem")).unwrap();
    shown().unwrap();
    replace("ca.pem", "key.pem");
    shown().unwrap();
    replace("key.pem", "key.pem");
    shown().unwrap();
    let log = site.log();
    assert_eq!(log.matches("the changed certificate is not used").count(), 3, "{log}");
    assert_eq!(log.matches("the renewed certificate has expired").count(), 1, "{log}");
    assert!(log.contains("2021-01-01T00:00:00Z"), "{log}");
}

#[test]
fn a_mailbox_is_a_websocket_by_tls_too() {
    let site = site("");
    let worker = site.token(&["worker"]);
    let mut stream = connect(&site, &[&version::TLS13]);
    let upgrade = "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\
                   Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==";
    let head = format!("GET /v1/mailboxes/worker/stream HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {worker}");
    write!(stream, "{head}\r\n{upgrade}\r\n\r\n").unwrap();
    let mut first = [0; 12];
    stream.read_exact(&mut first).unwrap();
    assert_eq!(&first, b"HTTP/1.1 101");
}

#[test]
fn whoever_speaks_plain_http_is_told_and_let_go() {
    let site = site("");
    let nobody = Who { address: site.address, token: String::new() };
    for body in [String::new(), "x".repeat(100_000)] {
        let mut stream = nobody.connect();
        write!(stream, "POST /v1/messages HTTP/1.1\r\nHost: x\r\nContent-Length: {}\r\n\r\n{body}", body.len())
            .unwrap();
        let said = all(&mut stream);
        assert!(said.starts_with("HTTP/1.1 400 ") && said.contains("connection: close"), "{said}");
        let said = said.split_once("\r\n\r\n").unwrap().1;
        assert_eq!(serde_json::from_str::<serde_json::Value>(said).unwrap()["code"], "tls");
    }
    answer(nobody.connect_and(b"GET /livez HTTP/1.1\r\nHost: x\r\n\r\n")).problem(400, "tls");
}

#[test]
fn what_is_no_handshake_ends_and_holds_nobody_up() {
    let site = site(", header_time: 300ms");
    let nobody = Who { address: site.address, token: String::new() };
    // Silent, torn in the middle, garbage behind a good beginning, garbage.
    let starts: [&[u8]; 5] =
        [b"", b"\x16\x03", b"\x16\x03\x01\x40\x00\x01", b"\x16\xff\xff\xff\xff\xff\xff", b"\0\0\0"];
    let slow: Vec<TcpStream> = starts.into_iter().cycle().take(100).map(|bytes| nobody.connect_and(bytes)).collect();
    let mut stream = connect(&site, &[&version::TLS13]);
    write!(stream, "GET /livez HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").unwrap();
    assert!(all(&mut stream).starts_with("HTTP/1.1 200 "));
    for mut stream in slow {
        let mut said = Vec::new();
        // However it ends, it does.
        let _ = stream.read_to_end(&mut said);
    }
    // The head of a request has a time limit, too.
    let mut stream = connect(&site, &[&version::TLS13]);
    write!(stream, "GET /livez HTTP/1.1\r\nHost").unwrap();
    let _ = stream.read_to_end(&mut Vec::new());
}

#[test]
fn files_that_can_not_be_used_are_refused_with_what_is_wrong() {
    let mut site = site("");
    site.stop();
    let written = fs::read_to_string(site.folder.join("organism.yaml")).unwrap();
    fs::write(site.folder.join("bad.pem"), "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n").unwrap();
    fs::write(site.folder.join("none.pem"), "hello").unwrap();
    for (organism, said) in [
        (written.replace("cert.pem", "no.pem"), "the certificate no.pem can't be used: No such file"),
        (written.replace("cert.pem", "none.pem"), "the certificate none.pem can't be used: the file has none"),
        (written.replace("cert.pem", "bad.pem"), "the certificate bad.pem can't be used: certificate 1 of 1"),
        (
            written.replace("cert.pem", &format!("{:?}", file("ca.pem"))),
            "can't be used: it does not belong to the certificate",
        ),
        (written.replace("key.pem", "none.pem"), "the private key none.pem can't be used: the file has none"),
        (written.replace("key.pem", "cert.pem"), "the private key cert.pem can't be used: the file has none"),
    ] {
        fs::write(site.folder.join("organism.yaml"), organism).unwrap();
        for args in [["check", "organism.yaml"], ["run", "organism.yaml"]] {
            let refused = site.systole(&args).stdin(std::process::Stdio::null()).output().unwrap();
            let error = String::from_utf8(refused.stderr).unwrap();
            assert!(!refused.status.success() && error.contains(said), "{said}: {error}");
            assert!(error.contains("[organism.yaml:3:"), "{error}");
        }
    }
}
