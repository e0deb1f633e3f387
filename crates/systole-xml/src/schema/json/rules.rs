//! Rules of JSON values that have no form in XML Schema, as the author's JSON Schema tells them.
//!
//! Invariant: a rule that judges the same value as another one stands before it, so that one pass in their order judges all.

use std::collections::{BTreeMap, HashMap};

use super::decimal::Decimal;
use super::document::{Document, Kind, NodeId};
use super::ecma::of_ecma;
use crate::schema::pattern::{Automaton, search};

/// Index of a rule in [`Rules`].
pub(in crate::schema) type RuleId = u32;

/// Compiled schemas.
#[derive(Debug, Default)]
pub(in crate::schema) struct Rules {
    pub(in crate::schema) list: Vec<Rule>,
    /// Set if values are compared.
    pub(in crate::schema) compares: bool,
}

/// Types of values, as bits.
pub(in crate::schema) mod types {
    pub(in crate::schema) const NULL: u8 = 1;
    pub(in crate::schema) const BOOLEAN: u8 = 2;
    pub(in crate::schema) const NUMBER: u8 = 4;
    /// A whole number.
    pub(in crate::schema) const INTEGER: u8 = 8;
    pub(in crate::schema) const STRING: u8 = 16;
    pub(in crate::schema) const ARRAY: u8 = 32;
    pub(in crate::schema) const OBJECT: u8 = 64;

    /// The types by their names.
    pub(in crate::schema) const NAMES: [(&str, u8); 7] = [
        ("null", NULL),
        ("boolean", BOOLEAN),
        ("integer", INTEGER),
        ("number", NUMBER),
        ("string", STRING),
        ("array", ARRAY),
        ("object", OBJECT),
    ];
}

/// One schema (JSON Schema validation, draft 2020-12).
#[derive(Debug, Default)]
pub(in crate::schema) struct Rule {
    /// Set for `false`, which no value fits.
    pub(in crate::schema) is_never: bool,
    /// The types; 0 for any.
    pub(in crate::schema) types: u8,
    /// The values of `enum` and of `const`, each by the hash of its value, and as they are written.
    pub(in crate::schema) values: Option<Vec<([u8; 32], String)>>,
    pub(in crate::schema) least: Option<(Decimal, bool, String)>,
    pub(in crate::schema) most: Option<(Decimal, bool, String)>,
    pub(in crate::schema) multiple: Option<((u64, i64), String)>,
    pub(in crate::schema) length: (u64, Option<u64>),
    pub(in crate::schema) pattern: Option<Search>,
    pub(in crate::schema) prefix: Vec<RuleId>,
    pub(in crate::schema) items: Option<RuleId>,
    pub(in crate::schema) contains: Option<(RuleId, u64, Option<u64>)>,
    pub(in crate::schema) count: (u64, Option<u64>),
    pub(in crate::schema) is_unique: bool,
    pub(in crate::schema) properties: HashMap<String, RuleId>,
    pub(in crate::schema) patterns: Vec<(Search, RuleId)>,
    pub(in crate::schema) others: Option<RuleId>,
    pub(in crate::schema) names: Option<RuleId>,
    pub(in crate::schema) required: Vec<String>,
    pub(in crate::schema) size: (u64, Option<u64>),
    /// The properties that a property demands.
    pub(in crate::schema) demands: BTreeMap<String, Vec<String>>,
    pub(in crate::schema) dependent: BTreeMap<String, RuleId>,
    pub(in crate::schema) all: Vec<RuleId>,
    pub(in crate::schema) any: Option<Vec<RuleId>>,
    pub(in crate::schema) one: Option<Vec<RuleId>>,
    /// Indices of `any` and of `one`, where these have many alternatives.
    pub(in crate::schema) indices: [Option<Box<Index>>; 2],
    pub(in crate::schema) not: Option<RuleId>,
    pub(in crate::schema) condition: Option<(RuleId, Option<RuleId>, Option<RuleId>)>,
    /// The `format`, which narrows nothing.
    pub(in crate::schema) format: Option<String>,
    /// Values that the author names as examples or as the default, as JSON.
    pub(in crate::schema) examples: Vec<String>,
}

