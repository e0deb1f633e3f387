//! A small validator of JSON Schema (draft 2020-12): the keywords that schemas of payloads have. Any other keyword is an
//! error, so that none is taken for granted.

use regex_automata::meta::Regex;
use serde_json::{Map, Value};

/// Validates a value by a whole schema.
pub(crate) fn check(schema: &Value, value: &Value) -> Result<(), String> {
    Checker { root: schema }.check(schema, value, "")
}

struct Checker<'s> {
    root: &'s Value,
}

impl Checker<'_> {
    fn check(&self, schema: &Value, value: &Value, at: &str) -> Result<(), String> {
        if *schema == Value::Bool(false) {
            return Err(format!("nothing may stand at '{at}'"));
        }
        let schema = schema.as_object().ok_or_else(|| format!("{schema} at {at} is no schema"))?;
        schema.iter().try_for_each(|(keyword, rule)| self.keyword(keyword, rule, schema, value, at))
    }

    fn keyword(
        &self,
        keyword: &str,
        rule: &Value,
        schema: &Map<String, Value>,
        value: &Value,
        at: &str,
    ) -> Result<(), String> {
        let number = |value: &Value| value.as_f64();
        let size = rule.as_u64().unwrap_or(u64::MAX) as usize;
        let ordered = |fits: fn(f64, f64) -> bool| number(value).zip(number(rule)).is_none_or(|(a, b)| fits(a, b));
        let options = || rule.as_array().unwrap().iter();
        let passes = |schema: &Value| self.check(schema, value, at).is_ok();
        let fits = match keyword {
            "$schema" | "$defs" | "title" | "description" | "examples" => true,
            "$ref" => {
                let pointer = rule.as_str().unwrap().strip_prefix('#').unwrap();
                let target = self.root.pointer(pointer).ok_or_else(|| format!("{rule} leads nowhere"))?;
                return self.check(target, value, at);
            }
            "type" => match rule {
                Value::Array(names) => names.iter().any(|name| is_of_type(value, name.as_str().unwrap())),
                name => is_of_type(value, name.as_str().unwrap()),
            },
            "const" => value == rule,
            "enum" => options().any(|option| option == value),
            "not" => !passes(rule),
            "oneOf" => options().filter(|option| passes(option)).count() == 1,
            "anyOf" => options().any(passes),
            "allOf" => options().all(passes),
            "minimum" => ordered(|a, b| a >= b),
            "maximum" => ordered(|a, b| a <= b),
            "exclusiveMinimum" => ordered(|a, b| a > b),
            "exclusiveMaximum" => ordered(|a, b| a < b),
            "minLength" => value.as_str().is_none_or(|text| text.chars().count() >= size),
            "maxLength" => value.as_str().is_none_or(|text| text.chars().count() <= size),
            "pattern" => value.as_str().is_none_or(|text| regex(rule).is_match(text)),
            "minItems" => value.as_array().is_none_or(|items| items.len() >= size),
            "maxItems" => value.as_array().is_none_or(|items| items.len() <= size),
            "minProperties" => value.as_object().is_none_or(|fields| fields.len() >= size),
            "maxProperties" => value.as_object().is_none_or(|fields| fields.len() <= size),
            "required" => {
                value.as_object().is_none_or(|fields| options().all(|name| fields.contains_key(name.as_str().unwrap())))
            }
            "items" => {
                let mut items = value.as_array().into_iter().flatten().enumerate();
                return items.try_for_each(|(index, item)| self.check(rule, item, &format!("{at}/{index}")));
            }
            "dependentRequired" => value.as_object().is_none_or(|fields| {
                let mut rules = rule.as_object().unwrap().iter().filter(|(name, _)| fields.contains_key(*name));
                rules.all(|(_, names)| {
                    names.as_array().unwrap().iter().all(|name| fields.contains_key(name.as_str().unwrap()))
                })
            }),
            "propertyNames" => {
                let mut names = value.as_object().into_iter().flatten().map(|(name, _)| Value::from(name.as_str()));
                return names.try_for_each(|name| self.check(rule, &name, at));
            }
            "properties" | "additionalProperties" => {
                let fields = value.as_object().into_iter().flatten();
                return fields
                    .into_iter()
                    .try_for_each(|(name, field)| self.property(keyword, rule, schema, (name, field), at));
            }
            other => return Err(format!("the keyword {other} is not known")),
        };
        if fits { Ok(()) } else { Err(format!("{value} at '{at}' breaks {keyword}: {rule}")) }
    }

    fn property(
        &self,
        keyword: &str,
        rule: &Value,
        schema: &Map<String, Value>,
        (name, field): (&str, &Value),
        at: &str,
    ) -> Result<(), String> {
        let at = &format!("{at}/{name}");
        match keyword {
            "properties" => rule.get(name).map_or(Ok(()), |rule| self.check(rule, field, at)),
            _ if schema.get("properties").is_some_and(|properties| properties.get(name).is_some()) => Ok(()),
            _ => self.check(rule, field, at),
        }
    }
}

fn is_of_type(value: &Value, name: &str) -> bool {
    match name {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "integer" => !value.is_string() && value.as_f64().is_some_and(|number| number.fract() == 0.0),
        "number" => value.is_number(),
        "string" => value.is_string(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        other => panic!("there is no type {other}"),
    }
}

/// The regex crate reads the part of ECMA-262 that patterns keep to.
fn regex(pattern: &Value) -> Regex {
    Regex::new(pattern.as_str().unwrap()).unwrap_or_else(|error| panic!("{pattern}: {error}"))
}
