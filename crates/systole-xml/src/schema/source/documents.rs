//! Sets of schema documents: their links, positions and errors.

mod locations;
mod reach;
#[cfg(feature = "libxml")]
mod sources;

use std::collections::HashSet;
use std::sync::Arc;

use bytes::Bytes;

use super::prolog::plain;
use super::tree::{NodeId, Tree};
use super::versions::{flaw, included};
use super::{BrokenSchemaRule, Digest, Place, SourceDocument, XsdDocument, digest, document_error};
use crate::ladder::Canonical;
use crate::ladder::strict::{attribute_offset, canonicalize};
use crate::schema::contract::{ContractError, DocumentProblem};
use crate::schema::shorten::quoted;
use crate::vocab::{Position, XmlLimits, ns};
use locations::Locations;
use reach::Reach;

/// Documents of namespaces that schemas import from the web: the attributes of `xml`, XLink 1.1, and JSON values as XML.
const WELL_KNOWN: [(&str, &str, &str); 3] = [
    (ns::XML, "xml.xsd", include_str!("xml.xsd")),
    (ns::XLINK, "xlink.xsd", include_str!("xlink.xsd")),
    (ns::JSON, "json.xsd", include_str!("json.xsd")),
];

/// The greatest number of bytes of all documents together, entities expanded.
const BYTES: usize = 8 << 20;

/// The greatest number of bytes that entities of all documents make.
const ENTITIES: usize = 1 << 20;

/// The greatest number of tags of a document, those in annotations counted.
const TAGS: usize = 400_000;

/// The greatest number of elements of a schema, annotations left out: to read and compile one takes up to 3 µs. The largest
/// published schemas have some 45,000.
const ELEMENTS: usize = 1 << 16;

/// The limits of a document. The depth bounds the functions that recurse over the tree; values are copied to where they
/// are used.
const LIMITS: XmlLimits = XmlLimits {
    message_bytes: BYTES,
    depth: 256,
    attributes: 256,
    namespaces: 256,
    name_bytes: 1 << 10,
    value_bytes: 1 << 16,
    comment_bytes: BYTES,
    instruction_bytes: BYTES,
    relative_namespaces: true,
};

/// The places where a document is no schema, each with the rule.
type Flaws = fn(&Canonical, &Tree) -> Vec<(Position, String)>;

/// A set of schema documents with their links resolved.
pub(in crate::schema) struct Documents {
    documents: Vec<Document>,
    /// Number of documents that were given; those behind them are built in.
    pub(in crate::schema) given: usize,
    /// Locations of documents that are referred to but not given, each with the referring document and the place in it.
    missing: Vec<(String, usize, NodeId)>,
    /// The documents that each document leads to.
    reach: Reach,
    /// The documents in the order of their digests.
    by_digest: Vec<usize>,
}

pub(in crate::schema) struct Document {
    pub(in crate::schema) name: String,
    /// The text as given.
    pub(in crate::schema) given: Arc<str>,
    /// The tree of the text without XML declaration and DOCTYPE, with the same lines.
    pub(in crate::schema) tree: Tree,
    /// The target namespace; empty for none.
    pub(in crate::schema) target: String,
    pub(in crate::schema) links: Vec<Link>,
    /// The digest of the text.
    digest: Digest,
}

/// A location without a document, and the link that names it.
type Absent = (String, NodeId);

/// An include, a redefinition or an import of documents of the set.
pub(in crate::schema) struct Link {
    pub(in crate::schema) node: NodeId,
    pub(in crate::schema) import: bool,
    /// Returns whether the document has imported this namespace before.
    pub(in crate::schema) is_repeated: bool,
    /// All documents of the namespace of an import, else one.
    pub(in crate::schema) to: Arc<[usize]>,
}

impl Documents {
    /// The documents of a set.
    ///
    /// # Errors
    /// The first of the errors of [`read`](Self::read).
    pub(in crate::schema) fn new(given: &[XsdDocument], flaws: Flaws) -> Result<Self, ContractError> {
        Self::read(given, flaws).map_err(|mut errors| errors.remove(0))
    }

