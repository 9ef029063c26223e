//! The admin certificate: which Secret is in force, and whether a new one has to be minted (design section 4).
//!
//! The Secret's name is a hash of CA digest, names, key type and renewal number. A new certificate is a new Secret; the old one stays until
//! no ReplicaSet uses it.

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::apps::v1::Deployment;
use weir_api::{condition::reasons, keys};

use super::{labels, meta, proxy::CLUSTER_CERTIFICATE_VOLUME};
use crate::{
    dataplane::{plan::lookup, snapshot::SecretFacts, validate::Validated},
    hash, names,
    plan::{CertificateRequest, ChildKind, HeldPart, Hold},
};

/// The certificate in force after this pass.
#[derive(Debug, Clone, PartialEq)]
pub struct Certificate {
    /// Name of its Secret.
    pub secret: String,
    /// To be minted first; none when the Secret is there.
    pub request: Option<CertificateRequest>,
    /// Its name is not free yet.
    pub blocked: Option<Hold>,
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
    let ours = |secret: &&SecretFacts| {
        secret.metadata.labels.as_ref().and_then(|l| l.get(keys::SERVICE_SECRET)).is_some_and(|s| s == admin_service)
    };
    // Its own name, or the one it got because a stranger held that.
    let named = |s: &&SecretFacts| {
        s.metadata
            .name
            .as_deref()
            .is_some_and(|n| n == name(renewal(s)) || n == names::suffixed(&name(renewal(s)), &names::uid_suffix(&dp.uid)))
    };
    let newest = dp.snapshot.children.secrets.iter().filter(ours).filter(named).max_by_key(|s| renewal(s));
    // One that Kong's operator made has a name of no meaning and counts no renewals. It is used as long as the pods use it.
    let mounted = lookup::live_deployment(dp).and_then(|live| mounted(&live.object));
    let inherited = |s: &&SecretFacts| s.metadata.name.as_deref() == mounted && annotation(s, keys::RENEWAL).is_none();
    let inherited = dp.snapshot.children.secrets.iter().filter(ours).find(inherited);
    let alive = |s: &&SecretFacts| lives(dp, s);
    if let Some(secret) = inherited.filter(alive).or(newest.filter(alive)) {
        return Certificate { secret: secret.metadata.name.clone().unwrap_or_default(), request: None, blocked: None };
    }
    if let Some(problem) = &operator.certificate_problem {
        return unmade(dp, problem, inherited.or(newest), mounted);
    }
    let next = newest.map_or(0, |s| renewal(s).saturating_add(1));
    let mut secret = name(next);
    let holder = dp.snapshot.children.foreign.iter().find(|f| f.kind == ChildKind::Secret && f.name == secret);
    if holder.is_some_and(|h| h.leaving) {
        let message = format!("Secret {secret:?} of a former object is still being deleted; the certificate is made when it is gone");
        let blocked = Hold { what: HeldPart::PodTemplate, reason: reasons::WAITING_FOR_OLD_CHILD.into(), message };
        return Certificate { secret, request: None, blocked: Some(blocked) };
    }
    if holder.is_some() {
        secret = names::suffixed(&secret, &names::uid_suffix(&dp.uid));
    }
    let labels = labels(dp, &[(keys::SERVICE_SECRET, admin_service), (&operator.secret_label, "true")]);
    let mut metadata = meta(dp, secret.clone(), labels);
    metadata.annotations = Some([(keys::RENEWAL.to_owned(), next.to_string())].into());
    let request = CertificateRequest {
        metadata,
        // X.509 has 64 characters for it; the whole name is in the DNS names.
        common_name: dns_name.chars().take(64).collect(),
        organization: "Kong, Inc.".into(),
        country: "US".into(),
        dns_names: vec![dns_name],
        key: operator.ca.key,
        ttl_seconds: operator.certificate_ttl_seconds,
    };
    Certificate { secret, request: Some(request), blocked: None }
}

