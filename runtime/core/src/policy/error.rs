//! How asking a policy can end without an accepted answer.

use serde::{Deserialize, Serialize};

/// The policy understood the question and says no.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refusal {
    /// Upper camel case, of the policy's own small set.
    pub code: String,
    /// What is wrong and what to change.
    pub message: String,
}

/// Everything but an accepted answer. Closed; [`PolicyError::reason`] is the condition reason and the metric label.
///
/// `Refused` is an answer, not a failure: it never triggers `onFailure`, the breaker or a rollback (semantics "Refusal").
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PolicyError {
    /// The policy answered with a refusal.
    #[error("the policy refused ({}): {}", .0.code, .0.message)]
    Refused(Refusal),
    /// The call did not end within its time.
    #[error("the policy did not answer within {limit_ms} ms")]
    Deadline {
        /// The limit in force, milliseconds.
        limit_ms: u64,
    },
    /// The call wanted more memory, table space or copied bytes than it may use.
    #[error("the policy went over its memory limit: {0}")]
    Memory(String),
    /// The guest stopped abnormally: unreachable code, stack exhaustion, division by zero.
    #[error("the policy trapped: {0}")]
    Trap(String),
    /// The policy cannot be reached or is not loaded.
    #[error("the policy is not available: {0}")]
    Unavailable(String),
    /// The answer breaks the slot's rules.
    #[error("the policy's answer is not usable: {0}")]
    BadOutput(String),
    /// The artifact is no component for this slot.
    #[error("the policy is not compatible: {0}")]
    Incompatible(String),
}

impl PolicyError {
    /// Name of the variant: the reason of a condition, the label of a metric.
    #[must_use]
    pub fn reason(&self) -> &'static str {
        match self {
            Self::Refused(_) => "Refused",
            Self::Deadline { .. } => "Deadline",
            Self::Memory(_) => "Memory",
            Self::Trap(_) => "Trap",
            Self::Unavailable(_) => "Unavailable",
            Self::BadOutput(_) => "BadOutput",
            Self::Incompatible(_) => "Incompatible",
        }
    }

    /// Whether `onFailure` applies. A refusal is an answer.
    #[must_use]
    pub fn is_failure(&self) -> bool {
        !matches!(self, Self::Refused(_))
    }
}
