//! The clients: the submissions that were confirmed to them, and the answers that are therefore due.

use std::collections::{HashMap, HashSet};

use systole_core::core::Egress;
use systole_core::vocab::ThreadId;

#[derive(Default)]
pub(crate) struct Clients {
    /// The messages that were sent, by their label.
    pub(crate) sent: HashMap<String, Sent>,
    /// The answers that came and were not read yet.
    pub(crate) inbox: Vec<Egress>,
    /// The numbers in the journal of the answers that were read.
    numbers: HashSet<u64>,
    /// The answers that were read, by the label that they answer.
    pub(crate) answers: HashMap<String, Vec<String>>,
    next: u64,
}

pub(crate) struct Sent {
    /// The conversation that it opens.
    pub(crate) root: ThreadId,
    /// The conversation that it continues instead, if that is open.
    pub(crate) continues: Option<ThreadId>,
    pub(crate) confirmed: bool,
}

impl Clients {
    pub(crate) fn send(&mut self, root: ThreadId, continues: Option<ThreadId>) -> (String, u64) {
        self.next += 1;
        let label = format!("m{}", self.next);
        self.sent.insert(label.clone(), Sent { root, continues, confirmed: false });
        (label, self.next)
    }

    pub(crate) fn confirm(&mut self, ticket: u64) {
        self.sent.get_mut(&format!("m{ticket}")).expect("it was sent").confirmed = true;
    }

    /// Reads one message; its number. It may have come before, and not have been noted as read before a crash.
    pub(crate) fn read(&mut self, at: usize) -> u64 {
        let egress = self.inbox.remove(at);
        assert_ne!(egress.number, 0, "what leaves a durable organism has a number");
        if self.numbers.insert(egress.number) {
            let label = egress.in_reply_to.as_deref().expect("each has a label").to_owned();
            self.answers.entry(label).or_default().push(format!("{:?}", egress.envelope));
        }
        egress.number
    }
}
