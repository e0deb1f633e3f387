//! A page that is open: its rows are made anew when something happened, and those that have changed are sent.

use std::collections::HashMap;
use std::future::pending;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::Extension;
use axum::extract::ws::rejection::WebSocketUpgradeRejection;
use axum::extract::ws::{Message, WebSocket, WebSocketUpgrade};
use axum::extract::{Request, State};
use axum::http::Uri;
use axum::response::{IntoResponse, Response};
use systole_core::vocab::Name;
use tokio::time::{Instant, sleep, timeout, timeout_at};

use super::Visitor;
use super::page::Shown;
use super::views::Place;
use crate::accept::RequestPermit;
use crate::drafts::Drafts;
use crate::gateway::pages::{AppState, Authenticated, Problem};
use crate::runtime::{Events, Observed};

/// Most bytes of a frame of a browser: it sends its path.
const HEARD: usize = 8 << 10;
/// Time for the browser to send it.
const BEGIN: Duration = Duration::from_secs(10);
/// Time in which events gather: a page changes twice a second at most.
const GATHER: Duration = Duration::from_millis(500);
/// Most events that are taken at once.
const BATCH: usize = 256;
/// Interval of looks at what has no events: mailboxes, tasks, slots.
const QUIET: Duration = Duration::from_secs(3);
/// Time for the browser to take a change.
const TAKES: Duration = Duration::from_secs(30);

/// Most pages that are open at once for one name.
const PAGES: usize = 32;

/// The pages that are open, by the name of who looks at them.
#[derive(Debug, Default)]
pub(super) struct OpenPages(Mutex<HashMap<Name, usize>>);

/// An open page; dropped, it is closed.
struct OpenPage {
    pages: Arc<OpenPages>,
    name: Name,
}

impl OpenPages {
    /// Opens a page, unless there are too many of that name.
    fn open(self: &Arc<Self>, name: &Name) -> Option<OpenPage> {
        let mut pages = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let count = pages.entry(name.clone()).or_default();
        *count = Some(*count + 1).filter(|count| *count <= PAGES)?;
        Some(OpenPage { pages: self.clone(), name: name.clone() })
    }
}

impl Drop for OpenPage {
    fn drop(&mut self) {
        let mut pages = self.pages.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = pages.get_mut(&self.name) {
            *count -= 1;
            if *count == 0 {
                pages.remove(&self.name);
            }
        }
    }
}

/// `GET /live`
pub(super) async fn live(
    State(app): State<Arc<AppState>>,
    Extension(pages): Extension<Arc<OpenPages>>,
    visitor: Result<Visitor, Response>,
    upgrade: Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
    request: Request,
) -> Response {
    let known = request.extensions().get::<Arc<Authenticated>>().cloned();
    let (Ok(visitor), Some(known)) = (visitor, known) else { return Problem::unauthorized().into_response() };
    let Ok(upgrade) = upgrade else { return Problem::bad_request("a WebSocket belongs here").into_response() };
    let Some(page) = pages.open(visitor.name()) else {
        let why = format!("{PAGES} pages are live for {}: close one", visitor.name());
        return Problem::too_many("pages", why, 30).into_response();
    };
    let permit = request.extensions().get::<RequestPermit>().cloned();
    upgrade.max_message_size(HEARD).max_frame_size(HEARD).write_buffer_size(0).on_upgrade(async move |socket| {
        // The reasons to end are all the same to the browser, which connects again.
        let _ = feed(&app, &visitor, &known, socket).await;
        drop((permit, page));
    })
}

/// Sends changes until the browser leaves, its token is revoked or the organism stops.
async fn feed(app: &AppState, visitor: &Visitor, known: &Authenticated, mut socket: WebSocket) -> Option<()> {
    let Ok(Some(Ok(Message::Text(path)))) = timeout(BEGIN, socket.recv()).await else { return None };
    let place = Place::of(&path.parse::<Uri>().ok()?)?;
    if !visitor.is_admin && !place.is_for_people() {
        return None;
    }
    // From before the first look, so that no change falls between the two.
    let mut events = app.organism().events()?;
    let mut shown = Shown::default();
    let mut drafts = match place.conversation() {
        Some(conversation) => Some(app.organism().drafts(conversation, None).await),
        None => None,
    };
    while !app.is_stopping() && known.is_valid(app).await {
        let page = tokio::select! {
            page = place.render(app, visitor, true) => page.ok()?,
            () = left(&mut socket) => return None,
        };
        let questions = visitor.questions(app).ok()?.waiting();
        if let Some(changes) = shown.update(page, questions) {
            let text = serde_json::to_string(&changes).ok()?;
            timeout(TAKES, socket.send(Message::text(text))).await.ok()?.ok()?;
        }
        let gathered = Instant::now() + GATHER;
        tokio::select! {
            () = news(&mut events, &place) => {}
            () = draft_news(drafts.as_mut()) => {}
            () = sleep(QUIET) => {}
            () = app.stopping() => return None,
            () = left(&mut socket) => return None,
        }
        if timeout_at(gathered, left(&mut socket)).await.is_ok() {
            return None;
        }
    }
    None
}

/// Waits for an event that the page shows.
async fn news(events: &mut Events, place: &Place) {
    let mut taken = Vec::new();
    while events.take(BATCH, &mut taken).await {
        let is_news = |observed| match observed {
            Observed::Missed(_) => true,
            Observed::Event(event) => place.shows(&event),
        };
        if taken.drain(..).any(is_news) {
            return;
        }
    }
    std::future::pending().await
}

/// Waits until a draft of the page's conversation has grown or ended.
async fn draft_news(drafts: Option<&mut Drafts>) {
    let Some(drafts) = drafts else { return pending().await };
    match drafts.next().await {
        // The page reads all of them anew.
        Some(_) => while drafts.try_next().is_some() {},
        None => pending().await,
    }
}

/// Waits for the end of the connection. What the browser says else is not for anybody.
async fn left(socket: &mut WebSocket) {
    while let Some(Ok(message)) = socket.recv().await {
        if matches!(message, Message::Close(_)) {
            return;
        }
    }
}
