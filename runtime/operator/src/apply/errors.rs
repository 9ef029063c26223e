//! What can go wrong with a write, and what a person is told about it.

use kube::core::Status;
use weir_core::plan::ChildKind;

use crate::metrics::ErrorReason;

/// Cause of a refusal while a namespace is on its way out.
const TERMINATING: &str = "NamespaceTerminating";

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
    /// The namespace is on its way out, and nothing can be made in it any more. Nobody has to hear of it.
    Leaving,
    /// 422, 400 or 413: the server's rules say no.
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
        if is_leaving(status) {
            return Self::Leaving;
        }
        match (status.code, status.reason.as_str()) {
            (409, "AlreadyExists") => Self::Exists,
            (409, _) => Self::Conflict,
            (404, _) => Self::Gone,
            (403, _) => Self::Forbidden,
            (422 | 400 | 413, _) => Self::Invalid,
            (_, _) => Self::Transient(ErrorReason::of(error)),
        }
    }

    /// Metric label.
    #[must_use]
    pub fn reason(self) -> ErrorReason {
        match self {
            Self::Exists | Self::Conflict => ErrorReason::Conflict,
            Self::Gone | Self::Leaving => ErrorReason::NotFound,
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
            Self::Gone | Self::Forbidden | Self::Leaving | Self::Transient(_) | Self::Certificate | Self::Content => false,
        }
    }
}

/// Whether a namespace is on its way out, or out already.
fn is_leaving(status: &Status) -> bool {
    let details = status.details.as_ref();
    match status.code {
        403 => details.is_some_and(|details| details.causes.iter().any(|cause| cause.reason == TERMINATING)),
        404 => details.is_some_and(|details| details.kind == "namespaces"),
        _ => false,
    }
}

/// What a person is told about a refused write of an object itself, and what to do; none for what goes away by itself.
#[must_use]
pub(crate) fn refused(what: &str, error: &kube::Error) -> Option<String> {
    let (failed, said) = (Failed::of(error), said(error));
    match failed {
        Failed::Forbidden | Failed::Invalid => Some(format!("{what}: {said}{}", cure(failed, &said))),
        Failed::Exists
        | Failed::Conflict
        | Failed::Gone
        | Failed::Leaving
        | Failed::Transient(_)
        | Failed::Certificate
        | Failed::Content => None,
    }
}

fn said(error: &kube::Error) -> String {
    if let kube::Error::Api(status) = error { status.message.clone() } else { error.to_string() }
}

fn cure(failed: Failed, said: &str) -> &'static str {
    match failed {
        Failed::Forbidden if said.contains("exceeded quota") => "; raise the ResourceQuota or free some of it",
        Failed::Forbidden => "; apply the operator's RBAC manifests, or look for an admission webhook that denies it",
        Failed::Gone => "; its namespace may be going away",
        Failed::Leaving => "; its namespace is going away",
        Failed::Invalid if said.contains("metadata.annotations: Too long") => {
            "; all annotations of an object share 256 KiB: remove some that are not Weir's, or move what they say elsewhere"
        }
        Failed::Invalid => "; mend what the message names",
        Failed::Exists | Failed::Conflict | Failed::Transient(_) | Failed::Certificate | Failed::Content => "; it is tried again",
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
        let said = said(error);
        let is_missing_kind = failed == Failed::Gone && kind == ChildKind::Certificate;
        let cure = if is_missing_kind { "; install cert-manager, or remove spec.network.konnectCertificate" } else { cure(failed, &said) };
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
            Failed::Exists | Failed::Conflict | Failed::Leaving | Failed::Transient(_) => false,
        }
    }

    /// Whether the namespace is on its way out: nothing is wrong, and trying again is of no use.
    #[must_use]
    pub fn is_leaving(&self) -> bool {
        self.failed == Failed::Leaving
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn api(status: serde_json::Value) -> kube::Error {
        kube::Error::Api(Box::new(serde_json::from_value(status).unwrap()))
    }

    fn terminating() -> kube::Error {
        let message = "configmaps \"a\" is forbidden: unable to create new content in namespace n because it is being terminated";
        let cause = json!({"reason": "NamespaceTerminating", "message": "namespace n is being terminated", "field": "metadata.namespace"});
        let details = json!({"name": "a", "kind": "configmaps", "causes": [cause]});
        api(json!({"status": "Failure", "code": 403, "reason": "Forbidden", "message": message, "details": details}))
    }

    #[test]
    fn a_namespace_that_is_leaving_is_nobodys_fault() {
        let gone = json!({"code": 404, "reason": "NotFound", "message": "namespaces \"n\" not found", "details": {"name": "n", "kind": "namespaces"}});
        for error in [terminating(), api(gone)] {
            let failure = Failure::new(ChildKind::ConfigMap, "a", Failed::of(&error), &error);
            assert!(failure.is_leaving() && !failure.needs_a_person(), "{failure:?}");
            assert_eq!(refused("KongPluginInstallation n/a", &error), None);
        }
        // Rights and quotas are somebody's business, whatever they say.
        let denied =
            json!({"code": 403, "reason": "Forbidden", "message": "the webhook says: being terminated", "details": {"kind": "configmaps"}});
        let missing =
            json!({"code": 404, "reason": "NotFound", "message": "configmaps \"a\" not found", "details": {"kind": "configmaps"}});
        for status in [denied, missing] {
            let error = api(status);
            let failure = Failure::new(ChildKind::ConfigMap, "a", Failed::of(&error), &error);
            assert!(!failure.is_leaving() && failure.needs_a_person(), "{failure:?}");
        }
    }

    #[test]
    fn a_refused_write_of_the_object_itself_is_told_in_the_servers_words_with_a_cure() {
        let message = "KongPluginInstallation \"a\" is invalid: metadata.annotations: Too long: may not be more than 262144 bytes";
        let error = api(json!({"code": 422, "reason": "Invalid", "message": message}));
        let told = refused("KongPluginInstallation n/a", &error).unwrap();
        assert!(told.starts_with("KongPluginInstallation n/a: ") && told.contains(message), "{told}");
        assert!(told.contains("share 256 KiB: remove some"), "{told}");
        let large = api(json!({"code": 413, "reason": "RequestEntityTooLarge", "message": "limit is 3145728"}));
        assert!(refused("a", &large).is_some_and(|told| told.contains("limit is 3145728; mend")));
        for (code, reason) in [(409, "Conflict"), (500, "InternalError"), (429, "TooManyRequests")] {
            assert_eq!(refused("a", &api(json!({"code": code, "reason": reason, "message": "m"}))), None);
        }
    }
}
