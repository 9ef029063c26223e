//! Requests to the API server with nothing in between: JSON values, the exact parameters, and the server's own words on failure.

use kube::{
    Client,
    api::{PostParams, Request},
};
use serde_json::Value;

/// A kind of object, by where it is served.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Kind {
    /// `apiVersion`.
    pub(crate) api_version: &'static str,
    /// `kind`.
    pub(crate) kind: &'static str,
    /// Name in URLs.
    pub(crate) plural: &'static str,
    /// Whether objects live in a namespace.
    pub(crate) namespaced: bool,
}

const fn kind(api_version: &'static str, kind: &'static str, plural: &'static str) -> Kind {
    Kind { api_version, kind, plural, namespaced: true }
}

const fn cluster_wide(api_version: &'static str, kind: &'static str, plural: &'static str) -> Kind {
    Kind { api_version, kind, plural, namespaced: false }
}

pub(crate) const DATA_PLANE: Kind = kind("gateway-operator.konghq.com/v1beta1", "DataPlane", "dataplanes");
pub(crate) const EXTENSION: Kind = kind("gateway-operator.konghq.com/v1alpha1", "KonnectExtension", "konnectextensions");
/// Served only while a test has its CRD installed.
pub(crate) const EXTENSION_V2: Kind = kind("konnect.konghq.com/v1alpha2", "KonnectExtension", "konnectextensions");
pub(crate) const INSTALLATION: Kind = kind("gateway-operator.konghq.com/v1alpha1", "KongPluginInstallation", "kongplugininstallations");
pub(crate) const POLICY: Kind = kind("weir.dev/v1alpha1", "ReconcilePolicy", "reconcilepolicies");
pub(crate) const DEPLOYMENT: Kind = kind("apps/v1", "Deployment", "deployments");
pub(crate) const REPLICA_SET: Kind = kind("apps/v1", "ReplicaSet", "replicasets");
pub(crate) const POD: Kind = kind("v1", "Pod", "pods");
pub(crate) const SERVICE: Kind = kind("v1", "Service", "services");
const ENDPOINT_SLICE: Kind = kind("discovery.k8s.io/v1", "EndpointSlice", "endpointslices");
pub(crate) const SECRET: Kind = kind("v1", "Secret", "secrets");
pub(crate) const CONFIG_MAP: Kind = kind("v1", "ConfigMap", "configmaps");
pub(crate) const HPA: Kind = kind("autoscaling/v2", "HorizontalPodAutoscaler", "horizontalpodautoscalers");
pub(crate) const PDB: Kind = kind("policy/v1", "PodDisruptionBudget", "poddisruptionbudgets");
pub(crate) const LEASE: Kind = kind("coordination.k8s.io/v1", "Lease", "leases");
pub(crate) const EVENT: Kind = kind("v1", "Event", "events");
pub(crate) const NAMESPACE: Kind = cluster_wide("v1", "Namespace", "namespaces");
pub(crate) const CRD: Kind = cluster_wide("apiextensions.k8s.io/v1", "CustomResourceDefinition", "customresourcedefinitions");

pub(crate) const SERVICE_ACCOUNT: Kind = kind("v1", "ServiceAccount", "serviceaccounts");
pub(crate) const ROLE: Kind = kind("rbac.authorization.k8s.io/v1", "Role", "roles");
const ROLE_BINDING: Kind = kind("rbac.authorization.k8s.io/v1", "RoleBinding", "rolebindings");
pub(crate) const CLUSTER_ROLE: Kind = cluster_wide("rbac.authorization.k8s.io/v1", "ClusterRole", "clusterroles");
const CLUSTER_ROLE_BINDING: Kind = cluster_wide("rbac.authorization.k8s.io/v1", "ClusterRoleBinding", "clusterrolebindings");

const fn admission(kind: &'static str, plural: &'static str) -> Kind {
    cluster_wide("admissionregistration.k8s.io/v1", kind, plural)
}
pub(crate) const MUTATING: Kind = admission("MutatingAdmissionPolicy", "mutatingadmissionpolicies");
pub(crate) const VALIDATING: Kind = admission("ValidatingAdmissionPolicy", "validatingadmissionpolicies");
const MUTATING_BINDING: Kind = admission("MutatingAdmissionPolicyBinding", "mutatingadmissionpolicybindings");
const VALIDATING_BINDING: Kind = admission("ValidatingAdmissionPolicyBinding", "validatingadmissionpolicybindings");

const ALL: [Kind; 27] = [
    DATA_PLANE,
    EXTENSION,
    EXTENSION_V2,
    INSTALLATION,
    POLICY,
    DEPLOYMENT,
    REPLICA_SET,
    POD,
    SERVICE,
    SECRET,
    CONFIG_MAP,
    HPA,
    PDB,
    LEASE,
    EVENT,
    NAMESPACE,
    CRD,
    SERVICE_ACCOUNT,
    ROLE,
    ROLE_BINDING,
    CLUSTER_ROLE,
    CLUSTER_ROLE_BINDING,
    MUTATING,
    VALIDATING,
    MUTATING_BINDING,
    VALIDATING_BINDING,
    ENDPOINT_SLICE,
];

