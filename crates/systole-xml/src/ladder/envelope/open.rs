//! The reader of envelopes: from a canonical message to its claims and its payload.

use std::borrow::Cow;

use bytestring::ByteString;

use super::claim::Claim;
use super::{Claims, EnvelopeError};
use crate::ladder::chars::{excerpt, trimmed};
use crate::ladder::known::known_name;
use crate::ladder::strict::{Canonical, Loan, Surroundings, canonicalize_in};
use crate::ladder::tape::{Attribute, Cursor, Tag, Tape, Uri};
use crate::vocab::{Position, QName, XmlLimits, ns};

/// The claims and the payload of an envelope.
pub(super) fn open(message: Canonical) -> Result<(Claims, Canonical), EnvelopeError> {
    take_apart(message, |reader| {
        let root = reader.root()?;
        Ok((reader.meta(&root, Required::All)?, reader.payload(&root)?))
    })
}

/// The claims and the payload of an envelope at an entrance, where parts that the pump stamps may be missing.
pub(super) fn open_entered(message: Canonical) -> Result<(Claims, Canonical), EnvelopeError> {
    take_apart(message, |reader| {
        let root = reader.root()?;
        Ok((reader.meta(&root, Required::Payload)?, reader.payload(&root)?))
    })
}

/// The claims and the payload of a `<message>` that a listener wrote, where all but the payload may be missing.
pub(super) fn open_emitted(message: Canonical) -> Result<(Claims, Canonical), EnvelopeError> {
    take_apart(message, |reader| {
        let root = reader.root_tag()?;
        Ok((reader.hints(&root)?, reader.payload(&root)?))
    })
}

fn take_apart(
    message: Canonical,
    read: impl FnOnce(&mut Reader) -> Result<(Claims, Part), EnvelopeError>,
) -> Result<(Claims, Canonical), EnvelopeError> {
    let tape = Loan::of(&message);
    let (claims, payload) = read(&mut Reader::new(&message, &tape))?;
    Ok((claims, payload.cut_out(message, tape)))
}

struct Reader<'a> {
    message: &'a Canonical,
    cursor: Cursor<'a>,
    /// The namespace of the message, that of envelopes.
    own: Uri,
}

/// An element whose start tag was read.
#[derive(Clone, Copy)]
struct Start<'a> {
    tag: Tag<'a>,
    /// Place of the element in document order, from 0.
    index: usize,
}

/// Parts of an envelope that must be there.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Required {
    /// `<meta>` with `<from>`, and the payload.
    All,
    /// The payload.
    Payload,
}

/// The namespaces that have a meaning in an envelope.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Known {
    None,
    Envelope,
    SystoleMeta,
    Xsi,
    Other,
}

impl Known {
    fn of(namespace: &str) -> Self {
        match namespace {
            "" => Self::None,
            ns::ENVELOPE => Self::Envelope,
            ns::SYSTOLE_META => Self::SystoleMeta,
            ns::XSI => Self::Xsi,
            _ => Self::Other,
        }
    }
}

impl<'a> Reader<'a> {
    fn new(message: &'a Canonical, tape: &'a Tape) -> Self {
        Self { message, cursor: tape.cursor(message.as_str()), own: Uri::NONE }
    }

