//! Pairs of tags by their names alone: found in one walk, on demand.

use std::borrow::Cow;
use std::collections::HashMap;

use super::lexis::{is_space, name_end, skip_space};
use crate::ladder::scan::split_prefix;

/// The start tags of a text with their end tags, paired by their names alone, regardless of prefixes and case: as
/// brackets, one kind for each name.
///
/// In well-formed text each start tag has its end tag, and no end tag is left over. So a tag without a partner is an
/// error, and correct tags are looked at only once. Comments, CDATA sections and instructions hold no tags.
#[derive(Debug)]
pub(super) struct Pairs<'t> {
    text: &'t str,
    /// True if CDATA sections hold no tags.
    sections: bool,
    /// The offset that the walk begins at.
    from: usize,
    /// Number of walks.
    walks: usize,
    found: Option<Found>,
}

/// Maximum number of walks over one text, so that many thoughts cost no more than time linear in it.
const MOST_WALKS: usize = 16;

#[derive(Debug, Default)]
struct Found {
    /// Starts of start tags, with the starts of their end tags, in order.
    closed: Vec<(u32, u32)>,
    /// Starts of empty-element tags followed by end tags without a start tag, with the starts of these, in order.
    reopened: Vec<(u32, u32)>,
    /// End tags without a start tag, in order.
    left_over: Vec<u32>,
}

/// The tags of one name on the walk.
#[derive(Debug, Default)]
struct Open {
    starts: Vec<u32>,
    /// Names behind a `<` that may open start tags, since the last start tag.
    perhaps: usize,
    /// The start of the last tag, if it is an empty-element tag.
    empty: Option<u32>,
}

