//! Payloads to JSON: one walk over the canonical bytes.

use std::borrow::Cow;

use super::document::is_number;
use super::mapping::{Body, Child, Children, Form, MOST_WHOLE, Mapping, Object, Value, attribute_key};
use super::values;
use crate::ladder::Canonical;
use crate::ladder::scan::{unescape, unescape_into};
use crate::ladder::tape::{Bindings, Cursor, Tag, Uri};
use crate::schema::engine::is_blank;
use crate::schema::model::{Order, TypeId};
use crate::schema::simple::NoPrefixes;
use crate::vocab::ns;

/// Writes a payload as JSON: an object, in which a text is `$`; with a name, the value of its root element as the property of
/// that name.
pub(crate) fn to_json(mapping: &Mapping, payload: &Canonical, name: Option<&str>, literals: Literals) -> String {
    written(mapping, payload, name, literals).0
}

/// The form of numbers and truth values that XML allows and JSON does not write, such as `+7`, `.5`, or `1` for true.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Literals {
    /// A string, from which the same XML is made again.
    Written,
    /// The same value as JSON writes it.
    Canonical,
}

/// A JSON value that travels as XML, and was written.
pub(super) struct Written {
    /// The number of the element that has it.
    pub(super) element: usize,
    pub(super) name: String,
    pub(super) ty: TypeId,
    /// The place of the value in the JSON.
    pub(super) range: std::ops::Range<usize>,
    /// Set if the element has attributes, which the JSON leaves out.
    pub(super) has_attributes: bool,
}

/// Writes a payload as [`to_json`] does, and notes the JSON values in it.
pub(super) fn written(
    mapping: &Mapping,
    payload: &Canonical,
    name: Option<&str>,
    literals: Literals,
) -> (String, Vec<Written>) {
    payload.read(|cursor| {
        let mut walk = Walk {
            mapping,
            literals,
            is_whole: false,
            xsi: cursor.find_uri(ns::XSI),
            cursor,
            out: String::with_capacity(payload.bytes().len()),
            open: Vec::new(),
            text: String::new(),
            bindings: Bindings::default(),
            values: Vec::new(),
        };
        if let Some(tag) = walk.cursor.enter() {
            let has_xsi = tag.attributes().any(|attribute| attribute.uri().is_some_and(|uri| Some(uri) == walk.xsi));
            let is_value = matches!(mapping.form(mapping.root.ty), Form::Value(_)) && !has_xsi;
            match name {
                Some(name) => {
                    walk.out.push('{');
                    push_string(&mut walk.out, name);
                    walk.out.push(':');
                }
                None if is_value => walk.out.push_str("{\"$\":"),
                None => walk.is_whole = true,
            }
            walk.element(&tag, Some(&mapping.root), "");
            while walk.step() {}
            if name.is_some() || is_value {
                walk.out.push('}');
            }
        }
        (walk.out, walk.values)
    })
}

struct Walk<'w, 'a> {
    mapping: &'w Mapping,
    literals: Literals,
    /// Set while the root is to be an object, even if it is nil.
    is_whole: bool,
    cursor: Cursor<'a>,
    /// The namespace of `xsi:type`, if a name may be in it.
    xsi: Option<Uri>,
    out: String,
    open: Vec<Open<'w>>,
    /// A text with its references resolved.
    text: String,
    /// The prefixes in scope, for values that are qualified names.
    bindings: Bindings,
    values: Vec<Written>,
}

/// An element whose children are being written.
struct Open<'w> {
    children: Option<&'w Children>,
    shape: Shape,
    /// The number of the element.
    element: u32,
    /// The end of what was opened for it.
    closing: &'static str,
}

#[derive(Clone, Copy)]
enum Shape {
    /// Properties of the object: the place of the last child, and whether its array is open.
    Members { last: Option<usize>, in_array: bool },
    /// An array of the content in document order.
    Items {
        is_first: bool,
        /// Set if text may stand beside the elements: white space is text, too.
        has_text: bool,
    },
}

