//! The contents of each page.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use axum::http::Uri;
use maud::{Markup, html};
use systole_core::core::{Event, EventKind};
use systole_core::vocab::{MessageId, Name, QName, ThreadId, Time};
use systole_xml::schema::{FieldKind, FormField};

use super::Visitor;
use super::graph::{callees, graph};
use super::page::{Page, Row, Section, Shape};
use super::repaired;
use crate::drafts::DraftNews;
use crate::gateway::pages::AppState;
use crate::gateway::pages::Problem;
use crate::journal::UsedDays;
use crate::operations::{
    ConversationRecord, LetterRecord, MessageKind, MessageRecord, Operations, Outcome, QuestionRecord, ScheduleRecord,
    ThreadRecord, TickRecord, Wanted,
};
use crate::terminal::Escaped;

/// Most drafts of a page, and most bytes of each.
const DRAFTS: usize = 20;
const DRAFT: usize = 8 << 10;
/// Conversations of a page: its document stays below 50 KB.
const CONVERSATIONS: usize = 50;
/// Threads of a page of a tree.
const THREADS: usize = 200;
/// Schedules of a page, and the last ticks of each.
const SCHEDULES: usize = 50;
const TICKS: usize = 5;
/// Messages of a page of one thread.
const MESSAGES: usize = 100;
/// The threads whose messages are told below a tree, and the most of them of each.
const TOLD: (usize, usize) = (40, 20);
/// Bytes of a text that may not be whole: a look cuts it in front of a character that ends behind 64 KiB.
const CUT: usize = (64 << 10) - 4;
/// Characters of a text that are shown at once.
const SHOWN: usize = 600;

/// The subject of a page.
enum View {
    Conversations,
    Conversation(ThreadId),
    Thread(ThreadId),
    Message(MessageId),
    Questions,
    Question(MessageId),
    Letters,
    Mailboxes,
    Tasks,
    Listeners,
    Listener(Name),
    Models,
    Schedules,
    Acts,
}

/// A page and its conditions, as its address has them: an address is a view that can be kept and passed on.
pub(super) struct Place {
    view: View,
    query: String,
}

impl Place {
    pub(super) fn of(uri: &Uri) -> Option<Self> {
        let mut segments = uri.path().trim_start_matches('/').split('/');
        let (first, id) = (segments.next()?, segments.next());
        if segments.next().is_some() {
            return None;
        }
        let view = match (first, id) {
            ("", None) => View::Conversations,
            ("conversations", Some(id)) => View::Conversation(id.parse().ok()?),
            ("threads", Some(id)) => View::Thread(id.parse().ok()?),
            ("messages", Some(id)) => View::Message(id.parse().ok()?),
            ("questions", None) => View::Questions,
            ("questions", Some(id)) => View::Question(id.parse().ok()?),
            ("dead-letters", None) => View::Letters,
            ("mailboxes", None) => View::Mailboxes,
            ("tasks", None) => View::Tasks,
            ("listeners", None) => View::Listeners,
            ("listeners", Some(name)) => View::Listener(name.parse().ok()?),
            ("models", None) => View::Models,
            ("schedules", None) => View::Schedules,
            ("acts", None) => View::Acts,
            _ => return None,
        };
        Some(Self { view, query: uri.query().unwrap_or_default().to_owned() })
    }

    /// The conversation that the page is about.
    pub(super) fn conversation(&self) -> Option<ThreadId> {
        if let View::Conversation(root) = &self.view { Some(*root) } else { None }
    }

    pub(super) fn is_for_people(&self) -> bool {
        matches!(self.view, View::Questions | View::Question(_))
    }

    /// Returns whether an event may change what the page shows.
    pub(super) fn shows(&self, event: &Event) -> bool {
        if matches!(event.kind, EventKind::ModelWrites { .. } | EventKind::Progress { .. }) {
            return false;
        }
        match &self.view {
            View::Conversation(root) => event.root == *root,
            View::Thread(thread) => event.thread == *thread,
            View::Message(_) | View::Acts => matches!(event.kind, EventKind::Operated { .. }),
            _ => true,
        }
    }

    /// The records that a query wants; a field of a form that was left empty is no condition.
    pub(super) fn wanted_of(query: &str) -> Wanted {
        let mut wanted = Wanted::default();
        for (key, value) in url::form_urlencoded::parse(query.as_bytes()) {
            let value = value.trim().to_owned();
            if value.is_empty() {
                continue;
            }
            match &*key {
                "after" => wanted.after = Some(value),
                "from" => wanted.from = Some(value),
                "listener" => wanted.listener = Some(value),
                "payload" => wanted.payload = Some(value),
                "fault" => wanted.fault = Some(value),
                "text" => wanted.text = Some(value),
                "since" => wanted.since = Some(time_of(value)),
                "until" => wanted.until = Some(time_of(value)),
                "job" => wanted.job = Some(value),
                "state" if value == "open" => wanted.open = Some(true),
                "state" if value == "ended" => wanted.open = Some(false),
                "state" => wanted.state = Some(value),
                _ => {}
            }
        }
        wanted
    }

    /// Makes the page; for one that is open already, its rows suffice.
    pub(super) async fn render(&self, app: &AppState, visitor: &Visitor, is_open: bool) -> Result<Page, Problem> {
        let operations = app.organism().operations(visitor.name().clone());
        let look = Look { app, operations, query: &self.query, wanted: Self::wanted_of(&self.query), is_open };
        match &self.view {
            View::Conversations => look.conversations().await,
            View::Conversation(root) => look.conversation(*root).await,
            View::Thread(thread) => look.thread(*thread).await,
            View::Message(id) => look.message(*id).await,
            View::Questions => look.questions(visitor).await,
            View::Question(id) => {
                let written =
                    Written { form: look.value_of("form").map(|of| (of, HashMap::new())), ..Written::default() };
                question(app, visitor, &id.to_string(), written).await
            }
            View::Letters => look.letters().await,
            View::Mailboxes => look.mailboxes().await,
            View::Tasks => look.tasks().await,
            View::Listeners => look.listeners().await,
            View::Listener(name) => look.listener(name).await,
            View::Models => look.models().await,
            View::Schedules => look.schedules().await,
            View::Acts => look.acts().await,
        }
    }
}

