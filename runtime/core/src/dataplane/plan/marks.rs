//! What a Deployment says about the pod template it has, in annotations: what it was rendered from, and whose change the next one is.

use k8s_openapi::api::{apps::v1::Deployment, core::v1::PodTemplateSpec};
use weir_api::keys;

use super::{rollback, rollout::annotation, takeover};
use crate::{
    dataplane::{
        objects::{client_certificate, deployment::TEMPLATE_HASH, konnect_certificate},
        snapshot::Child,
        validate::Validated,
    },
    hash,
    policy::Pairs,
};

/// What is in force with a template.
pub(super) struct InForce<'a> {
    /// Text of `weir.dev/decisions`.
    pub(super) decisions: Option<&'a String>,
    /// The extension of its Konnect environment.
    pub(super) extension: Option<&'a String>,
}

/// Marks of a template that was rendered in this pass.
pub(super) fn rendered(dp: &Validated<'_>, template: &PodTemplateSpec, live: Option<&Child<Deployment>>, in_force: &InForce<'_>) -> Pairs {
    let mut marks = Pairs::from([(TEMPLATE_HASH.to_owned(), hash::digest_json(template))]);
    let number = rollback::next(dp, template, live);
    // Nobody can go back from the first one.
    if number > 1 {
        marks.insert(keys::TEMPLATE_NUMBER.into(), number.to_string());
    }
    if number > 1 || dp.manual() {
        marks.insert(keys::ROLLED_SPEC.into(), spec(dp));
    }
    if dp.manual() {
        let generation = dp.snapshot.data_plane.metadata.generation.unwrap_or_default();
        marks.insert(keys::ROLLED_GENERATION.into(), generation.to_string());
        marks.insert(keys::OPERATOR_VERSION.into(), dp.snapshot.operator.version.clone());
        marks.extend(in_force.extension.map(|name| (keys::KONNECT_EXTENSION.to_owned(), name.clone())));
    }
    marks.extend(in_force.decisions.map(|text| (keys::DECISIONS.to_owned(), text.clone())));
    marks.extend(certificate_ends(dp, template, live));
    marks
}

/// Marks of a template that stays: those it has. The hash is of what was sent, and whose change waits is still to be found out.
pub(super) fn kept(dp: &Validated<'_>, template: &PodTemplateSpec, live: &Child<Deployment>) -> Pairs {
    let stay = [
        TEMPLATE_HASH,
        keys::TEMPLATE_NUMBER,
        keys::ROLLED_SPEC,
        keys::ROLLED_GENERATION,
        keys::OPERATOR_VERSION,
        keys::KONNECT_EXTENSION,
        keys::DECISIONS,
    ];
    let mut marks: Pairs = stay.into_iter().filter_map(|key| Some((key.to_owned(), annotation(live, key)?.clone()))).collect();
    if annotation(live, TEMPLATE_HASH).is_none() {
        let since = takeover::since(dp, &live.object.metadata);
        marks.extend(since.map(|generation| (keys::TAKEOVER_GENERATION.to_owned(), generation)));
    }
    marks.extend(certificate_ends(dp, template, Some(live)));
    // ReplicaSets go one day, and with them what shows that somebody went back.
    marks.extend(rollback::later(dp).map(|later| (keys::ROLLED_BACK.to_owned(), later.to_string())));
    marks
}

fn certificate_ends(dp: &Validated<'_>, template: &PodTemplateSpec, live: Option<&Child<Deployment>>) -> Option<(String, String)> {
    let ends = client_certificate::ends(dp, client_certificate::in_force(template), live.map(|l| &l.object))?;
    Some((keys::KONNECT_CERTIFICATE_ENDS.into(), ends.to_string()))
}

/// Digest of what the spec says about the pods: whoever changes anything else, the number of pods for instance, rolls none.
pub(crate) fn spec(dp: &Validated<'_>) -> String {
    let deployment = dp.spec().deployment.as_ref();
    let plugins: Vec<String> = dp.plugins.iter().map(super::super::validate::Plugin::reference).collect();
    hash::digest_json(&(
        deployment.and_then(|d| d.pod_template_spec.as_ref()),
        deployment.and_then(|d| d.hardened.as_ref()),
        konnect_certificate::options(dp).is_some(),
        extension(dp),
        plugins,
    ))
}

/// The extension that the spec names.
pub(crate) fn extension(dp: &Validated<'_>) -> Option<String> {
    let named = dp.spec().extensions.as_ref()?.first()?;
    Some(format!("{}/{}/{}", named.group, named.kind, named.name))
}
