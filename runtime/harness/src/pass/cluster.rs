//! What a cluster would have after a pass, so that the next one meets it.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use serde_json::{Map, Value, json};
use weir_api::manifest::{self, Source};
use weir_core::{
    names,
    plan::{Change, Target},
};

use super::{Done, Kinds, Manifests, report::provided};

/// Objects of a cluster: those that users apply, and those that are there.
///
/// It does what the API server does with writes of ours, as far as a pass can see: no admission, no garbage collection, no other controllers.
/// Whoever needs a Deployment to be available says so with [`Cluster::observe`].
#[derive(Debug, Clone, Default)]
pub struct Cluster {
    desired: BTreeMap<Key, Value>,
    observed: BTreeMap<Key, Value>,
    /// Manifests as they were written: until a pass has taken them over, mistakes in them are named by file and line.
    unread: Vec<Source>,
    unread_observed: Vec<Source>,
    namespace: String,
    unclear: Vec<String>,
}

/// Group, kind, namespace and name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    group: String,
    kind: String,
    namespace: String,
    name: String,
}

impl Key {
    fn of(value: &Value) -> Self {
        let text = |path: &str| value.pointer(path).and_then(Value::as_str).unwrap_or_default().to_owned();
        let api_version = text("/apiVersion");
        let group = api_version.split_once('/').map(|(group, _)| group.to_owned()).unwrap_or_default();
        Self { group, kind: text("/kind"), namespace: text("/metadata/namespace"), name: text("/metadata/name") }
    }

    fn target(target: &Target) -> Self {
        let (api_version, kind) = target.kind.api();
        let group = api_version.split_once('/').map(|(group, _)| group.to_owned()).unwrap_or_default();
        Self { group, kind: kind.to_owned(), namespace: target.namespace.clone(), name: target.name.clone() }
    }
}

impl Cluster {
    /// A cluster with these manifests; objects that name no namespace are put into `namespace`.
    #[must_use]
    pub fn new(manifests: Manifests, kinds: &Kinds, namespace: &str) -> Self {
        let mut cluster = Self { namespace: namespace.to_owned(), ..Self::default() };
        cluster.observed = keyed(manifest::values(manifests.observed.clone(), &kinds.none, namespace));
        cluster.desired = keyed(manifest::values(manifests.desired.clone(), &kinds.known, namespace));
        cluster.unread = manifests.desired;
        cluster.unread_observed = manifests.observed;
        cluster
    }

    /// A user applies further manifests: objects of the same name are replaced, the operator's own annotations on them stay.
    pub fn apply(&mut self, manifests: Manifests, kinds: &Kinds) {
        let observed = keyed(manifest::values(manifests.observed, &kinds.none, &self.namespace));
        let desired = keyed(manifest::values(manifests.desired, &kinds.known, &self.namespace));
        self.observed.extend(observed);
        for (key, mut value) in desired {
            keep(&mut value, self.desired.get(&key));
            self.desired.insert(key, value);
        }
        self.taken();
    }

    /// A user deletes an object, as `Kind name` or `Kind namespace/name`. Whether there was one.
    pub fn delete(&mut self, object: &str) -> bool {
        let Some(key) = self.find(object) else { return false };
        let known = self.desired.remove(&key).is_some();
        let live = self.observed.remove(&key).is_some();
        self.taken();
        known || live
    }

    /// Somebody else changes what is there: `change` is merged into the object (RFC 7386). Whether there was one.
    pub fn observe(&mut self, object: &str, change: &Value) -> bool {
        let Some(value) = self.find(object).and_then(|key| self.observed.get_mut(&key)) else { return false };
        merge(value, change);
        self.taken();
        true
    }

    /// Passes that did something of which nobody knows here how a cluster would be afterwards.
    #[must_use]
    pub fn unclear(&self) -> &[String] {
        &self.unclear
    }

    /// What the next pass reads.
    #[must_use]
    pub fn manifests(&self) -> Manifests {
        Manifests {
            desired: if self.unread.is_empty() { list("manifests", &self.desired) } else { self.unread.clone() },
            observed: if self.unread_observed.is_empty() { list("cluster", &self.observed) } else { self.unread_observed.clone() },
        }
    }

    /// The objects that passes were about, with their statuses.
    pub(crate) fn subjects(&self) -> impl Iterator<Item = &Value> {
        self.desired.iter().filter(|(key, _)| self.observed.contains_key(*key)).map(|(_, value)| value)
    }

