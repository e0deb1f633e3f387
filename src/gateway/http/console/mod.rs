//! The console: pages for operators and people at the address of the gateway. They are made here and need no script; with it a page
//! is live over one WebSocket, on which the server sends the rows that have changed.
//!
//! A browser is signed in by a cookie, which holds for the console alone: the calls of the API take tokens. What acts has to
//! come from a page of this address (`Origin`), and everything foreign is escaped.

mod live;
mod page;
mod sign_in;
mod views;

use std::collections::BTreeSet;
use std::sync::Arc;

use axum::Router;
use axum::extract::{Path, Request, State};
use axum::http::header::{self, HeaderName, HeaderValue};
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use bytes::Bytes;
use maud::{Markup, html};
use systole_core::vocab::Name;

use self::page::{Viewer, document};
use self::views::Place;
use super::authenticate::Authenticated;
use super::caller::Caller;
use super::{AppState, Routes, view};
use crate::gateway::PrincipalKind;
use crate::gateway::problem::{Problem, Rejection};
use crate::operations::{Act, Letters, Outcome, Questions, Wanted};

const STYLE: &str = include_str!("console.css");
const SCRIPT: &str = include_str!("console.js");
const PICTURE: &str = include_str!("console.svg");
/// The paths of the style and the script. Browsers ask again after an hour.
const STYLE_PATH: &str = "/console.css";
const SCRIPT_PATH: &str = "/console.js";

/// The most conversations of one act on a filter.
const MOST: usize = 1000;

/// The routes of the console.
pub(in crate::gateway) fn routes() -> Routes {
    let file = |kind: &'static str, text: &'static str| {
        get(async move || {
            let mut response = view::typed(StatusCode::OK, kind, text);
            response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("max-age=3600"));
            dressed(response)
        })
    };
    let page = || get(show);
    Router::new()
        .route("/", page())
        .route("/conversations/{id}", page())
        .route("/threads/{id}", page())
        .route("/messages/{id}", page())
        .route("/questions", page())
        .route("/questions/{id}", get(show).post(answer))
        .route("/dead-letters", page())
        .route("/mailboxes", page())
        .route("/tasks", page())
        .route("/listeners", page())
        .route("/models", page())
        .route("/acts", page())
        .route("/act", post(act))
        .route("/check", post(check))
        .route("/live", get(live::live))
        .route("/login", get(sign_in::form).post(sign_in::sign_in))
        .route("/logout", post(sign_in::sign_out))
        .route(STYLE_PATH, file("text/css; charset=utf-8", STYLE))
        .route(SCRIPT_PATH, file("text/javascript; charset=utf-8", SCRIPT))
        .route("/console.svg", file("image/svg+xml", PICTURE))
}

