//! From what a pass of an operator saw to manifests.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use serde::Serialize;
use serde_json::{Value, json};
use weir_api::{keys, plugin_installation::KongPluginInstallation};
use weir_core::{
    dataplane::{
        objects::deployment::TEMPLATE_HASH,
        snapshot::{Child, Children, ContentMap, ForeignName, Lookup, ReplicaSetFacts, SecretFacts, Snapshot},
    },
    konnect::Extension,
};

use super::{OperatorFacts, Recording, facts::Recorded};
use crate::pass::Options;

/// What a pass over one DataPlane saw.
#[derive(Debug, Clone)]
pub struct Seen {
    /// The snapshot.
    pub snapshot: Snapshot,
    /// The installations that the DataPlane names, as they are in the cluster.
    pub installations: Vec<KongPluginInstallation>,
}

/// A recording of it. Nothing is redacted yet.
#[must_use]
pub fn of_snapshot(seen: &Seen) -> Recording {
    let snapshot = &seen.snapshot;
    let meta = &snapshot.data_plane.metadata;
    let (namespace, name) = (meta.namespace.clone().unwrap_or_default(), meta.name.clone().unwrap_or_default());
    let place = Place { namespace: &namespace };
    let mut observed =
        vec![json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace, "labels": snapshot.namespace_labels}})];
    observed.push(data_plane(snapshot));
    observed.extend(extension(&snapshot.extension));
    observed.extend(snapshot.secrets.iter().filter_map(|(name, facts)| match facts {
        Lookup::Found(facts) => Some(place.secret(Some(name), facts)),
        Lookup::Missing | Lookup::Unknown => None,
    }));
    observed.extend(plugins(seen, &namespace));
    observed.extend(place.children(&snapshot.children));
    Recording {
        name: format!("{namespace}.{name}"),
        description: format!("What an operator saw of DataPlane {namespace}/{name} at {}.", snapshot.now),
        desired: vec![json!(snapshot.data_plane)],
        observed,
        options: Options {
            now: snapshot.now,
            cluster_name: snapshot.operator.cluster_name.clone(),
            cluster_labels: snapshot.operator.cluster_labels.clone(),
            validate_images: snapshot.operator.validate_images,
            operator: Some(OperatorFacts::of(&snapshot.operator)),
            ..Options::default()
        },
        ..Recording::default()
    }
}

/// The live object, with what was looked for and not found.
fn data_plane(snapshot: &Snapshot) -> Value {
    let mut recorded = Recorded { namesake: snapshot.namesake, ..Recorded::default() };
    if matches!(snapshot.extension, Lookup::Unknown) {
        recorded.unknown.insert("extension".to_owned());
    }
    for used in snapshot.plugins.iter().filter(|used| matches!(used.installation, Lookup::Unknown)) {
        recorded.unknown.insert(format!("{}/{}", used.namespace, used.name));
    }
    for (name, facts) in &snapshot.secrets {
        if matches!(facts, Lookup::Missing) {
            recorded.missing.insert(name.clone());
        }
    }
    let mut object = json!(snapshot.data_plane);
    recorded.put(&mut object);
    object
}

fn extension(found: &Lookup<Extension>) -> Option<Value> {
    match found {
        Lookup::Found(Extension::TokenFree(extension)) => Some(json!(extension)),
        Lookup::Found(Extension::ApiDriven(extension)) => Some(json!(extension)),
        Lookup::Missing | Lookup::Unknown => None,
    }
}

/// Installations, and grants for those that may be used across namespaces.
fn plugins(seen: &Seen, namespace: &str) -> Vec<Value> {
    let mut all = Vec::new();
    for used in &seen.snapshot.plugins {
        let same = |i: &&KongPluginInstallation| {
            i.metadata.namespace.as_deref() == Some(used.namespace.as_str()) && i.metadata.name.as_deref() == Some(used.name.as_str())
        };
        if let (Lookup::Found(found), Some(installation)) = (&used.installation, seen.installations.iter().find(same)) {
            let mut object = json!(installation);
            Recorded { unstored: found.content.is_some() && !found.stored, ..Recorded::default() }.put(&mut object);
            all.push(object);
        }
        if used.permitted && used.namespace != namespace {
            all.push(json!({
                "apiVersion": "gateway.networking.k8s.io/v1", "kind": "ReferenceGrant",
                "metadata": {"namespace": used.namespace, "name": format!("{namespace}-{}", used.name)},
                "spec": {
                    "from": [{"group": keys::GATEWAY_OPERATOR_GROUP, "kind": "DataPlane", "namespace": namespace}],
                    "to": [{"group": keys::GATEWAY_OPERATOR_GROUP, "kind": "KongPluginInstallation", "name": used.name}],
                },
            }));
        }
    }
    all
}

struct Place<'a> {
    namespace: &'a str,
}

