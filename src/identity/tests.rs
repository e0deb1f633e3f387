//! Keys and signatures, and attacks on them.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use base64::prelude::{BASE64_STANDARD, Engine};
use bytes::Bytes;
use systole_core::vocab::Time;
use systole_xml::ladder::Raw;
use systole_xml::ladder::signature::SignatureError;
use systole_xml::vocab::{XmlLimits, ns};

use super::{Identity, IdentityError, KeyFile, PublicKeys, VerifyError, sha256};

const E: &str = ns::ENVELOPE;
const DS: &str = ns::DSIG;
const SHA256: &str = "http://www.w3.org/2001/04/xmlenc#sha256";
const ECDSA: &str = "http://www.w3.org/2001/04/xmldsig-more#ecdsa-sha256";
const C14N: &str = "http://www.w3.org/2001/10/xml-exc-c14n#";

/// A folder that is gone with the value.
pub(super) struct Folder(PathBuf);

impl Folder {
    pub(super) fn new(test: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("systole-test-{}-identity-{test}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        Self(folder)
    }

    fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    pub(super) fn identity(&self, name: &str) -> Identity {
        KeyFile::open(&self.file(name)).unwrap().add(day("2026-11-30")).unwrap();
        KeyFile::load(&self.file(name)).unwrap().identity().unwrap()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn day(date: &str) -> Time {
    format!("{date}T12:00:00Z").parse().unwrap()
}

fn unsigned() -> String {
    format!(
        "<message xmlns=\"{E}\"><meta><from>ada</from><to>bank</to></meta><pay \
         xmlns=\"urn:bank\"><amount>10</amount><to>bob</to></pay></message>"
    )
}

fn signed(identity: &Identity) -> String {
    String::from_utf8(identity.sign(&unsigned().into()).unwrap().into()).unwrap()
}

fn verify(keys: &PublicKeys, text: &str) -> Result<String, VerifyError> {
    keys.verify_bytes(&Raw::new(text.to_owned()), &XmlLimits::default()).map(|key| key.id.clone())
}

/// The text with one edit, which must have an effect.
fn edit(text: &str, from: &str, to: &str) -> String {
    assert!(text.contains(from), "there is no {from} in {text}");
    text.replacen(from, to, 1)
}

/// The signature in a message.
fn signature(text: &str) -> &str {
    let start = text.find("<ds:Signature ").unwrap();
    &text[start..text.find("</ds:Signature>").unwrap() + "</ds:Signature>".len()]
}

/// The part of a text from one mark to another, with both.
fn part<'a>(text: &'a str, from: &str, to: &str) -> &'a str {
    let start = text.find(from).unwrap();
    &text[start..start + text[start..].find(to).unwrap() + to.len()]
}

#[test]
fn a_signed_message_verifies_in_every_spelling_of_it() {
    let folder = Folder::new("spellings");
    let ada = folder.identity("ada");
    let text = signed(&ada);
    let value = part(&text, "<ds:SignatureValue>", "</ds:SignatureValue>");
    let broken = format!("{}\n{}", &value[..60], &value[60..]);
    for same in [
        text.clone(),
        format!("<?xml version='1.0' encoding='UTF-8'?>\n{text}\n"),
        edit(&text, "<amount>10</amount>", "<amount><![CDATA[10]]></amount>"),
        edit(&text, "<amount>10</amount>", "<amount>&#49;0</amount>"),
        edit(&text, "></ds:SignatureMethod>", "/>"),
        edit(&text, "xmlns=\"urn:bank\"", "  xmlns='urn:bank' "),
        edit(&text, value, &broken),
        edit(&text, "</ds:SignedInfo>", "</ds:SignedInfo>\n  "),
    ] {
        assert_eq!(verify(ada.keys(), &same), Ok("2026-11-30".to_owned()), "{same}");
    }
    assert_eq!(
        ada.sign(&text.clone().into()).unwrap_err().to_string(),
        "<meta> has a second element of XML Signature: keep the one signature"
    );
    assert!(ada.sign(&Bytes::from_static(b"<a/>")).is_err());
    let valued = edit(&unsigned(), "<amount>10<", "<amount xmlns:q=\"urn:q\">q:10<");
    assert_eq!(ada.sign(&valued.into()).unwrap_err(), SignatureError::NotCovered);
    let prefixed = format!("<e:message xmlns:e=\"{E}\"><e:meta/><a/></e:message>");
    let prefixed = ada.sign(&prefixed.into()).unwrap();
    assert!(verify(ada.keys(), std::str::from_utf8(&prefixed).unwrap()).is_ok());
}

#[test]
fn attacks_are_refused() {
    let folder = Folder::new("attacks");
    let (ada, eve) = (folder.identity("ada"), folder.identity("eve"));
    let (text, by_eve) = (signed(&ada), signed(&eve));
    let own = signature(&text).to_owned();
    let bare = edit(&text, &own, "");
    assert_eq!(bare, unsigned());
    let to = |from: &str, to: &str| edit(&text, from, to);
    let algorithm = |from: &str, other: &str| edit(&text, &format!("\"{from}\""), &format!("\"{other}\""));
    let transforms = part(&text, "<ds:Transforms>", "</ds:Transforms>").to_owned();
    let enveloped = part(&text, "<ds:Transform ", "</ds:Transform>").to_owned();
    let reference = part(&text, "<ds:Reference ", "</ds:Reference>").to_owned();
    let info = part(&text, "<ds:SignedInfo>", "</ds:SignedInfo>").to_owned();
    let digest = part(&text, "<ds:DigestValue>", "</ds:DigestValue>").to_owned();
    let value = part(&text, "<ds:SignatureValue>", "</ds:SignatureValue>").to_owned();
    let key_name = part(&text, "<ds:KeyName>", "</ds:KeyName>").to_owned();
    let key_value = part(&text, "<ds:KeyValue>", "</ds:KeyValue>").to_owned();
    let transform = |uri: &str| format!("<ds:Transform Algorithm=\"{uri}\"></ds:Transform>");
    let with = |transform: String| to("</ds:Transforms>", &format!("{transform}</ds:Transforms>"));
    let bytes = |bytes: &[u8]| format!("<ds:SignatureValue>{}</ds:SignatureValue>", BASE64_STANDARD.encode(bytes));
    let richer = edit(&bare, "<amount>10<", "<amount>90<");
    let fitting = format!("<ds:DigestValue>{}</ds:DigestValue>", BASE64_STANDARD.encode(sha256(richer.as_bytes())));
    let evil = "<pay xmlns=\"urn:bank\"><amount>90</amount><to>eve</to></pay>";
    let evil_message =
        |meta: &str| format!("<message xmlns=\"{E}\"><meta><from>ada</from>{meta}</meta>{evil}</message>");
    let changed = "the message was changed";
    let form = "the signature is not of the one form";
    let dropped = "the message says more than its canonical form";
    let unknown = "is none of those";
    let mismatch = "the signature was not made with";
    let attacks = [
        ("a changed digit", to("<amount>10<", "<amount>90<"), changed),
        ("a changed sender", to("<from>ada<", "<from>eve<"), changed),
        ("a changed receiver", to("<to>bank<", "<to>shop<"), changed),
        ("another namespace", to("urn:bank", "urn:evil"), changed),
        ("an added element", to("</pay>", "<now></now></pay>"), changed),
        ("a removed element", to("<to>bob</to></pay>", "</pay>"), changed),
        ("an added attribute", to("<amount>", "<amount unit=\"k\">"), changed),
        ("added white space", to("<amount>10", "<amount>10 "), changed),
        ("added metadata", to("<ds:Signature ", &format!("<id xmlns=\"{}\">1</id><ds:Signature ", ns::SYSTOLE_META)), changed),
        ("another payload", edit(&text, part(&text, "<pay ", "</pay>"), evil), changed),
        ("end tags cut off", text.strip_suffix("</message>").unwrap().to_owned(), dropped),
        ("the payload cut", text[..text.find("<to>bob").unwrap()].to_owned(), "it can't be read"),
        ("a mistake that is repaired", to("xmlns=\"urn:bank\"", "xmlns=urn:bank"), dropped),
        ("a comment inside of a value", to("<amount>10<", "<amount>1<!-- -->0<"), dropped),
        ("a comment inside of the digest", to("<ds:DigestValue>", "<ds:DigestValue><!-- x -->"), dropped),
        ("a comment before the message", format!("<!-- x -->{text}"), dropped),
        ("an instruction before the message", format!("<?x y?>{text}"), dropped),
        ("an instruction inside of a value", to("<amount>10<", "<amount>1<?x?>0<"), changed),
        ("an instruction inside of the signature", to("<ds:DigestValue>", "<?x?><ds:DigestValue>"), form),
        ("a prefix that only a value uses", to("<amount>10<", "<amount xmlns:q=\"urn:q\">q:10<"), dropped),
        ("the signature twice", to(&own, &format!("{own}{own}")), "a second element"),
        ("two signatures", to(&own, &format!("{own}{}", signature(&by_eve))), "a second element"),
        ("no signature", bare.clone(), "has no ds:Signature"),
        ("the signature in the payload", edit(&bare, "</pay>", &format!("{own}</pay>")), "has no ds:Signature"),
        ("the message as payload of another", format!("<message xmlns=\"{E}\"><meta><from>ada</from></meta>{text}</message>"), "has no ds:Signature"),
        ("the message in other metadata", evil_message(&format!("<x xmlns=\"urn:x\">{text}</x>")), "has no ds:Signature"),
        ("the signature on another message", evil_message(&own), changed),
        ("the message in the signature", evil_message(&edit(&own, "</ds:Signature>", &format!("<ds:Object>{bare}</ds:Object></ds:Signature>"))), form),
        ("the message beside its signature", evil_message(&format!("<x xmlns=\"urn:x\">{bare}</x>{own}")), changed),
        ("the message around the payload", edit(&evil_message(&own), evil, &format!("<x xmlns=\"\">{evil}{bare}</x>")), changed),
        ("a reference by an id", to("URI=\"\"", "URI=\"#pay\""), form),
        ("a reference by an XPointer", to("URI=\"\"", "URI=\"#xpointer(/)\""), form),
        ("a reference to a file", to("URI=\"\"", "URI=\"file:///etc/passwd\""), form),
        ("a reference without a URI", to(" URI=\"\"", ""), form),
        ("two references", to(&reference, &format!("{reference}{reference}")), form),
        ("no reference", to(&reference, ""), form),
        ("an id of the signature", to("<ds:Signature ", "<ds:Signature Id=\"a\" "), form),
        ("a digest by SHA-1", algorithm(SHA256, "http://www.w3.org/2000/09/xmldsig#sha1"), form),
        ("a digest by SHA-512", algorithm(SHA256, "http://www.w3.org/2001/04/xmlenc#sha512"), form),
        ("a signature by HMAC", algorithm(ECDSA, "http://www.w3.org/2001/04/xmldsig-more#hmac-sha256"), form),
        ("a signature by RSA", algorithm(ECDSA, "http://www.w3.org/2001/04/xmldsig-more#rsa-sha256"), form),
        ("a signature by ECDSA with SHA-1", algorithm(ECDSA, "http://www.w3.org/2001/04/xmldsig-more#ecdsa-sha1"), form),
        ("inclusive canonicalization", algorithm(C14N, "http://www.w3.org/TR/2001/REC-xml-c14n-20010315"), form),
        ("canonicalization with comments", algorithm(C14N, "http://www.w3.org/2001/10/xml-exc-c14n#WithComments"), form),
        ("a transform by XPath", with("<ds:Transform Algorithm=\"http://www.w3.org/TR/1999/REC-xpath-19991116\"><ds:XPath>not(self::amount)</ds:XPath></ds:Transform>".to_owned()), form),
        ("a transform by XPath filter", with(transform("http://www.w3.org/2002/06/xmldsig-filter2")), form),
        ("a transform by XSLT", with(transform("http://www.w3.org/TR/1999/REC-xslt-19991116")), form),
        ("a transform by base64", with(transform("http://www.w3.org/2000/09/xmldsig#base64")), form),
        ("no transforms", to(&transforms, ""), form),
        ("no enveloped signature", to(&enveloped, ""), form),
        ("transforms in another order", to(&transforms, &format!("<ds:Transforms>{}{enveloped}</ds:Transforms>", transform(C14N))), form),
        ("inclusive namespaces", to(&enveloped, &format!("{enveloped}<ec:InclusiveNamespaces xmlns:ec=\"{C14N}\" PrefixList=\"x\"></ec:InclusiveNamespaces>")), form),
        ("text in the signature", to("<ds:KeyInfo>", "x<ds:KeyInfo>"), form),
        ("the parts in another order", to(&format!("{info}{value}"), &format!("{value}{info}")), form),
        ("a signature of no namespace", text.replace(DS, "urn:x"), "has no ds:Signature"),
        ("the signature of another key of that name", by_eve.clone(), unknown),
        ("another key shown", edit(&text, &key_value, part(&by_eve, "<ds:KeyValue>", "</ds:KeyValue>")), unknown),
        ("another key named", to(&key_name, "<ds:KeyName>2026-11-29</ds:KeyName>"), unknown),
        ("a comment in the name of a key", to("<ds:KeyName>2026", "<ds:KeyName>2026<!---->"), dropped),
        ("no key named", to(&key_name, ""), form),
        ("no key shown", to(&key_value, ""), form),
        ("a certificate", to("</ds:KeyInfo>", "<ds:X509Data></ds:X509Data></ds:KeyInfo>"), form),
        ("another curve", to("1.2.840.10045.3.1.7", "1.3.132.0.34"), form),
        ("a fitting digest", edit(&edit(&text, "<amount>10<", "<amount>90<"), &digest, &fitting), mismatch),
        ("a signature of zeros", to(&value, &bytes(&[0; 64])), mismatch),
        ("a signature of ones", to(&value, &bytes(&[0xff; 64])), mismatch),
        ("a short signature", to(&value, &bytes(&[1; 63])), "does not hold 64 bytes"),
        ("an empty signature", to(&value, &bytes(&[])), "does not hold 64 bytes"),
        ("the signature of another key", edit(&text, &value, part(&by_eve, "<ds:SignatureValue>", "</ds:SignatureValue>")), mismatch),
        ("another base64 of the digest", to("=</ds:DigestValue>", "</ds:DigestValue>"), "does not hold 32 bytes"),
        ("an element in the digest", to("<ds:DigestValue>", "<ds:DigestValue><x xmlns=\"\"></x>"), form),
        ("a document type", format!("<!DOCTYPE message [<!ENTITY x '9'>]>{text}"), ""),
    ];
    for (name, attack, why) in attacks {
        let error = verify(ada.keys(), &attack).expect_err(name).to_string();
        assert!(error.contains(why), "{name}: {error}");
    }
    // Each byte of the signature counts.
    let signature = BASE64_STANDARD.decode(value.split(['<', '>']).nth(2).unwrap()).unwrap();
    for at in 0..signature.len() {
        let mut other = signature.clone();
        other[at] ^= 1;
        assert!(verify(ada.keys(), &to(&value, &bytes(&other))).is_err(), "byte {at}");
    }
    assert!(verify(ada.keys(), &text).is_ok() && verify(&PublicKeys::default(), &text).is_err());
}

#[test]
fn keys_have_ids_by_date_and_verify_after_they_are_retired() {
    let folder = Folder::new("dates");
    let file = folder.file("keys");
    let mut keys = KeyFile::open(&file).unwrap();
    assert_eq!(keys.add(day("2026-11-30")).unwrap().id, "2026-11-30");
    assert_eq!(keys.add(day("2026-11-30")).unwrap().id, "2026-11-30.2");
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o7777, 0o600);
    let old = KeyFile::load(&file).unwrap().identity().unwrap();
    assert_eq!(old.id(), "2026-11-30.2", "the newest signs");
    keys.add(day("2026-12-01")).unwrap();
    keys.retire("2026-11-30.2", day("2026-12-02")).unwrap();
    let again = KeyFile::load(&file).unwrap();
    assert_eq!(again.signing(), Some("2026-12-01"));
    assert_eq!(again.keys().get("2026-11-30.2").unwrap().retired, Some(day("2026-12-02")));
    let new = again.identity().unwrap();
    assert_eq!(verify(new.keys(), &signed(&old)), Ok("2026-11-30.2".to_owned()));
    assert_eq!(verify(new.keys(), &signed(&new)), Ok("2026-12-01".to_owned()));
    let public = folder.file("public");
    fs::write(&public, new.jwks()).unwrap();
    assert_eq!(PublicKeys::load(&public).unwrap(), *new.keys());
    let secrets = fs::read_to_string(&file).unwrap();
    assert_eq!((secrets.matches("\"d\"").count(), new.jwks().matches("\"d\"").count()), (2, 0));
    assert!(matches!(keys.retire("2026-11-30.2", day("2026-12-03")), Err(IdentityError::RetiredBefore(_))));
    assert!(matches!(keys.retire("2026", day("2026-12-03")), Err(IdentityError::Unknown(_))));
    keys.retire("2026-11-30", day("2026-12-03")).unwrap();
    keys.retire("2026-12-01", day("2026-12-03")).unwrap();
    assert!(matches!(keys.identity(), Err(IdentityError::Retired)));
}

