//! Snapshots from manifests: what `operator` gathers from a cluster, read from files. Read only.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::{api::core::v1::Secret, apimachinery::pkg::apis::meta::v1::ObjectMeta};
use kube::Resource;
use serde_json::Value;
use weir_api::{
    dataplane::{DataPlane, DataPlaneStatus},
    keys, konnect_v2,
    manifest::{Objects, Problem, Schemas, Sourced},
};
use weir_core::{
    dataplane::snapshot::{Child, Children, ContentMap, ForeignName, Operator, ReplicaSetFacts, SecretFacts, Snapshot},
    hash, names,
    plan::{Change, ChildKind, Plan},
    policy::{Finding, Severity},
};

use super::{Options, installations::Planned, report::Of};
use crate::record::facts::Recorded;

/// Name of the Secret with the cluster CA (facts/kong-operator.md 0.2).
const CA_SECRET: &str = "kong-operator-ca";

/// All manifests of a plan.
pub(super) struct World<'a> {
    /// What is not in the manifests.
    pub(super) options: &'a Options,
    /// What our CRDs say.
    pub(super) schemas: &'a Schemas,
    /// What the user wants.
    pub(super) desired: &'a Objects,
    /// What is there.
    pub(super) observed: &'a Objects,
    /// Names that DataPlanes planned before this one take, by namespace: a later one meets them as a stranger's.
    pub(super) planned: BTreeSet<(String, ForeignName)>,
    /// Installations as their own passes leave them.
    pub(super) installations: Planned,
}

/// An object whose kind or group is one of ours but for a slip: in a cluster nothing would ever happen to it.
#[must_use]
pub(super) fn near_miss(object: &Value) -> Option<Of<Finding>> {
    let text = |field: &str| object.get(field).and_then(Value::as_str).unwrap_or_default();
    let (kind, group) = (text("kind"), text("apiVersion").split('/').next().unwrap_or_default());
    let ours = ["DataPlane", "KonnectExtension", "KongPluginInstallation"];
    let right_kind = ours.into_iter().find(|k| k.eq_ignore_ascii_case(kind))?;
    // Another vendor's kind may have one of our names.
    if !group.contains("konghq") || (group == keys::GATEWAY_OPERATOR_GROUP && right_kind == kind) {
        return None;
    }
    let name = object.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default();
    // Kong's other Konnect kinds are none of ours; of this one only the version that is served is read.
    let konnect = group == keys::KONNECT_GROUP && right_kind == "KonnectExtension";
    let message = if konnect {
        format!("no such kind: is KonnectExtension of {} meant?", konnect_v2::KonnectExtension::api_version(&()))
    } else {
        format!("no such kind: is {right_kind} of group {} meant?", keys::GATEWAY_OPERATOR_GROUP)
    };
    let what = Finding { severity: Severity::Error, code: "InvalidObject".into(), path: "kind".into(), message };
    Some(Of { object: format!("{kind} {name}"), what })
}

