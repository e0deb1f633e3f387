/// Bounds on one XML document. Past one of them, the document is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct XmlLimits {
    /// Bytes of the whole document (1 MiB).
    pub message_bytes: usize,
    /// Elements inside each other (256).
    pub depth: usize,
    /// Attributes of one element, namespace declarations included (256).
    pub attributes: usize,
    /// Namespace declarations in scope at one element (1,024).
    pub namespaces: usize,
    /// Bytes of one name (1 KiB).
    pub name_bytes: usize,
    /// Bytes between the quotes of one attribute, as it is written and in canonical form (1 MiB). Namespace names
    /// are names instead.
    pub value_bytes: usize,
    /// Bytes of one comment, between `<!--` and `-->` (1 MiB).
    pub comment_bytes: usize,
    /// Bytes of one processing instruction, between its name and `?>` (1 MiB).
    pub instruction_bytes: usize,
    /// Whether a namespace name may be relative (no). Canonical XML forbids that of a message; of a document that is
    /// only judged, such as a schema, nothing does.
    pub relative_namespaces: bool,
}

impl XmlLimits {
    /// No bounds: for bytes that were within theirs already.
    pub const UNLIMITED: Self = Self {
        message_bytes: usize::MAX,
        depth: usize::MAX,
        attributes: usize::MAX,
        namespaces: usize::MAX,
        name_bytes: usize::MAX,
        value_bytes: usize::MAX,
        comment_bytes: usize::MAX,
        instruction_bytes: usize::MAX,
        relative_namespaces: true,
    };
}

impl Default for XmlLimits {
    fn default() -> Self {
        Self {
            message_bytes: 1 << 20,
            depth: 256,
            attributes: 256,
            namespaces: 1024,
            name_bytes: 1 << 10,
            value_bytes: 1 << 20,
            comment_bytes: 1 << 20,
            instruction_bytes: 1 << 20,
            relative_namespaces: false,
        }
    }
}