/// Puts the headers on an answer that keep a page to itself.
fn dressed(mut response: Response) -> Response {
    const POLICY: &str = "default-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'";
    let fields = [
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        // Forms without a referrer would come without their origin.
        (header::REFERRER_POLICY, "same-origin"),
        (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
    ];
    let headers = response.headers_mut();
    for (name, value) in fields {
        headers.insert(name, HeaderValue::from_static(value));
    }
    headers.entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    response
}

/// Makes a page of HTML.
fn html_page(status: StatusCode, text: String) -> Response {
    dressed(view::typed(status, "text/html; charset=utf-8", text))
}

/// Sends the browser to another page of the console.
fn see(path: &str) -> Response {
    let mut response = dressed(StatusCode::SEE_OTHER.into_response());
    let to = HeaderValue::from_str(path).unwrap_or(HeaderValue::from_static("/"));
    response.headers_mut().insert(header::LOCATION, to);
    response
}

/// A page that tells of a problem, which stays a problem to the log and the figures.
fn refused(problem: Problem) -> Response {
    let problem = problem.into_response();
    let detail = problem.extensions().get().map(|Rejection { detail, .. }| detail.clone()).unwrap_or_default();
    let title = problem.status().canonical_reason().unwrap_or("Refused");
    let body = html! { h1 { (title) } p.said { (detail) } p { a href="/" { "To the start" } } };
    let mut response = html_page(problem.status(), document(title, None, "", &body));
    *response.extensions_mut() = problem.extensions().clone();
    response
}

/// Checks that a request which acts comes from a page of this address (RFC 6454, section 7).
fn same_origin(headers: &HeaderMap) -> Result<(), Problem> {
    let text = |name| headers.get(name).and_then(|value: &HeaderValue| value.to_str().ok());
    let origin = text(header::ORIGIN).and_then(|origin| origin.split_once("://")).map(|(_, authority)| authority);
    match origin.is_some() && origin == text(header::HOST) {
        true => Ok(()),
        false => Err(Problem::forbidden("the console is acted on from its own pages: Origin has to be that of Host")),
    }
}

/// The signed-in person and their rights.
struct Visitor {
    caller: Caller,
    is_admin: bool,
}

impl Visitor {
    /// The person who makes a request, if they are signed in, and may see pages.
    fn of(request: &Request) -> Option<Self> {
        let known = request.extensions().get::<Arc<Authenticated>>()?;
        let is_admin = known.principal.kind == PrincipalKind::Admin;
        let may = is_admin || known.principal.kind == PrincipalKind::Person;
        may.then(|| Self { caller: Caller(known.principal.clone()), is_admin })
    }

    fn questions<'a>(&self, app: &'a AppState) -> Result<Questions<'a>, Problem> {
        Ok(app.organism.questions(self.caller.answerer()?))
    }

    fn name(&self) -> &Name {
        &self.caller.0.name
    }

    /// The number of questions that wait for them.
    async fn waiting(&self, app: &AppState) -> Result<usize, Problem> {
        let one = Wanted { limit: Some(1), ..Wanted::default() };
        Ok(self.questions(app)?.list(&one).await?.waiting)
    }

    /// The head of their pages.
    async fn viewer(&self, app: &AppState) -> Result<Viewer, Problem> {
        Ok(Viewer {
            organism: app.organism.blueprint().organism.to_string(),
            name: self.name().to_string(),
            is_admin: self.is_admin,
            questions: self.waiting(app).await?,
        })
    }

    /// Writes a page around a body.
    async fn page(&self, app: &AppState, status: StatusCode, title: &str, body: Markup) -> Response {
        match self.viewer(app).await {
            Ok(viewer) => html_page(status, document(title, Some(&viewer), "", &body)),
            Err(problem) => refused(problem),
        }
    }
}

/// Sends somebody who is not signed in to the page for that, and from there back.
fn stranger(uri: &Uri) -> Response {
    let then = percent_encoding::utf8_percent_encode(
        uri.path_and_query().map_or("/", |path| path.as_str()),
        percent_encoding::NON_ALPHANUMERIC,
    );
    see(&format!("/login?then={then}"))
}

/// Shows a page.
async fn show(State(app): State<Arc<AppState>>, request: Request) -> Response {
    let Some(visitor) = Visitor::of(&request) else { return stranger(request.uri()) };
    match shown(&app, &visitor, request.uri()).await {
        Ok(response) => response,
        Err(problem) => refused(problem),
    }
}

async fn shown(app: &AppState, visitor: &Visitor, uri: &Uri) -> Result<Response, Problem> {
    let place = Place::of(uri).ok_or_else(|| Problem::not_found("there is no such page"))?;
    if !visitor.is_admin && !place.is_for_people() {
        return match uri.path() {
            "/" => Ok(see("/questions")),
            _ => Err(Problem::forbidden("that page is for admins")),
        };
    }
    let page = place.render(app, visitor).await?;
    let viewer = visitor.viewer(app).await?;
    Ok(html_page(StatusCode::OK, document(&page.title, Some(&viewer), page.entry, &page.body())))
}

/// The fields of a form.
struct Form(Vec<(String, String)>);

impl Form {
    fn read(body: &[u8]) -> Self {
        Self(url::form_urlencoded::parse(body).into_owned().collect())
    }

    /// A field that is not empty.
    fn text(&self, name: &str) -> Option<String> {
        self.all(name).find(|value| !value.is_empty())
    }

    fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = String> + 'a {
        self.0.iter().filter(move |(key, _)| key == name).map(|(_, value)| value.clone())
    }
}

/// `POST /act`: an act of an operator on what they have checked, or on all that a filter finds.
async fn act(State(app): State<Arc<AppState>>, request: Request) -> Response {
    let Some(visitor) = Visitor::of(&request) else { return stranger(&Uri::from_static("/")) };
    match acted(&app, &visitor, request).await {
        Ok(response) => response,
        Err(problem) => refused(problem),
    }
}

