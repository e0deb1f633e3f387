use std::iter::Peekable;

/// As many from the front as there may be in a page, of which the first always fits into its bytes; and those behind.
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
