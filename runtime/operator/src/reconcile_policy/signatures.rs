//! Whose signature a component needs, and whether it has it.

use weir_api::reconcile_policy::{OciSource, Verifier};
use weir_core::reconcile_policy::snapshot::{Failure, Step};
use weir_host::oci::{Requirement, Signer};

use super::{
    demand::Demand,
    fetch::{Access, Fetched, Sources},
};
use crate::{
    cache::Key,
    metrics::{Metrics, Signed, VerifyOutcome},
    registries::outcome,
};

const FIELD: &str = "spec.source.oci.verify";
/// What the operator wants of everything; `--verification-file`.
const LIST: &str = "the operator's verification list";
/// Largest public key, bytes.
const MAX_KEY: usize = 16 << 10;

/// Checks the signatures of a component: what the operator wants of everything under its name, and what the policy adds. Tells who signed it,
/// where that was asked for.
pub(super) async fn check(
    sources: &Sources,
    metrics: &Metrics,
    demand: &Demand,
    oci: &OciSource,
    access: &Access,
    fetched: &Fetched,
) -> Result<Option<String>, Failure> {
    let current = &access.current;
    let mut requirements: Vec<Requirement> = current.requirement(&access.reference).cloned().into_iter().collect();
    let asks = match (requirements.is_empty(), &oci.verify) {
        (true, None) => return Ok(None),
        (true, Some(_)) => FIELD.to_owned(),
        (false, None) => LIST.to_owned(),
        (false, Some(_)) => format!("{FIELD} and {LIST}"),
    };
    if let Some(verify) = &oci.verify {
        requirements.push(Requirement {
            any_of: signers(sources, &demand.policy, verify.any_of.as_deref().unwrap_or_default()).await?,
            all_of: signers(sources, &demand.policy, verify.all_of.as_deref().unwrap_or_default()).await?,
        });
    }
    let digests: Vec<&str> = fetched.digests.iter().map(String::as_str).collect();
    match access.puller.verify(&access.reference, &access.credentials, &digests, &requirements, current.root()).await {
        Ok(verified) => {
            metrics.verified(Signed::Policy, VerifyOutcome::Verified);
            Ok(Some(verified.signers.join(", ")))
        }
        Err(error) => {
            let outcome = outcome(&error);
            metrics.verified(Signed::Policy, outcome);
            Err(unverified(outcome.reason(), format!("{asks}: {error}"), error.transient()))
        }
    }
}

async fn signers(sources: &Sources, policy: &Key, verifiers: &[Verifier]) -> Result<Vec<Signer>, Failure> {
    let mut signers = Vec::with_capacity(verifiers.len());
    for verifier in verifiers {
        if let Some(key) = &verifier.public_key {
            signers.push(key_of(sources, policy, &key.secret_ref.name, key.secret_ref.key.as_deref().unwrap_or("cosign.pub")).await?);
        } else if let Some(identity) = &verifier.keyless {
            signers.push(Signer::Identity { issuer: identity.issuer.clone(), subject: identity.subject.clone() });
        }
    }
    Ok(signers)
}

async fn key_of(sources: &Sources, policy: &Key, name: &str, entry: &str) -> Result<Signer, Failure> {
    let key = Key::new(&policy.namespace, name);
    let secret = sources.secret(&key, FIELD).await.map_err(|failure| Failure { step: Step::Verified, ..failure })?;
    match secret.data.and_then(|mut data| data.remove(entry)) {
        Some(bytes) if bytes.0.len() <= MAX_KEY => Ok(Signer::Key { name: format!("{key}#{entry}"), pem: bytes.0 }),
        Some(_) | None => {
            let message =
                format!("{FIELD}: Secret {key} has no key {entry} of at most {} KiB: put the public key there, PEM", MAX_KEY >> 10);
            Err(unverified("InvalidKey", message, false))
        }
    }
}

fn unverified(reason: &str, message: String, transient: bool) -> Failure {
    Failure { step: Step::Verified, reason: reason.to_owned(), message, transient }
}
