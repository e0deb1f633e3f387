//! What is said about the jobs that register.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::inbox::JobCard;
use crate::protocol::{display, display_option};
use crate::vocab::Name;

/// A job is there from now on, and it is mine. Answered by registered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Register {
    /// Its name.
    #[serde(rename = "@job", with = "display")]
    #[schemars(schema_with = "super::name")]
    pub job: Name,
    /// One line for people and models.
    #[schemars(length(min = 1))]
    pub description: String,
    /// What it can do.
    #[serde(default)]
    #[schemars(inner(length(min = 1)))]
    pub skill: Vec<String>,
}

impl Register {
    /// A job of that name, with one line for people and models and with what it can do.
    pub fn new<S: Into<String>>(
        job: Name,
        description: impl Into<String>,
        skills: impl IntoIterator<Item = S>,
    ) -> Self {
        Self { job, description: description.into(), skill: skills.into_iter().map(Into::into).collect() }
    }
}

/// My job is there no longer; what waits for it waits until I register it anew. Answered by removed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Remove {
    /// Its name.
    #[serde(rename = "@job", with = "display")]
    #[schemars(schema_with = "super::name")]
    pub job: Name,
}

/// The jobs that are there, in order of name, please. Answered by jobs.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Find {
    /// Only the one of that name.
    #[serde(rename = "@job", default, with = "display_option", skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "super::name")]
    pub job: Option<Name>,
    /// Only those with that skill.
    #[serde(rename = "@skill", default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1))]
    pub skill: Option<String>,
    /// Only those behind that name.
    #[serde(rename = "@after", default, with = "display_option", skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "super::name")]
    pub after: Option<Name>,
}

macro_rules! enrolled {
    ($(#[$doc:meta] $type:ident;)*) => {
        $(#[$doc]
        #[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
        pub struct $type {
            /// Its name.
            #[serde(rename = "@job", with = "display")]
            #[schemars(schema_with = "crate::inbox::payload::name")]
            pub job: Name,
            /// How many tasks are pending there.
            #[serde(rename = "@pending")]
            pub pending: u32,
        })*
    };
}

enrolled! {
    /// A job is registered.
    Registered;
    /// A job is registered no longer.
    Removed;
}

/// Jobs that are there, in order of name.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct JobsPayload {
    /// How many follow: find again, after the name of the last one here.
    #[serde(rename = "@more")]
    pub more: u32,
    /// The jobs.
    #[serde(default)]
    pub job: Vec<JobPayload>,
}

/// A job that is there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "job")]
pub struct JobPayload {
    /// Its name.
    #[serde(rename = "@name", with = "display")]
    #[schemars(schema_with = "super::name")]
    pub name: Name,
    /// One line for people and models.
    pub description: String,
    /// What it can do.
    #[serde(default)]
    pub skill: Vec<String>,
}

impl From<&JobCard> for JobPayload {
    fn from(card: &JobCard) -> Self {
        let skill = card.skills.iter().cloned().collect();
        Self { name: card.name.clone(), description: card.description.clone(), skill }
    }
}

impl From<Register> for JobCard {
    fn from(register: Register) -> Self {
        let skills = register.skill.into_iter().collect();
        Self { name: register.job, description: register.description, skills }
    }
}
