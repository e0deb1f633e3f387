use std::collections::HashMap;

use super::lexis::name_end;

/// Where the last end tag of each name stands; found in one walk when somebody first asks.
#[derive(Debug)]
pub(super) struct Ends<'t> {
    text: &'t str,
    last: Option<HashMap<&'t str, usize>>,
}

impl<'t> Ends<'t> {
    pub(super) const fn new(text: &'t str) -> Self {
        Self { text, last: None }
    }

    /// Whether `</name` stands at or behind `at`.
    pub(super) fn stands_behind(&mut self, name: &str, at: usize) -> bool {
        let text = self.text;
        let last = self.last.get_or_insert_with(|| {
            let starts = memchr::memmem::find_iter(text.as_bytes(), b"</");
            starts.filter_map(|start| Some((&text[start + 2..name_end(text, start + 2)?], start))).collect()
        });
        last.get(name).is_some_and(|&start| start >= at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_end_tag_counts() {
        let mut ends = Ends::new("<a></a></ab></a>");
        assert!(ends.stands_behind("a", 12));
        assert!(!ends.stands_behind("a", 13));
        assert!(!ends.stands_behind("b", 0));
    }
}
