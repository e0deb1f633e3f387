//! The errors of the strict pass.

use std::fmt;

use crate::vocab::Position;

/// The reason why the strict pass refuses bytes.
///
/// The text gives the place, the error with its correction, and the rule: the production or constraint of
/// XML 1.0 (5th edition), Namespaces in XML 1.0 (3rd edition) or Canonical XML 1.0, or the limit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StrictError(Box<Inner>);

#[derive(Debug, Clone, PartialEq, Eq)]
struct Inner {
    kind: StrictErrorKind,
    at: Position,
    offset: usize,
}

impl StrictError {
    /// An error at `offset`, which counts from the start of `input`, a byte order mark included; positions don't.
    #[cold]
    pub(super) fn new(kind: StrictErrorKind, input: &[u8], offset: usize) -> Self {
        let mark = super::mark_len(input);
        let at = Position::of(&input[mark..], offset.saturating_sub(mark));
        Self(Box::new(Inner { kind, at, offset }))
    }

    /// The kind of the error.
    pub fn kind(&self) -> &StrictErrorKind {
        &self.0.kind
    }

    /// The place of the error. A byte order mark takes no column.
    pub fn position(&self) -> Position {
        self.0.at
    }

    /// The place of the error, in bytes from the start of the input.
    pub fn offset(&self) -> usize {
        self.0.offset
    }

    /// The rule that is broken.
    pub fn rule(&self) -> &'static str {
        self.0.kind.rule()
    }

    /// Returns whether the input passes a limit, rather than breaks a rule of XML.
    pub fn is_limit(&self) -> bool {
        self.0.kind.is_limit()
    }
}

impl fmt::Display for StrictError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {} [{}]", self.0.at, self.0.kind, self.rule())
    }
}

impl std::error::Error for StrictError {}

