//! Documents made to exhaust time, memory or the stack, or to deceive a listener.

use super::super::messages::orders;

/// A hostile document that can be made in any size.
#[derive(Debug, Clone, Copy)]
pub struct Document {
    /// The name.
    pub name: &'static str,
    make: fn(usize) -> Vec<u8>,
}

impl Document {
    /// The bytes of the document: about `bytes`, and rarely more.
    pub fn of(&self, bytes: usize) -> Vec<u8> {
        (self.make)(bytes)
    }
}

/// The start of an envelope.
const ENVELOPE: &str = "<message xmlns='https://xml-pipeline.org/ns/envelope/v1'><meta><from/></meta>";

/// All hostile documents.
pub const DOCUMENTS: &[Document] = &[
    // Declarations.
    document("entity bomb", |size| {
        let levels: String =
            (1..10).map(|i| format!("<!ENTITY l{i} '{}'>", format!("&l{};", i - 1).repeat(10))).collect();
        fill(&format!("<!DOCTYPE a [<!ENTITY l0 'ha'>{levels}]><a>"), "&l9;", "</a>", size)
    }),
    document("quadratic blow-up", |size| {
        let entity = "x".repeat(size / 2);
        fill(&format!("<!DOCTYPE a [<!ENTITY e '{entity}'>]><a>"), "&e;", "</a>", size)
    }),
    document("external entity", |_| b"<!DOCTYPE a [<!ENTITY e SYSTEM 'file:///etc/passwd'>]><a>&e;</a>".to_vec()),
    document("external subset", |_| b"<!DOCTYPE a SYSTEM 'http://127.0.0.1/a.dtd'><a/>".to_vec()),
    document("undeclared entities", |size| fill("<a>", "&bomb;", "</a>", size)),
    // Depth.
    document("nesting", |size| nested("<a>", "</a>", size)),
    document("nesting, never closed", |size| fill("", "<a>", "", size)),
    document("nesting, closed once", |size| fill("", "<a><b>", "</a>", size)),
    document("nesting, closed by other names", |size| nested("<a>", "</b>", size)),
    document("nesting with declarations", |size| nested("<a xmlns:p='urn:p' p:b=''>", "</a>", size)),
    document("end tags alone", |size| fill("<a>", "</b>", "</a>", size)),
    document("end tags of as many names", |size| number("<a>", |i| format!("</n{i}>"), "</a>", size)),
    document("elements of as many names", |size| number("<a>", |i| format!("<n{i}/>"), "</a>", size)),
    document("start tags of as many names", |size| number("<a>", |i| format!("<n{i}>"), "</a>", size)),
    // Tags.
    document("attributes", |size| number("<a", |i| format!(" a{i}=''"), "/>", size)),
    document("one attribute again and again", |size| fill("<a", " b=''", "/>", size)),
    document("attributes without values", |size| number("<a", |i| format!(" a{i}"), "/>", size)),
    document("namespace declarations", |size| number("<a", |i| format!(" xmlns:a{i}='urn:{i}'"), "/>", size)),
    document("namespace declarations, nested", |size| number("", |i| format!("<a xmlns:a{i}='urn:{i}'>"), "", size)),
    document("namespaces that differ late", |size| {
        let long = "x".repeat(1000);
        let declarations: String = (10..99).map(|i| format!(" xmlns:n{i}='urn:{long}{i}'")).collect();
        let attributes: String = (10..99).rev().map(|i| format!(" n{i}:a=''")).collect();
        fill(&format!("<a{declarations}>"), &format!("<c{attributes}/>"), "</a>", size)
    }),
    document("a namespace for each sibling", |size| {
        fill(&format!("<a xmlns:p='urn:{}'>", "x".repeat(1000)), "<p:b/>", "</a>", size)
    }),
    // Length.
    document("a name", |size| fill("<", "n", "/>", size)),
    document("an end tag's name", |size| fill("<a></", "n", ">", size)),
    document("an attribute's name", |size| fill("<a ", "n", "=''/>", size)),
    document("an attribute's value", |size| fill("<a b='", "v", "'/>", size)),
    document("an attribute's value, all quotes", |size| fill("<a b='", "\"", "'/>", size)),
    document("a comment", |size| fill("<a><!--", "c", "--></a>", size)),
    document("a comment of hyphens", |size| fill("<a><!--", "-", "--></a>", size)),
    document("an instruction", |size| fill("<a><?p ", "?", "?></a>", size)),
    document("a character reference", |size| fill("<a>&#", "9", ";</a>", size)),
    document("text", |size| fill("<a>", "text ", "</a>", size)),
    document("text, not ASCII", |size| fill("<a>", "\u{e9}\u{20ac}\u{1f600}", "</a>", size)),
    document("text, all escapes", |size| fill("<a>", "&gt;>&#62;\r", "</a>", size)),
    document("long lines", |size| fill("<a>", &("x".repeat(80) + "\r\n"), "</a>", size)),
    document("mixed line ends", |size| fill("<a>", "\r\n\r\r\n\n", "</a>", size)),
    document("CDATA sections", |size| fill("<a>", "<![CDATA[<]]>", "</a>", size)),
    // Bytes.
    document("NUL", |size| fill("<a>", "\0", "</a>", size)),
    document("overlong UTF-8", |size| bytes(b"<a>", b"\xC0\x80\xE0\x80\xBC", b"</a>", size)),
    document("invalid UTF-8", |size| bytes(b"<a>", b"\xFF\x80\xED\xA0\x80", b"</a>", size)),
    document("UTF-7, declared", |size| fill("<?xml version='1.0' encoding='UTF-7'?>", "+ADw-a+AD4-", "", size)),
    document("UTF-16 with a mark", |size| utf_16("\u{feff}<a>", "1 < 2 \u{1f600}", "</a>", size)),
    document("UTF-16 without a mark", |size| utf_16("<a>", "b", "</a>", size)),
    document("windows-1252, declared", |size| {
        bytes(b"<?xml version='1.0' encoding='windows-1252'?><a>", b"\x93caf\xE9\x94 & ", b"</a>", size)
    }),
    // Inputs that repair must examine repeatedly.
    document("less-than signs", |size| fill("<a>", "<", "</a>", size)),
    document("less-than signs and names", |size| fill("<a>", "<b ", "</a>", size)),
    document("comparisons", |size| fill("<a>", "1 < 2 && x ", "</a>", size)),
    document("quotes that never close", |size| fill("<a>", "<b c=\"d e='f <g h=\u{201c}i ", "</a>", size)),
    document("typographic quotes", |size| fill("<a>", "<b c=\u{201c}d\u{201d} e=\u{2018}f\u{2019}/>", "</a>", size)),
    document("ampersands", |size| fill("<a>", "&", "</a>", size)),
    document("ends of sections", |size| fill("<a>", "]]>", "</a>", size)),
    document("starts of comments", |size| fill("<a>", "<!--", "</a>", size)),
    document("starts of sections", |size| fill("<a>", "<![CDATA[", "</a>", size)),
    document("starts of instructions", |size| fill("<a>", "<?p ", "</a>", size)),
    document("backticks", |size| fill("", "` `` <a> ", "<a/>", size)),
    document("fences", |size| fill("", "```python\n<a>\n", "<a/>", size)),
    document("mentions", |size| fill("", "I use the <add> tag, ", "<add>1</add>", size)),
    document("generics", |size| fill("", "Vec<String> is ", "\n<a/>", size)),
    document("prose", |size| fill("", "Well, let me think about this.\n", "<a/>", size)),
    // Streams and envelopes.
    document("envelopes", |size| fill("", &format!("{ENVELOPE}<a/></message>\n"), "", size)),
    document("envelopes, never closed", |size| fill("", ENVELOPE, "", size)),
    document("envelopes inside each other", |size| nested(ENVELOPE, "</message>", size)),
    document("meta of foreign elements", |size| {
        fill(&ENVELOPE[..ENVELOPE.len() - "</meta>".len()], "<x xmlns='urn:x'/>", "</meta><a/></message>", size)
    }),
    document("a payload that inherits", |size| {
        fill(
            &ENVELOPE.replacen(" xmlns", " xmlns:p='urn:p' xmlns", 1).replacen("</meta>", "</meta><b>", 1),
            "<p:a/>",
            "</b></message>",
            size,
        )
    }),
    document("an order", |size| orders(size / 150).to_vec()),
    document("an order of strangers", |size| {
        let order = String::from_utf8_lossy(&orders(0)).into_owned();
        let (before, behind) = order.split_once("</order>").expect("it holds an order");
        fill(before, "<stranger/>", &format!("</order>{behind}"), size)
    }),
    document("an order with a long number", |size| {
        let order = String::from_utf8_lossy(&orders(0)).into_owned();
        let (before, behind) = order.split_once("402.50").expect("it has a total");
        fill(before, "4", behind, size)
    }),
];

