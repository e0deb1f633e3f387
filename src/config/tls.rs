//! `tls:` of a gateway: the files of its certificate and its key.

use super::document::Node;
use super::keys::{Text, mapping};
use super::reader::{At, Reader};
use crate::settings::Tls;

mapping! {
    /// Files of a certificate and its key.
    TlsKeys: Tls {
        /// File of the certificate, relative to this file.
        cert: Text, of "tls";
        /// File of its private key.
        key: Text, of "tls";
    }
}

/// Reads the value of `tls:`, and the files.
pub(super) fn read(reader: &mut Reader, node: &Node) -> Option<Tls> {
    let keys = TlsKeys::open(reader, node)?;
    let [cert, key] = [keys.cert, keys.key].map(|file| Some(At { value: file.read(reader)?, span: file.span()? }));
    let (cert, key) = (cert?, key?);
    let tls = Tls { cert: reader.directory.join(cert.value), key: reader.directory.join(key.value) };
    look(reader, &tls, &cert, &key);
    Some(tls)
}

#[cfg(feature = "gateway")]
fn look(reader: &mut Reader, tls: &Tls, cert: &At<&str>, key: &At<&str>) {
    use super::Mistake;
    use crate::settings::TlsProblem;
    let (what, at, why) = match tls.load() {
        Ok(_) => {
            if let Some(until) = tls.expires().filter(|until| *until <= soon()) {
                reader.report(Mistake::Expires { path: cert.value.into(), until }, cert.span);
            }
            return;
        }
        Err(TlsProblem::Cert(why)) => ("certificate", cert, why),
        Err(TlsProblem::Key(why)) => ("private key", key, why),
    };
    reader.report(Mistake::File { what, path: at.value.into(), why }, at.span);
}

/// The time before which a certificate has to be replaced: in two weeks.
#[cfg(feature = "gateway")]
fn soon() -> systole_core::vocab::Time {
    const NOTICE: std::time::Duration = std::time::Duration::from_secs(14 * 86_400);
    systole_store::clock::Clock::real().now().after(NOTICE)
}

/// A program that was built without its gateway has no TLS.
#[cfg(not(feature = "gateway"))]
fn look(_: &mut Reader, _: &Tls, _: &At<&str>, _: &At<&str>) {}
