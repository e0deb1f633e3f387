//! The keys below `limits:`. All bounds of [`Limits`] and of [`XmlLimits`](systole_core::vocab::XmlLimits) can be set;
//! keys that are left out keep their default.

use systole_core::vocab::Limits;

use super::document::Node;
use super::keys::{Count, Size, Time, mapping};
use super::reader::Reader;

const MANY: u64 = u32::MAX as u64;
/// 1 TiB: more than any machine that this runs on has.
const BIG: u64 = 1 << 40;

mapping! {
    /// Bounds, each with a fault that names it.
    LimitKeys: Limits {
        /// One document, and the output of a command.
        message_bytes: Size<64, BIG> = "1MiB";
        /// Elements inside of each other.
        element_depth: Count<1, MANY> = 256;
        /// Attributes of one element.
        attributes: Count<1, MANY> = 256;
        /// Namespace declarations in scope at one element.
        namespaces: Count<1, MANY> = 1024;
        /// One element or attribute name.
        name_bytes: Size<1, BIG> = "1KiB";
        /// One attribute value.
        value_bytes: Size<0, BIG> = "1MiB";
        /// One comment.
        comment_bytes: Size<0, BIG> = "1MiB";
        /// One processing instruction.
        instruction_bytes: Size<0, BIG> = "1MiB";
        /// Threads below each other.
        thread_depth: Count<1, MANY> = 64;
        /// Payloads of one response.
        fanout: Count<1, MANY> = 256;
        /// Messages and open calls of one thread.
        mailbox: Count<1, MANY> = 1024;
        /// Messages that wait in the whole organism.
        queue: Count<1, MANY> = 65536;
        /// Bytes of those messages.
        queue_bytes: Size<1, BIG> = "256MiB";
        /// Threads of one conversation.
        conversation_threads: Count<1, MANY> = 10000;
        /// Messages that one conversation holds at once, those of the pump included.
        conversation_messages: Count<1, MANY> = 16384;
        /// Bytes of those messages.
        conversation_bytes: Size<1, BIG> = "64MiB";
        /// Threads of the organism.
        threads: Count<1, MANY> = 1000000;
        /// Time that a handler may run, unless its listener has a timeout.
        handler_timeout: Time<1> = "30s";
        /// Responses in a row without one valid payload before a thread fails.
        invalid_responses: Count<1, MANY> = 3;
        /// Turns in which a thread calls others before it answers its request.
        turns: Count<1, MANY> = 1000;
        /// Times in a row that the same calls of a thread may get the same answers.
        repeats: Count<1, MANY> = 3;
        /// Runs of a message that may have ended the process.
        max_attempts: Count<1, 255> = 5;
        /// Time that a conversation stays open without a message.
        root_idle: Time<1> = "15min";
        /// Answers of one client that are unread or still to come.
        egress: Count<1, MANY> = 65536;
        /// Bytes of those answers.
        egress_bytes: Size<1, BIG> = "64MiB";
        /// Messages that the context of a thread remembers.
        context_messages: Count<0, MANY> = 64;
        /// Bytes of those messages.
        context_bytes: Size<0, BIG> = "256KiB";
        /// Bytes of all contexts.
        context_total_bytes: Size<0, BIG> = "64MiB";
        /// Dead letters that are kept.
        dead_letters: Count<0, MANY> = 1024;
        /// Bytes of those dead letters.
        dead_letter_bytes: Size<0, BIG> = "64MiB";
        /// Bytes of one draft, of which the beginning goes.
        draft_bytes: Size<0, BIG> = "256KiB";
        /// Bytes of all drafts; 0 for none.
        draft_total_bytes: Size<0, BIG> = "16MiB";
    }
}

pub(super) fn read(reader: &mut Reader, node: &Node) -> Limits {
    let mut limits = Limits::default();
    let Some(keys) = LimitKeys::open(reader, node) else { return limits };
    let xml = &mut limits.xml;
    keys.message_bytes.set(reader, &mut xml.message_bytes);
    keys.element_depth.set(reader, &mut xml.depth);
    keys.attributes.set(reader, &mut xml.attributes);
    keys.namespaces.set(reader, &mut xml.namespaces);
    keys.name_bytes.set(reader, &mut xml.name_bytes);
    keys.value_bytes.set(reader, &mut xml.value_bytes);
    keys.comment_bytes.set(reader, &mut xml.comment_bytes);
    keys.instruction_bytes.set(reader, &mut xml.instruction_bytes);
    keys.thread_depth.set(reader, &mut limits.thread_depth);
    keys.fanout.set(reader, &mut limits.fanout);
    keys.mailbox.set(reader, &mut limits.mailbox);
    keys.queue.set(reader, &mut limits.queue);
    keys.queue_bytes.set(reader, &mut limits.queue_bytes);
    keys.conversation_threads.set(reader, &mut limits.conversation_threads);
    keys.conversation_messages.set(reader, &mut limits.conversation_messages);
    keys.conversation_bytes.set(reader, &mut limits.conversation_bytes);
    keys.threads.set(reader, &mut limits.threads);
    keys.handler_timeout.set(reader, &mut limits.handler_timeout);
    keys.invalid_responses.set(reader, &mut limits.invalid_responses);
    keys.turns.set(reader, &mut limits.turns);
    keys.repeats.set(reader, &mut limits.repeats);
    keys.max_attempts.set(reader, &mut limits.max_attempts);
    keys.root_idle.set(reader, &mut limits.root_idle);
    keys.egress.set(reader, &mut limits.egress);
    keys.egress_bytes.set(reader, &mut limits.egress_bytes);
    keys.context_messages.set(reader, &mut limits.context_messages);
    keys.context_bytes.set(reader, &mut limits.context_bytes);
    keys.context_total_bytes.set(reader, &mut limits.context_total_bytes);
    keys.dead_letters.set(reader, &mut limits.dead_letters);
    keys.dead_letter_bytes.set(reader, &mut limits.dead_letter_bytes);
    keys.draft_bytes.set(reader, &mut limits.draft_bytes);
    keys.draft_total_bytes.set(reader, &mut limits.draft_total_bytes);
    limits
}
