//! Recovered records, split among cores by partition.

use std::collections::{HashMap, HashSet};

use super::{Number, Owner, Recovered};
use crate::vocab::{Partition, Partitions};

impl Recovered {
    /// Splits the records among cores that serve these partitions: whole conversations with the mail of their messages,
    /// dead letters, and messages for clients. What belongs to no conversation and what no core serves is left out.
    #[must_use]
    pub fn split(self, cores: &[Partitions]) -> Vec<Self> {
        let Self { key, epoch, crashed, .. } = self;
        // Each core may keep slots of any listener.
        let empty = Self { key, epoch, crashed, paused: self.paused, ..Self::default() };
        let mut parts: Vec<Self> = cores.iter().map(|_| empty.clone()).collect();
        let owner = |partition| cores.iter().position(|core| core.contains(partition));
        let owners: Vec<Option<usize>> = Partition::all().map(owner).collect();
        let home = |partition: Partition| owners[usize::from(partition.0)];
        let (mut roots, mut threads, mut messages) = (HashMap::new(), HashMap::new(), HashMap::new());
        for thread in self.threads {
            let own = || match thread.owner {
                Owner::Boot => Partition::BOOT,
                _ => Partition::of(thread.id),
            };
            let partition = *roots.entry(thread.root).or_insert_with(own);
            threads.insert(thread.number, partition);
            if let Some(core) = home(partition) {
                parts[core].threads.push(thread);
            }
        }
        // Records of a thread that is missing come from damage, which the core of `<boot>` reports.
        let of_thread = |thread: Number| threads.get(&thread).copied().unwrap_or(Partition::BOOT);
        for ordinal in self.ordinals {
            if let Some(core) = home(of_thread(ordinal.parent)) {
                parts[core].ordinals.push(ordinal);
            }
        }
        for budget in self.budgets {
            if let Some(core) = home(of_thread(budget.thread)) {
                parts[core].budgets.push(budget);
            }
        }
        let mut mail: HashMap<_, _> = self.mail.into_iter().map(|mail| (mail.id, mail)).collect();
        for message in self.messages {
            let partition = of_thread(message.thread);
            messages.insert(message.number, partition);
            if let Some(core) = home(partition) {
                parts[core].mail.extend(mail.remove(&message.id));
                parts[core].messages.push(message);
            }
        }
        for fan in self.fans {
            if let Some(core) = home(of_thread(fan.thread)) {
                parts[core].fans.push(fan);
            }
        }
        for note in self.notes {
            let partition = messages.get(&note.message).copied().unwrap_or(Partition::BOOT);
            if let Some(core) = home(partition) {
                parts[core].notes.push(note);
            }
        }
        for entry in self.remembered {
            if let Some(core) = home(of_thread(entry.thread)) {
                parts[core].remembered.push(entry);
            }
        }
        for egress in self.egress {
            if let Some(core) = home(Partition::of(egress.root)) {
                parts[core].egress.push(egress);
            }
        }
        let redrive: HashSet<_> = self.redrive.into_iter().collect();
        for letter in self.letters {
            let Some(core) = home(letter.partition) else { continue };
            if redrive.contains(&letter.number) {
                parts[core].redrive.push(letter.number);
            }
            parts[core].letters.push(letter);
        }
        parts
    }
}
