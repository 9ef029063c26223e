//! What a cluster has, for commands that read it as an operator would. Nothing is written.

use std::collections::BTreeSet;

use futures::TryFutureExt;
use k8s_openapi::{
    api::{
        apps::v1::{Deployment, ReplicaSet},
        autoscaling::v2::HorizontalPodAutoscaler,
        core::v1::{ConfigMap, Namespace, Secret, Service},
        policy::v1::PodDisruptionBudget,
    },
    apimachinery::pkg::apis::meta::v1::ObjectMeta,
};
use kube::{
    Api, Client, Resource,
    api::ListParams,
    core::{ClusterResourceScope, NamespaceResourceScope},
};
use serde_json::{Value, json};
use weir_api::{keys, manifest::Source};
use weir_harness::pass::Manifests;

use crate::{
    cluster::{Deadline, code, failed},
    exit::Failure,
    migrate::{
        as_manifest,
        collect::{Look, SERVED, lean},
    },
};

/// Secret of the cluster CA in a usual install.
pub(crate) const CA_SECRET: &str = "kong-operator-ca";

/// Objects of a cluster.
#[derive(Debug, Default)]
pub(crate) struct Live {
    /// What users write, whole.
    pub(crate) users: Vec<Value>,
    /// Children, and what the former refer to.
    pub(crate) others: Vec<Value>,
}

/// Reads it, in these namespaces or in all.
///
/// # Errors
/// Something cannot be listed.
pub(crate) async fn read(client: Client, namespaces: &[String], operator: &str, deadline: Deadline) -> anyhow::Result<Live> {
    let look = Look { client, namespaces, deadline, managed: true };
    let mut live = Live::default();
    for (group, version, kind, plural) in SERVED {
        live.users.extend(look.dynamic(group, version, kind, plural, ListParams::default()).await?);
    }
    live.others.extend(look.typed::<Deployment>().await?);
    live.others.extend(look.typed::<Service>().await?);
    live.others.extend(look.typed::<HorizontalPodAutoscaler>().await?);
    live.others.extend(look.typed::<PodDisruptionBudget>().await?);
    let sets = ListParams::default().labels(keys::SELECTOR);
    live.others.extend(look.dynamic("apps", "v1", &ReplicaSet::kind(&()), "replicasets", sets).await?);
    let certificates = ListParams::default().labels(&format!("{}={}", keys::CERT_PURPOSE, keys::CERT_PURPOSE_KONNECT));
    live.others.extend(look.dynamic("cert-manager.io", "v1", "Certificate", "certificates", certificates).await?);
    live.others.extend(look.dynamic("gateway.networking.k8s.io", "v1", "ReferenceGrant", "referencegrants", ListParams::default()).await?);
    live.others.extend(look.secrets().await?);
    live.others.extend(metadata::<ConfigMap>(&look, "ConfigMap", ListParams::default().labels(keys::PLUGIN_CONTENT)).await?);
    let strangers = ListParams::default().labels(&format!("{}!={}", keys::MANAGED_BY, keys::MANAGED_BY_DATAPLANE));
    // Others hold names that an operator may want only where they begin like them.
    let strangers = metadata::<Service>(&look, "Service", strangers).await?;
    live.others.extend(strangers.into_iter().filter(|service| text(service, "/metadata/name").starts_with("dataplane-")));
    live.others.extend(labels(&look).await?);
    for secret in named_secrets(&look, &live.users).await? {
        // A child that an extension names was listed without its content.
        live.others.retain(|other| !same(other, &secret));
        live.others.push(secret);
    }
    live.others.extend(authority(&look, operator).await?);
    Ok(live)
}

impl Live {
    /// All of it, as `weir plan` reads it.
    pub(crate) fn manifests(&self) -> Manifests {
        Manifests { desired: list("cluster", self.users.iter().map(as_manifest)), observed: list("cluster", self.objects().cloned()) }
    }

    /// Everything that is there.
    pub(crate) fn objects(&self) -> impl Iterator<Item = &Value> {
        self.users.iter().chain(&self.others)
    }
}

/// Objects as one source of manifests; none for nothing.
pub(crate) fn list(name: &str, objects: impl Iterator<Item = Value>) -> Vec<Source> {
    let items: Vec<Value> = objects.collect();
    if items.is_empty() {
        return Vec::new();
    }
    vec![Source { name: name.to_owned(), text: json!({"apiVersion": "v1", "kind": "List", "items": items}).to_string() }]
}

pub(crate) fn text<'a>(object: &'a Value, path: &str) -> &'a str {
    object.pointer(path).and_then(Value::as_str).unwrap_or_default()
}

fn same(a: &Value, b: &Value) -> bool {
    ["/kind", "/metadata/namespace", "/metadata/name"].iter().all(|path| text(a, path) == text(b, path))
}

