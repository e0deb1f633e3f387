//! Limits of one XML document.

/// Limits of one XML document. A document past one of them is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
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
    /// Bytes between the quotes of one attribute, as written and in canonical form (1 MiB). `name_bytes` bounds
    /// namespace names.
    pub value_bytes: usize,
    /// Bytes of one comment, between `<!--` and `-->` (1 MiB).
    pub comment_bytes: usize,
    /// Bytes of one processing instruction, between its name and `?>` (1 MiB).
    pub instruction_bytes: usize,
    /// Allows relative namespace names (no). Canonical XML forbids them in messages; in a document that is only read,
    /// such as a schema, no rule does.
    pub relative_namespaces: bool,
}

crate::vocab::setters!(XmlLimits {
    message_bytes: usize,
    depth: usize,
    attributes: usize,
    namespaces: usize,
    name_bytes: usize,
    value_bytes: usize,
    comment_bytes: usize,
    instruction_bytes: usize,
    relative_namespaces: bool,
});

impl XmlLimits {
    /// No limits: for bytes that were within the limits already.
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
