//! A provider behind TLS, with a certificate of an own authority, and a proxy before it.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};

use crate::kit::{Scratch, has};

const TLS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/fixtures/tls");

/// Starts a provider with a certificate for `localhost`; its port.
fn provider() -> u16 {
    let read = |name: &str| fs::read(format!("{TLS}/{name}")).unwrap();
    let certificate = CertificateDer::from_pem_slice(&read("cert.pem")).unwrap();
    let key = PrivateKeyDer::from_pem_slice(&read("key.pem")).unwrap();
    let config = ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()));
    let config = config.with_safe_default_protocol_versions().unwrap().with_no_client_auth();
    let config = Arc::new(config.with_single_cert(vec![certificate], key).unwrap());
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let tls = StreamOwned::new(ServerConnection::new(config.clone()).unwrap(), stream.unwrap());
            // A client that refuses the certificate goes away.
            std::thread::spawn(move || answer(tls));
        }
    });
    port
}

fn answer(mut tls: StreamOwned<ServerConnection, TcpStream>) -> std::io::Result<()> {
    let mut reader = BufReader::new(&mut tls);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if reader.read_line(&mut head)? == 0 {
            return Ok(());
        }
    }
    let length = head.lines().find_map(|line| line.to_ascii_lowercase().strip_prefix("content-length: ")?.parse().ok());
    reader.read_exact(&mut vec![0; length.unwrap_or(0)])?;
    let body = r#"{"choices":[{"message":{"content":"<say xmlns='urn:t'>hello</say>"},"finish_reason":"stop"}]}"#;
    write!(tls, "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}", body.len())?;
    tls.flush()
}

/// Starts a proxy that opens tunnels; its URL, and the heads of what it was asked.
fn proxy() -> (String, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let heads: Arc<Mutex<Vec<String>>> = Arc::default();
    let noted = heads.clone();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let noted = noted.clone();
            std::thread::spawn(move || stream.and_then(|stream| tunnel(stream, &noted)));
        }
    });
    (url, heads)
}

fn tunnel(mut client: TcpStream, heads: &Mutex<Vec<String>>) -> std::io::Result<()> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        client.read_exact(&mut byte)?;
        head.extend(byte);
    }
    let head = String::from_utf8(head).unwrap();
    let target = head.split(' ').nth(1).unwrap_or_default().to_owned();
    heads.lock().unwrap().push(head);
    let mut server = TcpStream::connect(target)?;
    write!(client, "HTTP/1.1 200 Connection established\r\n\r\n")?;
    let (mut from, mut to) = (client.try_clone()?, server.try_clone()?);
    std::thread::spawn(move || std::io::copy(&mut from, &mut to));
    std::io::copy(&mut server, &mut client).map(drop)
}

#[test]
fn a_provider_behind_a_proxy_is_believed_by_the_certificates_of_its_backend() {
    let port = provider();
    let schema = r#"<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema" targetNamespace="urn:t">
      <xs:element name="do" type="xs:string"/><xs:element name="say" type="xs:string"/></xs:schema>"#;
    for (number, is_proxied, is_trusted) in [(0, false, true), (1, true, true), (2, true, false)] {
        let (url, heads) = proxy();
        let folder = Scratch::new(&format!("model-tls-{number}"));
        let proxy = if is_proxied { format!(", proxy: \"{url}\"") } else { String::new() };
        let trust = if is_trusted { format!(", ca_file: \"{TLS}/ca.pem\"") } else { String::new() };
        let organism = format!(
            "organism: {{ name: tls }}\n\
             clients: [{{ name: cli, calls: ['{{urn:t}}do'] }}]\n\
             llm: {{ backends: [{{ name: main, provider: openai, model: m, url: \"https://localhost:{port}/v1\", \
                    stream: false{proxy}{trust} }}] }}\n\
             listeners: [{{ name: one, description: d, model: {{ instructions: Speak. }}, schemas: [t.xsd], \
                    accepts: ['{{urn:t}}do'], replies: ['{{urn:t}}say'] }}]\n"
        );
        for (name, text) in [("organism.yaml", &*organism), ("t.xsd", schema), ("do.xml", "<do xmlns='urn:t'/>")] {
            fs::write(folder.join(name), text).unwrap();
        }
        let mut command = Command::new(env!("CARGO_BIN_EXE_systole"));
        command.args(["run", "organism.yaml", "do.xml", "--until-idle", "--json"]).current_dir(&*folder);
        let output = command.stdin(Stdio::null()).output().unwrap();
        let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        let heads = heads.lock().unwrap().clone();
        assert_eq!(heads.len(), usize::from(is_proxied), "{err}");
        for head in heads {
            has(&head, &[&format!("CONNECT localhost:{port} HTTP/1.1\r\n")]);
        }
        match is_trusted {
            true => has(&out, &[">hello</say>"]),
            false => {
                has(&out, &["<code>listener-failed</code>"]);
                has(&err, &["certificate"]);
            }
        }
    }
}