/// Writes the arrays without items among some children.
#[inline]
fn push_empty(out: &mut String, children: &Children, places: std::ops::Range<usize>) {
    for place in children.always.iter().filter(|place| places.contains(place)) {
        if !out.ends_with('{') {
            out.push(',');
        }
        push_key(out, &children.list[*place].key);
        out.push_str("[]");
    }
}

impl<'w, 'a> Walk<'w, 'a> {
    /// Writes the next part of the innermost open element; `false` once none is open.
    fn step(&mut self) -> bool {
        let Some(open) = self.open.last_mut() else { return false };
        let children = open.children;
        match &mut open.shape {
            Shape::Items { is_first, has_text } => {
                if let Some(text) = self.cursor.text() {
                    if !*has_text && is_blank(text.written) {
                        return true;
                    }
                    if !std::mem::replace(is_first, false) {
                        self.out.push(',');
                    }
                    self.text.clear();
                    unescape_into(&mut self.text, text.written);
                    push_string(&mut self.out, &self.text);
                    return true;
                }
                let Some(tag) = self.cursor.enter() else {
                    self.out.push(']');
                    return self.close();
                };
                if !std::mem::replace(is_first, false) {
                    self.out.push(',');
                }
                let uri = self.cursor.uri_name(tag.uri());
                let place =
                    children.and_then(|children| children.by_name(uri, tag.local(), &self.mapping.namespace, 0));
                self.item(&tag, uri, children.zip(place).map(|(children, place)| &children.list[place]));
            }
            Shape::Members { last, in_array } => {
                let (Some(tag), Some(children)) = (self.cursor.enter(), children) else {
                    if *in_array {
                        self.out.push(']');
                    }
                    let behind = last.map_or(0, |last| last + 1);
                    if let Some(children) = children {
                        push_empty(&mut self.out, children, behind..children.list.len());
                    }
                    return self.close();
                };
                let uri = self.cursor.uri_name(tag.uri());
                let found = children.by_name(uri, tag.local(), &self.mapping.namespace, last.unwrap_or(0));
                // The look ahead has found a place for each.
                let place = found.or(children.any).unwrap_or_default();
                let child = &children.list[place];
                if *last == Some(place) {
                    self.out.push(',');
                } else {
                    if std::mem::replace(in_array, child.many) {
                        self.out.push(']');
                    }
                    push_empty(&mut self.out, children, last.map_or(0, |last| last + 1)..place);
                    if !self.out.ends_with('{') {
                        self.out.push(',');
                    }
                    *last = Some(place);
                    push_key(&mut self.out, &child.key);
                    if child.many {
                        self.out.push('[');
                    }
                }
                match found {
                    Some(_) => self.element(&tag, Some(child), ""),
                    None => self.item(&tag, uri, None),
                }
            }
        }
        true
    }

    /// Ends the innermost open element.
    fn close(&mut self) -> bool {
        if let Some(open) = self.open.pop() {
            self.out.push_str(open.closing);
            self.bindings.leave(open.element);
            self.cursor.leave();
        }
        true
    }

    /// Writes an element as an object of one property.
    fn item(&mut self, tag: &Tag<'a>, uri: &str, child: Option<&'w Child>) {
        self.out.push('{');
        match child {
            Some(child) => push_key(&mut self.out, &child.key),
            None => {
                let name = match uri == &*self.mapping.namespace {
                    true => Cow::Borrowed(tag.local()),
                    false => Cow::Owned(format!("{{{uri}}}{}", tag.local())),
                };
                push_string(&mut self.out, &name);
                self.out.push(':');
            }
        }
        self.element(tag, child, "}");
    }

