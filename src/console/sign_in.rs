//! Signing in: a token, or a link that the program prints once, becomes a cookie.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::{Request, State};
use axum::http::header::{self, HeaderValue};
use axum::http::{Method, StatusCode};
use axum::response::Response;
use blake3::Hash;
use http_body_util::{BodyExt, Limited};
use maud::{Markup, html};
use systole_store::principal::TokenHash;
use systole_store::token;

use super::page::document;
use super::{Form, PageProblem, html_page, is_here, see};
use crate::accept::RequestPermit;
use crate::gateway::PrincipalKind;
use crate::gateway::pages::{AppState, Authenticated, Problem, Query, SIGNED_IN};

/// Most bytes of the form, in which a token is.
const FORM: usize = 1024;

/// An answer that signs a browser in, and shows a page. A redirection behind a link from elsewhere would come without the cookie.
fn signed_in(app: &AppState, token: Option<TokenHash>, then: &str) -> Response {
    let until = app.now().after(SIGNED_IN);
    let body = html! {
        p.signin { "Signed in. " a href=(then) { "Go on" } }
        meta http-equiv="refresh" content={ "0;url=" (then) };
    };
    let mut response = html_page(StatusCode::OK, document("Signed in", None, "", &body));
    set_cookie(app, &mut response, &app.browsers().sign_in(token, until), SIGNED_IN);
    response
}

fn set_cookie(app: &AppState, response: &mut Response, value: &str, age: Duration) {
    let secure = if app.settings().tls.is_some() { "; Secure" } else { "" };
    let age = age.as_secs();
    let name = app.browsers().cookie();
    let cookie = format!("{name}={value}; Path=/; HttpOnly; SameSite=Strict; Max-Age={age}{secure}");
    if let Ok(cookie) = HeaderValue::from_str(&cookie) {
        response.headers_mut().insert(header::SET_COOKIE, cookie);
    }
}

fn page(said: Option<&str>, then: &str) -> Markup {
    html! {
        form.signin method="post" action="/login" {
            h1 { "Systole" }
            @if let Some(said) = said { p.said role="alert" { (said) } }
            label for="token" { "Token of an admin or a person" }
            input #token name="token" type="password" autocomplete="current-password" required autofocus;
            input type="hidden" name="then" value=(then);
            button.main { "Sign in" }
            p.soft { "An operator makes one with " code { "systole token new" } "; " code { "systole run --open" } " prints a link." }
        }
    }
}

/// The page on which to sign in, with what is said to an attempt.
fn asks(status: StatusCode, said: Option<&str>, then: &str) -> Response {
    html_page(status, document("Sign in", None, "", &page(said, then)))
}

/// `GET /login`: the form, or the end of a link.
pub(super) async fn form(State(app): State<Arc<AppState>>, request: Request) -> Result<Response, PageProblem> {
    let query = Query::of(&request, &["then", "link"])?;
    let then = query.text("then").filter(|then| is_here(then)).unwrap_or("/");
    Ok(match query.text("link") {
        // A look at the head alone, as of a preview, takes no link.
        Some(_) if request.method() == Method::HEAD => asks(StatusCode::OK, None, then),
        Some(link) if app.browsers().open(link, app.now()) => signed_in(&app, None, then),
        Some(_) => {
            let said =
                "The link was opened before, is older than ten minutes, or is of another organism or an earlier start.";
            asks(StatusCode::FORBIDDEN, Some(said), then)
        }
        None => asks(StatusCode::OK, None, then),
    })
}

/// `POST /login`: the one call that reads the body of a stranger, at most 1 KiB of it, in the time of a head.
pub(super) async fn sign_in(State(app): State<Arc<AppState>>, request: Request) -> Result<Response, PageProblem> {
    let permit = request.extensions().get::<RequestPermit>().cloned();
    let body = tokio::time::timeout(app.settings().header_time, Limited::new(request.into_body(), FORM).collect());
    let Ok(Ok(body)) = body.await else {
        let why = format!("the form: it has {FORM} bytes at most, and comes at once");
        return Err(Problem::bad_request(why).into());
    };
    let form = Form::read(&body.to_bytes())?;
    let then = form.text("then").filter(|then| is_here(then)).unwrap_or_else(|| "/".to_owned());
    let hash = token::hash(form.text("token").unwrap_or_default().trim());
    let said = match app.query().bearer(hash).await?.map(|principal| principal.kind) {
        Some(PrincipalKind::Admin | PrincipalKind::Person) => return Ok(signed_in(&app, Some(hash), &then)),
        Some(PrincipalKind::Client | PrincipalKind::Listener) => {
            "That token is of a client or a listener: the console is for admins and people."
        }
        None => {
            app.refuse_sign_in(permit).await;
            "The token is unknown."
        }
    };
    let mut response = asks(StatusCode::FORBIDDEN, Some(said), &then);
    // A stranger who tries tokens needs a connection for each.
    response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    Ok(response)
}

/// `POST /logout`: ends the session here, whatever the browser does with its cookie.
pub(super) async fn sign_out(State(app): State<Arc<AppState>>, request: Request) -> Result<Response, PageProblem> {
    let known = request.extensions().get::<Arc<Authenticated>>();
    if let Some((known, session)) = known.and_then(|known| Some((known, known.session()?))) {
        let by = known.caller().who().name.clone();
        app.browsers().sign_out(&app, &by, &session).await?;
        let operations = app.organism().operations(by);
        operations.signed_out(&Hash::from_bytes(session.id).to_hex()).await;
        // Not durable: the next start would take the cookie.
        if app.is_sealed() {
            return Err(Problem::stopping().into());
        }
    }
    let mut response = see("/login");
    set_cookie(&app, &mut response, "", Duration::ZERO);
    Ok(response)
}
