//! The drafts of an organism as a machine: their texts, the order in which all of them grew, and how they ended. It knows no
//! clock and no reader.
//!
//! Each byte of a text and each end has a place, counted over the whole organism. So one number tells how far a reader is in
//! all drafts of its conversation, and a text that fell out is a gap in the offsets of its draft.
//!
//! Invariants: the texts have at most `most_in_all` bytes, with their marks and a flat amount for each draft; the text of a
//! draft is gone with it; what a reader gets has the order of places.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, HashMap, VecDeque};
use std::sync::Arc;

use systole_core::core::{CoreId, DraftEnd, InvocationId};
use systole_core::vocab::{MessageId, Name, ThreadId};
use tokio::sync::Notify;

/// Bytes that a draft counts besides its text and its marks.
const ENTRY: usize = 512;
/// Bytes that a mark counts.
const MARK: usize = size_of::<Mark>();
/// Ends that are kept for readers that have not seen them.
const ENDS: usize = 4096;
/// Most bytes of the oldest draft that fall out at once for others.
const SLICE: usize = 16 << 10;

/// The run of a handler: the core of its thread, and its number there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct RunId {
    pub(crate) core: CoreId,
    pub(crate) invocation: InvocationId,
}

/// The message that a handler works on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct DraftSubject {
    pub(crate) conversation: ThreadId,
    pub(crate) thread: ThreadId,
    pub(crate) message: MessageId,
}

/// The handler that writes a draft.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DraftSource {
    pub(crate) subject: DraftSubject,
    pub(crate) listener: Name,
}

/// One of the drafts of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct DraftOf {
    pub(super) source: Arc<DraftSource>,
    /// The number among those of the organism.
    pub(super) number: u64,
    /// The number among those of the run.
    pub(super) attempt: u32,
}

/// The next thing that a reader gets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Piece {
    /// Text of a draft, from that offset on.
    Text { of: DraftOf, from: u64, text: String },
    /// A draft is over.
    Gone { of: DraftOf, end: DraftEnd },
    /// Ends are not kept that the reader has not seen: it begins anew.
    Lost,
}

/// The place of a reader, which has had all before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) at: u64,
    /// The place from which on it wants ends.
    ends_from: u64,
}

impl Place {
    /// The place of a reader that wants all that is kept.
    #[cfg(test)]
    pub(super) fn from_beginning() -> Self {
        Self { at: 0, ends_from: u64::MAX }
    }

    pub(super) fn resumed(at: u64) -> Self {
        Self { at, ends_from: at }
    }
}

/// The amounts in a table.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct DraftFigures {
    /// Open drafts.
    pub(crate) drafts: usize,
    /// Bytes that they hold.
    pub(crate) bytes: usize,
    /// Bytes of texts that fell out, so far.
    pub(crate) dropped: u64,
}

#[derive(Debug)]
pub(super) struct Table {
    most: usize,
    most_in_all: usize,
    /// The place of the next byte.
    position: u64,
    /// Drafts so far.
    numbered: u64,
    figures: DraftFigures,
    runs: HashMap<RunId, Run>,
    conversations: HashMap<ThreadId, Conversation>,
    /// The runs whose drafts have text, by the place of its first byte.
    fronts: BTreeMap<u64, RunId>,
    ends: VecDeque<End>,
    /// All ends before this place are not kept.
    forgotten: u64,
    is_closed: bool,
}

#[derive(Debug)]
struct Run {
    source: Arc<DraftSource>,
    attempt: u32,
    draft: Option<Text>,
}

/// The text of an open draft, as far as it is kept.
#[derive(Debug, Default)]
struct Text {
    number: u64,
    text: String,
    /// The offset of its first byte.
    front: u64,
    /// The places at which parts of it begin.
    marks: VecDeque<Mark>,
}

/// A part of a text: its bytes stand at successive places.
#[derive(Debug, Clone, Copy)]
struct Mark {
    position: u64,
    offset: u64,
}

#[derive(Debug, Default)]
struct Conversation {
    /// The runs that have an open draft, in the order in which these began.
    runs: Vec<RunId>,
    readers: usize,
    news: Arc<Notify>,
    is_over: bool,
}

#[derive(Debug)]
struct End {
    position: u64,
    of: DraftOf,
    end: DraftEnd,
}

impl Text {
    fn size(&self) -> usize {
        self.text.len() + self.marks.len() * MARK
    }