#[test]
fn unusable_files_of_keys_are_refused() {
    let folder = Folder::new("files");
    let identity = folder.identity("ada");
    let file = folder.file("ada");
    let text = fs::read_to_string(&file).unwrap();
    let load = |path: &Path| KeyFile::load(path).map(drop).unwrap_err().to_string();
    for mode in [0o640, 0o604, 0o660, 0o700 | 0o020] {
        fs::set_permissions(&file, fs::Permissions::from_mode(mode)).unwrap();
        assert_eq!(
            load(&file),
            format!("its mode is {mode:04o}: a file of secret keys is for its owner alone, so run `chmod 600` on it")
        );
    }
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
    assert!(PublicKeys::load(&file).unwrap_err().to_string().starts_with("it holds secret keys"));
    assert!(load(&folder.file("none")).contains("No such file"));
    let member = |name: &str| {
        let start = text.find(&format!("\"{name}\": \"")).unwrap() + name.len() + 5;
        text[start..start + 43].to_owned()
    };
    let (x, y, d) = (member("x"), member("y"), member("d"));
    for (wrong, why) in [
        (String::new(), "it is no JSON Web Key Set"),
        ("{}".to_owned(), "it has no list `keys`"),
        ("{\"keys\": []}".to_owned(), "`keys` is empty"),
        (edit(&text, "\"kid\"", "\"id\""), "a key has no `kid`"),
        (edit(&text, "\"P-256\"", "\"P-384\""), "`kty` must be EC and `crv` P-256"),
        (edit(&text, "\"ES256\"", "\"ES384\""), "`alg` must be ES256"),
        (edit(&text, &x, &x[1..]), "`x` and `y` must be 32 bytes"),
        (edit(&text, &x, &y), "`x` and `y` are no point of the curve P-256"),
        (edit(&text, &d, &x), "its secret `d` does not belong to its point"),
        (edit(&text, &d, "AA"), "`d` must be 32 bytes"),
        (edit(&text, "\"kid\"", "\"retired\": \"2026-12-01T00:00:00Z\", \"kid\""), "it is retired, and has its secret"),
        (edit(&text, "\"kid\"", "\"retired\": \"soon\", \"kid\""), "`retired` must be a time"),
        (
            edit(&text, "[", &format!("[{},", part(&text, "{\n", "}").trim_start_matches("{\n  \"keys\": [").trim())),
            "another one has the same `kid`",
        ),
    ] {
        fs::write(&file, &wrong).unwrap();
        let error = load(&file);
        assert!(error.contains(why), "{why}: {error}");
        assert!(!error.contains(&d), "{error}");
    }
    assert!(!format!("{identity:?}").contains(&d));
    let public = identity.jwks();
    fs::write(&file, public).unwrap();
    PublicKeys::load(&file).unwrap();
    for (number, off) in [(&x, &y[..]), (&y, &x[..]), (&x, &"A".repeat(43)[..])] {
        fs::write(&file, edit(public, number, off)).unwrap();
        let error = PublicKeys::load(&file).unwrap_err().to_string();
        assert_eq!(error, "its key '2026-11-30' can't be used: `x` and `y` are no point of the curve P-256");
    }
    // Both numbers are 0: the point at infinity has no such form.
    fs::write(&file, edit(&edit(public, &x, &"A".repeat(43)), &y, &"A".repeat(43))).unwrap();
    assert!(PublicKeys::load(&file).is_err());
}

#[test]
fn a_key_as_pem_is_the_one_that_others_read() {
    let folder = Folder::new("pem");
    let identity = folder.identity("ada");
    let key = identity.keys().get(identity.id()).unwrap();
    let pem = key.pem();
    let body: String = pem.lines().filter(|line| !line.starts_with('-')).collect();
    let der = BASE64_STANDARD.decode(body).unwrap();
    assert_eq!((der.len(), &der[26..]), (91, &key.point[..]));
    assert!(pem.lines().all(|line| line.len() <= 64));
}
