//! What can go wrong with a write, and what a person is told about it.

use weir_core::plan::ChildKind;

use crate::metrics::ErrorReason;

/// How the API server refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Failed {
    /// 409 to a create: the name is taken.
    Exists,
    /// 409: somebody else wrote meanwhile, owns a field, or it is another object now.
    Conflict,
    /// 404.
    Gone,
    /// 403.
    Forbidden,
    /// 422 or 400: the server's rules say no.
    Invalid,
    /// Anything that may be gone the next time.
    Transient(ErrorReason),
    /// The cluster CA cannot sign.
    Certificate,
    /// Plugin content is not what its name says, or stands nowhere.
    Content,
}

impl Failed {
    /// Reads an error of the client.
    #[must_use]
    pub fn of(error: &kube::Error) -> Self {
        let kube::Error::Api(status) = error else { return Self::Transient(ErrorReason::of(error)) };
        match (status.code, status.reason.as_str()) {
            (409, "AlreadyExists") => Self::Exists,
            (409, _) => Self::Conflict,
            (404, _) => Self::Gone,
            (403, _) => Self::Forbidden,
            (422 | 400, _) => Self::Invalid,
            (_, _) => Self::Transient(ErrorReason::of(error)),
        }
    }

    /// Metric label.
    #[must_use]
    pub fn reason(self) -> ErrorReason {
        match self {
            Self::Exists | Self::Conflict => ErrorReason::Conflict,
            Self::Gone => ErrorReason::NotFound,
            Self::Forbidden => ErrorReason::Forbidden,
            Self::Invalid | Self::Content => ErrorReason::Invalid,
            Self::Transient(reason) => reason,
            Self::Certificate => ErrorReason::Certificate,
        }
    }

    /// Whether a first apply may have met an object that is not ours: its fields belong to somebody, or it may not be changed like this.
    pub(super) fn may_be_foreign(self) -> bool {
        match self {
            Self::Exists | Self::Conflict | Self::Invalid => true,
            Self::Gone | Self::Forbidden | Self::Transient(_) | Self::Certificate | Self::Content => false,
        }
    }
}

/// A write that failed.
#[derive(Debug, Clone)]
pub struct Failure {
    /// Kind of the child.
    pub kind: ChildKind,
    /// `Kind name`, or as the event of the change names it.
    pub what: String,
    /// How.
    pub failed: Failed,
    /// For a person: object, what the server said, cure.
    pub message: String,
}

impl Failure {
    pub(super) fn new(kind: ChildKind, name: &str, failed: Failed, error: &kube::Error) -> Self {
        let what = format!("{} {name}", kind.api().1);
        let said = if let kube::Error::Api(status) = error { status.message.clone() } else { error.to_string() };
        let cure = match failed {
            Failed::Forbidden if said.contains("exceeded quota") => "; raise the ResourceQuota or free some of it",
            Failed::Forbidden if said.contains("being terminated") => "; its namespace is going away",
            Failed::Forbidden => "; apply the operator's RBAC manifests, or look for an admission webhook that denies it",
            Failed::Gone if kind == ChildKind::Certificate => "; install cert-manager, or remove spec.network.konnectCertificate",
            Failed::Gone => "; its namespace may be going away",
            Failed::Invalid => "; mend what the message names",
            Failed::Exists | Failed::Conflict | Failed::Transient(_) | Failed::Certificate | Failed::Content => "; it is tried again",
        };
        Self { kind, message: format!("{what}: {said}{cure}"), what, failed }
    }

    /// The name is somebody else's; the next pass takes another.
    pub(super) fn taken(kind: ChildKind, name: &str) -> Self {
        let what = format!("{} {name}", kind.api().1);
        Self { kind, message: format!("{what} is somebody else's; another name is used"), what, failed: Failed::Exists }
    }

    pub(super) fn certificate(name: &str, message: String) -> Self {
        Self { kind: ChildKind::Secret, what: format!("Secret {name}"), failed: Failed::Certificate, message }
    }

    /// Plugin content that a person has to look at.
    pub(super) fn content(what: String, message: String) -> Self {
        Self { kind: ChildKind::ConfigMap, what, failed: Failed::Content, message }
    }

    /// Plugin content that somebody else is just writing.
    pub(super) fn waits(what: String, problem: String) -> Self {
        Self { kind: ChildKind::ConfigMap, what, failed: Failed::Conflict, message: format!("{problem}; it is tried again") }
    }

    pub(super) fn unreadable(kind: ChildKind, name: &str, error: &serde_json::Error) -> Self {
        let what = format!("{} {name}", kind.api().1);
        Self {
            kind,
            message: format!("{what}: the server's answer cannot be read: {error}"),
            what,
            failed: Failed::Transient(ErrorReason::Other),
        }
    }

    /// Whether a person has to do something; what goes away by itself is no condition.
    #[must_use]
    pub fn needs_a_person(&self) -> bool {
        match self.failed {
            Failed::Forbidden | Failed::Invalid | Failed::Gone | Failed::Certificate | Failed::Content => true,
            Failed::Exists | Failed::Conflict | Failed::Transient(_) => false,
        }
    }
}