    /// Reads the documents of a set, whose structure `flaws` judges.
    ///
    /// # Errors
    /// At least one error: those of each document by itself, or the first one in the links.
    pub(in crate::schema) fn read(given: &[XsdDocument], flaws: Flaws) -> Result<Self, Vec<ContractError>> {
        let (set, wrong) = Self::with_well_known(Document::read(given, flaws)?);
        wrong.map_or(Ok(set), |error| Err(vec![error]))
    }

    /// Reads the documents of a set for another judge: neither their structure nor their links are judged.
    ///
    /// # Errors
    /// Those of documents that are no schema documents, or exceed the limits.
    #[cfg(feature = "libxml")]
    pub(in crate::schema) fn unjudged(given: &[XsdDocument]) -> Result<Self, Vec<ContractError>> {
        Ok(Self::with_well_known(Document::read(given, |_, _| Vec::new())?).0)
    }

    /// A document that is part of the program. Its tests judge the structure and the links.
    pub(in crate::schema) fn built_in(name: &str, text: &str) -> Self {
        Self::with_well_known(vec![Document::built_in(name, text)]).0
    }

    /// The set of a document that was written from a model and refers to none but built-in ones. Its writer is trusted with
    /// the structure.
    ///
    /// # Errors
    /// [`ContractError::Document`] if the document is larger than one may be.
    pub(in crate::schema) fn written(text: String) -> Result<Self, ContractError> {
        let given = [XsdDocument { name: String::new(), text }];
        let documents = Document::read(&given, |_, _| Vec::new()).map_err(|mut errors| errors.remove(0))?;
        let (set, wrong) = Self::linked(Self::with_imported(documents), 1);
        wrong.map_or(Ok(set), Err)
    }

    /// Adds the built-in documents that others import, and links all.
    fn with_well_known(documents: Vec<Document>) -> (Self, Option<ContractError>) {
        let given = documents.len();
        let mut documents = Self::with_imported(documents);
        if documents.iter().all(|document| document.target != ns::XML) {
            documents.push(Document::well_known(ns::XML));
        }
        Self::linked(documents, given)
    }

    /// Adds the built-in documents that others import.
    fn with_imported(mut documents: Vec<Document>) -> Vec<Document> {
        for (namespace, ..) in WELL_KNOWN {
            let is_given = documents.iter().any(|document| document.target == namespace);
            if !is_given && documents.iter().any(|document| document.imports(namespace)) {
                documents.push(Document::well_known(namespace));
            }
        }
        documents
    }

    /// Resolves the links of documents, of which the first were given. The first error in them comes beside the set, which
    /// has the wrong links, too.
    fn linked(documents: Vec<Document>, given: usize) -> (Self, Option<ContractError>) {
        let locations = Locations::of(&documents);
        let mut by_digest: Vec<usize> = (0..documents.len()).collect();
        by_digest.sort_unstable_by_key(|index| documents[*index].digest);
        let mut set = Self { documents, given, missing: Vec::new(), reach: Reach::default(), by_digest };
        let mut wrong = None;
        for index in 0..set.documents.len() {
            let (links, missing) = set.links(index, &locations, &mut wrong);
            set.documents[index].links = links;
            set.missing.extend(missing.into_iter().map(|(location, node)| (location, index, node)));
        }
        set.reach = Reach::of(&set.documents);
        (set, wrong)
    }

    /// Returns for each document whether an `xs:redefine` leads to it, directly or by documents that are included or
    /// redefined there.
    pub(in crate::schema) fn redefined_by(&self, index: usize, redefine: NodeId) -> Vec<bool> {
        let links = &self.documents[index].links;
        let mut pending: Vec<usize> =
            links.iter().filter(|link| link.node == redefine).flat_map(|link| link.to.iter().copied()).collect();
        let mut reached = vec![false; self.documents.len()];
        while let Some(next) = pending.pop() {
            if !std::mem::replace(&mut reached[next], true) {
                let links = self.documents[next].links.iter().filter(|link| !link.import);
                pending.extend(links.flat_map(|link| link.to.iter()));
            }
        }
        reached
    }

