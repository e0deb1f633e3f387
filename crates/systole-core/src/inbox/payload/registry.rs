//! Payloads about the jobs that register.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::inbox::JobCard;
use crate::protocol::{display, display_option};
use crate::vocab::Name;

/// Registers a job, of which the sender becomes the owner. Answered by registered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Register {
    /// The name of the job.
    #[serde(rename = "@job", with = "display")]
    #[schemars(schema_with = "super::name")]
    pub job: Name,
    /// A description for people and models, in one line.
    #[schemars(length(min = 1))]
    pub description: String,
    /// A skill of the job.
    #[serde(default)]
    #[schemars(inner(length(min = 1)))]
    pub skill: Vec<String>,
}

impl Register {
    /// Makes the registration of a job, with a description for people and models in one line, and its skills.
    pub fn new<S: Into<String>>(
        job: Name,
        description: impl Into<String>,
        skills: impl IntoIterator<Item = S>,
    ) -> Self {
        Self { job, description: description.into(), skill: skills.into_iter().map(Into::into).collect() }
    }
}

/// Removes a job of the sender; tasks that wait for it wait until the sender registers it anew. Answered by removed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Remove {
    /// The name of the job.
    #[serde(rename = "@job", with = "display")]
    #[schemars(schema_with = "super::name")]
    pub job: Name,
}

/// Asks for the registered jobs, in order of name. Answered by jobs.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Find {
    /// Only the job of that name.
    #[serde(rename = "@job", default, with = "display_option", skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "super::name")]
    pub job: Option<Name>,
    /// Only jobs with that skill.
    #[serde(rename = "@skill", default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1))]
    pub skill: Option<String>,
    /// Only jobs behind that name.
    #[serde(rename = "@after", default, with = "display_option", skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "super::name")]
    pub after: Option<Name>,
}

macro_rules! enrolled {
    ($(#[$doc:meta] $type:ident;)*) => {
        $(#[$doc]
        #[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
        pub struct $type {
            /// The name of the job.
            #[serde(rename = "@job", with = "display")]
            #[schemars(schema_with = "crate::inbox::payload::name")]
            pub job: Name,
            /// The number of pending tasks in the inbox of the job.
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

/// Registered jobs, in order of name.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct JobsPayload {
    /// The number of jobs that follow: find again, after the name of the last job here.
    #[serde(rename = "@more")]
    pub more: u32,
    /// The jobs.
    #[serde(default)]
    pub job: Vec<JobPayload>,
}

/// A registered job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "job")]
pub struct JobPayload {
    /// The name of the job.
    #[serde(rename = "@name", with = "display")]
    #[schemars(schema_with = "super::name")]
    pub name: Name,
    /// A description for people and models, in one line.
    pub description: String,
    /// A skill of the job.
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
