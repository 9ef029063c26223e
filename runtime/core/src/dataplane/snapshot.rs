//! What one pass over a DataPlane sees. Gathered by the shell, or made from manifests; serialisable in spirit: it holds no Secret
//! value, no client and no clock.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use jiff::Timestamp;
use k8s_openapi::api::{
    apps::v1::{Deployment, ReplicaSet},
    autoscaling::v2::HorizontalPodAutoscaler,
    core::v1::Service,
    policy::v1::PodDisruptionBudget,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::Value;
use weir_api::{dataplane::DataPlane, keys};

use super::{objects::deployment::TEMPLATE_HASH, plugins::maps_of};
use crate::{
    konnect::Extension,
    plan::{ChildKind, KeyAlgorithm},
    plugin_installation::{Standing, content::Content},
    policy::Pairs,
};

/// A reference that was followed.
#[derive(Debug, Clone, PartialEq, Default)]
pub enum Lookup<T> {
    /// It is there.
    Found(T),
    /// It is not there.
    Missing,
    /// Nobody can know: no cluster was asked, and the manifests do not contain it.
    #[default]
    Unknown,
}

/// A Secret without its values.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct SecretFacts {
    /// Metadata.
    pub metadata: ObjectMeta,
    /// Type, for example kubernetes.io/tls.
    pub type_: String,
    /// Digest (`sha256:…`) of each key's content.
    pub keys: BTreeMap<String, String>,
    /// Why `tls.crt` and `tls.key` are no certificate and its key, where somebody looked.
    pub unusable: Option<String>,
    /// When the first certificate in `tls.crt` ends, where somebody looked.
    pub ends: Option<Timestamp>,
}

/// The cluster CA, by digest.
#[derive(Debug, Clone, PartialEq)]
pub struct CaFacts {
    /// `sha256:…` of its certificate.
    pub digest: String,
    /// Its key algorithm, which leaves follow.
    pub key: KeyAlgorithm,
    /// Its end; none when nobody knows. No certificate of it lives longer.
    pub ends: Option<Timestamp>,
}

/// What the operator knows about itself and its cluster.
#[derive(Debug, Clone, PartialEq)]
pub struct Operator {
    /// Version of the operator.
    pub version: String,
    /// Name of the cluster, for policies.
    pub cluster_name: String,
    /// Labels of the cluster, for policies.
    pub cluster_labels: Pairs,
    /// The CA that signs admin certificates.
    pub ca: CaFacts,
    /// Why no certificate can be made now; none when one can.
    pub certificate_problem: Option<String>,
    /// Refuse images known to be below Kong 3.0.0.
    pub validate_images: bool,
    /// Label key that marks Secrets for Kong's own tools.
    pub secret_label: String,
    /// Lifetime of an admin certificate, seconds.
    pub certificate_ttl_seconds: i64,
    /// How long before its end a certificate is renewed, seconds.
    pub certificate_margin_seconds: i64,
    /// Holder of the live Lease of Kong's own operator; none when nobody holds it. While somebody does, nothing is taken over.
    pub kong_operator: Option<String>,
}

impl Operator {
    /// Kong's defaults (facts/kong-operator.md 0.2) with a CA of this digest.
    #[must_use]
    pub fn with_ca(ca_digest: String) -> Self {
        Self {
            version: env!("CARGO_PKG_VERSION").into(),
            cluster_name: String::new(),
            cluster_labels: Pairs::new(),
            ca: CaFacts { digest: ca_digest, key: KeyAlgorithm::EcdsaP256, ends: None },
            certificate_problem: None,
            validate_images: true,
            secret_label: weir_api::keys::SECRET.into(),
            certificate_ttl_seconds: 87_600 * 3_600,
            certificate_margin_seconds: 168 * 3_600,
            kong_operator: None,
        }
    }
}

/// A live child and what the server answered to our last apply of it, where that is remembered.
#[derive(Debug, Clone, PartialEq)]
pub struct Child<T> {
    /// The live object.
    pub object: T,
    /// Digest of the server's answer to our last apply ([`crate::live::answer_digest`]); none after a restart and without a cluster.
    /// A digest, because the shell keeps one for every child of every object.
    pub answered: Option<String>,
}

/// A ReplicaSet, as far as the core cares: which Secrets and ConfigMaps its pods use, and what its Deployment said when it had this template.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ReplicaSetFacts {
    /// Name.
    pub name: String,
    /// UID of its Deployment.
    pub deployment: Option<String>,
    /// Secrets that its pod template mounts.
    pub secrets: BTreeSet<String>,
    /// ConfigMaps that its pod template mounts.
    pub config_maps: BTreeSet<String>,
    /// Annotation `weir.dev/template-number`; 0 where it has none.
    pub number: u64,
    /// Annotation `weir.dev/template-hash`.
    pub template_hash: Option<String>,
    /// Annotation `weir.dev/rolled-spec`.
    pub rolled_spec: Option<String>,
}