/// A tick of a schedule, and what came of it.
fn tick_line(tick: &TickRecord) -> Markup {
    html! {
        div {
            (time(Some(&tick.at))) " "
            @match (&tick.conversation, tick.missed) {
                (Some(id), _) => {
                    a href={ "/conversations/" (id) } { (tick.outcome.as_deref().unwrap_or("sent")) }
                    @if tick.by_hand { " by hand" }
                },
                (None, Some(count)) => { span.bad { (count) " missed" } },
                (None, None) => { (tick.end) },
            }
        }
    }
}

/// A time as a browser's field has it, without a zone, is one of UTC.
fn time_of(text: String) -> String {
    match text.len() {
        10 => text + "T00:00:00Z",
        16 => text + ":00Z",
        _ => text,
    }
}

struct Look<'a> {
    app: &'a AppState,
    operations: Operations<'a>,
    query: &'a str,
    wanted: Wanted,
    /// True if the page is open already, and what stands around its rows is not shown again.
    is_open: bool,
}

impl Look<'_> {
    fn wanted(&self, limit: usize) -> Wanted {
        Wanted { limit: Some(limit), ..self.wanted.clone() }
    }

    /// Contents around the rows that cost more than these.
    fn around(&self, make: impl FnOnce() -> Markup) -> Markup {
        if self.is_open {
            html! {}
        } else {
            make()
        }
    }

    async fn conversations(&self) -> Result<Page, Problem> {
        let found = self.operations.conversations(&self.wanted(CONVERSATIONS)).await?;
        let row = |item: &ConversationRecord| {
            let id = &item.conversation;
            let markup = html! {
                tr id={ "c-" (id) } {
                    td { input type="checkbox" name="id" value=(id) form="bulk" aria-label={ "Check " (id) }; }
                    td { (state_of(item)) }
                    td { a.id href={ "/conversations/" (id) } { (item.payload.as_deref().map_or("conversation", local)) } }
                    td { (time(item.opened.as_deref())) }
                    td { (time(item.ended.as_deref())) }
                    td { (item.owner.as_deref().unwrap_or("the organism")) }
                    td { @for name in &item.listeners { span.chip { (name) } } }
                    td.n { @if item.open { (item.running) " / " (item.queued) " / " (item.threads) } }
                }
            };
            Row::new(format!("c-{id}"), markup)
        };
        let rows = found.items.iter().map(row).collect();
        let field = |name: &str, label: &str| self.field(name, label);
        let head = html! {
            form.filters method="get" action="/" role="search" {
                label { "State" select name="state" {
                    @for (value, name) in [("", "any"), ("open", "open"), ("ended", "ended")] {
                        option value=(value) selected[self.value("state") == value] { (name) }
                    }
                } }
                label { "Text" input #search name="text" value=(self.value("text")); }
                (field("listener", "Listener"))
                (field("payload", "Payload"))
                (field("fault", "Fault"))
                (field("since", "Since"))
                (field("until", "Until"))
                button.main { "Find" }
                a href="/" { "All" }
                a href="/?state=open" { "Open" }
                button #keep-view type="button" hidden { "Keep this view" }
            }
            div #views {}
            (self.bulk("/", &[("cancel", "Cancel"), ("retry", "Retry")], &[("cancel", "Cancel all open ones that match")]))
        };
        Ok(Page {
            title: "Conversations".into(),
            entry: "/",
            head,
            sections: vec![Section {
                id: "conversations",
                shape: Shape::Table(&[
                    "Check",
                    "State",
                    "Began with",
                    "Opened",
                    "Ended",
                    "For",
                    "Listeners",
                    "Running / queued / threads",
                ]),
                rows,
                empty: match found.next {
                    Some(_) => "Nothing among the newest 2,000: see older ones.",
                    None => "Nothing matches.",
                },
            }],
            foot: self.older("/", found.next.as_deref()),
        })
    }

    async fn conversation(&self, root: ThreadId) -> Result<Page, Problem> {
        let threads = self.operations.threads(root, &self.wanted(THREADS)).await?;
        let Some(first) = threads.items.first() else {
            return Err(Problem::not_found("there is no such conversation, or it was forgotten"));
        };
        let is_open = threads.items.iter().any(|thread| thread.closed.is_none());
        let now = self.operations.now();
        let rows = threads.items.iter().map(|thread| branch(thread, now)).collect();
        let mut said = Vec::new();
        for thread in threads.items.iter().take(TOLD.0) {
            let Ok(id) = thread.thread.parse() else { continue };
            let few = Wanted { limit: Some(TOLD.1), ..Wanted::default() };
            said.extend(self.operations.messages(id, &few).await?.items);
        }
        said.sort_by(|one, other| one.at.cmp(&other.at));
        let used = self.app.query().usage(root).await?;
        let began = said.iter().find_map(|message| message.payload.as_deref());
        let failures = said.iter().filter(|message| message.fault.is_some()).count();
        let id = root.to_string();
        let head = html! {
            dl {
                dt { "Conversation" } dd.id { (id) }
                dt { "Opened" } dd { (time(first.opened.as_deref())) }
                dt { "Models used" } dd { (used.input.saturating_add(used.output)) " tokens, " (used.cost.as_f64()) }
            }
            form.acts method="post" action="/act" {
                input type="hidden" name="id" value=(id);
                input type="hidden" name="back" value={ "/conversations/" (id) };
                @if is_open { button name="act" value="cancel" { "Cancel" } }
                button name="act" value="retry" { "Retry from its beginning" }
            }
        };
        let state = html! {
            p #state {
                @if is_open { span.busy { "Open" } } @else { span { "Ended" } }
                @if failures > 0 { ", " span.bad { (failures) " faults" } }
            }
        };
        Ok(Page {
            title: began
                .map_or_else(|| "Conversation".to_owned(), |payload| format!("Conversation: {}", local(payload))),
            entry: "/",
            head,
            sections: vec![
                Section { id: "about", shape: Shape::Block, rows: vec![Row::new("state", state)], empty: "" },
                Section {
                    id: "threads",
                    shape: Shape::Table(&[
                        "Thread",
                        "State",
                        "Queued",
                        "Opened",
                        "Closed",
                        "Took",
                        "Models used",
                        "Budget",
                    ]),
                    rows,
                    empty: "",
                },
                Section { id: "said", shape: Shape::Block, rows: sayings(&said), empty: "Nothing is kept of it." },
                Section { id: "drafts", shape: Shape::Block, rows: self.drafts(root, None), empty: "" },
            ],
            foot: html! {
                (self.older(&format!("/conversations/{id}"), threads.next.as_deref()))
                @if threads.items.len() > TOLD.0 { p.soft { "The first messages of the first " (TOLD.0) " threads: a thread's page has all of its." } }
            },
        })
    }

    /// Drafts of a conversation, of one thread or of all.
    fn drafts(&self, root: ThreadId, thread: Option<&str>) -> Vec<Row> {
        let open = self.app.organism().open_drafts(root, DRAFT).into_iter();
        let of_thread = |news: &DraftNews| match news {
            DraftNews::Text { of, .. } => thread.is_none_or(|thread| of.thread == thread),
            DraftNews::Gone { .. } | DraftNews::Lost => false,
        };
        open.filter(of_thread).take(DRAFTS).filter_map(draft_row).collect()
    }

    async fn thread(&self, thread: ThreadId) -> Result<Page, Problem> {
        let found = self.operations.messages(thread, &self.wanted(MESSAGES)).await?;
        let Some(first) = found.items.first() else {
            return Err(Problem::not_found("nothing is kept of that thread"));
        };
        let (id, root) = (thread.to_string(), &first.conversation);
        let head = html! {
            p { a href={ "/conversations/" (root) } { "Its conversation" } ", thread " span.id { (id) } }
            form.acts method="post" action="/act" {
                input type="hidden" name="id" value=(root);
                input type="hidden" name="thread" value=(id);
                input type="hidden" name="back" value={ "/threads/" (id) };
                button name="act" value="cancel" { "Cancel this thread" }
            }
        };
        Ok(Page {
            title: first.path.clone(),
            entry: "/",
            head,
            sections: vec![
                Section { id: "said", shape: Shape::Block, rows: sayings(&found.items), empty: "" },
                Section {
                    id: "drafts",
                    shape: Shape::Block,
                    rows: root.parse().map_or_else(|_| Vec::new(), |root| self.drafts(root, Some(&id))),
                    empty: "",
                },
            ],
            foot: self.older(&format!("/threads/{id}"), found.next.as_deref()),
        })
    }

    async fn message(&self, id: MessageId) -> Result<Page, Problem> {
        let records = self.operations.message(id).await?;
        let Some(message) = records.iter().find(|record| record.message.is_some()) else {
            return Err(Problem::not_found("there is no such message, or it was forgotten"));
        };
        let head = html! {
            dl {
                dt { "Message" } dd.id { (id) }
                dt { "Conversation" } dd { a.id href={ "/conversations/" (message.conversation) } { (message.conversation) } }
                dt { "Thread" } dd { a href={ "/threads/" (message.thread) } { (message.path) } }
                @if let Some(answered) = &message.in_reply_to { dt { "Answers" } dd { a.id href={ "/messages/" (answered) } { (answered) } } }
                @if let Some(attempts) = message.attempts { dt { "Runs that ended with their process" } dd { (attempts) } }
            }
        };
        // A look gives so many bytes of a text at most.
        let is_cut = message.text.len() >= CUT;
        let owner = html! {
            h2 { "Retry from here" }
            form method="post" action="/act" {
                input type="hidden" name="id" value=(message.conversation);
                input type="hidden" name="at" value=(id);
                label for="edit" { @if is_cut { "With another payload; the present one is too long to be edited here, and stays if this is empty" } @else { "With this payload" } }
                textarea #edit name="edit" data-judge="/check" data-said="judged" spellcheck="false" { @if !is_cut { (message.text) } }
                p.said #judged role="status" hidden {}
                p { button.main name="act" value="retry" { "Retry" } }
            }
        };
        Ok(Page {
            title: format!("Message {}", message.payload.as_deref().map_or("", local)),
            entry: "/",
            head,
            sections: vec![Section { id: "said", shape: Shape::Block, rows: sayings(&records), empty: "" }],
            foot: html! {
                (repaired::repairs(self.app, id, message))
                @if message.kind == MessageKind::Message { (owner) }
            },
        })
    }

    async fn letters(&self) -> Result<Page, Problem> {
        let found = self.operations.dead_letters(&self.wanted(MESSAGES)).await?;
        let row = |letter: &LetterRecord| {
            let markup = html! {
                tr id={ "l-" (letter.letter) } {
                    td { input type="checkbox" name="id" value=(letter.letter) form="bulk" aria-label={ "Check " (letter.letter) }; }
                    td { (time(Some(&letter.at))) }
                    td { (letter.from) " → " (letter.listener.as_deref().unwrap_or("nobody")) }
                    td { (letter.payload.as_deref().map_or("", local)) }
                    td {
                        span.chip.bad { (letter.fault) } " " (Escaped::line(&letter.reason))
                        @if letter.redrives { " (the next start redrives it)" }
                        @if let Some(text) = &letter.text { (folded(text)) }
                    }
                    td { @if let Some(root) = &letter.conversation { a href={ "/conversations/" (root) } { "open" } } }
                }
            };
            Row::new(format!("l-{}", letter.letter), markup)
        };
        let head = html! {
            form.filters method="get" action="/dead-letters" role="search" {
                label { "Text" input #search name="text" value=(self.value("text")); }
                @for (name, label) in [("from", "Sender"), ("listener", "Listener"), ("payload", "Payload"), ("fault", "Fault"), ("since", "Since"), ("until", "Until")] {
                    (self.field(name, label))
                }
                button.main { "Find" }
                a href="/dead-letters" { "All" }
            }
            (self.bulk(
                "/dead-letters",
                &[("redrive", "Redrive"), ("discard", "Discard")],
                &[("redrive", "Redrive all that match"), ("discard", "Discard all that match")],
            ))
        };
        Ok(Page {
            title: "Dead letters".into(),
            entry: "/dead-letters",
            head,
            sections: vec![Section {
                id: "letters",
                shape: Shape::Table(&["Check", "Since", "Way", "Payload", "Reason", "Conversation"]),
                rows: found.items.iter().map(row).collect(),
                empty: "No dead letters.",
            }],
            foot: self.older("/dead-letters", found.next.as_deref()),
        })
    }

    async fn mailboxes(&self) -> Result<Page, Problem> {
        let found = self.operations.mailboxes(&self.wanted(MESSAGES)).await?;
        let rows = found.items.iter().map(|item| {
            let markup = html! {
                tr id={ "b-" (item.mailbox) } {
                    td { (item.mailbox) }
                    td.n { (item.waiting) } td.n { (item.leased) }
                    td.n { a href={ "/dead-letters?listener=" (item.mailbox) } { (item.dead) } }
                    td { (time(item.oldest.as_deref())) }
                    td { (pausing(&item.mailbox, item.paused.as_deref(), "/mailboxes")) }
                }
            };
            Row::new(format!("b-{}", item.mailbox), markup)
        });
        Ok(Page {
            title: "Mailboxes".into(),
            entry: "/mailboxes",
            head: html! { p.soft { "Messages of listeners elsewhere, until their agents have answered them." } },
            sections: vec![Section {
                id: "mailboxes",
                shape: Shape::Table(&["Listener", "Waiting", "Leased", "Dead", "Oldest", "Act"]),
                rows: rows.collect(),
                empty: "The organism has no remote listeners.",
            }],
            foot: self.older("/mailboxes", found.next.as_deref()),
        })
    }

    async fn tasks(&self) -> Result<Page, Problem> {
        let found = self.operations.tasks(&self.wanted(MESSAGES)).await?;
        let rows = found.items.iter().map(|task| {
            let markup = html! {
                tr id={ "k-" (task.task) } {
                    td { span.chip { (task.state) } @if let Some(percent) = task.percent { (percent) " %" } }
                    td { (task.job) } td { (task.from) }
                    td { (time(Some(&task.at))) } td { (time(Some(&task.changed))) }
                    td.n { (task.attempts) }
                    td { (folded(&task.description)) @if let Some(text) = &task.text { (folded(text)) } }
                }
            };
            Row::new(format!("k-{}", task.task), markup)
        });
        let head = html! {
            form.filters method="get" action="/tasks" role="search" {
                label { "Text" input #search name="text" value=(self.value("text")); }
                (self.field("job", "Job")) (self.field("state", "State"))
                button.main { "Find" }
                a href="/tasks" { "All" }
            }
        };
        Ok(Page {
            title: "Tasks".into(),
            entry: "/tasks",
            head,
            sections: vec![Section {
                id: "tasks",
                shape: Shape::Table(&["State", "Job", "From", "Submitted", "Changed", "Attempts", "Work"]),
                rows: rows.collect(),
                empty: "No tasks.",
            }],
            foot: self.older("/tasks", found.next.as_deref()),
        })
    }

    async fn listeners(&self) -> Result<Page, Problem> {
        let records = self.operations.each_listener().await;
        let blueprint = self.app.organism().blueprint();
        let calls = |payloads: &[QName]| {
            html! {
                @for (name, payloads) in callees(&blueprint, payloads) {
                    a.chip href={ "#n-" (name) } title=(payloads.join("\n")) { (name) }
                }
            }
        };
        let names = |payloads: &[QName]| {
            html! { @for payload in payloads { span.chip title=(payload) { (local(&payload.to_string())) } } }
        };
        let rows = blueprint.listeners().map(|(_, contract)| {
            let record = records.get(contract.name.as_str());
            let markup = html! {
                tr id={ "n-" (contract.name) } {
                    td { a href={ "/listeners/" (contract.name) } { strong { (contract.name) } } br; span.soft { (Escaped::line(&contract.description)) } }
                    td {
                        @match record {
                            Some(record) if record.rests.is_some() => span.bad title=[record.rests.as_ref().map(|rest| &rest.why)] {
                                "rests until " (time(record.rests.as_ref().map(|rest| rest.until.as_str())))
                            },
                            Some(record) if record.paused.is_some() => span.busy { "paused since " (time(record.paused.as_deref())) },
                            Some(record) if record.running > 0 => span.busy { "works" },
                            _ => span.good { "ready" },
                        }
                    }
                    td.n { @if let Some(record) = record { (record.running) " of " (record.concurrency) } }
                    td.n { @if let Some(record) = record { (record.waiting) } }
                    td { (names(&contract.accepts)) } td { (names(&contract.replies)) } td { (calls(&contract.calls)) }
                    td { (pausing(contract.name.as_str(), record.and_then(|record| record.paused.as_deref()), "/listeners")) }
                }
            };
            Row::new(format!("n-{}", contract.name), markup)
        });
        let clients = html! {
            h2 { "Clients" }
            @for (_, client) in blueprint.clients() { p { strong { (client.name) } " may call " (calls(&client.calls)) } }
            h2 { "Version " (blueprint.version().0) }
            p { "Take the changed organism.yaml, its schemas and programs. Open conversations keep what they began with." }
            form method="post" action="/act" {
                input type="hidden" name="back" value="/listeners";
                button name="act" value="reload" { "Reload" }
            }
        };
        Ok(Page {
            title: "Organism".into(),
            entry: "/listeners",
            head: self.around(|| graph(&blueprint)),
            sections: vec![Section {
                id: "listeners",
                shape: Shape::Table(&[
                    "Listener", "State", "Running", "Waiting", "Accepts", "Replies", "May call", "Act",
                ]),
                rows: rows.collect(),
                empty: "The organism has no listeners.",
            }],
            foot: clients,
        })
    }

    /// The questions that a person may answer.
    async fn questions(&self, visitor: &Visitor) -> Result<Page, Problem> {
        let found = visitor.questions(self.app)?.list(&self.wanted(MESSAGES)).await?;
        let rows = found.items.iter().map(|item| {
            let markup = html! {
                tr id={ "q-" (item.question) } {
                    td { (question_state(item)) }
                    td { a href={ "/questions/" (item.question) } { (item.payload.as_deref().map_or("fault", local)) } }
                    td { (item.from) " asks " (item.listener) }
                    td { (time(Some(&item.since))) } td { (time(item.deadline.as_deref())) }
                    td { @for name in &item.people { span.chip { (name) } } @if item.operators { span.chip { "operators" } } }
                    td.n { @if let Some(cost) = item.cost { (cost.tokens) " tokens, " (cost.cost) } }
                }
            };
            Row::new(format!("q-{}", item.question), markup)
        });
        Ok(Page {
            title: "Questions".into(),
            entry: "/questions",
            head: html! {
                form.filters method="get" action="/questions" role="search" {
                    (self.field("listener", "Listener"))
                    button.main { "Find" }
                }
            },
            sections: vec![Section {
                id: "questions",
                shape: Shape::Table(&["State", "Question", "Who asks", "Since", "Until", "For", "Cost so far"]),
                rows: rows.collect(),
                empty: "No question waits for you.",
            }],
            foot: self.older("/questions", found.next.as_deref()),
        })
    }

    /// A listener: its contract, its work since the start, and the schemas and prompts of its payloads.
    async fn listener(&self, name: &Name) -> Result<Page, Problem> {
        let (organism, records) = (&self.app.organism(), self.operations.each_listener().await);
        let blueprint = organism.blueprint();
        let found = blueprint.listeners().find(|(_, contract)| contract.name == *name);
        let Some((_, contract)) = found else { return Err(Problem::not_found("there is no such listener")) };
        let record = records.get(name.as_str());
        let figures = self.app.figures().listener(name);
        let counts = |counts: &BTreeMap<&str, u64>| {
            counts.iter().map(|(what, count)| format!("{count} {what}")).collect::<Vec<_>>().join(", ")
        };
        let figures = html! {
            dl #figures {
                @if let Some(record) = record {
                    dt { "Slots" } dd { (record.running) " of " (record.concurrency) " in use, " (record.waiting) " messages wait" }
                    @if let Some(rest) = &record.rests { dt { "Rests until" } dd.bad { (time(Some(&rest.until))) ": " (Escaped::line(&rest.why)) } }
                    @if let Some(since) = &record.paused { dt { "Paused since" } dd.busy { (time(Some(since))) } }
                }
                dt { "Messages" } dd { (figures.deliveries) }
                dt { "Handlers" } dd { (counts(&figures.ended)) ", " (figures.took.as_millis()) " ms each" }
                dt { "Waits" } dd { (figures.waited.as_millis()) " ms for a handler" }
                @for (what, of) in [("Faults", &figures.faults), ("Refused", &figures.refusals), ("Repaired", &figures.repairs)] {
                    @if !of.is_empty() { dt { (what) } dd { (counts(of)) } }
                }
            }
        };
        let budget = contract.budget.to_string();
        let payloads = [
            ("Accepts", &contract.accepts),
            ("Replies with", &contract.replies),
            ("May call", &contract.calls),
            ("Gets back", &contract.returns),
        ];
        let foot = self.around(|| {
            html! {
                @for (what, payloads) in payloads {
                    @if !payloads.is_empty() {
                        h2 { (what) }
                        @for payload in payloads {
                            @match organism.catalog().get(payload) {
                                Some(schema) => details {
                                    summary { (payload) }
                                    p { "Schema" } (pre(schema.document()))
                                    p { "Prompt" } (pre(schema.prompt()))
                                },
                                None => p { (payload) },
                            }
                        }
                    }
                }
            }
        });
        let head = html! {
            p { (Escaped::line(&contract.description)) }
            dl {
                dt { "Runs for" } dd { @match contract.timeout { Some(most) => { (most.as_secs_f64()) " s at most" }, None => "any time" } }
                @if !budget.is_empty() { dt { "Budget of a thread" } dd { (budget) } }
                dt { "History" } dd { @if contract.context { "kept for each thread" } @else { "none" } }
            }
            (pausing(name.as_str(), record.and_then(|record| record.paused.as_deref()), &format!("/listeners/{name}")))
        };
        Ok(Page {
            title: format!("Listener: {name}"),
            entry: "/listeners",
            head,
            sections: vec![Section {
                id: "work",
                shape: Shape::Block,
                rows: vec![Row::new("figures", figures)],
                empty: "",
            }],
            foot,
        })
    }

    async fn models(&self) -> Result<Page, Problem> {
        let rows = self.app.figures().models().into_iter().map(|model| {
            let key = format!("m-{}-{}", model.listener, model.backend);
            let markup = html! {
                tr id=(key) {
                    td { (model.listener) } td { (model.backend) }
                    td.n { (model.answered) } td.n { @if model.failed > 0 { span.bad { (model.failed) } } @else { "0" } }
                    td.n { (model.usage.input) } td.n { (model.usage.output) } td.n { (model.usage.cost.as_f64()) }
                    td.n { (model.mean.as_millis()) " ms" }
                    td.n { (model.refused) } td.n { (model.repaired) }
                }
            };
            Row::new(key, markup)
        });
        // It reads the journal, so it stays as the page was opened.
        let by_day = if self.is_open {
            html! {}
        } else {
            by_day(self.operations.used_by_day().await?.as_ref())
        };
        Ok(Page {
            title: "Models".into(),
            entry: "/models",
            head: html! { p.soft { "Since the start of the organism. Refusals and repairs are those of all that the listener wrote." } },
            sections: vec![Section {
                id: "models",
                shape: Shape::Table(&[
                    "Listener",
                    "Backend",
                    "Answers",
                    "Failures",
                    "Tokens in",
                    "Tokens out",
                    "Cost",
                    "Mean time",
                    "Refused",
                    "Repaired",
                ]),
                rows: rows.collect(),
                empty: "No model was asked since the start.",
            }],
            foot: by_day,
        })
    }

    async fn schedules(&self) -> Result<Page, Problem> {
        let found = self.operations.schedules(&self.wanted(SCHEDULES)).await?;
        let row = |item: &ScheduleRecord| {
            let name = &item.schedule;
            let markup = html! {
                tr id={ "s-" (name) } {
                    td { (name) }
                    td { (item.timing) }
                    td { (item.client) }
                    td { @match &item.paused {
                        Some(since) => { "paused since " (time(Some(since))) },
                        None => { @for tick in &item.next { div { (tick) } } },
                    } }
                    td { @for tick in item.ticks.iter().take(TICKS) { (tick_line(tick)) } @if item.ticks.is_empty() { "none yet" } }
                    td.n { (item.missed_ticks) }
                    td { form.acts method="post" action="/act" {
                        input type="hidden" name="schedule" value=(name);
                        input type="hidden" name="back" value="/schedules";
                        @match item.paused {
                            Some(_) => { button name="act" value="resume-schedule" aria-label={ "Resume " (name) } { "Resume" } },
                            None => { button name="act" value="pause-schedule" aria-label={ "Pause " (name) } { "Pause" } },
                        }
                        button name="act" value="run-schedule" aria-label={ "Run now: " (name) } { "Run now" }
                    } }
                }
            };
            Row::new(format!("s-{name}"), markup)
        };
        Ok(Page {
            title: "Schedules".into(),
            entry: "/schedules",
            head: html! {},
            sections: vec![Section {
                id: "schedules",
                shape: Shape::Table(&["Schedule", "Ticks", "As", "Next", "Last", "Missed", "Acts"]),
                rows: found.items.iter().map(row).collect(),
                empty: "The organism has no schedules.",
            }],
            foot: self.older("/schedules", found.next.as_deref()),
        })
    }

    async fn acts(&self) -> Result<Page, Problem> {
        let found = self.operations.acts(&self.wanted(MESSAGES)).await?;
        let rows = found.items.iter().enumerate().map(|(at, act)| {
            // Several acts of a bulk one have one time.
            let key = format!("a-{}-{at}", act.at);
            let markup = html! {
                tr id=(key) {
                    td { (time(Some(&act.at))) } td { (act.by) } td { (act.act) } td.id { (Escaped::line(&act.of)) }
                    td { (outcome(act.error.as_deref(), act.opened.as_deref())) }
                }
            };
            Row::new(key, markup)
        });
        Ok(Page {
            title: "Acts".into(),
            entry: "/acts",
            head: html! {},
            sections: vec![Section {
                id: "acts",
                shape: Shape::Table(&["Time", "By", "Act", "Of", "Outcome"]),
                rows: rows.collect(),
                empty: "Nobody has acted.",
            }],
            foot: self.older("/acts", found.next.as_deref()),
        })
    }

    /// The value of a condition in the address.
    fn value_of(&self, name: &str) -> Option<String> {
        let mut pairs = url::form_urlencoded::parse(self.query.as_bytes());
        pairs.find(|(key, _)| key == name).map(|(_, value)| value.into_owned())
    }

    fn value(&self, name: &str) -> String {
        self.value_of(name).unwrap_or_default()
    }

    fn field(&self, name: &str, label: &str) -> Markup {
        let hint = matches!(name, "listener" | "payload" | "fault").then_some("name or -name");
        html! { label { (label) input name=(name) value=(self.value(name)) size="12" placeholder=[hint] title=[hint.map(|_| "-name leaves it out, -a -b both")]; } }
    }

    /// The forms that act on what is checked, and on all that the filter finds.
    fn bulk(&self, path: &str, checked: &[(&str, &str)], all: &[(&str, &str)]) -> Markup {
        let back = html! { input type="hidden" name="back" value={ (path) "?" (self.query) }; };
        html! {
            div.bulk {
                form #bulk method="post" action="/act" {
                    (back)
                    label { input #all type="checkbox"; " All of the page" } " "
                    @for (act, name) in checked { button name="act" value=(act) { (name) " checked" } " " }
                }
                form method="post" action="/act" {
                    (back)
                    // A filter without a condition is one, too.
                    input type="hidden" name="filter" value={ (self.query) "&" };
                    @for (act, name) in all { button name="act" value=(act) { (name) } " " }
                }
            }
        }
    }

    /// The link to the next page.
    fn older(&self, path: &str, next: Option<&str>) -> Markup {
        let Some(next) = next else { return html! {} };
        let mut query = url::form_urlencoded::Serializer::new(String::new());
        let pairs = url::form_urlencoded::parse(self.query.as_bytes()).filter(|(key, _)| key != "after");
        query.extend_pairs(pairs).append_pair("after", next);
        html! { p { a href={ (path) "?" (query.finish()) } rel="next" { "More" } } }
    }
}

