//! Tests of the binding to libxml.

use super::*;

const SCHEMA: &str = r#"<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema" xmlns:t="urn:t" targetNamespace="urn:t" elementFormDefault="qualified">
  <xs:element name="list"><xs:complexType><xs:sequence>
    <xs:element name="item" maxOccurs="unbounded"><xs:complexType><xs:simpleContent><xs:extension base="xs:long">
      <xs:attribute name="k" type="xs:string"/><xs:attribute name="q" type="xs:QName"/>
    </xs:extension></xs:simpleContent></xs:complexType></xs:element>
  </xs:sequence></xs:complexType></xs:element>
</xs:schema>"#;

fn refusal(schema: &Compiled, document: &str) -> Option<String> {
    schema.validate(document).err().map(|fault| fault.message)
}

#[test]
fn valid_documents_pass_and_others_are_told() {
    let schema = Compiled::new(SCHEMA, &[]).unwrap();
    let wrap = |items: &str| format!("<list xmlns=\"urn:t\">{items}</list>");
    assert_eq!(refusal(&schema, &wrap("<item>1</item><item k=\"&amp;&quot;\">-2</item>")), None);
    for (wrong, said) in [("<item>x</item>", "not a valid value"), ("<other/>", "not expected"), ("", "Missing child")]
    {
        let refusal = refusal(&schema, &wrap(wrong)).unwrap_or_default();
        assert!(refusal.contains(said), "{refusal}");
    }
    assert!(refusal(&schema, "<list></list>").is_some_and(|said| said.contains("No matching global declaration")));
    assert!(refusal(&schema, "<list>").is_some());
}

#[test]
fn prefixes_in_values_are_resolved() {
    let schema = Compiled::new(SCHEMA, &[]).unwrap();
    let item = |declared: &str| {
        format!("<list xmlns=\"urn:t\"><p:item xmlns:p=\"urn:t\"{declared} q=\"p:x\">1</p:item></list>")
    };
    assert_eq!(refusal(&schema, &item("")), None);
    assert!(refusal(&schema, &item("").replace("p:x", "nobody:x")).is_some());
}

#[test]
fn hints_in_a_payload_load_nothing() {
    let schema = Compiled::new(SCHEMA, &[]).unwrap();
    let payload = "<list xmlns=\"urn:t\" xmlns:xsi=\"http://www.w3.org/2001/XMLSchema-instance\" \
                   xsi:schemaLocation=\"urn:t file:///etc/passwd urn:u http://localhost:1/x\"><item>1</item></list>";
    assert_eq!(refusal(&schema, payload), None);
}

#[test]
fn only_given_documents_are_loaded() {
    let import = |location: &str| {
        format!(
            "<xs:schema xmlns:xs=\"http://www.w3.org/2001/XMLSchema\"><xs:include schemaLocation=\"{location}\"/></xs:schema>"
        )
    };
    let given = Source { url: "systole-schema:0".into(), text: SCHEMA.replace(" targetNamespace=\"urn:t\"", "") };
    assert!(Compiled::new(&import("systole-schema:0"), std::slice::from_ref(&given)).is_ok());
    let path = format!("{}/schemas/core.xsd", env!("CARGO_MANIFEST_DIR"));
    for location in [path.as_str(), "Cargo.toml", "http://localhost:1/a.xsd"] {
        let faults = Compiled::new(&import(location), std::slice::from_ref(&given)).unwrap_err();
        assert!(faults[0].message.contains("Failed to parse the XML resource"), "{faults:?}");
    }
}

#[test]
fn faults_name_their_document_and_line() {
    let broken = "<xs:schema xmlns:xs=\"http://www.w3.org/2001/XMLSchema\">\n\n<xs:element name=\"a\" type=\"nothing\"/></xs:schema>";
    let faults = Compiled::new(broken, &[]).unwrap_err();
    assert_eq!((faults[0].line, faults[0].url.as_deref()), (3, None), "{faults:?}");
    let main =
        "<xs:schema xmlns:xs=\"http://www.w3.org/2001/XMLSchema\"><xs:include schemaLocation=\"u:1\"/></xs:schema>";
    let faults = Compiled::new(main, &[Source { url: "u:1".into(), text: broken.into() }]).unwrap_err();
    assert_eq!((faults[0].line, faults[0].url.as_deref()), (3, Some("u:1")), "{faults:?}");
    assert!(Compiled::new("<a>", &[]).is_err());
    assert!(Compiled::new("", &[]).is_err());
}

/// Exclusive C14N by libxml: an oracle for the output of the encoder.
pub(in crate::schema) fn exclusive_c14n(text: &str) -> Option<Vec<u8>> {
    initialize();
    let length = c_int::try_from(text.len()).unwrap();
    // SAFETY: the text outlives the calls; document and dump are freed once.
    unsafe {
        let doc = c::xmlReadMemory(text.as_ptr().cast(), length, ptr::null(), ptr::null(), 0);
        if doc.is_null() {
            return None;
        }
        let mut bytes = ptr::null_mut();
        let exclusive = c::xmlC14NMode_XML_C14N_EXCLUSIVE_1_0 as c_int;
        let size = c::xmlC14NDocDumpMemory(doc, ptr::null_mut(), exclusive, ptr::null_mut(), 0, &raw mut bytes);
        let canonical = usize::try_from(size).ok().map(|size| std::slice::from_raw_parts(bytes, size).to_vec());
        if let (false, Some(free)) = (bytes.is_null(), c::xmlFree) {
            free(bytes.cast());
        }
        c::xmlFreeDoc(doc);
        canonical
    }
}
