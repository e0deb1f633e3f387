//! The compiler of JSON Schemas to rules.

use std::collections::HashMap;

use super::{Maker, Stop};
use crate::schema::contract::ContractError;
use crate::schema::json::decimal::Decimal;
use crate::schema::json::document::{Kind, NodeId};
use crate::schema::json::rules::{Rule, RuleId, Rules, Search, hashes, types};

/// Schemas of a document, at most.
const MOST: usize = 1 << 16;

/// The schemas of a document that are compiled, each by the place where it is written.
#[derive(Default)]
pub(super) struct Compiled {
    pub(super) rules: Vec<Rule>,
    known: HashMap<NodeId, RuleId>,
    pending: Vec<(NodeId, RuleId)>,
}

impl Compiled {
    /// The rule of a schema, which is compiled later.
    fn of(&mut self, node: NodeId) -> RuleId {
        let next = self.rules.len() as RuleId;
        let id = *self.known.entry(node).or_insert(next);
        if id == next {
            self.rules.push(Rule::default());
            self.pending.push((node, id));
        }
        id
    }

    pub(super) fn add(&mut self, rule: Rule) -> RuleId {
        self.rules.push(rule);
        self.rules.len() as RuleId - 1
    }

    /// The rules in their order, and the new number of each.
    ///
    /// # Errors
    /// The place of a schema that judges a value by itself.
    pub(super) fn ordered(self) -> Result<(Rules, Vec<RuleId>), NodeId> {
        let Self { mut rules, known, .. } = self;
        let mut waits: Vec<usize> = rules.iter().map(|rule| rule.same().count()).collect();
        let mut users: Vec<Vec<RuleId>> = vec![Vec::new(); rules.len()];
        for (id, rule) in rules.iter().enumerate() {
            rule.same().for_each(|same| users[same as usize].push(id as RuleId));
        }
        let mut order: Vec<RuleId> = (0..rules.len() as RuleId).filter(|id| waits[*id as usize] == 0).collect();
        let mut at = 0;
        while let Some(id) = order.get(at).copied() {
            at += 1;
            for user in std::mem::take(&mut users[id as usize]) {
                waits[user as usize] -= 1;
                if waits[user as usize] == 0 {
                    order.push(user);
                }
            }
        }
        if order.len() < rules.len() {
            let in_circle = known.iter().filter(|(_, id)| waits[**id as usize] > 0).map(|(node, _)| *node).min();
            return Err(in_circle.unwrap_or(0));
        }
        let mut numbers = vec![0; rules.len()];
        order.iter().enumerate().for_each(|(number, id)| numbers[*id as usize] = number as RuleId);
        let list: Vec<Rule> = order
            .iter()
            .map(|id| {
                let mut rule = std::mem::take(&mut rules[*id as usize]);
                rule.each(|id| *id = numbers[*id as usize]);
                rule
            })
            .collect();
        Ok((Rules::new(list), numbers))
    }
}

/// Keywords that judge by what other keywords have left, or by where a schema is used from.
pub(super) const BEYOND: [&str; 6] =
    ["unevaluatedProperties", "unevaluatedItems", "$dynamicRef", "$recursiveRef", "dependencies", "additionalItems"];

impl Maker<'_, '_> {
    /// Compiles a schema, and all that it refers to.
    ///
    /// # Errors
    /// The place of a keyword that is wrong, or that contracts can't have.
    pub(super) fn rule(&mut self, node: NodeId) -> Result<RuleId, ContractError> {
        let mut compiled = std::mem::take(&mut self.compiled);
        let id = compiled.of(node);
        while let Some((node, id)) = compiled.pending.pop() {
            if compiled.rules.len() > MOST {
                return Err(
                    self.wrong(node, "the document has more than 65,536 schemas: write a payload for each part")
                );
            }
            let rule = self.compile(node, &mut compiled)?;
            compiled.rules[id as usize] = rule;
        }
        self.compiled = compiled;
        Ok(id)
    }

