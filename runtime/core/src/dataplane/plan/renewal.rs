//! Certificates that near their end, in a pod template that otherwise stays: they roll alone (semantics "Owner-held rollouts").

use k8s_openapi::api::{apps::v1::Deployment, core::v1::PodTemplateSpec};
use weir_api::keys;

use super::rollout::annotation;
use crate::{
    dataplane::{
        decide::Decided,
        objects::{certificate, client_certificate, deployment::TEMPLATE_HASH, proxy::CLUSTER_CERTIFICATE_VOLUME},
        snapshot::Child,
        validate::{Konnect, Validated},
    },
    hash, live as live_objects,
};

/// A template that stays as it is.
pub(super) struct Staying {
    /// What of it is ours, with new certificates in the place of those that near their end.
    pub(super) template: PodTemplateSpec,
    /// It mounts the admin certificate in force.
    pub(super) has_certificate: bool,
}

/// The live template, as far as it is ours; all of it where that is not known.
pub(super) fn staying(dp: &Validated<'_>, decided: &Decided, live: &Child<Deployment>) -> Staying {
    let whole = || live.object.spec.as_ref().map(|s| s.template.clone()).unwrap_or_default();
    let mut template = live_objects::owned::template(&live.object).unwrap_or_else(whole);
    let has_certificate = renew(dp, decided, &mut template);
    let digest = client_certificate::due(dp, &live.object).filter(|due| due.mounted).map(|due| due.digest.to_owned());
    if let (Some(place), Some(digest)) = (client_digest(&mut template), digest) {
        *place = digest;
    }
    Staying { template, has_certificate }
}

/// Puts the admin certificate in force in the place of one that nears its end. False while the template has another one, which stays.
fn renew(dp: &Validated<'_>, decided: &Decided, template: &mut PodTemplateSpec) -> bool {
    let in_force = &decided.certificate.secret;
    match mounted_certificate(template).filter(|name| *name == in_force || certificate::ends(dp, name)) {
        Some(name) => {
            name.clone_from(in_force);
            true
        }
        None => false,
    }
}

/// Whether the places of certificates that near their end are all that a rendering changes.
pub(super) fn is_renewal(dp: &Validated<'_>, rendered: &PodTemplateSpec, live: &Child<Deployment>) -> bool {
    let Some(mut current) = live.object.spec.as_ref().map(|s| s.template.clone()) else { return false };
    let mut before = rendered.clone();
    let mut renews = false;
    if let (Some(used), Some(new)) = (mounted_certificate(&mut current), mounted_certificate(&mut before))
        && used != new
        && certificate::ends(dp, used)
    {
        new.clone_from(used);
        renews = true;
    }
    if let (Some(used), Some(new)) = (client_digest(&mut current), client_digest(&mut before))
        && client_certificate::due(dp, &live.object).is_some_and(|due| due.mounted && due.digest == new.as_str())
    {
        new.clone_from(used);
        renews = true;
    }
    renews && annotation(live, TEMPLATE_HASH) == Some(&hash::digest_json(&before))
}

/// Secret of the admin certificate in a template.
fn mounted_certificate(template: &mut PodTemplateSpec) -> Option<&mut String> {
    let volumes = template.spec.as_mut()?.volumes.as_mut()?;
    volumes.iter_mut().find(|v| v.name == CLUSTER_CERTIFICATE_VOLUME)?.secret.as_mut()?.secret_name.as_mut()
}

/// Digest of the Konnect certificate on a template.
fn client_digest(template: &mut PodTemplateSpec) -> Option<&mut String> {
    template.metadata.as_mut()?.annotations.as_mut()?.get_mut(keys::KONNECT_CERTIFICATE_DIGEST)
}

/// Digest of the Konnect certificate for the answer of this pass: the Secret's, or the one in force while the answer is an older one.
pub(super) fn certificate_digest(dp: &Validated<'_>, decided: &Decided, live: Option<&Child<Deployment>>) -> Option<String> {
    decided.konnect.as_ref()?;
    let older = || {
        let live = &live?.object;
        let due = client_certificate::due(dp, live).filter(|due| due.mounted).map(|due| due.digest.to_owned());
        due.or_else(|| client_certificate::in_force(&live.spec.as_ref()?.template).cloned())
    };
    match &dp.konnect {
        Konnect::Ready { certificate_digest: Some(digest), .. } if !decided.konnect_kept => Some(digest.clone()),
        Konnect::Ready { .. } | Konnect::None | Konnect::NotAccepted { .. } | Konnect::Blocked { .. } => older(),
    }
}