    /// Returns whether a document was given, rather than is built in.
    pub(in crate::schema) fn is_given(&self, index: usize) -> bool {
        index < self.given
    }

    pub(in crate::schema) fn all(&self) -> impl Iterator<Item = &Document> {
        self.documents.iter()
    }

    pub(in crate::schema) fn get(&self, index: usize) -> &Document {
        &self.documents[index]
    }

    /// The documents that no other one includes. Their global elements, and those of the documents that they include,
    /// are payloads.
    pub(in crate::schema) fn roots(&self) -> Vec<usize> {
        let mut included = vec![false; self.documents.len()];
        for (from, document) in self.documents.iter().enumerate() {
            for link in document.links.iter().filter(|link| !link.import) {
                link.to.iter().filter(|to| **to != from).for_each(|to| included[*to] = true);
            }
        }
        let mut roots: Vec<usize> = (0..self.given).filter(|index| !included[*index]).collect();
        let mut reached = self.reached(&roots);
        // Documents that include each other in a circle have no first one.
        for index in 0..self.given {
            if !reached[index] {
                roots.push(index);
                self.reach.from(index).for_each(|to| reached[to] = true);
            }
        }
        roots
    }

    /// The digest of a document and all that it refers to.
    pub(in crate::schema) fn digest(&self, root: usize) -> Digest {
        // Sorted once for all roots: a set may have as many roots as documents, each of which leads to all of them.
        let reached = self.by_digest.iter().filter(|index| self.reach.has(root, **index));
        digest(reached.map(|index| self.documents[*index].digest))
    }

    /// A document and all given ones that it refers to, as they were given.
    pub(in crate::schema) fn given_from(&self, root: usize) -> Arc<[SourceDocument]> {
        let others = (0..self.given).filter(|index| *index != root && self.reach.has(root, *index));
        let document = |index: usize| {
            let Document { name, given, .. } = &self.documents[index];
            SourceDocument::new(name, given.clone())
        };
        std::iter::once(root).chain(others).map(document).collect()
    }

    /// A document that is referred to and not among the given ones, with the place of the reference, in words.
    pub(in crate::schema) fn unresolved(&self) -> Option<String> {
        let (location, by, node) = self.missing.first()?;
        let document = &self.documents[*by];
        let Position { line, column } = document.position(*node);
        Some(format!(
            "'{}', which {}:{line}:{column} refers to, is not among the schemas",
            quoted(location),
            document.name
        ))
    }

    /// The error of a broken rule of XML Schema.
    pub(in crate::schema) fn wrong(&self, wrong: BrokenSchemaRule) -> ContractError {
        let mut rule = wrong.rule;
        // A missing component may be declared in a missing document.
        if let Some((location, by, _)) = self.missing.first().filter(|_| rule.starts_with("there is no ")) {
            rule.push_str(&format!(
                "; '{}', which {} refers to, is not among them: list that file too",
                quoted(location),
                self.documents[*by].name
            ));
        }
        let problem = DocumentProblem::Rule(rule);
        // A rule without a place is one of the whole schema: its first document stands for it.
        let (document, node) = wrong.at.map_or((0, 0), |place| (place.document, place.node));
        let document = &self.documents[document];
        let at = match wrong.attribute {
            Some(attribute) => document.position_of_attribute(node, attribute),
            None => document.position(node),
        };
        document_error(&document.name, at, problem)
    }

    /// The error of a problem at a place.
    pub(in crate::schema) fn problem(&self, place: &Place, problem: DocumentProblem) -> ContractError {
        let document = &self.documents[place.document];
        document_error(&document.name, document.position(place.node), problem)
    }

    /// The error of a set that declares no payload.
    pub(in crate::schema) fn no_element(&self) -> ContractError {
        if let Some((location, document, node)) = self.missing.first() {
            let document = &self.documents[*document];
            let problem = DocumentProblem::Missing(location.clone());
            return document_error(&document.name, document.position(*node), problem);
        }
        match self.documents[..self.given].first() {
            Some(first) => document_error(&first.name, first.position(0), DocumentProblem::NoElement),
            None => ContractError::NoDocument,
        }
    }