async fn acted(app: &AppState, visitor: &Visitor, request: Request) -> Result<Response, Problem> {
    same_origin(request.headers())?;
    if !visitor.is_admin {
        return Err(Problem::forbidden("that is for admins"));
    }
    let form = Form::read(&super::request::body(app, request).await?);
    let operations = app.organism.operations(visitor.name().clone());
    let acts = acts(app, visitor, &form).await?;
    let mut outcomes: Vec<Outcome> = Vec::new();
    for act in &acts {
        match operations.act(act).await {
            Ok(done) => outcomes.extend(done),
            // One of them that fails leaves the others.
            Err(error) if acts.len() > 1 => outcomes.push(Outcome::failed(subject(act), error.to_string())),
            Err(error) => return Err(error.into()),
        }
    }
    let back = form.text("back").filter(|back| is_here(back)).unwrap_or_else(|| "/".to_owned());
    if let [Outcome { error: None, opened, .. }] = &outcomes[..] {
        return Ok(see(&opened.as_ref().map_or(back, |opened| format!("/conversations/{opened}"))));
    }
    let failed = outcomes.iter().filter(|outcome| outcome.error.is_some()).count();
    let name = form.text("act").unwrap_or_default();
    let body = html! {
        h1 { (name) ": " (outcomes.len() - failed) " done, " (failed) " without an effect" }
        p { a href=(back) { "Back" } }
        div.table { table {
            thead { tr { th scope="col" { "Of" } th scope="col" { "Outcome" } } }
            tbody {
                @for Outcome { of, error, opened, .. } in &outcomes {
                    tr {
                        td.id { (of) }
                        td {
                            @match (error, opened) {
                                (Some(error), _) => span.bad { (error) },
                                (None, Some(opened)) => { "opened " a.id href={ "/conversations/" (opened) } { (opened) } },
                                (None, None) => span.good { "done" },
                            }
                        }
                    }
                }
            }
        } }
    };
    Ok(visitor.page(app, StatusCode::OK, &name, body).await)
}

/// `POST /check`: judges the edit of a retry while an operator writes it.
async fn check(State(app): State<Arc<AppState>>, request: Request) -> Response {
    let Some(visitor) = Visitor::of(&request).filter(|visitor| visitor.is_admin) else {
        return refused(Problem::forbidden("that is for admins"));
    };
    if let Err(problem) = same_origin(request.headers()) {
        return refused(problem);
    }
    let form = match super::request::body(&app, request).await {
        Ok(body) => Form::read(&body),
        Err(problem) => return refused(problem),
    };
    let operations = app.organism.operations(visitor.name().clone());
    let (status, text) = match operations.judge_edit(&form.text("text").unwrap_or_default()) {
        Ok(canonical) => (StatusCode::OK, canonical),
        Err(error) => (StatusCode::UNPROCESSABLE_ENTITY, error.to_string()),
    };
    dressed(view::typed(status, "text/plain; charset=utf-8", text))
}

/// Returns whether a place to go back to is a page here.
fn is_here(path: &str) -> bool {
    path.starts_with('/') && !path.starts_with("//") && !path.contains(['\\', '\r', '\n'])
}

/// What an act is about.
fn subject(act: &Act) -> String {
    match act {
        Act::Cancel { conversation, .. } | Act::Retry { conversation, .. } => conversation.clone(),
        Act::Pause { listener } | Act::Resume { listener } => listener.clone(),
        _ => act.name().to_owned(),
    }
}

/// The acts of a form.
async fn acts(app: &AppState, visitor: &Visitor, form: &Form) -> Result<Vec<Act>, Problem> {
    let name = form.text("act").unwrap_or_default();
    let none = || Problem::bad_request("nothing is checked: check what the act is about, or choose all that match");
    let listener = || form.text("listener").ok_or_else(|| Problem::bad_request("listener: name one"));
    let letters = || {
        let filter = form.text("filter").map(|filter| Place::wanted_of(&filter));
        let ids: Vec<_> = form.all("id").collect();
        match filter {
            Some(Wanted { from, listener, payload, fault, text, since, until, .. }) => {
                Ok(Letters { ids: None, from, listener, payload, fault, text, since, until })
            }
            None if ids.is_empty() => Err(none()),
            None => Ok(Letters { ids: Some(ids), ..Letters::default() }),
        }
    };
    Ok(match name.as_str() {
        "pause" => vec![Act::Pause { listener: listener()? }],
        "resume" => vec![Act::Resume { listener: listener()? }],
        "redrive" => vec![Act::Redrive { letters: letters()? }],
        "discard" => vec![Act::Discard { letters: letters()? }],
        "cancel" | "retry" => {
            let mut ids: BTreeSet<String> = form.all("id").collect();
            if let Some(filter) = form.text("filter") {
                ids.extend(found(app, visitor, &filter, name == "cancel").await?);
            }
            if ids.is_empty() {
                return Err(none());
            }
            let act = |conversation: String| match name.as_str() {
                "cancel" => Act::Cancel { conversation, thread: form.text("thread") },
                _ => Act::Retry { conversation, at: form.text("at"), edit: form.text("edit"), owner: form.text("as") },
            };
            ids.into_iter().map(act).collect()
        }
        _ => return Err(Problem::bad_request(format!("act: '{name}' is none of the console"))),
    })
}

