//! Tests of tapes.

use super::*;

fn tape(text: &str) -> Tape {
    let mut tape = Tape::default();
    tape.read(text);
    tape
}

/// The tokens that a cursor finds: start tags by their names, texts, `/` for each end tag.
fn walked(text: &str) -> Vec<String> {
    let tape = tape(text);
    let mut cursor = tape.cursor(text);
    let mut found = Vec::new();
    loop {
        if let Some(text) = cursor.text() {
            found.push(format!("'{}' {}", text.written, text.references));
        } else if let Some(tag) = cursor.enter() {
            found.push(format!("{} {}", tag.name(), tag.attributes().count()));
        } else if cursor.is_inside() {
            cursor.leave();
            found.push("/".to_owned());
        } else {
            return found;
        }
    }
}

#[test]
fn tokens_stand_where_the_tape_says() {
    let text = "<a xmlns=\"urn:x\" k=\"1>\">t&amp;<?p <b> ?>u<p:b xmlns:p=\"urn:p\"></p:b>v</a>";
    let expected = ["a 2", "'t&amp;' true", "'u' true", "p:b 1", "/", "'v' true", "/"];
    assert_eq!(walked(text), expected);
}

#[test]
fn of_what_is_not_canonical_nothing_is_kept() {
    for text in
        ["", "a", "<a", "<a>", "</a>", "<a></a><b></b>", "<a></a>b", "b<a></a>", "<a></b>", "<a>\u{e9}</\u{e9}>"]
    {
        assert_eq!(walked(text), [""; 0], "{text}");
    }
}

#[test]
fn a_part_of_a_tape_is_the_tape_of_the_part() {
    let text = "<a xmlns=\"urn:a\" k=\"1\"><?p?><b>&lt;<j xmlns=\"\"></j></b><c xmlns=\"\"><d xmlns:p=\"urn:&amp;\" p:k=\"2\">1</d>2<e><f l=\"\">\
                </f></e></c><p:g xmlns:p=\"urn:p\"></p:g><h xmlns:p=\"urn:p\" k=\"\" p:k=\"\"><p:i></p:i></h></a>";
    for (element, part) in [
        (0, text),
        (1, "<b xmlns=\"urn:a\">&lt;<j xmlns=\"\"></j></b>"),
        (3, "<c><d xmlns:p=\"urn:&amp;\" p:k=\"2\">1</d>2<e><f l=\"\"></f></e></c>"),
        (7, "<p:g xmlns:p=\"urn:p\"></p:g>"),
        (8, "<h xmlns=\"urn:a\" xmlns:p=\"urn:p\" k=\"\" p:k=\"\"><p:i></p:i></h>"),
    ] {
        let mut whole = tape(text);
        let mut found = tape("<x></x>");
        whole.subtree(element, part, &mut found);
        found.copy_uris(&whole);
        assert_eq!(found, tape(part), "{part}");
        found.uris.clear();
        found.take_uris(&mut whole);
        assert_eq!(found, tape(part), "{part}");
    }
}

#[test]
fn values_are_taken_whole_and_subtrees_passed_at_once() {
    let text = "<a><b>1&lt;</b><c>1<?p?>&lt;2</c><d>x<e></e>y</d><f></f></a>";
    let tape = tape(text);
    let mut cursor = tape.cursor(text);
    cursor.enter();
    let mut contents = Vec::new();
    while cursor.enter().is_some() {
        let content = cursor.content();
        if content.is_none() {
            cursor.leave();
        }
        contents.push(content.map(String::from));
    }
    assert_eq!(contents, [Some("1<".to_owned()), Some("1<2".to_owned()), None, Some(String::new())]);
    cursor.leave();
    assert!(!cursor.is_inside() && cursor.elements() == 6);
}

#[test]
fn names_have_the_namespaces_of_the_nearest_declarations() {
    let text = "<a xmlns=\"urn:a\" xml:lang=\"\"><p:b xmlns:p=\"urn:b\" k=\"\" p:k=\"\"><p:c xmlns:p=\"urn:&quot;\"></p:c><p:d></p:d>\
                </p:b><e xmlns=\"\"></e><f></f></a>";
    let tape = tape(text);
    let cursor = tape.cursor(text);
    let tags: Vec<_> = (0..6).map_while(|element| cursor.tag(element)).collect();
    let elements: Vec<_> = tags.iter().map(|tag| cursor.uri_name(tag.uri())).collect();
    assert_eq!(elements, ["urn:a", "urn:b", "urn:\"", "urn:b", "", "urn:a"]);
    let attributes = tags.iter().flat_map(Tag::attributes).filter_map(|found| found.uri());
    assert_eq!(attributes.map(|uri| cursor.uri_name(uri)).collect::<Vec<_>>(), [crate::vocab::ns::XML, "", "urn:b"]);
    let declared = tags.iter().flat_map(Tag::attributes).filter_map(|found| found.declared());
    let declared: Vec<_> = declared.map(|(prefix, uri)| (prefix, cursor.uri_name(uri))).collect();
    assert_eq!(declared, [("", "urn:a"), ("p", "urn:b"), ("p", "urn:\""), ("", "")]);
}

#[test]
fn tapes_differ_where_namespaces_do() {
    let text = |uri: &str| format!("<a xmlns=\"urn:a\" xmlns:p=\"{uri}\" p:k=\"\"></a>");
    let [one, same, other] = ["urn:a", "urn:a", "urn:b"].map(|uri| tape(&text(uri)));
    assert!(one == same && one != other);
}
