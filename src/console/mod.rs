//! The console: pages for operators and people at the address of the gateway. They are made here and need no script; with it a page
//! is live over one WebSocket, on which the server sends the rows that have changed.
//!
//! A browser is signed in by a cookie, which holds for the console alone: the calls of the API take tokens. What acts has to
//! come from a page of this address (`Origin`), and everything foreign is escaped.

mod graph;
mod live;
mod page;
mod repaired;
mod sign_in;
mod views;

use std::collections::{BTreeSet, HashMap};
use std::fmt::Display;
use std::sync::Arc;

use axum::extract::{FromRequestParts, Path, Request, State};
use axum::http::header::{self, HeaderName, HeaderValue};
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::middleware::{Next, from_fn, map_response};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Extension, Router};
use bytes::Bytes;
use maud::html;
use systole_core::vocab::Name;

use self::live::OpenPages;
use self::page::{Page, Viewer, document};
use self::views::{Place, Written};
use crate::gateway::pages::{AppState, Authenticated, Caller, Problem, Rejection, Routes, body, fields, typed};
use crate::gateway::{Gateway, PrincipalKind};
use crate::operations::{Act, Letters, Outcome, Questions, Wanted};

const STYLE: &str = include_str!("console.css");
const SCRIPT: &str = include_str!("console.js");
const PICTURE: &str = include_str!("console.svg");
/// The paths of the style and the script. Browsers ask again after an hour.
const STYLE_PATH: &str = "/console.css";
const SCRIPT_PATH: &str = "/console.js";
const LIVE_PATH: &str = "/live";

/// The most conversations of one act on a filter.
const MOST: usize = 1000;

/// The first segments of the paths of the console.
const PATHS: [&str; 20] = [
    "",
    "act",
    "acts",
    "check",
    "console.css",
    "console.js",
    "console.svg",
    "conversations",
    "dead-letters",
    "listeners",
    "live",
    "login",
    "logout",
    "mailboxes",
    "messages",
    "models",
    "questions",
    "schedules",
    "tasks",
    "threads",
];

/// Returns whether a path is one of the console.
fn is_page(path: &str) -> bool {
    PATHS.contains(&path.trim_start_matches('/').split('/').next().unwrap_or_default())
}

/// Serves the console by way of a gateway.
pub fn serve(gateway: Gateway) -> Gateway {
    gateway.with_pages(routes(), is_page)
}

