//! What is in the cluster.

use k8s_openapi::{
    api::{
        apps::v1::Deployment,
        autoscaling::v2::HorizontalPodAutoscaler,
        coordination::v1::Lease,
        core::v1::{Secret, Service},
        policy::v1::PodDisruptionBudget,
    },
    apimachinery::pkg::apis::meta::v1::ObjectMeta,
};
use kube::{
    Api, Client, Resource,
    api::{ApiResource, DynamicObject, ListParams},
};
use serde_json::{Value, json};
use weir_api::keys;

use crate::{
    cluster::{Deadline, code, failed},
    exit::Failure,
};

/// Objects that are looked at, at most.
pub(crate) const MOST: usize = 10_000;
/// Objects per request.
const PAGE: u32 = 500;
/// Kinds that users write and Weir serves or reads.
pub(crate) const SERVED: [(&str, &str, &str, &str); 4] = [
    (keys::GATEWAY_OPERATOR_GROUP, "v1beta1", "DataPlane", "dataplanes"),
    (keys::GATEWAY_OPERATOR_GROUP, "v1alpha1", "KonnectExtension", "konnectextensions"),
    (keys::GATEWAY_OPERATOR_GROUP, "v1alpha1", "KongPluginInstallation", "kongplugininstallations"),
    (keys::KONNECT_GROUP, "v1alpha2", "KonnectExtension", "konnectextensions"),
];
/// Kinds that only Kong's operator works on.
const NOT_SERVED: [(&str, &str, &str, &str); 5] = [
    (keys::GATEWAY_OPERATOR_GROUP, "v1beta1", "ControlPlane", "controlplanes"),
    (keys::GATEWAY_OPERATOR_GROUP, "v1beta1", "GatewayConfiguration", "gatewayconfigurations"),
    (keys::KONNECT_GROUP, "v1alpha1", "KonnectAPIAuthConfiguration", "konnectapiauthconfigurations"),
    (keys::KONNECT_GROUP, "v1alpha2", "KonnectGatewayControlPlane", "konnectgatewaycontrolplanes"),
    ("configuration.konghq.com", "v1alpha1", "KongDataPlaneClientCertificate", "kongdataplaneclientcertificates"),
];

/// Everything that a report is made of.
#[derive(Debug, Default)]
pub(super) struct Collected {
    /// Objects that users write, whole.
    pub(super) users: Vec<Value>,
    /// Children of DataPlanes; of Secrets their metadata.
    pub(super) children: Vec<Value>,
    /// Leases of Kong's operator.
    pub(super) leases: Vec<Lease>,
    /// How many objects there are of kinds that Weir does not serve.
    pub(super) others: Vec<(&'static str, usize)>,
    /// Our CRDs as they are in the cluster, by name.
    pub(super) crds: Vec<(String, Option<Value>)>,
}

impl Collected {
    /// What users write.
    pub(super) fn of_users(&self) -> impl Iterator<Item = &Value> {
        self.users.iter()
    }

    /// Everything that is live.
    pub(super) fn objects(&self) -> impl Iterator<Item = &Value> {
        self.users.iter().chain(&self.children)
    }

    /// DataPlanes.
    pub(super) fn data_planes(&self) -> impl Iterator<Item = &Value> {
        self.users.iter().filter(|object| object.get("kind").is_some_and(|kind| kind == "DataPlane"))
    }
}

/// Looks at all of it, in these namespaces or in all.
pub(super) async fn all(client: Client, namespaces: &[String], deadline: Deadline) -> anyhow::Result<Collected> {
    let look = Look { client, namespaces, deadline, managed: false };
    let mut found = Collected::default();
    for (group, version, kind, plural) in SERVED {
        found.users.extend(look.dynamic(group, version, kind, plural, ListParams::default()).await?);
    }
    found.children.extend(look.typed::<Deployment>().await?);
    found.children.extend(look.typed::<Service>().await?);
    found.children.extend(look.typed::<HorizontalPodAutoscaler>().await?);
    found.children.extend(look.typed::<PodDisruptionBudget>().await?);
    found.children.extend(look.secrets().await?);
    found.leases = look.leases().await?;
    for (group, version, kind, plural) in NOT_SERVED {
        let count = look.dynamic(group, version, kind, plural, ListParams::default()).await?.len();
        found.others.push((kind, count));
    }
    found.crds = look.crds().await?;
    Ok(found)
}

/// Looks at a cluster, in these namespaces or in all.
pub(crate) struct Look<'a> {
    pub(crate) client: Client,
    pub(crate) namespaces: &'a [String],
    pub(crate) deadline: Deadline,
    /// Whether the records of who owns which field are kept.
    pub(crate) managed: bool,
}

