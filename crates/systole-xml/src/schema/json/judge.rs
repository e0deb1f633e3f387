//! The judge of JSON values by the rules of their schema: two passes over the list of values, none of which recurses.
//!
//! The first pass goes down and notes which rules each value needs; the second one goes up, so that the verdicts on all that is
//! in a value are known before its own. Only a refusal looks for the place of its mistake, on one way down.

use std::collections::HashSet;
use std::fmt::Write as _;

use super::decimal::Decimal;
use super::document::{Document, Kind, NodeId, push_step};
use super::rules::{Index, Rule, RuleId, Rules, behind, hashes, types};
use crate::schema::shorten::{quoted, shortened};

/// Steps for each byte of a value, and for each value: one for each rule of it, and for each comparison that the rule makes.
const STEPS_PER_BYTE: usize = 256;
const STEPS: usize = 1 << 20;

/// A broken rule.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::schema) struct Broken {
    /// The value that breaks it.
    pub(in crate::schema) node: NodeId,
    /// The found and the expected value.
    pub(in crate::schema) rule: String,
}

/// The verdicts on the values of a document.
struct Verdicts<'r, 'd, 't> {
    rules: &'r Rules,
    document: &'d Document<'t>,
    /// The rules that each value needs, in their order, each with its verdict.
    of: Vec<Vec<(RuleId, bool)>>,
    hashes: Vec<[u8; 32]>,
}

/// The way on to the mistake of a value.
enum Fault {
    /// The value breaks the rule itself.
    Own(String),
    /// A value in it, or itself, breaks another rule.
    Of(NodeId, RuleId),
}

impl Rules {
    /// Judges a document by a rule. Takes time linear in the document, for any one schema.
    ///
    /// # Errors
    /// The broken rule that stands deepest on the way to the mistake, or the limit of steps.
    pub(in crate::schema) fn judge(&self, document: &Document<'_>, rule: RuleId) -> Result<(), Broken> {
        let hashes = if self.compares { hashes(document, 0) } else { Vec::new() };
        let mut verdicts = Verdicts { rules: self, document, of: Vec::new(), hashes };
        verdicts.go_down(rule)?;
        for node in (0..document.next(0)).rev() {
            let mut own = std::mem::take(&mut verdicts.of[node as usize]);
            for at in 0..own.len() {
                let (before, rest) = own.split_at_mut(at);
                rest[0].1 = verdicts.fault(node, rest[0].0, before, false).is_none();
            }
            verdicts.of[node as usize] = own;
        }
        if verdicts.fits(0, rule) { Ok(()) } else { Err(verdicts.mistake(rule)) }
    }
}