    fn root(&mut self) -> Result<Start<'a>, EnvelopeError> {
        let root = self.root_tag()?;
        self.check_attributes(&root, "message")?;
        Ok(root)
    }

    fn root_tag(&mut self) -> Result<Start<'a>, EnvelopeError> {
        let found = self.message.root();
        let Some(root) = self.enter() else { return Err(self.not_message()) };
        if found.namespace() != ns::ENVELOPE || found.local() != "message" {
            return Err(self.not_message());
        }
        self.own = root.tag.uri();
        Ok(root)
    }

    fn meta(&mut self, root: &Start<'a>, required: Required) -> Result<Claims, EnvelopeError> {
        let before = self.cursor;
        let Some(meta) = self.child(root, "message")? else {
            let at = self.position(root);
            return Err(match required {
                Required::All => EnvelopeError::NoMeta { at },
                Required::Payload => EnvelopeError::NoPayload { at },
            });
        };
        let is_ours = self.known(meta.tag.uri()) == Known::Envelope;
        if !is_ours || meta.tag.local() != "meta" {
            // from, to, thread or message instead of <meta> is a misplaced element, and no payload without <meta>.
            let is_misplaced = is_ours && matches!(meta.tag.local(), "from" | "to" | "thread" | "message");
            if required == Required::Payload && !is_misplaced {
                self.cursor = before;
                return Ok(Claims::default());
            }
            return Err(EnvelopeError::NoMeta { at: self.position(&meta) });
        }
        self.check_attributes(&meta, "meta")?;
        let mut claims = self.claims(&meta, required)?;
        for claim in [&mut claims.id, &mut claims.in_reply_to, &mut claims.traceparent, &mut claims.correlation] {
            claim.take_if(|text| text.is_empty());
        }
        Ok(claims)
    }

    /// The children of `<meta>`, in the order of the schema.
    fn claims(&mut self, meta: &Start<'a>, required: Required) -> Result<Claims, EnvelopeError> {
        let mut claims = Claims::default();
        // Number of elements among from, to and thread that can't come any more.
        let mut passed = 0;
        while let Some(child) = self.child(meta, "meta")? {
            let known = self.known(child.tag.uri());
            if passed == 0 && (known, child.tag.local()) != (Known::Envelope, "from") {
                match required {
                    Required::All => return Err(EnvelopeError::NoFrom { at: self.position(&child) }),
                    Required::Payload => passed = 1,
                }
            }
            match (known, child.tag.local()) {
                (Known::Envelope, "from") if passed == 0 => {
                    claims.from = self.schema_text(&child, "from")?.unwrap_or_default();
                    passed = 1;
                }
                (Known::Envelope, "to") if passed == 1 => {
                    claims.to = self.schema_text(&child, "to")?;
                    passed = 2;
                }
                (Known::Envelope, "thread") if passed < 3 => {
                    claims.thread = self.schema_text(&child, "thread")?;
                    passed = 3;
                }
                (Known::Envelope | Known::None, _) => {
                    return Err(EnvelopeError::Unexpected { at: self.position(&child), found: self.name(&child) });
                }
                _ => {
                    self.metadata(&child, known, &mut claims)?;
                    passed = 3;
                }
            }
        }
        if passed == 0 && required == Required::All {
            return Err(EnvelopeError::NoFrom { at: self.position(meta) });
        }
        Ok(claims)
    }

    /// Reads `from`, `to`, `thread` and `in-reply-to` in any order from a `<meta>` that may be missing.
    fn hints(&mut self, root: &Start<'a>) -> Result<Claims, EnvelopeError> {
        let mut claims = Claims::default();
        let before = self.cursor;
        let Some(meta) = self.child(root, "message")? else { return Ok(claims) };
        if self.known(meta.tag.uri()) != Known::Envelope || meta.tag.local() != "meta" {
            self.cursor = before;
            return Ok(claims);
        }
        while let Some(child) = self.child(&meta, "meta")? {
            let text = match (self.known(child.tag.uri()), child.tag.local()) {
                (Known::Envelope, "from" | "to" | "thread") | (Known::SystoleMeta, "in-reply-to") => {
                    self.claim(&child, "meta")?
                }
                _ => {
                    claims.foreign += 1;
                    self.cursor.leave();
                    continue;
                }
            };
            match child.tag.local() {
                "from" => claims.from = text,
                "to" => claims.to = Some(text).filter(|text| !text.is_empty()),
                "in-reply-to" => claims.in_reply_to = Some(text).filter(|text| !text.is_empty()),
                _ => claims.thread = Some(text).filter(|text| !text.is_empty()),
            }
        }
        Ok(claims)
    }

    /// Reads an element of another namespace in `<meta>`: Systole's metadata, or one to skip.
    fn metadata(&mut self, child: &Start<'a>, known: Known, claims: &mut Claims) -> Result<(), EnvelopeError> {
        let (element, claim) = match (known, child.tag.local()) {
            (Known::SystoleMeta, "id") => ("id", &mut claims.id),
            (Known::SystoleMeta, "in-reply-to") => ("in-reply-to", &mut claims.in_reply_to),
            (Known::SystoleMeta, "traceparent") => ("traceparent", &mut claims.traceparent),
            (Known::SystoleMeta, "correlation") => ("correlation", &mut claims.correlation),
            (Known::SystoleMeta, "deadline") => return self.deadline(child, claims),
            (Known::SystoleMeta, "budget") => return self.budget(child, claims),
            _ => {
                self.cursor.leave();
                claims.foreign += 1;
                return Ok(());
            }
        };
        if claim.is_some() {
            return Err(EnvelopeError::Repeated { at: self.position(child), element });
        }
        // An empty element counts as a claim until all of <meta> is read, so that a second one is refused.
        *claim = Some(self.claim(child, element)?);
        Ok(())
    }

    fn deadline(&mut self, child: &Start<'a>, claims: &mut Claims) -> Result<(), EnvelopeError> {
        if claims.deadline.is_some() {
            return Err(EnvelopeError::Repeated { at: self.position(child), element: "deadline" });
        }
        let deadline = self.text(child, "deadline")?.parse();
        let deadline = deadline.map_err(|source| EnvelopeError::Deadline { at: self.position(child), source })?;
        claims.deadline = Some(deadline);
        Ok(())
    }

    fn budget(&mut self, child: &Start<'a>, claims: &mut Claims) -> Result<(), EnvelopeError> {
        if claims.budget.is_some() {
            return Err(EnvelopeError::Repeated { at: self.position(child), element: "budget" });
        }
        let budget = self.text(child, "budget")?.parse();
        let budget = budget.map_err(|source| EnvelopeError::Budget { at: self.position(child), source })?;
        claims.budget = Some(Box::new(budget));
        Ok(())
    }

    /// The payload, which must be the last thing in the message.
    fn payload(&mut self, root: &Start<'a>) -> Result<Part, EnvelopeError> {
        let Some(payload) = self.child(root, "message")? else {
            return Err(EnvelopeError::NoPayload { at: self.position(root) });
        };
        self.cursor.leave();
        if let Some(second) = self.child(root, "message")? {
            return Err(EnvelopeError::SecondPayload { at: self.position(&second), found: self.name(&second) });
        }
        Ok(self.part(&payload))
    }

    /// The payload as a document of its own.
    ///
    /// In exclusive canonical form it differs from its bytes in the message only by namespace
    /// declarations that the message has rendered already.
    fn part(&self, payload: &Start<'a>) -> Part {
        let range = self.cursor.range(payload.index);
        let text = &self.cursor.document()[range];
        let shared = || self.message.text().slice_ref(text);
        let (root, element) = (self.qname(payload), payload.index);
        match self.standalone(text, payload) {
            Standalone::AsIs => Part::Ready { text: shared(), root, element },
            Standalone::Edited(text) => Part::Ready { text, root, element },
            Standalone::Unknown => {
                let declared: Vec<_> = self.declared_around().collect();
                let surroundings = Surroundings { declared: &declared, rendered: &[] };
                let origin = self.message.origin_of(element);
                let canonical = canonicalize_in(&shared(), surroundings, origin, &XmlLimits::UNLIMITED);
                Part::Rewritten(canonical.expect("an element of a canonical document is well-formed"))
            }
        }
    }

    fn qname(&self, start: &Start<'a>) -> QName {
        known_name(self.cursor.uri_name(start.tag.uri()), start.tag.local())
    }

    /// The next child of an element that holds elements only.
    fn child(&mut self, parent: &Start, element: &'static str) -> Result<Option<Start<'a>>, EnvelopeError> {
        while let Some(text) = self.cursor.text() {
            if !is_blank(text.written) {
                return Err(EnvelopeError::Text { at: self.position(parent), element });
            }
        }
        let child = self.enter();
        if child.is_none() {
            self.cursor.leave();
        }
        Ok(child)
    }

    fn enter(&mut self) -> Option<Start<'a>> {
        let index = self.cursor.elements();
        self.cursor.enter().map(|tag| Start { tag, index })
    }

    /// The text of an element of the schema, which takes no attributes; `None` if it is empty.
    fn schema_text(&mut self, start: &Start<'a>, element: &'static str) -> Result<Option<Claim>, EnvelopeError> {
        self.check_attributes(start, element)?;
        let text = self.claim(start, element)?;
        Ok(Some(text).filter(|text| !text.is_empty()))
    }

    fn claim(&mut self, start: &Start<'a>, element: &'static str) -> Result<Claim, EnvelopeError> {
        Ok(match self.text(start, element)? {
            Cow::Borrowed(text) => Claim::of(self.message, text),
            Cow::Owned(text) => text.into(),
        })
    }

    /// The text of the element whose start tag was read last, without white space around it.
    fn text(&mut self, start: &Start<'a>, element: &'static str) -> Result<Cow<'a, str>, EnvelopeError> {
        match self.cursor.content() {
            Some(Cow::Borrowed(text)) => Ok(Cow::Borrowed(trimmed(text))),
            Some(Cow::Owned(text)) => Ok(Cow::Owned(trimmed(&text).to_owned())),
            None => Err(EnvelopeError::NotText { at: self.position(start), element }),
        }
    }

    /// Refuses attributes other than namespace declarations and the hints that every schema allows
    /// everywhere (XML Schema 1.0 part 1, section 2.6.3), which Systole never follows.
    fn check_attributes(&self, start: &Start<'a>, element: &'static str) -> Result<(), EnvelopeError> {
        let allowed = |attribute: &Attribute| {
            let is_hint = || matches!(attribute.local(), "schemaLocation" | "noNamespaceSchemaLocation");
            attribute.uri().is_none_or(|uri| is_hint() && self.known(uri) == Known::Xsi)
        };
        match start.tag.attributes().find(|attribute| !allowed(attribute)) {
            Some(found) => {
                let attribute = excerpt(found.name());
                Err(EnvelopeError::Attribute { at: self.position(start), element, attribute })
            }
            None => Ok(()),
        }
    }

    /// The declarations around the payload: prefixes and the namespaces bound to them, as written.
    fn declared_around(&self) -> impl Iterator<Item = (&'a str, &'a str)> + use<'a> {
        let declared = |attribute: Attribute<'a>| Some((attribute.declared()?.0, attribute.written()));
        self.cursor.tag(0).into_iter().flat_map(|message| message.attributes()).map_while(declared)
    }

    fn known(&self, uri: Uri) -> Known {
        if uri == self.own { Known::Envelope } else { Known::of(self.cursor.uri_name(uri)) }
    }

    fn name(&self, start: &Start<'a>) -> Box<str> {
        let (namespace, local) = (self.cursor.uri_name(start.tag.uri()), start.tag.local());
        let name = if namespace.is_empty() { local.to_owned() } else { format!("{{{namespace}}}{local}") };
        excerpt(&name)
    }

    /// The edits that make a payload a document of its own.
    fn standalone(&self, text: &str, root: &Start) -> Standalone {
        if self.message.keeps_prefixes() {
            return Standalone::Unknown;
        }
        let mut default = None;
        for (prefix, namespace) in self.declared_around() {
            if prefix.is_empty() {
                default = Some(namespace);
            } else if memchr::memmem::find(text.as_bytes(), format!("{prefix}:").as_bytes()).is_some() {
                return Standalone::Unknown;
            }
        }
        let Some(default) = default else { return Standalone::AsIs };
        if root.tag.is_prefixed() {
            let all = self.cursor.all_prefixed(root.index);
            return if all { Standalone::AsIs } else { Standalone::Unknown };
        }
        let (name, rest) = text.split_at(1 + root.tag.local().len());
        match rest.strip_prefix(" xmlns=\"\"") {
            Some(rest) => Standalone::Edited([name, rest].concat().into()),
            None if rest.starts_with(" xmlns=\"") => Standalone::AsIs,
            None => Standalone::Edited([name, " xmlns=\"", default, "\"", rest].concat().into()),
        }
    }

    fn not_message(&self) -> EnvelopeError {
        let found = excerpt(&self.message.root().to_string());
        EnvelopeError::NotMessage { at: self.at(0), found }
    }

    fn position(&self, start: &Start) -> Position {
        self.at(start.index)
    }

    fn at(&self, index: usize) -> Position {
        self.message.position(index).unwrap_or(Position { line: 1, column: 1 })
    }
}

