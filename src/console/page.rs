//! A page as data: sections of rows that have keys. One value makes the document of a request, and the changes of a page that is
//! open.

use std::collections::HashMap;
use std::hash::{BuildHasher, Hasher};

use maud::{DOCTYPE, Markup, PreEscaped, html};
use serde::Serialize;

use super::{SCRIPT_PATH, STYLE_PATH};

/// A page.
pub(super) struct Page {
    pub(super) title: String,
    /// The path of its entry in the navigation.
    pub(super) entry: &'static str,
    /// Contents above the sections, which never change while the page is open.
    pub(super) head: Markup,
    pub(super) sections: Vec<Section>,
    /// Contents below them.
    pub(super) foot: Markup,
}

/// A part of a page, whose rows change while it is open.
pub(super) struct Section {
    pub(super) id: &'static str,
    pub(super) shape: Shape,
    pub(super) rows: Vec<Row>,
    /// The text in place of rows, if there are none.
    pub(super) empty: &'static str,
}

/// The element that holds the rows of a section.
pub(super) enum Shape {
    /// A table with these headings.
    Table(&'static [&'static str]),
    Block,
}

/// A part of a section, whose key is the id of its element.
pub(super) struct Row {
    pub(super) key: String,
    pub(super) html: String,
}

impl Row {
    /// Makes a row; `html` has one element.
    pub(super) fn new(key: impl Into<String>, html: Markup) -> Self {
        Self { key: key.into(), html: html.into_string() }
    }
}

/// The person in front of the page, for its head.
pub(super) struct Viewer {
    pub(super) organism: String,
    pub(super) name: String,
    pub(super) is_admin: bool,
    /// Questions that wait for them.
    pub(super) questions: usize,
}

/// The pages in the navigation: path, name, and whether people see it.
const ENTRIES: [(&str, &str, bool); 9] = [
    ("/", "Conversations", false),
    ("/questions", "Questions", true),
    ("/dead-letters", "Dead letters", false),
    ("/mailboxes", "Mailboxes", false),
    ("/tasks", "Tasks", false),
    ("/schedules", "Schedules", false),
    ("/listeners", "Organism", false),
    ("/models", "Models", false),
    ("/acts", "Acts", false),
];

/// Writes a document around a body.
pub(super) fn document(title: &str, viewer: Option<&Viewer>, entry: &str, body: &Markup) -> String {
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { (title) " – Systole" }
                link rel="stylesheet" href=(STYLE_PATH);
                link rel="icon" href="/console.svg" type="image/svg+xml";
                @if viewer.is_some() { script type="module" src=(SCRIPT_PATH) {} }
            }
            body {
                a.skip href="#main" { "To the content" }
                @if let Some(viewer) = viewer {
                    header {
                        a.brand href="/" { img src="/console.svg" alt="" width="20" height="20"; (viewer.organism) }
                        nav aria-label="Pages" {
                            @for (path, name, for_people) in ENTRIES {
                                @if for_people || viewer.is_admin {
                                    a href=(path) aria-current=[(path == entry).then_some("page")] {
                                        (name)
                                        @if path == "/questions" {
                                            span.count #questions-count hidden[viewer.questions == 0] { (viewer.questions) }
                                        }
                                    }
                                }
                            }
                        }
                        form.who method="post" action="/logout" {
                            span #live role="status" { "not live" }
                            span { (viewer.name) }
                            button { "Sign out" }
                        }
                    }
                }
                main #main { (body) }
            }
        }
    }
    .into_string()
}

impl Page {
    /// The body of its document.
    pub(super) fn body(&self) -> Markup {
        html! {
            h1 { (self.title) }
            (self.head)
            @for section in &self.sections { (section.markup()) }
            (self.foot)
        }
    }
}

impl Section {
    fn markup(&self) -> Markup {
        let rows = html! { @for row in &self.rows { (PreEscaped(&row.html)) } };
        html! {
            section {
                @match self.shape {
                    Shape::Table(headings) => div.table tabindex="0" role="region" aria-label=(self.id) {
                        table {
                            thead { tr { @for heading in headings { th scope="col" { (heading) } } } }
                            tbody id=(self.id) data-rows { (rows) }
                        }
                    },
                    Shape::Block => div id=(self.id) data-rows { (rows) },
                }
                p.empty hidden[!self.rows.is_empty()] { (self.empty) }
            }
        }
    }
}

/// The changes of a page since it was shown last.
#[derive(Serialize)]
pub(super) struct Changes {
    questions: usize,
    /// By section.
    sections: HashMap<&'static str, SectionChange>,
}

#[derive(Serialize)]
struct SectionChange {
    /// The keys of all rows.
    order: Vec<String>,
    /// New and changed rows.
    rows: HashMap<String, String>,
}

/// The rows that a browser has, by section: key and hash.
#[derive(Default)]
pub(super) struct Shown {
    sections: HashMap<&'static str, Vec<(String, u64)>>,
    questions: usize,
    hasher: foldhash::fast::RandomState,
}

impl Shown {
    /// Takes a newer state; returns the changes, if there are any.
    pub(super) fn update(&mut self, page: Page, questions: usize) -> Option<Changes> {
        let mut sections = HashMap::new();
        for section in page.sections {
            let hash = |row: &Row| {
                let mut hasher = self.hasher.build_hasher();
                hasher.write(row.html.as_bytes());
                (row.key.clone(), hasher.finish())
            };
            let now: Vec<_> = section.rows.iter().map(hash).collect();
            let before = self.sections.insert(section.id, now.clone()).unwrap_or_default();
            if before == now {
                continue;
            }
            let known: HashMap<_, _> = before.into_iter().collect();
            let changed = section.rows.into_iter().zip(&now).filter(|(_, (key, hash))| known.get(key) != Some(hash));
            let rows = changed.map(|(row, _)| (row.key, row.html)).collect();
            let order = now.into_iter().map(|(key, _)| key).collect();
            sections.insert(section.id, SectionChange { order, rows });
        }
        let before = std::mem::replace(&mut self.questions, questions);
        (!sections.is_empty() || before != questions).then_some(Changes { questions, sections })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(rows: &[(&str, &str)]) -> Page {
        let rows = rows.iter().map(|(key, text)| Row::new(*key, html! { p id=(key) { (text) } })).collect();
        let section = Section { id: "s", shape: Shape::Block, rows, empty: "" };
        Page { title: "t".into(), entry: "/", head: html! {}, sections: vec![section], foot: html! {} }
    }

    #[test]
    fn only_changed_rows_are_sent_with_the_order_of_all() {
        let mut shown = Shown::default();
        let told = |shown: &mut Shown, rows: &[(&str, &str)]| {
            shown.update(page(rows), 0).map(|changes| serde_json::to_value(&changes).unwrap()["sections"]["s"].clone())
        };
        let first = told(&mut shown, &[("a", "1"), ("b", "2")]).unwrap();
        assert_eq!(first["rows"].as_object().unwrap().len(), 2);
        assert_eq!(told(&mut shown, &[("a", "1"), ("b", "2")]), None);
        let next = told(&mut shown, &[("c", "<3>"), ("a", "1"), ("b", "5")]).unwrap();
        assert_eq!(next["order"], serde_json::json!(["c", "a", "b"]));
        assert_eq!(next["rows"]["c"], "<p id=\"c\">&lt;3&gt;</p>");
        assert_eq!(next["rows"].as_object().unwrap().len(), 2);
        assert_eq!(told(&mut shown, &[]).unwrap()["order"], serde_json::json!([]));
        assert!(shown.update(page(&[]), 1).is_some(), "a number of questions changes the page, too");
    }
}
