//! Random well-formed documents, and random damage to them.

use proptest::prelude::*;

/// A well-formed document as pieces, so that damage can aim.
pub(crate) fn document() -> impl Strategy<Value = String> {
    element().prop_map(|root| root.text())
}

/// An element with attributes and children.
#[derive(Debug, Clone)]
pub(crate) struct Element {
    name: &'static str,
    attributes: Vec<(&'static str, String)>,
    children: Vec<Node>,
}

#[derive(Debug, Clone)]
enum Node {
    Element(Element),
    /// Markup that is already escaped.
    Markup(String),
}

impl Element {
    /// The element as XML.
    pub(crate) fn text(&self) -> String {
        let mut out = format!("<{}", self.name);
        for (name, value) in &self.attributes {
            out += &format!(" {name}=\"{value}\"");
        }
        if self.children.is_empty() {
            return out + "/>";
        }
        out.push('>');
        for child in &self.children {
            match child {
                Node::Element(element) => out += &element.text(),
                Node::Markup(markup) => out += markup,
            }
        }
        out + &format!("</{}>", self.name)
    }
}

fn name() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec!["a", "item", "x-1", "_b.c", "é", "message"])
}

fn content() -> impl Strategy<Value = String> {
    let pieces = ["word", " ", "AT&amp;T", "1 &lt; 2", "x &gt; y", "\n  ", "é", "it's", "say \"hi\"", "&#65;", "a]]b"];
    prop::collection::vec(prop::sample::select(pieces.to_vec()), 1..5).prop_map(|pieces| pieces.concat())
}

fn attributes() -> impl Strategy<Value = Vec<(&'static str, String)>> {
    let value = prop::sample::select(vec!["", "v", "1 &lt; 2", "AT&amp;T", "it's", "a > b", " x  y "]);
    let names = prop::sample::subsequence(vec!["k", "lang", "xml:id", "n-1"], 0..=3);
    names.prop_flat_map(move |names| {
        let count = names.len();
        (Just(names), prop::collection::vec(value.clone(), count))
            .prop_map(|(names, values)| names.into_iter().zip(values.into_iter().map(String::from)).collect())
    })
}

fn element() -> impl Strategy<Value = Element> {
    let leaf = (name(), attributes()).prop_map(|(name, attributes)| Element { name, attributes, children: Vec::new() });
    leaf.prop_recursive(4, 24, 4, |inner| {
        let markup =
            prop::sample::select(vec!["<!-- c -->", "<![CDATA[1 < 2 && x]]>", "<?p data?>"]).prop_map(String::from);
        let node = prop_oneof![
            3 => inner.prop_map(Node::Element),
            3 => content().prop_map(Node::Markup),
            1 => markup.prop_map(Node::Markup),
        ];
        (name(), attributes(), prop::collection::vec(node, 0..4)).prop_map(|(name, attributes, children)| Element {
            name,
            attributes,
            children,
        })
    })
}

/// A mutation. Positions are shares of the length.
#[derive(Debug, Clone)]
pub(crate) enum Damage {
    /// Removes the n-th occurrence of a string, or replaces it.
    Replace { from: &'static str, to: &'static str, nth: usize },
    /// Inserts a string.
    Insert { what: &'static str, at: f64 },
    /// Cuts off the end.
    Truncate { at: f64 },
    /// Removes bytes.
    Delete { at: f64, length: usize },
    /// Copies a part to another position.
    Copy { from: f64, length: usize, to: f64 },
}

/// A mutation of a kind that repair handles, or an arbitrary one.
pub(crate) fn damage() -> impl Strategy<Value = Damage> {
    let replacements: Vec<(&'static str, &'static str)> = vec![
        ("&amp;", "&"),
        ("&lt;", "<"),
        ("\"", ""),
        ("\"", "“"),
        ("\"", "'"),
        ("=\"v\"", ""),
        ("</item>", ""),
        ("</a>", "</item>"),
        ("</a>", ""),
        (">", ""),
        ("<", ""),
        ("/>", ">"),
        (" ", ""),
        ("-->", "--->"),
        ("c", "--"),
        ("]]>", ""),
        ("k=", "lang="),
        ("&#65;", "&#0;"),
        ("&amp;", "&nbsp;"),
        ("a]]b", "a]]>b"),
        ("</a>", "</a"),
    ];
    let inserts = vec![
        "<",
        ">",
        "&",
        "\"",
        "'",
        "”",
        "<b>",
        "</b>",
        "</dummy>",
        "<br>",
        "]]>",
        "<!--",
        "-->",
        "<![CDATA[",
        "```",
        "```xml\n",
        "Here you are:\n",
        "`<a>`",
        "\u{0}",
        "\u{1B}",
        "\u{FEFF}",
        "\u{FFFE}",
        "<?xml version=\"1.0\"?>",
        "<!DOCTYPE a>",
        "<!DOCTYPE a [",
        "&unknown;",
        "&nbsp;",
        "=",
        "/",
        " ",
        "\n",
        "<p:q>",
        " xmlns:p=\"urn:p\"",
        " xmlns=\"x\"",
        " k",
        " k=v",
    ];
    prop_oneof![
        4 => (prop::sample::select(replacements), 0..4usize).prop_map(|((from, to), nth)| Damage::Replace { from, to, nth }),
        4 => (prop::sample::select(inserts), 0.0..=1.0).prop_map(|(what, at)| Damage::Insert { what, at }),
        1 => (0.0..=1.0).prop_map(|at| Damage::Truncate { at }),
        1 => (0.0..=1.0, 1..8usize).prop_map(|(at, length)| Damage::Delete { at, length }),
        1 => (0.0..=1.0, 1..20usize, 0.0..=1.0).prop_map(|(from, length, to)| Damage::Copy { from, length, to }),
    ]
}

impl Damage {
    pub(crate) fn apply(&self, input: &[u8]) -> Vec<u8> {
        let place = |share: f64| (share * input.len() as f64) as usize;
        let end = |start: usize, length: usize| input.len().min(start + length);
        match *self {
            Self::Replace { from, to, nth } => {
                let found = input.windows(from.len()).enumerate().filter(|(_, window)| *window == from.as_bytes());
                match found.map(|(at, _)| at).nth(nth) {
                    Some(at) => [&input[..at], to.as_bytes(), &input[at + from.len()..]].concat(),
                    None => input.to_vec(),
                }
            }
            Self::Insert { what, at } => [&input[..place(at)], what.as_bytes(), &input[place(at)..]].concat(),
            Self::Truncate { at } => input[..place(at)].to_vec(),
            Self::Delete { at, length } => [&input[..place(at)], &input[end(place(at), length)..]].concat(),
            Self::Copy { from, length, to } => {
                let piece = &input[place(from)..end(place(from), length)];
                [&input[..place(to)], piece, &input[place(to)..]].concat()
            }
        }
    }
}