    /// Writes the value of the element whose start tag was just read, or its begin; `behind` follows its end.
    fn element(&mut self, tag: &Tag<'a>, child: Option<&'w Child>, behind: &'static str) {
        let form = child.map_or(&Form::Open, |child| self.mapping.form(child.ty));
        let is_whole = std::mem::take(&mut self.is_whole);
        if !tag.has_attributes() {
            match form {
                Form::Value(value) => {
                    self.value(value);
                    return self.out.push_str(behind);
                }
                Form::Object(object) => {
                    self.out.push('{');
                    return self.content(Some(object), behind);
                }
                Form::Json(ty) => {
                    self.json(tag, *ty, false);
                    return self.out.push_str(behind);
                }
                Form::Open => {}
            }
        }
        self.with_attributes(tag, child, form, is_whole, behind);
    }

    fn with_attributes(
        &mut self,
        tag: &Tag<'a>,
        child: Option<&'w Child>,
        form: &'w Form,
        is_whole: bool,
        behind: &'static str,
    ) {
        let number = self.cursor.elements() as u32 - 1;
        let mut attributes = tag.attributes();
        let declarations: Vec<_> = attributes.clone().filter_map(|attribute| attribute.declared()).collect();
        for &(prefix, uri) in &declarations {
            self.bindings.declare(number, prefix, uri);
        }
        let xsi = |local: &str| {
            let mut all = tag.attributes();
            let xsi = self.xsi?;
            all.find(|attribute| attribute.uri() == Some(xsi) && attribute.local() == local)
                .map(|found| found.written())
        };
        if let Form::Json(ty) = form {
            let has_attributes = attributes.clone().any(|attribute| attribute.uri().is_some());
            self.json(tag, *ty, has_attributes);
            self.bindings.leave(number);
            return self.out.push_str(behind);
        }
        let as_type = xsi("type").map(|written| self.clark(&unescape(written)));
        let (is_nil, nil) = (xsi("nil") == Some("true"), xsi("nil"));
        let expected = child.and_then(|child| child.as_type.as_ref());
        // A type that the schema of JSON doesn't have.
        let form = if as_type.as_ref() == expected { form } else { &Form::Open };
        let plain = attributes.clone().filter(|attribute| attribute.uri().is_some()).count();
        if is_nil && plain == 1 && !matches!(form, Form::Open) && !is_whole {
            self.out.push_str("null");
            self.out.push_str(behind);
            self.bindings.leave(number);
            return self.cursor.leave();
        }
        let declared = if self.mapping.has_open || matches!(form, Form::Open) { declarations } else { Vec::new() };
        // The reader binds the prefix of the element's name by itself.
        let is_own = |prefix: &str, uri: Uri| self.mapping.prefixed && prefix == "p" && uri == tag.uri();
        let declared = declared
            .into_iter()
            .filter(|&(prefix, uri)| !prefix.is_empty() && Some(uri) != self.xsi && !is_own(prefix, uri));
        let declared: Vec<_> = declared.collect();
        if plain == 0 && declared.is_empty() {
            match form {
                Form::Value(value) => {
                    self.value(value);
                    self.bindings.leave(number);
                    return self.out.push_str(behind);
                }
                Form::Open if self.cursor.child().is_none() => {
                    self.value(&Value::Text);
                    self.bindings.leave(number);
                    return self.out.push_str(behind);
                }
                _ => {}
            }
        }
        self.out.push('{');
        for (prefix, uri) in declared {
            self.key("@xmlns:", prefix);
            push_string(&mut self.out, self.cursor.uri_name(uri));
        }
        let object = if let Form::Object(object) = form { Some(object) } else { None };
        for attribute in &mut attributes {
            let Some(uri) = attribute.uri() else { continue };
            let uri = self.cursor.uri_name(uri);
            let local = attribute.local();
            let known = object.and_then(|object| {
                object.attributes.iter().find(|known| known.local == local && *known.namespace == *uri)
            });
            let text = unescape(attribute.written());
            match known {
                Some(known) => {
                    self.comma();
                    push_key(&mut self.out, &known.key);
                    self.simple(&known.value, &text);
                }
                None => {
                    self.key("@", &attribute_key(uri, local));
                    match (uri, local) {
                        (ns::XSI, "type") => push_string(&mut self.out, as_type.as_deref().unwrap_or_default()),
                        (ns::XSI, "nil") => self.simple(&Value::Boolean, &text),
                        _ => push_string(&mut self.out, &text),
                    }
                }
            }
        }
        match form {
            Form::Value(value) if nil.is_none() || !is_nil => {
                self.key("", "$");
                self.value(value);
                self.out.push('}');
                self.out.push_str(behind);
                self.bindings.leave(number);
            }
            Form::Object(object) if !is_nil => self.content(Some(object), behind),
            Form::Value(_) | Form::Object(_) | Form::Json(_) | Form::Open => self.content(None, behind),
        }
    }

