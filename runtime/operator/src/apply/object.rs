//! Writes to the object of a pass itself: status, finalizer, one-time annotations. Each is conditional on the version the pass saw.

use kube::{
    Resource,
    api::{Patch, PatchParams},
    core::{NamespaceResourceScope, Request},
};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Map, Value, json};
use weir_api::keys;
use weir_core::plan::Change;

use super::{Failed, Writer};
use crate::{
    cache::{Cache, Cached, Key},
    metrics::{ObjectKind, Verb},
    world::slim_served,
};

/// How a conditional write ended.
#[derive(Debug)]
pub enum Patched {
    /// Written.
    Done,
    /// The object changed meanwhile: look again.
    Stale,
    /// The object is gone.
    Gone,
    /// It failed.
    Failed(kube::Error),
}

impl Patched {
    /// What an error of such a write means.
    pub(super) fn of(error: kube::Error) -> Self {
        match Failed::of(&error) {
            Failed::Conflict | Failed::Exists => Self::Stale,
            Failed::Gone | Failed::Leaving => Self::Gone,
            Failed::Forbidden | Failed::Invalid | Failed::Transient(_) | Failed::Certificate | Failed::Content => Self::Failed(error),
        }
    }
}

impl Writer {
    /// Patches the status. `old` is the live one: fields that are no longer there are removed.
    pub async fn status<K, S>(&self, kind: ObjectKind, cache: &Cache<K>, object: &K, old: Option<&S>, new: &S) -> Patched
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope> + DeserializeOwned + Clone + std::fmt::Debug + Cached,
        S: Serialize,
    {
        let mut status = serde_json::to_value(new).unwrap_or_default();
        let before = serde_json::to_value(old).unwrap_or_default();
        if let (Some(status), Some(before)) = (status.as_object_mut(), before.as_object()) {
            for key in before.keys().filter(|key| !status.contains_key(*key)).cloned().collect::<Vec<_>>() {
                status.insert(key, Value::Null);
            }
        }
        let body = json!({"metadata": version(object), "status": status});
        let key = Key::of(Cached::meta(object));
        let request =
            Request::new(K::url_path(&(), Some(&key.namespace))).patch_subresource("status", &key.name, &params(), &Patch::Merge(&body));
        self.finish(kind, Verb::PatchStatus, cache, request).await
    }

    /// Writes what a plan wants on the object itself; one request for all of it.
    pub async fn object<K>(&self, kind: ObjectKind, cache: &Cache<K>, object: &K, changes: &[Change]) -> Patched
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope> + DeserializeOwned + Clone + std::fmt::Debug + Cached,
    {
        let live = Cached::meta(object);
        let mut annotations = Map::new();
        let mut finalizers = live.finalizers.clone().unwrap_or_default();
        for change in changes {
            match change {
                Change::RemoveAnnotation { key } => {
                    annotations.insert(key.clone(), Value::Null);
                }
                Change::SetAnnotation { key, value } => {
                    annotations.insert(key.clone(), value.clone().into());
                }
                Change::SetFinalizer { key, present } => {
                    finalizers.retain(|f| f != key);
                    finalizers.extend(present.then(|| key.clone()));
                }
                // Of children.
                Change::Apply { .. }
                | Change::MintCertificate(_)
                | Change::ProvideContent(_)
                | Change::ReleaseContent { .. }
                | Change::TakeOver(_)
                | Change::Reclaim(_)
                | Change::Delete(_) => {}
            }
        }
        let mut metadata = version(object);
        let same = finalizers == live.finalizers.clone().unwrap_or_default();
        if annotations.is_empty() && same {
            return Patched::Done;
        }
        if let Some(metadata) = metadata.as_object_mut() {
            if !annotations.is_empty() {
                metadata.insert("annotations".into(), annotations.into());
            }
            if !same {
                metadata.insert("finalizers".into(), finalizers.into());
            }
        }
        let key = Key::of(live);
        let body = json!({ "metadata": metadata });
        let request = Request::new(K::url_path(&(), Some(&key.namespace))).patch(&key.name, &params(), &Patch::Merge(&body));
        self.finish(kind, Verb::Patch, cache, request).await
    }

    async fn finish<K>(
        &self,
        kind: ObjectKind,
        verb: Verb,
        cache: &Cache<K>,
        request: Result<http::Request<Vec<u8>>, kube::core::request::Error>,
    ) -> Patched
    where
        K: Resource + DeserializeOwned + Cached,
    {
        let request = match request {
            Ok(request) => request,
            Err(error) => return Patched::Failed(kube::Error::BuildRequest(error)),
        };
        match self.client.request::<K>(request).await {
            Ok(answer) => {
                self.metrics.wrote(kind, verb);
                cache.answered(slim_served(answer));
                Patched::Done
            }
            Err(error) => Patched::of(error),
        }
    }
}

fn params() -> PatchParams {
    PatchParams { field_manager: Some(keys::FIELD_MANAGER.into()), ..PatchParams::default() }
}

/// Metadata that makes a write conditional on the version that was looked at.
fn version<K: Cached>(object: &K) -> Value {
    json!({"resourceVersion": object.meta().resource_version, "uid": object.meta().uid})
}
