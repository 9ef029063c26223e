//! Requests for children, by kind.

use k8s_openapi::{
    ByteString,
    api::{
        apps::v1::Deployment,
        autoscaling::v2::HorizontalPodAutoscaler,
        core::v1::{ConfigMap, Secret, Service},
        policy::v1::PodDisruptionBudget,
    },
    apimachinery::pkg::apis::meta::v1::ObjectMeta,
};
use kube::{
    Api, Resource,
    api::{DeleteParams, Patch, PatchParams, PostParams, Preconditions, PropagationPolicy},
    core::{ApiResource, DynamicObject, GroupVersionKind, NamespaceResourceScope, PartialObjectMeta, Request},
};
use serde_json::Value;
use weir_api::keys;
use weir_core::plan::{ChildKind, Target};

use super::{Holder, Writer, text};
use crate::{
    cache::{Cached, Key},
    metrics::{ObjectKind, Verb},
    world::{ForeignMeta, content_meta, secret_meta, slim, slim_deployment},
};

/// cert-manager's Certificate.
pub(crate) fn certificate_resource() -> ApiResource {
    ApiResource::from_gvk(&GroupVersionKind::gvk("cert-manager.io", "v1", "Certificate"))
}

fn path<K: Resource<DynamicType = (), Scope = NamespaceResourceScope>>(namespace: &str) -> String {
    K::url_path(&(), Some(namespace))
}

/// Path of the collection a child is in.
pub(super) fn collection(kind: ChildKind, namespace: &str) -> String {
    match kind {
        ChildKind::Service => path::<Service>(namespace),
        ChildKind::Secret => path::<Secret>(namespace),
        ChildKind::Deployment => path::<Deployment>(namespace),
        ChildKind::HorizontalPodAutoscaler => path::<HorizontalPodAutoscaler>(namespace),
        ChildKind::PodDisruptionBudget => path::<PodDisruptionBudget>(namespace),
        ChildKind::Certificate => DynamicObject::url_path(&certificate_resource(), Some(namespace)),
        ChildKind::ConfigMap => path::<ConfigMap>(namespace),
    }
}

impl Writer {
    /// Server-side apply.
    pub(super) async fn patch_child(
        &self,
        kind: ChildKind,
        namespace: &str,
        name: &str,
        body: &Value,
        force: bool,
    ) -> Result<Value, kube::Error> {
        let params = PatchParams { force, ..PatchParams::apply(keys::FIELD_MANAGER) };
        self.patch(kind, namespace, name, &params, &Patch::Apply(body)).await
    }

    pub(super) async fn patch(
        &self,
        kind: ChildKind,
        namespace: &str,
        name: &str,
        params: &PatchParams,
        patch: &Patch<&Value>,
    ) -> Result<Value, kube::Error> {
        let request = Request::new(collection(kind, namespace)).patch(name, params, patch).map_err(kube::Error::BuildRequest)?;
        self.client.request(request).await
    }

    /// The object as it is now.
    pub(super) async fn get(&self, kind: ChildKind, namespace: &str, name: &str) -> Result<Value, kube::Error> {
        let request =
            Request::new(collection(kind, namespace)).get(name, &kube::api::GetParams::default()).map_err(kube::Error::BuildRequest)?;
        self.client.request(request).await
    }

    pub(super) async fn delete_child(&self, target: &Target) -> Result<(), kube::Error> {
        let params = DeleteParams {
            preconditions: Some(Preconditions { uid: Some(target.uid.clone()), resource_version: None }),
            propagation_policy: Some(PropagationPolicy::Background),
            ..DeleteParams::default()
        };
        let request =
            Request::new(collection(target.kind, &target.namespace)).delete(&target.name, &params).map_err(kube::Error::BuildRequest)?;
        self.client.request::<Value>(request).await.map(drop)
    }

    /// Stores an admin certificate.
    pub(super) async fn create_secret(&self, secret: &Secret) -> Result<(), kube::Error> {
        let namespace = secret.metadata.namespace.as_deref().unwrap_or_default();
        let params = PostParams { field_manager: Some(keys::FIELD_MANAGER.into()), ..PostParams::default() };
        let stored = Api::<Secret>::namespaced(self.client.clone(), namespace).create(&params, secret).await?;
        self.metrics.wrote(ObjectKind::Secret, Verb::Create);
        self.world.secrets.answered(secret_meta(stored.metadata));
        Ok(())
    }

    /// Whether the Secret of this name is the DataPlane's.
    pub(super) async fn owns_secret(&self, secret: &Secret, uid: &str) -> bool {
        let key = Key::of(&secret.metadata);
        let api = Api::<PartialObjectMeta<Secret>>::namespaced(self.client.clone(), &key.namespace);
        let Ok(live) = api.get(&key.name).await else { return false };
        let ours = live.metadata.owner_references.iter().flatten().any(|o| o.uid == uid) && live.metadata.deletion_timestamp.is_none();
        self.world.secrets.answered(secret_meta(live.metadata));
        ours
    }