impl Rule {
    /// The rules that judge the same value.
    pub(in crate::schema) fn same(&self) -> impl Iterator<Item = RuleId> {
        self.same_without([false, false])
    }

    /// The rules that judge the same value, but for the alternatives that have an index.
    pub(in crate::schema) fn same_unindexed(&self) -> impl Iterator<Item = RuleId> {
        self.same_without([self.indices[0].is_some(), self.indices[1].is_some()])
    }

    fn same_without(&self, [no_any, no_one]: [bool; 2]) -> impl Iterator<Item = RuleId> {
        let condition = self.condition.iter().flat_map(|(condition, then, other)| [Some(*condition), *then, *other]);
        let (any, one) = (self.any.as_ref().filter(|_| !no_any), self.one.as_ref().filter(|_| !no_one));
        let lists = [Some(&self.all), any, one].into_iter().flatten().flatten().copied();
        lists.chain(self.not).chain(condition.flatten()).chain(self.dependent.values().copied())
    }

    /// Changes all rules that it refers to.
    pub(in crate::schema) fn each(&mut self, change: impl Fn(&mut RuleId)) {
        let lists = [&mut self.prefix, &mut self.all].into_iter().chain(&mut self.any).chain(&mut self.one);
        lists.flatten().for_each(&change);
        let single = [&mut self.items, &mut self.others, &mut self.names, &mut self.not];
        single.into_iter().flatten().for_each(&change);
        self.contains.iter_mut().for_each(|(rule, ..)| change(rule));
        self.properties.values_mut().for_each(&change);
        self.patterns.iter_mut().for_each(|(_, rule)| change(rule));
        self.dependent.values_mut().for_each(&change);
        if let Some((condition, then, other)) = &mut self.condition {
            change(condition);
            then.iter_mut().chain(other).for_each(&change);
        }
    }
}

impl Rules {
    /// The rules in their order.
    pub(in crate::schema) fn new(mut list: Vec<Rule>) -> Self {
        let compares = list.iter().any(|rule| rule.values.is_some() || rule.is_unique);
        for id in 0..list.len() {
            let of = |alternatives: &Option<Vec<RuleId>>| Index::of(alternatives.as_ref()?, &list);
            let indices = [of(&list[id].any), of(&list[id].one)];
            list[id].indices = indices;
        }
        Self { list, compares }
    }

    /// Returns whether an object may fit.
    pub(in crate::schema) fn may_be_object(&self, rule: RuleId) -> bool {
        let mut may = Vec::with_capacity(rule as usize + 1);
        for rule in &self.list[..=rule as usize] {
            let fits = |id: &RuleId| may.get(*id as usize).copied().unwrap_or(true);
            let is_object = !rule.is_never && (rule.types == 0 || rule.types & types::OBJECT != 0);
            let of_values = rule.values.as_ref().is_none_or(|all| all.iter().any(|(_, text)| text.starts_with('{')));
            let some = |list: &Option<Vec<RuleId>>| list.as_ref().is_none_or(|list| list.iter().any(fits));
            may.push(is_object && of_values && rule.all.iter().all(fits) && some(&rule.any) && some(&rule.one));
        }
        may.last().copied().unwrap_or(true)
    }
}

/// Alternatives of a choice, from which on it has an index.
const MANY: usize = 8;

/// The alternatives of a choice by what tells them apart, so that a value is judged by those alone that it may fit: by its own
/// constant, else by the constant of a required property, else by the name of one, else by the type.
#[derive(Debug, Default)]
pub(in crate::schema) struct Index {
    by_value: HashMap<[u8; 32], Vec<RuleId>>,
    by_constant: HashMap<String, HashMap<[u8; 32], Vec<RuleId>>>,
    by_key: HashMap<String, Vec<RuleId>>,
    /// All others, each with its types.
    rest: Vec<(u8, RuleId)>,
    /// All alternatives in their order.
    sorted: Vec<RuleId>,
}

