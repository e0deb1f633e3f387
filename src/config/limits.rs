//! The keys below `limits:`. All bounds of [`Limits`] and of [`XmlLimits`](systole_core::vocab::XmlLimits) can be set;
//! keys that are left out keep their default.

use systole_core::vocab::Limits;

use super::correction::Shape;
use super::document::Node;
use super::reader::{Fields, Reader};

const MANY: u64 = u32::MAX as u64;
/// 1 TiB: more than any machine that this runs on has.
const BIG: u64 = 1 << 40;

pub(super) fn read(reader: &mut Reader, node: &Node) -> Limits {
    let mut limits = Limits::default();
    let Some(mut fields) = reader.fields(node, Shape::Limits) else { return limits };
    let f = &mut fields;
    let xml = &mut limits.xml;
    size(reader, f, "message_bytes", 64, &mut xml.message_bytes);
    count(reader, f, "element_depth", 1, &mut xml.depth);
    count(reader, f, "attributes", 1, &mut xml.attributes);
    count(reader, f, "namespaces", 1, &mut xml.namespaces);
    size(reader, f, "name_bytes", 1, &mut xml.name_bytes);
    size(reader, f, "value_bytes", 0, &mut xml.value_bytes);
    size(reader, f, "comment_bytes", 0, &mut xml.comment_bytes);
    size(reader, f, "instruction_bytes", 0, &mut xml.instruction_bytes);
    if let Some(depth) = f.take("thread_depth").and_then(|node| reader.number("thread_depth", node, 1, MANY)) {
        limits.thread_depth = depth as u32;
    }
    count(reader, f, "fanout", 1, &mut limits.fanout);
    count(reader, f, "mailbox", 1, &mut limits.mailbox);
    count(reader, f, "queue", 1, &mut limits.queue);
    size(reader, f, "queue_bytes", 1, &mut limits.queue_bytes);
    count(reader, f, "conversation_threads", 1, &mut limits.conversation_threads);
    count(reader, f, "conversation_messages", 1, &mut limits.conversation_messages);
    size(reader, f, "conversation_bytes", 1, &mut limits.conversation_bytes);
    count(reader, f, "threads", 1, &mut limits.threads);
    if let Some(timeout) = f.take("handler_timeout").and_then(|node| reader.duration(node)) {
        limits.handler_timeout = timeout;
    }
    if let Some(n) = f.take("invalid_responses").and_then(|node| reader.number("invalid_responses", node, 1, MANY)) {
        limits.invalid_responses = n as u32;
    }
    if let Some(n) = f.take("turns").and_then(|node| reader.number("turns", node, 1, MANY)) {
        limits.turns = n as u32;
    }
    if let Some(n) = f.take("repeats").and_then(|node| reader.number("repeats", node, 1, MANY)) {
        limits.repeats = n as u32;
    }
    if let Some(n) = f.take("max_attempts").and_then(|node| reader.number("max_attempts", node, 1, 255)) {
        limits.max_attempts = n as u32;
    }
    if let Some(idle) = f.take("root_idle").and_then(|node| reader.duration(node)) {
        limits.root_idle = idle;
    }
    count(reader, f, "egress", 1, &mut limits.egress);
    size(reader, f, "egress_bytes", 1, &mut limits.egress_bytes);
    count(reader, f, "context_messages", 0, &mut limits.context_messages);
    size(reader, f, "context_bytes", 0, &mut limits.context_bytes);
    size(reader, f, "context_total_bytes", 0, &mut limits.context_total_bytes);
    count(reader, f, "dead_letters", 0, &mut limits.dead_letters);
    size(reader, f, "dead_letter_bytes", 0, &mut limits.dead_letter_bytes);
    reader.finish(fields);
    limits
}

fn count(reader: &mut Reader, fields: &mut Fields<'_>, key: &'static str, min: u64, into: &mut usize) {
    if let Some(value) = fields.take(key).and_then(|node| reader.number(key, node, min, MANY)) {
        *into = usize::try_from(value).unwrap_or(usize::MAX);
    }
}

fn size(reader: &mut Reader, fields: &mut Fields<'_>, key: &'static str, min: u64, into: &mut usize) {
    if let Some(value) = fields.take(key).and_then(|node| reader.size(key, node, min, BIG)) {
        *into = usize::try_from(value).unwrap_or(usize::MAX);
    }
}