    /// Returns for each document whether the roots or their links lead to it.
    fn reached(&self, roots: &[usize]) -> Vec<bool> {
        let mut reached = vec![false; self.documents.len()];
        roots.iter().flat_map(|root| self.reach.from(*root)).for_each(|to| reached[to] = true);
        reached
    }

    /// The links of a document, and the locations without a document. `wrong` keeps the first error in them.
    fn links(
        &self,
        index: usize,
        locations: &Locations,
        wrong: &mut Option<ContractError>,
    ) -> (Vec<Link>, Vec<Absent>) {
        let document = &self.documents[index];
        let tree = &document.tree;
        let (mut links, mut missing) = (Vec::new(), Vec::new());
        let mut imported = HashSet::new();
        for node in tree.parts(0) {
            let import = match tree.node(node).local {
                "import" => true,
                "include" | "redefine" => false,
                _ => continue,
            };
            let location = tree.get(node, "schemaLocation");
            let namespace = tree.get(node, "namespace").unwrap_or_default();
            let by_location = || location.and_then(|location| locations.find(&document.name, location));
            let to = match locations.of_namespace(namespace) {
                Some(all) if import => all.clone(),
                _ => by_location().into_iter().collect(),
            };
            if let Err(error) = self.check_link(index, node, import, &to) {
                wrong.get_or_insert(error);
            }
            let is_repeated = import && !imported.insert(namespace);
            if !to.is_empty() {
                links.push(Link { node, import, is_repeated, to });
                continue;
            }
            // A document may be missing if nothing refers to its components (sections 4.2.1 to 4.2.3).
            if !import && self.redefines(index, node) {
                let problem = DocumentProblem::Missing(location.unwrap_or_default().to_owned());
                wrong.get_or_insert(document_error(&document.name, document.position(node), problem));
            }
            missing.extend(location.map(|location| (location.to_owned(), node)));
        }
        (links, missing)
    }

    /// Checks the namespaces of documents that are included, redefined or imported (src-include, src-import).
    fn check_link(&self, index: usize, node: NodeId, import: bool, to: &[usize]) -> Result<(), ContractError> {
        let document = &self.documents[index];
        let namespace = document.tree.get(node, "namespace");
        let wrong =
            |rule: String| Err(document_error(&document.name, document.position(node), DocumentProblem::Rule(rule)));
        if import && namespace.unwrap_or_default() == document.target {
            return wrong(match namespace {
                Some(_) => "a document imports other namespaces than its own: write xs:include".to_owned(),
                None => "a document without targetNamespace can't import what has none: write xs:include".to_owned(),
            });
        }
        // The documents of an import have one namespace.
        for other in to.iter().take(1).map(|to| &self.documents[*to]) {
            let fits = if import {
                other.target == namespace.unwrap_or_default()
            } else {
                other.target == document.target || other.target.is_empty()
            };
            if !fits {
                return wrong(format!(
                    "'{}' has the targetNamespace \"{}\", not the one that is expected here: \"{}\"",
                    other.name,
                    quoted(&other.target),
                    quoted(if import { namespace.unwrap_or_default() } else { &document.target })
                ));
            }
        }
        Ok(())
    }

    /// Returns whether a link is a redefinition with content, which needs its document.
    fn redefines(&self, index: usize, node: NodeId) -> bool {
        let tree = &self.documents[index].tree;
        tree.node(node).local == "redefine" && tree.parts(node).any(|part| tree.node(part).local != "annotation")
    }
}