impl World<'_> {
    /// The observed object of the same name.
    fn live(&self, data_plane: &DataPlane) -> Option<&DataPlane> {
        find(&self.observed.data_planes, &data_plane.metadata)
    }

    /// Remembers the names that a plan takes.
    pub(super) fn take_names(&mut self, namespace: &str, plan: &Plan<DataPlaneStatus>) {
        let names = plan.changes.iter().filter_map(|change| match change {
            Change::Apply { object, first: true } => Some((object.kind(), object.meta().name.clone()?)),
            Change::MintCertificate(request) => Some((ChildKind::Secret, request.metadata.name.clone()?)),
            Change::Apply { first: false, .. }
            | Change::Delete(_)
            | Change::ProvideContent(_)
            | Change::ReleaseContent { .. }
            | Change::TakeOver(_)
            | Change::Reclaim(_)
            | Change::SetFinalizer { .. }
            | Change::SetAnnotation { .. }
            | Change::RemoveAnnotation { .. } => None,
        });
        self.planned.extend(names.map(|(kind, name)| (namespace.to_owned(), ForeignName { kind, name, leaving: false })));
    }

    /// Rules that compare with the live object.
    #[must_use]
    pub(super) fn transition_problems(&self, data_plane: &Sourced<DataPlane>) -> Vec<Problem> {
        let Some(old) = self.live(&data_plane.object) else { return Vec::new() };
        let value = |d: &DataPlane| serde_json::to_value(d).unwrap_or_default();
        let mut new = value(&data_plane.object);
        // Status is a subresource: an edit of the manifest does not touch it.
        if let (Some(new), Some(status)) = (new.as_object_mut(), value(old).get("status")) {
            new.insert("status".into(), status.clone());
        }
        self.schemas.check_update(&value(old), &new, &data_plane.source)
    }

    /// What one pass over this DataPlane sees.
    #[must_use]
    pub(super) fn snapshot(&self, data_plane: &DataPlane) -> Snapshot {
        let mut data_plane = data_plane.clone();
        if let Some(live) = self.live(&data_plane) {
            data_plane.metadata.uid.clone_from(&live.metadata.uid);
            // An edit of the spec is a generation of its own, as it will be once the manifest is applied.
            let edited = i64::from(self.is_edited(&data_plane, live));
            data_plane.metadata.generation = live.metadata.generation.map(|generation| generation.saturating_add(edited));
            data_plane.metadata.deletion_timestamp.clone_from(&live.metadata.deletion_timestamp);
            data_plane.status.clone_from(&live.status);
        }
        let namespace = data_plane.metadata.namespace.clone().unwrap_or_default();
        let recorded = self.live(&data_plane).map(|live| Recorded::of(&live.metadata)).unwrap_or_default();
        let (extension, namesake) = self.extension(&data_plane, &recorded);
        let secrets = self.secrets(&namespace, &extension, &recorded);
        let name = data_plane.metadata.name.clone().unwrap_or_default();
        let uid = data_plane.metadata.uid.clone().unwrap_or_else(|| names::offline_uid("DataPlane", &namespace, &name));
        Snapshot {
            now: self.options.now,
            operator: self.operator(),
            namespace_labels: self.namespace_labels(&namespace),
            children: self.children(&namespace, &name, &uid),
            plugins: self.plugins(&data_plane, &uid, &recorded),
            data_plane,
            extension,
            namesake,
            secrets,
        }
    }

    /// Whether the manifest says something else than the live object, which may have been written down without its defaults.
    fn is_edited(&self, data_plane: &DataPlane, live: &DataPlane) -> bool {
        let mut value = serde_json::to_value(live).unwrap_or_default();
        if let Some(schema) = self.schemas.get(&DataPlane::api_version(&()), &DataPlane::kind(&())) {
            schema.default(&mut value);
        }
        serde_json::from_value::<DataPlane>(value).is_ok_and(|live| live.spec != data_plane.spec)
    }

    pub(super) fn operator(&self) -> Operator {
        let meta =
            ObjectMeta { name: Some(CA_SECRET.into()), namespace: Some(self.options.operator_namespace.clone()), ..ObjectMeta::default() };
        let certificate = self.secret(&meta).and_then(|s| s.keys.get("tls.crt").cloned());
        // Without the CA its digest is a fixed word: names of certificate Secrets differ from the cluster's, nothing else does.
        let mut operator = Operator::with_ca(certificate.unwrap_or_else(|| hash::digest(b"weir plan: no cluster CA")));
        operator.cluster_name.clone_from(&self.options.cluster_name);
        operator.cluster_labels.clone_from(&self.options.cluster_labels);
        operator.validate_images = self.options.validate_images;
        if let Some(facts) = &self.options.operator {
            facts.put(&mut operator);
        }
        operator
    }

    pub(super) fn namespace_labels(&self, namespace: &str) -> BTreeMap<String, String> {
        let mut all = self.desired.namespaces.iter().chain(&self.observed.namespaces);
        all.find(|n| n.object.metadata.name.as_deref() == Some(namespace))
            .and_then(|n| n.object.metadata.labels.clone())
            .unwrap_or_default()
    }

    pub(super) fn secret(&self, meta: &ObjectMeta) -> Option<SecretFacts> {
        let same = |s: &&Sourced<_>| same_name(&expose(s).metadata, meta);
        self.desired.secrets.iter().chain(&self.observed.secrets).find(same).map(|s| facts(expose(s)))
    }

    /// Observed objects of the namespace: ours by owner UID, the others as holders of names.
    fn children(&self, namespace: &str, name: &str, uid: &str) -> Children {
        let mut children = Children::default();
        let owner = Owner { namespace, name, uid };
        let o = self.observed;
        children.deployments = owner.split(ChildKind::Deployment, &o.deployments, &mut children.foreign);
        children.services = owner.split(ChildKind::Service, &o.services, &mut children.foreign);
        children.autoscalers = owner.split(ChildKind::HorizontalPodAutoscaler, &o.horizontal_pod_autoscalers, &mut children.foreign);
        children.disruption_budgets = owner.split(ChildKind::PodDisruptionBudget, &o.pod_disruption_budgets, &mut children.foreign);
        let here = o.secrets.iter().map(expose).filter(|s| s.metadata.namespace.as_deref() == Some(namespace));
        let (ours, others): (Vec<&Secret>, Vec<&Secret>) = here.partition(|s| owner.owns(&s.metadata));
        children.secrets = ours.into_iter().map(facts).collect();
        children.foreign.extend(others.into_iter().map(|s| owner.foreign(ChildKind::Secret, &s.metadata)));
        children.certificates = o
            .others
            .iter()
            .map(|c| &c.object)
            .filter(|c| owner.owns_certificate(c))
            .map(|c| Child { object: c.clone(), answered: Recorded::of(&meta_of(c)).answered })
            .collect();
        children.foreign.extend(self.planned.iter().filter(|(place, _)| place == namespace).map(|(_, name)| name.clone()));
        children.contents = self.contents(namespace, uid);
        children.replica_sets = o
            .replica_sets
            .iter()
            .filter(|r| r.object.metadata.namespace.as_deref() == Some(namespace))
            .map(|r| ReplicaSetFacts::of(&r.object))
            .collect();
        children
    }
}

