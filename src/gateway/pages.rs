//! The interface for pages that browsers show, beside the calls: who is signed in, and what pages read.
//!
//! `systole::console` are such pages, of this module's names alone.

use std::sync::Arc;

use super::Gateway;
use super::http::authenticate::fail;
pub(crate) use super::http::browser::{Link, SIGNED_IN};
use super::http::failures::Reason;
pub(crate) use super::http::request::{Query, body, fields};
pub(crate) use super::http::view::typed;
pub(crate) use super::http::{AppState, Authenticated, Caller, Routes, Tally};
pub(crate) use super::problem::{Problem, Rejection};
use crate::accept::RequestPermit;
use crate::journal;
use crate::runtime::Organism;
use crate::settings::GatewaySettings;

impl Gateway {
    /// Serves pages, too. `is_page` tells their paths, at which alone the cookie of a browser that has signed in is good.
    pub(crate) fn with_pages(self, routes: Routes, is_page: fn(&str) -> bool) -> Self {
        Self { routes: self.routes.merge(routes), is_page: Some(is_page), ..self }
    }
}

impl Authenticated {
    /// The caller.
    pub(crate) fn caller(&self) -> Caller {
        Caller(self.principal.clone())
    }
}

impl AppState {
    /// The organism.
    pub(crate) fn organism(&self) -> &Arc<Organism> {
        &self.organism
    }

    /// The settings of the gateway.
    pub(crate) fn settings(&self) -> &GatewaySettings {
        &self.settings
    }

    /// Queries of the journal.
    pub(crate) fn query(&self) -> &dyn journal::Query {
        &*self.query
    }

    /// The figures that `/metrics` shows.
    pub(crate) fn figures(&self) -> &Tally {
        &self.tally
    }

    /// The browsers that are signed in.
    pub(crate) fn browsers(&self) -> &Link {
        &self.link
    }

    /// Counts a token that signed nobody in, and waits, the longer the more came from that address.
    pub(crate) async fn refuse_sign_in(&self, permit: Option<RequestPermit>) {
        fail(self, permit, Reason::Wrong).await;
    }

    /// Returns whether the organism ends.
    pub(crate) fn is_stopping(&self) -> bool {
        self.mailboxes.is_stopping()
    }

    /// Waits until the organism ends.
    pub(crate) async fn stopping(&self) {
        self.mailboxes.stopping().await;
    }

    /// Returns whether nothing is written to the journal any more.
    pub(crate) fn is_sealed(&self) -> bool {
        self.mailboxes.is_sealed()
    }
}
