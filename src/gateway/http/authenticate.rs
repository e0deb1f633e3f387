//! The checks before every call: of its head, of its principal, and of the room for it. Nothing of a body is read here;
//! no other code reads a body without a [`Authenticated`] caller, but for the form in which a browser signs in.
//!
//! A token can be revoked while its call waits or its body comes. Then it is checked again ([`Authenticated::is_valid`]): when
//! the body was read, and before an effect or an answer after a wait. A call that had its effect is never answered with
//! 401.

use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use axum::Extension;
use axum::extract::{Request, State};
use axum::http::HeaderMap;
use axum::http::header::{AUTHORIZATION, CONNECTION, HeaderValue};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use tokio::time::{Instant, sleep, sleep_until};

use super::AppState;
use super::bodies::Held;
use super::browser::Session;
use super::failures::Reason;
use super::unauthenticated::{RATE, RequestGroup, Turn};
use super::{protocol, rejections};
use crate::accept::{ClientSide, RequestPermit};
use crate::gateway::problem::Problem;
use crate::gateway::{Principal, PrincipalKind};
use crate::journal::QueryError;
use crate::listeners::human::CALLER;
use systole_core::vocab::Name;
use systole_store::principal::TokenHash;
use systole_store::token;

/// Calls of monitoring. They need no token, and always find room.
const MONITORING: [&str; 3] = ["/livez", "/readyz", "/metrics"];

/// Other calls that need no token: the description of all calls, and the public keys.
const PUBLIC: [&str; 2] = ["/openapi.json", "/.well-known/jwks.json"];

/// A call or a body that takes longer may outlive its token.
pub(super) const LONG: Duration = Duration::from_millis(10);

/// Time for which a caller that has closed its side of the connection waits for the answer to its message.
const WAITS: Duration = Duration::from_secs(5);

/// The caller of a request, among its extensions. Without one no body is read.
pub struct Authenticated {
    pub(in crate::gateway) principal: Principal,
    credential: Credential,
    /// The bytes of the request's body that are in memory.
    held: Held,
    client: Option<ClientSide>,
}

/// Evidence of who a caller is.
#[derive(Clone, Copy)]
pub(super) enum Credential {
    /// A token in the request.
    Token(TokenHash),
    /// A browser that signed in: by a token, or as an operator by a link of the program.
    SignedIn(Session),
}

impl Credential {
    /// The principal that it shows now, if any.
    async fn principal(self, app: &AppState) -> Result<Option<Principal>, QueryError> {
        let token = match self {
            Self::Token(token) => token,
            Self::SignedIn(session) if app.link.is_over(app, &session).await? => return Ok(None),
            Self::SignedIn(Session { token: Some(token), .. }) => token,
            Self::SignedIn(Session { token: None, until, .. }) => {
                let (name, kind) = (Name::system(), PrincipalKind::Admin);
                // The same for each request.
                return Ok(Some(Principal { name, kind, created: until }));
            }
        };
        Ok(app.query.bearer(token).await?.filter(|principal| is_here(app, principal)))
    }
}

impl Authenticated {
    /// The principal of the request.
    pub fn who(&self) -> &Principal {
        &self.principal
    }

    /// Adds bytes of the request's body to those in memory, until its answer begins.
    pub(super) fn hold(&self, bytes: usize) -> Result<(), Problem> {
        self.held.more(bytes)
    }

    /// Room for the bytes of the answer, which is empty at first.
    pub(crate) fn answer_bytes(&self, app: &AppState) -> Held {
        app.edge.bodies.hold(self.principal.name.clone())
    }

    /// Waits until the caller has closed its side of the connection: it may have left, and takes no message.
    pub(super) async fn left(&self) {
        match &self.client {
            Some(client) => client.closed().await,
            None => pending().await,
        }
    }

    /// Waits until that time, or until the caller has closed its side.
    pub(super) async fn over(&self, until: Instant) {
        tokio::select! {
            () = sleep_until(until) => {}
            () = self.left() => {}
        }
    }

    /// Waits until that time, or a while after the caller has closed its side: it may await an answer to it alone.
    pub(super) async fn over_for_answer(&self, until: Instant) {
        let left = async {
            self.left().await;
            sleep(WAITS).await;
        };
        tokio::select! {
            () = sleep_until(until) => {}
            () = left => {}
        }
    }

    /// Waits until a while after the caller has closed its side: until then it may await an answer.
    #[cfg(feature = "mcp")]
    pub async fn gone(&self) {
        self.left().await;
        sleep(WAITS).await;
    }

    /// The session of the browser, if it is one that signed in.
    pub(crate) fn session(&self) -> Option<Session> {
        match self.credential {
            Credential::SignedIn(session) => Some(session),
            Credential::Token(_) => None,
        }
    }

    /// Checks whether the token, or the cookie, is still that of the same principal.
    pub async fn is_valid(&self, app: &AppState) -> bool {
        self.credential.principal(app).await.is_ok_and(|found| found.as_ref() == Some(&self.principal))
    }
}

