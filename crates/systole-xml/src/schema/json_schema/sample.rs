//! Samples of JSON values by the rules of their schema. A sample is a guess: the judge has the last word on it.

use std::collections::BTreeMap;

use crate::schema::json::decimal::Decimal;
use crate::schema::json::ecma::of_ecma;
use crate::schema::json::rules::{Rule, RuleId, Rules, types};
use crate::schema::pattern::Pattern;

/// Levels of a sample, at most; optional properties are left out below [`SHOWN`].
const DEEPEST: usize = 24;
const SHOWN: usize = 4;

/// Values that a sample is made of, at most.
const VALUES: usize = 2_000;

impl Rules {
    /// A value that probably fits, as JSON; `None` if there is none of a usual size.
    pub(in crate::schema) fn sample(&self, rule: RuleId) -> Option<String> {
        Sampler { rules: self, left: VALUES }.value(rule, 0)
    }
}

struct Sampler<'r> {
    rules: &'r Rules,
    left: usize,
}

impl<'r> Sampler<'r> {
    /// A value. Recurses as deep as a sample may be.
    fn value(&mut self, id: RuleId, depth: usize) -> Option<String> {
        let rule: &'r Rule = &self.rules.list[id as usize];
        self.left = self.left.checked_sub(1)?;
        if rule.is_never || depth > DEEPEST {
            return None;
        }
        if let Some(values) = &rule.values {
            let value = values.iter().find(|(_, text)| text != "null").or(values.first());
            return value.map(|(_, text)| text.clone());
        }
        if let Some(example) = rule.examples.iter().find(|text| *text != "null") {
            return Some(example.clone());
        }
        let is_object = rule.types & types::OBJECT != 0 || !rule.properties.is_empty() || !rule.required.is_empty();
        if is_object {
            return self.object(id, depth);
        }
        if rule.types == 0 {
            let choice = rule.any.as_ref().or(rule.one.as_ref());
            if let Some(choice) = choice {
                let found =
                    choice.iter().filter_map(|option| self.value(*option, depth + 1)).find(|text| text != "null");
                return found.or_else(|| Some("null".to_owned()));
            }
            match rule.all[..] {
                [] => {}
                [only] => return self.value(only, depth + 1),
                [first, ..] => {
                    let whole = self.object(id, depth).filter(|text| text != "{}");
                    return whole.or_else(|| self.value(first, depth + 1));
                }
            }
        }
        let has = |bit| rule.types & bit != 0;
        if has(types::ARRAY) || rule.types == 0 && (rule.items.is_some() || !rule.prefix.is_empty()) {
            return self.array(rule, depth);
        }
        if has(types::STRING) || rule.types == 0 && (rule.pattern.is_some() || rule.length != (0, None)) {
            return string(rule);
        }
        if has(types::INTEGER) || has(types::NUMBER) || rule.types == 0 && (rule.least.is_some() || rule.most.is_some())
        {
            return number(rule);
        }
        match has(types::BOOLEAN) {
            true => Some("true".to_owned()),
            false if has(types::NULL) => Some("null".to_owned()),
            false => Some("\"text\"".to_owned()),
        }
    }

    fn array(&mut self, rule: &Rule, depth: usize) -> Option<String> {
        let (least, most) = rule.count;
        let wanted = rule.prefix.len() as u64;
        let mut wanted = wanted.max(least).max(u64::from(rule.items.is_some() && depth < SHOWN));
        if let Some((_, least, _)) = rule.contains {
            wanted = wanted.max(least);
        }
        let wanted = most.map_or(wanted, |most| wanted.min(most));
        let mut items: Vec<String> = Vec::new();
        for at in 0..wanted {
            let of_contains = rule.contains.map(|(rule, ..)| rule);
            let item = rule.prefix.get(at as usize).copied().or(of_contains).or(rule.items);
            let item = item.map_or_else(|| Some(at.to_string()), |item| self.value(item, depth + 1));
            match item {
                Some(item) => items.push(item),
                None if at >= least => break,
                None => return None,
            }
        }
        Some(format!("[{}]", items.join(",")))
    }