impl<'r> Verdicts<'r, '_, '_> {
    fn rule(&self, id: RuleId) -> &'r Rule {
        &self.rules.list[id as usize]
    }

    /// Notes the rules that each value needs.
    fn go_down(&mut self, first: RuleId) -> Result<(), Broken> {
        let count = self.document.next(0);
        let mut left = STEPS.saturating_add(self.document.text.len().saturating_mul(STEPS_PER_BYTE));
        let mut needed: Vec<Vec<RuleId>> = vec![Vec::new(); count as usize];
        needed[0].push(first);
        let mut marks = vec![NodeId::MAX; self.rules.list.len()];
        self.of = Vec::with_capacity(count as usize);
        for node in 0..count {
            let given = std::mem::take(&mut needed[node as usize]);
            let mut own: Vec<(RuleId, bool)> = Vec::with_capacity(given.len());
            let mut add = |own: &mut Vec<_>, id: RuleId| {
                if std::mem::replace(&mut marks[id as usize], node) != node {
                    own.push((id, false));
                }
            };
            given.into_iter().for_each(|id| add(&mut own, id));
            let mut at = 0;
            while let Some((id, _)) = own.get(at).copied() {
                let rule = self.rule(id);
                rule.same_unindexed().for_each(|id| add(&mut own, id));
                for index in rule.indices.iter().flatten() {
                    let types = self.types_of(node);
                    index.candidates((self.document, node), types, &self.hashes, |id| add(&mut own, id));
                }
                at += 1;
            }
            own.sort_unstable();
            for (id, _) in &own {
                let steps = self.needs_of(node, self.rule(*id), &mut needed);
                left = left.checked_sub(steps).ok_or_else(|| Broken {
                    node: 0,
                    rule: "the value takes too many steps to judge by its JSON Schema: send a smaller one, or write the schema with fewer alternatives".to_owned(),
                })?;
            }
            self.of.push(own);
        }
        Ok(())
    }

    /// Notes the rules that a rule has for what is in a value; returns the steps that the rule takes.
    fn needs_of(&self, node: NodeId, rule: &Rule, needed: &mut [Vec<RuleId>]) -> usize {
        let mut steps = 1 + rule.values.as_ref().map_or(0, Vec::len) + rule.required.len();
        steps += rule.indices.iter().flatten().map(|index| index.steps()).sum::<usize>();
        match self.document.kind(node) {
            Kind::Object => {
                for (key, value) in self.document.members(node) {
                    steps += 1;
                    needed[value as usize - 1].extend(rule.names);
                    let mut is_known = false;
                    if let Some(rule) = rule.properties.get(&*key) {
                        needed[value as usize].push(*rule);
                        is_known = true;
                    }
                    for (pattern, rule) in &rule.patterns {
                        steps = steps.saturating_add(pattern.steps(&key) / 16);
                        if pattern.is_found(&key) {
                            needed[value as usize].push(*rule);
                            is_known = true;
                        }
                    }
                    if !is_known {
                        needed[value as usize].extend(rule.others);
                    }
                }
            }
            Kind::Array => {
                for (index, item) in self.document.items(node).enumerate() {
                    steps += 1;
                    needed[item as usize].extend(rule.prefix.get(index).or(rule.items.as_ref()));
                    needed[item as usize].extend(rule.contains.map(|(rule, ..)| rule));
                }
            }
            Kind::Plain | Kind::Escaped => {
                let search = rule.pattern.as_ref().map_or(0, |pattern| pattern.steps(&self.document.scalar(node)) / 16);
                steps = steps.saturating_add(search);
            }
            _ => {}
        }
        steps
    }

    /// The verdict on a value by a rule that it needs.
    fn fits(&self, node: NodeId, rule: RuleId) -> bool {
        is_fit(&self.of[node as usize], rule)
    }

    /// The mistake of a value; `None` if it fits. `own` has the verdicts on the value by the rules before this one. The words
    /// are made if they are asked for.
    fn fault(&self, node: NodeId, id: RuleId, own: &[(RuleId, bool)], tells: bool) -> Option<Fault> {
        let (rule, document) = (self.rule(id), self.document);
        let kind = document.kind(node);
        let told = |words: &dyn Fn() -> String| Some(Fault::Own(if tells { words() } else { String::new() }));
        let found = || found(document, node);
        if rule.is_never {
            return told(&|| "the schema allows no value here: leave it out".to_owned());
        }
        if rule.types != 0 && rule.types & self.types_of(node) == 0 {
            return told(&|| format!("found {}, expected {}", found(), type_names(rule.types)));
        }
        if let Some(values) = &rule.values
            && !values.iter().any(|(hash, _)| *hash == self.hashes[node as usize])
        {
            return told(&|| {
                let all: Vec<&str> = values.iter().map(|(_, text)| text.as_str()).collect();
                let one = if all.len() == 1 { "" } else { "one of " };
                format!("found {}, expected {one}{}", found(), shortened(&all.join(", "), 200))
            });
        }
        if let Some(rule) = rule.all.iter().find(|rule| !is_fit(own, **rule)) {
            return Some(Fault::Of(node, *rule));
        }
        match kind {
            Kind::Number => {
                if rule.least.is_some() || rule.most.is_some() || rule.multiple.is_some() {
                    let number = Decimal::of(&document.scalar(node));
                    if let Some((bound, is_exclusive, written)) = &rule.least
                        && (number < *bound || *is_exclusive && number == *bound)
                    {
                        let words = if *is_exclusive { "more than" } else { "at least" };
                        return told(&|| format!("found {}, expected {words} {written}", found()));
                    }
                    if let Some((bound, is_exclusive, written)) = &rule.most
                        && (number > *bound || *is_exclusive && number == *bound)
                    {
                        let words = if *is_exclusive { "less than" } else { "at most" };
                        return told(&|| format!("found {}, expected {words} {written}", found()));
                    }
                    if let Some((divisor, written)) = &rule.multiple
                        && !number.is_multiple_of(*divisor)
                    {
                        return told(&|| format!("found {}, expected a multiple of {written}", found()));
                    }
                }
            }
            Kind::Plain | Kind::Escaped => {
                let text = document.scalar(node);
                if rule.length != (0, None) && !is_between(rule.length, text.chars().count()) {
                    return told(&|| {
                        let expected = between(rule.length, "character");
                        format!("found a string of {} characters, expected {expected}", text.chars().count())
                    });
                }
                if let Some(pattern) = rule.pattern.as_ref().filter(|pattern| !pattern.is_found(&text)) {
                    return told(&|| {
                        format!("found {}, expected a string with the pattern {}", found(), pattern.written)
                    });
                }
            }
            Kind::Array => {
                if let Some(fault) = self.fault_of_array(node, rule, &told) {
                    return Some(fault);
                }
            }
            Kind::Object => {
                if let Some(fault) = self.fault_of_object(node, rule, own, &told) {
                    return Some(fault);
                }
            }
            Kind::Null | Kind::True | Kind::False => {}
        }
        if let Some((condition, then, other)) = rule.condition {
            let branch = if is_fit(own, condition) { then } else { other };
            if let Some(branch) = branch.filter(|branch| !is_fit(own, *branch)) {
                return Some(Fault::Of(node, branch));
            }
        }
        if rule.not.is_some_and(|not| is_fit(own, not)) {
            return told(&|| format!("found {}, which the schema excludes by \"not\"", found()));
        }
        if let Some(any) = &rule.any
            && fitting(any, rule.indices[0].as_deref(), own) == 0
        {
            return self.fault_of_choice(node, any, &told, tells);
        }
        if let Some(one) = &rule.one {
            return match fitting(one, rule.indices[1].as_deref(), own) {
                1 => None,
                0 => self.fault_of_choice(node, one, &told, tells),
                several => told(&|| format!("fits {several} alternatives of \"oneOf\", expected exactly one")),
            };
        }
        None
    }

    fn fault_of_array(
        &self,
        node: NodeId,
        rule: &Rule,
        told: &dyn Fn(&dyn Fn() -> String) -> Option<Fault>,
    ) -> Option<Fault> {
        for (index, item) in self.document.items(node).enumerate() {
            if let Some(rule) = rule.prefix.get(index).or(rule.items.as_ref()).filter(|rule| !self.fits(item, **rule)) {
                return Some(Fault::Of(item, *rule));
            }
        }
        let count = || self.document.items(node).count();
        if rule.count != (0, None) && !is_between(rule.count, count()) {
            return told(&|| format!("found an array of {} items, expected {}", count(), between(rule.count, "item")));
        }
        if let Some((wanted, least, most)) = rule.contains {
            let found = || self.document.items(node).filter(|item| self.fits(*item, wanted)).count();
            if !is_between((least, most), found()) {
                return told(&|| {
                    let expected = between((least, most), "item");
                    format!("found {} items that fit \"contains\", expected {expected}", found())
                });
            }
        }
        if rule.is_unique {
            let mut known = HashSet::new();
            let double = self.document.items(node).find(|item| !known.insert(self.hashes[*item as usize]));
            if double.is_some() {
                return told(&|| "an item is repeated: write each item once".to_owned());
            }
        }
        None
    }

    fn fault_of_object(
        &self,
        node: NodeId,
        rule: &Rule,
        own: &[(RuleId, bool)],
        told: &dyn Fn(&dyn Fn() -> String) -> Option<Fault>,
    ) -> Option<Fault> {
        let document = self.document;
        let missing = |name: &str| told(&|| format!("the property '{}' is missing: write it", quoted(name)));
        let needs_keys = !rule.required.is_empty() || !rule.demands.is_empty() || !rule.dependent.is_empty();
        if needs_keys {
            let keys: HashSet<_> = document.members(node).map(|(key, _)| key).collect();
            let has = |key: &String| keys.contains(key.as_str());
            if let Some(name) = rule.required.iter().find(|name| !has(name)) {
                return missing(name);
            }
            for (_, wanted) in rule.demands.iter().filter(|(key, _)| has(key)) {
                if let Some(name) = wanted.iter().find(|name| !has(name)) {
                    return missing(name);
                }
            }
            for (_, rule) in rule.dependent.iter().filter(|(key, _)| has(key)) {
                if !is_fit(own, *rule) {
                    return Some(Fault::Of(node, *rule));
                }
            }
        }
        let count = || document.members(node).count();
        if rule.size != (0, None) && !is_between(rule.size, count()) {
            return told(&|| {
                format!("found an object of {} properties, expected {}", count(), between(rule.size, "property"))
            });
        }
        for (key, value) in document.members(node) {
            if let Some(names) = rule.names.filter(|names| !self.fits(value - 1, *names)) {
                return Some(Fault::Of(value - 1, names));
            }
            let mut is_known = false;
            if let Some(rule) = rule.properties.get(&*key) {
                is_known = true;
                if !self.fits(value, *rule) {
                    return Some(Fault::Of(value, *rule));
                }
            }
            for (_, rule) in rule.patterns.iter().filter(|(pattern, _)| pattern.is_found(&key)) {
                is_known = true;
                if !self.fits(value, *rule) {
                    return Some(Fault::Of(value, *rule));
                }
            }
            let Some(others) = rule.others.filter(|others| !is_known && !self.fits(value, *others)) else { continue };
            if !self.rule(others).is_never {
                return Some(Fault::Of(value, others));
            }
            return told(&|| {
                let mut names: Vec<String> = rule.properties.keys().map(|name| format!("'{name}'")).collect();
                names.sort_unstable();
                let expected = if names.is_empty() { "none".to_owned() } else { shortened(&names.join(", "), 200) };
                format!("no property '{}' is known here, expected {expected}", quoted(&key))
            });
        }
        None
    }

    /// The mistake of a value that fits none of several alternatives: that of the alternative that it seems to be.
    fn fault_of_choice(
        &self,
        node: NodeId,
        choice: &[RuleId],
        told: &dyn Fn(&dyn Fn() -> String) -> Option<Fault>,
        tells: bool,
    ) -> Option<Fault> {
        if !tells {
            return told(&String::new);
        }
        let meant: Vec<RuleId> = choice.iter().copied().filter(|rule| self.seems(node, *rule)).collect();
        if let [only] = meant[..] {
            return Some(Fault::Of(node, only));
        }
        told(&|| self.words_of_choice(node, choice))
    }

    /// The words for a value that is none of several alternatives: the constant that tells them apart, or else their types.
    fn words_of_choice(&self, node: NodeId, choice: &[RuleId]) -> String {
        let rules: Vec<&Rule> = choice.iter().map(|rule| self.rule(self.behind(*rule))).collect();
        if self.document.kind(node) == Kind::Object {
            let apart = self.document.members(node).find_map(|(key, value)| {
                let constants = |rule: &&Rule| self.rule(self.behind(*rule.properties.get(&*key)?)).values.as_ref();
                let all: Vec<_> = rules.iter().map(constants).collect::<Option<_>>()?;
                let all: Vec<&str> = all.into_iter().flatten().map(|(_, text)| text.as_str()).collect();
                let is_one = all.contains(&self.document.value(value));
                (!is_one).then(|| (key, found(self.document, value), shortened(&all.join(", "), 200)))
            });
            if let Some((key, found, all)) = apart {
                return format!("the property '{}' is {found}, expected one of {all}", quoted(&key));
            }
        }
        let types = rules.iter().fold(0, |all, rule| all | rule.types);
        let (found, count) = (found(self.document, node), rules.len());
        match rules.iter().any(|rule| rule.types == 0) || types & self.types_of(node) != 0 {
            true => format!("found {found}, which fits none of the {count} alternatives of the schema there"),
            false => format!("found {found}, expected {}", type_names(types)),
        }
    }

    /// The rule behind references.
    fn behind(&self, id: RuleId) -> RuleId {
        behind(&self.rules.list, id)
    }

    /// Returns whether a value is of the type of a rule, and has the constants that tell its alternatives apart.
    fn seems(&self, node: NodeId, id: RuleId) -> bool {
        let rule = self.rule(self.behind(id));
        if rule.is_never || rule.types != 0 && rule.types & self.types_of(node) == 0 {
            return false;
        }
        if self.document.kind(node) != Kind::Object {
            return rule.values.is_none();
        }
        self.document.members(node).all(|(key, value)| {
            let Some(property) = rule.properties.get(&*key) else { return true };
            self.rule(self.behind(*property)).values.is_none() || self.fits(value, *property)
        })
    }

    /// The bits of the types that a value has.
    fn types_of(&self, node: NodeId) -> u8 {
        match self.document.kind(node) {
            Kind::Null => types::NULL,
            Kind::True | Kind::False => types::BOOLEAN,
            Kind::Number if Decimal::of(&self.document.scalar(node)).is_whole() => types::NUMBER | types::INTEGER,
            Kind::Number => types::NUMBER,
            Kind::Plain | Kind::Escaped => types::STRING,
            Kind::Array => types::ARRAY,
            Kind::Object => types::OBJECT,
        }
    }

    /// Goes down to the mistake of a document that breaks a rule.
    fn mistake(&self, first: RuleId) -> Broken {
        let (mut node, mut id) = (0, first);
        loop {
            match self.fault(node, id, &self.of[node as usize], true) {
                Some(Fault::Of(next, rule)) => (node, id) = (next, rule),
                Some(Fault::Own(rule)) => return Broken { node, rule },
                None => return Broken { node, rule: "the value breaks its JSON Schema".to_owned() },
            }
        }
    }
}