fn item(kind: &str, meta: &ObjectMeta) -> Value {
    json!({"apiVersion": "v1", "kind": kind, "metadata": lean(meta)})
}

/// Metadata of objects of the core group.
async fn metadata<K>(look: &Look<'_>, kind: &str, params: ListParams) -> anyhow::Result<Vec<Value>>
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + serde::de::DeserializeOwned + std::fmt::Debug,
{
    let mut all = Vec::new();
    for place in look.places() {
        let api: Api<K> = match place {
            "" => Api::all(look.client.clone()),
            place => Api::namespaced(look.client.clone(), place),
        };
        look.pages(kind, params.clone(), &mut all, async |params| {
            let page = look.deadline.request(|| api.list_metadata(params)).await?;
            Ok((page.metadata.continue_, page.items.iter().map(|object| item(kind, &object.metadata)).collect()))
        })
        .await?;
    }
    Ok(all)
}

/// Namespaces with their labels. Who may not read them plans without.
async fn labels(look: &Look<'_>) -> anyhow::Result<Vec<Value>> {
    fn cluster<K: Resource<DynamicType = (), Scope = ClusterResourceScope>>(client: Client) -> Api<K> {
        Api::all(client)
    }
    let api: Api<Namespace> = cluster(look.client.clone());
    let mut all = Vec::new();
    if look.namespaces.is_empty() {
        let params = ListParams::default();
        let listed = look.deadline.request(|| api.list_metadata(&params)).await;
        all.extend(allowed(listed, "Namespaces cannot be listed")?.into_iter().flat_map(|page| page.items));
    }
    for name in look.namespaces {
        all.extend(allowed(look.deadline.request(|| api.get_metadata(name)).await, &format!("Namespace {name} cannot be read"))?);
    }
    Ok(all.iter().map(|namespace| item("Namespace", &namespace.metadata)).collect())
}

/// The Secrets that extensions name: a pass needs the digest of their certificates. They stay in this process.
async fn named_secrets(look: &Look<'_>, users: &[Value]) -> anyhow::Result<Vec<Value>> {
    let named: BTreeSet<(&str, &str)> = users
        .iter()
        .filter(|object| text(object, "/kind") == "KonnectExtension")
        .filter_map(|object| Some((text(object, "/metadata/namespace"), secret_name(object)?)))
        .collect();
    let mut all = Vec::new();
    for (namespace, name) in named {
        let api: Api<Secret> = Api::namespaced(look.client.clone(), namespace);
        let what = format!("Secret {namespace}/{name} cannot be read");
        if let Some(Some(secret)) = allowed(look.deadline.request(|| api.get_opt(name)).await, &what)? {
            all.push(json!({
                "apiVersion": "v1", "kind": "Secret", "metadata": lean(&secret.metadata), "type": secret.type_, "data": secret.data,
            }));
        }
    }
    Ok(all)
}

/// The Secret that an extension of either group names.
pub(crate) fn secret_name(extension: &Value) -> Option<&str> {
    let paths = [
        "/spec/konnectControlPlaneAPIAuthConfiguration/clusterCertificateSecretRef/name",
        "/status/dataPlaneClientAuth/certificateSecretRef/name",
    ];
    paths.iter().find_map(|path| extension.pointer(path)?.as_str()).filter(|name| !name.is_empty())
}

/// The certificate of the cluster CA, without its key: names of certificates depend on it.
async fn authority(look: &Look<'_>, namespace: &str) -> anyhow::Result<Option<Value>> {
    let api: Api<Secret> = Api::namespaced(look.client.clone(), namespace);
    let found =
        look.deadline.request(|| api.get_opt(CA_SECRET).map_ok(|secret| secret.and_then(|secret| secret.data?.remove("tls.crt")))).await;
    let certificate = allowed(found, &format!("Secret {namespace}/{CA_SECRET} cannot be read"))?.flatten();
    Ok(certificate.map(|certificate| {
        json!({
            "apiVersion": "v1", "kind": "Secret", "metadata": {"namespace": namespace, "name": CA_SECRET},
            "type": "kubernetes.io/tls", "data": {"tls.crt": certificate},
        })
    }))
}

/// What somebody may not read is not known; that is said, and the rest goes on.
fn allowed<T>(result: kube::Result<T>, what: &str) -> Result<Option<T>, Failure> {
    match result {
        Ok(found) => Ok(Some(found)),
        Err(error) if matches!(code(&error), Some(401 | 403)) => {
            let _ = std::io::Write::write_fmt(&mut std::io::stderr(), format_args!("weir: warning: {what}; the answer is without it\n"));
            Ok(None)
        }
        Err(error) => Err(failed(what, &error)),
    }
}
