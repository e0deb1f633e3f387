//! Paths of elements, for the places of violations.

use std::collections::HashMap;
use std::fmt;

use crate::ladder::scan::{ScanToken, Scanner, split_prefix};

/// The paths of elements by their numbers in document order, such as `order/item[2]/price`.
///
/// A step has a number if siblings share its name; of a path of more than 64 steps only the end is shown. One walk
/// finds all paths, in time linear in the text.
pub(in crate::schema) fn paths(text: &str, elements: &[usize]) -> Vec<String> {
    const MOST_STEPS: usize = 64;
    let mut paths: Vec<Vec<Step>> = vec![Vec::new(); elements.len()];
    let mut open = vec![Open::default()];
    let mut index = 0;
    for token in Scanner::new(text) {
        match token {
            ScanToken::Start(tag) => {
                let name = tag.name();
                let Some(parent) = open.last_mut() else { break };
                let number = parent.children.entry(name).or_default();
                *number += 1;
                let number = *number;
                open.push(Open { name, number, index, ..Open::default() });
                for (path, _) in paths.iter_mut().zip(elements).filter(|(_, element)| **element == index) {
                    let told = open.len().saturating_sub(MOST_STEPS + 1);
                    path.extend(open[told..].windows(2).map(|pair| Step::of(&pair[0], &pair[1])));
                    open[told..].iter_mut().for_each(|open| open.on_path = true);
                }
                index += 1;
            }
            ScanToken::End => {
                let Some(ended) = open.pop() else { break };
                if ended.on_path {
                    paths.iter_mut().flatten().for_each(|step| step.settle(&ended));
                }
            }
            ScanToken::Text(_) => {}
        }
    }
    let written = |path: &Vec<Step>| {
        let cut = if path.first().is_some_and(|step| step.parent.is_some()) { "…/" } else { "" };
        cut.to_owned() + &path.iter().map(Step::to_string).collect::<Vec<_>>().join("/")
    };
    paths.iter().map(written).collect()
}

/// An element before its end tag. Above the root there is one without a name.
#[derive(Default)]
struct Open<'a> {
    name: &'a str,
    index: usize,
    /// The position among the siblings of its name, from 1.
    number: u32,
    children: HashMap<&'a str, u32>,
    on_path: bool,
}

#[derive(Clone)]
struct Step<'a> {
    name: &'a str,
    number: u32,
    parent: Option<usize>,
    numbered: bool,
}

impl<'a> Step<'a> {
    fn of(parent: &Open<'a>, element: &Open<'a>) -> Self {
        let parent = (!parent.name.is_empty()).then_some(parent.index);
        Self { name: element.name, number: element.number, parent, numbered: element.number > 1 }
    }

    /// Settles the number once the parent has ended, when all siblings are known.
    fn settle(&mut self, ended: &Open) {
        if self.parent == Some(ended.index) {
            self.numbered = ended.children.get(self.name).is_some_and(|count| *count > 1);
        }
    }
}

impl fmt::Display for Step<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let local = split_prefix(self.name).1;
        match self.numbered {
            true => write!(f, "{local}[{}]", self.number),
            false => f.write_str(local),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::paths;

    #[test]
    fn steps_are_numbered_where_there_are_several() {
        let text = "<o><h></h><p:i><x></x></p:i><p:i><x></x><y></y><x></x></p:i><z>t</z></o>";
        let found = paths(text, &[0, 1, 3, 5, 6, 7, 8, 99]);
        assert_eq!(found, ["o", "o/h", "o/i[1]/x", "o/i[2]/x[1]", "o/i[2]/y", "o/i[2]/x[2]", "o/z", ""]);
    }

    #[test]
    fn long_paths_are_cut() {
        let text = format!("{}{}", "<a>".repeat(100_000), "</a>".repeat(100_000));
        let found = paths(&text, &[99_999, 63]);
        assert_eq!(found[0], format!("…/{}", ["a"; 64].join("/")));
        assert_eq!(found[1], ["a"; 64].join("/"));
    }
}