    /// Writes the JSON value in the element whose start tag was just read, and moves behind its end tag.
    fn json(&mut self, tag: &Tag<'a>, ty: TypeId, has_attributes: bool) {
        let element = self.cursor.elements() - 1;
        let start = self.out.len();
        // The ends of the open objects and arrays.
        let mut open: Vec<char> = Vec::new();
        let mut is_first = true;
        loop {
            let Some(tag) = self.cursor.enter() else {
                self.cursor.leave();
                is_first = false;
                match open.pop() {
                    Some(end) => self.out.push(end),
                    None => break,
                }
                continue;
            };
            if !std::mem::replace(&mut is_first, false) {
                self.out.push(',');
            }
            if let Some(key) = tag.attributes().find(|attribute| attribute.local() == values::KEY) {
                push_string(&mut self.out, &unescape(key.written()));
                self.out.push(':');
            }
            match tag.local() {
                values::MAP => {
                    self.out.push('{');
                    open.push('}');
                    is_first = true;
                }
                values::ARRAY => {
                    self.out.push('[');
                    open.push(']');
                    is_first = true;
                }
                values::NULL => {
                    self.out.push_str("null");
                    self.cursor.leave();
                }
                values::NUMBER | values::BOOLEAN => {
                    let text = self.cursor.content().unwrap_or_default();
                    self.out.push_str(&text);
                }
                _ => self.value(&Value::Text),
            }
        }
        let (name, range) = (tag.local().to_owned(), start..self.out.len());
        self.values.push(Written { element, name, ty, range, has_attributes });
    }

    /// Writes the content of the element whose attributes are written, or its begin, and the end of the object.
    fn content(&mut self, object: Option<&'w Object>, behind: &'static str) {
        let number = self.cursor.elements() as u32 - 1;
        let (children, body) = match object.map(|object| &object.content) {
            Some(Body::Text(value)) if self.cursor.child().is_none() => {
                // Text beside no elements may be left out.
                if !matches!(value, Value::Text) || self.cursor.plain_text() != Some("") || !self.is_mixed(object) {
                    self.key("", "$");
                    self.value(value);
                } else {
                    self.cursor.leave();
                }
                self.out.push('}');
                self.out.push_str(behind);
                return self.bindings.leave(number);
            }
            Some(Body::Members { children, order }) => (Some(children), Some(*order)),
            Some(Body::Items { children }) => (Some(children), None),
            Some(Body::Empty | Body::Text(_)) | None => (None, None),
        };
        let closing = if behind.is_empty() { "}" } else { "}}" };
        if let (Some(children), Some(order)) = (children, body)
            && self.have_places(children, order)
        {
            let shape = Shape::Members { last: None, in_array: false };
            return self.open.push(Open { children: Some(children), shape, element: number, closing });
        }
        let has_text = object.is_none_or(|object| object.is_mixed);
        if self.cursor.child().is_none() && self.is_empty(has_text) {
            self.out.push_str(closing);
            self.bindings.leave(number);
            return self.cursor.leave();
        }
        self.key("", "$");
        if self.cursor.child().is_none() && object.is_none() {
            self.value(&Value::Text);
            self.out.push_str(closing);
            return self.bindings.leave(number);
        }
        self.out.push('[');
        self.open.push(Open { children, shape: Shape::Items { is_first: true, has_text }, element: number, closing });
    }

