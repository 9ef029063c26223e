//! How a plugin is, as the pool sees it.

use std::{sync::Arc, time::SystemTime};

use super::{Capabilities, Metadata};

/// How far a plugin has come. Each includes the ones before it. What comes before `Configured` (a Service without its Secrets) is known to the
/// discovery alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum State {
    /// It is known where it is and how to trust it.
    Configured,
    /// A connection stands and the plugin says who it is.
    Reachable,
    /// It answers, and says that it is ready.
    Ready,
}

impl State {
    /// Upper camel case, as in conditions.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Configured => "Configured",
            Self::Reachable => "Reachable",
            Self::Ready => "Ready",
        }
    }
}

/// Why a plugin is not ready. Closed; the name is the reason of a condition and the label of a metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Reason {
    /// No connection was tried yet.
    Connecting,
    /// No ready endpoint, or a name without an address.
    NoEndpoints,
    /// No TCP connection, or one that broke.
    Unreachable,
    /// TLS failed for another reason than the ones below: no TLS 1.3, no HTTP/2, a plugin between two certificates.
    TlsFailed,
    /// The plugin's certificate is neither in the server Secret nor issued by one that is.
    ServerNotTrusted,
    /// The plugin's certificate is for other names.
    ServerNameInvalid,
    /// The plugin's certificate has ended or has not begun.
    ServerCertExpired,
    /// The plugin's certificate is not for servers.
    ServerCertUnusable,
    /// The plugin does not take the operator's certificate.
    ClientCertRejected,
    /// It says it is another plugin than its Service's label.
    NameMismatch,
    /// What it says about itself cannot be used.
    BadMetadata,
    /// It did not answer the test.
    ProbeFailed,
    /// It answers that it is not ready.
    NotReady,
    /// Calls failed in a row; the next try has its time.
    CircuitOpen,
    /// It was taken out of the registry.
    Closed,
}

impl Reason {
    /// All reasons, for metrics.
    pub const ALL: [Self; 15] = [
        Self::Connecting,
        Self::NoEndpoints,
        Self::Unreachable,
        Self::TlsFailed,
        Self::ServerNotTrusted,
        Self::ServerNameInvalid,
        Self::ServerCertExpired,
        Self::ServerCertUnusable,
        Self::ClientCertRejected,
        Self::NameMismatch,
        Self::BadMetadata,
        Self::ProbeFailed,
        Self::NotReady,
        Self::CircuitOpen,
        Self::Closed,
    ];

    /// Upper camel case.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Connecting => "Connecting",
            Self::NoEndpoints => "NoEndpoints",
            Self::Unreachable => "Unreachable",
            Self::TlsFailed => "TLSFailed",
            Self::ServerNotTrusted => "ServerNotTrusted",
            Self::ServerNameInvalid => "ServerNameInvalid",
            Self::ServerCertExpired => "ServerCertExpired",
            Self::ServerCertUnusable => "ServerCertUnusable",
            Self::ClientCertRejected => "ClientCertRejected",
            Self::NameMismatch => "NameMismatch",
            Self::BadMetadata => "BadMetadata",
            Self::ProbeFailed => "ProbeFailed",
            Self::NotReady => "NotReady",
            Self::CircuitOpen => "CircuitOpen",
            Self::Closed => "Closed",
        }
    }

    /// Whether it is about certificates and TLS.
    #[must_use]
    pub fn is_tls(self) -> bool {
        match self {
            Self::TlsFailed
            | Self::ServerNotTrusted
            | Self::ServerNameInvalid
            | Self::ServerCertExpired
            | Self::ServerCertUnusable
            | Self::ClientCertRejected => true,
            Self::Connecting
            | Self::NoEndpoints
            | Self::Unreachable
            | Self::NameMismatch
            | Self::BadMetadata
            | Self::ProbeFailed
            | Self::NotReady
            | Self::CircuitOpen
            | Self::Closed => false,
        }
    }
}

impl std::fmt::Display for Reason {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

/// How a plugin is at one moment.
#[derive(Debug, Clone, PartialEq)]
pub struct Status {
    /// How far it has come.
    pub state: State,
    /// What keeps it from the next state; none when ready.
    pub reason: Option<Reason>,
    /// For a person: what is wrong and, where it is known, what to do. Bounded, one line, no secrets.
    pub message: String,
    /// Who it says it is, from the newest connection; stays when the connection is lost.
    pub metadata: Option<Arc<Metadata>>,
    /// What it offers, from the newest connection.
    pub capabilities: Option<Arc<Capabilities>>,
    /// End of the certificate that it showed last.
    pub server_not_after: Option<SystemTime>,
    /// Whether the former certificate of either side is in use, because the other side has not loaded the new one.
    pub overlap: bool,
    /// Digest of the spec the newest connection was made for.
    pub spec: [u8; 32],
}

/// Numbers of a pool at one moment, for metrics.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Gauges {
    /// Connections that can be handed out.
    pub connections: usize,
    /// Leases.
    pub in_flight: usize,
    /// Callers that wait.
    pub waiting: usize,
    /// Whether the breaker is open.
    pub breaker_open: bool,
}