impl Index {
    /// The index of alternatives; none of a few.
    fn of(alternatives: &[RuleId], rules: &[Rule]) -> Option<Box<Self>> {
        if alternatives.len() < MANY {
            return None;
        }
        let mut index = Self { sorted: alternatives.to_vec(), ..Self::default() };
        index.sorted.sort_unstable();
        let behind = |id: &RuleId| behind(rules, *id);
        // A name that many alternatives require tells little.
        let mut uses: HashMap<&str, usize> = HashMap::new();
        for id in alternatives {
            rules[behind(id) as usize].required.iter().for_each(|name| *uses.entry(name).or_default() += 1);
        }
        for id in alternatives {
            let rule = &rules[behind(id) as usize];
            if let Some(values) = &rule.values {
                values.iter().for_each(|(hash, _)| index.by_value.entry(*hash).or_default().push(*id));
                continue;
            }
            if rule.types != types::OBJECT {
                index.rest.push((rule.types, *id));
                continue;
            }
            let constant = rule.required.iter().find_map(|name| {
                let property = rule.properties.get(name)?;
                Some((name, rules[behind(property) as usize].values.as_ref()?))
            });
            if let Some((name, values)) = constant {
                let by_hash = index.by_constant.entry(name.clone()).or_default();
                values.iter().for_each(|(hash, _)| by_hash.entry(*hash).or_default().push(*id));
                continue;
            }
            match rule.required.iter().min_by_key(|name| uses[name.as_str()]) {
                Some(name) => index.by_key.entry(name.clone()).or_default().push(*id),
                None => index.rest.push((rule.types, *id)),
            }
        }
        Some(Box::new(index))
    }

    /// Calls `each` with the alternatives that a value may fit: no other one does.
    pub(in crate::schema) fn candidates(
        &self,
        (document, node): (&Document<'_>, NodeId),
        types: u8,
        hashes: &[[u8; 32]],
        mut each: impl FnMut(RuleId),
    ) {
        let mut all = |found: Option<&Vec<RuleId>>| found.into_iter().flatten().for_each(|id| each(*id));
        if !self.by_value.is_empty() {
            all(self.by_value.get(&hashes[node as usize]));
        }
        if document.kind(node) == Kind::Object && !(self.by_constant.is_empty() && self.by_key.is_empty()) {
            for (key, value) in document.members(node) {
                let by_hash = self.by_constant.get(&*key);
                all(by_hash.and_then(|by_hash| by_hash.get(&hashes[value as usize])));
                all(self.by_key.get(&*key));
            }
        }
        let fits = |allowed: u8| allowed == 0 || allowed & types != 0;
        self.rest.iter().filter(|(allowed, _)| fits(*allowed)).for_each(|(_, id)| each(*id));
    }

    /// Steps of a look at the alternatives that only their types tell apart.
    pub(in crate::schema) fn steps(&self) -> usize {
        self.rest.len() / 16
    }

    /// Returns whether a rule is one of the alternatives.
    pub(in crate::schema) fn has(&self, rule: RuleId) -> bool {
        self.sorted.binary_search(&rule).is_ok()
    }
}

/// The rule behind references.
pub(in crate::schema) fn behind(rules: &[Rule], mut id: RuleId) -> RuleId {
    while let Rule { types: 0, all, .. } = &rules[id as usize]
        && let [only] = all[..]
    {
        id = only;
    }
    id
}

/// A pattern of ECMA-262 that is searched for in a text. Assertions at its start (`^(?!…)(?=…)`) are patterns of their own.
#[derive(Debug)]
pub(in crate::schema) struct Search {
    pub(in crate::schema) written: String,
    /// The patterns, each with whether it has to be found.
    parts: Vec<(Automaton, bool)>,
}

impl Search {
    /// Compiles a pattern.
    ///
    /// # Errors
    /// The reason why it can't be judged in linear time.
    pub(in crate::schema) fn of(pattern: &str) -> Result<Self, &'static str> {
        let (ahead, rest) = assertions(pattern);
        let of = |pattern: &str, is_wanted| Ok::<_, &'static str>((search(&of_ecma(pattern)?)?, is_wanted));
        let mut parts = vec![of(&rest, true)?];
        for (pattern, is_wanted) in ahead {
            parts.push(of(&format!("^(?:{pattern})"), is_wanted)?);
        }
        Ok(Self { written: pattern.to_owned(), parts })
    }

    pub(in crate::schema) fn is_found(&self, text: &str) -> bool {
        self.parts.iter().all(|(pattern, is_wanted)| pattern.is_match(text) == *is_wanted)
    }