/// A thread in the tree of its conversation. One that is open took the time until now so far, in whole seconds, so that its row
/// changes once a second at most.
fn branch(thread: &ThreadRecord, now: Time) -> Row {
    let depth = thread.path.matches('/').count().min(12);
    let name = thread.path.rsplit('/').next().unwrap_or(&thread.path);
    let state = thread.state.and_then(|state| serde_json::to_value(state).ok());
    let state = state.as_ref().and_then(|state| state.as_str()).unwrap_or("closed");
    let at = |at: &Option<String>| at.as_deref().and_then(|at| at.parse::<Time>().ok());
    let until = at(&thread.closed).or_else(|| thread.closed.is_none().then_some(now));
    let took = at(&thread.opened).zip(until).map(|(opened, until)| until.since(opened));
    let took = if thread.closed.is_none() { took.map(|took| Duration::from_secs(took.as_secs())) } else { took };
    let id = &thread.thread;
    let markup = html! {
        tr id={ "t-" (id) } {
            td { div class={ "d" (depth) } { a href={ "/threads/" (id) } title=(thread.path) { (name) } } }
            td { span class=(if state == "closed" { "soft" } else { "busy" }) { (state) } }
            td.n { @if thread.queued > 0 { (thread.queued) } }
            td { (time(thread.opened.as_deref())) }
            td { (time(thread.closed.as_deref())) }
            td.n { @if let Some(took) = took { (length(took)) @if thread.closed.is_none() { " so far" } } }
            td.n { @if let Some(used) = thread.used { (used) } }
            td.n { @if let Some(budget) = thread.budget { (budget) } }
        }
    };
    Row::new(format!("t-{id}"), markup)
}

