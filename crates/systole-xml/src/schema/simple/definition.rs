//! The definition of a simple type, and the value of a literal by it.

use std::borrow::Cow;
use std::sync::Arc;

use foldhash::{HashSet, HashSetExt};

use super::facets::Facets;
use super::lexis::Lexis;
use super::members::Members;
use super::mismatch::{Broken, Rule};
use super::primitive::Primitive;
use super::space::Space;
use super::value::Value;
use super::{Identity, Prefixes, SimpleType, Unsupported, words};

/// The definition of a simple type.
#[derive(Debug)]
pub(super) struct Definition {
    pub(super) variety: Variety,
    pub(super) space: Space,
    pub(super) lexis: Lexis,
    pub(super) facets: Facets,
    pub(super) identity: Identity,
    /// The description of a value, without facets other than the enumeration.
    pub(super) noun: String,
    /// The base of the step that has the enumeration: the enumerated values are values of it.
    pub(super) implied: Option<Arc<Self>>,
    pub(super) words: String,
    /// The values of the enumeration as written, in document order; other facets may exclude some.
    pub(super) enumerated: Option<Arc<[Box<str>]>>,
    /// The nesting depth of the types that the type is built from.
    pub(super) depth: usize,
    /// The greatest number of types that a value may be checked against: the members of a union, with theirs.
    pub(super) width: usize,
}

#[derive(Debug, Clone)]
pub(super) enum Variety {
    /// `anySimpleType`: any text.
    Any,
    Atomic(Primitive),
    List(SimpleType),
    Union(Arc<Members>),
}

/// The greatest nesting depth of types: values are checked, and types dropped, by recursion.
const DEEPEST: usize = 256;

/// The greatest number of types that a value of a union may be checked against.
const WIDEST: usize = 4_096;

impl Definition {
    pub(super) fn list(item: &SimpleType) -> Result<Self, Unsupported> {
        if item.definition.has_lists() {
            return Err(Unsupported::because("the items of a list are lists themselves"));
        }
        let identity = match item.identity() {
            Identity::None => Identity::None,
            Identity::Idref => Identity::Idrefs,
            _ => Identity::Mixed,
        };
        let noun = words::list(item.words());
        let variety = Variety::List(item.clone());
        let width = item.definition.width;
        let made = Self { space: Space::Collapse, identity, width, ..Self::new(variety, noun) };
        made.nested(item.definition.depth)
    }

    /// A union type. Duplicate members are dropped, because they have no effect.
    pub(super) fn union(mut members: Vec<SimpleType>) -> Result<Self, Unsupported> {
        let mut seen = HashSet::new();
        members.retain(|member| seen.insert(Arc::as_ptr(&member.definition)));
        let width = members.iter().map(|member| member.definition.width).fold(1, usize::saturating_add);
        if width > WIDEST {
            return Err(Unsupported::because(format!(
                "a union has more than {WIDEST} members, those of its members counted"
            )));
        }
        let plain = members.iter().all(|member| member.identity() == Identity::None);
        let identity = if plain { Identity::None } else { Identity::Mixed };
        let noun = words::union(members.iter().map(SimpleType::words));
        let depth = members.iter().map(|member| member.definition.depth).max().unwrap_or(0);
        Self { identity, width, ..Self::new(Variety::Union(Arc::new(Members::new(members))), noun) }.nested(depth)
    }

    /// A type without facets.
    pub(super) fn new(variety: Variety, noun: String) -> Self {
        Self {
            variety,
            space: Space::Preserve,
            lexis: Lexis::Any,
            facets: Facets::default(),
            identity: Identity::None,
            words: noun.clone(),
            noun,
            implied: None,
            enumerated: None,
            depth: 0,
            width: 1,
        }
    }

    /// Sets the depth to one above that of the types it is built from.
    pub(super) fn nested(mut self, below: usize) -> Result<Self, Unsupported> {
        self.depth = below + 1;
        if self.depth > DEEPEST {
            return Err(Unsupported::because(format!(
                "simple types are derived from each other more than {DEEPEST} times"
            )));
        }
        Ok(self)
    }

