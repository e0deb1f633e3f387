//! Signatures of messages: `cargo bench --bench signatures`. Signing may take 60 microseconds for a message of 1 KB.

use bytes::Bytes;
use divan::counter::BytesCount;
use systole::identity::{Identity, KeyFile};
use systole::ladder::Raw;
use systole::vocab::{XmlLimits, ns};

fn main() {
    divan::main();
}

/// Elements in the payload of a message.
const SIZES: [usize; 3] = [1, 26, 1000];

fn identity() -> Identity {
    let file = std::env::temp_dir().join(format!("systole-bench-{}-keys", std::process::id()));
    let mut keys = KeyFile::open(&file).expect("the folder of temporary files is there");
    keys.add("2026-11-30T00:00:00Z".parse().expect("it is a time")).expect("the file can be written");
    std::fs::remove_file(&file).expect("it was written");
    keys.identity().expect("it has a key")
}

fn message(elements: usize) -> Bytes {
    let items: String = (0..elements).map(|number| format!("<item n=\"{number}\">text {number}</item>")).collect();
    format!(
        "<message xmlns=\"{}\"><meta><from>ada</from></meta><order xmlns=\"urn:o\">{items}</order></message>",
        ns::ENVELOPE
    )
    .into()
}

#[divan::bench(args = SIZES)]
fn sign(bencher: divan::Bencher<'_, '_>, elements: usize) {
    let (identity, message) = (identity(), message(elements));
    bencher.counter(BytesCount::new(message.len())).bench_local(|| identity.sign(&message));
}

#[divan::bench(args = SIZES)]
fn verify(bencher: divan::Bencher<'_, '_>, elements: usize) {
    let identity = identity();
    let signed = Raw::new(identity.sign(&message(elements)).expect("it is an envelope"));
    let limits = XmlLimits::default();
    let verify = || identity.keys().verify_bytes(&signed, &limits).map(drop);
    bencher.counter(BytesCount::new(signed.bytes().len())).bench_local(verify);
}