    /// The offset behind its last byte.
    fn back(&self) -> u64 {
        self.front + self.text.len() as u64
    }

    fn push(&mut self, text: &str, position: u64) {
        let offset = self.back();
        let goes_on = |last: &Mark| position - last.position == offset - last.offset;
        if !self.marks.back().is_some_and(goes_on) {
            self.marks.push_back(Mark { position, offset });
        }
        self.text.push_str(text);
    }

    /// Drops at least so many bytes from its beginning, if it has them, and at most a character more. The number of them.
    fn drop_front(&mut self, least: usize) -> usize {
        let cut = (least.min(self.text.len())..).find(|&at| self.text.is_char_boundary(at)).unwrap_or(self.text.len());
        self.text.drain(..cut);
        self.front += cut as u64;
        while self.marks.get(1).is_some_and(|next| next.offset <= self.front) {
            self.marks.pop_front();
        }
        if self.text.is_empty() {
            self.marks.clear();
        } else if let Some(first) = self.marks.front_mut().filter(|first| first.offset < self.front) {
            first.position += self.front - first.offset;
            first.offset = self.front;
        }
        cut
    }

    /// Drops text from its beginning that holds about so many bytes with its marks, and some in any case.
    fn shed(&mut self, held: usize) -> usize {
        let size = self.size();
        self.drop_front((self.text.len() * held.min(size)).div_ceil(size.max(1)))
    }

    /// The part with the first byte at that place or behind it: its number, and the place and the offset of that byte.
    fn part_from(&self, place: u64) -> Option<(usize, Mark)> {
        let next = self.marks.partition_point(|mark| mark.position <= place);
        if let Some(at) = next.checked_sub(1) {
            let mark = self.marks[at];
            let offset = mark.offset + (place - mark.position);
            if offset < self.end_of(at) {
                return Some((at, Mark { position: place, offset }));
            }
        }
        self.marks.get(next).map(|mark| (next, *mark))
    }

    /// The offset behind a part.
    fn end_of(&self, part: usize) -> u64 {
        self.marks.get(part + 1).map_or(self.back(), |next| next.offset)
    }

    /// At most `most` bytes from an offset on to the end of its part, at least a character.
    fn take(&self, part: usize, offset: u64, most: usize) -> &str {
        let (begin, end) = ((offset - self.front) as usize, (self.end_of(part) - self.front) as usize);
        let whole = &self.text[begin..end];
        let least = whole.chars().next().map_or(0, char::len_utf8);
        let cut = (0..=most.max(least).min(whole.len())).rev().find(|&at| whole.is_char_boundary(at));
        &whole[..cut.unwrap_or(0)]
    }
}

impl Table {
    /// A table of drafts with so many bytes each, and in all.
    pub(super) fn new(most: usize, most_in_all: usize) -> Self {
        Self {
            most,
            most_in_all,
            position: 0,
            numbered: 0,
            figures: DraftFigures::default(),
            runs: HashMap::new(),
            conversations: HashMap::new(),
            fronts: BTreeMap::new(),
            ends: VecDeque::new(),
            forgotten: 0,
            is_closed: false,
        }
    }

    #[cfg(any(test, feature = "gateway"))]
    pub(super) fn figures(&self) -> DraftFigures {
        self.figures
    }

    /// Conversations with drafts or readers.
    pub(super) fn conversations(&self) -> usize {
        self.conversations.len()
    }

    /// Adds text to the draft of a run, and begins one if it has none. Returns the notification of its readers.
    pub(super) fn write(
        &mut self,
        run: RunId,
        source: impl FnOnce() -> Arc<DraftSource>,
        text: &str,
    ) -> Option<Arc<Notify>> {
        if self.is_closed || text.is_empty() {
            return None;
        }
        let known = self.runs.entry(run).or_insert_with(|| Run { source: source(), attempt: 0, draft: None });
        let root = known.source.subject.conversation;
        if known.draft.is_none() {
            if self.figures.drafts.saturating_add(1).saturating_mul(ENTRY) >= self.most_in_all {
                return None;
            }
            self.numbered += 1;
            known.attempt += 1;
            known.draft = Some(Text { number: self.numbered, ..Text::default() });
            self.figures.drafts += 1;
            self.figures.bytes += ENTRY;
            self.conversations.entry(root).or_default().runs.push(run);
        }
        let beginning = text.len().saturating_sub(self.most);
        let kept = (beginning..=text.len()).find(|&at| text.is_char_boundary(at)).unwrap_or(text.len());
        let (most, position) = (self.most, self.position + kept as u64);
        self.position += text.len() as u64;
        self.change(run, |draft| {
            let mut dropped = 0;
            if kept > 0 {
                dropped = draft.drop_front(usize::MAX) + kept;
                draft.front += kept as u64;
            }
            draft.push(&text[kept..], position);
            // A quarter at once: what is left moves to the front.
            while draft.size() > most {
                dropped += draft.shed(draft.size() - most + most / 4);
            }
            dropped
        });
        while self.figures.bytes > self.most_in_all
            && let Some(&oldest) = self.fronts.values().next()
        {
            let (excess, slice) = (self.figures.bytes - self.most_in_all, SLICE.min(self.most_in_all / 8));
            self.change(oldest, |draft| draft.shed(excess.max(slice)));
        }
        self.news(root)
    }

