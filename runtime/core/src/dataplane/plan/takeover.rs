//! Taking over from Kong's operator (design section 8, semantics "Takeover never rolls"): not while it runs, under the names its children
//! have, and without rolling a pod.

use k8s_openapi::{
    api::{apps::v1::Deployment, core::v1::PodTemplateSpec},
    apimachinery::pkg::apis::meta::v1::ObjectMeta,
};
use serde_json::Value;
use weir_api::keys;

use super::{
    Wanted,
    rollout::{Rollout, approval, stale},
    target,
};
use crate::{
    dataplane::{
        objects::deployment::TEMPLATE_HASH,
        snapshot::{Child, Children},
        validate::Validated,
    },
    hash, live,
    plan::ChildKind,
};

/// Whether a child with these annotations is still as Kong's operator left it: nothing on it is from an apply of ours. A takeover that was
/// cut short is done again.
pub(crate) fn is_kongs(has: impl Fn(&str) -> bool) -> bool {
    !has(keys::APPLIED) && !has(TEMPLATE_HASH)
}

fn has_annotation(meta: &ObjectMeta, key: &str) -> bool {
    meta.annotations.as_ref().is_some_and(|all| all.contains_key(key))
}

/// Holder of the Lease of Kong's operator, while that keeps us from this object: it has children of Kong's, or none at all, and then Kong's
/// operator is about to make them.
pub(crate) fn kept_by<'a>(dp: &'a Validated<'_>) -> Option<&'a str> {
    let holder = dp.snapshot.operator.kong_operator.as_deref()?;
    let (mut any, mut kongs) = (false, false);
    each(&dp.snapshot.children, |kind, meta| {
        if kind != ChildKind::Secret {
            any = true;
            kongs |= is_kongs(|key| has_annotation(meta, key));
        }
    });
    (kongs || !any).then_some(holder)
}

/// Visits the metadata of every child. A Certificate's has to be read out of JSON first.
fn each(children: &Children, mut visit: impl FnMut(ChildKind, &ObjectMeta)) {
    children.deployments.iter().for_each(|c| visit(ChildKind::Deployment, &c.object.metadata));
    children.services.iter().for_each(|c| visit(ChildKind::Service, &c.object.metadata));
    children.autoscalers.iter().for_each(|c| visit(ChildKind::HorizontalPodAutoscaler, &c.object.metadata));
    children.disruption_budgets.iter().for_each(|c| visit(ChildKind::PodDisruptionBudget, &c.object.metadata));
    children.secrets.iter().for_each(|s| visit(ChildKind::Secret, &s.metadata));
    for certificate in &children.certificates {
        if let Some(meta) = metadata(&certificate.object) {
            visit(ChildKind::Certificate, &meta);
        }
    }
}

/// Metadata of an object that this project has no type for.
pub(crate) fn metadata(object: &Value) -> Option<ObjectMeta> {
    serde_json::from_value(object.get("metadata")?.clone()).ok()
}

/// Whether the finalizer of Kong's operator would keep this child for ever: nobody is left to take it off.
pub(super) fn is_bound(meta: &ObjectMeta) -> bool {
    meta.finalizers.iter().flatten().any(|finalizer| finalizer == keys::WAIT_FOR_OWNER)
}

/// Frees children that are not applied and would never go: those on their way out, and Secrets, which one day are.
pub(super) fn release(dp: &Validated<'_>, wanted: &mut Wanted) {
    let leaving = |meta: &ObjectMeta| meta.deletion_timestamp.is_some();
    release_where(dp, wanted, |kind, meta| leaving(meta) || kind == ChildKind::Secret);
}

/// Frees all children of a DataPlane that is being deleted: garbage collection takes them.
pub(super) fn release_all(dp: &Validated<'_>, wanted: &mut Wanted) {
    release_where(dp, wanted, |_, _| true);
}

fn release_where(dp: &Validated<'_>, wanted: &mut Wanted, which: impl Fn(ChildKind, &ObjectMeta) -> bool) {
    each(&dp.snapshot.children, |kind, meta| {
        if is_bound(meta) && which(kind, meta) {
            wanted.take_over(target(dp, kind, meta));
        }
    });
}

/// A difference between our rendering and a template of Kong's, which waits: until the DataPlane itself has changed since the takeover, or
/// its owner approves this very difference.
pub(super) fn waiting(dp: &Validated<'_>, template: &PodTemplateSpec, live: &Child<Deployment>) -> Option<Rollout> {
    let meta = &live.object.metadata;
    // Once we have rendered the template it is ours, and once its owner has changed something it may be.
    if has_annotation(meta, TEMPLATE_HASH) || since(dp, meta)? != generation(dp) {
        return None;
    }
    let current = live.object.spec.as_ref().map(|s| serde_json::to_value(&s.template).unwrap_or_default()).unwrap_or_default();
    if live::defaulted::same(&current, &serde_json::to_value(template).unwrap_or_default()) {
        return None;
    }
    let pending = hash::digest_json(template);
    let approved = approval(dp);
    (approved != Some(pending.as_str())).then(|| Rollout::Takeover { pending, approved: approved.map(String::from) })
}

/// Generation the DataPlane had when its Deployment was taken over; none when Kong's operator did not make it.
pub(super) fn since(dp: &Validated<'_>, deployment: &ObjectMeta) -> Option<String> {
    let recorded = deployment.annotations.as_ref().and_then(|all| all.get(keys::TAKEOVER_GENERATION)).cloned();
    recorded.or_else(|| is_kongs(|key| has_annotation(deployment, key)).then(|| generation(dp)))
}

fn generation(dp: &Validated<'_>) -> String {
    dp.snapshot.data_plane.metadata.generation.unwrap_or_default().to_string()
}

/// What the owner of a waiting difference can do.
pub(crate) fn cure(pending: &str, approved: Option<&str>) -> String {
    let key = keys::APPROVED_ROLLOUT;
    format!(
        "the pods stay as Kong's operator left them; our pod template {pending} waits for the next change of the spec, or for annotation {key}: \
         {pending}{}",
        stale(approved)
    )
}

/// Why nothing is done while Kong's operator runs.
pub(crate) fn running(holder: &str) -> String {
    format!(
        "Kong's operator is running ({holder} holds its Lease): nothing is taken over until it stops; scale its Deployment to 0 replicas"
    )
}
