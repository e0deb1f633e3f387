//! Limits of an organism.

use std::time::Duration;

use systole_xml::vocab::XmlLimits;

/// Bounds on an organism. The defaults are in brackets.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// Bounds on one document.
    pub xml: XmlLimits,
    /// Threads below each other; a thread at this depth can't call (64).
    pub thread_depth: u32,
    /// Payloads in one response (256).
    pub fanout: usize,
    /// Open children and queued messages of one thread (1,024).
    pub mailbox: usize,
    /// Messages on the entrance queue (65,536).
    pub queue: usize,
    /// Bytes on the entrance queue (256 MiB).
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
    /// The time that a handler may run without awaiting a call (30 s).
    pub handler_timeout: Duration,
    /// Responses in a row without one valid emission after which a thread fails (3; at most 255).
    pub invalid_responses: u32,
    /// Turns in which a thread calls others before it answers its request (1,000). Past it further calls are refused.
    pub turns: u32,
    /// Times that the same calls of a thread may get the same answers while nothing new comes, from its second turn on (3).
    /// Then the same calls are refused.
    pub repeats: u32,
    /// The number of dispatches of a message after crashes that it may have caused, before it is a dead letter (5).
    pub max_attempts: u32,
    /// The time that a root without an open child stays after its last message (15 min).
    pub root_idle: Duration,
    /// Answers of one client that are unread or still to come (65,536): past that its messages are refused.
    pub egress: usize,
    /// Bytes of those answers, those to come counted as their messages or the largest of the latest answers (64 MiB).
    pub egress_bytes: usize,
    /// Messages of context kept for one thread (64).
    pub context_messages: usize,
    /// Bytes of context kept for one thread (256 KiB).
    pub context_bytes: usize,
    /// Bytes of context kept in the organism (64 MiB).
    pub context_total_bytes: usize,
    /// Dead letters of the organism; past it the oldest goes (1,024).
    pub dead_letters: usize,
    /// Bytes that the dead letters of the organism hold; past it the oldest go (64 MiB).
    pub dead_letter_bytes: usize,
    /// Bytes of one draft that are shown (256 KiB); past it its beginning goes.
    pub draft_bytes: usize,
    /// Bytes of all drafts of the organism (16 MiB); past it the oldest text goes. Without any there are no drafts.
    pub draft_total_bytes: usize,
}

systole_xml::vocab::setters!(Limits {
    xml: XmlLimits,
    thread_depth: u32,
    fanout: usize,
    mailbox: usize,
    queue: usize,
    queue_bytes: usize,
    conversation_threads: usize,
    conversation_messages: usize,
    conversation_bytes: usize,
    threads: usize,
    handler_timeout: Duration,
    invalid_responses: u32,
    turns: u32,
    repeats: u32,
    max_attempts: u32,
    root_idle: Duration,
    egress: usize,
    egress_bytes: usize,
    context_messages: usize,
    context_bytes: usize,
    context_total_bytes: usize,
    dead_letters: usize,
    dead_letter_bytes: usize,
    draft_bytes: usize,
    draft_total_bytes: usize,
});

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
            turns: 1000,
            repeats: 3,
            max_attempts: 5,
            root_idle: Duration::from_secs(15 * 60),
            egress: 65_536,
            egress_bytes: 64 << 20,
            context_messages: 64,
            context_bytes: 256 << 10,
            context_total_bytes: 64 << 20,
            dead_letters: 1024,
            dead_letter_bytes: 64 << 20,
            draft_bytes: 256 << 10,
            draft_total_bytes: 16 << 20,
        }
    }
}