impl World<'_> {
    /// Plugin content of the namespace.
    fn contents(&self, namespace: &str, uid: &str) -> Vec<ContentMap> {
        let maps = self.observed.others.iter().map(|o| &o.object).filter(|o| o.get("kind").and_then(Value::as_str) == Some("ConfigMap"));
        let metas = maps.filter_map(|map| serde_json::from_value::<ObjectMeta>(map.get("metadata")?.clone()).ok());
        let content = |meta: &ObjectMeta| meta.labels.as_ref().is_some_and(|l| l.contains_key(keys::PLUGIN_CONTENT));
        metas
            .filter(|meta| meta.namespace.as_deref() == Some(namespace) && content(meta))
            .map(|meta| ContentMap {
                owners: meta.owner_references.iter().flatten().map(|o| o.uid.clone()).collect(),
                leaving: meta.deletion_timestamp.is_some(),
                name: meta.name.unwrap_or_default(),
                uid: meta.uid.unwrap_or_default(),
            })
            .filter(|map| map.owners.contains(uid) || map.name.starts_with("plugin-"))
            .collect()
    }
}

struct Owner<'a> {
    namespace: &'a str,
    name: &'a str,
    uid: &'a str,
}

impl Owner<'_> {
    fn owns(&self, meta: &ObjectMeta) -> bool {
        meta.namespace.as_deref() == Some(self.namespace) && meta.owner_references.iter().flatten().any(|o| o.uid == self.uid)
    }

    fn owns_certificate(&self, object: &Value) -> bool {
        object.get("kind").and_then(Value::as_str) == Some("Certificate") && self.owns(&meta_of(object))
    }

    fn foreign(&self, kind: ChildKind, meta: &ObjectMeta) -> ForeignName {
        ForeignName { kind, name: meta.name.clone().unwrap_or_default(), leaving: self.leaving(meta) }
    }

    /// The name will be free: it is being deleted, or belongs to a former DataPlane of our name.
    fn leaving(&self, meta: &ObjectMeta) -> bool {
        let former = |o: &k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference| o.kind == "DataPlane" && o.name == self.name;
        meta.deletion_timestamp.is_some() || meta.owner_references.iter().flatten().any(former)
    }

    fn split<T: Resource + Clone>(&self, kind: ChildKind, all: &[Sourced<T>], foreign: &mut BTreeSet<ForeignName>) -> Vec<Child<T>> {
        let mut ours = Vec::new();
        for object in all.iter().map(|s| &s.object).filter(|o| o.meta().namespace.as_deref() == Some(self.namespace)) {
            let recorded = Recorded::of(object.meta());
            if self.owns(object.meta()) || recorded.ours {
                ours.push(Child { object: object.clone(), answered: recorded.answered });
            } else {
                foreign.insert(self.foreign(kind, object.meta()));
            }
        }
        ours
    }
}

fn meta_of(object: &Value) -> ObjectMeta {
    object.get("metadata").and_then(|m| serde_json::from_value(m.clone()).ok()).unwrap_or_default()
}

fn same_name(a: &ObjectMeta, b: &ObjectMeta) -> bool {
    a.name == b.name && a.namespace == b.namespace
}

pub(super) fn find<'a, T: Resource>(all: &'a [Sourced<T>], meta: &ObjectMeta) -> Option<&'a T> {
    all.iter().map(|s| &s.object).find(|o| same_name(o.meta(), meta))
}

fn expose(secret: &Sourced<weir_api::manifest::Sealed<Secret>>) -> &Secret {
    secret.object.expose()
}

/// The only place where a Secret's values are read: they become digests.
fn facts(secret: &Secret) -> SecretFacts {
    // Manifests carry placeholders; what is in a cluster was looked at there.
    let recorded = Recorded::of(&secret.metadata);
    let mut keys: BTreeMap<String, String> =
        secret.data.iter().flatten().map(|(key, value)| (key.clone(), hash::digest(&value.0))).collect();
    keys.extend(recorded.keys);
    SecretFacts {
        metadata: secret.metadata.clone(),
        type_: secret.type_.clone().unwrap_or_default(),
        keys,
        unusable: recorded.unusable,
        ends: recorded.ends,
    }
}
