//! Owners of a set: every DataPlane that uses it is one, and the last one to leave takes it along. Each write is conditional on the version
//! that was looked at, since several passes add and remove owners at once.

use k8s_openapi::{
    api::core::v1::ConfigMap,
    apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference},
};
use kube::{
    Api,
    api::{DeleteParams, Patch, PatchParams, Preconditions},
    core::Request,
};
use serde_json::{Value, json};
use weir_api::keys;
use weir_core::plan::{ChildKind, ContentRequest, Target};

use super::{failed, what};
use crate::{
    apply::{Failed, Failure, Writer, children::collection},
    cache::Key,
    memory::Remembered,
    metrics::{ObjectKind, Verb},
    world::content_meta,
};

/// Others may write at the same time so often.
const TRIES: usize = 8;

impl Writer {
    /// Makes the DataPlane an owner.
    pub(super) async fn join(&self, request: &ContentRequest, name: &str) -> Result<(), Failure> {
        let key = Key::new(&request.namespace, name);
        let label: String = request.hash.chars().take(32).collect();
        let gone = || Failure::waits(what(request), format!("ConfigMap {key} has just been deleted"));
        let mut seen = self.world.contents.get(&key).map(|map| map.metadata.clone());
        for _ in 0..TRIES {
            let meta = match seen.take() {
                Some(meta) => meta,
                None => self.metadata(&key).await.map_err(|error| failed(request, name, &error))?.ok_or_else(gone)?,
            };
            let owns = meta.owner_references.iter().flatten().any(|owner| owner.uid == request.owner.uid);
            let labelled = meta.labels.as_ref().and_then(|labels| labels.get(keys::PLUGIN_CONTENT)) == Some(&label);
            if owns && labelled {
                return Ok(());
            }
            let mut owners = meta.owner_references.clone().unwrap_or_default();
            owners.extend((!owns).then(|| request.owner.clone()));
            match self.own(&key, &meta, &owners, Some(&label)).await {
                Ok(()) => return Ok(()),
                Err(error) => match Failed::of(&error) {
                    Failed::Conflict | Failed::Exists => {}
                    Failed::Gone => return Err(gone()),
                    Failed::Forbidden
                    | Failed::Leaving
                    | Failed::Invalid
                    | Failed::Transient(_)
                    | Failed::Certificate
                    | Failed::Content => {
                        return Err(failed(request, name, &error));
                    }
                },
            }
        }
        Err(Failure::waits(what(request), format!("ConfigMap {key} keeps being changed")))
    }

    /// Takes an owner off; without any owner left the ConfigMap goes.
    pub(in crate::apply) async fn leave(&self, target: &Target, owner: &str, remembered: &mut Remembered) -> Result<(), Failure> {
        let key = Key::new(&target.namespace, &target.name);
        let failure = |error: &kube::Error| Failure {
            what: target.name.clone(),
            ..Failure::new(ChildKind::ConfigMap, &target.name, Failed::of(error), error)
        };
        let mut seen = self.world.contents.get(&key).map(|map| map.metadata.clone());
        for _ in 0..TRIES {
            let meta = match seen.take() {
                Some(meta) => Some(meta),
                None => self.metadata(&key).await.map_err(|error| failure(&error))?,
            };
            // Gone, or another object.
            let Some(meta) = meta.filter(|meta| meta.uid.as_deref() == Some(target.uid.as_str())) else { return Ok(()) };
            let mut owners = meta.owner_references.clone().unwrap_or_default();
            let before = owners.len();
            owners.retain(|o| o.uid != owner);
            if owners.len() == before {
                return Ok(());
            }
            let written = if owners.is_empty() { self.discard(&key, &meta).await } else { self.own(&key, &meta, &owners, None).await };
            match written.as_ref().map_err(Failed::of) {
                Ok(()) | Err(Failed::Gone) => {
                    remembered.forget(ChildKind::ConfigMap, &target.name);
                    return Ok(());
                }
                Err(Failed::Conflict | Failed::Exists) => {}
                Err(
                    Failed::Forbidden | Failed::Leaving | Failed::Invalid | Failed::Transient(_) | Failed::Certificate | Failed::Content,
                ) => {
                    return written.map_err(|error| failure(&error));
                }
            }
        }
        Err(Failure::waits(target.name.clone(), format!("ConfigMap {key} keeps being changed")))
    }

    async fn metadata(&self, key: &Key) -> Result<Option<ObjectMeta>, kube::Error> {
        let api = Api::<ConfigMap>::namespaced(self.client.clone(), &key.namespace);
        let found = api.get_metadata_opt(&key.name).await?;
        Ok(found.map(|map| {
            self.world.contents.answered(content_meta(map.metadata.clone()));
            map.metadata
        }))
    }

    /// Only metadata comes back: the content would be a MiB for every owner.
    async fn own(&self, key: &Key, meta: &ObjectMeta, owners: &[OwnerReference], label: Option<&str>) -> Result<(), kube::Error> {
        let mut metadata = json!({"uid": meta.uid, "resourceVersion": meta.resource_version, "ownerReferences": owners});
        if let (Some(metadata), Some(label)) = (metadata.as_object_mut(), label) {
            metadata.insert("labels".into(), json!({ keys::PLUGIN_CONTENT: label }));
        }
        let params = PatchParams { field_manager: Some(keys::FIELD_MANAGER.into()), ..PatchParams::default() };
        let api = Api::<ConfigMap>::namespaced(self.client.clone(), &key.namespace);
        // Kind and version: the client asks for them in a patch that is answered by metadata only.
        let body = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata});
        let answer = api.patch_metadata(&key.name, &params, &Patch::Merge(&body)).await?;
        self.metrics.wrote(ObjectKind::ConfigMap, Verb::Patch);
        self.world.contents.answered(content_meta(answer.metadata));
        Ok(())
    }

    /// Unless somebody has just become its owner.
    async fn discard(&self, key: &Key, meta: &ObjectMeta) -> Result<(), kube::Error> {
        let preconditions = Preconditions { uid: meta.uid.clone(), resource_version: meta.resource_version.clone() };
        let params = DeleteParams { preconditions: Some(preconditions), ..DeleteParams::default() };
        let request = Request::new(collection(ChildKind::ConfigMap, &key.namespace)).delete(&key.name, &params);
        self.client.request::<Value>(request.map_err(kube::Error::BuildRequest)?).await?;
        self.metrics.wrote(ObjectKind::ConfigMap, Verb::Delete);
        Ok(())
    }
}
