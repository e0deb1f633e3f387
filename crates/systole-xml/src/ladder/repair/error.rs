//! The errors of repair.

use crate::vocab::Position;

/// The reason why repair refuses. Names that it quotes are cut to 64 characters.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RepairError {
    /// The input ends inside a token or inside text, or the missing part can't be determined.
    #[error("{at}: truncated: the input ends {}, so something is missing: send it again, whole", place(.inside))]
    Truncated {
        /// Start of the piece that is cut off.
        at: Position,
        /// The innermost element that is open there.
        inside: Option<Box<str>>,
    },
    /// A tag with several possible meanings.
    #[error("{at}: <{name}> is ambiguous here: write <{name}>…</{name}> for an element, &lt;{name}> for text")]
    Ambiguous {
        /// Start of the element.
        at: Position,
        /// Name of the element.
        name: Box<str>,
    },
    /// A top-level element amid a sentence of prose.
    #[error(
        "{at}: <{name}> stands amid a sentence and may only be mentioned: put it on a line of its own to send it, write {name} without brackets to mention it"
    )]
    Mentioned {
        /// Start of the element.
        at: Position,
        /// Name of the element.
        name: Box<str>,
    },
    /// An element in thoughts, where no other one stands behind them; or in brackets of unknown meaning.
    #[error(
        "{at}: <{name}> stands in thoughts or in the words of another speaker, or the words around it leave that open, and may be a draft: send only what you mean, the element alone, without thoughts, labels and other words around it"
    )]
    Draft {
        /// Start of the element.
        at: Position,
        /// Name of the element.
        name: Box<str>,
    },
    /// An element behind another one, and text between them that may take the first one back.
    #[error(
        "{at}: the text between this <{name}> and the element before it leaves open which of them is meant, and one may be a draft: send only what you mean, one element right behind the other, with all words before the first or behind the last"
    )]
    Between {
        /// Start of the second element.
        at: Position,
        /// Name of the second element.
        name: Box<str>,
    },
    /// An element behind thoughts that words begin and nothing ends.
    #[error(
        "{at}: <{name}> stands behind thoughts that begin at {marker} and have no end, and may be a draft of theirs: send it without them, or write Answer: on a line of its own between them"
    )]
    BehindThought {
        /// Start of the element.
        at: Position,
        /// Name of the element.
        name: Box<str>,
        /// Start of the thoughts.
        marker: Position,
    },
    /// An element behind a turn of another speaker, which stands behind an element.
    #[error(
        "{at}: <{name}> stands behind a turn of another speaker, which is made up: send what is yours, and wait for the answer"
    )]
    OtherTurn {
        /// Start of the element.
        at: Position,
        /// Name of the element.
        name: Box<str>,
    },
    /// Markup without its end: a comment, a CDATA section or a processing instruction; or thoughts without theirs.
    #[error(
        "{at}: truncated: this {construct} has no end: write {end} behind it or, if the text was cut off, send it again, whole"
    )]
    Unclosed {
        /// Start of the markup.
        at: Position,
        /// The construct that it opens.
        construct: &'static str,
        /// End of the construct.
        end: &'static str,
    },
    /// A misspelt start of a comment or of a CDATA section.
    #[error("{at}: {written} opens no {construct}: write {whole} for one, &lt; in place of < for text")]
    Misspelt {
        /// Start of the markup.
        at: Position,
        /// The markup as written.
        written: &'static str,
        /// The construct that it resembles.
        construct: &'static str,
        /// The construct as XML has it.
        whole: &'static str,
    },
    /// Two attributes of one name with different values.
    #[error("{at}: the tag has the attribute '{name}' twice, with different values: keep the one that is meant")]
    AttributeTwice {
        /// Start of the second attribute.
        at: Position,
        /// Name of the second attribute.
        name: Box<str>,
    },
    /// An input without any element.
    #[error("{at}: nothing here looks like XML: write one element, such as <name>…</name>")]
    NotXml {
        /// The first character that isn't white space.
        at: Position,
    },
    /// A second top-level element where only one may stand.
    #[error("{at}: a second top-level element starts here: send one element, or wrap them in one")]
    SecondElement {
        /// Start of the element.
        at: Position,
    },
    /// A document type declaration with declarations of its own.
    #[error("{at}: a DOCTYPE with an internal subset is not allowed: remove it and write out its entities")]
    InternalSubset {
        /// Start of the subset.
        at: Position,
    },
    /// A second `]]>` behind one CDATA section.
    #[error(
        "{at}: this CDATA section ends at its first ]]>, and another one follows: write ]]]]><![CDATA[> for a ]]> inside of it"
    )]
    SecondSectionEnd {
        /// Start of the section.
        at: Position,
    },
    /// A prefix that no declaration binds.
    #[error("{at}: the prefix '{prefix}' is bound to no namespace: add xmlns:{prefix}=\"…\"")]
    UnboundPrefix {
        /// Start of the name.
        at: Position,
        /// The prefix.
        prefix: Box<str>,
    },
    /// `xmlns:p=""`, which Namespaces in XML 1.0 forbids.
    #[error("{at}: the prefix '{prefix}' can't be bound to nothing: remove this declaration or name a namespace")]
    EmptyNamespace {
        /// Start of the declaration.
        at: Position,
        /// The prefix.
        prefix: Box<str>,
    },
    /// A wrong use of the prefixes `xml` and `xmlns` or of their namespaces.
    #[error("{at}: the prefixes xml and xmlns and their namespaces belong to XML itself: choose others")]
    ReservedNamespace {
        /// Start of the name.
        at: Position,
    },
    /// A namespace name without a scheme.
    #[error("{at}: the namespace '{name}' is relative: write an absolute URI, such as urn:example:{name}")]
    RelativeNamespace {
        /// Start of the declaration.
        at: Position,
        /// The namespace name.
        name: Box<str>,
    },
    /// A text that holds one of `&` and `<` as it is, and the other one only escaped.
    #[error(
        "{at}: this sign is not escaped, but others of its text are, so that the text can be read in two ways: escape each & and <, or put the text into <![CDATA[ … ]]> as it is"
    )]
    HalfEscaped {
        /// The first sign that is not escaped.
        at: Position,
    },
    /// Bytes that are no characters in their encoding.
    #[error(
        "{at}: these bytes are no {encoding}: send UTF-8, or an XML declaration with encoding=\"ISO-8859-1\" or \"windows-1252\" if they are that"
    )]
    InvalidBytes {
        /// The first of the bytes.
        at: Position,
        /// The encoding.
        encoding: &'static str,
    },
    /// Bytes in an encoding that repair doesn't read.
    #[error("{at}: the encoding {encoding} is not supported: send UTF-8")]
    UnsupportedEncoding {
        /// The XML declaration, or the first byte.
        at: Position,
        /// Name of the encoding.
        encoding: Box<str>,
    },
    /// More bytes than a message may have.
    #[error("{at}: {bytes} bytes are more than the {limit} that a message may have")]
    TooLarge {
        /// The first byte too many.
        at: Position,
        /// Number of bytes.
        bytes: usize,
        /// The limit.
        limit: usize,
    },
    /// Repaired bytes beyond the limit of a message.
    #[error("{at}: repaired up to here, the message has more than the {limit} bytes that it may have")]
    RepairedTooLarge {
        /// The place in the input up to which repair came.
        at: Position,
        /// The limit.
        limit: usize,
    },
    /// Elements too deep inside each other.
    #[error("{at}: more than {limit} elements inside each other")]
    TooDeep {
        /// The first element too deep.
        at: Position,
        /// The limit.
        limit: usize,
    },
    /// Too many attributes in one tag.
    #[error("{at}: {count} attributes and namespace declarations in one tag: {limit} are allowed")]
    TooManyAttributes {
        /// The tag.
        at: Position,
        /// Number of attributes, duplicates included.
        count: usize,
        /// The limit.
        limit: usize,
    },
    /// Too many namespace declarations in scope.
    #[error("{at}: more than {limit} namespace declarations in scope")]
    TooManyNamespaces {
        /// The tag.
        at: Position,
        /// The limit.
        limit: usize,
    },
    /// An attribute value over the limit.
    #[error("{at}: the value of '{name}' has {bytes} bytes: values may have {limit}")]
    ValueTooLong {
        /// Start of the attribute.
        at: Position,
        /// The attribute.
        name: Box<str>,
        /// Number of bytes after repair.
        bytes: usize,
        /// The limit.
        limit: usize,
    },
    /// A comment over the limit.
    #[error("{at}: a comment of {bytes} bytes: comments may have {limit}")]
    CommentTooLong {
        /// Start of the comment.
        at: Position,
        /// Number of bytes after repair.
        bytes: usize,
        /// The limit.
        limit: usize,
    },
    /// A processing instruction over the limit.
    #[error("{at}: a processing instruction of {bytes} bytes: instructions may have {limit}")]
    InstructionTooLong {
        /// Start of the instruction.
        at: Position,
        /// Number of bytes behind its name.
        bytes: usize,
        /// The limit.
        limit: usize,
    },
    /// A name over the limit.
    #[error("{at}: a name of {bytes} bytes: names may have {limit}")]
    NameTooLong {
        /// Start of the name.
        at: Position,
        /// Number of bytes.
        bytes: usize,
        /// The limit.
        limit: usize,
    },
}