    /// Ends the draft of a run, which may begin another one.
    pub(super) fn give_up(&mut self, run: RunId, end: DraftEnd) -> Option<Arc<Notify>> {
        let known = self.runs.get(&run)?;
        let (source, attempt) = (known.source.clone(), known.attempt);
        known.draft.as_ref()?;
        let root = source.subject.conversation;
        self.change(run, |draft| {
            draft.drop_front(usize::MAX);
            0
        });
        let number = self.runs.get_mut(&run)?.draft.take()?.number;
        self.figures.drafts -= 1;
        self.figures.bytes -= ENTRY;
        let of = DraftOf { source, number, attempt };
        self.ends.push_back(End { position: self.position, of, end });
        self.position += 1;
        while self.ends.len() > ENDS {
            self.forgotten = self.ends.pop_front().map_or(self.forgotten, |end| end.position + 1);
        }
        if let Some(conversation) = self.conversations.get_mut(&root) {
            conversation.runs.retain(|other| *other != run);
        }
        let news = self.news(root);
        self.tidy(root);
        news
    }

    /// Ends a run, and its draft.
    pub(super) fn over(&mut self, run: RunId, end: DraftEnd) -> Option<Arc<Notify>> {
        let news = self.give_up(run, end);
        self.runs.remove(&run);
        news
    }

    /// Ends a conversation, with all drafts in it.
    pub(super) fn conversation_over(&mut self, root: ThreadId) -> Option<Arc<Notify>> {
        let runs = self.conversations.get(&root)?.runs.clone();
        runs.into_iter().for_each(|run| drop(self.give_up(run, DraftEnd::Ended)));
        self.conversations.get_mut(&root)?.is_over = true;
        let news = self.news(root);
        self.tidy(root);
        news
    }

    /// Ends all: nothing is written any more.
    pub(super) fn close(&mut self) -> Vec<Arc<Notify>> {
        self.is_closed = true;
        let mut roots: Vec<_> = self.conversations.keys().copied().collect();
        roots.sort_unstable();
        let news = roots.into_iter().filter_map(|root| self.conversation_over(root)).collect();
        self.runs.clear();
        news
    }

    /// Registers a reader of a conversation, behind a place or from the beginning of its open drafts on.
    pub(super) fn enter(&mut self, root: ThreadId, after: Option<u64>) -> (Place, Arc<Notify>) {
        let is_closed = self.is_closed;
        let conversation = self.conversations.entry(root).or_default();
        conversation.readers += 1;
        conversation.is_over |= is_closed;
        let place = after.map_or(Place { at: 0, ends_from: self.position }, Place::resumed);
        (place, conversation.news.clone())
    }

    pub(super) fn leave(&mut self, root: ThreadId) {
        if let Some(conversation) = self.conversations.get_mut(&root) {
            conversation.readers -= 1;
        }
        self.tidy(root);
    }

    /// Returns whether nothing more comes for the readers of a conversation.
    pub(super) fn is_over(&self, root: ThreadId) -> bool {
        self.conversations.get(&root).is_none_or(|conversation| conversation.is_over)
    }

    /// The ends of the open drafts of a conversation, of at most `most` bytes each, with the offsets at which they begin.
    #[cfg(feature = "gateway")]
    pub(super) fn open(&self, root: ThreadId, most: usize) -> Vec<Piece> {
        let runs = self.conversations.get(&root).map_or(&[][..], |conversation| &conversation.runs);
        let piece = |run: &RunId| {
            let Run { source, attempt, draft } = self.runs.get(run)?;
            let draft = draft.as_ref()?;
            let least = draft.text.len().saturating_sub(most);
            let at = (least..=draft.text.len()).find(|&at| draft.text.is_char_boundary(at))?;
            let of = DraftOf { source: source.clone(), number: draft.number, attempt: *attempt };
            Some(Piece::Text { of, from: draft.front + at as u64, text: draft.text[at..].to_owned() })
        };
        runs.iter().filter_map(piece).collect()
    }

