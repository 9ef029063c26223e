//! The admin certificate: which Secret is in force, and whether a new one has to be minted (design section 4).
//!
//! The Secret's name is a hash of CA digest, names, key type and renewal number. A new certificate is a new Secret; the old one stays until
//! no ReplicaSet uses it.

use jiff::{SignedDuration, Timestamp};
use weir_api::keys;

use super::{labels, meta};
use crate::{
    dataplane::{snapshot::SecretFacts, validate::Validated},
    hash, names,
    plan::CertificateRequest,
};

/// The certificate in force after this pass.
#[derive(Debug, Clone, PartialEq)]
pub struct Certificate {
    /// Name of its Secret.
    pub secret: String,
    /// To be minted first; none when the Secret is there.
    pub request: Option<CertificateRequest>,
}

/// Chooses the certificate: the newest renewal that still lives long enough, else the next one.
#[must_use]
pub fn choose(dp: &Validated<'_>, admin_service: &str) -> Certificate {
    let dns_name = format!("*.{admin_service}.{}.svc", dp.namespace);
    let operator = &dp.snapshot.operator;
    let name = |renewal: u32| {
        let parts = (&operator.ca.digest, &dns_name, operator.ca.key, renewal);
        let digest = hash::digest_json(&parts);
        names::suffixed(&names::child("dataplane-", &dp.name), &digest.trim_start_matches("sha256:").chars().take(10).collect::<String>())
    };
    let ours = |secret: &&SecretFacts| secret.metadata.labels.as_ref().and_then(|l| l.get(keys::SERVICE_SECRET)).is_some_and(|s| s == admin_service);
    let newest = dp.snapshot.children.secrets.iter().filter(ours).filter(|s| s.metadata.name.as_deref() == Some(&name(renewal(s)))).max_by_key(|s| renewal(s));
    if let Some(secret) = newest.filter(|s| lives(s, dp.snapshot.now, operator.certificate_margin_seconds)) {
        return Certificate { secret: secret.metadata.name.clone().unwrap_or_default(), request: None };
    }
    let next = newest.map_or(0, |s| renewal(s).saturating_add(1));
    let secret = name(next);
    let labels = labels(dp, &[(keys::SERVICE_SECRET, admin_service), (&operator.secret_label, "true")]);
    let mut metadata = meta(dp, secret.clone(), labels);
    metadata.annotations = Some([(keys::RENEWAL.to_owned(), next.to_string())].into());
    let request = CertificateRequest {
        metadata,
        common_name: dns_name.clone(),
        organization: "Kong, Inc.".into(),
        country: "US".into(),
        dns_names: vec![dns_name],
        key: operator.ca.key,
        ttl_seconds: operator.certificate_ttl_seconds,
    };
    Certificate { secret, request: Some(request) }
}

fn annotation<'a>(secret: &'a SecretFacts, key: &str) -> Option<&'a str> {
    secret.metadata.annotations.as_ref()?.get(key).map(String::as_str)
}

fn renewal(secret: &SecretFacts) -> u32 {
    annotation(secret, keys::RENEWAL).and_then(|r| r.parse().ok()).unwrap_or(0)
}

/// A Secret that says no end is taken to live: without a cluster nobody has minted it yet.
fn lives(secret: &SecretFacts, now: Timestamp, margin_seconds: i64) -> bool {
    let end = annotation(secret, keys::CERT_EXPIRES_AT).and_then(|text| text.parse::<Timestamp>().ok());
    let Some(end) = end else { return true };
    now.checked_add(SignedDuration::from_secs(margin_seconds)).is_ok_and(|limit| limit < end)
}

/// Secrets of former certificates that nothing uses any more.
#[must_use]
pub fn unused(dp: &Validated<'_>, in_force: &[&str]) -> Vec<SecretFacts> {
    let children = &dp.snapshot.children;
    let used = |name: &str| in_force.contains(&name) || children.replica_sets.iter().any(|r| r.secrets.contains(name));
    let labelled = |s: &&SecretFacts| s.metadata.labels.as_ref().is_some_and(|l| l.contains_key(keys::SERVICE_SECRET));
    children.secrets.iter().filter(labelled).filter(|s| s.metadata.name.as_deref().is_some_and(|n| !used(n))).cloned().collect()
}