/// The routes of the console.
fn routes() -> Routes {
    let file = |kind: &'static str, text: &'static str| {
        get(async move || {
            let mut response = typed(StatusCode::OK, kind, text);
            response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("max-age=3600"));
            response
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
        .route("/schedules", page())
        .route("/tasks", page())
        .route("/listeners", page())
        .route("/listeners/{name}", page())
        .route("/models", page())
        .route("/acts", page())
        .route("/act", post(act))
        .route("/check", post(check))
        .route(LIVE_PATH, get(live::live))
        .route("/login", get(sign_in::form).post(sign_in::sign_in))
        .route("/logout", post(sign_in::sign_out))
        .route(STYLE_PATH, file("text/css; charset=utf-8", STYLE))
        .route(SCRIPT_PATH, file("text/javascript; charset=utf-8", SCRIPT))
        .route("/console.svg", file("image/svg+xml", PICTURE))
        .layer(Extension(Arc::<OpenPages>::default()))
        .layer(from_fn(check_origin))
        .layer(map_response(dressed))
}

/// Puts the headers on an answer that keep a page to itself.
async fn dressed(mut response: Response) -> Response {
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
    typed(status, "text/html; charset=utf-8", text)
}

/// Sends the browser to another page of the console.
fn see(path: &str) -> Response {
    let mut response = StatusCode::SEE_OTHER.into_response();
    let to = HeaderValue::from_str(path).unwrap_or(HeaderValue::from_static("/"));
    response.headers_mut().insert(header::LOCATION, to);
    response
}

/// A problem that a page tells of; to the log and the figures it stays a problem.
struct PageProblem(Problem);

impl<E: Into<Problem>> From<E> for PageProblem {
    fn from(error: E) -> Self {
        Self(error.into())
    }
}

impl IntoResponse for PageProblem {
    fn into_response(self) -> Response {
        let problem = self.0.into_response();
        let detail = problem.extensions().get().map(|Rejection { detail, .. }| detail.clone()).unwrap_or_default();
        let title = problem.status().canonical_reason().unwrap_or("Refused");
        let body = html! { h1 { (title) } p.said { (detail) } p { a href="/" { "To the start" } } };
        let mut response = html_page(problem.status(), document(title, None, "", &body));
        *response.extensions_mut() = problem.extensions().clone();
        response
    }
}

/// Lets a request that acts, or opens the WebSocket, come from a page of this address alone (RFC 6454, section 7).
async fn check_origin(request: Request, next: Next) -> Result<Response, PageProblem> {
    let is_look = request.method().is_safe() && request.uri().path() != LIVE_PATH;
    if is_look || is_of_own_page(request.headers()) {
        return Ok(next.run(request).await);
    }
    let why = "the console is acted on from its own pages: Origin has to be that of Host";
    Err(Problem::forbidden(why).into())
}

fn is_of_own_page(headers: &HeaderMap) -> bool {
    let text = |name| headers.get(name).and_then(|value: &HeaderValue| value.to_str().ok());
    let origin = text(header::ORIGIN).and_then(|origin| origin.split_once("://"));
    // A proxy in front may speak TLS for the gateway.
    let origin = origin.filter(|(scheme, _)| matches!(*scheme, "http" | "https")).map(|(_, authority)| authority);
    origin.is_some() && origin == text(header::HOST)
}

/// The signed-in person and their rights.
struct Visitor {
    caller: Caller,
    is_admin: bool,
}

impl FromRequestParts<Arc<AppState>> for Visitor {
    /// The way to the page on which to sign in, and from there back.
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, _: &Arc<AppState>) -> Result<Self, Response> {
        let known = parts.extensions.get::<Arc<Authenticated>>();
        let visitor = known.and_then(|known| {
            let caller = known.caller();
            let is_admin = caller.who().kind == PrincipalKind::Admin;
            let may = is_admin || caller.who().kind == PrincipalKind::Person;
            may.then_some(Self { caller, is_admin })
        });
        visitor.ok_or_else(|| {
            let page = Place::of(&parts.uri).and_then(|_| parts.uri.path_and_query());
            let then = page.map_or("/", |page| page.as_str());
            let then = percent_encoding::utf8_percent_encode(then, percent_encoding::NON_ALPHANUMERIC);
            see(&format!("/login?then={then}"))
        })
    }
}

impl Visitor {
    fn questions<'a>(&self, app: &'a AppState) -> Result<Questions<'a>, Problem> {
        Ok(app.organism().questions(self.caller.answerer()?))
    }

    fn name(&self) -> &Name {
        &self.caller.who().name
    }

    /// Writes a page for them.
    fn page(&self, app: &AppState, status: StatusCode, page: &Page) -> Result<Response, Problem> {
        let viewer = Viewer {
            organism: app.organism().blueprint().organism.clone(),
            name: self.name().to_string(),
            is_admin: self.is_admin,
            questions: self.questions(app)?.waiting(),
        };
        Ok(html_page(status, document(&page.title, Some(&viewer), page.entry, &page.body())))
    }
}

/// Shows a page.
async fn show(State(app): State<Arc<AppState>>, visitor: Visitor, uri: Uri) -> Result<Response, PageProblem> {
    fields(uri.query().unwrap_or_default().as_bytes())?;
    let place = Place::of(&uri).ok_or_else(|| Problem::not_found("there is no such page"))?;
    if !visitor.is_admin && !place.is_for_people() {
        return match uri.path() {
            "/" => Ok(see("/questions")),
            _ => Err(Problem::forbidden("that page is for admins").into()),
        };
    }
    let page = place.render(&app, &visitor, false).await?;
    Ok(visitor.page(&app, StatusCode::OK, &page)?)
}

/// The fields of a form.
struct Form(Vec<(String, String)>);