impl Look<'_> {
    /// The namespaces to look in; an empty name is all.
    pub(crate) fn places(&self) -> Vec<&str> {
        if self.namespaces.is_empty() { vec![""] } else { self.namespaces.iter().map(String::as_str).collect() }
    }

    /// Whole objects of a kind.
    pub(crate) async fn dynamic(
        &self,
        group: &str,
        version: &str,
        kind: &str,
        plural: &str,
        params: ListParams,
    ) -> anyhow::Result<Vec<Value>> {
        let resource = resource(group, version, kind, plural);
        let mut all = Vec::new();
        for place in self.places() {
            let api: Api<DynamicObject> = match place {
                "" => Api::all_with(self.client.clone(), &resource),
                place => Api::namespaced_with(self.client.clone(), place, &resource),
            };
            self.pages(kind, params.clone(), &mut all, async |params| {
                let page = self.deadline.request(|| api.list(params)).await?;
                Ok((page.metadata.continue_, page.items.iter().map(|o| whole(o, &resource.api_version, kind, self.managed)).collect()))
            })
            .await?;
        }
        Ok(all)
    }

    /// Children of DataPlanes.
    pub(crate) async fn typed<K>(&self) -> anyhow::Result<Vec<Value>>
    where
        K: Resource<DynamicType = (), Scope = kube::core::NamespaceResourceScope>,
    {
        let (group, version) = (K::group(&()), K::version(&()));
        let resource = resource(&group, &version, &K::kind(&()), &K::plural(&()));
        let mut all = Vec::new();
        for place in self.places() {
            let api: Api<DynamicObject> = match place {
                "" => Api::all_with(self.client.clone(), &resource),
                place => Api::namespaced_with(self.client.clone(), place, &resource),
            };
            self.pages(&resource.kind, of_data_planes(), &mut all, async |params| {
                let page = self.deadline.request(|| api.list(params)).await?;
                Ok((
                    page.metadata.continue_,
                    page.items.iter().map(|o| whole(o, &resource.api_version, &resource.kind, self.managed)).collect(),
                ))
            })
            .await?;
        }
        Ok(all)
    }

    /// Secrets of DataPlanes, without their values.
    pub(crate) async fn secrets(&self) -> anyhow::Result<Vec<Value>> {
        let mut all = Vec::new();
        for place in self.places() {
            let api: Api<Secret> = match place {
                "" => Api::all(self.client.clone()),
                place => Api::namespaced(self.client.clone(), place),
            };
            self.pages("Secret", of_data_planes(), &mut all, async |params| {
                let page = self.deadline.request(|| api.list_metadata(params)).await?;
                let secret =
                    |meta: &ObjectMeta| json!({"apiVersion": "v1", "kind": "Secret", "metadata": lean(meta), "type": "kubernetes.io/tls"});
                Ok((page.metadata.continue_, page.items.iter().map(|item| secret(&item.metadata)).collect()))
            })
            .await?;
        }
        Ok(all)
    }

    async fn leases(&self) -> anyhow::Result<Vec<Lease>> {
        let api: Api<Lease> = Api::all(self.client.clone());
        let params = ListParams::default().fields(&format!("metadata.name={}", weir_operator::kong::LEASE));
        let found = self.deadline.request(|| api.list(&params)).await;
        Ok(found.map_err(|error| failed("Leases cannot be listed", &error))?.items)
    }

    async fn crds(&self) -> anyhow::Result<Vec<(String, Option<Value>)>> {
        let api: Api<DynamicObject> = Api::all_with(self.client.clone(), &crate::crds::resource());
        let mut all = Vec::new();
        for crd in weir_api::crds::all() {
            let name = crd.metadata.name.unwrap_or_default();
            let live = self.deadline.request(|| api.get_opt(&name)).await;
            let live = live.map_err(|error| failed(&format!("CustomResourceDefinition {name} cannot be read"), &error))?;
            all.push((name, live.map(serde_json::to_value).transpose()?));
        }
        Ok(all)
    }

    /// Page by page, bounded. A kind that is not served has no objects.
    pub(crate) async fn pages(
        &self,
        kind: &str,
        mut params: ListParams,
        all: &mut Vec<Value>,
        mut page: impl AsyncFnMut(&ListParams) -> kube::Result<(Option<String>, Vec<Value>)>,
    ) -> anyhow::Result<()> {
        params.limit = Some(PAGE);
        loop {
            let (next, items) = match page(&params).await {
                Err(error) if code(&error) == Some(404) => return Ok(()),
                result => result.map_err(|error| failed(&format!("{kind} objects cannot be listed"), &error))?,
            };
            all.extend(items);
            if all.len() > MOST {
                return Err(Failure::usage(format!("more than {MOST} {kind} objects: look at fewer namespaces, with --namespace")).into());
            }
            match next.filter(|token| !token.is_empty()) {
                Some(token) => params.continue_token = Some(token),
                None => return Ok(()),
            }
        }
    }
}

fn of_data_planes() -> ListParams {
    ListParams::default().labels(&format!("{}={}", keys::MANAGED_BY, keys::MANAGED_BY_DATAPLANE))
}

fn resource(group: &str, version: &str, kind: &str, plural: &str) -> ApiResource {
    let api_version = if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") };
    ApiResource { group: group.into(), version: version.into(), api_version, kind: kind.into(), plural: plural.into() }
}

/// Without the records of who owns which field, which are long and say nothing here.
pub(crate) fn lean(meta: &ObjectMeta) -> ObjectMeta {
    ObjectMeta { managed_fields: None, ..meta.clone() }
}

/// Lists leave kind and version of their items out.
fn whole(object: &DynamicObject, api_version: &str, kind: &str, managed: bool) -> Value {
    let mut value = object.data.clone();
    if !value.is_object() {
        value = json!({});
    }
    if let Some(fields) = value.as_object_mut() {
        fields.insert("apiVersion".into(), api_version.into());
        fields.insert("kind".into(), kind.into());
        let meta = if managed { json!(object.metadata) } else { json!(lean(&object.metadata)) };
        fields.insert("metadata".into(), meta);
    }
    value
}