/// The kinds of errors in a document. Names are cut to 64 characters.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StrictErrorKind {
    /// Bytes that are no UTF-8.
    #[error("these bytes are no UTF-8: send the document in UTF-8")]
    NotUtf8,
    /// An XML declaration that names another encoding.
    #[error("the XML declaration says that the encoding is '{declared}': send UTF-8 and declare it, or nothing")]
    Encoding {
        /// The encoding that it names.
        declared: Box<str>,
    },
    /// A character that XML forbids.
    #[error("U+{:04X} can't stand in XML, not even as a reference: remove it", u32::from(*.found))]
    ForbiddenCharacter {
        /// The character.
        found: char,
    },
    /// A malformed `<?xml …?>`.
    #[error("this is no XML declaration: write <?xml version=\"1.0\" encoding=\"UTF-8\"?>, or leave it out")]
    MalformedDeclaration,
    /// A processing instruction called `xml`, or an XML declaration that isn't at the very start.
    #[error("an XML declaration can only stand at the very start, and no instruction can be called 'xml': remove it")]
    ReservedTarget,
    /// `<!DOCTYPE`.
    #[error("a document type declaration isn't allowed: remove it and write out what its entities stand for")]
    Doctype,
    /// No element at all.
    #[error("there is no element: a document is exactly one")]
    NoElement,
    /// A second element behind the first.
    #[error("a second element: a document is exactly one, so wrap them or send them one by one")]
    SecondElement,
    /// Text outside of every element.
    #[error("text outside of the element: remove it, or move it inside")]
    TextOutside,
    /// The input ends inside an element.
    #[error("the input ends inside <{name}>, opened at {opened}: close it with </{name}>")]
    Unclosed {
        /// The innermost open element.
        name: Box<str>,
        /// Place of its start tag.
        opened: Position,
    },
    /// An end tag that closes another element than the innermost open one.
    #[error("</{found}> can't close <{expected}>, opened at {opened}: write </{expected}> first")]
    MismatchedEnd {
        /// The innermost open element.
        expected: Box<str>,
        /// The name in the end tag.
        found: Box<str>,
        /// Place of the start tag of the innermost open element.
        opened: Position,
    },
    /// An end tag without an open element.
    #[error("</{name}> closes nothing: remove it")]
    StrayEnd {
        /// The name in the end tag.
        name: Box<str>,
    },
    /// `<!` that starts neither a comment nor a CDATA section.
    #[error("after '<!' only '--' or '[CDATA[' can follow: write &lt;! if it is text")]
    UnknownMarkup,
    /// A `<` that starts no markup.
    #[error("'<' starts no tag here: write &lt; if it is text")]
    StrayLessThan,
    /// The input ends inside a token.
    #[error("the input ends inside {}: the rest of it is missing", .token.article())]
    EndOfInput {
        /// The token that is cut off.
        token: CutToken,
    },
    /// `--` inside a comment.
    #[error("'--' can't stand inside a comment: write '- -'")]
    DoubleHyphen,
    /// `<?` without a name behind it.
    #[error("a processing instruction starts with a name: write <?name …?>, or &lt;? if it is text")]
    BadTarget,
    /// A target with a colon.
    #[error("a processing instruction's name has no colon: remove it")]
    ColonInTarget,
    /// Text other than white space behind the target.
    #[error("white space or '?>' must follow the name of a processing instruction")]
    BadInstruction,
    /// `]]>` in text.
    #[error("']]>' can't stand in text: write ]]&gt;")]
    SectionEndInText,
    /// Two attributes without white space between them.
    #[error("white space is missing before this attribute")]
    MissingSpace,
    /// An attribute without a value.
    #[error("the attribute '{name}' has no value: write {name}=\"…\"")]
    MissingValue {
        /// The attribute.
        name: Box<str>,
    },
    /// A value without quotes.
    #[error("the value of '{name}' has no quotes: write {name}=\"…\"")]
    UnquotedValue {
        /// The attribute.
        name: Box<str>,
    },
    /// A value in quotes that XML doesn't have, such as those of a word processor.
    #[error("the value of '{name}' stands in {quote}, which is no quote of XML: write {name}=\"…\"")]
    ForeignQuote {
        /// The attribute.
        name: Box<str>,
        /// The opening quote.
        quote: char,
    },
    /// A character in a tag that is neither part of an attribute nor its end.
    #[error("'{}' can't stand in a tag here", .found.escape_debug())]
    UnexpectedInTag {
        /// The character.
        found: char,
    },
    /// `<` in an attribute value.
    #[error("'<' can't stand in an attribute value: write &lt;")]
    LessThanInValue,
    /// The same attribute twice.
    #[error("the attribute '{name}' stands twice in this tag: keep one")]
    DuplicateAttribute {
        /// The attribute.
        name: Box<str>,
    },
    /// The same attribute twice under two prefixes.
    #[error("the attribute '{name}' stands twice in this tag, under prefixes of one namespace: keep one")]
    DuplicateExpandedName {
        /// The second of the attributes.
        name: Box<str>,
    },
    /// An entity other than the five of XML.
    #[error("there is no entity '&{name};': write the character itself; XML has only amp, lt, gt, quot and apos")]
    UndeclaredEntity {
        /// The name of the entity.
        name: Box<str>,
    },
    /// An `&` that starts no reference.
    #[error("'&' starts no reference here: write &amp; if it is text")]
    StrayAmpersand,
    /// `&#` without digits and `;`.
    #[error("this is no character reference: write &#1234; or &#x12AB;")]
    BadCharacterReference,
    /// A reference to a character that XML forbids.
    #[error("&#x{code:X}; refers to no character that XML allows: remove it")]
    IllegalReference {
        /// The code point; 2^32 - 1 if it is larger.
        code: u32,
    },
    /// A name with a colon where none can stand.
    #[error("'{name}' is no qualified name: write prefix:local or local")]
    BadQName {
        /// The name.
        name: Box<str>,
    },
    /// A prefix that no declaration binds.
    #[error("the prefix '{prefix}' is bound to no namespace: add xmlns:{prefix}=\"…\"")]
    UndeclaredPrefix {
        /// The prefix.
        prefix: Box<str>,
    },
    /// `xmlns:p=""`, which Namespaces in XML 1.0 forbids.
    #[error("a prefix can't be unbound: remove xmlns:{prefix}=\"\"")]
    PrefixUndeclared {
        /// The prefix.
        prefix: Box<str>,
    },
    /// A wrong use of `xml`, `xmlns` or their namespaces.
    #[error("the prefixes xml and xmlns and their namespaces belong to XML itself: choose others")]
    ReservedName,
    /// A namespace name without a scheme.
    #[error("the namespace name '{name}' is relative: write an absolute URI, such as urn:example:{name}")]
    RelativeNamespace {
        /// The namespace name.
        name: Box<str>,
    },
    /// More bytes than a message may have.
    #[error("{bytes} bytes are more than the {limit} that a message may have")]
    TooLarge {
        /// Number of bytes.
        bytes: usize,
        /// The limit.
        limit: usize,
    },
    /// The canonical form has more bytes than a message may have.
    #[error("the canonical form has more than the {limit} bytes that a message may have")]
    CanonicalTooLarge {
        /// The limit.
        limit: usize,
    },
    /// Elements too deep inside each other.
    #[error("more than {limit} elements inside each other")]
    TooDeep {
        /// The limit.
        limit: usize,
    },
    /// Too many attributes and namespace declarations in one tag.
    #[error("more than {limit} attributes and namespace declarations in one tag")]
    TooManyAttributes {
        /// The limit.
        limit: usize,
    },
    /// Too many namespace declarations in scope.
    #[error("more than {limit} namespace declarations in scope")]
    TooManyNamespaces {
        /// The limit.
        limit: usize,
    },
    /// A name over the limit.
    #[error("a name of {bytes} bytes: names may have {limit}")]
    NameTooLong {
        /// Number of bytes.
        bytes: usize,
        /// The limit.
        limit: usize,
    },
    /// An attribute value over the limit, as written or in canonical form.
    #[error("the value of '{name}' has {bytes} bytes: values may have {limit}")]
    ValueTooLong {
        /// The attribute.
        name: Box<str>,
        /// Number of bytes.
        bytes: usize,
        /// The limit.
        limit: usize,
    },
    /// A comment over the limit.
    #[error("a comment of {bytes} bytes: comments may have {limit}")]
    CommentTooLong {
        /// Number of bytes.
        bytes: usize,
        /// The limit.
        limit: usize,
    },
    /// A processing instruction over the limit.
    #[error("a processing instruction of {bytes} bytes: instructions may have {limit}")]
    InstructionTooLong {
        /// Number of bytes behind its name.
        bytes: usize,
        /// The limit.
        limit: usize,
    },
    /// A namespace name over the limit.
    #[error("a namespace name of {bytes} bytes: names may have {limit}")]
    NamespaceTooLong {
        /// Number of bytes.
        bytes: usize,
        /// The limit.
        limit: usize,
    },
}