/// The number of alternatives that a value fits.
fn fitting(alternatives: &[RuleId], index: Option<&Index>, own: &[(RuleId, bool)]) -> usize {
    match index {
        Some(index) => own.iter().filter(|(id, is_fit)| *is_fit && index.has(*id)).count(),
        None => alternatives.iter().filter(|rule| is_fit(own, **rule)).count(),
    }
}

fn is_fit(verdicts: &[(RuleId, bool)], rule: RuleId) -> bool {
    verdicts.binary_search_by_key(&rule, |(id, _)| *id).is_ok_and(|at| verdicts[at].1)
}

fn is_between((least, most): (u64, Option<u64>), count: usize) -> bool {
    let count = count as u64;
    least <= count && most.is_none_or(|most| count <= most)
}

fn between(bounds: (u64, Option<u64>), noun: &str) -> String {
    let plural = |count: u64| match (count, noun) {
        (1, _) => noun.to_owned(),
        (_, "property") => "properties".to_owned(),
        _ => format!("{noun}s"),
    };
    match bounds {
        (least, Some(most)) if least == most => format!("{least} {}", plural(least)),
        (0, Some(most)) => format!("at most {most} {}", plural(most)),
        (least, Some(most)) => format!("{least} to {most} {}", plural(most)),
        (least, None) => format!("at least {least} {}", plural(least)),
    }
}