/// A tag after `<`.
enum Tag<'t> {
    Start(&'t str),
    Empty(&'t str),
    End(&'t str),
    /// A name behind a `<`, with something behind it that no tag can have.
    Perhaps(&'t str),
}

impl<'t> Pairs<'t> {
    pub(super) const fn new(text: &'t str, sections: bool) -> Self {
        Self { text, sections, from: 0, walks: 0, found: None }
    }

    /// Leaves the tags before an offset without partners: they stand in thoughts, where nothing pairs them.
    pub(super) fn begin_at(&mut self, from: usize) {
        let holds_tags = || memchr::memchr(b'<', &self.text.as_bytes()[self.from..from]).is_some();
        if self.found.is_none() || (self.walks < MOST_WALKS && holds_tags()) {
            (self.from, self.found) = (from, None);
        }
    }

    /// Offset of the end tag of the start tag at `start`.
    pub(super) fn end_of(&mut self, start: usize) -> Option<usize> {
        search(&self.found().closed, start)
    }

    /// Returns whether the start tag at `start` has an end tag.
    pub(super) fn is_closed(&mut self, start: usize) -> bool {
        self.end_of(start).is_some()
    }

    /// Offset of the end tag that belongs to the empty-element tag at `start`.
    pub(super) fn reopened(&mut self, start: usize) -> Option<usize> {
        search(&self.found().reopened, start)
    }

    /// The start tags that begin at or behind an offset and have an end tag, with the offsets of these, in order.
    pub(super) fn closed_from(&mut self, from: usize) -> &[(u32, u32)] {
        let closed = &self.found().closed;
        &closed[closed.partition_point(|&(start, _)| (start as usize) < from)..]
    }

    /// Returns whether the end tag at `at` has no start tag.
    pub(super) fn is_left_over(&mut self, at: usize) -> bool {
        self.found().left_over.binary_search_by_key(&at, |&found| found as usize).is_ok()
    }

    fn found(&mut self) -> &Found {
        let (text, sections, from) = (self.text, self.sections, self.from);
        let walks = &mut self.walks;
        self.found.get_or_insert_with(|| {
            *walks += 1;
            walk(text, sections, from)
        })
    }
}

fn search(pairs: &[(u32, u32)], start: usize) -> Option<usize> {
    let found = pairs.binary_search_by_key(&start, |&(start, _)| start as usize).ok()?;
    Some(pairs[found].1 as usize)
}

/// Maximum number of names that are searched linearly.
const FEW: usize = 8;

/// Pairs the tags of a text behind an offset. Offsets fit into 32 bits: longer inputs are refused.
fn walk(text: &str, sections: bool, mut from: usize) -> Found {
    let bytes = text.as_bytes();
    let mut names: HashMap<Cow<'_, str>, usize> = HashMap::new();
    let mut open: Vec<Open> = Vec::new();
    // Most texts have few names, which a linear search finds sooner.
    let mut few: Vec<(&str, usize)> = Vec::with_capacity(FEW);
    let mut found = Found::default();
    while let Some(length) = memchr::memchr(b'<', &bytes[from..]) {
        let at = from + length;
        from = at + 1;
        if let Some(end) = hidden(&bytes[at..], sections) {
            from = at + end;
            continue;
        }
        let Some((tag, end)) = tag(text, at) else { continue };
        from = end;
        let (Tag::Start(name) | Tag::Empty(name) | Tag::End(name) | Tag::Perhaps(name)) = tag;
        let number = match few.iter().find(|(known, _)| *known == name) {
            Some((_, number)) => *number,
            None => {
                let number = *names.entry(key(name)).or_insert_with(|| {
                    open.push(Open::default());
                    open.len() - 1
                });
                if few.len() < FEW {
                    few.push((name, number));
                }
                number
            }
        };
        let open = &mut open[number];
        let place = at as u32;
        let empty = open.empty.take();
        match tag {
            Tag::Start(_) => {
                open.starts.push(place);
                open.perhaps = 0;
            }
            Tag::Perhaps(_) => open.perhaps += 1,
            Tag::Empty(_) => open.empty = Some(place),
            Tag::End(_) => match (open.starts.pop(), empty) {
                (Some(start), _) => found.closed.push((start, place)),
                (None, _) if open.perhaps > 0 => open.perhaps -= 1,
                (None, Some(start)) => found.reopened.push((start, place)),
                (None, None) => found.left_over.push(place),
            },
        }
    }
    found.closed.sort_unstable();
    found.reopened.sort_unstable();
    found
}

/// The name by which tags are paired: the local name in lower case.
pub(super) fn key(name: &str) -> Cow<'_, str> {
    let local = split_prefix(name).1;
    if local.bytes().any(|byte| byte.is_ascii_uppercase()) {
        Cow::Owned(local.to_ascii_lowercase())
    } else {
        Cow::Borrowed(local)
    }
}

/// Length of the comment, section or instruction that starts here; up to the end of the text if nothing ends it.
fn hidden(rest: &[u8], sections: bool) -> Option<usize> {
    let until = |end: &[u8], skip: usize| memchr::memmem::find(&rest[skip..], end).map(|at| skip + at + end.len());
    match rest {
        [b'<', b'!', b'-', b'-', ..] => Some(until(b"-->", 4).unwrap_or(rest.len())),
        [b'<', b'!', b'[', ..] if sections && rest.starts_with(b"<![CDATA[") => {
            Some(until(b"]]>", 9).unwrap_or(rest.len()))
        }
        [b'<', b'?', first, ..] if !is_space(*first) && *first != b'=' => Some(until(b"?>", 2).unwrap_or(rest.len())),
        _ => None,
    }
}

/// Reads the tag at `at`, at most up to the next `<` or to the first `>` outside of quotes. Returns the offset to
/// continue at.
fn tag(text: &str, at: usize) -> Option<(Tag<'_>, usize)> {
    let bytes = text.as_bytes();
    let slashes = bytes[at + 1..].iter().take_while(|&&byte| matches!(byte, b'/' | b'\\')).count();
    let is_end = matches!((slashes, bytes.get(at + 1)), (1, _) | (2, Some(b'/')));
    if slashes > 0 && !is_end {
        return None;
    }
    let start = skip_space(text, at + 1 + slashes);
    let end = name_end(text, start)?;
    let name = &text[start..end];
    if is_end {
        return Some((Tag::End(name), end));
    }
    let mut from = end;
    loop {
        let Some(length) = memchr::memchr3(b'<', b'>', b'=', &bytes[from..]) else {
            return Some((Tag::Perhaps(name), end));
        };
        let stop = from + length;
        match bytes[stop] {
            b'<' => return Some((Tag::Perhaps(name), end)),
            b'>' => {
                // `< a >` is a tag only without anything else in it.
                let is_bare = start == at + 1 || skip_space(text, end) == stop;
                let tag = if stop > end && bytes[stop - 1] == b'/' { Tag::Empty(name) } else { Tag::Start(name) };
                return is_bare.then_some((tag, stop + 1));
            }
            _ => {
                from = stop + 1;
                let quote = skip_space(text, from);
                if let Some(mark @ (b'"' | b'\'')) = bytes.get(quote) {
                    from = value_end(bytes, quote + 1, *mark).unwrap_or(from);
                }
            }
        }
    }
}

/// The offset behind the quote that closes a value. A value with a `<`, which XML forbids, must be short and have a
/// quote before the end of the tag or white space.
fn value_end(bytes: &[u8], start: usize, mark: u8) -> Option<usize> {
    const NEAR: usize = 256;
    let near = &bytes[start..];
    let stop = memchr::memchr2(mark, b'<', near)?;
    if near[stop] == mark {
        return Some(start + stop + 1);
    }
    let near = &near[..near.len().min(NEAR)];
    let close = stop + memchr::memchr(mark, near.get(stop..)?)?;
    let ends = matches!(near.get(close + 1), Some(b'>' | b'/' | b' ' | b'\n' | b'\r' | b'\t'));
    (ends && !near[..close].contains(&b'>')).then_some(start + close + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_find_each_other_by_their_names() {
        let text = "<a><B k='</x>'>1<b>2</b ><!-- </a> --><c/>3</c><p:d></D></e></a><f k='/>'></f>";
        let mut pairs = Pairs::new(text, true);
        let end_of = |name: &str, pairs: &mut Pairs<'_>| pairs.end_of(text.find(name).unwrap());
        assert_eq!(end_of("<a>", &mut pairs), text.rfind("</a>"));
        assert_eq!(end_of("<B", &mut pairs), None);
        assert_eq!(end_of("<b>", &mut pairs), text.find("</b >"));
        assert_eq!(end_of("<p:d>", &mut pairs), text.find("</D>"));
        assert_eq!(end_of("<f", &mut pairs), text.find("</f>"));
        assert_eq!(pairs.reopened(text.find("<c/>").unwrap()), text.find("</c>"));
        assert!(pairs.is_left_over(text.find("</e>").unwrap()));
        assert!(!pairs.is_left_over(text.find("</c>").unwrap()));
    }

    #[test]
    fn long_values_with_a_less_than_sign_are_no_trouble() {
        let long = "x".repeat(400);
        for text in [format!("<a b='{long}<'>"), format!("<a b='<{long}'></a>"), "<a b='<".to_owned()] {
            assert!(!Pairs::new(&text, true).is_closed(0) || text.ends_with("</a>"), "{text}");
        }
    }
}