    /// The value of a literal as written. The items of a list without enumeration are dropped unless `wanted`.
    pub(super) fn value<'a>(
        &'a self,
        raw: &'a str,
        prefixes: &'a dyn Prefixes,
        wanted: bool,
    ) -> Result<Value<'a>, Broken> {
        if let Variety::Union(members) = &self.variety {
            return Ok(self.member_value(members, raw, prefixes, wanted)?.0);
        }
        match self.space.normalize(raw) {
            Cow::Borrowed(text) => self.normalized_value(text, prefixes, wanted),
            Cow::Owned(text) => self.normalized_value(&text, prefixes, wanted).map(Value::into_owned),
        }
    }

    fn normalized_value<'a>(
        &'a self,
        text: &'a str,
        prefixes: &'a dyn Prefixes,
        wanted: bool,
    ) -> Result<Value<'a>, Broken> {
        let value = match &self.variety {
            Variety::Any | Variety::Union(_) => Value::Text(text.into()),
            Variety::Atomic(primitive) => {
                if !self.lexis.allows(text) {
                    return Err(Rule::Lexical.into());
                }
                let value = match wanted || !self.facets.ignore_values() {
                    true => primitive.value(text, prefixes)?,
                    false => primitive.check(text, prefixes).map(|()| Value::Text(text.into()))?,
                };
                if self.lexis == Lexis::Entity {
                    return Err(Rule::Entity.into());
                }
                self.facets.check_length(|| primitive.length(text))?;
                value
            }
            Variety::List(item) => self.items(item, text, prefixes, wanted)?,
        };
        self.facets.check_literal(text, prefixes)?;
        self.facets.check_value(&value)?;
        Ok(value)
    }

    fn items<'a>(
        &'a self,
        item: &'a SimpleType,
        text: &'a str,
        prefixes: &'a dyn Prefixes,
        wanted: bool,
    ) -> Result<Value<'a>, Broken> {
        // Keeps one item more than the longest enumerated list has, which suffices to differ from each.
        let kept = match &self.facets.values {
            _ if wanted => usize::MAX,
            Some(values) => values.longest_list() + 1,
            None => 0,
        };
        let (mut items, mut count) = (Vec::new(), 0);
        for text in text.split(' ').filter(|text| !text.is_empty()) {
            if !prefixes.spend(item.definition.own_work(text)) {
                return Err(Rule::Steps.into());
            }
            let value = item.definition.value(text, prefixes, kept > 0).map_err(|broken| broken.by(text))?;
            if count < kept {
                items.push(value);
            }
            count += 1;
        }
        self.facets.check_length(|| Some(count))?;
        if !prefixes.spend(self.lookup_work(text.len())) {
            return Err(Rule::Steps.into());
        }
        Ok(Value::List(items))
    }

    /// The value by the first member that it is valid for, and the white space facet of that member, by which the
    /// literal is normalized for the patterns of the union (section 4.3.6).
    fn member_value<'a>(
        &'a self,
        members: &'a Members,
        raw: &'a str,
        prefixes: &'a dyn Prefixes,
        wanted: bool,
    ) -> Result<(Value<'a>, Space), Broken> {
        let wanted = wanted || self.facets.values.is_some();
        let value = |member: &'a SimpleType| match &member.definition.variety {
            _ if !prefixes.spend(member.definition.own_work(raw)) => Err(Rule::Steps.into()),
            Variety::Union(members) => member.definition.member_value(members, raw, prefixes, wanted),
            _ => member.definition.value(raw, prefixes, wanted).map(|value| (value, member.definition.space)),
        };
        // A member that has no steps left doesn't refuse the value, so no later one may take it.
        let decided = |found: &Result<_, Broken>| !matches!(found, Err(broken) if broken.rule != Rule::Steps);
        let found = members.candidates(raw).map(value).find(decided);
        let (value, space) = found.unwrap_or(Err(Rule::Member.into()))?;
        if !self.facets.patterns.is_empty() {
            self.facets.check_literal(&space.normalize(raw), prefixes)?;
        }
        self.facets.check_value(&value)?;
        Ok((value, space))
    }

    pub(super) fn steps(&self, text: &str) -> usize {
        let own = self.facets.patterns.iter().map(|pattern| pattern.automaton.steps(text));
        let below = match &self.variety {
            Variety::Any | Variety::Atomic(_) => 0,
            Variety::List(item) => item.definition.steps(text),
            Variety::Union(members) => members.iter().map(|member| member.definition.steps(text)).sum(),
        };
        own.fold(below, usize::saturating_add)
    }

    fn has_lists(&self) -> bool {
        match &self.variety {
            Variety::Any | Variety::Atomic(_) => false,
            Variety::List(_) => true,
            Variety::Union(members) => members.iter().any(|member| member.definition.has_lists()),
        }
    }

    /// Reports whether values are qualified names, which need the prefixes in scope.
    pub(super) fn has_prefixes(&self) -> bool {
        match &self.variety {
            Variety::Any => false,
            Variety::Atomic(primitive) => matches!(primitive, Primitive::QName | Primitive::Notation),
            Variety::List(item) => item.definition.has_prefixes(),
            Variety::Union(members) => members.iter().any(|member| member.definition.has_prefixes()),
        }
    }

    pub(super) fn identity(&self) -> Identity {
        self.identity
    }

    /// The description with the bounds that [`Self::words`] leaves out, if the value breaks one of them.
    pub(super) fn uncounted_bounds(&self, broken: Rule) -> Option<String> {
        matches!(broken, Rule::Least | Rule::Most).then(|| words::bounds(&self.noun, &self.facets))?
    }

    pub(super) fn words(&self) -> &str {
        &self.words
    }

    /// The facets in words, as they stand behind the noun or the enumeration.
    pub(super) fn limits(&self) -> String {
        words::limits(&self.variety, &self.facets, self.implied.as_deref().map(|base| &base.facets))
    }
}
