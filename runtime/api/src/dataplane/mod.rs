//! `DataPlane`, `gateway-operator.konghq.com/v1beta1`: one set of Kong gateway pods with the Services in front of them.
//!
//! Field for field the shape Kong Operator serves; `tests/schema.rs` compares the generated CRD with it path by path.

#![allow(unreachable_pub, reason = "the derive makes a public copy of each struct inside a function")]

mod deployment;
mod network;
mod resources;
mod rules;
mod status;

use kube::{CustomResource, KubeSchema};
use serde::{Deserialize, Serialize};

pub use deployment::{
    BlueGreenStrategy, DeploymentOptions, Hardened, HorizontalScaling, Promotion, PromotionStrategy, Rollout, RolloutDeploymentPlan,
    RolloutPlan, RolloutResources, RolloutStrategy, Scaling,
};
pub use network::{
    IngressService, IssuerRef, KonnectCertificate, NetworkOptions, NetworkServices, Protocol, ServicePort, ServiceType,
    TrafficDistribution, TrafficPolicy,
};
pub use resources::{PodDisruptionBudgetOptions, PodDisruptionBudgetSpec, ResourceOptions};
pub use status::{Address, DataPlaneStatus, RolloutDeployment, RolloutService, RolloutServices, RolloutStatus};

use crate::keys;

/// What the gateway pods and their Services shall look like.
#[derive(CustomResource, KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[kube(
    group = "gateway-operator.konghq.com",
    version = "v1beta1",
    kind = "DataPlane",
    plural = "dataplanes",
    namespaced,
    status = "DataPlaneStatus",
    derive = "Default",
    derive = "PartialEq",
    shortname = "kodp",
    category = "kong",
    doc = "A set of Kong gateway pods with the Services in front of them.",
    scale(
        spec_replicas_path = ".spec.deployment.replicas",
        status_replicas_path = ".status.replicas",
        label_selector_path = ".status.selector"
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    printcolumn(name = "Ready", type_ = "string", json_path = ".status.conditions[?(@.type=='Ready')].status"),
    validation = Rule::new(rules::IMAGE).message(rules::IMAGE_MESSAGE).field_path(".spec.deployment.podTemplateSpec.spec.containers"),
    validation = Rule::new(rules::DATABASE).message(rules::DATABASE_MESSAGE).field_path(".spec.deployment.podTemplateSpec.spec.containers"),
    validation = Rule::new(rules::FROZEN).message(rules::FROZEN_MESSAGE).field_path(".spec"),
    validation = Rule::new(rules::EXTENSION_NAMESPACE).message(rules::EXTENSION_NAMESPACE_MESSAGE).field_path(".spec.extensions")
)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new(rules::EXTENSION_KIND).message(rules::EXTENSION_KIND_MESSAGE))]
pub struct DataPlaneSpec {
    /// How many gateway pods run, what is in them and how a change reaches them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deployment: Option<DeploymentOptions>,
    /// The Services in front of the pods and the certificate they show to Konnect.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network: Option<NetworkOptions>,
    /// Further objects kept beside the Deployment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resources: Option<ResourceOptions>,
    /// Objects that add to the pods what this spec does not say, at most one. Without any, the gateway runs on its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 0, max = 1))]
    pub extensions: Option<Vec<ExtensionRef>>,
    /// Custom Kong plugins to load into the pods, each by its KongPluginInstallation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plugins_to_install: Option<Vec<PluginRef>>,
}

/// Names an object that adds to the pods.
#[derive(KubeSchema, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ExtensionRef {
    /// API group of the extension. Defaults to `gateway-operator.konghq.com`, the group of the KonnectExtension that needs no token.
    #[serde(default = "default_extension_group")]
    #[schemars(length(max = 253))]
    pub group: String,
    /// Kind of the extension: `KonnectExtension`.
    #[schemars(length(min = 1, max = 253))]
    pub kind: String,
    /// Name of the extension.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
    /// Not to be set: an extension is always read from the namespace of the DataPlane.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 253))]
    pub namespace: Option<String>,
}

fn default_extension_group() -> String {
    keys::GATEWAY_OPERATOR_GROUP.to_owned()
}

impl Default for ExtensionRef {
    fn default() -> Self {
        Self { group: default_extension_group(), kind: String::new(), name: String::new(), namespace: None }
    }
}

/// Names a KongPluginInstallation.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PluginRef {
    /// Name of the installation.
    pub name: String,
    /// Namespace of the installation. Defaults to the namespace of the DataPlane.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
}