    /// Takes what comes next for a reader, in order, each with the place behind it: texts of at most `most` bytes, and as many
    /// pieces.
    pub(super) fn read(&self, root: ThreadId, place: &mut Place, (most, pieces): (usize, usize)) -> Vec<(u64, Piece)> {
        let mut taken: Vec<(u64, Piece)> = Vec::new();
        if place.at > self.position || place.ends_from < self.forgotten {
            *place = Place { at: 0, ends_from: self.position };
            taken.push((0, Piece::Lost));
        }
        let runs = self.conversations.get(&root).map_or(&[][..], |conversation| &conversation.runs);
        let drafts: Vec<(DraftOf, &Text)> = runs
            .iter()
            .filter_map(|run| {
                let Run { source, attempt, draft } = self.runs.get(run)?;
                let draft = draft.as_ref()?;
                Some((DraftOf { source: source.clone(), number: draft.number, attempt: *attempt }, draft))
            })
            .collect();
        // The next byte of each draft, the nearest first.
        let from = |at: usize, place: u64| {
            drafts[at].1.part_from(place).map(|(part, mark)| Reverse((mark.position, at, part, mark.offset)))
        };
        let mut nearest: BinaryHeap<_> = (0..drafts.len()).filter_map(|at| from(at, place.at)).collect();
        let first = self.ends.partition_point(|end| end.position < place.at.max(place.ends_from));
        let mut ends = self.ends.range(first..).filter(|end| end.of.source.subject.conversation == root).peekable();
        let mut room = most;
        while room > 0 && taken.len() < pieces {
            let text = nearest.peek().map(|Reverse((position, ..))| *position);
            match (text, ends.peek().map(|end| end.position)) {
                (None, None) => {
                    place.at = self.position;
                    break;
                }
                (Some(text), end) if end.is_none_or(|end| text < end) => {
                    let Some(Reverse((position, at, part, offset))) = nearest.pop() else { break };
                    let (of, draft) = &drafts[at];
                    let text = draft.take(part, offset, room);
                    room = room.saturating_sub(text.len());
                    place.at = position + text.len() as u64;
                    nearest.extend(from(at, place.at));
                    match taken.last_mut() {
                        Some((behind, Piece::Text { of: last, from, text: begun }))
                            if last.number == of.number && *from + begun.len() as u64 == offset =>
                        {
                            begun.push_str(text);
                            *behind = place.at;
                        }
                        _ => {
                            taken.push((place.at, Piece::Text { of: of.clone(), from: offset, text: text.to_owned() }))
                        }
                    }
                }
                _ => {
                    let Some(End { position, of, end }) = ends.next() else { break };
                    place.at = position + 1;
                    taken.push((place.at, Piece::Gone { of: of.clone(), end: *end }));
                }
            }
        }
        // A reader that has all is no further behind than the last end.
        place.ends_from = place.ends_from.max(place.at);
        taken
    }

    /// Changes the text of a draft, and counts what is held; the number of bytes that fell out is what the change returns.
    fn change(&mut self, run: RunId, change: impl FnOnce(&mut Text) -> usize) {
        let Some(draft) = self.runs.get_mut(&run).and_then(|run| run.draft.as_mut()) else { return };
        if let Some(first) = draft.marks.front() {
            self.fronts.remove(&first.position);
        }
        self.figures.bytes -= draft.size();
        self.figures.dropped += change(draft) as u64;
        self.figures.bytes += draft.size();
        if let Some(first) = draft.marks.front() {
            self.fronts.insert(first.position, run);
        }
    }

    /// The notification of the readers of a conversation, if it has any.
    fn news(&self, root: ThreadId) -> Option<Arc<Notify>> {
        self.conversations.get(&root).filter(|conversation| conversation.readers > 0).map(|one| one.news.clone())
    }

    /// Forgets a conversation without drafts and readers.
    fn tidy(&mut self, root: ThreadId) {
        let is_empty = |one: &Conversation| one.runs.is_empty() && one.readers == 0;
        if self.conversations.get(&root).is_some_and(is_empty) {
            self.conversations.remove(&root);
        }
    }
}