/// No certificate can be made: the pods go on with the one they have; without any there can be no pods.
fn unmade(dp: &Validated<'_>, problem: &str, known: Option<&SecretFacts>, mounted: Option<&str>) -> Certificate {
    let there = |name: &&str| dp.snapshot.children.secrets.iter().any(|s| s.metadata.name.as_deref() == Some(*name));
    if let Some(secret) = mounted.filter(there).or(known.and_then(|s| s.metadata.name.as_deref())) {
        return Certificate { secret: secret.to_owned(), request: None, blocked: None };
    }
    let message = format!("the admin certificate cannot be made: {problem}");
    let blocked = Hold { what: HeldPart::PodTemplate, reason: reasons::UNABLE_TO_PROVISION.into(), message };
    Certificate { secret: String::new(), request: None, blocked: Some(blocked) }
}

/// The Secret that a Deployment mounts as its certificate.
fn mounted(deployment: &Deployment) -> Option<&str> {
    let volumes = deployment.spec.as_ref()?.template.spec.as_ref()?.volumes.as_ref()?;
    volumes.iter().find(|v| v.name == CLUSTER_CERTIFICATE_VOLUME)?.secret.as_ref()?.secret_name.as_deref()
}

fn annotation<'a>(secret: &'a SecretFacts, key: &str) -> Option<&'a str> {
    secret.metadata.annotations.as_ref()?.get(key).map(String::as_str)
}

fn renewal(secret: &SecretFacts) -> u32 {
    annotation(secret, keys::RENEWAL).and_then(|r| r.parse().ok()).unwrap_or(0)
}

/// Whether a certificate need not be renewed: it lives longer than the margin, or a new one would end no later, since no certificate outlives
/// its CA. A Secret that says no end is taken to live: without a cluster nobody has minted it yet.
fn lives(dp: &Validated<'_>, secret: &SecretFacts) -> bool {
    let operator = &dp.snapshot.operator;
    let end = annotation(secret, keys::CERT_EXPIRES_AT).and_then(|text| text.parse::<Timestamp>().ok());
    let Some(end) = end else { return true };
    let after = |seconds: i64, limit: Timestamp| dp.snapshot.now.checked_add(SignedDuration::from_secs(seconds)).is_ok_and(|at| at < limit);
    let gains = operator.ca.ends.is_none_or(|ca| ca.duration_since(end) > SignedDuration::from_secs(60));
    after(operator.certificate_margin_seconds, end) || (!gains && after(0, end))
}

/// Secrets of ours that hold an admin certificate.
fn certificates<'a>(dp: &'a Validated<'_>) -> impl Iterator<Item = &'a SecretFacts> {
    let labelled = |s: &&SecretFacts| s.metadata.labels.as_ref().is_some_and(|l| l.contains_key(keys::SERVICE_SECRET));
    dp.snapshot.children.secrets.iter().filter(labelled)
}

/// Whether this Secret is a certificate of ours that nears its end.
#[must_use]
pub fn ends(dp: &Validated<'_>, secret: &str) -> bool {
    let mine = certificates(dp).find(|s| s.metadata.name.as_deref() == Some(secret));
    mine.is_some_and(|s| !lives(dp, s))
}

/// Secrets of former certificates that nothing uses any more. What a Deployment mounts stays at least until its next template is out, and
/// a Deployment on its way out still has pods.
#[must_use]
pub fn unused(dp: &Validated<'_>, in_force: &str) -> Vec<SecretFacts> {
    let children = &dp.snapshot.children;
    let used = |name: &str| {
        name == in_force
            || children.deployments.iter().any(|d| mounted(&d.object) == Some(name))
            || children.replica_sets.iter().any(|r| r.secrets.contains(name))
    };
    certificates(dp).filter(|s| s.metadata.name.as_deref().is_some_and(|n| !used(n))).cloned().collect()
}