    fn compile(&self, node: NodeId, compiled: &mut Compiled) -> Result<Rule, ContractError> {
        let mut rule = Rule::default();
        match self.document.kind(node) {
            Kind::True => return Ok(rule),
            Kind::False => return Ok(Rule { is_never: true, ..rule }),
            Kind::Object => {}
            _ => return Err(self.wrong(node, "expected a schema: an object, true or false")),
        }
        let list = |value: NodeId| match self.document.kind(value) {
            Kind::Array => Ok(self.document.items(value).collect::<Vec<_>>()),
            _ => Err(self.wrong(value, "expected an array")),
        };
        let members = |value: NodeId| match self.document.kind(value) {
            Kind::Object => {
                Ok(self.document.members(value).map(|(key, value)| (key.into_owned(), value)).collect::<Vec<_>>())
            }
            _ => Err(self.wrong(value, "expected an object")),
        };
        let text = |value: NodeId| match self.document.kind(value) {
            Kind::Plain | Kind::Escaped => Ok(self.document.scalar(value).into_owned()),
            _ => Err(self.wrong(value, "expected a string")),
        };
        let texts = |value: NodeId| list(value)?.into_iter().map(text).collect::<Result<Vec<_>, _>>();
        let pattern = |pattern: &str, at: NodeId| {
            Search::of(pattern).map_err(|why| {
                self.wrong(at, &format!("the pattern '{pattern}' can't be judged in linear time, since {why}: write one without assertions inside of it and back references"))
            })
        };
        let flag = |value: NodeId| match self.document.kind(value) {
            Kind::True => Ok(true),
            Kind::False => Ok(false),
            _ => Err(self.wrong(value, "expected true or false")),
        };
        for (keyword, value) in self.document.members(node) {
            match &*keyword {
                keyword if BEYOND.contains(&keyword) => {
                    return Err(self.wrong(value, "contracts can't have this keyword: write the rule with properties, additionalProperties, items, prefixItems, dependentSchemas or $ref"));
                }
                "$ref" => rule.all.push(compiled.of(self.target(value)?)),
                "type" => {
                    let names = if self.document.kind(value) == Kind::Array { list(value)? } else { vec![value] };
                    for name in names {
                        rule.types |= self.type_bit(name)?;
                    }
                }
                "const" => rule.values = Some(narrowed(rule.values.take(), self.values_of(&[value]))),
                "enum" => rule.values = Some(narrowed(rule.values.take(), self.values_of(&list(value)?))),
                "minimum" | "exclusiveMinimum" => {
                    let bound = self.decimal(value, keyword.starts_with('e'))?;
                    let is_stricter = |(known, known_exclusive, _): &(Decimal, bool, String)| {
                        (&bound.0, bound.1) > (known, *known_exclusive)
                    };
                    if rule.least.as_ref().is_none_or(is_stricter) {
                        rule.least = Some(bound);
                    }
                }
                "maximum" | "exclusiveMaximum" => {
                    let bound = self.decimal(value, keyword.starts_with('e'))?;
                    let is_stricter = |(known, known_exclusive, _): &(Decimal, bool, String)| {
                        bound.0 < *known || bound.0 == *known && bound.1 && !known_exclusive
                    };
                    if rule.most.as_ref().is_none_or(is_stricter) {
                        rule.most = Some(bound);
                    }
                }
                "multipleOf" => {
                    let (number, _, written) = self.decimal(value, false)?;
                    let divisor = number
                        .divisor()
                        .ok_or_else(|| self.wrong(value, "expected a number above 0 of at most 18 digits"))?;
                    rule.multiple = Some((divisor, written));
                }
                "minLength" => rule.length.0 = self.number_of(value)?,
                "maxLength" => rule.length.1 = Some(self.number_of(value)?),
                "minItems" => rule.count.0 = self.number_of(value)?,
                "maxItems" => rule.count.1 = Some(self.number_of(value)?),
                "minProperties" => rule.size.0 = self.number_of(value)?,
                "maxProperties" => rule.size.1 = Some(self.number_of(value)?),
                "pattern" => rule.pattern = Some(pattern(&text(value)?, value)?),
                "uniqueItems" => rule.is_unique = flag(value)?,
                "prefixItems" => rule.prefix = list(value)?.into_iter().map(|item| compiled.of(item)).collect(),
                "items" if self.document.kind(value) == Kind::Array => {
                    return Err(self
                        .wrong(value, "schemas of single items are \"prefixItems\" since draft 2020-12: write that"));
                }
                "items" => rule.items = Some(compiled.of(value)),
                "contains" => {
                    let least = self.count(node, "minContains")?.unwrap_or(1);
                    rule.contains = Some((compiled.of(value), least, self.count(node, "maxContains")?));
                }
                "properties" => {
                    rule.properties =
                        members(value)?.into_iter().map(|(key, value)| (key, compiled.of(value))).collect();
                }
                "patternProperties" => {
                    for (key, value) in members(value)? {
                        rule.patterns.push((pattern(&key, value)?, compiled.of(value)));
                    }
                }
                "additionalProperties" => rule.others = Some(compiled.of(value)),
                "propertyNames" => rule.names = Some(compiled.of(value)),
                "required" => rule.required = texts(value)?,
                "dependentRequired" => {
                    for (key, value) in members(value)? {
                        rule.demands.insert(key, texts(value)?);
                    }
                }
                "dependentSchemas" => {
                    for (key, value) in members(value)? {
                        rule.dependent.insert(key, compiled.of(value));
                    }
                }
                "allOf" => rule.all.extend(list(value)?.into_iter().map(|item| compiled.of(item))),
                "anyOf" => rule.any = Some(list(value)?.into_iter().map(|item| compiled.of(item)).collect()),
                "oneOf" => rule.one = Some(list(value)?.into_iter().map(|item| compiled.of(item)).collect()),
                "not" => rule.not = Some(compiled.of(value)),
                "if" => {
                    let branch =
                        |compiled: &mut Compiled, key| self.member(node, key).map(|branch| compiled.of(branch));
                    let (then, other) = (branch(compiled, "then"), branch(compiled, "else"));
                    rule.condition = Some((compiled.of(value), then, other));
                }
                "examples" if self.document.kind(value) == Kind::Array => {
                    let examples = self.document.items(value).map(|example| self.document.value(example).to_owned());
                    rule.examples.splice(0..0, examples);
                }
                "format" => rule.format = self.text(node, "format").ok().flatten(),
                "default" => rule.examples.push(self.document.value(value).to_owned()),
                _ => {}
            }
        }
        Ok(rule)
    }

