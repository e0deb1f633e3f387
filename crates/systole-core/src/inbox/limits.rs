//! Bounds on an inbox.

use std::time::Duration;

/// Bounds on one inbox. The defaults are in brackets. Bytes are counted as the text stands in XML, so that `&` counts
/// as the five of `&amp;`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InboxLimits {
    /// Unfinished tasks: not ended, or ended with a message that the submitter has not acknowledged (1,024).
    pub open: usize,
    /// Finished tasks that are kept whole; past it the oldest is deleted, or forgotten but for its idempotency key (1,024).
    pub ended: usize,
    /// Time for which the idempotency key of a finished task is known, even if the task is forgotten (24 h).
    pub keys: Duration,
    /// Bytes of all unfinished tasks and of the keys of forgotten ones, at 1 KiB each: past it submissions are refused.
    /// Finished tasks fill the rest, and are forgotten when it is needed (64 MiB).
    pub bytes: usize,
    /// Bytes of one task, so that it fits into a message (512 KiB).
    pub task_bytes: usize,
    /// Bytes of one description (64 KiB).
    pub description_bytes: usize,
    /// Bytes of one context (256 KiB).
    pub context_bytes: usize,
    /// Bytes of one result, reason, progress, question or answer (64 KiB).
    pub text_bytes: usize,
    /// Bytes of one idempotency key, of one key of a context, and of the name of one artifact (256).
    pub key_bytes: usize,
    /// Keys in one context (256).
    pub entries: usize,
    /// Artifacts of one task (64).
    pub artifacts: usize,
    /// Bytes of all artifacts of one task (256 KiB).
    pub artifact_bytes: usize,
    /// Questions about one task (16).
    pub questions: usize,
    /// Events of one task that wait for its submitter; past it the owner can't add to them (256).
    pub outbox: usize,
    /// Bytes of the text rendered for a model; it has the first task in any case (256 KiB).
    pub rendered_bytes: usize,
}

impl Default for InboxLimits {
    fn default() -> Self {
        Self {
            open: 1024,
            ended: 1024,
            keys: Duration::from_secs(24 * 60 * 60),
            bytes: 64 << 20,
            task_bytes: 512 << 10,
            description_bytes: 64 << 10,
            context_bytes: 256 << 10,
            text_bytes: 64 << 10,
            key_bytes: 256,
            entries: 256,
            artifacts: 64,
            artifact_bytes: 256 << 10,
            questions: 16,
            outbox: 256,
            rendered_bytes: 256 << 10,
        }
    }
}