/// A length of time, by its two greatest units; below a minute by seconds with three decimals.
fn length(time: Duration) -> String {
    let seconds = time.as_secs();
    let (days, hours, minutes) = (seconds / 86_400, seconds / 3_600 % 24, seconds / 60 % 60);
    match (days, hours, minutes) {
        (0, 0, 0) => format!("{} s", (time.as_secs_f64() * 1e3).round() / 1e3),
        (0, 0, _) => format!("{minutes} min {} s", seconds % 60),
        (0, ..) => format!("{hours} h {minutes} min"),
        _ => format!("{days} d {hours} h"),
    }
}

/// The use of models by day, as far as the journal has it.
fn by_day(used: Option<&UsedDays>) -> Markup {
    let Some(used) = used else {
        return html! { h2 { "By day" } p.soft { "The organism has no journal, which would have the use by day." } };
    };
    html! {
        h2 { "By day" }
        p.soft {
            "The last 31 days in UTC, as the journal had them when this page was opened. A request whose answer was refused is followed by another one for the same message. "
            "The journal has no count of refusals and repairs: those are above, since the start."
        }
        @match used.since {
            Time::MAX => p.bad { "Not all is counted: too many requests are those of messages that are not done." },
            since if since > UsedDays::day_of(since) => p.bad { "Requests of messages that ended before " (time(Some(&since.to_string()))) " are not all counted: there are too many." },
            _ => {},
        }
        @if let Some(deleted) = used.deleted {
            p.soft { "Retention has deleted from the journal what ended by " (time(Some(&deleted.to_string()))) ": requests of until then may be missing." }
        }
        div.table tabindex="0" role="region" aria-label="by day" {
            table {
                thead { tr { @for heading in ["Day", "Listener", "Messages", "Requests", "Tokens in", "Tokens out", "Cost"] { th scope="col" { (heading) } } } }
                tbody #days {
                    @for day in &used.days {
                        tr {
                            td { (day.day.to_string().split('T').next().unwrap_or_default()) } td { (day.listener) }
                            td.n { (day.messages) } td.n { (day.requests) }
                            td.n { (day.usage.input) } td.n { (day.usage.output) } td.n { (day.usage.cost.as_f64()) }
                        }
                    }
                }
            }
        }
        p.empty hidden[!used.days.is_empty()] { "The journal has no request to a model of these days." }
    }
}

