//! How borrowing a connection and calling a plugin can fail.

use std::time::Duration;

use super::Reason;

/// No connection was lent.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AcquireError {
    /// No plugin of this name.
    #[error("no remote plugin {name:?}: no Service in the plugin namespaces has this label")]
    Unknown {
        /// The name that was asked for.
        name: String,
    },
    /// The plugin cannot be used now.
    #[error("remote plugin {name}: {reason}: {message}")]
    NotReady {
        /// Plugin.
        name: String,
        /// Why.
        reason: Reason,
        /// The status's message.
        message: String,
    },
    /// As many wait as may.
    #[error("remote plugin {name} is busy: {in_flight} calls in flight and {waiting} waiting")]
    Busy {
        /// Plugin.
        name: String,
        /// Leases.
        in_flight: usize,
        /// Callers that wait.
        waiting: usize,
    },
    /// The caller's time was over before a connection was free.
    #[error("remote plugin {name}: no connection within {waited:?}")]
    Timeout {
        /// Plugin.
        name: String,
        /// How long the caller could wait.
        waited: Duration,
    },
    /// The plugin was taken out of the registry.
    #[error("remote plugin {name} is not there any more")]
    Closed {
        /// Plugin.
        name: String,
    },
}

impl AcquireError {
    /// Label of a metric.
    #[must_use]
    pub fn reason(&self) -> &'static str {
        match self {
            Self::Unknown { .. } => "Unknown",
            Self::NotReady { reason, .. } => reason.as_str(),
            Self::Busy { .. } => "Busy",
            Self::Timeout { .. } => "Timeout",
            Self::Closed { .. } => "Closed",
        }
    }
}

/// What a failed call means for the caller. Closed; the name is a metric label.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Class {
    /// The connection failed, or the plugin says that it is not available: back off, another connection may do.
    Connection,
    /// The time was over.
    Deadline,
    /// "Not yet" (`ABORTED`, `FAILED_PRECONDITION`): ask again soon, quietly.
    Later,
    /// The plugin does not have the call: its capabilities changed, or it advertises what it does not do.
    Unimplemented,
    /// A message over the limit, in either direction. Nothing changes until question or plugin do.
    TooLarge,
    /// Bytes that are no message, or a message without what it must have.
    Garbage,
    /// The plugin refuses the question itself: nothing changes until question or plugin do.
    Permanent,
    /// The plugin failed inside (`UNKNOWN`, `INTERNAL`, a panic): back off.
    Failed,
}

impl Class {
    /// Upper camel case.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Connection => "Connection",
            Self::Deadline => "Deadline",
            Self::Later => "Later",
            Self::Unimplemented => "Unimplemented",
            Self::TooLarge => "TooLarge",
            Self::Garbage => "Garbage",
            Self::Permanent => "Permanent",
            Self::Failed => "Failed",
        }
    }
}

/// A call that has no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{method}: {message}")]
pub struct CallError {
    /// `Service/Method`, one of ours.
    pub method: &'static str,
    /// What it means.
    pub class: Class,
    /// The plugin's own words, one line, bounded, without stack traces.
    pub message: String,
}
