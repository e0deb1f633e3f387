//! The members of a union, with an index of those that enumerate few texts.

use std::hash::{DefaultHasher, Hash, Hasher};

use super::SimpleType;
use super::definition::Variety;
use super::enumeration::Enumeration;
use super::space::Space;

/// The types of a union, in order.
#[derive(Debug)]
pub(super) struct Members {
    types: Vec<SimpleType>,
    /// The members that enumerate few texts, by the hashes of these texts, sorted; one list for each kind of white
    /// space.
    texts: [(Space, Vec<(u32, u32)>); 3],
    /// The other members.
    others: Vec<u32>,
}

/// The greatest number of texts of an indexed member. A larger member is looked up by itself, so that unions that share
/// it don't copy it.
const FEW: usize = 4;

impl Members {
    pub(super) fn new(types: Vec<SimpleType>) -> Self {
        let mut texts = [Space::Preserve, Space::Replace, Space::Collapse].map(|space| (space, Vec::new()));
        let mut others = Vec::new();
        for (number, member) in (0..).zip(&types) {
            match few_texts(member) {
                Some(few) => {
                    let own = texts.iter_mut().find(|(space, _)| *space == member.definition.space);
                    own.into_iter().for_each(|(_, list)| list.extend(few.iter().map(|text| (hash(text), number))));
                }
                None => others.push(number),
            }
        }
        texts.iter_mut().for_each(|(_, list)| list.sort_unstable());
        Self { types, texts, others }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &SimpleType> {
        self.types.iter()
    }

    /// The members that a literal may be valid for, in order: all but those that enumerate other texts.
    pub(super) fn candidates(&self, raw: &str) -> impl Iterator<Item = &SimpleType> {
        let mut texts = [&[][..]; 3];
        for (found, (space, list)) in texts.iter_mut().zip(&self.texts) {
            if !list.is_empty() {
                let hash = hash(&space.normalize(raw));
                let from = &list[list.partition_point(|(known, _)| *known < hash)..];
                *found = &from[..from.partition_point(|(known, _)| *known == hash)];
            }
        }
        let mut others = self.others.as_slice();
        std::iter::from_fn(move || {
            let text = texts.iter().filter_map(|list| list.first()).map(|(_, number)| *number).min();
            let number = match (text, others.first()) {
                (Some(text), other) if other.is_none_or(|other| text < *other) => {
                    let own = texts.iter_mut().filter(|list| list.first().is_some_and(|(_, number)| *number == text));
                    own.for_each(|list| *list = &list[1..]);
                    text
                }
                (_, other) => {
                    let number = *other?;
                    others = &others[1..];
                    number
                }
            };
            self.types.get(number as usize)
        })
    }
}

/// The texts of an atomic type that enumerates few.
fn few_texts(member: &SimpleType) -> Option<&[Box<str>]> {
    let definition = &member.definition;
    match (&definition.variety, definition.facets.values.as_deref()) {
        (Variety::Atomic(_), Some(Enumeration::Texts(texts))) if texts.len() <= FEW => Some(texts),
        _ => None,
    }
}

fn hash(text: &str) -> u32 {
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    u32::from_ne_bytes(hasher.finish().to_ne_bytes()[..4].try_into().unwrap_or_default())
}
