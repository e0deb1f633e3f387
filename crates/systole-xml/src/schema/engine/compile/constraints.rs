//! Identity constraints, with the subset of XPath that they may use (XSD 1.0 part 1, section 3.11).

use foldhash::{HashMap, HashMapExt};

use super::{BrokenSchemaRule, Compiler, shown, wrong};
use crate::schema::engine::grammar::{Constraint, ConstraintKind, ElementId, Name, NameTest, Steps};
use crate::schema::engine::namespace::Namespace;
use crate::schema::shorten::quoted;
use crate::schema::source::Place;
use crate::schema::source::read::{Kind, Name as Reference};
use crate::vocab::{is_name_char, is_ncname};

/// The greatest number of steps of a path: the state of a match is one bit of a 64-bit word per step.
const MOST_STEPS: usize = 60;

/// The greatest number of names and signs in the paths of a schema.
pub(super) const MOST_TOKENS: usize = 100_000;

/// An identity constraint before its reference is resolved.
pub(super) struct DraftConstraint {
    name: Reference,
    place: Place,
    kind: ConstraintKind,
    refer: Option<Reference>,
    selector: Vec<Steps>,
    fields: Vec<Vec<Steps>>,
}

impl Compiler<'_, '_> {
    /// Reads the identity constraints of an element declaration.
    pub(super) fn identity_constraints(&mut self, place: &Place, element: ElementId) -> Result<(), BrokenSchemaRule> {
        let tree = self.tree(place);
        let start = u32::try_from(self.constraints.len()).unwrap_or(u32::MAX);
        for node in tree.parts(place.node) {
            let kind = match tree.node(node).local {
                "unique" => ConstraintKind::Unique,
                "key" => ConstraintKind::Key,
                "keyref" => ConstraintKind::Keyref(0),
                _ => continue,
            };
            let part = Place { node, ..place.clone() };
            let constraint = self.identity_constraint(&part, kind).map_err(|wrong| wrong.at(&part))?;
            self.constraints.push(constraint);
        }
        let end = u32::try_from(self.constraints.len()).unwrap_or(u32::MAX);
        self.elements[element.index()].constraints = start..end;
        Ok(())
    }

    fn identity_constraint(
        &mut self,
        place: &Place,
        kind: ConstraintKind,
    ) -> Result<DraftConstraint, BrokenSchemaRule> {
        let tree = self.tree(place);
        let name = (place.target.clone(), tree.get(place.node, "name").unwrap_or_default().to_owned());
        let refer = match (kind, tree.get(place.node, "refer")) {
            (ConstraintKind::Keyref(_), Some(refer)) => Some(self.reference(Kind::Element, place, refer)?),
            (ConstraintKind::Keyref(_), None) => {
                return wrong("an xs:keyref has no 'refer': write the name of an xs:key or xs:unique");
            }
            _ => None,
        };
        let (mut selector, mut fields) = (None, Vec::new());
        for node in tree.parts(place.node) {
            let part = Place { node, ..place.clone() };
            let path = tree.get(node, "xpath").unwrap_or_default();
            match tree.node(node).local {
                "selector" => selector = Some(self.paths(&part, path, false).map_err(|wrong| wrong.at(&part))?),
                "field" => fields.push(self.paths(&part, path, true).map_err(|wrong| wrong.at(&part))?),
                _ => {}
            }
        }
        let (Some(selector), false) = (selector, fields.is_empty()) else {
            return wrong("an identity constraint has one xs:selector and at least one xs:field");
        };
        Ok(DraftConstraint { name, place: place.clone(), kind, refer, selector, fields })
    }

    /// The alternatives of a selector or field, which `|` separates (section 3.11.6).
    fn paths(&mut self, place: &Place, xpath: &str, is_field: bool) -> Result<Vec<Steps>, BrokenSchemaRule> {
        let tokens = tokens(xpath);
        let Some(tokens) = tokens else {
            let xpath = quoted(xpath);
            return wrong(format!(
                "'{xpath}' is not a path for an identity constraint: write names, '*', '/', './/' and '|'"
            ));
        };
        let Some(left) = self.path_tokens.checked_sub(tokens.len()) else {
            return wrong(format!(
                "the paths of all identity constraints have more than {MOST_TOKENS} names and signs: write fewer alternatives"
            ));
        };
        self.path_tokens = left;
        tokens.split(|token| *token == "|").map(|path| self.path(place, xpath, path, is_field)).collect()
    }

    fn path(&mut self, place: &Place, xpath: &str, tokens: &[&str], is_field: bool) -> Result<Steps, BrokenSchemaRule> {
        let malformed = || {
            let xpath = quoted(xpath);
            wrong(format!(
                "the path '{xpath}' is more than an identity constraint may have: steps are names, '*', 'p:*' or '.', \
                 './/' is allowed only at the start, and '@' only at the end of a field"
            ))
        };
        let mut steps = Steps { anywhere: false, children: Vec::new(), attribute: None };
        let mut rest = tokens;
        if let [".", "//", behind @ ..] = rest {
            steps.anywhere = true;
            rest = behind;
        }
        for step in rest.split(|token| *token == "/") {
            if steps.attribute.is_some() {
                return malformed();
            }
            match step {
                ["."] => {}
                ["@", name] | ["attribute", "::", name] if is_field => {
                    steps.attribute = Some(self.name_test(place, name)?);
                }
                [name] | ["child", "::", name] => {
                    let test = self.name_test(place, name)?;
                    steps.children.push(test);
                }
                _ => return malformed(),
            }
        }
        if steps.children.len() > MOST_STEPS {
            return wrong(format!("the path '{}' has more than {MOST_STEPS} steps", quoted(xpath)));
        }
        Ok(steps)
    }

