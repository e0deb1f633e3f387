//! Pages of lists, bounded in entries and bytes.

use std::iter::Peekable;

/// Splits off a page from the front, of which the first item always fits into its bytes; and the items behind.
pub fn page<I: Iterator>(
    items: I,
    most: usize,
    bytes: usize,
    size: impl Fn(&I::Item) -> usize,
) -> (Vec<I::Item>, Peekable<I>) {
    let (mut items, mut page, mut taken) = (items.peekable(), Vec::new(), 0);
    while let Some(item) = items.next_if(|item| page.is_empty() || page.len() < most && taken + size(item) <= bytes) {
        taken += size(&item);
        page.push(item);
    }
    (page, items)
}