/// The conversations that a filter finds, 1,000 at most; `open`: of those the open ones.
async fn found(app: &AppState, visitor: &Visitor, filter: &str, open: bool) -> Result<Vec<String>, Problem> {
    let operations = app.organism.operations(visitor.name().clone());
    let mut wanted = Wanted { limit: Some(500), after: None, ..Place::wanted_of(filter) };
    if open {
        wanted.open = Some(true);
    }
    let mut found = Vec::new();
    loop {
        let page = operations.conversations(&wanted).await?;
        found.extend(page.items.into_iter().map(|item| item.conversation));
        if found.len() > MOST {
            let why = format!("the filter finds more than {MOST} conversations: narrow it, or act in several steps");
            return Err(Problem::bad_request(why));
        }
        wanted.after = match page.next {
            Some(next) => Some(next),
            None => return Ok(found),
        };
    }
}

/// `POST /questions/{id}`: an act of a person on a question.
async fn answer(State(app): State<Arc<AppState>>, Path(id): Path<String>, request: Request) -> Response {
    let Some(visitor) = Visitor::of(&request) else { return stranger(request.uri()) };
    match answered(&app, &visitor, &id, request).await {
        Ok(response) => response,
        Err(problem) => refused(problem),
    }
}

async fn answered(app: &AppState, visitor: &Visitor, id: &str, request: Request) -> Result<Response, Problem> {
    same_origin(request.headers())?;
    let questions = visitor.questions(app)?;
    let wants_text = request.headers().get(header::ACCEPT).is_some_and(|accept| accept == "text/plain");
    let form = Form::read(&super::request::body(app, request).await?);
    let text = form.all("text").next().unwrap_or_default();
    let entry = || Bytes::from(text.clone());
    let deed = form.text("deed").unwrap_or_default();
    let mut preview = None;
    let done = match deed.as_str() {
        "preview" => questions.preview(id, entry()).await.map(|judged| preview = Some(judged)),
        "answer" => questions.answer(id, entry()).await.map(drop),
        "claim" => questions.claim(id, false).await.map(drop),
        "take" => questions.claim(id, true).await.map(drop),
        "release" => questions.release(id).await.map(drop),
        "decline" => questions.decline(id, form.text("reason").unwrap_or_default().as_str()).await.map(drop),
        _ => return Err(Problem::bad_request(format!("deed: '{deed}' is none of the console"))),
    };
    if wants_text {
        let (status, text) = match (done, preview) {
            (Ok(()), preview) => (StatusCode::OK, preview.unwrap_or_default()),
            (Err(error), _) => (StatusCode::UNPROCESSABLE_ENTITY, error.to_string()),
        };
        return Ok(dressed(view::typed(status, "text/plain; charset=utf-8", text)));
    }
    match (done, preview) {
        (Ok(()), None) if matches!(deed.as_str(), "answer" | "decline") => Ok(see("/questions")),
        (Ok(()), None) => Ok(see(&format!("/questions/{id}"))),
        // What the person has written stays.
        (done, preview) => {
            let said = match &done {
                Ok(()) => (true, preview.unwrap_or_default()),
                Err(error) => (false, error.to_string()),
            };
            let status = if said.0 { StatusCode::OK } else { StatusCode::UNPROCESSABLE_ENTITY };
            match views::question(app, visitor, id, Some((&text, &said.1, said.0))).await {
                Ok(page) => {
                    let viewer = visitor.viewer(app).await?;
                    Ok(html_page(status, document(&page.title, Some(&viewer), page.entry, &page.body())))
                }
                // The question has ended meanwhile: the reason is what there is to say.
                Err(problem) => Err(done.err().map_or(problem, Problem::from)),
            }
        }
    }
}