impl Document {
    /// Reads documents, each by itself. `flaws` judges their structure.
    ///
    /// # Errors
    /// At least one error.
    fn read(given: &[XsdDocument], flaws: Flaws) -> Result<Vec<Self>, Vec<ContractError>> {
        /// The greatest number of documents: each payload has a digest of all that its document leads to.
        const DOCUMENTS: usize = 512;
        /// The number of errors after which no further document is read.
        const ERRORS: usize = 10;
        let mut documents: Vec<Self> = Vec::new();
        let mut errors = Vec::new();
        if let Some(document) = given.get(DOCUMENTS) {
            let rule = format!("the schema has more than {DOCUMENTS} documents: list those that payloads need");
            return Err(vec![document_error(&document.name, Position::START, DocumentProblem::Rule(rule))]);
        }
        let mut left = ELEMENTS;
        let (mut room, mut expansions) = (BYTES, ENTITIES);
        for XsdDocument { name, text } in given {
            if errors.len() >= ERRORS {
                break;
            }
            let known = documents.iter().find(|known| known.name == *name);
            if known.is_some_and(|known| *known.given == **text) {
                continue;
            }
            match Self::new(name, text, room.min(text.len() + expansions)) {
                Ok((document, _)) if known.is_some() => {
                    errors.push(document_error(name, document.position(0), DocumentProblem::Twice));
                }
                Ok((document, canonical)) => {
                    let bytes = document.tree.document().len();
                    room -= bytes.min(room);
                    expansions -= bytes.saturating_sub(text.len()).min(expansions);
                    let own = document.tree.outside_annotations().count();
                    if own > left
                        && let Some(node) = document.tree.outside_annotations().nth(left)
                    {
                        let rule = format!(
                            "the schema has more than {ELEMENTS} elements in all of its documents, annotations \
                             left out: remove declarations that no payload needs"
                        );
                        let at = document.position(node);
                        return Err(vec![document_error(name, at, DocumentProblem::Rule(rule))]);
                    }
                    left -= own;
                    let flaws = flaws(&canonical, &document.tree).into_iter();
                    errors.extend(flaws.map(|(at, rule)| document_error(name, at, DocumentProblem::Rule(rule))));
                    documents.push(document);
                }
                Err(error) => errors.push(error),
            }
        }
        if errors.is_empty() { Ok(documents) } else { Err(errors) }
    }

    /// Parses a document of at most `room` bytes into its tree and its canonical form, without judging its structure.
    fn new(name: &str, given: &str, room: usize) -> Result<(Self, Canonical), ContractError> {
        let error = |at, problem| document_error(name, at, problem);
        let too_large = |at| {
            let rule = format!(
                "the documents of the schema have more than {BYTES} bytes or {TAGS} tags together, or entities that make more than {ENTITIES} bytes: remove documentation, or declarations that no payload needs"
            );
            error(at, DocumentProblem::Rule(rule))
        };
        if given.len() > room {
            return Err(too_large(Position::of(given.as_bytes(), room)));
        }
        let text = plain(given)
            .map_err(|(at, problem)| error(Position::of(given.as_bytes(), at), DocumentProblem::Malformed(problem)))?;
        let shared: Arc<str> = given.into();
        // Entities may have made it longer. Each element is kept, those in annotations, too.
        let first_too_many = memchr::memchr_iter(b'<', text.as_bytes()).nth(TAGS);
        if let Some(at) = first_too_many.or_else(|| (text.len() > room).then_some(room)) {
            return Err(too_large(Position::of(text.as_bytes(), at)));
        }
        // Most documents have neither declaration nor DOCTYPE, so that both texts are one.
        let text = if *text == *given { shared.clone() } else { text.into() };
        let read = |text: Arc<str>| {
            let canonical = canonicalize(&Bytes::from_owner(Shared(text.clone())), &LIMITS)
                .map_err(|strict| error(strict.position(), DocumentProblem::Malformed(strict.kind().to_string())))?;
            let tree = Tree::parse(text).ok_or_else(|| error(Position::START, DocumentProblem::no_element()))?;
            Ok::<_, ContractError>((canonical, tree))
        };
        let (mut canonical, mut tree) = read(text)?;
        if let Some((node, attribute, rule)) = flaw(&tree) {
            let text = tree.document().as_bytes();
            let tag = tree.node(node).tag.start;
            let at = attribute_offset(text, tag, attribute).unwrap_or(tag);
            return Err(error(Position::of(text, at), DocumentProblem::Rule(rule)));
        }
        if let Some(included) = included(&tree) {
            (canonical, tree) = read(included.into())?;
        }
        let root = tree.node(0);
        if root.namespace != ns::XSD || root.local != "schema" {
            let text = tree.document().as_bytes();
            let declaration =
                if root.prefix.is_empty() { "xmlns".to_owned() } else { format!("xmlns:{}", root.prefix) };
            let declaration = attribute_offset(text, root.tag.start, &declaration);
            let at = declaration.filter(|_| root.local == "schema").unwrap_or(root.tag.start);
            return Err(error(
                Position::of(text, at),
                DocumentProblem::no_schema(root.namespace, (root.prefix, root.local)),
            ));
        }
        Ok((Self::of_tree(name, shared, tree)?, canonical))
    }

