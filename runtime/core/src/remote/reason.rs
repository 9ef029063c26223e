//! Why a remote plugin is not used. Closed: the reasons of conditions, and the label of a metric.

use serde::{Deserialize, Serialize};

/// Why a remote plugin is not used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Reason {
    /// Another Service has the name.
    Conflict,
    /// The label has no name in it.
    InvalidName,
    /// There are more plugins than are served.
    TooMany,
    /// An annotation that is needed is missing or empty.
    AnnotationMissing,
    /// The port is no port of the Service.
    InvalidPort,
    /// The name that the certificate is checked for is no host name.
    InvalidServerName,
    /// A Secret is missing.
    SecretMissing,
    /// What a Secret holds is no certificate, no key, or two that do not belong together.
    CertInvalid,
    /// A certificate has ended.
    CertExpired,
    /// The plugin calls itself by another name than its Service.
    NameMismatch,
    /// No pod of it is ready.
    NoEndpoints,
    /// The two sides do not trust each other.
    TLSFailed,
    /// There is no connection, or nothing that answers over it.
    ProbeFailed,
    /// It answers, and says that it is not ready.
    NotReady,
    /// It failed so often that it is left alone for a while.
    CircuitOpen,
    /// It has not been dialled yet.
    Pending,
}

impl Reason {
    /// All reasons.
    pub const ALL: [Self; 16] = [
        Self::Conflict,
        Self::InvalidName,
        Self::TooMany,
        Self::AnnotationMissing,
        Self::InvalidPort,
        Self::InvalidServerName,
        Self::SecretMissing,
        Self::CertInvalid,
        Self::CertExpired,
        Self::NameMismatch,
        Self::NoEndpoints,
        Self::TLSFailed,
        Self::ProbeFailed,
        Self::NotReady,
        Self::CircuitOpen,
        Self::Pending,
    ];

    /// Reason of a condition and of an event.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Conflict => "Conflict",
            Self::InvalidName => "InvalidName",
            Self::TooMany => "TooMany",
            Self::AnnotationMissing => "AnnotationMissing",
            Self::InvalidPort => "InvalidPort",
            Self::InvalidServerName => "InvalidServerName",
            Self::SecretMissing => "SecretMissing",
            Self::CertInvalid => "CertInvalid",
            Self::CertExpired => "CertExpired",
            Self::NameMismatch => "NameMismatch",
            Self::NoEndpoints => "NoEndpoints",
            Self::TLSFailed => "TLSFailed",
            Self::ProbeFailed => "ProbeFailed",
            Self::NotReady => "NotReady",
            Self::CircuitOpen => "CircuitOpen",
            Self::Pending => "Pending",
        }
    }

    /// The first of the four steps Discovered, Configured, Reachable and Ready that it keeps from being true.
    #[must_use]
    pub fn step(self) -> Step {
        match self {
            Self::Conflict | Self::InvalidName | Self::TooMany => Step::Discovered,
            Self::AnnotationMissing
            | Self::InvalidPort
            | Self::InvalidServerName
            | Self::SecretMissing
            | Self::CertInvalid
            | Self::CertExpired => Step::Configured,
            Self::NoEndpoints | Self::TLSFailed | Self::ProbeFailed | Self::CircuitOpen | Self::Pending => Step::Reachable,
            Self::NameMismatch | Self::NotReady => Step::Ready,
        }
    }

    /// Whether it may pass by itself.
    #[must_use]
    pub fn is_transient(self) -> bool {
        match self {
            Self::NoEndpoints | Self::TLSFailed | Self::ProbeFailed | Self::NotReady | Self::CircuitOpen | Self::Pending => true,
            Self::Conflict
            | Self::InvalidName
            | Self::TooMany
            | Self::AnnotationMissing
            | Self::InvalidPort
            | Self::InvalidServerName
            | Self::SecretMissing
            | Self::CertInvalid
            | Self::CertExpired
            | Self::NameMismatch => false,
        }
    }
}

/// How far a plugin has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Step {
    /// The Service is the plugin of its name.
    Discovered,
    /// Its annotations and Secrets can be used.
    Configured,
    /// It answers over a connection that both sides trust.
    Reachable,
    /// It is asked.
    Ready,
}

/// Something that is wrong: why, and for a person what to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// Why.
    pub reason: Reason,
    /// Reason of the event: finer than the condition's where two Secrets can be wrong.
    pub event: &'static str,
    /// Names the object, the field and the cure.
    pub message: String,
}

impl Problem {
    /// A problem whose event is called like the condition's reason.
    #[must_use]
    pub fn new(reason: Reason, message: impl Into<String>) -> Self {
        Self { reason, event: reason.as_str(), message: message.into() }
    }
}
