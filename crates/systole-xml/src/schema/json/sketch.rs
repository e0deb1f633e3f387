//! Schemas in the making, whose description is not complete.

use serde_json::Value;

use super::Object;

/// The keywords of a schema, and the parts of its description.
#[derive(Debug, Default)]
pub(super) struct Sketch {
    pub(super) keywords: Object,
    /// The documentation of the type; that of its place replaces it.
    pub(super) doc: String,
    /// The rules that no keyword tells.
    pub(super) words: Vec<String>,
}

impl Sketch {
    /// A schema of one keyword.
    pub(super) fn with(keyword: &str, value: impl Into<Value>) -> Self {
        let mut sketch = Self::default();
        sketch.keywords.insert(keyword.to_owned(), value.into());
        sketch
    }

    /// A schema that allows anything, with the rule that holds instead.
    pub(super) fn open(words: &str) -> Self {
        Self { words: vec![words.to_owned()], ..Self::default() }
    }

    /// An object of no other properties than those that are added.
    pub(super) fn closed(mut keywords: Object) -> Self {
        keywords.insert("additionalProperties".to_owned(), false.into());
        Self { keywords, ..Self::default() }
    }

    pub(super) fn documented(mut self, doc: &str) -> Self {
        if !doc.trim().is_empty() {
            doc.clone_into(&mut self.doc);
        }
        self
    }

    /// The schema with its description.
    pub(super) fn finish(self) -> Object {
        let doc = Some(self.doc.trim().to_owned()).filter(|doc| !doc.is_empty());
        let description: Vec<String> = doc.into_iter().chain(self.words).collect();
        let mut out = Object::new();
        if !description.is_empty() {
            out.insert("description".to_owned(), description.join("\n").into());
        }
        out.extend(self.keywords);
        out
    }
}

/// Adds the author's examples of a simple value: those of objects are of serde's form.
pub(super) fn hint(schema: &mut Object, examples: &[Value]) {
    let simple = |example: &&Value| !matches!(example, Value::Null | Value::Array(_) | Value::Object(_));
    let examples: Vec<Value> = examples.iter().filter(simple).cloned().collect();
    if !examples.is_empty() {
        schema.insert("examples".to_owned(), examples.into());
    }
}