const fn document(name: &'static str, make: fn(usize) -> Vec<u8>) -> Document {
    Document { name, make }
}

/// Repeats `piece` between `open` and `close` as often as `size` allows.
fn fill(open: &str, piece: &str, close: &str, size: usize) -> Vec<u8> {
    bytes(open.as_bytes(), piece.as_bytes(), close.as_bytes(), size)
}

fn bytes(open: &[u8], piece: &[u8], close: &[u8], size: usize) -> Vec<u8> {
    let room = size.saturating_sub(open.len() + close.len());
    let count = room.checked_div(piece.len()).unwrap_or_default();
    [open, &piece.repeat(count), close].concat()
}

fn nested(open: &str, close: &str, size: usize) -> Vec<u8> {
    let count = size / (open.len() + close.len());
    (open.repeat(count) + &close.repeat(count)).into_bytes()
}

/// Repeats a piece that depends on its number between `open` and `close` as often as `size` allows.
fn number(open: &str, piece: impl Fn(usize) -> String, close: &str, size: usize) -> Vec<u8> {
    let mut text = open.to_owned();
    for i in 0.. {
        let piece = piece(i);
        if text.len() + piece.len() + close.len() > size {
            break;
        }
        text += &piece;
    }
    (text + close).into_bytes()
}

fn utf_16(open: &str, piece: &str, close: &str, size: usize) -> Vec<u8> {
    let text = String::from_utf8(fill(open, piece, close, size / 2)).expect("made of text");
    text.encode_utf16().flat_map(u16::to_le_bytes).collect()
}