impl RepairError {
    /// The place in the raw input.
    pub const fn position(&self) -> Position {
        match *self {
            Self::Truncated { at, .. }
            | Self::NotXml { at }
            | Self::Ambiguous { at, .. }
            | Self::Mentioned { at, .. }
            | Self::Draft { at, .. }
            | Self::Between { at, .. }
            | Self::BehindThought { at, .. }
            | Self::OtherTurn { at, .. }
            | Self::Unclosed { at, .. }
            | Self::Misspelt { at, .. }
            | Self::AttributeTwice { at, .. }
            | Self::SecondElement { at }
            | Self::InternalSubset { at }
            | Self::SecondSectionEnd { at }
            | Self::UnboundPrefix { at, .. }
            | Self::EmptyNamespace { at, .. }
            | Self::ReservedNamespace { at }
            | Self::RelativeNamespace { at, .. }
            | Self::UnsupportedEncoding { at, .. }
            | Self::HalfEscaped { at }
            | Self::InvalidBytes { at, .. }
            | Self::TooLarge { at, .. }
            | Self::RepairedTooLarge { at, .. }
            | Self::TooDeep { at, .. }
            | Self::TooManyAttributes { at, .. }
            | Self::TooManyNamespaces { at, .. }
            | Self::ValueTooLong { at, .. }
            | Self::CommentTooLong { at, .. }
            | Self::InstructionTooLong { at, .. }
            | Self::NameTooLong { at, .. } => at,
        }
    }