impl StrictErrorKind {
    /// The rule that is broken: a production (its number in brackets) or constraint of a
    /// Recommendation, or a rule of Systole.
    pub fn rule(&self) -> &'static str {
        match self {
            Self::NotUtf8 | Self::Encoding { .. } => "XML 1.0 section 4.3.3",
            Self::ForbiddenCharacter { .. } => "XML 1.0 [2] Char",
            Self::MalformedDeclaration => "XML 1.0 [23] XMLDecl",
            Self::ReservedTarget | Self::BadTarget => "XML 1.0 [17] PITarget",
            Self::Doctype => "no document type declaration",
            Self::NoElement | Self::SecondElement => "XML 1.0 [1] document",
            Self::TextOutside => "XML 1.0 [27] Misc",
            Self::Unclosed { .. } | Self::MismatchedEnd { .. } | Self::StrayEnd { .. } => {
                "XML 1.0 [WFC: Element Type Match]"
            }
            Self::UnknownMarkup | Self::StrayLessThan => "XML 1.0 [43] content",
            Self::EndOfInput { token } => token.rule(),
            Self::DoubleHyphen => CutToken::Comment.rule(),
            Self::ColonInTarget => "Namespaces 1.0 section 7",
            Self::BadInstruction => CutToken::Instruction.rule(),
            Self::SectionEndInText => "XML 1.0 [14] CharData",
            Self::MissingSpace | Self::UnexpectedInTag { .. } => "XML 1.0 [40] STag",
            Self::MissingValue { .. } => "XML 1.0 [41] Attribute",
            Self::UnquotedValue { .. } | Self::ForeignQuote { .. } => CutToken::Value.rule(),
            Self::LessThanInValue => "XML 1.0 [WFC: No < in Attribute Values]",
            Self::DuplicateAttribute { .. } => "XML 1.0 [WFC: Unique Att Spec]",
            Self::DuplicateExpandedName { .. } => "Namespaces 1.0 [NSC: Attributes Unique]",
            Self::UndeclaredEntity { .. } => "XML 1.0 [WFC: Entity Declared]",
            Self::StrayAmpersand => "XML 1.0 [68] EntityRef",
            Self::BadCharacterReference => "XML 1.0 [66] CharRef",
            Self::IllegalReference { .. } => "XML 1.0 [WFC: Legal Character]",
            Self::BadQName { .. } => "Namespaces 1.0 [7] QName",
            Self::UndeclaredPrefix { .. } => "Namespaces 1.0 [NSC: Prefix Declared]",
            Self::PrefixUndeclared { .. } => "Namespaces 1.0 [NSC: No Prefix Undeclaring]",
            Self::ReservedName => "Namespaces 1.0 [NSC: Reserved Prefixes and Namespace Names]",
            Self::RelativeNamespace { .. } => "Canonical XML 1.0 section 2.1",
            Self::TooLarge { .. } => "limit on the bytes of a message",
            Self::CanonicalTooLarge { .. } => "limit on the bytes of a canonical message",
            Self::TooDeep { .. } => "limit on depth",
            Self::TooManyAttributes { .. } => "limit on attributes",
            Self::TooManyNamespaces { .. } => "limit on namespace declarations in scope",
            Self::NameTooLong { .. } => "limit on names",
            Self::NamespaceTooLong { .. } => "limit on namespace names",
            Self::ValueTooLong { .. } => "limit on attribute values",
            Self::CommentTooLong { .. } => "limit on comments",
            Self::InstructionTooLong { .. } => "limit on processing instructions",
        }
    }

    /// Returns whether this is a limit, rather than a rule of XML.
    pub fn is_limit(&self) -> bool {
        matches!(
            self,
            Self::TooLarge { .. }
                | Self::CanonicalTooLarge { .. }
                | Self::TooDeep { .. }
                | Self::TooManyAttributes { .. }
                | Self::TooManyNamespaces { .. }
                | Self::NameTooLong { .. }
                | Self::NamespaceTooLong { .. }
                | Self::ValueTooLong { .. }
                | Self::CommentTooLong { .. }
                | Self::InstructionTooLong { .. }
        )
    }
}

/// A token that the end of the input can cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum CutToken {
    /// `<!-- … -->`
    Comment,
    /// `<![CDATA[ … ]]>`
    Section,
    /// `<? … ?>`
    Instruction,
    /// `<name …>`
    StartTag,
    /// `</name>`
    EndTag,
    /// `"…"`
    Value,
}

impl CutToken {
    fn article(self) -> &'static str {
        match self {
            Self::Comment => "a comment",
            Self::Section => "a CDATA section",
            Self::Instruction => "a processing instruction",
            Self::StartTag => "a start tag",
            Self::EndTag => "an end tag",
            Self::Value => "an attribute value",
        }
    }

    fn rule(self) -> &'static str {
        match self {
            Self::Comment => "XML 1.0 [15] Comment",
            Self::Section => "XML 1.0 [18] CDSect",
            Self::Instruction => "XML 1.0 [16] PI",
            Self::StartTag => "XML 1.0 [40] STag",
            Self::EndTag => "XML 1.0 [42] ETag",
            Self::Value => "XML 1.0 [10] AttValue",
        }
    }
}
