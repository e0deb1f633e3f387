//! Conversations of the tree: their holdings, and the places of their messages.

use std::rc::Rc;

use super::{Thread, Tree};
use crate::core::conversation::{Conversation, Share};
use crate::core::exit::ExitPlace;
use crate::core::gauge::Permit;
use crate::core::key::ThreadKey;
use crate::core::rounds::Principal;
use crate::vocab::ThreadId;

/// The amounts that a conversation holds at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Holding {
    /// The root of the conversation.
    pub root: ThreadId,
    /// Open threads, its root among them.
    pub threads: usize,
    /// Messages in mailboxes and backlogs, delayed, and answers that handlers await.
    pub messages: usize,
    /// Bytes of those messages.
    pub bytes: usize,
}

impl Tree {
    /// The amounts that each open conversation holds, in no order.
    pub(in crate::core) fn holdings(&self) -> Vec<Holding> {
        let roots = self.threads.values().filter(|thread| thread.parent.is_none());
        let holding = |root: &Thread| {
            let state = root.extra.as_ref()?.root.as_ref()?;
            let held = state.conversation.as_ref().map_or((0, 0), |held| (held.messages(), held.bytes()));
            let (messages, bytes) = held;
            Some(Holding { root: root.id, threads: state.live_threads as usize, messages, bytes })
        };
        roots.filter_map(holding).collect()
    }

    /// The conversation of a thread, which becomes active.
    pub(in crate::core) fn conversation(&mut self, key: ThreadKey) -> Rc<Conversation> {
        let root = self.threads[key].root;
        let (client, scheduling) = (self.threads[root].owner.client(), self.setup.blueprint.scheduling);
        let state = self.threads[root].extra().root.get_or_insert_default();
        state.conversation.get_or_insert_with(|| Rc::new(Conversation::new(client.into(), scheduling))).clone()
    }

    /// The principal whose conversation a thread belongs to; the organism, if the thread is closed.
    pub(in crate::core) fn principal(&self, key: ThreadKey) -> Principal {
        self.get(key).and_then(|thread| self.get(thread.root)?.owner.client()).into()
    }

    /// Counts a message for the conversation of a thread.
    pub(in crate::core) fn share(&mut self, key: ThreadKey, permit: Permit) -> Share {
        Share::new(self.conversation(key), permit)
    }

    /// Counts a message of so many bytes, regardless of the bounds.
    pub(in crate::core) fn count(&mut self, key: ThreadKey, bytes: usize) -> Share {
        let permit = self.gauge.count(bytes);
        self.share(key, permit)
    }

    /// Keeps the place for the answer of a child that a client's message has opened.
    pub(in crate::core) fn keep_place(&mut self, root: ThreadKey, place: Option<ExitPlace>) {
        let state = self.threads.get_mut(root).and_then(|thread| thread.extra().root.as_mut());
        let (Some(state), Some(place)) = (state, place) else { return };
        match &mut state.places {
            Some(places) => places.join(place),
            none => *none = Some(place),
        }
    }

    /// Takes the place of an answer that leaves for the client of a root, if one is kept.
    pub(in crate::core) fn take_place(&mut self, root: ThreadKey) -> Option<ExitPlace> {
        let places = &mut self.threads[root].extra.as_mut()?.root.as_mut()?.places;
        match places {
            Some(several) => several.split().or_else(|| places.take()),
            None => None,
        }
    }

    /// Gives the place of an answer back that will never come: no thread keeps more places than it is owed answers.
    pub(super) fn release_place(&mut self, key: ThreadKey) {
        let thread = &self.threads[key];
        let state = thread.extra.as_ref().and_then(|extra| extra.root.as_ref());
        let kept = state.and_then(|state| state.places.as_ref()).map_or(0, ExitPlace::answers);
        if kept > thread.children.open {
            drop(self.take_place(key));
        }
    }

    /// Forgets the conversation of an idle root.
    pub(super) fn rest_conversation(&mut self, root: ThreadKey) {
        if let Some(state) = &mut self.threads[root].extra().root {
            state.conversation.take_if(|conversation| Rc::strong_count(conversation) == 1);
        }
    }
}