impl Form {
    fn read(body: &[u8]) -> Result<Self, Problem> {
        fields(body).map(Self)
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
async fn act(State(app): State<Arc<AppState>>, visitor: Visitor, request: Request) -> Result<Response, PageProblem> {
    if !visitor.is_admin {
        return Err(Problem::forbidden("that is for admins").into());
    }
    let form = Form::read(&body(&app, request).await?)?;
    let operations = app.organism().operations(visitor.name().clone());
    let acts = acts(&app, &visitor, &form).await?;
    let mut outcomes: Vec<Outcome> = Vec::new();
    for act in &acts {
        match operations.act(act).await {
            Ok(done) => outcomes.extend(done),
            // One of them that fails leaves the others.
            Err(error) if acts.len() > 1 => outcomes.push(Outcome::of(subject(act), Some(error.to_string()))),
            Err(error) => return Err(error.into()),
        }
    }
    let back = form.text("back").filter(|back| is_here(back)).unwrap_or_else(|| "/".to_owned());
    if let [Outcome { error: None, opened, .. }] = &outcomes[..] {
        return Ok(see(&opened.as_ref().map_or(back, |opened| format!("/conversations/{opened}"))));
    }
    let page = views::outcomes(&form.text("act").unwrap_or_default(), &outcomes, &back);
    Ok(visitor.page(&app, StatusCode::OK, &page)?)
}

/// `POST /check`: judges the edit of a retry while an operator writes it.
async fn check(
    State(app): State<Arc<AppState>>,
    visitor: Result<Visitor, Response>,
    request: Request,
) -> Result<Response, PageProblem> {
    let Some(visitor) = visitor.ok().filter(|visitor| visitor.is_admin) else {
        return Err(Problem::forbidden("that is for admins").into());
    };
    let form = Form::read(&body(&app, request).await?)?;
    let operations = app.organism().operations(visitor.name().clone());
    Ok(judged(operations.judge_edit(&form.text("text").unwrap_or_default())))
}

/// Tells of a judgement while the text is written.
fn judged(judgement: Result<String, impl Display>) -> Response {
    let (status, text) = match judgement {
        Ok(text) => (StatusCode::OK, text),
        Err(error) => (StatusCode::UNPROCESSABLE_ENTITY, error.to_string()),
    };
    typed(status, "text/plain; charset=utf-8", text)
}

/// Returns whether a place to go back to is a page here.
///
/// Browsers take `\` for `/`, and leave tabs and line ends out of an address (URL Standard, 4.4).
fn is_here(path: &str) -> bool {
    path.starts_with('/') && !path.starts_with("//") && !path.contains(|c: char| c == '\\' || c.is_control())
}

/// The subject of an act.
fn subject(act: &Act) -> String {
    match act {
        Act::Cancel { conversation, .. } | Act::Retry { conversation, .. } => conversation.clone(),
        Act::Pause { listener } | Act::Resume { listener } => listener.clone(),
        Act::PauseSchedule { schedule } | Act::ResumeSchedule { schedule } | Act::RunSchedule { schedule } => {
            schedule.clone()
        }
        _ => act.name().to_owned(),
    }
}

/// The acts of a form.
async fn acts(app: &AppState, visitor: &Visitor, form: &Form) -> Result<Vec<Act>, Problem> {
    let name = form.text("act").unwrap_or_default();
    fields(form.text("filter").unwrap_or_default().as_bytes())?;
    let none = || Problem::bad_request("nothing is checked: check what the act is about, or choose all that match");
    let listener = || form.text("listener").ok_or_else(|| Problem::bad_request("listener: name one"));
    let schedule = || form.text("schedule").ok_or_else(|| Problem::bad_request("schedule: name one"));
    let letters = || {
        let filter = form.text("filter").map(|filter| Place::wanted_of(&filter));
        let ids: Vec<_> = form.all("id").collect();
        match filter {
            Some(Wanted { from, listener, payload, fault, text, since, until, .. }) => {
                Ok(Letters { ids: None, from, listener, payload, fault, text, since, until })
            }
            None if ids.is_empty() => Err(none()),
            None if ids.len() > MOST => Err(Problem::bad_request(format!("an act is about {MOST} letters at most"))),
            None => Ok(Letters { ids: Some(ids), ..Letters::default() }),
        }
    };
    Ok(match name.as_str() {
        "pause" => vec![Act::Pause { listener: listener()? }],
        "resume" => vec![Act::Resume { listener: listener()? }],
        "pause-schedule" => vec![Act::PauseSchedule { schedule: schedule()? }],
        "resume-schedule" => vec![Act::ResumeSchedule { schedule: schedule()? }],
        "run-schedule" => vec![Act::RunSchedule { schedule: schedule()? }],
        "reload" => vec![Act::Reload {}],
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
            if ids.len() > MOST {
                return Err(Problem::bad_request(format!("an act is about {MOST} conversations at most")));
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
    let operations = app.organism().operations(visitor.name().clone());
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
async fn answer(
    State(app): State<Arc<AppState>>,
    visitor: Visitor,
    Path(id): Path<String>,
    request: Request,
) -> Result<Response, PageProblem> {
    let questions = visitor.questions(&app)?;
    let wants_text = request.headers().get(header::ACCEPT).is_some_and(|accept| accept == "text/plain");
    let form = Form::read(&body(&app, request).await?)?;
    let text = form.all("text").next().unwrap_or_default();
    let entry = || Bytes::from(text.clone());
    let deed = form.text("deed").unwrap_or_default();
    // A preview says what would be sent.
    let done = match deed.as_str() {
        "fill" | "send" => return fill(&app, &visitor, &id, &form, deed == "send").await,
        "preview" => questions.preview(&id, entry()).await.map(Some),
        "answer" => questions.answer(&id, entry()).await.map(|_| None),
        "claim" => questions.claim(&id, false).await.map(|_| None),
        "take" => questions.claim(&id, true).await.map(|_| None),
        "release" => questions.release(&id).await.map(|_| None),
        "decline" => questions.decline(&id, &form.text("reason").unwrap_or_default()).await.map(|_| None),
        _ => return Err(Problem::bad_request(format!("deed: '{deed}' is none of the console")).into()),
    };
    if wants_text {
        return Ok(judged(done.map(Option::unwrap_or_default)));
    }
    let (status, said) = match &done {
        Ok(None) if matches!(deed.as_str(), "answer" | "decline") => return Ok(see("/questions")),
        Ok(None) => return Ok(see(&format!("/questions/{id}"))),
        Ok(Some(preview)) => (StatusCode::OK, preview.clone()),
        Err(error) => (StatusCode::UNPROCESSABLE_ENTITY, error.to_string()),
    };
    // What the person has written stays.
    let written = Written { text: Some(text), said: Some((said, done.is_ok())), ..Written::default() };
    match views::question(&app, &visitor, &id, written).await {
        Ok(page) => Ok(visitor.page(&app, status, &page)?),
        // The question has ended meanwhile: the reason is what there is to say.
        Err(problem) => Err(done.err().map_or(problem, Problem::from).into()),
    }
}

/// Shows a form with the answers of its fields, or sends the payload that they make.
async fn fill(
    app: &Arc<AppState>,
    visitor: &Visitor,
    id: &str,
    form: &Form,
    sends: bool,
) -> Result<Response, PageProblem> {
    let of = form.text("form").ok_or_else(|| Problem::bad_request("form: the payload is missing"))?;
    // A browser ends lines by a carriage return and a line feed.
    let fields = form.0.iter().filter_map(|(name, value)| Some((name.strip_prefix(views::FIELD)?, value)));
    let answers: HashMap<_, _> = fields.map(|(key, value)| (key.to_owned(), value.replace("\r\n", "\n"))).collect();
    let mut written = Written { form: Some((of.clone(), answers.clone())), ..Written::default() };
    let mut status = StatusCode::OK;
    if sends {
        let questions = visitor.questions(app)?;
        let why = match questions.form(id, &of, answers).await.map_err(Problem::from)?.payload {
            Some(Ok(payload)) => match questions.answer(id, payload.into()).await {
                Ok(_) => return Ok(see("/questions")),
                Err(error) => Some(error.to_string()),
            },
            // The page says it.
            Some(Err(_)) => None,
            None => Some("nothing was sent: answer every question".to_owned()),
        };
        (status, written.said) = (StatusCode::UNPROCESSABLE_ENTITY, why.map(|why| (why, false)));
    }
    let page = views::question(app, visitor, id, written).await?;
    Ok(visitor.page(app, status, &page)?)
}
