//! Keys, and signatures of messages: `systole key`, `sign` and `verify`, and organisms that sign or require signatures.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use crate::kit::{Scratch, has, said};

const SCHEMA: &str = r#"<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema" targetNamespace="urn:e"><xs:element name="say" type="xs:string"/></xs:schema>"#;

const ORGANISM: &str = r#"organism: { name: echo }
identity: own.jwks
clients: [{ name: cli, calls: ["{urn:e}say"], keys: [KEYS] }]
listeners: [{ name: echo, echo: true, schemas: [e.xsd], accepts: ["{urn:e}say"] }]
"#;

const MESSAGE: &str = r#"<message xmlns="https://xml-pipeline.org/ns/envelope/v1"><meta><from>cli</from></meta><say xmlns="urn:e">hello</say></message>"#;

/// A folder with an organism that signs, whose client must sign with one of these files.
fn folder(keys: &str) -> Scratch {
    let folder = Scratch::new("signatures");
    fs::write(folder.join("e.xsd"), SCHEMA).unwrap();
    fs::write(folder.join("organism.yaml"), ORGANISM.replace("KEYS", keys)).unwrap();
    folder.done(&["key", "new", "own.jwks"]);
    folder
}

#[test]
fn keys_are_made_listed_shown_and_retired() {
    let folder = Scratch::new("keys");
    let first = folder.done(&["key", "new", "keys"]);
    let second = folder.done(&["key", "new", "keys"]);
    let (first, second) = (first.trim_end(), second.trim_end());
    assert_ne!(first, second);
    assert_eq!(fs::metadata(folder.join("keys")).unwrap().permissions().mode() & 0o7777, 0o600);
    let list = folder.done(&["key", "list", "keys"]);
    assert_eq!(list, format!("{first}\tverifies\n{second}\tsigns\n"));
    folder.done(&["key", "retire", "keys", second]);
    let list = folder.done(&["key", "list", "keys"]);
    has(&list, &[&format!("{first}\tsigns\n"), &format!("{second}\tretired 20")]);
    let shown = folder.done(&["key", "show", "keys"]);
    assert!(shown.contains(first) && shown.contains(second) && !shown.contains("\"d\""), "{shown}");
    has(&folder.done(&["key", "show", "keys", "--pem", first]), &["-----BEGIN PUBLIC KEY-----\n"]);
    for (args, code, why) in [
        (&["key", "retire", "keys", second][..], 2, "is retired already"),
        (&["key", "retire", "keys", "2020-01-01"], 2, "it has no key '2020-01-01'"),
        (&["key", "show", "keys", "--pem", "2020-01-01"], 2, "it has no key '2020-01-01'"),
        (&["key", "list", "none"], 2, "No such file"),
    ] {
        let (found, _, said) = said(&folder, args, "");
        assert_eq!(found, code, "{said}");
        has(&said, &[why]);
    }
    // Behind a link the file itself is changed, so that no copy keeps the secret.
    std::os::unix::fs::symlink("keys", folder.join("link")).unwrap();
    folder.done(&["key", "retire", "link", first]);
    assert!(fs::symlink_metadata(folder.join("link")).unwrap().is_symlink());
    assert!(!fs::read_to_string(folder.join("keys")).unwrap().contains("\"d\""), "each key is retired");
    // Those who change it at once wait for each other.
    let made: Vec<_> = (0..8).map(|_| folder.systole(&["key", "new", "link"]).spawn().unwrap()).collect();
    made.into_iter().for_each(|mut child| assert!(child.wait().unwrap().success()));
    assert_eq!(folder.done(&["key", "list", "keys"]).lines().count(), 10);
    fs::set_permissions(folder.join("keys"), fs::Permissions::from_mode(0o644)).unwrap();
    let (code, _, said) = said(&folder, &["key", "new", "keys"], "");
    assert_eq!(code, 2);
    has(&said, &["its mode is 0644", "chmod 600"]);
}

