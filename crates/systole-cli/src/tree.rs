//! The open threads as a tree, kept up to date by events.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write as _;

use systole::terminal::shorten;
use systole_core::core::{Event, EventKind};
use systole_core::vocab::{Name, ThreadId, ThreadPath};

use crate::event_line::one_line;

/// Characters of a growing text in its line.
const SHOWN: usize = 40;

/// The open threads of all conversations.
#[derive(Debug, Default)]
pub(super) struct Tree {
    /// Conversations by their order of appearance.
    roots: BTreeMap<u64, (ThreadId, Branch)>,
    order: HashMap<ThreadId, u64>,
    next: u64,
}

#[derive(Debug, Default)]
struct Branch {
    children: BTreeMap<(Name, u32), Branch>,
    /// The last payload that it got.
    doing: String,
    /// The end of its last sentence on its progress, or of the text that a model writes for it at the moment.
    writes: String,
}

impl Tree {
    /// Takes note of an event.
    pub(super) fn apply(&mut self, event: &Event) {
        match &event.kind {
            EventKind::Opened { .. } => {
                self.branch(event.root, &event.path);
            }
            EventKind::Delivered { payload, .. } => {
                let doing = payload.as_ref().map_or("fault", |payload| payload.local()).to_owned();
                self.branch(event.root, &event.path).doing = doing;
            }
            EventKind::ModelWrites { text, .. } | EventKind::Progress { text, .. } => {
                self.branch(event.root, &event.path).writes = format!("  …{}", tail(&one_line(text)));
            }
            EventKind::ModelAnswered { .. } | EventKind::ModelFailed { .. } => {
                self.branch(event.root, &event.path).writes.clear()
            }
            EventKind::Closed { .. } => self.remove(event.root, &event.path),
            _ => {}
        }
    }

    /// The tree in at most `height` lines of at most `width` characters.
    pub(super) fn render(&self, height: usize, width: usize) -> Vec<String> {
        let mut lines = Vec::new();
        let mut hidden = 0;
        for (root, branch) in self.roots.values() {
            let mut stack = vec![(String::new(), root.short(), branch)];
            while let Some((indent, label, branch)) = stack.pop() {
                if lines.len() + 1 < height {
                    lines.push(
                        shorten(&format!("{label}  {}{}", branch.doing, branch.writes), width).trim_end().to_owned(),
                    );
                } else {
                    hidden += 1;
                }
                let last = branch.children.len();
                let children = branch.children.iter().enumerate().map(|(at, ((name, ordinal), child))| {
                    let (fork, below) = if at + 1 == last { ("└ ", "  ") } else { ("├ ", "│ ") };
                    let mut label = format!("{indent}{fork}{name}");
                    if *ordinal > 1 {
                        let _ = write!(label, "#{ordinal}");
                    }
                    (format!("{indent}{below}"), label, child)
                });
                let children: Vec<_> = children.collect();
                stack.extend(children.into_iter().rev());
            }
        }
        if hidden > 0 {
            lines.push(format!("… {hidden} more"));
        }
        lines
    }

    fn branch(&mut self, root: ThreadId, path: &ThreadPath) -> &mut Branch {
        let next = &mut self.next;
        let at = *self.order.entry(root).or_insert_with(|| {
            *next += 1;
            *next
        });
        let (_, top) = self.roots.entry(at).or_insert_with(|| (root, Branch::default()));
        path.segments().iter().fold(top, |branch, segment| branch.children.entry(segment.clone()).or_default())
    }

    fn remove(&mut self, root: ThreadId, path: &ThreadPath) {
        let Some(&at) = self.order.get(&root) else { return };
        let Some((_, top)) = self.roots.get_mut(&at) else { return };
        if let Some((last, above)) = path.segments().split_last() {
            let parent = above.iter().try_fold(&mut *top, |branch, segment| branch.children.get_mut(segment));
            if let Some(parent) = parent {
                parent.children.remove(last);
            }
        }
        if path.segments().is_empty() || top.children.is_empty() {
            self.roots.remove(&at);
            self.order.remove(&root);
        }
    }
}

/// The last characters of a text: as many as a line shows beside the names.
fn tail(text: &str) -> &str {
    let at = text.char_indices().rev().nth(SHOWN - 1).map_or(0, |(at, _)| at);
    &text[at..]
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use systole_core::vocab::{MessageId, Time};
    use uuid::Uuid;

    use super::*;

    fn event(root: u128, path: &[(&str, u32)], kind: EventKind) -> Event {
        let segments = path.iter().map(|&(name, ordinal)| (Name::parse(name).unwrap(), ordinal)).collect();
        let root = ThreadId::from_uuid(Uuid::from_u128(root));
        Event::new((root, root), ThreadPath::new(segments), Time::default(), kind)
    }

    fn opened() -> EventKind {
        EventKind::Opened { parent: None }
    }

    fn closed() -> EventKind {
        EventKind::Closed { cancelled: 0 }
    }

    fn delivered(payload: &str) -> EventKind {
        EventKind::Delivered {
            message: MessageId::from_uuid(Uuid::nil()),
            from: Name::parse("cli").unwrap(),
            in_reply_to: None,
            payload: Some(payload.parse().unwrap()),
            attempts: Some(1),
        }
    }

    #[test]
    fn threads_grow_and_go() {
        let mut tree = Tree::default();
        tree.apply(&event(0xaaaa_0000, &[("researcher", 1)], opened()));
        tree.apply(&event(0xaaaa_0000, &[("researcher", 1)], delivered("{urn:r}question")));
        tree.apply(&event(0xaaaa_0000, &[("researcher", 1), ("calculator", 1)], opened()));
        tree.apply(&event(0xaaaa_0000, &[("researcher", 1), ("calculator", 2)], opened()));
        tree.apply(&event(0xbbbb_0000, &[("echo", 1)], opened()));
        let whole = ["aaaa0000", "└ researcher  question", "  ├ calculator", "  └ calculator#2", "bbbb0000", "└ echo"];
        assert_eq!(tree.render(10, 80), whole);
        assert_eq!(tree.render(3, 14), ["aaaa0000", "└ researcher …", "… 4 more"]);
        tree.apply(&event(0xaaaa_0000, &[("researcher", 1), ("calculator", 1)], closed()));
        tree.apply(&event(0xbbbb_0000, &[("echo", 1)], closed()));
        assert_eq!(tree.render(10, 80), ["aaaa0000", "└ researcher  question", "  └ calculator#2"]);
        tree.apply(&event(0xaaaa_0000, &[], closed()));
        assert!(tree.render(10, 80).is_empty() && tree.order.is_empty());
    }

    #[test]
    fn a_growing_text_shows_its_end_until_it_is_whole() {
        let mut tree = Tree::default();
        let planner = &[("planner", 1)];
        tree.apply(&event(1, planner, delivered("{urn:r}task")));
        let (by, long) = (Name::parse("planner").unwrap(), format!("<plan>\n {}end", "x".repeat(90)));
        tree.apply(&event(1, planner, EventKind::ModelWrites { by: by.clone(), text: long.into() }));
        assert_eq!(tree.render(10, 80)[1], format!("└ planner  task  …{}end", "x".repeat(SHOWN - 3)));
        let usage = systole_core::core::Usage::default();
        let (message, text) = (MessageId::from_uuid(Uuid::nil()), "t".into());
        let (backend, model, took) = ("b".into(), "m".into(), Duration::ZERO);
        let answered = EventKind::ModelAnswered { by, message, note: None, backend, model, usage, took, text };
        tree.apply(&event(1, planner, answered));
        assert_eq!(tree.render(10, 80)[1], "└ planner  task");
    }
}