/// Admits a request, or refuses it.
pub(super) async fn enter(State(app): State<Arc<AppState>>, mut request: Request, next: Next) -> Response {
    if let Err(problem) = protocol::judge(&request) {
        return problem.into_response();
    }
    let permit = request.extensions().get::<RequestPermit>().cloned();
    let client = request.extensions().get::<ClientSide>().cloned();
    let is_monitoring = MONITORING.contains(&request.uri().path());
    let is_open = is_monitoring || PUBLIC.contains(&request.uri().path());
    let (credential, principal) = match bearer(request.headers()).filter(|_| !is_open) {
        None => match signed_in(&app, request.uri().path(), request.headers()).await {
            Ok(Some(found)) => found,
            Ok(None) => {
                let group = if is_monitoring { RequestGroup::Monitoring } else { RequestGroup::Other };
                return match wait_for_turn(&app, permit, group).await {
                    Ok(()) => next.run(request).await,
                    Err(problem) => closing(problem),
                };
            }
            Err(error) => return Problem::from(error).into_response(),
        },
        Some(Err(reason)) => return closing(refuse(&app, permit, reason).await),
        Some(Ok(token)) => {
            let credential = Credential::Token(token::hash(token));
            match credential.principal(&app).await {
                Ok(Some(principal)) => (credential, principal),
                // The request is kept meanwhile, so that nothing of its body is read.
                Ok(None) => {
                    let refused = refuse(&app, permit, Reason::Wrong).await;
                    return closing(if (app.removal_notice)(request.uri().path()) {
                        Problem::removed()
                    } else {
                        refused
                    });
                }
                Err(error) => return Problem::from(error).into_response(),
            }
        }
    };
    let is_removal_notice = (app.removal_notice)(request.uri().path());
    let name = rejections::Principal(principal.name.clone());
    let known = match admit(&app, permit, principal, credential) {
        Ok(known) => Arc::new(Authenticated { client, ..known }),
        Err(problem) => return (Extension(name), problem).into_response(),
    };
    request.extensions_mut().insert(known.clone());
    // Calls with another method had their effect.
    let is_safe = request.method().is_safe();
    let began = app.mailboxes.now();
    let mut response = next.run(request).await;
    response.extensions_mut().insert(name);
    if is_safe && app.mailboxes.now().since(began) >= LONG && !known.is_valid(&app).await {
        return closing(if is_removal_notice { Problem::removed() } else { Problem::unauthorized() });
    }
    response
}

/// The person whose browser asks for a page, if they are signed in. A cookie is good for pages alone.
async fn signed_in(
    app: &AppState,
    path: &str,
    headers: &HeaderMap,
) -> Result<Option<(Credential, Principal)>, QueryError> {
    if !app.is_page.is_some_and(|is_page| is_page(path)) {
        return Ok(None);
    }
    let Some(session) = app.link.session(app, headers).await? else { return Ok(None) };
    let credential = Credential::SignedIn(session);
    Ok(credential.principal(app).await?.map(|principal| (credential, principal)))
}

/// Checks whether the organism still has the principal of a token: one that was removed from organism.yaml is unknown.
fn is_here(app: &AppState, principal: &Principal) -> bool {
    match principal.kind {
        PrincipalKind::Admin => true,
        // That word stands for whoever calls, and is no person's.
        PrincipalKind::Person if principal.name.as_str() == CALLER => false,
        PrincipalKind::Person => app.organism.people().knows(&principal.name),
        PrincipalKind::Client => app.submissions.knows(&principal.name),
        PrincipalKind::Listener => app.mailboxes.mode(&principal.name).is_some(),
    }
}

/// Admits a principal within its rate limit, if there is room.
fn admit(
    app: &AppState,
    permit: Option<RequestPermit>,
    principal: Principal,
    credential: Credential,
) -> Result<Authenticated, Problem> {
    app.edge.rate.pass(&principal.name, app.mailboxes.now()).map_err(|seconds| {
        let requests = app.settings.requests;
        Problem::too_many("rate", format!("{} may make {requests} requests a second", principal.name), seconds)
    })?;
    if let Some(permit) = permit {
        permit.enter(&principal.name, principal.kind == PrincipalKind::Admin).map_err(|full| Problem::full(&full))?;
    }
    let held = app.edge.bodies.hold(principal.name.clone());
    Ok(Authenticated { principal, credential, held, client: None })
}

/// The token in the headers, if there is any.
fn bearer(headers: &HeaderMap) -> Option<Result<&str, Reason>> {
    let bearer = headers.get(AUTHORIZATION)?;
    let bearer = bearer.to_str().ok().and_then(|bearer| bearer.split_once(' '));
    let token = bearer.filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer")).map(|(_, token)| token.trim());
    Some(token.ok_or(Reason::Malformed))
}

/// Waits for the turn of a request without a token. Meanwhile its connection may be closed for others.
async fn wait_for_turn(app: &AppState, permit: Option<RequestPermit>, group: RequestGroup) -> Result<(), Problem> {
    let Some(permit) = permit else { return Ok(()) };
    let (wait, admit) = match app.edge.unauthenticated.turn(permit.source(), group, app.mailboxes.now()) {
        Turn::After(Duration::ZERO) => return Ok(()),
        Turn::After(wait) => (wait, true),
        Turn::Refused(wait) => (wait, false),
    };
    permit.allow_eviction();
    tokio::time::sleep(wait).await;
    if admit {
        permit.forbid_eviction();
        return Ok(());
    }
    let detail = format!("an address may make {RATE} requests without a token a second");
    Err(Problem::too_many("rate", detail, 1))
}

/// Refuses a token, the later the more bad ones came from its address. Meanwhile its connection may be closed for
/// others.
async fn refuse(app: &AppState, permit: Option<RequestPermit>, reason: Reason) -> Problem {
    fail(app, permit, reason).await;
    Problem::unauthorized()
}

/// Counts a failure, and waits.
pub(in crate::gateway) async fn fail(app: &AppState, permit: Option<RequestPermit>, reason: Reason) {
    app.edge.failures.count(reason);
    if let Some(permit) = permit {
        let delay = app.edge.failures.fail(permit.source(), app.mailboxes.now());
        permit.allow_eviction();
        tokio::time::sleep(delay).await;
    }
}

fn closing(problem: Problem) -> Response {
    let mut response = problem.into_response();
    response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    response
}