    /// A document that is part of the program, which passed the strict pass in its tests.
    fn built_in(name: &str, text: &str) -> Self {
        let tree = tree(text).expect("built-in documents are well-formed");
        Self::of_tree(name, text.into(), tree).expect("built-in documents have short names")
    }

    /// The built-in document of a namespace.
    fn well_known(namespace: &str) -> Self {
        let known = WELL_KNOWN.into_iter().find(|(known, ..)| *known == namespace);
        let (_, name, text) = known.expect("the document is built in");
        Self::built_in(name, text)
    }

    /// The document of a tree whose root is a schema.
    fn of_tree(name: &str, given: Arc<str>, tree: Tree) -> Result<Self, ContractError> {
        let target = tree.get(0, "targetNamespace").unwrap_or_default().to_owned();
        let digest = blake3::hash(tree.document().as_bytes()).into();
        let document = Self { name: name.to_owned(), given, tree, target, links: Vec::new(), digest };
        match document.long_name(LIMITS.name_bytes) {
            None => Ok(document),
            Some((node, attribute)) => {
                let rule = format!("the {attribute} has more than {} bytes: choose a shorter one", LIMITS.name_bytes);
                let at = document.position_of_attribute(node, attribute);
                Err(document_error(name, at, DocumentProblem::Rule(rule)))
            }
        }
    }

    /// The first name of a payload, or target namespace, of more than `most` bytes: each payload repeats its own in its
    /// prompt, its example and more.
    fn long_name(&self, most: usize) -> Option<(NodeId, &'static str)> {
        let payloads = self.tree.parts(0).filter(|part| self.tree.node(*part).local == "element");
        let names = payloads.map(|part| (part, "name"));
        let mut all = std::iter::once((0, "targetNamespace")).chain(names);
        all.find(|(node, name)| self.tree.get(*node, name).is_some_and(|name| name.len() > most))
    }

    fn imports(&self, namespace: &str) -> bool {
        let mut parts = self.tree.parts(0);
        parts.any(|part| self.tree.node(part).local == "import" && self.tree.get(part, "namespace") == Some(namespace))
    }

    pub(in crate::schema) fn position(&self, node: NodeId) -> Position {
        Position::of(self.tree.document().as_bytes(), self.tree.node(node).tag.start)
    }

    /// The place of an attribute; that of its element if the element doesn't have the attribute.
    pub(in crate::schema) fn position_of_attribute(&self, node: NodeId, attribute: &str) -> Position {
        let text = self.tree.document().as_bytes();
        let tag = self.tree.node(node).tag.start;
        Position::of(text, attribute_offset(text, tag, attribute).unwrap_or(tag))
    }
}

/// A shared text as an owner of bytes.
struct Shared(Arc<str>);

impl AsRef<[u8]> for Shared {
    fn as_ref(&self) -> &[u8] {
        self.0.as_bytes()
    }
}

/// The tree of a document that was parsed before, from its text as given.
pub(super) fn tree(given: &str) -> Option<Tree> {
    let tree = Tree::parse(plain(given).ok()?)?;
    match included(&tree) {
        Some(included) => Tree::parse(included),
        None => Some(tree),
    }
}

/// A text escaped for the value of an attribute.
pub(in crate::schema) fn attribute(text: &str) -> String {
    let mut out = String::new();
    crate::ladder::escape::escape_lossy(&mut out, text, crate::ladder::escape::EscapeContext::Attribute);
    out
}

/// The canonical form of the text of a schema.
pub(in crate::schema) fn canonical(text: String) -> Option<Canonical> {
    canonicalize(&Bytes::from(text), &XmlLimits::UNLIMITED).ok()
}