    /// Returns whether the innermost open element, which holds no elements, is empty; white space alone is empty where no text may
    /// stand.
    fn is_empty(&self, has_text: bool) -> bool {
        let mut look = self.cursor;
        while let Some(text) = look.text() {
            if has_text || !is_blank(text.written) {
                return false;
            }
        }
        true
    }

    fn is_mixed(&self, object: Option<&Object>) -> bool {
        object.is_some_and(|object| object.is_mixed)
    }

    /// Returns whether the properties of an object tell the children of the innermost open element and their order, with no text
    /// between them.
    fn have_places(&self, children: &Children, order: Order) -> bool {
        let mut look = self.cursor;
        let (mut last, mut seen_last) = (0, false);
        let mut seen = if order == Order::All { vec![false; children.list.len()] } else { Vec::new() };
        loop {
            if let Some(text) = look.text() {
                if !is_blank(text.written) {
                    return false;
                }
                continue;
            }
            let Some(tag) = look.enter() else { return true };
            let uri = self.cursor.uri_name(tag.uri());
            let found = children.by_name(uri, tag.local(), &self.mapping.namespace, last);
            let Some(place) = found.or(children.any) else { return false };
            if order == Order::All {
                if std::mem::replace(&mut seen[place], true) {
                    return false;
                }
            } else if place < last || place == last && seen_last && !children.list[place].many {
                return false;
            }
            (last, seen_last) = (place, true);
            look.leave();
        }
    }

    /// Writes the text of the element whose start tag was just read, and moves behind its end tag.
    #[inline]
    fn value(&mut self, value: &Value) {
        let mut text = std::mem::take(&mut self.text);
        match self.cursor.content_in(&mut text) {
            Some(Some(plain)) => self.simple(value, plain),
            Some(None) => self.simple(value, &text),
            // An element in text: the payload is not valid.
            None => {
                text.clear();
                while self.cursor.is_inside() {
                    match self.cursor.text() {
                        Some(piece) => unescape_into(&mut text, piece.written),
                        None if self.cursor.enter().is_some() => self.cursor.leave(),
                        None => break,
                    }
                }
                self.cursor.leave();
                push_string(&mut self.out, &text);
            }
        }
        self.text = text;
    }

    fn simple(&mut self, value: &Value, text: &str) {
        match value {
            Value::Name => {
                let name = self.clark(text);
                push_string(&mut self.out, &name);
            }
            value => push_value(&mut self.out, value, text, self.literals),
        }
    }

    /// A qualified name in Clark notation. A name whose prefix is unbound stays as it is.
    fn clark(&self, name: &str) -> String {
        let name = name.trim_matches([' ', '\t', '\n', '\r']);
        let (prefix, local) = name.split_once(':').unwrap_or(("", name));
        match self.bindings.uri(prefix) {
            Uri::NONE if !prefix.is_empty() => name.to_owned(),
            Uri::NONE => local.to_owned(),
            uri => format!("{{{}}}{local}", self.cursor.uri_name(uri)),
        }
    }

    fn key(&mut self, mark: &str, name: &str) {
        self.comma();
        push_string(&mut self.out, &format!("{mark}{name}"));
        self.out.push(':');
    }

    fn comma(&mut self) {
        if !self.out.ends_with('{') {
            self.out.push(',');
        }
    }
}

/// Appends the JSON of a literal: as a number, `true` or `false` if JSON can carry it as it is written, or in its canonical form
/// if that is wanted, else as a string.
pub(super) fn push_value(out: &mut String, value: &Value, text: &str, literals: Literals) {
    match value {
        Value::Boolean if matches!(text, "true" | "false") => out.push_str(text),
        Value::Integer { .. } if is_whole(text) => out.push_str(text),
        Value::Decimal if is_exact(text) => out.push_str(text),
        // Also one past the numbers of 64 bits, such as 1e400: a reader of JSON decides what it makes of it.
        Value::Float if is_number(text) => out.push_str(text),
        Value::List(item) if text.is_empty() || text.split(' ').all(is_word) => {
            out.push('[');
            for (index, word) in text.split(' ').filter(|word| !word.is_empty()).enumerate() {
                if index > 0 {
                    out.push(',');
                }
                push_value(out, item, word, literals);
            }
            out.push(']');
        }
        Value::Union(members) => match members.iter().find(|(member, _)| member.check(text, &NoPrefixes).is_ok()) {
            Some((_, value)) => push_value(out, value, text, literals),
            None => push_string(out, text),
        },
        Value::Boolean | Value::Integer { .. } | Value::Decimal | Value::Float if literals == Literals::Canonical => {
            push_value(out, value, &canonical(value, text.trim_ascii()), Literals::Written);
        }
        _ => push_string(out, text),
    }
}

