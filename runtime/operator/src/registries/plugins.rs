//! Plugin artifacts out of registries: fetched, and signed as the operator wants it, or not here at all.

use std::sync::Arc;

use futures::{FutureExt, future::BoxFuture};
use weir_core::plugin_installation::snapshot::Artifact;
use weir_host::oci::{Artifact as Pulled, Credentials, Limits, Reference, VerifyError, login::LoginError};

use super::{Current, Live, outcome};
use crate::{
    metrics::{Metrics, PullOutcome, Signed, VerifyOutcome},
    plugin_installation::pulls::registry::{Problem, Registry, problem},
};

/// Every registry that may be reached.
pub struct Shops {
    live: Arc<Live>,
    metrics: Arc<Metrics>,
}

impl Shops {
    /// As `live` says when something is asked.
    #[must_use]
    pub fn new(live: Arc<Live>, metrics: Arc<Metrics>) -> Self {
        Self { live, metrics }
    }

    /// Who signed it; empty where nobody has to.
    async fn signers(
        &self,
        current: &Current,
        reference: &Reference,
        credentials: &Credentials,
        pulled: &Pulled,
    ) -> Result<Vec<String>, Problem> {
        let Some(requirement) = current.requirement(reference) else { return Ok(Vec::new()) };
        let requirements = std::slice::from_ref(requirement);
        let digests: Vec<&str> = std::iter::once(pulled.digest.as_str()).chain(pulled.index_digest.as_deref()).collect();
        match current.puller.verify(reference, credentials, &digests, requirements, current.root()).await {
            Ok(verified) => {
                self.metrics.verified(Signed::Plugin, VerifyOutcome::Verified);
                Ok(verified.signers)
            }
            Err(error) => {
                self.metrics.verified(Signed::Plugin, outcome(&error));
                if let VerifyError::Fetch(error) = &error {
                    // Nobody knows whether it is signed, and it is tried again as any other request.
                    return Err(problem(reference, error));
                }
                let message = format!("the operator's verification list: {error}");
                Err(Problem { message, transient: error.transient(), retry_after: None, outcome: PullOutcome::Unverified })
            }
        }
    }
}

impl Registry for Shops {
    fn resolve<'a>(&'a self, reference: &'a Reference, credentials: &'a Credentials) -> BoxFuture<'a, Result<String, Problem>> {
        async move {
            let current = self.live.current();
            let credentials = current.credentials(reference, credentials).await.map_err(|error| no_login(reference, &error))?;
            current.puller.resolve(reference, &credentials).await.map(|r| r.digest).map_err(|e| problem(reference, &e))
        }
        .boxed()
    }

    fn pull<'a>(&'a self, reference: &'a Reference, credentials: &'a Credentials) -> BoxFuture<'a, Result<Artifact, Problem>> {
        async move {
            let current = self.live.current();
            let credentials = current.credentials(reference, credentials).await.map_err(|error| no_login(reference, &error))?;
            let pulled = current.puller.pull(reference, &credentials, &Limits::PLUGIN).await.map_err(|error| problem(reference, &error))?;
            let signers = self.signers(&current, reference, &credentials, &pulled).await?;
            Ok(Artifact {
                // Of the index where there is one: that is what the tag leads to, and what people see and approve.
                digest: reference.digest().map(String::from).or(pulled.index_digest).unwrap_or(pulled.digest),
                annotations: pulled.annotations,
                signers,
                verification: current.wanted(reference),
                files: pulled.files,
                notes: pulled.notes,
            })
        }
        .boxed()
    }
}

fn no_login(reference: &Reference, error: &LoginError) -> Problem {
    let message = format!("image {reference}: the operator's {error}; name a pull secret, or have the operator's credentials mended");
    Problem { message, transient: false, retry_after: None, outcome: PullOutcome::Unauthorized }
}
