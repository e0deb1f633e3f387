use crate::vocab::Position;

/// Why repair refuses, and where. Names that it quotes are cut to 64 characters.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RepairError {
    /// The input ends inside a token, inside text, or where nobody can tell what is missing.
    #[error("{at}: truncated: the input ends {}, so something is missing: send it again, whole", place(.inside))]
    Truncated {
        /// Where the piece starts that is cut off.
        at: Position,
        /// The innermost element that is open there.
        inside: Option<Box<str>>,
    },
    /// A tag that may have been meant in several ways.
    #[error("{at}: <{name}> is ambiguous here: write <{name}>…</{name}> for an element, &lt;{name}> for text")]
    Ambiguous {
        /// Start of the element.
        at: Position,
        /// Name of the element.
        name: Box<str>,
    },
    /// There is no element.
    #[error("{at}: nothing here looks like XML: write one element, such as <name>…</name>")]
    NotXml {
        /// The first thing that isn't white space.
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
        /// Where the subset starts.
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
    /// A prefix that nothing binds.
    #[error("{at}: the prefix '{prefix}' is bound to no namespace: add xmlns:{prefix}=\"…\"")]
    UnboundPrefix {
        /// Where the name starts.
        at: Position,
        /// The prefix.
        prefix: Box<str>,
    },
    /// `xmlns:p=""`, which Namespaces in XML 1.0 doesn't have.
    #[error("{at}: the prefix '{prefix}' can't be bound to nothing: remove this declaration or name a namespace")]
    EmptyNamespace {
        /// Where the declaration starts.
        at: Position,
        /// The prefix.
        prefix: Box<str>,
    },
    /// A wrong use of the prefixes `xml` and `xmlns` or of their namespaces.
    #[error("{at}: the prefixes xml and xmlns and their namespaces belong to XML itself: choose others")]
    ReservedNamespace {
        /// Where the name starts.
        at: Position,
    },
    /// A namespace name without a scheme.
    #[error("{at}: the namespace '{name}' is relative: write an absolute URI, such as urn:example:{name}")]
    RelativeNamespace {
        /// Where the declaration starts.
        at: Position,
        /// The namespace name.
        name: Box<str>,
    },
    /// Bytes in an encoding that repair doesn't read.
    #[error("{at}: the encoding {encoding} is not supported: send UTF-8")]
    UnsupportedEncoding {
        /// Where it shows.
        at: Position,
        /// What it is called.
        encoding: Box<str>,
    },
    /// More bytes than a message may have.
    #[error("{at}: {bytes} bytes are more than the {limit} that a message may have")]
    TooLarge {
        /// The first byte too many.
        at: Position,
        /// How many there are.
        bytes: usize,
        /// How many there may be.
        limit: usize,
    },
    /// What repair would write has more bytes than a message may have.
    #[error("{at}: repaired up to here, the message has more than the {limit} bytes that it may have")]
    RepairedTooLarge {
        /// How far repair came.
        at: Position,
        /// How many there may be.
        limit: usize,
    },
    /// Elements too deep inside each other.
    #[error("{at}: more than {limit} elements inside each other")]
    TooDeep {
        /// The first element too deep.
        at: Position,
        /// How many there may be.
        limit: usize,
    },
    /// Too many attributes in one tag.
    #[error("{at}: {count} attributes and namespace declarations in one tag: {limit} are allowed")]
    TooManyAttributes {
        /// The tag.
        at: Position,
        /// How many there are, those included that stand twice.
        count: usize,
        /// How many there may be.
        limit: usize,
    },
    /// Too many namespace declarations in scope.
    #[error("{at}: more than {limit} namespace declarations in scope")]
    TooManyNamespaces {
        /// The tag.
        at: Position,
        /// How many there may be.
        limit: usize,
    },
    /// An attribute value is too long.
    #[error("{at}: the value of '{name}' has {bytes} bytes: values may have {limit}")]
    ValueTooLong {
        /// Where the attribute starts.
        at: Position,
        /// The attribute.
        name: Box<str>,
        /// How many bytes it has, repaired.
        bytes: usize,
        /// How many it may have.
        limit: usize,
    },
    /// A comment is too long.
    #[error("{at}: a comment of {bytes} bytes: comments may have {limit}")]
    CommentTooLong {
        /// Start of the element.
        at: Position,
        /// How many bytes it has, repaired.
        bytes: usize,
        /// How many it may have.
        limit: usize,
    },
    /// A processing instruction is too long.
    #[error("{at}: a processing instruction of {bytes} bytes: instructions may have {limit}")]
    InstructionTooLong {
        /// Start of the element.
        at: Position,
        /// How many bytes stand behind its name.
        bytes: usize,
        /// How many may stand there.
        limit: usize,
    },
    /// A name is too long.
    #[error("{at}: a name of {bytes} bytes: names may have {limit}")]
    NameTooLong {
        /// Start of the element.
        at: Position,
        /// How many bytes it has.
        bytes: usize,
        /// How many it may have.
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
            | Self::SecondElement { at }
            | Self::InternalSubset { at }
            | Self::SecondSectionEnd { at }
            | Self::UnboundPrefix { at, .. }
            | Self::EmptyNamespace { at, .. }
            | Self::ReservedNamespace { at }
            | Self::RelativeNamespace { at, .. }
            | Self::UnsupportedEncoding { at, .. }
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

    /// Whether a limit was passed, rather than something beyond repair.
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
            | Self::SecondElement { .. }
            | Self::InternalSubset { .. }
            | Self::SecondSectionEnd { .. }
            | Self::UnboundPrefix { .. }
            | Self::EmptyNamespace { .. }
            | Self::ReservedNamespace { .. }
            | Self::RelativeNamespace { .. }
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