impl Kind {
    /// Kind of a manifest.
    pub(crate) fn of(object: &Value) -> Self {
        let (version, kind) = (object["apiVersion"].as_str(), object["kind"].as_str());
        let known = ALL.into_iter().find(|k| Some(k.api_version) == version && Some(k.kind) == kind);
        known.unwrap_or_else(|| panic!("no {version:?} {kind:?} in tests/it/kube/api.rs"))
    }

    /// Path of the collection; an empty namespace means all of them.
    pub(crate) fn path(self, namespace: &str) -> String {
        let root = if self.api_version.contains('/') { "apis" } else { "api" };
        match (self.namespaced, namespace) {
            (true, "") | (false, _) => format!("/{root}/{}/{}", self.api_version, self.plural),
            (true, namespace) => format!("/{root}/{}/namespaces/{namespace}/{}", self.api_version, self.plural),
        }
    }
}

/// What a request ended with when it did not succeed.
#[derive(Debug, Clone)]
pub(crate) struct Failure {
    /// HTTP status; 0 when there was no answer.
    pub(crate) code: u16,
    /// The server's words.
    pub(crate) message: String,
}

impl From<Failure> for String {
    fn from(failure: Failure) -> Self {
        format!("{}: {}", failure.code, failure.message)
    }
}

impl From<kube::Error> for Failure {
    fn from(error: kube::Error) -> Self {
        if let kube::Error::Api(status) = error {
            return Self { code: status.code, message: status.message };
        }
        Self { code: 0, message: error.to_string() }
    }
}

/// Bodies of requests.
pub(crate) const JSON: &str = "application/json";
pub(crate) const MERGE: &str = "application/merge-patch+json";
pub(crate) const JSON_PATCH: &str = "application/json-patch+json";
pub(crate) const APPLY: &str = "application/apply-patch+yaml";

/// One request.
pub(crate) async fn call(client: &Client, method: &str, path: &str, content: &str, body: &Value) -> Result<Value, Failure> {
    let bytes = if body.is_null() { Vec::new() } else { serde_json::to_vec(body).unwrap() };
    let mut request = Request::new("/").create(&PostParams::default(), bytes).unwrap();
    *request.method_mut() = method.parse().unwrap();
    *request.uri_mut() = path.parse().unwrap();
    request.headers_mut().insert("content-type", content.parse().unwrap());
    Ok(client.request::<Value>(request).await?)
}

/// Server-side apply as field manager `manager`, strict about unknown fields.
pub(crate) async fn apply(client: &Client, namespace: &str, object: &Value, manager: &str, force: bool) -> Result<Value, Failure> {
    let name = object["metadata"]["name"].as_str().unwrap();
    let path = format!("{}/{name}?fieldManager={manager}&force={force}&fieldValidation=Strict", Kind::of(object).path(namespace));
    call(client, "PATCH", &path, APPLY, object).await
}

/// Create as field manager `manager`, strict about unknown fields. `more` are further parameters, for example `dryRun=All`.
pub(crate) async fn create(client: &Client, namespace: &str, object: &Value, manager: &str, more: &str) -> Result<Value, Failure> {
    let path = format!("{}?fieldManager={manager}&fieldValidation=Strict&{more}", Kind::of(object).path(namespace));
    call(client, "POST", &path, JSON, object).await
}

/// The object, if it is there.
pub(crate) async fn find(client: &Client, kind: Kind, namespace: &str, name: &str) -> Result<Option<Value>, Failure> {
    match call(client, "GET", &format!("{}/{name}", kind.path(namespace)), JSON, &Value::Null).await {
        Ok(object) => Ok(Some(object)),
        Err(failure) if failure.code == 404 => Ok(None),
        Err(failure) => Err(failure),
    }
}

/// Every object that a label selector takes, with `apiVersion` and `kind`, which lists leave out.
pub(crate) async fn list(client: &Client, kind: Kind, namespace: &str, selector: &str) -> Result<Vec<Value>, Failure> {
    let selector = selector.replace('/', "%2F").replace('=', "%3D").replace(',', "%2C");
    let path = format!("{}?labelSelector={selector}", kind.path(namespace));
    let mut list = call(client, "GET", &path, JSON, &Value::Null).await?;
    let mut items: Vec<Value> = serde_json::from_value(list["items"].take()).unwrap_or_default();
    for item in &mut items {
        item["apiVersion"] = kind.api_version.into();
        item["kind"] = kind.kind.into();
    }
    Ok(items)
}