#[test]
fn a_message_is_signed_and_verified_on_the_command_line() {
    let folder = Scratch::new("sign");
    let id = folder.done(&["key", "new", "keys"]);
    fs::write(folder.join("public"), folder.done(&["key", "show", "keys"])).unwrap();
    folder.done(&["key", "new", "others"]);
    fs::write(folder.join("other"), folder.done(&["key", "show", "others"])).unwrap();
    let (code, signed, _) = said(&folder, &["sign", "-", "--key", "keys"], MESSAGE);
    assert_eq!(code, 0, "{signed}");
    let verify = |text: &str, keys: &[&str]| {
        let args: Vec<_> = ["verify", "-"].into_iter().chain(keys.iter().flat_map(|key| ["--key", *key])).collect();
        said(&folder, &args, text)
    };
    assert_eq!(verify(&signed, &["public"]).1, format!("signed by {} of public\n", id.trim_end()));
    assert_eq!(verify(&signed, &["other", "public"]).0, 0, "one of several keys");
    for (text, keys, code, why) in [
        (signed.replace("hello", "hallo"), "public", 1, "the message was changed after it was signed"),
        (signed.clone(), "other", 1, "is none of those that it is verified by"),
        (MESSAGE.to_owned(), "public", 1, "has no ds:Signature"),
        ("<a".to_owned(), "public", 1, "it can't be read"),
        (signed.clone(), "keys", 2, "it holds secret keys"),
    ] {
        let (found, out, said) = verify(&text, &[keys]);
        assert_eq!((found, &*out), (code, ""), "{said}");
        has(&said, &[why]);
    }
    let (code, _, why) = said(&folder, &["sign", "-", "--key", "keys"], "<say xmlns=\"urn:e\">hello</say>");
    assert_eq!(code, 1);
    has(&why, &["only an envelope with <meta> can be signed"]);
}

#[test]
fn an_organism_signs_what_it_prints_and_hears_a_client_that_must_sign_only_signed() {
    let folder = folder("cli.public");
    folder.done(&["key", "new", "cli.jwks"]);
    fs::write(folder.join("cli.public"), folder.done(&["key", "show", "cli.jwks"])).unwrap();
    fs::write(folder.join("own.public"), folder.done(&["key", "show", "own.jwks"])).unwrap();
    let (_, signed, _) = said(&folder, &["sign", "-", "--key", "cli.jwks"], MESSAGE);
    for args in [&["run", "organism.yaml", "--until-idle", "-"][..], &["ask", "organism.yaml", "-", "--envelope"]] {
        let (code, answer, why) = said(&folder, args, &signed);
        assert_eq!(code, 0, "{args:?}: {why}");
        has(&answer, &["<from>echo</from>", ">hello</say>"]);
        let (code, _, why) = said(&folder, &["verify", "-", "--key", "own.public"], &answer);
        assert_eq!(code, 0, "{why}");
        let (code, answer, why) = said(&folder, args, MESSAGE);
        assert_eq!(code, 1, "{why}");
        has(&answer, &["route"]);
        has(&format!("{answer}{why}"), &["route"]);
    }
}

#[test]
fn unusable_keys_are_mistakes_of_the_file() {
    let folder = folder("own.jwks");
    let check = || said(&folder, &["check", "organism.yaml"], "");
    let (code, _, why) = check();
    assert_eq!(code, 1, "{why}");
    has(&why, &["the file of public keys own.jwks can't be used: it holds secret keys"]);
    fs::set_permissions(folder.join("own.jwks"), fs::Permissions::from_mode(0o640)).unwrap();
    let (_, _, why) = check();
    has(&why, &["the file of keys own.jwks can't be used: its mode is 0640"]);
    fs::remove_file(folder.join("own.jwks")).unwrap();
    let (_, _, why) = check();
    has(&why, &["the file of keys own.jwks can't be used: ", "the file of public keys own.jwks can't be used: "]);
}