/// The payload, as found in its message.
enum Part {
    /// The canonical form of the payload, and the index of its element in the message.
    Ready { text: ByteString, root: QName, element: usize },
    /// A document that the canonicalizer has made.
    Rewritten(Canonical),
}

impl Part {
    /// The payload as a document of its own, with the repairs of the message and, if possible, its part of the tape.
    fn cut_out(self, message: Canonical, mut tape: Loan) -> Canonical {
        match self {
            Self::Rewritten(canonical) => canonical.sharing_repairs(&message),
            Self::Ready { text, root, element } => {
                let mut part = Loan::blank();
                tape.subtree(element, &text, &mut part);
                if message.is_alone() {
                    tape.belong_to(None);
                    part.take_uris(&mut tape);
                } else {
                    part.copy_uris(&tape);
                }
                let canonical = message.into_part(text, root, element);
                part.belong_to(Some(canonical.identity()));
                canonical
            }
        }
    }
}

enum Standalone {
    /// The bytes in the message are canonical.
    AsIs,
    /// The bytes are canonical but for the default namespace of the root.
    Edited(ByteString),
    /// Only the canonicalizer can tell.
    Unknown,
}

/// Returns whether a text consists of white space, which may be written by references.
fn is_blank(written: &str) -> bool {
    written.split("&#xD;").all(|part| part.bytes().all(|byte| matches!(byte, b' ' | b'\t' | b'\n')))
}