    /// Parses a name test. A name without a prefix is in no namespace.
    fn name_test(&mut self, place: &Place, name: &str) -> Result<NameTest, BrokenSchemaRule> {
        if name == "*" {
            return Ok(NameTest::Any);
        }
        let (prefix, local) = name.split_once(':').map_or((None, name), |(prefix, local)| (Some(prefix), local));
        let namespace = match prefix {
            None => Namespace::NONE,
            Some("xml") => Namespace::XML,
            Some(prefix) => match self.tree(place).resolve(place.node, prefix) {
                "" => {
                    let (name, prefix) = (quoted(name), quoted(prefix));
                    return wrong(format!("the prefix of '{name}' is not bound: declare xmlns:{prefix}"));
                }
                uri => self.namespaces.intern(uri),
            },
        };
        if local == "*" && prefix.is_some() {
            return Ok(NameTest::Namespace(namespace));
        }
        if !is_ncname(local) || prefix.is_some_and(|prefix| !is_ncname(prefix)) {
            return wrong(format!("'{}' is not the name of an element or attribute", quoted(name)));
        }
        Ok(NameTest::Name(Name { namespace, local: local.into() }))
    }

    /// The identity constraints with their references resolved. Checks that no name occurs twice (sections 3.11.6 and
    /// 3.15.6).
    pub(super) fn finished_constraints(&mut self) -> Result<Vec<Constraint>, BrokenSchemaRule> {
        let drafts = std::mem::take(&mut self.constraints);
        let mut numbers: HashMap<&Reference, usize> = HashMap::new();
        for (number, draft) in drafts.iter().enumerate() {
            if numbers.insert(&draft.name, number).is_some() {
                let rule = format!(
                    "the identity constraint '{}' is declared twice: give one of them another name",
                    shown(&draft.name)
                );
                return Err(BrokenSchemaRule::new(Some(draft.place.clone()), rule));
            }
        }
        let mut referred = vec![false; drafts.len()];
        let mut kinds: Vec<ConstraintKind> = drafts.iter().map(|draft| draft.kind).collect();
        for (number, draft) in drafts.iter().enumerate() {
            let Some(refer) = &draft.refer else { continue };
            let found = numbers.get(refer).copied();
            let found = found.filter(|found| !matches!(drafts[*found].kind, ConstraintKind::Keyref(_)));
            let rule = match found {
                Some(found) if drafts[found].fields.len() == draft.fields.len() => {
                    referred[found] = true;
                    kinds[number] = ConstraintKind::Keyref(u32::try_from(found).unwrap_or(u32::MAX));
                    continue;
                }
                Some(found) => format!(
                    "the xs:keyref has {} fields, and '{}', which it refers to, has {}",
                    draft.fields.len(),
                    shown(refer),
                    drafts[found].fields.len()
                ),
                None => format!("there is no xs:key or xs:unique '{}' that this xs:keyref refers to", shown(refer)),
            };
            return Err(BrokenSchemaRule::new(Some(draft.place.clone()), rule));
        }
        let finished = drafts.into_iter().zip(kinds).zip(referred).map(|((draft, kind), is_referred)| Constraint {
            label: draft.name.1.into(),
            kind,
            selector: draft.selector,
            fields: draft.fields,
            is_referred,
        });
        Ok(finished.collect())
    }
}

/// The tokens of a path: names with their prefixes, and operators. `None` if a character fits neither.
fn tokens(xpath: &str) -> Option<Vec<&str>> {
    let mut tokens = Vec::new();
    let mut rest = xpath.trim_start_matches(SPACES);
    while !rest.is_empty() {
        let signs = ["::", "//", "/", "|", "@", "*", "."];
        let length = match signs.iter().find(|sign| rest.starts_with(**sign)) {
            Some(sign) => sign.len(),
            None => {
                let name = rest.find(|c| !is_name_char(c) || c == ':').unwrap_or(rest.len());
                match rest[name..].strip_prefix(':').filter(|behind| name > 0 && !behind.starts_with(':')) {
                    Some(behind) if behind.starts_with('*') => name + 2,
                    Some(behind) => name + 1 + behind.find(|c| !is_name_char(c) || c == ':').unwrap_or(behind.len()),
                    None => name,
                }
            }
        };
        if length == 0 {
            return None;
        }
        tokens.push(&rest[..length]);
        rest = rest[length..].trim_start_matches(SPACES);
    }
    (!tokens.is_empty()).then_some(tokens)
}

const SPACES: [char; 4] = [' ', '\t', '\n', '\r'];