    fn find(&self, object: &str) -> Option<Key> {
        let (kind, rest) = object.split_once(' ')?;
        let (namespace, name) = rest.split_once('/').unwrap_or((&self.namespace, rest));
        let same = |key: &&Key| key.kind == kind && key.name == name && (key.namespace == namespace || key.namespace.is_empty());
        self.desired.keys().chain(self.observed.keys()).find(same).cloned()
    }

    /// From here on the maps say what there is.
    fn taken(&mut self) {
        self.unread.clear();
        self.unread_observed.clear();
    }

    /// What a pass over one object wrote.
    pub(super) fn take(&mut self, done: &Done<'_>) {
        self.taken();
        self.take_object(done);
        for change in done.changes {
            match change {
                Change::Apply { object, first: _ } => self.put(object.to_json()),
                Change::MintCertificate(request) => self.put(json!({
                    "apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/tls", "metadata": request.metadata,
                    // What a pass sees of them are digests; these are as good as any.
                    "data": {"ca.crt": "Y2E=", "tls.crt": "Y2VydA==", "tls.key": "a2V5"},
                })),
                Change::ProvideContent(request) => {
                    for map in provided(request, done.planned) {
                        self.own(map, &request.owner);
                    }
                }
                Change::ReleaseContent { target, owner } => self.release(&Key::target(target), owner),
                Change::Delete(target) => {
                    self.observed.remove(&Key::target(target));
                }
                Change::TakeOver(target) | Change::Reclaim(target) => {
                    self.unclear.push(format!("{} {} changes hands", target.kind.api().1, target.name));
                }
                // The object's own: see there.
                Change::SetFinalizer { .. } | Change::SetAnnotation { .. } | Change::RemoveAnnotation { .. } => {}
            }
        }
    }

    /// The object of the pass itself, in both roles: the user applied it, and it is there.
    fn take_object(&mut self, done: &Done<'_>) {
        let text = |text: &Option<String>| text.clone().unwrap_or_default();
        let (namespace, name) = (text(&done.meta.namespace), text(&done.meta.name));
        let same = |key: &&Key| key.kind == done.kind && key.namespace == namespace && key.name == name;
        let Some(key) = self.desired.keys().find(same).cloned() else { return };
        let Some(mut value) = self.desired.remove(&key) else { return };
        let uid = done.meta.uid.clone().unwrap_or_else(|| names::offline_uid(done.kind, &namespace, &name));
        at(&mut value, &["metadata"], |metadata| {
            metadata.insert("uid".into(), json!(uid));
            // A pass that saw no generation took none down either.
            metadata.extend(done.meta.generation.map(|generation| ("generation".to_owned(), json!(generation))));
            let times = [("creationTimestamp", &done.meta.creation_timestamp), ("deletionTimestamp", &done.meta.deletion_timestamp)];
            metadata.extend(times.into_iter().filter_map(|(name, time)| Some((name.to_owned(), json!(time.as_ref()?)))));
        });
        keep(&mut value, self.observed.get(&key));
        for change in done.changes {
            match change {
                Change::SetAnnotation { key, value: text } => {
                    at(&mut value, &["metadata", "annotations"], |all| drop(all.insert(key.clone(), json!(text))));
                }
                Change::RemoveAnnotation { key } => at(&mut value, &["metadata", "annotations"], |all| drop(all.remove(key))),
                Change::SetFinalizer { key, present } => finalizer(&mut value, key, *present),
                Change::Apply { .. }
                | Change::MintCertificate(_)
                | Change::ProvideContent(_)
                | Change::ReleaseContent { .. }
                | Change::Delete(_)
                | Change::TakeOver(_)
                | Change::Reclaim(_) => {}
            }
        }
        if let (Some(status), Some(fields)) = (&done.status, value.as_object_mut()) {
            fields.insert("status".into(), status.clone());
        }
        self.observed.insert(key.clone(), value.clone());
        self.desired.insert(key, value);
    }