    /// Returns whether an element may be one that its author does not mean.
    pub(in crate::ladder) const fn is_draft(&self) -> bool {
        matches!(
            self,
            Self::Draft { .. }
                | Self::Between { .. }
                | Self::BehindThought { .. }
                | Self::OtherTurn { .. }
                | Self::Unclosed { .. }
        )
    }

    /// Returns whether the input passes a limit, rather than can't be repaired.
    pub const fn is_limit(&self) -> bool {
        match self {
            Self::TooLarge { .. }
            | Self::RepairedTooLarge { .. }
            | Self::TooDeep { .. }
            | Self::TooManyAttributes { .. }
            | Self::TooManyNamespaces { .. }
            | Self::ValueTooLong { .. }
            | Self::CommentTooLong { .. }
            | Self::InstructionTooLong { .. }
            | Self::NameTooLong { .. } => true,
            Self::Truncated { .. }
            | Self::NotXml { .. }
            | Self::Ambiguous { .. }
            | Self::Mentioned { .. }
            | Self::Draft { .. }
            | Self::Between { .. }
            | Self::BehindThought { .. }
            | Self::OtherTurn { .. }
            | Self::Unclosed { .. }
            | Self::Misspelt { .. }
            | Self::AttributeTwice { .. }
            | Self::SecondElement { .. }
            | Self::InternalSubset { .. }
            | Self::SecondSectionEnd { .. }
            | Self::UnboundPrefix { .. }
            | Self::EmptyNamespace { .. }
            | Self::ReservedNamespace { .. }
            | Self::RelativeNamespace { .. }
            | Self::HalfEscaped { .. }
            | Self::InvalidBytes { .. }
            | Self::UnsupportedEncoding { .. } => false,
        }
    }
}

fn place(inside: &Option<Box<str>>) -> String {
    match inside {
        Some(name) => format!("inside <{name}>"),
        None => "inside a tag, a comment or the like".to_owned(),
    }
}
