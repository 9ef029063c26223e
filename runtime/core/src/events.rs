//! Events the shell emits. Message text is constant, data is a field, so that a thousand objects count as one kind of event.

use serde::{Deserialize, Serialize};

use crate::policy::{Finding, Severity};

/// `type` of a Kubernetes event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum EventType {
    /// Something happened as it should.
    Normal,
    /// Somebody should look.
    Warning,
}

/// An event on the object of the pass.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Event {
    /// Normal or Warning.
    #[serde(rename = "type")]
    pub type_: EventType,
    /// Upper camel case, finite.
    pub reason: String,
    /// Constant text per reason.
    pub message: String,
    /// What it is about: a field, a child, a policy's words.
    pub data: String,
}

impl Event {
    /// A Normal event.
    #[must_use]
    pub fn normal(reason: &str, message: &str, data: impl Into<String>) -> Self {
        Self { type_: EventType::Normal, reason: reason.into(), message: message.into(), data: data.into() }
    }

    /// A Warning event.
    #[must_use]
    pub fn warning(reason: &str, message: &str, data: impl Into<String>) -> Self {
        Self { type_: EventType::Warning, reason: reason.into(), message: message.into(), data: data.into() }
    }

    /// The event of a finding; findings that are only good to know have none.
    #[must_use]
    pub fn of_finding(finding: &Finding) -> Option<Self> {
        match finding.severity {
            Severity::Info => None,
            Severity::Warning | Severity::Error => {
                let data = if finding.path.is_empty() { finding.message.clone() } else { format!("{}: {}", finding.path, finding.message) };
                Some(Self::warning(&finding.code, "A finding about this object", data))
            }
        }
    }
}
