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
    /// It has not been dialled yet.
    Connecting,
    /// No pod of it is ready, or its name has no address.
    NoEndpoints,
    /// No connection, or one that broke.
    Unreachable,
    /// TLS failed for another reason than the ones below.
    TLSFailed,
    /// Its certificate is neither in the server Secret nor issued by one that is.
    ServerNotTrusted,
    /// Its certificate is for other names.
    ServerNameInvalid,
    /// Its certificate has ended, or has not begun.
    ServerCertExpired,
    /// Its certificate is not for servers.
    ServerCertUnusable,
    /// It does not take the operator's certificate.
    ClientCertRejected,
    /// It did not answer a test.
    ProbeFailed,
    /// It failed so often that it is left alone for a while.
    CircuitOpen,
    /// It calls itself by another name than its Service.
    NameMismatch,
    /// What it says about itself cannot be used.
    BadMetadata,
    /// It answers, and says that it is not ready.
    NotReady,
}

impl Reason {
    /// All reasons.
    pub const ALL: [Self; 23] = [
        Self::Conflict,
        Self::InvalidName,
        Self::TooMany,
        Self::AnnotationMissing,
        Self::InvalidPort,
        Self::InvalidServerName,
        Self::SecretMissing,
        Self::CertInvalid,
        Self::CertExpired,
        Self::Connecting,
        Self::NoEndpoints,
        Self::Unreachable,
        Self::TLSFailed,
        Self::ServerNotTrusted,
        Self::ServerNameInvalid,
        Self::ServerCertExpired,
        Self::ServerCertUnusable,
        Self::ClientCertRejected,
        Self::ProbeFailed,
        Self::CircuitOpen,
        Self::NameMismatch,
        Self::BadMetadata,
        Self::NotReady,
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
            Self::Connecting => "Connecting",
            Self::NoEndpoints => "NoEndpoints",
            Self::Unreachable => "Unreachable",
            Self::TLSFailed => "TLSFailed",
            Self::ServerNotTrusted => "ServerNotTrusted",
            Self::ServerNameInvalid => "ServerNameInvalid",
            Self::ServerCertExpired => "ServerCertExpired",
            Self::ServerCertUnusable => "ServerCertUnusable",
            Self::ClientCertRejected => "ClientCertRejected",
            Self::ProbeFailed => "ProbeFailed",
            Self::CircuitOpen => "CircuitOpen",
            Self::NameMismatch => "NameMismatch",
            Self::BadMetadata => "BadMetadata",
            Self::NotReady => "NotReady",
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
            Self::Connecting
            | Self::NoEndpoints
            | Self::Unreachable
            | Self::TLSFailed
            | Self::ServerNotTrusted
            | Self::ServerNameInvalid
            | Self::ServerCertExpired
            | Self::ServerCertUnusable
            | Self::ClientCertRejected
            | Self::ProbeFailed
            | Self::CircuitOpen => Step::Reachable,
            Self::NameMismatch | Self::BadMetadata | Self::NotReady => Step::Ready,
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