/// A literal of a number or a truth value as JSON writes it, where it can.
pub(super) fn canonical<'t>(value: &Value, text: &'t str) -> Cow<'t, str> {
    match (value, text) {
        (Value::Boolean, "1") => Cow::Borrowed("true"),
        (Value::Boolean, "0") => Cow::Borrowed("false"),
        (Value::Integer { .. } | Value::Decimal | Value::Float, text) => {
            let (mantissa, exponent) = text.split_at(text.find(['e', 'E']).unwrap_or(text.len()));
            let (sign, digits) = match mantissa.strip_prefix('-') {
                Some(digits) => ("-", digits),
                None => ("", mantissa.strip_prefix('+').unwrap_or(mantissa)),
            };
            if !digits.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.') {
                return Cow::Borrowed(text);
            }
            let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
            let whole = Some(whole.trim_start_matches('0')).filter(|whole| !whole.is_empty()).unwrap_or("0");
            let fraction = fraction.trim_end_matches('0');
            let point = if fraction.is_empty() { "" } else { "." };
            Cow::Owned(format!("{sign}{whole}{point}{fraction}{exponent}"))
        }
        (_, text) => Cow::Borrowed(text),
    }
}

pub(super) fn is_word(word: &str) -> bool {
    !word.is_empty() && !word.contains(['\t', '\n', '\r'])
}

/// Returns whether a literal is a whole number that each reader of JSON keeps (RFC 8259, section 6).
pub(super) fn is_whole(text: &str) -> bool {
    let digits = text.strip_prefix('-').unwrap_or(text);
    match digits.len() {
        0 => false,
        1..=16
            if digits.bytes().all(|byte| byte.is_ascii_digit()) && (digits.len() == 1 || !digits.starts_with('0')) =>
        {
            digits.len() < 16 || digits.parse::<i64>().is_ok_and(|number| number <= MOST_WHOLE)
        }
        _ => false,
    }
}

/// Returns whether a literal is a number that each reader of JSON keeps: a binary one of 64 bits holds 15 decimal digits.
fn is_exact(text: &str) -> bool {
    let digits = text.bytes().filter(u8::is_ascii_digit).skip_while(|digit| *digit == b'0').count();
    digits <= 15 && text.len() <= 40 && !text.contains(['e', 'E']) && is_number(text)
}

/// Appends a key of the schema, which may be any text where the contract is a JSON Schema.
fn push_key(out: &mut String, key: &str) {
    push_string(out, key);
    out.push(':');
}

/// Appends a string with its quotes.
#[inline]
pub(super) fn push_string(out: &mut String, text: &str) {
    out.push('"');
    let mut run = 0;
    for (at, byte) in text.bytes().enumerate() {
        if byte >= 0x20 && byte != b'"' && byte != b'\\' {
            continue;
        }
        out.push_str(&text[run..at]);
        run = at + 1;
        match byte {
            b'"' => out.push_str("\\\""),
            b'\\' => out.push_str("\\\\"),
            b'\n' => out.push_str("\\n"),
            b'\r' => out.push_str("\\r"),
            b'\t' => out.push_str("\\t"),
            other => {
                out.push_str("\\u00");
                out.extend([other >> 4, other & 15].map(|half| char::from_digit(half.into(), 16).unwrap_or('0')));
            }
        }
    }
    out.push_str(&text[run..]);
    out.push('"');
}