/// The outcome of an act for one of the things that it was about.
fn outcome(error: Option<&str>, opened: Option<&str>) -> Markup {
    html! {
        @match (error, opened) {
            (Some(error), _) => span.bad { (Escaped::line(error)) },
            (None, Some(opened)) => a.id href={ "/conversations/" (opened) } { (opened) },
            (None, None) => span.good { "done" },
        }
    }
}

/// The outcomes of an act on several things.
pub(super) fn outcomes(act: &str, outcomes: &[Outcome], back: &str) -> Page {
    let failed = outcomes.iter().filter(|outcome| outcome.error.is_some()).count();
    let rows = outcomes.iter().enumerate().map(|(at, Outcome { of, error, opened, .. })| {
        let key = format!("o-{at}");
        let outcome = outcome(error.as_deref(), opened.as_deref());
        Row::new(key.clone(), html! { tr id=(key) { td.id { (of) } td { (outcome) } } })
    });
    Page {
        title: format!("{act}: {} done, {failed} without an effect", outcomes.len() - failed),
        entry: "",
        head: html! { p { a href=(back) { "Back" } } },
        sections: vec![Section {
            id: "outcomes",
            shape: Shape::Table(&["Of", "Outcome"]),
            rows: rows.collect(),
            empty: "Nothing was there to act on.",
        }],
        foot: html! {},
    }
}

