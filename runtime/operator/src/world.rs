//! Everything the operator sees of the cluster: one cache per kind, reduced to what a pass reads.

use std::{collections::BTreeMap, sync::atomic::AtomicBool};

use k8s_openapi::{
    api::{
        apps::v1::{Deployment, ReplicaSet},
        autoscaling::v2::HorizontalPodAutoscaler,
        coordination::v1::Lease,
        core::v1::{ConfigMap, Namespace, Secret, Service},
        policy::v1::PodDisruptionBudget,
    },
    apimachinery::pkg::apis::meta::v1::{FieldsV1, ObjectMeta},
};
use kube::core::{DynamicObject, PartialObjectMeta};
use serde_json::{Map, Value, json};
use weir_api::{
    condition::types, dataplane::DataPlane, keys, konnect_extension::KonnectExtension, konnect_v2,
    plugin_installation::KongPluginInstallation, reconcile_policy::ReconcilePolicy,
};
use weir_core::{dataplane::snapshot::ReplicaSetFacts, live::owned::TEMPLATE_HASH_FIELD};

use crate::{
    cache::{Cache, Cached},
    grants::Grant,
};

/// All caches.
#[derive(Debug, Default)]
pub struct World {
    /// DataPlanes.
    pub data_planes: Cache<DataPlane>,
    /// Token-free KonnectExtensions.
    pub extensions: Cache<KonnectExtension>,
    /// API-driven KonnectExtensions, reduced.
    pub api_extensions: Cache<konnect_v2::KonnectExtension>,
    /// Whether their kind is served, and may be read.
    pub api_extensions_served: AtomicBool,
    /// Plugin installations.
    pub installations: Cache<KongPluginInstallation>,
    /// Metadata of ConfigMaps with plugin content: sets of installations, and the copies that DataPlanes mount.
    pub contents: Cache<PartialObjectMeta<ConfigMap>>,
    /// Metadata of ConfigMaps that Kong's operator made for installations.
    pub kong_contents: Cache<PartialObjectMeta<ConfigMap>>,
    /// ReconcilePolicies.
    pub policies: Cache<ReconcilePolicy>,
    /// ReferenceGrants, where the Gateway API serves them as v1.
    pub grants: Cache<Grant>,
    /// The same of v1beta1.
    pub beta_grants: Cache<Grant>,
    /// Deployments of ours or of Kong's operator.
    pub deployments: Cache<Deployment>,
    /// ReplicaSets of them, reduced.
    pub replica_sets: Cache<ReplicaSetMeta>,
    /// Services of ours or of Kong's operator.
    pub services: Cache<Service>,
    /// Names that other Services hold.
    pub other_services: Cache<PartialObjectMeta<Service>>,
    /// Autoscalers of ours.
    pub autoscalers: Cache<HorizontalPodAutoscaler>,
    /// Disruption budgets of ours.
    pub disruption_budgets: Cache<PodDisruptionBudget>,
    /// cert-manager Certificates of ours, where that kind is served.
    pub certificates: Cache<ForeignMeta>,
    /// Metadata of every Secret: a Secret that exists is never "not found" for want of a label.
    pub secrets: Cache<PartialObjectMeta<Secret>>,
    /// The Secret of the cluster CA.
    pub authority: Cache<PartialObjectMeta<Secret>>,
    /// Namespaces.
    pub namespaces: Cache<PartialObjectMeta<Namespace>>,
    /// Kong's operator's leader election.
    pub kong_leases: Cache<Lease>,
}

/// A ReplicaSet, reduced.
#[derive(Debug)]
pub struct ReplicaSetMeta {
    metadata: ObjectMeta,
    /// What a pass reads.
    pub facts: ReplicaSetFacts,
}

impl Cached for ReplicaSetMeta {
    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }
}

impl ReplicaSetMeta {
    /// Keeps what a pass reads.
    #[must_use]
    pub fn of(set: ReplicaSet) -> Self {
        Self { facts: ReplicaSetFacts::of(&set), metadata: identity(set.metadata) }
    }
}

/// An object of a kind without a type here.
#[derive(Debug)]
pub struct ForeignMeta(pub DynamicObject);

impl Cached for ForeignMeta {
    fn meta(&self) -> &ObjectMeta {
        &self.0.metadata
    }
}

/// Name, UID, version, owners and whether it is leaving.
#[must_use]
pub fn identity(meta: ObjectMeta) -> ObjectMeta {
    ObjectMeta {
        name: meta.name,
        namespace: meta.namespace,
        uid: meta.uid,
        resource_version: meta.resource_version,
        owner_references: meta.owner_references,
        deletion_timestamp: meta.deletion_timestamp,
        ..ObjectMeta::default()
    }
}

/// Without the record of who owns which field: half of an object, and no pass reads it.
#[must_use]
pub fn slim<K: kube::Resource>(mut object: K) -> K {
    object.meta_mut().managed_fields = None;
    object
}

/// An object we serve keeps of that record who else reports on its status: while Kong's operator does, we do not overwrite it.
#[must_use]
pub fn slim_served<K: kube::Resource>(mut object: K) -> K {
    if let Some(entries) = &mut object.meta_mut().managed_fields {
        entries.retain(|e| e.subresource.as_deref() == Some("status") && e.manager.as_deref() != Some(keys::FIELD_MANAGER));
    }
    object
}