    pub(super) fn type_bit(&self, node: NodeId) -> Result<u8, ContractError> {
        let name = self.document.scalar(node);
        let found = types::NAMES.iter().find(|(known, _)| *known == name && self.document.kind(node) == Kind::Plain);
        found
            .map(|(_, bit)| *bit)
            .ok_or_else(|| self.wrong(node, "expected a type: object, array, string, integer, number, boolean or null"))
    }

    fn values_of(&self, values: &[NodeId]) -> Vec<([u8; 32], String)> {
        values.iter().map(|value| (hashes(self.document, *value)[0], self.document.value(*value).to_owned())).collect()
    }

    fn decimal(&self, node: NodeId, is_exclusive: bool) -> Result<(Decimal, bool, String), ContractError> {
        if self.document.kind(node) != Kind::Number {
            return Err(self.wrong(node, "expected a number"));
        }
        let written = self.document.scalar(node).into_owned();
        Ok((Decimal::of(&written), is_exclusive, written))
    }

    /// The rules of all values in the vocabulary, and the new number of each; a circle is an error of its place.
    pub(super) fn ordered_rules(&mut self) -> Result<(Rules, Vec<RuleId>), ContractError> {
        let ordered = std::mem::take(&mut self.compiled).ordered();
        ordered.map_err(|node| self.wrong(node, "its references lead in a circle"))
    }
}

/// The values that are in both of two lists.
fn narrowed(known: Option<Vec<([u8; 32], String)>>, mut given: Vec<([u8; 32], String)>) -> Vec<([u8; 32], String)> {
    if let Some(known) = known {
        given.retain(|(hash, _)| known.iter().any(|(other, _)| other == hash));
    }
    given
}

impl From<ContractError> for Stop {
    fn from(error: ContractError) -> Self {
        Self::Wrong(Box::new(error))
    }
}