/// The answer of a person to a question, as far as it is written.
#[derive(Default)]
pub(super) struct Written {
    /// The answer as XML.
    pub(super) text: Option<String>,
    /// The payload that is written by its form, with the answers so far by the keys of their fields.
    pub(super) form: Option<(String, HashMap<String, String>)>,
    /// The comment on it, and whether that is good news.
    pub(super) said: Option<(String, bool)>,
}

/// Prefix of the name of a field, before the key of its question.
pub(super) const FIELD: &str = "field ";

/// A question, with what there is to answer it.
pub(super) async fn question(
    app: &AppState,
    visitor: &Visitor,
    id: &str,
    Written { text, form, said }: Written,
) -> Result<Page, Problem> {
    let questions = visitor.questions(app)?;
    let item = questions.look(id).await?;
    let path = format!("/questions/{id}");
    let is_claimed = item.state.state == "claimed";
    let said = |id: &str| {
        html! {
            p.said.good[said.as_ref().is_some_and(|(_, good)| *good)] id=(id) role="status" hidden[said.is_none()] {
                @if let Some((said, _)) = &said { (said) }
            }
        }
    };
    let claims = html! {
        @if is_claimed { button name="deed" value="release" { "Release" } button name="deed" value="take" { "Take over" } }
        @else { button name="deed" value="claim" { "Claim" } }
    };
    let answer = match form {
        Some((payload, answers)) => {
            let page = questions.form(id, &payload, answers).await?;
            let is_whole = matches!(page.payload, Some(Ok(_)));
            html! {
                h2 { (local(&payload)) }
                form.fields method="post" action=(path) {
                    input type="hidden" name="form" value=(payload);
                    @for (at, field) in page.fields.iter().enumerate() { (of_field(at, field)) }
                    @match &page.payload {
                        Some(Ok(payload)) => (pre(payload)),
                        Some(Err(why)) => p.said { (Escaped::line(why)) },
                        None => {},
                    }
                    (said("filled"))
                    p.acts {
                        button #again.main[!is_whole] name="deed" value="fill" { "Go on" }
                        button.main[is_whole] name="deed" value="send" { "Answer" }
                        a href=(path) { "Write XML instead" }
                    }
                }
            }
        }
        None => {
            let example = item.answers.first().and_then(|answer| answer.example.clone());
            let text = text.or(example).unwrap_or_default();
            html! {
                @if !item.answers.is_empty() {
                    p { "By a form: "
                        @for answer in &item.answers {
                            @let query = url::form_urlencoded::Serializer::new(String::new()).append_pair("form", &answer.payload).finish();
                            a.chip href={ (path) "?" (query) } { (local(&answer.payload)) }
                        }
                    }
                }
                form method="post" action=(path) {
                    label for="text" { "Your answer" }
                    textarea #text name="text" data-judge=(path) data-said="judged" spellcheck="false" { (text) }
                    (said("judged"))
                    p.acts {
                        button.main name="deed" value="answer" { "Answer" }
                        button name="deed" value="preview" { "Show what would be sent" }
                        (claims)
                    }
                }
            }
        }
    };
    let form = html! {
        (answer)
        form.acts method="post" action=(path) {
            label { "Reason " input name="reason" maxlength="1000"; }
            button name="deed" value="decline" { "Decline to answer" }
        }
        @for answer in &item.answers {
            details { summary { "Schema of " (local(&answer.payload)) } (pre(&answer.schema)) @if let Some(example) = &answer.example { (pre(example)) } }
        }
    };
    let head = html! {
        dl {
            dt { "Who asks" } dd { (item.from) ", for " (item.listener) }
            dt { "Since" } dd { (time(Some(&item.since))) }
            @if let Some(until) = &item.deadline { dt { "Until" } dd { (time(Some(until))) } }
            @if let Some(cost) = item.cost { dt { "Cost so far" } dd { (cost.tokens) " tokens, " (cost.cost) } }
            @if let Some(root) = item.conversation.as_ref().filter(|_| visitor.is_admin) { dt { "Conversation" } dd { a.id href={ "/conversations/" (root) } { (root) } } }
        }
        (pre(item.text.as_deref().unwrap_or_default()))
    };
    let state = Row::new("question-state", html! { p #question-state { (question_state(&item)) } });
    let told = item.told.iter().enumerate().map(|(at, told)| {
        let key = format!("told-{at}");
        Row::new(key.clone(), html! { div id=(key) { (pre(told)) } })
    });
    Ok(Page {
        title: format!("Question: {}", item.payload.as_deref().map_or("fault", local)),
        entry: "/questions",
        head,
        sections: vec![Section {
            id: "state",
            shape: Shape::Block,
            rows: std::iter::once(state).chain(told).collect(),
            empty: "",
        }],
        foot: form,
    })
}

/// A field of a form. One that decides what else is asked for sends the form as it changes, where there is script.
fn of_field(at: usize, field: &FormField) -> Markup {
    let (id, name) = (format!("field-{at}"), format!("{FIELD}{}", field.key));
    let answer = field.answer.as_deref();
    let wrong = format!("{id}-wrong");
    let described = field.error.as_ref().map(|_| wrong.as_str());
    let area = |rows: u8, placeholder: Option<&str>| {
        html! {
            textarea id=(id) name=(name) rows=(rows) spellcheck="false" placeholder=[placeholder] aria-describedby=[described] { (answer.unwrap_or_default()) }
        }
    };
    let choice = |options: &[(String, String)]| {
        html! {
            select id=(id) name=(name) data-again[field.decides] aria-describedby=[described] {
                @if answer.is_none_or(|answer| options.iter().all(|(value, _)| value != answer)) { option value="" selected { "choose" } }
                @for (value, text) in options { option value=(value) selected[answer == Some(value)] { (Escaped::line(text)) } }
            }
        }
    };
    html! {
        div.field {
            label for=(id) { (Escaped::line(&field.question)) }
            @match &field.kind {
                FieldKind::YesOrNo => (choice(&[("n".to_owned(), "no".to_owned()), ("y".to_owned(), "yes".to_owned())])),
                FieldKind::Choice(options) => (choice(options)),
                FieldKind::Text(default) => (area(1, default.as_deref())),
                _ => (area(4, None)),
            }
            @if let Some(error) = &field.error { p.bad id=(wrong) { (Escaped::line(error)) } }
        }
    }
}

fn question_state(item: &QuestionRecord) -> Markup {
    html! {
        span.chip { (item.state.state) }
        @if let Some(by) = &item.state.by { " by " (by) " " (time(item.state.at.as_deref())) }
    }
}

fn state_of(item: &ConversationRecord) -> Markup {
    html! {
        @match (&item.fault, item.open) {
            (Some(fault), _) => span.chip.bad { (fault) },
            (None, true) => span.chip.busy { "open" },
            (None, false) => span.chip.good { "ended" },
        }
    }
}

/// A button that pauses or resumes a listener.
fn pausing(listener: &str, paused: Option<&str>, back: &str) -> Markup {
    let (act, name) = if paused.is_some() { ("resume", "Resume") } else { ("pause", "Pause") };
    html! {
        form method="post" action="/act" {
            input type="hidden" name="listener" value=(listener);
            input type="hidden" name="back" value=(back);
            button name="act" value=(act) aria-label={ (name) " " (listener) } { (name) }
        }
    }
}

/// The history of a thread, to be read from top to bottom.
fn sayings<'a>(messages: &'a [MessageRecord]) -> Vec<Row> {
    let mut counts = BTreeMap::<&str, usize>::new();
    let mut row = |message: &'a MessageRecord| {
        let count = counts.entry(message.thread.as_str()).or_default();
        *count += 1;
        let key = format!("s-{}-{count}", short(&message.thread));
        let to = message.path.rsplit('/').next().unwrap_or_default();
        let (class, what) = match message.kind {
            _ if message.fault.is_some() => ("saying is-bad", "fault"),
            MessageKind::Message if message.ended.is_none() => ("saying is-busy", "waits or runs"),
            MessageKind::Message => ("saying", message.ending.as_deref().unwrap_or("done")),
            MessageKind::AwaitedAnswer => ("saying", "answer to a call"),
            MessageKind::Answer => ("saying is-good", "answer to the client"),
            MessageKind::RefusedOutput => ("saying is-bad", "refused output"),
            MessageKind::StandardError => ("saying is-bad", "standard error"),
            MessageKind::Note => ("saying", "note"),
        };
        let markup = html! {
            article class=(class) id=(key) {
                div {
                    strong { @match &message.from { Some(from) => { (from) " → " (to) }, None => (to) } } " "
                    @if let Some(payload) = &message.payload { span.chip title=(payload) { (local(payload)) } }
                    @if let Some(fault) = &message.fault { span.chip.bad { (fault) } }
                    span.soft { (what) " " } (time(Some(&message.at))) " "
                    @if let Some(id) = &message.message { a href={ "/messages/" (id) } { "message" } }
                }
                (folded(&message.text))
            }
        };
        Row::new(key, markup)
    };
    messages.iter().map(&mut row).collect()
}

