//! The CustomResourceDefinitions of every kind in this crate, as they are installed.
//!
//! The derive macros say nearly everything; what is left is put right here: words of the schema generator that mean nothing to an API
//! server, fields that are required although they have a default, bounds of map values, and the types that come from Kubernetes.

mod condition;
mod kubernetes;
mod node;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{CustomResourceDefinition, JSON, JSONSchemaProps};
use kube::CustomResourceExt;

use crate::{
    dataplane::DataPlane, keys, konnect_extension::KonnectExtension, plugin_installation::KongPluginInstallation,
    reconcile_policy::ReconcilePolicy,
};

/// Every CRD of this crate, always in the same order and with the same text.
pub fn all() -> Vec<CustomResourceDefinition> {
    vec![
        finish(DataPlane::crd(), data_plane),
        finish(KonnectExtension::crd(), status_conditions),
        finish(KongPluginInstallation::crd(), status_conditions),
        finish(ReconcilePolicy::crd(), reconcile_policy),
    ]
}

/// Name of the file a CRD is kept in: `<group>_<plural>.yaml`.
pub fn file_name(crd: &CustomResourceDefinition) -> String {
    format!("{}_{}.yaml", crd.spec.group, crd.spec.names.plural)
}

/// Applies what holds for every kind, then `special`.
fn finish(mut crd: CustomResourceDefinition, special: fn(&mut JSONSchemaProps)) -> CustomResourceDefinition {
    crd.metadata.annotations.get_or_insert_default().insert(keys::CRDS.to_owned(), env!("CARGO_PKG_VERSION").to_owned());
    let names = &mut crd.spec.names;
    // The API server fills the first in; naming it keeps a diff against the cluster empty.
    names.list_kind = Some(format!("{}List", names.kind));
    names.short_names = names.short_names.take().filter(|names| !names.is_empty());
    for version in &mut crd.spec.versions {
        if let Some(root) = version.schema.as_mut().and_then(|schema| schema.open_api_v3_schema.as_mut()) {
            clean(root);
            special(root);
        }
    }
    crd
}

/// Removes what schemars adds and Kubernetes has no use for. A field that may be null would keep the null in the store; without the
/// word the API server drops it, as if the field had been left out.
fn clean(schema: &mut JSONSchemaProps) {
    schema.title = None;
    schema.nullable = None;
    node::children(schema).for_each(|(_, child)| clean(child));
}

fn data_plane(root: &mut JSONSchemaProps) {
    // A rule says that and why a spec is needed; the bare "required" of the schema would hide that sentence.
    root.required = None;
    node::change(root, "spec.deployment.rollout.strategy.blueGreen.promotion", |promotion| node::require(promotion, "strategy"));
    node::change(root, "spec.network.services.ingress.labels.{}", |value| {
        value.min_length = Some(0);
        value.max_length = Some(63);
        value.pattern = Some("^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?$".to_owned());
    });
    for embedded in
        ["spec.deployment.podTemplateSpec", "spec.deployment.scaling.horizontal.metrics", "spec.deployment.scaling.horizontal.behavior"]
    {
        node::change(root, embedded, kubernetes::embed);
    }
    node::change(root, "status", |status| {
        node::require(status, "readyReplicas");
        node::require(status, "replicas");
    });
    status_conditions(root);
    node::change(root, "status.rollout.conditions.[]", condition::complete);
}

fn reconcile_policy(root: &mut JSONSchemaProps) {
    status_conditions(root);
    for selector in ["spec.targets.namespaceSelector", "spec.targets.selector"] {
        node::change(root, selector, kubernetes::embed);
        // Kubernetes' type says nothing of it, and one that no selector can be made of would select nobody without a word.
        node::change(root, &format!("{selector}.matchExpressions.[].operator"), |operator| {
            operator.enum_ = Some(["In", "NotIn", "Exists", "DoesNotExist"].map(|value| JSON(value.into())).to_vec());
        });
    }
}

fn status_conditions(root: &mut JSONSchemaProps) {
    node::change(root, "status.conditions.[]", condition::complete);
}