impl Place<'_> {
    fn children(&self, children: &Children) -> Vec<Value> {
        let mut all = Vec::new();
        let Children { deployments, services, autoscalers, disruption_budgets, certificates, secrets, contents, replica_sets, foreign } =
            children;
        all.extend(deployments.iter().map(|child| own(child, &child.object.metadata)));
        all.extend(services.iter().map(|child| own(child, &child.object.metadata)));
        all.extend(autoscalers.iter().map(|child| own(child, &child.object.metadata)));
        all.extend(disruption_budgets.iter().map(|child| own(child, &child.object.metadata)));
        all.extend(certificates.iter().map(certificate));
        all.extend(secrets.iter().map(|facts| self.secret(None, facts)));
        all.extend(contents.iter().map(|map| self.content(map)));
        all.extend(replica_sets.iter().map(|set| self.replica_set(set)));
        all.extend(foreign.iter().map(|name| self.foreign(name)));
        all
    }

    /// A Secret by what is known of it. Placeholders stand for its values.
    fn secret(&self, name: Option<&str>, facts: &SecretFacts) -> Value {
        let mut object = json!({"apiVersion": "v1", "kind": "Secret", "metadata": facts.metadata});
        if let Some(fields) = object.as_object_mut() {
            if !facts.type_.is_empty() {
                fields.insert("type".into(), json!(facts.type_));
            }
            if !facts.keys.is_empty() {
                let data: serde_json::Map<String, Value> =
                    facts.keys.keys().map(|key| (key.clone(), json!(super::redact::REDACTED_BASE64))).collect();
                fields.insert("data".into(), Value::Object(data));
            }
        }
        if let Some(meta) = object.get_mut("metadata").and_then(Value::as_object_mut) {
            meta.insert("namespace".into(), json!(self.namespace));
            meta.extend(name.map(|name| ("name".to_owned(), json!(name))));
        }
        let public = facts.keys.iter().filter(|(key, _)| super::redact::PUBLIC.contains(&key.as_str()));
        let keys = public.map(|(key, digest)| (key.clone(), digest.clone())).collect();
        Recorded { keys, ends: facts.ends, unusable: facts.unusable.clone(), ..Recorded::default() }.put(&mut object);
        object
    }

    fn content(&self, map: &ContentMap) -> Value {
        let owners = map
            .owners
            .iter()
            .map(|uid| json!({"apiVersion": "gateway-operator.konghq.com/v1beta1", "kind": "DataPlane", "name": "recorded", "uid": uid}));
        let mut meta = json!({
            "namespace": self.namespace, "name": map.name, "uid": map.uid,
            "labels": {keys::PLUGIN_CONTENT: "recorded"}, "ownerReferences": owners.collect::<Vec<_>>(),
        });
        leave(&mut meta, map.leaving);
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta})
    }

    fn replica_set(&self, set: &ReplicaSetFacts) -> Value {
        let secrets = set.secrets.iter().map(|name| json!({"name": name, "secret": {"secretName": name}}));
        let maps = set.config_maps.iter().map(|name| json!({"name": name, "configMap": {"name": name}}));
        let number = (set.number > 0).then(|| (keys::TEMPLATE_NUMBER, set.number.to_string()));
        let annotations = number.into_iter().chain(set.template_hash.clone().map(|hash| (TEMPLATE_HASH, hash)));
        let annotations: serde_json::Map<String, Value> = annotations
            .chain(set.rolled_spec.clone().map(|spec| (keys::ROLLED_SPEC, spec)))
            .map(|(key, value)| (key.to_owned(), json!(value)))
            .collect();
        let owners: Vec<Value> = set
            .deployment
            .iter()
            .map(|uid| json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": "recorded", "uid": uid, "controller": true}))
            .collect();
        json!({
            "apiVersion": "apps/v1", "kind": "ReplicaSet",
            "metadata": {"namespace": self.namespace, "name": set.name, "annotations": annotations, "ownerReferences": owners},
            "spec": {"selector": {}, "template": {"spec": {"containers": [], "volumes": secrets.chain(maps).collect::<Vec<_>>()}}},
        })
    }

    /// Somebody else's: only its name counts.
    fn foreign(&self, name: &ForeignName) -> Value {
        let (api_version, kind) = name.kind.api();
        let mut meta = json!({"namespace": self.namespace, "name": name.name});
        leave(&mut meta, name.leaving);
        json!({"apiVersion": api_version, "kind": kind, "metadata": meta})
    }
}

/// Marks an object that is being deleted.
fn leave(meta: &mut Value, leaving: bool) {
    if let (true, Some(meta)) = (leaving, meta.as_object_mut()) {
        meta.insert("deletionTimestamp".into(), json!(Time(jiff::Timestamp::UNIX_EPOCH)));
    }
}

fn own<T: Serialize>(child: &Child<T>, meta: &ObjectMeta) -> Value {
    let mut object = json!(child.object);
    let ours = meta.owner_references.as_ref().is_none_or(Vec::is_empty);
    Recorded { answered: child.answered.clone(), ours, ..Recorded::default() }.put(&mut object);
    object
}

fn certificate(child: &Child<Value>) -> Value {
    let mut object = child.object.clone();
    if let Some(fields) = object.as_object_mut() {
        fields.entry("apiVersion").or_insert_with(|| json!("cert-manager.io/v1"));
        fields.entry("kind").or_insert_with(|| json!("Certificate"));
    }
    Recorded { answered: child.answered.clone(), ..Recorded::default() }.put(&mut object);
    object
}