/// A draft: text that is no message yet.
fn draft_row(news: DraftNews) -> Option<Row> {
    let DraftNews::Text { of, from, text } = news else { return None };
    let key = format!("draft-{}", of.draft);
    let markup = html! {
        article.saying.is-busy id=(key) {
            div {
                strong { (of.listener) } " "
                span.soft { "writes" @if of.attempt > 1 { ", attempt " (of.attempt) } @if from > 0 { "; " (from) " bytes stand before" } }
            }
            (pre(&text))
        }
    };
    Some(Row::new(key, markup))
}

/// Foreign text, whose beginning is shown where it is long.
fn folded(text: &str) -> Markup {
    match text.char_indices().nth(SHOWN) {
        None => pre(text),
        Some((end, _)) => html! {
            details { summary { (text.len()) " bytes: " (Escaped::line(text[..end].lines().next().unwrap_or_default())) } (pre(text)) }
        },
    }
}

/// Foreign text. Invisible characters and those that turn its direction are shown by their codes.
pub(super) fn pre(text: &str) -> Markup {
    html! { pre tabindex="0" { (Escaped::text(text)) } }
}

pub(super) fn time(at: Option<&str>) -> Markup {
    html! { @if let Some(at) = at { time datetime=(at) { (at) } } }
}

/// The local part of the name of a payload.
fn local(payload: &str) -> &str {
    payload.rsplit('}').next().unwrap_or(payload)
}

/// The end of an id, by which its elements are told apart.
fn short(id: &str) -> &str {
    id.get(id.len().saturating_sub(12)..).unwrap_or(id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_length_of_time_has_its_two_greatest_units() {
        let lengths =
            [4, 1_234, 59_999, 60_000, 3_599_999, 3_600_000, 90_061_000].map(Duration::from_millis).map(length);
        assert_eq!(lengths, ["0.004 s", "1.234 s", "59.999 s", "1 min 0 s", "59 min 59 s", "1 h 0 min", "1 d 1 h"]);
    }
}