    fn object(&mut self, id: RuleId, depth: usize) -> Option<String> {
        let (mut members, mut pending, mut seen) = (BTreeMap::new(), vec![id], Vec::new());
        while let Some(id) = pending.pop() {
            if seen.contains(&id) {
                continue;
            }
            seen.push(id);
            let rule: &'r Rule = &self.rules.list[id as usize];
            if let Some(values) = &rule.values {
                return values.first().map(|(_, text)| text.clone());
            }
            pending.extend(&rule.all);
            for choice in [&rule.any, &rule.one].into_iter().flatten() {
                pending.extend(choice.first());
            }
            let mut names: Vec<&String> = rule.properties.keys().collect();
            names.sort_unstable();
            for name in names {
                let is_required = rule.required.contains(name);
                if !is_required && depth >= SHOWN || members.contains_key(name) {
                    continue;
                }
                match self.value(rule.properties[name], depth + 1) {
                    Some(value) => drop(members.insert(name.clone(), value)),
                    None if is_required => return None,
                    None => {}
                }
            }
            for name in &rule.required {
                if !members.contains_key(name) {
                    let value =
                        rule.others.map_or_else(|| Some("\"text\"".to_owned()), |rule| self.value(rule, depth + 1));
                    members.insert(name.clone(), value?);
                }
            }
            let others = rule.others.filter(|_| rule.properties.is_empty() && depth < SHOWN && members.is_empty());
            if let Some(value) = others.and_then(|rule| self.value(rule, depth + 1)) {
                members.insert("name".to_owned(), value);
            }
        }
        let written = members.iter().map(|(name, value)| format!("{}:{value}", serde_json::Value::from(name.as_str())));
        Some(format!("{{{}}}", written.collect::<Vec<_>>().join(",")))
    }
}

fn string(rule: &Rule) -> Option<String> {
    let (least, most) = rule.length;
    let fits = |text: &String| {
        let count = text.chars().count() as u64;
        least <= count
            && most.is_none_or(|most| count <= most)
            && rule.pattern.as_ref().is_none_or(|pattern| pattern.is_found(text))
    };
    let usual = match rule.format.as_deref() {
        Some("date-time") => "2026-01-31T09:30:00Z",
        Some("date") => "2026-01-31",
        Some("time") => "09:30:00Z",
        Some("duration") => "PT1H",
        Some("uuid") => "9f3a0000-0000-4000-8000-000000000000",
        Some("email") => "ada@example.com",
        Some("uri" | "url") => "https://example.com/",
        Some("ipv4") => "192.0.2.1",
        Some("ipv6") => "2001:db8::1",
        Some("decimal") => "1.5",
        _ => "text",
    };
    let of_pattern = || {
        let pattern = Pattern::from_rust(&of_ecma(&rule.pattern.as_ref()?.written).ok()?).ok()?;
        pattern.samples(0, Some(least).filter(|least| *least > 0)).find(fits)
    };
    let cut = || usual.chars().take(most.unwrap_or(u64::MAX) as usize).collect::<String>();
    let long = || "a".repeat(least.min(1 << 16) as usize);
    let simple = [usual.to_owned(), cut(), long(), "1".to_owned(), "12".to_owned(), "1.5".to_owned(), "a".to_owned()];
    let text = simple.into_iter().find(fits).or_else(of_pattern)?;
    Some(serde_json::Value::from(text).to_string())
}

fn number(rule: &Rule) -> Option<String> {
    let is_whole = rule.types & types::NUMBER == 0;
    let fits = |text: &&String| {
        let number = Decimal::of(text);
        (!is_whole || number.is_whole())
            && rule.least.as_ref().is_none_or(|(bound, out, _)| number > *bound || !out && number == *bound)
            && rule.most.as_ref().is_none_or(|(bound, out, _)| number < *bound || !out && number == *bound)
            && rule.multiple.as_ref().is_none_or(|(divisor, _)| number.is_multiple_of(*divisor))
    };
    let written = |bound: &Option<(Decimal, bool, String)>| bound.as_ref().map(|(.., written)| written.clone());
    let beside = |bound: &Option<(Decimal, bool, String)>, step: i64| {
        let number = written(bound)?.parse::<f64>().ok().filter(|number| number.abs() < 1e15)?;
        Some((number.floor() as i64 + step).to_string())
    };
    let multiple = rule.multiple.as_ref().map(|(_, written)| written.clone());
    let usual = if is_whole { ["1", "12"] } else { ["1.5", "1"] };
    let usual = usual.into_iter().map(str::to_owned).chain(multiple);
    let bounds = [written(&rule.least), written(&rule.most), beside(&rule.least, 1), beside(&rule.most, -1)];
    let all: Vec<String> = usual.chain(bounds.into_iter().flatten()).chain(["0".to_owned(), "-1".to_owned()]).collect();
    all.iter().find(fits).cloned()
}
