//! What a registry answers, in the words of the rest of the operator.

use std::time::Duration;

use futures::{FutureExt, future::BoxFuture};
use weir_core::plugin_installation::snapshot::Artifact;
use weir_host::oci::{Credentials, Error, Limits, Puller, Reference};

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
    /// What happened and what to do; names the image.
    pub message: String,
    /// Whether it may pass by itself.
    pub transient: bool,
    /// How long the registry asks to wait.
    pub retry_after: Option<Duration>,
    /// Metric label.
    pub outcome: PullOutcome,
}

impl Registry for Puller {
    fn resolve<'a>(&'a self, reference: &'a Reference, credentials: &'a Credentials) -> BoxFuture<'a, Result<String, Problem>> {
        async move { Puller::resolve(self, reference, credentials).await.map(|r| r.digest).map_err(|e| problem(reference, &e)) }.boxed()
    }

    fn pull<'a>(&'a self, reference: &'a Reference, credentials: &'a Credentials) -> BoxFuture<'a, Result<Artifact, Problem>> {
        async move {
            let pulled = Puller::pull(self, reference, credentials, &Limits::PLUGIN).await.map_err(|e| problem(reference, &e))?;
            Ok(Artifact {
                // Of the index where there is one: that is what the tag leads to, and what people see and approve.
                digest: reference.digest().map(String::from).or(pulled.index_digest).unwrap_or(pulled.digest),
                annotations: pulled.annotations,
                signers: Vec::new(),
                files: pulled.files,
                notes: pulled.notes,
            })
        }
        .boxed()
    }
}

fn problem(reference: &Reference, error: &Error) -> Problem {
    let (text, name) = (error.to_string(), reference.to_string());
    let message = if text.contains(&name) { text } else { format!("image {name}: {text}") };
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
