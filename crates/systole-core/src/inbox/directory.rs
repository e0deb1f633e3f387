//! The journal's form of a registry: the registrations as one text, the tasks as the records of their inboxes.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::jobs::{JobCard, Jobs};
use super::principal::InboxPrincipal;
use super::records::RecoverError;
use crate::journal::TaskRecord;
use crate::protocol::{display, display_option};
use crate::vocab::Name;

/// The version of the text.
pub(super) const VERSION: u32 = 1;

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Directory {
    version: u32,
    jobs: Vec<Entry>,
}

/// Just enough to know which version it is.
#[derive(Deserialize)]
struct Versioned {
    version: u32,
}

/// A name that is taken.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    #[serde(with = "display")]
    name: Name,
    /// The owner, or the last one.
    #[serde(default, with = "display_option", skip_serializing_if = "Option::is_none")]
    owner: Option<Name>,
    /// `None` while the job isn't registered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    card: Option<Card>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Card {
    description: String,
    skills: BTreeSet<String>,
}

impl Jobs {
    /// The revision, which changes with the [`directory`](Self::directory).
    pub const fn revision(&self) -> u64 {
        self.revision
    }

    /// The registrations, and the names that tasks wait for, as JSON: the input of [`recover`](Self::recover) beside
    /// the records of the tasks.
    ///
    /// # Panics
    /// Never: texts and lists have a JSON form.
    pub fn directory(&self) -> String {
        let entry = |(name, heir, card): (&Name, Option<&InboxPrincipal>, Option<&JobCard>)| Entry {
            name: name.clone(),
            owner: heir.map(|heir| heir.name().clone()),
            card: card.map(|card| Card { description: card.description.clone(), skills: card.skills.clone() }),
        };
        let directory = Directory { version: VERSION, jobs: self.names().map(entry).collect() };
        serde_json::to_string(&directory).expect("texts and lists have a JSON form")
    }

    /// The registry of the same policy, limits and reserved names, with the contents of a
    /// [`directory`](Self::directory) and the records of a journal instead of its own; records of inboxes that are not
    /// in the directory are left alone. Every rule is checked.
    ///
    /// # Errors
    /// [`RecoverError`] says where and what is wrong.
    pub fn recover<'a>(
        &self,
        directory: &str,
        records: impl IntoIterator<Item = &'a TaskRecord> + Clone,
    ) -> Result<Self, RecoverError> {
        let Versioned { version } = serde_json::from_str(directory)?;
        if version != VERSION {
            return Err(RecoverError::Version { found: version });
        }
        let Directory { jobs: entries, .. } = serde_json::from_str(directory)?;
        let mut jobs = self.emptied();
        for Entry { name, owner, card } in entries {
            let refuse = |problem: &str| RecoverError::Job { job: name.clone(), problem: problem.to_owned() };
            if jobs.inbox(&name).is_some() {
                return Err(refuse("it is listed twice"));
            }
            let owner = owner.map(InboxPrincipal::new);
            let card = match (card, &owner) {
                (Some(_), None) => return Err(refuse("it is registered, but has no owner")),
                (Some(Card { description, skills }), Some(_)) => {
                    Some(JobCard { name: name.clone(), description, skills })
                }
                (None, _) => None,
            };
            jobs.restore(&name, owner, card, records.clone())?;
        }
        Ok(jobs)
    }
}
