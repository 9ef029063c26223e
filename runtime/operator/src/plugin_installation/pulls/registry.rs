//! What a registry answers, in the words of the rest of the operator.

use std::time::Duration;

use futures::future::BoxFuture;
use weir_core::plugin_installation::snapshot::Artifact;
use weir_host::oci::{Credentials, Error, Reference};

use crate::metrics::PullOutcome;

/// Where artifacts come from.
pub trait Registry: Send + Sync + 'static {
    /// The digest that a reference leads to. Costs no pull.
    fn resolve<'a>(&'a self, reference: &'a Reference, credentials: &'a Credentials) -> BoxFuture<'a, Result<String, Problem>>;

    /// The content of a reference with a digest.
    fn pull<'a>(&'a self, reference: &'a Reference, credentials: &'a Credentials) -> BoxFuture<'a, Result<Artifact, Problem>>;
}

/// Why a registry was of no use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// What happened and what to do, or that nobody has to do anything; names the image.
    pub message: String,
    /// Whether it may pass by itself.
    pub transient: bool,
    /// How long the registry asks to wait.
    pub retry_after: Option<Duration>,
    /// Metric label.
    pub outcome: PullOutcome,
}

/// Why a registry gave nothing.
pub(crate) fn problem(reference: &Reference, error: &Error) -> Problem {
    let (text, name) = (error.to_string(), reference.to_string());
    let mut message = if text.contains(&name) { text } else { format!("image {name}: {text}") };
    if error.transient() {
        message.push_str("; it is tried again by itself");
    }
    Problem { message, transient: error.transient(), retry_after: error.retry_after(), outcome: outcome(error) }
}

/// Metric label of an error.
#[must_use]
pub fn outcome(error: &Error) -> PullOutcome {
    match error {
        Error::Unauthorized { .. } | Error::Denied { .. } => PullOutcome::Unauthorized,
        Error::NotFound { .. } => PullOutcome::NotFound,
        Error::Network { .. } | Error::Timeout { .. } => PullOutcome::Transient,
        Error::Everywhere { last, .. } => outcome(last),
        Error::Status { .. } if error.transient() => PullOutcome::Transient,
        Error::Status { .. }
        | Error::NotAllowed { .. }
        | Error::Dial(_)
        | Error::Downgrade { .. }
        | Error::Redirect { .. }
        | Error::Tls { .. }
        | Error::NotRegistry { .. }
        | Error::Challenge { .. }
        | Error::WrongKind { .. }
        | Error::Digest { .. }
        | Error::TooLarge { .. }
        | Error::TooShort { .. }
        | Error::Manifest { .. }
        | Error::Layer { .. }
        | Error::Component { .. }
        | Error::ManyTags { .. }
        | Error::Mirror { .. }
        | Error::MirrorCredentials { .. }
        | Error::Decoder { .. } => PullOutcome::Refused,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(status: u16) -> Error {
        let retry_after = (status == 429).then_some(Duration::from_secs(40));
        Error::Status {
            at: "r.example.com".into(),
            status,
            what: "a manifest".into(),
            code: String::new(),
            said: String::new(),
            retry_after,
        }
    }

    #[test]
    fn what_passes_by_itself_says_so_and_nothing_else_does() {
        let reference = Reference::parse("r.example.com/a:1").unwrap();
        let text = |error: &Error| problem(&reference, error).message;
        let network = Error::Network { at: "r.example.com".into(), problem: "connection refused".into() };
        let timeout = Error::Timeout { what: "an answer".into(), limit: Duration::from_secs(1) };
        for error in [status(503), status(429), status(500), network, timeout] {
            let text = text(&error);
            assert!(text.ends_with("; it is tried again by itself") && text.contains("r.example.com/a:1"), "{text}");
        }
        let wrong = Error::NotFound { what: reference.to_string(), said: String::new() };
        for error in [status(418), wrong] {
            assert!(!text(&error).contains("by itself"), "{}", text(&error));
        }
        assert_eq!(problem(&reference, &status(429)).retry_after, Some(Duration::from_secs(40)));
    }
}