    /// What was last applied to a child, by its annotation.
    pub(super) fn applied(&self, kind: ChildKind, key: &Key) -> Option<String> {
        let of = |meta: &ObjectMeta| meta.annotations.as_ref()?.get(keys::APPLIED).cloned();
        let world = &self.world;
        match kind {
            ChildKind::Service => of(&world.services.get(key)?.metadata),
            ChildKind::Secret => of(&world.secrets.get(key)?.metadata),
            ChildKind::Deployment => of(&world.deployments.get(key)?.metadata),
            ChildKind::HorizontalPodAutoscaler => of(&world.autoscalers.get(key)?.metadata),
            ChildKind::PodDisruptionBudget => of(&world.disruption_budgets.get(key)?.metadata),
            ChildKind::Certificate => of(world.certificates.get(key)?.meta()),
            ChildKind::ConfigMap => of(&world.contents.get(key)?.metadata),
        }
    }

    /// Whether a child has the finalizer that Kong's operator leaves.
    pub(super) fn has_finalizer(&self, target: &Target) -> bool {
        let key = Key::new(&target.namespace, &target.name);
        let of = |meta: &ObjectMeta| meta.finalizers.iter().flatten().any(|f| f == keys::WAIT_FOR_OWNER);
        let world = &self.world;
        match target.kind {
            ChildKind::Service => world.services.get(&key).is_some_and(|o| of(&o.metadata)),
            ChildKind::Secret => world.secrets.get(&key).is_some_and(|o| of(&o.metadata)),
            ChildKind::Deployment => world.deployments.get(&key).is_some_and(|o| of(&o.metadata)),
            // Kong's operator leaves it on those three only.
            ChildKind::HorizontalPodAutoscaler | ChildKind::PodDisruptionBudget | ChildKind::Certificate | ChildKind::ConfigMap => false,
        }
    }

    /// Puts an answer into the cache of its kind.
    pub(super) fn cache(&self, kind: ChildKind, answer: Value) -> Result<(), serde_json::Error> {
        let world = &self.world;
        match kind {
            ChildKind::Service => world.services.answered(slim(serde_json::from_value(answer)?)),
            ChildKind::Deployment => world.deployments.answered(slim_deployment(serde_json::from_value(answer)?)),
            ChildKind::HorizontalPodAutoscaler => world.autoscalers.answered(slim(serde_json::from_value(answer)?)),
            ChildKind::PodDisruptionBudget => world.disruption_budgets.answered(slim(serde_json::from_value(answer)?)),
            ChildKind::Certificate => world.certificates.answered(ForeignMeta(slim(serde_json::from_value(answer)?))),
            ChildKind::Secret => {
                let secret: PartialObjectMeta<Secret> = serde_json::from_value(answer)?;
                world.secrets.answered(secret_meta(secret.metadata));
            }
            ChildKind::ConfigMap => {
                let map: PartialObjectMeta<ConfigMap> = serde_json::from_value(answer)?;
                world.contents.answered(content_meta(map.metadata));
            }
        }
        Ok(())
    }

    /// Whose is this name? A stranger's is remembered, so that the next pass chooses another one.
    pub(super) async fn learn(&self, kind: ChildKind, owner: &Key, uid: &str, name: &str) -> Holder {
        let Ok(live) = self.get(kind, &owner.namespace, name).await else { return Holder::Nobody };
        let owners = live.pointer("/metadata/ownerReferences").and_then(Value::as_array);
        let is = |o: &Value, field: &str, value: &str| o.get(field).and_then(Value::as_str) == Some(value);
        if owners.into_iter().flatten().any(|o| is(o, "uid", uid)) {
            return Holder::Us;
        }
        let former = owners.into_iter().flatten().any(|o| is(o, "kind", owning(kind)) && is(o, "name", &owner.name));
        let leaving = former || text(&live, "/metadata/deletionTimestamp").is_some();
        self.foreign().learn(kind, Key::new(&owner.namespace, name), leaving);
        Holder::Stranger
    }
}

/// Kind of the object whose pass makes children of a kind by itself.
fn owning(kind: ChildKind) -> &'static str {
    match kind {
        ChildKind::ConfigMap => "KongPluginInstallation",
        ChildKind::Service
        | ChildKind::Secret
        | ChildKind::Deployment
        | ChildKind::HorizontalPodAutoscaler
        | ChildKind::PodDisruptionBudget
        | ChildKind::Certificate => "DataPlane",
    }
}

/// The Secret that stores a certificate: immutable, so that nobody edits a key by hand; a new certificate is a new Secret.
pub(crate) fn tls_secret(metadata: ObjectMeta, parts: [(&str, String); 3]) -> Secret {
    Secret {
        metadata,
        type_: Some("kubernetes.io/tls".into()),
        immutable: Some(true),
        data: Some(parts.into_iter().map(|(key, text)| (key.to_owned(), ByteString(text.into_bytes()))).collect()),
        ..Secret::default()
    }
}