impl ReplicaSetFacts {
    /// Reads a ReplicaSet.
    #[must_use]
    pub fn of(set: &ReplicaSet) -> Self {
        let owner = set.metadata.owner_references.iter().flatten().find(|o| o.kind == "Deployment" && o.controller == Some(true));
        let volumes = || set.spec.iter().filter_map(|s| s.template.as_ref()?.spec.as_ref()?.volumes.as_ref()).flatten();
        let annotation = |key: &str| set.metadata.annotations.as_ref()?.get(key).cloned();
        Self {
            name: set.metadata.name.clone().unwrap_or_default(),
            deployment: owner.map(|o| o.uid.clone()),
            secrets: volumes().filter_map(|v| v.secret.as_ref()?.secret_name.clone()).collect(),
            config_maps: volumes().flat_map(maps_of).collect(),
            number: annotation(keys::TEMPLATE_NUMBER).and_then(|text| text.parse().ok()).unwrap_or(0),
            template_hash: annotation(TEMPLATE_HASH),
            rolled_spec: annotation(keys::ROLLED_SPEC),
        }
    }
}

/// An installation, as far as a DataPlane that names it cares.
#[derive(Debug, Clone, PartialEq)]
pub struct Installation {
    /// What it gives; none while nothing is in force.
    pub content: Option<Arc<Content>>,
    /// Whether the content stands somewhere, to be copied from.
    pub stored: bool,
    /// Whether this DataPlane may use it.
    pub standing: Standing,
    /// Message of its condition Accepted, where that is not True.
    pub problem: Option<String>,
}

/// An entry of `spec.pluginsToInstall`, followed.
#[derive(Debug, Clone, PartialEq)]
pub struct PluginUse {
    /// Namespace of the installation.
    pub namespace: String,
    /// Name of the installation.
    pub name: String,
    /// The installation.
    pub installation: Lookup<Installation>,
    /// Whether it is in the DataPlane's namespace, or a ReferenceGrant or the operator's settings let it be used from there.
    pub permitted: bool,
}

/// A ConfigMap with plugin content in the DataPlane's namespace.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ContentMap {
    /// Name.
    pub name: String,
    /// UID.
    pub uid: String,
    /// UIDs of the DataPlanes that use it.
    pub owners: BTreeSet<String>,
    /// It is being deleted.
    pub leaving: bool,
}

/// An object on a name we plan to use that is not ours.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ForeignName {
    /// Kind.
    pub kind: ChildKind,
    /// Name.
    pub name: String,
    /// It is being deleted, or belongs to a former object of our name: the name will be free.
    pub leaving: bool,
}

/// Live children: found by owner UID and labels, and by planned name.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Children {
    /// Deployments.
    pub deployments: Vec<Child<Deployment>>,
    /// Services.
    pub services: Vec<Child<Service>>,
    /// Autoscalers.
    pub autoscalers: Vec<Child<HorizontalPodAutoscaler>>,
    /// Disruption budgets.
    pub disruption_budgets: Vec<Child<PodDisruptionBudget>>,
    /// cert-manager Certificates, where that kind is served.
    pub certificates: Vec<Child<Value>>,
    /// Secrets, without values.
    pub secrets: Vec<SecretFacts>,
    /// ConfigMaps with plugin content in the namespace that this DataPlane owns, or that have a name it may want.
    pub contents: Vec<ContentMap>,
    /// ReplicaSets of the Deployments.
    pub replica_sets: Vec<ReplicaSetFacts>,
    /// Names that others hold.
    pub foreign: BTreeSet<ForeignName>,
}

/// What one pass sees.
#[derive(Debug, Clone, PartialEq)]
pub struct Snapshot {
    /// The time of the pass.
    pub now: Timestamp,
    /// The operator and its cluster.
    pub operator: Operator,
    /// The object.
    pub data_plane: DataPlane,
    /// Labels of its namespace.
    pub namespace_labels: Pairs,
    /// The KonnectExtension that `spec.extensions` names, where it names one; unknown where its kind is not served.
    pub extension: Lookup<Extension>,
    /// Whether the other group has an extension of that name: a reference without a group means the token-free one.
    pub namesake: bool,
    /// Secrets that the object or its extension names.
    pub secrets: BTreeMap<String, Lookup<SecretFacts>>,
    /// Installations that the object names, in its order.
    pub plugins: Vec<PluginUse>,
    /// Live children.
    pub children: Children,
}