fn type_names(bits: u8) -> String {
    let names: Vec<&str> = types::NAMES.iter().filter(|(_, bit)| bits & bit != 0).map(|(name, _)| *name).collect();
    let mut out = String::new();
    for (at, name) in names.iter().enumerate() {
        let article = match *name {
            "null" => "",
            "integer" | "array" | "object" => "an ",
            _ => "a ",
        };
        let comma = match (at, at + 1 == names.len()) {
            (0, _) => "",
            (_, true) => " or ",
            (_, false) => ", ",
        };
        let name = if *name == "integer" { "whole number" } else { name };
        let article = if name == "whole number" { "a " } else { article };
        let _ = write!(out, "{comma}{article}{name}");
    }
    out
}

fn found(document: &Document<'_>, node: NodeId) -> String {
    match document.kind(node) {
        Kind::Array => "an array".to_owned(),
        Kind::Object => "an object".to_owned(),
        _ => shortened(document.value(node), 80),
    }
}

/// The place of a value in its document, for a person: a JSON pointer.
pub(in crate::schema) fn pointer(document: &Document<'_>, node: NodeId) -> String {
    // A key has the place of its value.
    let key = document.parent(node).filter(|(parent, _)| {
        document.kind(*parent) == Kind::Object && document.members(*parent).any(|(_, value)| value == node + 1)
    });
    match key {
        Some((parent, _)) => {
            let mut pointer = document.pointer(parent);
            push_step(&mut pointer, &document.scalar(node));
            pointer
        }
        None => document.pointer(node),
    }
}