    /// A write of ours: what others keep in the object (its status, its UID) stays.
    fn put(&mut self, mut value: Value) {
        let key = Key::of(&value);
        let live = self.observed.get(&key);
        let kept = |path: &str| live.and_then(|live| live.pointer(path)).cloned();
        let uid = kept("/metadata/uid").unwrap_or_else(|| json!(names::offline_uid(&key.kind, &key.namespace, &key.name)));
        let (created, managed, status) = (kept("/metadata/creationTimestamp"), kept("/metadata/managedFields"), kept("/status"));
        at(&mut value, &["metadata"], |metadata| {
            metadata.insert("uid".into(), uid);
            metadata.remove("resourceVersion");
            let all = [("creationTimestamp", created), ("managedFields", managed)];
            metadata.extend(all.into_iter().filter_map(|(name, kept)| Some((name.to_owned(), kept?))));
        });
        if let (Some(status), Some(fields)) = (status, value.as_object_mut()) {
            fields.insert("status".into(), status);
        }
        self.observed.insert(key, value);
    }

    /// A copy of plugin content, with one owner more.
    fn own(&mut self, map: Value, owner: &OwnerReference) {
        let key = Key::of(&map);
        let before = self.observed.get(&key).and_then(|live| live.pointer("/metadata/ownerReferences")).and_then(Value::as_array).cloned();
        self.put(map);
        let Some(value) = self.observed.get_mut(&key) else { return };
        let mut owners = before.unwrap_or_default();
        if !owners.iter().any(|known| known.get("uid").and_then(Value::as_str) == Some(owner.uid.as_str())) {
            owners.push(json!(owner));
        }
        at(value, &["metadata"], |metadata| drop(metadata.insert("ownerReferences".into(), Value::Array(owners))));
    }

    fn release(&mut self, key: &Key, owner: &str) {
        let Some(value) = self.observed.get_mut(key) else { return };
        let Some(owners) = value.pointer_mut("/metadata/ownerReferences").and_then(Value::as_array_mut) else { return };
        owners.retain(|known| known.get("uid").and_then(Value::as_str) != Some(owner));
        if owners.is_empty() {
            self.observed.remove(key);
        }
    }
}

fn keyed(values: Vec<Value>) -> BTreeMap<Key, Value> {
    values.into_iter().map(|value| (Key::of(&value), value)).collect()
}

fn list(name: &str, objects: &BTreeMap<Key, Value>) -> Vec<Source> {
    if objects.is_empty() {
        return Vec::new();
    }
    let items: Vec<&Value> = objects.values().collect();
    vec![Source { name: name.to_owned(), text: json!({"apiVersion": "v1", "kind": "List", "items": items}).to_string() }]
}

/// Changes the map at a path of names; what is on the way and is no map becomes one.
fn at(value: &mut Value, path: &[&str], change: impl FnOnce(&mut Map<String, Value>)) {
    if !value.is_object() {
        *value = json!({});
    }
    let Some(map) = value.as_object_mut() else { return };
    match path {
        [] => change(map),
        [first, rest @ ..] => at(map.entry(*first).or_insert_with(|| json!({})), rest, change),
    }
}

/// Puts the operator's own annotations of the live object beside those of a manifest, as an apply leaves them.
fn keep(value: &mut Value, live: Option<&Value>) {
    let ours = live.map(own_annotations).unwrap_or_default();
    if !ours.is_empty() {
        at(value, &["metadata", "annotations"], |all| ours.into_iter().for_each(|(name, kept)| _ = all.entry(name).or_insert(kept)));
    }
}

/// What the operator keeps in annotations of a user's object.
fn own_annotations(value: &Value) -> Vec<(String, Value)> {
    let all = value.pointer("/metadata/annotations").and_then(Value::as_object);
    let ours = |(name, value): (&String, &Value)| name.starts_with("weir.dev/").then(|| (name.clone(), value.clone()));
    all.into_iter().flatten().filter_map(ours).collect()
}

fn finalizer(value: &mut Value, key: &str, present: bool) {
    at(value, &["metadata"], |metadata| {
        let list = metadata.entry("finalizers").or_insert_with(|| json!([]));
        let Some(list) = list.as_array_mut() else { return };
        list.retain(|known| known.as_str() != Some(key));
        if present {
            list.push(json!(key));
        }
    });
}

/// A JSON merge patch.
pub(super) fn merge(into: &mut Value, patch: &Value) {
    let Value::Object(patch) = patch else {
        *into = patch.clone();
        return;
    };
    at(into, &[], |fields| {
        for (name, change) in patch {
            if change.is_null() {
                fields.remove(name);
            } else {
                merge(fields.entry(name.clone()).or_insert(Value::Null), change);
            }
        }
    });
}
