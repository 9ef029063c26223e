//! The client certificate towards Konnect: the one the pods were started with, and when it ends (semantics "Certificates").

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::{apps::v1::Deployment, core::v1::PodTemplateSpec};
use weir_api::keys;

use crate::dataplane::validate::{Konnect, Validated};

/// So long before the end of the certificate in use nothing holds a new one any more.
const MARGIN: SignedDuration = SignedDuration::from_hours(7 * 24);

/// A new certificate that takes the place of one that nears its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Due<'a> {
    /// Digest of the new one.
    pub digest: &'a str,
    /// Whether it is in the Secret that the pods mount: then a restart of the pods is all that is needed.
    pub mounted: bool,
}

/// Digest on a pod template.
#[must_use]
pub fn in_force(template: &PodTemplateSpec) -> Option<&String> {
    template.metadata.as_ref()?.annotations.as_ref()?.get(keys::KONNECT_CERTIFICATE_DIGEST)
}

/// The certificate that has to take the place of the one in use; none while that lives long enough, while nobody knows its end, and for one
/// that ends no later.
#[must_use]
pub fn due<'a>(dp: &'a Validated<'_>, live: &Deployment) -> Option<Due<'a>> {
    let Konnect::Ready { facts, certificate_digest: Some(digest), certificate_ends } = &dp.konnect else { return None };
    let template = &live.spec.as_ref()?.template;
    let used = in_force(template).filter(|used| *used != digest)?;
    let end = ends(dp, Some(used), Some(live))?;
    let near = dp.snapshot.now.checked_add(MARGIN).is_ok_and(|at| at >= end);
    let gains = certificate_ends.is_none_or(|new| new > end);
    let volumes = template.spec.iter().flat_map(|s| s.volumes.iter().flatten());
    let mounted = volumes.filter_map(|v| v.secret.as_ref()?.secret_name.as_ref()).any(|name| *name == facts.certificate_secret);
    (near && gains).then_some(Due { digest, mounted })
}

/// When the certificate of this digest ends: what its Secret says, or what the Deployment has kept.
#[must_use]
pub fn ends(dp: &Validated<'_>, digest: Option<&String>, live: Option<&Deployment>) -> Option<Timestamp> {
    let digest = digest?;
    let in_secret = match &dp.konnect {
        Konnect::Ready { facts: _, certificate_digest, certificate_ends } if certificate_digest.as_ref() == Some(digest) => {
            *certificate_ends
        }
        Konnect::Ready { .. } | Konnect::None | Konnect::NotAccepted { .. } | Konnect::Blocked { .. } => None,
    };
    let kept = || {
        let live = live.filter(|live| live.spec.as_ref().and_then(|s| in_force(&s.template)) == Some(digest))?;
        live.metadata.annotations.as_ref()?.get(keys::KONNECT_CERTIFICATE_ENDS)?.parse().ok()
    };
    in_secret.or_else(kept)
}

/// When a Deployment has to be looked at again for its client certificate.
#[must_use]
pub fn looked_at(live: &Deployment) -> Option<Timestamp> {
    let end: Timestamp = live.metadata.annotations.as_ref()?.get(keys::KONNECT_CERTIFICATE_ENDS)?.parse().ok()?;
    end.checked_sub(MARGIN).ok()
}
