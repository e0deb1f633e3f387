use std::time::Duration;

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

/// Bounds on an organism. The defaults are in brackets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// Bounds on one document.
    pub xml: XmlLimits,
    /// Threads below each other; a thread at this depth can't call (64).
    pub thread_depth: u32,
    /// Payloads in one response (256).
    pub fanout: usize,
    /// Open children and queued messages of one thread (1,024).
    pub mailbox: usize,
    /// Messages on Queue 1 (65,536).
    pub queue: usize,
    /// Bytes on Queue 1 (256 MiB).
    pub queue_bytes: usize,
    /// Live threads of one conversation (10,000). Past it the thread that calls fails.
    pub conversation_threads: usize,
    /// Messages that one conversation holds at once (16,384): in mailboxes, delayed, and answers that handlers await,
    /// faults and answers of the core among them. Past it the thread that emits fails.
    pub conversation_messages: usize,
    /// Bytes of those messages (64 MiB).
    pub conversation_bytes: usize,
    /// Live threads of the organism (1,000,000).
    pub threads: usize,
    /// How long a handler may run without awaiting a call (30 s).
    pub handler_timeout: Duration,
    /// Responses in a row without one valid emission after which a thread fails (3; at most 255).
    pub invalid_responses: u32,
    /// How often a message is dispatched after a crash that it may have caused, before it is a dead letter (5).
    pub max_attempts: u32,
    /// How long a root without an open child stays after its last message (15 min).
    pub root_idle: Duration,
    /// Messages that a client may leave unread before its conversations are cancelled (65,536).
    pub egress: usize,
    /// Bytes that a client may leave unread before its conversations are cancelled (64 MiB).
    pub egress_bytes: usize,
    /// Messages of context kept for one thread (64).
    pub context_messages: usize,
    /// Bytes of context kept for one thread (256 KiB).
    pub context_bytes: usize,
    /// Bytes of context kept in the organism (64 MiB).
    pub context_total_bytes: usize,
    /// Dead letters that each shard keeps; past it the oldest goes (1,024).
    pub dead_letters: usize,
    /// Bytes that the dead letters of each shard hold; past it the oldest go (64 MiB).
    pub dead_letter_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            xml: XmlLimits::default(),
            thread_depth: 64,
            fanout: 256,
            mailbox: 1024,
            queue: 65_536,
            queue_bytes: 256 << 20,
            conversation_threads: 10_000,
            conversation_messages: 16_384,
            conversation_bytes: 64 << 20,
            threads: 1_000_000,
            handler_timeout: Duration::from_secs(30),
            invalid_responses: 3,
            max_attempts: 5,
            root_idle: Duration::from_secs(15 * 60),
            egress: 65_536,
            egress_bytes: 64 << 20,
            context_messages: 64,
            context_bytes: 256 << 10,
            context_total_bytes: 64 << 20,
            dead_letters: 1024,
            dead_letter_bytes: 64 << 20,
        }
    }
}