    /// Steps that a search takes at worst.
    pub(in crate::schema) fn steps(&self, text: &str) -> usize {
        self.parts.iter().map(|(pattern, _)| pattern.steps(text)).sum()
    }
}

/// The assertions that a pattern begins with, each with whether it has to match, and the rest. Where alternatives stand beside
/// them, there are none: an assertion would hold in one of them alone.
fn assertions(pattern: &str) -> (Vec<(&str, bool)>, String) {
    let none = || (Vec::new(), pattern.to_owned());
    let Some(mut rest) = pattern.strip_prefix('^') else { return none() };
    let mut ahead = Vec::new();
    loop {
        let is_wanted = rest.starts_with("(?=");
        if !is_wanted && !rest.starts_with("(?!") {
            break;
        }
        let (mut depth, mut in_class, mut escaped, mut end) = (0, false, false, None);
        for (at, c) in rest.char_indices() {
            match c {
                _ if std::mem::take(&mut escaped) => {}
                '\\' => escaped = true,
                '[' => in_class = true,
                ']' => in_class = false,
                '(' if !in_class => depth += 1,
                ')' if !in_class => {
                    depth -= 1;
                    if depth == 0 {
                        end = Some(at);
                        break;
                    }
                }
                _ => {}
            }
        }
        let Some(end) = end else { return none() };
        ahead.push((&rest[3..end], is_wanted));
        rest = &rest[end + 1..];
    }
    let (mut depth, mut in_class, mut escaped) = (0, false, false);
    for c in rest.chars() {
        match c {
            _ if std::mem::take(&mut escaped) => {}
            '\\' => escaped = true,
            '[' => in_class = true,
            ']' => in_class = false,
            '(' if !in_class => depth += 1,
            ')' if !in_class => depth -= 1,
            '|' if !in_class && depth == 0 => return none(),
            _ => {}
        }
    }
    (ahead, format!("^{rest}"))
}

/// The hash of each value from `first` on to the end of what is in it: equal values have equal ones.
pub(in crate::schema) fn hashes(document: &Document<'_>, first: NodeId) -> Vec<[u8; 32]> {
    let mut hashes = vec![[0; 32]; (document.next(first) - first) as usize];
    for node in (first..document.next(first)).rev() {
        let mut hasher = blake3::Hasher::new();
        let of = |node: NodeId| hashes[(node - first) as usize];
        match document.kind(node) {
            Kind::Null => hasher.update(b"0"),
            Kind::True => hasher.update(b"t"),
            Kind::False => hasher.update(b"f"),
            Kind::Number => hasher.update(b"n").update(Decimal::of(&document.scalar(node)).key().as_bytes()),
            Kind::Plain | Kind::Escaped => hasher.update(b"s").update(document.scalar(node).as_bytes()),
            Kind::Array => document.items(node).fold(hasher.update(b"a"), |hasher, item| hasher.update(&of(item))),
            Kind::Object => {
                let mut members: Vec<_> = document.members(node).map(|(_, value)| (of(value - 1), of(value))).collect();
                members.sort_unstable();
                let add =
                    |hasher, (key, value): &([u8; 32], [u8; 32])| blake3::Hasher::update(hasher, key).update(value);
                members.iter().fold(hasher.update(b"o"), add)
            }
        };
        let hash = hasher.finalize().into();
        hashes[(node - first) as usize] = hash;
    }
    hashes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn assertions_at_the_start_of_a_pattern_are_patterns_of_their_own() {
        let decimals = Search::of(r"^(?!^[-+.]*$)[+-]?0*\d*\.?\d*$").unwrap();
        for (text, is_found) in
            [("12.50", true), ("-0.5", true), ("-", false), ("", false), (".", false), ("1e3", false)]
        {
            assert_eq!(decimals.is_found(text), is_found, "{text}");
        }
        let password = Search::of(r"^(?=.*\d)(?=.*[a-z)]).{4,}$").unwrap();
        for (text, is_found) in [("abc1", true), ("abcd", false), ("1234", false), ("a1", false)] {
            assert_eq!(password.is_found(text), is_found, "{text}");
        }
        for refused in [r"a(?=b)", r"^(?!a)b|c", r"^(?!a", r"(a)\1"] {
            assert!(Search::of(refused).is_err(), "{refused}");
        }
    }
}
