//! The documents that each document of a set leads to, by any number of links.

use super::Document;

/// A set of documents for each document: bits in rows of the same number of words.
#[derive(Default)]
pub(super) struct Reach {
    words: usize,
    bits: Vec<u64>,
}

impl Reach {
    /// The sets of documents whose links are known (Warshall, 1962): some 2 million operations for the greatest number
    /// of documents, however many links they have.
    pub(super) fn of(documents: &[Document]) -> Self {
        let words = documents.len().div_ceil(64);
        let mut reach = Self { words, bits: vec![0; words * documents.len()] };
        for (from, document) in documents.iter().enumerate() {
            reach.insert(from, from);
            for link in document.links.iter().filter(|link| !link.is_repeated) {
                link.to.iter().for_each(|to| reach.insert(from, *to));
            }
        }
        for through in 0..documents.len() {
            let further = reach.row(through).to_vec();
            for from in (0..documents.len()).filter(|from| *from != through) {
                if reach.has(from, through) {
                    let row = &mut reach.bits[from * words..][..words];
                    row.iter_mut().zip(&further).for_each(|(word, more)| *word |= more);
                }
            }
        }
        reach
    }

    /// The document and all that it leads to, in the order of their numbers.
    pub(super) fn from(&self, from: usize) -> impl Iterator<Item = usize> {
        (0..self.words * 64).filter(move |to| self.has(from, *to))
    }

    fn row(&self, from: usize) -> &[u64] {
        &self.bits[from * self.words..][..self.words]
    }

    pub(super) fn has(&self, from: usize, to: usize) -> bool {
        self.row(from)[to / 64] >> (to % 64) & 1 == 1
    }

    fn insert(&mut self, from: usize, to: usize) {
        self.bits[from * self.words + to / 64] |= 1 << (to % 64);
    }
}
