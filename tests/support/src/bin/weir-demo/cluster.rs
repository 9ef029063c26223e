//! What a person does with kubectl, by the API.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, Result};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Secret;
use kube::api::{DynamicObject, Patch, PatchParams};
use kube::core::{ApiResource, GroupVersionKind};
use kube::{Api, Client};
use serde_json::{Value, json};

pub(crate) const OPERATOR_NAMESPACE: &str = "weir-system";
pub(crate) const EXAMPLES_NAMESPACE: &str = "gateways";
const MANAGER: &str = "demo";

pub(crate) struct Cluster {
    client: Client,
}

impl Cluster {
    pub(crate) fn new(client: Client) -> Self {
        Self { client }
    }

    /// CRDs, namespaces and the operator's rights.
    pub(crate) async fn install(&self) -> Result<()> {
        let crds: Vec<Value> = weir_api::crds::all().iter().map(serde_json::to_value).collect::<Result<_, _>>()?;
        let rights = weir_api::rbac::manifests(&weir_api::rbac::Install::default());
        for manifest in crds.iter().chain(&crate::namespaces()).chain(&rights) {
            self.apply(manifest).await?;
        }
        let api = self.api("apiextensions.k8s.io/v1", "CustomResourceDefinition", "");
        for crd in &crds {
            let name = crd.pointer("/metadata/name").and_then(Value::as_str).context("a CRD without a name")?;
            crate::until("the CRDs are served", || async {
                let conditions = api.get(name).await?.data.pointer("/status/conditions").cloned().unwrap_or_default();
                Ok(holds(&conditions, "Established").filter(|(status, _)| status == "True"))
            })
            .await?;
        }
        Ok(())
    }

    /// Server-side apply, as kubectl does it.
    pub(crate) async fn apply(&self, manifest: &Value) -> Result<()> {
        let text = |pointer: &str| manifest.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
        let (kind, name, namespace) = (text("/kind"), text("/metadata/name"), text("/metadata/namespace"));
        let api = self.api(text("/apiVersion"), kind, namespace);
        api.patch(name, &PatchParams::apply(MANAGER).force(), &Patch::Apply(manifest)).await.with_context(|| format!("{kind} {name}"))?;
        crate::say(&format!("{kind} {name} applied"));
        Ok(())
    }

    fn api(&self, version: &str, kind: &str, namespace: &str) -> Api<DynamicObject> {
        let (group, version) = version.split_once('/').unwrap_or(("", version));
        let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
        if namespace.is_empty() {
            Api::all_with(self.client.clone(), &resource)
        } else {
            Api::namespaced_with(self.client.clone(), namespace, &resource)
        }
    }

    /// Applies every manifest below a directory. Returns the names of the DataPlanes.
    pub(crate) async fn apply_all(&self, dir: &Path) -> Result<Vec<String>> {
        let mut files = Vec::new();
        for folder in std::fs::read_dir(dir)? {
            let folder = folder?.path();
            if folder.is_dir() {
                files.extend(std::fs::read_dir(folder)?.map(|f| f.map(|f| f.path())).collect::<Result<Vec<_>, _>>()?);
            }
        }
        files.retain(|f| f.extension().is_some_and(|e| e == "yaml"));
        files.sort();
        let mut names = Vec::new();
        for file in files {
            let manifest: Value = serde_saphyr::from_str(&std::fs::read_to_string(&file)?).with_context(|| file.display().to_string())?;
            self.apply(&manifest).await?;
            if manifest.get("kind").and_then(Value::as_str) == Some("DataPlane") {
                names.extend(manifest.pointer("/metadata/name").and_then(Value::as_str).map(String::from));
            }
        }
        Ok(names)
    }

    /// A self-signed client certificate, as Konnect pins them.
    pub(crate) async fn certificate(&self, name: &str) -> Result<()> {
        let made = rcgen::generate_simple_self_signed(vec!["konnect-client".to_owned()])?;
        let secret: Secret = serde_json::from_value(json!({
            "metadata": {"name": name, "namespace": EXAMPLES_NAMESPACE}, "type": "kubernetes.io/tls",
            "stringData": {"tls.crt": made.cert.pem(), "tls.key": made.signing_key.serialize_pem()},
        }))?;
        Api::<Secret>::namespaced(self.client.clone(), EXAMPLES_NAMESPACE).create(&kube::api::PostParams::default(), &secret).await?;
        crate::say(&format!("Secret {name} created"));
        Ok(())
    }

    fn data_planes(&self) -> Api<DynamicObject> {
        self.api("gateway-operator.konghq.com/v1beta1", "DataPlane", EXAMPLES_NAMESPACE)
    }

    /// Status and text of the Ready condition.
    pub(crate) async fn ready(&self, name: &str) -> Result<Option<(String, String)>> {
        let object = self.data_planes().get(name).await?;
        Ok(holds(&object.data.pointer("/status/conditions").cloned().unwrap_or_default(), "Ready"))
    }

    /// A ReconcilePolicy of the operator's namespace.
    pub(crate) async fn policy(&self, name: &str) -> Result<Value> {
        Ok(self.api("weir.dev/v1alpha1", "ReconcilePolicy", OPERATOR_NAMESPACE).get(name).await?.data)
    }

    /// Sets the image of the proxy container.
    pub(crate) async fn image(&self, name: &str, image: &str) -> Result<()> {
        let path = "/spec/deployment/podTemplateSpec/spec/containers/0/image";
        let patch = serde_json::from_value(json!([{"op": "replace", "path": path, "value": image}]))?;
        self.data_planes().patch(name, &PatchParams::default(), &Patch::Json::<()>(patch)).await?;
        crate::say(&format!("DataPlane {name}: image {image}"));
        Ok(())
    }

    async fn deployment(&self, data_plane: &str) -> Result<Deployment> {
        Ok(Api::<Deployment>::namespaced(self.client.clone(), EXAMPLES_NAMESPACE).get(&format!("dataplane-{data_plane}")).await?)
    }

    /// Environment of the proxy container.
    pub(crate) async fn environment(&self, data_plane: &str) -> Result<BTreeMap<String, String>> {
        let pod = self.deployment(data_plane).await?.spec.and_then(|s| s.template.spec).unwrap_or_default();
        let proxy = pod.containers.into_iter().find(|c| c.name == "proxy").context("no proxy container")?;
        Ok(proxy.env.into_iter().flatten().map(|e| (e.name, e.value.unwrap_or_default())).collect())
    }

    /// Whether all pods are of the newest template.
    pub(crate) async fn rolled(&self, data_plane: &str) -> Result<bool> {
        let deployment = self.deployment(data_plane).await?;
        let (wanted, status) = (deployment.spec.and_then(|s| s.replicas).unwrap_or(1), deployment.status.unwrap_or_default());
        let all = |count: Option<i32>| count.unwrap_or(0) == wanted;
        Ok(status.observed_generation == deployment.metadata.generation
            && all(status.updated_replicas)
            && all(status.available_replicas)
            && all(status.replicas))
    }
}

pub(crate) fn holds(conditions: &Value, type_: &str) -> Option<(String, String)> {
    let found = conditions.as_array()?.iter().find(|c| c["type"] == type_)?;
    let text = |key: &str| found.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
    Some((text("status"), format!("({}) {}", text("reason"), text("message"))))
}