/// An API-driven extension, as far as a pass reads it: without what its own operator changes about it for reasons of its own.
#[must_use]
pub fn slim_api_extension(mut extension: konnect_v2::KonnectExtension) -> konnect_v2::KonnectExtension {
    let generation = extension.metadata.generation;
    extension.metadata = ObjectMeta { generation, ..identity(extension.metadata) };
    if let Some(conditions) = extension.status.as_mut().and_then(|status| status.conditions.as_mut()) {
        conditions.retain(|condition| condition.type_ == types::READY);
    }
    extension
}

/// A Deployment keeps of that record our own entry, what other managers own of replicas and pod template, and whether one of them owns the hash
/// of our template.
#[must_use]
pub fn slim_deployment(mut deployment: Deployment) -> Deployment {
    let entries = deployment.metadata.managed_fields.take().unwrap_or_default();
    let kept = entries.into_iter().filter_map(|mut entry| {
        let ours = entry.manager.as_deref() == Some(keys::FIELD_MANAGER) && entry.operation.as_deref() == Some("Apply");
        if !ours {
            entry.fields_v1 = Some(FieldsV1(others(&entry.fields_v1.as_ref()?.0)?));
        }
        Some(entry)
    });
    deployment.metadata.managed_fields = Some(kept.collect());
    deployment
}

/// What counts of another manager's fields.
fn others(fields: &Value) -> Option<Value> {
    let mut kept = Map::new();
    let spec = fields.get("f:spec");
    let parts: Map<_, _> = ["f:replicas", "f:template"].into_iter().filter_map(|key| Some((key.into(), spec?.get(key)?.clone()))).collect();
    if !parts.is_empty() {
        kept.insert("f:spec".into(), parts.into());
    }
    if let Some(hash) = fields.pointer("/f:metadata/f:annotations").and_then(|all| all.get(TEMPLATE_HASH_FIELD)) {
        kept.insert("f:metadata".into(), json!({"f:annotations": {TEMPLATE_HASH_FIELD: hash}}));
    }
    (!kept.is_empty()).then(|| kept.into())
}

/// A Secret's metadata; labels and annotations only where the Secret is somebody's child, so that a cluster full of large annotations
/// costs nothing.
#[must_use]
pub fn secret_meta(mut meta: ObjectMeta) -> PartialObjectMeta<Secret> {
    let (labels, annotations, finalizers) = (meta.labels.take(), meta.annotations.take(), meta.finalizers.take());
    let managed = labels.as_ref().is_some_and(|l| l.contains_key(keys::MANAGED_BY));
    let mut meta = identity(meta);
    if managed {
        meta.labels = labels;
        meta.annotations = annotations;
        meta.finalizers = finalizers;
    }
    PartialObjectMeta { types: None, metadata: meta, _phantom: std::marker::PhantomData }
}

/// Metadata that holds a name.
#[must_use]
pub fn name_only<K>(object: PartialObjectMeta<K>) -> PartialObjectMeta<K> {
    PartialObjectMeta { types: None, metadata: identity(object.metadata), _phantom: std::marker::PhantomData }
}

/// A namespace's labels.
#[must_use]
pub fn labels_only<K>(mut object: PartialObjectMeta<K>) -> PartialObjectMeta<K> {
    let labels = object.metadata.labels.take();
    let metadata = ObjectMeta { labels, ..identity(object.metadata) };
    PartialObjectMeta { types: None, metadata, _phantom: std::marker::PhantomData }
}

/// Metadata of a ConfigMap with plugin content. Of annotations, only what tells whether we have to write.
#[must_use]
pub fn content_meta(mut meta: ObjectMeta) -> PartialObjectMeta<ConfigMap> {
    let labels = meta.labels.take();
    let applied = meta.annotations.take().and_then(|mut all| all.remove(keys::APPLIED));
    let annotations = applied.map(|applied| BTreeMap::from([(keys::APPLIED.to_owned(), applied)]));
    let metadata = ObjectMeta { labels, annotations, ..identity(meta) };
    PartialObjectMeta { types: None, metadata, _phantom: std::marker::PhantomData }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_other_managers_only_what_counts_is_kept() {
        let undo =
            json!({"f:metadata": {"f:annotations": {".": {}, "f:note": {}, "f:weir.dev/template-hash": {}}}, "f:spec": {"f:paused": {}}});
        let scaler = json!({"f:spec": {"f:replicas": {}, "f:paused": {}}});
        let labels = json!({"f:metadata": {"f:labels": {"f:theirs": {}}}});
        let ours = json!({"f:metadata": {"f:labels": {"f:app": {}}}});
        let entry =
            |manager: &str, operation: &str, fields: &Value| json!({"manager": manager, "operation": operation, "fieldsV1": fields});
        let entries = json!([
            entry("kubectl", "Update", &undo),
            entry("scaler", "Update", &scaler),
            entry("other", "Update", &labels),
            entry(keys::FIELD_MANAGER, "Apply", &ours),
        ]);
        let live = json!({"metadata": {"name": "d", "managedFields": entries}, "spec": {"selector": {}, "template": {}}});
        let slim = slim_deployment(serde_json::from_value(live).unwrap());
        let kept: Vec<Value> = slim.metadata.managed_fields.unwrap().into_iter().map(|e| e.fields_v1.unwrap().0).collect();
        let wanted =
            [json!({"f:metadata": {"f:annotations": {"f:weir.dev/template-hash": {}}}}), json!({"f:spec": {"f:replicas": {}}}), ours];
        assert_eq!(kept, wanted);
    }
}
