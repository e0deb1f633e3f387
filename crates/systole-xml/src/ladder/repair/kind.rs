//! The kinds of repairs, one for each rule.

use std::fmt;

/// The rule by which repair changed something.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum RepairKind {
    /// The bytes were UTF-16 with a byte order mark, or ISO-8859-1 or windows-1252 by the XML declaration. They became
    /// UTF-8.
    Encoding,
    /// Characters that XML forbids were removed, and the control sequences of terminals that they begin.
    ControlCharacter,
    /// Text outside of every element was dropped.
    Prose,
    /// A line that opens or closes a Markdown code block was dropped.
    Fence,
    /// The reasoning of a model was dropped: `<think>` or the like, which its contract does not declare.
    Thought,
    /// An XML declaration was dropped: not at the start, malformed, or of another encoding.
    XmlDeclaration,
    /// A document type declaration without internal subset was dropped.
    Doctype,
    /// A malformed processing instruction was dropped.
    ProcessingInstruction,
    /// `--` inside a comment became `- -`.
    Comment,
    /// `&` that starts no reference became `&amp;`.
    StrayAmpersand,
    /// `<` that starts no markup became `&lt;`.
    StrayLessThan,
    /// `]]>` in text became `]]&gt;`.
    SectionEnd,
    /// An entity of HTML that XML doesn't have became the character that it stands for.
    HtmlEntity,
    /// A reference to an unknown entity became text.
    UnknownEntity,
    /// A reference to a character that XML forbids became text; `&#X41;`, and two references to a surrogate pair, became
    /// their character.
    CharacterReference,
    /// A reference or a comment became text: its string holds a raw `&` or `<`, so its author escapes nothing.
    LiteralReference,
    /// The quotes of an attribute were missing, typographic, escaped or of two kinds.
    AttributeQuotes,
    /// An attribute without a value got an empty one.
    ValuelessAttribute,
    /// The white space before an attribute was missing.
    AttributeSpace,
    /// A second attribute of the same name was dropped; the first stays.
    DuplicateAttribute,
    /// An end tag that was missing was put in.
    MissingEndTag,
    /// An end tag that came after its element had been closed with an outer one was dropped.
    MisnestedEndTag,
    /// An end tag without a start tag was dropped.
    StrayEndTag,
    /// An end tag with attributes, with a space before the name or without `>` was put right.
    EndTagSyntax,
    /// An end tag in another case of letters, with another prefix, misspelt or without a name was put right.
    EndTagName,
    /// A start tag with a space before its name, or with commas, colons or odd spaces between attributes, was put
    /// right.
    StartTagSyntax,
    /// An empty-element tag whose end tag follows became a start tag.
    EmptyTag,
    /// A root element without a namespace got that of its schema; or the prefix `xsi`, which nothing bound, got its
    /// declaration.
    Namespace,
}

impl RepairKind {
    /// The kind as written by the command line.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Encoding => "encoding",
            Self::ControlCharacter => "control-character",
            Self::Prose => "prose",
            Self::Fence => "fence",
            Self::Thought => "thought",
            Self::XmlDeclaration => "xml-declaration",
            Self::Doctype => "doctype",
            Self::ProcessingInstruction => "processing-instruction",
            Self::Comment => "comment",
            Self::StrayAmpersand => "stray-ampersand",
            Self::StrayLessThan => "stray-less-than",
            Self::SectionEnd => "section-end",
            Self::HtmlEntity => "html-entity",
            Self::UnknownEntity => "unknown-entity",
            Self::CharacterReference => "character-reference",
            Self::LiteralReference => "literal-reference",
            Self::AttributeQuotes => "attribute-quotes",
            Self::ValuelessAttribute => "valueless-attribute",
            Self::AttributeSpace => "attribute-space",
            Self::DuplicateAttribute => "duplicate-attribute",
            Self::MissingEndTag => "missing-end-tag",
            Self::MisnestedEndTag => "misnested-end-tag",
            Self::StrayEndTag => "stray-end-tag",
            Self::EndTagSyntax => "end-tag-syntax",
            Self::EndTagName => "end-tag-name",
            Self::StartTagSyntax => "start-tag-syntax",
            Self::EmptyTag => "empty-tag",
            Self::Namespace => "namespace",
        }
    }
}

impl fmt::Display for RepairKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
